// SPDX-License-Identifier: Apache-2.0
// What the bytes of GGUF's blocks mean. A block is taken apart into numbers q of 0 to 255,
// and for each group of them a scale and a least: scale * q + least. block_dot wants scale *
// (q - zero): zero is -least / scale, or the middle of its bits where the type has no least.
#include "frontend/gguf/pack.h"

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "pestle/runtime.h"

enum { MOST = 256, GROUPS = 16 };  // numbers and groups of a block

typedef struct block_t {
  uint8_t q[MOST];
  float scale[GROUPS], least[GROUPS];
} block_t;

static float half_at(const uint8_t* data) {
  return pestle_f16_to_f32((uint16_t)(data[0] | data[1] << 8));
}

// --- Blocks of 32 ---

// |count| bytes whose low halves come before their high halves.
static void nibbles(const uint8_t* in, int count, uint8_t* q) {
  for (int i = 0; i < count; ++i) {
    q[i] = in[i] & 15;
    q[count + i] = in[i] >> 4;
  }
}

static void take_q4_0(const uint8_t* in, block_t* out) {
  out->scale[0] = half_at(in);
  nibbles(in + 2, 16, out->q);
}

static void take_q4_1(const uint8_t* in, block_t* out) {
  out->scale[0] = half_at(in);
  out->least[0] = half_at(in + 2);
  nibbles(in + 4, 16, out->q);
}

// The fifth bits of 32 numbers, |add| to each.
static void fifth_bits(const uint8_t* in, uint8_t add, uint8_t* q) {
  for (int i = 0; i < 32; ++i)
    q[i] = (uint8_t)((q[i] | (in[i / 8] >> i % 8 & 1) << 4) + add);
}

static void take_q5_0(const uint8_t* in, block_t* out) {
  out->scale[0] = half_at(in);
  nibbles(in + 6, 16, out->q);
  fifth_bits(in + 2, 128 - 16, out->q);
}

static void take_q5_1(const uint8_t* in, block_t* out) {
  out->scale[0] = half_at(in);
  out->least[0] = half_at(in + 2);
  nibbles(in + 8, 16, out->q);
  fifth_bits(in + 4, 0, out->q);
}

static void take_q8_0(const uint8_t* in, block_t* out) {
  out->scale[0] = half_at(in);
  for (int i = 0; i < 32; ++i)
    out->q[i] = in[2 + i] ^ 128;
}

// The 16 numbers that IQ4's nibbles choose, 128 added.
static const uint8_t chosen[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                   129, 141, 153, 166, 181, 197, 217, 241};

static void choose(uint8_t* q, int count) {
  for (int i = 0; i < count; ++i)
    q[i] = chosen[q[i]];
}

// Floats of 4 bits, doubled so that they are whole, by half of a power of two.
static void take_mxfp4(const uint8_t* in, block_t* out) {
  static const int8_t doubled[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                     0, -1, -2, -3, -4, -6, -8, -12};
  enum { BIAS = 127 };
  out->scale[0] = ldexpf(1, in[0] - BIAS - 1);
  nibbles(in + 1, 16, out->q);
  for (int i = 0; i < 32; ++i)
    out->q[i] = (uint8_t)(128 + doubled[out->q[i]]);
}

static void take_iq4_nl(const uint8_t* in, block_t* out) {
  take_q4_0(in, out);
  choose(out->q, 32);
}

// --- Blocks of 256 ---

static void take_iq4_xs(const uint8_t* in, block_t* out) {
  float d = half_at(in);
  unsigned high = in[2] | (unsigned)in[3] << 8;
  for (int g = 0; g < 8; ++g) {
    unsigned low = in[4 + g / 2] >> 4 * (g % 2) & 15;
    int scale = (int)(low | (high >> 2 * g & 3) << 4) - 32;
    out->scale[g] = d * (float)scale;
    nibbles(in + 8 + 16 * g, 16, out->q + 32 * g);
  }
  choose(out->q, MOST);
}

// Of 12 bytes the scale and the least of group |g| of 8, 6 bits each.
static void six_bits(const uint8_t* in, int g, int* scale, int* least) {
  if (g < 4) {
    *scale = in[g] & 63;
    *least = in[g + 4] & 63;
  } else {
    *scale = (in[g + 4] & 15) | in[g - 4] >> 6 << 4;
    *least = in[g + 4] >> 4 | in[g] >> 6 << 4;
  }
}

static void take_scales(const uint8_t* in, block_t* out) {
  float d = half_at(in), least = half_at(in + 2);
  for (int g = 0; g < 8; ++g) {
    int s, m;
    six_bits(in + 4, g, &s, &m);
    out->scale[g] = d * (float)s;
    out->least[g] = -(least * (float)m);
  }
}

static void take_q4_k(const uint8_t* in, block_t* out) {
  take_scales(in, out);
  for (int i = 0; i < 4; ++i)
    nibbles(in + 16 + 32 * i, 32, out->q + 64 * i);
}

static void take_q5_k(const uint8_t* in, block_t* out) {
  const uint8_t *high = in + 16, *low = in + 48;
  take_scales(in, out);
  for (int g = 0; g < 8; ++g) {
    for (int i = 0; i < 32; ++i) {
      int q = low[32 * (g / 2) + i] >> 4 * (g % 2) & 15;
      out->q[32 * g + i] = (uint8_t)(q | (high[i] >> g & 1) << 4);
    }
  }
}

static void take_q6_k(const uint8_t* in, block_t* out) {
  const uint8_t *low = in, *high = in + 128;
  float d = half_at(in + 208);
  for (int g = 0; g < 16; ++g)
    out->scale[g] = d * (float)(int8_t)in[192 + g];
  for (int i = 0; i < MOST; ++i) {
    int part = i / 128, four = i / 32 % 4, at = i % 32;
    int q = low[64 * part + 32 * (four % 2) + at] >> 4 * (four / 2) & 15;
    q |= (high[32 * part + at] >> 2 * four & 3) << 4;
    out->q[i] = (uint8_t)(q + 128 - 32);
  }
}

// The two lower bits of 256 numbers.
static int two_bits(const uint8_t* in, int i) {
  return in[32 * (i / 128) + i % 32] >> 2 * (i / 32 % 4) & 3;
}

static void take_q2_k(const uint8_t* in, block_t* out) {
  float d = half_at(in + 80), least = half_at(in + 82);
  for (int g = 0; g < 16; ++g) {
    out->scale[g] = d * (float)(in[g] & 15);
    out->least[g] = -(least * (float)(in[g] >> 4));
  }
  for (int i = 0; i < MOST; ++i)
    out->q[i] = (uint8_t)two_bits(in + 16, i);
}

static void take_q3_k(const uint8_t* in, block_t* out) {
  const uint8_t *high = in, *scales = in + 96;
  float d = half_at(in + 108);
  for (int g = 0; g < 16; ++g) {
    int scale = scales[g % 8] >> 4 * (g / 8) & 15;
    scale |= (scales[8 + g % 4] >> 2 * (g / 4) & 3) << 4;
    out->scale[g] = d * (float)(scale - 32);
  }
  for (int i = 0; i < MOST; ++i) {
    int q = two_bits(in + 32, i) | (high[i % 32] >> i / 32 & 1) << 2;
    out->q[i] = (uint8_t)(q + 8 - 4);
  }
}

// --- Any type ---

typedef void (*take_t)(const uint8_t* in, block_t* out);

static take_t taker(const pestle_gguf_type_t* type) {
  static const struct {
    const char* name;
    take_t take;
  } takers[] = {
      {"Q4_0", take_q4_0},   {"Q4_1", take_q4_1},     {"Q5_0", take_q5_0},
      {"Q5_1", take_q5_1},   {"Q8_0", take_q8_0},     {"Q2_K", take_q2_k},
      {"Q3_K", take_q3_k},   {"Q4_K", take_q4_k},     {"Q5_K", take_q5_k},
      {"Q6_K", take_q6_k},   {"IQ4_NL", take_iq4_nl}, {"IQ4_XS", take_iq4_xs},
      {"MXFP4", take_mxfp4},
  };
  size_t i = 0;
  while (strcmp(takers[i].name, type->name) != 0)
    ++i;
  return takers[i].take;
}

int64_t pestle_gguf_row(const pestle_gguf_rows_t* rows, int64_t index) {
  int64_t at = rows->depth ? index % rows->depth : 0, half = rows->turned / 2;
  if (at < rows->turned && rows->depth) {
    index -= at;
    index += at < half ? 2 * at : 2 * (at - half) + 1;
  }
  return rows->first + index;
}

// Of 1, 2 or 4 numbers a byte, the first in its lowest bits.
static void put_bits(const uint8_t* q, int count, int bits, uint8_t* out) {
  if (bits == 8) memcpy(out, q, (size_t)count);
  if (bits == 4) {
    for (int i = 0; i < count / 2; ++i)
      out[i] = (uint8_t)(q[2 * i] | q[2 * i + 1] << 4);
  }
  if (bits == 2) {
    for (int i = 0; i < count / 4; ++i)
      out[i] = (uint8_t)(q[4 * i] | q[4 * i + 1] << 2 | q[4 * i + 2] << 4 |
                         q[4 * i + 3] << 6);
  }
}

// A group without a scale is its least everywhere: (0 - -1) * least.
static void put_least(block_t* b, int g, int group, float* scale, float* zero) {
  *scale = b->scale[g];
  *zero = -b->least[g] / b->scale[g];
  if (b->scale[g] != 0) return;
  *scale = b->least[g];
  *zero = -1;
  memset(b->q + g * group, 0, (size_t)group);
}

typedef struct pack_t {
  const pestle_gguf_tensor_t* tensor;
  const pestle_gguf_rows_t* rows;
  int64_t each;  // rows of one task
  uint8_t* bytes;
  void* scales;
  float* zeros;
} pack_t;

// Scales that a file has as f16 are f16 again.
static void put_scale(const pack_t* p, size_t at, float scale) {
  if (p->tensor->type->is_half) {
    ((uint16_t*)p->scales)[at] = pestle_f16_from_f32(scale);
  } else {
    ((float*)p->scales)[at] = scale;
  }
}

static void pack_row(const pack_t* p, take_t take, int64_t row, block_t* b) {
  const pestle_gguf_type_t* type = p->tensor->type;
  int64_t columns = p->tensor->dims[0], blocks = columns / type->elements;
  int group = type->group, groups = type->elements / group;
  size_t bytes = (size_t)type->elements * type->bits / 8;
  size_t first = (size_t)(row * blocks);
  const uint8_t* in =
      p->tensor->data +
      (size_t)(pestle_gguf_row(p->rows, row) * blocks) * type->bytes;
  uint8_t* out = p->bytes + first * bytes;
  size_t at = first * (size_t)groups;
  for (int64_t i = 0; i < blocks; ++i) {
    take(in, b);
    for (int g = 0; g < groups; ++g, ++at) {
      float scale = b->scale[g];
      if (p->zeros) put_least(b, g, group, &scale, &p->zeros[at]);
      put_scale(p, at, scale);
    }
    put_bits(b->q, type->elements, type->bits, out);
    in += type->bytes;
    out += bytes;
  }
}

static void pack_rows(void* arg, int64_t index) {
  const pack_t* p = arg;
  take_t take = taker(p->tensor->type);
  int64_t first = index * p->each, end = first + p->each;
  block_t b = {.q = {0}};
  if (end > p->rows->count) end = p->rows->count;
  for (int64_t row = first; row < end; ++row)
    pack_row(p, take, row, &b);
}

void pestle_gguf_pack(pestle_context_t* context, const pestle_gguf_tensor_t* t,
                      const pestle_gguf_rows_t* rows, uint8_t* bytes,
                      void* scales, float* zeros) {
  enum { TASK = 1 << 18 };  // numbers
  pack_t p = {.tensor = t,
              .rows = rows,
              .each = 1 + TASK / t->dims[0],
              .bytes = bytes,
              .scales = scales,
              .zeros = zeros};
  pestle_context_parallel_for(context, (rows->count - 1) / p.each + 1,
                              pack_rows, &p);
}

static void unpack_block(const pestle_gguf_type_t* type, take_t take,
                         const uint8_t* in, float* out) {
  block_t b = {.q = {0}};
  float middle = (float)(1 << (type->bits - 1));
  take(in, &b);
  for (int i = 0; i < type->elements; ++i) {
    int g = i / type->group;
    float q = (float)b.q[i];
    out[i] = type->has_least ? b.scale[g] * q + b.least[g]
                             : b.scale[g] * (q - middle);
  }
}

void pestle_gguf_unpack(const pestle_gguf_tensor_t* t, float* out) {
  const pestle_gguf_type_t* type = t->type;
  size_t count = t->size / type->bytes;
  take_t take = type->bits ? taker(type) : NULL;
  bool is_half = strcmp(type->name, "F16") == 0;
  if (type->bytes == sizeof(float)) {
    memcpy(out, t->data, t->size);
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* in = t->data + i * type->bytes;
    uint16_t bits = (uint16_t)(in[0] | in[1] << 8);
    if (take) {
      unpack_block(type, take, in, out + i * type->elements);
    } else {
      out[i] = is_half ? pestle_f16_to_f32(bits) : pestle_bf16_to_f32(bits);
    }
  }
}
