// Both operands have a zero point, one of which is known when it runs.
func.func @main(%x: tensor<3x5xui8>, %z: tensor<ui8>, %w: tensor<5x2xi8>) -> tensor<3x2xi32> {
  %0 = stablehlo.convert %x : (tensor<3x5xui8>) -> tensor<3x5xi32>
  %1 = stablehlo.convert %z : (tensor<ui8>) -> tensor<i32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<i32>) -> tensor<3x5xi32>
  %3 = stablehlo.subtract %0, %2 : tensor<3x5xi32>
  %4 = stablehlo.convert %w : (tensor<5x2xi8>) -> tensor<5x2xi32>
  %5 = stablehlo.constant dense<3> : tensor<i8>
  %6 = stablehlo.convert %5 : (tensor<i8>) -> tensor<i32>
  %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<i32>) -> tensor<5x2xi32>
  %8 = stablehlo.subtract %4, %7 : tensor<5x2xi32>
  %9 = stablehlo.dot_general %3, %8, contracting_dims = [1] x [0] : (tensor<3x5xi32>, tensor<5x2xi32>) -> tensor<3x2xi32>
  return %9 : tensor<3x2xi32>
}
// -----
module {
  func.func public @main(%x: tensor<3x5xui8>, %z: tensor<ui8>, %w: tensor<5x2xi8>) -> tensor<3x2xi32> {
    %0 = stablehlo.constant dense<3> : tensor<i8>
    %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<3x5xui8>, tensor<5x2xi8>) -> tensor<3x2xi32>
    %2 = stablehlo.convert %w : (tensor<5x2xi8>) -> tensor<5x2xi32>
    %3 = stablehlo.constant dense<0> : tensor<i32>
    %4 = stablehlo.reduce(%2 init: %3) applies stablehlo.add across dimensions = [0] : (tensor<5x2xi32>, tensor<i32>) -> tensor<2xi32>
    %5 = stablehlo.constant dense<5> : tensor<i32>
    %6 = stablehlo.convert %0 : (tensor<i8>) -> tensor<i32>
    %7 = stablehlo.multiply %5, %6 : tensor<i32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %9 = stablehlo.subtract %4, %8 : tensor<2xi32>
    %10 = stablehlo.convert %z : (tensor<ui8>) -> tensor<i32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %12 = stablehlo.multiply %9, %11 : tensor<2xi32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [1] : (tensor<2xi32>) -> tensor<3x2xi32>
    %14 = stablehlo.subtract %1, %13 : tensor<3x2xi32>
    %15 = stablehlo.convert %x : (tensor<3x5xui8>) -> tensor<3x5xi32>
    %16 = stablehlo.constant dense<0> : tensor<i32>
    %17 = stablehlo.reduce(%15 init: %16) applies stablehlo.add across dimensions = [1] : (tensor<3x5xi32>, tensor<i32>) -> tensor<3xi32>
    %18 = stablehlo.convert %0 : (tensor<i8>) -> tensor<i32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %20 = stablehlo.multiply %17, %19 : tensor<3xi32>
    %21 = stablehlo.broadcast_in_dim %20, dims = [0] : (tensor<3xi32>) -> tensor<3x2xi32>
    %22 = stablehlo.subtract %14, %21 : tensor<3x2xi32>
    return %22 : tensor<3x2xi32>
  }
}
