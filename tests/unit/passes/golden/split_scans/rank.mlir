// The dims on either side become one each.
func.func @main(%x: tensor<2x2x3x40x3x2x2xi32>) -> tensor<2x2x3x40x3x2x2xi32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 1, 1, 40, 1, 1, 1>, padding = dense<[[0, 0], [0, 0], [0, 0], [39, 0], [0, 0], [0, 0], [0, 0]]> : tensor<7x2xi64>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %r = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %r : tensor<i32>
  }) : (tensor<2x2x3x40x3x2x2xi32>, tensor<i32>) -> tensor<2x2x3x40x3x2x2xi32>
  return %0 : tensor<2x2x3x40x3x2x2xi32>
}
// -----
module {
  func.func public @main(%x: tensor<2x2x3x40x3x2x2xi32>) -> tensor<2x2x3x40x3x2x2xi32> {
    %z = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.reshape %x : (tensor<2x2x3x40x3x2x2xi32>) -> tensor<12x40x12xi32>
    %1 = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.reshape %0 : (tensor<12x40x12xi32>) -> tensor<12x5x8x12xi32>
    %3 = stablehlo.reduce(%2 init: %1) applies stablehlo.add across dimensions = [2] : (tensor<12x5x8x12xi32>, tensor<i32>) -> tensor<12x5x12xi32>
    %4 = "stablehlo.reduce_window"(%3, %z) <{window_dimensions = array<i64: 1, 5, 1>, window_strides = array<i64: 1, 1, 1>, base_dilations = array<i64: 1, 1, 1>, window_dilations = array<i64: 1, 1, 1>, padding = dense<[[0, 0], [5, -1], [0, 0]]> : tensor<3x2xi64>}> ({
    ^bb0(%arg0: tensor<i32>, %arg1: tensor<i32>):
      %10 = stablehlo.add %arg0, %arg1 : tensor<i32>
      stablehlo.return %10 : tensor<i32>
    }) : (tensor<12x5x12xi32>, tensor<i32>) -> tensor<12x5x12xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1, 3] : (tensor<12x5x12xi32>) -> tensor<12x5x8x12xi32>
    %6 = "stablehlo.reduce_window"(%2, %1) <{window_dimensions = array<i64: 1, 1, 8, 1>, window_strides = array<i64: 1, 1, 1, 1>, base_dilations = array<i64: 1, 1, 1, 1>, window_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [0, 0], [7, 0], [0, 0]]> : tensor<4x2xi64>}> ({
    ^bb0(%arg0: tensor<i32>, %arg1: tensor<i32>):
      %10 = stablehlo.add %arg0, %arg1 : tensor<i32>
      stablehlo.return %10 : tensor<i32>
    }) : (tensor<12x5x8x12xi32>, tensor<i32>) -> tensor<12x5x8x12xi32>
    %7 = stablehlo.add %5, %6 : tensor<12x5x8x12xi32>
    %8 = stablehlo.reshape %7 : (tensor<12x5x8x12xi32>) -> tensor<12x40x12xi32>
    %9 = stablehlo.reshape %8 : (tensor<12x40x12xi32>) -> tensor<2x2x3x40x3x2x2xi32>
    return %9 : tensor<2x2x3x40x3x2x2xi32>
  }
}
