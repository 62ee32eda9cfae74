// SPDX-License-Identifier: Apache-2.0
// Arrays for other libraries: which memory, whether it may be written there, and in
// what form elements of fewer than 8 bits are.
#include "base/require.h"
#include "lazy/lazy.h"
#include "pestle/dlpack.h"
#include "runtime/dlpack.h"

typedef struct export_t {
  pestle_dlpack_export_options_t options;
  bool legacy;
  pestle_dl_dtype_t dtype;
  uint64_t flags;
  const char* reason;  // of a copy; NULL: none is needed
} export_t;

// --- What an array says of its memory ---

static bool overlaps(const pestle_array_t* array) {
  for (int32_t i = 0; array->strides && i < array->type.rank; ++i) {
    if (!array->strides[i] && array->type.dims[i] > 1) return true;
  }
  return false;
}

// Another array, a node or another export refers to the memory, or nobody may write
// to it.
static bool is_read_only(const pestle_array_t* array) {
  uint64_t refs = atomic_load_explicit(&array->refs, memory_order_acquire);
  return pestle_buffer_flags(array->buffer) & PESTLE_BUFFER_READ_ONLY ||
         overlaps(array) || refs != PESTLE_REF_HANDLE ||
         !pestle_buffer_is_alone(array->buffer);
}

static pestle_layout_t layout_of(const pestle_array_t* array) {
  pestle_layout_t layout = {.dtype = array->type.dtype,
                            .rank = array->type.rank,
                            .byte_offset = array->byte_offset};
  memcpy(layout.dims, array->type.dims, sizeof(layout.dims));
  if (array->strides) {
    memcpy(layout.strides, array->strides,
           (size_t)layout.rank * sizeof(int64_t));
  } else {
    pestle_strides_of(&array->type, layout.strides);
  }
  return layout;
}

// --- Whether it needs a copy ---

// Whether the consumer is told that small elements take a byte each.
static bool knows_padding(const export_t* ex) {
  return !ex->legacy &&
         (ex->options.max_major > 1 || ex->options.max_minor >= 1);
}

static bool is_packed(const export_t* ex, const pestle_array_t* array) {
  return pestle_dtype_is_sub_byte(array->type.dtype) && !knows_padding(ex);
}

static pestle_status_t find_reason(export_t* ex, const pestle_array_t* array) {
  if (ex->options.device &&
      ex->options.device != pestle_buffer_device(array->buffer)) {
    ex->reason = "another device is asked for";
  } else if (ex->options.copy == PESTLE_COPY_ALWAYS) {
    ex->reason = "a copy is asked for";
  } else if (is_packed(ex, array)) {
    ex->reason =
        "the consumer takes elements of fewer than 8 bits only if packed";
  } else if (is_read_only(array)) {
    ex->flags |= PESTLE_DL_READ_ONLY;
    if (ex->legacy) {
      ex->reason =
          "its memory must not be written to, which the older struct cannot "
          "say";
    }
  }
  if (!ex->reason || ex->options.copy != PESTLE_COPY_NEVER) return NULL;
  return PESTLE_ERROR(UNSUPPORTED,
                      "the array cannot be exported without a copy: %s",
                      ex->reason);
}

// --- Copies ---

static pestle_status_t copy_packed(pestle_array_t* array,
                                   pestle_device_t* device,
                                   pestle_buffer_t** out_buffer) {
  pestle_allocator_t allocator = array->lazy->allocator;
  int64_t count = pestle_type_count(&array->type);
  size_t size = pestle_type_bytes(&array->type);
  size_t packed = pestle_packed_bytes(array->type.dtype, count);
  char* bytes = pestle_alloc(allocator, size + packed);
  if (!bytes) return PESTLE_OOM();
  pestle_status_t status = pestle_array_read(array, bytes, size);
  if (!status) status = pestle_buffer_create(device, packed, out_buffer);
  if (!status) {
    pestle_pack(array->type.dtype, count, bytes, bytes + size);
    status = pestle_buffer_write(*out_buffer, 0, bytes + size, packed);
    if (status) pestle_buffer_release(*out_buffer);
  }
  pestle_dealloc(allocator, bytes, size + packed);
  return status;
}

static pestle_status_t copy_padded(pestle_array_t* array,
                                   pestle_device_t* device,
                                   pestle_buffer_t** out_buffer) {
  pestle_array_t* copy;
  PESTLE_TRY(pestle_array_copy_to(array, device, &copy));
  *out_buffer = copy->buffer;
  pestle_buffer_retain(copy->buffer);
  pestle_array_release(copy);
  return NULL;
}

static pestle_status_t export_copy(export_t* ex, pestle_array_t* array,
                                   void** out_managed) {
  pestle_device_t* device = ex->options.device
                                ? ex->options.device
                                : pestle_buffer_device(array->buffer);
  pestle_buffer_t* buffer;
  bool packed = is_packed(ex, array);
  PESTLE_TRY(packed ? copy_packed(array, device, &buffer)
                    : copy_padded(array, device, &buffer));
  pestle_layout_t layout = layout_of(array);
  layout.byte_offset = 0;
  pestle_strides_of(&array->type, layout.strides);
  ex->flags &= ~PESTLE_DL_READ_ONLY;
  ex->flags |= PESTLE_DL_IS_COPIED;
  pestle_status_t status =
      pestle_dlpack_export(buffer, &layout, ex->flags, ex->dtype, &ex->options,
                           ex->legacy, out_managed);
  pestle_buffer_release(buffer);
  return status;
}

// --- Export ---

// Work on a stream goes on; a failure that is known is returned.
static pestle_status_t evaluate(pestle_array_t* array) {
  PESTLE_TRY(pestle_array_eval_async(&array, 1, NULL));
  return pestle_buffer_is_ready(array->buffer)
             ? pestle_buffer_wait(array->buffer)
             : NULL;
}

static pestle_status_t export(pestle_array_t* array,
                              const pestle_dlpack_export_options_t* user,
                              bool legacy, void** out_managed) {
  export_t ex = {.legacy = legacy};
  PESTLE_TRY(pestle_dlpack_read_export_options(array->lazy->context, user,
                                               &ex.options));
  PESTLE_TRY(evaluate(array));
  ex.dtype = pestle_dtype_to_dlpack(array->type.dtype);
  if (pestle_dtype_is_sub_byte(array->type.dtype) && knows_padding(&ex)) {
    ex.flags |= PESTLE_DL_IS_PADDED;
  }
  PESTLE_TRY(find_reason(&ex, array));
  if (ex.reason) return export_copy(&ex, array, out_managed);
  pestle_layout_t layout = layout_of(array);
  return pestle_dlpack_export(array->buffer, &layout, ex.flags, ex.dtype,
                              &ex.options, legacy, out_managed);
}

pestle_status_t pestle_array_export(
    pestle_array_t* array, const pestle_dlpack_export_options_t* options,
    struct DLManagedTensorVersioned** out_managed) {
  PESTLE_REQUIRE(array && out_managed, "an array and a place for the tensor");
  void* managed;
  *out_managed = NULL;
  PESTLE_TRY(export(array, options, false, &managed));
  *out_managed = managed;
  return NULL;
}

pestle_status_t pestle_array_export_legacy(
    pestle_array_t* array, const pestle_dlpack_export_options_t* options,
    struct DLManagedTensor** out_managed) {
  PESTLE_REQUIRE(array && out_managed, "an array and a place for the tensor");
  void* managed;
  *out_managed = NULL;
  PESTLE_TRY(export(array, options, true, &managed));
  *out_managed = managed;
  return NULL;
}

// --- Lending ---

// Row-major strides are made once and kept.
static pestle_status_t strides_of(pestle_array_t* array,
                                  int64_t** out_strides) {
  *out_strides = NULL;
  if (array->strides || !array->type.rank) {
    *out_strides = array->strides;
    return NULL;
  }
  *out_strides = atomic_load_explicit(&array->lent, memory_order_acquire);
  if (*out_strides) return NULL;
  size_t size = (size_t)array->type.rank * sizeof(int64_t);
  int64_t *made = pestle_alloc(array->lazy->allocator, size), *there = NULL;
  if (!made) return PESTLE_OOM();
  pestle_strides_of(&array->type, made);
  if (atomic_compare_exchange_strong(&array->lent, &there, made)) {
    *out_strides = made;
  } else {
    pestle_dealloc(array->lazy->allocator, made, size);
    *out_strides = there;
  }
  return NULL;
}

pestle_status_t pestle_array_borrow(pestle_array_t* array,
                                    pestle_tensor_t* out_tensor) {
  PESTLE_REQUIRE(array && out_tensor, "an array and a place for the tensor");
  *out_tensor = (pestle_tensor_t){.data = NULL};
  PESTLE_TRY(pestle_array_wait(array));
  pestle_tensor_t t = {
      .device = pestle_dlpack_device(pestle_buffer_device(array->buffer)),
      .ndim = array->type.rank,
      .dtype = pestle_dtype_to_dlpack(array->type.dtype),
      .shape = array->type.rank ? array->type.dims : NULL};
  PESTLE_TRY(strides_of(array, &t.strides));
  if (pestle_type_count(&array->type)) {
    PESTLE_TRY(pestle_dlpack_address(array->buffer, array->byte_offset, &t.data,
                                     &t.byte_offset));
  }
  *out_tensor = t;
  return NULL;
}

// --- New memory ---

pestle_status_t pestle_dlpack_allocate(
    pestle_context_t* context, const pestle_tensor_t* prototype,
    struct DLManagedTensorVersioned** out_managed) {
  PESTLE_REQUIRE(context && prototype && out_managed,
                 "a context, a prototype and a place for the tensor");
  *out_managed = NULL;
  // What it lies in does not matter, but must be there to be read.
  pestle_tensor_t t = *prototype;
  t.data = (void*)(uintptr_t)64;
  t.strides = NULL;
  t.byte_offset = 0;
  struct DLManagedTensorVersioned like = {
      .version = {PESTLE_DL_MAJOR, PESTLE_DL_MINOR},
      .flags = PESTLE_DL_IS_PADDED,
      .dl_tensor = t};
  pestle_foreign_t f;
  pestle_device_t* device;
  PESTLE_TRY(pestle_foreign_read(&like, &f));
  PESTLE_TRY(pestle_foreign_device(context, &f, NULL, &device));
  pestle_buffer_t* buffer;
  pestle_layout_t layout = {.dtype = f.dtype, .rank = f.rank};
  memcpy(layout.dims, f.dims, (size_t)f.rank * sizeof(f.dims[0]));
  memcpy(layout.strides, f.strides, (size_t)f.rank * sizeof(f.strides[0]));
  bool small = pestle_dtype_is_sub_byte(f.dtype);
  size_t size = (size_t)f.count * pestle_dtype_size(f.dtype);
  PESTLE_TRY(pestle_buffer_create(device, size, &buffer));
  pestle_dlpack_export_options_t options = {.order = PESTLE_DLPACK_NONE,
                                            .max_major = PESTLE_DL_MAJOR};
  void* managed;
  pestle_status_t status = pestle_dlpack_export(
      buffer, &layout, small ? PESTLE_DL_IS_PADDED : 0,
      pestle_dtype_to_dlpack(f.dtype), &options, false, &managed);
  pestle_buffer_release(buffer);
  if (!status) *out_managed = managed;
  return status;
}
