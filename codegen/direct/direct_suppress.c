// SPDX-License-Identifier: Apache-2.0
// suppress: of boxes that overlap the one with the best score. Rows of scores in
// parallel:
//
//   for row in group.x:
//     for each block of the row: the best of its candidates
//     as often as there are candidates, until enough are chosen:
//       the best of all blocks is next; its block's best is looked for again
//       it is chosen, unless one of the chosen overlaps it
//
// A candidate is one i64: the order of its score in the upper word, so that larger
// comes first, and 2^31 - 1 less its position in the lower one. All are different, so
// that what was taken is what is not less than the last one taken: nothing is marked or
// moved, and nothing is sorted that nobody asks for.
#include "codegen/direct/direct.h"

enum { POSITIONS = INT32_MAX, COLUMNS = 5 };

typedef struct suppress_t {
  pestle_direct_t* d;
  unsigned lanes;
  int64_t boxes, classes, most, block, blocks;
  bool centers;
  uint32_t box, score, places, counts;  // buffers
  uint32_t best, column[COLUMNS];       // of blocks; of what is chosen
  pk_t scores_at, boxes_at, places_at, best_at, chosen_at;  // of the row
  pk_t threshold, overlap, any_score, limit, count;
  uint32_t left, chosen, top, vector, hit;  // variables
} suppress_t;

static pk_t op(suppress_t* s, pestle_op_t o, pk_t a, pk_t b) {
  return pestle_direct_op(s->d, o, a, b);
}

static pk_t number(suppress_t* s, int64_t value) {
  return pestle_direct_index(s->d, value);
}

static pk_t loop(suppress_t* s, const char* name, pk_t lo, pk_t hi,
                 int64_t step) {
  return pestle_kir_for(s->d->k, name, lo, hi, (int32_t)step,
                        PESTLE_KIR_SERIAL);
}

static void end(suppress_t* s) {
  pestle_kir_end(s->d->k);
}

static pk_t none(suppress_t* s, unsigned lanes) {
  return pestle_kir_int(s->d->k, PESTLE_I64, lanes, INT64_MIN);
}

// --- Candidates ---

// |scores| from box |at| on as numbers of their order.
static pk_t candidates(suppress_t* s, pk_t scores, pk_t at) {
  pestle_kir_builder_t* k = s->d->k;
  unsigned n = s->lanes;
  pk_t zero = pestle_kir_float(k, PESTLE_F32, n, 0);  // -0 becomes 0
  pk_t bits =
      pestle_kir_bitcast(k, op(s, PESTLE_OP_ADD, scores, zero), PESTLE_I32);
  pk_t sign = op(s, PESTLE_OP_SHIFT_RIGHT_ARITHMETIC, bits,
                 pestle_kir_int(k, PESTLE_I32, n, 31));
  sign =
      op(s, PESTLE_OP_AND, sign, pestle_kir_int(k, PESTLE_I32, n, INT32_MAX));
  pk_t key = pestle_kir_cast(k, op(s, PESTLE_OP_XOR, bits, sign), PESTLE_I64);
  key = op(s, PESTLE_OP_SHIFT_LEFT, key, pestle_kir_int(k, PESTLE_I64, n, 32));
  pk_t position = pestle_kir_cast(k, at, PESTLE_I64);
  position = op(s, PESTLE_OP_SUBTRACT,
                pestle_kir_int(k, PESTLE_I64, 1, POSITIONS), position);
  position = op(s, PESTLE_OP_SUBTRACT, pestle_kir_splat(k, position, n),
                pestle_kir_iota(k, PESTLE_I64, n));
  return op(s, PESTLE_OP_ADD, key, position);
}

// Which of the scores from box |at| on are candidates' at all.
static pk_t load_scores(suppress_t* s, pk_t at, pk_t* out_counts) {
  pestle_kir_builder_t* k = s->d->k;
  pk_t mask = pestle_kir_mask(k, at, s->count, s->lanes);
  pk_t x = pestle_kir_load(k, s->score, s->lanes,
                           op(s, PESTLE_OP_ADD, s->scores_at, at), mask, 0);
  pk_t above =
      op(s, PESTLE_OP_GT, x, pestle_kir_splat(k, s->threshold, s->lanes));
  above =
      op(s, PESTLE_OP_OR, above, pestle_kir_splat(k, s->any_score, s->lanes));
  *out_counts = op(s, PESTLE_OP_AND, above, mask);
  return x;
}

static pk_t at_block(suppress_t* s, pk_t block) {
  return op(s, PESTLE_OP_ADD, s->best_at, block);
}

// The boxes of block |block|, a vector each step.
static pk_t loop_block(suppress_t* s, pk_t block) {
  pk_t from = pestle_kir_madi(s->d->k, block, s->block, number(s, 0));
  pk_t to = op(s, PESTLE_OP_ADD, from, number(s, s->block));
  to = op(s, PESTLE_OP_MINIMUM, to, s->count);
  return loop(s, "v", from, to, s->lanes);
}

// The best of each block, and how many candidates there are.
static void look_at_all(suppress_t* s) {
  pestle_direct_t* d = s->d;
  pestle_kir_builder_t* k = d->k;
  pestle_direct_set(d, s->left, number(s, 0));
  pk_t last = op(s, PESTLE_OP_ADD, s->count, number(s, s->block - 1));
  last = op(s, PESTLE_OP_DIVIDE, last, number(s, s->block));
  pk_t b = loop(s, "block", number(s, 0), last, 1);
  pestle_direct_set(d, s->top, none(s, 1));
  pk_t counts, v = loop_block(s, b);
  pk_t x = load_scores(s, v, &counts);
  pestle_kir_if(k, pestle_kir_reduce(k, counts, PESTLE_OP_OR));
  pk_t values =
      pestle_direct_select(d, counts, candidates(s, x, v), none(s, s->lanes));
  pk_t top = pestle_kir_reduce(k, values, PESTLE_OP_MAXIMUM);
  pestle_direct_set(
      d, s->top, op(s, PESTLE_OP_MAXIMUM, pestle_direct_get(d, s->top), top));
  pk_t some = pestle_kir_reduce(k, pestle_kir_cast(k, counts, PESTLE_I32),
                                PESTLE_OP_ADD);
  pestle_direct_set(d, s->left,
                    op(s, PESTLE_OP_ADD, pestle_direct_get(d, s->left),
                       pestle_kir_cast(k, some, PESTLE_INDEX)));
  end(s);
  end(s);
  pestle_direct_store(d, s->best, at_block(s, b), pestle_direct_get(d, s->top));
  end(s);
}

// The best of all blocks; none() where no block has one.
static pk_t take_best(suppress_t* s) {
  pestle_direct_t* d = s->d;
  pestle_kir_builder_t* k = d->k;
  pestle_direct_set(d, s->vector, none(s, s->lanes));
  pk_t last = op(s, PESTLE_OP_ADD, s->count, number(s, s->block - 1));
  last = op(s, PESTLE_OP_DIVIDE, last, number(s, s->block));
  pk_t b = loop(s, "b", number(s, 0), last, s->lanes);
  pk_t mask = pestle_kir_mask(k, b, last, s->lanes);
  pk_t x = pestle_kir_load(k, s->best, s->lanes, at_block(s, b), mask, 0);
  x = pestle_direct_select(d, mask, x, none(s, s->lanes));
  pestle_direct_set(
      d, s->vector,
      op(s, PESTLE_OP_MAXIMUM, pestle_direct_get(d, s->vector), x));
  end(s);
  return pestle_kir_reduce(k, pestle_direct_get(d, s->vector),
                           PESTLE_OP_MAXIMUM);
}

// What is best of box |at|'s block without |taken| and all that came before it.
static void look_again(suppress_t* s, pk_t at, pk_t taken) {
  pestle_direct_t* d = s->d;
  pestle_kir_builder_t* k = d->k;
  pk_t block = op(s, PESTLE_OP_DIVIDE, at, number(s, s->block));
  pestle_direct_set(d, s->vector, none(s, s->lanes));
  pk_t counts, v = loop_block(s, block);
  pk_t x = candidates(s, load_scores(s, v, &counts), v);
  pk_t later = op(s, PESTLE_OP_LT, x, pestle_kir_splat(k, taken, s->lanes));
  x = pestle_direct_select(d, op(s, PESTLE_OP_AND, counts, later), x,
                           none(s, s->lanes));
  pestle_direct_set(
      d, s->vector,
      op(s, PESTLE_OP_MAXIMUM, pestle_direct_get(d, s->vector), x));
  end(s);
  pestle_direct_store(
      d, s->best, at_block(s, block),
      pestle_kir_reduce(k, pestle_direct_get(d, s->vector), PESTLE_OP_MAXIMUM));
}

// --- Boxes ---

// Lower and upper corner, and area.
static void load_box(suppress_t* s, pk_t at, pk_t* out) {
  pestle_kir_builder_t* k = s->d->k;
  pk_t from = pestle_kir_madi(k, at, 4, s->boxes_at);
  pk_t half = pestle_kir_float(k, PESTLE_F32, 1, 2);
  for (int i = 0; i < 2; ++i) {
    pk_t a = pestle_direct_load(s->d, s->box,
                                op(s, PESTLE_OP_ADD, from, number(s, i)));
    pk_t b = pestle_direct_load(s->d, s->box,
                                op(s, PESTLE_OP_ADD, from, number(s, i + 2)));
    if (s->centers) {
      b = op(s, PESTLE_OP_DIVIDE, b, half);
      out[i] = op(s, PESTLE_OP_SUBTRACT, a, b);
      out[i + 2] = op(s, PESTLE_OP_ADD, a, b);
    } else {
      pk_t less = op(s, PESTLE_OP_LT, a, b);
      out[i] = pestle_direct_select(s->d, less, a, b);
      out[i + 2] = pestle_direct_select(s->d, less, b, a);
    }
  }
  pk_t height = op(s, PESTLE_OP_SUBTRACT, out[3], out[1]);
  pk_t width = op(s, PESTLE_OP_SUBTRACT, out[2], out[0]);
  out[4] = op(s, PESTLE_OP_MULTIPLY, width, height);
}

// Which of the chosen boxes |x| the box |own| overlaps too much.
static pk_t overlaps(suppress_t* s, const pk_t* own, const pk_t* x) {
  pestle_direct_t* d = s->d;
  pk_t zero = pestle_kir_float(d->k, PESTLE_F32, s->lanes, 0);
  pk_t common = PESTLE_KIR_NONE, hit = PESTLE_KIR_NONE;
  for (int i = 0; i < 2; ++i) {
    pk_t low = pestle_direct_select(d, op(s, PESTLE_OP_GT, own[i], x[i]),
                                    own[i], x[i]);
    pk_t high = pestle_direct_select(
        d, op(s, PESTLE_OP_LT, own[i + 2], x[i + 2]), own[i + 2], x[i + 2]);
    pk_t some = op(s, PESTLE_OP_GT, high, low);
    pk_t part = op(s, PESTLE_OP_SUBTRACT, high, low);
    hit = i ? op(s, PESTLE_OP_AND, hit, some) : some;
    common = i ? op(s, PESTLE_OP_MULTIPLY, common, part) : part;
  }
  pk_t all =
      op(s, PESTLE_OP_SUBTRACT, op(s, PESTLE_OP_ADD, own[4], x[4]), common);
  pk_t positive[] = {common, own[4], x[4], all};
  for (int i = 0; i < 4; ++i) {
    hit = op(s, PESTLE_OP_AND, hit, op(s, PESTLE_OP_GT, positive[i], zero));
  }
  pk_t above = op(s, PESTLE_OP_GT, op(s, PESTLE_OP_DIVIDE, common, all),
                  pestle_kir_splat(d->k, s->overlap, s->lanes));
  return op(s, PESTLE_OP_AND, hit, above);
}

static pk_t chosen_so_far(suppress_t* s) {
  return pestle_direct_clamp(s->d, pestle_direct_get(s->d, s->chosen), 0,
                             s->most);
}

// Sets |hit| where a box that was chosen overlaps |box|.
static void hold_against_chosen(suppress_t* s, const pk_t* box) {
  pestle_direct_t* d = s->d;
  pestle_kir_builder_t* k = d->k;
  pk_t own[COLUMNS], x[COLUMNS];
  for (int i = 0; i < COLUMNS; ++i)
    own[i] = pestle_kir_splat(k, box[i], s->lanes);
  pestle_direct_set(d, s->hit, pestle_kir_int(k, PESTLE_I32, 1, 0));
  pk_t count = chosen_so_far(s);
  pk_t c = loop(s, "c", number(s, 0), count, s->lanes);
  pk_t mask = pestle_kir_mask(k, c, count, s->lanes);
  pk_t at = op(s, PESTLE_OP_ADD, s->chosen_at, c);
  for (int i = 0; i < COLUMNS; ++i)
    x[i] = pestle_kir_load(k, s->column[i], s->lanes, at, mask, 0);
  pk_t hit = op(s, PESTLE_OP_AND, overlaps(s, own, x), mask);
  hit = pestle_kir_cast(k, pestle_kir_reduce(k, hit, PESTLE_OP_OR), PESTLE_I32);
  pestle_direct_set(d, s->hit,
                    op(s, PESTLE_OP_OR, pestle_direct_get(d, s->hit), hit));
  end(s);
}

static void choose(suppress_t* s, pk_t at, const pk_t* box) {
  pestle_direct_t* d = s->d;
  pk_t to =
      pestle_direct_clamp(d, pestle_direct_get(d, s->chosen), 0, s->most - 1);
  pk_t row = op(s, PESTLE_OP_ADD, s->chosen_at, to);
  for (int i = 0; i < COLUMNS; ++i)
    pestle_direct_store(d, s->column[i], row, box[i]);
  pestle_direct_store(d, s->places, op(s, PESTLE_OP_ADD, s->places_at, to),
                      pestle_kir_cast(d->k, at, PESTLE_I32));
  pestle_direct_set(d, s->chosen, op(s, PESTLE_OP_ADD, to, number(s, 1)));
}

static void choose_boxes(suppress_t* s) {
  pestle_direct_t* d = s->d;
  pestle_kir_builder_t* k = d->k;
  pk_t box[COLUMNS];
  pestle_direct_set(d, s->chosen, number(s, 0));
  pk_t left =
      pestle_direct_clamp(d, pestle_direct_get(d, s->left), 0, s->boxes);
  (void)loop(s, "i", number(s, 0), left, 1);
  pestle_kir_if(k,
                op(s, PESTLE_OP_LT, pestle_direct_get(d, s->chosen), s->limit));
  pk_t taken = take_best(s);
  pk_t low =
      op(s, PESTLE_OP_AND, taken, pestle_kir_int(k, PESTLE_I64, 1, UINT32_MAX));
  pk_t at = op(s, PESTLE_OP_SUBTRACT,
               pestle_kir_int(k, PESTLE_I64, 1, POSITIONS), low);
  at = pestle_direct_clamp(d, pestle_kir_cast(k, at, PESTLE_INDEX), 0,
                           s->boxes - 1);
  look_again(s, at, taken);
  load_box(s, at, box);
  hold_against_chosen(s, box);
  pestle_kir_if(k, op(s, PESTLE_OP_EQ, pestle_direct_get(d, s->hit),
                      pestle_kir_int(k, PESTLE_I32, 1, 0)));
  choose(s, at, box);
  end(s);
  end(s);
  end(s);
}

// --- The kernel ---

static uint32_t memory(suppress_t* s, pestle_dtype_t dtype, int64_t count,
                       bool in_scratch, int64_t rows) {
  if (!in_scratch) return pestle_direct_workspace(s->d, dtype, rows * count);
  return pestle_kir_add_buffer(s->d->k, "chosen", PESTLE_KIR_SHARED, dtype, 1,
                               count, 0);
}

static bool add_memory(suppress_t* s, int64_t rows) {
  int64_t bytes = 8 * s->blocks + 64 + COLUMNS * (4 * s->most + 64);
  bool in_scratch = bytes <= (int64_t)s->d->caps->scratch_bytes;
  s->best = memory(s, PESTLE_I64, s->blocks, in_scratch, rows);
  for (int i = 0; i < COLUMNS; ++i)
    s->column[i] = memory(s, PESTLE_F32, s->most, in_scratch, rows);
  return in_scratch;
}

static pk_t load_scalar(suppress_t* s, uint32_t buffer) {
  return pestle_direct_load(s->d, buffer, number(s, 0));
}

static void start_row(suppress_t* s, pk_t row, bool in_scratch) {
  pestle_direct_t* d = s->d;
  pk_t zero = number(s, 0);
  pk_t batch = op(s, PESTLE_OP_DIVIDE, row, number(s, s->classes));
  s->scores_at = pestle_kir_madi(d->k, row, s->boxes, zero);
  s->boxes_at = pestle_kir_madi(d->k, batch, 4 * s->boxes, zero);
  s->places_at = pestle_kir_madi(d->k, row, s->most, zero);
  s->best_at = in_scratch ? zero : pestle_kir_madi(d->k, row, s->blocks, zero);
  s->chosen_at = in_scratch ? zero : s->places_at;
  s->left = pestle_direct_variable(d, "left", PESTLE_INDEX, 1);
  s->chosen = pestle_direct_variable(d, "chosen", PESTLE_INDEX, 1);
  s->top = pestle_direct_variable(d, "top", PESTLE_I64, 1);
  s->vector = pestle_direct_variable(d, "tops", PESTLE_I64, s->lanes);
  s->hit = pestle_direct_variable(d, "hit", PESTLE_I32, 1);
}

bool pestle_direct_suppress_is_idle(const pestle_node_t* node) {
  return !pestle_type_count(node->results[1].type);
}

// Blocks and what is in one cost the same: about the root of all.
static int64_t block_size(const suppress_t* s) {
  int64_t block = 4 * (int64_t)s->lanes;
  while (block * block < s->boxes)
    block *= 2;
  return block;
}

pestle_status_t pestle_direct_suppress(pestle_direct_t* d) {
  const pestle_type_t* scores = pestle_node_operand(d->node, 1)->type;
  unsigned words = d->caps->vector_bytes / 4;
  suppress_t s = {.d = d,
                  .lanes = words < 1    ? 1
                           : words > 16 ? 16
                                        : words,
                  .classes = scores->dims[1],
                  .boxes = scores->dims[2],
                  .most = PESTLE_NODE_I64(d->node, most),
                  .centers = PESTLE_NODE_BOOL(d->node, centers)};
  int64_t rows = scores->dims[0] * s.classes;
  uint32_t scalars[4];
  d->k->facts = 0;  // overlaps are compared: products are rounded by themselves
  s.block = block_size(&s);
  s.blocks = (s.boxes + s.block - 1) / s.block;
  s.box = pestle_direct_operand(d, 0);
  s.score = pestle_direct_operand(d, 1);
  for (size_t i = 0; i < 4; ++i)
    scalars[i] = pestle_direct_operand(d, i + 2);
  s.places = pestle_direct_result(d, 0);
  s.counts = pestle_direct_result(d, 1);
  bool works = s.boxes && s.most;
  bool in_scratch = works && add_memory(&s, rows);
  pk_t row = pestle_kir_for(d->k, "row", number(&s, 0), number(&s, rows), 1,
                            PESTLE_KIR_GROUP_X);
  if (works) {
    start_row(&s, row, in_scratch);
    s.threshold = load_scalar(&s, scalars[0]);
    s.any_score = op(&s, PESTLE_OP_NE, s.threshold, s.threshold);
    s.overlap = load_scalar(&s, scalars[1]);
    s.limit = pestle_direct_clamp(
        d, pestle_kir_cast(d->k, load_scalar(&s, scalars[2]), PESTLE_INDEX), 0,
        s.most);
    s.count = pestle_direct_clamp(
        d, pestle_kir_cast(d->k, load_scalar(&s, scalars[3]), PESTLE_INDEX), 0,
        s.boxes);
    look_at_all(&s);
    choose_boxes(&s);
  }
  pk_t chosen = works ? chosen_so_far(&s) : number(&s, 0);
  pestle_direct_store(d, s.counts, row,
                      pestle_kir_cast(d->k, chosen, PESTLE_I32));
  end(&s);
  d->steps = (uint64_t)(rows * s.boxes);
  return NULL;
}
