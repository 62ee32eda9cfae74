// SPDX-License-Identifier: Apache-2.0
// What groups of a cluster do to each other: their memories lie behind each other, and a
// group that has ended has none. It may end when it knows of all that others did there.
#include "plugins/ref/ref_tile.h"

static bool told_ended(ref_tiles_t* t, const ref_step_t* s, uint32_t group) {
  return pestle_ref_plugin_fault(
      t, s, "group %u of the cluster, whose memory it accesses, has ended",
      (unsigned)group);
}

bool pestle_ref_plugin_reach(ref_tiles_t* t, const ref_step_t* s, uint32_t from,
                             uint32_t actor, uint32_t time, uint64_t at) {
  uint32_t group = (uint32_t)(at / t->stride);
  if (t->cluster == 1 || group == from) return true;
  if (t->ended[group]) return told_ended(t, s, group);
  if (t->far[group][actor] < time) t->far[group][actor] = time;
  return true;
}

bool pestle_ref_plugin_end_group(ref_tiles_t* t, uint32_t group) {
  uint32_t first = group * t->group_lanes;
  t->ended[group] = true;
  for (uint32_t actor = 0; actor < t->actors && t->cluster > 1; ++actor) {
    uint32_t time = t->far[group][actor], known = 0;
    for (uint32_t i = first; i < first + t->group_lanes && known < time; ++i)
      if (t->lane[i].clock.seen[actor] > known)
        known = t->lane[i].clock.seen[actor];
    if (known >= time) continue;
    const ref_step_t* last =
        &t->m->program->steps[t->m->program->step_count - 1];
    bool lane = actor < t->lanes;
    return pestle_ref_plugin_fault(
        t, lane ? last : t->ticket[actor - t->lanes].step,
        "group %u of the cluster ends, and does not know of what %s %u did to "
        "its memory",
        (unsigned)group, lane ? "lane" : "the copy that was asked for by lane",
        (unsigned)(lane ? actor : t->ticket[actor - t->lanes].lane));
  }
  return true;
}

bool pestle_ref_plugin_ref_at(ref_tiles_t* t, const ref_step_t* s, int64_t at,
                              int64_t group, int64_t* out) {
  if (group < 0 || group >= (int64_t)t->cluster) {
    return pestle_ref_plugin_fault(
        t, s, "there is no group %lld in the cluster", (long long)group);
  }
  *out = (int64_t)((uint64_t)at % t->stride + (uint64_t)group * t->stride);
  return true;
}

bool pestle_ref_plugin_load_at(ref_tiles_t* t, const ref_step_t* s, int64_t at,
                               unsigned char* slots) {
  uint64_t place = (uint64_t)at, bytes = (uint64_t)s->lanes * s->size;
  if (place >= t->shared_bytes || t->stride - place % t->stride < bytes ||
      place % s->size) {
    return pestle_ref_plugin_fault(t, s, "byte %lld is no place for it",
                                   (long long)at);
  }
  if (!pestle_ref_plugin_reach(t, s, pestle_ref_plugin_group_of(t, t->now),
                               t->now, t->lane[t->now].time, place) ||
      !pestle_ref_plugin_touch(t, s, place, bytes, false)) {
    return false;
  }
  s->move(t->memory + place, 0, slots, s->lanes);
  return true;
}
