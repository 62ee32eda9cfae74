// SPDX-License-Identifier: Apache-2.0
// One row, whose keys are shared by subgroups; the number of keys is data.
// schedule: flash_attention_mma .* [0-9]+ teams async$
// also: ref,cpu=simt
func.func @main(%q: tensor<2x3x1x72xf16>, %k: tensor<2x3x333x72xf16>, %v: tensor<2x3x333x72xf16>, %a: tensor<i8>) -> tensor<2x3x1x72xf16> {
  %w = stablehlo.convert %a : (tensor<i8>) -> tensor<i64>
  %n = stablehlo.abs %w : tensor<i64>
  %j = stablehlo.iota dim = 3 : tensor<2x3x1x333xi64>
  %nb = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<i64>) -> tensor<2x3x1x333xi64>
  %c = stablehlo.compare LE, %j, %nb : (tensor<2x3x1x333xi64>, tensor<2x3x1x333xi64>) -> tensor<2x3x1x333xi1>
  %0 = "pestle.attention"(%q, %k, %v, %c) {scale = 0.125 : f64} : (tensor<2x3x1x72xf16>, tensor<2x3x333x72xf16>, tensor<2x3x333x72xf16>, tensor<2x3x1x333xi1>) -> tensor<2x3x1x72xf16>
  return %0 : tensor<2x3x1x72xf16>
}
