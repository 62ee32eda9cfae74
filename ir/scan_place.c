// SPDX-License-Identifier: Apache-2.0
// The counter of a loop, and which rows of its arrays follow from it.
#include <inttypes.h>
#include <string.h>

#include "ir/scan_recognise.h"

// Numbers that counters are followed with stay below this, so that none wraps.
#define MOST (INT64_C(1) << 40)

static bool integer_of(const pestle_value_t* value, int64_t* out) {
  return pestle_value_integer(value, out) && *out > -MOST && *out < MOST;
}

// What |value| of the condition or the body is, if each turn has the same from around.
pestle_value_t* pestle_scan_unchanging(const pestle_recognise_t* r,
                                       pestle_value_t* value) {
  const pestle_block_t* block = value->block;
  if (value->node || (block != r->cond && block != r->body)) return value;
  bool same = r->carried[value->index].role == PESTLE_SCAN_SAME;
  return same ? pestle_node_operand(r->loop, value->index) : value;
}

// --- The counter ---

static bool fits_dtype(int64_t value, pestle_dtype_t dtype) {
  unsigned bits = pestle_dtype_info(dtype)->bits;
  bool is_signed = pestle_dtype_is(dtype, PESTLE_KIND_SIGNED);
  if (!is_signed && value < 0) return false;
  unsigned room = bits - (is_signed ? 1 : 0);
  if (room >= 41) return true;
  return value < (INT64_C(1) << room) && value >= -(INT64_C(1) << room);
}

// |value| is argument |index| of |block| plus a number other than 0.
static bool step_of(const pestle_recognise_t* r, const pestle_value_t* value,
                    uint32_t index, int64_t* out_step) {
  const pestle_node_t* n = value->node;
  const pestle_value_t* counter = r->body->arguments[index];
  if (!n || n->block != r->body) return false;
  const pestle_value_t* a =
      n->operand_count == 2 ? pestle_node_operand(n, 0) : NULL;
  pestle_value_t* b = a ? pestle_node_operand(n, 1) : NULL;
  if (n->op == PESTLE_OP_SUBTRACT) {
    if (a != counter || !integer_of(b, out_step)) return false;
    *out_step = -*out_step;
    return *out_step != 0;
  }
  if (n->op != PESTLE_OP_ADD) return false;
  const pestle_value_t* term = a == counter ? b : b == counter ? a : NULL;
  return term && integer_of(term, out_step) && *out_step != 0;
}

// The number of turns while start + step t |op| limit holds; -1: no such number.
static int64_t count_turns(pestle_op_t op, int64_t start, int64_t step,
                           int64_t limit) {
  if (op == PESTLE_OP_GT || op == PESTLE_OP_GE) {
    start = -start;
    step = -step;
    limit = -limit;
    op = op == PESTLE_OP_GT ? PESTLE_OP_LT : PESTLE_OP_LE;
  }
  if (op == PESTLE_OP_NE) {
    int64_t away = limit - start;
    bool meets = away % step == 0 && away / step >= 0;
    return meets ? away / step : -1;
  }
  if (op == PESTLE_OP_LE) {
    ++limit;
    op = PESTLE_OP_LT;
  }
  if (op != PESTLE_OP_LT || (step < 0 && start < limit)) return -1;
  return start < limit ? (limit - start + step - 1) / step : 0;
}

int64_t pestle_scan_count(pestle_op_t op, int64_t start, int64_t step,
                          int64_t limit, pestle_dtype_t dtype) {
  bool near = start > -MOST && start < MOST && limit > -MOST && limit < MOST &&
              step > -MOST && step < MOST;
  if (!near || !step) return -1;
  int64_t turns = count_turns(op, start, step, limit), last;
  if (turns < 1 || turns >= MOST / 2) return -1;
  // One that wraps around may go on for longer.
  if (__builtin_mul_overflow(step, turns, &last)) return -1;
  last += start;
  bool fits = last > -MOST && last < MOST && fits_dtype(last, dtype) &&
              fits_dtype(start, dtype);
  return fits ? turns : -1;
}

pestle_op_t pestle_scan_mirrored(pestle_op_t op) {
  switch ((int)op) {
    case PESTLE_OP_LT:
      return PESTLE_OP_GT;
    case PESTLE_OP_LE:
      return PESTLE_OP_GE;
    case PESTLE_OP_GT:
      return PESTLE_OP_LT;
    case PESTLE_OP_GE:
      return PESTLE_OP_LE;
    default:
      return op;
  }
}

// The condition is a comparison of a counter with a number.
bool pestle_scan_find_counter(pestle_recognise_t* r) {
  const pestle_node_t* test = pestle_node_operand(r->cond->last, 0)->node;
  if (!test || test->block != r->cond || test->operand_count != 2) return false;
  pestle_op_t op = (pestle_op_t)test->op;
  int64_t limit;
  pestle_value_t* a = pestle_scan_unchanging(r, pestle_node_operand(test, 0));
  pestle_value_t* b = pestle_scan_unchanging(r, pestle_node_operand(test, 1));
  if (!integer_of(b, &limit)) {
    pestle_value_t* swap = a;
    a = b;
    b = swap;
    op = pestle_scan_mirrored(op);
    if (!integer_of(b, &limit)) return false;
  }
  if (a->node || a->block != r->cond) return false;
  r->counter = a->index;
  const pestle_value_t* next = pestle_node_operand(r->body->last, r->counter);
  if (!integer_of(pestle_node_operand(r->loop, r->counter), &r->start) ||
      !step_of(r, next, r->counter, &r->step)) {
    return false;
  }
  r->carried[r->counter].role = PESTLE_SCAN_COUNTER;
  r->turns = pestle_scan_count(op, r->start, r->step, limit, a->type->dtype);
  return r->turns > 0;
}

// --- Places along the arrays ---

// by * turn + from
typedef struct place_t {
  int64_t by, from;
} place_t;

static void extremes(const pestle_recognise_t* r, place_t p, int64_t* out_low,
                     int64_t* out_high) {
  int64_t end = p.from + p.by * (r->turns - 1);
  *out_low = end < p.from ? end : p.from;
  *out_high = end < p.from ? p.from : end;
}

static bool is_sound(const pestle_recognise_t* r, place_t p,
                     pestle_dtype_t dtype) {
  int64_t low, high, end;
  if (p.by <= -MOST || p.by >= MOST || p.from <= -MOST || p.from >= MOST ||
      __builtin_mul_overflow(p.by, r->turns, &end) || end <= -MOST ||
      end >= MOST) {
    return false;
  }
  extremes(r, p, &low, &high);
  return fits_dtype(low, dtype) && fits_dtype(high, dtype);
}

static bool place_of(const pestle_recognise_t* r, pestle_value_t* value,
                     int budget, place_t* out);

// What a select gives whose condition is a comparison that comes out alike in all turns:
// of "i < 0 ? i + n : i", which is how an index from the end is written.
static bool place_of_select(const pestle_recognise_t* r, const pestle_node_t* n,
                            int budget, place_t* out) {
  const pestle_node_t* test = pestle_node_operand(n, 0)->node;
  place_t a, b;
  int64_t low, high, low_b, high_b;
  if (!test || (test->op != PESTLE_OP_LT && test->op != PESTLE_OP_GE) ||
      !place_of(r, pestle_node_operand(test, 0), budget, &a) ||
      !place_of(r, pestle_node_operand(test, 1), budget, &b)) {
    return false;
  }
  extremes(r, a, &low, &high);
  extremes(r, b, &low_b, &high_b);
  bool below = high < low_b, above = low >= high_b;
  if (!below && !above) return false;
  bool holds = below == (test->op == PESTLE_OP_LT);
  return place_of(r, pestle_node_operand(n, holds ? 1 : 2), budget, out);
}

static bool place_of_node(const pestle_recognise_t* r, const pestle_node_t* n,
                          int budget, place_t* out) {
  place_t a, b = {0, 0};
  if (n->op == PESTLE_OP_SELECT) return place_of_select(r, n, budget, out);
  bool one = n->op == PESTLE_OP_NEGATE || n->op == PESTLE_OP_CONVERT ||
             n->op == PESTLE_OP_RESHAPE;
  if (n->operand_count != (one ? 1u : 2u) ||
      !place_of(r, pestle_node_operand(n, 0), budget, &a)) {
    return false;
  }
  if (!one && !place_of(r, pestle_node_operand(n, 1), budget, &b)) return false;
  switch ((int)n->op) {
    case PESTLE_OP_ADD:
      *out = (place_t){a.by + b.by, a.from + b.from};
      return true;
    case PESTLE_OP_SUBTRACT:
      *out = (place_t){a.by - b.by, a.from - b.from};
      return true;
    case PESTLE_OP_NEGATE:
      *out = (place_t){-a.by, -a.from};
      return true;
    case PESTLE_OP_CONVERT:
    case PESTLE_OP_RESHAPE:
      *out = a;
      return true;
    case PESTLE_OP_MULTIPLY:
      if (a.by && b.by) return false;
      return !__builtin_mul_overflow(a.by ? a.by : b.by, a.by ? b.from : a.from,
                                     &out->by) &&
             !__builtin_mul_overflow(a.from, b.from, &out->from);
    default:
      return false;
  }
}

// |value| as an affine function of the turn's number, in whose every part no number wraps.
static bool place_of(const pestle_recognise_t* r, pestle_value_t* value,
                     int budget, place_t* out) {
  int64_t number;
  pestle_dtype_t dtype = value->type->dtype;
  value = pestle_scan_unchanging(r, value);
  if (integer_of(value, &number)) {
    *out = (place_t){0, number};
    return is_sound(r, *out, dtype);
  }
  if (!value->node) {
    bool counter = value->block == r->body && value->index == r->counter;
    *out = (place_t){r->step, r->start};
    return counter && is_sound(r, *out, dtype);
  }
  return budget > 0 && pestle_dtype_is(dtype, PESTLE_KIND_INT) &&
         pestle_type_count(value->type) == 1 &&
         place_of_node(r, value->node, budget - 1, out) &&
         is_sound(r, *out, dtype);
}

// Whether the operands of |n| from |first| on say the row of |whole| that this turn is
// about, in the direction of all.
bool pestle_scan_is_at_turn(pestle_recognise_t* r, const pestle_node_t* n,
                            uint32_t first, const pestle_type_t* whole) {
  enum { BUDGET = 8 };
  place_t at;
  int64_t zero;
  if (!whole->rank || whole->dims[0] != r->turns ||
      n->operand_count != first + (uint32_t)whole->rank ||
      !place_of(r, pestle_node_operand(n, first), BUDGET, &at)) {
    return false;
  }
  for (int32_t d = 1; d < whole->rank; ++d) {
    pestle_value_t* start =
        pestle_scan_unchanging(r, pestle_node_operand(n, first + (uint32_t)d));
    if (!integer_of(start, &zero) || zero) return false;
  }
  int direction = at.by == 1 && !at.from                   ? 1
                  : at.by == -1 && at.from == r->turns - 1 ? -1
                                                           : 0;
  // Of one turn both are true.
  if (r->turns == 1 && !at.from) direction = 1;
  if (!direction || (r->direction && direction != r->direction)) return false;
  r->direction = direction;
  return true;
}
