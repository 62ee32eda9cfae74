// SPDX-License-Identifier: Apache-2.0
// What the arguments of a kernel are bound to, whoever writes the kernel.
#ifndef PESTLE_CODEGEN_NEST_KERNEL_ARG_H_
#define PESTLE_CODEGEN_NEST_KERNEL_ARG_H_

#include "codegen/nest/nest.h"

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
  // How a constant is laid out; NULL: as it is.
  const pestle_pack_axis_t* pack;
  uint32_t pack_count;
  int64_t pack_offset, packed_elements;
  const pestle_template_t* packer;  // that writes it; NULL: elements are moved
};

#endif  // PESTLE_CODEGEN_NEST_KERNEL_ARG_H_
