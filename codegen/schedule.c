// SPDX-License-Identifier: Apache-2.0
#include "codegen/schedule.h"

#include <string.h>

static const char* axis_name(const pestle_nest_t* nest, uint32_t axis) {
  return nest->axes.data[axis].name;
}

static const char* stage_name(const pestle_nest_t* nest, uint32_t stage) {
  return nest->stages.data[stage].name;
}

static pestle_status_t check_memory(const pestle_nest_t* nest) {
  if (!nest->failed) return NULL;
  return PESTLE_ERROR(OUT_OF_MEMORY, "scheduling kernel '%s'", nest->name);
}

static const char* derived_name(pestle_nest_t* nest, const char* base,
                                char suffix) {
  size_t n = strlen(base);
  char* name = pestle_arena_alloc(nest->arena, n + 2, 1);
  if (!name) {
    nest->failed = true;
    return "";
  }
  memcpy(name, base, n);
  name[n] = suffix;
  name[n + 1] = 0;
  return name;
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
  for (uint32_t i = 0; i < p->map_count; ++i) map[p->roots[i]] = e->index[i];
  pestle_substitution_t how;
  pestle_substitution_init(nest, map, &how);
  how.guard = e->guard;
  // The body has nothing left to inline, but its reads are shared too.
  how.read = inline_read;
  how.user = in;
  const pestle_expr_t* body =
      pestle_expr_substitute(nest, &how, p->values[0]);
  entry.body = body;
  if (!pestle_vec_push(&in->done, entry)) nest->failed = true;
  return body;
}

pestle_status_t pestle_schedule_inline(pestle_nest_t* nest,
                                       const bool* inlined) {
  for (uint32_t s = 0; s < nest->stages.size; ++s) {
    if (inlined[s] && nest->stages.data[s].is_fold) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "inline %s: only map stages can be inlined",
                          stage_name(nest, s));
    }
  }
  inliner_t in = {.nest = nest, .inlined = inlined};
  pestle_vec_init(&in.done, nest->allocator);
  for (uint32_t s = 0; s < nest->stages.size && !nest->failed; ++s) {
    pestle_vec_clear(&in.done);
    pestle_substitution_t how;
    pestle_substitution_init(nest, NULL, &how);
    how.read = inline_read;
    how.user = &in;
    pestle_nest_stage_t* stage = pestle_nest_stage(nest, s);
    stage->inlined = inlined[s];
    for (uint32_t v = 0; v < stage->value_count; ++v) {
      stage->values[v] = pestle_expr_substitute(nest, &how, stage->values[v]);
      if (stage->is_fold) {
        stage->inits[v] =
            pestle_expr_substitute(nest, &how, stage->inits[v]);
      }
    }
    if (inlined[s]) {
      pestle_strbuf_appendf(&nest->rows, "inline %s\n", stage->name);
    }
  }
  pestle_vec_deinit(&in.done);
  return check_memory(nest);
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
  uint32_t fused = pestle_nest_add_axis(nest, axis_name(nest, a),
                                        (int32_t)stage, false, ea * eb);
  const pestle_lin_t** map = pestle_arena_alloc_zero(
      nest->arena, nest->axes.size * sizeof(*map), _Alignof(pestle_lin_t*));
  PESTLE_TRY(check_memory(nest));
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
      return check_memory(nest);
    }
  }
  PESTLE_TRY(check_memory(nest));
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
  pestle_strbuf_appendf(&nest->rows, "fuse %s.%s %s\n", s->name,
                        axis_name(nest, a), axis_name(nest, b));
  *out_done = true;
  return NULL;
}

// --- split, reorder, at, store, marks ---

static int32_t position_of(const pestle_nest_stage_t* s, uint32_t axis) {
  for (uint32_t i = 0; i < s->order_count; ++i) {
    if (s->order[i] == axis) return (int32_t)i;
  }
  return -1;
}

static pestle_status_t not_a_leaf(const pestle_nest_t* nest, const char* row,
                                  uint32_t stage, uint32_t axis) {
  return PESTLE_ERROR(INVALID_ARGUMENT, "%s %s.%s: not a loop of that stage",
                      row, stage_name(nest, stage), axis_name(nest, axis));
}

pestle_status_t pestle_schedule_split(pestle_nest_t* nest, uint32_t stage,
                                      uint32_t axis, int64_t factor,
                                      uint32_t* out_outer,
                                      uint32_t* out_inner) {
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  int32_t at = position_of(s, axis);
  if (at < 0) return not_a_leaf(nest, "split", stage, axis);
  if (factor < 1 || s->order_count == PESTLE_NEST_MAX_AXES) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "split %s.%s by %lld: the factor must be positive and "
                        "a stage has at most %d loops",
                        s->name, axis_name(nest, axis), (long long)factor,
                        PESTLE_NEST_MAX_AXES);
  }
  int64_t extent = nest->axes.data[axis].extent;
  bool fold = nest->axes.data[axis].fold;
  const char* name = axis_name(nest, axis);
  uint32_t outer = pestle_nest_add_axis(nest, derived_name(nest, name, 'o'),
                                        (int32_t)stage, fold,
                                        (extent + factor - 1) / factor);
  uint32_t inner = pestle_nest_add_axis(nest, derived_name(nest, name, 'i'),
                                        (int32_t)stage, fold, factor);
  PESTLE_TRY(check_memory(nest));
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
  pestle_strbuf_appendf(&nest->rows, "split %s.%s %lld\n", s->name, name,
                        (long long)factor);
  *out_outer = outer;
  *out_inner = inner;
  return NULL;
}

pestle_status_t pestle_schedule_reorder(pestle_nest_t* nest, uint32_t stage,
                                        const uint32_t* order,
                                        uint32_t count) {
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  bool complete = count == s->order_count;
  for (uint32_t i = 0; complete && i < count; ++i) {
    complete = position_of(s, order[i]) >= 0;
    for (uint32_t j = 0; complete && j < i; ++j) {
      complete = order[j] != order[i];
    }
  }
  if (!complete) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "reorder %s: all of its loops must be named once",
                        s->name);
  }
  memcpy(s->order, order, count * sizeof(order[0]));
  pestle_strbuf_appendf(&nest->rows, "reorder %s", s->name);
  for (uint32_t i = 0; i < count; ++i) {
    pestle_strbuf_appendf(&nest->rows, " %s", axis_name(nest, order[i]));
  }
  pestle_strbuf_append_char(&nest->rows, '\n');
  return NULL;
}

pestle_status_t pestle_schedule_at(pestle_nest_t* nest, uint32_t stage,
                                   uint32_t consumer, uint32_t axis) {
  bool whole = axis == UINT32_MAX;
  if (stage == consumer ||
      (!whole && position_of(pestle_nest_stage(nest, consumer), axis) < 0)) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "at %s, %s: not a loop of that stage",
                        stage_name(nest, stage), stage_name(nest, consumer));
  }
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  s->at_stage = (int32_t)consumer;
  s->at_axis = whole ? -1 : (int32_t)axis;
  pestle_strbuf_appendf(&nest->rows, "at %s, %s.%s\n", s->name,
                        stage_name(nest, consumer),
                        whole ? "" : axis_name(nest, axis));
  return NULL;
}

pestle_status_t pestle_schedule_store(pestle_nest_t* nest, uint32_t stage,
                                      pestle_place_t place) {
  static const char* const names[] = {"none", "private", "shared", "global"};
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
    nest->tensors.data[s->tensors[v]].place = (uint8_t)place;
  }
  pestle_strbuf_appendf(&nest->rows, "store %s %s\n", s->name, names[place]);
  return NULL;
}

pestle_status_t pestle_schedule_mark(pestle_nest_t* nest, uint32_t stage,
                                     uint32_t axis, pestle_mark_t mark) {
  static const char* const names[] = {"serial", "unroll", "vectorise",
                                      "bind group.x"};
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  int32_t at = position_of(s, axis);
  if (at < 0) return not_a_leaf(nest, names[mark], stage, axis);
  const pestle_nest_axis_t* a = &nest->axes.data[axis];
  bool ok = true;
  if (mark == PESTLE_MARK_GROUP) {
    ok = s->at_stage < 0 && !a->fold;
    for (int32_t i = 0; i < at; ++i) {
      ok = ok && nest->axes.data[s->order[i]].mark == PESTLE_MARK_GROUP;
    }
  } else if (mark == PESTLE_MARK_VECTOR) {
    ok = (!a->fold || a->rfactored) && a->extent >= 1 &&
         a->extent <= PESTLE_KIR_MAX_LANES &&
         (a->extent & (a->extent - 1)) == 0;
  }
  if (!ok) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "%s %s.%s: group axes are the outermost map axes of a "
                        "root stage; vector axes have a power of two of lanes "
                        "and, in a fold, partial results",
                        names[mark], s->name, a->name);
  }
  nest->axes.data[axis].mark = (uint8_t)mark;
  pestle_strbuf_appendf(&nest->rows, "%s %s.%s\n", names[mark], s->name,
                        a->name);
  return NULL;
}

pestle_status_t pestle_schedule_rfactor(pestle_nest_t* nest, uint32_t stage,
                                        uint32_t axis, bool reassociate) {
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  if (position_of(s, axis) < 0) {
    return not_a_leaf(nest, "rfactor", stage, axis);
  }
  bool exact = s->fold != PESTLE_OP_ADD && s->fold != PESTLE_OP_MULTIPLY;
  if (!nest->axes.data[axis].fold || s->fold == PESTLE_OP_COUNT ||
      (!exact && !reassociate &&
       pestle_dtype_is(s->acc_dtype, PESTLE_KIND_FLOAT))) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "rfactor %s.%s: it needs an associative fold, and "
                        "reassociation for float sums",
                        s->name, axis_name(nest, axis));
  }
  nest->axes.data[axis].rfactored = true;
  pestle_strbuf_appendf(&nest->rows, "rfactor %s.%s\n", s->name,
                        axis_name(nest, axis));
  return NULL;
}

// --- pack, stage, epilogue ---

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

const pestle_expr_t* pestle_schedule_find_read(pestle_nest_t* nest,
                                               uint32_t stage,
                                               uint32_t tensor) {
  find_read_t f = {.tensor = tensor};
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  for (uint32_t v = 0; v < s->value_count; ++v) {
    pestle_status_t status =
        pestle_expr_visit_reads(nest, s->values[v], find_visit, &f);
    if (status) {
      pestle_status_release(status);
      nest->failed = true;
      return NULL;
    }
  }
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

static void replace_reads(pestle_nest_t* nest, uint32_t stage, uint32_t tensor,
                          const pestle_expr_t* other) {
  replace_t r = {tensor, other};
  pestle_substitution_t how;
  pestle_substitution_init(nest, NULL, &how);
  how.read = replace_read;
  how.user = &r;
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  for (uint32_t v = 0; v < s->value_count; ++v) {
    s->values[v] = pestle_expr_substitute(nest, &how, s->values[v]);
  }
}

// A dim of the packed layout and its index in the stage.
static void add_pack(pestle_nest_tensor_t* t, pestle_pack_axis_t axis,
                     const pestle_lin_t** index, const pestle_lin_t* lin) {
  index[t->pack_count] = lin;
  t->pack[t->pack_count++] = axis;
}

pestle_status_t pestle_schedule_pack(pestle_nest_t* nest, uint32_t stage,
                                     uint32_t tensor, uint32_t axis,
                                     int64_t factor) {
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  pestle_nest_tensor_t* t = &nest->tensors.data[tensor];
  const pestle_expr_t* read = pestle_schedule_find_read(nest, stage, tensor);
  bool ok = t->constant && !t->pack && read && !read->guard;
  for (uint32_t i = 0; ok && i < read->index[0]->count; ++i) {
    ok = read->index[0]->terms[i].atom->kind == PESTLE_ATOM_AXIS;
  }
  if (!ok) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pack %s: it needs a constant that is read once by an "
                        "affine index",
                        t->name);
  }
  const pestle_lin_t* flat = read->index[0];
  const pestle_lin_t* index[PESTLE_NEST_MAX_AXES + 2] = {0};
  t->pack = PESTLE_ARENA_ARRAY(nest->arena, pestle_pack_axis_t,
                               PESTLE_NEST_MAX_AXES + 2);
  if (!t->pack) return PESTLE_ERROR(OUT_OF_MEMORY, "packing '%s'", t->name);
  t->pack_offset = flat->constant;
  bool nested;
  int64_t n = nest->axes.data[axis].extent;
  int64_t coef = pestle_lin_coef(flat, axis, &nested);
  const pestle_lin_t* coordinate = pestle_lin_axis(nest, axis);
  for (uint32_t pass = 0; pass < 2; ++pass) {
    bool folds = pass == 1;
    for (uint32_t i = 0; i < s->root_count; ++i) {
      const pestle_nest_axis_t* a = &nest->axes.data[s->roots[i]];
      int64_t c = pestle_lin_coef(flat, s->roots[i], &nested);
      if (s->roots[i] == axis || a->fold != folds || !c) continue;
      add_pack(t, (pestle_pack_axis_t){c, a->extent, 0, 0}, index,
               pestle_lin_axis(nest, s->roots[i]));
    }
    if (folds) break;
    add_pack(t,
             (pestle_pack_axis_t){coef * factor, (n + factor - 1) / factor,
                                  factor, n},
             index, pestle_lin_div(nest, coordinate, factor));
  }
  add_pack(t, (pestle_pack_axis_t){coef, factor, 1, n}, index,
           pestle_lin_mod(nest, coordinate, factor));
  const pestle_lin_t* packed = pestle_lin_const(nest, 0);
  t->packed_elements = 1;
  for (uint32_t i = 0; i < t->pack_count; ++i) {
    packed = pestle_lin_add(
        nest, pestle_lin_scale(nest, packed, t->pack[i].extent), index[i]);
    t->packed_elements *= t->pack[i].extent;
  }
  pestle_expr_t* other = pestle_expr_make(nest, PESTLE_EXPR_READ,
                                          (pestle_dtype_t)read->dtype);
  const pestle_lin_t** one =
      PESTLE_ARENA_ARRAY(nest->arena, const pestle_lin_t*, 1);
  PESTLE_TRY(check_memory(nest));
  if (!one) return PESTLE_ERROR(OUT_OF_MEMORY, "packing '%s'", t->name);
  one[0] = packed;
  other->i = tensor;
  other->index = one;
  other->index_count = 1;
  replace_reads(nest, stage, tensor, other);
  pestle_strbuf_appendf(&nest->rows, "pack %s by %s %lld\n", t->name,
                        axis_name(nest, axis), (long long)factor);
  return check_memory(nest);
}

// Puts the newest stage before |stage|, so that stages stay in order. Ids shift.
static void move_before(pestle_nest_t* nest, uint32_t stage) {
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

static bool depends(const pestle_lin_t* a, uint32_t axis) {
  bool nested;
  return pestle_lin_coef(a, axis, &nested) != 0 || nested;
}

pestle_status_t pestle_schedule_stage(pestle_nest_t* nest, uint32_t stage,
                                      uint32_t tensor, uint32_t* out_copy) {
  const pestle_expr_t* read = pestle_schedule_find_read(nest, stage, tensor);
  const char* name = nest->tensors.data[tensor].name;
  if (!read || read->guard || read->index_count != 1) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "stage %s: it must be an argument, read once without "
                        "a guard",
                        name);
  }
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  // Fold axes first: the copy is [k][n], whatever the source's order.
  pestle_type_t domain = {.dtype = (pestle_dtype_t)read->dtype};
  uint32_t from[PESTLE_NEST_MAX_AXES];
  for (uint32_t pass = 0; pass < 3; ++pass) {
    for (uint32_t i = 0; i < s->root_count; ++i) {
      bool last_map = i + 1 == s->map_count;
      bool fold = i >= s->map_count;
      uint32_t when = fold ? 1 : last_map ? 2 : 0;
      if (when != pass || !depends(read->index[0], s->roots[i])) continue;
      if (domain.rank == PESTLE_MAX_RANK) {
        return PESTLE_ERROR(INVALID_ARGUMENT, "stage %s: too many axes", name);
      }
      from[domain.rank] = s->roots[i];
      domain.dims[domain.rank++] = nest->axes.data[s->roots[i]].extent;
    }
  }
  uint32_t copy = pestle_nest_add_stage(nest, name, &domain);
  PESTLE_TRY(check_memory(nest));
  const pestle_lin_t** map = pestle_arena_alloc_zero(
      nest->arena, nest->axes.size * sizeof(*map), _Alignof(pestle_lin_t*));
  if (!map) return PESTLE_ERROR(OUT_OF_MEMORY, "staging '%s'", name);
  const pestle_lin_t* index[PESTLE_MAX_RANK] = {0};
  pestle_nest_stage_t* c = pestle_nest_stage(nest, copy);
  for (int32_t d = 0; d < domain.rank; ++d) {
    map[from[d]] = pestle_lin_axis(nest, c->roots[d]);
    index[d] = pestle_lin_axis(nest, from[d]);
  }
  pestle_substitution_t how;
  pestle_substitution_init(nest, map, &how);
  c->values[0] = pestle_expr_substitute(nest, &how, read);
  const pestle_expr_t* other =
      pestle_expr_read(nest, c->tensors[0], index, NULL);
  replace_reads(nest, stage, tensor, other);
  PESTLE_TRY(check_memory(nest));
  move_before(nest, stage);
  pestle_strbuf_appendf(&nest->rows, "stage %s\n", name);
  *out_copy = stage;
  return NULL;
}

pestle_status_t pestle_schedule_epilogue_scratch(pestle_nest_t* nest,
                                                 uint32_t stage,
                                                 uint32_t* out_copy) {
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  if (!s->is_fold || s->value_count != 1) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "epilogue %s: not a single fold",
                        s->name);
  }
  uint32_t tensor = s->tensors[0];
  pestle_type_t type = nest->tensors.data[tensor].type;
  const char* name = s->name;
  uint32_t copy =
      pestle_nest_add_stage(nest, derived_name(nest, name, 's'), &type);
  PESTLE_TRY(check_memory(nest));
  uint32_t copied = pestle_nest_stage(nest, copy)->tensors[0];
  for (uint32_t other = stage + 1; other < copy; ++other) {
    const pestle_expr_t* read =
        pestle_schedule_find_read(nest, other, tensor);
    if (!read) continue;
    replace_reads(nest, other, tensor,
                  pestle_expr_read(nest, copied, read->index, read->guard));
  }
  const pestle_lin_t* axes[PESTLE_MAX_RANK] = {0};
  pestle_nest_stage_t* c = pestle_nest_stage(nest, copy);
  for (uint32_t d = 0; d < c->map_count; ++d) {
    axes[d] = pestle_lin_axis(nest, c->roots[d]);
  }
  c->values[0] = pestle_expr_read(nest, tensor, axes, NULL);
  PESTLE_TRY(check_memory(nest));
  move_before(nest, stage + 1);
  pestle_strbuf_appendf(&nest->rows, "epilogue %s scratch\n", name);
  *out_copy = stage + 1;
  return NULL;
}
