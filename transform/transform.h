// SPDX-License-Identifier: Apache-2.0
// Derivatives and batching: graph to graph, before any pass. What the files of
// transform/ share.
//
// transform/ takes a function and changes it in place. Three walks do it:
//
//   jvp        forward: beside each op that the chosen arguments reach, ops that
//              compute the tangents of its results
//   transpose  backward over ops that are linear in the chosen values, such as the
//              tangent ops of jvp: ops that compute cotangents of their operands
//   vmap       forward: each op again on values with one more axis, the first
//
// Reverse mode is jvp, then transpose of what the tangents reach. A rule is a row of
// transform.def and at most one function a walk, in a rule_*.c. No tangent, or
// cotangent, is NULL: it is zero, and no op is made for it.
//
// transform/ knows nothing of devices, passes or front ends.
#ifndef PESTLE_TRANSFORM_TRANSFORM_H_
#define PESTLE_TRANSFORM_TRANSFORM_H_

#include "base/arena.h"
#include "base/custom_attrs.h"
#include "base/map.h"
#include "base/vec.h"
#include "ir/formula.h"

typedef pestle_value_t pv_t;

// --- The table ---

typedef enum pestle_derivative_e {
  PESTLE_DERIVATIVE_MISSING,    // no row
  PESTLE_DERIVATIVE_ZERO,       // results do not depend smoothly on any operand
  PESTLE_DERIVATIVE_PARTIAL,    // rows of partial.def
  PESTLE_DERIVATIVE_LINEAR,     // the op itself on the tangents
  PESTLE_DERIVATIVE_BILINEAR,   // op(ta, b) + op(a, tb)
  PESTLE_DERIVATIVE_RULE,       // pestle_jvp_<op>
  PESTLE_DERIVATIVE_DECOMPOSE,  // that of the decomposition
  PESTLE_DERIVATIVE_REFUSED,
} pestle_derivative_t;

typedef enum pestle_transposition_e {
  PESTLE_TRANSPOSE_NONE,       // not linear in any operand
  PESTLE_TRANSPOSE_RULE,       // pestle_transpose_<op>
  PESTLE_TRANSPOSE_DECOMPOSE,  // that of the decomposition
} pestle_transposition_t;

typedef enum pestle_batching_e {
  PESTLE_VMAP_NONE,         // refused
  PESTLE_VMAP_ELEMENTWISE,  // the op on operands of one shape
  PESTLE_VMAP_SHIFT,        // the op with its dims one further
  PESTLE_VMAP_RULE,         // pestle_vmap_<op>
  PESTLE_VMAP_DECOMPOSE,    // that of the decomposition
} pestle_batching_t;

typedef struct pestle_jvp_t pestle_jvp_t;
typedef struct pestle_transposer_t pestle_transposer_t;
typedef struct pestle_vmap_t pestle_vmap_t;

// |t|: tangents of the operands, NULL where zero. |out|: room for those of the
// results, all NULL before. A rule that takes |node| itself away sets the tangents
// of what it puts there.
typedef void (*pestle_jvp_fn_t)(pestle_jvp_t* j, pestle_node_t* node,
                                pv_t* const* t, pv_t** out);
// |ct|: cotangents of the results, NULL where zero, at least one is not. The rule
// adds those of the operands by pestle_cotangent_add().
typedef void (*pestle_transpose_fn_t)(pestle_transposer_t* x,
                                      pestle_node_t* node, pv_t* const* ct);
// |operands|: what takes the place of the operands, with one more axis in front
// where |is_batched|; at least one has it, or a value that the node's regions read.
// |out|: room for the results with the axis; a result that is not batched takes the
// place of the node's.
typedef void (*pestle_vmap_fn_t)(pestle_vmap_t* v, pestle_node_t* node,
                                 pv_t* const* operands, const bool* is_batched,
                                 pv_t** out);

typedef struct pestle_transform_row_t {
  uint8_t derivative;     // pestle_derivative_t
  uint8_t transposition;  // pestle_transposition_t
  uint8_t batching;       // pestle_batching_t
} pestle_transform_row_t;

// The row of |op|, all MISSING, NONE and NONE where transform.def has none.
pestle_transform_row_t pestle_transform_row(pestle_op_t op);
// The functions of rows with a rule, else NULL.
pestle_jvp_fn_t pestle_jvp_rule(pestle_op_t op);
pestle_transpose_fn_t pestle_transpose_rule(pestle_op_t op);
pestle_vmap_fn_t pestle_vmap_rule(pestle_op_t op);

// One function for each row with a rule.
#define PESTLE_JVP_FN_ZERO(op)
#define PESTLE_JVP_FN_PARTIAL(op)
#define PESTLE_JVP_FN_LINEAR(op)
#define PESTLE_JVP_FN_BILINEAR(op)
#define PESTLE_JVP_FN_DECOMPOSE(op)
#define PESTLE_JVP_FN_REFUSED(op)
#define PESTLE_JVP_FN_RULE(op)                                               \
  void pestle_jvp_##op(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t, \
                       pv_t** out);
#define PESTLE_TRANSPOSE_FN_NONE(op)
#define PESTLE_TRANSPOSE_FN_DECOMPOSE(op)
#define PESTLE_TRANSPOSE_FN_RULE(op)                                      \
  void pestle_transpose_##op(pestle_transposer_t* x, pestle_node_t* node, \
                             pv_t* const* ct);
#define PESTLE_VMAP_FN_NONE(op)
#define PESTLE_VMAP_FN_ELEMENTWISE(op)
#define PESTLE_VMAP_FN_SHIFT(op)
#define PESTLE_VMAP_FN_DECOMPOSE(op)
#define PESTLE_VMAP_FN_RULE(op)                                        \
  void pestle_vmap_##op(pestle_vmap_t* v, pestle_node_t* node,         \
                        pv_t* const* operands, const bool* is_batched, \
                        pv_t** out);
#define PESTLE_TRANSFORM(NAME, op, DERIVATIVE, TRANSPOSE, VMAP)      \
  PESTLE_JVP_FN_##DERIVATIVE(op) PESTLE_TRANSPOSE_FN_##TRANSPOSE(op) \
      PESTLE_VMAP_FN_##VMAP(op)
#include "transform/transform.def"

// --- What all walks share (zeros.c) ---

// Whether values of |dtype| have tangents.
static inline bool pestle_is_smooth(pestle_dtype_t dtype) {
  return pestle_dtype_is(dtype, PESTLE_KIND_FLOAT | PESTLE_KIND_COMPLEX);
}
// Zeros of the type of |like|.
pv_t* pestle_zeros(pestle_formula_t* f, const pv_t* like);
// Whether |value| is a constant of zeros.
bool pestle_is_zeros(const pv_t* value);
// The sum of |terms|, of which NULL are left out, as a balanced tree; narrow floats
// are added in f32 and rounded once. NULL: there is none.
pv_t* pestle_sum(pestle_formula_t* f, pv_t** terms, size_t count);
// |a| summed over |axes|, which are gone; |a| itself where there are none.
pv_t* pestle_sum_axes(pestle_formula_t* f, pv_t* a, const int64_t* axes,
                      size_t count);
// |a|, from which |axes| of |type| were reduced, repeated along them.
pv_t* pestle_spread_axes(pestle_formula_t* f, pv_t* a,
                         const pestle_type_t* type, pestle_i64s_t axes);
// f32 for floats that are narrower, else |dtype|.
pestle_dtype_t pestle_compute_dtype(pestle_dtype_t dtype);
// Whether what |node|'s regions hold reads a value that |map| has; or |node| does.
bool pestle_captures(const pestle_node_t* node, const pestle_map_t* map);
bool pestle_reads(const pestle_node_t* node, const pestle_map_t* map);
// Erases what nobody uses of |block|, barriers too.
void pestle_sweep(pestle_block_t* block);
// Puts what |node|, a composite, a call or a custom op with a body, stands for in its
// place; |*out_next| is the first op of that, or what came behind it.
PESTLE_NODISCARD pestle_status_t
pestle_transform_expand(pestle_allocator_t allocator, pestle_node_t* node,
                        pestle_node_t** out_next);
// |count| cleared pointers that live as long as |arena|; keeps OUT_OF_MEMORY in |f|.
pv_t** pestle_value_array(pestle_formula_t* f, pestle_arena_t* arena,
                          size_t count);

// --- jvp ---

struct pestle_jvp_t {
  pestle_formula_t f;  // behind the node whose rule runs
  pestle_allocator_t allocator;
  pestle_arena_t arena;
  pestle_map_t tangents;  // value -> its tangent
  pestle_function_t* function;
  // The tangent ops are to be transposed or kept apart: control flow makes ops for
  // them alone, which read what they need of the primal ones as values.
  bool is_linear;
  bool is_reverse;    // and all of them are to be transposed
  bool is_whole;      // in this function: its ops can be read for what they are
  int64_t max_trips;  // of loops whose turns are not known; 0: none is said
  // Where checkpoints of the function are written down (recompute.h); may be NULL.
  struct pestle_ranges_t* ranges;
};

void pestle_jvp_init(pestle_allocator_t allocator, pestle_function_t* function,
                     bool is_linear, pestle_jvp_t* out_jvp);
void pestle_jvp_deinit(pestle_jvp_t* j);
// The tangent of |value|, or NULL.
pv_t* pestle_tangent(const pestle_jvp_t* j, const pv_t* value);
// The tangent, or zeros.
pv_t* pestle_tangent_or_zeros(pestle_jvp_t* j, pv_t* value);
void pestle_tangent_set(pestle_jvp_t* j, const pv_t* value, pv_t* tangent);
// Walks |block| to its end.
PESTLE_NODISCARD pestle_status_t pestle_jvp_block(pestle_jvp_t* j,
                                                  pestle_block_t* block);
// Walks the ops that a rule made behind |node|: of what it wrote as a formula of other
// ops, the tangents follow by themselves.
void pestle_jvp_behind(pestle_jvp_t* j, pestle_node_t* node);
// Keeps UNSUPPORTED: |node|, why, the argument that reaches it, what to do.
void pestle_jvp_refuse(pestle_jvp_t* j, const pestle_node_t* node,
                       const char* why);
// The tangent of result |r| by the rows of partial.def.
void pestle_jvp_partial(pestle_jvp_t* j, const pestle_node_t* node,
                        pv_t* const* t, pv_t** out);
// |factor| * |tangent|, computed in the factor's dtype and rounded to |dtype|.
pv_t* pestle_scaled(pestle_formula_t* f, pv_t* factor, pv_t* tangent,
                    pestle_dtype_t dtype);

// The region of |node|, a reduction or a window, on tensors: |values| are n
// accumulators, then n elements; the results take the place of the accumulators.
void pestle_transform_combine(pestle_jvp_t* j, const pestle_node_t* node,
                              pv_t** values);
// Element positions[..] along |axis| of |a|, which has the dims of |positions| but for
// that axis.
pv_t* pestle_take_along(pestle_formula_t* f, pv_t* a, pv_t* positions,
                        int64_t axis);

// --- Transposition ---

typedef struct pestle_cotangent_t {
  pv_t* value;
  size_t next;  // index + 1 of the one before it, 0: none
} pestle_cotangent_t;

struct pestle_transposer_t {
  pestle_formula_t f;  // at the block's end
  pestle_allocator_t allocator;
  pestle_arena_t arena;
  pestle_map_t linear;      // the values that depend linearly on the inputs
  pestle_map_t cotangents;  // value -> index + 1 of its last term
  PESTLE_VEC(pestle_cotangent_t) terms;
  PESTLE_VEC(pestle_node_t*) nodes;  // whose results are linear, in order
  // Of a function that a caller says is linear: sums with what is not linear are
  // errors.
  bool is_checked;
  pestle_function_t* function;  // whose body is transposed; NULL: a region is
  int64_t max_trips;            // as of pestle_jvp_t
};

void pestle_transposer_init(pestle_allocator_t allocator,
                            pestle_builder_t builder,
                            pestle_transposer_t* out_transposer);
void pestle_transposer_deinit(pestle_transposer_t* x);
// Whether |value| is to be transposed for.
bool pestle_is_linear(const pestle_transposer_t* x, const pv_t* value);
PESTLE_NODISCARD pestle_status_t pestle_linear_add(pestle_transposer_t* x,
                                                   const pv_t* value);
// Finds what in |block| depends on the values that were added.
PESTLE_NODISCARD pestle_status_t pestle_linear_find(pestle_transposer_t* x,
                                                    pestle_block_t* block);
// The same of the ops behind |first| up to |end|, both of one block.
PESTLE_NODISCARD pestle_status_t
pestle_linear_find_between(pestle_transposer_t* x, const pestle_node_t* first,
                           const pestle_node_t* end);
// Adds |ct| to the cotangent of |value|, if that is linear and |ct| not NULL.
void pestle_cotangent_add_to(pestle_transposer_t* x, const pv_t* value,
                             pv_t* ct);
static inline void pestle_cotangent_add(pestle_transposer_t* x,
                                        const pestle_node_t* node,
                                        size_t operand, pv_t* ct) {
  pestle_cotangent_add_to(x, pestle_node_operand(node, operand), ct);
}
// What was added to |value|, in one; NULL: nothing.
pv_t* pestle_cotangent_take(pestle_transposer_t* x, const pv_t* value);
// Walks the linear ops from the last to the first. f.builder is where cotangents go.
PESTLE_NODISCARD pestle_status_t pestle_transpose_nodes(pestle_transposer_t* x);

// --- Ops of the caller's own (rule_custom.c) ---

// What the cotangents of an op need: they are made where the op itself may be out of sight,
// in the second of two halves or in the body of a loop that runs the other way.
typedef struct pestle_pull_t {
  const char* op;          // names the rule
  const char* attributes;  // text of a dictionary that the rule reads
  // Bits of the operands, then the results, that it does not read: zeros stand for them, so
  // that nothing keeps them.
  uint32_t unread;
} pestle_pull_t;
// The tangents of |node| as an op that has no meaning but to be transposed; in reverse mode
// alone.
void pestle_pull_back(pestle_jvp_t* j, const pestle_node_t* node,
                      const pestle_pull_t* pull, pv_t* const* t, pv_t** out);
// The same with |values| as the attributes, of an op of ops.def.
void pestle_pull_back_by(pestle_jvp_t* j, const pestle_node_t* node,
                         const char* op, uint32_t unread,
                         const pestle_custom_attr_value_t* values, size_t count,
                         pv_t* const* t, pv_t** out);
// The attributes of |pullback|; false: |x| has failed.
bool pestle_pull_attrs(pestle_transposer_t* x, const pestle_node_t* pullback,
                       pestle_custom_attrs_t* out_attrs);
static inline pestle_custom_attr_value_t pestle_pull_f64(const char* name,
                                                         double value) {
  return (pestle_custom_attr_value_t){name, PESTLE_CUSTOM_F64, {.f64 = value}};
}
static inline pestle_custom_attr_value_t pestle_pull_i64(const char* name,
                                                         int64_t value) {
  return (pestle_custom_attr_value_t){name, PESTLE_CUSTOM_I64, {.i64 = value}};
}
// Whether |node|, a CUSTOM, has a rule for the walk, so that its body is not asked.
bool pestle_custom_has_jvp(pestle_jvp_t* j, const pestle_node_t* node);
bool pestle_custom_has_transpose(pestle_arena_t* arena,
                                 const pestle_node_t* node);
bool pestle_custom_has_vmap(pestle_vmap_t* v, const pestle_node_t* node);
// Its name behind that of a pullback.
#define PESTLE_PULLED_ATTENTION "pestle.attention"
// Adds the cotangents of the |count| operands of an attention (rule_attention.c): |node|'s
// operands are these, its result, and a tangent for each of them; |ct| is the result's
// cotangent.
void pestle_attention_pull(pestle_transposer_t* x, const pestle_node_t* node,
                           uint32_t count, pv_t* ct);
#define PESTLE_PULLED_NORM "pestle.norm"
// The same of a norm over the last axes (rule_norm.c).
void pestle_norm_pull(pestle_transposer_t* x, const pestle_node_t* node,
                      uint32_t count, pv_t* ct);
#define PESTLE_PULLED_BATCH_NORM "pestle.batch_norm"
// The same of batch_norm_training, and whether |node| is one that is to be pulled back.
bool pestle_is_pulled_batch_norm(const pestle_jvp_t* j,
                                 const pestle_node_t* node);
void pestle_batch_norm_pull_back(pestle_jvp_t* j, const pestle_node_t* node,
                                 pv_t* const* t, pv_t** out);
void pestle_batch_norm_pull(pestle_transposer_t* x, const pestle_node_t* node,
                            uint32_t count, pv_t* const* ct);
// The rules, as those of rows.
void pestle_custom_jvp(pestle_jvp_t* j, pestle_node_t* node, pv_t* const* t,
                       pv_t** out);
void pestle_custom_transpose(pestle_transposer_t* x, pestle_node_t* node,
                             pv_t* const* ct);
void pestle_custom_vmap(pestle_vmap_t* v, pestle_node_t* node, pv_t** operands,
                        const bool* is_batched, pv_t** out);

// --- vmap (vmap.h) ---

struct pestle_vmap_t {
  pestle_formula_t f;
  pestle_allocator_t allocator;
  pestle_arena_t arena;
  pestle_map_t values;  // batched value of the source -> what takes its place
  pestle_function_t* function;
  int64_t size;  // of the new axis
};

#endif  // PESTLE_TRANSFORM_TRANSFORM_H_
