// Weights that lie along their inputs or outputs are read where they lie, where a target
// multiplies windows by warpgroups; those that lie along a window are turned.
// RUN: %pestle dump %s --stage fused --target ref --target-cpu simt90 | FileCheck %s
// RUN: %pestle dump %s --stage fused --target ref --target-cpu simt | FileCheck %s --check-prefix=PLAIN
// CHECK-NOT: stablehlo.transpose
// CHECK: stablehlo.convolution({{.*}}x[o, 0, 1, i]->{{.*}}tensor<64x3x3x64xf16>) -> tensor<2x14x14x64xf16>
// CHECK: stablehlo.transpose {{.*}} -> tensor<3x3x64x64xf16>
// CHECK: stablehlo.convolution({{.*}}x[0, 1, i, o]->{{.*}}tensor<3x3x64x64xf16>) -> tensor<2x14x14x64xf16>
// CHECK: stablehlo.convolution({{.*}}x[0, 1, o, i]->{{.*}}tensor<3x3x128x64xf16>) -> tensor<2x14x14x128xf16>
// CHECK-NOT: stablehlo.transpose
// PLAIN: stablehlo.transpose {{.*}} -> tensor<3x3x64x128xf16>
func.func @main(%x: tensor<2x14x14x64xf16>, %w: tensor<3x3x128x64xf16>, %v: tensor<64x3x3x64xf16>, %u: tensor<64x64x3x3xf16>) -> (tensor<2x14x14x128xf16>, tensor<2x14x14x64xf16>, tensor<2x14x14x64xf16>) {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]], reverse = [true, true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x14x14x64xf16>, tensor<3x3x128x64xf16>) -> tensor<2x14x14x128xf16>
  %1 = stablehlo.convolution(%x, %v) dim_numbers = [b, 0, 1, f]x[o, 0, 1, i]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x14x14x64xf16>, tensor<64x3x3x64xf16>) -> tensor<2x14x14x64xf16>
  %2 = stablehlo.convolution(%x, %u) dim_numbers = [b, 0, 1, f]x[o, i, 0, 1]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x14x14x64xf16>, tensor<64x64x3x3xf16>) -> tensor<2x14x14x64xf16>
  return %0, %1, %2 : tensor<2x14x14x128xf16>, tensor<2x14x14x64xf16>, tensor<2x14x14x64xf16>
}
