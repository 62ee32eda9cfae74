// SPDX-License-Identifier: Apache-2.0
// DLPack 1.3: tensors from and to other libraries of this process, without a copy
// wherever memory allows.
//
//   pestle_array_import(context, managed, NULL, &x);     // theirs becomes ours
//   pestle_array_export(y, NULL, &managed);              // ours becomes theirs
//
// The structs are those of dlpack.h, which this header names and does not need.
// What they hold is checked before it is used: every dtype that Pestle has is taken,
// of any strides, offset and alignment; a device is taken when a backend of its type
// is loaded. Functions whose name ends in _legacy take and make the struct of
// DLPack 0.x, which has no version and no flags.
//
// Ownership: an import that fails leaves |managed| to its caller, untouched. One
// that succeeds has taken it over, and calls its deleter exactly once, when nothing
// uses the memory any more: on the thread where that comes true, with no lock of
// Pestle's held. An export has one owner, who calls its deleter, on any thread.
//
// Threads: all functions may be called from any threads at once, on the same arrays
// too.
//
// Contents:
// - Import
// - Export
// - Devices and streams
#ifndef PESTLE_DLPACK_H_
#define PESTLE_DLPACK_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pestle/runtime.h"
#include "pestle/status.h"
#include "pestle/tensor.h"

PESTLE_EXTERN_C_BEGIN

typedef struct pestle_array_s pestle_array_t;  // array.h
struct DLManagedTensor;
struct DLManagedTensorVersioned;

// Whether elements are copied.
typedef enum pestle_copy_e {
  PESTLE_COPY_IF_NEEDED = 0,
  PESTLE_COPY_ALWAYS = 1,
  PESTLE_COPY_NEVER = 2,  // what would need one is an error that says why
} pestle_copy_t;

// --- Import ---

// Zero-initialise and set |struct_size|.
typedef struct pestle_dlpack_import_options_t {
  size_t struct_size;
  pestle_device_t*
      device;    // where the array is to be; NULL: where the tensor is
  int32_t copy;  // pestle_copy_t
  // Of the tensor's device: what |stream| was given so far makes the elements, so
  // that whatever reads them comes after it. The producer was told to have it wait
  // (pestle_stream_handle()). NULL: they are there.
  pestle_stream_t* stream;
  // The device's own interface calls |native_stream| the stream that makes the
  // elements: whatever reads them comes after what it was given so far. Only where
  // |has_native_stream|; UNSUPPORTED where the backend knows no streams of others.
  bool has_native_stream;
  void* native_stream;
  // Do not look for bytes of booleans that are neither 0 nor 1, and of integers of
  // 2 and 4 bits that are not extended. Kernels may then compute anything.
  bool trusted;
} pestle_dlpack_import_options_t;

// An array that sees |managed|'s memory, or a copy of its elements where that memory
// cannot be used: packed elements of fewer than 8 bits, elements across their own
// alignment, booleans that are neither 0 nor 1, a device that the options name and
// that cannot reach the memory. Elements of several lanes have them as one more
// axis, the last. Read-only memory, and memory in which elements overlap, is never
// written to. |options| may be NULL.
//
// INCOMPATIBLE: a major version that is not 1, of which nothing but the version was
// read. UNSUPPORTED: a flag, dtype or device type that Pestle does not know, strides
// between packed elements; with COPY_NEVER, whatever would be copied. NOT_FOUND: no
// loaded backend owns the tensor's device. MALFORMED: a rank that is negative or past
// PESTLE_MAX_RANK, negative extents, no shape, no data, more elements than memory
// has. INVALID_ARGUMENT: options of another context or device; memory that the
// backend says is not its device's.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_array_import(
    pestle_context_t* context, struct DLManagedTensorVersioned* managed,
    const pestle_dlpack_import_options_t* options, pestle_array_t** out_array);
// The same of the older struct: neither read-only nor copied, packed.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_array_import_legacy(
    pestle_context_t* context, struct DLManagedTensor* managed,
    const pestle_dlpack_import_options_t* options, pestle_array_t** out_array);

// Where the elements of an imported tensor lie in its buffer. Frozen.
typedef struct pestle_layout_t {
  pestle_dtype_t dtype;
  int32_t rank;
  uint64_t byte_offset;  // of the element at index 0, ..., 0
  int64_t dims[PESTLE_MAX_RANK];
  int64_t strides[PESTLE_MAX_RANK];  // in elements; never left out
} pestle_layout_t;

// The memory of |managed| as a buffer, without arrays: for pestle_executable_run()
// and _run_buffers(). Nothing is copied and no element is looked at: COPY_NEVER is
// what the options mean, and |trusted|. Else as pestle_array_import().
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_buffer_import(
    pestle_context_t* context, struct DLManagedTensorVersioned* managed,
    const pestle_dlpack_import_options_t* options, pestle_layout_t* out_layout,
    pestle_buffer_t** out_buffer);

// --- Export ---

// Who waits until the elements of an export are there.
typedef enum pestle_dlpack_order_e {
  PESTLE_DLPACK_HOST = 0,    // the export itself
  PESTLE_DLPACK_STREAM = 1,  // |native_stream|: the host does not wait
  PESTLE_DLPACK_NONE = 2,    // the consumer sees to it
} pestle_dlpack_order_t;

// Zero-initialise and set |struct_size|.
typedef struct pestle_dlpack_export_options_t {
  size_t struct_size;
  pestle_device_t* device;  // where the consumer wants it; NULL: where it is
  int32_t copy;             // pestle_copy_t
  int32_t order;            // pestle_dlpack_order_t
  // What the device's own interface calls the consumer's stream, of the same device
  // as the export: a CUstream (1 and 2 are CUDA's legacy and per-thread streams).
  void* native_stream;
  // The newest version that the consumer knows; 0, 0: 1.3.
  uint32_t max_major, max_minor;
} pestle_dlpack_export_options_t;

// |array|'s elements as a tensor of version 1.3, evaluated. It holds the memory, not
// the array: its deleter counts down and may be called on any thread, after the
// context's release too. Memory is copied where the options say so, for another
// device, and for integers and floats of 2, 4 and 6 bits where the consumer knows
// nothing newer than 1.0: those are packed then, and else have the flag that says
// that they take a byte each. |options| may be NULL.
//
// The tensor is read-only when its memory is (imported or wrapped so), when elements
// overlap, or when another array, an operation that is not evaluated or another
// export refers to the memory; a copy never is.
//
// INVALID_ARGUMENT: a TRACED array, a stream on a CPU or of another device;
// UNSUPPORTED: with COPY_NEVER, whatever would be copied; a backend that has no
// handle for its memory, or knows no streams of others; INCOMPATIBLE: a consumer of
// a major version below 1; else what the evaluation failed with.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_array_export(
    pestle_array_t* array, const pestle_dlpack_export_options_t* options,
    struct DLManagedTensorVersioned** out_managed);
// The same as the older struct, which cannot say that memory is read-only, nor that
// small elements take a byte each: such arrays are copied. The options' version does
// not matter.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_array_export_legacy(
    pestle_array_t* array, const pestle_dlpack_export_options_t* options,
    struct DLManagedTensor** out_managed);
// All of |buffer|, which may be written to, as a tensor that |layout| describes;
// never copied. |flags| are DLPack's, put into the tensor as they are. Elements of
// fewer than 8 bits take a byte each, which is flagged. INVALID_ARGUMENT: a layout
// that leads out of the buffer; else as above.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_buffer_export(
    pestle_buffer_t* buffer, const pestle_layout_t* layout, uint64_t flags,
    const pestle_dlpack_export_options_t* options,
    struct DLManagedTensorVersioned** out_managed);

// Evaluates |array|, waits, and lends its elements: shape and strides (never NULL
// but for rank 0) are |array|'s, and so is the memory, which must not be written.
// Valid as long as the caller's reference. Costs no memory beyond, once an array,
// that of the strides. Elements of fewer than 8 bits take a byte each.
// INVALID_ARGUMENT: a TRACED array; UNSUPPORTED: a backend that has no handle for
// its memory.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_array_borrow(pestle_array_t* array, pestle_tensor_t* out_tensor);

// New memory for a tensor of |prototype|'s dtype (one lane), shape and device, whose
// contents are undefined; its data and strides are not looked at. Errors are those
// of imports and pestle_buffer_create().
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_dlpack_allocate(
    pestle_context_t* context, const pestle_tensor_t* prototype,
    struct DLManagedTensorVersioned** out_managed);

// --- Devices and streams ---

// What DLPack calls |device|: as pestle_device_dl(), but for a backend that claims
// another type than its own (pestle_device_api_t.dlpack_device).
PESTLE_API pestle_dl_device_t
pestle_dlpack_device(const pestle_device_t* device);
// The device that owns memory of |dl|: of pinned memory of the host a CPU's, of
// managed memory CUDA's where it is loaded. Loads backends. Borrowed. NOT_FOUND: no
// loaded backend has it; UNSUPPORTED: a device type that none may have.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_dlpack_find_device(pestle_context_t* context, pestle_dl_device_t dl,
                          pestle_device_t** out_device);
// What the device's own interface calls |stream|, for a producer to be told:
// borrowed, lives as long as |stream|. NULL on a CPU. UNSUPPORTED: a backend that
// knows no streams of others.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_stream_handle(pestle_stream_t* stream, void** out_handle);

PESTLE_EXTERN_C_END

#endif  // PESTLE_DLPACK_H_
