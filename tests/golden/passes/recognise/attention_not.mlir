// What looks like attention and is none; the softmax of each is one.
// RUN: %pestle-opt %s --passes=canonicalise,recognise --round-trip --check | FileCheck %s
// RUN: %pestle-opt %s --passes=canonicalise,recognise | FileCheck %s --check-prefix=SOFTMAX
// CHECK-NOT: pestle.attention
// SOFTMAX-COUNT-6: pestle.softmax
// SOFTMAX-NOT: pestle.softmax
func.func @main(%q: tensor<2x3x5x8xf32>, %k1: tensor<2x3x7x8xf32>, %k2: tensor<2x3x7x8xf32>, %k3: tensor<2x3x7x8xf32>, %k4: tensor<2x3x7x8xf32>, %k5: tensor<2x3x7x8xf32>, %k6: tensor<2x3x7x8xf32>, %v: tensor<2x3x7x4xf32>, %own: tensor<2x3x5x7x4xf32>, %b: tensor<2x3x5x7xf32>, %c: tensor<2x3x5x7xi1>, %d: tensor<2x3x5x7xi1>, %x: tensor<5x8xf32>, %y: tensor<5x8xf32>) -> (tensor<2x3x5x4xf32>, tensor<2x3x5x7xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x7xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>, tensor<5x8xf32>) {
  // Scores that are a result.
  %1 = stablehlo.dot_general %q, %k1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x3x5x8xf32>, tensor<2x3x7x8xf32>) -> tensor<2x3x5x7xf32>
  %2 = "pestle.softmax"(%1) <{dimensions = array<i64: 3>}> : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %3 = stablehlo.dot_general %2, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  // Weights that are a result.
  %4 = stablehlo.dot_general %q, %k2, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x3x5x8xf32>, tensor<2x3x7x8xf32>) -> tensor<2x3x5x7xf32>
  %5 = "pestle.softmax"(%4) <{dimensions = array<i64: 3>}> : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %6 = stablehlo.dot_general %5, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  // A maximum along the rows.
  %7 = stablehlo.dot_general %q, %k3, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x3x5x8xf32>, tensor<2x3x7x8xf32>) -> tensor<2x3x5x7xf32>
  %8 = "pestle.softmax"(%7) <{dimensions = array<i64: 2>}> : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %9 = stablehlo.dot_general %8, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  // A bias outside of the mask: what is hidden would differ.
  %10 = stablehlo.dot_general %q, %k4, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x3x5x8xf32>, tensor<2x3x7x8xf32>) -> tensor<2x3x5x7xf32>
  %11 = stablehlo.constant dense<0xFF800000> : tensor<2x3x5x7xf32>
  %12 = stablehlo.select %c, %10, %11 : tensor<2x3x5x7xi1>, tensor<2x3x5x7xf32>
  %13 = stablehlo.add %12, %b : tensor<2x3x5x7xf32>
  %14 = "pestle.softmax"(%13) <{dimensions = array<i64: 3>}> : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %15 = stablehlo.dot_general %14, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  // Masks of two constants.
  %16 = stablehlo.dot_general %q, %k5, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x3x5x8xf32>, tensor<2x3x7x8xf32>) -> tensor<2x3x5x7xf32>
  %17 = stablehlo.select %c, %16, %11 : tensor<2x3x5x7xi1>, tensor<2x3x5x7xf32>
  %18 = stablehlo.constant dense<-1.0e9> : tensor<2x3x5x7xf32>
  %19 = stablehlo.select %d, %17, %18 : tensor<2x3x5x7xi1>, tensor<2x3x5x7xf32>
  %20 = "pestle.softmax"(%19) <{dimensions = array<i64: 3>}> : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %21 = stablehlo.dot_general %20, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  // Values of each row's own.
  %22 = stablehlo.dot_general %q, %k6, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x3x5x8xf32>, tensor<2x3x7x8xf32>) -> tensor<2x3x5x7xf32>
  %23 = "pestle.softmax"(%22) <{dimensions = array<i64: 3>}> : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %24 = stablehlo.dot_general %23, %own, batching_dims = [0, 1, 2] x [0, 1, 2], contracting_dims = [3] x [3] : (tensor<2x3x5x7xf32>, tensor<2x3x5x7x4xf32>) -> tensor<2x3x5x4xf32>
  // Of a square the maximum of the other axis.
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %ninf = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %25 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1] : (tensor<5x8xf32>, tensor<5x8xf32>) -> tensor<5x5xf32>
  %26 = stablehlo.reduce(%25 init: %ninf) applies stablehlo.maximum across dimensions = [1] : (tensor<5x5xf32>, tensor<f32>) -> tensor<5xf32>
  %27 = stablehlo.broadcast_in_dim %26, dims = [0] : (tensor<5xf32>) -> tensor<5x5xf32>
  %28 = stablehlo.transpose %25, dims = [1, 0] : (tensor<5x5xf32>) -> tensor<5x5xf32>
  %29 = stablehlo.subtract %28, %27 : tensor<5x5xf32>
  %30 = stablehlo.exponential %29 : tensor<5x5xf32>
  %31 = stablehlo.reduce(%30 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<5x5xf32>, tensor<f32>) -> tensor<5xf32>
  %32 = stablehlo.broadcast_in_dim %31, dims = [0] : (tensor<5xf32>) -> tensor<5x5xf32>
  %33 = stablehlo.divide %30, %32 : tensor<5x5xf32>
  %34 = stablehlo.dot_general %33, %y, contracting_dims = [1] x [0] : (tensor<5x5xf32>, tensor<5x8xf32>) -> tensor<5x8xf32>
  return %3, %1, %6, %5, %9, %15, %21, %24, %34 : tensor<2x3x5x4xf32>, tensor<2x3x5x7xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x7xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>, tensor<5x8xf32>
}
