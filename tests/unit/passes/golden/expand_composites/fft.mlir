// A transform that is one product with a matrix.
func.func @main(%x: tensor<4xf32>) -> tensor<3xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = RFFT, length = [4] : (tensor<4xf32>) -> tensor<3xcomplex<f32>>
  return %0 : tensor<3xcomplex<f32>>
}
// -----
module {
  func.func public @main(%x: tensor<4xf32>) -> tensor<3xcomplex<f32>> {
    %0 = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<1x4xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x4xf32>) -> tensor<1x4x1xf32>
    %2 = stablehlo.constant dense<[[[[1.0, 1.0, 1.0, 1.0]], [[1.0, -2.5082788e-20, -1.0, 1.8366858e-19]], [[1.0, -1.0, 1.0, -1.0]], [[1.0, 1.8366858e-19, -1.0, -2.5082788e-20]]], [[[-0.0, -0.0, -0.0, -0.0]], [[-0.0, -1.0, 5.0165577e-20, 1.0]], [[-0.0, 5.0165577e-20, -0.0, 5.0165577e-20]], [[-0.0, 1.0, 5.0165577e-20, -1.0]]]]> : tensor<2x4x1x4xf32>
    %3 = stablehlo.dot_general %2, %1, contracting_dims = [2, 3] x [0, 1] : (tensor<2x4x1x4xf32>, tensor<1x4x1xf32>) -> tensor<2x4x1xf32>
    %4 = stablehlo.reshape %3 : (tensor<2x4x1xf32>) -> tensor<2x4xf32>
    %5 = stablehlo.slice %4 [0:2, 0:3] : (tensor<2x4xf32>) -> tensor<2x3xf32>
    %6 = stablehlo.slice %5 [0:1, 0:3] : (tensor<2x3xf32>) -> tensor<1x3xf32>
    %7 = stablehlo.reshape %6 : (tensor<1x3xf32>) -> tensor<3xf32>
    %8 = stablehlo.slice %5 [1:2, 0:3] : (tensor<2x3xf32>) -> tensor<1x3xf32>
    %9 = stablehlo.reshape %8 : (tensor<1x3xf32>) -> tensor<3xf32>
    %10 = stablehlo.complex %7, %9 : tensor<3xcomplex<f32>>
    return %10 : tensor<3xcomplex<f32>>
  }
}
