// SPDX-License-Identifier: Apache-2.0
// Tensor views as callers give them: checks against what an executable expects,
// the bytes that a view spans, and copies between strided and dense memory.
#ifndef PESTLE_RUNTIME_VIEW_H_
#define PESTLE_RUNTIME_VIEW_H_

#include "pestle/runtime.h"

// What an executable expects of one input or output.
typedef struct pestle_exec_io_t {
  pestle_io_info_t info;
  pestle_dl_dtype_t dl_dtype;
  uint32_t element;      // bytes
  uint64_t size;         // bytes, dense
  int64_t shape_offset;  // bounded outputs: in the arena
  uintptr_t misaligned;  // bits of an address that is not used in place
  int32_t alias;         // as in the plan
  uint32_t first_step;   // the first and last step that touch it; an untouched
  uint32_t last_step;    // one has first > last
} pestle_exec_io_t;

// The bytes [begin, end) that a view may touch.
typedef struct pestle_view_range_t {
  uintptr_t begin, end;
} pestle_view_range_t;

// The same of an executable's input or output.
typedef struct pestle_io_range_t {
  uintptr_t begin, end;
  bool remote, is_output;
} pestle_io_range_t;

static inline bool pestle_view_overlaps(pestle_view_range_t a,
                                        pestle_view_range_t b) {
  return a.begin < b.end && b.begin < a.end;
}

// The address of element 0, ..., 0.
static inline char* pestle_view_data(const pestle_tensor_t* view) {
  // An empty tensor's data may be NULL, to which C lets nothing be added.
  return (char*)((uintptr_t)view->data + (uintptr_t)view->byte_offset);
}

// Checks dtype, rank and shape of |view|, and finds its range and
// whether it is row-major without gaps. |kind| is "input" or "output"; an
// output must not visit an element twice.
PESTLE_NODISCARD pestle_status_t pestle_view_check(
    const pestle_tensor_t* view, const pestle_exec_io_t* io, const char* kind,
    pestle_view_range_t* out_range, bool* out_dense);

// Whether a view is row-major without gaps.
bool pestle_view_is_dense(const pestle_tensor_t* view);

// Writes row-major strides, in elements.
void pestle_view_dense_strides(int32_t rank, const int64_t* dims,
                               int64_t* out_strides);

// Copies an array of |dims|. Strides are in elements, NULL: row-major. Elements
// are copied in row-major order; the memory may overlap if the target's element
// never lies behind the source's.
void pestle_view_copy(int32_t rank, const int64_t* dims, size_t element,
                      const void* source, const int64_t* source_strides,
                      void* target, const int64_t* target_strides);

#endif  // PESTLE_RUNTIME_VIEW_H_
