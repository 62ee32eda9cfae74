// SPDX-License-Identifier: Apache-2.0
// The text form: what is printed reads back as it was, and what cannot be read
// is said with file, line and column.
#include "unit/codegen/kir_test.h"

static const char everything[] =
    "// graph ops: %3 = softmax\n"
    "//\n"
    "// split c 64\n"
    "kernel @all(\n"
    "    @x : global f32[4096] readonly,\n"
    "    @y : global f32[4096] nontemporal align 16 alias 0,\n"
    "    @s : shared f16[128],\n"
    "    @acc : private f32x4[6],\n"
    "    @odd : global f8E4M3FN[9] layout 2) {\n"
    "  %0 = const 0 : index\n"
    "  %1 = const -7 : i32x4\n"
    "  %2 = const 1.5 : f32x4\n"
    "  %3 = const -inf : f32\n"
    "  %4 = const 0x7ff8000000000001 : f64\n"
    "  %5 = const 64 : index\n"
    "  %6 = param 1 : i64\n"
    "  %7 = for %0 to %5 step 1 group.x : index name tile {\n"
    "    alloc @acc\n"
    "    %9 = for %0 to %5 step 16 unroll : index {\n"
    "      %10 = madi %7, -64, %9 : index\n"
    "      %11 = mask %10, %5 : i1x4\n"
    "      %12 = load @x[%10], mask %11 : f32x4 align 16\n"
    "      %13 = load @acc[%0] : f32x4 align 4\n"
    "      %14 = fma %12, %2, %13 : f32x4 contract nsz flush\n"
    "      store @acc[%0], %14 align 4\n"
    "      prefetch @x[%10]\n"
    "    }\n"
    "    %18 = load @acc[%0] : f32x4 align 4\n"
    "    %19 = iota : i32x4\n"
    "    %20 = gather @x[%19], mask %21 : f32x4 align 4\n";

// The rest; the first part has a use before its definition, on purpose.
static const char text_ok[] =
    "// graph ops: %3 = softmax\n"
    "//\n"
    "// split c 64\n"
    "kernel @all(\n"
    "    @x : global f32[4096] readonly,\n"
    "    @y : global f32[4096] nontemporal align 16 alias 0,\n"
    "    @s : shared f16[128],\n"
    "    @acc : private f32x4[6],\n"
    "    @odd : global f8E4M3FN[9]) {\n"
    "  %0 = const 0 : index\n"
    "  %1 = const -7 : i32x4\n"
    "  %2 = const 1.5 : f32x4\n"
    "  %3 = const -inf : f32\n"
    "  %4 = const 0x7ff8000000000001 : f64\n"
    "  %5 = const 64 : index\n"
    "  %6 = const 32 : index\n"
    "  %7 = param 1 : i64\n"
    "  %8 = for %0 to %6 step 1 group.x : index name tile {\n"
    "    alloc @acc\n"
    "    %10 = for %0 to %5 step 16 unroll : index {\n"
    "      %11 = madi %8, 64, %10 : index\n"
    "      %12 = mask %11, %5 : i1x4\n"
    "      %13 = load @x[%11], mask %12 : f32x4 align 16\n"
    "      %14 = load @acc[%0] : f32x4 align 4\n"
    "      %15 = fma %13, %2, %14 : f32x4 contract nsz flush\n"
    "      store @acc[%0], %15 align 4\n"
    "      prefetch @x[%11], far\n"
    "    }\n"
    "    %19 = load @acc[%0] : f32x4 align 4\n"
    "    %20 = iota : i32x4\n"
    "    %21 = gather @x[%20] : f32x4 align 4\n"
    "    scatter @y[%20], %21 align 4\n"
    "    %23 = reduce %19, maximum : f32\n"
    "    %24 = splat %23 : f32x4\n"
    "    %25 = extract %24, 3 : f32\n"
    "    %26 = insert %24, %25, 2 : f32x4\n"
    "    %27 = shuffle %26, %24, [0, 5, 2, 7] : f32x4\n"
    "    %28 = bitcast %27 : i32x4\n"
    "    %29 = cast %28 : f16x4\n"
    "    store @s[%0], %29 align 2\n"
    "    barrier\n"
    "    %32 = is_nan %25 : i1\n"
    "    if %32 {\n"
    "      trap_if %32, 7\n"
    "    } else {\n"
    "      store @y[%8], %25 align 4\n"
    "    }\n"
    "  }\n"
    "}\n";

static void test_round_trip(void** state) {
  (void)state;
  pestle_kir_builder_t a, b;
  pestle_allocator_t memory = pestle_allocator_system();
  assert_ok(pestle_kir_parse(memory, text_ok, strlen(text_ok), "t", &a));
  assert_string_equal(kir_test_text(&a.view), text_ok);
  assert_ok(pestle_kir_verify(&a.view));
  assert_ok(pestle_kir_parse(memory, text_ok, strlen(text_ok), "t", &b));
  assert_memory_equal(a.view.hash, b.view.hash, sizeof a.view.hash);
  assert_int_equal(a.view.group[0], 32);
  assert_int_equal(a.view.param_count, 2);
  assert_int_equal(a.view.shared_bytes, 256);
  assert_int_equal(a.view.arg_count, 3);
  pestle_kir_deinit(&a);
  pestle_kir_deinit(&b);
}

static void bad(const char* text, const char* message) {
  pestle_kir_builder_t k;
  pestle_status_t status = pestle_kir_parse(pestle_allocator_system(), text,
                                            strlen(text), "f.kir", &k);
  assert_error(status, MALFORMED, message);
}

static void test_errors(void** state) {
  (void)state;
  bad("", "f.kir:1:1: expected 'kernel'");
  bad("kernel k() {\n}", "f.kir:1:8: expected '@'");
  bad("kernel @k(\n  @x : global f31[4]) {\n}", "f.kir:2:15: expected a type");
  bad("kernel @k(@x : local f32[4]) {}",
      "expected global, shared, private or map");
  bad("kernel @k(@x : global f32[4], @x : global f32[4]) {}",
      "there is a buffer @x already");
  bad("kernel @k() {\n  %0 = frob %0 : f32\n}", "f.kir:2:8: no op 'frob'");
  bad("kernel @k() {\n  %0 = negate %7 : f32\n}", "no value %7");
  bad("kernel @k() {\n  %0 = load @z[%0] : f32\n}", "no buffer @z");
  bad("kernel @k() {\n  %0 = const 1 : f32x129\n}", "1 to 128 lanes");
  bad("kernel @k() {\n  %0 = const x : f32\n}", "expected a number");
  bad("kernel @k() {\n  const 1 : f32\n}", "expected '%N ='");
  bad("kernel @k() {\n  %0 = barrier\n}", "expected ': type'");
  bad("kernel @k() {\n  %0 = const 1 : f32\n", "f.kir:3:1: expected '}'");
  bad("kernel @k() {}\n}", "f.kir:2:1: text after the kernel");
  bad(everything, "no value %21");
}

// Every prefix and every changed byte ends in a status or in a kernel.
static void test_damage(void** state) {
  (void)state;
  char text[sizeof text_ok];
  pestle_allocator_t memory = pestle_allocator_system();
  for (size_t i = 0; i < sizeof text_ok; ++i) {
    for (int what = 0; what < 3; ++what) {
      pestle_kir_builder_t k;
      memcpy(text, text_ok, sizeof text);
      size_t size = what ? sizeof text - 1 : i;
      if (what == 1) text[i] = '%';
      if (what == 2) text[i] = '9';
      pestle_status_t status = pestle_kir_parse(memory, text, size, "f", &k);
      if (!status) {
        pestle_status_release(pestle_kir_verify(&k.view));
        pestle_kir_deinit(&k);
      }
      pestle_status_release(status);
    }
  }
}

static void test_out_of_memory(void** state) {
  (void)state;
  for (size_t at = 1;; ++at) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, at);
    pestle_kir_builder_t k;
    pestle_status_t status = pestle_kir_parse(
        pestle_test_allocator(&memory), text_ok, strlen(text_ok), "t", &k);
    bool failed = pestle_test_allocator_failed(&memory);
    if (failed) {
      assert_code(status, OUT_OF_MEMORY);
    } else {
      assert_ok(status);
      pestle_kir_deinit(&k);
    }
    pestle_test_allocator_check(&memory);
    if (!failed) break;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_errors),
      cmocka_unit_test(test_damage),
      cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
