// A linear layer on a batch of sequences: one m, and the bias as an epilogue.
func.func @main(%x: tensor<2x3x4xf32>, %w: tensor<5x4xf32>, %b: tensor<5xf32>) -> tensor<2x3x5xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [2] x [1] : (tensor<2x3x4xf32>, tensor<5x4xf32>) -> tensor<2x3x5xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [2] : (tensor<5xf32>) -> tensor<2x3x5xf32>
  %2 = stablehlo.add %0, %1 : tensor<2x3x5xf32>
  %3 = stablehlo.tanh %2 : tensor<2x3x5xf32>
  return %3 : tensor<2x3x5xf32>
}
// -----
module {
  func.func public @main(%x: tensor<2x3x4xf32>, %w: tensor<5x4xf32>, %b: tensor<5xf32>) -> tensor<2x3x5xf32> {
    %0 = stablehlo.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [1] : (tensor<6x4xf32>, tensor<5x4xf32>) -> tensor<6x5xf32>
    %2 = stablehlo.broadcast_in_dim %b, dims = [2] : (tensor<5xf32>) -> tensor<2x3x5xf32>
    %3 = stablehlo.reshape %2 : (tensor<2x3x5xf32>) -> tensor<6x5xf32>
    %4 = stablehlo.add %1, %3 : tensor<6x5xf32>
    %5 = stablehlo.tanh %4 : tensor<6x5xf32>
    %6 = stablehlo.reshape %5 : (tensor<6x5xf32>) -> tensor<2x3x5xf32>
    return %6 : tensor<2x3x5xf32>
  }
}
