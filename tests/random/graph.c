// SPDX-License-Identifier: Apache-2.0
// Growing a whole graph.
#include <stdlib.h>

#include "random/random.h"

// --- Rows ---

static bool is_control(pestle_op_t op) {
  uint8_t class = pestle_op_info(op)->fuse;
  return class == PESTLE_FUSE_CONTROL || class == PESTLE_FUSE_FUSION ||
         class == PESTLE_FUSE_COLLECTIVE;
}

static bool left_out[PESTLE_OP_COUNT][PESTLE_DTYPE_COUNT];

void leave_out(pestle_op_t op, pestle_dtype_t dtype) {
  for (int d = 0; d < PESTLE_DTYPE_COUNT; ++d)
    left_out[op][d] |= dtype == PESTLE_NONE || d == (int)dtype;
}

static value_t* grow_scalar(graph_t* g) {
  pestle_op_t op = (pestle_op_t)pick(g, PESTLE_SCALAR_COUNT);
  pestle_dtype_t dtype = pick_dtype(g, pestle_op_info(op)->kinds);
  return dtype && !left_out[op][dtype] ? build_scalar(g, op, dtype) : NULL;
}

static value_t* grow_structured(graph_t* g) {
  const row_t* row = &structured_rows[pick(g, (uint32_t)structured_row_count)];
  if (is_control(row->op) && (g->flat || g->depth > 1)) return NULL;
  pestle_dtype_t dtype = pick_dtype(g, row->kinds);
  if (!dtype || row->without >> dtype & 1) return NULL;
  if (left_out[row->op][dtype]) return NULL;
  return row->build(g, dtype);
}

// Rows of one operand on one another's results: what rewriting knows of pairs of
// them seldom shows else.
static void grow_chain(graph_t* g) {
  pestle_op_t ops[PESTLE_SCALAR_COUNT];
  uint32_t n = 0, length = 2 + pick(g, 3);
  pestle_dtype_t dtype = g->palette[pick(g, PALETTE)];
  for (uint32_t op = 0; op < PESTLE_SCALAR_COUNT; ++op) {
    const pestle_op_info_t* info = pestle_op_info((pestle_op_t)op);
    bool fits = info->operands == 1 && pestle_dtype_is(dtype, info->kinds);
    if (fits && !left_out[op][dtype]) ops[n++] = (pestle_op_t)op;
  }
  value_t* v = any_of(g, dtype, one_in(g, 2), 0);
  for (uint32_t i = 0; n && v && i < length; ++i) {
    if (v->leaf || v->value->type->dtype != dtype) break;
    spec_t s = {.op = ops[pick(g, n)]};
    spec_operand(&s, v);
    v = add(g, &s, NULL);
  }
}

void grow(graph_t* g, uint32_t count) {
  uint32_t until = g->ops + count;
  for (uint32_t tries = 0; g->ops < until && tries < 8 * count + 8; ++tries) {
    if (one_in(g, 16))
      grow_chain(g);
    else if (g->elementwise || pick(g, 100) < 52)
      grow_scalar(g);
    else
      grow_structured(g);
  }
}

// --- Shapes ---

static int64_t pick_extent(graph_t* g) {
  static const int64_t common[] = {1, 2,  3,  4,  5,  6,  7,  8,
                                   9, 13, 16, 17, 24, 31, 32, 33};
  static const int64_t large[] = {37, 64, 67, 101, 128, 131, 257, 1021};
  if (one_in(g, 40)) return 0;
  return one_in(g, 8) ? large[pick(g, 8)] : common[pick(g, 16)];
}

static pestle_type_t random_shape(graph_t* g) {
  for (;;) {
    pestle_type_t type = type_of(PESTLE_F32, 0, NULL);
    uint32_t rank = one_in(g, 12) ? 0 : 1 + pick(g, 4);
    while ((uint32_t)type.rank < rank)
      type.dims[type.rank++] = pick_extent(g);
    if (pestle_type_count(&type) <= g->limit / 2) return type;
  }
}

static void pick_shapes(graph_t* g) {
  for (int i = 0; i < 3; ++i)
    g->shapes[i] = random_shape(g);
  // One that the first becomes: turned round, or without an axis.
  pestle_type_t* t = &g->shapes[1];
  *t = g->shapes[0];
  for (int32_t i = 0; i < t->rank; ++i)
    t->dims[i] = g->shapes[0].dims[t->rank - 1 - i];
  if (t->rank && one_in(g, 2)) --t->rank;
}

static void pick_palette(graph_t* g) {
  for (int i = 0; i < PALETTE; ++i) {
    g->palette[i] = pick_any_dtype(g);
  }
  if (one_in(g, 3))
    g->palette[0] = is_generated(PESTLE_F32) ? PESTLE_F32 : PESTLE_F64;
}

// --- Whole graphs ---

static void pick_outputs(graph_t* g) {
  for (size_t i = g->count; i > 0 && g->output_count < MAX_OUTPUTS; --i) {
    value_t* v = g->values[i - 1];
    bool inner = v->uses && v->value->node && one_in(g, 10);
    bool end = !v->uses && v->value->node && !v->constant;
    if (end || inner) g->outputs[g->output_count++] = v;
  }
  if (!g->output_count) g->outputs[g->output_count++] = g->values[g->count - 1];
  pestle_value_t* values[MAX_OUTPUTS];
  for (size_t i = 0; i < g->output_count; ++i)
    values[i] = g->outputs[i]->value;
  expect(g, pestle_op_return(&g->b, values, g->output_count, NULL));
}

static void count_graph(graph_t* g) {
  if (!g->counts) return;
  ++g->counts->graphs;
  g->counts->ops += g->ops;
  g->counts->long_graphs += g->ops >= 50;
  ++g->counts->sizes[g->ops < 512 ? g->ops : 511];
}

graph_t* graph_make(pestle_context_t* context, uint64_t seed, counts_t* counts,
                    bool for_peer) {
  graph_t* g = calloc(1, sizeof(*g));
  g->context = context;
  g->seed = seed;
  // Far from the steps of pick(), or the next seed's numbers were this one's but
  // the first.
  g->random = (seed + 1) * UINT64_C(0xd1342543de82ef95);
  g->random ^= g->random >> 29;
  g->counts = counts;
  g->limit = one_in(g, 10) ? 8000 : one_in(g, 4) ? 1500 : 400;
  g->wanted = one_in(g, 8) ? 50 + pick(g, 16) : 9 + pick(g, 16);
  g->numerics = one_in(g, 3) ? PESTLE_NUMERICS_STRICT : PESTLE_NUMERICS_DEFAULT;
  g->no_fuse = one_in(g, 12);
  g->peer = for_peer;
  if (for_peer) g->numerics = PESTLE_NUMERICS_DEFAULT;
  pick_palette(g);
  pick_shapes(g);
  expect(g, pestle_module_create(context, "random", &g->module));
  expect(g, pestle_module_add_function(g->module, "main", NULL, NULL, 0,
                                       &g->function));
  g->b = pestle_builder_make(g->function);
  grow(g, g->wanted);
  pick_outputs(g);
  // Arguments came one by one: none has a name of the user's.
  g->function->argument_names =
      PESTLE_ARENA_ARRAY(&g->module->arena, const char*, MAX_INPUTS);
  expect(g, pestle_module_verify(g->module));
  count_graph(g);
  return g;
}

void graph_free(graph_t* g) {
  pestle_module_release(g->module);
  for (value_t* v = g->all; v;) {
    value_t* next = v->next;
    free(v->data);
    free(v->wide);
    free(v);
    v = next;
  }
  free(g);
}
