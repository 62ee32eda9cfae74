; kernel tile for x86-64-v4
; a test
; ModuleID = 'tile'
source_filename = "tile"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; Function Attrs: nounwind
define internal i32 @tile.body(ptr noalias readonly align 64 %a, ptr noalias readonly align 64 %b, ptr noalias align 64 %c, ptr %0, i64 %begin, i64 %end, ptr %1) #0 {
  %3 = icmp slt i64 %begin, %end
  br i1 %3, label %g, label %5

g:                                                ; preds = %43, %2
  %g1 = phi i64 [ %begin, %2 ], [ %55, %43 ]
  %4 = call i64 asm "", "=r,0"(i64 %g1) #2
  br label %k

5:                                                ; preds = %43, %2
  ret i32 0

k:                                                ; preds = %k, %g
  %k2 = phi i64 [ 0, %g ], [ %41, %k ]
  %6 = phi <16 x float> [ zeroinitializer, %g ], [ %19, %k ]
  %7 = phi <16 x float> [ zeroinitializer, %g ], [ %24, %k ]
  %8 = phi <16 x float> [ zeroinitializer, %g ], [ %35, %k ]
  %9 = phi <16 x float> [ zeroinitializer, %g ], [ %40, %k ]
  %10 = mul nsw i64 %4, 128
  %11 = add nsw i64 %10, %k2
  %12 = getelementptr inbounds float, ptr %a, i64 %11
  %13 = load float, ptr %12, align 4, !invariant.load !1
  %14 = insertelement <16 x float> poison, float %13, i64 0
  %15 = shufflevector <16 x float> %14, <16 x float> poison, <16 x i32> zeroinitializer
  %16 = mul nsw i64 %k2, 32
  %17 = getelementptr inbounds float, ptr %b, i64 %16
  %18 = load <16 x float>, ptr %17, align 64, !invariant.load !1
  %19 = call <16 x float> @llvm.fma.v16f32(<16 x float> %15, <16 x float> %18, <16 x float> %6)
  %20 = mul nsw i64 %k2, 32
  %21 = getelementptr float, ptr %b, i64 %20
  %22 = getelementptr float, ptr %21, i64 16
  %23 = load <16 x float>, ptr %22, align 64, !invariant.load !1
  %24 = call <16 x float> @llvm.fma.v16f32(<16 x float> %15, <16 x float> %23, <16 x float> %7)
  %25 = mul nsw i64 %4, 128
  %26 = add nsw i64 %25, %k2
  %27 = getelementptr float, ptr %a, i64 %26
  %28 = getelementptr float, ptr %27, i64 64
  %29 = load float, ptr %28, align 4, !invariant.load !1
  %30 = insertelement <16 x float> poison, float %29, i64 0
  %31 = shufflevector <16 x float> %30, <16 x float> poison, <16 x i32> zeroinitializer
  %32 = mul nsw i64 %k2, 32
  %33 = getelementptr inbounds float, ptr %b, i64 %32
  %34 = load <16 x float>, ptr %33, align 64, !invariant.load !1
  %35 = call <16 x float> @llvm.fma.v16f32(<16 x float> %31, <16 x float> %34, <16 x float> %8)
  %36 = mul nsw i64 %k2, 32
  %37 = getelementptr float, ptr %b, i64 %36
  %38 = getelementptr float, ptr %37, i64 16
  %39 = load <16 x float>, ptr %38, align 64, !invariant.load !1
  %40 = call <16 x float> @llvm.fma.v16f32(<16 x float> %31, <16 x float> %39, <16 x float> %9)
  %41 = add nsw i64 %k2, 1
  %42 = icmp slt i64 %41, 64
  br i1 %42, label %k, label %43

43:                                               ; preds = %k
  %44 = mul nsw i64 %4, 64
  %45 = getelementptr inbounds float, ptr %c, i64 %44
  store <16 x float> %19, ptr %45, align 64
  %46 = mul nsw i64 %4, 64
  %47 = getelementptr float, ptr %c, i64 %46
  %48 = getelementptr float, ptr %47, i64 16
  store <16 x float> %24, ptr %48, align 64
  %49 = mul nsw i64 %4, 64
  %50 = getelementptr float, ptr %c, i64 %49
  %51 = getelementptr float, ptr %50, i64 32
  store <16 x float> %35, ptr %51, align 64
  %52 = mul nsw i64 %4, 64
  %53 = getelementptr float, ptr %c, i64 %52
  %54 = getelementptr float, ptr %53, i64 48
  store <16 x float> %40, ptr %54, align 64
  %55 = add nsw i64 %g1, 1
  %56 = icmp slt i64 %55, %end
  br i1 %56, label %g, label %5
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
attributes #2 = { nounwind willreturn memory(none) }

!pestle.note = !{!0}

!0 = !{!"a test"}
!1 = !{}
