// SPDX-License-Identifier: Apache-2.0
// DLPack 1.3 as memory: the structs, flags and numbers that libraries exchange
// tensors by. Facts of its specification in words of our own; a test compares sizes,
// offsets and values with the header that the wheel apache-tvm-ffi has.
//
// DLTensor is pestle_tensor_t, DLDevice and DLDataType are the structs that it
// consists of. The two managed structs have tags, which are kept: the public header
// names them without knowing what they are.
#ifndef PESTLE_BASE_DLPACK_ABI_H_
#define PESTLE_BASE_DLPACK_ABI_H_

#include <stdint.h>

#include "pestle/dlpack.h"
#include "pestle/tensor.h"

#define PESTLE_DL_MAJOR 1u
#define PESTLE_DL_MINOR 3u

// Where memory lies: DLDeviceType.
typedef enum pestle_dl_device_type_t {
  PESTLE_DL_CPU = 1,
  PESTLE_DL_CUDA = 2,
  PESTLE_DL_CUDA_HOST = 3,  // the host's, pinned
  PESTLE_DL_OPENCL = 4,
  PESTLE_DL_VULKAN = 7,
  PESTLE_DL_METAL = 8,
  PESTLE_DL_VPI = 9,
  PESTLE_DL_ROCM = 10,
  PESTLE_DL_ROCM_HOST = 11,
  PESTLE_DL_EXT_DEV = 12,
  PESTLE_DL_CUDA_MANAGED = 13,
  PESTLE_DL_ONE_API = 14,
  PESTLE_DL_WEB_GPU = 15,
  PESTLE_DL_HEXAGON = 16,
  PESTLE_DL_MAIA = 17,
  PESTLE_DL_TRN = 18,
} pestle_dl_device_type_t;

// What bits mean: DLDataTypeCode. Those of Pestle's dtypes are in types.h.
typedef enum pestle_dl_code_t {
  PESTLE_DL_INT = 0,
  PESTLE_DL_UINT = 1,
  PESTLE_DL_FLOAT = 2,
  PESTLE_DL_OPAQUE_HANDLE = 3,
  PESTLE_DL_BFLOAT = 4,
  PESTLE_DL_COMPLEX = 5,
  PESTLE_DL_BOOL = 6,
  PESTLE_DL_FLOAT8_E3M4 = 7,
  PESTLE_DL_FLOAT8_E4M3 = 8,
  PESTLE_DL_FLOAT8_E4M3B11FNUZ = 9,
  PESTLE_DL_FLOAT8_E4M3FN = 10,
  PESTLE_DL_FLOAT8_E4M3FNUZ = 11,
  PESTLE_DL_FLOAT8_E5M2 = 12,
  PESTLE_DL_FLOAT8_E5M2FNUZ = 13,
  PESTLE_DL_FLOAT8_E8M0FNU = 14,
  PESTLE_DL_FLOAT6_E2M3FN = 15,
  PESTLE_DL_FLOAT6_E3M2FN = 16,
  PESTLE_DL_FLOAT4_E2M1FN = 17,
} pestle_dl_code_t;

// Bits of DLManagedTensorVersioned.flags.
#define PESTLE_DL_READ_ONLY UINT64_C(1)
// The memory is the consumer's alone until it calls the deleter.
#define PESTLE_DL_IS_COPIED UINT64_C(2)
// Elements of fewer than 8 bits take a byte each. Without it they are packed: bits
// of element i begin at bit i * bits of the tensor, the lowest first.
#define PESTLE_DL_IS_PADDED UINT64_C(4)
#define PESTLE_DL_FLAGS \
  (PESTLE_DL_READ_ONLY | PESTLE_DL_IS_COPIED | PESTLE_DL_IS_PADDED)

typedef struct pestle_dl_version_t {
  uint32_t major, minor;
} pestle_dl_version_t;

// A tensor with an owner, as it was up to version 0.8. The deleter may be NULL; it
// frees |self| too.
struct DLManagedTensor {
  pestle_tensor_t dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor* self);
};

// The same from version 1.0 on. What stands before |flags| is there in every
// version, so that what is not understood can be let go of.
struct DLManagedTensorVersioned {
  pestle_dl_version_t version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;
  pestle_tensor_t dl_tensor;
};

// What a library offers without Python's calls: the capsule "dlpack_exchange_api"
// in the attribute __dlpack_c_exchange_api__ of its type. Objects are PyObject*.
// Functions return 0, or -1 with a Python exception (the allocator: what |set_error|
// was told). None of them orders streams.
typedef struct pestle_dl_exchange_header_t {
  pestle_dl_version_t version;
  struct pestle_dl_exchange_header_t* previous;  // of an older major version
} pestle_dl_exchange_header_t;

typedef struct pestle_dl_exchange_t {
  pestle_dl_exchange_header_t header;
  // New memory for a tensor of |prototype|'s dtype, shape and device.
  int (*allocate)(pestle_tensor_t* prototype,
                  struct DLManagedTensorVersioned** out, void* error_self,
                  void (*set_error)(void* self, const char* kind,
                                    const char* message));
  int (*from_object)(void* object, struct DLManagedTensorVersioned** out);
  // Takes |tensor| over when it succeeds.
  int (*to_object)(struct DLManagedTensorVersioned* tensor, void** out_object);
  // Lends memory, shape and strides for the length of a call. May be NULL.
  int (*borrow)(void* object, pestle_tensor_t* out);
  // The stream that the library works on now; NULL on CPUs.
  int (*current_stream)(int32_t device_type, int32_t device_id,
                        void** out_stream);
} pestle_dl_exchange_t;

#define PESTLE_DL_CAPSULE "dltensor"
#define PESTLE_DL_CAPSULE_VERSIONED "dltensor_versioned"
#define PESTLE_DL_CAPSULE_USED "used_dltensor"
#define PESTLE_DL_CAPSULE_VERSIONED_USED "used_dltensor_versioned"
#define PESTLE_DL_CAPSULE_EXCHANGE "dlpack_exchange_api"

#endif  // PESTLE_BASE_DLPACK_ABI_H_
