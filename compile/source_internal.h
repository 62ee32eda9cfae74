// SPDX-License-Identifier: Apache-2.0
// What the files share that make a kernel of a text that a person wrote.
#ifndef PESTLE_COMPILE_SOURCE_INTERNAL_H_
#define PESTLE_COMPILE_SOURCE_INTERNAL_H_

#include "base/custom_attrs.h"
#include "base/str.h"
#include "compile/source.h"
#include "ir/custom_op.h"

typedef struct pestle_source_language_t pestle_source_language_t;

// One kernel on its way.
typedef struct pestle_source_making_t {
  pestle_kernels_t* ks;
  const pestle_target_caps_t* caps;
  pestle_kernel_t* k;
  const pestle_custom_op_t* op;
  const pestle_source_t* source;
  const pestle_source_language_t* language;
  const pestle_custom_attrs_t* attrs;
  int64_t grid[3], lane[3], groups[3];
  int64_t width;  // elements of a thread
  bool guarded;   // the last group has threads too many
  bool in_place;  // the eval's
  pestle_strbuf_t text;
} pestle_source_making_t;

// Operands, then results.
static inline uint32_t pestle_source_tensors(const pestle_node_t* node) {
  return node->operand_count + node->result_count;
}

static inline const pestle_type_t* pestle_source_type(const pestle_node_t* node,
                                                      uint32_t i) {
  return i < node->operand_count ? pestle_node_operand(node, i)->type
                                 : node->results[i - node->operand_count].type;
}

static inline const char* pestle_source_name(const pestle_source_making_t* m,
                                             uint32_t i) {
  const pestle_source_t* s = m->source;
  return i < s->input_count ? s->inputs[i] : s->outputs[i - s->input_count];
}

// How the argument of tensor |i| is called.
static inline void pestle_source_argument(uint32_t i, char out[8]) {
  out[0] = 'a', out[1] = 'r', out[2] = 'g';
  out[3] = (char)('A' + i / 26);
  out[4] = (char)('A' + i % 26);
  out[5] = 0;
}

// --- source_text.c ---

// NULL: not known.
const pestle_source_language_t* pestle_source_find_language(const char* name);
// The body of the kernel as |m|->text.
PESTLE_NODISCARD pestle_status_t
pestle_source_put_text(pestle_source_making_t* m);
// What stands before the kernel, and the compiler's flags; NULL: out of memory.
const char* pestle_source_head(const pestle_source_making_t* m);
const char* pestle_source_flags(const pestle_source_making_t* m);

#endif  // PESTLE_COMPILE_SOURCE_INTERNAL_H_
