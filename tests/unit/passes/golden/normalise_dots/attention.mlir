// Heads: transposes in front are looked through, k stays contiguous.
func.func @main(%q: tensor<1x5x2x4xf32>, %k: tensor<1x5x2x4xf32>) -> tensor<1x2x5x5xf32> {
  %0 = stablehlo.transpose %q, dims = [0, 2, 1, 3] : (tensor<1x5x2x4xf32>) -> tensor<1x2x5x4xf32>
  %1 = stablehlo.transpose %k, dims = [0, 2, 3, 1] : (tensor<1x5x2x4xf32>) -> tensor<1x2x4x5xf32>
  %2 = stablehlo.dot_general %0, %1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<1x2x5x4xf32>, tensor<1x2x4x5xf32>) -> tensor<1x2x5x5xf32>
  return %2 : tensor<1x2x5x5xf32>
}
// -----
module {
  func.func public @main(%q: tensor<1x5x2x4xf32>, %k: tensor<1x5x2x4xf32>) -> tensor<1x2x5x5xf32> {
    %0 = stablehlo.transpose %q, dims = [0, 2, 1, 3] : (tensor<1x5x2x4xf32>) -> tensor<1x2x5x4xf32>
    %1 = stablehlo.transpose %k, dims = [0, 2, 1, 3] : (tensor<1x5x2x4xf32>) -> tensor<1x2x5x4xf32>
    %2 = stablehlo.dot_general %0, %1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>) -> tensor<1x2x5x5xf32>
    return %2 : tensor<1x2x5x5xf32>
  }
}
