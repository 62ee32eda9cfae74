// SPDX-License-Identifier: Apache-2.0
// Events, which hold a number that only grows, and fences. A signal by a stream
// is an event of the driver that is recorded there, with the number that it
// stands for: a mark. Who waits for a number waits for a mark that is at least
// as large; it may be queued only later: then the host waits for it on a
// condition, and a stream for a word in memory that the signals write.
#include <string.h>

#include "plugins/cuda/backend.h"

// A function that a stream will call to raise the number.
typedef struct promise_t {
  struct promise_t* next;
  pestle_device_event_t* event;
  uint64_t value;
} promise_t;

typedef struct mark_t {
  struct mark_t* next;
  const cuda_device_t* device;  // whose driver's event it is
  CUstream stream;              // that signals it
  CUevent event;
  uint64_t value;
  unsigned holders;
} mark_t;

enum { LOOK_EVERY = 32, MOST_SPARE = 64 };

struct pestle_device_event_s {
  cuda_device_t* device;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t number;       // that is known to be reached
  mark_t *marks, **end;  // those above it, in the order of their queueing
  mark_t* spare;         // done with, each with an event of the driver
  unsigned spares;
  unsigned unseen;    // signals since marks were looked at
  cuda_word_t* word;  // NULL until a stream must wait for it
  promise_t* promises;
  bool gone;                           // destroyed: the last promise frees it
  pestle_device_event_t* next_orphan;  // among those, of the streams' lock
};

// --- Marks ---

static void destroy_mark(const pestle_device_event_t* event, mark_t* mark) {
  const cuda_t* cuda = event->device->owner;
  (void)cuda->driver.cuEventDestroy_v2(mark->event);
  cuda->host->free(cuda->host->self, mark, sizeof *mark);
}

// The lock is held.
static void drop_mark(pestle_device_event_t* event, mark_t* mark) {
  if (--mark->holders) return;
  if (event->gone || event->spares == MOST_SPARE ||
      mark->device != event->device) {
    destroy_mark(event, mark);
    return;
  }
  mark->next = event->spare;
  event->spare = mark;
  ++event->spares;
}

static void destroy_spares(pestle_device_event_t* event) {
  while (event->spare) {
    mark_t* mark = event->spare;
    event->spare = mark->next;
    destroy_mark(event, mark);
  }
  event->spares = 0;
}

// The lock of the word's event is held, so nobody else writes it.
static void raise_word(cuda_word_t* word, uint64_t value) {
  if (atomic_load_explicit(word->value, memory_order_relaxed) < value)
    atomic_store_explicit(word->value, value, memory_order_release);
}

// The lock is held.
static void raise_to(pestle_device_event_t* event, uint64_t value) {
  if (value <= event->number) return;
  event->number = value;
  if (event->word) raise_word(event->word, value);
  mark_t** at = &event->marks;
  while (*at) {
    mark_t* mark = *at;
    if (mark->value > value) {
      at = &mark->next;
      continue;
    }
    *at = mark->next;
    drop_mark(event, mark);
  }
  event->end = at;
  pthread_cond_broadcast(&event->changed);
}

static bool has_come(const pestle_device_event_t* event, const mark_t* mark) {
  // Of a lost device nothing comes any more: waits for it say why.
  return !event->device->owner->driver.cuEventQuery(mark->event);
}

// What marks of several streams say: behind one that has not come, none of its
// stream has.
static uint64_t reached_by_some(const pestle_device_event_t* event) {
  uint64_t reached = 0;
  CUstream behind = NULL;
  for (const mark_t* m = event->marks; m; m = m->next) {
    if (m->value <= reached || (behind && m->stream == behind)) continue;
    if (has_come(event, m)) {
      reached = m->value;
    } else {
      behind = m->stream;
    }
  }
  return reached;
}

// What |count| marks of one stream say, by halves: all before one that has come
// have, too.
static uint64_t reached_by_one(const pestle_device_event_t* event,
                               size_t count) {
  const mark_t* from = event->marks;
  uint64_t reached = 0;
  while (count) {
    const mark_t* middle = from;
    uint64_t most = from->value;
    for (size_t i = 0; i < count / 2; ++i) {
      middle = middle->next;
      if (middle->value > most) most = middle->value;
    }
    if (!has_come(event, middle)) {
      count /= 2;
      continue;
    }
    if (most > reached) reached = most;
    from = middle->next;
    count -= count / 2 + 1;
  }
  return reached;
}

// Looks which marks have come: much may be queued on the one stream that mostly
// signals an event.
static void look(pestle_device_event_t* event) {
  size_t count = 0;
  bool one_stream = true;
  event->unseen = 0;
  for (const mark_t* m = event->marks; m; m = m->next) {
    one_stream &= m->stream == event->marks->stream;
    ++count;
  }
  raise_to(event,
           one_stream ? reached_by_one(event, count) : reached_by_some(event));
}

static mark_t* mark_for(const pestle_device_event_t* event, uint64_t value) {
  mark_t* m = event->marks;
  while (m && m->value < value)
    m = m->next;
  return m;
}

// --- Words ---

static cuda_word_t* take_spare(cuda_device_t* d) {
  cuda_word_t* found = NULL;
  pthread_mutex_lock(&d->streams_lock);
  for (cuda_word_t** at = &d->words; *at && !found; at = &(*at)->next) {
    if (atomic_load(&(*at)->waiting)) continue;
    found = *at;
    *at = found->next;
    break;
  }
  pthread_mutex_unlock(&d->streams_lock);
  return found;
}

static void give_word(cuda_device_t* d, cuda_word_t* word) {
  pthread_mutex_lock(&d->streams_lock);
  word->next = d->words;
  d->words = word;
  pthread_mutex_unlock(&d->streams_lock);
}

static void free_word(const cuda_device_t* d, cuda_word_t* word) {
  const pestle_host_t* host = d->owner->host;
  if (word->value) {
    (void)d->owner->driver.cuMemFreeHost((void*)(uintptr_t)word->value);
  }
  host->free(host->self, word, sizeof *word);
}

static void free_words(cuda_device_t* d) {
  while (d->words) {
    cuda_word_t* word = d->words;
    d->words = word->next;
    free_word(d, word);
  }
}

static pestle_status_t pin_word(const cuda_device_t* d, cuda_word_t* word) {
  void* value = NULL;
  PESTLE_CUDA_TRY(d, cuMemHostAlloc,
                  (&value, sizeof *word->value,
                   CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
  word->value = value;
  PESTLE_CUDA_TRY(d, cuMemHostGetDevicePointer_v2, (&word->address, value, 0));
  return NULL;
}

static pestle_status_t take_word(cuda_device_t* d, uint64_t number,
                                 cuda_word_t** out_word) {
  const pestle_host_t* host = d->owner->host;
  cuda_word_t* word = take_spare(d);
  if (!word) {
    word = host->alloc(host->self, sizeof *word);
    if (!word) {
      return PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY,
                                 "cuda: no host memory to wait for an event");
    }
    memset(word, 0, sizeof *word);
    pestle_status_t status = pin_word(d, word);
    if (status) {
      free_word(d, word);
      return status;
    }
  }
  atomic_store_explicit(word->value, number, memory_order_release);
  *out_word = word;
  return NULL;
}

// --- Life ---

static pestle_status_t event_create(void* self, int32_t device,
                                    pestle_device_event_t** out_event) {
  const pestle_host_t* host = ((cuda_t*)self)->host;
  cuda_device_t* d;
  *out_event = NULL;
  PESTLE_TRY(pestle_cuda_device(self, device, &d));
  pestle_device_event_t* event = host->alloc(host->self, sizeof *event);
  if (!event) {
    return PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY,
                               "cuda: no host memory for an event");
  }
  memset(event, 0, sizeof *event);
  event->device = d;
  event->end = &event->marks;
  pthread_mutex_init(&event->lock, NULL);
  pthread_cond_init(&event->changed, NULL);
  *out_event = event;
  return NULL;
}

// Nothing of the driver is called.
static void free_event(pestle_device_event_t* event) {
  const pestle_host_t* host = event->device->owner->host;
  if (event->word) give_word(event->device, event->word);
  pthread_mutex_destroy(&event->lock);
  pthread_cond_destroy(&event->changed);
  host->free(host->self, event, sizeof *event);
}

static void add_orphan(pestle_device_event_t* event) {
  cuda_device_t* d = event->device;
  pthread_mutex_lock(&d->streams_lock);
  event->next_orphan = d->orphans;
  d->orphans = event;
  pthread_mutex_unlock(&d->streams_lock);
}

static void remove_orphan(const pestle_device_event_t* event) {
  cuda_device_t* d = event->device;
  pthread_mutex_lock(&d->streams_lock);
  pestle_device_event_t** at = &d->orphans;
  while (*at != event)
    at = &(*at)->next_orphan;
  *at = event->next_orphan;
  pthread_mutex_unlock(&d->streams_lock);
}

static void event_destroy(void* self, pestle_device_event_t* event) {
  const cuda_t* cuda = self;
  if (!event) return;
  pestle_status_t status = pestle_cuda_enter(event->device);
  pthread_mutex_lock(&event->lock);
  // Streams that wait for what never came go on.
  event->gone = true;
  raise_to(event, INT64_MAX);
  destroy_spares(event);
  // A lost device keeps no promise, so nobody waits for one here.
  bool is_orphan = event->promises != NULL;
  if (is_orphan) add_orphan(event);
  pthread_mutex_unlock(&event->lock);
  if (!status) pestle_cuda_leave(event->device);
  if (status) cuda->host->status_release(cuda->host->self, status);
  if (!is_orphan) free_event(event);
}

void pestle_cuda_events_deinit(cuda_device_t* d) {
  const pestle_host_t* host = d->owner->host;
  while (d->orphans) {
    pestle_device_event_t* event = d->orphans;
    d->orphans = event->next_orphan;
    while (event->promises) {
      promise_t* promise = event->promises;
      event->promises = promise->next;
      host->free(host->self, promise, sizeof *promise);
    }
    free_event(event);
  }
  free_words(d);
}

// --- Signals ---

// Called in the stream's order by a thread of the driver, which must not call
// the driver: marks are left to whoever looks next.
static void keep_promise(void* user) {
  promise_t* promise = user;
  pestle_device_event_t* event = promise->event;
  const pestle_host_t* host = event->device->owner->host;
  pthread_mutex_lock(&event->lock);
  raise_word(event->word, promise->value);
  promise_t** at = &event->promises;
  while (*at != promise)
    at = &(*at)->next;
  *at = promise->next;
  bool is_last = !event->promises && event->gone;
  if (is_last) remove_orphan(event);
  pthread_cond_broadcast(&event->changed);
  pthread_mutex_unlock(&event->lock);
  host->free(host->self, promise, sizeof *promise);
  if (is_last) free_event(event);
}

// The word grows too where a stream may be waiting for it. The lock is held.
static pestle_status_t promise_word(pestle_device_event_t* event,
                                    const pestle_device_stream_t* stream,
                                    uint64_t value) {
  const cuda_t* cuda = event->device->owner;
  promise_t* promise = cuda->host->alloc(cuda->host->self, sizeof *promise);
  if (!promise) {
    return PESTLE_PLUGIN_ERROR(cuda->host, OUT_OF_MEMORY,
                               "cuda: no host memory to signal an event");
  }
  *promise = (promise_t){event->promises, event, value};
  CUresult result =
      cuda->driver.cuLaunchHostFunc(stream->handle, keep_promise, promise);
  if (!result) {
    event->promises = promise;
    return NULL;
  }
  cuda->host->free(cuda->host->self, promise, sizeof *promise);
  return pestle_cuda_failed(stream->device, result, __FILE__, __LINE__,
                            "cuLaunchHostFunc");
}

static pestle_status_t make_mark(const cuda_device_t* d, mark_t** out_mark) {
  const cuda_t* cuda = d->owner;
  mark_t* mark = cuda->host->alloc(cuda->host->self, sizeof *mark);
  if (!mark) {
    return PESTLE_PLUGIN_ERROR(cuda->host, OUT_OF_MEMORY,
                               "cuda: no host memory to signal an event");
  }
  *mark = (mark_t){.device = d};
  CUresult result =
      cuda->driver.cuEventCreate(&mark->event, CU_EVENT_DISABLE_TIMING);
  if (result) {
    cuda->host->free(cuda->host->self, mark, sizeof *mark);
    return pestle_cuda_failed(d, result, __FILE__, __LINE__, "cuEventCreate");
  }
  *out_mark = mark;
  return NULL;
}

// A spare mark or a new one. The lock is held; the stream's device is current.
static pestle_status_t take_mark(pestle_device_event_t* event,
                                 const pestle_device_stream_t* stream,
                                 mark_t** out_mark) {
  if (!event->spare || stream->device != event->device) {
    return make_mark(stream->device, out_mark);
  }
  *out_mark = event->spare;
  event->spare = (*out_mark)->next;
  --event->spares;
  return NULL;
}

// The lock is held; the stream's device is current.
static pestle_status_t signal_by(pestle_device_event_t* event,
                                 pestle_device_stream_t* stream,
                                 uint64_t value) {
  mark_t* mark;
  PESTLE_TRY(take_mark(event, stream, &mark));
  CUresult result =
      stream->device->owner->driver.cuEventRecord(mark->event, stream->handle);
  if (result) {
    destroy_mark(event, mark);
    return pestle_cuda_failed(stream->device, result, __FILE__, __LINE__,
                              "cuEventRecord");
  }
  *mark = (mark_t){.device = stream->device,
                   .stream = stream->handle,
                   .event = mark->event,
                   .value = value,
                   .holders = 1};
  *event->end = mark;
  event->end = &mark->next;
  cuda_queued(stream);
  pthread_cond_broadcast(&event->changed);
  return event->word ? promise_word(event, stream, value) : NULL;
}

static pestle_status_t event_signal(void* self, pestle_device_event_t* event,
                                    pestle_device_stream_t* stream,
                                    uint64_t value) {
  (void)self;
  cuda_device_t* d = stream ? stream->device : event->device;
  if (stream) {
    PESTLE_TRY(pestle_cuda_refuse_recording(stream, "a signal"));
  }
  PESTLE_TRY(pestle_cuda_enter(d));
  pestle_status_t status = NULL;
  pthread_mutex_lock(&event->lock);
  if (!stream || ++event->unseen >= LOOK_EVERY) look(event);
  if (stream) {
    status = signal_by(event, stream, value);
  } else {
    raise_to(event, value);
  }
  pthread_mutex_unlock(&event->lock);
  pestle_cuda_leave(d);
  return status;
}

static bool event_is_signalled(void* self, pestle_device_event_t* event,
                               uint64_t value) {
  const cuda_t* cuda = self;
  pestle_status_t status = pestle_cuda_enter(event->device);
  if (status) {
    cuda->host->status_release(cuda->host->self, status);
    return false;
  }
  pthread_mutex_lock(&event->lock);
  if (event->number < value) look(event);
  bool is = event->number >= value;
  pthread_mutex_unlock(&event->lock);
  pestle_cuda_leave(event->device);
  return is;
}

// --- Waits ---

// Waits for |mark| without the lock, which is held before and after.
static pestle_status_t wait_for_mark(pestle_device_event_t* event,
                                     mark_t* mark) {
  const cuda_device_t* d = event->device;
  uint64_t value = mark->value;
  ++mark->holders;
  pthread_mutex_unlock(&event->lock);
  CUresult result = d->owner->driver.cuEventSynchronize(mark->event);
  pthread_mutex_lock(&event->lock);
  drop_mark(event, mark);
  if (!result) {
    raise_to(event, value);
    return NULL;
  }
  return pestle_cuda_failed(d, result, __FILE__, __LINE__,
                            "cuEventSynchronize");
}

static pestle_status_t event_wait(void* self, pestle_device_event_t* event,
                                  uint64_t value) {
  pestle_status_t status = NULL;
  (void)self;
  PESTLE_TRY(pestle_cuda_enter(event->device));
  pthread_mutex_lock(&event->lock);
  while (!status && event->number < value) {
    mark_t* mark = mark_for(event, value);
    if (mark) {
      status = wait_for_mark(event, mark);
    } else {
      pthread_cond_wait(&event->changed, &event->lock);
    }
  }
  pthread_mutex_unlock(&event->lock);
  pestle_cuda_leave(event->device);
  return status;
}

// Called by the driver when a stream is past its wait.
static void has_passed(void* user) {
  cuda_word_t* word = user;
  atomic_fetch_sub(&word->waiting, 1);
}

// Nothing that was queued will signal |value|: the stream looks at the word.
static pestle_status_t wait_for_word(pestle_device_event_t* event,
                                     const pestle_device_stream_t* stream,
                                     uint64_t value) {
  const cuda_device_t* d = stream->device;
  if (!d->waits_for_values) {
    return PESTLE_PLUGIN_ERROR(
        d->owner->host, UNSUPPORTED,
        "cuda: device %d (%s) cannot wait for a signal that is queued only "
        "later; queue the signal first",
        (int)d->index, d->name);
  }
  if (!event->word) {
    PESTLE_TRY(take_word(event->device, event->number, &event->word));
  }
  cuda_word_t* word = event->word;
  atomic_fetch_add(&word->waiting, 1);
  CUresult result = d->owner->driver.cuStreamWaitValue64_v2(
      stream->handle, word->address, value, CU_STREAM_WAIT_VALUE_GEQ);
  if (result) {
    atomic_fetch_sub(&word->waiting, 1);
    return pestle_cuda_failed(d, result, __FILE__, __LINE__,
                              "cuStreamWaitValue64_v2");
  }
  // Should this fail, the word is never used again, which harms nobody.
  PESTLE_CUDA_TRY(d, cuLaunchHostFunc, (stream->handle, has_passed, word));
  return NULL;
}

static pestle_status_t wait_by(pestle_device_event_t* event,
                               pestle_device_stream_t* stream, uint64_t value) {
  look(event);
  if (event->number >= value) return NULL;
  const mark_t* mark = mark_for(event, value);
  if (mark) {
    PESTLE_CUDA_TRY(stream->device, cuStreamWaitEvent,
                    (stream->handle, mark->event, 0));
  } else {
    PESTLE_TRY(wait_for_word(event, stream, value));
  }
  cuda_queued(stream);
  return NULL;
}

static pestle_status_t event_wait_stream(void* self,
                                         pestle_device_event_t* event,
                                         pestle_device_stream_t* stream,
                                         uint64_t value) {
  (void)self;
  PESTLE_TRY(pestle_cuda_refuse_recording(stream, "a wait"));
  PESTLE_TRY(pestle_cuda_enter(stream->device));
  pthread_mutex_lock(&event->lock);
  pestle_status_t status = wait_by(event, stream, value);
  pthread_mutex_unlock(&event->lock);
  pestle_cuda_leave(stream->device);
  return status;
}

// --- Fences ---

struct pestle_device_fence_s {
  cuda_device_t* device;
  pthread_mutex_t lock;
  CUevent last;  // NULL: never updated
};

static pestle_status_t fence_create(void* self, int32_t device,
                                    pestle_device_fence_t** out_fence) {
  const pestle_host_t* host = ((cuda_t*)self)->host;
  cuda_device_t* d;
  *out_fence = NULL;
  PESTLE_TRY(pestle_cuda_device(self, device, &d));
  pestle_device_fence_t* fence = host->alloc(host->self, sizeof *fence);
  if (!fence) {
    return PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY,
                               "cuda: no host memory for a fence");
  }
  memset(fence, 0, sizeof *fence);
  fence->device = d;
  pthread_mutex_init(&fence->lock, NULL);
  *out_fence = fence;
  return NULL;
}

static void fence_destroy(void* self, pestle_device_fence_t* fence) {
  const cuda_t* cuda = self;
  if (!fence) return;
  if (fence->last) (void)cuda->driver.cuEventDestroy_v2(fence->last);
  pthread_mutex_destroy(&fence->lock);
  cuda->host->free(cuda->host->self, fence, sizeof *fence);
}

// Waits that are queued keep to what the event stood for then.
static pestle_status_t update(pestle_device_fence_t* fence,
                              const pestle_device_stream_t* stream) {
  const cuda_device_t* d = stream->device;
  if (!fence->last) {
    PESTLE_CUDA_TRY(d, cuEventCreate, (&fence->last, CU_EVENT_DISABLE_TIMING));
  }
  PESTLE_CUDA_TRY(d, cuEventRecord, (fence->last, stream->handle));
  return NULL;
}

// An event of the driver makes what was written visible everywhere.
static pestle_status_t fence_update(void* self, pestle_device_fence_t* fence,
                                    pestle_device_stream_t* stream, void* data,
                                    bool cross_device) {
  (void)self, (void)data, (void)cross_device;
  PESTLE_TRY(pestle_cuda_refuse_recording(stream, "an update of a fence"));
  PESTLE_TRY(pestle_cuda_enter(stream->device));
  pthread_mutex_lock(&fence->lock);
  pestle_status_t status = update(fence, stream);
  pthread_mutex_unlock(&fence->lock);
  if (!status) cuda_queued(stream);
  pestle_cuda_leave(stream->device);
  return status;
}

static pestle_status_t wait_fence(const pestle_device_fence_t* fence,
                                  const pestle_device_stream_t* stream) {
  if (!fence->last) return NULL;
  PESTLE_CUDA_TRY(stream->device, cuStreamWaitEvent,
                  (stream->handle, fence->last, 0));
  return NULL;
}

static pestle_status_t fence_wait(void* self, pestle_device_fence_t* fence,
                                  pestle_device_stream_t* stream, void* data) {
  (void)self, (void)data;
  PESTLE_TRY(pestle_cuda_refuse_recording(stream, "a wait for a fence"));
  PESTLE_TRY(pestle_cuda_enter(stream->device));
  pthread_mutex_lock(&fence->lock);
  pestle_status_t status = wait_fence(fence, stream);
  pthread_mutex_unlock(&fence->lock);
  if (!status) cuda_queued(stream);
  pestle_cuda_leave(stream->device);
  return status;
}

void pestle_cuda_event_slots(pestle_device_api_t* api) {
  api->event_create = event_create;
  api->event_destroy = event_destroy;
  api->event_wait = event_wait;
  api->event_wait_stream = event_wait_stream;
  api->event_signal = event_signal;
  api->event_is_signalled = event_is_signalled;
  api->fence_create = fence_create;
  api->fence_destroy = fence_destroy;
  api->fence_update = fence_update;
  api->fence_wait = fence_wait;
}
