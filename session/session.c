// SPDX-License-Identifier: Apache-2.0
// Life of a session, and what it says of itself.
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/require.h"
#include "pestle/plan_format.h"
#include "pestle/plan_set.h"
#include "session/internal.h"

enum { USUAL_EXECUTABLES = 16 };

// --- Options ---

static pestle_status_t keep(pestle_session_t* s, const char** text) {
  if (!*text) return NULL;
  *text = pestle_arena_strndup(&s->arena, pestle_str(*text));
  return *text ? NULL : PESTLE_OOM();
}

static pestle_status_t read_compile(pestle_session_t* s,
                                    const pestle_compile_options_t* options) {
  s->compile = (pestle_compile_options_t){.struct_size = sizeof(s->compile)};
  if (!options) return NULL;
  pestle_compile_options_t read = {0};
  size_t size = options->struct_size;
  if (size < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_compile_options_t.struct_size is not set");
  }
  memcpy(&read, options, size < sizeof(read) ? size : sizeof(read));
  s->compile.numerics = read.numerics;
  s->compile.target_cpu = read.target_cpu;
  s->compile.no_fuse = read.no_fuse;
  s->compile.no_cache = read.no_cache;
  s->compile.lock_path = read.lock_path;
  PESTLE_TRY(keep(s, &s->compile.target_cpu));
  return keep(s, &s->compile.lock_path);
}

static pestle_status_t read_options(const pestle_session_options_t* options,
                                    pestle_session_options_t* out) {
  *out = (pestle_session_options_t){.struct_size = sizeof(*out)};
  if (!options) return NULL;
  size_t size = options->struct_size;
  if (size < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_session_options_t.struct_size is not set");
  }
  memcpy(out, options, size < sizeof(*out) ? size : sizeof(*out));
  return NULL;
}

// --- Life ---

static bool is_plan(const char* path) {
  pestle_mapping_t mapping;
  pestle_status_t status = pestle_file_map(path, &mapping);
  bool is = !status && mapping.size >= 8 &&
            (!memcmp(mapping.data, PESTLE_PLAN_MAGIC, 8) ||
             !memcmp(mapping.data, PESTLE_PLAN_SET_MAGIC, 8));
  if (!status) pestle_file_unmap(&mapping);
  pestle_status_release(status);
  return is;
}

static pestle_status_t open_plans(pestle_session_t* s, const char* path,
                                  const pestle_session_options_t* o) {
  if (o->import || o->compile || o->shapes) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "'%s' is compiled already: import, compile and shapes "
                        "are for models",
                        path);
  }
  return pestle_session_open_plans(s, path);
}

// Without a thread declared shapes are compiled by whoever makes the session.
static pestle_status_t begin(pestle_session_t* s,
                             const pestle_session_options_t* o) {
  if (o->shapes) PESTLE_TRY(pestle_session_declare(s, o->shapes));
  if (!o->waiting) return pestle_session_start(s);
  return pestle_session_work_off(s);
}

static pestle_status_t open(pestle_session_t* s, const char* path,
                            const pestle_session_options_t* o) {
  if (o->quick && o->waiting) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "quick and waiting: without a thread nobody would "
                        "compile what takes the place of the quick tier");
  }
  if (is_plan(path)) return open_plans(s, path, o);
  PESTLE_TRY(read_compile(s, o->compile));
  if (!s->device)
    PESTLE_TRY(pestle_context_device(s->context, NULL, &s->device));
  PESTLE_TRY(pestle_session_import(s, path, o->import));
  return begin(s, o);
}

static void destroy(pestle_session_t* s) {
  pestle_session_end(s);
  pestle_map_deinit(&s->by_key);
  pestle_vec_deinit(&s->shapes);
  pestle_vec_deinit(&s->queue);
  pestle_status_release(s->failure);
  pestle_module_release(s->module);
  pestle_executable_release(s->first);
  pestle_session_free_blocks(s);
  pestle_arena_pool_release(s->arenas);
  pestle_arena_deinit(&s->arena);
  pestle_mutex_deinit(&s->mutex);
  pestle_mutex_deinit(&s->block_mutex);
  pestle_cond_deinit(&s->changed);
  pestle_context_t* context = s->context;
  pestle_dealloc(s->allocator, s, sizeof(*s));
  pestle_context_release(context);
}

pestle_status_t pestle_session_create(pestle_context_t* context,
                                      const char* path,
                                      const pestle_session_options_t* options,
                                      pestle_session_t** out_session) {
  if (out_session) *out_session = NULL;
  PESTLE_REQUIRE(context && path && out_session,
                 "a context, a path and a place for the session");
  pestle_session_options_t o;
  PESTLE_TRY(read_options(options, &o));
  pestle_allocator_t allocator = pestle_context_allocator(context);
  pestle_session_t* s = pestle_alloc_zero(allocator, sizeof(*s));
  if (!s) return PESTLE_OOM();
  pestle_refcount_init(&s->refcount);
  pestle_context_retain(context);
  s->context = context;
  s->allocator = allocator;
  s->device = o.device;
  s->is_exact = o.exact;
  s->is_quick = o.quick;
  s->most = o.most_executables ? o.most_executables : USUAL_EXECUTABLES;
  pestle_arena_init(allocator, &s->arena);
  pestle_mutex_init(&s->mutex);
  pestle_mutex_init(&s->block_mutex);
  pestle_cond_init(&s->changed);
  pestle_map_init(allocator, &s->by_key);
  pestle_vec_init(&s->shapes, allocator);
  pestle_vec_init(&s->queue, allocator);
  pestle_status_t status = pestle_arena_pool_create(context, &s->arenas);
  if (!status) status = open(s, path, &o);
  if (status) {
    destroy(s);
  } else {
    *out_session = s;
  }
  return pestle_status_annotate(status, "while opening a session of '%s'",
                                path);
}

void pestle_session_retain(pestle_session_t* session) {
  if (session) pestle_refcount_retain(&session->refcount);
}

void pestle_session_release(pestle_session_t* session) {
  if (session && pestle_refcount_release(&session->refcount)) destroy(session);
}

// --- What it says ---

static bool is_at_work(const pestle_session_t* s) {
  if (s->queue.size) return true;
  for (size_t i = 0; i < s->shapes.size; ++i) {
    if (s->shapes.data[i]->is_busy) return true;
  }
  return false;
}

pestle_status_t pestle_session_wait(pestle_session_t* session,
                                    const pestle_control_t* control) {
  PESTLE_REQUIRE(
      session && (!control || control->struct_size >= sizeof(size_t)),
      "a session, and a control whose struct_size is set");
  enum { STEP_NS = 10000000 };
  pestle_control_t c = {0};
  if (control) {
    size_t size = control->struct_size;
    memcpy(&c, control, size < sizeof(c) ? size : sizeof(c));
  }
  pestle_session_t* s = session;
  pestle_status_t status = NULL;
  pestle_mutex_lock(&s->mutex);
  while (!status && is_at_work(s)) {
    int64_t now = pestle_clock_ns();
    if (c.cancel && __atomic_load_n(c.cancel, __ATOMIC_RELAXED)) {
      status = PESTLE_ERROR(CANCELLED, "the wait for a session was cancelled");
    } else if (c.deadline_ns && now >= c.deadline_ns) {
      status = PESTLE_ERROR(DEADLINE_EXCEEDED,
                            "a session was not ready by the deadline");
    } else if (control) {
      (void)pestle_cond_wait_until(&s->changed, &s->mutex, now + STEP_NS);
    } else {
      pestle_cond_wait(&s->changed, &s->mutex);
    }
  }
  if (!status) {
    status = s->failure;
    s->failure = NULL;
  }
  pestle_mutex_unlock(&s->mutex);
  return status;
}

pestle_status_t pestle_session_stats(pestle_session_t* session,
                                     pestle_session_stats_t* out_stats) {
  PESTLE_REQUIRE(
      session && out_stats && out_stats->struct_size >= sizeof(size_t),
      "a session, and statistics whose struct_size is set");
  size_t size = out_stats->struct_size;
  pestle_mutex_lock(&session->mutex);
  pestle_session_stats_t stats = session->stats;
  stats.shapes = session->shapes.size;
  stats.queued = session->queue.size;
  for (size_t i = 0; i < session->shapes.size; ++i) {
    stats.executables += session->shapes.data[i]->is_own;
    stats.quick += session->shapes.data[i]->is_quick;
  }
  pestle_mutex_unlock(&session->mutex);
  pestle_mutex_lock(&session->block_mutex);
  stats.buffer_bytes = session->block_bytes;
  pestle_mutex_unlock(&session->block_mutex);
  stats.arena_bytes = pestle_arena_pool_bytes(session->arenas);
  stats.struct_size = size;
  memcpy(out_stats, &stats, size < sizeof(stats) ? size : sizeof(stats));
  return NULL;
}

static int32_t state_of(const session_shape_t* shape) {
  if (shape->is_quick) return PESTLE_SESSION_QUICK;
  if (shape->is_own) return PESTLE_SESSION_READY;
  if (shape->is_queued || shape->is_busy) return PESTLE_SESSION_QUEUED;
  if (shape->is_failed && !shape->route) return PESTLE_SESSION_FAILED;
  return shape->route ? PESTLE_SESSION_PADDED : PESTLE_SESSION_QUEUED;
}

// The latest that was used before |*before|.
static const session_shape_t* latest(const pestle_session_t* s,
                                     const session_shape_t* before) {
  const session_shape_t* found = NULL;
  for (size_t i = 0; i < s->shapes.size; ++i) {
    const session_shape_t* shape = s->shapes.data[i];
    bool is_later =
        before && (shape->used > before->used ||
                   (shape->used == before->used && shape >= before));
    if (is_later) continue;
    if (!found || shape->used > found->used ||
        (shape->used == found->used && shape > found)) {
      found = shape;
    }
  }
  return found;
}

pestle_status_t pestle_session_visit(
    pestle_session_t* session,
    void (*visit)(void* user, const pestle_session_shape_t* shape),
    void* user) {
  PESTLE_REQUIRE(session && visit, "a session and a function to visit");
  pestle_strbuf_t text;
  pestle_strbuf_init(session->allocator, &text);
  pestle_mutex_lock(&session->mutex);
  for (const session_shape_t* at = NULL; (at = latest(session, at));) {
    pestle_strbuf_clear(&text);
    pestle_session_shape_text(session, at, &text);
    pestle_session_shape_t shape = {.struct_size = sizeof(shape),
                                    .text = pestle_strbuf_cstr(&text),
                                    .state = state_of(at),
                                    .declared = at->is_declared,
                                    .runs = at->runs,
                                    .note = at->note ? at->note : ""};
    visit(user, &shape);
  }
  pestle_mutex_unlock(&session->mutex);
  pestle_status_t status = pestle_strbuf_status(&text);
  pestle_strbuf_deinit(&text);
  return status;
}

size_t pestle_session_input_count(const pestle_session_t* session) {
  return session ? session->input_count : 0;
}

size_t pestle_session_output_count(const pestle_session_t* session) {
  return session ? session->output_count : 0;
}

pestle_io_info_t pestle_session_input(const pestle_session_t* session,
                                      size_t index) {
  if (!session || index >= session->input_count)
    return (pestle_io_info_t){.name = ""};
  const session_input_t* input = &session->inputs[index];
  return (pestle_io_info_t){input->name, input->dtype, input->rank, input->dims,
                            false};
}

const char* pestle_session_output_name(const pestle_session_t* session,
                                       size_t index) {
  return session && index < session->output_count ? session->output_names[index]
                                                  : "";
}

bool pestle_session_input_is_strings(const pestle_session_t* session,
                                     size_t index) {
  if (!session || index >= session->input_count) return false;
  return session->module
             ? pestle_session_model_is_strings(session, false, index)
             : pestle_executable_input_is_strings(session->first, index);
}

bool pestle_session_output_is_strings(const pestle_session_t* session,
                                      size_t index) {
  if (!session || index >= session->output_count) return false;
  return session->module
             ? pestle_session_model_is_strings(session, true, index)
             : pestle_executable_output_is_strings(session->first, index);
}

pestle_status_t pestle_session_strings_create(const pestle_session_t* session,
                                              pestle_strings_t** out_strings) {
  if (out_strings) *out_strings = NULL;
  PESTLE_REQUIRE(session && out_strings, "a session, a place for the strings");
  return session->module ? pestle_session_model_strings(session, out_strings)
                         : pestle_strings_create(session->first, out_strings);
}
