// The gradient by one argument: nothing is made for the other's tangent, which is
// zero, and what the primal computes anyway is read.
// RUN: %pestle dump --grad 0 %s | FileCheck %s
// RUN: %pestle opt --passes grad=0 %s | FileCheck %s
// RUN: %pestle opt --passes grad=0,canonicalise %s | FileCheck %s --check-prefix=SHORT
// CHECK:      func.func public @main(%x: tensor<3xf32> {pestle.name = "x"}, %y: tensor<3xf32> {pestle.name = "y"}) -> (tensor<f32>, tensor<3xf32>) {
// CHECK-NEXT:   [[S:%.*]] = stablehlo.sine %x
// CHECK-NEXT:   [[C:%.*]] = stablehlo.cosine %x
// CHECK-NEXT:   [[P:%.*]] = stablehlo.multiply [[S]], %y
// CHECK-NEXT:   [[Z:%.*]] = stablehlo.constant dense<0.0>
// CHECK-NEXT:   [[R:%.*]] = stablehlo.reduce([[P]] init: [[Z]])
// CHECK-NEXT:   [[ONE:%.*]] = stablehlo.constant dense<1.0> : tensor<f32>
// CHECK-NEXT:   [[B:%.*]] = stablehlo.broadcast_in_dim [[ONE]]
// CHECK-NEXT:   [[A:%.*]] = stablehlo.multiply [[B]], %y
// CHECK-NEXT:   [[G:%.*]] = stablehlo.multiply [[A]], [[C]]
// CHECK-NEXT:   return [[R]], [[G]]
// SHORT:      [[G:%.*]] = stablehlo.multiply %y, {{%.*}} : tensor<3xf32>
// SHORT-NEXT: return {{%.*}}, [[G]]
func.func public @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<f32> {
  %s = stablehlo.sine %x : tensor<3xf32>
  %p = stablehlo.multiply %s, %y : tensor<3xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%p init: %z) applies stablehlo.add across dimensions = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<f32>
  return %r : tensor<f32>
}
