// Attention whose bias lies along the columns, so that columns are in lanes: blocks of
// rows of one size (three of 100), whole rows of scores, the keys turned for one tile of
// columns at a time.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
func.func @main(%q: tensor<2x300x64xf32>, %k: tensor<2x256x64xf32>, %v: tensor<2x256x64xf32>, %bias: tensor<2x300x256xf32>) -> tensor<2x300x64xf32> {
  %0 = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x300x64xf32>, tensor<2x256x64xf32>) -> tensor<2x300x256xf32>
  %scores = stablehlo.add %0, %bias : tensor<2x300x256xf32>
  %ninf = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%scores init: %ninf) applies stablehlo.maximum across dimensions = [2] : (tensor<2x300x256xf32>, tensor<f32>) -> tensor<2x300xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<2x300xf32>) -> tensor<2x300x256xf32>
  %3 = stablehlo.subtract %scores, %2 : tensor<2x300x256xf32>
  %4 = stablehlo.exponential %3 : tensor<2x300x256xf32>
  %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<2x300x256xf32>, tensor<f32>) -> tensor<2x300xf32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<2x300xf32>) -> tensor<2x300x256xf32>
  %7 = stablehlo.divide %4, %6 : tensor<2x300x256xf32>
  %8 = stablehlo.dot_general %7, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x300x256xf32>, tensor<2x256x64xf32>) -> tensor<2x300x64xf32>
  return %8 : tensor<2x300x64xf32>
}
