// SPDX-License-Identifier: Apache-2.0
// schedule: shared_tile c .* teams async$
func.func @main(%a: tensor<260x300xf32>, %b: tensor<300x390xf32>) -> tensor<260x390xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<260x300xf32>, tensor<300x390xf32>) -> tensor<260x390xf32>
  %1 = stablehlo.negate %0 : tensor<260x390xf32>
  return %1 : tensor<260x390xf32>
}
