; kernel constants for x86-64-v4
; a test
; ModuleID = 'constants'
source_filename = "constants"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

@constants.1 = private constant <8 x i64> <i64 1065353216, i64 1056964608, i64 1051372203, i64 1048576000, i64 1045220557, i64 1042983595, i64 1041385765, i64 1040187392>

; Function Attrs: nounwind
define internal i32 @constants.body(ptr noalias readonly align 64 %x, ptr noalias align 64 %y, ptr %0, i64 %begin, i64 %end, ptr %1) #0 {
  %3 = getelementptr inbounds i8, ptr %1, i64 0
  %4 = icmp slt i64 %begin, %end
  br i1 %4, label %g, label %5

g:                                                ; preds = %93, %2
  %g1 = phi i64 [ %begin, %2 ], [ %94, %93 ]
  br label %k

5:                                                ; preds = %93, %2
  ret i32 0

k:                                                ; preds = %k, %g
  %k2 = phi i64 [ 0, %g ], [ %33, %k ]
  %6 = phi <16 x float> [ zeroinitializer, %g ], [ %21, %k ]
  %7 = phi <16 x float> [ zeroinitializer, %g ], [ %22, %k ]
  %8 = phi <16 x float> [ zeroinitializer, %g ], [ %23, %k ]
  %9 = phi <16 x float> [ zeroinitializer, %g ], [ %24, %k ]
  %10 = phi <16 x float> [ zeroinitializer, %g ], [ %25, %k ]
  %11 = phi <16 x float> [ zeroinitializer, %g ], [ %26, %k ]
  %12 = phi <16 x float> [ zeroinitializer, %g ], [ %27, %k ]
  %13 = phi <16 x float> [ zeroinitializer, %g ], [ %28, %k ]
  %14 = phi <16 x float> [ zeroinitializer, %g ], [ %29, %k ]
  %15 = phi <16 x float> [ zeroinitializer, %g ], [ %30, %k ]
  %16 = phi <16 x float> [ zeroinitializer, %g ], [ %31, %k ]
  %17 = phi <16 x float> [ zeroinitializer, %g ], [ %32, %k ]
  %18 = mul nsw i64 %k2, 16
  %19 = getelementptr inbounds float, ptr %x, i64 %18
  %20 = load <16 x float>, ptr %19, align 4, !invariant.load !1
  %21 = call <16 x float> @llvm.fma.v16f32(<16 x float> %20, <16 x float> %20, <16 x float> %6)
  %22 = call <16 x float> @llvm.fma.v16f32(<16 x float> %20, <16 x float> %20, <16 x float> %7)
  %23 = call <16 x float> @llvm.fma.v16f32(<16 x float> %20, <16 x float> %20, <16 x float> %8)
  %24 = call <16 x float> @llvm.fma.v16f32(<16 x float> %20, <16 x float> %20, <16 x float> %9)
  %25 = call <16 x float> @llvm.fma.v16f32(<16 x float> %20, <16 x float> %20, <16 x float> %10)
  %26 = call <16 x float> @llvm.fma.v16f32(<16 x float> %20, <16 x float> %20, <16 x float> %11)
  %27 = call <16 x float> @llvm.fma.v16f32(<16 x float> %20, <16 x float> %20, <16 x float> %12)
  %28 = call <16 x float> @llvm.fma.v16f32(<16 x float> %20, <16 x float> %20, <16 x float> %13)
  %29 = call <16 x float> @llvm.fma.v16f32(<16 x float> %20, <16 x float> %20, <16 x float> %14)
  %30 = call <16 x float> @llvm.fma.v16f32(<16 x float> %20, <16 x float> %20, <16 x float> %15)
  %31 = call <16 x float> @llvm.fma.v16f32(<16 x float> %20, <16 x float> %20, <16 x float> %16)
  %32 = call <16 x float> @llvm.fma.v16f32(<16 x float> %20, <16 x float> %20, <16 x float> %17)
  %33 = add nsw i64 %k2, 1
  %34 = icmp slt i64 %33, 64
  br i1 %34, label %k, label %35

35:                                               ; preds = %k
  store <16 x float> %21, ptr %3, align 64
  %36 = getelementptr inbounds float, ptr %3, i64 16
  store <16 x float> %22, ptr %36, align 64
  %37 = getelementptr inbounds float, ptr %3, i64 32
  store <16 x float> %23, ptr %37, align 64
  %38 = getelementptr inbounds float, ptr %3, i64 48
  store <16 x float> %24, ptr %38, align 64
  %39 = getelementptr inbounds float, ptr %3, i64 64
  store <16 x float> %25, ptr %39, align 64
  %40 = getelementptr inbounds float, ptr %3, i64 80
  store <16 x float> %26, ptr %40, align 64
  %41 = getelementptr inbounds float, ptr %3, i64 96
  store <16 x float> %27, ptr %41, align 64
  %42 = getelementptr inbounds float, ptr %3, i64 112
  store <16 x float> %28, ptr %42, align 64
  %43 = getelementptr inbounds float, ptr %3, i64 128
  store <16 x float> %29, ptr %43, align 64
  %44 = getelementptr inbounds float, ptr %3, i64 144
  store <16 x float> %30, ptr %44, align 64
  %45 = getelementptr inbounds float, ptr %3, i64 160
  store <16 x float> %31, ptr %45, align 64
  %46 = getelementptr inbounds float, ptr %3, i64 176
  store <16 x float> %32, ptr %46, align 64
  %47 = call ptr asm sideeffect "", "=r,0"(ptr @constants.1)
  br label %i

i:                                                ; preds = %i, %35
  %i3 = phi i64 [ 0, %35 ], [ %91, %i ]
  %48 = mul nsw i64 %i3, 16
  %49 = getelementptr inbounds float, ptr %3, i64 %48
  %50 = load <16 x float>, ptr %49, align 64
  %51 = getelementptr inbounds i64, ptr %47, i64 0
  %52 = load float, ptr %51, align 4, !invariant.load !1
  %53 = insertelement <16 x float> poison, float %52, i64 0
  %54 = shufflevector <16 x float> %53, <16 x float> poison, <16 x i32> zeroinitializer
  %55 = getelementptr inbounds i64, ptr %47, i64 1
  %56 = load float, ptr %55, align 4, !invariant.load !1
  %57 = insertelement <16 x float> poison, float %56, i64 0
  %58 = shufflevector <16 x float> %57, <16 x float> poison, <16 x i32> zeroinitializer
  %59 = call <16 x float> @llvm.fma.v16f32(<16 x float> %54, <16 x float> %50, <16 x float> %58)
  %60 = getelementptr inbounds i64, ptr %47, i64 2
  %61 = load float, ptr %60, align 4, !invariant.load !1
  %62 = insertelement <16 x float> poison, float %61, i64 0
  %63 = shufflevector <16 x float> %62, <16 x float> poison, <16 x i32> zeroinitializer
  %64 = call <16 x float> @llvm.fma.v16f32(<16 x float> %59, <16 x float> %50, <16 x float> %63)
  %65 = getelementptr inbounds i64, ptr %47, i64 3
  %66 = load float, ptr %65, align 4, !invariant.load !1
  %67 = insertelement <16 x float> poison, float %66, i64 0
  %68 = shufflevector <16 x float> %67, <16 x float> poison, <16 x i32> zeroinitializer
  %69 = call <16 x float> @llvm.fma.v16f32(<16 x float> %64, <16 x float> %50, <16 x float> %68)
  %70 = getelementptr inbounds i64, ptr %47, i64 4
  %71 = load float, ptr %70, align 4, !invariant.load !1
  %72 = insertelement <16 x float> poison, float %71, i64 0
  %73 = shufflevector <16 x float> %72, <16 x float> poison, <16 x i32> zeroinitializer
  %74 = call <16 x float> @llvm.fma.v16f32(<16 x float> %69, <16 x float> %50, <16 x float> %73)
  %75 = getelementptr inbounds i64, ptr %47, i64 5
  %76 = load float, ptr %75, align 4, !invariant.load !1
  %77 = insertelement <16 x float> poison, float %76, i64 0
  %78 = shufflevector <16 x float> %77, <16 x float> poison, <16 x i32> zeroinitializer
  %79 = call <16 x float> @llvm.fma.v16f32(<16 x float> %74, <16 x float> %50, <16 x float> %78)
  %80 = getelementptr inbounds i64, ptr %47, i64 6
  %81 = load float, ptr %80, align 4, !invariant.load !1
  %82 = insertelement <16 x float> poison, float %81, i64 0
  %83 = shufflevector <16 x float> %82, <16 x float> poison, <16 x i32> zeroinitializer
  %84 = call <16 x float> @llvm.fma.v16f32(<16 x float> %79, <16 x float> %50, <16 x float> %83)
  %85 = getelementptr inbounds i64, ptr %47, i64 7
  %86 = load float, ptr %85, align 4, !invariant.load !1
  %87 = insertelement <16 x float> poison, float %86, i64 0
  %88 = shufflevector <16 x float> %87, <16 x float> poison, <16 x i32> zeroinitializer
  %89 = call <16 x float> @llvm.fma.v16f32(<16 x float> %84, <16 x float> %50, <16 x float> %88)
  %90 = getelementptr inbounds float, ptr %y, i64 %48
  store <16 x float> %89, ptr %90, align 4
  %91 = add nsw i64 %i3, 1
  %92 = icmp slt i64 %91, 12
  br i1 %92, label %i, label %93

93:                                               ; preds = %i
  %94 = add nsw i64 %g1, 1
  %95 = icmp slt i64 %94, %end
  br i1 %95, label %g, label %5
}

; Function Attrs: nounwind
define i32 @constants(ptr %0, ptr %1, ptr %2, i64 %3, i64 %4, ptr %5) #0 {
  %7 = getelementptr inbounds ptr, ptr %1, i64 0
  %8 = load ptr, ptr %7, align 8
  %9 = getelementptr inbounds ptr, ptr %1, i64 1
  %10 = load ptr, ptr %9, align 8
  %11 = tail call i32 @constants.body(ptr %8, ptr %10, ptr %2, i64 %3, i64 %4, ptr %5)
  ret i32 %11
}

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>) #1

attributes #0 = { nounwind "prefer-vector-width"="512" "target-cpu"="x86-64" "target-features"="+sse3,+ssse3,+cx16,+sse4.1,+sse4.2,+movbe,+popcnt,+avx,+f16c,+fma,+bmi,+avx2,+bmi2,+lzcnt,+avx512f,+avx512dq,+avx512cd,+avx512bw,+avx512vl" "tune-cpu"="generic" }
attributes #1 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }

!pestle.note = !{!0}

!0 = !{!"a test"}
!1 = !{}
