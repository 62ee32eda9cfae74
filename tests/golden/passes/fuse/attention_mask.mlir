// An attention computes its mask with its scores, also where that repeats itself:
// positions are compared, and a number a key, and nothing is stored. So is a bias made
// of a mask, which takes more bytes than what it is made of.
// RUN: %pestle-opt %s --passes=fuse --round-trip --check | FileCheck %s
// CHECK-NOT: "pestle.fusion"
// CHECK:     "pestle.fusion"({{.*}}) <{label = "attention_iota_ge_ne_and"}> ({
// CHECK-NOT: "pestle.fusion"
// CHECK:       stablehlo.select
// CHECK:       stablehlo.reduce{{.*}}stablehlo.maximum
// CHECK:     "pestle.fusion"({{.*}}) <{label = "attention_select"}> ({
// CHECK-NOT: "pestle.fusion"
// CHECK:     return
func.func @main(%q: tensor<2x3x5x8xf32>, %k: tensor<2x3x7x8xf32>, %v: tensor<2x3x7x4xf32>, %k2: tensor<2x3x7x8xf32>, %ids: tensor<2x7xi32>, %keep: tensor<2x1x5x7xi1>) -> (tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>) {
  %row = stablehlo.iota dim = 2 : tensor<2x1x5x7xi32>
  %key = stablehlo.iota dim = 3 : tensor<2x1x5x7xi32>
  %ahead = stablehlo.compare GE, %row, %key, SIGNED : (tensor<2x1x5x7xi32>, tensor<2x1x5x7xi32>) -> tensor<2x1x5x7xi1>
  %zero = stablehlo.constant dense<0> : tensor<2x7xi32>
  %is = stablehlo.compare NE, %ids, %zero, SIGNED : (tensor<2x7xi32>, tensor<2x7xi32>) -> tensor<2x7xi1>
  %all = stablehlo.broadcast_in_dim %is, dims = [0, 3] : (tensor<2x7xi1>) -> tensor<2x1x5x7xi1>
  %mask = stablehlo.and %ahead, %all : tensor<2x1x5x7xi1>
  %0 = "pestle.attention"(%q, %k, %v, %mask) <{scale = 0.5 : f64, masked = -1.0e9 : f64}> : (tensor<2x3x5x8xf32>, tensor<2x3x7x8xf32>, tensor<2x3x7x4xf32>, tensor<2x1x5x7xi1>) -> tensor<2x3x5x4xf32>
  %none = stablehlo.constant dense<0.0> : tensor<2x1x5x7xf32>
  %low = stablehlo.constant dense<-1.0e9> : tensor<2x1x5x7xf32>
  %bias = stablehlo.select %keep, %none, %low : tensor<2x1x5x7xi1>, tensor<2x1x5x7xf32>
  %1 = "pestle.attention"(%q, %k2, %v, %bias) <{scale = 0.5 : f64}> : (tensor<2x3x5x8xf32>, tensor<2x3x7x8xf32>, tensor<2x3x7x4xf32>, tensor<2x1x5x7xf32>) -> tensor<2x3x5x4xf32>
  return %0, %1 : tensor<2x3x5x4xf32>, tensor<2x3x5x4xf32>
}
