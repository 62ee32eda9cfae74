// SPDX-License-Identifier: Apache-2.0
// A window over all that is in front, of a row that is no short one: one kernel.
// explain: ^kernel 0: running_0$
// also: ref,cpu=simt
func.func @main(%x: tensor<40x992xf32>) -> tensor<40x992xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %z) <{padding = dense<[[0, 0], [991, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 992>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<40x992xf32>, tensor<f32>) -> tensor<40x992xf32>
  return %0 : tensor<40x992xf32>
}
