// SPDX-License-Identifier: Apache-2.0
// What type rules are written with: see infer.h.
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "ir/infer.h"

// --- Reading ---

const pestle_attr_t* pestle_in_attr(const pestle_infer_t* in,
                                    pestle_attr_name_t name) {
  static const pestle_attr_t none = {.kind = PESTLE_ATTR_KIND_I64};
  for (size_t i = 0; i < in->attr_count; ++i) {
    if (in->attrs[i].name == (unsigned)name) return &in->attrs[i];
  }
  return &none;
}

int64_t pestle_in_i64(const pestle_infer_t* in, pestle_attr_name_t name) {
  return pestle_in_attr(in, name)->as.i64;
}

pestle_i64s_t pestle_in_i64s(const pestle_infer_t* in,
                             pestle_attr_name_t name) {
  return pestle_in_attr(in, name)->as.i64s;
}

pestle_status_t pestle_in_stated(const pestle_infer_t* in,
                                 const pestle_type_t** out_type) {
  *out_type = in->spec->type;
  if (!*out_type) return PESTLE_BAD("the result type must be stated");
  return pestle_type_check(*out_type);
}

pestle_status_t pestle_emit(pestle_infer_t* in, const pestle_type_t* type) {
  pestle_status_t status = pestle_type_check(type);
  if (status) {
    return pestle_status_annotate(status, "in result %zu, %s", in->count,
                                  pestle_type_text(type).text);
  }
  if (in->count < in->capacity) in->out[in->count] = *type;
  ++in->count;
  return NULL;
}

// What snprintf() would have written past the end is cut off.
static size_t advance(size_t at, size_t limit, int written) {
  size_t next = at + (written > 0 ? (size_t)written : 0);
  return next < limit ? next : limit;
}

pestle_type_text_t pestle_type_text(const pestle_type_t* type) {
  pestle_type_text_t out;
  size_t limit = sizeof(out.text) - 1;
  size_t at = advance(0, limit, snprintf(out.text, limit + 1, "tensor<"));
  for (int i = 0; i < type->rank && i < PESTLE_MAX_RANK; ++i) {
    int written = pestle_dim_known(type->dims[i])
                      ? snprintf(out.text + at, limit + 1 - at, "%lldx",
                                 (long long)type->dims[i])
                      : snprintf(out.text + at, limit + 1 - at, "?x");
    at = advance(at, limit, written);
  }
  at = advance(at, limit,
               snprintf(out.text + at, limit + 1 - at, "%s>",
                        pestle_dtype_info(type->dtype)->name));
  if (at == limit) memcpy(out.text + limit - 4, "...>", 4);
  return out;
}

// --- Shapes ---

bool pestle_shapes_agree(const pestle_type_t* a, const pestle_type_t* b) {
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; ++i) {
    if (!pestle_dims_agree(a->dims[i], b->dims[i])) return false;
  }
  return true;
}

void pestle_merge_shape(pestle_type_t* type, const pestle_type_t* other) {
  for (int i = 0; i < type->rank; ++i) {
    if (!pestle_dim_known(type->dims[i])) type->dims[i] = other->dims[i];
  }
}

// --- Checks ---

pestle_status_t pestle_need_kind(const pestle_infer_t* in, size_t operand,
                                 unsigned kinds) {
  static const struct {
    unsigned kind;
    const char* text;
  } names[] = {
      {PESTLE_KIND_BOOL, "i1"},           {PESTLE_KIND_SIGNED, "signed"},
      {PESTLE_KIND_UNSIGNED, "unsigned"}, {PESTLE_KIND_FLOAT, "float"},
      {PESTLE_KIND_COMPLEX, "complex"},
  };
  const pestle_type_t* type = pestle_in_type(in, operand);
  if (pestle_dtype_is(type->dtype, kinds)) return NULL;
  // StableHLO has arithmetic on complex numbers, Pestle moves and reduces them.
  if (pestle_dtype_is(type->dtype, PESTLE_KIND_COMPLEX) &&
      (kinds & PESTLE_KIND_FLOAT)) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "operand %zu is %s: the op is not supported on %s",
                        operand, pestle_type_text(type).text,
                        pestle_dtype_info(type->dtype)->name);
  }
  char text[64] = "";
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    if (!(kinds & names[i].kind)) continue;
    if (*text) strcat(text, ", ");
    strcat(text, names[i].text);
  }
  return PESTLE_BAD("operand %zu is %s: its element type must be of kind %s",
                    operand, pestle_type_text(type).text, text);
}

pestle_status_t pestle_need_same_dtype(const pestle_infer_t* in, size_t a,
                                       size_t b) {
  const pestle_type_t* type_a = pestle_in_type(in, a);
  const pestle_type_t* type_b = pestle_in_type(in, b);
  if (type_a->dtype == type_b->dtype) return NULL;
  return PESTLE_BAD(
      "operand %zu is %s, operand %zu is %s: element types must "
      "be equal",
      a, pestle_type_text(type_a).text, b, pestle_type_text(type_b).text);
}

pestle_status_t pestle_need_rank(const pestle_infer_t* in, size_t operand,
                                 int rank) {
  const pestle_type_t* type = pestle_in_type(in, operand);
  if (type->rank == rank) return NULL;
  return PESTLE_BAD("operand %zu is %s: its rank must be %d", operand,
                    pestle_type_text(type).text, rank);
}

pestle_status_t pestle_need_count(const pestle_infer_t* in,
                                  pestle_attr_name_t name, size_t count) {
  size_t have = pestle_in_i64s(in, name).count;
  if (have == count) return NULL;
  return PESTLE_BAD("'%s' has %zu elements, not %zu",
                    pestle_attr_name_text(name), have, count);
}

pestle_status_t pestle_need_axes(const pestle_infer_t* in,
                                 pestle_attr_name_t name, int rank,
                                 bool* seen) {
  bool own[PESTLE_MAX_RANK] = {false};
  if (!seen) seen = own;
  pestle_i64s_t axes = pestle_in_i64s(in, name);
  for (size_t i = 0; i < axes.count; ++i) {
    int64_t axis = axes.data[i];
    if (axis < 0 || axis >= rank) {
      return PESTLE_BAD("'%s' names axis %lld of a tensor of rank %d",
                        pestle_attr_name_text(name), (long long)axis, rank);
    }
    if (seen[axis]) {
      return PESTLE_BAD(
          "'%s' names axis %lld twice, or another attribute "
          "names it too",
          pestle_attr_name_text(name), (long long)axis);
    }
    seen[axis] = true;
  }
  return NULL;
}

pestle_status_t pestle_need_sorted(const pestle_infer_t* in,
                                   pestle_attr_name_t name) {
  pestle_i64s_t array = pestle_in_i64s(in, name);
  for (size_t i = 1; i < array.count; ++i) {
    if (array.data[i - 1] >= array.data[i]) {
      return PESTLE_BAD("'%s' must ascend", pestle_attr_name_text(name));
    }
  }
  return NULL;
}

pestle_status_t pestle_need_between(const pestle_infer_t* in,
                                    pestle_attr_name_t name, int64_t low,
                                    int64_t high) {
  int64_t value = pestle_in_i64(in, name);
  if (value >= low && value < high) return NULL;
  return PESTLE_BAD("'%s' is %lld: it must be at least %lld and below %lld",
                    pestle_attr_name_text(name), (long long)value,
                    (long long)low, (long long)high);
}

pestle_status_t pestle_need_at_least(const pestle_infer_t* in,
                                     pestle_attr_name_t name, int64_t low) {
  pestle_i64s_t array = pestle_in_i64s(in, name);
  for (size_t i = 0; i < array.count; ++i) {
    if (array.data[i] < low) {
      return PESTLE_BAD("'%s' has %lld at %zu: it must be at least %lld",
                        pestle_attr_name_text(name), (long long)array.data[i],
                        i, (long long)low);
    }
  }
  return NULL;
}

// --- Regions ---

pestle_status_t pestle_in_return(const pestle_infer_t* in, size_t region,
                                 const pestle_node_t** out) {
  const pestle_node_t* last = pestle_in_block(in, region)->last;
  *out = last;
  if (last && last->op == PESTLE_OP_RETURN) return NULL;
  return PESTLE_BAD("region %zu does not end with a return", region);
}

pestle_status_t pestle_need_arguments(const pestle_infer_t* in, size_t region,
                                      size_t count) {
  uint32_t have = pestle_in_block(in, region)->argument_count;
  if (have == count) return NULL;
  return PESTLE_BAD("region %zu takes %u arguments, not %zu", region,
                    (unsigned)have, count);
}

pestle_status_t pestle_need_region_type(const char* what, size_t index,
                                        size_t region,
                                        const pestle_type_t* type,
                                        const pestle_type_t* expected) {
  if (pestle_type_equal(type, expected)) return NULL;
  return PESTLE_BAD("%s %zu of region %zu is %s, not %s", what, index, region,
                    pestle_type_text(type).text,
                    pestle_type_text(expected).text);
}

pestle_status_t pestle_need_operand_arguments(const pestle_infer_t* in,
                                              size_t region, size_t first,
                                              size_t count) {
  PESTLE_TRY(pestle_need_arguments(in, region, count));
  const pestle_block_t* block = pestle_in_block(in, region);
  for (size_t i = 0; i < count; ++i) {
    PESTLE_TRY(pestle_need_region_type("argument", i, region,
                                       block->arguments[i]->type,
                                       pestle_in_type(in, first + i)));
  }
  return NULL;
}

pestle_status_t pestle_need_reduce_body(const pestle_infer_t* in,
                                        size_t count) {
  PESTLE_TRY(pestle_need_arguments(in, 0, 2 * count));
  const pestle_block_t* block = pestle_in_block(in, 0);
  const pestle_node_t* node;
  PESTLE_TRY(pestle_in_return(in, 0, &node));
  if (node->operand_count != count) {
    return PESTLE_BAD("region 0 returns %u values for %zu inputs",
                      (unsigned)node->operand_count, count);
  }
  for (size_t i = 0; i < count; ++i) {
    pestle_type_t type =
        pestle_type_make(pestle_in_type(in, i)->dtype, 0, NULL);
    PESTLE_TRY(pestle_need_region_type("argument", i, 0,
                                       block->arguments[i]->type, &type));
    PESTLE_TRY(pestle_need_region_type(
        "argument", count + i, 0, block->arguments[count + i]->type, &type));
    PESTLE_TRY(pestle_need_region_type(
        "result", i, 0, pestle_node_operand(node, i)->type, &type));
  }
  return NULL;
}

// --- Windows ---

// (extent - 1) * dilation + 1, and 0 for an empty extent.
static bool dilate(int64_t extent, int64_t dilation, int64_t* out) {
  if (extent == 0) {
    *out = 0;
    return true;
  }
  return pestle_checked_mul_i64(extent - 1, dilation, out) &&
         pestle_checked_add_i64(*out, 1, out);
}

pestle_status_t pestle_window_places(int64_t dim, const pestle_window_t* window,
                                     int axis, int64_t* out_places) {
  *out_places = PESTLE_DIM_DYNAMIC;
  int64_t padded, reach;
  if (!pestle_dim_known(dim) || !pestle_dim_known(window->size)) return NULL;
  if (!dilate(dim, window->base_dilation, &padded) ||
      !pestle_checked_add_i64(padded, window->low, &padded) ||
      !pestle_checked_add_i64(padded, window->high, &padded) ||
      !dilate(window->size, window->window_dilation, &reach)) {
    return PESTLE_BAD("the padded extent of spatial axis %d passes 2^63", axis);
  }
  bool none = padded <= 0 || reach > padded;
  *out_places = none ? 0 : (padded - reach) / window->stride + 1;
  return NULL;
}
