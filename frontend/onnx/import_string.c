// SPDX-License-Identifier: Apache-2.0
// Ops that read the letters of strings, or make new ones: functions of Pestle's own on the
// host (runtime/own_words.c), to which a run brings its strings (docs/adr/036). How many
// parts a string has only a run tells, so that there is room for some (bounded.h).
#include "base/mem.h"
#include "base/regex.h"
#include "base/words.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ops.h"

// Room for parts of a string where nothing says how many there are at most.
enum { LEAST_PARTS = 64, MOST_PARTS = 1024, PART_BYTES = 4 << 20 };

// A call in the making: texts of its configuration.
static void begin_fields(pestle_onnx_call_t* call, pestle_strbuf_t* fields) {
  const pestle_onnx_strings_t* strings = call->import->strings;
  pestle_strbuf_init(call->import->allocator, fields);
  pestle_field_append(fields, pestle_str(strings->inner ? strings->inner : ""));
}

static void add_number(pestle_strbuf_t* fields, int64_t number) {
  pestle_strbuf_append_i64(fields, number);
  pestle_strbuf_append_char(fields, ' ');
}

// Ends |fields|. |types|: of the |made| results; NULL with an error kept.
static pestle_node_t* finish(pestle_onnx_call_t* call, const char* function,
                             pestle_strbuf_t* fields, pestle_value_t** operands,
                             size_t count, const pestle_type_t* types,
                             size_t made) {
  pestle_node_t* node = NULL;
  bool all = !call->f.status;
  for (size_t i = 0; i < count; ++i)
    all = all && operands[i];
  if (all && !pestle_onnx_keep(call, pestle_strbuf_status(fields))) {
    pestle_attr_t attrs[] = {
        PESTLE_SET_STR(call_target_name, function),
        PESTLE_SET_STR(backend_config, pestle_strbuf_cstr(fields))};
    node = pestle_f_node(&call->f,
                         &(pestle_node_spec_t){.op = PESTLE_OP_CUSTOM_CALL,
                                               .operands = operands,
                                               .operand_count = count,
                                               .attrs = attrs,
                                               .attr_count = 2,
                                               .types = types,
                                               .type_count = made});
  }
  pestle_strbuf_deinit(fields);
  return node;
}

static pestle_value_t* finish_one(pestle_onnx_call_t* call,
                                  const char* function, pestle_strbuf_t* fields,
                                  pestle_value_t** operands, size_t count,
                                  const pestle_type_t* type) {
  pestle_node_t* node =
      finish(call, function, fields, operands, count, type, 1);
  return node ? pestle_node_result(node, 0) : NULL;
}

// Whether input |index| is of strings; an error is kept where it is not.
static bool wants_text(pestle_onnx_call_t* call, size_t index) {
  if (call->f.status) return false;
  if (pestle_onnx_is_text(call->import, call->inputs[index])) return true;
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "its input %zu, '%.*s', is of numbers; it takes strings",
                   index, PESTLE_STR_ARG(call->node->inputs[index]));
  return false;
}

static pestle_type_t like(const pestle_value_t* value, pestle_dtype_t dtype) {
  pestle_type_t type = *pestle_onnx_type(value);
  type.dtype = dtype;
  return type;
}

// --- Cast ---

pestle_value_t* pestle_onnx_text_of(pestle_onnx_call_t* call, pestle_value_t* x,
                                    bool fixed) {
  pestle_dtype_t dtype = dtype_of(x), as = PESTLE_I64;
  pestle_strbuf_t fields;
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT))
    as = dtype == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32;
  if (dtype == PESTLE_U64) as = PESTLE_U64;
  x = pestle_onnx_convert(call, x, as);
  begin_fields(call, &fields);
  pestle_field_append(&fields, pestle_str(fixed ? "fixed" : "short"));
  pestle_type_t type = like(x, PESTLE_I32);
  return pestle_onnx_mark_text(
      call, finish_one(call, "pestle.s.of_number", &fields, &x, 1, &type));
}

pestle_value_t* pestle_onnx_number_of(pestle_onnx_call_t* call,
                                      pestle_value_t* x, pestle_dtype_t dtype) {
  pestle_dtype_t as = PESTLE_I64;
  pestle_strbuf_t fields;
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT))
    as = dtype == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32;
  if (dtype == PESTLE_U64) as = PESTLE_U64;
  // What is not real need be no number.
  x = pestle_onnx_fill_unreal(call, x, UINT32_MAX,
                              pestle_onnx_scalar(call, PESTLE_I32, -1));
  if (!x) return NULL;
  begin_fields(call, &fields);
  pestle_type_t type = like(x, as);
  x = finish_one(call, "pestle.s.to_number", &fields, &x, 1, &type);
  return pestle_onnx_cast(call, x, dtype);
}

// --- Joining and splitting ---

void pestle_onnx_import_string_concat(pestle_onnx_call_t* call) {
  pestle_value_t* parts[] = {call->inputs[0], call->inputs[1]};
  pestle_type_t type;
  pestle_strbuf_t fields;
  if (!wants_text(call, 0) || !wants_text(call, 1) ||
      !pestle_onnx_common_shape(call, pestle_onnx_type(parts[0]),
                                pestle_onnx_type(parts[1]), &type))
    return;
  for (size_t i = 0; i < 2; ++i)
    parts[i] = pestle_onnx_broadcast(call, parts[i], type.rank, type.dims);
  begin_fields(call, &fields);
  call->outputs[0] =
      finish_one(call, "pestle.s.concat", &fields, parts, 2, &type);
}

// How many parts of each of |count| strings there is room for.
static int64_t room_for(int64_t count, int64_t most) {
  int64_t room = PART_BYTES / 4 / (count ? count : 1);
  if (room < LEAST_PARTS) room = LEAST_PARTS;
  if (room > MOST_PARTS) room = MOST_PARTS;
  return most >= 0 && most < room ? most : room;
}

// |type| with one more axis; false where it has too many.
static bool add_axis(pestle_onnx_call_t* call, pestle_type_t* type,
                     int64_t extent) {
  if (type->rank < PESTLE_MAX_RANK) {
    type->dims[type->rank++] = extent;
    return true;
  }
  pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                   "its result has more than %d axes", PESTLE_MAX_RANK);
  return false;
}

// Result |parts| of |node|, whose last axis is really as long as result |most| says.
static pestle_value_t* bounded_parts(pestle_onnx_call_t* call,
                                     pestle_node_t* node, size_t most) {
  pestle_value_t* parts = pestle_node_result(node, 0);
  int32_t last = rank_of(parts) - 1;
  pestle_onnx_copy_real(call, parts, call->inputs[0]);
  pestle_onnx_set_real(call, parts, last, pestle_node_result(node, most));
  return pestle_onnx_mark_text(call, pestle_onnx_end_real(call, parts));
}

void pestle_onnx_import_string_split(pestle_onnx_call_t* call) {
  static const pestle_type_t scalar = {.dtype = PESTLE_I64};
  pestle_value_t* x = call->inputs[0];
  int64_t splits = pestle_onnx_has(call, "maxsplit")
                       ? pestle_onnx_int(call, "maxsplit", -1)
                       : -1;
  pestle_str_t delimiter = pestle_onnx_string(call, "delimiter", "");
  pestle_strbuf_t fields;
  if (!wants_text(call, 0)) return;
  if (splits < 0) splits = -1;
  int64_t count = pestle_type_count(pestle_onnx_type(x));
  int64_t room =
      room_for(count, splits < 0 || splits >= MOST_PARTS ? -1 : splits + 1);
  pestle_type_t types[] = {like(x, PESTLE_I32), like(x, PESTLE_I64), scalar};
  if (!add_axis(call, &types[0], count ? room : 0)) return;
  if (!count) {
    call->outputs[0] =
        pestle_onnx_mark_text(call, pestle_onnx_splat_int(call, &types[0], 0));
    call->outputs[1] = pestle_onnx_splat_int(call, &types[1], 0);
    return;
  }
  x = pestle_onnx_fill_unreal(call, x, UINT32_MAX,
                              pestle_onnx_scalar(call, PESTLE_I32, -1));
  begin_fields(call, &fields);
  add_number(&fields, splits);
  pestle_field_append(&fields, delimiter);
  pestle_node_t* node =
      finish(call, "pestle.s.split", &fields, &x, 1, types, 3);
  if (!node) return;
  call->outputs[0] = bounded_parts(call, node, 2);
  call->outputs[1] = pestle_node_result(node, 1);
  pestle_onnx_copy_real(call, call->outputs[1], call->inputs[0]);
}

// --- Normalising ---

// Texts of the attribute |name|; false, with an error kept, where it is no such list.
static bool add_texts(pestle_onnx_call_t* call, const char* name,
                      pestle_strbuf_t* fields, size_t* out_count) {
  const pestle_onnx_attr_t* attr = pestle_onnx_node_attr(call->node, name);
  *out_count = 0;
  if (!attr) return true;
  if (attr->kind != PESTLE_ONNX_ATTR_STRINGS) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "attribute '%s' should be strings", name);
    return false;
  }
  *out_count = attr->count;
  for (size_t i = 0; i < attr->count; ++i)
    pestle_field_append(fields, attr->strings[i]);
  return true;
}

void pestle_onnx_import_string_normalizer(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  pestle_str_t change = pestle_onnx_string(call, "case_change_action", "NONE");
  pestle_strbuf_t fields;
  size_t stops;
  int32_t rank = rank_of(x);
  if (!wants_text(call, 0)) return;
  bool known = pestle_str_is_one_of(change, "NONE LOWER UPPER");
  if (!known || rank < 1 || rank > 2 ||
      (rank == 2 && pestle_onnx_dim(x, 0) != 1)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     known ? "its input is not of the shape [C] or [1, C]"
                           : "attribute 'case_change_action' is '%.*s', known "
                             "are NONE, LOWER and UPPER",
                     PESTLE_STR_ARG(change));
    return;
  }
  // Letters of every language are changed alike: 'locale' says nothing more.
  (void)pestle_onnx_string(call, "locale", "");
  begin_fields(call, &fields);
  pestle_field_append(&fields, change);
  add_number(&fields, pestle_onnx_int(call, "is_case_sensitive", 0) != 0);
  if (!add_texts(call, "stopwords", &fields, &stops)) {
    pestle_strbuf_deinit(&fields);
    return;
  }
  pestle_type_t types[] = {like(x, PESTLE_I32), {.dtype = PESTLE_I64}};
  if (!stops && pestle_onnx_dim(x, rank - 1)) {
    call->outputs[0] =
        finish_one(call, "pestle.s.normalize", &fields, &x, 1, types);
    pestle_onnx_copy_real(call, call->outputs[0], x);
    return;
  }
  // What is not real would be kept.
  if (!pestle_onnx_allow_real(call, 0, 0)) {
    pestle_strbuf_deinit(&fields);
    return;
  }
  int64_t* length = &types[0].dims[rank - 1];
  if (!*length) *length = 1;
  pestle_node_t* node =
      finish(call, "pestle.s.normalize_stop", &fields, &x, 1, types, 2);
  if (!node) return;
  pestle_value_t* y = pestle_node_result(node, 0);
  pestle_onnx_set_real(call, y, rank - 1, pestle_node_result(node, 1));
  call->outputs[0] = pestle_onnx_end_real(call, y);
}

// --- Regular expressions ---

static bool is_regex(pestle_onnx_call_t* call, pestle_str_t pattern) {
  pestle_regex_t* regex;
  if (pestle_onnx_keep(
          call, pestle_regex_create(call->import->allocator, pattern, &regex)))
    return false;
  pestle_regex_release(regex);
  return true;
}

void pestle_onnx_import_regex_full_match(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  pestle_str_t pattern = pestle_onnx_string(call, "pattern", "");
  pestle_strbuf_t fields;
  if (!wants_text(call, 0) || !is_regex(call, pattern)) return;
  begin_fields(call, &fields);
  pestle_field_append(&fields, pattern);
  pestle_type_t type = like(x, PESTLE_I1);
  call->outputs[0] = finish_one(call, "pestle.s.match", &fields, &x, 1, &type);
}

// com.microsoft: texts [rows] or [rows, columns] as their words, with one more axis.
void pestle_onnx_import_tokenizer(pestle_onnx_call_t* call) {
  pestle_value_t* x = call->inputs[0];
  pestle_str_t token = pestle_onnx_string(call, "tokenexp", "");
  int64_t least = pestle_onnx_int(call, "mincharnum", 1);
  pestle_strbuf_t fields;
  size_t separators = 0;
  if (!wants_text(call, 0)) return;
  const pestle_onnx_attr_t* between =
      pestle_onnx_node_attr(call->node, "separators");
  bool by_token = token.size != 0;
  bool letters = between && between->kind == PESTLE_ONNX_ATTR_STRINGS &&
                 between->count == 1 && !between->strings[0].size;
  if (by_token == (between && between->count) || least < 1 ||
      (letters && least > 1)) {
    pestle_onnx_fail(
        call, PESTLE_STATUS_MALFORMED,
        least < 1 ? "attribute 'mincharnum' is below 1"
        : letters ? "its tokens are letters, of which 'mincharnum' wants more "
                    "than one"
                  : "it has to have one of 'tokenexp' and 'separators'");
    return;
  }
  if (pestle_onnx_node_attr(call->node, "stopwords")) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "attribute 'stopwords' is not supported");
    return;
  }
  begin_fields(call, &fields);
  add_number(&fields, pestle_onnx_int(call, "mark", 0) != 0);
  add_number(&fields, least);
  pestle_field_append(&fields, pestle_onnx_string(call, "pad_value", ""));
  pestle_field_append(&fields, pestle_str(by_token ? "t" : "s"));
  if (by_token) pestle_field_append(&fields, token);
  bool fine = by_token ? is_regex(call, token)
                       : add_texts(call, "separators", &fields, &separators);
  for (size_t i = 0; fine && i < separators; ++i) {
    fine = letters || is_regex(call, between->strings[i]);
  }
  int64_t count = pestle_type_count(pestle_onnx_type(x));
  pestle_type_t types[] = {like(x, PESTLE_I32), {.dtype = PESTLE_I64}};
  if (!fine || !add_axis(call, &types[0], count ? room_for(count, -1) : 0)) {
    pestle_strbuf_deinit(&fields);
    return;
  }
  x = pestle_onnx_fill_unreal(call, x, UINT32_MAX,
                              pestle_onnx_scalar(call, PESTLE_I32, -1));
  pestle_node_t* node =
      finish(call, "pestle.s.tokens", &fields, &x, 1, types, 2);
  if (node) call->outputs[0] = bounded_parts(call, node, 1);
}
