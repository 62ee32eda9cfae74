// SPDX-License-Identifier: Apache-2.0
// Functions: a module, and an executable for each set of types that it was called
// with. A guard compares types and devices before each run.
#include "lazy/jit.h"

#include <stdio.h>

#include "base/require.h"
#include "ir/infer.h"
#include "pestle/compile.h"

// --- Making ---

static size_t entry_size(const pestle_jit_t* jit) {
  return sizeof(pestle_jit_entry_t) +
         jit->argument_count * sizeof(pestle_type_t);
}

static void free_entries(pestle_jit_t* jit, pestle_jit_entry_t* list) {
  while (list) {
    pestle_jit_entry_t* next = list->next;
    pestle_executable_release(list->executable);
    pestle_dealloc(jit->lazy->allocator, list, entry_size(jit));
    list = next;
  }
}

void pestle_jit_retain(pestle_jit_t* jit) {
  if (jit) pestle_refcount_retain(&jit->refcount);
}

void pestle_jit_release(pestle_jit_t* jit) {
  if (!jit || !pestle_refcount_release(&jit->refcount)) return;
  pestle_allocator_t allocator = jit->lazy->allocator;
  pestle_context_t* context = jit->lazy->context;
  for (size_t i = 0; i < jit->entry_count; ++i)
    free_entries(jit, jit->entries[i]);
  free_entries(jit, atomic_load(&jit->forgotten));
  for (size_t i = 0; jit->hidden && i < jit->hidden_count; ++i)
    pestle_array_release(jit->hidden[i]);
  pestle_dealloc(allocator, jit->hidden,
                 jit->hidden_count * sizeof(*jit->hidden));
  pestle_dealloc(allocator, jit->donated,
                 jit->donated_count * sizeof(*jit->donated));
  pestle_dealloc(allocator, jit->misses,
                 PESTLE_JIT_MISSES * sizeof(*jit->misses));
  pestle_module_release(jit->module);
  pestle_mutex_deinit(&jit->mutex);
  pestle_dealloc(allocator, jit, sizeof(*jit));
  pestle_context_release(context);
}

static pestle_status_t read_options(const pestle_compile_options_t* user,
                                    pestle_compile_options_t* out_options) {
  memset(out_options, 0, sizeof(*out_options));
  size_t size = user ? user->struct_size : sizeof(*out_options);
  if (size < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_compile_options_t.struct_size is not set");
  }
  if (user) {
    memcpy(out_options, user,
           size < sizeof(*user) ? size : sizeof(*out_options));
  }
  out_options->struct_size = sizeof(*out_options);
  if (out_options->dump || out_options->control || out_options->alias_count ||
      out_options->passes || out_options->skip_passes ||
      out_options->target_cpu || out_options->print_after ||
      out_options->lock_path) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_jit_create takes no option that is a pointer: "
                        "code is made at later calls");
  }
  return NULL;
}

static pestle_status_t take_hidden(pestle_jit_t* jit,
                                   const pestle_capture_t* capture) {
  jit->hidden_count = pestle_capture_hidden_count(capture);
  jit->hidden = pestle_alloc_array(jit->lazy->allocator, jit->hidden_count,
                                   sizeof(*jit->hidden));
  if (!jit->hidden) return PESTLE_OOM();
  for (size_t i = 0; i < jit->hidden_count; ++i) {
    jit->hidden[i] = pestle_capture_hidden(capture, i);
    pestle_array_retain(jit->hidden[i]);
  }
  if (jit->hidden_count <= jit->argument_count) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "the capture has %zu hidden arguments, the module takes "
                      "%zu in all",
                      jit->hidden_count, jit->argument_count);
}

pestle_status_t pestle_jit_create(pestle_device_t* device,
                                  pestle_module_t* module,
                                  const pestle_capture_t* capture,
                                  const pestle_compile_options_t* options,
                                  pestle_jit_t** out_jit) {
  PESTLE_REQUIRE(device && module && out_jit,
                 "a device, a module and a place for the function");
  *out_jit = NULL;
  pestle_function_t* entry = pestle_module_entry(module);
  PESTLE_REQUIRE(entry, "a module with a function");
  pestle_lazy_t* lazy;
  pestle_compile_options_t read;
  PESTLE_TRY(read_options(options, &read));
  PESTLE_TRY(pestle_lazy_of(pestle_device_context(device), &lazy));
  pestle_jit_t* jit = pestle_alloc_zero(lazy->allocator, sizeof(*jit));
  if (!jit) return PESTLE_OOM();
  pestle_refcount_init(&jit->refcount);
  pestle_mutex_init(&jit->mutex);
  pestle_context_retain(lazy->context);
  pestle_module_retain(module);
  jit->lazy = lazy;
  atomic_init(&jit->forks, atomic_load(&lazy->forks));
  jit->device = device;
  jit->module = module;
  jit->options = read;
  jit->argument_count = pestle_function_argument_count(entry);
  pestle_status_t status = take_hidden(jit, capture);
  if (status) {
    pestle_jit_release(jit);
    return status;
  }
  *out_jit = jit;
  return NULL;
}

pestle_status_t pestle_jit_donate(pestle_jit_t* jit, const uint32_t* indices,
                                  size_t count) {
  PESTLE_REQUIRE(jit && (indices || !count), "a function and arguments");
  size_t given = jit->argument_count - jit->hidden_count;
  for (size_t i = 0; i < count; ++i) {
    if (indices[i] < given) continue;
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "argument %u is to be donated, the function takes %zu",
                        (unsigned)indices[i], given);
  }
  if (jit->entry_count || jit->donated_count) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "arguments are donated before the first call, once");
  }
  jit->donated =
      pestle_alloc_array(jit->lazy->allocator, count, sizeof(*indices));
  if (!jit->donated) return PESTLE_OOM();
  if (count) memcpy(jit->donated, indices, count * sizeof(*indices));
  jit->donated_count = count;
  return NULL;
}

// --- Guards ---

static bool fits(const pestle_jit_t* jit, const pestle_jit_entry_t* entry,
                 pestle_array_t* const* arguments) {
  for (size_t i = 0; i < jit->argument_count; ++i) {
    const pestle_array_t* a = pestle_jit_argument(jit, arguments, i);
    if (!pestle_type_equal(&entry->types[i], &a->type)) {
      return false;
    }
  }
  return true;
}

// In a child of fork() a thread of the parent may have held the lock for ever, and
// left the entries half changed.
static void lock(pestle_jit_t* jit) {
  pestle_lazy_t* lazy = jit->lazy;
  pestle_lazy_enter(lazy);
  if (atomic_load(&jit->forks) != atomic_load(&lazy->forks)) {
    pestle_lazy_lock(lazy);
    if (atomic_load(&jit->forks) != atomic_load(&lazy->forks)) {
      if (pestle_mutex_try_lock(&jit->mutex)) {
        pestle_mutex_unlock(&jit->mutex);
      } else {
        pestle_mutex_init(&jit->mutex);
        jit->entry_count = 0;
      }
      atomic_store(&jit->forks, atomic_load(&lazy->forks));
    }
    pestle_mutex_unlock(&lazy->mutex);
  }
  pestle_mutex_lock(&jit->mutex);
}

// A reader is counted before it looks, a forgotten entry is no longer the latest before
// readers are counted: with none there, nobody has it.
pestle_executable_t* pestle_jit_enter(pestle_jit_t* jit,
                                      pestle_array_t* const* arguments) {
  if (!atomic_load_explicit(&jit->latest, memory_order_relaxed)) return NULL;
  atomic_fetch_add(&jit->readers, 1);
  const pestle_jit_entry_t* entry = atomic_load(&jit->latest);
  if (entry && fits(jit, entry, arguments)) return entry->executable;
  pestle_jit_leave(jit);
  return NULL;
}

void pestle_jit_leave(pestle_jit_t* jit) {
  if (atomic_fetch_sub(&jit->readers, 1) != 1 ||
      !atomic_load(&jit->forgotten)) {
    return;
  }
  lock(jit);
  pestle_jit_entry_t* list = NULL;
  if (!atomic_load(&jit->readers)) {
    list = atomic_exchange(&jit->forgotten, NULL);
  }
  pestle_mutex_unlock(&jit->mutex);
  free_entries(jit, list);
}

pestle_executable_t* pestle_jit_find(pestle_jit_t* jit,
                                     pestle_array_t* const* arguments) {
  pestle_executable_t* executable = NULL;
  lock(jit);
  for (size_t i = jit->entry_count; i-- > 0;) {
    if (!fits(jit, jit->entries[i], arguments)) continue;
    atomic_store(&jit->latest, jit->entries[i]);
    executable = jit->entries[i]->executable;
    pestle_executable_retain(executable);
    break;
  }
  pestle_mutex_unlock(&jit->mutex);
  return executable;
}

// --- A set of types that is new ---

static pestle_status_t compile(pestle_jit_t* jit, const pestle_type_t* types,
                               pestle_executable_t** out_executable) {
  pestle_module_t* module;
  pestle_plan_t* plan = NULL;
  PESTLE_TRY(pestle_module_specialize(jit->module, types, jit->argument_count,
                                      &module));
  pestle_compile_options_t options = jit->options;
  size_t count = jit->donated_count;
  pestle_alias_t* aliases =
      pestle_alloc_array(jit->lazy->allocator, count, sizeof(*aliases));
  pestle_status_t status = aliases ? NULL : PESTLE_OOM();
  for (size_t i = 0; aliases && i < count; ++i)
    aliases[i] = (pestle_alias_t){jit->donated[i], PESTLE_ALIAS_ANY};
  options.aliases = aliases;
  options.alias_count = count;
  options.control = pestle_lazy_control(jit->lazy);
  if (!status) {
    status = pestle_compile(jit->lazy->context, module, jit->device, &options,
                            &plan);
  }
  if (!status) {
    status = pestle_executable_create(jit->lazy->context, plan, jit->device,
                                      out_executable);
  }
  pestle_dealloc(jit->lazy->allocator, aliases, count * sizeof(*aliases));
  pestle_plan_release(plan);
  pestle_module_release(module);
  return status;
}

// How many arguments of |a| and |b| are of other types, and the first that is.
static size_t differences(const pestle_jit_t* jit, const pestle_jit_entry_t* a,
                          const pestle_jit_entry_t* b, size_t* out_first) {
  size_t count = 0;
  for (size_t i = jit->argument_count; i-- > 0;) {
    if (pestle_type_equal(&a->types[i], &b->types[i])) continue;
    *out_first = i;
    ++count;
  }
  return count;
}

// Writes down why |entry| is none of those that there are: what differs from the one
// that differs least. The lock is held. Without memory it is not written down.
static void remember_miss(pestle_jit_t* jit, const pestle_jit_entry_t* entry) {
  size_t best = 0, least = SIZE_MAX, at = 0;
  for (size_t i = jit->entry_count; i-- > 0;) {
    size_t first = 0;
    size_t count = differences(jit, entry, jit->entries[i], &first);
    if (count >= least) continue;
    least = count;
    best = i;
    at = first;
  }
  if (!jit->entry_count) return;
  if (!jit->misses) {
    jit->misses = pestle_alloc_zero(jit->lazy->allocator,
                                    PESTLE_JIT_MISSES * sizeof(*jit->misses));
  }
  if (!jit->misses) return;
  char* text = jit->misses[jit->miss_count++ % PESTLE_JIT_MISSES];
  int size = snprintf(text, PESTLE_JIT_MISS_SIZE,
                      "argument %zu is %s, of the nearest call it was %s", at,
                      pestle_type_text(&entry->types[at]).text,
                      pestle_type_text(&jit->entries[best]->types[at]).text);
  if (least > 1 && size > 0 && size < PESTLE_JIT_MISS_SIZE) {
    snprintf(text + size, (size_t)(PESTLE_JIT_MISS_SIZE - size),
             "; %zu more differ", least - 1);
  }
}

// Takes |entry| over in the place of the oldest, which is forgotten.
static void keep(pestle_jit_t* jit, pestle_jit_entry_t* entry) {
  pestle_jit_entry_t* list = NULL;
  lock(jit);
  remember_miss(jit, entry);
  atomic_store(&jit->latest, entry);
  if (jit->entry_count == PESTLE_JIT_ENTRIES) {
    list = jit->entries[0];
    list->next = atomic_load(&jit->forgotten);
    memmove(jit->entries, jit->entries + 1,
            (PESTLE_JIT_ENTRIES - 1) * sizeof(*jit->entries));
    --jit->entry_count;
    bool is_read = atomic_load(&jit->readers);
    atomic_store(&jit->forgotten, is_read ? list : NULL);
    if (is_read) list = NULL;
  }
  jit->entries[jit->entry_count++] = entry;
  pestle_mutex_unlock(&jit->mutex);
  free_entries(jit, list);
}

pestle_status_t pestle_jit_make(pestle_jit_t* jit,
                                pestle_array_t* const* arguments,
                                pestle_executable_t** out_executable) {
  pestle_jit_entry_t* entry =
      pestle_alloc(jit->lazy->allocator, entry_size(jit));
  if (!entry) return PESTLE_OOM();
  entry->next = NULL;
  for (size_t i = 0; i < jit->argument_count; ++i)
    entry->types[i] = pestle_jit_argument(jit, arguments, i)->type;
  pestle_status_t status = compile(jit, entry->types, out_executable);
  if (status) {
    pestle_dealloc(jit->lazy->allocator, entry, entry_size(jit));
    return status;
  }
  pestle_executable_retain(*out_executable);
  entry->executable = *out_executable;
  keep(jit, entry);
  return NULL;
}

// --- Looking ---

size_t pestle_jit_miss_count(pestle_jit_t* jit) {
  if (!jit) return 0;
  lock(jit);
  uint64_t count = jit->miss_count;
  pestle_mutex_unlock(&jit->mutex);
  return count < PESTLE_JIT_MISSES ? (size_t)count : PESTLE_JIT_MISSES;
}

pestle_status_t pestle_jit_explain_miss(pestle_jit_t* jit, size_t index,
                                        char* text, size_t size) {
  PESTLE_REQUIRE(jit && text && size, "a function and room for a sentence");
  text[0] = 0;
  lock(jit);
  uint64_t count = jit->miss_count;
  size_t kept = count < PESTLE_JIT_MISSES ? (size_t)count : PESTLE_JIT_MISSES;
  if (index < kept) {
    snprintf(text, size, "%s",
             jit->misses[(count - kept + index) % PESTLE_JIT_MISSES]);
  }
  pestle_mutex_unlock(&jit->mutex);
  if (index < kept) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "miss %zu is asked for, %zu are remembered", index, kept);
}
