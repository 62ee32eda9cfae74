// RUN: %golden %s --stderr --exit 4 -- %pestle dump %s
func.func @main(%x: tensor<2x3xf32>) -> tensor<5xf32> {
  %0 = stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
