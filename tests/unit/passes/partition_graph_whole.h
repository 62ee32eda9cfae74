// SPDX-License-Identifier: Apache-2.0
// Random modules over a mesh, as text: any op that has a rule, and some that have none,
// on arguments and results that lie anyhow.
#ifndef PESTLE_TESTS_UNIT_PASSES_PARTITION_GRAPH_WHOLE_H_
#define PESTLE_TESTS_UNIT_PASSES_PARTITION_GRAPH_WHOLE_H_

#include "partition_graph_more.h"

typedef bool (*make_fn_t)(graph_t* g, int a);
static const struct {
  const char* name;
  make_fn_t make;
} graph_ops[] = {
    {"binary", make_binary},
    {"select", make_select},
    {"transpose", make_transpose},
    {"reshape", make_reshape},
    {"broadcast", make_broadcast},
    {"dot", make_dot},
    {"reduce", make_reduce},
    {"slice", make_slice},
    {"reverse", make_reverse},
    {"pad", make_pad},
    {"concatenate", make_concatenate},
    {"iota", make_iota},
    {"gather", make_gather},
    {"scatter", make_scatter},
    {"dynamic", make_dynamic},
    {"sort", make_sort},
    {"loop", make_loop},
    {"branch", make_branch},
    {"wish", make_wish},
    {"convolution", make_convolution},
    {"scan", make_scan},
    {"norm_grad", make_norm_grad},
    {"block_dot", make_block_dot},
};
enum { GRAPH_OPS = sizeof(graph_ops) / sizeof(graph_ops[0]) };

// A module of |ops| ops, each of |only| or any for -1. The text is the caller's.
static inline char* make_graph(uint64_t seed, int ops, int only) {
  graph_t g = {.seed = seed * 0x9E3779B97F4A7C15u + 1,
               .text = malloc(GRAPH_TEXT)};
  for (int i = 0; i < 8; ++i)
    (void)test_random(&g.seed);
  static const char* const meshes[] = {"[\"a\"=2, \"b\"=2]",
                                       "[\"a\"=2, \"b\"=3]",
                                       "[\"a\"=2, \"b\"=2, \"c\"=2]"};
  int which = (int)pick(&g, 8);
  which = which < 3 ? 0 : (which < 7 ? 1 : 2);
  g.axes = which == 2 ? 3 : 2;
  g.sizes[0] = g.sizes[2] = 2;
  g.sizes[1] = which == 1 ? 3 : 2;
  say(&g,
      "module @m attributes {mhlo.num_partitions = %d : i32} {\n"
      "sdy.mesh @m = <%s>\nfunc.func @main(",
      which == 0 ? 4 : (which == 1 ? 6 : 8), meshes[which]);
  g.arguments = 2 + (int)pick(&g, GRAPH_ARGUMENTS - 1);
  for (int i = 0; i < g.arguments; ++i) {
    graph_value_t v = {.floats = pick(&g, 2), .rank = (int)pick(&g, 4)};
    for (int d = 0; d < v.rank; ++d)
      v.dims[d] = extent(&g);
    if (i == 1) v = (graph_value_t){.rank = 1, .dims = {12}};
    if (i > 1 && pick(&g, 3) == 0) v = g.values[0];
    say(&g, "%s%%v%d: ", i ? ", " : "", i);
    say_type(&g, &v);
    say_sharding(&g, &v);
    add_value(&g, v);
  }
  size_t head = g.size;
  for (int tries = 0; tries < 400 && ops; ++tries) {
    int op = only >= 0 ? only : (int)pick(&g, GRAPH_OPS);
    // The last ones more often, so that there are chains.
    int a = (int)pick(&g, g.count);
    if (pick(&g, 2)) a = g.count - 1;
    if (elements(&g.values[a]) > 1500) continue;
    if (graph_ops[op].make(&g, a)) --ops;
  }
  // Results behind the arguments, so the body moves up.
  char* body = malloc(g.size - head + 1);
  size_t body_size = g.size - head;
  memcpy(body, g.text + head, body_size);
  body[body_size] = 0;
  g.size = head;
  int results[3], n = 1 + (int)pick(&g, 3);
  say(&g, ") -> (");
  for (int i = 0; i < n; ++i) {
    results[i] = i ? (int)pick(&g, g.count) : g.count - 1;
    if (i) say(&g, ", ");
    say_type(&g, &g.values[results[i]]);
    say_sharding(&g, &g.values[results[i]]);
  }
  say(&g, ") {\n%sreturn ", body);
  for (int i = 0; i < n; ++i)
    say(&g, "%s%%v%d", i ? ", " : "", results[i]);
  say(&g, " : ");
  for (int i = 0; i < n; ++i) {
    if (i) say(&g, ", ");
    say_type(&g, &g.values[results[i]]);
  }
  say(&g, "\n}\n}\n");
  free(body);
  return g.text;
}

#endif  // PESTLE_TESTS_UNIT_PASSES_PARTITION_GRAPH_WHOLE_H_
