// Reductions to few columns: steps apart, as many chains as vectors would have kept the
// units busy. Short ones, and those of more columns, are left.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
func.func @main(%x: tensor<4x250x4xf32>, %s: tensor<90x20xf32>, %p: tensor<4x9x4xf32>, %w: tensor<90x64xf32>) -> (tensor<4x4xf32>, tensor<20xf32>, tensor<4x4xf32>, tensor<64xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.maximum across dimensions = [1] : (tensor<4x250x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %1 = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<90x20xf32>, tensor<f32>) -> tensor<20xf32>
  %2 = stablehlo.reduce(%p init: %zero) applies stablehlo.maximum across dimensions = [1] : (tensor<4x9x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %3 = stablehlo.reduce(%w init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<90x64xf32>, tensor<f32>) -> tensor<64xf32>
  return %0, %1, %2, %3 : tensor<4x4xf32>, tensor<20xf32>, tensor<4x4xf32>, tensor<64xf32>
}
