// SPDX-License-Identifier: Apache-2.0
// schedule: flash_attention_mma .* [0-9]+ async$
// also: ref,cpu=simt
func.func @main(%q: tensor<2x2x200x64xbf16>, %k: tensor<2x2x130x64xbf16>, %v: tensor<2x2x130x64xbf16>) -> tensor<2x2x200x64xbf16> {
  %i = stablehlo.iota dim = 2 : tensor<2x2x200x130xi32>
  %j = stablehlo.iota dim = 3 : tensor<2x2x200x130xi32>
  %c = stablehlo.compare LT, %i, %j : (tensor<2x2x200x130xi32>, tensor<2x2x200x130xi32>) -> tensor<2x2x200x130xi1>
  %ninf = stablehlo.constant dense<0xFF80> : tensor<2x2x200x130xbf16>
  %z = stablehlo.constant dense<0.0> : tensor<2x2x200x130xbf16>
  %m = stablehlo.select %c, %ninf, %z : tensor<2x2x200x130xi1>, tensor<2x2x200x130xbf16>
  %0 = "pestle.attention"(%q, %k, %v, %m) {scale = 0.125 : f64} : (tensor<2x2x200x64xbf16>, tensor<2x2x130x64xbf16>, tensor<2x2x130x64xbf16>, tensor<2x2x200x130xbf16>) -> tensor<2x2x200x64xbf16>
  return %0 : tensor<2x2x200x64xbf16>
}
