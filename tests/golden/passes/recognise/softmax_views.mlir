// A softmax whose maximum is folded from one view of its operand and taken from
// another, whose weights are turned before they are divided, or multiplied by the
// inverse; not one of the maximum along the other axis of a square.
// RUN: %pestle-opt %s --passes=recognise,dce --round-trip --check | FileCheck %s
// CHECK:      [[X:%.*]] = stablehlo.transpose %x, dims = [2, 0, 1]
// CHECK-NEXT: [[Y:%.*]] = "pestle.softmax"([[X]]) <{dimensions = array<i64: 2>}>
// CHECK-NEXT: [[Z:%.*]] = stablehlo.reshape [[Y]] : (tensor<3x2x4xf32>) -> tensor<3x2x1x4xf32>
// CHECK-NEXT: [[W:%.*]] = stablehlo.transpose [[Z]], dims = [3, 2, 1, 0]
// CHECK-NOT:  pestle.softmax
// CHECK:      return [[W]]
func.func @main(%x: tensor<2x4x3xf32>, %s: tensor<5x5xf32>) -> (tensor<4x1x2x3xf32>, tensor<5x5xf32>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<2x3xf32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<2x4x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<2x4x3xf32>) -> tensor<3x2x4xf32>
  %2 = stablehlo.broadcast_in_dim %0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2x4xf32>
  %3 = stablehlo.subtract %1, %2 : tensor<3x2x4xf32>
  %4 = stablehlo.exponential %3 : tensor<3x2x4xf32>
  %5 = stablehlo.reshape %4 : (tensor<3x2x4xf32>) -> tensor<3x2x1x4xf32>
  %6 = stablehlo.transpose %5, dims = [3, 2, 1, 0] : (tensor<3x2x1x4xf32>) -> tensor<4x1x2x3xf32>
  %7 = stablehlo.reduce(%6 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x1x2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  %8 = stablehlo.divide %one, %7 : tensor<2x3xf32>
  %9 = stablehlo.broadcast_in_dim %8, dims = [2, 3] : (tensor<2x3xf32>) -> tensor<4x1x2x3xf32>
  %10 = stablehlo.multiply %6, %9 : tensor<4x1x2x3xf32>
  %11 = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [0] : (tensor<5x5xf32>, tensor<f32>) -> tensor<5xf32>
  %12 = stablehlo.broadcast_in_dim %11, dims = [0] : (tensor<5xf32>) -> tensor<5x5xf32>
  %13 = stablehlo.subtract %s, %12 : tensor<5x5xf32>
  %14 = stablehlo.exponential %13 : tensor<5x5xf32>
  %15 = stablehlo.reduce(%14 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<5x5xf32>, tensor<f32>) -> tensor<5xf32>
  %16 = stablehlo.broadcast_in_dim %15, dims = [1] : (tensor<5xf32>) -> tensor<5x5xf32>
  %17 = stablehlo.divide %14, %16 : tensor<5x5xf32>
  return %10, %17 : tensor<4x1x2x3xf32>, tensor<5x5xf32>
}
