// SPDX-License-Identifier: Apache-2.0
// Which convolutions Winograd's algorithm takes, how it cuts them, and how many products
// that saves.
#include "codegen/template/winograd/winograd.h"

#include <string.h>

#include "base/bits.h"
#include "codegen/schedule/schedule.h"
#include "codegen/template/product.h"

// With the points 0, 1, -1 and infinity.
static double weight_of_four(int64_t i, int64_t tap) {
  if (i == 0) return tap == 0 ? -1 : 0;
  return i == 2 && tap == 1 ? -0.5 : 0.5;
}

double pestle_winograd_weight(int64_t count, int64_t i, int64_t tap) {
  if (i == count - 1) return tap == PESTLE_WINOGRAD_TAPS - 1;
  if (count < PESTLE_WINOGRAD_MOST) return weight_of_four(i, tap);
  if (i == 0) return tap == 0;
  double near = PESTLE_WINOGRAD_NEAR, far = PESTLE_WINOGRAD_FAR;
  double point = i <= 2 ? near : far, other = i <= 2 ? far : near;
  double scale = 2 * point * point * (point * point - other * other);
  double power = tap == 0 ? 1 : tap == 1 ? point : point * point;
  return (i % 2 || tap != 1 ? power : -power) / scale;
}

enum { MOST_TILES = 4096, MOST_ROWS = 32, MOST_LANES = 64 };

// --- What the input's side looks like ---

typedef struct forms_t {
  const pestle_nest_t* nest;
  pestle_winograd_t* w;
  bool ok;
} forms_t;

// Nothing is divided or looked up in it, and a tap moves as its map axis does.
static bool steps_alike(const pestle_affine_t* affine,
                        const pestle_winograd_t* w) {
  bool nested;
  for (uint32_t i = 0; i < affine->count; ++i) {
    if (affine->terms[i].atom->kind != PESTLE_ATOM_AXIS) return false;
  }
  return !pestle_affine_depends(affine, w->features) &&
         pestle_affine_coef(affine, w->high, &nested) ==
             pestle_affine_coef(affine, w->tap_high, &nested) &&
         pestle_affine_coef(affine, w->wide, &nested) ==
             pestle_affine_coef(affine, w->tap_wide, &nested);
}

// Narrows the tiles that are known to be inside by lo <= affine < hi.
static void narrow(forms_t* f, const pestle_expr_t* x) {
  pestle_winograd_t* w = f->w;
  bool nested;
  int64_t high = pestle_affine_coef(x->affine, w->high, &nested);
  int64_t wide = pestle_affine_coef(x->affine, w->wide, &nested);
  int64_t* inside = high ? w->inside_high : w->inside_wide;
  int64_t step = (high ? high : wide) * w->results;
  bool plain = x->affine->count <= 2 && (high > 0) != (wide > 0) && high >= 0 &&
               wide >= 0;
  if (!plain) {
    inside[1] = inside[0];
    return;
  }
  int64_t reach = (step / w->results) * (w->factors - 1);
  int64_t first = -pestle_floor_div(x->affine->constant - x->lo, step);
  int64_t last =
      pestle_floor_div(x->hi - 1 - x->affine->constant - reach, step);
  if (inside[0] < first) inside[0] = first;
  if (inside[1] > last + 1) inside[1] = last + 1;
  if (inside[1] < inside[0]) inside[1] = inside[0];
}

static void look(forms_t* f, const pestle_expr_t* x) {
  switch ((pestle_expr_kind_t)x->kind) {
    case PESTLE_EXPR_CONST:
      return;
    case PESTLE_EXPR_INSIDE:
      f->ok = f->ok && steps_alike(x->affine, f->w);
      if (f->ok) narrow(f, x);
      return;
    case PESTLE_EXPR_READ:
      f->ok = f->ok &&
              f->nest->tensors.data[x->i].kind == PESTLE_TENSOR_INPUT &&
              steps_alike(x->index[0], f->w);
      if (x->guard) look(f, x->guard);
      return;
    case PESTLE_EXPR_OP:
    case PESTLE_EXPR_CAST:
      for (int i = 0; i < 3; ++i) {
        if (x->args[i]) look(f, x->args[i]);
      }
      return;
    case PESTLE_EXPR_INDEX:
    case PESTLE_EXPR_BITCAST:
    case PESTLE_EXPR_DOT:
    case PESTLE_EXPR_ACC:
    case PESTLE_EXPR_VAL:
      f->ok = false;
  }
}

static void take_read(void* user, const pestle_expr_t* x) {
  const pestle_expr_t** read = user;
  *read = x;
}

// A read of |x|, or NULL.
static const pestle_expr_t* some_read(pestle_nest_t* nest,
                                      const pestle_expr_t* x) {
  const pestle_expr_t* read = NULL;
  pestle_status_t status = pestle_expr_visit_reads(nest, x, take_read, &read);
  if (status) pestle_nest_fail(nest, status);
  return read;
}

// |x|, or what the padded copy that it reads is made of.
static const pestle_expr_t* through_copy(pestle_nest_t* nest,
                                         const pestle_expr_t* x) {
  if (x->kind != PESTLE_EXPR_READ || x->guard) return x;
  const pestle_nest_tensor_t* t = &nest->tensors.data[x->i];
  if (t->kind != PESTLE_TENSOR_STAGE || t->stage < 0) return x;
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, (uint32_t)t->stage);
  if (!s->keep || s->is_reduction || s->value_count != 1) return x;
  const pestle_affine_t** map = pestle_arena_alloc_zero(
      nest->arena, nest->axes.size * sizeof(*map), _Alignof(pestle_affine_t*));
  if (!map) {
    pestle_nest_fail_memory(nest);
    return x;
  }
  for (uint32_t d = 0; d < s->map_count; ++d)
    map[s->roots[d]] = x->index[d];
  pestle_substitution_t how;
  pestle_substitution_init(nest, map, &how);
  return pestle_expr_substitute(nest, &how, s->values[0]);
}

// --- Axes ---

static bool is_weights(const pestle_nest_t* nest, const pestle_expr_t* x) {
  if (x->kind != PESTLE_EXPR_READ || x->guard || x->dtype != PESTLE_F32) {
    return false;
  }
  const pestle_nest_tensor_t* t = &nest->tensors.data[x->i];
  // Once the template has them they are packed.
  if (t->kind != PESTLE_TENSOR_INPUT || !t->constant ||
      (t->pack && !nest->template.row)) {
    return false;
  }
  for (uint32_t i = 0; i < x->index[0]->count; ++i) {
    if (x->index[0]->terms[i].atom->kind != PESTLE_ATOM_AXIS) return false;
  }
  return true;
}

static int64_t extent_of(const pestle_nest_t* nest, uint32_t axis) {
  return nest->axes.data[axis].full_extent;
}

// The reduction's axes: channels lie side by side in the input, the other two are
// taps; each of them moves the input as one map axis does.
static bool find_taps(pestle_nest_t* nest, const pestle_nest_stage_t* s,
                      const pestle_affine_t* at, pestle_winograd_t* w) {
  uint32_t taps[2], map[2], found = 0;
  bool nested, channels = false;
  for (uint32_t i = s->map_count; i < s->root_count; ++i) {
    uint32_t axis = s->roots[i];
    int64_t coef = pestle_affine_coef(at, axis, &nested);
    if (coef == 1 && !channels) {
      w->channels = axis;
      channels = true;
      continue;
    }
    if (extent_of(nest, axis) != PESTLE_WINOGRAD_TAPS || found == 2 || !coef) {
      return false;
    }
    uint32_t like = s->map_count;
    for (uint32_t m = 0; m < s->map_count; ++m) {
      bool same = pestle_affine_coef(at, s->roots[m], &nested) == coef;
      if (same && s->roots[m] != w->features &&
          (!found || map[0] != s->roots[m]))
        like = m;
    }
    if (like == s->map_count) return false;
    map[found] = s->roots[like];
    taps[found++] = axis;
  }
  if (found != 2 || !channels) return false;
  w->high = map[0], w->tap_high = taps[0];
  w->wide = map[1], w->tap_wide = taps[1];
  return true;
}

static bool find_last(pestle_nest_t* nest, const pestle_nest_stage_t* s,
                      pestle_winograd_t* w) {
  const pestle_nest_stage_t* y = pestle_nest_stage(nest, w->last);
  w->read = pestle_schedule_find_read(nest, w->last, s->tensors[0]);
  if (y->is_reduction || w->reduce == w->last || !w->read || w->read->guard) {
    return false;
  }
  int64_t covered = 1, all = 1;
  w->images = 1;
  for (uint32_t d = 0; d < s->map_count; ++d) {
    uint32_t axis = s->roots[d];
    int64_t extent = extent_of(nest, axis);
    int32_t last = pestle_product_last_axis(nest, w->read, d, extent);
    if (last == -2) return false;
    covered *= extent;
    if (axis == w->high) {
      w->last_high = last;
    } else if (axis == w->wide) {
      w->last_wide = last;
    } else if (axis == w->features) {
      w->last_features = last;
    } else if (w->batch_count < PESTLE_MAX_RANK) {
      w->batch[w->batch_count] = axis;
      w->last_batch[w->batch_count++] = last;
      w->images *= extent;
    }
  }
  for (uint32_t i = 0; i < y->root_count; ++i)
    all *= extent_of(nest, y->roots[i]);
  return covered == all && w->last_features >= 0;
}

static bool axes_are_whole(const pestle_nest_t* nest,
                           const pestle_nest_stage_t* s) {
  for (uint32_t i = 0; i < s->root_count; ++i) {
    if (!pestle_nest_axis_is_whole(&nest->axes.data[s->roots[i]])) return false;
  }
  return true;
}

bool pestle_winograd_find(pestle_nest_t* nest, uint32_t reduce, int64_t results,
                          pestle_winograd_t* w) {
  *w = (pestle_winograd_t){.reduce = reduce};
  if (results != PESTLE_WINOGRAD_SMALL && results != PESTLE_WINOGRAD_LARGE) {
    return false;
  }
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, reduce);
  int64_t factors = pestle_winograd_factors(results);
  *w = (pestle_winograd_t){.reduce = reduce,
                           .last = (uint32_t)nest->stages.size - 1,
                           .results = results,
                           .factors = factors,
                           .products = factors * factors};
  if (!pestle_product_is_sum(s) || s->acc_dtype != PESTLE_F32 ||
      s->map_count < 3 || s->root_count != s->map_count + 3 ||
      !axes_are_whole(nest, s)) {
    return false;
  }
  const pestle_expr_t* const* side = s->values[0]->args;
  int weights = is_weights(nest, side[1]) ? 1 : 0;
  if (!is_weights(nest, side[weights])) return false;
  w->weights = (uint32_t)side[weights]->i;
  w->x = through_copy(nest, side[1 - weights]);
  w->features = s->roots[s->map_count - 1];
  const pestle_expr_t* read = some_read(nest, w->x);
  if (!read || nest->tensors.data[read->i].kind != PESTLE_TENSOR_INPUT ||
      !find_taps(nest, s, read->index[0], w) || !find_last(nest, s, w)) {
    return false;
  }
  const pestle_affine_t* u = side[weights]->index[0];
  for (uint32_t i = 0; i + 1 < s->map_count; ++i) {
    if (pestle_affine_depends(u, s->roots[i])) return false;
  }
  w->height = extent_of(nest, w->high);
  w->width = extent_of(nest, w->wide);
  w->inputs = extent_of(nest, w->channels);
  w->outputs = extent_of(nest, w->features);
  w->tiles_high = pestle_ceil_div(w->height, results);
  w->tiles_wide = pestle_ceil_div(w->width, results);
  // What lies beyond the results' edge is guarded, if not by the padding then
  // by nothing at all: only whole tiles are inside.
  w->inside_high[1] = w->height / results;
  w->inside_wide[1] = w->width / results;
  forms_t f = {nest, w, true};
  look(&f, w->x);
  return f.ok && !nest->failed;
}

// --- The primitive ---

// The weights as factors: panels of |width| features, each [products][channels].
static pestle_status_t pack_weights(pestle_nest_t* nest,
                                    const pestle_winograd_t* w,
                                    const pestle_affine_t* at,
                                    const pestle_winograd_how_t* how) {
  pestle_nest_tensor_t* t = &nest->tensors.data[w->weights];
  bool nested;
  int64_t width = how->vectors * how->lanes;
  int64_t panels = pestle_ceil_div(w->outputs, width);
  int64_t feature = pestle_affine_coef(at, w->features, &nested);
  pestle_pack_axis_t axes[5] = {
      {.coef = feature * width,
       .extent = panels,
       .scale = width,
       .limit = w->outputs},
      {.coef = pestle_affine_coef(at, w->tap_high, &nested),
       .extent = w->factors},
      {.coef = pestle_affine_coef(at, w->tap_wide, &nested),
       .extent = w->factors},
      {.coef = pestle_affine_coef(at, w->channels, &nested),
       .extent = w->inputs},
      {.coef = feature, .extent = width, .scale = 1, .limit = w->outputs}};
  t->pack = pestle_arena_copy(nest->arena, axes, sizeof(axes),
                              _Alignof(pestle_pack_axis_t));
  if (!t->pack) return PESTLE_ERROR(OUT_OF_MEMORY, "packing '%s'", t->name);
  t->pack_count = 5;
  t->pack_offset = at->constant;
  t->packed_elements = pestle_winograd_elements(w, how);
  return NULL;
}

int64_t pestle_winograd_elements(const pestle_winograd_t* w,
                                 const pestle_winograd_how_t* how) {
  int64_t width = how->vectors * how->lanes;
  return pestle_ceil_div(w->outputs, width) * width * w->products * w->inputs;
}

// Whether the weights are as they lie, or packed for that.
static bool is_packed_for(const pestle_nest_t* nest, const pestle_winograd_t* w,
                          const pestle_winograd_how_t* how) {
  const pestle_nest_tensor_t* t = &nest->tensors.data[w->weights];
  return !t->pack ||
         (t->packer && t->packed_elements == pestle_winograd_elements(w, how));
}

bool pestle_winograd_fits(const pestle_winograd_t* w,
                          const pestle_winograd_how_t* how) {
  bool sizes = how->tiles_high > 0 && how->tiles_high <= MOST_TILES &&
               how->tiles_wide > 0 && how->tiles_wide <= MOST_TILES &&
               how->rows > 0 && how->rows <= MOST_ROWS && how->vectors > 0 &&
               how->vectors <= PESTLE_WINOGRAD_VECTORS && how->panels > 0 &&
               how->lanes > 1 && how->lanes <= MOST_LANES &&
               how->results == w->results &&
               pestle_is_pow2((uint64_t)how->lanes);
  return sizes && w->inputs % how->lanes == 0 &&
         pestle_ceil_div(w->outputs, how->vectors * how->lanes) % how->panels ==
             0;
}

pestle_winograd_how_t pestle_winograd_of(const pestle_nest_template_t* use) {
  const int64_t* i = use->ints;
  return (pestle_winograd_how_t){.tiles_high = i[0],
                                 .tiles_wide = i[1],
                                 .rows = i[2],
                                 .vectors = i[3],
                                 .lanes = i[4],
                                 .looped = i[5] != 0,
                                 .panels = i[6],
                                 .results = i[7]};
}

pestle_nest_template_t pestle_winograd_use(const pestle_template_t* row,
                                           uint32_t stage,
                                           const pestle_winograd_how_t* how) {
  return (pestle_nest_template_t){
      .row = row,
      .stage = stage,
      .ints = {how->tiles_high, how->tiles_wide, how->rows, how->vectors,
               how->lanes, how->looped, how->panels, how->results}};
}

pestle_status_t pestle_winograd_match(pestle_nest_t* nest,
                                      const pestle_nest_template_t* use) {
  pestle_winograd_t w;
  pestle_winograd_how_t how = pestle_winograd_of(use);
  if (pestle_winograd_find(nest, use->stage, how.results, &w) &&
      pestle_winograd_fits(&w, &how) && is_packed_for(nest, &w, &how)) {
    return NULL;
  }
  PESTLE_TRY(pestle_nest_status(nest));
  return PESTLE_ERROR(
      INVALID_ARGUMENT,
      "winograd %s: it must be a convolution of 3 x 3 taps in f32 with "
      "constant weights, whose channels lie side by side and are whole "
      "vectors, and which the last stage reads where it was made; at most "
      "32 rows, 8 vectors and 4096 x 4096 tiles, each of 2 or 4 results a "
      "side",
      pestle_nest_stage(nest, use->stage)->name);
}

pestle_status_t pestle_winograd_apply(pestle_nest_t* nest,
                                      const pestle_nest_template_t* use) {
  pestle_winograd_t w;
  pestle_winograd_how_t how = pestle_winograd_of(use);
  if (!pestle_winograd_find(nest, use->stage, how.results, &w)) {
    return pestle_nest_status(nest);
  }
  (void)pestle_schedule_own(nest, use->stage, w.weights);
  if (!pestle_winograd_find(nest, use->stage, how.results, &w)) {
    return pestle_nest_status(nest);
  }
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, use->stage);
  const pestle_expr_t* const* side = s->values[0]->args;
  const pestle_affine_t* at = side[side[0] == w.x ? 1 : 0]->index[0];
  nest->tensors.data[w.weights].packer = use->row;
  return pack_weights(nest, &w, at, &how);
}

uint64_t pestle_winograd_work(const pestle_nest_template_t* use, uint64_t ops) {
  enum { TAPS = PESTLE_WINOGRAD_TAPS * PESTLE_WINOGRAD_TAPS };
  pestle_winograd_how_t how = pestle_winograd_of(use);
  uint64_t results = (uint64_t)how.results;
  uint64_t factors = (uint64_t)pestle_winograd_factors(how.results);
  return ops / (results * results * TAPS) * factors * factors;
}
