// SPDX-License-Identifier: Apache-2.0
// Products by groups of lanes that share boxes of their operands: every fusion
// case that is one, under every kind of tile, run by the interpreter against the
// evaluator on the graph; what the sketch chooses; what is refused. Maps whose
// tiles pass through shared memory likewise.
#include <math.h>
#include <stdlib.h>

#include "base/half.h"
#include "codegen/nest/nest_verify.h"
#include "codegen/template/flash_attention_mma/flash_attention_mma.h"
#include "codegen/template/shared_tile/shared_tile.h"
#include "codegen/template/shared_transpose/shared_transpose.h"
#include "ir/ref/ref.h"
#include "unit/codegen/kir_test.h"
#include "unit/codegen/nest_test.h"

// --- Products of narrow floats ---

#define DOT(name, a, b, dims, y, tolerance)                        \
  {name, "a: tensor<" a ">, b: tensor<" b ">",                     \
   "      %y = stablehlo.dot_general %a, %b, " dims ": (tensor<" a \
   ">, tensor<" b ">) -> tensor<" y ">",                           \
   "%y : tensor<" y ">", tolerance}
#define NN "contracting_dims = [1] x [0] "
#define NT "contracting_dims = [1] x [1] "
#define BATCHED "batching_dims = [0] x [0], contracting_dims = [2] x [1] "

// Sums are f32: their error is that of another order, 1e-6 of the largest. A
// bf16 result is rounded once more, to 2^-9.
static const case_t narrow[] = {
    DOT("even", "32x64xbf16", "64x32xbf16", NN, "32x32xf32", 1e-6),
    DOT("even_f16", "32x64xf16", "64x32xf16", NN, "32x32xf32", 1e-6),
    DOT("rest", "37x40xbf16", "40x50xbf16", NN, "37x50xf32", 1e-6),
    DOT("rest_nt", "37x40xbf16", "50x40xbf16", NT, "37x50xf32", 1e-6),
    DOT("odd", "19x23xf16", "23x21xf16", NN, "19x21xf32", 1e-6),
    DOT("odd_nt", "19x23xbf16", "21x23xbf16", NT, "19x21xf32", 1e-6),
    DOT("few_taps", "20x4xbf16", "4x24xbf16", NN, "20x24xf32", 1e-6),
    DOT("one_row", "1x64xbf16", "64x40xbf16", NN, "1x40xf32", 1e-6),
    DOT("narrow_result", "16x64xbf16", "64x24xbf16", NN, "16x24xbf16", 4e-3),
    DOT("batches", "3x9x20xbf16", "3x20x18xbf16", BATCHED, "3x9x18xf32", 1e-6),
    {"conv", "x: tensor<1x7x6x16xbf16>, w: tensor<3x3x16x24xbf16>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = "
     "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], "
     "pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, "
     "feature_group_count = 1 : i64} : (tensor<1x7x6x16xbf16>, "
     "tensor<3x3x16x24xbf16>) -> tensor<1x7x6x24xf32>",
     "%y : tensor<1x7x6x24xf32>", 1e-6},
    {"epilogue",
     "a: tensor<20x32xbf16>, b: tensor<32x40xbf16>, c: "
     "tensor<20x40xf32>",
     "      %d = stablehlo.dot_general %a, %b, " NN
     ": (tensor<20x32xbf16>, tensor<32x40xbf16>) -> tensor<20x40xf32>\n"
     "      %e = stablehlo.add %d, %c : tensor<20x40xf32>\n"
     "      %y = stablehlo.tanh %e : tensor<20x40xf32>",
     "%y : tensor<20x40xf32>", 1e-5},
};

// Sums of bytes are exact.
static const case_t bytes[] = {
    DOT("bytes", "32x64xi8", "64x32xi8", NN, "32x32xi32", 0),
    DOT("bytes_nt", "37x48xui8", "50x48xui8", NT, "37x50xi32", 0),
    DOT("bytes_rest", "37x40xi8", "40x52xi8", NN, "37x52xi32", 0),
    DOT("bytes_mixed", "19x96xui8", "24x96xi8", NT, "19x24xi32", 0),
    DOT("bytes_mixed_nn", "19x96xi8", "96x21xui8", NN, "19x21xi32", 0),
    DOT("bytes_odd_nt", "19x23xi8", "21x23xi8", NT, "19x21xi32", 0),
    DOT("bytes_tn", "64x24xi8", "64x32xi8", "contracting_dims = [0] x [0] ",
        "24x32xi32", 0),
    DOT("bytes_batches", "3x9x20xi8", "3x20x18xi8", BATCHED, "3x9x18xi32", 0),
    {"bytes_conv", "x: tensor<1x7x6x32xui8>, w: tensor<3x3x32x24xi8>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = "
     "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], "
     "pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, "
     "feature_group_count = 1 : i64} : (tensor<1x7x6x32xui8>, "
     "tensor<3x3x32x24xi8>) -> tensor<1x7x6x24xi32>",
     "%y : tensor<1x7x6x24xi32>", 0},
    {"bytes_epilogue",
     "a: tensor<20x32xi8>, b: tensor<40x32xi8>, c: tensor<20x40xf32>",
     "      %d = stablehlo.dot_general %a, %b, " NT
     ": (tensor<20x32xi8>, tensor<40x32xi8>) -> tensor<20x40xi32>\n"
     "      %s = stablehlo.convert %d : (tensor<20x40xi32>) -> "
     "tensor<20x40xf32>\n"
     "      %e = stablehlo.add %s, %c : tensor<20x40xf32>\n"
     "      %y = stablehlo.tanh %e : tensor<20x40xf32>",
     "%y : tensor<20x40xf32>", 1e-5},
};

static const pestle_shared_tile_t byte_tiles[] = {
    {16, 16, 32, 16, 8, 2, PESTLE_UNITS_MMA, false, 1},
    {32, 32, 64, 16, 16, 2, PESTLE_UNITS_MMA, false, 1},
    {16, 64, 32, 16, 32, 3, PESTLE_UNITS_MMA, false, 1},
    {32, 16, 32, 32, 16, 4, PESTLE_UNITS_MMA, false, 1},
};

static const pestle_shared_tile_t tiles[] = {
    {16, 16, 16, 1, 2, 2, PESTLE_UNITS_LANES, false, 1},
    {16, 32, 8, 2, 4, 2, PESTLE_UNITS_LANES, false, 1},
    {32, 16, 4, 8, 1, 2, PESTLE_UNITS_LANES, false, 1},
    {32, 32, 16, 4, 8, 2, PESTLE_UNITS_LANES, false, 1},
    {64, 64, 16, 8, 16, 2, PESTLE_UNITS_LANES, false, 1},
    {16, 16, 16, 16, 8, 2, PESTLE_UNITS_MMA, false, 1},
    {32, 32, 32, 16, 16, 2, PESTLE_UNITS_MMA, false, 1},
    {16, 64, 32, 16, 32, 3, PESTLE_UNITS_MMA, false, 1},
    {32, 16, 16, 32, 16, 4, PESTLE_UNITS_MMA, false, 1},
    {8, 8, 8, 8, 8, 2, PESTLE_UNITS_MMA8, false, 1},
    {32, 32, 16, 16, 16, 2, PESTLE_UNITS_MMA8, false, 1},
    {16, 64, 32, 8, 32, 3, PESTLE_UNITS_MMA8, false, 1},
    {64, 16, 8, 16, 8, 2, PESTLE_UNITS_MMA8, false, 1},
    {32, 32, 16, 8, 4, 2, PESTLE_UNITS_TEAMS, false, 1},
    {16, 16, 32, 4, 2, 3, PESTLE_UNITS_TEAMS, false, 1},
    {4, 32, 16, 4, 1, 4, PESTLE_UNITS_TEAMS, false, 1},
    {8, 64, 128, 4, 4, 2, PESTLE_UNITS_TEAMS, false, 1},
};

enum { MOST_ELEMENTS = 10000 };  // the interpreter is slow

// --- Data ---

static void fill(const pestle_type_t* type, void* data, uint32_t seed) {
  uint32_t state = seed * 77 + 5;
  size_t size = pestle_dtype_size(type->dtype);
  for (int64_t i = 0; i < pestle_type_count(type); ++i) {
    state = state * 1664525u + 1013904223u;
    double v = (double)(state >> 8) / (1 << 24) * 2 - 1;
    uint64_t bits = (uint64_t)(int64_t)(v * 9);
    if (pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT)) {
      bits = pestle_float_encode(type->dtype, v);
    } else if (type->dtype == PESTLE_I1) {
      bits = v > 0;
    }
    memcpy((char*)data + (size_t)i * size, &bits, size);
  }
}

static double element(const pestle_type_t* type, const void* data, int64_t i) {
  size_t size = pestle_dtype_size(type->dtype);
  uint64_t bits = 0;
  memcpy(&bits, (const char*)data + (size_t)i * size, size);
  bool f = pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT);
  return f ? pestle_float_decode(type->dtype, bits) : (double)(int64_t)bits;
}

static void compare(const case_t* c, const char* how, const pestle_type_t* type,
                    const void* want, const void* got) {
  double scale = 1e-30;
  for (int64_t i = 0; i < pestle_type_count(type); ++i) {
    double w = fabs(element(type, want, i));
    if (isfinite(w) && w > scale) scale = w;
  }
  for (int64_t i = 0; i < pestle_type_count(type); ++i) {
    double w = element(type, want, i), g = element(type, got, i);
    if (w == g || (isnan(w) && isnan(g))) continue;
    if (fabs(w - g) <= c->tolerance * scale) continue;
    fail_msg("%s, %s: element %lld is %.9g, should be %.9g", c->name, how,
             (long long)i, g, w);
  }
}

// --- Running ---

typedef struct run_t {
  lowering_t l;
  void* inputs[16];
  void* want[8];
} run_t;

static void open_run(const case_t* c, run_t* r) {
  lowering_open(c, &r->l);
  pestle_node_t* f = r->l.fusion;
  for (uint32_t i = 0; i < f->operand_count; ++i) {
    const pestle_type_t* type = pestle_node_operand(f, i)->type;
    r->inputs[i] = malloc(pestle_type_bytes(type) + 64);
    fill(type, r->inputs[i], i);
  }
  for (uint32_t i = 0; i < f->result_count; ++i)
    r->want[i] = calloc(1, pestle_type_bytes(f->results[i].type) + 64);
  assert_ok(pestle_ref_evaluate_node(pestle_allocator_system(), f,
                                     (const void* const*)r->inputs, r->want));
}

static void close_run(run_t* r) {
  for (uint32_t i = 0; i < r->l.fusion->operand_count; ++i)
    free(r->inputs[i]);
  for (uint32_t i = 0; i < r->l.fusion->result_count; ++i)
    free(r->want[i]);
  lowering_close(&r->l);
}

// All that is no reduction in its readers; the only reduction, or -1.
static int32_t prepare(run_t* r, pestle_nest_t* nest) {
  bool inlined[64] = {false};
  int32_t reduce = -1;
  bool any = false;
  lowering_nest(&r->l, 0, 0, nest);
  uint32_t last = (uint32_t)nest->stages.size - 1;
  for (uint32_t s = 0; s < last && s < 64; ++s) {
    bool reduces = pestle_nest_stage(nest, s)->is_reduction;
    if (reduces && reduce >= 0) return -1;
    if (reduces) reduce = (int32_t)s;
    inlined[s] = !reduces;
    any = any || !reduces;
  }
  if (any) assert_ok(pestle_schedule_inline(nest, inlined));
  return reduce;
}

// Reads the text of |nest| into |copy|, which the caller deinitialises.
static void read_back(const pestle_nest_t* nest, pestle_nest_t* copy) {
  pestle_strbuf_t text = nest_text(nest);
  pestle_nest_init(pestle_allocator_system(), nest->arena, "", copy);
  assert_ok(pestle_nest_parse(text.data, text.size, "nest", copy));
  pestle_strbuf_t again = nest_text(copy);
  assert_string_equal(text.data, again.data);
  assert_ok(pestle_nest_verify(copy, PESTLE_NEST_LOWERED, NULL));
  assert_ok(pestle_nest_verify(copy, PESTLE_NEST_SCHEDULED, NULL));
  assert_ptr_equal(copy->template.row, nest->template.row);
  pestle_strbuf_deinit(&text);
  pestle_strbuf_deinit(&again);
}

static void run_nest(run_t* r, pestle_nest_t* nest, const char* how) {
  pestle_kir_builder_t flat, again;
  pestle_emitted_t args;
  pestle_strbuf_t text, back;
  void *buffers[64], *got[8];
  int32_t trap = 0;
  pestle_node_t* f = r->l.fusion;
  pestle_nest_t copy;
  uint64_t hash[2];
  read_back(nest, &copy);
  assert_ok(pestle_nest_verify(nest, PESTLE_NEST_SCHEDULED, NULL));
  pestle_kir_init(pestle_allocator_system(), "test", "", &flat);
  assert_ok(pestle_emit_flat(nest, PESTLE_NUMERICS_DEFAULT, &flat, &args));
  nest_hash(&copy, hash);  // it emits as well, in an order of its own
  pestle_nest_deinit(&copy);
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_strbuf_init(pestle_allocator_system(), &back);
  assert_ok(pestle_kir_print(&flat.view, &text));
  if (getenv("PESTLE_TEST_PRINT")) fputs(pestle_strbuf_cstr(&text), stderr);
  assert_ok(pestle_kir_verify(&flat.view));
  assert_ok(pestle_kir_parse(pestle_allocator_system(), text.data, text.size,
                             "kernel", &again));
  assert_ok(pestle_kir_print(&again.view, &back));
  assert_string_equal(pestle_strbuf_cstr(&text), pestle_strbuf_cstr(&back));
  for (uint32_t i = 0; i < f->result_count; ++i) {
    got[i] = calloc(1, pestle_type_bytes(f->results[i].type) + 64);
  }
  for (uint32_t i = 0; i < args.count; ++i) {
    const pestle_nest_tensor_t* t = &nest->tensors.data[args.tensors[i]];
    buffers[i] = t->kind == PESTLE_TENSOR_OUTPUT ? got[t->slot]
                 : t->elements ? (void*)(uintptr_t)t->elements->data
                               : r->inputs[t->slot];
  }
  assert_ok(
      kir_test_run(&again.view, buffers, NULL, 0, again.view.group[0], &trap));
  assert_int_equal(trap, 0);
  for (uint32_t i = 0; i < f->result_count; ++i) {
    compare(r->l.c, how, f->results[i].type, r->want[i], got[i]);
    free(got[i]);
  }
  pestle_strbuf_deinit(&text);
  pestle_strbuf_deinit(&back);
  pestle_kir_deinit(&again);
  pestle_kir_deinit(&flat);
}

// The rows of |nest| make the same tile of |again|.
static void replay_tile(const pestle_nest_t* nest, pestle_nest_t* again) {
  pestle_primitives_t rows;
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_schedule_print(nest, &text);
  pestle_vec_init(&rows, again->allocator);
  assert_ok(pestle_primitives_parse(again->arena, pestle_strbuf_cstr(&text),
                                    text.size, "rows", &rows));
  for (size_t i = 0; i < rows.size; ++i)
    assert_ok(pestle_schedule_apply(again, &rows.data[i]));
  assert_ptr_equal(again->template.row, nest->template.row);
  assert_int_equal(again->template.stage, nest->template.stage);
  assert_memory_equal(again->template.ints, nest->template.ints,
                      sizeof nest->template.ints);
  pestle_vec_deinit(&rows);
  pestle_strbuf_deinit(&text);
}

static pestle_status_t apply_tile(pestle_nest_t* nest, uint32_t reduce,
                                  const pestle_shared_tile_t* t) {
  int64_t ints[] = {t->m,     t->n,     t->k,     t->r,        t->c,
                    t->slots, t->units, t->async, t->parts / 2};
  return apply_template(nest, "shared_tile", reduce, ints, 9);
}

// |tile| on the case, with copies past the registers or without. False: the
// case is no such product.
static bool run_tile(run_t* r, const pestle_shared_tile_t* tile, bool async) {
  pestle_nest_t nest;
  pestle_product_t p;
  pestle_shared_tile_t t = *tile;
  char how[64];
  int32_t reduce = prepare(r, &nest);
  bool fits =
      reduce >= 0 && pestle_product_find(&nest, (uint32_t)reduce, t.units, &p);
  if (fits && t.slots > 2 && (!p.a.read || !p.b.read)) t.slots = 2;
  t.async = async;
  snprintf(how, sizeof how, "tile %dx%dx%d%s%s", (int)t.m, (int)t.n, (int)t.k,
           t.units == PESTLE_UNITS_MMA     ? " units"
           : t.units == PESTLE_UNITS_MMA8  ? " units8"
           : t.units == PESTLE_UNITS_TEAMS ? " teams"
                                           : "",
           async ? " async" : "");
  if (fits) {
    pestle_nest_t again;
    assert_ok(apply_tile(&nest, (uint32_t)reduce, &t));
    lowering_nest(&r->l, 0, 0, &again);
    replay_tile(&nest, &again);
    pestle_nest_deinit(&again);
    run_nest(r, &nest, how);
  }
  pestle_nest_deinit(&nest);
  return fits;
}

static int run_all(const case_t* c, pestle_product_units_t units) {
  run_t r;
  int count = 0;
  open_run(c, &r);
  for (size_t i = 0; i < sizeof tiles / sizeof *tiles; ++i) {
    if (r.l.group_count != 1 || tiles[i].units != units) continue;
    count += run_tile(&r, &tiles[i], i % 2);
    count += run_tile(&r, &tiles[i], !(i % 2));
  }
  close_run(&r);
  return count;
}

static void test_units(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof narrow / sizeof *narrow; ++i)
    assert_int_equal(run_all(&narrow[i], PESTLE_UNITS_MMA), 8);
}

static void test_bytes(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof bytes / sizeof *bytes; ++i) {
    run_t r;
    open_run(&bytes[i], &r);
    for (size_t t = 0; t < sizeof byte_tiles / sizeof *byte_tiles; ++t) {
      assert_true(run_tile(&r, &byte_tiles[t], false));
      assert_true(run_tile(&r, &byte_tiles[t], true));
    }
    close_run(&r);
  }
}

static void test_narrow_by_lanes(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof narrow / sizeof *narrow; ++i)
    assert_int_equal(run_all(&narrow[i], PESTLE_UNITS_LANES), 10);
}

static void test_narrow_by_units8(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof narrow / sizeof *narrow; ++i)
    assert_int_equal(run_all(&narrow[i], PESTLE_UNITS_MMA8), 8);
}

static void test_narrow_by_teams(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof narrow / sizeof *narrow; ++i)
    assert_int_equal(run_all(&narrow[i], PESTLE_UNITS_TEAMS), 8);
}

static int64_t elements_of(const case_t* c) {
  lowering_t l;
  int64_t elements = 0;
  lowering_open(c, &l);
  for (uint32_t i = 0; i < l.fusion->operand_count; ++i)
    elements += pestle_type_count(pestle_node_operand(l.fusion, i)->type);
  lowering_close(&l);
  return elements;
}

// Of the cases that all of codegen is tested on, those that are products.
static void test_cases(void** state) {
  int products = 0, by_units8 = 0;
  (void)state;
  for (size_t i = 0; i < FUSION_COUNT; ++i) {
    if (elements_of(&cases[i]) > MOST_ELEMENTS) continue;
    products += run_all(&cases[i], PESTLE_UNITS_LANES) > 0;
    by_units8 += run_all(&cases[i], PESTLE_UNITS_MMA8) > 0;
  }
  assert_in_range(products, 20, FUSION_COUNT);
  assert_in_range(by_units8, 15, products);
}

// --- Maps that are read along one axis and written along another ---

#define TURN(name, from, to, dims)                                           \
  {name, "a: tensor<" from ">, b: tensor<" to ">",                           \
   "      %t = stablehlo.transpose %a, dims = " dims " : (tensor<" from      \
   ">) -> tensor<" to ">\n      %y = stablehlo.add %t, %b : tensor<" to ">", \
   "%y : tensor<" to ">", 0}

static const case_t turned[] = {
    TURN("f32", "33x70xf32", "70x33xf32", "[1, 0]"),
    TURN("f32_whole", "64x32xf32", "32x64xf32", "[1, 0]"),
    TURN("f64", "40x9xf64", "9x40xf64", "[1, 0]"),
    TURN("bf16", "34x70xbf16", "70x34xbf16", "[1, 0]"),
    TURN("bf16_odd", "35x70xbf16", "70x35xbf16", "[1, 0]"),
    TURN("i8", "36x132xi8", "132x36xi8", "[1, 0]"),
    TURN("batches", "3x20x34xf32", "3x34x20xf32", "[0, 2, 1]"),
    {"padded", "a: tensor<33x70xf32>, b: tensor<72x36xf32>",
     "      %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
     "      %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<33x70xf32>) "
     "-> "
     "tensor<70x33xf32>\n"
     "      %p = stablehlo.pad %t, %z, low = [1, 2], high = [1, 1], interior = "
     "[0, 0] : "
     "(tensor<70x33xf32>, tensor<f32>) -> tensor<72x36xf32>\n"
     "      %y = stablehlo.add %p, %b : tensor<72x36xf32>",
     "%y : tensor<72x36xf32>", 0},
    TURN("outward", "4x5x36xi16", "36x4x5xi16", "[2, 0, 1]"),
};

static bool run_transpose(const case_t* c) {
  run_t r;
  pestle_nest_t nest;
  pestle_shared_transpose_t x;
  bool done = false;
  open_run(c, &r);
  if (r.l.group_count == 1) {
    int32_t reduce = prepare(&r, &nest);
    uint32_t last = (uint32_t)nest.stages.size - 1;
    done = reduce < 0 && pestle_shared_transpose_find(&nest, &x);
    if (done) {
      assert_ok(apply_template(&nest, "shared_transpose", last, &x.read->i, 1));
      run_nest(&r, &nest, "shared_transpose");
    }
    pestle_nest_deinit(&nest);
  }
  close_run(&r);
  return done;
}

static void test_shared_transpose(void** state) {
  int others = 0;
  (void)state;
  for (size_t i = 0; i < sizeof turned / sizeof *turned; ++i) {
    // The last one's results are 5 in a row: too few.
    bool taken = run_transpose(&turned[i]);
    assert_int_equal(taken, i + 1 < sizeof turned / sizeof *turned);
  }
  for (size_t i = 0; i < FUSION_COUNT; ++i) {
    if (elements_of(&cases[i]) > MOST_ELEMENTS) continue;
    others += run_transpose(&cases[i]);
  }
  assert_in_range(others, 1, FUSION_COUNT);
}

// --- Attention in one pass ---

#define SCORES(S, N, D) "tensor<2x" S "x" N "x" D ">"
#define SCALED(x, S, N)                                  \
  "      %c = stablehlo.constant dense<0.25> : " SCORES( \
      S, N, "f32") "\n      " x                          \
                   " = stablehlo.multiply %s, %c : " SCORES(S, N, "f32") "\n"
// Of what lies ahead, and of some keys, none.
#define MASKED(S, N) \
  SCALED("%h", S, N) \
  "      %r = stablehlo.iota dim = 1 : " SCORES(S, N, "i32")                \
  "\n      %t = stablehlo.iota dim = 2 : " SCORES(S, N, "i32")              \
  "\n      %g = stablehlo.compare GE, %r, %t : (" SCORES(S, N, "i32") ", "  \
  SCORES(S, N, "i32") ") -> " SCORES(S, N, "i1")                            \
  "\n      %b = stablehlo.broadcast_in_dim %keep, dims = [0, 2] : "         \
  "(tensor<2x" N "xi1>) -> " SCORES(S, N, "i1")                             \
  "\n      %f = stablehlo.and %g, %b : " SCORES(S, N, "i1")                 \
  "\n      %n = stablehlo.constant dense<-1.0e9> : " SCORES(S, N, "f32")    \
  "\n      %x = stablehlo.select %f, %h, %n : " SCORES(S, N, "i1") ", "     \
  SCORES(S, N, "f32") "\n"
#define ATTENTION(name, T, S, N, E, D) \
  ATTENTION_OF(name, T, S, N, E, D, "", SCALED("%x", S, N))
#define ATTENTION_MASKED(name, T, S, N, E, D) \
  ATTENTION_OF(name, T, S, N, E, D, ", keep: tensor<2x" N "xi1>", MASKED(S, N))
#define ATTENTION_OF(name, T, S, N, E, D, ARGUMENTS, X)                       \
  {name,                                                                      \
   "q: tensor<2x" S "x" E "x" T ">, k: tensor<2x" N "x" E "x" T               \
   ">, v: tensor<2x" N "x" D "x" T ">" ARGUMENTS,                             \
   "      %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], "     \
   "contracting_dims = [2] x [2] : (tensor<2x" S "x" E "x" T ">, tensor<2x" N \
   "x" E "x" T ">) -> tensor<2x" S "x" N "xf32>\n" X                          \
   "      %i = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"          \
   "      %m = stablehlo.reduce(%x init: %i) applies stablehlo.maximum "      \
   "across dimensions = [2] : (tensor<2x" S "x" N                             \
   "xf32>, tensor<f32>) -> tensor<2x" S                                       \
   "xf32>\n"                                                                  \
   "      %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<2x" S  \
   "xf32>) -> tensor<2x" S "x" N                                              \
   "xf32>\n"                                                                  \
   "      %d = stablehlo.subtract %x, %mb : tensor<2x" S "x" N                \
   "xf32>\n"                                                                  \
   "      %e = stablehlo.exponential %d : tensor<2x" S "x" N                  \
   "xf32>\n"                                                                  \
   "      %z = stablehlo.constant dense<0.0> : tensor<f32>\n"                 \
   "      %l = stablehlo.reduce(%e init: %z) applies stablehlo.add across "   \
   "dimensions = [2] : (tensor<2x" S "x" N                                    \
   "xf32>, tensor<f32>) -> tensor<2x" S                                       \
   "xf32>\n"                                                                  \
   "      %w = stablehlo.convert %v : (tensor<2x" N "x" D "x" T               \
   ">) -> tensor<2x" N "x" D                                                  \
   "xf32>\n"                                                                  \
   "      %o = stablehlo.dot_general %e, %w, batching_dims = [0] x [0], "     \
   "contracting_dims = [2] x [1] : (tensor<2x" S "x" N "xf32>, tensor<2x" N   \
   "x" D "xf32>) -> tensor<2x" S "x" D                                        \
   "xf32>\n"                                                                  \
   "      %lb = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<2x" S  \
   "xf32>) -> tensor<2x" S "x" D                                              \
   "xf32>\n"                                                                  \
   "      %y = stablehlo.divide %o, %lb : tensor<2x" S "x" D "xf32>",         \
   "%y : tensor<2x" S "x" D "xf32>", 1e-5}

// Weights have 16 bits or more, each within 2^-17: 8e-6 of a weighted mean.
static const case_t attentions[] = {
    ATTENTION("attention", "bf16", "64", "64", "32", "32"),
    ATTENTION("attention_f16", "f16", "70", "90", "40", "24"),
    ATTENTION("attention_odd", "bf16", "17", "83", "17", "19"),
    ATTENTION("attention_few_keys", "f16", "20", "5", "16", "48"),
    ATTENTION_MASKED("attention_masked", "bf16", "70", "90", "40", "24"),
};

static void run_attention(const case_t* c, int64_t keys, bool teams,
                          bool async) {
  run_t r;
  pestle_nest_t nest;
  pestle_flash_attention_t a;
  bool inlined[64] = {false};
  open_run(c, &r);
  assert_int_equal(r.l.group_count, 1);
  lowering_nest(&r.l, 0, 0, &nest);
  assert_true(pestle_flash_attention_resembles(&nest, PESTLE_UNITS_MMA));
  for (uint32_t s = 0; s + 1 < nest.stages.size; ++s)
    inlined[s] = !pestle_nest_stage(&nest, s)->is_reduction;
  assert_ok(pestle_schedule_inline(&nest, inlined));
  assert_true(pestle_flash_attention_find(&nest, PESTLE_UNITS_MMA, 128, &a));
  const char* name = "flash_attention_mma";
  int64_t ints[] = {keys, teams, async}, odd[] = {48, teams, async};
  assert_error(apply_template(&nest, name, a.scores, ints, 3), INVALID_ARGUMENT,
               "the output of attention");
  assert_error(apply_template(&nest, name, a.output, odd, 3), INVALID_ARGUMENT,
               "16, 32 or 64 keys");
  assert_ok(apply_template(&nest, name, a.output, ints, 3));
  run_nest(&r, &nest, "attention");
  pestle_nest_deinit(&nest);
  close_run(&r);
}

static void test_attention(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof attentions / sizeof *attentions; ++i) {
    run_attention(&attentions[i], 16 << i % 3, false, i % 2);
    run_attention(&attentions[i], 64, false, !(i % 2));
    run_attention(&attentions[i], 16, true, i % 2);
    run_attention(&attentions[i], 32 << i % 2, true, !(i % 2));
  }
}

// What looks like it and is not: the maximum of other scores than those that
// are weighted.
static void test_attention_not(void** state) {
  (void)state;
  run_t r;
  pestle_nest_t nest;
  pestle_flash_attention_t a;
  char body[4096];
  case_t c = attentions[0];
  const char* at = strstr(c.body, "%d = stablehlo.subtract %x");
  assert_non_null(at);
  snprintf(body, sizeof body, "%.*s%%d = stablehlo.subtract %%s%s",
           (int)(at - c.body), c.body,
           at + strlen("%d = stablehlo.subtract %x"));
  c.body = body;
  open_run(&c, &r);
  bool inlined[64] = {false};
  lowering_nest(&r.l, 0, 0, &nest);
  for (uint32_t s = 0; s + 1 < nest.stages.size; ++s)
    inlined[s] = !pestle_nest_stage(&nest, s)->is_reduction;
  assert_ok(pestle_schedule_inline(&nest, inlined));
  assert_false(pestle_flash_attention_find(&nest, PESTLE_UNITS_MMA, 128, &a));
  pestle_nest_deinit(&nest);
  close_run(&r);
}

// --- What is refused ---

static void refuses(const case_t* c, const pestle_shared_tile_t* tile,
                    const char* why) {
  run_t r;
  pestle_nest_t nest;
  open_run(c, &r);
  int32_t reduce = prepare(&r, &nest);
  assert_true(reduce >= 0);
  assert_error(apply_tile(&nest, (uint32_t)reduce, tile), INVALID_ARGUMENT,
               why);
  pestle_nest_deinit(&nest);
  close_run(&r);
}

static void test_refused(void** state) {
  (void)state;
  const case_t* f32 = find_case("gemm_even");
  refuses(
      f32,
      &(pestle_shared_tile_t){16, 16, 16, 16, 8, 2, PESTLE_UNITS_MMA, false, 1},
      "of f16 or bf16");
  refuses(f32,
          &(pestle_shared_tile_t){24, 16, 16, 1, 2, 2, PESTLE_UNITS_LANES,
                                  false, 1},
          "powers of two");
  refuses(f32,
          &(pestle_shared_tile_t){16, 16, 16, 3, 2, 2, PESTLE_UNITS_LANES,
                                  false, 1},
          "whole parts of r and c");
  refuses(f32,
          &(pestle_shared_tile_t){64, 64, 16, 1, 1, 2, PESTLE_UNITS_LANES,
                                  false, 1},
          "at most 1024 lanes");
  refuses(f32,
          &(pestle_shared_tile_t){16, 16, 16, 1, 2, 3, PESTLE_UNITS_LANES,
                                  false, 1},
          "more than two slots");
  refuses(
      &narrow[0],
      &(pestle_shared_tile_t){16, 16, 8, 16, 8, 2, PESTLE_UNITS_MMA, false, 1},
      "powers of two");
  refuses(
      f32,
      &(pestle_shared_tile_t){16, 16, 8, 4, 8, 2, PESTLE_UNITS_MMA8, false, 1},
      "whole parts of r and c");
  refuses(
      f32,
      &(pestle_shared_tile_t){16, 16, 4, 8, 8, 2, PESTLE_UNITS_MMA8, false, 1},
      "powers of two");
  refuses(
      find_case("gemm_i32"),
      &(pestle_shared_tile_t){16, 16, 8, 8, 8, 2, PESTLE_UNITS_MMA8, false, 1},
      "in f32");
  refuses(f32,
          &(pestle_shared_tile_t){16, 16, 16, 4, 4, 2, PESTLE_UNITS_TEAMS,
                                  false, 1},
          "whole parts of r and c");
  refuses(find_case("gemm_i32"),
          &(pestle_shared_tile_t){32, 16, 16, 4, 4, 2, PESTLE_UNITS_TEAMS,
                                  false, 1},
          "in f32");
  // Runs of one element of two bytes are copied by no instruction.
  refuses(
      &narrow[5],
      &(pestle_shared_tile_t){16, 16, 16, 16, 8, 3, PESTLE_UNITS_MMA, false, 1},
      "can be copied as they lie");
  refuses(
      &bytes[0],
      &(pestle_shared_tile_t){16, 16, 16, 16, 8, 2, PESTLE_UNITS_MMA, false, 1},
      "32 elements of k");
}

// --- What the sketch chooses ---

static pestle_target_caps_t lanes_caps(pestle_product_units_t units) {
  pestle_target_caps_t caps = {.struct_size = sizeof caps,
                               .vector_bytes = 16,
                               .vector_registers = 255,
                               .max_lanes = 16,
                               .cores = 100,
                               .scratch_bytes = 160 << 10,
                               .subgroup = 32,
                               .max_group_lanes = 1024,
                               .flags = PESTLE_TARGET_LANES};
  if (!units) return caps;
  caps.intrinsic_count = 1;
  if (units == PESTLE_UNITS_MMA8) {
    caps.scratch_bytes = 32 << 10;
    caps.intrinsic[0] = (pestle_intrinsic_t){
        PESTLE_INTRINSIC_MMA, PESTLE_F32, PESTLE_F32, PESTLE_F32, 8, 8, 8, 32};
    return caps;
  }
  caps.flags |= PESTLE_TARGET_ASYNC_COPY;
  caps.register_bytes_group = 256 << 10;
  caps.intrinsic[0] = (pestle_intrinsic_t){PESTLE_INTRINSIC_MMA,
                                           PESTLE_BF16,
                                           PESTLE_BF16,
                                           PESTLE_F32,
                                           16,
                                           8,
                                           16,
                                           32};
  return caps;
}

static void chooses(const case_t* c, pestle_product_units_t units,
                    const char* rows) {
  lowering_t l;
  pestle_nest_t nest;
  pestle_strbuf_t text;
  pestle_target_caps_t caps = lanes_caps(units);
  lowering_open(c, &l);
  lowering_nest(&l, 0, 0, &nest);
  assert_ok(pestle_sketch(&nest, &caps, true));
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_schedule_print(&nest, &text);
  if (!strstr(pestle_strbuf_cstr(&text), rows)) {
    fail_msg("%s: no '%s' in\n%s", c->name, rows, pestle_strbuf_cstr(&text));
  }
  pestle_strbuf_deinit(&text);
  pestle_nest_deinit(&nest);
  lowering_close(&l);
}

static void test_choice(void** state) {
  (void)state;
  static const case_t large =
      DOT("large", "4096x4096xbf16", "4096x4096xbf16", NN, "4096x4096xbf16", 0);
  static const case_t thin =
      DOT("thin", "16x4096xbf16", "4096x4096xbf16", NN, "16x4096xbf16", 0);
  static const case_t tiny =
      DOT("tiny", "8x8xbf16", "8x8xbf16", NN, "8x8xbf16", 0);
  static const case_t wide =
      DOT("wide", "4096x4096xf32", "4096x4096xf32", NN, "4096x4096xf32", 0);
  static const case_t whole =
      DOT("whole", "3200x4096xf32", "4096x4096xf32", NN, "3200x4096xf32", 0);
  static const case_t rest =
      DOT("rest", "4096x4096xf32", "4096x192xf32", NN, "4096x192xf32", 0);
  static const case_t few =
      DOT("few", "32x1024xf32", "3072x1024xf32", NT, "32x3072xf32", 0);
  static const case_t mixed = {
      "mixed", "a: tensor<512x512xbf16>, b: tensor<512x512xf32>",
      "      %w = stablehlo.convert %a : (tensor<512x512xbf16>) -> "
      "tensor<512x512xf32>\n"
      "      %y = stablehlo.dot_general %w, %b, " NN
      ": (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>",
      "%y : tensor<512x512xf32>", 0};
  chooses(&large, PESTLE_UNITS_MMA,
          "shared_tile c 128 128 32 64 64 4 units async\n");
  chooses(&thin, PESTLE_UNITS_MMA,
          "shared_tile c 16 64 64 16 16 4 units async\n");
  chooses(&tiny, PESTLE_UNITS_MMA, "bind y.a group.x");
  chooses(&large, PESTLE_UNITS_LANES, "shared_tile c 128 128 16 8 8 2\n");
  chooses(&wide, PESTLE_UNITS_MMA, "shared_tile c 128 128 16 8 8 2 async\n");
  chooses(&whole, PESTLE_UNITS_MMA, "shared_tile c 128 256 16 8 16 2 async\n");
  chooses(&whole, PESTLE_UNITS_LANES, "shared_tile c 128 128 16 8 8 2\n");
  chooses(&rest, PESTLE_UNITS_MMA, "shared_tile c 128 64 16 8 8 2 async\n");
  chooses(&large, PESTLE_UNITS_MMA8, "shared_tile c 64 64 16 32 32 2 units8\n");
  chooses(&wide, PESTLE_UNITS_MMA8, "shared_tile c 64 64 16 32 32 2 units8\n");
  chooses(&mixed, PESTLE_UNITS_MMA8, " units8\n");
  chooses(&mixed, PESTLE_UNITS_MMA, " teams async\n");
  chooses(&few, PESTLE_UNITS_MMA, "shared_tile c 32 32 64 8 4 2 teams async\n");
  chooses(&few, PESTLE_UNITS_LANES, "shared_tile c 32 32 16 2 4 2\n");
  chooses(&thin, PESTLE_UNITS_MMA8, " units8\n");
  chooses(&tiny, PESTLE_UNITS_MMA8, "bind y.a group.x");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_units),
      cmocka_unit_test(test_bytes),
      cmocka_unit_test(test_narrow_by_lanes),
      cmocka_unit_test(test_cases),
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_choice),
      cmocka_unit_test(test_shared_transpose),
      cmocka_unit_test(test_attention),
      cmocka_unit_test(test_attention_not),
      cmocka_unit_test(test_narrow_by_units8),
      cmocka_unit_test(test_narrow_by_teams),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
