// SPDX-License-Identifier: Apache-2.0
#version 450
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_EXT_shader_subgroup_extended_types_int64 : require
layout(local_size_x = 256, local_size_y = 1, local_size_z = 1) in;
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

float pestle_max_f32(float a, float b) {
  if (a > b) return a;
  if (a < b) return b;
  if (a == b) return uintBitsToFloat(floatBitsToUint(a) & floatBitsToUint(b));
  return a + b;
}

// Rounded once, whatever / is: it guesses 25 bits of the quotient of
// the mantissas, whose rest, exact in 32 bits, puts them right.
float pestle_div_f32(float a, float b) {
  uint x = floatBitsToUint(a), y = floatBitsToUint(b);
  uint sign = (x ^ y) & 0x80000000u;
  x &= 0x7fffffffu;
  y &= 0x7fffffffu;
  if (x > 0x7f800000u || y > 0x7f800000u || (x == y && (x == 0u || x == 0x7f800000u))) {
    return uintBitsToFloat(0x7fc00000u);
  }
  if (x == 0x7f800000u || y == 0u) return uintBitsToFloat(sign | 0x7f800000u);
  if (x == 0u || y == 0x7f800000u) return uintBitsToFloat(sign);
  int e = int(x >> 23), f = int(y >> 23);
  x = e == 0 ? x << 1 : (x & 0x7fffffu) | 0x800000u;
  y = f == 0 ? y << 1 : (y & 0x7fffffu) | 0x800000u;
  for (; x < 0x800000u; --e) x <<= 1;
  for (; y < 0x800000u; --f) y <<= 1;
  e += 127 - f;
  if (x < y) {
    x <<= 1;
    --e;
  }
  if (e > 254) return uintBitsToFloat(sign | 0x7f800000u);
  uint q = uint(float(x) / float(y) * 16777216.0f);
  int rest = int((x << 24) - q * y), by = int(y);
  for (; rest < 0; rest += by) q -= 1u;
  for (; rest >= by; rest -= by) q += 1u;
  q = (q << 1) | (rest != 0 ? 1u : 0u);
  if (e < 1) {
    int far = e < -26 ? 27 : 1 - e;
    uint low = q & ((1u << far) - 1u);
    q = (q >> far) | (low != 0u ? 1u : 0u);
    e = 1;
  }
  uint up = (q & 2u) != 0u && (q & 5u) != 0u ? 1u : 0u;
  return uintBitsToFloat(sign | ((uint(e - 1) << 23) + (q >> 2) + up));
}

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer pestle_float_in { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer pestle_vec4_in { vec4 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer pestle_float { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer pestle_vec4 { vec4 v[]; };
layout(push_constant, std430) uniform pestle_arguments {
  pestle_float_in x;
  pestle_float y;
};
shared float part[8];
shared float part2[8];
void main() {
  pestle_vec4_in x_v4 = pestle_vec4_in(x);
  pestle_vec4 y_v4 = pestle_vec4(y);
  precise float r;
  precise float acc[4];
  precise float exponential[4];
  precise float r2;
  precise float acc2[4];
  int g_2 = int(gl_WorkGroupID.x);
  int lx_4 = int(gl_LocalInvocationID.x);
  acc[0] = uintBitsToFloat(0xff800000u);
  acc[1] = uintBitsToFloat(0xff800000u);
  acc[2] = uintBitsToFloat(0xff800000u);
  acc[3] = uintBitsToFloat(0xff800000u);
  bool v10 = lx_4 < 250;
  if (v10) {
    precise float v12_0 = acc[0];
    precise float v12_1 = acc[1];
    precise float v12_2 = acc[2];
    precise float v12_3 = acc[3];
    int t0 = lx_4 * 4 + (g_2 * 1000);
    vec4 t1 = x_v4.v[(t0) / 4];
    acc[0] = pestle_max_f32(v12_0, t1.x);
    acc[1] = pestle_max_f32(v12_1, t1.y);
    acc[2] = pestle_max_f32(v12_2, t1.z);
    acc[3] = pestle_max_f32(v12_3, t1.w);
  }
  precise float v19_0 = acc[0];
  precise float v19_1 = acc[1];
  precise float v19_2 = acc[2];
  precise float v19_3 = acc[3];
  precise float t2 = pestle_max_f32(v19_0, v19_2);
  precise float t3 = pestle_max_f32(v19_1, v19_3);
  precise float t4 = pestle_max_f32(t2, t3);
  float t5 = subgroupShuffleXor(t4, 16u);
  precise float t6 = pestle_max_f32(t4, t5);
  float t7 = subgroupShuffleXor(t6, 8u);
  precise float t8 = pestle_max_f32(t6, t7);
  float t9 = subgroupShuffleXor(t8, 4u);
  precise float t10 = pestle_max_f32(t8, t9);
  float t11 = subgroupShuffleXor(t10, 2u);
  precise float t12 = pestle_max_f32(t10, t11);
  float t13 = subgroupShuffleXor(t12, 1u);
  precise float v21 = pestle_max_f32(t12, t13);
  bool v24 = 0 == (lx_4 - lx_4 / 32 * 32);
  if (v24) {
    part[lx_4 / 32] = v21;
  }
  memoryBarrierBuffer(); barrier();
  precise float v30 = part[0];
  precise float v32 = part[1];
  precise float v34 = part[2];
  precise float v36 = part[3];
  precise float v38 = part[4];
  precise float v40 = part[5];
  precise float v42 = part[6];
  precise float v44 = part[7];
  precise float v49 = pestle_max_f32(pestle_max_f32(v30, v32), pestle_max_f32(v34, v36));
  precise float v50 = pestle_max_f32(pestle_max_f32(v38, v40), pestle_max_f32(v42, v44));
  r = pestle_max_f32(v49, v50);
  if (v10) {
    int t14 = lx_4 * 4 + (g_2 * 1000);
    vec4 t15 = x_v4.v[(t14) / 4];
    precise float v58 = r;
    precise float v60_0 = t15.x - v58;
    precise float v60_1 = t15.y - v58;
    precise float v60_2 = t15.z - v58;
    precise float v60_3 = t15.w - v58;
    precise float v63_0 = (v60_0 > 89.0f) ? 89.0f : v60_0;
    precise float v63_1 = (v60_1 > 89.0f) ? 89.0f : v60_1;
    precise float v63_2 = (v60_2 > 89.0f) ? 89.0f : v60_2;
    precise float v63_3 = (v60_3 > 89.0f) ? 89.0f : v60_3;
    precise float v66_0 = (v63_0 < (-104.0f)) ? (-104.0f) : v63_0;
    precise float v66_1 = (v63_1 < (-104.0f)) ? (-104.0f) : v63_1;
    precise float v66_2 = (v63_2 < (-104.0f)) ? (-104.0f) : v63_2;
    precise float v66_3 = (v63_3 < (-104.0f)) ? (-104.0f) : v63_3;
    precise float v69_0 = fma(v66_0, 1.4426950216293335f, 12582912.0f);
    precise float v69_1 = fma(v66_1, 1.4426950216293335f, 12582912.0f);
    precise float v69_2 = fma(v66_2, 1.4426950216293335f, 12582912.0f);
    precise float v69_3 = fma(v66_3, 1.4426950216293335f, 12582912.0f);
    precise float v70_0 = v69_0 - 12582912.0f;
    precise float v70_1 = v69_1 - 12582912.0f;
    precise float v70_2 = v69_2 - 12582912.0f;
    precise float v70_3 = v69_3 - 12582912.0f;
    int v71_0 = int(floatBitsToUint(v69_0));
    int v71_1 = int(floatBitsToUint(v69_1));
    int v71_2 = int(floatBitsToUint(v69_2));
    int v71_3 = int(floatBitsToUint(v69_3));
    int v76_0 = int(uint(v71_0 >> 1) << 23);
    int v76_1 = int(uint(v71_1 >> 1) << 23);
    int v76_2 = int(uint(v71_2 >> 1) << 23);
    int v76_3 = int(uint(v71_3 >> 1) << 23);
    precise float v82_0 = uintBitsToFloat(uint((int(uint(v71_0) << 23) - v76_0) + 1065353216));
    precise float v82_1 = uintBitsToFloat(uint((int(uint(v71_1) << 23) - v76_1) + 1065353216));
    precise float v82_2 = uintBitsToFloat(uint((int(uint(v71_2) << 23) - v76_2) + 1065353216));
    precise float v82_3 = uintBitsToFloat(uint((int(uint(v71_3) << 23) - v76_3) + 1065353216));
    precise float v86_0 = fma(v70_0, -1.428606765330187e-06f, fma(v70_0, -0.693145751953125f, v66_0));
    precise float v86_1 = fma(v70_1, -1.428606765330187e-06f, fma(v70_1, -0.693145751953125f, v66_1));
    precise float v86_2 = fma(v70_2, -1.428606765330187e-06f, fma(v70_2, -0.693145751953125f, v66_2));
    precise float v86_3 = fma(v70_3, -1.428606765330187e-06f, fma(v70_3, -0.693145751953125f, v66_3));
    precise float v91_0 = fma(fma(0.001381455222144723f, v86_0, 0.00836873333901167f), v86_0, 0.04166833311319351f);
    precise float v91_1 = fma(fma(0.001381455222144723f, v86_1, 0.00836873333901167f), v86_1, 0.04166833311319351f);
    precise float v91_2 = fma(fma(0.001381455222144723f, v86_2, 0.00836873333901167f), v86_2, 0.04166833311319351f);
    precise float v91_3 = fma(fma(0.001381455222144723f, v86_3, 0.00836873333901167f), v86_3, 0.04166833311319351f);
    precise float v95_0 = fma(fma(v91_0, v86_0, 0.1666652113199234f), v86_0, 0.4999999403953552f);
    precise float v95_1 = fma(fma(v91_1, v86_1, 0.1666652113199234f), v86_1, 0.4999999403953552f);
    precise float v95_2 = fma(fma(v91_2, v86_2, 0.1666652113199234f), v86_2, 0.4999999403953552f);
    precise float v95_3 = fma(fma(v91_3, v86_3, 0.1666652113199234f), v86_3, 0.4999999403953552f);
    precise float v99_0 = uintBitsToFloat(uint(v76_0 + 1065353216)) * fma(fma(v95_0, v86_0, 1.0f), v86_0, 1.0f);
    precise float v99_1 = uintBitsToFloat(uint(v76_1 + 1065353216)) * fma(fma(v95_1, v86_1, 1.0f), v86_1, 1.0f);
    precise float v99_2 = uintBitsToFloat(uint(v76_2 + 1065353216)) * fma(fma(v95_2, v86_2, 1.0f), v86_2, 1.0f);
    precise float v99_3 = uintBitsToFloat(uint(v76_3 + 1065353216)) * fma(fma(v95_3, v86_3, 1.0f), v86_3, 1.0f);
    exponential[0] = v82_0 * v99_0;
    exponential[1] = v82_1 * v99_1;
    exponential[2] = v82_2 * v99_2;
    exponential[3] = v82_3 * v99_3;
  }
  acc2[0] = uintBitsToFloat(0x80000000u);
  acc2[1] = uintBitsToFloat(0x80000000u);
  acc2[2] = uintBitsToFloat(0x80000000u);
  acc2[3] = uintBitsToFloat(0x80000000u);
  if (v10) {
    precise float v108_0 = acc2[0];
    precise float v108_1 = acc2[1];
    precise float v108_2 = acc2[2];
    precise float v108_3 = acc2[3];
    precise float v109_0 = exponential[0];
    precise float v109_1 = exponential[1];
    precise float v109_2 = exponential[2];
    precise float v109_3 = exponential[3];
    precise float v110_0 = v108_0 + v109_0;
    precise float v110_1 = v108_1 + v109_1;
    precise float v110_2 = v108_2 + v109_2;
    precise float v110_3 = v108_3 + v109_3;
    acc2[0] = v110_0;
    acc2[1] = v110_1;
    acc2[2] = v110_2;
    acc2[3] = v110_3;
  }
  precise float v113_0 = acc2[0];
  precise float v113_1 = acc2[1];
  precise float v113_2 = acc2[2];
  precise float v113_3 = acc2[3];
  precise float t16 = v113_0 + v113_2;
  precise float t17 = v113_1 + v113_3;
  precise float t18 = t16 + t17;
  float t19 = subgroupShuffleXor(t18, 16u);
  precise float t20 = t18 + t19;
  float t21 = subgroupShuffleXor(t20, 8u);
  precise float t22 = t20 + t21;
  float t23 = subgroupShuffleXor(t22, 4u);
  precise float t24 = t22 + t23;
  float t25 = subgroupShuffleXor(t24, 2u);
  precise float t26 = t24 + t25;
  float t27 = subgroupShuffleXor(t26, 1u);
  precise float v115 = t26 + t27;
  if (v24) {
    part2[lx_4 / 32] = v115;
  }
  memoryBarrierBuffer(); barrier();
  precise float v121 = part2[0];
  precise float v122 = part2[1];
  precise float v123 = part2[2];
  precise float v124 = part2[3];
  precise float v125 = part2[4];
  precise float v126 = part2[5];
  precise float v127 = part2[6];
  precise float v128 = part2[7];
  precise float v129 = v121 + v122;
  precise float v130 = v123 + v124;
  precise float v131 = v125 + v126;
  precise float v132 = v127 + v128;
  precise float v133 = v129 + v130;
  precise float v134 = v131 + v132;
  precise float v135 = v133 + v134;
  precise float v137 = v135 + 0.0f;
  r2 = v137;
  precise float v140 = r2;
  precise float v141 = pestle_div_f32(1.0f, v140);
  if (v10) {
    precise float v143_0 = exponential[0];
    precise float v143_1 = exponential[1];
    precise float v143_2 = exponential[2];
    precise float v143_3 = exponential[3];
    int t28 = lx_4 * 4 + (g_2 * 1000);
    y_v4.v[(t28) / 4] = vec4((v143_0 * v141), (v143_1 * v141), (v143_2 * v141), (v143_3 * v141));
  }
}
