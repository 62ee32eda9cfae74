// Queries, keys and values are parts of one argument: the queries' copy, turned once a
// block, is made by the second name that the argument has in their product.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
func.func @main(%qkv: tensor<3x2x300x64xf32>) -> tensor<2x300x64xf32> {
  %0 = stablehlo.slice %qkv [0:1, 0:2, 0:300, 0:64] : (tensor<3x2x300x64xf32>) -> tensor<1x2x300x64xf32>
  %1 = stablehlo.slice %qkv [1:2, 0:2, 0:300, 0:64] : (tensor<3x2x300x64xf32>) -> tensor<1x2x300x64xf32>
  %2 = stablehlo.slice %qkv [2:3, 0:2, 0:300, 0:64] : (tensor<3x2x300x64xf32>) -> tensor<1x2x300x64xf32>
  %q = stablehlo.reshape %0 : (tensor<1x2x300x64xf32>) -> tensor<2x300x64xf32>
  %k = stablehlo.reshape %1 : (tensor<1x2x300x64xf32>) -> tensor<2x300x64xf32>
  %v = stablehlo.reshape %2 : (tensor<1x2x300x64xf32>) -> tensor<2x300x64xf32>
  %3 = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x300x64xf32>, tensor<2x300x64xf32>) -> tensor<2x300x300xf32>
  %ninf = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %4 = stablehlo.reduce(%3 init: %ninf) applies stablehlo.maximum across dimensions = [2] : (tensor<2x300x300xf32>, tensor<f32>) -> tensor<2x300xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<2x300xf32>) -> tensor<2x300x300xf32>
  %6 = stablehlo.subtract %3, %5 : tensor<2x300x300xf32>
  %7 = stablehlo.exponential %6 : tensor<2x300x300xf32>
  %8 = stablehlo.reduce(%7 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x300x300xf32>, tensor<f32>) -> tensor<2x300xf32>
  %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<2x300xf32>) -> tensor<2x300x300xf32>
  %10 = stablehlo.divide %7, %9 : tensor<2x300x300xf32>
  %11 = stablehlo.dot_general %10, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x300x300xf32>, tensor<2x300x64xf32>) -> tensor<2x300x64xf32>
  return %11 : tensor<2x300x64xf32>
}
