// The same of results of one kernel.
func.func @main(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.exponential %x : tensor<4x8xf32>
  %1 = stablehlo.tanh %x : tensor<4x8xf32>
  %2 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  %3 = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0, %1, %2, %3 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>
}
// -----
module {
  func.func public @main(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) {
    %0:2 = "pestle.fusion"(%x) <{label = "exponential_tanh"}> ({
    ^bb0(%x_0: tensor<4x8xf32>):
      %2 = stablehlo.exponential %x_0 : tensor<4x8xf32>
      %3 = stablehlo.tanh %x_0 : tensor<4x8xf32>
      stablehlo.return %2, %3 : tensor<4x8xf32>, tensor<4x8xf32>
    }) : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
    %1:2 = "pestle.fusion"(%0#0, %0#1) <{label = "reduce_reduce"}> ({
    ^bb0(%arg0: tensor<4x8xf32>, %arg1: tensor<4x8xf32>):
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %2 = stablehlo.reduce(%arg0 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
      %3 = stablehlo.reduce(%arg1 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
      stablehlo.return %2, %3 : tensor<8xf32>, tensor<8xf32>
    }) : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
    return %0#0, %0#1, %1#0, %1#1 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>
  }
}
