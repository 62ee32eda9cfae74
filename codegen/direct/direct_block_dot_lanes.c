// SPDX-License-Identifier: Apache-2.0
// A product of few rows with weights of a few bits on a target whose lanes run side by side:
// a team of lanes shares a row of weights, which it reads once, as it lies.
//
//   for groups of columns in group.x: for l in lane.x:      team = l / lanes, its columns
//     for each few rows of x:
//       for chunks of words, one a lane of the team:        up to 16 bytes of weights
//         x there, the sums of it
//         for each column: total += scale * (parts of the words by parts of x)
//       y = sg_reduce(total)
//
// In bytes x is an operand of bytes, with a scale for each 32 of them: what makes those stands
// in front of the group, once for all products of one x (passes/whole_block_dot_lanes.c). The
// bytes lie as [rows, words, parts, 4], in the order in which a word has its weights. In f32 a
// weight becomes 1 + w / 2^bits, as direct_block_dot.c says.
#include "base/bits.h"
#include "codegen/direct/direct_block_dot.h"

enum {
  GROUP_LANES = 128,
  LEAST_TEAM = 8,
  TEAM_ROWS = 4,
  CHUNK_WORDS = 4,
  F32_CHUNK = 8,  // numbers of x that a lane takes at once
  FRACTION = 23,
  ONE = 0x3f800000,
};

typedef struct lanes_dot_t {
  block_dot_t b;
  int64_t chunk, units;    // words of a lane, such chunks of a row
  int64_t team, teams;     // lanes of a team, teams of a group
  int64_t rows_at_a_time;  // of x
  uint32_t y, totals;
  pk_t lane, first_column;  // of the team
  pk_t columns[MOST_COLUMNS];
  // Of a chunk, by row: parts of x, its sum and the scale.
  pk_t x[TEAM_ROWS][32], sum[TEAM_ROWS], first[TEAM_ROWS], rate[TEAM_ROWS];
} lanes_dot_t;

static pk_t op(lanes_dot_t* w, pestle_op_t o, pk_t a, pk_t b) {
  return pestle_kir_scalar(w->b.k, o, a, b, PESTLE_KIR_NONE);
}

static pk_t real(lanes_dot_t* w, double value) {
  return pestle_kir_float(w->b.k, PESTLE_F32, 1, value);
}

static pk_t words_of(lanes_dot_t* w, uint32_t buffer, unsigned lanes, pk_t at,
                     unsigned align) {
  pk_t id = pestle_kir_load_words(w->b.k, buffer, lanes, at);
  if (!w->b.k->failed) w->b.k->inst.data[id].align_log2 = (uint8_t)align;
  return id;
}

// Words that begin at multiples of |words| of them, log2 of the bytes.
static unsigned align_of(const lanes_dot_t* w, uint32_t buffer, int64_t words) {
  unsigned bytes = pestle_log2_floor((uint64_t)(words & -words)) + 2;
  unsigned own =
      w->b.k->failed ? 6 : pestle_log2_floor(w->b.k->buffer.data[buffer].align);
  if (own < bytes) bytes = own;
  return bytes < 4 ? bytes : 4;
}

// --- x ---

static void load_bytes(lanes_dot_t* w, int64_t m, pk_t row, pk_t unit) {
  block_dot_t* b = &w->b;
  uint32_t lanes_of[CHUNK_WORDS];
  unsigned chunk = (unsigned)w->chunk, all = (unsigned)(w->chunk * b->parts);
  pk_t at = pestle_kir_madi(b->k, row, b->words, number(b, 0));
  at = pestle_kir_madi(b->k, unit, w->chunk, at);
  at = pestle_kir_madi(b->k, at, b->parts * WORD_BYTES, number(b, 0));
  pk_t words = words_of(w, b->x, all, at,
                        align_of(w, b->x, (b->words | w->chunk) * b->parts));
  pk_t sum = word_number(b, chunk, 0);
  for (int64_t part = 0; part < b->parts; ++part) {
    for (unsigned i = 0; i < chunk; ++i)
      lanes_of[i] = (uint32_t)(i * b->parts + part);
    w->x[m][part] = pestle_kir_shuffle(b->k, words, words, lanes_of, chunk);
    sum = pestle_kir_dot(b->k, word_number(b, chunk, 0x01010101), w->x[m][part],
                         sum, PESTLE_KIR_DOT4_B_SIGNED);
  }
  if (chunk > 1) sum = pestle_kir_reduce(b->k, sum, PESTLE_OP_ADD);
  int64_t zero = (int64_t)1 << (b->bits - 1);
  w->first[m] = op(w, PESTLE_OP_MULTIPLY, sum, word_number(b, 1, -zero));
  w->sum[m] = pestle_kir_cast(b->k, sum, PESTLE_F32);
  // Scales of x are of as many numbers as a block has, or of 32.
  int64_t size = b->block < X_BLOCK ? b->block : X_BLOCK;
  int64_t each = size / (w->chunk * b->word_weights);
  pk_t scale =
      each > 1 ? pestle_kir_scalar_i(b->k, PESTLE_OP_DIVIDE, unit, each) : unit;
  int64_t scales = b->words * b->word_weights / size;
  scale = pestle_kir_madi(b->k, row, scales, scale);
  w->rate[m] = pestle_direct_load(b->d, w->b.x_scales, scale);
}

static void load_floats(lanes_dot_t* w, int64_t m, pk_t row, pk_t unit) {
  block_dot_t* b = &w->b;
  int64_t count = w->chunk * b->word_weights;
  pk_t at = pestle_kir_madi(b->k, unit, count, number(b, 0));
  pk_t index = pestle_kir_madi(b->k, row, b->depth, at);
  pk_t mask = PESTLE_KIR_NONE;
  if (b->words * b->word_weights != b->depth)
    mask = pestle_kir_mask(b->k, at, number(b, b->depth), (unsigned)count);
  unsigned size = (unsigned)pestle_dtype_size(b->dtype);
  int64_t together = b->depth | count;
  unsigned align = (unsigned)(together & -together) * size;
  pk_t x = pestle_kir_load(b->k, b->x, (unsigned)count, index, mask,
                           align < 16 ? align : 16);
  x = pestle_kir_cast(b->k, x, PESTLE_F32);
  pk_t sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    pk_t one = pestle_kir_extract(b->k, x, (unsigned)i);
    one = op(w, PESTLE_OP_MULTIPLY, one, real(w, (double)(1 << b->bits)));
    w->x[m][i] = one;
    sum = i ? op(w, PESTLE_OP_ADD, sum, one) : one;
  }
  w->first[m] =
      op(w, PESTLE_OP_MULTIPLY, sum, real(w, b->has_zeros ? -1 : -1.5));
  w->sum[m] =
      op(w, PESTLE_OP_MULTIPLY, sum, real(w, 1.0 / (double)(1 << b->bits)));
}

// --- Weights ---

static pk_t bytes_of(lanes_dot_t* w, pk_t words, int64_t part) {
  block_dot_t* b = &w->b;
  unsigned lanes = (unsigned)w->chunk;
  int64_t mask = ((1 << b->bits) - 1) * 0x01010101;
  if (b->bits == 8) return words;
  if (part)
    words = op(w, PESTLE_OP_SHIFT_RIGHT_LOGICAL, words,
               word_number(b, lanes, part * b->bits));
  return op(w, PESTLE_OP_AND, words, word_number(b, lanes, mask));
}

// Weight |i| of a word as 1 + w / 2^bits.
static pk_t float_of(lanes_dot_t* w, pk_t word, int64_t i) {
  block_dot_t* b = &w->b;
  int64_t left = FRACTION - b->bits - i * b->bits;
  int64_t mask = ((1 << b->bits) - 1) << (FRACTION - b->bits);
  if (left)
    word =
        op(w, left > 0 ? PESTLE_OP_SHIFT_LEFT : PESTLE_OP_SHIFT_RIGHT_LOGICAL,
           word, word_number(b, 1, left > 0 ? left : -left));
  word = op(w, PESTLE_OP_AND, word, word_number(b, 1, mask));
  word = op(w, PESTLE_OP_OR, word, word_number(b, 1, ONE));
  return pestle_kir_bitcast(b->k, word, PESTLE_F32);
}

// Sums of products of a chunk, a row of x each, as f32.
static void multiply(lanes_dot_t* w, pk_t words, pk_t* d) {
  block_dot_t* b = &w->b;
  unsigned chunk = (unsigned)w->chunk;
  if (!b->is_bytes) {
    for (int64_t m = 0; m < b->rows; ++m)
      d[m] = w->first[m];
    for (int64_t i = 0; i < w->chunk * b->word_weights; ++i) {
      pk_t word = words;
      if (chunk > 1)
        word = pestle_kir_extract(b->k, words, (unsigned)(i / b->word_weights));
      pk_t one = float_of(w, word, i % b->word_weights);
      for (int64_t m = 0; m < b->rows; ++m)
        d[m] = pestle_kir_scalar(b->k, PESTLE_OP_FMA, one, w->x[m][i], d[m]);
    }
    return;
  }
  for (int64_t m = 0; m < b->rows; ++m)
    d[m] = word_number(b, chunk, 0);
  for (int64_t part = 0; part < b->parts; ++part) {
    pk_t bytes = bytes_of(w, words, part);
    for (int64_t m = 0; m < b->rows; ++m)
      d[m] = pestle_kir_dot(b->k, bytes, w->x[m][part], d[m],
                            PESTLE_KIR_DOT4_B_SIGNED);
  }
  for (int64_t m = 0; m < b->rows; ++m) {
    if (chunk > 1) d[m] = pestle_kir_reduce(b->k, d[m], PESTLE_OP_ADD);
    if (!b->has_zeros) d[m] = op(w, PESTLE_OP_ADD, d[m], w->first[m]);
    d[m] = pestle_kir_cast(b->k, d[m], PESTLE_F32);
  }
}

static pk_t of_block(lanes_dot_t* w, uint32_t buffer, pk_t column, pk_t block) {
  pk_t at = pestle_kir_madi(w->b.k, column, w->b.blocks, block);
  return pestle_kir_cast(w->b.k, pestle_direct_load(w->b.d, buffer, at),
                         PESTLE_F32);
}

static void add_chunk(lanes_dot_t* w, pk_t unit, pk_t first_row) {
  block_dot_t* b = &w->b;
  const block_product_t* p = &b->products[0];
  int64_t each = b->block_words / w->chunk;
  pk_t block =
      each > 1 ? pestle_kir_scalar_i(b->k, PESTLE_OP_DIVIDE, unit, each) : unit;
  pk_t words[MOST_COLUMNS], d[TEAM_ROWS];
  unsigned align = align_of(w, p->w, b->words | w->chunk);
  // All loads of weights are on their way before the first is waited for.
  for (int64_t c = 0; c < b->columns; ++c) {
    pk_t at = pestle_kir_madi(b->k, w->columns[c], b->words, number(b, 0));
    at = pestle_kir_madi(b->k, unit, w->chunk, at);
    at = pestle_kir_madi(b->k, at, WORD_BYTES, number(b, 0));
    words[c] = words_of(w, p->w, (unsigned)w->chunk, at, align);
  }
  for (int64_t m = 0; m < b->rows; ++m) {
    pk_t row = pestle_kir_madi(b->k, first_row, 1, number(b, m));
    if (b->is_bytes)
      load_bytes(w, m, row, unit);
    else
      load_floats(w, m, row, unit);
  }
  for (int64_t c = 0; c < b->columns; ++c) {
    pk_t scale = of_block(w, p->scales, w->columns[c], block);
    pk_t zero = 0;
    if (b->has_zeros) {
      zero = of_block(w, p->zeros, w->columns[c], block);
      zero = op(w, PESTLE_OP_NEGATE, zero, PESTLE_KIR_NONE);
    }
    multiply(w, words[c], d);
    for (int64_t m = 0; m < b->rows; ++m) {
      pk_t index = number(b, c * w->rows_at_a_time + m);
      if (b->has_zeros)
        d[m] = pestle_kir_scalar(b->k, PESTLE_OP_FMA, zero, w->sum[m], d[m]);
      if (b->is_bytes) d[m] = op(w, PESTLE_OP_MULTIPLY, d[m], w->rate[m]);
      pk_t total = pestle_direct_load(b->d, w->totals, index);
      total = pestle_kir_scalar(b->k, PESTLE_OP_FMA, scale, d[m], total);
      pestle_direct_store(b->d, w->totals, index, total);
    }
  }
}

// --- Rows ---

static void do_rows(lanes_dot_t* w, pk_t first_row, int64_t rows) {
  block_dot_t* b = &w->b;
  b->rows = rows;
  int64_t turns = (w->units + w->team - 1) / w->team;
  pestle_kir_alloc(b->k, w->totals);
  for (int64_t i = 0; i < b->columns * w->rows_at_a_time; ++i)
    pestle_direct_store(b->d, w->totals, number(b, i), real(w, 0));
  pk_t i = pestle_kir_repeat(b->k, "chunk", turns);
  pk_t unit = pestle_kir_madi(b->k, i, w->team, w->lane);
  bool has_tail = turns * w->team != w->units;
  if (has_tail) {
    pestle_kir_if(b->k,
                  pestle_kir_scalar_i(b->k, PESTLE_OP_LT, unit, w->units));
    unit = pestle_kir_scalar_i(b->k, PESTLE_OP_MINIMUM, unit, w->units - 1);
  }
  add_chunk(w, unit, first_row);
  if (has_tail) pestle_kir_end(b->k);
  pestle_kir_end_repeat(b->k, turns);
  const int64_t all = b->pieces[0].columns;
  for (int64_t c = 0; c < b->columns; ++c) {
    pk_t column = pestle_kir_madi(b->k, w->first_column, 1, number(b, c));
    pk_t is_stored = op(w, PESTLE_OP_EQ, w->lane, number(b, 0));
    is_stored = op(w, PESTLE_OP_AND, is_stored,
                   pestle_kir_scalar_i(b->k, PESTLE_OP_LT, column, all));
    for (int64_t m = 0; m < rows; ++m) {
      pk_t total = pestle_direct_load(b->d, w->totals,
                                      number(b, c * w->rows_at_a_time + m));
      total =
          pestle_kir_sg_reduce(b->k, total, PESTLE_OP_ADD, (unsigned)w->team);
      pk_t row = pestle_kir_madi(b->k, first_row, 1, number(b, m));
      pk_t at = pestle_kir_madi(b->k, row, all, w->columns[c]);
      pestle_kir_if(b->k, is_stored);
      pestle_direct_store(b->d, w->y, at,
                          pestle_kir_cast(b->k, total, b->dtype));
      pestle_kir_end(b->k);
    }
  }
}

// --- The kernel ---

// The most lanes that are busy, of those the most lanes.
static int64_t choose_team(int64_t units, int64_t most) {
  enum { PERCENT = 85 };
  int64_t best = LEAST_TEAM, best_busy = 0;
  for (int64_t team = most; team >= LEAST_TEAM; team /= 2) {
    int64_t busy = 100 * units / ((units + team - 1) / team * team);
    if (busy >= PERCENT) return team;
    if (busy > best_busy) {
      best = team;
      best_busy = busy;
    }
  }
  return best;
}

// As many columns of a team as leave groups enough for all cores.
static int64_t choose_columns(int64_t all, int64_t teams, int64_t cores) {
  enum { GROUPS_A_CORE = 3 };
  int64_t columns = MOST_COLUMNS;
  while (columns > 1 && (all + teams * columns - 1) / (teams * columns) <
                            GROUPS_A_CORE * cores)
    columns /= 2;
  return columns;
}

static void read(lanes_dot_t* w, pestle_direct_t* d) {
  block_dot_t* b = &w->b;
  const pestle_node_t* node = pestle_direct_whole_of(d->node);
  const pestle_block_t* body = pestle_node_body(d->node, 0);
  const pestle_type_t *x = pestle_node_operand(node, 0)->type,
                      *scales = pestle_node_operand(node, 2)->type;
  b->d = d;
  b->k = d->k;
  b->dtype = x->dtype;
  b->is_bytes = body->arguments[0]->type->dtype == PESTLE_I8;
  b->bits = PESTLE_NODE_I64(node, bits);
  b->block = PESTLE_NODE_I64(node, block);
  b->blocks = scales->dims[1];
  b->has_zeros = node->operand_count > 3;
  b->block_words = b->block * b->bits / 32;
  b->words = b->blocks * b->block_words;
  b->word_weights = 32 / b->bits;
  b->parts = 8 / b->bits;
  b->depth = x->dims[x->rank - 1];
  b->all_rows = pestle_type_count(x) / b->depth;
  b->pieces[0].columns = scales->dims[0];
  b->x = pestle_direct_operand(d, 0);
  if (b->is_bytes) b->x_scales = pestle_direct_operand(d, 1);
  b->products[0].w = pestle_direct_argument(d, pestle_node_operand(node, 1));
  b->products[0].scales =
      pestle_direct_argument(d, pestle_node_operand(node, 2));
  if (b->has_zeros)
    b->products[0].zeros =
        pestle_direct_argument(d, pestle_node_operand(node, 3));
  w->y = pestle_direct_result(d, 0);
}

pestle_status_t pestle_direct_block_dot_lanes(pestle_direct_t* d) {
  lanes_dot_t w = {0};
  block_dot_t* b = &w.b;
  read(&w, d);
  w.chunk = b->is_bytes ? CHUNK_WORDS : F32_CHUNK / b->word_weights;
  if (w.chunk < 1) w.chunk = 1;
  if (w.chunk > b->block_words) w.chunk = b->block_words;
  w.units = b->words / w.chunk;
  w.rows_at_a_time = b->all_rows < TEAM_ROWS ? b->all_rows : TEAM_ROWS;
  int64_t most = d->caps->subgroup < 32 ? d->caps->subgroup : 32;
  w.team = choose_team(w.units, most);
  w.teams = GROUP_LANES / w.team;
  int64_t all = b->pieces[0].columns;
  b->columns = choose_columns(all, w.teams, d->caps->cores);
  int64_t panel = w.teams * b->columns, groups = (all + panel - 1) / panel;
  w.totals =
      pestle_kir_add_buffer(b->k, "totals", PESTLE_KIR_PRIVATE, PESTLE_F32, 1,
                            b->columns * w.rows_at_a_time, 0);
  pk_t group = pestle_kir_for(b->k, "group", number(b, 0), number(b, groups), 1,
                              PESTLE_KIR_GROUP_X);
  pk_t lane = pestle_kir_for(b->k, "lane", number(b, 0), number(b, GROUP_LANES),
                             1, PESTLE_KIR_LANE_X);
  pk_t team = pestle_kir_scalar_i(b->k, PESTLE_OP_DIVIDE, lane, w.team);
  w.lane = pestle_kir_scalar_i(b->k, PESTLE_OP_REMAINDER, lane, w.team);
  team = pestle_kir_madi(b->k, group, w.teams, team);
  w.first_column = pestle_kir_madi(b->k, team, b->columns, number(b, 0));
  for (int64_t c = 0; c < b->columns; ++c) {
    w.columns[c] = pestle_kir_madi(b->k, w.first_column, 1, number(b, c));
    w.columns[c] =
        pestle_kir_scalar_i(b->k, PESTLE_OP_MINIMUM, w.columns[c], all - 1);
  }
  int64_t whole = b->all_rows / w.rows_at_a_time,
          rest = b->all_rows % w.rows_at_a_time;
  pk_t i = pestle_kir_repeat(b->k, "rows", whole);
  do_rows(&w, pestle_kir_madi(b->k, i, w.rows_at_a_time, number(b, 0)),
          w.rows_at_a_time);
  pestle_kir_end_repeat(b->k, whole);
  if (rest) do_rows(&w, number(b, whole * w.rows_at_a_time), rest);
  pestle_kir_end(b->k);
  pestle_kir_end(b->k);
  d->steps = (uint64_t)(b->all_rows * all * b->words * b->parts);
  return NULL;
}
