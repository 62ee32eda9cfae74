// A sum in f32 of what is kept in f16 widens what it reads: the convolution does not store
// both.
// RUN: %pestle-opt %s --passes=fuse --round-trip --check | FileCheck %s
// CHECK:     "pestle.fusion"({{.*}}) <{label = "convolution_abs"}> ({
// CHECK-NOT: stablehlo.convert
// CHECK:     "pestle.fusion"({{.*}}) <{label = "reduce"}> ({
// CHECK:       stablehlo.convert {{.*}}f16>) -> {{.*}}f32>
// CHECK:       stablehlo.reduce
// CHECK:     "pestle.fusion"({{.*}}) <{label = "multiply"}> ({
func.func @main(%x: tensor<2x8x8x8xf16>, %w: tensor<3x3x8x16xf16>)
    -> tensor<2x6x6x16xf16> {
  %c = stablehlo.convolution(%x, %w)
      dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64} :
      (tensor<2x8x8x8xf16>, tensor<3x3x8x16xf16>) -> tensor<2x6x6x16xf16>
  %a = stablehlo.abs %c : tensor<2x6x6x16xf16>
  %wide = stablehlo.convert %a : (tensor<2x6x6x16xf16>) -> tensor<2x6x6x16xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%wide init: %zero) applies stablehlo.add
      across dimensions = [1, 2] : (tensor<2x6x6x16xf32>, tensor<f32>) -> tensor<2x16xf32>
  %n = stablehlo.convert %sum : (tensor<2x16xf32>) -> tensor<2x16xf16>
  %b = stablehlo.broadcast_in_dim %n, dims = [0, 3] : (tensor<2x16xf16>) -> tensor<2x6x6x16xf16>
  %y = stablehlo.multiply %a, %b : tensor<2x6x6x16xf16>
  return %y : tensor<2x6x6x16xf16>
}
