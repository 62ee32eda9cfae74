// SPDX-License-Identifier: Apache-2.0
// Internals of the C-family printer, which prints CUDA C, GLSL, MSL and OpenCL
// C.
//
//   c_printer.c         the walk: regions, loops, the kernel's frame
//   c_printer_value.c   values: constants, lanes, names, what is printed in place
//   c_printer_pair.c    64-bit integers as pairs of 32-bit words
//   c_printer_row.c     scalar rows and casts as expressions
//   c_printer_half.c    floats of 16 bits, two in a word
//   c_printer_tile.c    tiles in shared memory, and matrix units
//   c_printer_wgmma.c   products of warpgroups
//   c_printer_unit.c    matrix units of a subgroup, copies past the registers
//   c_printer_memory.c  loads, stores, gathers, scatters, private elements
//   c_printer_helper.c  functions that the text may call, printed when it does
//   c_printer_range.c   whether indices fit 32 bits
//   c_printer_caps.c    what the printer takes, as data
#ifndef PESTLE_PLUGINS_COMMON_C_PRINTER_INTERNAL_H_
#define PESTLE_PLUGINS_COMMON_C_PRINTER_INTERNAL_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/common/c_printer.h"
#include "plugins/common/float_bits.h"
#include "plugins/common/memory.h"

// What is done with two floats of 16 bits in a word.
typedef enum c_printer_half_e {
  CTEXT_HALF_ADD,
  CTEXT_HALF_SUB,
  CTEXT_HALF_MUL,
  CTEXT_HALF_MAX,
  CTEXT_HALF_MIN,
  CTEXT_HALF_PACK,  // of two f32, the first one low
} c_printer_half_t;

// Functions that the text may call. A later one may call earlier ones.
typedef enum c_printer_helper_e {
  HELPER_PAIR_ADD,
  HELPER_PAIR_SUB,
  HELPER_PAIR_MUL,
  HELPER_PAIR_EQ,
  HELPER_PAIR_LT_U,
  HELPER_PAIR_LT_S,
  HELPER_PAIR_FROM_I32,
  HELPER_PAIR_U_TO_F32,
  HELPER_PAIR_S_TO_F32,
  HELPER_PAIR_U_TO_F64,
  HELPER_PAIR_S_TO_F64,
  HELPER_DIV_I32,
  HELPER_DIV_U32,
  HELPER_DIV_U64,
  HELPER_DIV_I64,
  HELPER_REM_I32,
  HELPER_REM_U32,
  HELPER_REM_I64,
  HELPER_REM_U64,
  HELPER_SHL_U32,
  HELPER_SHL_U64,
  HELPER_SHR_U32,
  HELPER_SHR_U64,
  HELPER_SAR_I32,
  HELPER_SAR_I64,
  HELPER_MAX_F32,
  HELPER_MAX_F64,
  HELPER_MIN_F32,
  HELPER_MIN_F64,
  HELPER_APPROX_EXP2,
  HELPER_APPROX_TANH,
  HELPER_APPROX_DIV,
  HELPER_FLUSH_EXP2,
  HELPER_REM_F32,
  HELPER_DIV_F32,
  HELPER_DIV_F64,
  HELPER_SQRT_F32,
  HELPER_SQRT_F64,
  HELPER_ROUND_F64,
  HELPER_TRUNC_F64,
  HELPER_ODD_SUM,
  HELPER_FMA_F32,
  HELPER_FMA_F64,
  HELPER_F32_TO_I32,
  HELPER_F32_TO_U32,
  HELPER_F32_TO_I64,
  HELPER_F32_TO_U64,
  HELPER_F64_TO_I32,
  HELPER_F64_TO_U32,
  HELPER_F64_TO_I64,
  HELPER_F64_TO_U64,
  HELPER_ODD_F64,
  HELPER_ODD_U32,
  HELPER_ODD_U64,
  HELPER_ODD_I32,
  HELPER_ODD_I64,
  HELPER_NARROW,
  HELPER_WIDEN,
  HELPER_BF16_FROM,
  HELPER_BF16_TO,
  HELPER_F16_FROM,
  HELPER_F16_TO,
  HELPER_E4M3FN_FROM,
  HELPER_E4M3FN_TO,
  HELPER_E5M2_FROM,
  HELPER_E5M2_TO,
  HELPER_E4M3FNUZ_FROM,
  HELPER_E4M3FNUZ_TO,
  HELPER_E5M2FNUZ_FROM,
  HELPER_E5M2FNUZ_TO,
  HELPER_BF16X2_ADD,  // in the order of c_printer_half_t
  HELPER_BF16X2_PACK = HELPER_BF16X2_ADD + CTEXT_HALF_PACK,
  HELPER_F16X2_ADD,
  HELPER_F16X2_PACK = HELPER_F16X2_ADD + CTEXT_HALF_PACK,
  HELPER_COUNT,
} c_printer_helper_t;

typedef struct c_printer_helper_text_t {
  const char* name;
  const char* text;
  c_printer_helper_t needs[3];  // further ones, until HELPER_COUNT
} c_printer_helper_text_t;

typedef struct c_printer_value_t {
  const char** lane;  // texts: one, or one a lane
  const char** word;  // of words of two lanes each, where it is made of them
  bool uniform;       // one for all lanes
} c_printer_value_t;

enum { CTEXT_MAX_DEPTH = 64, CTEXT_INLINE = 64 };

typedef struct c_printer_region_t {
  uint32_t id;      // of the opener
  const char* end;  // what closes it: a barrier of a loop over groups, or ""
} c_printer_region_t;

typedef struct c_printer_t {
  const pestle_host_t* host;
  const pestle_c_printer_target_t* target;
  const pestle_source_text_t* source;  // NULL: the kernel's instructions
  const pestle_c_printer_dialect_t* d;
  const pestle_kir_t* k;
  pestle_plugin_arena_t arena;
  pestle_plugin_text_t out;  // of the statements
  pestle_status_t status;    // the first failure
  c_printer_value_t* value;  // by instruction
  uint32_t* uses;            // what asks for a name counts as many
  uint32_t* scope;           // the region that an instruction stands in
  uint32_t* fused;           // of an add: the multiply that it swallows
  bool* swallowed;           // of a multiply
  const char** base;         // by buffer: what its elements are taken from
  const char** name;
  uint8_t* runs;       // by buffer: lengths of the vectors that it moves as
  unsigned exchanges;  // bits of classes that lanes pass through shared memory
  bool helper[HELPER_COUNT];
  bool uses_i64, uses_f64, uses_shuffle;
  unsigned zeros;   // bits of classes of which a hidden zero is named
  bool wide_index;  // INDEX has 64 bits
  bool pairs;       // 64-bit integers are two words
  bool has_lanes;
  bool waits;  // it has a GRID_WAIT
  bool wide;   // the group is spread over execution units by its index along z
  bool launch_wide;  // and is alone in its launch
  bool table;
  uint64_t shared_bytes;  // of the shared arrays that are printed
  uint32_t lane[3], groups[3];
  int depth;
  c_printer_region_t region[CTEXT_MAX_DEPTH];
  uint32_t region_count;
  uint32_t id;           // the instruction at hand
  uint32_t temporaries;  // names given to parts of expressions
} c_printer_t;

// --- c_printer.c ---

// Remembers the first failure; returns "0", so that printing may go on.
PESTLE_PRINTF(3, 4)
const char* pestle_c_printer_fail(c_printer_t* p, pestle_status_code_t code,
                                  const char* format, ...);
// One statement, indented.
PESTLE_PRINTF(2, 3)
void pestle_c_printer_line(c_printer_t* p, const char* format, ...);
// A text of the arena.
PESTLE_PRINTF(2, 3)
const char* pestle_c_printer_format(c_printer_t* p, const char* format, ...);
// |pattern| with each $key replaced; |pairs|: key, text, ..., NULL.
const char* pestle_c_printer_expand(c_printer_t* p, const char* pattern,
                                    const char* const* pairs);

// --- c_printer_tile.c ---

// Prints instruction |id| if it is of tiles in shared memory.
bool pestle_c_printer_tile(c_printer_t* p, uint32_t id);
// Functions that these call, where there are any.
void pestle_c_printer_tile_functions(c_printer_t* p, pestle_plugin_text_t* out);

// --- c_printer_wgmma.c ---

// WGMMA, and what goes with it.
void pestle_c_printer_wgmma(c_printer_t* p, uint32_t id);
// Prints |id| if it is the number of a lane's warpgroup.
bool pestle_c_printer_warpgroup(c_printer_t* p, uint32_t id);
void pestle_c_printer_wgmma_functions(c_printer_t* p,
                                      pestle_plugin_text_t* out);
bool pestle_c_printer_has_tiles(const c_printer_t* p);

// --- c_printer_unit.c ---

// The same of the matrix units of a subgroup and what feeds them.
bool pestle_c_printer_unit(c_printer_t* p, uint32_t id);
void pestle_c_printer_unit_functions(c_printer_t* p, pestle_plugin_text_t* out);

// --- c_printer_value.c ---

pestle_c_printer_class_t pestle_c_printer_class(const c_printer_t* p,
                                                unsigned dtype);
pestle_c_printer_memory_t pestle_c_printer_memory(const c_printer_t* p,
                                                  unsigned dtype);
const char* pestle_c_printer_type(c_printer_t* p, pestle_c_printer_class_t c);
const char* pestle_c_printer_memory_type(const c_printer_t* p,
                                         pestle_c_printer_memory_t memory);
// |text| of any class as one of |c|.
const char* pestle_c_printer_cast(c_printer_t* p, pestle_c_printer_class_t c,
                                  const char* text);
// Lane |lane| of value |id|.
const char* pestle_c_printer_get(c_printer_t* p, uint32_t id, unsigned lane);
// Gives value |id| its texts: in place where it is used once, else by name.
void pestle_c_printer_define(c_printer_t* p, uint32_t id, const char** lanes,
                             unsigned count);
// The same, always by name: what reads memory.
void pestle_c_printer_define_named(c_printer_t* p, uint32_t id,
                                   const char** lanes, unsigned count);
// Texts that stand for themselves wherever they are used.
void pestle_c_printer_alias(c_printer_t* p, uint32_t id, const char** lanes,
                            unsigned count);
const char** pestle_c_printer_lanes(c_printer_t* p, unsigned count);
// A text that may be repeated: |text| itself or a new name for it.
const char* pestle_c_printer_atom(c_printer_t* p, pestle_c_printer_class_t c,
                                  const char* text);
const char* pestle_c_printer_int(c_printer_t* p, pestle_c_printer_class_t c,
                                 int64_t value);
const char* pestle_c_printer_const(c_printer_t* p,
                                   const pestle_kir_inst_t* inst);
bool pestle_c_printer_known(const c_printer_t* p, uint32_t id,
                            int64_t* out_value);
// Without parentheses around the whole.
const char* pestle_c_printer_bare(c_printer_t* p, const char* text);
void pestle_c_printer_value(c_printer_t* p, uint32_t id);
const char* pestle_c_printer_bits(c_printer_t* p, pestle_c_printer_class_t c,
                                  const char* text);
const char* pestle_c_printer_real(c_printer_t* p, pestle_c_printer_class_t c,
                                  const char* text);

// --- c_printer_zero.c ---

// 0 of class |c|, U32, F32 or F64, as an operand.
const char* pestle_c_printer_zero(c_printer_t* p, pestle_c_printer_class_t c);
// Whether zeros must be hidden from the target's compiler.
bool pestle_c_printer_hides_zeros(const c_printer_t* p);
// The names of those that were asked for.
void pestle_c_printer_put_zeros(c_printer_t* p, pestle_plugin_text_t* out);

// --- c_printer_row.c ---

// Scalar row |op| on operands of |dtype|; |known|: the second one's value where
// it is a constant.
// Whether |n| is a row that says PESTLE_KIR_APPROX and the dialect has it; its text.
bool pestle_c_printer_is_approx(const c_printer_t* p,
                                const pestle_kir_inst_t* n);
const char* pestle_c_printer_approx(c_printer_t* p, const pestle_kir_inst_t* n,
                                    const char* const* x);
const char* pestle_c_printer_row(c_printer_t* p, unsigned op, unsigned dtype,
                                 const char* const* x, const int64_t* known);
const char* pestle_c_printer_convert(c_printer_t* p, unsigned from, unsigned to,
                                     const char* x);
const char* pestle_c_printer_bitcast(c_printer_t* p, unsigned from, unsigned to,
                                     const char* x);
const char* pestle_c_printer_fma(c_printer_t* p, pestle_c_printer_class_t c,
                                 const char* a, const char* b, const char* x);

// --- c_printer_half.c ---

// Whether values of |dtype| are words of two lanes.
bool pestle_c_printer_has_halves(const c_printer_t* p, unsigned dtype);
bool pestle_c_printer_half_op(unsigned op);
// Prints the row or cast |id| by words, where that can be.
bool pestle_c_printer_by_halves(c_printer_t* p, uint32_t id, bool uniform);
// Lanes 2 |word| and the next of value |id|.
const char* pestle_c_printer_word(c_printer_t* p, uint32_t id, unsigned word);
// Words that stand for themselves wherever they are used.
void pestle_c_printer_alias_words(c_printer_t* p, uint32_t id,
                                  const char** words, unsigned lanes);
const char* pestle_c_printer_half_row(c_printer_t* p, unsigned op,
                                      unsigned dtype, const char* const* x);

// --- c_printer_pair.c; where p->pairs ---

// The text of |helper| where it is of pairs, or NULL.
const c_printer_helper_text_t* pestle_c_printer_pair_helper(
    c_printer_helper_t helper);
const char* pestle_c_printer_pair(c_printer_t* p, uint64_t value);
// Between classes one of which has 64 bits; none is a bool, floats are only
// cast to.
const char* pestle_c_printer_pair_cast(c_printer_t* p,
                                       pestle_c_printer_class_t from,
                                       pestle_c_printer_class_t to,
                                       const char* x);
const char* pestle_c_printer_pair_row(c_printer_t* p, unsigned op,
                                      pestle_c_printer_class_t c,
                                      const char* const* x);

// Of indices, pairs or not. A product and a comparison stand without
// parentheses.
const char* pestle_c_printer_sum(c_printer_t* p, pestle_c_printer_class_t c,
                                 const char* a, const char* b);
const char* pestle_c_printer_product(c_printer_t* p, pestle_c_printer_class_t c,
                                     const char* a, const char* b);
const char* pestle_c_printer_less(c_printer_t* p, pestle_c_printer_class_t c,
                                  const char* a, const char* b);
// The number of a group or lane as one of class |c|.
const char* pestle_c_printer_id(c_printer_t* p, pestle_c_printer_class_t c,
                                const char* id);
// The low word of a pair; what is none as it is.
const char* pestle_c_printer_narrow(c_printer_t* p, unsigned dtype,
                                    const char* at);

// --- c_printer_memory.c ---

void pestle_c_printer_load_words(c_printer_t* p, uint32_t id);
void pestle_c_printer_access(c_printer_t* p, uint32_t id);
// Element |at|, lane |lane| of private buffer |buffer|.
const char* pestle_c_printer_element(c_printer_t* p, uint32_t buffer,
                                     uint32_t index, unsigned lane);

// --- c_printer_helper.c ---

// The name of |helper|, which will be printed.
const char* pestle_c_printer_call(c_printer_t* p, c_printer_helper_t helper);
void pestle_c_printer_helpers(c_printer_t* p, pestle_plugin_text_t* out);

// --- c_printer_range.c ---

// Whether all indices of the kernel fit 32 bits.
bool pestle_c_printer_indices_fit(const pestle_host_t* host,
                                  const pestle_kir_t* k, bool* out_fit);

static inline const pestle_kir_inst_t* c_printer_inst(const c_printer_t* p,
                                                      uint32_t id) {
  return pestle_kir_inst(p->k, id);
}
static inline bool c_printer_is_narrow_float(unsigned dtype) {
  return pestle_dtype_is((pestle_dtype_t)dtype, PESTLE_KIND_FLOAT) &&
         dtype != PESTLE_F32 && dtype != PESTLE_F64;
}
// Whether the printer casts the narrow float |dtype|.
bool pestle_c_printer_casts(unsigned dtype);
static inline bool c_printer_is_float(unsigned dtype) {
  return dtype == PESTLE_F32 || dtype == PESTLE_F64;
}

#endif  // PESTLE_PLUGINS_COMMON_C_PRINTER_INTERNAL_H_
