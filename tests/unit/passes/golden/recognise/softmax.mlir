// As JAX writes it, with the row's dims put back one at a time.
func.func @main(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %m = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %m) applies stablehlo.maximum across dimensions = [2] : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3xf32>
  %1 = stablehlo.reshape %0 : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2] : (tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %3 = stablehlo.subtract %x, %2 : tensor<2x3x8xf32>
  %4 = stablehlo.exponential %3 : tensor<2x3x8xf32>
  %5 = stablehlo.reduce(%4 init: %z) applies stablehlo.add across dimensions = [2] : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3xf32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x8xf32>
  %7 = stablehlo.divide %4, %6 : tensor<2x3x8xf32>
  return %7 : tensor<2x3x8xf32>
}
// -----
module {
  func.func public @main(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
    %0 = "pestle.softmax"(%x) <{dimensions = array<i64: 2>}> : (tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
    return %0 : tensor<2x3x8xf32>
  }
}
