// SPDX-License-Identifier: Apache-2.0
// Integers of 64 bits as pairs of words: a kernel and what legalisation makes of it
// for a target without them give the same bits in the interpreter, and nothing of 64
// bits is left.
#include <math.h>

#include "codegen/kir/kir_internal.h"
#include "unit/codegen/kir_test.h"
#include "unit/codegen/legalise_oom.h"

static pestle_target_caps_t caps_of(const char* cpu) {
  pestle_allocator_t memory = pestle_allocator_system();
  pestle_host_t host = kir_test_host(&memory);
  pestle_status_t status = NULL;
  const pestle_backend_t* ref = pestle_ref_backend_init(&host, &status);
  pestle_target_caps_t caps = {.struct_size = sizeof caps};
  assert_ok(ref->target->describe(ref->self, cpu, &caps));
  ref->deinit(ref->self);
  return caps;
}

// Numbers around every place where a word or a number ends, and some between.
enum { EDGES = 44, COUNT = EDGES * EDGES };
static uint64_t edges[EDGES];

static int set_up(void** state) {
  static const uint64_t some[] = {0,  1,  2,  3, 31, 32,     33,
                                  63, 64, 65, 7, 10, 1000003};
  size_t n = 0;
  (void)state;
  for (size_t i = 0; i < sizeof some / sizeof *some; ++i)
    edges[n++] = some[i];
  for (int bit = 15; bit < 64; bit += 16) {
    uint64_t power = UINT64_C(1) << bit;
    const uint64_t near[] = {power - 1, power, power + 1, 0 - power,
                             2 * power - 1};
    for (int i = 0; i < 5; ++i)
      edges[n++] = near[i];
  }
  edges[n++] = UINT64_MAX;
  edges[n++] = UINT64_C(0x8000000000000001);
  uint64_t state_of = 5;
  while (n < EDGES) {
    state_of = state_of * UINT64_C(6364136223846793005) + 1442695040888963407u;
    edges[n++] = state_of ^ state_of >> 31;
  }
  return 0;
}

// Runs |text| as it is and as legalised for |cpu|; outputs are compared. |buffers|
// are inputs but for the |outputs| last ones, of |bytes| each.
enum { MOST = 6, ROOM = COUNT * 8 };
typedef struct run_t {
  const void* inputs[MOST];
  int input_count, output_count;
  size_t bytes[MOST];
  int64_t groups;
} run_t;

static void assert_narrow(const pestle_kir_t* k) {
  for (uint32_t i = 0; i < k->inst_count; ++i) {
    unsigned type = pestle_kir_inst(k, i)->type;
    assert_true(type != PESTLE_I64 && type != PESTLE_U64);
  }
  for (uint32_t i = 0; i < k->buffer_count; ++i) {
    unsigned type = pestle_kir_buffer(k, i)->dtype;
    assert_true(type != PESTLE_I64 && type != PESTLE_U64);
  }
}

static void compare(const char* text, const char* cpu, const run_t* run) {
  static uint64_t want[MOST][COUNT], got[MOST][COUNT];
  pestle_kir_builder_t k, legal;
  pestle_target_caps_t caps = caps_of(cpu);
  int32_t trap = 0;
  void *native[2 * MOST], *lesser[2 * MOST];
  assert_ok(pestle_kir_parse(pestle_allocator_system(), text, strlen(text),
                             "wide", &k));
  assert_ok(pestle_kir_verify(&k.view));
  assert_ok(
      pestle_kir_legalise(&k.view, &caps, PESTLE_NUMERICS_DEFAULT, &legal));
  assert_ok(pestle_kir_verify(&legal.view));
  assert_narrow(&legal.view);
  memset(want, 0, sizeof want);
  memset(got, 0, sizeof got);
  for (int i = 0; i < run->input_count; ++i)
    native[i] = lesser[i] = (void*)(uintptr_t)run->inputs[i];
  for (int i = 0; i < run->output_count; ++i) {
    native[run->input_count + i] = want[i];
    lesser[run->input_count + i] = got[i];
  }
  assert_ok(kir_test_run(&k.view, native, NULL, 0, run->groups, &trap));
  assert_int_equal(trap, 0);
  assert_ok(kir_test_run(&legal.view, lesser, NULL, 0, run->groups, &trap));
  assert_int_equal(trap, 0);
  for (int i = 0; i < run->output_count; ++i) {
    for (size_t at = 0; at < run->bytes[i]; ++at) {
      if (((uint8_t*)want[i])[at] == ((uint8_t*)got[i])[at]) continue;
      fail_msg("%s: output %d, byte %zu: %02x, not %02x\n%s", cpu, i, at,
               ((uint8_t*)got[i])[at], ((uint8_t*)want[i])[at], text);
    }
  }
  pestle_kir_deinit(&legal);
  pestle_kir_deinit(&k);
}

// --- Rows ---

static uint64_t x_data[COUNT], y_data[COUNT], z_data[COUNT];
static uint8_t which_data[COUNT];

// Every pair of edges.
static void fill_pairs(void) {
  for (int i = 0; i < COUNT; ++i) {
    x_data[i] = edges[i / EDGES];
    y_data[i] = edges[i % EDGES];
    z_data[i] = edges[(i * 7 + 3) % EDGES];
    which_data[i] = i % 3 == 0;
  }
}

static void compare_row(pestle_op_t op, const char* type, unsigned lanes) {
  char text[4096], suffix[12] = "";
  const pestle_op_info_t* info = pestle_op_info(op);
  bool selects = info->rule == PESTLE_RULE_SELECT;
  bool predicate =
      info->rule == PESTLE_RULE_COMPARE || info->rule == PESTLE_RULE_TEST;
  const char* operands[] = {"%3", "%3, %4", "%3, %4, %5"};
  if (lanes > 1) snprintf(suffix, sizeof suffix, "x%u", lanes);
  snprintf(text, sizeof text,
           "kernel @row(@x : global %s[%d] readonly,\n"
           "    @y : global %s[%d] readonly, @z : global %s[%d] readonly,\n"
           "    @r : global %s[%d], @t : private %s%s[1]) {\n"
           "  %%0 = const 0 : index\n  %%1 = const %d : index\n"
           "  %%2 = for %%0 to %%1 step 1 group.x : index {\n"
           "    %%9 = madi %%2, %u, %%0 : index\n"
           "    %%3 = load @x[%%9] : %s%s align 1\n"
           "    %%4 = load @y[%%9] : %s%s align 1\n"
           "    %%5 = load @z[%%9] : %s%s align 1\n"
           "    alloc @t\n"
           "    %%6 = %s %s : %s%s\n"
           "    store @t[%%0], %%6 align 1\n"
           "    %%7 = load @t[%%0] : %s%s align 1\n"
           "    store @r[%%9], %%7 align 1\n"
           "  }\n}\n",
           selects ? "i1" : type, COUNT, type, COUNT, type, COUNT,
           predicate ? "i1" : type, COUNT, predicate ? "i1" : type, suffix,
           COUNT / (int)lanes, lanes, selects ? "i1" : type, suffix, type,
           suffix, type, suffix,
           pestle_kir_op_info(pestle_kir_code(op)).mnemonic,
           operands[info->operands - 1], predicate ? "i1" : type, suffix,
           predicate ? "i1" : type, suffix);
  compare(text, "words",
          &(run_t){.inputs = {selects ? (void*)which_data : (void*)x_data,
                              y_data, z_data},
                   .input_count = 3,
                   .output_count = 1,
                   .bytes = {predicate ? COUNT : COUNT * 8},
                   .groups = COUNT / lanes});
}

static void test_rows(void** state) {
  (void)state;
  static const char* const types[] = {"i64", "ui64"};
  fill_pairs();
  for (int op = 0; op < (int)PESTLE_SCALAR_COUNT; ++op) {
    for (int t = 0; t < 2; ++t) {
      if (!pestle_dtype_is(t ? PESTLE_U64 : PESTLE_I64,
                           pestle_op_info((pestle_op_t)op)->kinds)) {
        continue;
      }
      compare_row((pestle_op_t)op, types[t], 1);
      compare_row((pestle_op_t)op, types[t], 4);
    }
  }
}

// --- Casts ---

static void compare_cast(const char* from, const char* to, const void* data,
                         size_t count, size_t to_size, unsigned lanes) {
  char text[1024], suffix[12] = "";
  if (lanes > 1) snprintf(suffix, sizeof suffix, "x%u", lanes);
  snprintf(text, sizeof text,
           "kernel @cast(@x : global %s[%zu] readonly, @y : global %s[%zu]) {\n"
           "  %%0 = const 0 : index\n  %%1 = const %zu : index\n"
           "  %%2 = for %%0 to %%1 step 1 group.x : index {\n"
           "    %%3 = madi %%2, %u, %%0 : index\n"
           "    %%4 = load @x[%%3] : %s%s align 1\n"
           "    %%5 = cast %%4 : %s%s\n"
           "    store @y[%%3], %%5 align 1\n"
           "  }\n}\n",
           from, count, to, count, count / lanes, lanes, from, suffix, to,
           suffix);
  compare(text, "words",
          &(run_t){.inputs = {data},
                   .input_count = 1,
                   .output_count = 1,
                   .bytes = {count * to_size},
                   .groups = (int64_t)(count / lanes)});
}

// Sums and products of edges, so that all roundings come up.
static void test_casts_from(void** state) {
  (void)state;
  static const struct {
    const char* name;
    size_t size;
  } to[] = {{"i1", 1},  {"i4", 1},   {"i8", 1},       {"ui8", 1},
            {"i16", 2}, {"ui16", 2}, {"i32", 4},      {"ui32", 4},
            {"i64", 8}, {"ui64", 8}, {"f16", 2},      {"bf16", 2},
            {"f32", 4}, {"f64", 8},  {"f8E4M3FN", 1}, {"f8E5M2", 1}};
  for (int i = 0; i < COUNT; ++i) {
    uint64_t a = edges[i / EDGES], b = edges[i % EDGES];
    x_data[i] = i % 2 ? a + b : (a >> i % 64) + (b & 1);
  }
  for (size_t t = 0; t < sizeof to / sizeof *to; ++t) {
    compare_cast("i64", to[t].name, x_data, COUNT, to[t].size, 1);
    compare_cast("ui64", to[t].name, x_data, COUNT, to[t].size, 4);
  }
}

static void test_casts_to(void** state) {
  (void)state;
  static const char* const from[] = {"i1",   "i4",  "i8",       "ui8",   "i16",
                                     "ui16", "i32", "ui32",     "f16",   "bf16",
                                     "f32",  "f64", "f8E4M3FN", "f8E5M2"};
  static uint8_t data[COUNT * 8];
  for (size_t t = 0; t < sizeof from / sizeof *from; ++t) {
    bool is_bool = !strcmp(from[t], "i1"), is_i4 = !strcmp(from[t], "i4");
    for (size_t i = 0; i < sizeof data; ++i) {
      uint64_t mixed = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
      data[i] = (uint8_t)(mixed >> 40);
      if (is_bool) data[i] &= 1;
      if (is_i4) data[i] = (uint8_t)((data[i] & 15) - 8);
    }
    compare_cast(from[t], "i64", data, COUNT, 8, 4);
    compare_cast(from[t], "ui64", data, COUNT, 8, 1);
  }
  // Floats near the ends of both, and between; infinities, NaN.
  float floats[96];
  double doubles[96];
  for (int i = 0; i < 96; ++i) {
    int power = i / 4 * 3;
    double value = ldexp(1 + (i % 2) * 0x1p-23, power);
    doubles[i] = i % 4 < 2 ? value : -value;
    if (i % 8 == 5) doubles[i] = nextafter(doubles[i], 0);
    if (i >= 90) doubles[i] = i % 2 ? (double)INFINITY : -(double)INFINITY;
    if (i == 95) doubles[i] = (double)NAN;
    if (i < 4) doubles[i] = (i - 1.5) / 4;
    floats[i] = (float)doubles[i];
  }
  for (int t = 0; t < 2; ++t) {
    const char* to = t ? "ui64" : "i64";
    compare_cast("f32", to, floats, 96, 8, 4);
    compare_cast("f64", to, doubles, 96, 8, 4);
  }
}

// --- Memory, lanes, reductions ---

static const char memory_text[] =
    "kernel @memory(@x : global %t[70] readonly, @i : global i64[80] "
    "readonly,\n"
    "    @y : global %t[70], @g : global %t[80], @s : global %t[80],\n"
    "    @r : global %t[40], @t : private %tx16[2], @h : shared %t[16]) {\n"
    "  %0 = const 0 : index\n"
    "  %1 = const 1 : index\n"
    "  %5 = const 5 : index\n"
    "  %6 = const 70 : index\n"
    "  %7 = for %0 to %5 step 1 group.x : index {\n"
    "    alloc @t\n"
    "    %8 = madi %7, 16, %0 : index\n"
    "    %9 = mask %8, %6 : i1x16\n"
    "    %10 = load @x[%8], mask %9 : %tx16 align 8\n"
    "    store @t[%1], %10 align 8\n"
    "    %11 = load @t[%1] : %tx16 align 8\n"
    "    %12 = iota : %tx16\n"
    "    %13 = add %11, %12 : %tx16\n"
    "    store @y[%8], %13, mask %9 align 8\n"
    "    %14 = load @i[%8] : i64x16 align 8\n"
    "    %15 = const 0 : i64x16\n"
    "    %16 = const 69 : i64x16\n"
    "    %17 = maximum %14, %15 : i64x16\n"
    "    %18 = minimum %17, %16 : i64x16\n"
    "    %19 = cast %18 : indexx16\n"
    "    %20 = gather @x[%19] : %tx16 align 8\n"
    "    store @g[%8], %20 align 8\n"
    "    %21 = iota : indexx16\n"
    "    %22 = splat %8 : indexx16\n"
    "    %23 = add %21, %22 : indexx16\n"
    "    %24 = const 79 : indexx16\n"
    "    %25 = subtract %24, %23 : indexx16\n"
    "    scatter @s[%25], %13\n"
    "    store @h[%0], %13 align 8\n"
    "    %26 = load @h[%5] : %t align 8\n"
    "    %27 = reduce %13, add : %t\n"
    "    %28 = reduce %13, maximum : %t\n"
    "    %29 = reduce %13, multiply : %t\n"
    "    %30 = reduce %13, xor : %t\n"
    "    %31 = extract %13, 13 : %t\n"
    "    %32 = insert %13, %27, 6 : %tx16\n"
    "    %33 = shuffle %32, %13, [7, 9, 22, 6] : %tx4\n"
    "    %34 = reduce %33, minimum : %t\n"
    "    %35 = splat %31 : %tx4\n"
    "    %36 = lt %33, %35 : i1x4\n"
    "    %37 = select %36, %33, %35 : %tx4\n"
    "    %38 = reduce %37, add : %t\n"
    "    %39 = madi %7, 8, %0 : index\n"
    "    %40 = madi %39, 1, %1 : index\n"
    "    %41 = madi %40, 1, %1 : index\n"
    "    %42 = madi %41, 1, %1 : index\n"
    "    %43 = madi %42, 1, %1 : index\n"
    "    %44 = madi %43, 1, %1 : index\n"
    "    %45 = madi %44, 1, %1 : index\n"
    "    store @r[%39], %27 align 8\n"
    "    store @r[%40], %28 align 8\n"
    "    store @r[%41], %29 align 8\n"
    "    store @r[%42], %30 align 8\n"
    "    store @r[%43], %34 align 8\n"
    "    store @r[%44], %38 align 8\n"
    "    store @r[%45], %26 align 8\n"
    "  }\n"
    "}\n";

// |text| with |type| for each "%t".
static char* with_type(const char* text, const char* type, char* out) {
  char* at = out;
  for (; *text; ++text) {
    if (text[0] == '%' && text[1] == 't' && (text[2] < 'a' || text[2] == 'x')) {
      at += sprintf(at, "%s", type);
      ++text;
    } else {
      *at++ = *text;
    }
  }
  *at = 0;
  return out;
}

static void test_memory(void** state) {
  (void)state;
  char text[2 * sizeof memory_text];
  int64_t index[80];
  for (int i = 0; i < 80; ++i) {
    x_data[i] = edges[i % EDGES] * (uint64_t)(i + 1);
    index[i] = i % 7 == 0 ? (int64_t)edges[i % EDGES] : (i * 37) % 70;
  }
  for (int t = 0; t < 2; ++t) {
    with_type(memory_text, t ? "ui64" : "i64", text);
    compare(text, "words",
            &(run_t){.inputs = {x_data, index},
                     .input_count = 2,
                     .output_count = 4,
                     .bytes = {70 * 8, 80 * 8, 80 * 8, 40 * 8},
                     .groups = 5});
  }
}

static const char lanes_text[] =
    "kernel @lanes(@x : global %t[64] readonly, @y : global %t[384]) {\n"
    "  %0 = const 0 : index\n"
    "  %1 = const 2 : index\n"
    "  %2 = const 32 : index\n"
    "  %3 = for %0 to %1 step 1 group.x : index {\n"
    "    %4 = for %0 to %2 step 1 lane.x : index {\n"
    "      %5 = madi %3, 32, %4 : index\n"
    "      %6 = load @x[%5] : %t align 8\n"
    "      %7 = madi %5, 6, %0 : index\n"
    "      %8 = sg_reduce %6, add, 32 : %t\n"
    "      store @y[%7], %8 align 8\n"
    "      %9 = const 1 : index\n"
    "      %10 = madi %7, 1, %9 : index\n"
    "      %11 = sg_reduce %6, maximum, 32 : %t\n"
    "      store @y[%10], %11 align 8\n"
    "      %12 = madi %10, 1, %9 : index\n"
    "      %13 = sg_reduce %6, minimum, 8 : %t\n"
    "      store @y[%12], %13 align 8\n"
    "      %14 = madi %12, 1, %9 : index\n"
    "      %15 = sg_reduce %6, xor, 4 : %t\n"
    "      store @y[%14], %15 align 8\n"
    "      %16 = madi %14, 1, %9 : index\n"
    "      %17 = sg_reduce %6, and, 2 : %t\n"
    "      store @y[%16], %17 align 8\n"
    "      %18 = madi %16, 1, %9 : index\n"
    "      %19 = divide %6, %8 : %t\n"
    "      store @y[%18], %19 align 8\n"
    "    }\n"
    "  }\n"
    "}\n";

static void test_subgroups(void** state) {
  (void)state;
  char text[2 * sizeof lanes_text];
  for (int i = 0; i < 64; ++i)
    x_data[i] = edges[(i * 5 + i / 7) % EDGES];
  for (int t = 0; t < 2; ++t) {
    with_type(lanes_text, t ? "ui64" : "i64", text);
    compare(text, "simtw",
            &(run_t){.inputs = {x_data},
                     .input_count = 1,
                     .output_count = 1,
                     .bytes = {384 * 8},
                     .groups = 2});
  }
}

// --- What there is no form of ---

static void test_unsupported(void** state) {
  (void)state;
  static const char text[] =
      "kernel @bits(@x : global f64[1] readonly, @y : global i64[1]) {\n"
      "  %0 = const 0 : index\n  %1 = const 1 : index\n"
      "  %2 = for %0 to %1 step 1 group.x : index {\n"
      "    %3 = load @x[%0] : f64 align 8\n"
      "    %4 = bitcast %3 : i64\n"
      "    store @y[%0], %4 align 8\n"
      "  }\n}\n";
  pestle_kir_builder_t k, legal;
  pestle_target_caps_t caps = caps_of("words");
  assert_ok(pestle_kir_parse(pestle_allocator_system(), text, strlen(text),
                             "bits", &k));
  assert_error(
      pestle_kir_legalise(&k.view, &caps, PESTLE_NUMERICS_DEFAULT, &legal),
      UNSUPPORTED, "has no bitcast on i64");
  pestle_kir_deinit(&k);
}

static void test_out_of_memory(void** state) {
  (void)state;
  char text[2 * sizeof memory_text];
  pestle_kir_builder_t k;
  pestle_target_caps_t caps = caps_of("words");
  with_type(memory_text, "i64", text);
  assert_ok(pestle_kir_parse(pestle_allocator_system(), text, strlen(text),
                             "memory", &k));
  legalise_out_of_memory(&k, &caps);
  pestle_kir_deinit(&k);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows),          cmocka_unit_test(test_casts_from),
      cmocka_unit_test(test_casts_to),      cmocka_unit_test(test_memory),
      cmocka_unit_test(test_subgroups),     cmocka_unit_test(test_unsupported),
      cmocka_unit_test(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, set_up, NULL);
}
