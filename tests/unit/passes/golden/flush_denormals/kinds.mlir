// One new constant for all products, in bodies too; f64; convolutions; on the left.
// Infinities are not the largest element; 2^24 times the least normal number is.
func.func @main(%x: tensor<2x2xf32>, %d: tensor<2x2xf64>, %i: tensor<1x2x2x1xf32>, %p: tensor<i1>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf64>, tensor<1x1x1x1xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %a = stablehlo.constant dense<[[1.0, 1.0e-40], [1.0e-39, -2.0]]> : tensor<2x2xf32>
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = stablehlo.dot_general %a, %x, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %2 = "stablehlo.if"(%p) ({
    %9 = stablehlo.dot_general %x, %a, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    stablehlo.return %9 : tensor<2x2xf32>
  }, {
    stablehlo.return %a : tensor<2x2xf32>
  }) : (tensor<i1>) -> tensor<2x2xf32>
  %b = stablehlo.constant dense<[[1.0, 1.0e-310], [0.0, 2.0]]> : tensor<2x2xf64>
  %3 = stablehlo.dot_general %d, %b, contracting_dims = [1] x [0] : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
  %w = stablehlo.constant dense<[[[[1.0]], [[1.0e-40]]], [[[1.0]], [[1.0]]]]> : tensor<2x2x1x1xf32>
  %4 = stablehlo.convolution(%i, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[0, 0], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x2x1xf32>, tensor<2x2x1x1xf32>) -> tensor<1x1x1x1xf32>
  %e = stablehlo.constant dense<[[0x7F800000, 1.0e-40], [0.0, 0.0]]> : tensor<2x2xf32>
  %5 = stablehlo.dot_general %x, %e, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %f = stablehlo.constant dense<[[0x0C800000, 1.0e-40], [0.0, 0.0]]> : tensor<2x2xf32>
  %6 = stablehlo.dot_general %x, %f, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %g = stablehlo.constant dense<[[0x0C7FFFFF, 1.0e-40], [0.0, 0.0]]> : tensor<2x2xf32>
  %7 = stablehlo.dot_general %x, %g, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf64>, tensor<1x1x1x1xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}
// -----
module {
  func.func public @main(%x: tensor<2x2xf32>, %d: tensor<2x2xf64>, %i: tensor<1x2x2x1xf32>, %p: tensor<i1>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf64>, tensor<1x1x1x1xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
    %0 = stablehlo.constant dense<[[1.0, 0.0], [0.0, -2.0]]> : tensor<2x2xf32>
    %a = stablehlo.constant dense<[[1.0, 1.0e-40], [1.0e-39, -2.0]]> : tensor<2x2xf32>
    %1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %2 = stablehlo.dot_general %0, %x, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %3 = "stablehlo.if"(%p) ({
      %12 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
      stablehlo.return %12 : tensor<2x2xf32>
    }, {
      stablehlo.return %a : tensor<2x2xf32>
    }) : (tensor<i1>) -> tensor<2x2xf32>
    %4 = stablehlo.constant dense<[[1.0, 0.0], [0.0, 2.0]]> : tensor<2x2xf64>
    %5 = stablehlo.dot_general %d, %4, contracting_dims = [1] x [0] : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
    %6 = stablehlo.constant dense<[[[[1.0]], [[0.0]]], [[[1.0]], [[1.0]]]]> : tensor<2x2x1x1xf32>
    %7 = stablehlo.convolution(%i, %6) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x2x1xf32>, tensor<2x2x1x1xf32>) -> tensor<1x1x1x1xf32>
    %e = stablehlo.constant dense<[[0x7F800000, 1.0e-40], [0.0, 0.0]]> : tensor<2x2xf32>
    %8 = stablehlo.dot_general %x, %e, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %9 = stablehlo.constant dense<[[1.9721523e-31, 0.0], [0.0, 0.0]]> : tensor<2x2xf32>
    %10 = stablehlo.dot_general %x, %9, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %g = stablehlo.constant dense<[[1.9721521e-31, 1.0e-40], [0.0, 0.0]]> : tensor<2x2xf32>
    %11 = stablehlo.dot_general %x, %g, contracting_dims = [1] x [0] : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    return %1, %2, %3, %5, %7, %8, %10, %11 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf64>, tensor<1x1x1x1xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
  }
}
