// SPDX-License-Identifier: Apache-2.0
// Custom calls of LAPACK's functions by layouts that are not theirs.
//
//   %y = custom_call @lapack_sgeqrf_ffi(%x) {operand_layouts = [dense<[1, 0]>], ..}
//
// The function takes what lies row by row for columns. Of x [m, n] it sees the matrix
// of that shape whose columns, one behind the other, are the rows of x; for m = n that
// is the transpose.
#include <string.h>

#include "base/mem.h"
#include "ir/built.h"
#include "ir/generic_internal.h"
#include "ir/infer.h"

typedef pestle_generic_lying_t order_t;

static const pestle_generic_entry_t* find(const pestle_built_t* b,
                                          const char* key) {
  for (const pestle_generic_entry_t* e = b->attrs; e; e = e->next) {
    if (pestle_str_equal_c(e->key, key)) return e;
  }
  return NULL;
}

// As the function has it: matrices by columns, all else by rows.
static order_t columns(int32_t rank, int32_t batch) {
  order_t o = {.row_major = rank - batch != 2};
  for (int32_t i = 0; i < rank; ++i)
    o.axes[i] = i;
  if (!o.row_major) {
    o.axes[rank - 2] = rank - 1;
    o.axes[rank - 1] = rank - 2;
  }
  return o;
}

static pestle_value_t* turn(pestle_formula_t* f, pestle_value_t* x,
                            const order_t* order, bool back) {
  int64_t inverse[PESTLE_MAX_RANK];
  int32_t rank = x->type->rank;
  if (order->row_major) return x;
  for (int32_t i = 0; i < rank; ++i)
    inverse[order->axes[i]] = i;
  return pestle_f_transpose(f, x, back ? inverse : order->axes);
}

// |x| as somebody has it who reads its bytes, which lie in order |from|, as if they
// lay in order |to|.
static pestle_value_t* reread(pestle_formula_t* f, pestle_value_t* x,
                              const order_t* from, const order_t* to) {
  pestle_type_t type = *x->type;
  if (!memcmp(from->axes, to->axes, (size_t)type.rank * sizeof(int64_t)))
    return x;
  if (!pestle_type_is_static(&type)) {
    return pestle_f_fail(
        f, PESTLE_ERROR(UNSUPPORTED,
                        "a layout that is not the function's own, of a tensor "
                        "whose extents are not known: %s",
                        pestle_type_text(&type).text));
  }
  for (int32_t i = 0; i < type.rank; ++i)
    type.dims[i] = x->type->dims[to->axes[i]];
  pestle_value_t* bytes = turn(f, x, from, false);
  bytes = pestle_f_reshape_to(f, bytes, &type);
  return turn(f, bytes, to, true);
}

// The operands of its function begin with a matrix, but for these, which begin with a
// diagonal.
static int32_t batch_of(const pestle_built_t* b) {
  bool is_vector = strstr(b->name, "gtsv") != NULL;
  int32_t rank = b->operands[0]->type->rank - (is_vector ? 1 : 2);
  return rank > 0 ? rank : 0;
}

static pestle_status_t read(pestle_generic_t* g, pestle_built_t* b,
                            order_t** out_operands, order_t** out_results) {
  size_t count = b->operand_count + b->type_count;
  order_t* orders = PESTLE_ARENA_ARRAY(b->arena, order_t, count + 1);
  const pestle_type_t** types =
      PESTLE_ARENA_ARRAY(b->arena, const pestle_type_t*, count + 1);
  bool any = false;
  if (!orders || !types) return PESTLE_OOM();
  *out_operands = orders;
  *out_results = orders + b->operand_count;
  for (size_t i = 0; i < b->operand_count; ++i)
    types[i] = b->operands[i]->type;
  for (size_t i = 0; i < b->type_count; ++i)
    types[b->operand_count + i] = &b->types[i];
  PESTLE_TRY(pestle_generic_read_lying(g, find(b, "operand_layouts"), types,
                                       b->operand_count, *out_operands, &any));
  return pestle_generic_read_lying(g, find(b, "result_layouts"),
                                   types + b->operand_count, b->type_count,
                                   *out_results, &any);
}

pestle_status_t pestle_built_lie(pestle_generic_t* g, pestle_built_t* b,
                                 pestle_built_lying_t* out_lying) {
  order_t *operands, *results;
  *out_lying = (pestle_built_lying_t){NULL, 0, 0};
  if (!find(b, "operand_layouts") && !find(b, "result_layouts")) return NULL;
  PESTLE_TRY(read(g, b, &operands, &results));
  if (strncmp(b->name, "lapack_", 7) != 0 || !b->operand_count) return NULL;
  pestle_value_t** values =
      PESTLE_ARENA_ARRAY(b->arena, pestle_value_t*, b->operand_count + 1);
  if (!values) return PESTLE_OOM();
  int32_t batch = batch_of(b);
  for (size_t i = 0; i < b->operand_count; ++i) {
    order_t own = columns(b->operands[i]->type->rank, batch);
    values[i] = find(b, "operand_layouts")
                    ? reread(&b->f, b->operands[i], &operands[i], &own)
                    : b->operands[i];
  }
  b->operands = values;
  if (find(b, "result_layouts"))
    *out_lying = (pestle_built_lying_t){results, b->type_count, batch};
  return b->f.status;
}

pestle_status_t pestle_built_lie_back(pestle_built_t* b,
                                      const pestle_built_lying_t* lying) {
  for (size_t i = 0; lying->results && i < lying->count; ++i) {
    if (!b->results[i]) continue;
    order_t own = columns(b->results[i]->type->rank, lying->batch);
    b->results[i] = reread(&b->f, b->results[i], &own, &lying->results[i]);
  }
  return b->f.status;
}
