// SPDX-License-Identifier: Apache-2.0
// Buffers from and to other libraries: whose memory a tensor is, who ends it, and
// what it is called outside.
#include "pestle/dlpack.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/require.h"
#include "runtime/buffer.h"
#include "runtime/context.h"
#include "runtime/dlpack.h"
#include "runtime/queue.h"
#include "runtime/stream.h"

// --- Devices ---

pestle_dl_device_t pestle_dlpack_device(const pestle_device_t* device) {
  pestle_dl_device_t dl = pestle_device_dl(device);
  if (!device || pestle_device_is_cpu(device)) return dl;
  const pestle_device_api_t* api = pestle_device_api(device);
  if (api && PESTLE_HAS(api, dlpack_device)) {
    api->dlpack_device(device->backend->self, device->local_index,
                       &dl.device_type, &dl.device_id);
  }
  return dl;
}

static bool is_of_host(int32_t type) {
  return type == PESTLE_DL_CPU || type == PESTLE_DL_CUDA_HOST ||
         type == PESTLE_DL_ROCM_HOST;
}

// Whether a backend may have devices of |type|.
static bool is_possible(int32_t type) {
  return type > 0 && type <= PESTLE_DL_TRN && type != 5 && type != 6;
}

static pestle_status_t find_loaded(pestle_context_t* context,
                                   pestle_dl_device_t dl,
                                   pestle_device_t** out_device) {
  pestle_device_t* device;
  PESTLE_TRY(pestle_context_load_backends(context));
  pestle_context_enter(context);
  for (int64_t i = 0;
       (device = pestle_registry_find(&context->registry, NULL, 0, i)); ++i) {
    if (pestle_device_is_cpu(device)) continue;
    pestle_dl_device_t at = pestle_dlpack_device(device);
    if (at.device_type == dl.device_type && at.device_id == dl.device_id) {
      *out_device = device;
      return NULL;
    }
  }
  return NULL;
}

static pestle_status_t not_owned(pestle_dl_device_t dl) {
  return PESTLE_ERROR(
      NOT_FOUND,
      "the tensor is memory of %s, which no loaded backend owns; load one "
      "with pestle_context_load_all(), or have the producer copy it to a CPU",
      pestle_dl_device_text(dl).text);
}

pestle_status_t pestle_dlpack_find_device(pestle_context_t* context,
                                          pestle_dl_device_t dl,
                                          pestle_device_t** out_device) {
  PESTLE_REQUIRE(context && out_device, "a context and a place for the device");
  *out_device = NULL;
  if (!is_possible(dl.device_type)) {
    return PESTLE_ERROR(UNSUPPORTED, "the tensor is memory of %s",
                        pestle_dl_device_text(dl).text);
  }
  if (is_of_host(dl.device_type)) {
    if (dl.device_id) {
      return PESTLE_ERROR(MALFORMED,
                          "the tensor is memory of %s; the host's has number 0",
                          pestle_dl_device_text(dl).text);
    }
    return pestle_context_device(context, "cpu", out_device);
  }
  bool is_managed = dl.device_type == PESTLE_DL_CUDA_MANAGED;
  pestle_dl_device_t at = dl;
  if (is_managed) at = (pestle_dl_device_t){PESTLE_DL_CUDA, 0};
  PESTLE_TRY(find_loaded(context, at, out_device));
  if (*out_device) return NULL;
  if (is_managed) return pestle_context_device(context, "cpu", out_device);
  return not_owned(dl);
}

// Whether |device| reaches the memory at its address or by its handle.
static bool reaches(const pestle_device_t* device, const pestle_foreign_t* f) {
  pestle_dl_device_t own = pestle_dlpack_device(device);
  if (f->own) return device == f->own->device;
  if (is_of_host(f->at.device_type)) return pestle_device_is_cpu(device);
  if (f->at.device_type == PESTLE_DL_CUDA_MANAGED) {
    return pestle_device_is_cpu(device) || own.device_type == PESTLE_DL_CUDA;
  }
  return own.device_type == f->at.device_type &&
         own.device_id == f->at.device_id;
}

pestle_status_t pestle_foreign_device(pestle_context_t* context,
                                      pestle_foreign_t* foreign,
                                      pestle_device_t* wanted,
                                      pestle_device_t** out_device) {
  *out_device = NULL;
  // To this context a buffer of another one is memory like any.
  if (foreign->own && foreign->own->device->context != context) {
    foreign->own = NULL;
  }
  if (is_of_host(foreign->at.device_type) && foreign->at.device_id) {
    return pestle_dlpack_find_device(context, foreign->at, out_device);
  }
  if (wanted && reaches(wanted, foreign)) {
    *out_device = wanted;
    return NULL;
  }
  if (foreign->own) {
    *out_device = foreign->own->device;
    return NULL;
  }
  return pestle_dlpack_find_device(context, foreign->at, out_device);
}

// --- Options ---

// |*out_options| is |user| where that has all of a struct of |size| bytes, the first of
// which is its size, else |own|, a copy with the rest clear.
static pestle_status_t read_options(const void* user, size_t size,
                                    const char* name, void* own,
                                    const void** out_options) {
  size_t given = 0;
  if (user) memcpy(&given, user, sizeof(given));
  if (user && given < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "%s.struct_size is not set", name);
  }
  *out_options = given >= size ? user : own;
  if (given >= size) return NULL;
  memset(own, 0, size);
  if (user) memcpy(own, user, given);
  return NULL;
}

static pestle_status_t check_device(pestle_context_t* context,
                                    const pestle_device_t* device,
                                    int32_t copy) {
  if (copy < PESTLE_COPY_IF_NEEDED || copy > PESTLE_COPY_NEVER) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "%d is no pestle_copy_t", (int)copy);
  }
  if (!device || device->context == context) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT, "device %s is of another context",
                      device->name);
}

pestle_status_t pestle_dlpack_read_import_options(
    pestle_context_t* context, const pestle_dlpack_import_options_t* user,
    pestle_dlpack_import_options_t* own,
    const pestle_dlpack_import_options_t** out_options) {
  const void* read;
  PESTLE_TRY(read_options(user, sizeof(*own), "pestle_dlpack_import_options_t",
                          own, &read));
  const pestle_dlpack_import_options_t* options = read;
  const pestle_stream_t* stream = options->stream;
  *out_options = options;
  if (stream && stream->device->context != context) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "the stream is of another context");
  }
  return check_device(context, options->device, options->copy);
}

pestle_status_t pestle_dlpack_read_export_options(
    pestle_context_t* context, const pestle_dlpack_export_options_t* user,
    pestle_dlpack_export_options_t* out_options) {
  const void* read;
  PESTLE_TRY(read_options(user, sizeof(*out_options),
                          "pestle_dlpack_export_options_t", out_options,
                          &read));
  if (read != out_options) memcpy(out_options, read, sizeof(*out_options));
  if (out_options->order < PESTLE_DLPACK_HOST ||
      out_options->order > PESTLE_DLPACK_NONE) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "%d is no pestle_dlpack_order_t",
                        (int)out_options->order);
  }
  if (!out_options->max_major && !out_options->max_minor) {
    out_options->max_major = PESTLE_DL_MAJOR;
    out_options->max_minor = PESTLE_DL_MINOR;
  }
  return check_device(context, out_options->device, out_options->copy);
}

// --- Import ---

static pestle_status_t check_reach(const pestle_foreign_t* f,
                                   const pestle_device_t* device) {
  if (reaches(device, f)) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "the tensor is memory of %s, which device %s does not "
                      "reach",
                      pestle_dl_device_text(f->at).text, device->name);
}

static uint32_t flags_of(const pestle_foreign_t* f,
                         const pestle_device_t* device) {
  uint32_t flags = 0;
  bool read_only = f->flags & PESTLE_DL_READ_ONLY || f->overlaps;
  if (read_only) flags |= PESTLE_BUFFER_READ_ONLY;
  if (f->flags & PESTLE_DL_IS_COPIED && !read_only) {
    flags |= PESTLE_BUFFER_EXCLUSIVE;
  }
  if (f->at.device_type == PESTLE_DL_CUDA_HOST ||
      f->at.device_type == PESTLE_DL_ROCM_HOST) {
    flags |= PESTLE_BUFFER_PINNED;
  }
  if (f->at.device_type == PESTLE_DL_CUDA_MANAGED &&
      !pestle_device_is_cpu(device)) {
    flags |= PESTLE_BUFFER_MANAGED;
  }
  return flags;
}

// What a Pestle of this process exported is the buffer that it was.
static pestle_status_t wrap_own(const pestle_foreign_t* f,
                                pestle_buffer_t** out_buffer,
                                uint64_t* out_offset) {
  pestle_buffer_t* buffer = (pestle_buffer_t*)(uintptr_t)f->own;
  void* data;
  uint64_t offset = 0;
  if (f->count) {
    PESTLE_TRY(pestle_dlpack_address(buffer, 0, &data, &offset));
    *out_offset =
        ((uintptr_t)f->data + f->byte_offset) - ((uintptr_t)data + offset);
  }
  pestle_buffer_retain(buffer);
  *out_buffer = buffer;
  return NULL;
}

// A handle of the device's interface that a buffer sees, and who owns it.
typedef struct adopted_t {
  pestle_device_t* device;
  void* hold;
  void (*release)(void* self);  // of the tensor; NULL: it is its owner's yet
  void* self;
} adopted_t;

static void end_adopted(void* self) {
  adopted_t adopted = *(adopted_t*)self;
  const pestle_device_api_t* api = pestle_device_api(adopted.device);
  pestle_dealloc(adopted.device->context->core.allocator, self,
                 sizeof(adopted_t));
  if (!pestle_device_is_of_parent(adopted.device)) {
    api->release_adopted(adopted.device->backend->self, adopted.hold);
  }
  if (adopted.release) adopted.release(adopted.self);
}

static pestle_status_t wrap_handle(const pestle_foreign_t* f,
                                   pestle_device_t* device,
                                   const pestle_buffer_wrap_options_t* user,
                                   pestle_buffer_t** out_buffer) {
  const pestle_device_api_t* api = pestle_device_api(device);
  PESTLE_TRY(pestle_device_check_open(device));
  if (!PESTLE_HAS(api, adopt) || !PESTLE_HAS(api, release_adopted)) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "device %s takes no memory of others: its backend "
                        "lacks adopt()",
                        device->name);
  }
  if (f->byte_offset < f->below) {
    return PESTLE_ERROR(MALFORMED,
                        "the tensor's elements begin before its memory");
  }
  pestle_allocator_t allocator = device->context->core.allocator;
  adopted_t* adopted = pestle_alloc_zero(allocator, sizeof(*adopted));
  if (!adopted) return PESTLE_OOM();
  adopted->device = device;
  uint64_t size = f->below + f->above;
  void* data = NULL;
  pestle_status_t status = pestle_device_said(
      device,
      api->adopt(device->backend->self, device->local_index, f->data,
                 f->byte_offset - f->below, size, &data, &adopted->hold));
  if (status) {
    pestle_dealloc(allocator, adopted, sizeof(*adopted));
    return pestle_status_annotate(status, "while taking memory on %s",
                                  device->name);
  }
  pestle_buffer_wrap_options_t options = *user;
  options.release = end_adopted;
  options.release_self = adopted;
  status = pestle_buffer_wrap(device, data, (size_t)size, &options, out_buffer);
  if (status) end_adopted(adopted);
  return status;
}

// What the backend knows of the memory, where it can be asked.
static pestle_status_t check_where(const pestle_foreign_t* f,
                                   pestle_device_t* device, const void* begin) {
  if (pestle_device_is_cpu(device)) return NULL;
  PESTLE_TRY(pestle_device_check_open(device));
  const pestle_device_api_t* api = pestle_device_api(device);
  if (!api || !PESTLE_HAS(api, where)) return NULL;
  int32_t index = -1;
  uint64_t size = 0, wanted = f->below + f->above;
  PESTLE_TRY(pestle_device_said(
      device, api->where(device->backend->self, begin, &index, &size)));
  if (f->at.device_type != PESTLE_DL_CUDA_MANAGED &&
      index != device->local_index) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the tensor says that it is on %s, its memory is of "
                        "the backend's device %" PRId32,
                        device->name, index);
  }
  if (wanted <= size) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "the tensor's elements need %" PRIu64
                      " bytes on %s, its memory has %" PRIu64,
                      wanted, device->name, size);
}

pestle_status_t pestle_foreign_wrap(const pestle_foreign_t* f,
                                    pestle_device_t* device,
                                    pestle_buffer_t** out_buffer,
                                    uint64_t* out_offset) {
  *out_buffer = NULL;
  *out_offset = 0;
  PESTLE_TRY(check_reach(f, device));
  if (f->own) return wrap_own(f, out_buffer, out_offset);
  pestle_buffer_wrap_options_t options = {.struct_size = sizeof(options),
                                          .flags = flags_of(f, device)};
  if (!f->count) {
    return pestle_buffer_wrap(device, NULL, 0, &options, out_buffer);
  }
  *out_offset = f->below;
  if (pestle_dl_is_handle(f->at.device_type)) {
    return wrap_handle(f, device, &options, out_buffer);
  }
  uintptr_t first = (uintptr_t)f->data + (uintptr_t)f->byte_offset;
  PESTLE_TRY(check_where(f, device, (const void*)(first - f->below)));
  return pestle_buffer_wrap(device, (void*)(first - f->below),
                            (size_t)(f->below + f->above), &options,
                            out_buffer);
}

void pestle_foreign_own(const pestle_foreign_t* f, pestle_buffer_t* buffer) {
  if (f->own) {
    pestle_foreign_end(f);  // The buffer has a reference of its own by now.
    return;
  }
  if (buffer->release == end_adopted) {
    adopted_t* adopted = buffer->release_self;
    adopted->release = f->release;
    adopted->self = f->self;
    return;
  }
  buffer->release = f->release;
  buffer->release_self = f->self;
}

static pestle_status_t check_as_buffer(const pestle_foreign_t* f) {
  if (!f->is_packed) return NULL;
  return PESTLE_ERROR(UNSUPPORTED,
                      "the tensor has packed elements of %u bits; a buffer has "
                      "a byte for each",
                      (unsigned)pestle_dtype_info(f->dtype)->bits);
}

pestle_status_t pestle_buffer_import(pestle_context_t* context,
                                     struct DLManagedTensorVersioned* managed,
                                     const pestle_dlpack_import_options_t* user,
                                     pestle_layout_t* out_layout,
                                     pestle_buffer_t** out_buffer) {
  PESTLE_REQUIRE(context && managed && out_layout && out_buffer,
                 "a context, a tensor and places for layout and buffer");
  *out_buffer = NULL;
  pestle_dlpack_import_options_t own;
  const pestle_dlpack_import_options_t* options;
  pestle_foreign_t f;
  pestle_device_t* device;
  pestle_buffer_t* buffer;
  PESTLE_TRY(pestle_dlpack_read_import_options(context, user, &own, &options));
  PESTLE_TRY(pestle_foreign_read(managed, &f));
  PESTLE_TRY(check_as_buffer(&f));
  PESTLE_TRY(pestle_foreign_device(context, &f, options->device, &device));
  if (options->device) device = options->device;
  *out_layout = (pestle_layout_t){.dtype = f.dtype, .rank = f.rank};
  PESTLE_TRY(
      pestle_foreign_wrap(&f, device, &buffer, &out_layout->byte_offset));
  memcpy(out_layout->dims, f.dims, (size_t)f.rank * sizeof(f.dims[0]));
  memcpy(out_layout->strides, f.strides, (size_t)f.rank * sizeof(f.strides[0]));
  pestle_status_t status = pestle_dlpack_order_import(options, buffer);
  if (status) {
    pestle_buffer_release(buffer);
    return status;
  }
  pestle_foreign_own(&f, buffer);
  *out_buffer = buffer;
  return NULL;
}

// --- Export ---

// One block: the struct that is handed out, whose memory it holds, and the numbers
// of shape and strides.
typedef struct export_t {
  union {
    struct DLManagedTensorVersioned versioned;
    struct DLManagedTensor legacy;
  } as;
  pestle_allocator_t allocator;
  size_t size;
  pestle_buffer_t* buffer;
  bool has_stream;  // the consumer works on |native_stream|
  void* native_stream;
  int64_t numbers[];
} export_t;

static void end_export(export_t* e) {
  pestle_buffer_t* buffer = e->buffer;
  bool has_stream = e->has_stream;
  void* native_stream = e->native_stream;
  pestle_dealloc(e->allocator, e, e->size);
  if (has_stream) {
    pestle_dlpack_release_after(buffer, native_stream);
  } else {
    pestle_buffer_release(buffer);
  }
}

static void end_versioned(struct DLManagedTensorVersioned* self) {
  end_export(self->manager_ctx);
}

static void end_legacy(struct DLManagedTensor* self) {
  end_export(self->manager_ctx);
}

pestle_status_t pestle_dlpack_address(const pestle_buffer_t* buffer,
                                      uint64_t byte_offset, void** out_data,
                                      uint64_t* out_offset) {
  pestle_device_t* device = buffer->device;
  const pestle_device_api_t* api = pestle_device_api(device);
  int32_t type = pestle_dlpack_device(device).device_type;
  if (pestle_dl_is_handle(type) && PESTLE_HAS(api, handle_of)) {
    PESTLE_TRY(pestle_device_check_open(device));
    return pestle_device_said(
        device, api->handle_of(device->backend->self, device->local_index,
                               (const char*)buffer->block.data + byte_offset,
                               out_data, out_offset));
  }
  if (type == PESTLE_DL_VULKAN) {
    // No library says what a handle is. Ours is the backend's own, which this process
    // takes back by the deleter, and nobody else should.
    *out_data = buffer->block.data;
    *out_offset = byte_offset;
    return NULL;
  }
  if (pestle_dl_is_handle(type)) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "device %s has no handles for its memory: its backend "
                        "lacks handle_of()",
                        device->name);
  }
  // Of address and offset most libraries look at the first alone.
  *out_data = (char*)buffer->block.data + byte_offset;
  *out_offset = 0;
  return NULL;
}

// What the layout's elements may touch lies in the buffer.
static pestle_status_t check_inside(const pestle_buffer_t* buffer,
                                    const pestle_layout_t* l) {
  uint64_t element = pestle_dtype_size(l->dtype);
  uint64_t first = l->byte_offset, last = l->byte_offset;
  bool fits = l->rank >= 0 && l->rank <= PESTLE_MAX_RANK && element, empty = 0;
  for (int32_t i = 0; i < l->rank && fits; ++i) {
    int64_t dim = l->dims[i], stride = l->strides[i];
    uint64_t step = stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride, way;
    fits = dim >= 0;
    empty |= !dim;
    if (!fits || empty || dim == 1) continue;
    fits = !__builtin_mul_overflow(step, (uint64_t)dim - 1, &way) &&
           !__builtin_mul_overflow(way, element, &way);
    if (!fits) continue;
    if (stride < 0) {
      fits = way <= first;
      first -= way;
    } else {
      fits = !__builtin_add_overflow(last, way, &last);
    }
  }
  fits = fits &&
         (empty || (last <= buffer->size && buffer->size - last >= element));
  if (fits) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "the layout is none, or leads out of its buffer of %zu "
                      "bytes on device %s",
                      buffer->size, buffer->device->name);
}

static bool is_empty(const pestle_layout_t* layout) {
  for (int32_t i = 0; i < layout->rank; ++i) {
    if (!layout->dims[i]) return true;
  }
  return false;
}

static pestle_status_t fill(export_t* e, const pestle_buffer_t* buffer,
                            const pestle_layout_t* layout,
                            pestle_dl_dtype_t dtype,
                            pestle_tensor_t* out_tensor) {
  size_t rank = (size_t)layout->rank;
  memcpy(e->numbers, layout->dims, rank * sizeof(int64_t));
  memcpy(e->numbers + rank, layout->strides, rank * sizeof(int64_t));
  *out_tensor =
      (pestle_tensor_t){.device = pestle_dlpack_device(buffer->device),
                        .ndim = layout->rank,
                        .dtype = dtype,
                        .shape = rank ? e->numbers : NULL,
                        .strides = rank ? e->numbers + rank : NULL};
  if (is_empty(layout)) return NULL;
  return pestle_dlpack_address(buffer, layout->byte_offset, &out_tensor->data,
                               &out_tensor->byte_offset);
}

pestle_status_t pestle_dlpack_export(
    pestle_buffer_t* buffer, const pestle_layout_t* layout, uint64_t flags,
    pestle_dl_dtype_t dtype, const pestle_dlpack_export_options_t* options,
    bool legacy, void** out_managed) {
  *out_managed = NULL;
  pestle_context_t* context = buffer->device->context;
  if (!legacy && options->max_major < PESTLE_DL_MAJOR) {
    return PESTLE_ERROR(INCOMPATIBLE,
                        "the consumer knows DLPack up to %u.%u: it needs the "
                        "older struct",
                        (unsigned)options->max_major,
                        (unsigned)options->max_minor);
  }
  size_t size = sizeof(export_t) + 2 * (size_t)layout->rank * sizeof(int64_t);
  export_t* e = pestle_alloc(context->core.allocator, size);
  if (!e) return PESTLE_OOM();
  *e = (export_t){.allocator = context->core.allocator,
                  .size = size,
                  .buffer = buffer,
                  .has_stream = options->order == PESTLE_DLPACK_STREAM,
                  .native_stream = options->native_stream};
  pestle_tensor_t tensor;
  pestle_status_t status = fill(e, buffer, layout, dtype, &tensor);
  if (!status) status = pestle_dlpack_order_export(options, buffer);
  if (status) {
    pestle_dealloc(context->core.allocator, e, size);
    return status;
  }
  if (legacy) {
    e->as.legacy = (struct DLManagedTensor){tensor, e, end_legacy};
  } else {
    e->as.versioned = (struct DLManagedTensorVersioned){
        .version = {PESTLE_DL_MAJOR, PESTLE_DL_MINOR},
        .manager_ctx = e,
        .deleter = end_versioned,
        .flags = flags,
        .dl_tensor = tensor};
  }
  pestle_buffer_retain(buffer);
  *out_managed = e;
  return NULL;
}

pestle_status_t pestle_buffer_export(pestle_buffer_t* buffer,
                                     const pestle_layout_t* layout,
                                     uint64_t flags,
                                     const pestle_dlpack_export_options_t* user,
                                     struct DLManagedTensorVersioned** out) {
  PESTLE_REQUIRE(buffer && layout && out,
                 "a buffer, a layout and a place for the tensor");
  *out = NULL;
  pestle_dlpack_export_options_t options;
  PESTLE_TRY(pestle_dlpack_read_export_options(buffer->device->context, user,
                                               &options));
  PESTLE_TRY(check_inside(buffer, layout));
  if (options.copy == PESTLE_COPY_ALWAYS ||
      (options.device && options.device != buffer->device)) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "pestle_buffer_export does not copy; "
                        "pestle_array_export does");
  }
  if (pestle_dtype_is_sub_byte(layout->dtype)) flags |= PESTLE_DL_IS_PADDED;
  void* managed;
  PESTLE_TRY(pestle_dlpack_export(buffer, layout, flags,
                                  pestle_dtype_to_dlpack(layout->dtype),
                                  &options, false, &managed));
  *out = managed;
  return NULL;
}

// --- What is recognised as ours ---

const pestle_buffer_t* pestle_dlpack_own(
    const struct DLManagedTensorVersioned* managed) {
  if (managed->deleter != end_versioned) return NULL;
  return ((const export_t*)managed->manager_ctx)->buffer;
}

const pestle_buffer_t* pestle_dlpack_own_legacy(
    const struct DLManagedTensor* managed) {
  if (managed->deleter != end_legacy) return NULL;
  return ((const export_t*)managed->manager_ctx)->buffer;
}

bool pestle_buffer_is_alone(const pestle_buffer_t* buffer) {
  uint64_t holds = atomic_load_explicit(&buffer->holds, memory_order_acquire);
  return (uint32_t)holds == (uint32_t)(holds >> 32) + 1;
}
