// Sorts that stay whole: an order by 'less' alone, in which NaN have no place; one by
// what is made of two elements; one whose end is read.
// RUN: %pestle-opt %s --passes=simplify,dce --round-trip | FileCheck %s
// CHECK-NOT: sort_first
// CHECK-COUNT-3: stablehlo.sort
// CHECK-NOT: sort_first
func.func @main(%x: tensor<4x90xf32>, %y: tensor<4x90xi32>) -> (tensor<4x3xf32>, tensor<4x3xi32>, tensor<4x3xi32>) {
  %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %r : tensor<i1>
  }) : (tensor<4x90xf32>) -> tensor<4x90xf32>
  %1 = stablehlo.slice %0 [0:4, 0:3] : (tensor<4x90xf32>) -> tensor<4x3xf32>
  %2 = "stablehlo.sort"(%y) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.xor %a, %b : tensor<i32>
    %t = stablehlo.and %s, %a : tensor<i32>
    %u = stablehlo.and %s, %b : tensor<i32>
    %r = stablehlo.compare LT, %t, %u : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %r : tensor<i1>
  }) : (tensor<4x90xi32>) -> tensor<4x90xi32>
  %3 = stablehlo.slice %2 [0:4, 0:3] : (tensor<4x90xi32>) -> tensor<4x3xi32>
  %4 = "stablehlo.sort"(%y) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %r = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %r : tensor<i1>
  }) : (tensor<4x90xi32>) -> tensor<4x90xi32>
  %5 = stablehlo.slice %4 [0:4, 87:90] : (tensor<4x90xi32>) -> tensor<4x3xi32>
  return %1, %3, %5 : tensor<4x3xf32>, tensor<4x3xi32>, tensor<4x3xi32>
}
