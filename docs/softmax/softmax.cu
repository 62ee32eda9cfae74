// SPDX-License-Identifier: Apache-2.0
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

#ifndef PESTLE_GRID_WAIT
#define PESTLE_GRID_WAIT
static __device__ __forceinline__ void pestle_prefetch(
    const void* at) {
#if !defined(PESTLE_SHIM) && __CUDA_ARCH__ >= 900
  asm volatile("prefetch.global.L2 [%0];" :: "l"(at));
#endif
}
static __device__ __forceinline__ long long pestle_grid_wait(
    bool begins) {
#if defined(PESTLE_SHIM)
  return pestle_shim_grid_wait();
#elif __CUDA_ARCH__ < 900
  return 0;
#else
  long long zero;
  asm volatile("griddepcontrol.wait;\n"
               "mov.u64 %0, 0;" : "=l"(zero) :: "memory");
  if (begins) asm volatile("griddepcontrol.launch_dependents;");
  return zero;
#endif
}
#endif
static __device__ __forceinline__ float pestle_max_f32(float a, float b) {
#if defined(PESTLE_SHIM) || __CUDA_ARCH__ < 800
  if (a > b) return a;
  if (a < b) return b;
  if (a == b) {
    return __uint_as_float(__float_as_uint(a) & __float_as_uint(b));
  }
  return a + b;
#else
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#endif
}

extern __shared__ __align__(1024) unsigned char pestle_shared[];

extern "C" __global__ void __launch_bounds__(256)
pestle_softmax_0(
    const float* __restrict__ pestle_given_x,
    float* __restrict__ pestle_given_y) {
  const long long pestle_seen = pestle_grid_wait(1);
  const float* __restrict__ const x = pestle_given_x + pestle_seen;
  float* __restrict__ const y = pestle_given_y + pestle_seen;
  float* const part = (float*)(pestle_shared + 0);
  float* const part2 = (float*)(pestle_shared + 64);
  float r;
  float acc[4];
  float exponential[4];
  float r2;
  float acc2[4];
  int g_2 = (int)(blockIdx.x);
  int lx_4 = (int)(threadIdx.x);
  acc[0] = __uint_as_float(0xff800000u);
  acc[1] = __uint_as_float(0xff800000u);
  acc[2] = __uint_as_float(0xff800000u);
  acc[3] = __uint_as_float(0xff800000u);
  bool v10 = lx_4 < 250;
  if (v10) {
    float v12_0 = acc[0];
    float v12_1 = acc[1];
    float v12_2 = acc[2];
    float v12_3 = acc[3];
    int t0 = lx_4 * 4 + (g_2 * 1000);
    float4 t1 = *(const float4*)&x[t0];
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
  float t5 = __shfl_xor_sync(0xffffffffu, t4, 16);
  float t6 = pestle_max_f32(t4, t5);
  float t7 = __shfl_xor_sync(0xffffffffu, t6, 8);
  float t8 = pestle_max_f32(t6, t7);
  float t9 = __shfl_xor_sync(0xffffffffu, t8, 4);
  float t10 = pestle_max_f32(t8, t9);
  float t11 = __shfl_xor_sync(0xffffffffu, t10, 2);
  float t12 = pestle_max_f32(t10, t11);
  float t13 = __shfl_xor_sync(0xffffffffu, t12, 1);
  float v21 = pestle_max_f32(t12, t13);
  bool v24 = 0 == (lx_4 % 32);
  if (v24) {
    part[lx_4 / 32] = v21;
  }
  __syncthreads();
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
    float4 t15 = *(const float4*)&x[t14];
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
    int v71_0 = (int)(__float_as_uint(v69_0));
    int v71_1 = (int)(__float_as_uint(v69_1));
    int v71_2 = (int)(__float_as_uint(v69_2));
    int v71_3 = (int)(__float_as_uint(v69_3));
    int v76_0 = (int)(((unsigned int)(v71_0 >> 1)) << 23);
    int v76_1 = (int)(((unsigned int)(v71_1 >> 1)) << 23);
    int v76_2 = (int)(((unsigned int)(v71_2 >> 1)) << 23);
    int v76_3 = (int)(((unsigned int)(v71_3 >> 1)) << 23);
    int v77_0 = (int)(((unsigned int)((int)(((unsigned int)(v71_0)) << 23))) - ((unsigned int)(v76_0)));
    int v77_1 = (int)(((unsigned int)((int)(((unsigned int)(v71_1)) << 23))) - ((unsigned int)(v76_1)));
    int v77_2 = (int)(((unsigned int)((int)(((unsigned int)(v71_2)) << 23))) - ((unsigned int)(v76_2)));
    int v77_3 = (int)(((unsigned int)((int)(((unsigned int)(v71_3)) << 23))) - ((unsigned int)(v76_3)));
    float v81_0 = __uint_as_float((unsigned int)((int)(((unsigned int)(v76_0)) + 1065353216u)));
    float v81_1 = __uint_as_float((unsigned int)((int)(((unsigned int)(v76_1)) + 1065353216u)));
    float v81_2 = __uint_as_float((unsigned int)((int)(((unsigned int)(v76_2)) + 1065353216u)));
    float v81_3 = __uint_as_float((unsigned int)((int)(((unsigned int)(v76_3)) + 1065353216u)));
    float v82_0 = __uint_as_float((unsigned int)((int)(((unsigned int)(v77_0)) + 1065353216u)));
    float v82_1 = __uint_as_float((unsigned int)((int)(((unsigned int)(v77_1)) + 1065353216u)));
    float v82_2 = __uint_as_float((unsigned int)((int)(((unsigned int)(v77_2)) + 1065353216u)));
    float v82_3 = __uint_as_float((unsigned int)((int)(((unsigned int)(v77_3)) + 1065353216u)));
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
    exponential[0] = v82_0 * (v81_0 * fma(v97_0, v86_0, 1.0f));
    exponential[1] = v82_1 * (v81_1 * fma(v97_1, v86_1, 1.0f));
    exponential[2] = v82_2 * (v81_2 * fma(v97_2, v86_2, 1.0f));
    exponential[3] = v82_3 * (v81_3 * fma(v97_3, v86_3, 1.0f));
  }
  acc2[0] = __uint_as_float(0x80000000u);
  acc2[1] = __uint_as_float(0x80000000u);
  acc2[2] = __uint_as_float(0x80000000u);
  acc2[3] = __uint_as_float(0x80000000u);
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
  float t19 = __shfl_xor_sync(0xffffffffu, t18, 16);
  float t20 = t18 + t19;
  float t21 = __shfl_xor_sync(0xffffffffu, t20, 8);
  float t22 = t20 + t21;
  float t23 = __shfl_xor_sync(0xffffffffu, t22, 4);
  float t24 = t22 + t23;
  float t25 = __shfl_xor_sync(0xffffffffu, t24, 2);
  float t26 = t24 + t25;
  float t27 = __shfl_xor_sync(0xffffffffu, t26, 1);
  float v115 = t26 + t27;
  if (v24) {
    part2[lx_4 / 32] = v115;
  }
  __syncthreads();
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
    *(float4*)&y[t28] = make_float4((v143_0 * v141), (v143_1 * v141), (v143_2 * v141), (v143_3 * v141));
  }
}
