// SPDX-License-Identifier: Apache-2.0
// Schedule primitives as data: a sketch's rows, printed, parsed and applied to a
// fresh lowering, give the same kernel; the plain schedule computes the same
// numbers; and each row is refused, with a sentence, where it is not legal.
#include <math.h>
#include <stdlib.h>

#include "base/half.h"
#include "codegen/nest/nest_verify.h"
#include "unit/codegen/kir_test.h"
#include "unit/codegen/nest_test.h"

// Caches that nothing fits in: all results are streamed where that is legal, all
// matrices are large.
// Or a few rows: what several walks read is asked for ahead.
enum { SMALL_CACHE = 2, FEW_ROWS = 8 << 10, CORES = 3 };

// --- Replay ---

static pestle_status_t apply_text(pestle_nest_t* nest, const char* text,
                                  size_t size) {
  pestle_primitives_t rows;
  pestle_vec_init(&rows, nest->allocator);
  pestle_status_t status =
      pestle_primitives_parse(nest->arena, text, size, "f.rows", &rows);
  for (size_t i = 0; i < rows.size && !status; ++i) {
    status = pestle_schedule_apply(nest, &rows.data[i]);
  }
  pestle_vec_deinit(&rows);
  return status;
}

static void replay(lowering_t* l, uint32_t g, uint32_t constants,
                   const pestle_target_caps_t* caps) {
  pestle_nest_t first, second;
  pestle_strbuf_t rows, again;
  lowering_nest(l, g, constants, &first);
  lowering_nest(l, g, constants, &second);
  assert_ok(pestle_sketch(&first, caps, true));
  pestle_strbuf_init(pestle_allocator_system(), &rows);
  pestle_strbuf_init(pestle_allocator_system(), &again);
  pestle_schedule_print(&first, &rows);
  assert_ok(apply_text(&second, pestle_strbuf_cstr(&rows), rows.size));
  pestle_schedule_print(&second, &again);
  assert_string_equal(pestle_strbuf_cstr(&rows), pestle_strbuf_cstr(&again));
  uint64_t a[2], b[2];
  nest_hash(&first, a);
  nest_hash(&second, b);
  assert_memory_equal(a, b, sizeof(a));
  pestle_strbuf_deinit(&rows);
  pestle_strbuf_deinit(&again);
  pestle_nest_deinit(&first);
  pestle_nest_deinit(&second);
}

static void test_replay(void** state) {
  lowering_t l;
  lowering_open(*state, &l);
  pestle_target_caps_t caps = test_caps();
  for (uint32_t g = 0; g < l.group_count; ++g) {
    replay(&l, g, 0, &caps);
    replay(&l, g, 2, &caps);
    caps.l2_bytes = caps.l3_bytes = SMALL_CACHE;
    replay(&l, g, 0, &caps);
    caps.l2_bytes = caps.l3_bytes = FEW_ROWS;
    replay(&l, g, 0, &caps);
    replay(&l, g, 2, &caps);
    caps = test_caps();
    caps.cores = CORES;
    replay(&l, g, 2, &caps);
    caps = test_caps();
  }
  lowering_close(&l);
}

// --- Plain against sketched, through ref ---

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

// Runs the scheduled |nest| on |inputs|, into |results|, by slot.
static void run(pestle_nest_t* nest, void* const* inputs,
                void* const* results) {
  pestle_kir_builder_t flat;
  pestle_emitted_t args;
  void* buffers[64];
  int32_t trap = 0;
  pestle_kir_init(pestle_allocator_system(), "test", "", &flat);
  assert_ok(pestle_emit_flat(nest, PESTLE_NUMERICS_STRICT, &flat, &args));
  assert_ok(pestle_kir_verify(&flat.view));
  if (getenv("PESTLE_TEST_PRINT")) {
    fputs(kir_test_text(&flat.view), stderr);
  }
  for (uint32_t i = 0; i < args.count; ++i) {
    const pestle_nest_tensor_t* t = &nest->tensors.data[args.tensors[i]];
    buffers[i] = t->kind == PESTLE_TENSOR_OUTPUT ? results[t->slot]
                 : t->elements ? (void*)(uintptr_t)t->elements->data
                               : inputs[t->slot];
  }
  assert_ok(
      kir_test_run(&flat.view, buffers, NULL, 0, flat.view.group[0], &trap));
  assert_int_equal(trap, 0);
  pestle_kir_deinit(&flat);
}

static void compare(const case_t* c, const pestle_type_t* type,
                    const void* want, const void* got) {
  double scale = 1;
  for (int64_t i = 0; i < pestle_type_count(type); ++i) {
    double w = fabs(element(type, want, i));
    if (isfinite(w) && w > scale) scale = w;
  }
  for (int64_t i = 0; i < pestle_type_count(type); ++i) {
    double w = element(type, want, i), g = element(type, got, i);
    if (w == g || (isnan(w) && isnan(g))) continue;
    if (fabs(w - g) <= 2 * c->tolerance * scale) continue;
    fail_msg("%s: element %lld is %.9g sketched, %.9g plain", c->name,
             (long long)i, g, w);
  }
}

static void plain_against_sketched(const case_t* c, uint64_t cache_bytes,
                                   uint32_t cores) {
  lowering_t l;
  lowering_open(c, &l);
  pestle_target_caps_t caps = test_caps();
  caps.l2_bytes = caps.l3_bytes = cache_bytes;
  caps.cores = cores;
  void *inputs[16], *want[8], *got[8];
  for (uint32_t i = 0; i < l.fusion->operand_count; ++i) {
    const pestle_type_t* type = pestle_node_operand(l.fusion, i)->type;
    inputs[i] = malloc(pestle_type_bytes(type) + 64);
    fill(type, inputs[i], i);
  }
  for (uint32_t i = 0; i < l.fusion->result_count; ++i) {
    size_t size = pestle_type_bytes(l.fusion->results[i].type) + 64;
    want[i] = calloc(1, size);
    got[i] = calloc(1, size);
  }
  for (uint32_t g = 0; g < l.group_count; ++g) {
    pestle_nest_t plain, sketched;
    lowering_nest(&l, g, 0, &plain);
    lowering_nest(&l, g, 0, &sketched);
    assert_ok(pestle_schedule_plain(&plain));
    assert_ok(pestle_sketch(&sketched, &caps, true));
    run(&plain, inputs, want);
    run(&sketched, inputs, got);
    pestle_nest_deinit(&plain);
    pestle_nest_deinit(&sketched);
  }
  for (uint32_t i = 0; i < l.fusion->result_count; ++i) {
    compare(l.c, l.fusion->results[i].type, want[i], got[i]);
    free(want[i]);
    free(got[i]);
  }
  for (uint32_t i = 0; i < l.fusion->operand_count; ++i)
    free(inputs[i]);
  lowering_close(&l);
}

static void test_plain(void** state) {
  plain_against_sketched(*state, 0, 0);
  plain_against_sketched(*state, SMALL_CACHE, 0);
  plain_against_sketched(*state, 0, CORES);
}

// --- Few vectors times a matrix ---

// The first line of why the sketch of |name| is as it is; the form of it.
static void chooses(const char* name, uint32_t constants, uint64_t cache_bytes,
                    bool reassociate, const char* want) {
  lowering_t l;
  pestle_nest_t nest;
  pestle_target_caps_t caps = test_caps();
  caps.l2_bytes = caps.l3_bytes = cache_bytes;
  lowering_open(find_case(name), &l);
  lowering_nest(&l, 0, constants, &nest);
  assert_ok(pestle_sketch(&nest, &caps, reassociate));
  assert_non_null(nest.summary);
  if (strncmp(nest.summary, want, strlen(want)) != 0) {
    fail_msg("%s: '%s', should begin with '%s'", name, nest.summary, want);
  }
  pestle_nest_deinit(&nest);
  lowering_close(&l);
}

// --- Panels ---

// Whether the sketch of "gemm_panels", its weights constant, with an L1 of
// |cache_bytes| asks for panels ahead: in its rows and in its kernel.
static bool asks_for_panels(uint64_t cache_bytes) {
  lowering_t l;
  pestle_nest_t nest;
  pestle_strbuf_t rows;
  pestle_kir_builder_t flat;
  pestle_emitted_t args;
  pestle_target_caps_t caps = test_caps();
  caps.l1_bytes = cache_bytes;
  caps.l2_bytes = caps.l3_bytes = FEW_ROWS;
  lowering_open(find_case("gemm_panels"), &l);
  lowering_nest(&l, 0, 2, &nest);
  assert_ok(pestle_sketch(&nest, &caps, true));
  pestle_strbuf_init(pestle_allocator_system(), &rows);
  pestle_schedule_print(&nest, &rows);
  pestle_kir_init(pestle_allocator_system(), "test", "", &flat);
  assert_ok(pestle_emit_flat(&nest, PESTLE_NUMERICS_STRICT, &flat, &args));
  assert_ok(pestle_kir_verify(&flat.view));
  // Panels of 64 taps x 48 columns, 10 tiles of 6 rows: 3072 elements in 640 steps.
  bool asks = strstr(pestle_strbuf_cstr(&rows),
                     "prefetch c ob at k by 3072 share 5") != NULL;
  pestle_strbuf_clear(&rows);
  assert_ok(pestle_kir_print(&flat.view, &rows));
  assert_int_equal(asks,
                   strstr(pestle_strbuf_cstr(&rows), "prefetch @ob[") != NULL);
  pestle_kir_deinit(&flat);
  pestle_strbuf_deinit(&rows);
  pestle_nest_deinit(&nest);
  lowering_close(&l);
  return asks;
}

static void test_panels(void** state) {
  (void)state;
  assert_true(asks_for_panels(32 << 10));
  assert_false(asks_for_panels(1 << 20));
}

// --- Rows of a core ---

// Whether the sketch of |name| for |cores| has |row|.
static bool has_primitive(const char* name, uint32_t cores, const char* row) {
  lowering_t l;
  pestle_nest_t nest;
  pestle_strbuf_t rows;
  pestle_target_caps_t caps = test_caps();
  caps.cores = cores;
  lowering_open(find_case(name), &l);
  lowering_nest(&l, 0, 2, &nest);
  assert_ok(pestle_sketch(&nest, &caps, true));
  pestle_strbuf_init(pestle_allocator_system(), &rows);
  pestle_schedule_print(&nest, &rows);
  bool has = strstr(pestle_strbuf_cstr(&rows), row) != NULL;
  pestle_strbuf_deinit(&rows);
  pestle_nest_deinit(&nest);
  lowering_close(&l);
  return has;
}

static void test_rows_of_cores(void** state) {
  (void)state;
  // Of 24 tiles of 8 rows each core takes 8; of fewer rows than columns none.
  assert_true(
      has_primitive("gemm_rows", CORES, "split y.a 64\nsplit y.ai 8\n"));
  assert_false(has_primitive("gemm_rows", 1, "split y.ai"));
  assert_false(has_primitive("gemm_panels", CORES, "split y.ai"));
}

#define ROWS "no tiles: the matrix, 75 rows of 131 elements, is used "

static void test_gemv(void** state) {
  (void)state;
  // Rows are read in order, however small the matrix is.
  chooses("matvec_rows", 0, 0, true, ROWS "1 time only");
  chooses("matvec_rows_few", 0, 0, true, ROWS "5 times only");
  chooses("matvec_left", 0, 0, true, ROWS "1 time only");
  // Lanes add in another order than the program says.
  chooses("matvec_rows", 0, 0, false, "tile of 1 rows");
  // What is constant is packed.
  chooses("matvec_rows_few", 2, 0, true, "tile of");
  // Columns are read by whole rows where no cache holds them.
  chooses("matvec_columns", 0, 0, true, "tile of 1 rows");
  chooses("matvec_columns", 0, SMALL_CACHE, true,
          "no tiles: the matrix, 4500 columns of 70 elements, is used 1 time");
  chooses("matvec_columns", 2, SMALL_CACHE, true, "tile of");
  chooses("matvec_columns_few", 0, SMALL_CACHE, true,
          "no tiles: the matrix, 90 columns of 67 elements, is used 3 times");
  // Several vectors: half of L3 decides, 12060 bytes here.
  chooses("matvec_columns_few", 0, 48 << 10, true, "tile of 3 rows");
}

#undef ROWS

// --- Rows by hand against plain ---

// The nest of |name|'s first group after |rows| is well formed, is the same
// after it was printed and parsed, and computes what the plain one does.
static void computes(const char* name, uint32_t constants, const char* rows) {
  lowering_t l;
  pestle_nest_t plain, nest, read;
  pestle_strbuf_t text, again;
  void *inputs[16], *want[8], *got[8];
  pestle_target_caps_t caps = test_caps();
  lowering_open(find_case(name), &l);
  lowering_nest(&l, 0, constants, &plain);
  lowering_nest(&l, 0, constants, &nest);
  assert_ok(pestle_schedule_plain(&plain));
  assert_ok(apply_text(&nest, rows, strlen(rows)));
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_strbuf_init(pestle_allocator_system(), &again);
  assert_ok(pestle_nest_print(&nest, &text));
  if (getenv("PESTLE_TEST_PRINT")) fputs(pestle_strbuf_cstr(&text), stderr);
  pestle_nest_init(pestle_allocator_system(), &l.arena, "read", &read);
  assert_ok(pestle_nest_parse(text.data, text.size, "f.nest", &read));
  assert_ok(pestle_nest_print(&read, &again));
  assert_string_equal(pestle_strbuf_cstr(&text), pestle_strbuf_cstr(&again));
  assert_ok(pestle_nest_verify(&read, PESTLE_NEST_SCHEDULED, &caps));
  assert_ok(pestle_nest_verify(&nest, PESTLE_NEST_SCHEDULED, &caps));
  for (uint32_t i = 0; i < l.fusion->operand_count; ++i) {
    const pestle_type_t* type = pestle_node_operand(l.fusion, i)->type;
    inputs[i] = malloc(pestle_type_bytes(type) + 64);
    fill(type, inputs[i], i);
  }
  for (uint32_t i = 0; i < l.fusion->result_count; ++i) {
    size_t size = pestle_type_bytes(l.fusion->results[i].type) + 64;
    want[i] = calloc(1, size);
    got[i] = calloc(1, size);
  }
  run(&plain, inputs, want);
  run(&nest, inputs, got);
  for (uint32_t i = 0; i < l.fusion->result_count; ++i) {
    compare(l.c, l.fusion->results[i].type, want[i], got[i]);
    free(want[i]);
    free(got[i]);
  }
  for (uint32_t i = 0; i < l.fusion->operand_count; ++i)
    free(inputs[i]);
  pestle_strbuf_deinit(&text);
  pestle_strbuf_deinit(&again);
  pestle_nest_deinit(&plain);
  pestle_nest_deinit(&nest);
  pestle_nest_deinit(&read);
  lowering_close(&l);
}

static void test_partial(void** state) {
  (void)state;
  // The sum of 53 in blocks of 16, the last of which has 5.
  computes("softmax", 0,
           "inline mb d sb y\nat r, y_2.a\nat e, y_2.a\n"
           "partial r_2.k 16 reassoc\nat r_2, y_2.a\nat r_2p, r_2.k\n"
           "store r shared\nstore e shared\nstore r_2 private\n"
           "store r_2p private");
}

#define ONLINE                                                           \
  "inline sc mb d lb y\n"                                                \
  "partial r.k 32\npartial r_2.k 32 reassoc\npartial c_2.k 32 reassoc\n" \
  "online c_2.k reassoc : r r_2\n"

static void test_online(void** state) {
  (void)state;
  computes("attention", 0,
           ONLINE
           "split y_2.b 12\nreorder y_2 a bo bi c\n"
           "bind y_2.a group.x\nbind y_2.bo group.x\nat c_2, y_2.bo\n"
           "reorder c_2 a k b c\nat c_2p, c_2.b\nat c, c_2.k\nat rp, c_2.k\n"
           "at e, c_2.k\nat r_2p, c_2.k\nstore c shared\nstore rp shared\n"
           "store r shared\nstore e shared\nstore r_2p shared\n"
           "store r_2 shared\nstore c_2p shared\nstore c_2 shared\n");
}

// Scores and exponentials by columns, the rows of each side by side; a copy of the
// rows' operand under the loop of blocks, read by what runs under the second reduction.
static void test_permute(void** state) {
  (void)state;
  computes("attention", 0,
           ONLINE
           "permute c a c b\npermute e a c b\n"
           "split y_2.b 12\nreorder y_2 a bo bi c\n"
           "bind y_2.a group.x\nbind y_2.bo group.x\nat c_2, y_2.bo\n"
           "reorder c_2 a k b c\nat c_2p, c_2.b\nstage c oq\n"
           "at c, c_2.k\nat rp, c_2.k\n"
           "at e, c_2.k\nat r_2p, c_2.k\nstore c shared\nstore rp shared\n"
           "store r shared\nstore e shared\nstore r_2p shared\n"
           "store r_2 shared\nstore c_2p shared\nstore c_2 shared\n"
           "at oq, y_2.bo\nstore oq shared\n");
}

// Of 7 in pieces of 4, of pieces of 1: the last piece has three of these. A group
// for a fourth does nothing.
static void test_groups_of_tails(void** state) {
  (void)state;
  computes("add", 0,
           "inline y\nsplit y_2.a 4\nsplit y_2.ai 1\nbind y_2.ao group.x\n"
           "bind y_2.aio group.x");
}

// --- Legality ---

// Applies |good| rows, which must be legal, then |bad|, which must be refused
// with |message|.
static void refuse(const char* name, uint32_t constants, const char* good,
                   const char* bad, const char* message) {
  lowering_t l;
  pestle_nest_t nest;
  lowering_open(find_case(name), &l);
  lowering_nest(&l, 0, constants, &nest);
  assert_ok(apply_text(&nest, good, strlen(good)));
  assert_ok(pestle_nest_verify(&nest, PESTLE_NEST_LOWERED, NULL));
  size_t rows = nest.primitives.size;
  if (bad) {
    assert_error(apply_text(&nest, bad, strlen(bad)), INVALID_ARGUMENT,
                 message);
    assert_int_equal(nest.primitives.size,
                     rows);  // what is refused is not noted
  }
  pestle_nest_deinit(&nest);
  lowering_close(&l);
}

static void accept(const char* name, uint32_t constants, const char* good) {
  refuse(name, constants, good, NULL, NULL);
}

// What one factor reads of an argument is copied without the other's part of it.
static void test_parts_of_an_argument(void** state) {
  (void)state;
  computes("gemm_parts", 0,
           "inline l m n o\nsplit_read c oa\nstage c oa_2\nat oa_2, y.a\n"
           "store oa_2 shared\nat c, y.a\nstore c shared");
  refuse("gemm_parts", 0, "inline l m n o", "stage c oa", "read once");
  refuse("gemm_parts", 0, "inline l m n o", "split_read y oa", "a product");
  refuse("gemm_even", 0, "", "split_read c oa", "both factors");
}

static void test_loops(void** state) {
  (void)state;
  accept("gemm_even", 0, "split y.a 5\nsplit y.ai 2\nreorder y b ao aio aii");
  refuse("gemm_even", 0, "", "split y.a 0", "the factor must be positive");
  refuse("gemm_even", 0, "", "split y.q 4", "stage 'y' has no loop 'q'");
  refuse("gemm_even", 0, "", "split q.a 4", "there is no stage 'q'");
  refuse("gemm_even", 0, "split y.a 4", "split y.a 2", "not a loop");
  refuse("gemm_even", 0, "split y.b 16\nvectorise y.bi", "split y.bi 2",
         "marked already");
  accept("add", 0, "split y.a 4\nserial y.ao");
  refuse("gemm_even", 0, "", "reorder y a", "named once");
  refuse("gemm_even", 0, "", "reorder y a a", "named once");
  // A reduction loop may pass map loops, but float sums keep the order of theirs.
  accept("gemm_even", 0, "split c.k 4\nreorder c ko a ki b");
  refuse("gemm_even", 0, "split c.k 4", "reorder c ki ko a b",
         "may not pass each other");
  accept("gemm_even", 0,
         "split c.k 4\nrfactor c.ki reassoc\nreorder c ki ko a b");
  accept("gemm_i32", 0, "split c.k 4\nreorder c ki ko a b");
  refuse("arg_max", 0, "split r.k 4", "reorder r a ki ko",
         "may not pass each other");
}

static void test_fuse(void** state) {
  (void)state;
  accept("chain", 0,
         "inline c d y\nfuse y_2.a b\nfuse y_2.ab c\nsplit y_2.abc 16");
  refuse("chain", 0, "inline c d y", "fuse y_2.a c", "adjacent");
  refuse("chain", 0, "inline c d y\nsplit y_2.a 2", "fuse y_2.b c", "unsplit");
  refuse("transpose", 0, "inline y", "flatten y_2.a b", "2, 4 or 8 long");
  // Neither a window's taps nor an axis of results go with what is reduced.
  computes("max_pool", 0,
           "flatten w.k l\nsplit w.kl 2\nat w, y.d\nstore w private");
  refuse("max_pool", 0, "", "fuse w.k l", "an index would need a division");
  refuse("gemm_even", 0, "", "flatten c.b k",
         "both of results or both reduced");
  refuse("transpose", 0, "inline y", "fuse y_2.a b",
         "an index would need a division");
}

static void test_permute_is_legal(void** state) {
  (void)state;
  accept("gemm_even", 0, "permute c b a\nsplit c.a 4");
  accept("softmax", 0, "inline mb d sb y\npermute e b a\npermute e a b");
  refuse("gemm_even", 0, "", "permute c b", "named once");
  refuse("gemm_even", 0, "", "permute c b b", "named once");
  refuse("gemm_even", 0, "", "permute c a k", "named once");
  refuse("gemm_even", 0, "split c.a 4", "permute c b a", "none of them split");
  refuse("gemm_even", 0, "unroll c.k", "permute c b a", "or marked");
  refuse("gemm_even", 0, "", "permute y b a", "kept in the kernel");
}

// One axis as two, of what is kept, what is written, and both.
static void test_unfuse(void** state) {
  (void)state;
  computes("gemm_even", 0, "unfuse c.b 32\nat c, y.b\nstore c private");
  computes("gemm_even", 0, "unfuse y.b 32\nat c, y.bi\nstore c private");
  computes("gemm_even", 0,
           "unfuse c.a 3\nunfuse c.b 32\nunfuse y.b 32\nat c, y.bo\n"
           "store c shared");
  computes("gemm_even", 0,
           "unfuse c.b 32\nunfuse c.bi 4\nsplit y.b 16\nat c, y.bo\n"
           "store c shared");
  refuse("gemm_even", 0, "", "unfuse c.b 5", "of whole parts of 5");
  refuse("gemm_even", 0, "", "unfuse c.b 128", "of whole parts of 128");
  refuse("gemm_even", 0, "", "unfuse c.k 4", "it must be a map axis");
  refuse("gemm_even", 0, "split c.a 4", "unfuse c.b 32", "none is split");
}

// Registers are vectors along the last dim, of what writes and what reads them.
static void test_registers(void** state) {
  (void)state;
  lowering_t l;
  const struct {
    const char* rows;
    const char* message;
  } rows[] = {
      {"permute c b a\nsplit y.b 16\nsplit y.bi 4\nsplit y.a 6\n"
       "reorder y ao bo ai bio bii\nunroll y.ai\nunroll y.bio\n"
       "vectorise y.bii\nsplit c.b 4\nvectorise c.bi\nunroll c.a\n"
       "unroll c.bo\nreorder c k a bo bi\nat c, y.bo\nstore c private",
       "hold vectors of 'b'"},
      {"split y.a 4\nsplit y.b 4\nreorder y ao bo bi ai\nunroll y.bi\n"
       "vectorise y.ai\nsplit c.b 4\nvectorise c.bi\nunroll c.a\n"
       "unroll c.bo\nreorder c k a bo bi\nat c, y.bo\nstore c private",
       "across its registers"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    pestle_nest_t nest;
    lowering_open(find_case("gemm_even"), &l);
    lowering_nest(&l, 0, 0, &nest);
    assert_ok(apply_text(&nest, rows[i].rows, strlen(rows[i].rows)));
    assert_error(pestle_nest_verify(&nest, PESTLE_NEST_SCHEDULED, NULL),
                 INTERNAL, rows[i].message);
    pestle_nest_deinit(&nest);
    lowering_close(&l);
  }
}

// Parts of an unrolled loop that the border cuts count from where they begin.
static void test_border(void** state) {
  (void)state;
  accept("conv_depthwise", 0,
         "inline xpad\nreorder c a b k m c l d\nunroll c.c\nunroll c.l\n"
         "border c");
  accept("conv_depthwise_boxes", 0,
         "inline xpad\nsplit y.c 4\nat c, y.co\n"
         "reorder c a b k m c l d\nunroll c.c\nunroll c.l\nborder c");
  accept("conv_nhwc", 0,
         "inline xpad\nreorder c a b k l m c d\nunroll c.c\nborder c");
  accept("conv_nhwc", 0,
         "inline xpad\nreorder c a b k l m c d\nunroll c.c\n"
         "border c reassoc");
  refuse("conv_depthwise", 0, "inline xpad", "border y",
         "it must be a reduction");
  refuse("conv_depthwise", 0, "", "border c reassoc", "zeros for padding");
}

static void test_winograd(void** state) {
  (void)state;
  static const char no_size[] = "each of 2 or 4 results a side";
  static const char* const bad[] = {
      "winograd c 1 28 6 4 16 0 1 0",
      "winograd c 1 28 6 4 16 0 1 3",
      "winograd c 1 28 6 4 16 0 1 5",
      "winograd c 1 28 6 4 16 0 1 -2",
      "winograd c 1 28 6 4 16 0 1 -6",
      "winograd c 1 28 6 4 16 0 1 6",
      "winograd c 1 28 6 4 16 0 1 9223372036854775807",
      "winograd c 1 28 6 4 16 0 1 -9223372036854775808",
      "winograd c 0 28 6 4 16 0 1 4",
      "winograd c 1 28 0 4 16 0 1 4",
      "winograd c 1 28 6 9 16 0 1 4",
      "winograd c 1 28 6 4 3 0 1 4",
      "winograd c 1 28 6 4 32 0 1 4",
      "winograd c 1 28 6 4 16 0 2 4"};
  accept("conv_panel", 2, "inline xpad\nwinograd c 1 28 6 4 16 0 1 4");
  accept("conv_panel", 2, "inline xpad\nwinograd c 1 56 6 2 8 1 4 2");
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    refuse("conv_panel", 2, "inline xpad", bad[i], no_size);
  }
  refuse("conv_panel", 0, "inline xpad", "winograd c 1 28 6 4 16 0 1 4",
         no_size);
}

static void test_prefetch(void** state) {
  (void)state;
  // Where an argument is read.
  accept("softmax", 0, "inline mb d\nprefetch e ox at b by 53");
  accept("softmax", 0, "inline mb d\nprefetch e f at b like ox by 0");
  refuse("softmax", 0, "inline mb d", "prefetch e ox at a by 53",
         "be its innermost");
  refuse("softmax", 0, "", "prefetch e ox at b by 53",
         "must read the argument");
  refuse("softmax", 0, "inline mb d", "prefetch e e at b like ox by 53",
         "must read the argument");
  // Where results are written.
  accept("chain", 0, "inline c d y\nprefetch y_2 f at b by 784");
  refuse("chain", 0, "inline c d y", "prefetch y_2 f at c by 0", "over others");
  accept("chain", 0, "inline c d y\nprefetch y_2 ob at b like f by 784");
  refuse("gemm_even", 0, "", "prefetch y oa at a like f by 0",
         "an argument of as many");
  refuse("chain", 0, "inline c d y\nbind y_2.a group.x\nbind y_2.b group.x",
         "prefetch y_2 f at a by 0", "neither groups nor lanes");
  refuse("gemm_even", 0, "", "prefetch c f at a by 0", "of the last stage");
  // A share a step.
  accept("gemm_even", 0,
         "split y.a 4\nat c, y.ao\nprefetch c ob at k by 8 share 2");
  refuse("gemm_even", 0, "", "prefetch c ob at k by 8 share 2", "under a loop");
  refuse("gemm_even", 0, "split y.a 4\nat c, y.ao",
         "prefetch c ob at b by 8 share 2", "serial reduction loops");
  refuse("gemm_even", 0, "split y.a 4\nat c, y.ao",
         "prefetch y ob at b by 8 share 2", "must be a reduction");
}

static void test_inline(void** state) {
  (void)state;
  accept("softmax", 0, "inline mb d e sb y");
  accept("softmax", 0, "inline y\ninline mb\ninline e d");
  refuse("softmax", 0, "", "inline r", "only map stages");
  refuse("softmax", 0, "", "inline y q", "there is no stage 'q'");
  refuse("softmax", 0, "", "inline y_2", "writes a result");
  refuse("softmax", 0, "at e, y_2.a", "inline e", "has a place under y_2");
}

static void test_at(void** state) {
  (void)state;
  accept("gemm_even", 0, "split y.a 4\nat c, y.ao");
  accept("gemm_even", 0, "at c, y");
  refuse("gemm_even", 0, "", "at y, c.a", "not a loop of a later stage");
  refuse("gemm_even", 0, "split y.a 4", "at c, y.a",
         "not a loop of a later stage");
  refuse("gemm_even", 0, "split y.b 16\nvectorise y.bi", "at c, y.bi",
         "nothing runs under a vector loop");
  refuse("gemm", 0, "inline cb e y", "at cb, y_2.a", "have no place");
  // y_2 and the sum read the exponentials: they cannot run under the sum alone.
  refuse("softmax", 0, "inline mb d sb y", "at e, r_2.k",
         "stage y_2 reads it too and does not run under that loop");
  refuse("softmax", 0, "inline mb d sb y", "at r, r_2", "under its loops only");
  // A copy of what a tile of columns reduces, before its tiles of rows.
  accept("gemm_even", 0,
         "stage c ob\nat c, y\nstore c shared\nsplit c.b 8\n"
         "reorder c bo a k bi\nat ob, c.bo\nstore ob shared");
  accept("gemm", 0,
         "inline cb\nstage c ob\nat c, y_2.a\nstore c shared\nsplit c.b 8\n"
         "reorder c bo a k bi\nat ob, c.bo\nstore ob shared");
  accept("softmax", 0,
         "inline mb d sb y\nat r, y_2.a\nat e, y_2.a\nat r_2, y_2.a");
}

// A row of 53 that three lanes share alike, in vectors of one element.
#define SHARED_ROWS                                                       \
  "inline mb d sb y\nbind y_2.a group.x\n"                                \
  "split y_2.b 8\nreorder y_2 a bo bi\nbind y_2.bi lane.x\n"              \
  "at r, y_2.a\nat e, y_2.a\nat r_2, y_2.a\nstore r private\n"            \
  "split e.b 8\nreorder e a bo bi\nbind e.bi lane.x\nstore r_2 private\n" \
  "store e shared\n"
#define SHARED_SUM                          \
  "split r_2.k 8\nrfactor r_2.ki reassoc\n" \
  "reorder r_2 a ko ki\nbind r_2.ki lane.x\n"
#define UNROLLED "unroll y_2.bo\nunroll e.bo\n"

static void test_store_lanes(void** state) {
  (void)state;
  accept("softmax", 0,
         SHARED_ROWS SHARED_SUM UNROLLED "unroll r_2.ko\nstore e lanes");
  // The steps of all have to be unrolled, and the sum must have its lanes.
  refuse("softmax", 0, SHARED_ROWS SHARED_SUM UNROLLED, "store e lanes",
         "not all that reads it shares its row");
  refuse("softmax", 0, SHARED_ROWS UNROLLED, "store e lanes",
         "not all that reads it shares its row");
  refuse("gemm_even", 0, "at c, y.a", "store c lanes",
         "not all that reads it shares its row");
}

static void test_store(void** state) {
  (void)state;
  accept("gemm_even", 0,
         "split y.b 16\nat c, y.bo\nunroll c.b\nstore c private");
  accept("gemm_even", 0, "at c, y.a\nstore c shared");
  refuse("gemm_even", 0, "", "store y private", "writes a result");
  refuse("gemm_even", 0, "at c, y.a", "store c private",
         "registers have no addresses");
  refuse("gemm_even", 0, "split y.b 16\nat c, y.bo", "store c private",
         "registers have no addresses");
}

static void test_stage_and_pack(void** state) {
  (void)state;
  accept("gemm_even", 0, "stage c ob\nat ob, y.a\nstore ob shared\nat c, y.a");
  refuse("gemm_even", 0, "", "stage c q", "there is no tensor 'q'");
  refuse("gemm_even", 0, "", "stage y c", "must be an argument");
  refuse("gemm_even", 0, "", "stage y ob", "must be an argument");
  refuse("max_pool", 0, "", "stage w ox", "guarded by tests of its own");
  accept("gemm_even", 2, "pack c.b ob 32");
  refuse("gemm_even", 0, "", "pack c.b ob 32", "it needs a constant");
  refuse("gemm_even", 2, "", "pack c.k ob 32", "a map axis to cut");
  refuse("gemm_even", 2, "", "pack c.b ob 0", "it needs a constant");
  refuse("gemm_even", 2, "pack c.b ob 32", "pack c.b ob 32",
         "it needs a constant");
}

static void test_dots_are_legal(void** state) {
  (void)state;
  accept("dot_bytes", 0, "dot c.k 4\nat c, y.a");
  accept("dot_bytes", 0, "dot c.k 4\nflip c\nat c, y.a\nat cb, y.a");
  accept("dot_mixed", 2,
         "dot c.k 4\npack c.c ob 16\nat c, y.a\nstore c shared");
  accept("dot_bf16", 0, "dot c.k 2 reassoc\nat c, y.a");
  accept("conv_bytes", 0, "join c.l m\ndot c.m 4\nat c, y.a");
  refuse("conv_bytes", 0, "", "join c.k l", "as far as the whole of the");
  refuse("conv_bytes", 0, "", "join c.k m", "neighbouring reduction axes");
  refuse("conv_bytes", 0, "dot c.m 4", "join c.l m", "before other primitives");
  refuse("dot_bytes", 0, "", "dot c.k 2", "of two bf16, or of four bytes");
  refuse("dot_bytes", 0, "", "dot c.a 4", "along that whole reduction axis");
  refuse("dot_bytes", 0, "split c.k 8", "dot c.ko 4",
         "before other primitives");
  refuse("dot_bytes", 0, "dot c.k 4", "dot c.k 4", "before other primitives");
  refuse("dot_bf16", 0, "", "dot c.k 2", "reassociation for float sums");
  refuse("gemm_even", 0, "", "dot c.k 2 reassoc", "of two bf16");
  refuse("dot_bytes", 0, "", "flip c", "must reduce short dot products");
  refuse("dot_mixed", 0, "dot c.k 4", "flip c", "that have a sign, or have");
}

static void test_marks(void** state) {
  (void)state;
  accept("gemm_even", 0, "bind y.a group.x\nbind y.b group.x");
  refuse("gemm_even", 0, "", "bind y.b group.x", "from the outside in");
  refuse("gemm_even", 0, "", "bind c.a group.x", "of the last stage");
  accept("gemm_even", 0, "split y.b 16\nvectorise y.bi");
  refuse("gemm_even", 0, "split y.b 12", "vectorise y.bi", "a power of two");
  refuse("gemm_even", 0, "split y.b 256", "vectorise y.bi", "at most 128");
  refuse("gemm_even", 0, "", "vectorise c.k", "in a reduction partial results");
  refuse("gemm_even", 0, "split y.b 16\nsplit y.a 4\nvectorise y.bi",
         "vectorise y.ai", "bi is the stage's vector axis already");
  accept("gemm_even", 0, "unroll y.b");
  refuse("gemm_even", 0, "unroll y.b", "unroll y.a",
         "more than 512 copies of the body of y");
  // A stage that is placed later will run on a part: it is counted then.
  accept("gemm_even", 0, "unroll c.a\nunroll c.b\nsplit y.b 16\nat c, y.bo");
  refuse("gemm_even", 0, "unroll c.a\nunroll c.b", "at c, y",
         "at c, y: more than 512 copies of the body of c");
  refuse("gemm_even", 0, "at c, y\nunroll c.a", "unroll c.b",
         "unroll c.b: more than 512 copies of the body of c");
  // The loops that it runs under make copies of it too.
  refuse("gemm_even", 0, "split y.b 16\nat c, y.bo\nunroll c.b\nunroll c.k",
         "unroll y.bo", "more than 512 copies of the body of c");
  refuse("gemm_even", 0,
         "split y.b 16\nat c, y.bo\nunroll c.a\nunroll c.b\n"
         "unroll c.k",
         "reorder y bo a bi", "more than 512 copies of the body of c");
}

// The verifier counts copies too, of all stages.
static void test_copies(void** state) {
  (void)state;
  lowering_t l;
  pestle_nest_t nest;
  lowering_open(find_case("gemm_even"), &l);
  lowering_nest(&l, 0, 0, &nest);
  assert_ok(apply_text(&nest, "at c, y\nstore c shared", 22));
  const pestle_nest_stage_t* c = &nest.stages.data[0];
  nest.axes.data[c->roots[1]].mark = PESTLE_MARK_UNROLL;
  assert_ok(pestle_nest_verify(&nest, PESTLE_NEST_SCHEDULED, NULL));
  nest.axes.data[c->roots[0]].mark = PESTLE_MARK_UNROLL;
  assert_error(pestle_nest_verify(&nest, PESTLE_NEST_SCHEDULED, NULL), INTERNAL,
               "stage 'c': unrolled loops make more than 512 copies");
  pestle_nest_deinit(&nest);
  lowering_close(&l);
}

// The first failure stays, with its code and its sentence.
static void test_sticky(void** state) {
  (void)state;
  lowering_t l;
  pestle_nest_t nest;
  lowering_open(find_case("gemm_even"), &l);
  lowering_nest(&l, 0, 0, &nest);
  assert_ok(pestle_nest_status(&nest));
  pestle_nest_fail(&nest, PESTLE_ERROR(UNSUPPORTED, "the first"));
  pestle_nest_fail(&nest, PESTLE_ERROR(INTERNAL, "the second"));
  pestle_nest_fail_memory(&nest);
  assert_error(pestle_nest_status(&nest), UNSUPPORTED, "the first");
  assert_error(apply_text(&nest, "split y.a 4", 11), UNSUPPORTED, "the first");
  pestle_nest_deinit(&nest);
  lowering_close(&l);
}

// Emission refuses what it has no registers for, and not for lack of memory.
static void test_too_many_parts(void** state) {
  (void)state;
  static const char rows[] =
      "inline cb e y\nsplit c.k 128\nrfactor c.ki reassoc\nunroll c.ki\n"
      "at c, y_2\nstore c shared";
  lowering_t l;
  pestle_nest_t nest;
  pestle_kir_builder_t flat;
  pestle_emitted_t args;
  lowering_open(find_case("gemm"), &l);
  lowering_nest(&l, 0, 0, &nest);
  assert_ok(apply_text(&nest, rows, sizeof(rows) - 1));
  pestle_kir_init(pestle_allocator_system(), "test", "", &flat);
  assert_error(pestle_emit_flat(&nest, PESTLE_NUMERICS_DEFAULT, &flat, &args),
               UNSUPPORTED, "reduces into 128 partial results");
  pestle_kir_deinit(&flat);
  pestle_nest_deinit(&nest);
  lowering_close(&l);
}

static void test_rfactor_and_epilogue(void** state) {
  (void)state;
  accept("gemm_even", 0, "rfactor c.k reassoc\nvectorise c.k");
  accept("gemm_i32", 0, "rfactor c.k");
  accept("max_pool", 0, "rfactor w.k");
  refuse("gemm_even", 0, "", "rfactor c.k", "reassociation for float sums");
  refuse("gemm_even", 0, "", "rfactor c.a reassoc", "an associative reduction");
  refuse("arg_max", 0, "", "rfactor r.k reassoc", "an associative reduction");
  accept("gemm_tanh", 0, "inline y\nepilogue c scratch\nat c, y_2.a");
  refuse("gemm_tanh", 0, "inline y", "epilogue y_2 scratch",
         "not a single reduction");
  refuse("arg_max", 0, "", "epilogue r scratch", "not a single reduction");
}

static void test_partial_is_legal(void** state) {
  (void)state;
  accept("gemm_even", 0, "partial c.k 4 reassoc\nat c, y.a\nat cp, c.k");
  accept("gemm_i32", 0, "partial c.k 4");
  accept("max_pool", 0, "partial w.k 2");
  refuse("gemm_even", 0, "", "partial c.k 4", "reassociation for float sums");
  refuse("gemm_even", 0, "", "partial c.a 4 reassoc", "a reduction axis");
  refuse("gemm_even", 0, "", "partial c.k 16 reassoc", "must be shorter");
  refuse("gemm_even", 0, "split c.b 16", "partial c.k 4 reassoc",
         "comes first");
  refuse("arg_max", 0, "", "partial r.k 4 reassoc", "an associative reduction");
}

static void test_online_is_legal(void** state) {
  (void)state;
  const char* blocks =
      "inline sc mb d lb y\npartial r.k 32\npartial r_2.k 32 reassoc\n"
      "partial c_2.k 32 reassoc";
  accept("attention", 0, ONLINE);
  refuse("attention", 0, blocks, "online c_2.k : r r_2", "reassociation");
  refuse("attention", 0, blocks, "online c_2.k reassoc : r_2 r",
         "it must be a maximum of floats");
  refuse("attention", 0, blocks, "online c_2.k reassoc : r r",
         "it must be a sum of partial sums");
  refuse("attention", 0, "inline sc mb d lb y", "online c_2.k reassoc : r r_2",
         "a sum of partial sums");
  // Their loops have other lengths.
  refuse("attention", 0,
         "inline sc mb d lb y\npartial r.k 16\npartial r_2.k 32 reassoc\n"
         "partial c_2.k 32 reassoc",
         "online c_2.k reassoc : r r_2", "the loop's steps");
  // The sum of the exponentials is left out: it would see a maximum that is
  // not final.
  refuse("attention", 0, blocks, "online c_2.k reassoc : r", "outside of them");
}

static void test_transpose_is_legal(void** state) {
  (void)state;
  accept("transpose", 0,
         "stage y oa\nsplit oa.b 16\nsplit oa.a 16\n"
         "reorder oa bo ao bi ai\nunroll oa.bi\nvectorise oa.ai\n"
         "transpose oa");
  refuse("transpose", 0, "stage y oa", "transpose oa", "it must be a copy");
  refuse("gemm_even", 0, "", "transpose c", "it must be a copy");
}

static void test_stream_is_legal(void** state) {
  (void)state;
  accept("long_chain", 0,
         "inline c y\nsplit y_2.a 64\nsplit y_2.ai 16\nunroll y_2.aio\n"
         "vectorise y_2.aii\nstream y_2");
  refuse("long_chain", 0, "inline c y", "stream y_2", "must be a vector");
  refuse("long_chain", 0, "", "stream c", "only the last stage");
  // Every other vector of 16 would begin in the middle of a line.
  refuse("long_chain", 0,
         "inline c y\nsplit y_2.a 24\nsplit y_2.ai 16\nvectorise y_2.aii",
         "stream y_2", "multiples of their size");
  // Rows of 19.
  refuse("transpose", 0, "inline y\nsplit y_2.b 16\nvectorise y_2.bi",
         "stream y_2", "multiples of their size");
  accept("gemm_even", 0,
         "split y.b 16\nvectorise y.bi\nsplit c.b 16\nvectorise c.bi\n"
         "reorder c a k bo bi\nstream y");
}

static void malformed(const char* text, const char* message) {
  lowering_t l;
  pestle_nest_t nest;
  lowering_open(find_case("gemm_even"), &l);
  lowering_nest(&l, 0, 0, &nest);
  assert_error(apply_text(&nest, text, strlen(text)), MALFORMED, message);
  pestle_nest_deinit(&nest);
  lowering_close(&l);
}

static void test_row_errors(void** state) {
  (void)state;
  malformed("cut y.a 4", "f.rows:1:1: expected a schedule primitive");
  malformed("split y.a 4\nsplit y b", "f.rows:2:9: expected '.'");
  malformed("split y.a", "f.rows:1:10: expected an integer");
  malformed("split y.a 4 5", "f.rows:1:13: expected the end of the primitive");
  malformed("store c global", "f.rows:1:9: expected private, shared or lanes");
  malformed("bind y.a lanes", "f.rows:1:10: expected group.x, lane.x or");
  malformed("reorder y", "expected the name of a loop");
  malformed("}", "f.rows:1:1: expected a schedule primitive");
}

int main(void) {
  static const struct CMUnitTest own[] = {
      cmocka_unit_test(test_loops),
      cmocka_unit_test(test_fuse),
      cmocka_unit_test(test_permute),
      cmocka_unit_test(test_permute_is_legal),
      cmocka_unit_test(test_unfuse),
      cmocka_unit_test(test_registers),
      cmocka_unit_test(test_border),
      cmocka_unit_test(test_winograd),
      cmocka_unit_test(test_inline),
      cmocka_unit_test(test_prefetch),
      cmocka_unit_test(test_at),
      cmocka_unit_test(test_store),
      cmocka_unit_test(test_stage_and_pack),
      cmocka_unit_test(test_dots_are_legal),
      cmocka_unit_test(test_marks),
      cmocka_unit_test(test_copies),
      cmocka_unit_test(test_sticky),
      cmocka_unit_test(test_too_many_parts),
      cmocka_unit_test(test_rfactor_and_epilogue),
      cmocka_unit_test(test_gemv),
      cmocka_unit_test(test_partial),
      cmocka_unit_test(test_groups_of_tails),
      cmocka_unit_test(test_parts_of_an_argument),
      cmocka_unit_test(test_online),
      cmocka_unit_test(test_partial_is_legal),
      cmocka_unit_test(test_online_is_legal),
      cmocka_unit_test(test_transpose_is_legal),
      cmocka_unit_test(test_stream_is_legal),
      cmocka_unit_test(test_store_lanes),
      cmocka_unit_test(test_panels),
      cmocka_unit_test(test_rows_of_cores),
      cmocka_unit_test(test_row_errors)};
  enum { OWN = sizeof(own) / sizeof(own[0]) };
  struct CMUnitTest tests[2 * FUSION_COUNT + OWN];
  size_t n = OWN;
  memcpy(tests, own, sizeof(own));
  const char* only = getenv("PESTLE_TEST_ONLY");
  for (size_t i = 0; i < FUSION_COUNT; ++i) {
    if (only && strcmp(only, cases[i].name)) continue;
    tests[n++] = (struct CMUnitTest){.name = cases[i].name,
                                     .test_func = test_replay,
                                     .initial_state = (void*)&cases[i]};
    tests[n++] = (struct CMUnitTest){.name = cases[i].name,
                                     .test_func = test_plain,
                                     .initial_state = (void*)&cases[i]};
  }
  return _cmocka_run_group_tests("schedules", tests, n, NULL, NULL);
}
