// SPDX-License-Identifier: Apache-2.0
// Every row of the op table with inputs and attributes that make no sense: any
// rank, extent and dtype, lists of any length, numbers at their limits. The
// file is a good protobuf each time, so that all of it reaches the importers;
// each import ends with a status that says what is wrong, or in a module that
// verifies. The seed is fixed; PESTLE_HOSTILE_ROUNDS asks for more models an
// op, PESTLE_HOSTILE_OP for one op alone.
#include <math.h>

#include "onnx_bounded.h"

#define ROUNDS 200
#define LAST_OPSET 28
#define PESTLE_ONNX_LAST_OPSET LAST_OPSET
#define PESTLE_ONNX_LAST_ML_OPSET 5

typedef struct row_t {
  const char *name, *domain;
  int since, until, min_inputs, max_inputs, max_outputs;
} row_t;

static const row_t rows[] = {
#define PESTLE_ONNX_OP(name, domain, since, until, min_in, max_in, max_out, \
                       known, bounded, texts, fn)                           \
  {#name, domain, since, until, min_in, max_in, max_out},
#include "frontend/onnx/onnx_ops.def"
};

// --- Choices ---

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static size_t below(uint64_t* seed, size_t limit) {
  return (size_t)(next_random(seed) >> 11) % limit;
}

static int64_t any_int(uint64_t* seed) {
  static const int64_t odd[] = {INT64_MIN, INT64_MAX, INT32_MIN,
                                INT32_MAX, 1LL << 32, -(1LL << 40),
                                65536,     1LL << 62, -(1LL << 62)};
  size_t kind = below(seed, 20);
  if (kind == 0) return odd[below(seed, COUNT(odd))];
  if (kind < 4) return (int64_t)below(seed, 24) - 12;
  return (int64_t)below(seed, 6) - 1;
}

static float any_float(uint64_t* seed) {
  static const float odd[] = {0,     -1,     (float)NAN, (float)INFINITY,
                              1e30f, -1e30f, 1e-30f,     (float)-INFINITY,
                              65504, 0.3f};
  return below(seed, 3) ? (float)below(seed, 8) * 0.5f
                        : odd[below(seed, COUNT(odd))];
}

static int64_t any_extent(uint64_t* seed, bool huge) {
  static const int64_t much[] = {INT32_MAX, 1LL << 31, 1LL << 40, 65537};
  size_t kind = below(seed, 24);
  if (huge && kind == 0) return much[below(seed, COUNT(much))];
  return kind < 3 ? 0 : 1 + (int64_t)below(seed, 6);
}

// --- Attributes: all that importers read, of which a node gets a few ---

static const char* const ints[] = {"align_corners",
                                   "allowzero",
                                   "antialias",
                                   "axis",
                                   "batch_axis",
                                   "batch_dims",
                                   "block_size",
                                   "blocksize",
                                   "broadcast",
                                   "ceil_mode",
                                   "count_include_pad",
                                   "detect_negative",
                                   "detect_positive",
                                   "dtype",
                                   "end",
                                   "exclude_outside",
                                   "exclusive",
                                   "fmod",
                                   "group",
                                   "hidden_size",
                                   "ignore_index",
                                   "input_forget",
                                   "interleaved",
                                   "inverse",
                                   "is_causal",
                                   "k",
                                   "keepdims",
                                   "kv_num_heads",
                                   "layout",
                                   "left_window_size",
                                   "linear_before_reset",
                                   "max_gram_length",
                                   "max_skip_count",
                                   "min_gram_length",
                                   "noop_with_empty_axes",
                                   "num_groups",
                                   "num_heads",
                                   "offset_group",
                                   "onesided",
                                   "output_datatype",
                                   "output_dtype",
                                   "output_height",
                                   "output_width",
                                   "p",
                                   "periodic",
                                   "precision",
                                   "q_num_heads",
                                   "qk_matmul_output_mode",
                                   "reverse",
                                   "right_window_size",
                                   "rotary_embedding_dim",
                                   "sampling_ratio",
                                   "saturate",
                                   "select_last_index",
                                   "size",
                                   "softmax_precision",
                                   "spatial",
                                   "start",
                                   "storage_order",
                                   "time_axis",
                                   "to",
                                   "training_mode",
                                   "transA",
                                   "transB",
                                   "upper"};
static const char* const lists[] = {
    "pooled_shape", "ngram_counts", "ngram_indexes", "pool_int64s",    "axes",
    "dilations",    "ends",         "kernel_shape",  "output_padding", "pads",
    "perm",         "scales",       "output_shape",  "paddings",       "shape",
    "split",        "starts",       "strides"};
static const char* const floats[] = {
    "alpha",   "beta",          "bias",
    "clip",    "cubic_coeff_a", "extrapolation_value",
    "epsilon", "gamma",         "lambd",
    "scale",   "softcap",       "value"};
static const char* const texts[][6] = {
    {"activation", "silu", "none"},
    {"update_rule", "linear", "gated", "delta", "gated_delta"},
    {"padding_mode", "zeros", "border", "reflection"},
    {"approximate", "none", "tanh"},
    {"auto_pad", "SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"},
    {"coordinate_transformation_mode", "align_corners", "half_pixel",
     "tf_crop_and_resize", "asymmetric", "half_pixel_symmetric"},
    {"direction", "forward", "reverse", "bidirectional", "LEFT", "RIGHT"},
    {"equation", "ij,jk", "...ii->...i", "abcdefghij->j", "bij,bjk->bik", ".,"},
    {"keep_aspect_ratio_policy", "stretch", "not_larger", "not_smaller"},
    {"mode", "nearest", "linear", "cubic", "reflect", "CRD"},
    {"nearest_mode", "floor", "ceil"},
    {"reduction", "none", "sum", "mean"},
};

static void put_list(uint64_t* seed, pb_t* attrs, const char* name,
                     size_t rank) {
  int64_t values[40];
  size_t count = below(seed, 8) ? rank : below(seed, 12);
  bool doubled = strcmp(name, "pads") == 0 && below(seed, 8);
  if (below(seed, 2) && count > 2) count -= 2;
  if (doubled) count *= 2;
  for (size_t i = 0; i < count; ++i)
    values[i] = any_int(seed);
  onnx_attr_ints(attrs, name, count, values);
}

static void put_float(uint64_t* seed, pb_t* attrs, const char* name) {
  pb_t attr = {0};
  pb_text(&attr, 1, name);
  pb_f32(&attr, 2, any_float(seed));
  pb_int(&attr, 20, 1);
  pb_message(attrs, 5, attr);
}

// Some have the right name and the wrong kind.
static void put_wrong_kind(uint64_t* seed, pb_t* attrs) {
  static const char* const constants[] = {"value_floats", "value_ints",
                                          "value_float", "value_int"};
  const char* name = below(seed, 2) ? lists[below(seed, COUNT(lists))]
                                    : constants[below(seed, COUNT(constants))];
  switch (below(seed, 3)) {
    case 0:
      put_list(seed, attrs, name, 3);
      break;
    case 1:
      put_float(seed, attrs, name);
      break;
    default:
      onnx_attr_text(attrs, name, "x");
  }
}

static void put_attributes(uint64_t* seed, pb_t* attrs, size_t rank) {
  size_t one_in = 2 + below(seed, 24);
  if (!below(seed, 8)) put_wrong_kind(seed, attrs);
  for (size_t i = 0; i < COUNT(ints); ++i) {
    if (below(seed, one_in)) continue;
    onnx_attr_int(attrs, ints[i], any_int(seed));
  }
  for (size_t i = 0; i < COUNT(lists); ++i) {
    if (!below(seed, one_in)) put_list(seed, attrs, lists[i], rank);
  }
  for (size_t i = 0; i < COUNT(floats); ++i) {
    if (!below(seed, one_in)) put_float(seed, attrs, floats[i]);
  }
  for (size_t i = 0; i < COUNT(texts); ++i) {
    const char* text = texts[i][1 + below(seed, 5)];
    if (!below(seed, one_in)) {
      onnx_attr_text(attrs, texts[i][0], text ? text : "?");
    }
  }
  if (!below(seed, one_in)) {
    int64_t dims[1] = {(int64_t)below(seed, 3)};
    float data[2] = {any_float(seed), 1};
    onnx_attr_message(
        attrs, "value", 4, 5,
        onnx_tensor("", ONNX_FLOAT, 1, dims, data, (size_t)dims[0] * 4));
  }
}

typedef struct shape_t {
  size_t rank;
  int64_t dims[20];
} shape_t;

// --- Of ai.onnx.ml: lists that mostly fit each other, and then nearly ---

static void put_ints(uint64_t* seed, pb_t* attrs, const char* name,
                     size_t count, int64_t low, size_t range) {
  int64_t values[40];
  if (!below(seed, 12)) count = below(seed, 8);
  for (size_t i = 0; i < count; ++i) {
    values[i] = low + (int64_t)below(seed, range);
    if (!below(seed, 60)) values[i] = any_int(seed);
  }
  if (below(seed, 40)) onnx_attr_ints(attrs, name, count, values);
}

static void put_floats(uint64_t* seed, pb_t* attrs, const char* name,
                       size_t count) {
  pb_t attr = {0};
  if (!below(seed, 12)) count = below(seed, 8);
  pb_text(&attr, 1, name);
  for (size_t i = 0; i < count; ++i)
    pb_f32(&attr, 7, any_float(seed));
  pb_int(&attr, 20, 6);
  pb_message(attrs, 5, attr);
}

static void put_words(uint64_t* seed, pb_t* attrs, const char* name,
                      size_t count, const char* const* words, size_t range) {
  pb_t attr = {0};
  pb_text(&attr, 1, name);
  for (size_t i = 0; i < count; ++i)
    pb_text(&attr, 9, words[below(seed, range)]);
  pb_int(&attr, 20, 8);
  pb_message(attrs, 5, attr);
}

static void put_trees(uint64_t* seed, pb_t* attrs, const char* role) {
  static const char* const modes[] = {"BRANCH_LEQ", "LEAF",       "BRANCH_EQ",
                                      "LEAF",       "BRANCH_GTE", "LEAF",
                                      "BRANCH_NEQ", "BRANCH_UP"};
  static const char* const of_nodes[] = {"nodes_treeids", "nodes_featureids",
                                         "nodes_missing_value_tracks_true"};
  size_t n = 1 + below(seed, 9), leaves = 1 + below(seed, 6);
  int64_t ids[40];
  char name[40];
  for (size_t i = 0; i < n; ++i)
    ids[i] = below(seed, 30) ? (int64_t)i : any_int(seed);
  onnx_attr_ints(attrs, "nodes_nodeids", n, ids);
  for (size_t i = 0; i < COUNT(of_nodes); ++i)
    put_ints(seed, attrs, of_nodes[i], n, 0, 1 + below(seed, 2));
  put_ints(seed, attrs, "nodes_truenodeids", n, 0, n);
  put_ints(seed, attrs, "nodes_falsenodeids", n, 0, n);
  put_floats(seed, attrs, "nodes_values", n);
  put_words(seed, attrs, "nodes_modes", n, modes,
            below(seed, 8) ? 7 : COUNT(modes));
  static const char* const parts[] = {"treeids", "nodeids", "ids"};
  for (size_t i = 0; i < COUNT(parts); ++i) {
    snprintf(name, sizeof(name), "%s_%s", role, parts[i]);
    put_ints(seed, attrs, name, leaves, 0, i == 1 ? n : 1);
  }
  snprintf(name, sizeof(name), "%s_weights", role);
  put_floats(seed, attrs, name, leaves);
  // Opset 5's.
  put_ints(seed, attrs, "tree_roots", 1 + below(seed, 2), 0, n);
  put_ints(seed, attrs, "nodes_trueleafs", n, 0, 2);
  put_ints(seed, attrs, "nodes_falseleafs", n, 0, 2);
  put_ints(seed, attrs, "leaf_targetids", leaves, 0, 1);
  put_floats(seed, attrs, "nodes_splits", n);
  put_floats(seed, attrs, "leaf_weights", leaves);
  put_floats(seed, attrs, "membership_values", below(seed, 6));
  int64_t dims[1] = {(int64_t)n};
  uint8_t kinds[40];
  for (size_t i = 0; i < n; ++i)
    kinds[i] = (uint8_t)below(seed, below(seed, 8) ? 7 : 9);
  if (below(seed, 2)) return;
  onnx_attr_message(attrs, "nodes_modes", 4, 5,
                    onnx_tensor("", 2, 1, dims, kinds, n));
}

static void put_ml(uint64_t* seed, pb_t* attrs, const shape_t* first) {
  static const char* const words[] = {"red", "green", "", "blue", "\xff"};
  static const char* const posts[] = {"NONE",         "SOFTMAX", "LOGISTIC",
                                      "SOFTMAX_ZERO", "PROBIT",  "TANH"};
  static const char* const kernels[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  int64_t features = first->rank ? first->dims[first->rank - 1] : 1;
  size_t width = features > 0 && features < 9 ? (size_t)features : 1;
  size_t classes = 1 + below(seed, 3), range = below(seed, 10) ? 4 : 5;
  put_trees(seed, attrs, below(seed, 2) ? "target" : "class");
  if (below(seed, 2)) put_floats(seed, attrs, "base_values", classes);
  if (below(seed, 2))
    put_ints(seed, attrs, "classlabels_int64s", classes, 0, 5);
  if (below(seed, 2)) put_ints(seed, attrs, "classlabels_ints", classes, 0, 5);
  if (!below(seed, 3))
    put_words(seed, attrs, "classlabels_strings", classes, words, range);
  onnx_attr_text(attrs, "post_transform", posts[below(seed, COUNT(posts))]);
  onnx_attr_text(attrs, "kernel_type", kernels[below(seed, COUNT(kernels))]);
  put_floats(seed, attrs, "kernel_params", 3);
  size_t vectors = below(seed, 3) * classes;
  put_ints(seed, attrs, "vectors_per_class", classes, 1, 1);
  put_floats(seed, attrs, "support_vectors", vectors * width);
  put_floats(seed, attrs, "coefficients",
             below(seed, 2) ? classes * width : vectors * (classes - 1));
  put_floats(seed, attrs, "rho", 1 + below(seed, 3));
  put_floats(seed, attrs, "intercepts", classes);
  put_floats(seed, attrs, "offset", below(seed, 2) ? width : 1);
  put_floats(seed, attrs, "imputed_value_floats", below(seed, 2) ? width : 1);
  put_ints(seed, attrs, "inputdimensions", 1 + below(seed, 2), 0, 5);
  size_t keys = 1 + below(seed, 4);
  if (below(seed, 2)) put_ints(seed, attrs, "keys_int64s", keys, -2, 9);
  if (!below(seed, 3)) put_floats(seed, attrs, "keys_floats", keys);
  if (!below(seed, 3))
    put_words(seed, attrs, "keys_strings", keys, words, range);
  if (below(seed, 2)) put_floats(seed, attrs, "values_floats", keys);
  if (!below(seed, 3)) put_ints(seed, attrs, "values_int64s", keys, 0, 9);
  if (below(seed, 2)) put_ints(seed, attrs, "cats_int64s", keys, -2, 9);
  if (!below(seed, 3))
    put_words(seed, attrs, "cats_strings", keys, words, range);
  if (below(seed, 2)) onnx_attr_int(attrs, "zeros", (int64_t)below(seed, 2));
  if (below(seed, 2)) onnx_attr_int(attrs, "n_targets", 1);
  if (below(seed, 2)) onnx_attr_int(attrs, "targets", (int64_t)classes);
  if (below(seed, 2)) onnx_attr_int(attrs, "n_supports", (int64_t)vectors);
}

// --- Inputs ---

// Often like |first| in part, since nothing that differs everywhere gets far.
static shape_t any_shape(uint64_t* seed, const shape_t* first, bool huge) {
  shape_t s = {.rank = 1 + below(seed, 5)};
  if (!below(seed, 8)) s.rank = below(seed, 9);
  if (first && below(seed, 2)) s.rank = first->rank;
  for (size_t i = 0; i < s.rank; ++i) {
    s.dims[i] = any_extent(seed, huge);
    if (first && i < first->rank && below(seed, 2)) s.dims[i] = first->dims[i];
  }
  return s;
}

static int any_type(uint64_t* seed, int usual) {
  static const int others[] = {1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 13, 16, 17};
  return below(seed, 4) ? usual : others[below(seed, COUNT(others))];
}

static void put_argument(uint64_t* seed, pb_t* graph, const char* name,
                         const shape_t* shape) {
  char dims[400] = "";
  size_t at = 0;
  for (size_t i = 0; i < shape->rank; ++i) {
    at += (size_t)snprintf(dims + at, sizeof(dims) - at, i ? ",%lld" : "%lld",
                           (long long)shape->dims[i]);
  }
  onnx_input(graph, name, any_type(seed, ONNX_FLOAT), dims);
}

// A list of integers or a tensor of floats.
static void put_constant(uint64_t* seed, pb_t* graph, const char* name,
                         const shape_t* first) {
  if (below(seed, 3)) {
    int64_t values[40];
    size_t count = below(seed, 2) ? 1 : first ? first->rank : below(seed, 5);
    if (!below(seed, 4)) count *= 2;
    for (size_t i = 0; i < count; ++i)
      values[i] = any_int(seed);
    int64_t dims[1] = {(int64_t)count};
    size_t rank = count == 1 && below(seed, 2) ? 0 : 1;
    pb_message(graph, 5,
               onnx_tensor(name, ONNX_INT64, rank, dims, values, count * 8));
    return;
  }
  shape_t shape = any_shape(seed, first, false);
  if (shape.rank > 4) shape.rank = 4;
  size_t count = 1;
  for (size_t i = 0; i < shape.rank; ++i) {
    if (shape.dims[i] > 8) shape.dims[i] = 8;
    count *= (size_t)shape.dims[i];
  }
  float* data = malloc((count + 1) * sizeof(float));
  for (size_t i = 0; i < count; ++i)
    data[i] = any_float(seed);
  onnx_floats(graph, name, shape.rank, shape.dims, data);
  free(data);
}

static void put_node(uint64_t* seed, pb_t* graph, const row_t* row) {
  char inputs[400] = "", outputs[400] = "";
  shape_t first = {0};
  size_t most = row->max_inputs == 255 ? 3 : (size_t)row->max_inputs;
  size_t least = (size_t)row->min_inputs;
  size_t count = least + below(seed, most - least + 1);
  for (size_t i = 0; i < count; ++i) {
    char name[32];
    snprintf(name, sizeof(name), "i%zu", i);
    bool omitted = i >= least && !below(seed, 4);
    size_t at = strlen(inputs);
    snprintf(inputs + at, sizeof(inputs) - at, "%s%s", i ? "," : "",
             omitted ? "" : name);
    if (omitted) continue;
    if (below(seed, 5) < (i ? 3u : 1u)) {
      put_constant(seed, graph, name, i ? &first : NULL);
      continue;
    }
    shape_t shape = any_shape(seed, i ? &first : NULL, true);
    if (i == 0) first = shape;
    put_argument(seed, graph, name, &shape);
  }
  size_t makes =
      1 + below(seed, row->max_outputs == 255 ? 3 : (size_t)row->max_outputs);
  for (size_t i = 0; i < makes; ++i) {
    size_t at = strlen(outputs);
    snprintf(outputs + at, sizeof(outputs) - at, i ? ",o%zu" : "o%zu", i);
  }
  pb_t attrs = {0};
  put_attributes(seed, &attrs, first.rank);
  if (row->domain[0]) pb_text(&attrs, 7, row->domain);
  if (!strcmp(row->domain, "ai.onnx.ml")) put_ml(seed, &attrs, &first);
  onnx_node(graph, row->name, "n", inputs, outputs, &attrs);
  onnx_output(graph, "o0");
}

static void survives_nonsense(void** state) {
  (void)state;
  const char* rounds = getenv("PESTLE_HOSTILE_ROUNDS");
  const char* only = getenv("PESTLE_HOSTILE_OP");
  long count = rounds ? atol(rounds) : ROUNDS;
  for (size_t i = 0; i < COUNT(rows); ++i) {
    if (only && strcmp(only, rows[i].name) != 0) continue;
    uint64_t seed = 0x9e3779b97f4a7c15 + i;
    for (long k = 0; k < count; ++k) {
      pb_t graph = {0};
      int span = rows[i].until - rows[i].since + 1;
      int opset = rows[i].since + (int)below(&seed, (size_t)span);
      put_node(&seed, &graph, &rows[i]);
      opset = below(&seed, 2) ? opset : rows[i].until;
      bool standard = rows[i].domain[0] == 0;
      pb_t model = onnx_model(standard ? opset : LAST_OPSET, &graph);
      if (!standard) onnx_opset(&model, rows[i].domain, opset);
      import_damaged(model.data, model.size);
      pb_free(&model);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(survives_nonsense)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
