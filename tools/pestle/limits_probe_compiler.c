// SPDX-License-Identifier: Apache-2.0
// One probe: its module as text, its compilation, its runs.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "limits.h"

enum {
  CHAIN = 64,  // multiply-adds of an element
  // A GPU does more of them in the time that an element takes to memory and back.
  LANES_CHAIN = 512,
  // Of the product: a panel fits L1 or L2, tiles divide it.
  TAPS = 384,
  COLUMNS = 256,
  TENSORS = 3,  // x, y, z
  SUMS = 32,    // kernels of a run: what a launch and the wait cost is shared
  // The best of so many runs, after so long at least: others use the machine
  // too, and threads that sleep wake late.
  LEAST_RUNS = 5,
  MOST_RUNS = 2000,
  PROBE_NS = 150000000,
};

// --- Texts ---

static void append_chain(int64_t elements, int count, pestle_strbuf_t* out) {
  pestle_strbuf_appendf(out,
                        "func.func public @main(%%x: tensor<%" PRId64
                        "xf32>, %%y: tensor<f32>) -> tensor<%" PRId64
                        "xf32> {\n  %%b = stablehlo.broadcast_in_dim %%y, "
                        "dims = [] : (tensor<f32>) -> tensor<%" PRId64
                        "xf32>\n",
                        elements, elements, elements);
  const char* last = "x";
  char name[16];
  for (int i = 0; i < count; ++i) {
    pestle_strbuf_appendf(out,
                          "  %%m%d = stablehlo.multiply %%%s, %%b : "
                          "tensor<%" PRId64
                          "xf32>\n  %%a%d = stablehlo.add %%m%d, %%b : "
                          "tensor<%" PRId64 "xf32>\n",
                          i, last, elements, i, i, elements);
    (void)snprintf(name, sizeof(name), "a%d", i);
    last = name;
  }
  pestle_strbuf_appendf(out, "  return %%%s : tensor<%" PRId64 "xf32>\n}\n",
                        last, elements);
}

// What a product is of: both sides and the result.
typedef struct product_t {
  const char *x, *y, *z;
} product_t;

static void append_product(int64_t rows, int64_t taps, int64_t columns,
                           const product_t* of, pestle_strbuf_t* out) {
  char x[64], y[64], z[64];
  (void)snprintf(x, sizeof(x), "tensor<%" PRId64 "x%" PRId64 "x%s>", rows, taps,
                 of->x);
  (void)snprintf(y, sizeof(y), "tensor<%" PRId64 "x%" PRId64 "x%s>", taps,
                 columns, of->y);
  (void)snprintf(z, sizeof(z), "tensor<%" PRId64 "x%" PRId64 "x%s>", rows,
                 columns, of->z);
  pestle_strbuf_appendf(out,
                        "func.func public @main(%%x: %s, %%y: %s) -> %s {\n"
                        "  %%z = stablehlo.dot_general %%x, %%y, "
                        "contracting_dims = [1] x [0] : (%s, %s) -> %s\n"
                        "  return %%z : %s\n}\n",
                        x, y, z, x, y, z, z);
}

static void append_sums(int64_t elements, int count, pestle_strbuf_t* out) {
  char type[48];
  (void)snprintf(type, sizeof(type), "tensor<%" PRId64 "xf32>", elements);
  pestle_strbuf_appendf(out,
                        "func.func public @main(%%x: %s, %%y: %s) -> %s {\n",
                        type, type, type);
  for (int i = 0; i < count; ++i) {
    char from[16] = "x";
    if (i) (void)snprintf(from, sizeof(from), "z%d", i - 1);
    pestle_strbuf_appendf(out, "  %%z%d = stablehlo.add %%%s, %%y : %s\n", i,
                          from, type);
  }
  pestle_strbuf_appendf(out, "  return %%z%d : %s\n}\n", count - 1, type);
}

static bool is_product(cli_probe_kind_t kind) {
  return kind >= CLI_PROBE_PRODUCT && kind <= CLI_PROBE_BYTES;
}

static void append_text(const cli_probe_t* p, cli_probe_kind_t kind,
                        int64_t size, pestle_strbuf_t* out) {
  static const product_t products[] = {
      [CLI_PROBE_PRODUCT] = {"f32", "f32", "f32"},
      [CLI_PROBE_BF16] = {"bf16", "bf16", "f32"},
      [CLI_PROBE_F16] = {"f16", "f16", "f32"},
      [CLI_PROBE_BYTES] = {"ui8", "i8", "i32"}};
  // Matrix units of GPUs take bytes of one kind.
  static const product_t lane_bytes = {"i8", "i8", "i32"};
  if (kind == CLI_PROBE_CHAIN) {
    append_chain(size, p->lanes ? LANES_CHAIN : CHAIN, out);
  } else if (is_product(kind) && p->lanes) {
    append_product(size, size, size,
                   kind == CLI_PROBE_BYTES ? &lane_bytes : &products[kind],
                   out);
  } else if (is_product(kind)) {
    append_product(size, TAPS, COLUMNS, &products[kind], out);
  } else {
    append_sums(size, kind == CLI_PROBE_SUMS ? SUMS : 1, out);
  }
}

double cli_probe_work(const cli_probe_t* p, cli_probe_kind_t kind,
                      int64_t size) {
  double n = (double)size;
  if (kind == CLI_PROBE_CHAIN)
    return 2.0 * n * (p->lanes ? LANES_CHAIN : CHAIN);
  if (is_product(kind))
    return p->lanes ? 2 * n * n * n : 2 * n * TAPS * COLUMNS;
  return n * 4 * TENSORS * (kind == CLI_PROBE_SUMS ? SUMS : 1);
}

// --- Times ---

typedef struct times_t {
  double s[MOST_RUNS];
  size_t count;
} times_t;

static int by_value(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static void sum_up(times_t* times, double* out_s, double* out_spread) {
  qsort(times->s, times->count, sizeof(*times->s), by_value);
  double best = times->s[0] > 1e-9 ? times->s[0] : 1e-9;
  *out_s = best;
  *out_spread = times->s[times->count / 2] / best - 1;
}

static bool goes_on(const times_t* times, int64_t begin_ns) {
  return times->count < LEAST_RUNS ||
         (times->count < MOST_RUNS && pestle_clock_ns() - begin_ns < PROBE_NS);
}

// --- Running on this machine's processors ---

static void on_step(void* user, uint32_t step, int64_t begin_ns,
                    int64_t end_ns) {
  cli_probe_t* p = user;
  (void)step;
  p->step_ns += end_ns - begin_ns;
}

static pestle_status_t time_steps(cli_probe_t* p, pestle_executable_t* e,
                                  const pestle_tensor_t* inputs,
                                  pestle_tensor_t* output, times_t* times) {
  pestle_run_options_t options = {.struct_size = sizeof(options),
                                  .threads = p->threads,
                                  .on_step = on_step,
                                  .on_step_user = p};
  for (int64_t begin = pestle_clock_ns(); goes_on(times, begin);) {
    p->step_ns = 0;
    PESTLE_TRY(pestle_executable_run(e, NULL, inputs, 2, output, 1, &options));
    times->s[times->count++] = (double)p->step_ns * 1e-9;
  }
  return NULL;
}

static pestle_status_t run_here(cli_probe_t* p, pestle_executable_t* e,
                                times_t* times) {
  cli_array_t arrays[TENSORS] = {0};
  pestle_tensor_t views[TENSORS];
  pestle_status_t status = NULL;
  for (size_t i = 0; i < TENSORS && !status; ++i) {
    pestle_io_info_t info =
        i < 2 ? pestle_executable_input(e, i) : pestle_executable_output(e, 0);
    status = cli_array_init(info.dtype, info.rank, info.dims, &arrays[i]);
    // No denormals: 0.5 x + 0.5 tends to 1.
    bool is_float = pestle_dtype_is(info.dtype, PESTLE_KIND_FLOAT);
    if (!status) status = cli_fill(&arrays[i], is_float ? "0.5" : "1");
    if (!status) views[i] = cli_array_view(&arrays[i]);
  }
  if (!status) status = time_steps(p, e, views, &views[2], times);
  for (size_t i = 0; i < TENSORS; ++i)
    cli_array_deinit(&arrays[i]);
  return status;
}

// --- Running on a device with lanes ---

static pestle_status_t time_lane(cli_lane_t* lane, times_t* times) {
  for (int i = 0; i < 3; ++i)  // the second one may be recorded
    PESTLE_TRY(cli_lane_queue(lane));
  PESTLE_TRY(cli_lane_wait(lane));
  for (int64_t begin = pestle_clock_ns(); goes_on(times, begin);) {
    int64_t now = pestle_clock_ns();
    PESTLE_TRY(cli_lane_queue(lane));
    PESTLE_TRY(cli_lane_wait(lane));
    times->s[times->count++] = (double)(pestle_clock_ns() - now) * 1e-9;
  }
  return NULL;
}

static pestle_status_t run_lanes(cli_probe_t* p, pestle_plan_t* plan,
                                 times_t* times) {
  // The command line's inputs are the model's.
  cli_t own = {.verb = p->cli->verb, .context = p->cli->context};
  cli_job_t job;
  cli_lane_t lane = {.job = &job};
  pestle_arena_init(pestle_allocator_system(), &own.arena);
  cli_job_init(&own, &job);
  pestle_plan_retain(plan);
  job.plan = plan;
  job.device = p->device;
  pestle_status_t status = cli_job_load(&job, true);
  if (!status) status = cli_lane_init(&job, &lane);
  if (!status) status = time_lane(&lane, times);
  cli_lane_deinit(&lane);
  cli_job_deinit(&job);
  pestle_arena_deinit(&own.arena);
  return status;
}

// --- A probe ---

static bool falls_back(const pestle_executable_t* e) {
  for (size_t i = 0; i < pestle_executable_step_count(e); ++i) {
    pestle_step_info_t info = {.struct_size = sizeof(info)};
    pestle_status_t status = pestle_executable_step(e, i, &info);
    bool unknown = status != NULL;
    pestle_status_release(status);
    if (unknown || info.fallback) return true;
  }
  return false;
}

static pestle_status_t run_plan(cli_probe_t* p, pestle_plan_t* plan,
                                double* out_s, double* out_spread) {
  pestle_executable_t* executable;
  PESTLE_TRY(
      pestle_executable_create(p->cli->context, plan, p->device, &executable));
  times_t* times = malloc(sizeof(*times));
  pestle_status_t status = times ? NULL : PESTLE_OOM();
  if (times) times->count = 0;
  // What the device refuses says nothing about it.
  if (!status && falls_back(executable)) {
    *out_s = INFINITY;
    *out_spread = 0;
  } else if (!status) {
    status =
        p->lanes ? run_lanes(p, plan, times) : run_here(p, executable, times);
    if (!status) sum_up(times, out_s, out_spread);
  }
  free(times);
  pestle_executable_release(executable);
  return status;
}

static pestle_status_t run_text(cli_probe_t* p, bool apart,
                                const pestle_strbuf_t* text, double* out_s,
                                double* out_spread) {
  pestle_module_t* module;
  pestle_plan_t* plan = NULL;
  pestle_context_t* context = p->cli->context;
  pestle_compile_options_t options = {
      .struct_size = sizeof(options), .no_cache = true, .no_fuse = apart};
  PESTLE_TRY(pestle_strbuf_status(text));
  pestle_status_t status =
      pestle_module_parse(context, text->data, text->size, NULL, &module);
  if (!status)
    status = pestle_compile(context, module, p->device, &options, &plan);
  pestle_module_release(module);
  if (pestle_status_code(status) == PESTLE_STATUS_UNSUPPORTED) {
    pestle_status_release(status);
    *out_s = INFINITY;
    *out_spread = 0;
    return NULL;
  }
  if (!status) status = run_plan(p, plan, out_s, out_spread);
  pestle_plan_release(plan);
  return pestle_status_annotate(status, "while measuring the machine's limits");
}

pestle_status_t cli_probe_run(cli_probe_t* p, cli_probe_kind_t kind,
                              int64_t size, double* out_s, double* out_spread) {
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  append_text(p, kind, size, &text);
  pestle_status_t status =
      run_text(p, kind == CLI_PROBE_SUMS, &text, out_s, out_spread);
  pestle_strbuf_deinit(&text);
  return status;
}
