// The first layer of a network for images: lines have their padding and a fourth
// channel, and an end so that they begin at whole runs of 16 bytes, where a target
// multiplies windows by warpgroups. Few windows stay as they are.
// RUN: %pestle dump %s --stage fused --target ref --target-cpu simt90 | FileCheck %s
// RUN: %pestle dump %s --stage fused --target ref --target-cpu simt | FileCheck %s --check-prefix=PLAIN
// CHECK: stablehlo.pad {{.*}}low = [0, 0, 3, 0], high = [0, 0, 4, 1]{{.*}} -> tensor<8x224x230x4xf16>
// CHECK: stablehlo.pad {{.*}}low = [0, 0, 0, 0], high = [0, 0, 1, 0]{{.*}} -> tensor<7x7x4x64xf16>
// CHECK: stablehlo.convolution{{.*}}pad = {{\[}}[3, 3], [0, -1]]{{.*}} -> tensor<8x112x112x64xf16>
// CHECK-NOT: stablehlo.pad
// CHECK: stablehlo.convolution{{.*}} -> tensor<1x16x16x64xf16>
// PLAIN-NOT: stablehlo.pad
func.func @main(%x: tensor<8x224x223x3xf16>, %s: tensor<1x32x32x3xf16>, %w: tensor<7x7x3x64xf16>) -> (tensor<8x112x112x64xf16>, tensor<1x16x16x64xf16>) {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[3, 3], [3, 3]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x224x223x3xf16>, tensor<7x7x3x64xf16>) -> tensor<8x112x112x64xf16>
  %1 = stablehlo.convolution(%s, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[3, 3], [3, 3]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x32x32x3xf16>, tensor<7x7x3x64xf16>) -> tensor<1x16x16x64xf16>
  return %0, %1 : tensor<8x112x112x64xf16>, tensor<1x16x16x64xf16>
}
