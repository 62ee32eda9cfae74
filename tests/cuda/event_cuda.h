// SPDX-License-Identifier: Apache-2.0
// What the tests of events on a CUDA device share: plans of small modules, buffers
// there, and functions that count their calls.
#ifndef PESTLE_TESTS_CUDA_EVENT_CUDA_H_
#define PESTLE_TESTS_CUDA_EVENT_CUDA_H_

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/thread.h"
#include "pestle/pestle.h"
#include "test.h"

enum { COUNT = 4096, BYTES = 4 * COUNT };

typedef struct told_t {
  atomic_int count, code;
  char message[512];
  int64_t thread, at_ns;
} told_t;

static inline void note_told(void* self, pestle_status_t status) {
  told_t* told = self;
  told->at_ns = pestle_clock_ns();
  told->thread = pestle_thread_id();
  snprintf(told->message, sizeof(told->message), "%s",
           pestle_status_message(status));
  atomic_store(&told->code, (int)pestle_status_code(status));
  atomic_fetch_add(&told->count, 1);
}

static inline void wait_until(atomic_int* counter, int value) {
  for (int i = 0; atomic_load(counter) < value; ++i) {
    if (i == 300000) {
      fail_msg("%d of %d after 30 s", atomic_load(counter), value);
    }
    pestle_thread_sleep_ns(100000);
  }
}

// y = x + 1.
static const char add_text[] =
    "func.func public @main(%x: tensor<4096xf32>) -> tensor<4096xf32> {\n"
    "  %c = stablehlo.constant dense<1.0> : tensor<4096xf32>\n"
    "  %y = stablehlo.add %x, %c : tensor<4096xf32>\n"
    "  return %y : tensor<4096xf32>\n"
    "}\n";

// y = x + 40, by a loop that the host must look into at each turn.
static const char loop_text[] =
    "func.func public @main(%x: tensor<4096xf32>) -> tensor<4096xf32> {\n"
    "  %zero = stablehlo.constant dense<0> : tensor<i32>\n"
    "  %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, "
    "tensor<4096xf32>\n"
    "    cond {\n"
    "      %n = stablehlo.constant dense<40> : tensor<i32>\n"
    "      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> "
    "tensor<i1>\n"
    "      stablehlo.return %p : tensor<i1>\n"
    "    } do {\n"
    "      %one = stablehlo.constant dense<1> : tensor<i32>\n"
    "      %j = stablehlo.add %i, %one : tensor<i32>\n"
    "      %c = stablehlo.constant dense<1.0> : tensor<4096xf32>\n"
    "      %b = stablehlo.add %a, %c : tensor<4096xf32>\n"
    "      stablehlo.return %j, %b : tensor<i32>, tensor<4096xf32>\n"
    "    }\n"
    "  return %r#1 : tensor<4096xf32>\n"
    "}\n";

// y = x + 1 by a function of the host's, which refuses when |*user| is set.
static const char call_text[] =
    "func.func public @main(%x: tensor<4096xf32>) -> tensor<4096xf32> {\n"
    "  %y = stablehlo.custom_call @host_add(%x) : (tensor<4096xf32>) -> "
    "tensor<4096xf32>\n"
    "  return %y : tensor<4096xf32>\n"
    "}\n";

static inline pestle_status_t host_add(void* user,
                                       const pestle_custom_call_t* call) {
  if (atomic_load((atomic_int*)user)) {
    return PESTLE_ERROR(RESOURCE_EXHAUSTED, "the host refuses, as it was told");
  }
  const float* x = call->inputs[0].data;
  float* y = call->outputs[0].data;
  for (int i = 0; i < COUNT; ++i)
    y[i] = x[i] + 1;
  return NULL;
}

typedef struct cuda_t {
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_executable_t *add, *loop, *call;
  pestle_stream_t* stream;
  pestle_event_t* event;
  pestle_buffer_t* buffer[4];
  pestle_tensor_t view[4];
  atomic_int refuses;
} cuda_t;

static inline pestle_executable_t* load(cuda_t* c, const char* text) {
  pestle_module_t* module;
  pestle_plan_t* plan;
  pestle_executable_t* e;
  assert_ok(
      pestle_module_parse(c->context, text, strlen(text), "m.mlir", &module));
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true};
  assert_ok(pestle_compile(c->context, module, c->device, &options, &plan));
  assert_ok(pestle_executable_create(c->context, plan, c->device, &e));
  pestle_plan_release(plan);
  pestle_module_release(module);
  return e;
}

static inline void fill(cuda_t* c, int at, float value) {
  float x[COUNT];
  for (int i = 0; i < COUNT; ++i)
    x[i] = value;
  assert_ok(pestle_buffer_write(c->buffer[at], 0, x, sizeof(x)));
}

static inline float first_of(cuda_t* c, int at) {
  float x[COUNT];
  assert_ok(pestle_buffer_read(c->buffer[at], 0, x, sizeof(x)));
  for (int i = 1; i < COUNT; ++i)
    assert_true(x[i] == x[0]);
  return x[0];
}

// Skips the test where there is no device.
static inline void cuda_begin(cuda_t* c) {
  static int64_t dims[] = {COUNT};
  memset(c, 0, sizeof(*c));
  pestle_context_options_t options = {
      .struct_size = sizeof(options), .cache_dir = "", .use_environment = true};
  assert_ok(pestle_context_create(&options, &c->context));
  pestle_status_t status =
      pestle_context_device(c->context, "cuda", &c->device);
  if (status) {
    print_message("skipped: %s\n", pestle_status_message(status));
    exit(77);
  }
  assert_ok(pestle_context_register_custom_call(c->context, "host_add",
                                                host_add, &c->refuses, NULL));
  c->add = load(c, add_text);
  c->loop = load(c, loop_text);
  c->call = load(c, call_text);
  assert_ok(pestle_stream_create(c->device, &c->stream));
  assert_ok(pestle_event_create(c->device, &c->event));
  for (int i = 0; i < 4; ++i) {
    assert_ok(pestle_buffer_create(c->device, BYTES, &c->buffer[i]));
    fill(c, i, (float)(100 * i));
    c->view[i] = (pestle_tensor_t){.data = pestle_buffer_data(c->buffer[i]),
                                   .device = pestle_device_dl(c->device),
                                   .ndim = 1,
                                   .dtype = pestle_dtype_to_dlpack(PESTLE_F32),
                                   .shape = dims};
  }
}

static inline void cuda_end(cuda_t* c) {
  pestle_event_release(c->event);
  pestle_stream_release(c->stream);
  for (int i = 0; i < 4; ++i)
    pestle_buffer_release(c->buffer[i]);
  pestle_executable_release(c->add);
  pestle_executable_release(c->loop);
  pestle_executable_release(c->call);
  pestle_context_release(c->context);
}

static inline pestle_status_t run(cuda_t* c, pestle_executable_t* e, int from,
                                  int to) {
  return pestle_executable_run(e, c->stream, &c->view[from], 1, &c->view[to], 1,
                               NULL);
}

#endif  // PESTLE_TESTS_CUDA_EVENT_CUDA_H_
