// SPDX-License-Identifier: Apache-2.0
// Trials of diff and reduce: a module compiled and run one way (device, threads,
// numerics, passes), and its outputs compared with those of another way.
#include "trial.h"

#include <math.h>
#include <string.h>

#include "base/half.h"

// --- Ways ---

static pestle_status_t with_commas(cli_t* cli, pestle_str_t text,
                                   const char** out) {
  char* copy = pestle_arena_strndup(&cli->arena, text);
  if (!copy) return PESTLE_OOM();
  for (char* c = copy; *c; ++c) {
    if (*c == '+') *c = ',';
  }
  *out = copy;
  return NULL;
}

static pestle_status_t read_word(cli_t* cli, pestle_str_t word,
                                 cli_way_t* way) {
  pestle_str_t name = word, value = {0};
  bool has_value = pestle_str_split(word, '=', &name, &value);
  if (!has_value && pestle_str_equal_c(word, "strict")) {
    way->numerics = PESTLE_NUMERICS_STRICT;
  } else if (!has_value && pestle_str_equal_c(word, "fast")) {
    way->numerics = PESTLE_NUMERICS_FAST;
  } else if (!has_value && pestle_str_equal_c(word, "no-fuse")) {
    way->no_fuse = true;
  } else if (has_value && pestle_str_equal_c(name, "skip")) {
    return with_commas(cli, value, &way->skip);
  } else if (has_value && pestle_str_equal_c(name, "passes")) {
    return with_commas(cli, value, &way->passes);
  } else if (has_value && pestle_str_equal_c(name, "cpu")) {
    return with_commas(cli, value, &way->cpu);
  } else if (!has_value || !pestle_str_equal_c(name, "stop-after") ||
             !pestle_str_parse_i64(value, &way->stop_after) ||
             way->stop_after < 1 || way->stop_after > INT32_MAX) {
    return CLI_USAGE_ERROR(
        "'%s': what is '%.*s'? A way is DEVICE[,strict][,fast][,no-fuse]"
        "[,skip=A+B][,passes=A+B][,stop-after=N][,cpu=NAME]",
        way->text, PESTLE_STR_ARG(word));
  }
  return NULL;
}

// A name that is wrong is the command line's fault, not the model's.
static pestle_status_t check_device(cli_t* cli, const char* name) {
  pestle_device_t* device;
  pestle_status_t status = pestle_context_device(cli->context, name, &device);
  status = cli_as_usage(status, PESTLE_STATUS_INVALID_ARGUMENT);
  return cli_as_usage(status, PESTLE_STATUS_NOT_FOUND);
}

pestle_status_t cli_way_parse(cli_t* cli, const char* text, cli_way_t* way) {
  *way = (cli_way_t){.text = text};
  pestle_str_t rest = pestle_str(text), word;
  while (pestle_str_next(&rest, ',', &word)) {
    if (way->device) {
      PESTLE_TRY(read_word(cli, word, way));
      continue;
    }
    way->device = cli_copy(cli, word);
    if (!way->device) return PESTLE_OOM();
  }
  PESTLE_TRY(cli_check_passes(way->text, way->skip, false));
  PESTLE_TRY(cli_check_passes(way->text, way->passes, false));
  return check_device(cli, way->device);
}

pestle_status_t cli_way_options(cli_t* cli, const cli_way_t* way,
                                pestle_compile_options_t* out_options) {
  PESTLE_TRY(cli_compile_options(cli, out_options));
  out_options->numerics = way->numerics;
  out_options->no_fuse = way->no_fuse;
  out_options->no_cache = true;
  out_options->passes = way->passes;
  out_options->skip_passes = way->skip;
  out_options->target_cpu = way->cpu;
  out_options->stop_after = (int32_t)way->stop_after;
  return NULL;
}

// --- Running ---

static pestle_status_t bind_input(cli_t* cli, cli_inputs_t* inputs, size_t i,
                                  const pestle_io_info_t* info,
                                  cli_array_t** out) {
  *out = cli_inputs_find(inputs, i, info->name);
  if (*out) return cli_inputs_bind(inputs, i, info, out);
  cli_array_t made;
  PESTLE_TRY(cli_array_init(info->dtype, info->rank, info->dims, &made));
  made.index = (int64_t)i;
  made.is_made = true;
  uint64_t seed = (uint64_t)cli->count[CLI_SEED] * 1000 + i + 1;
  cli_fill_random(&made, seed);
  if (!pestle_vec_push(&inputs->arrays, made)) {
    cli_array_deinit(&made);
    return PESTLE_OOM();
  }
  return NULL;
}

static pestle_status_t run(cli_t* cli, pestle_executable_t* exe,
                           cli_inputs_t* inputs, cli_arrays_t* outputs) {
  size_t n = pestle_executable_input_count(exe);
  size_t m = pestle_executable_output_count(exe);
  pestle_tensor_t* in = PESTLE_ARENA_ARRAY(&cli->arena, pestle_tensor_t, n + 1);
  pestle_tensor_t* out =
      PESTLE_ARENA_ARRAY(&cli->arena, pestle_tensor_t, m + 1);
  if (!in || !out) return PESTLE_OOM();
  cli_array_t* array;
  for (size_t i = 0; i < n; ++i) {
    pestle_io_info_t info = pestle_executable_input(exe, i);
    PESTLE_TRY(bind_input(cli, inputs, i, &info, &array));
  }
  // Views once no array moves any more.
  for (size_t i = 0; i < n; ++i) {
    pestle_io_info_t info = pestle_executable_input(exe, i);
    in[i] = cli_array_view(cli_inputs_find(inputs, i, info.name));
  }
  for (size_t i = 0; i < m; ++i) {
    pestle_io_info_t info = pestle_executable_output(exe, i);
    cli_array_t made;
    PESTLE_TRY(cli_array_init(info.dtype, info.rank, info.dims, &made));
    if (!pestle_vec_push(outputs, made)) {
      cli_array_deinit(&made);
      return PESTLE_OOM();
    }
  }
  for (size_t i = 0; i < m; ++i)
    out[i] = cli_array_view(&outputs->data[i]);
  PESTLE_TRY(pestle_executable_run(exe, NULL, in, n, out, m, NULL));
  // The real extents of those whose extents only a run tells.
  for (size_t i = 0; i < m; ++i) {
    cli_array_t* a = &outputs->data[i];
    a->count = 1;
    for (int32_t k = 0; k < a->rank; ++k)
      a->count *= a->dims[k];
  }
  return NULL;
}

pestle_status_t cli_trial(cli_t* cli, pestle_module_t* module,
                          const cli_way_t* way, cli_inputs_t* inputs,
                          cli_arrays_t* outputs) {
  pestle_compile_options_t options;
  pestle_device_t* device;
  pestle_plan_t* plan;
  pestle_executable_t* exe;
  pestle_vec_init(outputs, pestle_allocator_system());
  PESTLE_TRY(cli_way_options(cli, way, &options));
  PESTLE_TRY(pestle_context_device(cli->context, way->device, &device));
  PESTLE_TRY(cli_compile_module(cli, module, device, &options, &plan));
  pestle_status_t status =
      pestle_executable_create(cli->context, plan, device, &exe);
  pestle_plan_release(plan);
  PESTLE_TRY(status);
  status = run(cli, exe, inputs, outputs);
  pestle_executable_release(exe);
  return status;
}

void cli_trial_free(cli_arrays_t* outputs) {
  for (size_t i = 0; i < outputs->size; ++i)
    cli_array_deinit(&outputs->data[i]);
  pestle_vec_deinit(outputs);
}

// --- Comparing ---

static bool differs(const cli_array_t* a, const cli_array_t* b, int64_t i,
                    double rtol, double atol) {
  size_t size = pestle_dtype_size(a->dtype);
  const char* p = (const char*)a->data + (size_t)i * size;
  const char* q = (const char*)b->data + (size_t)i * size;
  if (!memcmp(p, q, size)) return false;
  if (!pestle_dtype_is(a->dtype, PESTLE_KIND_FLOAT)) return true;
  double x = cli_array_get(a, i), y = cli_array_get(b, i);
  if (isnan(x) || isnan(y)) return !(isnan(x) && isnan(y));
  return x != y && !(fabs(x - y) <= atol + rtol * fabs(y));
}

// Two steps of narrow types are more than the usual tolerance.
static double least_rtol(pestle_dtype_t dtype) {
  if (!pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) return 0;
  uint64_t one = pestle_float_encode(dtype, 1);
  return 2 * (pestle_float_decode(dtype, one + 1) - 1);
}

static pestle_status_t tolerance(const cli_t* cli, cli_option_t option,
                                 double otherwise, double* out) {
  *out = otherwise;
  if (cli->text[option] &&
      !pestle_str_parse_f64(pestle_str(cli->text[option]), out)) {
    return CLI_USAGE_ERROR("'%s' is no tolerance", cli->text[option]);
  }
  return NULL;
}

pestle_status_t cli_trial_compare(cli_t* cli, const cli_arrays_t* a,
                                  const cli_arrays_t* b, size_t* out_output,
                                  char* out_text, size_t text_size) {
  double rtol, atol;
  PESTLE_TRY(tolerance(cli, CLI_RTOL, 1e-3, &rtol));
  PESTLE_TRY(tolerance(cli, CLI_ATOL, 1e-5, &atol));
  *out_output = SIZE_MAX;
  for (size_t k = 0; k < a->size && k < b->size; ++k) {
    const cli_array_t *x = &a->data[k], *y = &b->data[k];
    if (x->rank == y->rank &&
        memcmp(x->dims, y->dims, (size_t)x->rank * sizeof(*x->dims))) {
      char p[400], q[400];
      *out_output = k;
      (void)snprintf(out_text, text_size, "the extents are %s and %s",
                     cli_print_dims(x->rank, x->dims, p, sizeof(p)),
                     cli_print_dims(y->rank, y->dims, q, sizeof(q)));
      return NULL;
    }
    int64_t wrong = 0, first = 0;
    double by = cli->text[CLI_RTOL] ? rtol : fmax(rtol, least_rtol(x->dtype));
    for (int64_t i = 0; i < x->count && i < y->count; ++i) {
      if (!differs(x, y, i, by, atol)) continue;
      if (!wrong++) first = i;
    }
    if (!wrong) continue;
    char p[96], q[96];
    *out_output = k;
    (void)snprintf(out_text, text_size,
                   "%lld of %lld elements differ, first [%lld]: %s and %s",
                   (long long)wrong, (long long)x->count, (long long)first,
                   cli_print_exact(x, first, p, sizeof(p)),
                   cli_print_exact(y, first, q, sizeof(q)));
    return NULL;
  }
  return NULL;
}
