// SPDX-License-Identifier: Apache-2.0
// Caches whose rows end at a number that a run is given (pestle_length_binding_t). They are
// bounded values (bounded.h) of which more is known: there is room for what is appended, and
// what lies behind is finite, so that rows go where they belong, sums over such an axis need
// a mask of one side alone, and a slice from the end on is as long as it says.
#include "frontend/onnx/bounded.h"

#include "base/mem.h"

const pestle_onnx_room_t* pestle_onnx_room_of(
    const pestle_onnx_import_t* import, const pestle_value_t* size) {
  const pestle_map_value_t* slot =
      size ? pestle_map_find_u64(&import->rooms, (uintptr_t)size) : NULL;
  return slot ? slot->ptr : NULL;
}

// |size| is |past| + |rows|.
static bool note(pestle_onnx_call_t* call, pestle_value_t* size,
                 pestle_value_t* past, int64_t rows) {
  pestle_onnx_import_t* import = call->import;
  pestle_onnx_room_t* room =
      pestle_arena_alloc_zero(&import->arena, sizeof(*room), 16);
  if (!room || !pestle_map_set_u64_ptr(&import->rooms, (uintptr_t)size, room)) {
    pestle_onnx_keep(call, PESTLE_OOM());
    return false;
  }
  *room = (pestle_onnx_room_t){past, rows};
  return true;
}

void pestle_onnx_set_room(pestle_onnx_call_t* call, pestle_value_t* value,
                          int64_t axis, pestle_value_t* past, int64_t rows) {
  pestle_value_t* size =
      rows ? add(call, past, pestle_onnx_size_number(call, rows)) : past;
  if (!value || !size) return;
  if (note(call, size, past, rows))
    pestle_onnx_set_real(call, value, axis, size);
}

void pestle_onnx_set_place(pestle_onnx_call_t* call, pestle_value_t* past,
                           int64_t room) {
  if (!past || !note(call, past, past, 0)) return;
  if (!pestle_map_set_u64(&call->import->bounds, (uintptr_t)past,
                          (uint64_t)room))
    pestle_onnx_keep(call, PESTLE_OOM());
}

pestle_value_t* pestle_onnx_append(pestle_onnx_call_t* call,
                                   pestle_value_t* cache, pestle_value_t* x,
                                   int64_t axis) {
  pestle_value_t* size = pestle_onnx_real_size(call->import, cache, axis);
  const pestle_onnx_room_t* room = pestle_onnx_room_of(call->import, size);
  pestle_value_t* operands[PESTLE_MAX_RANK + 2] = {cache, x};
  size_t count = 2;
  if (!room || !x) return NULL;
  int64_t rows = pestle_onnx_dim(x, axis);
  if (rows > pestle_onnx_dim(cache, axis)) {
    return pestle_onnx_fail(call, PESTLE_STATUS_INVALID_ARGUMENT,
                            "%lld rows are appended to a cache that has room "
                            "for %lld",
                            (long long)rows,
                            (long long)pestle_onnx_dim(cache, axis));
  }
  for (int64_t i = 0; i < rank_of(cache); ++i)
    operands[count++] = i == axis ? size : pestle_onnx_size_number(call, 0);
  pestle_value_t* y = pestle_f_emit(
      &call->f, &(pestle_node_spec_t){.op = PESTLE_OP_DYNAMIC_UPDATE_SLICE,
                                      .operands = operands,
                                      .operand_count = count});
  pestle_onnx_set_room(call, y, axis, room->past, room->rows + rows);
  return y;
}

pestle_value_t* pestle_onnx_room_mask(pestle_onnx_call_t* call,
                                      const pestle_type_t* type, int64_t axis,
                                      int64_t row_axis,
                                      const pestle_onnx_room_t* room) {
  pestle_type_t index = *type;
  index.dtype = PESTLE_I64;
  pestle_value_t* last = room->past;
  int64_t count = row_axis >= 0 ? type->dims[row_axis] : 1;
  if (room->rows != count)
    last = add(call, last, pestle_onnx_size_number(call, room->rows - count));
  if (row_axis >= 0)
    last = add(call, pestle_f_iota(&call->f, &index, (int32_t)row_axis), last);
  return pestle_f_le(&call->f, pestle_f_iota(&call->f, &index, (int32_t)axis),
                     last);
}
