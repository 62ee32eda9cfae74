// SPDX-License-Identifier: Apache-2.0
// What the arguments of a kernel are bound to, whoever writes the kernel.
#ifndef PESTLE_CODEGEN_NEST_KERNEL_ARG_H_
#define PESTLE_CODEGEN_NEST_KERNEL_ARG_H_

#include "codegen/nest/nest.h"
#include "ir/graph.h"

#define PESTLE_KERNEL_MAX_ARGS 64

// What an argument of a kernel is bound to.
struct pestle_kernel_arg_t {
  enum {
    PESTLE_ARG_OPERAND,    // |slot| of the node
    PESTLE_ARG_RESULT,     // |slot| of the node
    PESTLE_ARG_CONSTANT,   // |elements|
    PESTLE_ARG_WORKSPACE,  // |size| bytes that live during the launch
  } kind;
  uint32_t slot;
  uint64_t size;
  const pestle_elements_t* elements;
  // Of a constant that differs from process to process, the constant_part that it is;
  // |elements| is the first of its parts. NULL: all have it alike.
  const pestle_node_t* parts;
  // How a constant is laid out; NULL: as it is.
  const pestle_pack_axis_t* pack;
  uint32_t pack_count;
  int64_t pack_offset, packed_elements;
  const pestle_template_t* packer;  // that writes it; NULL: elements are moved
};

// Makes |arg| the constant that |value| is where a plan has it stored. False: out of
// memory of |arena|.
static inline bool pestle_kernel_arg_store(pestle_arena_t* arena,
                                           const pestle_value_t* value,
                                           pestle_kernel_arg_t* arg) {
  arg->elements = pestle_value_constant(value);
  arg->parts = pestle_value_constant_part(value);
  if (arg->parts) {
    pestle_elements_t* first = PESTLE_ARENA_NEW(arena, pestle_elements_t);
    if (!first) return false;
    *first = pestle_constant_part_at(arg->parts, 0);
    arg->elements = first;
  }
  if (arg->elements) arg->kind = PESTLE_ARG_CONSTANT;
  return true;
}

#endif  // PESTLE_CODEGEN_NEST_KERNEL_ARG_H_
