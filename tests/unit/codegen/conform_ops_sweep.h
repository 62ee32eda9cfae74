// SPDX-License-Identifier: Apache-2.0
// The structured ops' table, the known gaps, and which instances are run.
#ifndef PESTLE_TESTS_UNIT_CODEGEN_CONFORM_OPS_SWEEP_H_
#define PESTLE_TESTS_UNIT_CODEGEN_CONFORM_OPS_SWEEP_H_

#include "unit/codegen/conform_ops.h"
#include "unit/codegen/conform_ops_direct.h"
#include "unit/codegen/conform_ops_fold.h"
#include "unit/codegen/conform_ops_move.h"

static const shape_t shapes[] = {
    {"scalar", 0, {0}},
    {"empty inside", 3, {3, 0, 5}},
    {"empty last", 2, {4, 0}},
    {"ones", 3, {1, 1, 1}},
    {"odd", 3, {3, 5, 7}},
    {"prime", 2, {13, 37}},
    {"ones between", 4, {2, 1, 9, 1}},
    {"one axis", 1, {259}},
    // Vectors with tails, and more than one group of every sketch.
    {"large", 3, {9, 67, 131}},
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]), LARGE = SHAPES - 1 };

enum {
  ANY_KIND = REAL_KINDS | PESTLE_KIND_COMPLEX,
  NUMBERS = PESTLE_KIND_REAL | PESTLE_KIND_COMPLEX,
  FLOATS = PESTLE_KIND_FLOAT,
};

// clang-format off
static const row_t rows[] = {
    {PESTLE_OP_CONSTANT, ANY_KIND, 4, build_constant},
    {PESTLE_OP_IOTA, NUMBERS, 3, build_iota},
    {PESTLE_OP_CONVERT, ANY_KIND, 2, build_convert},
    {PESTLE_OP_BITCAST_CONVERT, ANY_KIND, 7, build_bitcast},
    {PESTLE_OP_BROADCAST_IN_DIM, ANY_KIND, 4, build_broadcast},
    {PESTLE_OP_RESHAPE, ANY_KIND, 3, build_reshape},
    {PESTLE_OP_TRANSPOSE, ANY_KIND, 4, build_transpose},
    {PESTLE_OP_SLICE, ANY_KIND, 4, build_slice},
    {PESTLE_OP_REVERSE, ANY_KIND, 3, build_reverse},
    {PESTLE_OP_PAD, ANY_KIND, 4, build_pad},
    {PESTLE_OP_CONCATENATE, ANY_KIND, 4, build_concatenate},
    {PESTLE_OP_DYNAMIC_SLICE, ANY_KIND, 3, build_dynamic_slice},
    {PESTLE_OP_DYNAMIC_UPDATE_SLICE, ANY_KIND, 3, build_dynamic_update_slice},
    {PESTLE_OP_GATHER, ANY_KIND, 4, build_gather},
    {PESTLE_OP_REDUCE, ANY_KIND, REDUCE_VARIANTS, build_reduce},
    {PESTLE_OP_REDUCE_WINDOW, ANY_KIND, 3 * WINDOWS, build_reduce_window},
    {PESTLE_OP_DOT_GENERAL, NUMBERS, DOTS, build_dot},
    {PESTLE_OP_CONVOLUTION, NUMBERS, CONVS, build_conv},
    {PESTLE_OP_WHILE, ANY_KIND, 3, build_while},
    {PESTLE_OP_IF, ANY_KIND, 2, build_if},
    {PESTLE_OP_CASE, ANY_KIND, 4, build_case},
    {PESTLE_OP_CALL, ANY_KIND, 1, build_call},
    {PESTLE_OP_OPTIMIZATION_BARRIER, ANY_KIND, 1, build_barrier},
    {PESTLE_OP_FUSION, ANY_KIND, 2, build_fusion},
    {PESTLE_OP_SOFTMAX, FLOATS, AXIS_CHOICES, build_soft},
    {PESTLE_OP_LOG_SOFTMAX, FLOATS, AXIS_CHOICES, build_soft},
    {PESTLE_OP_LAYER_NORM, FLOATS, AXIS_CHOICES, build_norm},
    {PESTLE_OP_RMS_NORM, FLOATS, AXIS_CHOICES, build_norm},
    {PESTLE_OP_GELU, FLOATS, 2, build_activation},
    {PESTLE_OP_SILU, FLOATS, 1, build_activation},
    {PESTLE_OP_HARD_SIGMOID, FLOATS, 1, build_activation},
    {PESTLE_OP_QUANTIZE, FLOATS, 2 * QUANTIZED, build_quantisation},
    {PESTLE_OP_DEQUANTIZE, FLOATS, 2 * QUANTIZED, build_quantisation},
    {PESTLE_OP_ATTENTION, FLOATS, ATTENTIONS, build_attention},
    {PESTLE_OP_SORT, REAL_KINDS, 4, build_sort},
    {PESTLE_OP_SCATTER, REAL_KINDS, 5, build_scatter},
    {PESTLE_OP_SELECT_AND_SCATTER, REAL_KINDS, 4, build_select},
    {PESTLE_OP_CHOLESKY, FLOATS, 2, build_cholesky},
    {PESTLE_OP_TRIANGULAR_SOLVE, FLOATS, 8, build_solve},
    {PESTLE_OP_MAP, REAL_KINDS, 1, build_map},
    {PESTLE_OP_BATCH_NORM_INFERENCE, FLOATS, 2, build_batch_norm},
    {PESTLE_OP_REDUCE_PRECISION, FLOATS, 6, build_reduce_precision},
    {PESTLE_OP_COMPLEX, FLOATS, 1, build_complex},
    {PESTLE_OP_REAL, PESTLE_KIND_FLOAT | PESTLE_KIND_COMPLEX, 1, build_part},
    {PESTLE_OP_IMAG, PESTLE_KIND_FLOAT | PESTLE_KIND_COMPLEX, 1, build_part},
};
// clang-format on
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

#define BIT(NAME) (UINT32_C(1) << PESTLE_##NAME)
#define COMPLEX (BIT(C64) | BIT(C128))

static const gap_t gaps[] = {
    {PESTLE_OP_BITCAST_CONVERT, NULL, COMPLEX, BY_TARGETS, 1,
     "widths of complex "},
};
enum { GAPS = sizeof(gaps) / sizeof(gaps[0]) };

// --- Which instances ---

// With share 0 all. Else for one dtype every variant on every third shape, and
// for the others about |share| instances a row, which differ from dtype to
// dtype.
static inline bool is_picked(const instance_t* t, uint32_t share) {
  if (!share) return true;
  uint32_t s = (uint32_t)(t->shape - shapes);
  if (t->dtype == PESTLE_F32) return (s + t->variant) % 3 == 0;
  uint32_t key =
      s +
      32 * (t->variant + 64 * ((uint32_t)t->dtype + 32 * (uint32_t)t->row->op));
  for (int round = 0; round < 2; ++round) {
    key = (key ^ key >> 16) * 2246822519u;
    key = (key ^ key >> 13) * 3266489917u;
  }
  uint32_t all = SHAPES * t->row->variants;
  return (uint32_t)((uint64_t)key * all >> 32) < share;
}

static inline uint32_t run_dtype(const row_t* row, pestle_dtype_t dtype,
                                 uint32_t share) {
  uint32_t ran = 0;
  for (uint32_t v = 0; v < row->variants; ++v) {
    for (size_t s = 0; s < SHAPES; ++s) {
      instance_t t = {
          .row = row, .dtype = dtype, .shape = &shapes[s], .variant = v};
      if (!is_picked(&t, share)) continue;
      for (int wrapped = 0; wrapped < 2; ++wrapped) {
        // Where not all is run, every second instance is wrapped.
        if (share && wrapped != (int)((v / 2 + s + dtype) & 1)) continue;
        static const char* const hows[] = {"", "no_fuse", "", "strict"};
        instance_t each = t;
        each.wrapped = wrapped;
        each.how = hows[(v + s + (size_t)dtype + (size_t)wrapped) % 4];
        ran += run_instance(&each);
      }
    }
  }
  return ran;
}

static inline void run_row(const row_t* row, uint32_t share) {
  const char* only = getenv("PESTLE_TEST_DTYPE");
  sweep.failed_before = sweep.failures;
  for (int d = PESTLE_I1; d <= PESTLE_C128; ++d) {
    pestle_dtype_t dtype = (pestle_dtype_t)d;
    if (!pestle_dtype_is(dtype, row->kinds)) continue;
    if (only && strcmp(only, pestle_dtype_info(dtype)->name)) continue;
    // A pick may meet nothing but variants that do not go with their shapes.
    uint32_t ran = run_dtype(row, dtype, share);
    for (uint32_t more = 2; !ran && share && more < 64; more *= 2)
      ran = run_dtype(row, dtype, share * more);
    assert_true(ran > 0);
  }
  assert_int_equal(sweep.failures - sweep.failed_before, 0);
}

// --- Tests ---

static inline const row_t* find_row(pestle_op_t op) {
  for (size_t i = 0; i < ROWS; ++i) {
    if (rows[i].op == op) return &rows[i];
  }
  return NULL;
}

// Every op that runs has a row: only terminators have none of their own.
static inline void test_table(void** state) {
  (void)state;
  for (unsigned op = PESTLE_SCALAR_COUNT; op < PESTLE_OP_COUNT; ++op) {
    const pestle_op_info_t* info = pestle_op_info((pestle_op_t)op);
    bool runs = !(info->flags & PESTLE_OP_FLAG_TERMINATOR);
    if (runs != (find_row((pestle_op_t)op) != NULL)) {
      fail_msg("op '%s' has %s row in the sweep", info->name,
               runs ? "no" : "a");
    }
  }
}

static inline void print_gaps(void) {
  for (size_t i = 0; i < sweep.gap_count; ++i) {
    const gap_t* g = &gaps[i];
    if (!sweep.hits[i]) continue;  // its row was not run
    print_message("gap: %s (%s) on%s%s%s: %zu instances: %s\n",
                  pestle_op_info(g->op)->name, g->what ? g->what : "all",
                  g->stages & BY_IR_REF ? " ir/ref" : "",
                  g->stages & BY_REF ? " ref" : "",
                  g->stages & BY_LLVM ? " llvm" : "", sweep.hits[i], g->reason);
  }
}

static uint32_t sweep_share;

static inline void check_gap_counts(pestle_op_t op) {
  for (size_t i = 0; i < sweep.gap_count; ++i) {
    const gap_t* g = &gaps[i];
    if (g->op != op || getenv("PESTLE_TEST_DTYPE")) continue;
    // The long sweep meets each gap too, but more often.
    bool held = sweep_share ? sweep.hits[i] == g->count : sweep.hits[i] > 0;
    if (!held) {
      fail_msg("gap %zu (%s of %s) is met by %zu instances, not %zu", i,
               g->what ? g->what : "all variants", pestle_op_info(op)->name,
               sweep.hits[i], g->count);
    }
  }
}

static inline void test_row(void** state) {
  const row_t* row = *state;
  run_row(row, sweep_share);
  check_gap_counts(row->op);
}

// Whether the op folds elements or only makes and moves them.
static inline bool folds(pestle_op_t op) {
  switch ((pestle_fuse_class_t)pestle_op_info(op)->fuse) {
    case PESTLE_FUSE_REDUCTION:
    case PESTLE_FUSE_WINDOW:
    case PESTLE_FUSE_CONTRACTION:
    case PESTLE_FUSE_COMPOSITE:
      return true;
    case PESTLE_FUSE_SOURCE:
    case PESTLE_FUSE_ELEMENTWISE:
    case PESTLE_FUSE_VIEW:
    case PESTLE_FUSE_GATHER:
    case PESTLE_FUSE_CONTROL:
    case PESTLE_FUSE_FUSION:
    case PESTLE_FUSE_DIRECT:
      break;
  }
  return false;
}

typedef enum part_t { PART_MOVES, PART_FOLDS, PART_ALL } part_t;

static inline int run_sweep(const char* name, part_t part, uint32_t share) {
  struct CMUnitTest tests[ROWS + 1];
  size_t n = 0;
  const char* only = getenv("PESTLE_TEST_ONLY");
  sweep_share = share;
  sweep.gaps = gaps;
  sweep.gap_count = GAPS;
  tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_table);
  for (size_t i = 0; i < ROWS; ++i) {
    const char* op = pestle_op_info(rows[i].op)->name;
    if (only && strcmp(only, op)) continue;
    if (part != PART_ALL && folds(rows[i].op) != (part == PART_FOLDS)) continue;
    tests[n++] =
        (struct CMUnitTest){.name = op,
                            .test_func = test_row,
                            .initial_state = (void*)(uintptr_t)&rows[i]};
  }
  int failed =
      _cmocka_run_group_tests(name, tests, n, sweep_setup, sweep_teardown);
  print_gaps();
  print_message("%zu instances, %zu runs, %zu failures\n", sweep.instances,
                sweep.runs, sweep.failures);
  return failed;
}

#endif  // PESTLE_TESTS_UNIT_CODEGEN_CONFORM_OPS_SWEEP_H_
