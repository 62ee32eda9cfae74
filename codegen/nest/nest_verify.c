// SPDX-License-Identifier: Apache-2.0
// Checks that what a nest computes makes sense, before and after it is scheduled;
// nest_verify_loops.c checks the schedule. Nests that were read from text come here too, so
// nothing is assumed: ranges are computed with overflow checks, and ids are checked before
// they are used.
#include "codegen/nest/nest_verify.h"
#include "base/bits.h"

#include <string.h>

#include "codegen/nest/nest_verify_internal.h"

typedef struct verify_t {
  const pestle_nest_t* nest;
  uint32_t stage;
  const pestle_nest_stage_t* s;
  uint8_t* seen;   // by expression: 1 checked
  bool empty;      // the stage has no points
  bool combining;  // in a combine step: ACC and VAL have a meaning
} verify_t;

static const char* type_name(unsigned dtype) {
  return pestle_dtype_info((pestle_dtype_t)dtype)->name;
}

static PESTLE_PRINTF(2, 3) pestle_status_t
    broken(const verify_t* v, const char* format, ...) {
  va_list args;
  va_start(args, format);
  pestle_status_t status = pestle_nest_broken(v->nest, v->s, format, args);
  va_end(args);
  return status;
}

// --- Ranges ---

static bool add_scaled(int64_t* sum, int64_t coef, int64_t value) {
  int64_t part;
  return !__builtin_mul_overflow(coef, value, &part) &&
         !__builtin_add_overflow(*sum, part, sum);
}

static bool atom_range(const pestle_nest_t* nest, const pestle_atom_t* a,
                       pestle_range_t* out) {
  pestle_range_t r;
  switch ((pestle_atom_kind_t)a->kind) {
    case PESTLE_ATOM_AXIS: {
      int64_t extent = nest->axes.data[a->axis].full_extent;
      *out = (pestle_range_t){0, extent > 0 ? extent - 1 : 0};
      return true;
    }
    case PESTLE_ATOM_DIV:
      if (!pestle_nest_checked_range(nest, a->affine, &r)) return false;
      *out = (pestle_range_t){pestle_floor_div(r.lo, a->divisor),
                              pestle_floor_div(r.hi, a->divisor)};
      return true;
    case PESTLE_ATOM_MOD:
      if (!pestle_nest_checked_range(nest, a->affine, &r)) return false;
      *out = r.lo >= 0 && r.hi < a->divisor
                 ? r
                 : (pestle_range_t){0, a->divisor - 1};
      return true;
    case PESTLE_ATOM_VALUE:
      *out = (pestle_range_t){a->lo, a->hi};
      return true;
  }
  return false;
}

bool pestle_nest_checked_range(const pestle_nest_t* nest,
                               const pestle_affine_t* affine,
                               pestle_range_t* out) {
  *out = (pestle_range_t){affine->constant, affine->constant};
  for (uint32_t i = 0; i < affine->count; ++i) {
    pestle_range_t r;
    if (!atom_range(nest, affine->terms[i].atom, &r)) return false;
    int64_t coef = affine->terms[i].coef;
    if (!add_scaled(&out->lo, coef, coef > 0 ? r.lo : r.hi) ||
        !add_scaled(&out->hi, coef, coef > 0 ? r.hi : r.lo)) {
      return false;
    }
  }
  return true;
}

// --- Index forms ---

static pestle_status_t check_expr(verify_t* v, const pestle_expr_t* e);

static bool is_root(const verify_t* v, uint32_t axis) {
  for (uint32_t i = 0; i < v->s->root_count; ++i) {
    if (v->s->roots[i] == axis) return true;
  }
  return false;
}

static pestle_status_t check_affine(verify_t* v,
                                    const pestle_affine_t* affine) {
  for (uint32_t i = 0; i < affine->count; ++i) {
    const pestle_atom_t* a = affine->terms[i].atom;
    if (a->kind == PESTLE_ATOM_AXIS && !is_root(v, a->axis)) {
      return broken(v, "an index names axis '%s', which is none of its own",
                    a->axis < v->nest->axes.size
                        ? v->nest->axes.data[a->axis].name
                        : "?");
    }
    if (a->affine) PESTLE_TRY(check_affine(v, a->affine));
    if ((a->kind == PESTLE_ATOM_DIV || a->kind == PESTLE_ATOM_MOD) &&
        a->divisor < 1) {
      return broken(v, "an index is divided by %lld", (long long)a->divisor);
    }
    pestle_range_t of;
    if ((a->kind == PESTLE_ATOM_DIV || a->kind == PESTLE_ATOM_MOD) &&
        pestle_nest_checked_range(v->nest, a->affine, &of) && of.lo < 0) {
      return broken(v, "an index as low as %lld is divided by %lld",
                    (long long)of.lo, (long long)a->divisor);
    }
    if (a->kind != PESTLE_ATOM_VALUE) continue;
    PESTLE_TRY(check_expr(v, a->value));
    if (a->lo > a->hi ||
        !pestle_dtype_is((pestle_dtype_t)a->value->dtype, PESTLE_KIND_INT)) {
      return broken(v, "a computed index is %s in %lld..%lld",
                    type_name(a->value->dtype), (long long)a->lo,
                    (long long)a->hi);
    }
  }
  pestle_range_t r;
  if (pestle_nest_checked_range(v->nest, affine, &r)) return NULL;
  return broken(v, "an index does not fit 64 bits");
}

static pestle_status_t check_inside(verify_t* v, const pestle_affine_t* affine,
                                    int64_t count, const char* what,
                                    const char* tensor) {
  pestle_range_t r;
  if (v->empty || !pestle_nest_checked_range(v->nest, affine, &r)) return NULL;
  if (r.lo >= 0 && r.hi < count) return NULL;
  return broken(v, "%s %lld..%lld of '%s', which has 0..%lld", what,
                (long long)r.lo, (long long)r.hi, tensor, (long long)count - 1);
}

static int64_t element_count(const pestle_nest_tensor_t* t) {
  return t->pack ? t->packed_elements : pestle_type_count(&t->type);
}

static pestle_status_t check_read(verify_t* v, const pestle_expr_t* e) {
  const pestle_nest_t* nest = v->nest;
  if (e->i < 0 || (uint64_t)e->i >= nest->tensors.size) {
    return broken(v, "it reads a tensor that does not exist");
  }
  const pestle_nest_tensor_t* t = &nest->tensors.data[e->i];
  bool flat = t->kind == PESTLE_TENSOR_INPUT;
  if (t->kind == PESTLE_TENSOR_OUTPUT) {
    return broken(v, "it reads the result '%s'", t->name);
  }
  pestle_dtype_t element = t->type.dtype;
  if (e->packed) {
    if (e->packed * pestle_dtype_size(element) != sizeof(int32_t) ||
        !e->affine || (!flat && e->lo != 1) || e->guard) {
      return broken(v, "it reads %u packed elements of '%s'", e->packed,
                    t->name);
    }
    PESTLE_TRY(check_affine(v, e->affine));
    element = PESTLE_I32;
  }
  if (e->dtype != element ||
      e->index_count != (flat ? 1 : (uint32_t)t->type.rank)) {
    return broken(v, "it reads '%s' with %u indices as %s", t->name,
                  e->index_count, type_name(e->dtype));
  }
  if (!flat && (t->stage < 0 || t->stage >= (int32_t)v->stage)) {
    return broken(v, "it reads '%s', which no earlier stage writes", t->name);
  }
  if (!flat && nest->stages.data[t->stage].inlined) {
    return broken(v, "it reads '%s', whose stage was inlined", t->name);
  }
  for (uint32_t i = 0; i < e->index_count; ++i) {
    PESTLE_TRY(check_affine(v, e->index[i]));
    if (e->guard) continue;
    PESTLE_TRY(check_inside(v, e->index[i],
                            flat ? element_count(t) : t->type.dims[i],
                            "it reads elements", t->name));
  }
  if (!e->guard) return NULL;
  PESTLE_TRY(check_expr(v, e->guard));
  if (e->guard->dtype == PESTLE_I1) return NULL;
  return broken(v, "a read of '%s' is guarded by %s", t->name,
                type_name(e->guard->dtype));
}

// --- Expressions ---

static pestle_status_t check_op(verify_t* v, const pestle_expr_t* e) {
  const pestle_op_info_t* info = pestle_op_info((pestle_op_t)e->op);
  if (!info || !pestle_op_is_scalar((pestle_op_t)e->op)) {
    return broken(v, "an expression has no scalar op");
  }
  unsigned type = e->dtype;
  uint32_t first = 0;
  switch ((pestle_rule_t)info->rule) {
    case PESTLE_RULE_COMPARE:
    case PESTLE_RULE_TEST:
      if (type != PESTLE_I1) {
        return broken(v, "%s gives i1, not %s", info->name, type_name(type));
      }
      type = e->args[0] ? e->args[0]->dtype : PESTLE_NONE;
      break;
    case PESTLE_RULE_SELECT:
      if (!e->args[0] || e->args[0]->dtype != PESTLE_I1) {
        return broken(v, "%s chooses by an i1", info->name);
      }
      first = 1;
      break;
    case PESTLE_RULE_SAME:
    case PESTLE_RULE_CLAMP:
    case PESTLE_RULE_INFER:
    case PESTLE_RULE_TYPED:
    case PESTLE_RULE_TYPES:
      break;
  }
  for (uint32_t i = 0; i < 3; ++i) {
    if ((e->args[i] != NULL) != (i < info->operands)) {
      return broken(v, "%s takes %u operands", info->name, info->operands);
    }
    if (!e->args[i] || i < first || e->args[i]->dtype == type) continue;
    return broken(v, "operand %u of %s is %s, not %s", i, info->name,
                  type_name(e->args[i]->dtype), type_name(type));
  }
  if (pestle_dtype_info((pestle_dtype_t)type)->kind & info->kinds) return NULL;
  return broken(v, "%s does not take %s", info->name, type_name(type));
}

static pestle_status_t check_accumulator(verify_t* v, const pestle_expr_t* e) {
  if (!v->combining || e->i < 0 || e->i >= v->s->value_count) {
    return broken(v, "an accumulator stands outside of a combine step");
  }
  uint32_t tensor = v->s->tensors[e->i];
  if (v->nest->tensors.data[tensor].type.dtype == e->dtype) return NULL;
  return broken(v, "accumulator %lld is no %s", (long long)e->i,
                type_name(e->dtype));
}

static pestle_status_t check_dot(verify_t* v, const pestle_expr_t* e) {
  bool words = e->args[0] && e->args[1] && e->args[0]->dtype == PESTLE_I32 &&
               e->args[1]->dtype == PESTLE_I32;
  bool kind = e->dtype == PESTLE_F32
                  ? e->i == 0
                  : e->dtype == PESTLE_I32 && e->i >= 0 && e->i <= 3;
  if (words && kind) return NULL;
  return broken(v, "a short dot product takes packed words, and is f32 or i32");
}

static pestle_status_t check_kind(verify_t* v, const pestle_expr_t* e) {
  switch ((pestle_expr_kind_t)e->kind) {
    case PESTLE_EXPR_CONST:
      return NULL;
    case PESTLE_EXPR_INDEX:
      return check_affine(v, e->affine);
    case PESTLE_EXPR_READ:
      return check_read(v, e);
    case PESTLE_EXPR_OP:
      return check_op(v, e);
    case PESTLE_EXPR_CAST:
      return e->args[0] ? NULL : broken(v, "a cast of nothing");
    case PESTLE_EXPR_BITCAST:
      if (e->args[0] &&
          pestle_dtypes_have_same_bits((pestle_dtype_t)e->args[0]->dtype,
                                       (pestle_dtype_t)e->dtype)) {
        return NULL;
      }
      return broken(v, "a bitcast changes the number of bits");
    case PESTLE_EXPR_INSIDE:
      return check_affine(v, e->affine);
    case PESTLE_EXPR_ACC:
    case PESTLE_EXPR_VAL:
      return check_accumulator(v, e);
    case PESTLE_EXPR_DOT:
      return check_dot(v, e);
  }
  return broken(v, "an expression of no kind");
}

static pestle_status_t check_expr(verify_t* v, const pestle_expr_t* e) {
  if (!e) return broken(v, "an expression is missing");
  if (v->seen[e->id]) return NULL;
  v->seen[e->id] = 1;
  for (int i = 0; i < 3; ++i) {
    if (e->args[i]) PESTLE_TRY(check_expr(v, e->args[i]));
  }
  return check_kind(v, e);
}

// --- What is written ---

// Whether the points of the map axes have indices of their own: sorted by
// coefficient, each steps over all that the smaller ones reach.
static bool is_injective(const verify_t* v, const pestle_affine_t* at,
                         bool* out_decided) {
  int64_t coef[PESTLE_NEST_MAX_AXES], extent[PESTLE_NEST_MAX_AXES];
  uint32_t n = 0;
  *out_decided = false;
  for (uint32_t i = 0; i < at->count; ++i) {
    const pestle_term_t* t = &at->terms[i];
    if (t->atom->kind != PESTLE_ATOM_AXIS) return true;
    int64_t c = t->coef < 0 ? -t->coef : t->coef;
    uint32_t k = n++;
    for (; k && coef[k - 1] > c; --k) {
      coef[k] = coef[k - 1];
      extent[k] = extent[k - 1];
    }
    coef[k] = c;
    extent[k] = v->nest->axes.data[t->atom->axis].full_extent;
  }
  *out_decided = true;
  uint32_t moving = 0;
  for (uint32_t i = 0; i < v->s->map_count; ++i) {
    moving += v->nest->axes.data[v->s->roots[i]].full_extent > 1;
  }
  int64_t reach = 0;
  for (uint32_t i = 0; i < n; ++i) {
    if (coef[i] <= reach) return false;
    reach += coef[i] * (extent[i] - 1);
  }
  return n == moving;
}

static pestle_status_t check_output(verify_t* v, uint32_t value) {
  const pestle_nest_tensor_t* t = &v->nest->tensors.data[v->s->tensors[value]];
  if (!v->s->write_index[value] || v->s->is_reduction) {
    return broken(v, "the result '%s' must be written by a map at an index",
                  t->name);
  }
  const pestle_affine_t* at = v->s->write_index[value][0];
  PESTLE_TRY(check_affine(v, at));
  if (v->empty) return NULL;
  PESTLE_TRY(check_inside(v, at, pestle_type_count(&t->type),
                          "it writes elements", t->name));
  bool decided;
  if (is_injective(v, at, &decided) || !decided) return NULL;
  return broken(v, "it writes some element of '%s' more than once", t->name);
}

static pestle_status_t check_write(verify_t* v, uint32_t value) {
  if (v->s->tensors[value] >= v->nest->tensors.size) {
    return broken(v, "it writes a tensor that does not exist");
  }
  const pestle_nest_tensor_t* t = &v->nest->tensors.data[v->s->tensors[value]];
  if (t->stage != (int32_t)v->stage) {
    return broken(v, "'%s' does not know that this stage writes it", t->name);
  }
  if (v->s->values[value]->dtype != t->type.dtype) {
    return broken(v, "the %s '%s' is given %s", type_name(t->type.dtype),
                  t->name, type_name(v->s->values[value]->dtype));
  }
  if (t->kind == PESTLE_TENSOR_OUTPUT) return check_output(v, value);
  bool same = t->kind == PESTLE_TENSOR_STAGE && !v->s->write_index[value] &&
              (uint32_t)t->type.rank == v->s->map_count;
  for (uint32_t i = 0; same && i < v->s->map_count; ++i) {
    same = v->nest->axes.data[v->s->roots[i]].full_extent == t->type.dims[i];
  }
  if (same) return NULL;
  return broken(v, "'%s' must have one dim a map axis, of its extent", t->name);
}

// --- Stages ---

static pestle_status_t check_reduce(verify_t* v) {
  const pestle_nest_stage_t* s = v->s;
  if (!s->inits) return broken(v, "a reduction without starting values");
  bool general = s->reduce == PESTLE_OP_COUNT;
  if (general != (s->combine != NULL)) {
    return broken(v, "a reduction has either a row or a combine step");
  }
  const pestle_op_info_t* info = general ? NULL : pestle_op_info(s->reduce);
  if (info && (!(info->flags & PESTLE_OP_FLAG_ASSOC) || s->value_count != 1)) {
    return broken(
        v, "a reduction by %s, which is not associative, or of %u values",
        info->name, s->value_count);
  }
  for (uint32_t i = 0; i < s->value_count; ++i) {
    unsigned type = v->nest->tensors.data[s->tensors[i]].type.dtype;
    PESTLE_TRY(check_expr(v, s->inits[i]));
    if (s->inits[i]->dtype != type ||
        (!general && s->acc_dtype != (pestle_dtype_t)type)) {
      return broken(v, "the reduction of %s starts at %s", type_name(type),
                    type_name(s->inits[i]->dtype));
    }
    if (!general) continue;
    v->combining = true;
    PESTLE_TRY(check_expr(v, s->combine[i]));
    v->combining = false;
    if (s->combine[i]->dtype != type) {
      return broken(v, "the combine step gives %s, not %s",
                    type_name(s->combine[i]->dtype), type_name(type));
    }
  }
  return NULL;
}

// A block axis covers its extent, each coordinate in one block.
static pestle_status_t check_block(const verify_t* v,
                                   const pestle_nest_axis_t* a) {
  const pestle_nest_axis_t* by = (size_t)a->block_axis < v->nest->axes.size
                                     ? &v->nest->axes.data[a->block_axis]
                                     : NULL;
  bool own = false;
  for (uint32_t i = 0; i < v->s->map_count; ++i) {
    own = own || v->s->roots[i] == (uint32_t)a->block_axis;
  }
  if (by && own && a->reduce && a->block > 0 && by->full_extent > 0 &&
      a->full_extent / a->block + (a->full_extent % a->block != 0) ==
          by->full_extent) {
    return NULL;
  }
  return broken(v, "the blocks of axis '%s' do not cover it", a->name);
}

static pestle_status_t check_end(const verify_t* v,
                                 const pestle_nest_axis_t* a) {
  const pestle_nest_tensor_t* t = a->end_tensor < v->nest->tensors.size
                                      ? &v->nest->tensors.data[a->end_tensor]
                                      : NULL;
  if (t && t->kind == PESTLE_TENSOR_INPUT && t->type.dtype == PESTLE_I64 &&
      !t->type.rank && a->end_scale > 0 && !a->reduce) {
    return NULL;
  }
  return broken(v, "axis '%s' ends at what is no input of one i64", a->name);
}

static pestle_status_t check_axes(verify_t* v) {
  const pestle_nest_stage_t* s = v->s;
  v->empty = false;
  for (uint32_t i = 0; i < s->root_count; ++i) {
    bool ok = s->roots[i] < v->nest->axes.size;
    const pestle_nest_axis_t* a = ok ? &v->nest->axes.data[s->roots[i]] : NULL;
    if (!a || a->stage != (int32_t)v->stage || a->parent >= 0 ||
        a->reduce != (i >= s->map_count) || a->full_extent < 0) {
      return broken(v, "axis %u is not one of its own", i);
    }
    if (a->block_axis >= 0) PESTLE_TRY(check_block(v, a));
    if (a->end_scale) PESTLE_TRY(check_end(v, a));
    if (a->full_extent == 0) v->empty = true;
  }
  if (s->map_count > s->root_count ||
      (s->map_count < s->root_count) > s->is_reduction) {
    return broken(v, "a map has reduction axes");
  }
  return NULL;
}

static pestle_status_t check_stage(verify_t* v) {
  const pestle_nest_stage_t* s = v->s;
  PESTLE_TRY(check_axes(v));
  if (!s->value_count) return broken(v, "it computes nothing");
  for (uint32_t i = 0; i < s->value_count; ++i) {
    PESTLE_TRY(check_expr(v, s->values[i]));
    PESTLE_TRY(check_write(v, i));
  }
  return s->is_reduction ? check_reduce(v) : NULL;
}

static pestle_status_t verify_lowered(pestle_nest_t* nest) {
  verify_t v = {.nest = nest};
  v.seen = pestle_arena_alloc_zero(nest->arena, nest->expr_count + 1, 1);
  if (!v.seen) return PESTLE_ERROR(OUT_OF_MEMORY, "verifying a nest");
  for (uint32_t i = 0; i < nest->stages.size; ++i) {
    v.stage = i;
    v.s = &nest->stages.data[i];
    if (v.s->inlined) continue;
    // Expressions may be shared by stages, whose axes differ.
    memset(v.seen, 0, nest->expr_count + 1);
    PESTLE_TRY(check_stage(&v));
  }
  const pestle_nest_stage_t* last =
      pestle_nest_stage(nest, (uint32_t)nest->stages.size - 1);
  v.s = last;
  for (uint32_t i = 0; i < last->value_count; ++i) {
    uint32_t tensor = last->tensors[i];
    if (nest->tensors.data[tensor].kind != PESTLE_TENSOR_OUTPUT) {
      return broken(&v, "the last stage must write results alone");
    }
  }
  return NULL;
}

pestle_status_t pestle_nest_verify(pestle_nest_t* nest,
                                   pestle_nest_level_t level,
                                   const pestle_target_caps_t* caps) {
  if (!nest->stages.size) {
    return PESTLE_ERROR(INTERNAL, "nest '%s' has no stage", nest->name);
  }
  pestle_arena_mark_t mark = pestle_arena_mark(nest->arena);
  pestle_status_t status = verify_lowered(nest);
  pestle_arena_rewind(nest->arena, mark);
  if (status || level == PESTLE_NEST_LOWERED) return status;
  return pestle_nest_verify_loops(nest, caps);
}
