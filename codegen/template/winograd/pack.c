// SPDX-License-Identifier: Apache-2.0
// Weights as factors, when the plan is made: U = G g G^T of each 3 x 3 taps g. The five
// dims of the layout are panels of features, the rows and columns of U, channels, and
// the features of a panel.
#include <string.h>

#include "codegen/nest/kernel_arg.h"
#include "codegen/template/winograd/winograd.h"

enum {
  PANEL,
  HIGH,
  WIDE,
  CHANNEL,
  FEATURE,
  // Factors whose taps lie in a row, as many as fit registers.
  AT_ONCE = 16,
};

typedef struct packer_t {
  const pestle_kernel_arg_t* arg;
  const uint8_t* source;
  int64_t high, wide;  // elements from one tap to the next
  double weights[PESTLE_WINOGRAD_TAPS][PESTLE_WINOGRAD_TAPS];  // of this factor
} packer_t;

static void weigh(packer_t* p, int64_t count, int64_t i, int64_t j) {
  for (int64_t k = 0; k < PESTLE_WINOGRAD_TAPS; ++k) {
    for (int64_t l = 0; l < PESTLE_WINOGRAD_TAPS; ++l) {
      p->weights[k][l] = pestle_winograd_weight(count, i, k) *
                         pestle_winograd_weight(count, j, l);
    }
  }
}

static float factor(const packer_t* p, int64_t from) {
  double sum = 0;
  for (int64_t k = 0; k < PESTLE_WINOGRAD_TAPS; ++k) {
    for (int64_t l = 0; l < PESTLE_WINOGRAD_TAPS; ++l) {
      int64_t at = from + k * p->high + l * p->wide;
      if (p->weights[k][l] == 0) continue;
      float x;
      if (p->arg->elements->splat) at = 0;
      memcpy(&x, p->source + (size_t)at * sizeof(x), sizeof(x));
      sum += p->weights[k][l] * (double)x;
    }
  }
  return (float)sum;
}

// The same for neighbours; each sum goes in the order of factor().
static void factors(const packer_t* p, int64_t from, float* target) {
  double sums[AT_ONCE] = {0};
  for (int64_t k = 0; k < PESTLE_WINOGRAD_TAPS; ++k) {
    for (int64_t l = 0; l < PESTLE_WINOGRAD_TAPS; ++l) {
      int64_t at = from + k * p->high + l * p->wide;
      float x[AT_ONCE];
      if (p->weights[k][l] == 0) continue;  // four in ten of 36 are
      memcpy(x, p->source + (size_t)at * sizeof(*x), sizeof(x));
      for (int i = 0; i < AT_ONCE; ++i)
        sums[i] += p->weights[k][l] * (double)x[i];
    }
  }
  for (int i = 0; i < AT_ONCE; ++i)
    target[i] = (float)sums[i];
}

// The features of a panel, of which |count| exist; the others are zero.
static void pack_run(const packer_t* p, int64_t from, int64_t count,
                     uint8_t* target) {
  const pestle_pack_axis_t* f = &p->arg->pack[FEATURE];
  bool runs = f->coef == 1 && !p->arg->elements->splat;
  int64_t i = 0;
  for (; runs && count - i >= AT_ONCE; i += AT_ONCE) {
    float values[AT_ONCE];
    factors(p, from + i, values);
    memcpy(target + (size_t)i * sizeof(float), values, sizeof(values));
  }
  for (; i < count; ++i) {
    float value = factor(p, from + i * f->coef);
    memcpy(target + (size_t)i * sizeof(float), &value, sizeof(value));
  }
  memset(target + (size_t)count * sizeof(float), 0,
         (size_t)(f->extent - count) * sizeof(float));
}

static uint8_t* pack_panel(packer_t* p, int64_t from, int64_t count,
                           uint8_t* target) {
  const pestle_pack_axis_t* dims = p->arg->pack;
  for (int64_t i = 0; i < dims[HIGH].extent; ++i) {
    for (int64_t j = 0; j < dims[WIDE].extent; ++j) {
      weigh(p, dims[HIGH].extent, i, j);
      for (int64_t c = 0; c < dims[CHANNEL].extent; ++c) {
        pack_run(p, from + c * dims[CHANNEL].coef, count, target);
        target += (size_t)dims[FEATURE].extent * sizeof(float);
      }
    }
  }
  return target;
}

void pestle_winograd_pack(const pestle_kernel_arg_t* arg, uint8_t* target) {
  const pestle_pack_axis_t* dims = arg->pack;
  packer_t p = {.arg = arg,
                .source = arg->elements->data,
                .high = dims[HIGH].coef,
                .wide = dims[WIDE].coef};
  for (int64_t panel = 0; panel < dims[PANEL].extent; ++panel) {
    int64_t left = dims[FEATURE].limit - panel * dims[PANEL].scale;
    int64_t count = left < dims[FEATURE].extent ? left : dims[FEATURE].extent;
    target = pack_panel(&p, arg->pack_offset + panel * dims[PANEL].coef, count,
                        target);
  }
}
