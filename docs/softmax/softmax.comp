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
  acc2[0] = uintBitsToFloat(0x80000000u);
  acc2[1] = uintBitsToFloat(0x80000000u);
  acc2[2] = uintBitsToFloat(0x80000000u);
  acc2[3] = uintBitsToFloat(0x80000000u);
  if (v10) {
    precise float v58_0 = acc2[0];
    precise float v58_1 = acc2[1];
    precise float v58_2 = acc2[2];
    precise float v58_3 = acc2[3];
    int t14 = lx_4 * 4 + (g_2 * 1000);
    vec4 t15 = x_v4.v[(t14) / 4];
    precise float v62 = r;
    precise float v64_0 = t15.x - v62;
    precise float v64_1 = t15.y - v62;
    precise float v64_2 = t15.z - v62;
    precise float v64_3 = t15.w - v62;
    precise float v67_0 = (v64_0 > 89.0f) ? 89.0f : v64_0;
    precise float v67_1 = (v64_1 > 89.0f) ? 89.0f : v64_1;
    precise float v67_2 = (v64_2 > 89.0f) ? 89.0f : v64_2;
    precise float v67_3 = (v64_3 > 89.0f) ? 89.0f : v64_3;
    precise float v70_0 = (v67_0 < (-104.0f)) ? (-104.0f) : v67_0;
    precise float v70_1 = (v67_1 < (-104.0f)) ? (-104.0f) : v67_1;
    precise float v70_2 = (v67_2 < (-104.0f)) ? (-104.0f) : v67_2;
    precise float v70_3 = (v67_3 < (-104.0f)) ? (-104.0f) : v67_3;
    precise float v73_0 = fma(v70_0, 1.4426950216293335f, 12582912.0f);
    precise float v73_1 = fma(v70_1, 1.4426950216293335f, 12582912.0f);
    precise float v73_2 = fma(v70_2, 1.4426950216293335f, 12582912.0f);
    precise float v73_3 = fma(v70_3, 1.4426950216293335f, 12582912.0f);
    precise float v74_0 = v73_0 - 12582912.0f;
    precise float v74_1 = v73_1 - 12582912.0f;
    precise float v74_2 = v73_2 - 12582912.0f;
    precise float v74_3 = v73_3 - 12582912.0f;
    int v75_0 = int(floatBitsToUint(v73_0));
    int v75_1 = int(floatBitsToUint(v73_1));
    int v75_2 = int(floatBitsToUint(v73_2));
    int v75_3 = int(floatBitsToUint(v73_3));
    int v80_0 = int(uint(v75_0 >> 1) << 23);
    int v80_1 = int(uint(v75_1 >> 1) << 23);
    int v80_2 = int(uint(v75_2 >> 1) << 23);
    int v80_3 = int(uint(v75_3 >> 1) << 23);
    precise float v86_0 = uintBitsToFloat(uint((int(uint(v75_0) << 23) - v80_0) + 1065353216));
    precise float v86_1 = uintBitsToFloat(uint((int(uint(v75_1) << 23) - v80_1) + 1065353216));
    precise float v86_2 = uintBitsToFloat(uint((int(uint(v75_2) << 23) - v80_2) + 1065353216));
    precise float v86_3 = uintBitsToFloat(uint((int(uint(v75_3) << 23) - v80_3) + 1065353216));
    precise float v90_0 = fma(v74_0, -1.428606765330187e-06f, fma(v74_0, -0.693145751953125f, v70_0));
    precise float v90_1 = fma(v74_1, -1.428606765330187e-06f, fma(v74_1, -0.693145751953125f, v70_1));
    precise float v90_2 = fma(v74_2, -1.428606765330187e-06f, fma(v74_2, -0.693145751953125f, v70_2));
    precise float v90_3 = fma(v74_3, -1.428606765330187e-06f, fma(v74_3, -0.693145751953125f, v70_3));
    precise float v95_0 = fma(fma(0.001381455222144723f, v90_0, 0.00836873333901167f), v90_0, 0.04166833311319351f);
    precise float v95_1 = fma(fma(0.001381455222144723f, v90_1, 0.00836873333901167f), v90_1, 0.04166833311319351f);
    precise float v95_2 = fma(fma(0.001381455222144723f, v90_2, 0.00836873333901167f), v90_2, 0.04166833311319351f);
    precise float v95_3 = fma(fma(0.001381455222144723f, v90_3, 0.00836873333901167f), v90_3, 0.04166833311319351f);
    precise float v99_0 = fma(fma(v95_0, v90_0, 0.1666652113199234f), v90_0, 0.4999999403953552f);
    precise float v99_1 = fma(fma(v95_1, v90_1, 0.1666652113199234f), v90_1, 0.4999999403953552f);
    precise float v99_2 = fma(fma(v95_2, v90_2, 0.1666652113199234f), v90_2, 0.4999999403953552f);
    precise float v99_3 = fma(fma(v95_3, v90_3, 0.1666652113199234f), v90_3, 0.4999999403953552f);
    precise float v103_0 = uintBitsToFloat(uint(v80_0 + 1065353216)) * fma(fma(v99_0, v90_0, 1.0f), v90_0, 1.0f);
    precise float v103_1 = uintBitsToFloat(uint(v80_1 + 1065353216)) * fma(fma(v99_1, v90_1, 1.0f), v90_1, 1.0f);
    precise float v103_2 = uintBitsToFloat(uint(v80_2 + 1065353216)) * fma(fma(v99_2, v90_2, 1.0f), v90_2, 1.0f);
    precise float v103_3 = uintBitsToFloat(uint(v80_3 + 1065353216)) * fma(fma(v99_3, v90_3, 1.0f), v90_3, 1.0f);
    precise float v105_0 = v58_0 + (v86_0 * v103_0);
    precise float v105_1 = v58_1 + (v86_1 * v103_1);
    precise float v105_2 = v58_2 + (v86_2 * v103_2);
    precise float v105_3 = v58_3 + (v86_3 * v103_3);
    acc2[0] = v105_0;
    acc2[1] = v105_1;
    acc2[2] = v105_2;
    acc2[3] = v105_3;
  }
  precise float v108_0 = acc2[0];
  precise float v108_1 = acc2[1];
  precise float v108_2 = acc2[2];
  precise float v108_3 = acc2[3];
  precise float t16 = v108_0 + v108_2;
  precise float t17 = v108_1 + v108_3;
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
  precise float v110 = t26 + t27;
  if (v24) {
    part2[lx_4 / 32] = v110;
  }
  memoryBarrierBuffer(); barrier();
  precise float v116 = part2[0];
  precise float v117 = part2[1];
  precise float v118 = part2[2];
  precise float v119 = part2[3];
  precise float v120 = part2[4];
  precise float v121 = part2[5];
  precise float v122 = part2[6];
  precise float v123 = part2[7];
  precise float v124 = v116 + v117;
  precise float v125 = v118 + v119;
  precise float v126 = v120 + v121;
  precise float v127 = v122 + v123;
  precise float v128 = v124 + v125;
  precise float v129 = v126 + v127;
  precise float v130 = v128 + v129;
  precise float v132 = v130 + 0.0f;
  r2 = v132;
  precise float v135 = r2;
  precise float v136 = pestle_div_f32(1.0f, v135);
  if (v10) {
    int v139 = lx_4 * 4 + (g_2 * 1000);
    vec4 t28 = x_v4.v[(v139) / 4];
    precise float v141 = r;
    precise float v143_0 = t28.x - v141;
    precise float v143_1 = t28.y - v141;
    precise float v143_2 = t28.z - v141;
    precise float v143_3 = t28.w - v141;
    precise float v146_0 = (v143_0 > 89.0f) ? 89.0f : v143_0;
    precise float v146_1 = (v143_1 > 89.0f) ? 89.0f : v143_1;
    precise float v146_2 = (v143_2 > 89.0f) ? 89.0f : v143_2;
    precise float v146_3 = (v143_3 > 89.0f) ? 89.0f : v143_3;
    precise float v149_0 = (v146_0 < (-104.0f)) ? (-104.0f) : v146_0;
    precise float v149_1 = (v146_1 < (-104.0f)) ? (-104.0f) : v146_1;
    precise float v149_2 = (v146_2 < (-104.0f)) ? (-104.0f) : v146_2;
    precise float v149_3 = (v146_3 < (-104.0f)) ? (-104.0f) : v146_3;
    precise float v152_0 = fma(v149_0, 1.4426950216293335f, 12582912.0f);
    precise float v152_1 = fma(v149_1, 1.4426950216293335f, 12582912.0f);
    precise float v152_2 = fma(v149_2, 1.4426950216293335f, 12582912.0f);
    precise float v152_3 = fma(v149_3, 1.4426950216293335f, 12582912.0f);
    precise float v153_0 = v152_0 - 12582912.0f;
    precise float v153_1 = v152_1 - 12582912.0f;
    precise float v153_2 = v152_2 - 12582912.0f;
    precise float v153_3 = v152_3 - 12582912.0f;
    int v154_0 = int(floatBitsToUint(v152_0));
    int v154_1 = int(floatBitsToUint(v152_1));
    int v154_2 = int(floatBitsToUint(v152_2));
    int v154_3 = int(floatBitsToUint(v152_3));
    int v159_0 = int(uint(v154_0 >> 1) << 23);
    int v159_1 = int(uint(v154_1 >> 1) << 23);
    int v159_2 = int(uint(v154_2 >> 1) << 23);
    int v159_3 = int(uint(v154_3 >> 1) << 23);
    precise float v165_0 = uintBitsToFloat(uint((int(uint(v154_0) << 23) - v159_0) + 1065353216));
    precise float v165_1 = uintBitsToFloat(uint((int(uint(v154_1) << 23) - v159_1) + 1065353216));
    precise float v165_2 = uintBitsToFloat(uint((int(uint(v154_2) << 23) - v159_2) + 1065353216));
    precise float v165_3 = uintBitsToFloat(uint((int(uint(v154_3) << 23) - v159_3) + 1065353216));
    precise float v169_0 = fma(v153_0, -1.428606765330187e-06f, fma(v153_0, -0.693145751953125f, v149_0));
    precise float v169_1 = fma(v153_1, -1.428606765330187e-06f, fma(v153_1, -0.693145751953125f, v149_1));
    precise float v169_2 = fma(v153_2, -1.428606765330187e-06f, fma(v153_2, -0.693145751953125f, v149_2));
    precise float v169_3 = fma(v153_3, -1.428606765330187e-06f, fma(v153_3, -0.693145751953125f, v149_3));
    precise float v174_0 = fma(fma(0.001381455222144723f, v169_0, 0.00836873333901167f), v169_0, 0.04166833311319351f);
    precise float v174_1 = fma(fma(0.001381455222144723f, v169_1, 0.00836873333901167f), v169_1, 0.04166833311319351f);
    precise float v174_2 = fma(fma(0.001381455222144723f, v169_2, 0.00836873333901167f), v169_2, 0.04166833311319351f);
    precise float v174_3 = fma(fma(0.001381455222144723f, v169_3, 0.00836873333901167f), v169_3, 0.04166833311319351f);
    precise float v178_0 = fma(fma(v174_0, v169_0, 0.1666652113199234f), v169_0, 0.4999999403953552f);
    precise float v178_1 = fma(fma(v174_1, v169_1, 0.1666652113199234f), v169_1, 0.4999999403953552f);
    precise float v178_2 = fma(fma(v174_2, v169_2, 0.1666652113199234f), v169_2, 0.4999999403953552f);
    precise float v178_3 = fma(fma(v174_3, v169_3, 0.1666652113199234f), v169_3, 0.4999999403953552f);
    precise float v182_0 = uintBitsToFloat(uint(v159_0 + 1065353216)) * fma(fma(v178_0, v169_0, 1.0f), v169_0, 1.0f);
    precise float v182_1 = uintBitsToFloat(uint(v159_1 + 1065353216)) * fma(fma(v178_1, v169_1, 1.0f), v169_1, 1.0f);
    precise float v182_2 = uintBitsToFloat(uint(v159_2 + 1065353216)) * fma(fma(v178_2, v169_2, 1.0f), v169_2, 1.0f);
    precise float v182_3 = uintBitsToFloat(uint(v159_3 + 1065353216)) * fma(fma(v178_3, v169_3, 1.0f), v169_3, 1.0f);
    y_v4.v[(v139) / 4] = vec4(((v165_0 * v182_0) * v136), ((v165_1 * v182_1) * v136), ((v165_2 * v182_2) * v136), ((v165_3 * v182_3) * v136));
  }
}
