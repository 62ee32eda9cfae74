// A convolution that meets no other stays as it lies where lanes find enough to do
// along its planes; one whose result another convolution reads does not.
// RUN: %pestle-opt %s --passes=channels_last --round-trip | FileCheck %s
// CHECK-LABEL: @main
// CHECK-NOT: transpose
// CHECK: stablehlo.convolution({{.*}}) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]
// CHECK: stablehlo.maximum
// CHECK: return
func.func @main(%x: tensor<1x3x12x20xf32>, %w: tensor<3x1x3x3xf32>, %z: tensor<1x3x12x20xf32>) -> tensor<1x3x12x20xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 3 : i64} : (tensor<1x3x12x20xf32>, tensor<3x1x3x3xf32>) -> tensor<1x3x12x20xf32>
  %1 = stablehlo.maximum %0, %z : tensor<1x3x12x20xf32>
  return %1 : tensor<1x3x12x20xf32>
}
