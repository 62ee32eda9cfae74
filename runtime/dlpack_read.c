// SPDX-License-Identifier: Apache-2.0
// What another library says about its tensor, checked before anything is built on
// it: version, flags, rank, dtype, shape, strides, data, in this order.
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fault.h"
#include "runtime/dlpack.h"

// --- Texts ---

static const char* type_name(int32_t type) {
  switch (type) {
    case PESTLE_DL_CPU:
      return "CPU";
    case PESTLE_DL_CUDA:
      return "CUDA";
    case PESTLE_DL_CUDA_HOST:
      return "CUDAHost";
    case PESTLE_DL_OPENCL:
      return "OpenCL";
    case PESTLE_DL_VULKAN:
      return "Vulkan";
    case PESTLE_DL_METAL:
      return "Metal";
    case PESTLE_DL_VPI:
      return "VPI";
    case PESTLE_DL_ROCM:
      return "ROCm";
    case PESTLE_DL_ROCM_HOST:
      return "ROCmHost";
    case PESTLE_DL_EXT_DEV:
      return "ExtDev";
    case PESTLE_DL_CUDA_MANAGED:
      return "CUDAManaged";
    case PESTLE_DL_ONE_API:
      return "OneAPI";
    case PESTLE_DL_WEB_GPU:
      return "WebGPU";
    case PESTLE_DL_HEXAGON:
      return "Hexagon";
    case PESTLE_DL_MAIA:
      return "MAIA";
    case PESTLE_DL_TRN:
      return "Trainium";
    default:
      return NULL;
  }
}

pestle_dl_text_t pestle_dl_device_text(pestle_dl_device_t at) {
  pestle_dl_text_t out;
  const char* name = type_name(at.device_type);
  if (name) {
    (void)snprintf(out.text, sizeof(out.text), "%s device %" PRId32, name,
                   at.device_id);
  } else {
    (void)snprintf(out.text, sizeof(out.text),
                   "device %" PRId32 " of the unknown type %" PRId32,
                   at.device_id, at.device_type);
  }
  return out;
}

// --- The parts of a tensor ---

static pestle_status_t read_dtype(pestle_dl_dtype_t given,
                                  pestle_foreign_t* f) {
  pestle_dl_dtype_t one = {given.code, given.bits, 1};
  f->dtype = pestle_dtype_from_dlpack(one);
  if (f->dtype != PESTLE_NONE && given.lanes) return NULL;
  return PESTLE_ERROR(UNSUPPORTED,
                      "the tensor's dtype is (code %u, %u bits, %u lanes), "
                      "which Pestle has not",
                      (unsigned)given.code, (unsigned)given.bits,
                      (unsigned)given.lanes);
}

static pestle_status_t read_shape(const pestle_tensor_t* t,
                                  pestle_foreign_t* f) {
  int32_t lanes = t->dtype.lanes > 1;
  if (t->ndim < 0 || t->ndim > PESTLE_MAX_RANK - lanes) {
    return PESTLE_ERROR(
        MALFORMED, "the tensor has %" PRId32 " axes; 0 to %d are possible%s",
        t->ndim, PESTLE_MAX_RANK - lanes,
        lanes ? " beside that of its lanes" : "");
  }
  if (t->ndim && !t->shape) {
    return PESTLE_ERROR(
        MALFORMED, "the tensor has %" PRId32 " axes, but no shape: it is NULL",
        t->ndim);
  }
  for (int32_t i = 0; i < t->ndim; ++i) {
    f->dims[i] = t->shape[i];
    if (f->dims[i] >= 0) continue;
    return PESTLE_ERROR(MALFORMED,
                        "the tensor's extent of axis %" PRId32 " is %" PRId64,
                        i, f->dims[i]);
  }
  f->rank = t->ndim;
  if (lanes) f->dims[f->rank++] = t->dtype.lanes;
  int64_t bytes;
  if (pestle_checked_count(f->dims, (size_t)f->rank, &f->count) &&
      pestle_checked_mul_i64(f->count, (int64_t)pestle_dtype_size(f->dtype),
                             &bytes)) {
    return NULL;
  }
  return PESTLE_ERROR(MALFORMED,
                      "the tensor's shape has more elements than memory");
}

static pestle_status_t read_strides(const pestle_tensor_t* t,
                                    pestle_foreign_t* f) {
  if (!t->strides || !f->count) {
    pestle_dense_strides(f->dims, (size_t)f->rank, 1, f->strides);
    return NULL;
  }
  int64_t lanes = t->dtype.lanes;
  for (int32_t i = 0; i < t->ndim; ++i) {
    f->strides[i] = 0;
    if (f->dims[i] == 1) continue;  // It may be anything.
    if (!pestle_checked_mul_i64(t->strides[i], lanes, &f->strides[i])) {
      return PESTLE_ERROR(MALFORMED,
                          "the tensor's stride of axis %" PRId32 " is %" PRId64
                          ", which leads out of memory",
                          i, t->strides[i]);
    }
  }
  if (lanes > 1) f->strides[f->rank - 1] = 1;
  return NULL;
}

static bool is_dense(const pestle_foreign_t* f) {
  int64_t expected = 1;
  for (int32_t i = f->rank; i-- > 0;) {
    if (f->dims[i] == 1) continue;
    if (f->strides[i] != expected) return false;
    expected *= f->dims[i];
  }
  return true;
}

static uint64_t step_of(int64_t stride) {
  return stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
}

// Sorted by stride, each axis must step over all that the finer ones reach.
static bool overlaps(const pestle_foreign_t* f) {
  int32_t order[PESTLE_MAX_RANK], count = 0;
  for (int32_t i = 0; i < f->rank; ++i) {
    if (f->dims[i] == 1) continue;
    int32_t at = count++;
    for (; at > 0; --at) {
      if (step_of(f->strides[order[at - 1]]) <= step_of(f->strides[i])) break;
      order[at] = order[at - 1];
    }
    order[at] = i;
  }
  uint64_t reach = 0;
  for (int32_t k = 0; k < count; ++k) {
    uint64_t step = step_of(f->strides[order[k]]);
    if (step <= reach) return true;
    reach += step * (uint64_t)(f->dims[order[k]] - 1);
  }
  return false;
}

// The bytes that elements reach below and above the first one.
static pestle_status_t read_reach(pestle_foreign_t* f) {
  uint64_t element = pestle_dtype_size(f->dtype);
  f->above = element;
  for (int32_t i = 0; i < f->rank; ++i) {
    if (f->dims[i] == 1) continue;
    uint64_t way;
    uint64_t* end = f->strides[i] < 0 ? &f->below : &f->above;
    if (!__builtin_mul_overflow(step_of(f->strides[i]),
                                (uint64_t)f->dims[i] - 1, &way) &&
        !__builtin_mul_overflow(way, element, &way) &&
        !__builtin_add_overflow(*end, way, end) && *end <= SIZE_MAX / 4) {
      continue;
    }
    return PESTLE_ERROR(MALFORMED,
                        "the tensor's stride of axis %" PRId32 " is %" PRId64
                        ", which leads out of memory",
                        i, f->strides[i]);
  }
  return NULL;
}

static pestle_status_t check_packed(pestle_foreign_t* f) {
  if (!f->is_dense) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "the tensor has packed elements of %u bits with gaps "
                        "or in another order; DLPack does not say where those "
                        "lie: make it contiguous first",
                        (unsigned)pestle_dtype_info(f->dtype)->bits);
  }
  f->above = ((uint64_t)f->count * pestle_dtype_info(f->dtype)->bits + 7) / 8;
  return NULL;
}

static pestle_status_t read_data(const pestle_tensor_t* t,
                                 pestle_foreign_t* f) {
  f->data = t->data;
  f->byte_offset = t->byte_offset;
  if (!t->data) {
    return PESTLE_ERROR(MALFORMED,
                        "the tensor has %" PRId64
                        " elements, but no data: it is NULL",
                        f->count);
  }
  // On devices whose data is a handle the sum is nothing, and fits all the same.
  uint64_t first;
  if (__builtin_add_overflow((uint64_t)(uintptr_t)t->data, t->byte_offset,
                             &first) ||
      first < f->below || f->above > UINTPTR_MAX - first) {
    return PESTLE_ERROR(MALFORMED,
                        "the tensor's elements lead out of the address space: "
                        "byte offset %" PRIu64,
                        t->byte_offset);
  }
  if (pestle_dl_is_handle(t->device.device_type)) first = t->byte_offset;
  // Parts of complex numbers are what kernels load.
  uint64_t align = pestle_dtype_size(f->dtype);
  if (pestle_dtype_is(f->dtype, PESTLE_KIND_COMPLEX)) align /= 2;
  f->is_misaligned = first % align != 0;
  return NULL;
}

static pestle_status_t read_tensor(const pestle_tensor_t* t, uint64_t flags,
                                   pestle_foreign_t* f) {
  f->at = t->device;
  f->flags = flags;
  PESTLE_TRY(read_dtype(t->dtype, f));
  PESTLE_TRY(read_shape(t, f));
  PESTLE_TRY(read_strides(t, f));
  f->is_packed =
      pestle_dtype_is_sub_byte(f->dtype) && !(flags & PESTLE_DL_IS_PADDED);
  if (!f->count) {
    f->is_dense = true;
    f->is_packed = false;
    return NULL;
  }
  PESTLE_TRY(read_reach(f));
  f->is_dense = is_dense(f);
  f->overlaps = !f->is_dense && overlaps(f);
  if (f->is_packed) PESTLE_TRY(check_packed(f));
  return read_data(t, f);
}

// --- The structs ---

static void end_versioned(void* self) {
  struct DLManagedTensorVersioned* managed = self;
  if (managed->deleter) managed->deleter(managed);
  if (PESTLE_FAULT(trust_dlpack_twice) && managed->deleter) {
    managed->deleter(managed);
  }
}

static void end_legacy(void* self) {
  struct DLManagedTensor* managed = self;
  if (managed->deleter) managed->deleter(managed);
}

void pestle_foreign_end(const pestle_foreign_t* foreign) {
  foreign->release(foreign->self);
}

pestle_status_t pestle_foreign_read(struct DLManagedTensorVersioned* managed,
                                    pestle_foreign_t* out_foreign) {
  // Of another major version nothing else is known to be where it is looked for.
  if (managed->version.major != PESTLE_DL_MAJOR) {
    return PESTLE_ERROR(INCOMPATIBLE,
                        "the tensor is of DLPack %" PRIu32 ".%" PRIu32
                        "; versions 1.x are understood",
                        managed->version.major, managed->version.minor);
  }
  uint64_t unknown = managed->flags & ~PESTLE_DL_FLAGS;
  if (unknown) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "the tensor of DLPack %" PRIu32 ".%" PRIu32
                        " has flags 0x%" PRIx64 ", which Pestle does not know",
                        managed->version.major, managed->version.minor,
                        unknown);
  }
  memset(out_foreign, 0, offsetof(pestle_foreign_t, dims));
  out_foreign->own = pestle_dlpack_own(managed);
  out_foreign->release = end_versioned;
  out_foreign->self = managed;
  out_foreign->lacks_strides = managed->version.minor >= 2 &&
                               !managed->dl_tensor.strides &&
                               managed->dl_tensor.ndim;
  return read_tensor(&managed->dl_tensor, managed->flags, out_foreign);
}

pestle_status_t pestle_foreign_read_legacy(struct DLManagedTensor* managed,
                                           pestle_foreign_t* out_foreign) {
  memset(out_foreign, 0, offsetof(pestle_foreign_t, dims));
  out_foreign->own = pestle_dlpack_own_legacy(managed);
  out_foreign->release = end_legacy;
  out_foreign->self = managed;
  return read_tensor(&managed->dl_tensor, 0, out_foreign);
}
