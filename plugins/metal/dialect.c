// SPDX-License-Identifier: Apache-2.0
// MSL. There is no f64, so that what legalisation makes of it is taken from
// Metal's own library, whose errors its specification gives: 4 ulp for sine and
// cosine, 6 for tan and atan2, 16 for pow. PESTLE_TG lets tests put arrays of a
// threadgroup elsewhere when they compile the text as C++.
#include "plugins/metal/dialect.h"

const pestle_c_printer_dialect_t pestle_metal_dialect = {
    .name = "MSL",
    .prelude =
        "#include <metal_stdlib>\n"
        "using namespace metal;\n"
        "#if defined(__METAL_VERSION__) && __METAL_VERSION__ >= 320\n"
        "#pragma METAL fp math_mode(safe)\n"
        "#pragma METAL fp contract(off)\n"
        "#endif\n"
        "#ifndef PESTLE_TG\n"
        "#define PESTLE_TG(T, n, d) \\\n"
        "  threadgroup __attribute__((aligned(16))) T n d\n"
        "#endif\n",
    .value = {"bool", "int", "uint", "long", "ulong", "float", "double"},
    .memory = {"char", "uchar", "short", "ushort", "int", "uint", "long",
               "ulong", "float", "double"},
    .vector2 = {"char2", "uchar2", "short2", "ushort2", "int2", "uint2",
                "long2", "ulong2", "float2", NULL},
    .vector4 = {"char4", "uchar4", "short4", "ushort4", "int4", "uint4",
                "long4", "ulong4", "float4", NULL},
    .suffix = {"", "", "u", "L", "UL", "f", ""},
    .constructors = true,
    .function = "static inline ",
    .exact = "",
    .kernel = "kernel void $name(\n    ",
    .kernel_end =
        ",\n    uint3 group_id [[threadgroup_position_in_grid]],\n"
        "    uint3 lane_id [[thread_position_in_threadgroup]]) {\n",
    .argument = "device $type* $name [[buffer($n)]]",
    .argument_in = "device const $type* $name [[buffer($n)]]",
    .restricted = "",
    .parameter = "constant long& $name [[buffer($n)]]",
    .parameter_use = "$name",
    .shared = "PESTLE_TG($type, $name, [$count]);",
    .group = {"group_id.x", "group_id.y", "group_id.z"},
    .lane = {"lane_id.x", "lane_id.y", "lane_id.z"},
    .barrier =
        "threadgroup_barrier(mem_flags::mem_device | "
        "mem_flags::mem_threadgroup)",
    .shuffle_xor = "simd_shuffle_xor($v, ushort($m))",
    .unroll = "#pragma unroll",
    .bits = {"as_type<uint>", "as_type<ulong>"},
    .real = {"as_type<float>", "as_type<double>"},
    .shared_vectors = true,
    .vector_read = "*(device const $type*)&$name[$at]",
    .vector_write = "*(device $type*)&$name[$at] = $v",
    .shared_read = "*(threadgroup const $type*)&$name[$at]",
    .shared_write = "*(threadgroup $type*)&$name[$at] = $v",
    .vector_make = "$type($v)",
    .row = {[PESTLE_OP_ABS] = "fabs($a)",
            [PESTLE_OP_FLOOR] = "floor($a)",
            [PESTLE_OP_CEIL] = "ceil($a)",
            [PESTLE_OP_ROUND_EVEN] = "rint($a)",
            [PESTLE_OP_ROUND_AFZ] = "round($a)",
            [PESTLE_OP_TRUNC] = "trunc($a)",
            [PESTLE_OP_SQRT] = "precise::sqrt($a)",
            [PESTLE_OP_SINE] = "precise::sin($a)",
            [PESTLE_OP_COSINE] = "precise::cos($a)",
            [PESTLE_OP_TAN] = "precise::tan($a)",
            [PESTLE_OP_ATAN2] = "precise::atan2($a, $b)",
            [PESTLE_OP_POWER] = "precise::pow($a, $b)"},
    // Which lane has which elements is not in Metal's specification: see
    // docs/adr/012-fragments-of-metal.md.
    .mma8 =
        "static inline float2 pestle_mma8(float a0, float a1, float b0,\n"
        "                                 float b1, float c0, float c1) {\n"
        "  simdgroup_float8x8 a, b, c;\n"
        "  a.thread_elements()[0] = a0;\n"
        "  a.thread_elements()[1] = a1;\n"
        "  b.thread_elements()[0] = b0;\n"
        "  b.thread_elements()[1] = b1;\n"
        "  c.thread_elements()[0] = c0;\n"
        "  c.thread_elements()[1] = c1;\n"
        "  simdgroup_multiply_accumulate(c, a, b, c);\n"
        "  return float2(c.thread_elements()[0], c.thread_elements()[1]);\n"
        "}\n",
    .decode_f16 =
        "$fn$float $name($uint a) {\n"
        "  return $float(as_type<half>(ushort(a)));\n}\n",
    .encode_f16 =
        "$fn$uint $name($float a) {\n"
        "  return $uint(as_type<ushort>(half(a)));\n}\n",
};
