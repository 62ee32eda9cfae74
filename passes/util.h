// SPDX-License-Identifier: Apache-2.0
// What passes share: splat constants as numbers, questions about nodes, walking.
// Ops are made with ir/formula.h. Nothing here decides anything; each decision is
// in the file of its pass.
#ifndef PESTLE_PASSES_UTIL_H_
#define PESTLE_PASSES_UTIL_H_

#include "base/map.h"
#include "ir/attention.h"
#include "ir/copy.h"
#include "ir/formula.h"
#include "passes/pass.h"

// The passes of passes.def.
#define PESTLE_PASS(name, ...)        \
  pestle_status_t pestle_pass_##name( \
      pestle_pass_context_t* ctx, pestle_module_t* module, bool* out_changed);
#include "passes/passes.def"

// --- Changing ---

// Replaces every result by |values| and erases the node.
void pestle_pass_replace(pestle_node_t* node, pestle_value_t* const* values);

// A group called |label| of |region|, which takes |operands| and is the call's, also where it
// fails.
PESTLE_NODISCARD pestle_status_t pestle_pass_make_group(
    pestle_builder_t* at, const char* label, pestle_value_t* const* operands,
    size_t operand_count, pestle_region_t* region, pestle_node_t** out_group);

// The label of a group of attention that writes to its caches (whole_attention_step.c).
#define PESTLE_CACHED_STEP "cached_step"
// How many results of |node| begin as the operand of their number, and are then changed.
uint32_t pestle_pass_updates(const pestle_node_t* node);

// Puts a group called |label| in the place of |node|: |region|, which takes |operands| and
// gives what |node| gives. |at| is where the group is made. The region is the call's, also
// where it fails.
pestle_status_t pestle_pass_replace_by_group(pestle_builder_t* at,
                                             pestle_node_t* node,
                                             const char* label,
                                             pestle_value_t* const* operands,
                                             pestle_region_t* region);
// The same of |node| alone: the region is a copy of it, and takes its operands.
pestle_status_t pestle_pass_wrap(const pestle_pass_context_t* ctx,
                                 pestle_node_t* node, const char* label);

// Whether the target has a kernel for |node|, a composite, as a whole (whole_composites.c).
bool pestle_pass_is_whole(const pestle_pass_context_t* ctx,
                          const pestle_node_t* node);
// Whether subgroups of the target multiply small matrices of |dtype|.
bool pestle_pass_has_units(const pestle_pass_context_t* ctx,
                           pestle_dtype_t dtype);
// The same of a gradient of an attention where lanes run side by side, and the groups that it
// becomes (whole_attention_grad.c).
bool pestle_pass_fits_attention_grad(const pestle_pass_context_t* ctx,
                                     const pestle_node_t* node);
PESTLE_NODISCARD pestle_status_t
pestle_pass_whole_attention_grad(pestle_node_t* node);
// Whether what bias or mask of |node|, an attention or a gradient of one, says follows from
// places, and each row sees a key: which ones (attention_limits.c).
bool pestle_pass_attention_limits(const pestle_node_t* node,
                                  pestle_attention_limits_t* out);
// Puts a group in the place of |node|, an attention, where it is one of new tokens over a
// cache for which the target has a kernel (whole_attention.c).
PESTLE_NODISCARD pestle_status_t pestle_pass_whole_attention(
    const pestle_pass_context_t* ctx, pestle_node_t* node, bool* out_changed);

// Puts groups in the place of the products with weights of a few bits in |block|, and of what
// stands around them, where the target has a kernel for them (whole_block_dot.c).
PESTLE_NODISCARD pestle_status_t pestle_pass_whole_block_dots(
    pestle_pass_context_t* ctx, pestle_block_t* block, bool* out_changed);

// A group in front of |product| that makes bytes of its x and their scales, with |norm|, which
// may be NULL and else makes x; and x of them again, by ops at |at| (whole_block_dot_lanes.c).
PESTLE_NODISCARD pestle_status_t
pestle_pass_block_bytes(pestle_node_t* product, const pestle_node_t* norm,
                        pestle_value_t** out_bytes, pestle_value_t** out_rates);
PESTLE_NODISCARD pestle_status_t pestle_pass_block_x(
    pestle_builder_t* at, const pestle_node_t* product, pestle_value_t* bytes,
    pestle_value_t* rates, pestle_value_t** out_x);

// Puts a product of |product|'s weights, unpacked by a group, in its place.
PESTLE_NODISCARD pestle_status_t
pestle_pass_block_matrix(pestle_node_t* product);

// Puts a scan in the place of |scan| whose matrices are operands, not constants of its body,
// and whose products of inputs are made before it (scan_inputs.c).
PESTLE_NODISCARD pestle_status_t pestle_pass_scan_inputs(
    pestle_pass_context_t* ctx, pestle_node_t* scan, pestle_node_t** out_scan);

// Whether there are such products.
bool pestle_pass_has_scan_inputs(const pestle_node_t* scan);

// Whether the terms of a reduction by |op| may be grouped anew.
bool pestle_pass_may_regroup(const pestle_compile_options_t* options,
                             pestle_op_t op, pestle_dtype_t dtype);

// --- Reading ---

static inline bool pestle_pass_is(const pestle_value_t* value, pestle_op_t op) {
  return value->node && value->node->op == op;
}
static inline const pestle_op_info_t* pestle_pass_info(
    const pestle_node_t* node) {
  return pestle_op_info((pestle_op_t)node->op);
}
// Whether a plan has what |node| gives stored (pestle_value_is_stored()).
static inline bool pestle_pass_is_stored(const pestle_node_t* node) {
  return node->op == PESTLE_OP_CONSTANT || node->op == PESTLE_OP_CONSTANT_PART;
}
// Whether |node| is a step that may have to do with other processes.
static inline bool pestle_pass_is_collective(const pestle_node_t* node) {
  return pestle_pass_info(node)->fuse == PESTLE_FUSE_COLLECTIVE &&
         node->op != PESTLE_OP_CONSTANT_PART;
}
static inline bool pestle_pass_is_terminator(const pestle_node_t* node) {
  return (pestle_pass_info(node)->flags & PESTLE_OP_FLAG_TERMINATOR) != 0;
}
// The operand of |value|'s node when that is of |op|, else NULL.
static inline pestle_value_t* pestle_pass_through(const pestle_value_t* value,
                                                  pestle_op_t op) {
  return pestle_pass_is(value, op) ? pestle_node_operand(value->node, 0) : NULL;
}
// The numbers behind a splat constant, seen through broadcasts and reshapes.
// Integers come as int64 (unsigned ones modulo 2^64).
bool pestle_pass_splat_f64(const pestle_value_t* value, double* out);
bool pestle_pass_splat_i64(const pestle_value_t* value, int64_t* out);
// Either kind as a double.
bool pestle_pass_splat_is(const pestle_value_t* value, double wanted);
// Element |index| of constant data as a double or int64.
double pestle_pass_element_f64(const pestle_elements_t* e, size_t index);
int64_t pestle_pass_element_i64(const pestle_elements_t* e, size_t index);
// Writes |count| copies of one element.
void pestle_pass_fill(void* target, const void* element, size_t size,
                      size_t count);
// Row-major elements of |e|: its own data, or the splat expanded in |arena|.
// NULL: out of memory.
const void* pestle_pass_expand(const pestle_elements_t* e,
                               pestle_arena_t* arena);

// The dim of a broadcast's operand that becomes |axis|; -1: none.
int64_t pestle_pass_source_dim(const pestle_node_t* broadcast, int64_t axis);
// Whether |value| counts 0, 1, 2, ... along |axis| and changes along no other.
bool pestle_pass_counts_along(const pestle_value_t* value, int64_t axis);

bool pestle_pass_same_dims(const pestle_type_t* a, const pestle_type_t* b);
// Whether dims of more than one element change places in |transpose|.
bool pestle_pass_turns(const pestle_node_t* transpose);
bool pestle_pass_i64s_is_iota(pestle_i64s_t list);
bool pestle_pass_i64s_all(pestle_i64s_t list, int64_t value);
// Whether a convolution's images and results lie with batches outermost, then the
// spatial dims in order, and features innermost.
bool pestle_pass_has_channels_last(const pestle_node_t* convolution);
// Whether subgroups of the target have matrix units that multiply bytes.
bool pestle_pass_has_byte_units(const pestle_target_caps_t* caps);
// Whether the target multiplies matrices of |dtype|, a 16-bit float, by warpgroups.
bool pestle_pass_has_warpgroups(const pestle_pass_context_t* ctx,
                                pestle_dtype_t dtype);
// Whether it multiplies matrices of bytes so, with sums of i32.
bool pestle_pass_has_byte_warpgroups(const pestle_pass_context_t* ctx);
// Whether it multiplies those of 8-bit floats so.
bool pestle_pass_has_f8_warpgroups(const pestle_pass_context_t* ctx);
// Whether it multiplies those of f32, with 10 bits of their mantissas, so.
bool pestle_pass_has_tf32_warpgroups(const pestle_pass_context_t* ctx);
// The same by any units.
bool pestle_pass_has_tf32_units(const pestle_pass_context_t* ctx);
// Whether the target's matrix units would take the product |node| if both operands lay
// along k (align_rows.c): the right one is turned in memory then, not on the way.
bool pestle_pass_reads_along_k(const pestle_pass_context_t* ctx,
                               const pestle_node_t* node);
// Bytes of a core's L2, or a usual number where the target does not say.
int64_t pestle_pass_l2_bytes(const pestle_pass_context_t* ctx);

// --- Collectives ---

// What |like| does, a reduction by one op over groups of ranks, as |op| of |a|: by its
// groups, its channel and its region's op. |dim| is one more attribute, or NULL; |type| the
// result's, NULL if |op| says it. NULL: |a| is, or memory is out.
pestle_value_t* pestle_pass_meet(pestle_formula_t* f, pestle_op_t op,
                                 const pestle_node_t* like, pestle_value_t* a,
                                 const pestle_attr_t* dim,
                                 const pestle_type_t* type);

// --- Walking ---

typedef pestle_status_t (*pestle_pass_block_fn_t)(void* user,
                                                  pestle_module_t* module,
                                                  pestle_block_t* block);
// Whether the module has ops on complex numbers, besides views of their parts.
bool pestle_has_complex(const pestle_module_t* module);
// Calls |fn| for every block: bodies of while, if and case first, then the
// block around them. Regions of reductions and fusions are not entered.
PESTLE_NODISCARD pestle_status_t pestle_pass_each_block(
    pestle_module_t* module, pestle_pass_block_fn_t fn, void* user);
// Whether the node's regions hold ops that run on tensors of their own
// (while, if, case), not a reduction's scalars.
bool pestle_pass_has_bodies(const pestle_node_t* node);

// Erases every node of a block, last first, so that what it captured is free.
void pestle_pass_clear_block(pestle_block_t* block);

#endif  // PESTLE_PASSES_UTIL_H_
