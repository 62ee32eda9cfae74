// SPDX-License-Identifier: Apache-2.0
// scan: the region, once a turn. Elements of arrays and stacks lie one after the other, so
// that each turn reads and writes where they are.
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "ir/ref/ref_internal.h"

typedef struct run_t {
  const pestle_ref_call_t* call;
  int64_t length;
  size_t carries, xs;
  // Two sets of carries: a turn reads one and writes the other.
  void **now, **next;
  const void** arguments;
  void** results;
} run_t;

// Element |at| of what has |length| elements and lies at |data|.
static char* element(const run_t* r, const void* data,
                     const pestle_type_t* type, int64_t at) {
  size_t size = r->length ? pestle_type_bytes(type) / (size_t)r->length : 0;
  return (char*)(uintptr_t)data + (size_t)at * size;
}

static pestle_status_t make_carries(const run_t* r, pestle_arena_t* arena,
                                    void*** out) {
  const pestle_ref_call_t* call = r->call;
  void** carries = PESTLE_ARENA_ARRAY(arena, void*, r->carries + 1);
  if (!carries) return PESTLE_OOM();
  for (size_t i = 0; i < r->carries; ++i) {
    size_t size = pestle_type_bytes(pestle_ref_operand_type(call, i));
    carries[i] = pestle_arena_alloc(arena, size, PESTLE_BUFFER_ALIGNMENT);
    if (!carries[i]) return PESTLE_OOM();
    if (size) memcpy(carries[i], call->operands[i], size);
  }
  *out = carries;
  return NULL;
}

static pestle_status_t turn(run_t* r, int64_t at) {
  const pestle_ref_call_t* call = r->call;
  for (size_t i = 0; i < call->node->operand_count; ++i) {
    bool is_x = i >= r->carries && i < r->carries + r->xs;
    r->arguments[i] = i < r->carries ? r->now[i] : call->operands[i];
    if (!is_x) continue;
    r->arguments[i] =
        element(r, call->operands[i], pestle_ref_operand_type(call, i), at);
  }
  for (size_t i = 0; i < call->node->result_count; ++i) {
    r->results[i] =
        i < r->carries
            ? r->next[i]
            : element(r, call->results[i], pestle_ref_result_type(call, i), at);
  }
  PESTLE_TRY(
      pestle_ref_run(call->interp, call->bodies[0], r->arguments, r->results));
  void** swap = r->now;
  r->now = r->next;
  r->next = swap;
  return NULL;
}

static pestle_status_t run(run_t* r, pestle_arena_t* arena) {
  const pestle_ref_call_t* call = r->call;
  bool reverse = PESTLE_NODE_BOOL(call->node, reverse);
  r->arguments = PESTLE_ARENA_ARRAY(arena, const void*,
                                    (size_t)call->node->operand_count + 1);
  r->results =
      PESTLE_ARENA_ARRAY(arena, void*, (size_t)call->node->result_count + 1);
  if (!r->arguments || !r->results) return PESTLE_OOM();
  PESTLE_TRY(make_carries(r, arena, &r->now));
  PESTLE_TRY(make_carries(r, arena, &r->next));
  for (int64_t i = 0; i < r->length; ++i)
    PESTLE_TRY(turn(r, reverse ? r->length - 1 - i : i));
  for (size_t i = 0; i < r->carries; ++i) {
    size_t size = pestle_type_bytes(pestle_ref_result_type(call, i));
    if (size) memcpy(call->results[i], r->now[i], size);
  }
  return NULL;
}

pestle_status_t pestle_ref_scan(const pestle_ref_call_t* call) {
  pestle_arena_t arena;
  run_t r = {.call = call,
             .length = PESTLE_NODE_I64(call->node, length),
             .carries = (size_t)PESTLE_NODE_I64(call->node, carry_count),
             .xs = (size_t)PESTLE_NODE_I64(call->node, xs_count)};
  pestle_arena_init(call->allocator, &arena);
  pestle_status_t status = run(&r, &arena);
  pestle_arena_deinit(&arena);
  return status;
}
