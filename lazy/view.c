// SPDX-License-Identifier: Apache-2.0
// View ops on data: another offset and other strides of the same buffer.
#include "lazy/lazy.h"

void pestle_strides_of(const pestle_type_t* type, int64_t* out_strides) {
  int64_t stride = 1;
  for (int32_t i = type->rank - 1; i >= 0; --i) {
    out_strides[i] = stride;
    // An array without elements has no strides that matter.
    if (__builtin_mul_overflow(stride, type->dims[i], &stride)) stride = 0;
  }
}

// A view that is being made: dims are the result type's.
typedef struct view_t {
  int64_t offset;  // in elements, from the source's first
  int64_t strides[PESTLE_MAX_RANK];
} view_t;

static pestle_i64s_t numbers(const pestle_record_t* r,
                             pestle_attr_name_t name) {
  for (size_t i = 0; i < r->parts.attr_count; ++i) {
    if (r->parts.attrs[i].name == name) return r->parts.attrs[i].as.i64s;
  }
  return (pestle_i64s_t){NULL, 0};
}

static bool transpose(const pestle_record_t* r, const int64_t* strides,
                      view_t* v) {
  pestle_i64s_t order = numbers(r, PESTLE_ATTR_permutation);
  for (size_t i = 0; i < order.count; ++i)
    v->strides[i] = strides[order.data[i]];
  return true;
}

static bool slice(const pestle_record_t* r, const int64_t* strides, view_t* v) {
  pestle_i64s_t starts = numbers(r, PESTLE_ATTR_start_indices);
  pestle_i64s_t steps = numbers(r, PESTLE_ATTR_strides);
  for (size_t i = 0; i < starts.count; ++i) {
    v->offset += starts.data[i] * strides[i];
    v->strides[i] = strides[i] * steps.data[i];
  }
  return true;
}

static bool reverse(const pestle_record_t* r, const int64_t* strides,
                    view_t* v) {
  const pestle_type_t* type = &r->operands[0]->type;
  pestle_i64s_t axes = numbers(r, PESTLE_ATTR_dimensions);
  memcpy(v->strides, strides, (size_t)type->rank * sizeof(*strides));
  for (size_t i = 0; i < axes.count; ++i) {
    int64_t axis = axes.data[i];
    v->offset += strides[axis] * (type->dims[axis] - 1);
    v->strides[axis] = -strides[axis];
  }
  return true;
}

static bool broadcast(const pestle_record_t* r, const pestle_type_t* to,
                      const int64_t* strides, view_t* v) {
  const pestle_type_t* type = &r->operands[0]->type;
  pestle_i64s_t axes = numbers(r, PESTLE_ATTR_broadcast_dimensions);
  memset(v->strides, 0, sizeof(v->strides));
  for (size_t i = 0; i < axes.count; ++i) {
    int64_t axis = axes.data[i];
    bool repeats = type->dims[i] == 1 && to->dims[axis] != 1;
    v->strides[axis] = repeats ? 0 : strides[i];
  }
  return true;
}

// Axes that a reshape joins or splits must lie one behind the other: each run of
// source axes with as many elements as a run of result axes is looked at alone.
static bool reshape(const pestle_type_t* from, const int64_t* strides,
                    const pestle_type_t* to, view_t* v) {
  int32_t i = 0, j = 0;
  while (i < from->rank || j < to->rank) {
    int32_t i_end = i, j_end = j;
    int64_t a = 1, b = 1;
    if (i_end < from->rank) a = from->dims[i_end++];
    if (j_end < to->rank) b = to->dims[j_end++];
    while (a != b) {
      if (a < b && i_end < from->rank) {
        a *= from->dims[i_end++];
      } else if (a > b && j_end < to->rank) {
        b *= to->dims[j_end++];
      } else {
        return false;
      }
    }
    // The run's axes of more than one element, from the last to the first.
    int64_t stride = 0, next = 0;
    bool any = false;
    for (int32_t k = i_end - 1; k >= i; --k) {
      if (from->dims[k] == 1) continue;
      if (any && strides[k] != next) return false;
      if (!any) stride = strides[k];
      any = true;
      if (__builtin_mul_overflow(strides[k], from->dims[k], &next))
        return false;
    }
    for (int32_t k = j_end - 1; k >= j; --k) {
      v->strides[k] = stride;
      if (__builtin_mul_overflow(stride, to->dims[k], &stride)) return false;
    }
    i = i_end;
    j = j_end;
  }
  return true;
}

static bool make_view(const pestle_record_t* r, const pestle_type_t* type,
                      view_t* v) {
  const pestle_array_t* a = r->operands[0];
  int64_t row_major[PESTLE_MAX_RANK];
  const int64_t* strides = a->strides;
  if (!strides) {
    pestle_strides_of(&a->type, row_major);
    strides = row_major;
  }
  switch ((int)r->op) {
    case PESTLE_OP_TRANSPOSE:
      return transpose(r, strides, v);
    case PESTLE_OP_SLICE:
      return slice(r, strides, v);
    case PESTLE_OP_REVERSE:
      return reverse(r, strides, v);
    case PESTLE_OP_BROADCAST_IN_DIM:
      return broadcast(r, type, strides, v);
    case PESTLE_OP_RESHAPE:
      return reshape(&a->type, strides, type, v);
    default:
      return false;
  }
}

// Strides of axes of one element do not matter.
static bool is_row_major(const pestle_type_t* type, const int64_t* strides) {
  int64_t row_major[PESTLE_MAX_RANK];
  pestle_strides_of(type, row_major);
  for (int32_t i = 0; i < type->rank; ++i) {
    if (type->dims[i] != 1 && strides[i] != row_major[i]) return false;
  }
  return true;
}

pestle_status_t pestle_array_view(const pestle_record_t* r,
                                  const pestle_type_t* type,
                                  pestle_array_t** out_array) {
  view_t v = {.offset = 0};
  *out_array = NULL;
  if (!r->operand_count) return NULL;
  pestle_array_t* a = r->operands[0];
  // A number that is repeated stays an argument of its own.
  if (pestle_array_node_state(a) != PESTLE_NODE_DATA ||
      pestle_array_flags(a) & PESTLE_NODE_WEAK ||
      !pestle_type_count(&a->type) || !pestle_type_count(type) ||
      !make_view(r, type, &v)) {
    return NULL;
  }
  int64_t element = (int64_t)pestle_dtype_size(type->dtype);
  PESTLE_TRY(pestle_array_make_data(
      a->lazy, type, a->buffer, a->byte_offset + (uint64_t)(v.offset * element),
      is_row_major(type, v.strides) ? NULL : v.strides, out_array));
  pestle_buffer_retain(a->buffer);
  return NULL;
}
