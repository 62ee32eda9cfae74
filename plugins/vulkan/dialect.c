// SPDX-License-Identifier: Apache-2.0
// GLSL 450: every kernel asks for the same version, since glslang makes its
// tables anew for each. Arguments are addresses in push constants.
#include "plugins/vulkan/dialect.h"

const pestle_c_printer_dialect_t pestle_vulkan_dialect = {
    .name = "GLSL",
    .prelude =
        "#version 450\n"
        "#extension GL_EXT_buffer_reference : require\n"
        "#extension GL_EXT_control_flow_attributes : require\n"
        "#extension GL_EXT_shader_8bit_storage : require\n"
        "#extension GL_EXT_shader_16bit_storage : require\n"
        "#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require\n"
        "#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require\n"
        "#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require\n"
        "#extension GL_KHR_shader_subgroup_shuffle : require\n"
        "#extension GL_EXT_shader_subgroup_extended_types_int64 : require\n"
        "layout(local_size_x = $x, local_size_y = $y, local_size_z = $z) in;\n",
    .value = {"bool", "int", "uint", "int64_t", "uint64_t", "float", "double"},
    .memory = {"int8_t", "uint8_t", "int16_t", "uint16_t", "int", "uint",
               "int64_t", "uint64_t", "float", "double"},
    .vector2 = {"i8vec2", "u8vec2", "i16vec2", "u16vec2", "ivec2", "uvec2",
                "i64vec2", "u64vec2", "vec2", "dvec2"},
    .vector4 = {"i8vec4", "u8vec4", "i16vec4", "u16vec4", "ivec4", "uvec4",
                "i64vec4", "u64vec4", "vec4", "dvec4"},
    .suffix = {"", "", "u", "L", "UL", "f", "LF"},
    .wide_literals = true,
    .constructors = true,
    .wraps = true,
    .blocks = true,
    .function = "",
    .exact = "precise ",
    .kernel = "void main() {\n",
    .kernel_end = "",
    .argument = "  pestle_$type $name;\n",
    .argument_in = "  pestle_$type_in $name;\n",
    .restricted = "",
    .parameter = "  $type $name;\n",
    .parameter_use = "$name",
    .shared = "shared $type $name[$count];",
    .shared_outside = true,
    .group = {"gl_WorkGroupID.x", "gl_WorkGroupID.y", "gl_WorkGroupID.z"},
    .lane = {"gl_LocalInvocationID.x", "gl_LocalInvocationID.y",
             "gl_LocalInvocationID.z"},
    .group_count = {"gl_NumWorkGroups.x", "gl_NumWorkGroups.y",
                    "gl_NumWorkGroups.z"},
    .barrier = "memoryBarrierBuffer(); barrier()",
    .shuffle_xor = "subgroupShuffleXor($v, $mu)",
    .unroll = "[[unroll]]",
    // Mesa 22.3 takes the comparison of a widened number with 0 for one of
    // unsigned numbers: a negative index is not clamped then.
    .pair = "uvec2",
    .pair_make = "uvec2",
    .pair_bits = "unpackDouble2x32",
    .pair_real = "packDouble2x32",
    .sign_extend = "bitfieldExtract($a, 0, $n)",
    .widen_i32 = "packInt2x32(ivec2($a, $a >> 31))",
    .bits = {"floatBitsToUint", "doubleBitsToUint64"},
    .real = {"uintBitsToFloat", "uint64BitsToDouble"},
    .vector_read = "$name_v$n.v[($at) / $n]",
    .vector_write = "$name_v$n.v[($at) / $n] = $v",
    .vector_make = "$type($v)",
    .row = {[PESTLE_OP_ABS] = "abs($a)",
            [PESTLE_OP_FLOOR] = "floor($a)",
            [PESTLE_OP_CEIL] = "ceil($a)",
            [PESTLE_OP_ROUND_EVEN] = "roundEven($a)",
            [PESTLE_OP_TRUNC] = "trunc($a)",
            [PESTLE_OP_SQRT] = "sqrt($a)"},
};
