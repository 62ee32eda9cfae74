// SPDX-License-Identifier: Apache-2.0
// Steps that make, move and join tensors: see composite.h.
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "ir/composite.h"

pv_t* pestle_step_make(pestle_steps_t* s, pestle_op_t op, pv_t* const* operands,
                       size_t count, const pestle_attr_t* attrs,
                       size_t attr_count, const pestle_type_t* type) {
  pestle_node_t* node;
  for (size_t i = 0; i < count; ++i) {
    if (!operands[i]) return NULL;
  }
  if (s->status) return NULL;
  s->status = pestle_node_create(&s->builder,
                                 &(pestle_node_spec_t){.op = op,
                                                       .operands = operands,
                                                       .operand_count = count,
                                                       .attrs = attrs,
                                                       .attr_count = attr_count,
                                                       .type = type,
                                                       .share_elements = true},
                                 &node);
  return s->status ? NULL : pestle_node_result(node, 0);
}

static pestle_attr_t list_attr(pestle_attr_name_t name, const int64_t* data,
                               size_t count) {
  pestle_attr_t attr = {.name = (uint16_t)name,
                        .kind = PESTLE_ATTR_KIND_I64S,
                        .as.i64s = {data, count}};
  return attr;
}

pv_t* pestle_step_reshape(pestle_steps_t* s, pv_t* a, int32_t rank,
                          const int64_t* dims) {
  if (!a) return NULL;
  pestle_type_t type = pestle_type_make(a->type->dtype, rank, dims);
  if (pestle_type_equal(&type, a->type)) return a;
  return pestle_step_make(s, PESTLE_OP_RESHAPE, &a, 1, NULL, 0, &type);
}

pv_t* pestle_step_transpose(pestle_steps_t* s, pv_t* a, const int64_t* order) {
  bool same = true;
  if (!a) return NULL;
  for (int32_t i = 0; i < a->type->rank; ++i)
    same = same && order[i] == i;
  if (same) return a;
  pestle_attr_t attr =
      list_attr(PESTLE_ATTR_permutation, order, (size_t)a->type->rank);
  return pestle_step_make(s, PESTLE_OP_TRANSPOSE, &a, 1, &attr, 1, NULL);
}

pv_t* pestle_step_slice(pestle_steps_t* s, pv_t* a, int32_t axis, int64_t low,
                        int64_t high) {
  int64_t start[PESTLE_MAX_RANK] = {0}, limit[PESTLE_MAX_RANK];
  int64_t stride[PESTLE_MAX_RANK];
  if (!a) return NULL;
  if (low == 0 && high == a->type->dims[axis]) return a;
  size_t rank = (size_t)a->type->rank;
  for (size_t i = 0; i < rank; ++i) {
    limit[i] = a->type->dims[i];
    stride[i] = 1;
  }
  start[axis] = low;
  limit[axis] = high;
  pestle_attr_t attrs[] = {
      list_attr(PESTLE_ATTR_start_indices, start, rank),
      list_attr(PESTLE_ATTR_limit_indices, limit, rank),
      list_attr(PESTLE_ATTR_strides, stride, rank),
  };
  return pestle_step_make(s, PESTLE_OP_SLICE, &a, 1, attrs, 3, NULL);
}

pv_t* pestle_step_part(pestle_steps_t* s, pv_t* a, int32_t axis, int64_t at) {
  int64_t dims[PESTLE_MAX_RANK];
  if (!a) return NULL;
  a = pestle_step_slice(s, a, axis, at, at + 1);
  int32_t rank = 0;
  for (int32_t i = 0; a && i < a->type->rank; ++i) {
    if (i != axis) dims[rank++] = a->type->dims[i];
  }
  return pestle_step_reshape(s, a, rank, dims);
}

pv_t* pestle_step_reverse(pestle_steps_t* s, pv_t* a, int64_t axis) {
  pestle_attr_t attr = list_attr(PESTLE_ATTR_dimensions, &axis, 1);
  return pestle_step_make(s, PESTLE_OP_REVERSE, &a, 1, &attr, 1, NULL);
}

pv_t* pestle_step_concatenate(pestle_steps_t* s, pv_t* const* parts,
                              size_t count, int64_t axis) {
  pestle_attr_t attr = {.name = PESTLE_ATTR_dimension,
                        .kind = PESTLE_ATTR_KIND_I64,
                        .as.i64 = axis};
  return pestle_step_make(s, PESTLE_OP_CONCATENATE, parts, count, &attr, 1,
                          NULL);
}

pv_t* pestle_step_stack(pestle_steps_t* s, pv_t* const* parts, size_t count) {
  pv_t* rows[PESTLE_MAX_RANK];
  for (size_t i = 0; i < count; ++i) {
    if (!parts[i]) return NULL;
    int64_t dims[PESTLE_MAX_RANK + 1] = {1};
    int32_t rank = parts[i]->type->rank;
    memcpy(dims + 1, parts[i]->type->dims, sizeof(dims[0]) * (size_t)rank);
    rows[i] = pestle_step_reshape(s, parts[i], rank + 1, dims);
  }
  return pestle_step_concatenate(s, rows, count, 0);
}

pv_t* pestle_step_pad_end(pestle_steps_t* s, pv_t* a, int32_t axis,
                          int64_t count) {
  int64_t none[PESTLE_MAX_RANK] = {0}, high[PESTLE_MAX_RANK] = {0};
  if (!a || !count) return a;
  size_t rank = (size_t)a->type->rank;
  high[axis] = count;
  pestle_type_t scalar = pestle_type_make(a->type->dtype, 0, NULL);
  pv_t* operands[2] = {a, pestle_step_number(s, &scalar, 0)};
  pestle_attr_t attrs[] = {
      list_attr(PESTLE_ATTR_edge_padding_low, none, rank),
      list_attr(PESTLE_ATTR_edge_padding_high, high, rank),
      list_attr(PESTLE_ATTR_interior_padding, none, rank),
  };
  return pestle_step_make(s, PESTLE_OP_PAD, operands, 2, attrs, 3, NULL);
}

pv_t* pestle_step_broadcast_to(pestle_steps_t* s, pv_t* a, int32_t rank,
                               const int64_t* dims, pestle_i64s_t axes) {
  if (!a) return NULL;
  pestle_type_t type = pestle_type_make(a->type->dtype, rank, dims);
  pestle_attr_t attr =
      list_attr(PESTLE_ATTR_broadcast_dimensions, axes.data, axes.count);
  return pestle_step_make(s, PESTLE_OP_BROADCAST_IN_DIM, &a, 1, &attr, 1,
                          &type);
}

pv_t* pestle_step_iota(pestle_steps_t* s, const pestle_type_t* type,
                       int64_t axis) {
  pestle_attr_t attr = {.name = PESTLE_ATTR_iota_dimension,
                        .kind = PESTLE_ATTR_KIND_I64,
                        .as.i64 = axis};
  return pestle_step_make(s, PESTLE_OP_IOTA, NULL, 0, &attr, 1, type);
}

static pv_t* elements(pestle_steps_t* s, const pestle_elements_t* e) {
  pestle_attr_t attr = {.name = PESTLE_ATTR_value,
                        .kind = PESTLE_ATTR_KIND_ELEMENTS,
                        .as.elements = e};
  return pestle_step_make(s, PESTLE_OP_CONSTANT, NULL, 0, &attr, 1, NULL);
}

static uint64_t encode(pestle_dtype_t dtype, double value) {
  return pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)
             ? pestle_float_encode(dtype, value)
             : (uint64_t)(int64_t)value;
}

// In memory of the module, which constants keep.
static char* room(pestle_steps_t* s, size_t bytes) {
  char* data = pestle_arena_alloc(&s->builder.module->arena, bytes + 1, 16);
  if (!data && !s->status) s->status = PESTLE_OOM();
  return s->status ? NULL : data;
}

pv_t* pestle_step_number(pestle_steps_t* s, const pestle_type_t* type,
                         double value) {
  size_t size = pestle_dtype_size(type->dtype);
  char* data = room(s, size);
  if (!data) return NULL;
  uint64_t bits = encode(type->dtype, value);
  memcpy(data, &bits, size);
  pestle_elements_t e = {*type, data, size, true};
  return elements(s, &e);
}

pv_t* pestle_step_bits(pestle_steps_t* s, const pestle_type_t* type,
                       uint64_t bits) {
  size_t size = pestle_dtype_size(type->dtype);
  char* data = room(s, size);
  if (!data) return NULL;
  memcpy(data, &bits, size);
  pestle_elements_t e = {*type, data, size, true};
  return elements(s, &e);
}

pv_t* pestle_step_numbers(pestle_steps_t* s, const pestle_type_t* type,
                          const double* values) {
  size_t size = pestle_dtype_size(type->dtype);
  size_t count = (size_t)pestle_type_count(type);
  char* data = room(s, count * size);
  if (!data) return NULL;
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = encode(type->dtype, values[i]);
    memcpy(data + i * size, &bits, size);
  }
  pestle_elements_t e = {*type, data, count * size, false};
  return elements(s, &e);
}
