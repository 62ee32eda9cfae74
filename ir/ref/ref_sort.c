// SPDX-License-Identifier: Apache-2.0
// sort, sort_first: a bottom-up merge of positions, row by row, with the comparator
// interpreted. Merges take from the left run unless the right one's head comes
// strictly first, so it is stable whatever the op asks for.
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "ir/ref/ref_internal.h"

typedef struct sort_t {
  const pestle_ref_call_t* call;
  int64_t length, stride;  // of a row, in elements
  int64_t base;            // element 0 of the row
  int64_t *now, *next;     // positions in the row
  const void** arguments;
} sort_t;

static size_t size_of(const sort_t* s, size_t operand) {
  return pestle_dtype_size(pestle_ref_operand_type(s->call, operand)->dtype);
}

static const char* element(const sort_t* s, size_t operand, int64_t position) {
  return (const char*)s->call->operands[operand] +
         (size_t)(s->base + position * s->stride) * size_of(s, operand);
}

static pestle_status_t comes_first(const sort_t* s, int64_t a, int64_t b,
                                   bool* out) {
  for (size_t i = 0; i < s->call->node->operand_count; ++i) {
    s->arguments[2 * i] = element(s, i, a);
    s->arguments[2 * i + 1] = element(s, i, b);
  }
  uint8_t first = 0;
  void* results[] = {&first};
  PESTLE_TRY(pestle_ref_run(s->call->interp, s->call->bodies[0], s->arguments,
                            results));
  *out = first != 0;
  return NULL;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// Merges |now|'s runs [start, middle) and [middle, end) into |next|.
static pestle_status_t merge(const sort_t* s, int64_t start, int64_t middle,
                             int64_t end) {
  int64_t left = start, right = middle;
  for (int64_t k = start; k < end; ++k) {
    bool take_right = left == middle;
    if (left < middle && right < end) {
      PESTLE_TRY(comes_first(s, s->now[right], s->now[left], &take_right));
    }
    s->next[k] = take_right ? s->now[right++] : s->now[left++];
  }
  return NULL;
}

// Leaves in |now| where the elements are in order.
static pestle_status_t order_row(sort_t* s) {
  for (int64_t i = 0; i < s->length; ++i)
    s->now[i] = i;
  for (int64_t width = 1; width < s->length; width *= 2) {
    for (int64_t start = 0; start < s->length; start += 2 * width) {
      PESTLE_TRY(merge(s, start, least(start + width, s->length),
                       least(start + 2 * width, s->length)));
    }
    int64_t* swap = s->now;
    s->now = s->next;
    s->next = swap;
  }
  return NULL;
}

// The first |count| of the row, to the results from |base| on; their positions
// too where there is a result for them.
static void copy_row(const sort_t* s, int64_t count, int64_t base) {
  uint32_t operands = s->call->node->operand_count;
  for (size_t i = 0; i < operands; ++i) {
    size_t size = size_of(s, i);
    char* to = (char*)s->call->results[i] + (size_t)base * size;
    for (int64_t k = 0; k < count; ++k) {
      memcpy(to + (size_t)(k * s->stride) * size, element(s, i, s->now[k]),
             size);
    }
  }
  if (s->call->node->result_count == operands) return;
  int32_t* at = (int32_t*)s->call->results[operands] + base;
  for (int64_t k = 0; k < count; ++k)
    at[k * s->stride] = (int32_t)s->now[k];
}

static pestle_status_t sort_rows(const pestle_ref_call_t* call,
                                 pestle_arena_t* arena) {
  const pestle_type_t* type = pestle_ref_operand_type(call, 0);
  const pestle_type_t* result = pestle_ref_result_type(call, 0);
  int64_t axis = PESTLE_NODE_I64(call->node, dimension);
  if (axis < 0) axis += type->rank;
  sort_t s = {.call = call, .length = type->dims[axis], .stride = 1};
  int64_t count = result->dims[axis];
  for (int64_t i = axis + 1; i < type->rank; ++i)
    s.stride *= type->dims[i];
  s.now = PESTLE_ARENA_ARRAY(arena, int64_t, (size_t)s.length);
  s.next = PESTLE_ARENA_ARRAY(arena, int64_t, (size_t)s.length);
  s.arguments = PESTLE_ARENA_ARRAY(arena, const void*,
                                   2 * (size_t)call->node->operand_count);
  if (!s.now || !s.next || !s.arguments) return PESTLE_OOM();
  int64_t rows = pestle_type_count(type) / s.length;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t outer = row / s.stride * s.stride, inner = row % s.stride;
    s.base = outer * s.length + inner;
    PESTLE_TRY(order_row(&s));
    copy_row(&s, count, outer * count + inner);
  }
  return NULL;
}

pestle_status_t pestle_ref_sort(const pestle_ref_call_t* call) {
  if (!pestle_type_count(pestle_ref_operand_type(call, 0))) return NULL;
  pestle_arena_t arena;
  pestle_arena_init(call->allocator, &arena);
  pestle_status_t status = sort_rows(call, &arena);
  pestle_arena_deinit(&arena);
  return status;
}

pestle_status_t pestle_ref_sort_first(const pestle_ref_call_t* call) {
  return pestle_ref_sort(call);
}
