// SPDX-License-Identifier: Apache-2.0
// A completion is a moment that comes once: what a stream was given up to some
// point is done, or one run is. It carries the status of what was to be done and
// tells who asked to be told. An event refers to the completion of its latest
// recording, a buffer to that of the run that makes it.
//
// A completion is open until what leads to it was handed to the device, then
// queued, then done; on CPUs it is open until it is done. Completions of one
// stream belong to its timeline, which has an event of the backend that counts
// them: those of a queue come in the order of its ticks. The functions below may
// be called from any threads at once unless they say otherwise.
#ifndef PESTLE_RUNTIME_COMPLETION_H_
#define PESTLE_RUNTIME_COMPLETION_H_

#include "runtime/device.h"
#include "runtime/notifier.h"

// --- Timelines ---

struct pestle_timeline_t {
  pestle_refcount_t refcount;
  pestle_context_t* context;      // outlives it
  pestle_device_t* device;        // of a stream of the backend's, else NULL
  pestle_device_event_t* native;  // made with the first tick
  uint64_t ticks;                 // given out; of whoever acts for the stream
  // Grows with each failure that its caller was told, which nothing in the memory
  // reminds of from then on.
  atomic_uint epoch;
  // -- what is to be told, under the notifier's mutex --
  pestle_completion_t *head, **end;
  pestle_timeline_t* next_ready;
  bool served;  // by a thread, or waits for one
  // -- a thread that waits for ticks, where the backend makes no calls --
  pestle_completion_t* watched;
  pestle_cond_t more_watched;
  pestle_thread_t watcher;
  bool watching, closed;
};

// One of the stream of |device|, or (NULL) of the host.
PESTLE_NODISCARD pestle_status_t
pestle_timeline_create(pestle_context_t* context, pestle_device_t* device,
                       pestle_timeline_t** out_timeline);
void pestle_timeline_retain(pestle_timeline_t* timeline);
// NULL is allowed. Not by a thread of a backend's.
void pestle_timeline_release(pestle_timeline_t* timeline);
// The stream has ended: all that it was given is done. Ends the watcher.
void pestle_timeline_close(pestle_timeline_t* timeline);
// Makes the backend's event, once. Of whoever acts for the stream.
PESTLE_NODISCARD pestle_status_t
pestle_timeline_need_native(pestle_timeline_t* timeline);
// Has a thread wait for |completion|, which is queued. RESOURCE_EXHAUSTED: there
// is none. The notifier's mutex is held.
PESTLE_NODISCARD pestle_status_t
pestle_timeline_watch_locked(pestle_completion_t* completion);

// --- Completions ---

typedef enum pestle_completion_state_t {
  PESTLE_COMPLETION_OPEN = 0,
  PESTLE_COMPLETION_QUEUED = 1,
  PESTLE_COMPLETION_DONE = 2,
} pestle_completion_state_t;

// What is called when a completion is done; |failure| is borrowed.
typedef void (*pestle_completion_fn_t)(void* self, pestle_status_t failure);

typedef struct pestle_completion_callback_t {
  struct pestle_completion_callback_t* next;
  pestle_completion_fn_t fn;
  void* self;
} pestle_completion_callback_t;

struct pestle_completion_t {
  pestle_refcount_t refcount;
  unsigned fork_count;
  pestle_timeline_t* timeline;
  pestle_cond_t changed;  // of the state
  atomic_int state;       // pestle_completion_state_t; it only grows
  // Of what led to it: known when it leaves OPEN, but for what only the backend
  // can say later.
  pestle_status_t failure;
  unsigned epoch;        // of its timeline when that was known
  pestle_status_t lost;  // why no memory can be trusted, or NULL
  uint64_t tick;         // of the timeline's event, where it was queued
  bool armed;            // the backend will call when it is done
  // -- under the notifier's mutex --
  pestle_completion_callback_t *first, **last;
  bool telling;  // is in its timeline's list, or was taken from there
  pestle_completion_t* next;
  pestle_completion_t* next_watched;
};

PESTLE_NODISCARD pestle_status_t pestle_completion_create(
    pestle_timeline_t* timeline, pestle_completion_t** out_completion);
void pestle_completion_retain(pestle_completion_t* completion);
// NULL is allowed. Not by a thread of a backend's.
void pestle_completion_release(pestle_completion_t* completion);

static inline pestle_completion_state_t pestle_completion_state(
    const pestle_completion_t* completion) {
  return (pestle_completion_state_t)atomic_load(&completion->state);
}
// Whether it is done, as far as can be said without waiting.
bool pestle_completion_is_done(pestle_completion_t* completion);
// The failure of one that is done, a hold of the caller's; NULL: none, or it is
// not done. May wait for a call of the backend's that is due.
pestle_status_t pestle_completion_failure(pestle_completion_t* completion);
// The same as far as it is known, of one that is not open: what failed before the
// device had it. Waits for nothing.
pestle_status_t pestle_completion_known_failure(
    pestle_completion_t* completion);
// The caller waits until it is done. UNAVAILABLE: the device is lost, or it is of
// the parent of a fork().
PESTLE_NODISCARD pestle_status_t
pestle_completion_wait(pestle_completion_t* completion);
// Waits until it is not open any more.
PESTLE_NODISCARD pestle_status_t
pestle_completion_wait_queued(pestle_completion_t* completion);

// Calls fn(self, failure) once when it is done, on a thread of the context's
// notifier and never before this function has returned its failure. Those of one
// completion are called one after the other. OUT_OF_MEMORY, RESOURCE_EXHAUSTED,
// UNAVAILABLE: nothing is ever called.
PESTLE_NODISCARD pestle_status_t pestle_completion_on_done(
    pestle_completion_t* completion, pestle_completion_fn_t fn, void* self);

// --- Of whoever is to bring it about ---

// Says what became of what led to it, before it is finished or queued. Takes over
// |failure| and |lost|; each may be NULL.
void pestle_completion_settle(pestle_completion_t* completion,
                              pestle_status_t failure, pestle_status_t lost);
// It is done, whatever else will say so. Takes over |failure| (may be NULL), which
// counts where none was known.
void pestle_completion_finish(pestle_completion_t* completion,
                              pestle_status_t failure);
// The same with the notifier's mutex held.
void pestle_completion_finish_locked(pestle_completion_t* completion,
                                     pestle_status_t failure);
// Queues it on |stream| of its timeline's device: it is done when the stream has
// come so far. On failure it is finished with it. One call at a time a timeline.
PESTLE_NODISCARD pestle_status_t pestle_completion_queue(
    pestle_completion_t* completion, pestle_device_stream_t* stream);
// Makes |stream| of |device|'s backend wait for one that is queued on a stream of
// the same backend.
PESTLE_NODISCARD pestle_status_t pestle_completion_wait_native(
    pestle_completion_t* completion, pestle_device_t* device,
    pestle_device_stream_t* stream);

// --- Of the notifier ---

// Calls what was registered, as long as there is something. The mutex is held
// before and after. |is_gone| (may be NULL) is set by a callback that ends the
// context: then it is not held after, and nothing is left.
void pestle_completion_tell(pestle_completion_t* completion,
                            const bool* is_gone);

#endif  // PESTLE_RUNTIME_COMPLETION_H_
