#same = affine_map<(d0, d1) -> (d0, d1)>
  func.func @linear(%x: tensor<8x16xf32>, %w: tensor<24x16xf32>, %bias: tensor<24xf32>) -> tensor<8x24xf32> {
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<8x24xf32>
    %start = linalg.broadcast ins(%bias : tensor<24xf32>) outs(%empty : tensor<8x24xf32>) dimensions = [0]
    %product = linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : tensor<8x16xf32>, tensor<24x16xf32>) outs(%start : tensor<8x24xf32>) -> tensor<8x24xf32>
    %y = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%product : tensor<8x24xf32>) outs(%empty : tensor<8x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %0 = arith.maximumf %in, %zero : f32
      linalg.yield %0 : f32
    } -> tensor<8x24xf32>
    return %y : tensor<8x24xf32>
  }
