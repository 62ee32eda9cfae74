// SPDX-License-Identifier: Apache-2.0
// Constants and attributes as text.
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "base/hash.h"
#include "ir/internal.h"
#include "ir/print_internal.h"
#include "ir/text.h"

// Lists longer than this are printed as hexadecimal bytes, as MLIR does.
enum { MAX_LIST = 100, MAX_SHOWN = 16 };

static uint64_t load_bits(const void* data, size_t size) {
  uint64_t bits = 0;
  memcpy(&bits, data, size);
  return bits;
}

// MLIR reads a float only with a point in it: "1e+20" becomes "1.0e+20".
static void add_point(pestle_strbuf_t* out, size_t start) {
  if (out->failed) return;
  char tail[32];
  for (size_t i = start; i < out->size; ++i) {
    if (out->data[i] == '.') return;
    if (out->data[i] != 'e') continue;
    size_t size = out->size - i;
    if (size > sizeof(tail)) return;
    memcpy(tail, out->data + i, size);
    out->size = i;
    pestle_strbuf_append_c(out, ".0");
    pestle_strbuf_append_bytes(out, tail, size);
    return;
  }
}

static void print_hex(uint64_t bits, unsigned digits, pestle_strbuf_t* out) {
  static const char hex[] = "0123456789ABCDEF";
  pestle_strbuf_append_c(out, "0x");
  for (unsigned i = digits; i-- > 0;) {
    pestle_strbuf_append_char(out, hex[(bits >> (4 * i)) & 15]);
  }
}

// The parser reads through f64: the rare shortest text that rounds differently
// on that way is spelled out.
static void print_f32(float value, pestle_strbuf_t* out) {
  size_t start = out->size;
  double read;
  pestle_strbuf_append_f32(out, value);
  if (out->failed) return;
  pestle_str_t text = pestle_str_make(out->data + start, out->size - start);
  if (pestle_str_parse_f64(text, &read) && (float)read == value) return;
  out->size = start;
  pestle_strbuf_append_f64(out, (double)value);
}

// The shortest decimal that reads back; NaN and infinities as their bits.
static void print_float(pestle_dtype_t dtype, const void* data,
                        pestle_strbuf_t* out) {
  size_t size = pestle_dtype_size(dtype);
  uint64_t bits = load_bits(data, size);
  double value = pestle_float_decode(dtype, bits);
  size_t start = out->size;
  if (!isfinite(value)) {
    print_hex(bits, (unsigned)size * 2, out);
    return;
  }
  if (dtype == PESTLE_F64) {
    pestle_strbuf_append_f64(out, value);
  } else {
    print_f32((float)value, out);
  }
  add_point(out, start);
}

static void print_int(pestle_dtype_t dtype, const void* data,
                      pestle_strbuf_t* out) {
  size_t size = pestle_dtype_size(dtype);
  uint64_t bits = load_bits(data, size);
  if (dtype == PESTLE_I1) {
    pestle_strbuf_append_c(out, bits ? "true" : "false");
  } else if (pestle_dtype_is(dtype, PESTLE_KIND_SIGNED)) {
    unsigned shift = 64 - 8 * (unsigned)size;
    pestle_strbuf_append_i64(out, (int64_t)(bits << shift) >> shift);
  } else {
    pestle_strbuf_append_u64(out, bits);
  }
}

static void print_element(pestle_dtype_t dtype, const char* data,
                          pestle_strbuf_t* out) {
  if (pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX)) {
    pestle_dtype_t part = dtype == PESTLE_C64 ? PESTLE_F32 : PESTLE_F64;
    pestle_strbuf_append_char(out, '(');
    print_float(part, data, out);
    pestle_strbuf_append_char(out, ',');
    print_float(part, data + pestle_dtype_size(part), out);
    pestle_strbuf_append_char(out, ')');
  } else if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    print_float(dtype, data, out);
  } else {
    print_int(dtype, data, out);
  }
}

static void print_nested(const pestle_type_t* type, int axis, const char** data,
                         pestle_strbuf_t* out) {
  if (axis == type->rank) {
    print_element(type->dtype, *data, out);
    *data += pestle_dtype_size(type->dtype);
    return;
  }
  pestle_strbuf_append_char(out, '[');
  for (int64_t i = 0; i < type->dims[axis]; ++i) {
    if (i) pestle_strbuf_append_c(out, ", ");
    print_nested(type, axis + 1, data, out);
  }
  pestle_strbuf_append_char(out, ']');
}

static void print_bytes(const unsigned char* data, size_t size,
                        pestle_strbuf_t* out) {
  static const char hex[] = "0123456789ABCDEF";
  char chunk[512];
  pestle_strbuf_append_c(out, "\"0x");
  for (size_t i = 0; i < size;) {
    size_t n = 0;
    while (i < size && n < sizeof(chunk)) {
      chunk[n++] = hex[data[i] >> 4];
      chunk[n++] = hex[data[i++] & 15];
    }
    pestle_strbuf_append_bytes(out, chunk, n);
  }
  pestle_strbuf_append_char(out, '"');
}

void pestle_print_elements(const pestle_elements_t* elements, unsigned flags,
                           pestle_strbuf_t* out) {
  const pestle_type_t* type = &elements->type;
  int64_t count = pestle_type_count(type);
  if (!elements->splat && count > MAX_SHOWN && (flags & PESTLE_PRINT_ELIDE)) {
    pestle_hash128_t hash = pestle_hash128(elements->data, elements->size);
    pestle_strbuf_append_c(out, "dense_elided<");
    print_hex(hash.low, 16, out);
    pestle_strbuf_append_char(out, '>');
    return;
  }
  pestle_strbuf_append_c(out, "dense<");
  const char* data = elements->data;
  if (!count) {
    // An empty list says all there is.
  } else if (elements->splat) {
    print_element(type->dtype, data, out);
  } else if (count > MAX_LIST) {
    print_bytes(elements->data, elements->size, out);
  } else {
    print_nested(type, 0, &data, out);
  }
  pestle_strbuf_append_char(out, '>');
}

void pestle_print_i64s(pestle_i64s_t values, pestle_strbuf_t* out) {
  for (size_t i = 0; i < values.count; ++i) {
    if (i) pestle_strbuf_append_c(out, ", ");
    pestle_strbuf_append_i64(out, values.data[i]);
  }
}

void pestle_print_bools(pestle_i64s_t values, pestle_strbuf_t* out) {
  for (size_t i = 0; i < values.count; ++i) {
    if (i) pestle_strbuf_append_c(out, ", ");
    pestle_strbuf_append_c(out, values.data[i] ? "true" : "false");
  }
}

void pestle_print_pairs(pestle_i64s_t values, pestle_strbuf_t* out) {
  pestle_strbuf_append_char(out, '[');
  for (size_t i = 0; i + 1 < values.count; i += 2) {
    if (i) pestle_strbuf_append_c(out, ", ");
    pestle_strbuf_append_char(out, '[');
    pestle_print_i64s((pestle_i64s_t){values.data + i, 2}, out);
    pestle_strbuf_append_char(out, ']');
  }
  pestle_strbuf_append_char(out, ']');
}

void pestle_print_word(const char* name, pestle_strbuf_t* out) {
  pestle_str_t text = pestle_str(name);
  bool plain = text.size && !(name[0] >= '0' && name[0] <= '9');
  for (size_t i = 0; i < text.size; ++i) {
    char c = name[i];
    plain &= (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
             (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '.';
  }
  if (plain) {
    pestle_strbuf_append(out, text);
  } else {
    pestle_strbuf_append_quoted(out, text);
  }
}

void pestle_print_symbol(const char* name, pestle_strbuf_t* out) {
  pestle_strbuf_append_char(out, '@');
  pestle_print_word(name, out);
}

void pestle_print_keyword(const pestle_node_t* node, const char* keyword,
                          uint16_t attr, pestle_strbuf_t* out) {
  const pestle_attr_t* a = pestle_node_attr(node, (pestle_attr_name_t)attr);
  pestle_strbuf_append_c(out, keyword);
  pestle_strbuf_append_c(out, " = ");
  if (a->kind == PESTLE_ATTR_KIND_I64) {
    pestle_strbuf_append_i64(out, a->as.i64);
    return;
  }
  if (a->kind == PESTLE_ATTR_KIND_BOOL) {
    pestle_strbuf_append_c(out, a->as.b ? "true" : "false");
    return;
  }
  if (a->kind == PESTLE_ATTR_KIND_STR) {
    pestle_strbuf_append_c(out, a->as.str);
    return;
  }
  pestle_strbuf_append_char(out, '[');
  pestle_print_i64s(a->as.i64s, out);
  pestle_strbuf_append_char(out, ']');
}

// --- Dimension numbers ---

// One side of a convolution: spatial axes by number, two others by letter.
static void print_conv_side(pestle_i64s_t space, int64_t first, char first_name,
                            int64_t second, char second_name,
                            pestle_strbuf_t* out) {
  pestle_strbuf_append_char(out, '[');
  int64_t rank = (int64_t)space.count + 2;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (axis) pestle_strbuf_append_c(out, ", ");
    if (axis == first) pestle_strbuf_append_char(out, first_name);
    if (axis == second) pestle_strbuf_append_char(out, second_name);
    for (size_t i = 0; i < space.count; ++i) {
      if (space.data[i] == axis) pestle_strbuf_append_u64(out, i);
    }
  }
  pestle_strbuf_append_char(out, ']');
}

void pestle_print_conv_dims(const pestle_node_t* node, pestle_strbuf_t* out) {
  print_conv_side(PESTLE_NODE_I64S(node, input_spatial_dimensions),
                  PESTLE_NODE_I64(node, input_batch_dimension), 'b',
                  PESTLE_NODE_I64(node, input_feature_dimension), 'f', out);
  pestle_strbuf_append_char(out, 'x');
  print_conv_side(PESTLE_NODE_I64S(node, kernel_spatial_dimensions),
                  PESTLE_NODE_I64(node, kernel_input_feature_dimension), 'i',
                  PESTLE_NODE_I64(node, kernel_output_feature_dimension), 'o',
                  out);
  pestle_strbuf_append_c(out, "->");
  print_conv_side(PESTLE_NODE_I64S(node, output_spatial_dimensions),
                  PESTLE_NODE_I64(node, output_batch_dimension), 'b',
                  PESTLE_NODE_I64(node, output_feature_dimension), 'f', out);
}

// "#stablehlo.dot<a = [..], b = 1>" of those attributes in |names| that are not
// empty or zero.
static void print_params(const pestle_node_t* node, const uint16_t* names,
                         size_t count, pestle_strbuf_t* out) {
  bool first = true;
  for (size_t i = 0; i < count; ++i) {
    const pestle_attr_t* a =
        pestle_node_attr(node, (pestle_attr_name_t)names[i]);
    bool shown = a->kind == PESTLE_ATTR_KIND_I64 ? a->as.i64 != 0
                                                 : a->as.i64s.count != 0;
    if (!shown) continue;
    if (!first) pestle_strbuf_append_c(out, ", ");
    first = false;
    pestle_print_keyword(node,
                         pestle_attr_name_text((pestle_attr_name_t)names[i]),
                         names[i], out);
  }
  pestle_strbuf_append_char(out, '>');
}

// --- Properties ---

typedef struct dict_t {
  pestle_strbuf_t* out;
  const char* opening;
  bool open;
} dict_t;

static void dict_flag(dict_t* dict, const char* key) {
  pestle_strbuf_append_c(dict->out, dict->open ? ", " : dict->opening);
  dict->open = true;
  pestle_strbuf_append_c(dict->out, key);
}

static void dict_key(dict_t* dict, const char* key) {
  dict_flag(dict, key);
  pestle_strbuf_append_c(dict->out, " = ");
}

// What StableHLO packs into one attribute is left to print_packed().
static bool is_packed(pestle_op_t op, uint16_t name) {
  if (op == PESTLE_OP_DOT_GENERAL) return true;
  if (op == PESTLE_OP_GATHER) {
    return name != PESTLE_ATTR_slice_sizes &&
           name != PESTLE_ATTR_indices_are_sorted;
  }
  if (op == PESTLE_OP_SCATTER) {
    return name != PESTLE_ATTR_unique_indices &&
           name != PESTLE_ATTR_indices_are_sorted;
  }
  return op == PESTLE_OP_CONVOLUTION &&
         name >= PESTLE_ATTR_input_batch_dimension &&
         name <= PESTLE_ATTR_output_spatial_dimensions;
}

static void print_packed(const pestle_node_t* node, dict_t* dict) {
  static const uint16_t dot[] = {PESTLE_ATTR_lhs_batching_dimensions,
                                 PESTLE_ATTR_rhs_batching_dimensions,
                                 PESTLE_ATTR_lhs_contracting_dimensions,
                                 PESTLE_ATTR_rhs_contracting_dimensions};
  static const uint16_t gather[] = {PESTLE_ATTR_offset_dims,
                                    PESTLE_ATTR_collapsed_slice_dims,
                                    PESTLE_ATTR_operand_batching_dims,
                                    PESTLE_ATTR_start_indices_batching_dims,
                                    PESTLE_ATTR_start_index_map,
                                    PESTLE_ATTR_index_vector_dim};
  static const uint16_t scatter[] = {PESTLE_ATTR_update_window_dims,
                                     PESTLE_ATTR_inserted_window_dims,
                                     PESTLE_ATTR_input_batching_dims,
                                     PESTLE_ATTR_scatter_indices_batching_dims,
                                     PESTLE_ATTR_scatter_dims_to_operand_dims,
                                     PESTLE_ATTR_index_vector_dim};
  const char* direction = pestle_text_direction((pestle_op_t)node->op);
  if (direction) {
    dict_key(dict, "compare_type");
    pestle_strbuf_appendf(
        dict->out, "#stablehlo<comparison_type %s>",
        pestle_text_compare_type(node->operands[0].value->type->dtype));
    dict_key(dict, "comparison_direction");
    pestle_strbuf_appendf(dict->out, "#stablehlo<comparison_direction %s>",
                          direction);
  } else if (node->op == PESTLE_OP_DOT_GENERAL) {
    const char* algorithm = PESTLE_NODE_STR(node, algorithm);
    if (algorithm && *algorithm) {
      dict_key(dict, "algorithm");
      pestle_strbuf_appendf(dict->out, "#stablehlo.dot_algorithm<%s>",
                            algorithm);
    }
    dict_key(dict, "dot_dimension_numbers");
    pestle_strbuf_append_c(dict->out, "#stablehlo.dot<");
    print_params(node, dot, sizeof(dot) / sizeof(*dot), dict->out);
  } else if (node->op == PESTLE_OP_GATHER) {
    dict_key(dict, "dimension_numbers");
    pestle_strbuf_append_c(dict->out, "#stablehlo.gather<");
    print_params(node, gather, sizeof(gather) / sizeof(*gather), dict->out);
  } else if (node->op == PESTLE_OP_SCATTER) {
    dict_key(dict, "scatter_dimension_numbers");
    pestle_strbuf_append_c(dict->out, "#stablehlo.scatter<");
    print_params(node, scatter, sizeof(scatter) / sizeof(*scatter), dict->out);
  } else if (node->op == PESTLE_OP_CONVOLUTION) {
    dict_key(dict, "dimension_numbers");
    pestle_strbuf_append_c(dict->out, "#stablehlo.conv<");
    pestle_print_conv_dims(node, dict->out);
    pestle_strbuf_append_char(dict->out, '>');
  }
}

static bool is_default(pestle_op_t op, const pestle_attr_t* a) {
  switch ((pestle_attr_kind_t)a->kind) {
    case PESTLE_ATTR_KIND_BOOL:
      return !a->as.b;
    case PESTLE_ATTR_KIND_I64:
      return a->as.i64 == pestle_attr_default_i64(op, a->name);
    case PESTLE_ATTR_KIND_STR:
      return !a->as.str || !*a->as.str;
    case PESTLE_ATTR_KIND_I64S:
      return a->as.i64s.count == 0;
    case PESTLE_ATTR_KIND_F64:  // -0 is none
      return !memcmp(&a->as.f64, &(double){0}, sizeof(a->as.f64));
    case PESTLE_ATTR_KIND_TYPE:
    case PESTLE_ATTR_KIND_ELEMENTS:
      return false;
  }
  return false;
}

// StableHLO's text needs what Pestle knows a default of.
static bool is_needed(pestle_op_t op, unsigned name) {
  return op == PESTLE_OP_MAP ||
         (op == PESTLE_OP_TRIANGULAR_SOLVE && name != PESTLE_ATTR_transpose_a);
}

static bool is_left_out(pestle_op_t op, const pestle_attr_row_t* row,
                        const pestle_attr_t* a) {
  // The second result's type says it.
  if (row->name == PESTLE_ATTR_output_type) return true;
  return !row->required && is_default(op, a) && !is_needed(op, row->name);
}

static bool is_of_stablehlo(pestle_op_t op) {
  return !strncmp(pestle_op_info(op)->mlir, "stablehlo.", 10);
}

// StableHLO has f32 attributes alone: a number that is none stays what it is, and
// the text is Pestle's own.
static void print_f64(double value, bool stablehlo, pestle_strbuf_t* out) {
  bool fits = stablehlo && fabs(value) <= FLT_MAX &&
              memcmp(&value, &(double){(double)(float)value}, 8) == 0;
  print_float(PESTLE_F64, &value, out);
  pestle_strbuf_append_c(out, fits ? " : f32" : " : f64");
}

// What is one of StableHLO's enumerations; NULL: a string.
static const char* enumeration_of(unsigned name) {
  switch (name) {
    case PESTLE_ATTR_transpose_a:
      return "transpose";
    case PESTLE_ATTR_fft_type:
      return "fft_type";
    case PESTLE_ATTR_rng_algorithm:
      return "rng_algorithm";
    case PESTLE_ATTR_rng_distribution:
      return "rng_distribution";
    default:
      return NULL;
  }
}

static void print_str(const pestle_attr_t* a, pestle_strbuf_t* out) {
  const char* enumeration = enumeration_of(a->name);
  if (enumeration) {
    pestle_strbuf_appendf(out, "#stablehlo<%s %s>", enumeration, a->as.str);
  } else if (a->name == PESTLE_ATTR_callee) {
    pestle_print_symbol(a->as.str, out);
  } else {
    pestle_strbuf_append_quoted(out, pestle_str(a->as.str));
  }
}

static void print_i64s_attr(const pestle_attr_t* a, pestle_strbuf_t* out) {
  if (a->name == PESTLE_ATTR_padding) {
    pestle_strbuf_append_c(out, "dense<");
    pestle_print_pairs(a->as.i64s, out);
    pestle_strbuf_appendf(out, "> : tensor<%zux2xi64>", a->as.i64s.count / 2);
  } else if (a->name == PESTLE_ATTR_window_reversal) {
    pestle_strbuf_append_c(out, a->as.i64s.count ? "array<i1: " : "array<i1");
    pestle_print_bools(a->as.i64s, out);
    pestle_strbuf_append_char(out, '>');
  } else {
    pestle_strbuf_append_c(out, a->as.i64s.count ? "array<i64: " : "array<i64");
    pestle_print_i64s(a->as.i64s, out);
    pestle_strbuf_append_char(out, '>');
  }
}

static void print_attr(pestle_op_t op, const pestle_attr_t* a, unsigned flags,
                       pestle_strbuf_t* out) {
  switch ((pestle_attr_kind_t)a->kind) {
    case PESTLE_ATTR_KIND_BOOL:
      pestle_strbuf_append_c(out, a->as.b ? "true" : "false");
      return;
    case PESTLE_ATTR_KIND_I64:
      pestle_strbuf_append_i64(out, a->as.i64);
      pestle_strbuf_append_c(out, " : i64");
      return;
    case PESTLE_ATTR_KIND_F64:
      print_f64(a->as.f64, is_of_stablehlo(op), out);
      return;
    case PESTLE_ATTR_KIND_STR:
      print_str(a, out);
      return;
    case PESTLE_ATTR_KIND_I64S:
      print_i64s_attr(a, out);
      return;
    case PESTLE_ATTR_KIND_TYPE:
      pestle_type_print(a->as.type, out);
      return;
    case PESTLE_ATTR_KIND_ELEMENTS:
      pestle_print_elements(a->as.elements, flags, out);
      pestle_strbuf_append_c(out, " : ");
      pestle_type_print(&a->as.elements->type, out);
      return;
  }
}

static void print_aliases(uint32_t results, pestle_i64s_t pairs,
                          pestle_strbuf_t* out) {
  pestle_strbuf_append_char(out, '[');
  for (size_t i = 0; i + 1 < pairs.count; i += 2) {
    pestle_strbuf_append_c(
        out, i ? ", #stablehlo.output_operand_alias<output_tuple_indices = ["
               : "#stablehlo.output_operand_alias<output_tuple_indices = [");
    // One result is no tuple of results.
    if (results > 1) pestle_strbuf_append_i64(out, pairs.data[i]);
    pestle_strbuf_appendf(
        out, "], operand_index = %" PRId64 ", operand_tuple_indices = []>",
        pairs.data[i + 1]);
  }
  pestle_strbuf_append_char(out, ']');
}

// A dictionary is written as it came, under the name that it came by.
static void print_row(const pestle_node_t* node, const pestle_attr_row_t* row,
                      unsigned flags, dict_t* dict) {
  const pestle_attr_t* a =
      pestle_node_attr(node, (pestle_attr_name_t)row->name);
  if (is_left_out((pestle_op_t)node->op, row, a)) return;
  if (a->name == PESTLE_ATTR_backend_dictionary) {
    dict_key(dict, "backend_config");
    pestle_strbuf_append_c(dict->out, a->as.str);
    return;
  }
  if (a->name == PESTLE_ATTR_called_computations) {
    dict_key(dict, "pestle.called_computations");
    pestle_strbuf_append_quoted(dict->out, pestle_str(a->as.str));
    return;
  }
  if (a->name == PESTLE_ATTR_use_global_device_ids) {
    // StableHLO's is there or is not.
    if (a->as.b) dict_flag(dict, "use_global_device_ids");
    return;
  }
  dict_key(dict, pestle_attr_name_text((pestle_attr_name_t)row->name));
  if (a->name == PESTLE_ATTR_channel_handle) {
    // Between devices is type 1, and there is no other here.
    pestle_strbuf_appendf(
        dict->out, "#stablehlo.channel_handle<handle = %" PRId64 ", type = 1>",
        a->as.i64);
    return;
  }
  if (a->name == PESTLE_ATTR_output_operand_aliases) {
    print_aliases(node->result_count, a->as.i64s, dict->out);
    return;
  }
  print_attr((pestle_op_t)node->op, a, flags, dict->out);
}

void pestle_print_custom_dict(const pestle_node_t* node, pestle_strbuf_t* out) {
  dict_t dict = {.out = out, .opening = " {"};
  size_t count;
  const pestle_attr_row_t* rows =
      pestle_op_attr_rows((pestle_op_t)node->op, &count);
  for (size_t i = 0; i < count; ++i) {
    if (rows[i].name == PESTLE_ATTR_call_target_name) continue;
    print_row(node, &rows[i], 0, &dict);
  }
  if (dict.open) pestle_strbuf_append_char(out, '}');
}

void pestle_print_properties(const pestle_node_t* node, unsigned flags,
                             pestle_strbuf_t* out) {
  dict_t dict = {.out = out, .opening = " <{"};
  size_t row_count;
  const pestle_attr_row_t* rows =
      pestle_op_attr_rows((pestle_op_t)node->op, &row_count);
  print_packed(node, &dict);
  for (size_t i = 0; i < row_count; ++i) {
    if (is_packed((pestle_op_t)node->op, rows[i].name)) continue;
    print_row(node, &rows[i], flags, &dict);
  }
  if (dict.open) pestle_strbuf_append_c(out, "}>");
}
