// SPDX-License-Identifier: Apache-2.0
// Derivatives and batching of pestle op-test: an op with its rules held against its body
// without them, by all operands together and by each alone, whose others have the zero
// that no op stands for.
#include <stdio.h>

#include "op_test.h"

// How the function of one op is transformed.
typedef enum rule_t { JVP, VJP, JVP_OF_VJP, VMAP, RULES } rule_t;
static const char* const questions[RULES] = {"jvp of", "vjp of",
                                             "jvp of the vjp of", "vmap of"};

enum { BATCH = 3, EVERY = -1 };

static bool is_smooth(pestle_dtype_t dtype) {
  return pestle_dtype_is(dtype, PESTLE_KIND_FLOAT) ||
         pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX);
}

// Whether the op has what |rule| asks for: else its body answers both times.
static bool has_rule(const op_test_t* t, rule_t rule) {
  const pestle_custom_op_t* op = t->op;
  if (rule == VMAP) return op->vmap || op->elementwise;
  return rule == JVP ? op->jvp != NULL : op->jvp || op->vjp;
}

// By operand |place|, or by all.
static pestle_status_t derive(pestle_module_t* module, rule_t rule, int place,
                              pestle_module_t** out_module) {
  uint32_t argument = (uint32_t)place;
  pestle_transform_options_t options = {.struct_size = sizeof(options)};
  if (place != EVERY) {
    options.arguments = &argument;
    options.argument_count = 1;
  }
  if (rule == JVP) return pestle_module_jvp(module, &options, out_module);
  pestle_module_t* first;
  PESTLE_TRY(pestle_module_vjp(module, &options, &first));
  if (rule == VJP) {
    *out_module = first;
    return NULL;
  }
  pestle_status_t status = pestle_module_jvp(first, NULL, out_module);
  pestle_module_release(first);
  return status;
}

static pestle_status_t batch(const op_test_t* t, pestle_module_t* module,
                             int place, pestle_module_t** out_module) {
  int64_t axes[OP_TEST_ARGUMENTS];
  size_t count = op_test_arguments(t);
  for (size_t i = 0; i < count; ++i) {
    // Behind the first axis where there is one, so that axes are moved too.
    const pestle_value_t* x =
        pestle_function_argument(pestle_module_entry(module), i);
    int64_t axis = place != EVERY && pestle_value_type(x).rank > 0;
    axes[i] = place == EVERY || place == (int)i ? axis : PESTLE_NOT_BATCHED;
  }
  pestle_vmap_options_t options = {.struct_size = sizeof(options),
                                   .size = BATCH,
                                   .argument_axes = axes,
                                   .argument_axis_count = count};
  return pestle_module_vmap(module, &options, out_module);
}

// What the op |name|, transformed, gives on the reference.
static pestle_status_t run(const op_test_t* t, const char* name,
                           const pestle_type_t* type, rule_t rule, int place,
                           cli_arrays_t* out) {
  pestle_module_t *module, *made = NULL;
  bool called;
  PESTLE_TRY(op_test_module(t, name, type, true, &module));
  pestle_status_t status = rule == VMAP ? batch(t, module, place, &made)
                                        : derive(module, rule, place, &made);
  pestle_module_release(module);
  if (status) return status;
  status = op_test_run(t, made, t->ref, true, out, &called);
  pestle_module_release(made);
  return status;
}

static void test(op_test_t* t, const pestle_type_t* type, rule_t rule,
                 int place) {
  cli_arrays_t got, want;
  double worst = 0;
  char question[64];
  pestle_status_t status = run(t, t->bare, type, rule, place, &want);
  bool is_known = !status;
  if (is_known) status = run(t, t->op->name, type, rule, place, &got);
  bool same = !status && op_test_same(t, &got, &want, &worst);
  if (is_known && !status) op_test_free(&got);
  if (is_known) op_test_free(&want);
  if (place == EVERY) {
    (void)snprintf(question, sizeof(question), "%s", questions[rule]);
  } else {
    (void)snprintf(question, sizeof(question), "%s operand %d of",
                   rule == VMAP ? "vmap by" : questions[rule], place);
  }
  op_test_count(t, type, question, "ref", status, same, worst);
}

void op_test_rules(op_test_t* t, const pestle_type_t* type) {
  int operands = (int)op_test_arguments(t);
  for (int rule = 0; rule < RULES; ++rule) {
    if (!has_rule(t, (rule_t)rule) ||
        (rule != VMAP && !is_smooth(type->dtype))) {
      continue;
    }
    for (int place = EVERY; place < operands; ++place) {
      if (place == EVERY || operands > 1) test(t, type, (rule_t)rule, place);
    }
  }
}
