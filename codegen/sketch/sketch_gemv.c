// SPDX-License-Identifier: Apache-2.0
// GEMV: a matrix times few vectors, or its columns reduced alone. Each element of the matrix
// is used once a vector, so it is read at the speed of memory or not at all. It is
// read as it lies, in runs as long as can be: tiles of a GEMM jump from row to row
// after 256 bytes, which prefetchers do not follow. Measured for [1, 4096] x [4096,
// 4096] f32, plain loops: 7.5 ms by 64 columns, 4.3 by 256, 2.6 by whole rows; the
// rows of the transposed matrix one after the other 2.5; a sum of 64 MiB 2.0. Sums
// of the columns of [4096, 4096]: 12.3 ms by 64 columns, 4.4 by rows of panels of 1024
// or 4096, 8 at a time; 6.1 by one row at a time.
#include "base/bits.h"
#include "codegen/sketch/choice.h"
#include "codegen/sketch/sketch.h"

enum {
  // More vectors are a GEMM: its tiles read the matrix once in 6.
  MOST_VECTORS = 8,
  // Shorter rows cost more to add up than to read, for each vector. Measured: 64
  // elements gain 1.8 for one vector and lose 0.8 for eight; 128 gain 1.4 for four.
  LEAST_REDUCTION = 64,
  REDUCTION_PER_VECTOR = 16,
  // Accumulators of a row: chains of 4 cycles, 1 multiply-add a cycle.
  CHAINS = 4,
  // Rows of the matrix side by side, so that a vector's elements are loaded once
  // for all: eight vectors of 4096 do not stay in L1d. One vector does.
  // Measured, 8 vectors: 1 row 9.2 ms, 3 rows 3.3.
  MOST_ROWS = 4,
  // Such blocks of rows that a group reduces: 256 KiB of rows of 4096.
  GROUP_BLOCKS = 4,
  GROUP_ROWS = 16,
  // Elements of a sum in one accumulator or in lanes, before it is put aside.
  SUM_CHAIN = 8192,
  // Rows that are read side by side: one stream each. Measured: 4 and 16 are
  // within 10 %.
  SIDE_ROWS = 8,
  // Columns whose sums wait in scratch: 16 KiB a vector, half of L1d.
  PANEL_COLUMNS = 4096,
  // Of a reduction of columns, in which the matrix has no operand beside it: a page of
  // each row, which is as far as prefetchers follow. Measured: 512 lose 10 %.
  REDUCE_COLUMNS = 1024,
  // Panels of cores that would have none else are at least as wide.
  LEAST_COLUMNS = 512,
  MOST_PANELS = 6,  // widths of them that --tune measures, each twice the last
  MANY_GROUPS = 4,  // of a core: they need not be even
  // Blocks of rows that are added up in a row in scratch.
  MOST_BLOCKS = 4096,
  // Reductions of what so many L2s hold are left to tiles.
  REDUCE_L2S = 1,
};

// What makes a product few vectors times a matrix. Positions are of map axes.
typedef struct gemv_t {
  int32_t row;              // along which only the vectors move; -1: one vector
  int64_t rows;             // vectors
  int32_t at;               // along which only the matrix moves
  uint32_t reduction;       // the one reduction axis
  int64_t elements;         // of the matrix, or of all of them
  pestle_operand_t matrix;  // along |at|
} gemv_t;

// The operand that moves along |axis|, if it is only one: its side, or -1.
static int find_mover(pestle_sketch_t* k, const pestle_nest_stage_t* f,
                      uint32_t axis, pestle_operand_t* out) {
  int found = -1;
  for (int side = 0; side < 2; ++side) {
    pestle_operand_t o =
        pestle_sketch_operand(k, f->values[0]->args[side], axis);
    if (o.tensor < 0) continue;
    if (found >= 0) return -1;
    *out = o;
    found = side;
  }
  return found;
}

// The map axes that belong to one operand each, |at| to the larger one.
static bool find_axes(pestle_sketch_t* k, const pestle_nest_stage_t* f,
                      gemv_t* t) {
  int32_t at[2] = {-1, -1};
  for (uint32_t i = 0; i < f->map_count; ++i) {
    int64_t extent = pestle_sketch_extent(k, f->roots[i]);
    t->elements *= extent;
    pestle_operand_t o;
    int side = extent > 1 ? find_mover(k, f, f->roots[i], &o) : -1;
    if (side < 0) continue;  // along a batch axis both move
    if (at[side] >= 0) return false;
    at[side] = (int32_t)i;
  }
  int larger = at[1] >= 0;
  if (at[0] >= 0 && at[1] >= 0) {
    larger = pestle_sketch_extent(k, f->roots[at[1]]) >=
             pestle_sketch_extent(k, f->roots[at[0]]);
  }
  t->at = at[larger];
  t->row = at[!larger];
  if (t->at < 0) return false;
  if (t->row >= 0) t->rows = pestle_sketch_extent(k, f->roots[t->row]);
  t->elements = t->elements / t->rows * pestle_sketch_reduction_extent(k, f);
  return find_mover(k, f, f->roots[t->at], &t->matrix) >= 0;
}

static bool find_gemv(pestle_sketch_t* k, uint32_t reduce, gemv_t* out) {
  const pestle_nest_stage_t* f = pestle_sketch_stage(k, reduce);
  if (!k->reassociate || k->nest->no_scratch || !pestle_sketch_is_product(f) ||
      !pestle_sketch_aligned(k, reduce) || !f->map_count ||
      f->map_count == PESTLE_MAX_RANK || f->root_count != f->map_count + 1 ||
      pestle_sketch_reduction_extent(k, f) < LEAST_REDUCTION) {
    return false;
  }
  *out =
      (gemv_t){.rows = 1, .reduction = f->roots[f->map_count], .elements = 1};
  return find_axes(k, f, out) && out->rows <= MOST_VECTORS &&
         pestle_sketch_reduction_extent(k, f) >=
             out->rows * REDUCTION_PER_VECTOR;
}

// A reduction along one strided axis of what lies side by side along the last.
static bool find_columns(pestle_sketch_t* k, uint32_t reduce, gemv_t* out) {
  const pestle_nest_stage_t* f = pestle_sketch_stage(k, reduce);
  if (!pestle_sketch_reorders(k, f) || f->combine || f->value_count != 1 ||
      k->nest->no_scratch || !pestle_sketch_aligned(k, reduce) ||
      !f->map_count || f->map_count == PESTLE_MAX_RANK ||
      f->root_count != f->map_count + 1 ||
      pestle_sketch_contiguous_reduce(k, f) >= 0 ||
      pestle_sketch_is_product(f)) {
    return false;
  }
  uint32_t last = f->roots[f->map_count - 1];
  pestle_stride_t along = pestle_sketch_strides(k, f, last);
  int64_t reduction = pestle_sketch_reduction_extent(k, f);
  *out = (gemv_t){.rows = 1,
                  .row = -1,
                  .at = (int32_t)f->map_count - 1,
                  .reduction = f->roots[f->map_count],
                  .elements = reduction};
  for (uint32_t i = 0; i < f->map_count; ++i) {
    out->elements *= pestle_sketch_extent(k, f->roots[i]);
  }
  return along.unit && !along.strided &&
         pestle_sketch_extent(k, last) >= REDUCE_COLUMNS &&
         reduction >= 2 * SIDE_ROWS &&
         reduction <= (int64_t)MOST_BLOCKS * SIDE_ROWS &&
         out->elements * PESTLE_SKETCH_ELEMENT > REDUCE_L2S * k->l2;
}

// |outputs|: what a vector has one result for each of.
static pestle_status_t explain(pestle_sketch_t* k, const gemv_t* t,
                               uint32_t reduce, const char* outputs,
                               int64_t side) {
  const pestle_nest_stage_t* f = pestle_sketch_stage(k, reduce);
  pestle_strbuf_t text;
  pestle_strbuf_init(k->nest->allocator, &text);
  pestle_strbuf_appendf(&text,
                        "no tiles: the matrix, %lld %s of %lld elements, is "
                        "used %lld %s only, so it "
                        "is read as it lies, %lld %s at a time",
                        (long long)pestle_sketch_extent(k, f->roots[t->at]),
                        outputs,
                        (long long)pestle_sketch_extent(k, t->reduction),
                        (long long)t->rows, t->rows == 1 ? "time" : "times",
                        (long long)side, side == 1 ? "row" : "rows");
  return pestle_sketch_keep_summary(k, &text);
}

// --- Estimates ---

static double bytes_of(const gemv_t* t) {
  return (double)t->elements * PESTLE_SKETCH_ELEMENT;
}

// Of rows of the matrix in order, |rows| of them side by side, sums in |parts|.
static double rows_cycles(const pestle_sketch_t* k, const gemv_t* t,
                          int64_t rows, int64_t parts) {
  pestle_core_rates_t rates = pestle_sketch_rates(k->caps);
  double fmas = (double)(rows * t->rows) / rates.fmas;
  double loads = (double)(rows + t->rows) / rates.loads;
  double wait = rates.latency / (double)parts;
  double step = fmas > loads ? fmas : loads;
  if (step < wait) step = wait;
  return pestle_sketch_beside_memory(
      k, (double)t->elements / (double)(rows * k->lanes) * step);
}

// Of some rows at a time, by panels of |width| columns: the sums of a block of rows
// are loaded and stored, and a run ends with a panel.
static double columns_cycles(pestle_sketch_t* k, const gemv_t* t,
                             int64_t width) {
  pestle_core_rates_t rates = pestle_sketch_rates(k->caps);
  int64_t sums = width * t->rows * PESTLE_SKETCH_ELEMENT;
  int64_t lines = width * PESTLE_SKETCH_ELEMENT / PESTLE_CPU_LINE;
  double vectors = (double)t->elements / (double)k->lanes;
  double steps = vectors * (double)t->rows / rates.fmas;
  double loads = vectors / rates.loads;
  double moved = bytes_of(t) / SIDE_ROWS * (double)t->rows * 2;
  double rate = sums <= k->l1 / 2
                    ? (double)(k->lanes * PESTLE_SKETCH_ELEMENT) * rates.loads
                    : rates.l2;
  double cycles = (steps > loads ? steps : loads) + moved / rate;
  double run =
      (double)(lines + PESTLE_CPU_FIRST_LINES) / (double)(lines ? lines : 1);
  double memory = pestle_sketch_bytes_cycles(k, bytes_of(t)) * run;
  return cycles > memory ? cycles : memory;
}

// --- Rows of the matrix, one after the other ---

// A constant matrix is packed instead, so that tiles read it in order.
static bool is_packed(pestle_sketch_t* k, uint32_t reduce, const gemv_t* t) {
  return t->matrix.constant &&
         t->at + 1 == (int32_t)pestle_sketch_stage(k, reduce)->map_count;
}

bool pestle_sketch_gemv_rows_fits(pestle_sketch_t* k, uint32_t reduce) {
  gemv_t t;
  if (!find_gemv(k, reduce, &t) || t.matrix.unit || is_packed(k, reduce, &t)) {
    return false;
  }
  pestle_stride_t along =
      pestle_sketch_strides(k, pestle_sketch_stage(k, reduce), t.reduction);
  return along.unit && !along.strided;
}

// Of |id|: the other map axes and the steps of its reduction, then the vectors and
// the rows of the matrix, unrolled.
static pestle_status_t rows_order(pestle_sketch_t* k, uint32_t id,
                                  const gemv_t* t, const uint32_t* parts,
                                  uint32_t part_count) {
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, id);
  uint32_t order[PESTLE_NEST_MAX_AXES], n = 0;
  uint32_t vectors = t->row >= 0 ? s->roots[t->row] : UINT32_MAX;
  uint32_t rows = s->roots[t->at];
  for (uint32_t i = 0; i < s->order_count; ++i) {
    uint32_t axis = s->order[i];
    bool part = part_count && (axis == parts[0] || axis == parts[1]);
    if (axis != vectors && axis != rows && !part) order[n++] = axis;
  }
  if (t->row >= 0) order[n++] = vectors;
  order[n++] = rows;
  for (uint32_t i = 0; i < part_count; ++i)
    order[n++] = parts[i];
  PESTLE_TRY(pestle_schedule_reorder(k->nest, id, order, n));
  if (t->row >= 0) {
    PESTLE_TRY(pestle_schedule_mark(k->nest, id, vectors, PESTLE_MARK_UNROLL));
  }
  return pestle_schedule_mark(k->nest, id, rows, PESTLE_MARK_UNROLL);
}

// Parts of a sum, if |chains| are side by side.
static int64_t parts_of_sum(int64_t chains) {
  return chains < CHAINS ? CHAINS / chains : 1;
}

// Lanes along the reduction, sums in |most| parts.
static pestle_status_t rows_lanes(pestle_sketch_t* k, uint32_t id,
                                  const gemv_t* t, int64_t most) {
  pestle_nest_t* nest = k->nest;
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, id);
  uint32_t reduction = s->roots[s->map_count], outer, inner, part[2];
  int64_t span = pestle_nest_axis_span(&nest->axes.data[reduction]);
  int64_t lanes = pestle_sketch_lanes(k, span);
  int64_t parts = pestle_sketch_min(most, span / lanes);
  if (parts < 1) parts = 1;
  PESTLE_TRY(pestle_schedule_split(nest, id, reduction, lanes * parts, &outer,
                                   &inner));
  PESTLE_TRY(pestle_schedule_split(nest, id, inner, lanes, &part[0], &part[1]));
  for (int i = 0; i < 2; ++i) {
    PESTLE_TRY(pestle_schedule_rfactor(nest, id, part[i], k->reassociate));
  }
  PESTLE_TRY(pestle_schedule_mark(nest, id, part[0], PESTLE_MARK_UNROLL));
  PESTLE_TRY(pestle_schedule_mark(nest, id, part[1], PESTLE_MARK_VECTOR));
  return rows_order(k, id, t, part, 2);
}

// Groups of blocks of rows, blocks, under which the reductions are, then the rows
// and the vectors.
static pestle_status_t rows_anchor(pestle_sketch_t* k, const gemv_t* t,
                                   int64_t rows, uint32_t* out_group,
                                   uint32_t* out_leaf) {
  pestle_nest_t* nest = k->nest;
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  uint32_t order[PESTLE_NEST_MAX_AXES], n = 0, inner, side;
  int64_t group = rows > 1 ? rows * GROUP_BLOCKS : GROUP_ROWS;
  PESTLE_TRY(pestle_schedule_split(nest, k->anchor, y->roots[t->at], group,
                                   out_group, &inner));
  PESTLE_TRY(
      pestle_schedule_split(nest, k->anchor, inner, rows, out_leaf, &side));
  y = pestle_sketch_stage(k, k->anchor);
  for (uint32_t i = 0; i < y->map_count; ++i) {
    if ((int32_t)i != t->row && (int32_t)i != t->at) order[n++] = y->roots[i];
  }
  order[n++] = *out_group;
  order[n++] = *out_leaf;
  uint32_t first = n;
  if (t->row >= 0) order[n++] = y->roots[t->row];
  order[n++] = side;
  PESTLE_TRY(pestle_schedule_reorder(nest, k->anchor, order, n));
  for (uint32_t i = first; i < n; ++i) {
    PESTLE_TRY(
        pestle_schedule_mark(nest, k->anchor, order[i], PESTLE_MARK_UNROLL));
  }
  return NULL;
}

typedef struct side_t {
  const pestle_sketch_t* k;
  const gemv_t* t;
  int64_t parts;
} side_t;

static double side_cycles(const void* user, int64_t rows) {
  const side_t* d = user;
  return rows_cycles(d->k, d->t, rows, d->parts);
}

// Rows of the matrix side by side; parts of a sum are those of the usual number.
static int64_t choose_side(const pestle_sketch_t* k, const gemv_t* t,
                           int64_t usual) {
  static const pestle_question_t q = {
      "side", "cycles of a core: multiply-adds, loads, waiting, bytes"};
  int64_t budget = k->registers * PESTLE_CPU_ACCUMULATORS_OF_4 / 4;
  side_t d = {.k = k, .t = t, .parts = parts_of_sum(t->rows * usual)};
  int64_t values[MOST_ROWS], each = t->rows * d.parts;
  pestle_numbers_t n = {
      .values = values, .usual = usual, .cost = side_cycles, .user = &d};
  for (int64_t x = 1; x <= MOST_ROWS && (x == 1 || x * each <= budget); ++x)
    values[n.count++] = x;
  return pestle_choose_number(k->nest, q, &n);
}

pestle_status_t pestle_sketch_gemv_rows(pestle_sketch_t* k, uint32_t reduce) {
  gemv_t t;
  uint32_t levels, group, leaf;
  if (!find_gemv(k, reduce, &t)) {
    return PESTLE_ERROR(INTERNAL, "scheduling '%s'", k->nest->name);
  }
  int64_t budget = k->registers * PESTLE_CPU_ACCUMULATORS_OF_4 / 4 / t.rows;
  int64_t rows = t.rows > 1 ? pestle_sketch_min(budget, MOST_ROWS) : 1;
  if (rows < 1) rows = 1;
  int64_t parts = parts_of_sum(t.rows * rows);
  rows = choose_side(k, &t, rows);
  PESTLE_TRY(explain(k, &t, reduce, "rows", rows));
  PESTLE_TRY(pestle_sketch_cascade(k, reduce, SUM_CHAIN, &levels));
  PESTLE_TRY(rows_anchor(k, &t, rows, &group, &leaf));
  for (uint32_t i = 0; i <= levels; ++i) {
    // Partial sums have their blocks as one more axis, the first.
    gemv_t level = t;
    if (i < levels) ++level.at;
    if (i < levels && level.row >= 0) ++level.row;
    PESTLE_TRY(i ? rows_order(k, reduce + i, &level, NULL, 0)
                 : rows_lanes(k, reduce, &level, parts));
  }
  uint32_t sum = reduce + levels;
  PESTLE_TRY(pestle_schedule_at(k->nest, sum, k->anchor, leaf));
  PESTLE_TRY(pestle_schedule_store(k->nest, sum, PESTLE_SCOPE_PRIVATE));
  PESTLE_TRY(pestle_sketch_place_levels(k, reduce, levels));
  return pestle_sketch_bind_groups(k, group);
}

// --- Some rows of the matrix at a time ---

bool pestle_sketch_gemv_columns_fits(pestle_sketch_t* k, uint32_t reduce) {
  gemv_t t;
  if (find_columns(k, reduce, &t)) return true;
  if (!find_gemv(k, reduce, &t) || !t.matrix.unit || t.matrix.constant) {
    return false;
  }
  pestle_core_rates_t rates = pestle_sketch_rates(k->caps);
  int64_t least =
      t.rows > 1 ? k->l3 / 2 + 1 : PESTLE_CPU_GEMV_LEAST_L2S * k->l2;
  if (rates.l3 < rates.crowded * PESTLE_CPU_FAST_L3)
    least = PESTLE_CPU_GEMV_FAR_L2S * k->l2;
  return t.at + 1 == (int32_t)pestle_sketch_stage(k, reduce)->map_count &&
         t.elements * PESTLE_SKETCH_ELEMENT >= least;
}

// Panels of columns in groups; of each a vector's results after another's.
static pestle_status_t columns_anchor(pestle_sketch_t* k, const gemv_t* t,
                                      int64_t width, uint32_t* out_panel) {
  pestle_nest_t* nest = k->nest;
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  uint32_t row = t->row >= 0 ? y->roots[t->row] : UINT32_MAX;
  uint32_t order[PESTLE_NEST_MAX_AXES], n = 0, columns, outer;
  PESTLE_TRY(pestle_schedule_split(nest, k->anchor, y->roots[y->map_count - 1],
                                   width, out_panel, &columns));
  PESTLE_TRY(pestle_sketch_vectorise(k, k->anchor, columns, CHAINS, &outer));
  y = pestle_sketch_stage(k, k->anchor);
  for (uint32_t i = 0; i < y->order_count; ++i) {
    if (y->order[i] == outer && t->row >= 0) order[n++] = row;
    if (y->order[i] != row) order[n++] = y->order[i];
  }
  return pestle_schedule_reorder(nest, k->anchor, order, n);
}

// The sum over blocks of rows: under each block its panel's columns.
static pestle_status_t columns_sum(pestle_sketch_t* k, uint32_t sum,
                                   const gemv_t* t, int64_t width,
                                   int64_t lanes, uint32_t* out_tile) {
  pestle_nest_t* nest = k->nest;
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, sum);
  uint32_t m = s->map_count, order[PESTLE_NEST_MAX_AXES], n = 0;
  uint32_t inner, first, j, v;
  PESTLE_TRY(pestle_schedule_split(nest, sum, s->roots[m - 1], width, out_tile,
                                   &inner));
  PESTLE_TRY(pestle_schedule_split(nest, sum, inner, lanes, &j, &v));
  s = pestle_sketch_stage(k, sum);
  for (uint32_t i = 0; i + 1 < m; ++i) {
    if ((int32_t)i != t->row) order[n++] = s->roots[i];
  }
  order[n++] = s->roots[m];
  order[n++] = *out_tile;
  first = n;
  if (t->row >= 0) order[n++] = s->roots[t->row];
  order[n++] = j;
  order[n++] = v;
  PESTLE_TRY(pestle_schedule_reorder(nest, sum, order, n));
  for (uint32_t i = first; i + 1 < n; ++i) {
    PESTLE_TRY(pestle_schedule_mark(nest, sum, order[i], PESTLE_MARK_UNROLL));
  }
  PESTLE_TRY(pestle_schedule_mark(nest, sum, v, PESTLE_MARK_VECTOR));
  return pestle_schedule_store(nest, sum, PESTLE_SCOPE_SHARED);
}

// Columns of a panel: |usual|, or fewer, whole tiles of them, so that as many panels
// fall to each core. Measured, [8, 1024] x [1024, 4096] of 2 threads: 1.02 -> 0.55
// ms.
static int64_t panel_columns(const pestle_sketch_t* k, const gemv_t* t,
                             int64_t usual) {
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  int64_t columns = pestle_sketch_extent(k, y->roots[y->map_count - 1]);
  int64_t cores = k->cores, tile = CHAINS * k->lanes;
  int64_t panels = pestle_ceil_div(columns, usual), groups = panels;
  for (uint32_t i = 0; i + 1 < y->map_count; ++i) {
    if ((int32_t)i != t->row) groups *= pestle_sketch_extent(k, y->roots[i]);
  }
  if (cores < 2 || groups % cores == 0 || groups >= MANY_GROUPS * cores) {
    return usual;
  }
  panels = pestle_ceil_div(panels, cores) * cores;
  int64_t even = pestle_ceil_div(columns, panels * tile) * tile;
  return even > LEAST_COLUMNS ? even : LEAST_COLUMNS;
}

typedef struct panels_t {
  pestle_sketch_t* k;
  const gemv_t* t;
} panels_t;

// Of all cores.
static double panel_cycles(const void* user, int64_t width) {
  const panels_t* p = user;
  const pestle_nest_stage_t* y = pestle_sketch_stage(p->k, p->k->anchor);
  int64_t columns = pestle_sketch_extent(p->k, y->roots[y->map_count - 1]);
  return pestle_sketch_group_cycles(p->k, columns_cycles(p->k, p->t, width),
                                    columns, width);
}

// Columns of a panel: whole tiles.
static int64_t choose_panel(pestle_sketch_t* k, const gemv_t* t,
                            int64_t usual) {
  static const pestle_question_t q = {
      "panel", "cycles of all cores: steps, sums, bytes, and waiting"};
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  int64_t columns = pestle_sketch_extent(k, y->roots[y->map_count - 1]);
  int64_t values[MOST_PANELS];
  panels_t p = {.k = k, .t = t};
  pestle_numbers_t n = {
      .values = values, .usual = usual, .cost = panel_cycles, .user = &p};
  for (int64_t x = LEAST_COLUMNS; n.count < MOST_PANELS && x / 2 < columns;
       x *= 2)
    values[n.count++] = x;
  return pestle_choose_number(k->nest, q, &n);
}

pestle_status_t pestle_sketch_gemv_columns(pestle_sketch_t* k,
                                           uint32_t reduce) {
  gemv_t t;
  uint32_t partial, panel, columns;
  bool alone = find_columns(k, reduce, &t);
  if (!alone && !find_gemv(k, reduce, &t)) {
    return PESTLE_ERROR(INTERNAL, "scheduling '%s'", k->nest->name);
  }
  PESTLE_TRY(explain(k, &t, reduce, "columns", SIDE_ROWS));
  PESTLE_TRY(pestle_schedule_partial(k->nest, reduce, t.reduction, SIDE_ROWS,
                                     k->reassociate, &partial));
  ++k->anchor;
  uint32_t sum = partial + 1;
  pestle_register_tile_t tile = {
      .reduce = partial,
      .row = t.row >= 0 ? t.row + 1 : -1,
      .rows = t.rows,
      .vectors = t.rows < CHAINS ? CHAINS / t.rows : 1,
      .lanes = 0};
  tile.lanes = pestle_sketch_lanes(
      k, pestle_sketch_extent(k, pestle_sketch_stage(k, sum)->roots[t.at]));
  int64_t width = panel_columns(k, &t, alone ? REDUCE_COLUMNS : PANEL_COLUMNS);
  width = choose_panel(k, &t, width);
  PESTLE_TRY(columns_anchor(k, &t, width, &panel));
  PESTLE_TRY(
      columns_sum(k, sum, &t, tile.vectors * tile.lanes, tile.lanes, &columns));
  PESTLE_TRY(pestle_schedule_at(k->nest, sum, k->anchor, panel));
  PESTLE_TRY(pestle_sketch_tile_reduce(k, &tile));
  PESTLE_TRY(pestle_schedule_at(k->nest, partial, sum, columns));
  return pestle_sketch_bind_groups(k, panel);
}

double pestle_sketch_gemv_estimate(pestle_sketch_t* k, uint32_t reduce,
                                   const char** out_form) {
  gemv_t t;
  *out_form = "gemv_columns";
  if (find_columns(k, reduce, &t)) return columns_cycles(k, &t, REDUCE_COLUMNS);
  if (!find_gemv(k, reduce, &t) || t.matrix.constant) return 0;
  const pestle_nest_stage_t* f = pestle_sketch_stage(k, reduce);
  int64_t columns = pestle_sketch_extent(k, f->roots[t.at]);
  if (t.matrix.unit && t.at + 1 == (int32_t)f->map_count) {
    return columns_cycles(k, &t, pestle_sketch_min(columns, PANEL_COLUMNS));
  }
  pestle_stride_t along = pestle_sketch_strides(k, f, t.reduction);
  *out_form = "gemv_rows";
  return along.unit && !along.strided ? rows_cycles(k, &t, 1, CHAINS) : 0;
}
