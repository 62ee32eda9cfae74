// SPDX-License-Identifier: Apache-2.0
// From one spread of a value to another, step by step: see partition.h.
//
//   add an axis        a slice, by this process' number        no bytes
//   a part -> sum      its place among zeros                   no bytes
//   sum -> a part      reduce_scatter
//   sum -> all         all_reduce
//   move an axis       all_to_all
//   other places       collective_permute
//   take one away      all_gather
//
// Steps that make less of the value come first, so that those behind them move less.
#include <string.h>

#include "base/mem.h"
#include "base/wire.h"
#include "passes/partition.h"

typedef pestle_axis_order_t order_t;
typedef pestle_spread_t spread_t;

typedef enum kind_t {
  DONE,
  SLICE,
  MASK,
  PLACE,
  REDUCE_SCATTER,
  ALL_REDUCE,
  ALL_TO_ALL,
  PERMUTE,
  ALL_GATHER,
} kind_t;

typedef struct step_t {
  kind_t kind;
  int dim, from;  // |from|: of ALL_TO_ALL
  order_t axes;
  spread_t after;
  pestle_combine_t combine;  // of the summands before it
  double bytes;
} step_t;

// --- Planning ---

static order_t tail(const order_t* order, int first) {
  order_t out = {.count = 0};
  for (int i = first; i < order->count; ++i)
    out.axes[out.count++] = order->axes[i];
  return out;
}

static int64_t bytes_of(const pestle_mesh_t* mesh, const spread_t* s,
                        const pestle_type_t* type) {
  pestle_type_t local = pestle_spread_local(mesh, s, type);
  return (int64_t)pestle_type_bytes(&local);
}

// The next axes of |want|'s dim that |now| uses as |place|.
static bool find_more(const spread_t* now, const spread_t* want, int32_t rank,
                      uint8_t place, pestle_axes_t without, step_t* out) {
  for (int d = 0; d < rank; ++d) {
    order_t a = pestle_spread_dim(now, d), b = pestle_spread_dim(want, d);
    int n = a.count;
    if (n >= b.count || pestle_axis_order_common(&a, &b) < n) continue;
    while (n < b.count && now->places[b.axes[n]] == place &&
           !pestle_axes_has(without, b.axes[n])) {
      ++n;
    }
    if (n == a.count) continue;
    out->dim = d;
    b.count = (uint8_t)n;
    out->axes = tail(&b, a.count);
    for (int i = 0; i < out->axes.count; ++i)
      out->after.places[out->axes.axes[i]] = PESTLE_AXIS_FREE;
    pestle_spread_set_dim(&out->after, d, &b);
    return true;
  }
  return false;
}

static bool find_move(const spread_t* now, const spread_t* want, int32_t rank,
                      step_t* out) {
  for (int d = 0; d < rank; ++d) {
    order_t a = pestle_spread_dim(now, d), b = pestle_spread_dim(want, d);
    if (pestle_axis_order_common(&a, &b) == a.count) continue;
    uint8_t axis = a.axes[a.count - 1];
    for (int e = 0; e < rank; ++e) {
      order_t to = pestle_spread_dim(now, e), w = pestle_spread_dim(want, e);
      if (e == d || to.count >= w.count || w.axes[to.count] != axis ||
          pestle_axis_order_common(&to, &w) < to.count) {
        continue;
      }
      --a.count;
      to.axes[to.count++] = axis;
      pestle_spread_set_dim(&out->after, d, &a);
      pestle_spread_set_dim(&out->after, e, &to);
      out->from = d;
      out->dim = e;
      out->axes = (order_t){{axis}, 1};
      return true;
    }
  }
  return false;
}

static bool find_gather(const spread_t* now, const spread_t* want, int32_t rank,
                        step_t* out) {
  for (int d = 0; d < rank; ++d) {
    order_t a = pestle_spread_dim(now, d), b = pestle_spread_dim(want, d);
    int common = pestle_axis_order_common(&a, &b);
    if (common == a.count) continue;
    out->dim = d;
    out->axes = tail(&a, common);
    a.count = (uint8_t)common;
    pestle_spread_set_dim(&out->after, d, &a);
    return true;
  }
  return false;
}

// The last axis of a dim that |want| sums up along: each process then has its part, and
// nothing of the others'.
static bool find_place(const spread_t* now, const spread_t* want, int32_t rank,
                       step_t* out) {
  pestle_axes_t sums = pestle_spread_sums(want);
  for (int d = 0; d < rank; ++d) {
    order_t a = pestle_spread_dim(now, d);
    if (!a.count || !pestle_axes_has(sums, a.axes[a.count - 1])) continue;
    uint8_t axis = a.axes[--a.count];
    out->dim = d;
    out->axes = (order_t){{axis}, 1};
    pestle_spread_set_dim(&out->after, d, &a);
    pestle_spread_set_sums(
        &out->after,
        (pestle_axes_t)(pestle_spread_sums(now) | pestle_axis_bit(axis)),
        (pestle_combine_t)want->combine);
    return true;
  }
  return false;
}

static order_t list_of(pestle_axes_t set) {
  order_t out = {.count = 0};
  for (int i = 0; i < PESTLE_MESH_AXES; ++i) {
    if (pestle_axes_has(set, i)) out.axes[out.count++] = (uint8_t)i;
  }
  return out;
}

static bool same_extents(const pestle_mesh_t* mesh, const spread_t* a,
                         const spread_t* b, int32_t rank) {
  for (int d = 0; d < rank; ++d) {
    if (pestle_spread_parts(mesh, a, d) != pestle_spread_parts(mesh, b, d))
      return false;
  }
  return true;
}

// What a process gets by the step, of |bytes| that it has.
static double wire_bytes(const pestle_mesh_t* mesh, const step_t* s,
                         double bytes) {
  int64_t n = pestle_axis_order_parts(mesh, &s->axes);
  switch (s->kind) {
    case REDUCE_SCATTER:
      return pestle_wire_bytes(PESTLE_COLLECTIVE_REDUCE_SCATTER, n, bytes);
    case ALL_REDUCE:
      return pestle_wire_bytes(PESTLE_COLLECTIVE_ALL_REDUCE, n, bytes);
    case ALL_TO_ALL:
      return pestle_wire_bytes(PESTLE_COLLECTIVE_ALL_TO_ALL, n, bytes);
    case ALL_GATHER:
      return pestle_wire_bytes(PESTLE_COLLECTIVE_ALL_GATHER, n, bytes);
    case PERMUTE:
      return pestle_wire_bytes(PESTLE_COLLECTIVE_PERMUTE, mesh->count, bytes);
    case DONE:
    case SLICE:
    case MASK:
    case PLACE:
      break;
  }
  return 0;
}

static step_t next_step(const pestle_mesh_t* mesh, const pestle_type_t* type,
                        const spread_t* now, const spread_t* want) {
  step_t s = {
      .kind = DONE, .after = *now, .combine = (pestle_combine_t)now->combine};
  pestle_axes_t sums = pestle_spread_sums(now);
  pestle_axes_t keeps = pestle_spread_sums(want);
  // Sums of another kind are none that are wanted.
  if (sums && keeps && now->combine != want->combine) keeps = 0;
  unsigned drops = sums & ~(unsigned)keeps;
  if (find_more(now, want, type->rank, PESTLE_AXIS_FREE, 0, &s)) {
    s.kind = SLICE;
  } else if (drops &&
             find_more(now, want, type->rank, PESTLE_AXIS_SUM, keeps, &s)) {
    s.kind = REDUCE_SCATTER;
  } else if (drops) {
    s.kind = ALL_REDUCE;
    s.axes = list_of((pestle_axes_t)drops);
    pestle_spread_set_sums(&s.after, sums & keeps,
                           (pestle_combine_t)now->combine);
  } else if (find_move(now, want, type->rank, &s)) {
    s.kind = ALL_TO_ALL;
  } else if (find_place(now, want, type->rank, &s)) {
    s.kind = PLACE;
  } else if (!sums && !pestle_spread_sums(want) &&
             !pestle_spread_equal(now, want) &&
             same_extents(mesh, now, want, type->rank)) {
    s.kind = PERMUTE;
    s.after = *want;
  } else if (find_gather(now, want, type->rank, &s)) {
    s.kind = ALL_GATHER;
  } else if (pestle_spread_sums(want) & ~(unsigned)pestle_spread_sums(now)) {
    s.kind = MASK;
    s.axes = list_of(pestle_spread_sums(want) &
                     (pestle_axes_t) ~(unsigned)pestle_spread_sums(now));
    pestle_spread_set_sums(&s.after, pestle_spread_sums(want),
                           (pestle_combine_t)want->combine);
  }
  s.bytes = wire_bytes(mesh, &s, (double)bytes_of(mesh, now, type));
  // What sums are made of is empty where there are none.
  if (!pestle_spread_sums(&s.after)) s.after.combine = 0;
  return s;
}

double partition_reshard_cost(const partition_t* p, const pestle_type_t* type,
                              const spread_t* from, const spread_t* to) {
  spread_t now = *from;
  double bytes = 0;
  // Most values are wanted as they lie.
  if (pestle_spread_equal(from, to)) return 0;
  for (;;) {
    step_t s = next_step(p->mesh, type, &now, to);
    if (s.kind == DONE) return bytes;
    bytes += s.bytes;
    now = s.after;
  }
}

// --- Forms ---

static bool is_in_reach(const partition_t* p, const partition_form_t* f) {
  return f->depth <= p->depth && p->levels[f->depth].block == f->block;
}

const partition_form_t* partition_nearest(const partition_t* p,
                                          const partition_value_t* v,
                                          const spread_t* to,
                                          double* out_cost) {
  const partition_form_t* best = NULL;
  *out_cost = 0;
  for (const partition_form_t* f = v->forms; f; f = f->next) {
    if (!is_in_reach(p, f)) continue;
    double cost = partition_reshard_cost(p, v->value->type, &f->spread, to);
    bool exact = pestle_spread_equal(&f->spread, to);
    if (best && !exact && cost >= *out_cost) continue;
    best = f;
    *out_cost = cost;
    if (exact) break;
  }
  return best;
}

static pestle_status_t add_form_at(partition_t* p, partition_value_t* v,
                                   uint32_t depth, const spread_t* spread,
                                   pestle_value_t* local) {
  partition_form_t* f = PESTLE_ARENA_NEW(p->arena, partition_form_t);
  if (!f) return PESTLE_OOM();
  *f = (partition_form_t){.spread = *spread,
                          .value = local,
                          .block = p->levels[depth].block,
                          .depth = depth,
                          .next = v->forms};
  v->forms = f;
  return NULL;
}

pestle_status_t partition_add_form(partition_t* p, const pestle_value_t* value,
                                   const spread_t* spread,
                                   pestle_value_t* local) {
  return add_form_at(p, partition_of(p, value), p->depth, spread, local);
}

// --- This process' number ---

typedef struct partition_number_t {
  order_t order;
  int64_t step;
  pestle_value_t* value;
  struct partition_number_t* next;
} partition_number_t;

static pestle_value_t* make_number(partition_t* p, pestle_formula_t* f,
                                   const order_t* order, int64_t step) {
  int64_t count = p->mesh->count;
  size_t size = (size_t)count * sizeof(int32_t);
  int32_t* table = pestle_f_memory(f, size);
  if (!table) return NULL;
  for (int64_t i = 0; i < count; ++i) {
    int64_t place = pestle_mesh_place(p->mesh, (int32_t)i);
    table[i] = (int32_t)(pestle_mesh_number(p->mesh, place, order) * step);
  }
  pestle_elements_t e = {.type = pestle_type_make(PESTLE_I32, 1, &count),
                         .data = table,
                         .size = size};
  pestle_value_t* at[2] = {pestle_f_elements(f, &e), p->process};
  pestle_attr_t one = PESTLE_SET_I64S(slice_sizes, (int64_t[]){1}, 1);
  if (!at[0]) return NULL;
  at[0] = pestle_f_make(f, PESTLE_OP_DYNAMIC_SLICE, at, 2, &one, 1, NULL);
  return pestle_f_reshape(f, at[0], 0, NULL);
}

// Where every block sees it: right behind the process' number.
pestle_value_t* partition_number(partition_t* p, const order_t* order,
                                 int64_t step) {
  for (const partition_number_t* n = p->numbers; n; n = n->next) {
    if (n->step == step && pestle_axis_order_equal(&n->order, order))
      return n->value;
  }
  partition_number_t* n = PESTLE_ARENA_NEW(p->arena, partition_number_t);
  if (!n) return NULL;
  pestle_formula_t f = pestle_formula_before(p->process->node->next);
  pestle_value_t* value = make_number(p, &f, order, step);
  pestle_status_release(f.status);
  if (!value) return NULL;
  *n = (partition_number_t){*order, step, value, p->numbers};
  p->numbers = n;
  return value;
}

// --- Steps ---

typedef struct move_t {
  partition_t* p;
  pestle_formula_t* f;
  const step_t* s;
  pestle_value_t* value;  // as it lies
  pestle_type_t type;     // of what it becomes
} move_t;

// A splat, and positions, are made anew.
static pestle_value_t* slice_source(move_t* m, int64_t extent) {
  const pestle_node_t* n = m->value->node;
  if (n && n->op == PESTLE_OP_CONSTANT && PESTLE_NODE_ELEMENTS(n)->splat) {
    pestle_elements_t e = *PESTLE_NODE_ELEMENTS(n);
    e.type = m->type;
    return pestle_f_elements(m->f, &e);
  }
  if (!n || n->op != PESTLE_OP_IOTA) return NULL;
  int64_t axis = PESTLE_NODE_I64(n, iota_dimension);
  pestle_value_t* iota = pestle_f_iota(m->f, &m->type, axis);
  if (axis != m->s->dim || !iota) return iota;
  pestle_value_t* first = partition_number(m->p, &m->s->axes, extent);
  if (!first) return NULL;
  first = pestle_f_convert(m->f, first, m->type.dtype);
  first = pestle_f_broadcast_to(m->f, first, &m->type, NULL);
  return pestle_f_add(m->f, iota, first);
}

static pestle_value_t* slice(move_t* m) {
  int64_t extent = m->type.dims[m->s->dim];
  pestle_value_t* made = slice_source(m, extent);
  if (made || m->f->status) return made;
  pestle_value_t* operands[PESTLE_MAX_RANK + 1] = {m->value};
  pestle_value_t* zero = pestle_f_scalar(m->f, PESTLE_I32, 0);
  for (int32_t d = 0; d < m->type.rank; ++d) {
    operands[d + 1] =
        d == m->s->dim ? partition_number(m->p, &m->s->axes, extent) : zero;
    if (!operands[d + 1]) return NULL;
  }
  pestle_attr_t sizes =
      PESTLE_SET_I64S(slice_sizes, m->type.dims, m->type.rank);
  return pestle_f_make(m->f, PESTLE_OP_DYNAMIC_SLICE, operands,
                       (size_t)m->type.rank + 1, &sizes, 1, NULL);
}

// The first of those that are summed up has the value.
static pestle_value_t* mask(move_t* m) {
  pestle_op_t op = pestle_combine_op((pestle_combine_t)m->s->after.combine);
  pestle_value_t* none = pestle_f_identity(m->f, op, m->type.dtype);
  pestle_value_t* number = partition_number(m->p, &m->s->axes, 1);
  if (!none || !number) return NULL;
  const pestle_elements_t* has = pestle_value_constant(m->value);
  const pestle_elements_t* wants = pestle_value_constant(none);
  size_t size = pestle_dtype_size(m->type.dtype);
  bool splat = has && (has->splat || !m->type.rank);
  if (splat && wants && !memcmp(has->data, wants->data, size)) return m->value;
  pestle_type_t flags = m->type;
  flags.dtype = PESTLE_I1;
  pestle_value_t* first = pestle_f_is_zero(m->f, number);
  first = pestle_f_broadcast_to(m->f, first, &flags, NULL);
  none = pestle_f_broadcast_to(m->f, none, &m->type, NULL);
  return pestle_f_select(m->f, first, m->value, none);
}

// The part where it belongs, among what changes no sum.
static pestle_value_t* place(move_t* m) {
  int64_t extent = m->value->type->dims[m->s->dim];
  pestle_op_t op = pestle_combine_op((pestle_combine_t)m->s->after.combine);
  pestle_value_t* none = pestle_f_identity(m->f, op, m->type.dtype);
  none = none ? pestle_f_broadcast_to(m->f, none, &m->type, NULL) : NULL;
  pestle_value_t* zero = pestle_f_scalar(m->f, PESTLE_I32, 0);
  pestle_value_t* operands[PESTLE_MAX_RANK + 2] = {none, m->value};
  if (!none) return NULL;
  for (int32_t d = 0; d < m->type.rank; ++d) {
    operands[d + 2] =
        d == m->s->dim ? partition_number(m->p, &m->s->axes, extent) : zero;
    if (!operands[d + 2]) return NULL;
  }
  return pestle_f_make(m->f, PESTLE_OP_DYNAMIC_UPDATE_SLICE, operands,
                       (size_t)m->type.rank + 2, NULL, 0, NULL);
}

static pestle_value_t* collective(move_t* m, pestle_op_t op,
                                  const pestle_attr_t* own, size_t own_count,
                                  bool global, bool reduces, bool typed) {
  pestle_elements_t groups;
  pestle_attr_t attrs[8] = {PESTLE_SET_I64(channel_handle, 1)};
  size_t n = 1;
  pestle_region_t* region = NULL;
  if (op != PESTLE_OP_COLLECTIVE_PERMUTE) {
    m->f->status =
        pestle_mesh_groups(m->p->mesh, &m->s->axes, m->p->arena, &groups);
    if (m->f->status) return NULL;
    attrs[n++] = (pestle_attr_t){.name = PESTLE_ATTR_replica_groups,
                                 .kind = PESTLE_ATTR_KIND_ELEMENTS,
                                 .as.elements = &groups};
  }
  if (global) attrs[n++] = PESTLE_SET_BOOL(use_global_device_ids, true);
  for (size_t i = 0; i < own_count; ++i)
    attrs[n++] = own[i];
  if (reduces) {
    region =
        pestle_f_region(m->f, pestle_combine_op(m->s->combine), m->type.dtype);
    if (!region) return NULL;
  }
  pestle_node_t* node = pestle_f_node(
      m->f, &(pestle_node_spec_t){.op = op,
                                  .operands = &m->value,
                                  .operand_count = 1,
                                  .attrs = attrs,
                                  .attr_count = n,
                                  .regions = &region,
                                  .region_count = reduces,
                                  .type = typed ? &m->type : NULL,
                                  .types = typed ? &m->type : NULL,
                                  .type_count = typed});
  return node ? &node->results[0] : NULL;
}

// A process for each part: the same one where it has the part already.
static pestle_status_t match(const pestle_mesh_t* mesh, const spread_t* from,
                             const spread_t* to, int32_t rank,
                             pestle_arena_t* arena, int64_t* pairs) {
  pestle_sharding_t a, b;
  PESTLE_TRY(pestle_spread_processes(mesh, from, rank, arena, &a));
  PESTLE_TRY(pestle_spread_processes(mesh, to, rank, arena, &b));
  int64_t n = 0, copies = a.copies;
  for (int64_t part = 0; part < mesh->count; part += copies) {
    unsigned char* taken =
        pestle_arena_alloc_zero(arena, 2 * (size_t)copies + 1, 1);
    if (!taken) return PESTLE_OOM();
    for (int64_t i = 0; i < copies; ++i) {
      for (int64_t k = 0; k < copies && !taken[i]; ++k) {
        if (taken[copies + k] || a.processes[part + k] != b.processes[part + i])
          continue;
        taken[i] = taken[copies + k] = 1;
        pairs[n++] = a.processes[part + k];
        pairs[n++] = b.processes[part + i];
      }
    }
    for (int64_t i = 0, k = 0; i < copies; ++i) {
      if (taken[i]) continue;
      while (taken[copies + k])
        ++k;
      taken[copies + k] = 1;
      pairs[n++] = a.processes[part + k];
      pairs[n++] = b.processes[part + i];
    }
  }
  return NULL;
}

static pestle_value_t* permute(move_t* m, const spread_t* from) {
  int64_t dims[2] = {m->p->mesh->count, 2};
  int64_t* pairs =
      PESTLE_ARENA_ARRAY(m->p->arena, int64_t, 2 * (size_t)dims[0] + 1);
  if (!pairs) return pestle_f_fail(m->f, PESTLE_OOM());
  m->f->status =
      match(m->p->mesh, from, &m->s->after, m->type.rank, m->p->arena, pairs);
  if (m->f->status) return NULL;
  pestle_elements_t e = {.type = pestle_type_make(PESTLE_I64, 2, dims),
                         .data = pairs,
                         .size = 2 * (size_t)dims[0] * sizeof(*pairs)};
  pestle_attr_t own = {.name = PESTLE_ATTR_source_target_pairs,
                       .kind = PESTLE_ATTR_KIND_ELEMENTS,
                       .as.elements = &e};
  return collective(m, PESTLE_OP_COLLECTIVE_PERMUTE, &own, 1, false, false,
                    false);
}

static pestle_value_t* take_step(move_t* m, const spread_t* from) {
  const step_t* s = m->s;
  int64_t n = pestle_axis_order_parts(m->p->mesh, &s->axes);
  pestle_attr_t own[3];
  switch (s->kind) {
    case SLICE:
      return slice(m);
    case MASK:
      return mask(m);
    case PLACE:
      return place(m);
    case REDUCE_SCATTER:
      own[0] = PESTLE_SET_I64(scatter_dimension, s->dim);
      return collective(m, PESTLE_OP_REDUCE_SCATTER, own, 1, true, true, true);
    case ALL_REDUCE:
      return collective(m, PESTLE_OP_ALL_REDUCE, NULL, 0, true, true, false);
    case ALL_TO_ALL:
      own[0] = PESTLE_SET_I64(split_dimension, s->dim);
      own[1] = PESTLE_SET_I64(concat_dimension, s->from);
      own[2] = PESTLE_SET_I64(split_count, n);
      return collective(m, PESTLE_OP_ALL_TO_ALL, own, 3, false, false, false);
    case PERMUTE:
      return permute(m, from);
    case ALL_GATHER:
      own[0] = PESTLE_SET_I64(all_gather_dim, s->dim);
      return collective(m, PESTLE_OP_ALL_GATHER, own, 1, true, false, true);
    case DONE:
      break;
  }
  return m->value;
}

static const char* const kind_names[] = {
    "",           "slice",      "mask",    "place",     "reduce_scatter",
    "all_reduce", "all_to_all", "permute", "all_gather"};

// "all_reduce over {data} of %h, 4096 bytes a process".
static void remark(partition_t* p, const partition_value_t* v,
                   const step_t* s) {
  pestle_remarks_t* remarks = p->ctx->remarks;
  if (!remarks || s->kind == SLICE || s->kind == MASK || s->kind == PLACE)
    return;
  pestle_strbuf_t text, what;
  pestle_strbuf_init(p->arena->allocator, &text);
  pestle_strbuf_init(p->arena->allocator, &what);
  pestle_strbuf_appendf(&text, "%s over {", kind_names[s->kind]);
  for (int i = 0; i < s->axes.count; ++i)
    pestle_strbuf_appendf(&text, "%s%s", i ? ", " : "",
                          p->mesh->names[s->axes.axes[i]]);
  pestle_strbuf_appendf(&text, "}, %.0f bytes to each process, for ", s->bytes);
  if (p->asker) pestle_remark_describe(p->asker, &text);
  pestle_strbuf_append_c(&text, ": now ");
  pestle_spread_print(p->mesh, &s->after, v->value->type->rank, &text);
  if (v->value->node) {
    pestle_remark_describe(v->value->node, &what);
  } else {
    pestle_strbuf_append_c(&what, v->value->name ? v->value->name : "argument");
  }
  if (!text.failed && !what.failed) {
    pestle_remarks_add(remarks,
                       &(pestle_remark_t){.pass = "partition",
                                          .code = kind_names[s->kind],
                                          .what = pestle_strbuf_cstr(&what),
                                          .text = pestle_strbuf_cstr(&text)});
  }
  pestle_strbuf_deinit(&what);
  pestle_strbuf_deinit(&text);
}

static pestle_status_t walk(partition_t* p, partition_value_t* v,
                            const partition_form_t* form, const spread_t* to,
                            pestle_value_t** out) {
  spread_t now = form->spread;
  uint32_t depth = form->depth;
  *out = form->value;
  for (;;) {
    step_t s = next_step(p->mesh, v->value->type, &now, to);
    if (s.kind == DONE) break;
    pestle_formula_t f = pestle_formula_make(p->levels[depth].builder);
    if (p->asker) f.builder.loc = p->asker->loc;
    move_t m = {.p = p,
                .f = &f,
                .s = &s,
                .value = *out,
                .type = pestle_spread_local(p->mesh, &s.after, v->value->type)};
    remark(p, v, &s);
    *out = take_step(&m, &now);
    PESTLE_TRY(f.status);
    if (!*out) return PESTLE_OOM();
    now = s.after;
    PESTLE_TRY(add_form_at(p, v, depth, &now, *out));
  }
  return NULL;
}

pestle_status_t partition_obtain(partition_t* p, const pestle_value_t* value,
                                 const spread_t* spread, pestle_value_t** out) {
  partition_value_t* v = partition_of(p, value);
  double cost;
  const partition_form_t* form = partition_nearest(p, v, spread, &cost);
  if (!form) {
    return PESTLE_ERROR(INTERNAL, "a value is used before it is divided");
  }
  return walk(p, v, form, spread, out);
}

pestle_status_t partition_obtain_whole(partition_t* p,
                                       const pestle_value_t* value,
                                       pestle_value_t** out) {
  pestle_spread_t whole = pestle_spread_whole();
  return partition_obtain(p, value, &whole, out);
}
