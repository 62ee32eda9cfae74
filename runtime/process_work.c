// SPDX-License-Identifier: Apache-2.0
// What a rank does at a collective: it hands bytes to all its peers and takes theirs at
// once, whoever is ready; nobody waits for one peer while another has something for
// it. In two rounds where every member combines a part for all.
#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/wire.h"
#include "runtime/combine.h"
#include "runtime/process_link.h"
#include "runtime/process_transport.h"

enum {
  FOLD_BYTES = 1 << 16,  // of each member that are combined at once
  // Looks before a rank sleeps, some 50 us: at memory, and by calls of the system.
  SPINS = 4000,
  CALLS = 40,
};

// Before the bytes of a message. All members of a collective send the same one.
typedef struct head_t {
  uint32_t magic;
  uint16_t index;
  uint8_t kind, dtype;
  uint64_t sequence, count, hash;
} head_t;
_Static_assert(sizeof(head_t) == 32, "a head has 32 bytes");
#define HEAD_MAGIC 0x4b43414du

// What is under way with one peer.
typedef struct flow_t {
  int32_t peer;
  uint32_t place;
  // Out: the head, the bytes, what fills up to 16.
  const char* out;
  uint64_t out_left;
  uint32_t out_head, out_fill;
  // In. |to| is NULL where the bytes are combined.
  char* to;
  uint64_t in_left;
  uint32_t in_head, in_fill;
  head_t got;
} flow_t;

typedef struct fold_t {
  char* out;
  const char* own;
  uint64_t left;  // elements
  size_t size;    // bytes of one
  const void** in;
} fold_t;

typedef struct work_t {
  pestle_process_comm_t* comm;
  const pestle_collective_t* op;
  head_t head;
  flow_t* flows;
  uint32_t flow_count;
  fold_t fold;
  pestle_status_t status;
} work_t;

static uint32_t fill_of(uint64_t bytes) {
  return (uint32_t)(-bytes & 15);
}

// --- Out ---

static bool push_some(work_t* w, flow_t* f, const void* data, uint64_t size,
                      uint64_t* out_sent) {
  size_t n =
      pestle_link_write(&w->comm->links[f->peer], data,
                        size > SIZE_MAX / 2 ? SIZE_MAX / 2 : (size_t)size);
  *out_sent = n;
  return n > 0;
}

static bool push(work_t* w, flow_t* f) {
  static const char zeros[16];
  bool moved = false;
  uint64_t n;
  while (f->out_head) {
    const char* at = (const char*)&w->head + sizeof(head_t) - f->out_head;
    if (!push_some(w, f, at, f->out_head, &n)) return moved;
    f->out_head -= (uint32_t)n;
    atomic_fetch_add_explicit(&w->comm->heads, n, memory_order_relaxed);
    moved = true;
  }
  if (f->out_left) {
    if (!push_some(w, f, f->out, f->out_left, &n)) return moved;
    f->out += n;
    f->out_left -= n;
    atomic_fetch_add_explicit(&w->comm->bytes, n, memory_order_relaxed);
    moved = true;
  }
  while (!f->out_left && f->out_fill) {
    if (!push_some(w, f, zeros, f->out_fill, &n)) return moved;
    f->out_fill -= (uint32_t)n;
    atomic_fetch_add_explicit(&w->comm->heads, n, memory_order_relaxed);
    moved = true;
  }
  return moved;
}

// --- In ---

static void compare(work_t* w, const flow_t* f) {
  const head_t *a = &w->head, *b = &f->got;
  if (!memcmp(a, b, sizeof(*a))) return;
  pestle_status_t why;
  if (b->magic != HEAD_MAGIC) {
    why = PESTLE_ERROR(INCOMPATIBLE,
                       "what rank %d sends rank %d at collective %" PRIu64
                       " (%s) is no collective: one of them is another build "
                       "or another kind of machine",
                       (int)f->peer, (int)w->comm->rank, a->sequence,
                       w->op->name);
  } else {
    why = PESTLE_ERROR(
        INCOMPATIBLE,
        "rank %d comes to collective %" PRIu64 " (kind %u, %s, %" PRIu64
        " elements, hash %016" PRIx64 ") where rank %d comes to %" PRIu64
        " (%s; kind %u, %s, %" PRIu64 " elements, hash %016" PRIx64
        "): they run other plans, or in another order",
        (int)f->peer, b->sequence, b->kind,
        pestle_dtype_info((pestle_dtype_t)b->dtype)->name, b->count, b->hash,
        (int)w->comm->rank, a->sequence, w->op->name, a->kind,
        pestle_dtype_info((pestle_dtype_t)a->dtype)->name, a->count, a->hash);
  }
  w->status = pestle_store_fail(w->comm->store, why);
}

static bool pull(work_t* w, flow_t* f) {
  pestle_link_t* link = &w->comm->links[f->peer];
  char unused[16];
  bool moved = false;
  while (f->in_head) {
    char* at = (char*)&f->got + sizeof(head_t) - f->in_head;
    size_t n = pestle_link_read(link, at, f->in_head);
    if (!n) return moved;
    moved = true;
    f->in_head -= (uint32_t)n;
    if (!f->in_head) compare(w, f);
  }
  if (w->status) return moved;
  if (f->in_left && f->to) {
    size_t n = pestle_link_read(
        link, f->to,
        f->in_left > SIZE_MAX / 2 ? SIZE_MAX / 2 : (size_t)f->in_left);
    if (!n) return moved;
    moved = true;
    f->to += n;
    f->in_left -= n;
  }
  while (!f->in_left && f->in_fill) {
    size_t n = pestle_link_read(link, unused, f->in_fill);
    if (!n) return moved;
    moved = true;
    f->in_fill -= (uint32_t)n;
  }
  return moved;
}

// Combines as many elements as all peers have sent.
static bool fold(work_t* w) {
  fold_t* d = &w->fold;
  const pestle_collective_t* op = w->op;
  const char* data;
  uint64_t n = FOLD_BYTES / d->size;
  if (n > d->left) n = d->left;
  if (!n) return false;
  for (uint32_t i = 0; i < op->rank_count; ++i)
    d->in[i] = d->own;
  // All are looked at, so that what is there is no reason to wake up.
  for (uint32_t i = 0; i < w->flow_count; ++i) {
    flow_t* f = &w->flows[i];
    if (f->in_head) {
      n = 0;
      continue;
    }
    size_t there = pestle_link_peek(&w->comm->links[f->peer],
                                    (size_t)(n ? n : 1) * d->size, &data);
    if (there / d->size < n) n = there / d->size;
    d->in[f->place] = data;
  }
  if (!n) return false;
  if (!pestle_combine((pestle_reduction_t)op->reduction,
                      (pestle_dtype_t)op->dtype, d->out, d->in, op->rank_count,
                      (size_t)n)) {
    w->status = pestle_store_fail(
        w->comm->store,
        PESTLE_ERROR(
            UNSUPPORTED, "%s combines %s by reduction %d, which nobody can",
            op->name, pestle_dtype_info((pestle_dtype_t)op->dtype)->name,
            (int)op->reduction));
    return true;
  }
  size_t bytes = (size_t)n * d->size;
  for (uint32_t i = 0; i < w->flow_count; ++i) {
    flow_t* f = &w->flows[i];
    pestle_link_consume(&w->comm->links[f->peer], bytes);
    f->in_left -= bytes;
  }
  d->out += bytes;
  d->own += bytes;
  d->left -= n;
  return true;
}

// --- Waiting ---

static bool still_in(const flow_t* f) {
  return f->in_head || f->in_left || f->in_fill;
}
static bool still_out(const flow_t* f) {
  return f->out_head || f->out_left || f->out_fill;
}

static bool move_once(work_t* w, bool* out_pending) {
  bool moved = false, pending = w->fold.left != 0;
  for (uint32_t i = 0; i < w->flow_count && !w->status; ++i) {
    flow_t* f = &w->flows[i];
    if (still_out(f)) moved |= push(w, f);
    if (still_in(f)) moved |= pull(w, f);
  }
  if (w->fold.left && !w->status) moved |= fold(w);
  for (uint32_t i = 0; i < w->flow_count; ++i)
    pending |= still_out(&w->flows[i]) || still_in(&w->flows[i]);
  *out_pending = pending;
  return moved;
}

// The peer whose bytes, or whose room, are missing; it may have gone.
static const flow_t* missing(const work_t* w, bool gone) {
  const flow_t* any = NULL;
  const char* data;
  for (uint32_t i = 0; i < w->flow_count; ++i) {
    const flow_t* f = &w->flows[i];
    pestle_link_t* link = &w->comm->links[f->peer];
    bool lacks = still_out(f);
    if (still_in(f)) lacks |= !pestle_link_peek(link, 1, &data);
    if (!lacks) continue;
    if (link->at_end == gone) return f;
    if (!gone) any = f;
  }
  return any;
}

// Until something may have changed, some 100 ms at most.
static void sleep_once(work_t* w) {
  pestle_process_comm_t* comm = w->comm;
  pestle_poll_t* polls = comm->polls;
  polls[0] =
      (pestle_poll_t){pestle_store_wake(comm->store), PESTLE_POLL_READ, 0};
  for (uint32_t i = 0; i < w->flow_count; ++i) {
    const flow_t* f = &w->flows[i];
    const pestle_link_t* link = &comm->links[f->peer];
    // Bytes that wait to be combined wake nobody.
    bool has = !f->in_head && !f->to && f->in_left &&
               pestle_link_there(link) >= w->fold.size;
    short wanted = link->in || (still_in(f) && !has) ? PESTLE_POLL_READ : 0;
    if (!link->in && still_out(f)) wanted |= PESTLE_POLL_WRITE;
    polls[i + 1] =
        (pestle_poll_t){link->at_end || !wanted ? -1 : link->socket, wanted, 0};
  }
  (void)pestle_poll(polls, w->flow_count + 1, 100);
  for (uint32_t i = 0; i < w->flow_count; ++i) {
    if (polls[i + 1].ready)
      pestle_link_has_slept(&comm->links[w->flows[i].peer]);
  }
}

static bool uses_sockets(const work_t* w) {
  for (uint32_t i = 0; i < w->flow_count; ++i) {
    if (!w->comm->links[w->flows[i].peer].in) return true;
  }
  return false;
}

static bool spin(work_t* w, bool* out_pending) {
  int looks = uses_sockets(w) ? CALLS : SPINS;
  for (int i = 0; i < looks && w->comm->may_spin; ++i) {
    if (move_once(w, out_pending)) return true;
    pestle_cpu_relax();
  }
  for (uint32_t i = 0; i < w->flow_count; ++i) {
    const flow_t* f = &w->flows[i];
    pestle_link_will_sleep(&w->comm->links[f->peer], still_in(f), still_out(f));
  }
  return move_once(w, out_pending);
}

// Until all flows and the fold are done.
static pestle_status_t run(work_t* w) {
  pestle_process_comm_t* comm = w->comm;
  int64_t deadline = 0;  // from the first time that nothing moves
  bool pending;
  for (;;) {
    bool moved = move_once(w, &pending);
    if (w->status) return w->status;
    if (!pending) return NULL;
    if (moved || spin(w, &pending)) {
      if (w->status) return w->status;
      if (!pending) return NULL;
      deadline = 0;
      if (!pestle_store_has_failed(comm->store)) continue;
    }
    if (pestle_store_has_failed(comm->store))
      return pestle_process_ended(comm, w->op);
    const flow_t* gone = missing(w, true);
    if (gone) return pestle_process_gone(comm, w->op, gone->peer);
    int64_t now = pestle_clock_ns();
    if (!deadline) deadline = now + comm->deadline_ns;
    if (now >= deadline) {
      const flow_t* f = missing(w, false);
      return pestle_process_late(comm, w->op, f ? f->peer : -1);
    }
    sleep_once(w);
  }
}

// --- The kinds ---

static flow_t* add_flow(work_t* w, int32_t peer, uint32_t place) {
  flow_t* f = &w->flows[w->flow_count++];
  *f = (flow_t){.peer = peer, .place = place};
  return f;
}

static void send_to(flow_t* f, const char* data, uint64_t bytes, bool head) {
  f->out = data;
  f->out_left = bytes;
  f->out_head = head ? sizeof(head_t) : 0;
  f->out_fill = fill_of(bytes);
}

static void take_from(flow_t* f, char* to, uint64_t bytes, bool head) {
  f->to = to;
  f->in_left = bytes;
  f->in_head = head ? sizeof(head_t) : 0;
  f->in_fill = fill_of(bytes);
}

static void add_members(work_t* w) {
  for (uint32_t k = 0; k < w->op->rank_count; ++k) {
    if (w->op->ranks[k] != w->comm->rank) (void)add_flow(w, w->op->ranks[k], k);
  }
}

static uint32_t own_place(const work_t* w) {
  uint32_t place = 0;
  while (place < w->op->rank_count && w->op->ranks[place] != w->comm->rank)
    ++place;
  return place;
}

// The elements that the member at |place| combines for all.
static uint64_t part_begin(const pestle_collective_t* op, uint32_t place) {
  return pestle_wire_part(op->count, op->rank_count, place);
}

static void set_fold(work_t* w, char* out, const char* own, uint64_t count) {
  w->fold.out = out;
  w->fold.own = own;
  w->fold.left = count;
}

static pestle_status_t all_reduce(work_t* w, uint32_t place) {
  const pestle_collective_t* op = w->op;
  const char* send = op->send;
  char* receive = op->receive;
  size_t size = w->fold.size;
  uint64_t bytes = op->count * size;
  if (pestle_wire_is_one_round(op->rank_count, bytes)) {
    for (uint32_t i = 0; i < w->flow_count; ++i) {
      send_to(&w->flows[i], send, bytes, true);
      take_from(&w->flows[i], NULL, bytes, true);
    }
    set_fold(w, receive, send, op->count);
    return run(w);
  }
  uint64_t first = part_begin(op, place), end = part_begin(op, place + 1);
  for (uint32_t i = 0; i < w->flow_count; ++i) {
    flow_t* f = &w->flows[i];
    uint64_t at = part_begin(op, f->place), stop = part_begin(op, f->place + 1);
    send_to(f, send + at * size, (stop - at) * size, true);
    take_from(f, NULL, (end - first) * size, true);
  }
  set_fold(w, receive + first * size, send + first * size, end - first);
  PESTLE_TRY(run(w));
  for (uint32_t i = 0; i < w->flow_count; ++i) {
    flow_t* f = &w->flows[i];
    uint64_t at = part_begin(op, f->place), stop = part_begin(op, f->place + 1);
    send_to(f, receive + first * size, (end - first) * size, false);
    take_from(f, receive + at * size, (stop - at) * size, false);
  }
  return run(w);
}

static pestle_status_t reduce_scatter(work_t* w, uint32_t place) {
  const pestle_collective_t* op = w->op;
  uint64_t bytes = op->count * w->fold.size;
  const char* send = op->send;
  for (uint32_t i = 0; i < w->flow_count; ++i) {
    send_to(&w->flows[i], send + bytes * w->flows[i].place, bytes, true);
    take_from(&w->flows[i], NULL, bytes, true);
  }
  set_fold(w, op->receive, send + bytes * place, op->count);
  return run(w);
}

static void copy(void* to, const void* from, uint64_t bytes) {
  if (bytes) memcpy(to, from, (size_t)bytes);
}

// |all|: the same to everyone, else a part for each.
static pestle_status_t exchange(work_t* w, uint32_t place, bool all) {
  const pestle_collective_t* op = w->op;
  uint64_t bytes = op->count * w->fold.size;
  const char* send = op->send;
  char* receive = op->receive;
  for (uint32_t i = 0; i < w->flow_count; ++i) {
    flow_t* f = &w->flows[i];
    send_to(f, all ? send : send + bytes * f->place, bytes, true);
    take_from(f, receive + bytes * f->place, bytes, true);
  }
  copy(receive + bytes * place, all ? send : send + bytes * place, bytes);
  return run(w);
}

static pestle_status_t broadcast(work_t* w, uint32_t place) {
  const pestle_collective_t* op = w->op;
  uint64_t bytes = op->count * w->fold.size;
  w->flow_count = 0;
  if (!op->rank_count) {
    if (bytes) memset(op->receive, 0, (size_t)bytes);
    return NULL;
  }
  if (place) {
    take_from(add_flow(w, op->ranks[0], 0), op->receive, bytes, true);
    return run(w);
  }
  add_members(w);
  for (uint32_t i = 0; i < w->flow_count; ++i)
    send_to(&w->flows[i], op->send, bytes, true);
  copy(op->receive, op->send, bytes);
  return run(w);
}

static pestle_status_t permute(work_t* w) {
  const pestle_collective_t* op = w->op;
  uint64_t bytes = op->count * w->fold.size;
  int32_t rank = w->comm->rank;
  if (op->source < 0) {
    if (bytes) memset(op->receive, 0, (size_t)bytes);
  } else if (op->source == rank) {
    copy(op->receive, op->send, bytes);
  } else {
    take_from(add_flow(w, op->source, 0), op->receive, bytes, true);
  }
  if (op->target >= 0 && op->target != rank) {
    flow_t* f = w->flow_count && op->target == op->source
                    ? &w->flows[0]
                    : add_flow(w, op->target, 0);
    send_to(f, op->send, bytes, true);
  }
  return run(w);
}

static pestle_status_t work(work_t* w) {
  const pestle_collective_t* op = w->op;
  uint32_t place = own_place(w);
  if (op->kind == PESTLE_COLLECTIVE_PERMUTE) return permute(w);
  if (op->kind == PESTLE_COLLECTIVE_BROADCAST) return broadcast(w, place);
  if (!op->rank_count) return NULL;
  add_members(w);
  switch ((pestle_collective_kind_t)op->kind) {
    case PESTLE_COLLECTIVE_ALL_REDUCE:
      return all_reduce(w, place);
    case PESTLE_COLLECTIVE_REDUCE_SCATTER:
      return reduce_scatter(w, place);
    case PESTLE_COLLECTIVE_ALL_GATHER:
      return exchange(w, place, true);
    case PESTLE_COLLECTIVE_ALL_TO_ALL:
      return exchange(w, place, false);
    case PESTLE_COLLECTIVE_PERMUTE:
    case PESTLE_COLLECTIVE_BROADCAST:
      break;
  }
  return PESTLE_ERROR(INTERNAL, "collective %d is of no kind", (int)op->kind);
}

pestle_status_t pestle_process_work(pestle_process_comm_t* comm,
                                    const pestle_collective_t* op,
                                    uint32_t index) {
  enum { FEW = 16 };
  flow_t few_flows[FEW];
  const void* few_in[FEW];
  uint64_t mixed[3] = {
      op->hash, (uint64_t)op->reduction,
      op->kind == PESTLE_COLLECTIVE_PERMUTE ? 0 : op->rank_count};
  size_t most = op->rank_count < 2 ? 2 : op->rank_count;
  size_t flow_bytes = most * sizeof(flow_t), in_bytes = most * sizeof(void*);
  work_t w = {.comm = comm,
              .op = op,
              .head = {.magic = HEAD_MAGIC,
                       .index = (uint16_t)index,
                       .kind = (uint8_t)op->kind,
                       .dtype = (uint8_t)op->dtype,
                       .sequence = op->sequence,
                       .count = op->count,
                       .hash = pestle_hash64(mixed, sizeof(mixed))},
              .flows = few_flows};
  w.fold.size = pestle_dtype_size((pestle_dtype_t)op->dtype);
  w.fold.in = few_in;
  if (most > FEW) {
    w.flows = pestle_alloc(comm->allocator, flow_bytes);
    w.fold.in = pestle_alloc(comm->allocator, in_bytes);
  }
  pestle_status_t status = w.flows && w.fold.in ? work(&w) : PESTLE_OOM();
  if (most > FEW) {
    pestle_dealloc(comm->allocator, w.flows, flow_bytes);
    pestle_dealloc(comm->allocator, (void*)w.fold.in, in_bytes);
  }
  return status;
}
