// SPDX-License-Identifier: Apache-2.0
// Sequences and optionals while importing (import_list.c, import_list_map.c).
#ifndef PESTLE_FRONTEND_ONNX_LISTS_H_
#define PESTLE_FRONTEND_ONNX_LISTS_H_

#include "frontend/onnx/emit.h"

// An optional without an element.
extern const pestle_onnx_sequence_t pestle_onnx_nothing;

// A sequence of |count| tensors that are not there yet; NULL with an error kept.
pestle_onnx_sequence_t* pestle_onnx_make_list(pestle_onnx_call_t* call,
                                              size_t count);
// Loop with a state that is a sequence or an optional.
void pestle_onnx_import_list_loop(pestle_onnx_call_t* call);

#endif  // PESTLE_FRONTEND_ONNX_LISTS_H_
