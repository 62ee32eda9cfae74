// SPDX-License-Identifier: Apache-2.0
// select_and_scatter: what the gradient of a max pool is.
//
//   for g in group.x:                     axes that windows do not reach along
//     result[g, ..] = initial value
//     for s in the source's other axes:
//       best = the element of the window at s that the first region keeps
//       if there is one: result[best] = second region(result[best], source[s])
//
// Where windows do not reach along the innermost axis, as of images whose features lie
// together, all of that goes in vectors along it: which element of a window is kept is a
// number a lane, and a second walk over the window changes the result where that is.
#include "codegen/direct/direct.h"

// A window of more elements is walked by a loop, one lane at a time.
enum { MOST_UNROLLED = 64 };

// Where a window lies along one axis.
typedef struct axis_t {
  int64_t extent, places, size, stride, low;
  int64_t input, source;  // a step in each tensor, in elements
} axis_t;

typedef struct select_t {
  pestle_direct_t* d;
  axis_t groups[PESTLE_MAX_RANK], inner[PESTLE_MAX_RANK];
  uint32_t group_count, inner_count;
  uint32_t input, source, initial, result;  // buffers
  uint32_t found, best, at;  // variables; |found| of lanes: which
  axis_t vector;             // the innermost axis; lanes of it
  unsigned lanes;            // 1: none
  pk_t mask;                 // of the group's lanes, or NONE
} select_t;

// Lanes of an innermost axis of |extent|, as few as take all of a short one.
static unsigned choose_lanes(const pestle_direct_t* d, pestle_dtype_t dtype,
                             int64_t extent) {
  enum { WORD = 4 };  // numbers of elements are i32
  size_t own = pestle_dtype_size(dtype), size = own > WORD ? own : WORD;
  unsigned lanes = (unsigned)(d->caps->vector_bytes / size);
  if ((d->caps->flags & PESTLE_TARGET_LANES) || extent < 2) return 1;
  while (lanes > 1 && lanes / 2 >= extent)
    lanes /= 2;
  return lanes < 1 ? 1 : lanes;
}

static void sort_axes(select_t* s, int64_t window) {
  const pestle_node_t* node = s->d->node;
  const pestle_type_t* x = pestle_node_operand(node, 0)->type;
  const pestle_type_t* y = pestle_node_operand(node, 1)->type;
  int64_t input = 1, source = 1;
  axis_t axes[PESTLE_MAX_RANK];
  for (int32_t i = x->rank; i-- > 0;) {
    axes[i] =
        (axis_t){.extent = x->dims[i],
                 .places = y->dims[i],
                 .size = PESTLE_NODE_I64S(node, window_dimensions).data[i],
                 .stride = PESTLE_NODE_I64S(node, window_strides).data[i],
                 .low = PESTLE_NODE_I64S(node, padding).data[2 * i],
                 .input = input,
                 .source = source};
    input *= x->dims[i];
    source *= y->dims[i];
  }
  for (int32_t i = 0; i < x->rank; ++i) {
    const axis_t* a = &axes[i];
    bool alone =
        a->size == 1 && a->stride == 1 && !a->low && a->places == a->extent;
    bool last = i == x->rank - 1;
    if (last && alone && window <= MOST_UNROLLED)
      s->lanes = choose_lanes(s->d, x->dtype, a->extent);
    if (last && s->lanes > 1) {
      s->vector = *a;
    } else if (alone) {
      s->groups[s->group_count++] = *a;
    } else {
      s->inner[s->inner_count++] = *a;
    }
  }
}

static pk_t loop(select_t* s, const char* name, int64_t count) {
  pk_t zero = pestle_direct_index(s->d, 0);
  pk_t end = pestle_direct_index(s->d, count);
  return pestle_kir_for(s->d->k, name, zero, end, 1, PESTLE_KIR_SERIAL);
}

static void close(select_t* s) {
  for (uint32_t i = 0; i < s->inner_count; ++i)
    pestle_kir_end(s->d->k);
}

static void fill(select_t* s, pk_t at) {
  pk_t value =
      pestle_direct_load(s->d, s->initial, pestle_direct_index(s->d, 0));
  value = pestle_kir_splat(s->d->k, value, s->lanes);
  for (uint32_t i = 0; i < s->inner_count; ++i) {
    pk_t x = loop(s, "x", s->inner[i].extent);
    at = pestle_kir_madi(s->d->k, x, s->inner[i].input, at);
  }
  pestle_kir_store(s->d->k, s->result, at, value, s->mask, 0);
  close(s);
}

// Place |p| along |a|, moved inside where windows leave the input, which |inside| notes.
static pk_t move_inside(pestle_direct_t* d, const axis_t* a, pk_t p,
                        pk_t* inside) {
  bool stays = a->low <= 0 &&
               (a->places - 1) * a->stride + a->size - a->low <= a->extent;
  if (stays) return p;
  pk_t within = pestle_direct_clamp(d, p, 0, a->extent - 1);
  pk_t same = pestle_direct_op(d, PESTLE_OP_EQ, p, within);
  *inside = pestle_direct_op(d, PESTLE_OP_AND, *inside, same);
  return within;
}

// One element of the window: whether it is in the input, and where.
static pk_t locate(select_t* s, const pk_t* place, pk_t* at) {
  pestle_direct_t* d = s->d;
  pk_t inside = pestle_kir_int(d->k, PESTLE_I1, 1, 1);
  for (uint32_t i = 0; i < s->inner_count; ++i) {
    const axis_t* a = &s->inner[i];
    pk_t w = loop(s, "w", a->size);
    pk_t p = pestle_direct_op(d, PESTLE_OP_ADD, w,
                              pestle_kir_madi(d->k, place[i], a->stride,
                                              pestle_direct_index(d, -a->low)));
    *at = pestle_kir_madi(d->k, move_inside(d, a, p, &inside), a->input, *at);
  }
  return inside;
}

static pestle_status_t select_best(select_t* s, const pk_t* place, pk_t at) {
  pestle_direct_t* d = s->d;
  pk_t base = at, keeps;
  pestle_direct_set(d, s->found, pestle_direct_index(d, 0));
  pestle_direct_set(d, s->at, base);
  pestle_direct_set(d, s->best,
                    pestle_direct_load(d, s->input, base));  // any value
  pk_t inside = locate(s, place, &at);
  pk_t found = pestle_direct_get(d, s->found);
  pk_t pair[2] = {pestle_direct_get(d, s->best),
                  pestle_direct_load(d, s->input, at)};
  PESTLE_TRY(pestle_direct_region(d, 0, pair, &keeps));
  pk_t one = pestle_direct_index(d, 1);
  keeps = pestle_direct_op(d, PESTLE_OP_AND, keeps,
                           pestle_direct_op(d, PESTLE_OP_EQ, found, one));
  pk_t takes =
      pestle_direct_op(d, PESTLE_OP_AND, inside,
                       pestle_kir_scalar(d->k, PESTLE_OP_NOT, keeps,
                                         PESTLE_KIR_NONE, PESTLE_KIR_NONE));
  pestle_direct_set(d, s->best,
                    pestle_direct_select(d, takes, pair[1], pair[0]));
  pestle_direct_set(
      d, s->at,
      pestle_direct_select(d, takes, at, pestle_direct_get(d, s->at)));
  pestle_direct_set(d, s->found, pestle_direct_select(d, takes, one, found));
  close(s);
  return NULL;
}

// |at| and |from|: where the group's elements begin.
static pestle_status_t emit_sources(select_t* s, pk_t at, pk_t from) {
  pestle_direct_t* d = s->d;
  pk_t place[PESTLE_MAX_RANK], value;
  int64_t count = pestle_type_count(d->node->results[0].type);
  for (uint32_t i = 0; i < s->inner_count; ++i) {
    place[i] = loop(s, "s", s->inner[i].places);
    from = pestle_kir_madi(d->k, place[i], s->inner[i].source, from);
  }
  PESTLE_TRY(select_best(s, place, at));
  pk_t found = pestle_direct_get(d, s->found);
  found = pestle_direct_op(d, PESTLE_OP_EQ, found, pestle_direct_index(d, 1));
  pestle_kir_if(d->k, found);
  pk_t to = pestle_direct_clamp(d, pestle_direct_get(d, s->at), 0, count - 1);
  pk_t pair[2] = {pestle_direct_load(d, s->result, to),
                  pestle_direct_load(d, s->source, from)};
  PESTLE_TRY(pestle_direct_region(d, 1, pair, &value));
  pestle_direct_store(d, s->result, to, value);
  pestle_kir_end(d->k);
  close(s);
  return NULL;
}

// --- In vectors ---

// Element |number| of the window at |place|: where, and whether that is in the input, as a
// value of all lanes.
static pk_t locate_number(select_t* s, const pk_t* place, int64_t number,
                          pk_t* at) {
  pestle_direct_t* d = s->d;
  pk_t inside = pestle_kir_int(d->k, PESTLE_I1, 1, 1);
  for (uint32_t i = s->inner_count; i-- > 0;) {
    const axis_t* a = &s->inner[i];
    pk_t shift = pestle_direct_index(d, number % a->size - a->low);
    pk_t p = pestle_kir_madi(d->k, place[i], a->stride, shift);
    number /= a->size;
    *at = pestle_kir_madi(d->k, move_inside(d, a, p, &inside), a->input, *at);
  }
  return pestle_kir_splat(d->k, inside, s->lanes);
}

static pestle_status_t keep_best(select_t* s, const pk_t* place, pk_t at,
                                 int64_t number) {
  pestle_direct_t* d = s->d;
  pk_t keeps, inside = locate_number(s, place, number, &at);
  pk_t which = pestle_direct_get(d, s->found);
  pk_t pair[2];
  pair[0] = pestle_direct_get(d, s->best);
  pair[1] = pestle_kir_load(d->k, s->input, s->lanes, at, s->mask, 0);
  PESTLE_TRY(pestle_direct_region(d, 0, pair, &keeps));
  keeps = pestle_kir_splat(d->k, keeps, s->lanes);
  pk_t zero = pestle_kir_int(d->k, PESTLE_I32, s->lanes, 0);
  pk_t found = pestle_direct_op(d, PESTLE_OP_GE, which, zero);
  keeps = pestle_direct_op(d, PESTLE_OP_AND, keeps, found);
  pk_t takes = pestle_kir_scalar(d->k, PESTLE_OP_NOT, keeps, PESTLE_KIR_NONE,
                                 PESTLE_KIR_NONE);
  takes = pestle_direct_op(d, PESTLE_OP_AND, inside, takes);
  pestle_direct_set(d, s->best,
                    pestle_direct_select(d, takes, pair[1], pair[0]));
  pk_t own = pestle_kir_int(d->k, PESTLE_I32, s->lanes, number);
  pestle_direct_set(d, s->found, pestle_direct_select(d, takes, own, which));
  return NULL;
}

static pestle_status_t change_kept(select_t* s, const pk_t* place, pk_t at,
                                   int64_t number, pk_t which, pk_t source) {
  pestle_direct_t* d = s->d;
  pk_t value, inside = locate_number(s, place, number, &at);
  pk_t own = pestle_kir_int(d->k, PESTLE_I32, s->lanes, number);
  pk_t hit = pestle_direct_op(d, PESTLE_OP_EQ, which, own);
  hit = pestle_direct_op(d, PESTLE_OP_AND, hit, inside);
  pk_t pair[2] = {pestle_kir_load(d->k, s->result, s->lanes, at, s->mask, 0),
                  source};
  PESTLE_TRY(pestle_direct_region(d, 1, pair, &value));
  value = pestle_kir_splat(d->k, value, s->lanes);
  value = pestle_direct_select(d, hit, value, pair[0]);
  pestle_kir_store(d->k, s->result, at, value, s->mask, 0);
  return NULL;
}

static pestle_status_t emit_vectors(select_t* s, pk_t at, pk_t from,
                                    int64_t window) {
  pestle_direct_t* d = s->d;
  pk_t place[PESTLE_MAX_RANK];
  for (uint32_t i = 0; i < s->inner_count; ++i) {
    place[i] = loop(s, "s", s->inner[i].places);
    from = pestle_kir_madi(d->k, place[i], s->inner[i].source, from);
  }
  pestle_dtype_t dtype = pestle_node_operand(d->node, 0)->type->dtype;
  pestle_direct_set(d, s->found,
                    pestle_kir_int(d->k, PESTLE_I32, s->lanes, -1));
  pestle_direct_set(d, s->best, pestle_kir_const(d->k, dtype, s->lanes, 0, 0));
  for (int64_t w = 0; w < window; ++w)
    PESTLE_TRY(keep_best(s, place, at, w));
  pk_t which = pestle_direct_get(d, s->found);
  pk_t source = pestle_kir_load(d->k, s->source, s->lanes, from, s->mask, 0);
  for (int64_t w = 0; w < window; ++w)
    PESTLE_TRY(change_kept(s, place, at, w, which, source));
  close(s);
  return NULL;
}

// Takes group |g| apart: which lanes of the vector axis are its own, and what is left.
static pk_t begin_lanes(select_t* s, pk_t g, int64_t parts, pk_t* at,
                        pk_t* from) {
  pestle_direct_t* d = s->d;
  pk_t by = pestle_direct_index(d, parts);
  pk_t part = pestle_direct_op(d, PESTLE_OP_REMAINDER, g, by);
  pk_t first = pestle_kir_madi(d->k, part, s->lanes, PESTLE_KIR_NONE);
  if (s->vector.extent % s->lanes) {
    pk_t end = pestle_direct_index(d, s->vector.extent);
    s->mask = pestle_kir_mask(d->k, first, end, s->lanes);
  }
  *at = *from = first;
  return pestle_direct_op(d, PESTLE_OP_DIVIDE, g, by);
}

bool pestle_direct_select_and_scatter_is_idle(const pestle_node_t* node) {
  (void)node;  // there is the initial value to be written at least
  return false;
}

pestle_status_t pestle_direct_select_and_scatter(pestle_direct_t* d) {
  const pestle_node_t* node = d->node;
  const pestle_type_t* x = pestle_node_operand(node, 0)->type;
  bool empty = !pestle_type_count(pestle_node_operand(node, 1)->type);
  select_t s = {.d = d, .lanes = 1, .mask = PESTLE_KIR_NONE};
  int64_t groups = 1, window = 1;
  for (int32_t i = 0; i < x->rank; ++i)
    window *= PESTLE_NODE_I64S(node, window_dimensions).data[i];
  sort_axes(&s, window);
  for (uint32_t i = 0; i < s.group_count; ++i)
    groups *= s.groups[i].extent;
  s.result = pestle_direct_result(d, 0);
  s.initial = pestle_direct_operand(d, 2);
  if (!empty) {
    s.input = pestle_direct_operand(d, 0);
    s.source = pestle_direct_operand(d, 1);
  }
  pk_t at = pestle_direct_index(d, 0), from = at;
  int64_t parts = s.lanes > 1 ? (s.vector.extent + s.lanes - 1) / s.lanes : 1;
  pk_t g = pestle_kir_for(d->k, "g", at, pestle_direct_index(d, groups * parts),
                          1, PESTLE_KIR_GROUP_X);
  if (s.lanes > 1) g = begin_lanes(&s, g, parts, &at, &from);
  for (uint32_t i = s.group_count; i-- > 0;) {
    pk_t by = pestle_direct_index(d, s.groups[i].extent);
    pk_t c = pestle_direct_op(d, PESTLE_OP_REMAINDER, g, by);
    at = pestle_kir_madi(d->k, c, s.groups[i].input, at);
    from = pestle_kir_madi(d->k, c, s.groups[i].source, from);
    g = pestle_direct_op(d, PESTLE_OP_DIVIDE, g, by);
  }
  fill(&s, at);
  if (!empty && s.lanes > 1) {
    s.found = pestle_direct_variable(d, "which", PESTLE_I32, s.lanes);
    s.best = pestle_direct_variable(d, "best", x->dtype, s.lanes);
    PESTLE_TRY(emit_vectors(&s, at, from, window));
  } else if (!empty) {
    s.found = pestle_direct_variable(d, "found", PESTLE_INDEX, 1);
    s.best = pestle_direct_variable(d, "best", x->dtype, 1);
    s.at = pestle_direct_variable(d, "at", PESTLE_INDEX, 1);
    PESTLE_TRY(emit_sources(&s, at, from));
  }
  pestle_kir_end(d->k);
  d->steps = (uint64_t)pestle_type_count(x) +
             (uint64_t)(pestle_type_count(pestle_node_operand(node, 1)->type) *
                        window * 12) /
                 s.lanes;
  return NULL;
}
