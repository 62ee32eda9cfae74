// SPDX-License-Identifier: Apache-2.0
// Primitives that change where data lies: pack, split_read, stage, transpose, epilogue.
#include <string.h>

#include "codegen/schedule/schedule_internal.h"

typedef struct find_read_t {
  uint32_t tensor;
  uint32_t count;
  const pestle_expr_t* read;
} find_read_t;

static void find_visit(void* user, const pestle_expr_t* e) {
  find_read_t* f = user;
  if ((uint32_t)e->i != f->tensor) return;
  ++f->count;
  f->read = e;
}

// The only read of |tensor| in |e|; NULL: there is none, or several.
static const pestle_expr_t* only_read(pestle_nest_t* nest,
                                      const pestle_expr_t* e, uint32_t tensor) {
  find_read_t f = {.tensor = tensor};
  pestle_status_t st = pestle_expr_visit_reads(nest, e, find_visit, &f);
  if (st) pestle_nest_fail(nest, st);
  return f.count == 1 ? f.read : NULL;
}

const pestle_expr_t* pestle_schedule_find_read(pestle_nest_t* nest,
                                               uint32_t stage,
                                               uint32_t tensor) {
  find_read_t f = {.tensor = tensor};
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  pestle_arena_mark_t mark = pestle_arena_mark(nest->arena);
  uint8_t* seen = pestle_arena_alloc_zero(nest->arena, nest->expr_count + 1, 1);
  if (!seen) {
    pestle_nest_fail_memory(nest);
    return NULL;
  }
  // Values share equal reads: it is one.
  for (uint32_t v = 0; v < s->value_count; ++v)
    pestle_expr_visit_with(nest, seen, s->values[v], find_visit, &f);
  pestle_arena_rewind(nest->arena, mark);
  return f.count == 1 ? f.read : NULL;
}

typedef struct replace_t {
  uint32_t tensor;
  const pestle_expr_t* other;
} replace_t;

static const pestle_expr_t* replace_read(void* user, const pestle_expr_t* e) {
  const replace_t* r = user;
  return (uint32_t)e->i == r->tensor ? r->other : NULL;
}

// |e| with |other| in place of what it reads of |tensor|.
static const pestle_expr_t* with_read(pestle_nest_t* nest,
                                      const pestle_expr_t* e, uint32_t tensor,
                                      const pestle_expr_t* other) {
  replace_t r = {tensor, other};
  pestle_substitution_t how;
  pestle_substitution_init(nest, NULL, &how);
  how.read = replace_read;
  how.user = &r;
  return pestle_expr_substitute(nest, &how, e);
}

static void replace_reads(pestle_nest_t* nest, uint32_t stage, uint32_t tensor,
                          const pestle_expr_t* other) {
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  for (uint32_t v = 0; v < s->value_count; ++v)
    s->values[v] = with_read(nest, s->values[v], tensor, other);
}

static bool is_read_elsewhere(pestle_nest_t* nest, uint32_t stage,
                              uint32_t tensor) {
  find_read_t f = {.tensor = tensor};
  for (uint32_t i = 0; i < nest->stages.size; ++i) {
    const pestle_nest_stage_t* s = pestle_nest_stage(nest, i);
    for (uint32_t v = 0; i != stage && !s->inlined && v < s->value_count; ++v) {
      pestle_status_t st =
          pestle_expr_visit_reads(nest, s->values[v], find_visit, &f);
      if (st) pestle_nest_fail(nest, st);
    }
  }
  return f.count > 0;
}

// One more name of argument |tensor|.
static uint32_t name_again(pestle_nest_t* nest, uint32_t tensor) {
  pestle_nest_tensor_t t = nest->tensors.data[tensor];
  uint32_t other =
      pestle_nest_add_tensor(nest, t.name, t.kind, t.slot, &t.type);
  if (nest->failed) return tensor;
  nest->tensors.data[other].constant = t.constant;
  nest->tensors.data[other].elements = t.elements;
  return other;
}

// |read| of tensor |other|.
static const pestle_expr_t* read_again(pestle_nest_t* nest,
                                       const pestle_expr_t* read,
                                       uint32_t other) {
  pestle_expr_t* again =
      pestle_expr_make(nest, PESTLE_EXPR_READ, (pestle_dtype_t)read->dtype);
  if (nest->failed) return read;
  uint32_t id = again->id;
  *again = *read;
  again->id = id;
  again->i = other;
  return again;
}

uint32_t pestle_schedule_own(pestle_nest_t* nest, uint32_t stage,
                             uint32_t tensor) {
  const pestle_expr_t* read = pestle_schedule_find_read(nest, stage, tensor);
  if (!read || !is_read_elsewhere(nest, stage, tensor)) return tensor;
  uint32_t other = name_again(nest, tensor);
  replace_reads(nest, stage, tensor, read_again(nest, read, other));
  return other;
}

bool pestle_schedule_may_split_read(pestle_nest_t* nest, uint32_t stage,
                                    uint32_t tensor) {
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  const pestle_expr_t* e = s->value_count == 1 ? s->values[0] : NULL;
  if (!e || !s->is_reduction || e->kind != PESTLE_EXPR_OP ||
      e->op != PESTLE_OP_MULTIPLY ||
      nest->tensors.data[tensor].kind != PESTLE_TENSOR_INPUT) {
    return false;
  }
  const pestle_expr_t* first = only_read(nest, e->args[0], tensor);
  const pestle_expr_t* second = only_read(nest, e->args[1], tensor);
  return first && second && first != second;
}

pestle_status_t pestle_schedule_split_read(pestle_nest_t* nest, uint32_t stage,
                                           uint32_t tensor) {
  pestle_nest_tensor_t t = nest->tensors.data[tensor];
  if (!pestle_schedule_may_split_read(nest, stage, tensor)) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "split_read %s: it must be an argument that both factors of "
        "a product read, each once, in two places",
        t.name);
  }
  uint32_t other = name_again(nest, tensor);
  PESTLE_TRY(pestle_nest_status(nest));
  const pestle_expr_t* e = pestle_nest_stage(nest, stage)->values[0];
  const pestle_expr_t* again =
      read_again(nest, only_read(nest, e->args[1], tensor), other);
  pestle_expr_t* product =
      pestle_expr_make(nest, PESTLE_EXPR_OP, (pestle_dtype_t)e->dtype);
  PESTLE_TRY(pestle_nest_status(nest));
  uint32_t id = product->id;
  *product = *e;
  product->id = id;
  product->args[1] = with_read(nest, e->args[1], tensor, again);
  PESTLE_TRY(pestle_nest_status(nest));
  pestle_nest_stage(nest, stage)->values[0] = product;
  return pestle_schedule_record(nest, PESTLE_PRIM_SPLIT_READ,
                                pestle_schedule_stage_name(nest, stage),
                                &t.name, 1, NULL, 0);
}

// A dim of the packed layout and its index in the stage.
static void add_pack(pestle_nest_tensor_t* t, pestle_pack_axis_t axis,
                     const pestle_affine_t** index,
                     const pestle_affine_t* affine) {
  index[t->pack_count] = affine;
  t->pack[t->pack_count++] = axis;
}

pestle_status_t pestle_schedule_pack(pestle_nest_t* nest, uint32_t stage,
                                     uint32_t* tensor_io, uint32_t axis,
                                     int64_t factor) {
  const char* name = nest->tensors.data[*tensor_io].name;
  uint32_t tensor = pestle_schedule_own(nest, stage, *tensor_io);
  PESTLE_TRY(pestle_nest_status(nest));
  *tensor_io = tensor;
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  pestle_nest_tensor_t* t = &nest->tensors.data[tensor];
  const pestle_expr_t* read = pestle_schedule_find_read(nest, stage, tensor);
  const pestle_nest_axis_t* cut = &nest->axes.data[axis];
  bool ok = t->constant && !t->pack && read && !read->guard &&
            cut->stage == (int32_t)stage && cut->parent < 0 && !cut->reduce &&
            factor > 0 && t->kind == PESTLE_TENSOR_INPUT;
  for (uint32_t i = 0; ok && i < read->index[0]->count; ++i) {
    ok = read->index[0]->terms[i].atom->kind == PESTLE_ATOM_AXIS;
  }
  if (ok && read->packed) {
    const pestle_affine_t* along = read->affine;
    ok = !along->constant && along->count <= 1;
    if (ok && along->count) {
      ok = along->terms[0].coef == read->packed &&
           along->terms[0].atom->kind == PESTLE_ATOM_AXIS;
    }
  }
  if (!ok) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pack %s: it needs a constant that is read once by an "
                        "affine index, and a map axis to cut",
                        t->name);
  }
  const pestle_affine_t* flat = read->index[0];
  const pestle_affine_t* index[PESTLE_NEST_MAX_AXES + 3] = {0};
  // Of words, the reduction axis that they go along.
  bool walks = read->packed && read->affine->count;
  uint32_t reduction = walks ? read->affine->terms[0].atom->axis : UINT32_MAX;
  t->pack = PESTLE_ARENA_ARRAY(nest->arena, pestle_pack_axis_t,
                               PESTLE_NEST_MAX_AXES + 3);
  if (!t->pack) return PESTLE_ERROR(OUT_OF_MEMORY, "packing '%s'", t->name);
  t->pack_offset = flat->constant;
  bool nested;
  int64_t n = nest->axes.data[axis].extent;
  int64_t coef = pestle_affine_coef(flat, axis, &nested);
  const pestle_affine_t* coordinate = pestle_affine_axis(nest, axis);
  for (uint32_t pass = 0; pass < 2; ++pass) {
    bool reductions = pass == 1;
    for (uint32_t i = 0; i < s->root_count; ++i) {
      const pestle_nest_axis_t* a = &nest->axes.data[s->roots[i]];
      int64_t c = pestle_affine_coef(flat, s->roots[i], &nested);
      if (s->roots[i] == axis || a->reduce != reductions || !c) continue;
      pestle_pack_axis_t dim = {.coef = c, .extent = a->extent};
      if (read->packed && s->roots[i] == reduction) {
        dim.scale = read->packed;
        dim.limit = read->hi;
        dim.reduction = 1;
      }
      add_pack(t, dim, index, pestle_affine_axis(nest, s->roots[i]));
    }
    if (reductions) break;
    add_pack(t,
             (pestle_pack_axis_t){.coef = coef * factor,
                                  .extent = (n + factor - 1) / factor,
                                  .scale = factor,
                                  .limit = n},
             index, pestle_affine_div(nest, coordinate, factor));
  }
  add_pack(t,
           (pestle_pack_axis_t){
               .coef = coef, .extent = factor, .scale = 1, .limit = n},
           index, pestle_affine_mod(nest, coordinate, factor));
  const pestle_affine_t* packed = pestle_affine_const(nest, 0);
  t->packed_elements = 1;
  for (uint32_t i = 0; i < t->pack_count; ++i) {
    packed = pestle_affine_add(
        nest, pestle_affine_scale(nest, packed, t->pack[i].extent), index[i]);
    t->packed_elements *= t->pack[i].extent;
  }
  if (read->packed) {
    // What follows each other in a word is the innermost dim; the kernel reads
    // words.
    t->pack[t->pack_count++] = (pestle_pack_axis_t){.coef = read->lo,
                                                    .extent = read->packed,
                                                    .scale = 1,
                                                    .limit = read->hi,
                                                    .reduction = 1};
    t->packed_width = read->packed;
    t->type.dtype = PESTLE_I32;
  }
  pestle_expr_t* other =
      pestle_expr_make(nest, PESTLE_EXPR_READ, (pestle_dtype_t)read->dtype);
  const pestle_affine_t** one =
      PESTLE_ARENA_ARRAY(nest->arena, const pestle_affine_t*, 1);
  PESTLE_TRY(pestle_nest_status(nest));
  if (!one) return PESTLE_ERROR(OUT_OF_MEMORY, "packing '%s'", t->name);
  one[0] = packed;
  other->i = tensor;
  other->index = one;
  other->index_count = 1;
  replace_reads(nest, stage, tensor, other);
  PESTLE_TRY(pestle_nest_status(nest));
  const char* names[2] = {pestle_schedule_axis_name(nest, axis), name};
  return pestle_schedule_record(nest, PESTLE_PRIM_PACK, s->name, names, 2,
                                &factor, 1);
}

void pestle_schedule_move_before(pestle_nest_t* nest, uint32_t stage) {
  uint32_t last = (uint32_t)nest->stages.size - 1;
  pestle_nest_stage_t made = nest->stages.data[last];
  memmove(&nest->stages.data[stage + 1], &nest->stages.data[stage],
          (last - stage) * sizeof(made));
  nest->stages.data[stage] = made;
  for (uint32_t i = 0; i < nest->stages.size; ++i) {
    int32_t* at = &nest->stages.data[i].at_stage;
    if (*at == (int32_t)last) {
      *at = (int32_t)stage;
    } else if (*at >= (int32_t)stage) {
      ++*at;
    }
  }
  for (uint32_t i = 0; i < nest->tensors.size; ++i) {
    int32_t* at = &nest->tensors.data[i].stage;
    if (*at == (int32_t)last) {
      *at = (int32_t)stage;
    } else if (*at >= (int32_t)stage) {
      ++*at;
    }
  }
  for (uint32_t i = 0; i < nest->axes.size; ++i) {
    int32_t* at = &nest->axes.data[i].stage;
    if (*at == (int32_t)last) {
      *at = (int32_t)stage;
    } else if (*at >= (int32_t)stage) {
      ++*at;
    }
  }
}

static bool is_overwritten(const pestle_nest_t* nest, uint32_t tensor) {
  for (size_t i = 0; i < nest->tensors.size; ++i) {
    const pestle_nest_tensor_t* t = &nest->tensors.data[i];
    if (t->kind == PESTLE_TENSOR_OUTPUT &&
        t->alias == (int32_t)nest->tensors.data[tensor].slot) {
      return true;
    }
  }
  return false;
}

// Whether |guard| tests axes alone that |index| moves along.
static bool tests_index(const pestle_nest_stage_t* s,
                        const pestle_expr_t* guard,
                        const pestle_affine_t* index) {
  if (guard->kind == PESTLE_EXPR_OP && guard->op == PESTLE_OP_AND) {
    return tests_index(s, guard->args[0], index) &&
           tests_index(s, guard->args[1], index);
  }
  if (guard->kind != PESTLE_EXPR_INSIDE) return false;
  for (uint32_t i = 0; i < s->root_count; ++i) {
    if (pestle_affine_depends(guard->affine, s->roots[i]) &&
        !pestle_affine_depends(index, s->roots[i])) {
      return false;
    }
  }
  return true;
}

bool pestle_schedule_may_stage(const pestle_nest_stage_t* stage,
                               const pestle_expr_t* read) {
  if (!read->guard) return true;
  return !stage->is_reduction &&
         tests_index(stage, read->guard, read->index[0]);
}

pestle_status_t pestle_schedule_stage(pestle_nest_t* nest, uint32_t stage,
                                      uint32_t tensor, uint32_t* out_copy) {
  const pestle_expr_t* read = pestle_schedule_find_read(nest, stage, tensor);
  const char* name = nest->tensors.data[tensor].name;
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  if (!read || nest->tensors.data[tensor].kind != PESTLE_TENSOR_INPUT ||
      !pestle_schedule_may_stage(s, read) || is_overwritten(nest, tensor)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "stage %s: it must be an argument that the kernel does "
                        "not overwrite, read once, guarded by tests of its "
                        "own axes at most",
                        name);
  }
  // Reduction axes first: the copy is [k][n], whatever the source's order.
  pestle_type_t domain = {.dtype = (pestle_dtype_t)read->dtype};
  uint32_t from[PESTLE_NEST_MAX_AXES];
  for (uint32_t pass = 0; pass < 3; ++pass) {
    for (uint32_t i = 0; i < s->root_count; ++i) {
      bool last_map = i + 1 == s->map_count;
      bool reduce = i >= s->map_count;
      uint32_t when = reduce ? 1 : last_map ? 2 : 0;
      if (when != pass || !pestle_affine_depends(read->index[0], s->roots[i]))
        continue;
      if (domain.rank == PESTLE_MAX_RANK) {
        return PESTLE_ERROR(INVALID_ARGUMENT, "stage %s: too many axes", name);
      }
      from[domain.rank] = s->roots[i];
      domain.dims[domain.rank++] = nest->axes.data[s->roots[i]].extent;
    }
  }
  uint32_t copy = pestle_nest_add_stage(nest, name, &domain);
  PESTLE_TRY(pestle_nest_status(nest));
  const pestle_affine_t** map = pestle_arena_alloc_zero(
      nest->arena, nest->axes.size * sizeof(*map), _Alignof(pestle_affine_t*));
  if (!map) return PESTLE_ERROR(OUT_OF_MEMORY, "staging '%s'", name);
  const pestle_affine_t* index[PESTLE_MAX_RANK] = {0};
  pestle_nest_stage_t* c = pestle_nest_stage(nest, copy);
  for (int32_t d = 0; d < domain.rank; ++d) {
    map[from[d]] = pestle_affine_axis(nest, c->roots[d]);
    index[d] = pestle_affine_axis(nest, from[d]);
  }
  pestle_substitution_t how;
  pestle_substitution_init(nest, map, &how);
  c->values[0] = pestle_expr_substitute(nest, &how, read);
  const pestle_expr_t* other =
      pestle_expr_read(nest, c->tensors[0], index, NULL);
  replace_reads(nest, stage, tensor, other);
  PESTLE_TRY(pestle_nest_status(nest));
  pestle_schedule_move_before(nest, stage);
  *out_copy = stage;
  return pestle_schedule_record(nest, PESTLE_PRIM_STAGE,
                                pestle_schedule_stage_name(nest, stage + 1),
                                &name, 1, NULL, 0);
}

// What |stage| reads, when that is all that it does; else NULL.
static const pestle_expr_t* copied_read(const pestle_nest_t* nest,
                                        const pestle_nest_stage_t* s) {
  if (s->is_reduction || s->value_count != 1) return NULL;
  const pestle_expr_t* e = s->values[0];
  while (e->kind == PESTLE_EXPR_CAST)
    e = e->args[0];
  if (e->kind != PESTLE_EXPR_READ || !pestle_schedule_may_stage(s, e) ||
      nest->tensors.data[e->i].kind != PESTLE_TENSOR_INPUT) {
    return NULL;
  }
  return e;
}

int32_t pestle_nest_transposed_axis(pestle_nest_t* nest, uint32_t stage) {
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  const pestle_expr_t* read = copied_read(nest, s);
  if (!read || s->map_count < 2) return -1;
  bool nested;
  int64_t last =
      pestle_affine_coef(read->index[0], s->roots[s->map_count - 1], &nested);
  if (nested || last == 1 || last == 0) return -1;
  for (uint32_t i = 0; i + 1 < s->map_count; ++i) {
    int64_t unit = read->packed && read->lo == 1 ? read->packed : 1;
    if (pestle_affine_coef(read->index[0], s->roots[i], &nested) == unit &&
        !nested) {
      return (int32_t)i;
    }
  }
  return -1;
}

pestle_status_t pestle_schedule_transpose(pestle_nest_t* nest, uint32_t stage) {
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  int32_t axis = pestle_nest_transposed_axis(nest, stage);
  bool ok = axis >= 0 && s->order_count >= 2;
  if (ok) {
    const pestle_nest_axis_t* axes = nest->axes.data;
    const pestle_nest_axis_t* v = &axes[s->order[s->order_count - 2]];
    const pestle_nest_axis_t* u = &axes[s->order[s->order_count - 1]];
    ok = u->mark == PESTLE_MARK_VECTOR && v->mark == PESTLE_MARK_UNROLL &&
         u->full_extent == v->full_extent && u->full_extent > 1 &&
         u->parent == (int32_t)s->roots[axis] &&
         v->parent == (int32_t)s->roots[s->map_count - 1];
  }
  if (!ok) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "transpose %s: it must be a copy whose innermost loops "
        "are an unrolled part of its last axis and as long a "
        "vector of the axis that is contiguous in what it reads",
        s->name);
  }
  s->transposed = true;
  return pestle_schedule_record(nest, PESTLE_PRIM_TRANSPOSE, s->name, NULL, 0,
                                NULL, 0);
}

pestle_status_t pestle_schedule_epilogue_scratch(pestle_nest_t* nest,
                                                 uint32_t stage,
                                                 uint32_t* out_copy) {
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  if (!s->is_reduction || s->value_count != 1) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "epilogue %s: not a single reduction",
                        s->name);
  }
  uint32_t tensor = s->tensors[0];
  pestle_type_t type = nest->tensors.data[tensor].type;
  const char* name = s->name;
  uint32_t copy = pestle_nest_add_stage(
      nest, pestle_schedule_derived_name(nest, name, "s"), &type);
  PESTLE_TRY(pestle_nest_status(nest));
  uint32_t copied = pestle_nest_stage(nest, copy)->tensors[0];
  for (uint32_t other = stage + 1; other < copy; ++other) {
    const pestle_expr_t* read = pestle_schedule_find_read(nest, other, tensor);
    if (!read) continue;
    replace_reads(nest, other, tensor,
                  pestle_expr_read(nest, copied, read->index, read->guard));
  }
  const pestle_affine_t* axes[PESTLE_MAX_RANK] = {0};
  pestle_nest_stage_t* c = pestle_nest_stage(nest, copy);
  for (uint32_t d = 0; d < c->map_count; ++d) {
    axes[d] = pestle_affine_axis(nest, c->roots[d]);
  }
  c->values[0] = pestle_expr_read(nest, tensor, axes, NULL);
  PESTLE_TRY(pestle_nest_status(nest));
  pestle_schedule_move_before(nest, stage + 1);
  *out_copy = stage + 1;
  return pestle_schedule_record(nest, PESTLE_PRIM_EPILOGUE, name, NULL, 0, NULL,
                                0);
}
