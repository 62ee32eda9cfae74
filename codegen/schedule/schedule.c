// SPDX-License-Identifier: Apache-2.0
// Primitives that change the loops of one stage: split, reorder, rfactor, and the kinds of
// loops (unroll, serial, vectorise, bind).
#include <string.h>

#include "codegen/schedule/schedule_internal.h"

enum { MAX_LANES = 1024 };  // of a group along an axis: of every GPU

pestle_status_t pestle_schedule_record_names(pestle_nest_t* nest,
                                             pestle_prim_t prim, uint32_t stage,
                                             const char* name,
                                             const char* other) {
  const char* names[2] = {name, other};
  return pestle_schedule_record(nest, prim,
                                pestle_schedule_stage_name(nest, stage), names,
                                other  ? 2
                                : name ? 1
                                       : 0,
                                NULL, 0);
}

int32_t pestle_schedule_position(const pestle_nest_stage_t* s, uint32_t axis) {
  for (uint32_t i = 0; i < s->order_count; ++i) {
    if (s->order[i] == axis) return (int32_t)i;
  }
  return -1;
}

static pestle_status_t not_a_leaf(const pestle_nest_t* nest,
                                  const char* primitive, uint32_t stage,
                                  uint32_t axis) {
  return PESTLE_ERROR(INVALID_ARGUMENT, "%s %s.%s: not a loop of that stage",
                      primitive, pestle_schedule_stage_name(nest, stage),
                      pestle_schedule_axis_name(nest, axis));
}

static pestle_status_t check_split(const pestle_nest_t* nest,
                                   const pestle_nest_stage_t* s, uint32_t axis,
                                   int64_t factor) {
  const char* name = pestle_schedule_axis_name(nest, axis);
  if (factor < 1 || s->order_count == PESTLE_NEST_MAX_AXES) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "split %s.%s by %lld: the factor must be positive and "
                        "a stage has at most %d loops",
                        s->name, name, (long long)factor, PESTLE_NEST_MAX_AXES);
  }
  if (nest->axes.data[axis].mark != PESTLE_MARK_SERIAL ||
      nest->axes.data[axis].rfactored) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "split %s.%s: it is marked already; split first",
                        s->name, name);
  }
  return NULL;
}

pestle_status_t pestle_schedule_split(pestle_nest_t* nest, uint32_t stage,
                                      uint32_t axis, int64_t factor,
                                      uint32_t* out_outer,
                                      uint32_t* out_inner) {
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  int32_t at = pestle_schedule_position(s, axis);
  if (at < 0) return not_a_leaf(nest, "split", stage, axis);
  PESTLE_TRY(check_split(nest, s, axis, factor));
  int64_t extent = pestle_nest_axis_span(&nest->axes.data[axis]);
  bool reduce = nest->axes.data[axis].reduce;
  const char* name = pestle_schedule_axis_name(nest, axis);
  int64_t parts = extent / factor + (extent % factor != 0);
  uint32_t outer =
      pestle_nest_add_axis(nest, pestle_schedule_derived_name(nest, name, "o"),
                           (int32_t)stage, reduce, parts);
  uint32_t inner =
      pestle_nest_add_axis(nest, pestle_schedule_derived_name(nest, name, "i"),
                           (int32_t)stage, reduce, factor);
  PESTLE_TRY(pestle_nest_status(nest));
  nest->axes.data[axis].outer = (int32_t)outer;
  nest->axes.data[axis].inner = (int32_t)inner;
  nest->axes.data[axis].factor = factor;
  nest->axes.data[outer].parent = (int32_t)axis;
  nest->axes.data[inner].parent = (int32_t)axis;
  memmove(&s->order[at + 2], &s->order[at + 1],
          (s->order_count - (uint32_t)at - 1) * sizeof(s->order[0]));
  s->order[at] = outer;
  s->order[at + 1] = inner;
  ++s->order_count;
  *out_outer = outer;
  *out_inner = inner;
  return pestle_schedule_record(nest, PESTLE_PRIM_SPLIT, s->name, &name, 1,
                                &factor, 1);
}

// Whether the reduction loops whose partial results are not kept apart stand in the
// same order as before. Float sums and products, and reductions by an unknown step,
// depend on it.
static bool keeps_reduce_order(const pestle_nest_t* nest,
                               const pestle_nest_stage_t* s,
                               const uint32_t* order) {
  bool floats = pestle_dtype_is(s->acc_dtype, PESTLE_KIND_FLOAT);
  bool sum = s->reduce == PESTLE_OP_ADD || s->reduce == PESTLE_OP_MULTIPLY;
  if (!s->is_reduction || (s->reduce != PESTLE_OP_COUNT && !(sum && floats))) {
    return true;
  }
  uint32_t from = 0;
  for (uint32_t i = 0; i < s->order_count; ++i) {
    const pestle_nest_axis_t* a = &nest->axes.data[order[i]];
    if (!a->reduce || a->rfactored || a->extent <= 1) continue;
    for (; from < s->order_count; ++from) {
      const pestle_nest_axis_t* b = &nest->axes.data[s->order[from]];
      if (b->reduce && !b->rfactored && b->extent > 1) break;
    }
    if (from == s->order_count || s->order[from++] != order[i]) return false;
  }
  return true;
}

pestle_status_t pestle_schedule_reorder(pestle_nest_t* nest, uint32_t stage,
                                        const uint32_t* order, uint32_t count) {
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  bool complete = count == s->order_count;
  const char* names[PESTLE_NEST_MAX_AXES];
  for (uint32_t i = 0; complete && i < count; ++i) {
    complete = pestle_schedule_position(s, order[i]) >= 0;
    for (uint32_t j = 0; complete && j < i; ++j) {
      complete = order[j] != order[i];
    }
    names[i] = pestle_schedule_axis_name(nest, order[i]);
  }
  if (!complete) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "reorder %s: all of its loops must be named once",
                        s->name);
  }
  if (!keeps_reduce_order(nest, s, order)) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "reorder %s: its reduction loops may not pass each other, "
        "the result depends on their order; rfactor first",
        s->name);
  }
  if (!count) return NULL;
  uint32_t before[PESTLE_NEST_MAX_AXES];
  memcpy(before, s->order, sizeof(before));
  memcpy(s->order, order, count * sizeof(order[0]));
  pestle_status_t status =
      pestle_schedule_check_copies(nest, "reorder", stage, " ", names[0]);
  if (status) {
    memcpy(s->order, before, sizeof(before));
    return status;
  }
  return pestle_schedule_record(nest, PESTLE_PRIM_REORDER, s->name, names,
                                count, NULL, 0);
}

static pestle_status_t check_group(const pestle_nest_t* nest,
                                   const pestle_nest_stage_t* s, int32_t at) {
  bool root = s == &nest->stages.data[nest->stages.size - 1];
  bool ok = root && s->at_stage < 0 && !nest->axes.data[s->order[at]].reduce;
  for (int32_t i = 0; i < at; ++i) {
    ok = ok && nest->axes.data[s->order[i]].mark == PESTLE_MARK_GROUP;
  }
  if (ok) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "bind %s.%s group.x: group axes are the outermost map "
                      "axes of the last stage, bound from the outside in",
                      s->name, nest->axes.data[s->order[at]].name);
}

static pestle_status_t check_vector(const pestle_nest_t* nest,
                                    const pestle_nest_stage_t* s, int32_t at) {
  const pestle_nest_axis_t* a = &nest->axes.data[s->order[at]];
  bool ok = a->extent >= 1 && a->extent <= PESTLE_KIR_MAX_LANES &&
            (a->extent & (a->extent - 1)) == 0;
  if (!ok || (a->reduce && !a->rfactored)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "vectorise %s.%s: vector axes have a power of two of "
                        "lanes, at most %u, and in a reduction partial results",
                        s->name, a->name, PESTLE_KIR_MAX_LANES);
  }
  for (uint32_t i = 0; i < s->order_count; ++i) {
    if ((int32_t)i == at ||
        nest->axes.data[s->order[i]].mark != PESTLE_MARK_VECTOR) {
      continue;
    }
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "vectorise %s.%s: %s is the stage's vector axis "
                        "already",
                        s->name, a->name, nest->axes.data[s->order[i]].name);
  }
  return NULL;
}

static pestle_status_t check_lane(const pestle_nest_t* nest,
                                  const pestle_nest_stage_t* s, int32_t at,
                                  uint8_t mark) {
  const pestle_nest_axis_t* a = &nest->axes.data[s->order[at]];
  bool ok = a->full_extent <= MAX_LANES && (!a->reduce || a->rfactored);
  for (uint32_t i = 0; i < s->order_count; ++i) {
    ok = ok && ((int32_t)i == at || nest->axes.data[s->order[i]].mark != mark);
  }
  if (ok) return NULL;
  return PESTLE_ERROR(
      INVALID_ARGUMENT,
      "bind %s.%s to lanes: a stage has one loop along x and "
      "one along y, of at most %d steps; in a reduction it has partial results",
      s->name, a->name, MAX_LANES);
}

static pestle_status_t check_unroll(pestle_nest_t* nest, uint32_t stage,
                                    uint32_t axis) {
  uint8_t before = nest->axes.data[axis].mark;
  nest->axes.data[axis].mark = PESTLE_MARK_UNROLL;
  pestle_status_t status = pestle_schedule_check_copies(
      nest, "unroll", stage, ".", pestle_schedule_axis_name(nest, axis));
  nest->axes.data[axis].mark = before;
  return status;
}

int64_t pestle_nest_leaf_step(const pestle_nest_t* nest, uint32_t leaf) {
  int64_t step = 1;
  for (int32_t child = (int32_t)leaf;;) {
    int32_t parent = nest->axes.data[child].parent;
    if (parent < 0) return step;
    const pestle_nest_axis_t* p = &nest->axes.data[parent];
    if (p->outer == child) step *= p->factor;
    child = parent;
  }
}

uint32_t pestle_nest_leaf_root(const pestle_nest_t* nest, uint32_t leaf) {
  while (nest->axes.data[leaf].parent >= 0) {
    leaf = (uint32_t)nest->axes.data[leaf].parent;
  }
  return leaf;
}

pestle_status_t pestle_schedule_mark(pestle_nest_t* nest, uint32_t stage,
                                     uint32_t axis, pestle_mark_t mark) {
  static const char* const names[] = {"serial", "unroll", "vectorise",
                                      "bind",   "bind",   "bind"};
  static const uint8_t prims[] = {PESTLE_PRIM_SERIAL,    PESTLE_PRIM_UNROLL,
                                  PESTLE_PRIM_VECTORISE, PESTLE_PRIM_BIND,
                                  PESTLE_PRIM_BIND,      PESTLE_PRIM_BIND};
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  int32_t at = pestle_schedule_position(s, axis);
  if (at < 0) return not_a_leaf(nest, names[mark], stage, axis);
  switch (mark) {
    case PESTLE_MARK_SERIAL:
      break;
    case PESTLE_MARK_UNROLL:
      PESTLE_TRY(check_unroll(nest, stage, axis));
      break;
    case PESTLE_MARK_VECTOR:
      PESTLE_TRY(check_vector(nest, s, at));
      break;
    case PESTLE_MARK_GROUP:
      PESTLE_TRY(check_group(nest, s, at));
      break;
    case PESTLE_MARK_LANE_X:
    case PESTLE_MARK_LANE_Y:
      PESTLE_TRY(check_lane(nest, s, at, (uint8_t)mark));
      break;
  }
  nest->axes.data[axis].mark = (uint8_t)mark;
  if (mark >= PESTLE_MARK_GROUP) {
    const char* name = pestle_schedule_axis_name(nest, axis);
    int64_t which = (int64_t)mark - PESTLE_MARK_GROUP;
    return pestle_schedule_record(nest, PESTLE_PRIM_BIND, s->name, &name, 1,
                                  &which, 1);
  }
  return pestle_schedule_record_names(nest, (pestle_prim_t)prims[mark], stage,
                                      pestle_schedule_axis_name(nest, axis),
                                      NULL);
}

pestle_status_t pestle_schedule_rfactor(pestle_nest_t* nest, uint32_t stage,
                                        uint32_t axis, bool reassociate) {
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  if (pestle_schedule_position(s, axis) < 0) {
    return not_a_leaf(nest, "rfactor", stage, axis);
  }
  const char* name = pestle_schedule_axis_name(nest, axis);
  bool exact = s->reduce != PESTLE_OP_ADD && s->reduce != PESTLE_OP_MULTIPLY;
  if (!nest->axes.data[axis].reduce || s->reduce == PESTLE_OP_COUNT ||
      (!exact && !reassociate &&
       pestle_dtype_is(s->acc_dtype, PESTLE_KIND_FLOAT))) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "rfactor %s.%s: it needs an associative reduction, and "
                        "reassociation for float sums",
                        s->name, name);
  }
  nest->axes.data[axis].rfactored = true;
  int64_t flag = reassociate;
  return pestle_schedule_record(nest, PESTLE_PRIM_RFACTOR, s->name, &name, 1,
                                &flag, 1);
}
