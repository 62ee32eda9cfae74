// Sums of what the L2 does not hold: columns by some rows at a time, a page of
// each; rows some at a time, too. What it holds is left to one row at a time and
// to tiles.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
func.func @main(%x: tensor<2048x4096xf32>, %s: tensor<64x1024xf32>) -> (tensor<4096xf32>, tensor<2048xf32>, tensor<f32>, tensor<1024xf32>, tensor<64xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2048x4096xf32>, tensor<f32>) -> tensor<4096xf32>
  %1 = stablehlo.reduce(%x init: %zero) applies stablehlo.maximum across dimensions = [1] : (tensor<2048x4096xf32>, tensor<f32>) -> tensor<2048xf32>
  %2 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2048x4096xf32>, tensor<f32>) -> tensor<f32>
  %3 = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<64x1024xf32>, tensor<f32>) -> tensor<1024xf32>
  %4 = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<64x1024xf32>, tensor<f32>) -> tensor<64xf32>
  return %0, %1, %2, %3, %4 : tensor<4096xf32>, tensor<2048xf32>, tensor<f32>, tensor<1024xf32>, tensor<64xf32>
}
