// SPDX-License-Identifier: Apache-2.0
// The form map: nothing is reduced. Axes are fused and split, with vectors along the
// innermost one.
#include <inttypes.h>

#include "codegen/sketch/choice.h"
#include "codegen/sketch/sketch.h"

enum {
  // Of a map kernel's group iteration, about: 16 KiB of f32 a tensor, so that
  // an argument and the result fill the 32 KiB of L1d and no more. Its other
  // bound is the cost of starting an iteration. Measured: 1024 and 16384 are the
  // same within noise for a multiply-add of 16k and of 1M elements, one thread.
  GROUP_ELEMENTS = 4096,
  // When leading axes have less inside than this part of it, the next one goes
  // inside too.
  LEAST_PART = 2,
  // Vectors of a light body side by side: FMA latency is 4 cycles.
  LIGHT_UNROLL = 4,
};

pestle_status_t pestle_sketch_fuse_axes(pestle_sketch_t* k, uint32_t kept) {
  for (uint32_t i = 0;
       i + 1 + kept < pestle_sketch_stage(k, k->anchor)->map_count;) {
    bool done = false;
    PESTLE_TRY(pestle_schedule_fuse(k->nest, k->anchor, i, &done));
    if (!done) ++i;
  }
  return NULL;
}

pestle_status_t pestle_sketch_bind_first(pestle_sketch_t* k, uint32_t count) {
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, k->anchor);
  for (uint32_t i = 0; i < count && !k->nested; ++i) {
    PESTLE_TRY(pestle_schedule_mark(k->nest, k->anchor, s->order[i],
                                    PESTLE_MARK_GROUP));
  }
  return NULL;
}

// Marks leading loops as group loops while each iteration keeps enough to do;
// |first_inner| is the position that must stay inside.
static pestle_status_t bind_leading(pestle_sketch_t* k, uint32_t first_inner,
                                    int64_t least) {
  int64_t inner = 1;
  uint32_t count = first_inner;
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, k->anchor);
  for (uint32_t i = first_inner; i < s->order_count; ++i) {
    inner *= pestle_sketch_extent(k, s->order[i]);
  }
  while (count > 1 && inner < least) {
    inner *= pestle_sketch_extent(k, s->order[--count]);
  }
  return pestle_sketch_bind_first(k, count);
}

pestle_status_t pestle_sketch_vectorise(pestle_sketch_t* k, uint32_t stage,
                                        uint32_t axis, int64_t unroll,
                                        uint32_t* out_outer) {
  pestle_nest_t* nest = k->nest;
  int64_t extent = pestle_sketch_extent(k, axis);
  int64_t lanes = pestle_sketch_lanes(k, extent);
  uint32_t outer = axis, inner = axis, v;
  int64_t block =
      lanes * pestle_sketch_min(unroll, (extent + lanes - 1) / lanes);
  PESTLE_TRY(pestle_schedule_split(nest, stage, axis, block, &outer, &inner));
  uint32_t u;
  PESTLE_TRY(pestle_schedule_split(nest, stage, inner, lanes, &u, &v));
  PESTLE_TRY(pestle_schedule_mark(nest, stage, u, PESTLE_MARK_UNROLL));
  PESTLE_TRY(pestle_schedule_mark(nest, stage, v, PESTLE_MARK_VECTOR));
  *out_outer = outer;
  return NULL;
}

// Whether tiles that are transposed go along the rows of the argument, not of the results.
// What is read in order comes before it is asked for; stores are scattered, a
// line here and there: lines that are asked for first, or that go past the caches,
// where nobody waits for them (stream_results()). Measured on Sapphire Rapids, 1
// thread, f32, in the order of results, asked for or not, and of the argument, asked
// for and past the caches: 4096 x 4096 34.2, 27.4 and 29.1, 8.1 ms; 2048 x 2048 7.8,
// 3.2 and 2.5, 2.3; 1024 x 1024 1433, 661 and 536, 665 us; 784 x 768 481, 286 and
// 256, 314; 512 x 512 136, 69 and 92, 229.
static bool scatters_stores(pestle_sketch_t* k) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  const pestle_nest_tensor_t* t = &k->nest->tensors.data[y->tensors[0]];
  int64_t row = pestle_sketch_extent(k, y->roots[y->map_count - 1]) *
                (int64_t)pestle_dtype_size(t->type.dtype);
  int64_t bytes = pestle_sketch_result_bytes(k);
  if (y->value_count > 1) return false;  // lines of one are parts of another's
  if (row % PESTLE_CPU_LINE || bytes < PESTLE_CPU_SCATTERED_LEAST) return false;
  static const pestle_question_t q = {
      "scattered_stores",
      "which of two orders prefetchers follow is measured alone"};
  static const double unknown[2] = {PESTLE_NOT_ESTIMATED, PESTLE_NOT_ESTIMATED};
  return pestle_choose_flag(k->nest, q, unknown, bytes >= k->l2);
}

// Square tiles that are transposed in registers: rows of tiles in groups, or all that go along
// an argument's rows, of which there may be few.
static pestle_status_t map_transposed(pestle_sketch_t* k, uint32_t tensor,
                                      uint32_t axis) {
  uint32_t tiles, first_inner = 0;
  k->scattered_stores = scatters_stores(k);
  pestle_sketch_note(
      k,
      "'%s' is read with a stride: square tiles of it are transposed in "
      "registers, instead of a gather an element",
      k->nest->tensors.data[tensor].name);
  PESTLE_TRY(pestle_sketch_transpose_in_registers(k, k->anchor, tensor, axis,
                                                  k->scattered_stores, &tiles));
  k->transposed_copy = (int32_t)k->anchor - 1;
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  while (y->order[first_inner] != tiles)
    ++first_inner;
  int64_t least = k->scattered_stores ? 0 : GROUP_ELEMENTS / LEAST_PART;
  return bind_leading(k, first_inner, least);
}

int64_t pestle_sketch_vectors(pestle_sketch_t* k, const pestle_vectors_t* v) {
  int64_t lanes = pestle_sketch_lanes(k, v->extent), values[4];
  pestle_numbers_t n = {
      .values = values, .usual = v->usual, .cost = v->cost, .user = v->user};
  for (int64_t x = 1; x <= 8; x *= 2) {
    if (x == v->usual || (x - 1) * lanes < v->extent) values[n.count++] = x;
  }
  return pestle_choose_number(k->nest, (pestle_question_t){"vectors", v->of},
                              &n);
}

typedef struct cut_t {
  pestle_sketch_t* k;
  double cycles;  // of all elements
  int64_t total;
} cut_t;

static double vectors_cycles(const void* user, int64_t vectors) {
  const cut_t* c = user;
  return pestle_sketch_beside_memory(
      c->k, pestle_sketch_map_cycles(c->k, c->k->anchor, vectors));
}

static double group_cycles(const void* user, int64_t group) {
  const cut_t* c = user;
  return pestle_sketch_group_cycles(c->k, c->cycles, c->total, group);
}

// Elements that a step of the group loop has.
static int64_t group_elements(pestle_sketch_t* k, const cut_t* c) {
  static const int64_t values[] = {GROUP_ELEMENTS / 4, GROUP_ELEMENTS,
                                   GROUP_ELEMENTS * 4, GROUP_ELEMENTS * 16};
  uint32_t count = 0;
  while (count < 4 && values[count] / 4 < c->total)
    ++count;
  if (count < 2) return GROUP_ELEMENTS;
  static const pestle_question_t q = {
      "group", "cycles of all cores: the map, starting pieces, and waiting"};
  pestle_numbers_t n = {.values = values,
                        .count = count,
                        .usual = GROUP_ELEMENTS,
                        .cost = group_cycles,
                        .user = c};
  return pestle_choose_number(k->nest, q, &n);
}

static int64_t count_elements(const pestle_sketch_t* k,
                              const pestle_nest_stage_t* s) {
  int64_t n = 1;
  for (uint32_t i = 0; i < s->root_count; ++i)
    n *= pestle_sketch_extent(k, s->roots[i]);
  return n;
}

// Whether a vector along both of two axes would read what lies near.
typedef struct near_t {
  const pestle_sketch_t* k;
  uint32_t a, b;
  int64_t outer, inner;  // steps of each in a vector
  bool far;
} near_t;

static void near_visit(void* user, const pestle_expr_t* e) {
  near_t* n = user;
  bool input = n->k->nest->tensors.data[e->i].kind == PESTLE_TENSOR_INPUT;
  if (!input || e->guard || e->packed) {
    n->far = true;
    return;
  }
  bool nested_a, nested_b;
  int64_t a = pestle_affine_coef(e->index[0], n->a, &nested_a);
  int64_t b = pestle_affine_coef(e->index[0], n->b, &nested_b);
  n->far |= nested_a || nested_b || a < 0 || b < 0 ||
            a * (n->outer - 1) + b * (n->inner - 1) >= 2 * n->k->lanes;
}

// A last axis shorter than a vector, along which elements are repeated, say: whole
// vectors along it and the one before. Measured on a Zen 5, one thread: 512 KiB of f32,
// each element twice, 32 us by vectors of 2 lanes.
static pestle_status_t flatten_short(pestle_sketch_t* k) {
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, k->anchor);
  if (s->map_count < 2 || k->nest->no_scratch) return NULL;
  near_t n = {
      .k = k, .a = s->roots[s->map_count - 2], .b = s->roots[s->map_count - 1]};
  n.inner = pestle_sketch_extent(k, n.b);
  if (n.inner < 2 || n.inner >= k->lanes) return NULL;
  n.outer = k->lanes / n.inner;
  pestle_nest_visit_values(k->nest, s, near_visit, &n);
  PESTLE_TRY(pestle_nest_status(k->nest));
  if (n.far || pestle_sketch_extent(k, n.a) < n.outer) return NULL;
  bool done;
  return pestle_schedule_flatten(k->nest, k->anchor, s->map_count - 2, &done);
}

pestle_status_t pestle_sketch_map(pestle_sketch_t* k) {
  pestle_nest_t* nest = k->nest;
  PESTLE_TRY(pestle_sketch_fuse_axes(k, 0));
  int32_t across;
  uint32_t axis;
  PESTLE_TRY(pestle_sketch_find_transposed(k, k->anchor, &across, &axis));
  if (across >= 0) return map_transposed(k, (uint32_t)across, axis);
  PESTLE_TRY(flatten_short(k));
  pestle_nest_stage_t* s = pestle_sketch_stage(k, k->anchor);
  if (s->root_count == 0) return NULL;
  uint32_t last = s->roots[s->root_count - 1];
  bool heavy = pestle_sketch_transcendental(k, s);
  int64_t extent = pestle_sketch_extent(k, last);
  cut_t cut = {.k = k, .total = count_elements(k, s)};
  pestle_vectors_t v = {
      .of = "cycles of a core: steps and loads, loops around them, bytes",
      .extent = extent,
      .usual = heavy ? 1 : LIGHT_UNROLL,
      .cost = vectors_cycles,
      .user = &cut};
  int64_t vectors = pestle_sketch_vectors(k, &v);
  cut.cycles = vectors_cycles(&cut, vectors);
  int64_t group = group_elements(k, &cut);
  pestle_sketch_note(
      k,
      "%" PRId64 " lanes of %" PRIu32 "-byte vectors along %" PRId64
      " elements, %" PRId64 " vectors side by side: %s",
      pestle_sketch_lanes(k, extent), k->caps->vector_bytes, extent, vectors,
      heavy ? "a function of tens of instructions fills the units alone"
            : "an operation takes 4 cycles and one starts in each");
  uint32_t piece = last;
  uint32_t first_inner = s->root_count - 1;
  if (extent > group) {
    uint32_t outer;
    PESTLE_TRY(
        pestle_schedule_split(nest, k->anchor, last, group, &outer, &piece));
    ++first_inner;
  } else if (s->root_count == 1) {
    uint32_t outer;
    PESTLE_TRY(
        pestle_schedule_split(nest, k->anchor, last, extent, &outer, &piece));
    ++first_inner;
  }
  uint32_t outer;
  PESTLE_TRY(pestle_sketch_vectorise(k, k->anchor, piece, vectors, &outer));
  return bind_leading(k, first_inner, group / LEAST_PART);
}
