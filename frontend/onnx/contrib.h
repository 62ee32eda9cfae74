// SPDX-License-Identifier: Apache-2.0
// What the importers of com.microsoft's ops share: they are written as the ops of
// ai.onnx that they join.
#ifndef PESTLE_FRONTEND_ONNX_CONTRIB_H_
#define PESTLE_FRONTEND_ONNX_CONTRIB_H_

#include "frontend/onnx/ops.h"

// Refuses the node when attribute |name| is an int other than |value|, the one of a node
// without it; |why| is the end of the sentence.
bool pestle_onnx_takes_only(pestle_onnx_call_t* call, const char* name,
                            int64_t value, const char* why);
// Refuses the node when it has input |index|, called |name|.
bool pestle_onnx_takes_no_input(pestle_onnx_call_t* call, size_t index,
                                const char* name, const char* why);

// Attributes of a node that is not in the file.
pestle_onnx_attr_t pestle_onnx_make_int(const char* name, int64_t value);
pestle_onnx_attr_t pestle_onnx_make_float(const char* name, double value);
pestle_onnx_attr_t pestle_onnx_make_string(const char* name, const char* value);
pestle_onnx_attr_t pestle_onnx_make_ints(const char* name,
                                         const int64_t* values, size_t count);

// A node that is not in the file: an op of ai.onnx at |opset|, with attributes that go
// before those of the call's own node.
typedef struct pestle_onnx_part_t {
  pestle_onnx_fn_t fn;  // its importer
  int64_t opset;
  pestle_value_t** inputs;
  size_t input_count;
  const pestle_onnx_attr_t* attrs;
  size_t attr_count;
} pestle_onnx_part_t;
// Imports it in place of the call; |outputs| has room for |count| results. False with the
// error kept.
bool pestle_onnx_import_part(pestle_onnx_call_t* call,
                             const pestle_onnx_part_t* part,
                             pestle_value_t** outputs, size_t count);
// The same of one result.
pestle_value_t* pestle_onnx_part(pestle_onnx_call_t* call, pestle_onnx_fn_t fn,
                                 pestle_value_t** inputs, size_t count,
                                 const pestle_onnx_attr_t* attrs,
                                 size_t attr_count);

// u8 whose bytes hold 8 / |bits| numbers each, the lowest bits first, as |rank| axes of
// |dims|, the last of which they lie along (import_contrib_blocks.c).
pestle_value_t* pestle_onnx_unpack(pestle_onnx_call_t* call, pestle_value_t* x,
                                   int64_t bits, int32_t rank,
                                   const int64_t* dims);

// NC... from N...C, and back.
pestle_value_t* pestle_onnx_channels_second(pestle_onnx_call_t* call,
                                            pestle_value_t* x);
pestle_value_t* pestle_onnx_channels_last(pestle_onnx_call_t* call,
                                          pestle_value_t* x);

#endif  // PESTLE_FRONTEND_ONNX_CONTRIB_H_
