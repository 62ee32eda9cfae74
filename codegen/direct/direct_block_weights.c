// SPDX-License-Identifier: Apache-2.0
// Weights of a few bits as floats [n, k], on a target whose lanes run side by side: for
// products of many rows, which the matrix units make of them (passes/whole_block_dot_lanes.c).
// A lane takes a word:
//
//   for words in group.x, lane.x:
//     y = (weights of the word - zero point of the block) * scale of the block
#include "codegen/direct/direct_block_dot.h"

enum { GROUP_LANES = 256 };

typedef struct weights_t {
  block_dot_t b;
  uint32_t w, scales, zeros, y;
} weights_t;

static pk_t of_block(weights_t* w, uint32_t buffer, pk_t row, pk_t block) {
  pk_t at = pestle_kir_madi(w->b.k, row, w->b.blocks, block);
  return pestle_kir_cast(w->b.k, pestle_direct_load(w->b.d, buffer, at),
                         PESTLE_F32);
}

// Weights of |word| less their zero point, in lanes.
static pk_t numbers_of(weights_t* w, pk_t word, pk_t row, pk_t block) {
  block_dot_t* b = &w->b;
  unsigned count = (unsigned)b->word_weights;
  pk_t shift = pestle_kir_iota(b->k, PESTLE_I32, count);
  shift = pestle_kir_scalar(b->k, PESTLE_OP_MULTIPLY, shift,
                            word_number(b, count, b->bits), PESTLE_KIR_NONE);
  pk_t x = pestle_kir_scalar(b->k, PESTLE_OP_SHIFT_RIGHT_LOGICAL,
                             pestle_kir_splat(b->k, word, count), shift,
                             PESTLE_KIR_NONE);
  x = pestle_kir_scalar(b->k, PESTLE_OP_AND, x,
                        word_number(b, count, (1 << b->bits) - 1),
                        PESTLE_KIR_NONE);
  pk_t zero =
      pestle_kir_float(b->k, PESTLE_F32, count, (double)(1 << (b->bits - 1)));
  if (b->has_zeros)
    zero = pestle_kir_splat(b->k, of_block(w, w->zeros, row, block), count);
  return pestle_kir_scalar(b->k, PESTLE_OP_SUBTRACT,
                           pestle_kir_cast(b->k, x, PESTLE_F32), zero,
                           PESTLE_KIR_NONE);
}

static void do_word(weights_t* w, pk_t unit) {
  block_dot_t* b = &w->b;
  unsigned count = (unsigned)b->word_weights;
  pk_t row = pestle_kir_scalar_i(b->k, PESTLE_OP_DIVIDE, unit, b->words);
  pk_t at = pestle_kir_scalar_i(b->k, PESTLE_OP_REMAINDER, unit, b->words);
  pk_t block = pestle_kir_scalar_i(b->k, PESTLE_OP_DIVIDE, at, b->block_words);
  pk_t word = pestle_kir_load_words(
      b->k, w->w, 1, pestle_kir_madi(b->k, unit, WORD_BYTES, number(b, 0)));
  if (!b->k->failed) b->k->inst.data[word].align_log2 = 2;
  pk_t x = numbers_of(w, word, row, block);
  pk_t scale =
      pestle_kir_splat(b->k, of_block(w, w->scales, row, block), count);
  x = pestle_kir_scalar(b->k, PESTLE_OP_MULTIPLY, x, scale, PESTLE_KIR_NONE);
  x = pestle_kir_cast(b->k, x, b->dtype);
  at = pestle_kir_madi(b->k, at, count, number(b, 0));
  pk_t mask = PESTLE_KIR_NONE;
  if (b->depth != b->words * b->word_weights)
    mask = pestle_kir_mask(b->k, at, number(b, b->depth), count);
  int64_t together = (b->depth | count) * (int64_t)pestle_dtype_size(b->dtype);
  unsigned align = (unsigned)(together & -together);
  pestle_kir_store(b->k, w->y, pestle_kir_madi(b->k, row, b->depth, at), x,
                   mask, align < 16 ? align : 16);
}

// Weights of a word: those of a row, which the body makes whole before it cuts it.
static int64_t word_weights_of(const pestle_block_t* body, int64_t words) {
  int64_t most = 0;
  for (const pestle_node_t* n = body->first; n; n = n->next) {
    for (uint32_t r = 0; r < n->result_count; ++r) {
      const pestle_type_t* t = n->results[r].type;
      if (t->rank == 2 && t->dims[1] > most) most = t->dims[1];
    }
  }
  return most / words;
}

pestle_status_t pestle_direct_block_weights(pestle_direct_t* d) {
  const pestle_block_t* body = pestle_node_body(d->node, 0);
  const pestle_type_t *y = d->node->results[0].type,
                      *bytes = body->arguments[0]->type,
                      *scales = body->arguments[1]->type;
  weights_t w = {0};
  block_dot_t* b = &w.b;
  b->d = d;
  b->k = d->k;
  b->dtype = y->dtype;
  b->depth = y->dims[1];
  b->blocks = scales->dims[1];
  b->words = bytes->dims[1] / WORD_BYTES;
  b->block_words = b->words / b->blocks;
  b->has_zeros = body->argument_count > 2;
  b->bits = 32 / word_weights_of(body, b->words);
  b->word_weights = 32 / b->bits;
  w.w = pestle_direct_operand(d, 0);
  w.scales = pestle_direct_operand(d, 1);
  if (b->has_zeros) w.zeros = pestle_direct_operand(d, 2);
  w.y = pestle_direct_result(d, 0);
  int64_t all = scales->dims[0] * b->words;
  int64_t groups = (all + GROUP_LANES - 1) / GROUP_LANES;
  pk_t group = pestle_kir_for(b->k, "group", number(b, 0), number(b, groups), 1,
                              PESTLE_KIR_GROUP_X);
  pk_t lane = pestle_kir_for(b->k, "lane", number(b, 0), number(b, GROUP_LANES),
                             1, PESTLE_KIR_LANE_X);
  pk_t unit = pestle_kir_madi(b->k, group, GROUP_LANES, lane);
  bool has_tail = groups * GROUP_LANES != all;
  if (has_tail) {
    pestle_kir_if(b->k, pestle_kir_scalar_i(b->k, PESTLE_OP_LT, unit, all));
    unit = pestle_kir_scalar_i(b->k, PESTLE_OP_MINIMUM, unit, all - 1);
  }
  do_word(&w, unit);
  if (has_tail) pestle_kir_end(b->k);
  pestle_kir_end(b->k);
  pestle_kir_end(b->k);
  d->steps = (uint64_t)(all * b->word_weights);
  return NULL;
}
