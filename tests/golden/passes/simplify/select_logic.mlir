// A choice between truths is their logic.
// RUN: %pestle-opt %s --passes=simplify,dce --round-trip --check | FileCheck %s
// CHECK:      [[A:%.*]] = stablehlo.and %p, %x
// CHECK-NEXT: [[B:%.*]] = stablehlo.or %p, %x
// CHECK-NEXT: [[C:%.*]] = stablehlo.not %p
// CHECK-NEXT: return [[A]], [[B]], %p, [[C]]
func.func @main(%p: tensor<4xi1>, %x: tensor<4xi1>) -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>) {
  %no = stablehlo.constant dense<false> : tensor<4xi1>
  %yes = stablehlo.constant dense<true> : tensor<4xi1>
  %1 = stablehlo.select %p, %x, %no : tensor<4xi1>, tensor<4xi1>
  %2 = stablehlo.select %p, %yes, %x : tensor<4xi1>, tensor<4xi1>
  %3 = stablehlo.select %p, %yes, %no : tensor<4xi1>, tensor<4xi1>
  %4 = stablehlo.select %p, %no, %yes : tensor<4xi1>, tensor<4xi1>
  return %1, %2, %3, %4 : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>
}
