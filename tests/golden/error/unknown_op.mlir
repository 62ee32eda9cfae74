// RUN: %golden %s --stderr --exit 3 -- %pestle dump %s
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sinh %x : tensor<4xf32>
  %1 = "stablehlo.cosh"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
