// SPDX-License-Identifier: Apache-2.0
// Collectives: N evaluations of one function, a thread each, which meet where their
// groups do. A member posts its operands, waits until all members have, computes its
// results from what they posted, and leaves when all have done so. Whoever fails, or
// ends where others still wait for it, ends all.
#include <string.h>

#include "base/mem.h"
#include "base/thread.h"
#include "ir/collective.h"
#include "ir/ref/ref_internal.h"

// --- The world ---

typedef struct world_t world_t;

// One evaluation.
struct pestle_ref_rank_t {
  world_t* world;
  int32_t rank;
  const pestle_function_t* function;
  const void* const* arguments;
  void* const* results;
  pestle_thread_t thread;
  bool started;
  pestle_status_t status;
  // -- under the world's mutex --
  uint64_t meeting;    // how many it has come to
  uint64_t done_with;  // and is done with
  bool ended;
  const pestle_node_t* node;  // where it is
  const void* const* operands;
};

struct world_t {
  pestle_allocator_t allocator;
  pestle_world_shape_t shape;
  int32_t size;
  pestle_ref_rank_t* ranks;
  pestle_mutex_t mutex;
  pestle_cond_t changed;
  bool failed;
};

static pestle_status_t give_up(const pestle_ref_call_t* call, int32_t absent) {
  return pestle_node_error(
      call->node, PESTLE_STATUS_UNAVAILABLE,
      "process %d, which it waits for, has ended or failed", (int)absent);
}

typedef enum stage_t { ALL_HERE, ALL_DONE } stage_t;

// Waits until every member of row |row| is at |meeting| or is done with it.
static pestle_status_t wait_for(const pestle_ref_call_t* call, world_t* w,
                                const pestle_groups_t* groups, uint32_t row,
                                uint64_t meeting, stage_t stage) {
  pestle_status_t status = NULL;
  pestle_mutex_lock(&w->mutex);
  for (uint32_t i = 0; i < groups->size && !status;) {
    int32_t rank = groups->ranks[(size_t)row * groups->size + i];
    const pestle_ref_rank_t* other = rank < 0 ? NULL : &w->ranks[rank];
    uint64_t at = !other
                      ? meeting
                      : (stage == ALL_HERE ? other->meeting : other->done_with);
    if (at >= meeting) {
      ++i;
    } else if (w->failed || other->ended) {
      status = give_up(call, rank);
    } else {
      pestle_cond_wait(&w->changed, &w->mutex);
    }
  }
  pestle_mutex_unlock(&w->mutex);
  return status;
}

// --- What each op does with the operands of all members ---

typedef struct meeting_t {
  const pestle_ref_call_t* call;
  world_t* world;
  pestle_groups_t groups;
  uint32_t row, place, members;
  bool member;
} meeting_t;

static const char* operand_of(const meeting_t* m, uint32_t place,
                              uint32_t operand) {
  size_t at = (size_t)m->row * m->groups.size + place;
  return m->world->ranks[m->groups.ranks[at]].operands[operand];
}

// Elements combined by the region, one after the other.
static pestle_status_t combine_any(const meeting_t* m, uint32_t operand,
                                   size_t first, size_t count, char* out) {
  size_t size =
      pestle_dtype_size(pestle_ref_operand_type(m->call, operand)->dtype);
  for (size_t i = 0; i < count; ++i) {
    uint64_t now[2] = {0}, next[2];
    memcpy(now, operand_of(m, 0, operand) + (first + i) * size, size);
    for (uint32_t k = 1; k < m->members; ++k) {
      const void* arguments[] = {
          now, operand_of(m, k, operand) + (first + i) * size};
      void* results[] = {next};
      PESTLE_TRY(pestle_ref_run(m->call->interp, m->call->bodies[0], arguments,
                                results));
      memcpy(now, next, size);
    }
    memcpy(out + i * size, now, size);
  }
  return NULL;
}

enum { BLOCK = 512 };

static void combine_block(const meeting_t* m, uint32_t operand,
                          pestle_ref_kernel_t kernel, pestle_ref_class_t kind,
                          size_t first, size_t count, char* out) {
  pestle_dtype_t dtype = pestle_ref_operand_type(m->call, operand)->dtype;
  size_t size = pestle_dtype_size(dtype);
  uint64_t sum[BLOCK], term[BLOCK];
  for (uint32_t k = 0; k < m->members; ++k) {
    const char* from = operand_of(m, k, operand) + first * size;
    void* to = k ? term : sum;
    if (kind == PESTLE_REF_F32) {
      pestle_ref_load_f32(dtype, from, count, to);
    } else {
      pestle_ref_load_wide(dtype, from, count, to);
    }
    if (k) {
      kernel(sum, sum, term, term, count, pestle_dtype_info(dtype)->bits);
    }
  }
  if (kind == PESTLE_REF_F32) {
    pestle_ref_store_f32(dtype, (const float*)(const void*)sum, count, out);
  } else {
    pestle_ref_store_wide(dtype, sum, count, out);
  }
}

// Elements [first, first + count) of the combination.
static pestle_status_t combine(const meeting_t* m, uint32_t operand,
                               size_t first, size_t count, char* out) {
  pestle_dtype_t dtype = pestle_ref_operand_type(m->call, operand)->dtype;
  pestle_ref_class_t kind = pestle_ref_wide_class(dtype);
  pestle_op_t op = pestle_block_reduce_op(pestle_node_body(m->call->node, 0));
  if (kind == PESTLE_REF_NONE || !pestle_op_is_scalar(op))
    return combine_any(m, operand, first, count, out);
  if (kind == PESTLE_REF_F64 && dtype != PESTLE_F64) kind = PESTLE_REF_F32;
  pestle_ref_kernel_t kernel = pestle_ref_kernel(op, kind);
  for (size_t i = 0; i < count; i += BLOCK) {
    size_t n = count - i < BLOCK ? count - i : BLOCK;
    combine_block(m, operand, kernel, kind, first + i, n,
                  out + i * pestle_dtype_size(dtype));
  }
  return NULL;
}

// A tensor as |outer| rows of |inner| bytes.
typedef struct rows_t {
  size_t outer, inner;
} rows_t;

static rows_t rows_of(const pestle_type_t* type, int64_t axis) {
  rows_t rows = {1, pestle_dtype_size(type->dtype)};
  for (int32_t i = 0; i < type->rank; ++i)
    *(i < axis ? &rows.outer : &rows.inner) *= (size_t)type->dims[i];
  return rows;
}

static void copy_rows(char* to, size_t to_stride, const char* from,
                      size_t from_stride, size_t size, size_t count) {
  for (size_t i = 0; i < count && size; ++i)
    memcpy(to + i * to_stride, from + i * from_stride, size);
}

static pestle_status_t all_reduce(const meeting_t* m) {
  for (uint32_t i = 0; i < m->call->node->result_count; ++i) {
    size_t count =
        (size_t)pestle_type_count(pestle_ref_result_type(m->call, i));
    PESTLE_TRY(combine(m, i, 0, count, m->call->results[i]));
  }
  return NULL;
}

static pestle_status_t all_gather(const meeting_t* m) {
  int64_t axis = PESTLE_NODE_I64(m->call->node, all_gather_dim);
  for (uint32_t i = 0; i < m->call->node->result_count; ++i) {
    rows_t part = rows_of(pestle_ref_operand_type(m->call, i), axis);
    for (uint32_t k = 0; k < m->members; ++k) {
      copy_rows((char*)m->call->results[i] + k * part.inner,
                part.inner * m->members, operand_of(m, k, i), part.inner,
                part.inner, part.outer);
    }
  }
  return NULL;
}

static pestle_status_t reduce_scatter(const meeting_t* m) {
  const pestle_type_t* type = pestle_ref_operand_type(m->call, 0);
  rows_t part = rows_of(pestle_ref_result_type(m->call, 0),
                        PESTLE_NODE_I64(m->call->node, scatter_dimension));
  size_t size = pestle_dtype_size(type->dtype), n = part.inner / size;
  for (size_t r = 0; r < part.outer; ++r) {
    PESTLE_TRY(combine(m, 0, (r * m->members + m->place) * n, n,
                       (char*)m->call->results[0] + r * part.inner));
  }
  return NULL;
}

// Part |place| of member k becomes part k of the result.
static pestle_status_t all_to_all(const meeting_t* m) {
  const pestle_node_t* node = m->call->node;
  int64_t split = PESTLE_NODE_I64(node, split_dimension);
  int64_t concat = PESTLE_NODE_I64(node, concat_dimension);
  for (uint32_t i = 0; i < node->result_count; ++i) {
    const pestle_type_t* from = pestle_ref_operand_type(m->call, i);
    const pestle_type_t* to = pestle_ref_result_type(m->call, i);
    pestle_type_t part = *from;
    part.dims[split] /= m->members;
    int64_t source[PESTLE_MAX_RANK], target[PESTLE_MAX_RANK];
    pestle_ref_strides(from, source);
    pestle_ref_strides(to, target);
    if (!pestle_type_count(&part)) continue;
    for (uint32_t k = 0; k < m->members; ++k) {
      pestle_ref_copy_strided(
          pestle_dtype_size(from->dtype), part.rank, part.dims,
          (char*)m->call->results[i] +
              (int64_t)k * part.dims[concat] * target[concat],
          target,
          operand_of(m, k, i) +
              (int64_t)m->place * part.dims[split] * source[split],
          source);
    }
  }
  return NULL;
}

static void zero(const meeting_t* m) {
  size_t size = pestle_type_bytes(pestle_ref_result_type(m->call, 0));
  if (size) memset(m->call->results[0], 0, size);
}

// In a row of two the second receives.
static pestle_status_t take_first(const meeting_t* m) {
  size_t size = pestle_type_bytes(pestle_ref_result_type(m->call, 0));
  if (size) memcpy(m->call->results[0], operand_of(m, 0, 0), size);
  return NULL;
}

static pestle_status_t compute(const meeting_t* m) {
  switch ((int)m->call->node->op) {
    case PESTLE_OP_ALL_REDUCE:
      return all_reduce(m);
    case PESTLE_OP_ALL_GATHER:
      return all_gather(m);
    case PESTLE_OP_REDUCE_SCATTER:
      return reduce_scatter(m);
    case PESTLE_OP_ALL_TO_ALL:
      return all_to_all(m);
    default:
      return take_first(m);
  }
}

// --- Meeting ---

// The rows of a permutation that one process is in: where it receives is the one that
// it computes in, but it must stay while its receiver reads.
static pestle_status_t meet_pair(meeting_t* m, uint64_t meeting) {
  int32_t self = m->call->rank->rank;
  bool receives = false;
  for (uint32_t r = 0; r < m->groups.count; ++r) {
    if (m->groups.ranks[2 * (size_t)r + 1] != self) continue;
    m->row = r;
    receives = true;
  }
  if (!receives) {
    zero(m);
    return NULL;
  }
  PESTLE_TRY(
      wait_for(m->call, m->world, &m->groups, m->row, meeting, ALL_HERE));
  return take_first(m);
}

static pestle_status_t meet_group(meeting_t* m, uint64_t meeting) {
  if (!m->member) {
    zero(m);
    return NULL;
  }
  PESTLE_TRY(
      wait_for(m->call, m->world, &m->groups, m->row, meeting, ALL_HERE));
  return compute(m);
}

static pestle_status_t leave_rows(meeting_t* m, uint64_t meeting) {
  bool pairs = m->call->node->op == PESTLE_OP_COLLECTIVE_PERMUTE;
  int32_t self = m->call->rank->rank;
  if (!pairs) {
    return m->member ? wait_for(m->call, m->world, &m->groups, m->row, meeting,
                                ALL_DONE)
                     : NULL;
  }
  for (uint32_t r = 0; r < m->groups.count; ++r) {
    if (m->groups.ranks[2 * (size_t)r] != self) continue;
    PESTLE_TRY(wait_for(m->call, m->world, &m->groups, r, meeting, ALL_DONE));
  }
  return NULL;
}

static pestle_status_t meet(const pestle_ref_call_t* call,
                            pestle_arena_t* arena) {
  pestle_ref_rank_t* self = call->rank;
  world_t* w = self->world;
  meeting_t m = {.call = call, .world = w};
  PESTLE_TRY(pestle_collective_groups(call->node, arena, &m.groups));
  m.member = pestle_groups_find(&m.groups, self->rank, &m.row, &m.place);
  if (m.member) m.members = pestle_groups_members(&m.groups, m.row);
  pestle_mutex_lock(&w->mutex);
  self->node = call->node;
  self->operands = call->operands;
  uint64_t meeting = ++self->meeting;
  pestle_cond_broadcast(&w->changed);
  pestle_mutex_unlock(&w->mutex);
  pestle_status_t status = call->node->op == PESTLE_OP_COLLECTIVE_PERMUTE
                               ? meet_pair(&m, meeting)
                               : meet_group(&m, meeting);
  pestle_mutex_lock(&w->mutex);
  self->done_with = meeting;
  pestle_cond_broadcast(&w->changed);
  pestle_mutex_unlock(&w->mutex);
  if (status) return status;
  return leave_rows(&m, meeting);
}

static pestle_status_t evaluate(const pestle_ref_call_t* call) {
  pestle_arena_t arena;
  if (!call->rank) {
    return pestle_node_error(
        call->node, PESTLE_STATUS_UNSUPPORTED,
        "cannot be evaluated alone: it is of several processes");
  }
  pestle_arena_init(call->allocator, &arena);
  pestle_status_t status = meet(call, &arena);
  pestle_arena_deinit(&arena);
  return status;
}

pestle_status_t pestle_ref_all_reduce(const pestle_ref_call_t* call) {
  return evaluate(call);
}
pestle_status_t pestle_ref_all_gather(const pestle_ref_call_t* call) {
  return evaluate(call);
}
pestle_status_t pestle_ref_reduce_scatter(const pestle_ref_call_t* call) {
  return evaluate(call);
}
pestle_status_t pestle_ref_all_to_all(const pestle_ref_call_t* call) {
  return evaluate(call);
}
pestle_status_t pestle_ref_collective_permute(const pestle_ref_call_t* call) {
  return evaluate(call);
}
pestle_status_t pestle_ref_collective_broadcast(const pestle_ref_call_t* call) {
  return evaluate(call);
}

// Alone it is number 0.
pestle_status_t pestle_ref_partition_id(const pestle_ref_call_t* call) {
  const pestle_ref_rank_t* r = call->rank;
  *(uint32_t*)call->results[0] =
      r ? (uint32_t)(r->rank % r->world->shape.partitions) : 0;
  return NULL;
}
pestle_status_t pestle_ref_replica_id(const pestle_ref_call_t* call) {
  const pestle_ref_rank_t* r = call->rank;
  *(uint32_t*)call->results[0] =
      r ? (uint32_t)(r->rank / r->world->shape.partitions) : 0;
  return NULL;
}

pestle_status_t pestle_ref_constant_part(const pestle_ref_call_t* call) {
  const pestle_ref_rank_t* r = call->rank;
  pestle_i64s_t parts = PESTLE_NODE_I64S(call->node, parts);
  size_t partition = r ? (size_t)(r->rank % r->world->shape.partitions) : 0;
  if (partition >= parts.count) {
    return pestle_node_error(call->node, PESTLE_STATUS_INVALID_ARGUMENT,
                             "has no part for partition %zu", partition);
  }
  pestle_elements_t part =
      pestle_constant_part_at(call->node, parts.data[partition]);
  memcpy(call->results[0], part.data, part.size);
  return NULL;
}

// --- All of them ---

static void run_rank(void* argument) {
  pestle_ref_rank_t* rank = argument;
  world_t* w = rank->world;
  rank->status = pestle_ref_evaluate_as(w->allocator, rank->function, rank,
                                        rank->arguments, rank->results);
  pestle_mutex_lock(&w->mutex);
  rank->ended = true;
  w->failed |= rank->status != NULL;
  pestle_cond_broadcast(&w->changed);
  pestle_mutex_unlock(&w->mutex);
}

static pestle_status_t run_all(world_t* w) {
  pestle_status_t status = NULL;
  for (int32_t i = 0; i < w->size && !status; ++i) {
    pestle_ref_rank_t* r = &w->ranks[i];
    status = pestle_thread_start(run_rank, r, "pestle ref", &r->thread);
    r->started = !status;
  }
  if (status) {
    pestle_mutex_lock(&w->mutex);
    w->failed = true;
    for (int32_t i = 0; i < w->size; ++i)
      w->ranks[i].ended |= !w->ranks[i].started;
    pestle_cond_broadcast(&w->changed);
    pestle_mutex_unlock(&w->mutex);
  }
  for (int32_t i = 0; i < w->size; ++i) {
    if (w->ranks[i].started) pestle_thread_join(&w->ranks[i].thread);
  }
  // That which others gave up for says more than that they did.
  for (int pass = 0; pass < 2; ++pass) {
    for (int32_t i = 0; i < w->size; ++i) {
      pestle_ref_rank_t* r = &w->ranks[i];
      bool follows = pestle_status_code(r->status) == PESTLE_STATUS_UNAVAILABLE;
      if (r->status && !status && (pass || !follows)) {
        status = pestle_status_annotate(r->status, "in process %d", (int)i);
        r->status = NULL;
      }
    }
  }
  for (int32_t i = 0; i < w->size; ++i)
    pestle_status_release(w->ranks[i].status);
  return status;
}

pestle_status_t pestle_ref_evaluate_world(pestle_allocator_t allocator,
                                          const pestle_function_t* function,
                                          const void* const* const* arguments,
                                          void* const* const* results) {
  pestle_world_shape_t shape = pestle_module_world(function->module);
  world_t w = {.allocator = allocator,
               .shape = shape,
               .size = shape.replicas * shape.partitions};
  size_t bytes = (size_t)w.size * sizeof(*w.ranks);
  w.ranks = pestle_alloc_zero(allocator, bytes);
  if (!w.ranks) return PESTLE_OOM();
  pestle_mutex_init(&w.mutex);
  pestle_cond_init(&w.changed);
  for (int32_t i = 0; i < w.size; ++i) {
    w.ranks[i] = (pestle_ref_rank_t){.world = &w,
                                     .rank = i,
                                     .function = function,
                                     .arguments = arguments[i],
                                     .results = results[i]};
  }
  pestle_status_t status = run_all(&w);
  pestle_cond_deinit(&w.changed);
  pestle_mutex_deinit(&w.mutex);
  pestle_dealloc(allocator, w.ranks, bytes);
  return status;
}
