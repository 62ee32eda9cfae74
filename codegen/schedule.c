// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "codegen/schedule_internal.h"

enum {
  MAX_UNROLL = 512,  // copies of a body; more is code that no cache holds
};

static pestle_status_t record(pestle_nest_t* nest, pestle_prim_t prim,
                              uint32_t stage, const char* name,
                              const char* other) {
  const char* names[2] = {name, other};
  return pestle_schedule_record(nest, prim,
                                pestle_schedule_stage_name(nest, stage), names,
                                other  ? 2
                                : name ? 1
                                       : 0,
                                NULL, 0);
}

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
    if (!pestle_vec_push(&in->done, entry)) nest->failed = true;
    return e;
  }
  const pestle_nest_stage_t* p = pestle_nest_stage(nest, (uint32_t)producer);
  const pestle_lin_t** map = pestle_arena_alloc_zero(
      nest->arena, nest->axes.size * sizeof(*map), _Alignof(pestle_lin_t*));
  if (!map) {
    nest->failed = true;
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
  if (!pestle_vec_push(&in->done, entry)) nest->failed = true;
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
  PESTLE_TRY(pestle_schedule_check_memory(nest));
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
    nest->failed = true;
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
  PESTLE_TRY(pestle_schedule_check_memory(nest));
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
      return pestle_schedule_check_memory(nest);
    }
  }
  PESTLE_TRY(pestle_schedule_check_memory(nest));
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
  return record(nest, PESTLE_PRIM_FUSE, stage,
                pestle_schedule_axis_name(nest, a),
                pestle_schedule_axis_name(nest, b));
}

// --- split, reorder, at, store, marks ---

int32_t pestle_schedule_position(const pestle_nest_stage_t* s, uint32_t axis) {
  for (uint32_t i = 0; i < s->order_count; ++i) {
    if (s->order[i] == axis) return (int32_t)i;
  }
  return -1;
}

static pestle_status_t not_a_leaf(const pestle_nest_t* nest, const char* row,
                                  uint32_t stage, uint32_t axis) {
  return PESTLE_ERROR(INVALID_ARGUMENT, "%s %s.%s: not a loop of that stage",
                      row, pestle_schedule_stage_name(nest, stage),
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
  int64_t extent = nest->axes.data[axis].extent;
  bool fold = nest->axes.data[axis].fold;
  const char* name = pestle_schedule_axis_name(nest, axis);
  int64_t parts = extent / factor + (extent % factor != 0);
  uint32_t outer =
      pestle_nest_add_axis(nest, pestle_schedule_derived_name(nest, name, "o"),
                           (int32_t)stage, fold, parts);
  uint32_t inner =
      pestle_nest_add_axis(nest, pestle_schedule_derived_name(nest, name, "i"),
                           (int32_t)stage, fold, factor);
  PESTLE_TRY(pestle_schedule_check_memory(nest));
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

// Whether the fold loops whose partial results are not kept apart stand in the
// same order as before. Float sums and products, and folds by an unknown step,
// depend on it.
static bool keeps_fold_order(const pestle_nest_t* nest,
                             const pestle_nest_stage_t* s,
                             const uint32_t* order) {
  bool floats = pestle_dtype_is(s->acc_dtype, PESTLE_KIND_FLOAT);
  bool sum = s->fold == PESTLE_OP_ADD || s->fold == PESTLE_OP_MULTIPLY;
  if (!s->is_fold || (s->fold != PESTLE_OP_COUNT && !(sum && floats))) {
    return true;
  }
  uint32_t from = 0;
  for (uint32_t i = 0; i < s->order_count; ++i) {
    const pestle_nest_axis_t* a = &nest->axes.data[order[i]];
    if (!a->fold || a->rfactored || a->extent <= 1) continue;
    for (; from < s->order_count; ++from) {
      const pestle_nest_axis_t* b = &nest->axes.data[s->order[from]];
      if (b->fold && !b->rfactored && b->extent > 1) break;
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
  if (!keeps_fold_order(nest, s, order)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "reorder %s: its fold loops may not pass each other, "
                        "the result depends on their order; rfactor first",
                        s->name);
  }
  if (!count) return NULL;
  memcpy(s->order, order, count * sizeof(order[0]));
  return pestle_schedule_record(nest, PESTLE_PRIM_REORDER, s->name, names,
                                count, NULL, 0);
}

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
    if (s->is_fold) pestle_expr_mark_tensors(nest, seen, s->inits[v], used);
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

// Where a stage can be emitted: under a loop that is no vector, and in a fold
// from its first fold loop on.
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
  for (int32_t i = 0; c->is_fold && i <= at; ++i) {
    if (nest->axes.data[c->order[i]].fold) return NULL;
  }
  if (!c->is_fold) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "at %s, %s: under a fold, only its fold loops and those "
                      "inside of them take stages",
                      name, c->name);
}

pestle_status_t pestle_schedule_at(pestle_nest_t* nest, uint32_t stage,
                                   uint32_t consumer, uint32_t axis) {
  bool whole = axis == UINT32_MAX;
  PESTLE_TRY(check_place(nest, stage, consumer, axis));
  PESTLE_TRY(check_readers(nest, stage, consumer, whole ? -1 : (int32_t)axis));
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  s->at_stage = (int32_t)consumer;
  s->at_axis = whole ? -1 : (int32_t)axis;
  return record(nest, PESTLE_PRIM_AT, stage,
                pestle_schedule_stage_name(nest, consumer),
                whole ? NULL : pestle_schedule_axis_name(nest, axis));
}

pestle_status_t pestle_schedule_store(pestle_nest_t* nest, uint32_t stage,
                                      pestle_place_t place) {
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  if (place != PESTLE_PLACE_PRIVATE && place != PESTLE_PLACE_SHARED) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "store %s: private or shared",
                        s->name);
  }
  for (uint32_t v = 0; v < s->value_count; ++v) {
    if (nest->tensors.data[s->tensors[v]].kind != PESTLE_TENSOR_STAGE) {
      return PESTLE_ERROR(INVALID_ARGUMENT, "store %s: it writes a result",
                          s->name);
    }
  }
  if (place == PESTLE_PLACE_PRIVATE) {
    bool constant;
    PESTLE_TRY(pestle_nest_private_fits(nest, stage, &constant));
    if (!constant) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "store %s private: a loop that is not unrolled walks "
                          "it, and registers have no addresses",
                          s->name);
    }
  }
  for (uint32_t v = 0; v < s->value_count; ++v) {
    nest->tensors.data[s->tensors[v]].place = (uint8_t)place;
  }
  int64_t where = place;
  return pestle_schedule_record(nest, PESTLE_PRIM_STORE, s->name, NULL, 0,
                                &where, 1);
}

static pestle_status_t check_group(const pestle_nest_t* nest,
                                   const pestle_nest_stage_t* s, int32_t at) {
  bool root = s == &nest->stages.data[nest->stages.size - 1];
  bool ok = root && s->at_stage < 0 && !nest->axes.data[s->order[at]].fold;
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
  if (!ok || (a->fold && !a->rfactored)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "vectorise %s.%s: vector axes have a power of two of "
                        "lanes, at most %u, and in a fold partial results",
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

// Axes of a stage that will run on a part of its domain are as long as the
// part, which is not known yet: the verifier counts when it is.
static pestle_status_t check_unroll(const pestle_nest_t* nest, uint32_t stage,
                                    int32_t at) {
  const pestle_nest_stage_t* s = &nest->stages.data[stage];
  if (stage + 1 != nest->stages.size) return NULL;
  int64_t copies = 1;
  for (uint32_t i = 0; i < s->order_count; ++i) {
    const pestle_nest_axis_t* a = &nest->axes.data[s->order[i]];
    if ((int32_t)i != at && a->mark != PESTLE_MARK_UNROLL) continue;
    if (a->extent <= MAX_UNROLL / copies) {
      copies *= a->extent > 0 ? a->extent : 1;
      continue;
    }
    return PESTLE_ERROR(
        INVALID_ARGUMENT, "unroll %s.%s: more than %d copies of the body",
        s->name, nest->axes.data[s->order[at]].name, MAX_UNROLL);
  }
  return NULL;
}

pestle_status_t pestle_schedule_mark(pestle_nest_t* nest, uint32_t stage,
                                     uint32_t axis, pestle_mark_t mark) {
  static const char* const names[] = {"serial", "unroll", "vectorise", "bind"};
  static const uint8_t prims[] = {PESTLE_PRIM_SERIAL, PESTLE_PRIM_UNROLL,
                                  PESTLE_PRIM_VECTORISE, PESTLE_PRIM_BIND};
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  int32_t at = pestle_schedule_position(s, axis);
  if (at < 0) return not_a_leaf(nest, names[mark], stage, axis);
  switch (mark) {
    case PESTLE_MARK_SERIAL:
      break;
    case PESTLE_MARK_UNROLL:
      PESTLE_TRY(check_unroll(nest, stage, at));
      break;
    case PESTLE_MARK_VECTOR:
      PESTLE_TRY(check_vector(nest, s, at));
      break;
    case PESTLE_MARK_GROUP:
      PESTLE_TRY(check_group(nest, s, at));
      break;
  }
  nest->axes.data[axis].mark = (uint8_t)mark;
  return record(nest, (pestle_prim_t)prims[mark], stage,
                pestle_schedule_axis_name(nest, axis), NULL);
}

pestle_status_t pestle_schedule_rfactor(pestle_nest_t* nest, uint32_t stage,
                                        uint32_t axis, bool reassociate) {
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  if (pestle_schedule_position(s, axis) < 0) {
    return not_a_leaf(nest, "rfactor", stage, axis);
  }
  const char* name = pestle_schedule_axis_name(nest, axis);
  bool exact = s->fold != PESTLE_OP_ADD && s->fold != PESTLE_OP_MULTIPLY;
  if (!nest->axes.data[axis].fold || s->fold == PESTLE_OP_COUNT ||
      (!exact && !reassociate &&
       pestle_dtype_is(s->acc_dtype, PESTLE_KIND_FLOAT))) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "rfactor %s.%s: it needs an associative fold, and "
                        "reassociation for float sums",
                        s->name, name);
  }
  nest->axes.data[axis].rfactored = true;
  int64_t flag = reassociate;
  return pestle_schedule_record(nest, PESTLE_PRIM_RFACTOR, s->name, &name, 1,
                                &flag, 1);
}
