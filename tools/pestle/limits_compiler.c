// SPDX-License-Identifier: Apache-2.0
// The limits of this machine, measured by kernels that Pestle itself compiles:
// multiply-adds in a chain and in a product of matrices, the better one,
// products of bf16 and of bytes, and z = x + y over tensors that lie in L2, in
// L3 and in memory. Measured once; the figures lie in the cache folder, in a
// file whose name is made of all that they depend on.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/thread.h"
#include "cli.h"
#include "pestle/version.h"

enum {
  CHAIN = 64,          // multiply-adds of an element
  ELEMENTS = 1 << 17,  // of them, a thread: some 150 us a kernel
  LANE_ELEMENTS = 1 << 22,
  // Of the product: a panel fits L1 or L2, tiles divide it. Rows a thread.
  TAPS = 384,
  COLUMNS = 256,
  ROWS = 336,
  LANE_ROWS = 4096,
  TENSORS = 3,  // x, y, z
  // The best of so many runs, after so long at least: others use the machine
  // too, and threads that sleep wake late.
  LEAST_RUNS = 5,
  PROBE_NS = 150000000,
  DEFAULT_L2 = 512 << 10,
  DEFAULT_L3 = 8 << 20,
  MOST_BYTES = 768 << 20,  // of the three, in memory
};

typedef struct probe_t {
  cli_t* cli;
  pestle_device_t* device;
  int32_t threads;
  int64_t step_ns;  // of the run under way: what copies to devices leave out
} probe_t;

static void on_step(void* user, uint32_t step, int64_t begin_ns,
                    int64_t end_ns) {
  probe_t* p = user;
  (void)step;
  p->step_ns += end_ns - begin_ns;
}

static void append_chain(int64_t elements, pestle_strbuf_t* out) {
  pestle_strbuf_appendf(out,
                        "func.func public @main(%%x: tensor<%" PRId64
                        "xf32>, %%y: tensor<f32>) -> tensor<%" PRId64
                        "xf32> {\n  %%b = stablehlo.broadcast_in_dim %%y, "
                        "dims = [] : (tensor<f32>) -> tensor<%" PRId64
                        "xf32>\n",
                        elements, elements, elements);
  const char* last = "x";
  char name[16];
  for (int i = 0; i < CHAIN; ++i) {
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

static void append_product(int64_t rows, const product_t* of,
                           pestle_strbuf_t* out) {
  char x[48], y[48], z[48];
  (void)snprintf(x, sizeof(x), "tensor<%" PRId64 "x%dx%s>", rows, TAPS, of->x);
  (void)snprintf(y, sizeof(y), "tensor<%dx%dx%s>", TAPS, COLUMNS, of->y);
  (void)snprintf(z, sizeof(z), "tensor<%" PRId64 "x%dx%s>", rows, COLUMNS,
                 of->z);
  pestle_strbuf_appendf(out,
                        "func.func public @main(%%x: %s, %%y: %s) -> %s {\n"
                        "  %%z = stablehlo.dot_general %%x, %%y, "
                        "contracting_dims = [1] x [0] : (%s, %s) -> %s\n"
                        "  return %%z : %s\n}\n",
                        x, y, z, x, y, z, z);
}

static void append_sum(int64_t elements, pestle_strbuf_t* out) {
  char type[48];
  (void)snprintf(type, sizeof(type), "tensor<%" PRId64 "xf32>", elements);
  pestle_strbuf_appendf(out,
                        "func.func public @main(%%x: %s, %%y: %s) -> %s {\n"
                        "  %%z = stablehlo.add %%x, %%y : %s\n"
                        "  return %%z : %s\n}\n",
                        type, type, type, type, type);
}

// --- Running ---

static pestle_status_t run_probe(probe_t* p, pestle_executable_t* e,
                                 const pestle_tensor_t* inputs,
                                 pestle_tensor_t* output, double* out_s) {
  pestle_run_options_t options = {.struct_size = sizeof(options),
                                  .threads = p->threads,
                                  .on_step = on_step,
                                  .on_step_user = p};
  int64_t best = INT64_MAX, begin = pestle_clock_ns();
  for (int i = 0; i < LEAST_RUNS || pestle_clock_ns() - begin < PROBE_NS; ++i) {
    p->step_ns = 0;
    PESTLE_TRY(pestle_executable_run(e, NULL, inputs, 2, output, 1, &options));
    if (p->step_ns < best) best = p->step_ns;
  }
  *out_s = (double)(best > 0 ? best : 1) * 1e-9;
  return NULL;
}

static pestle_status_t run_executable(probe_t* p, pestle_executable_t* e,
                                      double* out_s) {
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
  if (!status) status = run_probe(p, e, views, &views[2], out_s);
  for (size_t i = 0; i < TENSORS; ++i)
    cli_array_deinit(&arrays[i]);
  return status;
}

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

static pestle_status_t run_text(probe_t* p, const pestle_strbuf_t* text,
                                double* out_s) {
  pestle_module_t* module;
  pestle_plan_t* plan = NULL;
  pestle_executable_t* executable = NULL;
  pestle_context_t* context = p->cli->context;
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true};
  PESTLE_TRY(pestle_strbuf_status(text));
  pestle_status_t status =
      pestle_module_parse(context, text->data, text->size, NULL, &module);
  if (!status)
    status = pestle_compile(context, module, p->device, &options, &plan);
  pestle_module_release(module);
  if (!status) {
    status = pestle_executable_create(context, plan, p->device, &executable);
  }
  // What the device refuses says nothing about it.
  if (!status && falls_back(executable)) {
    *out_s = INFINITY;
  } else if (!status) {
    status = run_executable(p, executable, out_s);
  }
  pestle_executable_release(executable);
  pestle_plan_release(plan);
  return pestle_status_annotate(status, "while measuring the machine's limits");
}

typedef enum kind_e { CHAINS, PRODUCT, HALVES, BYTES, SUM } kind_t;

// Operations or, of the sum, bytes a second over tensors of |size| elements, or
// rows.
static pestle_status_t measure_one(probe_t* p, kind_t kind, int64_t size,
                                   double* out_rate) {
  pestle_strbuf_t text;
  static const product_t products[] = {[PRODUCT] = {"f32", "f32", "f32"},
                                       [HALVES] = {"bf16", "bf16", "f32"},
                                       [BYTES] = {"ui8", "i8", "i32"}};
  double seconds = 0, work = (double)size * 4 * TENSORS;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  if (kind == CHAINS) {
    append_chain(size, &text);
    work = 2.0 * CHAIN * (double)size;
  } else if (kind != SUM) {
    append_product(size, &products[kind], &text);
    work = 2.0 * TAPS * COLUMNS * (double)size;
  } else {
    append_sum(size, &text);
  }
  pestle_status_t status = run_text(p, &text, &seconds);
  pestle_strbuf_deinit(&text);
  if (!status) *out_rate = work / seconds;
  return status;
}

static pestle_status_t measure(probe_t* p, const pestle_target_caps_t* caps,
                               cli_limits_t* l) {
  bool lanes = (caps->flags & PESTLE_TARGET_LANES) != 0;
  int64_t element = 4 * TENSORS, threads = l->threads;
  uint64_t memory = l->l3_bytes * 6 < MOST_BYTES ? l->l3_bytes * 6 : MOST_BYTES;
  int64_t rows = lanes ? LANE_ROWS : ROWS * threads;
  double product = 0;
  PESTLE_TRY(measure_one(p, CHAINS, lanes ? LANE_ELEMENTS : ELEMENTS * threads,
                         &l->flops));
  PESTLE_TRY(measure_one(p, PRODUCT, rows, &product));
  if (product > l->flops) l->flops = product;
  PESTLE_TRY(measure_one(p, HALVES, rows, &l->half_flops));
  PESTLE_TRY(measure_one(p, BYTES, rows, &l->byte_flops));
  PESTLE_TRY(measure_one(p, SUM, (int64_t)l->l3_bytes / 2 / element, &l->l3));
  PESTLE_TRY(measure_one(p, SUM, (int64_t)memory / element, &l->memory));
  // Each core has its own: what one reads, as often as there are threads.
  p->threads = 1;
  PESTLE_TRY(measure_one(p, SUM, (int64_t)l->l2_bytes / 2 / element, &l->l2));
  if (!lanes) l->l2 *= (double)threads;
  l->was_measured = true;
  return NULL;
}

// --- The file ---

static const struct {
  const char* name;
  size_t offset;
  bool may_lack;  // 0: the device has no such products
} fields[] = {{"flops", offsetof(cli_limits_t, flops), false},
              {"half_flops", offsetof(cli_limits_t, half_flops), true},
              {"byte_flops", offsetof(cli_limits_t, byte_flops), true},
              {"l2", offsetof(cli_limits_t, l2), false},
              {"l3", offsetof(cli_limits_t, l3), false},
              {"memory", offsetof(cli_limits_t, memory), false}};
enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

static double* field_of(cli_limits_t* l, int i) {
  return (double*)(void*)((char*)l + fields[i].offset);
}

static const char* path_of(cli_t* cli, const pestle_target_caps_t* caps,
                           int32_t threads) {
  const char* folder = pestle_context_cache_dir(cli->context);
  if (!folder || !pestle_file_exists(folder)) return NULL;
  pestle_strbuf_t key;
  char host[128], hex[40], name[64];
  cli_host_name(host, sizeof(host));
  pestle_strbuf_init(pestle_allocator_system(), &key);
  pestle_strbuf_appendf(&key, "%s %s %s %s %u %d %llu %llu %s", host,
                        caps->name, caps->cpu, caps->features, caps->cores,
                        (int)threads, (unsigned long long)caps->l2_bytes,
                        (unsigned long long)caps->l3_bytes, pestle_build_id());
  pestle_hash128_t hash = pestle_hash128(pestle_strbuf_cstr(&key), key.size);
  pestle_strbuf_deinit(&key);
  pestle_hash128_to_hex(hash, hex);
  (void)snprintf(name, sizeof(name), "limits-%.32s.txt", hex);
  return pestle_path_join(&cli->arena, folder, name);
}

// Whether |text| has all of them.
static bool read_fields(pestle_str_t text, cli_limits_t* l) {
  pestle_str_t line, name, value;
  int found = 0;
  while (pestle_str_next(&text, '\n', &line)) {
    if (!pestle_str_split(line, ' ', &name, &value)) continue;
    for (int i = 0; i < FIELDS; ++i) {
      double rate;
      if (!pestle_str_equal_c(name, fields[i].name) ||
          !pestle_str_parse_f64(value, &rate) || !(rate >= 0) ||
          (!(rate > 0) && !fields[i].may_lack)) {
        continue;
      }
      *field_of(l, i) = rate;
      ++found;
    }
  }
  return found == FIELDS;
}

static bool load(const char* path, cli_limits_t* l) {
  char* data;
  size_t size;
  cli_limits_t read = *l;
  pestle_status_t status =
      pestle_file_read(path, 4096, pestle_allocator_system(), &data, &size);
  if (status) {
    pestle_status_release(status);
    return false;
  }
  bool ok = read_fields(pestle_str_make(data, size), &read);
  free(data);
  if (ok) *l = read;
  return ok;
}

// That it cannot be kept costs the next time alone.
static void save(const char* path, cli_limits_t* l) {
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  for (int i = 0; i < FIELDS; ++i) {
    pestle_strbuf_appendf(&text, "%s %.6g\n", fields[i].name, *field_of(l, i));
  }
  pestle_str_t part = pestle_strbuf_view(&text);
  if (!text.failed) {
    pestle_status_release(pestle_file_write_cached(path, &part, 1));
  }
  pestle_strbuf_deinit(&text);
}

pestle_status_t cli_limits(cli_t* cli, pestle_device_t* device,
                           cli_limits_t* out_limits) {
  pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
  *out_limits = (cli_limits_t){.threads = pestle_context_threads(cli->context)};
  if (!device) PESTLE_TRY(pestle_context_device(cli->context, NULL, &device));
  pestle_status_t status = pestle_device_caps(device, NULL, &caps);
  bool has_compiler = !status;
  pestle_status_release(status);
  if (!has_compiler || caps.flags & PESTLE_TARGET_INTERPRETED) return NULL;
  out_limits->l2_bytes = caps.l2_bytes ? caps.l2_bytes : DEFAULT_L2;
  out_limits->l3_bytes = caps.l3_bytes ? caps.l3_bytes : DEFAULT_L3;
  const char* path = path_of(cli, &caps, out_limits->threads);
  if (path && load(path, out_limits)) return NULL;
  probe_t p = {.cli = cli, .device = device, .threads = out_limits->threads};
  PESTLE_TRY(measure(&p, &caps, out_limits));
  if (path) save(path, out_limits);
  return NULL;
}
