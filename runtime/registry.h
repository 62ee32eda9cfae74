// SPDX-License-Identifier: Apache-2.0
// The backends of a context and their devices. Rows are only ever added, and
// stay where they are until the context dies.
#ifndef PESTLE_RUNTIME_REGISTRY_H_
#define PESTLE_RUNTIME_REGISTRY_H_

#include "base/arena.h"
#include "base/thread.h"
#include "base/vec.h"
#include "pestle/context.h"
#include "pestle/plugin.h"

struct pestle_device_s;

// A backend that was found: loaded, or refused for |reason|.
typedef struct pestle_plugin_t {
  const char* name;      // by abi_info; before that, by the file's name
  const char* path;      // "" when linked in
  const char* build_id;  // "" while unknown
  const char* reason;    // "" while nothing speaks against it
  const char* id;        // "name build-id"
  int32_t device_type;   // 0 while unknown
  int32_t score;
  int32_t device_count;
  pestle_backend_init_fn_t init;    // NULL: refused
  const pestle_backend_t* backend;  // NULL: not loaded
} pestle_plugin_t;

typedef PESTLE_VEC(pestle_plugin_t*) pestle_plugins_t;

typedef struct pestle_registry_t {
  pestle_context_t* context;
  pestle_mutex_t mutex;
  atomic_bool loaded;  // the search path was gone through
  pestle_arena_t arena;
  pestle_plugins_t plugins;
  PESTLE_VEC(struct pestle_device_s*) devices;
} pestle_registry_t;

void pestle_registry_init(pestle_context_t* context,
                          pestle_registry_t* out_registry);
void pestle_registry_deinit(pestle_registry_t* registry);
void pestle_registry_after_fork(pestle_registry_t* registry);

// Adds a backend that is linked in. Used for the rows of plugins.def and by
// tests.
PESTLE_NODISCARD pestle_status_t pestle_registry_add_static(
    pestle_context_t* context, pestle_backend_abi_info_fn_t abi_info,
    pestle_backend_init_fn_t init);

// The devices, best score first, of which |spec_name| is the type or backend;
// all of them for NULL. The |index|-th, or NULL. Needs no lock of the caller.
struct pestle_device_s* pestle_registry_find(pestle_registry_t* registry,
                                             const char* spec_name,
                                             size_t spec_size, int64_t index);

// The best device of |type| whose backend is a fallback, or NULL.
struct pestle_device_s* pestle_registry_fallback(pestle_registry_t* registry,
                                                 int32_t type);

// --- plugin_load.c: one candidate ---

// Opens |path|, checks what it was built as and asks for its score. A refusal
// is a reason in the row; only running out of memory is an error.
PESTLE_NODISCARD pestle_status_t
pestle_plugin_probe(pestle_context_t* context, pestle_arena_t* arena,
                    const char* path, pestle_plugin_t** out_plugin);
PESTLE_NODISCARD pestle_status_t pestle_plugin_probe_static(
    pestle_context_t* context, pestle_arena_t* arena,
    pestle_backend_abi_info_fn_t abi_info, pestle_backend_init_fn_t init,
    pestle_plugin_t** out_plugin);
// Initialises a candidate that was not refused; sets |backend| or |reason|.
PESTLE_NODISCARD pestle_status_t pestle_plugin_start(pestle_context_t* context,
                                                     pestle_arena_t* arena,
                                                     pestle_plugin_t* plugin);
// Sets the reason.
PESTLE_NODISCARD PESTLE_PRINTF(3, 4) pestle_status_t
    pestle_plugin_refuse(pestle_arena_t* arena, pestle_plugin_t* plugin,
                         const char* format, ...);

// --- plugin_elf_posix.c ---

// Looks at a file before the system's loader does, which ends the process when
// a sanitizer's runtime comes late: NULL, or why it is not loaded, as a static
// text that completes "<path> ...".
const char* pestle_plugin_inspect(const char* path);

// --- plugin_search.c ---

// The plugin files of the search path, in its order.
typedef PESTLE_VEC(const char*) pestle_paths_t;
PESTLE_NODISCARD pestle_status_t pestle_plugin_search(pestle_context_t* context,
                                                      pestle_arena_t* arena,
                                                      pestle_paths_t* paths);

// --- plugin_static.c ---

typedef struct pestle_plugin_static_t {
  pestle_backend_abi_info_fn_t abi_info;
  pestle_backend_init_fn_t init;
} pestle_plugin_static_t;
// The rows of plugins.def that are linked in; the last has NULL functions.
const pestle_plugin_static_t* pestle_plugin_static_rows(void);

#endif  // PESTLE_RUNTIME_REGISTRY_H_
