// Sort with a payload: copies, then one kernel that merges rows in place.
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
// RUN: %golden %s.plan -- %pestle dump %s --stage plan --target ref
func.func @main(%x: tensor<4x9xf32>, %y: tensor<4x9xi32>) -> (tensor<4x9xf32>, tensor<4x9xi32>) {
  %0 = stablehlo.negate %y : tensor<4x9xi32>
  %1:2 = "stablehlo.sort"(%x, %0) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %2 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }) : (tensor<4x9xf32>, tensor<4x9xi32>) -> (tensor<4x9xf32>, tensor<4x9xi32>)
  return %1#0, %1#1 : tensor<4x9xf32>, tensor<4x9xi32>
}
