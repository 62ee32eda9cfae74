// A left side that lies column by column is turned as a matrix, also where a transpose that
// others read made it; but where nothing moves without that it is looked through.
func.func @main(%x: tensor<2x8x3xf32>, %y: tensor<2x3x8xf32>, %g: tensor<8x16xf32>, %z: tensor<8x2x3xf32>) -> (tensor<8x2x3xf32>, tensor<2x3x16xf32>, tensor<8x2x3xf32>, tensor<2x3x16xf32>, tensor<2x3x16xf32>) {
  %0 = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<2x8x3xf32>) -> tensor<8x2x3xf32>
  %1 = stablehlo.dot_general %0, %g, contracting_dims = [0] x [0] : (tensor<8x2x3xf32>, tensor<8x16xf32>) -> tensor<2x3x16xf32>
  %2 = stablehlo.transpose %y, dims = [2, 0, 1] : (tensor<2x3x8xf32>) -> tensor<8x2x3xf32>
  %3 = stablehlo.dot_general %2, %g, contracting_dims = [0] x [0] : (tensor<8x2x3xf32>, tensor<8x16xf32>) -> tensor<2x3x16xf32>
  %4 = stablehlo.dot_general %z, %g, contracting_dims = [0] x [0] : (tensor<8x2x3xf32>, tensor<8x16xf32>) -> tensor<2x3x16xf32>
  return %0, %1, %2, %3, %4 : tensor<8x2x3xf32>, tensor<2x3x16xf32>, tensor<8x2x3xf32>, tensor<2x3x16xf32>, tensor<2x3x16xf32>
}
// -----
module {
  func.func public @main(%x: tensor<2x8x3xf32>, %y: tensor<2x3x8xf32>, %g: tensor<8x16xf32>, %z: tensor<8x2x3xf32>) -> (tensor<8x2x3xf32>, tensor<2x3x16xf32>, tensor<8x2x3xf32>, tensor<2x3x16xf32>, tensor<2x3x16xf32>) {
    %0 = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<2x8x3xf32>) -> tensor<8x2x3xf32>
    %1 = stablehlo.reshape %0 : (tensor<8x2x3xf32>) -> tensor<8x6xf32>
    %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<8x6xf32>) -> tensor<6x8xf32>
    %3 = stablehlo.dot_general %2, %g, contracting_dims = [1] x [0] : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
    %4 = stablehlo.reshape %3 : (tensor<6x16xf32>) -> tensor<2x3x16xf32>
    %5 = stablehlo.transpose %y, dims = [2, 0, 1] : (tensor<2x3x8xf32>) -> tensor<8x2x3xf32>
    %6 = stablehlo.reshape %y : (tensor<2x3x8xf32>) -> tensor<6x8xf32>
    %7 = stablehlo.dot_general %6, %g, contracting_dims = [1] x [0] : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
    %8 = stablehlo.reshape %7 : (tensor<6x16xf32>) -> tensor<2x3x16xf32>
    %9 = stablehlo.reshape %z : (tensor<8x2x3xf32>) -> tensor<8x6xf32>
    %10 = stablehlo.transpose %9, dims = [1, 0] : (tensor<8x6xf32>) -> tensor<6x8xf32>
    %11 = stablehlo.dot_general %10, %g, contracting_dims = [1] x [0] : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
    %12 = stablehlo.reshape %11 : (tensor<6x16xf32>) -> tensor<2x3x16xf32>
    return %0, %4, %5, %8, %12 : tensor<8x2x3xf32>, tensor<2x3x16xf32>, tensor<8x2x3xf32>, tensor<2x3x16xf32>, tensor<2x3x16xf32>
  }
}
