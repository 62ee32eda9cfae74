// SPDX-License-Identifier: Apache-2.0
// A scan whose turns treat each element by itself, all of it in one kernel: a group takes a
// few vectors of elements through all turns, and they stay in registers.
//
//   for g in group.x:                    some vectors of the elements
//     c = init[g]
//     for t in 0 .. length:
//       x = xs[t, g];  the body, on vectors;  ys[t, g] = y;  c = next
//     final[g] = c
//
// Values of one number are the same for all elements: each group computes them, the first
// one stores them. pestle_scan_wide() says of which scans this can be made.
#include "base/arena.h"
#include "base/mem.h"
#include "codegen/direct/direct_scan.h"

enum {
  VECTORS = 4,  // of each value in a group, so that none waits for another
  STATE = 16    // vectors that may be carried
};

typedef struct wide_t {
  pestle_direct_t* d;
  pestle_scan_t s;
  pestle_arena_t arena;
  int64_t elements;
  unsigned lanes, vectors;
  pk_t** made;  // by the scratch of the body's values
  size_t next;
  uint32_t *buffers, *variables;
  pk_t base, first;  // the group's first element; whether it is the first group
  pk_t masks[VECTORS];  // NONE where all elements of a vector are there
} wide_t;

static bool is_wide(const wide_t* x, const pestle_value_t* v) {
  return pestle_type_count(v->type) == x->elements;
}

static unsigned ids_of(const wide_t* x, const pestle_value_t* v) {
  return is_wide(x, v) ? x->vectors : 1;
}

static pestle_status_t begin_value(wide_t* x, pestle_value_t* v, pk_t** out) {
  *out = PESTLE_ARENA_ARRAY(&x->arena, pk_t, ids_of(x, v));
  if (!*out) return PESTLE_OOM();
  v->scratch = x->next;
  x->made[x->next++] = *out;
  return NULL;
}

// Id |at| of operand |i|, of which one number is for all.
static pk_t id_at(const wide_t* x, const pestle_node_t* n, uint32_t i,
                  unsigned at) {
  const pestle_value_t* v = pestle_node_operand(n, i);
  return x->made[v->scratch][is_wide(x, v) ? at : 0];
}

static pestle_status_t make_node(wide_t* x, pestle_node_t* n) {
  pk_t* out;
  pestle_kir_builder_t* k = x->d->k;
  pestle_value_t* result = &n->results[0];
  pestle_dtype_t dtype = result->type->dtype;
  PESTLE_TRY(begin_value(x, result, &out));
  for (unsigned i = 0; i < ids_of(x, result); ++i) {
    pk_t args[3] = {PESTLE_KIR_NONE, PESTLE_KIR_NONE, PESTLE_KIR_NONE};
    for (uint32_t a = 0; a < n->operand_count && a < 3; ++a)
      args[a] = id_at(x, n, a, i);
    switch ((int)n->op) {
      case PESTLE_OP_CONSTANT: {
        double f;
        int64_t number;
        pestle_elements_first(PESTLE_NODE_ELEMENTS(n), &f, &number);
        out[i] = pestle_kir_const(k, dtype, 1, f, number);
        break;
      }
      case PESTLE_OP_BROADCAST_IN_DIM:
      case PESTLE_OP_RESHAPE:
        out[i] = args[0];
        break;
      case PESTLE_OP_CONVERT:
        out[i] = pestle_kir_cast(k, args[0], dtype);
        break;
      case PESTLE_OP_BITCAST_CONVERT:
        out[i] = pestle_kir_bitcast(k, args[0], dtype);
        break;
      default:
        out[i] =
            pestle_kir_scalar(k, (pestle_op_t)n->op, args[0], args[1], args[2]);
    }
  }
  return NULL;
}

// --- Memory ---

// Where vector |at| of what begins at |start| lies.
static pk_t place_of(wide_t* x, pk_t start, unsigned at) {
  pk_t offset = pestle_direct_index(x->d, (int64_t)(at * x->lanes));
  pk_t place = pestle_direct_op(x->d, PESTLE_OP_ADD, x->base, offset);
  return start == PESTLE_KIR_NONE
             ? place
             : pestle_direct_op(x->d, PESTLE_OP_ADD, start, place);
}

// |v| of the array |buffer|, of which row |row| is meant (NONE: there are none).
static void load(wide_t* x, uint32_t buffer, const pestle_value_t* v, pk_t row,
                 pk_t* out) {
  pestle_kir_builder_t* k = x->d->k;
  if (!is_wide(x, v)) {
    pk_t at = row == PESTLE_KIR_NONE ? pestle_direct_index(x->d, 0) : row;
    out[0] = pestle_direct_load(x->d, buffer, at);
    return;
  }
  pk_t start = row == PESTLE_KIR_NONE
                   ? row
                   : pestle_kir_madi(k, row, x->elements, PESTLE_KIR_NONE);
  for (unsigned i = 0; i < x->vectors; ++i) {
    pk_t at = place_of(x, start, i);
    out[i] = pestle_kir_load(k, buffer, x->lanes, at, x->masks[i], 0);
  }
}

static void store(wide_t* x, uint32_t buffer, const pestle_value_t* v, pk_t row,
                  const pk_t* values) {
  pestle_kir_builder_t* k = x->d->k;
  if (!is_wide(x, v)) {
    pk_t at = row == PESTLE_KIR_NONE ? pestle_direct_index(x->d, 0) : row;
    pestle_kir_if(k, x->first);
    pestle_direct_store(x->d, buffer, at, values[0]);
    pestle_kir_end(k);
    return;
  }
  pk_t start = row == PESTLE_KIR_NONE
                   ? row
                   : pestle_kir_madi(k, row, x->elements, PESTLE_KIR_NONE);
  for (unsigned i = 0; i < x->vectors; ++i) {
    pk_t at = place_of(x, start, i);
    pk_t value = pestle_kir_splat(k, values[i], x->lanes);
    pestle_kir_store(k, buffer, at, value, x->masks[i], 0);
  }
}

static pestle_status_t load_argument(wide_t* x, size_t index, pk_t row) {
  pk_t* out;
  pestle_value_t* v = x->s.body->arguments[index];
  PESTLE_TRY(begin_value(x, v, &out));
  load(x, x->buffers[index], v, row, out);
  return NULL;
}

// --- Carries ---

static unsigned lanes_of(const wide_t* x, const pestle_value_t* v) {
  return is_wide(x, v) ? x->lanes : 1;
}

static pestle_status_t begin_carries(wide_t* x) {
  size_t at = 0;
  x->variables =
      PESTLE_ARENA_ARRAY(&x->arena, uint32_t, x->s.carry_count* VECTORS + 1);
  if (!x->variables) return PESTLE_OOM();
  for (size_t i = 0; i < x->s.carry_count; ++i) {
    const pestle_value_t* v = x->s.carry[i];
    pk_t values[VECTORS];
    load(x, x->buffers[i], v, PESTLE_KIR_NONE, values);
    for (unsigned e = 0; e < ids_of(x, v); ++e) {
      x->variables[at] =
          pestle_direct_variable(x->d, "c", v->type->dtype, lanes_of(x, v));
      pestle_direct_set(x->d, x->variables[at++], values[e]);
    }
  }
  return NULL;
}

static pestle_status_t get_carries(wide_t* x) {
  size_t at = 0;
  for (size_t i = 0; i < x->s.carry_count; ++i) {
    pk_t* out;
    PESTLE_TRY(begin_value(x, x->s.carry[i], &out));
    for (unsigned e = 0; e < ids_of(x, x->s.carry[i]); ++e)
      out[e] = pestle_direct_get(x->d, x->variables[at++]);
  }
  return NULL;
}

static void set_carries(wide_t* x) {
  size_t at = 0;
  for (size_t i = 0; i < x->s.carry_count; ++i) {
    const pestle_value_t* v = x->s.carry[i];
    const pk_t* next = x->made[x->s.next[i].value->scratch];
    for (unsigned e = 0; e < ids_of(x, v); ++e) {
      pk_t value = pestle_kir_splat(x->d->k, next[e], lanes_of(x, v));
      pestle_direct_set(x->d, x->variables[at++], value);
    }
  }
}

// --- The loop ---

static pestle_status_t emit_turn(wide_t* x, pk_t row) {
  const pestle_scan_t* s = &x->s;
  PESTLE_TRY(get_carries(x));
  for (size_t i = 0; i < s->xs_count; ++i)
    PESTLE_TRY(load_argument(x, s->carry_count + i, row));
  for (pestle_node_t* n = s->body->first; n != s->body->last; n = n->next)
    PESTLE_TRY(make_node(x, n));
  for (size_t i = 0; i < s->ys_count; ++i) {
    const pestle_value_t* y = s->y[i].value;
    store(x, x->buffers[s->node->operand_count + s->carry_count + i], y, row,
          x->made[y->scratch]);
  }
  set_carries(x);
  return NULL;
}

static void begin_group(wide_t* x) {
  pestle_direct_t* d = x->d;
  int64_t chunk = (int64_t)x->lanes * x->vectors;
  int64_t groups = (x->elements + chunk - 1) / chunk;
  pk_t zero = pestle_direct_index(d, 0);
  pk_t g = pestle_kir_for(d->k, "g", zero, pestle_direct_index(d, groups), 1,
                          PESTLE_KIR_GROUP_X);
  pk_t end = pestle_direct_index(d, x->elements);
  x->base = pestle_kir_madi(d->k, g, chunk, PESTLE_KIR_NONE);
  x->first = pestle_direct_op(d, PESTLE_OP_EQ, g, zero);
  for (unsigned i = 0; i < x->vectors; ++i) {
    x->masks[i] = x->elements % chunk
                      ? pestle_kir_mask(d->k, place_of(x, PESTLE_KIR_NONE, i),
                                        end, x->lanes)
                      : PESTLE_KIR_NONE;
  }
}

static pestle_status_t emit_loop(wide_t* x) {
  const pestle_scan_t* s = &x->s;
  begin_group(x);
  size_t first = s->carry_count + s->xs_count;
  for (size_t i = 0; i < s->constant_count; ++i)
    PESTLE_TRY(load_argument(x, first + i, PESTLE_KIR_NONE));
  PESTLE_TRY(begin_carries(x));
  pk_t zero = pestle_direct_index(x->d, 0);
  if (s->length) {
    pk_t end = pestle_direct_index(x->d, s->length);
    pk_t row = pestle_kir_for(x->d->k, "t", zero, end, 1, PESTLE_KIR_SERIAL);
    if (s->reverse) {
      pk_t last = pestle_direct_index(x->d, s->length - 1);
      row = pestle_kir_madi(x->d->k, row, -1, last);
    }
    PESTLE_TRY(emit_turn(x, row));
    pestle_kir_end(x->d->k);
  }
  PESTLE_TRY(get_carries(x));
  for (size_t i = 0; i < s->carry_count; ++i) {
    store(x, x->buffers[s->node->operand_count + i], s->carry[i],
          PESTLE_KIR_NONE, x->made[s->carry[i]->scratch]);
  }
  pestle_kir_end(x->d->k);
  return NULL;
}

// As many vectors in a group as registers hold and leave work for all cores.
static void choose_sizes(wide_t* x) {
  const pestle_target_caps_t* caps = x->d->caps;
  size_t widest = 1;
  for (uint32_t i = 0; i < x->s.body->argument_count; ++i) {
    size_t size = pestle_dtype_size(x->s.body->arguments[i]->type->dtype);
    if (size > widest) widest = size;
  }
  for (const pestle_node_t* n = x->s.body->first; n != x->s.body->last;
       n = n->next) {
    size_t size = pestle_dtype_size(n->results[0].type->dtype);
    if (size > widest) widest = size;
  }
  x->lanes = (unsigned)(caps->vector_bytes / widest);
  if (x->lanes < 1) x->lanes = 1;
  int64_t cores = caps->cores ? caps->cores : 1;
  int64_t all = (x->elements + x->lanes - 1) / x->lanes;
  int64_t vectors = all / cores;
  int64_t room = STATE / (int64_t)(x->s.carry_count ? x->s.carry_count : 1);
  if (vectors > room) vectors = room;
  x->vectors = (unsigned)(vectors < 1         ? 1
                          : vectors > VECTORS ? VECTORS
                                              : vectors);
}

static pestle_status_t emit(wide_t* x) {
  const pestle_scan_t* s = &x->s;
  size_t values = s->body->argument_count + 2 * s->carry_count + 1;
  for (const pestle_node_t* n = s->body->first; n; n = n->next)
    values += n->result_count;
  x->made = PESTLE_ARENA_ARRAY(&x->arena, pk_t*, values);
  if (!x->made) return PESTLE_OOM();
  PESTLE_TRY(pestle_direct_scan_buffers(x->d, &x->arena, s, &x->buffers));
  choose_sizes(x);
  return emit_loop(x);
}

pestle_status_t pestle_direct_scan_wide(pestle_direct_t* d,
                                        const pestle_scan_t* s,
                                        int64_t elements, int64_t ops) {
  wide_t x = {.d = d, .s = *s, .elements = elements};
  pestle_arena_init(d->k->allocator, &x.arena);
  pestle_status_t status = emit(&x);
  pestle_arena_deinit(&x.arena);
  d->steps = (uint64_t)s->length * (uint64_t)ops *
             (uint64_t)((elements + x.lanes - 1) / x.lanes);
  return status;
}
