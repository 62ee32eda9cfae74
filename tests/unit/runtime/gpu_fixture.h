// SPDX-License-Identifier: Apache-2.0
// Contexts with the mock's devices in them, and plans for those.
#ifndef PESTLE_TESTS_UNIT_RUNTIME_GPU_FIXTURE_H_
#define PESTLE_TESTS_UNIT_RUNTIME_GPU_FIXTURE_H_

#include <unistd.h>

#include "mock/mock.h"
#include "unit/runtime/fixture.h"

// Devices: test and ref of type cpu; mock:0, mock:1, mockb:0, mockb:1.
static inline pestle_context_t* gpu_context(
    const pestle_context_options_t* options) {
  pestle_context_t* context = fixture_context(options);
  assert_ok(pestle_registry_add_static(context, mock_abi_info, mock_init));
  assert_ok(pestle_registry_add_static(context, mockb_abi_info, mockb_init));
  return context;
}

// Nothing may be left, and no promise have been broken. A callback of an event
// may have the last hold of the context, on a thread of the runtime.
static inline void gpu_context_end(pestle_context_t* context) {
  pestle_context_release(context);
  for (int i = 0; i < 10000 && mock_live() != 0; ++i)
    usleep(1000);
  if (atomic_load(&mock_state()->faults)) {
    print_error("the mock says: %s\n", mock_state()->fault);
  }
  assert_int_equal(atomic_load(&mock_state()->faults), 0);
  assert_int_equal(mock_live(), 0);
}

static inline pestle_device_t* gpu_device(pestle_context_t* context,
                                          const char* spec) {
  pestle_device_t* device;
  assert_ok(pestle_context_device(context, spec, &device));
  return device;
}

static inline unsigned gpu_calls(mock_slot_t slot) {
  return atomic_load(&mock_state()->calls[slot]);
}

static inline void gpu_plan_device(plan_writer_t* w, const char* backend) {
  uint32_t index = plan_device(w, backend, "");
  w->devices[index].device_type =
      strcmp(backend, "mockb") ? PESTLE_DEVICE_EXT : PESTLE_DEVICE_VULKAN;
}

// A kernel of the plan's first device.
static inline uint32_t gpu_kernel(plan_writer_t* w, const char* name,
                                  test_code_t code, uint32_t args,
                                  int64_t group) {
  mock_artifact_t artifact =
      mock_artifact(test_entry_of((uint64_t)code), group);
  return plan_kernel(w, name, 0, &artifact, sizeof(artifact), args, group, 0);
}

// One of a CPU beside it, which is the plan's device 1.
static inline uint32_t gpu_cpu_kernel(plan_writer_t* w, const char* name,
                                      test_code_t code, uint32_t args,
                                      int64_t group) {
  test_artifact_t artifact = test_artifact(code);
  return plan_kernel(w, name, 1, &artifact, sizeof(artifact), args, group, 0);
}

enum { GPU_COUNT = 24, GPU_BYTES = 4 * GPU_COUNT };

static const int64_t gpu_dims[] = {4, 6};

// y = (x + 1) + c + 1 with c[i] = 100 i: three launches and a constant.
static inline void gpu_write_chain(plan_writer_t* w, const char* backend) {
  float c[GPU_COUNT];
  for (int i = 0; i < GPU_COUNT; ++i)
    c[i] = (float)(100 * i);
  plan_begin(w, "chain");
  gpu_plan_device(w, backend);
  plan_input(w, "x", PESTLE_F32, 2, gpu_dims);
  plan_output(w, "y", PESTLE_F32, 2, gpu_dims);
  uint64_t m = plan_arena(w, GPU_BYTES), n = plan_arena(w, GPU_BYTES);
  uint64_t at = plan_constant(w, c, sizeof(c));
  uint32_t add1 = gpu_kernel(w, "add1", TEST_ADD1, 2, GPU_COUNT);
  uint32_t add = gpu_kernel(w, "add", TEST_ADD, 3, GPU_COUNT);
  uint32_t first = plan_bind(w, PESTLE_PLAN_INPUT, 0, 0, GPU_BYTES);
  plan_bind_written(w, PESTLE_PLAN_ARENA, 0, m, GPU_BYTES);
  plan_launch(w, add1, first);
  first = plan_bind(w, PESTLE_PLAN_ARENA, 0, m, GPU_BYTES);
  plan_bind(w, PESTLE_PLAN_CONSTANT, 0, at, GPU_BYTES);
  plan_bind_written(w, PESTLE_PLAN_ARENA, 0, n, GPU_BYTES);
  plan_launch(w, add, first);
  first = plan_bind(w, PESTLE_PLAN_ARENA, 0, n, GPU_BYTES);
  plan_bind_written(w, PESTLE_PLAN_OUTPUT, 0, 0, GPU_BYTES);
  plan_launch(w, add1, first);
  plan_step(w, PESTLE_PLAN_END, 0, 0, 0, 0);
}

static inline pestle_executable_t* gpu_chain(pestle_context_t* context) {
  static plan_writer_t w;
  gpu_write_chain(&w, "mock");
  return fixture_executable(context, &w);
}

static inline float gpu_expected(int i, float x) {
  return (x + 1) + (float)(100 * i) + 1;
}

// A dense tensor of gpu_dims in |buffer|.
static inline pestle_tensor_t gpu_view(pestle_buffer_t* buffer, size_t offset) {
  pestle_tensor_t view = test_view(pestle_buffer_data(buffer), PESTLE_F32, 2,
                                   (int64_t*)(uintptr_t)gpu_dims, NULL);
  view.device = pestle_device_dl(pestle_buffer_device(buffer));
  view.byte_offset = offset;
  return view;
}

static inline pestle_tensor_t gpu_host_view(float* data) {
  return test_view(data, PESTLE_F32, 2, (int64_t*)(uintptr_t)gpu_dims, NULL);
}

// A buffer with x[i] = first + i.
static inline pestle_buffer_t* gpu_input(pestle_device_t* device, float first) {
  float x[GPU_COUNT];
  for (int i = 0; i < GPU_COUNT; ++i)
    x[i] = first + (float)i;
  pestle_buffer_t* buffer;
  assert_ok(pestle_buffer_create(device, GPU_BYTES, &buffer));
  assert_ok(pestle_buffer_write(buffer, 0, x, sizeof(x)));
  return buffer;
}

static inline pestle_buffer_t* gpu_output(pestle_device_t* device) {
  pestle_buffer_t* buffer;
  assert_ok(pestle_buffer_create(device, GPU_BYTES, &buffer));
  return buffer;
}

// What the chain makes of x[i] = first + i.
static inline void gpu_check(const float* y, float first) {
  for (int i = 0; i < GPU_COUNT; ++i) {
    if (y[i] == gpu_expected(i, first + (float)i)) continue;
    print_error("element %d is %g, expected %g\n", i, (double)y[i],
                (double)gpu_expected(i, first + (float)i));
    fail();
  }
}

static inline void gpu_check_buffer(pestle_buffer_t* buffer, float first) {
  float y[GPU_COUNT];
  assert_ok(pestle_buffer_read(buffer, 0, y, sizeof(y)));
  gpu_check(y, first);
}

#define GPU_RUN(e, stream, in, out, options) \
  pestle_executable_run((e), (stream), &(in), 1, &(out), 1, (options))

#endif  // PESTLE_TESTS_UNIT_RUNTIME_GPU_FIXTURE_H_
