// SPDX-License-Identifier: Apache-2.0
// Attributes from how MLIR writes them to how the op's rows have them, and the
// node that they make.
#include "ir/generic.h"
#include "ir/dot_algorithm.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "ir/built.h"
#include "ir/built_own.h"
#include "ir/formula.h"
#include "ir/generic_internal.h"
#include "ir/infer.h"
#include "ir/internal.h"
#include "ir/text.h"

// --- Beginning ---

const pestle_generic_value_t* pestle_generic_find(
    const pestle_generic_value_t* dict, const char* key) {
  for (const pestle_generic_entry_t* e = dict->entries; e; e = e->next) {
    if (pestle_str_equal_c(e->key, key)) return &e->value;
  }
  return NULL;
}

bool pestle_generic_find_op(pestle_str_t name, pestle_op_t* out_op) {
  if (pestle_str_equal_c(name, "func.return")) {
    *out_op = PESTLE_OP_RETURN;
    return true;
  }
  for (unsigned i = 0; i < PESTLE_OP_COUNT; ++i) {
    const pestle_op_info_t* info = pestle_op_info((pestle_op_t)i);
    if (!pestle_str_equal_c(name, info->mlir)) continue;
    *out_op = (pestle_op_t)i;
    return true;
  }
  return false;
}

void pestle_generic_begin(pestle_arena_t* arena, pestle_op_t op,
                          pestle_generic_t* out_g) {
  *out_g = (pestle_generic_t){.op = op, .arena = arena};
}

bool pestle_generic_begin_name(pestle_arena_t* arena, pestle_str_t name,
                               pestle_generic_t* out_g) {
  pestle_op_t op = PESTLE_OP_CUSTOM;
  const pestle_built_row_t* built = pestle_built_find(name);
  if (!built && !pestle_generic_find_op(name, &op)) return false;
  pestle_generic_begin(arena, op, out_g);
  out_g->built = built;
  return true;
}

pestle_status_t pestle_generic_push(pestle_generic_t* g,
                                    const pestle_attr_t* attr) {
  for (size_t i = 0; i < g->attr_count; ++i) {
    if (g->attrs[i].name != attr->name) continue;
    g->at = NULL;
    return PESTLE_ERROR(MALFORMED, "attribute '%s' is given twice",
                        pestle_attr_name_text((pestle_attr_name_t)attr->name));
  }
  if (g->attr_count == g->attr_capacity) {
    size_t capacity = g->attr_capacity ? 2 * g->attr_capacity : 8;
    pestle_attr_t* attrs =
        PESTLE_ARENA_ARRAY(g->arena, pestle_attr_t, capacity);
    if (!attrs) return PESTLE_OOM();
    if (g->attr_count) {
      memcpy(attrs, g->attrs, g->attr_count * sizeof(*attrs));
    }
    g->attrs = attrs;
    g->attr_capacity = capacity;
  }
  g->attrs[g->attr_count++] = *attr;
  return NULL;
}

// --- Values to attributes ---

static pestle_status_t wrong_kind(pestle_generic_t* g,
                                  const pestle_generic_value_t* value,
                                  const char* name, const char* what) {
  g->at = value;
  if (!name) return PESTLE_ERROR(MALFORMED, "expected %s", what);
  return PESTLE_ERROR(MALFORMED, "attribute '%s' must be %s", name, what);
}

static int64_t element_i64(const pestle_elements_t* e, size_t index) {
  size_t size = pestle_dtype_size(e->type.dtype);
  uint64_t bits = 0;
  memcpy(&bits, (const char*)e->data + (e->splat ? 0 : index) * size, size);
  if (!pestle_dtype_is(e->type.dtype, PESTLE_KIND_SIGNED) || size == 8) {
    return (int64_t)bits;
  }
  uint64_t sign = UINT64_C(1) << (8 * size - 1);
  return (int64_t)((bits ^ sign) - sign);
}

// Integer lists in attributes have an entry or two for each axis.
enum { MAX_AXES = 4 * PESTLE_MAX_RANK };

static pestle_status_t from_elements(pestle_generic_t* g,
                                     const pestle_generic_value_t* value,
                                     pestle_i64s_t* out) {
  const pestle_elements_t* e = &value->elements;
  size_t count = (size_t)pestle_type_count(&e->type);
  bool integers =
      pestle_dtype_is(e->type.dtype, PESTLE_KIND_INT | PESTLE_KIND_BOOL);
  if (!integers || count > MAX_AXES) {
    return wrong_kind(g, value, NULL, "a list of an integer for each axis");
  }
  int64_t* data = PESTLE_ARENA_ARRAY(g->arena, int64_t, count);
  if (!data) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    data[i] = element_i64(e, i);
  *out = (pestle_i64s_t){data, count};
  return NULL;
}

pestle_status_t pestle_generic_i64s(pestle_generic_t* g,
                                    const pestle_generic_value_t* value,
                                    pestle_i64s_t* out_values) {
  if (value->kind == PESTLE_GENERIC_ELEMENTS) {
    return from_elements(g, value, out_values);
  }
  if (value->kind != PESTLE_GENERIC_LIST) {
    return wrong_kind(g, value, NULL, "a list of integers");
  }
  int64_t* data = PESTLE_ARENA_ARRAY(g->arena, int64_t, value->entry_count);
  if (!data) return PESTLE_OOM();
  size_t n = 0;
  for (const pestle_generic_entry_t* e = value->entries; e; e = e->next) {
    if (e->value.kind == PESTLE_GENERIC_BOOL) {
      data[n++] = e->value.b;
    } else if (e->value.kind == PESTLE_GENERIC_INT) {
      data[n++] = e->value.i64;
    } else {
      return wrong_kind(g, &e->value, NULL, "a list of integers");
    }
  }
  *out_values = (pestle_i64s_t){data, n};
  return NULL;
}

pestle_status_t pestle_generic_convert(pestle_generic_t* g, const char* name,
                                       const pestle_generic_value_t* value,
                                       pestle_attr_t* a) {
  switch ((pestle_attr_kind_t)a->kind) {
    case PESTLE_ATTR_KIND_BOOL:
      a->as.b = value->kind == PESTLE_GENERIC_UNIT || value->b;
      if (value->kind == PESTLE_GENERIC_BOOL ||
          value->kind == PESTLE_GENERIC_UNIT)
        return NULL;
      return wrong_kind(g, value, name, "true or false");
    case PESTLE_ATTR_KIND_I64:
      a->as.i64 = value->i64;
      if (value->kind == PESTLE_GENERIC_INT) return NULL;
      return wrong_kind(g, value, name, "an integer");
    case PESTLE_ATTR_KIND_F64:
      a->as.f64 =
          value->kind == PESTLE_GENERIC_INT ? (double)value->i64 : value->f64;
      if (value->kind == PESTLE_GENERIC_FLOAT ||
          value->kind == PESTLE_GENERIC_INT)
        return NULL;
      return wrong_kind(g, value, name, "a number");
    case PESTLE_ATTR_KIND_STR:
      a->as.str = value->text.data;
      if (value->kind == PESTLE_GENERIC_WORD) {  // #stablehlo<transpose WORD>
        a->as.str = pestle_arena_strndup(g->arena, value->text);
        return a->as.str ? NULL : PESTLE_OOM();
      }
      if (value->kind == PESTLE_GENERIC_STRING ||
          value->kind == PESTLE_GENERIC_SYMBOL)
        return NULL;
      return wrong_kind(g, value, name, "a string or symbol");
    case PESTLE_ATTR_KIND_I64S:
      return pestle_generic_i64s(g, value, &a->as.i64s);
    case PESTLE_ATTR_KIND_TYPE:
      a->as.type = &value->type;
      if (value->kind == PESTLE_GENERIC_TYPE) return NULL;
      return wrong_kind(g, value, name, "a tensor type");
    case PESTLE_ATTR_KIND_ELEMENTS:
      a->as.elements = &value->elements;
      if (value->kind == PESTLE_GENERIC_ELEMENTS) return NULL;
      return wrong_kind(g, value, name, "constant data");
  }
  return NULL;
}

static pestle_status_t push_i64(pestle_generic_t* g, pestle_attr_name_t name,
                                int64_t value) {
  pestle_attr_t a = {.name = (uint16_t)name, .kind = PESTLE_ATTR_KIND_I64};
  a.as.i64 = value;
  return pestle_generic_push(g, &a);
}

static pestle_status_t push_i64s(pestle_generic_t* g, pestle_attr_name_t name,
                                 const int64_t* data, size_t count) {
  pestle_attr_t a = {.name = (uint16_t)name, .kind = PESTLE_ATTR_KIND_I64S};
  a.as.i64s = (pestle_i64s_t){data, count};
  return pestle_generic_push(g, &a);
}

pestle_status_t pestle_generic_push_conv(pestle_generic_t* g,
                                         const pestle_generic_conv_t* conv) {
  static const struct {
    uint16_t first, second, space;
  } names[3] = {
      {PESTLE_ATTR_input_batch_dimension, PESTLE_ATTR_input_feature_dimension,
       PESTLE_ATTR_input_spatial_dimensions},
      {PESTLE_ATTR_kernel_input_feature_dimension,
       PESTLE_ATTR_kernel_output_feature_dimension,
       PESTLE_ATTR_kernel_spatial_dimensions},
      {PESTLE_ATTR_output_batch_dimension, PESTLE_ATTR_output_feature_dimension,
       PESTLE_ATTR_output_spatial_dimensions}};
  for (int i = 0; i < 3; ++i) {
    PESTLE_TRY(
        push_i64(g, (pestle_attr_name_t)names[i].first, conv->side[i].first));
    PESTLE_TRY(
        push_i64(g, (pestle_attr_name_t)names[i].second, conv->side[i].second));
    PESTLE_TRY(push_i64s(g, (pestle_attr_name_t)names[i].space,
                         conv->side[i].space, conv->side[i].count));
  }
  return NULL;
}

// --- Attributes that no row has ---

// They ask for nothing, or for what is so anyway.
static bool can_ignore(pestle_str_t key) {
  if (pestle_str_is_one_of(key,
                           "precision_config unique_indices result_accuracy "
                           "known_induction_variables operandSegmentSizes")) {
    return true;
  }
  // mhlo.sharding, jax.buffer_donor: a dialect's remark.
  return pestle_str_find_char(key, '.') != SIZE_MAX;
}

pestle_status_t pestle_generic_direct(pestle_generic_t* g,
                                      pestle_str_t direction) {
  for (unsigned i = 0; i < PESTLE_SCALAR_COUNT; ++i) {
    const char* name = pestle_text_direction((pestle_op_t)i);
    if (!name || !pestle_str_equal_c(direction, name)) continue;
    g->op = (pestle_op_t)i;
    g->directed = true;
    return NULL;
  }
  return PESTLE_ERROR(MALFORMED, "expected EQ, NE, LT, LE, GT or GE");
}

pestle_status_t pestle_generic_compare_as(pestle_generic_t* g,
                                          pestle_str_t type) {
  if (pestle_str_is_one_of(type, "FLOAT SIGNED UNSIGNED NOTYPE")) return NULL;
  if (pestle_str_equal_c(type, "TOTALORDER")) {
    g->total = true;
    return NULL;
  }
  return PESTLE_ERROR(MALFORMED,
                      "expected FLOAT, TOTALORDER, SIGNED or UNSIGNED");
}

pestle_status_t pestle_generic_precision(const pestle_generic_value_t* list) {
  bool good = list->kind == PESTLE_GENERIC_LIST && list->entry_count <= 2;
  for (const pestle_generic_entry_t* e = list->entries; e; e = e->next) {
    good = good && pestle_str_is_one_of(e->value.text, "DEFAULT HIGH HIGHEST");
  }
  if (good) return NULL;
  return PESTLE_ERROR(MALFORMED,
                      "expected up to two of DEFAULT, HIGH and HIGHEST");
}

// Of a composite: |*out_done| says whether |e| was one of its attributes.
static pestle_status_t apply_composite(pestle_generic_t* g,
                                       const pestle_generic_entry_t* e,
                                       bool* out_done) {
  pestle_attr_t a = {.name = PESTLE_ATTR_attributes,
                     .kind = PESTLE_ATTR_KIND_STR};
  *out_done = true;
  if (pestle_str_equal_c(e->key, "decomposition")) {
    PESTLE_TRY(pestle_generic_convert(g, "decomposition", &e->value, &a));
    g->decomposition = a.as.str;
    return NULL;
  }
  if (pestle_str_equal_c(e->key, "composite_attributes")) {
    if (e->value.kind != PESTLE_GENERIC_DICT || !e->value.text.size) {
      return wrong_kind(g, &e->value, "composite_attributes", "a dictionary");
    }
    if (!e->value.entry_count) return NULL;
    a.as.str = pestle_arena_strndup(g->arena, e->value.text);
    return a.as.str ? pestle_generic_push(g, &a) : PESTLE_OOM();
  }
  *out_done = false;
  return NULL;
}

// StableHLO's packed attributes; |*out_done| says whether |key| was one.
static pestle_status_t apply_packed(pestle_generic_t* g,
                                    const pestle_generic_entry_t* e,
                                    bool* out_done) {
  const pestle_generic_value_t* value = &e->value;
  *out_done = true;
  if (g->op == PESTLE_OP_CUSTOM) {
    return apply_composite(g, e, out_done);
  }
  if (pestle_str_equal_c(e->key, "comparison_direction")) {
    if (value->kind != PESTLE_GENERIC_WORD) {
      return wrong_kind(g, value, "comparison_direction",
                        "#stablehlo<comparison_direction ..>");
    }
    if (!pestle_text_direction(g->op)) {
      return wrong_kind(g, value, NULL, "a comparison");
    }
    g->at = value;
    return pestle_generic_direct(g, value->text);
  }
  if (pestle_str_equal_c(e->key, "algorithm") &&
      g->op == PESTLE_OP_DOT_GENERAL) {
    // Without one it is the unit attribute.
    bool none = value->kind == PESTLE_GENERIC_UNIT ||
                (value->kind == PESTLE_GENERIC_OPAQUE &&
                 pestle_str_equal_c(value->text, "unit"));
    g->algorithm = none ? NULL : value;
    g->at = value;
    return NULL;
  }
  if (pestle_str_equal_c(e->key, "compare_type")) {
    g->at = value;
    return pestle_generic_compare_as(g, value->text);
  }
  if (pestle_str_is_one_of(e->key,
                           "dimension_numbers dot_dimension_numbers "
                           "scatter_dimension_numbers")) {
    if (value->kind == PESTLE_GENERIC_DICT) {
      return pestle_generic_apply(g, value);
    }
    if (value->kind == PESTLE_GENERIC_CONV) {
      return pestle_generic_push_conv(g, value->conv);
    }
    return wrong_kind(g, value, "dimension_numbers", "dimension numbers");
  }
  *out_done = false;
  return NULL;
}

// Whether some op has an attribute of that name, so that it is no mere remark.
static bool is_some_attr(pestle_str_t key) {
  for (unsigned i = 0; i < PESTLE_ATTR_COUNT; ++i) {
    const char* name = pestle_attr_name_text((pestle_attr_name_t)i);
    if (pestle_str_equal_c(key, name)) return true;
  }
  return false;
}

static pestle_status_t no_attribute(pestle_generic_t* g,
                                    const pestle_generic_entry_t* e,
                                    const char* op) {
  // A function of the caller's own may ask for what nobody else knows.
  bool foreign = g->op == PESTLE_OP_CUSTOM_CALL || g->op == PESTLE_OP_CUSTOM;
  bool remark = g->lenient && !foreign && !is_some_attr(e->key);
  if (can_ignore(e->key) || remark) return NULL;
  g->at = e->value.line ? &e->value : NULL;
  return PESTLE_ERROR(UNSUPPORTED, "'%s' has no attribute '%.*s' here", op,
                      e->key.size > 60 ? 60 : (int)e->key.size, e->key.data);
}

// Of what is built: attributes stay as they are written.
static pestle_status_t keep_entry(pestle_generic_t* g,
                                  const pestle_generic_entry_t* e) {
  bool call = g->op == PESTLE_OP_CUSTOM_CALL;
  if (!call && !pestle_str_is_one_of(e->key, g->built->attrs)) {
    return no_attribute(g, e, g->built->name);
  }
  pestle_generic_entry_t* kept =
      PESTLE_ARENA_NEW(g->arena, pestle_generic_entry_t);
  if (!kept) return PESTLE_OOM();
  *kept = *e;
  kept->next = NULL;
  if (!g->kept) g->kept_end = &g->kept;
  *g->kept_end = kept;
  g->kept_end = &kept->next;
  return NULL;
}

// Padding is a pair for each axis; as a list alone its length tells.
static pestle_status_t check_pairs(pestle_generic_t* g, const char* name,
                                   const pestle_generic_value_t* value) {
  const pestle_type_t* type = &value->elements.type;
  if (value->kind != PESTLE_GENERIC_ELEMENTS || strcmp(name, "padding") ||
      type->rank < 2 || (type->rank == 2 && type->dims[1] == 2)) {
    return NULL;
  }
  return wrong_kind(g, value, name, "a pair of numbers for each axis");
}

static pestle_status_t apply_entry(pestle_generic_t* g,
                                   const pestle_generic_entry_t* e) {
  size_t count;
  bool done = false;
  if (pestle_str_equal_c(e->key, "precision_config")) {
    g->at = &e->value;
    PESTLE_TRY(pestle_generic_precision(&e->value));
  }
  if (g->built) return keep_entry(g, e);
  if (g->op == PESTLE_OP_CUSTOM_CALL)
    PESTLE_TRY(pestle_generic_apply_custom(g, e, &done));
  // Of a product, the row of that name is a text that is made of it.
  if (g->op == PESTLE_OP_DOT_GENERAL) PESTLE_TRY(apply_packed(g, e, &done));
  if (done) return NULL;
  const pestle_attr_row_t* rows = pestle_op_attr_rows(g->op, &count);
  for (size_t i = 0; i < count; ++i) {
    const char* name = pestle_attr_name_text((pestle_attr_name_t)rows[i].name);
    if (!pestle_str_equal_c(e->key, name)) continue;
    pestle_attr_t a = {.name = rows[i].name, .kind = rows[i].kind};
    PESTLE_TRY(check_pairs(g, name, &e->value));
    PESTLE_TRY(pestle_generic_convert(g, name, &e->value, &a));
    return pestle_generic_push(g, &a);
  }
  PESTLE_TRY(apply_packed(g, e, &done));
  return done ? NULL : no_attribute(g, e, pestle_op_info(g->op)->mlir);
}

// A custom call of a function that is built here; its name may be in |dict|.
static void find_call(pestle_generic_t* g, const pestle_generic_value_t* dict) {
  if (g->op != PESTLE_OP_CUSTOM_CALL || g->built) return;
  for (size_t i = 0; i < g->attr_count; ++i) {
    if (g->attrs[i].name != PESTLE_ATTR_call_target_name) continue;
    g->built = pestle_built_find_call(pestle_str(g->attrs[i].as.str));
  }
  const pestle_generic_value_t* name =
      dict ? pestle_generic_find(dict, "call_target_name") : NULL;
  if (name && name->kind == PESTLE_GENERIC_STRING) {
    g->built = pestle_built_find_call(name->text);
  }
}

pestle_status_t pestle_generic_apply(pestle_generic_t* g,
                                     const pestle_generic_value_t* dict) {
  find_call(g, dict);
  for (const pestle_generic_entry_t* e = dict->entries; e; e = e->next) {
    PESTLE_TRY(apply_entry(g, e));
  }
  g->at = NULL;
  return NULL;
}

// --- The node ---

// The CUSTOM without a body that a custom call with a version was printed from.
static pestle_status_t name_op(pestle_generic_t* g) {
  size_t kept = 0;
  g->op = PESTLE_OP_CUSTOM;
  for (size_t i = 0; i < g->attr_count; ++i) {
    pestle_attr_t a = g->attrs[i];
    if (a.name == PESTLE_ATTR_api_version) continue;
    if (a.name == PESTLE_ATTR_call_target_name) a.name = PESTLE_ATTR_name;
    if (a.name == PESTLE_ATTR_backend_dictionary) {
      a.name = PESTLE_ATTR_attributes;
    }
    if (a.name != PESTLE_ATTR_name && a.name != PESTLE_ATTR_version &&
        a.name != PESTLE_ATTR_attributes) {
      return PESTLE_ERROR(
          UNSUPPORTED,
          "a custom call with 'pestle.version' has no attribute '%s'",
          pestle_attr_name_text((pestle_attr_name_t)a.name));
    }
    g->attrs[kept++] = a;
  }
  g->attr_count = kept;
  return NULL;
}

// A custom call of the name of a row of Pestle's own is that op, with what the
// configuration says as its attributes: how other dialects write, say, pestle.eigh.
static pestle_status_t take_own_row(pestle_generic_t* g) {
  const char* name = NULL;
  pestle_op_t op;
  for (size_t i = 0; i < g->attr_count; ++i) {
    if (g->attrs[i].name == PESTLE_ATTR_call_target_name)
      name = g->attrs[i].as.str;
  }
  if (!name || strncmp(name, "pestle.", 7) ||
      !pestle_generic_find_op(pestle_str(name), &op)) {
    return NULL;
  }
  g->op = op;
  g->attr_count = 0;
  g->lenient = false;  // a configuration is attributes alone
  return g->configuration ? pestle_generic_apply(g, g->configuration) : NULL;
}

// A composite has a function for its body and no regions.
static pestle_status_t check_composite(const pestle_generic_t* g,
                                       size_t region_count) {
  if (g->by_name) return NULL;
  if (!g->decomposition) {
    return PESTLE_ERROR(MALFORMED, "expected attribute 'decomposition'");
  }
  if (!region_count) return NULL;
  return PESTLE_ERROR(UNSUPPORTED, "regions of a composite are not supported");
}

// A comparison in total order becomes one of keys.
static pestle_status_t order_totally(pestle_builder_t* b,
                                     pestle_value_t** operands, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!pestle_dtype_is(operands[i]->type->dtype, PESTLE_KIND_FLOAT)) {
      return PESTLE_ERROR(MALFORMED,
                          "TOTALORDER compares floats; StableHLO compares "
                          "integers as SIGNED or UNSIGNED and complex "
                          "numbers as FLOAT");
    }
    if (!pestle_type_is_static(operands[i]->type)) {
      return PESTLE_ERROR(UNSUPPORTED,
                          "TOTALORDER on unknown extents is not supported; "
                          "give all extents");
    }
    PESTLE_TRY(pestle_total_order_key(b, operands[i], &operands[i]));
  }
  return NULL;
}

// The type of the bits, which StableHLO says of the result alone.
static pestle_status_t add_output_type(pestle_generic_t* g,
                                       const pestle_type_t* types,
                                       size_t count) {
  for (size_t i = 0; i < g->attr_count; ++i) {
    if (g->attrs[i].name == PESTLE_ATTR_output_type) return NULL;
  }
  if (count != 2) return NULL;
  pestle_attr_t a = {.name = PESTLE_ATTR_output_type,
                     .kind = PESTLE_ATTR_KIND_TYPE};
  a.as.type = &types[1];
  return pestle_generic_push(g, &a);
}

// The factors of a product of two kinds of floats in a type that has the numbers of
// both: f64 if one is, else f32.
static pestle_status_t widen_factors(pestle_builder_t* b,
                                     pestle_value_t** factors) {
  pestle_dtype_t x = factors[0]->type->dtype, y = factors[1]->type->dtype;
  if (x == y || !pestle_dtype_is(x, PESTLE_KIND_FLOAT) ||
      !pestle_dtype_is(y, PESTLE_KIND_FLOAT)) {
    return NULL;
  }
  for (int i = 0; i < 2; ++i) {
    pestle_type_t wide = *factors[i]->type;
    wide.dtype = x == PESTLE_F64 || y == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32;
    if (wide.dtype == factors[i]->type->dtype) continue;
    PESTLE_TRY(pestle_op_convert(b, factors[i], NULL, wide, &factors[i]));
  }
  return NULL;
}

// A product, whose operands may have several types; |*out_node| is what gives
// the type that was written.
static pestle_status_t create_product(pestle_generic_t* g,
                                      pestle_builder_t* builder,
                                      const pestle_node_spec_t* spec,
                                      pestle_node_t** out_node) {
  pestle_value_t* operands[2] = {spec->operands[0], spec->operands[1]};
  pestle_node_spec_t product = *spec;
  pestle_type_t type = *spec->type;
  pestle_dtype_t final;
  PESTLE_TRY(pestle_generic_product(g, builder, operands, &type, &final));
  product.operands = operands;
  product.type = product.types = &type;
  PESTLE_TRY(pestle_node_create(builder, &product, out_node));
  if (type.dtype == final) return NULL;
  pestle_formula_t f = pestle_formula_make(*builder);
  pestle_value_t* y =
      pestle_f_convert(&f, pestle_node_result(*out_node, 0), final);
  if (y) *out_node = y->node;
  return f.status;
}

static pestle_status_t create_fold(pestle_generic_t* g,
                                   pestle_builder_t* builder,
                                   const pestle_node_spec_t* spec,
                                   pestle_node_t** out_node) {
  pestle_node_spec_t fold = *spec;
  size_t count = spec->operand_count;
  pestle_value_t** operands =
      PESTLE_ARENA_ARRAY(g->arena, pestle_value_t*, count + 1);
  if (!operands) return PESTLE_OOM();
  if (count) memcpy(operands, spec->operands, count * sizeof(*operands));
  PESTLE_TRY(
      pestle_generic_widen(g->op, builder, operands, count, spec->regions[0]));
  fold.operands = operands;
  return pestle_node_create(builder, &fold, out_node);
}

pestle_status_t pestle_generic_create(
    pestle_generic_t* g, pestle_builder_t* builder,
    pestle_value_t* const* operands, size_t operand_count,
    pestle_region_t* const* regions, size_t region_count,
    const pestle_type_t* types, size_t type_count, pestle_node_t** out_node) {
  *out_node = NULL;
  g->at = NULL;
  if (g->by_name) PESTLE_TRY(name_op(g));
  if (g->op == PESTLE_OP_CUSTOM_CALL) PESTLE_TRY(take_own_row(g));
  if (g->op == PESTLE_OP_CUSTOM) PESTLE_TRY(check_composite(g, region_count));
  if (g->op == PESTLE_OP_RNG_BIT_GENERATOR) {
    PESTLE_TRY(add_output_type(g, types, type_count));
  }
  if (g->algorithm) {
    pestle_attr_t how = {.name = PESTLE_ATTR_algorithm,
                         .kind = PESTLE_ATTR_KIND_STR};
    PESTLE_TRY(pestle_dot_algorithm_text(g->arena, g->algorithm, &how.as.str));
    PESTLE_TRY(pestle_generic_push(g, &how));
  }
  pestle_value_t* pair[2];
  bool is_product = g->op == PESTLE_OP_CONVOLUTION;  // dot_general: below
  if ((g->total || is_product) && operand_count == 2) {
    memcpy(pair, operands, sizeof(pair));
    PESTLE_TRY(is_product ? widen_factors(builder, pair)
                          : order_totally(builder, pair, 2));
    operands = pair;
  }
  pestle_node_spec_t spec = {.op = g->op,
                             .operands = operands,
                             .operand_count = operand_count,
                             .attrs = g->attrs,
                             .attr_count = g->attr_count,
                             .regions = regions,
                             .region_count = region_count,
                             .type = type_count ? types : NULL,
                             .types = types,
                             .type_count = type_count};
  if (g->op == PESTLE_OP_DOT_GENERAL && operand_count == 2 && type_count == 1) {
    return create_product(g, builder, &spec, out_node);
  }
  if (pestle_generic_folds(g->op) && region_count == 1) {
    return create_fold(g, builder, &spec, out_node);
  }
  if (pestle_own_takes(g->op, operands, operand_count)) {
    return pestle_own_row(g->op, g->attrs, g->attr_count, builder, operands,
                          operand_count, out_node);
  }
  if (pestle_generic_orders(g->op, operands, operand_count)) {
    return pestle_generic_order(g->op, builder, operands, out_node);
  }
  return pestle_node_create(builder, &spec, out_node);
}

// --- What is built ---

bool pestle_generic_is_built(pestle_generic_t* g) {
  find_call(g, NULL);
  return g->built != NULL;
}

static pestle_status_t check_counts(const pestle_built_row_t* row,
                                    size_t operands, size_t results) {
  bool fits = (row->operands < 0 || operands == (size_t)row->operands) &&
              (row->results < 0 || results == (size_t)row->results);
  if (fits) return NULL;
  return PESTLE_ERROR(
      MALFORMED,
      "'%s' is given %zu operands and %zu results, which it has "
      "not",
      row->name, operands, results);
}

static pestle_status_t check_built(const pestle_built_t* b) {
  for (size_t i = 0; i < b->type_count; ++i) {
    const pestle_type_t *written = &b->types[i], *is = b->results[i]->type;
    bool agrees =
        written->dtype == is->dtype && pestle_shapes_agree(written, is);
    bool refined = !pestle_type_is_static(written) && pestle_type_is_static(is);
    if (agrees && refined && b->shapes && !b->shapes->again) {
      b->shapes->wanted = b->results[i];
      return PESTLE_ERROR(
          UNSUPPORTED, "result %zu of '%s' has extents that its type has not",
          i, b->name);
    }
    if (agrees) continue;
    return PESTLE_ERROR(
        MALFORMED, "result %zu of '%s' is written as %s and is %s", i, b->name,
        pestle_type_text(written).text, pestle_type_text(is).text);
  }
  return NULL;
}

static pestle_status_t run_built(pestle_generic_t* g, pestle_built_t* b,
                                 const pestle_built_row_t* row) {
  const pestle_type_t* written = b->types;
  pestle_built_lying_t lying;
  PESTLE_TRY(pestle_built_lie(g, b, &lying));
  pestle_built_take_shapes(b);
  PESTLE_TRY(b->f.status);
  PESTLE_TRY(check_counts(row, b->operand_count, b->type_count));
  memset(b->results, 0, b->type_count * sizeof(*b->results));
  row->build(b);
  PESTLE_TRY(b->f.status);
  PESTLE_TRY(pestle_built_lie_back(b, &lying));
  b->types = written;
  return check_built(b);
}

static pestle_status_t build_node(pestle_generic_t* g,
                                  pestle_builder_t* builder,
                                  pestle_built_t* b) {
  pestle_node_t* node;
  PESTLE_TRY(pestle_generic_create(g, builder, b->operands, b->operand_count,
                                   b->regions, b->region_count, b->types,
                                   b->type_count, &node));
  PESTLE_TRY(pestle_generic_layouts(g, &node));
  if (b->type_count && node->result_count != b->type_count) {
    return PESTLE_ERROR(MALFORMED, "'%s' has %u results and types for %zu",
                        pestle_op_info(g->op)->mlir, node->result_count,
                        b->type_count);
  }
  for (size_t i = 0; i < b->type_count; ++i)
    b->results[i] = &node->results[i];
  return NULL;
}

pestle_status_t pestle_generic_build(
    pestle_generic_t* g, pestle_builder_t* builder,
    pestle_value_t* const* operands, size_t operand_count,
    pestle_region_t* const* regions, size_t region_count,
    const pestle_type_t* types, size_t type_count,
    pestle_value_t*** out_values) {
  pestle_built_t b = {.f = pestle_formula_make(*builder),
                      .attrs = g->kept,
                      .operands = operands,
                      .operand_count = operand_count,
                      .regions = regions,
                      .region_count = region_count,
                      .types = types,
                      .type_count = type_count,
                      .arena = g->arena,
                      .shapes = g->shapes};
  g->at = NULL;
  b.results = *out_values =
      PESTLE_ARENA_ARRAY(g->arena, pestle_value_t*, type_count + 1);
  if (!b.results) return PESTLE_OOM();
  if (!pestle_generic_is_built(g)) return build_node(g, builder, &b);
  b.name = g->built->name;
  pestle_status_t status = run_built(g, &b, g->built);
  for (size_t i = 0; i < region_count && !b.regions_taken; ++i)
    pestle_region_discard(regions[i]);
  return status;
}
