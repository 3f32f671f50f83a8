#column = affine_map<(d0, d1) -> (d0)>
#same = affine_map<(d0, d1) -> (d0, d1)>
  func.func @layers(%x: tensor<8x16xf32>, %w0: tensor<16x24xf32>, %w1: tensor<24x24xf32>) -> tensor<8x24xf32> {
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<8x24xf32>
    %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x24xf32>) -> tensor<8x24xf32>
    %first = linalg.matmul ins(%x, %w0 : tensor<8x16xf32>, tensor<16x24xf32>) outs(%start : tensor<8x24xf32>) -> tensor<8x24xf32>
    %silu = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%first : tensor<8x24xf32>) outs(%empty : tensor<8x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %one = arith.constant 1.0 : f32
      %0 = arith.negf %in : f32
      %1 = math.exp %0 : f32
      %2 = arith.addf %1, %one : f32
      %3 = arith.divf %in, %2 : f32
      linalg.yield %3 : f32
    } -> tensor<8x24xf32>
    %rows = tensor.empty() : tensor<8xf32>
    %none = linalg.fill ins(%zero : f32) outs(%rows : tensor<8xf32>) -> tensor<8xf32>
    %sums = linalg.generic {indexing_maps = [#same, #column], iterator_types = ["parallel", "reduction"]}
      ins(%silu : tensor<8x24xf32>) outs(%none : tensor<8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %0 = arith.addf %in, %out : f32
      linalg.yield %0 : f32
    } -> tensor<8xf32>
    %second = linalg.matmul ins(%silu, %w1 : tensor<8x24xf32>, tensor<24x24xf32>) outs(%start : tensor<8x24xf32>) -> tensor<8x24xf32>
    %y = linalg.generic {indexing_maps = [#same, #column, #same], iterator_types = ["parallel", "parallel"]}
      ins(%second, %sums : tensor<8x24xf32>, tensor<8xf32>) outs(%empty : tensor<8x24xf32>) {
    ^bb0(%in: f32, %s: f32, %out: f32):
      %0 = arith.addf %in, %s : f32
      linalg.yield %0 : f32
    } -> tensor<8x24xf32>
    return %y : tensor<8x24xf32>
  }
