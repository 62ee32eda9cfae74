// SPDX-License-Identifier: Apache-2.0
// Attributes of ops of the caller's own (pestle/custom_op.h): from values or the
// text of a dictionary to what the op's table declares, and to text. Evals see them
// at run time, where there is no IR, so the reader of that text is here.
#ifndef PESTLE_BASE_CUSTOM_ATTRS_H_
#define PESTLE_BASE_CUSTOM_ATTRS_H_

#include "base/arena.h"
#include "pestle/custom_op.h"

struct pestle_custom_attrs_s {
  const pestle_custom_attr_value_t* values;
  size_t count;
};

// Reads "{alpha = 4.0 : f64, axes = array<i64: 0, 1>}", or "" for none, into
// |arena|. UNSUPPORTED: a value of another kind than attributes have.
PESTLE_NODISCARD pestle_status_t pestle_custom_attrs_read(
    pestle_arena_t* arena, pestle_str_t text,
    pestle_custom_attr_value_t** out_values, size_t* out_count);

// |values| as |op| declares them: one for each row of the table, in its order,
// copied into |arena|. INVALID_ARGUMENT: what is missing, unknown or of another
// kind.
PESTLE_NODISCARD pestle_status_t
pestle_custom_attrs_make(pestle_arena_t* arena, const pestle_custom_op_t* op,
                         const pestle_custom_attr_value_t* values, size_t count,
                         const pestle_custom_attrs_t** out_attrs);
// How many of |op|'s attributes are dynamic, and these as |values| give them, in the order
// of the table, each an F64 or of the kind |given|; the two functions above leave them out.
size_t pestle_custom_dynamic_count(const pestle_custom_op_t* op);
PESTLE_NODISCARD pestle_status_t pestle_custom_dynamic(
    const pestle_custom_op_t* op, const pestle_custom_attr_value_t* values,
    size_t count, int32_t given, pestle_custom_attr_value_t* out);
// The element type of their operands, of an op whose first operand has |dtype|.
static inline pestle_dtype_t pestle_custom_dynamic_dtype(pestle_dtype_t dtype) {
  return dtype == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32;
}
// The same of a dictionary's text.
PESTLE_NODISCARD pestle_status_t pestle_custom_attrs_of_text(
    pestle_arena_t* arena, const pestle_custom_op_t* op, const char* text,
    const pestle_custom_attrs_t** out_attrs);

// The dictionary, "" for none: equal for equal attributes.
void pestle_custom_attrs_print(const pestle_custom_attrs_t* attrs,
                               pestle_strbuf_t* out);

// Copies what |value| points at.
PESTLE_NODISCARD pestle_status_t pestle_custom_value_copy(
    pestle_arena_t* arena, pestle_custom_attr_value_t* value);

#endif  // PESTLE_BASE_CUSTOM_ATTRS_H_
