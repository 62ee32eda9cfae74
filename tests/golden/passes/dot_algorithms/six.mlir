// Six products of parts are two, one of five times the k; without units, one of f32.
// RUN: %pestle dump %s --stage fused --target ref --target-cpu simt90 | FileCheck %s
// RUN: %pestle dump %s --stage fused --target ref | FileCheck %s --check-prefix=PLAIN
// CHECK: stablehlo.dot_general {{.*}} : (tensor<64x1280xbf16>, tensor<1280x1024xbf16>) -> tensor<64x1024xf32>
// CHECK: stablehlo.dot_general {{.*}} : (tensor<64x256xbf16>, tensor<256x1024xbf16>) -> tensor<64x1024xf32>
// CHECK-NOT: stablehlo.dot_general
// PLAIN-NOT: algorithm
// PLAIN: (tensor<64x256xf32>, tensor<256x1024xf32>) -> tensor<64x1024xf32>
func.func @main(%a: tensor<64x256xf32>, %b: tensor<256x1024xf32>) -> tensor<64x1024xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 3, rhs_component_count = 3, num_primitive_operations = 6, allow_imprecise_accumulation = false> : (tensor<64x256xf32>, tensor<256x1024xf32>) -> tensor<64x1024xf32>
  return %0 : tensor<64x1024xf32>
}
