  func.func @accumulate(%a: tensor<7x6xf64>, %b: tensor<9x7xf64>, %c: tensor<9x6xf64>) -> tensor<9x6xf64> {
    %d = linalg.contract
      indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (n, m)>]
      ins(%a, %b : tensor<7x6xf64>, tensor<9x7xf64>) outs(%c : tensor<9x6xf64>) -> tensor<9x6xf64>
    return %d : tensor<9x6xf64>
  }
