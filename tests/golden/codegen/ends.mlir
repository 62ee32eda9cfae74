// Groups whose axis ends at a number of memory: some make many tiles in a loop that
// stops there, rather than each tile a group that asks. What masks them is whole.
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref --target-cpu wide
func.func @main(%x: tensor<4096x8xf32>, %n: tensor<i64>, %w: tensor<8x64xf32>) -> tensor<4096x64xf32> {
  %0 = "pestle.extent"(%x, %n) <{dimension = 0 : i64}> : (tensor<4096x8xf32>, tensor<i64>) -> tensor<4096x8xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<4096x8xf32>, tensor<8x64xf32>) -> tensor<4096x64xf32>
  %2 = stablehlo.iota dim = 0 : tensor<4096x64xi64>
  %3 = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<i64>) -> tensor<4096x64xi64>
  %4 = stablehlo.compare LT, %2, %3, SIGNED : (tensor<4096x64xi64>, tensor<4096x64xi64>) -> tensor<4096x64xi1>
  %z = stablehlo.constant dense<0.0> : tensor<4096x64xf32>
  %5 = stablehlo.select %4, %1, %z : tensor<4096x64xi1>, tensor<4096x64xf32>
  return %5 : tensor<4096x64xf32>
}
