// SPDX-License-Identifier: Apache-2.0
// Which maps read one argument along another axis than they write, so that a tile of it
// is turned in shared memory.
#include "codegen/template/shared_transpose/shared_transpose.h"

#include "codegen/schedule/schedule.h"

enum { WORD = 4 };  // bytes that a lane moves at least

typedef struct find_t {
  pestle_nest_t* nest;
  const pestle_nest_stage_t* s;
  const pestle_expr_t* read;
  uint32_t turned;
} find_t;

static void visit(void* user, const pestle_expr_t* x) {
  find_t* f = user;
  const pestle_nest_stage_t* s = f->s;
  const pestle_nest_tensor_t* t = &f->nest->tensors.data[x->i];
  bool nested;
  if (f->read || t->kind != PESTLE_TENSOR_INPUT || t->pack) return;
  int64_t last =
      pestle_affine_coef(x->index[0], s->roots[s->map_count - 1], &nested);
  if (nested || last == 0 || last == 1) return;
  for (uint32_t i = 0; i + 1 < s->map_count; ++i) {
    if (pestle_affine_coef(x->index[0], s->roots[i], &nested) != 1 || nested) {
      continue;
    }
    f->read = x;
    f->turned = s->roots[i];
    return;
  }
}

bool pestle_shared_transpose_find(pestle_nest_t* nest,
                                  pestle_shared_transpose_t* out) {
  uint32_t last = (uint32_t)nest->stages.size - 1;
  find_t f = {.nest = nest, .s = pestle_nest_stage(nest, last)};
  if (f.s->is_reduction || f.s->map_count < 2 ||
      f.s->root_count != f.s->map_count) {
    return false;
  }
  pestle_nest_visit_values(nest, f.s, visit, &f);
  if (!f.read || !pestle_schedule_find_read(nest, last, (uint32_t)f.read->i)) {
    return false;
  }
  for (uint32_t i = 0; i < f.s->root_count; ++i) {
    if (!pestle_nest_axis_is_whole(&nest->axes.data[f.s->roots[i]])) {
      return false;
    }
  }
  unsigned size = pestle_dtype_size(nest->tensors.data[f.read->i].type.dtype);
  int64_t rows = nest->axes.data[f.turned].full_extent;
  int64_t columns = nest->axes.data[f.s->roots[f.s->map_count - 1]].full_extent;
  out->read = f.read;
  out->turned = f.turned;
  out->vector = size < WORD ? WORD / (int64_t)size : 1;
  if (rows % out->vector || columns % out->vector) out->vector = 1;
  out->side = PESTLE_SHARED_TRANSPOSE_ALONG * out->vector;
  return rows >= PESTLE_SHARED_TRANSPOSE_ROWS &&
         columns >= PESTLE_SHARED_TRANSPOSE_ROWS;
}

pestle_status_t pestle_shared_transpose_match(
    pestle_nest_t* nest, const pestle_nest_template_t* use) {
  pestle_shared_transpose_t x;
  int64_t tensor = use->ints[0];
  if (use->stage + 1 == nest->stages.size &&
      pestle_shared_transpose_find(nest, &x) && x.read->i == tensor) {
    return NULL;
  }
  PESTLE_TRY(pestle_nest_status(nest));
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "shared_transpose %s %s: the last stage must read it "
                      "once, along an axis of its own that is not the last "
                      "one, and both must have %d elements",
                      pestle_nest_stage(nest, use->stage)->name,
                      nest->tensors.data[tensor].name,
                      (int)PESTLE_SHARED_TRANSPOSE_ROWS);
}
