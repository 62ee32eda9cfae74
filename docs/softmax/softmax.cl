// SPDX-License-Identifier: Apache-2.0
#pragma OPENCL FP_CONTRACT OFF
// Kernel softmax_0
// softmax: reduce, broadcast_in_dim, subtract, exponential, reduce, divide, broadcast_in_dim,
//     multiply
// inline broadcast_in_dim subtract divide broadcast_in_dim_2 multiply
// reorder y a b
// bind y.a group.x
// split y.b 1024
// split y.bi 4
// reorder y a bo bio bii
// bind y.bio lane.x
// vectorise y.bii
// at r, y.a
// at exponential, y.a
// at r_2, y.a
// store r private
// split r.k 1024
// split r.ki 4
// rfactor r.kio reassoc
// rfactor r.kii reassoc
// reorder r a ko kio kii
// bind r.kio lane.x
// vectorise r.kii
// store exponential shared
// split exponential.b 1024
// split exponential.bi 4
// reorder exponential a bo bio bii
// bind exponential.bio lane.x
// vectorise exponential.bii
// store r_2 private
// split r_2.k 1024
// split r_2.ki 4
// rfactor r_2.kio reassoc
// rfactor r_2.kii reassoc
// reorder r_2 a ko kio kii
// bind r_2.kio lane.x
// vectorise r_2.kii
// unroll r.ko
// unroll exponential.bo
// unroll r_2.ko
// unroll y.bo
// store exponential lanes

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
  float exponential[4];
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
  if (v10) {
    int t14 = lx_4 * 4 + (g_2 * 1000);
    float4 t15 = vload4(0, &x[t14]);
    float v58 = r;
    float v60_0 = t15.x - v58;
    float v60_1 = t15.y - v58;
    float v60_2 = t15.z - v58;
    float v60_3 = t15.w - v58;
    float v63_0 = (v60_0 > 89.0f) ? 89.0f : v60_0;
    float v63_1 = (v60_1 > 89.0f) ? 89.0f : v60_1;
    float v63_2 = (v60_2 > 89.0f) ? 89.0f : v60_2;
    float v63_3 = (v60_3 > 89.0f) ? 89.0f : v60_3;
    float v66_0 = (v63_0 < (-104.0f)) ? (-104.0f) : v63_0;
    float v66_1 = (v63_1 < (-104.0f)) ? (-104.0f) : v63_1;
    float v66_2 = (v63_2 < (-104.0f)) ? (-104.0f) : v63_2;
    float v66_3 = (v63_3 < (-104.0f)) ? (-104.0f) : v63_3;
    float v69_0 = fma(v66_0, 1.442695f, 12582912.0f);
    float v69_1 = fma(v66_1, 1.442695f, 12582912.0f);
    float v69_2 = fma(v66_2, 1.442695f, 12582912.0f);
    float v69_3 = fma(v66_3, 1.442695f, 12582912.0f);
    float v70_0 = v69_0 - 12582912.0f;
    float v70_1 = v69_1 - 12582912.0f;
    float v70_2 = v69_2 - 12582912.0f;
    float v70_3 = v69_3 - 12582912.0f;
    int v71_0 = (int)(as_uint(v69_0));
    int v71_1 = (int)(as_uint(v69_1));
    int v71_2 = (int)(as_uint(v69_2));
    int v71_3 = (int)(as_uint(v69_3));
    int v76_0 = (int)(((uint)(v71_0 >> 1)) << 23);
    int v76_1 = (int)(((uint)(v71_1 >> 1)) << 23);
    int v76_2 = (int)(((uint)(v71_2 >> 1)) << 23);
    int v76_3 = (int)(((uint)(v71_3 >> 1)) << 23);
    int v77_0 = (int)(((uint)((int)(((uint)(v71_0)) << 23))) - ((uint)(v76_0)));
    int v77_1 = (int)(((uint)((int)(((uint)(v71_1)) << 23))) - ((uint)(v76_1)));
    int v77_2 = (int)(((uint)((int)(((uint)(v71_2)) << 23))) - ((uint)(v76_2)));
    int v77_3 = (int)(((uint)((int)(((uint)(v71_3)) << 23))) - ((uint)(v76_3)));
    float v86_0 = fma(v70_0, -1.4286068e-06f, fma(v70_0, -0.69314575f, v66_0));
    float v86_1 = fma(v70_1, -1.4286068e-06f, fma(v70_1, -0.69314575f, v66_1));
    float v86_2 = fma(v70_2, -1.4286068e-06f, fma(v70_2, -0.69314575f, v66_2));
    float v86_3 = fma(v70_3, -1.4286068e-06f, fma(v70_3, -0.69314575f, v66_3));
    float v91_0 = fma(fma(0.0013814552f, v86_0, 0.008368733f), v86_0, 0.041668333f);
    float v91_1 = fma(fma(0.0013814552f, v86_1, 0.008368733f), v86_1, 0.041668333f);
    float v91_2 = fma(fma(0.0013814552f, v86_2, 0.008368733f), v86_2, 0.041668333f);
    float v91_3 = fma(fma(0.0013814552f, v86_3, 0.008368733f), v86_3, 0.041668333f);
    float v97_0 = fma(fma(fma(v91_0, v86_0, 0.16666521f), v86_0, 0.49999994f), v86_0, 1.0f);
    float v97_1 = fma(fma(fma(v91_1, v86_1, 0.16666521f), v86_1, 0.49999994f), v86_1, 1.0f);
    float v97_2 = fma(fma(fma(v91_2, v86_2, 0.16666521f), v86_2, 0.49999994f), v86_2, 1.0f);
    float v97_3 = fma(fma(fma(v91_3, v86_3, 0.16666521f), v86_3, 0.49999994f), v86_3, 1.0f);
    float v99_0 = as_float((uint)((int)(((uint)(v76_0)) + 1065353216u))) * fma(v97_0, v86_0, 1.0f);
    float v99_1 = as_float((uint)((int)(((uint)(v76_1)) + 1065353216u))) * fma(v97_1, v86_1, 1.0f);
    float v99_2 = as_float((uint)((int)(((uint)(v76_2)) + 1065353216u))) * fma(v97_2, v86_2, 1.0f);
    float v99_3 = as_float((uint)((int)(((uint)(v76_3)) + 1065353216u))) * fma(v97_3, v86_3, 1.0f);
    exponential[0] = as_float((uint)((int)(((uint)(v77_0)) + 1065353216u))) * v99_0;
    exponential[1] = as_float((uint)((int)(((uint)(v77_1)) + 1065353216u))) * v99_1;
    exponential[2] = as_float((uint)((int)(((uint)(v77_2)) + 1065353216u))) * v99_2;
    exponential[3] = as_float((uint)((int)(((uint)(v77_3)) + 1065353216u))) * v99_3;
  }
  acc2[0] = as_float(0x80000000u);
  acc2[1] = as_float(0x80000000u);
  acc2[2] = as_float(0x80000000u);
  acc2[3] = as_float(0x80000000u);
  if (v10) {
    float v108_0 = acc2[0];
    float v108_1 = acc2[1];
    float v108_2 = acc2[2];
    float v108_3 = acc2[3];
    float v109_0 = exponential[0];
    float v109_1 = exponential[1];
    float v109_2 = exponential[2];
    float v109_3 = exponential[3];
    acc2[0] = v108_0 + v109_0;
    acc2[1] = v108_1 + v109_1;
    acc2[2] = v108_2 + v109_2;
    acc2[3] = v108_3 + v109_3;
  }
  float v113_0 = acc2[0];
  float v113_1 = acc2[1];
  float v113_2 = acc2[2];
  float v113_3 = acc2[3];
  float t16 = v113_0 + v113_2;
  float t17 = v113_1 + v113_3;
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
  float v115 = t26 + t27;
  if (v24) {
    part2[lx_4 / 32] = v115;
  }
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  float v121 = part2[0];
  float v122 = part2[1];
  float v123 = part2[2];
  float v124 = part2[3];
  float v125 = part2[4];
  float v126 = part2[5];
  float v127 = part2[6];
  float v128 = part2[7];
  float v135 = ((v121 + v122) + (v123 + v124)) + ((v125 + v126) + (v127 + v128));
  r2 = v135 + 0.0f;
  float v140 = r2;
  float v141 = 1.0f / v140;
  if (v10) {
    float v143_0 = exponential[0];
    float v143_1 = exponential[1];
    float v143_2 = exponential[2];
    float v143_3 = exponential[3];
    int t28 = lx_4 * 4 + (g_2 * 1000);
    vstore4((float4)((v143_0 * v141), (v143_1 * v141), (v143_2 * v141), (v143_3 * v141)), 0, &y[t28]);
  }
}
