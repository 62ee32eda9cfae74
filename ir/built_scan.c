// SPDX-License-Identifier: Apache-2.0
// chlo.scan: a function of one element of each input along an axis, and of what it
// carried on from the element before, to one of each output and what it carries on.
//
//   y, end = scan(x, init) { s = x_i + c; return s, s }
//     ->  y = pestle.cumulative x by ADD        where init is 0
//     ->  concatenate init, x and the same      where it is not
//   any other  ->  a loop over the elements
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "ir/built.h"
#include "ir/copy.h"
#include "ir/cumulative.h"
#include "ir/identity.h"
#include "ir/infer.h"

typedef pestle_value_t pv_t;

#define FAIL(b, CODE, ...) \
  pestle_built_fail(b, PESTLE_STATUS_##CODE, __VA_ARGS__)

typedef struct scan_t {
  pestle_built_t* b;
  size_t inputs, carries, outputs;
  int64_t dim, extent;  // -1: no input says it
  bool reverse;
  const pestle_block_t* body;
  const pestle_node_t* end;  // the body's return
} scan_t;

// --- What is written ---

static bool read_flag(pestle_built_t* b, const char* key) {
  const pestle_generic_value_t* value = pestle_built_attr(b, key);
  if (value && value->kind != PESTLE_GENERIC_BOOL) {
    FAIL(b, MALFORMED, "attribute '%s' must be true or false", key);
  }
  return value && value->b;
}

// How many operands are inputs, and results outputs.
static bool read_segments(scan_t* s) {
  pestle_built_t* b = s->b;
  pestle_i64s_t in;
  if (!pestle_built_i64s(b, "operandSegmentSizes", true, &in)) return false;
  bool fits = in.count == 2 && in.data[0] >= 0 && in.data[1] >= 0 &&
              (size_t)in.data[0] <= b->operand_count &&
              (size_t)in.data[1] == b->operand_count - (size_t)in.data[0] &&
              (size_t)in.data[1] <= b->type_count;
  if (fits) {
    s->inputs = (size_t)in.data[0];
    s->carries = (size_t)in.data[1];
    s->outputs = b->type_count - s->carries;
    return true;
  }
  FAIL(b, MALFORMED,
       "'operandSegmentSizes' must say how many of the %zu operands are inputs "
       "and how many begin what is carried, of which each has a result",
       b->operand_count);
  return false;
}

static bool read_extent(scan_t* s) {
  pestle_built_t* b = s->b;
  s->extent = -1;
  if (!pestle_built_i64(b, "dimension", true, &s->dim) ||
      !pestle_built_i64(b, "scan_dim_size", false, &s->extent)) {
    return false;
  }
  for (size_t i = 0; i < s->inputs + s->outputs; ++i) {
    bool input = i < s->inputs;
    const pestle_type_t* type =
        input ? pestle_built_type(b, i) : &b->types[i - s->inputs];
    if (s->dim < 0 || s->dim >= type->rank) {
      FAIL(b, MALFORMED, "'dimension' is %lld, but %s %zu is %s",
           (long long)s->dim, input ? "input" : "output",
           input ? i : i - s->inputs, pestle_type_text(type).text);
      return false;
    }
    int64_t extent = type->dims[s->dim];
    if (!pestle_type_is_static(type)) {
      if (input && b->shapes) b->shapes->wanted = b->operands[i];
      FAIL(b, UNSUPPORTED, "its shapes must be static, but one is %s",
           pestle_type_text(type).text);
      return false;
    }
    if (s->extent < 0) s->extent = extent;
    if (s->extent == extent) continue;
    FAIL(b, MALFORMED, "its inputs and outputs have %lld and %lld elements",
         (long long)s->extent, (long long)extent);
    return false;
  }
  return true;
}

// One element along the axis, which is gone.
static pestle_type_t element_of(const scan_t* s, const pestle_type_t* whole) {
  pestle_type_t out = *whole;
  for (int64_t d = s->dim; d + 1 < whole->rank; ++d)
    out.dims[d] = whole->dims[d + 1];
  --out.rank;
  return out;
}

static bool has_type(scan_t* s, const char* what, size_t at, const pv_t* value,
                     pestle_type_t want) {
  if (pestle_type_equal(value->type, &want)) return true;
  FAIL(s->b, MALFORMED, "%s %zu of its body is %s, not %s", what, at,
       pestle_type_text(value->type).text, pestle_type_text(&want).text);
  return false;
}

static bool check_body(scan_t* s) {
  pestle_built_t* b = s->b;
  size_t taken = s->inputs + s->carries, given = s->outputs + s->carries;
  if (b->region_count != 1) {
    FAIL(b, MALFORMED, "it has one region");
    return false;
  }
  s->body = b->regions[0]->block;
  s->end = s->body->last;
  if (s->body->argument_count != taken || !s->end ||
      s->end->op != PESTLE_OP_RETURN || s->end->operand_count != given) {
    FAIL(b, MALFORMED, "its body must take %zu values and return %zu", taken,
         given);
    return false;
  }
  for (size_t i = 0; i < taken; ++i) {
    const pestle_type_t* type = pestle_built_type(b, i);
    pestle_type_t want = i < s->inputs ? element_of(s, type) : *type;
    if (!has_type(s, "argument", i, s->body->arguments[i], want)) return false;
  }
  for (size_t i = 0; i < given; ++i) {
    pestle_type_t want =
        i < s->outputs ? element_of(s, &b->types[i])
                       : *pestle_built_type(b, s->inputs + i - s->outputs);
    if (!has_type(s, "result", i, pestle_node_operand(s->end, i), want))
      return false;
  }
  return true;
}

// --- By one op ---

// The op of "s = x op c; return s, s", or COUNT.
static pestle_op_t combiner_of(const scan_t* s) {
  const pestle_node_t* n = s->body->first;
  bool one = s->inputs == 1 && s->carries == 1 && s->outputs == 1 &&
             n != s->end && n->next == s->end && n->operand_count == 2;
  if (!one || !pestle_cumulative_name((pestle_op_t)n->op)) {
    return PESTLE_OP_COUNT;
  }
  const pv_t *a = pestle_node_operand(n, 0), *b = pestle_node_operand(n, 1);
  const pv_t *x = s->body->arguments[0], *carry = s->body->arguments[1];
  bool both = (a == x && b == carry) || (a == carry && b == x);
  bool same = pestle_node_operand(s->end, 0) == &n->results[0] &&
              pestle_node_operand(s->end, 1) == &n->results[0];
  return both && same ? (pestle_op_t)n->op : PESTLE_OP_COUNT;
}

// Whether |value| is the op's identity everywhere.
static bool is_identity(const pv_t* value, pestle_op_t op) {
  while (value->node && value->node->op == PESTLE_OP_BROADCAST_IN_DIM)
    value = pestle_node_operand(value->node, 0);
  if (!value->node || value->node->op != PESTLE_OP_CONSTANT) return false;
  const pestle_elements_t* e = PESTLE_NODE_ELEMENTS(value->node);
  pestle_dtype_t dtype = e->type.dtype;
  size_t size = pestle_dtype_size(dtype);
  double number;
  int64_t bits;
  uint64_t own = 0;
  bool one = e->splat || pestle_type_count(&e->type) == 1;
  if (!one || size > sizeof(own)) return false;
  pestle_reduce_identity(op, dtype, &number, &bits);
  memcpy(&own, e->data, size);
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    return pestle_float_decode(dtype, own) == number;
  }
  return pestle_dtype_is(dtype, PESTLE_KIND_INT | PESTLE_KIND_BOOL) &&
         !memcmp(&own, &bits, size);
}

static void by_one_op(scan_t* s, pestle_op_t op) {
  pestle_built_t* b = s->b;
  pestle_formula_t* f = &b->f;
  pv_t *x = b->operands[0], *init = b->operands[1];
  pestle_type_t thin = *x->type;
  thin.dims[s->dim] = 1;
  bool begins = !is_identity(init, op);
  init = pestle_f_reshape_to(f, init, &thin);
  pv_t* parts[2] = {s->reverse ? x : init, s->reverse ? init : x};
  if (begins) x = pestle_f_concatenate(f, parts, 2, s->dim);
  pestle_attr_t attrs[] = {PESTLE_SET_I64(dimension, s->dim),
                           PESTLE_SET_STR(combiner, pestle_cumulative_name(op)),
                           PESTLE_SET_BOOL(reverse, s->reverse)};
  pv_t* y = pestle_f_make(f, PESTLE_OP_CUMULATIVE, &x, 1, attrs, 3, NULL);
  int64_t n = s->extent + begins, last = s->reverse ? 0 : n - 1;
  pv_t* end = n ? pestle_f_part(f, y, (int32_t)s->dim, last) : b->operands[1];
  int64_t first = begins && !s->reverse;
  b->results[0] =
      pestle_f_slice_axis(f, y, (int32_t)s->dim, first, first + s->extent);
  b->results[1] = end;
}

// --- By a loop: values are the number of elements done, outputs, carries ---

static pestle_region_t* enter(scan_t* s, const pestle_type_t* types,
                              pestle_formula_t* out) {
  pestle_region_t* region = NULL;
  pestle_builder_t inside = {.module = s->b->f.builder.module,
                             .loc = s->b->f.builder.loc};
  size_t count = 1 + s->outputs + s->carries;
  if (s->b->f.status) return NULL;
  s->b->f.status =
      pestle_region_create(inside.module, types, count, &region, &inside.block);
  *out = pestle_formula_make(inside);
  return region;
}

// Ends the region with |values|, or says what went wrong in it.
static pestle_region_t* leave(scan_t* s, pestle_region_t* region,
                              pestle_formula_t* f, pv_t* const* values,
                              size_t count) {
  if (!f->status)
    f->status = pestle_op_return(&f->builder, values, count, NULL);
  if (!f->status) return region;
  s->b->f.status = f->status;
  pestle_region_discard(region);
  return NULL;
}

static pestle_region_t* condition(scan_t* s, const pestle_type_t* types) {
  pestle_formula_t f;
  pestle_region_t* region = enter(s, types, &f);
  if (!region) return NULL;
  pv_t* done = pestle_block_argument(f.builder.block, 0);
  pv_t* end = pestle_f_scalar(&f, PESTLE_I64, (double)s->extent);
  pv_t* more = pestle_f_lt(&f, done, end);
  return leave(s, region, &f, &more, 1);
}

// A copy of the body on one element, whose returned values go to |next|.
static pestle_status_t copy_body(pestle_formula_t* f, const scan_t* s, pv_t* at,
                                 pv_t** next) {
  pestle_copier_t copier;
  pestle_block_t* block = f->builder.block;
  pestle_status_t status = NULL;
  pestle_copier_init(s->b->arena->allocator, f->builder, &copier);
  for (size_t i = 0; i < s->inputs + s->carries && !status; ++i) {
    pv_t* value =
        i < s->inputs
            ? pestle_f_element_at(f, s->b->operands[i], (int32_t)s->dim, at)
            : pestle_block_argument(block, 1 + s->outputs + i - s->inputs);
    status = f->status
                 ? f->status
                 : pestle_copier_set(&copier, s->body->arguments[i], value);
    f->status = NULL;
  }
  if (!status) status = pestle_copier_block(&copier, s->body);
  for (size_t i = 0; i < s->outputs + s->carries && !status; ++i)
    next[i] = pestle_copier_get(&copier, pestle_node_operand(s->end, i));
  pestle_copier_deinit(&copier);
  return status;
}

static pestle_region_t* step(scan_t* s, const pestle_type_t* types) {
  pestle_formula_t f;
  size_t count = 1 + s->outputs + s->carries;
  pv_t** next = PESTLE_ARENA_ARRAY(s->b->arena, pv_t*, count);
  if (!next && !s->b->f.status) s->b->f.status = PESTLE_OOM();
  pestle_region_t* region = enter(s, types, &f);
  if (!region) return NULL;
  pestle_block_t* block = f.builder.block;
  pv_t *done = pestle_block_argument(block, 0), *at = done;
  if (s->reverse) {
    at = pestle_f_scalar(&f, PESTLE_I64, (double)(s->extent - 1));
    at = pestle_f_subtract(&f, at, done);
  }
  if (!f.status) f.status = copy_body(&f, s, at, next + 1);
  for (size_t i = 0; i < s->outputs && !f.status; ++i) {
    next[1 + i] = pestle_f_with_element(&f, pestle_block_argument(block, 1 + i),
                                        (int32_t)s->dim, at, next[1 + i]);
  }
  next[0] = pestle_f_plus(&f, done, 1);
  return leave(s, region, &f, next, count);
}

static void by_loop(scan_t* s) {
  pestle_built_t* b = s->b;
  size_t count = 1 + s->outputs + s->carries;
  pestle_type_t* types = PESTLE_ARENA_ARRAY(b->arena, pestle_type_t, count);
  pv_t** values = PESTLE_ARENA_ARRAY(b->arena, pv_t*, count);
  pestle_region_t* regions[2] = {NULL, NULL};
  if (!types || !values) {
    b->f.status = PESTLE_OOM();
    return;
  }
  values[0] = pestle_f_scalar(&b->f, PESTLE_I64, 0);
  for (size_t i = 1; i < count; ++i) {
    values[i] = i <= s->outputs ? pestle_f_number(&b->f, &b->types[i - 1], 0)
                                : b->operands[s->inputs + i - 1 - s->outputs];
  }
  if (b->f.status) return;
  for (size_t i = 0; i < count; ++i)
    types[i] = *values[i]->type;
  regions[0] = condition(s, types);
  regions[1] = step(s, types);
  if (b->f.status) {
    if (regions[0]) pestle_region_discard(regions[0]);
    return;
  }
  pestle_node_t* loop =
      pestle_f_node(&b->f, &(pestle_node_spec_t){.op = PESTLE_OP_WHILE,
                                                 .operands = values,
                                                 .operand_count = count,
                                                 .regions = regions,
                                                 .region_count = 2});
  for (size_t i = 1; loop && i < count; ++i)
    b->results[i - 1] = pestle_node_result(loop, i);
}

void pestle_built_scan(pestle_built_t* b) {
  scan_t s = {.b = b};
  s.reverse = read_flag(b, "is_reverse");
  read_flag(b, "is_associative");
  if (!read_segments(&s) || !read_extent(&s) || !check_body(&s)) return;
  if (s.extent < 0) {
    FAIL(
        b, MALFORMED,
        "without inputs and outputs 'scan_dim_size' must say how many elements "
        "there are");
    return;
  }
  pestle_op_t op = combiner_of(&s);
  if (op == PESTLE_OP_COUNT) {
    by_loop(&s);
  } else {
    by_one_op(&s, op);
  }
}
