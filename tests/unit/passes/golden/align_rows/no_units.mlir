// Without matrix units that want runs, rows stay where they are; with them:
// tests/golden/passes/align_rows.
func.func @main(%a: tensor<64x515xbf16>, %b: tensor<515x513xbf16>) -> tensor<64x513xbf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x515xbf16>, tensor<515x513xbf16>) -> tensor<64x513xbf16>
  return %0 : tensor<64x513xbf16>
}
// -----
module {
  func.func public @main(%a: tensor<64x515xbf16>, %b: tensor<515x513xbf16>) -> tensor<64x513xbf16> {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x515xbf16>, tensor<515x513xbf16>) -> tensor<64x513xbf16>
    return %0 : tensor<64x513xbf16>
  }
}
