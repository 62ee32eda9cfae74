// SPDX-License-Identifier: Apache-2.0
#include "base/wire.h"

enum {
  // An all_reduce of at most so many bytes is one round of Pestle's own transport.
  ONE_ROUND_OF_TWO = 1 << 16,
  ONE_ROUND = 1 << 10,
};

// --- Bytes ---

double pestle_wire_bytes(pestle_collective_kind_t kind, int64_t members,
                         double bytes) {
  double n = (double)members;
  if (members < 2) return 0;
  switch (kind) {
    case PESTLE_COLLECTIVE_ALL_REDUCE:
      return 2 * bytes * (n - 1) / n;
    case PESTLE_COLLECTIVE_REDUCE_SCATTER:
    case PESTLE_COLLECTIVE_ALL_TO_ALL:
      return bytes * (n - 1) / n;
    case PESTLE_COLLECTIVE_ALL_GATHER:
      return bytes * (n - 1);
    case PESTLE_COLLECTIVE_PERMUTE:
    case PESTLE_COLLECTIVE_BROADCAST:
      break;
  }
  return bytes;
}

uint64_t pestle_wire_part(uint64_t count, int64_t members, int64_t place) {
  uint64_t n = (uint64_t)members, at = (uint64_t)place;
  uint64_t each = count / n, more = count % n;
  return each * at + (at < more ? at : more);
}

bool pestle_wire_is_one_round(int64_t members, uint64_t bytes) {
  return bytes <= (members == 2 ? ONE_ROUND_OF_TWO : ONE_ROUND);
}

uint64_t pestle_wire_peer_bytes(pestle_collective_kind_t kind, int64_t members,
                                int64_t place, int64_t other, uint64_t count,
                                size_t size) {
  uint64_t bytes = count * size;
  if (place == other) return 0;
  switch (kind) {
    case PESTLE_COLLECTIVE_ALL_REDUCE: {
      if (pestle_wire_is_one_round(members, bytes)) return bytes;
      uint64_t own = pestle_wire_part(count, members, place + 1) -
                     pestle_wire_part(count, members, place);
      uint64_t theirs = pestle_wire_part(count, members, other + 1) -
                        pestle_wire_part(count, members, other);
      return (own + theirs) * size;
    }
    case PESTLE_COLLECTIVE_REDUCE_SCATTER:
    case PESTLE_COLLECTIVE_ALL_TO_ALL:
      return bytes / (uint64_t)members;
    case PESTLE_COLLECTIVE_BROADCAST:
      return place ? 0 : bytes;
    case PESTLE_COLLECTIVE_ALL_GATHER:
    case PESTLE_COLLECTIVE_PERMUTE:
      break;
  }
  return bytes;
}

// --- Seconds ---

static bool combines(pestle_collective_kind_t kind) {
  return kind == PESTLE_COLLECTIVE_ALL_REDUCE ||
         kind == PESTLE_COLLECTIVE_REDUCE_SCATTER;
}

static double fold_seconds(const pestle_wire_t* w, double bytes) {
  return w->fold > 0 ? bytes / w->fold : 0;
}

static double log2_up(int64_t n) {
  double rounds = 0;
  for (int64_t reach = 1; reach < n; reach *= 2)
    ++rounds;
  return rounds;
}

static double peers(pestle_collective_kind_t kind, int64_t n, double bytes,
                    const pestle_wire_t* w) {
  bool reduces = kind == PESTLE_COLLECTIVE_ALL_REDUCE;
  bool once = !reduces || pestle_wire_is_one_round(n, (uint64_t)bytes);
  double sent = pestle_wire_bytes(kind, n, bytes);
  if (reduces && once) sent = bytes * (double)(n - 1);
  // The root sends to all others.
  if (kind == PESTLE_COLLECTIVE_BROADCAST) sent = bytes * (double)(n - 1);
  double folded = !combines(kind)   ? 0
                  : reduces && once ? bytes * (double)n
                                    : bytes;
  return (once ? 1 : 2) * w->alpha + sent / w->beta + fold_seconds(w, folded);
}

static double ring(pestle_collective_kind_t kind, int64_t n, double bytes,
                   const pestle_wire_t* w) {
  double rounds = (double)(n - 1);
  double folded = combines(kind) ? bytes * rounds / (double)n : 0;
  switch (kind) {
    case PESTLE_COLLECTIVE_ALL_REDUCE:
      rounds *= 2;
      break;
    case PESTLE_COLLECTIVE_PERMUTE:
    case PESTLE_COLLECTIVE_ALL_TO_ALL:
      rounds = 1;
      break;
    case PESTLE_COLLECTIVE_ALL_GATHER:
    case PESTLE_COLLECTIVE_REDUCE_SCATTER:
    case PESTLE_COLLECTIVE_BROADCAST:
      break;
  }
  return rounds * w->alpha + pestle_wire_bytes(kind, n, bytes) / w->beta +
         fold_seconds(w, folded);
}

// Only what goes to everyone has a tree.
static double tree(pestle_collective_kind_t kind, int64_t n, double bytes,
                   const pestle_wire_t* w) {
  double up_and_down = kind == PESTLE_COLLECTIVE_ALL_REDUCE ? 2 : 1;
  double folded = combines(kind) ? bytes : 0;
  return up_and_down * (log2_up(n) * w->alpha + bytes / w->beta) +
         fold_seconds(w, folded);
}

static bool has_tree(pestle_collective_kind_t kind) {
  return kind == PESTLE_COLLECTIVE_ALL_REDUCE ||
         kind == PESTLE_COLLECTIVE_BROADCAST;
}

static double flat(pestle_collective_kind_t kind, int64_t n, double bytes,
                   const pestle_wire_t* w, pestle_wire_way_t* out_way) {
  *out_way = w->peers ? PESTLE_WIRE_PEERS : PESTLE_WIRE_RING;
  if (n < 2) return 0;
  if (w->peers) return peers(kind, n, bytes, w);
  double by_ring = ring(kind, n, bytes, w);
  double by_tree = has_tree(kind) ? tree(kind, n, bytes, w) : by_ring;
  if (by_tree >= by_ring) return by_ring;
  *out_way = PESTLE_WIRE_TREE;
  return by_tree;
}

// The slowest of all, over which a ring of all members goes somewhere.
static pestle_wire_t slowest(const pestle_wire_t* levels, const int64_t* counts,
                             size_t count) {
  pestle_wire_t out = {0};
  bool any = false;
  for (size_t i = 0; i < count; ++i) {
    if (counts[i] < 2) continue;
    const pestle_wire_t* w = &levels[i];
    if (!any) out = *w;
    any = true;
    if (w->alpha > out.alpha) out.alpha = w->alpha;
    if (w->beta < out.beta) out.beta = w->beta;
    if (w->fold > 0 && (!(out.fold > 0) || w->fold < out.fold))
      out.fold = w->fold;
    out.peers &= w->peers;
  }
  return any ? out : levels[0];
}

// reduce_scatter inside, the rest between members of the same place, all_gather inside.
static double by_levels(pestle_collective_kind_t kind, double bytes,
                        const pestle_wire_t* levels, const int64_t* counts,
                        size_t count) {
  pestle_wire_way_t way;
  double n = (double)counts[0];
  if (count == 1) return flat(kind, counts[0], bytes, levels, &way);
  switch (kind) {
    case PESTLE_COLLECTIVE_ALL_REDUCE:
      return flat(PESTLE_COLLECTIVE_REDUCE_SCATTER, counts[0], bytes, levels,
                  &way) +
             by_levels(kind, bytes / n, levels + 1, counts + 1, count - 1) +
             flat(PESTLE_COLLECTIVE_ALL_GATHER, counts[0], bytes / n, levels,
                  &way);
    case PESTLE_COLLECTIVE_REDUCE_SCATTER:
      return flat(kind, counts[0], bytes, levels, &way) +
             by_levels(kind, bytes / n, levels + 1, counts + 1, count - 1);
    case PESTLE_COLLECTIVE_ALL_GATHER: {
      double outer = 1;
      for (size_t i = 1; i < count; ++i)
        outer *= (double)counts[i];
      return by_levels(kind, bytes, levels + 1, counts + 1, count - 1) +
             flat(kind, counts[0], bytes * outer, levels, &way);
    }
    case PESTLE_COLLECTIVE_ALL_TO_ALL:
    case PESTLE_COLLECTIVE_PERMUTE:
    case PESTLE_COLLECTIVE_BROADCAST:
      break;
  }
  pestle_wire_t w = slowest(levels, counts, count);
  int64_t all = 1;
  for (size_t i = 0; i < count; ++i)
    all *= counts[i];
  return flat(kind, all, bytes, &w, &way);
}

double pestle_wire_seconds(pestle_collective_kind_t kind, double bytes,
                           const pestle_wire_t* levels, const int64_t* counts,
                           size_t level_count, pestle_wire_way_t* out_way) {
  pestle_wire_way_t way;
  pestle_wire_t w = slowest(levels, counts, level_count);
  int64_t all = 1, used = 0;
  for (size_t i = 0; i < level_count; ++i) {
    all *= counts[i];
    used += counts[i] > 1;
  }
  double seconds = flat(kind, all, bytes, &w, &way);
  if (used > 1 && !w.peers) {
    double split = by_levels(kind, bytes, levels, counts, level_count);
    if (split < seconds) {
      seconds = split;
      way = PESTLE_WIRE_LEVELS;
    }
  }
  if (out_way) *out_way = way;
  return seconds;
}
