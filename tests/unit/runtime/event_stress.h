// SPDX-License-Identifier: Apache-2.0
// Many threads, each with a stream of a CPU or of a device, that run, fail, record
// events of their own and of each other, register functions, wait, and end
// streams while all that is pending. Every function that was registered is called
// once, and nothing is left.
#ifndef PESTLE_TESTS_UNIT_RUNTIME_EVENT_STRESS_H_
#define PESTLE_TESTS_UNIT_RUNTIME_EVENT_STRESS_H_

#include "unit/runtime/event_fixture.h"

enum { STRESS_SHARED = 16, STRESS_MOST = 64 };

typedef struct stress_t {
  pestle_context_t* context;
  pestle_device_t* device[2];
  pestle_executable_t* e[2];
  // Events of everybody: who records one has its mutex.
  pestle_mutex_t mutex[STRESS_SHARED];
  pestle_event_t* shared[STRESS_SHARED];
  atomic_int registered, called, failed;
  int rounds;
} stress_t;

typedef struct stress_thread_t {
  stress_t* stress;
  pestle_thread_t thread;
  int index;
  uint32_t random;
  pestle_stream_t* stream;
  pestle_buffer_t* buffers[3];
  pestle_tensor_t views[3];
} stress_thread_t;

// A call that registers another one now and then.
typedef struct stress_call_t {
  stress_t* stress;
  pestle_event_t* again;  // or NULL
} stress_call_t;

static void stress_called(void* self, pestle_status_t status) {
  stress_call_t* call = self;
  stress_t* s = call->stress;
  if (status) atomic_fetch_add(&s->failed, 1);
  if (call->again) {
    stress_call_t* next = malloc(sizeof(*next));
    *next = (stress_call_t){s, NULL};
    assert_ok(pestle_event_record(call->again, NULL));
    assert_ok(pestle_event_on_signalled(call->again, stress_called, next));
    atomic_fetch_add(&s->registered, 1);
    pestle_event_release(call->again);
  }
  free(call);
  atomic_fetch_add(&s->called, 1);
}

static inline uint32_t stress_random(stress_thread_t* t, uint32_t below) {
  t->random = t->random * 1664525u + 1013904223u;
  return (t->random >> 8) % below;
}

static inline int stress_kind(const stress_thread_t* t) {
  return t->index & 1;
}

static inline void stress_register(stress_thread_t* t, pestle_event_t* event) {
  stress_t* s = t->stress;
  stress_call_t* call = malloc(sizeof(*call));
  *call = (stress_call_t){s, NULL};
  if (!stress_random(t, 8)) {
    assert_ok(pestle_event_create(s->device[stress_kind(t)], &call->again));
  }
  atomic_fetch_add(&s->registered, 1);
  assert_ok(pestle_event_on_signalled(event, stress_called, call));
}

static inline void stress_run(stress_thread_t* t, bool fails) {
  int32_t from = (int32_t)stress_random(t, 3), to = (from + 1) % 3;
  static int32_t cancel = 1;
  static pestle_control_t control = {.struct_size = sizeof(control),
                                     .cancel = &cancel};
  pestle_run_options_t options = fixture_run_options();
  options.control = &control;
  assert_ok(pestle_executable_run(t->stress->e[stress_kind(t)], t->stream,
                                  &t->views[from], 1, &t->views[to], 1,
                                  fails ? &options : NULL));
}

// Records an event of its own, which may go at once.
static inline void stress_own(stress_thread_t* t) {
  pestle_event_t* event;
  assert_ok(pestle_event_create(t->stress->device[stress_kind(t)], &event));
  for (uint32_t i = stress_random(t, 3) + 1; i; --i) {
    assert_ok(pestle_event_record(event, t->stream));
    for (uint32_t c = stress_random(t, 3); c; --c)
      stress_register(t, event);
  }
  if (!stress_random(t, 4)) {
    assert_ok(pestle_event_wait(event, NULL));
    assert_true(pestle_event_is_signalled(event));
    pestle_status_release(pestle_event_status(event));
  }
  pestle_event_release(event);
}

static inline void stress_shared(stress_thread_t* t) {
  stress_t* s = t->stress;
  uint32_t i = stress_random(t, STRESS_SHARED);
  pestle_mutex_lock(&s->mutex[i]);
  if (stress_random(t, 2)) {
    assert_ok(pestle_event_record(s->shared[i], t->stream));
  } else {
    assert_ok(pestle_event_wait(s->shared[i], t->stream));
  }
  if (stress_random(t, 2)) stress_register(t, s->shared[i]);
  pestle_mutex_unlock(&s->mutex[i]);
}

static inline void stress_stream(stress_thread_t* t) {
  pestle_stream_release(t->stream);
  assert_ok(
      pestle_stream_create(t->stress->device[stress_kind(t)], &t->stream));
}

static void stress_main(void* argument) {
  stress_thread_t* t = argument;
  stress_t* s = t->stress;
  pestle_device_t* device = s->device[stress_kind(t)];
  assert_ok(pestle_stream_create(device, &t->stream));
  for (int i = 0; i < 3; ++i) {
    t->buffers[i] = gpu_input(device, 0);
    t->views[i] = gpu_view(t->buffers[i], 0);
  }
  for (int round = 0; round < s->rounds; ++round) {
    uint32_t what = stress_random(t, 16);
    if (what < 6) {
      stress_run(t, what == 0);
    } else if (what < 10) {
      stress_own(t);
    } else if (what < 14) {
      stress_shared(t);
    } else if (what == 14) {
      pestle_status_release(pestle_stream_synchronize(t->stream));
    } else {
      stress_stream(t);
    }
  }
  pestle_stream_release(t->stream);
  for (int i = 0; i < 3; ++i)
    pestle_buffer_release(t->buffers[i]);
}

static inline void stress(int count, int rounds, uint64_t missing) {
  static stress_t s;
  static stress_thread_t threads[STRESS_MOST];
  memset(&s, 0, sizeof(s));
  memset(threads, 0, sizeof(threads));
  mock_reset();
  mock_state()->missing = missing;
  s.rounds = rounds;
  s.context = gpu_context(NULL);
  s.device[0] = gpu_device(s.context, "test");
  s.device[1] = gpu_device(s.context, "mock");
  s.e[0] = fixture_add1(s.context, 2, gpu_dims);
  s.e[1] = gpu_chain(s.context);
  for (int i = 0; i < STRESS_SHARED; ++i) {
    pestle_mutex_init(&s.mutex[i]);
    assert_ok(pestle_event_create(s.device[i & 1], &s.shared[i]));
    assert_ok(pestle_event_record(s.shared[i], NULL));
  }
  for (int i = 0; i < count; ++i) {
    threads[i] = (stress_thread_t){
        .stress = &s, .index = i, .random = 12345u * (uint32_t)(i + 1)};
    assert_ok(pestle_thread_start(stress_main, &threads[i], "stress",
                                  &threads[i].thread));
  }
  for (int i = 0; i < count; ++i)
    pestle_thread_join(&threads[i].thread);
  for (int i = 0; i < STRESS_SHARED; ++i) {
    pestle_event_release(s.shared[i]);
    pestle_mutex_deinit(&s.mutex[i]);
  }
  pestle_executable_release(s.e[0]);
  pestle_executable_release(s.e[1]);
  // Makes all calls that are left, unless the last of them ends the context.
  gpu_context_end(s.context);
  assert_true(atomic_load(&s.registered) > count);
  wait_until(&s.called, atomic_load(&s.registered));
  assert_int_equal(atomic_load(&s.called), atomic_load(&s.registered));
}

#endif  // PESTLE_TESTS_UNIT_RUNTIME_EVENT_STRESS_H_
