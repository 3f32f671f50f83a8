// Products as compilers of models write them, in f32 and f64, for the CPU. main.cpp compares what DeepGen's calls compute
// with what mlir-opt makes of the same text.
#row = affine_map<(d0, d1) -> (d1)>
#column = affine_map<(d0, d1) -> (d0)>
#same = affine_map<(d0, d1) -> (d0, d1)>
#transposed = affine_map<(d0, d1) -> (d1, d0)>

module @model {
  // y = relu(x w^T + bias), with the bias in the output's place.
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

  // gelu(x w + bias) + residual, with the erf of a named operation's body spelled out.
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

  // Adds to what there is; both maps of the inputs are transposed, and so is the output.
  func.func @accumulate(%a: tensor<7x6xf64>, %b: tensor<9x7xf64>, %c: tensor<9x6xf64>) -> tensor<9x6xf64> {
    %d = linalg.contract
      indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (n, m)>]
      ins(%a, %b : tensor<7x6xf64>, tensor<9x7xf64>) outs(%c : tensor<9x6xf64>) -> tensor<9x6xf64>
    return %d : tensor<9x6xf64>
  }

  // Heads between the rows, as [tokens, heads, width]: the batch is no outer dimension of q, k and the output.
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

  // A batch of activations with one weight is one product with more rows.
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

  // Two layers, of which the first one's row sums are wanted as well: these stay in the module, and both layers are calls.
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

  // The sum of two products, whose result somebody transposes; and a product with a vector.
  func.func @rest(%a: tensor<6x7xf32>, %b: tensor<7x9xf32>, %c: tensor<6x8xf32>, %d: tensor<8x9xf32>, %v: tensor<6xf32>) -> tensor<9xf32> {
    %zero = arith.constant 0.0 : f32
    %empty = tensor.empty() : tensor<6x9xf32>
    %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<6x9xf32>) -> tensor<6x9xf32>
    %0 = linalg.matmul ins(%a, %b : tensor<6x7xf32>, tensor<7x9xf32>) outs(%start : tensor<6x9xf32>) -> tensor<6x9xf32>
    %1 = linalg.matmul ins(%c, %d : tensor<6x8xf32>, tensor<8x9xf32>) outs(%start : tensor<6x9xf32>) -> tensor<6x9xf32>
    %2 = linalg.add ins(%0, %1 : tensor<6x9xf32>, tensor<6x9xf32>) outs(%empty : tensor<6x9xf32>) -> tensor<6x9xf32>
    %3 = tensor.empty() : tensor<9x6xf32>
    %4 = linalg.transpose ins(%2 : tensor<6x9xf32>) outs(%3 : tensor<9x6xf32>) permutation = [1, 0]
    %5 = tensor.empty() : tensor<9xf32>
    %6 = linalg.fill ins(%zero : f32) outs(%5 : tensor<9xf32>) -> tensor<9xf32>
    %7 = linalg.matvec ins(%4, %v : tensor<9x6xf32>, tensor<6xf32>) outs(%6 : tensor<9xf32>) -> tensor<9xf32>
    return %7 : tensor<9xf32>
  }
}
