// SPDX-License-Identifier: Apache-2.0
// One printer from flat Kernel IR to text of the C family: CUDA C, GLSL, MSL,
// OpenCL C. All that differs is a dialect: a table of strings and bits, which
// the target's own folder holds.
//
// What the printer decides for all of them:
//   - A kernel with LANE loops maps groups to work-groups and lanes to local
//     ids. One without maps each index of its group loops to a thread of its
//     own, whose shared buffers are arrays of that thread.
//   - Values of several lanes are several scalars, since that is what a lane
//     of a GPU computes with; whole aligned runs move as vectors of 2 or 4.
//   - i8 and i16 live in 32-bit registers, wrapped after each op; floats of
//     16 and 8 bits are their bits there, and only casts look into them. i1 is
//     a bool. INDEX has 32 bits where all of the kernel's fit.
//   - 64-bit integers that the device lacks are pairs of words (c_printer_pair.c).
//   - Every float op rounds by itself: mul and add that both say `contract`
//     are printed as fma(), and the toolchain is told to contract nothing.
#ifndef PESTLE_PLUGINS_COMMON_C_PRINTER_H_
#define PESTLE_PLUGINS_COMMON_C_PRINTER_H_

#include "pestle/plugin.h"

// Types of registers.
typedef enum pestle_c_printer_class_e {
  PESTLE_C_PRINTER_BOOL,
  PESTLE_C_PRINTER_I32,
  PESTLE_C_PRINTER_U32,
  PESTLE_C_PRINTER_I64,
  PESTLE_C_PRINTER_U64,
  PESTLE_C_PRINTER_F32,
  PESTLE_C_PRINTER_F64,
  PESTLE_C_PRINTER_CLASSES,
} pestle_c_printer_class_t;

// Types of elements in memory.
typedef enum pestle_c_printer_memory_e {
  PESTLE_C_PRINTER_M_I8,
  PESTLE_C_PRINTER_M_U8,
  PESTLE_C_PRINTER_M_I16,
  PESTLE_C_PRINTER_M_U16,
  PESTLE_C_PRINTER_M_I32,
  PESTLE_C_PRINTER_M_U32,
  PESTLE_C_PRINTER_M_I64,
  PESTLE_C_PRINTER_M_U64,
  PESTLE_C_PRINTER_M_F32,
  PESTLE_C_PRINTER_M_F64,
  PESTLE_C_PRINTER_MEMORIES,
} pestle_c_printer_memory_t;

// What a language is like, and what a device adds to it.
typedef enum pestle_c_printer_feature_e {
  PESTLE_C_PRINTER_HAS_INT64 = 1,
  PESTLE_C_PRINTER_HAS_F64 = 2,
  PESTLE_C_PRINTER_HAS_STORAGE8 = 4,      // buffers of 8-bit elements
  PESTLE_C_PRINTER_HAS_STORAGE16 = 8,     // of 16-bit elements
  PESTLE_C_PRINTER_HAS_FMA = 16,          // fma() of f32 is fused, and fast
  PESTLE_C_PRINTER_HAS_FMA64 = 32,        // that of f64
  PESTLE_C_PRINTER_HAS_SUBGROUP = 64,     // shuffle_xor within a subgroup
  PESTLE_C_PRINTER_HAS_SUBGROUP64 = 256,  // of 64-bit integers too
  PESTLE_C_PRINTER_HAS_TILES = 512,       // tile copies and wgmma, as PTX
  PESTLE_C_PRINTER_HAS_HALVES = 1024,     // sums of f16 and bf16, two in a word
  PESTLE_C_PRINTER_HAS_MMA = 2048,   // mma.sync, ldmatrix, cp.async, as PTX
  PESTLE_C_PRINTER_HAS_MMA8 = 4096,  // the dialect's |mma8|
  // Its compiler takes x + 0 for x, x * 0 and 0 / x for 0 and x / 0 for
  // anything, exact or not: zeros are hidden from it (c_printer_zero.c).
  PESTLE_C_PRINTER_FOLDS_ZEROS = 8192,
  // It rounds f64 to whole numbers wrongly, to even and to zero: helpers do it.
  PESTLE_C_PRINTER_ROUNDS_F64_WRONG = 16384,
  PESTLE_C_PRINTER_HAS_EXACT_DIV = 128  // / and sqrt() are correctly rounded
} pestle_c_printer_feature_t;

// In the strings $name stands for what is named beside each of them.
typedef struct pestle_c_printer_dialect_t {
  const char* name;  // "OpenCL C"
  // What stands at the top; |extensions| follow where the feature is used.
  const char* prelude;
  const char* value[PESTLE_C_PRINTER_CLASSES];
  const char* memory[PESTLE_C_PRINTER_MEMORIES];
  const char* vector2[PESTLE_C_PRINTER_MEMORIES];  // NULL: no such vectors
  const char* vector4[PESTLE_C_PRINTER_MEMORIES];
  const char* suffix[PESTLE_C_PRINTER_CLASSES];  // of literals
  bool wide_literals;  // the compiler takes those of f32 for f64 where it folds
  bool constructors;   // a cast is type(x), else (type)(x)
  bool wraps;          // signed integers wrap by the language's definition
  bool blocks;         // arguments are members of blocks, elements x.v[i]: GLSL
  const char* function;  // what stands before a helper's result type
  const char* exact;     // before a float that must not be contracted; ""
  const char* inner;     // after the kernel's {: a pragma; ""
  // $name, $x $y $z: lanes, $lanes: their product
  const char* kernel;
  const char* kernel_end;  // after the arguments; $n: how many there were
  const char* argument;    // $type, $name, $n, $restrict
  const char* argument_in;
  // Of each in the kernel: $type, $name, $const, $restrict; NULL: none.
  const char* opening;
  const char* restricted;  // what $restrict is where no other buffer overlaps
  const char* parameter;   // $type, $name, $n
  const char* parameter_use;  // $name
  const char* shared;         // $type, $name, $count, $at: bytes before it
  bool shared_outside;        // declared before the kernel
  const char* group[3];       // ids, as the cast to int takes them
  const char* lane[3];
  const char* group_count[3];
  const char* barrier;
  const char* shuffle_xor;  // $v, $m; NULL: through shared memory
  // A word with a bit for each lane of a subgroup, of $v; the i32 at $name[$at],
  // to which $v is added. NULL: there is none.
  const char *ballot, *atomic_add;
  const char* unroll;       // a line of its own before the loop; ""
  const char* bits[2];      // f32 to u32, f64 to u64
  const char* real[2];      // and back
  bool shared_vectors;      // shared memory moves by them too
  const char* vector8;      // of four 32-bit words: eight of 16 bits move; NULL
  const char* vector_read;  // $type, $name, $at, $n: lanes
  const char* vector_write;  // and $v
  // The same in shared memory, where that is another address space.
  const char *shared_read, *shared_write;
  const char* vector_make;  // $type, $v: the lanes
  // How many bits of $a are set, 32 of them; NULL: not native.
  const char* popcount;
  // An expression over $a, $b for floats of both sizes; NULL: not native.
  const char* row[PESTLE_SCALAR_COUNT];
  // Two words of 32 bits with members .x and .y, where 64-bit integers may be
  // lacking; what makes one of (low, high); f64 to one and back. NULL: none.
  const char *pair, *pair_make, *pair_bits, *pair_real;
  // The low $n bits of the i32 $a as a signed number; NULL: by arithmetic, which
  // NVIDIA's compiler of SPIR-V makes a shift of 8 bits that leaves their rest.
  const char* sign_extend;
  const char* widen_i32;  // i32 $a to i64, where a cast cannot be trusted
  // f16 to f32 and back: bodies of helpers, NULL: by integer arithmetic.
  const char* decode_f16;  // of `uint a`
  const char* encode_f16;  // of `float a`, to nearest even
  const char* encode_bf16;
  // Functions of words of two floats of $type, f16 or bf16: add, sub, mul, max,
  // min, and one that packs two f32; $one and $minus are a word of 1 and of
  // -1. NULL: they are not computed with.
  const char* half[6];
  // A function pestle_mma8(a0, a1, b0, b1, c0, c1) of a subgroup's 32 lanes: what
  // MMA_F32_8X8 of kir.h says, a vector of two floats. NULL: none.
  const char* mma8;
  // Functions pestle_dot4_uu(a, b, c), _us, _su and _ss: what DOT4 of kir.h says, of words
  // whose bytes are unsigned or signed; words of bytes are loaded too. NULL: none.
  const char* dot4;
  // Of two floats: NaN if one is, -0 below 0.
  const char *max_f32, *min_f32;
  // What PESTLE_KIR_APPROX says of EXP2, TANH and DIVIDE: functions of floats.
  // NULL: the target has none of them.
  const char *approx_exp2, *approx_tanh, *approx_div;
  // EXP2 that says PESTLE_KIR_FLUSH too. NULL: as the first one.
  const char* flush_exp2;
  // Of a wide group: what stands before its (x, y, z), and its barrier.
  const char *wide_kernel, *wide_barrier;
  // Of one of more units than PESTLE_WIDE_GROUP, which is alone in its launch: the function
  // that its barrier calls. NULL: there are none.
  const char* launch_barrier;
  // A function pestle_grid_wait(bool): what earlier kernels wrote is seen from there on, and
  // later ones may begin, where it is told so. It gives a zero that |opening| adds to each address, since a
  // compiler may move reads of what it takes for constant past anything but what makes
  // their address. NULL: kernels follow each other whole.
  const char* wait;
  // Asks for $name[$at], before that or later.
  const char* prefetch;
} pestle_c_printer_dialect_t;

typedef struct pestle_c_printer_target_t {
  const pestle_c_printer_dialect_t* dialect;
  unsigned features;        // pestle_c_printer_feature_t
  uint32_t max_groups[3];   // beyond them a group loop is a loop
  uint32_t group_lanes;     // of an execution unit, where groups may be wide
  uint32_t units;           // execution units; 0: unknown
  uint32_t thread_lanes;    // lanes of a work-group of a kernel without lanes
  uint32_t argument_limit;  // |blocks|: more arguments come through a table
} pestle_c_printer_target_t;

// A printed kernel and how to launch it.
typedef struct pestle_c_printer_kernel_t {
  pestle_blob_t text;  // of host->alloc()
  uint32_t group[3];   // work-groups; one of them 0: nothing to launch
  uint32_t lane[3];    // lanes of each
  bool table;  // arguments are in a table in memory, whose address is passed
  uint32_t shared_bytes;  // of all shared arrays, each at a multiple of 64
  bool is_wide_launch;    // all of its work-groups must run at once
} pestle_c_printer_kernel_t;

// UNSUPPORTED names what |target| cannot express.
PESTLE_NODISCARD pestle_status_t pestle_c_printer_print(
    const pestle_host_t* host, const pestle_c_printer_target_t* target,
    const pestle_kir_t* kernel, pestle_c_printer_kernel_t* out_kernel);

// The same of a text that a person wrote, for the buffers, groups and lanes of
// |signature|.
PESTLE_NODISCARD pestle_status_t pestle_c_printer_print_source(
    const pestle_host_t* host, const pestle_c_printer_target_t* target,
    const pestle_kir_t* signature, const pestle_source_text_t* source,
    pestle_c_printer_kernel_t* out_kernel);

// Fills op_dtypes and storage_dtypes of |caps| with what the printer takes.
void pestle_c_printer_describe(const pestle_c_printer_target_t* target,
                               pestle_target_caps_t* caps);

// A kernel's name as the text has it: a C identifier that no language takes.
void pestle_c_printer_name(const pestle_kir_t* kernel, char* name,
                           size_t capacity);

#endif  // PESTLE_PLUGINS_COMMON_C_PRINTER_H_
