// SPDX-License-Identifier: Apache-2.0
// A child of fork() evaluates on its own, whatever threads of the parent were at when
// it was made: arrays that were being evaluated there begin anew or fail with a
// sentence, and nobody waits for a thread that is not here.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pestle/pestle.h"
#include "test.h"

enum { COUNT = 64, THREADS = TEST_ASAN ? 0 : 3, FORKS = 40 };

static const pestle_type_t type = {PESTLE_F32, 1, {COUNT}};

typedef struct shared_t {
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_array_t* x;
  pestle_jit_t* jit;
  _Atomic(pestle_array_t*) latest;  // a chain that some thread evaluates
  atomic_bool stop;
} shared_t;

static pestle_array_t* chain(const shared_t* s, int length) {
  pestle_array_t* y = s->x;
  pestle_array_retain(y);
  for (int i = 0; i < length; ++i) {
    pestle_array_t* next;
    assert_ok(pestle_array_add(y, s->x, &next));
    pestle_array_release(y);
    y = next;
  }
  return y;
}

static void* work(void* argument) {
  shared_t* s = argument;
  for (int i = 0; !atomic_load(&s->stop); ++i) {
    pestle_array_t *y = chain(s, 1 + i % 7), *z;
    pestle_array_retain(y);
    pestle_array_release(atomic_exchange(&s->latest, y));
    assert_ok(pestle_array_wait(y));
    assert_ok(pestle_jit_call(s->jit, &y, 1, NULL, &z, 1));
    pestle_array_release(y);
    pestle_array_release(z);
  }
  return NULL;
}

static bool is_multiple(pestle_array_t* array, const char** what) {
  float data[COUNT];
  pestle_status_t status = pestle_array_read(array, data, sizeof(data));
  if (status) {
    // What was cut off says so.
    bool cut = pestle_status_code(status) == PESTLE_STATUS_UNAVAILABLE &&
               strstr(pestle_status_message(status), "fork()");
    *what = cut ? "" : "another error";
    pestle_status_release(status);
    return cut;
  }
  *what = "values";
  for (int i = 1; i < COUNT; ++i) {
    if (data[i] != data[1] * (float)i) return false;
  }
  return true;
}

// 0, or the line that was wrong.
static int child(shared_t* s) {
  pestle_array_t *w, *y, *z;
  float data[COUNT];
  const char* what;
  // A row that is a formula looks for it under the lock, before anything else here
  // has taken that.
  if (pestle_numeric_apply(PESTLE_NUMERIC_COPYSIGN,
                           (pestle_array_t*[]){s->x, s->x}, 2, &w)) {
    return __LINE__;
  }
  if (pestle_array_read(w, data, sizeof(data)) || data[5] != 5) return __LINE__;
  pestle_array_release(w);
  y = chain(s, 3);
  if (pestle_array_read(y, data, sizeof(data)) || data[5] != 20)
    return __LINE__;
  if (pestle_jit_call(s->jit, &y, 1, NULL, &z, 1)) return __LINE__;
  if (pestle_array_read(z, data, sizeof(data)) || data[5] != -20) {
    return __LINE__;
  }
  pestle_array_release(y);
  pestle_array_release(z);
  // What threads of the parent were evaluating.
  pestle_array_t* latest = atomic_load(&s->latest);
  if (latest && !is_multiple(latest, &what)) return __LINE__;
  // Memory that is given to a run.
  y = chain(s, 1);
  for (int i = 0; i < 600; ++i) {
    pestle_array_t* next;
    if (pestle_array_negate(y, &next)) return __LINE__;
    pestle_array_release(y);
    y = next;
  }
  if (pestle_array_read(y, data, sizeof(data)) || data[5] != 10)
    return __LINE__;
  pestle_array_release(y);
  return 0;
}

static void test_fork(void** state) {
  (void)state;
  // ThreadSanitizer refuses new threads in such a child.
  if (TEST_TSAN) skip();
  static shared_t s;
  pestle_context_options_t options = {
      .struct_size = sizeof(options), .use_environment = true, .threads = 2};
  assert_ok(pestle_context_create(&options, &s.context));
  assert_ok(pestle_context_device(s.context, "cpu", &s.device));
  float data[COUNT];
  for (int i = 0; i < COUNT; ++i)
    data[i] = (float)i;
  assert_ok(pestle_array_from_data(s.device, &type, data, &s.x));
  pestle_capture_t* capture;
  pestle_array_t *argument, *result;
  pestle_module_t* module;
  assert_ok(pestle_capture_begin(s.device, &type, 1, &capture, &argument));
  assert_ok(pestle_array_negate(argument, &result));
  assert_ok(pestle_capture_end(capture, &result, 1, &module));
  assert_ok(pestle_jit_create(s.device, module, capture, NULL, &s.jit));
  pestle_module_release(module);
  pestle_array_release(argument);
  pestle_array_release(result);
  pestle_capture_release(capture);
  pthread_t threads[THREADS + 1];
  for (int i = 0; i < THREADS; ++i)
    assert_int_equal(pthread_create(&threads[i], NULL, work, &s), 0);
  for (int i = 0; i < FORKS; ++i) {
    usleep(500 + 37 * (useconds_t)i);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
      alarm(120);
      _exit(child(&s) % 251);
    }
    int code;
    assert_int_equal(waitpid(pid, &code, 0), pid);
    if (!WIFEXITED(code)) fail_msg("child %d ended by %d", i, WTERMSIG(code));
    if (WEXITSTATUS(code)) fail_msg("child %d: line %d", i, WEXITSTATUS(code));
  }
  atomic_store(&s.stop, true);
  for (int i = 0; i < THREADS; ++i)
    pthread_join(threads[i], NULL);
  pestle_array_release(atomic_load(&s.latest));
  pestle_jit_release(s.jit);
  pestle_array_release(s.x);
  pestle_context_release(s.context);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_fork)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
