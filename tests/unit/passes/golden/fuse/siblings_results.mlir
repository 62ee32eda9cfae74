// Of two folds one needs the other's end: as one kernel they have four results.
func.func @main(%x: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.constant dense<0x7F800000> : tensor<f32>
  %1 = stablehlo.reduce(%x init: %0) applies stablehlo.minimum across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = stablehlo.negate %1 : tensor<4xf32>
  %3 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %4 = stablehlo.reduce(%x init: %3) applies stablehlo.maximum across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %5 = stablehlo.subtract %4, %1 : tensor<4xf32>
  %6 = stablehlo.divide %2, %5 : tensor<4xf32>
  %7 = stablehlo.abs %6 : tensor<4xf32>
  %8 = stablehlo.tanh %6 : tensor<4xf32>
  return %5, %6, %7, %8 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
// -----
module {
  func.func public @main(%x: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %0:4 = "pestle.fusion"(%x) <{label = "reduce_reduce_negate_subtract_divide"}> ({
    ^bb0(%x_0: tensor<4x8xf32>):
      %1 = stablehlo.constant dense<0x7F800000> : tensor<f32>
      %2 = stablehlo.reduce(%x_0 init: %1) applies stablehlo.minimum across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
      %3 = stablehlo.negate %2 : tensor<4xf32>
      %4 = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %5 = stablehlo.reduce(%x_0 init: %4) applies stablehlo.maximum across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
      %6 = stablehlo.subtract %5, %2 : tensor<4xf32>
      %7 = stablehlo.divide %3, %6 : tensor<4xf32>
      %8 = stablehlo.abs %7 : tensor<4xf32>
      %9 = stablehlo.tanh %7 : tensor<4xf32>
      stablehlo.return %6, %7, %8, %9 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    }) : (tensor<4x8xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    return %0#0, %0#1, %0#2, %0#3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
}
