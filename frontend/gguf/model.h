// SPDX-License-Identifier: Apache-2.0
// What a GGUF file says of its model: the architecture, its numbers, and which tensor is
// what. All of it was compared: each tensor that the architecture needs is there in the
// right shape, and there is none that it does not know.
#ifndef PESTLE_FRONTEND_GGUF_MODEL_H_
#define PESTLE_FRONTEND_GGUF_MODEL_H_

#include "frontend/gguf/file.h"

typedef enum pestle_gguf_flags_e {
  PESTLE_GGUF_PAIRS = 1,   // numbers 2 i and 2 i + 1 of a head turn together
  PESTLE_GGUF_BIASED = 2,  // queries, keys and values have biases
  PESTLE_GGUF_HEAD_NORMS = 4,
  PESTLE_GGUF_JOINED = 8,   // ffn_up holds the gate, and then what it is for
  PESTLE_GGUF_GELU = 16,    // of the gate, by tanh; else SiLU
  PESTLE_GGUF_SCALED = 32,  // embeddings times sqrt(width)
  PESTLE_GGUF_POST_NORMS = 64,
  PESTLE_GGUF_LOCAL_ANGLES =
      128,  // layers of a window turn by a base of their own, unscaled
} pestle_gguf_flags_t;

typedef struct pestle_gguf_arch_t {
  const char* name;
  uint32_t flags;
  int64_t period, windowed, window;
  double cap, last_cap;
  int64_t wide;
} pestle_gguf_arch_t;

typedef enum pestle_gguf_slot_e {
#define PESTLE_GGUF_SLOT(SLOT, ...) PESTLE_GGUF_##SLOT##_SLOT,
#include "frontend/gguf/tensors.def"
  PESTLE_GGUF_SLOTS,
} pestle_gguf_slot_t;

typedef enum pestle_gguf_scaling_e {
  PESTLE_GGUF_PLAIN,
  PESTLE_GGUF_LINEAR,
  PESTLE_GGUF_YARN,
} pestle_gguf_scaling_t;

// Angles: of place p and pair i p * base^(-2 i / turned), scaled.
typedef struct pestle_gguf_angles_t {
  int64_t turned;  // numbers of a head, from the first on
  double base;
  pestle_gguf_scaling_t scaling;
  double factor;     // of the scaling
  double magnitude;  // of sines and cosines
  int64_t original;  // places that the model was first trained for
  // Divisors of the angles: for all places, or for few and for many; or NULL.
  const pestle_gguf_tensor_t *divisors, *few, *many;
} pestle_gguf_angles_t;

typedef struct pestle_gguf_model_t {
  const pestle_gguf_file_t* file;
  const pestle_gguf_arch_t* arch;
  int64_t layers, width, heads, shared, depth, value_depth, inner, words;
  int64_t context;
  // Products of these.
  int64_t one, queries, keys, values, joined, outputs, ups;
  double epsilon, scale;  // of scores
  double cap, last_cap;
  int64_t window;  // 0: none
  pestle_gguf_angles_t angles;
  double local_base;  // of layers that have angles of their own
  const pestle_gguf_tensor_t *embedding, *last_norm,
      *head;  // |head| may be |embedding|
  const pestle_gguf_tensor_t**
      slots;  // of each layer PESTLE_GGUF_SLOTS, NULL: not there
} pestle_gguf_model_t;

static inline const pestle_gguf_tensor_t* pestle_gguf_slot(
    const pestle_gguf_model_t* m, int64_t layer, pestle_gguf_slot_t slot) {
  return m->slots[layer * PESTLE_GGUF_SLOTS + slot];
}
// Whether |layer| sees a window alone.
static inline bool pestle_gguf_is_windowed(const pestle_gguf_model_t* m,
                                           int64_t layer) {
  return m->window && layer % m->arch->period < m->arch->windowed;
}

// Finds the model in |file|. UNSUPPORTED: an architecture or a variant that is not known;
// MALFORMED: keys or tensors are missing or do not fit each other.
PESTLE_NODISCARD pestle_status_t
pestle_gguf_find_model(const pestle_gguf_file_t* file, pestle_arena_t* arena,
                       pestle_gguf_model_t* out_model);

#endif  // PESTLE_FRONTEND_GGUF_MODEL_H_
