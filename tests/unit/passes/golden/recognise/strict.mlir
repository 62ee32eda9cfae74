// Nothing whose decomposition rounds differently. options below.
// options: strict
func.func @main(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %gate: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<0.125> : tensor<4xf32>
  %e = stablehlo.constant dense<1.0e-6> : tensor<4xf32>
  %0 = stablehlo.multiply %x, %x : tensor<4x8xf32>
  %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = stablehlo.multiply %1, %n : tensor<4xf32>
  %3 = stablehlo.add %2, %e : tensor<4xf32>
  %4 = stablehlo.rsqrt %3 : tensor<4xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
  %6 = stablehlo.multiply %x, %5 : tensor<4x8xf32>
  %7 = stablehlo.broadcast_in_dim %g, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %8 = stablehlo.multiply %7, %6 : tensor<4x8xf32>
  %9 = stablehlo.multiply %8, %gate : tensor<4x8xf32>
  %10 = stablehlo.multiply %5, %x : tensor<4x8xf32>
  %11 = stablehlo.multiply %10, %gate : tensor<4x8xf32>
  return %9, %11 : tensor<4x8xf32>, tensor<4x8xf32>
}
// -----
module {
  func.func public @main(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %gate: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %n = stablehlo.constant dense<0.125> : tensor<4xf32>
    %e = stablehlo.constant dense<1.0e-06> : tensor<4xf32>
    %0 = stablehlo.multiply %x, %x : tensor<4x8xf32>
    %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %2 = stablehlo.multiply %1, %n : tensor<4xf32>
    %3 = stablehlo.add %2, %e : tensor<4xf32>
    %4 = stablehlo.rsqrt %3 : tensor<4xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
    %6 = stablehlo.multiply %x, %5 : tensor<4x8xf32>
    %7 = stablehlo.broadcast_in_dim %g, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
    %8 = stablehlo.multiply %7, %6 : tensor<4x8xf32>
    %9 = stablehlo.multiply %8, %gate : tensor<4x8xf32>
    %10 = stablehlo.multiply %5, %x : tensor<4x8xf32>
    %11 = stablehlo.multiply %10, %gate : tensor<4x8xf32>
    return %9, %11 : tensor<4x8xf32>, tensor<4x8xf32>
  }
}
