// Ops of CHLO keep their names; their bodies are formulas of other ops, in f32 or f64, or in
// their own type.
// RUN: %pestle dump %s > %t && %pestle dump %t | diff %t - && FileCheck %s < %t
// CHECK-LABEL: func.func public @main
// CHECK: stablehlo.composite "chlo.lgamma" %x {decomposition = @chlo.lgamma.impl, version = 1 : i32}
// CHECK: stablehlo.composite "chlo.zeta" %y, %y
// CHECK: stablehlo.composite "chlo.next_after" %x, %0
// CHECK: stablehlo.composite "chlo.mulhi" %z, %z
// CHECK: stablehlo.composite "chlo.is_inf" %y
// CHECK: stablehlo.composite "chlo.acos" %w
// CHECK-LABEL: func.func private @chlo.lgamma.impl
// CHECK: stablehlo.convert %{{.*}} : (tensor<3xbf16>) -> tensor<3xf32>
// CHECK: stablehlo.log %{{.*}} : tensor<3xf32>
// CHECK: stablehlo.sine %{{.*}} : tensor<3xf32>
// CHECK: stablehlo.convert %{{.*}} : (tensor<3xf32>) -> tensor<3xbf16>
// CHECK: stablehlo.power %{{.*}} : tensor<3xf64>
// CHECK: stablehlo.bitcast_convert %{{.*}} : (tensor<3xbf16>) -> tensor<3xui16>
// CHECK: stablehlo.bitcast_convert %{{.*}} : (tensor<3xui16>) -> tensor<3xbf16>
// CHECK: stablehlo.shift_right_arithmetic %{{.*}} : tensor<3xi32>
// CHECK: stablehlo.convert %{{.*}} : (tensor<3xi32>) -> tensor<3xi16>
// CHECK: stablehlo.is_finite %{{.*}} : (tensor<3xf64>) -> tensor<3xi1>
// CHECK: stablehlo.real %{{.*}} : (tensor<3xcomplex<f32>>) -> tensor<3xf32>
// CHECK: stablehlo.atan2 %{{.*}} : tensor<3xf32>
// CHECK: stablehlo.complex %{{.*}} : tensor<3xcomplex<f32>>
func.func @main(%x: tensor<3xbf16>, %y: tensor<3xf64>, %z: tensor<3xi16>, %w: tensor<3xcomplex<f32>>) -> (tensor<3xbf16>, tensor<3xf64>, tensor<3xbf16>, tensor<3xi16>, tensor<3xi1>, tensor<3xcomplex<f32>>) {
  %0 = chlo.lgamma %x : tensor<3xbf16> -> tensor<3xbf16>
  %1 = "chlo.zeta"(%y, %y) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %2 = chlo.next_after %x, %0 : tensor<3xbf16>, tensor<3xbf16> -> tensor<3xbf16>
  %3 = chlo.mulhi %z, %z : tensor<3xi16>, tensor<3xi16> -> tensor<3xi16>
  %4 = chlo.is_inf %y : tensor<3xf64> -> tensor<3xi1>
  %5 = chlo.acos %w : tensor<3xcomplex<f32>> -> tensor<3xcomplex<f32>>
  return %0, %1, %2, %3, %4, %5 : tensor<3xbf16>, tensor<3xf64>, tensor<3xbf16>, tensor<3xi16>, tensor<3xi1>, tensor<3xcomplex<f32>>
}
