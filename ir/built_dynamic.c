// SPDX-License-Identifier: Apache-2.0
// Ops whose results have the extents that operands say. Those are constants by the
// time the op can be made, or the result's type is written with all its extents; then
// each is the op of the same name without that. Where neither holds |b->shapes| is
// told what is missing, and whoever reads the module may read it again when it is
// there.
//
//   %s = constant dense<[2, 4]>
//   dynamic_reshape %x, %s   ->   reshape %x : tensor<2x4xf32>
#include <string.h>

#include "base/mem.h"
#include "ir/built.h"
#include "ir/fold.h"
#include "ir/infer.h"

typedef pestle_value_t pv_t;

#define FAIL(b, CODE, ...) \
  pestle_built_fail(b, PESTLE_STATUS_##CODE, __VA_ARGS__)

// --- What is known ---

static void want(pestle_built_t* b, size_t index, const char* what) {
  if (b->f.status) return;
  if (b->shapes) b->shapes->wanted = b->operands[index];
  FAIL(b, UNSUPPORTED,
       "%s of operand %zu decide the result's extents and are not known", what,
       index);
}

// The integers of a constant; false for what is none.
static bool is_known(pestle_built_t* b, const pestle_value_t* value,
                     pestle_i64s_t* out) {
  bool known = false;
  if (!b->f.status)
    b->f.status = pestle_constant_i64s(b->arena, value, out, &known);
  return known;
}

static bool has_type(pestle_built_t* b, size_t index) {
  if (pestle_type_is_static(pestle_built_type(b, index))) return true;
  want(b, index, "the extents");
  return false;
}

bool pestle_built_integers(pestle_built_t* b, size_t index,
                           pestle_i64s_t* out) {
  if (!is_known(b, b->operands[index], out)) {
    want(b, index, "the elements");
  }
  return !b->f.status;
}

// The same of a matrix, row by row.
static bool flat_numbers(pestle_built_t* b, size_t index, pestle_i64s_t* out) {
  const pestle_elements_t* e = pestle_value_constant(b->operands[index]);
  if (!e) {
    want(b, index, "the elements");
    return false;
  }
  pestle_generic_value_t value = {.kind = PESTLE_GENERIC_ELEMENTS,
                                  .elements = *e};
  pestle_generic_t g = {.arena = b->arena};
  if (!b->f.status) b->f.status = pestle_generic_i64s(&g, &value, out);
  return !b->f.status;
}

// Gives |type| the extents that operand |index| has, where it lacks any.
static bool fill_extents(pestle_built_t* b, size_t index, pestle_type_t* type) {
  pestle_i64s_t dims;
  if (pestle_type_is_static(type)) return true;
  if (!pestle_built_integers(b, index, &dims)) return false;
  if (dims.count != (size_t)type->rank) {
    FAIL(b, MALFORMED, "operand %zu has %zu extents for a result of rank %d",
         index, dims.count, (int)type->rank);
    return false;
  }
  for (size_t i = 0; i < dims.count; ++i) {
    bool fits = dims.data[i] >= 0 && (type->dims[i] == PESTLE_DIM_DYNAMIC ||
                                      type->dims[i] == dims.data[i]);
    if (!fits) {
      FAIL(b, MALFORMED, "extent %zu is %lld, which the result's type has not",
           i, (long long)dims.data[i]);
      return false;
    }
    type->dims[i] = dims.data[i];
  }
  if (!b->f.status) b->f.status = pestle_type_check(type);
  return !b->f.status;
}

// The result's type: as it is written, or with the extents that operand |index|
// has, which may be 1 for what is repeated.
static bool shape(pestle_built_t* b, size_t index, pestle_dtype_t dtype,
                  pestle_type_t* out) {
  *out = b->types[0];
  out->dtype = dtype;
  return fill_extents(b, index, out);
}

// --- Results' extents as operands of a custom call ---

// A call whose results have symbols for extents is given these behind its operands,
// a list for each result:
//
//   custom_call @lapack_spotrf_ffi(%a, %shape0, %shape1)
//       {indices_of_shape_operands = dense<[1, 2]>} : .. -> (?x3x3, ?)
//
// It becomes the call of the other operands, with those types.
void pestle_built_take_shapes(pestle_built_t* b) {
  pestle_i64s_t places;
  if (!pestle_built_i64s(b, "indices_of_shape_operands", false, &places) ||
      !places.count) {
    return;
  }
  size_t n = b->operand_count, kept = 0;
  pestle_type_t* types =
      PESTLE_ARENA_ARRAY(b->arena, pestle_type_t, b->type_count + 1);
  pestle_value_t** operands =
      PESTLE_ARENA_ARRAY(b->arena, pestle_value_t*, n + 1);
  bool* taken = PESTLE_ARENA_ARRAY(b->arena, bool, n + 1);
  if (!types || !operands || !taken) {
    b->f.status = PESTLE_OOM();
    return;
  }
  for (size_t i = 0; i < places.count; ++i) {
    bool fits = places.count == b->type_count && places.data[i] >= 0 &&
                (uint64_t)places.data[i] < n && !taken[places.data[i]];
    if (!fits) {
      FAIL(b, MALFORMED,
           "'indices_of_shape_operands' does not name an operand of its own "
           "for each of %zu results",
           b->type_count);
      return;
    }
    taken[places.data[i]] = true;
    types[i] = b->types[i];
    if (!fill_extents(b, (size_t)places.data[i], &types[i])) return;
  }
  for (size_t i = 0; i < n; ++i) {
    if (!taken[i]) operands[kept++] = b->operands[i];
  }
  b->operands = operands;
  b->operand_count = kept;
  b->types = types;
}

// --- Extents as numbers ---

void pestle_built_get_dimension_size(pestle_built_t* b) {
  int64_t axis = -1;
  const pestle_type_t* x = pestle_built_type(b, 0);
  if (!pestle_built_i64(b, "dimension", true, &axis)) return;
  if (axis < 0 || axis >= x->rank) {
    FAIL(b, MALFORMED, "'dimension' is %lld for a tensor of rank %d",
         (long long)axis, (int)x->rank);
    return;
  }
  if (x->dims[axis] == PESTLE_DIM_DYNAMIC) {
    want(b, 0, "the extents");
    return;
  }
  if (x->dims[axis] > INT32_MAX) {
    FAIL(b, UNSUPPORTED, "extent %lld passes an i32", (long long)x->dims[axis]);
    return;
  }
  b->results[0] = pestle_f_scalar(&b->f, PESTLE_I32, (double)x->dims[axis]);
}

// What has fewer elements from now on is the first of them.
void pestle_built_set_dimension_size(pestle_built_t* b) {
  int64_t axis = -1;
  pestle_i64s_t size;
  if (!pestle_built_i64(b, "dimension", true, &axis) || !has_type(b, 0) ||
      !pestle_built_integers(b, 1, &size)) {
    return;
  }
  const pestle_type_t* x = pestle_built_type(b, 0);
  bool fits = axis >= 0 && axis < x->rank && size.count == 1 &&
              size.data[0] >= 0 && size.data[0] <= x->dims[axis];
  if (!fits) {
    FAIL(b, MALFORMED, "axis %lld of %s cannot have that size", (long long)axis,
         pestle_type_text(x).text);
    return;
  }
  b->results[0] = pestle_f_slice_axis(&b->f, b->operands[0], (int32_t)axis, 0,
                                      size.data[0]);
}

// --- Moving ---

void pestle_built_dynamic_broadcast(pestle_built_t* b) {
  pestle_type_t type;
  pestle_i64s_t axes;
  const pestle_type_t* x = pestle_built_type(b, 0);
  if (!has_type(b, 0) || !shape(b, 1, x->dtype, &type) ||
      !pestle_built_i64s(b, "broadcast_dimensions", true, &axes)) {
    return;
  }
  pestle_attr_t attr =
      PESTLE_SET_I64S(broadcast_dimensions, axes.data, axes.count);
  b->results[0] = pestle_f_make(&b->f, PESTLE_OP_BROADCAST_IN_DIM, b->operands,
                                1, &attr, 1, &type);
}

void pestle_built_dynamic_iota(pestle_built_t* b) {
  pestle_type_t type;
  int64_t axis = -1;
  if (!pestle_built_i64(b, "iota_dimension", true, &axis) ||
      !shape(b, 0, b->types[0].dtype, &type)) {
    return;
  }
  pestle_attr_t attr = PESTLE_SET_I64(iota_dimension, axis);
  b->results[0] =
      pestle_f_make(&b->f, PESTLE_OP_IOTA, NULL, 0, &attr, 1, &type);
}

void pestle_built_dynamic_reshape(pestle_built_t* b) {
  pestle_type_t type;
  if (!has_type(b, 0) || !shape(b, 1, pestle_built_type(b, 0)->dtype, &type)) {
    return;
  }
  b->results[0] =
      pestle_f_make(&b->f, PESTLE_OP_RESHAPE, b->operands, 1, NULL, 0, &type);
}

void pestle_built_dynamic_pad(pestle_built_t* b) {
  pestle_i64s_t list[3];
  if (!has_type(b, 0)) return;
  for (size_t i = 0; i < 3; ++i) {
    if (!pestle_built_integers(b, 2 + i, &list[i])) return;
  }
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(edge_padding_low, list[0].data, list[0].count),
      PESTLE_SET_I64S(edge_padding_high, list[1].data, list[1].count),
      PESTLE_SET_I64S(interior_padding, list[2].data, list[2].count)};
  b->results[0] =
      pestle_f_make(&b->f, PESTLE_OP_PAD, b->operands, 2, attrs, 3, NULL);
}

// Where a slice starts by numbers that only a run tells, its size being known.
static void slice_from(pestle_built_t* b, const int64_t* sizes) {
  pv_t* operands[1 + PESTLE_MAX_RANK] = {b->operands[0]};
  size_t rank = (size_t)b->operands[0]->type->rank;
  for (size_t i = 0; i < rank; ++i)
    operands[1 + i] = pestle_f_part(&b->f, b->operands[1], 0, (int64_t)i);
  pestle_attr_t attr = PESTLE_SET_I64S(slice_sizes, sizes, rank);
  b->results[0] = pestle_f_make(&b->f, PESTLE_OP_DYNAMIC_SLICE, operands,
                                1 + rank, &attr, 1, NULL);
}

// Whether each size of a slice without steps is known though its start is not: by
// the type that is written, or by a limit that is the start and a constant.
static bool slice_sizes(pestle_built_t* b, int64_t* out) {
  pestle_i64s_t step, size = {NULL, 0};
  const pestle_type_t* x = pestle_built_type(b, 0);
  const pestle_type_t* type = &b->types[0];
  const pestle_type_t* from = pestle_built_type(b, 1);
  if (type->rank != x->rank || from->rank != 1 || from->dims[0] != x->rank ||
      !is_known(b, b->operands[3], &step)) {
    return false;
  }
  const pestle_node_t* limit = b->operands[2]->node;
  for (uint32_t i = 0; limit && limit->op == PESTLE_OP_ADD && i < 2; ++i) {
    if (pestle_node_operand(limit, i) != b->operands[1]) continue;
    if (is_known(b, pestle_node_operand(limit, 1 - i), &size)) break;
  }
  for (int32_t i = 0; i < type->rank; ++i) {
    if ((size_t)i >= step.count || step.data[i] != 1) return false;
    out[i] = type->dims[i];
    if (out[i] == PESTLE_DIM_DYNAMIC && size.count == (size_t)type->rank) {
      out[i] = size.data[i];
    }
    if (out[i] < 0) return false;
  }
  return true;
}

void pestle_built_real_dynamic_slice(pestle_built_t* b) {
  pestle_i64s_t from, to, step;
  int64_t sizes[PESTLE_MAX_RANK];
  if (!has_type(b, 0)) return;
  if (!is_known(b, b->operands[1], &from) && slice_sizes(b, sizes)) {
    slice_from(b, sizes);
    return;
  }
  if (!pestle_built_integers(b, 1, &from) ||
      !pestle_built_integers(b, 2, &to) ||
      !pestle_built_integers(b, 3, &step)) {
    return;
  }
  pestle_attr_t attrs[] = {
      PESTLE_SET_I64S(start_indices, from.data, from.count),
      PESTLE_SET_I64S(limit_indices, to.data, to.count),
      PESTLE_SET_I64S(strides, step.data, step.count)};
  b->results[0] =
      pestle_f_make(&b->f, PESTLE_OP_SLICE, b->operands, 1, attrs, 3, NULL);
}

// --- The rows' own attributes, as they are written ---

// |op| on |count| operands with the attributes of |b| and |more| of them.
static void with_attrs(pestle_built_t* b, pestle_op_t op, size_t count,
                       const pestle_attr_t* more, const pestle_type_t* type) {
  pestle_generic_t g;
  pestle_generic_begin(b->arena, op, &g);
  pestle_generic_value_t dict = {.kind = PESTLE_GENERIC_DICT,
                                 .entries = (pestle_generic_entry_t*)b->attrs};
  if (b->f.status) return;
  b->f.status = pestle_generic_apply(&g, &dict);
  if (!b->f.status) b->f.status = pestle_generic_push(&g, more);
  if (b->f.status) return;
  b->results[0] =
      pestle_f_make(&b->f, op, b->operands, count, g.attrs, g.attr_count, type);
}

void pestle_built_dynamic_gather(pestle_built_t* b) {
  pestle_i64s_t sizes;
  if (!has_type(b, 0) || !has_type(b, 1) ||
      !pestle_built_integers(b, 2, &sizes))
    return;
  pestle_attr_t attr = PESTLE_SET_I64S(slice_sizes, sizes.data, sizes.count);
  with_attrs(b, PESTLE_OP_GATHER, 2, &attr, NULL);
}

void pestle_built_dynamic_conv(pestle_built_t* b) {
  if (!has_type(b, 0) || !has_type(b, 1)) return;
  pestle_attr_t attr = PESTLE_SET_I64S(padding, NULL, 0);
  if (!flat_numbers(b, 2, &attr.as.i64s)) return;
  with_attrs(b, PESTLE_OP_CONVOLUTION, 2, &attr, &b->types[0]);
}

// --- Functions of custom calls ---

// n inputs, n initial values, then what the windows are; what folds them is in
// called_computations.
void pestle_built_dynamic_reduce_window(pestle_built_t* b) {
  static const uint16_t names[] = {
      PESTLE_ATTR_window_dimensions, PESTLE_ATTR_window_strides,
      PESTLE_ATTR_base_dilations, PESTLE_ATTR_window_dilations,
      PESTLE_ATTR_padding};
  pestle_attr_t attrs[5];
  size_t count = b->operand_count > 5 ? (b->operand_count - 5) / 2 : 0;
  if (!count || 2 * count + 5 != b->operand_count || count != b->type_count) {
    FAIL(b, MALFORMED,
         "it takes inputs, as many initial values and five lists");
    return;
  }
  for (size_t i = 0; i < 5; ++i) {
    attrs[i] = (pestle_attr_t){.name = names[i], .kind = PESTLE_ATTR_KIND_I64S};
    if (!flat_numbers(b, 2 * count + i, &attrs[i].as.i64s)) return;
  }
  pestle_type_t* types = PESTLE_ARENA_ARRAY(b->arena, pestle_type_t, 2 * count);
  if (!types) b->f.status = PESTLE_OOM();
  for (size_t i = 0; types && i < 2 * count; ++i)
    types[i] = pestle_type_make(b->operands[i % count]->type->dtype, 0, NULL);
  if (!types) return;
  pestle_region_t* region =
      pestle_built_region(b, types, 2 * count, 2 * count, count);
  if (!region) return;
  pestle_node_t* node =
      pestle_f_node(&b->f, &(pestle_node_spec_t){.op = PESTLE_OP_REDUCE_WINDOW,
                                                 .operands = b->operands,
                                                 .operand_count = 2 * count,
                                                 .attrs = attrs,
                                                 .attr_count = 5,
                                                 .regions = &region,
                                                 .region_count = 1});
  if (!node) pestle_region_discard(region);
  for (size_t i = 0; node && i < count; ++i)
    b->results[i] = pestle_node_result(node, i);
}

// A key and the shape of its bits.
void pestle_built_dynamic_rng(pestle_built_t* b) {
  const pestle_generic_value_t* how = pestle_built_attr(b, "rng_algorithm");
  pestle_i64s_t dims;
  if (!pestle_built_integers(b, 1, &dims)) return;
  pestle_type_t type = b->types[1];
  bool fits = how && dims.count == (size_t)type.rank;
  for (size_t i = 0; fits && i < dims.count; ++i)
    type.dims[i] = dims.data[i];
  if (!fits) {
    FAIL(b, MALFORMED, "it takes a state and the extents of its bits");
    return;
  }
  char* word = pestle_arena_strndup(b->arena, how->text);
  if (!word) b->f.status = PESTLE_OOM();
  pestle_attr_t attrs[] = {PESTLE_SET_STR(rng_algorithm, word),
                           {.name = PESTLE_ATTR_output_type,
                            .kind = PESTLE_ATTR_KIND_TYPE,
                            .as.type = &type}};
  pestle_node_t* node = pestle_f_node(
      &b->f, &(pestle_node_spec_t){.op = PESTLE_OP_RNG_BIT_GENERATOR,
                                   .operands = b->operands,
                                   .operand_count = 1,
                                   .attrs = attrs,
                                   .attr_count = 2});
  for (size_t i = 0; node && i < 2; ++i)
    b->results[i] = pestle_node_result(node, i);
}

// --- Conditions on shapes ---

// "The extent must be even, it is {0}".
static void complain(pestle_built_t* b) {
  const pestle_generic_value_t* text = pestle_built_attr(b, "error_message");
  pestle_str_t rest = text && text->kind == PESTLE_GENERIC_STRING
                          ? text->text
                          : PESTLE_STR("a condition on shapes does not hold");
  pestle_strbuf_t out;
  pestle_strbuf_init(b->f.builder.module->arena.allocator, &out);
  for (size_t i = 0; i < rest.size; ++i) {
    const char* c = rest.data + i;
    pestle_i64s_t number;
    bool place = i + 2 < rest.size && c[0] == '{' && c[1] >= '0' &&
                 c[1] <= '9' && c[2] == '}';
    size_t at = place ? 1 + (size_t)(c[1] - '0') : 0;
    if (place && at < b->operand_count &&
        is_known(b, b->operands[at], &number) && number.count == 1) {
      pestle_strbuf_appendf(&out, "%lld", (long long)number.data[0]);
      i += 2;
    } else {
      pestle_strbuf_append_bytes(&out, c, 1);
    }
  }
  FAIL(b, INVALID_ARGUMENT, "%s", pestle_strbuf_cstr(&out));
  pestle_strbuf_deinit(&out);
}

void pestle_built_shape_assertion(pestle_built_t* b) {
  pestle_i64s_t holds;
  if (!b->operand_count || b->type_count) {
    FAIL(b, MALFORMED, "it takes a condition and gives nothing");
    return;
  }
  if (!pestle_built_integers(b, 0, &holds)) return;
  if (holds.count != 1 || !holds.data[0]) complain(b);
}
