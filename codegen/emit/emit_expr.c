// SPDX-License-Identifier: Apache-2.0
// Expressions and memory accesses of a stage, at one point of the loop tree.
#include "base/fault.h"
#include "codegen/emit/emit_internal.h"
#include "codegen/schedule/schedule.h"

static pestle_kir_id_t lane_mask(pestle_emit_t* e) {
  return pestle_emit_mask(e, pestle_kir_index(e->k, 0));
}

// --- Tests ---

// Whether lo <= |affine| < hi.
static pestle_kir_id_t emit_between(pestle_emit_t* e,
                                    const pestle_affine_t* affine, int64_t lo,
                                    int64_t hi) {
  pestle_range_t range = pestle_affine_range(e->nest, affine);
  if (range.lo >= lo && range.hi < hi) {
    return pestle_kir_int(e->k, PESTLE_I1, 1, 1);
  }
  pestle_emit_index_t at = pestle_emit_index(e, affine);
  if (at.vector == PESTLE_KIR_NONE && at.step == 1 && range.lo >= lo) {
    return pestle_kir_mask(e->k, at.scalar, pestle_kir_index(e->k, hi),
                           e->lanes);
  }
  bool vector = at.vector != PESTLE_KIR_NONE || at.step != 0;
  pestle_kir_id_t i = vector ? pestle_emit_index_lanes(e, at) : at.scalar;
  unsigned lanes = pestle_kir_lanes_of(e->k, i);
  pestle_kir_id_t both = PESTLE_KIR_NONE;
  if (range.lo < lo) {
    both = pestle_kir_scalar(e->k, PESTLE_OP_GE, i,
                             pestle_emit_index_const(e, lanes, lo),
                             PESTLE_KIR_NONE);
  }
  if (range.hi >= hi) {
    pestle_kir_id_t below = pestle_kir_scalar(
        e->k, PESTLE_OP_LT, i, pestle_emit_index_const(e, lanes, hi),
        PESTLE_KIR_NONE);
    both = pestle_emit_both(e, both, below);
  }
  return both;
}

// --- Memory ---

static bool is_private(const pestle_nest_tensor_t* t) {
  return t->scope == PESTLE_SCOPE_PRIVATE || t->scope == PESTLE_SCOPE_LANES;
}

uint32_t pestle_emit_buffer(pestle_emit_t* e, uint32_t tensor) {
  if (e->buffer[tensor] != PESTLE_KIR_NONE) return e->buffer[tensor];
  const pestle_nest_tensor_t* t = &e->nest->tensors.data[tensor];
  pestle_kir_scope_t scope =
      is_private(t) ? PESTLE_KIR_PRIVATE : PESTLE_KIR_SHARED;
  e->buffer[tensor] = pestle_kir_add_buffer(
      e->k, t->name, scope, t->type.dtype,
      scope == PESTLE_KIR_PRIVATE && e->vector_axis >= 0 ? e->lanes : 1, 1, 0);
  return e->buffer[tensor];
}

const pestle_affine_t* pestle_emit_local(pestle_emit_t* e, uint32_t tensor,
                                         const pestle_affine_t* const* index) {
  const pestle_nest_tensor_t* t = &e->nest->tensors.data[tensor];
  const pestle_box_t* box = &e->box[tensor];
  const pestle_affine_t* flat = pestle_affine_const(e->nest, 0);
  if (e->nest->failed) return flat;  // the box may not have been found
  flat = pestle_emit_box_row(e, tensor);
  for (int32_t d = 0; d < t->type.rank; ++d) {
    const pestle_affine_t* at = pestle_emit_resolve(e, index[d]);
    at = pestle_affine_add(e->nest, at,
                           pestle_affine_scale(e->nest, box->origin[d], -1));
    flat = pestle_affine_add(e->nest, flat,
                             pestle_affine_scale(e->nest, at, box->stride[d]));
  }
  return flat;
}

// The element of a private buffer that |flat| is in: one has |lanes| of them,
// which stand for the remainder. Of a row that lanes share, the lane's own.
static pestle_kir_id_t private_index(pestle_emit_t* e,
                                     const pestle_nest_tensor_t* t,
                                     unsigned lanes,
                                     const pestle_affine_t* flat) {
  pestle_nest_t* nest = e->nest;
  int64_t divisor = lanes;
  for (uint32_t i = 0; t->scope == PESTLE_SCOPE_LANES && i < flat->count; ++i) {
    const pestle_term_t* term = &flat->terms[i];
    if (term->atom->kind != PESTLE_ATOM_AXIS ||
        nest->axes.data[term->atom->axis].mark != PESTLE_MARK_LANE_X) {
      continue;
    }
    const pestle_affine_t* lane = pestle_affine_axis(nest, term->atom->axis);
    flat = pestle_affine_add(nest, flat,
                             pestle_affine_scale(nest, lane, -term->coef));
    break;
  }
  if (t->scope == PESTLE_SCOPE_LANES) divisor = t->lane_stride;
  if (divisor > 1) flat = pestle_affine_div(nest, flat, divisor);
  return pestle_emit_scalar_index(e, flat);
}

static pestle_kir_id_t load_private(pestle_emit_t* e, uint32_t tensor,
                                    const pestle_affine_t* flat) {
  uint32_t buffer = e->buffer[tensor];
  unsigned lanes = e->k->buffer.data[buffer].lanes;
  return pestle_kir_load(
      e->k, buffer, lanes,
      private_index(e, &e->nest->tensors.data[tensor], lanes, flat),
      PESTLE_KIR_NONE, 0);
}

enum { MOST_TESTS = PESTLE_MAX_RANK };

// A test of a guard, and how far the index moves where what it tests does.
typedef struct taken_t {
  const pestle_affine_t* affine;
  int64_t lo, hi, times;  // lo <= affine <= hi
} taken_t;

// What is left of an index once the tests of a guard are taken from it.
typedef struct within_t {
  pestle_emit_t* e;
  const pestle_affine_t* rest;
  int64_t lo, hi;  // of what was taken
  taken_t tests[MOST_TESTS];
  uint32_t count;
} within_t;

static void take_tests(within_t* w, const pestle_expr_t* guard) {
  if (guard->kind == PESTLE_EXPR_OP && guard->op == PESTLE_OP_AND) {
    take_tests(w, guard->args[0]);
    take_tests(w, guard->args[1]);
    return;
  }
  if (guard->kind != PESTLE_EXPR_INSIDE || w->count == MOST_TESTS) return;
  const pestle_affine_t* inside = pestle_emit_resolve(w->e, guard->affine);
  for (uint32_t i = 0; i < inside->count; ++i) {
    const pestle_term_t* t = &inside->terms[i];
    bool nested;
    if (t->atom->kind != PESTLE_ATOM_AXIS || !t->coef) continue;
    int64_t coef = pestle_affine_coef(w->rest, t->atom->axis, &nested);
    int64_t times = coef / t->coef;
    if (nested || times <= 0 || coef % t->coef) continue;
    w->rest = pestle_affine_add(
        w->e->nest, w->rest, pestle_affine_scale(w->e->nest, inside, -times));
    w->lo += times * guard->lo;
    w->hi += times * (guard->hi - 1);
    w->tests[w->count++] = (taken_t){inside, guard->lo, guard->hi - 1, times};
    return;
  }
}

static within_t take_guard(pestle_emit_t* e, const pestle_expr_t* guard,
                           const pestle_affine_t* flat) {
  within_t w = {.e = e, .rest = flat};
  take_tests(&w, guard);
  return w;
}

// Whether the guard holds only where the index is one of |count| elements.
static bool keeps_within(const within_t* w, int64_t count) {
  pestle_range_t rest = pestle_affine_range(w->e->nest, w->rest);
  return rest.lo + w->lo >= 0 && rest.hi + w->hi < count;
}

// In a window: |flat| with what |guard| tests kept within its bounds, one test after
// the other, which serve all loads of a row or column and move out of the loop over
// channels. False: that does not keep it within |count| elements.
static bool window_index(pestle_emit_t* e, const pestle_expr_t* guard,
                         const pestle_affine_t* flat, int64_t count,
                         pestle_emit_index_t* out) {
  if (!e->in_window) return false;
  within_t w = take_guard(e, guard, flat);
  if (!keeps_within(&w, count)) return false;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < w.count; ++i) {
    const taken_t* test = &w.tests[i];
    pestle_range_t range = pestle_affine_range(e->nest, test->affine);
    if (range.lo < test->lo || range.hi > test->hi) {
      w.tests[kept++] = *test;
    } else {
      w.rest = pestle_affine_add(
          e->nest, w.rest,
          pestle_affine_scale(e->nest, test->affine, test->times));
    }
  }
  *out = pestle_emit_index(e, w.rest);
  if (out->vector != PESTLE_KIR_NONE) return false;
  for (uint32_t i = 0; i < kept; ++i) {
    const taken_t* test = &w.tests[i];
    pestle_kir_id_t place = pestle_emit_scalar_index(e, test->affine);
    place = pestle_emit_clamp(e, place, test->lo, test->hi);
    out->scalar = pestle_kir_madi(e->k, place, test->times, out->scalar);
  }
  return true;
}

// What the address of a whole vector at |flat| of a buffer that lies at a
// multiple of |base| is a multiple of, in bytes: at most its own size. 0: nothing
// is known.
static unsigned vector_align(const pestle_emit_t* e, unsigned size,
                             const pestle_affine_t* flat, uint32_t base) {
  int64_t bytes = (int64_t)size * e->lanes;
  if (e->valid < (int64_t)e->lanes) return 0;
  if (bytes > base) bytes = base;
  while (bytes > (int64_t)size && flat->constant * size % bytes)
    bytes /= 2;
  for (uint32_t i = 0; i < flat->count; ++i) {
    const pestle_atom_t* atom = flat->terms[i].atom;
    bool lane =
        atom->kind == PESTLE_ATOM_AXIS && (int32_t)atom->axis == e->vector_axis;
    while (!lane && bytes > (int64_t)size &&
           flat->terms[i].coef * size % bytes) {
      bytes /= 2;
    }
  }
  return bytes > (int64_t)size ? (unsigned)bytes : 0;
}

// Streaming stores are of whole vectors that are known to be aligned. Targets
// that move vectors by aligned instructions alone are told of all.
static unsigned store_align(const pestle_emit_t* e,
                            const pestle_nest_tensor_t* t,
                            const pestle_affine_t* flat) {
  unsigned size = pestle_dtype_size(t->type.dtype);
  unsigned bytes =
      vector_align(e, size, flat, t->align ? t->align : PESTLE_NEST_ALIGN);
  if (e->nest->wide_moves) return bytes;
  unsigned whole = size * e->lanes < 64 ? size * e->lanes : 64;
  return t->streamed && bytes == whole ? bytes : 0;
}

static unsigned load_align(const pestle_emit_t* e, uint32_t buffer,
                           const pestle_affine_t* flat) {
  if (!e->nest->wide_moves || e->k->failed) return 0;
  const pestle_kir_buffer_t* b = &e->k->buffer.data[buffer];
  return vector_align(e, pestle_dtype_size((pestle_dtype_t)b->dtype), flat,
                      b->align);
}

// What is left of |align| where the place is |most| instead, or 0.
static unsigned still_aligned(const pestle_emit_t* e, uint32_t buffer,
                              unsigned align, int64_t most) {
  if (!align) return 0;
  unsigned size =
      pestle_dtype_size((pestle_dtype_t)e->k->buffer.data[buffer].dtype);
  while (align > size && most * size % align)
    align /= 2;
  return align > size ? align : 0;
}

// Lanes that follow each other in memory, those for which |guard| holds.
static pestle_kir_id_t load_lanes(pestle_emit_t* e, uint32_t buffer,
                                  pestle_kir_id_t index,
                                  pestle_kir_id_t guard) {
  pestle_kir_id_t mask = lane_mask(e);
  mask = mask == PESTLE_KIR_NONE ? guard
                                 : pestle_kir_scalar(e->k, PESTLE_OP_AND, guard,
                                                     mask, PESTLE_KIR_NONE);
  return pestle_kir_load(e->k, buffer, e->lanes, index, mask, 0);
}

// |affine| at lane 0; |*out_step|: how far it moves from lane to lane.
static const pestle_affine_t* at_first_lane(pestle_emit_t* e,
                                            const pestle_affine_t* affine,
                                            int64_t* out_step) {
  bool nested;
  uint32_t axis = (uint32_t)e->vector_axis;
  *out_step = pestle_affine_coef(affine, axis, &nested);
  if (nested) *out_step = -1;
  return pestle_affine_add(
      e->nest, affine,
      pestle_affine_scale(e->nest, pestle_affine_axis(e->nest, axis),
                          -*out_step));
}

static void take_when(pestle_emit_t* e, const taken_t* t,
                      pestle_strided_load_t* a) {
  pestle_kir_id_t holds = emit_between(e, t->affine, t->lo, t->hi + 1);
  int64_t known;
  if (pestle_kir_is_int(e->k, holds, &known) && known) return;
  a->when = pestle_emit_both(e, a->when, holds);
}

// Takes from what keeps the index, which moves by |apart| from lane to lane, within
// bounds what says so of each element that lies between lanes, too. False: it does
// not.
static bool take_bounds(pestle_emit_t* e, const within_t* w, int64_t apart,
                        pestle_strided_load_t* a) {
  int64_t step;
  at_first_lane(e, w->rest, &step);
  if (step || apart < 2 || !keeps_within(w, a->count)) return false;
  for (uint32_t i = 0; i < w->count; ++i) {
    const taken_t* t = &w->tests[i];
    const pestle_affine_t* first = at_first_lane(e, t->affine, &step);
    if (!step) {
      take_when(e, t, a);
      continue;
    }
    if (step != apart || t->times != 1) return false;
    a->bounds[a->bound_count++] = (pestle_emit_bound_t){
        pestle_emit_scalar_index(e, first), pestle_affine_range(e->nest, first),
        t->lo, t->hi + 1};
  }
  return a->bound_count > 0;
}

// Lanes at |flat| that do not lie side by side, where |condition| holds, if it is
// one. NONE: they are gathered.
static pestle_kir_id_t load_apart(pestle_emit_t* e, uint32_t buffer,
                                  int64_t count, const pestle_affine_t* flat,
                                  const pestle_expr_t* condition, bool varies) {
  pestle_strided_load_t a;
  int64_t step;
  if (!pestle_emit_find_strided_load(e, flat, count, &a))
    return PESTLE_KIR_NONE;
  a.buffer = buffer;
  at_first_lane(e, flat, &step);
  if (varies) {
    within_t within = take_guard(e, condition, flat);
    if (!take_bounds(e, &within, step, &a)) return PESTLE_KIR_NONE;
  }
  return pestle_emit_strided_load(e, &a, condition && !varies);
}

// Whether the lanes of an access at |flat| move other than by as many elements each.
static bool is_uneven(const pestle_emit_t* e, const pestle_affine_t* flat) {
  bool nested = false;
  if (e->vector_axis >= 0) {
    pestle_affine_coef(flat, (uint32_t)e->vector_axis, &nested);
  }
  return nested;
}

// Whether what a guard tests moves evenly from lane to lane, so that a kernel's ranges
// show that its mask keeps the lanes within the buffer, too.
static bool tests_evenly(const within_t* w) {
  for (uint32_t i = 0; i < w->count; ++i) {
    if (is_uneven(w->e, w->tests[i].affine)) return false;
  }
  return true;
}

static pestle_kir_id_t load_memory(pestle_emit_t* e, uint32_t buffer,
                                   int64_t count, const pestle_affine_t* flat,
                                   const pestle_expr_t* condition) {
  pestle_kir_id_t guard =
      condition ? pestle_emit_expr(e, condition) : PESTLE_KIR_NONE;
  int64_t holds;
  bool guarded = guard != PESTLE_KIR_NONE &&
                 !(pestle_kir_is_int(e->k, guard, &holds) && holds);
  bool varies = guarded && pestle_kir_lanes_of(e->k, guard) > 1;
  if (!guarded) condition = NULL;
  if (is_uneven(e, flat)) {
    pestle_kir_id_t id = load_apart(e, buffer, count, flat, condition, varies);
    if (id != PESTLE_KIR_NONE) return id;
  }
  pestle_emit_index_t at;
  bool clamped =
      guarded && !varies && window_index(e, condition, flat, count, &at);
  if (!clamped) at = pestle_emit_index(e, flat);
  clamped |= !guarded;
  if (at.vector == PESTLE_KIR_NONE && !varies && at.step == 0) {
    if (!clamped) at.scalar = pestle_emit_clamp(e, at.scalar, 0, count - 1);
    return pestle_kir_load(e->k, buffer, 1, at.scalar, PESTLE_KIR_NONE, 0);
  }
  if (at.vector == PESTLE_KIR_NONE && !varies && at.step == 1) {
    unsigned align = guarded && clamped ? 0 : load_align(e, buffer, flat);
    if (!clamped) {
      int64_t most = count - e->valid;
      at.scalar = pestle_emit_clamp(e, at.scalar, 0, most);
      align = still_aligned(e, buffer, align, most);
    }
    return pestle_kir_load(e->k, buffer, e->lanes, at.scalar,
                           pestle_emit_mask(e, at.scalar), align);
  }
  if (at.vector == PESTLE_KIR_NONE && varies && at.step == 1) {
    within_t within = take_guard(e, condition, flat);
    if (keeps_within(&within, count) && tests_evenly(&within)) {
      return load_lanes(e, buffer, at.scalar, guard);
    }
  }
  if (at.vector == PESTLE_KIR_NONE && at.step && at.step != 1) {
    pestle_kir_id_t id = load_apart(e, buffer, count, flat, condition, varies);
    if (id != PESTLE_KIR_NONE) return id;
  }
  pestle_kir_id_t indices = pestle_emit_index_lanes(e, at);
  pestle_kir_id_t mask = lane_mask(e);
  if (guarded || mask != PESTLE_KIR_NONE) {
    indices = pestle_emit_clamp(e, indices, 0, count - 1);
  }
  return pestle_kir_gather(e->k, buffer, indices, mask);
}

static int64_t element_count(const pestle_nest_tensor_t* t) {
  return t->pack ? t->packed_elements : pestle_type_count(&t->type);
}

static pestle_kir_id_t emit_read(pestle_emit_t* e, const pestle_expr_t* x) {
  uint32_t tensor = (uint32_t)x->i;
  const pestle_nest_tensor_t* t = &e->nest->tensors.data[tensor];
  if (x->packed && t->kind == PESTLE_TENSOR_INPUT) {
    return pestle_emit_packed(e, x, e->buffer[tensor], element_count(t),
                              pestle_emit_resolve(e, x->index[0]));
  }
  if (t->kind == PESTLE_TENSOR_INPUT) {
    return load_memory(e, e->buffer[tensor], element_count(t),
                       pestle_emit_resolve(e, x->index[0]), x->guard);
  }
  const pestle_affine_t* flat = pestle_emit_local(e, tensor, x->index);
  if (is_private(t)) return load_private(e, tensor, flat);
  if (x->packed) {
    return pestle_emit_packed(e, x, pestle_emit_buffer(e, tensor),
                              pestle_emit_box_count(e, tensor), flat);
  }
  return load_memory(e, pestle_emit_buffer(e, tensor),
                     pestle_emit_box_count(e, tensor), flat, x->guard);
}

void pestle_emit_prefetch(pestle_emit_t* e, uint32_t tensor,
                          const pestle_affine_t* resolved) {
  pestle_emit_index_t at = pestle_emit_index(e, resolved);
  // Of a vector's lanes the first: they lie side by side, or each line apart.
  if (at.vector != PESTLE_KIR_NONE) return;
  pestle_kir_put(e->k,
                 (pestle_kir_inst_t){.op = PESTLE_KIR_PREFETCH,
                                     .type = PESTLE_NONE,
                                     .lanes = 1,
                                     .arg = {e->buffer[tensor], at.scalar}});
}

pestle_kir_id_t pestle_emit_load(pestle_emit_t* e, uint32_t tensor,
                                 const pestle_affine_t* resolved) {
  if (pestle_emit_has_failed(e)) return 0;
  const pestle_nest_tensor_t* t = &e->nest->tensors.data[tensor];
  if (is_private(t)) return load_private(e, tensor, resolved);
  return load_memory(e, pestle_emit_buffer(e, tensor),
                     pestle_emit_box_count(e, tensor), resolved, NULL);
}

void pestle_emit_store(pestle_emit_t* e, uint32_t tensor,
                       const pestle_affine_t* resolved, pestle_kir_id_t value) {
  if (pestle_emit_has_failed(e)) return;
  const pestle_nest_tensor_t* t = &e->nest->tensors.data[tensor];
  uint32_t buffer = pestle_emit_buffer(e, tensor);
  bool vector = e->vector_axis >= 0;
  if (vector && pestle_kir_lanes_of(e->k, value) == 1) {
    value = pestle_kir_splat(e->k, value, e->lanes);
  }
  if (is_private(t)) {
    unsigned lanes = e->k->buffer.data[buffer].lanes;
    pestle_kir_store(e->k, buffer, private_index(e, t, lanes, resolved), value,
                     PESTLE_KIR_NONE, 0);
    return;
  }
  pestle_emit_index_t at = pestle_emit_index(e, resolved);
  if (!vector || (at.vector == PESTLE_KIR_NONE && at.step == 1)) {
    pestle_kir_store(e->k, buffer, at.scalar, value,
                     pestle_emit_mask(e, at.scalar),
                     store_align(e, t, resolved));
    return;
  }
  pestle_kir_id_t mask = lane_mask(e);
  pestle_kir_id_t indices = pestle_emit_index_lanes(e, at);
  if (mask != PESTLE_KIR_NONE) {
    indices = pestle_emit_clamp(
        e, indices, 0,
        (t->kind == PESTLE_TENSOR_STAGE ? pestle_emit_box_count(e, tensor)
                                        : pestle_type_count(&t->type)) -
            1);
  }
  pestle_kir_put(e->k,
                 (pestle_kir_inst_t){.op = PESTLE_KIR_SCATTER,
                                     .type = PESTLE_NONE,
                                     .lanes = (uint8_t)e->lanes,
                                     .arg = {buffer, indices, value, mask}});
}

// --- Expressions ---

static pestle_kir_id_t emit_position(pestle_emit_t* e, const pestle_expr_t* x) {
  pestle_emit_index_t at =
      pestle_emit_index(e, pestle_emit_resolve(e, x->affine));
  bool vector = at.vector != PESTLE_KIR_NONE || at.step != 0;
  pestle_kir_id_t i = vector ? pestle_emit_index_lanes(e, at) : at.scalar;
  return pestle_kir_cast(e->k, i, (pestle_dtype_t)x->dtype);
}

static pestle_kir_id_t emit_op(pestle_emit_t* e, const pestle_expr_t* x) {
  pestle_kir_id_t args[3] = {PESTLE_KIR_NONE, PESTLE_KIR_NONE, PESTLE_KIR_NONE};
  for (int i = 0; i < 3; ++i) {
    if (x->args[i]) args[i] = pestle_emit_expr(e, x->args[i]);
  }
  if (x->op == PESTLE_OP_SUBTRACT && PESTLE_FAULT(swapped_operands)) {
    pestle_kir_id_t first = args[0];
    args[0] = args[1];
    args[1] = first;
  }
  return pestle_kir_scalar(e->k, (pestle_op_t)x->op, args[0], args[1], args[2]);
}

static pestle_kir_id_t emit_now(pestle_emit_t* e, const pestle_expr_t* x) {
  pestle_dtype_t dtype = (pestle_dtype_t)x->dtype;
  switch ((pestle_expr_kind_t)x->kind) {
    case PESTLE_EXPR_CONST:
      return pestle_kir_const(e->k, dtype, 1, x->f, x->i);
    case PESTLE_EXPR_INDEX:
      return emit_position(e, x);
    case PESTLE_EXPR_READ:
      return emit_read(e, x);
    case PESTLE_EXPR_OP:
      return emit_op(e, x);
    case PESTLE_EXPR_CAST:
      return pestle_kir_cast(e->k, pestle_emit_expr(e, x->args[0]), dtype);
    case PESTLE_EXPR_BITCAST:
      return pestle_kir_bitcast(e->k, pestle_emit_expr(e, x->args[0]), dtype);
    case PESTLE_EXPR_INSIDE:
      return emit_between(e, pestle_emit_resolve(e, x->affine), x->lo, x->hi);
    case PESTLE_EXPR_ACC:
      return e->acc_ids[x->i];
    case PESTLE_EXPR_VAL:
      return e->val_ids[x->i];
    case PESTLE_EXPR_DOT:
      return pestle_emit_dot(e, x, PESTLE_KIR_NONE);
  }
  return PESTLE_KIR_NONE;
}

size_t pestle_emit_scope(const pestle_emit_t* e) {
  return e->undo.size;
}

void pestle_emit_unscope(pestle_emit_t* e, size_t scope) {
  while (e->undo.size > scope) {
    pestle_memo_undo_t u = pestle_vec_pop(&e->undo);
    e->memo[u.expr] = u.before;
  }
}

void pestle_emit_take(pestle_emit_t* e, const pestle_expr_t* x,
                      pestle_kir_id_t id) {
  if (x->id >= e->memo_count) return;
  pestle_memo_undo_t u = {x->id, e->memo[x->id]};
  if (!pestle_vec_push(&e->undo, u)) {
    pestle_nest_fail_memory(e->nest);
    return;
  }
  e->memo[x->id] = id;
}

bool pestle_emit_has_failed(const pestle_emit_t* e) {
  if (e->nest->failed) e->k->failed = true;
  return e->k->failed;
}

pestle_kir_id_t pestle_emit_expr(pestle_emit_t* e, const pestle_expr_t* x) {
  if (pestle_emit_has_failed(e)) return 0;
  if (x->id < e->memo_count && e->memo[x->id] != PESTLE_KIR_NONE) {
    return e->memo[x->id];
  }
  pestle_kir_id_t id = emit_now(e, x);
  pestle_emit_take(e, x, id);
  return id;
}

// --- Hoisting ---

static bool expr_is_open(pestle_emit_t* e, const pestle_expr_t* x);

static bool axis_is_open(const pestle_emit_t* e, uint32_t axis) {
  const pestle_nest_axis_t* a = &e->nest->axes.data[axis];
  if (a->outer < 0) {
    bool vector = a->mark == PESTLE_MARK_VECTOR && a->full_extent > 1;
    return e->open[axis] || (a->extent == 1 && !vector);
  }
  return axis_is_open(e, (uint32_t)a->outer) &&
         axis_is_open(e, (uint32_t)a->inner);
}

static bool affine_is_open(pestle_emit_t* e, const pestle_affine_t* affine) {
  for (uint32_t i = 0; i < affine->count; ++i) {
    const pestle_atom_t* atom = affine->terms[i].atom;
    if (atom->kind == PESTLE_ATOM_AXIS && !axis_is_open(e, atom->axis)) {
      return false;
    }
    if (atom->affine && !affine_is_open(e, atom->affine)) return false;
    if (atom->value && !expr_is_open(e, atom->value)) return false;
  }
  return true;
}

static bool look_if_open(pestle_emit_t* e, const pestle_expr_t* x) {
  if (x->kind == PESTLE_EXPR_ACC || x->kind == PESTLE_EXPR_VAL) return false;
  if (x->kind == PESTLE_EXPR_READ &&
      e->nest->tensors.data[x->i].kind == PESTLE_TENSOR_STAGE &&
      !e->ready[x->i]) {
    return false;
  }
  if (x->affine && !affine_is_open(e, x->affine)) return false;
  for (uint32_t i = 0; i < x->index_count; ++i) {
    if (!affine_is_open(e, x->index[i])) return false;
  }
  if (x->guard && !expr_is_open(e, x->guard)) return false;
  for (int i = 0; i < 3; ++i) {
    if (x->args[i] && !expr_is_open(e, x->args[i])) return false;
  }
  return true;
}

// One look an expression and epoch: expressions share parts freely.
static bool expr_is_open(pestle_emit_t* e, const pestle_expr_t* x) {
  if (x->id >= e->memo_count) return look_if_open(e, x);
  if (e->memo[x->id] != PESTLE_KIR_NONE) return true;
  if (e->checked[x->id] >> 1 == e->epoch) return e->checked[x->id] & 1;
  bool open = look_if_open(e, x);
  e->checked[x->id] = e->epoch << 1 | (open ? 1u : 0u);
  return open;
}

static void hoist(pestle_emit_t* e, const pestle_expr_t* x, uint32_t mark) {
  if (x->kind == PESTLE_EXPR_CONST || x->id >= e->memo_count) return;
  if (e->memo[x->id] != PESTLE_KIR_NONE) return;
  if (e->checked[x->id] == mark) return;  // walked through already
  if (expr_is_open(e, x)) {
    (void)pestle_emit_expr(e, x);
    return;
  }
  e->checked[x->id] = mark;
  for (int i = 0; i < 3; ++i) {
    if (x->args[i]) hoist(e, x->args[i], mark);
  }
}

bool pestle_emit_is_open(pestle_emit_t* e, const pestle_expr_t* x) {
  ++e->epoch;
  return (x->id >= e->memo_count || e->memo[x->id] == PESTLE_KIR_NONE) &&
         expr_is_open(e, x);
}

void pestle_emit_hoist(pestle_emit_t* e, const pestle_expr_t* x) {
  // Results of looks stay valid for the walk; a walked expression is closed.
  ++e->epoch;
  hoist(e, x, e->epoch << 1);
}
