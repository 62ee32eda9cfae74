// SPDX-License-Identifier: Apache-2.0
// ai.onnx.ml: the ops that look elements up. Keys that lie close together, as the
// ids of strings do, index a table; others are sorted, and a search by halves finds
// where an element would stand.
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "frontend/onnx/bounded.h"
#include "frontend/onnx/ml.h"

// Keys or values: strings (as ids), integers or floats.
typedef struct column_t {
  bool text;
  pestle_dtype_t dtype;  // as elements of a tensor
  size_t count;
  int64_t* ints;   // or NULL
  double* floats;  // or NULL
} column_t;

static bool no_memory(const void* data, size_t count) {
  return !data && count;
}

static bool strings_column(pestle_onnx_call_t* call,
                           const pestle_str_t* strings, size_t count,
                           column_t* out) {
  *out = (column_t){.text = true, .dtype = PESTLE_I32, .count = count};
  out->ints = pestle_onnx_scratch(call, (count + 1) * sizeof(int64_t));
  for (size_t i = 0; out->ints && i < count; ++i)
    out->ints[i] = pestle_onnx_id_of(call, strings[i]);
  return !call->f.status;
}

static bool ints_column(pestle_onnx_call_t* call, pestle_dtype_t dtype,
                        const int64_t* data, size_t count, column_t* out) {
  *out = (column_t){.dtype = dtype, .count = count};
  out->ints = pestle_onnx_scratch(call, (count + 1) * sizeof(int64_t));
  if (out->ints && count) memcpy(out->ints, data, count * sizeof(int64_t));
  return out->ints != NULL;
}

static bool floats_column(pestle_onnx_call_t* call, const float* data,
                          size_t count, column_t* out) {
  *out = (column_t){.dtype = PESTLE_F32, .count = count};
  out->floats = pestle_onnx_scratch(call, (count + 1) * sizeof(double));
  for (size_t i = 0; out->floats && i < count; ++i)
    out->floats[i] = (double)data[i];
  return out->floats != NULL;
}

static bool tensor_column(pestle_onnx_call_t* call,
                          const pestle_onnx_tensor_t* tensor, column_t* out) {
  pestle_elements_t e;
  pestle_onnx_import_t* import = call->import;
  bool text = tensor->data_type == PESTLE_ONNX_STRING;
  if (pestle_onnx_keep(
          call, text ? pestle_onnx_tensor_ids(tensor, import->strings,
                                              &import->arena, &e)
                     : pestle_onnx_tensor_elements(tensor, import->files,
                                                   &import->arena, &e))) {
    return false;
  }
  if (pestle_onnx_refuses_complex(call, e.type.dtype)) return false;
  size_t count = (size_t)pestle_type_count(&e.type);
  bool is_float = pestle_dtype_is(e.type.dtype, PESTLE_KIND_FLOAT);
  *out = (column_t){.text = text, .dtype = e.type.dtype, .count = count};
  if (is_float) {
    out->floats = pestle_onnx_scratch(call, (count + 1) * sizeof(double));
  } else {
    out->ints = pestle_onnx_scratch(call, (count + 1) * sizeof(int64_t));
  }
  if (call->f.status) return false;
  for (size_t i = 0; i < count; ++i) {
    if (is_float) out->floats[i] = pestle_onnx_element_f64(&e, i);
    if (!is_float) out->ints[i] = pestle_onnx_element_i64(&e, i);
  }
  return true;
}

static bool attr_column(pestle_onnx_call_t* call,
                        const pestle_onnx_attr_t* attr, column_t* out) {
  if (attr->tensor) return tensor_column(call, attr->tensor, out);
  switch (attr->kind) {
    case PESTLE_ONNX_ATTR_STRINGS:
      return strings_column(call, attr->strings, attr->count, out);
    case PESTLE_ONNX_ATTR_INTS:
      return ints_column(call, PESTLE_I64, attr->ints, attr->count, out);
    case PESTLE_ONNX_ATTR_FLOATS:
      return floats_column(call, attr->floats, attr->count, out);
    case PESTLE_ONNX_ATTR_STRING:
      return strings_column(call, &attr->s, 1, out);
    case PESTLE_ONNX_ATTR_INT:
      return ints_column(call, PESTLE_I64, &attr->i, 1, out);
    case PESTLE_ONNX_ATTR_FLOAT:
      return floats_column(call, &attr->f, 1, out);
    case PESTLE_ONNX_ATTR_NONE:
    case PESTLE_ONNX_ATTR_TENSOR:
    case PESTLE_ONNX_ATTR_GRAPH:
    case PESTLE_ONNX_ATTR_OTHER:
    case PESTLE_ONNX_ATTR_SPARSE:
      break;
  }
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "attribute '%.*s' holds no strings and no numbers",
                   PESTLE_STR_ARG(attr->name));
  return false;
}

// The one of |names| that the node has; false, with an error kept, for none or two.
static bool one_column(pestle_onnx_call_t* call, const char* const* names,
                       column_t* out) {
  const pestle_onnx_attr_t* found = NULL;
  for (size_t i = 0; names[i]; ++i) {
    const pestle_onnx_attr_t* attr =
        pestle_onnx_node_attr(call->node, names[i]);
    if (!attr || (!attr->count && !attr->tensor)) continue;
    if (found) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "it has both '%.*s' and '%s', of which one can be meant",
                       PESTLE_STR_ARG(found->name), names[i]);
      return false;
    }
    found = attr;
  }
  if (!found) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it has none of its attributes '%s' and so on", names[0]);
    return false;
  }
  return attr_column(call, found, out);
}

// What there is where nothing is found, in the kind of |values|.
static bool read_default(pestle_onnx_call_t* call, const column_t* values,
                         column_t* out) {
  const pestle_onnx_attr_t* attr =
      pestle_onnx_node_attr(call->node, "default_tensor");
  const char* name = values->text     ? "default_string"
                     : values->floats ? "default_float"
                                      : "default_int64";
  static const pestle_str_t unused = {"_Unused", 7};
  static const int64_t none = -1;
  static const float zero = -0.0f;
  if (!attr) attr = pestle_onnx_node_attr(call->node, name);
  bool ok = attr             ? attr_column(call, attr, out)
            : values->text   ? strings_column(call, &unused, 1, out)
            : values->floats ? floats_column(call, &zero, 1, out)
                             : ints_column(call, PESTLE_I64, &none, 1, out);
  if (!ok) return false;
  if (out->count == 1 && out->text == values->text &&
      (out->floats != NULL) == (values->floats != NULL)) {
    return true;
  }
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "its default is not one element of its values' type");
  return false;
}

// --- Tables ---

// Elements |order| of |c|, or all in their order where that is NULL, and behind them
// the one of |last| (may be NULL).
static pestle_value_t* tensor_of(pestle_onnx_call_t* call, const column_t* c,
                                 const size_t* order, const column_t* last) {
  size_t count = c->count + (last != NULL), size = pestle_dtype_size(c->dtype);
  char* data = pestle_f_memory(&call->f, count * size);
  if (no_memory(data, count)) return NULL;
  for (size_t i = 0; i < count; ++i) {
    const column_t* from = i < c->count ? c : last;
    size_t at = i < c->count ? (order ? order[i] : i) : 0;
    if (from->floats) {
      pestle_onnx_store_f64(c->dtype, from->floats[at], data + i * size);
    } else {
      pestle_onnx_store_bits(c->dtype, (uint64_t)from->ints[at],
                             data + i * size);
    }
  }
  return pestle_f_elements(
      &call->f,
      &(pestle_elements_t){
          .type = {.dtype = c->dtype, .rank = 1, .dims = {(int64_t)count}},
          .data = data,
          .size = count * size});
}

typedef struct entry_t {
  int64_t i;
  double f;
  size_t at;
} entry_t;

static int compare(const void* a, const void* b) {
  const entry_t *x = a, *y = b;
  if (x->f != y->f) return x->f < y->f ? -1 : 1;
  return x->i < y->i ? -1 : x->i > y->i;
}

// The keys ascending, without a NaN, whose place |*out_nan| becomes (or SIZE_MAX).
// Keys given twice are refused.
static bool sort_keys(pestle_onnx_call_t* call, const column_t* keys,
                      entry_t** out, size_t* out_count, size_t* out_nan) {
  entry_t* e = pestle_onnx_scratch(call, (keys->count + 1) * sizeof(*e));
  if (!e) return false;
  size_t n = 0;
  bool twice = false;
  *out_nan = SIZE_MAX;
  for (size_t i = 0; i < keys->count; ++i) {
    bool nan = keys->floats && isnan(keys->floats[i]);
    twice = twice || (nan && *out_nan != SIZE_MAX);
    if (nan) *out_nan = i;
    if (nan) continue;
    e[n++] = (entry_t){.i = keys->ints ? keys->ints[i] : 0,
                       .f = keys->floats ? keys->floats[i] : 0,
                       .at = i};
  }
  qsort(e, n, sizeof(*e), compare);
  for (size_t i = 1; i < n; ++i)
    twice = twice || (e[i].i == e[i - 1].i && e[i].f == e[i - 1].f);
  if (twice) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it has a key twice; what such a one stands for is not "
                     "told");
    return false;
  }
  *out = e;
  *out_count = n;
  return true;
}

// Where each of |x| stands among |count| sorted integers: its key's place, or
// |missing|. By a table from the least to the greatest.
static pestle_value_t* by_table(pestle_onnx_call_t* call, pestle_value_t* x,
                                const entry_t* e, size_t count,
                                size_t missing) {
  pestle_formula_t* f = &call->f;
  int64_t least = e[0].i, width = e[count - 1].i - least + 1;
  int64_t* table =
      pestle_onnx_scratch(call, (size_t)(width + 1) * sizeof(*table));
  if (!table) return NULL;
  for (int64_t i = 0; i <= width; ++i)
    table[i] = (int64_t)missing;
  for (size_t i = 0; i < count; ++i)
    table[e[i].i - least] = (int64_t)e[i].at;
  x = pestle_onnx_convert(call, x, PESTLE_I64);
  pestle_type_t scalar = {.dtype = PESTLE_I64};
  pestle_value_t* low = pestle_onnx_splat_int(call, &scalar, least);
  pestle_value_t* past = pestle_onnx_splat_int(call, &scalar, least + width);
  // Compared before anything is taken off, which might overflow.
  pestle_value_t* outside = pestle_f_lt(f, x, low);
  outside = pestle_f_or(f, outside, pestle_f_ge(f, x, past));
  x = pestle_f_select(f, outside, past, x);
  x = sub(call, x, low);
  pestle_value_t* list = pestle_onnx_int_list(call, table, (size_t)width + 1);
  return pestle_onnx_take(call, list, x, 0);
}

// The same by halves among keys of any kind.
static pestle_value_t* by_halves(pestle_onnx_call_t* call, pestle_value_t* x,
                                 const column_t* keys, const entry_t* e,
                                 size_t count, size_t missing) {
  pestle_formula_t* f = &call->f;
  size_t* order = pestle_onnx_scratch(call, (count + 1) * sizeof(*order));
  int64_t* places = pestle_onnx_scratch(call, (count + 1) * sizeof(*places));
  if (!order || !places) return NULL;
  for (size_t i = 0; i < count; ++i) {
    order[i] = e[i].at;
    places[i] = (int64_t)e[i].at;
  }
  column_t sorted = *keys;
  sorted.count = count;
  pestle_value_t* list = tensor_of(call, &sorted, order, NULL);
  pestle_type_t type = *pestle_onnx_type(x);
  type.dtype = PESTLE_I64;
  pestle_value_t* at = pestle_onnx_splat_int(call, &type, 0);
  pestle_value_t* last = pestle_onnx_splat_int(call, &type, (int64_t)count - 1);
  size_t step = 1;
  while (step < count)
    step *= 2;
  for (; step; step /= 2) {
    pestle_value_t* further = pestle_f_plus(f, at, (double)step);
    pestle_value_t* within = pestle_f_le(f, further, last);
    pestle_value_t* key =
        pestle_onnx_take(call, list, pestle_f_minimum(f, further, last), 0);
    pestle_value_t* goes = pestle_f_and(f, within, pestle_f_le(f, key, x));
    at = pestle_f_select(f, goes, further, at);
  }
  pestle_value_t* found =
      pestle_f_eq(f, pestle_onnx_take(call, list, at, 0), x);
  pestle_value_t* numbers = pestle_onnx_int_list(call, places, count);
  at = pestle_onnx_take(call, numbers, at, 0);
  return pestle_f_select(f, found, at,
                         pestle_onnx_splat_int(call, &type, (int64_t)missing));
}

// values[i] where |x| is keys[i], else |missing|.
static pestle_value_t* look_up(pestle_onnx_call_t* call, pestle_value_t* x,
                               const column_t* keys, const column_t* values,
                               const column_t* missing) {
  entry_t* e;
  size_t count, nan, none = values->count;
  bool text = pestle_onnx_is_text(call->import, x);
  if (keys->count != values->count || !keys->count) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "it has %zu keys and %zu values", keys->count,
                            values->count);
  }
  if (keys->text != text || (!text && dtype_of(x) != keys->dtype)) {
    return pestle_onnx_fail(
        call, PESTLE_STATUS_MALFORMED, "its keys are of %s, its input of %s",
        keys->text ? "strings" : pestle_dtype_info(keys->dtype)->name,
        text ? "strings" : pestle_dtype_info(dtype_of(x))->name);
  }
  if (!sort_keys(call, keys, &e, &count, &nan)) return NULL;
  pestle_value_t* at = NULL;
  // Of extents that overflow a difference the second test is of garbage, which the
  // first has seen.
  bool close = keys->ints && count && e[0].i > INT64_MIN / 2 &&
               e[count - 1].i < INT64_MAX / 2 &&
               e[count - 1].i - e[0].i < 4 * (int64_t)count + 4096;
  if (close) {
    at = by_table(call, x, e, count, none);
  } else if (count) {
    at = by_halves(call, x, keys, e, count, none);
  } else {
    pestle_type_t type = *pestle_onnx_type(x);
    type.dtype = PESTLE_I64;
    at = pestle_onnx_splat_int(call, &type, (int64_t)none);
  }
  if (nan != SIZE_MAX) {
    pestle_value_t* is_nan = pestle_f_ne(&call->f, x, x);
    pestle_value_t* there =
        pestle_onnx_splat_int(call, pestle_onnx_type(at), (int64_t)nan);
    at = pestle_f_select(&call->f, is_nan, there, at);
  }
  pestle_value_t* table = tensor_of(call, values, NULL, missing);
  pestle_value_t* y = pestle_onnx_take(call, table, at, 0);
  return values->text ? pestle_onnx_mark_text(call, y) : y;
}

// --- The ops ---

// Opset 1: the list of classes says both ways.
static void label_encoder_1(pestle_onnx_call_t* call) {
  static const char* const names[] = {"classes_strings", NULL};
  column_t classes, numbers, missing;
  if (!one_column(call, names, &classes)) return;
  bool text = pestle_onnx_is_text(call->import, call->inputs[0]);
  numbers = (column_t){.dtype = PESTLE_I64, .count = classes.count};
  numbers.ints =
      pestle_onnx_scratch(call, (classes.count + 1) * sizeof(int64_t));
  if (!numbers.ints) return;
  for (size_t i = 0; i < classes.count; ++i)
    numbers.ints[i] = (int64_t)i;
  const column_t* keys = text ? &classes : &numbers;
  const column_t* values = text ? &numbers : &classes;
  if (!read_default(call, values, &missing)) return;
  call->outputs[0] = look_up(call, call->inputs[0], keys, values, &missing);
}

void pestle_onnx_import_ml_label_encoder(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(
          call,
          "classes_strings default_float default_int64 default_string "
          "default_tensor keys_floats keys_int64s keys_strings "
          "keys_tensor values_floats values_int64s values_strings "
          "values_tensor"))
    return;
  static const char* const keys_of[] = {"keys_strings", "keys_int64s",
                                        "keys_floats", "keys_tensor", NULL};
  static const char* const values_of[] = {"values_strings", "values_int64s",
                                          "values_floats", "values_tensor",
                                          NULL};
  column_t keys, values, missing;
  if (call->opset < 2) {
    label_encoder_1(call);
    return;
  }
  if (!one_column(call, keys_of, &keys) ||
      !one_column(call, values_of, &values) ||
      !read_default(call, &values, &missing)) {
    return;
  }
  call->outputs[0] = look_up(call, call->inputs[0], &keys, &values, &missing);
}

void pestle_onnx_import_ml_category_mapper(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(
          call, "cats_int64s cats_strings default_int64 default_string"))
    return;
  static const char* const strings_of[] = {"cats_strings", NULL};
  static const char* const ints_of[] = {"cats_int64s", NULL};
  column_t strings, ints, missing;
  if (!one_column(call, strings_of, &strings) ||
      !one_column(call, ints_of, &ints)) {
    return;
  }
  bool text = pestle_onnx_is_text(call->import, call->inputs[0]);
  const column_t* keys = text ? &strings : &ints;
  const column_t* values = text ? &ints : &strings;
  if (!read_default(call, values, &missing)) return;
  call->outputs[0] = look_up(call, call->inputs[0], keys, values, &missing);
}

void pestle_onnx_import_ml_one_hot(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "cats_int64s cats_strings zeros")) return;
  static const char* const names[] = {"cats_strings", "cats_int64s", NULL};
  pestle_formula_t* f = &call->f;
  pestle_value_t* x = call->inputs[0];
  column_t cats;
  entry_t* sorted;
  size_t count, nan;
  if (!one_column(call, names, &cats) ||
      !sort_keys(call, &cats, &sorted, &count, &nan)) {
    return;
  }
  if (cats.text != pestle_onnx_is_text(call->import, x)) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its categories are %sstrings, its input is %sof them",
                     cats.text ? "" : "no ", cats.text ? "not " : "");
    return;
  }
  int32_t rank = rank_of(x) + 1;
  if (rank > PESTLE_MAX_RANK) return;
  pestle_type_t type = *pestle_onnx_type(x);
  type.dims[type.rank++] = 1;
  // Numbers are cut to integers, as the text says; NaN is of no category.
  x = pestle_f_reshape(f, x, rank, type.dims);
  pestle_value_t* number = pestle_f_eq(f, x, x);
  x = pestle_onnx_convert(call, x, cats.dtype);
  pestle_value_t* is = pestle_f_eq(f, x, tensor_of(call, &cats, NULL, NULL));
  if (pestle_dtype_is(type.dtype, PESTLE_KIND_FLOAT)) {
    is = pestle_f_and(
        f, is,
        pestle_onnx_broadcast(call, number, rank, pestle_onnx_type(is)->dims));
  }
  call->outputs[0] = pestle_onnx_convert(call, is, PESTLE_F32);
  if (pestle_onnx_int(call, "zeros", 1)) return;
  // Else the run fails where there is no category, in rows that are real.
  if (!pestle_onnx_allow_real(call, 0, 0)) return;
  int64_t axes[PESTLE_MAX_RANK], last = rank - 1;
  pestle_value_t* known =
      pestle_onnx_reduce(call, PESTLE_OP_OR, is, &last, 1, false);
  for (int32_t i = 0; i < rank - 1; ++i)
    axes[i] = i;
  known = pestle_onnx_reduce(call, PESTLE_OP_AND, known, axes, (size_t)rank - 1,
                             false);
  if (!pestle_onnx_must_hold(call, known) && !call->f.status) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "attribute 'zeros' is 0 inside of a loop or a branch: a "
                     "run cannot tell there that a category is not known");
  }
}

void pestle_onnx_import_ml_zip_map(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(call, "classlabels_int64s classlabels_strings"))
    return;
  pestle_value_t* x = call->inputs[0];
  pestle_ml_labels_t labels =
      pestle_ml_labels(call, "classlabels_int64s", "classlabels_strings");
  int64_t columns = pestle_onnx_dim(x, rank_of(x) - 1);
  if (call->f.status) return;
  if (labels.count && (int64_t)labels.count != columns) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "it has %zu class labels for %lld columns", labels.count,
                     (long long)columns);
    return;
  }
  // A list of maps is no tensor: the numbers stay in their columns, which are in
  // the labels' order.
  call->outputs[0] = x;
}
