// SPDX-License-Identifier: Apache-2.0
// The gradient of an attention on a target whose subgroups multiply small matrices of 16-bit
// floats, in two kernels without scores in memory, each of groups of four subgroups that own
// 16 or 32 rows each:
//
//   rows:  of q and c; for each block of keys, the next one being on its way:
//            x = scale q k^T,  dw = c v^T,  m = the maximum so far of each row
//            what was summed so far is scaled by exp(old m - m)
//            w = exp(x - m),  sums of w and of w dw,  dq += (w (dw - delta)) k
//          dq / sum of w; and m, 1 / sum of w and delta = sum of w dw for the other kernel
//   keys:  of k and v; for each block of rows:
//            x^T = scale k q^T,  dw^T = v c^T,  w^T = exp(x^T - m) / sum of w
//            dv += w^T c,  dk += (w^T (dw^T - delta)) q
//
// The first kernel needs delta before it has seen a row of weights and takes sum c y, y being
// rounded: what that adds to each cotangent is the same for all keys. Weights and cotangents
// are rounded to the operands' type where a product takes them; sums are f32. A group adds
// up blocks in their order, and no two groups add to one place: the same bits in each run.
//
// Where rows see keys by their places (causal attention, windows), blocks of which nothing is
// seen are left out, and those that are seen whole are not tested.
//
// Both products of a block are made from rows of shared memory as they lie, those that add
// up by columns of the same rows (LDMATRIX turns them). Where both sums of the second
// kernel would not fit registers it is launched twice, for one each
// (passes/whole_attention_grad.c). direct_attention_grad_lanes_rows.c has what stands
// between the products.
#include "codegen/direct/direct_attention_grad_lanes.h"

#include <float.h>
#include <math.h>

#include "base/bits.h"

#define LOG2E 0x1.71547652b82fep+0

enum {
  MOST_COPIES = 8,  // of a lane, that are written out
  TILE_ALIGN = 1024,
  Y = 3,  // operands
  C,
};

void pestle_flash_grad_fill(const flash_grad_t* g, uint32_t registers,
                            int64_t count, double value) {
  unsigned lanes = g->k->failed ? 1 : g->k->buffer.data[registers].lanes;
  pestle_kir_alloc(g->k, registers);
  pk_t i = pestle_kir_unroll(g->k, "i", count);
  flash_put(g, registers, i, flash_real(g, lanes, value));
  pestle_kir_end(g->k);
}

// --- Copies ---

// Element of shared memory of run |run| of row |row| of a block that begins at |from|.
static pk_t place_in(const flash_grad_t* g, const flash_matrix_t* m, pk_t row,
                     pk_t run, pk_t from) {
  if (g->has_warpgroups)
    return pestle_flash_grad_swizzled(g, m, row, run, from);
  return flash_at(g, row, m->pitch, flash_at(g, run, FLASH_RUN, from));
}

// Run |run| of |rows| rows of |m| from row |first| on goes to |to| in shared memory.
static void copy_run(flash_grad_t* g, const flash_matrix_t* m, pk_t run,
                     pk_t first, pk_t to) {
  int64_t per = m->columns / FLASH_RUN;
  pk_t r = flash_by(g, PESTLE_OP_DIVIDE, run, per);
  pk_t column = flash_by(g, PESTLE_OP_REMAINDER, run, per);
  pk_t row = flash_op(g, PESTLE_OP_ADD, first, r), is_there = PESTLE_KIR_NONE;
  if (m->count % m->rows) {
    is_there = flash_by(g, PESTLE_OP_LT, row, m->count);
    row = flash_by(g, PESTLE_OP_MINIMUM, row, m->count - 1);
  }
  pk_t from = flash_at(g, g->head, m->count, row);
  from = flash_at(g, from, m->columns,
                  flash_at(g, column, FLASH_RUN, flash_number(g, 0)));
  to = place_in(g, m, r, column, to);
  if (g->copies) {
    if (is_there != PESTLE_KIR_NONE)
      from = pestle_direct_select(g->d, is_there, from, flash_number(g, -1));
    (void)pestle_kir_put(
        g->k, (pestle_kir_inst_t){.op = PESTLE_KIR_COPY_ASYNC,
                                  .type = PESTLE_NONE,
                                  .lanes = FLASH_RUN,
                                  .arg = {m->shared, to, m->from, from}});
    return;
  }
  pk_t value = flash_run(g, m->from, from);
  if (is_there != PESTLE_KIR_NONE) {
    value = pestle_kir_scalar(g->k, PESTLE_OP_SELECT, is_there, value,
                              pestle_kir_float(g->k, g->dtype, FLASH_RUN, 0));
  }
  pestle_kir_store(g->k, m->shared, to, value, PESTLE_KIR_NONE,
                   FLASH_RUN_BYTES);
}

// Block |number| of |m| to slot |slot|.
static void copy(flash_grad_t* g, const flash_matrix_t* m, pk_t number,
                 pk_t slot) {
  int64_t runs = m->rows * m->columns / FLASH_RUN;
  int64_t count = pestle_ceil_div(runs, FLASH_LANES);
  bool is_short = count <= MOST_COPIES;
  pk_t i = is_short ? pestle_kir_unroll(g->k, "i", count)
                    : pestle_kir_repeat(g->k, "i", count);
  pk_t run = flash_at(g, i, FLASH_LANES, g->lane);
  if (runs % FLASH_LANES) {
    pestle_kir_if(g->k, flash_by(g, PESTLE_OP_LT, run, runs));
    run = flash_by(g, PESTLE_OP_MINIMUM, run, runs - 1);
  }
  copy_run(g, m, run, flash_at(g, number, m->rows, flash_number(g, 0)),
           flash_at(g, slot, m->rows * m->pitch, flash_number(g, 0)));
  if (runs % FLASH_LANES) pestle_kir_end(g->k);
  if (is_short) {
    pestle_kir_end(g->k);
  } else {
    pestle_kir_end_repeat(g->k, count);
  }
}

// What lies between a row's columns and whole fragments is 0.
static void clear_rests(flash_grad_t* g, const flash_matrix_t* m,
                        int64_t slots) {
  if (m->padded == m->columns) return;
  for (int64_t slot = 0; slot < slots; ++slot) {
    pk_t row = pestle_kir_for(g->k, "row", g->lane, flash_number(g, m->rows),
                              FLASH_LANES, PESTLE_KIR_SERIAL);
    pk_t from = flash_number(g, slot * m->rows * m->pitch);
    pk_t run = flash_number(g, m->columns / FLASH_RUN);
    pestle_kir_store(g->k, m->shared, place_in(g, m, row, run, from),
                     pestle_kir_float(g->k, g->dtype, FLASH_RUN, 0),
                     PESTLE_KIR_NONE, FLASH_RUN_BYTES);
    pestle_kir_end(g->k);
  }
}

// Everything that was copied is there for all lanes.
static void meet(flash_grad_t* g) {
  if (g->copies) {
    pestle_kir_act(g->k, PESTLE_KIR_COPY_COMMIT, 0, 0, 0, 0);
    pestle_kir_act(g->k, PESTLE_KIR_COPY_WAIT, 0, 0, 0, 0);
  }
  if (g->has_warpgroups)
    pestle_kir_act(g->k, PESTLE_KIR_TILE_FENCE, 0, 0, 0, 0);
  pestle_kir_barrier(g->k);
}

// --- Products ---

// Whether matrix 1 of both sides, v and c, is asked for; of what the group owns it is not
// where only dv is made.
static bool owns_second(const flash_grad_t* g) {
  return g->of_first;
}

static pk_t fragment(flash_grad_t* g, uint32_t shared, pk_t index,
                     bool turned) {
  return pestle_kir_put(g->k,
                        (pestle_kir_inst_t){.op = PESTLE_KIR_LDMATRIX,
                                            .type = PESTLE_U32,
                                            .lanes = 4,
                                            .arg = {shared, index, turned}});
}

// sums[place] += a times the columns of |b|, eight of its sixteen.
static void multiply(flash_grad_t* g, uint32_t sums, pk_t place, pk_t a, pk_t b,
                     uint32_t half) {
  const uint32_t words[2] = {2 * half, 2 * half + 1};
  uint32_t how =
      g->dtype == PESTLE_F16 ? PESTLE_KIR_MMA_F16 : PESTLE_KIR_MMA_BF16;
  pk_t columns = pestle_kir_shuffle(g->k, b, b, words, 2);
  pk_t sum = pestle_kir_put(
      g->k,
      (pestle_kir_inst_t){.op = PESTLE_KIR_MMA,
                          .type = PESTLE_F32,
                          .lanes = 4,
                          .arg = {a, columns, flash_get(g, sums, place), how}});
  flash_put(g, sums, place, sum);
}

// The fragments of all units in |part| times sixteen columns |b|, number |j| of them.
static void multiply_units(flash_grad_t* g, uint32_t sums, int64_t count,
                           pk_t j, pk_t b) {
  for (int64_t i = 0; i < g->units; ++i) {
    pk_t a = flash_get(g, g->part, flash_number(g, i));
    for (uint32_t h = 0; h < 2; ++h) {
      pk_t eight = flash_at(g, j, 2, flash_number(g, h));
      multiply(g, sums, flash_place(g, i, count, eight), a, b, h);
    }
  }
}

// |sums| of what is owned and the block in |slot|: of q and k, or of c and v.
static void make_products(flash_grad_t* g, int which, uint32_t sums,
                          pk_t slot) {
  const flash_matrix_t *a = &g->own[which], *b = &g->other[which];
  int64_t count = g->block / FLASH_EIGHT;
  pk_t from = flash_at(g, slot, b->rows * b->pitch, g->from_columns[which]);
  pestle_flash_grad_fill(g, sums, g->units * count, 0);
  pk_t u = pestle_kir_unroll(g->k, "u", a->padded / FLASH_UNIT);
  for (int64_t i = 0; i < g->units; ++i) {
    pk_t at = flash_plus(g, g->from_own[which], i * FLASH_UNIT * a->pitch);
    flash_put(g, g->part, flash_number(g, i),
              fragment(g, a->shared, flash_at(g, u, FLASH_UNIT, at), false));
  }
  pk_t j = pestle_kir_unroll(g->k, "j", g->block / FLASH_UNIT);
  pk_t at =
      flash_at(g, j, FLASH_UNIT * b->pitch, flash_at(g, u, FLASH_UNIT, from));
  multiply_units(g, sums, count, j, fragment(g, b->shared, at, false));
  pestle_kir_end(g->k);
  pestle_kir_end(g->k);
}

pk_t pestle_flash_grad_fragment(const flash_grad_t* g, uint32_t factors,
                                int64_t unit, pk_t u) {
  static const uint32_t all[4] = {0, 1, 2, 3};
  pk_t words[2];
  for (int64_t h = 0; h < 2; ++h) {
    pk_t eight = flash_at(g, u, 2, flash_number(g, h));
    pk_t x = flash_get(g, factors,
                       flash_place(g, unit, g->block / FLASH_EIGHT, eight));
    words[h] = pestle_kir_pack(g->k, pestle_kir_cast(g->k, x, g->dtype));
  }
  return pestle_kir_shuffle(g->k, words[0], words[1], all, 4);
}

// result |of| += |factors|, rounded, times rows of the block in |slot|.
static void add_products(flash_grad_t* g, int of, uint32_t factors, int which,
                         pk_t slot) {
  const flash_matrix_t* b = &g->other[which];
  pk_t from = flash_at(g, slot, b->rows * b->pitch, g->from_taps[which]);
  pk_t u = pestle_kir_unroll(g->k, "u", g->block / FLASH_UNIT);
  for (int64_t i = 0; i < g->units; ++i)
    flash_put(g, g->part, flash_number(g, i),
              pestle_flash_grad_fragment(g, factors, i, u));
  pk_t j = pestle_kir_unroll(g->k, "j", b->padded / FLASH_UNIT);
  pk_t at =
      flash_at(g, u, FLASH_UNIT * b->pitch, flash_at(g, j, FLASH_UNIT, from));
  multiply_units(g, g->sums[of], b->padded / FLASH_EIGHT, j,
                 fragment(g, b->shared, at, true));
  pestle_kir_end(g->k);
  pestle_kir_end(g->k);
}

// --- All blocks ---

static void fetch(flash_grad_t* g, pk_t step, pk_t slot) {
  copy(g, &g->other[0], step, slot);
  copy(g, &g->other[1], step, slot);
}

static void make_all(flash_grad_t* g, pk_t slot) {
  if (!g->has_warpgroups) {
    make_products(g, 0, g->scores, slot);
    if (owns_second(g)) make_products(g, 1, g->cotangents, slot);
    return;
  }
  pestle_flash_grad_ask_products(g, 0, g->scores, slot);
  if (owns_second(g)) pestle_flash_grad_ask_products(g, 1, g->cotangents, slot);
  pestle_flash_grad_wait(g);
}

static void make_words(flash_grad_t* g, int of, uint32_t factors) {
  pestle_kir_alloc(g->k, g->words[of]);
  pk_t u = pestle_kir_unroll(g->k, "u", g->block / FLASH_UNIT);
  flash_put(g, g->words[of], u, pestle_flash_grad_fragment(g, factors, 0, u));
  pestle_kir_end(g->k);
}

static void add_all(flash_grad_t* g, pk_t slot) {
  if (!g->has_warpgroups) {
    if (g->of_second) add_products(g, 1, g->scores, 1, slot);
    if (g->of_first) add_products(g, 0, g->cotangents, 0, slot);
    return;
  }
  if (g->of_second) make_words(g, 1, g->scores);
  if (g->of_first) make_words(g, 0, g->cotangents);
  if (g->of_second) pestle_flash_grad_ask_sums(g, 1, 1, slot);
  if (g->of_first) pestle_flash_grad_ask_sums(g, 0, 0, slot);
  pestle_flash_grad_wait(g);
}

static void do_block(flash_grad_t* g, pk_t step, pk_t slot) {
  make_all(g, slot);
  pestle_flash_grad_scores(g, step);
  if (g->by_keys) {
    pestle_flash_grad_weigh_keys(g, step);
  } else {
    pestle_flash_grad_weigh_rows(g, step);
  }
  add_all(g, slot);
}

// Block of what lies |by| behind row |own| of the group's, within [-1, blocks].
static pk_t block_of(flash_grad_t* g, int64_t own, int64_t by) {
  pk_t at = flash_at(g, g->group_tile, g->tile, flash_number(g, own + by));
  at = pestle_direct_clamp(g->d, at, -g->block, g->blocks * g->block);
  at = flash_plus(g, at, g->block);
  return flash_plus(g, flash_by(g, PESTLE_OP_DIVIDE, at, g->block), -1);
}

// The blocks of which something is seen.
static void bound_blocks(flash_grad_t* g) {
  g->first = flash_number(g, 0);
  g->last = flash_number(g, g->blocks);
  if (!g->is_limited) return;
  g->first = flash_by(g, PESTLE_OP_MAXIMUM, block_of(g, 0, g->low), 0);
  g->last =
      flash_by(g, PESTLE_OP_MINIMUM,
               flash_plus(g, block_of(g, g->tile - 1, g->high), 1), g->blocks);
}

static void do_blocks(flash_grad_t* g) {
  pestle_kir_builder_t* k = g->k;
  pk_t zero = flash_number(g, 0);
  for (int i = 0; i < 2; ++i) {
    clear_rests(g, &g->other[i], FLASH_SLOTS);
    if (i && !owns_second(g)) continue;
    clear_rests(g, &g->own[i], 1);
    copy(g, &g->own[i], g->group_tile, zero);
  }
  bound_blocks(g);
  // Where nothing is seen a block is fetched for nothing.
  pk_t first = g->first;
  if (g->is_limited)
    first = flash_by(g, PESTLE_OP_MINIMUM, first, g->blocks - 1);
  fetch(g, first, flash_by(g, PESTLE_OP_REMAINDER, first, FLASH_SLOTS));
  meet(g);
  pk_t step =
      pestle_kir_for(k, "block", g->first, g->last, 1, PESTLE_KIR_SERIAL);
  pk_t next = flash_plus(g, step, 1);
  pk_t slot = flash_by(g, PESTLE_OP_REMAINDER, step, FLASH_SLOTS);
  if (g->blocks > 1) {
    pestle_kir_if(k, flash_op(g, PESTLE_OP_LT, next, g->last));
    fetch(g, next, flash_by(g, PESTLE_OP_REMAINDER, next, FLASH_SLOTS));
    pestle_kir_end(k);
  }
  do_block(g, step, slot);
  if (g->blocks > 1) meet(g);
  pestle_kir_end(k);
}

// --- The kernel ---

// Where the part of the head begins in |value|, whose axes may be 1.
static pk_t place_of(flash_grad_t* g, const pestle_value_t* value) {
  const pestle_type_t *type = value->type,
                      *q = pestle_node_operand(g->node, 0)->type;
  int32_t rank = type->rank;
  int64_t stride = type->dims[rank - 1] * type->dims[rank - 2];
  pk_t left = g->head, index = flash_number(g, 0);
  for (int32_t i = rank - 2; i-- > 0;) {
    if (type->dims[i] != 1) {
      pk_t own = flash_by(g, PESTLE_OP_REMAINDER, left, q->dims[i]);
      index = flash_at(g, own, stride, index);
      stride *= type->dims[i];
    }
    left = flash_by(g, PESTLE_OP_DIVIDE, left, q->dims[i]);
  }
  return index;
}

static flash_matrix_t matrix(flash_grad_t* g, size_t operand) {
  const pestle_type_t* type = pestle_node_operand(g->node, operand)->type;
  int64_t columns = type->dims[type->rank - 1];
  int64_t padded = (int64_t)pestle_align_up((size_t)columns, FLASH_UNIT);
  return (flash_matrix_t){.count = type->dims[type->rank - 2],
                          .columns = columns,
                          .padded = padded,
                          // Eight rows begin in different banks.
                          .pitch = padded + FLASH_RUN};
}

// Buffers of |m|, operand |operand|, with |slots| blocks in shared memory.
static void add_matrix(flash_grad_t* g, flash_matrix_t* m, const char* name,
                       size_t operand, int64_t rows, int64_t slots) {
  m->rows = rows;
  m->from = pestle_direct_operand(g->d, operand);
  m->shared = pestle_kir_add_buffer(g->k, name, PESTLE_KIR_SHARED, g->dtype, 1,
                                    slots * rows * m->pitch, 0);
  if (g->k->failed) return;
  if (g->has_warpgroups) g->k->buffer.data[m->shared].align = TILE_ALIGN;
  g->copies = g->copies && g->k->buffer.data[m->from].align >= FLASH_RUN_BYTES;
}

static uint32_t registers(flash_grad_t* g, const char* name,
                          pestle_dtype_t dtype, unsigned lanes, int64_t count) {
  return pestle_kir_add_buffer(g->k, name, PESTLE_KIR_PRIVATE, dtype, lanes,
                               count, 0);
}

static void add_registers(flash_grad_t* g) {
  int64_t count = g->units * g->block / FLASH_EIGHT, rows = 2 * g->units;
  g->scores = registers(g, "scores", PESTLE_F32, 4, count);
  g->cotangents = registers(g, "cotangents", PESTLE_F32, 4, count);
  if (!g->has_warpgroups)
    g->part = registers(g, "part", PESTLE_U32, 4, g->units);
  for (int i = 0; i < 2; ++i) {
    if (i ? g->of_second : g->of_first)
      g->sums[i] = registers(g, "sums", PESTLE_F32, 4,
                             g->units * g->own[i].padded / FLASH_EIGHT);
  }
  for (int i = 0; i < 2 && g->has_warpgroups; ++i) {
    if (i ? g->of_second : g->of_first)
      g->words[i] = registers(g, "words", PESTLE_U32, 4, g->block / FLASH_UNIT);
  }
  if (g->by_keys) return;
  uint32_t* const of_rows[] = {&g->most,  &g->next,  &g->safe, &g->total,
                               &g->reach, &g->delta, &g->rate};
  for (size_t i = 0; i < sizeof of_rows / sizeof of_rows[0]; ++i)
    *of_rows[i] = registers(g, "row", PESTLE_F32, 1, rows);
}

static void add_buffers(flash_grad_t* g) {
  size_t bias = pestle_attention_bias(g->node),
         mask = pestle_attention_mask(g->node);
  static const size_t rows[2] = {0, C}, keys[2] = {1, 2};
  const size_t *own = g->by_keys ? keys : rows,
               *other = g->by_keys ? rows : keys;
  g->copies = g->d->caps->flags & PESTLE_TARGET_ASYNC_COPY;
  for (int i = 0; i < 2; ++i)
    add_matrix(g, &g->other[i], "other", other[i], g->block, FLASH_SLOTS);
  for (int i = 0; i < 1 + owns_second(g); ++i)
    add_matrix(g, &g->own[i], "own", own[i], g->tile, 1);
  if (g->bias) g->bias_from = pestle_direct_operand(g->d, bias);
  if (g->mask) g->mask_from = pestle_direct_operand(g->d, mask);
  uint32_t result = 0;
  if (g->by_keys) {
    g->stats = pestle_direct_operand(g->d, g->d->node->operand_count - 1);
    if (g->of_first) g->result[0] = pestle_direct_result(g->d, result++);
    if (g->of_second) g->result[1] = pestle_direct_result(g->d, result++);
  } else {
    g->c = g->own[1].from;
    g->y = pestle_direct_operand(g->d, Y);
    g->result[0] = pestle_direct_result(g->d, 0);
    g->stats = pestle_direct_result(g->d, 1);
  }
  add_registers(g);
}

// Places of the lane's fragments and sums.
static void find_places(flash_grad_t* g) {
  pk_t zero = flash_number(g, 0);
  g->subgroup = flash_by(g, PESTLE_OP_DIVIDE, g->lane, FLASH_SUBGROUP);
  pk_t in = flash_by(g, PESTLE_OP_REMAINDER, g->lane, FLASH_SUBGROUP);
  pk_t low = flash_by(g, PESTLE_OP_REMAINDER, in, FLASH_UNIT);
  pk_t high = flash_by(g, PESTLE_OP_DIVIDE, in, FLASH_UNIT);
  pk_t row = flash_by(g, PESTLE_OP_REMAINDER, in, FLASH_RUN);
  pk_t middle = flash_by(g, PESTLE_OP_DIVIDE, low, FLASH_RUN);
  pk_t first = flash_at(g, g->subgroup, FLASH_UNIT * g->units, zero);
  for (int i = 0; i < 2; ++i) {
    int64_t pitch = g->other[i].pitch;
    pk_t own = flash_op(g, PESTLE_OP_ADD, first, low);
    g->from_own[i] =
        flash_at(g, own, pitch, flash_at(g, high, FLASH_RUN, zero));
    g->from_taps[i] =
        flash_at(g, low, pitch, flash_at(g, high, FLASH_RUN, zero));
    g->from_columns[i] = flash_at(g, flash_at(g, high, FLASH_RUN, row), pitch,
                                  flash_at(g, middle, FLASH_RUN, zero));
  }
  g->quad = flash_by(g, PESTLE_OP_REMAINDER, in, FLASH_QUAD);
  g->row = flash_op(g, PESTLE_OP_ADD, first,
                    flash_by(g, PESTLE_OP_DIVIDE, in, FLASH_QUAD));
  g->row = flash_at(g, g->group_tile, g->tile, g->row);
}

// What hides a score stays finite where it was (composite_attention.c).
static double hidden(double low, double unit) {
  if (fabs(low) > (double)FLT_MAX) return low;
  return fmin(fmax(low * unit, -(double)FLT_MAX), (double)FLT_MAX);
}

static flash_grad_t read(pestle_direct_t* d, bool of_keys, bool of_values) {
  flash_grad_t g = {.d = d,
                    .k = d->k,
                    .node = pestle_direct_whole_of(d->node),
                    .by_keys = of_keys || of_values,
                    .of_second = of_values,
                    .heads = 1};
  g.of_first = !g.by_keys || of_keys;
  const pestle_type_t* q = pestle_node_operand(g.node, 0)->type;
  g.dtype = q->dtype;
  for (int32_t i = 0; i + 2 < q->rank; ++i)
    g.heads *= q->dims[i];
  flash_matrix_t rows[2] = {matrix(&g, 0), matrix(&g, C)};
  flash_matrix_t keys[2] = {matrix(&g, 1), matrix(&g, 2)};
  for (int i = 0; i < 2; ++i) {
    g.own[i] = g.by_keys ? keys[i] : rows[i];
    g.other[i] = g.by_keys ? rows[i] : keys[i];
  }
  const pestle_value_t* stats =
      g.by_keys ? pestle_node_operand(d->node, d->node->operand_count - 1)
                : &d->node->results[1];
  g.padded = stats->type->dims[stats->type->rank - 1];
  size_t bias = pestle_attention_bias(g.node),
         mask = pestle_attention_mask(g.node);
  pestle_attention_limits_t limits;
  if (bias) g.bias = pestle_node_operand(g.node, bias);
  if (mask) g.mask = pestle_node_operand(g.node, mask);
  if (mask && pestle_attention_limits_of(g.mask, &limits)) {
    g.mask = NULL;
    g.is_limited = true;
    g.low = g.by_keys ? -limits.high : limits.low;
    g.high = g.by_keys ? -limits.low : limits.high;
  }
  double unit = g.bias ? 1 : LOG2E;
  g.scale = PESTLE_NODE_F64(g.node, scale) * unit;
  g.masked = hidden(PESTLE_NODE_F64(g.node, masked), unit);
  return g;
}

static void do_group(flash_grad_t* g) {
  find_places(g);
  if (g->bias) g->bias_at = place_of(g, g->bias);
  if (g->mask) g->mask_at = place_of(g, g->mask);
  for (int i = 0; i < 2; ++i) {
    if (i ? g->of_second : g->of_first)
      pestle_flash_grad_fill(g, g->sums[i],
                             g->units * g->own[i].padded / FLASH_EIGHT, 0);
  }
  if (!g->has_warpgroups) pestle_kir_alloc(g->k, g->part);
  if (!g->by_keys) pestle_flash_grad_begin_rows(g);
  do_blocks(g);
  if (g->by_keys) {
    pestle_flash_grad_end_keys(g);
  } else {
    pestle_flash_grad_end_rows(g);
  }
}

pestle_status_t pestle_direct_attention_grad_lanes(pestle_direct_t* d,
                                                   bool of_keys,
                                                   bool of_values) {
  flash_grad_t g = read(d, of_keys, of_values);
  pestle_flash_grad_choose(&g);
  add_buffers(&g);
  pk_t zero = flash_number(&g, 0);
  pk_t group =
      pestle_kir_for(g.k, "group", zero, flash_number(&g, g.heads * g.tiles), 1,
                     PESTLE_KIR_GROUP_X);
  g.lane = pestle_kir_for(g.k, "lane", zero, flash_number(&g, FLASH_LANES), 1,
                          PESTLE_KIR_LANE_X);
  g.head = flash_by(&g, PESTLE_OP_DIVIDE, group, g.tiles);
  g.group_tile = flash_by(&g, PESTLE_OP_REMAINDER, group, g.tiles);
  // Later rows may see more keys: what takes longest begins first.
  if (g.is_limited && !g.by_keys)
    g.group_tile =
        flash_at(&g, g.group_tile, -1, flash_number(&g, g.tiles - 1));
  do_group(&g);
  pestle_kir_end(g.k);
  pestle_kir_end(g.k);
  d->steps = (uint64_t)(g.heads * g.own[0].count * g.other[0].count *
                        (g.own[0].columns + g.own[1].columns));
  return NULL;
}
