// The first of a sort, by slices of one that counts beside: one kernel with a list
// in scratch.
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
// RUN: %pestle dump %s --stage fused --target ref | FileCheck %s
// CHECK: "pestle.sort_first"(%x) <{count = 3 : i64, dimension = 1 : i64}>
func.func @main(%x: tensor<4x90xf32>) -> (tensor<4x3xf32>, tensor<4x2xi32>) {
  %0 = stablehlo.iota dim = 1 : tensor<4x90xi32>
  %1:2 = "stablehlo.sort"(%x, %0) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %2 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %3 = "pestle.is_nan"(%a) : (tensor<f32>) -> tensor<i1>
    %4 = stablehlo.compare EQ, %b, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %5 = stablehlo.and %3, %4 : tensor<i1>
    %6 = stablehlo.or %2, %5 : tensor<i1>
    stablehlo.return %6 : tensor<i1>
  }) : (tensor<4x90xf32>, tensor<4x90xi32>) -> (tensor<4x90xf32>, tensor<4x90xi32>)
  %7 = stablehlo.slice %1#0 [0:4, 0:3] : (tensor<4x90xf32>) -> tensor<4x3xf32>
  %8 = stablehlo.slice %1#1 [0:4, 1:3] : (tensor<4x90xi32>) -> tensor<4x2xi32>
  return %7, %8 : tensor<4x3xf32>, tensor<4x2xi32>
}
