// SPDX-License-Identifier: Apache-2.0
// A graph on a device, against what ir/ref made of it while it grew.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "random/random.h"

static uint64_t bits_at(const void* data, size_t size, int64_t i) {
  uint64_t bits = 0;
  memcpy(&bits, (const char*)data + (size_t)i * size, size);
  return bits;
}

static bool agrees(const value_t* v, uint64_t want, uint64_t got) {
  if (want == got) return true;
  pestle_dtype_t dtype = pestle_dtype_part(v->value->type->dtype);
  if (!is_float(dtype)) return false;
  double w = pestle_float_decode(dtype, want);
  double x = pestle_float_decode(dtype, got);
  if (isnan(w) || isnan(x)) return isnan(w) && isnan(x);
  double least = fmin(fabs(w), fabs(x));
  if (v->steps > 0)
    return fabs(w - x) <= v->near + v->steps * ulp_at(dtype, least);
  return v->radius > 0 && fabs(w - x) <= v->radius;
}

static bool compare(const value_t* v, const pestle_tensor_t* got, size_t output,
                    char* text, size_t text_size) {
  const pestle_type_t* type = v->value->type;
  pestle_dtype_t dtype = pestle_dtype_part(type->dtype);
  size_t size = pestle_dtype_size(dtype);
  const char* data = (const char*)got->data + got->byte_offset;
  int64_t count = number_count(v), wrong = 0, at = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (agrees(v, bits_at(v->data, size, i), bits_at(data, size, i))) continue;
    if (!wrong++) at = i;
  }
  if (!wrong) return true;
  uint64_t want = bits_at(v->data, size, at), has = bits_at(data, size, at);
  const char* op = v->value->node
                       ? pestle_op_info((pestle_op_t)v->value->node->op)->name
                       : "argument";
  snprintf(
      text, text_size,
      "output %zu (%s, %s): %lld of %lld wrong, first [%lld] is %.17g "
      "(0x%llx), should be %.17g (0x%llx) within %g",
      output, op, pestle_dtype_info(type->dtype)->name, (long long)wrong,
      (long long)count, (long long)at,
      is_float(dtype) ? pestle_float_decode(dtype, has) : (double)(int64_t)has,
      (unsigned long long)has,
      is_float(dtype) ? pestle_float_decode(dtype, want)
                      : (double)(int64_t)want,
      (unsigned long long)want, v->radius);
  return false;
}

static outcome_t refused(pestle_status_t status, const char* when, char* text,
                         size_t size) {
  char inner[1024];
  pestle_status_format(status, inner, sizeof(inner));
  pestle_status_release(status);
  snprintf(text, size, "%s: %s", when, inner);
  return REFUSED;
}

static outcome_t execute(graph_t* g, pestle_executable_t* exe, char* text,
                         size_t size) {
  pestle_tensor_t in[MAX_INPUTS] = {0}, out[MAX_OUTPUTS] = {0};
  for (size_t i = 0; i < g->input_count; ++i) {
    const pestle_type_t* type = g->inputs[i]->value->type;
    in[i] = (pestle_tensor_t){.data = g->inputs[i]->data,
                              .device = {PESTLE_DEVICE_CPU, 0},
                              .ndim = type->rank,
                              .dtype = pestle_dtype_to_dlpack(type->dtype),
                              .shape = (int64_t*)(uintptr_t)type->dims};
  }
  pestle_run_options_t options = {.struct_size = sizeof(options),
                                  .threads = g->seed % 4 ? 1 : 2};
  pestle_status_t status = pestle_executable_run(
      exe, NULL, in, g->input_count, out, g->output_count, &options);
  if (status) return refused(status, "run", text, size);
  outcome_t outcome = SAME;
  for (size_t i = 0; i < g->output_count; ++i) {
    if (outcome == SAME && !compare(g->outputs[i], &out[i], i, text, size))
      outcome = DIFFERENT;
    pestle_tensor_release(exe, &out[i]);
  }
  return outcome;
}

outcome_t run_graph(graph_t* g, pestle_device_t* device, const char* cpu,
                    char* text, size_t size) {
  pestle_plan_t* plan;
  pestle_executable_t* exe;
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true,
                                      .target_cpu = cpu,
                                      .no_fuse = g->no_fuse,
                                      .verify = g->seed % 8 == 0,
                                      .round_trip = g->seed % 32 == 0,
                                      .numerics = g->numerics};
  pestle_status_t status =
      pestle_compile(g->context, g->module, device, &options, &plan);
  if (status) return refused(status, "compile", text, size);
  status = pestle_executable_create(g->context, plan, device, &exe);
  outcome_t outcome = REFUSED;
  if (status) {
    refused(status, "load", text, size);
  } else {
    outcome = execute(g, exe, text, size);
    pestle_executable_release(exe);
  }
  pestle_plan_release(plan);
  return outcome;
}
