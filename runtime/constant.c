// SPDX-License-Identifier: Apache-2.0
#include "runtime/constant.h"

#include <string.h>

#include "base/bits.h"
#include "base/mem.h"
#include "base/require.h"
#include "runtime/context.h"
#include "runtime/device.h"

// Blocks are whole pages, so that sealing one seals nothing else.
static size_t block_size(size_t size) {
  return pestle_align_up(size ? size : 1, PESTLE_PAGE);
}

static void free_block(pestle_context_t* context, void* block, size_t size) {
  if (!block) return;
  pestle_platform_seal(block, block_size(size), false);
  pestle_free_aligned(context->core.allocator, block, block_size(size),
                      PESTLE_PAGE);
}

static void destroy(pestle_constant_t* constant) {
  pestle_context_t* context = constant->context;
  pestle_file_unmap(&constant->mapping);
  free_block(context, constant->block, constant->size);
  if (constant->release) constant->release(constant->release_self);
  pestle_dealloc(context->core.allocator, constant, sizeof(*constant));
}

// --- The table, with its lock held ---

static bool is_zero(pestle_hash128_t hash) {
  return !hash.low && !hash.high;
}

static pestle_constant_t* find(const pestle_map_t* map, pestle_hash128_t at,
                               size_t size) {
  const pestle_map_value_t* value = pestle_map_find(map, &at, sizeof(at));
  pestle_constant_t* constant = value ? value->ptr : NULL;
  if (!constant || constant->size != size) return NULL;
  ++constant->holders;
  return constant;
}

static pestle_status_t add_key(pestle_constants_t* t, pestle_hash128_t key,
                               pestle_constant_t* constant) {
  if (is_zero(key)) return NULL;
  bool added;
  pestle_map_value_t* value =
      pestle_map_put(&t->by_key, &key, sizeof(key), &added);
  if (!value) return PESTLE_OOM();
  if (!added) return NULL;
  value->ptr = constant;
  if (is_zero(constant->key)) {
    constant->key = key;
  } else {
    constant->many_keys = true;
  }
  return NULL;
}

static void remove_keys(pestle_constants_t* t,
                        const pestle_constant_t* constant) {
  if (is_zero(constant->key)) return;
  (void)pestle_map_remove(&t->by_key, &constant->key, sizeof(constant->key));
  size_t cursor = 0;
  pestle_map_entry_t* entry;
  while (constant->many_keys &&
         (entry = pestle_map_next(&t->by_key, &cursor))) {
    if (entry->value.ptr != constant) continue;
    pestle_str_t key = pestle_map_entry_key(entry);
    (void)pestle_map_remove(&t->by_key, key.data, key.size);
  }
}

// Whether this was the last holder.
static bool drop(pestle_constants_t* t, pestle_constant_t* constant) {
  if (--constant->holders) return false;
  const pestle_map_value_t* value =
      pestle_map_find(&t->by_hash, &constant->hash, sizeof(constant->hash));
  // After a fork the table may have begun anew, without this one.
  if (!value || value->ptr != constant) return true;
  (void)pestle_map_remove(&t->by_hash, &constant->hash, sizeof(constant->hash));
  remove_keys(t, constant);
  t->bytes -= constant->size;
  return true;
}

static pestle_status_t add(pestle_constants_t* t, pestle_constant_t* constant) {
  pestle_map_value_t* value = pestle_map_put(&t->by_hash, &constant->hash,
                                             sizeof(constant->hash), NULL);
  if (!value) return PESTLE_OOM();
  value->ptr = constant;
  t->bytes += constant->size;
  return NULL;
}

// --- Finding and adding ---

static pestle_constant_t* find_hash(pestle_constants_t* t,
                                    pestle_hash128_t hash, size_t size) {
  pestle_mutex_lock(&t->mutex);
  pestle_constant_t* constant = find(&t->by_hash, hash, size);
  pestle_mutex_unlock(&t->mutex);
  return constant;
}

// Gives |*constant|, which the caller holds, to the table; another thread may
// have been first, and then its constant takes the place of ours.
static pestle_status_t publish(pestle_constants_t* t, pestle_hash128_t key,
                               pestle_constant_t** constant) {
  pestle_constant_t* spare = NULL;
  pestle_mutex_lock(&t->mutex);
  pestle_constant_t* mine = *constant;
  pestle_constant_t* twin = find(&t->by_hash, mine->hash, mine->size);
  pestle_status_t status = NULL;
  if (!twin) {
    status = add(t, mine);
  } else if (twin == mine) {
    --mine->holders;  // it was published before: only the key is new
  } else {
    spare = mine;
    *constant = twin;
  }
  if (!status) status = add_key(t, key, *constant);
  if (status) {
    if (drop(t, *constant)) {
      if (spare) destroy(spare);
      spare = *constant;
    }
    *constant = NULL;
  }
  pestle_mutex_unlock(&t->mutex);
  if (spare) destroy(spare);
  return status;
}

static pestle_constant_t* make(pestle_context_t* context, pestle_hash128_t hash,
                               size_t size) {
  pestle_constant_t* constant =
      pestle_alloc_zero(context->core.allocator, sizeof(*constant));
  if (!constant) return NULL;
  constant->context = context;
  constant->holders = 1;
  constant->hash = hash;
  constant->size = size;
  return constant;
}

static void use_mapping(pestle_constant_t* constant, pestle_mapping_t mapping) {
  constant->mapping = mapping;
  constant->data = (const char*)mapping.data + sizeof(pestle_constant_file_t);
}

pestle_status_t pestle_constant_find(pestle_context_t* context,
                                     const pestle_plan_constant_ref_t* ref,
                                     pestle_constant_t** out_constant,
                                     const char** out_reason) {
  *out_reason = NULL;
  pestle_context_enter(context);
  pestle_hash128_t hash = {ref->hash[0], ref->hash[1]};
  pestle_hash128_t key = {ref->key[0], ref->key[1]};
  *out_constant = find_hash(&context->constants, hash, ref->size);
  if (!*out_constant) {
    pestle_mapping_t mapping;
    PESTLE_TRY(pestle_constant_file_map(context, hash, ref->size, true,
                                        &mapping, out_reason));
    if (*out_reason) return NULL;
    *out_constant = make(context, hash, ref->size);
    if (!*out_constant) {
      pestle_file_unmap(&mapping);
      return PESTLE_OOM();
    }
    use_mapping(*out_constant, mapping);
  }
  return publish(&context->constants, key, out_constant);
}

pestle_status_t pestle_constant_look(pestle_context_t* context,
                                     const pestle_plan_constant_ref_t* ref,
                                     pestle_constant_t** out_constant,
                                     pestle_mapping_t* out_mapping,
                                     const char** out_reason) {
  *out_reason = NULL;
  *out_mapping = (pestle_mapping_t){NULL, 0};
  pestle_context_enter(context);
  pestle_hash128_t hash = {ref->hash[0], ref->hash[1]};
  *out_constant = find_hash(&context->constants, hash, ref->size);
  if (*out_constant) return NULL;
  return pestle_constant_file_map(context, hash, ref->size, false, out_mapping,
                                  out_reason);
}

pestle_status_t pestle_constant_adopt(pestle_context_t* context,
                                      pestle_hash128_t hash,
                                      pestle_hash128_t key, const void* data,
                                      size_t size, void (*release)(void* self),
                                      void* self,
                                      pestle_constant_t** out_constant) {
  pestle_context_enter(context);
  *out_constant = find_hash(&context->constants, hash, size);
  if (*out_constant) {
    release(self);
    return publish(&context->constants, key, out_constant);
  }
  *out_constant = make(context, hash, size);
  if (!*out_constant) {
    release(self);
    return PESTLE_OOM();
  }
  (*out_constant)->data = data;
  (*out_constant)->release = release;
  (*out_constant)->release_self = self;
  return publish(&context->constants, key, out_constant);
}

// --- Packing ---

static pestle_status_t no_memory(size_t size) {
  return PESTLE_ERROR(OUT_OF_MEMORY,
                      "out of host memory: a constant needs %zu bytes", size);
}

// Memory of its own, sealed, for bytes that are borrowed or were packed.
static pestle_status_t seal(pestle_context_t* context,
                            pestle_constant_t* constant) {
  size_t size = block_size(constant->size);
  if (!constant->block) {
    constant->block =
        pestle_alloc_aligned(context->core.allocator, size, PESTLE_PAGE);
    if (!constant->block) return no_memory(constant->size);
    memcpy(constant->block, constant->data, constant->size);
    constant->data = constant->block;
  }
  pestle_platform_seal(constant->block, size, true);
  return NULL;
}

// Puts the bytes into the cache folder and maps them from there, so that processes
// share them; without a folder, or when it may not hold as much, they stay in memory,
// sealed.
static pestle_status_t settle(pestle_context_t* context,
                              pestle_constant_t* constant) {
  // Twice: a damaged file of that name is found by mapping it, and removed. What was
  // written just now is not read again for its hash.
  bool fits = constant->size <= context->cache_bytes;
  int tries = pestle_context_cache_dir(context) && fits ? 2 : 0;
  while (tries--) {
    const char* reason;
    pestle_mapping_t mapping;
    bool written;
    pestle_disk_cache_report(
        context,
        pestle_constant_file_keep(context, constant->hash, constant->data,
                                  constant->size, &written));
    PESTLE_TRY(pestle_constant_file_map(context, constant->hash, constant->size,
                                        !written, &mapping, &reason));
    if (reason) continue;
    free_block(context, constant->block, constant->size);
    constant->block = NULL;
    use_mapping(constant, mapping);
    return NULL;
  }
  return seal(context, constant);
}

// Packs into a constant that nobody else sees yet.
static pestle_status_t pack_new(pestle_context_t* context, size_t size,
                                pestle_constant_pack_fn_t pack, void* user,
                                pestle_constant_t** out_constant) {
  pestle_hash128_t unknown = {0, 0};
  pestle_constant_t* constant = make(context, unknown, size);
  if (!constant) return PESTLE_OOM();
  constant->block = pestle_alloc_aligned(context->core.allocator,
                                         block_size(size), PESTLE_PAGE);
  if (!constant->block) {
    destroy(constant);
    return no_memory(size);
  }
  memset(constant->block, 0, block_size(size));
  pack(user, constant->block, size);
  constant->data = constant->block;
  constant->hash = pestle_hash128(constant->data, size);
  *out_constant = constant;
  return NULL;
}

// |*made|, which nobody else sees yet, or its twin, for |key|.
static pestle_status_t add_new(pestle_context_t* context, pestle_hash128_t key,
                               pestle_constant_t* made,
                               pestle_constant_t** out_constant) {
  pestle_constants_t* t = &context->constants;
  pestle_constant_t* twin = find_hash(t, made->hash, made->size);
  if (twin) {
    destroy(made);
    made = twin;
  } else {
    pestle_status_t status = settle(context, made);
    if (status) {
      destroy(made);
      return status;
    }
  }
  PESTLE_TRY(publish(t, key, &made));
  *out_constant = made;
  return NULL;
}

static pestle_constant_t* find_key(pestle_constants_t* t, pestle_hash128_t key,
                                   size_t size) {
  pestle_mutex_lock(&t->mutex);
  pestle_constant_t* constant = find(&t->by_key, key, size);
  pestle_mutex_unlock(&t->mutex);
  return constant;
}

pestle_status_t pestle_constant_get(pestle_context_t* context,
                                    const uint64_t key[2], size_t size,
                                    pestle_constant_pack_fn_t pack, void* user,
                                    pestle_constant_t** out_constant) {
  if (out_constant) *out_constant = NULL;
  PESTLE_REQUIRE(
      context && key && pack && out_constant,
      "a context, a key, a function that packs and a place for the constant");
  if (context->no_cache) return NULL;
  pestle_context_enter(context);
  pestle_hash128_t at = {key[0], key[1]};
  *out_constant = find_key(&context->constants, at, size);
  if (*out_constant) return NULL;
  pestle_constant_t* packed = NULL;
  PESTLE_TRY(pack_new(context, size, pack, user, &packed));
  return add_new(context, at, packed, out_constant);
}

pestle_status_t pestle_constant_get_bytes(pestle_context_t* context,
                                          const uint64_t key[2],
                                          const void* data, size_t size,
                                          pestle_constant_t** out_constant) {
  if (out_constant) *out_constant = NULL;
  PESTLE_REQUIRE(context && key && (data || !size) && out_constant,
                 "a context, a key, bytes and a place for the constant");
  if (context->no_cache) return NULL;
  pestle_context_enter(context);
  pestle_hash128_t at = {key[0], key[1]};
  *out_constant = find_key(&context->constants, at, size);
  if (*out_constant) return NULL;
  pestle_constant_t* made = make(context, pestle_hash128(data, size), size);
  if (!made) return PESTLE_OOM();
  made->data = data;  // until it is settled
  return add_new(context, at, made, out_constant);
}

void pestle_constant_release(pestle_constant_t* constant) {
  if (!constant) return;
  pestle_context_enter(constant->context);
  pestle_constants_t* t = &constant->context->constants;
  pestle_mutex_lock(&t->mutex);
  bool last = drop(t, constant);
  pestle_mutex_unlock(&t->mutex);
  if (last) destroy(constant);
}

void pestle_constant_retain(pestle_constant_t* constant) {
  pestle_constants_t* t = &constant->context->constants;
  pestle_mutex_lock(&t->mutex);
  ++constant->holders;
  pestle_mutex_unlock(&t->mutex);
}

const void* pestle_constant_data(const pestle_constant_t* constant,
                                 uint64_t out_hash[2]) {
  if (out_hash) {
    out_hash[0] = constant ? constant->hash.low : 0;
    out_hash[1] = constant ? constant->hash.high : 0;
  }
  return constant ? constant->data : NULL;
}

// --- Counting ---

void pestle_constant_use(pestle_constant_t* constant, pestle_device_t* device) {
  pestle_constants_t* t = &constant->context->constants;
  pestle_mutex_lock(&t->mutex);
  if (!constant->users++) {
    constant->counted_on = device;
    pestle_device_count_memory(device, (int64_t)constant->size);
  }
  pestle_mutex_unlock(&t->mutex);
}

void pestle_constant_unuse(pestle_constant_t* constant) {
  pestle_context_enter(constant->context);
  pestle_constants_t* t = &constant->context->constants;
  pestle_mutex_lock(&t->mutex);
  if (!--constant->users) {
    pestle_device_count_memory(constant->counted_on, -(int64_t)constant->size);
  }
  pestle_mutex_unlock(&t->mutex);
}

bool pestle_constant_is_used(pestle_constant_t* constant) {
  pestle_constants_t* t = &constant->context->constants;
  pestle_mutex_lock(&t->mutex);
  bool is_used = constant->users > 0;
  pestle_mutex_unlock(&t->mutex);
  return is_used;
}

void pestle_constants_stats(pestle_constants_t* t, uint64_t* out_count,
                            uint64_t* out_bytes) {
  pestle_mutex_lock(&t->mutex);
  *out_count = pestle_map_size(&t->by_hash);
  *out_bytes = t->bytes;
  pestle_mutex_unlock(&t->mutex);
}

// --- Life ---

static void init_tables(pestle_constants_t* t) {
  pestle_mutex_init(&t->mutex);
  pestle_map_init(t->context->core.allocator, &t->by_hash);
  pestle_map_init(t->context->core.allocator, &t->by_key);
  t->bytes = 0;
}

void pestle_constants_init(pestle_context_t* context, pestle_constants_t* t) {
  t->context = context;
  init_tables(t);
}

void pestle_constants_deinit(pestle_constants_t* t) {
  if (!t->context) return;
  pestle_map_deinit(&t->by_hash);
  pestle_map_deinit(&t->by_key);
  pestle_mutex_deinit(&t->mutex);
  t->context = NULL;
}

void pestle_constants_after_fork(pestle_constants_t* t) {
  if (pestle_mutex_try_lock(&t->mutex)) {
    pestle_mutex_unlock(&t->mutex);
  } else {
    // A thread of the parent held it and may have left anything: start empty.
    // Constants that are held stay as they are.
    init_tables(t);
  }
}
