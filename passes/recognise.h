// SPDX-License-Identifier: Apache-2.0
// What the recognise_*.c files share: one matcher a composite.
#ifndef PESTLE_PASSES_RECOGNISE_H_
#define PESTLE_PASSES_RECOGNISE_H_

#include "passes/util.h"

// Tries to read |node| as the last op of a composite; then |*out| is its value,
// made with |b| before the node. |strict|: only when its decomposition is the
// same ops in the same order.
typedef pestle_status_t (*pestle_matcher_t)(pestle_builder_t* b,
                                            pestle_node_t* node, bool strict,
                                            pestle_value_t** out);

// recognise_norms.c
pestle_status_t pestle_match_softmax(pestle_builder_t* b, pestle_node_t* node,
                                     bool strict, pestle_value_t** out);
pestle_status_t pestle_match_log_softmax(pestle_builder_t* b,
                                         pestle_node_t* node, bool strict,
                                         pestle_value_t** out);
pestle_status_t pestle_match_norm(pestle_builder_t* b, pestle_node_t* node,
                                  bool strict, pestle_value_t** out);
// recognise_attention.c
pestle_status_t pestle_match_attention(pestle_builder_t* b, pestle_node_t* node,
                                       bool strict, pestle_value_t** out);
// recognise_activation.c
pestle_status_t pestle_match_gelu(pestle_builder_t* b, pestle_node_t* node,
                                  bool strict, pestle_value_t** out);
pestle_status_t pestle_match_silu(pestle_builder_t* b, pestle_node_t* node,
                                  bool strict, pestle_value_t** out);
pestle_status_t pestle_match_logistic(pestle_builder_t* b, pestle_node_t* node,
                                      bool strict, pestle_value_t** out);
pestle_status_t pestle_match_hard_sigmoid(pestle_builder_t* b,
                                          pestle_node_t* node, bool strict,
                                          pestle_value_t** out);

static inline bool pestle_match_near(double a, double b) {
  double d = a > b ? a - b : b - a, size = b < 0 ? -b : b;
  return d <= 1e-4 * size;
}

#endif  // PESTLE_PASSES_RECOGNISE_H_
