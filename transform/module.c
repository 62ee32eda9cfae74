// SPDX-License-Identifier: Apache-2.0
// The public functions that differentiate in one.
#include "base/require.h"
#include "pestle/transform.h"

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
  w->jvp.is_reverse = true;
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
