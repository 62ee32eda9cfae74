// SPDX-License-Identifier: Apache-2.0
// Products of small matrices by the 32 lanes of a subgroup, as kir.h and kir.def
// lay them out.
#include <math.h>
#include <string.h>

#include "plugins/ref/ref_internal.h"

enum { SUBGROUP = 32, ROW_BYTES = 16 };  // of LDMATRIX

static uint64_t word_of(const unsigned char* slots, unsigned word) {
  uint64_t bits;
  memcpy(&bits, slots + 8 * word, sizeof bits);
  return bits;
}

// Elements of both operands of one product, as f32.
// What words of 32 bits hold: so many elements of k each.
typedef struct packed_t {
  unsigned each, dtype[2];  // of a and of b
} packed_t;

static packed_t packed_of(uint64_t how) {
  if (how == PESTLE_KIR_MMA_TF32)
    return (packed_t){1, {PESTLE_F32, PESTLE_F32}};
  if (how == PESTLE_KIR_MMA_F16) return (packed_t){2, {PESTLE_F16, PESTLE_F16}};
  if (how < PESTLE_KIR_MMA_F8) return (packed_t){2, {PESTLE_BF16, PESTLE_BF16}};
  packed_t f8 = {4, {PESTLE_F8E4M3FN, PESTLE_F8E4M3FN}};
  if (how & PESTLE_KIR_MMA_A_E5M2) f8.dtype[0] = PESTLE_F8E5M2;
  if (how & PESTLE_KIR_MMA_B_E5M2) f8.dtype[1] = PESTLE_F8E5M2;
  return f8;
}

typedef struct fragments_t {
  float a[16][32], b[8][32];  // row, k; column, k
} fragments_t;

// The elements of word |bits|, which begin at |k|, to a row.
static void take_word(const packed_t* p, bool is_b, uint64_t bits, unsigned k,
                      float* row) {
  uint32_t cut =
      ~(uint32_t)0x1fff;  // of an f32 all but 10 bits of its mantissa
  for (unsigned e = 0; e < p->each; ++e) {
    uint32_t part = (uint32_t)(bits >> (32 / p->each * e));
    if (p->each == 1) {
      part &= cut;
      memcpy(&row[k], &part, sizeof part);
      continue;
    }
    part &= p->each == 2 ? 0xffff : 0xff;
    row[k + e] = pestle_ref_plugin_decode(p->dtype[is_b], part);
  }
}

static void take_words(const ref_step_t* s, const packed_t* p,
                       const unsigned char* frame, unsigned lane,
                       fragments_t* f) {
  unsigned g = lane / 4, t = lane % 4;
  for (unsigned w = 0; w < 4; ++w) {
    take_word(p, false, word_of(frame + s->a, w), p->each * (t + 4 * (w / 2)),
              f->a[g + 8 * (w % 2)]);
  }
  for (unsigned w = 0; w < 2; ++w)
    take_word(p, true, word_of(frame + s->b, w), p->each * (t + 4 * w),
              f->b[g]);
}

static void give_sums(const ref_step_t* s, const packed_t* p,
                      unsigned char* frame, unsigned lane,
                      const fragments_t* f) {
  float sum[4], product[32];
  memcpy(sum, frame + s->c, sizeof sum);
  for (unsigned i = 0; i < 4; ++i) {
    unsigned row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
    for (unsigned k = 0; k < 8 * p->each; ++k)
      product[k] = f->a[row][k] * f->b[column][k];
    if (p->each == 4) {
      sum[i] = pestle_ref_plugin_add_cut(sum[i], product, 32);
      continue;
    }
    for (unsigned k = 0; k < 8 * p->each; ++k)
      sum[i] += product[k];
  }
  memcpy(frame + s->out, sum, sizeof sum);
}

// Matrices of 8 x 8, whose elements a lane has at |row| and |column| and beside.
static void multiply_8x8(const ref_step_t* s, unsigned char* frames,
                         size_t frame_size) {
  float a[8][8], b[8][8];
  for (unsigned i = 0; i < SUBGROUP; ++i) {
    unsigned row = i / 16 * 4 + i / 2 % 4, column = i / 8 % 2 * 4 + i % 2 * 2;
    memcpy(&a[row][column], frames + i * frame_size + s->a, 2 * sizeof(float));
    memcpy(&b[row][column], frames + i * frame_size + s->b, 2 * sizeof(float));
  }
  for (unsigned i = 0; i < SUBGROUP; ++i) {
    unsigned row = i / 16 * 4 + i / 2 % 4, column = i / 8 % 2 * 4 + i % 2 * 2;
    float sum[2];
    memcpy(sum, frames + i * frame_size + s->c, sizeof sum);
    for (unsigned k = 0; k < 8; ++k) {
      sum[0] += a[row][k] * b[k][column];
      sum[1] += a[row][k] * b[k][column + 1];
    }
    memcpy(frames + i * frame_size + s->out, sum, sizeof sum);
  }
}

// Bytes of both operands: word |k| / 4 of a row of a, or of a column of b.
typedef struct words_t {
  uint64_t a[16][8], b[8][8];
} words_t;

static void multiply_bytes(const ref_step_t* s, unsigned char* frames,
                           size_t frame_size) {
  words_t f;
  for (unsigned i = 0; i < SUBGROUP; ++i) {
    const unsigned char* own = frames + i * frame_size;
    unsigned g = i / 4, t = i % 4;
    for (unsigned w = 0; w < 4; ++w)
      f.a[g + 8 * (w % 2)][t + 4 * (w / 2)] = word_of(own + s->a, w);
    for (unsigned w = 0; w < 2; ++w)
      f.b[g][t + 4 * w] = word_of(own + s->b, w);
  }
  for (unsigned i = 0; i < SUBGROUP; ++i) {
    unsigned char* own = frames + i * frame_size;
    int64_t sum[4];
    memcpy(sum, own + s->c, sizeof sum);
    for (unsigned e = 0; e < 4; ++e) {
      unsigned row = i / 4 + 8 * (e / 2), column = 2 * (i % 4) + e % 2;
      for (unsigned k = 0; k < 8; ++k) {
        pestle_ref_plugin_dot4(&sum[e], &f.a[row][k], &f.b[column][k], &sum[e],
                               1, (uint64_t)s->imm % PESTLE_KIR_MMA_BYTES);
      }
    }
    memcpy(own + s->out, sum, sizeof sum);
  }
}

bool pestle_ref_plugin_mma(const ref_step_t* s, unsigned char* frames,
                           size_t frame_size, uint32_t lanes) {
  fragments_t f;
  if (s->imm == PESTLE_KIR_MMA_F32_8X8) {
    for (uint32_t first = 0; first < lanes; first += SUBGROUP)
      multiply_8x8(s, frames + first * frame_size, frame_size);
    return true;
  }
  if (s->imm >= PESTLE_KIR_MMA_BYTES && s->imm < PESTLE_KIR_MMA_F8) {
    for (uint32_t first = 0; first < lanes; first += SUBGROUP)
      multiply_bytes(s, frames + first * frame_size, frame_size);
    return true;
  }
  packed_t p = packed_of((uint64_t)s->imm);
  for (uint32_t first = 0; first < lanes; first += SUBGROUP) {
    unsigned char* own = frames + first * frame_size;
    for (unsigned i = 0; i < SUBGROUP; ++i)
      take_words(s, &p, own + i * frame_size, i, &f);
    for (unsigned i = 0; i < SUBGROUP; ++i)
      give_sums(s, &p, own + i * frame_size, i, &f);
  }
  return true;
}

static uint64_t element(const unsigned char* tile, int64_t index) {
  uint16_t bits;
  memcpy(&bits, tile + 2 * index, sizeof bits);
  return bits;
}

bool pestle_ref_plugin_ldmatrix(const ref_step_t* s, unsigned char* frames,
                                size_t frame_size, uint32_t lanes,
                                const unsigned char* shared) {
  const unsigned char* tile = shared + s->place;
  uint64_t per_row = ROW_BYTES / s->size;
  for (uint32_t first = 0; first < lanes; first += SUBGROUP) {
    int64_t row[SUBGROUP];
    for (unsigned i = 0; i < SUBGROUP; ++i) {
      memcpy(&row[i], frames + (first + i) * frame_size + s->a, sizeof row[i]);
      if (i >= 8 * s->lanes) continue;
      if (row[i] < 0 || (uint64_t)row[i] >= s->count ||
          s->count - (uint64_t)row[i] < per_row) {
        return false;
      }
    }
    for (unsigned i = 0; i < SUBGROUP; ++i) {
      unsigned char* out = frames + (first + i) * frame_size + s->out;
      unsigned g = i / 4, t = 2 * (i % 4);
      for (unsigned q = 0; q < s->lanes; ++q) {
        const int64_t* m = &row[8 * q];
        uint64_t bits;
        if (s->imm) {
          bits = element(tile, m[t] + g);
          bits |= element(tile, m[t + 1] + g) << 16;
        } else {
          uint32_t word;
          memcpy(&word, tile + m[g] * (int64_t)s->size + 2 * t, sizeof word);
          bits = word;
        }
        memcpy(out + 8 * q, &bits, sizeof bits);
      }
    }
  }
  return true;
}

bool pestle_ref_plugin_stmatrix(const ref_step_t* s, unsigned char* frames,
                                size_t frame_size, unsigned char* shared) {
  int64_t row[SUBGROUP];
  for (unsigned i = 0; i < SUBGROUP; ++i) {
    memcpy(&row[i], frames + i * frame_size + s->a, sizeof row[i]);
    if (i >= 8 * s->lanes) continue;
    if (row[i] < 0 || (uint64_t)row[i] >= s->count ||
        s->count - (uint64_t)row[i] < 8) {
      return false;
    }
  }
  for (unsigned i = 0; i < SUBGROUP; ++i) {
    unsigned g = i / 4, t = 2 * (i % 4);
    for (unsigned q = 0; q < s->lanes; ++q) {
      uint64_t bits = word_of(frames + i * frame_size + s->b, q);
      for (unsigned h = 0; h < 2; ++h) {
        int64_t at = s->imm ? row[8 * q + t + h] + g : row[8 * q + g] + t + h;
        uint16_t half = (uint16_t)(bits >> 16 * h);
        memcpy(shared + s->place + 2 * at, &half, sizeof half);
      }
    }
  }
  return true;
}

void pestle_ref_plugin_ballot(const ref_step_t* s, unsigned char* frames,
                              size_t frame_size, uint32_t lanes) {
  for (uint32_t first = 0; first < lanes; first += SUBGROUP) {
    uint64_t bits = 0;
    uint32_t count = lanes - first < SUBGROUP ? lanes - first : SUBGROUP;
    for (uint32_t i = 0; i < count; ++i) {
      uint64_t on = word_of(frames + (first + i) * frame_size + s->a, 0);
      bits |= (uint64_t)(on != 0) << i;
    }
    for (uint32_t i = 0; i < count; ++i)
      memcpy(frames + (first + i) * frame_size + s->out, &bits, sizeof bits);
  }
}

// --- Powers of two ---

void pestle_ref_plugin_scale(void* out_, const void* a_, const void* b_,
                             const void* c, size_t count, uint64_t arg) {
  const float *a = a_, *b = b_;
  float* out = out_;
  (void)c;
  (void)arg;
  for (size_t i = 0; i < count; ++i) {
    out[i] = isnan(b[i]) ? b[i] : ldexpf(a[i], (int)fmaxf(b[i], -1024));
  }
}

// --- Short dot products ---

void pestle_ref_plugin_dot2(void* out_, const void* a_, const void* b_,
                            const void* c_, size_t count, uint64_t arg) {
  const uint64_t *a = a_, *b = b_;
  const float* c = c_;
  float* out = out_;
  (void)arg;
  for (size_t i = 0; i < count; ++i) {
    float sum = c[i];
    for (unsigned h = 0; h < 2; ++h) {
      uint32_t x = (uint32_t)(a[i] >> 16 * h) & 0xffff;
      uint32_t y = (uint32_t)(b[i] >> 16 * h) & 0xffff;
      float product = pestle_ref_plugin_decode(PESTLE_BF16, x) *
                      pestle_ref_plugin_decode(PESTLE_BF16, y);
      sum += product;
    }
    out[i] = sum;
  }
}

static int32_t byte_of(uint64_t word, unsigned i, bool is_signed) {
  int32_t value = (int32_t)(word >> 8 * i & 0xff);
  return is_signed && value > 127 ? value - 256 : value;
}

void pestle_ref_plugin_dot4(void* out_, const void* a_, const void* b_,
                            const void* c_, size_t count, uint64_t arg) {
  const uint64_t *a = a_, *b = b_, *c = c_;
  int64_t* out = out_;
  for (size_t i = 0; i < count; ++i) {
    uint32_t sum = (uint32_t)c[i];
    for (unsigned e = 0; e < 4; ++e) {
      sum += (uint32_t)(byte_of(a[i], e, arg & PESTLE_KIR_DOT4_A_SIGNED) *
                        byte_of(b[i], e, arg & PESTLE_KIR_DOT4_B_SIGNED));
    }
    out[i] = (int32_t)sum;
  }
}

// --- Matrix registers ---

// By words, as DOT2 and DOT4 take them: word r of a row of a, spread over all
// columns, with row r of b.
void pestle_ref_plugin_mreg_mma(unsigned char* registers, uint64_t numbers) {
  enum { SIDE = PESTLE_KIR_MREG_ROWS };
  unsigned char* c = registers + (numbers & 0xff) * REF_MREG_BYTES;
  const unsigned char* a = registers + (numbers >> 8 & 0xff) * REF_MREG_BYTES;
  const unsigned char* b = registers + (numbers >> 16 & 0xff) * REF_MREG_BYTES;
  unsigned kind = (unsigned)(numbers >> 24);
  bool bytes = kind >= PESTLE_KIR_MREG_BYTES;
  for (size_t row = 0; row < SIDE; ++row) {
    for (size_t word = 0; word < SIDE; ++word) {
      int32_t x;
      int64_t left[SIDE], right[SIDE], whole[SIDE];
      float sums[SIDE];
      unsigned char* to = c + row * PESTLE_KIR_MREG_ROW_BYTES;
      memcpy(&x, a + row * PESTLE_KIR_MREG_ROW_BYTES + 4 * word, sizeof x);
      for (size_t i = 0; i < SIDE; ++i) {
        int32_t y, sum;
        memcpy(&y, b + word * PESTLE_KIR_MREG_ROW_BYTES + 4 * i, sizeof y);
        memcpy(&sum, to + 4 * i, sizeof sum);
        left[i] = x;
        right[i] = y;
        whole[i] = sum;
      }
      if (bytes) {
        pestle_ref_plugin_dot4(whole, left, right, whole, SIDE,
                               kind % PESTLE_KIR_MREG_BYTES);
        for (size_t i = 0; i < SIDE; ++i) {
          int32_t sum = (int32_t)(uint32_t)(uint64_t)whole[i];
          memcpy(to + 4 * i, &sum, sizeof sum);
        }
      } else {
        memcpy(sums, to, sizeof sums);
        pestle_ref_plugin_dot2(sums, left, right, sums, SIDE, 0);
        memcpy(to, sums, sizeof sums);
      }
    }
  }
}
