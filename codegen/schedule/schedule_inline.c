// SPDX-License-Identifier: Apache-2.0
// Primitives that rewrite expressions: inline puts a stage's body where it is read; fuse
// and flatten make one axis of two.
#include <string.h>

#include "codegen/schedule/schedule_internal.h"

// --- inline ---

typedef struct inlined_read_t {
  const pestle_expr_t* read;
  const pestle_expr_t* body;
} inlined_read_t;

typedef struct inliner_t {
  pestle_nest_t* nest;
  const bool* inlined;
  PESTLE_VEC(inlined_read_t) done;
} inliner_t;

static bool same_read(const pestle_expr_t* a, const pestle_expr_t* b) {
  if (a->i != b->i || a->guard != b->guard) return false;
  for (uint32_t i = 0; i < a->index_count; ++i) {
    if (!pestle_affine_equal(a->index[i], b->index[i])) return false;
  }
  return true;
}

// Equal reads share one copy, or a chain of x + x would double at every link, and a
// ladder (a = a + b, b = b * a) would grow as Fibonacci's numbers do.
static const pestle_expr_t* inline_read(void* user, const pestle_expr_t* e) {
  inliner_t* in = user;
  pestle_nest_t* nest = in->nest;
  for (size_t i = 0; i < in->done.size; ++i) {
    if (same_read(in->done.data[i].read, e)) return in->done.data[i].body;
  }
  inlined_read_t entry = {e, e};
  int32_t producer = nest->tensors.data[e->i].stage;
  if (nest->tensors.data[e->i].kind != PESTLE_TENSOR_STAGE || producer < 0 ||
      !in->inlined[producer]) {
    if (!pestle_vec_push(&in->done, entry)) pestle_nest_fail_memory(nest);
    return e;
  }
  const pestle_nest_stage_t* p = pestle_nest_stage(nest, (uint32_t)producer);
  const pestle_affine_t** map = pestle_arena_alloc_zero(
      nest->arena, nest->axes.size * sizeof(*map), _Alignof(pestle_affine_t*));
  if (!map) {
    pestle_nest_fail_memory(nest);
    return NULL;
  }
  for (uint32_t i = 0; i < p->map_count; ++i)
    map[p->roots[i]] = e->index[i];
  pestle_substitution_t how;
  pestle_substitution_init(nest, map, &how);
  how.guard = e->guard;
  // The body is as it was before anything was inlined: its own reads find the bodies
  // that others made.
  how.read = inline_read;
  how.user = in;
  const pestle_expr_t* body = pestle_expr_substitute(nest, &how, p->values[0]);
  entry.body = body;
  if (!pestle_vec_push(&in->done, entry)) pestle_nest_fail_memory(nest);
  return body;
}

static pestle_status_t check_inlined(const pestle_nest_t* nest,
                                     const bool* inlined) {
  for (uint32_t i = 0; i < nest->stages.size; ++i) {
    const pestle_nest_stage_t* s = &nest->stages.data[i];
    if (!inlined[i]) continue;
    if (s->is_reduction) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "inline %s: only map stages can be inlined", s->name);
    }
    if (s->value_count != 1 ||
        nest->tensors.data[s->tensors[0]].kind != PESTLE_TENSOR_STAGE) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "inline %s: it writes a result, which must stay",
                          s->name);
    }
    if (s->at_stage >= 0) {
      return PESTLE_ERROR(
          INVALID_ARGUMENT, "inline %s: it has a place under %s already",
          s->name, pestle_schedule_stage_name(nest, (uint32_t)s->at_stage));
    }
  }
  return NULL;
}

static pestle_status_t record_inlined(pestle_nest_t* nest,
                                      const bool* inlined) {
  const char** names =
      PESTLE_ARENA_ARRAY(nest->arena, const char*, nest->stages.size + 1);
  if (!names) return PESTLE_ERROR(OUT_OF_MEMORY, "inlining stages");
  size_t n = 0;
  for (uint32_t i = 0; i < nest->stages.size; ++i) {
    if (inlined[i]) names[n++] = nest->stages.data[i].name;
  }
  if (!n) return NULL;
  return pestle_schedule_record(nest, PESTLE_PRIM_INLINE, NULL, names, n, NULL,
                                0);
}

pestle_status_t pestle_schedule_inline(pestle_nest_t* nest,
                                       const bool* inlined) {
  PESTLE_TRY(check_inlined(nest, inlined));
  inliner_t in = {.nest = nest, .inlined = inlined};
  pestle_vec_init(&in.done, nest->allocator);
  for (uint32_t s = 0; s < nest->stages.size && !nest->failed; ++s) {
    pestle_vec_clear(&in.done);
    pestle_substitution_t how;
    pestle_substitution_init(nest, NULL, &how);
    how.read = inline_read;
    how.user = &in;
    pestle_nest_stage_t* stage = pestle_nest_stage(nest, s);
    stage->inlined |= inlined[s];
    // A body that held its producers' bodies would share them with no other body.
    if (stage->inlined) continue;
    for (uint32_t v = 0; v < stage->value_count; ++v) {
      stage->values[v] = pestle_expr_substitute(nest, &how, stage->values[v]);
      if (stage->is_reduction) {
        stage->inits[v] = pestle_expr_substitute(nest, &how, stage->inits[v]);
      }
    }
  }
  pestle_vec_deinit(&in.done);
  PESTLE_TRY(pestle_nest_status(nest));
  return record_inlined(nest, inlined);
}

// --- fuse ---

static bool affine_uses_nested(const pestle_affine_t* a, uint32_t axis) {
  bool nested;
  (void)pestle_affine_coef(a, axis, &nested);
  return nested;
}

typedef struct nested_t {
  uint32_t axis;
  bool* seen;  // by expression id
  bool found;
} nested_t;

// Whether |axis| stands under a DIV or MOD anywhere below |e|.
static void find_nested(nested_t* n, const pestle_expr_t* e) {
  if (n->found || n->seen[e->id]) return;
  n->seen[e->id] = true;
  for (int i = 0; i < 3; ++i) {
    if (e->args[i]) find_nested(n, e->args[i]);
  }
  if (e->guard) find_nested(n, e->guard);
  if (e->affine && affine_uses_nested(e->affine, n->axis)) n->found = true;
  for (uint32_t i = 0; i < e->index_count; ++i) {
    if (affine_uses_nested(e->index[i], n->axis)) n->found = true;
  }
}

static bool any_nested(pestle_nest_t* nest, const pestle_expr_t* e,
                       uint32_t axis) {
  nested_t n = {.axis = axis};
  n.seen = pestle_arena_alloc_zero(nest->arena, nest->expr_count + 1, 1);
  if (!n.seen) {
    pestle_nest_fail_memory(nest);
    return true;
  }
  find_nested(&n, e);
  return n.found;
}

// Two axes of a stage and the one that they become.
typedef struct pair_t {
  uint32_t a, b, fused;
  int64_t steps;  // of b
  const pestle_affine_t** map;
} pair_t;

// Rows that end within have places in the middle that need not be computed; an end of
// one row is that of both.
static bool keeps_ends(const pestle_nest_t* nest, const pair_t* p) {
  return !nest->axes.data[p->b].end_scale || nest->axes.data[p->a].extent == 1;
}

static void join_ends(pestle_nest_t* nest, const pair_t* p) {
  if (nest->failed) return;
  const pestle_nest_axis_t *a = &nest->axes.data[p->a],
                           *b = &nest->axes.data[p->b];
  pestle_nest_axis_t* fused = &nest->axes.data[p->fused];
  const pestle_nest_axis_t* from = b->end_scale ? b : a;
  fused->end_scale = b->end_scale ? b->end_scale : a->end_scale * p->steps;
  fused->end_tensor = from->end_tensor;
}

static pestle_status_t make_pair(pestle_nest_t* nest, uint32_t stage,
                                 uint32_t outer_root, pair_t* p) {
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  bool reduce = outer_root >= s->map_count;
  if (outer_root + 1 >= (reduce ? s->root_count : s->map_count) ||
      s->order_count != s->root_count) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "fuse or flatten %s: axes must be adjacent unsplit axes, "
        "both of results or both reduced",
        s->name);
  }
  p->a = s->roots[outer_root];
  p->b = s->roots[outer_root + 1];
  p->steps = nest->axes.data[p->b].extent;
  p->fused = pestle_nest_add_axis(
      nest,
      pestle_schedule_derived_name(nest, pestle_schedule_axis_name(nest, p->a),
                                   pestle_schedule_axis_name(nest, p->b)),
      (int32_t)stage, reduce, nest->axes.data[p->a].extent * p->steps);
  join_ends(nest, p);
  p->map =
      pestle_arena_alloc_zero(nest->arena, nest->axes.size * sizeof(*p->map),
                              _Alignof(pestle_affine_t*));
  PESTLE_TRY(pestle_nest_status(nest));
  if (!p->map) {
    return PESTLE_ERROR(OUT_OF_MEMORY, "scheduling '%s'", nest->name);
  }
  const pestle_affine_t* both = pestle_affine_axis(nest, p->fused);
  p->map[p->a] = pestle_affine_div(nest, both, p->steps);
  p->map[p->b] = pestle_affine_mod(nest, both, p->steps);
  return NULL;
}

// The values of a stage and where they are written, over the one axis.
typedef struct fused_values_t {
  const pestle_expr_t* values[PESTLE_MAX_RANK];
  const pestle_affine_t* writes[PESTLE_MAX_RANK];  // NULL: a dim an axis
} fused_values_t;

// Whether no index needs a division, or, |divides|, none that is written. |how| has
// the pair's map.
static bool fuse_values(pestle_nest_t* nest, const pestle_nest_stage_t* s,
                        const pair_t* p, bool divides,
                        pestle_substitution_t* how, fused_values_t* out) {
  for (uint32_t v = 0; v < s->value_count; ++v) {
    out->writes[v] = NULL;
    out->values[v] = pestle_expr_substitute(nest, how, s->values[v]);
    if (s->write_index[v]) {
      out->writes[v] =
          pestle_affine_substitute(nest, how, s->write_index[v][0]);
      if (affine_uses_nested(out->writes[v], p->fused)) return false;
    }
    if (!divides && any_nested(nest, out->values[v], p->fused)) return false;
  }
  return true;
}

// The dim of a stage's own tensor that two of its dims become.
typedef struct merged_t {
  pestle_nest_t* nest;
  uint32_t tensor, dim;
  int64_t steps;
} merged_t;

static const pestle_expr_t* merge_read(void* user, const pestle_expr_t* e) {
  const merged_t* m = user;
  if ((uint32_t)e->i != m->tensor) return NULL;
  const pestle_affine_t* index[PESTLE_MAX_RANK] = {0};
  for (uint32_t d = 0, n = 0; d < e->index_count; ++d) {
    index[n++] = e->index[d];
    if (d == m->dim + 1) {
      --n;
      index[n - 1] = pestle_affine_add(
          m->nest, pestle_affine_scale(m->nest, index[n - 1], m->steps),
          e->index[d]);
    }
  }
  return pestle_expr_read(m->nest, m->tensor, index, e->guard);
}

void pestle_schedule_replace_reads(
    pestle_nest_t* nest, uint32_t stage,
    const pestle_expr_t* (*read)(void* user, const pestle_expr_t* e),
    void* user) {
  for (uint32_t q = stage + 1; q < nest->stages.size && !nest->failed; ++q) {
    pestle_nest_stage_t* s = pestle_nest_stage(nest, q);
    if (s->inlined) continue;
    pestle_substitution_t how;
    pestle_substitution_init(nest, NULL, &how);
    how.read = read;
    how.user = user;
    for (uint32_t v = 0; v < s->value_count; ++v) {
      s->values[v] = pestle_expr_substitute(nest, &how, s->values[v]);
      if (!s->is_reduction) continue;
      s->inits[v] = pestle_expr_substitute(nest, &how, s->inits[v]);
      if (s->combine) {
        s->combine[v] = pestle_expr_substitute(nest, &how, s->combine[v]);
      }
    }
  }
}

// The tensor that |stage| keeps in the kernel has one dim for two: its readers
// follow.
static void merge_dims(pestle_nest_t* nest, uint32_t stage, uint32_t dim,
                       int64_t steps) {
  merged_t m = {nest, pestle_nest_stage(nest, stage)->tensors[0], dim, steps};
  pestle_type_t* type = &nest->tensors.data[m.tensor].type;
  type->dims[dim] *= type->dims[dim + 1];
  for (int32_t d = (int32_t)dim + 1; d + 1 < type->rank; ++d)
    type->dims[d] = type->dims[d + 1];
  --type->rank;
  pestle_schedule_replace_reads(nest, stage, merge_read, &m);
}

static pestle_status_t take_values(pestle_nest_t* nest, pestle_nest_stage_t* s,
                                   const fused_values_t* f) {
  for (uint32_t v = 0; v < s->value_count; ++v) {
    s->values[v] = f->values[v];
    if (!f->writes[v]) continue;
    const pestle_affine_t** index =
        PESTLE_ARENA_ARRAY(nest->arena, const pestle_affine_t*, 1);
    if (!index) return PESTLE_ERROR(OUT_OF_MEMORY, "scheduling");
    index[0] = f->writes[v];
    s->write_index[v] = index;
  }
  return NULL;
}

bool pestle_nest_is_kept(const pestle_nest_t* nest,
                         const pestle_nest_stage_t* s) {
  return s->value_count == 1 && !s->write_index[0] &&
         nest->tensors.data[s->tensors[0]].kind == PESTLE_TENSOR_STAGE;
}

static pestle_status_t fuse_pair(pestle_nest_t* nest, uint32_t stage,
                                 uint32_t outer_root, bool divides,
                                 bool* out_done) {
  *out_done = false;
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  pair_t p;
  PESTLE_TRY(make_pair(nest, stage, outer_root, &p));
  s = pestle_nest_stage(nest, stage);
  bool reduce = nest->axes.data[p.fused].reduce;
  bool inner = !reduce && pestle_nest_is_kept(nest, s);
  for (uint32_t v = 0; v < s->value_count && !reduce; ++v) {
    if (!s->write_index[v] && !inner) return NULL;
  }
  if (s->value_count > PESTLE_MAX_RANK) return NULL;
  bool may = !divides || reduce ||
             (!inner && !s->is_reduction &&
              (p.steps == 2 || p.steps == 4 || p.steps == 8));
  may = may && keeps_ends(nest, &p);
  pestle_substitution_t how;
  pestle_substitution_init(nest, p.map, &how);
  fused_values_t f;
  if (!may || !fuse_values(nest, s, &p, divides, &how, &f)) {
    nest->axes.data[p.fused].stage = -1;
    return pestle_nest_status(nest);
  }
  PESTLE_TRY(pestle_nest_status(nest));
  PESTLE_TRY(take_values(nest, s, &f));
  if (inner) merge_dims(nest, stage, outer_root, p.steps);
  s->roots[outer_root] = p.fused;
  for (uint32_t i = outer_root + 1; i + 1 < s->root_count; ++i) {
    s->roots[i] = s->roots[i + 1];
  }
  --s->root_count;
  s->map_count -= !reduce;
  memcpy(s->order, s->roots, sizeof(s->order));
  s->order_count = s->root_count;
  *out_done = true;
  return pestle_schedule_record_names(
      nest, divides ? PESTLE_PRIM_FLATTEN : PESTLE_PRIM_FUSE, stage,
      pestle_schedule_axis_name(nest, p.a),
      pestle_schedule_axis_name(nest, p.b));
}

pestle_status_t pestle_schedule_fuse(pestle_nest_t* nest, uint32_t stage,
                                     uint32_t outer_root, bool* out_done) {
  return fuse_pair(nest, stage, outer_root, false, out_done);
}

pestle_status_t pestle_schedule_flatten(pestle_nest_t* nest, uint32_t stage,
                                        uint32_t outer_root, bool* out_done) {
  return fuse_pair(nest, stage, outer_root, true, out_done);
}

// A read of the tensor stands for a constant: it moves as the axes do.
static const pestle_expr_t* forget_read(void* user, const pestle_expr_t* e) {
  const merged_t* m = user;
  if ((uint32_t)e->i != m->tensor) return NULL;
  return pestle_expr_const(m->nest, (pestle_dtype_t)e->dtype, 0, 0);
}

pestle_status_t pestle_nest_may_fuse(pestle_nest_t* nest, uint32_t stage,
                                     uint32_t outer_root, int32_t aligned,
                                     bool* out_may) {
  *out_may = false;
  pair_t p;
  PESTLE_TRY(make_pair(nest, stage, outer_root, &p));
  nest->axes.data[p.fused].stage = -1;
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  bool inner = pestle_nest_is_kept(nest, s);
  for (uint32_t v = 0; v < s->value_count; ++v) {
    if (!s->write_index[v] && !inner) return NULL;
  }
  if (s->value_count > PESTLE_MAX_RANK) return NULL;
  merged_t m = {.nest = nest, .tensor = (uint32_t)aligned};
  pestle_substitution_t how;
  pestle_substitution_init(nest, p.map, &how);
  if (aligned >= 0) {
    how.read = forget_read;
    how.user = &m;
  }
  fused_values_t f;
  *out_may = keeps_ends(nest, &p) && fuse_values(nest, s, &p, false, &how, &f);
  return pestle_nest_status(nest);
}
