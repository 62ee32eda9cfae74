// A window of twice the step: phases are features, what follows goes along, and
// the result is cut out of the phases.
func.func @main(%x: tensor<1x3x3x2xf32>, %w: tensor<4x4x2x3xf32>, %b: tensor<3xf32>) -> tensor<1x6x6x3xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[2, 2], [2, 2]], lhs_dilate = [2, 2], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x3x2xf32>, tensor<4x4x2x3xf32>) -> tensor<1x6x6x3xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [3] : (tensor<3xf32>) -> tensor<1x6x6x3xf32>
  %2 = stablehlo.add %0, %1 : tensor<1x6x6x3xf32>
  %z = stablehlo.constant dense<0.0> : tensor<1x6x6x3xf32>
  %3 = stablehlo.maximum %2, %z : tensor<1x6x6x3xf32>
  return %3 : tensor<1x6x6x3xf32>
}
// -----
module {
  func.func public @main(%x: tensor<1x3x3x2xf32>, %w: tensor<4x4x2x3xf32>, %b: tensor<3xf32>) -> tensor<1x6x6x3xf32> {
    %0 = stablehlo.reshape %w : (tensor<4x4x2x3xf32>) -> tensor<2x2x2x2x2x3xf32>
    %1 = stablehlo.reverse %0, dims = [1, 3] : tensor<2x2x2x2x2x3xf32>
    %2 = stablehlo.transpose %1, dims = [0, 2, 4, 1, 3, 5] : (tensor<2x2x2x2x2x3xf32>) -> tensor<2x2x2x2x2x3xf32>
    %3 = stablehlo.reshape %2 : (tensor<2x2x2x2x2x3xf32>) -> tensor<2x2x2x12xf32>
    %4 = stablehlo.convolution(%x, %3) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x3x2xf32>, tensor<2x2x2x12xf32>) -> tensor<1x4x4x12xf32>
    %5 = stablehlo.reshape %b : (tensor<3xf32>) -> tensor<1x3xf32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0, 2] : (tensor<1x3xf32>) -> tensor<1x4x3xf32>
    %7 = stablehlo.reshape %6 : (tensor<1x4x3xf32>) -> tensor<12xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [3] : (tensor<12xf32>) -> tensor<1x4x4x12xf32>
    %9 = stablehlo.add %4, %8 : tensor<1x4x4x12xf32>
    %10 = stablehlo.constant dense<0.0> : tensor<1x4x4x12xf32>
    %11 = stablehlo.maximum %9, %10 : tensor<1x4x4x12xf32>
    %12 = stablehlo.reshape %11 : (tensor<1x4x4x12xf32>) -> tensor<4x4x1x12xf32>
    %13 = stablehlo.reshape %12 : (tensor<4x4x1x12xf32>) -> tensor<4x4x2x2x3xf32>
    %14 = stablehlo.transpose %13, dims = [0, 2, 1, 3, 4] : (tensor<4x4x2x2x3xf32>) -> tensor<4x2x4x2x3xf32>
    %15 = stablehlo.reshape %14 : (tensor<4x2x4x2x3xf32>) -> tensor<1x8x8x3xf32>
    %16 = stablehlo.slice %15 [0:1, 1:7, 1:7, 0:3] : (tensor<1x8x8x3xf32>) -> tensor<1x6x6x3xf32>
    return %16 : tensor<1x6x6x3xf32>
  }
}
