// SPDX-License-Identifier: Apache-2.0
// The primitive prefetch: memory that is asked for ahead of its use.
#include "base/bits.h"
#include "codegen/emit/emit_internal.h"
#include "codegen/schedule/schedule.h"

enum { LINE_BYTES = 64 };

static void ask(pestle_emit_t* e, const pestle_prefetch_t* f,
                const pestle_affine_t* at, int64_t by) {
  pestle_emit_prefetch(
      e, f->tensor,
      pestle_affine_add(e->nest, at, pestle_affine_const(e->nest, by)));
}

// --- At the end of a step ---

void pestle_emit_prefetch_step(pestle_emit_t* e, uint32_t stage) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  uint32_t n = s->order_count;
  for (size_t i = 0; i < e->nest->prefetches.size && !e->nest->failed; ++i) {
    const pestle_prefetch_t* f = &e->nest->prefetches.data[i];
    if (f->share || !n || s->order[n - 1] != f->loop) continue;
    const pestle_expr_t* read =
        pestle_schedule_find_read(e->nest, stage, f->like);
    if (!read) return;
    ask(e, f, pestle_emit_resolve(e, read->index[0]), f->by);
  }
}

// --- For the loops within ---

// Where |stage| writes |result|, which is one of the kernel.
static const pestle_affine_t* write_of(pestle_emit_t* e, uint32_t stage,
                                       uint32_t result) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  uint32_t v = 0;
  while (s->tensors[v] != result)
    ++v;
  return pestle_emit_resolve(e, s->write_index[v][0]);
}

static void ask_results(pestle_emit_t* e, uint32_t stage, void* user) {
  const uint32_t* loop = user;
  for (size_t i = 0; i < e->nest->prefetches.size && !e->nest->failed; ++i) {
    const pestle_prefetch_t* f = &e->nest->prefetches.data[i];
    if (f->share || f->loop != *loop) continue;
    ask(e, f, write_of(e, stage, f->like), f->by);
  }
}

void pestle_emit_prefetch_results(pestle_emit_t* e, uint32_t stage,
                                  const uint32_t* leaves, uint32_t count) {
  bool asks = false;
  uint32_t loop = leaves[0];
  for (size_t i = 0; i < e->nest->prefetches.size; ++i) {
    const pestle_prefetch_t* f = &e->nest->prefetches.data[i];
    asks |= f->loop == loop && !f->share;
  }
  if (!asks || count < 2) return;
  pestle_emit_walk_t w = {e, stage, ask_results, &loop, false};
  pestle_emit_walk(&w, leaves + 1, count - 1);
  pestle_emit_coords(e, stage);
}

// --- A share a step ---

static const pestle_affine_t* count_on(pestle_emit_t* e,
                                       const pestle_affine_t* steps,
                                       uint32_t axis) {
  int64_t extent = e->nest->axes.data[axis].full_extent;
  return pestle_affine_add(e->nest, pestle_affine_scale(e->nest, steps, extent),
                           e->value[axis]);
}

// The number of the step of the counted loops of |s|, and before them of those
// that it is placed under, from the innermost out, as far as |first|, what it
// reads first, is the same at all their steps.
static const pestle_affine_t* count_steps(pestle_emit_t* e,
                                          const pestle_nest_stage_t* s,
                                          const pestle_affine_t* first) {
  const pestle_nest_stage_t* under =
      pestle_nest_stage(e->nest, (uint32_t)s->at_stage);
  const pestle_affine_t* steps = pestle_affine_const(e->nest, 0);
  uint32_t last = 0, from;
  bool nested = false;
  while (under->order[last] != (uint32_t)s->at_axis)
    ++last;
  for (from = last + 1; from > 0; --from) {
    uint32_t axis = under->order[from - 1];
    if (pestle_affine_coef(first, axis, &nested) || nested) break;
  }
  for (; from <= last; ++from) {
    steps = count_on(e, steps, under->order[from]);
  }
  for (uint32_t i = 0; i < s->order_count; ++i) {
    uint32_t axis = s->order[i];
    if (pestle_nest_counts_on(e->nest, axis)) {
      steps = count_on(e, steps, axis);
    }
  }
  return steps;
}

// |index| at the first step of |stage| under the loop that it is placed under.
static const pestle_affine_t* at_first_step(pestle_emit_t* e, uint32_t stage,
                                            const pestle_affine_t* index) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  bool open[PESTLE_NEST_MAX_AXES];
  const pestle_affine_t* value[PESTLE_NEST_MAX_AXES];
  for (uint32_t i = 0; i < s->order_count; ++i) {
    uint32_t axis = s->order[i];
    open[i] = e->open[axis];
    value[i] = e->value[axis];
    e->open[axis] = true;
    e->value[axis] = pestle_affine_const(e->nest, 0);
  }
  pestle_emit_coords(e, stage);
  const pestle_affine_t* first = pestle_emit_resolve(e, index);
  for (uint32_t i = 0; i < s->order_count; ++i) {
    e->open[s->order[i]] = open[i];
    e->value[s->order[i]] = value[i];
  }
  pestle_emit_coords(e, stage);
  return first;
}
// The part of |f| for step |steps|, line by line.
static void ask_share(pestle_emit_t* e, const pestle_prefetch_t* f,
                      const pestle_affine_t* first,
                      const pestle_affine_t* steps) {
  const pestle_nest_tensor_t* t = &e->nest->tensors.data[f->tensor];
  int64_t size = (int64_t)pestle_dtype_size(t->type.dtype);
  int64_t parts = pestle_ceil_div(f->share * size, LINE_BYTES);
  const pestle_affine_t* at = pestle_affine_add(
      e->nest, first, pestle_affine_scale(e->nest, steps, f->share));
  for (int64_t i = 0; i < parts; ++i)
    ask(e, f, at, f->by + i * pestle_ceil_div(f->share, parts));
}

void pestle_emit_prefetch_share(pestle_emit_t* e, uint32_t stage,
                                uint32_t loop) {
  const pestle_nest_stage_t* s = pestle_nest_stage(e->nest, stage);
  for (size_t i = 0; i < e->nest->prefetches.size && !e->nest->failed; ++i) {
    const pestle_prefetch_t* f = &e->nest->prefetches.data[i];
    if (!f->share || f->loop != loop) continue;
    const pestle_expr_t* read =
        pestle_schedule_find_read(e->nest, stage, f->tensor);
    if (!read) continue;
    const pestle_affine_t* first = at_first_step(e, stage, read->index[0]);
    ask_share(e, f, first, count_steps(e, s, first));
  }
}
