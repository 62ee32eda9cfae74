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
  br i1 %4, label %g, label %6

g:                                                ; preds = %94, %2
  %g1 = phi i64 [ %begin, %2 ], [ %95, %94 ]
  %5 = call i64 asm "", "=r,0"(i64 %g1) #2
  br label %k

6:                                                ; preds = %94, %2
  ret i32 0

k:                                                ; preds = %k, %g
  %k2 = phi i64 [ 0, %g ], [ %34, %k ]
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
  %18 = phi <16 x float> [ zeroinitializer, %g ], [ %33, %k ]
  %19 = mul nsw i64 %k2, 16
  %20 = getelementptr inbounds float, ptr %x, i64 %19
  %21 = load <16 x float>, ptr %20, align 4, !invariant.load !1
  %22 = call <16 x float> @llvm.fma.v16f32(<16 x float> %21, <16 x float> %21, <16 x float> %7)
  %23 = call <16 x float> @llvm.fma.v16f32(<16 x float> %21, <16 x float> %21, <16 x float> %8)
  %24 = call <16 x float> @llvm.fma.v16f32(<16 x float> %21, <16 x float> %21, <16 x float> %9)
  %25 = call <16 x float> @llvm.fma.v16f32(<16 x float> %21, <16 x float> %21, <16 x float> %10)
  %26 = call <16 x float> @llvm.fma.v16f32(<16 x float> %21, <16 x float> %21, <16 x float> %11)
  %27 = call <16 x float> @llvm.fma.v16f32(<16 x float> %21, <16 x float> %21, <16 x float> %12)
  %28 = call <16 x float> @llvm.fma.v16f32(<16 x float> %21, <16 x float> %21, <16 x float> %13)
  %29 = call <16 x float> @llvm.fma.v16f32(<16 x float> %21, <16 x float> %21, <16 x float> %14)
  %30 = call <16 x float> @llvm.fma.v16f32(<16 x float> %21, <16 x float> %21, <16 x float> %15)
  %31 = call <16 x float> @llvm.fma.v16f32(<16 x float> %21, <16 x float> %21, <16 x float> %16)
  %32 = call <16 x float> @llvm.fma.v16f32(<16 x float> %21, <16 x float> %21, <16 x float> %17)
  %33 = call <16 x float> @llvm.fma.v16f32(<16 x float> %21, <16 x float> %21, <16 x float> %18)
  %34 = add nsw i64 %k2, 1
  %35 = icmp slt i64 %34, 64
  br i1 %35, label %k, label %36

36:                                               ; preds = %k
  store <16 x float> %22, ptr %3, align 64
  %37 = getelementptr inbounds float, ptr %3, i64 16
  store <16 x float> %23, ptr %37, align 64
  %38 = getelementptr inbounds float, ptr %3, i64 32
  store <16 x float> %24, ptr %38, align 64
  %39 = getelementptr inbounds float, ptr %3, i64 48
  store <16 x float> %25, ptr %39, align 64
  %40 = getelementptr inbounds float, ptr %3, i64 64
  store <16 x float> %26, ptr %40, align 64
  %41 = getelementptr inbounds float, ptr %3, i64 80
  store <16 x float> %27, ptr %41, align 64
  %42 = getelementptr inbounds float, ptr %3, i64 96
  store <16 x float> %28, ptr %42, align 64
  %43 = getelementptr inbounds float, ptr %3, i64 112
  store <16 x float> %29, ptr %43, align 64
  %44 = getelementptr inbounds float, ptr %3, i64 128
  store <16 x float> %30, ptr %44, align 64
  %45 = getelementptr inbounds float, ptr %3, i64 144
  store <16 x float> %31, ptr %45, align 64
  %46 = getelementptr inbounds float, ptr %3, i64 160
  store <16 x float> %32, ptr %46, align 64
  %47 = getelementptr inbounds float, ptr %3, i64 176
  store <16 x float> %33, ptr %47, align 64
  %48 = call ptr asm sideeffect "", "=r,0"(ptr @constants.1)
  br label %i

i:                                                ; preds = %i, %36
  %i3 = phi i64 [ 0, %36 ], [ %92, %i ]
  %49 = mul nsw i64 %i3, 16
  %50 = getelementptr inbounds float, ptr %3, i64 %49
  %51 = load <16 x float>, ptr %50, align 64
  %52 = getelementptr inbounds i64, ptr %48, i64 0
  %53 = load float, ptr %52, align 4, !invariant.load !1
  %54 = insertelement <16 x float> poison, float %53, i64 0
  %55 = shufflevector <16 x float> %54, <16 x float> poison, <16 x i32> zeroinitializer
  %56 = getelementptr inbounds i64, ptr %48, i64 1
  %57 = load float, ptr %56, align 4, !invariant.load !1
  %58 = insertelement <16 x float> poison, float %57, i64 0
  %59 = shufflevector <16 x float> %58, <16 x float> poison, <16 x i32> zeroinitializer
  %60 = call <16 x float> @llvm.fma.v16f32(<16 x float> %55, <16 x float> %51, <16 x float> %59)
  %61 = getelementptr inbounds i64, ptr %48, i64 2
  %62 = load float, ptr %61, align 4, !invariant.load !1
  %63 = insertelement <16 x float> poison, float %62, i64 0
  %64 = shufflevector <16 x float> %63, <16 x float> poison, <16 x i32> zeroinitializer
  %65 = call <16 x float> @llvm.fma.v16f32(<16 x float> %60, <16 x float> %51, <16 x float> %64)
  %66 = getelementptr inbounds i64, ptr %48, i64 3
  %67 = load float, ptr %66, align 4, !invariant.load !1
  %68 = insertelement <16 x float> poison, float %67, i64 0
  %69 = shufflevector <16 x float> %68, <16 x float> poison, <16 x i32> zeroinitializer
  %70 = call <16 x float> @llvm.fma.v16f32(<16 x float> %65, <16 x float> %51, <16 x float> %69)
  %71 = getelementptr inbounds i64, ptr %48, i64 4
  %72 = load float, ptr %71, align 4, !invariant.load !1
  %73 = insertelement <16 x float> poison, float %72, i64 0
  %74 = shufflevector <16 x float> %73, <16 x float> poison, <16 x i32> zeroinitializer
  %75 = call <16 x float> @llvm.fma.v16f32(<16 x float> %70, <16 x float> %51, <16 x float> %74)
  %76 = getelementptr inbounds i64, ptr %48, i64 5
  %77 = load float, ptr %76, align 4, !invariant.load !1
  %78 = insertelement <16 x float> poison, float %77, i64 0
  %79 = shufflevector <16 x float> %78, <16 x float> poison, <16 x i32> zeroinitializer
  %80 = call <16 x float> @llvm.fma.v16f32(<16 x float> %75, <16 x float> %51, <16 x float> %79)
  %81 = getelementptr inbounds i64, ptr %48, i64 6
  %82 = load float, ptr %81, align 4, !invariant.load !1
  %83 = insertelement <16 x float> poison, float %82, i64 0
  %84 = shufflevector <16 x float> %83, <16 x float> poison, <16 x i32> zeroinitializer
  %85 = call <16 x float> @llvm.fma.v16f32(<16 x float> %80, <16 x float> %51, <16 x float> %84)
  %86 = getelementptr inbounds i64, ptr %48, i64 7
  %87 = load float, ptr %86, align 4, !invariant.load !1
  %88 = insertelement <16 x float> poison, float %87, i64 0
  %89 = shufflevector <16 x float> %88, <16 x float> poison, <16 x i32> zeroinitializer
  %90 = call <16 x float> @llvm.fma.v16f32(<16 x float> %85, <16 x float> %51, <16 x float> %89)
  %91 = getelementptr inbounds float, ptr %y, i64 %49
  store <16 x float> %90, ptr %91, align 4
  %92 = add nsw i64 %i3, 1
  %93 = icmp slt i64 %92, 12
  br i1 %93, label %i, label %94

94:                                               ; preds = %i
  %95 = add nsw i64 %g1, 1
  %96 = icmp slt i64 %95, %end
  br i1 %96, label %g, label %6
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
attributes #2 = { nounwind willreturn memory(none) }

!pestle.note = !{!0}

!0 = !{!"a test"}
!1 = !{}
