// SPDX-License-Identifier: Apache-2.0
// Outputs that a run allocates, and what is left to do for outputs after one:
// copy back what was not written in place, and cut bounded ones to their real
// extents.
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "base/checked.h"
#include "base/require.h"
#include "runtime/executable.h"

// --- Allocated outputs ---

#define OUTPUT_MAGIC UINT64_C(0x74757074754f7350)  // "PsOutput"

// Of an output on the host it lies in the 64 bytes before the data, and shape
// and strides lie behind that; of one elsewhere before the shape.
typedef struct output_header_t {
  uint64_t magic;
  pestle_block_t* host;
  pestle_block_t* remote;  // NULL: the data is in |host|
} output_header_t;

_Static_assert(sizeof(output_header_t) <= 64, "fits before the data");

static pestle_status_t create_host(pestle_executable_t* e,
                                   const pestle_exec_io_t* io,
                                   pestle_tensor_t* tensor) {
  size_t data_size = pestle_align_up(io->size, 64);
  size_t size = 64 + data_size + 2 * (size_t)io->info.rank * sizeof(int64_t);
  output_header_t header = {.magic = OUTPUT_MAGIC};
  PESTLE_TRY(pestle_device_allocate(e->host, size, &header.host));
  char* data = (char*)header.host->data + 64;
  memcpy(data - 64, &header, sizeof(header));
  tensor->data = data;
  tensor->device = e->host->dl;
  tensor->shape = (int64_t*)(void*)(data + data_size);
  return NULL;
}

static pestle_status_t create_remote(pestle_executable_t* e,
                                     const pestle_exec_io_t* io,
                                     pestle_tensor_t* tensor) {
  size_t size = 64 + 2 * (size_t)io->info.rank * sizeof(int64_t);
  output_header_t header = {.magic = OUTPUT_MAGIC};
  PESTLE_TRY(pestle_device_allocate(e->host, size, &header.host));
  pestle_status_t status =
      pestle_device_allocate(e->home, io->size, &header.remote);
  if (status) {
    pestle_device_free(e->host, header.host);
    return status;
  }
  char* shape = (char*)header.host->data + 64;
  memcpy(shape - 64, &header, sizeof(header));
  tensor->data = header.remote->data;
  tensor->device = e->home->dl;
  tensor->shape = (int64_t*)(void*)shape;
  return NULL;
}

pestle_status_t pestle_output_create(pestle_executable_t* e,
                                     const pestle_exec_io_t* io, bool remote,
                                     pestle_tensor_t* out_tensor) {
  size_t rank = (size_t)io->info.rank;
  pestle_tensor_t tensor = {.ndim = io->info.rank, .dtype = io->dl_dtype};
  PESTLE_TRY(remote ? create_remote(e, io, &tensor)
                    : create_host(e, io, &tensor));
  if (rank) memcpy(tensor.shape, io->info.dims, rank * sizeof(int64_t));
  tensor.strides = tensor.shape + rank;
  pestle_view_dense_strides(io->info.rank, tensor.shape, tensor.strides);
  *out_tensor = tensor;
  return NULL;
}

void pestle_tensor_release(pestle_executable_t* executable,
                           pestle_tensor_t* tensor) {
  if (!executable || !tensor || !tensor->data) return;
  output_header_t header;
  bool remote = tensor->device.device_type != PESTLE_DEVICE_CPU;
  if (remote && !tensor->shape) return;
  char* at = (remote ? (char*)tensor->shape : (char*)tensor->data) - 64;
  memcpy(&header, at, sizeof(header));
  if (header.magic != OUTPUT_MAGIC) return;
  memset(at, 0, sizeof(header));
  pestle_device_free(executable->home, header.remote);
  pestle_device_free(executable->host, header.host);
  tensor->data = NULL;
  tensor->shape = NULL;
  tensor->strides = NULL;
}

pestle_status_t pestle_tensor_read(pestle_executable_t* executable,
                                   const pestle_tensor_t* tensor, void* data,
                                   size_t size) {
  PESTLE_REQUIRE(executable && tensor && tensor->data && (data || !size),
                 "an executable, a tensor with data and the host's bytes");
  int64_t count, bytes = 0;
  int64_t element = pestle_dtype_size(pestle_dtype_from_dlpack(tensor->dtype));
  if (!pestle_checked_count(tensor->shape, (size_t)tensor->ndim, &count) ||
      !pestle_checked_mul_i64(count, element, &bytes) ||
      (uint64_t)bytes != size) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "%zu bytes were asked for of a tensor of %" PRId64,
                        size, bytes);
  }
  pestle_device_t* home = executable->home;
  const char* source = pestle_view_data(tensor);
  if (tensor->device.device_type == PESTLE_DEVICE_CPU) {
    pestle_view_copy(tensor->ndim, tensor->shape, (size_t)element, source,
                     tensor->strides, data, NULL);
    return NULL;
  }
  if (tensor->device.device_type != home->dl.device_type ||
      tensor->device.device_id != home->dl.device_id ||
      !pestle_view_is_dense(tensor)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the tensor is not on device %s without gaps between "
                        "its elements",
                        home->name);
  }
  return pestle_device_read(home, source, data, size);
}

// --- After a run ---

pestle_status_t pestle_output_check_extents(const pestle_exec_io_t* io,
                                            const int64_t* dims) {
  for (int32_t i = 0; i < io->info.rank; ++i) {
    if (dims[i] >= 0 && dims[i] <= io->info.dims[i]) continue;
    if (dims[i] < 0) {
      return PESTLE_ERROR(
          INVALID_ARGUMENT,
          "extents that this run told do not fit each other where an op needs "
          "them equal, as operands of an elementwise op or a product, or parts "
          "of a split or a join, or an element is of no category that the "
          "model "
          "knows: '%s' cannot be computed of these inputs",
          io->info.name);
    }
    return PESTLE_ERROR(
        UNSUPPORTED,
        "output '%s' has extent %" PRId64
        " on axis %d in this run, and the plan has room for %" PRId64
        ": a loop whose trips only a run counts made more than its scan "
        "outputs have rows for; give it a limit that is known",
        io->info.name, dims[i], (int)i, io->info.dims[i]);
  }
  return NULL;
}

// Kernels lay an output out by its bounds. A view without strides, and one that
// the run allocated, is packed to the real extents.
void pestle_output_pack(const pestle_exec_io_t* io, const int64_t* dims,
                        const void* source, bool allocated, char* target,
                        pestle_tensor_t* tensor) {
  int32_t rank = io->info.rank;
  int64_t bound_strides[PESTLE_MAX_RANK];
  pestle_view_dense_strides(rank, io->info.dims, bound_strides);
  const int64_t* strides = allocated ? NULL : tensor->strides;
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
    size_t bytes = (size_t)io->info.rank * sizeof(*dims);
    const char* from = (const char*)frame->arena->data + io->shape_offset;
    if (bytes) memcpy(dims, from, bytes);
    PESTLE_TRY(pestle_output_check_extents(io, dims));
    pestle_output_pack(io, dims, frame->io[at], frame->allocated[index],
                       pestle_view_data(tensor), tensor);
  } else if (frame->staged[at] != SIZE_MAX) {
    pestle_view_copy(io->info.rank, io->info.dims, io->element, frame->io[at],
                     NULL, pestle_view_data(tensor), tensor->strides);
  }
  return NULL;
}
