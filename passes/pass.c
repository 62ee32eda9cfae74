// SPDX-License-Identifier: Apache-2.0
// The pass table and the runner, which is also the harness: it checks what
// passes require, verifies, prints, times, skips, stops early, and sends the
// module through its text and binary forms, each as the options ask.
#include "passes/pass.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fault.h"
#include "base/mem.h"
#include "base/status_copy.h"
#include "base/thread.h"
#include "base/vec.h"
#include "passes/round_trip.h"
#include "passes/util.h"

// Short names for the columns of passes.def.
enum {
  NONE = 0,
  INLINED = PESTLE_PROPERTY_INLINED,
  FOLDED = PESTLE_PROPERTY_FOLDED,
  RECOGNISED = PESTLE_PROPERTY_RECOGNISED,
  CHANNELS_LAST = PESTLE_PROPERTY_CHANNELS_LAST,
  FUSED = PESTLE_PROPERTY_FUSED,
  ORDERED = PESTLE_PROPERTY_ORDERED,
  ALL = INLINED | FOLDED | RECOGNISED | CHANNELS_LAST | FUSED | ORDERED,
};
enum { STANDARD = 1, BY_NAME = 0 };

static const pestle_pass_t pass_rows[] = {
#define PESTLE_PASS(name, pipeline, needs, keeps, makes, summary) \
  {#name, pestle_pass_##name, (needs), (keeps), (makes), (summary)},
#include "passes/passes.def"
};
static const bool pass_is_standard[] = {
#define PESTLE_PASS(name, pipeline, ...) (pipeline) == STANDARD,
#include "passes/passes.def"
};
#define PASS_COUNT (sizeof(pass_rows) / sizeof(pass_rows[0]))

static const char* const property_names[] = {
    "INLINED", "FOLDED", "RECOGNISED", "CHANNELS_LAST", "FUSED", "ORDERED"};

const pestle_pass_t* pestle_pass_table(size_t* out_count) {
  *out_count = PASS_COUNT;
  return pass_rows;
}

static const pestle_pass_t* find_pass(pestle_str_t name) {
  for (size_t i = 0; i < PASS_COUNT; ++i) {
    if (pestle_str_equal_c(name, pass_rows[i].name)) return &pass_rows[i];
  }
  return NULL;
}

const pestle_pass_t* pestle_pass_find(const char* name) {
  return find_pass(pestle_str(name));
}

// --- One run ---

typedef struct run_t {
  pestle_pass_context_t ctx;
  pestle_module_t* module;
  uint32_t properties;  // that hold now
  int32_t done;         // passes run
  const char* last;     // of those to run; NULL: all
  pestle_strbuf_t times;
  pestle_arena_t scratch;
} run_t;

static bool list_has(const char* list, const char* name) {
  pestle_str_t rest = pestle_str(list), field;
  while (pestle_str_next(&rest, ',', &field)) {
    if (pestle_str_equal_c(pestle_str_trim(field), name)) return true;
  }
  return false;
}

static bool wants(const pestle_compile_options_t* options,
                  pestle_stage_t stage) {
  return options->dump && (options->dump_stages & (1u << stage));
}

// The part of the properties that can be seen.
static bool has_calls(const pestle_module_t* module) {
  for (const pestle_function_t* f = module->first; f; f = f->next) {
    for (const pestle_node_t* n = f->body->block->first; n; n = n->next) {
      if (n->op == PESTLE_OP_CALL) return true;
    }
  }
  return false;
}

static pestle_status_t check_control(const run_t* run, int64_t total) {
  const pestle_control_t* control = run->ctx.options->control;
  if (!control || PESTLE_FAULT(trust_cancel)) return NULL;
  if (control->progress) {
    control->progress(control->progress_user, "passes", run->done, total);
  }
  if (control->cancel && __atomic_load_n(control->cancel, __ATOMIC_RELAXED)) {
    return PESTLE_ERROR(CANCELLED, "cancelled between passes");
  }
  if (control->deadline_ns && pestle_clock_ns() >= control->deadline_ns) {
    return PESTLE_ERROR(DEADLINE_EXCEEDED,
                        "the deadline passed after %d passes", (int)run->done);
  }
  return NULL;
}

static pestle_status_t check_requires(const run_t* run,
                                      const pestle_pass_t* pass) {
  uint32_t missing = pass->requires_properties & ~run->properties;
  for (unsigned i = 0; missing >> i; ++i) {
    if (!(missing >> i & 1)) continue;
    for (size_t p = 0; p < PASS_COUNT; ++p) {
      if (!(pass_rows[p].establishes >> i & 1)) continue;
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "pass '%s' requires %s: run '%s' before it",
                          pass->name, property_names[i], pass_rows[p].name);
    }
  }
  return NULL;
}

static pestle_status_t print_after(const run_t* run,
                                   const pestle_pass_t* pass) {
  const pestle_compile_options_t* options = run->ctx.options;
  if (!wants(options, PESTLE_STAGE_PASS) || !options->print_after) return NULL;
  if (!list_has(options->print_after, pass->name) &&
      !list_has(options->print_after, "all")) {
    return NULL;
  }
  char* text;
  size_t size;
  PESTLE_TRY(
      pestle_module_print(run->module, PESTLE_PRINT_ELIDE, &text, &size));
  options->dump(options->dump_user, PESTLE_STAGE_PASS, pass->name, text, size);
  pestle_context_free(run->ctx.context, text, size + 1);
  return NULL;
}

static size_t count_block(const pestle_block_t* block) {
  size_t count = 0;
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    ++count;
    for (uint32_t r = 0; r < n->region_count; ++r) {
      count += count_block(pestle_node_body(n, r));
    }
  }
  return count;
}

static size_t count_ops(const pestle_module_t* module) {
  size_t count = 0;
  for (const pestle_function_t* f = module->first; f; f = f->next) {
    count += count_block(f->body->block);
  }
  return count;
}

// The module was verified before the first pass: what then blames the caller is
// a fault of the pass.
static pestle_status_t as_own_fault(pestle_status_t status) {
  pestle_status_code_t code = pestle_status_code(status);
  if (code != PESTLE_STATUS_INVALID_ARGUMENT &&
      code != PESTLE_STATUS_MALFORMED && code != PESTLE_STATUS_NOT_FOUND &&
      code != PESTLE_STATUS_INCOMPATIBLE) {
    return status;
  }
  pestle_status_t own = pestle_status_copy(status, PESTLE_STATUS_INTERNAL);
  pestle_status_release(status);
  return pestle_status_annotate(
      own, "the model was verified before: this is a defect of Pestle");
}

static pestle_status_t check_after(const run_t* run,
                                   const pestle_pass_t* pass) {
  const pestle_compile_options_t* options = run->ctx.options;
  if (options->verify) {
    PESTLE_TRY(as_own_fault(pestle_status_annotate(
        pestle_module_verify(run->module), "after pass '%s'", pass->name)));
  }
  if (options->round_trip) {
    PESTLE_TRY(pestle_status_annotate(
        pestle_passes_round_trip(run->ctx.context, run->module),
        "round trip after pass '%s'", pass->name));
  }
  return NULL;
}

static void trace_pass(const run_t* run, const pestle_pass_t* pass,
                       int64_t begin, bool changed) {
  char detail[64];
  snprintf(detail, sizeof(detail), "%zu ops%s", count_ops(run->module),
           changed ? "" : ", unchanged");
  pestle_context_trace_end(run->ctx.context, begin, "pass", pass->name, detail);
}

static pestle_status_t run_pass(run_t* run, const pestle_pass_t* pass,
                                int64_t total) {
  const pestle_compile_options_t* options = run->ctx.options;
  if (options->stop_after && run->done >= options->stop_after) return NULL;
  if (options->skip_passes && list_has(options->skip_passes, pass->name)) {
    // Who skips a pass vouches for what it would have made.
    run->properties |= pass->establishes;
    return NULL;
  }
  PESTLE_TRY(check_control(run, total));
  PESTLE_TRY(check_requires(run, pass));
  bool changed = false;
  int64_t start = pestle_clock_ns();
  int64_t begin = pestle_context_trace_begin(run->ctx.context);
  pestle_status_t status = pestle_status_annotate(
      pass->run(&run->ctx, run->module, &changed), "in pass '%s'", pass->name);
  PESTLE_TRY(run->ctx.reads_texts ? status : as_own_fault(status));
  int64_t spent = pestle_clock_ns() - start;
  if (begin) trace_pass(run, pass, begin, changed);
  pestle_arena_reset(&run->scratch);
  if (changed) run->properties &= pass->preserves;
  run->properties |= pass->establishes;
  ++run->done;
  if (wants(options, PESTLE_STAGE_TIMES)) {
    pestle_strbuf_appendf(&run->times, "%-16s %10.3f ms %8zu ops%s\n",
                          pass->name, (double)spent * 1e-6,
                          count_ops(run->module), changed ? "" : "  unchanged");
  }
  PESTLE_TRY(check_after(run, pass));
  return print_after(run, pass);
}

static pestle_status_t run_standard(run_t* run) {
  int64_t total = 0;
  for (size_t i = 0; i < PASS_COUNT; ++i)
    total += pass_is_standard[i];
  if (!has_calls(run->module)) run->properties |= PESTLE_PROPERTY_INLINED;
  for (size_t i = 0; i < PASS_COUNT; ++i) {
    if (pass_is_standard[i]) PESTLE_TRY(run_pass(run, &pass_rows[i], total));
    if (run->last && !strcmp(pass_rows[i].name, run->last)) break;
  }
  return NULL;
}

static pestle_status_t unknown_pass(pestle_str_t name) {
  char known[512];
  size_t used = 0;
  for (size_t i = 0; i < PASS_COUNT; ++i) {
    size_t size = strlen(pass_rows[i].name);
    if (used + size + 3 > sizeof(known)) break;
    if (i) known[used++] = ' ';
    memcpy(known + used, pass_rows[i].name, size);
    used += size;
  }
  known[used] = 0;
  return PESTLE_ERROR(NOT_FOUND, "no pass is named '%.*s'; there are: %s",
                      PESTLE_STR_ARG(name), known);
}

// A list of one's own vouches for every property but INLINED, until one of its
// passes gives it up.
static pestle_status_t run_listed(run_t* run, const char* list) {
  run->properties = ALL & ~(unsigned)INLINED;
  if (!has_calls(run->module)) run->properties |= PESTLE_PROPERTY_INLINED;
  pestle_str_t rest = pestle_str(list), field;
  int64_t total = 0;
  while (pestle_str_next(&rest, ',', &field))
    ++total;
  rest = pestle_str(list);
  while (pestle_str_next(&rest, ',', &field)) {
    const pestle_pass_t* pass = find_pass(pestle_str_trim(field));
    if (!pass) return unknown_pass(pestle_str_trim(field));
    PESTLE_TRY(run_pass(run, pass, total));
  }
  return NULL;
}

// A misspelt name in skip_passes or print_after is an error, not silence.
static pestle_status_t check_names(const char* list) {
  pestle_str_t rest = pestle_str(list), field;
  while (list && pestle_str_next(&rest, ',', &field)) {
    pestle_str_t name = pestle_str_trim(field);
    if (name.size && !pestle_str_equal_c(name, "all") && !find_pass(name)) {
      return unknown_pass(name);
    }
  }
  return NULL;
}

static pestle_status_t run_passes(pestle_context_t* context,
                                  const pestle_target_caps_t* caps,
                                  const pestle_compile_options_t* options,
                                  pestle_module_t* module,
                                  pestle_remarks_t* remarks, const char* last) {
  PESTLE_TRY(check_names(options->skip_passes));
  PESTLE_TRY(check_names(options->print_after));
  pestle_allocator_t allocator = pestle_context_allocator(context);
  run_t run = {.module = module, .last = last};
  run.ctx = (pestle_pass_context_t){context,      caps,    options,
                                    &run.scratch, remarks, false};
  pestle_arena_init(allocator, &run.scratch);
  pestle_strbuf_init(allocator, &run.times);
  pestle_status_t status =
      options->passes ? run_listed(&run, options->passes) : run_standard(&run);
  if (!status && run.times.size) {
    status = pestle_strbuf_status(&run.times);
    if (!status) {
      options->dump(options->dump_user, PESTLE_STAGE_TIMES, "passes",
                    pestle_strbuf_cstr(&run.times), run.times.size);
    }
  }
  pestle_strbuf_deinit(&run.times);
  pestle_arena_deinit(&run.scratch);
  return status;
}

pestle_status_t pestle_passes_run(pestle_context_t* context,
                                  const pestle_target_caps_t* caps,
                                  const pestle_compile_options_t* options,
                                  pestle_module_t* module,
                                  pestle_remarks_t* remarks) {
  return run_passes(context, caps, options, module, remarks, NULL);
}

pestle_status_t pestle_passes_run_to(pestle_context_t* context,
                                     const pestle_target_caps_t* caps,
                                     const pestle_compile_options_t* options,
                                     pestle_module_t* module,
                                     pestle_remarks_t* remarks,
                                     const char* last) {
  return run_passes(context, caps, options, module, remarks, last);
}

pestle_status_t pestle_passes_complete(pestle_context_t* context,
                                       const pestle_target_caps_t* caps,
                                       const pestle_compile_options_t* options,
                                       pestle_module_t* module,
                                       pestle_remarks_t* remarks) {
  if (!options->passes && !options->skip_passes && !options->stop_after) {
    return NULL;
  }
  pestle_compile_options_t own = {.struct_size = sizeof(own),
                                  .numerics = options->numerics,
                                  .verify = options->verify,
                                  .round_trip = options->round_trip,
                                  .fold_limit = options->fold_limit,
                                  .control = options->control,
                                  .no_fuse = true};
  // One list each: a list vouches for what its first pass requires.
  own.passes = "place_custom";
  PESTLE_TRY(pestle_passes_run(context, caps, &own, module, remarks));
  own.passes = "inline";
  if (has_calls(module)) {
    PESTLE_TRY(pestle_passes_run(context, caps, &own, module, remarks));
  }
  own.passes = "expand_composites,whole_composites";
  PESTLE_TRY(pestle_passes_run(context, caps, &own, module, remarks));
  own.passes = "expand_complex";
  if (pestle_has_complex(module)) {
    PESTLE_TRY(pestle_passes_run(context, caps, &own, module, remarks));
  }
  own.passes = "fuse";
  return pestle_passes_run(context, caps, &own, module, remarks);
}

// --- Names ---

const char* pestle_pass_name(size_t index) {
  return index < PASS_COUNT ? pass_rows[index].name : NULL;
}

const char* pestle_pass_summary(size_t index) {
  return index < PASS_COUNT ? pass_rows[index].summary : NULL;
}
