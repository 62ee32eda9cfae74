// SPDX-License-Identifier: Apache-2.0
// The C text of a kernel, printed from Kernel IR.
#ifndef EXAMPLE_PRINT_C_H_
#define EXAMPLE_PRINT_C_H_

#include <stdbool.h>
#include <stddef.h>

#include "pestle/plugin.h"

// Growing text. |failed| once memory has run out; later appends do nothing.
typedef struct example_text_t {
  char* data;
  size_t size, capacity;
  bool failed;
} example_text_t;

void example_text_append(example_text_t* text, const char* format, ...)
    PESTLE_PRINTF(2, 3);

// The dtypes that the printer knows, as bits for caps.op_dtypes.
#define EXAMPLE_INTS                                                          \
  (1u << PESTLE_I8 | 1u << PESTLE_I16 | 1u << PESTLE_I32 | 1u << PESTLE_I64 | \
   1u << PESTLE_U8 | 1u << PESTLE_U16 | 1u << PESTLE_U32 | 1u << PESTLE_U64 | \
   1u << PESTLE_INDEX)
#define EXAMPLE_FLOATS (1u << PESTLE_F32 | 1u << PESTLE_F64)
#define EXAMPLE_DTYPES (1u << PESTLE_I1 | EXAMPLE_INTS | EXAMPLE_FLOATS)
// C has no type for these, so they are moved as bits and nothing else.
#if PESTLE_ABI_MINOR >= 3
#define EXAMPLE_OR_(NAME, ...) | 1u << PESTLE_##NAME
#define EXAMPLE_MOVED \
  (0u PESTLE_FLOAT_FORMATS_8(EXAMPLE_OR_) PESTLE_FLOAT_FORMATS_16(EXAMPLE_OR_))
#else
#define EXAMPLE_MOVED                                             \
  (1u << PESTLE_BF16 | 1u << PESTLE_F16 | 1u << PESTLE_F8E4M3FN | \
   1u << PESTLE_F8E5M2 | 1u << PESTLE_F8E4M3FNUZ | 1u << PESTLE_F8E5M2FNUZ)
#endif

// Prints |kernel| as a C file with one function `kernel`. NULL, or a static text
// that says what the printer lacks.
const char* example_print_c(const pestle_kir_t* kernel, example_text_t* out);

#endif  // EXAMPLE_PRINT_C_H_
