// SPDX-License-Identifier: Apache-2.0
// Types of tensors (pestle/types.h, pestle/graph.h): equality, sizes, checks, text.
#include <string.h>

#include "base/checked.h"
#include "ir/graph.h"

pestle_type_t pestle_type_make(pestle_dtype_t dtype, int rank,
                               const int64_t* dims) {
  pestle_type_t type = {.dtype = dtype, .rank = rank};
  // A rank out of range is kept, so that pestle_type_check() can say so.
  int kept = rank > PESTLE_MAX_RANK ? PESTLE_MAX_RANK : rank;
  for (int i = 0; i < kept; ++i)
    type.dims[i] = dims[i];
  return type;
}

bool pestle_type_equal(const pestle_type_t* a, const pestle_type_t* b) {
  if (a == b) return true;
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; ++i) {
    if (a->dims[i] != b->dims[i]) return false;
  }
  return true;
}

bool pestle_type_is_static(const pestle_type_t* type) {
  for (int i = 0; i < type->rank; ++i) {
    if (type->dims[i] == PESTLE_DIM_DYNAMIC) return false;
  }
  return true;
}

int64_t pestle_type_count(const pestle_type_t* type) {
  int64_t count = 1;
  for (int i = 0; i < type->rank; ++i)
    count *= type->dims[i];
  return count;
}

size_t pestle_type_bytes(const pestle_type_t* type) {
  return (size_t)pestle_type_count(type) * pestle_dtype_size(type->dtype);
}

// Dynamic extents are left out of the product: what is known must fit. Zeros
// are too, since strides are products of the other extents.
static bool size_fits(const pestle_type_t* type) {
  int64_t bytes = pestle_dtype_size(type->dtype);
  for (int i = 0; i < type->rank; ++i) {
    if (type->dims[i] <= 0) continue;
    if (!pestle_checked_mul_i64(bytes, type->dims[i], &bytes)) return false;
  }
  return true;
}

pestle_status_t pestle_type_check(const pestle_type_t* type) {
  if (!pestle_dtype_is_stored(type->dtype)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "a tensor cannot have the element type %s",
                        pestle_dtype_info(type->dtype)->name);
  }
  if (type->rank < 0 || type->rank > PESTLE_MAX_RANK) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "a tensor of rank %d: ranks are 0 to %d",
                        (int)type->rank, PESTLE_MAX_RANK);
  }
  for (int i = 0; i < type->rank; ++i) {
    if (type->dims[i] < 0 && type->dims[i] != PESTLE_DIM_DYNAMIC) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "extent %lld of axis %d is negative",
                          (long long)type->dims[i], i);
    }
  }
  if (size_fits(type)) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "the size of the tensor passes 2^63 - 1 bytes");
}

void pestle_type_print(const pestle_type_t* type, pestle_strbuf_t* out) {
  pestle_strbuf_append_c(out, "tensor<");
  for (int i = 0; i < type->rank && i < PESTLE_MAX_RANK; ++i) {
    if (type->dims[i] == PESTLE_DIM_DYNAMIC) {
      pestle_strbuf_append_char(out, '?');
    } else {
      pestle_strbuf_append_i64(out, type->dims[i]);
    }
    pestle_strbuf_append_char(out, 'x');
  }
  pestle_strbuf_append_c(out, pestle_dtype_info(type->dtype)->name);
  pestle_strbuf_append_char(out, '>');
}
