// SPDX-License-Identifier: Apache-2.0
// Arrays from other libraries. What can be used where it lies becomes an array that
// sees it; else elements are copied, on the host, or by the device that they are on.
#include "pestle/dlpack.h"

#include "base/require.h"
#include "lazy/lazy.h"
#include "runtime/dlpack.h"

typedef struct import_t {
  pestle_context_t* context;
  pestle_lazy_t* lazy;
  pestle_dlpack_import_options_t own;  // what |options| may be
  const pestle_dlpack_import_options_t* options;
  pestle_foreign_t f;
  pestle_device_t* device;  // where the memory is
  pestle_buffer_t* buffer;  // of it
  uint64_t first;           // byte of the element at index 0, ..., 0
  const char* reason;       // of a copy; NULL: none is needed
} import_t;

static pestle_type_t type_of(const import_t* in) {
  pestle_type_t type;
  type.dtype = in->f.dtype;
  type.rank = in->f.rank;
  for (int32_t i = 0; i < type.rank; ++i)
    type.dims[i] = in->f.dims[i];
  return type;
}

// --- Whether it can stay where it is ---

// The host's address of the first element, or NULL.
static const void* host_data(const import_t* in) {
  const char* data = pestle_buffer_host_data(in->buffer);
  return data ? data + in->first : NULL;
}

static bool may_be_dirty(const import_t* in) {
  bool small_integer = pestle_dtype_is_sub_byte(in->f.dtype) &&
                       pestle_dtype_is(in->f.dtype, PESTLE_KIND_INT);
  return !in->options->trusted && !in->f.own && in->f.count &&
         (in->f.dtype == PESTLE_I1 || small_integer);
}

static pestle_status_t find_reason(import_t* in) {
  const pestle_foreign_t* f = &in->f;
  if (in->options->device && in->options->device != in->device) {
    in->reason = "another device is asked for";
  } else if (in->options->copy == PESTLE_COPY_ALWAYS &&
             !(f->flags & PESTLE_DL_IS_COPIED)) {
    in->reason = "a copy is asked for";
  } else if (f->is_packed) {
    in->reason = "its elements of fewer than 8 bits are packed";
  } else if (f->is_misaligned) {
    in->reason = "its elements lie across their own alignment";
  } else if (may_be_dirty(in)) {
    if (!host_data(in)) {
      in->reason = f->dtype == PESTLE_I1
                       ? "its booleans must be made 0 or 1"
                       : "its small integers must be extended to bytes";
    } else {
      PESTLE_TRY(pestle_buffer_wait(in->buffer));
      if (!pestle_foreign_is_clean(f, host_data(in))) {
        in->reason = f->dtype == PESTLE_I1
                         ? "it has booleans that are neither 0 nor 1"
                         : "it has small integers that are not extended";
      }
    }
  }
  if (!in->reason || in->options->copy != PESTLE_COPY_NEVER) return NULL;
  return PESTLE_ERROR(
      UNSUPPORTED, "the tensor cannot be used without a copy: %s", in->reason);
}

// The tensor where it is; takes the import's reference to the buffer over.
static pestle_status_t make_array(const import_t* in,
                                  pestle_array_t** out_array) {
  pestle_type_t type = type_of(in);
  return pestle_array_make_data(in->lazy, &type, in->buffer, in->first,
                                in->f.is_dense ? NULL : in->f.strides,
                                out_array);
}

// The same with a reference of its own.
static pestle_status_t make_view(const import_t* in,
                                 pestle_array_t** out_array) {
  PESTLE_TRY(make_array(in, out_array));
  pestle_buffer_retain(in->buffer);
  return NULL;
}

// --- Copies ---

// All that the elements span, in memory of the host.
static pestle_status_t read_span(const import_t* in, size_t size, void* span) {
  return pestle_buffer_read(in->buffer, (size_t)(in->first - in->f.below), span,
                            size);
}

// Copies to |target|, the bytes of an array of the host, by the host.
static pestle_status_t copy_to_host(const import_t* in, void* target) {
  if (host_data(in)) {
    PESTLE_TRY(pestle_buffer_wait(in->buffer));
    pestle_foreign_copy(&in->f, host_data(in), target);
    return NULL;
  }
  size_t size = (size_t)(in->f.below + in->f.above);
  char* span = pestle_alloc(in->lazy->allocator, size);
  if (!span) return PESTLE_OOM();
  pestle_status_t status = read_span(in, size, span);
  if (!status) pestle_foreign_copy(&in->f, span + in->f.below, target);
  pestle_dealloc(in->lazy->allocator, span, size);
  return status;
}

static pestle_status_t copy_by_host(const import_t* in, pestle_device_t* device,
                                    pestle_array_t** out_array) {
  pestle_type_t type = type_of(in);
  pestle_array_t* array;
  size_t size = pestle_type_bytes(&type);
  PESTLE_TRY(pestle_array_empty(device, &type, &array));
  void* there = pestle_buffer_host_data(array->buffer);
  void* target = there ? there : pestle_alloc(in->lazy->allocator, size);
  pestle_status_t status = target ? copy_to_host(in, target) : PESTLE_OOM();
  if (!status && !there) {
    status = pestle_buffer_write(array->buffer, 0, target, size);
  }
  if (!there) pestle_dealloc(in->lazy->allocator, target, size);
  if (status) {
    pestle_array_release(array);
    return status;
  }
  *out_array = array;
  return NULL;
}

// x != 0 of bytes, which the device computes where it is.
static pestle_status_t clean_booleans(const import_t* in,
                                      pestle_array_t** out_array) {
  import_t bytes = *in;
  bytes.f.dtype = PESTLE_U8;
  pestle_type_t type = {.dtype = PESTLE_U8};
  pestle_array_t *x = NULL, *zero = NULL;
  pestle_status_t status = make_view(&bytes, &x);
  if (!status) {
    status = pestle_array_full(in->device, &type, (uint8_t[]){0}, &zero);
  }
  if (!status) status = pestle_array_ne(x, zero, out_array);
  pestle_array_release(x);
  pestle_array_release(zero);
  return status;
}

static pestle_status_t copy_view(const import_t* in, pestle_device_t* device,
                                 pestle_array_t** out_array) {
  pestle_array_t* view;
  PESTLE_TRY(make_view(in, &view));
  pestle_status_t status = pestle_array_copy_to(view, device, out_array);
  pestle_array_release(view);
  return status;
}

// The array that owns nothing of the tensor's, or (|*out_keeps|) still reads it.
static pestle_status_t make_copy(const import_t* in, pestle_array_t** out_array,
                                 bool* out_keeps) {
  pestle_device_t* device =
      in->options->device ? in->options->device : in->device;
  *out_keeps = false;
  if (host_data(in) || in->f.is_packed || in->f.is_misaligned || !in->f.count) {
    return copy_by_host(in, device, out_array);
  }
  if (!may_be_dirty(in)) return copy_view(in, device, out_array);
  if (in->f.dtype != PESTLE_I1) return copy_by_host(in, device, out_array);
  pestle_array_t* clean;
  PESTLE_TRY(clean_booleans(in, &clean));
  if (device == in->device && in->options->copy != PESTLE_COPY_ALWAYS) {
    *out_keeps = true;
    *out_array = clean;
    return NULL;
  }
  pestle_status_t status = pestle_array_copy_to(clean, device, out_array);
  pestle_array_release(clean);
  return status;
}

// --- Import ---

static pestle_status_t import(import_t* in, pestle_array_t** out_array) {
  bool keeps = true;
  in->reason = NULL;
  PESTLE_TRY(pestle_lazy_of(in->context, &in->lazy));
  PESTLE_TRY(pestle_foreign_device(in->context, &in->f, in->options->device,
                                   &in->device));
  PESTLE_TRY(pestle_foreign_wrap(&in->f, in->device, &in->buffer, &in->first));
  pestle_status_t status = pestle_dlpack_order_import(in->options, in->buffer);
  if (!status) status = find_reason(in);
  if (!status) {
    status = in->reason ? make_copy(in, out_array, &keeps)
                        : make_array(in, out_array);
  }
  if (!status && keeps) pestle_foreign_own(&in->f, in->buffer);
  if (status || in->reason) pestle_buffer_release(in->buffer);
  if (!status && !keeps) pestle_foreign_end(&in->f);
  if (!status && in->f.lacks_strides) {
    pestle_context_log(in->context, PESTLE_LOG_INFO,
                       "a tensor of DLPack 1.2 or newer has no strides: its "
                       "producer should fill them in");
  }
  return status;
}

pestle_status_t pestle_array_import(pestle_context_t* context,
                                    struct DLManagedTensorVersioned* managed,
                                    const pestle_dlpack_import_options_t* user,
                                    pestle_array_t** out_array) {
  PESTLE_REQUIRE(context && managed && out_array,
                 "a context, a tensor and a place for the array");
  *out_array = NULL;
  import_t in;  // whose other fields import() sets
  in.context = context;
  PESTLE_TRY(
      pestle_dlpack_read_import_options(context, user, &in.own, &in.options));
  PESTLE_TRY(pestle_foreign_read(managed, &in.f));
  return import(&in, out_array);
}

pestle_status_t pestle_array_import_legacy(
    pestle_context_t* context, struct DLManagedTensor* managed,
    const pestle_dlpack_import_options_t* user, pestle_array_t** out_array) {
  PESTLE_REQUIRE(context && managed && out_array,
                 "a context, a tensor and a place for the array");
  *out_array = NULL;
  import_t in;  // whose other fields import() sets
  in.context = context;
  PESTLE_TRY(
      pestle_dlpack_read_import_options(context, user, &in.own, &in.options));
  PESTLE_TRY(pestle_foreign_read_legacy(managed, &in.f));
  return import(&in, out_array);
}
