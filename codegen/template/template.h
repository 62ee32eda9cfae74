// SPDX-License-Identifier: Apache-2.0
// The functions of all templates, as template.def and codegen/nest/template.h
// name them. The files of template/ include this; folders below ask the table.
//
// codegen/template/ has whole kernels that no sequence of primitives expresses,
// a folder each: match, sketch, emit. codegen/template/ knows nothing of
// plugins, nor one template of another.
#ifndef PESTLE_CODEGEN_TEMPLATE_TEMPLATE_H_
#define PESTLE_CODEGEN_TEMPLATE_TEMPLATE_H_

#include "codegen/nest/template.h"

// Functions that a row leaves out are declared and not defined.
#define PESTLE_TEMPLATE(name, ...)                                            \
  PESTLE_NODISCARD pestle_status_t pestle_##name##_match(                     \
      pestle_nest_t* nest, const pestle_nest_template_t* use);                \
  PESTLE_NODISCARD pestle_status_t pestle_##name##_apply(                     \
      pestle_nest_t* nest, const pestle_nest_template_t* use);                \
  PESTLE_NODISCARD pestle_status_t pestle_##name##_sketch(                    \
      pestle_sketch_t* k, const pestle_offer_t* offer, bool* out_done);       \
  PESTLE_NODISCARD pestle_status_t pestle_##name##_emit(pestle_emit_t* e);    \
  void pestle_##name##_pack(const pestle_kernel_arg_t* arg, uint8_t* target); \
  uint64_t pestle_##name##_work(const pestle_nest_template_t* use,            \
                                uint64_t ops);
#include "codegen/template/template.def"

#endif  // PESTLE_CODEGEN_TEMPLATE_TEMPLATE_H_
