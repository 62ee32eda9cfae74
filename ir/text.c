// SPDX-License-Identifier: Apache-2.0
#include "ir/text.h"

const pestle_text_form_t* pestle_text_form(pestle_op_t op) {
#define SCALAR_SAME PESTLE_TEXT_TYPES_SAME
#define SCALAR_CLAMP PESTLE_TEXT_TYPES_SAME
#define SCALAR_SELECT PESTLE_TEXT_TYPES_SELECT
#define SCALAR_TEST PESTLE_TEXT_TYPES_FUNCTION
#define SCALAR_COMPARE PESTLE_TEXT_TYPES_NONE
  static const pestle_text_form_t rows[PESTLE_OP_COUNT] = {
#define PESTLE_SCALAR(NAME, op, mlir, n, RULE, ...) \
  [PESTLE_OP_##NAME] = {.types = SCALAR_##RULE},
#include "pestle/scalar.def"
#define FORM(NAME, TYPES, ...) \
  [PESTLE_OP_##NAME] = {PESTLE_TEXT_TYPES_##TYPES, __VA_ARGS__}
#define KEY(word, attr) {word, PESTLE_ATTR_##attr}
      FORM(IOTA, RESULT, 1, {KEY("dim", iota_dimension)}),
      FORM(CONVERT, FUNCTION, 0, {{0}}),
      FORM(BITCAST_CONVERT, FUNCTION, 0, {{0}}),
      FORM(RESHAPE, FUNCTION, 0, {{0}}),
      FORM(BROADCAST_IN_DIM, FUNCTION, 1, {KEY("dims", broadcast_dimensions)}),
      FORM(TRANSPOSE, FUNCTION, 1, {KEY("dims", permutation)}),
      FORM(REVERSE, SAME, 1, {KEY("dims", dimensions)}),
      FORM(PAD, FUNCTION, 3,
           {KEY("low", edge_padding_low), KEY("high", edge_padding_high),
            KEY("interior", interior_padding)}),
      FORM(CONCATENATE, FUNCTION, 1, {KEY("dim", dimension)}),
      FORM(DYNAMIC_SLICE, FUNCTION, 1, {KEY("sizes", slice_sizes)}),
      FORM(DYNAMIC_UPDATE_SLICE, FUNCTION, 0, {{0}}),
      FORM(CHOLESKY, SAME, 1, {KEY("lower", lower)}),
      FORM(OPTIMIZATION_BARRIER, LIST, 0, {{0}}),
      FORM(COMPLEX, RESULT, 0, {{0}}),
      FORM(REAL, FUNCTION, 0, {{0}}),
      FORM(IMAG, FUNCTION, 0, {{0}}),
      FORM(RNG_BIT_GENERATOR, FUNCTION, 1, {KEY("algorithm", rng_algorithm)}),
      FORM(RNG, FUNCTION, 1, {KEY("distribution", rng_distribution)}),
      FORM(FFT, FUNCTION, 2,
           {KEY("type", fft_type), KEY("length", fft_length)}),
#undef FORM
#undef KEY
  };
  static const pestle_text_form_t arrow = {.types = PESTLE_TEXT_TYPES_ARROW};
  static const pestle_text_form_t none = {.types = PESTLE_TEXT_TYPES_NONE};
  const char* name = pestle_op_info(op)->mlir;
  // chlo prints "A -> R"; ops of ours have the generic form alone.
  if (name[0] == 'c' && name[1] == 'h') return &arrow;
  if (name[0] == 'p') return &none;
  return &rows[op];
}

const pestle_text_field_t pestle_text_window[PESTLE_TEXT_WINDOW_FIELDS] = {
    {"stride", PESTLE_ATTR_window_strides},
    {"pad", PESTLE_ATTR_padding},
    {"lhs_dilate", PESTLE_ATTR_lhs_dilation},
    {"rhs_dilate", PESTLE_ATTR_rhs_dilation},
    {"reverse", PESTLE_ATTR_window_reversal}};

bool pestle_text_is_wish(pestle_str_t name) {
  static const pestle_str_t reserved = {"arg", 3};
  if (!name.size || (name.data[0] >= '0' && name.data[0] <= '9')) return false;
  size_t i = 0;
  if (pestle_str_starts_with(name, reserved)) i = reserved.size;
  if (!i) return true;
  if (i == name.size) return true;
  while (i < name.size && name.data[i] >= '0' && name.data[i] <= '9')
    ++i;
  return i < name.size;
}

const char* pestle_text_direction(pestle_op_t op) {
  static const char* const names[PESTLE_SCALAR_COUNT] = {
#define PESTLE_SCALAR(NAME, op, mlir, n, RULE, ...) \
  [PESTLE_OP_##NAME] = DIRECTION_##RULE(#NAME),
#define DIRECTION_COMPARE(name) name
#define DIRECTION_SAME(name) NULL
#define DIRECTION_TEST(name) NULL
#define DIRECTION_SELECT(name) NULL
#define DIRECTION_CLAMP(name) NULL
#include "pestle/scalar.def"
  };
  return pestle_op_is_scalar(op) ? names[op] : NULL;
}

const char* pestle_text_compare_type(pestle_dtype_t dtype) {
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT | PESTLE_KIND_COMPLEX)) {
    return "FLOAT";
  }
  return pestle_dtype_is(dtype, PESTLE_KIND_SIGNED) ? "SIGNED" : "UNSIGNED";
}
