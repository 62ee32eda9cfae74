// SPDX-License-Identifier: Apache-2.0
// Products whose columns go by groups, as those of a convolution in groups and of its
// gradients do: which group it is, is an axis of its own then, along which both operands
// move, a batch of products. With one axis for both, each column would be a product alone.
#include "codegen/sketch/sketch.h"

typedef struct divisors_t {
  uint32_t axis;
  // By which the axis is divided; 0: by none, -1: by several, or more than the axis is.
  int64_t divisor;
} divisors_t;

static void visit_affine(divisors_t* d, const pestle_affine_t* a) {
  for (uint32_t i = 0; i < a->count; ++i) {
    const pestle_atom_t* atom = a->terms[i].atom;
    if (atom->kind == PESTLE_ATOM_AXIS || !atom->affine ||
        !pestle_affine_depends(atom->affine, d->axis)) {
      continue;
    }
    const pestle_affine_t* in = atom->affine;
    bool alone = in->count == 1 && in->terms[0].coef == 1 &&
                 in->terms[0].atom->kind == PESTLE_ATOM_AXIS;
    bool same = !d->divisor || d->divisor == atom->divisor;
    d->divisor = alone && same ? atom->divisor : -1;
  }
}

static void visit_read(void* user, const pestle_expr_t* e) {
  for (uint32_t i = 0; i < e->index_count; ++i)
    visit_affine(user, e->index[i]);
}

// Columns of a group along |axis| of the product |id|; 0: there are no groups.
static int64_t group_of(pestle_sketch_t* k, uint32_t id, uint32_t axis) {
  divisors_t d = {.axis = axis};
  const pestle_nest_axis_t* a = &k->nest->axes.data[axis];
  if (!pestle_nest_axis_is_whole(a) || a->end_scale) return 0;
  pestle_nest_visit_values(k->nest, pestle_sketch_stage(k, id), visit_read, &d);
  bool whole = d.divisor > 1 && d.divisor < a->full_extent &&
               a->full_extent % d.divisor == 0;
  return whole ? d.divisor : 0;
}

static pestle_status_t unfuse_one(pestle_sketch_t* k, uint32_t id,
                                  bool* out_done) {
  *out_done = false;
  const pestle_nest_stage_t* s = pestle_sketch_stage(k, id);
  const pestle_nest_stage_t* y = pestle_sketch_stage(k, k->anchor);
  const pestle_expr_t* read =
      pestle_schedule_find_read(k->nest, k->anchor, s->tensors[0]);
  if (!pestle_sketch_is_product(s) || y->is_reduction || !read ||
      s->order_count != s->root_count || y->order_count != y->root_count) {
    return NULL;
  }
  for (uint32_t i = 0; i < s->map_count; ++i) {
    uint32_t axis = s->roots[i];
    int64_t columns = group_of(k, id, axis);
    int32_t of_anchor = pestle_affine_is_axis(read->index[i]);
    if (!columns || of_anchor < 0 ||
        pestle_sketch_extent(k, (uint32_t)of_anchor) !=
            pestle_sketch_extent(k, axis) ||
        s->root_count + 1 >= PESTLE_NEST_MAX_AXES ||
        s->map_count + 1 > PESTLE_MAX_RANK) {
      continue;
    }
    pestle_sketch_note(k,
                       "'%s' has groups of %lld columns, each with operands "
                       "of its own: a batch of products",
                       s->name, (long long)columns);
    PESTLE_TRY(pestle_schedule_unfuse(k->nest, id, axis, columns));
    *out_done = true;
    return pestle_schedule_unfuse(k->nest, k->anchor, (uint32_t)of_anchor,
                                  columns);
  }
  return pestle_nest_status(k->nest);
}

pestle_status_t pestle_sketch_unfuse_groups(pestle_sketch_t* k, uint32_t id) {
  for (bool done = true; done;)
    PESTLE_TRY(unfuse_one(k, id, &done));
  return NULL;
}
