// RUN: %golden %s --stderr --exit 4 -- %pestle dump %s
func.func @main(%x: tensor<4x0xf32>) -> tensor<4x2xf32> {
  %0 = "pestle.adaptive_max_pool"(%x) <{dimensions = array<i64: 1>, output_sizes = array<i64: 2>}> : (tensor<4x0xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
