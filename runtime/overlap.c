// SPDX-License-Identifier: Apache-2.0
// Which collectives of a plan run beside its other steps, and which step waits for which:
// found once, from the memory that steps touch, whatever the memory plan has meant.
//
//   0 launch a             0 launch a
//   1 collective a -> b    1 begins beside
//   2 launch c             2 launch c
//   3 launch b -> d        3 waits for 1, launch b -> d
//
// Two pieces of memory that overlap are a conflict even where nobody writes to them: what a
// kernel works in is not marked as written. Inputs are only read, but an output may begin
// as one, or lie over one that is donated. All is waited for where the order of steps is not that of the plan: at jumps and
// at the end. A collective that nothing could run beside stays on the plan's stream.
#include "runtime/overlap.h"

#include <string.h>

#include "runtime/progress.h"

// Whether |b|, of a step behind the collective that has |a|, must not be touched while that
// is under way.
static bool touches(const pestle_executable_t* e,
                    const pestle_plan_binding_t* a,
                    const pestle_plan_binding_t* b) {
  if (!a->size || !b->size || b->storage == PESTLE_PLAN_CONSTANT ||
      b->storage == PESTLE_PLAN_PART) {
    return false;
  }
  if (b->storage == PESTLE_PLAN_INPUT) {
    return a->storage == PESTLE_PLAN_OUTPUT &&
           e->io[b->index].alias == (int32_t)a->index;
  }
  // A donated input may lie under an output that is written behind all reads of it.
  if (a->storage == PESTLE_PLAN_INPUT) return b->storage == PESTLE_PLAN_OUTPUT;
  return a->storage == b->storage &&
         (a->storage == PESTLE_PLAN_ARENA || a->index == b->index) &&
         a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

static bool conflict(const pestle_executable_t* e, const pestle_plan_step_t* a,
                     const pestle_plan_step_t* b) {
  for (uint32_t i = 0; i < a->count; ++i) {
    for (uint32_t j = 0; j < b->count; ++j) {
      if (touches(e, &e->bindings[a->first + i], &e->bindings[b->first + j]))
        return true;
    }
  }
  return false;
}

static bool is_collective(const pestle_executable_t* e,
                          const pestle_plan_step_t* step) {
  if (step->kind != PESTLE_PLAN_COLLECTIVE) return false;
  uint32_t kind = e->collectives[step->kernel].kind;
  return kind != PESTLE_PLAN_PARTITION_ID && kind != PESTLE_PLAN_REPLICA_ID;
}

// Where the host does something itself, or the next step is another one.
static bool waits_for_all(const pestle_executable_t* e,
                          const pestle_plan_step_t* step) {
  switch ((pestle_plan_step_kind_t)step->kind) {
    case PESTLE_PLAN_LAUNCH:
      return e->kernels[step->kernel].staged;
    case PESTLE_PLAN_COPY:
    case PESTLE_PLAN_COLLECTIVE:
      return false;
    case PESTLE_PLAN_CALL:
    case PESTLE_PLAN_JUMP:
    case PESTLE_PLAN_JUMP_IF_ZERO:
    case PESTLE_PLAN_JUMP_TABLE:
    case PESTLE_PLAN_REPEAT:
    case PESTLE_PLAN_END:
      break;
  }
  return true;
}

// The step that waits for the collective at |at|. |*out_beside|: kernels come before it.
static uint32_t find_wait(const pestle_executable_t* e, uint32_t at,
                          uint32_t count, bool* out_beside) {
  *out_beside = false;
  uint32_t i = at + 1;
  for (; i < count; ++i) {
    const pestle_plan_step_t* step = &e->steps[i];
    if (waits_for_all(e, step) ||
        (!is_collective(e, step) && conflict(e, &e->steps[at], step))) {
      break;
    }
    *out_beside |=
        step->kind == PESTLE_PLAN_LAUNCH && !e->kernels[step->kernel].empty;
  }
  return i;
}

// A CPU has a thread for it, which few bytes are not worth waking for.
static bool is_worth(const pestle_executable_t* e,
                     const pestle_plan_step_t* step) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < step->count; ++i)
    bytes += e->bindings[step->first + i].size;
  return e->remote || bytes >= PESTLE_PROGRESS_BYTES;
}

pestle_status_t pestle_overlap_find(pestle_executable_t* e, uint32_t count) {
  const pestle_plan_header_t* h = pestle_plan_header(e->plan);
  if (h->replicas * h->partitions == 1 || !h->collectives.count) return NULL;
  uint32_t* waits = PESTLE_ARENA_ARRAY(&e->arena, uint32_t, count + 1);
  bool* beside = PESTLE_ARENA_ARRAY(&e->arena, bool, count + 1);
  if (!waits || !beside) return PESTLE_OOM();
  memset(waits, 0, (count + 1) * sizeof(*waits));
  memset(beside, 0, (count + 1) * sizeof(*beside));
  bool any = false;
  // The latest that is beside, and the last step before which it may be under way.
  uint32_t open = 0, end = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (!is_collective(e, &e->steps[i])) continue;
    uint32_t wait = find_wait(e, i, count, &beside[i]);
    beside[i] = beside[i] && is_worth(e, &e->steps[i]);
    if (beside[i]) {
      // One stream has them all: who waits for it waits for those before.
      if (waits[wait] < i + 1) waits[wait] = i + 1;
      open = i + 1;
      if (end < wait) end = wait;
      any = true;
    } else if (i < end && waits[i] < open) {
      waits[i] = open;  // the transport does one after the other
    }
  }
  e->waits = any ? waits : NULL;
  e->beside = any ? beside : NULL;
  return NULL;
}

pestle_status_t pestle_overlap_wait(const pestle_executable_t* e,
                                    pestle_frame_t* frame,
                                    const pestle_queue_t* queue, uint32_t step,
                                    pestle_world_t* world) {
  if (!frame->overlaps || !e->waits[step]) return NULL;
  uint32_t collective = e->steps[e->waits[step] - 1].kernel;
  uint64_t number = frame->numbers[collective];
  return queue ? pestle_device_comm_wait(world, queue, number)
               : pestle_progress_wait(world, number);
}
