// SPDX-License-Identifier: Apache-2.0
// What a rank does once all members of a collective are there: combine and copy.
#include <string.h>

#include "base/mem.h"
#include "runtime/combine.h"
#include "runtime/host_transport.h"

// Of so many bytes and more each member combines its part of the elements and the
// others copy it; below that each combines all, which takes one meeting less.
enum { SHARED_FROM = 16384 };

static const pestle_collective_t* op_of(const pestle_comm_t* comm, int32_t rank,
                                        size_t index) {
  return &comm->shared->posts[rank].ops[index];
}

static void note_bytes(pestle_comm_t* comm, uint64_t bytes) {
  atomic_fetch_add_explicit(&comm->bytes, bytes, memory_order_relaxed);
}

static uint32_t place_of(const pestle_comm_t* comm,
                         const pestle_collective_t* op) {
  uint32_t place = 0;
  while (place < op->rank_count && op->ranks[place] != comm->rank)
    ++place;
  return place;
}

static size_t size_of(const pestle_collective_t* op) {
  return pestle_dtype_size((pestle_dtype_t)op->dtype);
}

// Elements [first, first + count) of what members send, combined to |out|.
static pestle_status_t combine(pestle_comm_t* comm,
                               const pestle_collective_t* op, size_t index,
                               uint64_t first, uint64_t count, char* out) {
  enum { FEW = 64 };
  const void* few[FEW];
  pestle_allocator_t allocator = pestle_host_allocator(comm->shared);
  size_t bytes = op->rank_count * sizeof(void*), size = size_of(op);
  const void** in =
      op->rank_count <= FEW ? few : pestle_alloc(allocator, bytes);
  if (!in) return PESTLE_OOM();
  for (uint32_t k = 0; k < op->rank_count; ++k) {
    in[k] = (const char*)op_of(comm, op->ranks[k], index)->send + first * size;
  }
  bool known = pestle_combine((pestle_reduction_t)op->reduction,
                              (pestle_dtype_t)op->dtype, out, in,
                              op->rank_count, (size_t)count);
  if (in != few) pestle_dealloc(allocator, in, bytes);
  note_bytes(comm, (op->rank_count - 1) * count * size);
  if (known) return NULL;
  return PESTLE_ERROR(
      UNSUPPORTED, "%s combines %s by reduction %d, which nobody can", op->name,
      pestle_dtype_info((pestle_dtype_t)op->dtype)->name, (int)op->reduction);
}

bool pestle_host_is_shared_out(const pestle_collective_t* op) {
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

static void copy(pestle_comm_t* comm, const pestle_collective_t* op,
                 uint64_t to, int32_t rank, size_t index, uint64_t from,
                 uint64_t count) {
  size_t size = size_of(op);
  if (!count) return;
  memcpy((char*)op->receive + to * size,
         (const char*)op_of(comm, rank, index)->send + from * size,
         (size_t)count * size);
  if (rank != comm->rank) note_bytes(comm, count * size);
}

static void zero(const pestle_collective_t* op) {
  size_t bytes = (size_t)op->count * size_of(op);
  if (bytes) memset(op->receive, 0, bytes);
}

pestle_status_t pestle_host_work(pestle_comm_t* comm,
                                 const pestle_collective_t* op, size_t index) {
  uint32_t place = place_of(comm, op);
  uint64_t n = op->count, first = 0, end = n;
  switch ((pestle_collective_kind_t)op->kind) {
    case PESTLE_COLLECTIVE_ALL_REDUCE:
      if (pestle_host_is_shared_out(op)) part_of(op, place, &first, &end);
      return combine(comm, op, index, first, end - first,
                     (char*)op->receive + first * size_of(op));
    case PESTLE_COLLECTIVE_REDUCE_SCATTER:
      return combine(comm, op, index, n * place, n, op->receive);
    case PESTLE_COLLECTIVE_ALL_GATHER:
      for (uint32_t k = 0; k < op->rank_count; ++k)
        copy(comm, op, n * k, op->ranks[k], index, 0, n);
      return NULL;
    case PESTLE_COLLECTIVE_ALL_TO_ALL:
      for (uint32_t k = 0; k < op->rank_count; ++k)
        copy(comm, op, n * k, op->ranks[k], index, n * place, n);
      return NULL;
    case PESTLE_COLLECTIVE_PERMUTE:
      if (op->source < 0) {
        zero(op);
      } else {
        copy(comm, op, 0, op->source, index, 0, n);
      }
      return NULL;
    case PESTLE_COLLECTIVE_BROADCAST:
      if (!op->rank_count) {
        zero(op);
      } else {
        copy(comm, op, 0, op->ranks[0], index, 0, n);
      }
      return NULL;
  }
  return PESTLE_ERROR(INTERNAL, "collective %d is of no kind", (int)op->kind);
}

void pestle_host_gather_parts(pestle_comm_t* comm,
                              const pestle_collective_t* op, size_t index) {
  size_t size = size_of(op);
  uint64_t first, end;
  for (uint32_t k = 0; k < op->rank_count; ++k) {
    if (op->ranks[k] == comm->rank) continue;
    part_of(op, k, &first, &end);
    if (end == first) continue;
    memcpy(
        (char*)op->receive + first * size,
        (const char*)op_of(comm, op->ranks[k], index)->receive + first * size,
        (size_t)(end - first) * size);
    note_bytes(comm, (end - first) * size);
  }
}
