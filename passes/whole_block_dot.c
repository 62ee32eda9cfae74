// SPDX-License-Identifier: Apache-2.0
// Products with weights of a few bits that share x become one group, with the norm that makes
// x where nobody else reads it, and with the elementwise ops behind them: a CPU makes them
// all in one kernel (codegen/direct/direct_block_dot.c). A target whose lanes run side by side
// makes products of few rows and what is behind them in one, with the norm where x is taken
// as few bytes; more bytes of x and the norm are another (whole_block_dot_lanes.c).
//
//   %n = pestle.rms_norm(%x, %s)
//   %g = pestle.block_dot(%n, ..);  %u = pestle.block_dot(%n, ..)
//   %y = multiply(silu(%g), %u)
//   ->
//   %y = pestle.fusion(%x, %s, ..) { all of this }
//
// The group stands where its first product stood. What it reads was made before that, so that
// no way leads out of the group and back; constants are moved there.
#include "passes/fuse.h"

enum {
  // As the kernel has them at most, and how far behind a product its ops are looked for.
  MOST_PRODUCTS = 8,
  MOST_NODES = 32,
  MOST_COPIED = 16,
  MOST_INPUTS = 40,
  MOST_RESULTS = 8,
  WINDOW = 128,
  MOST_EXTRAS = 2,  // tensors that an op behind products may read besides
};

typedef struct products_t {
  pestle_pass_context_t* ctx;
  pestle_node_t* first;
  pestle_node_t* norm;               // or NULL
  pestle_node_t* nodes[MOST_NODES];  // products, then what follows, in order
  // Constants and views, of which the group has copies.
  pestle_node_t* copied[MOST_NODES];
  pestle_value_t *inputs[MOST_INPUTS], *results[MOST_RESULTS];
  size_t product_count, node_count, copied_count, input_count, result_count;
  // x as bytes and their scales, made by a group of their own, with the norm; or NULL.
  pestle_value_t *bytes, *rates;
} products_t;

// --- What is there where ---

// Nodes have their places in the block in |scratch|; a group has that of its first product.
static bool is_constant(const pestle_value_t* value) {
  return pestle_value_is_stored(value);
}

static bool is_there(const products_t* p, const pestle_value_t* value) {
  const pestle_node_t* node = value->node;
  return !node || node->block != p->first->block || is_constant(value) ||
         node->scratch < p->first->scratch;
}

static bool is_inside(const products_t* p, const pestle_node_t* node) {
  for (size_t i = 0; i < p->node_count; ++i) {
    if (p->nodes[i] == node) return true;
  }
  return node && node == p->norm;
}

static bool is_copied(const products_t* p, const pestle_node_t* node) {
  for (size_t i = 0; i < p->copied_count; ++i) {
    if (p->copied[i] == node) return true;
  }
  return false;
}

static bool add_input(products_t* p, pestle_value_t* value) {
  for (size_t i = 0; i < p->input_count; ++i) {
    if (p->inputs[i] == value) return true;
  }
  if (p->input_count == MOST_INPUTS) return false;
  p->inputs[p->input_count++] = value;
  return true;
}

// --- Products of one x ---

static bool is_float(const pestle_value_t* value) {
  pestle_dtype_t dtype = value->type->dtype;
  return dtype == PESTLE_F32 || dtype == PESTLE_F16 || dtype == PESTLE_BF16;
}

static bool is_alike(const pestle_node_t* a, const pestle_node_t* b) {
  return a->operand_count == b->operand_count &&
         PESTLE_NODE_I64(a, bits) == PESTLE_NODE_I64(b, bits) &&
         PESTLE_NODE_I64(a, block) == PESTLE_NODE_I64(b, block) &&
         PESTLE_NODE_I64(a, accuracy) == PESTLE_NODE_I64(b, accuracy);
}

static bool add_product(products_t* p, pestle_node_t* node) {
  size_t before = p->input_count;
  bool is_taken = p->product_count < MOST_PRODUCTS;
  for (uint32_t i = 1; i < node->operand_count && is_taken; ++i) {
    pestle_value_t* value = pestle_node_operand(node, i);
    is_taken = is_there(p, value) && value != pestle_node_operand(node, 0) &&
               add_input(p, value);
  }
  if (!is_taken) {
    p->input_count = before;
    return false;
  }
  size_t at = p->product_count++;
  ++p->node_count;
  for (; at && p->nodes[at - 1]->scratch > node->scratch; --at)
    p->nodes[at] = p->nodes[at - 1];
  p->nodes[at] = node;
  return true;
}

static void find_products(products_t* p) {
  const pestle_value_t* x = pestle_node_operand(p->first, 0);
  add_product(p, p->first);
  for (const pestle_use_t* u = x->uses; u; u = u->next) {
    pestle_node_t* node = u->user;
    if (node != p->first && node->op == PESTLE_OP_BLOCK_DOT &&
        node->block == p->first->block && is_alike(node, p->first) &&
        pestle_pass_is_whole(p->ctx, node) && !is_inside(p, node)) {
      add_product(p, node);
    }
  }
}

// A norm over the last axis whose result the products alone read.
static void find_norm(products_t* p) {
  pestle_value_t* x = pestle_node_operand(p->first, 0);
  pestle_node_t* norm = x->node;
  if (!norm || norm->op != PESTLE_OP_RMS_NORM || norm->block != p->first->block)
    return;
  pestle_i64s_t dims = PESTLE_NODE_I64S(norm, dimensions);
  const pestle_value_t *from = pestle_node_operand(norm, 0),
                       *scale = pestle_node_operand(norm, 1);
  if (dims.count != 1 || dims.data[0] != x->type->rank - 1 ||
      from->type->dtype != x->type->dtype || !is_float(scale) ||
      scale->type->rank != 1 || !is_there(p, scale)) {
    return;
  }
  for (const pestle_use_t* u = x->uses; u; u = u->next) {
    if (!is_inside(p, u->user)) return;
  }
  p->norm = norm;
}

// --- What follows ---

static bool is_pointwise(const pestle_node_t* node) {
  return (pestle_op_is_scalar((pestle_op_t)node->op) ||
          node->op == PESTLE_OP_CONVERT || node->op == PESTLE_OP_SILU) &&
         node->result_count == 1 && node->operand_count <= 3 &&
         is_float(&node->results[0]);
}

// A number for all elements, one for each column, or all of them as they lie.
static bool is_view(const products_t* p, const pestle_node_t* node) {
  if (node->op == PESTLE_OP_RESHAPE)
    return is_there(p, pestle_node_operand(node, 0));
  if (node->op != PESTLE_OP_BROADCAST_IN_DIM) return false;
  const pestle_value_t* from = pestle_node_operand(node, 0);
  pestle_i64s_t dims = PESTLE_NODE_I64S(node, broadcast_dimensions);
  int64_t count = pestle_type_count(from->type);
  const pestle_type_t* to = node->results[0].type;
  bool fits =
      count == 1 || (from->type->rank == 1 && dims.data[0] == to->rank - 1 &&
                     count == to->dims[to->rank - 1]);
  return fits && is_there(p, from);
}

static bool is_splat(const pestle_node_t* node) {
  return node->op == PESTLE_OP_CONSTANT && PESTLE_NODE_ELEMENTS(node)->splat;
}

static bool add_copied(products_t* p, pestle_node_t* node) {
  if (is_copied(p, node)) return true;
  if (p->copied_count == MOST_COPIED) return false;
  if (node->op != PESTLE_OP_CONSTANT) {
    pestle_value_t* from = pestle_node_operand(node, 0);
    bool is_good = from->node && is_splat(from->node)
                       ? add_copied(p, from->node)
                       : add_input(p, from);
    if (!is_good) return false;
  }
  if (p->copied_count == MOST_COPIED) return false;
  p->copied[p->copied_count++] = node;
  return true;
}

// An operand of an op behind the products.
static bool add_operand(products_t* p, pestle_value_t* value, int* extras) {
  pestle_node_t* node = value->node;
  if (node && is_inside(p, node)) return true;
  if (!is_float(value)) return false;
  if (node && (is_splat(node) || is_view(p, node))) return add_copied(p, node);
  return is_there(p, value) && ++*extras <= MOST_EXTRAS && add_input(p, value);
}

static bool follows(const products_t* p, const pestle_node_t* node) {
  bool any = false;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_value_t* value = pestle_node_operand(node, i);
    if (!pestle_pass_same_dims(value->type, node->results[0].type))
      return false;
    any |= value->node && value->node != p->norm && is_inside(p, value->node);
  }
  return any;
}

static void find_more(products_t* p) {
  pestle_node_t* node = p->first->next;
  for (int i = 0; i < WINDOW && node && p->node_count < MOST_NODES;
       ++i, node = node->next) {
    if (!is_pointwise(node) || !follows(p, node)) continue;
    size_t inputs = p->input_count, copied = p->copied_count;
    bool is_taken = true;
    int extras = 0;
    for (uint32_t o = 0; o < node->operand_count && is_taken; ++o)
      is_taken = add_operand(p, pestle_node_operand(node, o), &extras);
    if (is_taken) {
      p->nodes[p->node_count++] = node;
    } else {
      p->input_count = inputs;
      p->copied_count = copied;
    }
  }
}

// Values that others read; false: too many.
static bool find_results(products_t* p) {
  p->result_count = 0;
  for (size_t i = 0; i < p->node_count; ++i) {
    bool is_read = false;
    for (const pestle_use_t* u = p->nodes[i]->results[0].uses; u; u = u->next)
      is_read |= !is_inside(p, u->user);
    if (!is_read) continue;
    if (p->result_count == MOST_RESULTS) return false;
    p->results[p->result_count++] = &p->nodes[i]->results[0];
  }
  return p->result_count > 0;
}

// --- The group ---

static pestle_status_t copy_node(pestle_copier_t* copier,
                                 const pestle_node_t* node) {
  pestle_node_t* copy;
  return pestle_copier_node(copier, node, &copy);
}

static pestle_status_t fill(products_t* p, pestle_copier_t* copier) {
  pestle_builder_t* inside = &copier->builder;
  pestle_value_t *argument, *results[MOST_RESULTS];
  for (size_t i = 0; i < p->input_count; ++i) {
    PESTLE_TRY(pestle_block_add_argument(inside->module, inside->block,
                                         p->inputs[i]->type, &argument));
    PESTLE_TRY(pestle_copier_set(copier, p->inputs[i], argument));
  }
  if (p->norm && !p->bytes) PESTLE_TRY(copy_node(copier, p->norm));
  if (p->bytes) {
    PESTLE_TRY(pestle_pass_block_x(
        inside, p->first, pestle_copier_get(copier, p->bytes),
        pestle_copier_get(copier, p->rates), &argument));
    PESTLE_TRY(
        pestle_copier_set(copier, pestle_node_operand(p->first, 0), argument));
  }
  for (size_t i = 0; i < p->product_count; ++i)
    PESTLE_TRY(copy_node(copier, p->nodes[i]));
  for (size_t i = 0; i < p->copied_count; ++i)
    PESTLE_TRY(copy_node(copier, p->copied[i]));
  for (size_t i = p->product_count; i < p->node_count; ++i)
    PESTLE_TRY(copy_node(copier, p->nodes[i]));
  for (size_t i = 0; i < p->result_count; ++i)
    results[i] = pestle_copier_get(copier, p->results[i]);
  return pestle_op_return(inside, results, p->result_count, NULL);
}

static pestle_status_t create(products_t* p, pestle_region_t* region,
                              pestle_node_t** out_group) {
  bool is_more = p->node_count > 1 || p->norm || p->bytes;
  const char* label = is_more ? "block_dots" : "block_dot";
  pestle_builder_t at = pestle_builder_before(p->first);
  for (size_t i = 0; i < p->input_count; ++i) {
    pestle_node_t* node = p->inputs[i]->node;
    if (!node || node->block != p->first->block || !is_constant(p->inputs[i]) ||
        node->scratch < p->first->scratch) {
      continue;
    }
    pestle_node_move(node, p->first);
    node->scratch = p->first->scratch;
  }
  return pestle_pass_make_group(&at, label, p->inputs, p->input_count, region,
                                out_group);
}

static pestle_status_t replace(products_t* p, pestle_node_t** out_group) {
  pestle_builder_t inside = {.module = pestle_builder_before(p->first).module,
                             .loc = p->first->loc};
  pestle_region_t* region;
  pestle_copier_t copier;
  PESTLE_TRY(
      pestle_region_create(inside.module, NULL, 0, &region, &inside.block));
  pestle_copier_init(pestle_context_allocator(p->ctx->context), inside,
                     &copier);
  pestle_status_t status = fill(p, &copier);
  pestle_copier_deinit(&copier);
  if (status) {
    pestle_region_discard(region);
    return status;
  }
  PESTLE_TRY(create(p, region, out_group));
  pestle_node_t* group = *out_group;
  group->scratch = p->first->scratch;
  for (size_t i = 0; i < p->result_count; ++i)
    pestle_value_replace_all_uses(p->results[i], &group->results[i]);
  for (size_t i = p->node_count; i-- > 0;) {
    pestle_node_set_heir(p->nodes[i], group);
    pestle_node_erase(p->nodes[i]);
  }
  if (!p->norm) return NULL;
  pestle_node_set_heir(p->norm, group);
  pestle_node_erase(p->norm);
  return NULL;
}

// Whether each group of lanes makes the bytes of x itself.
static bool has_few(const pestle_node_t* product) {
  enum { MOST_ROWS = 4, MOST_NUMBERS = 16384 };
  const pestle_type_t* x = pestle_node_operand(product, 0)->type;
  int64_t count = pestle_type_count(x);
  return count <= MOST_NUMBERS && count <= MOST_ROWS * x->dims[x->rank - 1];
}

// What makes x, and with it the first inputs of the group.
static pestle_status_t take_x(products_t* p) {
  const pestle_target_caps_t* caps = p->ctx->caps;
  bool has_lanes = caps->flags & PESTLE_TARGET_LANES;
  bool is_bytes = has_lanes && PESTLE_NODE_I64(p->first, accuracy) == 4 &&
                  caps->op_dtypes[PESTLE_KIR_DOT4] != 0;
  if (!has_lanes || is_bytes) find_norm(p);
  if (is_bytes && !has_few(p->first)) {
    PESTLE_TRY(
        pestle_pass_block_bytes(p->first, p->norm, &p->bytes, &p->rates));
    p->bytes->node->scratch = p->first->scratch;
    add_input(p, p->bytes);
    add_input(p, p->rates);
    return NULL;
  }
  if (p->norm) add_input(p, pestle_node_operand(p->norm, 1));
  add_input(p, pestle_node_operand(p->norm ? p->norm : p->first, 0));
  return NULL;
}

static pestle_status_t group_products(pestle_pass_context_t* ctx,
                                      pestle_node_t* first,
                                      pestle_node_t** out_group) {
  products_t p = {.ctx = ctx, .first = first};
  find_products(&p);
  if (!find_results(&p)) return NULL;
  PESTLE_TRY(take_x(&p));
  size_t inputs = p.input_count;
  find_more(&p);
  if (!find_results(&p)) {
    p.node_count = p.product_count;
    p.copied_count = 0;
    p.input_count = inputs;
    if (!find_results(&p)) return NULL;
  }
  return replace(&p, out_group);
}

// --- How x is taken ---

// A product that does not say how it takes x takes it as bytes.
static pestle_status_t take_bytes(pestle_node_t* node) {
  pestle_value_t* operands[4] = {NULL};
  const pestle_attr_t attrs[] = {
      PESTLE_SET_I64(bits, PESTLE_NODE_I64(node, bits)),
      PESTLE_SET_I64(block, PESTLE_NODE_I64(node, block)),
      PESTLE_SET_I64(accuracy, 4)};
  pestle_formula_t f = pestle_formula_before(node);
  for (uint32_t i = 0; i < node->operand_count; ++i)
    operands[i] = pestle_node_operand(node, i);
  pestle_value_t* y = pestle_f_make(&f, PESTLE_OP_BLOCK_DOT, operands,
                                    node->operand_count, attrs, 3, NULL);
  PESTLE_TRY(f.status);
  pestle_value_replace_all_uses(&node->results[0], y);
  pestle_node_set_heir(node, y->node);
  pestle_node_erase(node);
  return NULL;
}

static pestle_status_t take_all_bytes(const pestle_pass_context_t* ctx,
                                      pestle_block_t* block) {
  if (ctx->options->numerics != PESTLE_NUMERICS_FAST) return NULL;
  for (pestle_node_t *n = block->first, *next; n; n = next) {
    next = n->next;
    if (n->op == PESTLE_OP_BLOCK_DOT && !PESTLE_NODE_I64(n, accuracy) &&
        pestle_pass_is_whole(ctx, n)) {
      PESTLE_TRY(take_bytes(n));
    }
  }
  return NULL;
}

// Where lanes run side by side, of more rows than a team of them takes.
static bool is_matrix(const pestle_pass_context_t* ctx,
                      const pestle_node_t* node) {
  enum { MOST_ROWS = 16 };
  const pestle_type_t* x = pestle_node_operand(node, 0)->type;
  return (ctx->caps->flags & PESTLE_TARGET_LANES) &&
         pestle_type_count(x) > MOST_ROWS * x->dims[x->rank - 1];
}

pestle_status_t pestle_pass_whole_block_dots(pestle_pass_context_t* ctx,
                                             pestle_block_t* block,
                                             bool* out_changed) {
  uint64_t place = 0;
  PESTLE_TRY(take_all_bytes(ctx, block));
  for (pestle_node_t* n = block->first; n; n = n->next)
    n->scratch = ++place;
  for (pestle_node_t* n = block->first; n; n = n->next) {
    if (n->op != PESTLE_OP_BLOCK_DOT || !pestle_pass_is_whole(ctx, n)) continue;
    pestle_node_t *group = NULL, *before = n->prev;
    if (is_matrix(ctx, n)) {
      PESTLE_TRY(pestle_pass_block_matrix(n));
      *out_changed = true;
      n = before ? before : block->first;
      continue;
    }
    PESTLE_TRY(group_products(ctx, n, &group));
    if (!group) continue;
    *out_changed = true;
    n = group;
  }
  return NULL;
}
