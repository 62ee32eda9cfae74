// SPDX-License-Identifier: Apache-2.0
// The bookkeeping of bounded values: which axes of which values have a real
// extent beside their bound, and which ops may see such values. An op that says
// nothing about them (onnx_ops.def) is refused one: none computes with what lies
// behind the real elements by accident.
#include "frontend/onnx/bounded.h"

#include "base/mem.h"

const pestle_onnx_real_t* pestle_onnx_real(const pestle_onnx_import_t* import,
                                           const pestle_value_t* value) {
  const pestle_map_value_t* slot =
      pestle_map_find_u64(&import->real, (uintptr_t)value);
  return slot ? slot->ptr : NULL;
}

pestle_value_t* pestle_onnx_real_size(const pestle_onnx_import_t* import,
                                      const pestle_value_t* value,
                                      int64_t axis) {
  const pestle_onnx_real_t* real = pestle_onnx_real(import, value);
  return real ? real->sizes[axis] : NULL;
}

void pestle_onnx_set_real(pestle_onnx_call_t* call, pestle_value_t* value,
                          int64_t axis, pestle_value_t* size) {
  pestle_onnx_import_t* import = call->import;
  if (!value || !size || call->f.status) return;
  pestle_onnx_real_t* real =
      (pestle_onnx_real_t*)pestle_onnx_real(import, value);
  if (!real) {
    real = pestle_arena_alloc_zero(&import->arena, sizeof(*real), 16);
    if (!real ||
        !pestle_map_set_u64_ptr(&import->real, (uintptr_t)value, real)) {
      pestle_onnx_keep(call, PESTLE_OOM());
      return;
    }
  }
  real->sizes[axis] = size;
  const pestle_map_value_t* bound =
      pestle_map_find_u64(&import->bounds, (uintptr_t)size);
  int64_t dim = pestle_onnx_dim(value, axis);
  if (bound && (int64_t)bound->u64 <= dim) return;
  if (!pestle_map_set_u64(&import->bounds, (uintptr_t)size, (uint64_t)dim))
    pestle_onnx_keep(call, PESTLE_OOM());
}

pestle_value_t* pestle_onnx_real_shape(pestle_onnx_call_t* call,
                                       pestle_value_t* value) {
  const int64_t one[] = {1};
  const pestle_type_t scalar = {.dtype = PESTLE_I64};
  pestle_value_t* parts[PESTLE_MAX_RANK];
  int32_t rank = rank_of(value);
  for (int32_t i = 0; i < rank; ++i) {
    pestle_value_t* size = pestle_onnx_real_size(call->import, value, i);
    if (!size) {
      size = pestle_onnx_splat_int(call, &scalar, pestle_onnx_dim(value, i));
    }
    parts[i] = pestle_f_reshape(&call->f, size, 1, one);
  }
  return pestle_f_concatenate(&call->f, parts, (size_t)rank, 0);
}

pestle_value_t* pestle_onnx_real_mask(pestle_onnx_call_t* call,
                                      const pestle_type_t* type,
                                      const pestle_onnx_real_t* real,
                                      uint32_t axes) {
  pestle_type_t index = *type;
  index.dtype = PESTLE_I64;
  pestle_value_t* mask = NULL;
  for (int32_t i = 0; real && i < type->rank; ++i) {
    if (!real->sizes[i] || !(axes >> i & 1)) continue;
    pestle_value_t* inside = pestle_f_lt(
        &call->f, pestle_f_iota(&call->f, &index, i), real->sizes[i]);
    mask = mask ? pestle_f_and(&call->f, mask, inside) : inside;
  }
  return mask;
}

static pestle_value_t* end_axis(pestle_onnx_call_t* call, pestle_value_t* value,
                                int32_t axis, pestle_value_t* size) {
  pestle_value_t* operands[] = {value, size};
  pestle_attr_t attr = PESTLE_SET_I64(dimension, axis);
  return pestle_f_make(&call->f, PESTLE_OP_EXTENT, operands, 2, &attr, 1, NULL);
}

pestle_value_t* pestle_onnx_end_real(pestle_onnx_call_t* call,
                                     pestle_value_t* value) {
  const pestle_onnx_real_t* real =
      value ? pestle_onnx_real(call->import, value) : NULL;
  pestle_value_t* y = value;
  for (int32_t i = 0; real && y && i < rank_of(value); ++i) {
    pestle_value_t* size = real->sizes[i];
    // Attention ends by its mask (passes/whole_attention.c).
    if (size && !pestle_onnx_room_of(call->import, size))
      y = end_axis(call, y, i, size);
  }
  pestle_onnx_copy_real(call, y, value);
  return y;
}

void pestle_onnx_copy_real(pestle_onnx_call_t* call, pestle_value_t* value,
                           const pestle_value_t* from) {
  if (!value || value == from) return;
  for (int32_t i = 0; i < rank_of(value) && i < rank_of(from); ++i) {
    pestle_onnx_set_real(call, value, i,
                         pestle_onnx_real_size(call->import, from, i));
  }
}

pestle_value_t* pestle_onnx_fill_unreal(pestle_onnx_call_t* call,
                                        pestle_value_t* x, uint32_t axes,
                                        pestle_value_t* filler) {
  pestle_value_t* mask =
      x ? pestle_onnx_real_mask(call, pestle_onnx_type(x),
                                pestle_onnx_real(call->import, x), axes)
        : NULL;
  if (!mask) return x;
  pestle_value_t* y = pestle_f_select(&call->f, mask, x, filler);
  // Along other axes nobody relies on the filler either.
  const pestle_onnx_real_t* real = pestle_onnx_real(call->import, x);
  for (int32_t i = 0; y && i < rank_of(x); ++i) {
    if (real->sizes[i] && !(axes >> i & 1))
      y = end_axis(call, y, i, real->sizes[i]);
  }
  return y;
}

// Whether the op may see extents that only a run tells along axis 0 of input |i|.
static bool has_rows(const pestle_onnx_op_t* op, size_t i) {
  unsigned kind = op->bounded & 7u;
  if (kind == PESTLE_ONNX_BATCH) return op->bounded >> 3 >> i & 1;
  return kind == PESTLE_ONNX_ROWS && i == 0;
}

// The input whose extents results keep.
static const pestle_value_t* kept_input(const pestle_onnx_call_t* call,
                                        const pestle_onnx_op_t* op) {
  unsigned kind = op->bounded & 7u;
  for (size_t i = 0; i < call->input_count; ++i) {
    const pestle_value_t* x = call->inputs[i];
    bool kept = has_rows(op, i) || (kind == PESTLE_ONNX_KEEP && i == 0);
    if (x && kept && pestle_onnx_real(call->import, x)) return x;
  }
  return NULL;
}

void pestle_onnx_keep_real(pestle_onnx_call_t* call,
                           const pestle_onnx_op_t* op) {
  const pestle_value_t* x = kept_input(call, op);
  bool rows = (op->bounded & 7u) != PESTLE_ONNX_KEEP;
  if (!x || call->f.status) return;
  for (size_t i = 0; i < call->output_count; ++i) {
    pestle_value_t* y = call->outputs[i];
    if (!y) continue;
    if (!rank_of(y) || pestle_onnx_dim(y, 0) != pestle_onnx_dim(x, 0) ||
        (!rows && rank_of(y) != rank_of(x))) {
      pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                       "its output %zu does not keep axis 0, whose extent only "
                       "a run tells",
                       i);
      return;
    }
    pestle_value_t* size = pestle_onnx_real_size(call->import, x, 0);
    if (rows) pestle_onnx_set_real(call, y, 0, size);
    if (!rows) pestle_onnx_copy_real(call, y, x);
    // What folds along such an axis says no more of it.
    if (y != x) call->outputs[i] = pestle_onnx_end_real(call, y);
  }
}

bool pestle_onnx_allow_real(pestle_onnx_call_t* call, size_t i, uint32_t axes) {
  const pestle_value_t* x =
      i < call->input_count && call->inputs[i] ? call->inputs[i] : NULL;
  const pestle_onnx_real_t* real = x ? pestle_onnx_real(call->import, x) : NULL;
  for (int32_t axis = 0; real && axis < rank_of(x); ++axis) {
    if (!real->sizes[axis] || axes >> axis & 1) continue;
    pestle_str_t op = call->node->op_type;
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "how long its input %zu, '%.*s', is along axis %d (at "
                     "most %lld) is known after a run only, and %.*s would "
                     "compute with what lies behind that",
                     i, PESTLE_STR_ARG(call->node->inputs[i]), axis,
                     (long long)pestle_onnx_dim(x, axis), PESTLE_STR_ARG(op));
  }
  return !call->f.status;
}

// The rows of all inputs of kind BATCH are equally many.
static void fit_batch(pestle_onnx_call_t* call, const pestle_onnx_op_t* op) {
  int64_t* axes =
      pestle_onnx_scratch(call, (call->input_count + 1) * sizeof(int64_t));
  pestle_value_t* size;
  if (!axes || call->f.status || !kept_input(call, op)) return;
  for (size_t i = 0; i < call->input_count; ++i) {
    const pestle_value_t* x = call->inputs[i];
    axes[i] = x && rank_of(x) && has_rows(op, i) ? 0 : -1;
  }
  (void)pestle_onnx_fit(call, call->inputs, axes, call->input_count, &size);
}

void pestle_onnx_check_bounded(pestle_onnx_call_t* call,
                               const pestle_onnx_op_t* op) {
  unsigned kind = op->bounded & 7u;
  if (kind == PESTLE_ONNX_MAP || kind == PESTLE_ONNX_OWN ||
      kind == PESTLE_ONNX_LIST) {
    return;
  }
  for (size_t i = 0; i < call->input_count; ++i) {
    uint32_t axes = has_rows(op, i) ? 1 : 0;
    if (kind == PESTLE_ONNX_KEEP && i == 0) axes = UINT32_MAX;
    if (!pestle_onnx_allow_real(call, i, axes)) return;
  }
  if (kind == PESTLE_ONNX_BATCH) fit_batch(call, op);
}

// Axis |axis| of the result, counted from the end: 0 is the last.
static void broadcast_axis(pestle_onnx_call_t* call, int32_t axis,
                           pestle_value_t** out_size) {
  bool any_whole = false;
  *out_size = NULL;
  for (size_t i = 0; i < call->input_count; ++i) {
    pestle_value_t* x = call->inputs[i];
    if (!x || rank_of(x) <= axis) continue;
    int32_t own = rank_of(x) - 1 - axis;
    pestle_value_t* size = pestle_onnx_real_size(call->import, x, own);
    any_whole = any_whole || (!size && pestle_onnx_dim(x, own) != 1);
    if (size && *out_size && !pestle_onnx_same_size(size, *out_size)) {
      any_whole = true;
    }
    if (size) *out_size = size;
  }
  if (!*out_size || !any_whole) return;
  pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                   "its inputs differ in how long they are along an axis, for "
                   "at least one of them is so long as only a run tells");
}

void pestle_onnx_broadcast_real(pestle_onnx_call_t* call) {
  pestle_value_t* y = call->outputs[0];
  bool any = false;
  for (size_t i = 0; i < call->input_count; ++i) {
    any = any ||
          (call->inputs[i] && pestle_onnx_real(call->import, call->inputs[i]));
  }
  for (int32_t axis = 0; any && axis < rank_of(y); ++axis) {
    pestle_value_t* size;
    broadcast_axis(call, axis, &size);
    pestle_onnx_set_real(call, y, rank_of(y) - 1 - axis, size);
  }
}
