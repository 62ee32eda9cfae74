// SPDX-License-Identifier: Apache-2.0
#include "compile/check.h"

#include <stdio.h>
#include <string.h>

#include "base/control.h"
#include "compile/steps.h"

// --- Options ---

static pestle_status_t check_numbers(const pestle_compile_options_t* options) {
  if ((unsigned)options->numerics > PESTLE_NUMERICS_FAST) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "pestle_compile_options_t.numerics is %d, which is none "
        "of pestle_numerics_t",
        (int)options->numerics);
  }
  if ((unsigned)options->tier > PESTLE_TIER_QUICK) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_compile_options_t.tier is %d, which is none of "
                        "pestle_tier_t",
                        (int)options->tier);
  }
  if (options->stop_after < 0) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_compile_options_t.stop_after is %d; expected 0 "
                        "(all passes) or more",
                        (int)options->stop_after);
  }
  if (options->fold_limit < 0) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_compile_options_t.fold_limit is %lld; expected "
                        "0 (64 MiB) or more bytes",
                        (long long)options->fold_limit);
  }
  if (options->dump_stages >> PESTLE_STAGE_COUNT) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_compile_options_t.dump_stages is 0x%x, which "
                        "has bits of no stage",
                        (unsigned)options->dump_stages);
  }
  return NULL;
}

pestle_status_t pestle_options_read(const pestle_compile_options_t* options,
                                    pestle_compile_options_t* out_options,
                                    pestle_control_t* out_control) {
  *out_options = (pestle_compile_options_t){.struct_size = 0};
  if (options) {
    size_t n = options->struct_size;
    memcpy(out_options, options,
           n < sizeof(*out_options) ? n : sizeof(*out_options));
  }
  out_options->struct_size = sizeof(*out_options);
  PESTLE_TRY(pestle_control_read(out_options->control, out_control,
                                 &out_options->control));
  return check_numbers(out_options);
}

pestle_status_t pestle_options_check(const pestle_compile_options_t* options) {
  double seconds = options->tune_seconds;
  if (!(seconds >= 0 && seconds <= 1e6)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_compile_options_t.tune_seconds is %g; expected "
                        "0 to a million",
                        seconds);
  }
  if ((seconds > 0 || options->frozen) && !options->lock_path) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_compile_options_t has %s, but no lock_path",
                        options->frozen ? "frozen" : "tune_seconds");
  }
  if ((seconds > 0 || options->frozen) && options->tier == PESTLE_TIER_QUICK) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_compile_options_t has %s and the quick tier, "
                        "which takes no schedule from a lock",
                        options->frozen ? "frozen" : "tune_seconds");
  }
  if (seconds > 0 && options->frozen) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_compile_options_t has frozen and tune_seconds: "
                        "what is frozen is not measured anew");
  }
  return NULL;
}

// --- Modules ---

static pestle_status_t check_static(const pestle_module_t* module) {
  const pestle_function_t* f = pestle_module_entry((pestle_module_t*)module);
  if (!f) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "module '%s' has no function",
                        module->name);
  }
  for (uint32_t i = 0; i < f->body->block->argument_count; ++i) {
    if (pestle_type_is_static(f->body->block->arguments[i]->type)) continue;
    const char* name = pestle_function_argument_name(f, i);
    char number[16];
    snprintf(number, sizeof(number), "%u", i);
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "input %u ('%s') of '%s' has dimensions that are not "
                        "known; fix them with pestle_module_specialize() "
                        "(--shape or --dim on the command line)",
                        i, name ? name : number, module->name);
  }
  return pestle_module_check_values(module);
}

pestle_status_t pestle_check_module(const pestle_module_t* module) {
  PESTLE_TRY(pestle_module_verify(module));
  return check_static(module);
}

// --- Sizes ---

// No process addresses more.
#define MOST_BYTES ((size_t)1 << 47)

static pestle_status_t check_size(const pestle_value_t* value,
                                  const char* what) {
  size_t size = pestle_type_bytes(value->type);
  if (size <= MOST_BYTES) return NULL;
  return PESTLE_ERROR(RESOURCE_EXHAUSTED,
                      "%s takes %zu bytes, more memory than a process can "
                      "have; give smaller extents",
                      what, size);
}

pestle_status_t pestle_check_sizes(const pestle_function_t* function) {
  const pestle_block_t* block = function->body->block;
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    char name[256], what[280];
    pestle_steps_input_name(function, i, name, sizeof(name));
    snprintf(what, sizeof(what), "input '%s'", name);
    PESTLE_TRY(check_size(block->arguments[i], what));
  }
  const pestle_node_t* n = NULL;
  while ((n = pestle_region_next(function->body, n))) {
    const pestle_node_t* owner = n->block->region->owner;
    if (owner && owner->op == PESTLE_OP_FUSION) continue;
    char what[280];
    snprintf(what, sizeof(what), "a result of '%.250s'",
             pestle_op_info((pestle_op_t)n->op)->name);
    for (uint32_t r = 0; r < n->result_count; ++r) {
      PESTLE_TRY(check_size(&n->results[r], what));
    }
  }
  return NULL;
}
