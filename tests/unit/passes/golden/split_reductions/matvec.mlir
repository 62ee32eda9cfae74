// Taps of a row vector times a matrix in blocks, which are a batch; those of a
// long scalar product. A matrix of 32 panels is shared well enough, and a product
// of sixteen rows is none of few vectors.
func.func @main(%x: tensor<1x512xf32>, %w: tensor<512x4096xf32>, %a: tensor<262144xf32>, %b: tensor<262144xf32>, %v: tensor<1x16xf32>, %u: tensor<16x131072xf32>, %m: tensor<16x512xf32>) -> (tensor<1x4096xf32>, tensor<f32>, tensor<1x131072xf32>, tensor<16x4096xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<1x512xf32>, tensor<512x4096xf32>) -> tensor<1x4096xf32>
  %1 = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] : (tensor<262144xf32>, tensor<262144xf32>) -> tensor<f32>
  %2 = stablehlo.dot_general %v, %u, contracting_dims = [1] x [0] : (tensor<1x16xf32>, tensor<16x131072xf32>) -> tensor<1x131072xf32>
  %3 = stablehlo.dot_general %m, %w, contracting_dims = [1] x [0] : (tensor<16x512xf32>, tensor<512x4096xf32>) -> tensor<16x4096xf32>
  return %0, %1, %2, %3 : tensor<1x4096xf32>, tensor<f32>, tensor<1x131072xf32>, tensor<16x4096xf32>
}
// -----
module {
  func.func public @main(%x: tensor<1x512xf32>, %w: tensor<512x4096xf32>, %a: tensor<262144xf32>, %b: tensor<262144xf32>, %v: tensor<1x16xf32>, %u: tensor<16x131072xf32>, %m: tensor<16x512xf32>) -> (tensor<1x4096xf32>, tensor<f32>, tensor<1x131072xf32>, tensor<16x4096xf32>) {
    %0 = stablehlo.reshape %x : (tensor<1x512xf32>) -> tensor<1x8x64xf32>
    %1 = stablehlo.reshape %w : (tensor<512x4096xf32>) -> tensor<8x64x4096xf32>
    %2 = stablehlo.dot_general %0, %1, batching_dims = [1] x [0], contracting_dims = [2] x [1] : (tensor<1x8x64xf32>, tensor<8x64x4096xf32>) -> tensor<8x1x4096xf32>
    %3 = stablehlo.constant dense<0.0> : tensor<f32>
    %4 = stablehlo.reduce(%2 init: %3) applies stablehlo.add across dimensions = [0] : (tensor<8x1x4096xf32>, tensor<f32>) -> tensor<1x4096xf32>
    %5 = stablehlo.reshape %a : (tensor<262144xf32>) -> tensor<16x16384xf32>
    %6 = stablehlo.reshape %b : (tensor<262144xf32>) -> tensor<16x16384xf32>
    %7 = stablehlo.dot_general %5, %6, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<16x16384xf32>, tensor<16x16384xf32>) -> tensor<16xf32>
    %8 = stablehlo.reduce(%7 init: %3) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %9 = stablehlo.dot_general %v, %u, contracting_dims = [1] x [0] : (tensor<1x16xf32>, tensor<16x131072xf32>) -> tensor<1x131072xf32>
    %10 = stablehlo.dot_general %m, %w, contracting_dims = [1] x [0] : (tensor<16x512xf32>, tensor<512x4096xf32>) -> tensor<16x4096xf32>
    return %4, %8, %9, %10 : tensor<1x4096xf32>, tensor<f32>, tensor<1x131072xf32>, tensor<16x4096xf32>
  }
}
