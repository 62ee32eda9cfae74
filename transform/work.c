// SPDX-License-Identifier: Apache-2.0
#include "transform/work.h"

#include <stdio.h>
#include <string.h>

#include "base/context.h"
#include "base/mem.h"
#include "ir/collective.h"

static void work_deinit(pestle_work_t* w) {
  if (!w->module) return;
  pestle_jvp_deinit(&w->jvp);
  pestle_transposer_deinit(&w->x);
  pestle_arena_deinit(&w->arena);
  pestle_module_release(w->module);
}

// --- Which arguments and results ---

static const pv_t* value_at(const pestle_work_t* w, bool is_result,
                            size_t index) {
  return is_result ? pestle_work_returned(w, index) : w->body->arguments[index];
}

static pestle_status_t check_choice(const pestle_work_t* w, bool is_result,
                                    const uint32_t* list, size_t count) {
  const char* what = is_result ? "result" : "argument";
  size_t limit = is_result ? w->result_count : w->argument_count;
  for (size_t i = 0; i < count; ++i) {
    if (list[i] >= limit) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "there is no %s %u; function '%s' has %zu", what,
                          (unsigned)list[i], w->function->name, limit);
    }
    for (size_t k = 0; k < i; ++k) {
      if (list[k] != list[i]) continue;
      return PESTLE_ERROR(INVALID_ARGUMENT, "%s %u is given twice", what,
                          (unsigned)list[i]);
    }
    pestle_dtype_t dtype = value_at(w, is_result, list[i])->type->dtype;
    if (!pestle_is_smooth(dtype)) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "%s %u of function '%s' is of %s, which has no "
                          "derivative; leave it out",
                          what, (unsigned)list[i], w->function->name,
                          pestle_dtype_info(dtype)->name);
    }
  }
  return NULL;
}

// |list| checked, or all that have derivatives.
static pestle_status_t choose(pestle_work_t* w, bool is_result,
                              const uint32_t** list, size_t* count) {
  size_t limit = is_result ? w->result_count : w->argument_count;
  if (*list) return check_choice(w, is_result, *list, *count);
  uint32_t* all = PESTLE_ARENA_ARRAY(&w->arena, uint32_t, limit + 1);
  if (!all) return PESTLE_OOM();
  *count = 0;
  for (size_t i = 0; i < limit; ++i) {
    if (pestle_is_smooth(value_at(w, is_result, i)->type->dtype)) {
      all[(*count)++] = (uint32_t)i;
    }
  }
  *list = all;
  return NULL;
}

// --- The copy ---

static pestle_status_t check_static(const pestle_function_t* function) {
  const pestle_block_t* body = function->body->block;
  if (!body->last || body->last->op != PESTLE_OP_RETURN) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "function '%s' has no body yet: its dimensions are not "
                        "known; pestle_module_specialize() makes one that has",
                        function->name);
  }
  for (uint32_t i = 0; i < body->argument_count; ++i) {
    if (pestle_type_is_static(body->arguments[i]->type)) continue;
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "argument %u of function '%s' has a dimension that is "
                        "not known; pestle_module_specialize() fixes it",
                        (unsigned)i, function->name);
  }
  return NULL;
}

pestle_status_t pestle_transform_copy(pestle_module_t* module, const char* name,
                                      pestle_module_t** out_module) {
  const pestle_node_t* cycle;
  *out_module = NULL;
  if (!module) return PESTLE_ERROR(INVALID_ARGUMENT, "the module is NULL");
  pestle_function_t* function = name ? pestle_module_find_function(module, name)
                                     : pestle_module_entry(module);
  if (!function) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "the module has no function%s%s%s",
                        name ? " '" : "", name ? name : "", name ? "'" : "");
  }
  PESTLE_TRY(check_static(function));
  PESTLE_TRY(pestle_find_call_cycle(module, &cycle));
  if (cycle) {
    return pestle_node_error(cycle, PESTLE_STATUS_UNSUPPORTED,
                             "function '%s' calls itself",
                             PESTLE_NODE_STR(cycle, callee));
  }
  PESTLE_TRY(pestle_module_extract(function, out_module));
  // A caller gives arguments by their names.
  pestle_status_t status = pestle_function_name_arguments(
      pestle_module_entry(*out_module), function);
  pestle_world_shape_t world = pestle_module_world(module);
  if (!status && (world.replicas > 1 || world.partitions > 1)) {
    // Collectives name processes.
    status = pestle_module_set_dialect_attrs(
        *out_module, module->dialect_attrs.data, module->dialect_attrs.count);
  }
  if (!status) return NULL;
  pestle_module_release(*out_module);
  *out_module = NULL;
  return status;
}

pestle_transform_options_t pestle_transform_options(
    const pestle_transform_options_t* options) {
  pestle_transform_options_t o = {.struct_size = sizeof(o)};
  if (options) {
    size_t size =
        options->struct_size < sizeof(o) ? options->struct_size : sizeof(o);
    memcpy(&o, options, size);
  }
  return o;
}

pestle_status_t pestle_work_init(pestle_module_t* module,
                                 const pestle_transform_options_t* options,
                                 bool is_linear, pestle_work_t* w) {
  pestle_transform_options_t o = pestle_transform_options(options);
  memset(w, 0, sizeof(*w));
  PESTLE_TRY(pestle_transform_copy(module, o.function, &w->module));
  pestle_allocator_t allocator = pestle_context_allocator(w->module->context);
  w->function = pestle_module_entry(w->module);
  w->body = w->function->body->block;
  w->argument_count = w->body->argument_count;
  w->result_count = w->body->last->operand_count;
  w->arguments = o.arguments;
  w->tangent_count = o.argument_count;
  w->results = o.results;
  w->output_count = o.result_count;
  pestle_arena_init(allocator, &w->arena);
  pestle_jvp_init(allocator, w->function, is_linear, &w->jvp);
  w->jvp.max_trips = o.max_trips;
  pestle_transposer_init(allocator, pestle_builder_make(w->function), &w->x);
  w->x.function = w->function;
  w->x.max_trips = o.max_trips;
  PESTLE_TRY(choose(w, false, &w->arguments, &w->tangent_count));
  PESTLE_TRY(choose(w, true, &w->results, &w->output_count));
  w->tangents = pestle_work_array(w, w->tangent_count);
  w->outputs = pestle_work_array(w, w->output_count);
  return w->tangents && w->outputs ? NULL : PESTLE_OOM();
}

// --- Arguments and results of the new function ---

// An argument of |like|'s type, called after it.
pestle_status_t pestle_work_add_argument(pestle_work_t* w, const pv_t* like,
                                         const char* name, const char* suffix,
                                         pv_t** out_value) {
  char text[160];
  snprintf(text, sizeof(text), "%.120s%s", name ? name : "", suffix);
  return pestle_function_add_argument(w->function, like->type,
                                      name ? text : NULL, out_value);
}

static pestle_status_t add_tangents(pestle_work_t* w) {
  for (size_t i = 0; i < w->tangent_count; ++i) {
    const pv_t* argument = w->body->arguments[w->arguments[i]];
    PESTLE_TRY(pestle_work_add_argument(
        w, argument,
        pestle_function_argument_name(w->function, w->arguments[i]), "_tangent",
        &w->tangents[i]));
    pestle_tangent_set(&w->jvp, argument, w->tangents[i]);
  }
  return NULL;
}

// Behind |from| results, which stay, |values|; but lists of extents that a run decides
// stay last.
pestle_status_t pestle_work_set_results(pestle_work_t* w, size_t from,
                                        pv_t* const* values, size_t count) {
  pv_t** all = pestle_work_array(w, from + count);
  int64_t* places = PESTLE_ARENA_ARRAY(&w->arena, int64_t, from + count + 1);
  if (!all || !places) return PESTLE_OOM();
  size_t tensors = 0;
  while (tensors < from && pestle_function_shape_of(w->function, tensors) < 0)
    ++tensors;
  for (size_t i = 0; i < from; ++i) {
    size_t at = i < tensors ? i : i + count;
    all[at] = pestle_work_returned(w, i);
    places[at] = (int64_t)i;
  }
  for (size_t i = 0; i < count; ++i) {
    all[tensors + i] = values[i];
    places[tensors + i] = -1;
  }
  PESTLE_TRY(
      pestle_function_set_results(w->function, all, from + count, places));
  pestle_sweep(w->body);
  return NULL;
}

// What reads a tangent behind its transposition came of an op that multiplied two.
pestle_status_t pestle_work_drop_argument(pestle_work_t* w, size_t index) {
  const pv_t* argument = w->body->arguments[index];
  if (!argument->uses)
    return pestle_function_remove_argument(w->function, index);
  return pestle_node_error(argument->uses->user, PESTLE_STATUS_INVALID_ARGUMENT,
                           "comes of an op that is not linear in what is "
                           "transposed: tangents are multiplied "
                           "by each other or chosen by. A rule for forward "
                           "mode is linear in its tangents");
}

// Takes arguments [low, high) away.
pestle_status_t pestle_work_drop_arguments(pestle_work_t* w, size_t low,
                                           size_t high) {
  while (high > low)
    PESTLE_TRY(pestle_work_drop_argument(w, --high));
  return NULL;
}

// Puts zeros for what is NULL of |values|, like the |likes|.
pestle_status_t pestle_work_fill_zeros(pestle_work_t* w, pv_t** values,
                                       pv_t* const* likes, size_t count) {
  pestle_formula_t f = pestle_formula_before(w->body->last);
  for (size_t i = 0; i < count; ++i) {
    if (!values[i]) values[i] = pestle_zeros(&f, likes[i]);
  }
  return f.status;
}

pestle_status_t pestle_work_fill_outputs(pestle_work_t* w) {
  pv_t** likes = pestle_work_array(w, w->output_count);
  if (!likes) return PESTLE_OOM();
  for (size_t i = 0; i < w->output_count; ++i)
    likes[i] = pestle_work_returned(w, w->results[i]);
  return pestle_work_fill_zeros(w, w->outputs, likes, w->output_count);
}

// --- Walks ---

pestle_status_t pestle_work_forward(pestle_work_t* w) {
  PESTLE_TRY(add_tangents(w));
  PESTLE_TRY(pestle_jvp_block(&w->jvp, w->body));
  for (size_t i = 0; i < w->output_count; ++i)
    w->outputs[i] =
        pestle_tangent(&w->jvp, pestle_work_returned(w, w->results[i]));
  return NULL;
}

pestle_status_t pestle_work_find_linear(pestle_work_t* w, pv_t* const* inputs,
                                        size_t count) {
  for (size_t i = 0; i < count; ++i)
    PESTLE_TRY(pestle_linear_add(&w->x, inputs[i]));
  return pestle_linear_find(&w->x, w->body);
}

pestle_status_t pestle_work_transpose(pestle_work_t* w, pv_t* const* outputs,
                                      pv_t* const* cts, size_t output_count,
                                      pv_t* const* inputs, size_t input_count,
                                      pv_t** out_cts) {
  w->x.f.builder = pestle_builder_before(w->body->last);
  for (size_t i = 0; i < output_count; ++i) {
    if (outputs[i]) pestle_cotangent_add_to(&w->x, outputs[i], cts[i]);
  }
  PESTLE_TRY(pestle_transpose_nodes(&w->x));
  for (size_t i = 0; i < input_count; ++i)
    out_cts[i] = pestle_cotangent_take(&w->x, inputs[i]);
  pestle_status_t status = w->x.f.status;
  w->x.f.status = NULL;
  return status ? status
                : pestle_work_fill_zeros(w, out_cts, inputs, input_count);
}

static const char* result_name(const pestle_work_t* w, size_t index) {
  return index < w->function->result_name_count
             ? w->function->result_names[index]
             : NULL;
}

pestle_status_t pestle_work_add_cotangents(pestle_work_t* w, pv_t** out_cts) {
  for (size_t i = 0; i < w->output_count; ++i) {
    PESTLE_TRY(pestle_work_add_argument(
        w, pestle_work_returned(w, w->results[i]),
        result_name(w, w->results[i]), "_cotangent", &out_cts[i]));
  }
  return NULL;
}

pestle_status_t pestle_work_finish(pestle_work_t* w, pestle_status_t status,
                                   pestle_module_t** out_module) {
  if (!status) {
    *out_module = w->module;
    pestle_module_retain(w->module);
  }
  work_deinit(w);
  return status;
}

pv_t** pestle_work_array(pestle_work_t* w, size_t count) {
  size_t size = (count + 1) * sizeof(pv_t*);
  return pestle_arena_alloc_zero(&w->arena, size, _Alignof(pv_t*));
}
