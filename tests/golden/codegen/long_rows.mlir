// Rows of more than the L2 holds: while one is computed the next one is asked for,
// and the lines of its results. Not where the cache holds all of them.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
func.func @main(%x: tensor<2048x512xf32>, %s: tensor<64x512xf32>) -> (tensor<2048x512xf32>, tensor<64x512xf32>) {
  %0 = "pestle.softmax"(%x) <{dimensions = array<i64: 1>}> : (tensor<2048x512xf32>) -> tensor<2048x512xf32>
  %1 = "pestle.softmax"(%s) <{dimensions = array<i64: 1>}> : (tensor<64x512xf32>) -> tensor<64x512xf32>
  return %0, %1 : tensor<2048x512xf32>, tensor<64x512xf32>
}
