// Views between the scores and their softmax: axes of one element come, go and move,
// the maximum is of another view than what it is subtracted from, and what is left is
// one attention.
// RUN: %pestle-opt %s --passes=canonicalise,recognise,canonicalise --round-trip --check | FileCheck %s
// RUN: %pestle-opt %s --passes=canonicalise,recognise --strict | FileCheck %s --check-prefix=STRICT
// STRICT-NOT: pestle.attention
// CHECK:      func.func public @main(
// CHECK-DAG:  [[Q:%.*]] = stablehlo.transpose %q, dims = [0, 2, 1, 3] : (tensor<2x5x3x8xf32>) -> tensor<2x3x5x8xf32>
// CHECK-DAG:  [[K:%.*]] = stablehlo.transpose %k, dims = [0, 2, 1, 3] : (tensor<2x7x3x8xf32>) -> tensor<2x3x7x8xf32>
// CHECK-DAG:  [[V:%.*]] = stablehlo.transpose %v, dims = [0, 2, 1, 3] : (tensor<2x7x3x4xf32>) -> tensor<2x3x7x4xf32>
// CHECK:      [[Y:%.*]] = "pestle.attention"([[Q]], [[K]], [[V]]) <{scale = 0.5 : f64}>
// CHECK-NEXT: [[T:%.*]] = stablehlo.transpose [[Y]], dims = [0, 2, 1, 3] : (tensor<2x3x5x4xf32>) -> tensor<2x5x3x4xf32>
// CHECK-NEXT: [[Z:%.*]] = "pestle.attention"(%a, %b, %c) <{scale = 1.0 : f64}>
// CHECK-NEXT: [[B:%.*]] = stablehlo.reshape %plane : (tensor<2x3x2x7xf32>) -> tensor<2x6x7xf32>
// CHECK-NEXT: [[P:%.*]] = "pestle.attention"(%d, %e, %f, [[B]]) <{scale = 1.0 : f64}>
// CHECK-NEXT: return [[T]], [[Z]], [[P]]
func.func @main(%q: tensor<2x5x3x8xf32>, %k: tensor<2x7x3x8xf32>, %v: tensor<2x7x3x4xf32>, %a: tensor<5x8xf32>, %b: tensor<7x8xf32>, %c: tensor<7x4xf32>, %d: tensor<2x6x8xf32>, %e: tensor<2x7x8xf32>, %f: tensor<2x7x4xf32>, %plane: tensor<2x3x2x7xf32>) -> (tensor<2x5x3x4xf32>, tensor<5x4xf32>, tensor<2x6x4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %ninf = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %1 = stablehlo.reshape %q : (tensor<2x5x3x8xf32>) -> tensor<2x5x3x1x8xf32>
  %2 = stablehlo.dot_general %1, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3] : (tensor<2x5x3x1x8xf32>, tensor<2x7x3x8xf32>) -> tensor<2x3x5x1x7xf32>
  %half = stablehlo.constant dense<0.5> : tensor<2x3x5x1x7xf32>
  %3 = stablehlo.multiply %2, %half : tensor<2x3x5x1x7xf32>
  %4 = stablehlo.reduce(%3 init: %ninf) applies stablehlo.maximum across dimensions = [4] : (tensor<2x3x5x1x7xf32>, tensor<f32>) -> tensor<2x3x5x1xf32>
  %5 = stablehlo.transpose %4, dims = [3, 0, 1, 2] : (tensor<2x3x5x1xf32>) -> tensor<1x2x3x5xf32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1, 2, 3] : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5x7xf32>
  %7 = stablehlo.transpose %3, dims = [3, 0, 1, 2, 4] : (tensor<2x3x5x1x7xf32>) -> tensor<1x2x3x5x7xf32>
  %8 = stablehlo.subtract %7, %6 : tensor<1x2x3x5x7xf32>
  %9 = stablehlo.exponential %8 : tensor<1x2x3x5x7xf32>
  %10 = stablehlo.reduce(%9 init: %zero) applies stablehlo.add across dimensions = [4] : (tensor<1x2x3x5x7xf32>, tensor<f32>) -> tensor<1x2x3x5xf32>
  %11 = stablehlo.broadcast_in_dim %10, dims = [0, 1, 2, 3] : (tensor<1x2x3x5xf32>) -> tensor<1x2x3x5x7xf32>
  %12 = stablehlo.divide %9, %11 : tensor<1x2x3x5x7xf32>
  %13 = stablehlo.dot_general %v, %12, batching_dims = [0, 2] x [1, 2], contracting_dims = [1] x [4] : (tensor<2x7x3x4xf32>, tensor<1x2x3x5x7xf32>) -> tensor<2x3x4x1x5xf32>
  %14 = stablehlo.transpose %13, dims = [3, 0, 4, 1, 2] : (tensor<2x3x4x1x5xf32>) -> tensor<1x2x5x3x4xf32>
  %15 = stablehlo.reshape %14 : (tensor<1x2x5x3x4xf32>) -> tensor<2x5x3x4xf32>
  // Keys first.
  %20 = stablehlo.dot_general %b, %a, contracting_dims = [1] x [1] : (tensor<7x8xf32>, tensor<5x8xf32>) -> tensor<7x5xf32>
  %21 = stablehlo.reduce(%20 init: %ninf) applies stablehlo.maximum across dimensions = [0] : (tensor<7x5xf32>, tensor<f32>) -> tensor<5xf32>
  %22 = stablehlo.broadcast_in_dim %21, dims = [1] : (tensor<5xf32>) -> tensor<7x5xf32>
  %23 = stablehlo.subtract %20, %22 : tensor<7x5xf32>
  %24 = stablehlo.exponential %23 : tensor<7x5xf32>
  %26 = stablehlo.reduce(%24 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<7x5xf32>, tensor<f32>) -> tensor<5xf32>
  %28 = stablehlo.broadcast_in_dim %26, dims = [1] : (tensor<5xf32>) -> tensor<7x5xf32>
  %29 = stablehlo.divide %24, %28 : tensor<7x5xf32>
  %30 = stablehlo.dot_general %29, %c, contracting_dims = [0] x [0] : (tensor<7x5xf32>, tensor<7x4xf32>) -> tensor<5x4xf32>
  // A bias for which the rows are a plane: they stay one axis.
  %31 = stablehlo.dot_general %d, %e, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x6x8xf32>, tensor<2x7x8xf32>) -> tensor<2x6x7xf32>
  %32 = stablehlo.reshape %31 : (tensor<2x6x7xf32>) -> tensor<2x3x2x7xf32>
  %33 = stablehlo.add %32, %plane : tensor<2x3x2x7xf32>
  %34 = "pestle.softmax"(%33) <{dimensions = array<i64: 3>}> : (tensor<2x3x2x7xf32>) -> tensor<2x3x2x7xf32>
  %35 = stablehlo.reshape %34 : (tensor<2x3x2x7xf32>) -> tensor<2x6x7xf32>
  %36 = stablehlo.dot_general %35, %f, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x6x7xf32>, tensor<2x7x4xf32>) -> tensor<2x6x4xf32>
  return %15, %30, %36 : tensor<2x5x3x4xf32>, tensor<5x4xf32>, tensor<2x6x4xf32>
}
