// SPDX-License-Identifier: Apache-2.0
// pestle world --simulate: how long a run of a plan takes on machines that are not
// there, what goes over their wires, and what would change that.
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "json.h"
#include "simulate.h"

typedef struct what_if_t {
  const char* name;
  cli_topology_t topology;
  cli_clock_t clock;
} what_if_t;

enum { WHAT_IFS = 4 };

typedef struct report_t {
  cli_t* cli;
  const cli_topology_t* t;
  cli_plan_run_t* run;
  cli_clock_t clock;
  uint64_t* sent;                  // bytes that each rank sends
  uint64_t *weights, all_weights;  // bytes of constants that each has, and all
  uint64_t on_link[CLI_LINKS];     // bytes that go over each kind of wire
  what_if_t what_if[WHAT_IFS];
} report_t;

// --- Bytes ---

static void add(report_t* p, int32_t from, int32_t to, uint64_t bytes) {
  if (from == to) return;
  p->sent[from] += bytes;
  p->on_link[cli_topology_link(p->t, from, to)] += bytes;
}

static uint64_t operand_count(const cli_plan_run_t* run, const cli_meeting_t* m,
                              uint32_t tensor) {
  const pestle_plan_step_t* s = &run->steps[m->step];
  return run->bindings[s->first + tensor].size /
         pestle_dtype_size((pestle_dtype_t)m->record->dtype);
}

// Every member to every other one, as Pestle's own transport does.
static void count_peers(report_t* p, const cli_meeting_t* m, const int32_t* row,
                        int64_t n) {
  size_t size = pestle_dtype_size((pestle_dtype_t)m->record->dtype);
  for (uint32_t t = 0; t < m->record->tensor_count; ++t) {
    uint64_t count = operand_count(p->run, m, t);
    for (int64_t a = 0; a < n; ++a) {
      for (int64_t b = 0; b < n; ++b)
        add(p, row[a], row[b],
            m->times * pestle_wire_peer_bytes(m->kind, n, a, b, count, size));
    }
  }
}

// Each to the next one: of a tree too it is this much on the average.
static void count_ring(report_t* p, const cli_meeting_t* m, const int32_t* row,
                       int64_t n) {
  double each = pestle_wire_bytes(m->kind, n, m->bytes);
  for (int64_t a = 0; a < n; ++a) {
    add(p, row[a], row[(a + 1) % n], (uint64_t)(each * (double)m->times + 0.5));
  }
}

static void count_bytes(report_t* p, const cli_meeting_t* m) {
  const pestle_plan_collective_t* k = m->record;
  for (uint32_t r = 0; r < k->group_count; ++r) {
    const int32_t* row = m->groups + (size_t)r * k->group_size;
    int64_t n = 0;
    while (n < k->group_size && row[n] >= 0)
      ++n;
    if (m->kind == PESTLE_COLLECTIVE_PERMUTE) {
      add(p, row[0], row[1], m->times * (uint64_t)m->bytes);
    } else if (m->way == PESTLE_WIRE_PEERS) {
      count_peers(p, m, row, n);
    } else {
      count_ring(p, m, row, n);
    }
  }
}

// --- What would change ---

static pestle_status_t ask(report_t* p, uint64_t seed) {
  const struct {
    const char* name;
  } names[WHAT_IFS] = {{p->t->overlaps ? "no overlap" : "overlap"},
                       {"no latency"},
                       {"wires of twice the rate"},
                       {"ranks of twice the speed"}};
  for (int i = 0; i < WHAT_IFS; ++i) {
    what_if_t* w = &p->what_if[i];
    *w = (what_if_t){.name = names[i].name, .topology = *p->t};
    cli_topology_t* t = &w->topology;
    if (i == 0) t->overlaps = !t->overlaps;
    for (size_t l = 0; l < t->link_count; ++l) {
      if (i == 1) t->links[l].wire.alpha = 0;
      if (i == 2) t->links[l].wire.beta *= 2;
    }
    // Steps whose times were measured are half as long too.
    size_t count = (size_t)p->run->plan->steps.count;
    for (size_t s = 0; i == 3 && s < count; ++s)
      p->run->seconds[s] /= 2;
    PESTLE_TRY(cli_plan_run_price(p->run, t));
    PESTLE_TRY(cli_clock_run(p->run, t, seed, &w->clock));
    for (size_t s = 0; i == 3 && s < count; ++s)
      p->run->seconds[s] *= 2;
  }
  return cli_plan_run_price(p->run, p->t);
}

// --- What is shown ---

static const char* way_name(pestle_wire_way_t way) {
  static const char* const names[] = {"ring", "tree", "levels", "peers"};
  return names[way];
}

static double slowest_row(const cli_meeting_t* m) {
  double most = 0;
  for (uint32_t r = 0; r < m->record->group_count; ++r) {
    if (m->row_seconds[r] > most) most = m->row_seconds[r];
  }
  return most;
}

static const char* label_of(const cli_plan_run_t* run, uint32_t step) {
  return (const char*)run->plan + run->plan->strings.offset +
         run->steps[step].label;
}

static void write_collectives(const report_t* p, pestle_json_t* json) {
  pestle_json_key(json, "collectives");
  pestle_json_begin_array(json);
  for (size_t i = 0; i < p->run->meetings.size; ++i) {
    const cli_meeting_t* m = &p->run->meetings.data[i];
    pestle_json_begin_object(json);
    cli_key_u64(json, "step", m->step);
    cli_key_cstr(json, "ops", label_of(p->run, m->step));
    cli_key_u64(json, "times", m->times);
    cli_key_u64(json, "groups", m->record->group_count);
    cli_key_u64(json, "members", m->record->group_size);
    cli_key_f64(json, "bytes", m->bytes);
    cli_key_f64(json, "us", slowest_row(m) * 1e6);
    cli_key_cstr(json, "way", way_name(m->way));
    pestle_json_end_object(json);
  }
  pestle_json_end_array(json);
}

static void write_json(const report_t* p, pestle_json_t* json) {
  cli_key_i64(json, "ranks", p->run->ranks);
  cli_key_u64(json, "steps", p->run->trace.size);
  cli_key_u64(json, "plan_steps", p->run->plan->steps.count);
  cli_key_u64(json, "unknown_conditions", p->run->conditions);
  cli_key_f64(json, "run_us", p->clock.end * 1e6);
  cli_key_f64(json, "first_rank_us", p->clock.first * 1e6);
  cli_key_f64(json, "compute_us", p->clock.compute * 1e6);
  cli_key_f64(json, "wire_us", p->clock.wire * 1e6);
  cli_key_f64(json, "exposed_us", p->clock.exposed * 1e6);
  pestle_json_key(json, "sent_bytes");
  pestle_json_begin_array(json);
  for (int32_t r = 0; r < p->run->ranks; ++r)
    pestle_json_u64(json, p->sent[r]);
  pestle_json_end_array(json);
  pestle_json_key(json, "weight_bytes");
  pestle_json_begin_array(json);
  for (int32_t r = 0; r < p->run->ranks; ++r)
    pestle_json_u64(json, p->weights[r]);
  pestle_json_end_array(json);
  cli_key_u64(json, "all_weight_bytes", p->all_weights);
  pestle_json_key(json, "links");
  pestle_json_begin_array(json);
  for (size_t i = 0; i < p->t->link_count; ++i) {
    pestle_json_begin_object(json);
    cli_key_cstr(json, "name", p->t->links[i].name);
    cli_key_u64(json, "bytes", p->on_link[i]);
    pestle_json_end_object(json);
  }
  pestle_json_end_array(json);
  write_collectives(p, json);
  pestle_json_key(json, "with");
  pestle_json_begin_array(json);
  for (int i = 0; i < WHAT_IFS; ++i) {
    pestle_json_begin_object(json);
    cli_key_cstr(json, "change", p->what_if[i].name);
    cli_key_f64(json, "run_us", p->what_if[i].clock.end * 1e6);
    pestle_json_end_object(json);
  }
  pestle_json_end_array(json);
}

static double share(double part, double all) {
  return all > 0 ? 100 * part / all : 0;
}

static void print(const report_t* p) {
  const cli_clock_t* c = &p->clock;
  char bytes[32];
  printf("%d ranks, %zu steps each: a run takes %.1f us\n", (int)p->run->ranks,
         p->run->trace.size, c->end * 1e6);
  printf(
      "the rank that waits most: kernels %.1f us; wires %.1f us; it waits "
      "%.1f us for wires and others\n",
      c->compute * 1e6, c->wire * 1e6, c->exposed * 1e6);
  uint64_t most = 0;
  for (int32_t r = 0; r < p->run->ranks; ++r)
    most = p->weights[r] > most ? p->weights[r] : most;
  printf("weights on a rank: %s", cli_info_bytes(most, bytes, sizeof(bytes)));
  printf(" of %s\n", cli_info_bytes(p->all_weights, bytes, sizeof(bytes)));
  if (p->t->jitter > 0)
    printf("the first rank is done after %.1f us\n", c->first * 1e6);
  if (p->run->conditions)
    printf("%" PRIu64
           " conditions are not known: their loops run once, and the first "
           "branch is taken\n",
           p->run->conditions);
  for (size_t i = 0; i < p->t->link_count; ++i) {
    printf("link %-10s %10s\n", p->t->links[i].name,
           cli_info_bytes(p->on_link[i], bytes, sizeof(bytes)));
  }
  printf("\n step times  groups x ranks      bytes         us  way     ops\n");
  for (size_t i = 0; i < p->run->meetings.size; ++i) {
    const cli_meeting_t* m = &p->run->meetings.data[i];
    printf("%5u %5" PRIu64 "  %6u x %-5u %10s %10.1f  %-7s %s\n",
           (unsigned)m->step, m->times, (unsigned)m->record->group_count,
           (unsigned)m->record->group_size,
           cli_info_bytes((uint64_t)m->bytes, bytes, sizeof(bytes)),
           slowest_row(m) * 1e6, way_name(m->way), label_of(p->run, m->step));
  }
  printf("\n");
  for (int i = 0; i < WHAT_IFS; ++i) {
    double end = p->what_if[i].clock.end;
    printf("with %-24s %10.1f us (%+.1f %%)\n", p->what_if[i].name, end * 1e6,
           share(end - c->end, c->end));
  }
}

// --- All of it ---

static pestle_status_t check_ranks(cli_t* cli, const cli_plan_run_t* run) {
  int64_t wanted = cli->count[CLI_SIMULATE];
  if (wanted == run->ranks) return NULL;
  return CLI_USAGE_ERROR(
      "--simulate %lld, and the model is for %d process%s; --mesh data=%lld "
      "divides it over so many",
      (long long)wanted, (int)run->ranks, run->ranks == 1 ? "" : "es",
      (long long)wanted);
}

static pestle_status_t simulate(report_t* p) {
  cli_t* cli = p->cli;
  uint64_t seed = (uint64_t)cli->count[CLI_SEED];
  p->sent = PESTLE_ARENA_ARRAY(&cli->arena, uint64_t, (size_t)p->run->ranks);
  if (!p->sent) return PESTLE_OOM();
  memset(p->sent, 0, (size_t)p->run->ranks * sizeof(*p->sent));
  p->weights = PESTLE_ARENA_ARRAY(&cli->arena, uint64_t, (size_t)p->run->ranks);
  if (!p->weights) return PESTLE_OOM();
  for (int32_t r = 0; r < p->run->ranks; ++r) {
    PESTLE_TRY(
        cli_plan_run_weights(p->run, cli, r, &p->weights[r], &p->all_weights));
  }
  for (size_t i = 0; i < p->run->meetings.size; ++i)
    count_bytes(p, &p->run->meetings.data[i]);
  PESTLE_TRY(cli_clock_run(p->run, p->t, seed, &p->clock));
  PESTLE_TRY(ask(p, seed));
  if (cli->json) {
    write_json(p, cli->json);
  } else {
    print(p);
  }
  return NULL;
}

static pestle_status_t open_and_simulate(cli_t* cli, const char* path,
                                         cli_topology_t* t) {
  cli_inputs_t inputs;
  pestle_plan_t* plan = NULL;
  pestle_device_t* device;
  cli_plan_run_t run;
  report_t report = {.cli = cli, .t = t, .run = &run};
  cli_inputs_init(&inputs);
  pestle_status_t status = cli_open_plan(cli, path, &inputs, &plan, &device);
  if (!status) {
    status = cli_plan_run_init(cli, plan, t, cli->text[CLI_STEP_TIMES], &run);
    if (!status) status = check_ranks(cli, &run);
    if (!status) status = simulate(&report);
    cli_plan_run_deinit(&run);
  }
  pestle_plan_release(plan);
  cli_inputs_deinit(&inputs);
  return status;
}

pestle_status_t cli_world(cli_t* cli, int* out_exit) {
  (void)out_exit;
  const char* path;
  cli_topology_t topology;
  PESTLE_TRY(cli_only_argument(cli, "a model or plan", &path));
  if (!cli->text[CLI_SIMULATE] || cli->count[CLI_SIMULATE] < 1 ||
      !cli->text[CLI_TOPOLOGY]) {
    return CLI_USAGE_ERROR(
        "pestle world wants --simulate N, the number of ranks, and --topology "
        "FILE, what they run on");
  }
  PESTLE_TRY(cli_topology_read(cli, cli->text[CLI_TOPOLOGY], &topology));
  return open_and_simulate(cli, path, &topology);
}
