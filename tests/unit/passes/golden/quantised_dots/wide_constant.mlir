// A constant whose elements fit bytes is one of bytes; 200 has no sign.
func.func @main(%x: tensor<2x4xi8>) -> tensor<2x2xi32> {
  %0 = stablehlo.convert %x : (tensor<2x4xi8>) -> tensor<2x4xi32>
  %1 = stablehlo.constant dense<[[1, 2], [3, 4], [5, 6], [7, 200]]> : tensor<4x2xi32>
  %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : (tensor<2x4xi32>, tensor<4x2xi32>) -> tensor<2x2xi32>
  return %2 : tensor<2x2xi32>
}
// -----
module {
  func.func public @main(%x: tensor<2x4xi8>) -> tensor<2x2xi32> {
    %0 = stablehlo.constant dense<[[1, 2], [3, 4], [5, 6], [7, 200]]> : tensor<4x2xui8>
    %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0] : (tensor<2x4xi8>, tensor<4x2xui8>) -> tensor<2x2xi32>
    return %1 : tensor<2x2xi32>
  }
}
