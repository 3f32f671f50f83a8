#row = affine_map<(d0, d1) -> (d1)>
#same = affine_map<(d0, d1) -> (d0, d1)>
  func.func @block(%x: tensor<5x16xf32>, %w: tensor<16x24xf32>, %bias: tensor<24xf32>, %residual: tensor<5x24xf32>) -> tensor<5x24xf32> {
    %zero = arith.constant 0.0 : f32
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %root = arith.constant 0.707106769 : f32
    %empty = tensor.empty() : tensor<5x24xf32>
    %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<5x24xf32>) -> tensor<5x24xf32>
    %product = linalg.matmul ins(%x, %w : tensor<5x16xf32>, tensor<16x24xf32>) outs(%start : tensor<5x24xf32>) -> tensor<5x24xf32>
    %sum = linalg.generic {indexing_maps = [#same, #row, #same], iterator_types = ["parallel", "parallel"]}
      ins(%product, %bias : tensor<5x24xf32>, tensor<24xf32>) outs(%empty : tensor<5x24xf32>) {
    ^bb0(%in: f32, %b: f32, %out: f32):
      %0 = arith.addf %in, %b : f32
      linalg.yield %0 : f32
    } -> tensor<5x24xf32>
    %gelu = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<5x24xf32>) outs(%empty : tensor<5x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %0 = arith.mulf %in, %root : f32
      %1 = math.erf %0 : f32
      %2 = arith.addf %1, %one : f32
      %3 = arith.mulf %2, %half : f32
      %4 = arith.mulf %in, %3 : f32
      linalg.yield %4 : f32
    } -> tensor<5x24xf32>
    %y = linalg.add ins(%residual, %gelu : tensor<5x24xf32>, tensor<5x24xf32>) outs(%empty : tensor<5x24xf32>) -> tensor<5x24xf32>
    return %y : tensor<5x24xf32>
  }
