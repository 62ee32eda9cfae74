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
  br i1 %4, label %g, label %6

g:                                                ; preds = %209, %2
  %g1 = phi i64 [ %begin, %2 ], [ %217, %209 ]
  %5 = call i64 asm "", "=r,0"(i64 %g1) #2
  br label %ko

6:                                                ; preds = %209, %2
  ret i32 0

ko:                                               ; preds = %ko, %g
  %ko2 = phi i64 [ 0, %g ], [ %54, %ko ]
  %7 = phi <8 x float> [ <float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000>, %g ], [ %20, %ko ]
  %8 = phi <8 x float> [ <float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000>, %g ], [ %31, %ko ]
  %9 = phi <8 x float> [ <float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000>, %g ], [ %42, %ko ]
  %10 = phi <8 x float> [ <float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000, float 0xFFF0000000000000>, %g ], [ %53, %ko ]
  %11 = mul nsw i64 %5, 1000
  %12 = mul nsw i64 %ko2, 32
  %13 = add nsw i64 %12, %11
  %14 = getelementptr inbounds float, ptr %x, i64 %13
  %15 = load <8 x float>, ptr %14, align 4, !invariant.load !1
  %16 = fcmp ogt <8 x float> %7, %15
  %17 = select <8 x i1> %16, <8 x float> %7, <8 x float> %15
  %18 = fcmp uno <8 x float> %7, %15
  %19 = fadd <8 x float> %7, %15
  %20 = select <8 x i1> %18, <8 x float> %19, <8 x float> %17
  %21 = mul nsw i64 %5, 1000
  %22 = mul nsw i64 %ko2, 32
  %23 = add nsw i64 %22, %21
  %24 = getelementptr float, ptr %x, i64 %23
  %25 = getelementptr float, ptr %24, i64 8
  %26 = load <8 x float>, ptr %25, align 4, !invariant.load !1
  %27 = fcmp ogt <8 x float> %8, %26
  %28 = select <8 x i1> %27, <8 x float> %8, <8 x float> %26
  %29 = fcmp uno <8 x float> %8, %26
  %30 = fadd <8 x float> %8, %26
  %31 = select <8 x i1> %29, <8 x float> %30, <8 x float> %28
  %32 = mul nsw i64 %5, 1000
  %33 = mul nsw i64 %ko2, 32
  %34 = add nsw i64 %33, %32
  %35 = getelementptr float, ptr %x, i64 %34
  %36 = getelementptr float, ptr %35, i64 16
  %37 = load <8 x float>, ptr %36, align 4, !invariant.load !1
  %38 = fcmp ogt <8 x float> %9, %37
  %39 = select <8 x i1> %38, <8 x float> %9, <8 x float> %37
  %40 = fcmp uno <8 x float> %9, %37
  %41 = fadd <8 x float> %9, %37
  %42 = select <8 x i1> %40, <8 x float> %41, <8 x float> %39
  %43 = mul nsw i64 %5, 1000
  %44 = mul nsw i64 %ko2, 32
  %45 = add nsw i64 %44, %43
  %46 = getelementptr float, ptr %x, i64 %45
  %47 = getelementptr float, ptr %46, i64 24
  %48 = load <8 x float>, ptr %47, align 4, !invariant.load !1
  %49 = fcmp ogt <8 x float> %10, %48
  %50 = select <8 x i1> %49, <8 x float> %10, <8 x float> %48
  %51 = fcmp uno <8 x float> %10, %48
  %52 = fadd <8 x float> %10, %48
  %53 = select <8 x i1> %51, <8 x float> %52, <8 x float> %50
  %54 = add nsw i64 %ko2, 1
  %55 = icmp slt i64 %54, 31
  br i1 %55, label %ko, label %56

56:                                               ; preds = %ko
  %57 = mul nsw i64 %5, 1000
  %58 = getelementptr float, ptr %x, i64 %57
  %59 = getelementptr float, ptr %58, i64 992
  %60 = load <8 x float>, ptr %59, align 4, !invariant.load !1
  %61 = fcmp ogt <8 x float> %20, %60
  %62 = select <8 x i1> %61, <8 x float> %20, <8 x float> %60
  %63 = fcmp uno <8 x float> %20, %60
  %64 = fadd <8 x float> %20, %60
  %65 = select <8 x i1> %63, <8 x float> %64, <8 x float> %62
  %66 = fcmp ogt <8 x float> %65, %31
  %67 = select <8 x i1> %66, <8 x float> %65, <8 x float> %31
  %68 = fcmp uno <8 x float> %65, %31
  %69 = fadd <8 x float> %65, %31
  %70 = select <8 x i1> %68, <8 x float> %69, <8 x float> %67
  %71 = fcmp ogt <8 x float> %42, %53
  %72 = select <8 x i1> %71, <8 x float> %42, <8 x float> %53
  %73 = fcmp uno <8 x float> %42, %53
  %74 = fadd <8 x float> %42, %53
  %75 = select <8 x i1> %73, <8 x float> %74, <8 x float> %72
  %76 = fcmp ogt <8 x float> %70, %75
  %77 = select <8 x i1> %76, <8 x float> %70, <8 x float> %75
  %78 = fcmp uno <8 x float> %70, %75
  %79 = fadd <8 x float> %70, %75
  %80 = select <8 x i1> %78, <8 x float> %79, <8 x float> %77
  %81 = shufflevector <8 x float> %80, <8 x float> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %82 = shufflevector <8 x float> %80, <8 x float> poison, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %83 = fcmp ogt <4 x float> %81, %82
  %84 = select <4 x i1> %83, <4 x float> %81, <4 x float> %82
  %85 = fcmp uno <4 x float> %81, %82
  %86 = fadd <4 x float> %81, %82
  %87 = select <4 x i1> %85, <4 x float> %86, <4 x float> %84
  %88 = shufflevector <4 x float> %87, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %89 = shufflevector <4 x float> %87, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %90 = fcmp ogt <2 x float> %88, %89
  %91 = select <2 x i1> %90, <2 x float> %88, <2 x float> %89
  %92 = fcmp uno <2 x float> %88, %89
  %93 = fadd <2 x float> %88, %89
  %94 = select <2 x i1> %92, <2 x float> %93, <2 x float> %91
  %95 = extractelement <2 x float> %94, i64 0
  %96 = extractelement <2 x float> %94, i64 1
  %97 = fcmp ogt float %95, %96
  %98 = select i1 %97, float %95, float %96
  %99 = fcmp uno float %95, %96
  %100 = fadd float %95, %96
  %101 = select i1 %99, float %100, float %98
  br label %bo

bo:                                               ; preds = %bo, %56
  %bo3 = phi i64 [ 0, %56 ], [ %139, %bo ]
  %102 = mul nsw i64 %5, 1000
  %103 = mul nsw i64 %bo3, 8
  %104 = add nsw i64 %103, %102
  %105 = getelementptr inbounds float, ptr %x, i64 %104
  %106 = load <8 x float>, ptr %105, align 4, !invariant.load !1
  %107 = insertelement <8 x float> poison, float %101, i64 0
  %108 = shufflevector <8 x float> %107, <8 x float> poison, <8 x i32> zeroinitializer
  %109 = fsub <8 x float> %106, %108
  %110 = fcmp ogt <8 x float> %109, <float 8.900000e+01, float 8.900000e+01, float 8.900000e+01, float 8.900000e+01, float 8.900000e+01, float 8.900000e+01, float 8.900000e+01, float 8.900000e+01>
  %111 = select <8 x i1> %110, <8 x float> <float 8.900000e+01, float 8.900000e+01, float 8.900000e+01, float 8.900000e+01, float 8.900000e+01, float 8.900000e+01, float 8.900000e+01, float 8.900000e+01>, <8 x float> %109
  %112 = fcmp olt <8 x float> %111, <float -1.040000e+02, float -1.040000e+02, float -1.040000e+02, float -1.040000e+02, float -1.040000e+02, float -1.040000e+02, float -1.040000e+02, float -1.040000e+02>
  %113 = select <8 x i1> %112, <8 x float> <float -1.040000e+02, float -1.040000e+02, float -1.040000e+02, float -1.040000e+02, float -1.040000e+02, float -1.040000e+02, float -1.040000e+02, float -1.040000e+02>, <8 x float> %111
  %114 = call <8 x float> @llvm.fma.v8f32(<8 x float> %113, <8 x float> <float 0x3FF7154760000000, float 0x3FF7154760000000, float 0x3FF7154760000000, float 0x3FF7154760000000, float 0x3FF7154760000000, float 0x3FF7154760000000, float 0x3FF7154760000000, float 0x3FF7154760000000>, <8 x float> <float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000>)
  %115 = fsub <8 x float> %114, <float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000, float 0x4168000000000000>
  %116 = bitcast <8 x float> %114 to <8 x i32>
  %117 = shl <8 x i32> %116, <i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23>
  %118 = select <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true>, <8 x i32> %117, <8 x i32> zeroinitializer
  %119 = ashr <8 x i32> %116, <i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1>
  %120 = shl <8 x i32> %119, <i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23>
  %121 = select <8 x i1> <i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true>, <8 x i32> %120, <8 x i32> zeroinitializer
  %122 = sub <8 x i32> %118, %121
  %123 = add <8 x i32> %121, <i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216>
  %124 = add <8 x i32> %122, <i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216, i32 1065353216>
  %125 = bitcast <8 x i32> %123 to <8 x float>
  %126 = bitcast <8 x i32> %124 to <8 x float>
  %127 = call <8 x float> @llvm.fma.v8f32(<8 x float> %115, <8 x float> <float 0xBFE62E4000000000, float 0xBFE62E4000000000, float 0xBFE62E4000000000, float 0xBFE62E4000000000, float 0xBFE62E4000000000, float 0xBFE62E4000000000, float 0xBFE62E4000000000, float 0xBFE62E4000000000>, <8 x float> %113)
  %128 = call <8 x float> @llvm.fma.v8f32(<8 x float> %115, <8 x float> <float 0xBEB7F7D1C0000000, float 0xBEB7F7D1C0000000, float 0xBEB7F7D1C0000000, float 0xBEB7F7D1C0000000, float 0xBEB7F7D1C0000000, float 0xBEB7F7D1C0000000, float 0xBEB7F7D1C0000000, float 0xBEB7F7D1C0000000>, <8 x float> %127)
  %129 = call <8 x float> @llvm.fma.v8f32(<8 x float> <float 0x3F56A23E40000000, float 0x3F56A23E40000000, float 0x3F56A23E40000000, float 0x3F56A23E40000000, float 0x3F56A23E40000000, float 0x3F56A23E40000000, float 0x3F56A23E40000000, float 0x3F56A23E40000000>, <8 x float> %128, <8 x float> <float 0x3F8123A060000000, float 0x3F8123A060000000, float 0x3F8123A060000000, float 0x3F8123A060000000, float 0x3F8123A060000000, float 0x3F8123A060000000, float 0x3F8123A060000000, float 0x3F8123A060000000>)
  %130 = call <8 x float> @llvm.fma.v8f32(<8 x float> %129, <8 x float> %128, <8 x float> <float 0x3FA5558D40000000, float 0x3FA5558D40000000, float 0x3FA5558D40000000, float 0x3FA5558D40000000, float 0x3FA5558D40000000, float 0x3FA5558D40000000, float 0x3FA5558D40000000, float 0x3FA5558D40000000>)
  %131 = call <8 x float> @llvm.fma.v8f32(<8 x float> %130, <8 x float> %128, <8 x float> <float 0x3FC5554920000000, float 0x3FC5554920000000, float 0x3FC5554920000000, float 0x3FC5554920000000, float 0x3FC5554920000000, float 0x3FC5554920000000, float 0x3FC5554920000000, float 0x3FC5554920000000>)
  %132 = call <8 x float> @llvm.fma.v8f32(<8 x float> %131, <8 x float> %128, <8 x float> <float 0x3FDFFFFFC0000000, float 0x3FDFFFFFC0000000, float 0x3FDFFFFFC0000000, float 0x3FDFFFFFC0000000, float 0x3FDFFFFFC0000000, float 0x3FDFFFFFC0000000, float 0x3FDFFFFFC0000000, float 0x3FDFFFFFC0000000>)
  %133 = call <8 x float> @llvm.fma.v8f32(<8 x float> %132, <8 x float> %128, <8 x float> <float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00>)
  %134 = call <8 x float> @llvm.fma.v8f32(<8 x float> %133, <8 x float> %128, <8 x float> <float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00, float 1.000000e+00>)
  %135 = fmul <8 x float> %125, %134
  %136 = fmul <8 x float> %126, %135
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
  %191 = mul nsw i64 %5, 1000
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
  %202 = mul nsw i64 %5, 1000
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
  %215 = getelementptr float, ptr %y, i64 %57
  %216 = getelementptr float, ptr %215, i64 992
  store <8 x float> %214, ptr %216, align 4
  %217 = add nsw i64 %g1, 1
  %218 = icmp slt i64 %217, %end
  br i1 %218, label %g, label %6
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
attributes #2 = { nounwind willreturn memory(none) }

!pestle.note = !{!0}

!0 = !{!"softmax: reduce, broadcast_in_dim, subtract, exponential, reduce, divide, broadcast_in_dim,\0A    multiply\0Ainline broadcast_in_dim subtract divide broadcast_in_dim_2 multiply\0Areorder y a b\0Abind y.a group.x\0Aat r, y.a\0Asplit r.k 32\0Asplit r.ki 8\0Arfactor r.kio reassoc\0Arfactor r.kii reassoc\0Aunroll r.kio\0Avectorise r.kii\0Areorder r a ko kio kii\0Astore r private\0Aat exponential, y.a\0Astore exponential shared\0Asplit exponential.b 8\0Asplit exponential.bi 8\0Aunroll exponential.bio\0Avectorise exponential.bii\0Aat r_2, y.a\0Asplit r_2.k 32\0Asplit r_2.ki 8\0Arfactor r_2.kio reassoc\0Arfactor r_2.kii reassoc\0Aunroll r_2.kio\0Avectorise r_2.kii\0Areorder r_2 a ko kio kii\0Astore r_2 private\0Asplit y.b 16\0Asplit y.bi 8\0Aunroll y.bio\0Avectorise y.bii\0A"}
!1 = !{}
