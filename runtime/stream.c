// SPDX-License-Identifier: Apache-2.0
#include "runtime/stream.h"

#include <string.h>

#include "base/bits.h"
#include "base/mem.h"
#include "base/require.h"
#include "base/status_copy.h"
#include "pestle/world.h"

typedef enum op_kind_t { OP_RUN, OP_SIGNAL, OP_WAIT } op_kind_t;

// An output as queued: the run works on a copy of the view, whose extents (and
// strides, when the output was allocated) go to the caller's arrays after it.
typedef struct queued_output_t {
  int64_t* shape;
  int64_t* strides;
} queued_output_t;

struct pestle_stream_op_t {
  pestle_stream_op_t* next;
  size_t bytes;  // of this block
  op_kind_t kind;
  pestle_completion_t* completion;  // of signals and waits
  pestle_executable_t* executable;
  pestle_run_t run;
  pestle_run_order_t order;
  bool has_order;
  pestle_tensor_t* inputs;
  pestle_tensor_t* outputs;
  queued_output_t* callers;
  pestle_completion_t** waits;
  int64_t* numbers;  // copies of shapes and strides
  bool* donated;
  bool* allocated;
};
typedef pestle_stream_op_t op_t;

// --- Operations ---

static void destroy_op(pestle_context_t* context, op_t* op) {
  for (size_t i = 0; i < op->order.wait_count; ++i) {
    pestle_completion_release(op->waits[i]);
  }
  if (op->order.after) op->order.after(op->order.after_self);
  pestle_completion_release(op->order.done);
  pestle_completion_release(op->completion);
  if (op->kind == OP_RUN) pestle_world_release(op->run.options.world);
  pestle_executable_release(op->executable);
  pestle_dealloc(context->core.allocator, op, op->bytes);
}

static void give_extents(const op_t* op) {
  const pestle_executable_t* e = op->executable;
  for (size_t i = 0; i < e->output_count; ++i) {
    const pestle_io_info_t* info = &e->io[e->input_count + i].info;
    if (!info->bounded || !info->rank) continue;
    size_t size = (size_t)info->rank * sizeof(int64_t);
    if (op->has_order) continue;  // It is the caller's.
    memcpy(op->callers[i].shape, op->outputs[i].shape, size);
    if (op->allocated[i]) {
      memcpy(op->callers[i].strides, op->outputs[i].strides, size);
    }
  }
}

static void do_run(pestle_stream_t* stream, op_t* op) {
  pestle_executable_t* e = op->executable;
  const pestle_run_order_t* order = op->has_order ? &op->order : NULL;
  pestle_frame_t* frame;
  pestle_status_t status =
      pestle_frame_take(e, stream->native.stream ? stream->number : 0,
                        op->run.options.world, &frame);
  if (status) {
    pestle_run_leave_world(&op->run, status);
    pestle_stream_act_failed(stream, order, status);
    return;
  }
  if (e->input_count) memcpy(frame->donated, op->donated, e->input_count);
  if (e->output_count) {
    memcpy(frame->allocated, op->allocated, e->output_count);
  }
  status = pestle_run_bind(e, op->inputs, op->outputs, frame);
  if (status) {
    pestle_run_leave_world(&op->run, status);
    pestle_stream_act_failed(stream, order, status);
  } else {
    pestle_stream_act_run(stream, e, frame, op->inputs, op->outputs, &op->run,
                          order, &status);
    if (!status) give_extents(op);
    pestle_status_release(status);
  }
  pestle_frame_give(e, frame);
}

static void do_op(pestle_stream_t* stream, op_t* op) {
  switch (op->kind) {
    case OP_RUN:
      do_run(stream, op);
      return;
    case OP_SIGNAL:
      pestle_stream_act_fail(stream,
                             pestle_stream_act_signal(stream, op->completion));
      return;
    case OP_WAIT:
      pestle_stream_act_wait(stream, op->completion);
      return;
  }
}

static void stream_main(void* argument) {
  pestle_stream_t* stream = argument;
  pestle_trace_t* trace = stream->device->context->core.trace;
  if (trace) pestle_trace_name_thread(trace, "pestle stream");
  pestle_mutex_lock(&stream->mutex);
  for (;;) {
    while ((!stream->head && !stream->stop) || stream->busy) {
      pestle_cond_wait(&stream->more, &stream->mutex);
    }
    op_t* op = stream->head;
    if (!op) break;
    stream->head = op->next;
    if (!stream->head) stream->end = &stream->head;
    stream->busy = true;
    pestle_mutex_unlock(&stream->mutex);
    do_op(stream, op);
    destroy_op(stream->device->context, op);
    pestle_mutex_lock(&stream->mutex);
    stream->busy = false;
    if (!stream->head) pestle_cond_broadcast(&stream->idle);
  }
  pestle_mutex_unlock(&stream->mutex);
}

bool pestle_stream_begin(pestle_stream_t* stream) {
  if (!stream->native.stream) return false;
  pestle_mutex_lock(&stream->mutex);
  bool may = !stream->head && !stream->busy;
  if (may) stream->busy = true;
  pestle_mutex_unlock(&stream->mutex);
  return may;
}

void pestle_stream_end(pestle_stream_t* stream) {
  pestle_mutex_lock(&stream->mutex);
  stream->busy = false;
  if (stream->head) {
    pestle_cond_signal(&stream->more);
  } else {
    pestle_cond_broadcast(&stream->idle);
  }
  pestle_mutex_unlock(&stream->mutex);
}

// --- Life ---

static bool is_of_parent(const pestle_stream_t* stream) {
  return stream->fork_count !=
         atomic_load(&stream->device->context->fork_count);
}

pestle_status_t pestle_stream_check(const pestle_stream_t* stream) {
  pestle_context_enter(stream->device->context);
  if (!is_of_parent(stream)) return NULL;
  return PESTLE_ERROR(UNAVAILABLE,
                      "the stream was made before fork(); make a new one in "
                      "the child");
}

static pestle_status_t start(pestle_stream_t* stream) {
  if (stream->started) return NULL;
  PESTLE_TRY(pestle_thread_start(stream_main, stream, "pestle stream",
                                 &stream->thread));
  stream->started = true;
  return NULL;
}

static void destroy(pestle_stream_t* stream) {
  pestle_context_t* context = stream->device->context;
  if (stream->started) {
    pestle_mutex_lock(&stream->mutex);
    stream->stop = true;
    pestle_cond_signal(&stream->more);
    pestle_mutex_unlock(&stream->mutex);
    pestle_thread_join(&stream->thread);
  }
  pestle_queue_deinit(&stream->native);
  if (stream->timeline) {
    pestle_timeline_close(stream->timeline);
    if (stream->failure) atomic_fetch_add(&stream->timeline->epoch, 1);
  }
  pestle_timeline_release(stream->timeline);
  pestle_status_release(stream->failure);
  pestle_status_release(stream->lost);
  pestle_poison_forget(&context->poison, stream->number);
  pestle_cond_deinit(&stream->idle);
  pestle_cond_deinit(&stream->more);
  pestle_mutex_deinit(&stream->mutex);
  pestle_dealloc(context->core.allocator, stream, sizeof(*stream));
  pestle_context_release(context);
}

static pestle_status_t fill(pestle_stream_t* stream) {
  pestle_device_t* device = stream->device;
  bool is_cpu = pestle_device_is_cpu(device);
  PESTLE_TRY(pestle_timeline_create(device->context, is_cpu ? NULL : device,
                                    &stream->timeline));
  return is_cpu ? start(stream) : pestle_queue_init(device, &stream->native);
}

pestle_status_t pestle_stream_create(pestle_device_t* device,
                                     pestle_stream_t** out_stream) {
  if (out_stream) *out_stream = NULL;
  PESTLE_REQUIRE(device && out_stream, "a device and a place for the stream");
  PESTLE_TRY(pestle_device_check_open(device));
  if (!pestle_device_is_cpu(device) && !pestle_device_has_streams(device)) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "device %s offers no streams: its backend '%s' lacks "
                        "stream_create(), stream_synchronize() or "
                        "stream_destroy()",
                        device->name, device->plugin->name);
  }
  pestle_context_t* context = device->context;
  pestle_stream_t* stream =
      pestle_alloc_zero(context->core.allocator, sizeof(*stream));
  if (!stream) return PESTLE_OOM();
  pestle_context_retain(context);
  stream->device = device;
  stream->fork_count = atomic_load(&context->fork_count);
  stream->end = &stream->head;
  pestle_mutex_init(&stream->mutex);
  pestle_cond_init(&stream->more);
  pestle_cond_init(&stream->idle);
  stream->number = atomic_fetch_add(&context->stream_count, 1) + 1;
  pestle_status_t status = fill(stream);
  if (status) {
    destroy(stream);
  } else {
    *out_stream = stream;
  }
  return status;
}

void pestle_stream_release(pestle_stream_t* stream) {
  if (!stream) return;
  pestle_context_enter(stream->device->context);
  // Its thread and perhaps its locks belong to the parent of a fork: there is
  // nothing here that could be torn down.
  if (!is_of_parent(stream)) destroy(stream);
}

pestle_status_t pestle_stream_accepts(const pestle_stream_t* stream,
                                      const pestle_executable_t* executable) {
  if (stream->device->context != executable->context) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the stream belongs to another context than the "
                        "executable");
  }
  // CPUs share their memory and their threads.
  bool native = stream->native.stream || executable->remote;
  if (native && stream->device != executable->home) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the stream is of device %s, but the executable runs "
                        "on %s; make a stream of that one",
                        stream->device->name, executable->home->name);
  }
  return pestle_stream_check(stream);
}

// What the backend says, after what is known without it. A device that is lost is
// no second failure.
static pestle_status_t join_native(const pestle_stream_t* stream,
                                   pestle_status_t status) {
  if (!stream->native.stream) return status;
  pestle_status_t native =
      pestle_status_annotate(pestle_queue_wait(&stream->native),
                             "on a stream of device %s", stream->device->name);
  if (status && pestle_status_code(native) == PESTLE_STATUS_UNAVAILABLE) {
    pestle_status_release(native);
    native = NULL;
  }
  return pestle_status_join(status, native);
}

pestle_status_t pestle_stream_synchronize(pestle_stream_t* stream) {
  PESTLE_REQUIRE(stream, "a stream");
  PESTLE_TRY(pestle_stream_check(stream));
  pestle_mutex_lock(&stream->mutex);
  while (stream->head || stream->busy) {
    pestle_cond_wait(&stream->idle, &stream->mutex);
  }
  stream->busy = true;
  pestle_mutex_unlock(&stream->mutex);
  pestle_status_t status = join_native(stream, stream->failure);
  if (stream->failure) atomic_fetch_add(&stream->timeline->epoch, 1);
  stream->failure = NULL;
  pestle_status_release(stream->lost);
  stream->lost = NULL;
  pestle_poison_forget(&stream->device->context->poison, stream->number);
  pestle_mutex_lock(&stream->mutex);
  stream->busy = false;
  if (stream->head) pestle_cond_signal(&stream->more);
  pestle_cond_broadcast(&stream->idle);
  pestle_mutex_unlock(&stream->mutex);
  return status;
}

// --- Queueing ---

static pestle_status_t push(pestle_stream_t* stream, op_t* op) {
  pestle_mutex_lock(&stream->mutex);
  pestle_status_t status = start(stream);
  if (!status) {
    *stream->end = op;
    stream->end = &op->next;
    pestle_cond_signal(&stream->more);
  }
  pestle_mutex_unlock(&stream->mutex);
  if (status) {
    op->order.after = NULL;  // It was not accepted.
    destroy_op(stream->device->context, op);
  }
  return status;
}

static void* carve(char* base, size_t* size, size_t bytes) {
  char* part = base ? base + *size : NULL;
  *size += pestle_align_up(bytes, 16);
  return part;
}

static size_t lay_out(const pestle_executable_t* e, size_t wait_count,
                      char* base, op_t* op) {
  size_t size = 0, numbers = 0;
  for (size_t i = 0; i < e->io_count; ++i) {
    numbers += 2 * (size_t)e->io[i].info.rank;
  }
  (void)carve(base, &size, sizeof(*op));
  op->inputs = carve(base, &size, e->input_count * sizeof(pestle_tensor_t));
  op->outputs = carve(base, &size, e->output_count * sizeof(pestle_tensor_t));
  op->callers = carve(base, &size, e->output_count * sizeof(queued_output_t));
  op->waits = carve(base, &size, wait_count * sizeof(*op->waits));
  op->numbers = carve(base, &size, numbers * sizeof(int64_t));
  op->donated = carve(base, &size, e->input_count);
  op->allocated = carve(base, &size, e->output_count);
  return size;
}

// Copies a view whose rank was checked; |*numbers| moves past what it takes.
static void copy_view(const pestle_tensor_t* view, pestle_tensor_t* copy,
                      int64_t** numbers) {
  *copy = *view;
  size_t rank = (size_t)view->ndim;
  if (!rank) return;
  memcpy(*numbers, view->shape, rank * sizeof(int64_t));
  copy->shape = *numbers;
  *numbers += rank;
  if (!view->strides) return;
  memcpy(*numbers, view->strides, rank * sizeof(int64_t));
  copy->strides = *numbers;
  *numbers += rank;
}

static void copy_order(const pestle_run_order_t* order, op_t* op) {
  op->has_order = true;
  op->order = *order;
  op->order.waits = op->waits;
  for (size_t i = 0; i < order->wait_count; ++i) {
    op->waits[i] = order->waits[i];
    pestle_completion_retain(op->waits[i]);
  }
  if (order->done) pestle_completion_retain(order->done);
}

// That the caller queued a run: an arrow leads from here to it.
static uint64_t trace_queued(const pestle_executable_t* e) {
  pestle_trace_t* trace = e->context->core.trace;
  if (!trace) return 0;
  int64_t now = pestle_clock_ns();
  pestle_trace_span_t span = {.category = "run",
                              .name = "queue",
                              .begin_ns = now,
                              .end_ns = now + 1,
                              .flow_out = pestle_trace_flow(trace)};
  pestle_trace_add(trace, &span);
  return span.flow_out;
}

static pestle_status_t push_run(pestle_stream_t* stream, pestle_executable_t* e,
                                const pestle_frame_t* frame,
                                const pestle_tensor_t* inputs,
                                const pestle_tensor_t* outputs,
                                const pestle_run_t* run,
                                const pestle_run_order_t* order) {
  op_t measured;
  size_t wait_count = order ? order->wait_count : 0;
  size_t bytes = lay_out(e, wait_count, NULL, &measured);
  char* base = pestle_alloc_zero(e->context->core.allocator, bytes);
  if (!base) return PESTLE_OOM();
  op_t* op = (op_t*)(void*)base;
  (void)lay_out(e, wait_count, base, op);
  op->bytes = bytes;
  op->kind = OP_RUN;
  op->run = *run;
  op->run.flow = trace_queued(e);
  pestle_world_retain(op->run.options.world);
  op->executable = e;
  pestle_executable_retain(e);
  if (order) copy_order(order, op);
  int64_t* numbers = op->numbers;
  for (size_t i = 0; i < e->input_count; ++i) {
    copy_view(&inputs[i], &op->inputs[i], &numbers);
    op->donated[i] = frame->donated[i];
  }
  for (size_t i = 0; i < e->output_count; ++i) {
    copy_view(&outputs[i], &op->outputs[i], &numbers);
    // Who is told of the run alone finds the extents when it is told.
    if (order) op->outputs[i].shape = outputs[i].shape;
    op->callers[i] = (queued_output_t){outputs[i].shape, outputs[i].strides};
    op->allocated[i] = frame->allocated[i];
  }
  return push(stream, op);
}

pestle_status_t pestle_stream_run(pestle_stream_t* stream,
                                  pestle_executable_t* e, pestle_frame_t* frame,
                                  const pestle_tensor_t* inputs,
                                  pestle_tensor_t* outputs,
                                  const pestle_run_t* run,
                                  const pestle_run_order_t* order) {
  if (!pestle_stream_may_run(stream, e, frame, run, order) ||
      !pestle_stream_begin(stream)) {
    return push_run(stream, e, frame, inputs, outputs, run, order);
  }
  pestle_status_t failure;
  pestle_stream_act_run(stream, e, frame, inputs, outputs, run, order,
                        &failure);
  pestle_stream_end(stream);
  if (order && order->after) order->after(order->after_self);
  pestle_status_release(failure);  // It is the stream's.
  return NULL;
}

static pestle_status_t push_event(pestle_stream_t* stream, op_kind_t kind,
                                  pestle_completion_t* completion) {
  pestle_context_t* context = stream->device->context;
  op_t* op = pestle_alloc_zero(context->core.allocator, sizeof(*op));
  if (!op) return PESTLE_OOM();
  op->bytes = sizeof(*op);
  op->kind = kind;
  op->completion = completion;
  pestle_completion_retain(completion);
  return push(stream, op);
}

pestle_status_t pestle_stream_signal(pestle_stream_t* stream,
                                     pestle_completion_t* completion) {
  if (pestle_stream_may_signal(stream) && pestle_stream_begin(stream)) {
    pestle_status_t status = pestle_stream_act_signal(stream, completion);
    pestle_stream_end(stream);
    return status;
  }
  pestle_status_t status = push_event(stream, OP_SIGNAL, completion);
  if (status) {
    pestle_completion_settle(completion, NULL, pestle_status_retain(status));
    pestle_completion_finish(completion, pestle_status_retain(status));
  }
  return status;
}

pestle_status_t pestle_stream_wait(pestle_stream_t* stream,
                                   pestle_completion_t* completion) {
  if (pestle_stream_may_wait(stream, completion) &&
      pestle_stream_begin(stream)) {
    pestle_stream_act_wait(stream, completion);
    pestle_stream_end(stream);
    return NULL;
  }
  return push_event(stream, OP_WAIT, completion);
}
