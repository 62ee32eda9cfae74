// SPDX-License-Identifier: Apache-2.0
// Random modules, divided, on an evaluator for each process against one for the whole;
// and faults, which are to be found.
#ifndef PESTLE_TESTS_UNIT_PASSES_PARTITION_RANDOM_H_
#define PESTLE_TESTS_UNIT_PASSES_PARTITION_RANDOM_H_

#include "partition_graph_whole.h"

static inline void run(uint64_t seed, int ops, int only) {
  char* text = make_graph(seed, ops, only);
  // A failure tells the module.
  pestle_context_t* context = test_context();
  pestle_module_t* module = test_parse(context, text);
  int32_t ranks = pestle_module_world(module).partitions;
  spread_run_t whole;
  pestle_module_t* plain = test_parse(context, text);
  drop_wishes(plain);
  run_whole(pestle_module_entry(plain), seed + 99, &whole);
  pestle_module_release(plain);
  test_run(module, "canonicalise,recognise,partition,canonicalise");
  int64_t differ = run_parts(pestle_module_entry(module), ranks, &whole);
  if (differ) {
    char* printed = test_print(module);
    fprintf(stderr, "seed %llu, %d ops, %s: %lld elements differ\n%s\n%s\n",
            (unsigned long long)seed, ops,
            only < 0 ? "any" : graph_ops[only].name, (long long)differ, text,
            printed);
    free(printed);
  }
  assert_int_equal(differ, 0);
  run_free(&whole);
  pestle_module_release(module);
  pestle_context_release(context);
  free(text);
}

// --- Faults ---

typedef enum fault_t {
  MISSING_REDUCE,  // summands are taken for the sum
  WRONG_GROUP,     // of other axes of the mesh
  OTHER_PLACE,     // parts are counted from the last one
  FAULTS
} fault_t;

// The same numbers, columns for rows.
static inline bool turn_groups(pestle_node_t* n) {
  for (uint32_t i = 0; i < n->attr_count; ++i) {
    if (n->attrs[i].name != PESTLE_ATTR_replica_groups) continue;
    pestle_elements_t* e = (pestle_elements_t*)n->attrs[i].as.elements;
    int64_t rows = e->type.dims[0], size = e->type.dims[1];
    int64_t* ids = (int64_t*)e->data;
    if (rows < 2 || size < 2 || e->splat) return false;
    int64_t all[MOST_RANKS];
    memcpy(all, ids, (size_t)(rows * size) * sizeof(*ids));
    for (int64_t k = 0; k < rows * size; ++k)
      ids[k] = all[k % rows * size + k / rows];
    return true;
  }
  return false;
}

// Of which each partition has another than its own.
static inline bool turn_table(pestle_node_t* n) {
  if (n->op != PESTLE_OP_CONSTANT_PART) return false;
  pestle_i64s_t parts = PESTLE_NODE_I64S(n, parts);
  int64_t* data = (int64_t*)parts.data;
  bool changes = false;
  for (size_t i = 0; i < parts.count / 2; ++i) {
    int64_t other = data[i];
    data[i] = data[parts.count - 1 - i];
    data[parts.count - 1 - i] = other;
    changes |= data[i] != other;
  }
  return changes;
}

static inline bool plant(pestle_module_t* module, fault_t fault) {
  const pestle_region_t* body = pestle_module_entry(module)->body;
  for (pestle_node_t* n = NULL; (n = pestle_region_next(body, n));) {
    bool reduces =
        n->op == PESTLE_OP_ALL_REDUCE || n->op == PESTLE_OP_REDUCE_SCATTER;
    if (fault == MISSING_REDUCE && n->op == PESTLE_OP_ALL_REDUCE) {
      pestle_value_replace_all_uses(&n->results[0], pestle_node_operand(n, 0));
      return true;
    }
    if (fault == WRONG_GROUP && (reduces || n->op == PESTLE_OP_ALL_GATHER) &&
        turn_groups(n)) {
      return true;
    }
    if (fault == OTHER_PLACE && turn_table(n)) return true;
  }
  return false;
}

static inline void faults(void** state) {
  (void)state;
  for (int fault = 0; fault < FAULTS; ++fault) {
    int planted = 0, found = 0;
    for (int i = 0; i < 60; ++i) {
      char* text = make_graph((uint64_t)i + 9000000, 4, -1);
      pestle_context_t* context = test_context();
      pestle_module_t* module = test_parse(context, text);
      int32_t ranks = pestle_module_world(module).partitions;
      spread_run_t whole;
      pestle_module_t* plain = test_parse(context, text);
      drop_wishes(plain);
      run_whole(pestle_module_entry(plain), (uint64_t)i + 5, &whole);
      pestle_module_release(plain);
      test_run(module, "canonicalise,recognise,partition");
      if (plant(module, (fault_t)fault)) {
        ++planted;
        found += run_parts(pestle_module_entry(module), ranks, &whole) != 0;
      }
      run_free(&whole);
      pestle_module_release(module);
      pestle_context_release(context);
      free(text);
    }
    // Some change nothing that reaches a result: a sum of zeros, a largest number.
    if (planted < 8 || found * 2 < planted)
      fail_msg("of fault %d %d of %d were found", fault, found, planted);
  }
}

static inline void run_ops(int count) {
  for (int op = 0; op < GRAPH_OPS; ++op) {
    for (int i = 0; i < count; ++i)
      run((uint64_t)(op * 100003 + i), 2, op);
  }
}

static inline void run_graphs(int first, int count) {
  for (int i = first; i < first + count; ++i)
    run((uint64_t)i + 7000000, 3 + i % 9, -1);
}

#endif  // PESTLE_TESTS_UNIT_PASSES_PARTITION_RANDOM_H_
