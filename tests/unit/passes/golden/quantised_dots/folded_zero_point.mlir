// Weights that were folded with their zero point get one that makes them bytes.
func.func @main(%x: tensor<2x3xui8>) -> tensor<2x2xi32> {
  %0 = stablehlo.convert %x : (tensor<2x3xui8>) -> tensor<2x3xi32>
  %1 = stablehlo.constant dense<[[-77, 1], [178, 3], [0, -50]]> : tensor<3x2xi32>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<2x3xi32>, tensor<3x2xi32>) -> tensor<2x2xi32>
  return %2 : tensor<2x2xi32>
}
// -----
module {
  func.func public @main(%x: tensor<2x3xui8>) -> tensor<2x2xi32> {
    %0 = stablehlo.constant dense<[[-128, -50], [127, -48], [-51, -101]]> : tensor<3x2xi8>
    %1 = stablehlo.constant dense<-51> : tensor<i8>
    %2 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0] : (tensor<2x3xui8>, tensor<3x2xi8>) -> tensor<2x2xi32>
    %3 = stablehlo.convert %x : (tensor<2x3xui8>) -> tensor<2x3xi32>
    %4 = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.reduce(%3 init: %4) applies stablehlo.add across dimensions = [1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<2xi32>
    %6 = stablehlo.convert %1 : (tensor<i8>) -> tensor<i32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %8 = stablehlo.multiply %5, %7 : tensor<2xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0] : (tensor<2xi32>) -> tensor<2x2xi32>
    %10 = stablehlo.subtract %2, %9 : tensor<2x2xi32>
    return %10 : tensor<2x2xi32>
  }
}
