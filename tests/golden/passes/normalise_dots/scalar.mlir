// RUN: %pestle-opt %s --passes=normalise_dots --round-trip | FileCheck %s
// The reshaped operand may itself be the scalar: what follows works on what it
// was before.
// CHECK: %[[D:.*]] = stablehlo.dot_general %a, %b
// CHECK: %[[I:.*]] = stablehlo.convert %[[D]] : (tensor<1x1xf32>) -> tensor<1x1xi64>
// CHECK: stablehlo.reshape {{.*}} -> tensor<i64>
func.func @main(%a: tensor<1x6xf32>, %b: tensor<6x1xf32>) -> tensor<i64> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<1x6xf32>, tensor<6x1xf32>) -> tensor<1x1xf32>
  %1 = stablehlo.reshape %0 : (tensor<1x1xf32>) -> tensor<f32>
  %2 = stablehlo.convert %1 : (tensor<f32>) -> tensor<i64>
  return %2 : tensor<i64>
}
