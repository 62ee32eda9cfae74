// SPDX-License-Identifier: Apache-2.0
// Checks of a scheduled nest: its loops and their kinds, the scopes and sizes of tensors,
// and what each primitive has to leave true.
#include "codegen/nest/nest_verify_internal.h"
#include "codegen/schedule/schedule_internal.h"

typedef struct verify_t {
  pestle_nest_t* nest;
  const pestle_target_caps_t* caps;
  pestle_nest_box_t* boxes;
  uint32_t anchor;
  uint32_t stage;
  const pestle_nest_stage_t* s;
} verify_t;

static PESTLE_PRINTF(2, 3) pestle_status_t
    broken(const verify_t* v, const char* format, ...) {
  va_list args;
  va_start(args, format);
  pestle_status_t status = pestle_nest_broken(v->nest, v->s, format, args);
  va_end(args);
  return status;
}

pestle_status_t pestle_nest_broken(const pestle_nest_t* nest,
                                   const pestle_nest_stage_t* stage,
                                   const char* format, va_list args) {
  pestle_strbuf_t message;
  pestle_strbuf_init(nest->allocator, &message);
  pestle_strbuf_appendf_v(&message, format, args);
  pestle_status_t status =
      PESTLE_ERROR(INTERNAL, "nest '%s', stage '%s': %s", nest->name,
                   stage->name, pestle_strbuf_cstr(&message));
  pestle_strbuf_deinit(&message);
  return status;
}

// --- Loops and marks ---

static uint32_t count_leaves(const verify_t* v, uint32_t axis) {
  const pestle_nest_axis_t* a = &v->nest->axes.data[axis];
  if (a->outer < 0) return pestle_schedule_position(v->s, axis) >= 0;
  // An axis that is split is no loop: it would stand for its parts twice.
  if (pestle_schedule_position(v->s, axis) >= 0) return UINT32_MAX / 256;
  return count_leaves(v, (uint32_t)a->outer) +
         count_leaves(v, (uint32_t)a->inner);
}

static uint32_t leaves_below(const verify_t* v, uint32_t axis) {
  const pestle_nest_axis_t* a = &v->nest->axes.data[axis];
  if (a->outer < 0) return 1;
  return leaves_below(v, (uint32_t)a->outer) +
         leaves_below(v, (uint32_t)a->inner);
}

static pestle_status_t check_order(const verify_t* v) {
  const pestle_nest_stage_t* s = v->s;
  uint32_t leaves = 0;
  for (uint32_t i = 0; i < s->root_count; ++i) {
    uint32_t below = leaves_below(v, s->roots[i]);
    if (count_leaves(v, s->roots[i]) != below) {
      return broken(v, "its loops are not the leaves of axis '%s'",
                    v->nest->axes.data[s->roots[i]].name);
    }
    leaves += below;
  }
  if (leaves == s->order_count) return NULL;
  return broken(v, "%u loops stand for %u axes", s->order_count, leaves);
}

static pestle_status_t check_mark(const verify_t* v, uint32_t at) {
  const pestle_nest_axis_t* a = &v->nest->axes.data[v->s->order[at]];
  switch ((pestle_mark_t)a->mark) {
    case PESTLE_MARK_SERIAL:
    case PESTLE_MARK_UNROLL:
      return NULL;
    case PESTLE_MARK_VECTOR:
      if (at + 1 != v->s->order_count || a->full_extent < 1 ||
          a->full_extent > PESTLE_KIR_MAX_LANES ||
          (a->full_extent & (a->full_extent - 1)) ||
          (a->reduce && !a->rfactored)) {
        return broken(v,
                      "vector loop '%s' of %lld must be the innermost, a "
                      "power of two and in a reduction have partial results",
                      a->name, (long long)a->full_extent);
      }
      return NULL;
    case PESTLE_MARK_GROUP:
      if (v->stage != v->anchor || a->reduce ||
          (at &&
           v->nest->axes.data[v->s->order[at - 1]].mark != PESTLE_MARK_GROUP)) {
        return broken(v,
                      "group loop '%s' is not one of the outermost loops of "
                      "the last stage",
                      a->name);
      }
      return NULL;
    case PESTLE_MARK_LANE_X:
    case PESTLE_MARK_LANE_Y:
      if (a->reduce && !a->rfactored) {
        return broken(v, "lane loop '%s' of a reduction has no partial results",
                      a->name);
      }
      return NULL;
  }
  return broken(v, "loop '%s' has no kind", a->name);
}

static pestle_status_t check_parts(const verify_t* v) {
  for (uint32_t i = 0; i < v->s->order_count; ++i) {
    const pestle_nest_axis_t* a = &v->nest->axes.data[v->s->order[i]];
    if (!a->rfactored) continue;
    if (!a->reduce || v->s->combine) {
      return broken(v,
                    "'%s' has partial results, which only a reduction by an "
                    "associative row can have",
                    a->name);
    }
  }
  return NULL;
}

// --- Places ---

// A carried reduction has one reduction loop, which is that of the reduction that carries it,
// and leading map axes as that has, or of one element.
static pestle_status_t check_carried(const verify_t* v,
                                     const pestle_nest_stage_t* c) {
  const pestle_nest_stage_t* s = v->s;
  const pestle_nest_axis_t* axes = v->nest->axes.data;
  bool ok = s->is_reduction && c->is_reduction &&
            s->root_count == s->map_count + 1 && s->at_axis >= 0 &&
            axes[s->at_axis].reduce;
  if (ok) {
    const pestle_nest_axis_t* own = &axes[s->roots[s->map_count]];
    ok = own->outer < 0 && own->full_extent == axes[s->at_axis].full_extent;
  }
  for (uint32_t i = 0; ok && i < s->map_count; ++i) {
    int64_t extent = axes[s->roots[i]].full_extent;
    ok = extent == 1 ||
         (i < c->map_count && axes[c->roots[i]].full_extent == extent);
  }
  for (uint32_t i = 0; ok && i < s->order_count; ++i) {
    ok = !axes[s->order[i]].rfactored;
  }
  if (ok) return NULL;
  return broken(v, "it is carried by '%s', whose loop and rows are others",
                c->name);
}

static pestle_status_t check_place(const verify_t* v) {
  const pestle_nest_stage_t* s = v->s;
  const pestle_nest_t* nest = v->nest;
  if (s->at_stage <= (int32_t)v->stage ||
      (size_t)s->at_stage >= nest->stages.size ||
      nest->stages.data[s->at_stage].inlined) {
    return broken(v, "it is neither inlined nor placed under a later stage");
  }
  const pestle_nest_stage_t* c = &nest->stages.data[s->at_stage];
  int32_t loop = -1;
  if (s->at_axis >= 0) {
    loop = pestle_schedule_position(c, (uint32_t)s->at_axis);
    if (loop < 0)
      return broken(v, "it is placed under no loop of '%s'", c->name);
    if (nest->axes.data[s->at_axis].mark == PESTLE_MARK_VECTOR) {
      return broken(v, "it is placed under the vector loop of '%s'", c->name);
    }
  }
  if (s->carried) PESTLE_TRY(check_carried(v, c));
  if (c->is_reduction && loop < 0) {
    return broken(v, "it is placed outside of the loops of '%s'", c->name);
  }
  for (uint32_t i = 0; i < s->value_count; ++i) {
    uint8_t scope = nest->tensors.data[s->tensors[i]].scope;
    const pestle_nest_tensor_t* t = &nest->tensors.data[s->tensors[i]];
    int64_t apart = 0;
    if (scope < PESTLE_SCOPE_PRIVATE || scope > PESTLE_SCOPE_LANES) {
      return broken(v, "'%s' has no scope", t->name);
    }
    if (scope != PESTLE_SCOPE_LANES) continue;
    PESTLE_TRY(pestle_nest_owned(v->nest, v->stage, false, &apart));
    if (apart != t->lane_stride || !apart) {
      return broken(v, "lanes read of '%s' what others wrote", t->name);
    }
  }
  return NULL;
}

// With every reader below the loop, the hull of the reads that emission takes
// for the box covers them.
static pestle_status_t check_readers(const verify_t* v) {
  for (uint32_t q = v->stage + 1; q <= v->anchor; ++q) {
    bool reads;
    if (v->nest->stages.data[q].inlined) continue;
    if (pestle_schedule_is_under(v->nest, q, (uint32_t)v->s->at_stage,
                                 v->s->at_axis)) {
      continue;
    }
    PESTLE_TRY(pestle_schedule_reads(v->nest, q, v->stage, &reads));
    if (!reads) continue;
    // What is carried lives as long as what carries it.
    const pestle_nest_stage_t* c = &v->nest->stages.data[v->s->at_stage];
    if (v->s->carried && q > (uint32_t)v->s->at_stage &&
        (c->at_stage < 0 ||
         pestle_schedule_is_under(v->nest, q, (uint32_t)c->at_stage,
                                  c->at_axis))) {
      continue;
    }
    return broken(v, "stage '%s' reads it and does not run under its loop",
                  v->nest->stages.data[q].name);
  }
  return NULL;
}

// --- Sizes ---

static pestle_status_t check_scratch(verify_t* v) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < v->anchor; ++i) {
    const pestle_nest_stage_t* s = &v->nest->stages.data[i];
    for (uint32_t t = 0; t < s->value_count && !s->inlined; ++t) {
      const pestle_nest_tensor_t* x = &v->nest->tensors.data[s->tensors[t]];
      if (x->scope != PESTLE_SCOPE_SHARED) continue;
      bytes += (uint64_t)v->boxes[i].count * pestle_dtype_size(x->type.dtype);
    }
  }
  if (!v->caps || !v->caps->scratch_bytes || bytes <= v->caps->scratch_bytes) {
    return NULL;
  }
  return broken(v,
                "the shared tensors of the nest take %llu bytes; the target "
                "has %u",
                (unsigned long long)bytes, v->caps->scratch_bytes);
}

// The last block is shorter: the loop over blocks must be another stage's,
// which emits its last step apart.
static pestle_status_t check_blocks(const verify_t* v) {
  const pestle_nest_stage_t* s = v->s;
  for (uint32_t i = s->map_count; i < s->root_count; ++i) {
    const pestle_nest_axis_t* a = &v->nest->axes.data[s->roots[i]];
    if (a->block_axis < 0 || a->full_extent % a->block == 0) continue;
    for (uint32_t m = 0; m < s->map_count; ++m) {
      if (s->roots[m] != (uint32_t)a->block_axis) continue;
      if (v->boxes[v->stage].extent[m] == 1) break;
      return broken(v, "it walks blocks of '%s', of which the last is shorter",
                    a->name);
    }
  }
  return NULL;
}

static pestle_status_t check_transposed(const verify_t* v) {
  const pestle_nest_stage_t* s = v->s;
  const pestle_nest_axis_t* axes = v->nest->axes.data;
  int32_t axis =
      s->transposed ? pestle_nest_transposed_axis(v->nest, v->stage) : 0;
  if (!s->transposed) return NULL;
  bool ok = axis >= 0 && s->order_count >= 2;
  if (ok) {
    const pestle_nest_axis_t* row = &axes[s->order[s->order_count - 2]];
    const pestle_nest_axis_t* lane = &axes[s->order[s->order_count - 1]];
    ok = lane->mark == PESTLE_MARK_VECTOR &&
         row->full_extent == lane->full_extent &&
         lane->parent == (int32_t)s->roots[axis] &&
         row->parent == (int32_t)s->roots[s->map_count - 1] &&
         v->nest->tensors.data[s->tensors[0]].scope == PESTLE_SCOPE_PRIVATE;
  }
  if (ok) return NULL;
  return broken(v, "it is no copy that can be transposed in registers");
}

// Whether lanes of vectors of |s| are its results along a map axis, |*out_root|.
static bool has_lanes(const pestle_nest_t* nest, const pestle_nest_stage_t* s,
                      uint32_t* out_root) {
  if (!s->order_count) return false;
  uint32_t leaf = s->order[s->order_count - 1];
  const pestle_nest_axis_t* a = &nest->axes.data[leaf];
  *out_root = pestle_nest_leaf_root(nest, leaf);
  return a->mark == PESTLE_MARK_VECTOR && !a->reduce && a->full_extent > 1;
}

// The dim of a stage's tensor whose elements are lanes of its registers.
static uint32_t lanes_dim(const pestle_type_t* type) {
  int32_t d = type->rank - 1;
  while (d > 0 && type->dims[d] == 1)
    --d;
  return d < 0 ? 0 : (uint32_t)d;
}

typedef struct lanes_read_t {
  uint32_t tensor, dim;
  uint32_t root;  // the reader's axis of lanes
  bool across;
} lanes_read_t;

static void lanes_visit(void* user, const pestle_expr_t* e) {
  lanes_read_t* r = user;
  if ((uint32_t)e->i != r->tensor) return;
  for (uint32_t d = 0; d < e->index_count; ++d) {
    r->across = r->across ||
                (d != r->dim && pestle_affine_depends(e->index[d], r->root));
  }
}

static pestle_status_t look_across(pestle_nest_t* nest,
                                   const pestle_nest_stage_t* s,
                                   lanes_read_t* r) {
  pestle_arena_mark_t mark = pestle_arena_mark(nest->arena);
  uint8_t* seen = pestle_arena_alloc_zero(nest->arena, nest->expr_count + 1, 1);
  if (!seen) return PESTLE_ERROR(OUT_OF_MEMORY, "checking '%s'", nest->name);
  pestle_nest_visit_stage(nest, seen, s, lanes_visit, r);
  pestle_arena_rewind(nest->arena, mark);
  return NULL;
}

// Registers are vectors along the last dim: of no other are they written or read.
static pestle_status_t check_registers(const verify_t* v) {
  pestle_nest_t* nest = v->nest;
  lanes_read_t r = {0};
  uint32_t root;
  if (v->s->transposed || !has_lanes(nest, v->s, &root)) return NULL;
  for (uint32_t t = 0; t < v->s->value_count; ++t) {
    r.tensor = v->s->tensors[t];
    const pestle_nest_tensor_t* x = &nest->tensors.data[r.tensor];
    if (x->kind != PESTLE_TENSOR_STAGE || x->scope != PESTLE_SCOPE_PRIVATE) {
      continue;
    }
    r.dim = lanes_dim(&x->type);
    if (v->s->roots[r.dim] != root) {
      return broken(v,
                    "its registers hold vectors of '%s', but its last dim "
                    "is another: it is to be shared, or permuted",
                    nest->axes.data[root].name);
    }
    for (uint32_t q = v->stage + 1; q <= v->anchor; ++q) {
      const pestle_nest_stage_t* s = &nest->stages.data[q];
      if (s->inlined || s->transposed || !has_lanes(nest, s, &r.root)) continue;
      PESTLE_TRY(look_across(nest, s, &r));
      if (!r.across) continue;
      return broken(v, "stage '%s' reads vectors across its registers",
                    s->name);
    }
  }
  return NULL;
}

static pestle_status_t check_streamed(const verify_t* v) {
  for (uint32_t i = 0; i < v->s->value_count; ++i) {
    const char* why;
    if (!v->nest->tensors.data[v->s->tensors[i]].streamed ||
        pestle_nest_may_stream(v->nest, v->stage, &why)) {
      continue;
    }
    return broken(v, "its stores cannot go past the caches: %s", why);
  }
  return NULL;
}

static pestle_status_t check_border(const verify_t* v) {
  if (!v->s->border || pestle_nest_may_border(v->nest, v->stage, v->s->skips)) {
    return NULL;
  }
  return broken(v, "it is no reduction whose border may be apart");
}

static pestle_status_t check_prefetches(const verify_t* v) {
  for (size_t i = 0; i < v->nest->prefetches.size; ++i) {
    const pestle_prefetch_t* f = &v->nest->prefetches.data[i];
    const pestle_nest_axis_t* loop = &v->nest->axes.data[f->loop];
    if (loop->stage == (int32_t)v->stage &&
        !pestle_nest_may_prefetch(v->nest, f)) {
      return broken(v, "loop '%s' cannot ask for '%s' ahead of its use",
                    loop->name, v->nest->tensors.data[f->tensor].name);
    }
  }
  return NULL;
}

static pestle_status_t check_stage(const verify_t* v) {
  PESTLE_TRY(check_order(v));
  for (uint32_t i = 0; i < v->s->order_count; ++i) {
    PESTLE_TRY(check_mark(v, i));
  }
  PESTLE_TRY(check_parts(v));
  PESTLE_TRY(check_transposed(v));
  PESTLE_TRY(check_registers(v));
  PESTLE_TRY(check_streamed(v));
  PESTLE_TRY(check_border(v));
  PESTLE_TRY(check_prefetches(v));
  if (v->stage == v->anchor) {
    return v->s->at_stage < 0 ? NULL
                              : broken(v,
                                       "the last stage is placed "
                                       "under another");
  }
  PESTLE_TRY(check_place(v));
  return check_readers(v);
}

static pestle_status_t check_copies(verify_t* v) {
  for (uint32_t i = 0; i <= v->anchor; ++i) {
    v->stage = i;
    v->s = &v->nest->stages.data[i];
    if (v->s->inlined) continue;
    int64_t copies;
    PESTLE_TRY(pestle_nest_copies(v->nest, i, &copies));
    if (copies <= PESTLE_NEST_MAX_COPIES) continue;
    return broken(v, "unrolled loops make more than %d copies of its body",
                  PESTLE_NEST_MAX_COPIES);
  }
  return NULL;
}

// The loops of a template's kernel are its own, and so are places.
static pestle_status_t check_template(verify_t* v) {
  const pestle_nest_template_t* use = &v->nest->template;
  if (use->stage > v->anchor) return PESTLE_ERROR(INTERNAL, "no such stage");
  v->s = &v->nest->stages.data[use->stage];
  pestle_status_t status = use->row->match(v->nest, use);
  if (pestle_status_code(status) != PESTLE_STATUS_INVALID_ARGUMENT)
    return status;
  pestle_status_t error = broken(v, "%s", pestle_status_message(status));
  pestle_status_release(status);
  return error;
}

pestle_status_t pestle_nest_verify_loops(pestle_nest_t* nest,
                                         const pestle_target_caps_t* caps) {
  verify_t v = {
      .nest = nest, .caps = caps, .anchor = (uint32_t)nest->stages.size - 1};
  if (nest->template.row) return check_template(&v);
  for (uint32_t i = 0; i <= v.anchor; ++i) {
    v.stage = i;
    v.s = &nest->stages.data[i];
    if (!v.s->inlined) PESTLE_TRY(check_stage(&v));
  }
  // Boxes need places that are right. Atoms that they make live on in the
  // nest, so the arena is not rewound.
  PESTLE_TRY(pestle_nest_boxes(nest, &v.boxes));
  for (uint32_t i = 0; i <= v.anchor; ++i) {
    v.stage = i;
    v.s = &nest->stages.data[i];
    if (!v.s->inlined) PESTLE_TRY(check_blocks(&v));
  }
  PESTLE_TRY(check_scratch(&v));
  return check_copies(&v);
}
