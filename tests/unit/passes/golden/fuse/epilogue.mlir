// Bias, residual and activation follow a contraction; the transpose that leaves
// rows whole is its write.
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
    %0 = "pestle.fusion"(%x, %w, %b, %r) <{label = "dot_general_add_gelu_transpose"}> ({
    ^bb0(%x_0: tensor<4x8xf32>, %w_1: tensor<8x6xf32>, %b_2: tensor<6xf32>, %r_3: tensor<4x6xf32>):
      %1 = stablehlo.dot_general %x_0, %w_1, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
      %2 = stablehlo.broadcast_in_dim %b_2, dims = [1] : (tensor<6xf32>) -> tensor<4x6xf32>
      %3 = stablehlo.add %1, %2 : tensor<4x6xf32>
      %4 = stablehlo.add %3, %r_3 : tensor<4x6xf32>
      %5 = stablehlo.constant dense<0.70710677> : tensor<4x6xf32>
      %6 = stablehlo.multiply %4, %5 : tensor<4x6xf32>
      %7 = chlo.erf %6 : tensor<4x6xf32> -> tensor<4x6xf32>
      %8 = stablehlo.constant dense<1.0> : tensor<4x6xf32>
      %9 = stablehlo.add %7, %8 : tensor<4x6xf32>
      %10 = stablehlo.constant dense<0.5> : tensor<4x6xf32>
      %11 = stablehlo.multiply %4, %10 : tensor<4x6xf32>
      %12 = stablehlo.multiply %11, %9 : tensor<4x6xf32>
      %13 = stablehlo.reshape %12 : (tensor<4x6xf32>) -> tensor<4x2x3xf32>
      %14 = stablehlo.transpose %13, dims = [1, 0, 2] : (tensor<4x2x3xf32>) -> tensor<2x4x3xf32>
      stablehlo.return %14 : tensor<2x4x3xf32>
    }) : (tensor<4x8xf32>, tensor<8x6xf32>, tensor<6xf32>, tensor<4x6xf32>) -> tensor<2x4x3xf32>
    return %0 : tensor<2x4x3xf32>
  }
}
