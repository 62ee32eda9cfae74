// SPDX-License-Identifier: Apache-2.0
// Who knows of whose accesses to shared memory.
#include <stdio.h>
#include <string.h>

#include "plugins/ref/ref_tile.h"

enum { TIME_BITS = 20, TIME_MASK = (1 << TIME_BITS) - 1 };

static ref_moment_t moment(uint32_t actor, uint32_t time) {
  return actor << TIME_BITS | (time & TIME_MASK);
}

static bool knows(const uint32_t* clock, ref_moment_t when) {
  return clock[when >> TIME_BITS] >= (when & TIME_MASK);
}

void pestle_ref_plugin_clear(const ref_tiles_t* t, ref_clock_t c) {
  memset(c.seen, 0, t->actors * sizeof *c.seen);
  memset(c.fenced, 0, t->actors * sizeof *c.fenced);
}

void pestle_ref_plugin_join(const ref_tiles_t* t, ref_clock_t into,
                            ref_clock_t from) {
  for (uint32_t i = 0; i < t->actors; ++i)
    if (into.seen[i] < from.seen[i]) into.seen[i] = from.seen[i];
  for (uint32_t i = 0; i < t->actors; ++i)
    if (into.fenced[i] < from.fenced[i]) into.fenced[i] = from.fenced[i];
}

void pestle_ref_plugin_release(ref_tiles_t* t, uint32_t lane,
                               ref_clock_t into) {
  ref_lane_t* l = &t->lane[lane];
  l->clock.seen[lane] = l->time;
  l->clock.fenced[lane] = l->fence_time;
  pestle_ref_plugin_join(t, into, l->clock);
  ++l->time;
  l->clock.seen[lane] = l->time;
}

void pestle_ref_plugin_acquire(ref_tiles_t* t, uint32_t lane,
                               ref_clock_t from) {
  pestle_ref_plugin_join(t, t->lane[lane].clock, from);
}

void pestle_ref_plugin_release_ticket(const ref_tiles_t* t, uint32_t ticket,
                                      ref_clock_t into) {
  uint32_t actor = t->lanes + ticket, time = t->ticket_time[ticket];
  if (into.seen[actor] < time) into.seen[actor] = time;
  if (into.fenced[actor] < time) into.fenced[actor] = time;
}

// --- Faults ---

static const char* actor_name(const ref_tiles_t* t, ref_moment_t when,
                              char* text, size_t size) {
  uint32_t actor = when >> TIME_BITS;
  if (actor < t->lanes) {
    snprintf(text, size, "lane %u", actor);
  } else {
    const ref_ticket_t* k = &t->ticket[actor - t->lanes];
    snprintf(text, size, "instruction %u of lane %u", k->step ? k->step->id : 0,
             k->lane);
  }
  return text;
}

static bool race(ref_tiles_t* t, const ref_step_t* s, uint64_t at,
                 ref_moment_t with, const char* what) {
  char who[64];
  return pestle_ref_plugin_fault(t, s, "byte %llu of shared memory: %s %s",
                                 (unsigned long long)at, what,
                                 actor_name(t, with, who, sizeof who));
}

// --- Accesses ---

static void keep(ref_tiles_t* t, uint64_t at, ref_moment_t me, bool stores) {
  if (stores) t->write[at] = me;
  t->read[at] = stores ? 0 : me;
}

bool pestle_ref_plugin_touch(ref_tiles_t* t, const ref_step_t* s, uint64_t at,
                             uint64_t bytes, bool stores) {
  const ref_lane_t* l = &t->lane[t->now];
  ref_moment_t me = moment(t->now, l->time);
  for (uint64_t i = at; i < at + bytes; ++i) {
    ref_moment_t w = t->write[i], r = t->read[i];
    if (!w && !stores) {
      return pestle_ref_plugin_fault(
          t, s, "byte %llu of shared memory is read, which nobody wrote",
          (unsigned long long)i);
    }
    if (w && !knows(l->clock.seen, w)) {
      return race(t, s, i, w,
                  stores ? "no barrier after the write of"
                         : "read without a wait for the write of");
    }
    if (stores && r && !knows(l->clock.seen, r)) {
      return race(t, s, i, r, "written without a wait for the read of");
    }
    keep(t, i, me, stores);
  }
  return true;
}

bool pestle_ref_plugin_is_dirty(const ref_warpgroup_t* g, uint32_t place) {
  for (uint32_t i = 0; i < g->dirty_count; ++i)
    if (g->dirty[i] == place) return true;
  return false;
}

static void set_dirty(ref_warpgroup_t* g, uint32_t place) {
  if (g->dirty_count < REF_DIRTY && !pestle_ref_plugin_is_dirty(g, place))
    g->dirty[g->dirty_count++] = place;
}

bool pestle_ref_plugin_touch_private(ref_tiles_t* t, const ref_step_t* s,
                                     bool stores) {
  uint32_t group = t->now / REF_WARPGROUP;
  if (group >= t->warpgroups) return true;
  ref_warpgroup_t* g = &t->warpgroup[group];
  for (uint32_t i = 0; i < REF_TICKETS && g->products; ++i) {
    const ref_ticket_t* k = &t->ticket[i];
    if (k->state == REF_TICKET_FREE || k->step->kind != REF_STEP_WGMMA ||
        k->lane / REF_WARPGROUP != group) {
      continue;
    }
    if (k->step->place == s->place) {
      return pestle_ref_plugin_fault(
          t, s, "sums of instruction %u are %s before wgmma_wait", k->step->id,
          stores ? "written" : "read");
    }
    if (stores && k->step->target == s->place + 1) {
      return pestle_ref_plugin_fault(
          t, s, "tile a of instruction %u is written before wgmma_wait",
          k->step->id);
    }
  }
  if (stores) set_dirty(g, s->place);
  return true;
}

bool pestle_ref_plugin_touch_async(ref_tiles_t* t, uint32_t ticket, uint64_t at,
                                   uint64_t bytes, bool stores) {
  const ref_ticket_t* k = &t->ticket[ticket];
  // A product is asked for by four warps: each has to know.
  bool warps = k->step->kind == REF_STEP_WGMMA;
  uint32_t stride = REF_WARP, count = warps ? 4 : 1;
  ref_moment_t me = moment(t->lanes + ticket, t->ticket_time[ticket]);
  if (at >= t->shared_bytes || t->stride - at % t->stride < bytes) {
    return pestle_ref_plugin_fault(t, k->step, "leaves shared memory");
  }
  for (uint64_t i = at; i < at + bytes; ++i) {
    ref_moment_t w = t->write[i], r = t->read[i];
    if (!w && !stores) {
      return pestle_ref_plugin_fault(
          t, k->step, "byte %llu of shared memory is read, which nobody wrote",
          (unsigned long long)i);
    }
    for (uint32_t j = 0; j < count; ++j) {
      const ref_clock_t* c = &t->lane[k->lane + j * stride].clock;
      if (w && !knows(c->seen, w)) {
        return race(t, k->step, i, w, "used without a wait for the write of");
      }
      if (w && !knows(c->fenced, w)) {
        return race(t, k->step, i, w, "no fence for tiles after the write of");
      }
      if (stores && r && !knows(c->seen, r)) {
        return race(t, k->step, i, r, "written without a wait for the read of");
      }
    }
    keep(t, i, me, stores);
  }
  return true;
}
