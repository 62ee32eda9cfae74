; SPDX-License-Identifier: Apache-2.0
; kernel softmax_0 for x86-64-v3
; softmax: reduce, broadcast_in_dim, subtract, exponential, reduce, divide, broadcast_in_dim,
;     multiply
; inline broadcast_in_dim subtract divide broadcast_in_dim_2 multiply
; reorder y a b
; bind y.a group.x
; at r, y.a
; split r.k 32
; split r.ki 8
; rfactor r.kio reassoc
; rfactor r.kii reassoc
; unroll r.kio
; vectorise r.kii
; reorder r a ko kio kii
; store r private
; at exponential, y.a
; store exponential shared
; split exponential.b 8
; split exponential.bi 8
; unroll exponential.bio
; vectorise exponential.bii
; at r_2, y.a
; split r_2.k 32
; split r_2.ki 8
; rfactor r_2.kio reassoc
; rfactor r_2.kii reassoc
; unroll r_2.kio
; vectorise r_2.kii
; reorder r_2 a ko kio kii
; store r_2 private
; split y.b 16
; split y.bi 8
; unroll y.bio
; vectorise y.bii
; ModuleID = 'softmax_0'
source_filename = "softmax_0"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; Function Attrs: nounwind
define internal i32 @softmax_0.body(ptr noalias readonly align 4 %x, ptr noalias align 64 %y, ptr %0, i64 %begin, i64 %end, ptr %1) #0 {
  %3 = getelementptr inbounds i8, ptr %1, i64 0
  %4 = icmp slt i64 %begin, %end
  br i1 %4, label %g, label %5

g:                                                ; preds = %208, %2
  %g1 = phi i64 [ %begin, %2 ], [ %216, %208 ]
  br label %ko

5:                                                ; preds = %208, %2
  ret i32 0

ko:                                               ; preds = %ko, %g
  %ko2 = phi i64 [ 0, %g ], [ %53, %ko ]
  %6 = phi <8 x float> [ <float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000>, %g ], [ %19, %ko ]
  %7 = phi <8 x float> [ <float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000>, %g ], [ %30, %ko ]
  %8 = phi <8 x float> [ <float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000>, %g ], [ %41, %ko ]
  %9 = phi <8 x float> [ <float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000>, %g ], [ %52, %ko ]
  %10 = mul nsw i64 %g1, 1000
  %11 = mul nsw i64 %ko2, 32
  %12 = add nsw i64 %11, %10
  %13 = getelementptr inbounds float, ptr %x, i64 %12
  %14 = load <8 x float>, ptr %13, align 4, !invariant.load !1
  %15 = fcmp ogt <8 x float> %6, %14
  %16 = select <8 x i1> %15, <8 x float> %6, <8 x float> %14
  %17 = fcmp uno <8 x float> %6, %14
  %18 = fadd <8 x float> %6, %14
  %19 = select <8 x i1> %17, <8 x float> %18, <8 x float> %16
  %20 = mul nsw i64 %g1, 1000
  %21 = mul nsw i64 %ko2, 32
  %22 = add nsw i64 %21, %20
  %23 = getelementptr float, ptr %x, i64 %22
  %24 = getelementptr float, ptr %23, i64 8
  %25 = load <8 x float>, ptr %24, align 4, !invariant.load !1
  %26 = fcmp ogt <8 x float> %7, %25
  %27 = select <8 x i1> %26, <8 x float> %7, <8 x float> %25
  %28 = fcmp uno <8 x float> %7, %25
  %29 = fadd <8 x float> %7, %25
  %30 = select <8 x i1> %28, <8 x float> %29, <8 x float> %27
  %31 = mul nsw i64 %g1, 1000
  %32 = mul nsw i64 %ko2, 32
  %33 = add nsw i64 %32, %31
  %34 = getelementptr float, ptr %x, i64 %33
  %35 = getelementptr float, ptr %34, i64 16
  %36 = load <8 x float>, ptr %35, align 4, !invariant.load !1
  %37 = fcmp ogt <8 x float> %8, %36
  %38 = select <8 x i1> %37, <8 x float> %8, <8 x float> %36
  %39 = fcmp uno <8 x float> %8, %36
  %40 = fadd <8 x float> %8, %36
  %41 = select <8 x i1> %39, <8 x float> %40, <8 x float> %38
  %42 = mul nsw i64 %g1, 1000
  %43 = mul nsw i64 %ko2, 32
  %44 = add nsw i64 %43, %42
  %45 = getelementptr float, ptr %x, i64 %44
  %46 = getelementptr float, ptr %45, i64 24
  %47 = load <8 x float>, ptr %46, align 4, !invariant.load !1
  %48 = fcmp ogt <8 x float> %9, %47
  %49 = select <8 x i1> %48, <8 x float> %9, <8 x float> %47
  %50 = fcmp uno <8 x float> %9, %47
  %51 = fadd <8 x float> %9, %47
  %52 = select <8 x i1> %50, <8 x float> %51, <8 x float> %49
  %53 = add nsw i64 %ko2, 1
  %54 = icmp slt i64 %53, 31
  br i1 %54, label %ko, label %55

55:                                               ; preds = %ko
  %56 = mul nsw i64 %g1, 1000
  %57 = getelementptr float, ptr %x, i64 %56
  %58 = getelementptr float, ptr %57, i64 992
  %59 = load <8 x float>, ptr %58, align 4, !invariant.load !1
  %60 = fcmp ogt <8 x float> %19, %59
  %61 = select <8 x i1> %60, <8 x float> %19, <8 x float> %59
  %62 = fcmp uno <8 x float> %19, %59
  %63 = fadd <8 x float> %19, %59
  %64 = select <8 x i1> %62, <8 x float> %63, <8 x float> %61
  %65 = fcmp ogt <8 x float> %64, %30
  %66 = select <8 x i1> %65, <8 x float> %64, <8 x float> %30
  %67 = fcmp uno <8 x float> %64, %30
  %68 = fadd <8 x float> %64, %30
  %69 = select <8 x i1> %67, <8 x float> %68, <8 x float> %66
  %70 = fcmp ogt <8 x float> %41, %52
  %71 = select <8 x i1> %70, <8 x float> %41, <8 x float> %52
  %72 = fcmp uno <8 x float> %41, %52
  %73 = fadd <8 x float> %41, %52
  %74 = select <8 x i1> %72, <8 x float> %73, <8 x float> %71
  %75 = fcmp ogt <8 x float> %69, %74
  %76 = select <8 x i1> %75, <8 x float> %69, <8 x float> %74
  %77 = fcmp uno <8 x float> %69, %74
  %78 = fadd <8 x float> %69, %74
  %79 = select <8 x i1> %77, <8 x float> %78, <8 x float> %76
  %80 = shufflevector <8 x float> %79, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %81 = shufflevector <8 x float> %79, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %82 = fcmp ogt <4 x float> %80, %81
  %83 = select <4 x i1> %82, <4 x float> %80, <4 x float> %81
  %84 = fcmp uno <4 x float> %80, %81
  %85 = fadd <4 x float> %80, %81
  %86 = select <4 x i1> %84, <4 x float> %85, <4 x float> %83
  %87 = shufflevector <4 x float> %86, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %88 = shufflevector <4 x float> %86, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %89 = fcmp ogt <2 x float> %87, %88
  %90 = select <2 x i1> %89, <2 x float> %87, <2 x float> %88
  %91 = fcmp uno <2 x float> %87, %88
  %92 = fadd <2 x float> %87, %88
  %93 = select <2 x i1> %91, <2 x float> %92, <2 x float> %90
  %94 = extractelement <2 x float> %93, i64 0
  %95 = extractelement <2 x float> %93, i64 1
  %96 = fcmp ogt float %94, %95
  %97 = select i1 %96, float %94, float %95
  %98 = fcmp uno float %94, %95
  %99 = fadd float %94, %95
  %100 = select i1 %98, float %99, float %97
  br label %bo

bo:                                               ; preds = %bo, %55
  %bo3 = phi i64 [ 0, %55 ], [ %138, %bo ]
  %101 = mul nsw i64 %g1, 1000
  %102 = mul nsw i64 %bo3, 8
  %103 = add nsw i64 %102, %101
  %104 = getelementptr inbounds float, ptr %x, i64 %103
  %105 = load <8 x float>, ptr %104, align 4, !invariant.load !1
  %106 = insertelement <8 x float> poison, float %100, i64 0
  %107 = shufflevector <8 x float> %106, <8 x float> poison, <8 x i32> zeroinitializer
  %108 = fsub <8 x float> %105, %107
  %109 = fcmp ogt <8 x float> %108, <float 8.900000e+01, float 8.900000e+01, float 8.900000e+01, float 8.900000e+01, float 8.900000e+01, float 8.900000e+01, float 8.900000e+01, float 8.900000e+01>
  %110 = select <8 x i1> %109, <8 x float> <float 8.900000e+01, float 8.900000e+01, float 8.900000e+01, float 8.900000e+01, float 8.900000e+01, float 8.900000e+01, float 8.900000e+01, float 8.900000e+01>, <8 x float> %108
  %111 = fcmp olt <8 x float> %110, <float -1.040000e+02, float -1.040000e+02, float -1.040000e+02, float -1.040000e+02, float -1.040000e+02, float -1.040000e+02, float -1.040000e+02, float -1.040000e+02>
  %112 = select <8 x i1> %111, <8 x float> <float -1.040000e+02, float -1.040000e+02, float -1.040000e+02, float -1.040000e+02, float -1.040000e+02, float -1.040000e+02, float -1.040000e+02, float -1.040000e+02>, <8 x float> %110
  %113 = call <8 x float> @llvm.fma.v8f32(<8 x float> %112, <8 x float> <float 0x3FF7154760000000, float 0x3FF7154760000000, float 0x3FF7154760000000, float 0x3FF7154760000000, float 0x3FF7154760000000, float 0x3FF7154760000000, float 0x3FF7154760000000, float 0x3FF7154760000000>, <8 x float> <float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000>)
  %114 = fsub <8 x float> %113, <float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000>
  %115 = bitcast <8 x float> %113 to <8 x i32>
  %116 = shl <8 x i32> %115, <i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23>
  %117 = select <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true>, <8 x i32> %116, <8 x i32> zeroinitializer
  %118 = ashr <8 x i32> %115, <i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1>
  %119 = shl <8 x i32> %118, <i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23>
  %120 = select <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true>, <8 x i32> %119, <8 x i32> zeroinitializer
  %121 = sub <8 x i32> %117, %120
  %122 = add <8 x i32> %120, <i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216>
  %123 = add <8 x i32> %121, <i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216>
  %124 = bitcast <8 x i32> %122 to <8 x float>
  %125 = bitcast <8 x i32> %123 to <8 x float>
  %126 = call <8 x float> @llvm.fma.v8f32(<8 x float> %114, <8 x float> <float 0xBFE62E4000000000, float 0xBFE62E4000000000, float 0xBFE62E4000000000, float 0xBFE62E4000000000, float 0xBFE62E4000000000, float 0xBFE62E4000000000, float 0xBFE62E4000000000, float 0xBFE62E4000000000>, <8 x float> %112)
  %127 = call <8 x float> @llvm.fma.v8f32(<8 x float> %114, <8 x float> <float 0xBEB7F7D1C0000000, float 0xBEB7F7D1C0000000, float 0xBEB7F7D1C0000000, float 0xBEB7F7D1C0000000, float 0xBEB7F7D1C0000000, float 0xBEB7F7D1C0000000, float 0xBEB7F7D1C0000000, float 0xBEB7F7D1C0000000>, <8 x float> %126)
  %128 = call <8 x float> @llvm.fma.v8f32(<8 x float> <float 0x3F56A23E40000000, float 0x3F56A23E40000000, float 0x3F56A23E40000000, float 0x3F56A23E40000000, float 0x3F56A23E40000000, float 0x3F56A23E40000000, float 0x3F56A23E40000000, float 0x3F56A23E40000000>, <8 x float> %127, <8 x float> <float 0x3F8123A060000000, float 0x3F8123A060000000, float 0x3F8123A060000000, float 0x3F8123A060000000, float 0x3F8123A060000000, float 0x3F8123A060000000, float 0x3F8123A060000000, float 0x3F8123A060000000>)
  %129 = call <8 x float> @llvm.fma.v8f32(<8 x float> %128, <8 x float> %127, <8 x float> <float 0x3FA5558D40000000, float 0x3FA5558D40000000, float 0x3FA5558D40000000, float 0x3FA5558D40000000, float 0x3FA5558D40000000, float 0x3FA5558D40000000, float 0x3FA5558D40000000, float 0x3FA5558D40000000>)
  %130 = call <8 x float> @llvm.fma.v8f32(<8 x float> %129, <8 x float> %127, <8 x float> <float 0x3FC5554920000000, float 0x3FC5554920000000, float 0x3FC5554920000000, float 0x3FC5554920000000, float 0x3FC5554920000000, float 0x3FC5554920000000, float 0x3FC5554920000000, float 0x3FC5554920000000>)
  %131 = call <8 x float> @llvm.fma.v8f32(<8 x float> %130, <8 x float> %127, <8 x float> <float 0x3FDFFFFFC0000000, float 0x3FDFFFFFC0000000, float 0x3FDFFFFFC0000000, float 0x3FDFFFFFC0000000, float 0x3FDFFFFFC0000000, float 0x3FDFFFFFC0000000, float 0x3FDFFFFFC0000000, float 0x3FDFFFFFC0000000>)
  %132 = call <8 x float> @llvm.fma.v8f32(<8 x float> %131, <8 x float> %127, <8 x float> <float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00>)
  %133 = call <8 x float> @llvm.fma.v8f32(<8 x float> %132, <8 x float> %127, <8 x float> <float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00>)
  %134 = fmul <8 x float> %124, %133
  %135 = fmul <8 x float> %125, %134
  %136 = mul nsw i64 %bo3, 8
  %137 = getelementptr inbounds float, ptr %3, i64 %136
  store <8 x float> %135, ptr %137, align 4
  %138 = add nsw i64 %bo3, 1
  %139 = icmp slt i64 %138, 125
  br i1 %139, label %bo, label %140

140:                                              ; preds = %bo
  br label %ko4

ko4:                                              ; preds = %ko4, %140
  %ko5 = phi i64 [ 0, %140 ], [ %164, %ko4 ]
  %141 = phi <8 x float> [ <float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00>, %140 ], [ %148, %ko4 ]
  %142 = phi <8 x float> [ <float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00>, %140 ], [ %153, %ko4 ]
  %143 = phi <8 x float> [ <float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00>, %140 ], [ %158, %ko4 ]
  %144 = phi <8 x float> [ <float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00>, %140 ], [ %163, %ko4 ]
  %145 = mul nsw i64 %ko5, 32
  %146 = getelementptr inbounds float, ptr %3, i64 %145
  %147 = load <8 x float>, ptr %146, align 4
  %148 = fadd <8 x float> %141, %147
  %149 = mul nsw i64 %ko5, 32
  %150 = getelementptr float, ptr %3, i64 %149
  %151 = getelementptr float, ptr %150, i64 8
  %152 = load <8 x float>, ptr %151, align 4
  %153 = fadd <8 x float> %142, %152
  %154 = mul nsw i64 %ko5, 32
  %155 = getelementptr float, ptr %3, i64 %154
  %156 = getelementptr float, ptr %155, i64 16
  %157 = load <8 x float>, ptr %156, align 4
  %158 = fadd <8 x float> %143, %157
  %159 = mul nsw i64 %ko5, 32
  %160 = getelementptr float, ptr %3, i64 %159
  %161 = getelementptr float, ptr %160, i64 24
  %162 = load <8 x float>, ptr %161, align 4
  %163 = fadd <8 x float> %144, %162
  %164 = add nsw i64 %ko5, 1
  %165 = icmp slt i64 %164, 31
  br i1 %165, label %ko4, label %166

166:                                              ; preds = %ko4
  %167 = getelementptr inbounds float, ptr %3, i64 992
  %168 = load <8 x float>, ptr %167, align 4
  %169 = fadd <8 x float> %148, %168
  %170 = fadd <8 x float> %169, %153
  %171 = fadd <8 x float> %158, %163
  %172 = fadd <8 x float> %170, %171
  %173 = shufflevector <8 x float> %172, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %174 = shufflevector <8 x float> %172, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %175 = fadd <4 x float> %173, %174
  %176 = shufflevector <4 x float> %175, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %177 = shufflevector <4 x float> %175, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %178 = fadd <2 x float> %176, %177
  %179 = extractelement <2 x float> %178, i64 0
  %180 = extractelement <2 x float> %178, i64 1
  %181 = fadd float %179, %180
  %182 = fadd float %181, 0.000000e+00
  %183 = fdiv float 1.000000e+00, %182
  br label %bo6

bo6:                                              ; preds = %bo6, %166
  %bo7 = phi i64 [ 0, %166 ], [ %206, %bo6 ]
  %184 = mul nsw i64 %bo7, 16
  %185 = getelementptr inbounds float, ptr %3, i64 %184
  %186 = load <8 x float>, ptr %185, align 4
  %187 = insertelement <8 x float> poison, float %183, i64 0
  %188 = shufflevector <8 x float> %187, <8 x float> poison, <8 x i32> zeroinitializer
  %189 = fmul <8 x float> %186, %188
  %190 = mul nsw i64 %g1, 1000
  %191 = mul nsw i64 %bo7, 16
  %192 = add nsw i64 %191, %190
  %193 = getelementptr inbounds float, ptr %y, i64 %192
  store <8 x float> %189, ptr %193, align 4
  %194 = mul nsw i64 %bo7, 16
  %195 = getelementptr float, ptr %3, i64 %194
  %196 = getelementptr float, ptr %195, i64 8
  %197 = load <8 x float>, ptr %196, align 4
  %198 = insertelement <8 x float> poison, float %183, i64 0
  %199 = shufflevector <8 x float> %198, <8 x float> poison, <8 x i32> zeroinitializer
  %200 = fmul <8 x float> %197, %199
  %201 = mul nsw i64 %g1, 1000
  %202 = mul nsw i64 %bo7, 16
  %203 = add nsw i64 %202, %201
  %204 = getelementptr float, ptr %y, i64 %203
  %205 = getelementptr float, ptr %204, i64 8
  store <8 x float> %200, ptr %205, align 4
  %206 = add nsw i64 %bo7, 1
  %207 = icmp slt i64 %206, 62
  br i1 %207, label %bo6, label %208

208:                                              ; preds = %bo6
  %209 = getelementptr inbounds float, ptr %3, i64 992
  %210 = load <8 x float>, ptr %209, align 4
  %211 = insertelement <8 x float> poison, float %183, i64 0
  %212 = shufflevector <8 x float> %211, <8 x float> poison, <8 x i32> zeroinitializer
  %213 = fmul <8 x float> %210, %212
  %214 = getelementptr float, ptr %y, i64 %56
  %215 = getelementptr float, ptr %214, i64 992
  store <8 x float> %213, ptr %215, align 4
  %216 = add nsw i64 %g1, 1
  %217 = icmp slt i64 %216, %end
  br i1 %217, label %g, label %5
}

; Function Attrs: nounwind
define i32 @softmax_0(ptr %0, ptr %1, ptr %2, i64 %3, i64 %4, ptr %5) #0 {
  %7 = getelementptr inbounds ptr, ptr %1, i64 0
  %8 = load ptr, ptr %7, align 8
  %9 = getelementptr inbounds ptr, ptr %1, i64 1
  %10 = load ptr, ptr %9, align 8
  %11 = tail call i32 @softmax_0.body(ptr %8, ptr %10, ptr %2, i64 %3, i64 %4, ptr %5)
  ret i32 %11
}

; Function Attrs: nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>) #1

attributes #0 = { nounwind "prefer-vector-width"="512" "target-cpu"="x86-64" "target-features"="+sse3,+ssse3,+cx16,+sse4.1,+sse4.2,+movbe,+popcnt,+avx,+f16c,+fma,+bmi,+avx2,+bmi2,+lzcnt" "tune-cpu"="generic" }
attributes #1 = { nocallback nofree nosync nounwind speculatable willreturn memory(none) }

!pestle.note = !{!0}

!0 = !{!"softmax: reduce, broadcast_in_dim, subtract, exponential, reduce, divide, broadcast_in_dim,\0A    multiply\0Ainline broadcast_in_dim subtract divide broadcast_in_dim_2 multiply\0Areorder y a b\0Abind y.a group.x\0Aat r, y.a\0Asplit r.k 32\0Asplit r.ki 8\0Arfactor r.kio reassoc\0Arfactor r.kii reassoc\0Aunroll r.kio\0Avectorise r.kii\0Areorder r a ko kio kii\0Astore r private\0Aat exponential, y.a\0Astore exponential shared\0Asplit exponential.b 8\0Asplit exponential.bi 8\0Aunroll exponential.bio\0Avectorise exponential.bii\0Aat r_2, y.a\0Asplit r_2.k 32\0Asplit r_2.ki 8\0Arfactor r_2.kio reassoc\0Arfactor r_2.kii reassoc\0Aunroll r_2.kio\0Avectorise r_2.kii\0Areorder r_2 a ko kio kii\0Astore r_2 private\0Asplit y.b 16\0Asplit y.bi 8\0Aunroll y.bio\0Avectorise y.bii\0A"}
!1 = !{}
