// SPDX-License-Identifier: Apache-2.0
// The clock of a simulated run. Each rank has two queues, for kernels and for wires,
// and does its steps in their order: a collective begins when all its members have come
// to it and their wires are free, and a kernel that needs what it gives, or writes what
// it reads, waits for its end.
#include <string.h>

#include "base/mem.h"
#include "simulate.h"

// A collective that kernels have not waited for.
typedef struct pending_t {
  uint32_t step;
  double* ends;  // of each rank
} pending_t;

typedef struct simulation_t {
  const cli_plan_run_t* run;
  const cli_topology_t* t;
  uint64_t seed;
  // By rank: when its kernels, and its wires, are done; how long it computed, its
  // wires were busy, and it waited for them.
  double *kernels, *wires, *compute, *busy, *waited;
  PESTLE_VEC(pending_t) pending;
  PESTLE_VEC(double*) spare;
} simulation_t;

// Whether both touch the same memory, which constants and inputs alone are not reason
// for: nobody writes these.
static bool overlaps(const pestle_plan_binding_t* a,
                     const pestle_plan_binding_t* b) {
  bool written =
      a->storage == PESTLE_PLAN_ARENA || a->storage == PESTLE_PLAN_OUTPUT;
  return written && a->storage == b->storage && a->index == b->index &&
         a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

static bool depends(const cli_plan_run_t* run, uint32_t step, uint32_t on) {
  const pestle_plan_step_t *a = &run->steps[step], *b = &run->steps[on];
  for (uint32_t i = 0; i < a->count; ++i) {
    for (uint32_t k = 0; k < b->count; ++k) {
      if (overlaps(&run->bindings[a->first + i], &run->bindings[b->first + k]))
        return true;
    }
  }
  return false;
}

// Between 0 and 1, of this rank at this place of the run.
static double chance(const simulation_t* s, int32_t rank, size_t place) {
  uint64_t x = s->seed + (uint64_t)rank * UINT64_C(0x9e3779b97f4a7c15) +
               (uint64_t)place * UINT64_C(0xd1b54a32d192ed03);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  x ^= x >> 31;
  return (double)(x >> 11) * 0x1p-53;
}

static void wait_for(simulation_t* s, const double* ends) {
  for (int32_t r = 0; r < s->run->ranks; ++r) {
    double late = ends[r] - s->kernels[r];
    if (!(late > 0)) continue;
    s->waited[r] += late;
    s->kernels[r] = ends[r];
  }
}

// Wires work in order: who waits for a collective has waited for all before it.
static pestle_status_t wait_until(simulation_t* s, size_t count) {
  if (!count) return NULL;
  wait_for(s, s->pending.data[count - 1].ends);
  for (size_t i = 0; i < count; ++i) {
    if (!pestle_vec_push(&s->spare, s->pending.data[i].ends))
      return PESTLE_OOM();
  }
  size_t left = s->pending.size - count;
  memmove(s->pending.data, s->pending.data + count,
          left * sizeof(*s->pending.data));
  s->pending.size = left;
  return NULL;
}

static pestle_status_t compute(simulation_t* s, uint32_t step, size_t place) {
  size_t count = s->pending.size;
  while (count && !depends(s->run, step, s->pending.data[count - 1].step))
    --count;
  PESTLE_TRY(wait_until(s, count));
  double seconds = s->run->seconds[step], jitter = s->t->jitter;
  for (int32_t r = 0; r < s->run->ranks; ++r) {
    double own = seconds;
    if (jitter > 0) own *= 1 + jitter * chance(s, r, place);
    s->kernels[r] += own;
    s->compute[r] += own;
  }
  return NULL;
}

static void finish(simulation_t* s, int32_t rank, double begin, double end) {
  s->wires[rank] = end;
  s->busy[rank] += end - begin;
}

static void meet_row(simulation_t* s, const cli_meeting_t* m, uint32_t row) {
  const pestle_plan_collective_t* k = m->record;
  const int32_t* ranks = m->groups + (size_t)row * k->group_size;
  double begin = 0;
  for (uint32_t i = 0; i < k->group_size && ranks[i] >= 0; ++i) {
    double own = s->kernels[ranks[i]], wire = s->wires[ranks[i]];
    if (own > begin) begin = own;
    if (wire > begin) begin = wire;
  }
  double end = begin + m->row_seconds[row];
  for (uint32_t i = 0; i < k->group_size && ranks[i] >= 0; ++i)
    finish(s, ranks[i], begin, end);
}

// Everyone sends and receives at once: what counts is when both of a pair are there.
static void permute(simulation_t* s, const cli_meeting_t* m, double* ends) {
  const pestle_plan_collective_t* k = m->record;
  for (uint32_t row = 0; row < k->group_count; ++row) {
    const int32_t* pair = m->groups + 2 * (size_t)row;
    double begin = 0;
    for (int i = 0; i < 2; ++i) {
      double own = s->kernels[pair[i]], wire = s->wires[pair[i]];
      if (own > begin) begin = own;
      if (wire > begin) begin = wire;
    }
    double end = begin + m->row_seconds[row];
    for (int i = 0; i < 2; ++i) {
      if (end > ends[pair[i]]) ends[pair[i]] = end;
    }
  }
  for (int32_t r = 0; r < s->run->ranks; ++r) {
    if (!(ends[r] > s->wires[r])) continue;
    double begin = s->wires[r] > s->kernels[r] ? s->wires[r] : s->kernels[r];
    finish(s, r, begin < ends[r] ? begin : ends[r], ends[r]);
  }
}

static double* take_ends(simulation_t* s) {
  size_t bytes = (size_t)s->run->ranks * sizeof(double);
  if (s->spare.size) return s->spare.data[--s->spare.size];
  return pestle_alloc(pestle_allocator_system(), bytes);
}

static pestle_status_t meet(simulation_t* s, uint32_t step) {
  const cli_meeting_t* m = &s->run->meetings.data[s->run->meeting_of[step]];
  size_t bytes = (size_t)s->run->ranks * sizeof(double);
  double* ends = take_ends(s);
  if (!ends) return PESTLE_OOM();
  if (!pestle_vec_push(&s->pending, (pending_t){step, ends})) {
    pestle_dealloc(pestle_allocator_system(), ends, bytes);
    return PESTLE_OOM();
  }
  if (m->kind == PESTLE_COLLECTIVE_PERMUTE) {
    memcpy(ends, s->wires, bytes);
    permute(s, m, ends);
  } else {
    for (uint32_t row = 0; row < m->record->group_count; ++row)
      meet_row(s, m, row);
  }
  memcpy(ends, s->wires, bytes);
  return s->t->overlaps ? NULL : wait_until(s, s->pending.size);
}

static pestle_status_t simulate(simulation_t* s) {
  const cli_plan_run_t* run = s->run;
  for (size_t i = 0; i < run->trace.size; ++i) {
    uint32_t step = run->trace.data[i];
    bool meets = run->meeting_of[step] != UINT32_MAX;
    PESTLE_TRY(meets ? meet(s, step) : compute(s, step, i));
  }
  return wait_until(s, s->pending.size);
}

static cli_clock_t result(const simulation_t* s) {
  cli_clock_t c = {.first = s->kernels[0]};
  int32_t most = 0;
  for (int32_t r = 0; r < s->run->ranks; ++r) {
    if (s->kernels[r] > c.end) c.end = s->kernels[r];
    if (s->kernels[r] < c.first) c.first = s->kernels[r];
    if (s->waited[r] > s->waited[most]) most = r;
  }
  c.compute = s->compute[most];
  c.wire = s->busy[most];
  c.exposed = s->waited[most];
  return c;
}

pestle_status_t cli_clock_run(const cli_plan_run_t* run,
                              const cli_topology_t* t, uint64_t seed,
                              cli_clock_t* out_clock) {
  pestle_allocator_t allocator = pestle_allocator_system();
  simulation_t s = {.run = run, .t = t, .seed = seed};
  size_t n = (size_t)run->ranks, bytes = 5 * n * sizeof(double);
  pestle_vec_init(&s.pending, allocator);
  pestle_vec_init(&s.spare, allocator);
  double* block = pestle_alloc(allocator, bytes);
  if (!block) return PESTLE_OOM();
  memset(block, 0, bytes);
  s.kernels = block;
  s.wires = block + n;
  s.compute = block + 2 * n;
  s.busy = block + 3 * n;
  s.waited = block + 4 * n;
  pestle_status_t status = simulate(&s);
  if (!status) *out_clock = result(&s);
  for (size_t i = 0; i < s.pending.size; ++i)
    pestle_dealloc(allocator, s.pending.data[i].ends, n * sizeof(double));
  for (size_t i = 0; i < s.spare.size; ++i)
    pestle_dealloc(allocator, s.spare.data[i], n * sizeof(double));
  pestle_vec_deinit(&s.pending);
  pestle_vec_deinit(&s.spare);
  pestle_dealloc(allocator, block, bytes);
  return status;
}
