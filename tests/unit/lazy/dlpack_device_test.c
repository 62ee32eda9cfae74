// SPDX-License-Identifier: Apache-2.0
// Tensors on a device whose memory the host cannot touch (tests/mock), as arrays: what
// stays there, what the device or the host copies, and exports to the host.
#include <stdlib.h>

#include "dlpack/zoo.h"
#include "pestle/pestle.h"

typedef struct fixture_t {
  pestle_context_t* context;
  pestle_device_t *device, *cpu;
  const pestle_backend_t* backend;
} fixture_t;

static int setup(void** state) {
  static fixture_t f;
  pestle_context_options_t options = {
      .struct_size = sizeof(options), .use_environment = true, .threads = 2};
  const char* build = getenv("PESTLE_BUILD_DIR");
  char path[4096];
  snprintf(path, sizeof(path), "%s/tests/mock/backends/libpestle-mock.so",
           build ? build : ".");
  assert_ok(pestle_context_create(&options, &f.context));
  assert_ok(pestle_context_load_backend(f.context, path));
  assert_ok(pestle_context_device(f.context, "mock", &f.device));
  assert_ok(pestle_context_device(f.context, "cpu", &f.cpu));
  f.backend = pestle_device_backend(f.device);
  *state = &f;
  return 0;
}

static int teardown(void** state) {
  fixture_t* f = *state;
  pestle_context_release(f->context);
  return 0;
}

// A tensor of |bytes| on the device, as another library would have it.
static void make(const fixture_t* f, zoo_spec_t spec, zoo_t* z, void** data) {
  const void* bytes = spec.data;
  spec.data = NULL;
  spec.at = (pestle_dl_device_t){PESTLE_DL_EXT_DEV, 0};
  zoo_make(&spec, z);
  const pestle_device_api_t* d = f->backend->device;
  assert_ok(d->allocate(f->backend->self, 0, spec.bytes, data));
  assert_ok(d->copy_from_host(f->backend->self, 0, bytes, *data, spec.bytes));
  z->versioned.dl_tensor.data = *data;
}

static void end(const fixture_t* f, zoo_t* z, void* data, size_t size) {
  assert_int_equal(zoo_ended(z), 1);
  f->backend->device->deallocate(f->backend->self, 0, data, size);
}

static const pestle_dl_dtype_t f32 = {PESTLE_DL_FLOAT, 32, 1};
static const float numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static pestle_dlpack_import_options_t options_of(pestle_device_t* device,
                                                 int32_t copy) {
  return (pestle_dlpack_import_options_t){
      .struct_size = sizeof(pestle_dlpack_import_options_t),
      .device = device,
      .copy = copy};
}

static void test_stays_there(void** state) {
  const fixture_t* f = *state;
  static const struct {
    int64_t shape[2], strides[2];
    uint64_t offset;
    float twice[12];
  } rows[] = {
      {{3, 4}, {4, 1}, 0, {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22}},
      {{4, 3}, {1, 4}, 0, {0, 8, 16, 2, 10, 18, 4, 12, 20, 6, 14, 22}},
      {{2, 2}, {-4, -1}, 40, {20, 18, 12, 10}},
      {{2, 3}, {0, 1}, 4, {2, 4, 6, 2, 4, 6}},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    zoo_spec_t spec = {.dtype = f32,
                       .ndim = 2,
                       .shape = {rows[i].shape[0], rows[i].shape[1]},
                       .strides = rows[i].strides,
                       .data = numbers,
                       .bytes = 48,
                       .offset = rows[i].offset};
    zoo_t z;
    void* data;
    pestle_array_t *x, *y;
    float values[12];
    size_t size = 4 * (size_t)(rows[i].shape[0] * rows[i].shape[1]);
    make(f, spec, &z, &data);
    pestle_dlpack_import_options_t never = options_of(NULL, PESTLE_COPY_NEVER);
    assert_ok(pestle_array_import(f->context, &z.versioned, &never, &x));
    assert_ptr_equal(pestle_array_device(x), f->device);
    assert_ok(pestle_array_add(x, x, &y));
    assert_ok(pestle_array_read(y, values, size));
    assert_memory_equal(values, rows[i].twice, size);
    assert_int_equal(zoo_ended(&z), 0);
    pestle_array_release(x);
    pestle_array_release(y);
    end(f, &z, data, 48);
  }
}

// The device makes booleans 0 or 1, before anything else reads them.
static void test_dirty_booleans(void** state) {
  const fixture_t* f = *state;
  zoo_spec_t spec = {.dtype = {PESTLE_DL_BOOL, 8, 1},
                     .ndim = 1,
                     .shape = {4},
                     .strides = (int64_t[]){1},
                     .data = "\0\1\2\xff",
                     .bytes = 4};
  zoo_t z;
  void* data;
  pestle_array_t* x;
  char bytes[4];
  make(f, spec, &z, &data);
  pestle_dlpack_import_options_t never = options_of(NULL, PESTLE_COPY_NEVER);
  assert_error(pestle_array_import(f->context, &z.versioned, &never, &x),
               UNSUPPORTED, "must be made 0 or 1");
  assert_int_equal(zoo_ended(&z), 0);
  assert_ok(pestle_array_import(f->context, &z.versioned, NULL, &x));
  assert_int_equal(pestle_array_type(x).dtype, PESTLE_I1);
  assert_int_equal(pestle_array_state(x), PESTLE_ARRAY_LAZY);
  assert_int_equal(zoo_ended(&z), 0);
  assert_ok(pestle_array_read(x, bytes, 4));
  assert_memory_equal(bytes, "\0\1\1\1", 4);
  assert_int_equal(zoo_ended(&z), 1);
  pestle_array_release(x);
  end(f, &z, data, 4);
  // To the host, and trusted.
  make(f, spec, &z, &data);
  pestle_dlpack_import_options_t options =
      options_of(f->cpu, PESTLE_COPY_IF_NEEDED);
  assert_ok(pestle_array_import(f->context, &z.versioned, &options, &x));
  assert_int_equal(zoo_ended(&z), 1);
  assert_ok(pestle_array_read(x, bytes, 4));
  assert_memory_equal(bytes, "\0\1\1\1", 4);
  pestle_array_release(x);
  end(f, &z, data, 4);
  make(f, spec, &z, &data);
  never.trusted = true;
  assert_ok(pestle_array_import(f->context, &z.versioned, &never, &x));
  pestle_array_release(x);
  end(f, &z, data, 4);
}

static void test_copies_by_the_host(void** state) {
  const fixture_t* f = *state;
  static const struct {
    zoo_spec_t spec;
    pestle_dtype_t dtype;
    int64_t count;
    const char* bytes;
    const char* reason;
  } rows[] = {
      {{.dtype = {PESTLE_DL_INT, 4, 1},
        .data = "\x80\x7f\x01",
        .bytes = 3,
        .shape = {5}},
       PESTLE_I4,
       5,
       "\0\xf8\xff\7\1",
       "are packed"},
      {{.dtype = {PESTLE_DL_INT, 4, 1},
        .data = "\x08\xf8\x17",
        .bytes = 3,
        .shape = {3},
        .flags = PESTLE_DL_IS_PADDED},
       PESTLE_I4,
       3,
       "\xf8\xf8\7",
       "must be extended"},
      {{.dtype = {PESTLE_DL_UINT, 16, 1},
        .data = "x\1\2\3\4",
        .bytes = 5,
        .shape = {2},
        .offset = 1},
       PESTLE_U16,
       2,
       "\1\2\3\4",
       "across their own alignment"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    zoo_spec_t spec = rows[i].spec;
    int64_t strides[] = {1};
    spec.ndim = 1;
    spec.strides = strides;
    zoo_t z;
    void* data;
    pestle_array_t* x;
    char bytes[16];
    make(f, spec, &z, &data);
    pestle_dlpack_import_options_t never = options_of(NULL, PESTLE_COPY_NEVER);
    assert_error(pestle_array_import(f->context, &z.versioned, &never, &x),
                 UNSUPPORTED, rows[i].reason);
    assert_int_equal(zoo_ended(&z), 0);
    assert_ok(pestle_array_import(f->context, &z.versioned, NULL, &x));
    assert_int_equal(zoo_ended(&z), 1);
    assert_ptr_equal(pestle_array_device(x), f->device);
    size_t size = (size_t)rows[i].count * pestle_dtype_size(rows[i].dtype);
    assert_ok(pestle_array_read(x, bytes, size));
    assert_memory_equal(bytes, rows[i].bytes, size);
    pestle_array_release(x);
    end(f, &z, data, spec.bytes);
  }
}

static void test_between_devices(void** state) {
  const fixture_t* f = *state;
  zoo_spec_t spec = {.dtype = f32,
                     .ndim = 2,
                     .shape = {4, 3},
                     .strides = (int64_t[]){1, 4},
                     .data = numbers,
                     .bytes = 48};
  static const float expected[] = {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11};
  pestle_device_t* to[] = {f->cpu, f->device};
  float values[12];
  for (int from_host = 0; from_host < 2; ++from_host) {
    zoo_t z;
    void* data = NULL;
    pestle_array_t* x;
    if (from_host) {
      zoo_make(&spec, &z);
    } else {
      make(f, spec, &z, &data);
    }
    pestle_dlpack_import_options_t options =
        options_of(to[from_host], PESTLE_COPY_NEVER);
    assert_error(pestle_array_import(f->context, &z.versioned, &options, &x),
                 UNSUPPORTED, "another device");
    options.copy = PESTLE_COPY_IF_NEEDED;
    assert_ok(pestle_array_import(f->context, &z.versioned, &options, &x));
    assert_int_equal(zoo_ended(&z), 1);
    assert_ptr_equal(pestle_array_device(x), to[from_host]);
    assert_ok(pestle_array_read(x, values, 48));
    assert_memory_equal(values, expected, 48);
    pestle_array_release(x);
    if (from_host) {
      zoo_free(&z);
    } else {
      end(f, &z, data, 48);
    }
  }
}

static void test_export(void** state) {
  const fixture_t* f = *state;
  pestle_type_t type = {PESTLE_F32, 1, {12}};
  pestle_array_t* x;
  struct DLManagedTensorVersioned* m;
  assert_ok(pestle_array_from_data(f->device, &type, numbers, &x));
  assert_ok(pestle_array_export(x, NULL, &m));
  assert_int_equal(m->dl_tensor.device.device_type, PESTLE_DL_EXT_DEV);
  assert_int_equal(m->flags, 0);
  m->deleter(m);
  pestle_dlpack_export_options_t options = {.struct_size = sizeof(options),
                                            .device = f->cpu};
  assert_ok(pestle_array_export(x, &options, &m));
  assert_int_equal(m->dl_tensor.device.device_type, PESTLE_DL_CPU);
  assert_int_equal(m->flags, PESTLE_DL_IS_COPIED);
  assert_memory_equal(m->dl_tensor.data, numbers, 48);
  m->deleter(m);
  options.copy = PESTLE_COPY_NEVER;
  assert_error(pestle_array_export(x, &options, &m), UNSUPPORTED,
               "another device");
  // Packed, there.
  pestle_type_t small = {PESTLE_U4, 1, {4}};
  pestle_array_t* s;
  struct DLManagedTensor* old;
  unsigned char packed[2];
  assert_ok(pestle_array_from_data(f->device, &small, "\1\2\3\4", &s));
  assert_ok(pestle_array_export_legacy(s, NULL, &old));
  assert_ok(f->backend->device->copy_to_host(f->backend->self, 0,
                                             old->dl_tensor.data, packed, 2));
  assert_true(packed[0] == 0x21 && packed[1] == 0x43);
  old->deleter(old);
  pestle_tensor_t lent;
  assert_ok(pestle_array_borrow(s, &lent));
  assert_int_equal(lent.device.device_type, PESTLE_DL_EXT_DEV);
  pestle_array_release(s);
  pestle_array_release(x);
}

static void test_allocate(void** state) {
  const fixture_t* f = *state;
  int64_t shape[] = {3};
  pestle_tensor_t like = {.device = {PESTLE_DL_EXT_DEV, 1},
                          .ndim = 1,
                          .dtype = f32,
                          .shape = shape};
  struct DLManagedTensorVersioned* m;
  assert_ok(pestle_dlpack_allocate(f->context, &like, &m));
  assert_int_equal(m->dl_tensor.device.device_id, 1);
  assert_ok(f->backend->device->copy_from_host(f->backend->self, 1, numbers,
                                               m->dl_tensor.data, 12));
  m->deleter(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_stays_there),
      cmocka_unit_test(test_dirty_booleans),
      cmocka_unit_test(test_copies_by_the_host),
      cmocka_unit_test(test_between_devices),
      cmocka_unit_test(test_export),
      cmocka_unit_test(test_allocate),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
