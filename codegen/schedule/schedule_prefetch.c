// SPDX-License-Identifier: Apache-2.0
// The primitives prefetch, panel, claim and beside: what a later step reads or writes is
// asked for while this one computes, so that memory and arithmetic take turns no
// longer.
#include "codegen/schedule/schedule_internal.h"

static bool is_argument(const pestle_nest_tensor_t* t) {
  return t->kind != PESTLE_TENSOR_STAGE;
}

bool pestle_nest_may_prefetch(pestle_nest_t* nest, uint32_t stage,
                              const pestle_nest_ahead_t* a) {
  const pestle_nest_tensor_t* tensors = nest->tensors.data;
  // Tiles that are transposed are read as wholes.
  if (pestle_nest_stage(nest, stage)->transposed) return false;
  if (a->read >= nest->tensors.size || a->tensor >= nest->tensors.size ||
      tensors[a->read].kind != PESTLE_TENSOR_INPUT ||
      !is_argument(&tensors[a->tensor])) {
    return false;
  }
  const pestle_expr_t* read = pestle_schedule_find_read(nest, stage, a->read);
  if (!read || read->packed) return false;
  for (uint32_t i = 0; i < read->index[0]->count; ++i) {
    if (read->index[0]->terms[i].atom->kind != PESTLE_ATOM_AXIS) return false;
  }
  return true;
}

pestle_status_t pestle_schedule_prefetch(pestle_nest_t* nest, uint32_t stage,
                                         uint32_t read, uint32_t tensor,
                                         int64_t by) {
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  pestle_nest_ahead_t a = {.read = read, .tensor = tensor, .by = by};
  if (s->ahead_count == PESTLE_NEST_MAX_AHEAD ||
      !pestle_nest_may_prefetch(nest, stage, &a)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "prefetch %s: it must read the argument once, by an "
                        "affine index, and fetch %d arguments at most",
                        s->name, PESTLE_NEST_MAX_AHEAD);
  }
  s->ahead[s->ahead_count++] = a;
  const char* names[] = {nest->tensors.data[read].name,
                         nest->tensors.data[tensor].name};
  return pestle_schedule_record(nest, PESTLE_PRIM_PREFETCH, s->name, names, 2,
                                &by, 1);
}

bool pestle_nest_panel_counts(const pestle_nest_t* nest, uint32_t axis) {
  const pestle_nest_axis_t* a = &nest->axes.data[axis];
  return a->fold && a->mark == PESTLE_MARK_SERIAL;
}

bool pestle_nest_may_panel(pestle_nest_t* nest, uint32_t stage,
                           const pestle_nest_ahead_t* a) {
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  if (!s->is_fold || s->at_stage < 0 || s->at_axis < 0 ||
      a->read != a->tensor || a->by < 0 || a->by > INT32_MAX || a->share < 0 ||
      a->share > INT16_MAX || a->read >= nest->tensors.size ||
      nest->tensors.data[a->read].kind != PESTLE_TENSOR_INPUT) {
    return false;
  }
  const pestle_expr_t* read = pestle_schedule_find_read(nest, stage, a->read);
  if (!read || read->packed || read->index_count != 1) return false;
  for (uint32_t i = 0; i < s->order_count; ++i) {
    const pestle_nest_axis_t* x = &nest->axes.data[s->order[i]];
    if (x->block_axis >= 0 || pestle_mark_is_lane(x->mark)) return false;
  }
  return pestle_nest_panel_loop(nest, stage) >= 0;
}

int32_t pestle_nest_panel_loop(const pestle_nest_t* nest, uint32_t stage) {
  const pestle_nest_stage_t* s = &nest->stages.data[stage];
  for (uint32_t i = s->order_count; i-- > 0;) {
    if (pestle_nest_panel_counts(nest, s->order[i])) {
      return (int32_t)s->order[i];
    }
  }
  return -1;
}

pestle_status_t pestle_schedule_panel(pestle_nest_t* nest, uint32_t stage,
                                      uint32_t tensor, int64_t by,
                                      int64_t share) {
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  pestle_nest_ahead_t a = {
      .read = tensor, .tensor = tensor, .by = by, .share = share};
  if (s->ahead_count == PESTLE_NEST_MAX_AHEAD || share <= 0 ||
      !pestle_nest_may_panel(nest, stage, &a)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "panel %s: it must be a fold under a loop, with a loop "
                        "of its own, that reads the argument once; it fetches "
                        "%d arguments at most, a positive share a step, and "
                        "not so far ahead that offsets overflow",
                        s->name, PESTLE_NEST_MAX_AHEAD);
  }
  s->ahead[s->ahead_count++] = a;
  const char* name = nest->tensors.data[tensor].name;
  const int64_t ints[] = {by, share};
  return pestle_schedule_record(nest, PESTLE_PRIM_PANEL, s->name, &name, 1,
                                ints, 2);
}

bool pestle_nest_may_claim(const pestle_nest_t* nest, uint32_t stage,
                           uint32_t axis) {
  const pestle_nest_stage_t* s = &nest->stages.data[stage];
  int32_t at = pestle_schedule_position(s, axis);
  if (stage + 1 != nest->stages.size || s->is_fold || at < 0 ||
      (uint32_t)at + 1 == s->order_count) {
    return false;
  }
  for (uint32_t i = (uint32_t)at + 1; i < s->order_count; ++i) {
    if (nest->axes.data[s->order[i]].mark >= PESTLE_MARK_GROUP) return false;
  }
  for (uint32_t v = 0; v < s->value_count; ++v) {
    const pestle_nest_tensor_t* t = &nest->tensors.data[s->tensors[v]];
    if (t->kind != PESTLE_TENSOR_OUTPUT || !s->write_index[v]) return false;
  }
  return true;
}

pestle_status_t pestle_schedule_claim(pestle_nest_t* nest, uint32_t stage,
                                      uint32_t axis, int64_t by) {
  if (!pestle_nest_may_claim(nest, stage, axis)) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "claim %s.%s: it must be a loop of the last stage, over "
        "others that are neither groups nor lanes",
        pestle_nest_stage(nest, stage)->name,
        pestle_schedule_axis_name(nest, axis));
  }
  nest->axes.data[axis].claims = true;
  nest->axes.data[axis].claims_by = by;
  const char* name = pestle_schedule_axis_name(nest, axis);
  return pestle_schedule_record(nest, PESTLE_PRIM_CLAIM,
                                pestle_nest_stage(nest, stage)->name, &name, 1,
                                &by, 1);
}

bool pestle_nest_may_beside(const pestle_nest_t* nest, uint32_t stage,
                            uint32_t axis, uint32_t tensor) {
  if (tensor >= nest->tensors.size ||
      !pestle_nest_may_claim(nest, stage, axis)) {
    return false;
  }
  const pestle_nest_tensor_t* t = &nest->tensors.data[tensor];
  const pestle_nest_tensor_t* y =
      &nest->tensors.data[nest->stages.data[stage].tensors[0]];
  return t->kind == PESTLE_TENSOR_INPUT && !t->pack &&
         pestle_type_count(&t->type) == pestle_type_count(&y->type);
}

pestle_status_t pestle_schedule_beside(pestle_nest_t* nest, uint32_t stage,
                                       uint32_t axis, uint32_t tensor,
                                       int64_t by) {
  if (!pestle_nest_may_beside(nest, stage, axis, tensor)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "beside %s.%s %s: it must be a loop that may "
                        "claim, and an argument of as many elements as there "
                        "are results, not packed",
                        pestle_nest_stage(nest, stage)->name,
                        pestle_schedule_axis_name(nest, axis),
                        nest->tensors.data[tensor].name);
  }
  pestle_nest_axis_t* a = &nest->axes.data[axis];
  a->looks_beside = true;
  a->beside = tensor;
  a->beside_by = by;
  const char* names[] = {pestle_schedule_axis_name(nest, axis),
                         nest->tensors.data[tensor].name};
  return pestle_schedule_record(nest, PESTLE_PRIM_BESIDE,
                                pestle_nest_stage(nest, stage)->name, names, 2,
                                &by, 1);
}
