// SPDX-License-Identifier: Apache-2.0
#include "pjrt/known.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/thread.h"

// Programs of a training run and its evaluation; each entry holds a plan, which
// the context's own cache holds too.
enum { CAPACITY = 128 };

typedef struct entry_t {
  pestle_hash128_t hash;
  size_t size;          // of the code
  pestle_plan_t* plan;  // held; NULL: the entry is empty
  pestle_arena_t arena;
  pestle_pjrt_program_info_t info;  // in the arena
} entry_t;

struct pestle_pjrt_known_t {
  pestle_mutex_t mutex;
  size_t next;  // the entry that gives way
  entry_t entries[CAPACITY];
};

pestle_pjrt_known_t* pestle_pjrt_known_create(void) {
  pestle_pjrt_known_t* known =
      pestle_alloc_zero(pestle_allocator_system(), sizeof(*known));
  if (known) pestle_mutex_init(&known->mutex);
  return known;
}

static void clear(entry_t* entry) {
  if (!entry->plan) return;
  pestle_plan_release(entry->plan);
  pestle_arena_deinit(&entry->arena);
  entry->plan = NULL;
}

void pestle_pjrt_known_release(pestle_pjrt_known_t* known) {
  if (!known) return;
  for (size_t i = 0; i < CAPACITY; ++i)
    clear(&known->entries[i]);
  pestle_mutex_deinit(&known->mutex);
  pestle_dealloc(pestle_allocator_system(), known, sizeof(*known));
}

// Everything that the plan depends on within one client.
static pestle_hash128_t hash_of(const pestle_pjrt_source_t* source) {
  const pestle_pjrt_options_t* o = source->options;
  int64_t options[] = {o->replicas, o->partitions, (int64_t)o->numerics,
                       o->threads, o->no_fuse};
  pestle_hasher_t hasher;
  pestle_hasher_init(&hasher);
  pestle_hasher_update(&hasher, options, sizeof(options));
  pestle_hasher_update(&hasher, source->code, source->size);
  return pestle_hasher_finish(&hasher);
}

static bool copy_tokens(pestle_arena_t* arena, pestle_pjrt_tokens_t* tokens) {
  if (!tokens->count) return true;
  tokens->positions = pestle_arena_copy(
      arena, tokens->positions, tokens->count * sizeof(*tokens->positions),
      _Alignof(uint32_t));
  return tokens->positions != NULL;
}

static bool copy_texts(pestle_arena_t* arena, const char* const** texts,
                       size_t count) {
  if (!*texts) return true;
  const char** copy = PESTLE_ARENA_ARRAY(arena, const char*, count);
  for (size_t i = 0; copy && i < count; ++i) {
    copy[i] = pestle_arena_strdup(arena, (*texts)[i]);
    if (!copy[i]) return false;
  }
  *texts = copy;
  return copy != NULL;
}

static bool copy_info(pestle_arena_t* arena, pestle_pjrt_program_info_t* info) {
  if (!copy_texts(arena, &info->input_shardings, info->input_count) ||
      !copy_texts(arena, &info->output_shardings, info->output_count)) {
    return false;
  }
  info->name = pestle_arena_strdup(arena, info->name);
  if (info->input_count) {
    info->is_donor =
        pestle_arena_copy(arena, info->is_donor, info->input_count, 1);
    if (!info->is_donor) return false;
  }
  if (info->orders) {
    info->orders = pestle_arena_copy(arena, info->orders,
                                     info->order_count * PESTLE_MAX_RANK, 1);
    if (!info->orders) return false;
  }
  return info->name && copy_tokens(arena, &info->input_tokens) &&
         copy_tokens(arena, &info->output_tokens);
}

void pestle_pjrt_known_add(pestle_pjrt_known_t* known,
                           const pestle_pjrt_source_t* source,
                           pestle_plan_t* plan,
                           const pestle_pjrt_program_info_t* info) {
  if (source->has_callback) return;
  pestle_hash128_t hash = hash_of(source);
  pestle_mutex_lock(&known->mutex);
  entry_t* entry = &known->entries[known->next];
  clear(entry);
  pestle_arena_init(pestle_allocator_system(), &entry->arena);
  entry->info = *info;
  if (copy_info(&entry->arena, &entry->info)) {
    entry->hash = hash;
    entry->size = source->size;
    entry->plan = plan;
    pestle_plan_retain(plan);
    known->next = (known->next + 1) % CAPACITY;
  } else {
    pestle_arena_deinit(&entry->arena);
  }
  pestle_mutex_unlock(&known->mutex);
}

PJRT_Error* pestle_pjrt_known_find(pestle_pjrt_known_t* known,
                                   const pestle_pjrt_source_t* source,
                                   PJRT_Client* client,
                                   const pestle_pjrt_options_t* options,
                                   pestle_pjrt_program_t** out_program) {
  PJRT_Error* error = NULL;
  *out_program = NULL;
  if (source->has_callback) return NULL;
  pestle_hash128_t hash = hash_of(source);
  // The entry is read under the lock: another thread may let it give way.
  pestle_mutex_lock(&known->mutex);
  for (size_t i = 0; i < CAPACITY; ++i) {
    const entry_t* entry = &known->entries[i];
    if (!entry->plan || entry->size != source->size ||
        !pestle_hash128_equal(entry->hash, hash)) {
      continue;
    }
    error = pestle_pjrt_program_create(client, entry->plan, options,
                                       &entry->info, out_program);
    break;
  }
  pestle_mutex_unlock(&known->mutex);
  return error;
}
