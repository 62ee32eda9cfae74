// SPDX-License-Identifier: Apache-2.0
// pestle run --profile: where the time of a run goes, step by step, and how near
// each comes to what the machine can do.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/thread.h"
#include "cli.h"
#include "pestle/version.h"

enum {
  WARM_UPS = 3,
  LEAST_RUNS = 5,
  MOST_RUNS = 200,
  MOST_EVENTS = 100000,
};
// Runs are timed for so long, unless --bench says how many.
#define TIMED_NS 1000000000

typedef struct row_t {
  pestle_step_info_t info;
  uint32_t step;
  int64_t run_ns;  // of the run under way
  uint32_t times;  // that it ran in it; of the last one once all are done
  double best_us, mean_us;
  uint32_t runs;
  double limit_us;    // what the machine's limits allow; 0: not known
  const char* bound;  // by which
} row_t;

// A step that ran.
typedef struct event_t {
  uint32_t step;
  int64_t begin_ns, end_ns;
} event_t;

typedef struct events_t {
  PESTLE_VEC(event_t) list;
  int64_t span_ns;
} events_t;

typedef struct table_t {
  cli_t* cli;
  const cli_profile_t* profile;
  cli_limits_t limits;
  row_t* rows;
  size_t count;
  int64_t runs;
  double best_us, sum_us;  // of a whole run without the hook; of all rows
  bool keeps_events;
  events_t now, best;  // of the run under way; of the fastest one
} table_t;

// --- Running ---

static void on_step(void* user, uint32_t step, int64_t begin_ns,
                    int64_t end_ns) {
  table_t* t = user;
  if (step >= t->count) return;
  t->rows[step].run_ns += end_ns - begin_ns;
  ++t->rows[step].times;
  event_t event = {step, begin_ns, end_ns};
  // Without memory, or too many: what is shown ends there.
  if (t->keeps_events && t->now.list.size < MOST_EVENTS)
    (void)pestle_vec_push(&t->now.list, event);
}

static pestle_status_t run_once(table_t* t, bool hooked) {
  const cli_profile_t* p = t->profile;
  pestle_run_options_t options = {.struct_size = sizeof(options)};
  if (hooked) {
    options.on_step = on_step;
    options.on_step_user = t;
  }
  p->reset(p->user);
  return pestle_executable_run(p->executable, NULL, p->inputs, p->input_count,
                               p->outputs, p->output_count, &options);
}

static void add_run(table_t* t) {
  for (size_t i = 0; i < t->count; ++i) {
    row_t* r = &t->rows[i];
    double us = (double)r->run_ns * 1e-3;
    r->run_ns = 0;
    if (!r->times) continue;
    if (!r->runs || us < r->best_us) r->best_us = us;
    r->mean_us += us;
    ++r->runs;
  }
}

static void keep_fastest(table_t* t) {
  size_t count = t->now.list.size;
  if (!count) return;
  t->now.span_ns =
      t->now.list.data[count - 1].end_ns - t->now.list.data[0].begin_ns;
  if (t->best.list.size && t->best.span_ns <= t->now.span_ns) return;
  events_t other = t->best;
  t->best = t->now;
  t->now = other;
}

static void forget_run(table_t* t) {
  pestle_vec_clear(&t->now.list);
  for (size_t i = 0; i < t->count; ++i)
    t->rows[i].run_ns = t->rows[i].times = 0;
}

static pestle_status_t run_all(table_t* t) {
  int64_t wanted = t->cli->count[CLI_BENCH];
  for (int i = 0; i < WARM_UPS; ++i) {
    PESTLE_TRY(run_once(t, i > 0));
    forget_run(t);
  }
  int64_t begin = pestle_clock_ns();
  for (;; ++t->runs) {
    int64_t now = pestle_clock_ns();
    bool enough = t->runs >= LEAST_RUNS &&
                  (now - begin > TIMED_NS || t->runs >= MOST_RUNS);
    if (wanted ? t->runs >= wanted : enough) break;
    forget_run(t);
    PESTLE_TRY(run_once(t, true));
    add_run(t);
    keep_fastest(t);
    // Turn by turn with plain runs: what the hook costs is in the difference.
    int64_t plain = pestle_clock_ns();
    PESTLE_TRY(run_once(t, false));
    double us = (double)(pestle_clock_ns() - plain) * 1e-3;
    if (!t->runs || us < t->best_us) t->best_us = us;
  }
  return NULL;
}

// --- What the machine allows ---

typedef struct level_t {
  const char* name;
  double rate;
} level_t;

// The level that holds |bytes|.
static level_t level_of(const cli_limits_t* l, uint64_t bytes) {
  if (bytes <= l->l2_bytes * (uint64_t)l->threads) {
    return (level_t){"L2", l->l2};
  }
  if (bytes <= l->l3_bytes) return (level_t){"L3", l->l3};
  return (level_t){"memory", l->memory};
}

// Seconds that the operations of a step take at the rates of their kinds.
static double time_of_ops(const pestle_step_info_t* s, const cli_limits_t* l) {
  double half = l->half_flops > 0 ? l->half_flops : l->flops;
  double byte = l->byte_flops > 0 ? l->byte_flops : l->flops;
  uint64_t other = s->flops - s->half_flops - s->byte_flops;
  return (double)other / l->flops + (double)s->half_flops / half +
         (double)s->byte_flops / byte;
}

static const char* name_of_ops(const pestle_step_info_t* s) {
  if (s->half_flops > s->flops / 2) return "half";
  return s->byte_flops > s->flops / 2 ? "bytes" : "fma";
}

// Weights come from where all weights of a run lie, all else from what holds the
// step's own bytes.
static void set_limits(table_t* t) {
  const cli_limits_t* l = &t->limits;
  uint64_t weights = 0;
  for (size_t i = 0; i < t->count; ++i)
    weights += t->rows[i].info.constant_bytes;
  level_t far = level_of(l, weights);
  for (size_t i = 0; i < t->count && l->flops > 0; ++i) {
    row_t* r = &t->rows[i];
    double times = r->times ? r->times : 1;
    level_t near = level_of(l, r->info.bytes);
    double constant = (double)r->info.constant_bytes / far.rate;
    double other = (double)(r->info.bytes - r->info.constant_bytes) / near.rate;
    double moved = constant + other, computed = time_of_ops(&r->info, l);
    r->bound = constant > other ? far.name : near.name;
    if (computed > moved) r->bound = name_of_ops(&r->info);
    r->limit_us = 1e6 * times * (computed > moved ? computed : moved);
  }
}

// --- Text ---

static int by_time(const void* a, const void* b) {
  const row_t *x = *(row_t* const*)a, *y = *(row_t* const*)b;
  if (x->best_us != y->best_us) return x->best_us < y->best_us ? 1 : -1;
  return x->step < y->step ? -1 : x->step > y->step;
}

static bool is_shown(const row_t* r) {
  return r->runs && r->info.kind != PESTLE_STEP_JUMP;
}

static double rate_of(const row_t* r, uint64_t work) {
  double times = r->times ? r->times : 1;
  return r->best_us > 0 ? (double)work * times / r->best_us * 1e-3 : 0;
}

static const char* kind_of(const row_t* r) {
  static const char* const kinds[] = {"kernel", "copy", "call", "jump"};
  return r->info.fallback ? "fallback" : kinds[r->info.kind & 3];
}

static void print_row(const table_t* t, const row_t* r) {
  const pestle_step_info_t* s = &r->info;
  printf("%5" PRIu32 " %10.1f %5.1f%%", r->step, r->best_us,
         t->sum_us > 0 ? 100 * r->best_us / t->sum_us : 0);
  if (s->flops) {
    printf(" %8.1f", rate_of(r, s->flops));
  } else {
    printf(" %8s", "-");
  }
  printf(" %7.1f", rate_of(r, s->bytes));
  if (r->limit_us > 0 && r->best_us > 0) {
    printf(" %4.0f%% %-6s", 100 * r->limit_us / r->best_us, r->bound);
  } else {
    printf(" %5s %-6s", "-", "");
  }
  printf("  %s", s->name);
  if (s->kind != PESTLE_STEP_KERNEL || s->fallback) {
    printf(" (%s, %s)", kind_of(r), s->backend);
  }
  if (r->times > 1) printf(" x%" PRIu32, r->times);
  printf("\n%51s%.*s\n", "", (int)s->ops_size, s->ops);
  if (s->schedule_size) {
    printf("%51s%.*s\n", "", (int)s->schedule_size, s->schedule);
  }
}

static void print_limits(const cli_limits_t* l) {
  if (!(l->flops > 0)) {
    printf(
        "limits: none, kernels are interpreted or this build has no "
        "compiler\n");
    return;
  }
  printf(
      "limits of this machine with %d thread%s, %s: GFLOP/s of multiply-adds "
      "%.1f, in products of halves %.1f, of bytes %.1f; L2 %.0f GB/s, L3 %.0f "
      "GB/s, memory %.0f GB/s\n",
      (int)l->threads, l->threads == 1 ? "" : "s",
      l->was_measured ? "measured now" : "from the cache folder",
      l->flops * 1e-9, l->half_flops * 1e-9, l->byte_flops * 1e-9, l->l2 * 1e-9,
      l->l3 * 1e-9, l->memory * 1e-9);
}

static void print_table(const table_t* t, row_t* const* order, size_t count) {
  printf("%" PRId64
         " timed runs after %d; a run takes %.1f us at best, its "
         "steps %.1f us\n",
         t->runs, WARM_UPS, t->best_us, t->sum_us);
  print_limits(&t->limits);
  printf(
      "GB/s: of what a step must read and write once. limit: the time that the "
      "machine's limits\nallow, as a share of the step's; by what it is "
      "bound.\n\n"
      " step    best us  share  GFLOP/s    GB/s limit by      kernel, graph "
      "ops, schedule\n");
  for (size_t i = 0; i < count; ++i)
    print_row(t, order[i]);
}

// --- JSON ---

static void key_f64(pestle_json_t* json, const char* key, double value) {
  pestle_json_key(json, key);
  pestle_json_f64(json, value);
}

static void key_u64(pestle_json_t* json, const char* key, uint64_t value) {
  pestle_json_key(json, key);
  pestle_json_u64(json, value);
}

static void key_str(pestle_json_t* json, const char* key, const char* value,
                    size_t size) {
  pestle_json_key(json, key);
  pestle_json_str(json, pestle_str_make(value, size));
}

static void json_row(const table_t* t, const row_t* r, pestle_json_t* json) {
  const pestle_step_info_t* s = &r->info;
  pestle_json_begin_object(json);
  key_u64(json, "step", r->step);
  key_str(json, "kind", kind_of(r), strlen(kind_of(r)));
  key_str(json, "name", s->name, strlen(s->name));
  key_str(json, "backend", s->backend, strlen(s->backend));
  key_str(json, "ops", s->ops, s->ops_size);
  key_str(json, "schedule", s->schedule, s->schedule_size);
  key_u64(json, "threads", s->threads > 0 ? (uint64_t)s->threads : 0);
  key_u64(json, "times", r->times);
  key_f64(json, "best_us", r->best_us);
  key_f64(json, "mean_us", r->mean_us / r->runs);
  key_f64(json, "share", t->sum_us > 0 ? r->best_us / t->sum_us : 0);
  key_u64(json, "flops", s->flops);
  key_u64(json, "half_flops", s->half_flops);
  key_u64(json, "byte_flops", s->byte_flops);
  key_u64(json, "bytes", s->bytes);
  key_u64(json, "constant_bytes", s->constant_bytes);
  key_f64(json, "gflops_per_s", rate_of(r, s->flops));
  key_f64(json, "gbytes_per_s", rate_of(r, s->bytes));
  pestle_json_key(json, "locations");
  pestle_json_begin_array(json);
  for (size_t i = 0; i < s->location_count; ++i)
    pestle_json_u64(json, s->locations[i]);
  pestle_json_end_array(json);
  if (r->limit_us > 0 && r->best_us > 0) {
    key_f64(json, "limit", r->limit_us / r->best_us);
    key_str(json, "bound", r->bound, strlen(r->bound));
  }
  pestle_json_end_object(json);
}

static void json_limits(const cli_limits_t* l, pestle_json_t* json) {
  pestle_json_key(json, "limits");
  pestle_json_begin_object(json);
  key_f64(json, "gflops_per_s", l->flops * 1e-9);
  key_f64(json, "half_gflops_per_s", l->half_flops * 1e-9);
  key_f64(json, "byte_gflops_per_s", l->byte_flops * 1e-9);
  key_f64(json, "l2_gbytes_per_s", l->l2 * 1e-9);
  key_f64(json, "l3_gbytes_per_s", l->l3 * 1e-9);
  key_f64(json, "memory_gbytes_per_s", l->memory * 1e-9);
  key_u64(json, "threads", (uint64_t)l->threads);
  pestle_json_end_object(json);
}

// By number: what the steps' "locations" mean.
static void json_locations(const table_t* t, pestle_json_t* json) {
  const pestle_executable_t* e = t->profile->executable;
  pestle_json_key(json, "locations");
  pestle_json_begin_array(json);
  for (size_t i = 0; i < pestle_executable_location_count(e); ++i) {
    pestle_location_info_t l = {.struct_size = sizeof(l)};
    pestle_status_t status = pestle_executable_location(e, i, &l);
    pestle_status_release(status);
    if (status) break;
    pestle_json_begin_object(json);
    key_str(json, "op", l.op, strlen(l.op));
    if (*l.name) key_str(json, "name", l.name, strlen(l.name));
    if (*l.file) key_str(json, "file", l.file, strlen(l.file));
    if (l.line) key_u64(json, "line", l.line);
    if (l.column) key_u64(json, "column", l.column);
    pestle_json_end_object(json);
  }
  pestle_json_end_array(json);
}

static void json_events(const table_t* t, pestle_json_t* json) {
  int64_t begin = t->best.list.size ? t->best.list.data[0].begin_ns : 0;
  pestle_json_key(json, "events");
  pestle_json_begin_array(json);
  for (size_t i = 0; i < t->best.list.size; ++i) {
    const event_t* e = &t->best.list.data[i];
    pestle_json_begin_array(json);
    pestle_json_u64(json, e->step);
    pestle_json_f64(json, (double)(e->begin_ns - begin) * 1e-3);
    pestle_json_f64(json, (double)(e->end_ns - begin) * 1e-3);
    pestle_json_end_array(json);
  }
  pestle_json_end_array(json);
}

static void json_table(const table_t* t, pestle_json_t* json) {
  pestle_json_begin_object(json);
  key_str(json, "pestle", pestle_version(), strlen(pestle_version()));
  key_u64(json, "runs", (uint64_t)t->runs);
  key_u64(json, "warm_ups", WARM_UPS);
  key_f64(json, "run_us", t->best_us);
  key_f64(json, "steps_us", t->sum_us);
  json_limits(&t->limits, json);
  if (t->keeps_events) json_events(t, json);
  json_locations(t, json);
  pestle_json_key(json, "steps");
  pestle_json_begin_array(json);
  for (size_t i = 0; i < t->count; ++i) {
    if (is_shown(&t->rows[i])) json_row(t, &t->rows[i], json);
  }
  pestle_json_end_array(json);
  pestle_json_end_object(json);
}

static pestle_status_t write_json(const table_t* t, const char* path) {
  pestle_strbuf_t text;
  pestle_json_t json;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_json_init(&text, 1, &json);
  json_table(t, &json);
  pestle_strbuf_append_char(&text, '\n');
  pestle_status_t status = pestle_strbuf_status(&text);
  if (!status && path) {
    status = pestle_file_write(path, pestle_strbuf_view(&text));
  } else if (!status) {
    fputs(pestle_strbuf_cstr(&text), stdout);
  }
  pestle_strbuf_deinit(&text);
  return status;
}

// --- All of it ---

static pestle_status_t describe(table_t* t) {
  for (size_t i = 0; i < t->count; ++i) {
    t->rows[i] = (row_t){.step = (uint32_t)i,
                         .info = {.struct_size = sizeof(pestle_step_info_t)},
                         .bound = ""};
    PESTLE_TRY(
        pestle_executable_step(t->profile->executable, i, &t->rows[i].info));
  }
  return NULL;
}

static pestle_status_t show(table_t* t) {
  const char* form = t->cli->text[CLI_PROFILE];
  row_t** order = PESTLE_ARENA_ARRAY(&t->cli->arena, row_t*, t->count + 1);
  if (!order) return PESTLE_OOM();
  size_t shown = 0;
  for (size_t i = 0; i < t->count; ++i) {
    if (is_shown(&t->rows[i])) order[shown++] = &t->rows[i];
  }
  if (!strcmp(form, "json")) return write_json(t, NULL);
  qsort(order, shown, sizeof(*order), by_time);
  print_table(t, order, shown);
  return *form ? write_json(t, form) : NULL;
}

static pestle_status_t measure(table_t* t) {
  t->count = pestle_executable_step_count(t->profile->executable);
  t->rows = PESTLE_ARENA_ARRAY(&t->cli->arena, row_t, t->count + 1);
  if (!t->rows) return PESTLE_OOM();
  PESTLE_TRY(describe(t));
  PESTLE_TRY(run_all(t));
  PESTLE_TRY(cli_limits(t->cli, t->profile->device, &t->limits));
  set_limits(t);
  for (size_t i = 0; i < t->count; ++i)
    t->sum_us += t->rows[i].best_us;
  return NULL;
}

pestle_status_t cli_profile(cli_t* cli, const cli_profile_t* profile) {
  table_t t = {.cli = cli, .profile = profile};
  PESTLE_TRY(measure(&t));
  return show(&t);
}

pestle_status_t cli_profile_json(cli_t* cli, const cli_profile_t* profile,
                                 pestle_json_t* json) {
  table_t t = {.cli = cli, .profile = profile, .keeps_events = true};
  pestle_vec_init(&t.now.list, pestle_allocator_system());
  pestle_vec_init(&t.best.list, pestle_allocator_system());
  pestle_status_t status = measure(&t);
  if (!status) json_table(&t, json);
  pestle_vec_deinit(&t.now.list);
  pestle_vec_deinit(&t.best.list);
  return status;
}
