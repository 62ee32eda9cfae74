// SPDX-License-Identifier: Apache-2.0
// A GGUF file of a small llama as bytes: one layer of a head of 32, two words, weights of
// Q8_0 that are all 0 but for the embedding's.
#ifndef PESTLE_TESTS_UNIT_FRONTEND_GGUF_TEST_H_
#define PESTLE_TESTS_UNIT_FRONTEND_GGUF_TEST_H_

#include "unit/frontend/onnx_test.h"

enum { GGUF_WIDTH = 32, GGUF_BLOCK = 34, GGUF_WORDS = 2 };

static inline void gguf_number(pb_t* m, size_t bytes, uint64_t value) {
  pb_raw(m, &value, bytes);
}

static inline void gguf_text(pb_t* m, const char* text) {
  gguf_number(m, 8, strlen(text));
  pb_raw(m, text, strlen(text));
}

static inline void gguf_u32(pb_t* m, const char* key, uint32_t value) {
  gguf_text(m, key);
  gguf_number(m, 4, 4);
  gguf_number(m, 4, value);
}

static inline pb_t gguf_model(void) {
  enum { VALUES = 6, F32 = 0, Q8_0 = 8, ALIGNMENT = 32 };
  static const struct {
    const char* name;
    uint64_t rows;  // 0: a vector
  } tensors[] = {
      {"token_embd.weight", GGUF_WORDS},
      {"output_norm.weight", 0},
      {"blk.0.attn_norm.weight", 0},
      {"blk.0.attn_q.weight", GGUF_WIDTH},
      {"blk.0.attn_k.weight", GGUF_WIDTH},
      {"blk.0.attn_v.weight", GGUF_WIDTH},
      {"blk.0.attn_output.weight", GGUF_WIDTH},
      {"blk.0.ffn_norm.weight", 0},
      {"blk.0.ffn_gate.weight", GGUF_WIDTH},
      {"blk.0.ffn_up.weight", GGUF_WIDTH},
      {"blk.0.ffn_down.weight", GGUF_WIDTH},
  };
  static const float epsilon = 1e-5f;
  const size_t count = sizeof(tensors) / sizeof(tensors[0]);
  pb_t m = {0};
  uint64_t place = 0;
  pb_raw(&m, "GGUF", 4);
  gguf_number(&m, 4, 3);
  gguf_number(&m, 8, count);
  gguf_number(&m, 8, VALUES);
  gguf_text(&m, "general.architecture");
  gguf_number(&m, 4, 8);
  gguf_text(&m, "llama");
  gguf_u32(&m, "llama.block_count", 1);
  gguf_u32(&m, "llama.embedding_length", GGUF_WIDTH);
  gguf_u32(&m, "llama.feed_forward_length", GGUF_WIDTH);
  gguf_u32(&m, "llama.attention.head_count", 1);
  gguf_text(&m, "llama.attention.layer_norm_rms_epsilon");
  gguf_number(&m, 4, 6);
  pb_raw(&m, &epsilon, 4);
  for (size_t i = 0; i < count; ++i) {
    uint64_t rows = tensors[i].rows;
    uint64_t size = rows ? rows * GGUF_BLOCK : GGUF_WIDTH * sizeof(float);
    gguf_text(&m, tensors[i].name);
    gguf_number(&m, 4, rows ? 2 : 1);
    gguf_number(&m, 8, GGUF_WIDTH);
    if (rows) gguf_number(&m, 8, rows);
    gguf_number(&m, 4, rows ? Q8_0 : F32);
    gguf_number(&m, 8, place);
    place += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
  while (m.size % ALIGNMENT)
    gguf_number(&m, 1, 0);
  for (uint64_t i = 0; i < place; ++i)
    gguf_number(&m, 1, i < GGUF_WORDS * GGUF_BLOCK ? i : 0);
  return m;
}

#endif  // PESTLE_TESTS_UNIT_FRONTEND_GGUF_TEST_H_
