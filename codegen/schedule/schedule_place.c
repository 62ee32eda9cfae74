// SPDX-License-Identifier: Apache-2.0
// Primitives that say where a stage runs (at) and where its result is kept (store).
#include "codegen/schedule/schedule_internal.h"

bool pestle_schedule_is_under(const pestle_nest_t* nest, uint32_t q,
                              uint32_t consumer, int32_t axis) {
  const pestle_nest_stage_t* c = &nest->stages.data[consumer];
  int32_t loop = axis < 0 ? -1 : pestle_schedule_position(c, (uint32_t)axis);
  // Places are under later stages, so the walk ends.
  while (q != consumer) {
    const pestle_nest_stage_t* s = &nest->stages.data[q];
    if (s->at_stage <= (int32_t)q) return false;
    if (s->at_stage == (int32_t)consumer) {
      int32_t at = s->at_axis < 0
                       ? -1
                       : pestle_schedule_position(c, (uint32_t)s->at_axis);
      return at >= loop;
    }
    q = (uint32_t)s->at_stage;
  }
  return true;
}

pestle_status_t pestle_schedule_reads(pestle_nest_t* nest, uint32_t q,
                                      uint32_t stage, bool* out_reads) {
  *out_reads = false;
  pestle_arena_mark_t mark = pestle_arena_mark(nest->arena);
  uint8_t* seen = pestle_arena_alloc_zero(nest->arena, nest->expr_count + 1, 1);
  uint8_t* used =
      pestle_arena_alloc_zero(nest->arena, nest->tensors.size + 1, 1);
  if (!seen || !used) return PESTLE_ERROR(OUT_OF_MEMORY, "looking for readers");
  const pestle_nest_stage_t* s = &nest->stages.data[q];
  for (uint32_t v = 0; v < s->value_count; ++v) {
    pestle_expr_mark_tensors(nest, seen, s->values[v], used);
    if (s->is_reduction)
      pestle_expr_mark_tensors(nest, seen, s->inits[v], used);
    if (s->combine) pestle_expr_mark_tensors(nest, seen, s->combine[v], used);
  }
  const pestle_nest_stage_t* p = &nest->stages.data[stage];
  for (uint32_t v = 0; v < p->value_count; ++v) {
    if (used[p->tensors[v]]) *out_reads = true;
  }
  pestle_arena_rewind(nest->arena, mark);
  return NULL;
}

// Readers that have a place must be under the loop; those without one may still
// be moved there, and the verifier looks again when the schedule is whole.
static pestle_status_t check_readers(pestle_nest_t* nest, uint32_t stage,
                                     uint32_t consumer, int32_t axis) {
  uint32_t anchor = (uint32_t)nest->stages.size - 1;
  for (uint32_t q = stage + 1; q <= anchor; ++q) {
    const pestle_nest_stage_t* s = &nest->stages.data[q];
    if (s->inlined || (s->at_stage < 0 && q != anchor)) continue;
    if (pestle_schedule_is_under(nest, q, consumer, axis)) continue;
    bool reads;
    PESTLE_TRY(pestle_schedule_reads(nest, q, stage, &reads));
    if (!reads) continue;
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "at %s, %s: stage %s reads it too and does not run under that loop",
        pestle_schedule_stage_name(nest, stage),
        pestle_schedule_stage_name(nest, consumer), s->name);
  }
  return NULL;
}

// Where a stage can be emitted: under a loop that is no vector, or before the first
// loop of what is no reduction.
static pestle_status_t check_place(const pestle_nest_t* nest, uint32_t stage,
                                   uint32_t consumer, uint32_t axis) {
  const pestle_nest_stage_t* c = &nest->stages.data[consumer];
  const char* name = pestle_schedule_stage_name(nest, stage);
  bool whole = axis == UINT32_MAX;
  int32_t at = whole ? -1 : pestle_schedule_position(c, axis);
  if (consumer <= stage || (!whole && at < 0)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "at %s, %s: not a loop of a later "
                        "stage",
                        name, c->name);
  }
  if (c->inlined || nest->stages.data[stage].inlined ||
      stage + 1 == nest->stages.size) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "at %s, %s: inlined stages and the last one have no "
                        "place under another",
                        name, c->name);
  }
  if (!whole && nest->axes.data[axis].mark == PESTLE_MARK_VECTOR) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "at %s, %s.%s: nothing runs under a vector loop", name,
                        c->name, nest->axes.data[axis].name);
  }
  if (whole && c->is_reduction) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "at %s, %s: a reduction takes stages under its loops only", name,
        c->name);
  }
  return NULL;
}

pestle_status_t pestle_schedule_check_copies(pestle_nest_t* nest,
                                             const char* primitive,
                                             uint32_t stage, const char* link,
                                             const char* name) {
  for (uint32_t q = 0; q <= stage; ++q) {
    if (nest->stages.data[q].inlined ||
        !pestle_schedule_is_under(nest, q, stage, -1)) {
      continue;
    }
    int64_t copies;
    PESTLE_TRY(pestle_nest_copies(nest, q, &copies));
    if (copies <= PESTLE_NEST_MAX_COPIES) continue;
    return PESTLE_ERROR(
        INVALID_ARGUMENT, "%s %s%s%s: more than %d copies of the body of %s",
        primitive, pestle_schedule_stage_name(nest, stage), link, name,
        PESTLE_NEST_MAX_COPIES, pestle_schedule_stage_name(nest, q));
  }
  return NULL;
}

pestle_status_t pestle_schedule_at(pestle_nest_t* nest, uint32_t stage,
                                   uint32_t consumer, uint32_t axis) {
  bool whole = axis == UINT32_MAX;
  PESTLE_TRY(check_place(nest, stage, consumer, axis));
  PESTLE_TRY(check_readers(nest, stage, consumer, whole ? -1 : (int32_t)axis));
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  int32_t stage_before = s->at_stage, axis_before = s->at_axis;
  s->at_stage = (int32_t)consumer;
  s->at_axis = whole ? -1 : (int32_t)axis;
  pestle_status_t status = pestle_schedule_check_copies(
      nest, "at", stage, ", ", pestle_schedule_stage_name(nest, consumer));
  if (status) {
    s->at_stage = stage_before;
    s->at_axis = axis_before;
    return status;
  }
  return pestle_schedule_record_names(
      nest, PESTLE_PRIM_AT, stage, pestle_schedule_stage_name(nest, consumer),
      whole ? NULL : pestle_schedule_axis_name(nest, axis));
}

pestle_status_t pestle_schedule_store(pestle_nest_t* nest, uint32_t stage,
                                      pestle_scope_t scope) {
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  int64_t apart = 0;
  if (scope < PESTLE_SCOPE_PRIVATE || scope > PESTLE_SCOPE_LANES) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "store %s: private, shared or lanes",
                        s->name);
  }
  for (uint32_t v = 0; v < s->value_count; ++v) {
    if (nest->tensors.data[s->tensors[v]].kind != PESTLE_TENSOR_STAGE) {
      return PESTLE_ERROR(INVALID_ARGUMENT, "store %s: it writes a result",
                          s->name);
    }
  }
  if (scope == PESTLE_SCOPE_PRIVATE) {
    bool constant;
    PESTLE_TRY(pestle_nest_private_fits(nest, stage, &constant));
    if (!constant) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "store %s private: a loop that is not unrolled walks "
                          "it, and registers have no addresses",
                          s->name);
    }
  }
  if (scope == PESTLE_SCOPE_LANES) {
    PESTLE_TRY(pestle_nest_owned(nest, stage, false, &apart));
    if (!apart) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "store %s lanes: not all that reads it shares its "
                          "row among lanes as it does, in unrolled steps",
                          s->name);
    }
  }
  for (uint32_t v = 0; v < s->value_count; ++v) {
    nest->tensors.data[s->tensors[v]].scope = (uint8_t)scope;
    nest->tensors.data[s->tensors[v]].lane_stride = apart;
  }
  int64_t where = scope;
  return pestle_schedule_record(nest, PESTLE_PRIM_STORE, s->name, NULL, 0,
                                &where, 1);
}
