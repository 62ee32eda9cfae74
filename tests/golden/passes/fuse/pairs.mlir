// A depthwise convolution joins the pointwise one that reads it where half of the L2
// (the interpreter's: 1 MiB) does not hold what passes between them, and nobody else
// reads that.
// RUN: %pestle-opt %s --passes=fuse --round-trip --check | FileCheck %s
// CHECK:     "pestle.fusion"({{.*}}) <{label = "convolution_convolution_maximum_add"}> ({
// CHECK:       stablehlo.convolution
// CHECK:       stablehlo.maximum
// CHECK:       stablehlo.convolution
// CHECK:       stablehlo.add
// CHECK:     "pestle.fusion"({{.*}}) <{label = "convolution_maximum"}>
// CHECK:     "pestle.fusion"({{.*}}) <{label = "convolution"}>
// CHECK:     "pestle.fusion"({{.*}}) <{label = "convolution_maximum"}>
// CHECK:     "pestle.fusion"({{.*}}) <{label = "convolution"}>
// CHECK:     return
func.func @main(%x: tensor<1x112x112x48xf32>, %small: tensor<1x14x14x48xf32>, %w: tensor<3x3x1x48xf32>, %v: tensor<1x1x48x24xf32>, %z: tensor<1x112x112x24xf32>, %x2: tensor<1x112x112x48xf32>) -> (tensor<1x112x112x24xf32>, tensor<1x14x14x24xf32>, tensor<1x112x112x48xf32>, tensor<1x112x112x24xf32>) {
  %d0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 48 : i64} : (tensor<1x112x112x48xf32>, tensor<3x3x1x48xf32>) -> tensor<1x112x112x48xf32>
  %c0 = stablehlo.constant dense<0.0> : tensor<1x112x112x48xf32>
  %r0 = stablehlo.maximum %d0, %c0 : tensor<1x112x112x48xf32>
  %p0 = stablehlo.convolution(%r0, %v) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x112x112x48xf32>, tensor<1x1x48x24xf32>) -> tensor<1x112x112x24xf32>
  %y0 = stablehlo.add %p0, %z : tensor<1x112x112x24xf32>
  %d1 = stablehlo.convolution(%small, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 48 : i64} : (tensor<1x14x14x48xf32>, tensor<3x3x1x48xf32>) -> tensor<1x14x14x48xf32>
  %c1 = stablehlo.constant dense<0.0> : tensor<1x14x14x48xf32>
  %r1 = stablehlo.maximum %d1, %c1 : tensor<1x14x14x48xf32>
  %p1 = stablehlo.convolution(%r1, %v) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x14x14x48xf32>, tensor<1x1x48x24xf32>) -> tensor<1x14x14x24xf32>
  %d2 = stablehlo.convolution(%x2, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 48 : i64} : (tensor<1x112x112x48xf32>, tensor<3x3x1x48xf32>) -> tensor<1x112x112x48xf32>
  %c2 = stablehlo.constant dense<0.0> : tensor<1x112x112x48xf32>
  %r2 = stablehlo.maximum %d2, %c2 : tensor<1x112x112x48xf32>
  %p2 = stablehlo.convolution(%r2, %v) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x112x112x48xf32>, tensor<1x1x48x24xf32>) -> tensor<1x112x112x24xf32>
  return %y0, %p1, %r2, %p2 : tensor<1x112x112x24xf32>, tensor<1x14x14x24xf32>, tensor<1x112x112x48xf32>, tensor<1x112x112x24xf32>
}
