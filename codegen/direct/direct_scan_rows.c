// SPDX-License-Identifier: Apache-2.0
// A scan whose turns are by rows (ir/scan_rows.h) in one kernel for all turns: what is carried
// stays in a group's shared memory, and so, or in registers, do the matrices. A group takes a
// few rows; |split| lanes side by side share a column.
//
//   for g in group.x: for l in lane.x:              j = l / split, part = l % split
//     w[d, ..] = the lane's part of the columns     once
//     h[0] = init;  barrier
//     for t in 0 .. length:
//       x' = xs[t + 1, ..]                          the next turn's, on their way
//       stage = f(..);  barrier                     where a product wants whole rows of it
//       y, h' = f(x, h[t % 2, j], sg_reduce(sum of h[t % 2, ..] w[d, ..]))
//       ys[t, j] = y;  h[(t + 1) % 2, j] = h';  barrier
//     final = h[length % 2]
//
// Where a wide group does it, the state is in memory of the launch, the columns are divided
// among its execution units, u in lane.z, and the barrier is for all of them. What a lane
// alone reads of the state (c of an LSTM) is a variable of that lane.
//
// Of more rows than a lane keeps, each lane of a column takes one when the sums of all have
// been made (|by_lanes|).
//
// Without lanes, as on a CPU that takes what another target refused, each of these steps is
// a loop over the columns, and the matrices are read where they lie.
#include "codegen/direct/direct_scan_rows.h"

// --- Steps of all lanes ---

static void begin_step(pestle_direct_rows_t* x) {
  if (x->lanes) return;
  x->column =
      pestle_kir_for(x->k, "j", pestle_rows_number(x, 0),
                     pestle_rows_number(x, x->r.width), 1, PESTLE_KIR_SERIAL);
  pestle_rows_forget(x);
}

static void end_step(pestle_direct_rows_t* x) {
  if (!x->lanes) {
    pestle_kir_end(x->k);
    pestle_rows_forget(x);
  } else {
    pestle_kir_barrier(x->k);
  }
}

static void begin_stores(pestle_direct_rows_t* x) {
  if (x->lanes) pestle_kir_if(x->k, x->stores);
}

static void end_stores(pestle_direct_rows_t* x) {
  if (x->lanes) pestle_kir_end(x->k);
}

// Stores |value| as |v|'s own element in array |buffer|, of whose row |turn|.
static void store_home(pestle_direct_rows_t* x, uint32_t buffer,
                       const pestle_value_t* v, unsigned row, pk_t turn,
                       pk_t value) {
  pestle_scan_element_t at = {.at = {{false, 0, 0}}};
  if (!pestle_rows_is_one(v)) (void)pestle_scan_rows_place(&x->r, v->type, &at);
  pk_t base = turn == PESTLE_KIR_NONE
                  ? turn
                  : pestle_kir_madi(x->k, turn, pestle_type_count(v->type),
                                    PESTLE_KIR_NONE);
  pestle_direct_store(x->d, buffer,
                      pestle_rows_linear(x, v->type, &at, row, base), value);
}

// One number of all lanes and groups is stored by the first.
static void store_one(pestle_direct_rows_t* x, uint32_t buffer, pk_t at,
                      pk_t value) {
  pestle_kir_if(x->k, x->is_first);
  pestle_direct_store(x->d, buffer, at, value);
  pestle_kir_end(x->k);
}

// --- Before the turns ---

// Memory that all lanes of a group see: shared, or, where they are of several units, the
// launch's.
static uint32_t add_rows(pestle_direct_rows_t* x, const char* name,
                         pestle_dtype_t dtype, int64_t count) {
  if (x->wide) {
    int64_t groups = x->r.rows / x->fit.group_rows;
    return pestle_direct_workspace(x->d, dtype, groups * count);
  }
  return pestle_kir_add_buffer(x->k, name, PESTLE_KIR_SHARED, dtype, 1, count,
                               0);
}

static void add_buffers(pestle_direct_rows_t* x) {
  int64_t row = x->fit.group_rows * x->fit.depth;
  for (size_t i = 0; i < x->s.carry_count; ++i) {
    const pestle_value_t* v = x->s.carry[i];
    if (pestle_rows_is_one(v) || pestle_rows_is_own(x, i)) continue;
    x->state[i] = add_rows(x, "h", v->type->dtype, 2 * row);
  }
  for (uint32_t i = 0; i < x->r.stages; ++i)
    x->stage[i] = add_rows(x, "stage", x->r.stage[i]->type->dtype, row);
}

// What fills rows up is 0 from the beginning on.
static void clear(pestle_direct_rows_t* x, uint32_t buffer, pk_t base,
                  int64_t count, pestle_dtype_t dtype) {
  int64_t lanes = x->fit.lanes * x->fit.units;
  int64_t turns = (count + lanes - 1) / lanes;
  pk_t i = pestle_kir_repeat(x->k, "i", turns);
  pk_t at = pestle_kir_madi(x->k, i, lanes, x->of_group);
  pk_t last = pestle_rows_number(x, count - 1);
  pestle_kir_if(x->k, pestle_rows_op(x, PESTLE_OP_LE, at, last));
  at = pestle_rows_op(x, PESTLE_OP_MINIMUM, at, last);
  pestle_direct_store(x->d, buffer, pestle_rows_op(x, PESTLE_OP_ADD, base, at),
                      pestle_kir_const(x->k, dtype, 1, 0, 0));
  pestle_kir_end(x->k);
  pestle_kir_end_repeat(x->k, turns);
}

static void clear_all(pestle_direct_rows_t* x) {
  int64_t row = x->fit.group_rows * x->fit.depth;
  if (!x->lanes || x->fit.depth == x->r.width) return;
  for (size_t i = 0; i < x->s.carry_count; ++i) {
    const pestle_value_t* v = x->s.carry[i];
    if (!pestle_rows_is_one(v) && !pestle_rows_is_own(x, i))
      clear(x, x->state[i], x->state_at, 2 * row, v->type->dtype);
  }
  for (uint32_t i = 0; i < x->r.stages; ++i)
    clear(x, x->stage[i], x->stage_at, row, x->r.stage[i]->type->dtype);
  pestle_kir_barrier(x->k);
}

static void begin_own(pestle_direct_rows_t* x, size_t carry,
                      const pestle_scan_element_t* at) {
  const pestle_value_t* v = x->s.carry[carry];
  for (unsigned r = 0; r < pestle_rows_of_lane(x); ++r) {
    pk_t from = pestle_rows_linear(x, v->type, at, r, PESTLE_KIR_NONE);
    x->own[carry][r] = pestle_direct_variable(x->d, "c", v->type->dtype, 1);
    pestle_direct_set(x->d, x->own[carry][r],
                      pestle_direct_load(x->d, x->buffers[carry], from));
  }
}

static void begin_state(pestle_direct_rows_t* x) {
  pestle_scan_element_t at;
  pk_t zero = pestle_rows_number(x, 0);
  for (size_t i = 0; i < x->s.carry_count; ++i) {
    const pestle_value_t* v = x->s.carry[i];
    if (!pestle_rows_is_one(v)) {
      (void)pestle_scan_rows_place(&x->r, v->type, &at);
      if (pestle_rows_is_own(x, i)) begin_own(x, i, &at);
      continue;
    }
    x->state[i] = pestle_direct_variable(x->d, "c", v->type->dtype, 1);
    pestle_direct_set(x->d, x->state[i],
                      pestle_direct_load(x->d, x->buffers[i], zero));
  }
  begin_step(x);
  begin_stores(x);
  for (size_t i = 0; i < x->s.carry_count; ++i) {
    const pestle_value_t* v = x->s.carry[i];
    if (pestle_rows_is_one(v) || pestle_rows_is_own(x, i)) continue;
    (void)pestle_scan_rows_place(&x->r, v->type, &at);
    for (unsigned r = 0; r < pestle_rows_of_lane(x); ++r) {
      pk_t from = pestle_rows_linear(x, v->type, &at, r, PESTLE_KIR_NONE);
      pestle_direct_store(x->d, x->state[i],
                          pestle_rows_of_row(x, x->state_at, r, x->column),
                          pestle_direct_load(x->d, x->buffers[i], from));
    }
  }
  end_stores(x);
  end_step(x);
}

static pk_t row_of_turn(pestle_direct_rows_t* x, pk_t t) {
  if (!x->s.reverse) return t;
  return pestle_kir_madi(x->k, t, -1, pestle_rows_number(x, x->s.length - 1));
}

// What a lane keeps for all turns, and what it reads in the first.
static void begin_lane(pestle_direct_rows_t* x) {
  if (!x->lanes) return;
  for (uint32_t d = 0; d < x->r.dots; ++d)
    pestle_rows_load_column(x, d);
  pk_t first = row_of_turn(x, pestle_rows_number(x, 0));
  for (unsigned r = 0; r < pestle_rows_of_lane(x); ++r) {
    for (uint32_t i = 0; i < x->r.fixeds; ++i)
      x->fixed[i][r] = pestle_rows_load(x, &x->r.fixed[i], r, PESTLE_KIR_NONE);
    for (uint32_t i = 0; i < x->r.xs; ++i) {
      const pestle_value_t* v = x->s.body->arguments[x->r.x[i].argument];
      x->x[i][r] = pestle_direct_variable(x->d, "x", v->type->dtype, 1);
      pestle_direct_set(x->d, x->x[i][r],
                        pestle_rows_load(x, &x->r.x[i], r, first));
    }
  }
}

static void begin_lanes(pestle_direct_rows_t* x) {
  int64_t columns = x->r.width / x->fit.units;
  pk_t zero = pestle_rows_number(x, 0), unit = zero;
  pk_t split = pestle_rows_number(x, x->fit.split);
  if (x->wide) {
    unit = pestle_kir_for(x->k, "u", zero, pestle_rows_number(x, x->fit.units),
                          1, PESTLE_KIR_LANE_Z);
  }
  x->lane = pestle_kir_for(x->k, "l", zero, pestle_rows_number(x, x->fit.lanes),
                           1, PESTLE_KIR_LANE_X);
  x->part = pestle_rows_op(x, PESTLE_OP_REMAINDER, x->lane, split);
  pk_t column = pestle_rows_op(x, PESTLE_OP_DIVIDE, x->lane, split);
  pk_t last = pestle_rows_number(x, columns - 1);
  pk_t last_row = pestle_rows_number(x, x->fit.group_rows - 1);
  pk_t has_row = x->fit.by_lanes
                     ? pestle_rows_op(x, PESTLE_OP_LE, x->part, last_row)
                     : pestle_rows_op(x, PESTLE_OP_EQ, x->part, zero);
  x->stores = pestle_rows_op(x, PESTLE_OP_AND, has_row,
                             pestle_rows_op(x, PESTLE_OP_LE, column, last));
  if (x->fit.by_lanes)
    x->row[0] = pestle_rows_op(x, PESTLE_OP_MINIMUM, x->part, last_row);
  x->unit = unit;
  column = pestle_rows_op(x, PESTLE_OP_MINIMUM, column, last);
  x->column = pestle_kir_madi(x->k, unit, columns, column);
  x->of_group = pestle_kir_madi(x->k, unit, x->fit.lanes, x->lane);
  pk_t begins = pestle_rows_op(x, PESTLE_OP_EQ, x->lane, zero);
  x->is_first = pestle_rows_op(x, PESTLE_OP_AND, x->is_first, begins);
  if (!x->wide) return;
  begins = pestle_rows_op(x, PESTLE_OP_EQ, unit, zero);
  x->is_first = pestle_rows_op(x, PESTLE_OP_AND, x->is_first, begins);
}

static void begin_group(pestle_direct_rows_t* x) {
  int64_t groups = x->r.rows / x->fit.group_rows;
  pk_t zero = pestle_rows_number(x, 0);
  pk_t g = pestle_kir_for(x->k, "g", zero, pestle_rows_number(x, groups), 1,
                          PESTLE_KIR_GROUP_X);
  int64_t row = x->fit.group_rows * x->fit.depth;
  x->is_first = pestle_rows_op(x, PESTLE_OP_EQ, g, zero);
  x->state_at =
      x->wide ? pestle_kir_madi(x->k, g, 2 * row, PESTLE_KIR_NONE) : zero;
  x->stage_at = x->wide ? pestle_kir_madi(x->k, g, row, PESTLE_KIR_NONE) : zero;
  if (x->lanes) begin_lanes(x);
  for (unsigned r = 0; r < pestle_rows_of_lane(x) && !x->fit.by_lanes; ++r)
    x->row[r] =
        pestle_kir_madi(x->k, g, x->fit.group_rows, pestle_rows_number(x, r));
}

// --- A turn ---

static void make_stages(pestle_direct_rows_t* x) {
  for (uint32_t i = 0; i < x->r.stages; ++i) {
    pk_t values[PESTLE_SCAN_MOST_ROWS];
    begin_step(x);
    for (unsigned r = 0; r < pestle_rows_of_lane(x); ++r)
      values[r] = pestle_rows_value(x, x->r.stage[i], r);
    begin_stores(x);
    for (unsigned r = 0; r < pestle_rows_of_lane(x); ++r) {
      pk_t at = pestle_rows_of_row(x, x->stage_at, r, x->column);
      pestle_direct_store(x->d, x->stage[i], at, values[r]);
    }
    end_stores(x);
    end_step(x);
  }
}

// Values of one number, the same for all; what is carried of them changes last.
static pestle_status_t make_ones(pestle_direct_rows_t* x) {
  const pestle_scan_t* s = &x->s;
  pk_t* next = PESTLE_ARENA_ARRAY(&x->arena, pk_t, s->carry_count + 1);
  if (!next) return PESTLE_OOM();
  for (size_t i = 0; i < s->carry_count; ++i) {
    if (pestle_rows_is_one(s->carry[i]))
      next[i] = pestle_rows_value(x, s->next[i].value, 0);
  }
  for (size_t i = 0; i < s->ys_count; ++i) {
    const pestle_value_t* v = s->y[i].value;
    uint32_t buffer = x->buffers[s->node->operand_count + s->carry_count + i];
    if (pestle_rows_is_one(v))
      store_one(x, buffer, x->turn, pestle_rows_value(x, v, 0));
  }
  for (size_t i = 0; i < s->carry_count; ++i) {
    if (pestle_rows_is_one(s->carry[i]))
      pestle_direct_set(x->d, x->state[i], next[i]);
  }
  return NULL;
}

static pestle_status_t make_rows(pestle_direct_rows_t* x) {
  const pestle_scan_t* s = &x->s;
  unsigned rows = pestle_rows_of_lane(x);
  pk_t* values = PESTLE_ARENA_ARRAY(
      &x->arena, pk_t,
      (s->carry_count + s->ys_count) * PESTLE_SCAN_MOST_ROWS + 1);
  if (!values) return PESTLE_OOM();
  pk_t* ys = values + s->carry_count * PESTLE_SCAN_MOST_ROWS;
  for (unsigned r = 0; r < rows; ++r) {
    for (size_t i = 0; i < s->carry_count; ++i) {
      if (!pestle_rows_is_one(s->carry[i]))
        values[i * PESTLE_SCAN_MOST_ROWS + r] =
            pestle_rows_value(x, s->next[i].value, r);
    }
    for (size_t i = 0; i < s->ys_count; ++i) {
      if (!pestle_rows_is_one(s->y[i].value))
        ys[i * PESTLE_SCAN_MOST_ROWS + r] =
            pestle_rows_value(x, s->y[i].value, r);
    }
  }
  begin_stores(x);
  for (unsigned r = 0; r < rows; ++r) {
    for (size_t i = 0; i < s->carry_count; ++i) {
      if (pestle_rows_is_one(s->carry[i]) || pestle_rows_is_own(x, i)) continue;
      pestle_direct_store(x->d, x->state[i],
                          pestle_rows_of_row(x, x->next, r, x->column),
                          values[i * PESTLE_SCAN_MOST_ROWS + r]);
    }
    for (size_t i = 0; i < s->ys_count; ++i) {
      const pestle_value_t* v = s->y[i].value;
      uint32_t buffer = x->buffers[s->node->operand_count + s->carry_count + i];
      if (!pestle_rows_is_one(v))
        store_home(x, buffer, v, r, x->turn, ys[i * PESTLE_SCAN_MOST_ROWS + r]);
    }
  }
  end_stores(x);
  for (size_t i = 0; i < s->carry_count; ++i) {
    if (pestle_rows_is_one(s->carry[i]) || !pestle_rows_is_own(x, i)) continue;
    for (unsigned r = 0; r < rows; ++r)
      pestle_direct_set(x->d, x->own[i][r],
                        values[i * PESTLE_SCAN_MOST_ROWS + r]);
  }
  return NULL;
}

static pestle_status_t make_turn(pestle_direct_rows_t* x, pk_t t) {
  pk_t two = pestle_rows_number(x, 2), one = pestle_rows_number(x, 1);
  pk_t odd = pestle_rows_op(x, PESTLE_OP_REMAINDER, t, two);
  pk_t even = pestle_rows_op(x, PESTLE_OP_SUBTRACT, one, odd);
  int64_t row = x->fit.group_rows * x->fit.depth;
  pk_t following = pestle_rows_op(x, PESTLE_OP_MINIMUM,
                                  pestle_rows_op(x, PESTLE_OP_ADD, t, one),
                                  pestle_rows_number(x, x->s.length - 1));
  pk_t coming[PESTLE_SCAN_ROWS_READS][PESTLE_SCAN_MOST_ROWS];
  x->now = pestle_kir_madi(x->k, odd, row, x->state_at);
  x->next = pestle_kir_madi(x->k, even, row, x->state_at);
  x->turn = row_of_turn(x, t);
  pestle_rows_forget(x);
  following = row_of_turn(x, following);
  for (unsigned r = 0; x->lanes && r < pestle_rows_of_lane(x); ++r) {
    for (uint32_t i = 0; i < x->r.xs; ++i)
      coming[i][r] = pestle_rows_load(x, &x->r.x[i], r, following);
  }
  make_stages(x);
  begin_step(x);
  PESTLE_TRY(make_rows(x));
  end_step(x);
  PESTLE_TRY(make_ones(x));
  for (unsigned r = 0; x->lanes && r < pestle_rows_of_lane(x); ++r) {
    for (uint32_t i = 0; i < x->r.xs; ++i)
      pestle_direct_set(x->d, x->x[i][r], coming[i][r]);
  }
  return NULL;
}

// --- The kernel ---

static void store_finals(pestle_direct_rows_t* x) {
  const pestle_scan_t* s = &x->s;
  int64_t odd = s->length % 2;
  pk_t base = pestle_rows_op(
      x, PESTLE_OP_ADD, x->state_at,
      pestle_rows_number(x, odd * x->fit.group_rows * x->fit.depth));
  pestle_rows_forget(x);
  for (size_t i = 0; i < s->carry_count; ++i) {
    if (!pestle_rows_is_one(s->carry[i])) continue;
    store_one(x, x->buffers[s->node->operand_count + i],
              pestle_rows_number(x, 0), pestle_direct_get(x->d, x->state[i]));
  }
  begin_step(x);
  begin_stores(x);
  for (size_t i = 0; i < s->carry_count; ++i) {
    const pestle_value_t* v = s->carry[i];
    if (pestle_rows_is_one(v)) continue;
    for (unsigned r = 0; r < pestle_rows_of_lane(x); ++r) {
      pk_t value;
      if (pestle_rows_is_own(x, i)) {
        value = pestle_direct_get(x->d, x->own[i][r]);
      } else {
        pk_t at = pestle_rows_of_row(x, base, r, x->column);
        value = pestle_direct_load(x->d, x->state[i], at);
      }
      store_home(x, x->buffers[s->node->operand_count + i], v, r,
                 PESTLE_KIR_NONE, value);
    }
  }
  end_stores(x);
  if (!x->lanes) pestle_kir_end(x->k);
}

static pestle_status_t emit(pestle_direct_rows_t* x) {
  x->state = PESTLE_ARENA_ARRAY(&x->arena, uint32_t, x->s.carry_count + 1);
  x->memo =
      PESTLE_ARENA_ARRAY(&x->arena, pestle_scan_memo_t, PESTLE_SCAN_MEMOS);
  x->own = pestle_arena_alloc(
      &x->arena, (x->s.carry_count + 1) * sizeof(*x->own), _Alignof(uint32_t));
  if (!x->state || !x->memo || !x->own) return PESTLE_OOM();
  PESTLE_TRY(pestle_direct_scan_buffers(x->d, &x->arena, &x->s, &x->buffers));
  add_buffers(x);
  begin_group(x);
  clear_all(x);
  begin_lane(x);
  begin_state(x);
  pk_t t =
      pestle_kir_for(x->k, "t", pestle_rows_number(x, 0),
                     pestle_rows_number(x, x->s.length), 1, PESTLE_KIR_SERIAL);
  PESTLE_TRY(make_turn(x, t));
  pestle_kir_end(x->k);
  store_finals(x);
  if (x->lanes) pestle_kir_end(x->k);
  if (x->wide) pestle_kir_end(x->k);
  pestle_kir_end(x->k);
  return x->failed ? pestle_node_error(x->s.node, PESTLE_STATUS_INTERNAL,
                                       "its elements are not those that were "
                                       "found")
                   : NULL;
}

pestle_status_t pestle_direct_scan_rows(pestle_direct_t* d,
                                        const pestle_scan_t* s,
                                        const pestle_scan_rows_t* r) {
  pestle_direct_rows_t x = {.d = d, .k = d->k, .s = *s, .r = *r};
  x.lanes = (d->caps->flags & PESTLE_TARGET_LANES) != 0;
  pestle_scan_rows_room_t room = pestle_scan_rows_room(d->caps);
  if (!x.lanes) {
    x.fit = (pestle_scan_rows_fit_t){
        .group_rows = 1, .units = 1, .lanes = 1, .split = 1, .depth = r->width};
  } else if (!pestle_scan_rows_fit(r, pestle_scan_rows_state(s, r), &room,
                                   &x.fit)) {
    return pestle_node_error(s->node, PESTLE_STATUS_INTERNAL,
                             "a group has no room for what it carries");
  }
  x.wide = x.fit.units > 1;
  pestle_arena_init(d->k->allocator, &x.arena);
  pestle_status_t status = emit(&x);
  pestle_arena_deinit(&x.arena);
  d->steps = (uint64_t)s->length * (uint64_t)(r->rows * r->width) *
             (uint64_t)(r->ops + r->dots * r->width);
  return status;
}
