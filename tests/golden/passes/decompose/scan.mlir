// RUN: %pestle-opt %s --passes=decompose --round-trip --check | FileCheck %s
// RUN: %pestle-opt %s --passes=expand_composites --round-trip --check | FileCheck %s
// CHECK-NOT: pestle.scan
// CHECK:     stablehlo.while([[I:%.*]] = %{{.*}}, %{{.*}} = %init, [[Y:%.*]] = %{{.*}}) : tensor<i32>, tensor<2xf32>, tensor<5x2xf32>
// CHECK:       stablehlo.compare LT, [[I]]
// CHECK:     } do {
// CHECK:       stablehlo.dynamic_slice %xs, [[I]]
// CHECK:       stablehlo.dynamic_update_slice [[Y]], %{{.*}}, [[I]]
// CHECK-NOT:   stablehlo.dynamic_update_slice
// CHECK:     }
// CHECK-NOT: dynamic_slice
func.func @main(%init: tensor<2xf32>, %xs: tensor<5x2xf32>, %k: tensor<f32>) -> (tensor<2xf32>, tensor<5x2xf32>) {
  %0:2 = "pestle.scan"(%init, %xs, %k) <{length = 5 : i64, carry_count = 1 : i64, xs_count = 1 : i64}> ({
  ^bb0(%c: tensor<2xf32>, %x: tensor<2xf32>, %w: tensor<f32>):
    %1 = stablehlo.broadcast_in_dim %w, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %2 = stablehlo.multiply %c, %1 : tensor<2xf32>
    %3 = stablehlo.add %2, %x : tensor<2xf32>
    stablehlo.return %3, %2 : tensor<2xf32>, tensor<2xf32>
  }) : (tensor<2xf32>, tensor<5x2xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<5x2xf32>)
  return %0#0, %0#1 : tensor<2xf32>, tensor<5x2xf32>
}
