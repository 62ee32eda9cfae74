// SPDX-License-Identifier: Apache-2.0
// rng_bit_generator, word by word from the published algorithms; rng, whose
// numbers are its own.
#include <math.h>
#include <string.h>

#include "ir/ref/ref_internal.h"

static uint32_t rotate(uint32_t x, unsigned by) {
  return x << by | x >> (32 - by);
}

static void threefry2x32(uint64_t counter, uint64_t key, uint32_t out[2]) {
  static const unsigned turns[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  uint32_t k[3] = {(uint32_t)key, (uint32_t)(key >> 32), 0};
  k[2] = k[0] ^ k[1] ^ 0x1BD11BDA;
  uint32_t a = (uint32_t)counter + k[0], b = (uint32_t)(counter >> 32) + k[1];
  for (unsigned round = 0; round < 20; ++round) {
    a += b;
    b = rotate(b, turns[round % 8]) ^ a;
    if (round % 4 != 3) continue;
    unsigned i = round / 4 + 1;
    a += k[i % 3];
    b += k[(i + 1) % 3] + i;
  }
  out[0] = a;
  out[1] = b;
}

static void philox4x32(uint64_t low, uint64_t high, uint64_t key,
                       uint32_t out[4]) {
  uint32_t c[4] = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high,
                   (uint32_t)(high >> 32)};
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t p = (uint64_t)c[0] * 0xD2511F53, q = (uint64_t)c[2] * 0xCD9E8D57;
    uint32_t next[4] = {(uint32_t)(q >> 32) ^ c[1] ^ k0, (uint32_t)q,
                        (uint32_t)(p >> 32) ^ c[3] ^ k1, (uint32_t)p};
    memcpy(c, next, sizeof(c));
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  memcpy(out, c, sizeof(c));
}

static void put(pestle_dtype_t dtype, uint64_t word, void* data, int64_t at) {
  size_t size = pestle_dtype_size(dtype);
  pestle_ref_store_wide(dtype, &word, 1, (char*)data + (size_t)at * size);
}

// Words of 32 bits: the two of a pair are neighbours along one axis.
static uint64_t threefry_narrow(const pestle_type_t* type, uint64_t key,
                                uint64_t counter, void* out) {
  int axis = -1;
  for (int i = 0; i < type->rank && axis < 0; ++i) {
    if (type->dims[i] % 2 == 0) axis = i;
  }
  for (int i = 0; i < type->rank && (axis < 0 || type->dims[axis] % 2); ++i) {
    if (axis < 0 || type->dims[i] > type->dims[axis]) axis = i;
  }
  int64_t inner = 1, outer = 1, extent = axis < 0 ? 1 : type->dims[axis];
  for (int i = 0; i < type->rank; ++i) {
    if (i < axis) outer *= type->dims[i];
    if (i > axis) inner *= type->dims[i];
  }
  int64_t half = (extent + 1) / 2;
  for (int64_t pair = 0; pair < outer * half * inner; ++pair) {
    uint32_t words[2];
    threefry2x32(counter + (uint64_t)pair, key, words);
    int64_t j = pair / inner % half * 2;
    int64_t row = pair / inner / half * extent;
    for (int64_t k = 0; k < 2 && j + k < extent; ++k)
      put(type->dtype, words[k], out, (row + j + k) * inner + pair % inner);
  }
  return (uint64_t)(outer * half * inner);
}

static void threefry_bits(const pestle_type_t* type, const uint64_t* state,
                          uint64_t* next, void* out) {
  if (pestle_dtype_size(type->dtype) < 8) {
    next[1] = state[1] + threefry_narrow(type, state[0], state[1], out);
    return;
  }
  int64_t count = pestle_type_count(type);
  for (int64_t i = 0; i < count; ++i) {
    uint32_t words[2];
    threefry2x32(state[1] + (uint64_t)i, state[0], words);
    put(type->dtype, words[0] | (uint64_t)words[1] << 32, out, i);
  }
  next[1] = state[1] + (uint64_t)count;
}

static void philox_bits(const pestle_type_t* type, const uint64_t* state,
                        uint64_t high, uint64_t* out_low, uint64_t* out_high,
                        void* out) {
  int64_t count = pestle_type_count(type);
  bool wide = pestle_dtype_size(type->dtype) == 8;
  int64_t each = wide ? 2 : 4;
  uint64_t low = state[1];
  for (int64_t i = 0; i < count; i += each) {
    uint32_t w[4];
    philox4x32(low, high, state[0], w);
    for (int64_t k = 0; k < each && i + k < count; ++k) {
      uint64_t word = wide ? w[2 * k] | (uint64_t)w[2 * k + 1] << 32 : w[k];
      put(type->dtype, word, out, i + k);
    }
    if (!++low) ++high;
  }
  *out_low = low;
  *out_high = high;
}

pestle_status_t pestle_ref_rng_bit_generator(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_result_type(call, 1);
  int64_t size = pestle_ref_operand_type(call, 0)->dims[0];
  const uint64_t* state = call->operands[0];
  uint64_t* next = call->results[0];
  uint64_t old[3] = {state[0], state[1], size == 3 ? state[2] : 0}, high;
  memcpy(next, old, (size_t)size * sizeof(*next));
  if (!strcmp(PESTLE_NODE_STR(call->node, rng_algorithm), "THREE_FRY")) {
    threefry_bits(type, old, next, call->results[1]);
    return NULL;
  }
  philox_bits(type, old, size == 3 ? old[2] : old[0], &next[1], &high,
              call->results[1]);
  if (size == 3) next[2] = high;
  return NULL;
}

// --- rng ---

typedef struct source_t {
  uint64_t at;
} source_t;

static uint64_t next_word(source_t* s) {
  uint32_t w[4];
  philox4x32(s->at++, 0, 0x5EED, w);
  return w[0] | (uint64_t)w[1] << 32;
}

// In [0, 1).
static double next_fraction(source_t* s) {
  return (double)(next_word(s) >> 12) * 0x1p-52;
}

static double next_normal(source_t* s) {
  double u = 1 - next_fraction(s), v = next_fraction(s);
  return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

pestle_status_t pestle_ref_rng(const pestle_ref_call_t* call) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  bool normal = *PESTLE_NODE_STR(call->node, rng_distribution) == 'N';
  size_t size = pestle_dtype_size(type->dtype);
  int64_t count = pestle_type_count(type);
  source_t source = {0};
  for (int64_t i = 0; i < count; ++i) {
    void* to = (char*)call->results[0] + (size_t)i * size;
    if (!pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT)) {
      uint64_t a, b;
      pestle_ref_load_wide(type->dtype, call->operands[0], 1, &a);
      pestle_ref_load_wide(type->dtype, call->operands[1], 1, &b);
      a += b == a ? 0 : next_word(&source) % (b - a);
      pestle_ref_store_wide(type->dtype, &a, 1, to);
      continue;
    }
    double a, b;
    pestle_ref_load_f64(type->dtype, call->operands[0], 1, &a);
    pestle_ref_load_f64(type->dtype, call->operands[1], 1, &b);
    // Few bits, so that narrow floats do not round up to b.
    double u = floor(next_fraction(&source) * 4) / 4;
    double x = normal ? a + b * next_normal(&source) : a + (b - a) * u;
    pestle_ref_store_f64(type->dtype, &x, 1, to);
  }
  return NULL;
}
