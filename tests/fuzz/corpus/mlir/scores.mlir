  func.func @scores(%q: tensor<10x3x8xf32>, %k: tensor<12x3x8xf32>) -> tensor<10x3x12xf32> {
    %zero = arith.constant 0.0 : f32
    %scale = arith.constant 0.353553385 : f32
    %empty = tensor.empty() : tensor<10x3x12xf32>
    %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<10x3x12xf32>) -> tensor<10x3x12xf32>
    %product = linalg.contract
      indexing_maps = [affine_map<(h, m, n, k) -> (m, h, k)>, affine_map<(h, m, n, k) -> (n, h, k)>, affine_map<(h, m, n, k) -> (m, h, n)>]
      ins(%q, %k : tensor<10x3x8xf32>, tensor<12x3x8xf32>) outs(%start : tensor<10x3x12xf32>) -> tensor<10x3x12xf32>
    %scaled = linalg.generic {
      indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%product : tensor<10x3x12xf32>) outs(%empty : tensor<10x3x12xf32>) {
    ^bb0(%in: f32, %out: f32):
      %0 = arith.mulf %in, %scale : f32
      linalg.yield %0 : f32
    } -> tensor<10x3x12xf32>
    return %scaled : tensor<10x3x12xf32>
  }
