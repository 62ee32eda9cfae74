// Complex numbers print as JAX prints them and parse again.
// RUN: %pestle dump %s > %t && %pestle dump %t | diff %t - && FileCheck %s < %t
// CHECK: stablehlo.complex %x, %x : tensor<3xcomplex<f32>>
// CHECK: stablehlo.real %{{.*}} : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
// CHECK: stablehlo.imag %{{.*}} : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
// CHECK: stablehlo.abs %{{.*}} : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
// CHECK: stablehlo.compare EQ, %{{.*}}, %{{.*}}, FLOAT : (tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>) -> tensor<3xi1>
func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xi1>) {
  %0 = stablehlo.complex %x, %x : tensor<3xcomplex<f32>>
  %1 = stablehlo.real %0 : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
  %2 = stablehlo.imag %0 : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
  %3 = stablehlo.abs %0 : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
  %4 = stablehlo.compare EQ, %0, %0, FLOAT : (tensor<3xcomplex<f32>>, tensor<3xcomplex<f32>>) -> tensor<3xi1>
  %5 = stablehlo.add %1, %2 : tensor<3xf32>
  %6 = stablehlo.add %5, %3 : tensor<3xf32>
  return %6, %4 : tensor<3xf32>, tensor<3xi1>
}
