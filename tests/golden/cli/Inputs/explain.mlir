// SPDX-License-Identifier: Apache-2.0
module @block {
  func.func public @main(%x: tensor<1x8x16x16xf32> {pestle.name = "x"},
                         %w: tensor<16x8x3x3xf32> {pestle.name = "w"})
      -> (tensor<1x16xf32> {pestle.name = "y"}) {
    %c = stablehlo.convolution(%x, %w)
        dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {}
        {batch_group_count = 1 : i64, feature_group_count = 1 : i64} :
        (tensor<1x8x16x16xf32>, tensor<16x8x3x3xf32>) -> tensor<1x16x14x14xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %zeros = stablehlo.constant dense<0.0> : tensor<1x16x14x14xf32>
    %r = stablehlo.maximum %c, %zeros : tensor<1x16x14x14xf32>
    %s = stablehlo.reduce(%r init: %zero) applies stablehlo.add
        across dimensions = [2, 3] :
        (tensor<1x16x14x14xf32>, tensor<f32>) -> tensor<1x16xf32>
    %t = stablehlo.tanh %s : tensor<1x16xf32>
    return %t : tensor<1x16xf32>
  }
}
