// SPDX-License-Identifier: Apache-2.0
// The verifier: what emission makes is accepted, what breaks a rule of kir.h is
// named. Kernels are written as text; each line of a body may use @x (8 f32,
// read-only), @y (100 f32), @t (private f32x4[2]), @i (100 i32).
#include "unit/codegen/kir_test.h"

static pestle_status_t verify(const char* body) {
  static char text[4096];
  snprintf(text, sizeof text,
           "kernel @k(\n"
           "    @x : global f32[8] readonly,\n"
           "    @y : global f32[100],\n"
           "    @t : private f32x4[2],\n"
           "    @i : global i32[100] readonly) {\n"
           "  %%0 = const 0 : index\n"
           "  %%1 = const 1 : index\n"
           "  %%4 = const 4 : index\n"
           "  %%7 = const 7 : index\n"
           "  %%8 = const 8 : index\n"
           "  %%25 = const 25 : index\n"
           "  %%99 = const 99 : index\n"
           "  %%100 = const 100 : index\n"
           "  %%200 = const 1.0 : f32\n"
           "  %%201 = const 1.0 : f32x4\n"
           "  %%202 = const 1.0 : f32x8\n"
           "%s}\n",
           body);
  pestle_kir_builder_t k;
  pestle_status_t status = pestle_kir_parse(pestle_allocator_system(), text,
                                            strlen(text), "body", &k);
  if (status) return status;
  status = pestle_kir_verify(&k.view);
  pestle_kir_deinit(&k);
  return status;
}

#define GROUP(body) "%300 = for %0 to %25 step 1 group.x : index {\n" body "}\n"
#define GOOD(body) assert_ok(verify(GROUP(body)))
#define BAD(body, rule) assert_error(verify(GROUP(body)), INTERNAL, rule)

// The finding about a kernel in three parts: |rule|; NULL: it is sound.
static void expect_rule(const char* head, const char* body, const char* ends,
                        const char* rule) {
  char text[2048];
  pestle_kir_builder_t k;
  snprintf(text, sizeof text, "%s%s%s", head, body, ends);
  assert_ok(pestle_kir_parse(pestle_allocator_system(), text, strlen(text),
                             "body", &k));
  pestle_status_t status = pestle_kir_verify(&k.view);
  if (rule) {
    assert_error(status, INTERNAL, rule);
  } else {
    assert_ok(status);
  }
  pestle_kir_deinit(&k);
}

static void test_structure(void** state) {
  (void)state;
  assert_ok(verify(""));
  BAD("%310 = for %0 to %4 step 1 serial : index {\n}\n"
      "store @y[%310], %200\n",
      "left its region");
  BAD("%310 = lt %0, %300 : i1\nif %310 {\n%311 = madi %300, 1, %1 : index\n"
      "} else {\nstore @y[%311], %200\n}\n",
      "left its region");
  assert_error(verify("store @y[%0], %200\n"), INTERNAL,
               "stands outside the group loops");
  assert_error(verify(GROUP("") GROUP("")), INTERNAL, "one loop a group axis");
  BAD("%310 = for %0 to %4 step 1 serial : index {\n"
      "%311 = for %0 to %4 step 1 group.y : index {\n}\n}\n",
      "outermost");
  assert_error(verify("%310 = for %1 to %4 step 1 group.x : index {\n}\n"),
               INTERNAL, "from 0 by 1");
  GOOD("%310 = madi %300, 4, %0 : index\n store @y[%310], %201\n");
  // Two group loops, the inner one inside the outer.
  assert_ok(
      verify(GROUP("%310 = for %0 to %4 step 1 group.y : index {\n"
                   "%311 = madi %300, 4, %310 : index\n"
                   "store @y[%311], %200\n}\n")));
}

static void test_types(void** state) {
  (void)state;
  BAD("%310 = add %200, %201 : f32\n", "operand 1 is f32x4, not f32x1");
  BAD("%310 = add %200, %0 : f32\n", "operand 1 is index");
  BAD("%310 = and %200, %200 : f32\n", "does not take f32");
  BAD("%310 = lt %200, %200 : f32\n", "must be i1");
  BAD("%310 = select %200, %200, %200 : f32\n", "operand 0 is f32x1, not i1");
  BAD("%310 = splat %201 : f32x8\n", "operand 0");
  BAD("%310 = extract %201, 4 : f32\n", "lane 4 of 4");
  BAD("%310 = reduce %201, divide : f32\n", "cannot reduce");
  BAD("%310 = bitcast %200 : i64\n", "differ in bits");
  BAD("%310 = shuffle %201, %201, [0, 8] : f32x2\n", "lane 1 of the table");
  BAD("%310 = load @x[%0] : f64\n", "elements are f32");
  BAD("store @x[%0], %200\n", "read-only");
  BAD("store @y[%0], %0\n", "operand 2 is index");
  BAD("%310 = load @t[%0] : f32\n", "an element has 4 lanes");
  BAD("if %200 {\n}\n", "operand 0");
}

static void test_bounds(void** state) {
  (void)state;
  GOOD("%310 = load @x[%7] : f32\n");
  BAD("%310 = load @x[%8] : f32\n", "elements 8 to 8 leave @x of 8");
  BAD("%310 = load @x[%4] : f32x8\n", "elements 4 to 11 leave @x");
  BAD("store @y[%300], %202\nstore @y[%99], %202\n", "99 to 106");
  BAD("%310 = madi %300, 5, %0 : index\nstore @y[%310], %200\n",
      "0 to 120 leave @y");
  BAD("%310 = madi %300, -1, %4 : index\nstore @y[%310], %200\n",
      "elements -20");
  // Tails by mask, by `if`, and by a loop that steps.
  GOOD(
      "%310 = madi %300, 8, %0 : index\n%311 = mask %310, %100 : i1x8\n"
      "store @y[%310], %202, mask %311\n");
  BAD("%310 = madi %300, 8, %0 : index\n%311 = mask %300, %100 : i1x8\n"
      "store @y[%310], %202, mask %311\n",
      "leave @y");
  GOOD(
      "%310 = madi %300, 5, %0 : index\n%311 = lt %310, %100 : i1\n"
      "if %311 {\nstore @y[%310], %200\n}\n");
  BAD("%310 = madi %300, 5, %0 : index\n%311 = lt %310, %100 : i1\n"
      "if %311 {\n} else {\nstore @y[%310], %200\n}\n",
      "leave @y");
  GOOD(
      "%310 = madi %300, 5, %0 : index\n%311 = lt %99, %310 : i1\n"
      "if %311 {\n} else {\nstore @y[%310], %200\n}\n");
  GOOD(
      "%310 = for %0 to %99 step 8 serial : index {\n"
      "%311 = mask %310, %99 : i1x8\nstore @y[%310], %202, mask %311\n}\n");
  // A column's mask guards the row-major index: rows 0..24 of 4 columns.
  GOOD(
      "%310 = for %0 to %8 step 8 serial : index {\n"
      "%311 = mask %310, %4 : i1x8\n%312 = madi %300, 4, %310 : index\n"
      "store @y[%312], %202, mask %311\n}\n");
  // The condition is on a sum that the address has in another order.
  GOOD(
      "%310 = for %0 to %8 step 1 serial : index {\n"
      "%311 = madi %310, 1, %300 : index\n%312 = lt %311, %25 : i1\n"
      "if %312 {\n%313 = madi %300, 4, %0 : index\n"
      "%314 = madi %310, 4, %313 : index\nstore @y[%314], %201\n}\n}\n");
}

static void test_conditions(void** state) {
  (void)state;
  // Both bounds by one condition; its complement in the other branch.
  GOOD(
      "%310 = const -3 : index\n%311 = madi %300, 1, %310 : index\n"
      "%312 = ge %311, %0 : i1\n%313 = lt %311, %8 : i1\n"
      "%314 = and %312, %313 : i1\nif %314 {\n"
      "%315 = load @x[%311] : f32\n}\n");
  GOOD(
      "%310 = const -3 : index\n%311 = madi %300, 1, %310 : index\n"
      "%312 = lt %311, %0 : i1\n%313 = ge %311, %8 : i1\n"
      "%314 = or %312, %313 : i1\nif %314 {\n} else {\n"
      "%315 = load @x[%311] : f32\n}\n");
  GOOD(
      "%310 = lt %300, %8 : i1\n%311 = select %310, %300, %7 : index\n"
      "%312 = load @x[%311] : f32\n");
  // A branch that is never taken may hold anything.
  GOOD(
      "%310 = gt %300, %99 : i1\nif %310 {\n"
      "%311 = load @x[%100] : f32\n}\n");
}

// What is known of x and of x % c is known of x / c: the condition is on 2 g +
// b + 1, from |least| to 7, the address |times| (g + (b + 1) / 2) - 3.
static pestle_status_t verify_quotient(int least, const char* where, int times,
                                       const char* end) {
  char body[1024];
  snprintf(body, sizeof body,
           "%%300 = for %%0 to %%25 step 1 group.x : index {\n%%310 = for %%0 "
           "to %%4 step 1 serial : index {\n"
           "%%311 = madi %%310, 1, %%1 : index\n"
           "%%312 = madi %%300, 2, %%311 : index\n"
           "%%313 = const %d : index\n%%314 = ge %%312, %%313 : i1\n"
           "%%315 = lt %%312, %%8 : i1\n%%316 = and %%314, %%315 : i1\n"
           "if %%316 {\n%%317 = const 2 : index\n"
           "%%318 = remainder %%311, %%317 : index\n"
           "%%319 = lt %%318, %%1 : i1\n%s"
           "%%320 = divide %%311, %%317 : index\n"
           "%%321 = madi %%320, 1, %%300 : index\n"
           "%%322 = const -3 : index\n"
           "%%323 = madi %%321, %d, %%322 : index\n"
           "%%324 = load @x[%%323] : f32\n%s}\n}\n}\n",
           least, where, times, end);
  return verify(body);
}

static void test_quotients(void** state) {
  (void)state;
  assert_ok(verify_quotient(2, "if %319 {\n", 3, "}\n"));
  assert_error(verify_quotient(1, "", 3, ""), INTERNAL, "elements -3 to 7");
  assert_error(verify_quotient(2, "if %319 {\n", 4, "}\n"), INTERNAL,
               "leave @x");
}

// What a quotient and its remainder say of each other ends with their regions, and
// is of no vector's lanes.
static void test_ended_quotients(void** state) {
  (void)state;
  BAD("%310 = const 6 : index\n%311 = lt %300, %310 : i1\nif %311 {\n"
      "%312 = remainder %300, %8 : index\n%313 = load @x[%312] : f32\n}\n"
      "%314 = lt %300, %7 : i1\nif %314 {\n} else {\n"
      "%315 = divide %300, %8 : index\n%316 = const -1 : index\n"
      "%317 = madi %315, 1, %316 : index\n%318 = load @x[%317] : f32\n}\n",
      "elements -1 to 2");
  BAD("%310 = const 6 : index\n%311 = lt %300, %310 : i1\nif %311 {\n"
      "%312 = remainder %300, %8 : index\n} else {\n"
      "%315 = divide %300, %8 : index\n%316 = const -1 : index\n"
      "%317 = madi %315, 1, %316 : index\n%318 = load @x[%317] : f32\n}\n",
      "elements -1 to 2");
  BAD("%310 = const 8 : i32x8\n%311 = iota : i32x8\n"
      "%312 = divide %311, %310 : i32x8\n%313 = load @x[%0] : f32x16\n",
      "elements 0 to 15");
}

static void test_clamps(void** state) {
  (void)state;
  GOOD("%310 = minimum %300, %7 : index\n%311 = load @x[%310] : f32\n");
  GOOD("%310 = divide %300, %4 : index\n%311 = load @x[%310] : f32\n");
  GOOD("%310 = remainder %300, %8 : index\n%311 = load @x[%310] : f32\n");
  BAD("%310 = load @i[%0] : i32\n%311 = cast %310 : index\n"
      "%312 = load @x[%311] : f32\n",
      "leave @x");
  GOOD(
      "%310 = load @i[%0] : i32\n%311 = cast %310 : index\n"
      "%312 = maximum %311, %0 : index\n%313 = minimum %312, %7 : index\n"
      "%314 = load @x[%313] : f32\n");
  BAD("%310 = param 0 : index\n%311 = load @x[%310] : f32\n", "not bounded");
  GOOD(
      "%310 = param 0 : index\n%311 = clamp %0, %310, %7 : index\n"
      "%312 = load @x[%311] : f32\n");
  // One index a lane.
  GOOD(
      "%310 = load @i[%0] : i32x4\n%311 = const 0 : i32x4\n"
      "%312 = const 7 : i32x4\n%313 = clamp %311, %310, %312 : i32x4\n"
      "%314 = gather @x[%313] : f32x4\n");
  BAD("%310 = load @i[%0] : i32x4\n%314 = gather @x[%310] : f32x4\n",
      "leave @x");
  GOOD(
      "%310 = load @i[%0] : i32x4\n%311 = const 0 : i32x4\n"
      "%312 = const 7 : i32x4\n%313 = ge %310, %311 : i1x4\n"
      "%314 = le %310, %312 : i1x4\n%315 = and %313, %314 : i1x4\n"
      "%316 = gather @x[%310], mask %315 : f32x4\n");
  GOOD(
      "%310 = iota : indexx4\n%311 = splat %300 : indexx4\n"
      "%312 = const 4 : indexx4\n%313 = multiply %311, %312 : indexx4\n"
      "%314 = add %313, %310 : indexx4\n%315 = gather @y[%314] : f32x4\n");
}

// No bit of an xor is above the highest of either operand.
static void test_joined_bits(void** state) {
  (void)state;
  GOOD(
      "%310 = remainder %300, %4 : index\n%311 = xor %310, %7 : index\n"
      "%312 = load @x[%311] : f32\n");
  GOOD(
      "%310 = remainder %300, %4 : index\n%311 = or %310, %4 : index\n"
      "%312 = load @x[%311] : f32\n");
  BAD("%310 = remainder %300, %4 : index\n%311 = xor %310, %8 : index\n"
      "%312 = load @x[%311] : f32\n",
      "leave @x");
  BAD("%310 = subtract %300, %1 : index\n%311 = or %310, %1 : index\n"
      "%312 = load @x[%311] : f32\n",
      "not bounded");
}

static void test_private(void** state) {
  (void)state;
  GOOD(
      "alloc @t\n%310 = for %0 to %1 step 1 unroll : index {\n"
      "store @t[%310], %201\n}\n");
  BAD("alloc @t\n%310 = for %0 to %1 step 1 serial : index {\n"
      "store @t[%310], %201\n}\n",
      "not constant once unrolled");
  BAD("%310 = for %0 to %300 step 1 unroll : index {\n}\n",
      "bounds of an unrolled loop");
  BAD("alloc @x\n", "not private");
}

// What a thread multiplies in matrix registers.
static void test_matrix_registers(void** state) {
  (void)state;
  const char* const head =
      "kernel @k(\n    @g : global bf16[1024] readonly,\n"
      "    @o : global f32[1024],\n    @s : shared ui8[2048]) {\n"
      "%0 = const 0 : index\n%1 = const 1 : index\n%512 = const 512 : index\n"
      "%513 = const 513 : index\n%95 = const -1 : index\n"
      "%97 = for %0 to %1 step 1 group.x : index {\n";
  static const struct {
    const char *body, *rule;  // NULL: it is sound
  } rows[] = {
      {"mreg_zero 7\n", NULL},
      {"mreg_zero 8\n", "no matrix register 8"},
      {"mreg_load @g, %512, 32, 0\n", NULL},
      {"mreg_load @g, %513, 32, 0\n", "up to 1024 leave @g"},
      {"mreg_load @g, %0, 68, 0\n", "up to 1051 leave @g"},
      {"mreg_load @g, %95, 32, 0\n", "below 0"},
      {"mreg_load @g, %0, 31, 0\n", "rows overlap"},
      {"mreg_load @g, %0, 32, 8\n", "no matrix register 8"},
      {"mreg_load @s, %512, 64, 3\n", NULL},
      {"mreg_stream @s, %512, 64, 3\n", NULL},
      {"mreg_stream @g, %513, 32, 0\n", "up to 1024 leave @g"},
      {"mreg_store @s, %0, 64, 3\n", NULL},
      {"mreg_store @o, %512, 32, 3\n", NULL},
      {"mreg_store @g, %0, 32, 3\n", "only read"},
      {"mreg_mma 0, 1, 2, 0\n", NULL},
      {"mreg_mma 0, 1, 2, 7\n", NULL},
      {"mreg_mma 0, 1, 1, 0\n", "must be three"},
      {"mreg_mma 0, 8, 1, 0\n", "no matrix register 8"},
      {"mreg_mma 0, 1, 2, 1\n", "no such product"},
      {"%98 = for %0 to %1 step 1 lane.x : index {\nmreg_zero 0\n}\n",
       "not of lanes"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
    expect_rule(head, rows[i].body, "}\n}\n", rows[i].rule);
}

// What lanes of a subgroup multiply together, and how it gets there.
static void test_units(void** state) {
  (void)state;
  const char* const head =
      "kernel @k(\n    @g : global bf16[64] readonly,\n"
      "    @s : shared bf16[64],\n    @w : shared f32[64],\n"
      "    @b : shared i8[64]) {\n%94 = const 0 : i32x4\n"
      "%0 = const 0 : index\n%1 = const 1 : index\n%32 = const 32 : index\n"
      "%56 = const 56 : index\n%57 = const 57 : index\n"
      "%90 = const 0 : ui32x4\n%91 = const 0 : ui32x2\n"
      "%92 = const 0.0 : f32x4\n%93 = const 0.0 : f32x2\n"
      "%95 = const -1 : index\n"
      "%97 = for %0 to %1 step 1 group.x : index {\n"
      "%98 = for %0 to %32 step 1 lane.x : index {\n";
  static const struct {
    const char *body, *rule;  // NULL: it is sound
  } rows[] = {
      {"%99 = mma %90, %91, %92, 0 : f32x4\n", NULL},
      {"%99 = mma %90, %91, %92, 3 : f32x4\n", NULL},
      {"%99 = mma %90, %91, %92, 11 : f32x4\n", NULL},
      {"%99 = mma %90, %91, %92, 12 : f32x4\n", "f32x4 of floats"},
      {"%99 = mma %90, %91, %94, 7 : i32x4\n", NULL},
      {"%99 = mma %90, %91, %94, 8 : i32x4\n", "i32x4 of bytes"},
      {"%99 = mma %90, %91, %92, 4 : f32x4\n", "i32x4 of bytes"},
      {"%99 = mma %90, %91, %92, 4 : i32x4\n", "operand 2 is"},
      {"%99 = mma %93, %93, %93, 2 : f32x2\n", NULL},
      {"%99 = mma %93, %93, %93, 2 : f32x4\n", "8 x 8 must be f32x2"},
      {"%99 = mma %91, %93, %93, 2 : f32x2\n", "operand 0 is"},
      {"%99 = mma %93, %92, %93, 2 : f32x2\n", "operand 1 is"},
      {"%99 = mma %93, %93, %92, 2 : f32x2\n", "operand 2 is"},
      {"%99 = mma %90, %90, %92, 0 : f32x4\n", "operand 1 is"},
      {"%99 = mma %90, %91, %93, 0 : f32x2\n", "must be f32x4"},
      {"%99 = eq %98, %0 : i1\nif %99 {\n"
       "%100 = mma %90, %91, %92, 0 : f32x4\n}\n",
       "not every lane gets here"},
      {"%99 = ldmatrix @s, %56, 1 : ui32x4\n", NULL},
      {"%99 = ldmatrix @s, %57, 0 : ui32x4\n", "up to 64 leave @s"},
      {"%99 = ldmatrix @s, %95, 0 : ui32x4\n", "below 0"},
      {"%99 = ldmatrix @w, %0, 0 : ui32x4\n", NULL},
      {"%99 = ldmatrix @w, %0, 1 : ui32x4\n", "elements of two bytes"},
      {"%99 = ldmatrix @b, %56, 0 : ui32x4\n", "up to 71 leave @b"},
      {"%99 = ldmatrix @b, %32, 0 : ui32x4\n", NULL},
      {"%99 = ldmatrix @b, %32, 1 : ui32x4\n", "elements of two bytes"},
      {"%99 = ldmatrix @g, %0, 0 : ui32x4\n", "must be shared"},
      {"%99 = ldmatrix @s, %0, 0 : f32x4\n", "words of ui32"},
      {"copy_async @s, %56, @g, %56, 8\ncopy_commit\ncopy_wait 0\n", NULL},
      {"copy_async @s, %56, @g, %95, 8\n", NULL},  // zeros
      {"copy_async @s, %57, @g, %56, 8\n", "up to 64 leave @s"},
      {"copy_async @s, %56, @g, %57, 8\n", "up to 64 leave @g"},
      {"copy_async @s, %95, @g, %0, 8\n", "below 0"},
      {"copy_async @s, %0, @g, %0, 1\n", "4, 8 or 16 bytes, not 2"},
      {"copy_async @w, %0, @g, %0, 4\n", "to a shared one alike"},
      {"copy_async @s, %0, @s, %0, 8\n", "from a global buffer"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
    expect_rule(head, rows[i].body, "}\n}\n}\n", rows[i].rule);
}

// Products of warpgroups in registers, words of a subgroup, sums by all lanes.
static void test_warpgroups(void** state) {
  (void)state;
  const char* const head =
      "kernel @k(\n    @g : global i32[8],\n    @r : global i32[8] readonly,\n"
      "    @t : shared bf16[4096] align 1024,\n    @n : shared i32[8],\n"
      "    @sums : private f32x4[8],\n    @few : private f32[8],\n"
      "    @whole : private i32x4[8],\n"
      "    @words : private ui32x4[2]) {\n"
      "%0 = const 0 : index\n%1 = const 1 : index\n%8 = const 8 : index\n"
      "%128 = const 128 : index\n%32 = const 32 : index\n"
      "%90 = const 0 : ui32x4\n%91 = const 7 : i32\n%96 = const 1 : i1\n"
      "%97 = for %0 to %1 step 1 group.x : index {\n"
      "%98 = for %0 to %128 step 1 lane.x : index {\n"
      "%99 = ref @t, %0 : addr\n%100 = load @words[%1] : ui32x4 align 16\n"
      "%101 = divide %98, %32 : index\n%102 = eq %101, %0 : i1\n"
      "%103 = remainder %98, %32 : index\n%104 = eq %103, %0 : i1\n";
  static const struct {
    const char *body, *rule;  // NULL: it is sound
  } rows[] = {
      {"wgmma @sums, %99, %99, 64\n", NULL},
      {"wgmma @sums, %99, %99, 524352\n", NULL},    // 64, zero
      {"wgmma @sums, %99, %99, 16777280\n", NULL},  // 64, rows of 64 bytes
      {"wgmma @sums, %99, %99, 50331712\n", "no such swizzle"},
      {"wgmma @sums, %99, %99, 4194368\n", "of bytes i32"},  // 64, of u8
      {"wgmma @whole, %99, %99, 7340096\n", NULL},           // 64, of i8
      {"wgmma @whole, %99, %99, 64\n", "private f32"},
      {"wgmma @whole, %99, %99, 7471168\n", "lie along k"},   // b transposed
      {"wgmma @whole, %99, %99, 7602240\n", "lie along k"},   // and of f16
      {"wgmma @sums, %99, %99, 1048640\n", "lie along k"},    // type 1
      {"wgmma @whole, %99, %99, 15728704\n", "lie along k"},  // type 15
      {"wgmma @sums, %99, %99, 12582976\n", "of bytes i32"},  // type 12
      {"wgmma @sums, %99, %99, 8388672\n", NULL},             // of f8E4M3FN
      {"wgmma @sums, %99, %99, 10485824\n", NULL},            // and f8E5M2
      {"wgmma @whole, %99, %99, 8388672\n", "private f32"},
      {"wgmma @sums, %99, %99, 8519744\n", "lie along k"},  // b transposed
      {"wgmma @sums, %99, %99, 3145792\n", NULL},           // of f32
      {"wgmma @sums, %99, %99, 2097216\n", "lie along k"},  // type 2
      {"wgmma @sums, %99, %99, 16908352\n", "no such swizzle"},
      {"wgmma @sums, %99, %99, 1048640\n", "operands are f16 or bf16"},
      {"wgmma @few, %99, %99, 64\n", "n / 2 private f32"},
      {"wgmma_ra @sums, %100, %99, 131136\n", NULL},  // 64, b transposed
      {"wgmma_ra @sums, %100, %99, 65600\n", "cannot be transposed"},
      {"wgmma_ra @sums, %90, %99, 64\n", "loaded from a private buffer"},
      {"wgmma_ra @sums, %99, %99, 64\n", "operand 1 is"},
      {"sync_arrive %1, 128\n", NULL},
      {"sync_arrive %91, 128\n", "operand 0 is"},
      {"stmatrix @t, %8, %100, 0\n", NULL},
      {"if %102 {\nstmatrix @t, %8, %100, 1\n}\n", NULL},
      {"if %104 {\nstmatrix @t, %8, %100, 1\n}\n", "not every lane gets here"},
      {"stmatrix @n, %0, %100, 0\n", "elements of two bytes"},
      {"stmatrix @t, %0, %91, 0\n", "operand 2 is"},
      {"%105 = sg_ballot %96 : ui32\n", NULL},
      {"if %102 {\n%105 = sg_ballot %104 : ui32\n}\n", NULL},
      {"if %104 {\n%105 = sg_ballot %96 : ui32\n}\n", "not every lane"},
      {"%105 = sg_ballot %91 : ui32\n", "operand 0 is"},
      {"%105 = sg_ballot %96 : i32\n", "one word of ui32"},
      {"if %102 {\n%105 = sg_reduce %91, add, 32 : i32\n}\n", NULL},
      {"if %102 {\nbarrier\n}\n", "not every lane gets here"},
      {"%105 = atomic_add @g, %1, %91 : i32\n", NULL},
      {"%105 = atomic_add @n, %1, %91 : i32\n", NULL},
      {"%105 = atomic_add @g, %8, %91 : i32\n", "leave @g"},
      {"%105 = atomic_add @r, %1, %91 : i32\n", "may be written"},
      {"%105 = atomic_add @t, %1, %91 : i32\n", "adds to an i32"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
    expect_rule(head, rows[i].body, "}\n}\n}\n", rows[i].rule);
}

// Lanes along y are whole subgroups where those along x are.
static void test_rows_of_lanes(void** state) {
  (void)state;
  const char* const head =
      "kernel @k(@g : global i32[8]) {\n%%0 = const 0 : index\n"
      "%%1 = const 1 : index\n%%4 = const 4 : index\n"
      "%%5 = const %d : index\n%%91 = const 7 : i32\n"
      "%%97 = for %%0 to %%1 step 1 group.x : index {\n"
      "%%98 = for %%0 to %%4 step 1 lane.y : index {\n"
      "%%99 = for %%0 to %%5 step 1 lane.x : index {\n"
      "%%100 = lt %%98, %%1 : i1\n%%101 = lt %%99, %%1 : i1\n";
  static const struct {
    int lanes;
    const char *body, *rule;  // NULL: it is sound
  } rows[] = {
      {64, "if %100 {\n%102 = sg_reduce %91, add, 32 : i32\n}\n", NULL},
      {64, "if %100 {\nbarrier\n}\n", "not every lane gets here"},
      {64, "if %101 {\n%102 = sg_reduce %91, add, 32 : i32\n}\n", "not every"},
      {16, "if %100 {\n%102 = sg_reduce %91, add, 16 : i32\n}\n", "not every"},
      {48, "if %100 {\n%102 = sg_reduce %91, add, 16 : i32\n}\n", "not every"},
  };
  char text[640];
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    snprintf(text, sizeof text, head, rows[i].lanes);
    expect_rule(text, rows[i].body, "}\n}\n}\n}\n", rows[i].rule);
  }
}

// What a kernel may do before it waits for the one in front.
static void test_grid_wait(void** state) {
  (void)state;
  const char* const head =
      "kernel @k(\n    @g : global f32[8],\n    @r : global f32[8] readonly,\n"
      "    @t : shared f32[64]) {\n"
      "%0 = const 0 : index\n%1 = const 1 : index\n"
      "%32 = const 32 : index\n%33 = const 0 : f32\n"
      "%97 = for %0 to %1 step 1 group.x : index {\n"
      "%99 = for %0 to %32 step 1 lane.x : index {\n"
      "%100 = eq %99, %0 : i1\n";
  static const struct {
    const char *body, *rule;  // NULL: it is sound
  } rows[] = {
      {"prefetch @g[%0]\ngrid_wait\nstore @g[%0], %33\n", NULL},
      {"if %100 {\nprefetch @g[%0]\n}\nstore @t[%99], %33\ngrid_wait\n", NULL},
      {"%101 = load @g[%0] : f32\ngrid_wait\n", "read or written before it"},
      {"store @g[%0], %33\ngrid_wait\n", "read or written before it"},
      {"if %100 {\n%101 = load @g[%0] : f32\n}\ngrid_wait\n",
       "read or written before it"},
      {"copy_async @t, %99, @r, %0, 1\ncopy_commit\ngrid_wait\ncopy_wait 0\n",
       NULL},
      {"copy_async @t, %99, @g, %0, 1\ngrid_wait\n",
       "read or written before it"},
      {"%101 = load @r[%0] : f32\ngrid_wait\n", NULL},
      {"grid_wait\ngrid_wait\n", "a kernel has one"},
      {"if %100 {\ngrid_wait\n}\n", "directly under the lane loops"},
      {"%101 = for %0 to %32 step 1 serial : index {\ngrid_wait\n}\n",
       "directly under the lane loops"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
    expect_rule(head, rows[i].body, "}\n}\n}\n", rows[i].rule);
}

// What groups of a cluster do to each other.
static void test_clusters(void** state) {
  (void)state;
  const char* const head =
      "kernel @k(\n    @g : global f32[8],\n    @t : shared f32[64],\n"
      "    @bar : shared mbar[1]) {\n"
      "%0 = const 0 : index\n%1 = const 1 : index\n%2 = const 2 : index\n"
      "%3 = const 3 : index\n%32 = const 32 : index\n"
      "%97 = for %0 to %1 step 1 group.x : index {\n"
      "%98 = for %0 to %2 step 1 cluster : index {\n"
      "%99 = for %0 to %32 step 1 lane.x : index {\n"
      "%100 = ref @t, %0 : addr\n%101 = eq %98, %0 : i1\n"
      "%102 = load @t[%0] : f32\n%103 = gt %102, %102 : i1\n"
      "%104 = eq %99, %0 : i1\n%105 = load @g[%0] : f32\n"
      "%106 = gt %105, %105 : i1\n";
  static const struct {
    const char *body, *rule;  // NULL: it is sound
  } rows[] = {
      {"cluster_sync\n", NULL},
      {"if %106 {\ncluster_sync\n}\n", NULL},
      {"if %101 {\nbarrier\n}\n", NULL},
      {"if %103 {\nbarrier\n}\n", NULL},
      {"if %101 {\ncluster_sync\n}\n", "not every lane gets here"},
      {"if %103 {\ncluster_sync\n}\n", "not every lane gets here"},
      {"if %104 {\ncluster_sync\n}\n", "not every lane gets here"},
      {"cluster_sync\n%107 = ref_at %100, %98 : addr\n"
       "%108 = load_at %107, %0 : f32x2\ncluster_sync\n",
       NULL},
      {"%107 = ref_at %100, %98 : addr\n%108 = load_at %107, %0 : f32x2\n"
       "cluster_sync\n",
       "no cluster_sync before"},
      {"cluster_sync\n%107 = ref_at %100, %98 : addr\n"
       "%108 = load_at %107, %0 : f32x2\n",
       "no cluster_sync behind"},
      {"cluster_sync\n%107 = ref_at %100, %3 : addr\ncluster_sync\n",
       "groups 3 to 3 of a cluster of 2"},
      {"cluster_sync\n%107 = ref_at %0, %0 : addr\n", "operand 0 is"},
      {"cluster_sync\n%107 = ref_at %100, %0 : addr\n"
       "%108 = ref_at %107, %0 : addr\n",
       "no ref of this group's memory"},
      {"%107 = load_at %0, %0 : f32\n", "operand 0 is"},
      {"%107 = for %0 to %2 step 1 cluster : index {\n}\n",
       "one cluster loop stands directly under"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
    expect_rule(head, rows[i].body, "}\n}\n}\n}\n", rows[i].rule);
  const char* const outside =
      "kernel @k(\n    @g : global f32[8]) {\n%0 = const 0 : index\n"
      "%1 = const 1 : index\n%3 = const 3 : index\n"
      "%4 = for %0 to %1 step 1 group.x : index {\n";
  expect_rule(outside, "%5 = for %0 to %3 step 1 cluster : index {\n}\n",
              "}\n}\n", "to 1, 2, 4 or 8");
  expect_rule(outside, "%5 = for %0 to %1 step 1 cluster : index {\n}\n",
              "}\n}\n", NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_structure),
      cmocka_unit_test(test_types),
      cmocka_unit_test(test_bounds),
      cmocka_unit_test(test_conditions),
      cmocka_unit_test(test_quotients),
      cmocka_unit_test(test_ended_quotients),
      cmocka_unit_test(test_clamps),
      cmocka_unit_test(test_private),
      cmocka_unit_test(test_joined_bits),
      cmocka_unit_test(test_units),
      cmocka_unit_test(test_warpgroups),
      cmocka_unit_test(test_rows_of_lanes),
      cmocka_unit_test(test_grid_wait),
      cmocka_unit_test(test_clusters),
      cmocka_unit_test(test_matrix_registers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
