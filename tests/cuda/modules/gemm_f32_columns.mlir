// SPDX-License-Identifier: Apache-2.0
// schedule: bind c.ki lane.y$
func.func @main(%a: tensor<7x1001xf32>, %b: tensor<1001x24xf32>, %c: tensor<24xf32>) -> tensor<7x24xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<7x1001xf32>, tensor<1001x24xf32>) -> tensor<7x24xf32>
  %1 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<24xf32>) -> tensor<7x24xf32>
  %2 = stablehlo.add %0, %1 : tensor<7x24xf32>
  return %2 : tensor<7x24xf32>
}
