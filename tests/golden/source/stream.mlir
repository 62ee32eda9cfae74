// Results of one and a half L3 (8 MiB here) and more go past the caches, in
// whole aligned vectors, with a fence behind them; smaller ones
// do not.
// RUN: %pestle dump %s --stage schedule --target llvm --target-cpu x86-64-v3 | FileCheck %s --check-prefix=ROW
// RUN: %pestle dump %s --stage source --target llvm --target-cpu x86-64-v3 | FileCheck %s
// RUN: %pestle dump %s --stage asm --target llvm --target-cpu x86-64-v3 | FileCheck %s --check-prefix=ASM
// ROW-LABEL: nest "negate_0"
// ROW: output y{{(_2)?}} : tensor<2048x2048xf32> slot 0 streamed
// ROW: stream y{{(_2)?$}}
// ROW-LABEL: nest "sqrt_1"
// ROW-NOT: stream
// CHECK-LABEL: define{{.*}} @negate_0.body
// CHECK-DAG: store <{{.*}} align 32, !nontemporal
// CHECK-DAG: call void @llvm.x86.sse.sfence()
// CHECK-LABEL: define{{.*}} @sqrt_1.body
// CHECK-NOT: nontemporal
// ASM-LABEL: negate_0.body
// ASM-DAG: vmovntps
// ASM-DAG: sfence
// ASM-LABEL: sqrt_1.body
// ASM-NOT: vmovnt
func.func @main(%x: tensor<2048x2048xf32>, %s: tensor<1024x2048xf32>) -> (tensor<2048x2048xf32>, tensor<1024x2048xf32>) {
  %y = stablehlo.negate %x : tensor<2048x2048xf32>
  %z = stablehlo.sqrt %s : tensor<1024x2048xf32>
  return %y, %z : tensor<2048x2048xf32>, tensor<1024x2048xf32>
}
