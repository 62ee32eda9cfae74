// SPDX-License-Identifier: Apache-2.0
// Where executions are run: by their caller, if that is over before another thread
// had begun, else by the device's stream, in its order.
#include <string.h>

#include "base/mem.h"
#include "pjrt/callback.h"
#include "pjrt/error.h"
#include "pjrt/execution.h"
#include "pjrt/times.h"

// A run that takes less is over before another thread has begun it.
static const long long inline_ns = 50 * 1000;

bool pestle_pjrt_is_inline(const pestle_pjrt_execution_t* e) {
  if (pestle_pjrt_in_callback(e->device)) return true;
  return e->device->is_cpu && e->is_ready && !e->program->callback_count &&
         !e->device->client->settings.no_inline &&
         atomic_load_explicit(&e->program->expected_ns, memory_order_relaxed) <
             inline_ns &&
         !atomic_load_explicit(&e->device->queued, memory_order_acquire);
}

// What a run is expected to take becomes what it took, smoothed.
static void learn(pestle_pjrt_program_t* program, int64_t ns) {
  long long before =
      atomic_load_explicit(&program->expected_ns, memory_order_relaxed);
  long long now =
      before > 4 * ns || ns > 4 * before ? ns : (3 * before + ns) / 4;
  atomic_store_explicit(&program->expected_ns, now, memory_order_relaxed);
}

static pestle_status_t call(const pestle_pjrt_run_t* run,
                            pestle_stream_t* stream, pestle_event_t* done) {
  pestle_run_buffers_options_t options = {
      .struct_size = sizeof(options),
      .threads = run->program->options.threads,
      .donated = run->donated,
      .donated_count = run->donated_count,
      .done = done,
      .world = run->world};
  return pestle_executable_run_buffers(
      pestle_pjrt_program_on(run->program, run->device), stream, run->inputs,
      run->input_count, run->outputs, run->output_count, &options);
}

static pestle_pjrt_run_t run_of(const pestle_pjrt_execution_t* e) {
  return (pestle_pjrt_run_t){.program = e->program,
                             .device = e->device,
                             .world = e->world,
                             .inputs = e->inputs,
                             .input_count = e->input_count,
                             .outputs = e->outputs,
                             .output_count = e->output_count,
                             .donated = e->donated,
                             .donated_count = e->donated_count};
}

// --- Here ---

PJRT_Error* pestle_pjrt_run_now(const pestle_pjrt_run_t* run, int64_t* out_ns) {
  int64_t begin = pestle_clock_ns();
  pestle_status_t status = call(run, NULL, NULL);
  if (status) return pestle_pjrt_error_of(status);
  *out_ns = pestle_clock_ns() - begin;
  learn(run->program, *out_ns);
  pestle_pjrt_times_ran(run->device->client->times, run->program->name,
                        *out_ns);
  return NULL;
}

PJRT_Error* pestle_pjrt_run_here(pestle_pjrt_execution_t* e) {
  pestle_pjrt_run_t run = run_of(e);
  int64_t ns;
  return pestle_pjrt_run_now(&run, &ns);
}

// --- In the queue ---

// What is done when a queued run is over.
typedef struct queued_t {
  pestle_pjrt_program_t* program;  // held
  PJRT_Device* device;
  int64_t begin_ns;
  bool was_alone;  // in the queue: its time is its own
  size_t count;
  PJRT_Event* events[];  // held
} queued_t;

static size_t size_of(size_t count) {
  return sizeof(queued_t) + count * sizeof(PJRT_Event*);
}

static void run_is_done(void* self, pestle_status_t status) {
  queued_t* queued = self;
  int64_t ns = pestle_clock_ns() - queued->begin_ns;
  if (queued->program->callback_count)
    atomic_fetch_sub(&queued->device->queued_callbacks, 1);
  atomic_fetch_sub_explicit(&queued->device->queued, 1, memory_order_release);
  if (!status && queued->was_alone) learn(queued->program, ns);
  pestle_pjrt_times_ran(queued->device->client->times, queued->program->name,
                        ns);
  for (size_t i = 0; i < queued->count; ++i) {
    pestle_pjrt_event_set(queued->events[i],
                          pestle_pjrt_error_of_borrowed(status));
    pestle_pjrt_event_release(queued->events[i]);
  }
  pestle_pjrt_program_release(queued->program);
  pestle_dealloc(pestle_allocator_system(), queued, size_of(queued->count));
}

// The failure to be told of a run that has been queued: nobody will call.
static void tell_nobody(queued_t* queued, pestle_status_t status) {
  pestle_status_t wait = pestle_event_wait(queued->device->done, NULL);
  run_is_done(queued, status);
  pestle_status_release(pestle_status_join(status, wait));
}

PJRT_Error* pestle_pjrt_submit(const pestle_pjrt_run_t* run,
                               PJRT_Event* const* events, size_t count) {
  queued_t* queued = pestle_alloc(pestle_allocator_system(), size_of(count));
  if (!queued) return pestle_pjrt_out_of_memory();
  PJRT_Device* device = run->device;
  *queued = (queued_t){run->program, device, pestle_clock_ns(), false, count};
  memcpy(queued->events, events, count * sizeof(PJRT_Event*));
  bool has_callback = run->program->callback_count;
  pestle_mutex_lock(&device->mutex);
  if (has_callback) atomic_fetch_add(&device->queued_callbacks, 1);
  pestle_status_t status = call(run, device->stream, device->done);
  if (status && has_callback) atomic_fetch_sub(&device->queued_callbacks, 1);
  if (!status) {
    pestle_pjrt_program_retain(run->program);
    queued->was_alone =
        !atomic_fetch_add_explicit(&device->queued, 1, memory_order_acq_rel);
    pestle_status_t missed =
        pestle_event_on_signalled(device->done, run_is_done, queued);
    if (missed) tell_nobody(queued, missed);
  }
  pestle_mutex_unlock(&device->mutex);
  if (!status) return NULL;
  pestle_dealloc(pestle_allocator_system(), queued, size_of(count));
  return pestle_pjrt_error_of(status);
}

PJRT_Error* pestle_pjrt_run_queued(pestle_pjrt_execution_t* e) {
  pestle_pjrt_run_t run = run_of(e);
  pestle_pjrt_event_retain(e->done);
  PJRT_Error* error = pestle_pjrt_submit(&run, &e->done, 1);
  if (error) pestle_pjrt_event_release(e->done);
  e->is_queued = !error;
  return error;
}
