// RUN: %pestle dump %s --stage source --target llvm --target-cpu sapphirerapids | FileCheck %s --check-prefixes=IR
// RUN: %pestle dump %s --stage asm --target llvm --target-cpu sapphirerapids | FileCheck %s --check-prefixes=ASM
// RUN: %pestle dump %s --stage asm --target llvm --target-cpu znver4 | FileCheck %s --check-prefixes=OTHER
// The tiles of AMX: configured once, loaded from the rows where they lie, multiplied
// and stored into the result.
// IR: call void @llvm.x86.ldtilecfg(ptr
// IR: call void @llvm.x86.tilerelease()
// IR: call void @llvm.x86.tilezero(i8 3)
// IR: call void @llvm.x86.tileloadd64(i8 4, ptr {{.*}}, i64 512)
// IR: call void @llvm.x86.tdpbf16ps(i8 0, i8 4, i8 6)
// IR: call void @llvm.x86.tilestored64(i8 3, ptr {{.*}}, i64 512)
// ASM: ldtilecfg
// ASM: tilezero tmm0
// ASM: tileloadd tmm4
// ASM: tileloaddt1 tmm6
// ASM: tdpbf16ps tmm0, tmm4, tmm6
// ASM: tdpbf16ps tmm3, tmm5, tmm7
// ASM: tilestored {{.*}}, tmm0
// ASM: tilerelease
// OTHER-NOT: tile
func.func @main(%a: tensor<128x256xbf16>, %b: tensor<256x128xbf16>) -> tensor<128x128xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<128x256xbf16>, tensor<256x128xbf16>) -> tensor<128x128xf32>
  return %0 : tensor<128x128xf32>
}
