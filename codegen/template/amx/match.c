// SPDX-License-Identifier: Apache-2.0
// Which sums of products matrix registers take: two factors of a narrow type, read in
// runs, with little padding.
#include "codegen/template/amx/amx.h"

#include "base/bits.h"
#include "codegen/schedule/schedule.h"

// Padding of the innermost elements of k may make products so many times as many.
static const double MOST_PADDING = 1.5;

static bool is_plain(const pestle_affine_t* affine) {
  for (uint32_t i = 0; i < affine->count; ++i) {
    if (affine->terms[i].atom->kind != PESTLE_ATOM_AXIS) return false;
  }
  return true;
}

static int64_t step_of(const pestle_affine_t* affine, uint32_t axis) {
  bool nested;
  return pestle_affine_coef(affine, axis, &nested);
}

// The read that |side| is, where it lies in an argument at one flat index of
// axes alone; or NULL.
static const pestle_expr_t* plain_read(const pestle_nest_t* nest,
                                       const pestle_product_side_t* side) {
  const pestle_expr_t* x = side->value;
  if (x->kind != PESTLE_EXPR_READ || x->guard || x->packed ||
      !is_plain(x->index[0]) ||
      nest->tensors.data[x->i].type.dtype != side->dtype) {
    return NULL;
  }
  return x;
}

// --- Taps ---

typedef struct unit_t {
  uint32_t axis;
  bool found;
} unit_t;

static void find_unit(void* user, const pestle_expr_t* x) {
  unit_t* u = user;
  bool nested;
  if (pestle_affine_coef(x->index[0], u->axis, &nested) == 1 && !nested) {
    u->found = true;
  }
}

static bool is_unit(pestle_nest_t* nest, const pestle_product_side_t* side,
                    uint32_t axis) {
  unit_t u = {.axis = axis};
  pestle_status_t status =
      pestle_expr_visit_reads(nest, side->value, find_unit, &u);
  if (status) pestle_nest_fail(nest, status);
  return u.found;
}

// Reduction axes of more than one step, a's contiguous one last.
static void order_k(pestle_nest_t* nest, pestle_amx_t* m) {
  const pestle_product_axes_t* k = &m->p.k;
  int32_t inner = -1;
  for (uint32_t i = 0; i < k->count; ++i) {
    if (k->extent[i] > 1 && is_unit(nest, &m->p.a, k->reduce[i])) {
      inner = (int32_t)i;
    }
  }
  for (uint32_t i = 0; i < k->count; ++i) {
    if (k->extent[i] == 1 || (int32_t)i == inner) continue;
    m->k_axis[m->k_count++] =
        (pestle_amx_k_axis_t){.axis = k->reduce[i], .extent = k->extent[i]};
  }
  if (inner >= 0) {
    m->k_axis[m->k_count++] = (pestle_amx_k_axis_t){.axis = k->reduce[inner],
                                                    .extent = k->extent[inner]};
  }
  if (!m->k_count) {
    m->k_axis[m->k_count++] =
        (pestle_amx_k_axis_t){.axis = k->reduce[0], .extent = 1};
  }
}

// Whether a step of each element of k moves |affine| as far as the whole of the next one.
static bool follow(const pestle_amx_t* m, const pestle_affine_t* affine) {
  for (uint32_t i = 0; i + 1 < m->k_count; ++i) {
    const pestle_amx_k_axis_t* t = &m->k_axis[i + 1];
    if (step_of(affine, m->k_axis[i].axis) !=
        step_of(affine, t->axis) * t->extent) {
      return false;
    }
  }
  return true;
}

static bool number_k(pestle_amx_t* m, const pestle_expr_t* b) {
  m->joined = m->k_count == 1 || follow(m, b->index[0]);
  int64_t apart = 1;
  for (uint32_t i = m->k_count; i-- > 0;) {
    m->k_axis[i].apart = apart;
    apart *= m->k_axis[i].extent;
    if (!m->joined && i + 1 == m->k_count) {
      apart = pestle_ceil_div(apart, m->step) * m->step;
    }
  }
  m->depth = pestle_ceil_div(apart, m->step) * m->step;
  return m->joined || (double)m->depth <= MOST_PADDING * (double)m->p.k.all;
}

// --- Operands ---

// The bytes of a constant, or an argument that groups bring into order along
// one reduction axis.
static bool take_b(pestle_nest_t* nest, pestle_amx_t* m) {
  const pestle_expr_t* b = plain_read(nest, &m->p.b);
  m->constant = b && nest->tensors.data[b->i].constant;
  if (m->constant) return number_k(m, b);
  m->joined = true;
  m->k_axis[0].apart = 1;
  m->depth = pestle_ceil_div(m->p.k.all, m->step) * m->step;
  return m->k_count == 1;
}

static void look_at_a(pestle_nest_t* nest, pestle_amx_t* m) {
  const pestle_expr_t* a = plain_read(nest, &m->p.a);
  const pestle_product_axes_t* rows = &m->p.m;
  if (!a || !m->joined || m->depth != m->p.k.all || rows->all < m->tile_rows ||
      !follow(m, a->index[0]) ||
      step_of(a->index[0], m->k_axis[m->k_count - 1].axis) != 1) {
    return;
  }
  int64_t next = 0;
  for (uint32_t i = rows->count; i-- > 0;) {
    if (rows->extent[i] == 1) continue;
    int64_t stride = step_of(a->index[0], rows->reduce[i]);
    if (next && stride != next) return;
    if (!m->a_stride) m->a_stride = stride;
    next = stride * rows->extent[i];
  }
  m->direct = m->a_stride >= m->step && m->a_stride <= INT32_MAX / 16;
}

static bool find_column(pestle_amx_t* m) {
  uint32_t found = 0;
  const pestle_product_axes_t* n = &m->p.n;
  for (uint32_t i = 0; i < n->count; ++i) {
    if (n->extent[i] == 1) continue;
    m->column = n->reduce[i];
    m->last_column = n->last[i];
    ++found;
  }
  return found == 1;
}

// What the kernel has are these two stages.
static bool is_alone(const pestle_nest_t* nest, const pestle_amx_t* m) {
  for (uint32_t s = 0; s < nest->stages.size; ++s) {
    bool own = s == m->p.reduce || s == m->p.last;
    if (!own && !nest->stages.data[s].inlined) return false;
  }
  return nest->stages.data[m->p.last].value_count >= 1;
}

bool pestle_amx_find(pestle_nest_t* nest, uint32_t reduce, pestle_amx_t* m) {
  *m = (pestle_amx_t){.last_column = -1};
  if (!pestle_product_find(nest, reduce, PESTLE_UNITS_AMX, &m->p) ||
      !is_alone(nest, m) || !find_column(m) || !m->p.k.count) {
    return false;
  }
  bool bytes = m->p.sums == PESTLE_I32;
  m->word = bytes ? 4 : 2;
  m->step = m->word * PESTLE_AMX_SIDE;
  if (bytes) {
    m->kind = PESTLE_KIR_MREG_BYTES;
    if (m->p.a.dtype == PESTLE_I8) m->kind |= PESTLE_KIR_DOT4_A_SIGNED;
    if (m->p.b.dtype == PESTLE_I8) m->kind |= PESTLE_KIR_DOT4_B_SIGNED;
  }
  m->tile_rows = m->p.m.all > PESTLE_AMX_SIDE ? 32 : 16;
  m->tile_columns = m->p.n.all > PESTLE_AMX_SIDE ? 32 : 16;
  order_k(nest, m);
  if (!take_b(nest, m)) return false;
  look_at_a(nest, m);
  return !nest->failed;
}

// --- Sizes ---

int64_t pestle_amx_panels(const pestle_amx_t* m) {
  return pestle_ceil_div(m->p.n.all, m->tile_columns);
}

int64_t pestle_amx_pitch(const pestle_amx_t* m) {
  return (m->depth / m->step | 1) * m->step;
}

int64_t pestle_amx_scratch(const pestle_amx_t* m, const pestle_amx_how_t* how) {
  int64_t element = 4 / m->word;
  bool copies = !m->direct || m->p.m.all % m->tile_rows;
  int64_t rows = copies ? m->tile_rows * pestle_amx_pitch(m) + m->step : 0;
  int64_t columns = m->constant ? 0 : how->columns * m->depth;
  int64_t sums = 2 * m->tile_rows * m->tile_columns;  // of two tiles at most
  return (rows + columns) * element + sums * 4 + 256;
}

// --- The primitive ---

static void add_dim(pestle_nest_tensor_t* t, pestle_pack_axis_t dim) {
  t->pack[t->pack_count++] = dim;
  t->packed_elements *= dim.extent;
}

// Panels of columns; in each, register by register, words of elements of k.
static pestle_status_t pack_b(pestle_nest_t* nest, const pestle_amx_t* m) {
  const pestle_expr_t* b = m->p.b.value;
  const pestle_affine_t* at = b->index[0];
  pestle_nest_tensor_t* t = &nest->tensors.data[b->i];
  t->pack = PESTLE_ARENA_ARRAY(nest->arena, pestle_pack_axis_t,
                               2 * PESTLE_NEST_MAX_AXES + 6);
  if (!t->pack) return PESTLE_ERROR(OUT_OF_MEMORY, "packing '%s'", t->name);
  t->pack_offset = at->constant;
  t->packed_elements = 1;
  const pestle_product_axes_t* batch = &m->p.batch;
  int64_t column = step_of(at, m->column), columns = m->p.n.all;
  for (uint32_t i = 0; i < batch->count; ++i) {
    add_dim(t, (pestle_pack_axis_t){.coef = step_of(at, batch->reduce[i]),
                                    .extent = batch->extent[i]});
  }
  add_dim(t, (pestle_pack_axis_t){.coef = column * m->tile_columns,
                                  .extent = pestle_amx_panels(m),
                                  .scale = m->tile_columns,
                                  .limit = columns});
  const pestle_amx_k_axis_t* inner = &m->k_axis[m->k_count - 1];
  for (uint32_t i = 0; !m->joined && i + 1 < m->k_count; ++i) {
    add_dim(t, (pestle_pack_axis_t){.coef = step_of(at, m->k_axis[i].axis),
                                    .extent = m->k_axis[i].extent});
  }
  int64_t tap = step_of(at, inner->axis);
  int64_t depth = m->joined ? m->p.k.all : inner->extent;
  add_dim(t, (pestle_pack_axis_t){.coef = tap * m->step,
                                  .extent = pestle_ceil_div(depth, m->step),
                                  .scale = m->step,
                                  .reduction = 1});
  add_dim(t, (pestle_pack_axis_t){.coef = column * PESTLE_AMX_SIDE,
                                  .extent = m->tile_columns / PESTLE_AMX_SIDE,
                                  .scale = PESTLE_AMX_SIDE,
                                  .limit = columns});
  add_dim(t, (pestle_pack_axis_t){.coef = tap * m->word,
                                  .extent = PESTLE_AMX_SIDE,
                                  .scale = m->word,
                                  .reduction = 1});
  add_dim(t, (pestle_pack_axis_t){.coef = column,
                                  .extent = PESTLE_AMX_SIDE,
                                  .scale = 1,
                                  .limit = columns});
  add_dim(t, (pestle_pack_axis_t){.coef = tap,
                                  .extent = m->word,
                                  .scale = 1,
                                  .limit = depth,
                                  .reduction = 1});
  return NULL;
}

pestle_amx_how_t pestle_amx_of(const pestle_nest_template_t* use) {
  return (pestle_amx_how_t){.rows = use->ints[0], .columns = use->ints[1]};
}

pestle_status_t pestle_amx_match(pestle_nest_t* nest,
                                 const pestle_nest_template_t* use) {
  pestle_amx_t m;
  pestle_amx_how_t how = pestle_amx_of(use);
  if (pestle_amx_find(nest, use->stage, &m) && pestle_amx_fits(&m, &how)) {
    return NULL;
  }
  PESTLE_TRY(pestle_nest_status(nest));
  return PESTLE_ERROR(
      INVALID_ARGUMENT,
      "amx %s: it must be a sum of products of bf16 in f32, or of bytes in "
      "i32, with one axis of columns, that the last stage reads where it was "
      "made; by whole tiles of 16 or 32 rows and columns",
      pestle_nest_stage(nest, use->stage)->name);
}

pestle_status_t pestle_amx_apply(pestle_nest_t* nest,
                                 const pestle_nest_template_t* use) {
  pestle_amx_t m;
  if (!pestle_amx_find(nest, use->stage, &m)) return pestle_nest_status(nest);
  if (!m.constant) return NULL;
  (void)pestle_schedule_own(nest, use->stage, (uint32_t)m.p.b.value->i);
  if (!pestle_amx_find(nest, use->stage, &m)) return pestle_nest_status(nest);
  return pack_b(nest, &m);
}
