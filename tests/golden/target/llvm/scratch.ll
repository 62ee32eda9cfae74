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
  br i1 %5, label %g, label %9

g:                                                ; preds = %20, %2
  %g1 = phi i64 [ %begin, %2 ], [ %25, %20 ]
  %6 = mul nsw i64 %g1, 128
  %7 = getelementptr inbounds float, ptr %x, i64 %6
  %8 = load <16 x float>, ptr %7, align 4, !invariant.load !1
  store <16 x float> %8, ptr %3, align 64, !alias.scope !2, !noalias !5
  br label %i

9:                                                ; preds = %20, %2
  ret i32 0

i:                                                ; preds = %i, %g
  %i2 = phi i64 [ 0, %g ], [ %18, %i ]
  %10 = mul nsw i64 %i2, 16
  %11 = add nsw i64 %10, %6
  %12 = getelementptr inbounds float, ptr %x, i64 %11
  %13 = load <16 x float>, ptr %12, align 4, !invariant.load !1
  %14 = load <16 x float>, ptr %3, align 64, !alias.scope !2, !noalias !5
  %15 = fadd <16 x float> %13, %14
  %16 = mul nsw i64 %i2, 16
  %17 = getelementptr inbounds float, ptr %4, i64 %16
  store <16 x float> %15, ptr %17, align 64, !alias.scope !5, !noalias !2
  %18 = add nsw i64 %i2, 1
  %19 = icmp slt i64 %18, 8
  br i1 %19, label %i, label %20

20:                                               ; preds = %i
  %21 = getelementptr inbounds float, ptr %4, i64 112
  %22 = load <16 x float>, ptr %21, align 64, !alias.scope !5, !noalias !2
  %23 = mul nsw i64 %g1, 16
  %24 = getelementptr inbounds float, ptr %y, i64 %23
  store <16 x float> %22, ptr %24, align 64
  %25 = add nsw i64 %g1, 1
  %26 = icmp slt i64 %25, %end
  br i1 %26, label %g, label %9
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

!pestle.note = !{!0}

!0 = !{!"a test"}
!1 = !{}
!2 = !{!3}
!3 = !{!"shared.2", !4}
!4 = !{!"shared"}
!5 = !{!6}
!6 = !{!"shared.3", !4}
