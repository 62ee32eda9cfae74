// Two contracted dims in another order, two free ones, no free ones.
func.func @main(%x: tensor<2x3x4x5xf32>, %w: tensor<4x3x6x7xf32>, %v: tensor<3x4xf32>, %y: tensor<5xf32>) -> (tensor<2x5x6x7xf32>, tensor<2x5xf32>, tensor<f32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [2, 1] x [0, 1] : (tensor<2x3x4x5xf32>, tensor<4x3x6x7xf32>) -> tensor<2x5x6x7xf32>
  %1 = stablehlo.dot_general %x, %v, contracting_dims = [1, 2] x [0, 1] : (tensor<2x3x4x5xf32>, tensor<3x4xf32>) -> tensor<2x5xf32>
  %2 = stablehlo.dot_general %y, %y, contracting_dims = [0] x [0] : (tensor<5xf32>, tensor<5xf32>) -> tensor<f32>
  return %0, %1, %2 : tensor<2x5x6x7xf32>, tensor<2x5xf32>, tensor<f32>
}
// -----
module {
  func.func public @main(%x: tensor<2x3x4x5xf32>, %w: tensor<4x3x6x7xf32>, %v: tensor<3x4xf32>, %y: tensor<5xf32>) -> (tensor<2x5x6x7xf32>, tensor<2x5xf32>, tensor<f32>) {
    %0 = stablehlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<2x3x4x5xf32>) -> tensor<2x5x3x4xf32>
    %1 = stablehlo.reshape %0 : (tensor<2x5x3x4xf32>) -> tensor<10x12xf32>
    %2 = stablehlo.transpose %w, dims = [1, 0, 2, 3] : (tensor<4x3x6x7xf32>) -> tensor<3x4x6x7xf32>
    %3 = stablehlo.reshape %2 : (tensor<3x4x6x7xf32>) -> tensor<12x42xf32>
    %4 = stablehlo.dot_general %1, %3, contracting_dims = [1] x [0] : (tensor<10x12xf32>, tensor<12x42xf32>) -> tensor<10x42xf32>
    %5 = stablehlo.reshape %4 : (tensor<10x42xf32>) -> tensor<2x5x6x7xf32>
    %6 = stablehlo.transpose %x, dims = [0, 3, 1, 2] : (tensor<2x3x4x5xf32>) -> tensor<2x5x3x4xf32>
    %7 = stablehlo.reshape %6 : (tensor<2x5x3x4xf32>) -> tensor<10x12xf32>
    %8 = stablehlo.reshape %v : (tensor<3x4xf32>) -> tensor<12x1xf32>
    %9 = stablehlo.dot_general %7, %8, contracting_dims = [1] x [0] : (tensor<10x12xf32>, tensor<12x1xf32>) -> tensor<10x1xf32>
    %10 = stablehlo.reshape %9 : (tensor<10x1xf32>) -> tensor<2x5xf32>
    %11 = stablehlo.reshape %y : (tensor<5xf32>) -> tensor<1x5xf32>
    %12 = stablehlo.reshape %y : (tensor<5xf32>) -> tensor<5x1xf32>
    %13 = stablehlo.dot_general %11, %12, contracting_dims = [1] x [0] : (tensor<1x5xf32>, tensor<5x1xf32>) -> tensor<1x1xf32>
    %14 = stablehlo.reshape %13 : (tensor<1x1xf32>) -> tensor<f32>
    return %5, %10, %14 : tensor<2x5x6x7xf32>, tensor<2x5xf32>, tensor<f32>
  }
}
