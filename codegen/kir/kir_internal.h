// SPDX-License-Identifier: Apache-2.0
// What the files that build flat kernels share. Private to codegen/kir/*.c and
// codegen/legalise/*.c.
#ifndef PESTLE_CODEGEN_KIR_KIR_INTERNAL_H_
#define PESTLE_CODEGEN_KIR_KIR_INTERNAL_H_

#include "codegen/kir/kir_build.h"

// The row of a scalar op: what a builder and a verifier must know of it.
typedef struct pestle_kir_row_t {
  uint8_t arity;
  uint8_t rule;   // pestle_rule_t
  uint8_t kinds;  // pestle_dtype_kind_t
  uint8_t flags;  // pestle_op_flag_t
} pestle_kir_row_t;

const pestle_kir_row_t* pestle_kir_row(pestle_op_t op);

// pestle_kir_op_info(), which is 2.5 KB of code where it is used, once for all.
pestle_kir_op_info_t pestle_kir_info(unsigned op);

// Whether |op|, a KIR op code, is a row of scalar.def, and which.
static inline bool pestle_kir_is_scalar(unsigned op, pestle_op_t* out_op) {
  if (op < PESTLE_KIR_SCALAR_BASE) return false;
  if (op >= PESTLE_KIR_SCALAR_BASE + (unsigned)PESTLE_SCALAR_COUNT) {
    return false;
  }
  *out_op = (pestle_op_t)(op - PESTLE_KIR_SCALAR_BASE);
  return true;
}

static inline unsigned pestle_kir_code(pestle_op_t op) {
  return PESTLE_KIR_SCALAR_BASE + (unsigned)op;
}

// Whether an operand is a value, by its letter in kir.def.
static inline bool pestle_kir_is_value(char letter) {
  return letter == 'v' || letter == 'o';
}

// |value| as the constant of integer type |type| holds it: sign-extended when
// signed, zero-extended otherwise.
int64_t pestle_kir_wrap_int(pestle_dtype_t type, int64_t value);

// |op| on integer constants of |type| (that of the operands, not of the
// result). False when the row is not one that is folded.
bool pestle_kir_fold_int(pestle_op_t op, pestle_dtype_t type,
                         const int64_t value[3], int64_t* out_value);

// The text at |offset| of the builder's strings.
static inline const char* pestle_kir_text(const pestle_kir_builder_t* k,
                                          uint32_t offset) {
  return k->strings.data && offset < k->strings.size ? k->strings.data + offset
                                                     : "";
}

// Puts |text| into the strings, once, and returns its offset. Characters that
// may not stand in a C identifier become '_' if |identifier|.
uint32_t pestle_kir_intern(pestle_kir_builder_t* k, const char* text,
                           bool identifier);

// pestle_kir_finish() without changing an instruction: totals, hash and view.
PESTLE_NODISCARD pestle_status_t pestle_kir_seal(pestle_kir_builder_t* k);

// The hash of all of |k| but names and notes; constant i is any where is_any[i] is
// set (NULL: none is).
void pestle_kir_hash(const pestle_kir_builder_t* k, const uint8_t* is_any,
                     uint64_t out_hash[2]);

// Names in the text form.
const char* pestle_kir_axis_name(unsigned axis);
const char* pestle_kir_scope_name(unsigned scope);
const char* pestle_kir_fact_name(unsigned bit);

// What only the whole of a kernel with tiles says; it is verified otherwise.
PESTLE_NODISCARD pestle_status_t pestle_kir_verify_tiles(const pestle_kir_t* k);

// One instruction as it stands in the text, without indentation and newline.
void pestle_kir_print_inst(const pestle_kir_t* k, uint32_t id,
                           pestle_strbuf_t* out);

#endif  // PESTLE_CODEGEN_KIR_KIR_INTERNAL_H_
