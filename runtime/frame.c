// SPDX-License-Identifier: Apache-2.0
// A frame is what one run of an executable needs of its own: arena, binding addresses and
// remote memory, kept in the executable's pool from run to run.
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"
#include "runtime/executable.h"

// What was queued with the frame and may not be done.
bool pestle_frame_is_busy(const pestle_executable_t* e,
                          const pestle_frame_t* frame) {
  if (!frame->queued) return false;
  return !pestle_device_api(e->home)->event_is_signalled(
      e->home->backend->self, frame->done, frame->done_count);
}

pestle_status_t pestle_frame_wait(const pestle_executable_t* e,
                                  pestle_frame_t* frame) {
  if (!frame->queued) return NULL;
  PESTLE_TRY(pestle_device_said(
      e->home, pestle_device_api(e->home)->event_wait(
                   e->home->backend->self, frame->done, frame->done_count)));
  frame->queued = false;
  return NULL;
}

static void destroy_remote(pestle_executable_t* e, pestle_frame_t* frame) {
  // What fails twice is a device that is lost: it does nothing any more.
  pestle_status_t status = pestle_frame_wait(e, frame);
  if (status) pestle_status_release(pestle_frame_wait(e, frame));
  pestle_status_release(status);
  pestle_queue_deinit(&frame->own);
  pestle_recordings_destroy(e, frame);
  if (frame->done) {
    pestle_device_api(e->home)->event_destroy(e->home->backend->self,
                                              frame->done);
  }
  pestle_device_free(e->host, frame->host);
  pestle_device_free(e->host, frame->stage);
}

// Back to the pool, from where the next run of whatever executable takes it.
static void give_piece(const pestle_executable_t* e, pestle_frame_t* frame) {
  if (!frame->piece) return;
  pestle_arena_pool_give(e->pool, frame->piece);
  frame->latest = frame->piece;
  frame->piece = NULL;
  frame->arena = frame->scratch = NULL;
}

static void destroy(pestle_executable_t* e, pestle_frame_t* frame) {
  if (e->remote) destroy_remote(e, frame);
  pestle_device_free(e->home, frame->arena);
  pestle_device_free(e->host, frame->scratch);
  pestle_device_free(e->home, frame->staging);
  pestle_strings_release(frame->own_strings);
  pestle_dealloc(e->context->core.allocator, frame, frame->bytes);
}

// Carves an array off a block that is being measured (|base| NULL) or filled.
static void* carve(char* base, size_t* size, size_t bytes) {
  char* part = base ? base + *size : NULL;
  *size += pestle_align_up(bytes, 16);
  return part;
}

static char* constant_base(const pestle_executable_t* e, uint32_t index) {
  if (e->remote) return pestle_device_constant_data(e->constants[index]);
  // Kernels do not write to constants, which are read-only.
  return (char*)(uintptr_t)pestle_plan_constant_base(e->plan, index);
}

// A view of a buffer but for its address. The shape of an output is the frame's,
// since a run makes it the real one; of an input it is only read.
static void fill_view(const pestle_executable_t* e, const pestle_exec_io_t* io,
                      int64_t* shape, pestle_tensor_t* out_view) {
  size_t rank = (size_t)io->info.rank;
  if (shape && rank) memcpy(shape, io->info.dims, rank * sizeof(*shape));
  *out_view = (pestle_tensor_t){
      .device = e->home->dl,
      .ndim = io->info.rank,
      .dtype = io->dl_dtype,
      .shape = shape ? shape : (int64_t*)(uintptr_t)io->info.dims};
}

static size_t lay_out(const pestle_executable_t* e, char* base,
                      pestle_frame_t* frame) {
  size_t size = 0;
  (void)carve(base, &size, sizeof(*frame));
  frame->bindings = carve(base, &size, e->binding_count * sizeof(void*));
  frame->trips = carve(base, &size, e->repeat_count * sizeof(uint32_t));
  frame->io = carve(base, &size, e->io_count * sizeof(char*));
  frame->ranges = carve(base, &size, e->io_count * sizeof(pestle_view_range_t));
  frame->sorted = carve(base, &size, e->io_count * sizeof(pestle_io_range_t));
  frame->staged = carve(base, &size, e->io_count * sizeof(size_t));
  frame->dense = carve(base, &size, e->io_count);
  frame->remote = carve(base, &size, e->io_count);
  frame->copied = carve(base, &size, e->io_count);
  frame->donated = carve(base, &size, e->input_count);
  frame->allocated = carve(base, &size, e->output_count);
  frame->given = carve(base, &size, e->io_count * sizeof(pestle_tensor_t));
  for (size_t i = 0; i < e->io_count; ++i) {
    bool output = i >= e->input_count;
    size_t bytes = output ? (size_t)e->io[i].info.rank * sizeof(int64_t) : 0;
    int64_t* shape = carve(base, &size, bytes);
    if (base) fill_view(e, &e->io[i], output ? shape : NULL, &frame->given[i]);
  }
  frame->tensors = carve(base, &size, e->call_args * sizeof(pestle_tensor_t));
  frame->views =
      carve(base, &size, e->call_args * sizeof(pestle_library_view_t));
  if (e->beside) {
    size_t count = (size_t)pestle_plan_header(e->plan)->collectives.count;
    frame->numbers = carve(base, &size, count * sizeof(uint64_t));
  }
  if (!e->remote) return size;
  frame->host_offsets = carve(base, &size, e->io_count * sizeof(size_t));
  frame->stage_buffers = carve(base, &size, e->stage_args * sizeof(void*));
  frame->stages = carve(base, &size, e->stage_args * sizeof(pestle_stage_t));
  for (size_t i = 0; i < e->recordings; ++i) {
    frame->recordings[i].io = carve(base, &size, e->io_count * sizeof(char*));
  }
  return size;
}

static pestle_status_t create(pestle_executable_t* e, int32_t partition,
                              pestle_frame_t** out_frame) {
  pestle_frame_t measured = {.bytes = 0};
  size_t bytes = lay_out(e, NULL, &measured);
  char* base = pestle_alloc_zero(e->context->core.allocator, bytes);
  if (!base) return PESTLE_OOM();
  pestle_frame_t* frame = (pestle_frame_t*)(void*)base;
  (void)lay_out(e, base, frame);
  frame->bytes = bytes;
  frame->partition = partition;
  for (size_t i = 0; i < e->binding_count; ++i) {
    const pestle_plan_binding_t* b = &e->bindings[i];
    if (b->storage == PESTLE_PLAN_CONSTANT)
      frame->bindings[i] = constant_base(e, b->index) + b->offset;
    else if (b->storage == PESTLE_PLAN_PART)
      frame->bindings[i] = pestle_executable_part(e, partition, b, false);
  }
  *out_frame = frame;
  return NULL;
}

// Of a frame that is the caller's: whether |partition| may use it on |stream| now. What
// is queued on one stream is done in order, so only others must be waited for.
static bool is_ready(const pestle_executable_t* e, pestle_frame_t* frame,
                     uint64_t stream, int32_t partition) {
  if (frame->partition != partition) return false;
  if (!e->remote || (stream && frame->stream == stream)) return true;
  if (pestle_frame_is_busy(e, frame)) return false;
  frame->queued = false;
  return true;
}

pestle_status_t pestle_frame_take(pestle_executable_t* e, uint64_t stream,
                                  const struct pestle_world_s* world,
                                  pestle_frame_t** out_frame) {
  int32_t partition = pestle_executable_partition(e, world);
  for (size_t i = 0; i < PESTLE_FRAME_SLOTS; ++i) {
    if (!atomic_load_explicit(&e->frames[i], memory_order_relaxed)) continue;
    pestle_frame_t* frame =
        atomic_exchange_explicit(&e->frames[i], NULL, memory_order_acquire);
    if (!frame) continue;
    if (is_ready(e, frame, stream, partition)) {
      *out_frame = frame;
      return NULL;
    }
    pestle_frame_give(e, frame);
  }
  return create(e, partition, out_frame);
}

void pestle_frame_give(pestle_executable_t* e, pestle_frame_t* frame) {
  give_piece(e, frame);
  for (size_t i = 0; i < PESTLE_FRAME_SLOTS; ++i) {
    pestle_frame_t* expected = NULL;
    if (atomic_load_explicit(&e->frames[i], memory_order_relaxed)) continue;
    if (atomic_compare_exchange_strong_explicit(&e->frames[i], &expected, frame,
                                                memory_order_release,
                                                memory_order_relaxed)) {
      return;
    }
  }
  destroy(e, frame);
}

static pestle_status_t take_piece(pestle_executable_t* e, pestle_frame_t* frame,
                                  size_t scratch) {
  PESTLE_TRY(pestle_arena_pool_take(e->pool, e->home, frame->latest,
                                    e->arena_size ? e->arena_size : 1, scratch,
                                    &frame->piece));
  frame->arena = frame->piece->arena;
  frame->scratch = frame->piece->scratch;
  return NULL;
}

static pestle_status_t make_own(pestle_executable_t* e, pestle_frame_t* frame,
                                size_t scratch) {
  if (scratch && !frame->scratch)
    PESTLE_TRY(pestle_device_allocate(e->host, scratch, &frame->scratch));
  if (e->stage_size && !frame->stage) {
    PESTLE_TRY(pestle_device_allocate(e->host, e->stage_size, &frame->stage));
  }
  return pestle_device_allocate(e->home, e->arena_size, &frame->arena);
}

pestle_status_t pestle_frame_prepare(pestle_executable_t* e,
                                     pestle_frame_t* frame) {
  if (frame->arena) return NULL;
  bool on_host = !e->remote || e->stage_args;
  size_t scratch = on_host ? e->scratch_size : 0;
  if (__builtin_mul_overflow(scratch, (size_t)e->context->core.threads,
                             &scratch)) {
    return PESTLE_OOM();
  }
  PESTLE_TRY(e->pool ? take_piece(e, frame, scratch)
                     : make_own(e, frame, scratch));
  char* base = frame->arena->data;
  if (frame->base == base) return NULL;
  frame->base = base;
  for (size_t i = 0; i < e->binding_count; ++i) {
    if (e->bindings[i].storage == PESTLE_PLAN_ARENA) {
      frame->bindings[i] = base + e->bindings[i].offset;
    }
  }
  return NULL;
}

void pestle_frame_destroy_all(pestle_executable_t* e) {
  for (size_t i = 0; i < PESTLE_FRAME_SLOTS; ++i) {
    pestle_frame_t* frame = atomic_exchange(&e->frames[i], NULL);
    if (frame) destroy(e, frame);
  }
}
