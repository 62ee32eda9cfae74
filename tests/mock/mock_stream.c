// SPDX-License-Identifier: Apache-2.0
// Streams, each a thread that works off its queue, and recordings. After a
// failure what is queued behind is left out until the stream is synchronised;
// events are signalled all the same.
#include <stdlib.h>
#include <string.h>

#include "mock/mock_internal.h"

struct pestle_device_graph_s {
  mock_op_t* head;
  mock_op_t** tail;
  int queued;  // launches that are not done; under the lock
};

struct pestle_device_stream_s {
  struct pestle_device_stream_s* next;  // of all
  const pestle_host_t* host;
  int32_t device;
  pthread_t thread;
  mock_op_t* head;
  mock_op_t** tail;
  bool busy, stop;
  int32_t trap;  // of the first that failed
  pestle_device_graph_t* recording;
};

static pestle_device_stream_t* streams;

bool mock_busy(int32_t device) {
  for (pestle_device_stream_t* s = streams; s; s = s->next) {
    if (s->device == device && (s->head || s->busy)) return true;
  }
  return false;
}

int32_t mock_stream_device(const pestle_device_stream_t* stream) {
  return stream->device;
}

// --- The thread ---

static int32_t run_graph(const pestle_device_graph_t* graph) {
  for (const mock_op_t* op = graph->head; op; op = op->next) {
    if (op->kind == MOCK_OP_LAUNCH) {
      int32_t trap = mock_run(op);
      if (trap) return trap;
    } else {
      memcpy(mock_real(op->to), mock_real(op->from), op->size);
    }
  }
  return 0;
}

// Runs |op|, of which the lock knows nothing.
static int32_t run_op(const mock_op_t* op) {
  if (op->kind == MOCK_OP_LAUNCH) return mock_run(op);
  if (op->kind == MOCK_OP_GRAPH) return run_graph(op->graph);
  memcpy(mock_real(op->to), mock_real(op->from), op->size);
  return 0;
}

// What a synchronisation of |s| would say now.
static pestle_status_t failure_of(const pestle_device_stream_t* s) {
  if (atomic_load(&mock_state()->lost)) {
    return MOCK_ERROR(s->host, UNAVAILABLE, "mock: the device is lost");
  }
  if (!s->trap) return NULL;
  return MOCK_ERROR(s->host, INTERNAL, "mock: a kernel stopped at its check %d",
                    (int)s->trap);
}

static void do_op(pestle_device_stream_t* s, mock_op_t* op) {
  if (op->kind == MOCK_OP_SIGNAL) {
    if (op->event->value < op->value) op->event->value = op->value;
  } else if (op->kind == MOCK_OP_WAIT) {
    while (op->event->value < op->value)
      pthread_cond_wait(&mock_changed, &mock_lock);
  } else if (op->kind == MOCK_OP_CALL) {
    pestle_status_t failure = failure_of(s);
    pthread_mutex_unlock(&mock_lock);
    op->call(op->user, failure);
    pthread_mutex_lock(&mock_lock);
  } else if (!s->trap) {
    pthread_mutex_unlock(&mock_lock);
    int32_t trap = run_op(op);
    pthread_mutex_lock(&mock_lock);
    s->trap = trap;
  }
  if (op->kind == MOCK_OP_LAUNCH) atomic_fetch_sub(&op->loaded->queued, 1);
  if (op->kind == MOCK_OP_GRAPH) --op->graph->queued;
  if (op->event) mock_event_drop(op->event);
}

static void* stream_main(void* argument) {
  pestle_device_stream_t* s = argument;
  pthread_mutex_lock(&mock_lock);
  for (;;) {
    while (!s->head && !s->stop)
      pthread_cond_wait(&mock_changed, &mock_lock);
    mock_op_t* op = s->head;
    if (!op) break;
    s->head = op->next;
    if (!s->head) s->tail = &s->head;
    s->busy = true;
    do_op(s, op);
    free(op);
    s->busy = false;
    pthread_cond_broadcast(&mock_changed);
  }
  pthread_mutex_unlock(&mock_lock);
  return NULL;
}

// --- Life ---

static pestle_status_t stream_create(void* self, int32_t device,
                                     pestle_device_stream_t** out_stream) {
  const pestle_host_t* host = mock_host(self);
  *out_stream = NULL;
  PESTLE_TRY(mock_enter(self, MOCK_STREAM_CREATE));
  pestle_device_stream_t* s = calloc(1, sizeof(*s));
  if (!s) return MOCK_ERROR(host, OUT_OF_MEMORY, "out of host memory");
  s->host = host;
  s->device = mock_device(self, device);
  s->tail = &s->head;
  if (pthread_create(&s->thread, NULL, stream_main, s)) {
    free(s);
    return MOCK_ERROR(host, RESOURCE_EXHAUSTED, "mock: no thread");
  }
  pthread_mutex_lock(&mock_lock);
  s->next = streams;
  streams = s;
  pthread_mutex_unlock(&mock_lock);
  atomic_fetch_add(&mock_state()->live_streams, 1);
  *out_stream = s;
  return NULL;
}

static pestle_status_t stream_synchronize(void* self,
                                          pestle_device_stream_t* s) {
  pestle_status_t failed = mock_enter(self, MOCK_STREAM_SYNCHRONIZE);
  pthread_mutex_lock(&mock_lock);
  while (s->head || s->busy)
    pthread_cond_wait(&mock_changed, &mock_lock);
  pestle_status_t trapped = failed ? NULL : failure_of(s);
  s->trap = 0;
  if (!mock_busy(s->device)) mock_reclaim(s->device);
  pthread_mutex_unlock(&mock_lock);
  return failed ? failed : trapped;
}

static void stream_destroy(void* self, pestle_device_stream_t* s) {
  (void)self;
  atomic_fetch_add(&mock_state()->calls[MOCK_STREAM_DESTROY], 1);
  atomic_fetch_sub(&mock_state()->live_streams, 1);
  pthread_mutex_lock(&mock_lock);
  if (s->recording) mock_fault("a stream goes while it records");
  s->stop = true;
  pthread_cond_broadcast(&mock_changed);
  pthread_mutex_unlock(&mock_lock);
  pthread_join(s->thread, NULL);
  pthread_mutex_lock(&mock_lock);
  pestle_device_stream_t** link = &streams;
  while (*link != s)
    link = &(*link)->next;
  *link = s->next;
  if (!mock_busy(s->device)) mock_reclaim(s->device);
  pthread_mutex_unlock(&mock_lock);
  free(s);
}

// --- Queueing ---

pestle_status_t mock_push(void* self, pestle_device_stream_t* s,
                          const mock_op_t* op) {
  const pestle_host_t* host = mock_host(self);
  bool event = op->kind == MOCK_OP_SIGNAL || op->kind == MOCK_OP_WAIT ||
               op->kind == MOCK_OP_CALL;
  mock_op_t* copy = malloc(sizeof(*copy));
  if (!copy) return MOCK_ERROR(host, OUT_OF_MEMORY, "out of host memory");
  *copy = *op;
  copy->next = NULL;
  pthread_mutex_lock(&mock_lock);
  pestle_device_graph_t* graph = s->recording;
  bool refused = graph && (event || op->kind == MOCK_OP_GRAPH);
  if (refused) {
    free(copy);
  } else if (graph) {
    *graph->tail = copy;
    graph->tail = &copy->next;
  } else {
    if (op->kind == MOCK_OP_LAUNCH) atomic_fetch_add(&op->loaded->queued, 1);
    if (op->kind == MOCK_OP_GRAPH) ++op->graph->queued;
    if (op->event) ++op->event->users;
    *s->tail = copy;
    s->tail = &copy->next;
    pthread_cond_broadcast(&mock_changed);
  }
  pthread_mutex_unlock(&mock_lock);
  if (!refused) return NULL;
  mock_fault("a recording gets what it cannot hold");
  return MOCK_ERROR(host, UNSUPPORTED, "mock: a recording cannot hold this");
}

static pestle_status_t push_copy(void* self, pestle_device_stream_t* s,
                                 const void* from, bool from_device, void* to,
                                 bool to_device, size_t size) {
  const pestle_host_t* host = mock_host(self);
  pestle_status_t status = NULL;
  pthread_mutex_lock(&mock_lock);
  if (from_device) {
    status = mock_check(host, s->device, from, size, "what a copy reads");
  }
  if (to_device && !status) {
    status = mock_check(host, s->device, to, size, "what a copy writes");
  }
  pthread_mutex_unlock(&mock_lock);
  if (status) return status;
  mock_op_t op = {.kind = MOCK_OP_COPY, .from = from, .to = to, .size = size};
  return mock_push(self, s, &op);
}

static pestle_status_t queue_from_host(void* self, pestle_device_stream_t* s,
                                       const void* from, void* to,
                                       size_t size) {
  PESTLE_TRY(mock_enter(self, MOCK_QUEUE_FROM_HOST));
  return push_copy(self, s, from, false, to, true, size);
}

static pestle_status_t queue_to_host(void* self, pestle_device_stream_t* s,
                                     const void* from, void* to, size_t size) {
  PESTLE_TRY(mock_enter(self, MOCK_QUEUE_TO_HOST));
  return push_copy(self, s, from, true, to, false, size);
}

static pestle_status_t queue_copy(void* self, pestle_device_stream_t* s,
                                  const void* from, void* to, size_t size) {
  PESTLE_TRY(mock_enter(self, MOCK_QUEUE_COPY));
  return push_copy(self, s, from, true, to, true, size);
}

// --- Calls of the host, and streams of others: those are the mock's too ---

static pestle_status_t stream_host_call(void* self, pestle_device_stream_t* s,
                                        void (*fn)(void* user,
                                                   pestle_status_t failure),
                                        void* user) {
  PESTLE_TRY(mock_enter(self, MOCK_STREAM_HOST_CALL));
  mock_op_t op = {.kind = MOCK_OP_CALL, .call = fn, .user = user};
  return mock_push(self, s, &op);
}

static pestle_status_t stream_native(void* self, pestle_device_stream_t* s,
                                     void** out_native) {
  *out_native = NULL;
  PESTLE_TRY(mock_enter(self, MOCK_STREAM_NATIVE));
  *out_native = s;
  return NULL;
}

static pestle_status_t native_call(void* self, int32_t device,
                                   void (*fn)(void* user), void* user) {
  (void)device;
  PESTLE_TRY(mock_enter(self, MOCK_NATIVE_CALL));
  fn(user);
  return NULL;
}

static pestle_status_t order(void* self, pestle_device_stream_t* first,
                             pestle_device_stream_t* then) {
  if (first == then) return NULL;
  pestle_device_event_t* event = mock_event_make();
  if (!event) {
    return MOCK_ERROR(mock_host(self), OUT_OF_MEMORY, "out of host memory");
  }
  mock_op_t op = {.kind = MOCK_OP_SIGNAL, .event = event, .value = 1};
  pestle_status_t status = mock_push(self, first, &op);
  op.kind = MOCK_OP_WAIT;
  if (!status) status = mock_push(self, then, &op);
  pthread_mutex_lock(&mock_lock);
  mock_event_drop(event);
  pthread_mutex_unlock(&mock_lock);
  return status;
}

static pestle_status_t wait_native(void* self, int32_t device,
                                   pestle_device_stream_t* s, void* native) {
  (void)device;
  PESTLE_TRY(mock_enter(self, MOCK_WAIT_NATIVE));
  return order(self, native, s);
}

static pestle_status_t native_wait(void* self, int32_t device, void* native,
                                   pestle_device_stream_t* s) {
  (void)device;
  PESTLE_TRY(mock_enter(self, MOCK_NATIVE_WAIT));
  return order(self, s, native);
}

// --- Recordings ---

static void free_graph(pestle_device_graph_t* graph) {
  while (graph->head) {
    mock_op_t* op = graph->head;
    graph->head = op->next;
    if (op->kind == MOCK_OP_LAUNCH) atomic_fetch_sub(&op->loaded->recorded, 1);
    free(op);
  }
  free(graph);
}

static pestle_status_t graph_begin(void* self, pestle_device_stream_t* s) {
  const pestle_host_t* host = mock_host(self);
  PESTLE_TRY(mock_enter(self, MOCK_GRAPH_BEGIN));
  pestle_device_graph_t* graph = calloc(1, sizeof(*graph));
  if (!graph) return MOCK_ERROR(host, OUT_OF_MEMORY, "out of host memory");
  graph->tail = &graph->head;
  pthread_mutex_lock(&mock_lock);
  if (s->recording) mock_fault("a recording begins in another");
  s->recording = graph;
  pthread_mutex_unlock(&mock_lock);
  return NULL;
}

static pestle_status_t graph_end(void* self, pestle_device_stream_t* s,
                                 pestle_device_graph_t** out_graph) {
  *out_graph = NULL;
  pestle_status_t status = mock_enter(self, MOCK_GRAPH_END);
  pthread_mutex_lock(&mock_lock);
  pestle_device_graph_t* graph = s->recording;
  s->recording = NULL;
  if (!graph) mock_fault("a recording ends that did not begin");
  pthread_mutex_unlock(&mock_lock);
  for (mock_op_t* op = graph ? graph->head : NULL; op; op = op->next) {
    if (op->kind == MOCK_OP_LAUNCH) atomic_fetch_add(&op->loaded->recorded, 1);
  }
  if (!status) {
    *out_graph = graph;
    atomic_fetch_add(&mock_state()->live_graphs, 1);
  } else if (graph) {
    free_graph(graph);
  }
  return status;
}

// The addresses of the recording must still be memory.
static pestle_status_t check_graph(const pestle_host_t* host,
                                   const pestle_device_graph_t* graph,
                                   int32_t device) {
  for (const mock_op_t* op = graph->head; op; op = op->next) {
    for (uint32_t i = 0; i < op->count; ++i) {
      PESTLE_TRY(mock_check(host, device, op->buffers[i], 0,
                            "an argument of a recording"));
    }
  }
  return NULL;
}

static pestle_status_t graph_launch(void* self, pestle_device_graph_t* graph,
                                    pestle_device_stream_t* s) {
  PESTLE_TRY(mock_enter(self, MOCK_GRAPH_LAUNCH));
  pthread_mutex_lock(&mock_lock);
  pestle_status_t status = check_graph(mock_host(self), graph, s->device);
  pthread_mutex_unlock(&mock_lock);
  if (status) return status;
  mock_op_t op = {.kind = MOCK_OP_GRAPH, .graph = graph};
  return mock_push(self, s, &op);
}

static void graph_destroy(void* self, pestle_device_graph_t* graph) {
  (void)self;
  atomic_fetch_add(&mock_state()->calls[MOCK_GRAPH_DESTROY], 1);
  atomic_fetch_sub(&mock_state()->live_graphs, 1);
  pthread_mutex_lock(&mock_lock);
  if (graph->queued) mock_fault("a recording that runs is freed");
  pthread_mutex_unlock(&mock_lock);
  free_graph(graph);
}

void mock_stream_slots(pestle_device_api_t* api) {
  api->stream_create = stream_create;
  api->stream_synchronize = stream_synchronize;
  api->stream_destroy = stream_destroy;
  api->queue_from_host = queue_from_host;
  api->queue_to_host = queue_to_host;
  api->queue_copy = queue_copy;
  api->stream_host_call = stream_host_call;
  api->stream_native = stream_native;
  api->wait_native = wait_native;
  api->native_wait = native_wait;
  api->native_call = native_call;
  api->graph_begin = graph_begin;
  api->graph_end = graph_end;
  api->graph_launch = graph_launch;
  api->graph_destroy = graph_destroy;
}
