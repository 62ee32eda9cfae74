// By bf16 operands are converted.
// RUN: %pestle dump %s --stage fused --target ref | FileCheck %s
// CHECK: stablehlo.convert {{.*}} -> tensor<64x256xbf16>
// CHECK-NOT: algorithm
// CHECK: (tensor<64x256xbf16>, tensor<256x1024xbf16>) -> tensor<64x1024xf32>
func.func @main(%a: tensor<64x256xf32>, %b: tensor<256x1024xf32>) -> tensor<64x1024xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<64x256xf32>, tensor<256x1024xf32>) -> tensor<64x1024xf32>
  return %0 : tensor<64x1024xf32>
}
