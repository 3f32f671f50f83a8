func.func @f(%a: tensor<4x5xf32>, %c: tensor<4x4xf32>) {
  %0 = linalg.matmul_transpose_b ins(%a, %a : tensor<4x5xf32>, tensor<4x5xf32>) outs(%c : tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}
