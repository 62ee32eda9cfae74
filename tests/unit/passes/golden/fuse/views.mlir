// Slices, pads and a short concatenate are read through; a gather begins a
// kernel that goes on elementwise; a reshape at a border stays outside.
func.func @main(%x: tensor<6x8xf32>, %t: tensor<10x8xf32>, %i: tensor<6x1xi32>) -> tensor<48xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.slice %x [0:6, 2:8] : (tensor<6x8xf32>) -> tensor<6x6xf32>
  %1 = stablehlo.pad %0, %z, low = [0, 1], high = [0, 1], interior = [0, 0] : (tensor<6x6xf32>, tensor<f32>) -> tensor<6x8xf32>
  %2 = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 8>}> : (tensor<10x8xf32>, tensor<6x1xi32>) -> tensor<6x8xf32>
  %3 = stablehlo.add %1, %2 : tensor<6x8xf32>
  %4 = stablehlo.slice %x [0:2, 0:8] : (tensor<6x8xf32>) -> tensor<2x8xf32>
  %5 = stablehlo.slice %x [2:6, 0:8] : (tensor<6x8xf32>) -> tensor<4x8xf32>
  %6 = stablehlo.concatenate %5, %4, dim = 0 : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<6x8xf32>
  %7 = stablehlo.multiply %3, %6 : tensor<6x8xf32>
  %8 = stablehlo.reshape %7 : (tensor<6x8xf32>) -> tensor<48xf32>
  return %8 : tensor<48xf32>
}
// -----
module {
  func.func public @main(%x: tensor<6x8xf32>, %t: tensor<10x8xf32>, %i: tensor<6x1xi32>) -> tensor<48xf32> {
    %0 = "pestle.fusion"(%x, %t, %i) <{label = "slice_pad_gather_add"}> ({
    ^bb0(%x_0: tensor<6x8xf32>, %t_1: tensor<10x8xf32>, %i_2: tensor<6x1xi32>):
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %2 = stablehlo.slice %x_0 [0:6, 2:8] : (tensor<6x8xf32>) -> tensor<6x6xf32>
      %3 = stablehlo.pad %2, %z, low = [0, 1], high = [0, 1], interior = [0, 0] : (tensor<6x6xf32>, tensor<f32>) -> tensor<6x8xf32>
      %4 = "stablehlo.gather"(%t_1, %i_2) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<10x8xf32>, tensor<6x1xi32>) -> tensor<6x8xf32>
      %5 = stablehlo.add %3, %4 : tensor<6x8xf32>
      %6 = stablehlo.slice %x_0 [0:2, 0:8] : (tensor<6x8xf32>) -> tensor<2x8xf32>
      %7 = stablehlo.slice %x_0 [2:6, 0:8] : (tensor<6x8xf32>) -> tensor<4x8xf32>
      %8 = stablehlo.concatenate %7, %6, dim = 0 : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<6x8xf32>
      %9 = stablehlo.multiply %5, %8 : tensor<6x8xf32>
      stablehlo.return %9 : tensor<6x8xf32>
    }) : (tensor<6x8xf32>, tensor<10x8xf32>, tensor<6x1xi32>) -> tensor<6x8xf32>
    %1 = stablehlo.reshape %0 : (tensor<6x8xf32>) -> tensor<48xf32>
    return %1 : tensor<48xf32>
  }
}
