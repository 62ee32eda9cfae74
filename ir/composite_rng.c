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

static pv_t* bits(pestle_formula_t* f, pv_t* like, uint64_t value) {
  return like ? pestle_f_bits(f, like->type, value) : NULL;
}

static pv_t* shifted(pestle_formula_t* f, pv_t* a, int left, unsigned by) {
  return pestle_f_binary(
      f, left ? PESTLE_OP_SHIFT_LEFT : PESTLE_OP_SHIFT_RIGHT_LOGICAL, a,
      bits(f, a, by));
}

static pv_t* exclusive(pestle_formula_t* f, pv_t* a, pv_t* b) {
  return pestle_f_xor(f, a, b);
}

static pv_t* plus(pestle_formula_t* f, pv_t* a, uint64_t value) {
  return pestle_f_add(f, a, bits(f, a, value));
}

static pv_t* low_word(pestle_formula_t* f, pv_t* a) {
  return pestle_f_convert(f, a, PESTLE_U32);
}

static pv_t* high_word(pestle_formula_t* f, pv_t* a) {
  return low_word(f, shifted(f, a, false, 32));
}

// low + 2^32 high
static pv_t* joined(pestle_formula_t* f, pv_t* low, pv_t* high) {
  pv_t* wide = pestle_f_convert(f, low, PESTLE_U64);
  high = shifted(f, pestle_f_convert(f, high, PESTLE_U64), true, 32);
  return pestle_f_or(f, wide, high);
}

// Element |at| of the state, [n] times.
static pv_t* of_state(pestle_formula_t* f, int64_t at, int64_t n) {
  pv_t* x = pestle_f_slice_axis(f, pestle_node_operand(f->of->node, 0), 0, at,
                                at + 1);
  x = pestle_f_reshape(f, x, 0, NULL);
  return pestle_f_broadcast(f, x, FLAT, &n, (pestle_i64s_t){NULL, 0});
}

static pv_t* count_up(pestle_formula_t* f, int64_t n) {
  pestle_type_t type = pestle_type_make(PESTLE_U64, FLAT, &n);
  return pestle_f_iota(f, &type, 0);
}

// --- Threefry ---

static void threefry_round(pestle_formula_t* f, pv_t* x[2], unsigned by) {
  x[0] = pestle_f_add(f, x[0], x[1]);
  pv_t* up = shifted(f, x[1], true, by);
  pv_t* down = shifted(f, x[1], false, 32 - by);
  x[1] = exclusive(f, x[0], pestle_f_or(f, up, down));
}

void pestle_threefry(pestle_formula_t* f, pv_t* x[2], pv_t* const key[2]) {
  static const unsigned rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  pv_t* keys[3] = {key[0], key[1], exclusive(f, key[0], key[1])};
  keys[2] = exclusive(f, keys[2], bits(f, keys[2], 0x1BD11BDA));
  x[0] = pestle_f_add(f, x[0], keys[0]);
  x[1] = pestle_f_add(f, x[1], keys[1]);
  for (unsigned i = 0; i < 5; ++i) {
    for (unsigned r = 0; r < 4; ++r)
      threefry_round(f, x, rotations[i % 2][r]);
    x[0] = pestle_f_add(f, x[0], keys[(i + 1) % 3]);
    x[1] = plus(f, pestle_f_add(f, x[1], keys[(i + 2) % 3]), i + 1);
  }
}

// |n| pairs of words for the counters from state[1] on.
static void threefry_words(pestle_formula_t* f, int64_t n, pv_t* x[2]) {
  pv_t* counter = of_state(f, 1, n);
  counter = pestle_f_add(f, counter, count_up(f, n));
  pv_t *key = of_state(f, 0, n), *keys[2];
  keys[0] = low_word(f, key);
  keys[1] = high_word(f, key);
  x[0] = low_word(f, counter);
  x[1] = high_word(f, counter);
  pestle_threefry(f, x, keys);
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
static pv_t* threefry_narrow(pestle_formula_t* f, const pestle_type_t* type,
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
  threefry_words(f, n, x);
  if (axis < 0) return pestle_f_reshape(f, x[0], 0, NULL);
  x[0] = pestle_f_reshape(f, x[0], rank, dims);
  x[1] = pestle_f_reshape(f, x[1], rank, dims);
  pv_t* y = pestle_f_concatenate(f, x, 2, axis + 1);
  memcpy(dims, type->dims, sizeof(dims[0]) * (size_t)type->rank);
  dims[axis] += dims[axis] % 2;
  y = pestle_f_reshape(f, y, type->rank, dims);
  return pestle_f_slice_axis(f, y, axis, 0, type->dims[axis]);
}

// --- Philox ---

static void philox(pestle_formula_t* f, pv_t* x[4], pv_t* key[2]) {
  static const uint64_t factors[2] = {0xD2511F53, 0xCD9E8D57};
  static const uint64_t steps[2] = {0x9E3779B9, 0xBB67AE85};
  for (int round = 0; round < 10; ++round) {
    pv_t *low[2], *high[2];
    for (int i = 0; i < 2; ++i) {
      pv_t* wide = pestle_f_convert(f, x[2 * i], PESTLE_U64);
      wide = pestle_f_multiply(f, wide, bits(f, wide, factors[i]));
      low[i] = low_word(f, wide);
      high[i] = high_word(f, wide);
    }
    x[0] = exclusive(f, exclusive(f, high[1], x[1]), key[0]);
    x[2] = exclusive(f, exclusive(f, high[0], x[3]), key[1]);
    x[1] = low[1];
    x[3] = low[0];
    for (int i = 0; i < 2; ++i)
      key[i] = plus(f, key[i], steps[i]);
  }
}

// The 128 bits (low, high) and |add| more.
static void add_wide(pestle_formula_t* f, pv_t** low, pv_t** high, pv_t* add) {
  pv_t* sum = pestle_f_add(f, *low, add);
  pv_t* carry = pestle_f_lt(f, sum, *low);
  pv_t* next = plus(f, *high, 1);
  *high = pestle_f_select(f, carry, next, *high);
  *low = sum;
}

// A state of two numbers has the key as the counter's high half too.
static int64_t high_place(const pestle_formula_t* f) {
  return pestle_node_operand(f->of->node, 0)->type->dims[0] == 3 ? 2 : 0;
}

// |n| quadruples of words for the counters from (low, high) on.
static void philox_words(pestle_formula_t* f, pv_t* key, pv_t* low, pv_t* high,
                         int64_t n, pv_t* x[4]) {
  pv_t* keys[2];
  add_wide(f, &low, &high, count_up(f, n));
  keys[0] = low_word(f, key);
  keys[1] = high_word(f, key);
  x[0] = low_word(f, low);
  x[1] = high_word(f, low);
  x[2] = low_word(f, high);
  x[3] = high_word(f, high);
  philox(f, x, keys);
}

// One word of each, then the next of each, |count| of them.
static pv_t* in_turn(pestle_formula_t* f, pv_t** words, size_t each,
                     int64_t count) {
  int64_t n = words[0] ? words[0]->type->dims[0] : 0;
  int64_t column[] = {n, 1}, all = n * (int64_t)each;
  for (size_t i = 0; i < each; ++i)
    words[i] = pestle_f_reshape(f, words[i], 2, column);
  pv_t* y = pestle_f_concatenate(f, words, each, 1);
  y = pestle_f_reshape(f, y, 1, &all);
  return pestle_f_slice_axis(f, y, 0, 0, count);
}

// |count| words of 32 bits, or of 64.
static pv_t* philox_flat(pestle_formula_t* f, pv_t* x[4], bool wide,
                         int64_t count) {
  if (!wide) return in_turn(f, x, 4, count);
  x[0] = joined(f, x[0], x[1]);
  x[1] = joined(f, x[2], x[3]);
  return in_turn(f, x, 2, count);
}

static int64_t quadruples(int64_t count, bool wide) {
  int64_t each = wide ? 2 : 4;
  return count / each + (count % each != 0);
}

// --- rng_bit_generator ---

// [key, the rest..]
static pv_t* new_state(pestle_formula_t* f, pv_t* const* rest, size_t count) {
  pv_t* parts[3] = {of_state(f, 0, 1)};
  for (size_t i = 0; i < count; ++i)
    parts[i + 1] = rest[i];
  return pestle_f_concatenate(f, parts, count + 1, 0);
}

pv_t* pestle_decompose_rng_bit_generator(pestle_formula_t* f) {
  pestle_type_t type = *f->of->node->results[1].type;
  const char* algorithm = PESTLE_NODE_STR(f->of->node, rng_algorithm);
  bool wide = pestle_dtype_info(type.dtype)->bits == 64;
  int64_t count = pestle_type_count(&type), used;
  pv_t *y, *state[2], *x[4];
  if (!strcmp(algorithm, "THREE_FRY")) {
    if (wide) {
      used = count;
      threefry_words(f, used, x);
      y = joined(f, x[0], x[1]);
    } else {
      y = threefry_narrow(f, &type, &used);
    }
    state[0] = plus(f, of_state(f, 1, 1), (uint64_t)used);
    f->of->more[0] = y;
    y = new_state(f, state, 1);
  } else {
    used = quadruples(count, wide);
    int64_t place = high_place(f);
    pv_t* key = of_state(f, 0, used);
    pv_t* low = of_state(f, 1, used);
    philox_words(f, key, low, of_state(f, place, used), used, x);
    f->of->more[0] = philox_flat(f, x, wide, count);
    state[0] = of_state(f, 1, 1);
    state[1] = of_state(f, place, 1);
    add_wide(f, &state[0], &state[1], bits(f, state[0], (uint64_t)used));
    y = new_state(f, state, place == 2 ? 2 : 1);
  }
  f->of->more[0] = pestle_f_convert(f, f->of->more[0], type.dtype);
  f->of->more[0] = pestle_f_reshape(f, f->of->more[0], type.rank, type.dims);
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
static pv_t* words(pestle_formula_t* f, bool wide, int64_t count,
                   uint64_t which) {
  int64_t n = quadruples(count, wide);
  pestle_type_t type = pestle_type_make(PESTLE_U64, FLAT, &n);
  pv_t* x[4];
  pv_t* key = pestle_f_bits(f, &type, seed_of(f->of->node));
  pv_t* low = pestle_f_bits(f, &type, 0);
  pv_t* high = pestle_f_bits(f, &type, which);
  philox_words(f, key, low, high, n, x);
  return philox_flat(f, x, wide, count);
}

// In [0, 1): as many random bits as the mantissa of |dtype| has.
static pv_t* fraction(pestle_formula_t* f, pestle_dtype_t dtype, int64_t count,
                      uint64_t which) {
  bool wide = dtype == PESTLE_F64;
  unsigned mantissa = wide                   ? 52
                      : dtype == PESTLE_F32  ? 23
                      : dtype == PESTLE_F16  ? 10
                      : dtype == PESTLE_BF16 ? 7
                                             : 2;
  pv_t* x = words(f, wide, count, which);
  x = shifted(f, x, false, (wide ? 64 : 32) - mantissa);
  x = pestle_f_convert(f, x, f->compute);
  double unit = 1 / (double)(UINT64_C(1) << mantissa);
  return pestle_f_multiply(f, x, pestle_f_splat(f, x, unit));
}

// Operand |index|, of rank 0, |count| times.
static pv_t* bound(pestle_formula_t* f, size_t index, pestle_dtype_t dtype,
                   int64_t count) {
  return pestle_f_broadcast(f, pestle_f_operand(f, index, dtype), FLAT, &count,
                            (pestle_i64s_t){NULL, 0});
}

// a + (b - a) fraction
static pv_t* uniform_floats(pestle_formula_t* f, pestle_dtype_t dtype,
                            int64_t count) {
  pv_t* a = bound(f, 0, f->compute, count);
  pv_t* span = pestle_f_subtract(f, bound(f, 1, f->compute, count), a);
  pv_t* x = pestle_f_multiply(f, span, fraction(f, dtype, count, 0));
  return pestle_f_add(f, a, x);
}

// a + word mod (b - a)
static pv_t* uniform_integers(pestle_formula_t* f, pestle_dtype_t dtype,
                              int64_t count) {
  bool is_signed = pestle_dtype_is(dtype, PESTLE_KIND_SIGNED);
  pestle_dtype_t wide = is_signed ? PESTLE_I64 : PESTLE_U64;
  pv_t* a = bound(f, 0, wide, count);
  pv_t* span = pestle_f_subtract(f, bound(f, 1, wide, count), a);
  span = pestle_f_convert(f, span, PESTLE_U64);
  pv_t* x = words(f, true, count, 0);
  x = pestle_f_remainder(f, x, span);
  return pestle_f_add(f, a, pestle_f_convert(f, x, wide));
}

// Box and Muller: sqrt(-2 log u) cos(2 pi v), u in (0, 1].
static pv_t* normal(pestle_formula_t* f, pestle_dtype_t dtype, int64_t count) {
  pestle_dtype_t fine = dtype == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32;
  pv_t* u = fraction(f, fine, count, 0);
  u = pestle_f_subtract(f, pestle_f_splat(f, u, 1), u);
  u = pestle_f_log(f, u);
  u = pestle_f_multiply(f, u, pestle_f_splat(f, u, -2));
  pv_t* v = fraction(f, fine, count, 1);
  v = pestle_f_multiply(f, v, pestle_f_splat(f, v, 6.283185307179586));
  v = pestle_f_cosine(f, v);
  pv_t* z = pestle_f_multiply(f, pestle_f_sqrt(f, u), v);
  z = pestle_f_multiply(f, z, bound(f, 1, f->compute, count));
  return pestle_f_add(f, z, bound(f, 0, f->compute, count));
}

pv_t* pestle_decompose_rng(pestle_formula_t* f) {
  const pestle_type_t* type = f->of->node->results[0].type;
  int64_t count = pestle_type_count(type);
  bool is_normal =
      !strcmp(PESTLE_NODE_STR(f->of->node, rng_distribution), "NORMAL");
  pv_t* x = is_normal ? normal(f, type->dtype, count)
            : pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT)
                ? uniform_floats(f, type->dtype, count)
                : uniform_integers(f, type->dtype, count);
  x = pestle_f_convert(f, x, type->dtype);
  return pestle_f_reshape(f, x, type->rank, type->dims);
}
