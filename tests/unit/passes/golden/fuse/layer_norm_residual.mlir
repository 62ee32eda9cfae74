// The sum in front of a layer norm is a second result of its kernel.
func.func @main(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.add %x, %y : tensor<4x8xf32>
  %1 = "pestle.layer_norm"(%0, %g, %b) <{dimensions = array<i64: 1>, epsilon = 1.0e-05 : f64}> : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %3 = stablehlo.add %2, %0 : tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}
// -----
module {
  func.func public @main(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
    %0:2 = "pestle.fusion"(%x, %y, %g, %b) <{label = "layer_norm_add"}> ({
    ^bb0(%x_0: tensor<4x8xf32>, %y_1: tensor<4x8xf32>, %g_2: tensor<8xf32>, %b_3: tensor<8xf32>):
      %2 = stablehlo.add %x_0, %y_1 : tensor<4x8xf32>
      %3 = stablehlo.constant dense<0.0> : tensor<f32>
      %4 = stablehlo.reduce(%2 init: %3) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
      %5 = stablehlo.constant dense<0.125> : tensor<4xf32>
      %6 = stablehlo.multiply %4, %5 : tensor<4xf32>
      %7 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
      %8 = stablehlo.subtract %2, %7 : tensor<4x8xf32>
      %9 = stablehlo.broadcast_in_dim %g_2, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
      %10 = stablehlo.multiply %8, %8 : tensor<4x8xf32>
      %11 = stablehlo.constant dense<0.0> : tensor<f32>
      %12 = stablehlo.reduce(%10 init: %11) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
      %13 = stablehlo.constant dense<0.125> : tensor<4xf32>
      %14 = stablehlo.multiply %12, %13 : tensor<4xf32>
      %15 = stablehlo.constant dense<1.0e-05> : tensor<4xf32>
      %16 = stablehlo.add %14, %15 : tensor<4xf32>
      %17 = stablehlo.rsqrt %16 : tensor<4xf32>
      %18 = stablehlo.broadcast_in_dim %17, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
      %19 = stablehlo.multiply %8, %18 : tensor<4x8xf32>
      %20 = stablehlo.multiply %19, %9 : tensor<4x8xf32>
      %21 = stablehlo.broadcast_in_dim %b_3, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
      %22 = stablehlo.add %20, %21 : tensor<4x8xf32>
      stablehlo.return %2, %22 : tensor<4x8xf32>, tensor<4x8xf32>
    }) : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
    %1 = "pestle.fusion"(%0#1, %w, %0#0) <{label = "dot_general_add"}> ({
    ^bb0(%arg0: tensor<4x8xf32>, %w_0: tensor<8x8xf32>, %arg1: tensor<4x8xf32>):
      %2 = stablehlo.dot_general %arg0, %w_0, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %3 = stablehlo.add %2, %arg1 : tensor<4x8xf32>
      stablehlo.return %3 : tensor<4x8xf32>
    }) : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    return %1 : tensor<4x8xf32>
  }
}
