// A gradient by the weights of a convolution of channels last reads the image as it lies: its
// channels are longer runs than its images. With eight images they are not, and it is turned.
// RUN: %pestle dump %s --stage fused --target ref --target-cpu simt90 | FileCheck %s
// CHECK-LABEL: @main
// CHECK-NOT: transpose
// CHECK: dim_numbers = [f, 0, 1, b]x[0, 1, i, o]->[b, 0, 1, f]
// CHECK: transpose
// CHECK: dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]
func.func @main(%x: tensor<1x28x31x64xbf16>, %g: tensor<28x31x1x352xbf16>, %u: tensor<8x28x31x64xbf16>, %h: tensor<28x31x8x352xbf16>) -> (tensor<64x3x3x352xbf16>, tensor<64x3x3x352xbf16>) {
  %0 = stablehlo.convolution(%x, %g) dim_numbers = [f, 0, 1, b]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[2, 2], [2, 2]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x28x31x64xbf16>, tensor<28x31x1x352xbf16>) -> tensor<64x3x3x352xbf16>
  %1 = stablehlo.convolution(%u, %h) dim_numbers = [f, 0, 1, b]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[2, 2], [2, 2]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x28x31x64xbf16>, tensor<28x31x8x352xbf16>) -> tensor<64x3x3x352xbf16>
  return %0, %1 : tensor<64x3x3x352xbf16>, tensor<64x3x3x352xbf16>
}
