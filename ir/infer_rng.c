// SPDX-License-Identifier: Apache-2.0
// Type rules of rng_bit_generator and rng.
#include <string.h>

#include "ir/infer.h"

pestle_status_t pestle_infer_rng_bit_generator(pestle_infer_t* in) {
  const pestle_type_t* state = pestle_in_type(in, 0);
  const char* algorithm = pestle_in_attr(in, PESTLE_ATTR_rng_algorithm)->as.str;
  const pestle_type_t* type =
      pestle_in_attr(in, PESTLE_ATTR_output_type)->as.type;
  bool threefry = !strcmp(algorithm, "THREE_FRY");
  if (!threefry && strcmp(algorithm, "PHILOX") &&
      strcmp(algorithm, "DEFAULT")) {
    return PESTLE_BAD(
        "'rng_algorithm' is '%s': it must be THREE_FRY, PHILOX or DEFAULT",
        algorithm);
  }
  if (state->dtype != PESTLE_U64 || state->rank != 1 ||
      (state->dims[0] != 2 && (threefry || state->dims[0] != 3))) {
    return PESTLE_BAD(
        "operand 0 is %s: the state of %s must be tensor<2xui64>%s",
        pestle_type_text(state).text, algorithm,
        threefry ? "" : " or tensor<3xui64>");
  }
  if (!pestle_dtype_is(type->dtype, PESTLE_KIND_INT) ||
      pestle_dtype_info(type->dtype)->bits < 8) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "the output is %s: random bits are integers of 8 to 64 "
                        "bits; bitcast them to floats",
                        pestle_type_text(type).text);
  }
  PESTLE_TRY(pestle_emit(in, state));
  return pestle_emit(in, type);
}

pestle_status_t pestle_infer_rng(pestle_infer_t* in) {
  const pestle_type_t *type, *shape = pestle_in_type(in, 2);
  const char* kind = pestle_in_attr(in, PESTLE_ATTR_rng_distribution)->as.str;
  PESTLE_TRY(pestle_in_stated(in, &type));
  if (strcmp(kind, "UNIFORM") && strcmp(kind, "NORMAL")) {
    return PESTLE_BAD(
        "'rng_distribution' is '%s': it must be UNIFORM or NORMAL", kind);
  }
  PESTLE_TRY(pestle_need_kind(
      in, 0, *kind == 'N' ? PESTLE_KIND_FLOAT : PESTLE_KIND_REAL));
  PESTLE_TRY(pestle_need_same_dtype(in, 0, 1));
  PESTLE_TRY(pestle_need_rank(in, 0, 0));
  PESTLE_TRY(pestle_need_rank(in, 1, 0));
  PESTLE_TRY(pestle_need_kind(in, 2, PESTLE_KIND_INT));
  PESTLE_TRY(pestle_need_rank(in, 2, 1));
  if (type->dtype != pestle_in_type(in, 0)->dtype ||
      !pestle_dims_agree(shape->dims[0], type->rank)) {
    return PESTLE_BAD(
        "the result is stated as %s: it must be of %s and have as many axes as "
        "operand 2, %s, has elements",
        pestle_type_text(type).text,
        pestle_dtype_info(pestle_in_type(in, 0)->dtype)->name,
        pestle_type_text(shape).text);
  }
  return pestle_emit(in, type);
}
