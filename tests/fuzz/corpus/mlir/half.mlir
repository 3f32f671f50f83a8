func.func @half(%a: tensor<64x128xf16>, %b: tensor<128x96xf16>) -> tensor<64x96xf16> {
  %zero = arith.constant 0.0 : f16
  %0 = tensor.empty() : tensor<64x96xf16>
  %1 = linalg.fill ins(%zero : f16) outs(%0 : tensor<64x96xf16>) -> tensor<64x96xf16>
  %2 = linalg.matmul ins(%a, %b : tensor<64x128xf16>, tensor<128x96xf16>) outs(%1 : tensor<64x96xf16>) -> tensor<64x96xf16>
  return %2 : tensor<64x96xf16>
}
