// RUN: %golden %s --stderr --exit 4 -- %pestle dump %s
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %z : tensor<4xf32>
  return %0 : tensor<4xf32>
}
