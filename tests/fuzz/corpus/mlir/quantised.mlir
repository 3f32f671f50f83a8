#same = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
#column = affine_map<(d0, d1) -> (d0)>
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
