// SPDX-License-Identifier: Apache-2.0
// Tensors of other libraries on the host: every dtype, version, flag and layout; what
// is refused, and that a deleter is called once or, on a failure, never.
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

static const pestle_dl_dtype_t f32 = {PESTLE_DL_FLOAT, 32, 1};
static const float numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static pestle_dlpack_import_options_t copying(int32_t copy) {
  return (pestle_dlpack_import_options_t){
      .struct_size = sizeof(pestle_dlpack_import_options_t), .copy = copy};
}

// Imports both structs of |spec|, which are equal to an importer that knows that
// the older one has no flags.
static void import_both(const fixture_t* f, const zoo_spec_t* spec,
                        const pestle_dlpack_import_options_t* options,
                        void (*check)(const fixture_t*, pestle_array_t*,
                                      const void*),
                        const void* user, bool zero_copy) {
  for (int legacy = 0; legacy < 2; ++legacy) {
    zoo_t z;
    pestle_array_t* array;
    zoo_make(spec, &z);
    assert_ok(
        legacy
            ? pestle_array_import_legacy(f->context, &z.legacy, options, &array)
            : pestle_array_import(f->context, &z.versioned, options, &array));
    assert_int_equal(zoo_ended(&z), zero_copy ? 0 : 1);
    check(f, array, user);
    const char* data = pestle_buffer_data(pestle_array_storage(array));
    bool inside = data >= z.memory && data < z.memory + z.size;
    if (spec->bytes) assert_int_equal(inside, zero_copy);
    pestle_array_release(array);
    assert_int_equal(zoo_ended(&z), spec->no_deleter ? 0 : 1);
    zoo_free(&z);
  }
}

typedef struct expected_t {
  pestle_type_t type;
  const void* data;
} expected_t;

static void check_bytes(const fixture_t* f, pestle_array_t* array,
                        const void* user) {
  const expected_t* e = user;
  char bytes[4096];
  (void)f;
  pestle_type_t type = pestle_array_type(array);
  size_t size = pestle_dtype_size(type.dtype);
  assert_int_equal(type.dtype, e->type.dtype);
  assert_int_equal(type.rank, e->type.rank);
  for (int i = 0; i < type.rank; ++i) {
    assert_int_equal(type.dims[i], e->type.dims[i]);
    size *= (size_t)type.dims[i];
  }
  assert_ok(pestle_array_read(array, bytes, size));
  if (size) assert_memory_equal(bytes, e->data, size);
}

static void check_import(const fixture_t* f, const zoo_spec_t* spec,
                         const pestle_type_t* type, const void* data,
                         bool zero_copy) {
  expected_t e = {*type, data};
  import_both(f, spec, NULL, check_bytes, &e, zero_copy);
}

// Both structs are refused, and stay the caller's.
static void check_refused(const fixture_t* f, const zoo_spec_t* spec,
                          const pestle_dlpack_import_options_t* options,
                          pestle_status_code_t code, const char* text,
                          bool legacy_too) {
  for (int legacy = 0; legacy < 1 + legacy_too; ++legacy) {
    zoo_t z;
    pestle_array_t* array;
    zoo_make(spec, &z);
    pestle_status_t status =
        legacy
            ? pestle_array_import_legacy(f->context, &z.legacy, options, &array)
            : pestle_array_import(f->context, &z.versioned, options, &array);
    pestle_test_assert_code_(status, code, text, __FILE__, __LINE__);
    assert_null(array);
    assert_int_equal(zoo_ended(&z), 0);
    if (z.memory)
      assert_memory_equal(z.memory + spec->shift, spec->data, spec->bytes);
    zoo_free(&z);
  }
}
#define assert_refused(f, spec, code, text) \
  check_refused(f, spec, NULL, PESTLE_STATUS_##code, text, true)

// --- Dtypes ---

static void test_every_dtype(void** state) {
  const fixture_t* f = *state;
  for (unsigned d = 0; d < PESTLE_DTYPE_COUNT; ++d) {
    pestle_dtype_t dtype = (pestle_dtype_t)d;
    if (!pestle_dtype_is_stored(dtype)) continue;
    if (pestle_dtype_is_sub_byte(dtype)) continue;  // below
    unsigned char bytes[6 * 16] = {0};
    size_t size = 6 * pestle_dtype_size(dtype);
    for (size_t i = 0; i < size; ++i)
      bytes[i] = (unsigned char)(dtype == PESTLE_I1 ? i % 2 : 17 * i);
    zoo_spec_t spec = {.dtype = pestle_dtype_to_dlpack(dtype),
                       .ndim = 2,
                       .shape = {2, 3},
                       .strides = (int64_t[]){3, 1},
                       .data = bytes,
                       .bytes = size};
    pestle_type_t type = {dtype, 2, {2, 3}};
    check_import(f, &spec, &type, bytes, true);
    // Lanes are one more axis.
    spec.dtype.lanes = 3;
    spec.ndim = 1;
    spec.strides = (int64_t[]){1};
    check_import(f, &spec, &type, bytes, true);
    spec.strides = (int64_t[]){-1};
    spec.data = bytes;
    pestle_type_t one = {dtype, 2, {1, 3}};
    spec.shape[0] = 1;
    check_import(f, &spec, &one, bytes, true);
  }
}

static void test_small_elements(void** state) {
  const fixture_t* f = *state;
  static const struct {
    pestle_dtype_t dtype;
    unsigned char packed[4], bytes[5];
  } rows[] = {
      {PESTLE_I2, {0xe4, 0x01}, {0, 1, 0xfe, 0xff, 1}},
      {PESTLE_U2, {0xe4, 0x01}, {0, 1, 2, 3, 1}},
      {PESTLE_I4, {0x80, 0x7f, 0x01}, {0, 0xf8, 0xff, 7, 1}},
      {PESTLE_U4, {0x80, 0x7f, 0x01}, {0, 8, 15, 7, 1}},
      {PESTLE_F4E2M1FN, {0x80, 0x7f, 0x01}, {0, 8, 15, 7, 1}},
      // 0, 63, 1, 32, 5: 000000 111111 000001 100000 000101.
      {PESTLE_F6E2M3FN, {0xc0, 0x1f, 0x80, 0x05}, {0, 63, 1, 32, 5}},
      {PESTLE_F6E3M2FN, {0xc0, 0x1f, 0x80, 0x05}, {0, 63, 1, 32, 5}},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    pestle_type_t type = {rows[i].dtype, 1, {5}};
    zoo_spec_t spec = {.dtype = pestle_dtype_to_dlpack(rows[i].dtype),
                       .ndim = 1,
                       .shape = {5},
                       .strides = (int64_t[]){1},
                       .data = rows[i].packed,
                       .bytes = 4};
    check_import(f, &spec, &type, rows[i].bytes, false);
    pestle_dlpack_import_options_t never = copying(PESTLE_COPY_NEVER);
    check_refused(f, &spec, &never, PESTLE_STATUS_UNSUPPORTED, "are packed",
                  true);
    spec.strides = (int64_t[]){2};
    assert_refused(f, &spec, UNSUPPORTED, "packed elements");
    // Padded ones stay where they are; the older struct knows none.
    spec = (zoo_spec_t){.dtype = spec.dtype,
                        .ndim = 1,
                        .shape = {5},
                        .strides = (int64_t[]){1},
                        .data = rows[i].bytes,
                        .bytes = 5,
                        .flags = PESTLE_DL_IS_PADDED};
    zoo_t z;
    pestle_array_t* array;
    expected_t e = {type, rows[i].bytes};
    zoo_make(&spec, &z);
    assert_ok(pestle_array_import(f->context, &z.versioned, &never, &array));
    check_bytes(f, array, &e);
    assert_int_equal(zoo_ended(&z), 0);
    pestle_array_release(array);
    assert_int_equal(zoo_ended(&z), 1);
    zoo_free(&z);
    // Bits of another number of bits are no dtype of Pestle's.
    spec.dtype.bits = 5;
    assert_refused(f, &spec, UNSUPPORTED, "5 bits");
  }
}

// Packed pairs: torch's float4_e2m1fn_x2.
static void test_packed_lanes(void** state) {
  const fixture_t* f = *state;
  zoo_spec_t spec = {.dtype = {PESTLE_DL_FLOAT4_E2M1FN, 4, 2},
                     .ndim = 2,
                     .shape = {2, 2},
                     .strides = (int64_t[]){2, 1},
                     .data = "\x10\x32\x54\x76",
                     .bytes = 4};
  pestle_type_t type = {PESTLE_F4E2M1FN, 3, {2, 2, 2}};
  check_import(f, &spec, &type, "\0\1\2\3\4\5\6\7", false);
}

static void test_unknown_dtypes(void** state) {
  const fixture_t* f = *state;
  static const pestle_dl_dtype_t dtypes[] = {
      {PESTLE_DL_OPAQUE_HANDLE, 64, 1},
      {18, 8, 1},
      {PESTLE_DL_INT, 128, 1},
      {PESTLE_DL_BOOL, 1, 1},
      {PESTLE_DL_FLOAT, 32, 0},
      {PESTLE_DL_FLOAT8_E4M3FN, 16, 1},
      {255, 255, 65535},
  };
  for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); ++i) {
    zoo_spec_t spec = {.dtype = dtypes[i],
                       .ndim = 1,
                       .shape = {3},
                       .strides = (int64_t[]){1},
                       .data = numbers,
                       .bytes = 48};
    char text[64];
    snprintf(text, sizeof(text), "code %u, %u bits, %u lanes", dtypes[i].code,
             dtypes[i].bits, dtypes[i].lanes);
    assert_refused(f, &spec, UNSUPPORTED, text);
  }
}

// --- Values that kernels must not meet ---

static void test_dirty_booleans(void** state) {
  const fixture_t* f = *state;
  pestle_type_t type = {PESTLE_I1, 1, {4}};
  zoo_spec_t spec = {.dtype = {PESTLE_DL_BOOL, 8, 1},
                     .ndim = 1,
                     .shape = {4},
                     .strides = (int64_t[]){1},
                     .data = "\0\1\2\xff",
                     .bytes = 4};
  check_import(f, &spec, &type, "\0\1\1\1", false);
  // Only what the tensor sees is looked at.
  spec.shape[0] = 2;
  type.dims[0] = 2;
  check_import(f, &spec, &type, "\0\1", true);
  spec.strides = (int64_t[]){2};
  check_import(f, &spec, &type, "\0\1", false);
  spec.data = "\0\7\1\7";
  check_import(f, &spec, &type, "\0\1", true);
  spec.strides = (int64_t[]){1};
  pestle_dlpack_import_options_t never = copying(PESTLE_COPY_NEVER);
  check_refused(f, &spec, &never, PESTLE_STATUS_UNSUPPORTED, "neither 0 nor 1",
                true);
  never.trusted = true;
  zoo_t z;
  pestle_array_t* array;
  zoo_make(&spec, &z);
  assert_ok(pestle_array_import(f->context, &z.versioned, &never, &array));
  pestle_array_release(array);
  assert_int_equal(zoo_ended(&z), 1);
  zoo_free(&z);
}

static void test_dirty_integers(void** state) {
  const fixture_t* f = *state;
  static const struct {
    pestle_dtype_t dtype;
    unsigned char bytes[3], clean[3];
  } rows[] = {{PESTLE_I4, {0x08, 0xf8, 0x17}, {0xf8, 0xf8, 7}},
              {PESTLE_U4, {0xf0, 15, 3}, {0, 15, 3}},
              {PESTLE_I2, {2, 1, 0xff}, {0xfe, 1, 0xff}},
              {PESTLE_U2, {4, 3, 2}, {0, 3, 2}}};
  for (size_t i = 0; i < 4; ++i) {
    zoo_spec_t spec = {.dtype = pestle_dtype_to_dlpack(rows[i].dtype),
                       .ndim = 1,
                       .shape = {3},
                       .strides = (int64_t[]){1},
                       .data = rows[i].bytes,
                       .bytes = 3,
                       .flags = PESTLE_DL_IS_PADDED};
    zoo_t z;
    pestle_array_t* array;
    expected_t e = {{rows[i].dtype, 1, {3}}, rows[i].clean};
    zoo_make(&spec, &z);
    assert_ok(pestle_array_import(f->context, &z.versioned, NULL, &array));
    assert_int_equal(zoo_ended(&z), 1);
    check_bytes(f, array, &e);
    pestle_array_release(array);
    zoo_free(&z);
  }
}

// --- Versions and flags ---

static void test_versions(void** state) {
  const fixture_t* f = *state;
  static const uint32_t minors[] = {0, 1, 2, 3, 4, 9, UINT32_MAX};
  for (size_t i = 0; i < sizeof(minors) / sizeof(minors[0]); ++i) {
    zoo_spec_t spec = {.dtype = f32,
                       .ndim = 1,
                       .shape = {12},
                       .strides = i % 2 ? (int64_t[]){1} : NULL,
                       .data = numbers,
                       .bytes = 48,
                       .major = 1,
                       .minor = minors[i]};
    pestle_type_t type = {PESTLE_F32, 1, {12}};
    check_import(f, &spec, &type, numbers, true);
  }
  // Of another major version nothing but the version is looked at.
  static const uint32_t majors[] = {0, 2, UINT32_MAX};
  for (size_t i = 0; i < 3; ++i) {
    zoo_spec_t spec = {.dtype = {99, 99, 99},
                       .ndim = -7,
                       .major = majors[i],
                       .minor = 9,
                       .flags = UINT64_MAX};
    check_refused(f, &spec, NULL, PESTLE_STATUS_INCOMPATIBLE,
                  "versions 1.x are understood", false);
  }
}

static void test_unknown_flags(void** state) {
  const fixture_t* f = *state;
  for (int bit = 3; bit < 64; ++bit) {
    zoo_spec_t spec = {.dtype = f32,
                       .ndim = 1,
                       .shape = {12},
                       .strides = (int64_t[]){1},
                       .data = numbers,
                       .bytes = 48,
                       .minor = 9,
                       .major = 1,
                       .flags = UINT64_C(1) << bit};
    char text[32];
    snprintf(text, sizeof(text), "flags 0x%llx",
             (unsigned long long)spec.flags);
    check_refused(f, &spec, NULL, PESTLE_STATUS_UNSUPPORTED, text, false);
  }
}

static uint32_t flags_of(const fixture_t* f, const zoo_spec_t* spec) {
  zoo_t z;
  pestle_array_t* array;
  zoo_make(spec, &z);
  assert_ok(pestle_array_import(f->context, &z.versioned, NULL, &array));
  uint32_t flags = pestle_buffer_flags(pestle_array_storage(array));
  pestle_array_release(array);
  assert_int_equal(zoo_ended(&z), 1);
  zoo_free(&z);
  return flags & ~(uint32_t)PESTLE_BUFFER_WRAPPED;
}

static void test_flags(void** state) {
  const fixture_t* f = *state;
  zoo_spec_t spec = {.dtype = f32,
                     .ndim = 2,
                     .shape = {3, 4},
                     .strides = (int64_t[]){4, 1},
                     .data = numbers,
                     .bytes = 48};
  assert_int_equal(flags_of(f, &spec), 0);
  spec.flags = PESTLE_DL_READ_ONLY;
  assert_int_equal(flags_of(f, &spec), PESTLE_BUFFER_READ_ONLY);
  spec.flags = PESTLE_DL_IS_COPIED;
  assert_int_equal(flags_of(f, &spec), PESTLE_BUFFER_EXCLUSIVE);
  spec.flags = PESTLE_DL_IS_COPIED | PESTLE_DL_READ_ONLY;
  assert_int_equal(flags_of(f, &spec), PESTLE_BUFFER_READ_ONLY);
  // The flag of small elements means nothing for others.
  spec.flags = PESTLE_DL_IS_PADDED;
  assert_int_equal(flags_of(f, &spec), 0);
  // Elements that overlap are nobody's to write.
  spec.flags = PESTLE_DL_IS_COPIED;
  spec.strides = (int64_t[]){0, 1};
  assert_int_equal(flags_of(f, &spec), PESTLE_BUFFER_READ_ONLY);
  spec.strides = (int64_t[]){2, 1};
  assert_int_equal(flags_of(f, &spec), PESTLE_BUFFER_READ_ONLY);
  spec.strides = (int64_t[]){1, 3};
  assert_int_equal(flags_of(f, &spec), PESTLE_BUFFER_EXCLUSIVE);
  spec.at = (pestle_dl_device_t){PESTLE_DL_CUDA_HOST, 0};
  assert_int_equal(flags_of(f, &spec),
                   PESTLE_BUFFER_EXCLUSIVE | PESTLE_BUFFER_PINNED);
  spec.at = (pestle_dl_device_t){PESTLE_DL_ROCM_HOST, 0};
  assert_int_equal(flags_of(f, &spec),
                   PESTLE_BUFFER_EXCLUSIVE | PESTLE_BUFFER_PINNED);
}

// Memory that is the consumer's alone is used again; what is shared or read-only
// never is.
static void test_memory_is_used_again_if_copied(void** state) {
  const fixture_t* f = *state;
  static const uint64_t flags[] = {0, PESTLE_DL_READ_ONLY, PESTLE_DL_IS_COPIED};
  for (size_t i = 0; i < 3; ++i) {
    zoo_spec_t spec = {.dtype = f32,
                       .ndim = 1,
                       .shape = {12},
                       .strides = (int64_t[]){1},
                       .data = numbers,
                       .bytes = 48,
                       .flags = flags[i]};
    zoo_t z;
    pestle_array_t *x, *y;
    float values[12];
    zoo_make(&spec, &z);
    assert_ok(pestle_array_import(f->context, &z.versioned, NULL, &x));
    assert_ok(pestle_array_add(x, x, &y));
    pestle_array_release(x);
    assert_ok(pestle_array_read(y, values, sizeof(values)));
    assert_true(values[11] == 22);
    bool again = (char*)pestle_buffer_data(pestle_array_storage(y)) == z.memory;
    assert_int_equal(again, flags[i] == PESTLE_DL_IS_COPIED);
    if (!again) {
      assert_int_equal(zoo_ended(&z), 1);
    } else {
      assert_int_equal(zoo_ended(&z), 0);
    }
    pestle_array_release(y);
    assert_int_equal(zoo_ended(&z), 1);
    zoo_free(&z);
  }
}

// --- Shapes, strides, offsets ---

static void test_layouts(void** state) {
  const fixture_t* f = *state;
  static const struct {
    const char* what;
    int32_t ndim;
    int64_t shape[4], strides[4];
    uint64_t offset;
    float expected[12];
  } rows[] = {
      {"row-major",
       2,
       {3, 4},
       {4, 1},
       0,
       {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
      {"transposed",
       2,
       {4, 3},
       {1, 4},
       0,
       {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}},
      {"steps", 1, {4}, {3}, 0, {0, 3, 6, 9}},
      {"backwards", 1, {12}, {-1}, 44, {11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}},
      {"both backwards", 2, {2, 2}, {-4, -1}, 20, {5, 4, 1, 0}},
      {"repeated", 2, {2, 3}, {0, 1}, 0, {0, 1, 2, 0, 1, 2}},
      {"overlapping", 2, {3, 3}, {1, 1}, 4, {1, 2, 3, 2, 3, 4, 3, 4, 5}},
      {"inner", 2, {2, 2}, {4, 1}, 20, {5, 6, 9, 10}},
      {"extents of 1", 3, {1, 2, 1}, {-99, 1, 77}, 8, {2, 3}},
      {"extents of 1 with the largest strides",
       2,
       {1, 2},
       {INT64_MIN, 1},
       0,
       {0, 1}},
      {"rank 0", 0, {0}, {0}, 12, {3}},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    zoo_spec_t spec = {.dtype = f32,
                       .ndim = rows[i].ndim,
                       .strides = rows[i].strides,
                       .data = numbers,
                       .bytes = 48,
                       .offset = rows[i].offset};
    memcpy(spec.shape, rows[i].shape, sizeof(rows[i].shape));
    pestle_type_t type = {PESTLE_F32, rows[i].ndim, {0}};
    memcpy(type.dims, rows[i].shape, sizeof(rows[i].shape));
    check_import(f, &spec, &type, rows[i].expected, true);
  }
  // A scalar's shape and strides may be missing.
  zoo_spec_t spec = {
      .dtype = f32, .data = numbers + 5, .bytes = 4, .no_shape = true};
  pestle_type_t type = {PESTLE_F32, 0, {0}};
  check_import(f, &spec, &type, numbers + 5, true);
  // Sixteen axes are the most.
  spec = (zoo_spec_t){.dtype = f32, .ndim = 16, .data = numbers, .bytes = 48};
  type = (pestle_type_t){PESTLE_F32, 16, {0}};
  for (int i = 0; i < 16; ++i)
    spec.shape[i] = type.dims[i] = i == 7 ? 12 : 1;
  check_import(f, &spec, &type, numbers, true);
  spec.dtype.lanes = 2;
  assert_refused(f, &spec, MALFORMED, "0 to 15 are possible");
}

static void test_no_elements(void** state) {
  const fixture_t* f = *state;
  zoo_spec_t spec = {.dtype = f32,
                     .ndim = 3,
                     .shape = {2, 0, 3},
                     .strides = (int64_t[]){INT64_MAX, INT64_MIN, -5}};
  pestle_type_t type = {PESTLE_F32, 3, {2, 0, 3}};
  check_import(f, &spec, &type, NULL, true);
  spec.strides = NULL;
  check_import(f, &spec, &type, NULL, true);
  // Data that must not be touched.
  zoo_t z;
  pestle_array_t* array;
  zoo_make(&spec, &z);
  z.versioned.dl_tensor.data = (void*)(uintptr_t)1;
  z.versioned.dl_tensor.byte_offset = UINT64_MAX;
  assert_ok(pestle_array_import(f->context, &z.versioned, NULL, &array));
  pestle_array_release(array);
  assert_int_equal(zoo_ended(&z), 1);
  spec.dtype = pestle_dtype_to_dlpack(PESTLE_U4);
  type.dtype = PESTLE_U4;
  check_import(f, &spec, &type, NULL, true);
}

static void test_misaligned(void** state) {
  const fixture_t* f = *state;
  pestle_dlpack_import_options_t never = copying(PESTLE_COPY_NEVER);
  for (size_t shift = 0; shift < 16; ++shift) {
    zoo_spec_t spec = {.dtype = f32,
                       .ndim = 2,
                       .shape = {2, 3},
                       .strides = (int64_t[]){1, 2},
                       .data = numbers,
                       .bytes = 48,
                       .shift = shift};
    static const float expected[] = {0, 2, 4, 1, 3, 5};
    pestle_type_t type = {PESTLE_F32, 2, {2, 3}};
    check_import(f, &spec, &type, expected, shift % 4 == 0);
    if (shift % 4) {
      check_refused(f, &spec, &never, PESTLE_STATUS_UNSUPPORTED,
                    "across their own alignment", true);
    }
    // What the offset mends is aligned.
    spec.shift = 16 - shift;
    spec.offset = shift;
    static const float shifted[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    char bytes[64] = {0};
    memcpy(bytes + shift, shifted, 48);
    spec.data = bytes;
    spec.bytes = 64;
    check_import(f, &spec, &type, expected, true);
  }
}

static void test_malformed(void** state) {
  const fixture_t* f = *state;
  static const struct {
    int32_t ndim;
    int64_t shape[3], strides[3];
    const char* text;
  } rows[] = {
      {-1, {1}, {1}, "has -1 axes"},
      {17, {1}, {1}, "has 17 axes"},
      {INT32_MAX, {1}, {1}, "0 to 16 are possible"},
      {INT32_MIN, {1}, {1}, "0 to 16 are possible"},
      {2, {2, -3}, {1, 1}, "extent of axis 1 is -3"},
      {1, {INT64_MIN}, {1}, "extent of axis 0"},
      {1, {INT64_MAX}, {0}, "more elements than memory"},
      {2, {INT64_C(1) << 31, INT64_C(1) << 32}, {0, 0}, "more elements"},
      {3, {0, INT64_C(1) << 40, INT64_C(1) << 40}, {1, 1, 1}, "more elements"},
      {1, {3}, {INT64_MAX / 2}, "stride of axis 0"},
      {2, {3, 3}, {1, INT64_MIN}, "stride of axis 1"},
      {1, {INT64_C(1) << 40}, {INT64_C(1) << 40}, "leads out of memory"},
      {1, {INT64_C(1) << 40}, {-(INT64_C(1) << 20)}, "lead"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    zoo_spec_t spec = {.dtype = f32,
                       .ndim = rows[i].ndim,
                       .strides = rows[i].ndim <= 3 ? rows[i].strides : NULL,
                       .data = numbers,
                       .bytes = 48};
    memcpy(spec.shape, rows[i].shape, sizeof(rows[i].shape));
    assert_refused(f, &spec, MALFORMED, rows[i].text);
  }
  zoo_spec_t spec = {
      .dtype = f32, .ndim = 1, .shape = {12}, .data = numbers, .bytes = 48};
  spec.no_shape = true;
  assert_refused(f, &spec, MALFORMED, "no shape");
  spec.no_shape = false;
  spec.data = NULL;
  spec.bytes = 0;
  assert_refused(f, &spec, MALFORMED, "no data");
  spec.data = numbers;
  spec.bytes = 48;
  spec.offset = UINT64_MAX - 3;
  assert_refused(f, &spec, MALFORMED, "address space");
  spec.offset = 0;
  spec.at = (pestle_dl_device_t){PESTLE_DL_CPU, 1};
  assert_refused(f, &spec, MALFORMED, "CPU device 1");
}

// --- Devices ---

static void test_devices_that_are_not_there(void** state) {
  const fixture_t* f = *state;
  static const int32_t types[] = {
      PESTLE_DL_ROCM, PESTLE_DL_ONE_API, PESTLE_DL_WEB_GPU, PESTLE_DL_HEXAGON,
      PESTLE_DL_MAIA, PESTLE_DL_TRN,     PESTLE_DL_VPI,     PESTLE_DL_METAL};
  zoo_spec_t spec = {
      .dtype = f32, .ndim = 1, .shape = {12}, .data = numbers, .bytes = 48};
  for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
    spec.at = (pestle_dl_device_t){types[i], 0};
    assert_refused(f, &spec, NOT_FOUND, "no loaded backend owns");
    // A copy that the caller wants on the CPU is the producer's to make.
    pestle_dlpack_import_options_t options = copying(PESTLE_COPY_IF_NEEDED);
    options.device = f->device;
    check_refused(f, &spec, &options, PESTLE_STATUS_NOT_FOUND,
                  "have the producer copy it", true);
  }
  static const int32_t none[] = {0, -1, 5, 6, 19, INT32_MAX};
  for (size_t i = 1; i < sizeof(none) / sizeof(none[0]); ++i) {
    spec.at = (pestle_dl_device_t){none[i], 0};
    assert_refused(f, &spec, UNSUPPORTED, "unknown type");
  }
}

static void test_cpu_devices_share_memory(void** state) {
  const fixture_t* f = *state;
  zoo_spec_t spec = {
      .dtype = f32, .ndim = 1, .shape = {12}, .data = numbers, .bytes = 48};
  zoo_t z;
  pestle_array_t* array;
  pestle_dlpack_import_options_t options = copying(PESTLE_COPY_NEVER);
  options.device = f->ref;
  zoo_make(&spec, &z);
  assert_ok(pestle_array_import(f->context, &z.versioned, &options, &array));
  assert_ptr_equal(pestle_array_device(array), f->ref);
  assert_ptr_equal(pestle_buffer_data(pestle_array_storage(array)), z.memory);
  pestle_array_release(array);
  assert_int_equal(zoo_ended(&z), 1);
  zoo_free(&z);
}

static void test_wrong_options(void** state) {
  const fixture_t* f = *state;
  pestle_context_t* other;
  pestle_device_t* device;
  assert_ok(pestle_context_create(NULL, &other));
  assert_ok(pestle_context_device(other, "ref", &device));
  zoo_spec_t spec = {
      .dtype = f32, .ndim = 1, .shape = {12}, .data = numbers, .bytes = 48};
  pestle_dlpack_import_options_t options = copying(PESTLE_COPY_IF_NEEDED);
  options.device = device;
  check_refused(f, &spec, &options, PESTLE_STATUS_INVALID_ARGUMENT,
                "another context", true);
  options = copying((pestle_copy_t)3);
  check_refused(f, &spec, &options, PESTLE_STATUS_INVALID_ARGUMENT,
                "pestle_copy_t", true);
  options = (pestle_dlpack_import_options_t){.struct_size = 0};
  check_refused(f, &spec, &options, PESTLE_STATUS_INVALID_ARGUMENT,
                "struct_size", true);
  pestle_stream_t* stream;
  assert_ok(pestle_stream_create(device, &stream));
  options = copying(PESTLE_COPY_IF_NEEDED);
  options.stream = stream;
  check_refused(f, &spec, &options, PESTLE_STATUS_INVALID_ARGUMENT,
                "another context", true);
  options = copying(PESTLE_COPY_IF_NEEDED);
  options.struct_size = sizeof(options);
  options.has_native_stream = true;
  check_refused(f, &spec, &options, PESTLE_STATUS_UNSUPPORTED,
                "streams of other libraries", true);
  pestle_stream_release(stream);
  pestle_context_release(other);
  pestle_array_t* array;
  assert_code(pestle_array_import(f->context, NULL, NULL, &array),
              INVALID_ARGUMENT);
  zoo_t z;
  zoo_make(&spec, &z);
  assert_code(pestle_array_import(NULL, &z.versioned, NULL, &array),
              INVALID_ARGUMENT);
  assert_code(pestle_array_import(f->context, &z.versioned, NULL, NULL),
              INVALID_ARGUMENT);
  assert_int_equal(zoo_ended(&z), 0);
  zoo_free(&z);
}

// --- Copies ---

static void test_copies(void** state) {
  const fixture_t* f = *state;
  zoo_spec_t spec = {.dtype = f32,
                     .ndim = 2,
                     .shape = {4, 3},
                     .strides = (int64_t[]){1, 4},
                     .data = numbers,
                     .bytes = 48};
  static const float expected[] = {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11};
  pestle_dlpack_import_options_t always = copying(PESTLE_COPY_ALWAYS);
  expected_t e = {{PESTLE_F32, 2, {4, 3}}, expected};
  import_both(f, &spec, &always, check_bytes, &e, false);
  // What the producer has copied for us is not copied again.
  spec.flags = PESTLE_DL_IS_COPIED;
  zoo_t z;
  pestle_array_t* array;
  zoo_make(&spec, &z);
  assert_ok(pestle_array_import(f->context, &z.versioned, &always, &array));
  assert_ptr_equal(pestle_buffer_data(pestle_array_storage(array)), z.memory);
  pestle_array_release(array);
  assert_int_equal(zoo_ended(&z), 1);
  zoo_free(&z);
}

// --- Life ---

static void test_views_keep_it(void** state) {
  const fixture_t* f = *state;
  zoo_spec_t spec = {.dtype = f32,
                     .ndim = 2,
                     .shape = {3, 4},
                     .strides = (int64_t[]){4, 1},
                     .data = numbers,
                     .bytes = 48};
  zoo_t z;
  pestle_array_t *array, *view, *lazy;
  zoo_make(&spec, &z);
  assert_ok(pestle_array_import(f->context, &z.versioned, NULL, &array));
  pestle_transpose_attrs_t attrs = {.struct_size = sizeof(attrs),
                                    .permutation = PESTLE_I64S(1, 0)};
  assert_ok(pestle_array_transpose(array, &attrs, &view));
  pestle_array_release(array);
  assert_int_equal(zoo_ended(&z), 0);
  assert_ok(pestle_array_negate(view, &lazy));
  pestle_array_release(view);
  assert_int_equal(zoo_ended(&z), 0);
  assert_ok(pestle_array_wait(lazy));
  assert_int_equal(zoo_ended(&z), 1);
  pestle_array_release(lazy);
  zoo_free(&z);
}

static void test_no_deleter(void** state) {
  const fixture_t* f = *state;
  zoo_spec_t spec = {.dtype = f32,
                     .ndim = 1,
                     .shape = {12},
                     .strides = (int64_t[]){1},
                     .data = numbers,
                     .bytes = 48,
                     .no_deleter = true};
  zoo_t z;
  pestle_array_t* array;
  zoo_make(&spec, &z);
  assert_ok(pestle_array_import(f->context, &z.versioned, NULL, &array));
  pestle_array_release(array);
  spec.shift = 1;
  zoo_free(&z);
  zoo_make(&spec, &z);
  assert_ok(pestle_array_import_legacy(f->context, &z.legacy, NULL, &array));
  pestle_array_release(array);
  assert_int_equal(zoo_ended(&z), 0);
  zoo_free(&z);
}

// A deleter may use Pestle, even the context's last reference.
typedef struct enders_t {
  pestle_context_t* context;
  int calls;
} enders_t;

static void use_pestle(void* user) {
  enders_t* e = user;
  pestle_device_t* device;
  pestle_array_t *x, *y;
  pestle_type_t type = {PESTLE_F32, 1, {12}};
  assert_ok(pestle_context_device(e->context, "ref", &device));
  assert_ok(pestle_array_from_data(device, &type, numbers, &x));
  assert_ok(pestle_array_add(x, x, &y));
  assert_ok(pestle_array_wait(y));
  pestle_array_release(x);
  pestle_array_release(y);
  pestle_context_release(e->context);
  ++e->calls;
}

static void test_deleter_may_use_pestle(void** state) {
  (void)state;
  enders_t e = {NULL, 0};
  assert_ok(pestle_context_create(NULL, &e.context));
  zoo_spec_t spec = {.dtype = f32,
                     .ndim = 1,
                     .shape = {12},
                     .strides = (int64_t[]){1},
                     .data = numbers,
                     .bytes = 48};
  zoo_t z;
  pestle_array_t* array;
  zoo_make(&spec, &z);
  z.on_end = use_pestle;
  z.user = &e;
  assert_ok(pestle_array_import(e.context, &z.versioned, NULL, &array));
  pestle_array_release(array);
  assert_int_equal(e.calls, 1);
  assert_int_equal(zoo_ended(&z), 1);
  zoo_free(&z);
}

// --- Buffers ---

static void test_buffers(void** state) {
  const fixture_t* f = *state;
  zoo_spec_t spec = {.dtype = f32,
                     .ndim = 2,
                     .shape = {2, 2},
                     .strides = (int64_t[]){-4, 1},
                     .data = numbers,
                     .bytes = 48,
                     .offset = 16};
  zoo_t z;
  pestle_layout_t layout;
  pestle_buffer_t* buffer;
  zoo_make(&spec, &z);
  assert_ok(
      pestle_buffer_import(f->context, &z.versioned, NULL, &layout, &buffer));
  assert_ptr_equal(pestle_buffer_data(buffer), z.memory);
  assert_int_equal(pestle_buffer_size(buffer), 24);
  assert_int_equal(layout.byte_offset, 16);
  assert_int_equal(layout.rank, 2);
  assert_int_equal(layout.strides[0], -4);
  assert_int_equal(zoo_ended(&z), 0);
  pestle_buffer_release(buffer);
  assert_int_equal(zoo_ended(&z), 1);
  zoo_free(&z);
  spec.dtype = pestle_dtype_to_dlpack(PESTLE_I4);
  spec.strides = NULL;
  zoo_make(&spec, &z);
  assert_error(
      pestle_buffer_import(f->context, &z.versioned, NULL, &layout, &buffer),
      UNSUPPORTED, "packed elements");
  assert_null(buffer);
  assert_int_equal(zoo_ended(&z), 0);
  zoo_free(&z);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_dtype),
      cmocka_unit_test(test_small_elements),
      cmocka_unit_test(test_packed_lanes),
      cmocka_unit_test(test_unknown_dtypes),
      cmocka_unit_test(test_dirty_booleans),
      cmocka_unit_test(test_dirty_integers),
      cmocka_unit_test(test_versions),
      cmocka_unit_test(test_unknown_flags),
      cmocka_unit_test(test_flags),
      cmocka_unit_test(test_memory_is_used_again_if_copied),
      cmocka_unit_test(test_layouts),
      cmocka_unit_test(test_no_elements),
      cmocka_unit_test(test_misaligned),
      cmocka_unit_test(test_malformed),
      cmocka_unit_test(test_devices_that_are_not_there),
      cmocka_unit_test(test_cpu_devices_share_memory),
      cmocka_unit_test(test_wrong_options),
      cmocka_unit_test(test_copies),
      cmocka_unit_test(test_views_keep_it),
      cmocka_unit_test(test_no_deleter),
      cmocka_unit_test(test_deleter_may_use_pestle),
      cmocka_unit_test(test_buffers),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
