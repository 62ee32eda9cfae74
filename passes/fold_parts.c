// SPDX-License-Identifier: Apache-2.0
// Evaluates ops that follow from which partition a process is, for each of them: what
// weights a process has, and the numbers that say so. A load then takes a process' own
// part, and no run cuts it out.
//
//   %0 = partition_id                              (of 4)
//   %1 = dynamic_slice dense<[0, 4, 0, 4]>, %0
//   %2 = dynamic_slice %w, %1, size 4     ->   %2 = constant_part [w[0:4], w[4:8]],
//                                                   parts [0, 1, 0, 1]
//
// As constants, parts are turned, converted and scaled when they are made.
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "ir/collective.h"
#include "ir/ref/ref.h"
#include "passes/fold_constants.h"
#include "passes/util.h"
#include "pestle/runtime.h"

// Numbers are not made of more partitions: each has a place in the plan.
enum { MOST_PARTITIONS = 4096, MOST_OPERANDS = 16 };
// Parts up to this size may be larger than what they are made from, up to so many
// bytes of all.
#define SMALL_BYTES 1024
#define SMALL_IN_ALL ((int64_t)4 << 20)
// Steps that the evaluator may take for one op.
#define WORK_LIMIT ((int64_t)1 << 28)
// What only moves elements goes by several threads from so many bytes on.
#define LARGE_BYTES ((int64_t)256 << 10)

// Which of |count| different results each partition has; result i is made of the parts
// of one process that has it.
typedef struct table_t {
  int64_t* of;         // by partition
  int32_t* processes;  // by result
  int64_t count;
  int32_t partitions;
} table_t;

typedef struct folding_t {
  const pestle_pass_context_t* ctx;
  const pestle_node_t* node;
  table_t table;
  const void*
      constants[MOST_OPERANDS];  // elements of operands that all have alike
  char* results;
  size_t bytes;  // of one
  pestle_status_t* status;
} folding_t;

static const pestle_value_t* operand(const pestle_node_t* node, uint32_t i) {
  return pestle_node_operand(node, i);
}

static int64_t part_of(const pestle_node_t* node, uint32_t i, int32_t process) {
  return PESTLE_NODE_I64S(operand(node, i)->node, parts).data[process];
}

// --- Which results there are ---

static bool has_same(const pestle_node_t* node, int32_t a, int32_t b) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (pestle_value_constant_part(operand(node, i)) &&
        part_of(node, i, a) != part_of(node, i, b))
      return false;
  }
  return true;
}

static pestle_status_t find_results(folding_t* f) {
  table_t* t = &f->table;
  t->of = PESTLE_ARENA_ARRAY(f->ctx->scratch, int64_t, (size_t)t->partitions);
  t->processes =
      PESTLE_ARENA_ARRAY(f->ctx->scratch, int32_t, (size_t)t->partitions);
  if (!t->of || !t->processes) return PESTLE_OOM();
  for (int32_t p = 0; p < t->partitions; ++p) {
    int64_t i = 0;
    while (i < t->count && !has_same(f->node, t->processes[i], p))
      ++i;
    if (i == t->count) t->processes[t->count++] = p;
    t->of[p] = i;
  }
  return NULL;
}

// --- Whether it pays ---

// What each of the operands is: alike, or parts; and one is parts.
static bool has_parts(const pestle_node_t* node, int32_t partitions) {
  bool any = false;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_node_t* part = pestle_value_constant_part(operand(node, i));
    if (part && PESTLE_NODE_I64S(part, parts).count != (size_t)partitions)
      return false;
    if (!part && !pestle_value_constant(operand(node, i))) return false;
    any |= part != NULL;
  }
  return any;
}

static bool moves(const pestle_node_t* node) {
  return pestle_pass_info(node)->fuse == PESTLE_FUSE_VIEW ||
         node->op == PESTLE_OP_DYNAMIC_SLICE || node->op == PESTLE_OP_GATHER;
}

static bool is_affordable(const folding_t* f, int64_t in_all) {
  const pestle_node_t* node = f->node;
  int64_t stored = 0, work = 0;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_value_t* v = operand(node, i);
    const pestle_elements_t* e = pestle_value_constant_part(v)
                                     ? PESTLE_NODE_ELEMENTS(v->node)
                                     : pestle_value_constant(v);
    stored += (int64_t)e->size;
    work += pestle_type_count(v->type);
  }
  int64_t limit = f->ctx->options->fold_limit;
  if (limit > 0 && in_all > limit) return false;
  bool is_small = f->bytes <= SMALL_BYTES && in_all <= SMALL_IN_ALL;
  bool widens =
      node->op == PESTLE_OP_CONVERT || node->op == PESTLE_OP_DEQUANTIZE;
  if (!is_small && in_all > (widens ? 4 * stored : stored)) return false;
  if (moves(node)) return true;
  work += pestle_type_count(node->results[0].type);
  return !__builtin_mul_overflow(work, f->table.count, &work) &&
         work <= WORK_LIMIT &&
         (pestle_op_is_scalar((pestle_op_t)node->op) || is_small || widens);
}

// --- Making ---

static pestle_status_t make_parts(folding_t* f, const void* data,
                                  pestle_value_t** out) {
  const pestle_type_t* type = f->node->results[0].type;
  pestle_elements_t e = {
      .type = *type, .data = data, .size = f->bytes * (size_t)f->table.count};
  e.type.rank = type->rank + 1;
  e.type.dims[0] = f->table.count;
  for (int32_t d = 0; d < type->rank; ++d)
    e.type.dims[d + 1] = type->dims[d];
  pestle_attr_t attrs[] = {
      {PESTLE_ATTR_value, PESTLE_ATTR_KIND_ELEMENTS, .as.elements = &e},
      PESTLE_SET_I64S(parts, f->table.of, (size_t)f->table.partitions)};
  pestle_formula_t at = pestle_formula_before((pestle_node_t*)f->node);
  *out = pestle_f_emit(&at, &(pestle_node_spec_t){.op = PESTLE_OP_CONSTANT_PART,
                                                  .attrs = attrs,
                                                  .attr_count = 2,
                                                  .share_elements = true});
  return at.status;
}

// Keeps equal results once.
static pestle_status_t merge(folding_t* f) {
  table_t* t = &f->table;
  int64_t kept = 0;
  int64_t* to = PESTLE_ARENA_ARRAY(f->ctx->scratch, int64_t, (size_t)t->count);
  pestle_hash128_t* hashes =
      PESTLE_ARENA_ARRAY(f->ctx->scratch, pestle_hash128_t, (size_t)t->count);
  if (!to || !hashes) return PESTLE_OOM();
  for (int64_t i = 0; i < t->count; ++i) {
    const char* result = f->results + (size_t)i * f->bytes;
    pestle_hash128_t hash = pestle_hash128(result, f->bytes);
    int64_t k = 0;
    while (k < kept &&
           (hashes[k].low != hash.low || hashes[k].high != hash.high))
      ++k;
    to[i] = k;
    if (k < kept) continue;
    hashes[k] = hash;
    if (k < i) memcpy(f->results + (size_t)k * f->bytes, result, f->bytes);
    ++kept;
  }
  for (int32_t p = 0; p < t->partitions; ++p)
    t->of[p] = to[t->of[p]];
  t->count = kept;
  return NULL;
}

// One that all have alike is a constant.
static pestle_status_t make(folding_t* f, const char* data,
                            pestle_value_t** out) {
  if (f->table.count > 1) return make_parts(f, data, out);
  pestle_elements_t e = {
      .type = *f->node->results[0].type, .data = data, .size = f->bytes};
  pestle_formula_t at = pestle_formula_before((pestle_node_t*)f->node);
  *out = pestle_f_elements(&at, &e);
  return at.status;
}

static void evaluate(void* user, int64_t index) {
  const folding_t* f = user;
  const void* operands[MOST_OPERANDS];
  for (uint32_t i = 0; i < f->node->operand_count; ++i) {
    operands[i] = f->constants[i];
    if (operands[i]) continue;
    int64_t part = part_of(f->node, i, f->table.processes[index]);
    operands[i] = pestle_constant_part_at(operand(f->node, i)->node, part).data;
  }
  void* result = f->results + (size_t)index * f->bytes;
  f->status[index] = pestle_ref_evaluate_node(
      pestle_context_allocator(f->ctx->context), f->node, operands, &result);
}

static pestle_status_t evaluate_all(folding_t* f) {
  const table_t* t = &f->table;
  for (uint32_t i = 0; i < f->node->operand_count; ++i) {
    const pestle_elements_t* e = pestle_value_constant(operand(f->node, i));
    if (!e) continue;
    f->constants[i] = pestle_pass_expand(e, f->ctx->scratch);
    if (!f->constants[i]) return PESTLE_OOM();
  }
  f->status =
      PESTLE_ARENA_ARRAY(f->ctx->scratch, pestle_status_t, (size_t)t->count);
  if (!f->status) return PESTLE_OOM();
  if ((int64_t)f->bytes * t->count >= LARGE_BYTES && t->count > 1) {
    pestle_context_parallel_for(f->ctx->context, t->count, evaluate, f);
  } else {
    for (int64_t i = 0; i < t->count; ++i)
      evaluate(f, i);
  }
  pestle_status_t status = NULL;
  for (int64_t i = 0; i < t->count; ++i)
    status = pestle_status_join(status, f->status[i]);
  return status;
}

// Where the parts lie behind one another already, as rows do: NULL where they do not.
static const char* in_place(const folding_t* f) {
  const pestle_node_t* n = f->node;
  const pestle_value_t* from = operand(n, 0);
  if (n->op == PESTLE_OP_RESHAPE && pestle_value_constant_part(from) &&
      PESTLE_NODE_ELEMENTS(from->node)->type.dims[0] == f->table.count) {
    for (int64_t i = 0; i < f->table.count; ++i) {
      if (part_of(n, 0, f->table.processes[i]) != i) return NULL;
    }
    return PESTLE_NODE_ELEMENTS(from->node)->data;
  }
  const pestle_elements_t* e = pestle_value_constant(from);
  const pestle_type_t* to = n->results[0].type;
  // Small ones may be equal, and are then one.
  if (n->op != PESTLE_OP_DYNAMIC_SLICE || f->bytes <= SMALL_BYTES || !e ||
      e->splat || !to->rank || !pestle_value_constant_part(operand(n, 1)))
    return NULL;
  for (int32_t d = 1; d < to->rank; ++d) {
    if (to->dims[d] != e->type.dims[d]) return NULL;
  }
  for (int64_t i = 0; i < f->table.count; ++i) {
    const pestle_node_t* first = operand(n, 1)->node;
    pestle_elements_t number =
        pestle_constant_part_at(first, part_of(n, 1, f->table.processes[i]));
    if (pestle_pass_element_i64(&number, 0) != i * to->dims[0]) return NULL;
  }
  return f->table.count * to->dims[0] <= e->type.dims[0] ? e->data : NULL;
}

static pestle_status_t fold(folding_t* f, pestle_module_t* module,
                            pestle_value_t** out) {
  PESTLE_TRY(find_results(f));
  int64_t in_all;
  if (__builtin_mul_overflow((int64_t)f->bytes, f->table.count, &in_all) ||
      !is_affordable(f, in_all))
    return NULL;
  const char* data = in_place(f);
  if (data) return make(f, data, out);
  f->results = pestle_arena_alloc(&module->arena, (size_t)in_all, 64);
  if (!f->results) return PESTLE_OOM();
  PESTLE_TRY(evaluate_all(f));
  PESTLE_TRY(merge(f));
  return make(f, f->results, out);
}

// The number of a partition is its part of all numbers.
static pestle_status_t fold_number(folding_t* f, pestle_module_t* module,
                                   pestle_value_t** out) {
  table_t* t = &f->table;
  t->count = t->partitions;
  size_t size = (size_t)t->count * sizeof(uint32_t);
  uint32_t* numbers = pestle_arena_alloc(&module->arena, size, 64);
  t->of = PESTLE_ARENA_ARRAY(f->ctx->scratch, int64_t, (size_t)t->count);
  if (!numbers || !t->of) return PESTLE_OOM();
  for (int64_t i = 0; i < t->count; ++i) {
    numbers[i] = (uint32_t)i;
    t->of[i] = i;
  }
  return make_parts(f, numbers, out);
}

pestle_status_t pestle_fold_parts(const pestle_pass_context_t* ctx,
                                  pestle_module_t* module, pestle_node_t* node,
                                  pestle_value_t** out) {
  bool number = node->op == PESTLE_OP_PARTITION_ID;
  out[0] = NULL;
  if (!number && (node->result_count != 1 || !node->operand_count ||
                  node->operand_count > MOST_OPERANDS || node->region_count))
    return NULL;
  const pestle_type_t* type = node->results[0].type;
  int32_t partitions = pestle_module_world(module).partitions;
  if (partitions < 2 || partitions > MOST_PARTITIONS ||
      type->rank == PESTLE_MAX_RANK || pestle_type_is_complex(type) ||
      (!number && !has_parts(node, partitions)))
    return NULL;
  folding_t f = {.ctx = ctx,
                 .node = node,
                 .table.partitions = partitions,
                 .bytes = pestle_type_bytes(type)};
  if (!f.bytes) return NULL;
  pestle_arena_mark_t mark = pestle_arena_mark(ctx->scratch);
  pestle_status_t status =
      number ? fold_number(&f, module, out) : fold(&f, module, out);
  pestle_arena_rewind(ctx->scratch, mark);
  return status;
}
