// SPDX-License-Identifier: Apache-2.0
// Sizes are compared with what the file holds before anything is allocated, so
// that dims alone never decide how much memory is asked for.
#include "frontend/onnx/tensor.h"

#include <inttypes.h>

#include "base/bits.h"
#include "base/checked.h"
#include "base/mem.h"
#include "frontend/foreign.h"
#include "ir/graph.h"

// Where the typed form of a dtype lies in TensorProto.
typedef enum typed_field_e {
  FIELD_NONE = 0,
  FIELD_FLOAT = 4,
  FIELD_INT32 = 5,
  FIELD_INT64 = 7,
  FIELD_DOUBLE = 10,
  FIELD_UINT64 = 11,
} typed_field_t;

typedef struct dtype_row_t {
  const char* name;
  pestle_dtype_t dtype;
  typed_field_t field;
} dtype_row_t;

// By TensorProto.DataType.
static const dtype_row_t dtype_rows[] = {
    {"UNDEFINED", PESTLE_NONE, FIELD_NONE},
    {"FLOAT", PESTLE_F32, FIELD_FLOAT},
    {"UINT8", PESTLE_U8, FIELD_INT32},
    {"INT8", PESTLE_I8, FIELD_INT32},
    {"UINT16", PESTLE_U16, FIELD_INT32},
    {"INT16", PESTLE_I16, FIELD_INT32},
    {"INT32", PESTLE_I32, FIELD_INT32},
    {"INT64", PESTLE_I64, FIELD_INT64},
    {"STRING", PESTLE_NONE, FIELD_NONE},
    {"BOOL", PESTLE_I1, FIELD_INT32},
    {"FLOAT16", PESTLE_F16, FIELD_INT32},
    {"DOUBLE", PESTLE_F64, FIELD_DOUBLE},
    {"UINT32", PESTLE_U32, FIELD_UINT64},
    {"UINT64", PESTLE_U64, FIELD_UINT64},
    {"COMPLEX64", PESTLE_C64, FIELD_FLOAT},
    {"COMPLEX128", PESTLE_C128, FIELD_DOUBLE},
    {"BFLOAT16", PESTLE_BF16, FIELD_INT32},
    {"FLOAT8E4M3FN", PESTLE_F8E4M3FN, FIELD_INT32},
    {"FLOAT8E4M3FNUZ", PESTLE_F8E4M3FNUZ, FIELD_INT32},
    {"FLOAT8E5M2", PESTLE_F8E5M2, FIELD_INT32},
    {"FLOAT8E5M2FNUZ", PESTLE_F8E5M2FNUZ, FIELD_INT32},
    {"UINT4", PESTLE_U4, FIELD_INT32},
    {"INT4", PESTLE_I4, FIELD_INT32},
    {"FLOAT4E2M1", PESTLE_F4E2M1FN, FIELD_INT32},
    {"FLOAT8E8M0", PESTLE_F8E8M0FNU, FIELD_INT32},
    {"UINT2", PESTLE_U2, FIELD_INT32},
    {"INT2", PESTLE_I2, FIELD_INT32},
};

static const dtype_row_t* dtype_row(int64_t data_type) {
  static const dtype_row_t unknown = {"unknown", PESTLE_NONE, FIELD_NONE};
  size_t count = sizeof(dtype_rows) / sizeof(dtype_rows[0]);
  if (data_type < 0 || data_type >= (int64_t)count) return &unknown;
  return &dtype_rows[data_type];
}

pestle_dtype_t pestle_onnx_dtype(int64_t data_type) {
  return dtype_row(data_type)->dtype;
}

const char* pestle_onnx_dtype_name(int64_t data_type) {
  return dtype_row(data_type)->name;
}

// --- External files ---

void pestle_onnx_files_init(pestle_allocator_t allocator, const char* folder,
                            pestle_onnx_files_t* out_files) {
  *out_files = (pestle_onnx_files_t){.folder = folder};
  pestle_arena_init(allocator, &out_files->arena);
}

void pestle_onnx_files_deinit(pestle_onnx_files_t* files) {
  for (pestle_onnx_file_t* file = files->first; file; file = file->next) {
    pestle_file_unmap(&file->mapping);
  }
  files->first = NULL;
  pestle_arena_deinit(&files->arena);
}

static pestle_status_t open_external(pestle_onnx_files_t* files,
                                     pestle_str_t name,
                                     const pestle_mapping_t** out) {
  for (pestle_onnx_file_t* file = files->first; file; file = file->next) {
    if (pestle_str_equal_c(name, file->name)) {
      *out = &file->mapping;
      return NULL;
    }
  }
  if (name.size && memchr(name.data, 0, name.size)) {
    return PESTLE_ERROR(MALFORMED, "the name of the data file holds a zero");
  }
  pestle_onnx_file_t* file =
      PESTLE_ARENA_NEW(&files->arena, pestle_onnx_file_t);
  if (!file) return PESTLE_OOM();
  file->name = pestle_arena_strndup(&files->arena, name);
  if (!file->name) return PESTLE_OOM();
  const char* path;
  PESTLE_TRY(pestle_path_resolve_inside(files->folder, file->name,
                                        &files->arena, &path));
  PESTLE_TRY(pestle_file_map(path, &file->mapping));
  file->next = files->first;
  files->first = file;
  PESTLE_TRY(pestle_foreign_check_data(file->name, file->mapping.data,
                                       file->mapping.size));
  *out = &file->mapping;
  return NULL;
}

static pestle_status_t parse_size(const pestle_onnx_tensor_t* tensor,
                                  const char* key, pestle_str_t text,
                                  uint64_t missing, uint64_t* out) {
  *out = missing;
  if (!text.size || pestle_str_parse_u64(text, out)) return NULL;
  return PESTLE_ERROR(MALFORMED,
                      "tensor '%.*s': %s '%.*s' of its external data is not a "
                      "number",
                      PESTLE_STR_ARG(tensor->name), key, PESTLE_STR_ARG(text));
}

// The bytes that external_data points at.
static pestle_status_t read_external(const pestle_onnx_tensor_t* tensor,
                                     pestle_onnx_files_t* files,
                                     pestle_str_t* out) {
  if (!files || !files->folder) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "tensor '%.*s' is stored in the file '%.*s', but no "
                        "folder to look for it was given",
                        PESTLE_STR_ARG(tensor->name),
                        PESTLE_STR_ARG(tensor->location));
  }
  const pestle_mapping_t* mapping = NULL;
  pestle_status_t status = open_external(files, tensor->location, &mapping);
  if (status && pestle_status_code(status) == PESTLE_STATUS_INVALID_ARGUMENT) {
    pestle_status_t bad = PESTLE_ERROR(
        MALFORMED, "tensor '%.*s' has its data outside the model's folder: %s",
        PESTLE_STR_ARG(tensor->name), pestle_status_message(status));
    pestle_status_release(status);
    return bad;
  }
  if (status) {
    return pestle_status_annotate(status,
                                  "reading the external data of tensor '%.*s'",
                                  PESTLE_STR_ARG(tensor->name));
  }
  uint64_t offset, length;
  PESTLE_TRY(parse_size(tensor, "offset", tensor->offset, 0, &offset));
  if (offset > mapping->size) offset = mapping->size;
  uint64_t rest = mapping->size - offset;
  PESTLE_TRY(parse_size(tensor, "length", tensor->length, rest, &length));
  if (length > rest) {
    return PESTLE_ERROR(MALFORMED,
                        "tensor '%.*s' holds %" PRIu64 " bytes of %" PRIu64
                        ", where '%.*s' ends",
                        PESTLE_STR_ARG(tensor->name), rest, length,
                        PESTLE_STR_ARG(tensor->location));
  }
  *out = length ? pestle_str_make((const char*)mapping->data + offset,
                                  (size_t)length)
                : pestle_str_make(NULL, 0);
  return NULL;
}

// --- Elements ---

pestle_status_t pestle_onnx_tensor_type(const pestle_onnx_tensor_t* tensor,
                                        pestle_type_t* out_type) {
  *out_type = (pestle_type_t){.dtype = pestle_onnx_dtype(tensor->data_type),
                              .rank = tensor->rank};
  if (out_type->dtype == PESTLE_NONE) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "tensor '%.*s' has the element type %s (%d), which is "
                        "not supported",
                        PESTLE_STR_ARG(tensor->name),
                        pestle_onnx_dtype_name(tensor->data_type),
                        tensor->data_type);
  }
  int64_t count;
  size_t size;
  if (!pestle_checked_count(tensor->dims, (size_t)tensor->rank, &count) ||
      !pestle_checked_size(count, &size) ||
      !pestle_checked_mul(size, pestle_dtype_size(out_type->dtype), &size) ||
      size > INT64_MAX) {
    return PESTLE_ERROR(MALFORMED,
                        "the dims of tensor '%.*s' are negative or their "
                        "product passes 2^63",
                        PESTLE_STR_ARG(tensor->name));
  }
  memcpy(out_type->dims, tensor->dims, (size_t)tensor->rank * sizeof(int64_t));
  if (!pestle_onnx_type_fits(out_type)) {
    return PESTLE_ERROR(MALFORMED,
                        "the dims of tensor '%.*s' pass 2^48, but for one of 0",
                        PESTLE_STR_ARG(tensor->name));
  }
  return NULL;
}

static pestle_status_t size_mismatch(const pestle_onnx_tensor_t* tensor,
                                     const char* unit, size_t found,
                                     size_t wanted) {
  return PESTLE_ERROR(MALFORMED, "tensor '%.*s' holds %zu %s, its dims say %zu",
                      PESTLE_STR_ARG(tensor->name), found, unit, wanted);
}

// Whether a byte holds several elements, the first in its lowest bits.
static bool is_packed(pestle_dtype_t dtype) {
  return pestle_dtype_is_sub_byte(dtype);
}

static size_t packed_bytes(pestle_dtype_t dtype, size_t count) {
  size_t each = 8 / (size_t)pestle_dtype_info(dtype)->bits;
  return count / each + (count % each != 0);
}

static pestle_status_t unpack(pestle_dtype_t dtype, const uint8_t* bytes,
                              size_t count, pestle_arena_t* arena,
                              const void** out) {
  uint8_t* data = PESTLE_ARENA_ARRAY(arena, uint8_t, count);
  if (!data) return PESTLE_OOM();
  size_t bits = pestle_dtype_info(dtype)->bits, each = 8 / bits;
  for (size_t i = 0; i < count; ++i)
    data[i] = pestle_dtype_extend(
        dtype, (uint8_t)(bytes[i / each] >> (i % each * bits)));
  *out = data;
  return NULL;
}

// |raw| at an aligned place. What was copied out of the model's file is not read again: its
// pages are given back, so that no large tensor lies in memory twice.
static uint8_t* copy_raw(const pestle_onnx_files_t* files, pestle_str_t raw,
                         pestle_arena_t* arena) {
  enum { PART = 1 << 20 };
  const pestle_mapping_t* model = files ? files->model : NULL;
  uint8_t* data = pestle_arena_alloc(arena, raw.size, PESTLE_BUFFER_ALIGNMENT);
  for (size_t at = 0; data && at < raw.size; at += PART) {
    size_t size = raw.size - at < PART ? raw.size - at : PART;
    memcpy(data + at, raw.data + at, size);
    if (model && size == PART)
      pestle_file_forget_part(model, raw.data + at, size);
  }
  return data;
}

static pestle_status_t from_raw(const pestle_onnx_tensor_t* tensor,
                                const pestle_onnx_files_t* files,
                                pestle_str_t raw, pestle_arena_t* arena,
                                pestle_elements_t* out) {
  pestle_dtype_t dtype = out->type.dtype;
  size_t size = pestle_dtype_size(dtype), count = out->size / size;
  size_t wanted = is_packed(dtype) ? packed_bytes(dtype, count) : out->size;
  if (raw.size != wanted) {
    return size_mismatch(tensor, "bytes", raw.size, wanted);
  }
  if (!count) return NULL;
  if (is_packed(dtype)) {
    return unpack(dtype, (const uint8_t*)raw.data, count, arena, &out->data);
  }
  // A bool of any byte but 0 and 1 would not survive being compared as a byte.
  if (pestle_is_aligned(raw.data, size) && dtype != PESTLE_I1) {
    out->data = raw.data;
    return NULL;
  }
  uint8_t* data = copy_raw(files, raw, arena);
  if (!data) return PESTLE_OOM();
  for (size_t i = 0; dtype == PESTLE_I1 && i < count; ++i)
    data[i] = !!data[i];
  out->data = data;
  return NULL;
}

// Counts the elements of a typed field, or reads them into |out|.
static pestle_status_t walk_typed(const pestle_onnx_tensor_t* tensor,
                                  typed_field_t wanted,
                                  pestle_proto_kind_t kind, void* out,
                                  size_t capacity, size_t* out_count) {
  pestle_proto_t message = tensor->message;
  *out_count = 0;
  for (;;) {
    pestle_proto_field_t field;
    bool more;
    PESTLE_TRY(pestle_proto_next(&message, &field, &more));
    if (!more) return NULL;
    if (field.number != (uint32_t)wanted) continue;
    PESTLE_TRY(pestle_proto_read_repeated(&message, &field, kind, out, capacity,
                                          out_count));
  }
}

// 8-byte integers to |size| bytes each; the arrays may be the same.
static void narrow(const int64_t* source, size_t count, size_t size,
                   bool as_bool, uint8_t* out) {
  for (size_t i = 0; i < count; ++i) {
    uint64_t value = (uint64_t)source[i];
    if (as_bool) value = value != 0;
    for (size_t j = 0; j < size; ++j) {
      out[i * size + j] = (uint8_t)(value >> (8 * j));
    }
  }
}

static pestle_status_t from_typed(const pestle_onnx_tensor_t* tensor,
                                  pestle_arena_t* arena,
                                  pestle_elements_t* out) {
  pestle_dtype_t dtype = out->type.dtype;
  typed_field_t field = dtype_row(tensor->data_type)->field;
  pestle_proto_kind_t kind = field == FIELD_FLOAT    ? PESTLE_PROTO_F32
                             : field == FIELD_DOUBLE ? PESTLE_PROTO_F64
                                                     : PESTLE_PROTO_I64;
  size_t size = pestle_dtype_size(dtype), count = out->size / size;
  size_t wanted = count;
  if (pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX)) wanted = count * 2;
  if (is_packed(dtype)) wanted = packed_bytes(dtype, count);
  size_t found;
  PESTLE_TRY(walk_typed(tensor, field, kind, NULL, 0, &found));
  if (found != wanted) return size_mismatch(tensor, "values", found, wanted);
  if (!count) return NULL;
  size_t stored = kind == PESTLE_PROTO_F32 ? 4 : 8;
  void* data = pestle_arena_alloc_array(arena, found, stored, 16);
  if (!data) return PESTLE_OOM();
  PESTLE_TRY(walk_typed(tensor, field, kind, data, found, &found));
  out->data = data;
  if (kind != PESTLE_PROTO_I64) return NULL;
  uint8_t* bytes = data;
  if (is_packed(dtype)) {
    narrow(data, found, 1, false, bytes);
    return unpack(dtype, bytes, count, arena, &out->data);
  }
  narrow(data, count, size, dtype == PESTLE_I1, bytes);
  return NULL;
}

static pestle_status_t read_stored(const pestle_onnx_tensor_t* tensor,
                                   pestle_onnx_files_t* files,
                                   pestle_arena_t* arena,
                                   pestle_elements_t* out_elements) {
  out_elements->size = pestle_type_bytes(&out_elements->type);
  if (tensor->is_external) {
    pestle_str_t bytes;
    PESTLE_TRY(read_external(tensor, files, &bytes));
    if (tensor->length.size == 0 && bytes.size > out_elements->size &&
        !is_packed(out_elements->type.dtype)) {
      bytes.size = out_elements->size;
    }
    return from_raw(tensor, files, bytes, arena, out_elements);
  }
  if (tensor->has_raw) {
    return from_raw(tensor, files, tensor->raw, arena, out_elements);
  }
  return from_typed(tensor, arena, out_elements);
}

// --- Sparse tensors ---

// A few numbers in a file must not ask for all of a machine's memory.
#define MOST_SPREAD ((size_t)256 << 20)

// Element |i| of the whole that value |k| is; -1 where the indices say none.
static int64_t place_of(const pestle_type_t* type,
                        const pestle_elements_t* indices, int64_t k) {
  const int64_t* data = indices->data;
  if (indices->type.rank == 1) {
    return data[k] < 0 || data[k] >= pestle_type_count(type) ? -1 : data[k];
  }
  int64_t place = 0;
  for (int32_t axis = 0; axis < type->rank; ++axis) {
    int64_t i = data[k * type->rank + axis];
    if (i < 0 || i >= type->dims[axis]) return -1;
    place = place * type->dims[axis] + i;
  }
  return place;
}

static pestle_status_t check_indices(const pestle_onnx_tensor_t* tensor,
                                     const pestle_type_t* indices) {
  bool flat = indices->rank == 1;
  bool fits = (flat || indices->rank == 2) &&
              indices->dims[0] == tensor->stored &&
              (flat || indices->dims[1] == tensor->rank);
  if (indices->dtype != PESTLE_I64) {
    return PESTLE_ERROR(MALFORMED,
                        "the indices of sparse tensor '%.*s' are %s; ONNX has "
                        "them as int64",
                        PESTLE_STR_ARG(tensor->name),
                        pestle_dtype_info(indices->dtype)->name);
  }
  if (fits) return NULL;
  return PESTLE_ERROR(MALFORMED,
                      "the indices of sparse tensor '%.*s' do not fit its %lld "
                      "values",
                      PESTLE_STR_ARG(tensor->name), (long long)tensor->stored);
}

static pestle_status_t spread(const pestle_onnx_tensor_t* tensor,
                              const pestle_elements_t* values,
                              const pestle_elements_t* indices,
                              pestle_arena_t* arena,
                              pestle_elements_t* out_elements) {
  const pestle_type_t* type = &out_elements->type;
  size_t each = pestle_dtype_size(type->dtype);
  out_elements->size = pestle_type_bytes(type);
  if (out_elements->size / 1024 > values->size &&
      out_elements->size > MOST_SPREAD) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "sparse tensor '%.*s' of %lld values takes %zu bytes "
                        "when it is written out",
                        PESTLE_STR_ARG(tensor->name), (long long)tensor->stored,
                        out_elements->size);
  }
  char* data = pestle_arena_alloc_zero(arena, out_elements->size + 1,
                                       PESTLE_BUFFER_ALIGNMENT);
  // Whether each place has a value, by bits: ONNX wants indices sorted, files have others.
  uint8_t* has = pestle_arena_alloc_zero(
      arena, (size_t)pestle_type_count(type) / 8 + 1, 1);
  if (!data || !has) return PESTLE_OOM();
  for (int64_t k = 0; k < tensor->stored; ++k) {
    int64_t place = place_of(type, indices, k);
    uint8_t bit = (uint8_t)(1u << (place & 7));
    if (place < 0 || has[place / 8] & bit) {
      return PESTLE_ERROR(
          MALFORMED, "value %lld of sparse tensor '%.*s' lies %s", (long long)k,
          PESTLE_STR_ARG(tensor->name),
          place < 0 ? "outside of it" : "in a place that another one has");
    }
    has[place / 8] |= bit;
    memcpy(data + (size_t)place * each,
           (const char*)values->data + (size_t)k * each, each);
  }
  out_elements->data = data;
  return NULL;
}

static pestle_status_t read_sparse(const pestle_onnx_tensor_t* tensor,
                                   pestle_onnx_files_t* files,
                                   pestle_arena_t* arena,
                                   pestle_elements_t* out_elements) {
  pestle_onnx_tensor_t list = *tensor;
  list.indices = NULL;
  list.rank = 1;
  list.dims[0] = tensor->stored;
  pestle_elements_t values, indices;
  PESTLE_TRY(pestle_onnx_tensor_elements(&list, files, arena, &values));
  PESTLE_TRY(
      pestle_onnx_tensor_elements(tensor->indices, files, arena, &indices));
  PESTLE_TRY(check_indices(tensor, &indices.type));
  return spread(tensor, &values, &indices, arena, out_elements);
}

pestle_status_t pestle_onnx_tensor_elements(const pestle_onnx_tensor_t* tensor,
                                            pestle_onnx_files_t* files,
                                            pestle_arena_t* arena,
                                            pestle_elements_t* out_elements) {
  static const uint64_t nothing;
  *out_elements = (pestle_elements_t){.data = &nothing};
  PESTLE_TRY(pestle_onnx_tensor_type(tensor, &out_elements->type));
  return tensor->indices ? read_sparse(tensor, files, arena, out_elements)
                         : read_stored(tensor, files, arena, out_elements);
}
