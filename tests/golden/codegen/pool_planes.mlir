// A pool of planes whose windows overlap: lanes go along the width, and all of a tile's
// taps are in the code. Rows of windows are reduced apart, as those above each other
// share them, and the border is tested for where it is.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
func.func @main(%x: tensor<1x3x12x20xf32>) -> tensor<1x3x12x20xf32> {
  %0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %1 = "stablehlo.reduce_window"(%x, %0) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) {padding = dense<[[0, 0], [0, 0], [1, 1], [1, 1]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = array<i64: 1, 1, 1, 1>} : (tensor<1x3x12x20xf32>, tensor<f32>) -> tensor<1x3x12x20xf32>
  return %1 : tensor<1x3x12x20xf32>
}
