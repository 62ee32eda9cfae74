// Scatter-add of rows: in place where the operand dies, else into a copy; the
// columns go in vectors, in parallel.
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
// RUN: %golden %s.plan -- %pestle dump %s --stage plan --target ref
func.func @main(%x: tensor<9x40xf32>, %i: tensor<5x1xi32>, %u: tensor<5x40xf32>) -> (tensor<9x40xf32>, tensor<9x40xf32>) {
  %0 = stablehlo.negate %x : tensor<9x40xf32>
  %1 = "stablehlo.scatter"(%0, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<9x40xf32>, tensor<5x1xi32>, tensor<5x40xf32>) -> tensor<9x40xf32>
  %2 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<9x40xf32>, tensor<5x1xi32>, tensor<5x40xf32>) -> tensor<9x40xf32>
  return %1, %2 : tensor<9x40xf32>, tensor<9x40xf32>
}
