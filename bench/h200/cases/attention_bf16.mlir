// SPDX-License-Identifier: Apache-2.0
func.func @main(%q: tensor<4x16x2048x128xbf16>, %k: tensor<4x16x2048x128xbf16>, %v: tensor<4x16x2048x128xbf16>) -> tensor<4x16x2048x128xbf16> {
  %0 = "pestle.attention"(%q, %k, %v) {scale = 0.08838834764831845 : f64} : (tensor<4x16x2048x128xbf16>, tensor<4x16x2048x128xbf16>, tensor<4x16x2048x128xbf16>) -> tensor<4x16x2048x128xbf16>
  return %0 : tensor<4x16x2048x128xbf16>
}
