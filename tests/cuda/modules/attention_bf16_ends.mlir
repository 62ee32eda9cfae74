// SPDX-License-Identifier: Apache-2.0
// Keys from number n on are masked, rows from r on are nobody's.
// schedule: flash_attention_mma .* [0-9]+ async$
// also: ref,cpu=simt
func.func @main(%q: tensor<2x2x200x64xbf16>, %k: tensor<2x2x130x64xbf16>, %v: tensor<2x2x130x64xbf16>, %a: tensor<i8>) -> tensor<2x2x200x64xbf16> {
  %w = stablehlo.convert %a : (tensor<i8>) -> tensor<i64>
  %n = stablehlo.abs %w : tensor<i64>
  %j = stablehlo.iota dim = 3 : tensor<2x2x200x130xi64>
  %nb = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<i64>) -> tensor<2x2x200x130xi64>
  %c = stablehlo.compare LT, %j, %nb : (tensor<2x2x200x130xi64>, tensor<2x2x200x130xi64>) -> tensor<2x2x200x130xi1>
  %0 = "pestle.attention"(%q, %k, %v, %c) {scale = 0.125 : f64} : (tensor<2x2x200x64xbf16>, tensor<2x2x130x64xbf16>, tensor<2x2x130x64xbf16>, tensor<2x2x200x130xi1>) -> tensor<2x2x200x64xbf16>
  return %0 : tensor<2x2x200x64xbf16>
}
