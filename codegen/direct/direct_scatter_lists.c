// SPDX-License-Identifier: Apache-2.0
// scatter by many indices, on targets whose lanes run side by side. A group has a range of
// the places that indices choose; its lanes find the updates that fall into it together,
// and do them element by element, still in their order.
//
//   for range in group.x: for t in lane.x:
//     for some updates at a time:
//       lanes side by side look at indices side by side: which place each chooses
//       those that fall into the range go to a list in shared memory, in their order
//       for all of the list: each lane has other elements of its windows
//
// A subgroup has some updates that follow each other. Where lanes of a subgroup see which
// of them found one (ballots), each knows how many the others found before it, and
// subgroups add up what they found. Else the places are kept in shared memory, where each
// lane looks at a few that follow each other, and all lanes' numbers are added up.
//
// Where a window has fewer elements than a group has lanes, these have other places too:
// one of them does all updates of a place. A lane loads some updates at a time and what
// they change; of two at one place the later one changes what the earlier one made. Where
// there are as many updates as places, a group goes from place to place instead
// (direct_scatter_places.c).
#include "codegen/direct/direct_scatter_lists.h"
#include "base/bits.h"

enum {
  LEAST_UPDATES = 64,  // fewer are looked at by each lane alone
  GROUP_LANES = 128,
  BALLOT_LANES = 256,
  LEAST_LANES = 32,
  MOST_EACH = 16,  // updates that a lane looks at before the list is worked off
  CORE_GROUPS = 4,    // that are wanted of a core
  UPDATE_BYTES = 12,  // of shared memory
  CHOSEN_BYTES = 4,   // without ballots
  LANE_BYTES = 12,
  SUBGROUP = 32,  // lanes that see each other's ballots
  AT_A_TIME = 4,  // updates that a lane with one place loads
};

typedef pestle_scatter_lists_t lists_t;

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
      pestle_scatter_elements(&s->batch) > INT32_MAX / 2 ||
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

// Shared memory of a group whose lanes have |each| updates at a time.
static int64_t shared_bytes(const lists_t* l, int64_t each) {
  int64_t update = UPDATE_BYTES + (l->ballots ? 0 : CHOSEN_BYTES);
  return (update * each + LANE_BYTES) * l->lanes;
}

static void plan_lanes(lists_t* l) {
  const pestle_target_caps_t* caps = l->d->caps;
  int64_t shared = (int64_t)caps->scratch_bytes, turns;
  l->lanes = l->ballots ? BALLOT_LANES : GROUP_LANES;
  while (l->lanes > (int64_t)caps->max_group_lanes ||
         (l->lanes > LEAST_LANES && l->lanes / 2 >= l->updates)) {
    l->lanes /= 2;
  }
  // A core's groups share its memory where it has enough; else two of them do.
  bool all = shared_bytes(l, MOST_EACH / 2) <= shared / CORE_GROUPS;
  l->each = MOST_EACH;
  while (l->each > 1 &&
         shared_bytes(l, l->each) > shared / (all ? CORE_GROUPS : 2)) {
    --l->each;
  }
  turns = (l->updates + l->lanes * l->each - 1) / (l->lanes * l->each);
  l->each = (l->updates + l->lanes * turns - 1) / (l->lanes * turns);
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

static int64_t runs_of(const lists_t* l) {
  return (l->elements + l->across - 1) / l->across;
}

static void plan(lists_t* l) {
  const pestle_scatter_axes_t* groups = &l->s->groups;
  for (uint32_t i = 0; i < groups->count; ++i) {
    pestle_scatter_axes_t* to = groups->list[i].index ? &l->outer : &l->inner;
    to->list[to->count++] = groups->list[i];
  }
  const pestle_target_caps_t* caps = l->d->caps;
  l->ballots =
      caps->subgroup == SUBGROUP &&
      caps->op_dtypes[PESTLE_KIR_SG_BALLOT] != 0 &&
      caps->op_dtypes[PESTLE_KIR_POPCNT] & pestle_dtype_bit(PESTLE_U32);
  l->updates = pestle_scatter_elements(&l->s->batch);
  l->elements = pestle_scatter_elements(&l->inner);
  if (pestle_scatter_plan_places(l)) return;
  plan_lanes(l);
  plan_ranges(l);
  l->segments = 1;
  l->turns = (l->updates + l->lanes * l->each - 1) / (l->lanes * l->each);
}

static uint32_t add_shared(lists_t* l, const char* name, pestle_dtype_t dtype,
                           int64_t count) {
  return pestle_kir_add_buffer(l->d->k, name, PESTLE_KIR_SHARED, dtype, 1,
                               count, 0);
}

static void add_buffers(lists_t* l) {
  static const char* const names[] = {"inputs", "updates", "places"};
  int64_t subgroups = l->lanes / SUBGROUP;
  if (l->packs) {
    l->sums = add_shared(l, "sums", PESTLE_I32, subgroups + 1);
    pestle_scatter_add_places(l);
    return;
  }
  for (int i = 0; i < 3; ++i)
    l->list[i] = add_shared(l, names[i], PESTLE_I32, l->lanes * l->each);
  if (!l->ballots)
    l->chosen = add_shared(l, "chosen", PESTLE_I32, l->lanes * (l->each + 1));
  l->sums =
      add_shared(l, "sums", PESTLE_I32, l->ballots ? subgroups : 2 * l->lanes);
}

// --- The list ---

static pk_t small(lists_t* l, pk_t value) {
  return pestle_kir_cast(l->d->k, value, PESTLE_I32);
}

static pk_t none(lists_t* l) {
  return pestle_kir_int(l->d->k, PESTLE_I32, 1, -1);
}

// Where the update is, and whether there is one of this number.
static pestle_scatter_position_t find_update(lists_t* l,
                                             pestle_scatter_position_t from,
                                             pk_t at, pk_t* out_there) {
  *out_there = op(l, PESTLE_OP_LT, at, number(l, l->updates));
  at = op(l, PESTLE_OP_MINIMUM, at, number(l, l->updates - 1));
  return pestle_scatter_move_all(l->s, from, &l->s->batch, at);
}

// Where |chosen| has update |at| of a turn. What a lane has lies in a bank of its own.
static pk_t slot_of(lists_t* l, pk_t at) {
  return op(l, PESTLE_OP_ADD, at,
            op(l, PESTLE_OP_DIVIDE, at, number(l, l->each)));
}

static pk_t i32(lists_t* l, int64_t value) {
  return pestle_kir_int(l->d->k, PESTLE_I32, 1, value);
}

// The first place of the group's range.
static pk_t first_place(lists_t* l) {
  return small(
      l, pestle_kir_madi(l->d->k, l->s->low, l->s->range, PESTLE_KIR_NONE));
}

// Whether |place| is one of the group's, in the index's own type where that has 32 bits.
static pk_t is_in_range(lists_t* l, pk_t place) {
  pestle_kir_builder_t* k = l->d->k;
  const pestle_scatter_t* s = l->s;
  int64_t places = s->input->dims[s->map.data[0]];
  pk_t low = first_place(l);
  pk_t width = op(l, PESTLE_OP_SUBTRACT, i32(l, places), low);
  width = op(l, PESTLE_OP_MINIMUM, width, i32(l, s->range));
  if (pestle_kir_type_of(k, place) == PESTLE_I32) {
    // What is below it is a large number without a sign.
    place = op(l, PESTLE_OP_SUBTRACT, place, low);
    place = pestle_kir_cast(k, place, PESTLE_U32);
    width = pestle_kir_cast(k, width, PESTLE_U32);
    return op(l, PESTLE_OP_LT, place, width);
  }
  place = pestle_kir_cast(k, place, PESTLE_INDEX);
  low = pestle_kir_cast(k, low, PESTLE_INDEX);
  pk_t end = op(l, PESTLE_OP_ADD, low, pestle_kir_cast(k, width, PESTLE_INDEX));
  low = op(l, PESTLE_OP_GE, place, low);
  return op(l, PESTLE_OP_AND, low, op(l, PESTLE_OP_LT, place, end));
}

// Whether the update falls into the group's range, and its place.
static pk_t find_place(lists_t* l, pestle_scatter_position_t update,
                       pk_t* out_place) {
  if (l->s->map.count == 1) {
    pk_t place = pestle_direct_load(l->d, l->s->starts, update.index);
    *out_place = small(l, place);
    return is_in_range(l, place);
  }
  pk_t fits = pestle_scatter_start(l->s, &update);
  *out_place = small(l, l->s->place);
  return fits;
}

// Whether update |at| is there and falls into the group's range, and its place.
static pk_t look_at(lists_t* l, pestle_scatter_position_t from, pk_t at,
                    pk_t* out_place) {
  pk_t there;
  pestle_scatter_position_t update = find_update(l, from, at, &there);
  return op(l, PESTLE_OP_AND, there, find_place(l, update, out_place));
}

// The places of the turn's updates, from |first| on.
static void choose(lists_t* l, pestle_scatter_position_t from, pk_t first) {
  pestle_direct_t* d = l->d;
  for (int64_t e = 0; e < l->each; ++e) {
    pk_t at = op(l, PESTLE_OP_ADD, l->t, number(l, e * l->lanes));
    pk_t place;
    pk_t fits = look_at(l, from, op(l, PESTLE_OP_ADD, first, at), &place);
    pestle_direct_store(d, l->chosen, slot_of(l, at),
                        pestle_direct_select(d, fits, place, none(l)));
  }
  pestle_kir_barrier(d->k);
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

static pk_t own_place(lists_t* l, int64_t e) {
  pk_t at = pestle_kir_madi(l->d->k, l->t, l->each + 1, number(l, e));
  return pestle_direct_load(l->d, l->chosen, at);
}

static pk_t is_found(lists_t* l, pk_t place) {
  pk_t zero = pestle_kir_int(l->d->k, PESTLE_I32, 1, 0);
  return op(l, PESTLE_OP_GE, place, zero);
}

// Writes update |at|, which chose |place|, to |slot| of the list.
static void list_update(lists_t* l, pestle_scatter_position_t from, pk_t at,
                        pk_t place, pk_t slot) {
  pestle_direct_t* d = l->d;
  pk_t there;
  pestle_scatter_position_t update = find_update(l, from, at, &there);
  if (l->s->map.count == 1) {
    int64_t stride = l->s->input_stride[l->s->map.data[0]];
    pk_t by = pestle_kir_cast(d->k, place, PESTLE_INDEX);
    update.input = pestle_kir_madi(d->k, by, stride, update.input);
  } else {
    (void)pestle_scatter_start(l->s, &update);
  }
  slot = pestle_direct_clamp(d, slot, 0, l->lanes * l->each - 1);
  pestle_direct_store(d, l->list[0], slot, small(l, update.input));
  pestle_direct_store(d, l->list[1], slot, small(l, update.update));
  pestle_direct_store(d, l->list[2], slot, place);
}

// The same as one word: the number of the update, and which of the group's places.
static void pack_update(lists_t* l, pk_t at, pk_t place, pk_t slot) {
  pestle_kir_builder_t* k = l->d->k;
  pk_t local = op(l, PESTLE_OP_SUBTRACT, place, first_place(l));
  pk_t bits = pestle_kir_int(k, PESTLE_U32, 1, l->local_bits);
  at = op(l, PESTLE_OP_SHIFT_LEFT, pestle_kir_cast(k, at, PESTLE_U32), bits);
  at = op(l, PESTLE_OP_OR, at, pestle_kir_cast(k, local, PESTLE_U32));
  slot = pestle_direct_clamp(l->d, slot, 0, l->room - 1);
  pestle_direct_store(l->d, l->list[0], slot, at);
}

// How many bits of |word| are set.
static pk_t count_bits(lists_t* l, pk_t word) {
  return small(l, pestle_kir_scalar(l->d->k, PESTLE_OP_POPCNT, word,
                                    PESTLE_KIR_NONE, PESTLE_KIR_NONE));
}

// Sums of what each subgroup found, |own| of this one: of those before it, and of all.
static pk_t add_up_subgroups(lists_t* l, pk_t own, pk_t in, pk_t* out_all) {
  pestle_direct_t* d = l->d;
  pk_t zero = i32(l, 0), before = zero, all = zero;
  pk_t subgroup = op(l, PESTLE_OP_DIVIDE, l->t, number(l, SUBGROUP));
  pestle_kir_if(d->k, op(l, PESTLE_OP_EQ, in, number(l, 0)));
  pestle_direct_store(d, l->sums, subgroup, own);
  pestle_kir_end(d->k);
  pestle_kir_barrier(d->k);
  subgroup = small(l, subgroup);
  for (int64_t i = 0; i < l->lanes / SUBGROUP; ++i) {
    pk_t found = pestle_direct_load(d, l->sums, number(l, i));
    all = op(l, PESTLE_OP_ADD, all, found);
    pk_t is_before = op(l, PESTLE_OP_LT, i32(l, i), subgroup);
    found = pestle_direct_select(d, is_before, found, zero);
    before = op(l, PESTLE_OP_ADD, before, found);
  }
  *out_all = all;
  return before;
}

// How many entries the list has, where turns go on with it.
static pk_t load_filled(lists_t* l) {
  return pestle_direct_load(l->d, l->sums, number(l, l->lanes / SUBGROUP));
}

static void store_filled(lists_t* l, pk_t filled) {
  pestle_kir_if(l->d->k, op(l, PESTLE_OP_EQ, l->t, number(l, 0)));
  pestle_direct_store(l->d, l->sums, number(l, l->lanes / SUBGROUP), filled);
  pestle_kir_end(l->d->k);
}

// The first update of the lane in |turn|, lane |in| of its subgroup.
static pk_t first_of_lane(lists_t* l, pk_t turn, pk_t in) {
  pk_t subgroup = op(l, PESTLE_OP_DIVIDE, l->t, number(l, SUBGROUP));
  pk_t first =
      op(l, PESTLE_OP_MULTIPLY, small(l, turn), i32(l, l->lanes * l->each));
  pk_t own =
      op(l, PESTLE_OP_MULTIPLY, small(l, subgroup), i32(l, SUBGROUP * l->each));
  return op(l, PESTLE_OP_ADD, first, op(l, PESTLE_OP_ADD, own, small(l, in)));
}

// Makes the list of a turn's updates by ballots, or goes on with it: how many there are.
static pk_t list_by_ballots(lists_t* l, pestle_scatter_position_t from,
                            pk_t turn) {
  pestle_kir_builder_t* k = l->d->k;
  pk_t at[MOST_EACH], place[MOST_EACH], fits[MOST_EACH], slot[MOST_EACH];
  pk_t found = i32(l, 0), all;
  pk_t in = op(l, PESTLE_OP_REMAINDER, l->t, number(l, SUBGROUP));
  pk_t one = pestle_kir_int(k, PESTLE_U32, 1, 1);
  pk_t lower =
      op(l, PESTLE_OP_SHIFT_LEFT, one, pestle_kir_cast(k, in, PESTLE_U32));
  lower = op(l, PESTLE_OP_SUBTRACT, lower, one);
  pk_t first = first_of_lane(l, turn, in);
  for (int64_t e = 0; e < l->each; ++e) {
    at[e] = op(l, PESTLE_OP_ADD, first, i32(l, e * SUBGROUP));
    pk_t inside = op(l, PESTLE_OP_MINIMUM, at[e], i32(l, l->updates - 1));
    inside = op(l, PESTLE_OP_MAXIMUM, inside, i32(l, 0));
    inside = pestle_kir_cast(k, inside, PESTLE_INDEX);
    fits[e] =
        find_place(l, pestle_scatter_move_all(l->s, from, &l->s->batch, inside),
                   &place[e]);
    fits[e] = op(l, PESTLE_OP_AND, fits[e],
                 op(l, PESTLE_OP_LT, at[e], i32(l, l->updates)));
  }
  for (int64_t e = 0; e < l->each; ++e) {
    pk_t word =
        pestle_kir_put(k, (pestle_kir_inst_t){.op = PESTLE_KIR_SG_BALLOT,
                                              .type = PESTLE_U32,
                                              .lanes = 1,
                                              .arg = {fits[e]}});
    slot[e] = count_bits(l, op(l, PESTLE_OP_AND, word, lower));
    slot[e] = op(l, PESTLE_OP_ADD, found, slot[e]);
    found = op(l, PESTLE_OP_ADD, found, count_bits(l, word));
  }
  pk_t before = add_up_subgroups(l, found, in, &all);
  if (l->packs) {
    pk_t filled = load_filled(l);
    before = op(l, PESTLE_OP_ADD, before, filled);
    all = op(l, PESTLE_OP_ADD, all, filled);
  }
  for (int64_t e = 0; e < l->each; ++e) {
    pk_t to = op(l, PESTLE_OP_ADD, before, slot[e]);
    pestle_kir_if(k, fits[e]);
    to = pestle_kir_cast(k, to, PESTLE_INDEX);
    pk_t update = pestle_kir_cast(k, at[e], PESTLE_INDEX);
    if (l->packs)
      pack_update(l, at[e], place[e], to);
    else
      list_update(l, from, update, place[e], to);
    pestle_kir_end(k);
  }
  pestle_kir_barrier(k);
  if (l->packs) store_filled(l, all);
  all = pestle_kir_cast(k, all, PESTLE_INDEX);
  return pestle_direct_clamp(l->d, all, 0, l->lanes * l->each);
}

// Makes the list of a turn's updates: how many there are.
static pk_t make_list(lists_t* l, pestle_scatter_position_t from, pk_t turn) {
  pestle_direct_t* d = l->d;
  pestle_kir_builder_t* k = d->k;
  pk_t one = pestle_kir_int(k, PESTLE_I32, 1, 1);
  pk_t zero = pestle_kir_int(k, PESTLE_I32, 1, 0);
  pk_t first = pestle_kir_madi(k, turn, l->lanes * l->each, PESTLE_KIR_NONE);
  choose(l, from, first);
  pk_t own = zero;
  for (int64_t e = 0; e < l->each; ++e) {
    pk_t found = is_found(l, own_place(l, e));
    own = op(l, PESTLE_OP_ADD, own, pestle_direct_select(d, found, one, zero));
  }
  int64_t half = add_up(l, own);
  pk_t at = number(l, half * l->lanes);
  pk_t slot = pestle_direct_load(d, l->sums, op(l, PESTLE_OP_ADD, l->t, at));
  slot = pestle_kir_cast(k, op(l, PESTLE_OP_SUBTRACT, slot, own), PESTLE_INDEX);
  first = pestle_kir_madi(k, l->t, l->each, first);
  for (int64_t e = 0; e < l->each; ++e) {
    pk_t place = own_place(l, e), found = is_found(l, place);
    pestle_kir_if(k, found);
    list_update(l, from, op(l, PESTLE_OP_ADD, first, number(l, e)), place,
                slot);
    pestle_kir_end(k);
    pk_t step = pestle_direct_select(d, found, number(l, 1), number(l, 0));
    slot = op(l, PESTLE_OP_ADD, slot, step);
  }
  pestle_kir_barrier(k);
  pk_t all = number(l, half * l->lanes + l->lanes - 1);
  all = pestle_kir_cast(k, pestle_direct_load(d, l->sums, all), PESTLE_INDEX);
  return pestle_direct_clamp(d, all, 0, l->lanes * l->each);
}

// --- The updates ---

pk_t pestle_scatter_entry(lists_t* l, int column, pk_t i, int64_t most) {
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

// The updates that are looked at together, and what they make of the results.
typedef struct some_t {
  pestle_scatter_position_t at[AT_A_TIME];
  pk_t mine[AT_A_TIME];
  pk_t values[AT_A_TIME][PESTLE_SCATTER_INPUTS];
  pk_t changes[AT_A_TIME][PESTLE_SCATTER_INPUTS];
} some_t;

static pestle_scatter_position_t position(lists_t* l, pk_t i, pk_t element) {
  int64_t most = reach(&l->outer, false) + reach(&l->s->batch, false);
  pestle_scatter_position_t at = {
      .input = pestle_scatter_entry(l, 0, i, most_input(l)),
      .update = pestle_scatter_entry(l, 1, i, most),
      .index = number(l, 0)};
  return pestle_scatter_move_all(l->s, at, &l->inner, element);
}

// Whether entry |i| is one of the places that lanes |y| do.
static pk_t is_mine(lists_t* l, pk_t i, pk_t y) {
  pk_t rows = number(l, l->lanes / l->across);
  pk_t place = pestle_scatter_entry(l, 2, i, INT32_MAX);
  return op(l, PESTLE_OP_EQ, op(l, PESTLE_OP_REMAINDER, place, rows), y);
}

static void load_some(lists_t* l, pk_t first, pk_t count, pk_t y, pk_t element,
                      some_t* some) {
  pestle_direct_t* d = l->d;
  const pestle_scatter_t* s = l->s;
  pk_t last = op(l, PESTLE_OP_SUBTRACT, count, number(l, 1));
  last = op(l, PESTLE_OP_MAXIMUM, last, number(l, 0));
  for (int64_t j = 0; j < AT_A_TIME; ++j) {
    pk_t i = op(l, PESTLE_OP_ADD, first, number(l, j));
    some->mine[j] = op(l, PESTLE_OP_LT, i, count);
    i = op(l, PESTLE_OP_MINIMUM, i, last);
    if (l->lanes > l->across)
      some->mine[j] = op(l, PESTLE_OP_AND, some->mine[j], is_mine(l, i, y));
    some->at[j] = position(l, i, element);
    for (uint32_t c = 0; c < s->count; ++c) {
      some->values[j][c] =
          pestle_direct_load(d, s->results[c], some->at[j].input);
      some->changes[j][c] =
          pestle_direct_load(d, s->changes[c], some->at[j].update);
    }
  }
}

// In their order: one at the place of one before it changes what that one made.
static pestle_status_t change_some(lists_t* l, some_t* some) {
  pestle_direct_t* d = l->d;
  uint32_t count = l->s->count;
  for (int j = 0; j < AT_A_TIME; ++j) {
    pk_t arguments[2 * PESTLE_SCATTER_INPUTS];
    for (int before = 0; before < j; ++before) {
      pk_t same =
          op(l, PESTLE_OP_EQ, some->at[before].input, some->at[j].input);
      for (uint32_t c = 0; c < count; ++c) {
        some->values[j][c] = pestle_direct_select(
            d, same, some->values[before][c], some->values[j][c]);
      }
    }
    for (uint32_t c = 0; c < count; ++c) {
      arguments[c] = some->values[j][c];
      arguments[count + c] = some->changes[j][c];
    }
    PESTLE_TRY(pestle_direct_region(d, 0, arguments, some->values[j]));
  }
  for (int j = 0; j < AT_A_TIME; ++j) {
    pestle_kir_if(d->k, some->mine[j]);
    for (uint32_t c = 0; c < count; ++c) {
      pestle_direct_store(d, l->s->results[c], some->at[j].input,
                          some->values[j][c]);
    }
    pestle_kir_end(d->k);
  }
  return NULL;
}

// One update, whose window moves: its elements one after the other.
static pestle_status_t do_window(lists_t* l, pk_t i, pk_t y, pk_t element) {
  pestle_scatter_t* s = l->s;
  pestle_kir_builder_t* k = l->d->k;
  bool shared = l->lanes > l->across;
  if (shared) pestle_kir_if(k, is_mine(l, i, y));
  pestle_scatter_position_t at = position(l, i, element);
  at = pestle_scatter_open(s, &s->window, "w", at);
  PESTLE_TRY(pestle_scatter_update(s, at, 1, PESTLE_KIR_NONE));
  pestle_scatter_close(s, s->window.count);
  if (shared) pestle_kir_end(k);
  return NULL;
}

static pestle_status_t do_updates(lists_t* l, pk_t count, pk_t y,
                                  pk_t element) {
  pestle_kir_builder_t* k = l->d->k;
  bool moves = l->s->window.count != 0;
  pk_t i = pestle_kir_for(k, "i", number(l, 0), count, moves ? 1 : AT_A_TIME,
                          PESTLE_KIR_SERIAL);
  if (moves) {
    PESTLE_TRY(do_window(l, i, y, element));
  } else {
    some_t some;
    load_some(l, i, count, y, element, &some);
    PESTLE_TRY(change_some(l, &some));
  }
  pestle_kir_end(k);
  return NULL;
}

// All of the list, for the lane's elements: every |parts|-th run of |across|.
static pestle_status_t do_list(lists_t* l, pk_t count) {
  pestle_kir_builder_t* k = l->d->k;
  pk_t across = number(l, l->across);
  pk_t x = op(l, PESTLE_OP_REMAINDER, l->t, across);
  pk_t y = op(l, PESTLE_OP_DIVIDE, l->t, across);
  pk_t r = pestle_kir_for(k, "run", l->part, number(l, runs_of(l)),
                          (int32_t)l->parts, PESTLE_KIR_SERIAL);
  pk_t element = pestle_kir_madi(k, r, l->across, x);
  pestle_kir_if(k, op(l, PESTLE_OP_LT, element, number(l, l->elements)));
  element = op(l, PESTLE_OP_MINIMUM, element, number(l, l->elements - 1));
  PESTLE_TRY(do_updates(l, count, y, element));
  pestle_kir_end(k);
  pestle_kir_end(k);
  return NULL;
}

// --- The whole ---

static pestle_status_t do_turns(lists_t* l, pestle_scatter_position_t from) {
  pestle_kir_builder_t* k = l->d->k;
  pk_t turn = pestle_kir_for(k, "turn", number(l, 0), number(l, l->turns), 1,
                             PESTLE_KIR_SERIAL);
  pk_t count =
      l->ballots ? list_by_ballots(l, from, turn) : make_list(l, from, turn);
  PESTLE_TRY(do_list(l, count));
  // The next list is written once all have read this one.
  pestle_kir_barrier(k);
  pestle_kir_end(k);
  return NULL;
}

// All turns of a list, then its places; and the next list.
static pestle_status_t do_places(lists_t* l, pestle_scatter_position_t from) {
  pestle_kir_builder_t* k = l->d->k;
  pk_t zero = number(l, 0);
  pk_t segment = pestle_kir_for(k, "segment", zero, number(l, l->segments), 1,
                                PESTLE_KIR_SERIAL);
  store_filled(l, i32(l, 0));
  pk_t turn = pestle_kir_for(k, "turn", zero, number(l, l->turns), 1,
                             PESTLE_KIR_SERIAL);
  (void)list_by_ballots(l, from, pestle_kir_madi(k, segment, l->turns, turn));
  pestle_kir_end(k);
  pestle_kir_barrier(k);
  pk_t count = pestle_kir_cast(k, load_filled(l), PESTLE_INDEX);
  count = pestle_direct_clamp(l->d, count, 0, l->room);
  PESTLE_TRY(pestle_scatter_change_places(l, from, count));
  pestle_kir_barrier(k);
  pestle_kir_end(k);
  return NULL;
}

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
  pk_t by = number(&l, l.parts);
  l.part = op(&l, PESTLE_OP_REMAINDER, g, by);
  g = op(&l, PESTLE_OP_DIVIDE, g, by);
  by = number(&l, outer);
  s->low = op(&l, PESTLE_OP_DIVIDE, g, by);
  g = op(&l, PESTLE_OP_REMAINDER, g, by);
  pestle_scatter_position_t from = {zero, zero, zero};
  from = pestle_scatter_move_all(s, from, &l.outer, g);
  PESTLE_TRY(l.packs ? do_places(&l, from) : do_turns(&l, from));
  pestle_kir_end(k);
  pestle_kir_end(k);
  return NULL;
}
