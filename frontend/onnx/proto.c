// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/proto.h"

#include <string.h>

#include "base/fault.h"

static pestle_status_t damaged(const pestle_proto_t* proto, const uint8_t* at,
                               const char* what) {
  return PESTLE_ERROR(MALFORMED,
                      "the file is not a whole ONNX protobuf: %s at byte %zu",
                      what, (size_t)(at - proto->base));
}

pestle_proto_t pestle_proto_make(const void* data, size_t size) {
  static const uint8_t empty[1] = {0};
  const uint8_t* begin = size ? data : empty;
  return (pestle_proto_t){.next = begin, .end = begin + size, .base = begin};
}

pestle_proto_t pestle_proto_sub(const pestle_proto_t* outer,
                                pestle_str_t bytes) {
  const uint8_t* begin = bytes.size ? (const uint8_t*)bytes.data : outer->end;
  return (pestle_proto_t){
      .next = begin, .end = begin + bytes.size, .base = outer->base};
}

pestle_status_t pestle_proto_varint(pestle_proto_t* proto,
                                    uint64_t* out_value) {
  uint64_t value = 0;
  const uint8_t* start = proto->next;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (proto->next == proto->end) {
      return damaged(proto, start, "a number is cut off");
    }
    uint8_t byte = *proto->next++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) {
      *out_value = value;
      return NULL;
    }
  }
  return damaged(proto, start, "a number of more than 64 bits");
}

static pestle_status_t read_fixed(pestle_proto_t* proto, size_t size,
                                  uint64_t* out_value) {
  if ((size_t)(proto->end - proto->next) < size) {
    return damaged(proto, proto->next, "a fixed-size field is cut off");
  }
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) {
    value |= (uint64_t)proto->next[i] << (8 * i);
  }
  proto->next += size;
  *out_value = value;
  return NULL;
}

static pestle_status_t read_bytes(pestle_proto_t* proto, pestle_str_t* out) {
  const uint8_t* start = proto->next;
  uint64_t size;
  PESTLE_TRY(pestle_proto_varint(proto, &size));
  if (size > (uint64_t)(proto->end - proto->next) &&
      !PESTLE_FAULT(trust_proto_length)) {
    return damaged(proto, start, "a field is longer than its message");
  }
  *out = pestle_str_make((const char*)proto->next, (size_t)size);
  proto->next += size;
  return NULL;
}

pestle_status_t pestle_proto_next(pestle_proto_t* proto,
                                  pestle_proto_field_t* out_field,
                                  bool* out_more) {
  *out_more = false;
  if (proto->next == proto->end) return NULL;
  const uint8_t* start = proto->next;
  uint64_t tag = 0;
  PESTLE_TRY(pestle_proto_varint(proto, &tag));
  if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff) {
    return damaged(proto, start, "an impossible field number");
  }
  *out_field = (pestle_proto_field_t){.number = (uint32_t)(tag >> 3)};
  unsigned wire = (unsigned)(tag & 7);
  switch (wire) {
    case PESTLE_PROTO_VARINT:
      PESTLE_TRY(pestle_proto_varint(proto, &out_field->value));
      break;
    case PESTLE_PROTO_FIXED64:
      PESTLE_TRY(read_fixed(proto, 8, &out_field->value));
      break;
    case PESTLE_PROTO_FIXED32:
      PESTLE_TRY(read_fixed(proto, 4, &out_field->value));
      break;
    case PESTLE_PROTO_BYTES:
      PESTLE_TRY(read_bytes(proto, &out_field->bytes));
      break;
    default:
      return damaged(proto, start, "a field of an unknown wire type");
  }
  out_field->wire = (pestle_proto_wire_t)wire;
  *out_more = true;
  return NULL;
}

static pestle_status_t wrong_wire(const pestle_proto_t* proto,
                                  const pestle_proto_field_t* field) {
  return PESTLE_ERROR(MALFORMED,
                      "the file is not a whole ONNX protobuf: field %u before "
                      "byte %zu has wire type %d",
                      field->number, (size_t)(proto->next - proto->base),
                      (int)field->wire);
}

pestle_status_t pestle_proto_read_str(const pestle_proto_t* proto,
                                      const pestle_proto_field_t* field,
                                      pestle_str_t* out) {
  if (field->wire != PESTLE_PROTO_BYTES) return wrong_wire(proto, field);
  *out = field->bytes;
  return NULL;
}

pestle_status_t pestle_proto_read_i64(const pestle_proto_t* proto,
                                      const pestle_proto_field_t* field,
                                      int64_t* out) {
  if (field->wire != PESTLE_PROTO_VARINT) return wrong_wire(proto, field);
  *out = (int64_t)field->value;
  return NULL;
}

pestle_status_t pestle_proto_read_f32(const pestle_proto_t* proto,
                                      const pestle_proto_field_t* field,
                                      float* out) {
  if (field->wire != PESTLE_PROTO_FIXED32) return wrong_wire(proto, field);
  uint32_t bits = (uint32_t)field->value;
  memcpy(out, &bits, sizeof(bits));
  return NULL;
}

static size_t kind_size(pestle_proto_kind_t kind) {
  return kind == PESTLE_PROTO_F32 ? 4 : 8;
}

// One element, from the low bytes of |bits|.
static void put(void* out, size_t capacity, size_t* count, size_t size,
                uint64_t bits) {
  if (*count < capacity) {
    char* target = (char*)out + *count * size;
    if (size == 4) {
      uint32_t low = (uint32_t)bits;
      memcpy(target, &low, 4);
    } else {
      memcpy(target, &bits, 8);
    }
  }
  ++*count;
}

static pestle_status_t read_packed_varints(const pestle_proto_t* proto,
                                           pestle_str_t bytes, void* out,
                                           size_t capacity, size_t* count) {
  pestle_proto_t packed = pestle_proto_sub(proto, bytes);
  while (packed.next != packed.end) {
    uint64_t value = 0;
    PESTLE_TRY(pestle_proto_varint(&packed, &value));
    put(out, capacity, count, 8, value);
  }
  return NULL;
}

static pestle_status_t read_packed_fixed(const pestle_proto_t* proto,
                                         pestle_str_t bytes, size_t size,
                                         void* out, size_t capacity,
                                         size_t* count) {
  if (bytes.size % size != 0) {
    return damaged(proto, (const uint8_t*)bytes.data,
                   "a packed field ends inside an element");
  }
  size_t added = bytes.size / size;
  if (*count < capacity && added) {
    size_t room = capacity - *count;
    memcpy((char*)out + *count * size, bytes.data,
           (added < room ? added : room) * size);
  }
  *count += added;
  return NULL;
}

pestle_status_t pestle_proto_read_repeated(const pestle_proto_t* proto,
                                           const pestle_proto_field_t* field,
                                           pestle_proto_kind_t kind, void* out,
                                           size_t capacity, size_t* count) {
  size_t size = kind_size(kind);
  if (field->wire == PESTLE_PROTO_BYTES) {
    return kind == PESTLE_PROTO_I64
               ? read_packed_varints(proto, field->bytes, out, capacity, count)
               : read_packed_fixed(proto, field->bytes, size, out, capacity,
                                   count);
  }
  pestle_proto_wire_t wanted = kind == PESTLE_PROTO_I64 ? PESTLE_PROTO_VARINT
                               : kind == PESTLE_PROTO_F32
                                   ? PESTLE_PROTO_FIXED32
                                   : PESTLE_PROTO_FIXED64;
  if (field->wire != wanted) return wrong_wire(proto, field);
  put(out, capacity, count, size, field->value);
  return NULL;
}
