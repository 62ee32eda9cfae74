// SPDX-License-Identifier: Apache-2.0
// Lanes of a group with tiles, in turn: a warp's lanes run until each waits for
// something, in a seeded random order of warps, between which what goes on by
// itself is carried out now and then. When no lane can go on and nothing is
// under way, the group is stuck, which is told with each lane's place.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plugins/ref/ref_tile.h"

enum { MOST_REGISTERS = 248 };

// --- Faults ---

static void tell(ref_tiles_t* t, const char* message) {
  const pestle_host_t* host = t->m->program->host;
  host->log(host->self, 0, message);  // an error
}

bool pestle_ref_plugin_fault(ref_tiles_t* t, const ref_step_t* s,
                             const char* format, ...) {
  char what[256], message[512];
  va_list args;
  if (t->told) return false;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  snprintf(message, sizeof message,
           "ref: kernel %s, %s %lld, lane %u, instruction %u: %s",
           t->m->program->name, t->cluster > 1 ? "cluster" : "group",
           (long long)t->m->begin, t->now, s->id, what);
  tell(t, message);
  t->told = true;
  return false;
}

bool pestle_ref_plugin_told(const ref_tiles_t* t) {
  return t->told;
}

uint64_t pestle_ref_plugin_random(ref_tiles_t* t, uint64_t below) {
  // splitmix64
  uint64_t z = t->random += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return (z ^ z >> 31) % below;
}

// --- Places ---

static const ref_step_t* stop_of(const ref_tiles_t* t, uint32_t lane) {
  return &t->m->program->steps[t->lane[lane].pc - 1];
}

static unsigned char* frame_of(const ref_tiles_t* t, uint32_t lane) {
  return t->frames + lane * t->frame_size;
}

static int64_t value_at(const ref_tiles_t* t, uint32_t lane, uint32_t offset) {
  int64_t value;
  memcpy(&value, frame_of(t, lane) + offset, sizeof value);
  return value;
}

static void tell_stuck(ref_tiles_t* t) {
  char message[512];
  snprintf(message, sizeof message,
           "ref: kernel %s, %s %lld is stuck: no lane can go on and nothing "
           "is under way",
           t->m->program->name, t->cluster > 1 ? "cluster" : "group",
           (long long)t->m->begin);
  tell(t, message);
  for (uint32_t first = 0, next; first < t->lanes; first = next) {
    const ref_lane_t* l = &t->lane[first];
    for (next = first + 1; next < t->lanes; ++next)
      if (t->lane[next].pc != l->pc || t->lane[next].state != l->state) break;
    if (l->state == REF_LANE_ENDED) {
      snprintf(message, sizeof message, "ref:   lanes %u to %u have ended",
               first, next - 1);
    } else {
      snprintf(message, sizeof message,
               "ref:   lanes %u to %u wait at instruction %u", first, next - 1,
               stop_of(t, first)->id);
    }
    tell(t, message);
  }
  t->told = true;
}

// --- What one lane does ---

static void fence(ref_tiles_t* t, uint32_t lane) {
  ref_lane_t* l = &t->lane[lane];
  l->fence_time = l->time++;
  l->clock.seen[lane] = l->time;
  l->clock.fenced[lane] = l->fence_time;
}

static bool init_barrier(ref_tiles_t* t, const ref_step_t* s, uint64_t at) {
  for (uint32_t i = 0; i < REF_MBARS; ++i) {
    ref_mbar_t* b = &t->mbar[i];
    if (b->at == at) {
      return pestle_ref_plugin_fault(t, s, "the barrier is initialised twice");
    }
    if (b->at != UINT64_MAX) continue;
    b->at = at;
    b->count = b->pending = s->imm;
    return pestle_ref_plugin_touch(t, s, at, 8, true);
  }
  return pestle_ref_plugin_fault(t, s, "more than %d barriers", REF_MBARS);
}

static bool arrive(ref_tiles_t* t, const ref_step_t* s, uint64_t at) {
  ref_mbar_t* b = pestle_ref_plugin_mbar(t, s, at);
  if (!b ||
      !pestle_ref_plugin_reach(t, s, pestle_ref_plugin_group_of(t, t->now),
                               t->now, t->lane[t->now].time, at) ||
      !pestle_ref_plugin_touch(t, s, at, 8, false)) {
    return false;
  }
  pestle_ref_plugin_release(t, t->now, b->arrived);
  return pestle_ref_plugin_arrived(
      t, s, b, 1, s->kind == REF_STEP_MBAR_EXPECT ? -s->imm : 0);
}

static ref_named_t* named_of(ref_tiles_t* t, uint32_t lane, uint64_t index) {
  return &t->named[pestle_ref_plugin_group_of(t, lane)][index % REF_NAMED];
}

static bool sync_arrive(ref_tiles_t* t, const ref_step_t* s, uint64_t index) {
  ref_named_t* b = named_of(t, t->now, index);
  if (b->arrived >= s->imm) {
    return pestle_ref_plugin_fault(
        t, s, "more than %lld lanes arrive at barrier %llu", (long long)s->imm,
        (unsigned long long)index);
  }
  ++b->arrived;
  pestle_ref_plugin_release(t, t->now, b->clock);
  return true;
}

// Whether the lane at hand may go past its stop, which no other lane has to
// reach; false after a fault as well.
static bool passes(ref_tiles_t* t, uint32_t lane) {
  const ref_step_t* s = stop_of(t, lane);
  uint64_t at = (uint64_t)value_at(t, lane, s->a);
  switch (s->kind) {
    case REF_STEP_MBAR_INIT:
      return init_barrier(t, s, at);
    case REF_STEP_MBAR_EXPECT:
    case REF_STEP_MBAR_ARRIVE:
      return arrive(t, s, at);
    case REF_STEP_MBAR_WAIT: {
      ref_mbar_t* b = pestle_ref_plugin_mbar(t, s, at);
      if (!b || !pestle_ref_plugin_touch(t, s, at, 8, false)) return false;
      if (at / t->stride != pestle_ref_plugin_group_of(t, lane)) {
        return pestle_ref_plugin_fault(
            t, s, "it waits at a barrier of group %u of the cluster",
            (unsigned)(at / t->stride));
      }
      if (b->phase == ((uint64_t)value_at(t, lane, s->b) & 1)) return false;
      pestle_ref_plugin_acquire(t, lane, b->done);
      return true;
    }
    case REF_STEP_TILE_LOAD:
    case REF_STEP_TILE_LOAD_ALL:
      return pestle_ref_plugin_tile_load(t, s);
    case REF_STEP_TILE_STORE:
      return pestle_ref_plugin_tile_store(t, s);
    case REF_STEP_TILE_WAIT:
      return pestle_ref_plugin_waited(t, lane, false, (uint64_t)s->imm);
    case REF_STEP_TILE_FENCE:
      fence(t, lane);
      return true;
    case REF_STEP_SYNC_ARRIVE:
      return sync_arrive(t, s, at);
    default:
      return false;
  }
}

static bool is_alone(const ref_step_t* s) {
  return s->kind >= REF_STEP_MBAR_INIT && s->kind <= REF_STEP_SYNC_ARRIVE;
}

// A lane ended: its group, if it was the last one.
static bool end_lane(ref_tiles_t* t, uint32_t lane) {
  uint32_t group = pestle_ref_plugin_group_of(t, lane);
  for (uint32_t i = 0; i < t->group_lanes; ++i)
    if (t->lane[group * t->group_lanes + i].state != REF_LANE_ENDED)
      return true;
  return pestle_ref_plugin_end_group(t, group);
}

// What steps of |lane| take for its group's memory.
static void take_memory(ref_tiles_t* t, uint32_t lane) {
  t->m->base = pestle_ref_plugin_group_of(t, lane) * t->stride;
  t->m->scratch = t->memory + t->m->base;
}

// Runs |lane| until it waits or ends. A trap, or 0.
static int32_t run_lane(ref_tiles_t* t, uint32_t lane) {
  ref_lane_t* l = &t->lane[lane];
  t->now = lane;
  pestle_ref_plugin_take_lane(t->m, t->frames, t->frame_size, lane);
  take_memory(t, lane);
  for (;;) {
    if (l->state == REF_LANE_READY) {
      int32_t trap = pestle_ref_plugin_steps(t->m, &l->pc);
      if (trap) return trap;
      l->state = pestle_ref_plugin_is_meeting(stop_of(t, lane))
                     ? REF_LANE_WAITS
                     : REF_LANE_ENDED;
      if (l->state == REF_LANE_ENDED && !end_lane(t, lane))
        return REF_TRAP_TILES;
    }
    if (l->state == REF_LANE_ENDED || !is_alone(stop_of(t, lane)) ||
        !passes(t, lane)) {
      return t->told ? REF_TRAP_TILES : 0;
    }
    l->state = REF_LANE_READY;
  }
}

// --- What lanes do together ---

// |count| lanes from |first| on wait at one step.
static bool are_together(const ref_tiles_t* t, uint32_t first, uint32_t count) {
  if (first + count > t->lanes) return false;
  for (uint32_t i = first; i < first + count; ++i) {
    if (t->lane[i].state != REF_LANE_WAITS ||
        t->lane[i].pc != t->lane[first].pc) {
      return false;
    }
  }
  return true;
}

static void set_ready(ref_tiles_t* t, uint32_t first, uint32_t count) {
  for (uint32_t i = first; i < first + count; ++i)
    t->lane[i].state = REF_LANE_READY;
}

// A lane that waits at |named|, or, where that is NULL, at a SYNC of |index|,
// wherever it stands.
static bool waits_at(const ref_tiles_t* t, uint32_t lane,
                     const ref_step_t* named, int64_t index) {
  if (t->lane[lane].state != REF_LANE_WAITS) return false;
  const ref_step_t* s = stop_of(t, lane);
  return named ? s == named
               : s->kind == REF_STEP_SYNC && value_at(t, lane, s->a) == index;
}

// Lanes of some groups, all of them one after the other.
typedef struct span_t {
  uint32_t first, count;
} span_t;

static span_t span_of_group(const ref_tiles_t* t, uint32_t lane) {
  return (span_t){pestle_ref_plugin_group_of(t, lane) * t->group_lanes,
                  t->group_lanes};
}

// Such lanes of |span| know of each other from here on, and go on; of those that
// arrived too.
static void meet(ref_tiles_t* t, span_t span, const ref_step_t* named,
                 int64_t index) {
  uint32_t end = span.first + span.count;
  pestle_ref_plugin_clear(t, t->joined);
  if (!named) {
    ref_named_t* b = named_of(t, span.first, (uint64_t)index);
    pestle_ref_plugin_join(t, t->joined, b->clock);
    pestle_ref_plugin_clear(t, b->clock);
    b->arrived = 0;
  }
  for (uint32_t i = span.first; i < end; ++i) {
    if (waits_at(t, i, named, index))
      pestle_ref_plugin_release(t, i, t->joined);
  }
  for (uint32_t i = span.first; i < end; ++i) {
    if (!waits_at(t, i, named, index)) continue;
    pestle_ref_plugin_acquire(t, i, t->joined);
    t->lane[i].state = REF_LANE_READY;
  }
}

// All lanes of |span| wait at one step of |kind|.
static bool all_meet(ref_tiles_t* t, span_t span, ref_kind_t kind) {
  if (t->lane[span.first].state != REF_LANE_WAITS ||
      stop_of(t, span.first)->kind != kind ||
      !are_together(t, span.first, span.count)) {
    return false;
  }
  meet(t, span, stop_of(t, span.first), 0);
  return true;
}

// The lanes of the SYNC at which |lane| waits.
static bool some_meet(ref_tiles_t* t, uint32_t lane) {
  const ref_step_t* s = stop_of(t, lane);
  if (t->lane[lane].state != REF_LANE_WAITS || s->kind != REF_STEP_SYNC)
    return false;
  int64_t index = value_at(t, lane, s->a), count = 0;
  span_t span = span_of_group(t, lane);
  for (uint32_t i = span.first; i < span.first + span.count; ++i)
    count += waits_at(t, i, NULL, index);
  count += named_of(t, lane, (uint64_t)index)->arrived;
  if (count < s->imm) return false;
  meet(t, span, NULL, index);
  return true;
}

static bool touch_rows(ref_tiles_t* t, const ref_step_t* s, uint32_t first,
                       bool stores) {
  uint64_t size = stores ? 2 : s->size;
  for (uint32_t i = 0; i < 8 * s->lanes; ++i) {
    t->now = first + i;
    if (!pestle_ref_plugin_touch(
            t, s,
            t->m->base + s->place +
                (uint64_t)value_at(t, first + i, s->a) * size,
            16, stores)) {
      return false;
    }
  }
  return true;
}

static bool warp_meets(ref_tiles_t* t, uint32_t first, int32_t* out_trap) {
  const ref_step_t* s = stop_of(t, first);
  uint32_t count = t->lanes - first < REF_WARP ? t->lanes - first : REF_WARP;
  bool within = true;
  if (t->lane[first].state != REF_LANE_WAITS || !are_together(t, first, count))
    return false;
  take_memory(t, first);
  if (s->kind == REF_STEP_SG_REDUCE) {
    pestle_ref_plugin_reduce_lanes(s, frame_of(t, first), t->frame_size, count);
  } else if (s->kind == REF_STEP_MMA) {
    within = pestle_ref_plugin_mma(s, frame_of(t, first), t->frame_size, count);
  } else if (s->kind == REF_STEP_LDMATRIX) {
    within = pestle_ref_plugin_ldmatrix(s, frame_of(t, first), t->frame_size,
                                        count, t->m->scratch);
    if (within && !touch_rows(t, s, first, false)) *out_trap = REF_TRAP_TILES;
  } else if (s->kind == REF_STEP_STMATRIX && count == REF_WARP) {
    within = pestle_ref_plugin_stmatrix(s, frame_of(t, first), t->frame_size,
                                        t->m->scratch);
    if (within && !touch_rows(t, s, first, true)) *out_trap = REF_TRAP_TILES;
  } else if (s->kind == REF_STEP_SG_BALLOT) {
    pestle_ref_plugin_ballot(s, frame_of(t, first), t->frame_size, count);
  } else {
    return false;
  }
  if (!within) *out_trap = REF_TRAP_BOUNDS;
  set_ready(t, first, count);
  return true;
}

// What the group was launched with is all there is for warpgroup |own|.
static bool registers_fit(const ref_tiles_t* t, uint32_t own, int64_t wanted) {
  int64_t sum = 0;
  uint32_t count = t->group_lanes / REF_WARPGROUP, first = own / count * count;
  for (uint32_t g = first; g < first + count; ++g)
    sum += (g == own ? wanted : t->warpgroup[g].registers) * REF_WARPGROUP;
  return sum <= (int64_t)t->registers;
}

static bool warpgroup_meets(ref_tiles_t* t, uint32_t group) {
  uint32_t first = group * REF_WARPGROUP;
  const ref_step_t* s = stop_of(t, first);
  ref_warpgroup_t* g = &t->warpgroup[group];
  if (t->lane[first].state != REF_LANE_WAITS || s->kind < REF_STEP_WGMMA ||
      !are_together(t, first, REF_WARPGROUP)) {
    return false;
  }
  t->now = first;
  if (s->kind == REF_STEP_WGMMA) {
    if (!pestle_ref_plugin_wgmma(t, s, first)) return false;
  } else if (s->kind == REF_STEP_WGMMA_FENCE) {
    g->dirty_count = 0;
  } else if (s->kind == REF_STEP_WGMMA_COMMIT) {
    ++g->batch;
  } else if (s->kind == REF_STEP_WGMMA_WAIT) {
    if (!pestle_ref_plugin_waited(t, first, true, (uint64_t)s->imm))
      return false;
  } else {
    int64_t wanted = s->imm < 0 ? -s->imm : s->imm;
    // More are given when others have given theirs back.
    if (!registers_fit(t, group, wanted)) return false;
    g->registers = (int32_t)wanted;
  }
  set_ready(t, first, REF_WARPGROUP);
  return true;
}

// Lets all go on who can; whether there is one.
static bool settle(ref_tiles_t* t, int32_t* out_trap) {
  bool any = all_meet(t, (span_t){0, t->lanes}, REF_STEP_CLUSTER_SYNC);
  for (uint32_t i = 0; i < t->lanes; i += t->group_lanes)
    if (all_meet(t, span_of_group(t, i), REF_STEP_BARRIER)) any = true;
  for (uint32_t i = 0; i < t->lanes && !t->told; ++i) {
    if (t->lane[i].state == REF_LANE_READY) any = true;
    if (i % REF_WARP == 0 && warp_meets(t, i, out_trap)) any = true;
    if (some_meet(t, i)) any = true;
    if (t->lane[i].state == REF_LANE_WAITS && is_alone(stop_of(t, i))) {
      t->now = i;
      t->m->frame = frame_of(t, i);
      if (passes(t, i)) {
        t->lane[i].state = REF_LANE_READY;
        any = true;
      }
    }
  }
  for (uint32_t g = 0; g < t->warpgroups && !t->told; ++g)
    if (warpgroup_meets(t, g)) any = true;
  return any;
}

static bool has_ended(const ref_tiles_t* t) {
  for (uint32_t i = 0; i < t->lanes; ++i)
    if (t->lane[i].state != REF_LANE_ENDED) return false;
  return true;
}

static int32_t run_warps(ref_tiles_t* t) {
  uint32_t warps = (t->lanes + REF_WARP - 1) / REF_WARP;
  int32_t trap = 0;
  while (!trap && !has_ended(t)) {
    if (!settle(t, &trap) && !t->told) {
      if (!pestle_ref_plugin_progress(t)) tell_stuck(t);
    }
    if (t->told) return REF_TRAP_TILES;
    if (!pestle_ref_plugin_random(t, 4)) pestle_ref_plugin_progress(t);
    uint32_t first = (uint32_t)pestle_ref_plugin_random(t, warps) * REF_WARP;
    for (uint32_t i = first; i < first + REF_WARP && i < t->lanes && !trap; ++i)
      if (t->lane[i].state == REF_LANE_READY) trap = run_lane(t, i);
  }
  // Copies out of shared memory end before the kernel does.
  while (!trap && pestle_ref_plugin_progress(t))
    continue;
  return t->told ? REF_TRAP_TILES : trap;
}

// --- The whole ---

static unsigned char* cut(unsigned char** at, size_t size) {
  unsigned char* piece = *at;
  *at += (size + 63) & ~(size_t)63;
  return piece;
}

static ref_clock_t cut_clock(const ref_tiles_t* t, unsigned char** at) {
  size_t size = t->actors * sizeof(uint32_t);
  ref_clock_t c;
  c.seen = (uint32_t*)(void*)cut(at, size);
  c.fenced = (uint32_t*)(void*)cut(at, size);
  return c;
}

static void begin(ref_tiles_t* t, unsigned char* at) {
  t->lane = (ref_lane_t*)(void*)cut(&at, t->lanes * sizeof *t->lane);
  t->warpgroup = (ref_warpgroup_t*)(void*)cut(
      &at, (t->warpgroups + 1) * sizeof *t->warpgroup);
  t->write = (ref_moment_t*)(void*)cut(&at, t->shared_bytes * sizeof *t->write);
  t->read = (ref_moment_t*)(void*)cut(&at, t->shared_bytes * sizeof *t->read);
  t->joined = cut_clock(t, &at);
  for (uint32_t i = 0; i < t->cluster * REF_NAMED; ++i)
    t->named[i / REF_NAMED][i % REF_NAMED].clock = cut_clock(t, &at);
  for (uint32_t i = 0; i < t->cluster; ++i)
    t->far[i] = (uint32_t*)(void*)cut(&at, t->actors * sizeof *t->far[i]);
  t->left = (float(*)[REF_ROWS][REF_TAPS])(void*)cut(
      &at, REF_TICKETS * sizeof *t->left);
  for (uint32_t i = 0; i < REF_MBARS; ++i) {
    t->mbar[i].at = UINT64_MAX;
    t->mbar[i].arrived = cut_clock(t, &at);
    t->mbar[i].done = cut_clock(t, &at);
  }
  for (uint32_t i = 0; i < t->lanes; ++i) {
    t->lane[i].clock = cut_clock(t, &at);
    t->lane[i].time = t->lane[i].clock.seen[i] = 1;
  }
  if (t->cluster > 1) t->memory = cut(&at, t->shared_bytes);
  int32_t share = (int32_t)(REF_REGISTER_FILE / t->group_lanes / 8 * 8);
  if (share > MOST_REGISTERS) share = MOST_REGISTERS;
  t->registers = (uint32_t)share * t->group_lanes;
  for (uint32_t g = 0; g < t->warpgroups; ++g)
    t->warpgroup[g].registers = share;
}

int32_t pestle_ref_plugin_run_tiles(ref_machine_t* m, unsigned char* frames,
                                    size_t frame_size, uint32_t lanes) {
  const pestle_host_t* host = m->program->host;
  ref_tiles_t t = {.m = m,
                   .frames = frames,
                   .frame_size = frame_size,
                   .lanes = lanes,
                   .warpgroups = lanes / REF_WARPGROUP,
                   .actors = lanes + REF_TICKETS,
                   .cluster = m->program->cluster,
                   .group_lanes = lanes / m->program->cluster,
                   .memory = m->scratch};
  unsigned char* scratch = m->scratch;
  t.stride = (uint64_t)m->program->shared_bytes + !m->program->shared_bytes;
  // Places in groups are alike for swizzles.
  if (t.cluster > 1) t.stride = (t.stride + 1023) / 1024 * 1024;
  t.shared_bytes =
      t.cluster > 1 ? t.cluster * t.stride : (uint64_t)m->program->shared_bytes;
  size_t clock = 2 * ((t.actors * sizeof(uint32_t) + 63) & ~(size_t)63);
  size_t size =
      64 * 8 + lanes * sizeof(ref_lane_t) +
      (t.warpgroups + 1) * sizeof(ref_warpgroup_t) +
      2 * t.shared_bytes * sizeof(ref_moment_t) + REF_TICKETS * sizeof *t.left +
      (1 + t.cluster * (1 + REF_NAMED) + 2 * REF_MBARS + lanes) * clock +
      (t.cluster > 1 ? t.shared_bytes : 0);
  unsigned char* memory = host->alloc(host->self, size);
  if (!memory) return REF_TRAP_MEMORY;
  memset(memory, 0, size);
  begin(&t, memory);
  // Each group of a process has an order of its own, the same in each process.
  t.random = atomic_fetch_add_explicit(
      &((pestle_loaded_t*)(uintptr_t)m->program)->runs, 1,
      memory_order_relaxed);
  m->tiles = &t;
  int32_t trap = run_warps(&t);
  m->tiles = NULL;
  m->scratch = scratch;
  m->base = 0;
  host->free(host->self, memory, size);
  return trap;
}
