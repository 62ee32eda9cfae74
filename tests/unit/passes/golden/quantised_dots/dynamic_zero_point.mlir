// The zero point that is taken is a byte, not the number that it was rounded
// from.
func.func @main(%x: tensor<3x5xui8>, %f: tensor<f32>, %w: tensor<5x2xi8>) -> tensor<3x2xi32> {
  %z = stablehlo.convert %f : (tensor<f32>) -> tensor<ui8>
  %0 = stablehlo.convert %x : (tensor<3x5xui8>) -> tensor<3x5xi32>
  %1 = stablehlo.convert %z : (tensor<ui8>) -> tensor<i32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i32>) -> tensor<3x5xi32>
  %3 = stablehlo.subtract %0, %2 : tensor<3x5xi32>
  %4 = stablehlo.convert %w : (tensor<5x2xi8>) -> tensor<5x2xi32>
  %5 = stablehlo.dot_general %3, %4, contracting_dims = [1] x [0] : (tensor<3x5xi32>, tensor<5x2xi32>) -> tensor<3x2xi32>
  return %5 : tensor<3x2xi32>
}
// -----
module {
  func.func public @main(%x: tensor<3x5xui8>, %f: tensor<f32>, %w: tensor<5x2xi8>) -> tensor<3x2xi32> {
    %z = stablehlo.convert %f : (tensor<f32>) -> tensor<ui8>
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<3x5xui8>, tensor<5x2xi8>) -> tensor<3x2xi32>
    %1 = stablehlo.convert %w : (tensor<5x2xi8>) -> tensor<5x2xi32>
    %2 = stablehlo.constant dense<0> : tensor<i32>
    %3 = stablehlo.reduce(%1 init: %2) applies stablehlo.add across dimensions = [0] : (tensor<5x2xi32>, tensor<i32>) -> tensor<2xi32>
    %4 = stablehlo.convert %z : (tensor<ui8>) -> tensor<i32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %6 = stablehlo.multiply %3, %5 : tensor<2xi32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [1] : (tensor<2xi32>) -> tensor<3x2xi32>
    %8 = stablehlo.subtract %0, %7 : tensor<3x2xi32>
    return %8 : tensor<3x2xi32>
  }
}
