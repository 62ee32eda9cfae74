// SPDX-License-Identifier: Apache-2.0
// Estimates for choices other than the tile of a contraction (sketch_cost.c): the steps of
// a map, plain reductions, results past the caches. They are shown by explain and say
// where the tuner begins; they do not choose the usual option. They are rougher than that
// model: numbers of steps and loads, the loop around them, and bytes by the cache that
// holds them.
#include "base/bits.h"
#include "codegen/sketch/sketch.h"

static double together(double a, double b) {
  return a > b ? a + b * PESTLE_CPU_HIDDEN_SHARE
               : b + a * PESTLE_CPU_HIDDEN_SHARE;
}

// --- What a stage does for one element ---

typedef struct body_t {
  uint8_t* seen;
  double steps, loads;
} body_t;

static void body_visit(body_t* b, const pestle_expr_t* e) {
  if (b->seen[e->id]) return;
  b->seen[e->id] = 1;
  if (e->kind == PESTLE_EXPR_READ) ++b->loads;
  if (e->kind == PESTLE_EXPR_OP) {
    bool function =
        pestle_op_info((pestle_op_t)e->op)->flags & PESTLE_OP_FLAG_TRANS;
    b->steps += function ? PESTLE_CPU_FUNCTION_STEPS : 1;
  }
  for (int i = 0; i < 3; ++i) {
    if (e->args[i]) body_visit(b, e->args[i]);
  }
}

// Cycles of one vector; a reduction's step, or a result to be stored, is one more.
static double body_cycles(pestle_sketch_t* k, const pestle_nest_stage_t* s) {
  body_t b = {.steps = s->is_reduction ? 1 : 0,
              .loads = s->is_reduction ? 0 : 1};
  b.seen = pestle_arena_alloc_zero(k->nest->arena, k->nest->expr_count + 1, 1);
  if (!b.seen) {
    pestle_nest_fail_memory(k->nest);
    return 1;
  }
  for (uint32_t v = 0; v < s->value_count; ++v)
    body_visit(&b, s->values[v]);
  pestle_core_rates_t rates = pestle_sketch_rates(k->caps);
  double steps = b.steps / rates.fmas, loads = b.loads / rates.loads;
  return steps > loads ? steps : loads;
}

// --- Bytes ---

double pestle_sketch_bytes_cycles(const pestle_sketch_t* k, double bytes) {
  pestle_core_rates_t rates = pestle_sketch_rates(k->caps);
  return bytes / (bytes <= (double)k->l2 / 2   ? rates.l2
                  : bytes <= (double)k->l3 / 2 ? rates.l3
                                               : rates.crowded);
}

double pestle_sketch_beside_memory(const pestle_sketch_t* k, double cycles) {
  double bytes = 0;
  for (uint32_t t = 0; t < k->nest->tensors.size; ++t) {
    const pestle_nest_tensor_t* u = &k->nest->tensors.data[t];
    if (u->kind != PESTLE_TENSOR_STAGE) {
      bytes += (double)pestle_type_bytes(&u->type);
    }
  }
  return together(cycles, pestle_sketch_bytes_cycles(k, bytes));
}

void pestle_sketch_stream_costs(const pestle_sketch_t* k, double out[2]) {
  pestle_core_rates_t rates = pestle_sketch_rates(k->caps);
  double bytes = (double)pestle_sketch_result_bytes(k);
  double left = PESTLE_CPU_LEFT_IN_L3 * (double)k->l3 / bytes;
  if (left > 1) left = 1;
  // A line that is not there comes, goes, and comes to its reader.
  out[0] = bytes * (left * 2 / rates.l3 + (1 - left) * 3 / rates.crowded);
  out[1] = bytes * 2 / rates.crowded;
}

// --- Maps ---

static double elements_of(const pestle_sketch_t* k,
                          const pestle_nest_stage_t* s) {
  double n = 1;
  for (uint32_t i = 0; i < s->map_count; ++i)
    n *= (double)pestle_sketch_extent(k, s->roots[i]);
  return n;
}

double pestle_sketch_map_cycles(pestle_sketch_t* k, uint32_t stage,
                                int64_t vectors) {
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, stage);
  double each = body_cycles(k, s) + (double)PESTLE_CPU_LOOP_CYCLES /
                                        (double)(vectors ? vectors : 1);
  return elements_of(k, s) / (double)k->lanes * each;
}

double pestle_sketch_group_cycles(const pestle_sketch_t* k, double cycles,
                                  int64_t total, int64_t group) {
  int64_t groups = pestle_ceil_div(total, group);
  int64_t rounds = pestle_ceil_div(groups, k->cores);
  double each =
      cycles * (double)group / (double)total + PESTLE_CPU_GROUP_CYCLES;
  double waits = each * (double)(rounds * k->cores);
  return groups > 1 ? waits : cycles * (double)k->cores;
}

// --- Plain reductions ---

// Of |rows| x |vectors| accumulators, each in |parts|.
static double tile_cycles(const pestle_sketch_t* k, double body,
                          int64_t reduction, int64_t accumulators,
                          int64_t parts) {
  double step =
      body * (double)accumulators + PESTLE_CPU_LOOP_CYCLES / (double)parts;
  double wait = pestle_sketch_rates(k->caps).latency / (double)parts;
  return (double)reduction * (step > wait ? step : wait) +
         (double)(PESTLE_CPU_TILE_CYCLES + 2 * accumulators);
}

double pestle_sketch_reduce_cycles(pestle_sketch_t* k,
                                   const pestle_register_tile_t* t,
                                   int64_t parts) {
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, t->reduce);
  int64_t width = pestle_sketch_extent(k, s->roots[s->map_count - 1]);
  int64_t height = t->row >= 0 ? pestle_sketch_extent(k, s->roots[t->row]) : 1;
  int64_t across = pestle_ceil_div(width, t->lanes);
  int64_t reduction = pestle_sketch_reduction_extent(k, s),
          rows = t->rows ? t->rows : 1;
  double body = body_cycles(k, s), cycles = 0;
  double columns = (double)pestle_ceil_div(height, rows) * elements_of(k, s) /
                   (double)(width * height);
  int64_t tail = across % t->vectors;
  cycles += columns * (double)(across / t->vectors) *
            tile_cycles(k, body, reduction, rows * t->vectors, parts);
  if (tail)
    cycles += columns * tile_cycles(k, body, reduction, rows * tail, parts);
  return cycles;
}

double pestle_sketch_scratch_cycles(pestle_sketch_t* k, uint32_t stage) {
  // Stored, and loaded again.
  pestle_core_rates_t rates = pestle_sketch_rates(k->caps);
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, stage);
  return elements_of(k, s) / (double)k->lanes * 2 / rates.loads;
}
