!q = !quant.uniform<i8:f32, 0.5:3>
!axis = !quant.uniform<i8<-100:100>:f32:0, {0.5, 0.25:1}>
module @quantised {
  func.func @main(%a: tensor<2x4xf32>, %b: tensor<2x4x!q>) -> (tensor<2xf32>, tensor<2x4xf32>) {
    %0 = stablehlo.uniform_quantize %a : (tensor<2x4xf32>) -> tensor<2x4x!q>
    %1 = stablehlo.add %0, %b : tensor<2x4x!quant.uniform<i8:f32, 0.5:3>>
    %2 = stablehlo.constant() <{value = dense<3> : tensor<i8>}> : () -> tensor<!q>
    %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.add across dimensions = [1] {my.note} : (tensor<2x4x!q>, tensor<!q>) -> tensor<2x!q>
    %4 = stablehlo.uniform_dequantize %3 : (tensor<2x!q>) -> tensor<2xf32>
    %5 = stablehlo.uniform_quantize %a : (tensor<2x4xf32>) -> tensor<2x4x!axis>
    %named = stablehlo.uniform_dequantize %5 : (tensor<2x4x!axis>) -> tensor<2x4xf32>
    return %4, %named : tensor<2xf32>, tensor<2x4xf32>
  }
}
