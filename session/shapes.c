// SPDX-License-Identifier: Apache-2.0
// The table of shapes and the thread that compiles.
#include <string.h>

#include "base/context.h"
#include "base/mem.h"
#include "session/internal.h"

// Shapes beyond these are forgotten, the one that did not run for longest first.
enum { MOST_SHAPES = 4096 };

// --- Shapes ---

static void free_shape(pestle_session_t* s, session_shape_t* shape) {
  pestle_module_release(shape->module);
  pestle_session_route_release(shape->route);
  pestle_free_str(s->allocator, shape->note);
  pestle_dealloc(s->allocator, shape->key, shape->key_size);
  pestle_dealloc(s->allocator, shape, sizeof(*shape));
}

static bool is_idle(const session_shape_t* shape) {
  return !shape->is_busy && !shape->is_queued && !shape->is_declared &&
         !shape->pins;
}

static void forget_oldest(pestle_session_t* s) {
  size_t found = SIZE_MAX;
  for (size_t i = 0; i < s->shapes.size; ++i) {
    const session_shape_t* shape = s->shapes.data[i];
    if (!is_idle(shape) || shape->is_own) continue;
    if (found == SIZE_MAX || shape->used < s->shapes.data[found]->used)
      found = i;
  }
  if (found == SIZE_MAX) return;
  session_shape_t* shape = s->shapes.data[found];
  s->shapes.data[found] = pestle_vec_last(&s->shapes);
  --s->shapes.size;
  (void)pestle_map_remove(&s->by_key, shape->key, shape->key_size);
  free_shape(s, shape);
}

static pestle_status_t add_shape(pestle_session_t* s, const char* key,
                                 size_t key_size, session_shape_t** out_shape) {
  if (s->shapes.size >= MOST_SHAPES) forget_oldest(s);
  session_shape_t* shape = pestle_alloc_zero(s->allocator, sizeof(*shape));
  if (!shape) return PESTLE_OOM();
  shape->key_size = key_size;
  shape->key = pestle_alloc(s->allocator, key_size);
  shape->dims = (int64_t*)(void*)shape->key;
  bool is_added = shape->key && pestle_vec_push(&s->shapes, shape);
  if (shape->key) memcpy(shape->key, key, key_size);
  pestle_map_value_t* value =
      is_added ? pestle_map_put(&s->by_key, key, key_size, NULL) : NULL;
  if (!value) {
    if (is_added) --s->shapes.size;
    free_shape(s, shape);
    return PESTLE_OOM();
  }
  value->ptr = shape;
  *out_shape = shape;
  return NULL;
}

pestle_status_t pestle_session_shape(pestle_session_t* s, const char* key,
                                     size_t key_size,
                                     session_shape_t** out_shape) {
  const pestle_map_value_t* value = pestle_map_find(&s->by_key, key, key_size);
  if (!value) return add_shape(s, key, key_size, out_shape);
  *out_shape = value->ptr;
  return NULL;
}

void pestle_session_shape_text(const pestle_session_t* s,
                               const session_shape_t* shape,
                               pestle_strbuf_t* out) {
  for (size_t i = 0; i < s->input_count; ++i) {
    const session_input_t* input = &s->inputs[i];
    pestle_strbuf_append_c(out, i ? ", " : "");
    pestle_strbuf_append_name(out, input->name);
    pestle_strbuf_append_c(out, " [");
    for (int32_t d = 0; d < input->rank; ++d) {
      pestle_strbuf_append_c(out, d ? ", " : "");
      pestle_strbuf_append_i64(out, shape->dims[input->first + (size_t)d]);
    }
    pestle_strbuf_append_char(out, ']');
  }
}

static void set_note(pestle_session_t* s, session_shape_t* shape,
                     const char* text) {
  pestle_free_str(s->allocator, shape->note);
  shape->note = text && text[0] ? pestle_strdup(s->allocator, text) : NULL;
}

// --- Executables ---

static void drop_route(session_shape_t* shape) {
  pestle_session_route_release(shape->route);
  shape->route = NULL;
  shape->server = NULL;
  shape->is_own = shape->is_quick = false;
}

// Takes the executable of |shape| away, and from those that it serves.
static void evict(pestle_session_t* s, session_shape_t* shape) {
  for (size_t i = 0; i < s->shapes.size; ++i) {
    if (s->shapes.data[i]->server == shape) drop_route(s->shapes.data[i]);
  }
  drop_route(shape);
  if (!shape->is_busy) {
    pestle_module_release(shape->module);
    shape->module = NULL;
  }
  --s->own_count;
  ++s->stats.evictions;
}

static void make_room(pestle_session_t* s, const session_shape_t* fresh) {
  while (s->own_count > s->most) {
    session_shape_t* oldest = NULL;
    for (size_t i = 0; i < s->shapes.size; ++i) {
      session_shape_t* shape = s->shapes.data[i];
      if (!shape->is_own || !is_idle(shape) || shape == fresh) continue;
      if (!oldest || shape->used < oldest->used) oldest = shape;
    }
    if (!oldest) return;
    evict(s, oldest);
  }
}

// |*route|, a padded one, goes by |executable| of the same module from now on. Where
// memory lacks it stays as it is.
static void redirect(const pestle_session_t* s, session_route_t** route,
                     pestle_executable_t* executable) {
  const session_route_t* r = *route;
  session_route_t* made;
  if (r->executable == executable) return;
  pestle_status_t status = pestle_session_route_create(
      s, executable, r->n, r->m, r->input_rows, r->output_rows, &made);
  pestle_status_release(status);
  if (status) return;
  pestle_session_route_release(*route);
  *route = made;
}

static void redirect_served(pestle_session_t* s, const session_shape_t* shape,
                            pestle_executable_t* executable) {
  for (size_t i = 0; i < s->shapes.size; ++i) {
    session_shape_t* served = s->shapes.data[i];
    if (served->server == shape) redirect(s, &served->route, executable);
  }
}

void pestle_session_adopt(pestle_session_t* s, session_shape_t* shape,
                          session_route_t* route) {
  bool is_new = !shape->is_own;
  s->stats.replaced += shape->is_quick;
  if (!is_new) redirect_served(s, shape, route->executable);
  if (shape->route) drop_route(shape);
  shape->route = route;
  shape->is_own = true;
  shape->is_failed = false;
  if (is_new && !shape->is_declared) {
    ++s->own_count;
    make_room(s, shape);
  }
}

// --- Compiling, by whoever has the shape to itself; the lock is not held ---

// By the quick tier, where nothing serves yet: then the full one is queued.
static pestle_status_t make_own(pestle_session_t* s, session_shape_t* shape,
                                bool is_quick, const pestle_tensor_t* inputs) {
  int64_t begin = pestle_clock_ns();
  pestle_tier_t tier = is_quick ? PESTLE_TIER_QUICK : PESTLE_TIER_FULL;
  pestle_executable_t* executable = NULL;
  session_route_t* route = NULL;
  pestle_status_t status = NULL;
  if (!shape->module) status = pestle_session_specialize(s, shape, inputs);
  if (!status) status = pestle_session_compile(s, shape, tier, &executable);
  if (!status) {
    status =
        pestle_session_route_create(s, executable, 1, 1, NULL, NULL, &route);
  }
  pestle_executable_release(executable);
  pestle_mutex_lock(&s->mutex);
  s->stats.compile_ns += pestle_clock_ns() - begin;
  if (status) {
    ++s->stats.failed_compiles;
  } else {
    ++s->stats.compiles;
    s->stats.quick_compiles += is_quick;
    pestle_session_adopt(s, shape, route);
    shape->is_quick = is_quick;
    if (is_quick) status = pestle_session_queue(s, shape);
  }
  pestle_mutex_unlock(&s->mutex);
  return status;
}

// --- Padding ---

// The rows of |shape| and of |by|: |*out_m| and |*out_n|, where all extents that
// differ are these. False: they are not alike.
static bool differ_by_rows(const pestle_session_t* s,
                           const session_shape_t* shape,
                           const session_shape_t* by, int64_t* out_m,
                           int64_t* out_n) {
  size_t extents = s->extent_count * sizeof(int64_t);
  if (shape->key_size != by->key_size ||
      memcmp(shape->key + extents, by->key + extents,
             shape->key_size - extents) != 0) {
    return false;
  }
  *out_m = *out_n = 0;
  for (size_t i = 0; i < s->extent_count; ++i) {
    if (shape->dims[i] == by->dims[i]) continue;
    if (*out_m && (shape->dims[i] != *out_m || by->dims[i] != *out_n))
      return false;
    *out_m = shape->dims[i];
    *out_n = by->dims[i];
  }
  return *out_m > 0 && *out_n > *out_m;
}

// The shape with the least rows above |*least| that may serve |shape|. |*out_pending|:
// one that is declared, and better, is yet to be compiled.
static session_shape_t* next_server(const pestle_session_t* s,
                                    const session_shape_t* shape, int64_t least,
                                    int64_t* out_n, bool* out_pending) {
  session_shape_t* found = NULL;
  int64_t m, n;
  *out_pending = false;
  for (size_t i = 0; i < s->shapes.size; ++i) {
    session_shape_t* by = s->shapes.data[i];
    if (by == shape || !differ_by_rows(s, shape, by, &m, &n) || n <= least)
      continue;
    bool is_ready = by->is_own && by->module;
    if (!is_ready) {
      *out_pending |= by->is_declared && (by->is_queued || by->is_busy);
      continue;
    }
    if (found && n >= *out_n) continue;
    found = by;
    *out_n = n;
  }
  return found;
}

// Looks for a larger executable that may serve |shape|, which this thread has to
// itself. The lock is held, but not while graphs are compared.
static pestle_status_t find_server(pestle_session_t* s, session_shape_t* shape,
                                   const pestle_tensor_t* inputs,
                                   bool* out_pending) {
  int64_t least = 0, n;
  session_shape_t* by;
  pestle_status_t status = NULL;
  pestle_strbuf_t why;
  pestle_strbuf_init(s->allocator, &why);
  *out_pending = false;
  while (!status &&
         (by = next_server(s, shape, least, &n, out_pending)) != NULL) {
    // What is compared stays, whatever becomes of |by| meanwhile.
    pestle_module_t* many = by->module;
    pestle_executable_t* executable = by->route->executable;
    pestle_executable_retain(executable);
    ++by->pins;
    pestle_mutex_unlock(&s->mutex);
    session_route_t* route = NULL;
    pestle_strbuf_clear(&why);
    if (!shape->module) status = pestle_session_specialize(s, shape, inputs);
    if (!status) {
      status = pestle_session_pad(s, shape, many, by->dims, executable, &route,
                                  &why);
    }
    pestle_mutex_lock(&s->mutex);
    --by->pins;
    pestle_executable_release(executable);
    if (route) {
      // A full one may have come meanwhile.
      redirect(s, &route, by->route->executable);
      shape->route = route;
      shape->server = by;
      *out_pending = false;
      break;
    }
    least = n;
  }
  set_note(s, shape, pestle_strbuf_cstr(&why));
  pestle_strbuf_deinit(&why);
  return status;
}

// --- A route for a run ---

static pestle_status_t unknown_shape(const pestle_session_t* s,
                                     const session_shape_t* shape) {
  enum { MOST = 16 };
  pestle_strbuf_t text, wanted;
  pestle_strbuf_init(s->allocator, &text);
  pestle_strbuf_init(s->allocator, &wanted);
  pestle_session_shape_text(s, shape, &wanted);
  size_t shown = 0, count = 0;
  for (size_t i = 0; i < s->shapes.size; ++i) {
    if (!s->shapes.data[i]->is_declared) continue;
    if (++count > MOST) continue;
    pestle_strbuf_append_c(&text, shown++ ? "; " : "");
    pestle_session_shape_text(s, s->shapes.data[i], &text);
  }
  pestle_status_t status = PESTLE_ERROR(
      NOT_FOUND,
      "the plan was not compiled for %s; it has %s%s; compile the model for "
      "this shape too: 'pestle compile MODEL --dim NAME=N,M -o FILE.plan'",
      pestle_strbuf_cstr(&wanted), pestle_strbuf_cstr(&text),
      count > MOST ? "; and more" : "");
  pestle_strbuf_deinit(&text);
  pestle_strbuf_deinit(&wanted);
  return status;
}

static void remove_queued(pestle_session_t* s, session_shape_t* shape) {
  for (size_t i = 0; i < s->queue.size; ++i) {
    if (s->queue.data[i] != shape) continue;
    memmove(s->queue.data + i, s->queue.data + i + 1,
            (s->queue.size - i - 1) * sizeof(*s->queue.data));
    --s->queue.size;
    break;
  }
  shape->is_queued = false;
}

// |shape| has no route and nobody else is at it. The lock is held.
static pestle_status_t find_now(pestle_session_t* s, session_shape_t* shape,
                                const pestle_tensor_t* inputs,
                                bool* out_pending) {
  *out_pending = false;
  if (!s->module) return unknown_shape(s, shape);
  shape->is_busy = true;
  pestle_status_t status = NULL;
  if (!s->is_exact && !shape->is_declared)
    status = find_server(s, shape, inputs, out_pending);
  // Where shapes are declared, others are served by them and not compiled.
  bool wants_own = shape->server && !s->has_declared && s->has_thread;
  if (!status && wants_own) status = pestle_session_queue(s, shape);
  if (!status && !shape->route && !*out_pending) {
    remove_queued(s, shape);
    pestle_mutex_unlock(&s->mutex);
    status = make_own(s, shape, s->is_quick, inputs);
    pestle_mutex_lock(&s->mutex);
  }
  bool keeps_module = shape->is_own || shape->is_queued || *out_pending;
  if (!keeps_module) {
    pestle_module_release(shape->module);
    shape->module = NULL;
  }
  shape->is_failed = status != NULL;
  if (status) set_note(s, shape, pestle_status_message(status));
  shape->is_busy = false;
  pestle_cond_broadcast(&s->changed);
  return status;
}

pestle_status_t pestle_session_find_route(pestle_session_t* s, const char* key,
                                          size_t key_size,
                                          const pestle_tensor_t* inputs,
                                          session_route_t** out_route) {
  *out_route = NULL;
  session_shape_t* shape;
  bool has_waited = false, is_pending;
  pestle_mutex_lock(&s->mutex);
  pestle_status_t status = NULL;
  while (!status && !*out_route) {
    // Whoever waited may find it forgotten.
    status = pestle_session_shape(s, key, key_size, &shape);
    if (status) break;
    shape->used = ++s->ticks;
    if (shape->route) {
      ++shape->runs;
      *out_route = shape->route;
      pestle_refcount_retain(&shape->route->refcount);
    } else if (shape->is_busy) {
      has_waited = true;
      pestle_cond_wait(&s->changed, &s->mutex);
    } else {
      has_waited = true;
      status = find_now(s, shape, inputs, &is_pending);
      if (!status && is_pending) pestle_cond_wait(&s->changed, &s->mutex);
    }
  }
  s->stats.waits += has_waited;
  pestle_mutex_unlock(&s->mutex);
  return status;
}

// --- The thread ---

pestle_status_t pestle_session_queue(pestle_session_t* s,
                                     session_shape_t* shape) {
  if (shape->is_queued) return NULL;
  if (!pestle_vec_push(&s->queue, shape)) return PESTLE_OOM();
  shape->is_queued = true;
  pestle_cond_broadcast(&s->changed);
  return NULL;
}

static void report(pestle_session_t* s, session_shape_t* shape,
                   pestle_status_t status) {
  bool is_ending = s->is_ending;
  shape->is_failed = true;
  set_note(s, shape, pestle_status_message(status));
  if (is_ending || s->failure) {
    pestle_status_release(status);
    return;
  }
  s->failure = status;
  pestle_context_log(s->context, PESTLE_LOG_WARN,
                     "a shape was not compiled: %s",
                     pestle_status_message(status));
}

// The first that nobody is at; those without an executable before those whose quick
// one is to be replaced. NULL: none.
static session_shape_t* next_queued(const pestle_session_t* s) {
  session_shape_t* found = NULL;
  for (size_t i = 0; i < s->queue.size; ++i) {
    session_shape_t* shape = s->queue.data[i];
    if (shape->is_busy) continue;
    if (!shape->is_quick) return shape;
    if (!found) found = shape;
  }
  return found;
}

static void work(void* argument) {
  pestle_session_t* s = argument;
  pestle_mutex_lock(&s->mutex);
  while (!s->is_ending) {
    session_shape_t* shape = next_queued(s);
    if (!shape) {
      pestle_cond_wait(&s->changed, &s->mutex);
      continue;
    }
    remove_queued(s, shape);
    shape->is_busy = true;
    bool is_quick = s->is_quick && !shape->route;
    pestle_mutex_unlock(&s->mutex);
    pestle_status_t status = make_own(s, shape, is_quick, NULL);
    pestle_mutex_lock(&s->mutex);
    if (status) report(s, shape, status);
    shape->is_busy = false;
    pestle_cond_broadcast(&s->changed);
  }
  pestle_mutex_unlock(&s->mutex);
}

pestle_status_t pestle_session_start(pestle_session_t* s) {
  PESTLE_TRY(pestle_thread_start(work, s, "pestle-session", &s->thread));
  s->has_thread = true;
  return NULL;
}

pestle_status_t pestle_session_work_off(pestle_session_t* s) {
  pestle_status_t status = NULL;
  while (!status && s->queue.size) {
    session_shape_t* shape = s->queue.data[0];
    remove_queued(s, shape);
    status = make_own(s, shape, false, NULL);
  }
  return status;
}

void pestle_session_end(pestle_session_t* s) {
  pestle_mutex_lock(&s->mutex);
  s->is_ending = true;
  __atomic_store_n(&s->cancel, 1, __ATOMIC_RELAXED);
  pestle_cond_broadcast(&s->changed);
  pestle_mutex_unlock(&s->mutex);
  if (s->has_thread) pestle_thread_join(&s->thread);
  s->has_thread = false;
  for (size_t i = 0; i < s->shapes.size; ++i)
    free_shape(s, s->shapes.data[i]);
  s->shapes.size = 0;
}
