// Ops with regions of scalars print in generic form and parse again.
// RUN: %pestle dump %s > %t && %pestle dump %t | diff %t - && FileCheck %s < %t
// CHECK:      "stablehlo.sort"(%x) <{dimension = 0 : i64}> ({
// CHECK-NEXT: ^bb0(%a: tensor<f32>, %b: tensor<f32>):
// CHECK:        bitcast_convert %a : (tensor<f32>) -> tensor<i32>
// CHECK:        stablehlo.compare LT, %{{.*}}, %{{.*}}, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK:      "stablehlo.sort"(%{{.*}}) <{is_stable = true}> ({
// CHECK:      "stablehlo.scatter"(%{{.*}}, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({
// CHECK:      stablehlo.reduce_precision %{{.*}}, format = e5m10 : tensor<5x3xf32>
// CHECK:      stablehlo.cholesky %{{.*}}, lower = true : tensor<3x3xf32>
// CHECK:      "stablehlo.triangular_solve"(%{{.*}}, %{{.*}}) <{left_side = false, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}>
func.func @main(%x: tensor<5x3xf32>, %i: tensor<2x1xi32>, %u: tensor<2x3xf32>) -> tensor<5x3xf32> {
  %0 = "stablehlo.sort"(%x) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  }) : (tensor<5x3xf32>) -> tensor<5x3xf32>
  %1 = "stablehlo.sort"(%0) <{dimension = -1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  }) : (tensor<5x3xf32>) -> tensor<5x3xf32>
  %2 = "stablehlo.scatter"(%1, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<5x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<5x3xf32>
  %3 = stablehlo.reduce_precision %2, format = e5m10 : tensor<5x3xf32>
  %4 = stablehlo.slice %3 [0:3, 0:3] : (tensor<5x3xf32>) -> tensor<3x3xf32>
  %5 = stablehlo.cholesky %4, lower = true : tensor<3x3xf32>
  %6 = "stablehlo.triangular_solve"(%5, %3) <{left_side = false, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<3x3xf32>, tensor<5x3xf32>) -> tensor<5x3xf32>
  return %6 : tensor<5x3xf32>
}
