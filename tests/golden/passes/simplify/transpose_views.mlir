// Transposes with reshapes between them are one, unless a reshape tears an axis that
// one of them moved from what lay beside it.
// RUN: %pestle-opt %s --passes=simplify,dce --round-trip --check | FileCheck %s
// CHECK:      [[A:%.*]] = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
// CHECK-NEXT: [[B:%.*]] = stablehlo.reshape [[A]] : (tensor<4x2x3xf32>) -> tensor<4x1x6xf32>
// CHECK-NEXT: [[C:%.*]] = stablehlo.reshape %x : (tensor<2x3x4xf32>) -> tensor<1x2x3x4xf32>
// CHECK-NEXT: [[D:%.*]] = stablehlo.transpose %y, dims = [1, 0]
// CHECK-NEXT: [[E:%.*]] = stablehlo.reshape [[D]]
// CHECK-NEXT: [[F:%.*]] = stablehlo.transpose [[E]], dims = [1, 0]
// CHECK-NEXT: return [[B]], [[C]], [[F]]
func.func @main(%x: tensor<2x3x4xf32>, %y: tensor<2x6xf32>) -> (tensor<4x1x6xf32>, tensor<1x2x3x4xf32>, tensor<3x4xf32>) {
  %1 = stablehlo.transpose %x, dims = [0, 2, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  %2 = stablehlo.reshape %1 : (tensor<2x4x3xf32>) -> tensor<2x1x4x1x3xf32>
  %3 = stablehlo.transpose %2, dims = [2, 1, 0, 4, 3] : (tensor<2x1x4x1x3xf32>) -> tensor<4x1x2x3x1xf32>
  %4 = stablehlo.reshape %3 : (tensor<4x1x2x3x1xf32>) -> tensor<4x1x6xf32>
  %5 = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  %6 = stablehlo.reshape %5 : (tensor<4x2x3xf32>) -> tensor<4x1x6xf32>
  %7 = stablehlo.transpose %6, dims = [1, 2, 0] : (tensor<4x1x6xf32>) -> tensor<1x6x4xf32>
  %8 = stablehlo.reshape %7 : (tensor<1x6x4xf32>) -> tensor<1x2x3x4xf32>
  %9 = stablehlo.transpose %y, dims = [1, 0] : (tensor<2x6xf32>) -> tensor<6x2xf32>
  %10 = stablehlo.reshape %9 : (tensor<6x2xf32>) -> tensor<4x3xf32>
  %11 = stablehlo.transpose %10, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
  return %4, %8, %11 : tensor<4x1x6xf32>, tensor<1x2x3x4xf32>, tensor<3x4xf32>
}
