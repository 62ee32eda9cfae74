// RUN: %pestle dump %s --stage source --target llvm --target-cpu x86-64-v4 | FileCheck %s --check-prefixes=CHECK,V4
// RUN: %pestle dump %s --stage source --target llvm --target-cpu x86-64-v3 | FileCheck %s --check-prefixes=CHECK,V3
// The IR is vectorised as the schedule says, and the tail is masked. The note
// names the graph ops that the kernel came from.
// CHECK: ; kernel multiply_add_abs_0 for x86-64-v{{[34]}}
// CHECK: ; multiply_add_abs: multiply, add, abs
// CHECK: target triple = "x86_64-unknown-linux-gnu"
// CHECK: define internal i32 @{{.*}}.body(ptr noalias readonly align 4 %x, ptr noalias readonly align 4 %y, ptr noalias align 64 %y_2,
// V4:    call <16 x float> @llvm.fma.v16f32(
// V4:    call <16 x float> @llvm.fabs.v16f32(
// V4:    call <16 x float> @llvm.masked.load.v16f32
// V4:    call void @llvm.masked.store.v16f32
// V3-NOT: <16 x float>
// V3:    call <8 x float> @llvm.fma.v8f32(
// V3:    call <8 x float> @llvm.fabs.v8f32(
// V3:    call <8 x float> @llvm.masked.load.v8f32
// V3:    call void @llvm.masked.store.v8f32
// CHECK: define i32 @multiply_add_abs_0(ptr
func.func @main(%x: tensor<3x37xf32>, %y: tensor<3x37xf32>) -> tensor<3x37xf32> {
  %0 = stablehlo.multiply %x, %y : tensor<3x37xf32>
  %1 = stablehlo.add %0, %x : tensor<3x37xf32>
  %2 = stablehlo.abs %1 : tensor<3x37xf32>
  return %2 : tensor<3x37xf32>
}
