// SPDX-License-Identifier: Apache-2.0
// Products of bytes by matrix units of subgroups; b is joined to words from rows of k.
// schedule: shared_tile c .* units
func.func @main(%a: tensor<70x96xi8>, %b: tensor<96x72xui8>) -> tensor<70x72xi32> {
  %y = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<70x96xi8>, tensor<96x72xui8>) -> tensor<70x72xi32>
  return %y : tensor<70x72xi32>
}
