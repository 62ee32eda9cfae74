// Softmax of the rows.
func.func @main(%x: tensor<65536x1000xf32>) -> tensor<65536x1000xf32> {
  %0 = "pestle.softmax"(%x) <{dimensions = array<i64: 1>}> : (tensor<65536x1000xf32>) -> tensor<65536x1000xf32>
  return %0 : tensor<65536x1000xf32>
}
