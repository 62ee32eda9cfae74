// SPDX-License-Identifier: Apache-2.0
// More kinds of random ops: convolutions, scans, and composites whose results lie in
// several ways.
#ifndef PESTLE_TESTS_UNIT_PASSES_PARTITION_GRAPH_MORE_H_
#define PESTLE_TESTS_UNIT_PASSES_PARTITION_GRAPH_MORE_H_

#include "partition_graph.h"

// "%KIND<n>", numbers along dims 0 and 1 that differ along both.
static inline void say_weights(graph_t* g, const char* kind,
                               const graph_value_t* v) {
  int n = g->count;
  for (int d = 0; d < 2; ++d) {
    say(g, "%%%s_%d_%d = stablehlo.iota dim = %d : ", kind, n, d, d);
    say_type(g, v);
    say(g, "\n");
  }
  say(g, "%%%s_%d_2 = stablehlo.multiply %%%s_%d_0, %%%s_%d_1 : ", kind, n,
      kind, n, kind, n);
  say_type(g, v);
  say(g, "\n%%%s%d = stablehlo.subtract %%%s_%d_1, %%%s_%d_2 : ", kind, n, kind,
      n, kind, n);
  say_type(g, v);
  say(g, "\n");
}

// On [b, f, s], with groups of features or of images, or none.
static inline bool make_convolution(graph_t* g, int a) {
  static const int64_t counts[] = {1, 1, 2, 3, 4, 6};
  graph_value_t x = g->values[a];
  if (!x.floats || x.rank != 3) return false;
  bool images = pick(g, 2);
  int64_t groups = counts[pick(g, 6)];
  if (x.dims[images ? 0 : 1] % groups) return false;
  int64_t window = x.dims[2] > 1 ? 2 : 1;
  graph_value_t w = {
      .floats = true,
      .rank = 3,
      .dims = {12, images ? x.dims[1] : x.dims[1] / groups, window}};
  graph_value_t v = {.floats = true,
                     .rank = 3,
                     .dims = {images ? x.dims[0] / groups : x.dims[0], 12,
                              x.dims[2] - window + 1}};
  say_weights(g, "k", &w);
  say(g,
      "%%v%d = stablehlo.convolution(%%v%d, %%k%d) dim_numbers = [b, f, 0]x[o, "
      "i, 0]->[b, f, 0], window = {stride = [1]} {batch_group_count = %lld : "
      "i64, feature_group_count = %lld : i64} : (",
      g->count, a, g->count, (long long)(images ? groups : 1),
      (long long)(images ? 1 : groups));
  say_type(g, &x);
  say(g, ", ");
  say_type(g, &w);
  say(g, ") -> ");
  say_type(g, &v);
  say(g, "\n");
  add_value(g, v);
  return true;
}

// A running sum over the rows of |a|, and what each row makes of it.
static inline bool make_scan(graph_t* g, int a) {
  graph_value_t xs = g->values[a], row = xs;
  int n = g->count;
  if (xs.rank < 2) return false;
  --row.rank;
  memmove(row.dims, xs.dims + 1, (size_t)row.rank * sizeof(*row.dims));
  bool last = pick(g, 2);
  say(g, "%%i%d = stablehlo.slice %%v%d [0:1", n, a);
  for (int d = 1; d < xs.rank; ++d)
    say(g, ", 0:%lld", (long long)xs.dims[d]);
  say(g, "] : (");
  say_type(g, &xs);
  graph_value_t first = xs;
  first.dims[0] = 1;
  say(g, ") -> ");
  say_type(g, &first);
  say(g, "\n%%h%d = stablehlo.reshape %%i%d : (", n, n);
  say_type(g, &first);
  say(g, ") -> ");
  say_type(g, &row);
  say(g,
      "\n%%w%d:2 = \"pestle.scan\"(%%h%d, %%v%d) <{length = %lld : i64, "
      "carry_count = 1 : i64, xs_count = 1 : i64, reverse = %s}> ({\n"
      "^bb0(%%c: ",
      n, n, a, (long long)xs.dims[0], pick(g, 2) ? "true" : "false");
  say_type(g, &row);
  say(g, ", %%x: ");
  say_type(g, &row);
  say(g, "):\n%%m = stablehlo.maximum %%c, %%x : ");
  say_type(g, &row);
  say(g, "\n%%y = stablehlo.subtract %%m, %%x : ");
  say_type(g, &row);
  say(g, "\nstablehlo.return %%m, %%y : ");
  say_type(g, &row);
  say(g, ", ");
  say_type(g, &row);
  say(g, "\n}) : (");
  say_type(g, &row);
  say(g, ", ");
  say_type(g, &xs);
  say(g, ") -> (");
  say_type(g, &row);
  say(g, ", ");
  say_type(g, &xs);
  say(g, ")\n%%v%d = stablehlo.negate %%w%d#%d : ", n, n, last ? 0 : 1);
  say_type(g, last ? &row : &xs);
  say(g, "\n");
  add_value(g, last ? row : xs);
  return true;
}

static inline bool make_norm_grad(graph_t* g, int a) {
  static const int64_t counts[] = {1, 2, 3, 4, 6, 12, 24};
  graph_value_t x = g->values[a];
  int b = like(g, a), n = g->count;
  if (!x.floats || x.rank < 2) return false;
  int64_t blocks = counts[pick(g, 7)], rows = 1;
  for (int d = 0; d + 1 < x.rank; ++d)
    rows *= x.dims[d];
  if (blocks > rows || x.dims[x.rank - 1] < 2) return false;
  graph_value_t scale = {
      .floats = true, .rank = 1, .dims = {x.dims[x.rank - 1]}};
  graph_value_t sums = {
      .floats = true, .rank = 2, .dims = {blocks, x.dims[x.rank - 1]}};
  int which = (int)pick(g, 3);
  say(g, "%%s%d = stablehlo.iota dim = 0 : ", n);
  say_type(g, &scale);
  say(g,
      "\n%%g%d:3 = \"pestle.norm_grad\"(%%v%d, %%s%d, %%v%d) {dimension = %d : "
      "i64, epsilon = 1.0 : f64, centred = true, blocks = %lld : i64} : (",
      n, a, n, b, x.rank - 1, (long long)blocks);
  say_type(g, &x);
  say(g, ", ");
  say_type(g, &scale);
  say(g, ", ");
  say_type(g, &x);
  say(g, ") -> (");
  say_type(g, &x);
  say(g, ", ");
  say_type(g, &sums);
  say(g, ", ");
  say_type(g, &sums);
  say(g, ")\n%%v%d = stablehlo.negate %%g%d#%d : ", n, n, which);
  say_type(g, which ? &sums : &x);
  say(g, "\n");
  add_value(g, which ? sums : x);
  return true;
}

// |a| along a new last axis, with bytes for weights.
static inline bool make_block_dot(graph_t* g, int a) {
  graph_value_t x = g->values[a];
  int n = g->count;
  if (!x.floats || x.rank > 2 || elements(&x) > 200) return false;
  int64_t blocks = pick(g, 2) ? 6 : 4, k = 16 * blocks;
  graph_value_t wide = x, s = {.floats = true, .rank = 2, .dims = {12, blocks}};
  wide.dims[wide.rank++] = k;
  say(g, "%%r%d = stablehlo.iota dim = %d : ", n, x.rank);
  say_type(g, &wide);
  say(g, "\n%%e%d = stablehlo.broadcast_in_dim %%v%d, dims = [", n, a);
  for (int d = 0; d < x.rank; ++d)
    say(g, "%s%d", d ? ", " : "", d);
  say(g, "] : (");
  say_type(g, &x);
  say(g, ") -> ");
  say_type(g, &wide);
  say(g, "\n%%x%d = stablehlo.add %%e%d, %%r%d : ", n, n, n);
  say_type(g, &wide);
  say(g,
      "\n%%b%d = stablehlo.iota dim = 1 : tensor<12x%lldxui8>\n"
      "%%f%d = stablehlo.iota dim = 0 : tensor<12x%lldxui8>\n"
      "%%p%d = stablehlo.add %%b%d, %%f%d : tensor<12x%lldxui8>\n",
      n, (long long)(8 * blocks), n, (long long)(8 * blocks), n, n, n,
      (long long)(8 * blocks));
  say_weights(g, "s", &s);
  graph_value_t v = wide;
  v.dims[v.rank - 1] = 12;
  say(g,
      "%%v%d = \"pestle.block_dot\"(%%x%d, %%p%d, %%s%d) {bits = 4 : i64, "
      "block "
      "= 16 : i64} : (",
      n, n, n, n);
  say_type(g, &wide);
  say(g, ", tensor<12x%lldxui8>, ", (long long)(8 * blocks));
  say_type(g, &s);
  say(g, ") -> ");
  say_type(g, &v);
  say(g, "\n");
  add_value(g, v);
  return true;
}

#endif  // PESTLE_TESTS_UNIT_PASSES_PARTITION_GRAPH_MORE_H_
