// Attention in bf16, whose softmax sums in f32 and rounds the total, or is f32 as a
// whole. The attention rounds once, at its end. (No --check: that is more exact.)
// RUN: %pestle-opt %s --passes=canonicalise,recognise,canonicalise --round-trip | FileCheck %s
// CHECK:      func.func public @main(
// CHECK-NEXT: [[X:%.*]] = "pestle.attention"(%a, %b, %c) <{scale = 1.0 : f64}>
// CHECK-NEXT: [[Y:%.*]] = "pestle.attention"(%a, %d, %c, %bias) <{scale = 0.25 : f64}> : (tensor<5x8xbf16>, tensor<7x8xbf16>, tensor<7x4xbf16>, tensor<5x7xbf16>) -> tensor<5x4xbf16>
// CHECK-NEXT: return [[X]], [[Y]]
func.func @main(%a: tensor<5x8xbf16>, %b: tensor<7x8xbf16>, %c: tensor<7x4xbf16>, %d: tensor<7x8xbf16>, %bias: tensor<5x7xbf16>) -> (tensor<5x4xbf16>, tensor<5x4xbf16>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF80> : tensor<bf16>
  %20 = stablehlo.dot_general %b, %a, contracting_dims = [1] x [1] : (tensor<7x8xbf16>, tensor<5x8xbf16>) -> tensor<7x5xbf16>
  %21 = stablehlo.reduce(%20 init: %low) applies stablehlo.maximum across dimensions = [0] : (tensor<7x5xbf16>, tensor<bf16>) -> tensor<5xbf16>
  %22 = stablehlo.broadcast_in_dim %21, dims = [1] : (tensor<5xbf16>) -> tensor<7x5xbf16>
  %23 = stablehlo.subtract %20, %22 : tensor<7x5xbf16>
  %24 = stablehlo.exponential %23 : tensor<7x5xbf16>
  %25 = stablehlo.convert %24 : (tensor<7x5xbf16>) -> tensor<7x5xf32>
  %26 = stablehlo.reduce(%25 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<7x5xf32>, tensor<f32>) -> tensor<5xf32>
  %27 = stablehlo.convert %26 : (tensor<5xf32>) -> tensor<5xbf16>
  %28 = stablehlo.broadcast_in_dim %27, dims = [1] : (tensor<5xbf16>) -> tensor<7x5xbf16>
  %29 = stablehlo.divide %24, %28 : tensor<7x5xbf16>
  %30 = stablehlo.dot_general %29, %c, contracting_dims = [0] x [0] : (tensor<7x5xbf16>, tensor<7x4xbf16>) -> tensor<5x4xbf16>
  // Scores in f32, by the algorithm that a module asks for.
  %31 = stablehlo.dot_general %a, %d, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<5x8xbf16>, tensor<7x8xbf16>) -> tensor<5x7xf32>
  %quarter = stablehlo.constant dense<0.25> : tensor<5x7xf32>
  %32 = stablehlo.multiply %31, %quarter : tensor<5x7xf32>
  %33 = stablehlo.convert %bias : (tensor<5x7xbf16>) -> tensor<5x7xf32>
  %34 = stablehlo.add %32, %33 : tensor<5x7xf32>
  %35 = "pestle.softmax"(%34) <{dimensions = array<i64: 1>}> : (tensor<5x7xf32>) -> tensor<5x7xf32>
  %36 = stablehlo.convert %35 : (tensor<5x7xf32>) -> tensor<5x7xbf16>
  %37 = stablehlo.dot_general %36, %c, contracting_dims = [1] x [0] : (tensor<5x7xbf16>, tensor<7x4xbf16>) -> tensor<5x4xbf16>
  return %30, %37 : tensor<5x4xbf16>, tensor<5x4xbf16>
}
