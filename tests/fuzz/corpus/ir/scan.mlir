// A scan prints in the generic form and parses again.
// RUN: %pestle dump %s > %t && %pestle dump %t | diff %t - && FileCheck %s < %t
// RUN: %pestle-opt %s --passes=cse,dce --round-trip --check --quiet
// CHECK:      %0:2 = "pestle.scan"(%init, %xs, %k) <{length = 5 : i64, reverse = true, carry_count = 1 : i64, xs_count = 1 : i64, unroll = 2 : i64}> ({
// CHECK-NEXT: ^bb0(%c: tensor<2xf32>, %x: tensor<2xf32>, %w: tensor<f32>):
// CHECK:        stablehlo.return %{{.*}}, %{{.*}} : tensor<2xf32>, tensor<2xf32>
// CHECK-NEXT: }) : (tensor<2xf32>, tensor<5x2xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<5x2xf32>)
func.func @main(%init: tensor<2xf32>, %xs: tensor<5x2xf32>, %k: tensor<f32>) -> (tensor<2xf32>, tensor<5x2xf32>, tensor<2xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<2xf32>
  %0:2 = "pestle.scan"(%init, %xs, %k) <{length = 5 : i64, carry_count = 1 : i64, xs_count = 1 : i64, reverse = true, unroll = 2 : i64}> ({
  ^bb0(%c: tensor<2xf32>, %x: tensor<2xf32>, %w: tensor<f32>):
    %inner = stablehlo.constant dense<1.0> : tensor<2xf32>
    %1 = stablehlo.broadcast_in_dim %w, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %2 = stablehlo.multiply %c, %1 : tensor<2xf32>
    %3 = stablehlo.add %2, %x : tensor<2xf32>
    %4 = stablehlo.add %3, %inner : tensor<2xf32>
    stablehlo.return %3, %4 : tensor<2xf32>, tensor<2xf32>
  }) : (tensor<2xf32>, tensor<5x2xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<5x2xf32>)
  return %0#0, %0#1, %one : tensor<2xf32>, tensor<5x2xf32>, tensor<2xf32>
}
