// SPDX-License-Identifier: Apache-2.0
// Steps of collectives: from a plan's groups and bindings to what a world does.
#include <stdio.h>
#include <string.h>

#include "base/require.h"
#include "base/trace.h"
#include "runtime/device_comm.h"
#include "runtime/progress.h"

static int32_t process_count(const pestle_executable_t* e) {
  const pestle_plan_header_t* h = pestle_plan_header(e->plan);
  return h->replicas * h->partitions;
}

static const char* plan_name(const pestle_executable_t* e) {
  return pestle_plan_text(e->plan, pestle_plan_header(e->plan)->name);
}

pestle_status_t pestle_executable_find_collectives(pestle_executable_t* e) {
  e->collectives =
      PESTLE_PLAN_RECORDS(e->plan, pestle_plan_collective_t, collectives);
  e->groups = PESTLE_PLAN_RECORDS(e->plan, int32_t, groups);
  const pestle_plan_header_t* h = pestle_plan_header(e->plan);
  if (process_count(e) == 1 || !e->remote) return NULL;
  e->group_hashes =
      PESTLE_ARENA_ARRAY(&e->arena, uint64_t, h->collectives.count);
  if (!e->group_hashes) return PESTLE_OOM();
  for (uint64_t i = 0; i < h->collectives.count; ++i)
    e->group_hashes[i] = pestle_collective_rows_hash(e, &e->collectives[i]);
  return NULL;
}

pestle_status_t pestle_executable_check_world(const pestle_executable_t* e,
                                              pestle_world_t* world) {
  int32_t size = process_count(e);
  PESTLE_TRY(pestle_world_check(world, size, plan_name(e),
                                pestle_plan_header(e->plan)->checksum));
  if (size > 1 && e->remote) PESTLE_TRY(pestle_device_comm_prepare(world, e));
  return pestle_executable_take_parts(e, pestle_executable_partition(e, world));
}

pestle_status_t pestle_world_prepare(pestle_world_t* world,
                                     pestle_executable_t* e) {
  PESTLE_REQUIRE(e && world, "an executable and a rank");
  pestle_context_enter(e->context);
  pestle_status_t status = pestle_executable_check_world(e, world);
  if (status) pestle_world_abort(world, status);
  return status;
}

void pestle_run_leave_world(const pestle_run_t* run, pestle_status_t failure) {
  if (failure) pestle_world_abort(run->options.world, failure);
}

// --- Who takes part ---

static void find_row(const pestle_executable_t* e,
                     const pestle_plan_collective_t* k, int32_t rank,
                     pestle_collective_t* op) {
  for (uint32_t r = 0; r < k->group_count; ++r) {
    const int32_t* row = e->groups + k->first_group + (size_t)r * k->group_size;
    uint32_t members = 0;
    bool found = false;
    for (; members < k->group_size && row[members] >= 0; ++members)
      found |= row[members] == rank;
    if (!found) continue;
    op->ranks = row;
    op->rank_count = members;
    return;
  }
}

static void find_peers(const pestle_executable_t* e,
                       const pestle_plan_collective_t* k, int32_t rank,
                       pestle_collective_t* op) {
  op->source = op->target = -1;
  if (k->kind != PESTLE_PLAN_PERMUTE) {
    find_row(e, k, rank, op);
    return;
  }
  for (uint32_t r = 0; r < k->group_count; ++r) {
    const int32_t* pair = e->groups + k->first_group + 2 * (size_t)r;
    if (pair[0] == rank) op->target = pair[1];
    if (pair[1] == rank) op->source = pair[0];
  }
}

// Elements of one member's part: see pestle_collective_kind_t.
static uint64_t count_of(const pestle_plan_collective_t* k, uint64_t sent,
                         uint64_t received) {
  uint64_t size = pestle_dtype_size((pestle_dtype_t)k->dtype);
  switch ((pestle_plan_collective_kind_t)k->kind) {
    case PESTLE_PLAN_REDUCE_SCATTER:
      return received / size;
    case PESTLE_PLAN_ALL_TO_ALL:
      return sent / size / k->group_size;
    case PESTLE_PLAN_ALL_REDUCE:
    case PESTLE_PLAN_ALL_GATHER:
    case PESTLE_PLAN_PERMUTE:
    case PESTLE_PLAN_BROADCAST:
    case PESTLE_PLAN_PARTITION_ID:
    case PESTLE_PLAN_REPLICA_ID:
      break;
  }
  return sent / size;
}

// --- The step ---

static pestle_status_t give(const pestle_executable_t* e,
                            const pestle_queue_t* queue,
                            const pestle_plan_collective_t* k, int32_t rank,
                            void* out) {
  int32_t partitions = pestle_plan_header(e->plan)->partitions;
  uint32_t number =
      (uint32_t)(k->kind == PESTLE_PLAN_PARTITION_ID ? rank % partitions
                                                     : rank / partitions);
  if (!queue) {
    memcpy(out, &number, sizeof(number));
    return NULL;
  }
  PESTLE_TRY(pestle_queue_from_host(queue, &number, out, sizeof(number)));
  return pestle_queue_wait(queue);  // |number| is read until then
}

static bool is_strict(const pestle_executable_t* e) {
  return pestle_plan_header(e->plan)->numerics == 1;  // PESTLE_NUMERICS_STRICT
}

// |queue|: NULL on a CPU.
static pestle_status_t enqueue(pestle_executable_t* e, pestle_frame_t* frame,
                               const pestle_queue_t* queue,
                               const pestle_plan_step_t* step,
                               pestle_world_t* world,
                               const pestle_plan_collective_t* k) {
  enum { AT_ONCE = PESTLE_COLLECTIVES_AT_ONCE };
  pestle_collective_t ops[AT_ONCE];
  void* const* data = frame->bindings + step->first;
  const pestle_plan_binding_t* b = e->bindings + step->first;
  char name[96];
  (void)snprintf(name, sizeof(name), "%.60s of step %u",
                 pestle_plan_text(e->plan, step->label),
                 (unsigned)(step - e->steps));
  pestle_collective_t op = {.struct_size = sizeof(op),
                            .kind = (int32_t)k->kind,
                            .reduction = (int32_t)k->reduction,
                            .dtype = (int32_t)k->dtype,
                            .hash = k->hash,
                            .name = name};
  find_peers(e, k, pestle_world_rank(world), &op);
  for (uint32_t i = 0; i < k->tensor_count; i += AT_ONCE) {
    uint32_t n = k->tensor_count - i < AT_ONCE ? k->tensor_count - i : AT_ONCE;
    op.sequence = pestle_world_next(world);
    for (uint32_t t = 0; t < n; ++t) {
      uint32_t from = i + t, to = k->tensor_count + i + t;
      ops[t] = op;
      ops[t].send = data[from];
      ops[t].receive = data[to];
      ops[t].count = count_of(k, b[from].size, b[to].size);
    }
    bool beside = frame->overlaps && e->beside[step - e->steps];
    if (queue) {
      PESTLE_TRY(pestle_device_comm_enqueue(world, queue, ops, n,
                                            e->group_hashes[step->kernel],
                                            is_strict(e), beside));
    } else if (beside) {
      PESTLE_TRY(pestle_progress_give(world, ops, n, is_strict(e)));
    } else {
      PESTLE_TRY(pestle_world_enqueue(world, ops, n, is_strict(e)));
    }
    if (beside) frame->numbers[step->kernel] = op.sequence;
  }
  return NULL;
}

pestle_status_t pestle_collective_step(pestle_executable_t* e,
                                       pestle_frame_t* frame,
                                       const pestle_queue_t* queue,
                                       const pestle_plan_step_t* step,
                                       const pestle_run_t* run) {
  const pestle_plan_collective_t* k = &e->collectives[step->kernel];
  pestle_world_t* world = run->options.world;
  if (k->kind == PESTLE_PLAN_PARTITION_ID ||
      k->kind == PESTLE_PLAN_REPLICA_ID) {
    return give(e, queue, k, pestle_world_rank(world),
                frame->bindings[step->first]);
  }
  pestle_trace_t* trace = e->context->core.trace;
  if (!trace) return enqueue(e, frame, queue, step, world, k);
  pestle_trace_texts_t texts = pestle_step_trace_texts(e, step);
  pestle_trace_span_t span = {.category = "collective",
                              .name = texts.label,
                              .detail = texts.note,
                              .begin_ns = pestle_clock_ns(),
                              .keys = {"rank"},
                              .values = {pestle_world_rank(world)}};
  pestle_status_t status = enqueue(e, frame, queue, step, world, k);
  pestle_trace_add(trace, &span);
  return status;
}
