// Attention with the views around it is one kernel; what a bias that is
// repeated is made of stays outside, a bias with one element a score inside.
// RUN: %pestle-opt %s --passes=fuse --round-trip --check | FileCheck %s
// CHECK:     [[ROW:%.*]] = "pestle.fusion"(%row) <{label = "multiply"}>
// CHECK-NOT: "pestle.fusion"
// CHECK:     "pestle.fusion"(%q, %k, %v, [[ROW]]) <{label = "attention_transpose"}> ({
// CHECK:       stablehlo.transpose
// CHECK:       stablehlo.transpose
// CHECK:       stablehlo.dot_general
// CHECK:       stablehlo.reduce{{.*}}stablehlo.maximum
// CHECK:       stablehlo.exponential
// CHECK:       stablehlo.reduce{{.*}}stablehlo.add
// CHECK:       stablehlo.dot_general
// CHECK:       stablehlo.divide
// CHECK:       stablehlo.transpose
// CHECK:     "pestle.fusion"({{.*}}) <{label = "attention_select_add"}> ({
// CHECK:       stablehlo.select
// CHECK:     return
func.func @main(%q: tensor<1x5x2x8xf32>, %k: tensor<1x7x2x8xf32>, %v: tensor<1x7x2x4xf32>, %row: tensor<1x1x1x7xf32>, %q2: tensor<1x2x5x8xf32>, %k2: tensor<1x2x7x8xf32>, %v2: tensor<1x2x7x4xf32>, %keep: tensor<1x2x5x7xi1>) -> (tensor<1x5x2x4xf32>, tensor<1x2x5x4xf32>) {
  %0 = stablehlo.transpose %q, dims = [0, 2, 1, 3] : (tensor<1x5x2x8xf32>) -> tensor<1x2x5x8xf32>
  %1 = stablehlo.transpose %k, dims = [0, 2, 1, 3] : (tensor<1x7x2x8xf32>) -> tensor<1x2x7x8xf32>
  %2 = stablehlo.transpose %v, dims = [0, 2, 1, 3] : (tensor<1x7x2x4xf32>) -> tensor<1x2x7x4xf32>
  %3 = stablehlo.constant dense<-100.0> : tensor<1x1x1x7xf32>
  %4 = stablehlo.multiply %row, %3 : tensor<1x1x1x7xf32>
  %5 = "pestle.attention"(%0, %1, %2, %4) <{scale = 0.5 : f64}> : (tensor<1x2x5x8xf32>, tensor<1x2x7x8xf32>, tensor<1x2x7x4xf32>, tensor<1x1x1x7xf32>) -> tensor<1x2x5x4xf32>
  %6 = stablehlo.transpose %5, dims = [0, 2, 1, 3] : (tensor<1x2x5x4xf32>) -> tensor<1x5x2x4xf32>
  %7 = stablehlo.constant dense<0.0> : tensor<1x2x5x7xf32>
  %8 = stablehlo.constant dense<0xFF800000> : tensor<1x2x5x7xf32>
  %9 = stablehlo.select %keep, %7, %8 : tensor<1x2x5x7xi1>, tensor<1x2x5x7xf32>
  %10 = stablehlo.reshape %6 : (tensor<1x5x2x4xf32>) -> tensor<1x2x5x4xf32>
  %11 = "pestle.attention"(%q2, %k2, %v2, %9) <{scale = 0.5 : f64}> : (tensor<1x2x5x8xf32>, tensor<1x2x7x8xf32>, tensor<1x2x7x4xf32>, tensor<1x2x5x7xf32>) -> tensor<1x2x5x4xf32>
  %12 = stablehlo.add %11, %10 : tensor<1x2x5x4xf32>
  return %6, %12 : tensor<1x5x2x4xf32>, tensor<1x2x5x4xf32>
}
