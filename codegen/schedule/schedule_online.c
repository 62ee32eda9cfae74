// SPDX-License-Identifier: Apache-2.0
// The primitive online: a maximum and the sums that are shifted by it step together, in
// one pass over what they read (the online softmax).
//
// Why it is right, whatever the maximum so far is: let each term exp(x - m) * g be made
// with the m of its step. Their sum, times exp(m - m'), is the sum of the terms made with
// m'. For that every term must have one such factor, its m must be that of the term's own
// row, and m must be in no other part of it. Powers of 2 in place of exp do as well, where
// all factors are such.
#include <math.h>
#include <string.h>

#include "codegen/schedule/schedule_internal.h"

typedef struct online_t {
  pestle_nest_t* nest;
  uint32_t maximum;   // the stage M
  uint32_t tensor;    // what it writes
  bool* depends;      // by stage: on the maximum, through whatever
  pestle_op_t power;  // EXP or EXP2, COUNT until a sum is found
} online_t;

// --- Whether |e| depends on the maximum ---

typedef struct depends_t {
  const online_t* o;
  bool hit;
} depends_t;

static void depends_visit(void* user, const pestle_expr_t* e) {
  depends_t* d = user;
  const pestle_nest_tensor_t* t = &d->o->nest->tensors.data[e->i];
  if (t->kind != PESTLE_TENSOR_STAGE || t->stage < 0) return;
  if ((uint32_t)t->stage == d->o->maximum || d->o->depends[t->stage]) {
    d->hit = true;
  }
}

static bool expr_depends(const online_t* o, const pestle_expr_t* e) {
  depends_t d = {o, false};
  pestle_status_t status =
      pestle_expr_visit_reads(o->nest, e, depends_visit, &d);
  if (!status) return d.hit;
  pestle_nest_fail(o->nest, status);
  return true;
}

// Stages read earlier ones alone.
static void find_dependent(online_t* o) {
  for (uint32_t q = o->maximum + 1; q < o->nest->stages.size; ++q) {
    const pestle_nest_stage_t* s = pestle_nest_stage(o->nest, q);
    for (uint32_t v = 0; v < s->value_count && !s->inlined; ++v) {
      o->depends[q] = o->depends[q] || expr_depends(o, s->values[v]);
    }
  }
}

// --- The factor exp(x - m) ---

// |e| with the read of a map stage, which it is, replaced by the stage's body;
// NULL if it is no such read.
static const pestle_expr_t* read_body(const online_t* o,
                                      const pestle_expr_t* e) {
  pestle_nest_t* nest = o->nest;
  if (e->kind != PESTLE_EXPR_READ || e->guard) return NULL;
  const pestle_nest_tensor_t* t = &nest->tensors.data[e->i];
  if (t->kind != PESTLE_TENSOR_STAGE || t->stage < 0) return NULL;
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, (uint32_t)t->stage);
  if (s->is_reduction || s->value_count != 1) return NULL;
  const pestle_affine_t** map = pestle_arena_alloc_zero(
      nest->arena, nest->axes.size * sizeof(*map), _Alignof(pestle_affine_t*));
  if (!map) {
    pestle_nest_fail_memory(nest);
    return NULL;
  }
  for (uint32_t i = 0; i < s->map_count; ++i)
    map[s->roots[i]] = e->index[i];
  pestle_substitution_t how;
  pestle_substitution_init(nest, map, &how);
  return pestle_expr_substitute(nest, &how, s->values[0]);
}

// Whether |e| reads the maximum of the row that |f| computes: its map axes,
// after the one of the block, lead with those of the row.
static bool reads_own_row(const online_t* o, const pestle_nest_stage_t* f,
                          const pestle_expr_t* e) {
  if (e->kind != PESTLE_EXPR_READ || (uint32_t)e->i != o->tensor || e->guard) {
    return false;
  }
  for (uint32_t i = 0; i < e->index_count; ++i) {
    if (o->nest->tensors.data[o->tensor].type.dims[i] == 1) continue;
    if (i + 1 >= f->map_count ||
        pestle_affine_is_axis(e->index[i]) != (int32_t)f->roots[i + 1]) {
      return false;
    }
  }
  return true;
}

// The factor exp(x - m), or 2^(x - m), that |e|, of stage |f|, has once; or NULL.
static const pestle_expr_t* find_factor(const online_t* o,
                                        const pestle_nest_stage_t* f,
                                        const pestle_expr_t* e) {
  const pestle_expr_t* body = read_body(o, e);
  if (body) return find_factor(o, f, body);
  if (e->kind != PESTLE_EXPR_OP) return NULL;
  if (e->op == PESTLE_OP_MULTIPLY) {
    bool first = expr_depends(o, e->args[0]);
    bool second = expr_depends(o, e->args[1]);
    if (first == second) return NULL;
    return find_factor(o, f, e->args[second ? 1 : 0]);
  }
  if (e->op == PESTLE_OP_DIVIDE) {
    if (expr_depends(o, e->args[1])) return NULL;
    return find_factor(o, f, e->args[0]);
  }
  if ((e->op != PESTLE_OP_EXP && e->op != PESTLE_OP_EXP2) ||
      e->args[0]->kind != PESTLE_EXPR_OP) {
    return NULL;
  }
  const pestle_expr_t* shift = e->args[0];
  bool is_factor = shift->op == PESTLE_OP_SUBTRACT &&
                   !expr_depends(o, shift->args[0]) &&
                   reads_own_row(o, f, shift->args[1]);
  return is_factor ? e : NULL;
}

// --- Conditions ---

static pestle_status_t refuse(const pestle_nest_t* nest, uint32_t stage,
                              const char* why) {
  return PESTLE_ERROR(INVALID_ARGUMENT, "online %s: %s",
                      pestle_schedule_stage_name(nest, stage), why);
}

// One reduction loop, as long as the owner's; leading axes as the owner has.
static bool steps_alike(const pestle_nest_t* nest, const pestle_nest_stage_t* s,
                        const pestle_nest_stage_t* owner, uint32_t axis) {
  const pestle_nest_axis_t* loop = &nest->axes.data[axis];
  if (s->root_count != s->map_count + 1 || s->order_count != s->root_count ||
      s->at_stage >= 0 || s->value_count != 1) {
    return false;
  }
  const pestle_nest_axis_t* own = &nest->axes.data[s->roots[s->map_count]];
  if (own->extent != loop->extent || own->peel_last != loop->peel_last) {
    return false;
  }
  for (uint32_t i = 0; i < s->map_count; ++i) {
    int64_t extent = nest->axes.data[s->roots[i]].extent;
    bool same = i < owner->map_count &&
                nest->axes.data[owner->roots[i]].extent == extent;
    if (!same && extent != 1) return false;
  }
  return true;
}

// The stage of partial results that the sum |s| reads, or -1.
static int32_t terms_of(const pestle_nest_t* nest,
                        const pestle_nest_stage_t* s) {
  const pestle_expr_t* e = s->values[0];
  if (e->kind != PESTLE_EXPR_READ || e->guard) return -1;
  const pestle_nest_tensor_t* t = &nest->tensors.data[e->i];
  return t->kind == PESTLE_TENSOR_STAGE ? t->stage : -1;
}

static pestle_status_t check_sum(online_t* o, uint32_t stage) {
  const pestle_nest_t* nest = o->nest;
  const pestle_nest_stage_t* s = &nest->stages.data[stage];
  int32_t terms = terms_of(nest, s);
  const pestle_nest_stage_t* t = terms >= 0 ? &nest->stages.data[terms] : NULL;
  if (s->reduce != PESTLE_OP_ADD || stage <= o->maximum || !t ||
      !t->is_reduction || t->reduce != PESTLE_OP_ADD ||
      t->map_count != s->map_count + 1) {
    return refuse(nest, stage, "it must be a sum of partial sums");
  }
  const pestle_expr_t* factor = find_factor(o, t, t->values[0]);
  if (!factor) {
    return refuse(nest, stage,
                  "each of its terms must have the factor exp(x - m) once, m "
                  "the maximum of its own row, and nothing else of m");
  }
  if (o->power != PESTLE_OP_COUNT && o->power != factor->op) {
    return refuse(nest, stage, "its factor is of e, another sum's of 2");
  }
  o->power = factor->op;
  return NULL;
}

static bool is_named(uint32_t stage, uint32_t owner, const uint32_t* reductions,
                     uint32_t count) {
  if (stage == owner) return true;
  for (uint32_t i = 1; i < count; ++i) {
    if (reductions[i] == stage) return true;
  }
  return false;
}

// What makes the terms reads the maximum as it is so far: nobody else may read
// that. |making| is set, by stage, for what makes terms.
static pestle_status_t check_other_readers(const online_t* o,
                                           const bool* making, uint32_t owner,
                                           const uint32_t* reductions,
                                           uint32_t count) {
  pestle_nest_t* nest = o->nest;
  for (uint32_t q = o->maximum + 1; q < nest->stages.size; ++q) {
    if (nest->stages.data[q].inlined || making[q]) continue;
    if (is_named(q, owner, reductions, count)) continue;
    for (uint32_t p = o->maximum + 1; p < q; ++p) {
      bool reads;
      if (!making[p] || nest->stages.data[p].inlined) continue;
      PESTLE_TRY(pestle_schedule_reads(nest, q, p, &reads));
      if (reads) {
        return refuse(nest, q, "it reads terms of the sums outside of them");
      }
    }
  }
  return NULL;
}

// Marks the stages that the dependent parts of |stage| come from.
static pestle_status_t mark_makers(const online_t* o, uint32_t stage,
                                   bool* making) {
  for (uint32_t p = o->maximum + 1; p < stage; ++p) {
    bool reads;
    if (making[p] || !o->depends[p]) continue;
    PESTLE_TRY(pestle_schedule_reads(o->nest, stage, p, &reads));
    if (!reads) continue;
    making[p] = true;
    PESTLE_TRY(mark_makers(o, p, making));
  }
  return NULL;
}

static pestle_status_t check_online(online_t* o, uint32_t owner, uint32_t axis,
                                    const uint32_t* reductions,
                                    uint32_t count) {
  pestle_nest_t* nest = o->nest;
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, owner);
  const pestle_nest_stage_t* m = pestle_nest_stage(nest, o->maximum);
  if (m->reduce != PESTLE_OP_MAXIMUM ||
      !pestle_dtype_is(m->acc_dtype, PESTLE_KIND_FLOAT)) {
    return refuse(nest, o->maximum, "it must be a maximum of floats");
  }
  if (s->root_count != s->map_count + 1 || s->roots[s->map_count] != axis) {
    return refuse(nest, owner, "the loop must be its one reduction axis");
  }
  bool* making = pestle_arena_alloc_zero(nest->arena, nest->stages.size + 1, 1);
  if (!making) return PESTLE_ERROR(OUT_OF_MEMORY, "scheduling");
  for (uint32_t i = 0; i < count; ++i) {
    if (reductions[i] >= owner ||
        !steps_alike(nest, pestle_nest_stage(nest, reductions[i]), s, axis)) {
      return refuse(
          nest, reductions[i],
          "it must be an earlier reduction with the loop's steps and the "
          "leading axes of its stage");
    }
    if (i) PESTLE_TRY(check_sum(o, reductions[i]));
    if (i) PESTLE_TRY(mark_makers(o, reductions[i], making));
  }
  PESTLE_TRY(check_sum(o, owner));
  PESTLE_TRY(mark_makers(o, owner, making));
  PESTLE_TRY(pestle_nest_status(nest));
  return check_other_readers(o, making, owner, reductions, count);
}

// --- The change ---

static const pestle_expr_t* accumulator(pestle_nest_t* nest,
                                        pestle_expr_kind_t kind,
                                        pestle_dtype_t dtype) {
  pestle_expr_t* e = pestle_expr_make(nest, kind, dtype);
  e->i = 0;
  return e;
}

// |m|, or 0 where it is still -infinity: x - m must not be NaN for the
// elements that are -infinity themselves.
static const pestle_expr_t* finite_or_zero(pestle_nest_t* nest,
                                           const pestle_expr_t* m) {
  pestle_dtype_t t = (pestle_dtype_t)m->dtype;
  const pestle_expr_t* none = pestle_expr_const(nest, t, (double)-INFINITY, 0);
  const pestle_expr_t* is_none =
      pestle_expr_op(nest, PESTLE_OP_EQ, PESTLE_I1, m, none, NULL);
  return pestle_expr_op(nest, PESTLE_OP_SELECT, t, is_none,
                        pestle_expr_const(nest, t, 0.0, 0), m);
}

static bool make_arrays(pestle_nest_t* nest, pestle_nest_stage_t* s,
                        uint32_t n) {
  const pestle_expr_t** values =
      PESTLE_ARENA_ARRAY(nest->arena, const pestle_expr_t*, n);
  const pestle_expr_t** inits =
      PESTLE_ARENA_ARRAY(nest->arena, const pestle_expr_t*, n);
  s->combine = PESTLE_ARENA_ARRAY(nest->arena, const pestle_expr_t*, n);
  uint32_t* tensors = PESTLE_ARENA_ARRAY(nest->arena, uint32_t, n);
  const pestle_affine_t* const** writes =
      PESTLE_ARENA_ARRAY(nest->arena, const pestle_affine_t* const*, n);
  if (!values || !inits || !s->combine || !tensors || !writes) {
    pestle_nest_fail_memory(nest);
    return false;
  }
  values[0] = s->values[0];
  inits[0] = s->inits[0];
  tensors[0] = s->tensors[0];
  for (uint32_t v = 0; v < n; ++v)
    writes[v] = NULL;
  s->values = values;
  s->inits = inits;
  s->tensors = tensors;
  s->write_index = writes;
  s->value_count = n;
  s->reduce = PESTLE_OP_COUNT;
  return true;
}

// M also writes by what sums have to be scaled: exp(m before - m after).
static uint32_t change_maximum(const online_t* o) {
  pestle_nest_t* nest = o->nest;
  pestle_nest_stage_t* m = pestle_nest_stage(nest, o->maximum);
  pestle_dtype_t t = m->acc_dtype;
  pestle_type_t type = nest->tensors.data[o->tensor].type;
  uint32_t scale = pestle_nest_add_tensor(
      nest, pestle_schedule_derived_name(nest, m->name, "_scale"),
      PESTLE_TENSOR_STAGE, 0, &type);
  if (nest->failed || !make_arrays(nest, m, 2)) return 0;
  nest->tensors.data[scale].stage = (int32_t)o->maximum;
  nest->tensors.data[scale].scope = nest->tensors.data[o->tensor].scope;
  m->tensors[1] = scale;
  const pestle_expr_t* one = pestle_expr_const(nest, t, 1.0, 0);
  m->values[1] = one;
  m->inits[1] = one;
  const pestle_expr_t* before = accumulator(nest, PESTLE_EXPR_ACC, t);
  const pestle_expr_t* after =
      pestle_expr_op(nest, PESTLE_OP_MAXIMUM, t, before,
                     accumulator(nest, PESTLE_EXPR_VAL, t), NULL);
  m->combine[0] = after;
  m->combine[1] =
      pestle_expr_op(nest, o->power, t,
                     pestle_expr_op(nest, PESTLE_OP_SUBTRACT, t, before,
                                    finite_or_zero(nest, after), NULL),
                     NULL, NULL);
  return scale;
}

// A sum's step: what it is so far, scaled, and the step's terms.
static void change_sum(const online_t* o, uint32_t stage, uint32_t scale) {
  pestle_nest_t* nest = o->nest;
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  pestle_dtype_t t = s->acc_dtype;
  const pestle_affine_t* index[PESTLE_MAX_RANK] = {0};
  const pestle_type_t* type = &nest->tensors.data[scale].type;
  for (int32_t d = 0; d < type->rank; ++d) {
    index[d] = type->dims[d] == 1 ? pestle_affine_const(nest, 0)
                                  : pestle_affine_axis(nest, s->roots[d]);
  }
  const pestle_expr_t* by =
      pestle_expr_cast(nest, pestle_expr_read(nest, scale, index, NULL), t);
  const pestle_expr_t* scaled =
      pestle_expr_op(nest, PESTLE_OP_MULTIPLY, t,
                     accumulator(nest, PESTLE_EXPR_ACC, t), by, NULL);
  if (nest->failed || !make_arrays(nest, s, 1)) return;
  s->combine[0] = pestle_expr_op(nest, PESTLE_OP_ADD, t, scaled,
                                 accumulator(nest, PESTLE_EXPR_VAL, t), NULL);
}

static const pestle_expr_t* guard_maximum(void* user, const pestle_expr_t* e) {
  const online_t* o = user;
  return (uint32_t)e->i == o->tensor ? finite_or_zero(o->nest, e) : NULL;
}

static void guard_reads(online_t* o, uint32_t stage) {
  pestle_nest_stage_t* s = pestle_nest_stage(o->nest, stage);
  pestle_substitution_t how;
  pestle_substitution_init(o->nest, NULL, &how);
  how.read = guard_maximum;
  how.user = o;
  for (uint32_t v = 0; v < s->value_count; ++v) {
    s->values[v] = pestle_expr_substitute(o->nest, &how, s->values[v]);
  }
}

pestle_status_t pestle_schedule_online(pestle_nest_t* nest, uint32_t stage,
                                       uint32_t axis,
                                       const uint32_t* reductions,
                                       uint32_t count, bool reassociate) {
  if (!reassociate || !count || count > PESTLE_MAX_RANK) {
    return refuse(nest, stage,
                  "it reorders float sums, which needs reassociation, and "
                  "takes a maximum and some sums");
  }
  for (uint32_t i = 0; i < count; ++i) {
    const pestle_nest_stage_t* s = pestle_nest_stage(nest, reductions[i]);
    if (s->is_reduction && !s->inlined) continue;
    return refuse(nest, reductions[i], "it is no reduction");
  }
  online_t o = {nest, reductions[0],
                pestle_nest_stage(nest, reductions[0])->tensors[0],
                pestle_arena_alloc_zero(nest->arena, nest->stages.size + 1, 1),
                PESTLE_OP_COUNT};
  if (!o.depends) return PESTLE_ERROR(OUT_OF_MEMORY, "scheduling");
  find_dependent(&o);
  PESTLE_TRY(check_online(&o, stage, axis, reductions, count));
  for (uint32_t q = o.maximum + 1; q < stage; ++q) {
    if (!nest->stages.data[q].inlined) guard_reads(&o, q);
  }
  uint32_t scale = change_maximum(&o);
  const char* names[PESTLE_MAX_RANK + 1] = {
      pestle_schedule_axis_name(nest, axis)};
  for (uint32_t i = 0; i < count && !nest->failed; ++i) {
    if (i) change_sum(&o, reductions[i], scale);
    pestle_nest_stage_t* s = pestle_nest_stage(nest, reductions[i]);
    s->at_stage = (int32_t)stage;
    s->at_axis = (int32_t)axis;
    s->carried = true;
    names[i + 1] = s->name;
  }
  if (!nest->failed) change_sum(&o, stage, scale);
  PESTLE_TRY(pestle_nest_status(nest));
  int64_t flag = reassociate;
  return pestle_schedule_record(nest, PESTLE_PRIM_ONLINE,
                                pestle_schedule_stage_name(nest, stage), names,
                                count + 1, &flag, 1);
}
