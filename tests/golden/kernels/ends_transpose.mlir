// A transpose through shared memory whose rows end at a number of memory: groups whose
// tile lies behind it make nothing.
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref --target-cpu simt
func.func @main(%x: tensor<3x40x150xf32>, %n: tensor<i64>) -> tensor<3x150x40xf32> {
  %0 = "pestle.extent"(%x, %n) <{dimension = 2 : i64}> : (tensor<3x40x150xf32>, tensor<i64>) -> tensor<3x40x150xf32>
  %1 = stablehlo.transpose %0, dims = [0, 2, 1] : (tensor<3x40x150xf32>) -> tensor<3x150x40xf32>
  return %1 : tensor<3x150x40xf32>
}
