// Keys and values of a token, written at one place of two caches: one scatter.
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
// -----
module {
  func.func public @main(%k: tensor<2x8x4xf32>, %v: tensor<2x8x4xf32>, %at: tensor<2x1xi32>, %x: tensor<2x1x4xf32>, %y: tensor<2x1x4xf32>) -> (tensor<2x8x4xf32>, tensor<2x8x4xf32>) {
    %0:2 = "stablehlo.scatter"(%k, %v, %at, %x, %y) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>, %arg2: tensor<f32>, %arg3: tensor<f32>):
      stablehlo.return %arg2, %arg3 : tensor<f32>, tensor<f32>
    }) : (tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x1xi32>, tensor<2x1x4xf32>, tensor<2x1x4xf32>) -> (tensor<2x8x4xf32>, tensor<2x8x4xf32>)
    return %0#0, %0#1 : tensor<2x8x4xf32>, tensor<2x8x4xf32>
  }
}
