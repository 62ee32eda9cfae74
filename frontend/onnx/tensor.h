// SPDX-License-Identifier: Apache-2.0
// From the stored form of an ONNX tensor (raw bytes, typed fields, a range of
// another file) to row-major elements of a Pestle type.
#ifndef PESTLE_FRONTEND_ONNX_TENSOR_H_
#define PESTLE_FRONTEND_ONNX_TENSOR_H_

#include "base/file.h"
#include "frontend/onnx/model.h"

// Files of external data, mapped on first use. Once handed to a module they are
// unmapped when it dies.
typedef struct pestle_onnx_file_t {
  const char* name;  // as the model spells it
  pestle_mapping_t mapping;
  struct pestle_onnx_file_t* next;
} pestle_onnx_file_t;

typedef struct pestle_onnx_files_t {
  pestle_arena_t arena;
  const char* folder;  // NULL: no external data is allowed
  pestle_onnx_file_t* first;
  const pestle_mapping_t* model;  // its own file, where that is mapped, or NULL
} pestle_onnx_files_t;

// |folder| is borrowed.
void pestle_onnx_files_init(pestle_allocator_t allocator, const char* folder,
                            pestle_onnx_files_t* out_files);
void pestle_onnx_files_deinit(pestle_onnx_files_t* files);

// The dtype of a TensorProto.DataType; NONE when Pestle has none like it.
pestle_dtype_t pestle_onnx_dtype(int64_t data_type);
// "FLOAT", "STRING"; "unknown" for numbers that ONNX does not define.
const char* pestle_onnx_dtype_name(int64_t data_type);

// The type of |tensor|. MALFORMED when its dims are negative or overflow,
// UNSUPPORTED for dtypes without a counterpart.
PESTLE_NODISCARD pestle_status_t pestle_onnx_tensor_type(
    const pestle_onnx_tensor_t* tensor, pestle_type_t* out_type);
// The elements of |tensor|: in the file where they lie aligned there, else in
// |arena|. |files| may be NULL: then external data is an error.
PESTLE_NODISCARD pestle_status_t pestle_onnx_tensor_elements(
    const pestle_onnx_tensor_t* tensor, pestle_onnx_files_t* files,
    pestle_arena_t* arena, pestle_elements_t* out_elements);

// Whether |type| has at most 2^48 elements where extents of 0 count as 1: more
// than any machine holds, and so little that extents may be added and
// multiplied without a thought of overflow.
bool pestle_onnx_type_fits(const pestle_type_t* type);

// --- Numbers (number.c) ---

// Element |index| of |elements|.
double pestle_onnx_element_f64(const pestle_elements_t* elements, size_t index);
int64_t pestle_onnx_element_i64(const pestle_elements_t* elements,
                                size_t index);
// Writes one element: |value| rounded to |dtype|, or the low bits of |bits|
// (any bit for a bool).
void pestle_onnx_store_f64(pestle_dtype_t dtype, double value, void* out);
void pestle_onnx_store_bits(pestle_dtype_t dtype, uint64_t bits, void* out);

#endif  // PESTLE_FRONTEND_ONNX_TENSOR_H_
