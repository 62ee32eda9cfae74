// RUN: %pestle-opt %s --passes=canonicalise,recognise --round-trip --check | FileCheck %s
// What is divided is centred, but by another's deviation: no norm.
// CHECK-NOT: pestle.layer_norm
// CHECK:     return
func.func @main(%x: tensor<4x8xf32>, %t: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<8.0> : tensor<4xf32>
  %e = stablehlo.constant dense<0.1> : tensor<4xf32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %m = stablehlo.divide %s, %n : tensor<4xf32>
  %q = stablehlo.multiply %x, %x : tensor<4x8xf32>
  %qs = stablehlo.reduce(%q init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %qm = stablehlo.divide %qs, %n : tensor<4xf32>
  %mm = stablehlo.multiply %m, %m : tensor<4xf32>
  %v = stablehlo.subtract %qm, %mm : tensor<4xf32>
  %ve = stablehlo.add %v, %e : tensor<4xf32>
  %r = stablehlo.rsqrt %ve : tensor<4xf32>
  %rb = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %ts = stablehlo.reduce(%t init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %tm = stablehlo.divide %ts, %n : tensor<4xf32>
  %tb = stablehlo.broadcast_in_dim %tm, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %d = stablehlo.subtract %t, %tb : tensor<4x8xf32>
  %y = stablehlo.multiply %d, %rb : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
