// SPDX-License-Identifier: Apache-2.0
// schedule: flash_attention_mma .* [0-9]+ async$
// also: ref,cpu=simt
func.func @main(%q: tensor<1x2x40x33xbf16>, %k: tensor<1x2x81x33xbf16>, %v: tensor<1x2x81x35xbf16>, %m: tensor<1x2x40x81xbf16>) -> tensor<1x2x40x35xbf16> {
  %0 = "pestle.attention"(%q, %k, %v, %m) {scale = 0.17407765595569785 : f64} : (tensor<1x2x40x33xbf16>, tensor<1x2x81x33xbf16>, tensor<1x2x81x35xbf16>, tensor<1x2x40x81xbf16>) -> tensor<1x2x40x35xbf16>
  return %0 : tensor<1x2x40x35xbf16>
}
