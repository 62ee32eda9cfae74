// options: no-fuse
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>, %b: tensor<6xf32>, %r: tensor<4x6xf32>) -> tensor<2x4x3xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %1 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<6xf32>) -> tensor<4x6xf32>
  %2 = stablehlo.add %0, %1 : tensor<4x6xf32>
  %3 = stablehlo.add %2, %r : tensor<4x6xf32>
  %4 = "pestle.gelu"(%3) <{approximate = false}> : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %5 = stablehlo.reshape %4 : (tensor<4x6xf32>) -> tensor<4x2x3xf32>
  %6 = stablehlo.transpose %5, dims = [1, 0, 2] : (tensor<4x2x3xf32>) -> tensor<2x4x3xf32>
  return %6 : tensor<2x4x3xf32>
}
// -----
module {
  func.func public @main(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>, %b: tensor<6xf32>, %r: tensor<4x6xf32>) -> tensor<2x4x3xf32> {
    %0 = "pestle.fusion"(%x, %w) <{label = "dot_general"}> ({
    ^bb0(%x_0: tensor<4x8xf32>, %w_1: tensor<8x6xf32>):
      %7 = stablehlo.dot_general %x_0, %w_1, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
      stablehlo.return %7 : tensor<4x6xf32>
    }) : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    %1 = "pestle.fusion"(%b) <{label = "broadcast_in_dim"}> ({
    ^bb0(%b_0: tensor<6xf32>):
      %7 = stablehlo.broadcast_in_dim %b_0, dims = [1] : (tensor<6xf32>) -> tensor<4x6xf32>
      stablehlo.return %7 : tensor<4x6xf32>
    }) : (tensor<6xf32>) -> tensor<4x6xf32>
    %2 = "pestle.fusion"(%0, %1) <{label = "add"}> ({
    ^bb0(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>):
      %7 = stablehlo.add %arg0, %arg1 : tensor<4x6xf32>
      stablehlo.return %7 : tensor<4x6xf32>
    }) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %3 = "pestle.fusion"(%2, %r) <{label = "add"}> ({
    ^bb0(%arg0: tensor<4x6xf32>, %r_0: tensor<4x6xf32>):
      %7 = stablehlo.add %arg0, %r_0 : tensor<4x6xf32>
      stablehlo.return %7 : tensor<4x6xf32>
    }) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %4 = "pestle.fusion"(%3) <{label = "gelu"}> ({
    ^bb0(%arg0: tensor<4x6xf32>):
      %7 = stablehlo.constant dense<0.70710677> : tensor<4x6xf32>
      %8 = stablehlo.multiply %arg0, %7 : tensor<4x6xf32>
      %9 = chlo.erf %8 : tensor<4x6xf32> -> tensor<4x6xf32>
      %10 = stablehlo.constant dense<1.0> : tensor<4x6xf32>
      %11 = stablehlo.add %9, %10 : tensor<4x6xf32>
      %12 = stablehlo.constant dense<0.5> : tensor<4x6xf32>
      %13 = stablehlo.multiply %arg0, %12 : tensor<4x6xf32>
      %14 = stablehlo.multiply %13, %11 : tensor<4x6xf32>
      stablehlo.return %14 : tensor<4x6xf32>
    }) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %5 = stablehlo.reshape %4 : (tensor<4x6xf32>) -> tensor<4x2x3xf32>
    %6 = "pestle.fusion"(%5) <{label = "transpose"}> ({
    ^bb0(%arg0: tensor<4x2x3xf32>):
      %7 = stablehlo.transpose %arg0, dims = [1, 0, 2] : (tensor<4x2x3xf32>) -> tensor<2x4x3xf32>
      stablehlo.return %7 : tensor<2x4x3xf32>
    }) : (tensor<4x2x3xf32>) -> tensor<2x4x3xf32>
    return %6 : tensor<2x4x3xf32>
  }
}
