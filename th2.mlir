func.func @main(%x: tensor<4099xf32>, %y: tensor<4099xf32>) -> (tensor<4099xcomplex<f32>>) {
  %z = stablehlo.complex %x, %y : tensor<4099xcomplex<f32>>
  %t = stablehlo.tanh %z : tensor<4099xcomplex<f32>>
  return %t : tensor<4099xcomplex<f32>>
}
