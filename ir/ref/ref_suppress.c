// SPDX-License-Identifier: Apache-2.0
// places, and suppress: boxes of one row in order of their scores, each held against all that were
// chosen before it.
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "ir/ref/ref_internal.h"

typedef struct rect_t {
  float low[2], high[2];
} rect_t;

typedef struct candidate_t {
  int32_t key;  // scores' order
  int32_t at;
} candidate_t;

static rect_t read_rect(const float* box, bool centers) {
  rect_t r;
  for (int k = 0; k < 2; ++k) {
    float a = box[k], b = box[k + 2];
    r.low[k] = centers ? a - b / 2 : a < b ? a : b;
    r.high[k] = centers ? a + b / 2 : a < b ? b : a;
  }
  return r;
}

static float area_of(const rect_t* r) {
  return (r->high[0] - r->low[0]) * (r->high[1] - r->low[1]);
}

static bool overlaps(const rect_t* a, const rect_t* b, float limit) {
  float common = 1;
  for (int k = 0; k < 2; ++k) {
    float low = a->low[k] > b->low[k] ? a->low[k] : b->low[k];
    float high = a->high[k] < b->high[k] ? a->high[k] : b->high[k];
    if (!(high > low)) return false;
    common = k ? common * (high - low) : high - low;
  }
  float own = area_of(a), other = area_of(b);
  float all = own + other - common;
  return common > 0 && own > 0 && other > 0 && all > 0 && common / all > limit;
}

static int32_t key_of(float score) {
  int32_t bits;
  score += 0.0f;
  memcpy(&bits, &score, sizeof(bits));
  return bits < 0 ? bits ^ INT32_MAX : bits;
}

// Heap of what comes first at its top.
static bool before(candidate_t a, candidate_t b) {
  return a.key != b.key ? a.key > b.key : a.at < b.at;
}

static void sift(candidate_t* heap, int64_t count, int64_t i) {
  for (;;) {
    int64_t best = i;
    for (int64_t c = 2 * i + 1; c <= 2 * i + 2; ++c) {
      if (c < count && before(heap[c], heap[best])) best = c;
    }
    if (best == i) return;
    candidate_t moved = heap[i];
    heap[i] = heap[best];
    heap[best] = moved;
    i = best;
  }
}

typedef struct row_t {
  const float *boxes, *scores;
  int64_t boxes_count, most;
  float threshold, overlap;
  bool centers;
  candidate_t* heap;
  rect_t* chosen;
} row_t;

static int32_t choose(const row_t* r, int32_t* places) {
  int64_t left = 0, chosen = 0;
  for (int64_t i = 0; i < r->boxes_count; ++i) {
    if (isnan(r->threshold) || r->scores[i] > r->threshold)
      r->heap[left++] = (candidate_t){key_of(r->scores[i]), (int32_t)i};
  }
  for (int64_t i = left / 2; i-- > 0;)
    sift(r->heap, left, i);
  while (left && chosen < r->most) {
    int32_t at = r->heap[0].at;
    r->heap[0] = r->heap[--left];
    sift(r->heap, left, 0);
    rect_t own = read_rect(r->boxes + 4 * (int64_t)at, r->centers);
    bool free = true;
    for (int64_t i = 0; i < chosen && free; ++i)
      free = !overlaps(&own, &r->chosen[i], r->overlap);
    if (!free) continue;
    r->chosen[chosen] = own;
    places[chosen++] = at;
  }
  return (int32_t)chosen;
}

static int64_t within(const void* number, int64_t most) {
  int64_t n;
  memcpy(&n, number, sizeof(n));
  return n < 0 ? 0 : n > most ? most : n;
}

pestle_status_t pestle_ref_suppress(const pestle_ref_call_t* call) {
  const pestle_type_t* scores = pestle_ref_operand_type(call, 1);
  int64_t classes = scores->dims[1], n = scores->dims[2];
  int64_t most = PESTLE_NODE_I64(call->node, most);
  pestle_arena_t arena;
  pestle_arena_init(call->allocator, &arena);
  row_t row = {.boxes_count = within(call->operands[5], n),
               .most = within(call->operands[4], most),
               .centers = PESTLE_NODE_BOOL(call->node, centers)};
  memcpy(&row.threshold, call->operands[2], sizeof(float));
  memcpy(&row.overlap, call->operands[3], sizeof(float));
  row.heap = PESTLE_ARENA_ARRAY(&arena, candidate_t, (size_t)n + 1);
  row.chosen = PESTLE_ARENA_ARRAY(&arena, rect_t, (size_t)most + 1);
  int32_t *places = call->results[0], *counts = call->results[1];
  pestle_status_t status = row.heap && row.chosen ? NULL : PESTLE_OOM();
  for (int64_t i = 0; i < scores->dims[0] * classes && !status; ++i) {
    row.boxes = (const float*)call->operands[0] + i / classes * n * 4;
    row.scores = (const float*)call->operands[1] + i * n;
    if (most) memset(places + i * most, 0, (size_t)most * sizeof(*places));
    counts[i] = choose(&row, places + i * most);
  }
  pestle_arena_deinit(&arena);
  return status;
}

pestle_status_t pestle_ref_places(const pestle_ref_call_t* call) {
  const uint8_t* flags = call->operands[0];
  int32_t* places = call->results[0];
  int64_t n = pestle_type_count(pestle_ref_operand_type(call, 0)), count = 0;
  for (int64_t i = 0; i < n; ++i) {
    places[i] = 0;
    if (flags[i]) places[count++] = (int32_t)i;
  }
  memcpy(call->results[1], &count, sizeof(count));
  return NULL;
}
