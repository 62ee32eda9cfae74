// SPDX-License-Identifier: Apache-2.0
// What stands around the products of a group (direct_block_dot.c): the norm that makes their
// x, and the elementwise ops behind them, which passes/whole_block_dot.c has put there. Ops
// are made of vectors of columns, a row after the other, from the products in scratch; on
// targets whose lanes run side by side, of single columns, from the products in registers.
#include "codegen/direct/direct_block_dot.h"

// Values of the body by their scratch: arguments, then the results of its nodes.
static void number_values(const block_dot_t* b) {
  size_t next = 0;
  for (uint32_t i = 0; i < b->body->argument_count; ++i)
    b->body->arguments[i]->scratch = next++;
  for (pestle_node_t* n = b->body->first; n; n = n->next) {
    for (uint32_t r = 0; r < n->result_count; ++r)
      n->results[r].scratch = next++;
  }
}

static uint32_t argument_of(const block_dot_t* b, const pestle_value_t* value) {
  return value->node ? 0 : b->arguments[value->scratch];
}

static block_product_t* product_of(block_dot_t* b, const pestle_node_t* node) {
  for (unsigned p = 0; p < b->product_count; ++p) {
    if (b->products[p].node == node) return &b->products[p];
  }
  return NULL;
}

// An op behind the products, not what makes one of its operands of a number or of a row.
static bool is_behind(const pestle_node_t* node) {
  return pestle_op_is_scalar((pestle_op_t)node->op) ||
         node->op == PESTLE_OP_CONVERT || node->op == PESTLE_OP_SILU;
}

// --- Reading ---

static pestle_status_t read_product(block_dot_t* b, const pestle_node_t* node) {
  if (b->product_count == MOST_PRODUCTS)
    return pestle_node_error(node, PESTLE_STATUS_INTERNAL,
                             "a kernel has no more than %d products",
                             (int)MOST_PRODUCTS);
  unsigned p = b->product_count++;
  b->products[p] =
      (block_product_t){.node = node,
                        .w = argument_of(b, pestle_node_operand(node, 1)),
                        .scales = argument_of(b, pestle_node_operand(node, 2)),
                        .piece = p};
  if (b->has_zeros)
    b->products[p].zeros = argument_of(b, pestle_node_operand(node, 3));
  const pestle_type_t* type = node->results[0].type;
  b->pieces[p].columns = type->dims[type->rank - 1];
  return NULL;
}

// The piece of what makes |value|, or MOST_PRODUCTS.
static unsigned piece_of(block_dot_t* b, const pestle_value_t* value) {
  const pestle_node_t* node = value->node;
  if (!node) return MOST_PRODUCTS;
  block_product_t* product = product_of(b, node);
  if (product) return product->piece;
  unsigned piece = MOST_PRODUCTS;
  if (is_behind(node)) {
    for (uint32_t i = 0; i < node->operand_count && piece == MOST_PRODUCTS; ++i)
      piece = piece_of(b, pestle_node_operand(node, i));
  }
  return piece;
}

// All that |node| reads is of one piece from here on.
static pestle_status_t join(block_dot_t* b, const pestle_node_t* node) {
  unsigned piece = piece_of(b, &node->results[0]);
  if (piece == MOST_PRODUCTS)
    return pestle_node_error(node, PESTLE_STATUS_INTERNAL,
                             "the op follows no product of its kernel");
  b->pieces[piece].has_more = true;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    unsigned other = piece_of(b, pestle_node_operand(node, i));
    if (other == MOST_PRODUCTS || other == piece) continue;
    for (unsigned p = 0; p < b->product_count; ++p) {
      if (b->products[p].piece == other) b->products[p].piece = piece;
    }
    b->pieces[other] = (block_piece_t){0};
  }
  return NULL;
}

static pestle_status_t find_result(const block_dot_t* b,
                                   block_product_t* product) {
  const pestle_node_t* last = b->body->last;
  if (b->pieces[product->piece].has_more) return NULL;
  for (uint32_t r = 0; r < last->operand_count; ++r) {
    product->result = r;
    if (pestle_node_operand(last, r)->node == product->node) return NULL;
  }
  return pestle_node_error(product->node, PESTLE_STATUS_INTERNAL,
                           "the product is no result of its kernel");
}

pestle_status_t pestle_block_dot_read(block_dot_t* b) {
  const pestle_node_t* group = b->d->node;
  b->body = pestle_node_body(group, 0);
  uint32_t nodes = 0;
  for (const pestle_node_t* n = b->body->first; n; n = n->next)
    ++nodes;
  if (b->body->argument_count > MOST_ARGUMENTS || nodes > MOST_NODES ||
      group->result_count > MOST_RESULTS) {
    return pestle_node_error(group, PESTLE_STATUS_INTERNAL,
                             "a kernel of products has too many operands");
  }
  number_values(b);
  for (uint32_t i = 0; i < b->body->argument_count; ++i)
    b->arguments[i] = pestle_direct_operand(b->d, i);
  for (uint32_t i = 0; i < group->result_count; ++i)
    b->results[i] = pestle_direct_result(b->d, i);
  b->first_product = b->body->first;
  while (b->first_product->op != PESTLE_OP_BLOCK_DOT)
    b->first_product = b->first_product->next;
  for (const pestle_node_t* n = b->first_product; n != b->body->last;
       n = n->next) {
    if (n->op == PESTLE_OP_BLOCK_DOT) {
      PESTLE_TRY(read_product(b, n));
    } else if (is_behind(n)) {
      PESTLE_TRY(join(b, n));
    }
  }
  for (unsigned p = 0; p < b->product_count; ++p)
    PESTLE_TRY(find_result(b, &b->products[p]));
  const pestle_value_t* x = pestle_node_operand(b->products[0].node, 0);
  if (x->node && x->node->op == PESTLE_OP_RMS_NORM) {
    b->norm = x->node;
    b->norm_scale = argument_of(b, pestle_node_operand(b->norm, 1));
    x = pestle_node_operand(b->norm, 0);
  }
  if (!x->node) b->x = argument_of(b, x);
  return NULL;
}

// --- A vector ---

typedef struct vector_t {
  block_dot_t* b;
  int64_t m;
  pk_t column, at;  // the first of it: of its row, of y
  pk_t mask;        // of columns that are, or NONE
  pk_t made[MOST_ARGUMENTS + MOST_NODES];
} vector_t;

static pk_t load(const vector_t* v, uint32_t buffer, pk_t at, pk_t mask) {
  return pestle_kir_load(v->b->k, buffer, v->b->lanes, at, mask, 0);
}

static pk_t splat(const vector_t* v, const pestle_elements_t* e) {
  double f;
  int64_t i;
  pestle_elements_first(e, &f, &i);
  return pestle_kir_const(v->b->k, e->type.dtype, v->b->lanes, f, i);
}

// What is the same in all rows, or everywhere, or lies as y does.
static pk_t view_value(const vector_t* v, const pestle_node_t* node) {
  const pestle_value_t* from = pestle_node_operand(node, 0);
  if (from->node) return splat(v, pestle_value_constant(from));
  uint32_t buffer = argument_of(v->b, from);
  if (node->op == PESTLE_OP_RESHAPE) return load(v, buffer, v->at, v->mask);
  if (pestle_type_count(from->type) > 1)
    return load(v, buffer, v->column, v->mask);
  pk_t a = pestle_direct_load(v->b->d, buffer, number(v->b, 0));
  return pestle_kir_splat(v->b->k, a, v->b->lanes);
}

static pk_t value_of(const vector_t* v, const pestle_value_t* value) {
  block_dot_t* b = v->b;
  if (!value->node && b->read_y && b->read_y[value->scratch] != PESTLE_KIR_NONE)
    return b->read_y[value->scratch];
  if (!value->node) return load(v, argument_of(b, value), v->at, v->mask);
  const block_product_t* product = product_of(b, value->node);
  if (product && b->is_lanes)
    return pestle_kir_cast(b->k, product->now[v->m], value->type->dtype);
  if (product) {
    pk_t at = number(b, v->m * b->made_stride);
    if (b->made_row != PESTLE_KIR_NONE)
      at = pestle_kir_madi(b->k, b->made_row, b->made_stride, at);
    pk_t a = load(v, product->made, at, PESTLE_KIR_NONE);
    return pestle_kir_cast(b->k, a, value->type->dtype);
  }
  if (value->node->op == PESTLE_OP_CONSTANT)
    return splat(v, PESTLE_NODE_ELEMENTS(value->node));
  if (value->node->op == PESTLE_OP_BROADCAST_IN_DIM ||
      value->node->op == PESTLE_OP_RESHAPE) {
    return view_value(v, value->node);
  }
  return v->made[value->scratch];
}

static pk_t make_node(const vector_t* v, const pestle_node_t* node) {
  pk_t args[3] = {PESTLE_KIR_NONE, PESTLE_KIR_NONE, PESTLE_KIR_NONE};
  pestle_kir_builder_t* k = v->b->k;
  for (uint32_t i = 0; i < node->operand_count && i < 3; ++i)
    args[i] = value_of(v, pestle_node_operand(node, i));
  if (node->op == PESTLE_OP_CONVERT)
    return pestle_kir_cast(k, args[0], node->results[0].type->dtype);
  if (node->op == PESTLE_OP_SILU) {
    pk_t part = pestle_kir_scalar(k, PESTLE_OP_LOGISTIC, args[0],
                                  PESTLE_KIR_NONE, PESTLE_KIR_NONE);
    return pestle_kir_scalar(k, PESTLE_OP_MULTIPLY, args[0], part,
                             PESTLE_KIR_NONE);
  }
  return pestle_kir_scalar(k, (pestle_op_t)node->op, args[0], args[1], args[2]);
}

static void finish_row(vector_t* v) {
  block_dot_t* b = v->b;
  for (const pestle_node_t* n = b->first_product; n != b->body->last;
       n = n->next) {
    if (is_behind(n) && &b->pieces[piece_of(b, &n->results[0])] == b->piece) {
      v->made[n->results[0].scratch] = make_node(v, n);
    }
  }
  for (uint32_t r = 0; r < b->body->last->operand_count; ++r) {
    const pestle_value_t* value = pestle_node_operand(b->body->last, r);
    if (&b->pieces[piece_of(b, value)] != b->piece) continue;
    pestle_kir_store(b->k, b->results[r], v->at, value_of(v, value), v->mask,
                     0);
  }
}

void pestle_block_dot_read_y(block_dot_t* b, pk_t column,
                             pk_t out[MOST_ARGUMENTS]) {
  vector_t v = {
      .b = b, .column = column, .at = column, .mask = PESTLE_KIR_NONE};
  b->read_y = NULL;
  for (uint32_t i = 0; i < b->body->argument_count; ++i)
    out[i] = PESTLE_KIR_NONE;
  for (const pestle_node_t* n = b->first_product; n != b->body->last;
       n = n->next) {
    if (!is_behind(n) || &b->pieces[piece_of(b, &n->results[0])] != b->piece)
      continue;
    for (uint32_t i = 0; i < n->operand_count; ++i) {
      const pestle_value_t* value = pestle_node_operand(n, i);
      if (!value->node && out[value->scratch] == PESTLE_KIR_NONE)
        out[value->scratch] = value_of(&v, value);
    }
  }
}

void pestle_block_dot_finish(block_dot_t* b, pk_t first, pk_t first_row) {
  vector_t v = {.b = b, .column = first, .mask = PESTLE_KIR_NONE};
  if (b->piece->has_tail && !b->is_lanes)
    v.mask =
        pestle_kir_mask(b->k, first, number(b, b->piece->columns), b->lanes);
  for (v.m = 0; v.m < b->rows; ++v.m) {
    pk_t row = pestle_kir_madi(b->k, first_row, 1, number(b, v.m));
    v.at = pestle_kir_madi(b->k, row, b->piece->columns, first);
    finish_row(&v);
  }
}
