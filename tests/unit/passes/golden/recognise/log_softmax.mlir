func.func @main(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %m = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %m) applies stablehlo.maximum across dimensions = [1] : (tensor<3x8xf32>, tensor<f32>) -> tensor<3xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<3xf32>) -> tensor<3x8xf32>
  %2 = stablehlo.subtract %x, %1 : tensor<3x8xf32>
  %3 = stablehlo.exponential %2 : tensor<3x8xf32>
  %4 = stablehlo.reduce(%3 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<3x8xf32>, tensor<f32>) -> tensor<3xf32>
  %5 = stablehlo.log %4 : tensor<3xf32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<3xf32>) -> tensor<3x8xf32>
  %7 = stablehlo.subtract %2, %6 : tensor<3x8xf32>
  return %7 : tensor<3x8xf32>
}
// -----
module {
  func.func public @main(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {
    %0 = "pestle.log_softmax"(%x) <{dimensions = array<i64: 1>}> : (tensor<3x8xf32>) -> tensor<3x8xf32>
    return %0 : tensor<3x8xf32>
  }
}
