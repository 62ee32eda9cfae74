// SPDX-License-Identifier: Apache-2.0
// What the files of the C-family printer share.
//
//   ctext.c         the walk: regions, loops, the kernel's frame
//   ctext_value.c   values: constants, lanes, names, what is printed in place
//   ctext_pair.c    64-bit integers as pairs of 32-bit words
//   ctext_row.c     scalar rows and casts as expressions
//   ctext_half.c    floats of 16 bits, two in a word
//   ctext_tile.c    tiles in shared memory, and matrix units
//   ctext_unit.c    matrix units of a subgroup, copies past the registers
//   ctext_memory.c  loads, stores, gathers, scatters, private elements
//   ctext_helper.c  functions that the text may call, printed when it does
//   ctext_range.c   whether indices fit 32 bits
//   ctext_caps.c    what the printer takes, as data
#ifndef PESTLE_PLUGINS_COMMON_CTEXT_INTERNAL_H_
#define PESTLE_PLUGINS_COMMON_CTEXT_INTERNAL_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/common/ctext.h"
#include "plugins/common/float_bits.h"
#include "plugins/common/memory.h"

// What is done with two floats of 16 bits in a word.
typedef enum ctext_half_e {
  CTEXT_HALF_ADD,
  CTEXT_HALF_SUB,
  CTEXT_HALF_MUL,
  CTEXT_HALF_MAX,
  CTEXT_HALF_MIN,
  CTEXT_HALF_PACK,  // of two f32, the first one low
} ctext_half_t;

// Functions that the text may call. A later one may call earlier ones.
typedef enum ctext_helper_e {
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
  HELPER_REM_F32,
  HELPER_DIV_F32,
  HELPER_DIV_F64,
  HELPER_SQRT_F32,
  HELPER_SQRT_F64,
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
  HELPER_BF16X2_ADD,  // in the order of ctext_half_t
  HELPER_BF16X2_PACK = HELPER_BF16X2_ADD + CTEXT_HALF_PACK,
  HELPER_F16X2_ADD,
  HELPER_F16X2_PACK = HELPER_F16X2_ADD + CTEXT_HALF_PACK,
  HELPER_COUNT,
} ctext_helper_t;

typedef struct ctext_helper_text_t {
  const char* name;
  const char* text;
  ctext_helper_t needs[3];  // further ones, until HELPER_COUNT
} ctext_helper_text_t;

typedef struct ctext_value_t {
  const char** lane;  // texts: one, or one a lane
  const char** word;  // of words of two lanes each, where it is made of them
  bool uniform;       // one for all lanes
} ctext_value_t;

enum { CTEXT_MAX_DEPTH = 64, CTEXT_INLINE = 64 };

typedef struct ctext_region_t {
  uint32_t id;      // of the opener
  const char* end;  // what closes it: a barrier of a loop over groups, or ""
} ctext_region_t;

typedef struct ctext_t {
  const pestle_host_t* host;
  const pestle_ctext_target_t* target;
  const pestle_ctext_dialect_t* d;
  const pestle_kir_t* k;
  pestle_plugin_arena_t arena;
  pestle_plugin_text_t out;  // of the statements
  pestle_status_t status;    // the first failure
  ctext_value_t* value;      // by instruction
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
  bool table;
  uint64_t shared_bytes;  // of the shared arrays that are printed
  uint32_t lane[3], groups[3];
  int depth;
  ctext_region_t region[CTEXT_MAX_DEPTH];
  uint32_t region_count;
  uint32_t id;           // the instruction at hand
  uint32_t temporaries;  // names given to parts of expressions
} ctext_t;

// --- ctext.c ---

// Remembers the first failure; returns "0", so that printing may go on.
PESTLE_PRINTF(3, 4)
const char* pestle_ctext_fail(ctext_t* p, pestle_status_code_t code,
                              const char* format, ...);
// One statement, indented.
PESTLE_PRINTF(2, 3) void pestle_ctext_line(ctext_t* p, const char* format, ...);
// A text of the arena.
PESTLE_PRINTF(2, 3)
const char* pestle_ctext_format(ctext_t* p, const char* format, ...);
// |pattern| with each $key replaced; |pairs|: key, text, ..., NULL.
const char* pestle_ctext_expand(ctext_t* p, const char* pattern,
                                const char* const* pairs);

// --- ctext_tile.c ---

// Prints instruction |id| if it is of tiles in shared memory.
bool pestle_ctext_tile(ctext_t* p, uint32_t id);
// Functions that these call, where there are any.
void pestle_ctext_tile_functions(ctext_t* p, pestle_plugin_text_t* out);
bool pestle_ctext_has_tiles(const ctext_t* p);

// --- ctext_unit.c ---

// The same of the matrix units of a subgroup and what feeds them.
bool pestle_ctext_unit(ctext_t* p, uint32_t id);
void pestle_ctext_unit_functions(ctext_t* p, pestle_plugin_text_t* out);

// --- ctext_value.c ---

pestle_ctext_class_t pestle_ctext_class(const ctext_t* p, unsigned dtype);
pestle_ctext_memory_t pestle_ctext_memory(const ctext_t* p, unsigned dtype);
const char* pestle_ctext_type(ctext_t* p, pestle_ctext_class_t c);
const char* pestle_ctext_memory_type(const ctext_t* p,
                                     pestle_ctext_memory_t memory);
// |text| of any class as one of |c|.
const char* pestle_ctext_cast(ctext_t* p, pestle_ctext_class_t c,
                              const char* text);
// Lane |lane| of value |id|.
const char* pestle_ctext_get(ctext_t* p, uint32_t id, unsigned lane);
// Gives value |id| its texts: in place where it is used once, else by name.
void pestle_ctext_define(ctext_t* p, uint32_t id, const char** lanes,
                         unsigned count);
// The same, always by name: what reads memory.
void pestle_ctext_define_named(ctext_t* p, uint32_t id, const char** lanes,
                               unsigned count);
// Texts that stand for themselves wherever they are used.
void pestle_ctext_alias(ctext_t* p, uint32_t id, const char** lanes,
                        unsigned count);
const char** pestle_ctext_lanes(ctext_t* p, unsigned count);
// A text that may be repeated: |text| itself or a new name for it.
const char* pestle_ctext_atom(ctext_t* p, pestle_ctext_class_t c,
                              const char* text);
const char* pestle_ctext_int(ctext_t* p, pestle_ctext_class_t c, int64_t value);
const char* pestle_ctext_const(ctext_t* p, const pestle_kir_inst_t* inst);
bool pestle_ctext_known(const ctext_t* p, uint32_t id, int64_t* out_value);
// Without parentheses around the whole.
const char* pestle_ctext_bare(ctext_t* p, const char* text);
void pestle_ctext_value(ctext_t* p, uint32_t id);
const char* pestle_ctext_bits(ctext_t* p, pestle_ctext_class_t c,
                              const char* text);
const char* pestle_ctext_real(ctext_t* p, pestle_ctext_class_t c,
                              const char* text);

// --- ctext_zero.c ---

// 0 of class |c|, U32, F32 or F64, as an operand.
const char* pestle_ctext_zero(ctext_t* p, pestle_ctext_class_t c);
// Whether zeros must be hidden from the target's compiler.
bool pestle_ctext_hides_zeros(const ctext_t* p);
// The names of those that were asked for.
void pestle_ctext_put_zeros(ctext_t* p, pestle_plugin_text_t* out);

// --- ctext_row.c ---

// Scalar row |op| on operands of |dtype|; |known|: the second one's value where
// it is a constant.
const char* pestle_ctext_row(ctext_t* p, unsigned op, unsigned dtype,
                             const char* const* x, const int64_t* known);
const char* pestle_ctext_convert(ctext_t* p, unsigned from, unsigned to,
                                 const char* x);
const char* pestle_ctext_bitcast(ctext_t* p, unsigned from, unsigned to,
                                 const char* x);
const char* pestle_ctext_fma(ctext_t* p, pestle_ctext_class_t c, const char* a,
                             const char* b, const char* x);

// --- ctext_half.c ---

// Whether values of |dtype| are words of two lanes.
bool pestle_ctext_has_halves(const ctext_t* p, unsigned dtype);
bool pestle_ctext_half_op(unsigned op);
// Prints the row or cast |id| by words, where that can be.
bool pestle_ctext_by_halves(ctext_t* p, uint32_t id, bool uniform);
// Lanes 2 |word| and the next of value |id|.
const char* pestle_ctext_word(ctext_t* p, uint32_t id, unsigned word);
// Words that stand for themselves wherever they are used.
void pestle_ctext_alias_words(ctext_t* p, uint32_t id, const char** words,
                              unsigned lanes);
const char* pestle_ctext_half_row(ctext_t* p, unsigned op, unsigned dtype,
                                  const char* const* x);

// --- ctext_pair.c; where p->pairs ---

// The text of |helper| where it is of pairs, or NULL.
const ctext_helper_text_t* pestle_ctext_pair_helper(ctext_helper_t helper);
const char* pestle_ctext_pair(ctext_t* p, uint64_t value);
// Between classes one of which has 64 bits; none is a bool, floats are only
// cast to.
const char* pestle_ctext_pair_cast(ctext_t* p, pestle_ctext_class_t from,
                                   pestle_ctext_class_t to, const char* x);
const char* pestle_ctext_pair_row(ctext_t* p, unsigned op,
                                  pestle_ctext_class_t c, const char* const* x);

// Of indices, pairs or not. A product and a comparison stand without
// parentheses.
const char* pestle_ctext_sum(ctext_t* p, pestle_ctext_class_t c, const char* a,
                             const char* b);
const char* pestle_ctext_product(ctext_t* p, pestle_ctext_class_t c,
                                 const char* a, const char* b);
const char* pestle_ctext_less(ctext_t* p, pestle_ctext_class_t c, const char* a,
                              const char* b);
// The number of a group or lane as one of class |c|.
const char* pestle_ctext_id(ctext_t* p, pestle_ctext_class_t c, const char* id);
// The low word of a pair; what is none as it is.
const char* pestle_ctext_narrow(ctext_t* p, unsigned dtype, const char* at);

// --- ctext_memory.c ---

void pestle_ctext_access(ctext_t* p, uint32_t id);
// Element |at|, lane |lane| of private buffer |buffer|.
const char* pestle_ctext_element(ctext_t* p, uint32_t buffer, uint32_t index,
                                 unsigned lane);

// --- ctext_helper.c ---

// The name of |helper|, which will be printed.
const char* pestle_ctext_call(ctext_t* p, ctext_helper_t helper);
void pestle_ctext_helpers(ctext_t* p, pestle_plugin_text_t* out);

// --- ctext_range.c ---

// Whether all indices of the kernel fit 32 bits.
bool pestle_ctext_indices_fit(const pestle_host_t* host, const pestle_kir_t* k,
                              bool* out_fit);

static inline const pestle_kir_inst_t* ctext_inst(const ctext_t* p,
                                                  uint32_t id) {
  return pestle_kir_inst(p->k, id);
}
static inline bool ctext_is_narrow_float(unsigned dtype) {
  return pestle_dtype_is((pestle_dtype_t)dtype, PESTLE_KIND_FLOAT) &&
         dtype != PESTLE_F32 && dtype != PESTLE_F64;
}
// Whether the printer casts the narrow float |dtype|.
bool pestle_ctext_casts(unsigned dtype);
static inline bool ctext_is_float(unsigned dtype) {
  return dtype == PESTLE_F32 || dtype == PESTLE_F64;
}

#endif  // PESTLE_PLUGINS_COMMON_CTEXT_INTERNAL_H_
