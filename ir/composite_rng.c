// SPDX-License-Identifier: Apache-2.0
// rng_bit_generator and rng, as arithmetic on integers: Threefry-2x32 with 20
// rounds and Philox-4x32 with 10 (Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011). How counters are taken from the state and words
// are laid out is what XLA does on CPUs, where DEFAULT is Philox.
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "ir/composite.h"

enum { FLAT = 1 };  // rank of what words are generated as

static pv_t* bits(pestle_steps_t* s, pv_t* like, uint64_t value) {
  return like ? pestle_step_bits(s, like->type, value) : NULL;
}

static pv_t* shifted(pestle_steps_t* s, pv_t* a, int left, unsigned by) {
  return pestle_step2(
      s, left ? PESTLE_OP_SHIFT_LEFT : PESTLE_OP_SHIFT_RIGHT_LOGICAL, a,
      bits(s, a, by));
}

static pv_t* exclusive(pestle_steps_t* s, pv_t* a, pv_t* b) {
  return pestle_step2(s, PESTLE_OP_XOR, a, b);
}

static pv_t* plus(pestle_steps_t* s, pv_t* a, uint64_t value) {
  return PESTLE_ADD(s, a, bits(s, a, value));
}

static pv_t* low_word(pestle_steps_t* s, pv_t* a) {
  return pestle_step_convert(s, a, PESTLE_U32);
}

static pv_t* high_word(pestle_steps_t* s, pv_t* a) {
  return low_word(s, shifted(s, a, false, 32));
}

// low + 2^32 high
static pv_t* joined(pestle_steps_t* s, pv_t* low, pv_t* high) {
  pv_t* wide = pestle_step_convert(s, low, PESTLE_U64);
  high = shifted(s, pestle_step_convert(s, high, PESTLE_U64), true, 32);
  return pestle_step2(s, PESTLE_OP_OR, wide, high);
}

// Element |at| of the state, [n] times.
static pv_t* of_state(pestle_steps_t* s, int64_t at, int64_t n) {
  pv_t* x =
      pestle_step_slice(s, pestle_node_operand(s->node, 0), 0, at, at + 1);
  x = pestle_step_reshape(s, x, 0, NULL);
  return pestle_step_broadcast_to(s, x, FLAT, &n, (pestle_i64s_t){NULL, 0});
}

static pv_t* count_up(pestle_steps_t* s, int64_t n) {
  pestle_type_t type = pestle_type_make(PESTLE_U64, FLAT, &n);
  return pestle_step_iota(s, &type, 0);
}

// --- Threefry ---

static void threefry_round(pestle_steps_t* s, pv_t* x[2], unsigned by) {
  x[0] = PESTLE_ADD(s, x[0], x[1]);
  pv_t* up = shifted(s, x[1], true, by);
  pv_t* down = shifted(s, x[1], false, 32 - by);
  x[1] = exclusive(s, x[0], pestle_step2(s, PESTLE_OP_OR, up, down));
}

static void threefry(pestle_steps_t* s, pv_t* x[2], pv_t* const key[2]) {
  static const unsigned rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  pv_t* keys[3] = {key[0], key[1], exclusive(s, key[0], key[1])};
  keys[2] = exclusive(s, keys[2], bits(s, keys[2], 0x1BD11BDA));
  x[0] = PESTLE_ADD(s, x[0], keys[0]);
  x[1] = PESTLE_ADD(s, x[1], keys[1]);
  for (unsigned i = 0; i < 5; ++i) {
    for (unsigned r = 0; r < 4; ++r)
      threefry_round(s, x, rotations[i % 2][r]);
    x[0] = PESTLE_ADD(s, x[0], keys[(i + 1) % 3]);
    x[1] = plus(s, PESTLE_ADD(s, x[1], keys[(i + 2) % 3]), i + 1);
  }
}

// |n| pairs of words for the counters from state[1] on.
static void threefry_words(pestle_steps_t* s, int64_t n, pv_t* x[2]) {
  pv_t* counter = of_state(s, 1, n);
  counter = PESTLE_ADD(s, counter, count_up(s, n));
  pv_t *key = of_state(s, 0, n), *keys[2];
  keys[0] = low_word(s, key);
  keys[1] = high_word(s, key);
  x[0] = low_word(s, counter);
  x[1] = high_word(s, counter);
  threefry(s, x, keys);
}

// The axis whose halves are the words of pairs: the first that is even, or else
// the longest; -1 for rank 0.
static int32_t halved_axis(const pestle_type_t* type) {
  int32_t longest = -1;
  for (int32_t i = 0; i < type->rank; ++i) {
    if (type->dims[i] % 2 == 0) return i;
    if (longest < 0 || type->dims[i] > type->dims[longest]) longest = i;
  }
  return longest;
}

// Words of 32 bits of the shape of |type|; |*out_used| counters are used up.
static pv_t* threefry_narrow(pestle_steps_t* s, const pestle_type_t* type,
                             int64_t* out_used) {
  int32_t axis = halved_axis(type), rank = 0;
  int64_t dims[PESTLE_MAX_RANK + 1], n = 1;
  pv_t* x[2];
  for (int32_t i = 0; i < type->rank; ++i) {
    dims[rank] =
        i == axis ? type->dims[i] / 2 + type->dims[i] % 2 : type->dims[i];
    n *= dims[rank++];
    if (i == axis) dims[rank++] = 1;
  }
  *out_used = n;
  threefry_words(s, n, x);
  if (axis < 0) return pestle_step_reshape(s, x[0], 0, NULL);
  x[0] = pestle_step_reshape(s, x[0], rank, dims);
  x[1] = pestle_step_reshape(s, x[1], rank, dims);
  pv_t* y = pestle_step_concatenate(s, x, 2, axis + 1);
  memcpy(dims, type->dims, sizeof(dims[0]) * (size_t)type->rank);
  dims[axis] += dims[axis] % 2;
  y = pestle_step_reshape(s, y, type->rank, dims);
  return pestle_step_slice(s, y, axis, 0, type->dims[axis]);
}

// --- Philox ---

static void philox(pestle_steps_t* s, pv_t* x[4], pv_t* key[2]) {
  static const uint64_t factors[2] = {0xD2511F53, 0xCD9E8D57};
  static const uint64_t steps[2] = {0x9E3779B9, 0xBB67AE85};
  for (int round = 0; round < 10; ++round) {
    pv_t *low[2], *high[2];
    for (int i = 0; i < 2; ++i) {
      pv_t* wide = pestle_step_convert(s, x[2 * i], PESTLE_U64);
      wide = PESTLE_MUL(s, wide, bits(s, wide, factors[i]));
      low[i] = low_word(s, wide);
      high[i] = high_word(s, wide);
    }
    x[0] = exclusive(s, exclusive(s, high[1], x[1]), key[0]);
    x[2] = exclusive(s, exclusive(s, high[0], x[3]), key[1]);
    x[1] = low[1];
    x[3] = low[0];
    for (int i = 0; i < 2; ++i)
      key[i] = plus(s, key[i], steps[i]);
  }
}

// The 128 bits (low, high) and |add| more.
static void add_wide(pestle_steps_t* s, pv_t** low, pv_t** high, pv_t* add) {
  pv_t* sum = PESTLE_ADD(s, *low, add);
  pv_t* carry = pestle_step2(s, PESTLE_OP_LT, sum, *low);
  pv_t* next = plus(s, *high, 1);
  *high = pestle_step3(s, PESTLE_OP_SELECT, carry, next, *high);
  *low = sum;
}

// A state of two numbers has the key as the counter's high half too.
static int64_t high_place(const pestle_steps_t* s) {
  return pestle_node_operand(s->node, 0)->type->dims[0] == 3 ? 2 : 0;
}

// |n| quadruples of words for the counters from (low, high) on.
static void philox_words(pestle_steps_t* s, pv_t* key, pv_t* low, pv_t* high,
                         int64_t n, pv_t* x[4]) {
  pv_t* keys[2];
  add_wide(s, &low, &high, count_up(s, n));
  keys[0] = low_word(s, key);
  keys[1] = high_word(s, key);
  x[0] = low_word(s, low);
  x[1] = high_word(s, low);
  x[2] = low_word(s, high);
  x[3] = high_word(s, high);
  philox(s, x, keys);
}

// One word of each, then the next of each, |count| of them.
static pv_t* in_turn(pestle_steps_t* s, pv_t** words, size_t each,
                     int64_t count) {
  int64_t n = words[0] ? words[0]->type->dims[0] : 0;
  int64_t column[] = {n, 1}, all = n * (int64_t)each;
  for (size_t i = 0; i < each; ++i)
    words[i] = pestle_step_reshape(s, words[i], 2, column);
  pv_t* y = pestle_step_concatenate(s, words, each, 1);
  y = pestle_step_reshape(s, y, 1, &all);
  return pestle_step_slice(s, y, 0, 0, count);
}

// |count| words of 32 bits, or of 64.
static pv_t* philox_flat(pestle_steps_t* s, pv_t* x[4], bool wide,
                         int64_t count) {
  if (!wide) return in_turn(s, x, 4, count);
  x[0] = joined(s, x[0], x[1]);
  x[1] = joined(s, x[2], x[3]);
  return in_turn(s, x, 2, count);
}

static int64_t quadruples(int64_t count, bool wide) {
  int64_t each = wide ? 2 : 4;
  return count / each + (count % each != 0);
}

// --- rng_bit_generator ---

// [key, the rest..]
static pv_t* new_state(pestle_steps_t* s, pv_t* const* rest, size_t count) {
  pv_t* parts[3] = {of_state(s, 0, 1)};
  for (size_t i = 0; i < count; ++i)
    parts[i + 1] = rest[i];
  return pestle_step_concatenate(s, parts, count + 1, 0);
}

pv_t* pestle_decompose_rng_bit_generator(pestle_steps_t* s) {
  pestle_type_t type = *s->node->results[1].type;
  const char* algorithm = PESTLE_NODE_STR(s->node, rng_algorithm);
  bool wide = pestle_dtype_info(type.dtype)->bits == 64;
  int64_t count = pestle_type_count(&type), used;
  pv_t *y, *state[2], *x[4];
  if (!strcmp(algorithm, "THREE_FRY")) {
    if (wide) {
      used = count;
      threefry_words(s, used, x);
      y = joined(s, x[0], x[1]);
    } else {
      y = threefry_narrow(s, &type, &used);
    }
    state[0] = plus(s, of_state(s, 1, 1), (uint64_t)used);
    s->more[0] = y;
    y = new_state(s, state, 1);
  } else {
    used = quadruples(count, wide);
    int64_t place = high_place(s);
    pv_t* key = of_state(s, 0, used);
    pv_t* low = of_state(s, 1, used);
    philox_words(s, key, low, of_state(s, place, used), used, x);
    s->more[0] = philox_flat(s, x, wide, count);
    state[0] = of_state(s, 1, 1);
    state[1] = of_state(s, place, 1);
    add_wide(s, &state[0], &state[1], bits(s, state[0], (uint64_t)used));
    y = new_state(s, state, place == 2 ? 2 : 1);
  }
  s->more[0] = pestle_step_convert(s, s->more[0], type.dtype);
  s->more[0] = pestle_step_reshape(s, s->more[0], type.rank, type.dims);
  return y;
}

// --- rng ---

// Another number for each rng of a module: how many ops come before it in its
// block, and before the ops around it.
static uint64_t seed_of(const pestle_node_t* node) {
  uint64_t seed = 0;
  while (node) {
    uint64_t before = 0;
    for (const pestle_node_t* n = node->prev; n; n = n->prev)
      ++before;
    seed = (seed ^ (before + 1)) * UINT64_C(0x9E3779B97F4A7C15);
    seed ^= seed >> 29;
    node = node->block->region->owner;
  }
  return seed;
}

// |count| words, from Philox with the seed as its key; |which| set of them.
static pv_t* words(pestle_steps_t* s, bool wide, int64_t count,
                   uint64_t which) {
  int64_t n = quadruples(count, wide);
  pestle_type_t type = pestle_type_make(PESTLE_U64, FLAT, &n);
  pv_t* x[4];
  pv_t* key = pestle_step_bits(s, &type, seed_of(s->node));
  pv_t* low = pestle_step_bits(s, &type, 0);
  pv_t* high = pestle_step_bits(s, &type, which);
  philox_words(s, key, low, high, n, x);
  return philox_flat(s, x, wide, count);
}

// In [0, 1): as many random bits as the mantissa of |dtype| has.
static pv_t* fraction(pestle_steps_t* s, pestle_dtype_t dtype, int64_t count,
                      uint64_t which) {
  bool wide = dtype == PESTLE_F64;
  unsigned mantissa = wide                   ? 52
                      : dtype == PESTLE_F32  ? 23
                      : dtype == PESTLE_F16  ? 10
                      : dtype == PESTLE_BF16 ? 7
                                             : 2;
  pv_t* x = words(s, wide, count, which);
  x = shifted(s, x, false, (wide ? 64 : 32) - mantissa);
  x = pestle_step_convert(s, x, s->compute);
  double unit = 1 / (double)(UINT64_C(1) << mantissa);
  return PESTLE_MUL(s, x, pestle_step_splat(s, x, unit));
}

// Operand |index|, of rank 0, |count| times.
static pv_t* bound(pestle_steps_t* s, size_t index, pestle_dtype_t dtype,
                   int64_t count) {
  return pestle_step_broadcast_to(s, pestle_step_operand(s, index, dtype), FLAT,
                                  &count, (pestle_i64s_t){NULL, 0});
}

// a + (b - a) fraction
static pv_t* uniform_floats(pestle_steps_t* s, pestle_dtype_t dtype,
                            int64_t count) {
  pv_t* a = bound(s, 0, s->compute, count);
  pv_t* span = PESTLE_SUB(s, bound(s, 1, s->compute, count), a);
  pv_t* x = PESTLE_MUL(s, span, fraction(s, dtype, count, 0));
  return PESTLE_ADD(s, a, x);
}

// a + word mod (b - a)
static pv_t* uniform_integers(pestle_steps_t* s, pestle_dtype_t dtype,
                              int64_t count) {
  bool is_signed = pestle_dtype_is(dtype, PESTLE_KIND_SIGNED);
  pestle_dtype_t wide = is_signed ? PESTLE_I64 : PESTLE_U64;
  pv_t* a = bound(s, 0, wide, count);
  pv_t* span = PESTLE_SUB(s, bound(s, 1, wide, count), a);
  span = pestle_step_convert(s, span, PESTLE_U64);
  pv_t* x = words(s, true, count, 0);
  x = pestle_step2(s, PESTLE_OP_REMAINDER, x, span);
  return PESTLE_ADD(s, a, pestle_step_convert(s, x, wide));
}

// Box and Muller: sqrt(-2 log u) cos(2 pi v), u in (0, 1].
static pv_t* normal(pestle_steps_t* s, pestle_dtype_t dtype, int64_t count) {
  pestle_dtype_t fine = dtype == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32;
  pv_t* u = fraction(s, fine, count, 0);
  u = PESTLE_SUB(s, pestle_step_splat(s, u, 1), u);
  u = pestle_step1(s, PESTLE_OP_LOG, u);
  u = PESTLE_MUL(s, u, pestle_step_splat(s, u, -2));
  pv_t* v = fraction(s, fine, count, 1);
  v = PESTLE_MUL(s, v, pestle_step_splat(s, v, 6.283185307179586));
  v = pestle_step1(s, PESTLE_OP_COSINE, v);
  pv_t* z = PESTLE_MUL(s, pestle_step1(s, PESTLE_OP_SQRT, u), v);
  z = PESTLE_MUL(s, z, bound(s, 1, s->compute, count));
  return PESTLE_ADD(s, z, bound(s, 0, s->compute, count));
}

pv_t* pestle_decompose_rng(pestle_steps_t* s) {
  const pestle_type_t* type = s->node->results[0].type;
  int64_t count = pestle_type_count(type);
  bool is_normal =
      !strcmp(PESTLE_NODE_STR(s->node, rng_distribution), "NORMAL");
  pv_t* x = is_normal ? normal(s, type->dtype, count)
            : pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT)
                ? uniform_floats(s, type->dtype, count)
                : uniform_integers(s, type->dtype, count);
  x = pestle_step_convert(s, x, type->dtype);
  return pestle_step_reshape(s, x, type->rank, type->dims);
}
