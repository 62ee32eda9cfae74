// Layer norm of the rows.
func.func @main(%x: tensor<8192x8192xbf16>, %scale: tensor<8192xbf16>, %bias: tensor<8192xbf16>) -> tensor<8192x8192xbf16> {
  %0 = "pestle.layer_norm"(%x, %scale, %bias) <{dimensions = array<i64: 1>, epsilon = 1.0e-5 : f64}> : (tensor<8192x8192xbf16>, tensor<8192xbf16>, tensor<8192xbf16>) -> tensor<8192x8192xbf16>
  return %0 : tensor<8192x8192xbf16>
}
