// SPDX-License-Identifier: Apache-2.0
// Shared libraries that register ops of their own: trusted as plugins are, opened,
// never closed, asked once for each context.
#include <string.h>

#include "base/arena.h"
#include "base/dynlib.h"
#include "base/require.h"
#include "pestle/custom_op.h"
#include "runtime/context.h"

static pestle_status_t refuse(const char* path, const char* why) {
  return PESTLE_ERROR(UNAVAILABLE, "extension '%s' is not loaded: %s", path,
                      why);
}

// An extension that is linked to another copy of the library than this one would
// hand that one's contexts to this one's functions.
static pestle_status_t check_library(pestle_arena_t* arena, const char* path,
                                     pestle_dynlib_t library) {
  const char *theirs, *ours;
  pestle_dynlib_fn_t found =
      pestle_dynlib_function(library, "pestle_context_register_op");
  if (!found) return NULL;  // it takes what the program has
  PESTLE_TRY(pestle_dynlib_path_of(found, arena, &theirs));
  PESTLE_TRY(
      pestle_dynlib_path_of((pestle_dynlib_fn_t)check_library, arena, &ours));
  if (!strcmp(theirs, ours)) return NULL;
  return PESTLE_ERROR(INCOMPATIBLE,
                      "extension '%s' uses the library '%s', this program has "
                      "Pestle from '%s'; let both have the same",
                      path, theirs, ours);
}

static pestle_status_t load(pestle_context_t* context, pestle_arena_t* arena,
                            const char* path) {
  const char *real_path, *reason;
  pestle_file_stamp_t stamp;
  pestle_dynlib_t library;
  PESTLE_TRY(pestle_plugin_trust(arena, path, &real_path, &stamp, &reason));
  if (reason) return refuse(path, reason);
  PESTLE_TRY(pestle_status_annotate(pestle_dynlib_open(real_path, &library),
                                    "loading extension '%s'", path));
  pestle_extension_init_fn_t init =
      (pestle_extension_init_fn_t)pestle_dynlib_function(
          library, "pestle_extension_init");
  if (!init) {
    return refuse(path,
                  "it has no function pestle_extension_init; make it with "
                  "pestle_add_extension() of the CMake package");
  }
  PESTLE_TRY(check_library(arena, path, library));
  return pestle_status_annotate(init(context, PESTLE_EXTENSION_ABI),
                                "in pestle_extension_init of '%s'", path);
}

pestle_status_t pestle_context_load_extension(pestle_context_t* context,
                                              const char* path) {
  PESTLE_REQUIRE(context && path && *path, "a context and a path");
  pestle_context_enter(context);
  pestle_arena_t arena;
  pestle_arena_init(context->core.allocator, &arena);
  pestle_status_t status = load(context, &arena, path);
  pestle_arena_deinit(&arena);
  return status;
}
