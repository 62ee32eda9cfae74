// SPDX-License-Identifier: Apache-2.0
// The primitive prefetch: memory that a later step reads or writes is asked for while this
// one computes, so that a core does not wait for it.
#include "codegen/schedule/schedule_internal.h"

// --- A share a step ---

bool pestle_nest_counts_on(const pestle_nest_t* nest, uint32_t axis) {
  const pestle_nest_axis_t* a = &nest->axes.data[axis];
  return a->reduce && a->mark == PESTLE_MARK_SERIAL;
}

int32_t pestle_nest_counting_loop(const pestle_nest_t* nest, uint32_t stage) {
  const pestle_nest_stage_t* s = &nest->stages.data[stage];
  for (uint32_t i = s->order_count; i-- > 0;) {
    if (pestle_nest_counts_on(nest, s->order[i])) return (int32_t)s->order[i];
  }
  return -1;
}

static bool may_share(pestle_nest_t* nest, uint32_t stage,
                      const pestle_prefetch_t* f) {
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  if (!s->is_reduction || s->at_stage < 0 || s->at_axis < 0 ||
      f->like != f->tensor || f->by < 0 || f->by > INT32_MAX || f->share < 0 ||
      f->share > INT16_MAX ||
      nest->tensors.data[f->tensor].kind != PESTLE_TENSOR_INPUT) {
    return false;
  }
  const pestle_expr_t* read = pestle_schedule_find_read(nest, stage, f->tensor);
  if (!read || read->packed || read->index_count != 1) return false;
  for (uint32_t i = 0; i < s->order_count; ++i) {
    const pestle_nest_axis_t* x = &nest->axes.data[s->order[i]];
    if (x->block_axis >= 0 || pestle_mark_is_lane(x->mark)) return false;
  }
  return pestle_nest_counting_loop(nest, stage) == (int32_t)f->loop;
}

// --- Where an argument is read ---

static bool may_follow_read(pestle_nest_t* nest, uint32_t stage,
                            const pestle_prefetch_t* f) {
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  // Tiles that are transposed are read as wholes.
  if (s->transposed || s->order[s->order_count - 1] != f->loop) return false;
  const pestle_expr_t* read = pestle_schedule_find_read(nest, stage, f->like);
  if (!read || read->packed) return false;
  for (uint32_t i = 0; i < read->index[0]->count; ++i) {
    if (read->index[0]->terms[i].atom->kind != PESTLE_ATOM_AXIS) return false;
  }
  return true;
}

// --- Where a result is written ---

// Whether |stage| writes result |tensor|, whose elements lie in one order.
static bool writes(const pestle_nest_stage_t* s, uint32_t tensor) {
  for (uint32_t v = 0; v < s->value_count; ++v) {
    if (s->tensors[v] == tensor) return s->write_index[v] != NULL;
  }
  return false;
}

static bool lies_like(const pestle_nest_tensor_t* t,
                      const pestle_nest_tensor_t* result) {
  return t->kind == PESTLE_TENSOR_INPUT && !t->pack &&
         pestle_type_count(&t->type) == pestle_type_count(&result->type);
}

static bool may_follow_results(const pestle_nest_t* nest, uint32_t stage,
                               const pestle_prefetch_t* f) {
  const pestle_nest_stage_t* s = &nest->stages.data[stage];
  uint32_t at = (uint32_t)pestle_schedule_position(s, f->loop);
  if (stage + 1 != nest->stages.size || s->is_reduction ||
      at + 1 == s->order_count || !writes(s, f->like)) {
    return false;
  }
  for (uint32_t i = at + 1; i < s->order_count; ++i) {
    if (nest->axes.data[s->order[i]].mark >= PESTLE_MARK_GROUP) return false;
  }
  return f->tensor == f->like || lies_like(&nest->tensors.data[f->tensor],
                                           &nest->tensors.data[f->like]);
}

// --- The primitive ---

bool pestle_nest_may_prefetch(pestle_nest_t* nest, const pestle_prefetch_t* f) {
  if (f->loop >= nest->axes.size || f->tensor >= nest->tensors.size ||
      f->like >= nest->tensors.size ||
      nest->tensors.data[f->tensor].kind == PESTLE_TENSOR_STAGE) {
    return false;
  }
  uint32_t stage = (uint32_t)nest->axes.data[f->loop].stage;
  if (pestle_schedule_position(pestle_nest_stage(nest, stage), f->loop) < 0) {
    return false;
  }
  if (f->share) return may_share(nest, stage, f);
  switch ((pestle_tensor_kind_t)nest->tensors.data[f->like].kind) {
    case PESTLE_TENSOR_INPUT:
      return may_follow_read(nest, stage, f);
    case PESTLE_TENSOR_OUTPUT:
      return may_follow_results(nest, stage, f);
    case PESTLE_TENSOR_STAGE:
      return false;
  }
  return false;
}

// What |f| must be, of which something is not.
static const char* what_it_wants(const pestle_nest_t* nest,
                                 const pestle_prefetch_t* f) {
  if (f->share) {
    return "the stage must be a reduction under a loop that reads the argument "
           "once, "
           "and the loop the innermost of its serial reduction loops; a share "
           "is "
           "positive, and not so far ahead that offsets overflow";
  }
  if (nest->tensors.data[f->like].kind == PESTLE_TENSOR_OUTPUT) {
    return "the loop must be one of the last stage, over others that are "
           "neither groups nor lanes, which writes the result; what lies like "
           "it is an argument of as many elements, not packed";
  }
  return "the stage must read the argument once, by an affine index, and the "
         "loop be its innermost";
}

pestle_status_t pestle_schedule_prefetch(pestle_nest_t* nest,
                                         const pestle_prefetch_t* f) {
  const pestle_nest_axis_t* loop = &nest->axes.data[f->loop];
  const char* stage = pestle_schedule_stage_name(nest, (uint32_t)loop->stage);
  const char* tensor = nest->tensors.data[f->tensor].name;
  if (!pestle_nest_may_prefetch(nest, f)) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "prefetch %s %s at %s: %s", stage,
                        tensor, loop->name, what_it_wants(nest, f));
  }
  if (!pestle_vec_push(&nest->prefetches, *f)) pestle_nest_fail_memory(nest);
  const char* names[] = {tensor, loop->name, nest->tensors.data[f->like].name};
  const int64_t ints[] = {f->by, f->share};
  return pestle_schedule_record(nest, PESTLE_PRIM_PREFETCH, stage, names,
                                f->like == f->tensor ? 2 : 3, ints, 2);
}
