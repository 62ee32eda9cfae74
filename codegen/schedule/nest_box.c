// SPDX-License-Identifier: Apache-2.0
// Which part of its tensor a placed stage computes: interval arithmetic on
// index forms, over the loops that are closed at its place. Emission does the
// same with real loop indices; here a root axis stands for its own open part.
#include <string.h>

#include "base/bits.h"
#include "codegen/schedule/schedule_internal.h"

typedef struct boxer_t {
  pestle_nest_t* nest;
  pestle_nest_box_t* boxes;        // at the place that is looked at
  const pestle_nest_box_t* outer;  // of the consumer, where that is placed
  uint32_t consumer;
  int32_t loop;  // position of the last open loop; -1: none
  uint32_t reader, tensor;
  pestle_nest_box_t* box;  // being made
  bool any;
} boxer_t;

static bool is_open(const boxer_t* b, uint32_t leaf) {
  const pestle_nest_stage_t* c = pestle_nest_stage(b->nest, b->consumer);
  int32_t at = pestle_schedule_position(c, leaf);
  return at >= 0 && at <= b->loop;
}

// How many values the closed loops of |axis| give it; |*out_open| when some
// loop of it is open.
static int64_t closed_span(const boxer_t* b, uint32_t axis, bool* out_open) {
  const pestle_nest_axis_t* a = &b->nest->axes.data[axis];
  if (a->outer < 0) {
    if (!is_open(b, axis)) return pestle_nest_axis_span(a);
    *out_open = true;
    return 1;
  }
  int64_t outer = closed_span(b, (uint32_t)a->outer, out_open);
  int64_t inner = closed_span(b, (uint32_t)a->inner, out_open);
  int64_t span = (outer - 1) * a->factor + inner;
  return span < a->full_extent ? span : a->full_extent;
}

// The values of an axis of the consumer, of which some loops are open. Where
// the consumer has a place itself, it has its box of them.
static int64_t consumer_values(boxer_t* b, uint32_t axis,
                               const pestle_affine_t** out_origin) {
  bool open = false;
  int64_t span = closed_span(b, axis, &open);
  if (open) *out_origin = pestle_affine_axis(b->nest, axis);
  const pestle_nest_stage_t* c = pestle_nest_stage(b->nest, b->consumer);
  for (uint32_t i = 0; b->outer && i < c->map_count; ++i) {
    if (c->roots[i] != axis || span <= b->outer->extent[i]) continue;
    if (!open) *out_origin = b->outer->origin[i];
    return b->outer->extent[i];
  }
  return span;
}

// The values of an axis of the reader: from |*out_origin|, |return| of them.
static int64_t axis_values(boxer_t* b, uint32_t axis,
                           const pestle_affine_t** out_origin) {
  *out_origin = pestle_affine_const(b->nest, 0);
  if (b->reader == b->consumer) return consumer_values(b, axis, out_origin);
  const pestle_nest_stage_t* q = pestle_nest_stage(b->nest, b->reader);
  const pestle_nest_axis_t* a = &b->nest->axes.data[axis];
  if (a->block_axis >= 0) {
    const pestle_affine_t* from;
    int64_t blocks = axis_values(b, (uint32_t)a->block_axis, &from);
    *out_origin = pestle_affine_scale(b->nest, from, a->block);
    int64_t span = blocks * a->block;
    return span < a->full_extent ? span : a->full_extent;
  }
  // The loop that steps a carried reduction is open.
  if (q->carried && a->reduce && q->at_stage == (int32_t)b->consumer) {
    return consumer_values(b, (uint32_t)q->at_axis, out_origin);
  }
  for (uint32_t i = 0; i < q->map_count; ++i) {
    if (q->roots[i] != axis) continue;
    *out_origin = b->boxes[b->reader].origin[i];
    return b->boxes[b->reader].extent[i];
  }
  return b->nest->axes.data[axis].full_extent;
}

// Whether every axis below |atom| is wholly open, so that it has one value.
static bool is_fixed(boxer_t* b, const pestle_atom_t* atom) {
  if (atom->kind == PESTLE_ATOM_AXIS) {
    bool open = false;
    return b->reader == b->consumer && closed_span(b, atom->axis, &open) == 1;
  }
  if (!atom->affine) return false;
  for (uint32_t i = 0; i < atom->affine->count; ++i) {
    if (!is_fixed(b, atom->affine->terms[i].atom)) return false;
  }
  return true;
}

// What divides each value of the open part of |axis|, of the consumer; 0: the
// part is 0.
static int64_t open_step(const boxer_t* b, uint32_t axis) {
  const pestle_nest_axis_t* a = &b->nest->axes.data[axis];
  if (a->outer < 0) return is_open(b, axis) ? 1 : 0;
  return pestle_gcd(open_step(b, (uint32_t)a->outer) * a->factor,
                    open_step(b, (uint32_t)a->inner));
}

// Whether |from|, over open parts, is a multiple of |divisor|.
static bool is_multiple(const boxer_t* b, const pestle_affine_t* from,
                        int64_t divisor) {
  const pestle_nest_stage_t* c = pestle_nest_stage(b->nest, b->consumer);
  if (from->constant % divisor) return false;
  for (uint32_t i = 0; i < from->count; ++i) {
    const pestle_term_t* t = &from->terms[i];
    if (t->coef % divisor == 0) continue;
    if (t->atom->kind != PESTLE_ATOM_AXIS) return false;
    bool own = false;
    for (uint32_t r = 0; r < c->root_count; ++r) {
      own = own || c->roots[r] == t->atom->axis;
    }
    if (!own || t->coef * open_step(b, t->atom->axis) % divisor) return false;
  }
  return true;
}

// The values of floor(axis / divisor).
static bool quotient_values(boxer_t* b, const pestle_atom_t* atom,
                            const pestle_affine_t** out_origin,
                            int64_t* out_count) {
  if (atom->kind != PESTLE_ATOM_DIV) return false;
  int32_t axis = pestle_affine_is_axis(atom->affine);
  if (axis < 0) return false;
  const pestle_affine_t* from;
  int64_t last = axis_values(b, (uint32_t)axis, &from) - 1;
  if (!is_multiple(b, from, atom->divisor)) last += atom->divisor - 1;
  *out_origin = pestle_affine_div(b->nest, from, atom->divisor);
  *out_count = last / atom->divisor + 1;
  return true;
}

static bool index_values(boxer_t* b, const pestle_affine_t* affine,
                         const pestle_affine_t** out_origin,
                         int64_t* out_extent) {
  pestle_nest_t* nest = b->nest;
  const pestle_affine_t* origin = pestle_affine_const(nest, affine->constant);
  int64_t extent = 1;
  for (uint32_t i = 0; i < affine->count; ++i) {
    const pestle_term_t* t = &affine->terms[i];
    const pestle_affine_t* from;
    int64_t width = 0;
    if (t->atom->kind == PESTLE_ATOM_AXIS) {
      width = (axis_values(b, t->atom->axis, &from) - 1) * t->coef;
    } else if (is_fixed(b, t->atom)) {
      origin =
          pestle_affine_add(nest, origin, pestle_affine_make(nest, 0, t, 1));
      continue;
    } else if (quotient_values(b, t->atom, &from, &width)) {
      width = (width - 1) * t->coef;
    } else {
      return false;
    }
    origin = pestle_affine_add(nest, origin,
                               pestle_affine_scale(nest, from, t->coef));
    if (width < 0) {
      origin =
          pestle_affine_add(nest, origin, pestle_affine_const(nest, width));
    }
    extent += width < 0 ? -width : width;
  }
  *out_origin = origin;
  *out_extent = extent;
  return true;
}

static void whole_dim(boxer_t* b, int32_t d, int64_t dim) {
  b->box->origin[d] = pestle_affine_const(b->nest, 0);
  b->box->extent[d] = dim;
}

static void join_dim(boxer_t* b, int32_t d, int64_t dim,
                     const pestle_affine_t* origin, int64_t extent) {
  pestle_nest_t* nest = b->nest;
  pestle_nest_box_t* box = b->box;
  if (b->any) {
    const pestle_affine_t* apart = pestle_affine_add(
        nest, origin, pestle_affine_scale(nest, box->origin[d], -1));
    if (!pestle_affine_is_const(apart)) {
      whole_dim(b, d, dim);
      return;
    }
    int64_t lo = apart->constant < 0 ? apart->constant : 0;
    int64_t hi = apart->constant + extent;
    extent = (hi > box->extent[d] ? hi : box->extent[d]) - lo;
    if (lo == 0) origin = box->origin[d];
  }
  box->origin[d] = origin;
  box->extent[d] = extent;
  if (pestle_affine_is_const(origin) && origin->constant + extent > dim) {
    box->extent[d] = dim - origin->constant;
  }
}

static void visit_read(void* user, const pestle_expr_t* x) {
  boxer_t* b = user;
  if ((uint32_t)x->i != b->tensor) return;
  const pestle_type_t* type = &b->nest->tensors.data[b->tensor].type;
  for (int32_t d = 0; d < type->rank; ++d) {
    const pestle_affine_t* origin;
    int64_t extent;
    if (x->guard || (uint32_t)d >= x->index_count ||
        !index_values(b, x->index[d], &origin, &extent)) {
      whole_dim(b, d, type->dims[d]);
    } else {
      if (x->packed && d + 1 == type->rank) extent += x->packed - 1;
      join_dim(b, d, type->dims[d], origin, extent);
    }
  }
  b->any = true;
}

static bool runs_under(const boxer_t* b, uint32_t q) {
  const pestle_nest_stage_t* c = pestle_nest_stage(b->nest, b->consumer);
  int32_t axis = b->loop < 0 ? -1 : (int32_t)c->order[b->loop];
  return !pestle_nest_stage(b->nest, q)->inlined &&
         pestle_schedule_is_under(b->nest, q, b->consumer, axis);
}

// A carried reduction has the rows of what carries it: the consumer, before its loops, or
// what runs under those.
static void carried_box(boxer_t* b, uint32_t p) {
  const pestle_nest_stage_t* s = pestle_nest_stage(b->nest, p);
  const pestle_nest_stage_t* c =
      pestle_nest_stage(b->nest, (uint32_t)s->at_stage);
  pestle_nest_box_t* box = &b->boxes[p];
  int32_t loop = b->loop;
  b->box = box;
  b->loop = -1;
  b->reader = (uint32_t)s->at_stage;
  box->count = 1;
  for (uint32_t i = 0; i < s->map_count; ++i) {
    int64_t extent = b->nest->axes.data[s->roots[i]].full_extent;
    whole_dim(b, (int32_t)i, extent);
    if (extent > 1) {
      box->extent[i] = axis_values(b, c->roots[i], &box->origin[i]);
    }
    box->count *= box->extent[i] > 0 ? box->extent[i] : 1;
  }
  b->loop = loop;
}

static void visit_reader(boxer_t* b, uint32_t q, uint8_t* seen) {
  b->reader = q;
  memset(seen, 0, b->nest->expr_count + 1);
  pestle_nest_visit_stage(b->nest, seen, pestle_nest_stage(b->nest, q),
                          visit_read, b);
}

// The box of |p| at the place of |b|, where those of later stages are known.
static void find_box(boxer_t* b, uint32_t p, uint8_t* seen) {
  const pestle_nest_stage_t* s = pestle_nest_stage(b->nest, p);
  pestle_nest_box_t* box = &b->boxes[p];
  const pestle_type_t* type = &b->nest->tensors.data[s->tensors[0]].type;
  if (s->carried) {
    carried_box(b, p);
    return;
  }
  b->box = box;
  b->any = false;
  for (uint32_t v = 0; v < s->value_count; ++v) {
    b->tensor = s->tensors[v];
    for (uint32_t q = p + 1; q < b->nest->stages.size; ++q) {
      if (q == b->consumer || runs_under(b, q)) visit_reader(b, q, seen);
    }
  }
  for (int32_t d = 0; d < type->rank && !b->any; ++d) {
    whole_dim(b, d, type->dims[d]);
  }
  box->count = 1;
  for (int32_t d = 0; d < type->rank; ++d) {
    box->count *= box->extent[d] > 0 ? box->extent[d] : 1;
  }
}

// The box of |p|; |scratch| and |outer| have room for one a stage.
static pestle_status_t box_at_place(pestle_nest_t* nest, uint32_t p,
                                    pestle_nest_box_t* scratch,
                                    pestle_nest_box_t* outer) {
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, p);
  boxer_t b = {.nest = nest,
               .boxes = scratch,
               .consumer = s->at_stage < 0 ? p : (uint32_t)s->at_stage,
               .loop = -1};
  if (b.consumer != p && pestle_nest_stage(nest, b.consumer)->at_stage >= 0) {
    PESTLE_TRY(box_at_place(nest, b.consumer, scratch, outer));
    outer[b.consumer] = scratch[b.consumer];
    b.outer = &outer[b.consumer];
  }
  if (s->at_axis >= 0) {
    b.loop = pestle_schedule_position(pestle_nest_stage(nest, b.consumer),
                                      (uint32_t)s->at_axis);
  }
  uint8_t* seen = pestle_arena_alloc_zero(nest->arena, nest->expr_count + 1, 1);
  if (!seen) return PESTLE_ERROR(OUT_OF_MEMORY, "finding boxes");
  for (uint32_t q = b.consumer; q-- > p;) {
    if (q == p || runs_under(&b, q)) find_box(&b, q, seen);
  }
  if (b.consumer == p) find_box(&b, p, seen);
  return pestle_nest_status(nest);
}

static pestle_nest_box_t* make_boxes(pestle_nest_t* nest) {
  return pestle_arena_alloc_zero(
      nest->arena, (nest->stages.size + 1) * sizeof(pestle_nest_box_t),
      _Alignof(pestle_nest_box_t));
}

pestle_status_t pestle_nest_boxes(pestle_nest_t* nest,
                                  pestle_nest_box_t** out_boxes) {
  pestle_nest_box_t* boxes = make_boxes(nest);
  pestle_nest_box_t* scratch = make_boxes(nest);
  pestle_nest_box_t* outer = make_boxes(nest);
  *out_boxes = boxes;
  if (!boxes || !scratch || !outer) {
    return PESTLE_ERROR(OUT_OF_MEMORY, "finding boxes");
  }
  for (uint32_t p = 0; p < nest->stages.size; ++p) {
    if (nest->stages.data[p].inlined) continue;
    PESTLE_TRY(box_at_place(nest, p, scratch, outer));
    boxes[p] = scratch[p];
  }
  return NULL;
}

// Whether the loops of |axis|, which covers |extent|, are all unrolled or of
// one step.
static bool is_unrolled(const pestle_nest_t* nest, uint32_t axis,
                        int64_t extent) {
  const pestle_nest_axis_t* a = &nest->axes.data[axis];
  if (a->outer < 0) {
    return extent <= 1 || a->mark == PESTLE_MARK_UNROLL ||
           a->mark == PESTLE_MARK_VECTOR;
  }
  int64_t outer = extent / a->factor + (extent % a->factor != 0);
  int64_t inner = extent < a->factor ? extent : a->factor;
  return is_unrolled(nest, (uint32_t)a->outer, outer) &&
         is_unrolled(nest, (uint32_t)a->inner, inner);
}

// Whether all that reads |stage| runs under its loop already: only then is the
// box at its place known.
static pestle_status_t has_place(pestle_nest_t* nest, uint32_t stage,
                                 bool* out_placed) {
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  *out_placed = false;
  if (s->at_stage < 0) return NULL;
  for (uint32_t q = stage + 1; q < nest->stages.size; ++q) {
    bool reads;
    if (nest->stages.data[q].inlined ||
        pestle_schedule_is_under(nest, q, (uint32_t)s->at_stage, s->at_axis)) {
      continue;
    }
    PESTLE_TRY(pestle_schedule_reads(nest, q, stage, &reads));
    if (reads) return NULL;
  }
  *out_placed = true;
  return NULL;
}

pestle_status_t pestle_nest_private_fits(pestle_nest_t* nest, uint32_t stage,
                                         bool* out_fits) {
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  *out_fits = true;
  bool placed;
  PESTLE_TRY(has_place(nest, stage, &placed));
  if (!placed) return NULL;
  pestle_nest_box_t* boxes = make_boxes(nest);
  pestle_nest_box_t* outer = make_boxes(nest);
  if (!boxes || !outer) return PESTLE_ERROR(OUT_OF_MEMORY, "finding boxes");
  PESTLE_TRY(box_at_place(nest, stage, boxes, outer));
  for (uint32_t i = 0; i < s->map_count; ++i) {
    if (!is_unrolled(nest, s->roots[i], boxes[stage].extent[i])) {
      *out_fits = false;
    }
  }
  return NULL;
}

// --- Copies ---

static int64_t times(int64_t a, int64_t b) {
  if (b <= 1) return a;
  return a > INT64_MAX / b ? INT64_MAX : a * b;
}

// The steps of the unrolled loops of |axis| among the first |count| of |s|,
// where the axis covers |extent|.
static int64_t unrolled_steps(const pestle_nest_t* nest,
                              const pestle_nest_stage_t* s, uint32_t count,
                              uint32_t axis, int64_t extent) {
  const pestle_nest_axis_t* a = &nest->axes.data[axis];
  if (a->outer < 0) {
    int32_t at = pestle_schedule_position(s, axis);
    bool counts = at >= 0 && at < (int32_t)count;
    return counts && a->mark == PESTLE_MARK_UNROLL ? extent : 1;
  }
  int64_t outer = extent / a->factor + (extent % a->factor != 0);
  int64_t inner = extent < a->factor ? extent : a->factor;
  return times(unrolled_steps(nest, s, count, (uint32_t)a->outer, outer),
               unrolled_steps(nest, s, count, (uint32_t)a->inner, inner));
}

static int64_t copies_under(const pestle_nest_t* nest, uint32_t stage,
                            const pestle_nest_box_t* box, uint32_t count) {
  const pestle_nest_stage_t* s = &nest->stages.data[stage];
  bool whole = !box || stage + 1 == nest->stages.size;
  int64_t copies = 1;
  for (uint32_t i = 0; i < s->root_count; ++i) {
    int64_t extent = whole || i >= s->map_count
                         ? pestle_nest_axis_span(&nest->axes.data[s->roots[i]])
                         : box->extent[i];
    copies = times(copies, unrolled_steps(nest, s, count, s->roots[i], extent));
  }
  return copies;
}

// Of the body of |stage|, under its own loops and those that it is placed
// under; without |boxes| as if all stages ran on their whole tensors.
static int64_t copies_of(const pestle_nest_t* nest, uint32_t stage,
                         const pestle_nest_box_t* boxes) {
  uint32_t count = nest->stages.data[stage].order_count;
  int64_t copies = 1;
  for (;;) {
    const pestle_nest_stage_t* s = &nest->stages.data[stage];
    copies = times(
        copies, copies_under(nest, stage, boxes ? &boxes[stage] : NULL, count));
    // Places are under later stages, so the walk ends.
    if (s->at_stage <= (int32_t)stage) return copies;
    stage = (uint32_t)s->at_stage;
    count = s->at_axis < 0
                ? 0
                : (uint32_t)(pestle_schedule_position(&nest->stages.data[stage],
                                                      (uint32_t)s->at_axis) +
                             1);
  }
}

pestle_status_t pestle_nest_copies(pestle_nest_t* nest, uint32_t stage,
                                   int64_t* out_copies) {
  *out_copies = copies_of(nest, stage, NULL);
  // What is not too much for whole tensors is not too much for parts.
  if (*out_copies <= PESTLE_NEST_MAX_COPIES) return NULL;
  for (uint32_t q = stage; q + 1 < nest->stages.size;
       q = (uint32_t)nest->stages.data[q].at_stage) {
    bool placed;
    PESTLE_TRY(has_place(nest, q, &placed));
    if (placed) continue;
    *out_copies = 0;
    return NULL;
  }
  pestle_nest_box_t* boxes;
  PESTLE_TRY(pestle_nest_boxes(nest, &boxes));
  *out_copies = copies_of(nest, stage, boxes);
  return NULL;
}
