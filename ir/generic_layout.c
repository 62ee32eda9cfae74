// SPDX-License-Identifier: Apache-2.0
// operand_layouts and result_layouts of a custom call: in which order the axes of
// tensors lie that its function takes and makes, the fastest first. All tensors here
// are row-major, so what is to lie otherwise is transposed before and after.
//
//   %y = custom_call @f(%x) {operand_layouts = [dense<[0, 1]>], ..} : A[m, n] -> B[k]
//
//   %t = transpose %x, dims = [1, 0]              // [n, m]
//   %y = custom_call @f(%t) {..}
//
// A function that is given a dictionary finds there how its tensors lie, since it may
// be one that wants their axes by name: pestle.layouts = [[1, 0], [0]], of operands,
// then of results, each the slowest axis first.
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "ir/generic_internal.h"
#include "ir/infer.h"

typedef pestle_generic_lying_t order_t;

// The entries of |list| are layouts of |count| tensors.
static pestle_status_t check_list(pestle_generic_t* g,
                                  const pestle_generic_entry_t* list,
                                  size_t count) {
  const pestle_generic_value_t* value = &list->value;
  if (value->kind == PESTLE_GENERIC_LIST && value->entry_count == count)
    return NULL;
  g->at = value;
  if (value->kind != PESTLE_GENERIC_LIST) {
    return PESTLE_ERROR(MALFORMED,
                        "'%.*s' must be a list of a layout each for %zu "
                        "tensors, and is no list",
                        PESTLE_STR_ARG(list->key), count);
  }
  return PESTLE_ERROR(MALFORMED,
                      "'%.*s' must be a list of a layout each for %zu "
                      "tensors, and has %zu",
                      PESTLE_STR_ARG(list->key), count, value->entry_count);
}

// "1, 0, 2", or how it begins.
static void write_axes(pestle_i64s_t axes, size_t capacity, char* out) {
  size_t used = 0;
  *out = 0;
  for (size_t i = 0; i < axes.count; ++i) {
    int size = snprintf(out + used, capacity - used, "%s%" PRId64,
                        i ? ", " : "", axes.data[i]);
    if (size < 0 || (size_t)size >= capacity - used) break;
    used += (size_t)size;
  }
}

static pestle_status_t read_order(pestle_generic_t* g,
                                  const pestle_generic_entry_t* list,
                                  const pestle_generic_value_t* layout,
                                  size_t index, const pestle_type_t* type,
                                  order_t* out) {
  pestle_i64s_t axes = {NULL, 0};
  uint32_t seen = 0;
  // An empty list of elements has a type of its own kind.
  bool empty = layout->kind == PESTLE_GENERIC_ELEMENTS &&
               !pestle_type_count(&layout->elements.type);
  if (!empty) PESTLE_TRY(pestle_generic_i64s(g, layout, &axes));
  bool right = axes.count == (size_t)type->rank;
  out->row_major = true;
  for (size_t i = 0; right && i < axes.count; ++i) {
    int64_t axis = axes.data[axes.count - 1 - i];
    right = axis >= 0 && axis < type->rank && !(seen >> axis & 1);
    if (!right) break;
    seen |= UINT32_C(1) << axis;
    out->axes[i] = axis;
    out->row_major &= axis == (int64_t)i;
  }
  if (right) return NULL;
  g->at = layout;
  char found[128];
  write_axes(axes, sizeof(found), found);
  return PESTLE_ERROR(MALFORMED,
                      "'%.*s': layout %zu must name each axis of %s once, and "
                      "is [%s]",
                      PESTLE_STR_ARG(list->key), index,
                      pestle_type_text(type).text, found);
}

pestle_status_t pestle_generic_read_lying(pestle_generic_t* g,
                                          const pestle_generic_entry_t* list,
                                          const pestle_type_t* const* types,
                                          size_t count, order_t* out,
                                          bool* any) {
  for (size_t i = 0; i < count; ++i)
    out[i].row_major = true;
  if (!list) return NULL;
  PESTLE_TRY(check_list(g, list, count));
  const pestle_generic_entry_t* e = list->value.entries;
  for (size_t i = 0; i < count; ++i, e = e->next) {
    PESTLE_TRY(read_order(g, list, &e->value, i, types[i], &out[i]));
    *any |= !out[i].row_major;
  }
  return NULL;
}

static pestle_type_t lying(const pestle_type_t* type, const order_t* order) {
  pestle_type_t out = *type;
  for (int32_t i = 0; i < type->rank && !order->row_major; ++i)
    out.dims[i] = type->dims[order->axes[i]];
  return out;
}

// |value| as it lies; |back|: as it was before.
static pestle_status_t turn(pestle_builder_t* b, const order_t* order,
                            bool back, pestle_value_t** value) {
  int64_t inverse[PESTLE_MAX_RANK];
  int32_t rank = (*value)->type->rank;
  if (order->row_major) return NULL;
  for (int32_t i = 0; i < rank; ++i)
    inverse[order->axes[i]] = i;
  pestle_transpose_attrs_t attrs = {
      sizeof(attrs), {back ? inverse : order->axes, (size_t)rank}};
  return pestle_op_transpose(b, *value, &attrs, value);
}

typedef struct turned_t {
  size_t operand_count, result_count;
  const pestle_type_t** types;  // of operands, then of results
  order_t* orders;
  pestle_value_t** values;  // operands, later results
  pestle_type_t* results;
  pestle_attr_t* attrs;
} turned_t;

static pestle_status_t allocate(pestle_generic_t* g, const pestle_node_t* node,
                                turned_t* t) {
  pestle_arena_t* arena = g->arena;
  t->operand_count = node->operand_count;
  t->result_count = node->result_count;
  size_t n = t->operand_count + t->result_count + 1;
  t->types = PESTLE_ARENA_ARRAY(arena, const pestle_type_t*, n);
  t->orders = PESTLE_ARENA_ARRAY(arena, order_t, n);
  t->values = PESTLE_ARENA_ARRAY(arena, pestle_value_t*, n);
  t->results = PESTLE_ARENA_ARRAY(arena, pestle_type_t, n);
  if (!t->types || !t->orders || !t->values || !t->results) return PESTLE_OOM();
  for (size_t i = 0; i < t->operand_count; ++i)
    t->types[i] = pestle_node_operand(node, i)->type;
  for (size_t i = 0; i < t->result_count; ++i)
    t->types[t->operand_count + i] = node->results[i].type;
  return NULL;
}

// |text| of a dictionary with the orders of |t| in front.
static const char* add_orders(pestle_arena_t* arena, const turned_t* t,
                              const char* text) {
  pestle_strbuf_t out;
  pestle_strbuf_init(arena->allocator, &out);
  pestle_strbuf_append_c(&out, "{pestle.layouts = [");
  for (size_t i = 0; i < t->operand_count + t->result_count; ++i) {
    const order_t* order = &t->orders[i];
    pestle_strbuf_append_c(&out, i ? ", [" : "[");
    for (int32_t k = 0; k < t->types[i]->rank; ++k) {
      if (k) pestle_strbuf_append_c(&out, ", ");
      pestle_strbuf_append_i64(&out, order->row_major ? k : order->axes[k]);
    }
    pestle_strbuf_append_char(&out, ']');
  }
  pestle_strbuf_append_char(&out, ']');
  pestle_str_t rest = pestle_str_trim(pestle_str_slice(
      pestle_str(text), pestle_str_find_char(pestle_str(text), '{') + 1,
      SIZE_MAX));
  if (!pestle_str_starts_with(rest, PESTLE_STR("}")))
    pestle_strbuf_append_c(&out, ", ");
  pestle_strbuf_append(&out, rest);
  const char* kept =
      out.failed ? NULL : pestle_arena_strndup(arena, pestle_strbuf_view(&out));
  pestle_strbuf_deinit(&out);
  return kept;
}

// The attributes of |node|, the dictionary among them with the orders of |t|.
static pestle_status_t tell_orders(pestle_generic_t* g,
                                   const pestle_node_t* node, turned_t* t) {
  size_t size = node->attr_count * sizeof(*t->attrs);
  t->attrs =
      pestle_arena_copy(g->arena, node->attrs, size, _Alignof(pestle_attr_t));
  if (node->attr_count && !t->attrs) return PESTLE_OOM();
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    pestle_attr_t* attr = &t->attrs[i];
    if (attr->name != PESTLE_ATTR_backend_dictionary || !*attr->as.str)
      continue;
    attr->as.str = add_orders(g->arena, t, attr->as.str);
    if (!attr->as.str) return PESTLE_OOM();
  }
  return NULL;
}

// The call on what lies in |t|'s orders; |t->values| become its results as they
// were to be.
static pestle_status_t call_turned(const pestle_node_t* node,
                                   pestle_builder_t* b, turned_t* t) {
  const order_t* orders = t->orders + t->operand_count;
  for (size_t i = 0; i < t->operand_count; ++i) {
    t->values[i] = pestle_node_operand(node, i);
    PESTLE_TRY(turn(b, &t->orders[i], false, &t->values[i]));
  }
  for (size_t i = 0; i < t->result_count; ++i)
    t->results[i] = lying(node->results[i].type, &orders[i]);
  pestle_node_spec_t spec = {.op = PESTLE_OP_CUSTOM_CALL,
                             .operands = t->values,
                             .operand_count = t->operand_count,
                             .attrs = t->attrs,
                             .attr_count = node->attr_count,
                             .type = t->result_count ? t->results : NULL,
                             .types = t->results,
                             .type_count = t->result_count};
  pestle_node_t* call;
  PESTLE_TRY(pestle_node_create(b, &spec, &call));
  for (size_t i = 0; i < t->result_count; ++i) {
    t->values[i] = &call->results[i];
    PESTLE_TRY(turn(b, &orders[i], true, &t->values[i]));
  }
  return NULL;
}

pestle_status_t pestle_generic_layouts(pestle_generic_t* g,
                                       pestle_node_t** node) {
  turned_t t;
  bool any = false;
  g->at = NULL;
  if (!g->operand_layouts && !g->result_layouts) return NULL;
  PESTLE_TRY(allocate(g, *node, &t));
  PESTLE_TRY(pestle_generic_read_lying(g, g->operand_layouts, t.types,
                                       t.operand_count, t.orders, &any));
  PESTLE_TRY(pestle_generic_read_lying(
      g, g->result_layouts, t.types + t.operand_count, t.result_count,
      t.orders + t.operand_count, &any));
  if (!any) return NULL;
  PESTLE_TRY(tell_orders(g, *node, &t));
  pestle_builder_t b = pestle_builder_before(*node);
  PESTLE_TRY(call_turned(*node, &b, &t));
  pestle_node_t* end = t.result_count ? t.values[0]->node : NULL;
  if (t.result_count > 1) {
    // All results are those of one node.
    pestle_value_t** all =
        PESTLE_ARENA_ARRAY(g->arena, pestle_value_t*, t.result_count);
    if (!all) return PESTLE_OOM();
    PESTLE_TRY(pestle_op_optimization_barrier(&b, t.values, t.result_count,
                                              NULL, all, t.result_count));
    end = all[0]->node;
  }
  if (!end) end = (*node)->prev;
  pestle_node_erase(*node);
  *node = end;
  return NULL;
}
