// SPDX-License-Identifier: Apache-2.0
// Rooms: how many positions the caches have. All slots have the same room, since their caches
// lie in one block. A decoder that begins with few positions goes to the next room when a
// sequence passes one: to executables for it, and to caches into which the rows in use are
// copied. One whose plans read no more of the caches than a sequence has begins with all.
#include <string.h>

#include "base/mem.h"
#include "ir/infer.h"
#include "session/decode.h"

enum {
  USUAL_ROOM = 256,
  WIDE_ROOM = 2048,
  LEAST_ROOM = 8,          // the fewest rows that a prompt is given
  LARGE_CACHES = 1 << 30,  // bytes that are not reserved before they are needed
  ZEROS = 1 << 16,
};

// --- How many positions ---

int64_t pestle_decode_room_for(const pestle_decoder_t* d, int64_t positions) {
  int64_t room = d->first_room;
  while (room < positions && room < d->most)
    room *= 2;
  return room < d->most ? room : d->most;
}

static size_t cache_size(const pestle_decoder_t* d, size_t cache) {
  const decode_cache_t* c = &d->caches[cache];
  return (size_t)(c->parts * d->room) * c->row_bytes;
}

uint64_t pestle_decode_cache_bytes(const pestle_decoder_t* d) {
  uint64_t bytes = 0;
  for (size_t c = 0; c < d->cache_count; ++c)
    bytes += cache_size(d, c);
  return bytes;
}

// Caches of which attention reads no more than the sequence has: a kernel that ends at a
// number in memory reads two (passes/whole_attention.c, whole_attention_step.c).
static size_t count_bounded(const pestle_decoder_t* d,
                            const pestle_executable_t* executable) {
  static const char* const labels[] = {"cached_attention:", "cached_step:"};
  size_t bounded = 0, count = pestle_executable_step_count(executable);
  for (size_t i = 0; i < count; ++i) {
    pestle_step_info_t step = {.struct_size = sizeof(step)};
    pestle_status_t status = pestle_executable_step(executable, i, &step);
    for (size_t k = 0; !status && k < 2; ++k) {
      size_t size = strlen(labels[k]);
      if (step.ops_size > size && !memcmp(step.ops, labels[k], size))
        bounded += 2;
    }
    pestle_status_release(status);
  }
  return bounded < d->cache_count ? bounded : d->cache_count;
}

static pestle_status_t use_room(pestle_decoder_t* d, int64_t room) {
  int64_t old = d->room;
  const decode_plan_t* plan;
  d->room = room;
  pestle_status_t status = pestle_decode_plan(d, 1, 1, &plan);
  if (status) {
    d->room = old;
    return status;
  }
  d->token = plan;
  d->bounded = count_bounded(d, plan->executable);
  return NULL;
}

// Where no kernel of a token reads what no sequence has, room costs address space alone, and
// more of it no compilation. Devices other than CPUs take memory when they are asked for it, and
// their prompts read all positions; neither is much for few.
pestle_status_t pestle_decode_first_room(pestle_decoder_t* d, int64_t asked) {
  bool is_large = pestle_decode_cache_bytes(d) > LARGE_CACHES / d->slot_count;
  int64_t room = d->grows                ? USUAL_ROOM
                 : d->is_far || is_large ? WIDE_ROOM
                                         : d->most;
  if (asked) room = asked > LEAST_ROOM ? asked : LEAST_ROOM;
  bool is_whole = d->config.follows_room;
  d->first_room = room < d->most && !is_whole ? room : d->most;
  PESTLE_TRY(use_room(d, d->first_room));
  if (asked || is_whole || d->bounded == d->cache_count ||
      d->first_room <= USUAL_ROOM)
    return NULL;
  d->first_room = USUAL_ROOM;
  return use_room(d, USUAL_ROOM);
}

// --- Caches of a room ---

// Memory that the system has just given is zero, and takes no room until it is written: what is
// zero stays as it is.
pestle_status_t pestle_decode_make_zeros(pestle_decoder_t* d, size_t size,
                                         pestle_buffer_t** out_buffer) {
  if (!d->zeros) d->zeros = pestle_arena_alloc_zero(&d->arena, ZEROS, 1);
  if (!d->zeros) return PESTLE_OOM();
  PESTLE_TRY(pestle_buffer_create(d->device, size, out_buffer));
  const char* data = d->is_far ? NULL : pestle_buffer_data(*out_buffer);
  for (size_t at = 0; at < size; at += ZEROS) {
    size_t part = size - at < ZEROS ? size - at : ZEROS;
    if (data && !memcmp(data + at, d->zeros, part)) continue;
    PESTLE_TRY(pestle_buffer_write(*out_buffer, at, d->zeros, part));
  }
  return NULL;
}

// The buffers of all caches: of each the block, and behind it those of the slots.
typedef struct set_t {
  pestle_buffer_t** buffers;
  size_t stride;
} set_t;

static pestle_buffer_t** block_of(const set_t* set, size_t cache) {
  return &set->buffers[cache * set->stride];
}

static pestle_buffer_t** own_of(const set_t* set, size_t cache, size_t slot) {
  return &set->buffers[cache * set->stride + 1 + slot];
}

// The caches |cache| of all slots: parts of one block, so that a run of all slots takes it
// as it lies. Zeros, so that no row that is masked is a NaN.
static pestle_status_t make_caches(pestle_decoder_t* d, size_t cache,
                                   const set_t* set) {
  size_t size = cache_size(d, cache), count = d->slot_count;
  if (count == 1)
    return pestle_decode_make_zeros(d, size, own_of(set, cache, 0));
  if (size > SIZE_MAX / count) return PESTLE_OOM();
  PESTLE_TRY(pestle_decode_make_zeros(d, size * count, block_of(set, cache)));
  char* data = pestle_buffer_data(*block_of(set, cache));
  // A run takes memory as it lies from a line on.
  if (size % 64) d->batch.is_off = true;
  const pestle_buffer_wrap_options_t options = {
      .struct_size = sizeof(options), .flags = PESTLE_BUFFER_EXCLUSIVE};
  for (size_t s = 0; s < count; ++s) {
    PESTLE_TRY(pestle_buffer_wrap(d->device, data + s * size, size, &options,
                                  own_of(set, cache, s)));
  }
  return NULL;
}

// The rows in use, from caches of |old| positions.
static pestle_status_t copy_rows(const pestle_decoder_t* d, size_t cache,
                                 size_t slot, int64_t old, const set_t* set) {
  const decode_cache_t* c = &d->caches[cache];
  const decode_slot_t* s = &d->slots[slot];
  size_t size = (size_t)s->length * c->row_bytes;
  for (int64_t p = 0; size && p < c->parts; ++p) {
    PESTLE_TRY(pestle_buffer_copy(
        s->caches[cache], (size_t)(p * old) * c->row_bytes,
        *own_of(set, cache, slot), (size_t)(p * d->room) * c->row_bytes, size));
  }
  return NULL;
}

static pestle_status_t fill_set(pestle_decoder_t* d, int64_t old,
                                const set_t* set) {
  for (size_t c = 0; c < d->cache_count; ++c) {
    PESTLE_TRY(make_caches(d, c, set));
    for (size_t s = 0; s < d->slot_count; ++s)
      PESTLE_TRY(copy_rows(d, c, s, old, set));
  }
  return NULL;
}

static void swap(pestle_buffer_t** a, pestle_buffer_t** b) {
  pestle_buffer_t* other = *a;
  *a = *b;
  *b = other;
}

static void swap_sets(pestle_decoder_t* d, const set_t* set) {
  for (size_t c = 0; c < d->cache_count; ++c) {
    if (d->blocks) swap(&d->blocks[c], block_of(set, c));
    for (size_t s = 0; s < d->slot_count; ++s)
      swap(&d->slots[s].caches[c], own_of(set, c, s));
  }
}

// Slots' buffers lie in their blocks, and go first.
static void release_set(const pestle_decoder_t* d, const set_t* set) {
  for (size_t c = 0; c < d->cache_count; ++c) {
    for (size_t s = 0; s < d->slot_count; ++s)
      pestle_buffer_release(*own_of(set, c, s));
    pestle_buffer_release(*block_of(set, c));
  }
}

pestle_status_t pestle_decode_make_caches(pestle_decoder_t* d, int64_t old) {
  set_t set = {.stride = d->slot_count + 1};
  size_t bytes = d->cache_count * set.stride * sizeof(pestle_buffer_t*);
  set.buffers = pestle_alloc_zero(d->allocator, bytes);
  if (!set.buffers) return PESTLE_OOM();
  pestle_status_t status = fill_set(d, old, &set);
  if (!status) swap_sets(d, &set);
  release_set(d, &set);
  pestle_dealloc(d->allocator, set.buffers, bytes);
  return status;
}

// Runs of all slots give each its own: there are none of models that search beams.
pestle_status_t pestle_decode_make_beams(pestle_decoder_t* d) {
  for (size_t i = 0; i < d->input_count; ++i) {
    if (d->inputs[i].role == DECODE_BEAM_WIDTH) d->batch.is_off = true;
    if (d->inputs[i].role != DECODE_BEAMS) continue;
    d->batch.is_off = true;
    size_t size = pestle_type_bytes(&d->inputs[i].type);
    return pestle_decode_make_zeros(d, size, &d->beams);
  }
  return NULL;
}

// --- Masks ---

// Behind the places of the caches the mask has those of appended rows.
static void set_ones(const pestle_decoder_t* d, void* mask) {
  pestle_dtype_t dtype = PESTLE_I64;
  for (size_t i = 0; i < d->input_count; ++i) {
    if (d->inputs[i].role == DECODE_MASK) dtype = d->inputs[i].type.dtype;
  }
  for (int64_t i = 0; i < DECODE_MOST_ROWS; ++i) {
    if (dtype == PESTLE_I32) {
      ((int32_t*)mask)[d->room + i] = 1;
    } else {
      ((int64_t*)mask)[d->room + i] = 1;
    }
  }
}

pestle_status_t pestle_decode_clear_mask(pestle_decoder_t* d) {
  size_t size = (size_t)(d->room + DECODE_MOST_ROWS) * sizeof(int64_t);
  void* mask = pestle_alloc_zero(d->allocator, size);
  if (!mask) return PESTLE_OOM();
  if (d->grows) set_ones(d, mask);
  pestle_status_t status = pestle_buffer_write(d->mask, 0, mask, size);
  pestle_dealloc(d->allocator, mask, size);
  d->mask_length = 0;
  return status;
}

// --- From room to room ---

static pestle_status_t move(pestle_decoder_t* d, int64_t room) {
  int64_t old = d->room;
  PESTLE_TRY(use_room(d, room));
  pestle_status_t status = pestle_decode_clear_mask(d);
  if (!status) status = pestle_decode_make_caches(d, old);
  if (!status) return NULL;
  // The plan for the old room is there, and so is its mask's memory.
  pestle_status_t other = use_room(d, old);
  if (!other) other = pestle_decode_clear_mask(d);
  pestle_status_release(other);
  return status;
}

pestle_status_t pestle_decode_fit(pestle_decoder_t* d,
                                  const decode_slot_t* slot, int64_t end) {
  int64_t need = end;
  for (size_t s = 0; s < d->slot_count; ++s) {
    // A run of all slots writes a row of each.
    int64_t length = d->slots[s].length + (d->slot_count > 1);
    if (length > need) need = length;
  }
  int64_t room = pestle_decode_room_for(d, need);
  bool begins = slot && !slot->length;
  if (room == d->room || (room < d->room && !begins)) return NULL;
  return pestle_status_annotate(
      move(d, room), "while giving sequences room for %lld positions",
      (long long)room);
}
