// SPDX-License-Identifier: Apache-2.0
// A profile as a table for people and as JSON.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "json.h"
#include "pestle/version.h"
#include "profile.h"

// --- Text ---

static int by_time(const void* a, const void* b) {
  const cli_row_t *x = *(cli_row_t* const*)a, *y = *(cli_row_t* const*)b;
  if (x->best_us != y->best_us) return x->best_us < y->best_us ? 1 : -1;
  return x->step < y->step ? -1 : x->step > y->step;
}

static bool is_shown(const cli_row_t* r) {
  return r->runs && r->info.kind != PESTLE_STEP_JUMP;
}

static double rate_of(const cli_row_t* r, uint64_t work) {
  double times = r->times ? r->times : 1;
  return r->best_us > 0 ? (double)work * times / r->best_us * 1e-3 : 0;
}

static const char* kind_of(const cli_row_t* r) {
  static const char* const kinds[] = {"kernel", "copy", "call", "jump"};
  return r->info.fallback ? "fallback" : kinds[r->info.kind & 3];
}

static void print_row(const cli_table_t* t, const cli_row_t* r) {
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

static void print_rates(const cli_limits_t* l) {
  printf(
      "GFLOP/s of multiply-adds %.1f, in products of halves %.1f, of bytes "
      "%.1f; L2 %.0f GB/s",
      l->flops.rate * 1e-9, l->half_flops.rate * 1e-9,
      l->byte_flops.rate * 1e-9, l->l2.rate * 1e-9);
  if (l->l3_bytes) printf(", L3 %.0f GB/s", l->l3.rate * 1e-9);
  printf(", memory %.0f GB/s\n", l->memory.rate * 1e-9);
}

static void print_limits(const cli_table_t* t) {
  const cli_limits_t* l = &t->limits;
  char date[32];
  if (!(l->flops.rate > 0)) {
    printf(
        "limits: none, kernels are interpreted or this build has no "
        "compiler\n");
    return;
  }
  printf("limits of this ");
  if (l->lanes) {
    printf("device, ");
  } else {
    printf("machine with %d thread%s, ", (int)l->threads,
           l->threads == 1 ? "" : "s");
  }
  printf("%s", t->was_repeated   ? "measured again, as a step passed them"
               : l->was_measured ? "measured now"
                                 : "from the cache folder");
  printf(" (%s, spread %.0f %%): ", cli_date(l->date_ns, date, sizeof(date)),
         100 * cli_limits_spread(l));
  print_rates(l);
  if (!l->lanes && cli_load_is_busy(l->others)) {
    printf(
        "        other programs used %.1f processors while they were measured: "
        "they are too low\n",
        l->others);
  }
}

static void print_machine(const cli_table_t* t) {
  size_t passing = 0;
  for (size_t i = 0; i < t->count; ++i)
    passing += cli_row_passes(&t->rows[i]);
  if (passing && t->limits.flops.rate > 0) {
    printf(
        "        %zu step%s took less time than they allow: a limit is "
        "measured too low, or the step finds its bytes nearer\n",
        passing, passing == 1 ? "" : "s");
  }
  if (cli_load_is_busy(t->others)) {
    printf(
        "machine: busy; other programs used %.1f of its processors during the "
        "runs: times are too long\n",
        t->others);
  }
}

static void print_table(const cli_table_t* t, cli_row_t* const* order,
                        size_t count) {
  printf("%" PRId64
         " timed runs after %d; a run takes %.1f us at best, its "
         "steps %.1f us\n",
         t->runs, CLI_WARM_UPS, t->best_us, t->sum_us);
  print_limits(t);
  print_machine(t);
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

static void key_str(pestle_json_t* json, const char* key, const char* value,
                    size_t size) {
  pestle_json_key(json, key);
  pestle_json_str(json, pestle_str_make(value, size));
}

static void json_row(const cli_table_t* t, const cli_row_t* r,
                     pestle_json_t* json) {
  const pestle_step_info_t* s = &r->info;
  pestle_json_begin_object(json);
  cli_key_u64(json, "step", r->step);
  cli_key_cstr(json, "kind", kind_of(r));
  cli_key_cstr(json, "name", s->name);
  cli_key_cstr(json, "backend", s->backend);
  key_str(json, "ops", s->ops, s->ops_size);
  key_str(json, "schedule", s->schedule, s->schedule_size);
  cli_key_u64(json, "threads", s->threads > 0 ? (uint64_t)s->threads : 0);
  cli_key_u64(json, "times", r->times);
  cli_key_f64(json, "best_us", r->best_us);
  cli_key_f64(json, "mean_us", r->mean_us / r->runs);
  cli_key_f64(json, "share", t->sum_us > 0 ? r->best_us / t->sum_us : 0);
  cli_key_u64(json, "flops", s->flops);
  cli_key_u64(json, "half_flops", s->half_flops);
  cli_key_u64(json, "byte_flops", s->byte_flops);
  cli_key_u64(json, "bytes", s->bytes);
  cli_key_u64(json, "constant_bytes", s->constant_bytes);
  cli_key_f64(json, "gflops_per_s", rate_of(r, s->flops));
  cli_key_f64(json, "gbytes_per_s", rate_of(r, s->bytes));
  pestle_json_key(json, "locations");
  pestle_json_begin_array(json);
  for (size_t i = 0; i < s->location_count; ++i)
    pestle_json_u64(json, s->locations[i]);
  pestle_json_end_array(json);
  if (r->limit_us > 0 && r->best_us > 0) {
    cli_key_f64(json, "limit", r->limit_us / r->best_us);
    cli_key_cstr(json, "bound", r->bound);
  }
  pestle_json_end_object(json);
}

// How many processors others used; null: not known.
static void json_others(pestle_json_t* json, double others) {
  cli_key_f64(json, "others", others < 0 ? (double)NAN : others);
  cli_key_bool(json, "is_busy", cli_load_is_busy(others));
}

static void json_limits(const cli_table_t* t, pestle_json_t* json) {
  const cli_limits_t* l = &t->limits;
  const struct {
    const char* key;
    const cli_limit_t* limit;
  } all[] = {{"gflops_per_s", &l->flops},
             {"half_gflops_per_s", &l->half_flops},
             {"byte_gflops_per_s", &l->byte_flops},
             {"l2_gbytes_per_s", &l->l2},
             {"l3_gbytes_per_s", &l->l3},
             {"memory_gbytes_per_s", &l->memory}};
  char date[32];
  pestle_json_key(json, "limits");
  pestle_json_begin_object(json);
  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i)
    cli_key_f64(json, all[i].key, all[i].limit->rate * 1e-9);
  cli_key_u64(json, "threads", l->lanes ? 0 : (uint64_t)l->threads);
  if (l->flops.rate > 0) {
    cli_date(l->date_ns, date, sizeof(date));
    cli_key_cstr(json, "date", date);
    cli_key_f64(json, "spread", cli_limits_spread(l));
    cli_key_bool(json, "measured_now", l->was_measured);
    cli_key_bool(json, "measured_again", t->was_repeated);
    json_others(json, l->others);
  }
  pestle_json_end_object(json);
}

// By number: what the steps' "locations" mean.
static void json_locations(const cli_table_t* t, pestle_json_t* json) {
  const pestle_executable_t* e = t->job->executable;
  pestle_json_key(json, "locations");
  pestle_json_begin_array(json);
  for (size_t i = 0; i < pestle_executable_location_count(e); ++i) {
    pestle_location_info_t l = {.struct_size = sizeof(l)};
    pestle_status_t status = pestle_executable_location(e, i, &l);
    pestle_status_release(status);
    if (status) break;
    pestle_json_begin_object(json);
    cli_key_cstr(json, "op", l.op);
    if (*l.name) cli_key_cstr(json, "name", l.name);
    if (*l.file) cli_key_cstr(json, "file", l.file);
    if (l.line) cli_key_u64(json, "line", l.line);
    if (l.column) cli_key_u64(json, "column", l.column);
    pestle_json_end_object(json);
  }
  pestle_json_end_array(json);
}

static void json_events(const cli_table_t* t, pestle_json_t* json) {
  int64_t begin = t->best.list.size ? t->best.list.data[0].begin_ns : 0;
  pestle_json_key(json, "events");
  pestle_json_begin_array(json);
  for (size_t i = 0; i < t->best.list.size; ++i) {
    const cli_event_t* e = &t->best.list.data[i];
    pestle_json_begin_array(json);
    pestle_json_u64(json, e->step);
    pestle_json_f64(json, (double)(e->begin_ns - begin) * 1e-3);
    pestle_json_f64(json, (double)(e->end_ns - begin) * 1e-3);
    pestle_json_end_array(json);
  }
  pestle_json_end_array(json);
}

void cli_table_json(const cli_table_t* t, pestle_json_t* json) {
  pestle_json_begin_object(json);
  cli_key_cstr(json, "pestle", pestle_version());
  cli_key_u64(json, "runs", (uint64_t)t->runs);
  cli_key_u64(json, "warm_ups", CLI_WARM_UPS);
  cli_key_f64(json, "run_us", t->best_us);
  cli_key_f64(json, "steps_us", t->sum_us);
  json_limits(t, json);
  pestle_json_key(json, "machine");
  pestle_json_begin_object(json);
  json_others(json, t->others);
  pestle_json_end_object(json);
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

pestle_status_t cli_table_write(const cli_table_t* t, const char* path) {
  pestle_strbuf_t text;
  pestle_json_t json;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_json_init(&text, 1, &json);
  cli_table_json(t, &json);
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

pestle_status_t cli_table_print(const cli_table_t* t) {
  cli_row_t** order =
      PESTLE_ARENA_ARRAY(&t->cli->arena, cli_row_t*, t->count + 1);
  if (!order) return PESTLE_OOM();
  size_t shown = 0;
  for (size_t i = 0; i < t->count; ++i) {
    if (is_shown(&t->rows[i])) order[shown++] = &t->rows[i];
  }
  qsort(order, shown, sizeof(*order), by_time);
  print_table(t, order, shown);
  return NULL;
}
