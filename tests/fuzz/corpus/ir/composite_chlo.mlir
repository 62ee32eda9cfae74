// A composite with the name of one of CHLO's ops is that op, of its own accuracy, not
// what came as its decomposition; where the types are not the op's, and for other
// names, it is the decomposition.
// RUN: %pestle opt %s --passes place_custom | FileCheck %s
// CHECK-LABEL: func.func public @main
// CHECK-NEXT: chlo.erf %x
// CHECK-NEXT: stablehlo.constant dense<1.0>
// CHECK: stablehlo.atan2
// CHECK-NEXT: stablehlo.tanh %x
// CHECK-NEXT: stablehlo.convert %n
// CHECK-NOT: stablehlo.negate
// CHECK: stablehlo.sort
// CHECK: stablehlo.multiply %x, %x
func.func private @unary.impl(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @convert.impl(%a: tensor<4xi32>) -> tensor<4xf32> {
  %0 = stablehlo.convert %a : (tensor<4xi32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @top_k.impl(%a: tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>) {
  %0 = stablehlo.negate %a : tensor<2x4xf32>
  %1 = stablehlo.slice %0 [0:2, 0:2] : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %2 = stablehlo.iota dim = 1 : tensor<2x2xi32>
  return %1, %2 : tensor<2x2xf32>, tensor<2x2xi32>
}
func.func @main(%x: tensor<4xf32>, %y: tensor<2x4xf32>, %n: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>, tensor<2x2xi32>, tensor<4xf32>) {
  %0 = stablehlo.composite "chlo.erf" %x {decomposition = @unary.impl} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.composite "chlo.asin" %x {decomposition = @unary.impl} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = stablehlo.composite "my.op" %x {decomposition = @unary.impl} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = stablehlo.composite "chlo.erf" %n {decomposition = @convert.impl} : (tensor<4xi32>) -> tensor<4xf32>
  %4:2 = stablehlo.composite "chlo.top_k" %y {composite_attributes = {k = 2 : i64}, decomposition = @top_k.impl} : (tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>)
  %5 = chlo.square %x : tensor<4xf32> -> tensor<4xf32>
  return %0, %1, %2, %3, %4#0, %4#1, %5 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>, tensor<2x2xi32>, tensor<4xf32>
}
