// SPDX-License-Identifier: Apache-2.0
// Rows that rewrite expressions: inline and fuse.
#include <string.h>

#include "codegen/schedule_internal.h"

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
    if (!pestle_lin_equal(a->index[i], b->index[i])) return false;
  }
  return true;
}

// Equal reads share one copy, or a chain of x + x would double at every link.
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
  const pestle_lin_t** map = pestle_arena_alloc_zero(
      nest->arena, nest->axes.size * sizeof(*map), _Alignof(pestle_lin_t*));
  if (!map) {
    pestle_nest_fail_memory(nest);
    return NULL;
  }
  for (uint32_t i = 0; i < p->map_count; ++i)
    map[p->roots[i]] = e->index[i];
  pestle_substitution_t how;
  pestle_substitution_init(nest, map, &how);
  how.guard = e->guard;
  // The body has nothing left to inline, but its reads are shared too.
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
    if (s->is_fold) {
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
    for (uint32_t v = 0; v < stage->value_count; ++v) {
      stage->values[v] = pestle_expr_substitute(nest, &how, stage->values[v]);
      if (stage->is_fold) {
        stage->inits[v] = pestle_expr_substitute(nest, &how, stage->inits[v]);
      }
    }
  }
  pestle_vec_deinit(&in.done);
  PESTLE_TRY(pestle_nest_status(nest));
  return record_inlined(nest, inlined);
}

// --- fuse ---

static bool lin_uses_nested(const pestle_lin_t* a, uint32_t axis) {
  bool nested;
  (void)pestle_lin_coef(a, axis, &nested);
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
  if (e->lin && lin_uses_nested(e->lin, n->axis)) n->found = true;
  for (uint32_t i = 0; i < e->index_count; ++i) {
    if (lin_uses_nested(e->index[i], n->axis)) n->found = true;
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

pestle_status_t pestle_schedule_fuse(pestle_nest_t* nest, uint32_t stage,
                                     uint32_t outer_root, bool* out_done) {
  *out_done = false;
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  if (outer_root + 1 >= s->map_count || s->order_count != s->root_count) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "fuse %s: axes must be adjacent unsplit map axes",
                        s->name);
  }
  uint32_t a = s->roots[outer_root], b = s->roots[outer_root + 1];
  int64_t eb = nest->axes.data[b].extent;
  int64_t ea = nest->axes.data[a].extent;
  uint32_t fused = pestle_nest_add_axis(
      nest,
      pestle_schedule_derived_name(nest, pestle_schedule_axis_name(nest, a),
                                   pestle_schedule_axis_name(nest, b)),
      (int32_t)stage, false, ea * eb);
  const pestle_lin_t** map = pestle_arena_alloc_zero(
      nest->arena, nest->axes.size * sizeof(*map), _Alignof(pestle_lin_t*));
  PESTLE_TRY(pestle_nest_status(nest));
  if (!map) return PESTLE_ERROR(OUT_OF_MEMORY, "scheduling '%s'", nest->name);
  const pestle_lin_t* both = pestle_lin_axis(nest, fused);
  map[a] = pestle_lin_div(nest, both, eb);
  map[b] = pestle_lin_mod(nest, both, eb);
  pestle_substitution_t how;
  pestle_substitution_init(nest, map, &how);
  const pestle_expr_t* values[PESTLE_MAX_RANK];
  const pestle_lin_t* writes[PESTLE_MAX_RANK];
  if (s->value_count > PESTLE_MAX_RANK) return NULL;
  for (uint32_t v = 0; v < s->value_count; ++v) {
    if (!s->write_index[v]) return NULL;  // a dim an axis: nothing to gain
    values[v] = pestle_expr_substitute(nest, &how, s->values[v]);
    writes[v] = pestle_lin_substitute(nest, &how, s->write_index[v][0]);
    if (lin_uses_nested(writes[v], fused) ||
        any_nested(nest, values[v], fused)) {
      nest->axes.data[fused].stage = -1;
      return pestle_nest_status(nest);
    }
  }
  PESTLE_TRY(pestle_nest_status(nest));
  for (uint32_t v = 0; v < s->value_count; ++v) {
    const pestle_lin_t** index =
        PESTLE_ARENA_ARRAY(nest->arena, const pestle_lin_t*, 1);
    if (!index) return PESTLE_ERROR(OUT_OF_MEMORY, "scheduling");
    index[0] = writes[v];
    s->values[v] = values[v];
    s->write_index[v] = index;
  }
  s->roots[outer_root] = fused;
  for (uint32_t i = outer_root + 1; i + 1 < s->root_count; ++i) {
    s->roots[i] = s->roots[i + 1];
  }
  --s->root_count;
  --s->map_count;
  memcpy(s->order, s->roots, sizeof(s->order));
  s->order_count = s->root_count;
  *out_done = true;
  return pestle_schedule_record_names(nest, PESTLE_PRIM_FUSE, stage,
                                      pestle_schedule_axis_name(nest, a),
                                      pestle_schedule_axis_name(nest, b));
}
