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
//
// A place in the tables is a split or a leaf. Where no node has two parents, the two
// ends of a split lie side by side, that of no first, and one word has all but the
// threshold:
//
//   word = first end << (w + 1) | feature << 1 | whether a NaN goes to yes
//   at   = first end + (x[feature] <= threshold)
//
// A leaf is its own first end with a NaN for a threshold: nothing leaves it. Else the
// ends are looked up one by one.

typedef struct tables_t {
  const pestle_forest_t* f;
  pestle_value_t* x;  // all of it, as a list
  pestle_value_t*
      origin;           // where the row of each begins in |x|, like the places
  size_t count;         // places
  int32_t* place;       // of each split, then of each leaf
  bool packed, tracks;  // |tracks|: a NaN may go to yes
  int bits;             // of a feature
  int64_t steps;        // splits a trip
  pestle_value_t*
      pairs;  // of f32: a threshold's bits, and behind them the word
  pestle_value_t *words, *features, *thresholds, *yes, *no, *missing;
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

// The number of |node| among splits and, behind them, leaves.
static size_t number_of(const pestle_forest_t* f, pestle_tree_node_t node) {
  return node >= 0 ? (size_t)node : f->split_count + (size_t)(-1 - node);
}

static bool has_one_parent(const pestle_forest_t* f, uint8_t* parents) {
  for (size_t i = 0; i < f->split_count; ++i) {
    const pestle_split_t* s = &f->splits[i];
    if (parents[number_of(f, s->yes)]++ || parents[number_of(f, s->no)]++)
      return false;
  }
  // Nor lies a tree within another.
  for (size_t i = 0; i < f->tree_count; ++i) {
    if (parents[number_of(f, f->roots[i])]) return false;
  }
  return true;
}

static int bits_of(int64_t most) {
  int bits = 0;
  while (most > 0 && most >> bits)
    ++bits;
  return bits;
}

// Places tree by tree, the ends of each split side by side. What no root leads to
// gets none.
static void place_pairs(tables_t* t, pestle_tree_node_t* queue) {
  const pestle_forest_t* f = t->f;
  size_t next = 0;
  for (size_t i = 0; i < f->split_count + f->leaf_count; ++i)
    t->place[i] = -1;
  for (size_t i = 0; i < f->tree_count; ++i) {
    size_t begin = 0, end = 0;
    size_t root = number_of(f, f->roots[i]);
    // A leaf alone may be several trees; one within another tree is placed there.
    if (t->place[root] >= 0) continue;
    t->place[root] = (int32_t)next++;
    queue[end++] = f->roots[i];
    for (; begin < end; ++begin) {
      if (queue[begin] < 0) continue;
      const pestle_split_t* s = &f->splits[queue[begin]];
      t->place[number_of(f, s->no)] = (int32_t)next++;
      t->place[number_of(f, s->yes)] = (int32_t)next++;
      queue[end++] = s->no;
      queue[end++] = s->yes;
    }
  }
}

static bool place_nodes(pestle_onnx_call_t* call, tables_t* t) {
  const pestle_forest_t* f = t->f;
  t->count = f->split_count + f->leaf_count;
  t->place = pestle_onnx_scratch(call, (t->count + 1) * sizeof(int32_t));
  uint8_t* parents = pestle_onnx_scratch(call, t->count + 1);
  pestle_tree_node_t* queue =
      pestle_onnx_scratch(call, (t->count + 1) * sizeof(*queue));
  if (!t->place || !parents || !queue) return false;
  t->bits = bits_of(f->features - 1);
  t->packed = bits_of((int64_t)t->count) + t->bits + 1 < 32 &&
              has_one_parent(f, parents);
  if (t->packed) place_pairs(t, queue);
  for (size_t i = 0; !t->packed && i < t->count; ++i)
    t->place[i] = (int32_t)i;
  return true;
}

static int32_t end_of(const tables_t* t, pestle_tree_node_t node) {
  return t->place[number_of(t->f, node)];
}

// One look-up of 64 bits takes half the loads of two of 32.
static pestle_value_t* pair_table(pestle_onnx_call_t* call,
                                  const int32_t* words,
                                  const double* thresholds, size_t count) {
  size_t size = count * sizeof(int64_t);
  uint64_t* pairs = pestle_f_memory(&call->f, size + 1);
  if (!pairs) return NULL;
  for (size_t i = 0; i < count; ++i) {
    float threshold = (float)thresholds[i];
    uint32_t bits;
    memcpy(&bits, &threshold, sizeof(bits));
    pairs[i] = (uint64_t)bits << 32 | (uint32_t)words[i];
  }
  return pestle_f_elements(
      &call->f,
      &(pestle_elements_t){
          .type = {.dtype = PESTLE_I64, .rank = 1, .dims = {(int64_t)count}},
          .data = pairs,
          .size = size});
}

static bool fill_packed(pestle_onnx_call_t* call, tables_t* t) {
  const pestle_forest_t* f = t->f;
  int32_t* words = pestle_onnx_scratch(call, (t->count + 1) * sizeof(*words));
  double* thresholds =
      pestle_onnx_scratch(call, (t->count + 1) * sizeof(*thresholds));
  int64_t dims[] = {(int64_t)t->count};
  if (!words || !thresholds) return false;
  for (size_t i = 0; i < t->count; ++i) {
    int32_t at = t->place[i], first = at, feature = 0;
    if (at < 0) continue;
    thresholds[at] = (double)NAN;
    if (i < f->split_count) {
      const pestle_split_t* s = &f->splits[i];
      bool tracks = s->missing != s->no;
      first = end_of(t, s->no);
      feature = s->feature << 1 | tracks;
      thresholds[at] = s->threshold;
      t->tracks = t->tracks || tracks;
    }
    words[at] = first << (t->bits + 1) | feature;
  }
  if (f->dtype == PESTLE_F32) {
    t->pairs = pair_table(call, words, thresholds, t->count);
    return !call->f.status;
  }
  t->words = int_table(call, words, t->count);
  t->thresholds = pestle_ml_table(call, f->dtype, 1, dims, thresholds);
  return !call->f.status;
}

static bool fill_tables(pestle_onnx_call_t* call, tables_t* t) {
  const pestle_forest_t* f = t->f;
  if (!place_nodes(call, t)) return false;
  if (t->packed) return fill_packed(call, t);
  size_t count = t->count;
  int32_t* features = pestle_onnx_scratch(call, count * sizeof(int32_t) + 1);
  int32_t* ends = pestle_onnx_scratch(call, 3 * count * sizeof(int32_t) + 1);
  double* thresholds = pestle_onnx_scratch(call, count * sizeof(double) + 1);
  if (!features || !ends || !thresholds) return false;
  int32_t *yes = ends, *no = ends + count, *missing = ends + 2 * count;
  for (size_t i = 0; i < count; ++i) {
    yes[i] = no[i] = missing[i] = (int32_t)i;
    if (i >= f->split_count) continue;
    const pestle_split_t* s = &f->splits[i];
    features[i] = s->feature;
    thresholds[i] = s->threshold;
    yes[i] = end_of(t, s->yes);
    no[i] = end_of(t, s->no);
    missing[i] = end_of(t, s->missing);
    t->tracks = t->tracks || missing[i] != no[i];
  }
  int64_t dims[] = {(int64_t)count};
  t->features = int_table(call, features, count);
  t->thresholds = pestle_ml_table(call, f->dtype, 1, dims, thresholds);
  t->yes = int_table(call, yes, count);
  t->no = int_table(call, no, count);
  if (t->tracks) t->missing = int_table(call, missing, count);
  return !call->f.status;
}

static pestle_value_t* compare(pestle_onnx_call_t* call, const tables_t* t,
                               pestle_value_t* x, pestle_value_t* limit) {
  return t->f->strict ? pestle_f_lt(&call->f, x, limit)
                      : pestle_f_le(&call->f, x, limit);
}

static pestle_value_t* step_packed(pestle_onnx_call_t* call, const tables_t* t,
                                   pestle_value_t* at) {
  pestle_formula_t* f = &call->f;
  pestle_value_t *word, *limit;
  if (t->pairs) {
    pestle_value_t* pair = pestle_onnx_take(call, t->pairs, at, 0);
    word = pestle_onnx_convert(call, pair, PESTLE_I32);
    limit = pestle_f_shift_right_logical(f, pair, splat_like(call, pair, 32));
    limit = pestle_onnx_convert(call, limit, PESTLE_I32);
    limit = pestle_f_bitcast(f, limit, PESTLE_F32);
  } else {
    word = pestle_onnx_take(call, t->words, at, 0);
    limit = pestle_onnx_take(call, t->thresholds, at, 0);
  }
  pestle_value_t* feature =
      pestle_f_shift_right_logical(f, word, splat_like(call, word, 1));
  double mask = (double)(((int64_t)1 << t->bits) - 1);
  feature = pestle_f_and(f, feature, splat_like(call, word, mask));
  feature = add(call, t->origin, feature);
  pestle_value_t* x = pestle_onnx_take(call, t->x, feature, 0);
  pestle_value_t* goes = compare(call, t, x, limit);
  if (t->tracks) {
    pestle_value_t* bit = pestle_f_and(f, word, splat_like(call, word, 1));
    bit = pestle_onnx_binary_f(call, PESTLE_OP_NE, bit, 0);
    bit = pestle_f_and(f, bit, pestle_f_ne(f, x, x));
    goes = pestle_f_or(f, goes, bit);
  }
  pestle_value_t* first = pestle_f_shift_right_logical(
      f, word, splat_like(call, word, (double)(t->bits + 1)));
  return add(call, first, pestle_onnx_convert(call, goes, PESTLE_I32));
}

static pestle_value_t* step_any(pestle_onnx_call_t* call, const tables_t* t,
                                pestle_value_t* at) {
  pestle_formula_t* f = &call->f;
  pestle_value_t* feature = pestle_onnx_take(call, t->features, at, 0);
  feature = add(call, t->origin, feature);
  pestle_value_t* x = pestle_onnx_take(call, t->x, feature, 0);
  pestle_value_t* limit = pestle_onnx_take(call, t->thresholds, at, 0);
  pestle_value_t* goes = compare(call, t, x, limit);
  pestle_value_t* yes = pestle_onnx_take(call, t->yes, at, 0);
  pestle_value_t* no = pestle_onnx_take(call, t->no, at, 0);
  pestle_value_t* to = pestle_f_select(f, goes, yes, no);
  if (!t->tracks) return to;
  pestle_value_t* missing = pestle_onnx_take(call, t->missing, at, 0);
  return pestle_f_select(f, pestle_f_ne(f, x, x), missing, to);
}

// Some splits of each tree: values[0] is where the rows are.
static void step(pestle_onnx_call_t* call, void* self, pestle_value_t* i,
                 pestle_value_t** values) {
  (void)i;
  const tables_t* t = self;
  for (int64_t k = 0; k < t->steps; ++k) {
    values[0] = t->packed ? step_packed(call, t, values[0])
                          : step_any(call, t, values[0]);
  }
}

// From so many rows on they lie innermost, so that what is done at once is in one
// tree, whose tables a first-level cache has.
#define ROWS_INSIDE 8
// As many splits as one kernel takes, of deeper trees as one trip does.
#define MOST_STEPS 24
#define TRIP_STEPS 8

// Whether the trees are the first axis, and the rows the second.
static bool rows_inside(const pestle_value_t* x) {
  return pestle_onnx_dim(x, 0) >= ROWS_INSIDE;
}

// The place of the leaf that each row reaches in each tree: [rows, trees], or [trees,
// rows] where the rows lie inside. |t| is filled.
static pestle_value_t* walk(pestle_onnx_call_t* call, const pestle_forest_t* f,
                            pestle_value_t* x, tables_t* t) {
  size_t count = f->tree_count;
  *t = (tables_t){.f = f};
  int64_t rows = pestle_onnx_dim(x, 0), all = rows * f->features;
  bool inside = rows_inside(x);
  int32_t* places = pestle_onnx_scratch(call, (count + 1) * sizeof(int32_t));
  if (!places || !fill_tables(call, t)) return NULL;
  if (all > INT32_MAX) {
    return pestle_onnx_fail(call, PESTLE_STATUS_UNSUPPORTED,
                            "%lld rows of %lld features", (long long)rows,
                            (long long)f->features);
  }
  for (size_t i = 0; i < count; ++i)
    places[i] = end_of(t, f->roots[i]);
  pestle_type_t type = {
      .dtype = PESTLE_I32, .rank = 2, .dims = {rows, (int64_t)count}};
  int64_t column[] = {(int64_t)count, 1};
  pestle_value_t* at = int_table(call, places, count);
  if (inside) {
    type.dims[0] = (int64_t)count;
    type.dims[1] = rows;
    at = pestle_f_reshape(&call->f, at, 2, column);
  }
  at = pestle_onnx_broadcast(call, at, 2, type.dims);
  t->x = pestle_f_reshape(&call->f, x, 1, &all);
  t->origin =
      times(call, pestle_f_iota(&call->f, &type, inside), (double)f->features);
  t->steps = f->depth <= MOST_STEPS ? f->depth : TRIP_STEPS;
  int64_t trips = t->steps ? (f->depth + t->steps - 1) / t->steps : 0;
  pestle_onnx_for(call, trips, &at, 1, step, t);
  return at;
}

// |weights|, |width| of each leaf, at the leaf that each row reaches in each tree, as
// walk() has them.
static pestle_value_t* weights_at(pestle_onnx_call_t* call, const tables_t* t,
                                  pestle_value_t* at, const double* weights,
                                  int64_t width) {
  const pestle_forest_t* f = t->f;
  size_t each = (size_t)width;
  double* table =
      pestle_onnx_scratch(call, (t->count * each + 1) * sizeof(*table));
  if (!at || !table) return NULL;
  for (size_t i = 0; i < f->leaf_count; ++i) {
    int32_t place = t->place[f->split_count + i];
    if (place < 0) continue;
    memcpy(table + (size_t)place * each, weights + i * each,
           each * sizeof(*table));
  }
  int64_t dims[] = {(int64_t)t->count, width};
  pestle_value_t* values =
      pestle_ml_table(call, f->dtype, width == 1 ? 1 : 2, dims, table);
  return pestle_onnx_take(call, values, at, 0);
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
    size_t place = number_of(f, at);
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
  tables_t t;
  bool inside = rows_inside(x);
  int64_t rows = pestle_onnx_dim(x, 0);
  int64_t dims[] = {rows, f->targets, (int64_t)most};
  int64_t turned[] = {f->targets, (int64_t)most, rows}, order[] = {1, 0};
  padded.roots = roots;
  padded.tree_count = trees;
  pestle_value_t* at = walk(call, &padded, x, &t);
  pestle_value_t* w = weights_at(call, &t, at, weights, 1);
  w = pestle_f_reshape(&call->f, w, 3, inside ? turned : dims);
  w = reduce(call, PESTLE_OP_ADD, w, inside ? 1 : 2);
  return inside ? pestle_f_transpose(&call->f, w, order) : w;
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
  tables_t t;
  int64_t axis = rows_inside(x) ? 0 : 1, n = f->targets;
  int64_t dims[] = {pestle_onnx_dim(x, 0), n};
  pestle_value_t* at = walk(call, f, x, &t);
  y = reduce(call, op, weights_at(call, &t, at, weights, n), axis);
  y = pestle_f_reshape(&call->f, y, 2, dims);
  if (!varies || (sums && !out_has)) return y;
  pestle_value_t* has =
      reduce(call, PESTLE_OP_MAXIMUM, weights_at(call, &t, at, says, n), axis);
  has = pestle_f_reshape(&call->f, has, 2, dims);
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
  if (!pestle_onnx_takes(
          call,
          "aggregate_function base_values base_values_as_tensor "
          "n_targets nodes_falsenodeids nodes_featureids "
          "nodes_hitrates nodes_hitrates_as_tensor "
          "nodes_missing_value_tracks_true nodes_modes nodes_nodeids "
          "nodes_treeids nodes_truenodeids nodes_values "
          "nodes_values_as_tensor post_transform target_ids "
          "target_nodeids target_treeids target_weights "
          "target_weights_as_tensor"))
    return;
  pestle_forest_t f = {.targets = pestle_onnx_int(call, "n_targets", 1)};
  pestle_value_t* x = begin(call, &f);
  pestle_ml_post_t post = pestle_ml_post(call);
  pestle_ml_numbers_t base = pestle_ml_numbers(call, "base_values", NULL);
  if (!x || !read_sum(call, &f) || !pestle_forest_read(call, "target", &f))
    return;
  // ONNX Runtime has no base value for a target that no leaf speaks of.
  bool spares = pestle_onnx_as_ort(call) && base.count && f.targets > 1;
  pestle_value_t* has = NULL;
  pestle_value_t* y = pestle_forest_scores(call, &f, x, spares ? &has : NULL);
  y = finish(call, &f, y, base);
  if (!y) return;
  if (has) y = pestle_f_select(&call->f, has, y, splat_like(call, y, 0));
  y = pestle_ml_transform(call, post, y);
  call->outputs[0] = pestle_onnx_convert(call, y, PESTLE_F32);
}

void pestle_onnx_import_ml_tree_ensemble(pestle_onnx_call_t* call) {
  if (!pestle_onnx_takes(
          call,
          "aggregate_function leaf_targetids leaf_weights "
          "membership_values n_targets nodes_falseleafs "
          "nodes_falsenodeids nodes_featureids nodes_hitrates "
          "nodes_missing_value_tracks_true nodes_modes nodes_splits "
          "nodes_trueleafs nodes_truenodeids post_transform "
          "tree_roots"))
    return;
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
  // What ONNX Runtime takes 1 and 2 for.
  bool turns = pestle_onnx_as_ort(call) && (post == 1 || post == 2);
  if (turns) post = 3 - post;
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

// Two classes with weights of both, as ONNX Runtime has it: 1 or 0, whatever the labels
// are but strings, as the score of class 1 is above 0. Of two base values that of class 1
// is added to the score of class 0, which makes the score of class 1.
static void both_of_two(pestle_onnx_call_t* call, const classifier_t* c,
                        pestle_value_t* y, pestle_value_t* has) {
  int64_t rows = pestle_onnx_dim(y, 0);
  if (has || c->base.count == 1) {
    pestle_onnx_fail(
        call, PESTLE_STATUS_UNSUPPORTED,
        "two classes with %s, as ONNX Runtime has them",
        has ? "rows in which no leaf speaks of one of them" : "one base value");
    return;
  }
  pestle_value_t* pair[2];
  for (int64_t i = 0; i < 2; ++i)
    pair[i] = pestle_onnx_slice_axis(call, y, 1, i, i + 1, 1);
  if (c->base.count) {
    pair[1] = pestle_f_plus(&call->f, pair[0], c->base.data[1]);
    pair[0] = pestle_f_negate(&call->f, pair[1]);
    y = pestle_f_concatenate(&call->f, pair, 2, 1);
  }
  pestle_value_t* yes = pestle_onnx_binary_f(call, PESTLE_OP_GT, pair[1], 0);
  yes = pestle_f_reshape(&call->f, pestle_ml_truth(call, yes), 1, &rows);
  call->outputs[0] =
      c->labels.strings ? pestle_ml_label_of(call, &c->labels, yes) : yes;
  call->outputs[1] = pestle_ml_transform(call, c->post, y);
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
  if (!pestle_onnx_takes(
          call,
          "base_values base_values_as_tensor class_ids class_nodeids "
          "class_treeids class_weights class_weights_as_tensor "
          "classlabels_int64s classlabels_strings nodes_falsenodeids "
          "nodes_featureids nodes_hitrates nodes_hitrates_as_tensor "
          "nodes_missing_value_tracks_true nodes_modes nodes_nodeids "
          "nodes_treeids nodes_truenodeids nodes_values "
          "nodes_values_as_tensor post_transform"))
    return;
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
  bool as_ort = both && c.f.targets == 2 && pestle_onnx_as_ort(call);
  if (c.alone < 0 && !as_ort) y = finish(call, &c.f, y, c.base);
  if (!y) return;
  if (as_ort) {
    both_of_two(call, &c, y, has);
  } else if (c.alone >= 0) {
    one_of_two(call, &c, y);
  } else {
    choose(call, &c, y, has);
  }
  call->outputs[1] = pestle_onnx_convert(call, call->outputs[1], PESTLE_F32);
}
