// A matrix that others read too is turned as it lies; one that nobody else reads is moved at
// once; and what moves nothing in the end goes.
func.func @main(%x: tensor<2x3x4xf32>) -> (tensor<3x8xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<12x2xf32>, tensor<2x12xf32>) {
  %0 = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<2x3x4xf32>) -> tensor<3x2x4xf32>
  %1 = stablehlo.reshape %0 : (tensor<3x2x4xf32>) -> tensor<3x8xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<3x8xf32>) -> tensor<8x3xf32>
  %3 = stablehlo.negate %x : tensor<2x3x4xf32>
  %4 = stablehlo.transpose %3, dims = [1, 0, 2] : (tensor<2x3x4xf32>) -> tensor<3x2x4xf32>
  %5 = stablehlo.reshape %4 : (tensor<3x2x4xf32>) -> tensor<3x8xf32>
  %6 = stablehlo.transpose %5, dims = [1, 0] : (tensor<3x8xf32>) -> tensor<8x3xf32>
  %7 = stablehlo.transpose %x, dims = [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %8 = stablehlo.reshape %7 : (tensor<3x4x2xf32>) -> tensor<12x2xf32>
  %9 = stablehlo.transpose %8, dims = [1, 0] : (tensor<12x2xf32>) -> tensor<2x12xf32>
  return %1, %2, %6, %8, %9 : tensor<3x8xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<12x2xf32>, tensor<2x12xf32>
}
// -----
module {
  func.func public @main(%x: tensor<2x3x4xf32>) -> (tensor<3x8xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<12x2xf32>, tensor<2x12xf32>) {
    %0 = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<2x3x4xf32>) -> tensor<3x2x4xf32>
    %1 = stablehlo.reshape %0 : (tensor<3x2x4xf32>) -> tensor<3x8xf32>
    %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<3x8xf32>) -> tensor<8x3xf32>
    %3 = stablehlo.negate %x : tensor<2x3x4xf32>
    %4 = stablehlo.transpose %3, dims = [1, 0, 2] : (tensor<2x3x4xf32>) -> tensor<3x2x4xf32>
    %5 = stablehlo.reshape %4 : (tensor<3x2x4xf32>) -> tensor<3x8xf32>
    %6 = stablehlo.transpose %3, dims = [0, 2, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
    %7 = stablehlo.reshape %6 : (tensor<2x4x3xf32>) -> tensor<8x3xf32>
    %8 = stablehlo.transpose %x, dims = [1, 2, 0] : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
    %9 = stablehlo.reshape %8 : (tensor<3x4x2xf32>) -> tensor<12x2xf32>
    %10 = stablehlo.reshape %x : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
    return %1, %2, %7, %9, %10 : tensor<3x8xf32>, tensor<8x3xf32>, tensor<8x3xf32>, tensor<12x2xf32>, tensor<2x12xf32>
  }
}
