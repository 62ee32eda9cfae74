// A product with a one-hot tensor is rows of the other operand, zeros where the index
// is none: on either side, by convert or select, with the new axis anywhere.
// RUN: %pestle-opt %s --passes=simplify,dce --round-trip --check | FileCheck %s
// CHECK:      func.func public @main(%x: tensor<5x7xi8>, %w: tensor<100x3xi32>
// CHECK-NOT:  dot_general
// CHECK:      [[A:%.*]] = "stablehlo.gather"(%w, %x) <{{.*}}offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>
// CHECK-NEXT: [[L:%.*]] = stablehlo.constant dense<0> : tensor<i8>
// CHECK-NEXT: [[H:%.*]] = stablehlo.constant dense<99> : tensor<i8>
// CHECK-NEXT: [[C:%.*]] = stablehlo.clamp [[L]], %x, [[H]]
// CHECK-NEXT: [[E:%.*]] = stablehlo.compare EQ, [[C]], %x
// CHECK-NEXT: [[B:%.*]] = stablehlo.broadcast_in_dim [[E]], dims = [0, 1]
// CHECK-NEXT: [[Z:%.*]] = stablehlo.constant dense<0> : tensor<5x7x3xi32>
// CHECK-NEXT: [[R:%.*]] = stablehlo.select [[B]], [[A]], [[Z]]
// CHECK:      "stablehlo.gather"(%v, %y) <{{.*}}offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>
// CHECK-NOT:  dot_general
// CHECK:      return [[R]]
func.func @main(%x: tensor<5x7xi8>, %w: tensor<100x3xi32>, %y: tensor<6xui8>, %v: tensor<3x90xi8>) -> (tensor<5x7x3xi32>, tensor<3x6xi32>) {
  %i = stablehlo.iota dim = 0 : tensor<100xi8>
  %0 = stablehlo.broadcast_in_dim %i, dims = [1] : (tensor<100xi8>) -> tensor<5x100x7xi8>
  %1 = stablehlo.broadcast_in_dim %x, dims = [0, 2] : (tensor<5x7xi8>) -> tensor<5x100x7xi8>
  %2 = stablehlo.compare EQ, %1, %0, SIGNED : (tensor<5x100x7xi8>, tensor<5x100x7xi8>) -> tensor<5x100x7xi1>
  %3 = stablehlo.convert %2 : (tensor<5x100x7xi1>) -> tensor<5x100x7xi32>
  %4 = stablehlo.dot_general %3, %w, contracting_dims = [1] x [0] : (tensor<5x100x7xi32>, tensor<100x3xi32>) -> tensor<5x7x3xi32>
  %5 = stablehlo.iota dim = 1 : tensor<6x90xui8>
  %6 = stablehlo.reshape %y : (tensor<6xui8>) -> tensor<6x1xui8>
  %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1] : (tensor<6x1xui8>) -> tensor<6x90xui8>
  %8 = stablehlo.compare EQ, %5, %7, UNSIGNED : (tensor<6x90xui8>, tensor<6x90xui8>) -> tensor<6x90xi1>
  %9 = stablehlo.constant dense<1> : tensor<6x90xi8>
  %10 = stablehlo.constant dense<0> : tensor<6x90xi8>
  %11 = stablehlo.select %8, %9, %10 : tensor<6x90xi1>, tensor<6x90xi8>
  %12 = stablehlo.dot_general %v, %11, contracting_dims = [1] x [1] : (tensor<3x90xi8>, tensor<6x90xi8>) -> tensor<3x6xi32>
  return %4, %12 : tensor<5x7x3xi32>, tensor<3x6xi32>
}
