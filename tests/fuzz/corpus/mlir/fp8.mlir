func.func @fp8(%a: tensor<64x128xf8E4M3FN>, %b: tensor<128x96xf8E5M2>) -> tensor<64x96xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<64x96xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<64x96xf32>) -> tensor<64x96xf32>
  %2 = linalg.matmul ins(%a, %b : tensor<64x128xf8E4M3FN>, tensor<128x96xf8E5M2>) outs(%1 : tensor<64x96xf32>) -> tensor<64x96xf32>
  return %2 : tensor<64x96xf32>
}
