// SPDX-License-Identifier: Apache-2.0
// Values that one lane of a group both writes and reads stay in its registers (scope
// lanes), with no shared memory and no barrier. That needs stages which split a row among
// the lanes alike:
//
//   axis = (step * lanes + lane) * vector + element
//
// Each lane then keeps its own elements, [step, element].
#include "base/bits.h"
#include "codegen/schedule/schedule_internal.h"

typedef struct owners_t {
  int64_t lanes, vector;
} owners_t;

// How the lanes of a group share |axis|, whose steps must be unrolled, or are
// taken to be.
static bool find_owners(const pestle_nest_t* nest, uint32_t axis,
                        bool if_unrolled, owners_t* out) {
  const pestle_nest_axis_t* axes = nest->axes.data;
  const pestle_nest_axis_t* a = &axes[axis];
  if (a->outer < 0 || a->block_axis >= 0) return false;
  const pestle_nest_axis_t* step = &axes[a->outer];
  const pestle_nest_axis_t* lane = &axes[a->inner];
  out->vector = 1;
  if (lane->outer >= 0) {
    const pestle_nest_axis_t* element = &axes[lane->inner];
    out->vector = lane->factor;
    lane = &axes[lane->outer];
    if (element->outer >= 0 || element->mark != PESTLE_MARK_VECTOR)
      return false;
  }
  out->lanes = a->factor / out->vector;
  return step->outer < 0 && lane->outer < 0 &&
         lane->mark == PESTLE_MARK_LANE_X && a->factor % out->vector == 0 &&
         (if_unrolled || step->mark == PESTLE_MARK_UNROLL ||
          step->full_extent == 1) &&
         a->full_extent % out->vector == 0;
}

typedef struct look_t {
  const pestle_nest_t* nest;
  uint32_t tensor, stage;
  owners_t owners;
  bool if_unrolled, alike;
} look_t;

// Whether a read is of the lane's own elements.
static void look_at_read(void* user, const pestle_expr_t* x) {
  look_t* k = user;
  if ((uint32_t)x->i != k->tensor) return;
  const pestle_nest_stage_t* s = &k->nest->stages.data[k->stage];
  int32_t axis =
      x->guard ? -1 : pestle_affine_is_axis(x->index[x->index_count - 1]);
  owners_t own;
  bool root = false;
  for (uint32_t i = 0; i < s->root_count; ++i)
    root = root || (int32_t)s->roots[i] == axis;
  if (!root || !find_owners(k->nest, (uint32_t)axis, k->if_unrolled, &own) ||
      own.lanes != k->owners.lanes || own.vector != k->owners.vector) {
    k->alike = false;
  }
}

static pestle_status_t look_at_stage(pestle_nest_t* nest, look_t* look) {
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, look->stage);
  for (uint32_t v = 0; v < s->value_count; ++v) {
    PESTLE_TRY(pestle_expr_visit_reads(nest, s->values[v], look_at_read, look));
    if (s->is_reduction && s->inits[v]) {
      PESTLE_TRY(
          pestle_expr_visit_reads(nest, s->inits[v], look_at_read, look));
    }
    // Values of a region are reduced elsewhere than they are made.
    if (s->combine) look->alike = false;
  }
  return NULL;
}

pestle_status_t pestle_nest_owned(pestle_nest_t* nest, uint32_t stage,
                                  bool if_unrolled, int64_t* out_apart) {
  const pestle_nest_stage_t* s = pestle_nest_stage(nest, stage);
  look_t look = {.nest = nest,
                 .tensor = s->tensors[0],
                 .if_unrolled = if_unrolled,
                 .alike = true};
  *out_apart = 0;
  if (s->is_reduction || s->value_count != 1 || !s->map_count ||
      s->transposed || s->write_index[0] || s->at_stage < 0 ||
      !find_owners(nest, s->roots[s->map_count - 1], if_unrolled,
                   &look.owners)) {
    return NULL;
  }
  pestle_nest_box_t* boxes;
  PESTLE_TRY(pestle_nest_boxes(nest, &boxes));
  s = pestle_nest_stage(nest, stage);
  const pestle_nest_axis_t* row = &nest->axes.data[s->roots[s->map_count - 1]];
  if (boxes[stage].count != row->full_extent) return NULL;
  for (uint32_t q = stage + 1; q < nest->stages.size; ++q) {
    if (nest->stages.data[q].inlined) continue;
    look.stage = q;
    PESTLE_TRY(look_at_stage(nest, &look));
  }
  if (look.alike) *out_apart = look.owners.lanes * look.owners.vector;
  return NULL;
}
