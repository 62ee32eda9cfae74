// SPDX-License-Identifier: Apache-2.0
// A depthwise convolution and the pointwise one that reads it, as one kernel (see
// passes/fuse_pairs.c). For a part of a row of the image, the first one's results and the
// maps behind it are made in scratch, where they stay in the L1; tiles of the second one
// read them there.
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "codegen/sketch/choice.h"
#include "codegen/sketch/sketch.h"

enum {
  // Groups of a core.
  GROUPS_OF_A_CORE = 4,
};

// The stage that |e| reads whole, of which it is a plain read; -1.
static int32_t stage_read(const pestle_nest_t* nest, const pestle_expr_t* e) {
  if (e->kind != PESTLE_EXPR_READ || e->guard || e->packed) return -1;
  const pestle_nest_tensor_t* t = &nest->tensors.data[e->i];
  return t->kind == PESTLE_TENSOR_STAGE ? t->stage : -1;
}

int32_t pestle_sketch_pair_middle(pestle_sketch_t* k) {
  int32_t reductions[2] = {-1, -1};
  uint32_t count = 0;
  for (uint32_t s = 0; s < k->anchor; ++s) {
    if (!pestle_sketch_stage(k, s)->is_reduction) continue;
    if (count == 2) return -1;
    reductions[count++] = (int32_t)s;
  }
  if (count != 2 || k->nest->no_scratch || pestle_sketch_has_lanes(k))
    return -1;
  const pestle_nest_stage_t* first =
      pestle_sketch_stage(k, (uint32_t)reductions[0]);
  const pestle_nest_stage_t* last =
      pestle_sketch_stage(k, (uint32_t)reductions[1]);
  if (!pestle_sketch_is_product(first) || !pestle_sketch_is_product(last) ||
      last->values[0]->kind != PESTLE_EXPR_OP || last->map_count != 4 ||
      first->map_count != 4) {
    return -1;
  }
  for (int side = 0; side < 2; ++side) {
    int32_t id = stage_read(k->nest, last->values[0]->args[side]);
    if (id <= reductions[0] || id >= reductions[1]) continue;
    const pestle_nest_stage_t* middle = pestle_sketch_stage(k, (uint32_t)id);
    bool images =
        !middle->is_reduction && !middle->keep && middle->map_count == 4;
    for (uint32_t i = 0; images && i < 3; ++i) {
      images = pestle_sketch_extent(k, middle->roots[i]) ==
               pestle_sketch_extent(k, last->roots[i]);
    }
    if (images) return id;
  }
  return -1;
}

typedef struct pair_t {
  pestle_sketch_t* k;
  const char *first, *middle, *last;  // stages
} pair_t;

static uint32_t stage_of(const pair_t* p, const char* name) {
  return (uint32_t)pestle_nest_find_stage(p->k->nest, name);
}

// Whether both products may be tiles: of the first beside the middle, of the other
// beside the anchor.
static bool are_tiles(pair_t* p) {
  pestle_sketch_t* k = p->k;
  uint32_t anchor = k->anchor;
  bool fits = pestle_sketch_tile_fits(k, stage_of(p, p->last));
  k->anchor = stage_of(p, p->middle);
  fits = fits && pestle_sketch_tile_fits(k, stage_of(p, p->first));
  k->anchor = anchor;
  return fits;
}

static pair_t name_stages(pestle_sketch_t* k) {
  pair_t p = {.k = k};
  for (uint32_t s = 0; s < k->anchor; ++s) {
    const pestle_nest_stage_t* st = pestle_sketch_stage(k, s);
    if ((int32_t)s == k->middle) p.middle = st->name;
    if (!st->is_reduction) continue;
    *((int32_t)s < k->middle ? &p.first : &p.last) = st->name;
  }
  return p;
}

bool pestle_sketch_pair_fits(pestle_sketch_t* k) {
  if (k->middle < 0) return false;
  pair_t p = name_stages(k);
  return p.first && p.middle && p.last && are_tiles(&p);
}

// The first convolution, its tiles under the loops of the middle stage. |*out_width|:
// results of a row of such a tile.
static pestle_status_t sketch_first(pair_t* p, int64_t* out_width) {
  pestle_sketch_t* k = p->k;
  uint32_t anchor = k->anchor, middle = stage_of(p, p->middle);
  uint32_t wide = pestle_sketch_stage(k, middle)->roots[2];
  k->anchor = middle;
  k->nested = true;
  PESTLE_TRY(pestle_sketch_tile(k, stage_of(p, p->first)));
  k->nested = false;
  k->anchor += anchor - middle;
  const pestle_nest_axis_t* a = &k->nest->axes.data[wide];
  *out_width = a->outer >= 0 ? a->factor : a->full_extent;
  return NULL;
}

// Rows of images of a group: as many groups for each core.
static int64_t rows_of(const pair_t* p) {
  const pestle_sketch_t* k = p->k;
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  int64_t height = pestle_sketch_extent(k, y->roots[1]);
  int64_t images = pestle_sketch_extent(k, y->roots[0]);
  int64_t groups = pestle_ceil_div(GROUPS_OF_A_CORE * k->cores, images);
  return pestle_ceil_div(height, pestle_sketch_min(groups, height));
}

// The loops of the anchor that others run under: strips' rows, tiles.
typedef struct loops_t {
  uint32_t group, row, tile;
} loops_t;

// The anchor goes down strips of |width| results, so that rows of windows find what
// the last one read in the L1; in each row of a strip all tiles of the second product
// read what is there of the first.
static pestle_status_t anchor_loops(pair_t* p, const pestle_register_tile_t* t,
                                    int64_t width, loops_t* out) {
  pestle_sketch_t* k = p->k;
  pestle_nest_t* nest = k->nest;
  uint32_t y = k->anchor, order[PESTLE_NEST_MAX_AXES], n = 0;
  uint32_t no, ni, ho, hi, strip, mt, mi, j, v;
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, y);
  uint32_t batch = s->roots[0], high = s->roots[1], wide = s->roots[2];
  uint32_t column = s->roots[3];
  PESTLE_TRY(
      pestle_schedule_split(nest, y, column, t->vectors * t->lanes, &no, &ni));
  PESTLE_TRY(pestle_schedule_split(nest, y, ni, t->lanes, &j, &v));
  PESTLE_TRY(pestle_schedule_split(nest, y, high, rows_of(p), &ho, &hi));
  PESTLE_TRY(pestle_schedule_split(nest, y, wide, width, &strip, &mt));
  PESTLE_TRY(pestle_schedule_split(nest, y, mt, t->rows, &mt, &mi));
  order[n++] = batch;
  out->group = order[n++] = ho;
  order[n++] = strip;
  out->row = order[n++] = hi;
  order[n++] = no;
  out->tile = order[n++] = mt;
  order[n++] = mi;
  order[n++] = j;
  order[n++] = v;
  PESTLE_TRY(pestle_schedule_reorder(nest, y, order, n));
  PESTLE_TRY(pestle_schedule_mark(nest, y, mi, PESTLE_MARK_UNROLL));
  PESTLE_TRY(pestle_schedule_mark(nest, y, j, PESTLE_MARK_UNROLL));
  return pestle_schedule_mark(nest, y, v, PESTLE_MARK_VECTOR);
}

static pestle_status_t sketch_last(pair_t* p, int64_t width, loops_t* out) {
  pestle_sketch_t* k = p->k;
  uint32_t last = stage_of(p, p->last);
  pestle_register_tile_t t = pestle_sketch_plain_tile(k, last);
  const pestle_nest_stage_t* f = pestle_sketch_stage(k, last);
  int64_t results = 1;
  for (uint32_t i = 0; i < 3; ++i)
    results *= pestle_sketch_extent(k, f->roots[i]);
  pestle_contract_t c = {.lanes = t.lanes,
                         .width = pestle_sketch_extent(k, f->roots[3]),
                         .height = width,
                         .batch = pestle_ceil_div(results, width),
                         .reduction = pestle_sketch_reduction_extent(k, f)};
  pestle_tiling_t x = pestle_sketch_choose_tiling(k, &c);
  t.row = 2;
  t.rows = x.rows;
  t.vectors = x.vectors;
  pestle_sketch_note(k,
                     "pair: %" PRId64
                     " results of a row of '%s' at a time, in "
                     "scratch, which tiles of %" PRId64 " rows x %" PRId64
                     " vectors of %" PRId64 " multiply",
                     width, p->middle, t.rows, t.vectors, t.lanes);
  int32_t packed, staged;
  PESTLE_TRY(pestle_sketch_pack_operand(k, &t, t.vectors * t.lanes, false,
                                        &packed, &staged));
  PESTLE_TRY(anchor_loops(p, &t, width, out));
  PESTLE_TRY(pestle_sketch_tile_reduce(k, &t));
  return pestle_schedule_at(k->nest, last, k->anchor, out->tile);
}

static double elements_of(const pestle_sketch_t* k,
                          const pestle_nest_stage_t* s) {
  double n = 1;
  for (uint32_t i = 0; i < s->map_count; ++i)
    n *= (double)pestle_sketch_extent(k, s->roots[i]);
  return n;
}

// Two kernels would write what passes between them, and read it.
static void decide_form(const pair_t* p) {
  static const pestle_question_t q = {
      "form",
      "cycles of a core: multiply-adds, and bytes between the convolutions"};
  const pestle_sketch_t* k = p->k;
  const pestle_nest_stage_t* reductions[] = {
      pestle_sketch_stage(k, stage_of(p, p->first)),
      pestle_sketch_stage(k, stage_of(p, p->last))};
  double cycles = 0;
  for (int i = 0; i < 2; ++i) {
    cycles += elements_of(k, reductions[i]) *
              (double)pestle_sketch_reduction_extent(k, reductions[i]) /
              (double)k->lanes / pestle_sketch_rates(k->caps).fmas;
  }
  double bytes = elements_of(k, pestle_sketch_stage(k, (uint32_t)k->middle)) *
                 PESTLE_SKETCH_ELEMENT;
  const pestle_option_t options[] = {
      {"pair", cycles},
      {"two-kernels", cycles + 2 * pestle_sketch_bytes_cycles(k, bytes)}};
  pestle_choose_fixed(k->nest, q, options, 2, 0);
}

pestle_status_t pestle_sketch_pair(pestle_sketch_t* k) {
  pair_t p = name_stages(k);
  decide_form(&p);
  int64_t width;
  loops_t loops;
  PESTLE_TRY(sketch_first(&p, &width));
  PESTLE_TRY(sketch_last(&p, width, &loops));
  uint32_t middle = stage_of(&p, p.middle);
  PESTLE_TRY(pestle_schedule_at(k->nest, middle, k->anchor, loops.row));
  PESTLE_TRY(pestle_schedule_store(k->nest, middle, PESTLE_SCOPE_SHARED));
  return pestle_sketch_bind_groups(k, loops.group);
}
