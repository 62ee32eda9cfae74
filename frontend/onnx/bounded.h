// SPDX-License-Identifier: Apache-2.0
// Values whose extents only running tells (docs/adr/011). Such a value is laid
// out by its type, the bound; along some axes only the first so many elements
// are real, a number that is an i64 of rank 0. Behind them anything may lie.
#ifndef PESTLE_FRONTEND_ONNX_BOUNDED_H_
#define PESTLE_FRONTEND_ONNX_BOUNDED_H_

#include "frontend/onnx/emit.h"

// The real extents of a value, NULL along axes where its type has them.
typedef struct pestle_onnx_real_t {
  pestle_value_t* sizes[PESTLE_MAX_RANK];
} pestle_onnx_real_t;

// What is known of |value|; NULL when its type says all.
const pestle_onnx_real_t* pestle_onnx_real(const pestle_onnx_import_t* import,
                                           const pestle_value_t* value);
// The real extent of |value| along |axis|, or NULL.
pestle_value_t* pestle_onnx_real_size(const pestle_onnx_import_t* import,
                                      const pestle_value_t* value,
                                      int64_t axis);
// Notes that |size| is the real extent of |value| along |axis|; NULLs do
// nothing.
void pestle_onnx_set_real(pestle_onnx_call_t* call, pestle_value_t* value,
                          int64_t axis, pestle_value_t* size);
// The real extents of |value| as an i64 list.
pestle_value_t* pestle_onnx_real_shape(pestle_onnx_call_t* call,
                                       pestle_value_t* value);
// Where the elements of |type| are real, as i1, looking at |axes|, a bit each;
// NULL when |real| (may be NULL) says nothing about those.
pestle_value_t* pestle_onnx_real_mask(pestle_onnx_call_t* call,
                                      const pestle_type_t* type,
                                      const pestle_onnx_real_t* real,
                                      uint32_t axes);
// Refuses the call when it has such an input that its op cannot take.
void pestle_onnx_check_bounded(pestle_onnx_call_t* call,
                               const pestle_onnx_op_t* op);
// The real extents of elementwise results with numpy's broadcasting.
void pestle_onnx_broadcast_real(pestle_onnx_call_t* call);
// Refuses |value| where it leaves a body that runs later: |what| it is.
bool pestle_onnx_leaves_whole(pestle_onnx_call_t* call,
                              const pestle_value_t* value, const char* what);

#endif  // PESTLE_FRONTEND_ONNX_BOUNDED_H_
