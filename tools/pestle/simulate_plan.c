// SPDX-License-Identifier: Apache-2.0
// What each process of a plan does: its steps in the order of a run, with what each
// takes.
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "simulate.h"

// Steps of a run that are kept: loops are written out.
#define MOST_STEPS 10000000u

static const void* section(const pestle_plan_header_t* plan,
                           pestle_plan_section_t s) {
  return (const char*)plan + s.offset;
}

// --- The order of a run ---

// A loop whose condition nobody knows runs once, and of branches the first one is
// taken where there is a choice by number.
static pestle_status_t follow(cli_t* cli, cli_plan_run_t* run) {
  size_t count = (size_t)run->plan->steps.count;
  uint32_t* visits = PESTLE_ARENA_ARRAY(&cli->arena, uint32_t, count + 1);
  if (!visits) return PESTLE_OOM();
  memset(visits, 0, (count + 1) * sizeof(*visits));
  uint64_t moves = 0;
  for (size_t at = 0; at < count; ++moves) {
    const pestle_plan_step_t* s = &run->steps[at];
    if (run->trace.size >= MOST_STEPS || moves > 4 * (uint64_t)MOST_STEPS) {
      return PESTLE_ERROR(RESOURCE_EXHAUSTED,
                          "a run takes more than %u steps: simulate one of its "
                          "iterations instead",
                          MOST_STEPS);
    }
    switch ((pestle_plan_step_kind_t)s->kind) {
      case PESTLE_PLAN_END:
        return NULL;
      case PESTLE_PLAN_JUMP:
        at = s->target;
        break;
      case PESTLE_PLAN_JUMP_IF_ZERO:
        run->conditions += !visits[at];
        at = visits[at]++ % 2 ? s->target : at + 1;
        break;
      case PESTLE_PLAN_JUMP_TABLE:
        run->conditions += !visits[at]++;
        at = s->target;
        break;
      case PESTLE_PLAN_REPEAT:
        if (++visits[at] < s->count) {
          at = s->target;
        } else {
          visits[at++] = 0;
        }
        break;
      case PESTLE_PLAN_LAUNCH:
      case PESTLE_PLAN_COPY:
      case PESTLE_PLAN_CALL:
      case PESTLE_PLAN_COLLECTIVE:
        if (!pestle_vec_push(&run->trace, (uint32_t)at)) return PESTLE_OOM();
        ++at;
        break;
    }
  }
  return NULL;
}

// --- What a step takes ---

static double larger(double a, double b) {
  return a > b ? a : b;
}

static double model_seconds(const cli_plan_run_t* run, const cli_topology_t* t,
                            const pestle_plan_step_t* s) {
  if (s->kind == PESTLE_PLAN_LAUNCH) {
    const pestle_plan_kernel_t* k =
        (const pestle_plan_kernel_t*)section(run->plan, run->plan->kernels) +
        s->kernel;
    double other = (double)(k->flops - k->half_flops - k->byte_flops);
    double computed = other / t->flops + (double)k->half_flops / t->half +
                      (double)k->byte_flops / t->byte;
    return t->launch + larger(computed, (double)k->bytes / t->memory);
  }
  double bytes = 0;
  for (uint32_t i = 0; i < s->count; ++i)
    bytes += (double)run->bindings[s->first + i].size;
  if (s->kind == PESTLE_PLAN_COPY)
    bytes = 2 * (double)run->bindings[s->first].size;
  return t->launch + bytes / t->memory;
}

// "STEP MICROSECONDS", a line a step.
static pestle_status_t read_times(cli_plan_run_t* run, const char* path) {
  pestle_allocator_t allocator = pestle_allocator_system();
  char* data;
  size_t size;
  PESTLE_TRY(pestle_file_read(path, 1 << 28, allocator, &data, &size));
  pestle_str_t rest = pestle_str_make(data, size), line;
  pestle_status_t status = NULL;
  for (int n = 1; !status && pestle_str_next(&rest, '\n', &line); ++n) {
    pestle_str_t step, us;
    int64_t index;
    double value;
    line = pestle_str_trim(line);
    if (!line.size || line.data[0] == '#') continue;
    bool fits = pestle_str_split(line, ' ', &step, &us) &&
                pestle_str_parse_i64(step, &index) && index >= 0 &&
                (uint64_t)index < run->plan->steps.count &&
                pestle_str_parse_f64(pestle_str_trim(us), &value) && value >= 0;
    if (fits) {
      run->seconds[index] = value * 1e-6;
    } else {
      status = PESTLE_ERROR(MALFORMED,
                            "line %d of '%s' is '%.*s', not the number of a "
                            "step, of which the plan has %llu, and "
                            "microseconds",
                            n, path, PESTLE_STR_ARG(line),
                            (unsigned long long)run->plan->steps.count);
    }
  }
  pestle_dealloc(allocator, data, size + 1);
  return status;
}

static pestle_status_t price_steps(cli_t* cli, cli_plan_run_t* run,
                                   const cli_topology_t* t, const char* times) {
  size_t count = (size_t)run->plan->steps.count;
  run->seconds = PESTLE_ARENA_ARRAY(&cli->arena, double, count + 1);
  if (!run->seconds) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    uint32_t kind = run->steps[i].kind;
    bool works = kind == PESTLE_PLAN_LAUNCH || kind == PESTLE_PLAN_COPY ||
                 kind == PESTLE_PLAN_CALL;
    run->seconds[i] = works ? model_seconds(run, t, &run->steps[i]) : 0;
  }
  return times ? read_times(run, times) : NULL;
}

// --- Collectives ---

static pestle_status_t add_meeting(cli_t* cli, cli_plan_run_t* run,
                                   uint32_t step) {
  const pestle_plan_step_t* s = &run->steps[step];
  const pestle_plan_collective_t* k = (const pestle_plan_collective_t*)section(
                                          run->plan, run->plan->collectives) +
                                      s->kernel;
  if (k->kind > PESTLE_PLAN_BROADCAST) return NULL;
  cli_meeting_t m = {
      .record = k,
      .groups = (const int32_t*)section(run->plan, run->plan->groups) +
                k->first_group,
      .kind = (pestle_collective_kind_t)k->kind,
      .step = step};
  for (uint32_t i = 0; i < k->tensor_count; ++i)
    m.bytes += (double)run->bindings[s->first + i].size;
  m.row_seconds =
      PESTLE_ARENA_ARRAY(&cli->arena, double, (size_t)k->group_count + 1);
  if (!m.row_seconds) return PESTLE_OOM();
  run->meeting_of[step] = (uint32_t)run->meetings.size;
  return pestle_vec_push(&run->meetings, m) ? NULL : PESTLE_OOM();
}

static uint32_t members_of(const cli_meeting_t* m, const int32_t* row) {
  uint32_t n = 0;
  while (n < m->record->group_size && row[n] >= 0)
    ++n;
  return n;
}

// How many members each wire of link |link| joins, where all do alike; else 0.
static int64_t split_at(const cli_topology_t* t, size_t link,
                        const int32_t* row, uint32_t n, int64_t inside) {
  int64_t each = 0, blocks = 0;
  for (uint32_t i = 0; i < n; ++i) {
    int64_t same = 0, before = 0;
    for (uint32_t k = 0; k < n; ++k) {
      bool joined =
          link + 1 >= t->link_count ||
          row[k] / t->links[link].ranks == row[i] / t->links[link].ranks;
      same += joined;
      before += joined && k < i;
    }
    if (before) continue;
    ++blocks;
    if (each && each != same) return 0;
    each = same;
  }
  return blocks && each % inside == 0 ? each / inside : 0;
}

static double row_seconds(const cli_topology_t* t, cli_meeting_t* m,
                          const int32_t* row, uint32_t n) {
  int64_t counts[CLI_LINKS], inside = 1;
  pestle_wire_t wires[CLI_LINKS];
  bool alike = true;
  size_t last = 0;
  for (uint32_t i = 1; i < n; ++i) {
    size_t link = cli_topology_link(t, row[0], row[i]);
    if (link > last) last = link;
  }
  for (size_t i = 0; i <= last; ++i) {
    wires[i] = t->links[i].wire;
    counts[i] = alike ? split_at(t, i, row, n, inside) : 0;
    alike = counts[i] > 0;
    inside *= alike ? counts[i] : 1;
  }
  // Where wires join unlike numbers, all goes as over the outermost.
  if (!alike || inside != (int64_t)n)
    return pestle_wire_seconds(m->kind, m->bytes, &wires[last], (int64_t[]){n},
                               1, &m->way);
  return pestle_wire_seconds(m->kind, m->bytes, wires, counts, last + 1,
                             &m->way);
}

pestle_status_t cli_plan_run_price(cli_plan_run_t* run,
                                   const cli_topology_t* t) {
  for (size_t i = 0; i < run->meetings.size; ++i) {
    cli_meeting_t* m = &run->meetings.data[i];
    const pestle_plan_collective_t* k = m->record;
    for (uint32_t r = 0; r < k->group_count; ++r) {
      const int32_t* row = m->groups + (size_t)r * k->group_size;
      uint32_t n = members_of(m, row);
      bool same = m->kind == PESTLE_COLLECTIVE_PERMUTE && row[0] == row[1];
      m->row_seconds[r] = same ? 0 : row_seconds(t, m, row, n);
    }
  }
  return NULL;
}

// --- Weights ---

pestle_status_t cli_plan_run_weights(const cli_plan_run_t* run, cli_t* cli,
                                     int32_t rank, uint64_t* out_own,
                                     uint64_t* out_all) {
  enum { ALL_HAVE, SOME_HAVE, HAS };
  const pestle_plan_header_t* h = run->plan;
  const pestle_plan_constant_ref_t* refs = section(h, h->constant_refs);
  const pestle_plan_part_t* parts = section(h, h->parts);
  const pestle_plan_part_place_t* places = section(h, h->part_places);
  size_t count = (size_t)h->constant_refs.count;
  uint8_t* who = PESTLE_ARENA_ARRAY(&cli->arena, uint8_t, count + 1);
  if (!who) return PESTLE_OOM();
  memset(who, ALL_HAVE, count + 1);
  for (uint64_t i = 0; i < h->part_places.count; ++i)
    who[places[i].constant] = SOME_HAVE;
  for (uint64_t i = 0; i < h->bindings.count; ++i) {
    if (run->bindings[i].storage == PESTLE_PLAN_CONSTANT)
      who[run->bindings[i].index] = HAS;
  }
  uint32_t partition = (uint32_t)(rank % h->partitions);
  for (uint64_t i = 0; i < h->parts.count; ++i)
    who[places[parts[i].first + partition].constant] = HAS;
  *out_own = *out_all = 0;
  for (size_t i = 0; i < count; ++i) {
    *out_all += refs[i].size;
    *out_own += who[i] == SOME_HAVE ? 0 : refs[i].size;
  }
  return NULL;
}

// --- All of it ---

pestle_status_t cli_plan_run_init(cli_t* cli, const pestle_plan_t* plan,
                                  const cli_topology_t* t, const char* times,
                                  cli_plan_run_t* out_run) {
  cli_plan_run_t* run = out_run;
  *run = (cli_plan_run_t){.plan = pestle_plan_data(plan, NULL)};
  pestle_vec_init(&run->trace, pestle_allocator_system());
  pestle_vec_init(&run->meetings, pestle_allocator_system());
  run->steps = section(run->plan, run->plan->steps);
  run->bindings = section(run->plan, run->plan->bindings);
  run->ranks = run->plan->replicas * run->plan->partitions;
  size_t count = (size_t)run->plan->steps.count;
  run->meeting_of = PESTLE_ARENA_ARRAY(&cli->arena, uint32_t, count + 1);
  if (!run->meeting_of) return PESTLE_OOM();
  PESTLE_TRY(price_steps(cli, run, t, times));
  for (uint32_t i = 0; i < count; ++i) {
    run->meeting_of[i] = UINT32_MAX;
    if (run->steps[i].kind == PESTLE_PLAN_COLLECTIVE)
      PESTLE_TRY(add_meeting(cli, run, i));
  }
  PESTLE_TRY(follow(cli, run));
  for (size_t i = 0; i < run->trace.size; ++i) {
    uint32_t m = run->meeting_of[run->trace.data[i]];
    if (m != UINT32_MAX) ++run->meetings.data[m].times;
  }
  return cli_plan_run_price(run, t);
}

void cli_plan_run_deinit(cli_plan_run_t* run) {
  pestle_vec_deinit(&run->trace);
  pestle_vec_deinit(&run->meetings);
}
