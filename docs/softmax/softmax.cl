// SPDX-License-Identifier: Apache-2.0
#pragma OPENCL FP_CONTRACT OFF
// Kernel softmax_0
// softmax: reduce, broadcast_in_dim, subtract, exponential, reduce, divide, broadcast_in_dim,
//     multiply
// inline broadcast_in_dim subtract exponential divide broadcast_in_dim_2 multiply
// reorder y a b
// bind y.a group.x
// split y.b 1024
// split y.bi 4
// reorder y a bo bio bii
// bind y.bio lane.x
// vectorise y.bii
// at r, y.a
// at r_2, y.a
// store r private
// split r.k 1024
// split r.ki 4
// rfactor r.kio reassoc
// rfactor r.kii reassoc
// reorder r a ko kio kii
// bind r.kio lane.x
// vectorise r.kii
// store r_2 private
// split r_2.k 1024
// split r_2.ki 4
// rfactor r_2.kio reassoc
// rfactor r_2.kii reassoc
// reorder r_2 a ko kio kii
// bind r_2.kio lane.x
// vectorise r_2.kii

static inline float pestle_max_f32(float a, float b) {
  if (a > b) return a;
  if (a < b) return b;
  if (a == b) return as_float(as_uint(a) & as_uint(b));
  return a + b;
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void pestle_softmax_0(
    __global const uchar* restrict x_base, ulong x_at,
    __global uchar* restrict y_base, ulong y_at) {
  __global const float* x = (__global const float*)(x_base + x_at);
  __global float* y = (__global float*)(y_base + y_at);
  __local float part[8];
  __local float part2[8];
  __local float pestle_shared_transpose_5[256];
  float r;
  float acc[4];
  float r2;
  float acc2[4];
  int pestle_lane = (((int)(get_local_id(2))) * 1 + ((int)(get_local_id(1)))) * 256 + ((int)(get_local_id(0)));
  int g_2 = (int)(get_group_id(0));
  int lx_4 = (int)(get_local_id(0));
  acc[0] = as_float(0xff800000u);
  acc[1] = as_float(0xff800000u);
  acc[2] = as_float(0xff800000u);
  acc[3] = as_float(0xff800000u);
  bool v10 = lx_4 < 250;
  if (v10) {
    float v12_0 = acc[0];
    float v12_1 = acc[1];
    float v12_2 = acc[2];
    float v12_3 = acc[3];
    int t0 = lx_4 * 4 + (g_2 * 1000);
    float4 t1 = vload4(0, &x[t0]);
    acc[0] = pestle_max_f32(v12_0, t1.x);
    acc[1] = pestle_max_f32(v12_1, t1.y);
    acc[2] = pestle_max_f32(v12_2, t1.z);
    acc[3] = pestle_max_f32(v12_3, t1.w);
  }
  float v19_0 = acc[0];
  float v19_1 = acc[1];
  float v19_2 = acc[2];
  float v19_3 = acc[3];
  float t2 = pestle_max_f32(v19_0, v19_2);
  float t3 = pestle_max_f32(v19_1, v19_3);
  float t4 = pestle_max_f32(t2, t3);
  pestle_shared_transpose_5[pestle_lane] = t4;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float t5 = pestle_shared_transpose_5[pestle_lane ^ 16];
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float t6 = pestle_max_f32(t4, t5);
  pestle_shared_transpose_5[pestle_lane] = t6;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float t7 = pestle_shared_transpose_5[pestle_lane ^ 8];
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float t8 = pestle_max_f32(t6, t7);
  pestle_shared_transpose_5[pestle_lane] = t8;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float t9 = pestle_shared_transpose_5[pestle_lane ^ 4];
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float t10 = pestle_max_f32(t8, t9);
  pestle_shared_transpose_5[pestle_lane] = t10;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float t11 = pestle_shared_transpose_5[pestle_lane ^ 2];
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float t12 = pestle_max_f32(t10, t11);
  pestle_shared_transpose_5[pestle_lane] = t12;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float t13 = pestle_shared_transpose_5[pestle_lane ^ 1];
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float v21 = pestle_max_f32(t12, t13);
  bool v24 = 0 == (lx_4 % 32);
  if (v24) {
    part[lx_4 / 32] = v21;
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float v30 = part[0];
  float v32 = part[1];
  float v34 = part[2];
  float v36 = part[3];
  float v38 = part[4];
  float v40 = part[5];
  float v42 = part[6];
  float v44 = part[7];
  float v49 = pestle_max_f32(pestle_max_f32(v30, v32), pestle_max_f32(v34, v36));
  float v50 = pestle_max_f32(pestle_max_f32(v38, v40), pestle_max_f32(v42, v44));
  r = pestle_max_f32(v49, v50);
  acc2[0] = as_float(0x80000000u);
  acc2[1] = as_float(0x80000000u);
  acc2[2] = as_float(0x80000000u);
  acc2[3] = as_float(0x80000000u);
  if (v10) {
    float v58_0 = acc2[0];
    float v58_1 = acc2[1];
    float v58_2 = acc2[2];
    float v58_3 = acc2[3];
    int t14 = lx_4 * 4 + (g_2 * 1000);
    float4 t15 = vload4(0, &x[t14]);
    float v62 = r;
    float v64_0 = t15.x - v62;
    float v64_1 = t15.y - v62;
    float v64_2 = t15.z - v62;
    float v64_3 = t15.w - v62;
    float v67_0 = (v64_0 > 89.0f) ? 89.0f : v64_0;
    float v67_1 = (v64_1 > 89.0f) ? 89.0f : v64_1;
    float v67_2 = (v64_2 > 89.0f) ? 89.0f : v64_2;
    float v67_3 = (v64_3 > 89.0f) ? 89.0f : v64_3;
    float v70_0 = (v67_0 < (-104.0f)) ? (-104.0f) : v67_0;
    float v70_1 = (v67_1 < (-104.0f)) ? (-104.0f) : v67_1;
    float v70_2 = (v67_2 < (-104.0f)) ? (-104.0f) : v67_2;
    float v70_3 = (v67_3 < (-104.0f)) ? (-104.0f) : v67_3;
    float v73_0 = fma(v70_0, 1.442695f, 12582912.0f);
    float v73_1 = fma(v70_1, 1.442695f, 12582912.0f);
    float v73_2 = fma(v70_2, 1.442695f, 12582912.0f);
    float v73_3 = fma(v70_3, 1.442695f, 12582912.0f);
    float v74_0 = v73_0 - 12582912.0f;
    float v74_1 = v73_1 - 12582912.0f;
    float v74_2 = v73_2 - 12582912.0f;
    float v74_3 = v73_3 - 12582912.0f;
    int v75_0 = (int)(as_uint(v73_0));
    int v75_1 = (int)(as_uint(v73_1));
    int v75_2 = (int)(as_uint(v73_2));
    int v75_3 = (int)(as_uint(v73_3));
    int v80_0 = (int)(((uint)(v75_0 >> 1)) << 23);
    int v80_1 = (int)(((uint)(v75_1 >> 1)) << 23);
    int v80_2 = (int)(((uint)(v75_2 >> 1)) << 23);
    int v80_3 = (int)(((uint)(v75_3 >> 1)) << 23);
    int v81_0 = (int)(((uint)((int)(((uint)(v75_0)) << 23))) - ((uint)(v80_0)));
    int v81_1 = (int)(((uint)((int)(((uint)(v75_1)) << 23))) - ((uint)(v80_1)));
    int v81_2 = (int)(((uint)((int)(((uint)(v75_2)) << 23))) - ((uint)(v80_2)));
    int v81_3 = (int)(((uint)((int)(((uint)(v75_3)) << 23))) - ((uint)(v80_3)));
    float v90_0 = fma(v74_0, -1.4286068e-06f, fma(v74_0, -0.69314575f, v70_0));
    float v90_1 = fma(v74_1, -1.4286068e-06f, fma(v74_1, -0.69314575f, v70_1));
    float v90_2 = fma(v74_2, -1.4286068e-06f, fma(v74_2, -0.69314575f, v70_2));
    float v90_3 = fma(v74_3, -1.4286068e-06f, fma(v74_3, -0.69314575f, v70_3));
    float v95_0 = fma(fma(0.0013814552f, v90_0, 0.008368733f), v90_0, 0.041668333f);
    float v95_1 = fma(fma(0.0013814552f, v90_1, 0.008368733f), v90_1, 0.041668333f);
    float v95_2 = fma(fma(0.0013814552f, v90_2, 0.008368733f), v90_2, 0.041668333f);
    float v95_3 = fma(fma(0.0013814552f, v90_3, 0.008368733f), v90_3, 0.041668333f);
    float v101_0 = fma(fma(fma(v95_0, v90_0, 0.16666521f), v90_0, 0.49999994f), v90_0, 1.0f);
    float v101_1 = fma(fma(fma(v95_1, v90_1, 0.16666521f), v90_1, 0.49999994f), v90_1, 1.0f);
    float v101_2 = fma(fma(fma(v95_2, v90_2, 0.16666521f), v90_2, 0.49999994f), v90_2, 1.0f);
    float v101_3 = fma(fma(fma(v95_3, v90_3, 0.16666521f), v90_3, 0.49999994f), v90_3, 1.0f);
    float v103_0 = as_float((uint)((int)(((uint)(v80_0)) + 1065353216u))) * fma(v101_0, v90_0, 1.0f);
    float v103_1 = as_float((uint)((int)(((uint)(v80_1)) + 1065353216u))) * fma(v101_1, v90_1, 1.0f);
    float v103_2 = as_float((uint)((int)(((uint)(v80_2)) + 1065353216u))) * fma(v101_2, v90_2, 1.0f);
    float v103_3 = as_float((uint)((int)(((uint)(v80_3)) + 1065353216u))) * fma(v101_3, v90_3, 1.0f);
    float v104_0 = as_float((uint)((int)(((uint)(v81_0)) + 1065353216u))) * v103_0;
    float v104_1 = as_float((uint)((int)(((uint)(v81_1)) + 1065353216u))) * v103_1;
    float v104_2 = as_float((uint)((int)(((uint)(v81_2)) + 1065353216u))) * v103_2;
    float v104_3 = as_float((uint)((int)(((uint)(v81_3)) + 1065353216u))) * v103_3;
    acc2[0] = v58_0 + v104_0;
    acc2[1] = v58_1 + v104_1;
    acc2[2] = v58_2 + v104_2;
    acc2[3] = v58_3 + v104_3;
  }
  float v108_0 = acc2[0];
  float v108_1 = acc2[1];
  float v108_2 = acc2[2];
  float v108_3 = acc2[3];
  float t16 = v108_0 + v108_2;
  float t17 = v108_1 + v108_3;
  float t18 = t16 + t17;
  pestle_shared_transpose_5[pestle_lane] = t18;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float t19 = pestle_shared_transpose_5[pestle_lane ^ 16];
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float t20 = t18 + t19;
  pestle_shared_transpose_5[pestle_lane] = t20;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float t21 = pestle_shared_transpose_5[pestle_lane ^ 8];
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float t22 = t20 + t21;
  pestle_shared_transpose_5[pestle_lane] = t22;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float t23 = pestle_shared_transpose_5[pestle_lane ^ 4];
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float t24 = t22 + t23;
  pestle_shared_transpose_5[pestle_lane] = t24;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float t25 = pestle_shared_transpose_5[pestle_lane ^ 2];
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float t26 = t24 + t25;
  pestle_shared_transpose_5[pestle_lane] = t26;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float t27 = pestle_shared_transpose_5[pestle_lane ^ 1];
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float v110 = t26 + t27;
  if (v24) {
    part2[lx_4 / 32] = v110;
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float v116 = part2[0];
  float v117 = part2[1];
  float v118 = part2[2];
  float v119 = part2[3];
  float v120 = part2[4];
  float v121 = part2[5];
  float v122 = part2[6];
  float v123 = part2[7];
  float v130 = ((v116 + v117) + (v118 + v119)) + ((v120 + v121) + (v122 + v123));
  r2 = v130 + 0.0f;
  float v135 = r2;
  float v136 = 1.0f / v135;
  if (v10) {
    int v139 = lx_4 * 4 + (g_2 * 1000);
    float4 t28 = vload4(0, &x[v139]);
    float v141 = r;
    float v143_0 = t28.x - v141;
    float v143_1 = t28.y - v141;
    float v143_2 = t28.z - v141;
    float v143_3 = t28.w - v141;
    float v146_0 = (v143_0 > 89.0f) ? 89.0f : v143_0;
    float v146_1 = (v143_1 > 89.0f) ? 89.0f : v143_1;
    float v146_2 = (v143_2 > 89.0f) ? 89.0f : v143_2;
    float v146_3 = (v143_3 > 89.0f) ? 89.0f : v143_3;
    float v149_0 = (v146_0 < (-104.0f)) ? (-104.0f) : v146_0;
    float v149_1 = (v146_1 < (-104.0f)) ? (-104.0f) : v146_1;
    float v149_2 = (v146_2 < (-104.0f)) ? (-104.0f) : v146_2;
    float v149_3 = (v146_3 < (-104.0f)) ? (-104.0f) : v146_3;
    float v152_0 = fma(v149_0, 1.442695f, 12582912.0f);
    float v152_1 = fma(v149_1, 1.442695f, 12582912.0f);
    float v152_2 = fma(v149_2, 1.442695f, 12582912.0f);
    float v152_3 = fma(v149_3, 1.442695f, 12582912.0f);
    float v153_0 = v152_0 - 12582912.0f;
    float v153_1 = v152_1 - 12582912.0f;
    float v153_2 = v152_2 - 12582912.0f;
    float v153_3 = v152_3 - 12582912.0f;
    int v154_0 = (int)(as_uint(v152_0));
    int v154_1 = (int)(as_uint(v152_1));
    int v154_2 = (int)(as_uint(v152_2));
    int v154_3 = (int)(as_uint(v152_3));
    int v159_0 = (int)(((uint)(v154_0 >> 1)) << 23);
    int v159_1 = (int)(((uint)(v154_1 >> 1)) << 23);
    int v159_2 = (int)(((uint)(v154_2 >> 1)) << 23);
    int v159_3 = (int)(((uint)(v154_3 >> 1)) << 23);
    int v160_0 = (int)(((uint)((int)(((uint)(v154_0)) << 23))) - ((uint)(v159_0)));
    int v160_1 = (int)(((uint)((int)(((uint)(v154_1)) << 23))) - ((uint)(v159_1)));
    int v160_2 = (int)(((uint)((int)(((uint)(v154_2)) << 23))) - ((uint)(v159_2)));
    int v160_3 = (int)(((uint)((int)(((uint)(v154_3)) << 23))) - ((uint)(v159_3)));
    float v169_0 = fma(v153_0, -1.4286068e-06f, fma(v153_0, -0.69314575f, v149_0));
    float v169_1 = fma(v153_1, -1.4286068e-06f, fma(v153_1, -0.69314575f, v149_1));
    float v169_2 = fma(v153_2, -1.4286068e-06f, fma(v153_2, -0.69314575f, v149_2));
    float v169_3 = fma(v153_3, -1.4286068e-06f, fma(v153_3, -0.69314575f, v149_3));
    float v174_0 = fma(fma(0.0013814552f, v169_0, 0.008368733f), v169_0, 0.041668333f);
    float v174_1 = fma(fma(0.0013814552f, v169_1, 0.008368733f), v169_1, 0.041668333f);
    float v174_2 = fma(fma(0.0013814552f, v169_2, 0.008368733f), v169_2, 0.041668333f);
    float v174_3 = fma(fma(0.0013814552f, v169_3, 0.008368733f), v169_3, 0.041668333f);
    float v180_0 = fma(fma(fma(v174_0, v169_0, 0.16666521f), v169_0, 0.49999994f), v169_0, 1.0f);
    float v180_1 = fma(fma(fma(v174_1, v169_1, 0.16666521f), v169_1, 0.49999994f), v169_1, 1.0f);
    float v180_2 = fma(fma(fma(v174_2, v169_2, 0.16666521f), v169_2, 0.49999994f), v169_2, 1.0f);
    float v180_3 = fma(fma(fma(v174_3, v169_3, 0.16666521f), v169_3, 0.49999994f), v169_3, 1.0f);
    float v182_0 = as_float((uint)((int)(((uint)(v159_0)) + 1065353216u))) * fma(v180_0, v169_0, 1.0f);
    float v182_1 = as_float((uint)((int)(((uint)(v159_1)) + 1065353216u))) * fma(v180_1, v169_1, 1.0f);
    float v182_2 = as_float((uint)((int)(((uint)(v159_2)) + 1065353216u))) * fma(v180_2, v169_2, 1.0f);
    float v182_3 = as_float((uint)((int)(((uint)(v159_3)) + 1065353216u))) * fma(v180_3, v169_3, 1.0f);
    float v183_0 = as_float((uint)((int)(((uint)(v160_0)) + 1065353216u))) * v182_0;
    float v183_1 = as_float((uint)((int)(((uint)(v160_1)) + 1065353216u))) * v182_1;
    float v183_2 = as_float((uint)((int)(((uint)(v160_2)) + 1065353216u))) * v182_2;
    float v183_3 = as_float((uint)((int)(((uint)(v160_3)) + 1065353216u))) * v182_3;
    vstore4((float4)((v183_0 * v136), (v183_1 * v136), (v183_2 * v136), (v183_3 * v136)), 0, &y[v139]);
  }
}
