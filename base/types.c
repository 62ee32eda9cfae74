// SPDX-License-Identifier: Apache-2.0
// Data types by name and by DLPack's description (pestle/types.h).
#include "pestle/types.h"

#include <string.h>

#include "pestle/tensor.h"

pestle_dtype_t pestle_dtype_from_name(const char* name) {
  if (!name) return PESTLE_NONE;
  // MLIR writes both i32 and, in some dialects, si32 for the signed type.
  bool is_signed =
      name[0] == 's' && name[1] == 'i' && name[2] >= '0' && name[2] <= '9';
  const char* plain = is_signed ? name + 1 : name;
  for (int i = PESTLE_NONE + 1; i < PESTLE_DTYPE_COUNT; ++i) {
    pestle_dtype_t dtype = (pestle_dtype_t)i;
    if (is_signed && !pestle_dtype_is(dtype, PESTLE_KIND_SIGNED)) continue;
    if (!strcmp(pestle_dtype_info(dtype)->name, plain)) return dtype;
  }
  return PESTLE_NONE;
}

// Where most tensors' dtypes are: by code, then 8, 16, 32 and 64 bits. NONE: look.
static pestle_dtype_t plain_from_dlpack(pestle_dl_dtype_t dtype) {
  static const uint8_t plain[3][4] = {
      {PESTLE_I8, PESTLE_I16, PESTLE_I32, PESTLE_I64},
      {PESTLE_U8, PESTLE_U16, PESTLE_U32, PESTLE_U64},
      {PESTLE_NONE, PESTLE_F16, PESTLE_F32, PESTLE_F64}};
  if (dtype.code > 2 || dtype.bits < 8) return PESTLE_NONE;
  int log = __builtin_ctz(dtype.bits) - 3;
  if (log < 0 || log > 3 || 8 << log != dtype.bits) return PESTLE_NONE;
  return (pestle_dtype_t)plain[dtype.code][log];
}

pestle_dtype_t pestle_dtype_from_dlpack(pestle_dl_dtype_t dtype) {
  if (dtype.lanes != 1) return PESTLE_NONE;
  pestle_dtype_t plain = plain_from_dlpack(dtype);
  if (plain != PESTLE_NONE) return plain;
  for (int i = PESTLE_NONE + 1; i < PESTLE_DTYPE_COUNT; ++i) {
    const pestle_dtype_info_t* info = pestle_dtype_info((pestle_dtype_t)i);
    // index, addr and mbar are no tensor's element.
    if (info->dlpack_code == pestle_dtype_info(PESTLE_NONE)->dlpack_code) {
      continue;
    }
    if (info->dlpack_code == dtype.code && info->dlpack_bits == dtype.bits) {
      return (pestle_dtype_t)i;
    }
  }
  return PESTLE_NONE;
}

pestle_dl_dtype_t pestle_dtype_to_dlpack(pestle_dtype_t dtype) {
  const pestle_dtype_info_t* info = pestle_dtype_info(dtype);
  return (pestle_dl_dtype_t){
      .code = info->dlpack_code, .bits = info->dlpack_bits, .lanes = 1};
}
