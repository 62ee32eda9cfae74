// SPDX-License-Identifier: Apache-2.0
// Attention in one pass over the keys, by groups of four subgroups that have 16
// rows each, or, as teams, the same 16 rows and other keys of each block:
//
//   q's rows as fragments
//   for each block of keys:  (the next one of k and v is on its way)
//     scores = q k, in registers; x of them, and its maximum m of each row
//     what was summed so far is scaled by exp(old m - m)
//     w = exp(x - m), its sum, and sums += w v
//   teams: what all found is scaled to one maximum and added up, in their order;
//   groups of a cluster have a part of the blocks each, and are as one
//   the last stage, from sums and total
//
// rows.c has what is between the products. Weights are multiplied as two narrow
// floats each, the rounded one and what it lost, so that they have 16 bits and
// not 8. Blocks of which the rows see no key are left out.
#include "base/bits.h"
#include "codegen/template/flash_attention_mma/rows.h"

enum {
  SUBGROUP_ROWS = PESTLE_FLASH_ATTENTION_ROWS,
  SUBGROUPS = PESTLE_FLASH_ATTENTION_SUBGROUPS,
};

typedef struct flash_t {
  flash_rows_t r;
  pestle_kir_builder_t* k;
  shared_emit_t s, o;  // the two products
  int64_t depth;       // padded
  int64_t steps;
  uint32_t query, part, weights;
  bool teams;
  int64_t parts;  // groups of a cluster
  pestle_kir_id_t batch, subgroup, rank;
  pestle_kir_id_t first, last;  // blocks that the rows see
} flash_t;

static pestle_kir_id_t at(const flash_t* t, int64_t index) {
  return pestle_kir_index(t->k, index);
}

static pestle_kir_id_t get(const flash_t* t, uint32_t buffer,
                           pestle_kir_id_t index) {
  return pestle_flash_get(&t->r, buffer, index);
}

// --- One block of keys ---

static void mma(flash_t* t, uint32_t sums, pestle_kir_id_t index,
                pestle_kir_id_t a, pestle_kir_id_t b) {
  uint32_t how =
      t->r.a.q.dtype == PESTLE_F16 ? PESTLE_KIR_MMA_F16 : PESTLE_KIR_MMA_BF16;
  pestle_kir_id_t sum = pestle_kir_put(
      t->k, (pestle_kir_inst_t){.op = PESTLE_KIR_MMA,
                                .type = PESTLE_F32,
                                .lanes = 4,
                                .arg = {a, b, get(t, sums, index), how}});
  pestle_flash_put(&t->r, sums, index, sum);
}

// Both halves of 16 columns of |b|, times |a|.
static void mma_pair(flash_t* t, uint32_t sums, pestle_kir_id_t j,
                     pestle_kir_id_t a, pestle_kir_id_t b) {
  for (uint32_t h = 0; h < 2; ++h) {
    mma(t, sums, pestle_kir_madi(t->k, j, 2, at(t, h)), a,
        pestle_flash_pick(&t->r, b, b, 2 * h, 2));
  }
}

static void make_scores(flash_t* t, pestle_kir_id_t slot) {
  int64_t wide = t->r.keys / 16;
  pestle_flash_fill(&t->r, t->r.scores, t->r.keys / 8, 0);
  pestle_kir_id_t from = pestle_kir_madi(t->k, slot, t->s.b.slot, t->s.from_b);
  pestle_kir_id_t u = pestle_kir_unroll(t->k, "u", t->depth / 16);
  pestle_shared_tile_load_fragments(&t->s, &t->s.b, t->part, wide, from, u);
  pestle_kir_id_t j = pestle_kir_unroll(t->k, "j", wide);
  mma_pair(t, t->r.scores, j, get(t, t->query, u), get(t, t->part, j));
  pestle_kir_end(t->k);
  pestle_kir_end(t->k);
}

static void add_values(flash_t* t, pestle_kir_id_t slot) {
  pestle_kir_builder_t* k = t->k;
  int64_t wide = t->r.columns / 16;
  pestle_kir_id_t from = pestle_kir_madi(k, slot, t->o.b.slot, t->o.from_b);
  pestle_kir_id_t u = pestle_kir_unroll(k, "u", t->r.keys / 16);
  pestle_kir_id_t words[2];
  pestle_flash_rows_weights(&t->r, u, words);
  for (int64_t i = 0; i < 2; ++i)
    pestle_flash_put(&t->r, t->weights, at(t, i), words[i]);
  pestle_shared_tile_load_fragments(&t->o, &t->o.b, t->part, wide, from, u);
  pestle_kir_id_t j = pestle_kir_unroll(k, "j", wide);
  pestle_kir_id_t v = get(t, t->part, j);
  for (int64_t i = 0; i < 2; ++i)
    mma_pair(t, t->r.sums, j, get(t, t->weights, at(t, i)), v);
  pestle_kir_end(k);
  pestle_kir_end(k);
}

// --- All blocks ---

static void fetch(flash_t* t, pestle_kir_id_t step, pestle_kir_id_t slot) {
  t->s.b.tile = step;
  pestle_shared_tile_fetch(&t->s, &t->s.b, at(t, 0), slot);
  pestle_shared_tile_fetch(&t->o, &t->o.b, step, slot);
}

static void arrive(flash_t* t, pestle_kir_id_t slot) {
  pestle_shared_tile_put(&t->s, &t->s.b, slot);
  pestle_shared_tile_put(&t->o, &t->o.b, slot);
}

static void meet(flash_t* t) {
  bool copies = t->s.a.copies || t->s.b.copies || t->o.b.copies;
  pestle_shared_tile_meet(&t->s, copies);
}

// Which blocks there are to take.
static void bound_blocks(flash_t* t) {
  const pestle_flash_attention_t* a = &t->r.a;
  // What masks the scores may say how many keys there are.
  pestle_kir_id_t steps = pestle_emit_fold_steps(
      t->r.e, a->maximum, a->x_keys.reduce[0], t->r.block, t->steps);
  if (steps == PESTLE_KIR_NONE) steps = at(t, t->steps);
  t->last = pestle_flash_rows_blocks(&t->r, t->r.first_row, t->r.last_row,
                                     steps, &t->first);
  if (t->parts == 1) return;
  pestle_kir_id_t count = pestle_kir_scalar(t->k, PESTLE_OP_SUBTRACT, t->last,
                                            t->first, PESTLE_KIR_NONE);
  count = pestle_kir_madi(t->k, count, 1, at(t, t->parts - 1));
  count = pestle_kir_scalar_i(t->k, PESTLE_OP_DIVIDE, count, t->parts);
  pestle_kir_id_t skipped = pestle_kir_scalar(t->k, PESTLE_OP_MULTIPLY, count,
                                              t->rank, PESTLE_KIR_NONE);
  t->first = pestle_kir_scalar(t->k, PESTLE_OP_ADD, t->first, skipped,
                               PESTLE_KIR_NONE);
  pestle_kir_id_t end =
      pestle_kir_scalar(t->k, PESTLE_OP_ADD, t->first, count, PESTLE_KIR_NONE);
  t->last =
      pestle_kir_scalar(t->k, PESTLE_OP_MINIMUM, t->last, end, PESTLE_KIR_NONE);
}

static void take_query(flash_t* t) {
  pestle_kir_id_t zero = at(t, 0), first = t->first;
  // Of no block at all the last one is fetched for nothing.
  if (!pestle_kir_is_int(t->k, first, &(int64_t){0})) {
    first = pestle_kir_scalar_i(t->k, PESTLE_OP_MINIMUM, first, t->steps - 1);
  }
  pestle_kir_id_t slot =
      pestle_kir_scalar_i(t->k, PESTLE_OP_REMAINDER, first, 2);
  pestle_shared_tile_fetch(&t->s, &t->s.a, zero, zero);
  fetch(t, first, slot);
  pestle_shared_tile_put(&t->s, &t->s.a, zero);
  arrive(t, slot);
  meet(t);
  pestle_kir_alloc(t->k, t->query);
  pestle_kir_id_t u = pestle_kir_unroll(t->k, "u", t->depth / 16);
  int64_t tap = t->s.a.by_rows ? 1 : t->s.a.pitch;
  pestle_kir_id_t from = pestle_kir_madi(t->k, u, 16 * tap, t->s.from_a);
  pestle_flash_put(
      &t->r, t->query, u,
      pestle_kir_put(t->k, (pestle_kir_inst_t){
                               .op = PESTLE_KIR_LDMATRIX,
                               .type = PESTLE_U32,
                               .lanes = 4,
                               .arg = {t->s.a.buffer, from, !t->s.a.by_rows}}));
  pestle_kir_end(t->k);
}

static void take_blocks(flash_t* t) {
  pestle_kir_builder_t* k = t->k;
  pestle_flash_rows_start(&t->r);
  pestle_kir_alloc(k, t->weights);
  pestle_kir_id_t step =
      pestle_kir_for(k, "block", t->first, t->last, 1, PESTLE_KIR_SERIAL);
  pestle_kir_id_t next = pestle_kir_madi(k, step, 1, at(t, 1));
  pestle_kir_id_t more =
      pestle_kir_scalar(k, PESTLE_OP_LT, next, t->last, PESTLE_KIR_NONE);
  pestle_kir_id_t slot = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, step, 2);
  pestle_kir_id_t other = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, next, 2);
  if (t->steps > 1) {
    pestle_kir_if(k, more);
    fetch(t, next, other);
    pestle_kir_end(k);
  }
  make_scores(t, slot);
  pestle_flash_rows_maximum(
      &t->r,
      t->teams ? pestle_kir_madi(k, step, SUBGROUPS, t->subgroup) : step);
  pestle_flash_rows_scale(&t->r);
  pestle_flash_rows_scale_sums(&t->r);
  add_values(t, slot);
  if (t->steps > 1) {
    pestle_kir_if(k, more);
    arrive(t, other);
    pestle_kir_end(k);
    meet(t);
  }
  pestle_kir_end(k);
}

// --- Teams ---

// What a lane of each subgroup shows the same lane of the others: |count| values of
// |width| numbers.
typedef struct shown_t {
  uint32_t buffer;
  int64_t count;
  unsigned width;
  pestle_kir_id_t lane;
} shown_t;

static shown_t add_shown(const flash_t* t, const char* name, int64_t count,
                         unsigned width) {
  int64_t all = PESTLE_FLASH_ATTENTION_LANES * count * width;
  return (shown_t){
      .count = count,
      .width = width,
      .lane = pestle_kir_scalar_i(t->k, PESTLE_OP_REMAINDER, t->s.lane, 32),
      .buffer = pestle_kir_add_buffer(t->k, name, PESTLE_KIR_SHARED, PESTLE_F32,
                                      1, all, 0)};
}

static pestle_kir_id_t shown_at(const flash_t* t, const shown_t* of,
                                pestle_kir_id_t subgroup,
                                pestle_kir_id_t index) {
  pestle_kir_id_t place = pestle_kir_madi(t->k, subgroup, 32, of->lane);
  place = pestle_kir_madi(t->k, place, of->count, index);
  return pestle_kir_madi(t->k, place, of->width, at(t, 0));
}

static pestle_kir_id_t address(const flash_t* t, pestle_kir_op_t op, uint32_t a,
                               uint32_t b) {
  return pestle_kir_put(
      t->k,
      (pestle_kir_inst_t){
          .op = (uint16_t)op, .type = PESTLE_ADDR, .lanes = 1, .arg = {a, b}});
}

// What subgroup |team| has shown or, |by_group|, this one's fellow in group |team| of the
// cluster.
static pestle_kir_id_t shown_by(const flash_t* t, const shown_t* of,
                                int64_t team, bool by_group,
                                pestle_kir_id_t index) {
  if (!by_group) {
    return pestle_kir_load(t->k, of->buffer, of->width,
                           shown_at(t, of, at(t, team), index), PESTLE_KIR_NONE,
                           of->width * 4);
  }
  pestle_kir_id_t own = address(t, PESTLE_KIR_REF, of->buffer,
                                shown_at(t, of, t->subgroup, index));
  pestle_kir_id_t there = address(t, PESTLE_KIR_REF_AT, own, at(t, team));
  return pestle_kir_put(t->k, (pestle_kir_inst_t){.op = PESTLE_KIR_LOAD_AT,
                                                  .type = PESTLE_F32,
                                                  .lanes = (uint8_t)of->width,
                                                  .arg = {there, at(t, 0)}});
}

static void meet_others(const flash_t* t, bool by_group) {
  if (by_group) {
    pestle_kir_act(t->k, PESTLE_KIR_CLUSTER_SYNC, 0, 0, 0, 0);
  } else {
    pestle_kir_barrier(t->k);
  }
}

static void show(const flash_t* t, const shown_t* of, uint32_t registers) {
  pestle_kir_id_t j = pestle_kir_unroll(t->k, "j", of->count);
  pestle_kir_store(t->k, of->buffer, shown_at(t, of, t->subgroup, j),
                   get(t, registers, j), PESTLE_KIR_NONE, of->width * 4);
  pestle_kir_end(t->k);
}

// |count| of what all teams, or groups, have shown, from |first| on, joined by |op| in
// |registers|.
static void join(const flash_t* t, const shown_t* of, bool by_group,
                 pestle_op_t op, pestle_kir_id_t first, int64_t count,
                 uint32_t registers) {
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t j = pestle_kir_unroll(k, "j", count);
  pestle_kir_id_t from = pestle_kir_madi(k, j, 1, first);
  if (t->r.beyond && count < of->count) {
    from = pestle_kir_scalar_i(k, PESTLE_OP_MINIMUM, from, of->count - 1);
  }
  int64_t teams = by_group ? t->parts : SUBGROUPS;
  pestle_kir_id_t all = shown_by(t, of, 0, by_group, from);
  for (int64_t i = 1; i < teams; ++i) {
    pestle_kir_id_t more = shown_by(t, of, i, by_group, from);
    all = pestle_kir_scalar(k, op, all, more, PESTLE_KIR_NONE);
  }
  pestle_flash_put(&t->r, registers, j, all);
  pestle_kir_end(k);
}

// The totals and the sums that the teams of a group, or the groups, have shown each other.
typedef struct found_t {
  shown_t totals, sums;
} found_t;

// Shows what was found, |columns| of eight, scaled to the most that any of them has.
static found_t show_found(flash_t* t, bool by_group, int64_t columns) {
  shown_t maxima = add_shown(t, by_group ? "group_maxima" : "maxima", 2, 1);
  found_t found;
  found.totals = add_shown(t, by_group ? "group_totals" : "totals", 2, 1);
  found.sums = add_shown(t, by_group ? "group_parts" : "parts", columns, 4);
  show(t, &maxima, t->r.most);
  meet_others(t, by_group);
  join(t, &maxima, by_group, PESTLE_OP_MAXIMUM, at(t, 0), 2, t->r.next);
  pestle_flash_rows_scale(&t->r);
  pestle_flash_rows_scale_sums(&t->r);
  show(t, &found.totals, t->r.all);
  show(t, &found.sums, t->r.sums);
  meet_others(t, by_group);
  return found;
}

static void join_found(const flash_t* t, const found_t* found, bool by_group,
                       pestle_kir_id_t first, int64_t part) {
  join(t, &found->totals, by_group, PESTLE_OP_ADD, at(t, 0), 2, t->r.all);
  join(t, &found->sums, by_group, PESTLE_OP_ADD, first, part, t->r.sums);
}

// Joins what the teams found; each one has a part of the columns. Of what the groups of a
// cluster found the first one makes the results.
static void join_teams(flash_t* t) {
  pestle_kir_builder_t* k = t->k;
  int64_t columns = t->r.columns / 8;
  int64_t part = pestle_ceil_div(columns, SUBGROUPS);
  found_t found = show_found(t, false, columns);
  pestle_kir_id_t first = pestle_kir_madi(k, t->subgroup, part, at(t, 0));
  t->r.beyond = columns % SUBGROUPS != 0;
  join_found(t, &found, false, first, part);
  if (t->parts > 1) {
    found = show_found(t, true, part);
    pestle_kir_if(k, pestle_kir_scalar_i(k, PESTLE_OP_EQ, t->rank, 0));
    join_found(t, &found, true, at(t, 0), part);
  }
  pestle_flash_rows_results(&t->r, first, part);
  if (t->parts > 1) {
    pestle_kir_end(k);
    // Who has ended has no memory.
    meet_others(t, true);
  }
}

// --- The whole ---

static void add_box(flash_t* t, shared_emit_t* of, const char* name,
                    const pestle_product_side_t* side,
                    const pestle_product_axes_t* rows,
                    const pestle_product_axes_t* depth, int64_t count,
                    shared_box_t* box) {
  pestle_flash_add_run(&t->r, name, side->along_k ? depth->all : rows->all,
                       side->run, &box->run_axis, &box->lane_axis);
  pestle_shared_tile_add_box(of, name, side, rows, count, box);
}

// The two products as tiles: what moves their operands needs no more.
static void make_products(flash_t* t, pestle_shared_tile_t* tiles) {
  const pestle_flash_attention_t* a = &t->r.a;
  tiles[0] = (pestle_shared_tile_t){
      .m = t->r.tile,
      .n = t->r.block,
      .k = t->depth,
      .r = SUBGROUP_ROWS,
      .c = t->r.keys,
      .slots = 1,
      .units = PESTLE_UNITS_MMA,
      .async = pestle_flash_mma_of(&t->r.e->nest->template).async};
  tiles[1] = tiles[0];
  tiles[1].n = tiles[1].c = t->r.columns;
  tiles[1].k = t->r.block;
  tiles[1].slots = 2;
  t->s = (shared_emit_t){.e = t->r.e, .k = t->k, .t = &tiles[0]};
  t->o = (shared_emit_t){.e = t->r.e, .k = t->k, .t = &tiles[1]};
  t->s.lanes = t->o.lanes = PESTLE_FLASH_ATTENTION_LANES;
  t->s.p.k = a->depth;
  t->o.p.k = a->v_keys;
  add_box(t, &t->s, "tile_q", &a->q, &a->rows, &a->depth, t->r.tile, &t->s.a);
  tiles[0].slots = 2;
  add_box(t, &t->s, "tile_k", &a->k, &a->keys, &a->depth, t->r.block, &t->s.b);
  add_box(t, &t->o, "tile_v", &a->v, &a->v_columns, &a->v_keys, t->r.columns,
          &t->o.b);
}

static void add_registers(flash_t* t) {
  int64_t wide = t->r.keys > t->r.columns ? t->r.keys : t->r.columns;
  pestle_flash_rows_add_registers(&t->r);
  t->query =
      pestle_flash_registers(&t->r, "query", PESTLE_U32, 4, t->depth / 16);
  t->part = pestle_flash_registers(&t->r, "part", PESTLE_U32, 4, wide / 16);
  t->weights = pestle_flash_registers(&t->r, "weights", PESTLE_U32, 4, 2);
}

static void open_groups(flash_t* t) {
  pestle_kir_builder_t* k = t->k;
  const pestle_flash_attention_t* a = &t->r.a;
  int64_t tiles = pestle_ceil_div(a->rows.all, t->r.tile);
  pestle_kir_id_t g = pestle_kir_for(
      k, "g", at(t, 0), at(t, tiles * a->batch.all), 1, PESTLE_KIR_GROUP_X);
  t->rank = at(t, 0);
  if (t->parts > 1) {
    t->rank = pestle_kir_for(k, "rank", at(t, 0), at(t, t->parts), 1,
                             PESTLE_KIR_CLUSTER);
  }
  pestle_kir_id_t lane =
      pestle_kir_for(k, "lane", at(t, 0), at(t, PESTLE_FLASH_ATTENTION_LANES),
                     1, PESTLE_KIR_LANE_X);
  pestle_kir_id_t tile = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, g, tiles);
  // Later rows may see more keys: what takes longest begins first.
  if (t->r.visible.count) tile = pestle_kir_madi(k, tile, -1, at(t, tiles - 1));
  t->batch = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, g, tiles);
  t->s.lane = t->o.lane = lane;
  t->s.a.tile = tile;
  t->o.b.tile = at(t, 0);
  t->subgroup = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, lane, 32);
  pestle_kir_id_t in = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, lane, 32);
  // Its rows in the group's tile, and its keys in the group's block.
  pestle_kir_id_t first = at(t, 0), key = at(t, 0);
  if (t->teams) {
    key = pestle_kir_madi(k, t->subgroup, t->r.keys, key);
  } else {
    first = pestle_kir_madi(k, t->subgroup, SUBGROUP_ROWS, first);
  }
  t->s.from_a = pestle_shared_tile_fragment_at(&t->s, &t->s.a, in, true, first);
  t->s.from_b = pestle_shared_tile_fragment_at(&t->s, &t->s.b, in, false, key);
  t->o.from_b =
      pestle_shared_tile_fragment_at(&t->o, &t->o.b, in, false, at(t, 0));
  t->o.from_b =
      pestle_kir_madi(k, key, t->o.b.by_rows ? 1 : t->o.b.pitch, t->o.from_b);
  t->r.quad = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, in, 4);
  t->r.row = pestle_kir_madi(k, pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, in, 4),
                             1, first);
  t->r.row = pestle_kir_madi(k, tile, t->r.tile, t->r.row);
  pestle_flash_rows_bound(&t->r, tile);
  pestle_flash_rows_batch(&t->r, &t->s, t->batch);
}

pestle_status_t pestle_flash_attention_mma_emit(pestle_emit_t* e) {
  pestle_nest_t* nest = e->nest;
  pestle_shared_tile_t tiles[2];
  pestle_flash_mma_how_t how = pestle_flash_mma_of(&nest->template);
  flash_t t = {.k = e->k,
               .teams = how.teams,
               .parts = how.parts,
               .r = {.e = e, .k = e->k, .keys = how.keys}};
  if (!pestle_flash_attention_find(nest, PESTLE_UNITS_MMA,
                                   pestle_flash_attention_columns(t.teams),
                                   &t.r.a)) {
    return PESTLE_ERROR(INTERNAL, "kernel '%s': it is no attention any more",
                        nest->name);
  }
  t.r.tile = SUBGROUP_ROWS * (t.teams ? 1 : SUBGROUPS);
  t.r.block = how.keys * (t.teams ? SUBGROUPS : 1);
  t.depth = pestle_flash_attention_pad(t.r.a.depth.all);
  t.r.columns = pestle_flash_attention_pad(t.r.a.v_columns.all);
  t.steps = pestle_ceil_div(t.r.a.keys.all, t.r.block);
  make_products(&t, tiles);
  t.r.at = t.s;
  add_registers(&t);
  open_groups(&t);
  uint32_t ends = pestle_flash_rows_open_ends(
      &t.r, t.batch, pestle_kir_madi(t.k, t.s.a.tile, t.r.tile, at(&t, 0)));
  bound_blocks(&t);
  take_query(&t);
  take_blocks(&t);
  if (t.teams) {
    join_teams(&t);
  } else {
    pestle_flash_rows_results(&t.r, at(&t, 0), t.r.columns / 8);
  }
  pestle_emit_close_places(e, ends);
  for (int open = t.parts > 1 ? 3 : 2; open > 0; --open)
    pestle_kir_end(e->k);
  return NULL;
}
