// ReduceMean, Sub, Pow, ReduceMean, Add, Sqrt, Div, Mul, Add.
func.func @main(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<8.0> : tensor<4x1xf32>
  %e = stablehlo.constant dense<1.0e-5> : tensor<4x1xf32>
  %two = stablehlo.constant dense<2.0> : tensor<4x8xf32>
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.reshape %0 : (tensor<4xf32>) -> tensor<4x1xf32>
  %2 = stablehlo.divide %1, %n : tensor<4x1xf32>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %4 = stablehlo.subtract %x, %3 : tensor<4x8xf32>
  %5 = stablehlo.power %4, %two : tensor<4x8xf32>
  %6 = stablehlo.reduce(%5 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %7 = stablehlo.reshape %6 : (tensor<4xf32>) -> tensor<4x1xf32>
  %8 = stablehlo.divide %7, %n : tensor<4x1xf32>
  %9 = stablehlo.add %8, %e : tensor<4x1xf32>
  %10 = stablehlo.sqrt %9 : tensor<4x1xf32>
  %11 = stablehlo.broadcast_in_dim %10, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %12 = stablehlo.divide %4, %11 : tensor<4x8xf32>
  %13 = stablehlo.broadcast_in_dim %g, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %14 = stablehlo.multiply %12, %13 : tensor<4x8xf32>
  %15 = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %16 = stablehlo.add %14, %15 : tensor<4x8xf32>
  return %16 : tensor<4x8xf32>
}
// -----
module {
  func.func public @main(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
    %0 = "pestle.layer_norm"(%x, %g, %b) <{dimensions = array<i64: 1>, epsilon = 9.999999747378752e-06 : f64}> : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}
