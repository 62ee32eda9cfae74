// SPDX-License-Identifier: Apache-2.0
// Random control flow. The values of a body's ops are evaluated as it grows; a
// loop is then run again on the values that its first turn returned.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random/random.h"

static const pestle_type_t* type_at(const value_t* v) {
  return v->value->type;
}

// --- Places to build at ---

typedef struct place_t {
  pestle_builder_t b;
  size_t first, count;
  bool closed;
} place_t;

// With |closed| nothing that is in sight now can be used inside.
static place_t enter(graph_t* g, pestle_block_t* block, bool closed) {
  place_t outside = {g->b, g->first, g->count, g->closed};
  g->b.block = block;
  g->b.before = NULL;
  if (closed) {
    g->first = g->count;
    g->closed = true;
  }
  ++g->depth;
  return outside;
}

static void leave(graph_t* g, place_t outside) {
  g->b = outside.b;
  g->first = outside.first;
  g->count = outside.count;
  g->closed = outside.closed;
  --g->depth;
}

static value_t* take_argument(graph_t* g, pestle_block_t* block, size_t i,
                              const value_t* from) {
  value_t* v = make_value(g, pestle_block_argument(block, i));
  copy_value(v, from);
  v->leaf = from->leaf;
  keep(g, v);
  return v;
}

static void end_block(graph_t* g, value_t* const* values, size_t count) {
  pestle_value_t* out[MAX_OPERANDS];
  for (size_t i = 0; i < count; ++i)
    out[i] = values[i]->value;
  expect(g, pestle_op_return(&g->b, out, count, NULL));
}

static pestle_region_t* region_of(graph_t* g, const pestle_type_t* types,
                                  size_t count, pestle_block_t** out_block) {
  pestle_region_t* region;
  expect(g, pestle_region_create(g->module, types, count, &region, out_block));
  return region;
}

// --- if, case ---

// A region without arguments that returns one value like each of |like|.
static pestle_region_t* branch(graph_t* g, value_t* const* like, size_t count,
                               value_t** out) {
  pestle_block_t* block;
  pestle_region_t* region = region_of(g, NULL, 0, &block);
  place_t outside = enter(g, block, false);
  grow(g, 1 + pick(g, 5));
  for (size_t i = 0; i < count; ++i) {
    out[i] = of_type(g, type_at(like[i]), false);
    if (!out[i]) out[i] = like[i];
  }
  end_block(g, out, count);
  leave(g, outside);
  return region;
}

static value_t* branches(graph_t* g, pestle_op_t op, pestle_dtype_t dtype,
                         value_t* which, size_t n, size_t taken) {
  value_t *like[3], *made[4][3];
  size_t count = 1 + pick(g, 2);
  for (size_t i = 0; i < count; ++i)
    like[i] = any_of(
        g, i ? pick_dtype(g, PESTLE_KIND_REAL | PESTLE_KIND_COMPLEX) : dtype,
        false, 0);
  spec_t s = {.op = op};
  spec_operand(&s, which);
  for (size_t i = 0; i < n; ++i)
    s.regions[s.region_count++] = branch(g, like, count, made[i]);
  for (size_t i = 0; i < count; ++i)
    s.given[i] = made[taken][i];
  return add(g, &s, NULL);
}

value_t* row_if(graph_t* g, pestle_dtype_t dtype) {
  pestle_type_t flag = scalar_of(PESTLE_I1);
  value_t* which = of_type(g, &flag, true);
  if (!which || one_in(g, 2)) which = fresh(g, flag, FILL_GRID, 0);
  bool holds = *(const char*)which->data;
  return branches(g, PESTLE_OP_IF, dtype, which, 2, holds ? 0 : 1);
}

value_t* row_case(graph_t* g, pestle_dtype_t dtype) {
  pestle_type_t index = scalar_of(PESTLE_I32);
  size_t n = 1 + pick(g, 4);
  value_t* which = of_type(g, &index, true);
  if (!which || one_in(g, 2))
    which = fresh(g, index, FILL_INDEX, (int64_t)n - 1);
  int32_t at = *(const int32_t*)which->data;
  // Outside of the branches the last one is taken.
  size_t taken = at < 0 || (size_t)at >= n ? n - 1 : (size_t)at;
  return branches(g, PESTLE_OP_CASE, dtype, which, n, taken);
}

// --- while ---

enum { MAX_STATE = 3 };

typedef struct loop_t {
  size_t count;                   // of the state's values beside the counter
  value_t* state[MAX_STATE + 1];  // at the turn's end; the counter first
  pestle_block_t* block;
  pestle_value_t* next[MAX_STATE + 1];
} loop_t;

// Runs the body once more. False: some op is ill-conditioned on this state.
static bool turn(graph_t* g, loop_t* l) {
  for (size_t i = 0; i <= l->count; ++i) {
    value_t* v = make_value(g, pestle_block_argument(l->block, i));
    copy_value(v, l->state[i]);
  }
  for (const pestle_node_t* n = l->block->first; n; n = n->next) {
    if (n->op == PESTLE_OP_RETURN) break;
    value_t *in[MAX_OPERANDS], *out[MAX_OPERANDS];
    for (uint32_t i = 0; i < n->operand_count; ++i) {
      in[i] = (value_t*)(uintptr_t)pestle_node_operand(n, i)->scratch;
      if (in[i]->special || in[i]->largest > 60) return false;
    }
    if (!evaluate(g, n, in, out) || !judge(g, n, in, out)) return false;
  }
  for (size_t i = 0; i <= l->count; ++i)
    l->state[i] = (value_t*)(uintptr_t)l->next[i]->scratch;
  return true;
}

// The body: (i, x..) -> (i + 1, what grows from x). Its first turn is run as it
// grows.
static pestle_region_t* loop_body(graph_t* g, loop_t* l,
                                  const pestle_type_t* types) {
  value_t* next[MAX_STATE + 1];
  pestle_region_t* region = region_of(g, types, l->count + 1, &l->block);
  place_t outside = enter(g, l->block, false);
  bool flat = g->flat;
  g->flat = true;
  value_t* args[MAX_STATE + 1];
  for (size_t i = 0; i <= l->count; ++i)
    args[i] = take_argument(g, l->block, i, l->state[i]);
  spec_t step = SPEC(ADD);
  spec_operand(&step, args[0]);
  spec_operand(&step, splat(g, scalar_of(PESTLE_I32), 1));
  next[0] = add(g, &step, NULL);
  grow(g, 2 + pick(g, 5));
  for (size_t i = 1; i <= l->count; ++i) {
    next[i] = of_type(g, &types[i], false);
    // States that change places need a copy in between.
    size_t other = 1 + pick(g, (uint32_t)l->count);
    if (one_in(g, 2) && pestle_type_equal(&types[i], &types[other]))
      next[i] = args[other];
    if (!next[i]) next[i] = args[i];
  }
  end_block(g, next, l->count + 1);
  for (size_t i = 0; i <= l->count; ++i) {
    l->next[i] = next[i]->value;
    l->state[i] = next[i];
  }
  g->flat = flat;
  leave(g, outside);
  return region;
}

// i < |limit|, which is a constant or a value of the graph.
static pestle_region_t* loop_condition(graph_t* g, size_t count,
                                       const pestle_type_t* types,
                                       int32_t limit) {
  value_t* captured = NULL;
  if (one_in(g, 2) && !g->closed && g->input_count < MAX_INPUTS) {
    captured = fresh(g, scalar_of(PESTLE_I32), FILL_GRID, 0);
    *(int32_t*)captured->data = limit;
    captured->leaf = true;
    captured->uses = 1;
  }
  pestle_builder_t b;
  pestle_region_t* region = raw_region(g, types, count + 1, &b);
  pestle_value_t* end =
      captured ? captured->value : raw_splat(g, &b, PESTLE_I32, (double)limit);
  pestle_value_t* goes_on =
      raw(g, &b, PESTLE_OP_LT, pestle_block_argument(b.block, 0), end, NULL);
  raw_return(g, &b, &goes_on, 1);
  return region;
}

value_t* row_while(graph_t* g, pestle_dtype_t dtype) {
  loop_t l = {.count = 1 + pick(g, MAX_STATE)};
  pestle_type_t types[MAX_STATE + 1];
  value_t *init[MAX_STATE + 1], *given[MAX_STATE + 1];
  init[0] = splat(g, scalar_of(PESTLE_I32), 0);
  for (size_t i = 1; i <= l.count; ++i) {
    init[i] =
        i > 1 && one_in(g, 2)
            ? partner(g, type_at(init[1]), false)
            : any_of(g,
                     i > 1
                         ? pick_dtype(g, PESTLE_KIND_REAL | PESTLE_KIND_COMPLEX)
                         : dtype,
                     false, 0);
  }
  for (size_t i = 0; i <= l.count; ++i) {
    if (init[i]->special) return NULL;
    l.state[i] = given[i] = init[i];
    types[i] = *type_at(init[i]);
  }
  pestle_region_t* body = loop_body(g, &l, types);
  int32_t wanted = (int32_t)pick(g, 6), turns = 0;
  while (turns < wanted) {
    ++turns;
    for (size_t i = 0; i <= l.count; ++i)
      given[i] = l.state[i];
    if (turns < wanted && !turn(g, &l)) break;
  }
  spec_t s = SPEC(WHILE);
  for (size_t i = 0; i <= l.count; ++i) {
    spec_operand(&s, init[i]);
    s.given[i] = given[i];
  }
  s.regions[s.region_count++] = loop_condition(g, l.count, types, turns);
  s.regions[s.region_count++] = body;
  value_t* results[MAX_OPERANDS];
  value_t* first = add(g, &s, results);
  return first ? results[1] : NULL;
}

// --- call, fusion, barrier ---

// Grows a body on copies of |operands| that captures nothing and returns one or
// two values.
static size_t closed_body(graph_t* g, pestle_block_t* block,
                          value_t* const* operands, size_t count,
                          bool elementwise, value_t** out) {
  place_t outside = enter(g, block, true);
  bool flat = g->flat, plain = g->elementwise;
  g->flat = true;
  g->elementwise = elementwise;
  for (size_t i = 0; i < count; ++i)
    take_argument(g, block, i, operands[i]);
  grow(g, 1 + pick(g, 4));
  size_t n = 1 + pick(g, 2);
  for (size_t i = 0; i < n; ++i)
    out[i] = g->values[g->count - 1 - pick(g, g->count - g->first > 1 ? 2 : 1)];
  if (n == 2 && out[0] == out[1]) n = 1;
  end_block(g, out, n);
  g->flat = flat;
  g->elementwise = plain;
  leave(g, outside);
  return n;
}

static size_t pick_operands(graph_t* g, pestle_dtype_t dtype, spec_t* s,
                            pestle_type_t* types, bool alike) {
  size_t n = 1 + pick(g, 3);
  for (size_t i = 0; i < n; ++i) {
    value_t* v =
        i && alike ? partner(g, &types[0], false) : any_of(g, dtype, false, 0);
    spec_operand(s, v);
    types[i] = *type_at(v);
  }
  return n;
}

value_t* row_call(graph_t* g, pestle_dtype_t dtype) {
  spec_t s = SPEC(CALL);
  pestle_type_t types[4];
  char name[32];
  size_t n = pick_operands(g, dtype, &s, types, one_in(g, 2));
  pestle_function_t* f;
  snprintf(name, sizeof(name), "f%u", g->functions++);
  expect(g, pestle_module_add_function(g->module, name, types, NULL, n, &f));
  value_t* out[2];
  size_t results = closed_body(g, f->body->block, s.operands, n, false, out);
  for (size_t i = 0; i < results; ++i)
    s.given[i] = out[i];
  spec_str(&s, PESTLE_ATTR_callee, name);
  return add(g, &s, NULL);
}

// A group that exists before the fuse pass runs.
value_t* row_fusion(graph_t* g, pestle_dtype_t dtype) {
  spec_t s = SPEC(FUSION);
  pestle_type_t types[4];
  pestle_block_t* block;
  size_t n = pick_operands(g, dtype, &s, types, true);
  pestle_region_t* region = region_of(g, types, n, &block);
  value_t* out[2];
  size_t results = closed_body(g, block, s.operands, n, true, out);
  for (size_t i = 0; i < results; ++i)
    s.given[i] = out[i];
  s.regions[s.region_count++] = region;
  return add(g, &s, NULL);
}

// The text has to keep it, a pass to find what its body is.
value_t* row_composite(graph_t* g, pestle_dtype_t dtype) {
  spec_t s = SPEC(CUSTOM);
  pestle_type_t types[4];
  pestle_block_t* block;
  size_t n = pick_operands(g, dtype, &s, types, one_in(g, 2));
  pestle_region_t* region = region_of(g, types, n, &block);
  value_t* out[2];
  size_t results = closed_body(g, block, s.operands, n, false, out);
  for (size_t i = 0; i < results; ++i)
    s.given[i] = out[i];
  s.regions[s.region_count++] = region;
  spec_str(&s, PESTLE_ATTR_name, "random.op");
  return add(g, &s, NULL);
}

value_t* row_optimization_barrier(graph_t* g, pestle_dtype_t dtype) {
  spec_t s = SPEC(OPTIMIZATION_BARRIER);
  pestle_type_t types[4];
  size_t n = pick_operands(g, dtype, &s, types, false);
  for (size_t i = 0; i < n; ++i)
    s.given[i] = s.operands[i];
  return add(g, &s, NULL);
}

// --- scan ---

enum { MAX_TURNS = 5, MAX_STACKS = 2 };

typedef struct scan_t {
  size_t carries, xs, count;  // |count| operands in all
  int64_t length;
  bool reverse;
  value_t* operands[MAX_OPERANDS];
  pestle_type_t types[MAX_OPERANDS];  // of the body's arguments
  pestle_block_t* block;
  value_t* state[MAX_OPERANDS];  // of the carries, at the turn's end
  size_t stacks;
  pestle_value_t* next[MAX_OPERANDS];  // what the body returns
  value_t* ys[MAX_STACKS];
} scan_t;

static int64_t element_of_turn(const scan_t* s, int64_t turn) {
  return s->reverse ? s->length - 1 - turn : turn;
}

// Gives the body's arguments what they are in |turn|.
static void begin_turn(graph_t* g, scan_t* s, int64_t turn) {
  for (size_t i = 0; i < s->count; ++i) {
    const value_t* from = i < s->carries ? s->state[i] : s->operands[i];
    bool is_x = i >= s->carries && i < s->carries + s->xs;
    value_t* v = make_value(g, pestle_block_argument(s->block, i));
    size_t size = pestle_type_bytes(&s->types[i]);
    size_t at = is_x ? (size_t)element_of_turn(s, turn) * size : 0;
    memcpy(v->data, (const char*)from->data + at, size);
    v->radius = from->radius;
    v->leaf = from->leaf;
    note_range(v);
    if (!turn) keep(g, v);
  }
}

// Takes over what the body returned.
static void end_turn(scan_t* s, int64_t turn) {
  for (size_t i = 0; i < s->carries; ++i)
    s->state[i] = (value_t*)(uintptr_t)s->next[i]->scratch;
  for (size_t i = 0; i < s->stacks; ++i) {
    pestle_value_t* y = s->next[s->carries + i];
    const value_t* v = (value_t*)(uintptr_t)y->scratch;
    size_t size = pestle_type_bytes(y->type);
    size_t at = (size_t)element_of_turn(s, turn) * size;
    memcpy((char*)s->ys[i]->data + at, v->data, size);
    s->ys[i]->radius = fmax(s->ys[i]->radius, v->radius);
  }
}

static bool scan_turn(graph_t* g, scan_t* s, int64_t turn) {
  begin_turn(g, s, turn);
  for (const pestle_node_t* n = s->block->first; n; n = n->next) {
    if (n->op == PESTLE_OP_RETURN) break;
    value_t *in[MAX_OPERANDS], *out[MAX_OPERANDS];
    for (uint32_t i = 0; i < n->operand_count; ++i) {
      in[i] = (value_t*)(uintptr_t)pestle_node_operand(n, i)->scratch;
      if (in[i]->special || in[i]->largest > 60) return false;
    }
    if (!evaluate(g, n, in, out) || !judge(g, n, in, out)) return false;
  }
  end_turn(s, turn);
  return true;
}

// A place for |length| elements like |v|, which grows no op.
static value_t* make_stack(graph_t* g, const value_t* v, int64_t length) {
  value_t* out = make_value(g, v->value);
  v->value->scratch = (uintptr_t)v;
  free(out->data);
  out->data =
      calloc((size_t)length * pestle_type_bytes(v->value->type) + 16, 1);
  return out;
}

static pestle_region_t* scan_body(graph_t* g, scan_t* s) {
  pestle_region_t* region = region_of(g, s->types, s->count, &s->block);
  place_t outside = enter(g, s->block, true);
  bool flat = g->flat;
  g->flat = true;
  begin_turn(g, s, 0);
  grow(g, 2 + pick(g, 5));
  value_t* out[MAX_OPERANDS];
  for (size_t i = 0; i < s->carries; ++i) {
    size_t other = pick(g, (uint32_t)s->carries);
    out[i] = of_type(g, &s->types[i], false);
    if (one_in(g, 3) && pestle_type_equal(&s->types[i], &s->types[other]))
      out[i] =
          (value_t*)(uintptr_t)pestle_block_argument(s->block, other)->scratch;
    if (!out[i])
      out[i] = (value_t*)(uintptr_t)pestle_block_argument(s->block, i)->scratch;
  }
  for (size_t i = 0; i < s->stacks; ++i) {
    size_t at = g->first + pick(g, (uint32_t)(g->count - g->first));
    out[s->carries + i] = g->values[at];
  }
  end_block(g, out, s->carries + s->stacks);
  for (size_t i = 0; i < s->carries + s->stacks; ++i)
    s->next[i] = out[i]->value;
  for (size_t i = 0; i < s->stacks; ++i)
    s->ys[i] = make_stack(g, out[s->carries + i], s->length);
  end_turn(s, 0);
  g->flat = flat;
  leave(g, outside);
  return region;
}

static bool scan_operand(graph_t* g, scan_t* s, pestle_dtype_t dtype) {
  bool is_x = s->count >= s->carries && s->count < s->carries + s->xs;
  value_t* v;
  if (is_x) {
    pestle_type_t type = pick_shape(g, dtype);
    if (type.rank == PESTLE_MAX_RANK) --type.rank;
    s->types[s->count] = type;
    int64_t dims[PESTLE_MAX_RANK] = {s->length};
    memcpy(dims + 1, type.dims, (size_t)type.rank * sizeof(*dims));
    type = type_of(dtype, type.rank + 1, dims);
    if (pestle_type_count(&type) > g->limit) return false;
    v = fresh(g, type, FILL_GRID, 0);
  } else {
    v = any_of(g, dtype, false, 0);
    s->types[s->count] = *type_at(v);
  }
  s->operands[s->count++] = v;
  return !v->special;
}

value_t* row_scan(graph_t* g, pestle_dtype_t dtype) {
  scan_t s = {.carries = 1 + pick(g, 2),
              .xs = pick(g, 3),
              .length = 1 + pick(g, MAX_TURNS),
              .reverse = one_in(g, 2),
              .stacks = pick(g, MAX_STACKS + 1)};
  size_t wanted = s.carries + s.xs + pick(g, 2);
  while (s.count < wanted) {
    unsigned kinds = PESTLE_KIND_REAL | PESTLE_KIND_COMPLEX;
    pestle_dtype_t own = s.count && one_in(g, 3) ? pick_dtype(g, kinds) : dtype;
    if (!scan_operand(g, &s, own)) return NULL;
  }
  for (size_t i = 0; i < s.carries; ++i)
    s.state[i] = s.operands[i];
  pestle_region_t* body = scan_body(g, &s);
  for (int64_t i = 1; i < s.length; ++i) {
    if (!scan_turn(g, &s, i)) return NULL;
  }
  spec_t spec = SPEC(SCAN);
  for (size_t i = 0; i < s.count; ++i)
    spec_operand(&spec, s.operands[i]);
  for (size_t i = 0; i < s.carries; ++i)
    spec.given[i] = s.state[i];
  for (size_t i = 0; i < s.stacks; ++i)
    spec.given[s.carries + i] = s.ys[i];
  spec.regions[spec.region_count++] = body;
  spec_i64(&spec, PESTLE_ATTR_length, s.length);
  spec_i64(&spec, PESTLE_ATTR_carry_count, (int64_t)s.carries);
  spec_i64(&spec, PESTLE_ATTR_xs_count, (int64_t)s.xs);
  spec_i64(&spec, PESTLE_ATTR_unroll, pick(g, 4));
  spec_bool(&spec, PESTLE_ATTR_reverse, s.reverse);
  return add(g, &spec, NULL);
}
