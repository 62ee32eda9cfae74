// SPDX-License-Identifier: Apache-2.0
// scatter of about as many updates as there are places, where subgroups have ballots. A
// group lists its updates (direct_scatter_lists.c): for each a word, its number and which of
// the group's places it chose. Subgroups sort these by place, in their order; then
//
//   for place in the group's, rows of lanes side by side:
//     registers = the place's elements, a few a lane
//     for its updates, some at a time: registers = region(registers, update)
//     result = registers
//
// Where one list holds all updates, a place is visited once: its elements come from the
// operand, and the result needs no copy of it before (compile/steps.c).
#include "base/bits.h"
#include "codegen/direct/direct_scatter_lists.h"

enum {
  GROUP_LANES = 512,
  FEW_ELEMENTS = 4,  // of a lane: a core has one group, as each looks at
  CORE_GROUPS = 2,   // all indices; else so many
  FEW_TURNS = 2,     // elements of a lane of all groups
  SUBGROUP = 32,
  LEAST_ELEMENTS = 12,      // of a window; fewer leave most of a subgroup idle
  MOST_PLACES = 128,        // of a group
  MOST_EACH = 16,           // updates that a lane looks at in the only turn
  LOOP_EACH = 12,           // in each of several: 64 registers a lane
  MOST_HELD = 4,            // elements of a lane, of all inputs
  MOST_AT_ONCE = 16,        // updates that are loaded before one is applied
  SMALL_NUMBERS = 1 << 16,  // of updates, that 16 bits tell apart
};

typedef pestle_scatter_lists_t lists_t;

static pk_t op(lists_t* l, pestle_op_t o, pk_t a, pk_t b) {
  return pestle_direct_op(l->d, o, a, b);
}

static pk_t number(lists_t* l, int64_t value) {
  return pestle_direct_index(l->d, value);
}

static pk_t word(lists_t* l, uint32_t value) {
  return pestle_kir_int(l->d->k, PESTLE_U32, 1, value);
}

static int64_t quotient(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// --- How much of what ---

static bool is_of_the_kind(const lists_t* l) {
  const pestle_scatter_t* s = l->s;
  if (!l->ballots || s->map.count != 1 || s->window.count ||
      s->count > MOST_HELD || l->elements < LEAST_ELEMENTS) {
    return false;
  }
  int64_t places = s->input->dims[s->map.data[0]];
  int64_t all = pestle_scatter_elements(&l->outer) * places;
  int64_t lanes = l->elements > SUBGROUP ? l->elements : SUBGROUP;
  int64_t cores = l->d->caps->cores ? l->d->caps->cores : 1;
  // Each element is one of a place; most places have an update, or all lanes go over them
  // in less time than a copy takes.
  return all * l->elements == pestle_type_count(s->input) &&
         (places <= 2 * l->updates ||
          all * lanes <= FEW_TURNS * CORE_GROUPS * GROUP_LANES * cores);
}

// Lanes along the elements of a part, and how many each has.
static void plan_across(lists_t* l, int64_t wanted) {
  int64_t most = MOST_HELD / l->s->count;
  l->parts = wanted / l->s->ranges;
  if (l->parts < 1) l->parts = 1;
  if (l->parts > quotient(l->elements, SUBGROUP))
    l->parts = quotient(l->elements, SUBGROUP);
  int64_t least = quotient(l->elements, l->lanes * most);
  if (l->parts < least) l->parts = least;
  int64_t part = quotient(l->elements, l->parts);
  l->across = (int64_t)pestle_next_pow2((uint64_t)part);
  if (l->across < SUBGROUP) l->across = SUBGROUP;
  while (l->across > l->lanes ||
         (l->across > SUBGROUP && l->s->range > l->lanes / l->across &&
          quotient(part, l->across / 2) <= most)) {
    l->across /= 2;
  }
  l->held = quotient(part, l->across);
  l->parts = quotient(l->elements, l->across * l->held);
}

static int64_t plan_at_once(const lists_t* l, int64_t places) {
  int64_t usual = quotient(2 * l->updates, places);
  int64_t some = (int64_t)pestle_next_pow2((uint64_t)usual);
  // Two groups of a core have 64 registers a lane.
  int64_t elements = l->held * l->s->count;
  int64_t most = elements == 1 ? MOST_AT_ONCE : MOST_AT_ONCE / 2 / elements;
  return some < most ? some : most;
}

bool pestle_scatter_plan_places(lists_t* l) {
  pestle_scatter_t* s = l->s;
  const pestle_target_caps_t* caps = l->d->caps;
  if (!is_of_the_kind(l)) return false;
  int64_t cores = caps->cores ? caps->cores : 1;
  int64_t places = s->input->dims[s->map.data[0]];
  int64_t outer = pestle_scatter_elements(&l->outer);
  bool few = l->elements * places * outer <= cores * FEW_ELEMENTS * GROUP_LANES;
  int64_t wanted = quotient(few ? cores : cores * CORE_GROUPS, outer);
  int64_t range = quotient(places, wanted), lanes = GROUP_LANES;
  while (lanes > (int64_t)caps->max_group_lanes || lanes / 2 >= l->updates)
    lanes /= 2;
  bool small = l->updates <= SMALL_NUMBERS &&
               caps->op_dtypes[PESTLE_KIR_LOAD] & pestle_dtype_bit(PESTLE_U16);
  l->numbers = small ? PESTLE_U16 : PESTLE_U32;
  int64_t room = (int64_t)caps->scratch_bytes / (few ? 1 : CORE_GROUPS) -
                 4 * lanes - 8 * range;
  room /= small ? 6 : 8;
  // It is made whole turns of the group.
  room = room / (LOOP_EACH + 1) * LOOP_EACH - lanes;
  l->local_bits = pestle_log2_floor(pestle_next_pow2((uint64_t)range));
  if (range > MOST_PLACES || lanes < SUBGROUP || room < lanes ||
      l->updates >> (31 - l->local_bits)) {
    return false;
  }
  l->lanes = lanes;
  s->range = range;
  s->ranges = quotient(places, range);
  l->segments = quotient(l->updates, room);
  l->room = quotient(l->updates, l->segments);
  l->turns =
      l->room > lanes * MOST_EACH ? quotient(l->room, lanes * LOOP_EACH) : 1;
  l->each = quotient(l->room, lanes * l->turns);
  l->room = lanes * l->each * l->turns;
  plan_across(l, wanted);
  l->at_once = plan_at_once(l, places);
  l->packs = true;
  return true;
}

// --- A lane's elements ---

// Of its place |at_place|: elements part * held * across + r * across + x.
typedef struct held_t {
  pk_t input[MOST_HELD], update[MOST_HELD], owns[MOST_HELD];
  uint32_t kept[MOST_HELD][MOST_HELD];
} held_t;

static void find_elements(lists_t* l, pestle_scatter_position_t from, pk_t own,
                          held_t* h) {
  pestle_direct_t* d = l->d;
  pk_t x = op(l, PESTLE_OP_REMAINDER, l->t, number(l, l->across));
  pk_t first = pestle_kir_madi(d->k, l->part, l->across * l->held, x);
  for (int64_t r = 0; r < l->held; ++r) {
    pk_t element = op(l, PESTLE_OP_ADD, first, number(l, r * l->across));
    pk_t in = op(l, PESTLE_OP_LT, element, number(l, l->elements));
    h->owns[r] = op(l, PESTLE_OP_AND, own, in);
    element = op(l, PESTLE_OP_MINIMUM, element, number(l, l->elements - 1));
    pestle_scatter_position_t at =
        pestle_scatter_move_all(l->s, from, &l->inner, element);
    h->input[r] = at.input;
    h->update[r] = at.update;
  }
}

static void fetch(lists_t* l, held_t* h) {
  pestle_direct_t* d = l->d;
  for (int64_t r = 0; r < l->held; ++r) {
    for (uint32_t c = 0; c < l->s->count; ++c) {
      pestle_direct_set(d, h->kept[r][c],
                        pestle_direct_load(d, l->sources[c], h->input[r]));
    }
  }
}

static void put_back(lists_t* l, const held_t* h) {
  pestle_direct_t* d = l->d;
  for (int64_t r = 0; r < l->held; ++r) {
    pestle_kir_if(d->k, h->owns[r]);
    for (uint32_t c = 0; c < l->s->count; ++c) {
      pestle_direct_store(d, l->s->results[c], h->input[r],
                          pestle_direct_get(d, h->kept[r][c]));
    }
    pestle_kir_end(d->k);
  }
}

// --- The updates of each place ---

static pk_t subgroup_of(lists_t* l) {
  return op(l, PESTLE_OP_DIVIDE, l->t, number(l, SUBGROUP));
}

static pk_t lane_of(lists_t* l) {
  return op(l, PESTLE_OP_REMAINDER, l->t, number(l, SUBGROUP));
}

static pk_t small(lists_t* l, pk_t x) {
  return pestle_kir_cast(l->d->k, x, PESTLE_I32);
}

static pk_t i32(lists_t* l, int64_t value) {
  return pestle_kir_int(l->d->k, PESTLE_I32, 1, value);
}

// |x| of 32 bits within [0, most], as an index: targets have twice the work with those.
static pk_t index_of(lists_t* l, pk_t x, int64_t most) {
  x = op(l, PESTLE_OP_MAXIMUM, x, i32(l, 0));
  x = op(l, PESTLE_OP_MINIMUM, x, i32(l, most));
  return pestle_kir_cast(l->d->k, x, PESTLE_INDEX);
}

static pk_t bits_of(lists_t* l, pk_t x) {
  x = pestle_kir_scalar(l->d->k, PESTLE_OP_POPCNT, x, PESTLE_KIR_NONE,
                        PESTLE_KIR_NONE);
  return small(l, x);
}

// Opens the loops over the subgroup's places and over the list's entries, 32 at a time.
static pk_t open_places(lists_t* l) {
  int64_t subgroups = l->lanes / SUBGROUP;
  pk_t step = pestle_kir_for(l->d->k, "place", number(l, 0),
                             number(l, quotient(l->s->range, subgroups)), 1,
                             PESTLE_KIR_SERIAL);
  return pestle_kir_madi(l->d->k, step, subgroups, subgroup_of(l));
}

static pk_t open_entries(lists_t* l, pk_t count) {
  pk_t first = pestle_kir_for(l->d->k, "entry", number(l, 0), count, SUBGROUP,
                              PESTLE_KIR_SERIAL);
  return op(l, PESTLE_OP_ADD, first, lane_of(l));
}

// Which of a subgroup's entries are of place |local|: the lane's, and all as bits.
static pk_t find_own(lists_t* l, pk_t i, pk_t count, pk_t local,
                     pk_t* out_entry, pk_t* out_own) {
  i = small(l, i);
  pk_t at = index_of(l, i, l->room - 1);
  *out_entry = pestle_direct_load(l->d, l->list[0], at);
  pk_t of =
      op(l, PESTLE_OP_AND, *out_entry, word(l, (1u << l->local_bits) - 1));
  pk_t same =
      op(l, PESTLE_OP_EQ, of, pestle_kir_cast(l->d->k, local, PESTLE_U32));
  *out_own =
      op(l, PESTLE_OP_AND, op(l, PESTLE_OP_LT, i, small(l, count)), same);
  return pestle_kir_put(l->d->k, (pestle_kir_inst_t){.op = PESTLE_KIR_SG_BALLOT,
                                                     .type = PESTLE_U32,
                                                     .lanes = 1,
                                                     .arg = {*out_own}});
}

// Writes |value| for a place of the subgroup.
static void store_of_place(lists_t* l, uint32_t buffer, pk_t local,
                           pk_t value) {
  pestle_kir_builder_t* k = l->d->k;
  pk_t first = op(l, PESTLE_OP_EQ, lane_of(l), number(l, 0));
  pk_t there = op(l, PESTLE_OP_LT, local, number(l, l->s->range));
  local = op(l, PESTLE_OP_MINIMUM, local, number(l, l->s->range - 1));
  pestle_kir_if(k, op(l, PESTLE_OP_AND, first, there));
  pestle_direct_store(l->d, buffer, local, value);
  pestle_kir_end(k);
}

// How many updates each place has.
static void count_updates(lists_t* l, pk_t count) {
  pestle_direct_t* d = l->d;
  uint32_t found = pestle_direct_variable(d, "found", PESTLE_I32, 1);
  pk_t entry, own, local = open_places(l);
  pestle_direct_set(d, found, pestle_kir_int(d->k, PESTLE_I32, 1, 0));
  pk_t i = open_entries(l, count);
  pk_t bits = bits_of(l, find_own(l, i, count, local, &entry, &own));
  pestle_direct_set(d, found,
                    op(l, PESTLE_OP_ADD, pestle_direct_get(d, found), bits));
  pestle_kir_end(d->k);
  store_of_place(l, l->counts, local, pestle_direct_get(d, found));
  pestle_kir_end(d->k);
  pestle_kir_barrier(d->k);
}

// Where the updates of place |local| begin: behind those of all places before it.
static pk_t first_of_place(lists_t* l, pk_t local) {
  pestle_direct_t* d = l->d;
  pk_t zero = pestle_kir_int(d->k, PESTLE_I32, 1, 0), all = zero;
  int64_t range = l->s->range;
  for (int64_t e = 0; e < range; e += SUBGROUP) {
    pk_t at = op(l, PESTLE_OP_ADD, lane_of(l), number(l, e));
    pk_t before = op(l, PESTLE_OP_LT, at, local);
    before =
        op(l, PESTLE_OP_AND, before, op(l, PESTLE_OP_LT, at, number(l, range)));
    at = op(l, PESTLE_OP_MINIMUM, at, number(l, range - 1));
    pk_t x = pestle_direct_load(d, l->counts, at);
    all = op(l, PESTLE_OP_ADD, all, pestle_direct_select(d, before, x, zero));
  }
  return pestle_kir_sg_reduce(d->k, all, PESTLE_OP_ADD, SUBGROUP);
}

// The numbers of updates, those of a place behind each other.
static void sort_updates(lists_t* l, pk_t count) {
  pestle_direct_t* d = l->d;
  pestle_kir_builder_t* k = d->k;
  uint32_t next = pestle_direct_variable(d, "next", PESTLE_I32, 1);
  pk_t entry, own, local = open_places(l);
  pk_t first = first_of_place(l, local);
  pestle_direct_set(d, next, first);
  store_of_place(l, l->firsts, local, first);
  pk_t i = open_entries(l, count);
  pk_t bits = find_own(l, i, count, local, &entry, &own);
  pk_t lower = op(l, PESTLE_OP_SHIFT_LEFT, word(l, 1),
                  pestle_kir_cast(k, lane_of(l), PESTLE_U32));
  lower = op(l, PESTLE_OP_SUBTRACT, lower, word(l, 1));
  pk_t at = pestle_direct_get(d, next);
  pestle_direct_set(d, next, op(l, PESTLE_OP_ADD, at, bits_of(l, bits)));
  pestle_kir_if(k, own);
  at = op(l, PESTLE_OP_ADD, at, bits_of(l, op(l, PESTLE_OP_AND, bits, lower)));
  at = index_of(l, at, l->room - 1);
  entry = op(l, PESTLE_OP_SHIFT_RIGHT_LOGICAL, entry, word(l, l->local_bits));
  pestle_direct_store(d, l->sorted, at, pestle_kir_cast(k, entry, l->numbers));
  pestle_kir_end(k);
  pestle_kir_end(k);
  pestle_kir_end(k);
  pestle_kir_barrier(k);
}

// Updates |i| and some more of a place's |count|, which begin at |first|: loaded together,
// applied in their order.
static pestle_status_t apply_some(lists_t* l, pestle_scatter_position_t from,
                                  pk_t first, pk_t i, pk_t count,
                                  const held_t* h) {
  pestle_direct_t* d = l->d;
  uint32_t inputs = l->s->count;
  pk_t mine[MOST_AT_ONCE], changes[MOST_AT_ONCE][MOST_HELD][MOST_HELD];
  for (int64_t j = 0; j < l->at_once; ++j) {
    pk_t at = op(l, PESTLE_OP_ADD, i, i32(l, j));
    mine[j] = op(l, PESTLE_OP_LT, at, count);
    // What is not there is read as the place's first one.
    at = pestle_direct_select(d, mine[j], at, i32(l, 0));
    at = index_of(l, op(l, PESTLE_OP_ADD, first, at), l->room - 1);
    at = small(l, pestle_direct_load(d, l->sorted, at));
    at = index_of(l, at, l->updates - 1);
    pk_t row = pestle_scatter_move_all(l->s, from, &l->s->batch, at).update;
    for (int64_t r = 0; r < l->held; ++r) {
      pk_t element = op(l, PESTLE_OP_ADD, row, h->update[r]);
      for (uint32_t c = 0; c < inputs; ++c)
        changes[j][r][c] = pestle_direct_load(d, l->s->changes[c], element);
    }
  }
  for (int64_t r = 0; r < l->held; ++r) {
    pk_t kept[MOST_HELD], made[MOST_HELD], arguments[2 * MOST_HELD];
    for (uint32_t c = 0; c < inputs; ++c)
      kept[c] = pestle_direct_get(d, h->kept[r][c]);
    for (int64_t j = 0; j < l->at_once; ++j) {
      for (uint32_t c = 0; c < inputs; ++c) {
        arguments[c] = kept[c];
        arguments[inputs + c] = changes[j][r][c];
      }
      PESTLE_TRY(pestle_direct_region(d, 0, arguments, made));
      for (uint32_t c = 0; c < inputs; ++c)
        kept[c] = pestle_direct_select(d, mine[j], made[c], kept[c]);
    }
    for (uint32_t c = 0; c < inputs; ++c)
      pestle_direct_set(d, h->kept[r][c], kept[c]);
  }
  return NULL;
}

static pestle_status_t apply_own(lists_t* l, pestle_scatter_position_t from,
                                 pk_t local, const held_t* h) {
  pestle_kir_builder_t* k = l->d->k;
  local = op(l, PESTLE_OP_MINIMUM, local, number(l, l->s->range - 1));
  pk_t count = pestle_direct_load(l->d, l->counts, local);
  pk_t first = pestle_direct_load(l->d, l->firsts, local);
  pk_t i = pestle_kir_for(k, "own", number(l, 0), index_of(l, count, l->room),
                          (int32_t)l->at_once, PESTLE_KIR_SERIAL);
  PESTLE_TRY(apply_some(l, from, first, small(l, i), count, h));
  pestle_kir_end(k);
  return NULL;
}

// --- The places ---

static uint32_t add_shared(lists_t* l, const char* name, pestle_dtype_t dtype,
                           int64_t count) {
  return pestle_kir_add_buffer(l->d->k, name, PESTLE_KIR_SHARED, dtype, 1,
                               count, 0);
}

void pestle_scatter_add_places(lists_t* l) {
  pestle_direct_t* d = l->d;
  l->list[0] = add_shared(l, "list", PESTLE_U32, l->room);
  l->sorted = add_shared(l, "sorted", l->numbers, l->room);
  l->counts = add_shared(l, "counts", PESTLE_I32, l->s->range);
  l->firsts = add_shared(l, "firsts", PESTLE_I32, l->s->range);
  for (uint32_t c = 0; c < l->s->count; ++c) {
    l->sources[c] = l->s->results[c];
    if (l->segments > 1) continue;
    l->sources[c] = pestle_direct_operand(d, c);
    if (d->k->failed) return;
    // It may be where the result is; a lane reads its elements before it writes them.
    pestle_kir_buffer_t* source = &d->k->buffer.data[l->sources[c]];
    source->flags &= (uint8_t)~PESTLE_KIR_READONLY;
    source->alias_set = d->k->buffer.data[l->s->results[c]].alias_set;
  }
}

pestle_status_t pestle_scatter_change_places(lists_t* l,
                                             pestle_scatter_position_t from,
                                             pk_t count) {
  pestle_direct_t* d = l->d;
  pestle_kir_builder_t* k = d->k;
  pestle_scatter_t* s = l->s;
  int64_t axis = s->map.data[0], places = s->input->dims[axis];
  int64_t rows = l->lanes / l->across;
  held_t h;
  count_updates(l, count);
  sort_updates(l, count);
  for (int64_t r = 0; r < l->held; ++r) {
    for (uint32_t c = 0; c < s->count; ++c) {
      pestle_dtype_t dtype = pestle_node_operand(d->node, c)->type->dtype;
      h.kept[r][c] = pestle_direct_variable(d, "kept", dtype, 1);
    }
  }
  pk_t step =
      pestle_kir_for(k, "place", number(l, 0),
                     number(l, quotient(s->range, rows)), 1, PESTLE_KIR_SERIAL);
  pk_t y = op(l, PESTLE_OP_DIVIDE, l->t, number(l, l->across));
  pk_t local = pestle_kir_madi(k, step, rows, y);
  pk_t place = pestle_kir_madi(k, s->low, s->range, local);
  pk_t own = op(l, PESTLE_OP_LT, local, number(l, s->range));
  pk_t there = op(l, PESTLE_OP_LT, place, number(l, places));
  own = op(l, PESTLE_OP_AND, own, there);
  place = op(l, PESTLE_OP_MINIMUM, place, number(l, places - 1));
  pestle_scatter_position_t at = from;
  at.input = pestle_kir_madi(k, place, s->input_stride[axis], at.input);
  find_elements(l, at, own, &h);
  // Positions of elements have the group's already.
  from.update = number(l, 0);
  fetch(l, &h);
  PESTLE_TRY(apply_own(l, from, local, &h));
  put_back(l, &h);
  pestle_kir_end(k);
  return NULL;
}
