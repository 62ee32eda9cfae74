// SPDX-License-Identifier: Apache-2.0
// The limits of a device: multiply-adds in a chain and in a product of matrices, the
// better one; products of halves and of bytes; z = x + y over tensors that lie in L2,
// in L3 and in memory. Measured once, and again when a kernel does more than they allow;
// kept in the cache folder with their date, spread and what else the machine did then,
// in a file whose name is made of all that they depend on.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/thread.h"
#include "limits.h"
#include "pestle/version.h"

enum {
  ELEMENTS = 1 << 17,  // of the chain, a thread: some 150 us a kernel
  ROWS = 336,          // of the product, a thread
  DEFAULT_L2 = 512 << 10,
  DEFAULT_L3 = 8 << 20,
  MOST_BYTES = 768 << 20,  // of the three, in memory
  ELEMENT = 12,            // bytes of x, y and z
  // With lanes: sizes grow from the first until a run takes long enough.
  LANES_ELEMENTS = 1 << 18,
  LANES_MOST_ELEMENTS = 1 << 26,
  LANES_ROWS = 256,
  LANES_MOST_ROWS = 8192,
};
#define LONG_ENOUGH_S 2e-3

static void take(double rate, double spread, double* best, double* its_spread) {
  if (rate <= *best) return;
  *best = rate;
  *its_spread = spread;
}

// Operations or bytes a second; 0 where the device refuses.
static pestle_status_t measure_one(cli_probe_t* p, cli_probe_kind_t kind,
                                   int64_t size, cli_limit_t* out) {
  double seconds = 0, spread = 0;
  PESTLE_TRY(cli_probe_run(p, kind, size, &seconds, &spread));
  take(cli_probe_work(p, kind, size) / seconds, spread, &out->rate,
       &out->spread);
  return NULL;
}

// With sizes that grow, by |factor| at least, until a run takes long enough for what a
// launch costs not to matter.
static pestle_status_t measure_growing(cli_probe_t* p, cli_probe_kind_t kind,
                                       int64_t size, int64_t most,
                                       int64_t factor, cli_limit_t* out) {
  for (;;) {
    double seconds = 0, spread = 0;
    PESTLE_TRY(cli_probe_run(p, kind, size, &seconds, &spread));
    take(cli_probe_work(p, kind, size) / seconds, spread, &out->rate,
         &out->spread);
    if (!(seconds < LONG_ENOUGH_S) || size >= most) return NULL;
    size = size * factor < most ? size * factor : most;
  }
}

// --- Processors ---

static pestle_status_t measure_threads(cli_probe_t* p, cli_limits_t* l) {
  int64_t threads = l->threads;
  uint64_t memory = l->l3_bytes * 6 < MOST_BYTES ? l->l3_bytes * 6 : MOST_BYTES;
  uint64_t own = l->l2_bytes / (uint64_t)threads;
  PESTLE_TRY(measure_one(p, CLI_PROBE_CHAIN, ELEMENTS * threads, &l->flops));
  PESTLE_TRY(measure_one(p, CLI_PROBE_PRODUCT, ROWS * threads, &l->flops));
  PESTLE_TRY(measure_one(p, CLI_PROBE_BF16, ROWS * threads, &l->half_flops));
  PESTLE_TRY(measure_one(p, CLI_PROBE_BYTES, ROWS * threads, &l->byte_flops));
  PESTLE_TRY(measure_one(p, CLI_PROBE_SUM, (int64_t)l->l3_bytes / 2 / ELEMENT,
                         &l->l3));
  PESTLE_TRY(
      measure_one(p, CLI_PROBE_SUM, (int64_t)memory / ELEMENT, &l->memory));
  // Each core has its own: what one reads, as often as there are threads.
  p->threads = 1;
  PESTLE_TRY(measure_one(p, CLI_PROBE_SUM, (int64_t)own / 2 / ELEMENT, &l->l2));
  l->l2.rate *= (double)threads;
  return NULL;
}

// --- Devices with lanes ---

static pestle_status_t measure_lanes(cli_probe_t* p, cli_limits_t* l) {
  static const cli_probe_kind_t halves[] = {CLI_PROBE_F16, CLI_PROBE_BF16};
  PESTLE_TRY(measure_growing(p, CLI_PROBE_CHAIN, LANES_ELEMENTS,
                             LANES_MOST_ELEMENTS, 8, &l->flops));
  PESTLE_TRY(measure_growing(p, CLI_PROBE_PRODUCT, LANES_ROWS, LANES_MOST_ROWS,
                             2, &l->flops));
  for (int i = 0; i < 2; ++i) {
    PESTLE_TRY(measure_growing(p, halves[i], LANES_ROWS, LANES_MOST_ROWS, 2,
                               &l->half_flops));
  }
  PESTLE_TRY(measure_growing(p, CLI_PROBE_BYTES, LANES_ROWS, LANES_MOST_ROWS, 2,
                             &l->byte_flops));
  // Kernels that follow each other, over two thirds of the cache.
  PESTLE_TRY(measure_one(p, CLI_PROBE_SUMS,
                         (int64_t)(l->l2_bytes / 3 * 2 / ELEMENT), &l->l2));
  int64_t first = (int64_t)(l->l2_bytes * 6 / ELEMENT);
  int64_t most = MOST_BYTES / ELEMENT;
  return measure_growing(p, CLI_PROBE_SUMS, first < most ? first : most, most,
                         4, &l->memory);
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
              {"l3", offsetof(cli_limits_t, l3), true},
              {"memory", offsetof(cli_limits_t, memory), false}};
enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

static cli_limit_t* field_of(cli_limits_t* l, int i) {
  return (cli_limit_t*)(void*)((char*)l + fields[i].offset);
}

static const char* path_of(cli_t* cli, const pestle_target_caps_t* caps,
                           pestle_device_t* device, int32_t threads) {
  const char* folder = pestle_context_cache_dir(cli->context);
  if (!folder || !pestle_file_exists(folder)) return NULL;
  pestle_strbuf_t key;
  char host[128], hex[40], name[64];
  cli_host_name(host, sizeof(host));
  pestle_strbuf_init(pestle_allocator_system(), &key);
  pestle_strbuf_appendf(
      &key, "2 %s %s %s %s %u %d %llu %llu %d %s", host, caps->name, caps->cpu,
      caps->features, caps->cores, (int)threads,
      (unsigned long long)caps->l2_bytes, (unsigned long long)caps->l3_bytes,
      (int)pestle_device_dl(device).device_id, pestle_build_id());
  pestle_hash128_t hash = pestle_hash128(pestle_strbuf_cstr(&key), key.size);
  pestle_strbuf_deinit(&key);
  pestle_hash128_to_hex(hash, hex);
  (void)snprintf(name, sizeof(name), "limits-%.32s.txt", hex);
  return pestle_path_join(&cli->arena, folder, name);
}

// "flops 4.1e11 0.02": a rate and its spread.
static bool read_field(pestle_str_t name, pestle_str_t text, cli_limits_t* l) {
  pestle_str_t rate, spread;
  for (int i = 0; i < FIELDS; ++i) {
    cli_limit_t read;
    if (!pestle_str_equal_c(name, fields[i].name) ||
        !pestle_str_split(text, ' ', &rate, &spread) ||
        !pestle_str_parse_f64(rate, &read.rate) || !(read.rate >= 0) ||
        (!(read.rate > 0) && !fields[i].may_lack) ||
        !pestle_str_parse_f64(spread, &read.spread)) {
      continue;
    }
    *field_of(l, i) = read;
    return true;
  }
  return false;
}

// Whether |text| has all of them.
static bool read_fields(pestle_str_t text, cli_limits_t* l) {
  pestle_str_t line, name, value;
  int found = 0;
  bool is_dated = false;
  while (pestle_str_next(&text, '\n', &line)) {
    if (!pestle_str_split(line, ' ', &name, &value)) continue;
    if (pestle_str_equal_c(name, "date")) {
      is_dated = pestle_str_parse_i64(value, &l->date_ns);
    } else if (pestle_str_equal_c(name, "others")) {
      (void)pestle_str_parse_f64(value, &l->others);
    } else {
      found += read_field(name, value, l);
    }
  }
  return found == FIELDS && is_dated;
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
    const cli_limit_t* f = field_of(l, i);
    pestle_strbuf_appendf(&text, "%s %.6g %.4g\n", fields[i].name, f->rate,
                          f->spread);
  }
  pestle_strbuf_appendf(&text, "date %" PRId64 "\nothers %.3f\n", l->date_ns,
                        l->others);
  pestle_str_t part = pestle_strbuf_view(&text);
  if (!text.failed) {
    pestle_status_release(pestle_file_write_cached(path, &part, 1));
  }
  pestle_strbuf_deinit(&text);
}

// --- Measuring ---

static pestle_status_t measure(cli_t* cli, pestle_device_t* device,
                               cli_limits_t* l) {
  cli_probe_t p = {
      .cli = cli, .device = device, .threads = l->threads, .lanes = l->lanes};
  cli_load_t before, after;
  for (int i = 0; i < FIELDS; ++i)
    *field_of(l, i) = (cli_limit_t){.rate = 0};
  cli_load_read(&before);
  PESTLE_TRY(l->lanes ? measure_lanes(&p, l) : measure_threads(&p, l));
  cli_load_read(&after);
  l->others = cli_load_of_others(&before, &after);
  l->date_ns = pestle_wall_clock_ns();
  l->was_measured = true;
  return NULL;
}

// Of what was measured twice the better: nothing makes a machine faster than it is.
static void keep_better(const cli_limits_t* before, cli_limits_t* l) {
  cli_limits_t other = *before;
  for (int i = 0; i < FIELDS; ++i) {
    const cli_limit_t* f = field_of(&other, i);
    if (f->rate > field_of(l, i)->rate) *field_of(l, i) = *f;
  }
}

double cli_limits_spread(const cli_limits_t* limits) {
  cli_limits_t l = *limits;
  double most = 0;
  for (int i = 0; i < FIELDS; ++i) {
    if (field_of(&l, i)->spread > most) most = field_of(&l, i)->spread;
  }
  return most;
}

pestle_status_t cli_limits(cli_t* cli, pestle_device_t* device, bool anew,
                           cli_limits_t* out_limits) {
  pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
  cli_limits_t* l = out_limits;
  *l = (cli_limits_t){.threads = pestle_context_threads(cli->context)};
  if (!device) PESTLE_TRY(pestle_context_device(cli->context, NULL, &device));
  pestle_status_t status = pestle_device_caps(device, NULL, &caps);
  bool has_compiler = !status;
  pestle_status_release(status);
  if (!has_compiler || caps.flags & PESTLE_TARGET_INTERPRETED) return NULL;
  l->lanes = (caps.flags & PESTLE_TARGET_LANES) != 0;
  l->l2_bytes = caps.l2_bytes ? caps.l2_bytes : DEFAULT_L2;
  if (!l->lanes) {
    l->l2_bytes *= (uint64_t)l->threads;
    l->l3_bytes = caps.l3_bytes ? caps.l3_bytes : DEFAULT_L3;
  }
  const char* path = path_of(cli, &caps, device, l->threads);
  bool is_there = path && load(path, l);
  if (is_there && !anew) return NULL;
  cli_limits_t before = *l;
  PESTLE_TRY(measure(cli, device, l));
  if (is_there) keep_better(&before, l);
  if (path) save(path, l);
  return NULL;
}
