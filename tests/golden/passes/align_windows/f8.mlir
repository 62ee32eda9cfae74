// Convolutions of 8-bit floats are not made by warpgroups: their images stay as they lie,
// where those of bf16 get a fourth channel.
// RUN: %pestle dump %s --stage fused --target ref --target-cpu simt90 | FileCheck %s
// CHECK-NOT: stablehlo.pad
func.func @main(%x: tensor<8x224x224x3xf8E4M3FN>, %w: tensor<7x7x3x64xf8E4M3FN>) -> tensor<8x109x109x64xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x224x224x3xf8E4M3FN>, tensor<7x7x3x64xf8E4M3FN>) -> tensor<8x109x109x64xf32>
  return %0 : tensor<8x109x109x64xf32>
}
