// SPDX-License-Identifier: Apache-2.0
// Sums by teams: each subgroup makes all sums of the tile, of its own elements of a
// step's k. At the end they are added up through shared memory, in the teams' order.
#include "base/bits.h"
#include "codegen/template/shared_tile/emit.h"

enum { TEAM_K = PESTLE_SHARED_TILE_TEAM_K };

// How a lane's rows of |box|, |count| of them, lie there: chunks of |chunk| side by side,
// |apart| from one to the next, and the lane's |first|. Rows whose k lies side by side
// have no chunks, so that neighbouring lanes read neighbouring rows.
typedef struct team_rows_t {
  int64_t count, chunk, apart;
  pestle_kir_id_t first;
} team_rows_t;

static int64_t chunk_of(const shared_box_t* box, int64_t count) {
  return box->by_rows ? 1 : count < 4 ? count : 4;
}

static team_rows_t rows_of(const shared_emit_t* t, const shared_box_t* box,
                           int64_t count, pestle_kir_id_t place) {
  pestle_kir_builder_t* k = t->k;
  team_rows_t r = {.count = count, .chunk = chunk_of(box, count)};
  r.apart = box->rows / count * r.chunk;
  r.first = pestle_kir_madi(k, place, r.chunk, pestle_kir_index(k, 0));
  return r;
}

// Where this lane's rows are, of a and of b.
static void find_rows(const shared_emit_t* t, team_rows_t* out_a,
                      team_rows_t* out_b) {
  pestle_kir_builder_t* k = t->k;
  int64_t across = t->t->n / t->t->c;
  pestle_kir_id_t in = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, t->lane, 32);
  *out_a = rows_of(t, &t->a, t->t->r,
                   pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, in, across));
  *out_b = rows_of(t, &t->b, t->t->c,
                   pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, in, across));
}

// Elements of a box from one of its rows to the next, and from one element of k.
static int64_t row_step(const shared_box_t* box) {
  return box->by_rows ? box->pitch : 1;
}
static int64_t tap_step(const shared_box_t* box) {
  return box->by_rows ? 1 : box->pitch;
}

static pestle_kir_id_t first_of(shared_emit_t* t, const shared_box_t* box,
                                const team_rows_t* rows) {
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t team = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, t->lane, 32);
  pestle_kir_id_t at =
      pestle_kir_madi(k, rows->first, row_step(box), pestle_kir_index(k, 0));
  return pestle_kir_madi(k, team, TEAM_K * tap_step(box), at);
}

void pestle_shared_tile_start_teams(shared_emit_t* t) {
  pestle_kir_builder_t* k = t->k;
  team_rows_t a, b;
  find_rows(t, &a, &b);
  t->from_a = first_of(t, &t->a, &a);
  t->from_b = first_of(t, &t->b, &b);
  int64_t sums = t->t->r * t->t->c, run = PESTLE_SHARED_TILE_TEAM_RUN;
  t->sums = pestle_kir_add_buffer(k, "sums", PESTLE_KIR_PRIVATE, PESTLE_F32, 1,
                                  sums, 0);
  t->fragment_a = pestle_kir_add_buffer(k, "part_a", PESTLE_KIR_PRIVATE,
                                        PESTLE_F32, 1, t->t->r * run, 0);
  t->fragment_b = pestle_kir_add_buffer(k, "part_b", PESTLE_KIR_PRIVATE,
                                        PESTLE_F32, 1, t->t->c * run, 0);
  pestle_kir_alloc(k, t->sums);
  pestle_kir_id_t i = pestle_kir_unroll(k, "i", sums);
  pestle_kir_store(k, t->sums, i, pestle_kir_const(k, PESTLE_F32, 1, 0, 0),
                   PESTLE_KIR_NONE, 0);
  pestle_kir_end(k);
}

// Elements of |value| to |buffer|, from |at| on and |step| apart.
static void spread(shared_emit_t* t, uint32_t buffer, pestle_kir_id_t value,
                   pestle_kir_id_t at, int64_t step) {
  pestle_kir_builder_t* k = t->k;
  unsigned lanes = pestle_kir_lanes_of(k, value);
  for (unsigned l = 0; l < lanes; ++l) {
    pestle_kir_id_t one = lanes > 1 ? pestle_kir_extract(k, value, l) : value;
    pestle_kir_id_t to =
        pestle_kir_madi(k, at, 1, pestle_kir_index(k, (int64_t)l * step));
    pestle_kir_store(k, buffer, to, one, PESTLE_KIR_NONE, 0);
  }
}

// This lane's rows of TEAM_RUN elements of k, from |from| on: k fastest in |to|.
static void load_rows(shared_emit_t* t, const shared_box_t* box, int64_t count,
                      uint32_t to, pestle_kir_id_t from) {
  pestle_kir_builder_t* k = t->k;
  int64_t run = PESTLE_SHARED_TILE_TEAM_RUN, chunk = chunk_of(box, count);
  int64_t lanes = box->by_rows ? run : chunk;
  int64_t apart = box->rows / count * chunk * row_step(box);
  pestle_kir_alloc(k, to);
  pestle_kir_id_t i = pestle_kir_unroll(k, "i", count / chunk);
  pestle_kir_id_t u = PESTLE_KIR_NONE;
  pestle_kir_id_t at = pestle_kir_madi(k, i, apart, from);
  pestle_kir_id_t place =
      pestle_kir_madi(k, i, chunk * run, pestle_kir_index(k, 0));
  if (!box->by_rows) {
    u = pestle_kir_unroll(k, "u", run);
    at = pestle_kir_madi(k, u, tap_step(box), at);
    place = pestle_kir_madi(k, u, 1, place);
  }
  pestle_kir_id_t value =
      pestle_kir_load(k, box->buffer, (unsigned)lanes, at, PESTLE_KIR_NONE,
                      (unsigned)lanes * pestle_dtype_size(box->side->dtype));
  spread(t, to, value, place, box->by_rows ? 1 : run);
  if (u != PESTLE_KIR_NONE) pestle_kir_end(k);
  pestle_kir_end(k);
}

void pestle_shared_tile_multiply_teams(shared_emit_t* t, pestle_kir_id_t slot) {
  pestle_kir_builder_t* k = t->k;
  int64_t run = PESTLE_SHARED_TILE_TEAM_RUN;
  pestle_kir_id_t from_a = pestle_kir_madi(k, slot, t->a.slot, t->from_a);
  pestle_kir_id_t from_b = pestle_kir_madi(k, slot, t->b.slot, t->from_b);
  pestle_kir_id_t u = pestle_kir_unroll(k, "u", TEAM_K / run);
  from_a = pestle_kir_madi(k, u, run * tap_step(&t->a), from_a);
  from_b = pestle_kir_madi(k, u, run * tap_step(&t->b), from_b);
  load_rows(t, &t->a, t->t->r, t->fragment_a, from_a);
  load_rows(t, &t->b, t->t->c, t->fragment_b, from_b);
  pestle_kir_id_t tap = pestle_kir_unroll(k, "tap", run);
  pestle_kir_id_t i = pestle_kir_unroll(k, "i", t->t->r);
  pestle_kir_id_t j = pestle_kir_unroll(k, "j", t->t->c);
  pestle_kir_id_t a = pestle_kir_load(
      k, t->fragment_a, 1, pestle_kir_madi(k, i, run, tap), PESTLE_KIR_NONE, 0);
  pestle_kir_id_t b = pestle_kir_load(
      k, t->fragment_b, 1, pestle_kir_madi(k, j, run, tap), PESTLE_KIR_NONE, 0);
  pestle_kir_id_t at = pestle_kir_madi(k, i, t->t->c, j);
  pestle_kir_id_t sum = pestle_kir_load(k, t->sums, 1, at, PESTLE_KIR_NONE, 0);
  a = pestle_kir_scalar(k, PESTLE_OP_MULTIPLY, a, b, PESTLE_KIR_NONE);
  sum = pestle_kir_scalar(k, PESTLE_OP_ADD, sum, a, PESTLE_KIR_NONE);
  pestle_kir_store(k, t->sums, at, sum, PESTLE_KIR_NONE, 0);
  for (int open = 0; open < 4; ++open)
    pestle_kir_end(k);
}

// Where the lane's row |i| is in the tile, an index within an unrolled loop.
static pestle_kir_id_t row_at(shared_emit_t* t, const team_rows_t* rows,
                              pestle_kir_id_t i, pestle_kir_id_t l) {
  return pestle_kir_madi(t->k, i, rows->apart,
                         pestle_kir_madi(t->k, l, 1, rows->first));
}

// The lane's sums to those of its team.
static void put_sums(shared_emit_t* t, uint32_t parts, int64_t pitch) {
  pestle_kir_builder_t* k = t->k;
  team_rows_t a, b;
  find_rows(t, &a, &b);
  pestle_kir_id_t team = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, t->lane, 32);
  pestle_kir_id_t base =
      pestle_kir_madi(k, team, t->t->m * pitch, pestle_kir_index(k, 0));
  pestle_kir_id_t i = pestle_kir_unroll(k, "i", a.count / a.chunk);
  pestle_kir_id_t l = pestle_kir_unroll(k, "l", a.chunk);
  pestle_kir_id_t j = pestle_kir_unroll(k, "j", b.count / b.chunk);
  pestle_kir_id_t h = pestle_kir_unroll(k, "h", b.chunk);
  pestle_kir_id_t which =
      pestle_kir_madi(k, pestle_kir_madi(k, i, a.chunk, l), b.count,
                      pestle_kir_madi(k, j, b.chunk, h));
  pestle_kir_id_t sum =
      pestle_kir_load(k, t->sums, 1, which, PESTLE_KIR_NONE, 0);
  pestle_kir_id_t at = pestle_kir_madi(k, row_at(t, &a, i, l), pitch, base);
  at = pestle_kir_scalar(k, PESTLE_OP_ADD, at, row_at(t, &b, j, h),
                         PESTLE_KIR_NONE);
  pestle_kir_store(k, parts, at, sum, PESTLE_KIR_NONE, 0);
  for (int open = 0; open < 4; ++open)
    pestle_kir_end(k);
}

uint32_t pestle_shared_tile_open_team_sums(shared_emit_t* t,
                                           pestle_kir_id_t* out_row,
                                           pestle_kir_id_t* out_vector,
                                           pestle_kir_id_t* out_sums) {
  pestle_kir_builder_t* k = t->k;
  int64_t vector = t->vector, across = t->t->n / vector;
  int64_t teams = t->lanes / 32, count = t->t->m * across;
  int64_t pitch = t->t->n + PESTLE_SHARED_TILE_TEAM_PAD;
  uint32_t parts = pestle_kir_add_buffer(
      k, "parts", PESTLE_KIR_SHARED, PESTLE_F32, 1, teams * t->t->m * pitch, 0);
  put_sums(t, parts, pitch);
  pestle_kir_barrier(k);
  uint32_t opened = 1;
  pestle_kir_id_t v =
      pestle_kir_unroll(k, "v", pestle_ceil_div(count, t->lanes));
  pestle_kir_id_t number = pestle_kir_madi(k, v, t->lanes, t->lane);
  if (count % t->lanes) {
    pestle_kir_if(k, pestle_kir_scalar_i(k, PESTLE_OP_LT, number, count));
    number = pestle_shared_tile_min(t, number, count - 1);
    ++opened;
  }
  *out_row = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, number, across);
  *out_vector = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, number, across);
  pestle_kir_id_t at =
      pestle_kir_madi(k, *out_vector, vector, pestle_kir_index(k, 0));
  at = pestle_kir_madi(k, *out_row, pitch, at);
  for (int64_t team = 0; team < teams; ++team) {
    pestle_kir_id_t from =
        pestle_kir_madi(k, at, 1, pestle_kir_index(k, team * t->t->m * pitch));
    pestle_kir_id_t sum =
        pestle_kir_load(k, parts, (unsigned)vector, from, PESTLE_KIR_NONE,
                        (unsigned)vector * 4);
    *out_sums = team ? pestle_kir_scalar(k, PESTLE_OP_ADD, *out_sums, sum,
                                         PESTLE_KIR_NONE)
                     : sum;
  }
  return opened;
}
