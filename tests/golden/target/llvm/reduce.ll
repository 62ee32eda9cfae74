; kernel reduce for x86-64-v4
; a test
; ModuleID = 'reduce'
source_filename = "reduce"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; Function Attrs: nounwind
define internal i32 @reduce.body(ptr noalias readonly align 64 %x, ptr noalias readonly align 64 %flag, ptr noalias align 64 %y, ptr %0, i64 %begin, i64 %end, ptr %1) #0 {
  %3 = icmp slt i64 %begin, %end
  br i1 %3, label %g, label %7

g:                                                ; preds = %8, %2
  %g1 = phi i64 [ %begin, %2 ], [ %23, %8 ]
  %4 = getelementptr inbounds i8, ptr %flag, i64 %g1
  %5 = load i8, ptr %4, align 1, !invariant.load !1
  %6 = icmp ne i8 %5, 0
  br i1 %6, label %then, label %8

7:                                                ; preds = %8, %2
  ret i32 0

then:                                             ; preds = %g
  br label %i

8:                                                ; preds = %34, %g
  %9 = phi <8 x i32> [ %31, %34 ], [ <i32 -2147483648, i32 -2147483648, i32 -2147483648, i32 -2147483648, i32 -2147483648, i32 -2147483648, i32 -2147483648, i32 -2147483648>, %g ]
  %10 = shufflevector <8 x i32> %9, <8 x i32> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %11 = shufflevector <8 x i32> %9, <8 x i32> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %12 = icmp sgt <4 x i32> %10, %11
  %13 = select <4 x i1> %12, <4 x i32> %10, <4 x i32> %11
  %14 = shufflevector <4 x i32> %13, <4 x i32> poison, <2 x i32> <i32 0, i32 1>
  %15 = shufflevector <4 x i32> %13, <4 x i32> poison, <2 x i32> <i32 2, i32 3>
  %16 = icmp sgt <2 x i32> %14, %15
  %17 = select <2 x i1> %16, <2 x i32> %14, <2 x i32> %15
  %18 = extractelement <2 x i32> %17, i64 0
  %19 = extractelement <2 x i32> %17, i64 1
  %20 = icmp sgt i32 %18, %19
  %21 = select i1 %20, i32 %18, i32 %19
  %22 = getelementptr inbounds i32, ptr %y, i64 %g1
  store i32 %21, ptr %22, align 4
  %23 = add nsw i64 %g1, 1
  %24 = icmp slt i64 %23, %end
  br i1 %24, label %g, label %7

i:                                                ; preds = %i, %then
  %i2 = phi i64 [ 0, %then ], [ %32, %i ]
  %25 = phi <8 x i32> [ <i32 -2147483648, i32 -2147483648, i32 -2147483648, i32 -2147483648, i32 -2147483648, i32 -2147483648, i32 -2147483648, i32 -2147483648>, %then ], [ %31, %i ]
  %26 = mul nsw i64 %g1, 64
  %27 = add nsw i64 %26, %i2
  %28 = getelementptr inbounds i32, ptr %x, i64 %27
  %29 = load <8 x i32>, ptr %28, align 4, !invariant.load !1
  %30 = icmp sgt <8 x i32> %29, %25
  %31 = select <8 x i1> %30, <8 x i32> %29, <8 x i32> %25
  %32 = add nsw i64 %i2, 8
  %33 = icmp slt i64 %32, 64
  br i1 %33, label %i, label %34

34:                                               ; preds = %i
  br label %8
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

!pestle.note = !{!0}

!0 = !{!"a test"}
!1 = !{}
