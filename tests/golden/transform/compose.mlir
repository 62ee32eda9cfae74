// Transforms of --passes apply in their order: a batched jvp.
// RUN: %pestle opt --passes jvp=0,vmap=4:0,-,0 %s | FileCheck %s
// RUN: not %pestle opt --passes jvp=1 %s 2>&1 | FileCheck %s --check-prefix=INT
// RUN: not %pestle opt --passes jvp=7 %s 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not %pestle opt --passes hessian=0 %s 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not %pestle dump --grad x %s 2>&1 | FileCheck %s --check-prefix=GRAD
// CHECK:      func.func public @main(%x: tensor<4x3xf32> {pestle.name = "x"}, %n: tensor<i32> {pestle.name = "n"}, %x_tangent: tensor<4x3xf32> {pestle.name = "x_tangent"}) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
// CHECK-NEXT:   [[Y:%.*]] = stablehlo.exponential %x : tensor<4x3xf32>
// CHECK-NEXT:   [[T:%.*]] = stablehlo.multiply [[Y]], %x_tangent : tensor<4x3xf32>
// CHECK-NEXT:   return [[Y]], [[T]]
// INT:  argument 1 of function 'main' is of i32, which has no derivative; leave it out
// NONE: there is no argument 7; function 'main' has 2
// NAME: no transform is named 'hessian'; there are: jvp, vjp, grad, vmap
// GRAD: --grad wants the number of an argument, not 'x'
func.func public @main(%x: tensor<3xf32>, %n: tensor<i32>) -> tensor<3xf32> {
  %y = stablehlo.exponential %x : tensor<3xf32>
  return %y : tensor<3xf32>
}
