// SPDX-License-Identifier: Apache-2.0
// A producer of DLPack tensors that may say anything: it makes any struct, counts how
// often it is let go of, and spoils the memory then.
#ifndef PESTLE_TESTS_DLPACK_ZOO_H_
#define PESTLE_TESTS_DLPACK_ZOO_H_

#include <stdatomic.h>
#include <stdlib.h>

#include "base/dlpack_abi.h"
#include "pestle/dlpack.h"
#include "test.h"

// What a tensor is to be; zero is a tensor of version 1.3 without elements' memory.
typedef struct zoo_spec_t {
  pestle_dl_dtype_t dtype;
  int32_t ndim;
  int64_t shape[20];
  const int64_t* strides;  // NULL: left out
  const void* data;        // copied, |bytes| of it, unless there are none
  size_t bytes;
  size_t shift;     // the data's address is so many bytes past an aligned one
  uint64_t offset;  // byte_offset
  uint64_t flags;
  uint32_t major, minor;  // 0, 0: 1.3
  pestle_dl_device_t at;  // 0: the CPU
  bool no_shape, no_deleter;
} zoo_spec_t;

typedef struct zoo_t {
  struct DLManagedTensorVersioned versioned;
  struct DLManagedTensor legacy;
  int64_t shape[20], strides[20];
  char* memory;  // what data points into
  size_t size;
  atomic_int ended;
  void (*on_end)(void* user);
  void* user;
} zoo_t;

static inline void zoo_end(zoo_t* z) {
  if (z->memory) memset(z->memory, 0xdd, z->size);
  if (z->on_end) z->on_end(z->user);
  atomic_fetch_add(&z->ended, 1);
}
static inline void zoo_end_versioned(struct DLManagedTensorVersioned* self) {
  zoo_end(self->manager_ctx);
}
static inline void zoo_end_legacy(struct DLManagedTensor* self) {
  zoo_end(self->manager_ctx);
}

static inline void zoo_make(const zoo_spec_t* spec, zoo_t* z) {
  memset(z, 0, sizeof(*z));
  memcpy(z->shape, spec->shape, sizeof(z->shape));
  z->size = spec->bytes + spec->shift + 64;
  if (spec->data) {
    z->memory = aligned_alloc(64, (z->size + 63) / 64 * 64);
    assert_non_null(z->memory);
    memset(z->memory, 0x5a, z->size);
    memcpy(z->memory + spec->shift, spec->data, spec->bytes);
  }
  if (spec->strides) {
    memcpy(z->strides, spec->strides,
           (size_t)(spec->ndim > 0 ? spec->ndim : 0) * sizeof(int64_t));
  }
  pestle_dl_device_t cpu = {PESTLE_DL_CPU, 0};
  pestle_tensor_t t = {.data = spec->data ? z->memory + spec->shift : NULL,
                       .device = spec->at.device_type ? spec->at : cpu,
                       .ndim = spec->ndim,
                       .dtype = spec->dtype,
                       .shape = spec->no_shape ? NULL : z->shape,
                       .strides = spec->strides ? z->strides : NULL,
                       .byte_offset = spec->offset};
  bool is_set = spec->major || spec->minor;
  z->versioned = (struct DLManagedTensorVersioned){
      .version = {is_set ? spec->major : 1, is_set ? spec->minor : 3},
      .manager_ctx = z,
      .deleter = spec->no_deleter ? NULL : zoo_end_versioned,
      .flags = spec->flags,
      .dl_tensor = t};
  z->legacy =
      (struct DLManagedTensor){t, z, spec->no_deleter ? NULL : zoo_end_legacy};
}

static inline void zoo_free(zoo_t* z) {
  free(z->memory);
}

static inline int zoo_ended(const zoo_t* z) {
  return atomic_load(&z->ended);
}

#endif  // PESTLE_TESTS_DLPACK_ZOO_H_
