; kernel tile for x86-64-v4
; a test
; ModuleID = 'tile'
source_filename = "tile"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; Function Attrs: nounwind
define internal i32 @tile.body(ptr noalias readonly align 64 %a, ptr noalias readonly align 64 %b, ptr noalias align 64 %c, ptr %0, i64 %begin, i64 %end, ptr %1) #0 {
  %3 = icmp slt i64 %begin, %end
  br i1 %3, label %g, label %4

g:                                                ; preds = %42, %2
  %g1 = phi i64 [ %begin, %2 ], [ %54, %42 ]
  br label %k

4:                                                ; preds = %42, %2
  ret i32 0

k:                                                ; preds = %k, %g
  %k2 = phi i64 [ 0, %g ], [ %40, %k ]
  %5 = phi <16 x float> [ zeroinitializer, %g ], [ %18, %k ]
  %6 = phi <16 x float> [ zeroinitializer, %g ], [ %23, %k ]
  %7 = phi <16 x float> [ zeroinitializer, %g ], [ %34, %k ]
  %8 = phi <16 x float> [ zeroinitializer, %g ], [ %39, %k ]
  %9 = mul nsw i64 %g1, 128
  %10 = add nsw i64 %9, %k2
  %11 = getelementptr inbounds float, ptr %a, i64 %10
  %12 = load float, ptr %11, align 4, !invariant.load !1
  %13 = insertelement <16 x float> poison, float %12, i64 0
  %14 = shufflevector <16 x float> %13, <16 x float> poison, <16 x i32> zeroinitializer
  %15 = mul nsw i64 %k2, 32
  %16 = getelementptr inbounds float, ptr %b, i64 %15
  %17 = load <16 x float>, ptr %16, align 64, !invariant.load !1
  %18 = call <16 x float> @llvm.fma.v16f32(<16 x float> %14, <16 x float> %17, <16 x float> %5)
  %19 = mul nsw i64 %k2, 32
  %20 = getelementptr float, ptr %b, i64 %19
  %21 = getelementptr float, ptr %20, i64 16
  %22 = load <16 x float>, ptr %21, align 64, !invariant.load !1
  %23 = call <16 x float> @llvm.fma.v16f32(<16 x float> %14, <16 x float> %22, <16 x float> %6)
  %24 = mul nsw i64 %g1, 128
  %25 = add nsw i64 %24, %k2
  %26 = getelementptr float, ptr %a, i64 %25
  %27 = getelementptr float, ptr %26, i64 64
  %28 = load float, ptr %27, align 4, !invariant.load !1
  %29 = insertelement <16 x float> poison, float %28, i64 0
  %30 = shufflevector <16 x float> %29, <16 x float> poison, <16 x i32> zeroinitializer
  %31 = mul nsw i64 %k2, 32
  %32 = getelementptr inbounds float, ptr %b, i64 %31
  %33 = load <16 x float>, ptr %32, align 64, !invariant.load !1
  %34 = call <16 x float> @llvm.fma.v16f32(<16 x float> %30, <16 x float> %33, <16 x float> %7)
  %35 = mul nsw i64 %k2, 32
  %36 = getelementptr float, ptr %b, i64 %35
  %37 = getelementptr float, ptr %36, i64 16
  %38 = load <16 x float>, ptr %37, align 64, !invariant.load !1
  %39 = call <16 x float> @llvm.fma.v16f32(<16 x float> %30, <16 x float> %38, <16 x float> %8)
  %40 = add nsw i64 %k2, 1
  %41 = icmp slt i64 %40, 64
  br i1 %41, label %k, label %42

42:                                               ; preds = %k
  %43 = mul nsw i64 %g1, 64
  %44 = getelementptr inbounds float, ptr %c, i64 %43
  store <16 x float> %18, ptr %44, align 64
  %45 = mul nsw i64 %g1, 64
  %46 = getelementptr float, ptr %c, i64 %45
  %47 = getelementptr float, ptr %46, i64 16
  store <16 x float> %23, ptr %47, align 64
  %48 = mul nsw i64 %g1, 64
  %49 = getelementptr float, ptr %c, i64 %48
  %50 = getelementptr float, ptr %49, i64 32
  store <16 x float> %34, ptr %50, align 64
  %51 = mul nsw i64 %g1, 64
  %52 = getelementptr float, ptr %c, i64 %51
  %53 = getelementptr float, ptr %52, i64 48
  store <16 x float> %39, ptr %53, align 64
  %54 = add nsw i64 %g1, 1
  %55 = icmp slt i64 %54, %end
  br i1 %55, label %g, label %4
}

; Function Attrs: nounwind
define i32 @tile(ptr %0, ptr %1, ptr %2, i64 %3, i64 %4, ptr %5) #0 {
  %7 = getelementptr inbounds ptr, ptr %1, i64 0
  %8 = load ptr, ptr %7, align 8
  %9 = getelementptr inbounds ptr, ptr %1, i64 1
  %10 = load ptr, ptr %9, align 8
  %11 = getelementptr inbounds ptr, ptr %1, i64 2
  %12 = load ptr, ptr %11, align 8
  %13 = tail call i32 @tile.body(ptr %8, ptr %10, ptr %12, ptr %2, i64 %3, i64 %4, ptr %5)
  ret i32 %13
}

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>) #1

attributes #0 = { nounwind "prefer-vector-width"="512" "target-cpu"="x86-64" "target-features"="+sse3,+ssse3,+cx16,+sse4.1,+sse4.2,+movbe,+popcnt,+avx,+f16c,+fma,+bmi,+avx2,+bmi2,+lzcnt,+avx512f,+avx512dq,+avx512cd,+avx512bw,+avx512vl" "tune-cpu"="generic" }
attributes #1 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }

!pestle.note = !{!0}

!0 = !{!"a test"}
!1 = !{}
