// SPDX-License-Identifier: Apache-2.0
#include <metal_stdlib>
using namespace metal;
#if defined(__METAL_VERSION__) && __METAL_VERSION__ >= 320
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
#endif
#ifndef PESTLE_TG
#define PESTLE_TG(T, n, d) \
  threadgroup __attribute__((aligned(16))) T n d
#endif
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
  if (a == b) return as_type<float>(as_type<uint>(a) & as_type<uint>(b));
  return a + b;
}

kernel void pestle_softmax_0(
    device const float* x [[buffer(0)]],
    device float* y [[buffer(1)]],
    uint3 group_id [[threadgroup_position_in_grid]],
    uint3 lane_id [[thread_position_in_threadgroup]]) {
  PESTLE_TG(float, part, [8]);
  PESTLE_TG(float, part2, [8]);
  float r;
  float acc[4];
  float exponential[4];
  float r2;
  float acc2[4];
  int g_2 = int(group_id.x);
  int lx_4 = int(lane_id.x);
  acc[0] = as_type<float>(0xff800000u);
  acc[1] = as_type<float>(0xff800000u);
  acc[2] = as_type<float>(0xff800000u);
  acc[3] = as_type<float>(0xff800000u);
  bool v10 = lx_4 < 250;
  if (v10) {
    float v12_0 = acc[0];
    float v12_1 = acc[1];
    float v12_2 = acc[2];
    float v12_3 = acc[3];
    int t0 = lx_4 * 4 + (g_2 * 1000);
    float4 t1 = *(device const float4*)&x[t0];
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
  float t5 = simd_shuffle_xor(t4, ushort(16));
  float t6 = pestle_max_f32(t4, t5);
  float t7 = simd_shuffle_xor(t6, ushort(8));
  float t8 = pestle_max_f32(t6, t7);
  float t9 = simd_shuffle_xor(t8, ushort(4));
  float t10 = pestle_max_f32(t8, t9);
  float t11 = simd_shuffle_xor(t10, ushort(2));
  float t12 = pestle_max_f32(t10, t11);
  float t13 = simd_shuffle_xor(t12, ushort(1));
  float v21 = pestle_max_f32(t12, t13);
  bool v24 = 0 == (lx_4 % 32);
  if (v24) {
    part[lx_4 / 32] = v21;
  }
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
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
    float4 t15 = *(device const float4*)&x[t14];
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
    int v71_0 = int(as_type<uint>(v69_0));
    int v71_1 = int(as_type<uint>(v69_1));
    int v71_2 = int(as_type<uint>(v69_2));
    int v71_3 = int(as_type<uint>(v69_3));
    int v76_0 = int(uint(v71_0 >> 1) << 23);
    int v76_1 = int(uint(v71_1 >> 1) << 23);
    int v76_2 = int(uint(v71_2 >> 1) << 23);
    int v76_3 = int(uint(v71_3 >> 1) << 23);
    int v80_0 = int(uint(int(uint(int(uint(v71_0) << 23)) - uint(v76_0))) + 1065353216u);
    int v80_1 = int(uint(int(uint(int(uint(v71_1) << 23)) - uint(v76_1))) + 1065353216u);
    int v80_2 = int(uint(int(uint(int(uint(v71_2) << 23)) - uint(v76_2))) + 1065353216u);
    int v80_3 = int(uint(int(uint(int(uint(v71_3) << 23)) - uint(v76_3))) + 1065353216u);
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
    float v99_0 = as_type<float>(uint(int(uint(v76_0) + 1065353216u))) * fma(v97_0, v86_0, 1.0f);
    float v99_1 = as_type<float>(uint(int(uint(v76_1) + 1065353216u))) * fma(v97_1, v86_1, 1.0f);
    float v99_2 = as_type<float>(uint(int(uint(v76_2) + 1065353216u))) * fma(v97_2, v86_2, 1.0f);
    float v99_3 = as_type<float>(uint(int(uint(v76_3) + 1065353216u))) * fma(v97_3, v86_3, 1.0f);
    exponential[0] = as_type<float>(uint(v80_0)) * v99_0;
    exponential[1] = as_type<float>(uint(v80_1)) * v99_1;
    exponential[2] = as_type<float>(uint(v80_2)) * v99_2;
    exponential[3] = as_type<float>(uint(v80_3)) * v99_3;
  }
  acc2[0] = as_type<float>(0x80000000u);
  acc2[1] = as_type<float>(0x80000000u);
  acc2[2] = as_type<float>(0x80000000u);
  acc2[3] = as_type<float>(0x80000000u);
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
  float t19 = simd_shuffle_xor(t18, ushort(16));
  float t20 = t18 + t19;
  float t21 = simd_shuffle_xor(t20, ushort(8));
  float t22 = t20 + t21;
  float t23 = simd_shuffle_xor(t22, ushort(4));
  float t24 = t22 + t23;
  float t25 = simd_shuffle_xor(t24, ushort(2));
  float t26 = t24 + t25;
  float t27 = simd_shuffle_xor(t26, ushort(1));
  float v115 = t26 + t27;
  if (v24) {
    part2[lx_4 / 32] = v115;
  }
  threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);
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
    *(device float4*)&y[t28] = float4((v143_0 * v141), (v143_1 * v141), (v143_2 * v141), (v143_3 * v141));
  }
}
