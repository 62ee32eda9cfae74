; kernel scratch for x86-64-v4
; a test
; ModuleID = 'scratch'
source_filename = "scratch"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; Function Attrs: nounwind
define internal i32 @scratch.body(ptr noalias readonly align 64 %x, ptr noalias align 64 %y, ptr %0, i64 %begin, i64 %end, ptr %1) #0 {
  %3 = getelementptr inbounds i8, ptr %1, i64 0
  %4 = getelementptr inbounds i8, ptr %1, i64 64
  %5 = icmp slt i64 %begin, %end
  br i1 %5, label %g, label %10

g:                                                ; preds = %21, %2
  %g1 = phi i64 [ %begin, %2 ], [ %26, %21 ]
  %6 = call i64 asm "", "=r,0"(i64 %g1) #1
  %7 = mul nsw i64 %6, 128
  %8 = getelementptr inbounds float, ptr %x, i64 %7
  %9 = load <16 x float>, ptr %8, align 4, !invariant.load !1
  store <16 x float> %9, ptr %3, align 64, !alias.scope !2, !noalias !5
  br label %i

10:                                               ; preds = %21, %2
  ret i32 0

i:                                                ; preds = %i, %g
  %i2 = phi i64 [ 0, %g ], [ %19, %i ]
  %11 = mul nsw i64 %i2, 16
  %12 = add nsw i64 %11, %7
  %13 = getelementptr inbounds float, ptr %x, i64 %12
  %14 = load <16 x float>, ptr %13, align 4, !invariant.load !1
  %15 = load <16 x float>, ptr %3, align 64, !alias.scope !2, !noalias !5
  %16 = fadd <16 x float> %14, %15
  %17 = mul nsw i64 %i2, 16
  %18 = getelementptr inbounds float, ptr %4, i64 %17
  store <16 x float> %16, ptr %18, align 64, !alias.scope !5, !noalias !2
  %19 = add nsw i64 %i2, 1
  %20 = icmp slt i64 %19, 8
  br i1 %20, label %i, label %21

21:                                               ; preds = %i
  %22 = getelementptr inbounds float, ptr %4, i64 112
  %23 = load <16 x float>, ptr %22, align 64, !alias.scope !5, !noalias !2
  %24 = mul nsw i64 %6, 16
  %25 = getelementptr inbounds float, ptr %y, i64 %24
  store <16 x float> %23, ptr %25, align 64
  %26 = add nsw i64 %g1, 1
  %27 = icmp slt i64 %26, %end
  br i1 %27, label %g, label %10
}

; Function Attrs: nounwind
define i32 @scratch(ptr %0, ptr %1, ptr %2, i64 %3, i64 %4, ptr %5) #0 {
  %7 = getelementptr inbounds ptr, ptr %1, i64 0
  %8 = load ptr, ptr %7, align 8
  %9 = getelementptr inbounds ptr, ptr %1, i64 1
  %10 = load ptr, ptr %9, align 8
  %11 = tail call i32 @scratch.body(ptr %8, ptr %10, ptr %2, i64 %3, i64 %4, ptr %5)
  ret i32 %11
}

attributes #0 = { nounwind "prefer-vector-width"="512" "target-cpu"="x86-64" "target-features"="+sse3,+ssse3,+cx16,+sse4.1,+sse4.2,+movbe,+popcnt,+avx,+f16c,+fma,+bmi,+avx2,+bmi2,+lzcnt,+avx512f,+avx512dq,+avx512cd,+avx512bw,+avx512vl" "tune-cpu"="generic" }
attributes #1 = { nounwind willreturn memory(none) }

!pestle.note = !{!0}

!0 = !{!"a test"}
!1 = !{}
!2 = !{!3}
!3 = !{!"shared.2", !4}
!4 = !{!"shared"}
!5 = !{!6}
!6 = !{!"shared.3", !4}
