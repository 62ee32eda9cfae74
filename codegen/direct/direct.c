// SPDX-License-Identifier: Apache-2.0
#include "codegen/direct/direct.h"

#include <string.h>

bool pestle_is_direct(const pestle_node_t* node) {
  return pestle_op_info((pestle_op_t)node->op)->fuse == PESTLE_FUSE_DIRECT;
}

// The keys end at past + rows (passes/whole_attention.c).
int64_t pestle_direct_cached_rows(const pestle_node_t* node) {
  if (node->op != PESTLE_OP_ATTENTION) return 0;
  const pestle_node_t* keys = pestle_node_operand(node, 1)->node;
  if (!keys || keys->op != PESTLE_OP_EXTENT) return 0;
  const pestle_node_t* end = pestle_node_operand(keys, 1)->node;
  const pestle_elements_t* rows =
      end && end->op == PESTLE_OP_ADD
          ? pestle_value_constant(pestle_node_operand(end, 1))
          : NULL;
  double f;
  int64_t i = 0;
  if (rows) pestle_elements_first(rows, &f, &i);
  return i;
}

// Of several sequences the keys end behind the longest of them.
const pestle_value_t* pestle_direct_cached_past(const pestle_node_t* node) {
  const pestle_node_t* keys = pestle_node_operand(node, 1)->node;
  const pestle_node_t* end = pestle_node_operand(keys, 1)->node;
  const pestle_value_t* past = pestle_node_operand(end, 0);
  return past->node ? pestle_node_operand(past->node, 0) : past;
}

static bool has_label(const pestle_node_t* group, const char* wanted) {
  const char* label = PESTLE_NODE_STR(group, label);
  return label && strcmp(label, wanted) == 0;
}

// Of a group of products of one x and of what stands around them, of one that makes the
// bytes of x (passes/whole_block_dot.c and _lanes.c), or of a running reduction.
static const pestle_node_t* of_products(const pestle_node_t* group) {
  const pestle_block_t* body = pestle_node_body(group, 0);
  const pestle_node_t* n = body->first;
  if (has_label(group, "block_bytes") || has_label(group, "block_weights") ||
      has_label(group, "running")) {
    return body->last->prev;
  }
  if (!has_label(group, "block_dots")) return NULL;
  while (n && n->op != PESTLE_OP_BLOCK_DOT)
    n = n->next;
  return n;
}

const pestle_node_t* pestle_direct_whole_of(const pestle_node_t* node) {
  const pestle_node_t* scan = pestle_direct_scan_of(node);
  if (scan || node->op != PESTLE_OP_FUSION) return scan;
  const pestle_node_t* last = pestle_node_body(node, 0)->last->prev;
  if (last && pestle_direct_cached_rows(last)) return last;
  bool is_whole = last && (last->op == PESTLE_OP_ATTENTION_GRAD ||
                           last->op == PESTLE_OP_NORM_GRAD ||
                           last->op == PESTLE_OP_BLOCK_DOT);
  return is_whole ? last : of_products(node);
}

bool pestle_direct_is_idle(const pestle_node_t* node) {
  switch ((int)node->op) {
#define PESTLE_ROW_DIRECT(NAME, op) \
  case PESTLE_OP_##NAME:            \
    return pestle_direct_##op##_is_idle(node);
#define PESTLE_OP_BEGIN(NAME, op, mlir, OPERANDS, REGIONS, RESULTS, TYPE, \
                        FUSE, FLAGS)                                      \
  PESTLE_ROW_##FUSE(NAME, op)
#include "pestle/ops.def"
#undef PESTLE_ROW_DIRECT
  }
  return false;
}

static pestle_status_t emit(pestle_direct_t* d) {
  const pestle_node_t* whole = pestle_direct_whole_of(d->node);
  if (whole && whole->op == PESTLE_OP_SCAN) return pestle_direct_scan(d);
  if (whole && whole->op == PESTLE_OP_BLOCK_DOT)
    return pestle_direct_block_dot(d);
  if (whole && whole->op == PESTLE_OP_REDUCE_WINDOW)
    return pestle_direct_running(d);
  if (whole && has_label(d->node, "block_bytes"))
    return pestle_direct_block_bytes(d);
  if (whole && has_label(d->node, "block_weights"))
    return pestle_direct_block_weights(d);
  if (whole && whole->op == PESTLE_OP_ATTENTION)
    return pestle_direct_cached_attention(d);
  if (whole && whole->op == PESTLE_OP_ATTENTION_GRAD &&
      d->caps->flags & PESTLE_TARGET_LANES) {
    bool of_both = has_label(d->node, "attention_grad_keys_values");
    return pestle_direct_attention_grad_lanes(
        d, of_both || has_label(d->node, "attention_grad_keys"),
        of_both || has_label(d->node, "attention_grad_values"));
  }
  if (whole) {
    return whole->op == PESTLE_OP_NORM_GRAD ? pestle_direct_norm_grad(d)
                                            : pestle_direct_attention_grad(d);
  }
  switch ((int)d->node->op) {
#define PESTLE_ROW_DIRECT(NAME, op) \
  case PESTLE_OP_##NAME:            \
    return pestle_direct_##op(d);
#define PESTLE_OP_BEGIN(NAME, op, mlir, OPERANDS, REGIONS, RESULTS, TYPE, \
                        FUSE, FLAGS)                                      \
  PESTLE_ROW_##FUSE(NAME, op)
#include "pestle/ops.def"
  }
  return pestle_node_error(d->node, PESTLE_STATUS_INTERNAL,
                           "the op is not of class DIRECT");
}

// Values of the Kernel IR are real.
static pestle_status_t check_types(const pestle_node_t* node) {
  const char* where = NULL;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    pestle_dtype_t dtype = pestle_node_operand(node, i)->type->dtype;
    if (pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX)) {
      where = pestle_dtype_info(dtype)->name;
    }
  }
  for (uint32_t i = 0; i < node->result_count; ++i) {
    pestle_dtype_t dtype = node->results[i].type->dtype;
    if (pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX)) {
      where = pestle_dtype_info(dtype)->name;
    }
  }
  if (!where) return NULL;
  return pestle_node_error(node, PESTLE_STATUS_UNSUPPORTED,
                           "the op on %s has no kernel yet", where);
}

pestle_status_t pestle_direct_emit(pestle_direct_t* d,
                                   pestle_numerics_t numerics) {
  PESTLE_TRY(check_types(d->node));
  bool contract = numerics != PESTLE_NUMERICS_STRICT;
  d->k->facts = contract ? PESTLE_KIR_CONTRACT : 0;
  PESTLE_TRY(emit(d));
  return pestle_kir_finish(d->k);
}

// --- Buffers ---

// An op that needs more has checked that before.
static uint32_t add_argument(pestle_direct_t* d, pestle_kernel_arg_t arg,
                             const char* name, pestle_dtype_t dtype,
                             int64_t count, unsigned flags) {
  if (d->arg_count == PESTLE_KERNEL_MAX_ARGS) {
    d->k->failed = true;
    return 0;
  }
  d->args[d->arg_count++] = arg;
  return pestle_kir_add_buffer(d->k, name, PESTLE_KIR_GLOBAL, dtype, 1, count,
                               flags);
}

uint32_t pestle_direct_operand(pestle_direct_t* d, size_t operand) {
  const pestle_value_t* v = pestle_node_operand(d->node, operand);
  pestle_kernel_arg_t arg = {.kind = PESTLE_ARG_OPERAND,
                             .slot = (uint32_t)operand,
                             .elements = pestle_value_constant(v)};
  if (arg.elements) arg.kind = PESTLE_ARG_CONSTANT;
  uint32_t id = add_argument(d, arg, v->name ? v->name : "x", v->type->dtype,
                             pestle_type_count(v->type), PESTLE_KIR_READONLY);
  if (d->aligns && d->aligns[operand] && !d->k->failed) {
    d->k->buffer.data[id].align = d->aligns[operand];
  }
  return id;
}

uint32_t pestle_direct_argument(pestle_direct_t* d,
                                const pestle_value_t* value) {
  const pestle_block_t* body = pestle_node_body(d->node, 0);
  for (uint32_t i = 0; i < d->node->operand_count; ++i) {
    if (body->arguments[i] == value) return pestle_direct_operand(d, i);
  }
  d->k->failed = true;
  return 0;
}

bool pestle_direct_is_given(const pestle_direct_t* d,
                            const pestle_value_t* value) {
  if (value->node || value->block != pestle_node_body(d->node, 0)) return false;
  const pestle_value_t* v = pestle_node_operand(d->node, value->index);
  // Of another shape it is the same memory, or a copy, which all kernels behind it wait for.
  while (v->node && v->node->op == PESTLE_OP_RESHAPE)
    v = pestle_node_operand(v->node, 0);
  bool is_argument = !v->node && v->block && v->block->region->function;
  return is_argument || pestle_value_is_stored(v);
}

uint32_t pestle_direct_result(pestle_direct_t* d, size_t result) {
  const pestle_value_t* v = &d->node->results[result];
  pestle_kernel_arg_t arg = {.kind = PESTLE_ARG_RESULT,
                             .slot = (uint32_t)result};
  return add_argument(d, arg, v->name ? v->name : "y", v->type->dtype,
                      pestle_type_count(v->type), 0);
}

uint32_t pestle_direct_workspace(pestle_direct_t* d, pestle_dtype_t dtype,
                                 int64_t count) {
  pestle_kernel_arg_t arg = {
      .kind = PESTLE_ARG_WORKSPACE,
      .size = (uint64_t)count * pestle_dtype_size(dtype)};
  return add_argument(d, arg, "work", dtype, count, 0);
}

// --- Values ---

uint32_t pestle_direct_variable(pestle_direct_t* d, const char* name,
                                pestle_dtype_t dtype, unsigned lanes) {
  uint32_t variable =
      pestle_kir_add_buffer(d->k, name, PESTLE_KIR_PRIVATE, dtype, lanes, 1, 0);
  pestle_kir_alloc(d->k, variable);
  return variable;
}

pk_t pestle_direct_get(pestle_direct_t* d, uint32_t variable) {
  unsigned lanes = d->k->failed ? 1 : d->k->buffer.data[variable].lanes;
  return pestle_kir_load(d->k, variable, lanes, pestle_kir_index(d->k, 0),
                         PESTLE_KIR_NONE, 0);
}

void pestle_direct_set(pestle_direct_t* d, uint32_t variable, pk_t value) {
  pestle_direct_store(d, variable, pestle_kir_index(d->k, 0), value);
}

pk_t pestle_direct_index(pestle_direct_t* d, int64_t value) {
  return pestle_kir_index(d->k, value);
}

pk_t pestle_direct_op(pestle_direct_t* d, pestle_op_t op, pk_t a, pk_t b) {
  return pestle_kir_scalar(d->k, op, a, b, PESTLE_KIR_NONE);
}

pk_t pestle_direct_select(pestle_direct_t* d, pk_t condition, pk_t yes,
                          pk_t no) {
  return pestle_kir_scalar(d->k, PESTLE_OP_SELECT, condition, yes, no);
}

pk_t pestle_direct_clamp(pestle_direct_t* d, pk_t a, int64_t lo, int64_t hi) {
  a = pestle_direct_op(d, PESTLE_OP_MAXIMUM, a, pestle_direct_index(d, lo));
  return pestle_direct_op(d, PESTLE_OP_MINIMUM, a, pestle_direct_index(d, hi));
}

pk_t pestle_direct_load(pestle_direct_t* d, uint32_t buffer, pk_t index) {
  return pestle_kir_load(d->k, buffer, 1, index, PESTLE_KIR_NONE, 0);
}

void pestle_direct_store(pestle_direct_t* d, uint32_t buffer, pk_t index,
                         pk_t value) {
  pestle_kir_store(d->k, buffer, index, value, PESTLE_KIR_NONE, 0);
}

// --- Regions ---

typedef struct inline_t {
  pestle_direct_t* d;
  pk_t* made;  // by the scratch of the region's values
} inline_t;

static pk_t constant(pestle_direct_t* d, const pestle_elements_t* e) {
  double f;
  int64_t i;
  pestle_elements_first(e, &f, &i);
  return pestle_kir_const(d->k, e->type.dtype, 1, f, i);
}

// A value of the region, or a constant from around it.
static pk_t value_of(const inline_t* in, const pestle_block_t* block,
                     const pestle_value_t* value) {
  const pestle_block_t* home = value->node ? value->node->block : value->block;
  if (home == block) return in->made[value->scratch];
  return constant(in->d, pestle_value_constant(value));
}

static pestle_status_t check_captures(const pestle_node_t* op,
                                      const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_value_t* v = pestle_node_operand(node, i);
    const pestle_block_t* home = v->node ? v->node->block : v->block;
    if (home == node->block || pestle_value_constant(v)) continue;
    return pestle_node_error(op, PESTLE_STATUS_UNSUPPORTED,
                             "its region uses a value from around it; pass it "
                             "as an operand");
  }
  return NULL;
}

static pestle_status_t inline_node(inline_t* in, const pestle_node_t* node,
                                   pk_t* out) {
  pestle_kir_builder_t* k = in->d->k;
  pk_t args[3] = {PESTLE_KIR_NONE, PESTLE_KIR_NONE, PESTLE_KIR_NONE};
  PESTLE_TRY(check_captures(in->d->node, node));
  const pestle_elements_t* e = pestle_value_constant(&node->results[0]);
  if (e) {
    *out = constant(in->d, e);
    return NULL;
  }
  for (uint32_t a = 0; a < node->operand_count && a < 3; ++a) {
    args[a] = value_of(in, node->block, pestle_node_operand(node, a));
  }
  pestle_dtype_t dtype = node->results[0].type->dtype;
  if (pestle_op_is_scalar((pestle_op_t)node->op)) {
    *out =
        pestle_kir_scalar(k, (pestle_op_t)node->op, args[0], args[1], args[2]);
  } else if (node->op == PESTLE_OP_CONVERT) {
    *out = pestle_kir_cast(k, args[0], dtype);
  } else if (node->op == PESTLE_OP_BITCAST_CONVERT) {
    *out = pestle_kir_bitcast(k, args[0], dtype);
  } else {
    return pestle_node_error(
        in->d->node, PESTLE_STATUS_UNSUPPORTED,
        "its region holds '%s'; it may hold scalar ops, converts and constants",
        pestle_op_info((pestle_op_t)node->op)->name);
  }
  return NULL;
}

// What the region returns, or, if it is not NULL, |wanted| of its block.
static pestle_status_t inline_region(pestle_direct_t* d, uint32_t region,
                                     const pk_t* arguments,
                                     const pestle_value_t* wanted,
                                     pk_t* out_results) {
  const pestle_block_t* block = pestle_node_body(d->node, region);
  size_t count = block->argument_count, next = 0;
  for (pestle_node_t* n = block->first; n; n = n->next)
    count += n->result_count;
  inline_t in = {.d = d};
  pestle_arena_t arena;
  pestle_arena_init(d->k->allocator, &arena);
  in.made = PESTLE_ARENA_ARRAY(&arena, pk_t, count + 1);
  pestle_status_t status =
      in.made ? NULL : PESTLE_ERROR(OUT_OF_MEMORY, "lowering a region");
  for (uint32_t a = 0; a < block->argument_count && !status; ++a) {
    block->arguments[a]->scratch = next;
    in.made[next++] = arguments[a];
  }
  for (pestle_node_t* n = block->first; n != block->last && !status;
       n = n->next) {
    n->results[0].scratch = next;
    status = inline_node(&in, n, &in.made[next++]);
  }
  if (!status) status = check_captures(d->node, block->last);
  if (wanted && !status) *out_results = value_of(&in, block, wanted);
  uint32_t results = wanted ? 0 : block->last->operand_count;
  for (uint32_t r = 0; r < results && !status; ++r) {
    out_results[r] = value_of(&in, block, pestle_node_operand(block->last, r));
  }
  pestle_arena_deinit(&arena);
  return status;
}

pestle_status_t pestle_direct_region(pestle_direct_t* d, uint32_t region,
                                     const pk_t* arguments, pk_t* out_results) {
  return inline_region(d, region, arguments, NULL, out_results);
}

pestle_status_t pestle_direct_region_value(pestle_direct_t* d, uint32_t region,
                                           const pk_t* arguments,
                                           const pestle_value_t* value,
                                           pk_t* out_value) {
  return inline_region(d, region, arguments, value, out_value);
}
