// SPDX-License-Identifier: Apache-2.0
// Adaptive pools: each element of the result looks at all of its window, in the
// widest type of its kind.
#include <math.h>
#include <string.h>

#include "ir/ref/ref_internal.h"

// The window of one element of the result.
typedef struct window_t {
  int64_t first[PESTLE_MAX_RANK], dims[PESTLE_MAX_RANK];
} window_t;

static window_t window_of(const pestle_type_t* from, const pestle_type_t* to,
                          const int64_t* at) {
  window_t w;
  for (int i = 0; i < from->rank; ++i) {
    // Where an axis is kept n is m, and the window is the element.
    int64_t n = from->dims[i], m = to->dims[i];
    w.first[i] = at[i] * n / m;
    w.dims[i] = ((at[i] + 1) * n + m - 1) / m - w.first[i];
  }
  return w;
}

static int64_t place_in(const pestle_type_t* type, const int64_t* first,
                        const int64_t* at) {
  int64_t place = 0;
  for (int i = 0; i < type->rank; ++i)
    place = place * type->dims[i] + first[i] + at[i];
  return place;
}

static void pool(const pestle_ref_call_t* call, const int64_t* at, bool average,
                 void* out) {
  const pestle_type_t* from = pestle_ref_operand_type(call, 0);
  const pestle_type_t* to = pestle_ref_result_type(call, 0);
  pestle_ref_class_t kind = pestle_ref_wide_class(from->dtype);
  pestle_ref_kernel_t kernel =
      pestle_ref_kernel(average ? PESTLE_OP_ADD : PESTLE_OP_MAXIMUM, kind);
  size_t size = pestle_dtype_size(from->dtype);
  window_t w = window_of(from, to, at);
  int64_t inside[PESTLE_MAX_RANK] = {0}, count = 0;
  uint64_t total = 0, element = 0;
  do {
    const char* x = (const char*)call->operands[0] +
                    (size_t)place_in(from, w.first, inside) * size;
    pestle_ref_load_wide(from->dtype, x, 1, &element);
    // A sum starts from 0, that of -0 alone is 0; where all axes are kept there
    // is none.
    if (count++ == 0 && (!average || pestle_type_equal(from, to))) {
      total = element;
    } else {
      kernel(&total, &total, &element, &element, 1,
             pestle_dtype_info(from->dtype)->bits);
    }
  } while (pestle_ref_next(from->rank, w.dims, inside));
  if (average) {
    double mean;
    memcpy(&mean, &total, sizeof(mean));
    mean /= (double)count;
    memcpy(&total, &mean, sizeof(mean));
  }
  pestle_ref_store_wide(to->dtype, &total, 1, out);
}

static pestle_status_t pools(const pestle_ref_call_t* call, bool average) {
  const pestle_type_t* type = pestle_ref_result_type(call, 0);
  size_t size = pestle_dtype_size(type->dtype);
  int64_t at[PESTLE_MAX_RANK] = {0};
  char* out = call->results[0];
  if (!pestle_type_count(type)) return NULL;
  do {
    pool(call, at, average, out);
    out += size;
  } while (pestle_ref_next(type->rank, type->dims, at));
  return NULL;
}

pestle_status_t pestle_ref_adaptive_average_pool(
    const pestle_ref_call_t* call) {
  return pools(call, true);
}

pestle_status_t pestle_ref_adaptive_max_pool(const pestle_ref_call_t* call) {
  return pools(call, false);
}
