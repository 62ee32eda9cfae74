// SPDX-License-Identifier: Apache-2.0
// Operands in scratch as matrix registers want them.
#include "base/bits.h"
#include "codegen/template/amx/emit.h"

enum { SIDE = PESTLE_AMX_SIDE, WORDS = 4, TAPS_AHEAD = 16 };

static pestle_kir_id_t zeros(amx_t* t) {
  return pestle_kir_int(t->k, t->bits, (unsigned)t->m.step, 0);
}

// The operand's bits at the open vector; lanes that do not exist are 0 if
// |clean|.
static pestle_kir_id_t operand(amx_t* t, const pestle_product_side_t* side,
                               bool clean) {
  pestle_emit_t* e = t->e;
  pestle_kir_builder_t* k = t->k;
  unsigned lanes = e->lanes;
  size_t scope = pestle_emit_scope(e);
  pestle_kir_id_t id = pestle_emit_expr(e, side->value);
  pestle_emit_unscope(e, scope);
  if (pestle_kir_lanes_of(k, id) == 1 && lanes > 1) {
    id = pestle_kir_splat(k, id, lanes);
  }
  id = pestle_kir_bitcast(k, id, t->bits);
  if (!clean || e->valid >= (int64_t)lanes) return id;
  pestle_kir_id_t there = pestle_kir_mask(k, pestle_kir_index(k, 0),
                                          pestle_kir_index(k, e->valid), lanes);
  return pestle_kir_scalar(k, PESTLE_OP_SELECT, there, id,
                           pestle_kir_int(k, t->bits, lanes, 0));
}

// --- Rows of a ---

// The elements of k along the innermost axis: whole vectors, then a part of one and
// zeros, over which what follows is written.
static void pack_run(amx_t* t, pestle_kir_id_t at) {
  pestle_kir_builder_t* k = t->k;
  const pestle_amx_k_axis_t* tap = &t->m.k_axis[t->m.k_count - 1];
  int64_t whole = tap->extent / t->m.step, rest = tap->extent % t->m.step;
  if (whole) {
    pestle_kir_id_t v = pestle_kir_repeat(t->k, "v", whole);
    pestle_amx_emit_open(t, tap->axis, &t->depth, v, t->m.step);
    pestle_kir_store(k, t->rows, pestle_kir_madi(k, v, t->m.step, at),
                     operand(t, &t->m.p.a, true), PESTLE_KIR_NONE, 0);
    pestle_emit_close_vector(t->e);
    pestle_kir_end_repeat(t->k, whole);
  }
  if (rest) {
    pestle_amx_emit_open(t, tap->axis, &t->depth, pestle_kir_index(k, whole),
                         rest);
    pestle_kir_store(k, t->rows, pestle_amx_emit_add(t, at, whole * t->m.step),
                     operand(t, &t->m.p.a, true), PESTLE_KIR_NONE, 0);
    pestle_emit_close_vector(t->e);
  }
}

void pestle_amx_emit_pack_rows(amx_t* t, pestle_kir_id_t first,
                               pestle_kir_id_t count) {
  pestle_kir_builder_t* k = t->k;
  const pestle_amx_t* m = &t->m;
  pestle_kir_id_t r = pestle_kir_for(k, "r", pestle_kir_index(k, 0), count, 1,
                                     PESTLE_KIR_SERIAL);
  pestle_kir_id_t row = pestle_kir_madi(k, first, 1, r);
  row = pestle_kir_scalar_i(k, PESTLE_OP_MINIMUM, row, m->p.m.all - 1);
  size_t scope = pestle_emit_scope(t->e);
  pestle_amx_emit_place(t, &m->p.batch, false, t->batch);
  pestle_amx_emit_place(t, &m->p.m, false, row);
  for (uint32_t i = 0; i < m->p.k.count; ++i)
    pestle_amx_emit_fix(t, m->p.k.reduce[i], pestle_kir_index(k, 0));
  pestle_kir_id_t at = pestle_kir_scalar_i(k, PESTLE_OP_MULTIPLY, r, t->pitch);
  const pestle_amx_k_axis_t* inner = &m->k_axis[m->k_count - 1];
  if (m->joined && m->p.k.all % m->step) {
    pestle_kir_store(k, t->rows, pestle_amx_emit_add(t, at, m->depth - m->step),
                     zeros(t), PESTLE_KIR_NONE, 0);
  }
  for (uint32_t i = 0; i + 1 < m->k_count; ++i) {
    const pestle_amx_k_axis_t* tap = &m->k_axis[i];
    pestle_kir_id_t step = pestle_kir_repeat(t->k, "k", tap->extent);
    pestle_amx_emit_fix(t, tap->axis, step);
    at = pestle_kir_madi(k, step, tap->apart, at);
  }
  if (inner->extent > 1) {
    pack_run(t, at);
  } else {
    pestle_amx_emit_open(t, inner->axis, &t->depth, pestle_kir_index(k, 0), 1);
    pestle_kir_store(k, t->rows, at, operand(t, &t->m.p.a, true),
                     PESTLE_KIR_NONE, 0);
    pestle_emit_close_vector(t->e);
  }
  for (uint32_t i = m->k_count - 1; i-- > 0;)
    pestle_kir_end_repeat(t->k, m->k_axis[i].extent);
  pestle_emit_unscope(t->e, scope);
  pestle_kir_end(k);
}

// --- A panel of b, columns side by side in memory ---

// Lanes of two vectors of |n| behind each other.
static pestle_kir_id_t behind(amx_t* t, pestle_kir_id_t a, pestle_kir_id_t b,
                              unsigned n) {
  uint32_t lane[2 * PESTLE_AMX_BYTES];
  for (uint32_t i = 0; i < 2 * n; ++i)
    lane[i] = i;
  return pestle_kir_shuffle(t->k, a, b, lane, 2 * n);
}

// The words of 16 columns from |first| on, of rows that hold an element of k each.
static pestle_kir_id_t words(amx_t* t, const pestle_kir_id_t* row,
                             uint32_t first) {
  uint32_t lane[PESTLE_AMX_BYTES], n = (uint32_t)t->m.tile_columns;
  uint32_t word = (uint32_t)t->m.word, count = word * SIDE;
  for (uint32_t l = 0; l < count; ++l)
    lane[l] = l % word * n + first + l / word;
  if (word == 2) return pestle_kir_shuffle(t->k, row[0], row[1], lane, count);
  pestle_kir_id_t low = behind(t, row[0], row[1], n);
  pestle_kir_id_t high = behind(t, row[2], row[3], n);
  return pestle_kir_shuffle(t->k, low, high, lane, count);
}

// The line of an element of k so many further. Rows of b may be as far apart as pages, for
// which the hardware fetches nothing by itself.
static void fetch_ahead(amx_t* t) {
  const pestle_expr_t* b = t->m.p.b.value;
  if (b->kind != PESTLE_EXPR_READ || b->guard) return;
  bool nested;
  int64_t apart =
      pestle_affine_coef(b->index[0], t->m.k_axis[0].axis, &nested) *
      TAPS_AHEAD;
  pestle_emit_index_t at =
      pestle_emit_index(t->e, pestle_emit_resolve(t->e, b->index[0]));
  if (at.vector != PESTLE_KIR_NONE || at.step != 1 || nested) return;
  pestle_kir_act(t->k, PESTLE_KIR_PREFETCH, t->e->buffer[b->i],
                 pestle_amx_emit_add(t, at.scalar, apart), 0, 0);
}

// One row of the panel's registers: |depth| elements of k from |tap| on, zeros behind
// them.
static void pack_words(amx_t* t, pestle_kir_id_t number, pestle_kir_id_t tap,
                       int64_t depth, int64_t columns, pestle_kir_id_t at) {
  pestle_kir_builder_t* k = t->k;
  const pestle_amx_t* m = &t->m;
  pestle_kir_id_t row[WORDS];
  pestle_amx_emit_open(t, m->column, &t->columns, number, columns);
  for (int64_t j = 0; j < m->word; ++j) {
    pestle_amx_emit_fix(t, m->k_axis[0].axis, pestle_amx_emit_add(t, tap, j));
    row[j] = j < depth ? operand(t, &m->p.b, false)
                       : pestle_kir_int(k, t->bits, t->e->lanes, 0);
    if (j < depth) fetch_ahead(t);
  }
  pestle_emit_close_vector(t->e);
  for (int64_t i = 0; i < pestle_ceil_div(columns, SIDE); ++i) {
    pestle_kir_store(k, t->panel,
                     pestle_amx_emit_add(t, at, i * SIDE * m->step),
                     words(t, row, (uint32_t)(i * SIDE)), PESTLE_KIR_NONE, 0);
  }
}

// Rows of a panel's registers, |at| into it: |count| elements of k from |first| on and zeros
// behind them, or |count| rows of zeros.
typedef struct amx_words_t {
  pestle_kir_id_t first, at;
  int64_t count;
} amx_words_t;

static pestle_kir_id_t words_at(amx_t* t, const amx_words_t* w,
                                pestle_kir_id_t number) {
  return pestle_kir_madi(t->k, number, pestle_amx_panel(&t->m), w->at);
}

static void words_of_panel(amx_t* t, const void* user, pestle_kir_id_t number,
                           pestle_kir_id_t panel, int64_t columns) {
  const amx_words_t* w = user;
  pack_words(t, panel, w->first, w->count, columns, words_at(t, w, number));
}

static void zeros_of_panel(amx_t* t, const void* user, pestle_kir_id_t number,
                           pestle_kir_id_t panel, int64_t columns) {
  (void)panel;
  const amx_words_t* w = user;
  pestle_kir_builder_t* k = t->k;
  pestle_kir_id_t at = words_at(t, w, number);
  pestle_kir_id_t r = pestle_kir_repeat(k, "r", w->count);
  at = pestle_kir_madi(k, r, t->m.step, at);
  for (int64_t i = 0; i < pestle_ceil_div(columns, SIDE); ++i) {
    pestle_kir_store(k, t->panel,
                     pestle_amx_emit_add(t, at, i * SIDE * t->m.step), zeros(t),
                     PESTLE_KIR_NONE, 0);
  }
  pestle_kir_end_repeat(k, w->count);
}

// Panels are innermost: of each row of b the group's columns are read at once.
static void pack_columns(amx_t* t) {
  pestle_kir_builder_t* k = t->k;
  const pestle_amx_t* m = &t->m;
  int64_t whole = m->p.k.all / m->step, rest = m->p.k.all % m->step;
  int64_t step = m->step * m->tile_columns;
  if (whole) {
    pestle_kir_id_t s = pestle_kir_repeat(k, "s", whole);
    pestle_kir_id_t r = pestle_kir_repeat(k, "r", SIDE);
    amx_words_t w = {.count = m->word};
    w.first = pestle_kir_madi(
        k, s, m->step, pestle_kir_scalar_i(k, PESTLE_OP_MULTIPLY, r, m->word));
    w.at = pestle_kir_madi(
        k, s, step, pestle_kir_scalar_i(k, PESTLE_OP_MULTIPLY, r, m->step));
    pestle_amx_emit_panels(t, words_of_panel, &w);
    pestle_kir_end_repeat(k, SIDE);
    pestle_kir_end_repeat(k, whole);
  }
  if (!rest) return;
  int64_t full = rest / m->word, more = rest % m->word;
  pestle_kir_id_t from = pestle_kir_index(k, whole * step);
  if (full) {
    pestle_kir_id_t r = pestle_kir_repeat(k, "r", full);
    amx_words_t w = {.count = m->word};
    w.first =
        pestle_kir_madi(k, r, m->word, pestle_kir_index(k, whole * m->step));
    w.at = pestle_kir_madi(k, r, m->step, from);
    pestle_amx_emit_panels(t, words_of_panel, &w);
    pestle_kir_end_repeat(k, full);
  }
  if (more) {
    amx_words_t w = {.count = more};
    w.first = pestle_kir_index(k, whole * m->step + full * m->word);
    w.at = pestle_amx_emit_add(t, from, full * m->step);
    pestle_amx_emit_panels(t, words_of_panel, &w);
  }
  int64_t made = full + (more != 0);
  if (made == SIDE) return;
  amx_words_t none = {.at = pestle_amx_emit_add(t, from, made * m->step),
                      .count = SIDE - made};
  pestle_amx_emit_panels(t, zeros_of_panel, &none);
}

// --- A panel of b, elements of k side by side in memory ---

// Swaps, of each two rows |step| apart, the blocks of |step| words beside the
// diagonal.
static void turn_round(amx_t* t, pestle_kir_id_t* row, uint32_t step) {
  uint32_t low[PESTLE_AMX_BYTES], high[PESTLE_AMX_BYTES];
  uint32_t word = (uint32_t)t->m.word, lanes = word * SIDE;
  for (uint32_t l = 0; l < lanes; ++l) {
    bool right = (l / word & step) != 0;
    low[l] = right ? lanes + l - step * word : l;
    high[l] = right ? lanes + l : l + step * word;
  }
  for (uint32_t i = 0; i < SIDE; ++i) {
    if (i & step) continue;
    pestle_kir_id_t a = row[i], b = row[i + step];
    row[i] = pestle_kir_shuffle(t->k, a, b, low, lanes);
    row[i + step] = pestle_kir_shuffle(t->k, a, b, high, lanes);
  }
}

// One register: 16 columns from |column| on, elements of k of vector |v| of which |valid|
// exist.
static void turn_register(amx_t* t, pestle_kir_id_t column, pestle_kir_id_t v,
                          int64_t valid, pestle_kir_id_t at) {
  pestle_kir_builder_t* k = t->k;
  const pestle_amx_t* m = &t->m;
  pestle_kir_id_t row[SIDE];
  for (int64_t i = 0; i < SIDE; ++i) {
    // Those that are too many are made again, and not stored.
    pestle_kir_id_t own = pestle_amx_emit_add(t, column, i);
    if (m->p.n.all % m->tile_columns) {
      own = pestle_kir_scalar_i(k, PESTLE_OP_MINIMUM, own, m->p.n.all - 1);
    }
    pestle_amx_emit_fix(t, m->column, own);
    pestle_amx_emit_open(t, m->k_axis[0].axis, &t->depth, v, valid);
    row[i] = operand(t, &m->p.b, true);
    pestle_emit_close_vector(t->e);
  }
  for (uint32_t step = 1; step < SIDE; step *= 2)
    turn_round(t, row, step);
  for (int64_t i = 0; i < SIDE; ++i) {
    pestle_kir_store(k, t->panel, pestle_amx_emit_add(t, at, i * m->step),
                     row[i], PESTLE_KIR_NONE, 0);
  }
}

static void pack_k(amx_t* t, const void* user, pestle_kir_id_t number,
                   pestle_kir_id_t panel, int64_t columns) {
  (void)user;
  pestle_kir_builder_t* k = t->k;
  const pestle_amx_t* m = &t->m;
  int64_t whole = m->p.k.all / m->step, rest = m->p.k.all % m->step;
  int64_t size = SIDE * m->step, across = m->tile_columns / SIDE;
  int64_t used = pestle_ceil_div(columns, SIDE);
  pestle_kir_id_t base =
      pestle_kir_scalar_i(k, PESTLE_OP_MULTIPLY, number, pestle_amx_panel(m));
  pestle_kir_id_t i = pestle_kir_repeat(t->k, "j", used);
  pestle_kir_id_t column =
      pestle_kir_madi(k, panel, m->tile_columns,
                      pestle_kir_scalar_i(k, PESTLE_OP_MULTIPLY, i, SIDE));
  pestle_kir_id_t at = pestle_kir_madi(k, i, size, base);
  if (whole) {
    pestle_kir_id_t s = pestle_kir_repeat(t->k, "s", whole);
    turn_register(t, column, s, m->step,
                  pestle_kir_madi(k, s, across * size, at));
    pestle_kir_end_repeat(t->k, whole);
  }
  if (rest) {
    turn_register(t, column, pestle_kir_index(k, whole), rest,
                  pestle_amx_emit_add(t, at, whole * across * size));
  }
  pestle_kir_end_repeat(t->k, used);
}

void pestle_amx_emit_pack_panels(amx_t* t) {
  pestle_kir_builder_t* k = t->k;
  const pestle_amx_t* m = &t->m;
  size_t scope = pestle_emit_scope(t->e);
  pestle_amx_emit_place(t, &m->p.batch, false, t->batch);
  for (uint32_t i = 0; i < m->p.n.count; ++i)
    pestle_amx_emit_fix(t, m->p.n.reduce[i], pestle_kir_index(k, 0));
  for (uint32_t i = 0; i < m->p.k.count; ++i)
    pestle_amx_emit_fix(t, m->p.k.reduce[i], pestle_kir_index(k, 0));
  if (m->p.b.along_k) {
    pestle_amx_emit_panels(t, pack_k, NULL);
  } else {
    pack_columns(t);
  }
  pestle_emit_unscope(t->e, scope);
}
