// SPDX-License-Identifier: Apache-2.0
// The generic form, and attributes from how MLIR writes them to how the op's
// rows have them.
#include "ir/parse_internal.h"
#include "ir/text.h"

// --- Values to attributes ---

static pestle_status_t wrong_kind(const pestle_parser_t* p,
                                  const pestle_parse_value_t* value,
                                  const char* name, const char* what) {
  if (!name) {
    return pestle_parse_error(p, &value->at, PESTLE_STATUS_MALFORMED,
                              "expected %s", what);
  }
  return pestle_parse_error(p, &value->at, PESTLE_STATUS_MALFORMED,
                            "attribute '%s' must be %s", name, what);
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

static pestle_status_t from_elements(pestle_parser_t* p,
                                     const pestle_parse_value_t* value,
                                     pestle_i64s_t* out) {
  const pestle_elements_t* e = &value->elements;
  size_t count = (size_t)pestle_type_count(&e->type);
  bool integers =
      pestle_dtype_is(e->type.dtype, PESTLE_KIND_INT | PESTLE_KIND_BOOL);
  if (!integers || count > MAX_AXES) {
    return wrong_kind(p, value, NULL, "a list of an integer for each axis");
  }
  int64_t* data = PESTLE_ARENA_ARRAY(&p->scratch, int64_t, count);
  if (!data) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    data[i] = element_i64(e, i);
  *out = (pestle_i64s_t){data, count};
  return NULL;
}

pestle_status_t pestle_parse_value_i64s(pestle_parser_t* p,
                                        const pestle_parse_value_t* value,
                                        pestle_i64s_t* out_values) {
  if (value->kind == PESTLE_VALUE_ELEMENTS) {
    return from_elements(p, value, out_values);
  }
  if (value->kind != PESTLE_VALUE_LIST) {
    return wrong_kind(p, value, NULL, "a list of integers");
  }
  int64_t* data = PESTLE_ARENA_ARRAY(&p->scratch, int64_t, value->entry_count);
  if (!data) return PESTLE_OOM();
  size_t n = 0;
  for (const pestle_parse_entry_t* e = value->entries; e; e = e->next) {
    if (e->value.kind == PESTLE_VALUE_BOOL) {
      data[n++] = e->value.b;
    } else if (e->value.kind == PESTLE_VALUE_INT) {
      data[n++] = e->value.i64;
    } else {
      return wrong_kind(p, &e->value, NULL, "a list of integers");
    }
  }
  *out_values = (pestle_i64s_t){data, n};
  return NULL;
}

pestle_status_t pestle_parse_convert(pestle_parser_t* p, const char* name,
                                     const pestle_parse_value_t* value,
                                     pestle_attr_t* a) {
  switch ((pestle_attr_kind_t)a->kind) {
    case PESTLE_ATTR_KIND_BOOL:
      a->as.b = value->kind == PESTLE_VALUE_UNIT || value->b;
      if (value->kind == PESTLE_VALUE_BOOL || value->kind == PESTLE_VALUE_UNIT)
        return NULL;
      return wrong_kind(p, value, name, "true or false");
    case PESTLE_ATTR_KIND_I64:
      a->as.i64 = value->i64;
      if (value->kind == PESTLE_VALUE_INT) return NULL;
      return wrong_kind(p, value, name, "an integer");
    case PESTLE_ATTR_KIND_F64:
      a->as.f64 =
          value->kind == PESTLE_VALUE_INT ? (double)value->i64 : value->f64;
      if (value->kind == PESTLE_VALUE_FLOAT || value->kind == PESTLE_VALUE_INT)
        return NULL;
      return wrong_kind(p, value, name, "a number");
    case PESTLE_ATTR_KIND_STR:
      a->as.str = value->text.data;
      if (value->kind == PESTLE_VALUE_WORD) {  // #stablehlo<transpose WORD>
        a->as.str = pestle_arena_strndup(&p->scratch, value->text);
        return a->as.str ? NULL : PESTLE_OOM();
      }
      if (value->kind == PESTLE_VALUE_STRING ||
          value->kind == PESTLE_VALUE_SYMBOL)
        return NULL;
      return wrong_kind(p, value, name, "a string or symbol");
    case PESTLE_ATTR_KIND_I64S:
      return pestle_parse_value_i64s(p, value, &a->as.i64s);
    case PESTLE_ATTR_KIND_TYPE:
      a->as.type = &value->type;
      if (value->kind == PESTLE_VALUE_TYPE) return NULL;
      return wrong_kind(p, value, name, "a tensor type");
    case PESTLE_ATTR_KIND_ELEMENTS:
      a->as.elements = &value->elements;
      if (value->kind == PESTLE_VALUE_ELEMENTS) return NULL;
      return wrong_kind(p, value, name, "constant data");
  }
  return NULL;
}

static pestle_status_t push_i64(pestle_parser_t* p, pestle_parse_op_t* o,
                                pestle_attr_name_t name, int64_t value) {
  pestle_attr_t a = {.name = (uint16_t)name, .kind = PESTLE_ATTR_KIND_I64};
  a.as.i64 = value;
  return pestle_parse_push_attr(p, o, &a);
}

static pestle_status_t push_i64s(pestle_parser_t* p, pestle_parse_op_t* o,
                                 pestle_attr_name_t name, const int64_t* data,
                                 size_t count) {
  pestle_attr_t a = {.name = (uint16_t)name, .kind = PESTLE_ATTR_KIND_I64S};
  a.as.i64s = (pestle_i64s_t){data, count};
  return pestle_parse_push_attr(p, o, &a);
}

pestle_status_t pestle_parse_apply_conv(pestle_parser_t* p,
                                        pestle_parse_op_t* o,
                                        const pestle_parse_conv_t* conv) {
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
    PESTLE_TRY(push_i64(p, o, (pestle_attr_name_t)names[i].first,
                        conv->side[i].first));
    PESTLE_TRY(push_i64(p, o, (pestle_attr_name_t)names[i].second,
                        conv->side[i].second));
    PESTLE_TRY(push_i64s(p, o, (pestle_attr_name_t)names[i].space,
                         conv->side[i].space, conv->side[i].count));
  }
  return NULL;
}

// --- Attributes that no row has ---

// They ask for nothing, or for what is so anyway.
static bool can_ignore(pestle_str_t key) {
  static const char* const names[] = {"precision_config",
                                      "precision",
                                      "unique_indices",
                                      "result_accuracy",
                                      "known_induction_variables",
                                      "operandSegmentSizes"};
  for (size_t i = 0; i < sizeof(names) / sizeof(*names); ++i) {
    if (pestle_str_equal_c(key, names[i])) return true;
  }
  // mhlo.sharding, jax.buffer_donor: a dialect's remark.
  return pestle_str_find_char(key, '.') != SIZE_MAX;
}

pestle_status_t pestle_parse_direction(pestle_parser_t* p,
                                       const pestle_token_t* at,
                                       pestle_str_t direction,
                                       pestle_op_t* out_op) {
  for (unsigned i = 0; i < PESTLE_SCALAR_COUNT; ++i) {
    const char* name = pestle_text_direction((pestle_op_t)i);
    if (!name || !pestle_str_equal_c(direction, name)) continue;
    *out_op = (pestle_op_t)i;
    return NULL;
  }
  return pestle_parse_error(p, at, PESTLE_STATUS_MALFORMED,
                            "expected EQ, NE, LT, LE, GT or GE");
}

pestle_status_t pestle_parse_compare_type(pestle_parser_t* p,
                                          pestle_parse_op_t* o,
                                          const pestle_token_t* at,
                                          pestle_str_t type) {
  static const char* const known[] = {"FLOAT", "SIGNED", "UNSIGNED", "NOTYPE"};
  for (size_t i = 0; i < sizeof(known) / sizeof(*known); ++i) {
    if (pestle_str_equal_c(type, known[i])) return NULL;
  }
  if (pestle_str_equal_c(type, "TOTALORDER")) {
    o->total = true;
    return NULL;
  }
  return pestle_parse_error(p, at, PESTLE_STATUS_MALFORMED,
                            "expected FLOAT, TOTALORDER, SIGNED or UNSIGNED");
}

static pestle_status_t no_support(const pestle_parser_t* p,
                                  const pestle_parse_entry_t* e,
                                  const char* why) {
  return pestle_parse_error(p, &e->value.at, PESTLE_STATUS_UNSUPPORTED,
                            "'stablehlo.custom_call' with '%.*s' %s",
                            (int)e->key.size, e->key.data, why);
}

// Of a custom call: a configuration that is a dictionary, under either name; layouts,
// which parse_layout.c reads; what would have to be empty.
static pestle_status_t apply_custom(pestle_parser_t* p, pestle_parse_op_t* o,
                                    const pestle_parse_entry_t* e,
                                    bool* out_done) {
  const pestle_parse_value_t* value = &e->value;
  *out_done = true;
  if (value->kind == PESTLE_VALUE_DICT &&
      (pestle_str_equal_c(e->key, "backend_config") ||
       pestle_str_equal_c(e->key, "mhlo.backend_config"))) {
    pestle_attr_t a = {.name = PESTLE_ATTR_backend_dictionary,
                       .kind = PESTLE_ATTR_KIND_STR};
    a.as.str = pestle_arena_strndup(&p->scratch, value->text);
    return a.as.str ? pestle_parse_push_attr(p, o, &a) : PESTLE_OOM();
  }
  if (pestle_str_equal_c(e->key, "pestle.version")) {
    pestle_attr_t a = {.name = PESTLE_ATTR_version,
                       .kind = PESTLE_ATTR_KIND_I64};
    o->by_name = true;
    PESTLE_TRY(pestle_parse_convert(p, "pestle.version", value, &a));
    return pestle_parse_push_attr(p, o, &a);
  }
  if (pestle_str_equal_c(e->key, "operand_layouts")) {
    o->operand_layouts = e;
    return NULL;
  }
  if (pestle_str_equal_c(e->key, "result_layouts")) {
    o->result_layouts = e;
    return NULL;
  }
  if (pestle_str_equal_c(e->key, "output_operand_aliases")) {
    if (value->kind == PESTLE_VALUE_LIST && !value->entry_count) return NULL;
    return no_support(p, e,
                      "is not supported: results have memory of their own; "
                      "leave the aliases out and let the function copy");
  }
  if (pestle_str_equal_c(e->key, "called_computations")) {
    if (value->kind == PESTLE_VALUE_LIST && !value->entry_count) return NULL;
    return no_support(p, e, "is not supported: functions cannot be passed");
  }
  *out_done = false;
  return NULL;
}

// StableHLO's packed attributes; |*out_done| says whether |key| was one.
static pestle_status_t apply_packed(pestle_parser_t* p, pestle_parse_op_t* o,
                                    const pestle_parse_entry_t* e,
                                    bool* out_done) {
  const pestle_parse_value_t* value = &e->value;
  *out_done = true;
  if (o->op == PESTLE_OP_CUSTOM) {
    return pestle_parse_composite_attr(p, o, e, out_done);
  }
  if (pestle_str_equal_c(e->key, "comparison_direction")) {
    if (value->kind != PESTLE_VALUE_WORD) {
      return wrong_kind(p, value, "comparison_direction",
                        "#stablehlo<comparison_direction ..>");
    }
    if (!pestle_text_direction(o->op)) {
      return wrong_kind(p, value, NULL, "a comparison");
    }
    o->directed = true;
    return pestle_parse_direction(p, &value->at, value->text, &o->op);
  }
  if (pestle_str_equal_c(e->key, "compare_type")) {
    return pestle_parse_compare_type(p, o, &value->at, value->text);
  }
  if (pestle_str_equal_c(e->key, "dimension_numbers") ||
      pestle_str_equal_c(e->key, "dot_dimension_numbers") ||
      pestle_str_equal_c(e->key, "scatter_dimension_numbers")) {
    if (value->kind == PESTLE_VALUE_DICT) {
      return pestle_parse_apply_dict(p, o, value);
    }
    if (value->kind == PESTLE_VALUE_CONV) {
      return pestle_parse_apply_conv(p, o, value->conv);
    }
    return wrong_kind(p, value, "dimension_numbers", "dimension numbers");
  }
  *out_done = false;
  return NULL;
}

static pestle_status_t apply_entry(pestle_parser_t* p, pestle_parse_op_t* o,
                                   const pestle_parse_entry_t* e) {
  size_t count;
  bool done = false;
  if (o->op == PESTLE_OP_CUSTOM_CALL) PESTLE_TRY(apply_custom(p, o, e, &done));
  if (done) return NULL;
  const pestle_attr_row_t* rows = pestle_op_attr_rows(o->op, &count);
  for (size_t i = 0; i < count; ++i) {
    const char* name = pestle_attr_name_text((pestle_attr_name_t)rows[i].name);
    if (!pestle_str_equal_c(e->key, name)) continue;
    pestle_attr_t a = {.name = rows[i].name, .kind = rows[i].kind};
    PESTLE_TRY(pestle_parse_convert(p, name, &e->value, &a));
    return pestle_parse_push_attr(p, o, &a);
  }
  PESTLE_TRY(apply_packed(p, o, e, &done));
  if (done || can_ignore(e->key)) return NULL;
  return pestle_parse_error(
      p, e->value.at.line ? &e->value.at : &o->at, PESTLE_STATUS_UNSUPPORTED,
      "'%s' has no attribute '%.*s' here", pestle_op_info(o->op)->mlir,
      e->key.size > 60 ? 60 : (int)e->key.size, e->key.data);
}

pestle_status_t pestle_parse_apply_dict(pestle_parser_t* p,
                                        pestle_parse_op_t* o,
                                        const pestle_parse_value_t* dict) {
  for (const pestle_parse_entry_t* e = dict->entries; e; e = e->next) {
    PESTLE_TRY(apply_entry(p, o, e));
  }
  return NULL;
}

// --- The form ---

// "(operands) <{..}> ({..}, {..}) {..} : (A) -> B"
pestle_status_t pestle_parse_generic(pestle_parser_t* p, pestle_parse_op_t* o) {
  pestle_parse_value_t dict;
  PESTLE_TRY(pestle_parse_expect(p, '('));
  PESTLE_TRY(pestle_parse_operands(p, o));
  PESTLE_TRY(pestle_parse_expect(p, ')'));
  if (pestle_parse_take(p, '<')) {
    if (!pestle_parse_at(p, '{')) return pestle_parse_expected(p, "'{'");
    PESTLE_TRY(pestle_parse_dict(p, '}', &dict));
    PESTLE_TRY(pestle_parse_apply_dict(p, o, &dict));
    PESTLE_TRY(pestle_parse_expect(p, '>'));
  }
  if (pestle_parse_take(p, '(')) {
    do {
      PESTLE_TRY(pestle_parse_region(p, o, NULL));
    } while (pestle_parse_take(p, ','));
    PESTLE_TRY(pestle_parse_expect(p, ')'));
  }
  if (pestle_parse_at(p, '{')) {
    PESTLE_TRY(pestle_parse_dict(p, '}', &dict));
    PESTLE_TRY(pestle_parse_apply_dict(p, o, &dict));
  }
  if (pestle_text_direction(o->op) && !o->directed) {
    return pestle_parse_expected(p, "attribute 'comparison_direction' before");
  }
  PESTLE_TRY(pestle_parse_expect(p, ':'));
  o->typed = true;
  return pestle_parse_function_type(p, &o->operand_types, &o->result_types);
}
