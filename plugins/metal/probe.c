// SPDX-License-Identifier: Apache-2.0
#include "plugins/metal/probe.h"

#include <stdio.h>

#include "plugins/metal/dialect.h"

enum { SIDE = 8, SIZE = SIDE * SIDE };

static const char kernel[] =
    "kernel void " PESTLE_METAL_PROBE_NAME
    "(\n"
    "    device float* x [[buffer(0)]],\n"
    "    uint3 group_id [[threadgroup_position_in_grid]],\n"
    "    uint3 lane_id [[thread_position_in_threadgroup]]) {\n"
    "  int lane = int(lane_id.x);\n"
    "  int at = ((lane / 16) * 4 + (lane / 2) % 4) * 8 + ((lane / 8) % 2) * 4 "
    "+\n"
    "      (lane % 2) * 2;\n"
    "  float2 y = pestle_mma8(x[at], x[at + 1], x[at + 64], x[at + 65],\n"
    "                         float(at), float(at + 1));\n"
    "  x[at + 128] = y.x;\n"
    "  x[at + 129] = y.y;\n"
    "}\n";

size_t pestle_metal_probe_text(char* text, size_t capacity) {
  int size =
      snprintf(text, capacity, "%s\n%s\n%s", pestle_metal_dialect.prelude,
               pestle_metal_dialect.mma8, kernel);
  return size < 0 ? 0 : (size_t)size + 1;
}

// Whole numbers whose products and sums are exact, no two of a factor alike: no
// other layout than the right one, or one that means the same, makes the product.
void pestle_metal_probe_fill(float* x) {
  for (int i = 0; i < SIZE; ++i) {
    x[i] = (float)(i * 37 % 67);
    x[SIZE + i] = (float)(i * 53 % 71 - 30);
    x[2 * SIZE + i] = -1;
  }
}

bool pestle_metal_probe_agrees(const float* x) {
  for (int i = 0; i < SIDE; ++i) {
    for (int j = 0; j < SIDE; ++j) {
      float sum = (float)(i * SIDE + j);
      for (int k = 0; k < SIDE; ++k)
        sum += x[i * SIDE + k] * x[SIZE + k * SIDE + j];
      if (x[2 * SIZE + i * SIDE + j] != sum) return false;
    }
  }
  return true;
}
