// Spellings of attention, and the same results before and after.
// RUN: %pestle-opt %s --passes=canonicalise,recognise,canonicalise --round-trip --check | FileCheck %s
// RUN: %pestle-opt %s --passes=canonicalise,recognise --strict | FileCheck %s --check-prefix=STRICT
// STRICT-NOT:    pestle.attention
// CHECK:         [[B0:%.*]] = stablehlo.reshape %row : (tensor<2x7xf32>) -> tensor<2x1x1x7xf32>
// CHECK:         [[K0:%.*]] = stablehlo.transpose %kt, dims = [0, 1, 3, 2]
// CHECK:         "pestle.attention"(%q, [[K0]], %v, [[B0]]) <{scale = 0.4 : f64}>
// CHECK:         "pestle.attention"(%q, [[K0]], %v, %full) <{scale = 0.375 : f64}>
// CHECK:         "pestle.attention"(%q, %k, %v) <{scale = 0.25 : f64}>
// CHECK:         stablehlo.transpose {{.*}}, dims = [0, 2, 1, 3]
// CHECK:         stablehlo.multiply %full
// CHECK:         [[B3:%.*]] = stablehlo.add
// CHECK:         "pestle.attention"(%q, %k, %v, [[B3]]) <{scale = 0.5 : f64}>
// CHECK:         "pestle.attention"(%m, %m, %m) <{scale = 1.0 : f64}>
// CHECK-NOT:     pestle.softmax
// CHECK-NOT:     stablehlo.dot_general
func.func @main(%q: tensor<2x3x5x8xf32>, %k: tensor<2x3x7x8xf32>, %kt: tensor<2x3x8x7xf32>, %v: tensor<2x3x7x4xf32>, %row: tensor<2x7xf32>, %full: tensor<2x3x5x7xf32>, %m: tensor<5x4xf32>) -> (tensor<2x3x5x4xf32>, tensor<6x5x4xf32>, tensor<2x5x3x4xf32>, tensor<2x3x5x4xf32>, tensor<5x4xf32>) {
  // Quotient, mask of one row a batch, keys given as [.., D, T].
  %1 = stablehlo.dot_general %q, %kt, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x3x5x8xf32>, tensor<2x3x8x7xf32>) -> tensor<2x3x5x7xf32>
  %2 = stablehlo.constant dense<2.5> : tensor<2x3x5x7xf32>
  %3 = stablehlo.divide %1, %2 : tensor<2x3x5x7xf32>
  %4 = stablehlo.broadcast_in_dim %row, dims = [0, 3] : (tensor<2x7xf32>) -> tensor<2x3x5x7xf32>
  %5 = stablehlo.add %3, %4 : tensor<2x3x5x7xf32>
  %6 = "pestle.softmax"(%5) <{dimensions = array<i64: 3>}> : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %7 = stablehlo.dot_general %6, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  // Factors of q and of k, behind views; batches in one dim, but for the bias.
  %8 = stablehlo.constant dense<0.5> : tensor<2x3x5x8xf32>
  %9 = stablehlo.multiply %q, %8 : tensor<2x3x5x8xf32>
  %10 = stablehlo.reshape %9 : (tensor<2x3x5x8xf32>) -> tensor<6x5x8xf32>
  %11 = stablehlo.constant dense<0.75> : tensor<2x3x8x7xf32>
  %12 = stablehlo.multiply %kt, %11 : tensor<2x3x8x7xf32>
  %13 = stablehlo.reshape %12 : (tensor<2x3x8x7xf32>) -> tensor<6x8x7xf32>
  %14 = stablehlo.dot_general %10, %13, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<6x5x8xf32>, tensor<6x8x7xf32>) -> tensor<6x5x7xf32>
  %15 = stablehlo.reshape %14 : (tensor<6x5x7xf32>) -> tensor<2x3x5x7xf32>
  %16 = stablehlo.add %full, %15 : tensor<2x3x5x7xf32>
  %17 = stablehlo.reshape %16 : (tensor<2x3x5x7xf32>) -> tensor<6x5x7xf32>
  %18 = "pestle.softmax"(%17) <{dimensions = array<i64: 2>}> : (tensor<6x5x7xf32>) -> tensor<6x5x7xf32>
  %19 = stablehlo.reshape %v : (tensor<2x3x7x4xf32>) -> tensor<6x7x4xf32>
  %20 = stablehlo.dot_general %18, %19, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<6x5x7xf32>, tensor<6x7x4xf32>) -> tensor<6x5x4xf32>
  // Heads between rows and columns, values first: [b, s, h, d].
  %21 = stablehlo.transpose %q, dims = [0, 2, 1, 3] : (tensor<2x3x5x8xf32>) -> tensor<2x5x3x8xf32>
  %22 = stablehlo.transpose %k, dims = [0, 2, 1, 3] : (tensor<2x3x7x8xf32>) -> tensor<2x7x3x8xf32>
  %23 = stablehlo.transpose %v, dims = [0, 2, 1, 3] : (tensor<2x3x7x4xf32>) -> tensor<2x7x3x4xf32>
  %24 = stablehlo.dot_general %21, %22, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3] : (tensor<2x5x3x8xf32>, tensor<2x7x3x8xf32>) -> tensor<2x3x5x7xf32>
  %25 = stablehlo.constant dense<0.25> : tensor<2x3x5x7xf32>
  %26 = stablehlo.multiply %24, %25 : tensor<2x3x5x7xf32>
  %27 = "pestle.softmax"(%26) <{dimensions = array<i64: 3>}> : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %28 = stablehlo.dot_general %23, %27, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3] : (tensor<2x7x3x4xf32>, tensor<2x3x5x7xf32>) -> tensor<2x3x4x5xf32>
  %29 = stablehlo.transpose %28, dims = [0, 3, 1, 2] : (tensor<2x3x4x5xf32>) -> tensor<2x5x3x4xf32>
  // A factor of scores and bias, and a second bias.
  %30 = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x3x5x8xf32>, tensor<2x3x7x8xf32>) -> tensor<2x3x5x7xf32>
  %31 = stablehlo.add %30, %full : tensor<2x3x5x7xf32>
  %32 = stablehlo.constant dense<0.5> : tensor<2x3x5x7xf32>
  %33 = stablehlo.multiply %31, %32 : tensor<2x3x5x7xf32>
  %34 = stablehlo.broadcast_in_dim %row, dims = [0, 3] : (tensor<2x7xf32>) -> tensor<2x3x5x7xf32>
  %35 = stablehlo.add %33, %34 : tensor<2x3x5x7xf32>
  %36 = "pestle.softmax"(%35) <{dimensions = array<i64: 3>}> : (tensor<2x3x5x7xf32>) -> tensor<2x3x5x7xf32>
  %37 = stablehlo.dot_general %36, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x3x5x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x5x4xf32>
  // Without batch.
  %38 = stablehlo.dot_general %m, %m, contracting_dims = [1] x [1] : (tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<5x5xf32>
  %39 = "pestle.softmax"(%38) <{dimensions = array<i64: 1>}> : (tensor<5x5xf32>) -> tensor<5x5xf32>
  %40 = stablehlo.dot_general %39, %m, contracting_dims = [1] x [0] : (tensor<5x5xf32>, tensor<5x4xf32>) -> tensor<5x4xf32>
  return %7, %20, %29, %37, %40 : tensor<2x3x5x4xf32>, tensor<6x5x4xf32>, tensor<2x5x3x4xf32>, tensor<2x3x5x4xf32>, tensor<5x4xf32>
}
