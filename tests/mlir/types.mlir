// What the types of a chain come to.
#same = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
#column = affine_map<(d0, d1) -> (d0)>

// Sums in f32, a bias of D's type that is widened first, and one rounding at the end.
func.func @truncated(%a: tensor<64x128xbf16>, %b: tensor<128x96xbf16>, %bias: tensor<96xbf16>) -> tensor<64x96xbf16> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<64x96xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<64x96xf32>) -> tensor<64x96xf32>
  %2 = linalg.matmul ins(%a, %b : tensor<64x128xbf16>, tensor<128x96xbf16>) outs(%1 : tensor<64x96xf32>) -> tensor<64x96xf32>
  %3 = tensor.empty() : tensor<64x96xbf16>
  %4 = linalg.generic {indexing_maps = [#same, #row, #same], iterator_types = ["parallel", "parallel"]}
    ins(%2, %bias : tensor<64x96xf32>, tensor<96xbf16>) outs(%3 : tensor<64x96xbf16>) {
  ^bb0(%in: f32, %x: bf16, %out: bf16):
    %5 = arith.extf %x : bf16 to f32
    %6 = arith.addf %in, %5 : f32
    %7 = arith.truncf %6 : f32 to bf16
    linalg.yield %7 : bf16
  } -> tensor<64x96xbf16>
  return %4 : tensor<64x96xbf16>
}

// A bias in f32 in front of a D in bf16 is no operand of an epilogue: the chain ends before it.
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

// Integers, with the scales of both tensors behind the sums.
func.func @quantised(%a: tensor<64x128xi8>, %b: tensor<96x128xi8>, %rows: tensor<64xf32>, %columns: tensor<96xf32>) -> tensor<64x96xf32> {
  %zero = arith.constant 0 : i32
  %0 = tensor.empty() : tensor<64x96xi32>
  %1 = linalg.fill ins(%zero : i32) outs(%0 : tensor<64x96xi32>) -> tensor<64x96xi32>
  %2 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : tensor<64x128xi8>, tensor<96x128xi8>) outs(%1 : tensor<64x96xi32>) {
  ^bb0(%x: i8, %y: i8, %out: i32):
    %5 = arith.extsi %x : i8 to i32
    %6 = arith.extsi %y : i8 to i32
    %7 = arith.muli %5, %6 : i32
    %8 = arith.addi %out, %7 : i32
    linalg.yield %8 : i32
  } -> tensor<64x96xi32>
  %3 = tensor.empty() : tensor<64x96xf32>
  %4 = linalg.generic {indexing_maps = [#same, #column, #row, #same], iterator_types = ["parallel", "parallel"]}
    ins(%2, %rows, %columns : tensor<64x96xi32>, tensor<64xf32>, tensor<96xf32>) outs(%3 : tensor<64x96xf32>) {
  ^bb0(%in: i32, %r: f32, %c: f32, %out: f32):
    %5 = arith.sitofp %in : i32 to f32
    %6 = arith.mulf %5, %r : f32
    %7 = arith.mulf %6, %c : f32
    linalg.yield %7 : f32
  } -> tensor<64x96xf32>
  return %4 : tensor<64x96xf32>
}

// Sums as the type of the output says; DeepGen keeps them in f32.
func.func @half(%a: tensor<64x128xf16>, %b: tensor<128x96xf16>) -> tensor<64x96xf16> {
  %zero = arith.constant 0.0 : f16
  %0 = tensor.empty() : tensor<64x96xf16>
  %1 = linalg.fill ins(%zero : f16) outs(%0 : tensor<64x96xf16>) -> tensor<64x96xf16>
  %2 = linalg.matmul ins(%a, %b : tensor<64x128xf16>, tensor<128x96xf16>) outs(%1 : tensor<64x96xf16>) -> tensor<64x96xf16>
  return %2 : tensor<64x96xf16>
}

func.func @fp8(%a: tensor<64x128xf8E4M3FN>, %b: tensor<128x96xf8E5M2>) -> tensor<64x96xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<64x96xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<64x96xf32>) -> tensor<64x96xf32>
  %2 = linalg.matmul ins(%a, %b : tensor<64x128xf8E4M3FN>, tensor<128x96xf8E5M2>) outs(%1 : tensor<64x96xf32>) -> tensor<64x96xf32>
  return %2 : tensor<64x96xf32>
}
