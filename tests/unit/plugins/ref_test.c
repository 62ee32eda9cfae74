// SPDX-License-Identifier: Apache-2.0
// The ref backend: its scalar rows, casts and formats against ir/ref and
// base/half, which share no code with it; vectors, masks, regions and tiles by
// small kernels; and that no artifact, however damaged, makes it crash.
#include <math.h>

#include "base/half.h"
#include "ir/ref/ref_internal.h"
#include "plugins/ref/ref_internal.h"
#include "unit/codegen/kir_test.h"

// --- Scalar rows ---

static uint64_t next_random(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

enum { COUNT = 4096 };

typedef struct inputs_t {
  uint64_t a[COUNT], b[COUNT], c[COUNT];
} inputs_t;

static uint64_t pick(uint64_t* state, ref_class_t kind, unsigned width) {
  static const double reals[] = {0,        -0.0,      1,    -1,   0.5,
                                 INFINITY, NAN,       -2.5, 1e30, 3,
                                 1e-40,    -INFINITY, 2.5,  100};
  static const int64_t ints[] = {0,         1,   -1,   2,         7,
                                 31,        63,  64,   INT64_MIN, INT64_MAX,
                                 INT32_MIN, 127, -128, 8};
  uint64_t random = next_random(state), bits = random;
  bool special = next_random(state) % 3 == 0;
  if (kind == REF_F32) {
    float value = (float)reals[random % 14];
    bits = (uint32_t)(random >> 32);
    if (special) memcpy(&bits, &value, sizeof value);
  } else if (kind == REF_F64) {
    if (special) memcpy(&bits, &reals[random % 14], sizeof bits);
  } else {
    if (special) bits = (uint64_t)ints[random % 14];
    uint64_t mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
    uint64_t sign = UINT64_C(1) << (width - 1);
    bits &= mask;
    if (kind == REF_I64) bits = (bits ^ sign) - sign;
  }
  return bits;
}

static void put(void* array, size_t i, size_t size, uint64_t bits) {
  memcpy((char*)array + i * size, &bits, size);
}

static bool same_float(ref_class_t kind, const void* a, const void* b,
                       size_t i) {
  if (kind == REF_F32) {
    const float *x = a, *y = b;
    return (isnan(x[i]) && isnan(y[i])) || !memcmp(x + i, y + i, sizeof *x);
  }
  const double *x = a, *y = b;
  return (isnan(x[i]) && isnan(y[i])) || !memcmp(x + i, y + i, sizeof *x);
}

static void compare_row(pestle_op_t op, ref_class_t kind, unsigned width) {
  static inputs_t in, narrow;
  static uint64_t ours[COUNT], theirs[COUNT];
  uint64_t state = 88172645463325252u + (uint64_t)op;
  size_t size = kind == REF_F32 ? 4 : 8;
  const pestle_op_info_t* info = pestle_op_info(op);
  bool selects = info->rule == PESTLE_RULE_SELECT;
  bool predicate =
      info->rule == PESTLE_RULE_COMPARE || info->rule == PESTLE_RULE_TEST;
  for (size_t i = 0; i < COUNT; ++i) {
    put(in.a, i, selects ? 8 : size,
        selects ? next_random(&state) & 1 : pick(&state, kind, width));
    put(in.b, i, size, pick(&state, kind, width));
    put(in.c, i, size, pick(&state, kind, width));
    if (selects) ((uint8_t*)narrow.a)[i] = (uint8_t)in.a[i];
  }
  pestle_ref_plugin_scalar(op, kind)(ours, in.a, in.b, in.c, COUNT, width);
  pestle_ref_kernel(op, (pestle_ref_class_t)kind)(
      theirs, selects ? narrow.a : in.a, in.b, in.c, COUNT, width);
  uint64_t mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
  for (size_t i = 0; i < COUNT; ++i) {
    bool same = predicate ? ours[i] == ((uint8_t*)theirs)[i]
                : kind == REF_F32 || kind == REF_F64
                    ? same_float(kind, ours, theirs, i)
                    : (ours[i] & mask) == (theirs[i] & mask);
    if (same) continue;
    fail_msg("%s, class %d, %u bits: %llx op %llx: %llx, not %llx", info->name,
             (int)kind, width, (unsigned long long)in.a[i],
             (unsigned long long)in.b[i], (unsigned long long)ours[i],
             (unsigned long long)theirs[i]);
  }
}

static void test_rows(void** state) {
  (void)state;
  static const unsigned widths[] = {4, 8, 16, 32, 64};
  for (unsigned op = 0; op < PESTLE_SCALAR_COUNT; ++op) {
    unsigned kinds = pestle_op_info((pestle_op_t)op)->kinds;
    if (kinds & PESTLE_KIND_FLOAT) {
      compare_row((pestle_op_t)op, REF_F32, 32);
      compare_row((pestle_op_t)op, REF_F64, 64);
    }
    for (unsigned w = 0; w < 5; ++w) {
      if (kinds & PESTLE_KIND_SIGNED) {
        compare_row((pestle_op_t)op, REF_I64, widths[w]);
      }
      if (kinds & PESTLE_KIND_UNSIGNED) {
        compare_row((pestle_op_t)op, REF_U64, widths[w]);
      }
    }
    if (kinds & PESTLE_KIND_BOOL) compare_row((pestle_op_t)op, REF_U64, 1);
  }
}

// --- Formats and casts ---

static const pestle_dtype_t narrow_floats[] = {
    PESTLE_F16,    PESTLE_BF16,       PESTLE_F8E4M3FN,
    PESTLE_F8E5M2, PESTLE_F8E4M3FNUZ, PESTLE_F8E5M2FNUZ};

static void test_formats(void** state) {
  (void)state;
  uint64_t random = 1234567;
  for (size_t f = 0; f < 6; ++f) {
    pestle_dtype_t d = narrow_floats[f];
    uint32_t codes = 1u << (8 * pestle_dtype_size(d));
    for (uint32_t code = 0; code < codes; ++code) {
      double theirs = pestle_float_decode(d, code);
      float ours = pestle_ref_plugin_decode(d, code);
      if (isnan(theirs) ? !isnan(ours) : (double)ours != theirs) {
        fail_msg("%s %x: %g, not %g", pestle_dtype_info(d)->name, code,
                 (double)ours, theirs);
      }
    }
    for (int i = 0; i < 200000; ++i) {
      // Near the format's range, with every kind of tie.
      uint64_t bits = next_random(&random);
      double value = ldexp((double)(int64_t)(bits >> 40 << (bits & 7)),
                           (int)(bits >> 8 & 63) - 50);
      if (i % 64 == 0) memcpy(&value, &bits, sizeof value);
      if (isnan(value)) continue;
      if (bits & 16) value = -value;
      uint64_t theirs = pestle_float_encode(d, value);
      uint32_t ours = pestle_ref_plugin_encode(d, value);
      if (ours != theirs) {
        fail_msg("%s of %a: %x, not %x", pestle_dtype_info(d)->name, value,
                 ours, (unsigned)theirs);
      }
    }
    assert_true(isnan(
        pestle_ref_plugin_decode(d, pestle_ref_plugin_encode(d, (double)NAN))));
  }
}

static void test_casts(void** state) {
  (void)state;
  pestle_kir_builder_t k;
  double x[8] = {1e30, -1e30, (double)NAN, -2.9, 300.7, 0.0, -0.0, 65519.99};
  int8_t i8[8];
  uint32_t u32[8];
  int64_t i64[8];
  uint8_t i1[8];
  uint16_t f16[8];
  pestle_kir_init(pestle_allocator_system(), "casts", NULL, &k);
  const pestle_dtype_t to[] = {PESTLE_I8, PESTLE_U32, PESTLE_I64, PESTLE_I1,
                               PESTLE_F16};
  uint32_t from = pestle_kir_add_buffer(&k, "x", PESTLE_KIR_GLOBAL, PESTLE_F64,
                                        1, 8, PESTLE_KIR_READONLY);
  pestle_kir_id_t lo = pestle_kir_index(&k, 0), hi = pestle_kir_index(&k, 1);
  pestle_kir_for(&k, "g", lo, hi, 1, PESTLE_KIR_GROUP_X);
  pestle_kir_id_t v = pestle_kir_load(&k, from, 8, lo, PESTLE_KIR_NONE, 0);
  for (int i = 0; i < 5; ++i) {
    uint32_t b =
        pestle_kir_add_buffer(&k, "y", PESTLE_KIR_GLOBAL, to[i], 1, 8, 0);
    pestle_kir_store(&k, b, lo, pestle_kir_cast(&k, v, to[i]), PESTLE_KIR_NONE,
                     0);
  }
  pestle_kir_end(&k);
  kir_test_run_ok(&k, (void*[]){x, i8, u32, i64, i1, f16});
  assert_memory_equal(i8, ((int8_t[]){127, -128, 0, -2, 127, 0, 0, 127}), 8);
  assert_memory_equal(
      u32, ((uint32_t[]){UINT32_MAX, 0, 0, 0, 300, 0, 0, 65519}), sizeof u32);
  assert_memory_equal(
      i64, ((int64_t[]){INT64_MAX, INT64_MIN, 0, -2, 300, 0, 0, 65519}),
      sizeof i64);
  assert_memory_equal(i1, ((uint8_t[]){1, 1, 1, 1, 1, 0, 0, 1}), 8);
  assert_int_equal(f16[0], 0x7c00);
  assert_int_equal(f16[6], 0x8000);
  assert_int_equal(f16[7], 0x7bff);
  pestle_kir_deinit(&k);
}

// --- Kernels ---

static pestle_kir_builder_t parse(const char* text) {
  pestle_kir_builder_t k;
  assert_ok(pestle_kir_parse(pestle_allocator_system(), text, strlen(text),
                             "test", &k));
  assert_ok(pestle_kir_verify(&k.view));
  return k;
}

static int32_t run(pestle_kir_builder_t* k, void* const* buffers,
                   const int64_t* params, int64_t begin, int64_t end) {
  int32_t trap = 0;
  assert_ok(kir_test_run(&k->view, buffers, params, begin, end, &trap));
  return trap;
}

static const char lanes_text[] =
    "kernel @lanes(@x : global f32[9] readonly, @y : global f32[64],\n"
    "    @n : global f16[8], @s : shared i32[20], @t : private f32x4[2]) {\n"
    "  %0 = const 0 : index\n"
    "  %1 = const 1 : index\n"
    "  %2 = const 2 : index\n"
    "  %3 = const 9 : index\n"
    "  %4 = const 4 : index\n"
    "  %5 = const 8 : index\n"
    "  %6 = for %0 to %2 step 1 group.x : index {\n"
    "    alloc @t\n"
    "    %7 = madi %6, 32, %0 : index\n"
    "    %8 = mask %5, %3 : i1x4\n"
    "    %9 = load @x[%5], mask %8 : f32x4 align 4\n"
    "    store @y[%7], %9 align 4\n"
    "    %10 = for %0 to %2 step 1 unroll : index {\n"
    "      %11 = madi %10, 4, %0 : index\n"
    "      %12 = load @x[%11] : f32x4 align 4\n"
    "      store @t[%10], %12 align 4\n"
    "    }\n"
    "    %13 = load @t[%0] : f32x4 align 4\n"
    "    %14 = load @t[%1] : f32x4 align 4\n"
    "    %15 = shuffle %13, %14, [7, 0, 5, 2] : f32x4\n"
    "    %16 = madi %6, 32, %4 : index\n"
    "    store @y[%16], %15 align 4\n"
    "    %17 = reduce %13, add : f32\n"
    "    %18 = extract %14, 3 : f32\n"
    "    %19 = insert %13, %18, 1 : f32x4\n"
    "    %20 = splat %17 : f32x4\n"
    "    %21 = add %19, %20 : f32x4\n"
    "    %22 = madi %6, 32, %5 : index\n"
    "    store @y[%22], %21 align 4\n"
    "    %23 = iota : i32x8\n"
    "    %24 = const 3 : i32x8\n"
    "    %25 = multiply %23, %24 : i32x8\n"
    "    store @s[%0], %25 align 4\n"
    "    %26 = const 7 : i32x8\n"
    "    %27 = subtract %26, %23 : i32x8\n"
    "    %28 = gather @s[%27] : i32x8 align 4\n"
    "    %29 = cast %28 : f16x8\n"
    "    scatter @n[%27], %29 align 2\n"
    "    %30 = param 1 : i64\n"
    "    %31 = const 5 : i64\n"
    "    %32 = lt %30, %31 : i1\n"
    "    %33 = const 12 : index\n"
    "    %34 = madi %6, 32, %33 : index\n"
    "    if %32 {\n"
    "      store @y[%34], %18 align 4\n"
    "    } else {\n"
    "      store @y[%34], %17 align 4\n"
    "    }\n"
    "  }\n"
    "}\n";

static void test_lanes(void** state) {
  (void)state;
  float x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, y[64];
  uint16_t n[8];
  pestle_kir_builder_t k = parse(lanes_text);
  for (int i = 0; i < 64; ++i)
    y[i] = -1;
  assert_int_equal(run(&k, (void*[]){x, y, n}, (int64_t[]){0, 4}, 1, 2), 0);
  assert_float_equal(y[0], -1, 0);  // group 0 was not asked for
  const float want[] = {9, 0, 0, 0, 8, 1, 6, 3, 11, 18, 13, 14, 8, -1};
  assert_memory_equal(y + 32, want, sizeof want);
  for (unsigned i = 0; i < 8; ++i) {
    assert_float_equal(pestle_f16_to_f32(n[i]), (float)(3 * i), 0);
  }
  assert_int_equal(run(&k, (void*[]){x, y, n}, (int64_t[]){0, 5}, 0, 1), 0);
  assert_float_equal(y[12], 10, 0);
  pestle_kir_deinit(&k);
}

// A group of 8 x 1,024 lanes: each writes its number and reads that of the lane on the other
// end, of another unit. %s: what is shared, of which such a group has nothing.
#define WIDE_TEXT(shared)                                            \
  "kernel @wide(@x : global i32[8192], @y : global i32[8192]" shared \
  ") {\n"                                                            \
  "  %0 = const 0 : index\n"                                         \
  "  %1 = const 1 : index\n"                                         \
  "  %2 = const 8 : index\n"                                         \
  "  %3 = const 1024 : index\n"                                      \
  "  %4 = const 8191 : index\n"                                      \
  "  %5 = for %0 to %1 step 1 group.x : index {\n"                   \
  "    %6 = for %0 to %2 step 1 lane.z : index {\n"                  \
  "      %7 = for %0 to %3 step 1 lane.x : index {\n"                \
  "        %8 = madi %6, 1024, %7 : index\n"                         \
  "        %9 = cast %8 : i32\n"                                     \
  "        store @x[%8], %9 align 4\n"                               \
  "        barrier\n"                                                \
  "        %10 = madi %8, -1, %4 : index\n"                          \
  "        %11 = load @x[%10] : i32 align 4\n"                       \
  "        store @y[%8], %11 align 4\n"                              \
  "      }\n"                                                        \
  "    }\n"                                                          \
  "  }\n"                                                            \
  "}\n"

static void test_wide(void** state) {
  (void)state;
  static int32_t x[8192], y[8192];
  pestle_kir_builder_t k = parse(WIDE_TEXT(""));
  assert_int_equal(run(&k, (void*[]){x, y}, NULL, 0, 1), 0);
  for (int i = 0; i < 8192; ++i)
    assert_int_equal(y[i], 8191 - i);
  pestle_kir_deinit(&k);
  k = parse(WIDE_TEXT(", @s : shared i32[4]"));
  pestle_allocator_t memory = pestle_allocator_system();
  pestle_host_t host = kir_test_host(&memory);
  assert_error(pestle_ref_plugin_check(&host, &k.view), MALFORMED, "too many");
  pestle_kir_deinit(&k);
}

// Three of four subgroups add up what they have; all of them meet behind it.
static void test_subgroups_apart(void** state) {
  (void)state;
  static const char text[] =
      "kernel @apart(@y : global i32[128], @s : shared i32[4]) {\n"
      "  %0 = const 0 : index\n"
      "  %1 = const 1 : index\n"
      "  %2 = const 4 : index\n"
      "  %3 = const 32 : index\n"
      "  %4 = for %0 to %1 step 1 group.x : index {\n"
      "    %5 = for %0 to %2 step 1 lane.y : index {\n"
      "      %6 = for %0 to %3 step 1 lane.x : index {\n"
      "        %7 = madi %5, 32, %6 : index\n"
      "        %8 = cast %7 : i32\n"
      "        %9 = const 3 : index\n"
      "        %10 = lt %5, %9 : i1\n"
      "        store @s[%5], %8 align 4\n"
      "        if %10 {\n"
      "          %11 = sg_reduce %8, add, 32 : i32\n"
      "          store @s[%5], %11 align 4\n"
      "        }\n"
      "        barrier\n"
      "        %12 = madi %5, -1, %9 : index\n"
      "        %13 = load @s[%12] : i32 align 4\n"
      "        store @y[%7], %13 align 4\n"
      "      }\n"
      "    }\n"
      "  }\n"
      "}\n";
  static const int32_t want[4] = {127, 2544, 1520, 496};
  int32_t y[128];
  pestle_kir_builder_t k = parse(text);
  assert_int_equal(run(&k, (void*[]){y}, NULL, 0, 1), 0);
  for (int i = 0; i < 128; ++i)
    assert_int_equal(y[i], want[i / 32]);
  pestle_kir_deinit(&k);
}

// Left by a kernel that the verifier would refuse: found when it happens.
static void test_traps(void** state) {
  (void)state;
  const char* text =
      "kernel @far(@x : global f32[8]) {\n"
      "  %0 = const 0 : index\n"
      "  %1 = const 3 : index\n"
      "  %2 = for %0 to %1 step 1 group.x : index {\n"
      "    %3 = madi %2, 7, %0 : index\n"
      "    %4 = const 1.0 : f32x2\n"
      "    store @x[%3], %4 align 4\n"
      "    %6 = eq %2, %1 : i1\n"
      "    trap_if %6, 42\n"
      "  }\n"
      "}\n";
  pestle_kir_builder_t k;
  float x[16] = {0};
  assert_ok(pestle_kir_parse(pestle_allocator_system(), text, strlen(text),
                             "test", &k));
  assert_int_equal(run(&k, (void*[]){x}, NULL, 0, 1), 0);
  assert_int_equal(run(&k, (void*[]){x}, NULL, 0, 2), REF_TRAP_BOUNDS);
  assert_float_equal(x[8], 0, 0);
  pestle_kir_deinit(&k);
}

// --- Artifacts ---

static void test_damage(void** state) {
  (void)state;
  pestle_allocator_t memory = pestle_allocator_system();
  pestle_host_t host = kir_test_host(&memory);
  pestle_status_t status = NULL;
  const pestle_backend_t* ref = pestle_ref_backend_init(&host, &status);
  assert_ok(status);
  pestle_kir_builder_t k = parse(lanes_text);
  pestle_kernel_options_t options = {.struct_size = sizeof options};
  pestle_blob_t artifact;
  assert_ok(ref->target->compile(ref->self, &k.view, &options, &artifact));
  unsigned char* copy = aligned_alloc(64, (artifact.size + 63) / 64 * 64);
  uint64_t random = 99;
  for (int i = 0; i < 20000; ++i) {
    memcpy(copy, artifact.data, artifact.size);
    size_t size = artifact.size;
    if (i % 3 == 0) size = next_random(&random) % artifact.size;
    for (int flips = 0; flips < 1 + i % 2; ++flips) {
      copy[next_random(&random) % artifact.size] ^=
          (unsigned char)(1u << (next_random(&random) & 7));
    }
    pestle_loaded_t* loaded = NULL;
    status = ref->device->load(ref->self, 0, copy, size, &loaded);
    if (status) {
      assert_null(loaded);
      pestle_status_code_t code = pestle_status_code(status);
      assert_true(code == PESTLE_STATUS_MALFORMED ||
                  code == PESTLE_STATUS_INCOMPATIBLE ||
                  code == PESTLE_STATUS_UNSUPPORTED);
      pestle_status_release(status);
      continue;
    }
    ref->device->unload(ref->self, loaded);
  }
  assert_code(ref->device->load(ref->self, 0, "", 0, &(pestle_loaded_t*){NULL}),
              MALFORMED);
  free(copy);
  host.free(host.self, artifact.data, artifact.size);
  ref->deinit(ref->self);
  pestle_kir_deinit(&k);
}

static void test_text(void** state) {
  (void)state;
  pestle_allocator_t memory = pestle_allocator_system();
  pestle_host_t host = kir_test_host(&memory);
  pestle_status_t status = NULL;
  const pestle_backend_t* ref = pestle_ref_backend_init(&host, &status);
  pestle_kir_builder_t k = parse(lanes_text);
  pestle_kernel_options_t options = {.struct_size = sizeof options};
  pestle_blob_t text;
  assert_ok(ref->target->print(ref->self, &k.view, &options, PESTLE_TEXT_SOURCE,
                               &text));
  assert_memory_equal(text.data, "   0  const 0, 0 : indexx1\n", 27);
  host.free(host.self, text.data, text.size);
  assert_code(
      ref->target->print(ref->self, &k.view, &options, PESTLE_TEXT_ASM, &text),
      UNSUPPORTED);
  ref->deinit(ref->self);
  pestle_kir_deinit(&k);
}

static void test_out_of_memory(void** state) {
  (void)state;
  pestle_kir_builder_t k = parse(lanes_text);
  for (size_t at = 1;; ++at) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, at);
    pestle_allocator_t allocator = pestle_test_allocator(&memory);
    pestle_host_t host = kir_test_host(&allocator);
    pestle_status_t status = NULL;
    pestle_blob_t artifact = {NULL, 0};
    pestle_loaded_t* loaded = NULL;
    const pestle_backend_t* ref = pestle_ref_backend_init(&host, &status);
    if (ref) {
      status = ref->target->compile(ref->self, &k.view, NULL, &artifact);
      if (!status) {
        status = ref->device->load(ref->self, 0, artifact.data, artifact.size,
                                   &loaded);
      }
      if (artifact.data) host.free(host.self, artifact.data, artifact.size);
      ref->device->unload(ref->self, loaded);
      ref->deinit(ref->self);
    }
    bool failed = pestle_test_allocator_failed(&memory);
    if (failed) {
      assert_code(status, OUT_OF_MEMORY);
    } else {
      assert_ok(status);
    }
    pestle_test_allocator_check(&memory);
    if (!failed) break;
  }
  pestle_kir_deinit(&k);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows),
      cmocka_unit_test(test_formats),
      cmocka_unit_test(test_casts),
      cmocka_unit_test(test_lanes),
      cmocka_unit_test(test_subgroups_apart),
      cmocka_unit_test(test_wide),
      cmocka_unit_test(test_traps),
      cmocka_unit_test(test_damage),
      cmocka_unit_test(test_text),
      cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
