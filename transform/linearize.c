// SPDX-License-Identifier: Apache-2.0
// Derivatives in two functions, and the transposition of one that is linear.
//
//   f(x)          -> y                      with its tangents
//   f(x)          -> y, residuals           what depends on x alone
//   f(residuals, x_tangent) -> y_tangent    what is linear
//
// Of checkpoints the latter computes again what their policies do not keep (recompute.h).
#include "base/mem.h"
#include "base/require.h"
#include "transform/recompute.h"
#include "transform/work.h"

// --- The two functions ---

// Linear ops read an argument in the place of each residual. Tangents come behind these.
static pestle_status_t make_linear(pestle_residuals_t* r) {
  pestle_work_t* w = r->w;
  pv_t** arguments = pestle_work_array(w, r->values.size);
  if (!arguments) return PESTLE_OOM();
  for (size_t i = 0; i < r->values.size; ++i) {
    PESTLE_TRY(pestle_work_add_argument(w, r->values.data[i], "residual", "",
                                        &arguments[i]));
  }
  PESTLE_TRY(pestle_residuals_replace(r, arguments));
  for (size_t i = 0; i < w->tangent_count; ++i) {
    pv_t* tangent;
    const char* name = w->tangents[i]->name;
    PESTLE_TRY(pestle_work_add_argument(w, w->tangents[i], name, "", &tangent));
    pestle_value_replace_all_uses(w->tangents[i], tangent);
    for (size_t k = 0; k < w->output_count; ++k) {
      if (w->outputs[k] == w->tangents[i]) w->outputs[k] = tangent;
    }
  }
  PESTLE_TRY(pestle_work_fill_outputs(w));
  PESTLE_TRY(pestle_work_set_results(w, 0, w->outputs, w->output_count));
  return pestle_work_drop_arguments(w, 0, w->argument_count + w->tangent_count);
}

static pestle_status_t make_forward(pestle_residuals_t* r) {
  pestle_work_t* w = r->w;
  PESTLE_TRY(pestle_work_set_results(w, w->result_count, r->values.data,
                                     r->values.size));
  return pestle_work_drop_arguments(w, w->argument_count,
                                    w->argument_count + w->tangent_count);
}

static pestle_status_t make(pestle_work_t* w, bool is_forward) {
  pestle_ranges_t ranges;
  pestle_residuals_t r = {.w = w, .ranges = &ranges};
  pestle_ranges_init(w->jvp.allocator, &ranges);
  pestle_map_init(w->jvp.allocator, &r.places);
  pestle_vec_init(&r.values, w->jvp.allocator);
  w->jvp.ranges = &ranges;
  pestle_status_t status = pestle_work_forward(w);
  w->jvp.ranges = NULL;
  if (!status) {
    status = pestle_work_find_linear(w, w->tangents, w->tangent_count);
  }
  if (!status) status = pestle_residuals_find(&r);
  if (!status) status = is_forward ? make_forward(&r) : make_linear(&r);
  pestle_map_deinit(&r.places);
  pestle_vec_deinit(&r.values);
  pestle_ranges_deinit(&ranges);
  return status;
}

// Both are made from the start: the walks do the same each time, so that residuals
// come in one order.
static pestle_status_t half(pestle_module_t* module,
                            const pestle_transform_options_t* options,
                            bool is_forward, pestle_module_t** out_module) {
  pestle_work_t w;
  pestle_status_t status = pestle_work_init(module, options, true, &w);
  w.jvp.is_reverse = pestle_transform_options(options).to_transpose;
  if (!status) status = make(&w, is_forward);
  return pestle_work_finish(&w, status, out_module);
}

pestle_status_t pestle_module_linearize(
    pestle_module_t* module, const pestle_transform_options_t* options,
    pestle_module_t** out_forward, pestle_module_t** out_linear) {
  PESTLE_REQUIRE(out_forward, "out_forward");
  PESTLE_REQUIRE(out_linear, "out_linear");
  *out_forward = *out_linear = NULL;
  PESTLE_TRY(half(module, options, true, out_forward));
  pestle_status_t status = half(module, options, false, out_linear);
  if (!status) return NULL;
  pestle_module_release(*out_forward);
  *out_forward = NULL;
  return status;
}

// --- Transposition ---

// Drops the arguments that were transposed for; they have no uses any more.
static pestle_status_t drop_inputs(pestle_work_t* w) {
  for (size_t i = w->argument_count; i-- > 0;) {
    for (size_t k = 0; k < w->tangent_count; ++k) {
      if (w->arguments[k] != i) continue;
      PESTLE_TRY(pestle_work_drop_argument(w, i));
      break;
    }
  }
  return NULL;
}

static pestle_status_t transpose(pestle_work_t* w) {
  pv_t** cts = pestle_work_array(w, w->output_count);
  pv_t** out = pestle_work_array(w, w->tangent_count);
  if (!cts || !out) return PESTLE_OOM();
  for (size_t i = 0; i < w->tangent_count; ++i)
    w->tangents[i] = w->body->arguments[w->arguments[i]];
  PESTLE_TRY(pestle_work_find_linear(w, w->tangents, w->tangent_count));
  for (size_t i = 0; i < w->output_count; ++i) {
    w->outputs[i] = pestle_work_returned(w, w->results[i]);
    if (pestle_is_linear(&w->x, w->outputs[i]) ||
        pestle_is_zeros(w->outputs[i])) {
      continue;
    }
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "result %u of function '%s' does not depend on what is "
                        "transposed and is not zero; leave it out",
                        (unsigned)w->results[i], w->function->name);
  }
  PESTLE_TRY(pestle_work_add_cotangents(w, cts));
  w->x.is_checked = true;
  PESTLE_TRY(pestle_work_transpose(w, w->outputs, cts, w->output_count,
                                   w->tangents, w->tangent_count, out));
  PESTLE_TRY(pestle_work_set_results(w, 0, out, w->tangent_count));
  return drop_inputs(w);
}

pestle_status_t pestle_module_transpose(
    pestle_module_t* module, const pestle_transform_options_t* options,
    pestle_module_t** out_module) {
  pestle_work_t w;
  PESTLE_REQUIRE(out_module, "out_module");
  *out_module = NULL;
  pestle_status_t status = pestle_work_init(module, options, true, &w);
  if (!status) status = transpose(&w);
  return pestle_work_finish(&w, status, out_module);
}
