// SPDX-License-Identifier: Apache-2.0
// schedule: shared_tile c .* 2 units async$
func.func @main(%a: tensor<129x511xf16>, %b: tensor<500x511xf16>) -> tensor<129x500xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] : (tensor<129x511xf16>, tensor<500x511xf16>) -> tensor<129x500xf32>
  return %0 : tensor<129x500xf32>
}
