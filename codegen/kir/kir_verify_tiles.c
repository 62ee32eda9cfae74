// SPDX-License-Identifier: Apache-2.0
// What only the whole of a kernel with tiles says: that its roles do not ask for
// more registers than the group has, which would hang, that a barrier expects the
// bytes and the lanes that come, those of its cluster's other groups too, that products
// read tiles as they were copied, and that groups of a cluster wait for each other
// before the first access to another one's memory and behind the last.
//
// Which lanes get to an instruction is found by computing the conditions around it
// for each lane's number and its group's in the cluster; a condition of anything else is taken as the same in all
// of them. What cannot be told so is let pass: the ref backend sees it when it runs.
#include <stdio.h>

#include "codegen/kir/kir_internal.h"

enum {
  WARPGROUP = 128,
  MOST_WARPGROUPS = 8,
  REGISTER_FILE = 65536,
  MOST_REGISTERS = 248,
  MOST_DEPTH = 24,
  MOST_OPEN = 64,
};

typedef struct tiles_t {
  const pestle_kir_t* k;
  uint32_t id, lanes, cluster;
  // Regions that are open; |sense|: the branch of an IF.
  uint32_t open[MOST_OPEN], depth;
  bool sense[MOST_OPEN];
} tiles_t;

static PESTLE_PRINTF(2, 3) pestle_status_t
    broken(const tiles_t* t, const char* format, ...) {
  char rule[256];
  va_list args;
  va_start(args, format);
  vsnprintf(rule, sizeof rule, format, args);
  va_end(args);
  return PESTLE_ERROR(
      INTERNAL, "kernel %s, instruction %u, `%s`: %s",
      pestle_kir_string(t->k, t->k->name), t->id,
      pestle_kir_info(pestle_kir_inst(t->k, t->id)->op).mnemonic, rule);
}

static const pestle_kir_inst_t* inst_of(const tiles_t* t, uint32_t id) {
  return pestle_kir_inst(t->k, id);
}

// --- What a lane computes of its number ---

// A lane of a group of the cluster.
typedef struct who_t {
  uint32_t lane, rank;
} who_t;

// Value |id| in lane |who|, where it follows from that.
static bool value_of(const tiles_t* t, uint32_t id, who_t who, int depth,
                     int64_t* out) {
  const pestle_kir_inst_t* x = inst_of(t, id);
  int64_t a, b;
  pestle_op_t op;
  if (depth > MOST_DEPTH || x->lanes != 1) return false;
  if (x->op == PESTLE_KIR_CONST) {
    *out = pestle_kir_const_int(x);
    return pestle_dtype_is((pestle_dtype_t)x->type,
                           PESTLE_KIND_INT | PESTLE_KIND_BOOL);
  }
  if (x->op == PESTLE_KIR_FOR) {
    bool rank = x->arg[3] == PESTLE_KIR_CLUSTER;
    *out = rank ? who.rank : who.lane;
    return rank ||
           (x->arg[3] == PESTLE_KIR_LANE_X && t->k->lane[0] == t->lanes);
  }
  if (x->op == PESTLE_KIR_MADI) {
    return value_of(t, x->arg[0], who, depth + 1, &a) &&
           value_of(t, x->arg[2], who, depth + 1, &b) &&
           !__builtin_mul_overflow(a, (int64_t)(int32_t)x->arg[1], &a) &&
           !__builtin_add_overflow(a, b, out);
  }
  int64_t operand[3] = {0, 0, 0};
  if (!pestle_kir_is_scalar(x->op, &op) || pestle_kir_row(op)->arity != 2 ||
      !value_of(t, x->arg[0], who, depth + 1, &operand[0]) ||
      !value_of(t, x->arg[1], who, depth + 1, &operand[1])) {
    return false;
  }
  pestle_dtype_t type = (pestle_dtype_t)inst_of(t, x->arg[0])->type;
  return pestle_kir_fold_int(op, type, operand, out);
}

// Whether |who| gets to where the walk is.
static bool gets_here(const tiles_t* t, who_t who) {
  for (uint32_t i = 0; i < t->depth; ++i) {
    const pestle_kir_inst_t* around = inst_of(t, t->open[i]);
    int64_t on;
    if (around->op == PESTLE_KIR_IF &&
        value_of(t, around->arg[0], who, 0, &on) && !!on != t->sense[i]) {
      return false;
    }
  }
  return true;
}

// How many lanes of the cluster arrive at a barrier of group |rank| by the addr
// |addr|, where they are. False: it is not known which group's it is in all of them.
static bool count_here(const tiles_t* t, uint32_t addr, uint32_t rank,
                       uint32_t* out) {
  const pestle_kir_inst_t* x = inst_of(t, addr);
  *out = 0;
  for (uint32_t from = 0; from < t->cluster; ++from) {
    for (uint32_t lane = 0; lane < t->lanes; ++lane) {
      int64_t to = from;
      if (!gets_here(t, (who_t){lane, from})) continue;
      if (x->op == PESTLE_KIR_REF_AT &&
          !value_of(t, x->arg[1], (who_t){lane, from}, 0, &to)) {
        return false;
      }
      *out += to == rank;
    }
  }
  return true;
}

// Takes instruction |id| in, which may open or close a region.
static void follow(tiles_t* t, uint32_t id) {
  unsigned op = inst_of(t, id)->op;
  if ((op == PESTLE_KIR_FOR || op == PESTLE_KIR_IF) && t->depth < MOST_OPEN) {
    t->sense[t->depth] = true;
    t->open[t->depth++] = id;
  } else if (op == PESTLE_KIR_ELSE && t->depth) {
    t->sense[t->depth - 1] = false;
  } else if (op == PESTLE_KIR_END && t->depth) {
    --t->depth;
  }
}

// --- Registers ---

static pestle_status_t check_registers(tiles_t* t) {
  uint32_t groups = t->lanes / WARPGROUP, last = 0;
  if (t->lanes % WARPGROUP || groups > MOST_WARPGROUPS || !groups) return NULL;
  int64_t share = REGISTER_FILE / (int64_t)t->lanes / 8 * 8;
  if (share > MOST_REGISTERS) share = MOST_REGISTERS;
  int64_t own[MOST_WARPGROUPS], sum = 0;
  for (uint32_t g = 0; g < groups; ++g)
    own[g] = share;
  t->depth = 0;
  for (t->id = 0; t->id < t->k->inst_count; ++t->id) {
    follow(t, t->id);
    const pestle_kir_inst_t* x = inst_of(t, t->id);
    if (x->op != PESTLE_KIR_REGISTERS) continue;
    int64_t count = (int32_t)x->arg[0];
    if (count < 0) count = -count;
    if (count < 24 || count > 256 || count % 8)
      return broken(t, "registers of a lane are 24 to 256, in eights");
    last = t->id;
    for (uint32_t g = 0; g < groups; ++g)
      if (gets_here(t, (who_t){g * WARPGROUP, 0})) own[g] = count;
  }
  for (uint32_t g = 0; g < groups; ++g)
    sum += own[g] * WARPGROUP;
  t->id = last;
  if (sum <= share * (int64_t)t->lanes) return NULL;
  return broken(t,
                "warpgroups have %lld registers at last, the group only the "
                "%lld that it begins with",
                (long long)sum, (long long)(share * (int64_t)t->lanes));
}

// --- Barriers ---

// The buffer whose element an addr is, or NONE.
static uint32_t buffer_of(const tiles_t* t, uint32_t addr) {
  const pestle_kir_inst_t* x = inst_of(t, addr);
  if (x->op == PESTLE_KIR_REF_AT) x = inst_of(t, x->arg[0]);
  return x->op == PESTLE_KIR_REF ? x->arg[0] : PESTLE_KIR_NONE;
}

static const uint32_t* words_of(const tiles_t* t, uint32_t map) {
  uint32_t table = pestle_kir_buffer(t->k, map)->layout - 1u;
  return &t->k->table_word[t->k->table[table].first];
}

static bool is_load(const pestle_kir_inst_t* x) {
  return x->op == PESTLE_KIR_TILE_LOAD || x->op == PESTLE_KIR_TILE_LOAD_ALL ||
         x->op == PESTLE_KIR_TILE_LOAD_WINDOW;
}

static int64_t box_bytes(const tiles_t* t, uint32_t map) {
  const uint32_t* word = words_of(t, map);
  int64_t bytes =
      pestle_dtype_size((pestle_dtype_t)pestle_kir_buffer(t->k, map)->dtype);
  for (uint32_t d = 0; d < word[1]; ++d)
    bytes *= word[5 + 4 * d + 1];
  return bytes;
}

static bool same_ref(const tiles_t* t, uint32_t a, uint32_t b) {
  const pestle_kir_inst_t *x = inst_of(t, a), *y = inst_of(t, b);
  return a == b || (x->op == PESTLE_KIR_REF && y->op == PESTLE_KIR_REF &&
                    x->arg[0] == y->arg[0] && x->arg[1] == y->arg[1]);
}

// Whether groups of a cluster may differ in |id|.
static bool is_of_rank(const tiles_t* t, uint32_t id, int depth) {
  const pestle_kir_inst_t* x = inst_of(t, id);
  const char* letters = pestle_kir_info(x->op).operands;
  if (depth > MOST_DEPTH) return true;
  if (x->op == PESTLE_KIR_FOR && x->arg[3] == PESTLE_KIR_CLUSTER) return true;
  for (int a = 0; letters[a]; ++a) {
    if (letters[a] == 'v' && is_of_rank(t, x->arg[a], depth + 1)) return true;
  }
  return false;
}

// Bytes that a copy brings to a group's barrier: where all groups of the cluster ask
// for it, those of their copies to all too.
static int64_t bytes_of(const tiles_t* t, const pestle_kir_inst_t* x) {
  return box_bytes(t, x->arg[1]) *
         (x->op == PESTLE_KIR_TILE_LOAD_ALL ? t->cluster : 1);
}

// Where the copies that arrive at the barrier of the MBAR_EXPECT at hand stand
// behind it in its region, alone, they have its bytes. What only some groups of a
// cluster get to is let pass.
static pestle_status_t check_bytes(const tiles_t* t) {
  const pestle_kir_inst_t* expect = inst_of(t, t->id);
  int64_t bytes = 0;
  for (uint32_t i = 0; i < t->depth && t->cluster > 1; ++i) {
    const pestle_kir_inst_t* around = inst_of(t, t->open[i]);
    if (around->op == PESTLE_KIR_IF && is_of_rank(t, around->arg[0], 0))
      return NULL;
  }
  for (uint32_t i = t->id + 1; i < t->k->inst_count; ++i) {
    const pestle_kir_inst_t* x = inst_of(t, i);
    if (x->op == PESTLE_KIR_END || x->op == PESTLE_KIR_ELSE) break;
    if (x->op == PESTLE_KIR_FOR || x->op == PESTLE_KIR_IF) {
      uint32_t end = pestle_kir_region_end(t->k, i);
      for (uint32_t j = i; j < end; ++j) {
        const pestle_kir_inst_t* y = inst_of(t, j);
        if (is_load(y) &&
            buffer_of(t, y->arg[3]) == buffer_of(t, expect->arg[0])) {
          return NULL;  // how often is not known
        }
      }
      i = end;
      continue;
    }
    if (x->op == PESTLE_KIR_MBAR_EXPECT &&
        same_ref(t, x->arg[0], expect->arg[0])) {
      return NULL;
    }
    if (is_load(x) && same_ref(t, x->arg[3], expect->arg[0]))
      bytes += bytes_of(t, x);
  }
  if (!bytes || bytes == (int64_t)expect->arg[1]) return NULL;
  return broken(t, "%lld bytes arrive, not %u", (long long)bytes,
                expect->arg[1]);
}

// Of a barrier that one instruction arrives at: as many lanes as it was given.
static pestle_status_t check_arrivals(tiles_t* t, uint32_t barrier) {
  uint32_t init = PESTLE_KIR_NONE, sites = 0, count = 0, at = 0;
  t->depth = 0;
  for (t->id = 0; t->id < t->k->inst_count; ++t->id) {
    follow(t, t->id);
    const pestle_kir_inst_t* x = inst_of(t, t->id);
    bool arrives =
        x->op == PESTLE_KIR_MBAR_ARRIVE || x->op == PESTLE_KIR_MBAR_EXPECT;
    if (!arrives && x->op != PESTLE_KIR_MBAR_INIT) continue;
    uint32_t of = buffer_of(t, x->arg[0]);
    if (of == PESTLE_KIR_NONE) return NULL;
    if (of != barrier) continue;
    if (!arrives) {
      if (init != PESTLE_KIR_NONE && init != x->arg[1]) return NULL;
      init = x->arg[1];
      continue;
    }
    ++sites;
    at = t->id;
    // The same for each group, or it is not for this rule to say.
    for (uint32_t rank = 0; rank < t->cluster; ++rank) {
      uint32_t here;
      if (!count_here(t, x->arg[0], rank, &here)) return NULL;
      if (rank && here != count) return NULL;
      count = here;
    }
  }
  t->id = at;
  if (sites != 1 || init == PESTLE_KIR_NONE || count == init) return NULL;
  return broken(t, "%u lanes arrive at @%s, which waits for %u", count,
                pestle_kir_string(t->k, pestle_kir_buffer(t->k, barrier)->name),
                init);
}

// --- Tiles ---

// A product's tile lies as the copies to it leave it.
static pestle_status_t check_tile(const tiles_t* t, uint32_t addr,
                                  uint32_t swizzle) {
  uint32_t tile = buffer_of(t, addr);
  if (tile == PESTLE_KIR_NONE) return NULL;
  const pestle_kir_buffer_t* u = pestle_kir_buffer(t->k, tile);
  const char* name = pestle_kir_string(t->k, u->name);
  if (u->align < 8 * swizzle) {
    return broken(t, "@%s begins at a multiple of %u bytes, not of %u", name,
                  u->align, 8 * swizzle);
  }
  for (uint32_t i = 0; i < t->k->inst_count; ++i) {
    const pestle_kir_inst_t* x = inst_of(t, i);
    if (!is_load(x) || buffer_of(t, x->arg[0]) != tile) continue;
    uint32_t copied = words_of(t, x->arg[1])[2];
    if (copied != swizzle) {
      return broken(t, "@%s is copied with a swizzle of %u bytes, not %u", name,
                    copied, swizzle);
    }
  }
  return NULL;
}

static pestle_status_t check_product(const tiles_t* t) {
  const pestle_kir_inst_t* x = inst_of(t, t->id);
  uint32_t swizzle = 128u >> (x->arg[3] & PESTLE_KIR_WGMMA_SWIZZLE) /
                                 PESTLE_KIR_WGMMA_SWIZZLE_64;
  if (x->op == PESTLE_KIR_WGMMA) PESTLE_TRY(check_tile(t, x->arg[1], swizzle));
  return check_tile(t, x->arg[2], swizzle);
}

// --- Clusters ---

static pestle_status_t check_clusters(tiles_t* t) {
  uint32_t first_sync = PESTLE_KIR_NONE, last_sync = 0;
  uint32_t first = PESTLE_KIR_NONE, last = 0;
  for (t->id = 0; t->id < t->k->inst_count; ++t->id) {
    unsigned op = inst_of(t, t->id)->op;
    bool sync = op == PESTLE_KIR_CLUSTER_SYNC;
    // What an addr of REF_AT is for stands behind it.
    bool far = op == PESTLE_KIR_REF_AT || op == PESTLE_KIR_LOAD_AT ||
               op == PESTLE_KIR_TILE_LOAD_ALL;
    if (op == PESTLE_KIR_MBAR_ARRIVE)
      far = inst_of(t, inst_of(t, t->id)->arg[0])->op == PESTLE_KIR_REF_AT;
    if (sync && first_sync == PESTLE_KIR_NONE) first_sync = t->id;
    if (sync) last_sync = t->id;
    if (far && first == PESTLE_KIR_NONE) first = t->id;
    if (far) last = t->id;
  }
  if (first == PESTLE_KIR_NONE) return NULL;
  if (first_sync > first) {
    t->id = first;
    return broken(t,
                  "no cluster_sync before the first access to another group's "
                  "memory");
  }
  t->id = last;
  if (last_sync < last) {
    return broken(t,
                  "no cluster_sync behind the last access to another group's "
                  "memory, which may have ended");
  }
  return NULL;
}

pestle_status_t pestle_kir_verify_tiles(const pestle_kir_t* k) {
  tiles_t t = {.k = k,
               .lanes = k->lane[0] * k->lane[1] * k->lane[2],
               .cluster = pestle_kir_cluster(k)};
  bool any = false;
  PESTLE_TRY(check_clusters(&t));
  for (t.id = 0; t.id < k->inst_count; ++t.id) {
    follow(&t, t.id);
    unsigned op = inst_of(&t, t.id)->op;
    any = any || op == PESTLE_KIR_REF;
    if (op == PESTLE_KIR_WGMMA || op == PESTLE_KIR_WGMMA_RA)
      PESTLE_TRY(check_product(&t));
    if (op == PESTLE_KIR_MBAR_EXPECT) PESTLE_TRY(check_bytes(&t));
  }
  if (!any) return NULL;
  for (uint32_t b = 0; b < k->buffer_count; ++b) {
    if (pestle_kir_buffer(k, b)->dtype == PESTLE_MBAR)
      PESTLE_TRY(check_arrivals(&t, b));
  }
  return check_registers(&t);
}
