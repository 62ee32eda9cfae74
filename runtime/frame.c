// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"
#include "runtime/executable.h"

static void destroy(pestle_executable_t* e, pestle_frame_t* frame) {
  pestle_device_free(e->devices[0], frame->arena);
  pestle_device_free(e->devices[0], frame->scratch);
  pestle_device_free(e->devices[0], frame->staging);
  pestle_dealloc(e->context->allocator, frame, frame->bytes);
}

// Carves an array off a block that is being measured (|base| NULL) or filled.
static void* carve(char* base, size_t* size, size_t bytes) {
  char* part = base ? base + *size : NULL;
  *size += pestle_align_up(bytes, 16);
  return part;
}

static size_t lay_out(const pestle_executable_t* e, char* base,
                      pestle_frame_t* frame) {
  size_t size = 0;
  (void)carve(base, &size, sizeof(*frame));
  frame->bindings = carve(base, &size, e->binding_count * sizeof(void*));
  frame->io = carve(base, &size, e->io_count * sizeof(char*));
  frame->ranges = carve(base, &size, e->io_count * sizeof(pestle_view_range_t));
  frame->staged = carve(base, &size, e->io_count * sizeof(size_t));
  frame->dense = carve(base, &size, e->io_count);
  frame->donated = carve(base, &size, e->input_count);
  frame->allocated = carve(base, &size, e->output_count);
  return size;
}

static pestle_status_t create(pestle_executable_t* e,
                              pestle_frame_t** out_frame) {
  pestle_frame_t measured;
  size_t bytes = lay_out(e, NULL, &measured);
  char* base = pestle_alloc_zero(e->context->allocator, bytes);
  if (!base) return PESTLE_OOM();
  pestle_frame_t* frame = (pestle_frame_t*)(void*)base;
  (void)lay_out(e, base, frame);
  frame->bytes = bytes;
  for (size_t i = 0; i < e->binding_count; ++i) {
    if (e->bindings[i].storage != PESTLE_PLAN_CONSTANT) continue;
    // Kernels do not write to constants, which are read-only.
    frame->bindings[i] = (void*)(uintptr_t)(pestle_plan_constant_base(
                                                e->plan, e->bindings[i].index) +
                                            e->bindings[i].offset);
  }
  *out_frame = frame;
  return NULL;
}

pestle_status_t pestle_frame_take(pestle_executable_t* e,
                                  pestle_frame_t** out_frame) {
  for (size_t i = 0; i < PESTLE_FRAME_SLOTS; ++i) {
    if (!atomic_load_explicit(&e->frames[i], memory_order_relaxed)) continue;
    pestle_frame_t* frame =
        atomic_exchange_explicit(&e->frames[i], NULL, memory_order_acquire);
    if (!frame) continue;
    *out_frame = frame;
    return NULL;
  }
  return create(e, out_frame);
}

void pestle_frame_give(pestle_executable_t* e, pestle_frame_t* frame) {
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

pestle_status_t pestle_frame_prepare(pestle_executable_t* e,
                                     pestle_frame_t* frame) {
  if (frame->arena) return NULL;
  pestle_device_t* device = e->devices[0];
  if (e->scratch_size && !frame->scratch) {
    size_t size;
    if (__builtin_mul_overflow(e->scratch_size, (size_t)e->context->threads,
                               &size)) {
      return PESTLE_OOM();
    }
    PESTLE_TRY(pestle_device_allocate(device, size, &frame->scratch));
  }
  PESTLE_TRY(pestle_device_allocate(device, e->arena_size, &frame->arena));
  char* base = frame->arena->data;
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
