// SPDX-License-Identifier: Apache-2.0
#include "pjrt/worlds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "pjrt/callback.h"
#include "pjrt/processes.h"
#include "pjrt/slots.h"

// The world of one list of devices.
typedef struct entry_t {
  struct entry_t* next;
  pestle_hash128_t devices;  // of their numbers, in order
  uint64_t number;           // of the worlds that were made: which this one is
  PJRT_Error* failure;       // why there is none
  size_t count;              // of devices of this process
  pestle_world_t* ranks[];   // theirs
} entry_t;

struct pestle_pjrt_worlds_t {
  entry_t* entries;
  uint64_t made;
  bool is_closed;
};

// The devices of a world, and those of them that are of this process.
typedef struct members_t {
  PJRT_Client* client;
  PJRT_Device* const* all;
  size_t all_count;
  size_t count;
} members_t;

static members_t members_of(PJRT_Client* client, PJRT_Device* const* all,
                            size_t all_count) {
  members_t m = {.client = client, .all = all, .all_count = all_count};
  for (size_t i = 0; i < all_count; ++i)
    m.count += pestle_pjrt_is_local(all[i]);
  return m;
}

// --- Making ---

// What a thread does for one of several ranks.
typedef struct task_t {
  pestle_thread_t thread;
  bool is_started;
  pestle_context_t* context;
  const pestle_world_options_t* options;  // of making
  int32_t rank;
  pestle_world_t* world;
  pestle_executable_t* executable;  // of preparing
  pestle_status_t status;
} task_t;

static void make_one(void* argument) {
  task_t* task = argument;
  pestle_world_options_t options = *task->options;
  options.rank = task->rank;
  task->status = pestle_world_create(task->context, &options, &task->world);
}

static void prepare_one(void* argument) {
  task_t* task = argument;
  task->status = pestle_world_prepare(task->world, task->executable);
}

// Runs |work| for all tasks at once; the first failure, all others are dropped.
static pestle_status_t do_all(task_t* tasks, size_t count,
                              void (*work)(void*)) {
  pestle_status_t first = NULL;
  for (size_t i = 1; i < count && !first; ++i) {
    first =
        pestle_thread_start(work, &tasks[i], "pestle-rank", &tasks[i].thread);
    tasks[i].is_started = !first;
  }
  if (!first && count) work(&tasks[0]);
  for (size_t i = 0; i < count; ++i) {
    if (tasks[i].is_started) pestle_thread_join(&tasks[i].thread);
    if (first)
      pestle_status_release(tasks[i].status);
    else
      first = tasks[i].status;
  }
  return first;
}

static task_t* make_tasks(size_t count) {
  return pestle_alloc_zero(pestle_allocator_system(), count * sizeof(task_t));
}

static void drop_tasks(task_t* tasks, size_t count) {
  pestle_dealloc(pestle_allocator_system(), tasks, count * sizeof(*tasks));
}

// Between processes: each rank of this one is a thread until all have come.
static pestle_status_t make_between(const members_t* m, entry_t* entry) {
  char name[96];
  (void)snprintf(name, sizeof(name), "%zu/%016" PRIx64, m->all_count,
                 entry->devices.low);
  pestle_world_options_t options = {.struct_size = sizeof(options),
                                    .size = (int32_t)m->all_count,
                                    .store = &m->client->processes->store,
                                    .name = name};
  task_t* tasks = make_tasks(m->count);
  if (!tasks)
    return pestle_status_make(PESTLE_STATUS_OUT_OF_MEMORY, __FILE__, __LINE__,
                              "out of memory");
  for (size_t i = 0, k = 0; i < m->all_count; ++i) {
    if (!pestle_pjrt_is_local(m->all[i])) continue;
    tasks[k].context = m->client->context;
    tasks[k].options = &options;
    tasks[k++].rank = (int32_t)i;
  }
  pestle_status_t status = do_all(tasks, m->count, make_one);
  for (size_t i = 0; i < m->count; ++i)
    entry->ranks[i] = tasks[i].world;
  drop_tasks(tasks, m->count);
  return status;
}

// Rank 0 stays until the others have gone.
static void leave(entry_t* entry) {
  for (size_t i = entry->count; i-- > 0;) {
    pestle_world_release(entry->ranks[i]);
    entry->ranks[i] = NULL;
  }
  pestle_pjrt_error_free(entry->failure);
  entry->failure = NULL;
}

static void make_world(const members_t* m, entry_t* entry) {
  pestle_status_t status =
      m->count < m->all_count
          ? make_between(m, entry)
          : pestle_world_create_local(m->client->context, (int32_t)m->count,
                                      NULL, entry->ranks);
  entry->number = ++m->client->worlds->made;
  if (!status) return;
  leave(entry);
  entry->failure = pestle_pjrt_error_of(status);
}

// --- Finding ---

static pestle_hash128_t hash_of(const members_t* m) {
  pestle_hasher_t hasher;
  pestle_hasher_init(&hasher);
  for (size_t i = 0; i < m->all_count; ++i) {
    int64_t id = m->all[i]->description.id;
    pestle_hasher_update(&hasher, &id, sizeof(id));
  }
  return pestle_hasher_finish(&hasher);
}

static size_t size_of(const entry_t* entry) {
  return sizeof(*entry) + entry->count * sizeof(entry->ranks[0]);
}

static bool has_ended(const entry_t* entry) {
  pestle_status_t status =
      entry->failure ? NULL : pestle_world_status(entry->ranks[0]);
  bool ended = entry->failure || status;
  pestle_status_release(status);
  return ended;
}

// The world of |m|, made where it is not there.
static PJRT_Error* find(const members_t* m, entry_t** out_entry) {
  pestle_pjrt_worlds_t* worlds = m->client->worlds;
  pestle_hash128_t hash = hash_of(m);
  entry_t* entry = worlds->entries;
  while (entry && !pestle_hash128_equal(entry->devices, hash))
    entry = entry->next;
  if (entry && m->count == m->all_count && has_ended(entry)) {
    leave(entry);
    make_world(m, entry);
  }
  if (!entry) {
    entry =
        pestle_alloc_zero(pestle_allocator_system(),
                          sizeof(*entry) + m->count * sizeof(entry->ranks[0]));
    if (!entry) return pestle_pjrt_out_of_memory();
    entry->devices = hash;
    entry->count = m->count;
    make_world(m, entry);
    entry->next = worlds->entries;
    worlds->entries = entry;
  }
  *out_entry = entry;
  return pestle_pjrt_error_copy(entry->failure);
}

// Ranks meet before the first run of |p|: nothing may be under way in their world.
static PJRT_Error* prepare(pestle_pjrt_program_t* p, const entry_t* entry) {
  if (p->prepared == entry->number) return NULL;
  for (size_t i = 0; i < p->device_count; ++i) {
    if (pestle_pjrt_in_callback(p->devices[i])) {
      return pestle_pjrt_error(
          PJRT_Error_Code_FAILED_PRECONDITION,
          "%s runs on several devices and is called for the first time by a "
          "Python callback, on whose device it would wait for the callback: "
          "call it once before",
          p->name);
    }
    // What failed says so itself.
    pestle_status_release(pestle_stream_synchronize(p->devices[i]->stream));
  }
  task_t* tasks = make_tasks(p->device_count);
  if (!tasks) return pestle_pjrt_out_of_memory();
  for (size_t i = 0; i < p->device_count; ++i) {
    tasks[i].world = entry->ranks[i];
    tasks[i].executable = p->executables[i];
  }
  pestle_status_t status = do_all(tasks, p->device_count, prepare_one);
  drop_tasks(tasks, p->device_count);
  if (!status) p->prepared = entry->number;
  return pestle_pjrt_error_of(status);
}

static PJRT_Error* take(pestle_pjrt_program_t* p, const members_t* m,
                        pestle_world_t** out_ranks) {
  entry_t* entry;
  if (m->client->worlds->is_closed) {
    return pestle_pjrt_error(PJRT_Error_Code_FAILED_PRECONDITION,
                             "the client of %s was destroyed", p->name);
  }
  PJRT_TRY(find(m, &entry));
  PJRT_TRY(prepare(p, entry));
  for (size_t i = 0; i < m->count; ++i) {
    out_ranks[i] = entry->ranks[i];
    pestle_world_retain(out_ranks[i]);
  }
  return NULL;
}

PJRT_Error* pestle_pjrt_worlds_take(pestle_pjrt_program_t* p,
                                    pestle_world_t** out_ranks) {
  PJRT_Client* client = p->client;
  members_t m = members_of(client, p->rank_devices, p->rank_count);
  if (m.count == m.all_count && client->device.is_cpu) {
    return pestle_pjrt_error_of(pestle_world_create_local(
        client->context, (int32_t)m.count, NULL, out_ranks));
  }
  pestle_mutex_lock(&client->launch);
  PJRT_Error* error = take(p, &m, out_ranks);
  pestle_mutex_unlock(&client->launch);
  return error;
}

// --- Life ---

PJRT_Error* pestle_pjrt_worlds_create(PJRT_Client* client,
                                      pestle_pjrt_worlds_t** out_worlds) {
  (void)client;
  *out_worlds =
      pestle_alloc_zero(pestle_allocator_system(), sizeof(**out_worlds));
  return *out_worlds ? NULL : pestle_pjrt_out_of_memory();
}

PJRT_Error* pestle_pjrt_worlds_open(PJRT_Client* client) {
  entry_t* entry;
  members_t m = members_of(client, client->devices, client->device_count);
  return find(&m, &entry);
}

void pestle_pjrt_worlds_close(pestle_pjrt_worlds_t* worlds) {
  if (!worlds) return;
  worlds->is_closed = true;
  while (worlds->entries) {
    entry_t* entry = worlds->entries;
    worlds->entries = entry->next;
    leave(entry);
    pestle_dealloc(pestle_allocator_system(), entry, size_of(entry));
  }
}

void pestle_pjrt_worlds_release(pestle_pjrt_worlds_t* worlds) {
  pestle_pjrt_worlds_close(worlds);
  pestle_dealloc(pestle_allocator_system(), worlds,
                 worlds ? sizeof(*worlds) : 0);
}
