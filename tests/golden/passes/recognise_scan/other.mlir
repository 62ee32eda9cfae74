// From the last row on, as JAX writes it; a counter that is read; an index that is moved up
// where it is below 0, which it never is; loops that are none of these stay.
// RUN: %pestle-opt %s --passes=recognise_scan --round-trip --check | FileCheck %s

// CHECK-LABEL: @main
// CHECK:      [[R:%.*]]:3 = "pestle.scan"(%c, %zero, %xs) <{length = 7 : i64, reverse = true, carry_count = 2 : i64, xs_count = 1 : i64}> ({
// CHECK-NEXT: ^bb0([[C:%.*]]: tensor<4xf32>, [[I:%.*]]: tensor<i32>, [[X:%.*]]: tensor<4xf32>):
// CHECK:        stablehlo.convert [[I]]
// CHECK-NOT:    dynamic
// CHECK:      return [[R]]#0, [[R]]#2
func.func public @main(%c: tensor<4xf32>, %xs: tensor<7x4xf32>, %any: tensor<7x4xf32>) -> (tensor<4xf32>, tensor<7x4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %1:3 = stablehlo.while(%a = %c, %i = %zero, %y = %any) : tensor<4xf32>, tensor<i32>, tensor<7x4xf32>
  cond {
    %n = stablehlo.constant dense<7> : tensor<i32>
    %2 = stablehlo.compare GT, %n, %i, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %n = stablehlo.constant dense<7> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %none = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.subtract %n, %i : tensor<i32>
    %3 = stablehlo.subtract %2, %one : tensor<i32>
    %4 = stablehlo.compare LT, %3, %none, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %5 = stablehlo.add %3, %n : tensor<i32>
    %6 = stablehlo.select %4, %5, %3 : tensor<i1>, tensor<i32>
    %7 = stablehlo.dynamic_slice %xs, %6, %none, sizes = [1, 4] : (tensor<7x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %8 = stablehlo.reshape %7 : (tensor<1x4xf32>) -> tensor<4xf32>
    %9 = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %11 = stablehlo.multiply %a, %10 : tensor<4xf32>
    %12 = stablehlo.add %11, %8 : tensor<4xf32>
    %13 = stablehlo.reshape %12 : (tensor<4xf32>) -> tensor<1x4xf32>
    %14 = stablehlo.dynamic_update_slice %y, %13, %3, %none : (tensor<7x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<7x4xf32>
    %15 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %12, %15, %14 : tensor<4xf32>, tensor<i32>, tensor<7x4xf32>
  }
  return %1#0, %1#2 : tensor<4xf32>, tensor<7x4xf32>
}

// An array whose rows are read and replaced is carried; the sum beside it goes on.
// CHECK-LABEL: @updated
// CHECK: "pestle.scan"(%x, %{{.*}}) <{length = 3 : i64, carry_count = 2 : i64, xs_count = 0 : i64
func.func @updated(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %1:2 = stablehlo.while(%a = %x, %i = %zero) : tensor<3x2xf32>, tensor<i32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %2 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %none = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.dynamic_slice %a, %i, %none, sizes = [1, 2] : (tensor<3x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
    %3 = stablehlo.negate %2 : tensor<1x2xf32>
    %4 = stablehlo.dynamic_update_slice %a, %3, %i, %none : (tensor<3x2xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
    %5 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %4, %5 : tensor<3x2xf32>, tensor<i32>
  }
  return %1#0 : tensor<3x2xf32>
}

// The number of turns follows from the values: no scan.
// CHECK-LABEL: @until
// CHECK: stablehlo.while
// CHECK-NOT: pestle.scan
func.func @until(%x: tensor<f32>, %n: tensor<i32>) -> (tensor<f32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %1:2 = stablehlo.while(%a = %x, %i = %zero) : tensor<f32>, tensor<i32>
  cond {
    %2 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %3 = stablehlo.negate %a : tensor<f32>
    %5 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %3, %5 : tensor<f32>, tensor<i32>
  }
  return %1#0, %1#1 : tensor<f32>, tensor<i32>
}

// A counter that would wrap around before it meets its end: no scan.
// CHECK-LABEL: @wraps
// CHECK: stablehlo.while
// CHECK-NOT: pestle.scan
func.func @wraps(%x: tensor<f32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0> : tensor<i8>
  %1:2 = stablehlo.while(%a = %x, %i = %zero) : tensor<f32>, tensor<i8>
  cond {
    %n = stablehlo.constant dense<127> : tensor<i8>
    %2 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %two = stablehlo.constant dense<2> : tensor<i8>
    %3 = stablehlo.negate %a : tensor<f32>
    %5 = stablehlo.add %i, %two : tensor<i8>
    stablehlo.return %3, %5 : tensor<f32>, tensor<i8>
  }
  return %1#0 : tensor<f32>
}
