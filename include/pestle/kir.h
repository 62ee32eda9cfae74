// SPDX-License-Identifier: Apache-2.0
// The flat Kernel IR: what codegen emits, what plugins receive, what the cache
// hashes. An array of fixed-size instructions whose operands are indices of
// earlier ones; structured regions, no control-flow graph, no phi. Standalone
// and header-only: a plugin needs nothing else to read a kernel.
//
// Rules that every kernel keeps (the flat verifier checks them):
//  1. A value is the index of its instruction; operands are earlier and in a
//     region that is still open. FOR and IF are closed by END.
//  2. State that changes lives in buffers. A private buffer is a register tile:
//     its indices are constant once UNROLL loops are expanded.
//  3. Buffers of different alias sets are disjoint; accesses lie within.
//  4. GROUP loops are outermost, perfectly nested, lo 0, step 1, at most one a
//     kind; outside of them only pure instructions stand. Groups, but for
//     those of one cluster (5), are independent. On a CPU there is exactly one, group.x, and a launch runs
//     indices [begin, end) of it.
//  5. LANE loops stand directly under the group loops, perfectly nested, z before
//     y before x, lo 0, step 1, at most one a kind: all that is not pure stands in
//     them. Each lane of a group runs the body (single program, many lanes). A
//     private buffer is each lane's own; a shared one is the group's. BARRIER is
//     reached by all lanes of a group together: loops around it have bounds and
//     IFs conditions that are the same in every lane. SG_REDUCE, SG_BALLOT, MMA,
//     LDMATRIX and STMATRIX are reached by all lanes of a subgroup of 32 together:
//     there they are the same in each of them. What one lane writes to shared or
//     global memory, others see after a barrier. Groups of more lanes than one
//     execution unit has (PESTLE_TARGET_WIDE_GROUPS) have no shared buffer; all
//     lanes of one index along z are of one unit. A group of more
//     than PESTLE_WIDE_GROUP units is alone in its kernel, where the target has
//     PESTLE_TARGET_WIDE_LAUNCHES.
//     Between the group loops and those of lanes there may be one CLUSTER loop, lo 0,
//     step 1, of 1, 2, 4 or 8 groups: its index is the group's number in its cluster,
//     those of the group loops count clusters. Groups of one cluster run at the same
//     time. CLUSTER_SYNC is reached by all lanes of a cluster together, stands before
//     the first access to another group's memory and behind the last one: a group that
//     has ended has no memory. MBAR_WAIT waits at a barrier of its own group.
//  6. Extents, strides and offsets are constants; only what changes between
//     runs of one plan is a parameter.
//  7. All lanes of an operand group agree: an instruction of n lanes takes
//     operands of n lanes (splat is explicit), but for memory indices, masks of
//     the access's lanes, IF, FOR, MADI and MASK operands (one lane).
//
// Contents:
// - Ops
// - Axes, facts and flags
// - A kernel
// - Readers
#ifndef PESTLE_KIR_H_
#define PESTLE_KIR_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "pestle/export.h"
#include "pestle/op.h"
#include "pestle/types.h"

PESTLE_EXTERN_C_BEGIN

// --- Ops ---

#define PESTLE_KIR_ABI_MAJOR 1u
#define PESTLE_KIR_SCALAR_BASE 256u
#define PESTLE_KIR_OP_LIMIT 512u
#define PESTLE_KIR_NONE UINT32_MAX
#define PESTLE_KIR_MAX_LANES 128u

typedef enum pestle_kir_op_e {
#define PESTLE_KIR(NAME, code, ...) PESTLE_KIR_##NAME = code,
#include "pestle/kir.def"
#define PESTLE_SCALAR(NAME, ...) \
  PESTLE_KIR_##NAME = (int)PESTLE_KIR_SCALAR_BASE + (int)PESTLE_OP_##NAME,
#include "pestle/scalar.def"
} pestle_kir_op_t;

typedef enum pestle_kir_scope_e {
  PESTLE_KIR_GLOBAL = 0,   // an argument of the kernel
  PESTLE_KIR_SHARED = 1,   // of a group; on a CPU the thread's scratch
  PESTLE_KIR_PRIVATE = 2,  // registers
  // A view of a global buffer by boxes, for TILE_LOAD; |layout| - 1 is a table
  // of words: the buffer; rank; swizzle in bytes; element offset, low and high
  // word; then for each dim, fastest first: extent, box, stride in elements, low
  // and high word. A map of windows, for TILE_LOAD_WINDOW, is of rank 3 to 5:
  // channels, one to three spatial dims, images. Its boxes are channels, pixels,
  // and 1 for the others, and it has more words: PESTLE_KIR_MAP_WINDOWS, then for
  // each spatial dim low, high (signed) and step. Windows stand at low, low +
  // step, ... up to extent - 1 + high, along the fastest spatial dim first; pixels
  // are those of windows that follow each other, each at one offset within it.
  PESTLE_KIR_TENSOR_MAP = 3,
} pestle_kir_scope_t;

// What a tensor map's words behind its dims begin with. Low and high fit 16, 8 or
// 5 signed bits, offsets within a window as many unsigned ones, of 1, 2 or 3
// spatial dims; steps are at most 8.
enum { PESTLE_KIR_MAP_WINDOWS = 1 };

// Bits of WGMMA's immediate above n. Tiles are in shared memory as TILE_LOAD
// leaves them with a swizzle of 128 bytes: rows of 64 elements along k, or, of
// a transposed tile, along m or n; columns of more than 64 lie behind each
// other, 64 rows of k each.
enum {
  PESTLE_KIR_WGMMA_N = 0x1ff,
  PESTLE_KIR_WGMMA_A_TRANSPOSED = 0x10000,
  PESTLE_KIR_WGMMA_B_TRANSPOSED = 0x20000,
  PESTLE_KIR_WGMMA_F16 = 0x40000,   // operands are f16, else bf16
  PESTLE_KIR_WGMMA_ZERO = 0x80000,  // sums are the product, not added to it
  // Of operands: 0 is what _F16 says. Of bytes, two stand in the place of a float, so
  // that k is 32, and sums are i32 that wrap; neither tile is transposed or in
  // registers, and n above 32 is a multiple of 16.
  PESTLE_KIR_WGMMA_TYPE = 0xf00000,
  PESTLE_KIR_WGMMA_BYTES = 0x400000,
  PESTLE_KIR_WGMMA_A_SIGNED = 0x100000,  // of bytes
  PESTLE_KIR_WGMMA_B_SIGNED = 0x200000,
  // Of 8-bit floats, which lie as bytes do, f8E4M3FN or, as bits say, f8E5M2; sums are
  // f32 of which one instruction keeps some 14 bits.
  PESTLE_KIR_WGMMA_F8 = 0x800000,
  PESTLE_KIR_WGMMA_A_E5M2 = 0x100000,
  PESTLE_KIR_WGMMA_B_E5M2 = 0x200000,
  // Of f32 with the first 10 bits of their mantissas: one stands in the place of two
  // 16-bit floats, so that k is 8; neither tile is transposed or in registers.
  PESTLE_KIR_WGMMA_TF32 = 0x300000,
  // Of both tiles' rows, which are as long as their swizzle is wide: 128 bytes,
  // or 64 (1) or 32 (2) of tiles that are not transposed.
  PESTLE_KIR_WGMMA_SWIZZLE = 0x3000000,
  PESTLE_KIR_WGMMA_SWIZZLE_64 = 0x1000000,
  PESTLE_KIR_WGMMA_SWIZZLE_32 = 0x2000000,
};

// PREFETCH's immediate: where to. FAR leaves out the first cache, which has room for fewer lines
// that are on their way.
enum { PESTLE_KIR_PREFETCH_NEAR = 0, PESTLE_KIR_PREFETCH_FAR = 1 };

// MMA's immediate: which product. Of BF16 and F16, sums are m x n = 16 x 8 of
// f32, a is 16 x 16 and b 16 x 8 of 16-bit floats, two to a word, lower k in the
// lower half. With g = lane / 4 and t = lane % 4: word 0 of a is row g, k = 2 t
// and 2 t + 1; word 1 row g + 8; words 2 and 3 the same rows, k + 8. Word 0 of b
// is column g, k = 2 t and 2 t + 1; word 1 k + 8. Sums 0 and 1 are row g, columns
// 2 t and 2 t + 1; sums 2 and 3 row g + 8.
// Of F32_8X8 all three are 8 x 8 of f32, two elements a lane, side by side in
// row 4 (lane / 16) + lane / 2 % 4, from column 4 (lane / 8 % 2) + 2 (lane % 2)
// on; rows of b are k, and so are columns of a.
// Of BYTES, sums are 16 x 8 of i32 and wrap, a is 16 x 32 and b 32 x 8 of bytes, four
// to a word, lowest k in the lowest byte: as of 16-bit floats, with two bytes of k in
// the place of one float. The bits of DOT4 say whose bytes have a sign.
// Of F8, sums are f32, of which one instruction may keep some 14 bits, and the bytes of
// BYTES are f8E4M3FN or, as bits say, f8E5M2. Of TF32, k is 8, and a word is an f32 with
// the first 10 bits of its mantissa in the place of two 16-bit floats.
enum {
  PESTLE_KIR_MMA_BF16 = 0,
  PESTLE_KIR_MMA_F16 = 1,
  PESTLE_KIR_MMA_F32_8X8 = 2,
  PESTLE_KIR_MMA_TF32 = 3,
  PESTLE_KIR_MMA_BYTES = 4,  // + PESTLE_KIR_DOT4_A_SIGNED, _B_SIGNED
  PESTLE_KIR_MMA_F8 = 8,
  PESTLE_KIR_MMA_A_E5M2 = 1,  // of F8
  PESTLE_KIR_MMA_B_E5M2 = 2,
  PESTLE_KIR_MMA_KINDS = 12,
};

// DOT4's immediate: which operand's bytes are signed; the others are not.
enum {
  PESTLE_KIR_DOT4_A_SIGNED = 1,
  PESTLE_KIR_DOT4_B_SIGNED = 2,
};

// Matrix registers, and MREG_MMA's immediate: which product. Of bytes the bits of
// DOT4 say whose have a sign.
enum {
  PESTLE_KIR_MREGS = 8,
  PESTLE_KIR_MREG_ROWS = 16,
  PESTLE_KIR_MREG_ROW_BYTES = 64,
  PESTLE_KIR_MREG_BF16 = 0,
  PESTLE_KIR_MREG_BYTES = 4,  // + PESTLE_KIR_DOT4_A_SIGNED, _B_SIGNED
};

// --- Axes, facts and flags ---

typedef enum pestle_kir_axis_e {
  PESTLE_KIR_SERIAL = 0,
  PESTLE_KIR_UNROLL = 1,
  PESTLE_KIR_GROUP_X = 2,
  PESTLE_KIR_GROUP_Y = 3,
  PESTLE_KIR_GROUP_Z = 4,
  PESTLE_KIR_LANE_X = 5,
  PESTLE_KIR_LANE_Y = 6,
  PESTLE_KIR_LANE_Z = 7,
  PESTLE_KIR_CLUSTER = 8,
} pestle_kir_axis_t;

typedef enum pestle_kir_fact_e {
  PESTLE_KIR_CONTRACT = 1,  // mul + add may become fma; both must say so
  PESTLE_KIR_REASSOC = 2,
  PESTLE_KIR_NNAN = 4,  // no operand or result is NaN
  PESTLE_KIR_NINF = 8,
  PESTLE_KIR_NSZ = 16,  // the sign of zero does not matter
  PESTLE_KIR_ARCP = 32,
  // Of EXP2, TANH and DIVIDE on f32: may be as a target has it that says
  // PESTLE_TARGET_APPROX. EXP2 and DIVIDE, whose divisor is then within 2^-126 and
  // 2^126, are off by at most 2^-22 of the result, TANH by 2^-11. Infinities, NaN,
  // zeros and denormals are what they are without it.
  PESTLE_KIR_APPROX = 64,
  // Beside APPROX: denormal results may be zeros.
  PESTLE_KIR_FLUSH = 128,
} pestle_kir_fact_t;

typedef enum pestle_kir_buffer_flag_e {
  PESTLE_KIR_READONLY = 1,
  PESTLE_KIR_NONTEMPORAL = 2,
} pestle_kir_buffer_flag_t;

// --- A kernel ---

// Frozen; 24 bytes. A longer instruction of a later minor version is read
// through pestle_kir_t.inst_size.
typedef struct pestle_kir_inst_t {
  uint16_t op;         // pestle_kir_op_t
  uint8_t type;        // pestle_dtype_t of the value; NONE when it has none
  uint8_t lanes;       // 1..128
  uint32_t arg[4];     // by the row's operand letters
  uint8_t facts;       // pestle_kir_fact_t
  uint8_t align_log2;  // of a memory access, in bytes
  uint16_t name;       // offset into strings, 0 none; for people only
} pestle_kir_inst_t;

// Frozen; 40 bytes; see buffer_size.
typedef struct pestle_kir_buffer_t {
  uint32_t name;       // offset into strings
  uint8_t dtype;       // of one lane
  uint8_t lanes;       // of a private element; 1 for others
  uint8_t scope;       // pestle_kir_scope_t
  uint8_t flags;       // pestle_kir_buffer_flag_t
  uint64_t count;      // elements
  uint32_t align;      // of the base address, bytes
  uint32_t arg_slot;   // of a global: its place in the launch's pointer array
  uint16_t alias_set;  // equal sets may overlap
  uint16_t layout;     // 0: plain; of a tensor map: its table + 1
  uint32_t reserved;
  uint64_t reserved2;
} pestle_kir_buffer_t;

// A shuffle's lanes, a fragment's layout: |count| words at tables[first].
// Frozen.
typedef struct pestle_kir_table_t {
  uint32_t first, count;
} pestle_kir_table_t;

// One kernel. Borrowed for the call; no pointer inside an element.
typedef struct pestle_kir_t {
  size_t struct_size;
  uint32_t abi_major;
  uint32_t inst_size, buffer_size;  // strides of the arrays
  uint32_t inst_count, buffer_count, table_count, table_word_count;
  uint32_t strings_size;
  const void* inst;    // pestle_kir_inst_t
  const void* buffer;  // pestle_kir_buffer_t
  const pestle_kir_table_t* table;
  const uint32_t* table_word;
  const char* strings;  // offset 0 is ""
  uint32_t name;        // of the kernel: a C identifier
  uint32_t note;        // graph ops and schedule that it came from
  int64_t group[3];     // extents of the group loops; 1 where there is none
  uint32_t lane[3];     // extents of the lane loops
  uint32_t
      shared_bytes;    // of all shared buffers, laid out in order, 64-aligned
  uint32_t arg_count;  // global buffers: slots 0 .. arg_count - 1
  uint32_t param_count;
  uint64_t hash[2];  // of all but names and notes
  // Extent of the cluster loop; the others are 1. 0, or behind struct_size: no cluster.
  uint32_t cluster[3];
} pestle_kir_t;

// --- Readers ---

// A row of kir.def or scalar.def. Frozen: it never crosses the boundary.
typedef struct pestle_kir_op_info_t {
  const char* mnemonic;
  const char* operands;
  char klass;  // P M S B L E
} pestle_kir_op_info_t;

// The row of |op|, or one with a NULL mnemonic.
static inline pestle_kir_op_info_t pestle_kir_op_info(unsigned op) {
  pestle_kir_op_info_t row = {NULL, "", 'S'};
  switch (op) {
#define PESTLE_KIR(NAME, code, name, letters, letter) \
  case code:                                          \
    row.mnemonic = name;                              \
    row.operands = letters;                           \
    row.klass = #letter[0];                           \
    break;
#include "pestle/kir.def"
#define PESTLE_SCALAR(NAME, op_, mlir, n, ...)    \
  case PESTLE_KIR_SCALAR_BASE + PESTLE_OP_##NAME: \
    row.mnemonic = #op_;                          \
    row.operands = &"vvv"[3 - n];                 \
    row.klass = 'P';                              \
    break;
#include "pestle/scalar.def"
    default:
      break;
  }
  return row;
}

// The readers check nothing: a kernel that arrives in a plugin was verified.
// Instruction |index| < inst_count. Borrowed from the kernel.
static inline const pestle_kir_inst_t* pestle_kir_inst(const pestle_kir_t* k,
                                                       uint32_t index) {
  return (const pestle_kir_inst_t*)(const void*)((const char*)k->inst +
                                                 (size_t)index * k->inst_size);
}
// Buffer |index| < buffer_count. Borrowed from the kernel.
static inline const pestle_kir_buffer_t* pestle_kir_buffer(
    const pestle_kir_t* k, uint32_t index) {
  return (const pestle_kir_buffer_t*)(const void*)((const char*)k->buffer +
                                                   (size_t)index *
                                                       k->buffer_size);
}
// The string at |offset|, "" for one that is out of range. Borrowed.
static inline const char* pestle_kir_string(const pestle_kir_t* k,
                                            uint32_t offset) {
  return offset < k->strings_size ? k->strings + offset : "";
}

// Groups of a cluster, 1 where there are none.
static inline uint32_t pestle_kir_cluster(const pestle_kir_t* k) {
  bool has =
      k->struct_size >= offsetof(pestle_kir_t, cluster) + sizeof(k->cluster);
  return has && k->cluster[0] ? k->cluster[0] : 1;
}

// The value of a CONST of an integer or bool type.
static inline int64_t pestle_kir_const_int(const pestle_kir_inst_t* inst) {
  return (int64_t)((uint64_t)inst->arg[1] << 32 | inst->arg[0]);
}
// The value of a CONST of a float type, which is stored as a double.
static inline double pestle_kir_const_float(const pestle_kir_inst_t* inst) {
  int64_t bits = pestle_kir_const_int(inst);
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// The END of the region that FOR or IF at |begin| opens, or inst_count.
static inline uint32_t pestle_kir_region_end(const pestle_kir_t* k,
                                             uint32_t begin) {
  uint32_t depth = 0;
  for (uint32_t i = begin; i < k->inst_count; ++i) {
    unsigned op = pestle_kir_inst(k, i)->op;
    if (op == PESTLE_KIR_FOR || op == PESTLE_KIR_IF) ++depth;
    if (op == PESTLE_KIR_END && --depth == 0) return i;
  }
  return k->inst_count;
}
// The ELSE of the IF at |begin| whose END is at |end|, or |end|.
static inline uint32_t pestle_kir_region_else(const pestle_kir_t* k,
                                              uint32_t begin, uint32_t end) {
  uint32_t depth = 0;
  for (uint32_t i = begin; i < end; ++i) {
    unsigned op = pestle_kir_inst(k, i)->op;
    if (op == PESTLE_KIR_FOR || op == PESTLE_KIR_IF) ++depth;
    if (op == PESTLE_KIR_END) --depth;
    if (op == PESTLE_KIR_ELSE && depth == 1) return i;
  }
  return end;
}

PESTLE_EXTERN_C_END

#endif  // PESTLE_KIR_H_
