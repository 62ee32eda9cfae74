// SPDX-License-Identifier: Apache-2.0
// CUDA C without any header: NVRTC knows all of it. Shared memory is one array
// whose size the launch gives, since one with a size of its own is limited to
// 48 KiB. PESTLE_SHIM is defined where a CPU runs the text.
#include "plugins/cuda/dialect.h"

// One instruction since sm_80; its zeros and NaNs are those of the op.
#define EXTREME(instruction, less, more, join)        \
  "$fn$float $name($float a, $float b) {\n"           \
  "#if defined(PESTLE_SHIM) || __CUDA_ARCH__ < 800\n" \
  "  if (a " more                                     \
  " b) return a;\n"                                   \
  "  if (a " less                                     \
  " b) return b;\n"                                   \
  "  if (a == b) {\n"                                 \
  "    return $real32($bits32(a) " join               \
  " $bits32(b));\n  }\n"                              \
  "  return a + b;\n"                                 \
  "#else\n"                                           \
  "  float r;\n"                                      \
  "  asm(\"" instruction                              \
  " %0, %1, %2;\" : \"=f\"(r) : \"f\"(a), "           \
  "\"f\"(b));\n"                                      \
  "  return r;\n"                                     \
  "#endif\n}\n"

// Words of two floats, since sm_80. Sums and products have instructions of their
// own since sm_90, and before are fused ones with 1, -1 or -0.
#define HALF(arguments, row, names, instruction, operands) \
  "$fn$uint $name(" arguments                              \
  ") {\n"                                                  \
  "#ifdef PESTLE_SHIM\n"                                   \
  "  return pestle_shim_$typex2_" row "(" names            \
  ");\n"                                                   \
  "#else\n"                                                \
  "  $uint r;\n" instruction " : \"=r\"(r) : " operands    \
  ");\n"                                                   \
  "  return r;\n"                                          \
  "#endif\n}\n"
#define ASM2(name) "  asm(\"" name ".$typex2 %0, %1, %2;\""
#define ASM3(name) "  asm(\"" name ".$typex2 %0, %1, %2, %3;\""
#define HALF2(row, name) \
  HALF("$uint a, $uint b", row, "a, b", ASM2(name), "\"r\"(a), \"r\"(b)")
#define HALF_SUM(row, fused)                                      \
  HALF("$uint a, $uint b", row, "a, b",                           \
       "#if __CUDA_ARCH__ < 900\n" ASM3(                          \
           "fma.rn") " : \"=r\"(r) : " fused                      \
                     ");\n  return r;\n#endif\n" ASM2(row ".rn"), \
       "\"r\"(a), \"r\"(b)")

// One instruction since sm_75, and for 2^x what keeps denormals around it.
#define APPROX(arguments, shim, code) \
  "$fn$float $name(" arguments        \
  ") {\n"                             \
  "#ifdef PESTLE_SHIM\n"              \
  "  return " shim                    \
  ";\n"                               \
  "#else\n"                           \
  "  float r;\n" code "#endif\n}\n"

// One instruction since sm_61.
#define DOT4(letters, types, A, B)                             \
  "static __device__ __forceinline__ int pestle_dot4_" letters \
  "(int a, int b, int c) {\n"                                  \
  "#ifdef PESTLE_SHIM\n"                                       \
  "  for (int i = 0; i < 32; i += 8)\n"                        \
  "    c += (int)(" A "char)(a >> i) * (int)(" B               \
  "char)(b >> i);\n"                                           \
  "  return c;\n"                                              \
  "#else\n"                                                    \
  "  int r;\n"                                                 \
  "  asm(\"dp4a." types                                        \
  " %0, %1, %2, %3;\" : \"=r\"(r) : \"r\"(a), \"r\"(b), "      \
  "\"r\"(c));\n"                                               \
  "  return r;\n"                                              \
  "#endif\n}\n"

// Programmatic dependent launch, since sm_90. With |begins| the next kernel may begin as soon
// as all groups of this one have, else when they end: it waits for all that this one writes.
#define WAIT                                                             \
  "#ifndef PESTLE_GRID_WAIT\n"                                           \
  "#define PESTLE_GRID_WAIT\n"                                           \
  "static __device__ __forceinline__ void pestle_prefetch(\n"            \
  "    const void* at) {\n"                                              \
  "#if !defined(PESTLE_SHIM) && __CUDA_ARCH__ >= 900\n"                  \
  "  asm volatile(\"prefetch.global.L2 [%0];\" :: \"l\"(at));\n"         \
  "#endif\n}\n"                                                          \
  "static __device__ __forceinline__ long long pestle_grid_wait(\n"      \
  "    bool begins) {\n"                                                 \
  "#if defined(PESTLE_SHIM)\n"                                           \
  "  return pestle_shim_grid_wait();\n"                                  \
  "#elif __CUDA_ARCH__ < 900\n"                                          \
  "  return 0;\n"                                                        \
  "#else\n"                                                              \
  "  long long zero;\n"                                                  \
  "  asm volatile(\"griddepcontrol.wait;\\n\"\n"                         \
  "               \"mov.u64 %0, 0;\" : \"=l\"(zero) :: \"memory\");\n"   \
  "  if (begins) asm volatile(\"griddepcontrol.launch_dependents;\");\n" \
  "  return zero;\n"                                                     \
  "#endif\n}\n#endif\n"

// All groups of a cooperative launch wait for each other by a word that the driver gives
// it, as the toolkit's cooperative groups do: %envreg1 and 2 have the address of what lies
// before it. Each group adds 1 and the first what makes the highest bit change with the
// last of them, so that the other bits are 0 again.
#define LAUNCH_BARRIER                                                       \
  "static __device__ __forceinline__ void pestle_launch_barrier() {\n"       \
  "  __syncthreads();\n"                                                     \
  "  if (!(threadIdx.x | threadIdx.y)) {\n"                                  \
  "    unsigned int high, low, before, now;\n"                               \
  "    asm(\"mov.u32 %0, %%envreg1;\" : \"=r\"(high));\n"                    \
  "    asm(\"mov.u32 %0, %%envreg2;\" : \"=r\"(low));\n"                     \
  "    unsigned long long at = ((unsigned long long)high << 32 | low);\n"    \
  "    unsigned int all = 0x80000001u - gridDim.z;\n"                        \
  "    asm volatile(\"atom.add.release.gpu.global.u32 %0, [%1 + 4], %2;\"\n" \
  "        : \"=r\"(before) : \"l\"(at), \"r\"(blockIdx.z ? 1u : all)\n"     \
  "        : \"memory\");\n"                                                 \
  "    do {\n"                                                               \
  "      asm volatile(\"ld.acquire.gpu.global.u32 %0, [%1 + 4];\"\n"         \
  "          : \"=r\"(now) : \"l\"(at) : \"memory\");\n"                     \
  "    } while (!((now ^ before) >> 31));\n"                                 \
  "  }\n"                                                                    \
  "  __syncthreads();\n"                                                     \
  "}\n"

const pestle_c_printer_dialect_t pestle_cuda_dialect = {
    .name = "CUDA C",
    .prelude = "",
    .value = {"bool", "int", "unsigned int", "long long", "unsigned long long",
              "float", "double"},
    .memory = {"signed char", "unsigned char", "short", "unsigned short", "int",
               "unsigned int", "long long", "unsigned long long", "float",
               "double"},
    .vector2 = {"char2", "uchar2", "short2", "ushort2", "int2", "uint2",
                "longlong2", "ulonglong2", "float2", "double2"},
    .vector4 = {"char4", "uchar4", "short4", "ushort4", "int4", "uint4", NULL,
                NULL, "float4", NULL},
    .suffix = {"", "", "u", "ll", "ull", "f", ""},
    .function = "static __device__ __forceinline__ ",
    .exact = "",
    .inner = "",
    .kernel =
        "extern __shared__ __align__(1024) unsigned char pestle_shared[];\n"
        "\n"
        "extern \"C\" __global__ void "
        "$wide__launch_bounds__($lanes$roles)$cluster\n"
        "$name(\n    ",
    .kernel_end = ") {\n",
    .argument = "$type* $restrictpestle_given_$name",
    .argument_in = "const $type* $restrictpestle_given_$name",
    .opening =
        "$const$type* $restrictconst $name = "
        "pestle_given_$name + pestle_seen;",
    .wait = WAIT,
    .prefetch = "pestle_prefetch(&$name[$at])",
    .restricted = "__restrict__ ",
    .parameter = "long long $name",
    .parameter_use = "$name",
    .shared = "$type* const $name = ($type*)(pestle_shared + $at);",
    .group = {"blockIdx.x", "blockIdx.y", "blockIdx.z"},
    .lane = {"threadIdx.x", "threadIdx.y", "threadIdx.z"},
    .group_count = {"gridDim.x", "gridDim.y", "gridDim.z"},
    .barrier = "__syncthreads()",
    .wide_kernel = "__cluster_dims__",
    .wide_barrier =
        "asm volatile(\"barrier.cluster.arrive.release.aligned;\\n\"\n"
        "               \"barrier.cluster.wait.acquire.aligned;\" "
        "::: \"memory\")",
    .launch_barrier = LAUNCH_BARRIER,
    .shuffle_xor = "__shfl_xor_sync(0xffffffffu, $v, $m)",
    .ballot = "__ballot_sync(0xffffffffu, $v)",
    .popcount = "__popc($a)",
    .atomic_add = "atomicAdd(&$name[$at], $v)",
    .unroll = "#pragma unroll",
    .bits = {"__float_as_uint", "(unsigned long long)__double_as_longlong"},
    .real = {"__uint_as_float", "__longlong_as_double"},
    .shared_vectors = true,
    .vector8 = "uint4",
    .vector_read = "*(const $type*)&$name[$at]",
    .vector_write = "*($type*)&$name[$at] = $v",
    .vector_make = "make_$type($v)",
    .row = {[PESTLE_OP_ABS] = "fabs($a)",
            [PESTLE_OP_FLOOR] = "floor($a)",
            [PESTLE_OP_CEIL] = "ceil($a)",
            [PESTLE_OP_ROUND_EVEN] = "rint($a)",
            [PESTLE_OP_TRUNC] = "trunc($a)",
            [PESTLE_OP_SQRT] = "sqrt($a)"},
    .decode_f16 =
        "$fn$float $name($uint a) {\n"
        "#ifdef PESTLE_SHIM\n"
        "  return pestle_shim_from_f16(a);\n"
        "#else\n"
        "  float r;\n"
        "  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(r) : "
        "\"h\"((unsigned short)a));\n"
        "  return r;\n"
        "#endif\n}\n",
    .encode_f16 =
        "$fn$uint $name($float a) {\n"
        "#ifdef PESTLE_SHIM\n"
        "  return pestle_shim_to_f16(a);\n"
        "#else\n"
        "  unsigned short r;\n"
        "  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(r) : \"f\"(a));\n"
        "  return r;\n"
        "#endif\n}\n",
    .half = {HALF_SUM("add", "\"r\"(a), \"r\"($one$u), \"r\"(b)"),
             HALF_SUM("sub", "\"r\"(b), \"r\"($minus$u), \"r\"(a)"),
             HALF_SUM("mul", "\"r\"(a), \"r\"(b), \"r\"(0x80008000$u)"),
             HALF2("max", "max.NaN"), HALF2("min", "min.NaN"),
             HALF("$float low, $float high", "pack", "low, high",
                  "  asm(\"cvt.rn.$typex2.f32 %0, %1, %2;\"",
                  "\"f\"(high), \"f\"(low)")},
    .dot4 = DOT4("uu", "u32.u32", "unsigned ", "unsigned ")
        DOT4("us", "u32.s32", "unsigned ", "signed ")
            DOT4("su", "s32.u32", "signed ", "unsigned ")
                DOT4("ss", "s32.s32", "signed ", "signed ") "\n",
    .max_f32 = EXTREME("max.NaN.f32", "<", ">", "&"),
    .min_f32 = EXTREME("min.NaN.f32", ">", "<", "|"),
    .approx_exp2 = APPROX("$float a", "__builtin_exp2f(a)",
                          "  asm(\"ex2.approx.f32 %0, %1;\" : \"=f\"(r) : "
                          "\"f\"(a));\n  return r;\n"),
    .flush_exp2 = APPROX("$float a", "__builtin_exp2f(a)",
                         "  asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(r) : "
                         "\"f\"(a));\n  return r;\n"),
    .approx_tanh = APPROX("$float a", "__builtin_tanhf(a)",
                          "  asm(\"tanh.approx.f32 %0, %1;\" : \"=f\"(r) : "
                          "\"f\"(a));\n  return r;\n"),
    .approx_div = APPROX("$float a, $float b", "a / b",
                         "  asm(\"rcp.approx.ftz.f32 %0, %1;\" : \"=f\"(r) : "
                         "\"f\"(b));\n  return a * r;\n"),
    .encode_bf16 =
        "$fn$uint $name($float a) {\n"
        "#if defined(PESTLE_SHIM) || __CUDA_ARCH__ < 800\n"
        "  $uint bits = $bits32(a);\n"
        "  if ((bits & 0x7fffffff$u) > 0x7f800000$u) return 0x7fff$u;\n"
        "  return (bits + 0x7fff$u + ((bits >> 16) & 1$u)) >> 16;\n"
        "#else\n"
        "  unsigned short r;\n"
        "  asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(r) : \"f\"(a));\n"
        "  return r;\n"
        "#endif\n}\n",
};
