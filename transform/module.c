// SPDX-License-Identifier: Apache-2.0
// The public functions that differentiate in one.
#include <string.h>

#include "base/context.h"
#include "base/custom_attrs.h"
#include "base/require.h"
#include "ir/copy.h"
#include "pestle/transform.h"
#include "transform/checkpoint.h"
#include "transform/remat.h"
#include "transform/work.h"

static pestle_status_t jvp(pestle_work_t* w) {
  PESTLE_TRY(pestle_work_forward(w));
  PESTLE_TRY(pestle_work_fill_outputs(w));
  return pestle_work_set_results(w, w->result_count, w->outputs,
                                 w->output_count);
}

pestle_status_t pestle_module_jvp(pestle_module_t* module,
                                  const pestle_transform_options_t* options,
                                  pestle_module_t** out_module) {
  pestle_work_t w;
  PESTLE_REQUIRE(out_module, "out_module");
  *out_module = NULL;
  pestle_status_t status = pestle_work_init(module, options, false, &w);
  if (!status) status = jvp(&w);
  return pestle_work_finish(&w, status, out_module);
}

// --- Reverse ---

static pestle_status_t ones(pestle_work_t* w, pv_t** out_cts) {
  pestle_formula_t f = pestle_formula_before(w->body->last);
  for (size_t i = 0; i < w->output_count; ++i) {
    const pv_t* result = pestle_work_returned(w, w->results[i]);
    if (pestle_type_is_complex(result->type)) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "result %u of function '%s' is complex and has no "
                          "gradient; take that of its real part, or its vjp",
                          (unsigned)w->results[i], w->function->name);
    }
    out_cts[i] = pestle_f_splat(&f, result, 1);
  }
  return f.status;
}

static pestle_status_t reverse(pestle_work_t* w, bool is_gradient) {
  pv_t** cts = pestle_work_array(w, w->output_count);
  pv_t** out = pestle_work_array(w, w->tangent_count);
  if (!cts || !out) return PESTLE_OOM();
  w->jvp.is_reverse = w->jvp.is_whole = true;
  PESTLE_TRY(pestle_work_forward(w));
  PESTLE_TRY(is_gradient ? ones(w, cts) : pestle_work_add_cotangents(w, cts));
  PESTLE_TRY(pestle_work_find_linear(w, w->tangents, w->tangent_count));
  PESTLE_TRY(pestle_work_transpose(w, w->outputs, cts, w->output_count,
                                   w->tangents, w->tangent_count, out));
  PESTLE_TRY(
      pestle_work_set_results(w, w->result_count, out, w->tangent_count));
  return pestle_work_drop_arguments(w, w->argument_count,
                                    w->argument_count + w->tangent_count);
}

pestle_status_t pestle_module_vjp(pestle_module_t* module,
                                  const pestle_transform_options_t* options,
                                  pestle_module_t** out_module) {
  pestle_work_t w;
  PESTLE_REQUIRE(out_module, "out_module");
  *out_module = NULL;
  pestle_status_t status = pestle_work_init(module, options, true, &w);
  if (!status) status = reverse(&w, false);
  return pestle_work_finish(&w, status, out_module);
}

pestle_status_t pestle_module_gradient(
    pestle_module_t* module, const pestle_transform_options_t* options,
    pestle_module_t** out_module) {
  static const uint32_t first[] = {0};
  pestle_transform_options_t o = pestle_transform_options(options);
  pestle_work_t w;
  PESTLE_REQUIRE(out_module, "out_module");
  *out_module = NULL;
  if (!o.results) {
    o.results = first;
    o.result_count = 1;
  }
  pestle_status_t status = pestle_work_init(module, &o, true, &w);
  if (!status) status = reverse(&w, true);
  return pestle_work_finish(&w, status, out_module);
}

// --- Checkpoint ---

// The body of |function| as that of one op, |op|, with |attributes|, text.
static pestle_status_t wrap(pestle_function_t* function, const char* op,
                            const char* attributes) {
  pestle_block_t* body = function->body->block;
  pestle_region_t* region = NULL;
  pestle_copier_t copier;
  pestle_node_t *last = body->last, *made = NULL;
  pestle_builder_t b = pestle_builder_before(last);
  pestle_copier_init(pestle_context_allocator(b.module->context), b, &copier);
  pestle_status_t status =
      pestle_copier_region(&copier, function->body, &region);
  pestle_copier_deinit(&copier);
  if (status) return status;
  pestle_attr_t attrs[] = {
      {PESTLE_ATTR_name, PESTLE_ATTR_KIND_STR, .as.str = op},
      {PESTLE_ATTR_attributes, PESTLE_ATTR_KIND_STR, .as.str = attributes}};
  pestle_node_spec_t spec = {.op = PESTLE_OP_CUSTOM,
                             .operands = body->arguments,
                             .operand_count = body->argument_count,
                             .attrs = attrs,
                             .attr_count = 2,
                             .regions = &region,
                             .region_count = 1};
  pestle_arena_t arena;
  pestle_arena_init(pestle_context_allocator(b.module->context), &arena);
  pestle_type_t* types =
      PESTLE_ARENA_ARRAY(&arena, pestle_type_t, last->operand_count + 1u);
  if (!types) status = PESTLE_OOM();
  for (uint32_t i = 0; types && i < last->operand_count; ++i)
    types[i] = *pestle_node_operand(last, i)->type;
  spec.types = types;
  spec.type_count = last->operand_count;
  if (!status) status = pestle_node_create(&b, &spec, &made);
  pestle_arena_deinit(&arena);
  for (uint32_t i = 0; made && i < last->operand_count; ++i)
    pestle_node_set_operand(last, i, pestle_node_result(made, i));
  pestle_sweep(body);
  return status;
}

static pestle_custom_attr_value_t text_value(const char* name,
                                             const char* text) {
  return (pestle_custom_attr_value_t){name, PESTLE_CUSTOM_STR, {.str = text}};
}

// The policy of |o| as the text of a dictionary.
static void print_policy(const pestle_transform_options_t* o,
                         pestle_strbuf_t* out) {
  pestle_custom_attr_value_t values[3];
  size_t count = 0;
  if (o->budget_bytes) {
    values[count++] = (pestle_custom_attr_value_t){
        "budget_bytes", PESTLE_CUSTOM_I64, {.i64 = o->budget_bytes}};
  }
  if (o->names) values[count++] = text_value("names", o->names);
  if (o->policy) values[count++] = text_value("policy", o->policy);
  pestle_custom_attrs_t attrs = {values, count};
  pestle_custom_attrs_print(&attrs, out);
}

// Whether the policy is one, before anything is differentiated.
static pestle_status_t check_policy(const pestle_function_t* function) {
  pestle_arena_t arena;
  pestle_policy_t policy;
  const pestle_node_t* node = function->body->block->first;
  while (node && !pestle_is_checkpoint(node))
    node = node->next;
  if (!node) return NULL;
  pestle_arena_init(pestle_context_allocator(function->body->module->context),
                    &arena);
  pestle_status_t status = pestle_policy_read(&arena, node, &policy);
  pestle_arena_deinit(&arena);
  return status;
}

static pestle_status_t wrapped(pestle_module_t* module, const char* function,
                               const char* op, const pestle_strbuf_t* text,
                               pestle_module_t** out_module) {
  pestle_module_t* made;
  PESTLE_TRY(pestle_strbuf_status(text));
  PESTLE_TRY(pestle_transform_copy(module, function, &made));
  pestle_status_t status =
      wrap(pestle_module_entry(made), op, pestle_strbuf_cstr(text));
  if (!status) status = check_policy(pestle_module_entry(made));
  if (status) {
    pestle_module_release(made);
  } else {
    *out_module = made;
  }
  return status;
}

pestle_status_t pestle_module_checkpoint(
    pestle_module_t* module, const pestle_transform_options_t* options,
    pestle_module_t** out_module) {
  pestle_transform_options_t o = pestle_transform_options(options);
  pestle_strbuf_t text;
  PESTLE_REQUIRE(module && out_module, "a module and out_module");
  *out_module = NULL;
  pestle_strbuf_init(pestle_context_allocator(module->context), &text);
  print_policy(&o, &text);
  pestle_status_t status =
      wrapped(module, o.function, PESTLE_CHECKPOINT, &text, out_module);
  pestle_strbuf_deinit(&text);
  return status;
}

pestle_status_t pestle_module_checkpoint_name(pestle_module_t* module,
                                              const char* name,
                                              pestle_module_t** out_module) {
  pestle_strbuf_t text;
  PESTLE_REQUIRE(module && name && out_module, "a module and a name");
  *out_module = NULL;
  if (!*name || strpbrk(name, ",\"\\")) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the name '%.40s' of a value is empty, or has a comma "
                        "or a quote in it",
                        name);
  }
  pestle_custom_attr_value_t value = text_value("name", name);
  pestle_custom_attrs_t attrs = {&value, 1};
  pestle_strbuf_init(pestle_context_allocator(module->context), &text);
  pestle_custom_attrs_print(&attrs, &text);
  pestle_status_t status =
      wrapped(module, NULL, PESTLE_CHECKPOINT_NAME, &text, out_module);
  pestle_strbuf_deinit(&text);
  return status;
}
