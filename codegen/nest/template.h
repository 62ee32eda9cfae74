// SPDX-License-Identifier: Apache-2.0
// Templates: whole kernels by match, for what no sequence of schedule primitives makes
// as fast (docs/kernel-ir.md, "Templates"). A template is a row of
// codegen/template/template.def and a folder beside it. Folders below template/, which
// includes them, reach its functions through the struct of this header.
#ifndef PESTLE_CODEGEN_NEST_TEMPLATE_H_
#define PESTLE_CODEGEN_NEST_TEMPLATE_H_

#include <stdbool.h>
#include <stdint.h>

#include "pestle/status.h"

typedef struct pestle_nest_t pestle_nest_t;
typedef struct pestle_emit_t pestle_emit_t;
typedef struct pestle_sketch_t pestle_sketch_t;
typedef struct pestle_kernel_arg_t pestle_kernel_arg_t;
typedef struct pestle_template_t pestle_template_t;

enum { PESTLE_TEMPLATE_INTS = 9 };

// A template as a nest has it: what the template's primitive says.
typedef struct pestle_nest_template_t {
  const pestle_template_t*
      row;  // NULL: the nest's loops are emitted as they are
  uint32_t stage;
  // The integers of the primitive in their order, then the tensors that it names.
  int64_t ints[PESTLE_TEMPLATE_INTS];
} pestle_nest_template_t;

// The place in the choice of a schedule at which a template is asked.
typedef enum pestle_offer_kind_e {
  // On targets whose groups have lanes:
  PESTLE_OFFER_LANES_MAP,      // nothing is reduced
  PESTLE_OFFER_LANES_PRODUCT,  // |reduce|, the only one, is a sum of products
  PESTLE_OFFER_LANES_REDUCTIONS,  // one reduction or several
  // On targets whose groups are one thread:
  PESTLE_OFFER_PRODUCT,  // |reduce|, the only one, is a sum of products
  // The same, when its best register tile is known, which takes |cycles|.
  PESTLE_OFFER_TILED_PRODUCT,
} pestle_offer_kind_t;

typedef struct pestle_offer_t {
  pestle_offer_kind_t kind;
  const pestle_template_t* row;  // of the template that is asked
  uint32_t reduce;
  double cycles;
} pestle_offer_t;

struct pestle_template_t {
  const char* name;  // of the template and of its primitive
  const char* form;  // of the primitive's operands, as primitive.h says
  pestle_offer_kind_t offer;
  // NULL: |use| makes |nest|, scheduled already or not. INVALID_ARGUMENT: it does not;
  // the sentence says what the nest must be. Nothing is assumed of |use|'s integers.
  pestle_status_t (*match)(pestle_nest_t* nest,
                           const pestle_nest_template_t* use);
  // Edits |nest|, which matched: packs constants, cuts loops. NULL: there is nothing.
  pestle_status_t (*apply)(pestle_nest_t* nest,
                           const pestle_nest_template_t* use);
  // Decides whether the template is taken and how: pestle_schedule_template() then,
  // and |*out_done|, which is false before.
  pestle_status_t (*sketch)(pestle_sketch_t* k, const pestle_offer_t* offer,
                            bool* out_done);
  // The kernel of e->nest, whose template this is.
  pestle_status_t (*emit)(pestle_emit_t* e);
  // Writes the constant |arg|, whose layout says so (pestle_nest_tensor_t.packer).
  // NULL: layouts are all that it needs.
  void (*pack)(const pestle_kernel_arg_t* arg, uint8_t* target);
  // How many operations the kernel makes of the |ops| of its stage. NULL: all.
  uint64_t (*work)(const pestle_nest_template_t* use, uint64_t ops);
};

// The rows of template.def in their order; NULL behind the last. Static.
const pestle_template_t* pestle_template_at(uint32_t i);
// The template of that name, or NULL.
const pestle_template_t* pestle_template_find(const char* name);

#endif  // PESTLE_CODEGEN_NEST_TEMPLATE_H_
