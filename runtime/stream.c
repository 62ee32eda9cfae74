// SPDX-License-Identifier: Apache-2.0
// Streams. Those of other devices are the backend's: the caller queues on them
// what it has to. One of a CPU is a thread that works off a queue in order.
// After a failed run what is queued behind it is not run, since it may read
// what the failed one was to write; events are signalled all the same. The
// failure is reported, and forgotten, by the next synchronisation.
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"
#include "base/require.h"
#include "runtime/event.h"
#include "runtime/executable.h"

typedef enum op_kind_t { OP_RUN, OP_SIGNAL, OP_WAIT } op_kind_t;

// An output as queued: the run works on a copy of the view, whose extents (and
// strides, when the output was allocated) go to the caller's arrays after it.
typedef struct queued_output_t {
  int64_t* shape;
  int64_t* strides;
} queued_output_t;

typedef struct op_t {
  struct op_t* next;
  size_t bytes;  // of this block
  op_kind_t kind;
  pestle_event_t* event;
  uint64_t ticket;
  pestle_executable_t* executable;
  pestle_run_t run;
  pestle_tensor_t* inputs;
  pestle_tensor_t* outputs;
  queued_output_t* callers;
  int64_t* numbers;  // copies of shapes and strides
  bool* donated;
  bool* allocated;
} op_t;

struct pestle_stream_s {
  pestle_device_t* device;
  pestle_queue_t native;  // without a stream on CPUs, which have what follows
  uint64_t number;
  pestle_mutex_t mutex;  // of all below
  pestle_cond_t more;
  pestle_cond_t idle;
  op_t* head;
  op_t* tail;
  bool busy;
  bool stop;
  bool started;
  pestle_status_t failure;
  unsigned fork_count;
  pestle_thread_t thread;
};

// --- Operations ---

static void destroy_op(pestle_context_t* context, op_t* op) {
  pestle_event_release(op->event);
  pestle_executable_release(op->executable);
  pestle_dealloc(context->core.allocator, op, op->bytes);
}

static pestle_status_t run_op(op_t* op) {
  pestle_executable_t* e = op->executable;
  PESTLE_TRY(pestle_run_checked(e, op->inputs, op->outputs, op->donated,
                                op->allocated, &op->run));
  for (size_t i = 0; i < e->output_count; ++i) {
    const pestle_io_info_t* info = &e->io[e->input_count + i].info;
    if (!info->bounded || !info->rank) continue;
    size_t size = (size_t)info->rank * sizeof(int64_t);
    memcpy(op->callers[i].shape, op->outputs[i].shape, size);
    if (op->allocated[i]) {
      memcpy(op->callers[i].strides, op->outputs[i].strides, size);
    }
  }
  return NULL;
}

static pestle_status_t do_op(op_t* op, bool failed) {
  switch (op->kind) {
    case OP_RUN:
      return failed ? NULL : run_op(op);
    case OP_SIGNAL:
      return pestle_event_signal(op->event, op->ticket);
    case OP_WAIT:
      return pestle_event_wait_for(op->event, op->ticket);
  }
  return NULL;
}

static void stream_main(void* argument) {
  pestle_stream_t* stream = argument;
  pestle_trace_t* trace = stream->device->context->core.trace;
  if (trace) pestle_trace_name_thread(trace, "pestle stream");
  pestle_mutex_lock(&stream->mutex);
  for (;;) {
    while (!stream->head && !stream->stop) {
      pestle_cond_wait(&stream->more, &stream->mutex);
    }
    op_t* op = stream->head;
    if (!op) break;
    stream->head = op->next;
    stream->busy = true;
    bool failed = stream->failure != NULL;
    pestle_mutex_unlock(&stream->mutex);
    pestle_status_t status = do_op(op, failed);
    destroy_op(stream->device->context, op);
    pestle_mutex_lock(&stream->mutex);
    if (status && stream->failure) {
      pestle_status_release(status);  // The first is what is reported.
    } else if (status) {
      stream->failure = status;
    }
    stream->busy = false;
    if (!stream->head) pestle_cond_broadcast(&stream->idle);
  }
  pestle_mutex_unlock(&stream->mutex);
}

// --- Life ---

static bool is_of_parent(const pestle_stream_t* stream) {
  return stream->fork_count !=
         atomic_load(&stream->device->context->fork_count);
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
  pestle_status_release(stream->failure);
  pestle_cond_deinit(&stream->idle);
  pestle_cond_deinit(&stream->more);
  pestle_mutex_deinit(&stream->mutex);
  pestle_dealloc(context->core.allocator, stream, sizeof(*stream));
  pestle_context_release(context);
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
  pestle_mutex_init(&stream->mutex);
  pestle_cond_init(&stream->more);
  pestle_cond_init(&stream->idle);
  stream->number = atomic_fetch_add(&context->stream_count, 1) + 1;
  pestle_status_t status;
  if (pestle_device_is_cpu(device)) {
    status = pestle_thread_start(stream_main, stream, "pestle stream",
                                 &stream->thread);
    stream->started = !status;
  } else {
    status = pestle_queue_init(device, &stream->native);
  }
  if (status) {
    destroy(stream);
  } else {
    *out_stream = stream;
  }
  return status;
}

pestle_device_t* pestle_stream_device(const pestle_stream_t* stream) {
  return stream->device;
}

void pestle_stream_release(pestle_stream_t* stream) {
  if (!stream) return;
  pestle_context_enter(stream->device->context);
  // Its thread and perhaps its locks belong to the parent of a fork: there is
  // nothing here that could be torn down.
  if (!is_of_parent(stream)) destroy(stream);
}

pestle_device_stream_t* pestle_stream_native(const pestle_stream_t* stream) {
  return stream->native.stream;
}

uint64_t pestle_stream_number(const pestle_stream_t* stream) {
  return stream->number;
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
  if (is_of_parent(stream)) {
    return PESTLE_ERROR(UNAVAILABLE,
                        "the stream was made before fork(); make a new one in "
                        "the child");
  }
  return NULL;
}

pestle_status_t pestle_stream_synchronize(pestle_stream_t* stream) {
  PESTLE_REQUIRE(stream, "a stream");
  pestle_context_enter(stream->device->context);
  if (is_of_parent(stream)) {
    return PESTLE_ERROR(UNAVAILABLE,
                        "the stream was made before fork(); make a new one in "
                        "the child");
  }
  if (stream->native.stream) {
    return pestle_status_annotate(pestle_queue_wait(&stream->native),
                                  "on a stream of device %s",
                                  stream->device->name);
  }
  pestle_mutex_lock(&stream->mutex);
  while (stream->head || stream->busy) {
    pestle_cond_wait(&stream->idle, &stream->mutex);
  }
  pestle_status_t status = stream->failure;
  stream->failure = NULL;
  pestle_mutex_unlock(&stream->mutex);
  return status;
}

// --- Queueing ---

static void push(pestle_stream_t* stream, op_t* op) {
  pestle_mutex_lock(&stream->mutex);
  if (stream->head) {
    stream->tail->next = op;
  } else {
    stream->head = op;
  }
  stream->tail = op;
  pestle_cond_signal(&stream->more);
  pestle_mutex_unlock(&stream->mutex);
}

static void* carve(char* base, size_t* size, size_t bytes) {
  char* part = base ? base + *size : NULL;
  *size += pestle_align_up(bytes, 16);
  return part;
}

static size_t lay_out(const pestle_executable_t* e, char* base, op_t* op) {
  size_t size = 0, numbers = 0;
  for (size_t i = 0; i < e->io_count; ++i) {
    numbers += 2 * (size_t)e->io[i].info.rank;
  }
  (void)carve(base, &size, sizeof(*op));
  op->inputs = carve(base, &size, e->input_count * sizeof(pestle_tensor_t));
  op->outputs = carve(base, &size, e->output_count * sizeof(pestle_tensor_t));
  op->callers = carve(base, &size, e->output_count * sizeof(queued_output_t));
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

pestle_status_t pestle_stream_push_run(
    pestle_stream_t* stream, pestle_executable_t* e,
    const pestle_tensor_t* inputs, const pestle_tensor_t* outputs,
    const bool* donated, const bool* allocated, const pestle_run_t* run) {
  op_t measured;
  size_t bytes = lay_out(e, NULL, &measured);
  char* base = pestle_alloc_zero(e->context->core.allocator, bytes);
  if (!base) return PESTLE_OOM();
  op_t* op = (op_t*)(void*)base;
  (void)lay_out(e, base, op);
  op->bytes = bytes;
  op->kind = OP_RUN;
  op->run = *run;
  op->executable = e;
  pestle_executable_retain(e);
  int64_t* numbers = op->numbers;
  for (size_t i = 0; i < e->input_count; ++i) {
    copy_view(&inputs[i], &op->inputs[i], &numbers);
    op->donated[i] = donated[i];
  }
  for (size_t i = 0; i < e->output_count; ++i) {
    copy_view(&outputs[i], &op->outputs[i], &numbers);
    op->callers[i] = (queued_output_t){outputs[i].shape, outputs[i].strides};
    op->allocated[i] = allocated[i];
  }
  push(stream, op);
  return NULL;
}

// On a backend's stream. What the backend cannot order with it, because the
// event is of the host or of another backend, the caller waits for.
static pestle_status_t native_signal(pestle_stream_t* stream,
                                     pestle_event_t* event) {
  const pestle_backend_t* backend = stream->device->backend;
  pestle_device_t* device;
  pestle_device_event_t* native = pestle_event_native(event, &device);
  uint64_t ticket = pestle_event_take_ticket(event);
  if (native && device->backend == backend) {
    pestle_status_t status = backend->device->event_signal(
        backend->self, native, stream->native.stream, ticket);
    // The ticket is given out: a wait for it must end.
    if (status) pestle_status_release(pestle_event_signal(event, ticket));
    return status;
  }
  pestle_status_t status = pestle_queue_wait(&stream->native);
  return pestle_status_join(status, pestle_event_signal(event, ticket));
}

static pestle_status_t native_wait(pestle_stream_t* stream,
                                   pestle_event_t* event) {
  const pestle_backend_t* backend = stream->device->backend;
  pestle_device_t* device;
  pestle_device_event_t* native = pestle_event_native(event, &device);
  uint64_t ticket = pestle_event_ticket(event);
  if (native && device->backend == backend) {
    return backend->device->event_wait_stream(backend->self, native,
                                              stream->native.stream, ticket);
  }
  return pestle_event_wait_for(event, ticket);
}

static pestle_status_t push_event(pestle_stream_t* stream, op_kind_t kind,
                                  pestle_event_t* event) {
  pestle_context_t* context = stream->device->context;
  pestle_context_enter(context);
  if (is_of_parent(stream)) {
    return PESTLE_ERROR(UNAVAILABLE,
                        "the stream was made before fork(); make a new one in "
                        "the child");
  }
  if (stream->native.stream) {
    return kind == OP_SIGNAL ? native_signal(stream, event)
                             : native_wait(stream, event);
  }
  op_t* op = pestle_alloc_zero(context->core.allocator, sizeof(*op));
  if (!op) return PESTLE_OOM();
  op->bytes = sizeof(*op);
  op->kind = kind;
  op->event = event;
  pestle_event_retain(event);
  op->ticket = kind == OP_SIGNAL ? pestle_event_take_ticket(event)
                                 : pestle_event_ticket(event);
  push(stream, op);
  return NULL;
}

pestle_status_t pestle_stream_push_signal(pestle_stream_t* stream,
                                          pestle_event_t* event) {
  return push_event(stream, OP_SIGNAL, event);
}

pestle_status_t pestle_stream_push_wait(pestle_stream_t* stream,
                                        pestle_event_t* event) {
  return push_event(stream, OP_WAIT, event);
}
