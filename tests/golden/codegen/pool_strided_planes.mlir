// A pool of planes with strides: what lies two apart is read by two vectors of what
// lies side by side and a shuffle, not gathered, at the border and at the end, too.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
func.func @main(%x: tensor<1x3x13x39xf32>) -> tensor<1x3x7x20xf32> {
  %0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %1 = "stablehlo.reduce_window"(%x, %0) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) {padding = dense<[[0, 0], [0, 0], [1, 1], [1, 1]]> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = array<i64: 1, 1, 2, 2>} : (tensor<1x3x13x39xf32>, tensor<f32>) -> tensor<1x3x7x20xf32>
  return %1 : tensor<1x3x7x20xf32>
}
