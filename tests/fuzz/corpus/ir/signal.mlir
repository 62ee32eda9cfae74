// Transforms print as JAX prints them and parse again.
// RUN: %pestle dump %s > %t && %pestle dump %t | diff %t - && FileCheck %s < %t
// CHECK: stablehlo.fft %x, type = RFFT, length = [8] : (tensor<3x8xf32>) -> tensor<3x5xcomplex<f32>>
// CHECK: stablehlo.fft %{{.*}}, type = IRFFT, length = [3, 8] : (tensor<3x5xcomplex<f32>>) -> tensor<3x8xf32>
// CHECK: stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
// CHECK: stablehlo.rng %{{.*}}, %{{.*}}, %{{.*}}, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
func.func @main(%x: tensor<3x8xf32>, %s: tensor<2xui64>) -> (tensor<3x8xf32>, tensor<2xui64>, tensor<4xf32>) {
  %0 = stablehlo.fft %x, type = RFFT, length = [8] : (tensor<3x8xf32>) -> tensor<3x5xcomplex<f32>>
  %1 = "stablehlo.fft"(%0) <{fft_length = array<i64: 3, 8>, fft_type = #stablehlo<fft_type IRFFT>}> : (tensor<3x5xcomplex<f32>>) -> tensor<3x8xf32>
  %2, %3 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  %4 = stablehlo.constant dense<1.0> : tensor<f32>
  %5 = stablehlo.constant dense<4> : tensor<1xi64>
  %6 = stablehlo.rng %4, %4, %5, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<4xf32>
  return %1, %2, %6 : tensor<3x8xf32>, tensor<2xui64>, tensor<4xf32>
}
