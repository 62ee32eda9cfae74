// Keys and values of a token, written at one place of two caches: one scatter.
// RUN: %pestle-opt %s --passes=join_writes --round-trip --check | FileCheck %s
// CHECK:     [[A:%.*]]:2 = "stablehlo.scatter"(%k, %v, %at, %x, %y)
// CHECK:     stablehlo.return %{{.*}}, %{{.*}} : tensor<f32>, tensor<f32>
// CHECK-NOT: stablehlo.scatter
// CHECK:     return [[A]]#0, [[A]]#1 :
func.func @main(%k: tensor<2x8x4xf32>, %v: tensor<2x8x4xf32>, %at: tensor<2x1xi32>, %x: tensor<2x1x4xf32>, %y: tensor<2x1x4xf32>) -> (tensor<2x8x4xf32>, tensor<2x8x4xf32>) {
  %a = "stablehlo.scatter"(%k, %at, %x) ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    stablehlo.return %q : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>} : (tensor<2x8x4xf32>, tensor<2x1xi32>, tensor<2x1x4xf32>) -> tensor<2x8x4xf32>
  %b = "stablehlo.scatter"(%v, %at, %y) ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    stablehlo.return %q : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>} : (tensor<2x8x4xf32>, tensor<2x1xi32>, tensor<2x1x4xf32>) -> tensor<2x8x4xf32>
  return %a, %b : tensor<2x8x4xf32>, tensor<2x8x4xf32>
}
