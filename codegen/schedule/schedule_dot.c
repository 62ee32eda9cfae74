// SPDX-License-Identifier: Apache-2.0
// Primitives that make short dot products of a reduction: join, dot and flip.
//
//   join S.k l    two reduction axes are one, where all that is read moves by as much
//                 for a step of k as for the whole of l: windows of few features
//   dot S.k 4     c[m, n] += a[m, k] * b[k, n]  becomes, with k a quarter as
//                 long, c[m, n] += dot(word of a[m, 4 k ...], word of b[4 k ...])
//   flip S        where both operands' bytes have a sign, or neither has, a's
//                 top bits are flipped, which moves its bytes by 128, and 128
//                 times the sums of b's columns are taken off what was reduced
#include "codegen/schedule/schedule_internal.h"

// --- join ---

typedef struct joined_t {
  uint32_t outer, inner;
  int64_t extent;  // of the inner axis
  bool legal;
} joined_t;

static void joined_visit(void* user, const pestle_expr_t* e) {
  joined_t* j = user;
  if (e->guard || e->affine) j->legal = false;
  for (uint32_t d = 0; d < e->index_count; ++d) {
    bool nested[2];
    int64_t o = pestle_affine_coef(e->index[d], j->outer, &nested[0]);
    int64_t i = pestle_affine_coef(e->index[d], j->inner, &nested[1]);
    if (nested[0] || nested[1] || o != i * j->extent) j->legal = false;
  }
}

bool pestle_nest_may_join(pestle_nest_t* nest, uint32_t stage, uint32_t outer,
                          uint32_t inner) {
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  const pestle_nest_axis_t *o = &nest->axes.data[outer],
                           *i = &nest->axes.data[inner];
  bool adjacent = false;
  for (uint32_t r = s->map_count; r + 1 < s->root_count; ++r) {
    adjacent = adjacent || (s->roots[r] == outer && s->roots[r + 1] == inner);
  }
  const pestle_expr_t* e = s->values[0];
  if (!adjacent || s->order_count != s->root_count || s->at_stage >= 0 ||
      s->value_count != 1 || !pestle_nest_axis_is_whole(o) ||
      !pestle_nest_axis_is_whole(i) || o->peel_last || i->peel_last ||
      e->kind != PESTLE_EXPR_OP || e->op != PESTLE_OP_MULTIPLY) {
    return false;
  }
  // Nothing but reads may depend on the axes.
  for (int a = 0; a < 2; ++a) {
    const pestle_expr_t* x = e->args[a];
    while (x->kind == PESTLE_EXPR_CAST)
      x = x->args[0];
    if (x->kind != PESTLE_EXPR_READ) return false;
  }
  joined_t j = {outer, inner, i->extent, true};
  pestle_status_t status = pestle_expr_visit_reads(nest, e, joined_visit, &j);
  if (status) pestle_nest_fail(nest, status);
  return !status && j.legal;
}

static void drop_axis(uint32_t* list, uint32_t* count, uint32_t axis) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < *count; ++i) {
    if (list[i] != axis) list[n++] = list[i];
  }
  *count = n;
}

pestle_status_t pestle_schedule_join(pestle_nest_t* nest, uint32_t stage,
                                     uint32_t outer, uint32_t inner) {
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  const char* names[2] = {pestle_schedule_axis_name(nest, outer),
                          pestle_schedule_axis_name(nest, inner)};
  if (!pestle_nest_may_join(nest, stage, outer, inner)) {
    PESTLE_TRY(pestle_nest_status(nest));
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "join %s.%s %s: they must be neighbouring reduction axes of a product, "
        "before other primitives, and a step of the first must move all that "
        "is "
        "read as far as the whole of the second",
        s->name, names[0], names[1]);
  }
  const pestle_affine_t** map = pestle_arena_alloc_zero(
      nest->arena, nest->axes.size * sizeof(*map), _Alignof(pestle_affine_t*));
  if (!map) return PESTLE_OOM();
  pestle_nest_axis_t* i = &nest->axes.data[inner];
  i->extent = i->full_extent = i->extent * nest->axes.data[outer].extent;
  nest->axes.data[outer].stage = -1;  // its name is free again
  map[outer] = pestle_affine_const(nest, 0);
  map[inner] = pestle_affine_axis(nest, inner);
  pestle_substitution_t how;
  pestle_substitution_init(nest, map, &how);
  s->values[0] = pestle_expr_substitute(nest, &how, s->values[0]);
  drop_axis(s->roots, &s->root_count, outer);
  drop_axis(s->order, &s->order_count, outer);
  PESTLE_TRY(pestle_nest_status(nest));
  return pestle_schedule_record(nest, PESTLE_PRIM_JOIN, s->name, names, 2, NULL,
                                0);
}

// --- dot ---

// An operand: the read of elements that follow each other along the axis.
typedef struct side_t {
  const pestle_expr_t* read;
  int64_t step;  // elements from one to the next
} side_t;

static bool moves_within(const pestle_affine_t* affine, uint32_t axis,
                         int64_t* out_step) {
  bool nested;
  *out_step = pestle_affine_coef(affine, axis, &nested);
  return !nested;
}

// Finds out how |e|, a factor, reads a tensor along |axis|.
static bool find_side(const pestle_nest_t* nest, const pestle_expr_t* e,
                      uint32_t axis, side_t* out) {
  while (e->kind == PESTLE_EXPR_CAST)
    e = e->args[0];
  if (e->kind != PESTLE_EXPR_READ || e->guard || e->packed || !e->index_count) {
    return false;
  }
  const pestle_nest_tensor_t* t = &nest->tensors.data[e->i];
  if (t->pack || t->type.dtype != (pestle_dtype_t)e->dtype) return false;
  uint32_t last = e->index_count - 1;
  for (uint32_t i = 0; i < last; ++i) {
    int64_t step;
    if (!moves_within(e->index[i], axis, &step) || step) return false;
  }
  *out = (side_t){.read = e};
  if (!moves_within(e->index[last], axis, &out->step) || !out->step) {
    return false;
  }
  return t->kind == PESTLE_TENSOR_INPUT || out->step == 1;
}

// How many elements a short dot product of |a| and |b| takes, summed as |sum|; 0: it is none.
static int64_t width_of(pestle_dtype_t a, pestle_dtype_t b,
                        pestle_dtype_t sum) {
  if (a == PESTLE_BF16 && b == PESTLE_BF16 && sum == PESTLE_F32) return 2;
  bool bytes =
      (a == PESTLE_I8 || a == PESTLE_U8) && (b == PESTLE_I8 || b == PESTLE_U8);
  return bytes && sum == PESTLE_I32 ? 4 : 0;
}

int64_t pestle_nest_dot_width(const pestle_nest_t* nest, uint32_t stage,
                              uint32_t axis) {
  const pestle_nest_stage_t* s = &nest->stages.data[stage];
  const pestle_nest_axis_t* a = &nest->axes.data[axis];
  side_t x, y;
  if (!s->is_reduction || s->reduce != PESTLE_OP_ADD || s->value_count != 1 ||
      s->combine || s->order_count != s->root_count || s->at_stage >= 0 ||
      !a->reduce || a->stage != (int32_t)stage || a->rfactored ||
      a->peel_last || !pestle_nest_axis_is_whole(a) || a->parent >= 0) {
    return 0;
  }
  const pestle_expr_t* e = s->values[0];
  if (e->kind != PESTLE_EXPR_OP || e->op != PESTLE_OP_MULTIPLY ||
      !find_side(nest, e->args[0], axis, &x) ||
      !find_side(nest, e->args[1], axis, &y)) {
    return 0;
  }
  int64_t width =
      width_of((pestle_dtype_t)x.read->dtype, (pestle_dtype_t)y.read->dtype,
               (pestle_dtype_t)e->dtype);
  // Casts on the way may only be to the sum's type, which holds all elements.
  for (int i = 0; width && i < 2; ++i) {
    const pestle_expr_t* c = e->args[i];
    if (c->kind != PESTLE_EXPR_CAST || c->args[0]->kind != PESTLE_EXPR_READ) {
      return 0;
    }
  }
  // A word of a stage's box may not reach past the stage's tensor.
  bool stages = nest->tensors.data[x.read->i].kind == PESTLE_TENSOR_STAGE ||
                nest->tensors.data[y.read->i].kind == PESTLE_TENSOR_STAGE;
  return width && stages && a->extent % width ? 0 : width;
}

typedef struct count_t {
  uint32_t tensor, reads;
} count_t;

static void count_visit(void* user, const pestle_expr_t* e) {
  count_t* c = user;
  c->reads += (uint32_t)e->i == c->tensor;
}

// An argument of bf16 that is read as words alone is one of 16 bits each, so
// that no conversion is made of its elements.
static pestle_status_t take_bits(pestle_nest_t* nest, uint32_t tensor) {
  pestle_nest_tensor_t* t = &nest->tensors.data[tensor];
  if (t->kind != PESTLE_TENSOR_INPUT || t->type.dtype != PESTLE_BF16) {
    return NULL;
  }
  count_t c = {.tensor = tensor};
  for (uint32_t i = 0; i < nest->stages.size; ++i) {
    const pestle_nest_stage_t* s = &nest->stages.data[i];
    for (uint32_t v = 0; !s->inlined && v < s->value_count; ++v) {
      PESTLE_TRY(pestle_expr_visit_reads(nest, s->values[v], count_visit, &c));
      if (!s->is_reduction) continue;
      PESTLE_TRY(pestle_expr_visit_reads(nest, s->inits[v], count_visit, &c));
    }
  }
  if (c.reads == 1) t->type.dtype = PESTLE_U16;
  return NULL;
}

// The word from the element on that |side| reads, once |axis| counts words.
static const pestle_expr_t* make_word(pestle_nest_t* nest, const side_t* side,
                                      uint32_t axis, int64_t width,
                                      int64_t limit) {
  const pestle_affine_t** map = pestle_arena_alloc_zero(
      nest->arena, nest->axes.size * sizeof(*map), _Alignof(pestle_affine_t*));
  if (!map) {
    pestle_nest_fail_memory(nest);
    return side->read;
  }
  map[axis] = pestle_affine_scale(nest, pestle_affine_axis(nest, axis), width);
  pestle_substitution_t how;
  pestle_substitution_init(nest, map, &how);
  const pestle_expr_t* moved = pestle_expr_substitute(nest, &how, side->read);
  pestle_expr_t* word = pestle_expr_make(nest, PESTLE_EXPR_READ, PESTLE_I32);
  if (nest->failed) return word;
  uint32_t id = word->id;
  *word = *moved;
  word->id = id;
  word->dtype = PESTLE_I32;
  word->packed = (uint8_t)width;
  word->affine = map[axis];
  word->lo = side->step;
  word->hi = limit;
  return word;
}

pestle_status_t pestle_schedule_dot(pestle_nest_t* nest, uint32_t stage,
                                    uint32_t axis, int64_t width,
                                    bool reassociate) {
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  pestle_nest_axis_t* a = &nest->axes.data[axis];
  bool floats = s->acc_dtype == PESTLE_F32;
  if (width < 2 || pestle_nest_dot_width(nest, stage, axis) != width ||
      (floats && !reassociate)) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "dot %s.%s %lld: it needs a sum of products of two bf16, or of four "
        "bytes as i32, whose operands are read along that whole reduction "
        "axis, "
        "before other primitives; and reassociation for float sums",
        s->name, a->name, (long long)width);
  }
  const pestle_expr_t* product = s->values[0];
  side_t side[2];
  const pestle_expr_t* word[2];
  unsigned kinds = 0;
  int64_t limit = a->extent;
  for (int i = 0; i < 2; ++i) {
    (void)find_side(nest, product->args[i], axis, &side[i]);
    if (side[i].read->dtype == PESTLE_I8) kinds |= 1u << i;
    word[i] = make_word(nest, &side[i], axis, width, limit);
  }
  a = &nest->axes.data[axis];
  a->extent = a->full_extent = (limit + width - 1) / width;
  a->peel_last = limit % width != 0;
  s = pestle_nest_stage(nest, stage);
  s->values[0] = pestle_expr_dot(nest, floats ? PESTLE_F32 : PESTLE_I32, kinds,
                                 word[0], word[1]);
  PESTLE_TRY(pestle_nest_status(nest));
  for (int i = 0; i < 2; ++i)
    PESTLE_TRY(take_bits(nest, (uint32_t)word[i]->i));
  const char* names[1] = {pestle_schedule_axis_name(nest, axis)};
  int64_t ints[2] = {width, reassociate};
  return pestle_schedule_record(nest, PESTLE_PRIM_DOT, s->name, names, 1, ints,
                                2);
}

// --- flip ---

// Axes of the reads below |e|.
typedef struct axes_t {
  const pestle_nest_stage_t* s;
  uint32_t reached;  // bit by position among the roots
} axes_t;

static void axes_visit(void* user, const pestle_expr_t* e) {
  axes_t* a = user;
  for (uint32_t i = 0; i < a->s->root_count; ++i) {
    for (uint32_t d = 0; d < e->index_count; ++d) {
      bool nested;
      if (pestle_affine_coef(e->index[d], a->s->roots[i], &nested) || nested) {
        a->reached |= 1u << i;
      }
    }
  }
}

static pestle_status_t reached_by(pestle_nest_t* nest, uint32_t stage,
                                  const pestle_expr_t* e, uint32_t* out) {
  axes_t a = {.s = pestle_nest_stage(nest, stage)};
  PESTLE_TRY(pestle_expr_visit_reads(nest, e, axes_visit, &a));
  *out = a.reached;
  return NULL;
}

typedef struct less_t {
  pestle_nest_t* nest;
  uint32_t tensor, sums;
  uint32_t dims[PESTLE_MAX_RANK];  // of the sums: dims of |tensor|
  uint32_t count;
} less_t;

static const pestle_expr_t* take_off(void* user, const pestle_expr_t* e) {
  const less_t* l = user;
  if ((uint32_t)e->i != l->tensor) return NULL;
  const pestle_affine_t* index[PESTLE_MAX_RANK] = {0};
  for (uint32_t d = 0; d < l->count; ++d)
    index[d] = e->index[l->dims[d]];
  return pestle_expr_op(l->nest, PESTLE_OP_SUBTRACT, PESTLE_I32, e,
                        pestle_expr_read(l->nest, l->sums, index, e->guard),
                        NULL);
}

static pestle_status_t refuse_flip(const pestle_nest_stage_t* s) {
  return PESTLE_ERROR(
      INVALID_ARGUMENT,
      "flip %s: it must reduce short dot products of bytes that have a sign, "
      "or "
      "have none, on both sides, one of which is the same for all of the last "
      "map axis while the other is read along all reduction axes",
      s->name);
}

// A reduction over copies of the reduction axes of |stage|, and of the map axes that
// |reached| marks, of the dot products of |top| and |b|.
static pestle_status_t add_sums(pestle_nest_t* nest, uint32_t stage,
                                uint32_t reached, const pestle_expr_t* top,
                                const pestle_expr_t* b, bool b_first,
                                unsigned kinds, less_t* out) {
  const pestle_nest_stage_t s = *pestle_nest_stage(nest, stage);
  pestle_type_t domain = {.dtype = PESTLE_I32};
  for (uint32_t i = 0; i < s.map_count; ++i) {
    if (!(reached >> i & 1)) continue;
    out->dims[out->count++] = i;
    domain.dims[domain.rank++] = nest->axes.data[s.roots[i]].extent;
  }
  uint32_t sums = pestle_nest_add_stage(
      nest, pestle_schedule_derived_name(nest, s.name, "b"), &domain);
  PESTLE_TRY(pestle_nest_status(nest));
  const pestle_affine_t** map = pestle_arena_alloc_zero(
      nest->arena, (nest->axes.size + PESTLE_NEST_MAX_AXES) * sizeof(*map),
      _Alignof(pestle_affine_t*));
  const pestle_expr_t** inits =
      PESTLE_ARENA_ARRAY(nest->arena, const pestle_expr_t*, 1);
  if (!map || !inits) return PESTLE_OOM();
  inits[0] = pestle_expr_const(nest, PESTLE_I32, 0, 0);
  pestle_nest_stage_t* t = pestle_nest_stage(nest, sums);
  for (uint32_t d = 0; d < out->count; ++d) {
    map[s.roots[out->dims[d]]] = pestle_affine_axis(nest, t->roots[d]);
  }
  for (uint32_t i = s.map_count; i < s.root_count; ++i) {
    const pestle_nest_axis_t from = nest->axes.data[s.roots[i]];
    uint32_t axis =
        pestle_nest_add_axis(nest, from.name, (int32_t)sums, true, from.extent);
    PESTLE_TRY(pestle_nest_status(nest));
    nest->axes.data[axis].peel_last = from.peel_last;
    t->roots[t->root_count++] = axis;
    t->order[t->order_count++] = axis;
    map[s.roots[i]] = pestle_affine_axis(nest, axis);
  }
  t->is_reduction = true;
  t->reduce = PESTLE_OP_ADD;
  t->acc_dtype = PESTLE_I32;
  t->inits = inits;
  pestle_substitution_t how;
  pestle_substitution_init(nest, map, &how);
  b = pestle_expr_substitute(nest, &how, b);
  t->values[0] = pestle_expr_dot(nest, PESTLE_I32, kinds, b_first ? b : top,
                                 b_first ? top : b);
  out->sums = t->tensors[0];
  return pestle_nest_status(nest);
}

pestle_status_t pestle_schedule_flip(pestle_nest_t* nest, uint32_t stage,
                                     uint32_t* out_sums) {
  pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  const pestle_expr_t* e = s->values[0];
  if (!s->is_reduction || !s->map_count || s->value_count != 1 ||
      e->kind != PESTLE_EXPR_DOT || e->dtype != PESTLE_I32 ||
      (e->i != 0 && e->i != 3) || s->order_count != s->root_count) {
    return refuse_flip(s);
  }
  uint32_t reached[2], last = 1u << (s->map_count - 1);
  uint32_t reductions = 0;
  for (uint32_t i = s->map_count; i < s->root_count; ++i) {
    if (nest->axes.data[s->roots[i]].extent > 1) reductions |= 1u << i;
  }
  for (int i = 0; i < 2; ++i) {
    PESTLE_TRY(reached_by(nest, stage, e->args[i], &reached[i]));
  }
  int a = reached[0] & last ? 1 : 0;
  if (reached[a] & last || (reached[1 - a] & reductions) != reductions) {
    return refuse_flip(s);
  }
  const pestle_expr_t* top =
      pestle_expr_const(nest, PESTLE_I32, 0, (int32_t)0x80808080u);
  const pestle_expr_t* flipped =
      pestle_expr_op(nest, PESTLE_OP_XOR, PESTLE_I32, e->args[a], top, NULL);
  unsigned kinds = (unsigned)e->i ^ 1u << a;
  less_t less = {.nest = nest, .tensor = s->tensors[0]};
  PESTLE_TRY(add_sums(nest, stage, reached[1 - a], top, e->args[1 - a], a == 1,
                      kinds, &less));
  s = pestle_nest_stage(nest, stage);
  s->values[0] =
      pestle_expr_dot(nest, PESTLE_I32, kinds, a == 0 ? flipped : e->args[0],
                      a == 1 ? flipped : e->args[1]);
  for (uint32_t q = stage + 1; q + 1 < nest->stages.size; ++q) {
    pestle_substitution_t how;
    pestle_substitution_init(nest, NULL, &how);
    how.read = take_off;
    how.user = &less;
    pestle_nest_stage_t* reader = pestle_nest_stage(nest, q);
    for (uint32_t v = 0; v < reader->value_count && !reader->inlined; ++v) {
      reader->values[v] = pestle_expr_substitute(nest, &how, reader->values[v]);
    }
  }
  PESTLE_TRY(pestle_nest_status(nest));
  const char* name = s->name;
  pestle_schedule_move_before(nest, stage);
  *out_sums = stage;
  return pestle_schedule_record(nest, PESTLE_PRIM_FLIP, name, NULL, 0, NULL, 0);
}
