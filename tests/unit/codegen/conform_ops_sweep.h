// SPDX-License-Identifier: Apache-2.0
// The sweep over the structured ops: each instance on each device, the known
// gaps, and which instances are run.
#ifndef PESTLE_TESTS_UNIT_CODEGEN_CONFORM_OPS_SWEEP_H_
#define PESTLE_TESTS_UNIT_CODEGEN_CONFORM_OPS_SWEEP_H_

#include "test.h"
// The assertions of cmocka first.
#include "tools/conform/table.h"

typedef enum stage_t { BY_IR_REF = 1, BY_REF = 2, BY_LLVM = 4 } stage_t;
enum { BY_TARGETS = BY_REF | BY_LLVM, BY_ALL = BY_REF | BY_LLVM | BY_IR_REF };

// What is known to be UNSUPPORTED, counted by the first stage that reports it.
// An instance that no row names fails the test, and so does another count: a new
// gap and a closed one are both noticed.
typedef struct gap_t {
  pestle_op_t op;
  const char* what;    // variant; NULL: all
  uint64_t dtypes;     // bits 1 << dtype
  unsigned stages;     // that report it
  size_t count;        // of instances in the short sweep
  const char* reason;  // part of the sentence
} gap_t;

typedef struct sweep_t {
  const gap_t* gaps;
  size_t gap_count;
  size_t hits[64];
  size_t instances, failures;
  size_t pairs;          // of op and dtype, which parts share
  size_t failed_before;  // the row that runs
} sweep_t;

static sweep_t sweep;

enum { MAX_MESSAGES = 12 };  // a row

static inline void report(const instance_t* t, const char* how,
                          const char* message) {
  char text[256];
  if (sweep.failures++ - sweep.failed_before >= MAX_MESSAGES) return;
  describe(t, how, text, sizeof(text));
  print_error("%s: %s\n", text, message);
  if (!getenv("PESTLE_TEST_PRINT")) return;
  char* printed;
  size_t size;
  assert_ok(pestle_module_print(t->module, 0, &printed, &size));
  print_error("%s\n", printed);
  pestle_context_free(t->module->context, printed, size + 1);
}

// --- Gaps ---

static inline bool gap_names(const gap_t* gap, const instance_t* t,
                             stage_t stage, const char* message) {
  return gap->op == t->row->op && gap->stages & stage &&
         gap->dtypes >> t->dtype & 1 &&
         (!gap->what || !strcmp(gap->what, t->what)) &&
         strstr(message, gap->reason);
}

// Whether |stage| can do |t|; what it says if not must be in the table. Takes
// the status over.
static inline bool check_gap(const instance_t* t, stage_t stage,
                             const char* how, pestle_status_t status) {
  if (!status) return true;
  const char* message = pestle_status_message(status);
  bool known = false;
  for (size_t i = 0; i < sweep.gap_count && !known; ++i) {
    unsigned stages = sweep.gaps[i].stages;
    known = gap_names(&sweep.gaps[i], t, stage, message);
    if (known && stage == (stages & (0 - stages))) ++sweep.hits[i];
  }
  bool unsupported = pestle_status_code(status) == PESTLE_STATUS_UNSUPPORTED;
  if (!unsupported || !known) report(t, how, message);
  pestle_status_release(status);
  return false;
}

// --- Running ---

static inline void run_device(const instance_t* t, pestle_context_t* context,
                              const char* spec, stage_t stage,
                              const expected_t* e, const expected_t* repeated) {
  pestle_device_t* device;
  pestle_executable_t* exe;
  // `ref` as a target with lanes.
  bool simt = !strcmp(spec, "simt");
  pestle_status_t status =
      pestle_context_device(context, simt ? "ref" : spec, &device);
  if (status) {  // not built, or not this machine
    pestle_status_release(status);
    return;
  }
  status = compile(t, spec, context, device, &exe);
  bool strict = context == strict_context;
  if ((!strict || simt) &&
      pestle_status_code(status) == PESTLE_STATUS_UNSUPPORTED) {
    pestle_status_release(status);  // `ref` cannot either: counted there
    return;
  }
  if (!check_gap(t, strict ? stage : 0, spec, status)) {
    // What a target lacks falls back to `ref` where that is allowed.
    if (strict && e) run_device(t, lenient_context, spec, stage, e, repeated);
    return;
  }
  if (e) run_all_views(t, spec, exe, e, repeated);
  pestle_executable_release(exe);
}

// Whether the row's variant goes with the shape.
static inline bool run_instance(instance_t* t) {
  expected_t e, repeated;
  t->what = "";
  t->check = CHECK_BITS;
  if (!t->row->build(t)) {
    assert_null(t->module);
    return false;
  }
  ++sweep.instances;
  assert_ok(pestle_module_verify(t->module));
  pestle_status_t status = expected_make(t, false, &e);
  bool can = !status;
  if (!status) status = expected_make(t, true, &repeated);
  // Without a reference there is nothing to compare, but compiling may fail in
  // no other way than UNSUPPORTED.
  bool known = check_gap(t, BY_IR_REF, "ir/ref", status);
  run_device(t, strict_context, "ref", BY_REF, known ? &e : NULL, &repeated);
  // Large shapes in one dtype: lanes are interpreted one by one.
  if (t->shape != &shapes[LARGE] || t->dtype == PESTLE_F32) {
    run_device(t, strict_context, "simt", BY_REF, known ? &e : NULL, &repeated);
  }
  run_device(t, strict_context, "llvm", BY_LLVM, known ? &e : NULL, &repeated);
  expected_free(t, &e);
  if (can) expected_free(t, &repeated);
  pestle_module_release(t->module);
  return true;
}

static inline int sweep_setup(void** state) {
  (void)state;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .strict = true,
                                      .no_cache = true};
  assert_ok(pestle_context_create(&options, &strict_context));
  options.strict = false;
  assert_ok(pestle_context_create(&options, &lenient_context));
  return 0;
}

static inline int sweep_teardown(void** state) {
  (void)state;
  pestle_context_release(strict_context);
  pestle_context_release(lenient_context);
  return 0;
}

// There is none at present; a row of nothing ends the table.
static const gap_t gaps[] = {{.reason = ""}};
enum { GAPS = sizeof(gaps) / sizeof(gaps[0]) - 1 };

// --- Which instances ---

// With share 0 all. Else for one dtype every variant on every third shape, and
// for the others about |share| instances a row, which differ from dtype to
// dtype. Tensor ops are counted as when the picks were made, so that a scalar op more
// picks no others.
static inline bool is_picked(const instance_t* t, uint32_t share) {
  if (!share) return true;
  uint32_t s = (uint32_t)(t->shape - shapes);
  if (t->dtype == PESTLE_F32) return (s + t->variant) % 3 == 0;
  enum { SCALARS_THEN = 53 };
  uint32_t row = (uint32_t)t->row->op - PESTLE_SCALAR_COUNT + SCALARS_THEN;
  uint32_t key = s + 32 * (t->variant + 64 * ((uint32_t)t->dtype + 32 * row));
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
  for (int d = PESTLE_I1; d < PESTLE_DTYPE_COUNT; ++d) {
    pestle_dtype_t dtype = (pestle_dtype_t)d;
    if (!row_takes(row, dtype)) continue;
    if (only && strcmp(only, pestle_dtype_info(dtype)->name)) continue;
    if (!pestle_test_in_part(sweep.pairs++)) continue;
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

// Every op that runs has a row: only terminators have none of their own, and
// collectives, which are of several processes, tests of their own.
static inline void test_table(void** state) {
  (void)state;
  for (unsigned op = PESTLE_SCALAR_COUNT; op < PESTLE_OP_COUNT; ++op) {
    const pestle_op_info_t* info = pestle_op_info((pestle_op_t)op);
    bool runs = !(info->flags & PESTLE_OP_FLAG_TERMINATOR) &&
                info->fuse != PESTLE_FUSE_COLLECTIVE;
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
    // Another part may be the one that meets it.
    if (getenv("PESTLE_TEST_PART")) continue;
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

// Whether the op reduces elements or only makes and moves them.
static inline bool reduces(pestle_op_t op) {
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
    case PESTLE_FUSE_COLLECTIVE:
      break;
  }
  return false;
}

typedef enum part_t { PART_MOVES, PART_REDUCES, PART_ALL } part_t;

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
    if (part != PART_ALL && reduces(rows[i].op) != (part == PART_REDUCES))
      continue;
    tests[n++] =
        (struct CMUnitTest){.name = op,
                            .test_func = test_row,
                            .initial_state = (void*)(uintptr_t)&rows[i]};
  }
  int failed =
      _cmocka_run_group_tests(name, tests, n, sweep_setup, sweep_teardown);
  print_gaps();
  print_message("%zu instances, %zu runs, %zu failures\n", sweep.instances,
                view_runs, sweep.failures);
  return failed;
}

#endif  // PESTLE_TESTS_UNIT_CODEGEN_CONFORM_OPS_SWEEP_H_
