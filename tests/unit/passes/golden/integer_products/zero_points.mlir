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
    %2 = stablehlo.convert %z : (tensor<ui8>) -> tensor<i32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<3x2xi32>
    %4 = stablehlo.convert %w : (tensor<5x2xi8>) -> tensor<5x2xi32>
    %5 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.reduce(%4 init: %5) applies stablehlo.add across dimensions = [0] : (tensor<5x2xi32>, tensor<i32>) -> tensor<2xi32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [1] : (tensor<2xi32>) -> tensor<3x2xi32>
    %8 = stablehlo.multiply %7, %3 : tensor<3x2xi32>
    %9 = stablehlo.subtract %1, %8 : tensor<3x2xi32>
    %10 = stablehlo.convert %0 : (tensor<i8>) -> tensor<i32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<i32>) -> tensor<3x2xi32>
    %12 = stablehlo.convert %x : (tensor<3x5xui8>) -> tensor<3x5xi32>
    %13 = stablehlo.constant dense<0> : tensor<i32>
    %14 = stablehlo.reduce(%12 init: %13) applies stablehlo.add across dimensions = [1] : (tensor<3x5xi32>, tensor<i32>) -> tensor<3xi32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [0] : (tensor<3xi32>) -> tensor<3x2xi32>
    %16 = stablehlo.multiply %15, %11 : tensor<3x2xi32>
    %17 = stablehlo.subtract %9, %16 : tensor<3x2xi32>
    %18 = stablehlo.constant dense<5> : tensor<3x2xi32>
    %19 = stablehlo.multiply %18, %3 : tensor<3x2xi32>
    %20 = stablehlo.multiply %19, %11 : tensor<3x2xi32>
    %21 = stablehlo.add %17, %20 : tensor<3x2xi32>
    return %21 : tensor<3x2xi32>
  }
}
