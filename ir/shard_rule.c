// SPDX-License-Identifier: Apache-2.0
// The rules of ops that compute. Composites and kernels of rows or matrices are in
// shard_rule_composite.c, ops that move elements by indices in shard_rule_index.c.
#include "ir/shard_rule.h"

#include <string.h>

#include "base/mem.h"
#include "ir/shard_rule_internal.h"

typedef pestle_shard_rule_t rule_t;

// --- Making ---

int pestle_rule_factor(rule_t* r, int64_t size) {
  if (r->factor_count == PESTLE_RULE_FACTORS || size < 2) return -1;
  r->sizes[r->factor_count] = size;
  return r->factor_count++;
}

void pestle_rule_use(rule_t* r, uint32_t tensor, int64_t dim, int factor) {
  pestle_rule_dim_t* d = &r->tensors[tensor].dims[dim];
  if (factor < 0 || d->count == PESTLE_RULE_PER_DIM) return;
  d->factors[d->count++] = (uint8_t)factor;
}

const pestle_type_t* pestle_rule_type(const rule_t* r, uint32_t tensor) {
  return r->tensors[tensor].value->type;
}

int pestle_rule_new(rule_t* r, uint32_t tensor, int64_t dim) {
  int factor = pestle_rule_factor(r, pestle_rule_type(r, tensor)->dims[dim]);
  pestle_rule_use(r, tensor, dim, factor);
  return factor;
}

void pestle_rule_tie(rule_t* r, uint32_t a, int64_t dim_a, uint32_t b,
                     int64_t dim_b) {
  if (pestle_rule_type(r, a)->dims[dim_a] !=
      pestle_rule_type(r, b)->dims[dim_b]) {
    return;
  }
  pestle_rule_use(r, b, dim_b, pestle_rule_new(r, a, dim_a));
}

void pestle_rule_same(rule_t* r, uint32_t first, uint32_t end, int64_t dim) {
  int factor = pestle_rule_new(r, first, dim);
  for (uint32_t i = first + 1; i < end; ++i) {
    const pestle_type_t* t = pestle_rule_type(r, i);
    if (dim < t->rank && t->dims[dim] == pestle_rule_type(r, first)->dims[dim])
      pestle_rule_use(r, i, dim, factor);
  }
}

static const pestle_type_t* operand_type(const rule_t* r, uint32_t i) {
  return pestle_node_operand(r->node, i)->type;
}

static uint32_t result_at(const rule_t* r, uint32_t i) {
  return r->operand_count + i;
}

// --- Elementwise ---

// Every operand of the results' rank lies as they do; of others all is needed.
static void elementwise(rule_t* r) {
  int32_t rank = r->node->results[0].type->rank;
  for (int32_t d = 0; d < rank; ++d) {
    int factor = pestle_rule_new(r, result_at(r, 0), d);
    for (uint32_t i = 0; i < r->tensor_count; ++i) {
      if (i != result_at(r, 0) && pestle_rule_type(r, i)->rank == rank)
        pestle_rule_use(r, i, d, factor);
    }
  }
  r->view = true;
}

static void scalar_op(rule_t* r) {
  elementwise(r);
  pestle_dtype_t dtype = r->node->results[0].type->dtype;
  switch ((int)r->node->op) {
    case PESTLE_OP_ADD:
    case PESTLE_OP_SUBTRACT:
    case PESTLE_OP_NEGATE:
      for (uint32_t i = 0; i < r->operand_count && dtype != PESTLE_I1; ++i)
        r->tensors[i].linear = true;
      return;
    default:
      return;
  }
}

// To a type that holds what it is given, so that a sum of such is theirs.
static void convert(rule_t* r) {
  elementwise(r);
  const pestle_dtype_info_t* from =
      pestle_dtype_info(operand_type(r, 0)->dtype);
  pestle_dtype_t to = r->node->results[0].type->dtype;
  bool floats = pestle_dtype_is(operand_type(r, 0)->dtype, PESTLE_KIND_FLOAT) &&
                pestle_dtype_is(to, PESTLE_KIND_FLOAT);
  r->tensors[0].linear =
      floats && pestle_dtype_info(to)->bits > from->bits && from->bits >= 16;
}

static void bitcast(rule_t* r) {
  if (operand_type(r, 0)->rank == r->node->results[0].type->rank)
    elementwise(r);
}

// Each operand is the result of its number.
static void barrier(rule_t* r) {
  for (uint32_t i = 0; i < r->operand_count; ++i) {
    for (int32_t d = 0; d < operand_type(r, i)->rank; ++d)
      pestle_rule_tie(r, i, d, result_at(r, i), d);
  }
  r->view = true;
}

static void source(rule_t* r) {
  for (int32_t d = 0; d < r->node->results[0].type->rank; ++d)
    (void)pestle_rule_new(r, 0, d);
  r->view = true;
}

// --- Views ---

static void broadcast(rule_t* r) {
  pestle_i64s_t dims = PESTLE_NODE_I64S(r->node, broadcast_dimensions);
  const pestle_type_t* out = r->node->results[0].type;
  r->view = r->tensors[0].linear = true;
  for (int32_t d = 0; d < out->rank; ++d) {
    int factor = pestle_rule_new(r, 1, d);
    for (size_t i = 0; i < dims.count; ++i) {
      if (dims.data[i] == d && operand_type(r, 0)->dims[i] == out->dims[d])
        pestle_rule_use(r, 0, (int64_t)i, factor);
    }
  }
}

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t c = a % b;
    a = b;
    b = c;
  }
  return a;
}

// The next dim of |t| that has more than one element, from |*at| on.
static int64_t next_extent(const pestle_type_t* t, int32_t* at) {
  while (*at < t->rank && t->dims[*at] == 1)
    ++*at;
  return *at < t->rank ? t->dims[*at] : 1;
}

// The common refinement: of what both have in front, the largest common divisor.
static void reshape(rule_t* r) {
  const pestle_type_t *in = operand_type(r, 0), *out = r->node->results[0].type;
  r->view = r->tensors[0].linear = true;
  if (!pestle_type_count(in)) return;
  int32_t i = 0, o = 0;
  int64_t left_in = next_extent(in, &i), left_out = next_extent(out, &o);
  bool stuck = false;
  while (i < in->rank && o < out->rank) {
    int64_t size = gcd(left_in, left_out);
    if (size == 1) stuck = true;
    if (!stuck) {
      int factor = pestle_rule_factor(r, size);
      pestle_rule_use(r, 0, i, factor);
      pestle_rule_use(r, 1, o, factor);
      left_in /= size;
      left_out /= size;
    } else if (left_in ==
               left_out) {  // whole up to here: on with the next dims
      left_in = left_out = 1;
      stuck = false;
    } else if (left_in < left_out) {
      ++i;
      int64_t more = next_extent(in, &i);
      if (i == in->rank) return;
      left_in *= more;
      continue;
    } else {
      ++o;
      int64_t more = next_extent(out, &o);
      if (o == out->rank) return;
      left_out *= more;
      continue;
    }
    if (left_in == 1) {
      ++i;
      left_in = next_extent(in, &i);
    }
    if (left_out == 1) {
      ++o;
      left_out = next_extent(out, &o);
    }
  }
}

static void transpose(rule_t* r) {
  pestle_i64s_t order = PESTLE_NODE_I64S(r->node, permutation);
  for (size_t d = 0; d < order.count; ++d)
    pestle_rule_tie(r, 0, order.data[d], 1, (int64_t)d);
  r->view = r->tensors[0].linear = true;
}

static void slice(rule_t* r) {
  pestle_i64s_t strides = PESTLE_NODE_I64S(r->node, strides);
  for (int32_t d = 0; d < operand_type(r, 0)->rank; ++d) {
    if (strides.data[d] == 1) pestle_rule_tie(r, 0, d, 1, d);
  }
  r->view = r->tensors[0].linear = true;
}

static void reverse(rule_t* r) {
  pestle_i64s_t dims = PESTLE_NODE_I64S(r->node, dimensions);
  for (int32_t d = 0; d < operand_type(r, 0)->rank; ++d) {
    if (!pestle_i64s_has(dims, d)) pestle_rule_tie(r, 0, d, 1, d);
  }
  r->view = r->tensors[0].linear = true;
}

static void pad(rule_t* r) {
  pestle_i64s_t low = PESTLE_NODE_I64S(r->node, edge_padding_low);
  pestle_i64s_t high = PESTLE_NODE_I64S(r->node, edge_padding_high);
  pestle_i64s_t inner = PESTLE_NODE_I64S(r->node, interior_padding);
  for (int32_t d = 0; d < operand_type(r, 0)->rank; ++d) {
    if (!low.data[d] && !high.data[d] && !inner.data[d])
      pestle_rule_tie(r, 0, d, 2, d);
  }
  r->view = true;
}

static void concatenate(rule_t* r) {
  int64_t axis = PESTLE_NODE_I64(r->node, dimension);
  for (int32_t d = 0; d < operand_type(r, 0)->rank; ++d) {
    if (d != axis) pestle_rule_same(r, 0, r->tensor_count, d);
  }
  for (uint32_t i = 0; i < r->operand_count; ++i)
    r->tensors[i].linear = true;
  r->view = true;
}

// --- Reductions and products ---

static bool may_divide(const rule_t* r, bool strict, pestle_combine_t combine,
                       pestle_dtype_t dtype) {
  bool rounds =
      combine == PESTLE_COMBINE_ADD || combine == PESTLE_COMBINE_MULTIPLY;
  (void)r;
  return combine != PESTLE_COMBINE_COUNT &&
         !(strict && rounds && !pestle_dtype_is(dtype, PESTLE_KIND_INT));
}

static void reduce(rule_t* r, bool strict) {
  pestle_i64s_t dims = PESTLE_NODE_I64S(r->node, dimensions);
  uint32_t inputs = r->operand_count / 2;
  const pestle_type_t* in = operand_type(r, 0);
  r->combine =
      pestle_combine_of(pestle_block_reduce_op(pestle_node_body(r->node, 0)));
  bool divides = inputs == 1 && may_divide(r, strict, r->combine, in->dtype) &&
                 in->dtype != PESTLE_I1;
  int32_t kept = 0;
  for (int32_t d = 0; d < in->rank; ++d) {
    if (!pestle_i64s_has(dims, d)) {
      int factor = pestle_rule_new(r, 0, d);
      for (uint32_t i = 1; i < inputs; ++i)
        pestle_rule_use(r, i, d, factor);
      for (uint32_t i = 0; i < r->node->result_count; ++i)
        pestle_rule_use(r, result_at(r, i), kept, factor);
      ++kept;
    } else if (divides) {
      int factor = pestle_rule_new(r, 0, d);
      if (factor >= 0) r->reduces[factor] = true;
    }
  }
  if (!divides) return;
  r->tensors[1].of_sums = true;
  // Sums of sums: the initial value counts once there too.
  r->tensors[0].linear = r->combine == PESTLE_COMBINE_ADD;
}

// Whether a window along |d| is one element, at its own place.
static bool is_alone(const pestle_node_t* node, int32_t d) {
  static const uint16_t ones[] = {
      PESTLE_ATTR_window_dimensions, PESTLE_ATTR_window_strides,
      PESTLE_ATTR_base_dilations, PESTLE_ATTR_window_dilations};
  pestle_i64s_t padding = PESTLE_NODE_I64S(node, padding);
  bool alone =
      !padding.count || (!padding.data[2 * d] && !padding.data[2 * d + 1]);
  // The gradient of a pool has no dilations.
  int count = node->op == PESTLE_OP_REDUCE_WINDOW ? 4 : 2;
  for (int i = 0; i < count; ++i) {
    pestle_i64s_t list =
        pestle_node_attr(node, (pestle_attr_name_t)ones[i])->as.i64s;
    alone = alone && (!list.count || list.data[d] == 1);
  }
  return alone;
}

static void reduce_window(rule_t* r) {
  uint32_t inputs = r->operand_count / 2;
  for (int32_t d = 0; d < operand_type(r, 0)->rank; ++d) {
    if (!is_alone(r->node, d)) continue;
    int factor = pestle_rule_new(r, 0, d);
    for (uint32_t i = 1; i < inputs; ++i)
      pestle_rule_use(r, i, d, factor);
    for (uint32_t i = 0; i < r->node->result_count; ++i)
      pestle_rule_use(r, result_at(r, i), d, factor);
  }
}

static void select_and_scatter(rule_t* r) {
  for (int32_t d = 0; d < operand_type(r, 0)->rank; ++d) {
    if (!is_alone(r->node, d)) continue;
    int factor = pestle_rule_new(r, 0, d);
    pestle_rule_use(r, 1, d, factor);
    pestle_rule_use(r, result_at(r, 0), d, factor);
  }
}

static void dot(rule_t* r, bool strict) {
  const pestle_node_t* n = r->node;
  pestle_i64s_t batch[2] = {PESTLE_NODE_I64S(n, lhs_batching_dimensions),
                            PESTLE_NODE_I64S(n, rhs_batching_dimensions)};
  pestle_i64s_t sum[2] = {PESTLE_NODE_I64S(n, lhs_contracting_dimensions),
                          PESTLE_NODE_I64S(n, rhs_contracting_dimensions)};
  int64_t out = 0;
  for (size_t i = 0; i < batch[0].count; ++i) {
    int factor = pestle_rule_new(r, 0, batch[0].data[i]);
    pestle_rule_use(r, 1, batch[1].data[i], factor);
    pestle_rule_use(r, 2, out++, factor);
  }
  for (uint32_t side = 0; side < 2; ++side) {
    for (int32_t d = 0; d < operand_type(r, side)->rank; ++d) {
      if (pestle_i64s_has(batch[side], d) || pestle_i64s_has(sum[side], d))
        continue;
      pestle_rule_use(r, 2, out++, pestle_rule_new(r, side, d));
    }
  }
  r->combine = PESTLE_COMBINE_ADD;
  if (!may_divide(r, strict, r->combine, n->results[0].type->dtype)) return;
  for (size_t i = 0; i < sum[0].count; ++i) {
    int factor = pestle_rule_new(r, 0, sum[0].data[i]);
    pestle_rule_use(r, 1, sum[1].data[i], factor);
    if (factor >= 0) r->reduces[factor] = true;
  }
}

static void convolution(rule_t* r, bool strict) {
  const pestle_node_t* n = r->node;
  int64_t in_batch = PESTLE_NODE_I64(n, input_batch_dimension);
  int64_t in_feature = PESTLE_NODE_I64(n, input_feature_dimension);
  int64_t out_feature = PESTLE_NODE_I64(n, output_feature_dimension);
  int64_t kernel_in = PESTLE_NODE_I64(n, kernel_input_feature_dimension);
  int64_t kernel_out = PESTLE_NODE_I64(n, kernel_output_feature_dimension);
  int64_t groups = PESTLE_NODE_I64(n, feature_group_count);
  int64_t out_batch = PESTLE_NODE_I64(n, output_batch_dimension);
  int64_t batches = PESTLE_NODE_I64(n, batch_group_count);
  // There are groups of one kind. Images of a group lie one behind the other.
  if (batches > 1) groups = batches;
  if (groups > 1) {
    r->groups = pestle_rule_factor(r, groups);
    pestle_rule_use(r, 0, batches > 1 ? in_batch : in_feature, r->groups);
    pestle_rule_use(r, 1, kernel_out, r->groups);
    pestle_rule_use(r, 2, out_feature, r->groups);
  }
  int images = pestle_rule_factor(
      r, operand_type(r, 0)->dims[in_batch] / (batches > 1 ? batches : 1));
  pestle_rule_use(r, 0, in_batch, images);
  pestle_rule_use(r, 2, out_batch, images);
  int outs =
      pestle_rule_factor(r, operand_type(r, 1)->dims[kernel_out] / groups);
  pestle_rule_use(r, 1, kernel_out, outs);
  pestle_rule_use(r, 2, out_feature, outs);
  r->combine = PESTLE_COMBINE_ADD;
  if (!may_divide(r, strict, r->combine, n->results[0].type->dtype)) return;
  int ins = pestle_rule_factor(r, operand_type(r, 1)->dims[kernel_in]);
  pestle_rule_use(r, 0, in_feature, ins);
  pestle_rule_use(r, 1, kernel_in, ins);
  if (ins >= 0) r->reduces[ins] = true;
}

// --- The table ---

typedef void (*rule_fn_t)(rule_t* r);

static rule_fn_t rule_of(pestle_op_t op) {
  if (pestle_op_is_scalar(op)) return scalar_op;
  switch ((int)op) {
    case PESTLE_OP_CONVERT:
      return convert;
    case PESTLE_OP_BITCAST_CONVERT:
      return bitcast;
    case PESTLE_OP_COMPLEX:
    case PESTLE_OP_REAL:
    case PESTLE_OP_IMAG:
    case PESTLE_OP_GELU:
    case PESTLE_OP_SILU:
    case PESTLE_OP_HARD_SIGMOID:
    case PESTLE_OP_REDUCE_PRECISION:
    case PESTLE_OP_MAP:
      return elementwise;
    case PESTLE_OP_OPTIMIZATION_BARRIER:
      return barrier;
    case PESTLE_OP_CONSTANT:
    case PESTLE_OP_IOTA:
      return source;
    case PESTLE_OP_BROADCAST_IN_DIM:
      return broadcast;
    case PESTLE_OP_RESHAPE:
      return reshape;
    case PESTLE_OP_TRANSPOSE:
      return transpose;
    case PESTLE_OP_SLICE:
      return slice;
    case PESTLE_OP_REVERSE:
      return reverse;
    case PESTLE_OP_PAD:
      return pad;
    case PESTLE_OP_CONCATENATE:
      return concatenate;
    case PESTLE_OP_REDUCE_WINDOW:
      return reduce_window;
    case PESTLE_OP_SELECT_AND_SCATTER:
      return select_and_scatter;
    case PESTLE_OP_SOFTMAX:
    case PESTLE_OP_LOG_SOFTMAX:
      return pestle_shard_all_but_dimensions;
    case PESTLE_OP_LAYER_NORM:
    case PESTLE_OP_RMS_NORM:
      return pestle_shard_norm;
    case PESTLE_OP_SORT:
    case PESTLE_OP_SORT_FIRST:
    case PESTLE_OP_CUMULATIVE:
    case PESTLE_OP_EXTENT:
      return pestle_shard_all_but_dimension;
    case PESTLE_OP_CHOLESKY:
    case PESTLE_OP_TRIANGULAR_SOLVE:
    case PESTLE_OP_LU:
    case PESTLE_OP_SOLVE:
    case PESTLE_OP_INVERSE:
    case PESTLE_OP_QR:
    case PESTLE_OP_EIGH:
    case PESTLE_OP_SVD:
      return pestle_shard_matrices;
    case PESTLE_OP_QUANTIZE:
    case PESTLE_OP_DEQUANTIZE:
      return pestle_shard_quantize;
    case PESTLE_OP_BATCH_NORM_INFERENCE:
      return pestle_shard_batch_norm;
    case PESTLE_OP_ATTENTION:
      return pestle_shard_attention;
    case PESTLE_OP_ATTENTION_GRAD:
      return pestle_shard_attention_grad;
    case PESTLE_OP_DYNAMIC_SLICE:
      return pestle_shard_dynamic_slice;
    case PESTLE_OP_DYNAMIC_UPDATE_SLICE:
      return pestle_shard_dynamic_update_slice;
    default:
      return NULL;
  }
}

static bool is_sound(const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (!pestle_type_is_static(pestle_node_operand(node, i)->type))
      return false;
  }
  for (uint32_t i = 0; i < node->result_count; ++i) {
    if (!pestle_type_is_static(node->results[i].type)) return false;
  }
  return node->result_count > 0;
}

// With no element there is nothing to divide, and rules divide by extents.
static bool is_empty(const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (!pestle_type_count(pestle_node_operand(node, i)->type)) return true;
  }
  for (uint32_t i = 0; i < node->result_count; ++i) {
    if (!pestle_type_count(node->results[i].type)) return true;
  }
  return false;
}

pestle_status_t pestle_shard_rule(const pestle_node_t* node, bool strict,
                                  pestle_arena_t* arena, rule_t* out) {
  *out = (rule_t){.node = node,
                  .rows = -1,
                  .groups = -1,
                  .operand_count = node->operand_count,
                  .tensor_count = node->operand_count + node->result_count};
  out->tensors = pestle_rule_tensors(arena, out->tensor_count);
  if (!out->tensors) return PESTLE_OOM();
  for (uint32_t i = 0; i < out->tensor_count; ++i) {
    bool result = i >= node->operand_count;
    out->tensors[i].is_result = result;
    out->tensors[i].value =
        result ? (pestle_value_t*)&node->results[i - node->operand_count]
               : pestle_node_operand(node, i);
  }
  if (!is_sound(node) || is_empty(node)) return NULL;
  rule_fn_t fn = rule_of((pestle_op_t)node->op);
  out->has_rule = true;
  switch ((int)node->op) {
    case PESTLE_OP_REDUCE:
      reduce(out, strict);
      return NULL;
    case PESTLE_OP_DOT_GENERAL:
      dot(out, strict);
      return NULL;
    case PESTLE_OP_CONVOLUTION:
      convolution(out, strict);
      return NULL;
    case PESTLE_OP_BLOCK_DOT:
      pestle_shard_block_dot(out, strict);
      return NULL;
    case PESTLE_OP_NORM_GRAD:
      pestle_shard_norm_grad(out, strict);
      return NULL;
    case PESTLE_OP_GATHER:
      pestle_shard_gather(out, strict);
      return NULL;
    case PESTLE_OP_SCATTER:
      pestle_shard_scatter(out, strict);
      return NULL;
    default:
      break;
  }
  out->has_rule = fn != NULL;
  if (fn) fn(out);
  return NULL;
}

// --- Values that regions hand on ---

static pestle_status_t flow_of(const pestle_node_t* node, uint32_t index,
                               uint32_t count, pestle_arena_t* arena,
                               rule_t* out) {
  *out = (rule_t){
      .node = node, .rows = -1, .groups = -1, .view = true, .has_rule = true};
  out->tensors = pestle_rule_tensors(arena, count);
  if (!out->tensors) return PESTLE_OOM();
  out->tensors[0].value = (pestle_value_t*)&node->results[index];
  out->tensors[0].is_result = true;
  out->tensor_count = 1;
  return NULL;
}

static void flow_add(rule_t* r, pestle_value_t* value) {
  r->tensors[r->tensor_count++].value = value;
}

pestle_status_t pestle_shard_flow(const pestle_node_t* node, uint32_t index,
                                  pestle_arena_t* arena, rule_t* out,
                                  bool* out_found) {
  *out_found = index < node->result_count;
  if (!*out_found) return NULL;
  PESTLE_TRY(flow_of(node, index, node->region_count + 5, arena, out));
  if (node->op == PESTLE_OP_WHILE) {
    flow_add(out, pestle_node_operand(node, index));
    for (uint32_t i = 0; i < 2; ++i)
      flow_add(out, pestle_node_body(node, i)->arguments[index]);
    flow_add(out, pestle_node_operand(pestle_node_body(node, 1)->last, index));
  } else {
    for (uint32_t i = 0; i < node->region_count; ++i)
      flow_add(out,
               pestle_node_operand(pestle_node_body(node, i)->last, index));
  }
  if (!pestle_type_is_static(node->results[index].type) ||
      !pestle_type_count(node->results[index].type)) {
    return NULL;
  }
  for (int32_t d = 0; d < node->results[index].type->rank; ++d)
    pestle_rule_same(out, 0, out->tensor_count, d);
  return NULL;
}
