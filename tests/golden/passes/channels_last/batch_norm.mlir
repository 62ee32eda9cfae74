// RUN: %pestle-opt %s --passes=channels_last --round-trip | FileCheck %s
// CHECK: "stablehlo.batch_norm_inference"({{.*}}feature_index = 3
// CHECK-NEXT: stablehlo.transpose
func.func @main(%x: tensor<2x6x5x3xf32>, %w: tensor<4x6x1x1xf32>, %p: tensor<4xf32>) -> tensor<2x4x5x3xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x6x5x3xf32>, tensor<4x6x1x1xf32>) -> tensor<2x4x5x3xf32>
  %1 = stablehlo.abs %p : tensor<4xf32>
  %2 = "stablehlo.batch_norm_inference"(%0, %p, %p, %p, %1) <{epsilon = 0.125 : f32, feature_index = 1 : i64}> : (tensor<2x4x5x3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x5x3xf32>
  return %2 : tensor<2x4x5x3xf32>
}
