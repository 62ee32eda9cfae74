// SPDX-License-Identifier: Apache-2.0
// schedule: flash_attention_mma .* [0-9]+ async$
// also: ref,cpu=simt
func.func @main(%q: tensor<1x2x70x40xf16>, %k: tensor<1x2x90x40xf16>, %v: tensor<1x2x90x24xf16>) -> tensor<1x2x70x24xf16> {
  %0 = "pestle.attention"(%q, %k, %v) {scale = 0.15811388300841897 : f64} : (tensor<1x2x70x40xf16>, tensor<1x2x90x40xf16>, tensor<1x2x90x24xf16>) -> tensor<1x2x70x24xf16>
  return %0 : tensor<1x2x70x24xf16>
}
