// SPDX-License-Identifier: Apache-2.0
// A reader of protobuf's wire format: a cursor over borrowed bytes that hands
// out one field at a time. Nothing is copied and nothing is allocated; every
// length is checked against the enclosing message. It knows no message type.
#ifndef PESTLE_FRONTEND_ONNX_PROTO_H_
#define PESTLE_FRONTEND_ONNX_PROTO_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "pestle/status.h"

// The most messages that may lie inside each other. Models have If bodies a few
// deep; a hostile file must not decide how deep our stack grows.
#define PESTLE_PROTO_MAX_DEPTH 64

typedef enum pestle_proto_wire_e {
  PESTLE_PROTO_VARINT = 0,
  PESTLE_PROTO_FIXED64 = 1,
  PESTLE_PROTO_BYTES = 2,
  PESTLE_PROTO_FIXED32 = 5,
} pestle_proto_wire_t;

typedef struct pestle_proto_t {
  const uint8_t* next;
  const uint8_t* end;
  const uint8_t* base;  // of the whole file: offsets in diagnostics
} pestle_proto_t;

typedef struct pestle_proto_field_t {
  uint32_t number;
  pestle_proto_wire_t wire;
  uint64_t value;      // VARINT, FIXED64, FIXED32
  pestle_str_t bytes;  // BYTES
} pestle_proto_field_t;

// A cursor over a whole file.
pestle_proto_t pestle_proto_make(const void* data, size_t size);
// A cursor over a message inside |outer|'s file.
pestle_proto_t pestle_proto_sub(const pestle_proto_t* outer,
                                pestle_str_t bytes);
// Reads the next field; |*out_more| is false at the end. MALFORMED with the
// offset in the file when the bytes are not protobuf.
PESTLE_NODISCARD pestle_status_t pestle_proto_next(
    pestle_proto_t* proto, pestle_proto_field_t* out_field, bool* out_more);
// Reads a bare varint (an element of a packed field).
PESTLE_NODISCARD pestle_status_t pestle_proto_varint(pestle_proto_t* proto,
                                                     uint64_t* out_value);

// Typed readings of a field: MALFORMED when its wire type is another one.
PESTLE_NODISCARD pestle_status_t
pestle_proto_read_str(const pestle_proto_t* proto,
                      const pestle_proto_field_t* field, pestle_str_t* out);
PESTLE_NODISCARD pestle_status_t
pestle_proto_read_i64(const pestle_proto_t* proto,
                      const pestle_proto_field_t* field, int64_t* out);
PESTLE_NODISCARD pestle_status_t pestle_proto_read_f32(
    const pestle_proto_t* proto, const pestle_proto_field_t* field, float* out);

// How the elements of a repeated numeric field are stored.
typedef enum pestle_proto_kind_e {
  PESTLE_PROTO_I64,  // varints, 8 bytes in |out|
  PESTLE_PROTO_F32,  // 4 bytes
  PESTLE_PROTO_F64,  // 8 bytes
} pestle_proto_kind_t;

// Appends what |field| adds to a repeated numeric field, packed or not, to
// |out|, which has room for |capacity| elements; |*count| counts all that there
// are, also those past |capacity|. |out| may be NULL when |capacity| is 0.
PESTLE_NODISCARD pestle_status_t pestle_proto_read_repeated(
    const pestle_proto_t* proto, const pestle_proto_field_t* field,
    pestle_proto_kind_t kind, void* out, size_t capacity, size_t* count);

#endif  // PESTLE_FRONTEND_ONNX_PROTO_H_
