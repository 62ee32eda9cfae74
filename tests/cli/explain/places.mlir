// SPDX-License-Identifier: Apache-2.0
func.func @main(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>) {
  %t0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %p0 = stablehlo.add %x, %t0 : tensor<64x64xf32>
  %t1 = stablehlo.transpose %p0, dims = [1, 0] : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %p1 = stablehlo.add %p0, %t1 : tensor<64x64xf32>
  %t2 = stablehlo.transpose %p1, dims = [1, 0] : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %p2 = stablehlo.add %p1, %t2 : tensor<64x64xf32>
  %t3 = stablehlo.transpose %p2, dims = [1, 0] : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %p3 = stablehlo.add %p2, %t3 : tensor<64x64xf32>
  %t4 = stablehlo.transpose %p3, dims = [1, 0] : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %p4 = stablehlo.add %p3, %t4 : tensor<64x64xf32>
  %t5 = stablehlo.transpose %p4, dims = [1, 0] : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %p5 = stablehlo.add %p4, %t5 : tensor<64x64xf32>
  return %p5 : tensor<64x64xf32>
}
