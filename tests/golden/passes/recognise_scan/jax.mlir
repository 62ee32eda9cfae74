// What jax.lax.scan is as JAX 0.10.2 writes it: rows by calls, a counter that nothing else
// reads, arrays that are carried along.
// RUN: %pestle-opt %s --passes=inline,recognise_scan --round-trip --check | FileCheck %s
// CHECK-NOT:  stablehlo.while
// CHECK:      "pestle.scan"(%c, %xs) <{length = 7 : i64, carry_count = 1 : i64, xs_count = 1 : i64}> ({
// CHECK-NEXT: ^bb0([[C:%.*]]: tensor<4xf32>, [[X:%.*]]: tensor<4xf32>):
// CHECK-NEXT:   [[S:%.*]] = stablehlo.add [[C]], [[X]] : tensor<4xf32>
// CHECK-NEXT:   stablehlo.return [[S]], [[C]] : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: }) : (tensor<4xf32>, tensor<7x4xf32>) -> (tensor<4xf32>, tensor<7x4xf32>)
// CHECK-NEXT: return
func.func public @main(%c: tensor<4xf32>, %xs: tensor<7x4xf32>) -> (tensor<4xf32>, tensor<7x4xf32>) {
  %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<7x4xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %1:4 = stablehlo.while(%iterArg = %xs, %iterArg_0 = %zero, %iterArg_1 = %c, %iterArg_2 = %0) : tensor<7x4xf32>, tensor<i32>, tensor<4xf32>, tensor<7x4xf32>
  cond {
    %c_3 = stablehlo.constant dense<7> : tensor<i32>
    %2 = stablehlo.compare LT, %iterArg_0, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %4 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_0) : (tensor<7x4xf32>, tensor<i32>) -> tensor<4xf32>
    %5 = stablehlo.add %iterArg_1, %4 : tensor<4xf32>
    %6 = func.call @dynamic_update_index_in_dim(%iterArg_2, %iterArg_1, %iterArg_0) : (tensor<7x4xf32>, tensor<4xf32>, tensor<i32>) -> tensor<7x4xf32>
    %c_5 = stablehlo.constant dense<1> : tensor<i32>
    %7 = stablehlo.add %iterArg_0, %c_5 : tensor<i32>
    stablehlo.return %iterArg, %7, %5, %6 : tensor<7x4xf32>, tensor<i32>, tensor<4xf32>, tensor<7x4xf32>
  }
  return %1#2, %1#3 : tensor<4xf32>, tensor<7x4xf32>
}
func.func private @dynamic_index_in_dim(%arg0: tensor<7x4xf32>, %arg1: tensor<i32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 4] : (tensor<7x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
  %1 = stablehlo.reshape %0 : (tensor<1x4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @dynamic_update_index_in_dim(%arg0: tensor<7x4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<i32>) -> tensor<7x4xf32> {
  %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c : (tensor<7x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<7x4xf32>
  return %1 : tensor<7x4xf32>
}
