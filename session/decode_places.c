// SPDX-License-Identifier: Apache-2.0
// How many positions a model has tables for: of angles, or of places that were learned, which
// it reads by a token's position. A gather takes the nearest row for one that there is not, so
// that a sequence that is longer would go on with wrong numbers.
//
// The least and the greatest integer that each value, also of floats that are integers, can hold follow from what a decoder gives:
// positions below |most|, a mask of ones and zeros, of which no more than |most| are ones. A
// table is too short where an index may pass its end. What is not known is not judged: ids,
// fractions, and what regions compute.
#include <string.h>

#include "base/mem.h"
#include "ir/graph.h"
#include "session/decode.h"

typedef struct range_t {
  int64_t low, high;
  bool is_known;
} range_t;

typedef struct places_t {
  const pestle_decoder_t* d;
  const pestle_function_t* f;
  int64_t most;
  range_t* ranges;  // a value's scratch is its place
  size_t count;
} places_t;

enum {
  FEW = 1 << 16,          // elements of a constant that are looked at
  LARGE = INT32_MAX / 2,  // greater numbers are not known
};

static const range_t unknown = {0, 0, false};

static range_t make(int64_t low, int64_t high) {
  range_t r = {low, high, low >= -LARGE && high <= LARGE};
  return r;
}

static range_t of(const places_t* p, const pestle_value_t* value) {
  return p->ranges[value->scratch];
}

static range_t operand(const places_t* p, const pestle_node_t* node, size_t i) {
  return of(p, pestle_node_operand(node, i));
}

// How many bits integers may have that all are numbers of |dtype|: of floats, the digits.
static int bits_of(pestle_dtype_t dtype) {
  switch ((int)dtype) {
    case PESTLE_F64:
    case PESTLE_F32:
      return 24;
    case PESTLE_F16:
      return 11;
    case PESTLE_BF16:
      return 8;
    default:
      if (!pestle_dtype_is(dtype, PESTLE_KIND_BOOL | PESTLE_KIND_INT)) return 0;
      return pestle_dtype_info(dtype)->bits -
             pestle_dtype_is(dtype, PESTLE_KIND_SIGNED);
  }
}

// |r| where all of it are numbers of |value|'s type: what others become is not known.
static range_t held(const pestle_value_t* value, range_t r) {
  pestle_dtype_t dtype = value->type->dtype;
  int bits = bits_of(dtype);
  int64_t most = bits < 32 ? ((int64_t)1 << bits) - 1 : LARGE;
  bool is_signed =
      pestle_dtype_is(dtype, PESTLE_KIND_SIGNED | PESTLE_KIND_FLOAT);
  if (!r.is_known || !bits || r.high > most || r.low < (is_signed ? -most : 0))
    return unknown;
  return r;
}

// --- What values can be ---

static range_t of_constant(const pestle_node_t* node) {
  const pestle_elements_t* e = PESTLE_NODE_ELEMENTS(node);
  size_t size = pestle_dtype_size(e->type.dtype);
  if (!bits_of(e->type.dtype) || !size || !e->data) return unknown;
  size_t count = e->splat ? 1 : e->size / size;
  range_t r = unknown;
  bool is_float = pestle_dtype_is(e->type.dtype, PESTLE_KIND_FLOAT);
  for (size_t i = 0; count <= FEW && i < count; ++i) {
    pestle_elements_t one = *e;
    double real;
    int64_t number;
    one.data = (const char*)e->data + i * size;
    pestle_elements_first(&one, &real, &number);
    if (is_float) {
      if (!(real >= -LARGE && real <= LARGE) || real != (int32_t)real)
        return unknown;
      number = (int32_t)real;
    }
    range_t at = make(number, number);
    if (!at.is_known) return unknown;
    if (!i) r = at;
    if (number < r.low) r.low = number;
    if (number > r.high) r.high = number;
  }
  return r;
}

static range_t both(range_t a, range_t b) {
  if (!a.is_known || !b.is_known) return unknown;
  return make(a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high);
}

static range_t least(range_t a, range_t b) {
  return make(a.low < b.low ? a.low : b.low, a.high < b.high ? a.high : b.high);
}

static range_t greatest(range_t a, range_t b) {
  return make(a.low > b.low ? a.low : b.low, a.high > b.high ? a.high : b.high);
}

static range_t product(range_t a, range_t b) {
  range_t low = make(a.low * b.low, a.low * b.low);
  range_t r = both(low, make(a.low * b.high, a.low * b.high));
  r = both(r, make(a.high * b.low, a.high * b.low));
  return both(r, make(a.high * b.high, a.high * b.high));
}

static range_t negative(range_t a) {
  return make(-a.high, -a.low);
}

static range_t absolute(range_t a) {
  range_t r = a.low >= 0 ? a : a.high <= 0 ? negative(a) : make(0, a.high);
  if (a.low < 0 && -a.low > r.high) r.high = -a.low;
  return r;
}

// Rounded towards 0.
static range_t quotient(range_t a, range_t b) {
  if (b.low <= 0 && b.high >= 0) return unknown;
  range_t r = both(make(a.low / b.low, a.low / b.low),
                   make(a.low / b.high, a.low / b.high));
  r = both(r, make(a.high / b.low, a.high / b.low));
  r = both(r, make(a.high / b.high, a.high / b.high));
  return a.low < 0 && a.high > 0 ? both(r, make(0, 0)) : r;
}

// With the sign of |a|.
static range_t rest(range_t a, range_t b) {
  range_t size = absolute(b);
  if (b.low <= 0 && b.high >= 0) return unknown;
  if (absolute(a).high < size.low) return a;
  return make(a.low < 0 ? greatest(a, make(1 - size.high, 0)).low : 0,
              a.high > 0 ? least(a, make(0, size.high - 1)).high : 0);
}

// 1 or 0 where all pairs say so.
static range_t compared(bool is_always, bool is_never) {
  return make(is_always, !is_never);
}

// The sum of parts of |a|, which is a mask or made of one: no more than |most| are ones.
static range_t sum(const places_t* p, range_t a) {
  return a.is_known && a.low >= 0 && a.high <= 1 ? make(0, p->most) : unknown;
}

static bool adds(const pestle_node_t* node) {
  if (node->op == PESTLE_OP_CUMULATIVE)
    return !strcmp(PESTLE_NODE_STR(node, combiner), "ADD");
  const pestle_block_t* body = pestle_node_body(node, 0);
  return node->result_count == 1 && body->first &&
         body->first->op == PESTLE_OP_ADD;
}

static bool is_whole(const pestle_node_t* node) {
  return pestle_dtype_is(pestle_node_result(node, 0)->type->dtype,
                         PESTLE_KIND_INT);
}

static range_t of_pair(const pestle_node_t* node, range_t a, range_t b) {
  switch ((int)node->op) {
    case PESTLE_OP_ADD:
      return make(a.low + b.low, a.high + b.high);
    case PESTLE_OP_SUBTRACT:
      return make(a.low - b.high, a.high - b.low);
    case PESTLE_OP_DIVIDE:
      return is_whole(node) ? quotient(a, b) : unknown;
    case PESTLE_OP_AND:
      if (a.low < 0 || a.high > 1 || b.low < 0 || b.high > 1) return unknown;
      return least(a, b);
    case PESTLE_OP_REMAINDER:
      return rest(a, b);
    case PESTLE_OP_MAXIMUM:
      return greatest(a, b);
    case PESTLE_OP_MINIMUM:
      return least(a, b);
    case PESTLE_OP_LT:
      return compared(a.high < b.low, a.low >= b.high);
    case PESTLE_OP_LE:
      return compared(a.high <= b.low, a.low > b.high);
    case PESTLE_OP_GT:
      return compared(a.low > b.high, a.high <= b.low);
    case PESTLE_OP_GE:
      return compared(a.low >= b.high, a.high < b.low);
    case PESTLE_OP_EQ:
      return compared(a.low == a.high && b.low == b.high && a.low == b.low,
                      a.high < b.low || a.low > b.high);
    case PESTLE_OP_NE:
      return compared(a.high < b.low || a.low > b.high,
                      a.low == a.high && b.low == b.high && a.low == b.low);
    default:
      return unknown;
  }
}

static bool is_of(const pestle_value_t* value, pestle_op_t op,
                  const pestle_value_t* first) {
  return value->node && value->node->op == op &&
         pestle_node_operand(value->node, 0) == first;
}

// x < 0 ? x + n : x, by which indices count from a table's end: what is added to is negative.
static bool counts_from_end(const places_t* p, const pestle_node_t* node,
                            range_t* out) {
  const pestle_value_t* x = pestle_node_operand(node, 2);
  const pestle_value_t *test = pestle_node_operand(node, 0),
                       *other = pestle_node_operand(node, 1);
  if (!is_of(test, PESTLE_OP_LT, x) || !is_of(other, PESTLE_OP_ADD, x))
    return false;
  range_t a = of(p, x), zero = operand(p, test->node, 1);
  range_t n = operand(p, other->node, 1);
  if (!a.is_known || !zero.is_known || !n.is_known || zero.low || zero.high)
    return false;
  *out = make(a.low > 0 ? a.low : 0, a.high);
  if (a.low < 0) *out = both(make(0, a.high), make(a.low + n.low, n.high - 1));
  return true;
}

// What |x| can be where |test|, which may be a comparison of it, is |truth|. Nothing: low is
// above high.
static range_t where(const places_t* p, const pestle_value_t* x,
                     const pestle_value_t* test, bool truth) {
  range_t r = of(p, x);
  const pestle_node_t* node = test->node;
  bool compares =
      node && (node->op == PESTLE_OP_LT || node->op == PESTLE_OP_LE ||
               node->op == PESTLE_OP_GT || node->op == PESTLE_OP_GE);
  if (!compares || !r.is_known) return r;
  bool is_second = pestle_node_operand(node, 1) == x;
  if (!is_second && pestle_node_operand(node, 0) != x) return r;
  range_t b = operand(p, node, is_second ? 0 : 1);
  bool is_below = node->op == PESTLE_OP_LT || node->op == PESTLE_OP_LE;
  bool is_equal = node->op == PESTLE_OP_LE || node->op == PESTLE_OP_GE;
  if (!b.is_known) return r;
  is_below ^= is_second ^ !truth;
  is_equal ^= !truth;
  if (is_below && r.high > b.high - !is_equal) r.high = b.high - !is_equal;
  if (!is_below && r.low < b.low + !is_equal) r.low = b.low + !is_equal;
  return r;
}

static range_t either(range_t a, range_t b) {
  if (a.is_known && a.low > a.high) return b;
  if (b.is_known && b.low > b.high) return a;
  return both(a, b);
}

static range_t of_select(const places_t* p, const pestle_node_t* node) {
  const pestle_value_t* test = pestle_node_operand(node, 0);
  range_t known = of(p, test), r;
  if (counts_from_end(p, node, &r)) return r;
  if (known.is_known && known.low == known.high)
    return operand(p, node, known.low ? 1 : 2);
  return either(where(p, pestle_node_operand(node, 1), test, true),
                where(p, pestle_node_operand(node, 2), test, false));
}

// Where |guard| is a comparison as a number, |x| times it is |x| or 0.
static bool of_guarded(const places_t* p, const pestle_value_t* x,
                       const pestle_value_t* guard, range_t* out) {
  while (guard->node && guard->node->op == PESTLE_OP_CONVERT)
    guard = pestle_node_operand(guard->node, 0);
  if (guard->type->dtype != PESTLE_I1 || !of(p, x).is_known) return false;
  *out = either(where(p, x, guard, true), make(0, 0));
  return true;
}

static range_t of_product(const places_t* p, const pestle_node_t* node) {
  const pestle_value_t *a = pestle_node_operand(node, 0),
                       *b = pestle_node_operand(node, 1);
  range_t r;
  if (of_guarded(p, a, b, &r) || of_guarded(p, b, a, &r)) return r;
  return product(of(p, a), of(p, b));
}

static range_t of_convert(const pestle_node_t* node, range_t a) {
  bool is_truth = pestle_node_result(node, 0)->type->dtype == PESTLE_I1;
  if (!a.is_known || !is_truth) return a;
  return make(a.low > 0 || a.high < 0, a.low || a.high);
}

static range_t of_node(const places_t* p, const pestle_node_t* node) {
  range_t a = node->operand_count ? operand(p, node, 0) : unknown, b = unknown;
  switch ((int)node->op) {
    case PESTLE_OP_CONSTANT:
      return of_constant(node);
    case PESTLE_OP_IOTA: {
      const pestle_type_t* type = pestle_node_result(node, 0)->type;
      return make(0, type->dims[PESTLE_NODE_I64(node, iota_dimension)] - 1);
    }
    case PESTLE_OP_CONVERT:
      return of_convert(node, a);
    case PESTLE_OP_NEGATE:
      return a.is_known ? negative(a) : unknown;
    case PESTLE_OP_ABS:
      return a.is_known ? absolute(a) : unknown;
    case PESTLE_OP_FLOOR:
    case PESTLE_OP_CEIL:
    case PESTLE_OP_RESHAPE:
    case PESTLE_OP_BROADCAST_IN_DIM:
    case PESTLE_OP_TRANSPOSE:
    case PESTLE_OP_SLICE:
    case PESTLE_OP_DYNAMIC_SLICE:
    case PESTLE_OP_GATHER:
      return a;
    case PESTLE_OP_CONCATENATE:
      for (uint32_t i = 1; i < node->operand_count; ++i)
        a = both(a, operand(p, node, i));
      return a;
    case PESTLE_OP_CUMULATIVE:
    case PESTLE_OP_REDUCE:
      return adds(node) ? sum(p, a) : unknown;
    case PESTLE_OP_SELECT:
      return of_select(p, node);
    case PESTLE_OP_CLAMP:
      b = operand(p, node, 1);
      if (!a.is_known || !b.is_known || !operand(p, node, 2).is_known)
        return unknown;
      return least(greatest(a, b), operand(p, node, 2));
    default:
      if (node->operand_count != 2) return unknown;
      b = operand(p, node, 1);
      if (!a.is_known || !b.is_known) return unknown;
      if (node->op == PESTLE_OP_MULTIPLY) return of_product(p, node);
      return of_pair(node, a, b);
  }
}

static range_t of_argument(const places_t* p, size_t index) {
  switch (p->d->inputs[index].role) {
    case DECODE_POSITIONS:
    case DECODE_FIRST:
      return make(0, p->most - 1);
    case DECODE_TOTAL:
      return make(1, p->most);
    case DECODE_MASK:
      return make(0, 1);
    case DECODE_IDS:
    case DECODE_CACHE:
    case DECODE_BEAM_WIDTH:
    case DECODE_BEAMS:
    case DECODE_HIDDEN:
    case DECODE_CROSS:
      break;
  }
  return unknown;
}

// --- Tables ---

// Whether the greatest of |index| leads past the end of |axis| of |table|, of which |size| are
// read.
static bool passes(range_t index, const pestle_value_t* table, int64_t axis,
                   int64_t size) {
  return index.is_known && index.high > table->type->dims[axis] - size;
}

static bool is_short(const places_t* p, const pestle_node_t* node) {
  const pestle_value_t* table = pestle_node_operand(node, 0);
  if (node->op == PESTLE_OP_GATHER) {
    pestle_i64s_t axes = PESTLE_NODE_I64S(node, start_index_map);
    pestle_i64s_t sizes = PESTLE_NODE_I64S(node, slice_sizes);
    return axes.count == 1 && passes(operand(p, node, 1), table, *axes.data,
                                     sizes.data[*axes.data]);
  }
  pestle_i64s_t sizes = PESTLE_NODE_I64S(node, slice_sizes);
  for (size_t i = 0; i < sizes.count; ++i) {
    if (passes(operand(p, node, 1 + i), table, (int64_t)i, sizes.data[i]))
      return true;
  }
  return false;
}

// The first op that reads a table past its end where sequences have |p->most| positions.
static const pestle_node_t* find_short(places_t* p) {
  const pestle_block_t* block = p->f->body->block;
  p->count = 0;
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    pestle_value_t* a = block->arguments[i];
    a->scratch = p->count;
    p->ranges[p->count++] = held(a, of_argument(p, i));
  }
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    bool reads = n->op == PESTLE_OP_GATHER || n->op == PESTLE_OP_DYNAMIC_SLICE;
    if (reads && is_short(p, n)) return n;
    for (uint32_t i = 0; i < n->result_count; ++i) {
      pestle_value_t* r = pestle_node_result(n, i);
      r->scratch = p->count;
      p->ranges[p->count++] =
          n->result_count == 1 ? held(r, of_node(p, n)) : unknown;
    }
  }
  return NULL;
}

static size_t count_values(const pestle_block_t* block) {
  size_t count = block->argument_count;
  for (const pestle_node_t* n = block->first; n; n = n->next)
    count += n->result_count;
  return count;
}

pestle_status_t pestle_decode_find_places(pestle_decoder_t* d,
                                          const pestle_function_t* f) {
  size_t count = count_values(f->body->block);
  int64_t low = 0, high = d->asked;
  places_t p = {.d = d, .f = f, .most = d->asked};
  p.ranges = pestle_alloc(d->allocator, count * sizeof(*p.ranges));
  d->places = d->asked;
  d->short_table = NULL;
  if (!p.ranges) return PESTLE_OOM();
  const pestle_node_t* node = find_short(&p);
  if (node) {
    const char* name = pestle_node_result(node, 0)->name;
    d->short_table = pestle_arena_strdup(&d->arena, name ? name : "");
  }
  // The most positions with which no table is too short.
  while (node && high - low > 1) {
    p.most = low + (high - low) / 2;
    if (find_short(&p)) {
      high = p.most;
    } else {
      low = p.most;
    }
  }
  if (node) d->places = low;
  pestle_dealloc(d->allocator, p.ranges, count * sizeof(*p.ranges));
  return node && !d->short_table ? PESTLE_OOM() : NULL;
}
