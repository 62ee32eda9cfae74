// SPDX-License-Identifier: Apache-2.0
// Random ops over a mesh, as text, on values that lie anyhow: what
// partition_graph_whole.h makes modules of.
#ifndef PESTLE_TESTS_UNIT_PASSES_PARTITION_GRAPH_H_
#define PESTLE_TESTS_UNIT_PASSES_PARTITION_GRAPH_H_

#include <stdarg.h>

#include "partition_test.h"

enum { GRAPH_VALUES = 48, GRAPH_TEXT = 1 << 16, GRAPH_ARGUMENTS = 6 };

typedef struct graph_value_t {
  bool floats;
  int rank;
  int64_t dims[6];
} graph_value_t;

typedef struct graph_t {
  uint64_t seed;
  char* text;
  size_t size;
  const char* mesh;  // axes in text
  int axes;
  int64_t sizes[3];
  graph_value_t values[GRAPH_VALUES];
  int count, arguments;
} graph_t;

static inline int64_t pick(graph_t* g, int64_t n) {
  return (int64_t)((test_random(&g->seed) >> 17) % (uint64_t)n);
}

__attribute__((format(printf, 2, 3))) static inline void say(graph_t* g,
                                                             const char* f,
                                                             ...) {
  va_list list;
  va_start(list, f);
  int n = vsnprintf(g->text + g->size, GRAPH_TEXT - g->size, f, list);
  va_end(list);
  assert_true(n >= 0 && g->size + (size_t)n < GRAPH_TEXT);
  g->size += (size_t)n;
}

static inline void say_type(graph_t* g, const graph_value_t* v) {
  say(g, "tensor<");
  for (int d = 0; d < v->rank; ++d)
    say(g, "%lldx", (long long)v->dims[d]);
  say(g, "%s>", v->floats ? "f32" : "i32");
}

static inline void say_list(graph_t* g, const int64_t* list, int n) {
  for (int i = 0; i < n; ++i)
    say(g, "%s%lld", i ? ", " : "", (long long)list[i]);
}

static inline int64_t extent(graph_t* g) {
  static const int64_t extents[] = {1, 2, 3, 4, 6, 6, 12, 12, 12};
  return extents[pick(g, 9)];
}

// A sharding that the extents allow.
static inline void say_spec(graph_t* g, const graph_value_t* v) {
  int64_t parts[6];
  int dim_of[3], order[3] = {0, 1, 2};
  static const char* const names[] = {"a", "b", "c"};
  for (int d = 0; d < v->rank; ++d)
    parts[d] = 1;
  for (int i = g->axes - 1; i > 0; --i) {
    int k = (int)pick(g, i + 1), o = order[i];
    order[i] = order[k];
    order[k] = o;
  }
  for (int i = 0; i < g->axes; ++i) {
    int axis = order[i];
    dim_of[i] = v->rank ? (int)pick(g, v->rank + 1) : 0;
    if (dim_of[i] == v->rank ||
        v->dims[dim_of[i]] % (parts[dim_of[i]] * g->sizes[axis]) != 0) {
      dim_of[i] = -1;
    } else {
      parts[dim_of[i]] *= g->sizes[axis];
    }
  }
  say(g, "<@m, [");
  for (int d = 0; d < v->rank; ++d) {
    const char* between = "";
    say(g, "%s{", d ? ", " : "");
    for (int i = 0; i < g->axes; ++i) {
      if (dim_of[i] != d) continue;
      say(g, "%s\"%s\"", between, names[order[i]]);
      between = ", ";
    }
    if (!pick(g, 4)) say(g, "%s?", between);
    say(g, "}");
  }
  say(g, "]>");
}

// One, or nothing.
static inline void say_sharding(graph_t* g, const graph_value_t* v) {
  if (!pick(g, 4)) return;
  say(g, " {sdy.sharding = #sdy.sharding");
  say_spec(g, v);
  say(g, "}");
}

static inline graph_value_t* add_value(graph_t* g, graph_value_t v) {
  assert_true(g->count < GRAPH_VALUES);
  g->values[g->count] = v;
  return &g->values[g->count++];
}

static inline int64_t elements(const graph_value_t* v) {
  int64_t n = 1;
  for (int d = 0; d < v->rank; ++d)
    n *= v->dims[d];
  return n;
}

// --- Ops: each takes value |a|, and makes one, or does not fit ---

static inline bool same_shape(const graph_value_t* a, const graph_value_t* b) {
  return a->floats == b->floats && a->rank == b->rank &&
         !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof(*a->dims));
}

// Another value like |a|, |a| itself if there is none.
static inline int like(graph_t* g, int a) {
  int at = (int)pick(g, g->count);
  for (int i = 0; i < g->count; ++i) {
    int k = (at + i) % g->count;
    if (same_shape(&g->values[a], &g->values[k])) return k;
  }
  return a;
}

static inline bool make_binary(graph_t* g, int a) {
  static const char* const ops[] = {"add", "subtract", "maximum", "minimum",
                                    "multiply"};
  graph_value_t v = g->values[a];
  int b = like(g, a);
  // Products of products grow past what reassociation leaves alike.
  int op = (int)pick(g, v.floats && a >= g->arguments ? 4 : 5);
  if (v.floats && op > 1 && (a >= g->arguments || b >= g->arguments)) op = 0;
  say(g, "%%v%d = stablehlo.%s %%v%d, %%v%d : ", g->count, ops[op], a, b);
  say_type(g, &v);
  say(g, "\n");
  add_value(g, v);
  return true;
}

static inline bool make_select(graph_t* g, int a) {
  graph_value_t v = g->values[a];
  if (v.floats) return false;
  int b = like(g, a), n = g->count;
  say(g, "%%c%d = stablehlo.compare LT, %%v%d, %%v%d : (", n, a, b);
  say_type(g, &v);
  say(g, ", ");
  say_type(g, &v);
  say(g, ") -> tensor<");
  for (int d = 0; d < v.rank; ++d)
    say(g, "%lldx", (long long)v.dims[d]);
  say(g, "i1>\n%%v%d = stablehlo.select %%c%d, %%v%d, %%v%d : tensor<", n, n, b,
      like(g, a));
  for (int d = 0; d < v.rank; ++d)
    say(g, "%lldx", (long long)v.dims[d]);
  say(g, "i1>, ");
  say_type(g, &v);
  say(g, "\n");
  add_value(g, v);
  return true;
}

static inline bool make_transpose(graph_t* g, int a) {
  graph_value_t v = g->values[a], r = v;
  int64_t order[6];
  if (v.rank < 2) return false;
  for (int d = 0; d < v.rank; ++d)
    order[d] = d;
  for (int d = v.rank - 1; d > 0; --d) {
    int k = (int)pick(g, d + 1);
    int64_t o = order[d];
    order[d] = order[k];
    order[k] = o;
  }
  for (int d = 0; d < v.rank; ++d)
    r.dims[d] = v.dims[order[d]];
  say(g, "%%v%d = stablehlo.transpose %%v%d, dims = [", g->count, a);
  say_list(g, order, v.rank);
  say(g, "] : (");
  say_type(g, &v);
  say(g, ") -> ");
  say_type(g, &r);
  say(g, "\n");
  add_value(g, r);
  return true;
}

static inline bool make_reshape(graph_t* g, int a) {
  graph_value_t v = g->values[a], r = {.floats = v.floats};
  int64_t left = elements(&v);
  while (left > 1 && r.rank < 4) {
    static const int64_t some[] = {2, 3, 4, 6, 12};
    int64_t e = r.rank == 3 ? left : some[pick(g, 5)];
    if (left % e != 0) e = left;
    r.dims[r.rank++] = e;
    left /= e;
  }
  say(g, "%%v%d = stablehlo.reshape %%v%d : (", g->count, a);
  say_type(g, &v);
  say(g, ") -> ");
  say_type(g, &r);
  say(g, "\n");
  add_value(g, r);
  return true;
}

static inline bool make_broadcast(graph_t* g, int a) {
  graph_value_t v = g->values[a], r = {.floats = v.floats};
  int64_t dims[6];
  if (v.rank > 3 || elements(&v) > 200) return false;
  int at = (int)pick(g, v.rank + 1);
  for (int d = 0; d <= v.rank; ++d) {
    if (d == at) r.dims[r.rank++] = extent(g);
    if (d == v.rank) break;
    dims[d] = r.rank;
    r.dims[r.rank++] = v.dims[d] == 1 && pick(g, 2) ? extent(g) : v.dims[d];
  }
  say(g, "%%v%d = stablehlo.broadcast_in_dim %%v%d, dims = [", g->count, a);
  say_list(g, dims, v.rank);
  say(g, "] : (");
  say_type(g, &v);
  say(g, ") -> ");
  say_type(g, &r);
  say(g, "\n");
  add_value(g, r);
  return true;
}

// Over a dim of each that has one extent.
static inline bool make_dot(graph_t* g, int a) {
  graph_value_t v = g->values[a];
  int b = (int)pick(g, g->count);
  for (int i = 0; i < g->count; ++i, b = (b + 1) % g->count) {
    graph_value_t w = g->values[b], r = {.floats = v.floats};
    if (w.floats != v.floats || w.rank + v.rank > 6) continue;
    for (int x = 0; x < v.rank; ++x) {
      for (int y = 0; y < w.rank; ++y) {
        if (v.dims[x] != w.dims[y]) continue;
        for (int d = 0; d < v.rank; ++d) {
          if (d != x) r.dims[r.rank++] = v.dims[d];
        }
        for (int d = 0; d < w.rank; ++d) {
          if (d != y) r.dims[r.rank++] = w.dims[d];
        }
        if (elements(&r) > 2000 || r.rank > 4) return false;
        say(g,
            "%%v%d = stablehlo.dot_general %%v%d, %%v%d, contracting_dims = "
            "[%d] x [%d] : (",
            g->count, a, b, x, y);
        say_type(g, &v);
        say(g, ", ");
        say_type(g, &w);
        say(g, ") -> ");
        say_type(g, &r);
        say(g, "\n");
        add_value(g, r);
        return true;
      }
    }
  }
  return false;
}

static inline bool make_reduce(graph_t* g, int a) {
  graph_value_t v = g->values[a], r = {.floats = v.floats};
  int64_t dims[6];
  int n = 0, name = g->count;
  if (!v.rank) return false;
  for (int d = 0; d < v.rank; ++d) {
    if (pick(g, 2)) {
      dims[n++] = d;
    } else {
      r.dims[r.rank++] = v.dims[d];
    }
  }
  bool sum = pick(g, 2);
  say(g, "%%c%d = stablehlo.constant dense<%s> : tensor<%s>\n", name,
      v.floats ? (pick(g, 2) ? "0.0" : "0.5") : (pick(g, 2) ? "0" : "7"),
      v.floats ? "f32" : "i32");
  say(g,
      "%%v%d = stablehlo.reduce(%%v%d init: %%c%d) applies stablehlo.%s "
      "across dimensions = [",
      name, a, name, sum ? "add" : "maximum");
  say_list(g, dims, n);
  say(g, "] : (");
  say_type(g, &v);
  say(g, ", tensor<%s>) -> ", v.floats ? "f32" : "i32");
  say_type(g, &r);
  say(g, "\n");
  add_value(g, r);
  return true;
}

static inline bool make_slice(graph_t* g, int a) {
  graph_value_t v = g->values[a], r = v;
  if (!v.rank) return false;
  say(g, "%%v%d = stablehlo.slice %%v%d [", g->count, a);
  for (int d = 0; d < v.rank; ++d) {
    int64_t low = pick(g, 2) ? 0 : pick(g, v.dims[d]);
    int64_t high = low + 1 + pick(g, v.dims[d] - low);
    if (pick(g, 2)) low = 0, high = v.dims[d];
    int64_t step = 1 + (pick(g, 4) == 0);
    r.dims[d] = (high - low + step - 1) / step;
    say(g, "%s%lld:%lld:%lld", d ? ", " : "", (long long)low, (long long)high,
        (long long)step);
  }
  say(g, "] : (");
  say_type(g, &v);
  say(g, ") -> ");
  say_type(g, &r);
  say(g, "\n");
  add_value(g, r);
  return true;
}

static inline bool make_reverse(graph_t* g, int a) {
  graph_value_t v = g->values[a];
  if (!v.rank) return false;
  say(g, "%%v%d = stablehlo.reverse %%v%d, dims = [%d] : ", g->count, a,
      (int)pick(g, v.rank));
  say_type(g, &v);
  say(g, "\n");
  add_value(g, v);
  return true;
}

static inline bool make_pad(graph_t* g, int a) {
  graph_value_t v = g->values[a], r = v;
  int d = v.rank ? (int)pick(g, v.rank) : 0;
  int64_t low[6] = {0}, high[6] = {0}, inner[6] = {0};
  if (!v.rank || v.dims[d] > 6) return false;
  low[d] = pick(g, 3);
  high[d] = pick(g, 3);
  inner[d] = pick(g, 2);
  r.dims[d] += low[d] + high[d] + inner[d] * (v.dims[d] - 1);
  say(g, "%%c%d = stablehlo.constant dense<%s> : tensor<%s>\n", g->count,
      v.floats ? "0.25" : "3", v.floats ? "f32" : "i32");
  say(g, "%%v%d = stablehlo.pad %%v%d, %%c%d, low = [", g->count, a, g->count);
  say_list(g, low, v.rank);
  say(g, "], high = [");
  say_list(g, high, v.rank);
  say(g, "], interior = [");
  say_list(g, inner, v.rank);
  say(g, "] : (");
  say_type(g, &v);
  say(g, ", tensor<%s>) -> ", v.floats ? "f32" : "i32");
  say_type(g, &r);
  say(g, "\n");
  add_value(g, r);
  return true;
}

static inline bool make_concatenate(graph_t* g, int a) {
  graph_value_t v = g->values[a], r = v;
  int b = like(g, a), d = v.rank ? (int)pick(g, v.rank) : 0;
  if (!v.rank || v.dims[d] > 6) return false;
  r.dims[d] *= 2;
  say(g, "%%v%d = stablehlo.concatenate %%v%d, %%v%d, dim = %d : (", g->count,
      a, b, d);
  say_type(g, &v);
  say(g, ", ");
  say_type(g, &v);
  say(g, ") -> ");
  say_type(g, &r);
  say(g, "\n");
  add_value(g, r);
  return true;
}

static inline bool make_iota(graph_t* g, int a) {
  graph_value_t v = g->values[a];
  int n = g->count;
  if (!v.rank) return false;
  say(g, "%%c%d = stablehlo.iota dim = %d : ", n, (int)pick(g, v.rank));
  say_type(g, &v);
  say(g, "\n%%v%d = stablehlo.add %%c%d, %%v%d : ", n, n, a);
  say_type(g, &v);
  say(g, "\n");
  add_value(g, v);
  return true;
}

// Rows of |a| by a list of numbers, some of which are none of its rows.
static inline bool make_gather(graph_t* g, int a) {
  graph_value_t v = g->values[a];
  int at = (int)pick(g, g->count);
  for (int i = 0; i < g->count; ++i, at = (at + 1) % g->count) {
    if (!g->values[at].floats && g->values[at].rank == 1) break;
  }
  graph_value_t w = g->values[at];
  if (!v.rank || w.floats || w.rank != 1 || v.rank > 3) return false;
  graph_value_t r = v;
  r.dims[0] = w.dims[0];
  say(g,
      "%%v%d = \"stablehlo.gather\"(%%v%d, %%v%d) <{dimension_numbers = "
      "#stablehlo.gather<offset_dims = [",
      g->count, a, at);
  for (int d = 1; d < v.rank; ++d)
    say(g, "%s%d", d > 1 ? ", " : "", d);
  say(g,
      "], collapsed_slice_dims = [0], start_index_map = [0], "
      "index_vector_dim = 1>, slice_sizes = array<i64: 1");
  for (int d = 1; d < v.rank; ++d)
    say(g, ", %lld", (long long)v.dims[d]);
  say(g, ">, indices_are_sorted = false}> : (");
  say_type(g, &v);
  say(g, ", ");
  say_type(g, &w);
  say(g, ") -> ");
  say_type(g, &r);
  say(g, "\n");
  add_value(g, r);
  return true;
}

// Rows of a value like |a| are added to rows of |a|.
static inline bool make_scatter(graph_t* g, int a) {
  graph_value_t v = g->values[a];
  int b = like(g, a), at = -1;
  for (int i = 0; i < g->count; ++i) {
    const graph_value_t* w = &g->values[i];
    if (!w->floats && w->rank == 1 && v.rank && w->dims[0] == v.dims[0]) at = i;
  }
  if (at < 0) return false;
  say(g,
      "%%v%d = \"stablehlo.scatter\"(%%v%d, %%v%d, %%v%d) <{"
      "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [",
      g->count, a, at, b);
  for (int d = 1; d < v.rank; ++d)
    say(g, "%s%d", d > 1 ? ", " : "", d);
  const char* e = v.floats ? "f32" : "i32";
  say(g,
      "], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
      "index_vector_dim = 1>, indices_are_sorted = false, unique_indices = "
      "false}> ({\n^bb0(%%p: tensor<%s>, %%q: tensor<%s>):\n"
      "%%o = stablehlo.add %%p, %%q : tensor<%s>\n"
      "stablehlo.return %%o : tensor<%s>\n}) : (",
      e, e, e, e);
  say_type(g, &v);
  say(g, ", ");
  say_type(g, &g->values[at]);
  say(g, ", ");
  say_type(g, &v);
  say(g, ") -> ");
  say_type(g, &v);
  say(g, "\n");
  add_value(g, v);
  return true;
}

static inline bool make_dynamic(graph_t* g, int a) {
  graph_value_t v = g->values[a], r = v;
  int n = g->count;
  if (!v.rank) return false;
  for (int d = 0; d < v.rank; ++d) {
    say(g, "%%s%d_%d = stablehlo.constant dense<%d> : tensor<i32>\n", n, d,
        (int)pick(g, 5) - 1);
    if (pick(g, 2)) r.dims[d] = 1 + pick(g, v.dims[d]);
  }
  say(g, "%%c%d = stablehlo.dynamic_slice %%v%d", n, a);
  for (int d = 0; d < v.rank; ++d)
    say(g, ", %%s%d_%d", n, d);
  say(g, ", sizes = [");
  say_list(g, r.dims, v.rank);
  say(g, "] : (");
  say_type(g, &v);
  for (int d = 0; d < v.rank; ++d)
    say(g, ", tensor<i32>");
  say(g, ") -> ");
  say_type(g, &r);
  say(g, "\n%%v%d = stablehlo.dynamic_update_slice %%v%d, %%c%d", n, like(g, a),
      n);
  for (int d = 0; d < v.rank; ++d)
    say(g, ", %%s%d_%d", n, d);
  say(g, " : (");
  say_type(g, &v);
  say(g, ", ");
  say_type(g, &r);
  for (int d = 0; d < v.rank; ++d)
    say(g, ", tensor<i32>");
  say(g, ") -> ");
  say_type(g, &v);
  say(g, "\n");
  add_value(g, v);
  return true;
}

static inline bool make_sort(graph_t* g, int a) {
  graph_value_t v = g->values[a];
  if (v.floats || !v.rank) return false;
  say(g,
      "%%v%d = \"stablehlo.sort\"(%%v%d) <{dimension = %d : i64, is_stable = "
      "true}> ({\n^bb0(%%p: tensor<i32>, %%q: tensor<i32>):\n"
      "%%o = stablehlo.compare LT, %%p, %%q : (tensor<i32>, tensor<i32>) -> "
      "tensor<i1>\nstablehlo.return %%o : tensor<i1>\n}) : (",
      g->count, a, (int)pick(g, v.rank));
  say_type(g, &v);
  say(g, ") -> ");
  say_type(g, &v);
  say(g, "\n");
  add_value(g, v);
  return true;
}

// Three turns, each of which adds a value from outside, moved.
static inline bool make_loop(graph_t* g, int a) {
  graph_value_t v = g->values[a];
  int b = like(g, a), n = g->count;
  if (!v.rank) return false;
  say(g,
      "%%z%d = stablehlo.constant dense<0> : tensor<i32>\n"
      "%%w%d:2 = stablehlo.while(%%k = %%z%d, %%u = %%v%d) : tensor<i32>, ",
      n, n, n, a);
  say_type(g, &v);
  say(g,
      "\ncond {\n%%l = stablehlo.constant dense<3> : tensor<i32>\n"
      "%%t = stablehlo.compare LT, %%k, %%l : (tensor<i32>, tensor<i32>) -> "
      "tensor<i1>\nstablehlo.return %%t : tensor<i1>\n} do {\n"
      "%%m = stablehlo.reverse %%v%d, dims = [%d] : ",
      b, (int)pick(g, v.rank));
  say_type(g, &v);
  say(g, "\n%%n = stablehlo.add %%m, %%u : ");
  say_type(g, &v);
  say(g,
      "\n%%l = stablehlo.constant dense<1> : tensor<i32>\n"
      "%%j = stablehlo.add %%k, %%l : tensor<i32>\n"
      "stablehlo.return %%j, %%n : tensor<i32>, ");
  say_type(g, &v);
  say(g, "\n}\n%%v%d = stablehlo.negate %%w%d#1 : ", n, n);
  say_type(g, &v);
  say(g, "\n");
  add_value(g, v);
  return true;
}

static inline bool make_branch(graph_t* g, int a) {
  graph_value_t v = g->values[a];
  int b = like(g, a), n = g->count;
  if (v.floats) return false;
  say(g,
      "%%z%d = stablehlo.constant dense<9> : tensor<i32>\n"
      "%%y%d = stablehlo.reduce(%%v%d init: %%z%d) applies stablehlo.add "
      "across dimensions = [",
      n, n, a, n);
  for (int d = 0; d < v.rank; ++d)
    say(g, "%s%d", d ? ", " : "", d);
  say(g, "] : (");
  say_type(g, &v);
  say(g,
      ", tensor<i32>) -> tensor<i32>\n"
      "%%x%d = stablehlo.constant dense<60> : tensor<i32>\n"
      "%%t%d = stablehlo.compare LT, %%y%d, %%x%d : (tensor<i32>, "
      "tensor<i32>) -> tensor<i1>\n"
      "%%v%d = \"stablehlo.if\"(%%t%d) ({\n%%o = stablehlo.negate %%v%d : ",
      n, n, n, n, n, n, b);
  say_type(g, &v);
  say(g, "\nstablehlo.return %%o : ");
  say_type(g, &v);
  say(g, "\n}, {\nstablehlo.return %%v%d : ", a);
  say_type(g, &v);
  say(g, "\n}) : (tensor<i1>) -> ");
  say_type(g, &v);
  say(g, "\n");
  add_value(g, v);
  return true;
}

static inline bool make_wish(graph_t* g, int a) {
  graph_value_t v = g->values[a];
  say(g, "%%v%d = sdy.sharding_constraint %%v%d ", g->count, a);
  say_spec(g, &v);
  say(g, " : ");
  say_type(g, &v);
  say(g, "\n");
  add_value(g, v);
  return true;
}

#endif  // PESTLE_TESTS_UNIT_PASSES_PARTITION_GRAPH_H_
