// A product of matrices.
func.func @main(%a: tensor<3000x1111xbf16>, %b: tensor<1111x777xbf16>) -> tensor<3000x777xbf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<3000x1111xbf16>, tensor<1111x777xbf16>) -> tensor<3000x777xbf16>
  return %0 : tensor<3000x777xbf16>
}
