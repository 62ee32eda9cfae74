// SPDX-License-Identifier: Apache-2.0
// Which token comes next: the likeliest, or one by its probability among the likeliest.
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/require.h"
#include "session/decode.h"

enum { USUAL_CANDIDATES = 1024 };

typedef struct candidate_t {
  float logit;
  int32_t id;
} candidate_t;

// Whether |a| comes before |b|: the greater, the first of equal ones.
static bool is_before(candidate_t a, candidate_t b) {
  return a.logit > b.logit || (!(a.logit < b.logit) && a.id < b.id);
}

// --- The likeliest, in a heap with the last of them on top ---

static void sink(candidate_t* heap, size_t count, size_t at) {
  for (size_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && is_before(heap[child], heap[child + 1])) ++child;
    if (!is_before(heap[at], heap[child])) return;
    candidate_t a = heap[at];
    heap[at] = heap[child];
    heap[child] = a;
  }
}

// The |most| likeliest in their order; how many they are.
static size_t find_likeliest(const float* logits, int64_t words,
                             candidate_t* heap, size_t most) {
  size_t count = 0;
  for (int64_t i = 0; i < words; ++i) {
    candidate_t a = {logits[i], (int32_t)i};
    if (isnan(a.logit)) continue;
    if (count < most) {
      heap[count++] = a;
      if (count < most) continue;
      for (size_t j = count / 2; j-- > 0;)
        sink(heap, count, j);
    } else if (is_before(a, heap[0])) {
      heap[0] = a;
      sink(heap, count, 0);
    }
  }
  if (count < most) {
    for (size_t j = count / 2; j-- > 0;)
      sink(heap, count, j);
  }
  for (size_t left = count; left > 1; --left) {
    candidate_t a = heap[0];
    heap[0] = heap[left - 1];
    heap[left - 1] = a;
    sink(heap, left - 1, 0);
  }
  return count;
}

// --- Chance ---

static uint64_t mix(uint64_t x) {
  x += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

// In [0, 1), for a seed and a place.
static double chance(uint64_t seed, int64_t place) {
  return (double)(mix(mix(seed) ^ (uint64_t)place) >> 11) * 0x1p-53;
}

// --- Choices ---

static double weight(double logit, double most, double temperature) {
  return exp((logit - most) / temperature);
}

// Among all.
static int64_t choose_any(const float* logits, int64_t words, double most,
                          double temperature, double at) {
  double total = 0, sum = 0;
  int64_t last = 0;
  for (int64_t i = 0; i < words; ++i) {
    if (!isnan(logits[i])) total += weight(logits[i], most, temperature);
  }
  for (int64_t i = 0; i < words; ++i) {
    double w = isnan(logits[i]) ? 0 : weight(logits[i], most, temperature);
    if (w > 0) last = i;
    sum += w;
    if (w > 0 && at * total < sum) return i;
  }
  return last;
}

static int64_t choose_among(const candidate_t* c, size_t count, double total,
                            const pestle_sampling_t* s, double at) {
  double most = c[0].logit, sum = 0, kept = 0;
  if (s->top_p > 0 && s->top_p < 1) {
    size_t n = 0;
    while (n < count && (!n || kept < s->top_p * total))
      kept += weight(c[n++].logit, most, s->temperature);
    count = n;
  } else {
    for (size_t i = 0; i < count; ++i)
      kept += weight(c[i].logit, most, s->temperature);
  }
  for (size_t i = 0; i < count; ++i) {
    sum += weight(c[i].logit, most, s->temperature);
    if (at * kept < sum) return c[i].id;
  }
  return c[count - 1].id;
}

static pestle_status_t check(const pestle_sampling_t* s) {
  bool is_right = s->temperature >= 0 && isfinite(s->temperature) &&
                  s->top_k >= 0 && s->top_p >= 0 && s->top_p <= 1;
  if (is_right) return NULL;
  return PESTLE_ERROR(
      INVALID_ARGUMENT,
      "temperature %g, top_k %lld and top_p %g: the first is a finite number "
      "from 0 on, top_k is not below 0, and top_p is from 0 to 1",
      s->temperature, (long long)s->top_k, s->top_p);
}

// The greatest of |logits|, a NaN only if there is nothing else.
static double greatest(const float* logits, int64_t words, int64_t* out_id) {
  double most = NAN;
  *out_id = 0;
  for (int64_t i = 0; i < words; ++i) {
    if (isnan(logits[i]) || (double)logits[i] <= most) continue;
    most = logits[i];
    *out_id = i;
  }
  return most;
}

static pestle_status_t choose(const pestle_decoder_t* d, const float* logits,
                              const pestle_sampling_t* s, int64_t length,
                              int64_t* out_id) {
  double most = greatest(logits, d->words, out_id);
  if (!isfinite(most)) {
    return PESTLE_ERROR(INTERNAL,
                        "the greatest of the %lld logits behind token %lld is "
                        "%g: the model overflows, or its weights are damaged",
                        (long long)d->words, (long long)length, most);
  }
  if (s->temperature <= 0) return NULL;
  double at = chance(s->seed, length);
  bool is_cut = s->top_p > 0 && s->top_p < 1;
  if (!s->top_k && !is_cut) {
    *out_id = choose_any(logits, d->words, most, s->temperature, at);
    return NULL;
  }
  int64_t limit = s->top_k ? s->top_k : USUAL_CANDIDATES;
  size_t count = (size_t)(limit < d->words ? limit : d->words);
  size_t bytes = count * sizeof(candidate_t);
  candidate_t* c = pestle_alloc(d->allocator, bytes);
  if (!c) return PESTLE_OOM();
  size_t found = find_likeliest(logits, d->words, c, count);
  double total = 0;
  for (int64_t i = 0; !s->top_k && i < d->words; ++i) {
    if (!isnan(logits[i])) total += weight(logits[i], most, s->temperature);
  }
  for (size_t i = 0; s->top_k && i < found; ++i)
    total += weight(c[i].logit, most, s->temperature);
  *out_id = choose_among(c, found, total, s, at);
  pestle_dealloc(d->allocator, c, bytes);
  return NULL;
}

pestle_status_t pestle_decoder_choose(const pestle_decoder_t* decoder,
                                      size_t slot,
                                      const pestle_sampling_t* sampling,
                                      int64_t* out_id) {
  PESTLE_REQUIRE(decoder && out_id &&
                     (!sampling || sampling->struct_size >= sizeof(size_t)),
                 "a decoder, a place for the id, and struct_size set");
  pestle_sampling_t s = {.struct_size = sizeof(s)};
  decode_slot_t* at;
  *out_id = -1;
  if (sampling) {
    size_t size = sampling->struct_size;
    memcpy(&s, sampling, size < sizeof(s) ? size : sizeof(s));
  }
  PESTLE_TRY(check(&s));
  PESTLE_TRY(pestle_decode_slot(decoder, slot, &at));
  if (!at->has_logits) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "slot %zu has no logits: feed it a token first", slot);
  }
  bool is_found = false;
  if (s.temperature <= 0)
    PESTLE_TRY(pestle_decode_likeliest(decoder, at, out_id, &is_found));
  if (is_found) return NULL;
  PESTLE_TRY(pestle_decode_fetch(decoder, at));
  pestle_status_t status = choose(decoder, at->logits, &s, at->length, out_id);
  if (status) *out_id = -1;
  return status;
}
