// SPDX-License-Identifier: Apache-2.0
// Softmax of rows, which becomes one kernel on every target. The other files of
// this folder are what `pestle dump --stage source` prints for it;
// tests/cli/softmax_test.py holds them against the command.
func.func @main(%x: tensor<64x1000xf32>) -> tensor<64x1000xf32> {
  %0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %1 = stablehlo.reduce(%x init: %0) applies stablehlo.maximum across dimensions = [1] : (tensor<64x1000xf32>, tensor<f32>) -> tensor<64xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<64xf32>) -> tensor<64x1000xf32>
  %3 = stablehlo.subtract %x, %2 : tensor<64x1000xf32>
  %4 = stablehlo.exponential %3 : tensor<64x1000xf32>
  %5 = stablehlo.constant dense<0.0> : tensor<f32>
  %6 = stablehlo.reduce(%4 init: %5) applies stablehlo.add across dimensions = [1] : (tensor<64x1000xf32>, tensor<f32>) -> tensor<64xf32>
  %7 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<64xf32>) -> tensor<64x1000xf32>
  %8 = stablehlo.divide %4, %7 : tensor<64x1000xf32>
  return %8 : tensor<64x1000xf32>
}
