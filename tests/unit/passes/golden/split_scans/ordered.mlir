// options: strict
// The sum keeps the order of its terms: a loop over blocks. From the end it stays
// whole.
func.func @main(%x: tensor<3x200xf32>) -> (tensor<3x200xf32>, tensor<3x200xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 200>, padding = dense<[[0, 0], [199, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<3x200xf32>, tensor<f32>) -> tensor<3x200xf32>
  %1 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 200>, padding = dense<[[0, 0], [0, 199]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<3x200xf32>, tensor<f32>) -> tensor<3x200xf32>
  return %0, %1 : tensor<3x200xf32>, tensor<3x200xf32>
}
// -----
module {
  func.func public @main(%x: tensor<3x200xf32>) -> (tensor<3x200xf32>, tensor<3x200xf32>) {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.constant dense<-0.0> : tensor<f32>
    %1 = stablehlo.pad %x, %0, low = [0, 0], high = [0, 24], interior = [0, 0] : (tensor<3x200xf32>, tensor<f32>) -> tensor<3x224xf32>
    %2 = stablehlo.constant dense<0> : tensor<i64>
    %3 = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<3x1xf32>
    %4:3 = stablehlo.while(%arg0 = %2, %arg1 = %1, %arg2 = %3) : tensor<i64>, tensor<3x224xf32>, tensor<3x1xf32>
    cond {
      %7 = stablehlo.constant dense<224> : tensor<i64>
      %8 = stablehlo.compare LT, %arg0, %7, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %8 : tensor<i1>
    } do {
      %7 = stablehlo.constant dense<0> : tensor<i64>
      %8 = stablehlo.constant dense<32> : tensor<i64>
      %9 = stablehlo.dynamic_slice %arg1, %7, %arg0, sizes = [3, 32] : (tensor<3x224xf32>, tensor<i64>, tensor<i64>) -> tensor<3x32xf32>
      %10 = stablehlo.concatenate %arg2, %9, dim = 1 : (tensor<3x1xf32>, tensor<3x32xf32>) -> tensor<3x33xf32>
      %11 = "stablehlo.reduce_window"(%10, %0) <{window_dimensions = array<i64: 1, 33>, window_strides = array<i64: 1, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [31, 0]]> : tensor<2x2xi64>}> ({
      ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
        %15 = stablehlo.add %arg3, %arg4 : tensor<f32>
        stablehlo.return %15 : tensor<f32>
      }) : (tensor<3x33xf32>, tensor<f32>) -> tensor<3x32xf32>
      %12 = stablehlo.add %arg0, %8 : tensor<i64>
      %13 = stablehlo.dynamic_update_slice %arg1, %11, %7, %arg0 : (tensor<3x224xf32>, tensor<3x32xf32>, tensor<i64>, tensor<i64>) -> tensor<3x224xf32>
      %14 = stablehlo.slice %11 [0:3, 31:32] : (tensor<3x32xf32>) -> tensor<3x1xf32>
      stablehlo.return %12, %13, %14 : tensor<i64>, tensor<3x224xf32>, tensor<3x1xf32>
    }
    %5 = stablehlo.slice %4#1 [0:3, 0:200] : (tensor<3x224xf32>) -> tensor<3x200xf32>
    %6 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 200>, window_strides = array<i64: 1, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [0, 199]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %r = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) : (tensor<3x200xf32>, tensor<f32>) -> tensor<3x200xf32>
    return %5, %6 : tensor<3x200xf32>, tensor<3x200xf32>
  }
}
