// From the end, without the own element, along columns; what the blocks sum to
// is long enough to be split again.
func.func @main(%x: tensor<1000x3xi32>) -> tensor<1000x3xi32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1000, 1>, padding = dense<[[-1, 1000], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %r = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %r : tensor<i32>
  }) : (tensor<1000x3xi32>, tensor<i32>) -> tensor<1000x3xi32>
  return %0 : tensor<1000x3xi32>
}
// -----
module {
  func.func public @main(%x: tensor<1000x3xi32>) -> tensor<1000x3xi32> {
    %z = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.pad %x, %z, low = [-1, 0], high = [1, 0], interior = [0, 0] : (tensor<1000x3xi32>, tensor<i32>) -> tensor<1000x3xi32>
    %1 = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.reshape %0 : (tensor<1000x3xi32>) -> tensor<125x8x3xi32>
    %3 = stablehlo.reduce(%2 init: %1) applies stablehlo.add across dimensions = [1] : (tensor<125x8x3xi32>, tensor<i32>) -> tensor<125x3xi32>
    %4 = stablehlo.pad %3, %z, low = [-1, 0], high = [1, 0], interior = [0, 0] : (tensor<125x3xi32>, tensor<i32>) -> tensor<125x3xi32>
    %5 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.pad %4, %5, low = [0, 0], high = [3, 0], interior = [0, 0] : (tensor<125x3xi32>, tensor<i32>) -> tensor<128x3xi32>
    %7 = stablehlo.reshape %6 : (tensor<128x3xi32>) -> tensor<16x8x3xi32>
    %8 = stablehlo.reduce(%7 init: %5) applies stablehlo.add across dimensions = [1] : (tensor<16x8x3xi32>, tensor<i32>) -> tensor<16x3xi32>
    %9 = "stablehlo.reduce_window"(%8, %z) <{window_dimensions = array<i64: 16, 1>, window_strides = array<i64: 1, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>, padding = dense<[[-1, 16], [0, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%arg0: tensor<i32>, %arg1: tensor<i32>):
      %19 = stablehlo.add %arg0, %arg1 : tensor<i32>
      stablehlo.return %19 : tensor<i32>
    }) : (tensor<16x3xi32>, tensor<i32>) -> tensor<16x3xi32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 2] : (tensor<16x3xi32>) -> tensor<16x8x3xi32>
    %11 = "stablehlo.reduce_window"(%7, %5) <{window_dimensions = array<i64: 1, 8, 1>, window_strides = array<i64: 1, 1, 1>, base_dilations = array<i64: 1, 1, 1>, window_dilations = array<i64: 1, 1, 1>, padding = dense<[[0, 0], [0, 7], [0, 0]]> : tensor<3x2xi64>}> ({
    ^bb0(%arg0: tensor<i32>, %arg1: tensor<i32>):
      %19 = stablehlo.add %arg0, %arg1 : tensor<i32>
      stablehlo.return %19 : tensor<i32>
    }) : (tensor<16x8x3xi32>, tensor<i32>) -> tensor<16x8x3xi32>
    %12 = stablehlo.add %10, %11 : tensor<16x8x3xi32>
    %13 = stablehlo.reshape %12 : (tensor<16x8x3xi32>) -> tensor<128x3xi32>
    %14 = stablehlo.slice %13 [0:125, 0:3] : (tensor<128x3xi32>) -> tensor<125x3xi32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [0, 2] : (tensor<125x3xi32>) -> tensor<125x8x3xi32>
    %16 = "stablehlo.reduce_window"(%2, %1) <{window_dimensions = array<i64: 1, 8, 1>, window_strides = array<i64: 1, 1, 1>, base_dilations = array<i64: 1, 1, 1>, window_dilations = array<i64: 1, 1, 1>, padding = dense<[[0, 0], [0, 7], [0, 0]]> : tensor<3x2xi64>}> ({
    ^bb0(%arg0: tensor<i32>, %arg1: tensor<i32>):
      %19 = stablehlo.add %arg0, %arg1 : tensor<i32>
      stablehlo.return %19 : tensor<i32>
    }) : (tensor<125x8x3xi32>, tensor<i32>) -> tensor<125x8x3xi32>
    %17 = stablehlo.add %15, %16 : tensor<125x8x3xi32>
    %18 = stablehlo.reshape %17 : (tensor<125x8x3xi32>) -> tensor<1000x3xi32>
    return %18 : tensor<1000x3xi32>
  }
}
