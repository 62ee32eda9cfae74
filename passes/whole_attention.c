// SPDX-License-Identifier: Apache-2.0
// Attention of new tokens over a cache, of which no more is read than the tokens see
// (codegen/direct/direct_cached_attention.c, of few rows where lanes run side by side): a bias of 0 where key <= past + i, i being the
// token that the row is of and past a number in memory, and -inf elsewhere.
//
//   %y = pestle.attention(%q, %k, %v, %bias)
//   ->
//   %y = pestle.fusion(%q, %k, %v, %past) {
//     %n = %past + tokens;  %k2 = pestle.extent(%k, %n);  pestle.attention(%q, %k2, ..) }
//
// On a CPU what turns the queries of one token by their angles is part of it
// (whole_attention_rotation.c): q is then what it turns, and cosine and sine are operands.
//
// Of several batch elements %past is one number each, and %n goes by the largest of them.
//
// What the bias is follows from the ops that make it: each is asked for its element at a
// place, and the places are symbols.
#include <math.h>

#include "ir/attention.h"
#include "passes/whole_attention.h"

// What an axis of a value is at.
typedef enum place_t {
  NONE,   // 0: the axis has one place
  OTHER,  // no matter what
  BATCH,
  ROW,    // of the scores
  TOKEN,  // the row % tokens
  KEY,
} place_t;

typedef struct places_t {
  place_t of[PESTLE_MAX_RANK];
} places_t;

// What integers are at a place: a sum.
typedef struct sum_t {
  int64_t number;
  int keys, tokens;            // how often these are in it
  const pestle_value_t* past;  // one number, or one a batch element; or NULL
} sum_t;

typedef struct causal_t {
  int64_t batch, rows, tokens;  // of the scores; new ones
  bool has_rows;                // some row was taken for a token
  const pestle_value_t* past;
} causal_t;

// --- Places ---

static places_t behind_broadcast(const pestle_node_t* node, places_t at) {
  const pestle_type_t* from = pestle_node_operand(node, 0)->type;
  pestle_i64s_t dims = PESTLE_NODE_I64S(node, broadcast_dimensions);
  places_t out = {{NONE}};
  for (int32_t i = 0; i < from->rank; ++i)
    out.of[i] = from->dims[i] == 1 ? NONE : at.of[dims.data[i]];
  return out;
}

// Axes of more than one place in their order are the same; or rows are heads and tokens.
static bool behind_reshape(causal_t* c, const pestle_node_t* node,
                           places_t* at) {
  const pestle_type_t *from = pestle_node_operand(node, 0)->type,
                      *to = node->results[0].type;
  places_t out = {{NONE}};
  int32_t j = 0;
  for (int32_t i = 0; i < to->rank; ++i) {
    if (to->dims[i] == 1) continue;
    while (j < from->rank && from->dims[j] == 1)
      ++j;
    if (j == from->rank) return false;
    if (from->dims[j] == to->dims[i]) {
      out.of[j++] = at->of[i];
      continue;
    }
    int32_t heads = j++;
    while (j < from->rank && from->dims[j] == 1)
      ++j;
    if (at->of[i] != ROW || c->has_rows || c->tokens != c->rows ||
        j == from->rank || from->dims[heads] * from->dims[j] != c->rows) {
      return false;
    }
    c->tokens = from->dims[j];
    out.of[heads] = OTHER;
    out.of[j++] = TOKEN;
  }
  *at = out;
  return true;
}

// --- Integers ---

// The axis along which |e| counts 0, 1, .., whatever the other axes; -1: none.
static int32_t counted_axis(const pestle_elements_t* e) {
  int64_t count = pestle_type_count(&e->type), behind = count;
  if (e->splat || (e->type.dtype != PESTLE_I64 && e->type.dtype != PESTLE_I32))
    return -1;
  for (int32_t d = 0; d < e->type.rank; ++d) {
    int64_t extent = e->type.dims[d], i = 0;
    behind /= extent;
    if (extent == 1) continue;
    while (i < count &&
           pestle_pass_element_i64(e, (size_t)i) == i / behind % extent)
      ++i;
    if (i == count) return d;
  }
  return -1;
}

static bool read_count(causal_t* c, int32_t axis, places_t at, sum_t* out) {
  place_t place = at.of[axis];
  out->keys = place == KEY;
  out->tokens = place == TOKEN || (place == ROW && c->tokens == c->rows);
  c->has_rows |= place == ROW;
  return place == NONE || out->keys || out->tokens;
}

// A number for all, or one for each batch element.
static bool is_past(const causal_t* c, const pestle_type_t* type, places_t at) {
  int32_t axes = 0, batches = 0;
  for (int32_t i = 0; i < type->rank; ++i) {
    axes += type->dims[i] != 1;
    batches += type->dims[i] == c->batch && at.of[i] == BATCH;
  }
  return axes == 0 || (axes == 1 && batches == 1);
}

static bool read_sum(causal_t* c, const pestle_value_t* value, places_t at,
                     int budget, sum_t* out) {
  const pestle_node_t* node = value->node;
  sum_t a, b;
  *out = (sum_t){0};
  if (pestle_pass_splat_i64(value, &out->number)) return true;
  if (pestle_value_constant(value)) {
    int32_t axis = counted_axis(pestle_value_constant(value));
    return axis >= 0 && read_count(c, axis, at, out);
  }
  if (is_past(c, value->type, at)) {
    out->past = value;
    return value->type->dtype == PESTLE_I64 || value->type->dtype == PESTLE_I32;
  }
  if (!node || !budget) return false;
  switch ((int)node->op) {
    case PESTLE_OP_IOTA:
      return read_count(c, (int32_t)PESTLE_NODE_I64(node, iota_dimension), at,
                        out);
    case PESTLE_OP_BROADCAST_IN_DIM:
      return read_sum(c, pestle_node_operand(node, 0),
                      behind_broadcast(node, at), budget - 1, out);
    case PESTLE_OP_RESHAPE:
      return behind_reshape(c, node, &at) &&
             read_sum(c, pestle_node_operand(node, 0), at, budget - 1, out);
    case PESTLE_OP_ADD:
      if (!read_sum(c, pestle_node_operand(node, 0), at, budget - 1, &a) ||
          !read_sum(c, pestle_node_operand(node, 1), at, budget - 1, &b) ||
          (a.past && b.past)) {
        return false;
      }
      *out = (sum_t){a.number + b.number, a.keys + b.keys, a.tokens + b.tokens,
                     a.past ? a.past : b.past};
      return true;
  }
  return false;
}

// --- The bias ---

// key <= past + token, of both sides.
static bool read_condition(causal_t* c, const pestle_value_t* value,
                           places_t at, int budget) {
  const pestle_node_t* node = value->node;
  sum_t key, limit;
  if (!node || !budget) return false;
  switch ((int)node->op) {
    case PESTLE_OP_BROADCAST_IN_DIM:
      return read_condition(c, pestle_node_operand(node, 0),
                            behind_broadcast(node, at), budget - 1);
    case PESTLE_OP_RESHAPE:
      return behind_reshape(c, node, &at) &&
             read_condition(c, pestle_node_operand(node, 0), at, budget - 1);
    case PESTLE_OP_LE:
      break;
    default:
      return false;
  }
  if (!read_sum(c, pestle_node_operand(node, 0), at, budget - 1, &key) ||
      !read_sum(c, pestle_node_operand(node, 1), at, budget - 1, &limit)) {
    return false;
  }
  c->past = limit.past;
  return key.keys == 1 && !key.tokens && !key.number && !key.past &&
         !limit.keys && !limit.number && limit.past &&
         limit.tokens == (c->tokens > 1);
}

static bool read_bias(causal_t* c, const pestle_value_t* value, places_t at,
                      int budget) {
  const pestle_node_t* node = value->node;
  if (!node || !budget) return false;
  switch ((int)node->op) {
    case PESTLE_OP_BROADCAST_IN_DIM:
      return read_bias(c, pestle_node_operand(node, 0),
                       behind_broadcast(node, at), budget - 1);
    case PESTLE_OP_RESHAPE:
      return behind_reshape(c, node, &at) &&
             read_bias(c, pestle_node_operand(node, 0), at, budget - 1);
    case PESTLE_OP_SELECT:
      return pestle_pass_splat_is(pestle_node_operand(node, 1), 0) &&
             pestle_pass_splat_is(pestle_node_operand(node, 2), -INFINITY) &&
             read_condition(c, pestle_node_operand(node, 0), at, budget - 1);
  }
  return false;
}

static bool read_attention(const pestle_node_t* node, causal_t* c) {
  enum { BUDGET = 32 };
  size_t bias = pestle_attention_bias(node);
  if (!bias || pestle_attention_mask(node) || node->operand_count != 4)
    return false;
  const pestle_type_t *q = pestle_node_operand(node, 0)->type,
                      *b = pestle_node_operand(node, bias)->type;
  if (q->rank != 4 || q->dims[0] < 1) return false;
  int64_t rows = b->dims[2];
  *c = (causal_t){.batch = q->dims[0], .rows = rows, .tokens = rows};
  places_t at = {{BATCH, OTHER, rows == 1 ? NONE : ROW, KEY}};
  if (b->dims[0] == 1) at.of[0] = NONE;
  if (b->dims[1] == 1) at.of[1] = NONE;
  return (rows == 1 || rows == q->dims[2]) &&
         b->dims[3] == pestle_node_operand(node, 1)->type->dims[2] &&
         read_bias(c, pestle_node_operand(node, bias), at, BUDGET) &&
         q->dims[2] % c->tokens == 0;
}

// --- The group ---

// Where lanes run side by side: few rows, which a tile of the matrix units would not fill,
// and rows of the cache that are loads of 16 bytes, as many as a group has lanes at most.
static bool fits_lanes(const pestle_target_caps_t* caps,
                       const pestle_node_t* node) {
  enum {
    SUBGROUP = 32,
    MOST_ROWS = 16,
    LANES = 256,
    KEYS = 128,
    LOAD = 16,
    SHARED = 32768,
  };
  const pestle_type_t *q = pestle_node_operand(node, 0)->type,
                      *k = pestle_node_operand(node, 1)->type,
                      *v = pestle_node_operand(node, 2)->type;
  int64_t key = LOAD / (int64_t)pestle_dtype_size(k->dtype),
          value = LOAD / (int64_t)pestle_dtype_size(v->dtype);
  return caps->subgroup == SUBGROUP && caps->max_group_lanes >= LANES &&
         caps->scratch_bytes >= SHARED && q->dims[2] <= MOST_ROWS &&
         k->dims[2] >= KEYS && q->dims[3] % key == 0 &&
         v->dims[3] % value == 0 && q->dims[3] <= 256 && v->dims[3] <= 256;
}

static bool fits(const pestle_pass_context_t* ctx, const pestle_node_t* node) {
  enum { LEAST_LANES = 4, MOST_LANES = 16, ROWS = 16, LEAST_KEYS = 32 };
  const pestle_type_t *q = pestle_node_operand(node, 0)->type,
                      *k = pestle_node_operand(node, 1)->type,
                      *v = pestle_node_operand(node, 2)->type;
  int64_t lanes = (int64_t)ctx->caps->vector_bytes / (int64_t)sizeof(float);
  bool is_taken = q->dtype == PESTLE_F32 || q->dtype == PESTLE_F16 ||
                  q->dtype == PESTLE_BF16;
  if (ctx->options->numerics == PESTLE_NUMERICS_STRICT || !is_taken ||
      pestle_type_count(q) == 0) {
    return false;
  }
  if (ctx->caps->flags & PESTLE_TARGET_LANES)
    return fits_lanes(ctx->caps, node);
  if (lanes < LEAST_LANES) return false;
  if (lanes > MOST_LANES) lanes = MOST_LANES;
  int64_t bytes =
      ROWS * (q->dims[3] + v->dims[3] + 2 * lanes) * (int64_t)sizeof(float);
  return k->dims[2] >= LEAST_KEYS && q->dims[3] % lanes == 0 &&
         v->dims[3] % lanes == 0 && v->dims[3] > 0 &&
         bytes <= (int64_t)ctx->caps->scratch_bytes;
}

enum { MOST_OPERANDS = 6 };  // q, k, v, past, and of turned q the angles

static pestle_value_t* extent(pestle_formula_t* f, pestle_value_t* x,
                              pestle_value_t* n) {
  const pestle_attr_t attr = PESTLE_SET_I64(dimension, 2);
  pestle_value_t* operands[2] = {x, n};
  return pestle_f_make(f, PESTLE_OP_EXTENT, operands, 2, &attr, 1, NULL);
}

// 0 and -inf [batch, 1, rows, keys] as they were.
static pestle_value_t* make_bias(pestle_formula_t* f, int64_t batch,
                                 int64_t tokens, pestle_value_t* past,
                                 int64_t rows, int64_t keys,
                                 pestle_dtype_t dtype) {
  pestle_type_t type = {PESTLE_I64, 4, {batch, rows / tokens, tokens, keys}};
  const int64_t dims[4] = {batch, 1, rows, keys};
  int64_t axis = 0;
  pestle_value_t* limit = pestle_f_broadcast(
      f, past, 4, type.dims, (pestle_i64s_t){&axis, (size_t)past->type->rank});
  pestle_value_t* token = pestle_f_iota(f, &type, 2);
  limit = pestle_f_add(f, limit, token);
  pestle_value_t* seen = pestle_f_iota(f, &type, 3);
  seen = pestle_f_le(f, seen, limit);
  type.dtype = dtype;
  pestle_value_t* zero = pestle_f_number(f, &type, 0);
  pestle_value_t* low = pestle_f_number(f, &type, -INFINITY);
  pestle_value_t* bias = pestle_f_select(f, seen, zero, low);
  return pestle_f_reshape(f, bias, 4, dims);
}

pestle_status_t pestle_pass_build_cached(pestle_builder_t* at,
                                         const pestle_node_t* node,
                                         int64_t tokens, pestle_value_t** x,
                                         pestle_value_t** y) {
  const pestle_type_t *q = x[0]->type, *k = x[1]->type;
  pestle_formula_t f = pestle_formula_make(*at);
  pestle_value_t* count = pestle_f_scalar(&f, PESTLE_I64, (double)tokens);
  pestle_value_t* n = x[3];
  int64_t axis = 0;
  if (n->type->rank) {
    pestle_value_t* least =
        pestle_f_identity(&f, PESTLE_OP_MAXIMUM, PESTLE_I64);
    n = pestle_f_reduce_from(&f, PESTLE_OP_MAXIMUM, n,
                             (pestle_i64s_t){&axis, 1}, least);
  }
  n = pestle_f_add(&f, n, count);
  x[1] = extent(&f, x[1], n);
  x[2] = extent(&f, x[2], n);
  x[3] =
      make_bias(&f, q->dims[0], tokens, x[3], q->dims[2], k->dims[2], q->dtype);
  *y = pestle_f_like(&f, node, x, NULL);
  PESTLE_TRY(f.status);
  *at = f.builder;
  return NULL;
}

static pestle_status_t fill(pestle_builder_t* inside, const pestle_node_t* node,
                            const causal_t* c, pestle_value_t* const* operands,
                            size_t count) {
  pestle_value_t *x[MOST_OPERANDS], *y;
  for (size_t i = 0; i < count; ++i)
    PESTLE_TRY(pestle_block_add_argument(inside->module, inside->block,
                                         operands[i]->type, &x[i]));
  if (count > 4) {
    pestle_formula_t f = pestle_formula_make(*inside);
    x[0] = pestle_pass_rotate(&f, x[0], x[4], x[5]);
    PESTLE_TRY(f.status);
    *inside = f.builder;
  }
  PESTLE_TRY(pestle_pass_build_cached(inside, node, c->tokens, x, &y));
  return pestle_op_return(inside, &y, 1, NULL);
}

// --- What nobody reads any more ---

enum { MOST_MAKERS = 32 };

typedef struct makers_t {
  pestle_node_t* nodes[MOST_MAKERS];  // each behind what it reads
  size_t count;
} makers_t;

// The ops that make a bias, as far as there is room for them.
static void collect_makers(makers_t* m, const pestle_value_t* value) {
  pestle_node_t* node = value->node;
  if (!node) return;
  switch ((int)node->op) {
    case PESTLE_OP_IOTA:
    case PESTLE_OP_BROADCAST_IN_DIM:
    case PESTLE_OP_RESHAPE:
    case PESTLE_OP_ADD:
    case PESTLE_OP_LE:
    case PESTLE_OP_SELECT:
      break;
    default:
      return;
  }
  for (size_t i = 0; i < m->count; ++i) {
    if (m->nodes[i] == node) return;
  }
  for (uint32_t i = 0; i < node->operand_count; ++i)
    collect_makers(m, pestle_node_operand(node, i));
  if (m->count < MOST_MAKERS) m->nodes[m->count++] = node;
}

static void erase_unread(const makers_t* m) {
  for (size_t i = m->count; i-- > 0;) {
    if (!m->nodes[i]->results[0].uses) pestle_node_erase(m->nodes[i]);
  }
}

// --- The pass ---

// What turns the queries becomes part of the group, on a CPU and of one token; of more, what
// makes heads of their rows is made with it. How many operands there are.
static size_t add_rotation(const pestle_pass_context_t* ctx,
                           pestle_formula_t* f, const causal_t* c,
                           pestle_value_t** operands) {
  enum { MOST_LANES = 16 };
  const pestle_type_t* type = operands[0]->type;
  int64_t lanes = (int64_t)ctx->caps->vector_bytes / (int64_t)sizeof(float);
  if (lanes > MOST_LANES) lanes = MOST_LANES;
  if (c->tokens > 1 || (ctx->caps->flags & PESTLE_TARGET_LANES)) return 4;
  pestle_rotation_t r = pestle_pass_read_rotation(operands[0], lanes);
  if (!r.x) return 4;
  const int64_t dims[2] = {r.angles, type->dims[3] / 2};
  operands[0] = pestle_f_reshape(f, r.x, 4, type->dims);
  operands[4] = pestle_f_reshape(f, r.cosine, 2, dims);
  operands[5] = pestle_f_reshape(f, r.sine, 2, dims);
  return MOST_OPERANDS;
}

pestle_status_t pestle_pass_whole_attention(const pestle_pass_context_t* ctx,
                                            pestle_node_t* node,
                                            bool* out_changed) {
  causal_t c;
  if (node->op != PESTLE_OP_ATTENTION || !fits(ctx, node) ||
      !read_attention(node, &c)) {
    return NULL;
  }
  pestle_formula_t f = pestle_formula_before(node);
  makers_t makers = {.count = 0};
  collect_makers(&makers,
                 pestle_node_operand(node, pestle_attention_bias(node)));
  pestle_value_t* past = (pestle_value_t*)c.past;
  int32_t rank = pestle_type_count(past->type) > 1;
  past = pestle_f_reshape(&f, past, rank, &c.batch);
  if (c.batch > 1 && !rank) {
    past = pestle_f_broadcast(&f, past, 1, &c.batch, (pestle_i64s_t){NULL, 0});
  }
  pestle_value_t* operands[MOST_OPERANDS] = {
      pestle_node_operand(node, 0), pestle_node_operand(node, 1),
      pestle_node_operand(node, 2), pestle_f_convert(&f, past, PESTLE_I64)};
  PESTLE_TRY(f.status);
  if ((ctx->caps->flags & PESTLE_TARGET_LANES) && c.tokens == 1) {
    bool is_done;
    PESTLE_TRY(pestle_pass_cached_step(ctx, node, operands[3], &is_done));
    *out_changed |= is_done;
    if (is_done) {
      erase_unread(&makers);
      return NULL;
    }
  }
  size_t count = add_rotation(ctx, &f, &c, operands);
  PESTLE_TRY(f.status);
  pestle_builder_t inside = {.module = f.builder.module, .loc = node->loc};
  pestle_region_t* region;
  PESTLE_TRY(
      pestle_region_create(inside.module, NULL, 0, &region, &inside.block));
  pestle_status_t status = fill(&inside, node, &c, operands, count);
  if (status) {
    pestle_region_discard(region);
    return status;
  }
  *out_changed = true;
  pestle_node_t* group;
  PESTLE_TRY(pestle_pass_make_group(&f.builder, "cached_attention", operands,
                                    count, region, &group));
  pestle_value_replace_all_uses(&node->results[0], &group->results[0]);
  pestle_node_erase(node);
  erase_unread(&makers);
  return NULL;
}
