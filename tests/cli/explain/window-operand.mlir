// SPDX-License-Identifier: Apache-2.0
func.func @main(%x: tensor<1x32x32x8xf32>) -> (tensor<1x16x16x8xf32>) {
  %e = stablehlo.tanh %x : tensor<1x32x32x8xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %w = "stablehlo.reduce_window"(%e, %z) <{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %m = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }) : (tensor<1x32x32x8xf32>, tensor<f32>) -> tensor<1x16x16x8xf32>
  return %w : tensor<1x16x16x8xf32>
}
