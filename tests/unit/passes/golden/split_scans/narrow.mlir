// Running sums of f16 are f32 until they are stored.
func.func @main(%x: tensor<64xf16>) -> tensor<64xf16> {
  %z = stablehlo.constant dense<0.0> : tensor<f16>
  %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 64>, padding = dense<[[63, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f16>, %b: tensor<f16>):
    %r = stablehlo.maximum %a, %b : tensor<f16>
    stablehlo.return %r : tensor<f16>
  }) : (tensor<64xf16>, tensor<f16>) -> tensor<64xf16>
  return %0 : tensor<64xf16>
}
// -----
module {
  func.func public @main(%x: tensor<64xf16>) -> tensor<64xf16> {
    %z = stablehlo.constant dense<0.0> : tensor<f16>
    %0 = stablehlo.convert %x : (tensor<64xf16>) -> tensor<64xf32>
    %1 = stablehlo.convert %z : (tensor<f16>) -> tensor<f32>
    %2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %3 = stablehlo.reshape %0 : (tensor<64xf32>) -> tensor<8x8xf32>
    %4 = stablehlo.reduce(%3 init: %2) applies stablehlo.maximum across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
    %5 = "stablehlo.reduce_window"(%4, %1) <{window_dimensions = array<i64: 8>, window_strides = array<i64: 1>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[8, -1]]> : tensor<1x2xi64>}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %11 = stablehlo.maximum %arg0, %arg1 : tensor<f32>
      stablehlo.return %11 : tensor<f32>
    }) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>
    %7 = "stablehlo.reduce_window"(%3, %2) <{window_dimensions = array<i64: 1, 8>, window_strides = array<i64: 1, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [7, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %11 = stablehlo.maximum %arg0, %arg1 : tensor<f32>
      stablehlo.return %11 : tensor<f32>
    }) : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
    %8 = stablehlo.maximum %6, %7 : tensor<8x8xf32>
    %9 = stablehlo.reshape %8 : (tensor<8x8xf32>) -> tensor<64xf32>
    %10 = stablehlo.convert %9 : (tensor<64xf32>) -> tensor<64xf16>
    return %10 : tensor<64xf16>
  }
}
