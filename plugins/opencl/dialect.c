// SPDX-License-Identifier: Apache-2.0
// OpenCL C 1.2. An argument is a buffer and where in it the tensor begins:
// buffers of OpenCL have no addresses.
#include "plugins/opencl/dialect.h"

const pestle_c_printer_dialect_t pestle_opencl_dialect = {
    .name = "OpenCL C",
    .prelude = "#pragma OPENCL FP_CONTRACT OFF\n",
    .value = {"bool", "int", "uint", "long", "ulong", "float", "double"},
    .memory = {"char", "uchar", "short", "ushort", "int", "uint", "long",
               "ulong", "float", "double"},
    .vector2 = {"char2", "uchar2", "short2", "ushort2", "int2", "uint2",
                "long2", "ulong2", "float2", "double2"},
    .vector4 = {"char4", "uchar4", "short4", "ushort4", "int4", "uint4",
                "long4", "ulong4", "float4", "double4"},
    .suffix = {"", "", "u", "L", "UL", "f", ""},
    .function = "static inline ",
    .exact = "",
    .kernel =
        "__kernel __attribute__((reqd_work_group_size($x, $y, $z)))\n"
        "void $name(\n    ",
    .kernel_end = ") {\n",
    .argument = "__global uchar* $restrict$name_base, ulong $name_at",
    .argument_in = "__global const uchar* $restrict$name_base, ulong $name_at",
    .opening =
        "__global $const$type* $name = "
        "(__global $const$type*)($name_base + $name_at);",
    .restricted = "restrict ",
    .parameter = "long $name",
    .parameter_use = "$name",
    .shared = "__local $type $name[$count];",
    .group = {"get_group_id(0)", "get_group_id(1)", "get_group_id(2)"},
    .lane = {"get_local_id(0)", "get_local_id(1)", "get_local_id(2)"},
    .barrier = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)",
    .unroll = "#pragma unroll",
    .bits = {"as_uint", "as_ulong"},
    .real = {"as_float", "as_double"},
    .vector_read = "vload$n(0, &$name[$at])",
    .vector_write = "vstore$n($v, 0, &$name[$at])",
    .vector_make = "($type)($v)",
    .row = {[PESTLE_OP_ABS] = "fabs($a)",
            [PESTLE_OP_FLOOR] = "floor($a)",
            [PESTLE_OP_CEIL] = "ceil($a)",
            [PESTLE_OP_ROUND_EVEN] = "rint($a)",
            [PESTLE_OP_ROUND_AFZ] = "round($a)",
            [PESTLE_OP_TRUNC] = "trunc($a)",
            [PESTLE_OP_SQRT] = "sqrt($a)"},
};
