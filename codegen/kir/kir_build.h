// SPDX-License-Identifier: Apache-2.0
// Building, checking, printing and rewriting flat kernels. The builder folds
// integer constants and madi chains, so that emission may be naive; everything
// else is appended as asked. Failure to allocate is sticky: ids stay usable and
// pestle_kir_finish() reports it.
//
// codegen/kir/ is the flat Kernel IR: builder, verifier, ranges, printer,
// parser. codegen/kir/ knows nothing of nests, schedules or the graph that a
// kernel is of.
#ifndef PESTLE_CODEGEN_KIR_KIR_BUILD_H_
#define PESTLE_CODEGEN_KIR_KIR_BUILD_H_

#include "base/str.h"
#include "base/vec.h"
#include "pestle/compile.h"
#include "pestle/kir.h"

typedef uint32_t pestle_kir_id_t;

// A kernel under construction, and the owner of a finished one.
typedef struct pestle_kir_builder_t {
  pestle_allocator_t allocator;
  PESTLE_VEC(pestle_kir_inst_t) inst;
  PESTLE_VEC(pestle_kir_buffer_t) buffer;
  PESTLE_VEC(pestle_kir_table_t) table;
  PESTLE_VEC(uint32_t) word;
  pestle_strbuf_t strings;
  uint32_t name, note;
  uint8_t facts;  // given to float instructions
  bool failed;
  pestle_kir_t view;  // valid after pestle_kir_finish()
} pestle_kir_builder_t;

void pestle_kir_init(pestle_allocator_t allocator, const char* name,
                     const char* note, pestle_kir_builder_t* out_builder);
void pestle_kir_deinit(pestle_kir_builder_t* k);

// Global buffers take arg slots in the order of their making.
uint32_t pestle_kir_add_buffer(pestle_kir_builder_t* k, const char* name,
                               pestle_kir_scope_t scope, pestle_dtype_t dtype,
                               unsigned lanes, int64_t count, unsigned flags);

pestle_kir_id_t pestle_kir_put(pestle_kir_builder_t* k, pestle_kir_inst_t inst);
// An instruction for its effect, without a value.
void pestle_kir_act(pestle_kir_builder_t* k, pestle_kir_op_t op, uint32_t a,
                    uint32_t b, uint32_t c, uint32_t d);
pestle_kir_id_t pestle_kir_index(pestle_kir_builder_t* k, int64_t value);
pestle_kir_id_t pestle_kir_int(pestle_kir_builder_t* k, pestle_dtype_t type,
                               unsigned lanes, int64_t value);
pestle_kir_id_t pestle_kir_float(pestle_kir_builder_t* k, pestle_dtype_t type,
                                 unsigned lanes, double value);
// For any dtype: |value| from a double or an int64 as the type asks.
pestle_kir_id_t pestle_kir_const(pestle_kir_builder_t* k, pestle_dtype_t type,
                                 unsigned lanes, double f, int64_t i);
pestle_kir_id_t pestle_kir_for(pestle_kir_builder_t* k, const char* name,
                               pestle_kir_id_t lo, pestle_kir_id_t hi,
                               int32_t step, pestle_kir_axis_t axis);
// A loop of |count| steps from 0 on, and its end; nothing where it is one step.
pestle_kir_id_t pestle_kir_repeat(pestle_kir_builder_t* k, const char* name,
                                  int64_t count);
void pestle_kir_end_repeat(pestle_kir_builder_t* k, int64_t count);
// A loop of |count| steps from 0 on, each a copy of its own.
pestle_kir_id_t pestle_kir_unroll(pestle_kir_builder_t* k, const char* name,
                                  int64_t count);
void pestle_kir_if(pestle_kir_builder_t* k, pestle_kir_id_t condition);
void pestle_kir_else(pestle_kir_builder_t* k);
void pestle_kir_end(pestle_kir_builder_t* k);
void pestle_kir_alloc(pestle_kir_builder_t* k, uint32_t buffer);
// a * imm + c; c may be NONE. imm beyond 32 bits becomes a multiply.
pestle_kir_id_t pestle_kir_madi(pestle_kir_builder_t* k, pestle_kir_id_t a,
                                int64_t imm, pestle_kir_id_t c);
// |align| bytes that the access is known to have (0: the element's).
pestle_kir_id_t pestle_kir_load(pestle_kir_builder_t* k, uint32_t buffer,
                                unsigned lanes, pestle_kir_id_t index,
                                pestle_kir_id_t mask, unsigned align);
void pestle_kir_store(pestle_kir_builder_t* k, uint32_t buffer,
                      pestle_kir_id_t index, pestle_kir_id_t value,
                      pestle_kir_id_t mask, unsigned align);
pestle_kir_id_t pestle_kir_gather(pestle_kir_builder_t* k, uint32_t buffer,
                                  pestle_kir_id_t indices,
                                  pestle_kir_id_t mask);
// A scalar row on 1 to 3 operands (unused: NONE); splats operands of one lane
// when another has more. Folds integer constants.
pestle_kir_id_t pestle_kir_scalar(pestle_kir_builder_t* k, pestle_op_t op,
                                  pestle_kir_id_t a, pestle_kir_id_t b,
                                  pestle_kir_id_t c);
// One of two operands, of which the second is the index |b|.
pestle_kir_id_t pestle_kir_scalar_i(pestle_kir_builder_t* k, pestle_op_t op,
                                    pestle_kir_id_t a, int64_t b);
pestle_kir_id_t pestle_kir_cast(pestle_kir_builder_t* k, pestle_kir_id_t a,
                                pestle_dtype_t type);
// |lanes| words of neighbouring elements from |index| on.
pestle_kir_id_t pestle_kir_load_words(pestle_kir_builder_t* k, uint32_t buffer,
                                      unsigned lanes, pestle_kir_id_t index);
// Short dot products of words, of the type and lanes of |sum|. |kinds|: of DOT4.
// a 2^b: SCALE.
pestle_kir_id_t pestle_kir_scale(pestle_kir_builder_t* k, pestle_kir_id_t a,
                                 pestle_kir_id_t b);
pestle_kir_id_t pestle_kir_dot(pestle_kir_builder_t* k, pestle_kir_id_t a,
                               pestle_kir_id_t b, pestle_kir_id_t sum,
                               unsigned kinds);
pestle_kir_id_t pestle_kir_bitcast(pestle_kir_builder_t* k, pestle_kir_id_t a,
                                   pestle_dtype_t type);
// Lanes of (a, b) concatenated, |count| of them, picked by |lanes|.
pestle_kir_id_t pestle_kir_shuffle(pestle_kir_builder_t* k, pestle_kir_id_t a,
                                   pestle_kir_id_t b, const uint32_t* lanes,
                                   unsigned count);
// Lane |lane| of |a|; what has one lane is that lane.
pestle_kir_id_t pestle_kir_extract(pestle_kir_builder_t* k, pestle_kir_id_t a,
                                   uint32_t lane);
// Two lanes from one value each.
pestle_kir_id_t pestle_kir_pair(pestle_kir_builder_t* k, pestle_kir_id_t low,
                                pestle_kir_id_t high);
pestle_kir_id_t pestle_kir_splat(pestle_kir_builder_t* k, pestle_kir_id_t a,
                                 unsigned lanes);
// Four lanes of 16 bits as two words, as fragments of MMA have them.
pestle_kir_id_t pestle_kir_pack(pestle_kir_builder_t* k, pestle_kir_id_t a);
pestle_kir_id_t pestle_kir_mask(pestle_kir_builder_t* k, pestle_kir_id_t index,
                                pestle_kir_id_t limit, unsigned lanes);
pestle_kir_id_t pestle_kir_iota(pestle_kir_builder_t* k, pestle_dtype_t type,
                                unsigned lanes);
pestle_kir_id_t pestle_kir_reduce(pestle_kir_builder_t* k, pestle_kir_id_t a,
                                  pestle_op_t op);
// The same over |width| lanes of a subgroup.
pestle_kir_id_t pestle_kir_sg_reduce(pestle_kir_builder_t* k, pestle_kir_id_t a,
                                     pestle_op_t op, unsigned width);
void pestle_kir_barrier(pestle_kir_builder_t* k);
static inline pestle_dtype_t pestle_kir_type_of(const pestle_kir_builder_t* k,
                                                pestle_kir_id_t id) {
  return (pestle_dtype_t)k->inst.data[id].type;
}
static inline unsigned pestle_kir_lanes_of(const pestle_kir_builder_t* k,
                                           pestle_kir_id_t id) {
  return k->inst.data[id].lanes;
}
// Whether |id| is a constant, and its integer value.
bool pestle_kir_is_int(const pestle_kir_builder_t* k, pestle_kir_id_t id,
                       int64_t* out_value);

// Removes dead pure instructions and equal ones in one region scope, computes
// group, lane, shared_bytes, arg_count and hash, and makes k->view.
PESTLE_NODISCARD pestle_status_t pestle_kir_finish(pestle_kir_builder_t* k);

// --- Text ---

// Kernel text; parse(print(k)) equals k, names included.
PESTLE_NODISCARD pestle_status_t pestle_kir_print(const pestle_kir_t* kernel,
                                                  pestle_strbuf_t* out);
PESTLE_NODISCARD pestle_status_t
pestle_kir_parse(pestle_allocator_t allocator, const char* text, size_t size,
                 const char* file, pestle_kir_builder_t* out_builder);

// --- Checks and rewrites ---

// Structure, types, lanes, bounds (interval analysis), private indices, read
// only, group rules. INTERNAL naming the instruction and the rule.
PESTLE_NODISCARD pestle_status_t pestle_kir_verify(const pestle_kir_t* kernel);

// Rewrites |kernel| into what |caps| says is legal, by linear copies: scalar
// rows that the target lacks into arithmetic (exp, log, tanh, erf, pow ...,
// within 2 ulp in f32), f16, bf16 and f8 arithmetic in f32 with a rounding cast
// after each op (none between ops with PESTLE_NUMERICS_FAST), i1/i4 storage,
// long vectors split. UNSUPPORTED names op, dtype and target when nothing
// helps.
PESTLE_NODISCARD pestle_status_t pestle_kir_legalise(
    const pestle_kir_t* kernel, const pestle_target_caps_t* caps,
    pestle_numerics_t numerics, pestle_kir_builder_t* out_builder);

// The two above take memory from the system; these from |allocator|. On failure
// |out_builder| is empty and needs no deinit.
PESTLE_NODISCARD pestle_status_t
pestle_kir_verify_in(pestle_allocator_t allocator, const pestle_kir_t* kernel);
PESTLE_NODISCARD pestle_status_t pestle_kir_legalise_in(
    pestle_allocator_t allocator, const pestle_kir_t* kernel,
    const pestle_target_caps_t* caps, pestle_numerics_t numerics,
    pestle_kir_builder_t* out_builder);

#endif  // PESTLE_CODEGEN_KIR_KIR_BUILD_H_
