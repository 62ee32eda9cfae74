// A convolution along one dim, whose taps lie 128 elements apart: no padded copy for
// each tile, of which it would read a sixteenth, but tests for the border.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
func.func @main(%x: tensor<1x4000x64xf32>, %w: tensor<3x64x128xf32>) -> tensor<1x4000x128xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[128, 128]], lhs_dilate = [1], rhs_dilate = [128], reverse = [false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4000x64xf32>, tensor<3x64x128xf32>) -> tensor<1x4000x128xf32>
  return %0 : tensor<1x4000x128xf32>
}
