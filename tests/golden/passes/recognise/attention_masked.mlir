// A choice between the scores and a constant is the attention's mask, outside of its
// bias: what is hidden may be NaN or infinite.
// RUN: %pestle-opt %s --passes=canonicalise,recognise,canonicalise --round-trip --check | FileCheck %s
// CHECK:      func.func public @main(
// CHECK:      "pestle.attention"(%q, %k, %v, %keep) <{scale = 0.5 : f64, masked = 0xFFF0000000000000 : f64}>
// CHECK:      [[N:%.*]] = stablehlo.reshape %row : (tensor<2x7xi1>) -> tensor<2x1x1x7xi1>
// CHECK:      [[M:%.*]] = stablehlo.not [[N]] : tensor<2x1x1x7xi1>
// CHECK:      "pestle.attention"(%q, %k2, %v, %bias, [[M]]) <{scale = 0.25 : f64, masked = -1000000000.0 : f64}>
// CHECK:      [[B:%.*]] = stablehlo.broadcast_in_dim %row, dims = [0, 3] : (tensor<2x7xi1>) -> tensor<2x3x5x7xi1>
// CHECK:      [[A:%.*]] = stablehlo.and [[B]], %keep : tensor<2x3x5x7xi1>
// CHECK:      "pestle.attention"(%q, %k3, %v, [[A]]) <{scale = 2.0 : f64, masked = -20.0 : f64}>
// CHECK-NOT:  stablehlo.select
func.func @main(%q: tensor<2x3x5x8xf32>, %k: tensor<2x3x7x8xf32>, %k2: tensor<2x3x7x8xf32>, %k3: tensor<2x3x7x8xf32>, %v: tensor<2x3x7x4xf32>, %keep: tensor<2x3x5x7xi1>, %row: tensor<2x7xi1>, %bias: tensor<2x3x5x7xf32>) -> (tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>) {
  %half = stablehlo.constant dense<0.5> : tensor<2x3x5x7xf32>
  %1 = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x3x5x8xf32>, tensor<2x3x7x8xf32>) -> tensor<2x3x5x7xf32>
  %2 = stablehlo.multiply %1, %half : tensor<2x3x5x7xf32>
  %ninf = stablehlo.constant dense<0xFF800000> : tensor<2x3x5x7xf32>
  %3 = stablehlo.select %keep, %2, %ninf : tensor<2x3x5x7xi1>, tensor<2x3x5x7xf32>
  %4 = "pestle.softmax"(%3) <{dimensions = array<i64: 3>}> : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %5 = stablehlo.dot_general %4, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  // A row that says what does not count, and a bias below it.
  %quarter = stablehlo.constant dense<0.25> : tensor<2x3x5x7xf32>
  %low = stablehlo.constant dense<-1.0e9> : tensor<2x3x5x7xf32>
  %6 = stablehlo.dot_general %q, %k2, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x3x5x8xf32>, tensor<2x3x7x8xf32>) -> tensor<2x3x5x7xf32>
  %7 = stablehlo.multiply %6, %quarter : tensor<2x3x5x7xf32>
  %8 = stablehlo.add %7, %bias : tensor<2x3x5x7xf32>
  %9 = stablehlo.broadcast_in_dim %row, dims = [0, 3] : (tensor<2x7xi1>) -> tensor<2x3x5x7xi1>
  %10 = stablehlo.select %9, %low, %8 : tensor<2x3x5x7xi1>, tensor<2x3x5x7xf32>
  %11 = "pestle.softmax"(%10) <{dimensions = array<i64: 3>}> : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %12 = stablehlo.dot_general %11, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  // Two masks of one constant, which a factor makes one.
  %two = stablehlo.constant dense<2.0> : tensor<2x3x5x7xf32>
  %ten = stablehlo.constant dense<-10.0> : tensor<2x3x5x7xf32>
  %twenty = stablehlo.constant dense<-20.0> : tensor<2x3x5x7xf32>
  %13 = stablehlo.dot_general %q, %k3, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x3x5x8xf32>, tensor<2x3x7x8xf32>) -> tensor<2x3x5x7xf32>
  %14 = stablehlo.select %keep, %13, %ten : tensor<2x3x5x7xi1>, tensor<2x3x5x7xf32>
  %15 = stablehlo.multiply %14, %two : tensor<2x3x5x7xf32>
  %16 = stablehlo.select %9, %15, %twenty : tensor<2x3x5x7xi1>, tensor<2x3x5x7xf32>
  %17 = "pestle.softmax"(%16) <{dimensions = array<i64: 3>}> : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %18 = stablehlo.dot_general %17, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  return %5, %12, %18 : tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>
}
