#same = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
func.func @wide_bias(%a: tensor<64x128xbf16>, %b: tensor<128x96xbf16>, %bias: tensor<96xf32>) -> tensor<64x96xbf16> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<64x96xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<64x96xf32>) -> tensor<64x96xf32>
  %2 = linalg.matmul ins(%a, %b : tensor<64x128xbf16>, tensor<128x96xbf16>) outs(%1 : tensor<64x96xf32>) -> tensor<64x96xf32>
  %3 = tensor.empty() : tensor<64x96xbf16>
  %4 = linalg.generic {indexing_maps = [#same, #row, #same], iterator_types = ["parallel", "parallel"]}
    ins(%2, %bias : tensor<64x96xf32>, tensor<96xf32>) outs(%3 : tensor<64x96xbf16>) {
  ^bb0(%in: f32, %x: f32, %out: bf16):
    %6 = arith.addf %in, %x : f32
    %7 = arith.truncf %6 : f32 to bf16
    linalg.yield %7 : bf16
  } -> tensor<64x96xbf16>
  return %4 : tensor<64x96xbf16>
}
