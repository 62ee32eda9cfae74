// Whatever else reads a large depthwise convolution alone does not join it, nor does a
// pointwise one of few columns, of large weights, or with a function behind it.
// RUN: %pestle-opt %s --passes=fuse --round-trip --check | FileCheck %s
// CHECK-NOT: label = "convolution_{{.*}}convolution
// CHECK: return
func.func @main(%x: tensor<1x112x112x48xf32>, %w: tensor<3x3x1x48xf32>, %v: tensor<1x1x48x1xf32>, %u: tensor<1x1x48x24xf32>, %p: tensor<1x32x32x512xf32>, %q: tensor<3x3x1x512xf32>, %r: tensor<1x1x512x512xf32>) -> (tensor<1x112x112x48xf32>, tensor<48x112x112x1xf32>, tensor<1x112x112x1xf32>, tensor<1x112x112x24xf32>, tensor<1x32x32x512xf32>) {
  %d0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 48 : i64} : (tensor<1x112x112x48xf32>, tensor<3x3x1x48xf32>) -> tensor<1x112x112x48xf32>
  %d1 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 48 : i64} : (tensor<1x112x112x48xf32>, tensor<3x3x1x48xf32>) -> tensor<1x112x112x48xf32>
  %d2 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 48 : i64} : (tensor<1x112x112x48xf32>, tensor<3x3x1x48xf32>) -> tensor<1x112x112x48xf32>
  %d3 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 48 : i64} : (tensor<1x112x112x48xf32>, tensor<3x3x1x48xf32>) -> tensor<1x112x112x48xf32>
  %t = stablehlo.transpose %d1, dims = [3, 1, 2, 0] : (tensor<1x112x112x48xf32>) -> tensor<48x112x112x1xf32>
  %n2 = stablehlo.negate %d2 : tensor<1x112x112x48xf32>
  %few = stablehlo.convolution(%n2, %v) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x112x112x48xf32>, tensor<1x1x48x1xf32>) -> tensor<1x112x112x1xf32>
  %n3 = stablehlo.negate %d3 : tensor<1x112x112x48xf32>
  %s = stablehlo.convolution(%n3, %u) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x112x112x48xf32>, tensor<1x1x48x24xf32>) -> tensor<1x112x112x24xf32>
  %sine = stablehlo.sine %s : tensor<1x112x112x24xf32>
  %d4 = stablehlo.convolution(%p, %q) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 512 : i64} : (tensor<1x32x32x512xf32>, tensor<3x3x1x512xf32>) -> tensor<1x32x32x512xf32>
  %n4 = stablehlo.negate %d4 : tensor<1x32x32x512xf32>
  %large = stablehlo.convolution(%n4, %r) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x32x32x512xf32>, tensor<1x1x512x512xf32>) -> tensor<1x32x32x512xf32>
  return %d0, %t, %few, %sine, %large : tensor<1x112x112x48xf32>, tensor<48x112x112x1xf32>, tensor<1x112x112x1xf32>, tensor<1x112x112x24xf32>, tensor<1x32x32x512xf32>
}
