// SPDX-License-Identifier: Apache-2.0
#include "runtime/device_comm.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/mem.h"
#include "runtime/combine.h"
#include "runtime/device_comm_state.h"
#include "runtime/host_transport.h"
#include "runtime/process_transport.h"

enum {
  LOOK_MS = 20  // between two looks at what is queued
};
// A transport that has lost a peer says so before the ranks' own has noticed, which
// then says whom.
#define NAMED_WITHIN_NS INT64_C(1500000000)
#define START_NS INT64_C(60000000000)

static pestle_allocator_t allocator_of(const pestle_world_t* world) {
  return world->context->core.allocator;
}

static bool has_ended(const pestle_world_t* world) {
  pestle_status_t status = pestle_world_status(world);
  bool ended = status != NULL;
  pestle_status_release(status);
  return ended;
}

// --- The watch ---

// Under the lock.
static void abort_parts(pestle_device_comm_t* c, const char* reason) {
  if (c->aborted) return;
  c->aborted = true;
  for (pestle_comm_part_t* p = c->parts; p; p = p->next) {
    if (p->comm) c->api->abort(c->self, p->comm, reason);
  }
  pestle_comm_recordings_end(c);
}

// Of a number that is too old to be known, or was never queued: what is queued last.
static const pestle_comm_entry_t* entry_of(const pestle_device_comm_t* c,
                                           uint64_t sequence) {
  const pestle_comm_entry_t* e = pestle_comm_recording_entry(c, sequence);
  if (e) return e;
  e = &c->entries[sequence % PESTLE_COMM_KEPT];
  return e->op.sequence == sequence ? e
                                    : &c->entries[c->latest % PESTLE_COMM_KEPT];
}

static void end_late(pestle_device_comm_t* c, uint64_t sequence) {
  pestle_world_t* world = c->world;
  pestle_collective_t op = entry_of(c, sequence)->op;
  op.name = entry_of(c, sequence)->name;
  op.sequence = sequence;
  pestle_status_release(
      world->store ? pestle_process_late((pestle_process_comm_t*)world->comm,
                                         &op, PESTLE_PROCESS_DEVICE)
                   : pestle_host_late(world->comm, &op));
}

static void look_at_failure(pestle_device_comm_t* c, pestle_comm_part_t* p) {
  pestle_status_t status = c->api->poll(c->self, p->comm);
  int64_t now = pestle_clock_ns();
  if (!status) return;
  if (!p->broken_ns) p->broken_ns = now;
  if (now - p->broken_ns > NAMED_WITHIN_NS)
    pestle_world_abort(c->world, status);
  pestle_status_release(status);
}

static void look_at_progress(pestle_device_comm_t* c, pestle_comm_part_t* p,
                             uint64_t* begun, uint64_t* done) {
  uint64_t b, d;
  int64_t now = pestle_clock_ns();
  c->api->progress(c->self, p->comm, &b, &d);
  if (*begun < b) *begun = b;
  if (*done < d) *done = d;
  if (b <= d) {
    p->begun = 0;
  } else if (p->begun != b) {
    p->begun = b;
    p->since_ns = now;
  } else if (now - p->since_ns > c->world->deadline_ns) {
    end_late(c, b);
  }
}

// What ranks tell each other of this one.
static void tell(pestle_device_comm_t* c, uint64_t begun, uint64_t done) {
  if (done > begun) begun = done;
  if (begun <= c->host_at || (begun == c->told_begun && done == c->told_done)) {
    return;
  }
  c->told_begun = begun;
  c->told_done = done;
  pestle_world_tell(c->world, begun, done);
}

// The transport finds out by this that its abort hangs.
static void look_at_end(const pestle_device_comm_t* c) {
  for (const pestle_comm_part_t* p = c->parts; p; p = p->next) {
    if (p->comm) pestle_status_release(c->api->poll(c->self, p->comm));
  }
}

static void look(pestle_device_comm_t* c) {
  uint64_t begun = 0, done = 0;
  if (c->aborted) {
    look_at_end(c);
    return;
  }
  for (pestle_comm_part_t* p = c->parts; p; p = p->next) {
    if (!p->comm) continue;
    look_at_failure(c, p);
    look_at_progress(c, p, &begun, &done);
  }
  tell(c, begun, done);
  // The first of a kind connects ranks while it is queued.
  if (c->entered_ns &&
      pestle_clock_ns() - c->entered_ns > c->world->deadline_ns) {
    end_late(c, c->latest);
  }
  pestle_status_t status = pestle_world_status(c->world);
  if (status) abort_parts(c, pestle_status_message(status));
  pestle_status_release(status);
}

static void watch(void* user) {
  pestle_device_comm_t* c = user;
  pestle_mutex_lock(&c->mutex);
  while (!c->stop) {
    if (!c->running) {
      pestle_cond_wait(&c->changed, &c->mutex);
      continue;
    }
    look(c);
    (void)pestle_cond_wait_until(
        &c->changed, &c->mutex, pestle_clock_ns() + (int64_t)LOOK_MS * 1000000);
  }
  pestle_mutex_unlock(&c->mutex);
}

// --- Life ---

static void destroy(pestle_device_comm_t* c) {
  pestle_allocator_t allocator = allocator_of(c->world);
  pestle_mutex_lock(&c->mutex);
  c->stop = true;
  pestle_cond_signal(&c->changed);
  pestle_mutex_unlock(&c->mutex);
  if (c->started) pestle_thread_join(&c->thread);
  pestle_status_t ended = pestle_world_status(c->world);
  if (ended) abort_parts(c, pestle_status_message(ended));
  pestle_status_release(ended);
  pestle_comm_recordings_end(c);
  while (c->parts) {
    pestle_comm_part_t* p = c->parts;
    c->parts = p->next;
    if (p->comm) c->api->destroy(c->self, p->comm);
    pestle_dealloc(allocator, p, sizeof(*p));
  }
  pestle_cond_deinit(&c->changed);
  pestle_mutex_deinit(&c->mutex);
  pestle_vec_deinit(&c->plans);
  pestle_dealloc(allocator, c, sizeof(*c));
}

void pestle_device_comms_destroy(pestle_world_t* world) {
  while (world->device_comms) {
    pestle_device_comm_t* c = world->device_comms;
    world->device_comms = c->next;
    destroy(c);
  }
  pestle_free_aligned(allocator_of(world), world->stage, world->stage_size, 64);
  world->stage = NULL;
}

static pestle_status_t add_part(pestle_device_comm_t* c, uint64_t rows,
                                pestle_comm_t* comm) {
  pestle_comm_part_t* p = pestle_alloc_zero(allocator_of(c->world), sizeof(*p));
  if (!p) {
    if (comm) c->api->destroy(c->self, comm);
    return PESTLE_OOM();
  }
  p->rows = rows;
  p->comm = comm;
  pestle_mutex_lock(&c->mutex);
  p->number = c->part_count++;
  pestle_comm_part_t** at = &c->parts;
  while (*at)
    at = &(*at)->next;
  *at = p;
  pestle_mutex_unlock(&c->mutex);
  return NULL;
}

// --- Joining ---

// What each rank tells the others of its device.
typedef struct card_t {
  uint8_t id[128];
  uint64_t id_size;
  char transport[16];  // name of the backend, or "host"
  char device[64];     // what is the same for one device in all processes
  char name[64];       // as this process calls it
  char failure[320];   // why this rank cannot meet others so
} card_t;

static void describe(const pestle_device_t* device, card_t* card) {
  const pestle_device_api_t* api = pestle_device_api(device);
  (void)snprintf(card->name, sizeof(card->name), "%s", device->name);
  for (uint32_t i = 0; PESTLE_HAS(api, property); ++i) {
    pestle_device_property_t p = {.struct_size = sizeof(p)};
    pestle_status_t status =
        api->property(device->backend->self, device->local_index, i, &p);
    bool end = status != NULL;
    pestle_status_release(status);
    if (end) break;
    if (!strcmp(p.name, "uuid"))
      (void)snprintf(card->device, sizeof(card->device), "%.63s", p.text);
  }
}

// A collective of all ranks by their own transport.
static pestle_status_t meet_by_host(pestle_device_comm_t* c,
                                    pestle_collective_t op) {
  pestle_world_t* world = c->world;
  size_t bytes = (size_t)world->size * sizeof(int32_t);
  int32_t* ranks = pestle_alloc(allocator_of(world), bytes);
  if (!ranks) return PESTLE_OOM();
  for (int32_t i = 0; i < world->size; ++i)
    ranks[i] = i;
  op.struct_size = sizeof(op);
  op.rank_count = (uint32_t)world->size;
  op.ranks = ranks;
  op.source = op.target = -1;
  op.sequence = c->host_at = pestle_world_next(world);
  pestle_status_t status =
      world->api->enqueue(world->transport, world->comm, NULL, &op, 1);
  pestle_dealloc(allocator_of(world), ranks, bytes);
  return status;
}

static pestle_status_t exchange_cards(pestle_device_comm_t* c, card_t* own,
                                      card_t* all) {
  return meet_by_host(
      c, (pestle_collective_t){.kind = PESTLE_COLLECTIVE_ALL_GATHER,
                               .dtype = PESTLE_U8,
                               .send = own,
                               .receive = all,
                               .count = sizeof(*own),
                               .name = "the ranks' devices"});
}

// Of processes the store has compared it.
static pestle_status_t compare_plan(pestle_device_comm_t* c,
                                    const pestle_executable_t* e) {
  const pestle_plan_header_t* h = pestle_plan_header(e->plan);
  char name[PESTLE_COMM_NAME];
  if (c->world->store || !c->api) return NULL;
  (void)snprintf(name, sizeof(name), "plan '%.40s' (%016" PRIx64 ")",
                 pestle_plan_text(e->plan, h->name), h->checksum);
  return meet_by_host(
      c, (pestle_collective_t){.kind = PESTLE_COLLECTIVE_ALL_TO_ALL,
                               .dtype = PESTLE_U8,
                               .hash = h->checksum,
                               .name = name});
}

// All ranks see the same cards, and so find the same.
static pestle_status_t check_cards(const pestle_world_t* world,
                                   const card_t* all) {
  for (int32_t i = 0; i < world->size; ++i) {
    if (!*all[i].failure) continue;
    return PESTLE_ERROR(UNAVAILABLE, "rank %d on device %s: %s", (int)i,
                        all[i].name, all[i].failure);
  }
  for (int32_t i = 1; i < world->size; ++i) {
    if (strcmp(all[i].transport, all[0].transport) != 0) {
      return PESTLE_ERROR(
          INCOMPATIBLE,
          "rank 0 (%s) meets others by %s and rank %d (%s) by %s; set "
          "PESTLE_WORLD_TRANSPORT alike, and run all on devices of one kind",
          all[0].name, all[0].transport, (int)i, all[i].name, all[i].transport);
    }
  }
  if (!strcmp(all[0].transport, "host")) return NULL;
  for (int32_t i = 1; i < world->size; ++i) {
    for (int32_t k = 0; k < i; ++k) {
      if (!*all[i].device || strcmp(all[i].device, all[k].device) != 0)
        continue;
      return PESTLE_ERROR(
          INVALID_ARGUMENT,
          "ranks %d and %d both run on the device with uuid %s (%s, %s), and "
          "%s has one rank a device; give each its own (--device), or set "
          "PESTLE_WORLD_TRANSPORT=host",
          (int)k, (int)i, all[i].device, all[k].name, all[i].name,
          all[i].transport);
    }
  }
  return NULL;
}

static pestle_status_t join(pestle_device_comm_t* c, const card_t* first) {
  pestle_world_t* world = c->world;
  // All have just met: what is waited for is the transport's own start, seconds.
  int64_t ns = world->deadline_ns > START_NS ? world->deadline_ns : START_NS;
  if (ns > world->create_deadline_ns) ns = world->create_deadline_ns;
  int64_t ms = (ns + 999999) / 1000000;
  pestle_comm_options_t options = {.struct_size = sizeof(options),
                                   .id = first->id,
                                   .id_size = (size_t)first->id_size,
                                   .rank = world->rank,
                                   .size = world->size,
                                   .deadline_ms = ms};
  pestle_comm_t* comm = NULL;
  pestle_status_t status =
      c->api->create(c->self, c->device->local_index, &options, &comm);
  if (status) return status;
  return add_part(c, 0, comm);
}

// Of rank 0 the name of the communicator; of others whether the transport would start.
static void make_id(const pestle_device_comm_t* c, card_t* own) {
  size_t size = c->world->rank ? 0 : sizeof(own->id);
  pestle_status_t status = c->api->id(c->self, own->id, &size);
  pestle_status_code_t code = pestle_status_code(status);
  bool expected =
      !status || (c->world->rank && code == PESTLE_STATUS_RESOURCE_EXHAUSTED);
  own->id_size = size;
  if (!expected) {
    (void)snprintf(own->failure, sizeof(own->failure), "%.319s",
                   pestle_status_message(status));
  }
  pestle_status_release(status);
}

static pestle_status_t meet(pestle_device_comm_t* c) {
  pestle_world_t* world = c->world;
  size_t bytes = (size_t)world->size * sizeof(card_t);
  card_t own;
  pestle_status_t status = NULL;
  memset(&own, 0, sizeof(own));
  describe(c->device, &own);
  (void)snprintf(own.transport, sizeof(own.transport), "%s",
                 c->api ? c->device->backend->name : "host");
  if (c->api) make_id(c, &own);
  card_t* all = pestle_alloc(allocator_of(world), bytes);
  if (!all) return PESTLE_OOM();
  status = exchange_cards(c, &own, all);
  if (!status) status = check_cards(world, all);
  if (!status && c->api) status = join(c, &all[0]);
  pestle_dealloc(allocator_of(world), all, bytes);
  return status;
}

static pestle_status_t make(pestle_world_t* world, pestle_device_t* device,
                            pestle_device_comm_t** out) {
  pestle_device_comm_t* c = pestle_alloc_zero(allocator_of(world), sizeof(*c));
  *out = c;
  if (!c) return PESTLE_OOM();
  c->world = world;
  c->device = device;
  if (PESTLE_HAS(device->backend, collective) && !world->by_host) {
    c->api = device->backend->collective;
    c->self = device->backend->self;
  }
  pestle_vec_init(&c->plans, allocator_of(world));
  pestle_mutex_init(&c->mutex);
  pestle_cond_init(&c->changed);
  pestle_status_t status = meet(c);
  if (!status && c->api && !PESTLE_HAS(c->api, progress)) {
    status = PESTLE_ERROR(UNSUPPORTED,
                          "the transport of backend '%s' does not say how far "
                          "its streams have come; set "
                          "PESTLE_WORLD_TRANSPORT=host",
                          device->backend->name);
  }
  if (!status && c->api) {
    status = pestle_thread_start(watch, c, "pestle watch", &c->thread);
    c->started = !status;
  }
  if (status) {
    destroy(c);
    *out = NULL;
    return status;
  }
  c->next = world->device_comms;
  world->device_comms = c;
  return NULL;
}

// --- Groups ---

uint64_t pestle_collective_rows_hash(const pestle_executable_t* e,
                                     const pestle_plan_collective_t* k) {
  pestle_hasher_t hasher;
  if (k->kind == PESTLE_PLAN_PERMUTE || !k->group_count || !k->group_size)
    return 0;
  const int32_t* rows = e->groups + k->first_group;
  const pestle_plan_header_t* h = pestle_plan_header(e->plan);
  bool whole = k->group_count == 1 &&
               k->group_size == (uint32_t)(h->replicas * h->partitions);
  for (uint32_t i = 0; i < k->group_size && whole; ++i)
    whole = rows[i] == (int32_t)i;
  if (whole) return 0;
  pestle_hasher_init(&hasher);
  pestle_hasher_update(&hasher, &k->group_size, sizeof(k->group_size));
  pestle_hasher_update(&hasher, rows,
                       (size_t)k->group_count * k->group_size * sizeof(*rows));
  return pestle_hasher_finish(&hasher).low | 1;
}

static pestle_comm_part_t* find_part(const pestle_device_comm_t* c,
                                     uint64_t rows) {
  pestle_comm_part_t* p = c->parts;
  while (p && p->rows != rows)
    p = p->next;
  return p;
}

static pestle_status_t split(pestle_device_comm_t* c,
                             const pestle_executable_t* e,
                             const pestle_plan_collective_t* k, uint64_t rows) {
  int32_t color = -1, key = 0;
  pestle_comm_t* comm = NULL;
  for (uint32_t r = 0; r < k->group_count; ++r) {
    const int32_t* row = e->groups + k->first_group + (size_t)r * k->group_size;
    for (uint32_t i = 0; i < k->group_size; ++i) {
      if (row[i] != c->world->rank) continue;
      color = (int32_t)r;
      key = (int32_t)i;
    }
  }
  if (!c->api->split) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "the transport of backend '%s' has no groups; set "
                        "PESTLE_WORLD_TRANSPORT=host",
                        c->device->backend->name);
  }
  PESTLE_TRY(c->api->split(c->self, c->parts->comm, color, key, &comm));
  return add_part(c, rows, comm);
}

// All ranks split alike: they have the same plans, and meet them in the same order.
static pestle_status_t make_groups(pestle_device_comm_t* c,
                                   const pestle_executable_t* e) {
  const pestle_plan_header_t* h = pestle_plan_header(e->plan);
  for (size_t i = 0; i < c->plans.size; ++i) {
    if (c->plans.data[i] == h->checksum) return NULL;
  }
  PESTLE_TRY(compare_plan(c, e));
  for (uint64_t i = 0; c->api && i < h->collectives.count; ++i) {
    uint64_t rows = pestle_collective_rows_hash(e, &e->collectives[i]);
    if (rows && !find_part(c, rows))
      PESTLE_TRY(split(c, e, &e->collectives[i], rows));
  }
  return pestle_vec_push(&c->plans, h->checksum) ? NULL : PESTLE_OOM();
}

pestle_device_comm_t* pestle_device_comm_find(const pestle_world_t* world,
                                              const pestle_device_t* device) {
  pestle_device_comm_t* c = world->device_comms;
  while (c && c->device != device)
    c = c->next;
  return c;
}

pestle_status_t pestle_device_comm_prepare(pestle_world_t* world,
                                           const pestle_executable_t* e) {
  pestle_device_comm_t* c = pestle_device_comm_find(world, e->home);
  if (!c) PESTLE_TRY(make(world, e->home, &c));
  return make_groups(c, e);
}

// --- Runs ---

void pestle_device_comm_enter(pestle_world_t* world) {
  for (pestle_device_comm_t* c = world ? world->device_comms : NULL; c;
       c = c->next) {
    pestle_mutex_lock(&c->mutex);
    ++c->running;
    pestle_cond_signal(&c->changed);
    pestle_mutex_unlock(&c->mutex);
  }
}

pestle_status_t pestle_device_comm_check(const pestle_world_t* world) {
  if (!world || !world->device_comms) return NULL;
  return pestle_status_annotate(pestle_world_status(world),
                                "in rank %d after collective %" PRIu64,
                                (int)world->rank, world->sequence);
}

pestle_status_t pestle_device_comm_leave(pestle_world_t* world,
                                         pestle_status_t status) {
  if (!world || !world->device_comms) return status;
  uint64_t done = 0;
  for (pestle_device_comm_t* c = world->device_comms; c; c = c->next) {
    pestle_mutex_lock(&c->mutex);
    --c->running;
    c->launched = NULL;
    if (!c->running && c->api) {
      if (!status) done = c->latest;  // the stream was waited for
      // What others have said, and what this rank is seen at until its next run.
      if (done > c->host_at) tell(c, done, done);
    }
    pestle_mutex_unlock(&c->mutex);
  }
  pestle_status_t ended = pestle_device_comm_check(world);
  if (!ended) return status;
  pestle_status_release(status);
  return ended;
}

// --- One step ---

static size_t aligned(size_t size) {
  return pestle_align_up(size, 64);
}

// Bytes that a collective sends, and that it receives.
static void sizes_of(const pestle_collective_t* op, size_t* send,
                     size_t* receive) {
  size_t each =
      (size_t)op->count * pestle_dtype_size((pestle_dtype_t)op->dtype);
  size_t n = op->rank_count;
  *send = *receive = each;
  if (op->kind == PESTLE_COLLECTIVE_ALL_GATHER) *receive = each * n;
  if (op->kind == PESTLE_COLLECTIVE_REDUCE_SCATTER) *send = each * n;
  if (op->kind == PESTLE_COLLECTIVE_ALL_TO_ALL) *send = *receive = each * n;
}

static pestle_status_t reserve(pestle_world_t* world,
                               const pestle_queue_t* queue, size_t size) {
  if (world->stage_size >= size) return NULL;
  PESTLE_TRY(pestle_queue_wait(queue));
  pestle_free_aligned(allocator_of(world), world->stage, world->stage_size, 64);
  world->stage_size = 0;
  world->stage = pestle_alloc_aligned(allocator_of(world), size, 64);
  if (!world->stage) return PESTLE_OOM();
  world->stage_size = size;
  return NULL;
}

static pestle_status_t through_host(pestle_world_t* world,
                                    const pestle_queue_t* queue,
                                    pestle_collective_t* ops, size_t count,
                                    bool ordered) {
  size_t size = 0, send, receive;
  void* targets[PESTLE_COLLECTIVES_AT_ONCE];
  for (size_t i = 0; i < count; ++i) {
    sizes_of(&ops[i], &send, &receive);
    size += aligned(send) + aligned(receive);
  }
  PESTLE_TRY(reserve(world, queue, size));
  char* at = world->stage;
  for (size_t i = 0; i < count; ++i) {
    sizes_of(&ops[i], &send, &receive);
    PESTLE_TRY(pestle_queue_to_host(queue, ops[i].send, at, send));
    ops[i].send = at;
    at += aligned(send);
    targets[i] = ops[i].receive;
    ops[i].receive = at;
    at += aligned(receive);
  }
  PESTLE_TRY(pestle_queue_wait(queue));
  PESTLE_TRY(pestle_world_enqueue(world, ops, count, ordered));
  for (size_t i = 0; i < count; ++i) {
    sizes_of(&ops[i], &send, &receive);
    PESTLE_TRY(
        pestle_queue_from_host(queue, ops[i].receive, targets[i], receive));
  }
  return NULL;
}

static pestle_status_t note(pestle_device_comm_t* c,
                            const pestle_comm_part_t* part,
                            const pestle_collective_t* op) {
  pestle_mutex_lock(&c->mutex);
  pestle_comm_entry_t* e = &c->entries[op->sequence % PESTLE_COMM_KEPT];
  e->op = *op;
  (void)snprintf(e->name, sizeof(e->name), "%s", op->name);
  c->latest = op->sequence;
  c->entered_ns = pestle_clock_ns();
  pestle_status_t status = pestle_comm_recording_add(c, part, op);
  pestle_mutex_unlock(&c->mutex);
  return status;
}

static void leave(pestle_device_comm_t* c) {
  pestle_mutex_lock(&c->mutex);
  c->entered_ns = 0;
  pestle_mutex_unlock(&c->mutex);
}

static void note_host(pestle_device_comm_t* c, uint64_t sequence) {
  pestle_mutex_lock(&c->mutex);
  c->host_at = sequence;
  pestle_mutex_unlock(&c->mutex);
}

// Of two members either order gives the same bits.
static bool keeps_order(const pestle_collective_t* op) {
  bool combines = op->kind == PESTLE_COLLECTIVE_ALL_REDUCE ||
                  op->kind == PESTLE_COLLECTIVE_REDUCE_SCATTER;
  return !combines || op->rank_count <= 2 ||
         !pestle_dtype_is((pestle_dtype_t)op->dtype, PESTLE_KIND_FLOAT);
}

// Heads alone, by the ranks' own transport: what differs is found before the device's
// mixes it, or waits for what never comes.
static pestle_status_t compare(const pestle_device_comm_t* c,
                               const pestle_collective_t* op) {
  pestle_world_t* world = c->world;
  pestle_collective_t heads = pestle_collective_heads(op);
  if (op->kind == PESTLE_COLLECTIVE_PERMUTE) return NULL;  // no members
  return world->api->enqueue(world->transport, world->comm, NULL, &heads, 1);
}

static pestle_status_t queue_ops(pestle_device_comm_t* c,
                                 const pestle_queue_t* queue,
                                 const pestle_collective_t* ops, size_t count,
                                 uint64_t rows, bool beside) {
  const pestle_comm_part_t* p = find_part(c, rows);
  if (!p || !p->comm) return NULL;  // this rank is in none of the rows
  if (c->world->checks) PESTLE_TRY(compare(c, ops));
  pestle_status_t status = note(c, p, ops);
  if (!status) {
    status = beside
                 ? c->api->enqueue_beside(c->self, p->comm, queue->stream, ops,
                                          count)
                 : c->api->enqueue(c->self, p->comm, queue->stream, ops, count);
  }
  if (beside) c->beside = ops->sequence;
  leave(c);
  if (pestle_status_code(status) != PESTLE_STATUS_DEADLINE_EXCEEDED)
    return status;
  pestle_status_release(status);
  pestle_mutex_lock(&c->mutex);
  if (!has_ended(c->world)) end_late(c, ops->sequence);
  pestle_mutex_unlock(&c->mutex);
  return pestle_device_comm_check(c->world);
}

bool pestle_device_comm_overlaps(const pestle_world_t* world,
                                 const pestle_device_t* device) {
  const pestle_device_comm_t* c =
      world && world->overlaps ? pestle_device_comm_find(world, device) : NULL;
  return c && c->api && PESTLE_HAS(c->api, enqueue_beside) &&
         PESTLE_HAS(c->api, wait_beside);
}

pestle_status_t pestle_device_comm_wait(const pestle_world_t* world,
                                        const pestle_queue_t* queue,
                                        uint64_t number) {
  const pestle_device_comm_t* c = pestle_device_comm_find(world, queue->device);
  return c->api->wait_beside(c->self, c->parts->comm, queue->stream, number);
}

pestle_status_t pestle_device_comm_wait_all(const pestle_world_t* world,
                                            const pestle_queue_t* queue) {
  const pestle_device_comm_t* c = pestle_device_comm_find(world, queue->device);
  if (!c || !c->beside) return NULL;
  return pestle_device_comm_wait(world, queue, c->beside);
}

pestle_status_t pestle_device_comm_enqueue(pestle_world_t* world,
                                           const pestle_queue_t* queue,
                                           const pestle_collective_t* ops,
                                           size_t count, uint64_t groups,
                                           bool ordered, bool beside) {
  pestle_device_comm_t* c = pestle_device_comm_find(world, queue->device);
  pestle_collective_t copies[PESTLE_COLLECTIVES_AT_ONCE];
  if (!c) {
    return PESTLE_ERROR(INTERNAL, "rank %d has not joined others on device %s",
                        (int)world->rank, queue->device->name);
  }
  PESTLE_TRY(pestle_device_comm_check(world));
  ordered |= world->ordered;
  if (c->api && (!ordered || keeps_order(ops))) {
    pestle_status_t status = queue_ops(c, queue, ops, count, groups, beside);
    if (pestle_status_code(status) != PESTLE_STATUS_UNSUPPORTED) return status;
    pestle_status_release(status);  // alike at all ranks
  }
  PESTLE_TRY(pestle_device_comm_wait_all(world, queue));
  note_host(c, ops->sequence);
  memcpy(copies, ops, count * sizeof(*ops));
  return through_host(world, queue, copies, count, ordered);
}
