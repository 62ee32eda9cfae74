// SPDX-License-Identifier: Apache-2.0
// Life of a decoder, and what it says of itself.
#include "session/decode.h"

#include <string.h>

#include "base/dlpack_abi.h"
#include "base/mem.h"
#include "base/require.h"
#include "base/thread.h"

enum { USUAL_POSITIONS = 2048, MOST_POSITIONS = 1 << 24, MOST_SLOTS = 1 << 16 };

// --- Options ---

static pestle_status_t read_options(const pestle_decoder_options_t* options,
                                    pestle_decoder_options_t* out) {
  *out = (pestle_decoder_options_t){.struct_size = sizeof(*out)};
  if (options) {
    size_t size = options->struct_size;
    if (size < sizeof(size_t)) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "pestle_decoder_options_t.struct_size is not set");
    }
    memcpy(out, options, size < sizeof(*out) ? size : sizeof(*out));
  }
  if (out->most < 0 || out->most > MOST_POSITIONS || out->slots > MOST_SLOTS ||
      out->threads < 0 || out->room < 0) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "%lld positions, %lld to begin with, %zu slots and %d threads: there "
        "may be %d positions, 0 or more to begin with, %d slots, and 0 or more "
        "threads",
        (long long)out->most, (long long)out->room, out->slots, out->threads,
        MOST_POSITIONS, MOST_SLOTS);
  }
  if (!out->slots) out->slots = 1;
  return NULL;
}

static pestle_status_t read_compile(pestle_decoder_t* d,
                                    const pestle_compile_options_t* options) {
  d->compile = (pestle_compile_options_t){.struct_size = sizeof(d->compile)};
  if (!options) return NULL;
  pestle_compile_options_t read = {0};
  size_t size = options->struct_size;
  if (size < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_compile_options_t.struct_size is not set");
  }
  memcpy(&read, options, size < sizeof(read) ? size : sizeof(read));
  d->compile.numerics = read.numerics;
  d->compile.no_cache = read.no_cache;
  d->compile.tier = read.tier;
  if (!read.target_cpu) return NULL;
  d->compile.target_cpu = pestle_arena_strdup(&d->arena, read.target_cpu);
  return d->compile.target_cpu ? NULL : PESTLE_OOM();
}

// --- Life ---

static pestle_status_t make_slots(pestle_decoder_t* d, size_t count) {
  d->slots = PESTLE_ARENA_ARRAY(&d->arena, decode_slot_t, count);
  if (!d->slots) return PESTLE_OOM();
  memset(d->slots, 0, count * sizeof(*d->slots));
  d->slot_count = count;
  for (size_t s = 0; s < count; ++s) {
    decode_slot_t* slot = &d->slots[s];
    size_t bytes = d->cache_count * sizeof(pestle_buffer_t*);
    slot->caches = pestle_arena_alloc_zero(&d->arena, bytes, _Alignof(void*));
    slot->logits = PESTLE_ARENA_ARRAY(&d->arena, float, (size_t)d->words);
    slot->given = pestle_arena_alloc_zero(
        &d->arena, (d->encoder.count + 1) * sizeof(pestle_buffer_t*),
        _Alignof(void*));
    if (!slot->caches || !slot->logits || !slot->given) return PESTLE_OOM();
  }
  if (count > 1) {
    size_t bytes = d->cache_count * sizeof(pestle_buffer_t*);
    d->blocks = pestle_arena_alloc_zero(&d->arena, bytes, _Alignof(void*));
    if (!d->blocks) return PESTLE_OOM();
  }
  return pestle_decode_make_caches(d, d->room);
}

static pestle_status_t make_buffers(pestle_decoder_t* d) {
  d->views =
      PESTLE_ARENA_ARRAY(&d->arena, pestle_buffer_view_t, d->input_count + 1);
  d->results =
      PESTLE_ARENA_ARRAY(&d->arena, pestle_buffer_t*, d->cache_count + 2);
  d->donated = PESTLE_ARENA_ARRAY(&d->arena, uint32_t, d->cache_count + 1);
  d->bytes = pestle_arena_alloc(
      &d->arena, (size_t)d->words * pestle_dtype_size(d->logits_dtype), 16);
  if (!d->views || !d->results || !d->donated || !d->bytes) return PESTLE_OOM();
  for (size_t c = 0; c < d->cache_count; ++c)
    d->donated[c] = d->caches[c].input;
  PESTLE_TRY(pestle_buffer_create(d->device, DECODE_MOST_ROWS * sizeof(int64_t),
                                  &d->ids));
  PESTLE_TRY(pestle_buffer_create(d->device, DECODE_MOST_ROWS * sizeof(int64_t),
                                  &d->positions));
  pestle_buffer_t** numbers[] = {&d->start, &d->first, &d->total,
                                 &d->beam_width};
  for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); ++i)
    PESTLE_TRY(pestle_buffer_create(d->device, sizeof(int64_t), numbers[i]));
  size_t size = (size_t)(d->most + DECODE_MOST_ROWS) * sizeof(int64_t);
  PESTLE_TRY(pestle_buffer_create(d->device, size, &d->mask));
  PESTLE_TRY(pestle_decode_make_beams(d));
  return pestle_decode_clear_mask(d);
}

void pestle_decoder_release(pestle_decoder_t* d) {
  if (!d) return;
  (void)pestle_decode_drop_ahead(d);
  for (size_t s = 0; d->slots && s < d->slot_count; ++s) {
    decode_slot_t* slot = &d->slots[s];
    for (size_t c = 0; slot->caches && c < d->cache_count; ++c)
      pestle_buffer_release(slot->caches[c]);
    pestle_decode_drop(slot);
    pestle_decode_forget_features(d, slot);
  }
  for (size_t c = 0; d->blocks && c < d->cache_count; ++c)
    pestle_buffer_release(d->blocks[c]);
  pestle_decode_end_batch(d);
  for (size_t i = 0; i < d->plan_count; ++i)
    pestle_executable_release(d->plans[i].executable);
  pestle_executable_release(d->encoder.executable);
  pestle_buffer_release(d->ids);
  pestle_buffer_release(d->mask);
  pestle_buffer_release(d->positions);
  pestle_buffer_release(d->start);
  pestle_buffer_release(d->first);
  pestle_buffer_release(d->total);
  pestle_buffer_release(d->beam_width);
  pestle_buffer_release(d->beams);
  pestle_module_release(d->module);
  pestle_arena_deinit(&d->arena);
  pestle_context_t* context = d->context;
  pestle_dealloc(d->allocator, d, sizeof(*d));
  pestle_context_release(context);
}

static pestle_status_t open(pestle_decoder_t* d, const char* path,
                            const pestle_decoder_options_t* o) {
  const char* file;
  PESTLE_TRY(read_compile(d, o->compile));
  if (!d->device)
    PESTLE_TRY(pestle_context_device(d->context, NULL, &d->device));
  d->is_far = pestle_device_dl(d->device).device_type != PESTLE_DEVICE_CPU;
  PESTLE_TRY(pestle_decode_config(d, path, &file));
  d->is_most_told = d->most > 0;
  if (!d->most) {
    int64_t context = d->config.context;
    d->most = context && context < USUAL_POSITIONS ? context : USUAL_POSITIONS;
  }
  d->slot_count = o->slots;
  const char* encoder = o->encoder ? o->encoder : d->config.encoder;
  PESTLE_TRY(pestle_decode_open(d, file, encoder));
  if (d->encoder.count) d->batch.is_off = true;
  PESTLE_TRY(pestle_decode_first_room(d, o->room));
  PESTLE_TRY(make_buffers(d));
  PESTLE_TRY(make_slots(d, o->slots));
  return d->grows ? pestle_decode_try(d) : pestle_decode_try_keeping(d);
}

pestle_status_t pestle_decoder_create(pestle_context_t* context,
                                      const char* path,
                                      const pestle_decoder_options_t* options,
                                      pestle_decoder_t** out_decoder) {
  if (out_decoder) *out_decoder = NULL;
  PESTLE_REQUIRE(context && path && out_decoder,
                 "a context, a path and a place for the decoder");
  pestle_decoder_options_t o;
  PESTLE_TRY(read_options(options, &o));
  pestle_allocator_t allocator = pestle_context_allocator(context);
  pestle_decoder_t* d = pestle_alloc_zero(allocator, sizeof(*d));
  if (!d) return PESTLE_OOM();
  pestle_context_retain(context);
  d->context = context;
  d->allocator = allocator;
  d->device = o.device;
  d->most = o.most;
  d->threads = o.threads;
  d->ahead.is_off = o.no_ahead;
  pestle_arena_init(allocator, &d->arena);
  pestle_status_t status = open(d, path, &o);
  if (status) {
    pestle_decoder_release(d);
  } else {
    *out_decoder = d;
  }
  return pestle_status_annotate(status, "while opening a decoder of '%s'",
                                path);
}

// --- What it says ---

static uint64_t weight_bytes(const pestle_executable_t* executable) {
  uint64_t bytes = 0;
  size_t count = pestle_executable_step_count(executable);
  for (size_t i = 0; i < count; ++i) {
    pestle_step_info_t step = {.struct_size = sizeof(step)};
    pestle_status_t status = pestle_executable_step(executable, i, &step);
    if (!status) bytes += step.constant_bytes;
    pestle_status_release(status);
  }
  return bytes;
}

pestle_status_t pestle_decoder_info(const pestle_decoder_t* decoder,
                                    pestle_decoder_info_t* out_info) {
  PESTLE_REQUIRE(decoder && out_info && out_info->struct_size >= sizeof(size_t),
                 "a decoder, and an info whose struct_size is set");
  const pestle_decoder_t* d = decoder;
  const pestle_executable_t* one = d->token->executable;
  pestle_decoder_info_t info = {
      .words = d->words,
      .most = d->most,
      .slots = d->slot_count,
      .caches = d->cache_count,
      .cache_bytes = pestle_decode_cache_bytes(d),
      .weight_bytes = weight_bytes(one),
      .compiles_ahead = d->ahead.compiles,
      .compile_ns = d->compile_ns + d->ahead.compile_ns,
      .waits = d->ahead.waits,
      .batches = d->batch.runs,
      .context = d->config.context,
      .begin_id = d->config.begin_id,
      .pad_id = d->config.pad_id,
      .end_ids = d->config.end_ids,
      .end_count = d->config.end_count,
      .room = d->room,
      .caches_bounded = d->bounded,
      .feature_dtype = d->encoder.features.dtype,
      .feature_rank = d->encoder.features.rank,
      .feature_dims = d->encoder.features.dims};
  info.compiles = d->compiles + info.compiles_ahead;
  for (size_t c = 0; c < d->cache_count; ++c) {
    const decode_cache_t* cache = &d->caches[c];
    info.caches_in_place +=
        pestle_executable_alias(one, c) == (int32_t)cache->input;
    info.token_bytes += (uint64_t)cache->parts * cache->row_bytes;
  }
  for (size_t i = 0; i < d->encoder.count; ++i)
    info.encoder_bytes += d->encoder.sizes[i];
  size_t size = out_info->struct_size;
  info.struct_size = size < sizeof(info) ? size : sizeof(info);
  memcpy(out_info, &info, info.struct_size);
  return NULL;
}

pestle_status_t pestle_decoder_sampling(const pestle_decoder_t* decoder,
                                        pestle_sampling_t* out_sampling) {
  PESTLE_REQUIRE(
      decoder && out_sampling && out_sampling->struct_size >= sizeof(size_t),
      "a decoder, and a sampling whose struct_size is set");
  pestle_sampling_t s = decoder->config.sampling;
  size_t size = out_sampling->struct_size;
  s.struct_size = size < sizeof(s) ? size : sizeof(s);
  memcpy(out_sampling, &s, s.struct_size);
  return NULL;
}
