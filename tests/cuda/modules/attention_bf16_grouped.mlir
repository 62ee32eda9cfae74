// SPDX-License-Identifier: Apache-2.0
// schedule: flash_attention_mma .* [0-9]+ async$
// also: ref,cpu=simt
func.func @main(%q: tensor<1x4x40x32xbf16>, %k: tensor<1x2x80x32xbf16>, %v: tensor<1x2x80x32xbf16>) -> tensor<1x4x40x32xbf16> {
  %kb = stablehlo.broadcast_in_dim %k, dims = [0, 1, 3, 4] : (tensor<1x2x80x32xbf16>) -> tensor<1x2x2x80x32xbf16>
  %kr = stablehlo.reshape %kb : (tensor<1x2x2x80x32xbf16>) -> tensor<1x4x80x32xbf16>
  %vb = stablehlo.broadcast_in_dim %v, dims = [0, 1, 3, 4] : (tensor<1x2x80x32xbf16>) -> tensor<1x2x2x80x32xbf16>
  %vr = stablehlo.reshape %vb : (tensor<1x2x2x80x32xbf16>) -> tensor<1x4x80x32xbf16>
  %0 = "pestle.attention"(%q, %kr, %vr) {scale = 0.1767766952966369 : f64} : (tensor<1x4x40x32xbf16>, tensor<1x4x80x32xbf16>, tensor<1x4x80x32xbf16>) -> tensor<1x4x40x32xbf16>
  return %0 : tensor<1x4x40x32xbf16>
}
