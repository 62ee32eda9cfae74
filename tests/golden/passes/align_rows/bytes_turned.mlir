// What is turned for matrix units of bytes is a kernel of its own, not read on the way; of
// a constant it is done with the plan.
// RUN: %pestle dump %s --stage fused --target ref --target-cpu simt90 | FileCheck %s
// RUN: %pestle explain %s --device ref --target-cpu simt90 | FileCheck %s --check-prefix=WHY
// CHECK: label = "transpose"
// CHECK: label = "dot_general"
// CHECK-NOT: stablehlo.transpose
// CHECK: stablehlo.dot_general {{.*}} contracting_dims = [1] x [1] {{.*}} -> tensor<64x1024xi32>
// CHECK-NOT: stablehlo.pad
// WHY: take both operands along what is contracted
func.func @main(%a: tensor<64x1024xi8>, %b: tensor<1024x1024xi8>) -> tensor<64x1024xi32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x1024xi8>, tensor<1024x1024xi8>) -> tensor<64x1024xi32>
  return %0 : tensor<64x1024xi32>
}
