  func.func @tokens(%x: tensor<2x5x16xf32>, %w: tensor<16x24xf32>, %low: tensor<24xf32>) -> tensor<2x5x24xf32> {
    %zero = arith.constant 0.0 : f32
    %six = arith.constant 6.0 : f32
    %empty = tensor.empty() : tensor<2x5x24xf32>
    %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x5x24xf32>) -> tensor<2x5x24xf32>
    %product = linalg.generic {
      indexing_maps = [affine_map<(b, s, n, k) -> (b, s, k)>, affine_map<(b, s, n, k) -> (k, n)>, affine_map<(b, s, n, k) -> (b, s, n)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<2x5x16xf32>, tensor<16x24xf32>) outs(%start : tensor<2x5x24xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %0 = arith.mulf %a, %b : f32
      %1 = arith.addf %out, %0 : f32
      linalg.yield %1 : f32
    } -> tensor<2x5x24xf32>
    %y = linalg.generic {
      indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%product, %low : tensor<2x5x24xf32>, tensor<24xf32>) outs(%empty : tensor<2x5x24xf32>) {
    ^bb0(%in: f32, %s: f32, %out: f32):
      %0 = arith.mulf %in, %s : f32
      %1 = arith.maximumf %0, %zero : f32
      %2 = arith.minimumf %1, %six : f32
      linalg.yield %2 : f32
    } -> tensor<2x5x24xf32>
    return %y : tensor<2x5x24xf32>
  }
