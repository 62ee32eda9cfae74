// SPDX-License-Identifier: Apache-2.0
func.func @main(%x: tensor<100x64xf32>, %i: tensor<8xi32>) -> (tensor<8x64xf32>) {
  %e = stablehlo.tanh %x : tensor<100x64xf32>
  %g = "stablehlo.gather"(%e, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 64>}> : (tensor<100x64xf32>, tensor<8xi32>) -> tensor<8x64xf32>
  return %g : tensor<8x64xf32>
}
