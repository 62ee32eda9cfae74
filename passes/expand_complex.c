// SPDX-License-Identifier: Apache-2.0
// Complex numbers become pairs of real tensors: the Kernel IR has real values
// alone. Inputs, results and constants keep their bytes.
//
//   %0 = multiply %x, %y       %a = bitcast_convert %x    // [n]c64 -> [n, 2]f32
//                              %b = slice %a [.., 0:1]    // the real parts
//                         ->   ...
//                              %8 = concatenate %re, %im  // [n, 2]
//                              %9 = bitcast_convert %8    // [n]c64
//
// A bitcast between complex numbers and their parts is a view of the same bytes
// and costs nothing. Ops that move elements are done on each part, products
// are four, regions take and return two values for one. A composite on complex
// numbers is decomposed first.
#include "passes/expand_complex.h"
#include "passes/fuse.h"

#include <string.h>

#include "base/mem.h"
#include "base/vec.h"

typedef pestle_pair_t pair_t;
typedef PESTLE_VEC(pestle_value_t*) values_t;
typedef PESTLE_VEC(pestle_type_t) types_t;
typedef PESTLE_VEC(pestle_node_t*) nodes_t;

typedef struct expand_t {
  pestle_pass_context_t* ctx;
  pestle_module_t* module;
  pestle_copier_t copier;     // real values; the real parts of complex ones
  pestle_map_t im;            // of pestle_value_t*: their imaginary parts
  pestle_formula_t f;         // where the next op goes is in its builder
  pestle_decomposition_t of;  // the op that is taken apart
  bool in_place;              // else the block is being copied
  nodes_t expanded;           // in place: to be erased
} expand_t;

static bool is_complex(const pestle_value_t* value) {
  return pestle_type_is_complex(value->type);
}

static bool touches_complex(const pestle_node_t* node);

static bool block_touches(const pestle_block_t* block) {
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    if (is_complex(block->arguments[i])) return true;
  }
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    if (touches_complex(n)) return true;
  }
  return false;
}

static bool touches_complex(const pestle_node_t* node) {
  if (node->op == PESTLE_OP_REAL || node->op == PESTLE_OP_IMAG) return true;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (is_complex(pestle_node_operand(node, i))) return true;
  }
  for (uint32_t i = 0; i < node->result_count; ++i) {
    if (is_complex(&node->results[i])) return true;
  }
  for (uint32_t i = 0; i < node->region_count; ++i) {
    if (block_touches(pestle_node_body(node, i))) return true;
  }
  return false;
}

// --- Pairs ---

static pestle_status_t set_pair(expand_t* x, const pestle_value_t* value,
                                pair_t pair) {
  if (x->f.status || !pair.re) {
    pestle_status_t status = x->f.status;
    x->f.status = NULL;
    return status ? status : PESTLE_ERROR(INTERNAL, "a part without a value");
  }
  PESTLE_TRY(pestle_copier_set(&x->copier, value, pair.re));
  if (!pair.im) return NULL;
  return pestle_map_set_u64_ptr(&x->im, (uintptr_t)value, pair.im)
             ? NULL
             : PESTLE_OOM();
}

// The value that stands for |value|; of a complex one its real part.
static pestle_value_t* first_of(const expand_t* x, pestle_value_t* value) {
  return pestle_copier_get(&x->copier, value);
}

static pair_t pair_of(const expand_t* x, pestle_value_t* value) {
  const pestle_map_value_t* im = pestle_map_find_u64(&x->im, (uintptr_t)value);
  return (pair_t){first_of(x, value), im ? im->ptr : NULL};
}

// Part |index| of |pairs|, which is [.., 2].
static pestle_value_t* part_at(expand_t* x, pestle_value_t* pairs,
                               int64_t index) {
  return pairs ? pestle_f_part(&x->f, pairs, pairs->type->rank - 1, index)
               : NULL;
}

// Adds an axis of the parts to |type|; false, and a failure, where there is no room.
static bool add_axis(expand_t* x, pestle_type_t* type, int64_t extent) {
  if (type->rank < PESTLE_MAX_RANK) {
    type->dtype = pestle_dtype_part(type->dtype);
    type->dims[type->rank++] = extent;
    return true;
  }
  pestle_f_fail(&x->f,
                PESTLE_ERROR(UNSUPPORTED,
                             "complex numbers of rank %d have no kernel: each "
                             "is two parts, along one more axis",
                             PESTLE_MAX_RANK));
  return false;
}

static pair_t split(expand_t* x, pestle_value_t* value) {
  pestle_type_t type = *value->type;
  pair_t out = {NULL, NULL};
  if (!add_axis(x, &type, 2)) return out;
  pestle_value_t* pairs = pestle_f_make(&x->f, PESTLE_OP_BITCAST_CONVERT,
                                        &value, 1, NULL, 0, &type);
  out.re = part_at(x, pairs, 0);
  out.im = part_at(x, pairs, 1);
  return out;
}

// [.., 2] of the parts.
static pestle_value_t* interleave(expand_t* x, pair_t pair) {
  pestle_type_t column = *pair.re->type;
  if (!add_axis(x, &column, 1)) return NULL;
  pestle_value_t* parts[2];
  parts[0] = pestle_f_reshape_to(&x->f, pair.re, &column);
  parts[1] = pestle_f_reshape_to(&x->f, pair.im, &column);
  return pestle_f_concatenate(&x->f, parts, 2, column.rank - 1);
}

static pestle_value_t* join(expand_t* x, pair_t pair,
                            const pestle_type_t* type) {
  pestle_value_t* parts = interleave(x, pair);
  return pestle_f_make(&x->f, PESTLE_OP_BITCAST_CONVERT, &parts, 1, NULL, 0,
                       type);
}

// --- Ops that exist on each part ---

// |node| with the real (or imaginary) parts of its complex operands.
static pestle_value_t* on_part(expand_t* x, const pestle_node_t* node,
                               bool im) {
  values_t operands;
  pestle_vec_init(&operands, x->copier.values.allocator);
  bool grown = true;
  for (uint32_t i = 0; i < node->operand_count && grown; ++i) {
    pair_t pair = pair_of(x, pestle_node_operand(node, i));
    grown = pestle_vec_push(&operands, im && pair.im ? pair.im : pair.re);
  }
  pestle_type_t type = *node->results[0].type;
  type.dtype = pestle_dtype_part(type.dtype);
  bool typed = pestle_pass_info(node)->rule == PESTLE_RULE_TYPED;
  pestle_value_t* y =
      grown ? pestle_f_like(&x->f, node, operands.data, typed ? &type : NULL)
            : pestle_f_fail(&x->f, PESTLE_OOM());
  pestle_vec_deinit(&operands);
  return y;
}

static pestle_status_t on_each_part(expand_t* x, const pestle_node_t* node) {
  pair_t out;
  out.re = on_part(x, node, false);
  out.im = on_part(x, node, true);
  return set_pair(x, &node->results[0], out);
}

// A constant's numbers, apart.
static pestle_status_t constant(expand_t* x, const pestle_node_t* node) {
  const pestle_elements_t* e = PESTLE_NODE_ELEMENTS(node);
  pestle_elements_t part = *e;
  part.type.dtype = pestle_dtype_part(e->type.dtype);
  part.size = e->size / 2;
  size_t size = pestle_dtype_size(part.type.dtype);
  pestle_value_t* out[2];
  for (size_t which = 0; which < 2; ++which) {
    char* data = pestle_f_memory(&x->f, part.size);
    for (size_t i = 0; data && i < part.size / size; ++i) {
      memcpy(data + i * size, (const char*)e->data + (2 * i + which) * size,
             size);
    }
    part.data = data;
    out[which] = pestle_f_elements(&x->f, &part);
  }
  return set_pair(x, &node->results[0], (pair_t){out[0], out[1]});
}

static pestle_value_t* zeros(expand_t* x, const pestle_value_t* like) {
  pestle_type_t type = *like->type;
  type.dtype = pestle_dtype_part(type.dtype);
  return pestle_f_number(&x->f, &type, 0);
}

static pestle_status_t iota(expand_t* x, const pestle_node_t* node) {
  pair_t out;
  out.re = on_part(x, node, false);
  out.im = zeros(x, &node->results[0]);
  return set_pair(x, &node->results[0], out);
}

// From complex to real the real part counts; the other way the other is 0.
static pestle_status_t convert(expand_t* x, const pestle_node_t* node) {
  pair_t in = pair_of(x, pestle_node_operand(node, 0)), out = {NULL, NULL};
  const pestle_value_t* result = &node->results[0];
  pestle_dtype_t to = pestle_dtype_part(result->type->dtype);
  out.re = pestle_f_convert(&x->f, in.re, to);
  if (is_complex(result)) {
    out.im = in.im ? pestle_f_convert(&x->f, in.im, to) : zeros(x, result);
  }
  return set_pair(x, result, out);
}

static pestle_status_t bitcast(expand_t* x, const pestle_node_t* node) {
  pestle_value_t* operand = pestle_node_operand(node, 0);
  pair_t in = pair_of(x, operand), out;
  const pestle_value_t* result = &node->results[0];
  if (operand->type->dtype == result->type->dtype) {
    return set_pair(x, result, in);
  }
  if (!is_complex(operand)) {
    out.re = part_at(x, in.re, 0);
    out.im = part_at(x, in.re, 1);
    return set_pair(x, result, out);
  }
  out.im = NULL;
  out.re = interleave(x, in);
  pestle_type_t type = *result->type;
  if (is_complex(result) && add_axis(x, &type, 2)) {
    // A wide part is the bits of a narrow number, both parts of it.
    pestle_value_t* bits = pestle_f_make(&x->f, PESTLE_OP_BITCAST_CONVERT,
                                         &out.re, 1, NULL, 0, &type);
    out.re = part_at(x, bits, 0);
    out.im = part_at(x, bits, 1);
  }
  return set_pair(x, result, out);
}

static pestle_status_t parts(expand_t* x, const pestle_node_t* node) {
  pair_t a = pair_of(x, pestle_node_operand(node, 0)), out = {a.re, NULL};
  if (node->op == PESTLE_OP_COMPLEX) {
    out.im = first_of(x, pestle_node_operand(node, 1));
  } else if (node->op == PESTLE_OP_IMAG) {
    out.re = a.im;
    if (!a.im) out.re = zeros(x, &node->results[0]);
  }
  return set_pair(x, &node->results[0], out);
}

static pestle_status_t scalar(expand_t* x, const pestle_node_t* node) {
  pair_t a = pair_of(x, pestle_node_operand(node, 0)), b = a;
  if (node->operand_count > 1) b = pair_of(x, pestle_node_operand(node, 1));
  pestle_pair_t out = pestle_complex_scalar(&x->f, (pestle_op_t)node->op, a, b);
  return set_pair(x, &node->results[0], out);
}

// Both parts of both operands: (ac - bd) + i (ad + bc).
static pestle_status_t contraction(expand_t* x, const pestle_node_t* node) {
  pair_t a = pair_of(x, pestle_node_operand(node, 0));
  pair_t c = pair_of(x, pestle_node_operand(node, 1));
  pestle_type_t type = *node->results[0].type;
  type.dtype = pestle_dtype_part(type.dtype);
  pestle_value_t* operands[4][2] = {
      {a.re, c.re}, {a.im, c.im}, {a.re, c.im}, {a.im, c.re}};
  pestle_value_t* product[4];
  for (size_t i = 0; i < 4; ++i) {
    product[i] = pestle_f_like(&x->f, node, operands[i], &type);
  }
  pair_t out;
  out.re = pestle_f_subtract(&x->f, product[0], product[1]);
  out.im = pestle_f_add(&x->f, product[2], product[3]);
  return set_pair(x, &node->results[0], out);
}

// --- Regions ---

static pestle_status_t expand_block(expand_t* x, pestle_block_t* block);

static bool push_types(types_t* types, const pestle_value_t* value) {
  pestle_type_t type = *value->type;
  type.dtype = pestle_dtype_part(type.dtype);
  return pestle_vec_push(types, type) &&
         (!is_complex(value) || pestle_vec_push(types, type));
}

static bool push_values(expand_t* x, values_t* values, pestle_value_t* value) {
  pair_t pair = pair_of(x, value);
  return pestle_vec_push(values, pair.re) &&
         (!pair.im || pestle_vec_push(values, pair.im));
}

// Where the parts of argument |i| of a region come in its copy: one behind the
// other, but a comparator of sort takes its arguments in pairs.
static pestle_status_t map_arguments(expand_t* x, const pestle_node_t* owner,
                                     const pestle_block_t* from,
                                     pestle_block_t* to) {
  bool pairs = owner->op == PESTLE_OP_SORT || owner->op == PESTLE_OP_SORT_FIRST;
  size_t next = 0;
  for (uint32_t i = 0; i < from->argument_count; ++i) {
    bool both = is_complex(from->arguments[i]);
    size_t apart = both && pairs ? 2 : 1;
    // The second of a pair lies between the parts of the first.
    size_t at = both && pairs && i % 2 ? next - 3 : next;
    pair_t pair = {pestle_block_argument(to, at), NULL};
    pair.re->name = from->arguments[i]->name;
    if (both) pair.im = pestle_block_argument(to, at + apart);
    PESTLE_TRY(set_pair(x, from->arguments[i], pair));
    next += !both ? 1 : !pairs ? 2 : i % 2 ? 0 : 4;
  }
  return NULL;
}

static pestle_status_t copy_region(expand_t* x, const pestle_node_t* owner,
                                   uint32_t region, pestle_region_t** out) {
  pestle_block_t *from = pestle_node_body(owner, region), *to;
  types_t types;
  pestle_vec_init(&types, x->copier.values.allocator);
  bool grown = true;
  for (uint32_t i = 0; i < from->argument_count && grown; ++i)
    grown = push_types(&types, from->arguments[i]);
  pestle_status_t status =
      grown ? pestle_region_create(x->module, types.data, types.size, out, &to)
            : PESTLE_OOM();
  pestle_vec_deinit(&types);
  PESTLE_TRY(status);
  PESTLE_TRY(map_arguments(x, owner, from, to));
  pestle_builder_t outer = x->f.builder;
  bool in_place = x->in_place;
  x->f.builder.block = to;
  x->f.builder.before = NULL;
  x->in_place = false;
  status = expand_block(x, from);
  x->f.builder = outer;
  x->in_place = in_place;
  return status;
}

// Operands, regions and results with two values for a complex one.
static pestle_status_t with_regions(expand_t* x, const pestle_node_t* node) {
  values_t operands;
  pestle_vec_init(&operands, x->copier.values.allocator);
  pestle_region_t** regions = PESTLE_ARENA_ARRAY(
      x->ctx->scratch, pestle_region_t*, node->region_count + 1);
  bool grown = regions != NULL;
  for (uint32_t i = 0; i < node->operand_count && grown; ++i)
    grown = push_values(x, &operands, pestle_node_operand(node, i));
  pestle_status_t status = grown ? NULL : PESTLE_OOM();
  for (uint32_t r = 0; r < node->region_count && !status; ++r)
    status = copy_region(x, node, r, &regions[r]);
  pestle_node_spec_t spec = {.op = (pestle_op_t)node->op,
                             .operands = operands.data,
                             .operand_count = operands.size,
                             .attrs = node->attrs,
                             .attr_count = node->attr_count,
                             .regions = regions,
                             .region_count = node->region_count};
  pestle_node_t* copy = NULL;
  if (!status) status = pestle_node_create(&x->f.builder, &spec, &copy);
  pestle_vec_deinit(&operands);
  PESTLE_TRY(status);
  uint32_t next = 0;
  for (uint32_t i = 0; i < node->result_count; ++i) {
    pair_t pair = {pestle_node_result(copy, next++), NULL};
    if (is_complex(&node->results[i])) {
      pair.im = pestle_node_result(copy, next++);
    }
    PESTLE_TRY(set_pair(x, &node->results[i], pair));
  }
  return NULL;
}

// A sum of complex numbers is a sum of each part.
static pestle_value_t* sum_part(expand_t* x, const pestle_node_t* node,
                                bool im) {
  pestle_dtype_t part = pestle_dtype_part(node->results[0].type->dtype);
  pestle_value_t* operands[2];
  for (uint32_t i = 0; i < 2; ++i) {
    pair_t pair = pair_of(x, pestle_node_operand(node, i));
    operands[i] = im ? pair.im : pair.re;
  }
  pestle_region_t* region = pestle_f_region(&x->f, PESTLE_OP_ADD, part);
  return pestle_f_emit(&x->f,
                       &(pestle_node_spec_t){.op = (pestle_op_t)node->op,
                                             .operands = operands,
                                             .operand_count = 2,
                                             .attrs = node->attrs,
                                             .attr_count = node->attr_count,
                                             .regions = &region,
                                             .region_count = 1});
}

static pestle_status_t reduction(expand_t* x, const pestle_node_t* node) {
  bool sums =
      node->result_count == 1 &&
      pestle_block_reduce_op(pestle_node_body(node, 0)) == PESTLE_OP_ADD;
  if (!sums) return with_regions(x, node);
  pair_t out;
  out.re = sum_part(x, node, false);
  out.im = sum_part(x, node, true);
  return set_pair(x, &node->results[0], out);
}

// --- Nodes ---

static pestle_status_t return_values(expand_t* x, const pestle_node_t* node) {
  values_t values;
  pestle_vec_init(&values, x->copier.values.allocator);
  bool grown = true;
  for (uint32_t i = 0; i < node->operand_count && grown; ++i)
    grown = push_values(x, &values, pestle_node_operand(node, i));
  pestle_status_t status =
      grown ? pestle_op_return(&x->f.builder, values.data, values.size, NULL)
            : PESTLE_OOM();
  pestle_vec_deinit(&values);
  return status;
}

// The function's results keep their types; what is an argument is returned as
// it is.
static pestle_status_t return_joined(expand_t* x, pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    pestle_value_t* value = pestle_node_operand(node, i);
    if (!is_complex(value) || !value->node) continue;
    pestle_value_t* joined = join(x, pair_of(x, value), value->type);
    PESTLE_TRY(x->f.status);
    joined->name = value->name;
    pestle_node_set_operand(node, i, joined);
  }
  return NULL;
}

static pestle_status_t unsupported(const pestle_node_t* node) {
  return pestle_node_error(node, PESTLE_STATUS_UNSUPPORTED,
                           "the op has no kernel on complex numbers");
}

static pestle_status_t expand_node(expand_t* x, pestle_node_t* node) {
  if (pestle_op_is_scalar((pestle_op_t)node->op)) {
    return node->op == PESTLE_OP_SELECT ? on_each_part(x, node)
                                        : scalar(x, node);
  }
  switch ((int)node->op) {
    case PESTLE_OP_CONSTANT:
      return constant(x, node);
    case PESTLE_OP_IOTA:
      return iota(x, node);
    case PESTLE_OP_CONVERT:
      return convert(x, node);
    case PESTLE_OP_BITCAST_CONVERT:
      return bitcast(x, node);
    case PESTLE_OP_COMPLEX:
    case PESTLE_OP_REAL:
    case PESTLE_OP_IMAG:
      return parts(x, node);
    case PESTLE_OP_BROADCAST_IN_DIM:
    case PESTLE_OP_RESHAPE:
    case PESTLE_OP_TRANSPOSE:
    case PESTLE_OP_SLICE:
    case PESTLE_OP_REVERSE:
    case PESTLE_OP_PAD:
    case PESTLE_OP_CONCATENATE:
    case PESTLE_OP_DYNAMIC_SLICE:
    case PESTLE_OP_DYNAMIC_UPDATE_SLICE:
    case PESTLE_OP_GATHER:
      return on_each_part(x, node);
    case PESTLE_OP_DOT_GENERAL:
    case PESTLE_OP_CONVOLUTION:
      return contraction(x, node);
    case PESTLE_OP_REDUCE:
    case PESTLE_OP_REDUCE_WINDOW:
      return reduction(x, node);
    case PESTLE_OP_SORT:
    case PESTLE_OP_SORT_FIRST:
    case PESTLE_OP_SCATTER:
    case PESTLE_OP_WHILE:
    case PESTLE_OP_IF:
    case PESTLE_OP_CASE:
    case PESTLE_OP_FUSION:
    case PESTLE_OP_OPTIMIZATION_BARRIER:
      return with_regions(x, node);
  }
  return unsupported(node);
}

// In place of the old results, where they are real, come the new ones.
static void use_results(expand_t* x, pestle_node_t* node) {
  for (uint32_t i = 0; i < node->result_count; ++i) {
    pestle_value_t* result = &node->results[i];
    if (is_complex(result)) continue;
    pestle_value_replace_all_uses(result, first_of(x, result));
  }
}

// |*out_next| is the first op of what the composite is decomposed into.
static pestle_status_t decompose(pestle_node_t* node,
                                 pestle_node_t** out_next) {
  pestle_value_t* results[PESTLE_COMPOSITE_MAX_RESULTS];
  pestle_node_t* prev = node->prev;
  pestle_block_t* block = node->block;
  PESTLE_TRY(pestle_decompose(node, results));
  pestle_pass_replace(node, results);
  *out_next = prev ? prev->next : block->first;
  return NULL;
}

static pestle_status_t expand_one(expand_t* x, pestle_node_t* node) {
  pestle_node_t* copy;
  x->of.node = node;
  x->f.of = &x->of;
  x->f.builder.loc = node->loc;
  if (x->in_place) x->f.builder.before = node;
  if (node->op == PESTLE_OP_RETURN) {
    return x->in_place ? return_joined(x, node) : return_values(x, node);
  }
  if (touches_complex(node)) {
    PESTLE_TRY(expand_node(x, node));
    if (!x->in_place) return NULL;
    use_results(x, node);
    return pestle_vec_push(&x->expanded, node) ? NULL : PESTLE_OOM();
  }
  if (x->in_place) return NULL;
  x->copier.builder = x->f.builder;
  return pestle_copier_node(&x->copier, node, &copy);
}

static pestle_status_t expand_from(expand_t* x, pestle_node_t* first) {
  for (pestle_node_t *n = first, *next; n; n = next) {
    next = n->next;
    if (pestle_pass_info(n)->fuse == PESTLE_FUSE_COMPOSITE &&
        touches_complex(n)) {
      PESTLE_TRY(decompose(n, &next));
      continue;
    }
    PESTLE_TRY(expand_one(x, n));
  }
  return NULL;
}

static pestle_status_t expand_block(expand_t* x, pestle_block_t* block) {
  return expand_from(x, block->first);
}

static pestle_status_t split_arguments(expand_t* x, pestle_block_t* block) {
  x->f.builder = (pestle_builder_t){
      .module = x->module, .block = block, .before = block->first};
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    if (!is_complex(block->arguments[i])) continue;
    pair_t pair = split(x, block->arguments[i]);
    PESTLE_TRY(set_pair(x, block->arguments[i], pair));
  }
  return NULL;
}

static pestle_status_t expand_function(expand_t* x, pestle_function_t* f) {
  pestle_block_t* block = f->body->block;
  pestle_node_t* first = block->first;
  x->in_place = true;
  PESTLE_TRY(split_arguments(x, block));
  PESTLE_TRY(expand_from(x, first));
  // Their results are used by each other alone.
  while (x->expanded.size)
    pestle_node_erase(x->expanded.data[--x->expanded.size]);
  return NULL;
}

bool pestle_has_complex(const pestle_module_t* module) {
  for (const pestle_function_t* f = module->first; f; f = f->next) {
    for (const pestle_node_t* n = f->body->block->first; n; n = n->next) {
      bool same_bytes =
          n->op == PESTLE_OP_RETURN || pestle_fuse_is_view_of_parts(n);
      if (!same_bytes && touches_complex(n)) return true;
    }
  }
  return false;
}

pestle_status_t pestle_pass_expand_complex(pestle_pass_context_t* ctx,
                                           pestle_module_t* module,
                                           bool* out_changed) {
  expand_t x = {.ctx = ctx, .module = module};
  if (!pestle_has_complex(module)) return NULL;
  // What says where a complex number lies says nothing of its parts.
  PESTLE_TRY(pestle_pass_partition(ctx, module, out_changed));
  pestle_allocator_t allocator = pestle_context_allocator(ctx->context);
  pestle_copier_init(allocator, x.f.builder, &x.copier);
  pestle_map_init(allocator, &x.im);
  pestle_vec_init(&x.expanded, allocator);
  pestle_status_t status = NULL;
  for (pestle_function_t* f = module->first; f && !status; f = f->next)
    status = expand_function(&x, f);
  pestle_copier_deinit(&x.copier);
  pestle_map_deinit(&x.im);
  pestle_vec_deinit(&x.expanded);
  *out_changed = true;
  return status;
}
