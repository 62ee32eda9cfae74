// SPDX-License-Identifier: Apache-2.0
// The backends of a context and their devices. Rows are only ever added, and
// stay where they are until the context dies.
#ifndef PESTLE_RUNTIME_REGISTRY_H_
#define PESTLE_RUNTIME_REGISTRY_H_

#include "base/arena.h"
#include "base/dynlib.h"
#include "base/thread.h"
#include "base/vec.h"
#include "pestle/context.h"
#include "pestle/plugin.h"
#include "pestle/runtime.h"

// Bytes of a reason: the longest path and a sentence.
#define PESTLE_PLUGIN_REASON 5376

// What plugin files are called here: prefix, name[-variant], suffix.
#if defined(_WIN32)
#define PESTLE_PLUGIN_PREFIX "pestle-"
#define PESTLE_PLUGIN_SUFFIX ".dll"
#elif defined(__APPLE__)
#define PESTLE_PLUGIN_PREFIX "libpestle-"
#define PESTLE_PLUGIN_SUFFIX ".dylib"
#else
#define PESTLE_PLUGIN_PREFIX "libpestle-"
#define PESTLE_PLUGIN_SUFFIX ".so"
#endif

// Which file a path meant when it was judged.
typedef struct pestle_file_stamp_t {
  uint64_t device, inode, size;
  int64_t modified_ns, changed_ns;
} pestle_file_stamp_t;

// From what a plugin file came back in a child process: a set of these.
enum {
  PESTLE_TRIED_OPENED = 1,   // its constructors and what it says of itself
  PESTLE_TRIED_SCORED = 2,   // its score, good or not
  PESTLE_TRIED_STARTED = 4,  // its start, questions, its end
  PESTLE_TRIED_TARGET = 8,   // the same, as a compiler alone
};
typedef uint32_t pestle_tried_t;

// A backend that was found: loaded, or refused for |reason|.
typedef struct pestle_plugin_t {
  const char* name;   // by abi_info; before that, by the file's name
  const char* label;  // "cuda-v13" of the file's name; |name| when linked in
  const char* path;   // "" when linked in
  const char* real_path;  // without links; what is opened
  pestle_file_stamp_t stamp;
  const char* build_id;  // "" while unknown
  const char* reason;    // "" while nothing speaks against it
  const char* id;        // "name build-id"
  pestle_verdict_t verdict;
  int32_t device_type;  // 0 while unknown
  int32_t score;
  int32_t device_count;
  bool is_own;       // has the host's build id
  bool is_built_in;  // linked in with the library itself: filters spare it
  bool is_refused;
  bool cpu_only;    // of another type: it is put off
  bool is_put_off;  // says that it is, before its score was asked for
  bool any_name;    // asked for by its path, so that its file may have any name
  bool is_target;   // its compiler half works where the score is 0
  bool as_target;   // started for that alone; |reason| is why
  bool is_of_parent;  // started before fork(): its deinit() is the parent's
  pestle_dynlib_t library;  // NULL: linked in, or not opened yet
  pestle_backend_abi_info_fn_t abi_info;
  pestle_backend_abi_info_t said;  // what a child's abi_info gave
  pestle_backend_score_fn_t score_fn;
  pestle_backend_init_fn_t init;    // NULL: not opened yet
  const pestle_backend_t* backend;  // NULL: not loaded
} pestle_plugin_t;

typedef PESTLE_VEC(pestle_plugin_t*) pestle_plugins_t;
typedef PESTLE_VEC(const char*) pestle_paths_t;

typedef struct pestle_registry_t {
  pestle_context_t* context;
  pestle_mutex_t mutex;
  atomic_bool loaded;      // the search path was gone through
  atomic_bool loaded_cpu;  // for backends of cpu devices
  pestle_arena_t arena;
  pestle_plugins_t plugins;
  PESTLE_VEC(struct pestle_device_s*) devices;
  PESTLE_VEC(struct pestle_device_s*) targets;  // devices that only compile
  pestle_paths_t search_paths;
  bool has_search_paths;
} pestle_registry_t;

void pestle_registry_init(pestle_context_t* context,
                          pestle_registry_t* out_registry);
void pestle_registry_deinit(pestle_registry_t* registry);
// Before the notifier ends: what devices queued for streams of others.
void pestle_registry_end_exchanges(pestle_registry_t* registry);
void pestle_registry_after_fork(pestle_registry_t* registry);

// Adds a backend that is linked in.
PESTLE_NODISCARD pestle_status_t pestle_registry_add_static(
    pestle_context_t* context, pestle_backend_abi_info_fn_t abi_info,
    pestle_backend_init_fn_t init);

// Loads what it takes to find the device type or backend |spec_name|: for those
// of cpu devices no driver of another is woken.
PESTLE_NODISCARD pestle_status_t pestle_registry_load_for(
    pestle_context_t* context, const char* spec_name, size_t spec_size);

// --- plugin_find.c: looking. None needs a lock of the caller ---

// The devices, best score first, of which |spec_name| is the type or backend;
// all of them for NULL. The |index|-th, or NULL.
struct pestle_device_s* pestle_registry_find(pestle_registry_t* registry,
                                             const char* spec_name,
                                             size_t spec_size, int64_t index);

// The running backend of that name, or NULL.
const pestle_backend_t* pestle_registry_backend(pestle_registry_t* registry,
                                                const char* name);

// The best device of |type| whose backend is a fallback, or NULL.
struct pestle_device_s* pestle_registry_fallback(pestle_registry_t* registry,
                                                 int32_t type);

// --- plugin_load.c: one candidate ---

// Fills a row for the file |path|: its label and name.
PESTLE_NODISCARD pestle_status_t pestle_plugin_row(
    pestle_arena_t* arena, const char* path, pestle_plugin_t** out_plugin);
// Opens a row's file, checks what it was built as and asks for its score, in a
// child of this process if the context says so. A refusal is a reason in the
// row; only running out of memory is an error.
PESTLE_NODISCARD pestle_status_t pestle_plugin_probe(pestle_context_t* context,
                                                     pestle_arena_t* arena,
                                                     pestle_plugin_t* plugin);
// The part of it that runs the file's code. |at| is told before each step what
// the step is: "its constructors", "pestle_backend_score" ...
typedef void (*pestle_plugin_at_fn_t)(void* user, const char* step);
PESTLE_NODISCARD pestle_status_t pestle_plugin_open(pestle_arena_t* arena,
                                                    pestle_plugin_t* plugin,
                                                    pestle_plugin_at_fn_t at,
                                                    void* user);
PESTLE_NODISCARD pestle_status_t pestle_plugin_probe_static(
    pestle_arena_t* arena, pestle_backend_abi_info_fn_t abi_info,
    pestle_backend_score_fn_t score, pestle_backend_init_fn_t init,
    bool cpu_only, pestle_plugin_t** out_plugin);
// Initialises a candidate that was not refused; sets |backend| or |reason|. |at|
// may be NULL.
PESTLE_NODISCARD pestle_status_t pestle_plugin_start(pestle_context_t* context,
                                                     pestle_arena_t* arena,
                                                     pestle_plugin_t* plugin,
                                                     pestle_plugin_at_fn_t at,
                                                     void* user);
// Undoes it, as far as the backend can.
void pestle_plugin_stop(pestle_plugin_t* plugin);
// A refusal of what was asked for by name, as an error.
PESTLE_NODISCARD pestle_status_t
pestle_plugin_refusal(const pestle_plugin_t* plugin);
// Sets the reason.
PESTLE_NODISCARD PESTLE_PRINTF(4, 5) pestle_status_t
    pestle_plugin_refuse(pestle_arena_t* arena, pestle_plugin_t* plugin,
                         pestle_verdict_t verdict, const char* format, ...);
// The row's path, or words for one that is linked in.
const char* pestle_plugin_where(const pestle_plugin_t* plugin);

// --- plugin_target.c ---

// The device that compiles for backend |name| without being one, started if
// need be; NULL when no backend of that name offers it.
PESTLE_NODISCARD pestle_status_t
pestle_registry_target(pestle_registry_t* registry, pestle_str_t name,
                       struct pestle_device_s** out_device);

// --- plugin_check.c: what a plugin says of itself ---

// No table is longer: a size beyond it is not one.
#define PESTLE_LONGEST_TABLE ((size_t)1 << 16)

PESTLE_NODISCARD pestle_status_t pestle_plugin_check_abi(
    pestle_arena_t* arena, const pestle_backend_abi_info_t* info,
    pestle_plugin_t* plugin);
PESTLE_NODISCARD pestle_status_t pestle_plugin_check_tables(
    pestle_arena_t* arena, const pestle_backend_t* backend,
    pestle_plugin_t* plugin);

// INCOMPATIBLE when |caps|, which backend |name| filled, describe no target: a
// number that schedules would divide by, or run past the end of an array with.
PESTLE_NODISCARD pestle_status_t
pestle_plugin_check_caps(const pestle_target_caps_t* caps, const char* name);

// --- plugin_filter.c ---

// Whether |text| is of the form |glob|, in which * stands for any characters
// and ? for one.
bool pestle_glob_matches(const char* glob, const char* text);
// Refuses a row by its names, or by what the filter's callback says of it.
// |filter| may be NULL.
PESTLE_NODISCARD pestle_status_t
pestle_plugin_filter_name(const pestle_backend_filter_t* filter,
                          pestle_arena_t* arena, pestle_plugin_t* plugin);
PESTLE_NODISCARD pestle_status_t
pestle_plugin_filter_candidate(const pestle_backend_filter_t* filter,
                               pestle_arena_t* arena, pestle_plugin_t* plugin);

// --- plugin_elf_posix.c ---

// Looks at a file before the system's loader does, which ends the process when
// a sanitizer's runtime comes late: NULL, or why it is not loaded, as a static
// text that completes "<path> ...".
const char* pestle_plugin_inspect(const char* path);

// --- plugin_trust_posix.c ---

// Whether only root, this user and the owner of the library can change |path|
// and the folder that it is in; finds the file behind links. NULL and
// |*out_reason| NULL, or a reason that completes "<path>: ...".
PESTLE_NODISCARD pestle_status_t pestle_plugin_trust(
    pestle_arena_t* arena, const char* path, const char** out_real_path,
    pestle_file_stamp_t* out_stamp, const char** out_reason);
// Whether |path| is still the file of |stamp|.
bool pestle_plugin_is_same(const char* path, const pestle_file_stamp_t* stamp);

// --- plugin_child_posix.c ---

// Opens and starts the row's file in a child process and refuses the row when
// that says so or does not survive it. Sets name, build id and score.
PESTLE_NODISCARD pestle_status_t pestle_plugin_try_in_child(
    pestle_context_t* context, pestle_arena_t* arena, pestle_plugin_t* plugin);

// --- plugin_tried.c: what came back is remembered in the folder of the cache ---

// From what the row's file, which is judged, has come back in children so far;
// 0 when that is not remembered, or nothing may be.
PESTLE_NODISCARD pestle_status_t
pestle_plugin_tried(pestle_context_t* context, pestle_arena_t* arena,
                    const pestle_plugin_t* plugin, pestle_tried_t* out_tried);
// Remembers |tried| too; 0: forgets all that is known of the file. That it
// cannot be written is no error.
PESTLE_NODISCARD pestle_status_t
pestle_plugin_note_tried(pestle_context_t* context, pestle_arena_t* arena,
                         const pestle_plugin_t* plugin, pestle_tried_t tried);

// --- plugin_search.c ---

// Fills registry->search_paths, once.
PESTLE_NODISCARD pestle_status_t
pestle_plugin_search_paths(pestle_registry_t* registry);
// The plugin files of the search path, in its order.
PESTLE_NODISCARD pestle_status_t
pestle_plugin_search(pestle_registry_t* registry, pestle_paths_t* paths);

// --- plugin_static.c ---

typedef struct pestle_plugin_static_t {
  pestle_backend_abi_info_fn_t abi_info;
  pestle_backend_score_fn_t score;
  pestle_backend_init_fn_t init;
  bool is_built_in;
} pestle_plugin_static_t;
// The backends that are linked in; the last row has NULL functions.
const pestle_plugin_static_t* pestle_plugin_static_rows(void);

#endif  // PESTLE_RUNTIME_REGISTRY_H_
