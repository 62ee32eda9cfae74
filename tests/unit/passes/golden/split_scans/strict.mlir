// options: strict
// What is exact is split all the same.
func.func @main(%x: tensor<64xf32>, %i: tensor<64xi32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xi32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<0> : tensor<i32>
  %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 64>, padding = dense<[[63, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %1 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 64>, padding = dense<[[63, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %2 = "stablehlo.reduce_window"(%i, %n) <{window_dimensions = array<i64: 64>, padding = dense<[[63, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %r = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %r : tensor<i32>
  }) : (tensor<64xi32>, tensor<i32>) -> tensor<64xi32>
  return %0, %1, %2 : tensor<64xf32>, tensor<64xf32>, tensor<64xi32>
}
// -----
module {
  func.func public @main(%x: tensor<64xf32>, %i: tensor<64xi32>) -> (tensor<64xf32>, tensor<64xf32>, tensor<64xi32>) {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %n = stablehlo.constant dense<0> : tensor<i32>
    %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 64>, window_strides = array<i64: 1>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[63, 0]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %r = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
    %1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %2 = stablehlo.reshape %x : (tensor<64xf32>) -> tensor<8x8xf32>
    %3 = stablehlo.reduce(%2 init: %1) applies stablehlo.maximum across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
    %4 = "stablehlo.reduce_window"(%3, %z) <{window_dimensions = array<i64: 8>, window_strides = array<i64: 1>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[8, -1]]> : tensor<1x2xi64>}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %17 = stablehlo.maximum %arg0, %arg1 : tensor<f32>
      stablehlo.return %17 : tensor<f32>
    }) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>
    %6 = "stablehlo.reduce_window"(%2, %1) <{window_dimensions = array<i64: 1, 8>, window_strides = array<i64: 1, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [7, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %17 = stablehlo.maximum %arg0, %arg1 : tensor<f32>
      stablehlo.return %17 : tensor<f32>
    }) : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
    %7 = stablehlo.maximum %5, %6 : tensor<8x8xf32>
    %8 = stablehlo.reshape %7 : (tensor<8x8xf32>) -> tensor<64xf32>
    %9 = stablehlo.constant dense<0> : tensor<i32>
    %10 = stablehlo.reshape %i : (tensor<64xi32>) -> tensor<8x8xi32>
    %11 = stablehlo.reduce(%10 init: %9) applies stablehlo.add across dimensions = [1] : (tensor<8x8xi32>, tensor<i32>) -> tensor<8xi32>
    %12 = "stablehlo.reduce_window"(%11, %n) <{window_dimensions = array<i64: 8>, window_strides = array<i64: 1>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[8, -1]]> : tensor<1x2xi64>}> ({
    ^bb0(%arg0: tensor<i32>, %arg1: tensor<i32>):
      %17 = stablehlo.add %arg0, %arg1 : tensor<i32>
      stablehlo.return %17 : tensor<i32>
    }) : (tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [0] : (tensor<8xi32>) -> tensor<8x8xi32>
    %14 = "stablehlo.reduce_window"(%10, %9) <{window_dimensions = array<i64: 1, 8>, window_strides = array<i64: 1, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [7, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%arg0: tensor<i32>, %arg1: tensor<i32>):
      %17 = stablehlo.add %arg0, %arg1 : tensor<i32>
      stablehlo.return %17 : tensor<i32>
    }) : (tensor<8x8xi32>, tensor<i32>) -> tensor<8x8xi32>
    %15 = stablehlo.add %13, %14 : tensor<8x8xi32>
    %16 = stablehlo.reshape %15 : (tensor<8x8xi32>) -> tensor<64xi32>
    return %0, %8, %16 : tensor<64xf32>, tensor<64xf32>, tensor<64xi32>
  }
}
