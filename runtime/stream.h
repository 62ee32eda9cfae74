// SPDX-License-Identifier: Apache-2.0
// Streams: what is queued on one is done in order.
//
// Whoever acts for a stream has it to itself: the thread of the stream, which
// works off a list of operations, or, on a stream of a backend's of which the
// thread has nothing to do, the caller, who then queues at once. So a run that the
// host need not look into costs no hand-over, and one that it must look into, or
// that waits for what no backend orders, keeps nobody but the thread. A stream of a
// CPU has its thread from the beginning, another one when it is first needed.
//
// What fails is the stream's failure, which the next synchronisation returns. The
// memory that a failed run was to write is poisoned (poison.h).
#ifndef PESTLE_RUNTIME_STREAM_H_
#define PESTLE_RUNTIME_STREAM_H_

#include "runtime/completion.h"
#include "runtime/executable.h"

// Beside its views, what a run on a stream comes after and what tells of it.
typedef struct pestle_run_order_t {
  pestle_completion_t* const* waits;
  size_t wait_count;
  // Of the stream's timeline; it gets the failure of this run alone. The memory of
  // such a run is not poisoned: its outputs have this completion to ask.
  pestle_completion_t* done;
  // Called once, when the host has done its part of a run that was accepted: on a
  // CPU the run is done then, on another device queued. No lock is held. NULL: not.
  void (*after)(void* self);
  void* after_self;
} pestle_run_order_t;

typedef struct pestle_stream_op_t pestle_stream_op_t;

struct pestle_stream_s {
  pestle_device_t* device;
  pestle_queue_t native;  // without a stream on CPUs
  uint64_t number;        // of the context
  pestle_timeline_t* timeline;
  unsigned fork_count;
  pestle_mutex_t mutex;  // of the list
  pestle_cond_t more;
  pestle_cond_t idle;
  pestle_stream_op_t* head;
  pestle_stream_op_t** end;
  bool busy;  // somebody acts for it
  bool stop;
  bool started;
  pestle_thread_t thread;
  // -- of whoever acts for it --
  pestle_status_t failure;  // the first since the last synchronisation
  pestle_status_t lost;     // why no memory can be trusted, or NULL
};

// The backend's stream, or NULL: one of a CPU.
static inline pestle_device_stream_t* pestle_stream_native(
    const pestle_stream_t* stream) {
  return stream->native.stream;
}

// NULL when runs of |executable| can be queued on it.
PESTLE_NODISCARD pestle_status_t pestle_stream_accepts(
    const pestle_stream_t* stream, const pestle_executable_t* executable);
// UNAVAILABLE: it is of the parent of a fork().
PESTLE_NODISCARD pestle_status_t
pestle_stream_check(const pestle_stream_t* stream);

// Whether the caller may act for |stream| now, which has one of the backend's;
// then pestle_stream_end() must follow.
bool pestle_stream_begin(pestle_stream_t* stream);
void pestle_stream_end(pestle_stream_t* stream);

// Queues a run whose views were checked and bound to |frame|; |order| may be NULL.
// A failure that is returned means that nothing was queued.
PESTLE_NODISCARD pestle_status_t
pestle_stream_run(pestle_stream_t* stream, pestle_executable_t* executable,
                  pestle_frame_t* frame, const pestle_tensor_t* inputs,
                  pestle_tensor_t* outputs, const pestle_run_t* run,
                  const pestle_run_order_t* order);
// Queues that |completion|, of the stream's timeline, is done when the stream has
// come so far, with the stream's failure. On failure it is done with that.
PESTLE_NODISCARD pestle_status_t
pestle_stream_signal(pestle_stream_t* stream, pestle_completion_t* completion);
// Queues a wait for |completion|.
PESTLE_NODISCARD pestle_status_t
pestle_stream_wait(pestle_stream_t* stream, pestle_completion_t* completion);

// --- stream_act.c: what whoever acts for a stream does ---

void pestle_stream_act_run(pestle_stream_t* stream, pestle_executable_t* e,
                           pestle_frame_t* frame, const pestle_tensor_t* inputs,
                           pestle_tensor_t* outputs, const pestle_run_t* run,
                           const pestle_run_order_t* order,
                           pestle_status_t* out_failure);
// |status|, which it takes over and which may be NULL, is the stream's failure
// unless there is one.
void pestle_stream_act_fail(pestle_stream_t* stream, pestle_status_t status);
// Of a run that could not even be bound. Takes over |failure|.
void pestle_stream_act_failed(pestle_stream_t* stream,
                              const pestle_run_order_t* order,
                              pestle_status_t failure);
PESTLE_NODISCARD pestle_status_t pestle_stream_act_signal(
    pestle_stream_t* stream, pestle_completion_t* completion);
void pestle_stream_act_wait(pestle_stream_t* stream,
                            pestle_completion_t* completion);
// Whether these keep nobody waiting.
bool pestle_stream_may_run(const pestle_stream_t* stream,
                           const pestle_executable_t* e,
                           const pestle_frame_t* frame, const pestle_run_t* run,
                           const pestle_run_order_t* order);
bool pestle_stream_may_signal(const pestle_stream_t* stream);
bool pestle_stream_may_wait(const pestle_stream_t* stream,
                            const pestle_completion_t* completion);

#endif  // PESTLE_RUNTIME_STREAM_H_
