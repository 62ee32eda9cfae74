// SPDX-License-Identifier: Apache-2.0
// ai.onnx.ml: the ops on maps, which are their keys and their values (map_inputs.c).
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ml.h"

typedef struct dict_t {
  pestle_value_t *keys, *values;  // [n]
  bool text_keys, text_values;
} dict_t;

static bool read_dict(pestle_onnx_call_t* call, dict_t* d) {
  *d = (dict_t){.keys = pestle_onnx_input(call, 0),
                .values = pestle_onnx_input(call, 1)};
  if (!d->values) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "its input is no map that the model takes; maps are "
                     "inputs of a model alone");
    return false;
  }
  d->text_keys = pestle_onnx_is_text(call->import, d->keys);
  d->text_values = pestle_onnx_is_text(call->import, d->values);
  bool fits = pestle_onnx_dim(d->keys, 0) == pestle_onnx_dim(d->values, 0) &&
              (d->text_keys || dtype_of(d->keys) == PESTLE_I64);
  if (!fits) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its map has %lld keys and %lld values; both are lists of "
                     "one length, and keys strings or i64",
                     (long long)pestle_onnx_dim(d->keys, 0),
                     (long long)pestle_onnx_dim(d->values, 0));
  }
  return fits;
}

static pestle_value_t* marked(pestle_onnx_call_t* call, bool text,
                              pestle_value_t* x) {
  return text ? pestle_onnx_mark_text(call, x) : x;
}

// The value of each key in |wanted| [count], |missing| (of rank 0) where the map has it
// not: [1, count]. Of a key that it has twice the last counts.
static pestle_value_t* look_up(pestle_onnx_call_t* call, pestle_value_t* keys,
                               pestle_value_t* values, pestle_value_t* wanted,
                               pestle_value_t* missing) {
  pestle_formula_t* f = &call->f;
  int64_t n = pestle_onnx_dim(keys, 0), count = pestle_onnx_dim(wanted, 0);
  int64_t row[] = {1, n}, column[] = {count, 1}, out[] = {1, count}, axis = 1;
  pestle_value_t* y = pestle_onnx_broadcast(call, missing, 2, out);
  if (!n || !count) return y;
  pestle_type_t type = {.dtype = PESTLE_I32, .rank = 2, .dims = {count, n}};
  wanted = pestle_f_reshape(f, wanted, 2, column);
  keys = pestle_f_reshape(f, keys, 2, row);
  pestle_value_t* same = pestle_f_eq(f, wanted, keys);
  pestle_value_t* none = pestle_onnx_splat_int(call, &type, -1);
  pestle_value_t* places = pestle_f_iota(f, &type, 1);
  places = pestle_f_select(f, same, places, none);
  places = pestle_onnx_reduce(call, PESTLE_OP_MAXIMUM, places, &axis, 1, false);
  places = pestle_f_reshape(f, places, 2, out);
  pestle_value_t* zero = splat_like(call, places, 0);
  pestle_value_t* found = pestle_f_ge(f, places, zero);
  values = pestle_onnx_take(call, values, pestle_f_maximum(f, places, zero), 0);
  return pestle_f_select(f, found, values, y);
}

static pestle_value_t* one_text(pestle_onnx_call_t* call, const char* text) {
  return pestle_onnx_scalar(call, PESTLE_I32,
                            pestle_onnx_id_of(call, pestle_str(text)));
}

void pestle_onnx_import_ml_dict_vectorizer(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "int64_vocabulary string_vocabulary")) return;
  dict_t d;
  if (!read_dict(call, &d)) return;
  pestle_ml_labels_t labels =
      pestle_ml_labels(call, "int64_vocabulary", "string_vocabulary");
  if (!labels.count || (labels.strings != NULL) != d.text_keys) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     labels.count
                         ? "its vocabulary is of another type than its keys"
                         : "it has neither 'string_vocabulary' nor "
                           "'int64_vocabulary'");
    return;
  }
  pestle_value_t* wanted =
      labels.strings ? pestle_onnx_id_list(call, labels.strings, labels.count)
                     : pestle_onnx_int_list(call, labels.ints, labels.count);
  pestle_value_t* missing =
      d.text_values ? one_text(call, "")
                    : pestle_onnx_scalar(call, dtype_of(d.values), 0);
  call->outputs[0] = marked(call, d.text_values,
                            look_up(call, d.keys, d.values, wanted, missing));
}

// --- CastMap ---

// |values| as the attribute cast_to has them, and in |*missing| what stands where the map
// has none, as ONNX Runtime has it.
static pestle_value_t* cast_values(pestle_onnx_call_t* call, const dict_t* d,
                                   bool* out_text, pestle_value_t** missing) {
  pestle_str_t to = pestle_onnx_string(call, "cast_to", "TO_FLOAT");
  pestle_dtype_t dtype = PESTLE_F32;
  *out_text = pestle_str_equal_c(to, "TO_STRING");
  if (*out_text) {
    *missing = one_text(call, "0.f");
    return d->text_values ? d->values
                          : pestle_onnx_text_of(call, d->values, true);
  }
  if (pestle_str_equal_c(to, "TO_INT64")) {
    dtype = PESTLE_I64;
  } else if (!pestle_str_equal_c(to, "TO_FLOAT")) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "attribute 'cast_to' is '%.*s', known are "
                            "TO_FLOAT, TO_INT64 and TO_STRING",
                            PESTLE_STR_ARG(to));
  }
  *missing = pestle_onnx_scalar(call, dtype, 0);
  return d->text_values ? pestle_onnx_number_of(call, d->values, dtype)
                        : pestle_onnx_convert(call, d->values, dtype);
}

// In the order of their keys.
static pestle_value_t* dense(pestle_onnx_call_t* call, pestle_value_t* keys,
                             pestle_value_t* values) {
  int64_t n = pestle_onnx_dim(keys, 0), row[] = {1, n};
  pestle_type_t type = {.dtype = PESTLE_I32, .rank = 1, .dims = {n}};
  pestle_value_t* at = pestle_f_iota(&call->f, &type, 0);
  if (n > 1) {
    if (!pestle_onnx_sort(call, false, 0, &keys, &at)) return NULL;
    values = pestle_onnx_take(call, values, at, 0);
  }
  return pestle_f_reshape(&call->f, values, 2, row);
}

// Each in the place that its key says; a run in which one says none fails.
static pestle_value_t* sparse(pestle_onnx_call_t* call, pestle_value_t* keys,
                              pestle_value_t* values, pestle_value_t* missing) {
  pestle_formula_t* f = &call->f;
  int64_t most = pestle_onnx_int(call, "max_map", 1), axis = 0;
  if (most < 1 || most > PESTLE_ONNX_MAX_INDICES) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "attribute 'max_map' is %lld; 1 to %lld are taken",
                            (long long)most,
                            (long long)PESTLE_ONNX_MAX_INDICES);
  }
  pestle_type_t type = {.dtype = PESTLE_I64, .rank = 1, .dims = {most}};
  if (pestle_onnx_dim(keys, 0)) {
    pestle_value_t* low = pestle_f_ge(f, keys, splat_like(call, keys, 0));
    pestle_value_t* high =
        pestle_f_lt(f, keys, splat_like(call, keys, (double)most));
    pestle_value_t* inside = pestle_onnx_reduce(
        call, PESTLE_OP_AND, pestle_f_and(f, low, high), &axis, 1, false);
    if (!pestle_onnx_must_hold(call, inside) && !call->f.status) {
      return pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                              "it is sparse within a body of another node");
    }
  }
  return look_up(call, keys, values, pestle_f_iota(f, &type, 0), missing);
}

void pestle_onnx_import_ml_cast_map(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "cast_to map_form max_map")) return;
  dict_t d;
  bool text;
  pestle_value_t* missing = NULL;
  if (!read_dict(call, &d)) return;
  pestle_str_t form = pestle_onnx_string(call, "map_form", "DENSE");
  bool is_dense = pestle_str_equal_c(form, "DENSE");
  if (d.text_keys || (!is_dense && !pestle_str_equal_c(form, "SPARSE"))) {
    pestle_onnx_fail(
        call, PESTLE_STATUS_MALFORMED,
        d.text_keys ? "the keys of its map are strings; it takes i64"
                    : "attribute 'map_form' is '%.*s', known are DENSE and "
                      "SPARSE",
        PESTLE_STR_ARG(form));
    return;
  }
  pestle_value_t* values = cast_values(call, &d, &text, &missing);
  pestle_value_t* y = is_dense ? dense(call, d.keys, values)
                               : sparse(call, d.keys, values, missing);
  call->outputs[0] = marked(call, text, y);
}
