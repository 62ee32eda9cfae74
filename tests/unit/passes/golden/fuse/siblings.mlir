// Two elementwise readers of one tensor are one kernel, so are two folds.
func.func @main(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.tanh %x : tensor<4x8xf32>
  %1 = stablehlo.exponential %x : tensor<4x8xf32>
  %2 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = stablehlo.multiply %x, %x : tensor<4x8xf32>
  %4 = stablehlo.reduce(%3 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  return %0, %1, %2, %4 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>
}
// -----
module {
  func.func public @main(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>) {
    %0:2 = "pestle.fusion"(%x) <{label = "tanh_exponential"}> ({
    ^bb0(%x_0: tensor<4x8xf32>):
      %2 = stablehlo.tanh %x_0 : tensor<4x8xf32>
      %3 = stablehlo.exponential %x_0 : tensor<4x8xf32>
      stablehlo.return %2, %3 : tensor<4x8xf32>, tensor<4x8xf32>
    }) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
    %1:2 = "pestle.fusion"(%x) <{label = "reduce_reduce_multiply"}> ({
    ^bb0(%x_0: tensor<4x8xf32>):
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %2 = stablehlo.reduce(%x_0 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
      %3 = stablehlo.multiply %x_0, %x_0 : tensor<4x8xf32>
      %4 = stablehlo.reduce(%3 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
      stablehlo.return %2, %4 : tensor<4xf32>, tensor<4xf32>
    }) : (tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    return %0#0, %0#1, %1#0, %1#1 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>
  }
}
