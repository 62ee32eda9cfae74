// A transform that is one product with a matrix.
func.func @main(%x: tensor<4xf32>) -> tensor<3xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = RFFT, length = [4] : (tensor<4xf32>) -> tensor<3xcomplex<f32>>
  return %0 : tensor<3xcomplex<f32>>
}
// -----
module {
  func.func public @main(%x: tensor<4xf32>) -> tensor<3xcomplex<f32>> {
    %0 = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<1x4xf32>
    %1 = stablehlo.concatenate %0, dim = 0 : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x4xf32>) -> tensor<1x4x1xf32>
    %3 = stablehlo.constant dense<[[[[1.0, 1.0, 1.0, 1.0]], [[1.0, -2.5082788e-20, -1.0, 1.8366858e-19]], [[1.0, -1.0, 1.0, -1.0]], [[1.0, 1.8366858e-19, -1.0, -2.5082788e-20]]], [[[-0.0, -0.0, -0.0, -0.0]], [[-0.0, -1.0, 5.0165577e-20, 1.0]], [[-0.0, 5.0165577e-20, -0.0, 5.0165577e-20]], [[-0.0, 1.0, 5.0165577e-20, -1.0]]]]> : tensor<2x4x1x4xf32>
    %4 = stablehlo.dot_general %3, %2, contracting_dims = [2, 3] x [0, 1] : (tensor<2x4x1x4xf32>, tensor<1x4x1xf32>) -> tensor<2x4x1xf32>
    %5 = stablehlo.reshape %4 : (tensor<2x4x1xf32>) -> tensor<2x4xf32>
    %6 = stablehlo.slice %5 [0:2, 0:3] : (tensor<2x4xf32>) -> tensor<2x3xf32>
    %7 = stablehlo.slice %6 [0:1, 0:3] : (tensor<2x3xf32>) -> tensor<1x3xf32>
    %8 = stablehlo.reshape %7 : (tensor<1x3xf32>) -> tensor<3xf32>
    %9 = stablehlo.slice %6 [1:2, 0:3] : (tensor<2x3xf32>) -> tensor<1x3xf32>
    %10 = stablehlo.reshape %9 : (tensor<1x3xf32>) -> tensor<3xf32>
    %11 = stablehlo.complex %8, %10 : tensor<3xcomplex<f32>>
    return %11 : tensor<3xcomplex<f32>>
  }
}
