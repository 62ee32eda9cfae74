// Variance as a difference of means, the scale multiplied to the root first.
func.func @main(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
  %n = stablehlo.constant dense<8.0> : tensor<4xf32>
  %e = stablehlo.constant dense<1.0e-6> : tensor<4xf32>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %mean = stablehlo.divide %0, %n : tensor<4xf32>
  %1 = stablehlo.multiply %x, %x : tensor<4x8xf32>
  %2 = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = stablehlo.divide %2, %n : tensor<4xf32>
  %4 = stablehlo.multiply %mean, %mean : tensor<4xf32>
  %5 = stablehlo.subtract %3, %4 : tensor<4xf32>
  %6 = stablehlo.maximum %5, %zero : tensor<4xf32>
  %7 = stablehlo.broadcast_in_dim %mean, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %8 = stablehlo.subtract %x, %7 : tensor<4x8xf32>
  %9 = stablehlo.add %6, %e : tensor<4xf32>
  %10 = stablehlo.rsqrt %9 : tensor<4xf32>
  %11 = stablehlo.broadcast_in_dim %10, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %12 = stablehlo.broadcast_in_dim %g, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %13 = stablehlo.multiply %11, %12 : tensor<4x8xf32>
  %14 = stablehlo.multiply %8, %13 : tensor<4x8xf32>
  %15 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %16 = stablehlo.add %14, %15 : tensor<4x8xf32>
  return %16 : tensor<4x8xf32>
}
// -----
module {
  func.func public @main(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
    %0 = "pestle.layer_norm"(%x, %g, %b) <{dimensions = array<i64: 1>, epsilon = 9.999999974752427e-07 : f64}> : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}
