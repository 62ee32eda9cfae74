// Softmax of rows: two reductions and what follows them, in one kernel.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
func.func @main(%x: tensor<8x40xf32>) -> tensor<8x40xf32> {
  %0 = "pestle.softmax"(%x) <{dimensions = array<i64: 1>}> : (tensor<8x40xf32>) -> tensor<8x40xf32>
  return %0 : tensor<8x40xf32>
}
