// Denormal weights beside larger ones are zeros; where all are small they stay, as
// do operands of other ops.
func.func @main(%x: tensor<1x4xf32>, %y: tensor<1x2xf32>, %z: tensor<2xf32>) -> (tensor<1x1xf32>, tensor<1x1xf32>, tensor<2xf32>) {
  %a = stablehlo.constant dense<[[1.0], [1.0e-40], [-2.0], [-1.0e-40]]> : tensor<4x1xf32>
  %b = stablehlo.constant dense<[[1.0e-40], [1.17549435E-38]]> : tensor<2x1xf32>
  %c = stablehlo.constant dense<[1.0, 1.0e-40]> : tensor<2xf32>
  %0 = stablehlo.dot_general %x, %a, contracting_dims = [1] x [0] : (tensor<1x4xf32>, tensor<4x1xf32>) -> tensor<1x1xf32>
  %1 = stablehlo.dot_general %y, %b, contracting_dims = [1] x [0] : (tensor<1x2xf32>, tensor<2x1xf32>) -> tensor<1x1xf32>
  %2 = stablehlo.multiply %z, %c : tensor<2xf32>
  return %0, %1, %2 : tensor<1x1xf32>, tensor<1x1xf32>, tensor<2xf32>
}
// -----
module {
  func.func public @main(%x: tensor<1x4xf32>, %y: tensor<1x2xf32>, %z: tensor<2xf32>) -> (tensor<1x1xf32>, tensor<1x1xf32>, tensor<2xf32>) {
    %0 = stablehlo.constant dense<[[1.0], [0.0], [-2.0], [0.0]]> : tensor<4x1xf32>
    %b = stablehlo.constant dense<[[1.0e-40], [1.1754944e-38]]> : tensor<2x1xf32>
    %c = stablehlo.constant dense<[1.0, 1.0e-40]> : tensor<2xf32>
    %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0] : (tensor<1x4xf32>, tensor<4x1xf32>) -> tensor<1x1xf32>
    %2 = stablehlo.dot_general %y, %b, contracting_dims = [1] x [0] : (tensor<1x2xf32>, tensor<2x1xf32>) -> tensor<1x1xf32>
    %3 = stablehlo.multiply %z, %c : tensor<2xf32>
    return %1, %2, %3 : tensor<1x1xf32>, tensor<1x1xf32>, tensor<2xf32>
  }
}
