// SPDX-License-Identifier: Apache-2.0
// Finds the ops that turn queries by their angles, and makes them again (whole_attention.h):
//
//   %a = slice %x [.., 0:h];  %b = slice %x [.., h:2h]
//   %q = concatenate (%a * %c - %b * %s), (%a * %s + %b * %c)
#include "passes/whole_attention.h"

typedef struct parts_t {
  const pestle_node_t *first, *second;  // slices
  const pestle_node_t *cosine, *sine;   // broadcasts
} parts_t;

static const pestle_node_t* node_of(const pestle_value_t* value,
                                    pestle_op_t op) {
  const pestle_node_t* node = value->node;
  return node && node->op == op ? node : NULL;
}

static bool has_one_use(const pestle_value_t* value) {
  return value->uses && !value->uses->next;
}

// The operands of |value|, a slice times a broadcast.
static bool read_product(const pestle_value_t* value,
                         const pestle_node_t** slice,
                         const pestle_node_t** angle) {
  const pestle_node_t* node = node_of(value, PESTLE_OP_MULTIPLY);
  if (!node) return false;
  for (size_t i = 0; i < 2; ++i) {
    *slice = node_of(pestle_node_operand(node, i), PESTLE_OP_SLICE);
    *angle =
        node_of(pestle_node_operand(node, 1 - i), PESTLE_OP_BROADCAST_IN_DIM);
    if (*slice && *angle) return true;
  }
  return false;
}

static bool read_halves(const pestle_node_t* q, parts_t* p) {
  const pestle_node_t *low = node_of(pestle_node_operand(q, 0),
                                     PESTLE_OP_SUBTRACT),
                      *high = node_of(pestle_node_operand(q, 1), PESTLE_OP_ADD);
  if (!low || !high ||
      !read_product(pestle_node_operand(low, 0), &p->first, &p->cosine) ||
      !read_product(pestle_node_operand(low, 1), &p->second, &p->sine)) {
    return false;
  }
  for (size_t i = 0; i < 2; ++i) {
    const pestle_node_t *a, *s, *b, *c;
    if (read_product(pestle_node_operand(high, i), &a, &s) &&
        read_product(pestle_node_operand(high, 1 - i), &b, &c) &&
        a == p->first && s == p->sine && b == p->second && c == p->cosine) {
      return true;
    }
  }
  return false;
}

// Half |number| of the last axis of |x|, and all of the others.
static bool is_half(const pestle_node_t* slice, const pestle_value_t* x,
                    int64_t number) {
  pestle_i64s_t from = PESTLE_NODE_I64S(slice, start_indices),
                to = PESTLE_NODE_I64S(slice, limit_indices),
                by = PESTLE_NODE_I64S(slice, strides);
  int32_t last = x->type->rank - 1;
  int64_t half = x->type->dims[last] / 2;
  if (pestle_node_operand(slice, 0) != x) return false;
  for (int32_t i = 0; i <= last; ++i) {
    int64_t begin = i == last ? number * half : 0;
    int64_t end = i == last ? begin + half : x->type->dims[i];
    if (from.data[i] != begin || to.data[i] != end || by.data[i] != 1)
      return false;
  }
  return true;
}

// How many lists of half a head's numbers |node| spreads over the heads of [batch, ..]: 1, or
// one for each element of the first axis; 0: it is something else.
static int64_t read_angles(const pestle_node_t* node) {
  const pestle_type_t *from = pestle_node_operand(node, 0)->type,
                      *to = node->results[0].type;
  pestle_i64s_t dims = PESTLE_NODE_I64S(node, broadcast_dimensions);
  int64_t half = to->dims[to->rank - 1], angles = 1;
  bool has_last = false;
  for (int32_t i = 0; i < from->rank; ++i) {
    if (from->dims[i] == 1) continue;
    if (dims.data[i] == to->rank - 1) {
      has_last = true;
    } else if (dims.data[i] == 0 && !has_last) {
      angles = from->dims[i];
    } else {
      return 0;
    }
  }
  return has_last && from->dims[from->rank - 1] == half ? angles : 0;
}

pestle_rotation_t pestle_pass_read_rotation(const pestle_value_t* q,
                                            int64_t lanes) {
  const pestle_rotation_t none = {NULL, NULL, NULL, 0};
  const pestle_type_t* type = q->type;
  int64_t depth = type->dims[3], half = depth / 2;
  const pestle_value_t* value = q;
  parts_t p;
  while (node_of(value, PESTLE_OP_RESHAPE) && has_one_use(value))
    value = pestle_node_operand(value->node, 0);
  const pestle_node_t* node = node_of(value, PESTLE_OP_CONCATENATE);
  if (!node || !has_one_use(value) || node->operand_count != 2 ||
      type->dtype != PESTLE_F32 || depth % (2 * lanes) ||
      PESTLE_NODE_I64(node, dimension) != value->type->rank - 1 ||
      value->type->dims[value->type->rank - 1] != depth ||
      !read_halves(node, &p)) {
    return none;
  }
  pestle_value_t* x = pestle_node_operand(p.first, 0);
  pestle_rotation_t r = {x, pestle_node_operand(p.cosine, 0),
                         pestle_node_operand(p.sine, 0), read_angles(p.cosine)};
  // The first axis of x is that of the sequences, where it has to be one.
  bool is_good = is_half(p.first, x, 0) && is_half(p.second, x, 1) &&
                 r.angles && r.angles == read_angles(p.sine) &&
                 pestle_type_count(r.cosine->type) == r.angles * half &&
                 (r.angles == 1 || (x->type->dims[0] == type->dims[0] &&
                                    r.angles == type->dims[0]));
  return is_good ? r : none;
}

pestle_value_t* pestle_pass_rotate(pestle_formula_t* f, pestle_value_t* x,
                                   pestle_value_t* cosine,
                                   pestle_value_t* sine) {
  const pestle_type_t* type = x->type;
  int64_t half = type->dims[3] / 2;
  const int64_t dims[4] = {type->dims[0], type->dims[1], type->dims[2], half},
                axes[2] = {0, 3};
  const pestle_i64s_t to = {axes, 2};
  pestle_value_t* a = pestle_f_slice_axis(f, x, 3, 0, half);
  pestle_value_t* b = pestle_f_slice_axis(f, x, 3, half, 2 * half);
  pestle_value_t* c = pestle_f_broadcast(f, cosine, 4, dims, to);
  pestle_value_t* s = pestle_f_broadcast(f, sine, 4, dims, to);
  pestle_value_t* ac = pestle_f_multiply(f, a, c);
  pestle_value_t* bs = pestle_f_multiply(f, b, s);
  pestle_value_t* as = pestle_f_multiply(f, a, s);
  pestle_value_t* bc = pestle_f_multiply(f, b, c);
  pestle_value_t* low = pestle_f_subtract(f, ac, bs);
  pestle_value_t* high = pestle_f_add(f, as, bc);
  pestle_value_t* parts[2] = {low, high};
  return pestle_f_concatenate(f, parts, 2, 3);
}
