// SPDX-License-Identifier: Apache-2.0
#include "runtime/world.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/require.h"
#include "base/status_copy.h"
#include "runtime/combine.h"
#include "runtime/context.h"

enum { MOST_RANKS = 1 << 16, USUAL_DEADLINE_MS = 60000 };

// Of so many bytes and more each member combines its part of the elements and the
// others copy it; below that each combines all, which takes one meeting less.
enum { SHARED_FROM = 16384 };

// Where a rank is.
typedef struct post_t {
  uint64_t arrived, half, done;  // sequence numbers
  const pestle_collective_t* ops;
  size_t count;
  int64_t since_ns;
} post_t;

struct pestle_world_shared_t {
  pestle_refcount_t refcount;  // one a rank
  pestle_context_t* context;
  int32_t size;
  int64_t deadline_ns;
  pestle_mutex_t mutex;  // of what follows
  pestle_cond_t changed;
  pestle_status_t failure;  // why it has ended
  int32_t readers;          // ranks that read what others have
  post_t posts[];
};

// --- Life ---

static size_t shared_bytes(int32_t size) {
  return sizeof(pestle_world_shared_t) + (size_t)size * sizeof(post_t);
}

static void release_shared(pestle_world_shared_t* s) {
  if (!pestle_refcount_release(&s->refcount)) return;
  pestle_context_t* context = s->context;
  pestle_status_release(s->failure);
  pestle_cond_deinit(&s->changed);
  pestle_mutex_deinit(&s->mutex);
  pestle_dealloc(context->core.allocator, s, shared_bytes(s->size));
  pestle_context_release(context);
}

void pestle_world_retain(pestle_world_t* world) {
  if (world) pestle_refcount_retain(&world->refcount);
}

void pestle_world_release(pestle_world_t* world) {
  if (!world || !pestle_refcount_release(&world->refcount)) return;
  pestle_world_shared_t* s = world->shared;
  pestle_dealloc(s->context->core.allocator, world, sizeof(*world));
  release_shared(s);
}

static pestle_status_t make_shared(pestle_context_t* context, int32_t size,
                                   int64_t deadline_ms,
                                   pestle_world_shared_t** out) {
  pestle_world_shared_t* s =
      pestle_alloc_zero(context->core.allocator, shared_bytes(size));
  *out = s;
  if (!s) return PESTLE_OOM();
  pestle_refcount_init(&s->refcount);
  pestle_context_retain(context);
  s->context = context;
  s->size = size;
  s->deadline_ns = deadline_ms * 1000000;
  pestle_mutex_init(&s->mutex);
  pestle_cond_init(&s->changed);
  return NULL;
}

static pestle_status_t make_rank(pestle_world_shared_t* s, int32_t rank,
                                 pestle_world_t** out) {
  pestle_world_t* world =
      pestle_alloc_zero(s->context->core.allocator, sizeof(*world));
  if (!world) return PESTLE_OOM();
  pestle_refcount_init(&world->refcount);
  pestle_refcount_retain(&s->refcount);
  world->shared = s;
  world->rank = rank;
  atomic_init(&world->bytes, 0);
  *out = world;
  return NULL;
}

pestle_status_t pestle_world_create_local(pestle_context_t* context,
                                          int32_t size,
                                          const pestle_world_options_t* user,
                                          pestle_world_t** out_ranks) {
  pestle_world_options_t options = {.struct_size = 0};
  pestle_world_shared_t* shared;
  PESTLE_REQUIRE(context && out_ranks, "a context and a place for the ranks");
  if (user && user->struct_size < sizeof(size_t)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_world_options_t.struct_size is not set");
  }
  if (user) {
    memcpy(&options, user,
           user->struct_size < sizeof(options) ? user->struct_size
                                               : sizeof(options));
  }
  if (size < 1 || size > MOST_RANKS) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "a world of %d ranks; expected 1 to %d", (int)size,
                        MOST_RANKS);
  }
  if (options.deadline_ms < 0 || options.deadline_ms > INT64_MAX / 2000000) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "a deadline of %" PRId64
                        " ms; expected 0 (60,000) or more",
                        options.deadline_ms);
  }
  if (!options.deadline_ms) options.deadline_ms = USUAL_DEADLINE_MS;
  memset(out_ranks, 0, (size_t)size * sizeof(*out_ranks));
  PESTLE_TRY(make_shared(context, size, options.deadline_ms, &shared));
  pestle_status_t status = NULL;
  for (int32_t i = 0; i < size && !status; ++i)
    status = make_rank(shared, i, &out_ranks[i]);
  for (int32_t i = 0; i < size && status; ++i) {
    pestle_world_release(out_ranks[i]);
    out_ranks[i] = NULL;
  }
  release_shared(shared);  // the ranks hold it
  return status;
}

int32_t pestle_world_rank(const pestle_world_t* world) {
  return world ? world->rank : 0;
}

int32_t pestle_world_size(const pestle_world_t* world) {
  return world ? world->shared->size : 0;
}

uint64_t pestle_world_bytes(const pestle_world_t* world) {
  return world ? atomic_load(&world->bytes) : 0;
}

pestle_status_t pestle_world_status(const pestle_world_t* world) {
  if (!world) return NULL;
  pestle_world_shared_t* s = world->shared;
  pestle_mutex_lock(&s->mutex);
  pestle_status_t status = s->failure ? pestle_status_retain(s->failure) : NULL;
  pestle_mutex_unlock(&s->mutex);
  return status;
}

pestle_status_t pestle_world_check(const pestle_world_t* world, int32_t size,
                                   const char* plan) {
  if (size <= 1 || pestle_world_size(world) == size) return NULL;
  if (!world) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "plan '%s' is for %d processes, each with a rank: set "
                        "pestle_run_options_t.world (pestle/world.h)",
                        plan, (int)size);
  }
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "plan '%s' is for %d processes, and the world that it is "
                      "run in has %d ranks",
                      plan, (int)size, (int)pestle_world_size(world));
}

// --- Failure ---

// Under the lock. Takes |why| over.
static void end_world(pestle_world_shared_t* s, pestle_status_t why) {
  if (s->failure) {
    pestle_status_release(why);
  } else {
    s->failure = why;
  }
  pestle_cond_broadcast(&s->changed);
}

void pestle_world_abort(pestle_world_t* world, pestle_status_t reason) {
  if (!world || !reason) return;
  pestle_world_shared_t* s = world->shared;
  pestle_mutex_lock(&s->mutex);
  end_world(
      s, s->failure
             ? NULL
             : PESTLE_ERROR(UNAVAILABLE, "rank %d has ended its world: %s",
                            (int)world->rank, pestle_status_message(reason)));
  pestle_mutex_unlock(&s->mutex);
}

static pestle_status_t absent(const pestle_world_t* world,
                              const pestle_collective_t* op, int32_t rank) {
  const post_t* post = &world->shared->posts[rank];
  double seconds = (double)world->shared->deadline_ns * 1e-9;
  if (!post->arrived) {
    return PESTLE_ERROR(DEADLINE_EXCEEDED,
                        "rank %d has not come to collective %" PRIu64
                        " (%s) for %.1f s, nor to any before it",
                        (int)rank, op->sequence, op->name, seconds);
  }
  return PESTLE_ERROR(DEADLINE_EXCEEDED,
                      "rank %d has not come to collective %" PRIu64
                      " (%s) for %.1f s; it was last seen at %" PRIu64
                      " (%s), %.1f s ago",
                      (int)rank, op->sequence, op->name, seconds, post->arrived,
                      post->done == post->arrived ? "done" : "not done",
                      (double)(pestle_clock_ns() - post->since_ns) * 1e-9);
}

// --- Meeting ---

typedef enum stage_t { ARRIVED, HALF, DONE } stage_t;

static uint64_t at_stage(const post_t* post, stage_t stage) {
  return stage == ARRIVED ? post->arrived
                          : (stage == HALF ? post->half : post->done);
}

// Under the lock: waits until each of |ranks| is so far, or fails.
static pestle_status_t wait_for(pestle_world_t* world,
                                const pestle_collective_t* op,
                                const int32_t* ranks, uint32_t count,
                                stage_t stage) {
  pestle_world_shared_t* s = world->shared;
  int64_t deadline = pestle_clock_ns() + s->deadline_ns;
  for (uint32_t i = 0; i < count;) {
    if (s->failure) {
      return pestle_status_annotate(pestle_status_retain(s->failure),
                                    "in rank %d at collective %" PRIu64 " (%s)",
                                    (int)world->rank, op->sequence, op->name);
    }
    if (at_stage(&s->posts[ranks[i]], stage) >= op->sequence) {
      ++i;
      continue;
    }
    if (pestle_cond_wait_until(&s->changed, &s->mutex, deadline)) continue;
    if (s->failure || at_stage(&s->posts[ranks[i]], stage) >= op->sequence)
      continue;
    pestle_status_t late = absent(world, op, ranks[i]);
    end_world(s, pestle_status_retain(late));
    return late;
  }
  return NULL;
}

static bool is_alike(const post_t* other, const pestle_collective_t* ops,
                     size_t count) {
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
static pestle_status_t compare(pestle_world_t* world,
                               const pestle_collective_t* ops, size_t count,
                               const int32_t* ranks, uint32_t rank_count) {
  pestle_world_shared_t* s = world->shared;
  for (uint32_t i = 0; i < rank_count; ++i) {
    const post_t* other = &s->posts[ranks[i]];
    if (is_alike(other, ops, count)) continue;
    pestle_status_t status = PESTLE_ERROR(
        INCOMPATIBLE,
        "ranks %d and %d run different programs: collective %" PRIu64
        " is %s of %" PRIu64 " elements here and %s of %" PRIu64 " there",
        (int)world->rank, (int)ranks[i], ops->sequence, ops->name, ops->count,
        other->ops->name, other->ops->count);
    end_world(s, pestle_status_retain(status));
    return status;
  }
  return NULL;
}

// Under the lock: nobody reads after the world has ended.
static void wait_for_readers(pestle_world_shared_t* s) {
  while (s->readers)
    pestle_cond_wait(&s->changed, &s->mutex);
}

// --- Work ---

static const pestle_collective_t* op_of(const pestle_world_t* world,
                                        int32_t rank, size_t index) {
  return &world->shared->posts[rank].ops[index];
}

static void note_bytes(pestle_world_t* world, uint64_t bytes) {
  atomic_fetch_add_explicit(&world->bytes, bytes, memory_order_relaxed);
}

static uint32_t place_of(const pestle_world_t* world,
                         const pestle_collective_t* op) {
  uint32_t place = 0;
  while (place < op->rank_count && op->ranks[place] != world->rank)
    ++place;
  return place;
}

static size_t size_of(const pestle_collective_t* op) {
  return pestle_dtype_size((pestle_dtype_t)op->dtype);
}

// Elements [first, first + count) of what members send, combined to |out|.
static pestle_status_t combine(pestle_world_t* world,
                               const pestle_collective_t* op, size_t index,
                               uint64_t first, uint64_t count, char* out) {
  enum { FEW = 64 };
  const void* few[FEW];
  pestle_allocator_t allocator = world->shared->context->core.allocator;
  size_t bytes = op->rank_count * sizeof(void*), size = size_of(op);
  const void** in =
      op->rank_count <= FEW ? few : pestle_alloc(allocator, bytes);
  if (!in) return PESTLE_OOM();
  for (uint32_t k = 0; k < op->rank_count; ++k) {
    in[k] = (const char*)op_of(world, op->ranks[k], index)->send + first * size;
  }
  bool known = pestle_combine((pestle_reduction_t)op->reduction,
                              (pestle_dtype_t)op->dtype, out, in,
                              op->rank_count, (size_t)count);
  if (in != few) pestle_dealloc(allocator, in, bytes);
  note_bytes(world, (op->rank_count - 1) * count * size);
  if (known) return NULL;
  return PESTLE_ERROR(
      UNSUPPORTED, "%s combines %s by reduction %d, which nobody can", op->name,
      pestle_dtype_info((pestle_dtype_t)op->dtype)->name, (int)op->reduction);
}

static bool is_shared_out(const pestle_collective_t* op) {
  return op->kind == PESTLE_COLLECTIVE_ALL_REDUCE && op->rank_count > 2 &&
         op->count * size_of(op) >= SHARED_FROM;
}

// The elements that the member at |place| combines for all.
static void part_of(const pestle_collective_t* op, uint32_t place,
                    uint64_t* first, uint64_t* end) {
  // Whole lines, so that no two write to one.
  uint64_t each = (op->count / op->rank_count + 63) / 64 * 64;
  *first = each * place < op->count ? each * place : op->count;
  *end = *first + each < op->count ? *first + each : op->count;
  if (place + 1 == op->rank_count) *end = op->count;
}

static void copy(pestle_world_t* world, const pestle_collective_t* op,
                 uint64_t to, int32_t rank, size_t index, uint64_t from,
                 uint64_t count) {
  size_t size = size_of(op);
  if (!count) return;
  memcpy((char*)op->receive + to * size,
         (const char*)op_of(world, rank, index)->send + from * size,
         (size_t)count * size);
  if (rank != world->rank) note_bytes(world, count * size);
}

static void zero(const pestle_collective_t* op) {
  size_t bytes = (size_t)op->count * size_of(op);
  if (bytes) memset(op->receive, 0, bytes);
}

static pestle_status_t work(pestle_world_t* world,
                            const pestle_collective_t* op, size_t index) {
  uint32_t place = place_of(world, op);
  uint64_t n = op->count, first = 0, end = n;
  switch ((pestle_collective_kind_t)op->kind) {
    case PESTLE_COLLECTIVE_ALL_REDUCE:
      if (is_shared_out(op)) part_of(op, place, &first, &end);
      return combine(world, op, index, first, end - first,
                     (char*)op->receive + first * size_of(op));
    case PESTLE_COLLECTIVE_REDUCE_SCATTER:
      return combine(world, op, index, n * place, n, op->receive);
    case PESTLE_COLLECTIVE_ALL_GATHER:
      for (uint32_t k = 0; k < op->rank_count; ++k)
        copy(world, op, n * k, op->ranks[k], index, 0, n);
      return NULL;
    case PESTLE_COLLECTIVE_ALL_TO_ALL:
      for (uint32_t k = 0; k < op->rank_count; ++k)
        copy(world, op, n * k, op->ranks[k], index, n * place, n);
      return NULL;
    case PESTLE_COLLECTIVE_PERMUTE:
      if (op->source < 0) {
        zero(op);
      } else {
        copy(world, op, 0, op->source, index, 0, n);
      }
      return NULL;
    case PESTLE_COLLECTIVE_BROADCAST:
      if (!op->rank_count) {
        zero(op);
      } else {
        copy(world, op, 0, op->ranks[0], index, 0, n);
      }
      return NULL;
  }
  return PESTLE_ERROR(INTERNAL, "collective %d is of no kind", (int)op->kind);
}

// Copies what other members have combined.
static void gather_parts(pestle_world_t* world, const pestle_collective_t* op,
                         size_t index) {
  size_t size = size_of(op);
  uint64_t first, end;
  for (uint32_t k = 0; k < op->rank_count; ++k) {
    if (op->ranks[k] == world->rank) continue;
    part_of(op, k, &first, &end);
    if (end == first) continue;
    memcpy(
        (char*)op->receive + first * size,
        (const char*)op_of(world, op->ranks[k], index)->receive + first * size,
        (size_t)(end - first) * size);
    note_bytes(world, (end - first) * size);
  }
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

static pestle_status_t run_all(pestle_world_t* world,
                               const pestle_collective_t* ops, size_t count) {
  pestle_status_t status = NULL;
  for (size_t i = 0; i < count && !status; ++i)
    status = work(world, &ops[i], i);
  return status;
}

// Under the lock, but not while it works.
static pestle_status_t meet(pestle_world_t* world,
                            const pestle_collective_t* ops, size_t count) {
  pestle_world_shared_t* s = world->shared;
  post_t* self = &s->posts[world->rank];
  peers_t peers = peers_of(ops);
  bool in_parts = false;
  for (size_t i = 0; i < count; ++i)
    in_parts |= is_shared_out(&ops[i]);
  PESTLE_TRY(wait_for(world, ops, peers.sources, peers.source_count, ARRIVED));
  PESTLE_TRY(compare(world, ops, count, peers.sources, peers.source_count));
  ++s->readers;
  pestle_mutex_unlock(&s->mutex);
  pestle_status_t status = run_all(world, ops, count);
  pestle_mutex_lock(&s->mutex);
  --s->readers;
  self->half = ops->sequence;
  pestle_cond_broadcast(&s->changed);
  if (status) {
    end_world(s, pestle_status_retain(status));
    return status;
  }
  if (in_parts) {
    PESTLE_TRY(wait_for(world, ops, peers.sources, peers.source_count, HALF));
    ++s->readers;
    pestle_mutex_unlock(&s->mutex);
    for (size_t i = 0; i < count; ++i) {
      if (is_shared_out(&ops[i])) gather_parts(world, &ops[i], i);
    }
    pestle_mutex_lock(&s->mutex);
    --s->readers;
  }
  self->done = ops->sequence;
  pestle_cond_broadcast(&s->changed);
  return wait_for(world, ops, peers.readers, peers.reader_count, DONE);
}

pestle_status_t pestle_world_enqueue(pestle_world_t* world,
                                     const pestle_collective_t* ops,
                                     size_t count) {
  pestle_world_shared_t* s = world->shared;
  post_t* self = &s->posts[world->rank];
  pestle_mutex_lock(&s->mutex);
  self->ops = ops;
  self->count = count;
  self->since_ns = pestle_clock_ns();
  self->arrived = ops->sequence;
  pestle_cond_broadcast(&s->changed);
  pestle_status_t status = meet(world, ops, count);
  if (status) wait_for_readers(s);
  pestle_mutex_unlock(&s->mutex);
  return status;
}
