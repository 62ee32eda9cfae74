// What is no rows of a table: floats that a run tells may be infinite, and zero times
// that is NaN, as are those of a constant; iotas that start again; an index that
// changes along the axis; numbers among which is no 0.
// RUN: %pestle-opt %s --passes=simplify,dce --round-trip | FileCheck %s
// CHECK-NOT: gather
// CHECK-COUNT-6: stablehlo.dot_general
// CHECK-NOT: gather
func.func @main(%x: tensor<5xi32>, %w: tensor<4x3xf32>, %y: tensor<5xi8>, %v: tensor<200x3xi32>, %z: tensor<5x4xi32>, %u: tensor<4x3xi32>,
    %n: tensor<5xi4>, %t: tensor<9x3xi32>)
    -> (tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xi32>, tensor<5x3xi32>, tensor<5x3xi32>, tensor<5x2xf8E8M0FNU>) {
  %i = stablehlo.iota dim = 1 : tensor<5x4xi32>
  %1 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<5xi32>) -> tensor<5x4xi32>
  %2 = stablehlo.compare EQ, %1, %i, SIGNED : (tensor<5x4xi32>, tensor<5x4xi32>) -> tensor<5x4xi1>
  %3 = stablehlo.convert %2 : (tensor<5x4xi1>) -> tensor<5x4xf32>
  %4 = stablehlo.dot_general %3, %w, contracting_dims = [1] x [0] : (tensor<5x4xf32>, tensor<4x3xf32>) -> tensor<5x3xf32>
  %inf = stablehlo.constant dense<[[1.0, 2.0, 0x7F800000], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 4.0]]> : tensor<4x3xf32>
  %5 = stablehlo.dot_general %3, %inf, contracting_dims = [1] x [0] : (tensor<5x4xf32>, tensor<4x3xf32>) -> tensor<5x3xf32>
  %6 = stablehlo.iota dim = 1 : tensor<5x200xi8>
  %7 = stablehlo.broadcast_in_dim %y, dims = [0] : (tensor<5xi8>) -> tensor<5x200xi8>
  %8 = stablehlo.compare EQ, %7, %6, SIGNED : (tensor<5x200xi8>, tensor<5x200xi8>) -> tensor<5x200xi1>
  %9 = stablehlo.convert %8 : (tensor<5x200xi1>) -> tensor<5x200xi32>
  %10 = stablehlo.dot_general %9, %v, contracting_dims = [1] x [0] : (tensor<5x200xi32>, tensor<200x3xi32>) -> tensor<5x3xi32>
  %11 = stablehlo.compare EQ, %z, %i, SIGNED : (tensor<5x4xi32>, tensor<5x4xi32>) -> tensor<5x4xi1>
  %12 = stablehlo.convert %11 : (tensor<5x4xi1>) -> tensor<5x4xi32>
  %13 = stablehlo.dot_general %12, %u, contracting_dims = [1] x [0] : (tensor<5x4xi32>, tensor<4x3xi32>) -> tensor<5x3xi32>
  %14 = stablehlo.iota dim = 1 : tensor<5x9xi4>
  %15 = stablehlo.broadcast_in_dim %n, dims = [0] : (tensor<5xi4>) -> tensor<5x9xi4>
  %16 = stablehlo.compare EQ, %15, %14, SIGNED : (tensor<5x9xi4>, tensor<5x9xi4>) -> tensor<5x9xi1>
  %17 = stablehlo.convert %16 : (tensor<5x9xi1>) -> tensor<5x9xi32>
  %18 = stablehlo.dot_general %17, %t, contracting_dims = [1] x [0] : (tensor<5x9xi32>, tensor<9x3xi32>) -> tensor<5x3xi32>
  %19 = stablehlo.convert %2 : (tensor<5x4xi1>) -> tensor<5x4xf8E8M0FNU>
  %powers = stablehlo.constant dense<[[1.0, 2.0], [4.0, 8.0], [1.0, 4.0], [2.0, 8.0]]> : tensor<4x2xf8E8M0FNU>
  %20 = stablehlo.dot_general %19, %powers, contracting_dims = [1] x [0] : (tensor<5x4xf8E8M0FNU>, tensor<4x2xf8E8M0FNU>) -> tensor<5x2xf8E8M0FNU>
  return %4, %5, %10, %13, %18, %20 : tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xi32>, tensor<5x3xi32>, tensor<5x3xi32>, tensor<5x2xf8E8M0FNU>
}
