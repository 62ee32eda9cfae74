// SPDX-License-Identifier: Apache-2.0
// From primitives to the functions that they stand for, and back.
#include <string.h>

#include "codegen/schedule/schedule_internal.h"

const char* pestle_schedule_derived_name(pestle_nest_t* nest, const char* base,
                                         const char* suffix) {
  size_t n = strlen(base), m = strlen(suffix);
  char* name = pestle_arena_alloc(nest->arena, n + m + 1, 1);
  if (!name) {
    pestle_nest_fail_memory(nest);
    return "";
  }
  memcpy(name, base, n);
  memcpy(name + n, suffix, m + 1);
  return name;
}

pestle_status_t pestle_schedule_record(pestle_nest_t* nest, pestle_prim_t prim,
                                       const char* stage,
                                       const char* const* names,
                                       size_t name_count, const int64_t* ints,
                                       size_t int_count) {
  pestle_primitive_t primitive = {.prim = (uint8_t)prim,
                                  .stage = stage,
                                  .name_count = (uint32_t)name_count,
                                  .int_count = (uint8_t)int_count};
  if (name_count) {
    primitive.names = pestle_arena_copy(
        nest->arena, names, name_count * sizeof(*names), _Alignof(const char*));
  }
  for (size_t i = 0; i < int_count && i < PESTLE_PRIM_INTS; ++i)
    primitive.ints[i] = ints[i];
  if ((name_count && !primitive.names) ||
      !pestle_vec_push(&nest->primitives, primitive)) {
    pestle_nest_fail_memory(nest);
  }
  return pestle_nest_status(nest);
}

void pestle_schedule_print(const pestle_nest_t* nest, pestle_strbuf_t* out) {
  for (size_t i = 0; i < nest->primitives.size; ++i) {
    pestle_primitive_print(&nest->primitives.data[i], out);
    pestle_strbuf_append_char(out, '\n');
  }
}

// --- From names to ids ---

static pestle_status_t find_stage(const pestle_nest_t* nest, const char* name,
                                  uint32_t* out_id) {
  int32_t id = name ? pestle_nest_find_stage(nest, name) : -1;
  *out_id = (uint32_t)id;
  if (id >= 0) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT, "there is no stage '%s'",
                      name ? name : "");
}

static pestle_status_t find_axis(const pestle_nest_t* nest, uint32_t stage,
                                 const char* name, uint32_t* out_id) {
  int32_t id = pestle_nest_find_axis(nest, stage, name);
  *out_id = (uint32_t)id;
  if (id >= 0) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT, "stage '%s' has no loop '%s'",
                      nest->stages.data[stage].name, name);
}

static pestle_status_t find_tensor(const pestle_nest_t* nest, const char* name,
                                   uint32_t* out_id) {
  int32_t id = pestle_nest_find_tensor(nest, name);
  *out_id = (uint32_t)id;
  if (id >= 0) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT, "there is no tensor '%s'", name);
}

// --- Primitives with more than one axis ---

static pestle_status_t apply_inline(pestle_nest_t* nest,
                                    const pestle_primitive_t* primitive) {
  bool* inlined =
      pestle_arena_alloc_zero(nest->arena, nest->stages.size + 1, 1);
  if (!inlined) return PESTLE_ERROR(OUT_OF_MEMORY, "inlining stages");
  for (uint32_t i = 0; i < primitive->name_count; ++i) {
    uint32_t stage;
    PESTLE_TRY(find_stage(nest, primitive->names[i], &stage));
    inlined[stage] = true;
  }
  return pestle_schedule_inline(nest, inlined);
}

static pestle_status_t apply_fuse(pestle_nest_t* nest, uint32_t stage,
                                  const uint32_t* axes, bool flattens) {
  const char* word = flattens ? "flatten" : "fuse";
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  for (uint32_t i = 0; i + 1 < s->root_count; ++i) {
    if (i + 1 == s->map_count) continue;
    if (s->roots[i] != axes[0] || s->roots[i + 1] != axes[1]) continue;
    bool done;
    PESTLE_TRY(flattens ? pestle_schedule_flatten(nest, stage, i, &done)
                        : pestle_schedule_fuse(nest, stage, i, &done));
    if (done) return NULL;
    return PESTLE_ERROR(
        INVALID_ARGUMENT, "%s %s.%s %s: %s", word, s->name,
        nest->axes.data[axes[0]].name, nest->axes.data[axes[1]].name,
        flattens ? "both must be reduced, or of a map that writes both in one "
                   "run, the second 2, 4 or 8 long"
                 : "an index would need a division");
  }
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "%s %s: axes must be adjacent unsplit axes, both of "
                      "results or both reduced",
                      word, s->name);
}

static pestle_status_t apply_at(pestle_nest_t* nest, uint32_t stage,
                                const pestle_primitive_t* primitive) {
  uint32_t consumer, axis = UINT32_MAX;
  PESTLE_TRY(find_stage(nest, primitive->names[0], &consumer));
  if (primitive->name_count > 1) {
    PESTLE_TRY(find_axis(nest, consumer, primitive->names[1], &axis));
  }
  return pestle_schedule_at(nest, stage, consumer, axis);
}

static pestle_status_t apply_data(pestle_nest_t* nest, uint32_t stage,
                                  const pestle_primitive_t* primitive) {
  uint32_t tensor = 0, axis = 0, copy;
  bool packs = primitive->prim == PESTLE_PRIM_PACK;
  PESTLE_TRY(find_tensor(nest, primitive->names[packs ? 1 : 0], &tensor));
  if (primitive->prim == PESTLE_PRIM_SPLIT_READ) {
    return pestle_schedule_split_read(nest, stage, tensor);
  }
  if (!packs) return pestle_schedule_stage(nest, stage, tensor, &copy);
  PESTLE_TRY(find_axis(nest, stage, primitive->names[0], &axis));
  return pestle_schedule_pack(nest, stage, &tensor, axis, primitive->ints[0]);
}

static pestle_status_t apply_prefetch(pestle_nest_t* nest, uint32_t stage,
                                      const pestle_primitive_t* primitive) {
  pestle_prefetch_t f = {.by = primitive->ints[0], .share = primitive->ints[1]};
  PESTLE_TRY(find_tensor(nest, primitive->names[0], &f.tensor));
  PESTLE_TRY(find_axis(nest, stage, primitive->names[1], &f.loop));
  f.like = f.tensor;
  if (primitive->name_count > 2) {
    PESTLE_TRY(find_tensor(nest, primitive->names[2], &f.like));
  }
  return pestle_schedule_prefetch(nest, &f);
}

static pestle_status_t apply_partial(pestle_nest_t* nest, uint32_t stage,
                                     const pestle_primitive_t* primitive) {
  uint32_t axis, partial;
  PESTLE_TRY(find_axis(nest, stage, primitive->names[0], &axis));
  return pestle_schedule_partial(nest, stage, axis, primitive->ints[0],
                                 primitive->ints[1] != 0, &partial);
}

static pestle_status_t apply_dot(pestle_nest_t* nest, uint32_t stage,
                                 const pestle_primitive_t* primitive) {
  uint32_t axis;
  PESTLE_TRY(find_axis(nest, stage, primitive->names[0], &axis));
  return pestle_schedule_dot(nest, stage, axis, primitive->ints[0],
                             primitive->ints[1] != 0);
}

static pestle_status_t apply_online(pestle_nest_t* nest, uint32_t stage,
                                    const pestle_primitive_t* primitive) {
  uint32_t axis, reductions[PESTLE_MAX_RANK];
  PESTLE_TRY(find_axis(nest, stage, primitive->names[0], &axis));
  if (primitive->name_count > PESTLE_MAX_RANK) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "online %s: at most %d reductions",
                        primitive->stage, PESTLE_MAX_RANK - 1);
  }
  for (uint32_t i = 1; i < primitive->name_count; ++i) {
    PESTLE_TRY(find_stage(nest, primitive->names[i], &reductions[i - 1]));
  }
  return pestle_schedule_online(nest, stage, axis, reductions,
                                primitive->name_count - 1,
                                primitive->ints[0] != 0);
}

static pestle_status_t apply_loops(pestle_nest_t* nest, uint32_t stage,
                                   const pestle_primitive_t* primitive) {
  uint32_t axes[PESTLE_NEST_MAX_AXES], unused[2];
  if (primitive->name_count > PESTLE_NEST_MAX_AXES) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "a stage has at most %d loops",
                        PESTLE_NEST_MAX_AXES);
  }
  for (uint32_t i = 0; i < primitive->name_count; ++i) {
    PESTLE_TRY(find_axis(nest, stage, primitive->names[i], &axes[i]));
  }
  switch ((int)primitive->prim) {
    case PESTLE_PRIM_FUSE:
      return apply_fuse(nest, stage, axes, false);
    case PESTLE_PRIM_FLATTEN:
      return apply_fuse(nest, stage, axes, true);
    case PESTLE_PRIM_JOIN:
      return pestle_schedule_join(nest, stage, axes[0], axes[1]);
    case PESTLE_PRIM_SPLIT:
      return pestle_schedule_split(nest, stage, axes[0], primitive->ints[0],
                                   &unused[0], &unused[1]);
    case PESTLE_PRIM_UNFUSE:
      return pestle_schedule_unfuse(nest, stage, axes[0], primitive->ints[0]);
    case PESTLE_PRIM_REORDER:
      return pestle_schedule_reorder(nest, stage, axes, primitive->name_count);
    case PESTLE_PRIM_SERIAL:
      return pestle_schedule_mark(nest, stage, axes[0], PESTLE_MARK_SERIAL);
    case PESTLE_PRIM_UNROLL:
      return pestle_schedule_mark(nest, stage, axes[0], PESTLE_MARK_UNROLL);
    case PESTLE_PRIM_VECTORISE:
      return pestle_schedule_mark(nest, stage, axes[0], PESTLE_MARK_VECTOR);
    case PESTLE_PRIM_BIND:
      return pestle_schedule_mark(
          nest, stage, axes[0],
          (pestle_mark_t)(PESTLE_MARK_GROUP + primitive->ints[0]));
    case PESTLE_PRIM_PERMUTE:
      return pestle_schedule_permute(nest, stage, axes, primitive->name_count);
    case PESTLE_PRIM_RFACTOR:
      return pestle_schedule_rfactor(nest, stage, axes[0],
                                     primitive->ints[0] != 0);
    default:  // pestle_schedule_apply() brings no other
      return PESTLE_ERROR(INTERNAL, "primitive %u is none of loops",
                          primitive->prim);
  }
}

// Names that each primitive needs at least, by pestle_prim_t.
static uint32_t least_names(pestle_prim_t prim) {
  switch (prim) {
    case PESTLE_PRIM_STORE:
    case PESTLE_PRIM_EPILOGUE:
    case PESTLE_PRIM_TRANSPOSE:
    case PESTLE_PRIM_STREAM:
    case PESTLE_PRIM_TEMPLATE:
    case PESTLE_PRIM_FLIP:
    case PESTLE_PRIM_BORDER:
      return 0;
    case PESTLE_PRIM_FUSE:
    case PESTLE_PRIM_FLATTEN:
    case PESTLE_PRIM_PACK:
    case PESTLE_PRIM_ONLINE:
    case PESTLE_PRIM_JOIN:
    case PESTLE_PRIM_PREFETCH:
      return 2;
    case PESTLE_PRIM_INLINE:
    case PESTLE_PRIM_SPLIT:
    case PESTLE_PRIM_REORDER:
    case PESTLE_PRIM_AT:
    case PESTLE_PRIM_SERIAL:
    case PESTLE_PRIM_UNROLL:
    case PESTLE_PRIM_VECTORISE:
    case PESTLE_PRIM_BIND:
    case PESTLE_PRIM_RFACTOR:
    case PESTLE_PRIM_STAGE:
    case PESTLE_PRIM_PARTIAL:
    case PESTLE_PRIM_DOT:
    case PESTLE_PRIM_PERMUTE:
    case PESTLE_PRIM_SPLIT_READ:
    case PESTLE_PRIM_UNFUSE:
    case PESTLE_PRIM_COUNT:
      return 1;
  }
  return 1;
}

static pestle_status_t apply_template(pestle_nest_t* nest,
                                      const pestle_primitive_t* primitive) {
  pestle_nest_template_t use;
  PESTLE_TRY(pestle_nest_read_template(nest, primitive, &use));
  return pestle_schedule_template(nest, &use);
}

pestle_status_t pestle_schedule_apply(pestle_nest_t* nest,
                                      const pestle_primitive_t* primitive) {
  uint32_t stage = 0, copy;
  pestle_prim_t prim = (pestle_prim_t)primitive->prim;
  if (primitive->name_count < least_names(prim)) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "a schedule primitive lacks a name");
  }
  if (prim == PESTLE_PRIM_INLINE) return apply_inline(nest, primitive);
  PESTLE_TRY(find_stage(nest, primitive->stage, &stage));
  switch (prim) {
    case PESTLE_PRIM_AT:
      return apply_at(nest, stage, primitive);
    case PESTLE_PRIM_STORE:
      return pestle_schedule_store(nest, stage,
                                   (pestle_scope_t)primitive->ints[0]);
    case PESTLE_PRIM_PACK:
    case PESTLE_PRIM_STAGE:
    case PESTLE_PRIM_SPLIT_READ:
      return apply_data(nest, stage, primitive);
    case PESTLE_PRIM_EPILOGUE:
      return pestle_schedule_epilogue_scratch(nest, stage, &copy);
    case PESTLE_PRIM_FUSE:
    case PESTLE_PRIM_FLATTEN:
    case PESTLE_PRIM_JOIN:
    case PESTLE_PRIM_SPLIT:
    case PESTLE_PRIM_REORDER:
    case PESTLE_PRIM_PERMUTE:
    case PESTLE_PRIM_UNFUSE:
    case PESTLE_PRIM_SERIAL:
    case PESTLE_PRIM_UNROLL:
    case PESTLE_PRIM_VECTORISE:
    case PESTLE_PRIM_BIND:
    case PESTLE_PRIM_RFACTOR:
      return apply_loops(nest, stage, primitive);
    case PESTLE_PRIM_TRANSPOSE:
      return pestle_schedule_transpose(nest, stage);
    case PESTLE_PRIM_STREAM:
      return pestle_schedule_stream(nest, stage);
    case PESTLE_PRIM_BORDER:
      return pestle_schedule_border(nest, stage, primitive->ints[0] != 0);
    case PESTLE_PRIM_TEMPLATE:
      return apply_template(nest, primitive);
    case PESTLE_PRIM_DOT:
      return apply_dot(nest, stage, primitive);
    case PESTLE_PRIM_FLIP:
      return pestle_schedule_flip(nest, stage, &copy);
    case PESTLE_PRIM_PARTIAL:
      return apply_partial(nest, stage, primitive);
    case PESTLE_PRIM_ONLINE:
      return apply_online(nest, stage, primitive);
    case PESTLE_PRIM_PREFETCH:
      return apply_prefetch(nest, stage, primitive);
    case PESTLE_PRIM_INLINE:
    case PESTLE_PRIM_COUNT:
      break;
  }
  return PESTLE_ERROR(INVALID_ARGUMENT, "no schedule primitive %u",
                      primitive->prim);
}

// --- The plain schedule ---

pestle_status_t pestle_schedule_plain(pestle_nest_t* nest) {
  uint32_t anchor = (uint32_t)nest->stages.size - 1;
  bool* inlined =
      pestle_arena_alloc_zero(nest->arena, nest->stages.size + 1, 1);
  if (!inlined) return PESTLE_ERROR(OUT_OF_MEMORY, "scheduling a kernel");
  for (uint32_t s = 0; s < anchor; ++s) {
    inlined[s] = !nest->stages.data[s].is_reduction;
  }
  PESTLE_TRY(pestle_schedule_inline(nest, inlined));
  for (uint32_t s = 0; s < anchor; ++s) {
    if (inlined[s]) continue;
    PESTLE_TRY(pestle_schedule_store(nest, s, PESTLE_SCOPE_SHARED));
    PESTLE_TRY(pestle_schedule_at(nest, s, anchor, UINT32_MAX));
  }
  return NULL;
}
