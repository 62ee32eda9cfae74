// Softmax of the rows.
func.func @main(%x: tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16> {
  %0 = "pestle.softmax"(%x) <{dimensions = array<i64: 1>}> : (tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16>
  return %0 : tensor<8192x8192xbf16>
}
