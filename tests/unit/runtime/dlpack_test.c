// SPDX-License-Identifier: Apache-2.0
// Tensors of other libraries on a device: its memory and streams are used directly, as
// another library would, whose work goes on while ours is queued.
#include "runtime/dlpack.h"
#include "dlpack/zoo.h"
#include "unit/runtime/gpu_fixture.h"

static int set_up(void** state) {
  (void)state;
  mock_reset();
  return 0;
}

// Another library on a device of the mock.
typedef struct other_t {
  const pestle_backend_t* backend;
  const pestle_device_api_t* api;
  int32_t device;
  pestle_device_stream_t* stream;
  pestle_loaded_t* add1;
  pestle_device_event_t* gate;  // what its stream is kept waiting by
  uint64_t opened;
} other_t;

static other_t open_other(const pestle_device_t* device, int32_t index) {
  other_t o = {.backend = pestle_device_backend(device), .device = index};
  mock_artifact_t artifact = mock_artifact(test_entry_of(TEST_ADD1), GPU_COUNT);
  o.api = o.backend->device;
  assert_ok(o.api->stream_create(o.backend->self, index, &o.stream));
  assert_ok(o.api->event_create(o.backend->self, index, &o.gate));
  assert_ok(o.api->load(o.backend->self, index, &artifact, sizeof(artifact),
                        &o.add1));
  return o;
}

static void close_other(other_t* o) {
  o->api->stream_destroy(o->backend->self, o->stream);
  o->api->event_destroy(o->backend->self, o->gate);
  o->api->unload(o->backend->self, o->add1);
}

// Nothing that |stream| is given from now on begins before open_gate().
static void close_gate(const other_t* o, pestle_device_stream_t* stream) {
  assert_ok(o->api->event_wait_stream(o->backend->self, o->gate, stream,
                                      o->opened + 1));
}

static void open_gate(other_t* o) {
  assert_ok(o->api->event_signal(o->backend->self, o->gate, NULL, ++o->opened));
}

// 0, 1, 2, ...
static void* other_memory(const other_t* o) {
  void* data;
  float x[GPU_COUNT];
  for (int i = 0; i < GPU_COUNT; ++i)
    x[i] = (float)i;
  assert_ok(o->api->allocate(o->backend->self, o->device, GPU_BYTES, &data));
  assert_ok(
      o->api->copy_from_host(o->backend->self, o->device, x, data, GPU_BYTES));
  return data;
}

static void free_other(const other_t* o, void* data) {
  o->api->deallocate(o->backend->self, o->device, data, GPU_BYTES);
}

// |to| = |from| + 1 on the other's stream.
static void other_add1(const other_t* o, void* from, void* to) {
  void* buffers[] = {from, to};
  pestle_launch_t launch = {.struct_size = sizeof(launch),
                            .loaded = o->add1,
                            .buffers = buffers,
                            .buffer_count = 2};
  assert_ok(o->api->launch(o->backend->self, o->device, o->stream, &launch));
}

static void make_tensor(const other_t* o, int32_t type, void* data, zoo_t* z) {
  zoo_spec_t spec = {.dtype = {PESTLE_DL_FLOAT, 32, 1},
                     .ndim = 2,
                     .shape = {gpu_dims[0], gpu_dims[1]},
                     .strides = (int64_t[]){gpu_dims[1], 1},
                     .at = {type, o->device}};
  zoo_make(&spec, z);
  z->versioned.dl_tensor.data = data;
}

static unsigned host_waits(void) {
  return gpu_calls(MOCK_STREAM_SYNCHRONIZE) + gpu_calls(MOCK_EVENT_WAIT);
}

static pestle_dlpack_import_options_t import_options(void) {
  return (pestle_dlpack_import_options_t){
      .struct_size = sizeof(pestle_dlpack_import_options_t)};
}

static pestle_dlpack_export_options_t export_options(void) {
  return (pestle_dlpack_export_options_t){
      .struct_size = sizeof(pestle_dlpack_export_options_t)};
}

static const pestle_layout_t whole = {PESTLE_F32, 2, 0, {4, 6}, {6, 1}};

// --- Memory ---

static void test_memory_of_a_device(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_device_t* device = gpu_device(context, "mock:1");
  other_t o = open_other(device, 1);
  void* data = other_memory(&o);
  zoo_t z;
  pestle_layout_t layout;
  pestle_buffer_t* buffer;
  make_tensor(&o, PESTLE_DL_EXT_DEV, data, &z);
  assert_ok(
      pestle_buffer_import(context, &z.versioned, NULL, &layout, &buffer));
  assert_ptr_equal(pestle_buffer_device(buffer), device);
  assert_ptr_equal(pestle_buffer_data(buffer), data);
  float y[GPU_COUNT];
  assert_ok(pestle_buffer_read(buffer, 0, y, sizeof(y)));
  assert_true(y[3] == 3);
  pestle_buffer_release(buffer);
  assert_int_equal(zoo_ended(&z), 1);
  // A device that is not there, one that is another's, a handle.
  static const struct {
    pestle_dl_device_t at;
    pestle_status_code_t code;
    const char* text;
  } rows[] = {
      {{PESTLE_DL_EXT_DEV, 2}, PESTLE_STATUS_NOT_FOUND, "ExtDev device 2"},
      {{PESTLE_DL_EXT_DEV, -1}, PESTLE_STATUS_NOT_FOUND, "ExtDev device -1"},
      {{PESTLE_DL_CUDA, 0}, PESTLE_STATUS_NOT_FOUND, "CUDA device 0"},
      {{PESTLE_DL_VULKAN, 1},
       PESTLE_STATUS_INVALID_ARGUMENT,
       "no memory of this device"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    make_tensor(&o, PESTLE_DL_EXT_DEV, data, &z);
    z.versioned.dl_tensor.device = rows[i].at;
    pestle_test_assert_code_(
        pestle_buffer_import(context, &z.versioned, NULL, &layout, &buffer),
        rows[i].code, rows[i].text, __FILE__, __LINE__);
    assert_int_equal(zoo_ended(&z), 0);
  }
  pestle_dlpack_import_options_t options = import_options();
  options.device = gpu_device(context, "mock:0");
  make_tensor(&o, PESTLE_DL_EXT_DEV, data, &z);
  assert_error(
      pestle_buffer_import(context, &z.versioned, &options, &layout, &buffer),
      INVALID_ARGUMENT, "device mock:0 does not reach");
  assert_int_equal(zoo_ended(&z), 0);
  free_other(&o, data);
  close_other(&o);
  gpu_context_end(context);
}

// Memory that the backend says is another device's, or too little.
static void test_memory_is_looked_at(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_device_t* device = gpu_device(context, "mock:1");
  other_t o = open_other(device, 1);
  void* data = other_memory(&o);
  float host[GPU_COUNT];
  static const struct {
    int32_t device;
    uint64_t offset;
    const char* text;
  } rows[] = {{0, 0, "is of the backend's device 1"},
              {1, 4, "its memory has 92"},
              {1, 4096, "is no memory of this device"}};
  zoo_t z;
  pestle_layout_t layout;
  pestle_buffer_t* buffer;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    make_tensor(&o, PESTLE_DL_EXT_DEV, data, &z);
    z.versioned.dl_tensor.device.device_id = rows[i].device;
    z.versioned.dl_tensor.byte_offset = rows[i].offset;
    assert_error(
        pestle_buffer_import(context, &z.versioned, NULL, &layout, &buffer),
        INVALID_ARGUMENT, rows[i].text);
    assert_int_equal(zoo_ended(&z), 0);
  }
  make_tensor(&o, PESTLE_DL_EXT_DEV, host, &z);
  assert_error(
      pestle_buffer_import(context, &z.versioned, NULL, &layout, &buffer),
      INVALID_ARGUMENT, "is no memory of this device");
  assert_int_equal(zoo_ended(&z), 0);
  free_other(&o, data);
  close_other(&o);
  gpu_context_end(context);
}

// mockb has handles instead of addresses.
static void test_handles(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_device_t* device = gpu_device(context, "mockb:1");
  other_t o = open_other(device, 1);
  void *data = other_memory(&o), *handle;
  uint64_t offset;
  assert_ok(o.api->handle_of(o.backend->self, 1, data, &handle, &offset));
  assert_ptr_not_equal(handle, data);
  zoo_t z;
  pestle_layout_t layout;
  pestle_buffer_t* buffer;
  float y[4];
  // The last two rows, from their last on.
  make_tensor(&o, PESTLE_DL_VULKAN, handle, &z);
  z.shape[0] = z.shape[1] = 2;
  z.strides[0] = -6;
  z.versioned.dl_tensor.byte_offset = 18 * 4;
  assert_ok(
      pestle_buffer_import(context, &z.versioned, NULL, &layout, &buffer));
  assert_int_equal(atomic_load(&mock_state()->live_adopted), 1);
  assert_int_equal(layout.byte_offset, 24);
  assert_ok(pestle_buffer_read(buffer, layout.byte_offset, y, 8));
  assert_true(y[0] == 18 && y[1] == 19);
  // Out again: the handle, and where in it.
  struct DLManagedTensorVersioned* m;
  assert_ok(pestle_buffer_export(buffer, &layout, 0, NULL, &m));
  assert_int_equal(m->dl_tensor.device.device_type, PESTLE_DL_VULKAN);
  assert_int_equal(m->dl_tensor.device.device_id, 1);
  assert_ptr_equal(m->dl_tensor.data, handle);
  assert_int_equal(m->dl_tensor.byte_offset, 72);
  // And back into this context it is the buffer that it was.
  pestle_layout_t again;
  pestle_buffer_t* back;
  assert_ok(pestle_buffer_import(context, m, NULL, &again, &back));
  assert_ptr_equal(back, buffer);
  assert_int_equal(again.byte_offset, layout.byte_offset);
  pestle_buffer_release(back);
  assert_int_equal(zoo_ended(&z), 0);
  pestle_buffer_release(buffer);
  assert_int_equal(zoo_ended(&z), 1);
  assert_int_equal(atomic_load(&mock_state()->live_adopted), 0);
  // Too few bytes, before the beginning, a failure after it was adopted.
  static const struct {
    int64_t shape;
    uint64_t offset;
    int64_t stride;
  } wrong[] = {{5, 0, 6}, {4, 4, 6}, {4, 0, -6}, {1, 1 << 20, 1}};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    make_tensor(&o, PESTLE_DL_VULKAN, handle, &z);
    z.shape[0] = wrong[i].shape;
    z.strides[0] = wrong[i].stride;
    z.versioned.dl_tensor.byte_offset = wrong[i].offset;
    pestle_status_t status =
        pestle_buffer_import(context, &z.versioned, NULL, &layout, &buffer);
    assert_non_null(status);
    pestle_status_release(status);
    assert_int_equal(zoo_ended(&z), 0);
  }
  pestle_dlpack_import_options_t options = import_options();
  options.has_native_stream = true;
  options.native_stream = o.stream;
  mock_fail(MOCK_WAIT_NATIVE, 1, PESTLE_STATUS_INTERNAL);
  make_tensor(&o, PESTLE_DL_VULKAN, handle, &z);
  assert_code(
      pestle_buffer_import(context, &z.versioned, &options, &layout, &buffer),
      INTERNAL);
  assert_int_equal(zoo_ended(&z), 0);
  assert_int_equal(atomic_load(&mock_state()->live_adopted), 0);
  free_other(&o, data);
  close_other(&o);
  gpu_context_end(context);
}

// A backend that claims a device type of DLPack's.
static void test_claimed_device_type(void** state) {
  (void)state;
  mock_state()->dl_type = PESTLE_DL_ROCM;
  pestle_context_t* context = gpu_context(NULL);
  pestle_device_t *device = gpu_device(context, "mock:1"), *found;
  other_t o = open_other(device, 1);
  void* data = other_memory(&o);
  pestle_dl_device_t dl = pestle_dlpack_device(device);
  assert_int_equal(dl.device_type, PESTLE_DL_ROCM);
  assert_int_equal(dl.device_id, 1);
  assert_ok(pestle_dlpack_find_device(context, dl, &found));
  assert_ptr_equal(found, device);
  zoo_t z;
  pestle_layout_t layout;
  pestle_buffer_t* buffer;
  make_tensor(&o, PESTLE_DL_ROCM, data, &z);
  assert_ok(
      pestle_buffer_import(context, &z.versioned, NULL, &layout, &buffer));
  assert_ptr_equal(pestle_buffer_device(buffer), device);
  struct DLManagedTensorVersioned* m;
  assert_ok(pestle_buffer_export(buffer, &layout, 0, NULL, &m));
  assert_int_equal(m->dl_tensor.device.device_type, PESTLE_DL_ROCM);
  m->deleter(m);
  pestle_buffer_release(buffer);
  assert_int_equal(zoo_ended(&z), 1);
  free_other(&o, data);
  close_other(&o);
  gpu_context_end(context);
}

// Metal's tensors are handles with an offset: a backend of that type that adopts them
// sees the memory, gives the handle out again, and ends both holds once.
static void test_metal_by_a_stand_in(void** state) {
  (void)state;
  mock_state()->dl_type = PESTLE_DL_METAL;
  pestle_context_t* context = gpu_context(NULL);
  pestle_device_t* device = gpu_device(context, "mock:1");
  other_t o = open_other(device, 1);
  void *data = other_memory(&o), *handle;
  uint64_t offset;
  assert_ok(o.api->handle_of(o.backend->self, 1, data, &handle, &offset));
  zoo_t z;
  pestle_layout_t layout;
  pestle_buffer_t* buffer;
  make_tensor(&o, PESTLE_DL_METAL, handle, &z);
  z.shape[0] = 2;
  z.versioned.dl_tensor.byte_offset = 48;
  assert_ok(
      pestle_buffer_import(context, &z.versioned, NULL, &layout, &buffer));
  assert_ptr_equal(pestle_buffer_device(buffer), device);
  assert_int_equal(atomic_load(&mock_state()->live_adopted), 1);
  float y[12];
  assert_ok(pestle_buffer_read(buffer, layout.byte_offset, y, sizeof(y)));
  assert_true(y[0] == 12 && y[11] == 23);
  struct DLManagedTensorVersioned* m;
  assert_ok(pestle_buffer_export(buffer, &layout, 0, NULL, &m));
  assert_int_equal(m->dl_tensor.device.device_type, PESTLE_DL_METAL);
  assert_ptr_equal(m->dl_tensor.data, handle);
  assert_int_equal(m->dl_tensor.byte_offset, 48);
  m->deleter(m);
  assert_int_equal(zoo_ended(&z), 0);
  pestle_buffer_release(buffer);
  assert_int_equal(zoo_ended(&z), 1);
  assert_int_equal(atomic_load(&mock_state()->live_adopted), 0);
  // Elements behind the memory's end, another's handle.
  for (int i = 0; i < 2; ++i) {
    make_tensor(&o, PESTLE_DL_METAL, i ? (void*)&z : handle, &z);
    z.versioned.dl_tensor.byte_offset = i ? 0 : 4;
    pestle_status_t status =
        pestle_buffer_import(context, &z.versioned, NULL, &layout, &buffer);
    assert_non_null(status);
    pestle_status_release(status);
    assert_int_equal(zoo_ended(&z), 0);
    assert_int_equal(atomic_load(&mock_state()->live_adopted), 0);
  }
  free_other(&o, data);
  close_other(&o);
  gpu_context_end(context);
}

// Metal's backend of today: its devices are found, and its handles refused in words.
static void test_metal_without_handles(void** state) {
  (void)state;
  mock_state()->dl_type = PESTLE_DL_METAL;
  mock_state()->missing = UINT64_C(1) << MOCK_ADOPT;
  pestle_context_t* context = gpu_context(NULL);
  other_t o = open_other(gpu_device(context, "mock:1"), 1);
  void* data = other_memory(&o);
  zoo_t z;
  pestle_layout_t layout;
  pestle_buffer_t* buffer;
  make_tensor(&o, PESTLE_DL_METAL, data, &z);
  assert_error(
      pestle_buffer_import(context, &z.versioned, NULL, &layout, &buffer),
      UNSUPPORTED, "lacks adopt()");
  assert_int_equal(zoo_ended(&z), 0);
  free_other(&o, data);
  close_other(&o);
  gpu_context_end(context);
}

// A table of minor 4 has none of this. Vulkan's memory goes out all the same, since
// this process alone takes it back.
static void test_backend_without_handles(void** state) {
  (void)state;
  mock_state()->minor = 4;
  pestle_context_t* context = gpu_context(NULL);
  pestle_device_t* device = gpu_device(context, "mockb:0");
  other_t o = open_other(device, 0);
  void* data = other_memory(&o);
  zoo_t z;
  pestle_layout_t layout;
  pestle_buffer_t* buffer;
  make_tensor(&o, PESTLE_DL_VULKAN, data, &z);
  assert_error(
      pestle_buffer_import(context, &z.versioned, NULL, &layout, &buffer),
      UNSUPPORTED, "lacks adopt()");
  assert_int_equal(zoo_ended(&z), 0);
  struct DLManagedTensorVersioned* m;
  pestle_buffer_t* again;
  buffer = gpu_output(device);
  assert_ok(pestle_buffer_export(buffer, &whole, 0, NULL, &m));
  assert_ok(pestle_buffer_import(context, m, NULL, &layout, &again));
  assert_ptr_equal(again, buffer);
  pestle_buffer_release(again);
  pestle_buffer_release(buffer);
  free_other(&o, data);
  close_other(&o);
  gpu_context_end(context);
}

static void test_managed_memory_without_cuda(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  float x[GPU_COUNT] = {5};
  zoo_spec_t spec = {.dtype = {PESTLE_DL_FLOAT, 32, 1},
                     .ndim = 1,
                     .shape = {GPU_COUNT},
                     .strides = (int64_t[]){1},
                     .data = x,
                     .bytes = sizeof(x),
                     .at = {PESTLE_DL_CUDA_MANAGED, 0}};
  zoo_t z;
  pestle_layout_t layout;
  pestle_buffer_t* buffer;
  zoo_make(&spec, &z);
  assert_ok(
      pestle_buffer_import(context, &z.versioned, NULL, &layout, &buffer));
  assert_int_equal(pestle_device_dl(pestle_buffer_device(buffer)).device_type,
                   PESTLE_DEVICE_CPU);
  pestle_buffer_release(buffer);
  assert_int_equal(zoo_ended(&z), 1);
  zoo_free(&z);
  gpu_context_end(context);
}

// --- Their stream first ---

static void test_import_comes_after_their_stream(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_device_t* device = gpu_device(context, "mock");
  pestle_executable_t* e = gpu_chain(context);
  other_t o = open_other(device, 0);
  pestle_stream_t* stream;
  assert_ok(pestle_stream_create(device, &stream));
  for (int way = 0; way < 3; ++way) {
    void *from = other_memory(&o), *data = other_memory(&o);
    zoo_t z;
    pestle_layout_t layout;
    pestle_buffer_t *x, *y = NULL;
    make_tensor(&o, PESTLE_DL_EXT_DEV, data, &z);
    mock_count_anew();
    close_gate(&o, o.stream);
    other_add1(&o, from, data);
    other_add1(&o, data, data);
    pestle_dlpack_import_options_t options = import_options();
    if (way == 0) {
      // Our stream was told to wait by the producer, as DLPack has it.
      void* handle;
      assert_ok(pestle_stream_handle(stream, &handle));
      assert_non_null(handle);
      assert_ok(o.api->native_wait(o.backend->self, 0, handle, o.stream));
      options.stream = stream;
    } else {
      options.has_native_stream = true;
      options.native_stream = o.stream;
      if (way == 2) options.stream = stream;
    }
    assert_ok(
        pestle_buffer_import(context, &z.versioned, &options, &layout, &x));
    assert_false(pestle_buffer_is_ready(x));
    pestle_buffer_view_t view = {x, layout.byte_offset, NULL};
    pestle_stream_t* own;
    assert_ok(pestle_stream_create(device, &own));
    assert_ok(pestle_executable_run_buffers(e, own, &view, 1, &y, 1, NULL));
    assert_int_equal(atomic_load(&mock_state()->kernels_run), 0);
    assert_int_equal(host_waits(), 0);
    open_gate(&o);
    gpu_check_buffer(y, 2);
    pestle_stream_release(own);
    pestle_buffer_release(y);
    assert_int_equal(zoo_ended(&z), 0);
    pestle_buffer_release(x);
    // By a thread of the runtime, when the run lets go of it.
    for (int i = 0; i < 10000 && !zoo_ended(&z); ++i)
      usleep(1000);
    assert_int_equal(zoo_ended(&z), 1);
    free_other(&o, from);
    free_other(&o, data);
  }
  pestle_stream_release(stream);
  close_other(&o);
  pestle_executable_release(e);
  gpu_context_end(context);
}

// --- Ours first ---

static void test_their_stream_comes_after_export(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_device_t* device = gpu_device(context, "mock");
  pestle_executable_t* e = gpu_chain(context);
  other_t o = open_other(device, 0);
  pestle_stream_t* stream;
  assert_ok(pestle_stream_create(device, &stream));
  pestle_buffer_t *x = gpu_input(device, 1), *y = NULL;
  void* to = other_memory(&o);
  void* handle;
  assert_ok(pestle_stream_handle(stream, &handle));
  mock_count_anew();
  close_gate(&o, handle);
  pestle_buffer_view_t view = {x, 0, NULL};
  assert_ok(pestle_executable_run_buffers(e, stream, &view, 1, &y, 1, NULL));
  pestle_dlpack_export_options_t options = export_options();
  options.order = PESTLE_DLPACK_STREAM;
  options.native_stream = o.stream;
  struct DLManagedTensorVersioned* m;
  assert_ok(pestle_buffer_export(y, &whole, 0, &options, &m));
  other_add1(&o, m->dl_tensor.data, to);
  assert_int_equal(host_waits(), 0);
  assert_int_equal(atomic_load(&mock_state()->kernels_run), 0);
  // All of ours go, and then the tensor, while their stream still reads it.
  pestle_buffer_release(y);
  int before = atomic_load(&mock_state()->live_blocks);
  m->deleter(m);
  usleep(20000);
  assert_int_equal(atomic_load(&mock_state()->kernels_run), 0);
  assert_int_equal(atomic_load(&mock_state()->live_blocks), before);
  open_gate(&o);
  assert_ok(o.api->stream_synchronize(o.backend->self, o.stream));
  float values[GPU_COUNT];
  assert_ok(o.api->copy_to_host(o.backend->self, 0, to, values, GPU_BYTES));
  for (int i = 0; i < GPU_COUNT; ++i)
    assert_true(values[i] == gpu_expected(i, 1 + (float)i) + 1);
  for (int i = 0;
       i < 10000 && atomic_load(&mock_state()->live_blocks) == before; ++i) {
    usleep(1000);
  }
  assert_int_equal(atomic_load(&mock_state()->live_blocks), before - 1);
  free_other(&o, to);
  pestle_stream_release(stream);
  close_other(&o);
  pestle_buffer_release(x);
  pestle_executable_release(e);
  gpu_context_end(context);
}

// What is there needs nobody to wait; a failure is said at once.
static void test_orders(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_device_t* device = gpu_device(context, "mock");
  other_t o = open_other(device, 0);
  pestle_buffer_t* x = gpu_input(device, 1);
  struct DLManagedTensorVersioned* m;
  mock_count_anew();
  pestle_dlpack_export_options_t options = export_options();
  for (int order = 0; order < 3; ++order) {
    options.order = order;
    options.native_stream = o.stream;
    assert_ok(pestle_buffer_export(x, &whole, 0, &options, &m));
    assert_int_equal(gpu_calls(MOCK_NATIVE_WAIT), 0);
    assert_int_equal(m->dl_tensor.device.device_type, PESTLE_DL_EXT_DEV);
    m->deleter(m);
  }
  pestle_buffer_release(x);
  close_other(&o);
  gpu_context_end(context);
}

static void test_a_run_that_fails(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_device_t* device = gpu_device(context, "mock");
  pestle_executable_t* e = gpu_chain(context);
  other_t o = open_other(device, 0);
  pestle_stream_t* stream;
  assert_ok(pestle_stream_create(device, &stream));
  pestle_buffer_t *x = gpu_input(device, 1), *y = NULL;
  mock_fail(MOCK_LAUNCH, 2, PESTLE_STATUS_INTERNAL);
  pestle_buffer_view_t view = {x, 0, NULL};
  assert_ok(pestle_executable_run_buffers(e, stream, &view, 1, &y, 1, NULL));
  struct DLManagedTensorVersioned* m;
  for (int order = 0; order < 2; ++order) {
    pestle_dlpack_export_options_t options = export_options();
    options.order = order;
    options.native_stream = o.stream;
    assert_error(pestle_buffer_export(y, &whole, 0, &options, &m), INTERNAL,
                 "fails as it was told to");
    assert_null(m);
  }
  assert_code(pestle_stream_synchronize(stream), INTERNAL);
  pestle_stream_release(stream);
  close_other(&o);
  pestle_buffer_release(x);
  pestle_buffer_release(y);
  pestle_executable_release(e);
  gpu_context_end(context);
}

// --- What a backend lacks, or fails at ---

static void test_backend_without_streams_of_others(void** state) {
  (void)state;
  mock_state()->minor = 3;
  pestle_context_t* context = gpu_context(NULL);
  pestle_device_t* device = gpu_device(context, "mock");
  other_t o = open_other(device, 0);
  void* data = other_memory(&o);
  zoo_t z;
  pestle_layout_t layout;
  pestle_buffer_t* x;
  make_tensor(&o, PESTLE_DL_EXT_DEV, data, &z);
  pestle_dlpack_import_options_t options = import_options();
  options.has_native_stream = true;
  options.native_stream = o.stream;
  assert_error(
      pestle_buffer_import(context, &z.versioned, &options, &layout, &x),
      UNSUPPORTED, "knows no streams of other libraries");
  assert_int_equal(zoo_ended(&z), 0);
  // Streams of ours do.
  pestle_stream_t* stream;
  void* handle;
  assert_ok(pestle_stream_create(device, &stream));
  assert_error(pestle_stream_handle(stream, &handle), UNSUPPORTED,
               "no handles for its streams");
  options.has_native_stream = false;
  options.stream = stream;
  assert_ok(pestle_buffer_import(context, &z.versioned, &options, &layout, &x));
  struct DLManagedTensorVersioned* m;
  pestle_dlpack_export_options_t wanted = export_options();
  wanted.order = PESTLE_DLPACK_STREAM;
  assert_error(pestle_buffer_export(x, &whole, 0, &wanted, &m), UNSUPPORTED,
               "knows no streams of other libraries");
  wanted.order = PESTLE_DLPACK_HOST;
  assert_ok(pestle_buffer_export(x, &whole, 0, &wanted, &m));
  m->deleter(m);
  pestle_buffer_release(x);
  assert_int_equal(zoo_ended(&z), 1);
  pestle_stream_release(stream);
  free_other(&o, data);
  close_other(&o);
  gpu_context_end(context);
}

static void test_every_slot_may_fail(void** state) {
  (void)state;
  static const mock_slot_t slots[] = {MOCK_WAIT_NATIVE, MOCK_EVENT_CREATE,
                                      MOCK_EVENT_SIGNAL, MOCK_STREAM_CREATE,
                                      MOCK_STREAM_HOST_CALL};
  for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); ++i) {
    pestle_context_t* context = gpu_context(NULL);
    pestle_device_t* device = gpu_device(context, "mock");
    other_t o = open_other(device, 0);
    void* data = other_memory(&o);
    zoo_t z;
    pestle_layout_t layout;
    pestle_buffer_t* x;
    make_tensor(&o, PESTLE_DL_EXT_DEV, data, &z);
    pestle_dlpack_import_options_t options = import_options();
    options.has_native_stream = true;
    options.native_stream = o.stream;
    mock_fail(slots[i], 1, PESTLE_STATUS_INTERNAL);
    assert_error(
        pestle_buffer_import(context, &z.versioned, &options, &layout, &x),
        INTERNAL, "fails as it was told to");
    assert_null(x);
    assert_int_equal(zoo_ended(&z), 0);
    assert_ok(
        pestle_buffer_import(context, &z.versioned, &options, &layout, &x));
    pestle_buffer_release(x);
    assert_int_equal(zoo_ended(&z), 1);
    free_other(&o, data);
    close_other(&o);
    gpu_context_end(context);
  }
}

static void test_lost_device(void** state) {
  (void)state;
  pestle_context_t* context = gpu_context(NULL);
  pestle_device_t* device = gpu_device(context, "mock");
  other_t o = open_other(device, 0);
  pestle_buffer_t* x = gpu_input(device, 1);
  struct DLManagedTensorVersioned* m;
  pestle_dlpack_export_options_t options = export_options();
  options.order = PESTLE_DLPACK_STREAM;
  options.native_stream = o.stream;
  assert_ok(pestle_buffer_export(x, &whole, 0, &options, &m));
  pestle_buffer_release(x);
  atomic_store(&mock_state()->lost, true);
  m->deleter(m);  // Nothing uses the memory any more.
  atomic_store(&mock_state()->lost, false);
  close_other(&o);
  gpu_context_end(context);
}

// --- Out of memory ---

static void test_every_request_may_fail(void** state) {
  (void)state;
  for (size_t k = 1;; ++k) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, 0);
    pestle_context_options_t fixed = fixture_options();
    fixed.allocator = pestle_test_allocator(&memory);
    pestle_context_t* context = gpu_context(&fixed);
    pestle_device_t* device = gpu_device(context, "mock");
    other_t o = open_other(device, 0);
    void* data = other_memory(&o);
    zoo_t z;
    pestle_layout_t layout;
    pestle_buffer_t* x;
    struct DLManagedTensorVersioned* m = NULL;
    make_tensor(&o, PESTLE_DL_EXT_DEV, data, &z);
    pestle_dlpack_import_options_t options = import_options();
    options.has_native_stream = true;
    options.native_stream = o.stream;
    atomic_store(&memory.fail_at, atomic_load(&memory.request_count) + k);
    pestle_status_t status =
        pestle_buffer_import(context, &z.versioned, &options, &layout, &x);
    if (!status) {
      pestle_dlpack_export_options_t wanted = export_options();
      wanted.order = PESTLE_DLPACK_STREAM;
      wanted.native_stream = o.stream;
      status = pestle_buffer_export(x, &whole, 0, &wanted, &m);
      pestle_buffer_release(x);
    } else {
      assert_int_equal(zoo_ended(&z), 0);
    }
    if (m) m->deleter(m);
    bool failed = pestle_test_allocator_failed(&memory);
    atomic_store(&memory.fail_at, 0);
    if (status) assert_code(status, OUT_OF_MEMORY);
    assert_ok(o.api->stream_synchronize(o.backend->self, o.stream));
    free_other(&o, data);
    close_other(&o);
    gpu_context_end(context);
    pestle_test_allocator_check(&memory);
    if (failed) continue;
    assert_int_equal(zoo_ended(&z), 1);
    assert_true(k > 5);
    break;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_memory_of_a_device, set_up),
      cmocka_unit_test_setup(test_memory_is_looked_at, set_up),
      cmocka_unit_test_setup(test_handles, set_up),
      cmocka_unit_test_setup(test_claimed_device_type, set_up),
      cmocka_unit_test_setup(test_metal_by_a_stand_in, set_up),
      cmocka_unit_test_setup(test_metal_without_handles, set_up),
      cmocka_unit_test_setup(test_backend_without_handles, set_up),
      cmocka_unit_test_setup(test_managed_memory_without_cuda, set_up),
      cmocka_unit_test_setup(test_import_comes_after_their_stream, set_up),
      cmocka_unit_test_setup(test_their_stream_comes_after_export, set_up),
      cmocka_unit_test_setup(test_orders, set_up),
      cmocka_unit_test_setup(test_a_run_that_fails, set_up),
      cmocka_unit_test_setup(test_backend_without_streams_of_others, set_up),
      cmocka_unit_test_setup(test_every_slot_may_fail, set_up),
      cmocka_unit_test_setup(test_lost_device, set_up),
      cmocka_unit_test_setup(test_every_request_may_fail, set_up),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
