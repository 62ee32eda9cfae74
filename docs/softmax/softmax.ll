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
define internal i32 @softmax_0.body(ptr noalias readonly align 64 %x, ptr noalias align 64 %y, ptr %0, i64 %begin, i64 %end, ptr %1) #0 {
  %3 = getelementptr inbounds i8, ptr %1, i64 0
  %4 = icmp slt i64 %begin, %end
  br i1 %4, label %g, label %5

g:                                                ; preds = %209, %2
  %g1 = phi i64 [ %begin, %2 ], [ %217, %209 ]
  br label %ko

5:                                                ; preds = %209, %2
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
  %bo3 = phi i64 [ 0, %55 ], [ %139, %bo ]
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
  %115 = call <8 x float> @llvm.fma.v8f32(<8 x float> %114, <8 x float> <float 0xBFE62E4000000000, float 0xBFE62E4000000000, float 0xBFE62E4000000000, float 0xBFE62E4000000000, float 0xBFE62E4000000000, float 0xBFE62E4000000000, float 0xBFE62E4000000000, float 0xBFE62E4000000000>, <8 x float> %112)
  %116 = call <8 x float> @llvm.fma.v8f32(<8 x float> %114, <8 x float> <float 0xBEB7F7D1C0000000, float 0xBEB7F7D1C0000000, float 0xBEB7F7D1C0000000, float 0xBEB7F7D1C0000000, float 0xBEB7F7D1C0000000, float 0xBEB7F7D1C0000000, float 0xBEB7F7D1C0000000, float 0xBEB7F7D1C0000000>, <8 x float> %115)
  %117 = call <8 x float> @llvm.fma.v8f32(<8 x float> <float 0x3F56A23E40000000, float 0x3F56A23E40000000, float 0x3F56A23E40000000, float 0x3F56A23E40000000, float 0x3F56A23E40000000, float 0x3F56A23E40000000, float 0x3F56A23E40000000, float 0x3F56A23E40000000>, <8 x float> %116, <8 x float> <float 0x3F8123A060000000, float 0x3F8123A060000000, float 0x3F8123A060000000, float 0x3F8123A060000000, float 0x3F8123A060000000, float 0x3F8123A060000000, float 0x3F8123A060000000, float 0x3F8123A060000000>)
  %118 = call <8 x float> @llvm.fma.v8f32(<8 x float> %117, <8 x float> %116, <8 x float> <float 0x3FA5558D40000000, float 0x3FA5558D40000000, float 0x3FA5558D40000000, float 0x3FA5558D40000000, float 0x3FA5558D40000000, float 0x3FA5558D40000000, float 0x3FA5558D40000000, float 0x3FA5558D40000000>)
  %119 = call <8 x float> @llvm.fma.v8f32(<8 x float> %118, <8 x float> %116, <8 x float> <float 0x3FC5554920000000, float 0x3FC5554920000000, float 0x3FC5554920000000, float 0x3FC5554920000000, float 0x3FC5554920000000, float 0x3FC5554920000000, float 0x3FC5554920000000, float 0x3FC5554920000000>)
  %120 = call <8 x float> @llvm.fma.v8f32(<8 x float> %119, <8 x float> %116, <8 x float> <float 0x3FDFFFFFC0000000, float 0x3FDFFFFFC0000000, float 0x3FDFFFFFC0000000, float 0x3FDFFFFFC0000000, float 0x3FDFFFFFC0000000, float 0x3FDFFFFFC0000000, float 0x3FDFFFFFC0000000, float 0x3FDFFFFFC0000000>)
  %121 = fmul <8 x float> %116, %116
  %122 = call <8 x float> @llvm.fma.v8f32(<8 x float> %121, <8 x float> %120, <8 x float> %116)
  %123 = bitcast <8 x float> %113 to <8 x i32>
  %124 = shl <8 x i32> %123, <i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23>
  %125 = select <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true>, <8 x i32> %124, <8 x i32> zeroinitializer
  %126 = ashr <8 x i32> %123, <i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1>
  %127 = shl <8 x i32> %126, <i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23>
  %128 = select <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true>, <8 x i32> %127, <8 x i32> zeroinitializer
  %129 = sub <8 x i32> %125, %128
  %130 = add <8 x i32> %128, <i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216>
  %131 = add <8 x i32> %129, <i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216>
  %132 = bitcast <8 x i32> %130 to <8 x float>
  %133 = bitcast <8 x i32> %131 to <8 x float>
  %134 = fadd <8 x float> %122, <float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00>
  %135 = fmul <8 x float> %132, %134
  %136 = fmul <8 x float> %133, %135
  %137 = mul nsw i64 %bo3, 8
  %138 = getelementptr inbounds float, ptr %3, i64 %137
  store <8 x float> %136, ptr %138, align 4
  %139 = add nsw i64 %bo3, 1
  %140 = icmp slt i64 %139, 125
  br i1 %140, label %bo, label %141

141:                                              ; preds = %bo
  br label %ko4

ko4:                                              ; preds = %ko4, %141
  %ko5 = phi i64 [ 0, %141 ], [ %165, %ko4 ]
  %142 = phi <8 x float> [ <float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00>, %141 ], [ %149, %ko4 ]
  %143 = phi <8 x float> [ <float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00>, %141 ], [ %154, %ko4 ]
  %144 = phi <8 x float> [ <float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00>, %141 ], [ %159, %ko4 ]
  %145 = phi <8 x float> [ <float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00, float -0.000000e+00>, %141 ], [ %164, %ko4 ]
  %146 = mul nsw i64 %ko5, 32
  %147 = getelementptr inbounds float, ptr %3, i64 %146
  %148 = load <8 x float>, ptr %147, align 4
  %149 = fadd <8 x float> %142, %148
  %150 = mul nsw i64 %ko5, 32
  %151 = getelementptr float, ptr %3, i64 %150
  %152 = getelementptr float, ptr %151, i64 8
  %153 = load <8 x float>, ptr %152, align 4
  %154 = fadd <8 x float> %143, %153
  %155 = mul nsw i64 %ko5, 32
  %156 = getelementptr float, ptr %3, i64 %155
  %157 = getelementptr float, ptr %156, i64 16
  %158 = load <8 x float>, ptr %157, align 4
  %159 = fadd <8 x float> %144, %158
  %160 = mul nsw i64 %ko5, 32
  %161 = getelementptr float, ptr %3, i64 %160
  %162 = getelementptr float, ptr %161, i64 24
  %163 = load <8 x float>, ptr %162, align 4
  %164 = fadd <8 x float> %145, %163
  %165 = add nsw i64 %ko5, 1
  %166 = icmp slt i64 %165, 31
  br i1 %166, label %ko4, label %167

167:                                              ; preds = %ko4
  %168 = getelementptr inbounds float, ptr %3, i64 992
  %169 = load <8 x float>, ptr %168, align 4
  %170 = fadd <8 x float> %149, %169
  %171 = fadd <8 x float> %170, %154
  %172 = fadd <8 x float> %159, %164
  %173 = fadd <8 x float> %171, %172
  %174 = shufflevector <8 x float> %173, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %175 = shufflevector <8 x float> %173, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %176 = fadd <4 x float> %174, %175
  %177 = shufflevector <4 x float> %176, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %178 = shufflevector <4 x float> %176, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %179 = fadd <2 x float> %177, %178
  %180 = extractelement <2 x float> %179, i64 0
  %181 = extractelement <2 x float> %179, i64 1
  %182 = fadd float %180, %181
  %183 = fadd float %182, 0.000000e+00
  %184 = fdiv float 1.000000e+00, %183
  br label %bo6

bo6:                                              ; preds = %bo6, %167
  %bo7 = phi i64 [ 0, %167 ], [ %207, %bo6 ]
  %185 = mul nsw i64 %bo7, 16
  %186 = getelementptr inbounds float, ptr %3, i64 %185
  %187 = load <8 x float>, ptr %186, align 4
  %188 = insertelement <8 x float> poison, float %184, i64 0
  %189 = shufflevector <8 x float> %188, <8 x float> poison, <8 x i32> zeroinitializer
  %190 = fmul <8 x float> %187, %189
  %191 = mul nsw i64 %g1, 1000
  %192 = mul nsw i64 %bo7, 16
  %193 = add nsw i64 %192, %191
  %194 = getelementptr inbounds float, ptr %y, i64 %193
  store <8 x float> %190, ptr %194, align 4
  %195 = mul nsw i64 %bo7, 16
  %196 = getelementptr float, ptr %3, i64 %195
  %197 = getelementptr float, ptr %196, i64 8
  %198 = load <8 x float>, ptr %197, align 4
  %199 = insertelement <8 x float> poison, float %184, i64 0
  %200 = shufflevector <8 x float> %199, <8 x float> poison, <8 x i32> zeroinitializer
  %201 = fmul <8 x float> %198, %200
  %202 = mul nsw i64 %g1, 1000
  %203 = mul nsw i64 %bo7, 16
  %204 = add nsw i64 %203, %202
  %205 = getelementptr float, ptr %y, i64 %204
  %206 = getelementptr float, ptr %205, i64 8
  store <8 x float> %201, ptr %206, align 4
  %207 = add nsw i64 %bo7, 1
  %208 = icmp slt i64 %207, 62
  br i1 %208, label %bo6, label %209

209:                                              ; preds = %bo6
  %210 = getelementptr inbounds float, ptr %3, i64 992
  %211 = load <8 x float>, ptr %210, align 4
  %212 = insertelement <8 x float> poison, float %184, i64 0
  %213 = shufflevector <8 x float> %212, <8 x float> poison, <8 x i32> zeroinitializer
  %214 = fmul <8 x float> %211, %213
  %215 = getelementptr float, ptr %y, i64 %56
  %216 = getelementptr float, ptr %215, i64 992
  store <8 x float> %214, ptr %216, align 4
  %217 = add nsw i64 %g1, 1
  %218 = icmp slt i64 %217, %end
  br i1 %218, label %g, label %5
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
