// A softmax of one long row is opened, one of many rows is not.
func.func @main(%x: tensor<1x131072xf32>, %y: tensor<64x4096xf32>) -> (tensor<1x131072xf32>, tensor<64x4096xf32>) {
  %0 = "pestle.softmax"(%x) <{dimensions = array<i64: 1>}> : (tensor<1x131072xf32>) -> tensor<1x131072xf32>
  %1 = "pestle.softmax"(%y) <{dimensions = array<i64: 1>}> : (tensor<64x4096xf32>) -> tensor<64x4096xf32>
  return %0, %1 : tensor<1x131072xf32>, tensor<64x4096xf32>
}
// -----
module {
  func.func public @main(%x: tensor<1x131072xf32>, %y: tensor<64x4096xf32>) -> (tensor<1x131072xf32>, tensor<64x4096xf32>) {
    %0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.reshape %x : (tensor<1x131072xf32>) -> tensor<1x8x16384xf32>
    %2 = stablehlo.reduce(%1 init: %0) applies stablehlo.maximum across dimensions = [2] : (tensor<1x8x16384xf32>, tensor<f32>) -> tensor<1x8xf32>
    %3 = stablehlo.reduce(%2 init: %0) applies stablehlo.maximum across dimensions = [1] : (tensor<1x8xf32>, tensor<f32>) -> tensor<1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<1xf32>) -> tensor<1x131072xf32>
    %5 = stablehlo.subtract %x, %4 : tensor<1x131072xf32>
    %6 = stablehlo.exponential %5 : tensor<1x131072xf32>
    %7 = stablehlo.constant dense<0.0> : tensor<f32>
    %8 = stablehlo.constant dense<-0.0> : tensor<f32>
    %9 = stablehlo.reshape %6 : (tensor<1x131072xf32>) -> tensor<1x8x16384xf32>
    %10 = stablehlo.reduce(%9 init: %8) applies stablehlo.add across dimensions = [2] : (tensor<1x8x16384xf32>, tensor<f32>) -> tensor<1x8xf32>
    %11 = stablehlo.reduce(%10 init: %7) applies stablehlo.add across dimensions = [1] : (tensor<1x8xf32>, tensor<f32>) -> tensor<1xf32>
    %12 = stablehlo.constant dense<1.0> : tensor<1xf32>
    %13 = stablehlo.divide %12, %11 : tensor<1xf32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0] : (tensor<1xf32>) -> tensor<1x131072xf32>
    %15 = stablehlo.multiply %6, %14 : tensor<1x131072xf32>
    %16 = "pestle.softmax"(%y) <{dimensions = array<i64: 1>}> : (tensor<64x4096xf32>) -> tensor<64x4096xf32>
    return %15, %16 : tensor<1x131072xf32>, tensor<64x4096xf32>
  }
}
