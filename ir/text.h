// SPDX-License-Identifier: Apache-2.0
// What the printer and the parser share: the pretty form of each op as data.
// An op without a row is written by its own function in both (slice, compare,
// reduce, while ...) or has the generic form alone.
#ifndef PESTLE_IR_TEXT_H_
#define PESTLE_IR_TEXT_H_

#include "ir/graph.h"

// How types follow the colon.
typedef enum pestle_text_types_e {
  PESTLE_TEXT_TYPES_NONE,      // no pretty form of this kind
  PESTLE_TEXT_TYPES_SAME,      // "T" when all types are equal, else FUNCTION
  PESTLE_TEXT_TYPES_FUNCTION,  // "(A, B) -> R"
  PESTLE_TEXT_TYPES_RESULT,    // "R"
  PESTLE_TEXT_TYPES_LIST,      // "A, B": of operands and results alike
  PESTLE_TEXT_TYPES_SELECT,    // "P, T": condition, then everything else
  PESTLE_TEXT_TYPES_ARROW,     // "A -> R"
} pestle_text_types_t;

// "dialect.op %a, %b, keyword = attribute, ... : types"
typedef struct pestle_text_form_t {
  uint8_t types;  // pestle_text_types_t
  uint8_t attr_count;
  struct {
    const char* keyword;
    uint16_t attr;  // pestle_attr_name_t, of kind I64, BOOL, STR or I64S
  } attrs[3];
} pestle_text_form_t;

// The row of |op|; its |types| is NONE when it has none.
const pestle_text_form_t* pestle_text_form(pestle_op_t op);

// The fields of a convolution's "window = {..}".
typedef struct pestle_text_field_t {
  const char* keyword;
  uint16_t attr;  // pestle_attr_name_t
} pestle_text_field_t;
enum { PESTLE_TEXT_WINDOW_FIELDS = 5 };
extern const pestle_text_field_t pestle_text_window[PESTLE_TEXT_WINDOW_FIELDS];

// Whether |name| may stand after '%' as it is: neither a number nor "arg" and
// one, which the printer hands out itself.
bool pestle_text_is_wish(pestle_str_t name);

// The direction that a comparison prints ("LT"), or NULL for other ops.
const char* pestle_text_direction(pestle_op_t op);
// "FLOAT", "SIGNED" or "UNSIGNED".
const char* pestle_text_compare_type(pestle_dtype_t dtype);

#endif  // PESTLE_IR_TEXT_H_
