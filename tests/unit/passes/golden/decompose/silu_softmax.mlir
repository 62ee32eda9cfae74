func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = "pestle.silu"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = "pestle.softmax"(%0) <{dimensions = array<i64: 1>}> : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}
// -----
module {
  func.func public @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
    %0 = stablehlo.logistic %x : tensor<2x4xf32>
    %1 = stablehlo.multiply %x, %0 : tensor<2x4xf32>
    %2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.maximum across dimensions = [1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<2xf32>) -> tensor<2x4xf32>
    %5 = stablehlo.subtract %1, %4 : tensor<2x4xf32>
    %6 = stablehlo.exponential %5 : tensor<2x4xf32>
    %7 = stablehlo.constant dense<0.0> : tensor<f32>
    %8 = stablehlo.reduce(%6 init: %7) applies stablehlo.add across dimensions = [1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<2xf32>
    %9 = stablehlo.constant dense<1.0> : tensor<2xf32>
    %10 = stablehlo.divide %9, %8 : tensor<2xf32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [0] : (tensor<2xf32>) -> tensor<2x4xf32>
    %12 = stablehlo.multiply %6, %11 : tensor<2x4xf32>
    return %12 : tensor<2x4xf32>
  }
}
