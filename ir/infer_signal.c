// SPDX-License-Identifier: Apache-2.0
// Type rule of fft.
#include <string.h>

#include "ir/infer.h"

static pestle_status_t check_lengths(const pestle_infer_t* in,
                                     pestle_type_t* type) {
  pestle_i64s_t lengths = pestle_in_i64s(in, PESTLE_ATTR_fft_length);
  if (lengths.count < 1 || lengths.count > 3 ||
      (int)lengths.count > type->rank) {
    return PESTLE_BAD(
        "'fft_length' has %zu elements: it must have one for each of the last "
        "1 "
        "to 3 axes of operand 0, %s",
        lengths.count, pestle_type_text(type).text);
  }
  PESTLE_TRY(pestle_need_at_least(in, PESTLE_ATTR_fft_length, 0));
  const char* kind = pestle_in_attr(in, PESTLE_ATTR_fft_type)->as.str;
  bool from_half = !strcmp(kind, "IRFFT"), to_half = !strcmp(kind, "RFFT");
  for (size_t i = 0; i < lengths.count; ++i) {
    int64_t* dim = &type->dims[type->rank - (int)lengths.count + (int)i];
    bool last = i + 1 == lengths.count;
    int64_t half = lengths.data[i] ? lengths.data[i] / 2 + 1 : 0;
    int64_t wanted = last && from_half ? half : lengths.data[i];
    if (!pestle_dims_agree(*dim, wanted)) {
      return PESTLE_BAD(
          "operand 0 is %s: of its last %zu axes number %zu must have %lld "
          "elements, as 'fft_length' says",
          pestle_type_text(pestle_in_type(in, 0)).text, lengths.count, i,
          (long long)wanted);
    }
    *dim = last && to_half ? half : lengths.data[i];
  }
  return NULL;
}

pestle_status_t pestle_infer_fft(pestle_infer_t* in) {
  pestle_type_t type = *pestle_in_type(in, 0);
  const char* kind = pestle_in_attr(in, PESTLE_ATTR_fft_type)->as.str;
  bool real = !strcmp(kind, "RFFT");
  if (!real && strcmp(kind, "FFT") && strcmp(kind, "IFFT") &&
      strcmp(kind, "IRFFT")) {
    return PESTLE_BAD("'fft_type' is '%s': it must be FFT, IFFT, RFFT or IRFFT",
                      kind);
  }
  if (real ? type.dtype != PESTLE_F32 && type.dtype != PESTLE_F64
           : !pestle_type_is_complex(&type)) {
    return PESTLE_BAD("operand 0 is %s: the element type of %s must be %s",
                      pestle_type_text(&type).text, kind,
                      real ? "f32 or f64" : "complex<f32> or complex<f64>");
  }
  PESTLE_TRY(check_lengths(in, &type));
  if (real) type.dtype = pestle_dtype_of_parts(type.dtype);
  if (!strcmp(kind, "IRFFT")) type.dtype = pestle_dtype_part(type.dtype);
  return pestle_emit(in, &type);
}
