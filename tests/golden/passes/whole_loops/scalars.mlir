// A loop of few scalars is one group of a scan; one of large products stays a loop.
// RUN: %pestle-opt %s --passes=whole_loops --round-trip --check | FileCheck %s

// CHECK-LABEL: @main
// CHECK:      "pestle.fusion"(%x) <{label = "scan"}> ({
// CHECK:        "pestle.scan"
// CHECK-NOT:  stablehlo.while
func.func public @main(%x: tensor<f32>) -> (tensor<f32>, tensor<9xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %any = stablehlo.constant dense<0.0> : tensor<9xf32>
  %1:3 = stablehlo.while(%a = %x, %i = %zero, %y = %any) : tensor<f32>, tensor<i32>, tensor<9xf32>
  cond {
    %n = stablehlo.constant dense<9> : tensor<i32>
    %2 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %3 = stablehlo.sine %a : tensor<f32>
    %4 = stablehlo.reshape %3 : (tensor<f32>) -> tensor<1xf32>
    %5 = stablehlo.dynamic_update_slice %y, %4, %i : (tensor<9xf32>, tensor<1xf32>, tensor<i32>) -> tensor<9xf32>
    %6 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %3, %6, %5 : tensor<f32>, tensor<i32>, tensor<9xf32>
  }
  return %1#0, %1#2 : tensor<f32>, tensor<9xf32>
}

// CHECK-LABEL: @large
// CHECK-NOT:  pestle.scan
// CHECK:      stablehlo.while
func.func @large(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %1:2 = stablehlo.while(%a = %x, %i = %zero) : tensor<64x64xf32>, tensor<i32>
  cond {
    %n = stablehlo.constant dense<9> : tensor<i32>
    %2 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %3 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %6 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %3, %6 : tensor<64x64xf32>, tensor<i32>
  }
  return %1#0 : tensor<64x64xf32>
}
