// SPDX-License-Identifier: Apache-2.0
// Loads for vectors whose lanes lie near each other but not side by side: windows of
// stride 2, neighbours that read the same element, rows backwards. The run of memory from
// the first lane's element to the last one's is loaded in vectors, and shuffles pick the
// lanes' elements from these; a gather would load each alone.
#include "base/bits.h"
#include "codegen/emit/emit_internal.h"
#include "pestle/kir.h"

enum {
  MOST_PARTS = 4,  // from there on most of what is read would be thrown away
  // So many elements are loaded one by one into all lanes instead, of which masks
  // choose: shuffles have fewer units. Measured on a Zen 5, one thread, 3x3 of 8 groups
  // at 28 x 28, us, by parts and by elements: of 12 features, two in a part, 141, 103;
  // of 20 536, 209; of 10, three in two parts, 135, 89; of 6, four in two, 44, 47.
  MOST_SPLATS = MOST_PARTS + 1,
  LEAST_LANES = 4,
  // Shorter elements are read under masks one by one on many targets.
  LEAST_MASKED = 4,
};

// --- Where lanes lie ---

// Whether |affine| has a value that is computed, which may be one a lane.
static bool has_value(const pestle_affine_t* affine) {
  for (uint32_t i = 0; i < affine->count; ++i) {
    const pestle_atom_t* atom = affine->terms[i].atom;
    if (atom->value || (atom->affine && has_value(atom->affine))) return true;
  }
  return false;
}

static const pestle_affine_t* at_lane(pestle_emit_t* e,
                                      const pestle_affine_t** map,
                                      const pestle_affine_t* affine,
                                      int64_t lane) {
  map[e->vector_axis] = pestle_affine_const(e->nest, lane);
  pestle_substitution_t how = {.map = map, .keep_values = true};
  return pestle_affine_substitute(e->nest, &how, affine);
}

bool pestle_emit_find_strided_load(pestle_emit_t* e,
                                   const pestle_affine_t* flat, int64_t count,
                                   pestle_strided_load_t* out) {
  pestle_nest_t* nest = e->nest;
  if (e->vector_axis < 0 || nest->wide_moves || has_value(flat) ||
      e->lanes < LEAST_LANES || e->lanes > PESTLE_KIR_MAX_LANES || !count) {
    return false;
  }
  const pestle_affine_t** map = pestle_arena_alloc_zero(
      nest->arena, nest->axes.size * sizeof(*map), _Alignof(pestle_affine_t*));
  if (!map) {
    pestle_nest_fail_memory(nest);
    return false;
  }
  *out = (pestle_strided_load_t){
      .lanes = e->lanes, .count = count, .when = PESTLE_KIR_NONE};
  out->first = at_lane(e, map, flat, 0);
  const pestle_affine_t* back = pestle_affine_scale(nest, out->first, -1);
  for (unsigned i = 0; i < e->lanes; ++i) {
    const pestle_affine_t* lane = at_lane(e, map, flat, i);
    const pestle_affine_t* from_first = pestle_affine_add(nest, lane, back);
    if (nest->failed || !pestle_affine_is_const(from_first)) return false;
    out->offset[i] = from_first->constant;
  }
  return true;
}

// --- Parts ---

// The first and the last element of the lanes that are read, and how many vectors
// reach from one to the other.
typedef struct parts_t {
  pestle_emit_t* e;
  const pestle_strided_load_t* a;
  pestle_kir_id_t first;
  int64_t low, high, parts;
} parts_t;

static void find_reach(parts_t* p, int64_t lanes) {
  p->low = p->high = 0;
  for (int64_t i = 0; i < lanes; ++i) {
    int64_t at = p->a->offset[i];
    if (at < p->low) p->low = at;
    if (at > p->high) p->high = at;
  }
  p->parts = pestle_ceil_div(p->high + 1 - p->low, p->a->lanes);
}

// The last of several ends with the last element, so that nothing is read which is
// not between two.
static int64_t part_begin(const parts_t* p, int64_t part) {
  bool last = part > 0 && part + 1 == p->parts;
  return last ? p->high + 1 - p->a->lanes : p->low + part * p->a->lanes;
}

// The part that |lane| is taken from; one that does not exist is of no part.
static int64_t part_of(const parts_t* p, unsigned lane) {
  int64_t at = p->a->offset[lane];
  if (at < p->low || at > p->high) return -1;
  return (at - p->low) / p->a->lanes;
}

// Lanes of the only part.
static unsigned only_lanes(const parts_t* p) {
  unsigned lanes = (unsigned)pestle_next_pow2((uint64_t)(p->high + 1 - p->low));
  return lanes < 2 ? 2 : lanes;
}

// Whether all that a vector of the only part would read exists.
static bool is_whole(const parts_t* p) {
  int64_t lanes = only_lanes(p);
  int64_t last = pestle_affine_range(p->e->nest, p->a->first).hi + p->low;
  if (last < 0) last = 0;  // it is clamped
  return lanes == p->high + 1 - p->low || last + lanes <= p->a->count;
}

// --- Masks ---

pestle_kir_id_t pestle_emit_both(pestle_emit_t* e, pestle_kir_id_t a,
                                 pestle_kir_id_t b) {
  if (a == PESTLE_KIR_NONE) return b;
  return pestle_kir_scalar(e->k, PESTLE_OP_AND, a, b, PESTLE_KIR_NONE);
}

static pestle_kir_id_t moved(pestle_emit_t* e, pestle_kir_id_t index,
                             int64_t by) {
  return pestle_kir_madi(e->k, index, 1, pestle_kir_index(e->k, by));
}

// |mask| and that of the elements from |begin| on that test |t| lets pass: those
// between lanes lie between what it tests there.
static pestle_kir_id_t tested(const parts_t* p, const pestle_emit_bound_t* t,
                              int64_t begin, pestle_kir_id_t mask) {
  pestle_emit_t* e = p->e;
  unsigned lanes = p->a->lanes;
  pestle_kir_id_t at = moved(e, t->at, begin);
  if (t->range.lo + begin < t->lo) {
    pestle_kir_id_t below =
        pestle_kir_mask(e->k, at, pestle_kir_index(e->k, t->lo), lanes);
    mask =
        pestle_emit_both(e, mask,
                         pestle_kir_scalar(e->k, PESTLE_OP_NOT, below,
                                           PESTLE_KIR_NONE, PESTLE_KIR_NONE));
  }
  if (t->range.hi + begin + lanes > t->hi) {
    mask = pestle_emit_both(
        e, mask,
        pestle_kir_mask(e->k, at, pestle_kir_index(e->k, t->hi), lanes));
  }
  return mask;
}

static pestle_kir_id_t part_mask(const parts_t* p, int64_t begin) {
  const pestle_strided_load_t* a = p->a;
  pestle_kir_id_t mask = PESTLE_KIR_NONE;
  if (a->when != PESTLE_KIR_NONE) {
    mask = pestle_kir_splat(p->e->k, a->when, a->lanes);
  }
  for (uint32_t i = 0; i < a->bound_count; ++i) {
    mask = tested(p, &a->bounds[i], begin, mask);
  }
  return mask;
}

// --- Loads ---

static pestle_kir_id_t load_only(const parts_t* p) {
  pestle_emit_t* e = p->e;
  unsigned lanes = only_lanes(p);
  pestle_kir_id_t at = moved(e, p->first, p->low), mask = PESTLE_KIR_NONE;
  if (!is_whole(p)) {
    mask = pestle_kir_mask(e->k, at, moved(e, p->first, p->high + 1), lanes);
  }
  return pestle_kir_load(e->k, p->a->buffer, lanes, at, mask, 0);
}

static pestle_kir_id_t load_part(const parts_t* p, int64_t part) {
  int64_t begin = part_begin(p, part);
  return pestle_kir_load(p->e->k, p->a->buffer, p->a->lanes,
                         moved(p->e, p->first, begin), part_mask(p, begin), 0);
}

// What lanes have of the parts before |part|, and of that one, |next|.
static pestle_kir_id_t take_part(const parts_t* p, pestle_kir_id_t so_far,
                                 pestle_kir_id_t next, int64_t part) {
  uint32_t lane[PESTLE_KIR_MAX_LANES];
  unsigned before = pestle_kir_lanes_of(p->e->k, so_far);
  for (unsigned i = 0; i < p->a->lanes; ++i) {
    int64_t from = part_of(p, i), at = p->a->offset[i];
    lane[i] = 0;
    if (from == part) lane[i] = before + (uint32_t)(at - part_begin(p, part));
    // The first part is as it was read, later ones have joined lanes.
    if (from >= 0 && from < part) {
      lane[i] = part == 1 ? (uint32_t)(at - part_begin(p, 0)) : i;
    }
  }
  return pestle_kir_shuffle(p->e->k, so_far, next, lane, p->a->lanes);
}

// --- Few elements ---

// The elements that lanes have.
typedef struct splats_t {
  int64_t offset[MOST_SPLATS];
  int64_t count;
} splats_t;

// False: they are more than |most|.
static bool find_splats(const parts_t* p, int64_t most, splats_t* out) {
  const pestle_strided_load_t* a = p->a;
  out->count = 0;
  for (int64_t i = 0; i < p->e->valid; ++i) {
    int64_t at = 0;
    while (at < out->count && out->offset[at] != a->offset[i])
      ++at;
    if (at == most) return false;
    if (at == out->count) out->offset[out->count++] = a->offset[i];
  }
  return true;
}

static pestle_kir_id_t load_splat(const parts_t* p, int64_t offset) {
  pestle_emit_t* e = p->e;
  pestle_kir_id_t id = pestle_kir_load(
      e->k, p->a->buffer, 1, moved(e, p->first, offset), PESTLE_KIR_NONE, 0);
  return pestle_kir_splat(e->k, id, p->a->lanes);
}

static pestle_kir_id_t load_splats(const parts_t* p, const splats_t* s) {
  unsigned lanes = p->a->lanes;
  uint32_t lane[PESTLE_KIR_MAX_LANES];
  pestle_kir_id_t id = load_splat(p, s->offset[0]);
  for (int64_t i = 1; i < s->count; ++i) {
    pestle_kir_id_t next = load_splat(p, s->offset[i]);
    for (unsigned j = 0; j < lanes; ++j)
      lane[j] = p->a->offset[j] == s->offset[i] ? lanes + j : j;
    id = pestle_kir_shuffle(p->e->k, id, next, lane, lanes);
  }
  return id;
}

// --- The choice ---

// Whether each element is tested for, those of lanes that do not exist too.
static bool is_tested(const pestle_strided_load_t* a) {
  return a->bound_count > 0;
}

// Whether a few vectors hold them.
static bool has_parts(const parts_t* p) {
  const pestle_strided_load_t* a = p->a;
  pestle_dtype_t dtype = (pestle_dtype_t)p->e->k->buffer.data[a->buffer].dtype;
  bool only = p->parts == 1;
  bool masked = only ? !is_whole(p) : is_tested(a);
  return p->parts <= MOST_PARTS && !(only && is_tested(a)) &&
         !(masked && pestle_dtype_size(dtype) < LEAST_MASKED);
}

static pestle_kir_id_t load_parts(const parts_t* p) {
  if (p->parts == 1) {
    pestle_kir_id_t part = load_only(p);
    return take_part(p, part, part, 0);
  }
  pestle_kir_id_t id = load_part(p, 0);
  for (int64_t part = 1; part < p->parts; ++part)
    id = take_part(p, id, load_part(p, part), part);
  return id;
}

pestle_kir_id_t pestle_emit_strided_load(pestle_emit_t* e,
                                         const pestle_strided_load_t* a,
                                         bool clamps) {
  parts_t p = {.e = e, .a = a};
  splats_t few;
  find_reach(&p, is_tested(a) ? (int64_t)a->lanes : e->valid);
  int64_t most = p.parts < MOST_PARTS ? p.parts + 1 : MOST_SPLATS;
  bool splats = !is_tested(a) && find_splats(&p, most, &few);
  if (p.high - p.low >= a->count || (!splats && !has_parts(&p))) {
    return PESTLE_KIR_NONE;
  }
  p.first = pestle_emit_scalar_index(e, a->first);
  if (clamps) {
    p.first = pestle_emit_clamp(e, p.first, -p.low, a->count - 1 - p.high);
  }
  if (p.low == p.high) {
    return pestle_kir_load(e->k, a->buffer, 1, p.first, PESTLE_KIR_NONE, 0);
  }
  return splats ? load_splats(&p, &few) : load_parts(&p);
}
