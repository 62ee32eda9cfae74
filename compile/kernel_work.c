// SPDX-License-Identifier: Apache-2.0
// How much a kernel computes and moves, counted from its scheduled nest: what
// pieces for threads, profiles and explain go by. Of kernels without a nest the products alone.
#include <string.h>

#include "compile/kernels.h"

enum {
  // What a function like exp counts, in additions. A guess: 10 to 40.
  FUNCTION_OPS = 20,
};

// --- Operations ---

typedef struct work_t {
  uint8_t* seen;
  uint64_t ops;
} work_t;

// Whether |e| tells that a place is within its tensor.
static bool tests_border(const pestle_expr_t* e) {
  if (e->kind == PESTLE_EXPR_INSIDE) return true;
  return e->kind == PESTLE_EXPR_OP && e->op == PESTLE_OP_AND &&
         tests_border(e->args[0]) && tests_border(e->args[1]);
}

static void count_ops(work_t* w, const pestle_expr_t* e) {
  if (w->seen[e->id]) return;
  w->seen[e->id] = 1;
  // Padding beside what is read is no arithmetic.
  if (e->kind == PESTLE_EXPR_OP && e->op == PESTLE_OP_SELECT &&
      tests_border(e->args[0])) {
    count_ops(w, e->args[1]);
    return;
  }
  if (e->kind == PESTLE_EXPR_OP) {
    bool function =
        pestle_op_info((pestle_op_t)e->op)->flags & PESTLE_OP_FLAG_TRANS;
    w->ops += function ? FUNCTION_OPS : 1;
  }
  // A short dot product: two products of bf16, four of bytes, and the sums that
  // the reduction does not make.
  if (e->kind == PESTLE_EXPR_DOT) w->ops += e->dtype == PESTLE_F32 ? 3 : 7;
  for (int i = 0; i < 3; ++i) {
    if (e->args[i]) count_ops(w, e->args[i]);
  }
}

// A partial reduction walks one block of its reduction axis for each step of another.
static uint64_t points_of(const pestle_nest_t* nest,
                          const pestle_nest_stage_t* s) {
  uint64_t points = 1;
  for (uint32_t r = 0; r < s->root_count; ++r) {
    points *= (uint64_t)pestle_nest_axis_span(&nest->axes.data[s->roots[r]]);
  }
  return points;
}

// What |e| reads, before it was widened: 2 for f16 and bf16, 1 for bytes, else 0.
static int narrow_size(const pestle_nest_t* nest, const pestle_expr_t* e) {
  while (e->kind == PESTLE_EXPR_CAST)
    e = e->args[0];
  if (e->kind != PESTLE_EXPR_READ) return 0;
  pestle_dtype_t dtype = nest->tensors.data[e->i].type.dtype;
  if (dtype == PESTLE_F16 || dtype == PESTLE_BF16) return 2;
  return dtype == PESTLE_I8 || dtype == PESTLE_U8;
}

// Adds up |ops| of |s| by what its products are of.
static void add_products(const pestle_nest_t* nest,
                         const pestle_nest_stage_t* s, uint64_t ops,
                         pestle_kernel_t* k) {
  const pestle_expr_t* e = s->values[0];
  if (!s->is_reduction) return;
  if (e->kind == PESTLE_EXPR_DOT) {
    *(e->dtype == PESTLE_F32 ? &k->half_flops : &k->byte_flops) += ops;
  } else if (e->kind == PESTLE_EXPR_OP && e->op == PESTLE_OP_MULTIPLY) {
    int a = narrow_size(nest, e->args[0]), b = narrow_size(nest, e->args[1]);
    if (a == 2 && b == 2) k->half_flops += ops;
    if (a == 1 && b == 1) k->byte_flops += ops;
  }
}

// Of |ops| that |stage| says, those that are made.
static uint64_t made_of(const pestle_nest_t* nest, uint32_t stage,
                        uint64_t ops) {
  const pestle_nest_template_t* use = &nest->template;
  bool counts = use->row && use->row->work && use->stage == stage;
  return counts ? use->row->work(use, ops) : ops;
}

static void count_all(const pestle_nest_t* nest, uint8_t* seen,
                      pestle_kernel_t* k) {
  k->flops = k->half_flops = k->byte_flops = 0;
  for (size_t i = 0; i < nest->stages.size; ++i) {
    const pestle_nest_stage_t* s = &nest->stages.data[i];
    if (s->inlined) continue;
    work_t w = {.seen = seen, .ops = s->is_reduction};
    memset(seen, 0, nest->expr_count + 1);
    for (uint32_t v = 0; v < s->value_count; ++v)
      count_ops(&w, s->values[v]);
    uint64_t ops = made_of(nest, (uint32_t)i, points_of(nest, s) * w.ops);
    k->flops += ops;
    add_products(nest, s, ops, k);
  }
}

// A measure of the time of one thread that is older than the cost model; pieces
// are cut by it.
static uint64_t nanoseconds_of(const pestle_nest_t* nest) {
  uint64_t work = 0;
  for (size_t i = 0; i < nest->stages.size; ++i) {
    const pestle_nest_stage_t* s = &nest->stages.data[i];
    if (s->inlined) continue;
    bool product = s->is_reduction && s->values[0]->kind == PESTLE_EXPR_OP &&
                   s->values[0]->op == PESTLE_OP_MULTIPLY;
    bool dot = s->is_reduction && s->values[0]->kind == PESTLE_EXPR_DOT;
    work += points_of(nest, s) * (product || dot ? 1 : 4);
  }
  return work / 32 + 1;
}

// Of the extents that types have: all of a cache, however much of it a run reads.
static uint64_t products_of(const pestle_node_t* node) {
  const pestle_type_t* x = pestle_node_operand(node, 0)->type;
  const pestle_type_t* y = node->results[0].type;
  int64_t columns = y->dims[y->rank - 1], sums = 0;
  if (node->op == PESTLE_OP_BLOCK_DOT) sums = columns * x->dims[x->rank - 1];
  if (node->op == PESTLE_OP_ATTENTION) {
    const pestle_type_t* keys = pestle_node_operand(node, 1)->type;
    sums = keys->dims[keys->rank - 2] * (keys->dims[keys->rank - 1] + columns);
  }
  return 2 * (uint64_t)(pestle_type_count(y) / columns * sums);
}

uint64_t pestle_kernel_products(const pestle_node_t* node) {
  uint64_t flops = 0;
  if (node->op != PESTLE_OP_FUSION) return 0;
  for (const pestle_node_t* n = pestle_node_body(node, 0)->first; n;
       n = n->next) {
    if (n->op == PESTLE_OP_BLOCK_DOT || n->op == PESTLE_OP_ATTENTION)
      flops += products_of(n);
  }
  return flops;
}

// --- Bytes ---

typedef struct traffic_t {
  const pestle_nest_t* nest;
  uint64_t points;     // of the stage that reads
  uint64_t* elements;  // by tensor: touched, counted anew for each read
} traffic_t;

static uint64_t add_up(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void traffic_visit(void* user, const pestle_expr_t* e) {
  traffic_t* t = user;
  t->elements[e->i] = add_up(t->elements[e->i], t->points);
}

// What must be read and written once, however good the caches: all of an
// argument, or as much as there are reads, where a slice or a gather takes less.
static pestle_status_t count_bytes(pestle_nest_t* nest, uint64_t* elements,
                                   uint64_t* out_bytes) {
  traffic_t t = {.nest = nest, .elements = elements};
  for (size_t i = 0; i < nest->stages.size; ++i) {
    const pestle_nest_stage_t* s = &nest->stages.data[i];
    if (s->inlined) continue;
    t.points = points_of(nest, s);
    pestle_nest_visit_values(nest, s, traffic_visit, &t);
    for (uint32_t v = 0; v < s->value_count; ++v) {
      uint32_t to = s->tensors[v];
      elements[to] = add_up(elements[to], t.points);
    }
  }
  *out_bytes = 0;
  for (size_t i = 0; i < nest->tensors.size; ++i) {
    const pestle_nest_tensor_t* tensor = &nest->tensors.data[i];
    if (tensor->kind == PESTLE_TENSOR_STAGE) continue;
    uint64_t whole = pestle_type_bytes(&tensor->type), some;
    if (tensor->packed_width) whole /= (uint64_t)tensor->packed_width;
    if (__builtin_mul_overflow(elements[i],
                               pestle_dtype_size(tensor->type.dtype), &some)) {
      some = whole;
    }
    *out_bytes += some < whole ? some : whole;
  }
  return pestle_nest_status(nest);
}

pestle_status_t pestle_kernel_measure(pestle_nest_t* nest, pestle_kernel_t* k) {
  size_t tensors = nest->tensors.size * sizeof(uint64_t);
  pestle_arena_mark_t mark = pestle_arena_mark(nest->arena);
  uint8_t* seen = pestle_arena_alloc(nest->arena, nest->expr_count + 1, 1);
  uint64_t* elements =
      pestle_arena_alloc_zero(nest->arena, tensors + 1, _Alignof(uint64_t));
  pestle_status_t status = NULL;
  if (seen && elements) {
    count_all(nest, seen, k);
    k->work_ns = nanoseconds_of(nest);
    status = count_bytes(nest, elements, &k->bytes);
  } else {
    status = PESTLE_OOM();
  }
  pestle_arena_rewind(nest->arena, mark);
  return status;
}
