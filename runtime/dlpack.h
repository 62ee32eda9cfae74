// SPDX-License-Identifier: Apache-2.0
// Tensors of other libraries (DLPack): read and checked once, then buffers of memory
// that is theirs; and the other way. lazy/ sees this header too, for arrays.
//
// Nothing of a tensor is owned until nothing can fail any more: a buffer is made
// without the deleter, which pestle_foreign_own() gives it at the very end
// (docs/adr/028-tensors-of-others.md).
#ifndef PESTLE_RUNTIME_DLPACK_H_
#define PESTLE_RUNTIME_DLPACK_H_

#include "base/dlpack_abi.h"

// A tensor of somebody else's that was checked. Lanes are its last axis.
typedef struct pestle_foreign_t {
  pestle_dl_device_t at;
  pestle_dtype_t dtype;
  int32_t rank;
  uint64_t flags;  // PESTLE_DL_*
  int64_t count;   // of elements
  bool is_packed;  // elements of fewer than 8 bits, side by side
  bool is_misaligned;
  bool is_dense;               // row-major without gaps
  bool overlaps;               // two indices may name one element
  bool lacks_strides;          // they were left out, which 1.2 forbids
  void* data;                  // address or handle; NULL: there are no elements
  uint64_t byte_offset;        // of the first element
  uint64_t below, above;       // bytes that elements reach from there
  const pestle_buffer_t* own;  // it is an export of this buffer; or NULL
  void (*release)(void* self);
  void* self;
  // -- as many as |rank| says --
  int64_t dims[PESTLE_MAX_RANK];
  int64_t strides[PESTLE_MAX_RANK];  // in elements
} pestle_foreign_t;

// --- dlpack_read.c ---

// Errors are those of pestle_array_import(). Nothing is owned.
PESTLE_NODISCARD pestle_status_t pestle_foreign_read(
    struct DLManagedTensorVersioned* managed, pestle_foreign_t* out_foreign);
PESTLE_NODISCARD pestle_status_t pestle_foreign_read_legacy(
    struct DLManagedTensor* managed, pestle_foreign_t* out_foreign);
// Ends it: calls the deleter, if there is one.
void pestle_foreign_end(const pestle_foreign_t* foreign);
// "CUDA device 1".
typedef struct pestle_dl_text_t {
  char text[48];
} pestle_dl_text_t;
pestle_dl_text_t pestle_dl_device_text(pestle_dl_device_t at);
// Whether data is no address, but what the device's interface calls a buffer.
static inline bool pestle_dl_is_handle(int32_t type) {
  return type == PESTLE_DL_OPENCL || type == PESTLE_DL_VULKAN ||
         type == PESTLE_DL_METAL;
}

// --- dlpack.c ---

// |*out_options| has all fields, whatever the size of |user| (may be NULL): it is |user|
// or |own|.
PESTLE_NODISCARD pestle_status_t pestle_dlpack_read_import_options(
    pestle_context_t* context, const pestle_dlpack_import_options_t* user,
    pestle_dlpack_import_options_t* own,
    const pestle_dlpack_import_options_t** out_options);
// The device whose memory it is: |wanted| (may be NULL) where that reaches it.
PESTLE_NODISCARD pestle_status_t
pestle_foreign_device(pestle_context_t* context, pestle_foreign_t* foreign,
                      pestle_device_t* wanted, pestle_device_t** out_device);
// Its memory as a buffer of |device|; |*out_offset| is where its first element lies
// there. The buffer owns nothing yet.
PESTLE_NODISCARD pestle_status_t
pestle_foreign_wrap(const pestle_foreign_t* foreign, pestle_device_t* device,
                    pestle_buffer_t** out_buffer, uint64_t* out_offset);
// From now on the end of |buffer| is the end of |foreign|.
void pestle_foreign_own(const pestle_foreign_t* foreign,
                        pestle_buffer_t* buffer);

// The buffer that |managed| is an export of, by this library; or NULL.
const pestle_buffer_t* pestle_dlpack_own(
    const struct DLManagedTensorVersioned* managed);
const pestle_buffer_t* pestle_dlpack_own_legacy(
    const struct DLManagedTensor* managed);

// Whether nobody but the caller, who has one reference, and runs refers to |buffer|.
bool pestle_buffer_is_alone(const pestle_buffer_t* buffer);
// |buffer| as a tensor for somebody else, who gets a reference to it. Strides may
// not be NULL but for rank 0. |legacy|: as the older struct, which |*out_managed| is
// then. Waits or orders as |options| say.
PESTLE_NODISCARD pestle_status_t pestle_dlpack_export(
    pestle_buffer_t* buffer, const pestle_layout_t* layout, uint64_t flags,
    pestle_dl_dtype_t dtype, const pestle_dlpack_export_options_t* options,
    bool legacy, void** out_managed);
PESTLE_NODISCARD pestle_status_t pestle_dlpack_read_export_options(
    pestle_context_t* context, const pestle_dlpack_export_options_t* user,
    pestle_dlpack_export_options_t* out_options);
// What DLPack calls the byte at |data| in |buffer|.
PESTLE_NODISCARD pestle_status_t
pestle_dlpack_address(const pestle_buffer_t* buffer, uint64_t byte_offset,
                      void** out_data, uint64_t* out_offset);

// --- dlpack_order.c: streams of others ---

// Whatever reads |buffer| comes after what the options' streams were given so far.
PESTLE_NODISCARD pestle_status_t pestle_dlpack_order_import(
    const pestle_dlpack_import_options_t* options, pestle_buffer_t* buffer);
// The contents of |buffer| are there for whom |options| say.
PESTLE_NODISCARD pestle_status_t pestle_dlpack_order_export(
    const pestle_dlpack_export_options_t* options, pestle_buffer_t* buffer);
// Drops a reference of |buffer| when what its consumer's stream was given so far is
// done; nobody waits.
void pestle_dlpack_release_after(pestle_buffer_t* buffer, void* native_stream);
// What was queued for streams of others is done; before the notifier ends.
void pestle_exchange_deinit(pestle_device_t* device);

// --- dlpack_memory.c: of the host ---

// Whether the bytes at |first| are what kernels take them for: booleans 0 or 1,
// integers of 2 and 4 bits extended.
bool pestle_foreign_is_clean(const pestle_foreign_t* foreign,
                             const void* first);
// Copies the elements at |first|, row-major and each in the bytes that types.h says,
// to |target|; they are made what kernels take them for.
void pestle_foreign_copy(const pestle_foreign_t* foreign, const void* first,
                         void* target);
// Bytes of |count| packed elements of |dtype|, which has fewer than 8 bits.
size_t pestle_packed_bytes(pestle_dtype_t dtype, int64_t count);
// Packs |count| elements, a byte each.
void pestle_pack(pestle_dtype_t dtype, int64_t count, const void* source,
                 void* target);

#endif  // PESTLE_RUNTIME_DLPACK_H_
