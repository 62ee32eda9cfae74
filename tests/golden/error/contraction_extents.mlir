// RUN: %golden %s --stderr --exit 4 -- %pestle dump %s
func.func @main(%a: tensor<4x8xf32>, %b: tensor<9x2xf32>) -> tensor<4x2xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<9x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
