; kernel elementwise for x86-64-v4
; relu(x * 2 + b): %3, %4, %5 of main.onnx
; split 0 by 16 mask; bind group.x
; ModuleID = 'elementwise'
source_filename = "elementwise"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; Function Attrs: nounwind
define internal i32 @elementwise.body(ptr noalias readonly align 64 %x, ptr noalias readonly align 64 %bias, ptr noalias align 64 %y, ptr %0, i64 %begin, i64 %end, ptr %1) #0 {
  %3 = icmp slt i64 %begin, %end
  br i1 %3, label %g, label %28

g:                                                ; preds = %g, %2
  %g1 = phi i64 [ %begin, %2 ], [ %26, %g ]
  %4 = mul nsw i64 %g1, 16
  %5 = sub i64 0, %4
  %6 = add nsw i64 %5, 100
  %7 = icmp slt i64 %6, 16
  %8 = select i1 %7, i64 %6, i64 16
  %9 = icmp sgt i64 %8, 0
  %10 = select i1 %9, i64 %8, i64 0
  %11 = trunc i64 %10 to i32
  %12 = insertelement <16 x i32> poison, i32 %11, i64 0
  %13 = shufflevector <16 x i32> %12, <16 x i32> poison, <16 x i32> zeroinitializer
  %14 = icmp ult <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %13
  %15 = getelementptr inbounds float, ptr %x, i64 %4
  %16 = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %15, i32 4, <16 x i1> %14, <16 x float> zeroinitializer)
  %17 = getelementptr inbounds i16, ptr %bias, i64 %4
  %18 = call <16 x i16> @llvm.masked.load.v16i16.p0(ptr %17, i32 2, <16 x i1> %14, <16 x i16> zeroinitializer)
  %19 = bitcast <16 x i16> %18 to <16 x half>
  %20 = fpext <16 x half> %19 to <16 x float>
  %21 = call <16 x float> @llvm.fma.v16f32(<16 x float> %16, <16 x float> <float 2.000000e+00, float 2.000000e+00, float 2.000000e+00, float 2.000000e+00, float 2.000000e+00, float 2.000000e+00, float 2.000000e+00, float 2.000000e+00, float 2.000000e+00, float 2.000000e+00, float 2.000000e+00, float 2.000000e+00, float 2.000000e+00, float 2.000000e+00, float 2.000000e+00, float 2.000000e+00>, <16 x float> %20)
  %22 = fcmp ogt <16 x float> zeroinitializer, %21
  %23 = select <16 x i1> %22, <16 x float> zeroinitializer, <16 x float> %21
  %24 = fadd <16 x float> %23, zeroinitializer
  %25 = getelementptr inbounds float, ptr %y, i64 %4
  call void @llvm.masked.store.v16f32.p0(<16 x float> %24, ptr %25, i32 4, <16 x i1> %14)
  %26 = add nsw i64 %g1, 1
  %27 = icmp slt i64 %26, %end
  br i1 %27, label %g, label %28

28:                                               ; preds = %g, %2
  ret i32 0
}

; Function Attrs: nounwind
define i32 @elementwise(ptr %0, ptr %1, ptr %2, i64 %3, i64 %4, ptr %5) #0 {
  %7 = getelementptr inbounds ptr, ptr %1, i64 0
  %8 = load ptr, ptr %7, align 8
  %9 = getelementptr inbounds ptr, ptr %1, i64 1
  %10 = load ptr, ptr %9, align 8
  %11 = getelementptr inbounds ptr, ptr %1, i64 2
  %12 = load ptr, ptr %11, align 8
  %13 = tail call i32 @elementwise.body(ptr %8, ptr %10, ptr %12, ptr %2, i64 %3, i64 %4, ptr %5)
  ret i32 %13
}

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: read)
declare <16 x float> @llvm.masked.load.v16f32.p0(ptr nocapture, i32 immarg, <16 x i1>, <16 x float>) #1

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: read)
declare <16 x i16> @llvm.masked.load.v16i16.p0(ptr nocapture, i32 immarg, <16 x i1>, <16 x i16>) #1

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>) #2

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(argmem: write)
declare void @llvm.masked.store.v16f32.p0(<16 x float>, ptr nocapture, i32 immarg, <16 x i1>) #3

attributes #0 = { nounwind "prefer-vector-width"="512" "target-cpu"="x86-64" "target-features"="+sse3,+ssse3,+cx16,+sse4.1,+sse4.2,+movbe,+popcnt,+avx,+f16c,+fma,+bmi,+avx2,+bmi2,+lzcnt,+avx512f,+avx512dq,+avx512cd,+avx512bw,+avx512vl" "tune-cpu"="generic" }
attributes #1 = { nocallback nofree nosync nounwind willreturn memory(argmem: read) }
attributes #2 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #3 = { nocallback nofree nosync nounwind willreturn memory(argmem: write) }

!pestle.note = !{!0}

!0 = !{!"relu(x * 2 + b): %3, %4, %5 of main.onnx\0Asplit 0 by 16 mask; bind group.x"}
