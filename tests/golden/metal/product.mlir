// RUN: %pestle dump %s --stage source --target metal | FileCheck %s
// RUN: %pestle dump %s --stage source --target metal --target-cpu apple6 | FileCheck %s --check-prefix=OLD
// RUN: %pestle dump %s --stage source --target metal --numerics strict | FileCheck %s --check-prefix=OLD
// RUN: %pestle dump %s --stage schedule --target metal | FileCheck %s --check-prefix=ROWS
// A product's boxes stay narrow in the memory of a threadgroup; matrix units
// multiply them in f32, and the sums become results in registers. A GPU before
// the M1 has no such units, and strict numerics no such order.
// ROWS:  tile {{.*}} units8
// CHECK: tile {{.*}} units8
// CHECK: static inline float2 pestle_mma8(
// CHECK: simdgroup_multiply_accumulate(c, a, b, c);
// CHECK: kernel void
// CHECK: PESTLE_TG(ushort, tile_a,
// CHECK: PESTLE_TG(ushort, tile_b,
// CHECK: *(threadgroup ushort4*)&tile_a[
// CHECK: threadgroup_barrier(
// CHECK: *(threadgroup const ushort2*)&tile_a[
// CHECK: float2 [[SUM:f_[0-9]+]] = pestle_mma8(
// CHECK: = [[SUM]].x;
// CHECK: pestle_max_f32(
// CHECK-NOT: tile_
// OLD-NOT: simdgroup_
// OLD: kernel void
func.func @main(%a: tensor<3x70x96xbf16>, %b: tensor<3x96x130xbf16>, %c: tensor<130xf32>) -> tensor<3x70x130xf32> {
  %d = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<3x70x96xbf16>, tensor<3x96x130xbf16>) -> tensor<3x70x130xf32>
  %v = stablehlo.broadcast_in_dim %c, dims = [2] : (tensor<130xf32>) -> tensor<3x70x130xf32>
  %e = stablehlo.add %d, %v : tensor<3x70x130xf32>
  %z = stablehlo.constant dense<0.0> : tensor<3x70x130xf32>
  %y = stablehlo.maximum %e, %z : tensor<3x70x130xf32>
  return %y : tensor<3x70x130xf32>
}
