// SPDX-License-Identifier: Apache-2.0
func.func @main(%x: tensor<64x64xf32>, %n: tensor<i64>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %0 = "pestle.extent"(%x, %n) <{dimension = 0 : i64}> : (tensor<64x64xf32>, tensor<i64>) -> tensor<64x64xf32>
  %1 = stablehlo.dot_general %0, %x, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = stablehlo.iota dim = 0 : tensor<64x64xi64>
  %3 = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<i64>) -> tensor<64x64xi64>
  %4 = stablehlo.compare LT, %2, %3, SIGNED : (tensor<64x64xi64>, tensor<64x64xi64>) -> tensor<64x64xi1>
  %5 = stablehlo.constant dense<0.0> : tensor<64x64xf32>
  %6 = stablehlo.select %4, %1, %5 : tensor<64x64xi1>, tensor<64x64xf32>
  return %1, %6 : tensor<64x64xf32>, tensor<64x64xf32>
}
