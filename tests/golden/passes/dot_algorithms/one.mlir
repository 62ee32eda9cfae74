// Operands have as many digits as the algorithm says; units of tf32 cut them themselves, and
// those of warpgroups want the second one along k.
// RUN: %pestle dump %s --stage fused --target ref --target-cpu simt8 | FileCheck %s
// RUN: %pestle dump %s --stage schedule --target ref --target-cpu simt | FileCheck %s --check-prefix=SUBGROUPS
// RUN: %pestle dump %s --stage fused --target ref --target-cpu simt90 --numerics strict | FileCheck %s
// RUN: %pestle dump %s --stage fused --target ref --target-cpu simt90 | FileCheck %s --check-prefix=UNITS
// RUN: %pestle dump %s --stage schedule --target ref --target-cpu simt90 | FileCheck %s --check-prefix=SCHEDULE
// CHECK: label = "reduce_precision"
// CHECK: label = "reduce_precision"
// CHECK: stablehlo.dot_general {{.*}} contracting_dims = [1] x [0] : (tensor<64x512xf32>
// UNITS-NOT: reduce_precision
// UNITS: label = "transpose"
// UNITS: stablehlo.dot_general {{.*}} contracting_dims = [1] x [1], algorithm = <lhs_precision_type = tf32
// SCHEDULE: : f32 tf32
// SCHEDULE: tensorise c 64
// SUBGROUPS-NOT: reduce_precision
// SUBGROUPS: : f32 tf32
// SUBGROUPS: shared_tile c {{.*}} units
func.func @main(%a: tensor<64x512xf32>, %b: tensor<512x1024xf32>) -> tensor<64x1024xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<64x512xf32>, tensor<512x1024xf32>) -> tensor<64x1024xf32>
  return %0 : tensor<64x1024xf32>
}
