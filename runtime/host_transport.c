// SPDX-License-Identifier: Apache-2.0
#include "runtime/host_transport.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/status_copy.h"
#include "runtime/context.h"

struct pestle_host_transport_t {
  pestle_refcount_t refcount;  // one a communicator
  pestle_context_t* context;
  pestle_mutex_t mutex;  // of what follows
  uint64_t ids;          // given so far
  pestle_host_shared_t* waiting;
};

// --- Life ---

pestle_allocator_t pestle_host_allocator(const pestle_host_shared_t* shared) {
  return shared->transport->context->core.allocator;
}

pestle_status_t pestle_host_transport_create(
    pestle_context_t* context, pestle_host_transport_t** out_transport) {
  pestle_host_transport_t* t =
      pestle_alloc_zero(context->core.allocator, sizeof(*t));
  *out_transport = t;
  if (!t) return PESTLE_OOM();
  pestle_refcount_init(&t->refcount);
  pestle_mutex_init(&t->mutex);
  pestle_context_retain(context);
  t->context = context;
  return NULL;
}

static void drop_transport(pestle_host_transport_t* t) {
  if (!pestle_refcount_release(&t->refcount)) return;
  pestle_context_t* context = t->context;
  pestle_mutex_deinit(&t->mutex);
  pestle_dealloc(context->core.allocator, t, sizeof(*t));
  pestle_context_release(context);
}

static size_t shared_bytes(int32_t size) {
  return sizeof(pestle_host_shared_t) +
         (size_t)size * sizeof(pestle_host_post_t);
}

static void release_shared(pestle_host_shared_t* s) {
  if (!pestle_refcount_release(&s->refcount)) return;
  pestle_host_transport_t* t = s->transport;
  pestle_status_release(s->failure);
  pestle_cond_deinit(&s->changed);
  pestle_mutex_deinit(&s->mutex);
  pestle_dealloc(pestle_host_allocator(s), s, shared_bytes(s->size));
  drop_transport(t);
}

void pestle_host_transport_release(pestle_host_transport_t* t) {
  if (!t) return;
  pestle_mutex_lock(&t->mutex);
  pestle_host_shared_t* waiting = t->waiting;
  t->waiting = NULL;
  pestle_mutex_unlock(&t->mutex);
  for (pestle_host_shared_t* next; waiting; waiting = next) {
    next = waiting->next;
    release_shared(waiting);
  }
  drop_transport(t);
}

static pestle_status_t make_id(void* self, uint8_t* out_id, size_t* size) {
  pestle_host_transport_t* t = self;
  size_t room = *size;
  *size = sizeof(t->ids);
  if (room < *size) {
    return PESTLE_ERROR(RESOURCE_EXHAUSTED,
                        "the name of a communicator has %zu bytes; there is "
                        "room for %zu",
                        *size, room);
  }
  pestle_mutex_lock(&t->mutex);
  ++t->ids;
  memcpy(out_id, &t->ids, sizeof(t->ids));
  pestle_mutex_unlock(&t->mutex);
  return NULL;
}

// Under the transport's lock: what the ranks of |id| share, made by the first.
static pestle_status_t find_shared(pestle_host_transport_t* t, uint64_t id,
                                   const pestle_comm_options_t* options,
                                   pestle_host_shared_t** out) {
  pestle_host_shared_t* s = t->waiting;
  while (s && s->id != id)
    s = s->next;
  *out = s;
  if (s && s->size != options->size) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "rank %d joins a communicator of %d ranks as one of %d",
                        (int)options->rank, (int)s->size, (int)options->size);
  }
  if (s) return NULL;
  s = *out = pestle_alloc_zero(t->context->core.allocator,
                               shared_bytes(options->size));
  if (!s) return PESTLE_OOM();
  pestle_refcount_init(&s->refcount);
  pestle_refcount_retain(&t->refcount);
  s->transport = t;
  s->id = id;
  s->size = options->size;
  s->deadline_ns = options->deadline_ms * 1000000;
  pestle_mutex_init(&s->mutex);
  pestle_cond_init(&s->changed);
  s->next = t->waiting;
  t->waiting = s;
  return NULL;
}

// Under the transport's lock: all have come.
static void stop_waiting(pestle_host_transport_t* t, pestle_host_shared_t* s) {
  pestle_host_shared_t** at = &t->waiting;
  while (*at != s)
    at = &(*at)->next;
  *at = s->next;
}

static pestle_status_t join(pestle_host_transport_t* t, uint64_t id,
                            const pestle_comm_options_t* options,
                            pestle_comm_t* comm) {
  pestle_host_shared_t* s;
  if (!id || id > t->ids) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "id() has given no communicator %" PRIu64, id);
  }
  PESTLE_TRY(find_shared(t, id, options, &s));
  if (s->posts[options->rank].joined) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "rank %d joins its communicator twice",
                        (int)options->rank);
  }
  s->posts[options->rank].joined = true;
  comm->shared = s;
  comm->rank = options->rank;
  if (++s->joined == s->size) {
    stop_waiting(t, s);  // its reference is this rank's
  } else {
    pestle_refcount_retain(&s->refcount);
  }
  return NULL;
}

static pestle_status_t create(void* self, int32_t device,
                              const pestle_comm_options_t* options,
                              pestle_comm_t** out_comm) {
  pestle_host_transport_t* t = self;
  uint64_t id = 0;
  *out_comm = NULL;
  if (device || options->id_size != sizeof(id) || options->size < 1 ||
      options->rank < 0 || options->rank >= options->size ||
      options->deadline_ms < 1 || options->deadline_ms > INT64_MAX / 2000000) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "rank %d of %d on device %d, a name of %zu bytes, a "
                        "deadline of %" PRId64
                        " ms: that is no rank of threads",
                        (int)options->rank, (int)options->size, (int)device,
                        options->id_size, options->deadline_ms);
  }
  memcpy(&id, options->id, sizeof(id));
  pestle_comm_t* comm =
      pestle_alloc_zero(t->context->core.allocator, sizeof(*comm));
  if (!comm) return PESTLE_OOM();
  atomic_init(&comm->bytes, 0);
  pestle_mutex_lock(&t->mutex);
  pestle_status_t status = join(t, id, options, comm);
  pestle_mutex_unlock(&t->mutex);
  if (status) {
    pestle_dealloc(t->context->core.allocator, comm, sizeof(*comm));
    return status;
  }
  *out_comm = comm;
  return NULL;
}

static void destroy(void* self, pestle_comm_t* comm) {
  (void)self;
  if (!comm) return;
  pestle_host_shared_t* s = comm->shared;
  pestle_dealloc(pestle_host_allocator(s), comm, sizeof(*comm));
  release_shared(s);
}

uint64_t pestle_host_comm_bytes(const pestle_comm_t* comm) {
  return atomic_load(&comm->bytes);
}

// --- Failure ---

// Under the lock. Takes |why| over.
static void end_world(pestle_host_shared_t* s, pestle_status_t why) {
  if (s->failure) {
    pestle_status_release(why);
  } else {
    s->failure = why;
  }
  pestle_cond_broadcast(&s->changed);
}

static void abort_all(void* self, pestle_comm_t* comm, const char* reason) {
  (void)self;
  if (!comm) return;
  pestle_host_shared_t* s = comm->shared;
  pestle_mutex_lock(&s->mutex);
  end_world(s, s->failure ? NULL
                          : PESTLE_ERROR(
                                UNAVAILABLE, "rank %d has ended its world: %s",
                                (int)comm->rank, reason ? reason : ""));
  pestle_mutex_unlock(&s->mutex);
}

static pestle_status_t poll(void* self, pestle_comm_t* comm) {
  (void)self;
  pestle_host_shared_t* s = comm->shared;
  pestle_mutex_lock(&s->mutex);
  pestle_status_t status = s->failure ? pestle_status_retain(s->failure) : NULL;
  pestle_mutex_unlock(&s->mutex);
  return status;
}

static uint64_t seen_at(const pestle_host_post_t* post) {
  return post->arrived > post->device_begun ? post->arrived
                                            : post->device_begun;
}

static pestle_status_t absent(const pestle_comm_t* comm,
                              const pestle_collective_t* op, int32_t rank) {
  const pestle_host_post_t* post = &comm->shared->posts[rank];
  double seconds = (double)comm->shared->deadline_ns * 1e-9;
  uint64_t at = seen_at(post);
  if (!at) {
    return PESTLE_ERROR(DEADLINE_EXCEEDED,
                        "rank %d has not come to collective %" PRIu64
                        " (%s) for %.1f s, nor to any before it",
                        (int)rank, op->sequence, op->name, seconds);
  }
  return PESTLE_ERROR(
      DEADLINE_EXCEEDED,
      "rank %d has not come to collective %" PRIu64
      " (%s) for %.1f s; it was last seen at %" PRIu64 " (%s), %.1f s ago",
      (int)rank, op->sequence, op->name, seconds, at,
      post->done == at || post->device_done == at ? "done" : "not done",
      (double)(pestle_clock_ns() - post->since_ns) * 1e-9);
}

void pestle_host_tell(pestle_comm_t* comm, uint64_t begun, uint64_t done) {
  pestle_host_post_t* post = &comm->shared->posts[comm->rank];
  pestle_mutex_lock(&comm->shared->mutex);
  post->device_begun = begun;
  post->device_done = done;
  post->since_ns = pestle_clock_ns();
  pestle_mutex_unlock(&comm->shared->mutex);
}

static bool is_member(const pestle_collective_t* op, int32_t rank) {
  if (op->kind == PESTLE_COLLECTIVE_PERMUTE)
    return rank == op->source || rank == op->target;
  for (uint32_t i = 0; i < op->rank_count; ++i) {
    if (op->ranks[i] == rank) return true;
  }
  return false;
}

// Under the lock.
static pestle_status_t late_status(const pestle_comm_t* comm,
                                   const pestle_collective_t* op) {
  const pestle_host_shared_t* s = comm->shared;
  int32_t behind = -1;
  for (int32_t i = 0; i < s->size; ++i) {
    if (i == comm->rank || !is_member(op, i)) continue;
    uint64_t at = seen_at(&s->posts[i]);
    if (at < op->sequence && (behind < 0 || at < seen_at(&s->posts[behind]))) {
      behind = i;
    }
  }
  if (behind >= 0) return absent(comm, op, behind);
  return PESTLE_ERROR(DEADLINE_EXCEEDED,
                      "all ranks have come to collective %" PRIu64
                      " (%s), and on rank %d's device it has not ended for "
                      "%.1f s",
                      op->sequence, op->name, (int)comm->rank,
                      (double)s->deadline_ns * 1e-9);
}

pestle_status_t pestle_host_late(pestle_comm_t* comm,
                                 const pestle_collective_t* op) {
  pestle_host_shared_t* s = comm->shared;
  pestle_mutex_lock(&s->mutex);
  if (!s->failure) end_world(s, late_status(comm, op));
  pestle_status_t status = pestle_status_retain(s->failure);
  pestle_mutex_unlock(&s->mutex);
  return status;
}

// --- Meeting ---

typedef enum stage_t { ARRIVED, HALF, DONE } stage_t;

static uint64_t at_stage(const pestle_host_post_t* post, stage_t stage) {
  return stage == ARRIVED ? post->arrived
                          : (stage == HALF ? post->half : post->done);
}

// Under the lock: waits until each of |ranks| is so far, or fails.
static pestle_status_t wait_for(pestle_comm_t* comm,
                                const pestle_collective_t* op,
                                const int32_t* ranks, uint32_t count,
                                stage_t stage) {
  pestle_host_shared_t* s = comm->shared;
  int64_t deadline = pestle_clock_ns() + s->deadline_ns;
  for (uint32_t i = 0; i < count;) {
    if (s->failure) {
      return pestle_status_annotate(pestle_status_retain(s->failure),
                                    "in rank %d at collective %" PRIu64 " (%s)",
                                    (int)comm->rank, op->sequence, op->name);
    }
    if (at_stage(&s->posts[ranks[i]], stage) >= op->sequence) {
      ++i;
      continue;
    }
    if (pestle_cond_wait_until(&s->changed, &s->mutex, deadline)) continue;
    if (s->failure || at_stage(&s->posts[ranks[i]], stage) >= op->sequence)
      continue;
    pestle_status_t late = absent(comm, op, ranks[i]);
    end_world(s, pestle_status_retain(late));
    return late;
  }
  return NULL;
}

static bool is_alike(const pestle_host_post_t* other,
                     const pestle_collective_t* ops, size_t count) {
  if (other->arrived != ops->sequence || other->count != count) return false;
  for (size_t i = 0; i < count; ++i) {
    const pestle_collective_t *a = &other->ops[i], *b = &ops[i];
    if (a->kind != b->kind || a->dtype != b->dtype || a->count != b->count ||
        a->reduction != b->reduction || a->hash != b->hash) {
      return false;
    }
  }
  return true;
}

// Under the lock: whether all have come to the same.
static pestle_status_t compare(pestle_comm_t* comm,
                               const pestle_collective_t* ops, size_t count,
                               const int32_t* ranks, uint32_t rank_count) {
  pestle_host_shared_t* s = comm->shared;
  for (uint32_t i = 0; i < rank_count; ++i) {
    const pestle_host_post_t* other = &s->posts[ranks[i]];
    if (is_alike(other, ops, count)) continue;
    pestle_status_t status = PESTLE_ERROR(
        INCOMPATIBLE,
        "ranks %d and %d run different programs: collective %" PRIu64
        " is %s of %" PRIu64 " elements here and %s of %" PRIu64 " there",
        (int)comm->rank, (int)ranks[i], ops->sequence, ops->name, ops->count,
        other->ops->name, other->ops->count);
    end_world(s, pestle_status_retain(status));
    return status;
  }
  return NULL;
}

// Under the lock: nobody reads after the world has ended.
static void wait_for_readers(pestle_host_shared_t* s) {
  while (s->readers)
    pestle_cond_wait(&s->changed, &s->mutex);
}

// --- One call ---

// Whom a rank reads from, and who reads from it.
typedef struct peers_t {
  const int32_t *sources, *readers;
  uint32_t source_count, reader_count;
} peers_t;

static peers_t peers_of(const pestle_collective_t* op) {
  if (op->kind == PESTLE_COLLECTIVE_PERMUTE) {
    return (peers_t){&op->source, &op->target, op->source >= 0,
                     op->target >= 0};
  }
  return (peers_t){op->ranks, op->ranks, op->rank_count, op->rank_count};
}

static pestle_status_t run_all(pestle_comm_t* comm,
                               const pestle_collective_t* ops, size_t count) {
  pestle_status_t status = NULL;
  for (size_t i = 0; i < count && !status; ++i)
    status = pestle_host_work(comm, &ops[i], i);
  return status;
}

// Under the lock, but not while it works.
static pestle_status_t meet(pestle_comm_t* comm, const pestle_collective_t* ops,
                            size_t count) {
  pestle_host_shared_t* s = comm->shared;
  pestle_host_post_t* self = &s->posts[comm->rank];
  peers_t peers = peers_of(ops);
  bool in_parts = false;
  for (size_t i = 0; i < count; ++i)
    in_parts |= pestle_host_is_shared_out(&ops[i]);
  PESTLE_TRY(wait_for(comm, ops, peers.sources, peers.source_count, ARRIVED));
  PESTLE_TRY(compare(comm, ops, count, peers.sources, peers.source_count));
  ++s->readers;
  pestle_mutex_unlock(&s->mutex);
  pestle_status_t status = run_all(comm, ops, count);
  pestle_mutex_lock(&s->mutex);
  --s->readers;
  self->half = ops->sequence;
  pestle_cond_broadcast(&s->changed);
  if (status) {
    end_world(s, pestle_status_retain(status));
    return status;
  }
  if (in_parts) {
    PESTLE_TRY(wait_for(comm, ops, peers.sources, peers.source_count, HALF));
    ++s->readers;
    pestle_mutex_unlock(&s->mutex);
    for (size_t i = 0; i < count; ++i) {
      if (pestle_host_is_shared_out(&ops[i]))
        pestle_host_gather_parts(comm, &ops[i], i);
    }
    pestle_mutex_lock(&s->mutex);
    --s->readers;
  }
  self->done = ops->sequence;
  pestle_cond_broadcast(&s->changed);
  return wait_for(comm, ops, peers.readers, peers.reader_count, DONE);
}

static pestle_status_t enqueue(void* self, pestle_comm_t* comm,
                               pestle_device_stream_t* stream,
                               const pestle_collective_t* ops, size_t count) {
  pestle_host_shared_t* s = comm->shared;
  pestle_host_post_t* own = &s->posts[comm->rank];
  (void)self;
  if (stream) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "the transport between threads has no streams");
  }
  pestle_mutex_lock(&s->mutex);
  own->ops = ops;
  own->count = count;
  own->since_ns = pestle_clock_ns();
  own->arrived = ops->sequence;
  pestle_cond_broadcast(&s->changed);
  pestle_status_t status = meet(comm, ops, count);
  if (status) wait_for_readers(s);
  pestle_mutex_unlock(&s->mutex);
  return status;
}

// --- The table ---

const pestle_collective_api_t pestle_host_collective = {
    .struct_size = sizeof(pestle_collective_api_t),
    .id = make_id,
    .create = create,
    .enqueue = enqueue,
    .poll = poll,
    .abort = abort_all,
    .destroy = destroy,
};
