// Heads of queries that share one of keys: the group is a batch axis of the
// attention, along which keys and values repeat, or its rows where there are more
// heads than queries. Keys that a module repeats itself are known again.
// RUN: %pestle-opt %s --passes=canonicalise,recognise,canonicalise --round-trip --check | FileCheck %s
// CHECK:      func.func public @main(
// CHECK:      [[Q:%.*]] = stablehlo.transpose %q, dims = [0, 2, 3, 1, 4] : (tensor<2x5x2x3x8xf32>) -> tensor<2x2x3x5x8xf32>
// CHECK:      [[K0:%.*]] = stablehlo.transpose %k, dims = [0, 2, 1, 3]
// CHECK:      [[K:%.*]] = stablehlo.broadcast_in_dim [[K0]], dims = [0, 1, 3, 4] : (tensor<2x2x7x8xf32>) -> tensor<2x2x3x7x8xf32>
// CHECK:      [[V0:%.*]] = stablehlo.transpose %v, dims = [0, 2, 1, 3]
// CHECK:      [[V:%.*]] = stablehlo.broadcast_in_dim [[V0]], dims = [0, 1, 3, 4] : (tensor<2x2x7x4xf32>) -> tensor<2x2x3x7x4xf32>
// CHECK:      "pestle.attention"([[Q]], [[K]], [[V]]) <{scale = 1.0 : f64}>
// CHECK:      [[Q1:%.*]] = stablehlo.transpose %one, dims = [0, 2, 1, 3] : (tensor<2x2x2x8xf32>) -> tensor<2x2x2x8xf32>
// CHECK:      "pestle.attention"([[Q1]], [[K0]], [[V0]]) <{scale = 1.0 : f64}>
// CHECK:      [[Q2:%.*]] = stablehlo.reshape %w : (tensor<2x6x5x8xf32>) -> tensor<2x2x3x5x8xf32>
// CHECK:      "pestle.attention"([[Q2]], [[K]], [[V]]) <{scale = 1.0 : f64}>
// CHECK:      [[Q3:%.*]] = stablehlo.transpose %m, dims = [0, 2, 1, 3] : (tensor<2x6x3x8xf32>) -> tensor<2x3x6x8xf32>
// CHECK-DAG:  [[K3:%.*]] = stablehlo.broadcast_in_dim %k3, dims = [0, 2, 3] : (tensor<2x7x8xf32>) -> tensor<2x3x7x8xf32>
// CHECK-DAG:  [[V3:%.*]] = stablehlo.broadcast_in_dim %v3, dims = [0, 2, 3] : (tensor<2x7x4xf32>) -> tensor<2x3x7x4xf32>
// CHECK:      "pestle.attention"([[Q3]], [[K3]], [[V3]]) <{scale = 1.0 : f64}>
func.func @main(%q: tensor<2x5x2x3x8xf32>, %k: tensor<2x7x2x8xf32>, %v: tensor<2x7x2x4xf32>, %one: tensor<2x2x2x8xf32>, %w: tensor<2x6x5x8xf32>, %m: tensor<2x6x3x8xf32>, %k3: tensor<2x7x8xf32>, %v3: tensor<2x7x4xf32>) -> (tensor<2x2x3x5x4xf32>, tensor<2x2x1x2x4xf32>, tensor<2x6x5x4xf32>, tensor<2x6x3x4xf32>) {
  // Scores [b, h, s, g, t], turned before their softmax.
  %1 = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3] : (tensor<2x5x2x3x8xf32>, tensor<2x7x2x8xf32>) -> tensor<2x2x5x3x7xf32>
  %2 = stablehlo.transpose %1, dims = [3, 0, 1, 2, 4] : (tensor<2x2x5x3x7xf32>) -> tensor<3x2x2x5x7xf32>
  %3 = "pestle.softmax"(%2) <{dimensions = array<i64: 4>}> : (tensor<3x2x2x5x7xf32>) -> tensor<3x2x2x5x7xf32>
  %4 = stablehlo.dot_general %3, %v, batching_dims = [1, 2] x [0, 2], contracting_dims = [4] x [1] : (tensor<3x2x2x5x7xf32>, tensor<2x7x2x4xf32>) -> tensor<2x2x3x5x4xf32>
  // One query each: the heads are the rows.
  %5 = stablehlo.reshape %one : (tensor<2x2x2x8xf32>) -> tensor<2x1x2x2x8xf32>
  %6 = stablehlo.dot_general %5, %k, batching_dims = [0, 3] x [0, 2], contracting_dims = [4] x [3] : (tensor<2x1x2x2x8xf32>, tensor<2x7x2x8xf32>) -> tensor<2x2x1x2x7xf32>
  %7 = "pestle.softmax"(%6) <{dimensions = array<i64: 4>}> : (tensor<2x2x1x2x7xf32>) -> tensor<2x2x1x2x7xf32>
  %8 = stablehlo.dot_general %7, %v, batching_dims = [0, 1] x [0, 2], contracting_dims = [4] x [1] : (tensor<2x2x1x2x7xf32>, tensor<2x7x2x4xf32>) -> tensor<2x2x1x2x4xf32>
  // Repeated by the module.
  %9 = stablehlo.broadcast_in_dim %k, dims = [0, 1, 2, 4] : (tensor<2x7x2x8xf32>) -> tensor<2x7x2x3x8xf32>
  %10 = stablehlo.reshape %9 : (tensor<2x7x2x3x8xf32>) -> tensor<2x7x6x8xf32>
  %11 = stablehlo.broadcast_in_dim %v, dims = [0, 1, 2, 4] : (tensor<2x7x2x4xf32>) -> tensor<2x7x2x3x4xf32>
  %12 = stablehlo.reshape %11 : (tensor<2x7x2x3x4xf32>) -> tensor<2x7x6x4xf32>
  %13 = stablehlo.dot_general %w, %10, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [3] : (tensor<2x6x5x8xf32>, tensor<2x7x6x8xf32>) -> tensor<2x6x5x7xf32>
  %14 = "pestle.softmax"(%13) <{dimensions = array<i64: 3>}> : (tensor<2x6x5x7xf32>) -> tensor<2x6x5x7xf32>
  %15 = stablehlo.dot_general %14, %12, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1] : (tensor<2x6x5x7xf32>, tensor<2x7x6x4xf32>) -> tensor<2x6x5x4xf32>
  // One head of keys for all.
  %16 = stablehlo.transpose %m, dims = [0, 2, 1, 3] : (tensor<2x6x3x8xf32>) -> tensor<2x3x6x8xf32>
  %17 = stablehlo.broadcast_in_dim %k3, dims = [0, 2, 3] : (tensor<2x7x8xf32>) -> tensor<2x3x7x8xf32>
  %18 = stablehlo.dot_general %16, %17, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x3x6x8xf32>, tensor<2x3x7x8xf32>) -> tensor<2x3x6x7xf32>
  %19 = "pestle.softmax"(%18) <{dimensions = array<i64: 3>}> : (tensor<2x3x6x7xf32>) -> tensor<2x3x6x7xf32>
  %20 = stablehlo.broadcast_in_dim %v3, dims = [0, 2, 3] : (tensor<2x7x4xf32>) -> tensor<2x3x7x4xf32>
  %21 = stablehlo.dot_general %19, %20, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x3x6x7xf32>, tensor<2x3x7x4xf32>) -> tensor<2x3x6x4xf32>
  %22 = stablehlo.transpose %21, dims = [0, 2, 1, 3] : (tensor<2x3x6x4xf32>) -> tensor<2x6x3x4xf32>
  return %4, %8, %15, %22 : tensor<2x2x3x5x4xf32>, tensor<2x2x1x2x4xf32>, tensor<2x6x5x4xf32>, tensor<2x6x3x4xf32>
}
