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
