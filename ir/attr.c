// SPDX-License-Identifier: Apache-2.0
// Attributes of a node: completing what the caller gave to what the row says,
// and reading them.
#include <string.h>

#include "base/mem.h"
#include "ir/internal.h"

bool pestle_i64s_has(pestle_i64s_t list, int64_t value) {
  for (size_t i = 0; i < list.count; ++i) {
    if (list.data[i] == value) return true;
  }
  return false;
}

bool pestle_i64s_equal(pestle_i64s_t a, pestle_i64s_t b) {
  return a.count == b.count &&
         (!a.count || !memcmp(a.data, b.data, a.count * sizeof(a.data[0])));
}

static const char* kind_text(unsigned kind) {
  static const char* const texts[] = {
      [PESTLE_ATTR_KIND_BOOL] = "a bool",
      [PESTLE_ATTR_KIND_I64] = "an integer",
      [PESTLE_ATTR_KIND_F64] = "a float",
      [PESTLE_ATTR_KIND_STR] = "a string",
      [PESTLE_ATTR_KIND_I64S] = "an array of integers",
      [PESTLE_ATTR_KIND_TYPE] = "a type",
      [PESTLE_ATTR_KIND_ELEMENTS] = "constant data",
  };
  return kind < sizeof(texts) / sizeof(texts[0]) ? texts[kind] : "unknown";
}

static const pestle_attr_t* find_attr(const pestle_attr_t* attrs, size_t count,
                                      unsigned name) {
  for (size_t i = 0; i < count; ++i) {
    if (attrs[i].name == name) return &attrs[i];
  }
  return NULL;
}

static bool has_row(const pestle_attr_row_t* rows, size_t count,
                    unsigned name) {
  for (size_t i = 0; i < count; ++i) {
    if (rows[i].name == name) return true;
  }
  return false;
}

// Arrays that stand for "one, or zero, an axis" when they are left out, and the
// array whose length says how many axes there are.
typedef struct fill_t {
  uint16_t op, name, like;
  uint8_t value, per_axis;
} fill_t;

static const fill_t* find_fill(pestle_op_t op, unsigned name) {
#define FILL(op, name, like, value, per_axis) \
  {PESTLE_OP_##op, PESTLE_ATTR_##name, PESTLE_ATTR_##like, value, per_axis}
  static const fill_t fills[] = {
      FILL(REDUCE_WINDOW, window_strides, window_dimensions, 1, 1),
      FILL(REDUCE_WINDOW, base_dilations, window_dimensions, 1, 1),
      FILL(REDUCE_WINDOW, window_dilations, window_dimensions, 1, 1),
      FILL(REDUCE_WINDOW, padding, window_dimensions, 0, 2),
      FILL(SELECT_AND_SCATTER, window_strides, window_dimensions, 1, 1),
      FILL(SELECT_AND_SCATTER, padding, window_dimensions, 0, 2),
      FILL(CONVOLUTION, window_strides, input_spatial_dimensions, 1, 1),
      FILL(CONVOLUTION, padding, input_spatial_dimensions, 0, 2),
      FILL(CONVOLUTION, lhs_dilation, input_spatial_dimensions, 1, 1),
      FILL(CONVOLUTION, rhs_dilation, input_spatial_dimensions, 1, 1),
      FILL(CONVOLUTION, window_reversal, input_spatial_dimensions, 0, 1),
  };
#undef FILL
  for (size_t i = 0; i < sizeof(fills) / sizeof(fills[0]); ++i) {
    if (fills[i].op == op && fills[i].name == name) return &fills[i];
  }
  return NULL;
}

static void fill_default(const pestle_node_spec_t* spec, pestle_attr_t* attr) {
  static const int64_t zeros[2 * PESTLE_MAX_RANK];
  static const int64_t ones[2 * PESTLE_MAX_RANK] = {
      1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
      1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  _Static_assert(PESTLE_MAX_RANK == 16, "ones has a 1 for each");
  const fill_t* fill = find_fill(spec->op, attr->name);
  if (!fill || attr->as.i64s.count) return;
  const pestle_attr_t* like =
      find_attr(spec->attrs, spec->attr_count, fill->like);
  // More axes than a tensor has: the op's rule will refuse that.
  if (!like || like->kind != PESTLE_ATTR_KIND_I64S ||
      like->as.i64s.count > PESTLE_MAX_RANK) {
    return;
  }
  attr->as.i64s.data = fill->value ? ones : zeros;
  attr->as.i64s.count = like->as.i64s.count * fill->per_axis;
}

// Sorts go along the last axis unless they say otherwise.
int64_t pestle_attr_default_i64(pestle_op_t op, unsigned name) {
  bool sorts = op == PESTLE_OP_SORT || op == PESTLE_OP_SORT_FIRST;
  return sorts && name == PESTLE_ATTR_dimension ? -1 : 0;
}

static pestle_status_t complete_one(const pestle_node_spec_t* spec,
                                    const pestle_attr_row_t* row,
                                    pestle_attr_t* out_attr) {
  const char* name = pestle_attr_name_text((pestle_attr_name_t)row->name);
  const pestle_attr_t* given =
      find_attr(spec->attrs, spec->attr_count, row->name);
  memset(out_attr, 0, sizeof(*out_attr));
  out_attr->name = row->name;
  out_attr->kind = row->kind;
  if (given && given->kind != row->kind) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "attribute '%s' is %s, not %s", name,
                        kind_text(given->kind), kind_text(row->kind));
  }
  if (!given && row->required) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "attribute '%s' is missing", name);
  }
  if (given) {
    out_attr->as = given->as;
  } else if (row->kind == PESTLE_ATTR_KIND_I64) {
    out_attr->as.i64 = pestle_attr_default_i64(spec->op, row->name);
  }
  if (row->kind == PESTLE_ATTR_KIND_STR && !out_attr->as.str) {
    out_attr->as.str = "";
  }
  // The first version is meant where none is said: the two are one program.
  if (spec->op == PESTLE_OP_CUSTOM_CALL &&
      row->name == PESTLE_ATTR_api_version && out_attr->as.i64 == 1) {
    out_attr->as.i64 = 0;
  }
  if (row->kind == PESTLE_ATTR_KIND_I64S) fill_default(spec, out_attr);
  return NULL;
}

static pestle_status_t check_given(const pestle_node_spec_t* spec,
                                   const pestle_attr_row_t* rows,
                                   size_t count) {
  for (size_t i = 0; i < spec->attr_count; ++i) {
    unsigned name = spec->attrs[i].name;
    const char* text = pestle_attr_name_text((pestle_attr_name_t)name);
    if (!has_row(rows, count, name)) {
      return PESTLE_ERROR(INVALID_ARGUMENT, "the op has no attribute '%s'",
                          text);
    }
    if (find_attr(spec->attrs, i, name)) {
      return PESTLE_ERROR(INVALID_ARGUMENT, "attribute '%s' is given twice",
                          text);
    }
  }
  return NULL;
}

pestle_status_t pestle_attrs_complete(const pestle_node_spec_t* spec,
                                      pestle_attr_t out_attrs[PESTLE_MAX_ATTRS],
                                      size_t* out_count) {
  size_t count;
  const pestle_attr_row_t* rows = pestle_op_attr_rows(spec->op, &count);
  *out_count = 0;
  PESTLE_TRY(check_given(spec, rows, count));
  for (size_t i = 0; i < count; ++i) {
    pestle_attr_t attr;
    PESTLE_TRY(complete_one(spec, &rows[i], &attr));
    // Insertion into the sorted part: rows are few and almost in order.
    size_t at = i;
    for (; at > 0 && out_attrs[at - 1].name > attr.name; --at) {
      out_attrs[at] = out_attrs[at - 1];
    }
    out_attrs[at] = attr;
  }
  *out_count = count;
  return NULL;
}

static pestle_status_t copy_i64s(pestle_module_t* module,
                                 pestle_i64s_t* array) {
  array->data = pestle_arena_copy(
      &module->arena, array->count ? (const void*)array->data : (const void*)"",
      array->count * sizeof(int64_t), _Alignof(int64_t));
  return array->data ? NULL : PESTLE_OOM();
}

static pestle_status_t copy_elements(pestle_module_t* module, bool share,
                                     const pestle_elements_t** elements) {
  pestle_elements_t* copy = PESTLE_ARENA_NEW(&module->arena, pestle_elements_t);
  if (!copy) return PESTLE_OOM();
  *copy = **elements;
  if (!share && copy->size) {
    copy->data = pestle_arena_copy(&module->arena, copy->data, copy->size,
                                   PESTLE_BUFFER_ALIGNMENT);
    if (!copy->data) return PESTLE_OOM();
  }
  *elements = copy;
  return NULL;
}

static pestle_status_t copy_attr(pestle_module_t* module, bool share,
                                 pestle_attr_t* attr) {
  switch ((pestle_attr_kind_t)attr->kind) {
    case PESTLE_ATTR_KIND_BOOL:
    case PESTLE_ATTR_KIND_I64:
    case PESTLE_ATTR_KIND_F64:
      return NULL;
    case PESTLE_ATTR_KIND_STR:
      return pestle_module_intern_opt(module, attr->as.str, &attr->as.str);
    case PESTLE_ATTR_KIND_I64S:
      return copy_i64s(module, &attr->as.i64s);
    case PESTLE_ATTR_KIND_TYPE:
      attr->as.type = pestle_module_intern_type(module, attr->as.type);
      return attr->as.type ? NULL : PESTLE_OOM();
    case PESTLE_ATTR_KIND_ELEMENTS:
      return copy_elements(module, share, &attr->as.elements);
  }
  return NULL;
}

pestle_status_t pestle_attrs_copy(pestle_module_t* module, bool share_elements,
                                  const pestle_attr_t* attrs, size_t count,
                                  pestle_attr_t** out_attrs) {
  pestle_attr_t* copies =
      PESTLE_ARENA_ARRAY(&module->arena, pestle_attr_t, count);
  if (!copies) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    copies[i] = attrs[i];
    PESTLE_TRY(copy_attr(module, share_elements, &copies[i]));
  }
  *out_attrs = copies;
  return NULL;
}

const pestle_attr_t* pestle_node_attr(const pestle_node_t* node,
                                      pestle_attr_name_t name) {
  static const pestle_elements_t no_elements = {.data = ""};
  // What a reader that asks for an attribute the op has not gets: a union has
  // room for one kind, so there is one for pointers and one for the rest.
  static const pestle_attr_t none = {.kind = PESTLE_ATTR_KIND_I64};
  static const pestle_attr_t none_str = {.kind = PESTLE_ATTR_KIND_STR,
                                         .as.str = ""};
  static const pestle_attr_t none_elements = {.kind = PESTLE_ATTR_KIND_ELEMENTS,
                                              .as.elements = &no_elements};
  const pestle_attr_t* attr = find_attr(node->attrs, node->attr_count, name);
  if (attr) return attr;
  if (name == PESTLE_ATTR_value) return &none_elements;
  if (name == PESTLE_ATTR_callee || name == PESTLE_ATTR_label) {
    return &none_str;
  }
  return &none;
}
