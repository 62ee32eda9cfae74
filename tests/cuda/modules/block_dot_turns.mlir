// More columns than groups that run at once: a group takes turns at them, and asks for the
// weights of the next turn before it ends one.
// explain: ^kernel \d+: block_dots_\d+$
// also: ref,cpu=simt90
// capability: 90
func.func @main(%x: tensor<1x128xf16>, %g: tensor<128xf16>, %w: tensor<68001x64xui8>, %s: tensor<68001x4xf16>) -> tensor<1x68001xf16> {
  %n = "pestle.rms_norm"(%x, %g) <{dimensions = array<i64: 1>, epsilon = 1.0e-5 : f64}> : (tensor<1x128xf16>, tensor<128xf16>) -> tensor<1x128xf16>
  %y = "pestle.block_dot"(%n, %w, %s) {bits = 4 : i64, block = 32 : i64, accuracy = 4 : i64} : (tensor<1x128xf16>, tensor<68001x64xui8>, tensor<68001x4xf16>) -> tensor<1x68001xf16>
  return %y : tensor<1x68001xf16>
}
