// SPDX-License-Identifier: Apache-2.0
// ai.onnx.ml: tree ensembles. All trees are walked at once for all rows, from
// table to table, to the leaf that each reaches; what leaves weigh is then looked
// up and summed as any gather and reduction.
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "frontend/onnx/forest.h"

// The most numbers of a table of what each leaf says of each target.
#define MOST_WEIGHTS ((size_t)1 << 27)

// --- Walking ---

typedef struct tables_t {
  const pestle_forest_t* f;
  pestle_value_t* x;
  pestle_value_t *features, *thresholds, *yes, *no, *missing;
  int64_t rows, trees;
} tables_t;

static pestle_value_t* int_table(pestle_onnx_call_t* call, const int32_t* data,
                                 size_t count) {
  size_t size = count * sizeof(*data);
  void* copy = pestle_f_memory(&call->f, size);
  if (!copy) return NULL;
  if (size) memcpy(copy, data, size);
  return pestle_f_elements(
      &call->f,
      &(pestle_elements_t){
          .type = {.dtype = PESTLE_I32, .rank = 1, .dims = {(int64_t)count}},
          .data = copy,
          .size = size});
}

// The place of |node| in the tables: leaves lie behind the splits, and lead to
// themselves.
static int32_t place_of(const pestle_forest_t* f, pestle_tree_node_t node) {
  return node >= 0 ? node : (int32_t)f->split_count - 1 - node;
}

static bool fill_tables(pestle_onnx_call_t* call, tables_t* t) {
  const pestle_forest_t* f = t->f;
  size_t count = f->split_count + f->leaf_count;
  int32_t* features = pestle_onnx_scratch(call, count * sizeof(int32_t) + 1);
  int32_t* ends = pestle_onnx_scratch(call, 3 * count * sizeof(int32_t) + 1);
  double* thresholds = pestle_onnx_scratch(call, count * sizeof(double) + 1);
  if (!features || !ends || !thresholds) return false;
  int32_t *yes = ends, *no = ends + count, *missing = ends + 2 * count;
  bool three = false;
  for (size_t i = 0; i < count; ++i) {
    yes[i] = no[i] = missing[i] = (int32_t)i;
    if (i >= f->split_count) continue;
    const pestle_split_t* s = &f->splits[i];
    features[i] = s->feature;
    thresholds[i] = s->threshold;
    yes[i] = place_of(f, s->yes);
    no[i] = place_of(f, s->no);
    missing[i] = place_of(f, s->missing);
    three = three || missing[i] != no[i];
  }
  int64_t dims[] = {(int64_t)count};
  t->features = int_table(call, features, count);
  t->thresholds = pestle_ml_table(call, f->dtype, 1, dims, thresholds);
  t->yes = int_table(call, yes, count);
  t->no = int_table(call, no, count);
  if (three) t->missing = int_table(call, missing, count);
  return !call->f.status;
}

// One split of each tree: values[0] is where the rows are, i32 [rows, trees].
static void step(pestle_onnx_call_t* call, void* self, pestle_value_t* i,
                 pestle_value_t** values) {
  (void)i;
  const tables_t* t = self;
  pestle_formula_t* f = &call->f;
  pestle_value_t* at = values[0];
  pestle_type_t type = *pestle_onnx_type(at);
  int64_t all = t->rows * t->f->features;
  pestle_value_t* feature = pestle_onnx_take(call, t->features, at, 0);
  pestle_value_t* row = pestle_f_iota(f, &type, 0);
  feature = add(call, times(call, row, (double)t->f->features), feature);
  pestle_value_t* x = pestle_f_reshape(f, t->x, 1, &all);
  x = pestle_onnx_take(call, x, feature, 0);
  pestle_value_t* limit = pestle_onnx_take(call, t->thresholds, at, 0);
  pestle_value_t* goes =
      t->f->strict ? pestle_f_lt(f, x, limit) : pestle_f_le(f, x, limit);
  pestle_value_t* yes = pestle_onnx_take(call, t->yes, at, 0);
  pestle_value_t* no = pestle_onnx_take(call, t->no, at, 0);
  at = pestle_f_select(f, goes, yes, no);
  if (t->missing) {
    pestle_value_t* missing = pestle_onnx_take(call, t->missing, values[0], 0);
    at = pestle_f_select(f, pestle_f_ne(f, x, x), missing, at);
  }
  values[0] = at;
}

// The leaf that each row reaches in each of |roots|: i32 [rows, trees].
static pestle_value_t* walk(pestle_onnx_call_t* call, const pestle_forest_t* f,
                            pestle_value_t* x, const pestle_tree_node_t* roots,
                            size_t count) {
  tables_t t = {
      .f = f, .x = x, .rows = pestle_onnx_dim(x, 0), .trees = (int64_t)count};
  int32_t* places = pestle_onnx_scratch(call, count * sizeof(int32_t) + 1);
  if (!places || !fill_tables(call, &t)) return NULL;
  for (size_t i = 0; i < count; ++i)
    places[i] = place_of(f, roots[i]);
  int64_t dims[] = {t.rows, t.trees};
  pestle_value_t* at = int_table(call, places, count);
  at = pestle_onnx_broadcast(call, at, 2, dims);
  pestle_onnx_for(call, f->depth, &at, 1, step, &t);
  return pestle_f_plus(&call->f, at, -(double)f->split_count);
}

// --- What leaves say ---

typedef struct sums_t {
  const pestle_forest_t* f;
  // The weights of leaf i are those from starts[i] on; none for the one behind.
  int32_t* starts;
  int32_t* tree_target;  // the target that alone a tree speaks of, or -1
  bool* always;          // of each target: one tree speaks of it in every leaf
} sums_t;

static int by_leaf(const void* a, const void* b) {
  const pestle_leaf_weight_t *x = a, *y = b;
  return x->leaf < y->leaf ? -1 : x->leaf > y->leaf;
}

// What tree |tree| speaks of. |seen| and |stack| are scratch for its splits, |count|
// for its targets.
static void look_at_tree(const sums_t* s, size_t tree, uint32_t* seen,
                         int32_t* stack, size_t* count) {
  const pestle_forest_t* f = s->f;
  size_t top = 0, leaves = 0;
  int32_t target = -1;
  bool one = true;
  memset(count, 0, (size_t)f->targets * sizeof(*count));
  stack[top++] = f->roots[tree];
  while (top) {
    int32_t at = stack[--top];
    size_t place = (size_t)place_of(f, at);
    if (seen[place] == tree + 1) continue;
    seen[place] = (uint32_t)tree + 1;
    if (at >= 0) {
      const pestle_split_t* split = &f->splits[at];
      stack[top++] = split->yes;
      stack[top++] = split->no;
      continue;
    }
    int32_t leaf = -1 - at;
    ++leaves;
    int32_t begin = s->starts[leaf], end = s->starts[leaf + 1];
    for (int32_t i = begin; i < end; ++i) {
      int32_t k = f->weights[i].target;
      bool first = true;
      for (int32_t j = begin; j < i; ++j)
        first = first && f->weights[j].target != k;
      count[k] += first;
      one = one && (target < 0 || target == k);
      target = k;
    }
  }
  s->tree_target[tree] = one && target >= 0 ? target : -1;
  for (int64_t k = 0; k < f->targets; ++k)
    s->always[k] = s->always[k] || count[k] == leaves;
}

static bool look_at_trees(pestle_onnx_call_t* call, sums_t* s) {
  const pestle_forest_t* f = s->f;
  size_t nodes = f->split_count + f->leaf_count;
  s->starts = pestle_onnx_scratch(call, (f->leaf_count + 2) * sizeof(int32_t));
  s->tree_target =
      pestle_onnx_scratch(call, (f->tree_count + 1) * sizeof(int32_t));
  s->always = pestle_onnx_scratch(call, (size_t)f->targets + 1);
  uint32_t* seen = pestle_onnx_scratch(call, (nodes + 1) * sizeof(*seen));
  int32_t* stack = pestle_onnx_scratch(call, (2 * nodes + 2) * sizeof(*stack));
  size_t* count =
      pestle_onnx_scratch(call, ((size_t)f->targets + 1) * sizeof(*count));
  if (!s->starts || !s->tree_target || !s->always || !seen || !stack ||
      !count) {
    return false;
  }
  qsort(f->weights, f->weight_count, sizeof(*f->weights), by_leaf);
  for (size_t i = 0; i < f->weight_count; ++i)
    ++s->starts[f->weights[i].leaf + 1];
  for (size_t i = 0; i < f->leaf_count; ++i)
    s->starts[i + 1] += s->starts[i];
  s->starts[f->leaf_count + 1] = s->starts[f->leaf_count];
  for (size_t i = 0; i < f->tree_count; ++i)
    look_at_tree(s, i, seen, stack, count);
  return true;
}

static pestle_value_t* reduce(pestle_onnx_call_t* call, pestle_op_t op,
                              pestle_value_t* x, int64_t axis) {
  return pestle_onnx_reduce(call, op, x, &axis, 1, false);
}

// Where each tree speaks of one target: its trees lie together, as many for each,
// some of them an empty leaf. NULL without an error where that is more work.
static pestle_value_t* sum_by_target(pestle_onnx_call_t* call, const sums_t* s,
                                     pestle_value_t* x) {
  const pestle_forest_t* f = s->f;
  size_t targets = (size_t)f->targets, most = 0;
  size_t* count = pestle_onnx_scratch(call, (targets + 1) * sizeof(*count));
  if (!count) return NULL;
  for (size_t i = 0; i < f->tree_count; ++i) {
    if (s->tree_target[i] < 0) return NULL;
    size_t n = ++count[s->tree_target[i]];
    if (n > most) most = n;
  }
  if (most > (2 * f->tree_count + 16) / targets) return NULL;
  // One leaf more, which says nothing.
  pestle_forest_t padded = *f;
  pestle_tree_node_t none = -1 - (pestle_tree_node_t)padded.leaf_count++;
  size_t trees = most * targets;
  pestle_tree_node_t* roots =
      pestle_onnx_scratch(call, (trees + 1) * sizeof(*roots));
  double* weights =
      pestle_onnx_scratch(call, padded.leaf_count * sizeof(*weights));
  if (!roots || !weights) return NULL;
  for (size_t i = 0; i < trees; ++i)
    roots[i] = none;
  memset(count, 0, targets * sizeof(*count));
  for (size_t i = 0; i < f->tree_count; ++i) {
    size_t k = (size_t)s->tree_target[i];
    roots[k * most + count[k]++] = f->roots[i];
  }
  for (size_t i = 0; i < f->weight_count; ++i)
    weights[f->weights[i].leaf] += f->weights[i].weight;
  int64_t list[] = {(int64_t)padded.leaf_count};
  int64_t dims[] = {pestle_onnx_dim(x, 0), f->targets, (int64_t)most};
  pestle_value_t* at = walk(call, &padded, x, roots, trees);
  pestle_value_t* table = pestle_ml_table(call, f->dtype, 1, list, weights);
  pestle_value_t* w = pestle_onnx_take(call, table, at, 0);
  w = pestle_f_reshape(&call->f, w, 3, dims);
  return reduce(call, PESTLE_OP_ADD, w, 2);
}

// What each leaf says of each target, or |silent|, and whether it says anything.
static bool fill_weights(const sums_t* s, double silent, double* weights,
                         double* says) {
  const pestle_forest_t* f = s->f;
  size_t targets = (size_t)f->targets, count = f->leaf_count * targets;
  for (size_t i = 0; i < count; ++i)
    weights[i] = silent;
  for (size_t i = 0; i < f->weight_count; ++i) {
    size_t at =
        (size_t)f->weights[i].leaf * targets + (size_t)f->weights[i].target;
    double w = f->weights[i].weight;
    bool added = says[at] != 0;
    switch (f->sum) {
      case PESTLE_FOREST_SUM:
      case PESTLE_FOREST_AVERAGE:
        weights[at] += w;
        break;
      case PESTLE_FOREST_MIN:
        weights[at] = added ? fmin(weights[at], w) : w;
        break;
      case PESTLE_FOREST_MAX:
        weights[at] = added ? fmax(weights[at], w) : w;
        break;
    }
    says[at] = 1;
  }
  for (size_t k = 0; k < targets; ++k) {
    if (!s->always[k]) return true;
  }
  return false;
}

pestle_value_t* pestle_forest_scores(pestle_onnx_call_t* call,
                                     const pestle_forest_t* f,
                                     pestle_value_t* x,
                                     pestle_value_t** out_has) {
  sums_t s = {.f = f};
  if (out_has) *out_has = NULL;
  if (!x || !look_at_trees(call, &s)) return NULL;
  bool sums = f->sum == PESTLE_FOREST_SUM || f->sum == PESTLE_FOREST_AVERAGE;
  pestle_value_t* y = NULL;
  bool known = true;
  for (int64_t k = 0; k < f->targets; ++k)
    known = known && s.always[k];
  if (sums && f->targets > 1 && (known || !out_has))
    y = sum_by_target(call, &s, x);
  if (y || call->f.status) return y;
  size_t count = f->leaf_count * (size_t)f->targets;
  if (count > MOST_WEIGHTS) {
    return pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                            "%zu leaves of %lld targets each", f->leaf_count,
                            (long long)f->targets);
  }
  double* weights = pestle_onnx_scratch(call, (count + 1) * sizeof(double));
  double* says = pestle_onnx_scratch(call, (count + 1) * sizeof(double));
  if (!weights || !says) return NULL;
  double silent = f->sum == PESTLE_FOREST_MIN   ? (double)INFINITY
                  : f->sum == PESTLE_FOREST_MAX ? -(double)INFINITY
                                                : 0;
  bool varies = fill_weights(&s, silent, weights, says);
  pestle_op_t op = f->sum == PESTLE_FOREST_MIN   ? PESTLE_OP_MINIMUM
                   : f->sum == PESTLE_FOREST_MAX ? PESTLE_OP_MAXIMUM
                                                 : PESTLE_OP_ADD;
  int64_t dims[] = {(int64_t)f->leaf_count, f->targets};
  pestle_value_t* at = walk(call, f, x, f->roots, f->tree_count);
  pestle_value_t* table = pestle_ml_table(call, f->dtype, 2, dims, weights);
  y = reduce(call, op, pestle_onnx_take(call, table, at, 0), 1);
  if (!varies || (sums && !out_has)) return y;
  table = pestle_ml_table(call, f->dtype, 2, dims, says);
  pestle_value_t* has =
      reduce(call, PESTLE_OP_MAXIMUM, pestle_onnx_take(call, table, at, 0), 1);
  has = pestle_onnx_binary_f(call, PESTLE_OP_GT, has, 0);
  if (!sums) y = pestle_f_select(&call->f, has, y, splat_like(call, y, 0));
  if (out_has) *out_has = has;
  return y;
}

// --- The ops ---

static bool read_sum(pestle_onnx_call_t* call, pestle_forest_t* f) {
  static const char* const names[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  pestle_str_t name = pestle_onnx_string(call, "aggregate_function", "SUM");
  for (int i = 0; i < 4; ++i) {
    if (!pestle_str_equal_c(name, names[i])) continue;
    f->sum = (pestle_forest_sum_t)i;
    return true;
  }
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                   "attribute 'aggregate_function' is '%.*s', known are "
                   "AVERAGE, SUM, MIN and MAX",
                   PESTLE_STR_ARG(name));
  return false;
}

static bool check_targets(pestle_onnx_call_t* call, const pestle_forest_t* f) {
  if (f->targets > 0 && f->targets < 65536) return true;
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED, "it has %lld targets",
                   (long long)f->targets);
  return false;
}

// Rows of features in the type that thresholds are compared in.
static pestle_value_t* begin(pestle_onnx_call_t* call, pestle_forest_t* f) {
  pestle_value_t* x = call->inputs[0];
  f->dtype = dtype_of(x) == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32;
  x = pestle_ml_rows(call, x, f->dtype);
  f->features = pestle_onnx_dim(x, 1);
  return x && check_targets(call, f) ? x : NULL;
}

// y / trees where that is the aggregate, and the base values.
static pestle_value_t* finish(pestle_onnx_call_t* call,
                              const pestle_forest_t* f, pestle_value_t* y,
                              pestle_ml_numbers_t base) {
  if (f->sum == PESTLE_FOREST_AVERAGE) {
    y = quotient(call, y, splat_like(call, y, (double)f->tree_count));
  }
  if (!base.count) return y;
  if ((int64_t)base.count != f->targets) {
    return pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                            "attribute 'base_values' has %zu numbers for %lld "
                            "targets",
                            base.count, (long long)f->targets);
  }
  int64_t dims[] = {f->targets};
  pestle_value_t* b = pestle_ml_table(call, f->dtype, 1, dims, base.data);
  return add(call, y, b);
}

void pestle_onnx_import_ml_tree_regressor(pestle_onnx_call_t* call) {
  pestle_forest_t f = {.targets = pestle_onnx_int(call, "n_targets", 1)};
  pestle_value_t* x = begin(call, &f);
  pestle_ml_post_t post = pestle_ml_post(call);
  pestle_ml_numbers_t base = pestle_ml_numbers(call, "base_values", NULL);
  if (!x || !read_sum(call, &f) || !pestle_forest_read(call, "target", &f))
    return;
  pestle_value_t* y = pestle_forest_scores(call, &f, x, NULL);
  y = finish(call, &f, y, base);
  if (!y) return;
  y = pestle_ml_transform(call, post, y);
  call->outputs[0] = pestle_onnx_convert(call, y, PESTLE_F32);
}

void pestle_onnx_import_ml_tree_ensemble(pestle_onnx_call_t* call) {
  pestle_forest_t f = {.targets = pestle_onnx_int(call, "n_targets", 1)};
  pestle_value_t* x = begin(call, &f);
  int64_t sum = pestle_onnx_int(call, "aggregate_function", 1);
  int64_t post = pestle_onnx_int(call, "post_transform", 0);
  if (sum < 0 || sum > 3 || post < 0 || post > 4) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "its aggregate_function is %lld (known are 0 to 3), its "
                     "post_transform %lld (0 to 4)",
                     (long long)sum, (long long)post);
    return;
  }
  f.sum = (pestle_forest_sum_t)sum;
  if (!x || !pestle_forest_read_5(call, &f)) return;
  pestle_value_t* y = pestle_forest_scores(call, &f, x, NULL);
  y = finish(call, &f, y, (pestle_ml_numbers_t){0});
  if (!y) return;
  y = pestle_ml_transform(call, (pestle_ml_post_t)post, y);
  call->outputs[0] = pestle_onnx_convert(call, y, dtype_of(call->inputs[0]));
}

// --- Classifiers ---

typedef struct classifier_t {
  pestle_forest_t f;
  pestle_ml_labels_t labels;
  pestle_ml_numbers_t base;
  pestle_ml_post_t post;
  int64_t alone;  // the one class of two that weights are of, or -1
  bool positive;  // no weight is below 0
} classifier_t;

// Two classes of which leaves speak of one: class 1 is chosen above a half where no
// weight is below 0, else above 0. That is ONNX Runtime's rule; the text has none.
static void one_of_two(pestle_onnx_call_t* call, const classifier_t* c,
                       pestle_value_t* y) {
  int64_t rows = pestle_onnx_dim(y, 0);
  if (c->base.count > 1 || (c->base.count && c->alone)) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "%zu base_values beside weights of class %lld alone",
                     c->base.count, (long long)c->alone);
    return;
  }
  pestle_value_t* score =
      pestle_onnx_slice_axis(call, y, 1, c->alone, c->alone + 1, 1);
  if (c->base.count) score = pestle_f_plus(&call->f, score, c->base.data[0]);
  pestle_value_t* yes =
      pestle_onnx_binary_f(call, PESTLE_OP_GT, score, c->positive ? 0.5 : 0);
  yes = pestle_f_reshape(&call->f, pestle_ml_truth(call, yes), 1, &rows);
  call->outputs[0] = pestle_ml_label_of(call, &c->labels, yes);
  if (c->alone) {
    call->outputs[1] = pestle_ml_transform(call, c->post, y);
  } else if (c->post == PESTLE_ML_PROBIT) {
    pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                     "post_transform PROBIT of weights of one class of two");
  } else {
    call->outputs[1] = pestle_ml_two_classes(call, c->post, score, c->positive);
  }
}

// A class that no leaf speaks of is not chosen; its score is 0.
static void choose(pestle_onnx_call_t* call, const classifier_t* c,
                   pestle_value_t* y, pestle_value_t* has) {
  pestle_value_t* seen = y;
  if (has && !c->base.count && c->f.targets > 2) {
    pestle_value_t* lowest = splat_like(call, y, -(double)INFINITY);
    seen = pestle_f_select(&call->f, has, y, lowest);
  }
  pestle_value_t* which = pestle_ml_top(call, seen);
  call->outputs[0] = pestle_ml_label_of(call, &c->labels, which);
  call->outputs[1] = pestle_ml_transform(call, c->post, y);
}

void pestle_onnx_import_ml_tree_classifier(pestle_onnx_call_t* call) {
  classifier_t c = {.alone = -1, .positive = true};
  c.labels =
      pestle_ml_labels(call, "classlabels_int64s", "classlabels_strings");
  c.post = pestle_ml_post(call);
  c.base = pestle_ml_numbers(call, "base_values", NULL);
  c.f.targets = (int64_t)c.labels.count;
  c.f.sum = PESTLE_FOREST_SUM;
  pestle_value_t* x = begin(call, &c.f);
  if (!x || !pestle_forest_read(call, "class", &c.f)) return;
  bool both = false;
  for (size_t i = 0; i < c.f.weight_count; ++i) {
    const pestle_leaf_weight_t* w = &c.f.weights[i];
    both = both || (i && w->target != c.f.weights[0].target);
    c.positive = c.positive && w->weight >= 0;
  }
  if (c.f.targets == 2 && !both && c.f.weight_count)
    c.alone = c.f.weights[0].target;
  pestle_value_t *has = NULL, *y;
  y = pestle_forest_scores(call, &c.f, x, c.alone < 0 ? &has : NULL);
  if (c.alone < 0) y = finish(call, &c.f, y, c.base);
  if (!y) return;
  if (c.alone >= 0) {
    one_of_two(call, &c, y);
  } else {
    choose(call, &c, y, has);
  }
  call->outputs[1] = pestle_onnx_convert(call, call->outputs[1], PESTLE_F32);
}
