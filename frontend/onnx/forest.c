// SPDX-License-Identifier: Apache-2.0
// Reading tree ensembles.
#include "frontend/onnx/forest.h"

#include <math.h>
#include <stdio.h>

#include "base/mem.h"

// Of splits and leaves, so that places in all tables are i32.
#define MOST_NODES ((size_t)1 << 26)

typedef enum mode_e {
  LEQ,
  LT,
  GTE,
  GT,
  EQ,
  NEQ,
  MEMBER,
  LEAF,
} node_mode_t;

// A node as the attributes have it.
typedef struct given_t {
  node_mode_t mode;
  int64_t feature;
  double threshold;
  pestle_tree_node_t yes, no;
  bool tracks;  // a NaN goes where yes does
  const double* members;
  size_t member_count;
} given_t;

static bool fail(pestle_onnx_call_t* call, const char* what) {
  pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED, "%s", what);
  return false;
}

// --- Splits of one kind ---

static double next_number(const pestle_forest_t* f, double t, double towards) {
  if (f->dtype == PESTLE_F64) return nextafter(t, towards);
  return (double)nextafterf((float)t, (float)towards);
}

static void put(pestle_forest_t* f, size_t at, const given_t* g,
                double threshold, pestle_tree_node_t yes,
                pestle_tree_node_t no) {
  bool always_yes = g->tracks || g->mode == NEQ;
  f->splits[at] = (pestle_split_t){.feature = (int32_t)g->feature,
                                   .threshold = threshold,
                                   .yes = yes,
                                   .no = no,
                                   .missing = always_yes ? g->yes : g->no};
}

static size_t more(pestle_forest_t* f) {
  return f->split_count++;
}

// x <= t as split |at|.
static void put_leq(pestle_forest_t* f, size_t at, const given_t* g,
                    pestle_tree_node_t yes, pestle_tree_node_t no) {
  double t = g->threshold;
  if (!f->strict) {
    put(f, at, g, t, yes, no);
  } else if (t == (double)INFINITY) {
    put(f, at, g, 0, yes, yes);
  } else {
    put(f, at, g, next_number(f, t, (double)INFINITY), yes, no);
  }
}

// x < t.
static void put_lt(pestle_forest_t* f, size_t at, const given_t* g,
                   pestle_tree_node_t yes, pestle_tree_node_t no) {
  double t = g->threshold;
  if (f->strict) {
    put(f, at, g, t, yes, no);
  } else if (t == -(double)INFINITY) {
    put(f, at, g, 0, no, no);
  } else {
    put(f, at, g, next_number(f, t, -(double)INFINITY), yes, no);
  }
}

// x == t: x <= t, and then not x < t.
static void put_eq(pestle_forest_t* f, size_t at, const given_t* g,
                   pestle_tree_node_t yes, pestle_tree_node_t no) {
  size_t second = more(f);
  put_leq(f, at, g, (pestle_tree_node_t)second, no);
  put_lt(f, second, g, no, yes);
}

static void put_member(pestle_forest_t* f, size_t at, const given_t* g) {
  given_t one = *g;
  if (!g->member_count) put(f, at, g, 0, g->no, g->no);
  for (size_t i = 0; i < g->member_count; ++i) {
    one.threshold = g->members[i];
    size_t next = i + 1 < g->member_count ? more(f) : 0;
    put_eq(f, at, &one, g->yes, next ? (pestle_tree_node_t)next : g->no);
    at = next;
  }
}

static void put_split(pestle_forest_t* f, size_t at, const given_t* g) {
  if (isnan(g->threshold) && g->mode != MEMBER) {
    pestle_tree_node_t to = g->mode == NEQ ? g->yes : g->no;
    put(f, at, g, 0, to, to);
    return;
  }
  switch (g->mode) {
    case LEQ:
      put_leq(f, at, g, g->yes, g->no);
      break;
    case GT:
      put_leq(f, at, g, g->no, g->yes);
      break;
    case LT:
      put_lt(f, at, g, g->yes, g->no);
      break;
    case GTE:
      put_lt(f, at, g, g->no, g->yes);
      break;
    case EQ:
      put_eq(f, at, g, g->yes, g->no);
      break;
    case NEQ:
      put_eq(f, at, g, g->no, g->yes);
      break;
    case MEMBER:
      put_member(f, at, g);
      break;
    case LEAF:
      break;
  }
}

// Splits of |given|, of which each that is no leaf keeps its number.
static bool put_splits(pestle_onnx_call_t* call, pestle_forest_t* f,
                       const given_t* given, size_t count) {
  size_t strict = 0, other = 0, room = 1;
  for (size_t i = 0; i < count; ++i) {
    node_mode_t m = given[i].mode;
    strict += m == LT || m == GTE;
    other += m == LEQ || m == GT;
    room += 2 + 2 * given[i].member_count;
    if (given[i].feature < 0 || given[i].feature >= f->features) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "split %zu looks at feature %lld, its input has %lld", i,
                       (long long)given[i].feature, (long long)f->features);
      return false;
    }
  }
  if (room > MOST_NODES) return fail(call, "it has more than 2^25 splits");
  f->strict = strict > other;
  f->split_room = room;
  f->splits = pestle_onnx_scratch(call, room * sizeof(*f->splits));
  if (!f->splits) return false;
  f->split_count = count;
  for (size_t i = 0; i < count; ++i)
    put_split(f, i, &given[i]);
  return true;
}

// --- Depth ---

typedef struct walk_t {
  const pestle_forest_t* f;
  int32_t *depth, *stack;  // of splits: -1 unseen, -2 on the way
  uint8_t* ends;           // of each split on the way: how many are done
} walk_t;

static void enter(walk_t* w, size_t* top, pestle_tree_node_t node) {
  w->depth[node] = -2;
  w->ends[*top] = 0;
  w->stack[(*top)++] = node;
}

// The depth of |root|; false for a cycle.
static bool measure(walk_t* w, pestle_tree_node_t root) {
  size_t top = 0;
  if (root >= 0 && w->depth[root] == -1) enter(w, &top, root);
  while (top) {
    int32_t at = w->stack[top - 1];
    const pestle_split_t* s = &w->f->splits[at];
    const pestle_tree_node_t next[] = {s->yes, s->no, s->missing};
    uint8_t end = w->ends[top - 1]++;
    if (end < 3) {
      if (next[end] < 0) continue;
      if (w->depth[next[end]] == -2) return false;
      if (w->depth[next[end]] == -1) enter(w, &top, next[end]);
      continue;
    }
    int32_t deepest = 0;
    for (size_t i = 0; i < 3; ++i) {
      if (next[i] >= 0 && w->depth[next[i]] > deepest)
        deepest = w->depth[next[i]];
    }
    w->depth[at] = deepest + 1;
    --top;
  }
  return true;
}

static bool measure_depth(pestle_onnx_call_t* call, pestle_forest_t* f) {
  walk_t w = {.f = f};
  w.depth = pestle_onnx_scratch(call, (f->split_count + 1) * sizeof(*w.depth));
  w.stack = pestle_onnx_scratch(call, (f->split_count + 1) * sizeof(*w.stack));
  w.ends = pestle_onnx_scratch(call, f->split_count + 1);
  if (!w.depth || !w.stack || !w.ends) return false;
  for (size_t i = 0; i < f->split_count; ++i)
    w.depth[i] = -1;
  for (size_t i = 0; i < f->tree_count; ++i) {
    if (!measure(&w, f->roots[i])) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "tree %zu leads from a node back to itself; a tree has "
                       "no cycles",
                       i);
      return false;
    }
    int32_t d = f->roots[i] < 0 ? 0 : w.depth[f->roots[i]];
    if (d > f->depth) f->depth = d;
  }
  return true;
}

// --- Opsets 1 to 4 ---

typedef struct rows_t {
  pestle_i64s_t trees, nodes, features, yes, no, tracks;
  pestle_ml_numbers_t values;
  const pestle_onnx_attr_t* modes;
  size_t count;
  pestle_map_t places;  // (tree, node) -> row
} rows_t;

static bool read_mode(pestle_str_t name, node_mode_t* out) {
  static const char* const names[] = {
      "BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
      "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
  for (int i = 0; i < 8; ++i) {
    if (i == MEMBER || !pestle_str_equal_c(name, names[i])) continue;
    *out = (node_mode_t)i;
    return true;
  }
  return false;
}

static bool read_rows(pestle_onnx_call_t* call, rows_t* r, bool* wide) {
  r->trees = pestle_onnx_ints(call, "nodes_treeids");
  r->nodes = pestle_onnx_ints(call, "nodes_nodeids");
  r->features = pestle_onnx_ints(call, "nodes_featureids");
  r->yes = pestle_onnx_ints(call, "nodes_truenodeids");
  r->no = pestle_onnx_ints(call, "nodes_falsenodeids");
  r->tracks = pestle_onnx_ints(call, "nodes_missing_value_tracks_true");
  r->values = pestle_ml_numbers(call, "nodes_values", wide);
  r->modes = pestle_onnx_node_attr(call->node, "nodes_modes");
  size_t n = r->count = r->nodes.count;
  bool fits = n && r->trees.count == n && r->features.count == n &&
              r->yes.count == n && r->no.count == n && r->values.count == n &&
              r->tracks.count <= n && r->modes &&
              r->modes->kind == PESTLE_ONNX_ATTR_STRINGS &&
              r->modes->count == n && n < MOST_NODES;
  if (call->f.status) return false;
  return fits || fail(call,
                      "its attributes nodes_... are missing, or not of one "
                      "length");
}

static pestle_map_value_t* place_of(const rows_t* r, int64_t tree,
                                    int64_t node) {
  int64_t key[2] = {tree, node};
  return pestle_map_find(&r->places, key, sizeof(key));
}

// Numbers nodes: splits and leaves each from 0 on, in their order.
static bool number_nodes(pestle_onnx_call_t* call, rows_t* r,
                         pestle_forest_t* f, given_t* given,
                         pestle_tree_node_t* numbers) {
  size_t splits = 0;
  for (size_t i = 0; i < r->count; ++i) {
    int64_t key[2] = {r->trees.data[i], r->nodes.data[i]};
    bool added = false;
    pestle_map_value_t* place =
        pestle_map_put(&r->places, key, sizeof(key), &added);
    if (!place) {
      pestle_onnx_keep(call, PESTLE_OOM());
      return false;
    }
    node_mode_t mode;
    if (!added) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "tree %lld has node %lld twice", (long long)key[0],
                       (long long)key[1]);
      return false;
    }
    if (!read_mode(r->modes->strings[i], &mode)) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "attribute 'nodes_modes' holds '%.*s', known are "
                       "BRANCH_LEQ, _LT, _GTE, _GT, _EQ, _NEQ and LEAF",
                       PESTLE_STR_ARG(r->modes->strings[i]));
      return false;
    }
    place->u64 = i;
    numbers[i] = mode == LEAF ? -1 - (pestle_tree_node_t)f->leaf_count++
                              : (pestle_tree_node_t)splits++;
    if (mode == LEAF) continue;
    given[numbers[i]] =
        (given_t){.mode = mode,
                  .feature = r->features.data[i],
                  .threshold = r->values.data[i],
                  .tracks = i < r->tracks.count && r->tracks.data[i] == 1};
  }
  return true;
}

static bool find_child(pestle_onnx_call_t* call, const rows_t* r, size_t row,
                       int64_t node, const pestle_tree_node_t* numbers,
                       pestle_tree_node_t* out) {
  const pestle_map_value_t* place = place_of(r, r->trees.data[row], node);
  if (!place || place->u64 == row) {
    pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                     "node %lld of tree %lld leads to node %lld, which %s",
                     (long long)r->nodes.data[row],
                     (long long)r->trees.data[row], (long long)node,
                     place ? "is itself" : "the tree lacks");
    return false;
  }
  *out = numbers[place->u64];
  return true;
}

// The first node of each tree is its root.
static bool find_roots(pestle_onnx_call_t* call, const rows_t* r,
                       pestle_forest_t* f, const pestle_tree_node_t* numbers) {
  pestle_map_t seen;
  bool ok = true;
  f->roots = pestle_onnx_scratch(call, (r->count + 1) * sizeof(*f->roots));
  if (!f->roots) return false;
  pestle_map_init(call->import->allocator, &seen);
  for (size_t i = 0; ok && i < r->count; ++i) {
    if (i && r->trees.data[i] == r->trees.data[i - 1]) continue;
    bool added = false;
    ok = pestle_map_put(&seen, &r->trees.data[i], sizeof(int64_t), &added);
    if (added) f->roots[f->tree_count++] = numbers[i];
  }
  pestle_map_deinit(&seen);
  if (!ok) pestle_onnx_keep(call, PESTLE_OOM());
  return ok;
}

static pestle_i64s_t role_ints(pestle_onnx_call_t* call, const char* role,
                               const char* what) {
  char name[64];
  snprintf(name, sizeof(name), "%s_%s", role, what);
  return pestle_onnx_ints(call, name);
}

static bool read_weights(pestle_onnx_call_t* call, const rows_t* r,
                         const char* role, pestle_forest_t* f,
                         const pestle_tree_node_t* numbers, bool* wide) {
  char name[64];
  snprintf(name, sizeof(name), "%s_weights", role);
  pestle_i64s_t trees = role_ints(call, role, "treeids");
  pestle_i64s_t nodes = role_ints(call, role, "nodeids");
  pestle_i64s_t ids = role_ints(call, role, "ids");
  pestle_ml_numbers_t weights = pestle_ml_numbers(call, name, wide);
  size_t n = ids.count;
  if (call->f.status) return false;
  if (trees.count != n || nodes.count != n || weights.count != n) {
    return fail(call, "its attributes of leaves are not of one length");
  }
  f->weights = pestle_onnx_scratch(call, (n + 1) * sizeof(*f->weights));
  if (!f->weights) return false;
  for (size_t i = 0; i < n; ++i) {
    const pestle_map_value_t* place = place_of(r, trees.data[i], nodes.data[i]);
    if (!place) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "a weight is of node %lld of tree %lld, which there is "
                       "not",
                       (long long)nodes.data[i], (long long)trees.data[i]);
      return false;
    }
    // Old converters give splits weights as well, which mean nothing.
    pestle_tree_node_t node = numbers[place->u64];
    if (node >= 0) continue;
    if (ids.data[i] < 0 || ids.data[i] >= f->targets) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "a weight is of target %lld of %lld",
                       (long long)ids.data[i], (long long)f->targets);
      return false;
    }
    f->weights[f->weight_count++] =
        (pestle_leaf_weight_t){.leaf = -1 - node,
                               .target = (int32_t)ids.data[i],
                               .weight = weights.data[i]};
  }
  return true;
}

static bool read_all(pestle_onnx_call_t* call, const char* role, rows_t* r,
                     pestle_forest_t* f) {
  bool wide = false;
  if (!read_rows(call, r, &wide)) return false;
  given_t* given = pestle_onnx_scratch(call, (r->count + 1) * sizeof(*given));
  pestle_tree_node_t* numbers =
      pestle_onnx_scratch(call, (r->count + 1) * sizeof(*numbers));
  if (!given || !numbers) return false;
  if (!number_nodes(call, r, f, given, numbers)) return false;
  for (size_t i = 0; i < r->count; ++i) {
    if (numbers[i] < 0) continue;
    given_t* g = &given[numbers[i]];
    if (!find_child(call, r, i, r->yes.data[i], numbers, &g->yes) ||
        !find_child(call, r, i, r->no.data[i], numbers, &g->no)) {
      return false;
    }
  }
  return find_roots(call, r, f, numbers) &&
         read_weights(call, r, role, f, numbers, &wide) &&
         put_splits(call, f, given, r->count - f->leaf_count) &&
         measure_depth(call, f);
}

bool pestle_forest_read(pestle_onnx_call_t* call, const char* role,
                        pestle_forest_t* f) {
  rows_t r = {0};
  pestle_map_init(call->import->allocator, &r.places);
  bool ok = read_all(call, role, &r, f);
  pestle_map_deinit(&r.places);
  return ok;
}

// --- Opset 5 ---

// The members of each set follow each other, a NaN behind each.
static bool next_set(const pestle_ml_numbers_t* all, size_t* at, given_t* g) {
  if (*at >= all->count) return false;
  g->members = all->data + *at;
  while (*at < all->count && !isnan(all->data[*at])) {
    ++*at;
    ++g->member_count;
  }
  ++*at;
  return true;
}

static bool node_of(int64_t id, bool leaf, size_t splits, size_t leaves,
                    pestle_tree_node_t* out) {
  if (id < 0 || (uint64_t)id >= (leaf ? leaves : splits)) return false;
  *out = leaf ? -1 - (pestle_tree_node_t)id : (pestle_tree_node_t)id;
  return true;
}

bool pestle_forest_read_5(pestle_onnx_call_t* call, pestle_forest_t* f) {
  pestle_i64s_t roots = pestle_onnx_ints(call, "tree_roots");
  pestle_i64s_t features = pestle_onnx_ints(call, "nodes_featureids");
  pestle_i64s_t yes = pestle_onnx_ints(call, "nodes_truenodeids");
  pestle_i64s_t no = pestle_onnx_ints(call, "nodes_falsenodeids");
  pestle_i64s_t yes_leaf = pestle_onnx_ints(call, "nodes_trueleafs");
  pestle_i64s_t no_leaf = pestle_onnx_ints(call, "nodes_falseleafs");
  pestle_i64s_t tracks =
      pestle_onnx_ints(call, "nodes_missing_value_tracks_true");
  pestle_i64s_t targets = pestle_onnx_ints(call, "leaf_targetids");
  pestle_ml_numbers_t splits = pestle_ml_numbers(call, "nodes_splits", NULL);
  pestle_ml_numbers_t modes = pestle_ml_numbers(call, "nodes_modes", NULL);
  pestle_ml_numbers_t weights = pestle_ml_numbers(call, "leaf_weights", NULL);
  pestle_ml_numbers_t members =
      pestle_ml_numbers(call, "membership_values", NULL);
  size_t n = features.count, set = 0;
  if (call->f.status) return false;
  if (yes.count != n || no.count != n || yes_leaf.count != n ||
      no_leaf.count != n || splits.count != n || modes.count != n ||
      tracks.count > n || targets.count != weights.count || !roots.count ||
      n + weights.count + roots.count >= MOST_NODES) {
    return fail(call,
                "its attributes nodes_... or leaf_... are missing, or not of "
                "one length");
  }
  f->leaf_count = f->weight_count = weights.count;
  given_t* given = pestle_onnx_scratch(call, (n + 1) * sizeof(*given));
  f->weights =
      pestle_onnx_scratch(call, (weights.count + 1) * sizeof(*f->weights));
  f->roots = pestle_onnx_scratch(call, (roots.count + 1) * sizeof(*f->roots));
  if (!given || !f->weights || !f->roots) return false;
  for (size_t i = 0; i < n; ++i) {
    double mode = modes.data[i];
    given_t* g = &given[i];
    if (!(mode >= 0 && mode <= MEMBER) || mode != (double)(int)mode) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "attribute 'nodes_modes' holds %g, known are 0 to 6",
                       mode);
      return false;
    }
    *g = (given_t){.mode = (node_mode_t)(int)mode,
                   .feature = features.data[i],
                   .threshold = splits.data[i],
                   .tracks = i < tracks.count && tracks.data[i] == 1};
    if (g->mode == MEMBER && !next_set(&members, &set, g)) {
      return fail(call, "it has more splits by members than sets of them");
    }
    if (!node_of(yes.data[i], yes_leaf.data[i] != 0, n, weights.count,
                 &g->yes) ||
        !node_of(no.data[i], no_leaf.data[i] != 0, n, weights.count, &g->no)) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "split %zu leads to a node or leaf that there is not",
                       i);
      return false;
    }
  }
  for (size_t i = 0; i < weights.count; ++i) {
    if (targets.data[i] < 0 || targets.data[i] >= f->targets) {
      pestle_onnx_fail(call, PESTLE_STATUS_MALFORMED,
                       "leaf %zu is of target %lld of %lld", i,
                       (long long)targets.data[i], (long long)f->targets);
      return false;
    }
    f->weights[i] = (pestle_leaf_weight_t){.leaf = (int32_t)i,
                                           .target = (int32_t)targets.data[i],
                                           .weight = weights.data[i]};
  }
  for (size_t i = 0; i < roots.count; ++i) {
    if (!node_of(roots.data[i], false, n, 0, &f->roots[i])) {
      return fail(call, "a tree begins at a split that there is not");
    }
  }
  f->tree_count = roots.count;
  return put_splits(call, f, given, n) && measure_depth(call, f);
}
