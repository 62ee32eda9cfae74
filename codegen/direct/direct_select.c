// SPDX-License-Identifier: Apache-2.0
// select_and_scatter: what the gradient of a max pool is.
//
//   for g in group.x:                     axes that windows do not reach along
//     result[g, ..] = initial value
//     for s in the source's other axes:
//       best = the element of the window at s that the first region keeps
//       if there is one: result[best] = second region(result[best], source[s])
#include "codegen/direct/direct.h"

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
  uint32_t found, best, at;                 // variables
} select_t;

static void sort_axes(select_t* s) {
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
    if (alone) s->groups[s->group_count++] = *a;
    if (!alone) s->inner[s->inner_count++] = *a;
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
  for (uint32_t i = 0; i < s->inner_count; ++i) {
    pk_t x = loop(s, "x", s->inner[i].extent);
    at = pestle_kir_madi(s->d->k, x, s->inner[i].input, at);
  }
  pestle_direct_store(s->d, s->result, at, value);
  close(s);
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
    pk_t within = pestle_direct_clamp(d, p, 0, a->extent - 1);
    inside = pestle_direct_op(d, PESTLE_OP_AND, inside,
                              pestle_direct_op(d, PESTLE_OP_EQ, p, within));
    *at = pestle_kir_madi(d->k, within, a->input, *at);
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

bool pestle_direct_select_and_scatter_is_idle(const pestle_node_t* node) {
  (void)node;  // there is the initial value to be written at least
  return false;
}

pestle_status_t pestle_direct_select_and_scatter(pestle_direct_t* d) {
  const pestle_node_t* node = d->node;
  const pestle_type_t* x = pestle_node_operand(node, 0)->type;
  bool empty = !pestle_type_count(pestle_node_operand(node, 1)->type);
  select_t s = {.d = d};
  int64_t groups = 1, window = 1;
  sort_axes(&s);
  for (uint32_t i = 0; i < s.group_count; ++i)
    groups *= s.groups[i].extent;
  for (uint32_t i = 0; i < s.inner_count; ++i)
    window *= s.inner[i].size;
  s.result = pestle_direct_result(d, 0);
  s.initial = pestle_direct_operand(d, 2);
  if (!empty) {
    s.input = pestle_direct_operand(d, 0);
    s.source = pestle_direct_operand(d, 1);
  }
  pk_t at = pestle_direct_index(d, 0), from = at;
  pk_t g = pestle_kir_for(d->k, "g", at, pestle_direct_index(d, groups), 1,
                          PESTLE_KIR_GROUP_X);
  for (uint32_t i = s.group_count; i-- > 0;) {
    pk_t by = pestle_direct_index(d, s.groups[i].extent);
    pk_t c = pestle_direct_op(d, PESTLE_OP_REMAINDER, g, by);
    at = pestle_kir_madi(d->k, c, s.groups[i].input, at);
    from = pestle_kir_madi(d->k, c, s.groups[i].source, from);
    g = pestle_direct_op(d, PESTLE_OP_DIVIDE, g, by);
  }
  fill(&s, at);
  if (!empty) {
    s.found = pestle_direct_variable(d, "found", PESTLE_INDEX, 1);
    s.best = pestle_direct_variable(d, "best", x->dtype, 1);
    s.at = pestle_direct_variable(d, "at", PESTLE_INDEX, 1);
    PESTLE_TRY(emit_sources(&s, at, from));
  }
  pestle_kir_end(d->k);
  d->steps = (uint64_t)pestle_type_count(x) +
             (uint64_t)(pestle_type_count(pestle_node_operand(node, 1)->type) *
                        window * 12);
  return NULL;
}
