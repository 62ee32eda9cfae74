; kernel reduce for x86-64-v4
; a test
; ModuleID = 'reduce'
source_filename = "reduce"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; Function Attrs: nounwind
define internal i32 @reduce.body(ptr noalias readonly align 64 %x, ptr noalias readonly align 64 %flag, ptr noalias align 64 %y, ptr %0, i64 %begin, i64 %end, ptr %1) #0 {
  %3 = icmp slt i64 %begin, %end
  br i1 %3, label %g, label %8

g:                                                ; preds = %9, %2
  %g1 = phi i64 [ %begin, %2 ], [ %24, %9 ]
  %4 = call i64 asm "", "=r,0"(i64 %g1) #1
  %5 = getelementptr inbounds i8, ptr %flag, i64 %4
  %6 = load i8, ptr %5, align 1, !invariant.load !1
  %7 = icmp ne i8 %6, 0
  br i1 %7, label %then, label %9

8:                                                ; preds = %9, %2
  ret i32 0

then:                                             ; preds = %g
  br label %i

9:                                                ; preds = %35, %g
  %10 = phi <8 x i32> [ %32, %35 ], [ <i32 -2147483648, i32 -2147483648, i32 -2147483648, i32 -2147483648, i32 -2147483648, i32 -2147483648, i32 -2147483648, i32 -2147483648>, %g ]
  %11 = shufflevector <8 x i32> %10, <8 x i32> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %12 = shufflevector <8 x i32> %10, <8 x i32> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %13 = icmp sgt <4 x i32> %11, %12
  %14 = select <4 x i1> %13, <4 x i32> %11, <4 x i32> %12
  %15 = shufflevector <4 x i32> %14, <4 x i32> poison, <2 x i32> <i32 0, i32 1>
  %16 = shufflevector <4 x i32> %14, <4 x i32> poison, <2 x i32> <i32 2, i32 3>
  %17 = icmp sgt <2 x i32> %15, %16
  %18 = select <2 x i1> %17, <2 x i32> %15, <2 x i32> %16
  %19 = extractelement <2 x i32> %18, i64 0
  %20 = extractelement <2 x i32> %18, i64 1
  %21 = icmp sgt i32 %19, %20
  %22 = select i1 %21, i32 %19, i32 %20
  %23 = getelementptr inbounds i32, ptr %y, i64 %4
  store i32 %22, ptr %23, align 4
  %24 = add nsw i64 %g1, 1
  %25 = icmp slt i64 %24, %end
  br i1 %25, label %g, label %8

i:                                                ; preds = %i, %then
  %i2 = phi i64 [ 0, %then ], [ %33, %i ]
  %26 = phi <8 x i32> [ <i32 -2147483648, i32 -2147483648, i32 -2147483648, i32 -2147483648, i32 -2147483648, i32 -2147483648, i32 -2147483648, i32 -2147483648>, %then ], [ %32, %i ]
  %27 = mul nsw i64 %4, 64
  %28 = add nsw i64 %27, %i2
  %29 = getelementptr inbounds i32, ptr %x, i64 %28
  %30 = load <8 x i32>, ptr %29, align 4, !invariant.load !1
  %31 = icmp sgt <8 x i32> %30, %26
  %32 = select <8 x i1> %31, <8 x i32> %30, <8 x i32> %26
  %33 = add nsw i64 %i2, 8
  %34 = icmp slt i64 %33, 64
  br i1 %34, label %i, label %35

35:                                               ; preds = %i
  br label %9
}

; Function Attrs: nounwind
define i32 @reduce(ptr %0, ptr %1, ptr %2, i64 %3, i64 %4, ptr %5) #0 {
  %7 = getelementptr inbounds ptr, ptr %1, i64 0
  %8 = load ptr, ptr %7, align 8
  %9 = getelementptr inbounds ptr, ptr %1, i64 1
  %10 = load ptr, ptr %9, align 8
  %11 = getelementptr inbounds ptr, ptr %1, i64 2
  %12 = load ptr, ptr %11, align 8
  %13 = tail call i32 @reduce.body(ptr %8, ptr %10, ptr %12, ptr %2, i64 %3, i64 %4, ptr %5)
  ret i32 %13
}

attributes #0 = { nounwind "prefer-vector-width"="512" "target-cpu"="x86-64" "target-features"="+sse3,+ssse3,+cx16,+sse4.1,+sse4.2,+movbe,+popcnt,+avx,+f16c,+fma,+bmi,+avx2,+bmi2,+lzcnt,+avx512f,+avx512dq,+avx512cd,+avx512bw,+avx512vl" "tune-cpu"="generic" }
attributes #1 = { nounwind willreturn memory(none) }

!pestle.note = !{!0}

!0 = !{!"a test"}
!1 = !{}
