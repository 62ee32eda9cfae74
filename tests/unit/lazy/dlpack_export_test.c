// SPDX-License-Identifier: Apache-2.0
// Arrays as tensors of other libraries: both structs, every dtype, what is said of
// memory that is shared, copies, who frees what; and back again.
#include <pthread.h>

#include "dlpack/zoo.h"
#include "pestle/pestle.h"

typedef struct fixture_t {
  pestle_context_t* context;
  pestle_device_t *device, *ref;
} fixture_t;

static int setup(void** state) {
  static fixture_t f;
  pestle_context_options_t options = {
      .struct_size = sizeof(options), .use_environment = true, .threads = 2};
  assert_ok(pestle_context_create(&options, &f.context));
  assert_ok(pestle_context_device(f.context, "cpu", &f.device));
  assert_ok(pestle_context_device(f.context, "ref", &f.ref));
  *state = &f;
  return 0;
}

static int teardown(void** state) {
  fixture_t* f = *state;
  pestle_context_release(f->context);
  return 0;
}

static const pestle_type_t f32x3x4 = {PESTLE_F32, 2, {3, 4}};
static const float numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static pestle_array_t* make(const fixture_t* f) {
  pestle_array_t* array;
  assert_ok(pestle_array_from_data(f->device, &f32x3x4, numbers, &array));
  return array;
}

static pestle_dlpack_export_options_t options_of(int32_t copy, uint32_t minor) {
  return (pestle_dlpack_export_options_t){
      .struct_size = sizeof(pestle_dlpack_export_options_t),
      .copy = copy,
      .max_major = 1,
      .max_minor = minor};
}

static const void* first_of(const pestle_tensor_t* t) {
  return (const char*)t->data + t->byte_offset;
}

// --- What is said ---

static void test_a_result(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *x = make(f), *y;
  assert_ok(pestle_array_negate(x, &y));
  struct DLManagedTensorVersioned* m;
  assert_ok(pestle_array_export(y, NULL, &m));
  assert_int_equal(m->version.major, 1);
  assert_int_equal(m->version.minor, 3);
  assert_int_equal(m->flags, 0);
  const pestle_tensor_t* t = &m->dl_tensor;
  assert_int_equal(t->device.device_type, PESTLE_DL_CPU);
  assert_int_equal(t->device.device_id, 0);
  assert_int_equal(t->ndim, 2);
  assert_int_equal(t->dtype.code, PESTLE_DL_FLOAT);
  assert_int_equal(t->dtype.bits, 32);
  assert_int_equal(t->dtype.lanes, 1);
  assert_int_equal(t->shape[0], 3);
  assert_int_equal(t->shape[1], 4);
  assert_int_equal(t->strides[0], 4);
  assert_int_equal(t->strides[1], 1);
  assert_ptr_equal(first_of(t), pestle_buffer_data(pestle_array_storage(y)));
  assert_true(((const float*)first_of(t))[11] == -11);
  // The memory outlives the array.
  pestle_array_release(y);
  assert_true(((const float*)first_of(t))[11] == -11);
  m->deleter(m);
  pestle_array_release(x);
}

static uint64_t flags_of(pestle_array_t* array) {
  struct DLManagedTensorVersioned* m;
  assert_ok(pestle_array_export(array, NULL, &m));
  uint64_t flags = m->flags;
  m->deleter(m);
  return flags;
}

static bool legacy_shares(pestle_array_t* array) {
  struct DLManagedTensor* m;
  assert_ok(pestle_array_export_legacy(array, NULL, &m));
  const char* data = pestle_buffer_data(pestle_array_storage(array));
  const char* first = first_of(&m->dl_tensor);
  bool shares = first >= data &&
                first < data + pestle_buffer_size(pestle_array_storage(array));
  m->deleter(m);
  return shares;
}

// Read-only exactly while anything else refers to the memory.
static void test_shared_memory_is_read_only(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *x = make(f), *view, *node, *base;
  assert_int_equal(flags_of(x), 0);
  assert_true(legacy_shares(x));
  // Another array.
  pestle_transpose_attrs_t attrs = {.struct_size = sizeof(attrs),
                                    .permutation = PESTLE_I64S(1, 0)};
  assert_ok(pestle_array_transpose(x, &attrs, &view));
  assert_int_equal(flags_of(x), PESTLE_DL_READ_ONLY);
  assert_int_equal(flags_of(view), PESTLE_DL_READ_ONLY);
  assert_false(legacy_shares(x));
  assert_false(legacy_shares(view));
  pestle_array_release(view);
  assert_int_equal(flags_of(x), 0);
  // An operation that is not evaluated.
  assert_ok(pestle_array_negate(x, &node));
  assert_int_equal(flags_of(x), PESTLE_DL_READ_ONLY);
  assert_ok(pestle_array_wait(node));
  assert_int_equal(flags_of(x), 0);
  pestle_array_release(node);
  // A second handle.
  pestle_array_retain(x);
  assert_int_equal(flags_of(x), PESTLE_DL_READ_ONLY);
  pestle_array_release(x);
  // Another export.
  struct DLManagedTensorVersioned* m;
  assert_ok(pestle_array_export(x, NULL, &m));
  assert_int_equal(flags_of(x), PESTLE_DL_READ_ONLY);
  m->deleter(m);
  assert_int_equal(flags_of(x), 0);
  assert_ok(pestle_array_base(x, &base));
  assert_int_equal(flags_of(x), PESTLE_DL_READ_ONLY);
  pestle_array_release(x);
  assert_int_equal(flags_of(base), 0);
  pestle_array_release(base);
}

static void test_read_only_memory_stays_so(void** state) {
  const fixture_t* f = *state;
  static const uint64_t flags[] = {0, PESTLE_DL_READ_ONLY};
  for (int i = 0; i < 2; ++i) {
    zoo_spec_t spec = {.dtype = {PESTLE_DL_FLOAT, 32, 1},
                       .ndim = 1,
                       .shape = {12},
                       .strides = (int64_t[]){1},
                       .data = numbers,
                       .bytes = 48,
                       .flags = flags[i]};
    zoo_t z;
    pestle_array_t* array;
    zoo_make(&spec, &z);
    assert_ok(pestle_array_import(f->context, &z.versioned, NULL, &array));
    struct DLManagedTensorVersioned* m;
    assert_ok(pestle_array_export(array, NULL, &m));
    assert_int_equal(m->flags, flags[i]);
    assert_ptr_equal(first_of(&m->dl_tensor), z.memory);
    pestle_array_release(array);
    assert_int_equal(zoo_ended(&z), 0);
    m->deleter(m);
    assert_int_equal(zoo_ended(&z), 1);
    zoo_free(&z);
  }
}

static void test_repeated_elements_are_read_only(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *x = make(f), *wide;
  pestle_type_t type = {PESTLE_F32, 3, {2, 3, 4}};
  pestle_broadcast_in_dim_attrs_t attrs = {
      .struct_size = sizeof(attrs), .broadcast_dimensions = PESTLE_I64S(1, 2)};
  assert_ok(pestle_array_broadcast_in_dim(x, &attrs, type, &wide));
  pestle_array_release(x);
  struct DLManagedTensorVersioned* m;
  assert_ok(pestle_array_export(wide, NULL, &m));
  assert_int_equal(m->flags, PESTLE_DL_READ_ONLY);
  assert_int_equal(m->dl_tensor.strides[0], 0);
  m->deleter(m);
  assert_false(legacy_shares(wide));
  pestle_array_release(wide);
}

// --- Copies ---

static void test_copies(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *x = make(f), *view;
  pestle_transpose_attrs_t attrs = {.struct_size = sizeof(attrs),
                                    .permutation = PESTLE_I64S(1, 0)};
  assert_ok(pestle_array_transpose(x, &attrs, &view));
  pestle_dlpack_export_options_t always = options_of(PESTLE_COPY_ALWAYS, 3);
  struct DLManagedTensorVersioned* m;
  assert_ok(pestle_array_export(view, &always, &m));
  assert_int_equal(m->flags, PESTLE_DL_IS_COPIED);
  assert_int_equal(m->dl_tensor.strides[0], 3);
  const float* data = first_of(&m->dl_tensor);
  assert_true(data[0] == 0 && data[1] == 4 && data[3] == 1 && data[11] == 11);
  // It is the consumer's to write.
  memset((void*)(uintptr_t)data, 0, 48);
  float values[12];
  assert_ok(pestle_array_read(x, values, 48));
  assert_memory_equal(values, numbers, 48);
  m->deleter(m);
  pestle_dlpack_export_options_t never = options_of(PESTLE_COPY_NEVER, 3);
  assert_ok(pestle_array_export(view, &never, &m));
  assert_int_equal(m->dl_tensor.strides[0], 1);
  assert_int_equal(m->dl_tensor.strides[1], 4);
  m->deleter(m);
  struct DLManagedTensor* old;
  assert_error(pestle_array_export_legacy(view, &never, &old), UNSUPPORTED,
               "must not be written to");
  assert_null(old);
  // Another device, even one that has the same memory, is a copy.
  never.device = f->ref == f->device ? NULL : f->ref;
  if (never.device) {
    assert_error(pestle_array_export(view, &never, &m), UNSUPPORTED,
                 "another device");
  }
  pestle_array_release(x);
  pestle_array_release(view);
}

// --- Dtypes ---

static void test_every_dtype(void** state) {
  const fixture_t* f = *state;
  for (unsigned d = 0; d < PESTLE_DTYPE_COUNT; ++d) {
    pestle_dtype_t dtype = (pestle_dtype_t)d;
    if (!pestle_dtype_is_stored(dtype)) continue;
    unsigned char bytes[5 * 16], back[5 * 16];
    size_t size = 5 * pestle_dtype_size(dtype);
    for (size_t i = 0; i < size; ++i) {
      bytes[i] = (unsigned char)(dtype == PESTLE_I1 ? i % 2 : 37 * i + 5);
      bytes[i] = pestle_dtype_extend(dtype, bytes[i]);
    }
    pestle_type_t type = {dtype, 1, {5}};
    bool small = pestle_dtype_is_sub_byte(dtype);
    pestle_array_t *x, *y;
    for (uint32_t minor = 0; minor < 4; ++minor) {
      pestle_dlpack_export_options_t options =
          options_of(PESTLE_COPY_IF_NEEDED, minor);
      struct DLManagedTensorVersioned* m;
      assert_ok(pestle_array_from_data(f->device, &type, bytes, &x));
      assert_ok(pestle_array_export(x, &options, &m));
      uint64_t expected = !small  ? 0
                          : minor ? PESTLE_DL_IS_PADDED
                                  : PESTLE_DL_IS_COPIED;
      assert_int_equal(m->flags, expected);
      pestle_dl_dtype_t dl = pestle_dtype_to_dlpack(dtype);
      assert_memory_equal(&m->dl_tensor.dtype, &dl, sizeof(dl));
      // Through another context it is memory like any.
      pestle_context_t* other;
      assert_ok(pestle_context_create(NULL, &other));
      pestle_array_release(x);
      assert_ok(pestle_array_import(other, m, NULL, &y));
      assert_ok(pestle_array_read(y, back, size));
      assert_memory_equal(back, bytes, size);
      pestle_array_release(y);
      pestle_context_release(other);
      options.copy = PESTLE_COPY_NEVER;
      if (!small || minor) continue;
      assert_ok(pestle_array_from_data(f->device, &type, bytes, &x));
      assert_error(pestle_array_export(x, &options, &m), UNSUPPORTED,
                   "only if packed");
      pestle_array_release(x);
    }
    struct DLManagedTensor* old;
    assert_ok(pestle_array_from_data(f->device, &type, bytes, &x));
    assert_ok(pestle_array_export_legacy(x, NULL, &old));
    pestle_array_release(x);
    assert_ok(pestle_array_import_legacy(f->context, old, NULL, &y));
    assert_ok(pestle_array_read(y, back, size));
    assert_memory_equal(back, bytes, size);
    pestle_array_release(y);
  }
}

static void test_packed_bits(void** state) {
  const fixture_t* f = *state;
  static const struct {
    pestle_dtype_t dtype;
    unsigned char bytes[5], packed[4];
    size_t size;
  } rows[] = {
      {PESTLE_I2, {0, 1, 0xfe, 0xff, 1}, {0xe4, 0x01}, 2},
      {PESTLE_U4, {0, 8, 15, 7, 1}, {0x80, 0x7f, 0x01}, 3},
      {PESTLE_I4, {0, 0xf8, 0xff, 7, 1}, {0x80, 0x7f, 0x01}, 3},
      {PESTLE_F6E2M3FN, {0, 63, 1, 32, 5}, {0xc0, 0x1f, 0x80, 0x05}, 4},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    pestle_type_t type = {rows[i].dtype, 1, {5}};
    pestle_array_t* x;
    struct DLManagedTensor* m;
    assert_ok(pestle_array_from_data(f->device, &type, rows[i].bytes, &x));
    assert_ok(pestle_array_export_legacy(x, NULL, &m));
    assert_memory_equal(first_of(&m->dl_tensor), rows[i].packed, rows[i].size);
    m->deleter(m);
    pestle_array_release(x);
  }
}

// --- Shapes ---

static void test_views_and_nothing(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *x = make(f), *slice, *empty, *scalar;
  pestle_slice_attrs_t attrs = {.struct_size = sizeof(attrs),
                                .start_indices = PESTLE_I64S(1, 1),
                                .limit_indices = PESTLE_I64S(3, 4),
                                .strides = PESTLE_I64S(1, 2)};
  assert_ok(pestle_array_slice(x, &attrs, &slice));
  pestle_array_release(x);
  struct DLManagedTensorVersioned* m;
  assert_ok(pestle_array_export(slice, NULL, &m));
  assert_int_equal(m->flags, 0);
  assert_int_equal(m->dl_tensor.strides[0], 4);
  assert_int_equal(m->dl_tensor.strides[1], 2);
  assert_true(*(const float*)first_of(&m->dl_tensor) == 5);
  m->deleter(m);
  pestle_array_release(slice);
  pestle_type_t none = {PESTLE_F32, 2, {0, 4}}, one = {PESTLE_F32, 0, {0}};
  assert_ok(pestle_array_empty(f->device, &none, &empty));
  assert_ok(pestle_array_export(empty, NULL, &m));
  assert_null(m->dl_tensor.data);
  assert_int_equal(m->dl_tensor.byte_offset, 0);
  assert_non_null(m->dl_tensor.strides);
  // And back again.
  pestle_array_t* back;
  assert_ok(pestle_array_import(f->context, m, NULL, &back));
  assert_int_equal(pestle_array_type(back).dims[1], 4);
  pestle_array_release(back);
  pestle_array_release(empty);
  assert_ok(pestle_array_from_data(f->device, &one, numbers + 7, &scalar));
  assert_ok(pestle_array_export(scalar, NULL, &m));
  assert_int_equal(m->dl_tensor.ndim, 0);
  assert_true(*(const float*)first_of(&m->dl_tensor) == 7);
  m->deleter(m);
  pestle_array_release(scalar);
}

// --- Versions, order ---

static void test_refusals(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *x = make(f), *argument;
  pestle_dlpack_export_options_t options = options_of(PESTLE_COPY_IF_NEEDED, 0);
  struct DLManagedTensorVersioned* m;
  options.max_major = 0;
  options.max_minor = 8;
  assert_error(pestle_array_export(x, &options, &m), INCOMPATIBLE,
               "needs the older struct");
  options.max_major = 2;
  options.max_minor = 0;
  assert_ok(pestle_array_export(x, &options, &m));
  assert_int_equal(m->version.major, 1);
  m->deleter(m);
  options.order = PESTLE_DLPACK_STREAM;
  assert_error(pestle_array_export(x, &options, &m), INVALID_ARGUMENT,
               "has no streams");
  options.order = 3;
  assert_code(pestle_array_export(x, &options, &m), INVALID_ARGUMENT);
  options.order = PESTLE_DLPACK_NONE;
  assert_ok(pestle_array_export(x, &options, &m));
  m->deleter(m);
  options.struct_size = 0;
  assert_code(pestle_array_export(x, &options, &m), INVALID_ARGUMENT);
  assert_code(pestle_array_export(NULL, NULL, &m), INVALID_ARGUMENT);
  assert_code(pestle_array_export(x, NULL, NULL), INVALID_ARGUMENT);
  pestle_capture_t* capture;
  assert_ok(pestle_capture_begin(f->device, &f32x3x4, 1, &capture, &argument));
  struct DLManagedTensor* old;
  pestle_tensor_t lent;
  assert_error(pestle_array_export(argument, NULL, &m), INVALID_ARGUMENT,
               "traced array");
  assert_error(pestle_array_export_legacy(argument, NULL, &old),
               INVALID_ARGUMENT, "traced array");
  assert_error(pestle_array_borrow(argument, &lent), INVALID_ARGUMENT,
               "traced array");
  pestle_array_release(argument);
  pestle_capture_release(capture);
  pestle_array_release(x);
}

// A run that is under way is waited for, unless the consumer sees to it.
static void test_pending(void** state) {
  const fixture_t* f = *state;
  pestle_stream_t* stream;
  assert_ok(pestle_stream_create(f->device, &stream));
  for (int i = 0; i < 50; ++i) {
    pestle_array_t *x = make(f), *y;
    assert_ok(pestle_array_exponential(x, &y));
    assert_ok(pestle_array_eval_async(&y, 1, stream));
    struct DLManagedTensorVersioned* m;
    assert_ok(pestle_array_export(y, NULL, &m));
    assert_true(*(const float*)first_of(&m->dl_tensor) == 1);
    m->deleter(m);
    pestle_array_release(x);
    pestle_array_release(y);
  }
  pestle_stream_release(stream);
}

// --- Round trips ---

static void test_round_trip_is_the_same_memory(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *x = make(f), *y;
  struct DLManagedTensorVersioned* m;
  assert_ok(pestle_array_export(x, NULL, &m));
  assert_ok(pestle_array_import(f->context, m, NULL, &y));
  assert_ptr_equal(pestle_array_storage(x), pestle_array_storage(y));
  pestle_array_release(x);
  // Nobody else has it now: it is used again.
  pestle_buffer_t* storage = pestle_array_storage(y);
  pestle_array_t* z;
  assert_ok(pestle_array_add(y, y, &z));
  pestle_array_release(y);
  assert_ok(pestle_array_wait(z));
  assert_ptr_equal(pestle_array_storage(z), storage);
  pestle_array_release(z);
}

static void test_export_outlives_the_context(void** state) {
  (void)state;
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 0);
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .allocator = pestle_test_allocator(&memory),
      .cache_dir = "",
      .threads = 1};
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_array_t* x;
  struct DLManagedTensorVersioned* m;
  struct DLManagedTensor* old;
  assert_ok(pestle_context_create(&options, &context));
  assert_ok(pestle_context_device(context, "ref", &device));
  assert_ok(pestle_array_from_data(device, &f32x3x4, numbers, &x));
  assert_ok(pestle_array_export_legacy(x, NULL, &old));
  assert_ok(pestle_array_export(x, NULL, &m));
  pestle_array_release(x);
  pestle_context_release(context);
  assert_memory_equal(first_of(&m->dl_tensor), numbers, 48);
  m->deleter(m);
  assert_memory_equal(first_of(&old->dl_tensor), numbers, 48);
  old->deleter(old);
  pestle_test_allocator_check(&memory);
}

// --- Lending ---

static void test_borrow(void** state) {
  const fixture_t* f = *state;
  pestle_array_t *x = make(f), *y, *view;
  pestle_tensor_t t, again;
  assert_ok(pestle_array_negate(x, &y));
  assert_ok(pestle_array_borrow(y, &t));
  assert_int_equal(t.ndim, 2);
  assert_int_equal(t.strides[0], 4);
  assert_int_equal(t.strides[1], 1);
  assert_int_equal(t.shape[0], 3);
  assert_true(((const float*)first_of(&t))[3] == -3);
  assert_ok(pestle_array_borrow(y, &again));
  assert_ptr_equal(t.strides, again.strides);
  pestle_transpose_attrs_t attrs = {.struct_size = sizeof(attrs),
                                    .permutation = PESTLE_I64S(1, 0)};
  assert_ok(pestle_array_transpose(y, &attrs, &view));
  assert_ok(pestle_array_borrow(view, &t));
  assert_int_equal(t.strides[0], 1);
  assert_int_equal(t.strides[1], 4);
  pestle_array_release(x);
  pestle_array_release(y);
  pestle_array_release(view);
  pestle_type_t one = {PESTLE_F32, 0, {0}};
  assert_ok(pestle_array_from_data(f->device, &one, numbers + 7, &x));
  assert_ok(pestle_array_borrow(x, &t));
  assert_null(t.strides);
  assert_null(t.shape);
  pestle_array_release(x);
}

// --- New memory ---

static void test_allocate(void** state) {
  const fixture_t* f = *state;
  int64_t shape[] = {3, 5};
  pestle_tensor_t like = {.device = {PESTLE_DL_CPU, 0},
                          .ndim = 2,
                          .dtype = {PESTLE_DL_FLOAT, 64, 1},
                          .shape = shape};
  struct DLManagedTensorVersioned* m;
  assert_ok(pestle_dlpack_allocate(f->context, &like, &m));
  assert_int_equal(m->flags, 0);
  assert_int_equal((uintptr_t)first_of(&m->dl_tensor) % 64, 0);
  assert_int_equal(m->dl_tensor.strides[0], 5);
  memset((void*)(uintptr_t)first_of(&m->dl_tensor), 7, 15 * 8);
  m->deleter(m);
  like.dtype = (pestle_dl_dtype_t){PESTLE_DL_UINT, 4, 1};
  assert_ok(pestle_dlpack_allocate(f->context, &like, &m));
  assert_int_equal(m->flags, PESTLE_DL_IS_PADDED);
  m->deleter(m);
  shape[1] = 0;
  assert_ok(pestle_dlpack_allocate(f->context, &like, &m));
  assert_null(m->dl_tensor.data);
  m->deleter(m);
  shape[1] = -1;
  assert_code(pestle_dlpack_allocate(f->context, &like, &m), MALFORMED);
  shape[1] = INT64_C(1) << 60;
  assert_code(pestle_dlpack_allocate(f->context, &like, &m), OUT_OF_MEMORY);
  like.device.device_type = PESTLE_DL_TRN;
  assert_code(pestle_dlpack_allocate(f->context, &like, &m), NOT_FOUND);
  like.dtype.bits = 3;
  assert_code(pestle_dlpack_allocate(f->context, &like, &m), UNSUPPORTED);
}

static void test_buffers(void** state) {
  const fixture_t* f = *state;
  pestle_buffer_t* buffer;
  assert_ok(pestle_buffer_create(f->device, 48, &buffer));
  assert_ok(pestle_buffer_write(buffer, 0, numbers, 48));
  pestle_layout_t layout = {.dtype = PESTLE_F32,
                            .rank = 2,
                            .byte_offset = 40,
                            .dims = {2, 2},
                            .strides = {-4, -1}};
  struct DLManagedTensorVersioned* m;
  assert_ok(
      pestle_buffer_export(buffer, &layout, PESTLE_DL_READ_ONLY, NULL, &m));
  assert_int_equal(m->flags, PESTLE_DL_READ_ONLY);
  assert_true(*(const float*)first_of(&m->dl_tensor) == 10);
  m->deleter(m);
  static const pestle_layout_t wrong[] = {
      {PESTLE_F32, 1, 0, {13}, {1}},
      {PESTLE_F32, 1, 4, {12}, {1}},
      {PESTLE_F32, 1, 40, {12}, {-1}},
      {PESTLE_F32, 1, 0, {-1}, {1}},
      {PESTLE_F32, 1, UINT64_MAX, {1}, {1}},
      {PESTLE_F32, 2, 0, {2, 2}, {INT64_MAX, INT64_MIN}},
      {PESTLE_F32, 17, 0, {1}, {1}},
      {PESTLE_F32, -1, 0, {1}, {1}},
      {PESTLE_NONE, 1, 0, {1}, {1}},
  };
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    assert_error(pestle_buffer_export(buffer, &wrong[i], 0, NULL, &m),
                 INVALID_ARGUMENT, "leads out of its buffer");
  }
  pestle_buffer_release(buffer);
}

// --- Threads ---

// Exports of one array are ended by other threads, imports in one and used in
// others.
static void* trade(void* argument) {
  const fixture_t* f = argument;
  pestle_array_t* x = make(f);
  for (int i = 0; i < 200; ++i) {
    struct DLManagedTensorVersioned *m, *two;
    pestle_array_t *y, *z;
    assert_ok(pestle_array_export(x, NULL, &m));
    assert_ok(pestle_array_export(x, NULL, &two));
    assert_ok(pestle_array_import(f->context, m, NULL, &y));
    assert_ok(pestle_array_add(y, x, &z));
    float values[12];
    assert_ok(pestle_array_read(z, values, 48));
    assert_true(values[11] == 22);
    pestle_array_release(y);
    pestle_array_release(z);
    two->deleter(two);
  }
  pestle_array_release(x);
  return NULL;
}

static void* end(void* argument) {
  struct DLManagedTensorVersioned* m = argument;
  m->deleter(m);
  return NULL;
}

static void test_threads(void** state) {
  fixture_t* f = *state;
  enum { COUNT = 8 };
  pthread_t threads[COUNT];
  for (int i = 0; i < COUNT; ++i)
    assert_int_equal(pthread_create(&threads[i], NULL, trade, f), 0);
  for (int i = 0; i < COUNT; ++i)
    pthread_join(threads[i], NULL);
  pestle_array_t* x = make(f);
  for (int i = 0; i < COUNT; ++i) {
    struct DLManagedTensorVersioned* m;
    assert_ok(pestle_array_export(x, NULL, &m));
    assert_int_equal(pthread_create(&threads[i], NULL, end, m), 0);
  }
  for (int i = 0; i < COUNT; ++i)
    pthread_join(threads[i], NULL);
  assert_int_equal(flags_of(x), 0);
  pestle_array_release(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_result),
      cmocka_unit_test(test_shared_memory_is_read_only),
      cmocka_unit_test(test_read_only_memory_stays_so),
      cmocka_unit_test(test_repeated_elements_are_read_only),
      cmocka_unit_test(test_copies),
      cmocka_unit_test(test_every_dtype),
      cmocka_unit_test(test_packed_bits),
      cmocka_unit_test(test_views_and_nothing),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_pending),
      cmocka_unit_test(test_round_trip_is_the_same_memory),
      cmocka_unit_test(test_export_outlives_the_context),
      cmocka_unit_test(test_borrow),
      cmocka_unit_test(test_allocate),
      cmocka_unit_test(test_buffers),
      cmocka_unit_test(test_threads),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
