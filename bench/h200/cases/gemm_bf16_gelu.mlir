// A product of matrices, a bias and GELU.
func.func @main(%a: tensor<4096x4096xbf16>, %b: tensor<4096x16384xbf16>, %c: tensor<16384xbf16>) -> tensor<4096x16384xbf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4096x4096xbf16>, tensor<4096x16384xbf16>) -> tensor<4096x16384xbf16>
  %1 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<16384xbf16>) -> tensor<4096x16384xbf16>
  %2 = stablehlo.add %0, %1 : tensor<4096x16384xbf16>
  %3 = "pestle.gelu"(%2) : (tensor<4096x16384xbf16>) -> tensor<4096x16384xbf16>
  return %3 : tensor<4096x16384xbf16>
}
