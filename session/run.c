// SPDX-License-Identifier: Apache-2.0
// A run: names to places, the shape, its route, padding, outputs.
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/closest.h"
#include "base/mem.h"
#include "base/require.h"
#include "runtime/view.h"
#include "session/internal.h"

// One run. Tables lie in one block.
typedef struct run_t {
  pestle_session_t* session;
  session_route_t* route;
  pestle_tensor_t* inputs;         // of the session, in its order
  pestle_named_tensor_t** wanted;  // for each output, or NULL
  pestle_tensor_t* views;          // of the executable: inputs, then outputs
  void** blocks;                   // of those, or NULL
  char* key;
  size_t key_size;
} run_t;

// --- Names ---

static const char* name_of(const pestle_session_t* s, bool of_inputs,
                           size_t i) {
  return of_inputs ? s->inputs[i].name : s->output_names[i];
}

static pestle_status_t unknown(const pestle_session_t* s, bool of_inputs,
                               const char* name) {
  enum { MOST = 32 };
  const char* kind = of_inputs ? "input" : "output";
  size_t count = of_inputs ? s->input_count : s->output_count;
  pestle_closest_t closest = pestle_closest_to(pestle_str(name));
  char hint[PESTLE_HINT];
  pestle_strbuf_t text;
  pestle_strbuf_init(s->allocator, &text);
  for (size_t i = 0; i < count; ++i) {
    pestle_closest_offer(&closest, pestle_str(name_of(s, of_inputs, i)));
    if (i < MOST) pestle_strbuf_append_listed(&text, name_of(s, of_inputs, i));
  }
  if (count > MOST) pestle_strbuf_appendf(&text, " and %zu more", count - MOST);
  pestle_status_t status =
      PESTLE_ERROR(NOT_FOUND, "the model has no %s '%s'; it has %s%s", kind,
                   name, count ? pestle_strbuf_cstr(&text) : "none",
                   pestle_closest_hint(&closest, hint));
  pestle_strbuf_deinit(&text);
  return status;
}

// The place of the |index|-th tensor that is given.
static pestle_status_t place(const pestle_session_t* s, bool of_inputs,
                             const char* name, size_t index, size_t* out) {
  size_t count = of_inputs ? s->input_count : s->output_count;
  *out = name ? 0 : index;
  while (name && *out < count && strcmp(name_of(s, of_inputs, *out), name) != 0)
    ++*out;
  if (*out < count) return NULL;
  if (name) return unknown(s, of_inputs, name);
  return PESTLE_ERROR(INVALID_ARGUMENT, "%zu %s are given, the model has %zu",
                      index + 1, of_inputs ? "inputs" : "outputs", count);
}

static pestle_status_t twice(const pestle_session_t* s, bool of_inputs,
                             size_t at) {
  return PESTLE_ERROR(INVALID_ARGUMENT, "%s '%s' is given twice",
                      of_inputs ? "input" : "output",
                      name_of(s, of_inputs, at));
}

static pestle_status_t missing(const pestle_session_t* s, const bool* given) {
  pestle_strbuf_t text;
  pestle_strbuf_init(s->allocator, &text);
  for (size_t i = 0; i < s->input_count; ++i) {
    if (!given[i]) pestle_strbuf_append_listed(&text, s->inputs[i].name);
  }
  pestle_status_t status = PESTLE_ERROR(
      INVALID_ARGUMENT, "the run lacks inputs: %s", pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
  return status;
}

static pestle_status_t place_all(run_t* run, bool* given,
                                 const pestle_named_tensor_t* inputs,
                                 size_t input_count,
                                 pestle_named_tensor_t* outputs,
                                 size_t output_count) {
  const pestle_session_t* s = run->session;
  size_t at;
  for (size_t i = 0; i < input_count; ++i) {
    PESTLE_TRY(place(s, true, inputs[i].name, i, &at));
    if (given[at]) return twice(s, true, at);
    given[at] = true;
    run->inputs[at] = inputs[i].tensor;
  }
  for (size_t i = 0; i < output_count; ++i) {
    PESTLE_TRY(place(s, false, outputs[i].name, i, &at));
    if (run->wanted[at]) return twice(s, false, at);
    run->wanted[at] = &outputs[i];
  }
  for (size_t i = 0; i < s->input_count; ++i) {
    if (!given[i]) return missing(s, given);
  }
  return NULL;
}

// --- The shape ---

static pestle_status_t does_not_fit(const session_input_t* input,
                                    const pestle_tensor_t* t) {
  char own[512] = "", given[512] = "";
  size_t a = 0, b = 0;
  for (int32_t d = 0; d < input->rank && a < 400; ++d) {
    int n = input->dims[d] == PESTLE_DIM_DYNAMIC
                ? snprintf(own + a, sizeof(own) - a, "%s%.40s", d ? ", " : "",
                           input->dim_names[d][0] ? input->dim_names[d] : "?")
                : snprintf(own + a, sizeof(own) - a, "%s%lld", d ? ", " : "",
                           (long long)input->dims[d]);
    a += n > 0 ? (size_t)n : 0;
  }
  for (int32_t d = 0; d < t->ndim && t->shape && b < 400; ++d) {
    int n = snprintf(given + b, sizeof(given) - b, "%s%lld", d ? ", " : "",
                     (long long)t->shape[d]);
    b += n > 0 ? (size_t)n : 0;
  }
  return PESTLE_ERROR(
      INVALID_ARGUMENT, "input '%s' is %s[%s], the run gives %s[%s]",
      input->name, pestle_dtype_info(input->dtype)->name, own,
      pestle_dtype_info(pestle_dtype_from_dlpack(t->dtype))->name, given);
}

static pestle_status_t check_input(const session_input_t* input,
                                   const pestle_tensor_t* t) {
  bool fits = pestle_dtype_from_dlpack(t->dtype) == input->dtype &&
              t->ndim == input->rank && (t->shape || !t->ndim);
  for (int32_t d = 0; d < input->rank && fits; ++d) {
    fits = t->shape[d] >= 0 && (input->dims[d] == PESTLE_DIM_DYNAMIC ||
                                input->dims[d] == t->shape[d]);
  }
  return fits ? NULL : does_not_fit(input, t);
}

// Dims of one name have one extent.
static pestle_status_t check_dims(const run_t* run) {
  const pestle_session_t* s = run->session;
  for (size_t i = 0; i < s->input_count; ++i) {
    for (int32_t d = 0; d < s->inputs[i].rank; ++d) {
      const char* name = s->inputs[i].dim_names[d];
      for (size_t j = 0; j < i && name[0]; ++j) {
        for (int32_t e = 0; e < s->inputs[j].rank; ++e) {
          if (strcmp(name, s->inputs[j].dim_names[e]) != 0 ||
              run->inputs[i].shape[d] == run->inputs[j].shape[e]) {
            continue;
          }
          return PESTLE_ERROR(
              INVALID_ARGUMENT,
              "dim '%s' is %lld by input '%s' and %lld by input '%s'", name,
              (long long)run->inputs[j].shape[e], s->inputs[j].name,
              (long long)run->inputs[i].shape[d], s->inputs[i].name);
        }
      }
    }
  }
  return NULL;
}

static size_t value_bytes(const session_input_t* input,
                          const pestle_tensor_t* t) {
  size_t count = 1;
  for (int32_t d = 0; d < t->ndim; ++d)
    count *= (size_t)t->shape[d];
  return count * pestle_dtype_size(input->dtype);
}

// The extents of all inputs, and the values that decide shapes.
static pestle_status_t make_key(run_t* run) {
  const pestle_session_t* s = run->session;
  size_t size = s->extent_count * sizeof(int64_t) + 8;
  for (size_t i = 0; i < s->input_count; ++i) {
    PESTLE_TRY(check_input(&s->inputs[i], &run->inputs[i]));
    bool reads = s->inputs[i].decides_shapes && run->inputs[i].data &&
                 run->inputs[i].device.device_type == PESTLE_DEVICE_CPU;
    if (!reads) continue;
    size_t bytes = value_bytes(&s->inputs[i], &run->inputs[i]);
    if (bytes <= PESTLE_VALUE_ARGUMENT_MAX * sizeof(int64_t)) size += bytes;
  }
  PESTLE_TRY(check_dims(run));
  run->key = pestle_session_take(run->session, size);
  if (!run->key) return PESTLE_OOM();
  size_t at = 0;
  for (size_t i = 0; i < s->input_count; ++i) {
    size_t bytes = (size_t)s->inputs[i].rank * sizeof(int64_t);
    if (bytes) memcpy(run->key + at, run->inputs[i].shape, bytes);
    at += bytes;
  }
  for (size_t i = 0; i < s->input_count; ++i) {
    const pestle_tensor_t* t = &run->inputs[i];
    bool reads = s->inputs[i].decides_shapes && t->data &&
                 t->device.device_type == PESTLE_DEVICE_CPU;
    size_t bytes = reads ? value_bytes(&s->inputs[i], t) : 0;
    if (!reads || bytes > PESTLE_VALUE_ARGUMENT_MAX * sizeof(int64_t)) continue;
    pestle_view_copy(t->ndim, t->shape, pestle_dtype_size(s->inputs[i].dtype),
                     pestle_view_data(t), t->strides, run->key + at, NULL);
    at += bytes;
  }
  // A shape without extents has a key too.
  run->key[at++] = 0;
  run->key_size = at;
  return NULL;
}

// --- Inputs ---

// Copies |from|, whose rows are those of the run, to |data|, where more are: the last
// one again and again. Of what they hold nothing is used, but it is data like any.
static void pad_input(const pestle_tensor_t* from, const pestle_io_info_t* info,
                      int32_t axis, char* data) {
  size_t element = pestle_dtype_size(info->dtype);
  int64_t dense[PESTLE_MAX_RANK], rest[PESTLE_MAX_RANK];
  int64_t source[PESTLE_MAX_RANK], again[PESTLE_MAX_RANK];
  pestle_view_dense_strides(info->rank, info->dims, dense);
  if (from->strides) {
    memcpy(source, from->strides, (size_t)info->rank * sizeof(*source));
  } else {
    pestle_view_dense_strides(from->ndim, from->shape, source);
  }
  const char* begin = pestle_view_data(from);
  pestle_view_copy(from->ndim, from->shape, element, begin, source, data,
                   dense);
  memcpy(rest, info->dims, (size_t)info->rank * sizeof(*rest));
  memcpy(again, source, (size_t)info->rank * sizeof(*again));
  int64_t there = from->shape[axis];
  rest[axis] -= there;
  again[axis] = 0;
  pestle_view_copy(
      info->rank, rest, element,
      (const char*)((uintptr_t)begin +
                    (uintptr_t)((there - 1) * source[axis] * (int64_t)element)),
      again, data + (size_t)(there * dense[axis]) * element, dense);
}

static size_t bytes_of(const pestle_io_info_t* info) {
  size_t bytes = pestle_dtype_size(info->dtype);
  for (int32_t d = 0; d < info->rank; ++d)
    bytes *= (size_t)info->dims[d];
  return bytes;
}

static pestle_status_t bind_inputs(run_t* run) {
  const session_route_t* r = run->route;
  for (size_t i = 0; i < r->input_count; ++i) {
    const pestle_tensor_t* given = &run->inputs[r->inputs[i]];
    run->views[i] = *given;
    if (!r->input_rows || r->input_rows[i].axis < 0) continue;
    pestle_io_info_t info = pestle_executable_input(r->executable, i);
    if (!given->data || given->device.device_type != PESTLE_DEVICE_CPU) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "input '%s' has no data in the host's memory",
                          info.name);
    }
    run->blocks[i] = pestle_session_take(run->session, bytes_of(&info));
    if (!run->blocks[i]) return PESTLE_OOM();
    pad_input(given, &info, r->input_rows[i].axis, run->blocks[i]);
    run->views[i].data = run->blocks[i];
    run->views[i].byte_offset = 0;
    run->views[i].strides = NULL;
    run->views[i].shape = (int64_t*)(uintptr_t)info.dims;
  }
  return NULL;
}

// --- Outputs ---

// The rows of output |i| of the executable, or none.
static session_rows_t rows_of(const session_route_t* r, size_t i) {
  return r->output_rows ? r->output_rows[i] : (session_rows_t){.axis = -1};
}

// A block with the elements of |info|, and its shape and strides behind them.
static void* make_output(pestle_session_t* s, const pestle_io_info_t* info,
                         pestle_tensor_t* out) {
  size_t bytes = pestle_align_up(bytes_of(info), 64);
  size_t rank = (size_t)info->rank;
  char* data = pestle_session_take(s, bytes + 2 * rank * sizeof(int64_t));
  if (!data) return NULL;
  *out = (pestle_tensor_t){.data = data,
                           .device = {PESTLE_DEVICE_CPU, 0},
                           .ndim = info->rank,
                           .dtype = pestle_dtype_to_dlpack(info->dtype),
                           .shape = (int64_t*)(void*)(data + bytes)};
  if (rank) memcpy(out->shape, info->dims, rank * sizeof(int64_t));
  return data;
}

// Whether |given| has the extents of |info| with |m| rows of |n|.
static bool has_extents(const pestle_tensor_t* given,
                        const pestle_io_info_t* info, session_rows_t rows,
                        int64_t m) {
  if (given->ndim != info->rank || (given->ndim && !given->shape) ||
      pestle_dtype_from_dlpack(given->dtype) != info->dtype) {
    return false;
  }
  for (int32_t d = 0; d < info->rank; ++d) {
    int64_t wanted = d == rows.axis ? rows.per * m : info->dims[d];
    if (given->shape[d] != wanted) return false;
  }
  return true;
}

static pestle_status_t bind_outputs(run_t* run) {
  const session_route_t* r = run->route;
  for (size_t i = 0; i < r->output_count; ++i) {
    pestle_named_tensor_t* wanted = run->wanted[r->outputs[i]];
    session_rows_t rows = rows_of(r, i);
    pestle_io_info_t info = pestle_executable_output(r->executable, i);
    pestle_tensor_t* view = &run->views[r->input_count + i];
    if (wanted && wanted->tensor.data) {
      *view = wanted->tensor;
      if (rows.axis < 0) continue;
      if (!has_extents(&wanted->tensor, &info, rows, r->m) ||
          wanted->tensor.device.device_type != PESTLE_DEVICE_CPU) {
        return PESTLE_ERROR(INVALID_ARGUMENT,
                            "output '%s' is not of the type, the extents and "
                            "the place that this run gives",
                            info.name);
      }
    }
    void** block = &run->blocks[r->input_count + i];
    *block = make_output(run->session, &info, view);
    if (!*block) return PESTLE_OOM();
  }
  return NULL;
}

static bool is_outermost(const pestle_io_info_t* info, int32_t axis) {
  for (int32_t d = 0; d < axis; ++d) {
    if (info->dims[d] != 1) return false;
  }
  return true;
}

// Cuts an output to the rows of the run and hands it over.
static pestle_status_t deliver_rows(run_t* run, size_t i, void** block,
                                    pestle_tensor_t* target) {
  const session_route_t* r = run->route;
  session_rows_t rows = rows_of(r, i);
  pestle_io_info_t info = pestle_executable_output(r->executable, i);
  pestle_tensor_t* view = &run->views[r->input_count + i];
  int64_t dims[PESTLE_MAX_RANK], dense[PESTLE_MAX_RANK];
  memcpy(dims, info.dims, (size_t)info.rank * sizeof(*dims));
  dims[rows.axis] = rows.per * r->m;
  pestle_view_dense_strides(info.rank, info.dims, dense);
  if (target->data) {
    pestle_view_copy(info.rank, dims, pestle_dtype_size(info.dtype), view->data,
                     dense, pestle_view_data(target), target->strides);
    return NULL;
  }
  if (is_outermost(&info, rows.axis)) {
    // The first rows lie in front: what is behind them is just not told.
    memcpy(view->shape, dims, (size_t)info.rank * sizeof(*dims));
    *target = *view;
    *block = NULL;
    return NULL;
  }
  pestle_io_info_t cut = info;
  cut.dims = dims;
  if (!make_output(run->session, &cut, target)) return PESTLE_OOM();
  pestle_view_copy(info.rank, dims, pestle_dtype_size(info.dtype), view->data,
                   dense, target->data, NULL);
  return NULL;
}

static void fill_strides(pestle_tensor_t* t) {
  t->strides = t->shape + t->ndim;
  pestle_view_dense_strides(t->ndim, t->shape, t->strides);
}

static pestle_status_t deliver(run_t* run) {
  const session_route_t* r = run->route;
  for (size_t i = 0; i < r->output_count; ++i) {
    pestle_named_tensor_t* wanted = run->wanted[r->outputs[i]];
    void** block = &run->blocks[r->input_count + i];
    if (!wanted) continue;
    bool is_made = !wanted->tensor.data;
    if (rows_of(r, i).axis >= 0) {
      PESTLE_TRY(deliver_rows(run, i, block, &wanted->tensor));
    } else if (is_made) {
      wanted->tensor = run->views[r->input_count + i];
      *block = NULL;
    }
    if (is_made) fill_strides(&wanted->tensor);
  }
  return NULL;
}

// --- The call ---

static pestle_status_t run_route(run_t* run,
                                 const pestle_run_options_t* options) {
  const session_route_t* r = run->route;
  pestle_session_t* s = run->session;
  PESTLE_TRY(bind_inputs(run));
  PESTLE_TRY(bind_outputs(run));
  pestle_run_options_t own = {.struct_size = sizeof(own)};
  if (options) {
    own.threads = options->threads;
    own.control = options->control;
    own.strings = options->strings;
  }
  int active = atomic_fetch_add(&s->active, 1) + 1;
  if (!own.threads) {
    own.threads = pestle_context_threads(s->context) / active;
    if (own.threads < 1) own.threads = 1;
  }
  pestle_status_t status =
      pestle_executable_run(r->executable, NULL, run->views, r->input_count,
                            run->views + r->input_count, r->output_count, &own);
  atomic_fetch_sub(&s->active, 1);
  return status ? status : deliver(run);
}

// Tables of the executable's side, once the route is known.
static pestle_status_t run_bound(run_t* run,
                                 const pestle_run_options_t* options) {
  size_t io = run->route->input_count + run->route->output_count;
  size_t bytes = io * (sizeof(pestle_tensor_t) + sizeof(void*));
  run->views = pestle_session_take(run->session, bytes);
  if (!run->views) return PESTLE_OOM();
  memset(run->views, 0, bytes);
  run->blocks = (void**)(void*)(run->views + io);
  pestle_status_t status = run_route(run, options);
  for (size_t i = 0; i < io; ++i)
    pestle_session_give(run->blocks[i]);
  return status;
}

static void count(pestle_session_t* s, const session_route_t* route,
                  bool is_failed) {
  pestle_mutex_lock(&s->mutex);
  s->stats.failed_runs += is_failed;
  if (!is_failed) {
    ++s->stats.runs;
    s->stats.padded_runs += route->n > route->m;
    if (route->n > route->m) {
      s->stats.rows += (uint64_t)route->m;
      s->stats.padding += (uint64_t)(route->n - route->m);
    }
  }
  pestle_mutex_unlock(&s->mutex);
}

// An output that was made before another one failed.
static void drop_made(run_t* run, const bool* was_given,
                      pestle_named_tensor_t* outputs, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!was_given[i])
      pestle_session_tensor_release(run->session, &outputs[i].tensor);
  }
}

pestle_status_t pestle_session_run(pestle_session_t* session,
                                   const pestle_named_tensor_t* inputs,
                                   size_t input_count,
                                   pestle_named_tensor_t* outputs,
                                   size_t output_count,
                                   const pestle_run_options_t* options) {
  PESTLE_REQUIRE(
      session && (inputs || !input_count) && (outputs || !output_count),
      "a session, and as many tensors as it is told");
  if (options && options->struct_size < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_run_options_t.struct_size is not set");
  }
  pestle_run_options_t read = {.struct_size = sizeof(read)};
  if (options) {
    size_t size = options->struct_size;
    memcpy(&read, options, size < sizeof(read) ? size : sizeof(read));
  }
  pestle_session_t* s = session;
  size_t bytes = s->input_count * (sizeof(pestle_tensor_t) + 1) +
                 s->output_count * sizeof(void*) + output_count;
  char* tables = pestle_session_take(s, bytes);
  if (!tables) return PESTLE_OOM();
  memset(tables, 0, bytes);
  run_t run = {.session = s, .inputs = (pestle_tensor_t*)(void*)tables};
  run.wanted = (pestle_named_tensor_t**)(void*)(run.inputs + s->input_count);
  bool* given = (bool*)(run.wanted + s->output_count);
  bool* was_given = given + s->input_count;
  for (size_t i = 0; i < output_count; ++i)
    was_given[i] = outputs[i].tensor.data != NULL;
  pestle_status_t status =
      place_all(&run, given, inputs, input_count, outputs, output_count);
  if (!status) status = make_key(&run);
  if (!status) {
    status = pestle_session_find_route(s, run.key, run.key_size, run.inputs,
                                       &run.route);
  }
  if (!status) status = run_bound(&run, options ? &read : NULL);
  if (status) drop_made(&run, was_given, outputs, output_count);
  count(s, run.route, status != NULL);
  pestle_session_route_release(run.route);
  pestle_session_give(run.views);
  pestle_session_give(run.key);
  pestle_session_give(tables);
  return status;
}

void pestle_session_tensor_release(pestle_session_t* session,
                                   pestle_tensor_t* tensor) {
  if (!session || !tensor || !tensor->data) return;
  pestle_session_give(tensor->data);
  tensor->data = NULL;
  tensor->shape = NULL;
  tensor->strides = NULL;
}
