// 8-bit floats too, unless sums are to be strict.
// RUN: %pestle dump %s --stage fused --target ref --target-cpu simt90 | FileCheck %s
// RUN: %pestle dump %s --stage fused --target ref --target-cpu simt90 --numerics strict | FileCheck %s --check-prefix=PLAIN
// RUN: %pestle dump %s --stage schedule --target ref --target-cpu simt90 | FileCheck %s --check-prefix=SCHEDULE
// CHECK: label = "transpose"
// CHECK: stablehlo.dot_general {{.*}} contracting_dims = [1] x [1] {{.*}} -> tensor<64x1024xf16>
// PLAIN-NOT: label = "transpose"
// SCHEDULE: : f32 f8
// SCHEDULE: tensorise {{.*}} apart
func.func @main(%a: tensor<64x1024xf8E4M3FN>, %b: tensor<1024x1024xf8E4M3FN>) -> tensor<64x1024xf16> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x1024xf8E4M3FN>, tensor<1024x1024xf8E4M3FN>) -> tensor<64x1024xf16>
  return %0 : tensor<64x1024xf16>
}
