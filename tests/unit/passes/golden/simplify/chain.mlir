// One sweep carries a chain to its end.
func.func @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %z = stablehlo.constant dense<-0.0> : tensor<2x3xf32>
  %0 = stablehlo.add %x, %z : tensor<2x3xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %3 = stablehlo.reshape %2 : (tensor<2x3xf32>) -> tensor<6xf32>
  %4 = stablehlo.reshape %3 : (tensor<6xf32>) -> tensor<3x2xf32>
  return %4 : tensor<3x2xf32>
}
// -----
module {
  func.func public @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
    %z = stablehlo.constant dense<-0.0> : tensor<2x3xf32>
    %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %1 = stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>
    %2 = stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<3x2xf32>
    return %2 : tensor<3x2xf32>
  }
}
