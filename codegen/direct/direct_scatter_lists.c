// SPDX-License-Identifier: Apache-2.0
// scatter by many indices, on targets whose lanes run side by side. A group has a range of
// the places that indices choose; its lanes find the updates that fall into it together,
// and do them element by element, still in their order.
//
//   for range in group.x: for t in lane.x:
//     for some updates at a time, each lane a few that follow each other:
//       those that fall into the range go to a list in shared memory, in their order
//       for all of the list: each lane has other elements of its windows
//
// Where a window has fewer elements than a group has lanes, these have other places too:
// one of them does all updates of a place.
#include "base/bits.h"
#include "codegen/direct/direct_scatter.h"

enum {
  LEAST_UPDATES = 64,  // fewer are looked at by each lane alone
  GROUP_LANES = 256,
  LEAST_LANES = 32,
  MOST_EACH = 8,  // updates that a lane looks at before the list is worked off
  CORE_GROUPS = 4,  // that are wanted of a core
  LIST_BYTES = 12,  // of an update
};

typedef struct lists_t {
  pestle_scatter_t* s;
  pestle_direct_t* d;
  pestle_scatter_axes_t outer,
      inner;  // group axes: with indices of their own, and not
  int64_t updates, each, lanes;  // in all; of a lane; of a group
  int64_t elements,
      across;        // of inner axes; lanes along them, the others by place
  int64_t parts;     // groups that share the elements
  uint32_t list[3];  // in shared memory: input, update, place
  uint32_t sums;     // the same, two of each lane
  uint32_t found[MOST_EACH], input[MOST_EACH], update[MOST_EACH],
      place[MOST_EACH];  // variables of a lane
  pk_t t, part;
} lists_t;

static pk_t op(lists_t* l, pestle_op_t o, pk_t a, pk_t b) {
  return pestle_direct_op(l->d, o, a, b);
}

static pk_t number(lists_t* l, int64_t value) {
  return pestle_direct_index(l->d, value);
}

// --- Which it takes ---

// The axis that indices choose one place of, with the most of them.
static bool find_ranged(pestle_scatter_t* s) {
  bool found = false;
  for (size_t i = 0; i < s->map.count; ++i) {
    int64_t axis = s->map.data[i], places = s->input->dims[axis];
    if (s->limit[axis] != places - 1) continue;
    if (found && places <= s->input->dims[s->map.data[s->ranged]]) continue;
    s->ranged = i;
    found = true;
  }
  return found;
}

bool pestle_scatter_has_lists(pestle_scatter_t* s) {
  const pestle_target_caps_t* caps = s->d->caps;
  if (!s->lanes || s->is_slice || s->vector.extent ||
      caps->max_group_lanes < LEAST_LANES ||
      pestle_scatter_elements(&s->batch) < LEAST_UPDATES ||
      pestle_type_count(s->input) > INT32_MAX ||
      pestle_type_count(s->updates) > INT32_MAX) {
    return false;
  }
  size_t before = s->ranged;
  if (find_ranged(s)) return true;
  s->ranged = before;
  return false;
}

// --- How much of what ---

static void plan_lanes(lists_t* l) {
  const pestle_target_caps_t* caps = l->d->caps;
  l->lanes = GROUP_LANES;
  while (l->lanes > (int64_t)caps->max_group_lanes ||
         (l->lanes > LEAST_LANES && l->lanes / 2 >= l->updates)) {
    l->lanes /= 2;
  }
  l->each = (l->updates + l->lanes - 1) / l->lanes;
  if (l->each > MOST_EACH) l->each = MOST_EACH;
  // Of a core's shared memory groups that take turns have a part each.
  while (l->each > 1 && (LIST_BYTES * l->each + 8) * l->lanes >
                            (int64_t)caps->scratch_bytes / 2) {
    --l->each;
  }
}

static void plan_ranges(lists_t* l) {
  pestle_scatter_t* s = l->s;
  const pestle_target_caps_t* caps = l->d->caps;
  int64_t cores = caps->cores ? caps->cores : 1;
  int64_t places = s->input->dims[s->map.data[s->ranged]];
  int64_t outer = pestle_scatter_elements(&l->outer);
  int64_t wanted = (cores * CORE_GROUPS + outer - 1) / outer;
  s->range = (places + wanted - 1) / wanted;
  s->ranges = (places + s->range - 1) / s->range;
  wanted = (wanted + s->ranges - 1) / s->ranges;
  l->across = (int64_t)pestle_next_pow2((uint64_t)l->elements);
  if (l->across > l->lanes) l->across = l->lanes;
  // More lanes by place are of use where there are so many places.
  while (l->across > LEAST_LANES && l->elements > l->across / 2 &&
         (l->elements + l->across - 1) / l->across < wanted &&
         l->lanes / l->across * 2 <= s->range) {
    l->across /= 2;
  }
  l->parts = (l->elements + l->across - 1) / l->across;
  if (l->parts > wanted) l->parts = wanted;
}

static void plan(lists_t* l) {
  const pestle_scatter_axes_t* groups = &l->s->groups;
  for (uint32_t i = 0; i < groups->count; ++i) {
    pestle_scatter_axes_t* to = groups->list[i].index ? &l->outer : &l->inner;
    to->list[to->count++] = groups->list[i];
  }
  l->updates = pestle_scatter_elements(&l->s->batch);
  l->elements = pestle_scatter_elements(&l->inner);
  plan_lanes(l);
  plan_ranges(l);
}

static void add_buffers(lists_t* l) {
  static const char* const names[] = {"inputs", "updates", "places"};
  for (int i = 0; i < 3; ++i) {
    l->list[i] = pestle_kir_add_buffer(l->d->k, names[i], PESTLE_KIR_SHARED,
                                       PESTLE_I32, 1, l->lanes * l->each, 0);
  }
  l->sums = pestle_kir_add_buffer(l->d->k, "sums", PESTLE_KIR_SHARED,
                                  PESTLE_I32, 1, 2 * l->lanes, 0);
}

static void add_variables(lists_t* l) {
  for (int64_t e = 0; e < l->each; ++e) {
    l->found[e] = pestle_direct_variable(l->d, "found", PESTLE_I32, 1);
    l->input[e] = pestle_direct_variable(l->d, "input", PESTLE_I32, 1);
    l->update[e] = pestle_direct_variable(l->d, "update", PESTLE_I32, 1);
    l->place[e] = pestle_direct_variable(l->d, "place", PESTLE_I32, 1);
  }
}

// --- The list ---

static pk_t small(lists_t* l, pk_t value) {
  return pestle_kir_cast(l->d->k, value, PESTLE_I32);
}

// Looks at update |at| of the lane: whether it is of the range, and where.
static pk_t look(lists_t* l, pestle_scatter_position_t from, pk_t first,
                 int64_t e) {
  pestle_direct_t* d = l->d;
  pk_t b = op(l, PESTLE_OP_ADD, first, number(l, e));
  pk_t there = op(l, PESTLE_OP_LT, b, number(l, l->updates));
  b = op(l, PESTLE_OP_MINIMUM, b, number(l, l->updates - 1));
  pestle_scatter_position_t at =
      pestle_scatter_move_all(l->s, from, &l->s->batch, b);
  pk_t fits = pestle_scatter_start(l->s, &at);
  fits = op(l, PESTLE_OP_AND, there, fits);
  pk_t found =
      pestle_direct_select(d, fits, pestle_kir_int(d->k, PESTLE_I32, 1, 1),
                           pestle_kir_int(d->k, PESTLE_I32, 1, 0));
  pestle_direct_set(d, l->found[e], found);
  pestle_direct_set(d, l->input[e], small(l, at.input));
  pestle_direct_set(d, l->update[e], small(l, at.update));
  pestle_direct_set(d, l->place[e], small(l, l->s->place));
  return found;
}

// Sums of all lanes up to each, of |own|: the half of |sums| that they are in then.
static int64_t add_up(lists_t* l, pk_t own) {
  pestle_direct_t* d = l->d;
  int64_t half = 0;
  pestle_direct_store(d, l->sums, l->t, own);
  pestle_kir_barrier(d->k);
  for (int64_t apart = 1; apart < l->lanes; apart *= 2) {
    pk_t before = op(l, PESTLE_OP_SUBTRACT, l->t, number(l, apart));
    pk_t has = op(l, PESTLE_OP_GE, l->t, number(l, apart));
    before = op(l, PESTLE_OP_MAXIMUM, before, number(l, 0));
    pk_t at = number(l, half * l->lanes);
    pk_t x = pestle_direct_load(d, l->sums, op(l, PESTLE_OP_ADD, before, at));
    pk_t y = pestle_direct_load(d, l->sums, op(l, PESTLE_OP_ADD, l->t, at));
    x = pestle_direct_select(d, has, x, pestle_kir_int(d->k, PESTLE_I32, 1, 0));
    half = !half;
    at = op(l, PESTLE_OP_ADD, l->t, number(l, half * l->lanes));
    pestle_direct_store(d, l->sums, at, op(l, PESTLE_OP_ADD, x, y));
    pestle_kir_barrier(d->k);
  }
  return half;
}

// Makes the list of updates |first| and on: how many there are.
static pk_t make_list(lists_t* l, pestle_scatter_position_t from, pk_t turn) {
  pestle_direct_t* d = l->d;
  pestle_kir_builder_t* k = d->k;
  pk_t first = pestle_kir_madi(k, l->t, l->each, PESTLE_KIR_NONE);
  first = pestle_kir_madi(k, turn, l->lanes * l->each, first);
  pk_t own = look(l, from, first, 0);
  for (int64_t e = 1; e < l->each; ++e)
    own = op(l, PESTLE_OP_ADD, own, look(l, from, first, e));
  int64_t half = add_up(l, own);
  pk_t at = number(l, half * l->lanes);
  pk_t slot = pestle_direct_load(d, l->sums, op(l, PESTLE_OP_ADD, l->t, at));
  slot = pestle_kir_cast(k, op(l, PESTLE_OP_SUBTRACT, slot, own), PESTLE_INDEX);
  for (int64_t e = 0; e < l->each; ++e) {
    pk_t found = pestle_direct_get(d, l->found[e]);
    pk_t where = pestle_direct_clamp(d, slot, 0, l->lanes * l->each - 1);
    pestle_kir_if(
        k, op(l, PESTLE_OP_EQ, found, pestle_kir_int(k, PESTLE_I32, 1, 1)));
    pestle_direct_store(d, l->list[0], where,
                        pestle_direct_get(d, l->input[e]));
    pestle_direct_store(d, l->list[1], where,
                        pestle_direct_get(d, l->update[e]));
    pestle_direct_store(d, l->list[2], where,
                        pestle_direct_get(d, l->place[e]));
    pestle_kir_end(k);
    slot = op(l, PESTLE_OP_ADD, slot, pestle_kir_cast(k, found, PESTLE_INDEX));
  }
  pestle_kir_barrier(k);
  pk_t all = number(l, half * l->lanes + l->lanes - 1);
  all = pestle_kir_cast(k, pestle_direct_load(d, l->sums, all), PESTLE_INDEX);
  return pestle_direct_clamp(d, all, 0, l->lanes * l->each);
}

// --- The updates ---

// Entry |i| of column |column| of the list, which is at most |most|.
static pk_t entry(lists_t* l, int column, pk_t i, int64_t most) {
  pk_t x = pestle_direct_load(l->d, l->list[column], i);
  x = pestle_kir_cast(l->d->k, x, PESTLE_INDEX);
  return pestle_direct_clamp(l->d, x, 0, most);
}

static int64_t reach(const pestle_scatter_axes_t* axes, bool of_input) {
  int64_t most = 0;
  for (uint32_t i = 0; i < axes->count; ++i) {
    const pestle_scatter_axis_t* a = &axes->list[i];
    most += (a->extent - 1) * (of_input ? a->input : a->update);
  }
  return most;
}

// Where an update begins at most: by its group's axes and by its index.
static int64_t most_input(const lists_t* l) {
  int64_t most = reach(&l->outer, true);
  for (size_t i = 0; i < l->s->map.count; ++i) {
    int64_t axis = l->s->map.data[i], limit = l->s->limit[axis];
    most += (limit < 0 ? 0 : limit) * l->s->input_stride[axis];
  }
  return most;
}

static pestle_status_t do_update(lists_t* l, pk_t i, pk_t element) {
  pestle_scatter_t* s = l->s;
  pk_t zero = number(l, 0);
  pestle_scatter_position_t at = {
      .input = entry(l, 0, i, most_input(l)),
      .update =
          entry(l, 1, i, reach(&l->outer, false) + reach(&s->batch, false)),
      .index = zero};
  at = pestle_scatter_move_all(s, at, &l->inner, element);
  at = pestle_scatter_open(s, &s->window, "w", at);
  PESTLE_TRY(pestle_scatter_update(s, at, 1, PESTLE_KIR_NONE));
  pestle_scatter_close(s, s->window.count);
  return NULL;
}

// All of the list, for the lane's elements: every |parts|-th run of |across|.
static pestle_status_t do_list(lists_t* l, pk_t count) {
  pestle_direct_t* d = l->d;
  pestle_kir_builder_t* k = d->k;
  int64_t rows = l->lanes / l->across;
  pk_t across = number(l, l->across);
  pk_t x = op(l, PESTLE_OP_REMAINDER, l->t, across);
  pk_t y = op(l, PESTLE_OP_DIVIDE, l->t, across);
  int64_t runs = (l->elements + l->across - 1) / l->across;
  pk_t r = pestle_kir_for(k, "run", l->part, number(l, runs), (int32_t)l->parts,
                          PESTLE_KIR_SERIAL);
  pk_t element = pestle_kir_madi(k, r, l->across, x);
  pestle_kir_if(k, op(l, PESTLE_OP_LT, element, number(l, l->elements)));
  element = op(l, PESTLE_OP_MINIMUM, element, number(l, l->elements - 1));
  pk_t i = pestle_kir_for(k, "i", number(l, 0), count, 1, PESTLE_KIR_SERIAL);
  if (rows > 1) {
    pk_t place = entry(l, 2, i, INT32_MAX);
    place = op(l, PESTLE_OP_REMAINDER, place, number(l, rows));
    pestle_kir_if(k, op(l, PESTLE_OP_EQ, place, y));
  }
  PESTLE_TRY(do_update(l, i, element));
  if (rows > 1) pestle_kir_end(k);
  pestle_kir_end(k);
  pestle_kir_end(k);
  pestle_kir_end(k);
  return NULL;
}

// --- The whole ---

pestle_status_t pestle_scatter_lists(pestle_scatter_t* s) {
  pestle_direct_t* d = s->d;
  pestle_kir_builder_t* k = d->k;
  lists_t l = {.s = s, .d = d};
  plan(&l);
  add_buffers(&l);
  int64_t outer = pestle_scatter_elements(&l.outer);
  pk_t zero = number(&l, 0);
  pk_t g = pestle_kir_for(k, "g", zero, number(&l, outer * l.parts * s->ranges),
                          1, PESTLE_KIR_GROUP_X);
  l.t = pestle_kir_for(k, "t", zero, number(&l, l.lanes), 1, PESTLE_KIR_LANE_X);
  add_variables(&l);
  pk_t by = number(&l, l.parts);
  l.part = op(&l, PESTLE_OP_REMAINDER, g, by);
  g = op(&l, PESTLE_OP_DIVIDE, g, by);
  by = number(&l, outer);
  s->low = op(&l, PESTLE_OP_DIVIDE, g, by);
  g = op(&l, PESTLE_OP_REMAINDER, g, by);
  pestle_scatter_position_t from = {zero, zero, zero};
  from = pestle_scatter_move_all(s, from, &l.outer, g);
  int64_t segment = l.lanes * l.each;
  int64_t turns = (l.updates + segment - 1) / segment;
  pk_t turn =
      pestle_kir_for(k, "turn", zero, number(&l, turns), 1, PESTLE_KIR_SERIAL);
  pk_t count = make_list(&l, from, turn);
  PESTLE_TRY(do_list(&l, count));
  // The next list is written once all have read this one.
  pestle_kir_barrier(k);
  pestle_kir_end(k);
  pestle_kir_end(k);
  pestle_kir_end(k);
  return NULL;
}
