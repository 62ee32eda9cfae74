// The 40 largest of each row.
func.func @main(%x: tensor<4096x1000xf32>) -> (tensor<4096x40xf32>, tensor<4096x40xi32>) {
  %0:2 = "chlo.top_k"(%x) <{k = 40 : i64}> : (tensor<4096x1000xf32>) -> (tensor<4096x40xf32>, tensor<4096x40xi32>)
  return %0#0, %0#1 : tensor<4096x40xf32>, tensor<4096x40xi32>
}
