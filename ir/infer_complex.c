// SPDX-License-Identifier: Apache-2.0
// Type rules of complex, real and imag.
#include "ir/infer.h"

pestle_status_t pestle_infer_complex(pestle_infer_t* in) {
  const pestle_type_t *a = pestle_in_type(in, 0), *b = pestle_in_type(in, 1);
  if (a->dtype != PESTLE_F32 && a->dtype != PESTLE_F64) {
    return PESTLE_BAD("operand 0 is %s: its element type must be f32 or f64",
                      pestle_type_text(a).text);
  }
  PESTLE_TRY(pestle_need_same_dtype(in, 0, 1));
  if (!pestle_shapes_agree(a, b)) {
    return PESTLE_BAD("operand 0 is %s, operand 1 is %s: shapes must be equal",
                      pestle_type_text(a).text, pestle_type_text(b).text);
  }
  pestle_type_t type = *a;
  pestle_merge_shape(&type, b);
  type.dtype = pestle_dtype_of_parts(type.dtype);
  return pestle_emit(in, &type);
}

static pestle_status_t infer_part(pestle_infer_t* in) {
  PESTLE_TRY(pestle_need_kind(in, 0, PESTLE_KIND_FLOAT | PESTLE_KIND_COMPLEX));
  pestle_type_t type = *pestle_in_type(in, 0);
  type.dtype = pestle_dtype_part(type.dtype);
  return pestle_emit(in, &type);
}

pestle_status_t pestle_infer_real(pestle_infer_t* in) {
  return infer_part(in);
}

pestle_status_t pestle_infer_imag(pestle_infer_t* in) {
  return infer_part(in);
}
