// Writes at other places, of which the second follows from what the first has written, which
// add, or into one tensor stay apart.
func.func @main(%k: tensor<2x8x4xf32>, %v: tensor<2x8x4xf32>, %at: tensor<2x1xi32>, %to: tensor<2x1xi32>, %x: tensor<2x1x4xf32>, %y: tensor<2x1x4xf32>) -> (tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) {
  %a = "stablehlo.scatter"(%k, %at, %x) ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    stablehlo.return %q : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>} : (tensor<2x8x4xf32>, tensor<2x1xi32>, tensor<2x1x4xf32>) -> tensor<2x8x4xf32>
  %b = "stablehlo.scatter"(%v, %to, %y) ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    stablehlo.return %q : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>} : (tensor<2x8x4xf32>, tensor<2x1xi32>, tensor<2x1x4xf32>) -> tensor<2x8x4xf32>
  %s = stablehlo.slice %a [0:2, 0:1, 0:4] : (tensor<2x8x4xf32>) -> tensor<2x1x4xf32>
  %d = "stablehlo.scatter"(%v, %at, %s) ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    stablehlo.return %q : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>} : (tensor<2x8x4xf32>, tensor<2x1xi32>, tensor<2x1x4xf32>) -> tensor<2x8x4xf32>
  %e = "stablehlo.scatter"(%b, %at, %x) ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %r = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>} : (tensor<2x8x4xf32>, tensor<2x1xi32>, tensor<2x1x4xf32>) -> tensor<2x8x4xf32>
  %f = "stablehlo.scatter"(%d, %at, %y) ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %r = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>} : (tensor<2x8x4xf32>, tensor<2x1xi32>, tensor<2x1x4xf32>) -> tensor<2x8x4xf32>
  %g = "stablehlo.scatter"(%e, %to, %x) ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    stablehlo.return %q : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>} : (tensor<2x8x4xf32>, tensor<2x1xi32>, tensor<2x1x4xf32>) -> tensor<2x8x4xf32>
  %h = "stablehlo.scatter"(%e, %to, %y) ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    stablehlo.return %q : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>} : (tensor<2x8x4xf32>, tensor<2x1xi32>, tensor<2x1x4xf32>) -> tensor<2x8x4xf32>
  return %a, %f, %g, %h : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>
}
// -----
module {
  func.func public @main(%k: tensor<2x8x4xf32>, %v: tensor<2x8x4xf32>, %at: tensor<2x1xi32>, %to: tensor<2x1xi32>, %x: tensor<2x1x4xf32>, %y: tensor<2x1x4xf32>) -> (tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) {
    %a = "stablehlo.scatter"(%k, %at, %x) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      stablehlo.return %q : tensor<f32>
    }) : (tensor<2x8x4xf32>, tensor<2x1xi32>, tensor<2x1x4xf32>) -> tensor<2x8x4xf32>
    %b = "stablehlo.scatter"(%v, %to, %y) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      stablehlo.return %q : tensor<f32>
    }) : (tensor<2x8x4xf32>, tensor<2x1xi32>, tensor<2x1x4xf32>) -> tensor<2x8x4xf32>
    %s = stablehlo.slice %a [0:2, 0:1, 0:4] : (tensor<2x8x4xf32>) -> tensor<2x1x4xf32>
    %d = "stablehlo.scatter"(%v, %at, %s) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      stablehlo.return %q : tensor<f32>
    }) : (tensor<2x8x4xf32>, tensor<2x1xi32>, tensor<2x1x4xf32>) -> tensor<2x8x4xf32>
    %e = "stablehlo.scatter"(%b, %at, %x) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %r = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) : (tensor<2x8x4xf32>, tensor<2x1xi32>, tensor<2x1x4xf32>) -> tensor<2x8x4xf32>
    %f = "stablehlo.scatter"(%d, %at, %y) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %r = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) : (tensor<2x8x4xf32>, tensor<2x1xi32>, tensor<2x1x4xf32>) -> tensor<2x8x4xf32>
    %g = "stablehlo.scatter"(%e, %to, %x) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      stablehlo.return %q : tensor<f32>
    }) : (tensor<2x8x4xf32>, tensor<2x1xi32>, tensor<2x1x4xf32>) -> tensor<2x8x4xf32>
    %h = "stablehlo.scatter"(%e, %to, %y) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      stablehlo.return %q : tensor<f32>
    }) : (tensor<2x8x4xf32>, tensor<2x1xi32>, tensor<2x1x4xf32>) -> tensor<2x8x4xf32>
    return %a, %f, %g, %h : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>
  }
}
