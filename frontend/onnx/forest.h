// SPDX-License-Identifier: Apache-2.0
// A tree ensemble of ai.onnx.ml, whatever opset wrote it, as arrays: splits that
// all compare alike, leaves, and what leaves add to which target.
//
// Every kind of split becomes x <= t, or x < t in all of the forest: the others are
// those with their ends exchanged, with the next number in place of t, or two of
// them in a row. A node may be reached from several; none from itself.
#ifndef PESTLE_FRONTEND_ONNX_FOREST_H_
#define PESTLE_FRONTEND_ONNX_FOREST_H_

#include "frontend/onnx/ml.h"

// A node: a split from 0 on, or a leaf, -1 - its number.
typedef int32_t pestle_tree_node_t;

typedef struct pestle_split_t {
  int32_t feature;
  double threshold;
  pestle_tree_node_t yes, no, missing;  // |missing|: where a NaN goes
} pestle_split_t;

typedef struct pestle_leaf_weight_t {
  int32_t leaf, target;
  double weight;
} pestle_leaf_weight_t;

typedef enum pestle_forest_sum_e {
  PESTLE_FOREST_AVERAGE,
  PESTLE_FOREST_SUM,
  PESTLE_FOREST_MIN,
  PESTLE_FOREST_MAX,
} pestle_forest_sum_t;

typedef struct pestle_forest_t {
  pestle_dtype_t dtype;  // of comparisons and sums: f32 or f64
  bool strict;           // x < t
  size_t split_count, split_room, leaf_count, tree_count, weight_count;
  pestle_split_t* splits;
  pestle_tree_node_t* roots;
  pestle_leaf_weight_t* weights;
  int64_t targets, features;
  int64_t depth;  // splits on the longest way
  pestle_forest_sum_t sum;
} pestle_forest_t;

// Reads the attributes of TreeEnsembleRegressor and -Classifier, whose weights are
// called |role|_ids and so on ("target", "class"). False with an error kept.
bool pestle_forest_read(pestle_onnx_call_t* call, const char* role,
                        pestle_forest_t* f);
// The same of TreeEnsemble, opset 5.
bool pestle_forest_read_5(pestle_onnx_call_t* call, pestle_forest_t* f);

// What the leaves that the rows of |x| [rows, features] reach come to: [rows,
// targets]. |*out_has| (may be NULL) is whether any of them says something of a
// target, i1 of that shape, or NULL where one always does.
pestle_value_t* pestle_forest_scores(pestle_onnx_call_t* call,
                                     const pestle_forest_t* f,
                                     pestle_value_t* x,
                                     pestle_value_t** out_has);

#endif  // PESTLE_FRONTEND_ONNX_FOREST_H_
