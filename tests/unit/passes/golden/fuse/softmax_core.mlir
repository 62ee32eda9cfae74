// A softmax that nobody recognised, with a mask in front: one kernel.
func.func @main(%x: tensor<4x8xf32>, %mask: tensor<8xf32>) -> tensor<4x8xf32> {
  %m = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %b = stablehlo.broadcast_in_dim %mask, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %s = stablehlo.add %x, %b : tensor<4x8xf32>
  %0 = stablehlo.reduce(%s init: %m) applies stablehlo.maximum across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %2 = stablehlo.subtract %s, %1 : tensor<4x8xf32>
  %3 = stablehlo.exponential %2 : tensor<4x8xf32>
  %4 = stablehlo.reduce(%3 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %6 = stablehlo.divide %3, %5 : tensor<4x8xf32>
  return %6 : tensor<4x8xf32>
}
// -----
module {
  func.func public @main(%x: tensor<4x8xf32>, %mask: tensor<8xf32>) -> tensor<4x8xf32> {
    %0 = "pestle.fusion"(%mask, %x) <{label = "reduce_add_subtract_exponential_reduce"}> ({
    ^bb0(%mask_0: tensor<8xf32>, %x_1: tensor<4x8xf32>):
      %m = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %b = stablehlo.broadcast_in_dim %mask_0, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
      %s = stablehlo.add %x_1, %b : tensor<4x8xf32>
      %1 = stablehlo.reduce(%s init: %m) applies stablehlo.maximum across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
      %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
      %3 = stablehlo.subtract %s, %2 : tensor<4x8xf32>
      %4 = stablehlo.exponential %3 : tensor<4x8xf32>
      %5 = stablehlo.reduce(%4 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
      %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
      %7 = stablehlo.divide %4, %6 : tensor<4x8xf32>
      stablehlo.return %7 : tensor<4x8xf32>
    }) : (tensor<8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}
