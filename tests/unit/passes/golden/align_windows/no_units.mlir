// Without matrix units that want windows of runs, images stay as they are; with them:
// tests/golden/passes/align_windows.
func.func @main(%x: tensor<8x224x224x3xf16>, %w: tensor<7x7x3x64xf16>) -> tensor<8x112x112x64xf16> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[3, 3], [3, 3]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x224x224x3xf16>, tensor<7x7x3x64xf16>) -> tensor<8x112x112x64xf16>
  return %0 : tensor<8x112x112x64xf16>
}
// -----
module {
  func.func public @main(%x: tensor<8x224x224x3xf16>, %w: tensor<7x7x3x64xf16>) -> tensor<8x112x112x64xf16> {
    %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[3, 3], [3, 3]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x224x224x3xf16>, tensor<7x7x3x64xf16>) -> tensor<8x112x112x64xf16>
    return %0 : tensor<8x112x112x64xf16>
  }
}
