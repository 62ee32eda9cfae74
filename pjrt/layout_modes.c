// SPDX-License-Identifier: Apache-2.0
// What programs ask for: mhlo.layout_mode of arguments and results.
//
//   main(%x: tensor<2x3xf32> {mhlo.layout_mode = "{0,1}"})
//
//   main(%x: tensor<3x2xf32>) = main'(transpose %x)     // as it lies
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "pjrt/layouts.h"
#include "pjrt/slots.h"

typedef struct side_t {
  const char* what;
  size_t index;
} side_t;

static PJRT_Error* refuse(const side_t* side, PJRT_Error_Code code,
                          pestle_str_t mode, const char* why) {
  return pestle_pjrt_error(code,
                           "%s %zu is wanted in layout %.*s, %s: leave the "
                           "layout to Pestle (Layout.AUTO), or name the axes "
                           "from the fastest to the slowest",
                           side->what, side->index, PESTLE_STR_ARG(mode), why);
}

// The order of |rank| axes that |mode|, an attribute's text or NULL, asks for.
static PJRT_Error* read_mode(const side_t* side, const char* mode, size_t rank,
                             uint8_t* out_order) {
  pestle_str_t text = pestle_str(mode), field, all;
  uint32_t seen = 0;
  size_t count = 0;
  if (text.size >= 2 && text.data[0] == '"')
    text = pestle_str_make(text.data + 1, text.size - 2);
  for (size_t i = 0; i < rank; ++i)
    out_order[i] = (uint8_t)i;
  if (!text.size || pestle_str_equal_c(text, "default") ||
      pestle_str_equal_c(text, "auto")) {
    return NULL;
  }
  all = text;
  if (pestle_str_find_char(text, ':') != SIZE_MAX) {
    return refuse(side, PJRT_Error_Code_UNIMPLEMENTED, all,
                  "which has tiles or more");
  }
  bool is_fine =
      text.size >= 2 && text.data[0] == '{' && text.data[text.size - 1] == '}';
  text = pestle_str_slice(text, 1, text.size - 1);
  while (is_fine && pestle_str_next(&text, ',', &field)) {
    int64_t axis;
    is_fine = count < rank &&
              pestle_str_parse_i64(pestle_str_trim(field), &axis) &&
              axis >= 0 && axis < (int64_t)rank && !(seen >> axis & 1);
    if (!is_fine) break;
    seen |= UINT32_C(1) << axis;
    out_order[rank - 1 - count++] = (uint8_t)axis;
  }
  if (is_fine && count == rank) return NULL;
  return refuse(side, PJRT_Error_Code_INVALID_ARGUMENT, all,
                "which is no order of its axes");
}

static size_t count_results(const pestle_function_t* entry) {
  size_t count = 0;
  while (pestle_function_returned_type(entry, count).dtype != PESTLE_NONE)
    ++count;
  return count;
}

static bool is_ordered(const uint8_t* order, size_t rank) {
  bool is_so = true;
  for (size_t i = 0; i < rank; ++i)
    is_so &= order[i] == i;
  return !is_so;
}

static pestle_type_t type_of(pestle_function_t* entry, size_t inputs,
                             size_t i) {
  return i < inputs ? pestle_value_type(pestle_function_argument(entry, i))
                    : pestle_function_returned_type(entry, i - inputs);
}

PJRT_Error* pestle_pjrt_layouts_read(pestle_module_t* module,
                                     pestle_arena_t* arena,
                                     pestle_pjrt_program_info_t* info) {
  static const char key[] = "mhlo.layout_mode";
  pestle_function_t* entry = pestle_module_entry(module);
  size_t inputs = pestle_function_argument_count(entry);
  size_t all = inputs + count_results(entry);
  uint8_t* orders = PESTLE_ARENA_ARRAY(arena, uint8_t, all* PESTLE_MAX_RANK);
  bool any = false;
  info->orders = NULL;
  info->order_count = 0;
  if (all && !orders) return pestle_pjrt_out_of_memory();
  for (size_t i = 0; i < all; ++i) {
    bool is_input = i < inputs;
    side_t side = {is_input ? "argument" : "result", is_input ? i : i - inputs};
    const char* mode =
        is_input ? pestle_function_argument_attribute(entry, side.index, key)
                 : pestle_function_result_attribute(entry, side.index, key);
    uint8_t* order = orders + i * PESTLE_MAX_RANK;
    size_t rank = (size_t)type_of(entry, inputs, i).rank;
    PJRT_TRY(read_mode(&side, mode, rank, order));
    any |= is_ordered(order, rank);
  }
  if (!any) return NULL;
  info->orders = orders;
  info->order_count = all;
  return NULL;
}

// --- The wrapping ---

// A module that transposes one tensor: from how it lies to |type|, or |back|.
static pestle_status_t make_transpose(pestle_context_t* context,
                                      const pestle_type_t* type,
                                      const uint8_t* order, bool back,
                                      pestle_module_t** out_module) {
  int64_t axes[PESTLE_MAX_RANK];
  pestle_type_t lying = *type;
  for (int32_t i = 0; i < type->rank; ++i) {
    lying.dims[i] = type->dims[order[i]];
    if (back)
      axes[i] = order[i];
    else
      axes[order[i]] = i;
  }
  pestle_function_t* function;
  PESTLE_TRY(pestle_module_create(context, NULL, out_module));
  PESTLE_TRY(pestle_module_add_function(
      *out_module, "main", back ? type : &lying, NULL, 1, &function));
  pestle_builder_t b = pestle_builder_make(function);
  pestle_value_t* value = pestle_function_argument(function, 0);
  pestle_transpose_attrs_t attrs = {sizeof(attrs), {axes, (size_t)type->rank}};
  PESTLE_TRY(pestle_op_transpose(&b, value, &attrs, &value));
  return pestle_op_return(&b, &value, 1, NULL);
}

typedef struct wrapping_t {
  size_t inputs, outputs, count;
  pestle_link_part_t* parts;
  pestle_link_source_t* sources;    // one a part that transposes
  pestle_link_source_t* arguments;  // of the module itself
  pestle_link_source_t* results;
} wrapping_t;

static bool allocate(pestle_arena_t* arena, wrapping_t* w) {
  size_t all = w->inputs + w->outputs + 1;
  w->parts = PESTLE_ARENA_ARRAY(arena, pestle_link_part_t, all);
  w->sources = PESTLE_ARENA_ARRAY(arena, pestle_link_source_t, all);
  w->arguments = PESTLE_ARENA_ARRAY(arena, pestle_link_source_t, all);
  w->results = PESTLE_ARENA_ARRAY(arena, pestle_link_source_t, all);
  return w->parts && w->sources && w->arguments && w->results;
}

static pestle_status_t add_transpose(pestle_context_t* context,
                                     pestle_function_t* entry, size_t i,
                                     const uint8_t* order, wrapping_t* w,
                                     pestle_link_source_t from,
                                     pestle_link_source_t* out_source) {
  pestle_type_t type = type_of(entry, w->inputs, i);
  *out_source = from;
  if (!is_ordered(order, (size_t)type.rank)) return NULL;
  pestle_link_part_t* part = &w->parts[w->count];
  *part = (pestle_link_part_t){NULL, &w->sources[w->count], 1};
  w->sources[w->count] = from;
  *out_source = (pestle_link_source_t){(int32_t)w->count, 0};
  pestle_status_t status =
      make_transpose(context, &type, order, i >= w->inputs, &part->module);
  ++w->count;  // what there is of it is released with the others
  return status;
}

static pestle_status_t wrap(pestle_context_t* context, const uint8_t* orders,
                            pestle_module_t* module, wrapping_t* w,
                            size_t* out_self, pestle_module_t** out_module) {
  pestle_function_t* entry = pestle_module_entry(module);
  for (size_t i = 0; i < w->inputs; ++i) {
    PESTLE_TRY(
        add_transpose(context, entry, i, orders + i * PESTLE_MAX_RANK, w,
                      (pestle_link_source_t){PESTLE_LINK_ARGUMENT, (uint32_t)i},
                      &w->arguments[i]));
  }
  *out_self = w->count;
  w->parts[w->count++] = (pestle_link_part_t){module, w->arguments, w->inputs};
  for (size_t i = 0; i < w->outputs; ++i) {
    PESTLE_TRY(
        add_transpose(context, entry, w->inputs + i,
                      orders + (w->inputs + i) * PESTLE_MAX_RANK, w,
                      (pestle_link_source_t){(int32_t)*out_self, (uint32_t)i},
                      &w->results[i]));
  }
  return pestle_module_link(w->parts, w->count, w->results, w->outputs,
                            out_module);
}

PJRT_Error* pestle_pjrt_layouts_wrap(pestle_context_t* context,
                                     const pestle_pjrt_program_info_t* info,
                                     pestle_arena_t* arena,
                                     pestle_module_t** module) {
  pestle_function_t* entry = pestle_module_entry(*module);
  size_t inputs = pestle_function_argument_count(entry);
  wrapping_t w = {.inputs = inputs, .outputs = info->order_count - inputs};
  size_t self = SIZE_MAX;
  pestle_module_t* wrapped = NULL;
  if (!info->orders) return NULL;
  if (!allocate(arena, &w)) return pestle_pjrt_out_of_memory();
  pestle_status_t status =
      wrap(context, info->orders, *module, &w, &self, &wrapped);
  for (size_t i = 0; i < w.count; ++i) {
    if (i != self) pestle_module_release(w.parts[i].module);
  }
  if (status) return pestle_pjrt_error_of(status);
  pestle_module_release(*module);
  *module = wrapped;
  return NULL;
}
