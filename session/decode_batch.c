// SPDX-License-Identifier: Apache-2.0
// One token of several slots by one run, which reads the weights once. The run is of all
// slots. One that is not asked for is given any token at its end: what that writes lies
// behind the sequence, where nothing reads and the next token writes again.
#include <string.h>

#include "base/mem.h"
#include "base/require.h"
#include "session/decode.h"

// --- What a run is given ---

static size_t bytes_of(const pestle_decoder_t* d, size_t input) {
  int64_t count = (int64_t)d->slot_count;
  if (d->inputs[input].role == DECODE_MASK) count *= d->most;
  return (size_t)count * pestle_dtype_size(d->inputs[input].type.dtype);
}

static pestle_status_t begin(pestle_decoder_t* d) {
  decode_batch_t* b = &d->batch;
  if (b->bytes) return NULL;
  size_t size = pestle_dtype_size(d->logits_dtype);
  if (!b->buffers) {
    b->buffers = pestle_arena_alloc_zero(
        &d->arena, d->input_count * sizeof(*b->buffers), _Alignof(void*));
    if (!b->buffers) return PESTLE_OOM();
  }
  for (size_t i = 0; i < d->input_count; ++i) {
    if (d->inputs[i].role == DECODE_CACHE || b->buffers[i]) continue;
    PESTLE_TRY(pestle_buffer_create(d->device, bytes_of(d, i), &b->buffers[i]));
  }
  b->numbers =
      PESTLE_ARENA_ARRAY(&d->arena, int64_t, d->slot_count*(size_t)d->most);
  b->bytes =
      PESTLE_ARENA_ARRAY(&d->arena, char, d->slot_count*(size_t)d->words* size);
  return b->numbers && b->bytes ? NULL : PESTLE_OOM();
}

void pestle_decode_end_batch(pestle_decoder_t* d) {
  for (size_t i = 0; d->batch.buffers && i < d->input_count; ++i)
    pestle_buffer_release(d->batch.buffers[i]);
}

// |ids|: one for each slot of the decoder.
static pestle_status_t fill(pestle_decoder_t* d, const int64_t* ids) {
  int64_t *n = d->batch.numbers, room = d->room;
  size_t slots = d->slot_count;
  for (size_t i = 0; i < d->input_count; ++i) {
    const decode_input_t* input = &d->inputs[i];
    size_t count = slots * (input->role == DECODE_MASK ? (size_t)room : 1);
    pestle_buffer_t* buffer = d->batch.buffers[i];
    for (size_t s = 0; s < slots; ++s) {
      int64_t length = d->slots[s].length;
      if (input->role == DECODE_MASK) {
        for (int64_t p = 0; p < room; ++p)
          n[(int64_t)s * room + p] = p <= length;
      } else {
        n[s] = input->role == DECODE_IDS     ? ids[s]
               : input->role == DECODE_TOTAL ? length + 1
                                             : length;
      }
    }
    if (input->role == DECODE_CACHE) {
      buffer = d->blocks[input->cache];
    } else {
      PESTLE_TRY(pestle_decode_write(buffer, input->type.dtype, 0, n, count));
    }
    d->views[i] = (pestle_buffer_view_t){.buffer = buffer};
  }
  return NULL;
}

// --- Runs ---

// Whether one run can serve |count| slots; finds its plan.
static pestle_status_t find_plan(pestle_decoder_t* d, size_t count,
                                 const decode_plan_t** out_plan) {
  *out_plan = NULL;
  if (count < 2 || d->grows || d->counts || d->batch.is_off) return NULL;
  for (size_t i = 0; i < d->input_count; ++i) {
    bool is_shared =
        d->inputs[i].role == DECODE_POSITIONS && d->inputs[i].type.rank == 1;
    if (is_shared) d->batch.is_off = true;
  }
  for (size_t s = 0; s < d->slot_count; ++s) {
    if (d->slots[s].length >= d->most) return NULL;
  }
  if (d->batch.is_off) return NULL;
  PESTLE_TRY(pestle_decode_fit(d, NULL, 0));
  const decode_plan_t* plan;
  pestle_status_t status =
      pestle_decode_plan(d, 1, (int64_t)d->slot_count, &plan);
  if (status) {
    // The model is for one sequence at a time.
    bool is_refused =
        pestle_status_code(status) == PESTLE_STATUS_UNSUPPORTED ||
        pestle_status_code(status) == PESTLE_STATUS_INVALID_ARGUMENT ||
        pestle_status_code(status) == PESTLE_STATUS_MALFORMED;
    if (!is_refused) return status;
    pestle_status_release(status);
    d->batch.is_off = true;
    return NULL;
  }
  for (size_t c = 0; c < d->cache_count; ++c) {
    int32_t input = (int32_t)d->caches[c].input;
    if (pestle_executable_alias(plan->executable, c) != input)
      d->batch.is_off = true;
  }
  if (!d->batch.is_off) *out_plan = plan;
  return NULL;
}

static pestle_status_t run(pestle_decoder_t* d, const decode_plan_t* plan,
                           const size_t* slots, const int64_t* ids,
                           size_t count) {
  size_t all = d->slot_count, row;
  PESTLE_TRY(begin(d));
  int64_t* each = pestle_alloc_zero(d->allocator, all * sizeof(*each));
  if (!each) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    each[slots[i]] = ids[i];
  pestle_status_t status = fill(d, each);
  pestle_dealloc(d->allocator, each, all * sizeof(*each));
  if (status) return status;
  const pestle_run_buffers_options_t options = {
      .struct_size = sizeof(options),
      .threads = d->threads,
      .donated = d->donated,
      .donated_count = d->cache_count};
  PESTLE_TRY(pestle_executable_run_buffers(plan->executable, NULL, d->views,
                                           d->input_count, d->results,
                                           d->cache_count + 1, &options));
  bool has_moved = false;
  ++d->batch.runs;
  for (size_t c = 0; c < d->cache_count; ++c) {
    has_moved |= pestle_buffer_data(d->results[c]) !=
                 pestle_decode_place(d, c, d->slots);
    d->blocks[c] = d->results[c];
  }
  row = (size_t)d->words * pestle_dtype_size(d->logits_dtype);
  pestle_buffer_t* logits = d->results[d->cache_count];
  status = pestle_buffer_read(logits, 0, d->batch.bytes, all * row);
  pestle_buffer_release(logits);
  if (!status && has_moved) {
    status = PESTLE_ERROR(INTERNAL,
                          "a run of all slots has moved a cache from where its "
                          "slots have it");
  }
  if (status) return status;
  for (size_t i = 0; i < count; ++i) {
    decode_slot_t* slot = &d->slots[slots[i]];
    pestle_decode_take_logits(d, slot, d->batch.bytes + slots[i] * row);
    ++slot->length;
  }
  return NULL;
}

static pestle_status_t check(const pestle_decoder_t* d, const size_t* slots,
                             const int64_t* ids, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    decode_slot_t* slot;
    PESTLE_TRY(pestle_decode_slot(d, slots[i], &slot));
    PESTLE_TRY(pestle_decode_check_ids(d, slot, ids + i, 1));
    for (size_t j = 0; j < i; ++j) {
      if (slots[j] != slots[i]) continue;
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "slot %zu is named twice, at places %zu and %zu",
                          slots[i], j, i);
    }
  }
  return NULL;
}

// By one run, if one can serve them: then |*out_done|.
static pestle_status_t feed_all(pestle_decoder_t* d, const size_t* slots,
                                const int64_t* ids, size_t count,
                                bool* out_done) {
  const decode_plan_t* plan;
  *out_done = false;
  PESTLE_TRY(find_plan(d, count, &plan));
  *out_done = plan != NULL;
  return plan ? run(d, plan, slots, ids, count) : NULL;
}

pestle_status_t pestle_decoder_feed_each(pestle_decoder_t* decoder,
                                         const size_t* slots,
                                         const int64_t* ids, size_t count) {
  PESTLE_REQUIRE(decoder && (!count || (slots && ids)),
                 "a decoder, slots, and an id for each");
  bool is_done;
  PESTLE_TRY(check(decoder, slots, ids, count));
  pestle_status_t status = feed_all(decoder, slots, ids, count, &is_done);
  if (pestle_decode_relieve(decoder, &status))
    status = feed_all(decoder, slots, ids, count, &is_done);
  if (!status && is_done) pestle_decode_begin_ahead(decoder);
  if (status || is_done) return status;
  for (size_t i = 0; i < count; ++i)
    PESTLE_TRY(pestle_decoder_feed(decoder, slots[i], ids + i, 1));
  return NULL;
}
