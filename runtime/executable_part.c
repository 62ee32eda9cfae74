// SPDX-License-Identifier: Apache-2.0
// Constants of which each process has its own part (pestle_plan_part_t). An executable
// is made without a world: the parts of a partition are taken when the first rank that is
// that partition comes to run, and stay as long as the executable does. Ranks that are
// threads of one process may share it, each with its own.
#include <string.h>

#include "base/mem.h"
#include "runtime/executable.h"
#include "runtime/world.h"

// What a partition has, one a record of the plan's parts.
struct pestle_exec_part_t {
  pestle_constant_t** held;           // NULL: in the plan, or let go
  pestle_device_constant_t** remote;  // NULL where the home is a CPU
  const char** host;                  // the bytes on the host; NULL: let go
};

static const pestle_plan_part_place_t* place_of(const pestle_executable_t* e,
                                                int32_t partition,
                                                size_t index) {
  const pestle_plan_part_t* part =
      &PESTLE_PLAN_RECORDS(e->plan, pestle_plan_part_t, parts)[index];
  return &PESTLE_PLAN_RECORDS(e->plan, pestle_plan_part_place_t,
                              part_places)[part->first + (uint32_t)partition];
}

static const pestle_plan_constant_ref_t* ref_of(const pestle_executable_t* e,
                                                uint32_t constant) {
  return &PESTLE_PLAN_RECORDS(e->plan, pestle_plan_constant_ref_t,
                              constant_refs)[constant];
}

int32_t pestle_executable_partition(const pestle_executable_t* e,
                                    const pestle_world_t* world) {
  if (!e->part_count || !world) return 0;
  return world->rank % pestle_plan_header(e->plan)->partitions;
}

// --- Counting ---

// Whether an earlier part of |partition| lies in the same constant.
static bool is_seen(const pestle_executable_t* e, int32_t partition,
                    size_t index) {
  uint32_t constant = place_of(e, partition, index)->constant;
  for (size_t i = 0; i < index; ++i) {
    if (place_of(e, partition, i)->constant == constant) return true;
  }
  return false;
}

static bool is_counted_here(const pestle_executable_t* e, int32_t partition,
                            size_t index) {
  return !e->remote &&
         pestle_plan_is_part(e->plan,
                             place_of(e, partition, index)->constant) &&
         !is_seen(e, partition, index);
}

// On a CPU: those that lie in the plan count once for all executables of it, others
// once for all plans.
static void count(const pestle_executable_t* e, int32_t partition,
                  const pestle_exec_part_t* p, bool in) {
  for (size_t i = 0; i < e->part_count; ++i) {
    if (!is_counted_here(e, partition, i)) continue;
    uint32_t constant = place_of(e, partition, i)->constant;
    int64_t size = (int64_t)ref_of(e, constant)->size;
    atomic_uint* users = &e->plan->part_users[constant];
    if (p->held[i]) {
      if (in)
        pestle_constant_use(p->held[i], e->home);
      else
        pestle_constant_unuse(p->held[i]);
    } else if (in ? atomic_fetch_add(users, 1) == 1
                  : atomic_fetch_sub(users, 1) == 2) {
      pestle_device_count_memory(e->home, in ? size : -size);
    }
  }
}

static pestle_status_t check_limit(const pestle_executable_t* e,
                                   int32_t partition,
                                   const pestle_exec_part_t* p) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < e->part_count; ++i) {
    if (!is_counted_here(e, partition, i)) continue;
    uint32_t constant = place_of(e, partition, i)->constant;
    bool is_used = p->held[i] ? pestle_constant_is_used(p->held[i])
                              : atomic_load(&e->plan->part_users[constant]) > 1;
    if (!is_used) bytes += ref_of(e, constant)->size;
  }
  return bytes ? pestle_memory_check_limit(e->home, bytes) : NULL;
}

// --- Taking ---

static size_t bytes_of(const pestle_executable_t* e) {
  return sizeof(pestle_exec_part_t) +
         e->part_count * (sizeof(pestle_constant_t*) +
                          sizeof(pestle_device_constant_t*) + sizeof(char*));
}

static void let_go(const pestle_executable_t* e, pestle_exec_part_t* p) {
  for (size_t i = 0; i < e->part_count; ++i) {
    pestle_constant_release(p->held[i]);
    pestle_device_constant_release(e->context, p->remote[i]);
  }
  pestle_dealloc(e->context->core.allocator, p, bytes_of(e));
}

// Kernels that run on a CPU away from home read their constants there.
static bool has_staged(const pestle_executable_t* e) {
  for (size_t i = 0; i < e->kernel_count; ++i) {
    if (e->kernels[i].staged) return true;
  }
  for (size_t i = 0; i < e->call_count; ++i) {
    if (e->calls[i].staged) return true;
  }
  return false;
}

static pestle_status_t take_one(const pestle_executable_t* e, int32_t partition,
                                size_t index, bool stays,
                                pestle_exec_part_t* p) {
  uint32_t constant = place_of(e, partition, index)->constant;
  PESTLE_TRY(pestle_plan_take_part(e->plan, constant, &p->held[index],
                                   &p->host[index]));
  if (!e->remote) return NULL;
  PESTLE_TRY(pestle_device_constant_get(e->plan, constant, p->host[index],
                                        e->home, &p->remote[index]));
  if (stays) return NULL;
  pestle_constant_release(p->held[index]);
  p->held[index] = NULL;
  p->host[index] = NULL;
  return NULL;
}

static pestle_status_t take(const pestle_executable_t* e, int32_t partition,
                            pestle_exec_part_t** out) {
  pestle_exec_part_t* p =
      pestle_alloc_zero(e->context->core.allocator, bytes_of(e));
  *out = p;
  if (!p) return PESTLE_OOM();
  p->held = (pestle_constant_t**)(void*)(p + 1);
  p->remote = (pestle_device_constant_t**)(void*)(p->held + e->part_count);
  p->host = (const char**)(void*)(p->remote + e->part_count);
  bool stays = has_staged(e);
  pestle_status_t status = NULL;
  for (size_t i = 0; i < e->part_count && !status; ++i)
    status = take_one(e, partition, i, stays, p);
  return status ? status : check_limit(e, partition, p);
}

pestle_status_t pestle_executable_take_parts(const pestle_executable_t* e,
                                             int32_t partition) {
  if (!e->part_count || atomic_load(&e->parts[partition])) return NULL;
  int64_t begin = pestle_context_trace_begin(e->context);
  pestle_exec_part_t *p, *none = NULL;
  pestle_status_t status = take(e, partition, &p);
  pestle_context_trace_end(e->context, begin, "load", "take parts",
                           e->home->name);
  if (!status) {
    count(e, partition, p, true);
    if (atomic_compare_exchange_strong(&e->parts[partition], &none, p))
      return NULL;
    count(e, partition, p, false);  // another thread was first
  }
  if (p) let_go(e, p);
  return pestle_status_annotate(
      status, "while taking the constants of partition %d of plan '%s'",
      (int)partition,
      pestle_plan_text(e->plan, pestle_plan_header(e->plan)->name));
}

pestle_status_t pestle_executable_find_parts(pestle_executable_t* e) {
  const pestle_plan_header_t* h = pestle_plan_header(e->plan);
  if (!h->parts.count) return NULL;
  size_t partitions = (size_t)h->partitions;
  e->parts =
      PESTLE_ARENA_ARRAY(&e->arena, _Atomic(pestle_exec_part_t*), partitions);
  if (!e->parts) return PESTLE_OOM();
  for (size_t i = 0; i < partitions; ++i)
    atomic_init(&e->parts[i], NULL);
  e->part_count = h->parts.count;
  return NULL;
}

void pestle_executable_drop_parts(pestle_executable_t* e) {
  if (!e->part_count) return;
  for (int32_t i = 0; i < pestle_plan_header(e->plan)->partitions; ++i) {
    pestle_exec_part_t* p = atomic_exchange(&e->parts[i], NULL);
    if (!p) continue;
    count(e, i, p, false);
    let_go(e, p);
  }
}

// --- Reading ---

char* pestle_executable_part(const pestle_executable_t* e, int32_t partition,
                             const pestle_plan_binding_t* binding,
                             bool on_host) {
  const pestle_exec_part_t* p = atomic_load(&e->parts[partition]);
  const pestle_plan_part_place_t* at = place_of(e, partition, binding->index);
  // Kernels do not write to constants, which are read-only.
  char* base = e->remote && !on_host
                   ? pestle_device_constant_data(p->remote[binding->index])
                   : (char*)(uintptr_t)p->host[binding->index];
  return base + at->offset + binding->offset;
}

uint64_t pestle_executable_constant_bytes(const pestle_executable_t* e,
                                          int32_t partition) {
  if (!e) return 0;
  const pestle_plan_header_t* h = pestle_plan_header(e->plan);
  uint64_t bytes = 0;
  for (size_t i = 0; i < e->plan->constant_count; ++i) {
    bool all = partition < 0 || !pestle_plan_is_part(e->plan, i);
    if (all) bytes += ref_of(e, (uint32_t)i)->size;
  }
  if (partition < 0 || partition >= h->partitions) return bytes;
  for (size_t i = 0; i < e->part_count; ++i) {
    uint32_t constant = place_of(e, partition, i)->constant;
    if (pestle_plan_is_part(e->plan, constant) && !is_seen(e, partition, i))
      bytes += ref_of(e, constant)->size;
  }
  return bytes;
}
