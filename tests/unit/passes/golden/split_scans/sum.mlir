// Running sums of a row: of blocks, and of the sums of the blocks.
func.func @main(%x: tensor<2x128xf32>) -> tensor<2x128xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 128>, padding = dense<[[0, 0], [127, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<2x128xf32>, tensor<f32>) -> tensor<2x128xf32>
  return %0 : tensor<2x128xf32>
}
// -----
module {
  func.func public @main(%x: tensor<2x128xf32>) -> tensor<2x128xf32> {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.constant dense<-0.0> : tensor<f32>
    %1 = stablehlo.reshape %x : (tensor<2x128xf32>) -> tensor<2x16x8xf32>
    %2 = stablehlo.reduce(%1 init: %0) applies stablehlo.add across dimensions = [2] : (tensor<2x16x8xf32>, tensor<f32>) -> tensor<2x16xf32>
    %3 = "stablehlo.reduce_window"(%2, %z) <{window_dimensions = array<i64: 1, 16>, window_strides = array<i64: 1, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [16, -1]]> : tensor<2x2xi64>}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %8 = stablehlo.add %arg0, %arg1 : tensor<f32>
      stablehlo.return %8 : tensor<f32>
    }) : (tensor<2x16xf32>, tensor<f32>) -> tensor<2x16xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x8xf32>
    %5 = "stablehlo.reduce_window"(%1, %0) <{window_dimensions = array<i64: 1, 1, 8>, window_strides = array<i64: 1, 1, 1>, base_dilations = array<i64: 1, 1, 1>, window_dilations = array<i64: 1, 1, 1>, padding = dense<[[0, 0], [0, 0], [7, 0]]> : tensor<3x2xi64>}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %8 = stablehlo.add %arg0, %arg1 : tensor<f32>
      stablehlo.return %8 : tensor<f32>
    }) : (tensor<2x16x8xf32>, tensor<f32>) -> tensor<2x16x8xf32>
    %6 = stablehlo.add %4, %5 : tensor<2x16x8xf32>
    %7 = stablehlo.reshape %6 : (tensor<2x16x8xf32>) -> tensor<2x128xf32>
    return %7 : tensor<2x128xf32>
  }
}
