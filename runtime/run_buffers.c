// SPDX-License-Identifier: Apache-2.0
// Runs on buffers: inputs are checked and bound, outputs made, or taken from
// donated inputs. What the steps then do is run.c's, what a stream does stream.c's.
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/require.h"
#include "base/status_copy.h"
#include "runtime/buffer.h"
#include "runtime/event.h"
#include "runtime/stream.h"

typedef struct buffers_run_t {
  pestle_executable_t* e;
  pestle_frame_t* frame;
  const pestle_buffer_view_t* inputs;
  pestle_buffer_t** outputs;
  const pestle_run_buffers_options_t* options;
} buffers_run_t;

// --- Options ---

static pestle_status_t read_options(const pestle_run_buffers_options_t* user,
                                    pestle_run_buffers_options_t* out_options,
                                    pestle_run_t* out_run) {
  memset(out_options, 0, sizeof(*out_options));
  memset(out_run, 0, sizeof(*out_run));
  size_t size = user->struct_size;
  if (size < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_run_buffers_options_t.struct_size is not set");
  }
  memcpy(out_options, user, size < sizeof(*user) ? size : sizeof(*user));
  if (out_options->donated_count && !out_options->donated) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_run_buffers_options_t counts donated inputs "
                        "that are NULL");
  }
  out_run->options.threads = out_options->threads;
  out_run->options.on_step = out_options->on_step;
  out_run->options.on_step_user = out_options->on_step_user;
  out_run->options.world = out_options->world;
  out_run->options.strings = out_options->strings;
  return pestle_run_read_control(out_options->control, &out_run->control);
}

// --- Inputs ---

// Of another device than the home.
static pestle_status_t check_place(const pestle_executable_t* e,
                                   const pestle_buffer_t* buffer,
                                   const pestle_exec_io_t* io) {
  if (buffer->device->context != e->context) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "input '%s' is a buffer of another context than the "
                        "executable's",
                        io->info.name);
  }
  if (pestle_device_is_cpu(buffer->device)) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "input '%s' is on device %s, but the executable runs on "
                      "%s; copy it there with pestle_buffer_copy()",
                      io->info.name, buffer->device->name, e->home->name);
}

static pestle_status_t outside(const pestle_buffer_t* buffer,
                               const pestle_buffer_view_t* view,
                               const pestle_exec_io_t* io) {
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "input '%s' of %" PRIu64 " bytes, %" PRIu64
                      " bytes into its buffer%s, leads out of the buffer's %zu",
                      io->info.name, io->size, view->byte_offset,
                      view->strides ? " and with gaps" : "", buffer->size);
}

static pestle_status_t bind_strided(const buffers_run_t* r, size_t i,
                                    const pestle_buffer_view_t* view) {
  const pestle_exec_io_t* io = &r->e->io[i];
  const pestle_buffer_t* buffer = view->buffer;
  pestle_view_range_t* range = &r->frame->ranges[i];
  if (view->byte_offset > buffer->size) return outside(buffer, view, io);
  PESTLE_TRY(pestle_view_check(&r->frame->given[i], io, "input", range,
                               &r->frame->dense[i]));
  uintptr_t begin = (uintptr_t)buffer->block.data;
  if (range->begin >= begin && range->end <= begin + buffer->size) return NULL;
  return outside(buffer, view, io);
}

static pestle_status_t bind_input(const buffers_run_t* r, size_t i) {
  const pestle_executable_t* e = r->e;
  pestle_frame_t* frame = r->frame;
  const pestle_exec_io_t* io = &e->io[i];
  const pestle_buffer_view_t* view = &r->inputs[i];
  const pestle_buffer_t* buffer = view->buffer;
  pestle_tensor_t* given = &frame->given[i];
  frame->copied[i] = false;
  frame->dense[i] = true;
  frame->remote[i] = e->remote;
  if (!buffer) {
    frame->ranges[i] = (pestle_view_range_t){0, 0};
    given->data = NULL;
    given->strides = NULL;
    given->byte_offset = 0;
    if (!io->size) return NULL;
    return PESTLE_ERROR(INVALID_ARGUMENT, "input '%s' has no buffer",
                        io->info.name);
  }
  if (buffer->device != e->home) {
    PESTLE_TRY(check_place(e, buffer, io));
    frame->remote[i] = false;
  }
  given->data = buffer->block.data;
  given->byte_offset = view->byte_offset;
  given->strides = (int64_t*)(uintptr_t)view->strides;  // which is only read
  given->device = buffer->device->dl;
  if (view->strides && io->size) return bind_strided(r, i, view);
  if (view->byte_offset > buffer->size ||
      io->size > buffer->size - view->byte_offset) {
    return outside(buffer, view, io);
  }
  uintptr_t begin = (uintptr_t)given->data + (uintptr_t)view->byte_offset;
  frame->ranges[i] = (pestle_view_range_t){begin, begin + io->size};
  return NULL;
}

// --- Donation ---

static pestle_status_t mark_donated(const buffers_run_t* r) {
  const pestle_executable_t* e = r->e;
  const pestle_run_buffers_options_t* options = r->options;
  bool* donated = r->frame->donated;
  memset(donated, 0, e->input_count);
  for (size_t d = 0; d < options->donated_count; ++d) {
    uint32_t index = options->donated[d];
    if (index >= e->input_count) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "the donated input %" PRIu32
                          " is none of the executable's %zu",
                          index, e->input_count);
    }
    for (size_t i = 0; i < e->input_count; ++i) {
      if (!donated[i] || !r->inputs[i].buffer ||
          r->inputs[i].buffer != r->inputs[index].buffer) {
        continue;
      }
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "the buffer of input '%s' is donated twice",
                          e->io[index].info.name);
    }
    donated[index] = true;
  }
  return NULL;
}

// Whether an output may have the memory of donated input |i|.
static bool may_take(const buffers_run_t* r, size_t i, size_t output) {
  const pestle_executable_t* e = r->e;
  const pestle_frame_t* frame = r->frame;
  const pestle_exec_io_t* io = &e->io[e->input_count + output];
  const pestle_buffer_t* buffer = r->inputs[i].buffer;
  if (!frame->donated[i] || !buffer || buffer->device != e->home ||
      buffer->size != io->size || r->inputs[i].byte_offset ||
      !frame->dense[i] || (frame->ranges[i].begin & io->misaligned) ||
      !pestle_buffer_may_take(buffer)) {
    return false;
  }
  // Another input that sees the buffer would see what is written.
  for (size_t j = 0; j < e->input_count; ++j) {
    if (j != i && r->inputs[j].buffer == buffer) return false;
  }
  return true;
}

// Whether an output has the memory of input |i|, and so its reference.
static bool is_taken(const buffers_run_t* r, size_t i) {
  const pestle_buffer_t* buffer = r->inputs[i].buffer;
  for (size_t o = 0; buffer && o < r->e->output_count; ++o) {
    if (r->outputs[o] == buffer) return true;
  }
  return false;
}

static void take_donated(const buffers_run_t* r) {
  const pestle_executable_t* e = r->e;
  for (size_t o = 0; o < e->output_count; ++o) {
    int32_t alias = e->io[e->input_count + o].alias;
    if (alias < 0 || !may_take(r, (size_t)alias, o)) continue;
    r->outputs[o] = r->inputs[alias].buffer;
  }
  for (size_t i = 0; i < e->input_count; ++i) {
    if (!r->frame->donated[i] || e->io[i].alias >= 0) continue;
    for (size_t o = 0; o < e->output_count; ++o) {
      const pestle_exec_io_t* output = &e->io[e->input_count + o];
      if (r->outputs[o] || output->info.bounded ||
          !pestle_exec_is_apart(e, &e->io[i], output) || !may_take(r, i, o)) {
        continue;
      }
      r->outputs[o] = r->inputs[i].buffer;
      break;
    }
  }
}

// --- Outputs ---

// New memory is nothing that a failed run was to write, though that may have had
// its address.
static void heal(const pestle_executable_t* e, const pestle_buffer_t* buffer) {
  pestle_poison_t* poison = &e->context->poison;
  if (pestle_poison_is_empty(poison)) return;
  uintptr_t begin = (uintptr_t)buffer->block.data;
  pestle_poison_range_t range = {.place = e->remote ? e->home : NULL,
                                 .begin = begin,
                                 .end = begin + buffer->size};
  pestle_poison_heal(poison, &range);
}

static pestle_status_t make_output(const buffers_run_t* r, size_t o) {
  const pestle_executable_t* e = r->e;
  pestle_frame_t* frame = r->frame;
  size_t at = e->input_count + o;
  const pestle_exec_io_t* io = &e->io[at];
  pestle_tensor_t* given = &frame->given[at];
  if (!r->outputs[o]) {
    PESTLE_TRY(pestle_buffer_make(e->home, (size_t)io->size, &r->outputs[o]));
    heal(e, r->outputs[o]);
    if (io->info.bounded && io->info.rank) {
      size_t size = (size_t)io->info.rank * sizeof(int64_t);
      PESTLE_TRY(pestle_buffer_make_extents(r->outputs[o], io->info.rank));
      // The run makes them the real ones.
      given->shape = r->outputs[o]->extents;
      memcpy(given->shape, io->info.dims, size);
    }
  }
  char* data = r->outputs[o]->block.data;
  given->data = data;
  frame->ranges[at] =
      (pestle_view_range_t){(uintptr_t)data, (uintptr_t)data + io->size};
  frame->dense[at] = true;
  frame->copied[at] = false;
  frame->remote[at] = e->remote;
  frame->allocated[o] = false;
  return NULL;
}

// A buffer that was an input stays the caller's.
static void drop_outputs(const buffers_run_t* r) {
  for (size_t o = 0; o < r->e->output_count; ++o) {
    pestle_buffer_t* buffer = r->outputs[o];
    for (size_t d = 0; d < r->options->donated_count && buffer; ++d) {
      uint32_t i = r->options->donated[d];
      if (i < r->e->input_count && r->inputs[i].buffer == buffer) buffer = NULL;
    }
    pestle_buffer_release(buffer);
    r->outputs[o] = NULL;
  }
}

static pestle_status_t bind(const buffers_run_t* r) {
  for (size_t i = 0; i < r->e->input_count; ++i)
    PESTLE_TRY(bind_input(r, i));
  memset(r->frame->donated, 0, r->e->input_count);
  if (r->options->donated_count) {
    PESTLE_TRY(mark_donated(r));
    take_donated(r);
  }
  for (size_t o = 0; o < r->e->output_count; ++o)
    PESTLE_TRY(make_output(r, o));
  return NULL;
}

// The run is certain. |done| is its completion, or NULL: it is done. References
// that no output has taken are given up; what was taken is what the run makes.
static void conclude(const buffers_run_t* r, pestle_completion_t* done) {
  for (size_t d = 0; d < r->options->donated_count; ++d) {
    uint32_t i = r->options->donated[d];
    pestle_buffer_t* buffer = r->inputs[i].buffer;
    if (!is_taken(r, i)) {
      pestle_buffer_release(buffer);
      continue;
    }
    pestle_buffer_drop_extents(buffer);
    if (!done) pestle_buffer_set_defined(buffer, NULL);
  }
}

// --- Events ---

static pestle_status_t check_events(const buffers_run_t* r) {
  const pestle_run_buffers_options_t* options = r->options;
  const pestle_event_t* done = options->done;
  if (done && pestle_event_context(done) != r->e->context) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_run_buffers_options_t.done is an event of "
                        "another context than the executable's");
  }
  if (options->wait_count && !options->waits) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_run_buffers_options_t counts events to wait "
                        "for that are NULL");
  }
  for (size_t i = 0; i < options->wait_count; ++i) {
    const pestle_event_t* event = options->waits[i];
    if (event && pestle_event_latest(event) &&
        pestle_event_context(event) == r->e->context) {
      continue;
    }
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "event %zu that the run is to wait for %s", i,
                        !event                        ? "is NULL"
                        : !pestle_event_latest(event) ? "was never recorded"
                                                      : "is of another "
                                                        "context");
  }
  return NULL;
}

static pestle_status_t poisoned(const buffers_run_t* r, size_t i,
                                pestle_status_t failure) {
  return pestle_status_annotate(
      failure, "so input '%s' of plan '%s' holds no result",
      r->e->io[i].info.name,
      pestle_plan_text(r->e->plan, pestle_plan_header(r->e->plan)->name));
}

// --- On the calling thread ---

// What the run reads is there, and what it overwrites is read by nobody.
static pestle_status_t await(const buffers_run_t* r) {
  for (size_t i = 0; i < r->options->wait_count; ++i) {
    PESTLE_TRY(
        pestle_completion_wait(pestle_event_latest(r->options->waits[i])));
  }
  for (size_t i = 0; i < r->e->input_count; ++i) {
    pestle_buffer_t* buffer = r->inputs[i].buffer;
    if (!buffer ||
        !atomic_load_explicit(&buffer->defined, memory_order_acquire)) {
      continue;
    }
    PESTLE_TRY(poisoned(r, i, pestle_buffer_await(buffer)));
  }
  for (size_t d = 0; d < r->options->donated_count; ++d) {
    uint32_t i = r->options->donated[d];
    if (is_taken(r, i)) {
      PESTLE_TRY(pestle_buffer_await_uses(r->inputs[i].buffer));
    }
  }
  return NULL;
}

static pestle_status_t run_bound(const buffers_run_t* r,
                                 const pestle_run_t* run) {
  pestle_executable_t* e = r->e;
  PESTLE_TRY(bind(r));
  PESTLE_TRY(await(r));
  return pestle_run_frame(e, r->frame, NULL, r->frame->given,
                          r->frame->given + e->input_count, run);
}

static pestle_status_t run_now(const buffers_run_t* r,
                               const pestle_run_t* run) {
  pestle_completion_t* done = NULL;
  if (r->options->done) {
    PESTLE_TRY(pestle_event_prepare(r->options->done, &done));
  }
  pestle_status_t status = run_bound(r, run);
  if (status) {
    drop_outputs(r);
    pestle_completion_release(done);
    return status;
  }
  conclude(r, NULL);
  if (!done) return NULL;
  pestle_completion_finish(done, NULL);
  pestle_event_set_latest(r->options->done, done);
  return NULL;
}

// --- On a stream ---

// The buffers of a run until it is done with them.
typedef struct holds_t {
  pestle_context_t* context;
  pestle_completion_t* done;
  const pestle_device_t* queue;  // whose stream the run is on; NULL: a CPU's
  size_t bytes, count;
  pestle_buffer_t* buffers[];
} holds_t;

static pestle_status_t make_holds(const buffers_run_t* r,
                                  const pestle_stream_t* stream,
                                  pestle_completion_t* done,
                                  holds_t** out_holds) {
  size_t bytes = sizeof(holds_t) + r->e->io_count * sizeof(pestle_buffer_t*);
  holds_t* h = pestle_alloc_zero(r->e->context->core.allocator, bytes);
  *out_holds = h;
  if (!h) return PESTLE_OOM();
  h->bytes = bytes;
  h->context = r->e->context;
  pestle_context_retain(h->context);
  pestle_completion_retain(done);
  h->done = done;
  h->queue = pestle_stream_native(stream) ? stream->device : NULL;
  for (size_t i = 0; i < r->e->io_count; ++i) {
    bool is_input = i < r->e->input_count;
    pestle_buffer_t* buffer =
        is_input ? r->inputs[i].buffer : r->outputs[i - r->e->input_count];
    if (!buffer) continue;
    pestle_buffer_hold(buffer);
    h->buffers[h->count++] = buffer;
  }
  return NULL;
}

static void end_holds(void* self, pestle_status_t failure) {
  holds_t* h = self;
  pestle_context_t* context = h->context;
  (void)failure;
  for (size_t i = 0; i < h->count; ++i)
    pestle_buffer_let_go(h->buffers[i]);
  pestle_completion_release(h->done);
  pestle_dealloc(context->core.allocator, h, h->bytes);
  pestle_context_release(context);
}

// What the backend allocated it frees in the order of its queues. All else stays
// until the run is done.
static bool must_stay(const holds_t* h, const pestle_buffer_t* buffer) {
  return buffer->device != h->queue || (buffer->flags & PESTLE_BUFFER_WRAPPED);
}

// The host has done its part.
static void after_run(void* self) {
  holds_t* h = self;
  size_t stays = 0;
  for (size_t i = 0; h->queue && i < h->count; ++i) {
    if (must_stay(h, h->buffers[i])) {
      h->buffers[stays++] = h->buffers[i];
    } else {
      pestle_buffer_let_go(h->buffers[i]);
    }
  }
  if (h->queue) h->count = stays;
  if (stays) {
    pestle_status_t status = pestle_completion_on_done(h->done, end_holds, h);
    if (!status) return;
    // Nobody can tell: this thread waits.
    pestle_status_release(status);
    pestle_status_release(pestle_completion_wait(h->done));
  }
  end_holds(h, NULL);
}

static void release_all(pestle_completions_t* completions) {
  for (size_t i = 0; i < completions->size; ++i)
    pestle_completion_release(completions->data[i]);
  pestle_vec_deinit(completions);
}

// Has |stream| wait for what does not decide whether the run succeeds: events, and
// who still reads what is overwritten.
static pestle_status_t queue_waits(const buffers_run_t* r,
                                   pestle_stream_t* stream) {
  pestle_completions_t uses;
  pestle_status_t status = NULL;
  for (size_t i = 0; i < r->options->wait_count && !status; ++i) {
    status =
        pestle_stream_wait(stream, pestle_event_latest(r->options->waits[i]));
  }
  pestle_vec_init(&uses, r->e->context->core.allocator);
  for (size_t d = 0; d < r->options->donated_count && !status; ++d) {
    uint32_t i = r->options->donated[d];
    if (!is_taken(r, i)) continue;
    status = pestle_buffer_append_uses(r->inputs[i].buffer, &uses);
  }
  for (size_t i = 0; i < uses.size && !status; ++i) {
    if (uses.data[i]->timeline == stream->timeline) continue;
    status = pestle_stream_wait(stream, uses.data[i]);
  }
  release_all(&uses);
  return status;
}

// The completions of what the run reads.
static pestle_status_t find_inputs(const buffers_run_t* r,
                                   pestle_completions_t* completions) {
  for (size_t i = 0; i < r->e->input_count; ++i) {
    pestle_buffer_t* buffer = r->inputs[i].buffer;
    pestle_completion_t* c = buffer ? pestle_buffer_defined(buffer) : NULL;
    if (!c) continue;
    if (!pestle_vec_push(completions, c)) {
      pestle_completion_release(c);
      return PESTLE_OOM();
    }
  }
  return NULL;
}

// Says to the inputs that the run uses them.
static pestle_status_t note_uses(const buffers_run_t* r,
                                 pestle_completion_t* done) {
  for (size_t i = 0; i < r->e->input_count; ++i) {
    pestle_buffer_t* buffer = r->inputs[i].buffer;
    if (!buffer || is_taken(r, i)) continue;
    PESTLE_TRY(pestle_buffer_add_use(buffer, done));
  }
  return NULL;
}

static pestle_status_t queue(const buffers_run_t* r, pestle_stream_t* stream,
                             const pestle_run_t* run, pestle_run_order_t* order,
                             pestle_completions_t* inputs) {
  pestle_executable_t* e = r->e;
  holds_t* holds;
  PESTLE_TRY(find_inputs(r, inputs));
  order->waits = inputs->data;
  order->wait_count = inputs->size;
  PESTLE_TRY(queue_waits(r, stream));
  PESTLE_TRY(note_uses(r, order->done));
  PESTLE_TRY(make_holds(r, stream, order->done, &holds));
  order->after = after_run;
  order->after_self = holds;
  pestle_status_t status =
      pestle_stream_run(stream, e, r->frame, r->frame->given,
                        r->frame->given + e->input_count, run, order);
  if (status) end_holds(holds, NULL);
  return status;
}

static pestle_status_t run_queued(const buffers_run_t* r,
                                  pestle_stream_t* stream,
                                  const pestle_run_t* run) {
  pestle_run_order_t order = {.wait_count = 0};
  pestle_completions_t inputs;
  PESTLE_TRY(pestle_completion_create(stream->timeline, &order.done));
  pestle_vec_init(&inputs, r->e->context->core.allocator);
  pestle_status_t status = bind(r);
  if (!status) status = queue(r, stream, run, &order, &inputs);
  release_all(&inputs);
  if (status) {
    // It is among the uses of inputs.
    pestle_completion_finish(order.done, pestle_status_retain(status));
    drop_outputs(r);
  } else {
    for (size_t o = 0; o < r->e->output_count; ++o)
      pestle_buffer_set_defined(r->outputs[o], order.done);
    conclude(r, order.done);
    if (r->options->done) {
      pestle_completion_retain(order.done);
      pestle_event_set_latest(r->options->done, order.done);
    }
  }
  pestle_completion_release(order.done);
  return status;
}

// --- The call ---

static pestle_status_t call(const buffers_run_t* given, pestle_stream_t* stream,
                            size_t input_count, size_t output_count,
                            const pestle_run_t* run) {
  buffers_run_t r = *given;
  pestle_executable_t* e = r.e;
  if (e->remote) PESTLE_TRY(pestle_device_check_open(e->home));
  PESTLE_TRY(pestle_run_check_counts(e, r.inputs, input_count, r.outputs,
                                     output_count));
  PESTLE_TRY(check_events(&r));
  PESTLE_TRY(pestle_executable_check_world(e, run->options.world));
  PESTLE_TRY(pestle_executable_check_strings(e, run->options.strings));
  if (stream) PESTLE_TRY(pestle_stream_accepts(stream, e));
  bool native = stream && pestle_stream_native(stream);
  PESTLE_TRY(pestle_frame_take(e, native ? stream->number : 0,
                               run->options.world, &r.frame));
  pestle_status_t status =
      stream ? run_queued(&r, stream, run) : run_now(&r, run);
  pestle_frame_give(e, r.frame);
  return status;
}

pestle_status_t pestle_executable_run_buffers(
    pestle_executable_t* executable, pestle_stream_t* stream,
    const pestle_buffer_view_t* inputs, size_t input_count,
    pestle_buffer_t** outputs, size_t output_count,
    const pestle_run_buffers_options_t* user) {
  pestle_executable_t* e = executable;
  static const pestle_run_buffers_options_t no_options;
  static const pestle_run_t plain_run;
  pestle_run_buffers_options_t options;
  pestle_run_t run;
  for (size_t o = 0; outputs && o < output_count; ++o)
    outputs[o] = NULL;
  PESTLE_REQUIRE(e, "an executable");
  pestle_context_enter(e->context);
  buffers_run_t r = {
      .e = e, .inputs = inputs, .outputs = outputs, .options = &no_options};
  if (!user) return call(&r, stream, input_count, output_count, &plain_run);
  PESTLE_TRY(read_options(user, &options, &run));
  r.options = &options;
  pestle_status_t status = call(&r, stream, input_count, output_count, &run);
  pestle_run_leave_world(&run, status);
  return status;
}
