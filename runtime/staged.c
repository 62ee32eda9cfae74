// SPDX-License-Identifier: Apache-2.0
// A kernel that the home's backend refused, or a call of a function that takes the
// host's memory: it runs on a CPU, on copies of what it is bound to. Bindings that overlap are one copy, so that a kernel that
// works in place does so here too; what it wrote is copied back.
#include "base/bits.h"
#include "runtime/executable.h"
#include "runtime/fpu_x86.h"

static bool is_constant(const pestle_plan_binding_t* binding) {
  return binding->storage == PESTLE_PLAN_CONSTANT ||
         binding->storage == PESTLE_PLAN_PART;
}

// The home's memory that |step| touches, in order and apart. Constants are on
// the host already.
static size_t find_stages(const pestle_executable_t* e,
                          const pestle_frame_t* frame,
                          const pestle_plan_step_t* step) {
  pestle_stage_t* stages = frame->stages;
  size_t count = 0;
  for (uint32_t b = 0; b < step->count; ++b) {
    const pestle_plan_binding_t* binding = &e->bindings[step->first + b];
    if (is_constant(binding) || !binding->size) continue;
    uintptr_t begin = (uintptr_t)frame->bindings[step->first + b];
    size_t at = count++;
    for (; at && stages[at - 1].begin > begin; --at)
      stages[at] = stages[at - 1];
    stages[at] = (pestle_stage_t){begin, begin + (size_t)binding->size, 0};
  }
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    if (kept && stages[i].begin < stages[kept - 1].end) {
      if (stages[kept - 1].end < stages[i].end) {
        stages[kept - 1].end = stages[i].end;
      }
    } else {
      stages[kept++] = stages[i];
    }
  }
  return kept;
}

// Places the copies, each as far past a multiple of 64 as its original.
static size_t place_stages(pestle_stage_t* stages, size_t count) {
  size_t end = 0;
  for (size_t i = 0; i < count; ++i) {
    stages[i].offset = end + (stages[i].begin & 63);
    end = pestle_align_up(stages[i].offset + (stages[i].end - stages[i].begin),
                          64);
  }
  return end;
}

static char* stage_of(const pestle_frame_t* frame, size_t count,
                      const void* address) {
  uintptr_t at = (uintptr_t)address;
  for (size_t i = 0; i < count; ++i) {
    const pestle_stage_t* stage = &frame->stages[i];
    if (at < stage->begin || at >= stage->end) continue;
    return (char*)frame->stage->data + stage->offset + (at - stage->begin);
  }
  return frame->stage->data;  // Of no bytes: nobody reads there.
}

static void bind(const pestle_executable_t* e, const pestle_frame_t* frame,
                 const pestle_plan_step_t* step, size_t count) {
  for (uint32_t b = 0; b < step->count; ++b) {
    const pestle_plan_binding_t* binding = &e->bindings[step->first + b];
    if (binding->storage == PESTLE_PLAN_CONSTANT) {
      // Kernels do not write to constants, which are read-only.
      frame->stage_buffers[b] =
          (void*)(uintptr_t)(pestle_plan_constant_base(e->plan,
                                                       binding->index) +
                             binding->offset);
    } else if (binding->storage == PESTLE_PLAN_PART) {
      frame->stage_buffers[b] =
          pestle_executable_part(e, frame->partition, binding, true);
    } else {
      frame->stage_buffers[b] =
          stage_of(frame, count, frame->bindings[step->first + b]);
    }
  }
}

static pestle_status_t copy_in(const pestle_frame_t* frame,
                               const pestle_queue_t* queue, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const pestle_stage_t* stage = &frame->stages[i];
    PESTLE_TRY(pestle_queue_to_host(queue, (const void*)stage->begin,
                                    (char*)frame->stage->data + stage->offset,
                                    stage->end - stage->begin));
  }
  return pestle_queue_wait(queue);
}

static pestle_status_t copy_back(const pestle_executable_t* e,
                                 const pestle_frame_t* frame,
                                 const pestle_queue_t* queue,
                                 const pestle_plan_step_t* step) {
  for (uint32_t b = 0; b < step->count; ++b) {
    const pestle_plan_binding_t* binding = &e->bindings[step->first + b];
    if (!(binding->flags & PESTLE_PLAN_WRITTEN)) continue;
    PESTLE_TRY(pestle_queue_from_host(queue, frame->stage_buffers[b],
                                      frame->bindings[step->first + b],
                                      (size_t)binding->size));
  }
  return NULL;
}

// Brings to the host what |step| is bound to.
static pestle_status_t bring(pestle_executable_t* e, pestle_frame_t* frame,
                             const pestle_queue_t* queue,
                             const pestle_plan_step_t* step) {
  size_t count = find_stages(e, frame, step);
  if (place_stages(frame->stages, count) > e->stage_size) {
    return PESTLE_ERROR(INTERNAL, "step '%s' stages more than was planned",
                        pestle_plan_text(e->plan, step->label));
  }
  PESTLE_TRY(copy_in(frame, queue, count));
  bind(e, frame, step, count);
  return NULL;
}

pestle_status_t pestle_call_staged(pestle_executable_t* e,
                                   pestle_frame_t* frame,
                                   const pestle_queue_t* queue,
                                   const pestle_plan_step_t* step) {
  PESTLE_TRY(bring(e, frame, queue, step));
  PESTLE_TRY(pestle_call(e, frame, queue, step, frame->stage_buffers));
  return copy_back(e, frame, queue, step);
}

pestle_status_t pestle_launch_staged(pestle_executable_t* e,
                                     pestle_frame_t* frame,
                                     const pestle_queue_t* queue,
                                     const pestle_plan_step_t* step,
                                     int32_t cap) {
  PESTLE_TRY(bring(e, frame, queue, step));
  pestle_fpu_t fpu = pestle_fpu_enter();
  int32_t trap = pestle_launch_host(e, frame, step, frame->stage_buffers, cap);
  pestle_fpu_leave(fpu);
  if (trap) return pestle_step_trapped(e, step, trap);
  return copy_back(e, frame, queue, step);
}
