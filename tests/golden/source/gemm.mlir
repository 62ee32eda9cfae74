// RUN: %pestle dump %s --stage source --target llvm --target-cpu x86-64-v4 | FileCheck %s --check-prefixes=CHECK,V4
// RUN: %pestle dump %s --stage source --target llvm --target-cpu x86-64-v3 | FileCheck %s --check-prefixes=CHECK,V3
// The tile of a product lives in registers: its loop multiplies and adds
// vectors, and stores nothing until it ends.
// CHECK: ; kernel dot_general
// CHECK: define internal i32 @{{.*}}.body(
// V4:    phi <16 x float>
// V4-NOT: store
// V4:    call <16 x float> @llvm.fma.v16f32(
// V3:    phi <8 x float>
// V3-NOT: store
// V3:    call <8 x float> @llvm.fma.v8f32(
// CHECK: store
func.func @main(%a: tensor<24x64xf32>, %b: tensor<64x96xf32>, %c: tensor<96xf32>) -> tensor<24x96xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<24x64xf32>, tensor<64x96xf32>) -> tensor<24x96xf32>
  %1 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<96xf32>) -> tensor<24x96xf32>
  %2 = stablehlo.add %0, %1 : tensor<24x96xf32>
  return %2 : tensor<24x96xf32>
}
