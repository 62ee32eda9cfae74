// RUN: %pestle dump %s --stage source --target llvm --target-cpu x86-64-v4 | FileCheck %s --check-prefix=FUSED
// RUN: %pestle dump %s --stage source --target llvm --target-cpu x86-64-v4 --numerics strict | FileCheck %s --check-prefix=STRICT
// Strict numerics forbid that a multiply and an add become one rounding.
// FUSED:      @llvm.fma.v16f32
// STRICT-NOT: @llvm.fma
// STRICT:     fmul <16 x float>
// STRICT-NOT: @llvm.fma
// STRICT:     fadd <16 x float>
func.func @main(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %0 = stablehlo.multiply %x, %y : tensor<64xf32>
  %1 = stablehlo.add %0, %x : tensor<64xf32>
  return %1 : tensor<64xf32>
}
