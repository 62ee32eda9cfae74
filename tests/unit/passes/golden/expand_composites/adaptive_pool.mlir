// The last axis is divided into pairs; the first one's windows overlap, and their
// elements are gathered.
func.func @main(%x: tensor<3x4xf32>) -> tensor<2x2xf32> {
  %0 = "pestle.adaptive_average_pool"(%x) <{dimensions = array<i64: 0, 1>, output_sizes = array<i64: 2, 2>}> : (tensor<3x4xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}
// -----
module {
  func.func public @main(%x: tensor<3x4xf32>) -> tensor<2x2xf32> {
    %0 = stablehlo.reshape %x : (tensor<3x4xf32>) -> tensor<3x2x2xf32>
    %1 = stablehlo.constant dense<0.0> : tensor<f32>
    %2 = stablehlo.reduce(%0 init: %1) applies stablehlo.add across dimensions = [2] : (tensor<3x2x2xf32>, tensor<f32>) -> tensor<3x2xf32>
    %3 = stablehlo.reshape %2 : (tensor<3x2xf32>) -> tensor<1x3x2xf32>
    %4 = stablehlo.constant dense<[[0, 1], [1, 2]]> : tensor<2x2xi32>
    %5 = "stablehlo.gather"(%3, %4) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 3], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 2>}> : (tensor<1x3x2xf32>, tensor<2x2xi32>) -> tensor<1x2x2x2xf32>
    %6 = stablehlo.constant dense<0.0> : tensor<f32>
    %7 = stablehlo.reduce(%5 init: %6) applies stablehlo.add across dimensions = [2] : (tensor<1x2x2x2xf32>, tensor<f32>) -> tensor<1x2x2xf32>
    %8 = stablehlo.reshape %7 : (tensor<1x2x2xf32>) -> tensor<2x2xf32>
    %9 = stablehlo.constant dense<2.0> : tensor<2x2xf32>
    %10 = stablehlo.constant dense<2.0> : tensor<2x2xf32>
    %11 = stablehlo.multiply %9, %10 : tensor<2x2xf32>
    %12 = stablehlo.divide %8, %11 : tensor<2x2xf32>
    return %12 : tensor<2x2xf32>
  }
}
