// SPDX-License-Identifier: Apache-2.0
// Outputs that a run allocates, and what is left to do for outputs after one:
// copy back what was not written in place, and cut bounded ones to their real
// extents.
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "runtime/executable.h"

// --- Allocated outputs ---

#define OUTPUT_MAGIC UINT64_C(0x74757074754f7350)  // "PsOutput"

// Lies in the 64 bytes before the data; shape and strides lie behind it.
typedef struct output_header_t {
  uint64_t magic;
  pestle_block_t* block;
} output_header_t;

pestle_status_t pestle_output_create(pestle_executable_t* e,
                                     const pestle_exec_io_t* io,
                                     pestle_tensor_t* out_tensor) {
  size_t rank = (size_t)io->info.rank;
  size_t data_size = pestle_align_up(io->size, 64);
  size_t size = 64 + data_size + 2 * rank * sizeof(int64_t);
  pestle_device_t* device = e->devices[0];
  pestle_block_t* block;
  PESTLE_TRY(pestle_device_allocate(device, size, &block));
  char* data = (char*)block->data + 64;
  output_header_t header = {OUTPUT_MAGIC, block};
  memcpy(data - 64, &header, sizeof(header));
  int64_t* shape = (int64_t*)(void*)(data + data_size);
  if (rank) memcpy(shape, io->info.dims, rank * sizeof(*shape));
  pestle_view_dense_strides(io->info.rank, shape, shape + rank);
  *out_tensor = (pestle_tensor_t){
      .data = data,
      .device = device->dl,
      .ndim = io->info.rank,
      .dtype = io->dl_dtype,
      .shape = shape,
      .strides = shape + rank,
  };
  return NULL;
}

void pestle_tensor_release(pestle_executable_t* executable,
                           pestle_tensor_t* tensor) {
  if (!executable || !tensor || !tensor->data) return;
  output_header_t header;
  char* at = (char*)tensor->data - 64;
  memcpy(&header, at, sizeof(header));
  if (header.magic != OUTPUT_MAGIC) return;
  memset(at, 0, sizeof(header));
  pestle_device_free(executable->devices[0], header.block);
  tensor->data = NULL;
  tensor->shape = NULL;
  tensor->strides = NULL;
}

// --- After a run ---

static pestle_status_t read_extents(const pestle_exec_io_t* io,
                                    const pestle_frame_t* frame,
                                    int64_t* out_dims) {
  const char* from = (const char*)frame->arena->data + io->shape_offset;
  if (!io->info.rank) return NULL;
  memcpy(out_dims, from, (size_t)io->info.rank * sizeof(*out_dims));
  for (int32_t i = 0; i < io->info.rank; ++i) {
    if (out_dims[i] >= 0 && out_dims[i] <= io->info.dims[i]) continue;
    return PESTLE_ERROR(INTERNAL,
                        "output '%s' came out with extent %" PRId64
                        " on axis %d, above its bound of %" PRId64,
                        io->info.name, out_dims[i], (int)i, io->info.dims[i]);
  }
  return NULL;
}

// Kernels lay an output out by its bounds. A view without strides, and one that
// the run allocated, is packed to the real extents.
static void finish_bounded(const pestle_exec_io_t* io, const int64_t* dims,
                           const void* source, bool allocated,
                           pestle_tensor_t* tensor) {
  int32_t rank = io->info.rank;
  int64_t bound_strides[PESTLE_MAX_RANK];
  pestle_view_dense_strides(rank, io->info.dims, bound_strides);
  const int64_t* strides = allocated ? NULL : tensor->strides;
  char* target = pestle_view_data(tensor);
  if (source != target || !strides) {
    pestle_view_copy(rank, dims, io->element, source, bound_strides, target,
                     strides);
  }
  if (rank) memcpy(tensor->shape, dims, (size_t)rank * sizeof(*dims));
  if (allocated) pestle_view_dense_strides(rank, dims, tensor->strides);
}

pestle_status_t pestle_output_finish(pestle_executable_t* e,
                                     pestle_frame_t* frame, size_t index,
                                     pestle_tensor_t* tensor) {
  size_t at = e->input_count + index;
  const pestle_exec_io_t* io = &e->io[at];
  if (io->info.bounded) {
    int64_t dims[PESTLE_MAX_RANK];
    PESTLE_TRY(read_extents(io, frame, dims));
    finish_bounded(io, dims, frame->io[at], frame->allocated[index], tensor);
  } else if (frame->staged[at] != SIZE_MAX) {
    pestle_view_copy(io->info.rank, io->info.dims, io->element, frame->io[at],
                     NULL, pestle_view_data(tensor), tensor->strides);
  }
  return NULL;
}
