// Products, sums and moves are done on the parts; what is real stays.
func.func @main(%x: tensor<3x4xcomplex<f32>>, %y: tensor<4x3xcomplex<f32>>) -> (tensor<3x3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3x4xf32>) {
  %c = stablehlo.constant dense<[(1.0, 2.0), (3.0, 4.0), (5.0, 6.0)]> : tensor<3xcomplex<f32>>
  %z = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<3x4xcomplex<f32>>, tensor<4x3xcomplex<f32>>) -> tensor<3x3xcomplex<f32>>
  %1 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<3xcomplex<f32>>) -> tensor<3x3xcomplex<f32>>
  %2 = stablehlo.multiply %0, %1 : tensor<3x3xcomplex<f32>>
  %3 = stablehlo.reduce(%2 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<3x3xcomplex<f32>>, tensor<complex<f32>>) -> tensor<3xcomplex<f32>>
  %4 = stablehlo.imag %x : (tensor<3x4xcomplex<f32>>) -> tensor<3x4xf32>
  return %2, %3, %4 : tensor<3x3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3x4xf32>
}
// -----
module {
  func.func public @main(%x: tensor<3x4xcomplex<f32>>, %y: tensor<4x3xcomplex<f32>>) -> (tensor<3x3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3x4xf32>) {
    %0 = stablehlo.bitcast_convert %x : (tensor<3x4xcomplex<f32>>) -> tensor<3x4x2xf32>
    %1 = stablehlo.slice %0 [0:3, 0:4, 0:1] : (tensor<3x4x2xf32>) -> tensor<3x4x1xf32>
    %2 = stablehlo.reshape %1 : (tensor<3x4x1xf32>) -> tensor<3x4xf32>
    %3 = stablehlo.slice %0 [0:3, 0:4, 1:2] : (tensor<3x4x2xf32>) -> tensor<3x4x1xf32>
    %4 = stablehlo.reshape %3 : (tensor<3x4x1xf32>) -> tensor<3x4xf32>
    %5 = stablehlo.bitcast_convert %y : (tensor<4x3xcomplex<f32>>) -> tensor<4x3x2xf32>
    %6 = stablehlo.slice %5 [0:4, 0:3, 0:1] : (tensor<4x3x2xf32>) -> tensor<4x3x1xf32>
    %7 = stablehlo.reshape %6 : (tensor<4x3x1xf32>) -> tensor<4x3xf32>
    %8 = stablehlo.slice %5 [0:4, 0:3, 1:2] : (tensor<4x3x2xf32>) -> tensor<4x3x1xf32>
    %9 = stablehlo.reshape %8 : (tensor<4x3x1xf32>) -> tensor<4x3xf32>
    %10 = stablehlo.constant dense<[1.0, 3.0, 5.0]> : tensor<3xf32>
    %11 = stablehlo.constant dense<[2.0, 4.0, 6.0]> : tensor<3xf32>
    %12 = stablehlo.constant dense<0.0> : tensor<f32>
    %13 = stablehlo.constant dense<0.0> : tensor<f32>
    %14 = stablehlo.dot_general %2, %7, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x3xf32>) -> tensor<3x3xf32>
    %15 = stablehlo.dot_general %4, %9, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x3xf32>) -> tensor<3x3xf32>
    %16 = stablehlo.dot_general %2, %9, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x3xf32>) -> tensor<3x3xf32>
    %17 = stablehlo.dot_general %4, %7, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x3xf32>) -> tensor<3x3xf32>
    %18 = stablehlo.subtract %14, %15 : tensor<3x3xf32>
    %19 = stablehlo.add %16, %17 : tensor<3x3xf32>
    %20 = stablehlo.broadcast_in_dim %10, dims = [1] : (tensor<3xf32>) -> tensor<3x3xf32>
    %21 = stablehlo.broadcast_in_dim %11, dims = [1] : (tensor<3xf32>) -> tensor<3x3xf32>
    %22 = stablehlo.multiply %18, %20 : tensor<3x3xf32>
    %23 = stablehlo.multiply %19, %21 : tensor<3x3xf32>
    %24 = stablehlo.multiply %18, %21 : tensor<3x3xf32>
    %25 = stablehlo.multiply %19, %20 : tensor<3x3xf32>
    %26 = stablehlo.subtract %22, %23 : tensor<3x3xf32>
    %27 = stablehlo.add %24, %25 : tensor<3x3xf32>
    %28 = stablehlo.reduce(%26 init: %12) applies stablehlo.add across dimensions = [0] : (tensor<3x3xf32>, tensor<f32>) -> tensor<3xf32>
    %29 = stablehlo.reduce(%27 init: %13) applies stablehlo.add across dimensions = [0] : (tensor<3x3xf32>, tensor<f32>) -> tensor<3xf32>
    %30 = stablehlo.reshape %26 : (tensor<3x3xf32>) -> tensor<3x3x1xf32>
    %31 = stablehlo.reshape %27 : (tensor<3x3xf32>) -> tensor<3x3x1xf32>
    %32 = stablehlo.concatenate %30, %31, dim = 2 : (tensor<3x3x1xf32>, tensor<3x3x1xf32>) -> tensor<3x3x2xf32>
    %33 = stablehlo.bitcast_convert %32 : (tensor<3x3x2xf32>) -> tensor<3x3xcomplex<f32>>
    %34 = stablehlo.reshape %28 : (tensor<3xf32>) -> tensor<3x1xf32>
    %35 = stablehlo.reshape %29 : (tensor<3xf32>) -> tensor<3x1xf32>
    %36 = stablehlo.concatenate %34, %35, dim = 1 : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>
    %37 = stablehlo.bitcast_convert %36 : (tensor<3x2xf32>) -> tensor<3xcomplex<f32>>
    return %33, %37, %4 : tensor<3x3xcomplex<f32>>, tensor<3xcomplex<f32>>, tensor<3x4xf32>
  }
}
