// SPDX-License-Identifier: Apache-2.0
// Recordings that hold collectives. A frame launches one, and the communicator destroys
// it if it ends before the frame does: NCCL waits for that. Each holds it once.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "runtime/device_comm_state.h"

struct pestle_comm_recording_t {
  pestle_comm_recording_t* next;  // of the communicator
  pestle_refcount_t refcount;
  pestle_allocator_t allocator;
  pestle_device_t* device;
  pestle_mutex_t mutex;
  pestle_device_graph_t* graph;  // of the lock; NULL: it is destroyed
  uint64_t after;                // number before its first when it was made
  uint64_t last;                 // of its collectives, counted from 1 on
  uint64_t parts;  // bit i: part i is in it; the last one: or later ones
  pestle_comm_entry_t* entries;
  size_t count, room;
};

enum { MOST_PARTS = 64 };

static uint64_t bit_of(const pestle_comm_part_t* part) {
  uint32_t bit =
      part->number < MOST_PARTS ? part->number : (uint32_t)MOST_PARTS - 1;
  return UINT64_C(1) << bit;
}

// --- Life ---

static void destroy_graph(pestle_comm_recording_t* r) {
  pestle_mutex_lock(&r->mutex);
  if (r->graph) {
    pestle_device_api(r->device)->graph_destroy(r->device->backend->self,
                                                r->graph);
  }
  r->graph = NULL;
  pestle_mutex_unlock(&r->mutex);
}

static void release(pestle_comm_recording_t* r) {
  if (!pestle_refcount_release(&r->refcount)) return;
  pestle_mutex_deinit(&r->mutex);
  pestle_dealloc(r->allocator, r->entries, r->room * sizeof(*r->entries));
  pestle_dealloc(r->allocator, r, sizeof(*r));
}

void pestle_comm_recording_destroy(pestle_comm_recording_t* r) {
  if (!r) return;
  destroy_graph(r);
  release(r);
}

bool pestle_comm_recording_is_there(pestle_comm_recording_t* r) {
  pestle_mutex_lock(&r->mutex);
  bool there = r->graph != NULL;
  pestle_mutex_unlock(&r->mutex);
  return there;
}

void pestle_comm_recordings_end(pestle_device_comm_t* c) {
  while (c->recordings) {
    pestle_comm_recording_t* r = c->recordings;
    c->recordings = r->next;
    pestle_comm_recording_destroy(r);
  }
}

// Under the lock: lets go of those that their frames have destroyed.
static void drop_gone(pestle_device_comm_t* c) {
  pestle_comm_recording_t** at = &c->recordings;
  while (*at) {
    pestle_comm_recording_t* r = *at;
    if (pestle_comm_recording_is_there(r)) {
      at = &r->next;
      continue;
    }
    *at = r->next;
    release(r);
  }
}

// --- Making one ---

bool pestle_device_comm_records(const pestle_world_t* world,
                                const pestle_device_t* device) {
  const pestle_device_comm_t* c = pestle_device_comm_find(world, device);
  return c && c->api && PESTLE_HAS(c->api, record) && !world->checks &&
         world->records;
}

static pestle_status_t say(const pestle_device_comm_t* c, uint64_t parts,
                           pestle_device_stream_t* stream,
                           pestle_comm_record_t what, uint64_t sequence) {
  for (pestle_comm_part_t* p = c->parts; p; p = p->next) {
    if (!p->comm || !(parts & bit_of(p))) continue;
    PESTLE_TRY(
        c->api->record(c->self, p->comm, stream, (int32_t)what, sequence));
  }
  return NULL;
}

pestle_status_t pestle_device_comm_record(pestle_world_t* world,
                                          const pestle_queue_t* queue,
                                          pestle_comm_recording_t** out) {
  pestle_device_comm_t* c = pestle_device_comm_find(world, queue->device);
  pestle_allocator_t allocator = world->context->core.allocator;
  *out = NULL;
  pestle_comm_recording_t* r = pestle_alloc_zero(allocator, sizeof(*r));
  if (!r) return PESTLE_OOM();
  pestle_refcount_init(&r->refcount);
  pestle_mutex_init(&r->mutex);
  r->allocator = allocator;
  r->device = queue->device;
  r->after = world->sequence;
  pestle_status_t status =
      say(c, UINT64_MAX, queue->stream, PESTLE_COMM_RECORDS, r->after);
  if (status) {
    release(r);
    return status;
  }
  pestle_mutex_lock(&c->mutex);
  c->recorded = r;
  pestle_mutex_unlock(&c->mutex);
  *out = r;
  return NULL;
}

void pestle_device_comm_recorded(pestle_world_t* world,
                                 pestle_comm_recording_t* r,
                                 pestle_device_graph_t* graph) {
  pestle_device_comm_t* c = pestle_device_comm_find(world, r->device);
  pestle_mutex_lock(&c->mutex);
  c->recorded = NULL;
  drop_gone(c);
  r->last = world->sequence - r->after;
  world->sequence = r->after;  // until it is launched
  c->beside = 0;               // the recording waits for its own
  if (c->latest > r->after) c->latest = r->after;
  r->graph = graph;
  if (graph) {
    pestle_refcount_retain(&r->refcount);
    r->next = c->recordings;
    c->recordings = r;
  }
  pestle_mutex_unlock(&c->mutex);
  if (!graph) release(r);
}

static bool has_room(pestle_comm_recording_t* r) {
  if (r->count < r->room) return true;
  size_t room = r->room ? 2 * r->room : 16;
  pestle_comm_entry_t* entries =
      pestle_alloc(r->allocator, room * sizeof(*entries));
  if (!entries) return false;
  if (r->count) memcpy(entries, r->entries, r->count * sizeof(*entries));
  pestle_dealloc(r->allocator, r->entries, r->room * sizeof(*entries));
  r->entries = entries;
  r->room = room;
  return true;
}

pestle_status_t pestle_comm_recording_add(pestle_device_comm_t* c,
                                          const pestle_comm_part_t* part,
                                          const pestle_collective_t* op) {
  pestle_comm_recording_t* r = c->recorded;
  if (!r) return NULL;
  if (!has_room(r)) return PESTLE_OOM();
  pestle_comm_entry_t* e = &r->entries[r->count++];
  e->op = *op;
  e->op.sequence -= r->after;
  (void)snprintf(e->name, sizeof(e->name), "%s", op->name);
  r->parts |= bit_of(part);
  return NULL;
}

// --- Launches ---

// Numbers grow with the entries.
const pestle_comm_entry_t* pestle_comm_recording_entry(
    const pestle_device_comm_t* c, uint64_t sequence) {
  const pestle_comm_recording_t* r = c->launched;
  if (!r || sequence <= c->launched_after) return NULL;
  uint64_t number = sequence - c->launched_after;
  size_t begin = 0, end = r->count;
  while (begin < end) {
    size_t at = begin + (end - begin) / 2;
    if (r->entries[at].op.sequence < number) {
      begin = at + 1;
    } else {
      end = at;
    }
  }
  bool found = begin < r->count && r->entries[begin].op.sequence == number;
  return found ? &r->entries[begin] : NULL;
}

static pestle_status_t launch_graph(pestle_comm_recording_t* r,
                                    const pestle_queue_t* queue) {
  pestle_mutex_lock(&r->mutex);
  pestle_status_t status =
      r->graph ? pestle_device_said(
                     r->device,
                     pestle_device_api(r->device)->graph_launch(
                         r->device->backend->self, r->graph, queue->stream))
               : PESTLE_ERROR(UNAVAILABLE, "its world has ended");
  pestle_mutex_unlock(&r->mutex);
  return status;
}

pestle_status_t pestle_device_comm_launch(pestle_world_t* world,
                                          const pestle_queue_t* queue,
                                          pestle_comm_recording_t* r) {
  pestle_device_comm_t* c = pestle_device_comm_find(world, queue->device);
  uint64_t after = world->sequence;
  PESTLE_TRY(pestle_device_comm_check(world));
  PESTLE_TRY(say(c, r->parts, queue->stream, PESTLE_COMM_LAUNCHES, after));
  pestle_mutex_lock(&c->mutex);
  c->launched = r;
  c->launched_after = after;
  if (r->last) c->latest = after + r->last;
  pestle_mutex_unlock(&c->mutex);
  world->sequence = after + r->last;
  PESTLE_TRY(launch_graph(r, queue));
  return say(c, r->parts, queue->stream, PESTLE_COMM_LAUNCHED, world->sequence);
}
