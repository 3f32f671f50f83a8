func.func @f(%a: tensor<?x5xf32>, %b: tensor<5x6xf32>, %c: tensor<?x6xf32>) -> tensor<?x6xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<?x5xf32>, tensor<5x6xf32>) outs(%c : tensor<?x6xf32>) -> tensor<?x6xf32>
  return %0 : tensor<?x6xf32>
}
