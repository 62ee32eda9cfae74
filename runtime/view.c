// SPDX-License-Identifier: Apache-2.0
#include "runtime/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"

// --- Checks ---

// "2x3x4", or "scalar".
static const char* shape_text(int32_t rank, const int64_t* dims,
                              char out_text[256]) {
  size_t size = 0;
  if (!rank) return "scalar";
  for (int32_t i = 0; i < rank && size < 230; ++i) {
    int part = snprintf(out_text + size, 256 - size, "%s%" PRId64, i ? "x" : "",
                        dims[i]);
    if (part > 0) size += (size_t)part;
  }
  return out_text;
}

static pestle_status_t wrong_shape(const pestle_tensor_t* view,
                                   const pestle_exec_io_t* io,
                                   const char* kind) {
  char found[256], expected[256];
  return PESTLE_ERROR(INVALID_ARGUMENT, "%s '%s' has shape %s, expected %s",
                      kind, io->info.name,
                      shape_text(view->ndim, view->shape, found),
                      shape_text(io->info.rank, io->info.dims, expected));
}

static pestle_status_t wrong_dtype(const pestle_tensor_t* view,
                                   const pestle_exec_io_t* io,
                                   const char* kind) {
  return PESTLE_ERROR(
      INVALID_ARGUMENT,
      "%s '%s' has dtype %s (code %u, %u bits, %u lanes), expected %s", kind,
      io->info.name,
      pestle_dtype_info(pestle_dtype_from_dlpack(view->dtype))->name,
      view->dtype.code, view->dtype.bits, view->dtype.lanes,
      pestle_dtype_info(io->info.dtype)->name);
}

bool pestle_view_is_dense(const pestle_tensor_t* view) {
  if (!view->strides) return true;
  int64_t expected = 1;
  for (int32_t i = view->ndim; i-- > 0;) {
    if (view->shape[i] != 1 && view->strides[i] != expected) return false;
    expected *= view->shape[i];
  }
  return true;
}

// The range of a view that is not dense and not empty.
static pestle_status_t find_range(const pestle_tensor_t* view,
                                  const pestle_exec_io_t* io, const char* kind,
                                  pestle_view_range_t* out_range) {
  int64_t low = 0, high = 0, element = (int64_t)io->element;
  bool fits = true;
  for (int32_t i = 0; i < view->ndim && fits; ++i) {
    int64_t reach;
    fits =
        pestle_checked_mul_i64(view->shape[i] - 1, view->strides[i], &reach) &&
        pestle_checked_mul_i64(reach, element, &reach) &&
        pestle_checked_add_i64(reach < 0 ? low : high, reach,
                               reach < 0 ? &low : &high);
  }
  uintptr_t base = (uintptr_t)pestle_view_data(view);
  fits = fits && pestle_checked_add_i64(high, element, &high) &&
         !__builtin_add_overflow(base, low, &out_range->begin) &&
         !__builtin_add_overflow(base, high, &out_range->end);
  if (fits) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "the strides of %s '%s' lead out of the address space",
                      kind, io->info.name);
}

// Whether two index tuples may name one element: sorted by stride, each axis
// must step over all that the finer ones reach.
static bool visits_twice(const pestle_tensor_t* view) {
  int32_t order[PESTLE_MAX_RANK];
  int32_t count = 0;
  for (int32_t i = 0; i < view->ndim; ++i) {
    if (view->shape[i] == 1) continue;
    uint64_t stride =
        (uint64_t)(view->strides[i] < 0 ? -view->strides[i] : view->strides[i]);
    int32_t at = count++;
    for (; at > 0; --at) {
      int64_t other = view->strides[order[at - 1]];
      if ((uint64_t)(other < 0 ? -other : other) <= stride) break;
      order[at] = order[at - 1];
    }
    order[at] = i;
  }
  uint64_t reach = 0;
  for (int32_t k = 0; k < count; ++k) {
    int64_t stride = view->strides[order[k]];
    uint64_t step = (uint64_t)(stride < 0 ? -stride : stride);
    if (step <= reach) return true;
    reach += step * (uint64_t)(view->shape[order[k]] - 1);
  }
  return false;
}

static pestle_status_t check_strided(const pestle_tensor_t* view,
                                     const pestle_exec_io_t* io,
                                     const char* kind,
                                     pestle_view_range_t* out_range) {
  PESTLE_TRY(find_range(view, io, kind, out_range));
  if (*kind == 'o' && visits_twice(view)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the strides of %s '%s' name an element twice", kind,
                        io->info.name);
  }
  return NULL;
}

pestle_status_t pestle_view_check(const pestle_tensor_t* view,
                                  const pestle_exec_io_t* io, const char* kind,
                                  pestle_view_range_t* out_range,
                                  bool* out_dense) {
  const pestle_dl_dtype_t* dtype = &view->dtype;
  if (dtype->code != io->dl_dtype.code || dtype->bits != io->dl_dtype.bits ||
      dtype->lanes != 1) {
    return wrong_dtype(view, io, kind);
  }
  if (view->ndim != io->info.rank) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "%s '%s' has rank %d, expected %d",
                        kind, io->info.name, (int)view->ndim,
                        (int)io->info.rank);
  }
  if (view->ndim && !view->shape) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "%s '%s' has rank %d but no shape: its shape is NULL",
                        kind, io->info.name, (int)view->ndim);
  }
  for (int32_t i = 0; i < view->ndim; ++i) {
    if (view->shape[i] != io->info.dims[i]) return wrong_shape(view, io, kind);
  }
  if (view->byte_offset > UINTPTR_MAX - (uintptr_t)view->data ||
      io->size > UINTPTR_MAX - (uintptr_t)view->data - view->byte_offset) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the byte offset %llu of %s '%s' leads out of the "
                        "address space",
                        (unsigned long long)view->byte_offset, kind,
                        io->info.name);
  }
  uintptr_t base = (uintptr_t)pestle_view_data(view);
  *out_dense = !io->size || pestle_view_is_dense(view);
  *out_range = (pestle_view_range_t){base, base + io->size};
  if (!io->size) return NULL;
  if (!view->data) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "%s '%s' has no data", kind,
                        io->info.name);
  }
  return *out_dense ? NULL : check_strided(view, io, kind, out_range);
}

void pestle_view_dense_strides(int32_t rank, const int64_t* dims,
                               int64_t* out_strides) {
  pestle_dense_strides(dims, (size_t)rank, 1, out_strides);
}

// --- Copies ---

// A copy with axes of extent 1 dropped and neighbours merged; strides in bytes.
typedef struct copy_t {
  int32_t rank;
  int64_t dims[PESTLE_MAX_RANK];
  int64_t source[PESTLE_MAX_RANK];
  int64_t target[PESTLE_MAX_RANK];
  size_t element;
} copy_t;

static void add_axis(copy_t* copy, int64_t dim, int64_t source,
                     int64_t target) {
  int32_t last = copy->rank - 1;
  if (last >= 0 && copy->source[last] == source * dim &&
      copy->target[last] == target * dim) {
    copy->dims[last] *= dim;
    copy->source[last] = source;
    copy->target[last] = target;
    return;
  }
  copy->dims[copy->rank] = dim;
  copy->source[copy->rank] = source;
  copy->target[copy->rank] = target;
  ++copy->rank;
}

static void copy_row(const copy_t* copy, const char* source, char* target) {
  int32_t last = copy->rank - 1;
  int64_t count = copy->dims[last];
  int64_t from = copy->source[last], to = copy->target[last];
  size_t element = copy->element;
  if (from == (int64_t)element && to == (int64_t)element) {
    memmove(target, source, (size_t)count * element);
    return;
  }
  // Constant sizes become single moves.
#define COPY_ELEMENTS(size)                           \
  for (int64_t i = 0; i < count; ++i) {               \
    memcpy(target + i * to, source + i * from, size); \
  }
  switch (element) {
    case 1:
      COPY_ELEMENTS(1)
      break;
    case 2:
      COPY_ELEMENTS(2)
      break;
    case 4:
      COPY_ELEMENTS(4)
      break;
    case 8:
      COPY_ELEMENTS(8)
      break;
    default:
      COPY_ELEMENTS(16)
      break;
  }
#undef COPY_ELEMENTS
}

static void copy_axes(const copy_t* copy, const char* source, char* target) {
  int64_t index[PESTLE_MAX_RANK] = {0};
  int32_t outer = copy->rank - 1;
  for (;;) {
    copy_row(copy, source, target);
    int32_t axis = outer - 1;
    for (; axis >= 0; --axis) {
      source += copy->source[axis];
      target += copy->target[axis];
      if (++index[axis] < copy->dims[axis]) break;
      source -= copy->source[axis] * copy->dims[axis];
      target -= copy->target[axis] * copy->dims[axis];
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

void pestle_view_copy(int32_t rank, const int64_t* dims, size_t element,
                      const void* source, const int64_t* source_strides,
                      void* target, const int64_t* target_strides) {
  int64_t dense[PESTLE_MAX_RANK];
  pestle_view_dense_strides(rank, dims, dense);
  const int64_t* from = source_strides ? source_strides : dense;
  const int64_t* to = target_strides ? target_strides : dense;
  copy_t copy = {.element = element};
  int64_t bytes = (int64_t)element;
  for (int32_t i = 0; i < rank; ++i) {
    if (dims[i] == 0) return;
    if (dims[i] == 1) continue;  // Its stride may be anything.
    add_axis(&copy, dims[i], from[i] * bytes, to[i] * bytes);
  }
  if (!copy.rank) {
    copy.rank = 1;
    copy.dims[0] = 1;
    copy.source[0] = copy.target[0] = bytes;
  }
  copy_axes(&copy, source, target);
}
