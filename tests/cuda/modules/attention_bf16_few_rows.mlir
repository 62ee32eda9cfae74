// SPDX-License-Identifier: Apache-2.0
// Four rows, of more columns than other groups hold.
// schedule: flash_attention_mma .* [0-9]+ teams async$
// also: ref,cpu=simt
func.func @main(%q: tensor<2x2x4x192xbf16>, %k: tensor<2x2x100x192xbf16>, %v: tensor<2x2x100x192xbf16>) -> tensor<2x2x4x192xbf16> {
  %0 = "pestle.attention"(%q, %k, %v) {scale = 0.07 : f64} : (tensor<2x2x4x192xbf16>, tensor<2x2x100x192xbf16>, tensor<2x2x100x192xbf16>) -> tensor<2x2x4x192xbf16>
  return %0 : tensor<2x2x4x192xbf16>
}
