// SPDX-License-Identifier: Apache-2.0
// chlo.ragged_dot: a product whose left side has an axis in groups of given sizes, one
// behind another. The body of its CUSTOM is dot_general, in one of three ways.
//
//   A free axis: each group has a right side of its own, along an axis that dot_general
//   takes for free. What is of another group is left out of the sum over groups.
//
//     %0 = dot_general %lhs, %rhs        // [m, k], [g, k, n] -> [m, g, n]
//     %1 = select %inside, %0, 0         // row m is in group g
//     %2 = reduce %1, add over g         // [m, n]; 0 behind the last group
//
//   Where rows [m, k] and matrices of groups are many, each row is multiplied by its own
//   group's alone: rows are brought to tiles of t rows of one group, and results back.
//
//     %0 = gather %lhs         // [tiles, t, k]; a tile's rows are of one group
//     %1 = gather %rhs         // [tiles, k, n], that group's matrix
//     %2 = dot_general %0, %1  // [tiles, t, n]
//     %3 = gather %2           // [m, n]
//     %4 = select %3, 0        // 0 behind the last group
//
//   A summed axis: each group has a sum of its own. Both sides are spread over groups,
//   with zeros outside of their own, and the new axis is one of the batch.
//
//   A batch axis: groups say nothing, as to jax.
//
// Sizes are a list, [g], or lists for the batch axes and those before the ragged one.
#include <stdio.h>
#include <string.h>

#include "ir/composite.h"
#include "ir/generic.h"
#include "ir/infer.h"

typedef struct ragged_t {
  pestle_arena_t* arena;
  pestle_formula_t s;
  pv_t *lhs, *rhs, *sizes;
  pestle_i64s_t lhs_batch, rhs_batch, lhs_sums, rhs_sums;
  int64_t axis;   // of |lhs|, the ragged one
  int64_t group;  // of |rhs|, in the first way
  int64_t groups;
} ragged_t;

// --- Attributes ---

static pestle_status_t wrong(const char* why) {
  return PESTLE_ERROR(MALFORMED, "'chlo.ragged_dot': %s", why);
}

// |known| has the names; one with a dot is a dialect's remark.
static pestle_status_t check_names(const pestle_generic_value_t* dict,
                                   const char* known) {
  for (const pestle_generic_entry_t* e = dict->entries; e; e = e->next) {
    if (pestle_str_is_one_of(e->key, known) ||
        pestle_str_find_char(e->key, '.') != SIZE_MAX)
      continue;
    return PESTLE_ERROR(UNSUPPORTED,
                        "'chlo.ragged_dot' has no attribute '%.*s' here",
                        e->key.size > 60 ? 60 : (int)e->key.size, e->key.data);
  }
  return NULL;
}

static pestle_status_t numbers_of(ragged_t* r,
                                  const pestle_generic_value_t* numbers,
                                  const char* name, pestle_i64s_t* out) {
  const pestle_generic_value_t* list = pestle_generic_find(numbers, name);
  *out = (pestle_i64s_t){NULL, 0};
  pestle_generic_t g = {.arena = r->arena};
  return list ? pestle_generic_i64s(&g, list, out) : NULL;
}

static pestle_status_t read_numbers(ragged_t* r,
                                    const pestle_generic_value_t* dict) {
  pestle_i64s_t ragged, group;
  const pestle_generic_value_t* n =
      pestle_generic_find(dict, "ragged_dot_dimension_numbers");
  if (!n || n->kind != PESTLE_GENERIC_DICT)
    return wrong("'ragged_dot_dimension_numbers' are missing");
  PESTLE_TRY(
      check_names(dict, "ragged_dot_dimension_numbers precision_config"));
  const pestle_generic_value_t* precision =
      pestle_generic_find(dict, "precision_config");
  if (precision) PESTLE_TRY(pestle_generic_precision(precision));
  PESTLE_TRY(
      check_names(n,
                  "lhs_batching_dimensions rhs_batching_dimensions "
                  "lhs_contracting_dimensions rhs_contracting_dimensions "
                  "lhs_ragged_dimensions rhs_group_dimensions"));
  PESTLE_TRY(numbers_of(r, n, "lhs_batching_dimensions", &r->lhs_batch));
  PESTLE_TRY(numbers_of(r, n, "rhs_batching_dimensions", &r->rhs_batch));
  PESTLE_TRY(numbers_of(r, n, "lhs_contracting_dimensions", &r->lhs_sums));
  PESTLE_TRY(numbers_of(r, n, "rhs_contracting_dimensions", &r->rhs_sums));
  PESTLE_TRY(numbers_of(r, n, "lhs_ragged_dimensions", &ragged));
  PESTLE_TRY(numbers_of(r, n, "rhs_group_dimensions", &group));
  if (ragged.count != 1)
    return wrong("'lhs_ragged_dimensions' must name one axis");
  if (group.count > 1)
    return wrong("'rhs_group_dimensions' must name one axis, or none");
  r->axis = ragged.data[0];
  r->group = group.count ? group.data[0] : -1;
  return NULL;
}

// --- Checks ---

// Whether |list| names some of |rank| axes, each once.
static bool are_axes(pestle_i64s_t list, int32_t rank) {
  uint32_t seen = 0;
  for (size_t i = 0; i < list.count; ++i) {
    int64_t axis = list.data[i];
    if (axis < 0 || axis >= rank || seen >> axis & 1) return false;
    seen |= UINT32_C(1) << axis;
  }
  return true;
}

// Whether |batch| and |sums| name some of |rank| axes, each once.
static bool are_apart(pestle_i64s_t batch, pestle_i64s_t sums, int32_t rank) {
  if (!are_axes(batch, rank) || !are_axes(sums, rank)) return false;
  for (size_t i = 0; i < sums.count; ++i) {
    if (pestle_i64s_has(batch, sums.data[i])) return false;
  }
  return true;
}

static bool is_free(const ragged_t* r) {
  return !pestle_i64s_has(r->lhs_batch, r->axis) &&
         !pestle_i64s_has(r->lhs_sums, r->axis);
}

// The axes of |lhs| for which sizes are stated apart.
static int32_t prefix_of(const ragged_t* r, int64_t* axes) {
  int32_t n = 0;
  if (pestle_i64s_has(r->lhs_batch, r->axis)) {
    for (size_t i = 0; r->lhs_batch.data[i] != r->axis; ++i)
      axes[n++] = r->lhs_batch.data[i];
    return n;
  }
  for (size_t i = 0; i < r->lhs_batch.count; ++i)
    axes[n++] = r->lhs_batch.data[i];
  if (is_free(r)) {
    for (int64_t i = 0; i < r->axis; ++i) {
      if (!pestle_i64s_has(r->lhs_batch, i) && !pestle_i64s_has(r->lhs_sums, i))
        axes[n++] = i;
    }
  } else {
    for (size_t i = 0; r->lhs_sums.data[i] != r->axis; ++i)
      axes[n++] = r->lhs_sums.data[i];
  }
  return n;
}

static pestle_status_t check_sizes(const ragged_t* r) {
  const pestle_type_t *sizes = r->sizes->type, *lhs = r->lhs->type;
  int64_t axes[PESTLE_MAX_RANK + 1];
  int32_t n = prefix_of(r, axes);
  bool right = pestle_dtype_is(sizes->dtype, PESTLE_KIND_INT) &&
               sizes->rank >= 1 && sizes->rank < PESTLE_MAX_RANK &&
               (sizes->rank == 1 || sizes->rank == n + 1);
  for (int32_t i = 0; right && i + 1 < sizes->rank; ++i)
    right = sizes->dims[i] == lhs->dims[axes[i]];
  if (right) return NULL;
  return wrong(
      "sizes must be integers, a list or one for the batch axes and "
      "those before the ragged one");
}

static pestle_status_t check(ragged_t* r, const pestle_generic_site_t* o) {
  if (o->operand_count != 3 || o->type_count != 1) {
    return wrong("takes three operands and has one result");
  }
  for (size_t i = 0; i < 3; ++i) {
    const pestle_type_t* type = o->operands[i]->type;
    if (!pestle_type_is_static(type))
      return wrong("extents that only a run tells are not supported");
  }
  r->lhs = o->operands[0];
  r->rhs = o->operands[1];
  r->sizes = o->operands[2];
  int32_t left = r->lhs->type->rank, right = r->rhs->type->rank;
  if (!are_apart(r->lhs_batch, r->lhs_sums, left) ||
      !are_apart(r->rhs_batch, r->rhs_sums, right) ||
      r->lhs_batch.count != r->rhs_batch.count ||
      r->lhs_sums.count != r->rhs_sums.count || r->axis < 0 ||
      r->axis >= left) {
    return wrong(
        "dimension numbers are no axes, name one twice, or are no "
        "pairs");
  }
  if (left == PESTLE_MAX_RANK || right == PESTLE_MAX_RANK ||
      o->types[0].rank == PESTLE_MAX_RANK) {
    return wrong("too many axes");
  }
  if (pestle_i64s_has(r->lhs_batch, r->axis)) return check_sizes(r);
  PESTLE_TRY(check_sizes(r));
  r->groups = r->sizes->type->dims[r->sizes->type->rank - 1];
  if (!is_free(r)) {
    return r->group < 0 ? NULL
                        : wrong("a summed axis leaves the right side whole");
  }
  if (r->group < 0 || r->group >= right ||
      pestle_i64s_has(r->rhs_batch, r->group) ||
      pestle_i64s_has(r->rhs_sums, r->group) ||
      r->rhs->type->dims[r->group] != r->groups) {
    return wrong("'rhs_group_dimensions' must name the axis of the groups");
  }
  return NULL;
}

// --- Groups ---

static pestle_attr_t list(pestle_attr_name_t name, pestle_i64s_t axes) {
  return (pestle_attr_t){
      .name = (uint16_t)name, .kind = PESTLE_ATTR_KIND_I64S, .as.i64s = axes};
}

static pv_t* zeros(ragged_t* r, const pestle_type_t* type) {
  static const uint64_t nothing[2] = {0, 0};
  pestle_constant_attrs_t attrs = {
      sizeof(attrs), {*type, nothing, pestle_dtype_size(type->dtype), true}};
  pv_t* out = NULL;
  if (!r->s.status)
    r->s.status = pestle_op_constant(&r->s.builder, &attrs, &out);
  return out;
}

// |a| in the shape of |type|, axis i as axes[i].
static pv_t* spread(ragged_t* r, pv_t* a, const pestle_type_t* type,
                    const int64_t* axes) {
  if (!a) return NULL;
  return pestle_f_broadcast(&r->s, a, type->rank, type->dims,
                            (pestle_i64s_t){axes, (size_t)a->type->rank});
}

static pv_t* sum_over(ragged_t* r, pv_t* a, int64_t axis) {
  if (!a) return NULL;
  pestle_type_t scalar = pestle_type_make(a->type->dtype, 0, NULL);
  pv_t* zero = zeros(r, &scalar);
  return pestle_f_reduce_from(&r->s, PESTLE_OP_ADD, a,
                              (pestle_i64s_t){&axis, 1}, zero);
}

// Where each group ends: the sums of sizes up to its own.
static pv_t* ends_of(ragged_t* r, pv_t* sizes) {
  if (!sizes) return NULL;
  pestle_type_t pairs = *sizes->type;
  int32_t from = pairs.rank - 1;
  int64_t axes[PESTLE_MAX_RANK];
  for (int32_t i = 0; i <= from; ++i)
    axes[i] = i;
  pairs.dims[pairs.rank++] = r->groups;
  pv_t* each = spread(r, sizes, &pairs, axes);
  pv_t* before = pestle_f_iota(&r->s, &pairs, from);
  before = pestle_f_le(&r->s, before, pestle_f_iota(&r->s, &pairs, from + 1));
  pv_t* none = zeros(r, &pairs);
  each = pestle_f_select(&r->s, before, each, none);
  return sum_over(r, each, from);
}

// Whether the place along |axis| of |type| is in the group that it stands at; axis
// i of the sizes is axes[i] of |type|.
static pv_t* is_inside(ragged_t* r, const pestle_type_t* type,
                       const int64_t* axes, int32_t axis) {
  pestle_formula_t* s = &r->s;
  pestle_dtype_t dtype = r->sizes->type->dtype;
  bool small = pestle_dtype_size(dtype) < 4 || dtype == PESTLE_I32;
  pv_t* sizes = pestle_f_convert(s, r->sizes, small ? PESTLE_I32 : PESTLE_I64);
  pv_t* ends = ends_of(r, sizes);
  pv_t* starts = pestle_f_subtract(s, ends, sizes);
  pestle_type_t counts = *type;
  counts.dtype = small ? PESTLE_I32 : PESTLE_I64;
  pv_t* at = pestle_f_iota(&r->s, &counts, axis);
  pv_t* begun = pestle_f_ge(s, at, spread(r, starts, type, axes));
  pv_t* before = pestle_f_lt(s, at, spread(r, ends, type, axes));
  return pestle_f_and(s, begun, before);
}

static pv_t* product(ragged_t* r, pv_t* lhs, pv_t* rhs, pestle_i64s_t lb,
                     pestle_i64s_t rb, pestle_i64s_t lc, pestle_i64s_t rc,
                     const pestle_type_t* type) {
  pestle_attr_t attrs[] = {list(PESTLE_ATTR_lhs_batching_dimensions, lb),
                           list(PESTLE_ATTR_rhs_batching_dimensions, rb),
                           list(PESTLE_ATTR_lhs_contracting_dimensions, lc),
                           list(PESTLE_ATTR_rhs_contracting_dimensions, rc)};
  return pestle_f_make(&r->s, PESTLE_OP_DOT_GENERAL, (pv_t*[]){lhs, rhs}, 2,
                       attrs, 4, type);
}

// --- The ways ---

// How many axes before |axis| are neither of the batch nor summed.
static int32_t free_before(pestle_i64s_t batch, pestle_i64s_t sums,
                           int64_t axis) {
  int32_t n = 0;
  for (int64_t i = 0; i < axis; ++i)
    n += !pestle_i64s_has(batch, i) && !pestle_i64s_has(sums, i);
  return n;
}

static pv_t* by_rows(ragged_t* r, const pestle_type_t* result) {
  int32_t batch = (int32_t)r->lhs_batch.count, rank = r->lhs->type->rank;
  int32_t rows = free_before(r->lhs_batch, r->lhs_sums, rank);
  int32_t row = batch + free_before(r->lhs_batch, r->lhs_sums, r->axis);
  int32_t at = batch + rows + free_before(r->rhs_batch, r->rhs_sums, r->group);
  pestle_type_t type = *result;
  if (at > type.rank) return NULL;
  for (int32_t i = type.rank++; i > at; --i)
    type.dims[i] = type.dims[i - 1];
  type.dims[at] = r->groups;
  pv_t* all = product(r, r->lhs, r->rhs, r->lhs_batch, r->rhs_batch,
                      r->lhs_sums, r->rhs_sums, &type);
  if (!all) return NULL;
  // Axes of the batch and rows before the ragged one come first.
  int64_t axes[PESTLE_MAX_RANK];
  int32_t last = r->sizes->type->rank - 1;
  for (int32_t i = 0; i < last; ++i)
    axes[i] = i;
  axes[last] = at;
  pv_t* inside = is_inside(r, &type, axes, row);
  pv_t* none = zeros(r, &type);
  return sum_over(r, pestle_f_select(&r->s, inside, all, none), at);
}

// --- Rows in tiles ---

enum {
  MOST_TILE = 512,
  COPY = 16,  // rows of a product that take as long as the copy of its matrix
};

typedef struct tiles_t {
  int64_t rows, tile, count;
} tiles_t;

// Whether tiles take clearly less than rows times the matrices of all groups.
static bool plan_tiles(const ragged_t* r, tiles_t* t) {
  const pestle_type_t *lhs = r->lhs->type, *rhs = r->rhs->type;
  if (lhs->rank != 2 || rhs->rank != 3 || r->axis != 0 || r->lhs_batch.count ||
      r->lhs_sums.count != 1 || r->sizes->type->rank != 1 ||
      lhs->dims[0] > INT32_MAX / 4 || r->groups > INT32_MAX / 4 / MOST_TILE) {
    return false;
  }
  t->rows = lhs->dims[0];
  t->tile = 1;
  while (t->tile < MOST_TILE && t->tile * r->groups < t->rows)
    t->tile *= 2;
  t->count = t->rows / t->tile + r->groups;
  if (t->count > t->rows) t->count = t->rows;
  double all = (double)t->rows * (double)r->groups;
  return 1.25 * (double)t->count * (double)(t->tile + COPY) < all;
}

// Element index[i] along |axis| of |a| for each i, as axis 0; outside, the nearest one.
static pv_t* take(ragged_t* r, pv_t* a, int64_t axis, pv_t* index) {
  int64_t offsets[PESTLE_MAX_RANK], sizes[PESTLE_MAX_RANK];
  if (!a || !index) return NULL;
  size_t rank = (size_t)a->type->rank;
  for (size_t i = 0; i < rank; ++i) {
    offsets[i] = (int64_t)i + 1;
    sizes[i] = (int64_t)i == axis ? 1 : a->type->dims[i];
  }
  pestle_attr_t attrs[] = {
      list(PESTLE_ATTR_offset_dims, (pestle_i64s_t){offsets, rank - 1}),
      list(PESTLE_ATTR_collapsed_slice_dims, (pestle_i64s_t){&axis, 1}),
      list(PESTLE_ATTR_start_index_map, (pestle_i64s_t){&axis, 1}),
      {PESTLE_ATTR_index_vector_dim, PESTLE_ATTR_KIND_I64, .as.i64 = 1},
      list(PESTLE_ATTR_slice_sizes, (pestle_i64s_t){sizes, rank})};
  return pestle_f_make(&r->s, PESTLE_OP_GATHER, (pv_t*[]){a, index}, 2, attrs,
                       5, NULL);
}

// The group in which each of 0 .. |count| - 1 lies, where groups have such |ends|; the last
// one behind them.
static pv_t* group_of(ragged_t* r, int64_t count, pv_t* ends) {
  static const int64_t to_second[] = {1};
  pestle_formula_t* s = &r->s;
  if (!ends) return NULL;
  pestle_type_t pairs =
      pestle_type_make(PESTLE_I32, 2, (int64_t[]){count, r->groups});
  pv_t* behind = pestle_f_iota(s, &pairs, 0);
  behind = pestle_f_ge(s, behind, spread(r, ends, &pairs, to_second));
  pv_t* group = sum_over(r, pestle_f_convert(s, behind, PESTLE_I32), 1);
  if (!group) return NULL;
  pv_t* last = pestle_f_splat(s, group, (double)(r->groups - 1));
  return pestle_f_minimum(s, group, last);
}

static pv_t* by_tiles(ragged_t* r, const tiles_t* t,
                      const pestle_type_t* result) {
  pestle_formula_t* s = &r->s;
  int64_t batch[] = {0}, left[] = {2}, right[] = {1};
  int64_t sum = r->rhs_sums.data[0], places = t->count * t->tile;
  int64_t n = result->dims[1], k = r->lhs->type->dims[1];
  right[0] += sum - (sum > r->group);
  pv_t* sizes = pestle_f_convert(s, r->sizes, PESTLE_I32);
  pv_t* ends = ends_of(r, sizes);
  pv_t* tiles = pestle_f_plus(s, sizes, (double)(t->tile - 1));
  if (!tiles || !ends) return NULL;
  tiles = pestle_f_divide(s, tiles, pestle_f_splat(s, tiles, (double)t->tile));
  pv_t* tile_ends = ends_of(r, tiles);
  // How much further a group's rows lie in tiles.
  pv_t* shift = pestle_f_subtract(s, tile_ends, tiles);
  shift = pestle_f_times(s, shift, (double)t->tile);
  shift = pestle_f_subtract(s, shift, pestle_f_subtract(s, ends, sizes));
  pv_t* of_tile = group_of(r, t->count, tile_ends);
  pestle_type_t grid =
      pestle_type_make(PESTLE_I32, 2, (int64_t[]){t->count, t->tile});
  pestle_type_t flat = pestle_type_make(PESTLE_I32, 1, &places);
  pv_t* row = pestle_f_iota(s, &flat, 0);
  pv_t* back = spread(r, take(r, shift, 0, of_tile), &grid, batch);
  row = pestle_f_subtract(s, row, pestle_f_reshape_to(s, back, &flat));
  pv_t* x = take(r, r->lhs, 0, row);
  x = pestle_f_reshape(s, x, 3, (int64_t[]){t->count, t->tile, k});
  pv_t* w = take(r, r->rhs, r->group, of_tile);
  pestle_type_t type =
      pestle_type_make(result->dtype, 3, (int64_t[]){t->count, t->tile, n});
  pestle_i64s_t first = {batch, 1};
  pv_t* y = x && w ? product(r, x, w, first, first, (pestle_i64s_t){left, 1},
                             (pestle_i64s_t){right, 1}, &type)
                   : NULL;
  y = pestle_f_reshape(s, y, 2, (int64_t[]){places, n});
  pestle_type_t rows = pestle_type_make(PESTLE_I32, 1, &t->rows);
  pv_t* at = pestle_f_iota(s, &rows, 0);
  pv_t* inside = group_of(r, t->rows, ends);
  at = pestle_f_add(s, at, take(r, shift, 0, inside));
  y = take(r, y, 0, at);
  // Behind the last group there is nothing.
  pestle_type_t all = *result;
  all.dtype = PESTLE_I32;
  pv_t* last = pestle_f_slice_axis(s, ends, 0, r->groups - 1, r->groups);
  last = spread(r, pestle_f_reshape(s, last, 0, NULL), &all, batch);
  pv_t* has = pestle_f_lt(s, pestle_f_iota(s, &all, 0), last);
  pv_t* none = zeros(r, result);
  return pestle_f_select(s, has, y, none);
}

// |x| for each group, with zeros outside of it; |axis| is the ragged one, |prefix|
// those for which sizes are stated apart.
static pv_t* apart(ragged_t* r, pv_t* x, const int64_t* prefix, int64_t axis) {
  pestle_type_t type = *x->type;
  int64_t axes[PESTLE_MAX_RANK];
  for (int32_t i = type.rank++; i > 0; --i)
    type.dims[i] = type.dims[i - 1];
  type.dims[0] = r->groups;
  for (int32_t i = 0; i < x->type->rank; ++i)
    axes[i] = i + 1;
  pv_t* wide = spread(r, x, &type, axes);
  int32_t last = r->sizes->type->rank - 1;
  for (int32_t i = 0; i < last; ++i)
    axes[i] = prefix[i] + 1;
  axes[last] = 0;
  pv_t* inside = is_inside(r, &type, axes, (int32_t)axis + 1);
  pv_t* none = zeros(r, &type);
  return pestle_f_select(&r->s, inside, wide, none);
}

// |list|, each axis one further on, behind axis 0 if |first|.
static pestle_i64s_t moved(pestle_i64s_t list, bool first, int64_t* data) {
  size_t n = 0;
  if (first) data[n++] = 0;
  for (size_t i = 0; i < list.count; ++i)
    data[n++] = list.data[i] + 1;
  return (pestle_i64s_t){data, n};
}

static pv_t* by_sums(ragged_t* r, const pestle_type_t* result) {
  enum { AXES = PESTLE_MAX_RANK + 1 };
  int64_t prefix[AXES], lb[AXES], rb[AXES], lc[AXES], rc[AXES];
  size_t pair = 0, batch = r->rhs_batch.count;
  while (r->lhs_sums.data[pair] != r->axis)
    ++pair;
  prefix_of(r, prefix);
  pv_t* lhs = apart(r, r->lhs, prefix, r->axis);
  for (size_t i = 0; i < batch; ++i)
    prefix[i] = r->rhs_batch.data[i];
  for (size_t i = 0; i < pair; ++i)
    prefix[batch + i] = r->rhs_sums.data[i];
  pv_t* rhs = apart(r, r->rhs, prefix, r->rhs_sums.data[pair]);
  return product(r, lhs, rhs, moved(r->lhs_batch, true, lb),
                 moved(r->rhs_batch, true, rb), moved(r->lhs_sums, false, lc),
                 moved(r->rhs_sums, false, rc), result);
}

// --- The op ---

static void print_axes(pestle_strbuf_t* out, const char* name,
                       pestle_i64s_t axes) {
  pestle_strbuf_appendf(out, "%s = [", name);
  for (size_t i = 0; i < axes.count; ++i) {
    pestle_strbuf_appendf(out, "%s%lld", i ? ", " : "",
                          (long long)axes.data[i]);
  }
  pestle_strbuf_append_char(out, ']');
}

// What the op says in one form, whoever wrote it: precision asks for nothing.
static void print_numbers(const ragged_t* r, pestle_strbuf_t* out) {
  pestle_i64s_t ragged = {&r->axis, 1}, group = {&r->group, r->group >= 0};
  pestle_strbuf_append_c(out,
                         "{ragged_dot_dimension_numbers = #chlo.ragged_dot<");
  print_axes(out, "lhs_batching_dimensions", r->lhs_batch);
  print_axes(out, ", rhs_batching_dimensions", r->rhs_batch);
  print_axes(out, ", lhs_contracting_dimensions", r->lhs_sums);
  print_axes(out, ", rhs_contracting_dimensions", r->rhs_sums);
  print_axes(out, ", lhs_ragged_dimensions", ragged);
  print_axes(out, ", rhs_group_dimensions", group);
  pestle_strbuf_append_c(out, ">}");
}

static pestle_status_t wrap_end(const pestle_generic_site_t* site,
                                const ragged_t* r, pestle_generic_wrap_t* wrap,
                                pv_t* y, pestle_node_t** out_node) {
  pestle_strbuf_t text;
  pestle_strbuf_init(site->arena->allocator, &text);
  print_numbers(r, &text);
  pestle_status_t status = pestle_strbuf_status(&text);
  if (!status) {
    status = pestle_generic_wrap_end(site, wrap, pestle_strbuf_view(&text), &y,
                                     1, out_node);
  }
  pestle_strbuf_deinit(&text);
  return status;
}

pestle_status_t pestle_generic_ragged_dot(const pestle_generic_site_t* site,
                                          const pestle_generic_value_t* dict,
                                          pestle_node_t** out_node) {
  ragged_t r = {.arena = site->arena};
  pestle_generic_wrap_t wrap;
  PESTLE_TRY(read_numbers(&r, dict));
  PESTLE_TRY(check(&r, site));
  PESTLE_TRY(pestle_generic_wrap_begin(site, &wrap));
  r.s.builder = wrap.inside;
  r.lhs = wrap.arguments[0];
  r.rhs = wrap.arguments[1];
  r.sizes = wrap.arguments[2];
  const pestle_type_t* result = &site->types[0];
  tiles_t tiles;
  pv_t* y = pestle_i64s_has(r.lhs_batch, r.axis)
                ? product(&r, r.lhs, r.rhs, r.lhs_batch, r.rhs_batch,
                          r.lhs_sums, r.rhs_sums, result)
            : !is_free(&r)           ? by_sums(&r, result)
            : plan_tiles(&r, &tiles) ? by_tiles(&r, &tiles, result)
                                     : by_rows(&r, result);
  PESTLE_TRY(r.s.status);
  if (!y || !pestle_type_equal(y->type, result))
    return wrong("the result has not the type that is written");
  return wrap_end(site, &r, &wrap, y, out_node);
}
