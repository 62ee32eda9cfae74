// SPDX-License-Identifier: Apache-2.0
// What a product by matrix units does with its sums: the last stage at each of
// them, two columns at a time, since a lane has two beside each other.
//
// Lanes that store their pairs themselves write 8 pieces of 16 bytes an
// instruction, and nothing is multiplied meanwhile. Where shared memory has room
// and the result is rows of whole runs, pairs are gathered there instead: strips
// of 128 bytes a row, two of them in turn a warpgroup, which are copied to the
// result while the warpgroup goes on.
#include "codegen/template/tensorise/emit.h"

enum { STRIPS = 2, PAIR = 2, ROWS_APART = 8 };

// Which of its warpgroup's lanes a lane is.
typedef struct seat_t {
  pestle_kir_id_t warp;           // of the warpgroup's four
  pestle_kir_id_t quad, in_quad;  // of the warp's eight; of its four lanes
} seat_t;

// Where the pairs of one strip of a tile are.
typedef struct strip_t {
  seat_t seat;
  pestle_kir_id_t first;  // eight columns each
  int64_t count;
  pestle_kir_id_t column;  // of the lane's first pair, in pairs
  pestle_kir_id_t slot;    // of the staged rows; PESTLE_KIR_NONE: not staged
} strip_t;

static pestle_dtype_t result_dtype(const pestle_tiles_t* t) {
  const pestle_nest_t* nest = t->e->nest;
  const pestle_nest_stage_t* y = &nest->stages.data[t->last];
  return nest->tensors.data[y->tensors[0]].type.dtype;
}

static int64_t strip_columns(const pestle_tiles_t* t) {
  return PESTLE_TILE_ROW / (int64_t)pestle_dtype_size(result_dtype(t));
}

static int64_t strip_elements(const pestle_tiles_t* t) {
  return PESTLE_WARPGROUP_ROWS * strip_columns(t);
}

// Where the result at the axes of the last stage lies.
typedef struct place_t {
  int64_t offset, row_stride, batch_stride;
} place_t;

// Elements from one row to the next, where rows follow each other so over all of
// their axes; else 0. |*terms| counts the axes that the place depends on.
static int64_t row_stride(const pestle_tiles_t* t, const pestle_affine_t* at,
                          uint32_t* terms) {
  int64_t stride = 0, rows = 1;
  for (uint32_t i = t->p.m_count; i-- > 0;) {
    bool nested = false;
    int64_t own = pestle_affine_coef(at, t->p.m_axis[i], &nested);
    if (nested) return 0;
    *terms += own != 0;
    if (t->p.m_extent[i] == 1) continue;
    if (!stride) stride = own;
    if (own != stride * rows) return 0;
    rows *= t->p.m_extent[i];
  }
  return stride;
}

// Whether it is rows of whole runs, as a tensor map takes them.
static bool find_place(const pestle_tiles_t* t, place_t* out) {
  const pestle_nest_stage_t* y = &t->e->nest->stages.data[t->last];
  int64_t of_chunk =
      PESTLE_TILE_CHUNK / (int64_t)pestle_dtype_size(result_dtype(t));
  if (y->value_count != 1 || !y->write_index[0]) return false;
  const pestle_affine_t* at = y->write_index[0][0];
  bool batched = t->p.batch > 1, nested[2] = {false, false};
  uint32_t terms = 0;
  *out = (place_t){.offset = at->constant};
  out->row_stride = row_stride(t, at, &terms);
  int64_t column = pestle_affine_coef(at, t->p.n_axis, &nested[0]);
  if (batched) {
    out->batch_stride = pestle_affine_coef(at, t->p.batch_axis, &nested[1]);
  }
  return column == 1 && !nested[0] && !nested[1] &&
         at->count == terms + 1u + batched && out->offset >= 0 &&
         out->row_stride > 0 && out->offset % of_chunk == 0 &&
         out->row_stride % of_chunk == 0 && out->batch_stride >= batched &&
         out->batch_stride % of_chunk == 0;
}

int64_t pestle_tiles_staged_bytes(const pestle_tiles_t* t) {
  pestle_dtype_t d = result_dtype(t);
  place_t place;
  bool mapped =
      d == PESTLE_BF16 || d == PESTLE_F16 || d == PESTLE_F32 || d == PESTLE_I32;
  if (!mapped || !find_place(t, &place)) return 0;
  if (t->columns / strip_columns(t) % t->how.parts) return 0;
  return t->consumers * STRIPS * PESTLE_WARPGROUP_ROWS * PESTLE_TILE_ROW;
}

void pestle_tiles_add_staged(pestle_tiles_t* t) {
  place_t place;
  if (!t->staged_bytes || !find_place(t, &place)) return;
  pestle_dtype_t d = result_dtype(t);
  t->staged = pestle_tiles_shared(
      t, "tile_y", d, t->staged_bytes / (int64_t)pestle_dtype_size(d), 1024);
  const pestle_map_dim_t dims[3] = {
      {t->p.n, strip_columns(t), 1},
      {t->p.m, PESTLE_WARPGROUP_ROWS, place.row_stride},
      {t->p.batch, 1, place.batch_stride}};
  uint32_t tensor = t->e->nest->stages.data[t->last].tensors[0];
  t->map_y = pestle_tiles_map(t, "map_y", t->e->buffer[tensor], d, place.offset,
                              dims, t->p.batch > 1 ? 3 : 2, NULL);
}

// --- Pairs ---

static void open_axis(pestle_emit_t* e, uint32_t axis, pestle_kir_id_t id) {
  e->open[axis] = true;
  e->value[axis] = pestle_affine_axis(e->nest, axis);
  e->axis_id[axis] = id;
}

typedef struct cut_t {
  uint32_t axis;
  bool found;
} cut_t;

static void look_for_cut(cut_t* cut, const pestle_affine_t* at) {
  bool nested = false;
  (void)pestle_affine_coef(at, cut->axis, &nested);
  cut->found |= nested;
}

static void visit_cut(void* user, const pestle_expr_t* read) {
  for (uint32_t d = 0; d < read->index_count; ++d)
    look_for_cut(user, read->index[d]);
}

// Whether the last stage reads or writes where a quotient of its column says.
static bool cuts_columns(const pestle_tiles_t* t) {
  pestle_nest_t* nest = t->e->nest;
  const pestle_nest_stage_t* y = pestle_nest_stage(nest, t->last);
  cut_t cut = {.axis = t->p.n_axis};
  pestle_nest_visit_values(nest, y, visit_cut, &cut);
  for (uint32_t v = 0; v < y->value_count; ++v) {
    if (y->write_index[v]) look_for_cut(&cut, y->write_index[v][0]);
  }
  return cut.found;
}

// The axes that rows are counted by, at |row|.
static void open_rows(const pestle_tiles_t* t, pestle_kir_id_t row) {
  pestle_kir_builder_t* k = t->e->k;
  int64_t left = t->p.m;
  for (uint32_t i = t->p.m_count; i-- > 0;) {
    int64_t extent = t->p.m_extent[i];
    pestle_kir_id_t at = row;
    if (extent == 1 && t->p.m_count > 1) {
      at = pestle_kir_index(k, 0);
    } else if (left > extent) {
      at = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, row, extent);
      row = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, row, extent);
    } else if (t->p.m_count > 1) {
      // What is said of |row| around this is not known of its quotient.
      at = pestle_kir_scalar_i(k, PESTLE_OP_MINIMUM, row, extent - 1);
    }
    left /= extent;
    open_axis(t->e, t->p.m_axis[i], at);
  }
}

// The pair of sums as the box of the product that the last stage reads.
static void show_pair(const pestle_tiles_t* t) {
  pestle_emit_t* e = t->e;
  pestle_nest_t* nest = e->nest;
  uint32_t tensor = pestle_nest_stage(nest, t->reduce)->tensors[0];
  pestle_box_t* box = &e->box[tensor];
  const pestle_nest_axis_t* n = &nest->axes.data[t->p.n_axis];
  e->buffer[tensor] = t->pair;
  box->known = true;
  box->count = 2;
  for (uint32_t d = 0; d < t->p.sum_rank; ++d) {
    int32_t axis = t->p.sum_axis[d];
    bool column = axis == (int32_t)t->p.n_axis;
    box->extent[d] = column ? 2 : 1;
    box->stride[d] = column ? 1 : 2;
    box->origin[d] =
        column ? pestle_affine_scale(
                     nest, pestle_affine_axis(nest, (uint32_t)n->outer), 2)
        : axis < 0 ? pestle_affine_const(nest, 0)
                   : e->coord[axis];
  }
  e->ready[tensor] = true;
}

// --- Sums of parts ---

// Where pair |half| of the lane's block |j| of eight columns is kept: a warpgroup's
// lanes write and read pieces that follow each other.
static pestle_kir_id_t part_at(const pestle_tiles_t* t, pestle_kir_id_t j,
                               int64_t half) {
  pestle_kir_builder_t* k = t->e->k;
  int64_t of_half = PESTLE_WARPGROUP * PAIR;
  pestle_kir_id_t at = pestle_kir_madi(
      k, t->warpgroup, t->columns / 8 * 2 * of_half,
      pestle_kir_index(k, (half - t->columns / 8 * 2) * of_half));
  at = pestle_kir_madi(k, j, 2 * of_half, at);
  return pestle_kir_madi(k, t->in_warpgroup, PAIR, at);
}

static pestle_kir_id_t load_sums(const pestle_tiles_t* t, pestle_kir_id_t j,
                                 int64_t half);

void pestle_tiles_keep_part(const pestle_tiles_t* t) {
  pestle_kir_builder_t* k = t->e->k;
  pestle_kir_id_t j = pestle_kir_unroll(k, "j", t->columns / 8);
  for (int64_t half = 0; half < 2; ++half) {
    pestle_kir_store(k, t->parts, part_at(t, j, half), load_sums(t, j, half),
                     PESTLE_KIR_NONE, PAIR * sizeof(float));
  }
  pestle_kir_end(k);
}

// From the first part to the last, in each group.
static pestle_kir_id_t add_parts(const pestle_tiles_t* t, pestle_kir_id_t j,
                                 int64_t half) {
  pestle_kir_builder_t* k = t->e->k;
  pestle_kir_id_t sum = PESTLE_KIR_NONE, zero = pestle_kir_index(k, 0);
  pestle_kir_id_t own = pestle_tiles_ref(t, t->parts, part_at(t, j, half));
  for (int64_t i = 0; i < t->how.parts; ++i) {
    pestle_kir_id_t from =
        pestle_tiles_address(t, PESTLE_KIR_REF_AT, own, pestle_kir_index(k, i));
    pestle_kir_id_t part =
        pestle_kir_put(k, (pestle_kir_inst_t){.op = PESTLE_KIR_LOAD_AT,
                                              .type = (uint8_t)t->p.sums,
                                              .lanes = PAIR,
                                              .arg = {from, zero}});
    sum = i ? pestle_kir_scalar(k, PESTLE_OP_ADD, sum, part, PESTLE_KIR_NONE)
            : part;
  }
  return sum;
}

// Sums that stand beside each other.
static pestle_kir_id_t load_pair(const pestle_tiles_t* t, pestle_kir_id_t j,
                                 int64_t half) {
  return t->how.parts > 1 ? add_parts(t, j, half) : load_sums(t, j, half);
}

static pestle_kir_id_t load_sums(const pestle_tiles_t* t, pestle_kir_id_t j,
                                 int64_t half) {
  pestle_kir_builder_t* k = t->e->k;
  pestle_kir_id_t sum[PAIR];
  for (int64_t i = 0; i < PAIR; ++i) {
    pestle_kir_id_t at =
        pestle_kir_madi(k, j, 2 * PAIR, pestle_kir_index(k, PAIR * half + i));
    sum[i] = pestle_kir_load(k, t->sums, 1, at, PESTLE_KIR_NONE, 0);
  }
  return pestle_kir_pair(k, sum[0], sum[1]);
}

// Element of a strip that pair |j| of the lane's row begins at. The swizzle puts
// chunk c of row r where chunk c ^ (r mod 8) would be; a lane's rows are its
// quad's number mod 8.
static pestle_kir_id_t staged_at(const pestle_tiles_t* t, const strip_t* s,
                                 pestle_kir_id_t j, int64_t half) {
  pestle_kir_builder_t* k = t->e->k;
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  int64_t of_chunk =
      PESTLE_TILE_CHUNK / (int64_t)pestle_dtype_size(result_dtype(t));
  int64_t chunks = 8 / of_chunk;  // that a quad's pairs fill
  const seat_t* seat = &s->seat;
  pestle_kir_id_t row =
      pestle_kir_madi(k, seat->warp, 16,
                      pestle_kir_madi(k, seat->quad, 1,
                                      pestle_kir_index(k, ROWS_APART * half)));
  pestle_kir_id_t in_chunk = seat->in_quad;
  pestle_kir_id_t chunk = pestle_kir_madi(k, j, 1, zero);
  if (chunks > 1) {
    in_chunk =
        pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, seat->in_quad, 4 / chunks);
    chunk = pestle_kir_madi(
        k, j, chunks,
        pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, seat->in_quad, 4 / chunks));
  }
  chunk = pestle_tiles_op(t, PESTLE_OP_XOR, chunk, seat->quad);
  pestle_kir_id_t at = pestle_kir_madi(k, row, strip_columns(t), s->slot);
  at = pestle_kir_madi(k, chunk, of_chunk, at);
  return pestle_kir_madi(k, in_chunk, PAIR, at);
}

static void store_pair(const pestle_tiles_t* t, const strip_t* s,
                       pestle_kir_id_t j, int64_t half) {
  pestle_emit_t* e = t->e;
  pestle_kir_builder_t* k = e->k;
  const pestle_nest_stage_t* y = pestle_nest_stage(e->nest, t->last);
  for (uint32_t v = 0; v < y->value_count; ++v) {
    pestle_kir_id_t value = pestle_emit_expr(e, y->values[v]);
    if (s->slot == PESTLE_KIR_NONE) {
      pestle_emit_store_stage(e, t->last, v, value);
      continue;
    }
    if (pestle_kir_lanes_of(k, value) == 1) {
      value = pestle_kir_splat(k, value, PAIR);
    }
    pestle_kir_store(k, t->staged, staged_at(t, s, j, half), value,
                     PESTLE_KIR_NONE,
                     PAIR * pestle_dtype_size(result_dtype(t)));
  }
}

// The pairs of |row| in a strip: the axes of the last stage are open at them.
static void emit_half(const pestle_tiles_t* t, const strip_t* s,
                      pestle_kir_id_t row, int64_t half) {
  pestle_emit_t* e = t->e;
  pestle_kir_builder_t* k = e->k;
  const pestle_nest_axis_t* n = &e->nest->axes.data[t->p.n_axis];
  bool rest_m = t->p.m % (t->rows * t->how.cluster) != 0,
       rest_n = t->p.n % t->columns != 0;
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  if (rest_m)
    pestle_kir_if(k, pestle_kir_scalar_i(k, PESTLE_OP_LT, row, t->p.m));
  pestle_kir_id_t i = pestle_kir_unroll(k, "j", s->count);
  pestle_kir_id_t j = pestle_kir_madi(k, i, 1, s->first);
  pestle_kir_id_t column = pestle_kir_madi(k, j, 4, s->column);
  if (rest_n) {
    pestle_kir_if(k,
                  pestle_kir_scalar_i(k, PESTLE_OP_LT, column, t->p.n / PAIR));
  }
  if (rest_n && cuts_columns(t)) {
    // What is said of |column| around this is not known of its quotient.
    column =
        pestle_kir_scalar_i(k, PESTLE_OP_MINIMUM, column, t->p.n / PAIR - 1);
  }
  size_t scope = pestle_emit_scope(e);
  if (t->p.batch_axis != UINT32_MAX) open_axis(e, t->p.batch_axis, t->batch);
  open_rows(t, row);
  open_axis(e, (uint32_t)n->outer, column);
  pestle_emit_open_vector(e, (uint32_t)n->inner, PAIR);
  e->open[n->inner] = true;
  e->value[n->inner] = pestle_affine_axis(e->nest, (uint32_t)n->inner);
  pestle_emit_coords(e, t->last);
  show_pair(t);
  pestle_kir_store(k, t->pair, zero, load_pair(t, j, half), PESTLE_KIR_NONE, 0);
  store_pair(t, s, i, half);
  pestle_emit_close_vector(e);
  pestle_emit_unscope(e, scope);
  if (rest_n) pestle_kir_end(k);
  pestle_kir_end(k);
  if (rest_m) pestle_kir_end(k);
}

// --- Strips ---

static void emit_halves(const pestle_tiles_t* t, const strip_t* s,
                        pestle_kir_id_t row) {
  pestle_kir_builder_t* k = t->e->k;
  for (int64_t half = 0; half < 2; ++half) {
    pestle_kir_id_t apart = pestle_kir_index(k, ROWS_APART * half);
    emit_half(t, s, pestle_kir_madi(k, row, 1, apart), half);
  }
}

static void sync_warpgroup(const pestle_tiles_t* t) {
  pestle_kir_act(t->e->k, PESTLE_KIR_SYNC, t->warpgroup, PESTLE_WARPGROUP, 0,
                 0);
}

static void open_leader(const pestle_tiles_t* t) {
  pestle_kir_if(t->e->k,
                pestle_kir_scalar_i(t->e->k, PESTLE_OP_EQ, t->in_warpgroup, 0));
}

// Copies the strip to its place in the result; what lies outside is left out.
static void copy_strip(const pestle_tiles_t* t, const strip_t* s,
                       pestle_kir_id_t strip) {
  pestle_kir_builder_t* k = t->e->k;
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  pestle_kir_id_t column =
      pestle_kir_madi(k, t->column, t->columns,
                      pestle_kir_madi(k, strip, strip_columns(t), zero));
  pestle_kir_id_t row = pestle_kir_madi(
      k, t->warpgroup, PESTLE_WARPGROUP_ROWS,
      pestle_kir_madi(k, t->row, t->rows,
                      pestle_kir_index(k, -PESTLE_WARPGROUP_ROWS)));
  pestle_kir_id_t rest = row;
  if (t->p.batch > 1) {
    rest = pestle_tiles_address(t, PESTLE_KIR_COORD, row, t->batch);
  }
  open_leader(t);
  pestle_kir_act(k, PESTLE_KIR_TILE_STORE,
                 pestle_tiles_ref(t, t->staged, s->slot), t->map_y,
                 pestle_tiles_address(t, PESTLE_KIR_COORD, column, rest), 0);
  pestle_kir_end(k);
}

static void emit_strips(const pestle_tiles_t* t, const seat_t* seat,
                        pestle_kir_id_t row, pestle_kir_id_t column) {
  pestle_kir_builder_t* k = t->e->k;
  pestle_kir_id_t zero = pestle_kir_index(k, 0);
  int64_t eights = strip_columns(t) / 8, elements = strip_elements(t);
  int64_t strips = t->columns / strip_columns(t) / t->how.parts;
  pestle_kir_id_t i = pestle_kir_unroll(k, "strip", strips), turn = i;
  // A tile of one strip takes the other slot than the tile before it.
  if (strips % STRIPS) turn = pestle_kir_madi(k, t->round, strips, i);
  if (t->how.parts > 1) i = pestle_kir_madi(k, t->rank, strips, i);
  pestle_kir_id_t slot =
      pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, turn, STRIPS);
  slot = pestle_kir_madi(k, slot, elements,
                         pestle_kir_index(k, -STRIPS * elements));
  strip_t s = {*seat, pestle_kir_madi(k, i, eights, zero), eights, column,
               pestle_kir_madi(k, t->warpgroup, STRIPS * elements, slot)};
  open_leader(t);
  pestle_kir_act(k, PESTLE_KIR_TILE_WAIT, STRIPS - 1, 0, 0, 0);
  pestle_kir_end(k);
  sync_warpgroup(t);
  emit_halves(t, &s, row);
  pestle_kir_act(k, PESTLE_KIR_TILE_FENCE, 0, 0, 0, 0);
  sync_warpgroup(t);
  copy_strip(t, &s, i);
  pestle_kir_end(k);
}

void pestle_tiles_results(const pestle_tiles_t* t) {
  pestle_kir_builder_t* k = t->e->k;
  pestle_kir_id_t in_warp =
      pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, t->in_warpgroup, 32);
  seat_t seat;
  seat.warp = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, t->in_warpgroup, 32);
  seat.quad = pestle_kir_scalar_i(k, PESTLE_OP_DIVIDE, in_warp, 4);
  seat.in_quad = pestle_kir_scalar_i(k, PESTLE_OP_REMAINDER, in_warp, 4);
  pestle_kir_id_t row = pestle_kir_madi(k, seat.warp, 16, seat.quad);
  row = pestle_kir_madi(
      k, t->warpgroup, PESTLE_WARPGROUP_ROWS,
      pestle_kir_madi(k, row, 1, pestle_kir_index(k, -PESTLE_WARPGROUP_ROWS)));
  row = pestle_kir_madi(k, t->row, t->rows, row);
  pestle_kir_id_t column =
      pestle_kir_madi(k, t->column, t->columns / PAIR, seat.in_quad);
  pestle_kir_alloc(k, t->pair);
  if (t->staged_bytes) {
    emit_strips(t, &seat, row, column);
    return;
  }
  int64_t blocks = t->columns / 8 / t->how.parts;
  strip_t s = {seat, pestle_kir_index(k, 0), blocks, column, PESTLE_KIR_NONE};
  if (t->how.parts > 1) s.first = pestle_kir_madi(k, t->rank, blocks, s.first);
  emit_halves(t, &s, row);
}

void pestle_tiles_finish(const pestle_tiles_t* t) {
  if (!t->staged_bytes) return;
  open_leader(t);
  pestle_kir_act(t->e->k, PESTLE_KIR_TILE_WAIT, 0, 0, 0, 0);
  pestle_kir_end(t->e->k);
}
