// Three taps in steps of two: one phase has two of them, the other one. What reads
// the result a second time keeps the sum behind the phases.
func.func @main(%x: tensor<1x3x2xf32>, %w: tensor<3x2x2xf32>, %t: tensor<1x6x2xf32>) -> tensor<1x6x2xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[1, 2]], lhs_dilate = [2], rhs_dilate = [1], reverse = [false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x2xf32>, tensor<3x2x2xf32>) -> tensor<1x6x2xf32>
  %1 = stablehlo.add %0, %t : tensor<1x6x2xf32>
  return %1 : tensor<1x6x2xf32>
}
// -----
module {
  func.func public @main(%x: tensor<1x3x2xf32>, %w: tensor<3x2x2xf32>, %t: tensor<1x6x2xf32>) -> tensor<1x6x2xf32> {
    %0 = stablehlo.slice %w [1:3:2, 0:2, 0:2] : (tensor<3x2x2xf32>) -> tensor<1x2x2xf32>
    %1 = stablehlo.convolution(%x, %0) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[0, 0]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x2xf32>, tensor<1x2x2xf32>) -> tensor<1x3x2xf32>
    %2 = stablehlo.slice %w [0:3:2, 0:2, 0:2] : (tensor<3x2x2xf32>) -> tensor<2x2x2xf32>
    %3 = stablehlo.convolution(%x, %2) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[0, 1]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x2xf32>, tensor<2x2x2xf32>) -> tensor<1x3x2xf32>
    %4 = stablehlo.reshape %1 : (tensor<1x3x2xf32>) -> tensor<3x1x2xf32>
    %5 = stablehlo.reshape %3 : (tensor<1x3x2xf32>) -> tensor<3x1x2xf32>
    %6 = stablehlo.concatenate %4, %5, dim = 1 : (tensor<3x1x2xf32>, tensor<3x1x2xf32>) -> tensor<3x2x2xf32>
    %7 = stablehlo.reshape %6 : (tensor<3x2x2xf32>) -> tensor<1x6x2xf32>
    %8 = stablehlo.add %7, %t : tensor<1x6x2xf32>
    return %8 : tensor<1x6x2xf32>
  }
}
