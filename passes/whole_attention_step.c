// SPDX-License-Identifier: Apache-2.0
// Attention of one new token with what stands around it in a decoder's layer: its key and its
// value are written to the caches, and both the key and the queries may be made by views and
// elementwise ops, as angles are. A target whose lanes run side by side makes all of that in
// one kernel (codegen/direct/direct_cached_attention_lanes.c): groups that share keys need not
// wait for the row that one of them writes, since each makes it for itself.
//
//   %k2 = dynamic_update_slice %k, %new_key, %past;  %v2 = .. %v, %new_value, ..
//   %y = pestle.attention(%q, %k2, %v2, %bias)
//   ->
//   %k2, %v2, %y = pestle.fusion(%k, %v, %past, ..) { all of this }   // "cached_step"
//
// The first two results begin as the first two operands (pestle_pass_updates()).
#include "passes/whole_attention.h"

enum { MOST_NODES = 48, MOST_INPUTS = 24, MOST_WORK = 96 };

typedef struct step_t {
  pestle_node_t* attention;
  pestle_node_t* writes[2];          // of the key and of the value
  pestle_node_t* nodes[MOST_NODES];  // that the group has copies of, in order
  pestle_value_t* inputs[MOST_INPUTS];
  size_t node_count, input_count;
} step_t;

// --- The rows that are written ---

// What a number, or one for each sequence, is a reshape or another type of.
static const pestle_value_t* number_of(const pestle_value_t* value) {
  for (const pestle_node_t* n; (n = value->node);) {
    bool is_view = n->op == PESTLE_OP_RESHAPE || n->op == PESTLE_OP_CONVERT ||
                   n->op == PESTLE_OP_BROADCAST_IN_DIM;
    const pestle_value_t* from = is_view ? pestle_node_operand(n, 0) : NULL;
    if (!from ||
        pestle_type_count(from->type) != pestle_type_count(value->type) ||
        (from->type->dtype != PESTLE_I64 && from->type->dtype != PESTLE_I32)) {
      break;
    }
    value = from;
  }
  return value;
}

static bool is_at(const pestle_value_t* index, const pestle_value_t* past) {
  pestle_dtype_t dtype = index->type->dtype;
  return pestle_type_count(index->type) == pestle_type_count(past->type) &&
         (dtype == PESTLE_I64 || dtype == PESTLE_I32) &&
         number_of(index) == number_of(past);
}

static bool is_zero(const pestle_value_t* value) {
  int64_t number;
  return pestle_pass_splat_i64(value, &number) && number == 0;
}

static bool dims_are(pestle_i64s_t dims, size_t count, int64_t a, int64_t b) {
  return dims.count == count && (count < 1 || dims.data[0] == a) &&
         (count < 2 || dims.data[1] == b);
}

// Row |past| of each matrix of [sequences, shared, most, width].
static bool is_scatter(const pestle_node_t* node, const pestle_value_t* past) {
  pestle_block_t* body = pestle_node_body(node, 0);
  if (node->operand_count != 3 || body->first != body->last ||
      pestle_node_operand(body->last, 0) != body->arguments[1]) {
    return false;
  }
  pestle_i64s_t batching = PESTLE_NODE_I64S(node, input_batching_dims);
  return dims_are(PESTLE_NODE_I64S(node, update_window_dims), 2, 1, 3) &&
         dims_are(PESTLE_NODE_I64S(node, scatter_dims_to_operand_dims), 1, 2,
                  0) &&
         (batching.count == 0
              ? pestle_node_operand(node, 0)->type->dims[0] == 1 &&
                    dims_are(PESTLE_NODE_I64S(node, inserted_window_dims), 2, 0,
                             2)
              : dims_are(batching, 1, 0, 0) &&
                    dims_are(
                        PESTLE_NODE_I64S(node, scatter_indices_batching_dims),
                        1, 0, 0) &&
                    dims_are(PESTLE_NODE_I64S(node, inserted_window_dims), 1, 2,
                             0)) &&
         is_at(pestle_node_operand(node, 1), past);
}

static bool is_update(const pestle_node_t* node, const pestle_value_t* past) {
  return node->operand_count == 6 && is_zero(pestle_node_operand(node, 2)) &&
         is_zero(pestle_node_operand(node, 3)) &&
         is_at(pestle_node_operand(node, 4), past) &&
         is_zero(pestle_node_operand(node, 5));
}

static pestle_value_t* row_of(const pestle_node_t* write) {
  return pestle_node_operand(write, write->op == PESTLE_OP_SCATTER ? 2 : 1);
}

// The node that writes the token's row to |cache|, which the attention alone reads.
static pestle_node_t* find_write(const step_t* s, pestle_value_t* cache,
                                 const pestle_value_t* past) {
  pestle_node_t* node = cache->node;
  if (!node || node->block != s->attention->block) return NULL;
  bool is_one = node->op == PESTLE_OP_SCATTER ? is_scatter(node, past)
                : node->op == PESTLE_OP_DYNAMIC_UPDATE_SLICE
                    ? is_update(node, past)
                    : false;
  if (!is_one) return NULL;
  const pestle_type_t *row = row_of(node)->type, *type = cache->type;
  if (row->rank != 4 || row->dims[0] != type->dims[0] ||
      row->dims[1] != type->dims[1] || row->dims[2] != 1 ||
      row->dims[3] != type->dims[3]) {
    return NULL;
  }
  for (const pestle_use_t* u = cache->uses; u; u = u->next) {
    if (u->user != s->attention && u->user != node->block->last) return NULL;
  }
  return node;
}

// --- What makes the rows ---

static bool is_maker(const step_t* s, const pestle_value_t* value) {
  const pestle_node_t* node = value->node;
  if (!node || node->block != s->attention->block) return false;
  pestle_dtype_t dtype = value->type->dtype;
  if (dtype != PESTLE_F32 && dtype != PESTLE_F16 && dtype != PESTLE_BF16)
    return false;
  if (node->op == PESTLE_OP_CONSTANT) return PESTLE_NODE_ELEMENTS(node)->splat;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    pestle_dtype_t from = pestle_node_operand(node, i)->type->dtype;
    if (!pestle_dtype_is(from, PESTLE_KIND_FLOAT)) return false;
  }
  switch ((int)node->op) {
    case PESTLE_OP_RESHAPE:
    case PESTLE_OP_TRANSPOSE:
    case PESTLE_OP_BROADCAST_IN_DIM:
    case PESTLE_OP_SLICE:
    case PESTLE_OP_CONCATENATE:
    case PESTLE_OP_CONVERT:
    case PESTLE_OP_ADD:
    case PESTLE_OP_SUBTRACT:
    case PESTLE_OP_MULTIPLY:
    case PESTLE_OP_NEGATE:
      return true;
  }
  return false;
}

// Ops that an element takes; more than |budget|: no matter how many.
static int work_of(const step_t* s, const pestle_value_t* value, int budget) {
  int work = 1;
  if (!is_maker(s, value)) return work;
  for (uint32_t i = 0; i < value->node->operand_count && work <= budget; ++i)
    work += work_of(s, pestle_node_operand(value->node, i), budget - work);
  return work;
}

static bool add_input(step_t* s, pestle_value_t* value) {
  for (size_t i = 0; i < s->input_count; ++i) {
    if (s->inputs[i] == value) return true;
  }
  if (s->input_count == MOST_INPUTS) return false;
  s->inputs[s->input_count++] = value;
  return true;
}

static bool collect(step_t* s, pestle_value_t* value) {
  if (!is_maker(s, value)) return add_input(s, value);
  for (size_t i = 0; i < s->node_count; ++i) {
    if (s->nodes[i] == value->node) return true;
  }
  for (uint32_t i = 0; i < value->node->operand_count; ++i) {
    if (!collect(s, pestle_node_operand(value->node, i))) return false;
  }
  if (s->node_count == MOST_NODES) return false;
  s->nodes[s->node_count++] = value->node;
  return true;
}

static bool add_row(step_t* s, pestle_value_t* value) {
  return work_of(s, value, MOST_WORK) > MOST_WORK ? add_input(s, value)
                                                  : collect(s, value);
}

static bool read_step(step_t* s, pestle_value_t* past) {
  for (int i = 0; i < 2; ++i) {
    s->writes[i] =
        find_write(s, pestle_node_operand(s->attention, 1 + (uint32_t)i), past);
    if (!s->writes[i]) return false;
    add_input(s, pestle_node_operand(s->writes[i], 0));
  }
  // Two caches, of which nothing else is read.
  if (s->writes[0] == s->writes[1] || s->input_count != 2 ||
      s->writes[0]->op != s->writes[1]->op) {
    return false;
  }
  if (!add_input(s, past)) return false;
  for (int i = 0; i < 2; ++i) {
    const pestle_node_t* write = s->writes[i];
    for (uint32_t o = 1; o < write->operand_count; ++o) {
      pestle_value_t* value = pestle_node_operand(write, o);
      bool is_good =
          value == row_of(write) ? add_row(s, value) : add_input(s, value);
      if (!is_good) return false;
    }
  }
  if (!add_row(s, pestle_node_operand(s->attention, 0))) return false;
  for (size_t i = 0; i < s->node_count; ++i) {
    for (uint32_t o = 0; o < s->nodes[i]->operand_count; ++o) {
      const pestle_value_t* value = pestle_node_operand(s->nodes[i], o);
      if (value == s->inputs[0] || value == s->inputs[1]) return false;
    }
  }
  return true;
}

// --- The group ---

static pestle_status_t fill(const step_t* s, pestle_copier_t* copier) {
  pestle_builder_t* inside = &copier->builder;
  pestle_value_t *argument, *x[4], *results[3];
  for (size_t i = 0; i < s->input_count; ++i) {
    PESTLE_TRY(pestle_block_add_argument(inside->module, inside->block,
                                         s->inputs[i]->type, &argument));
    PESTLE_TRY(pestle_copier_set(copier, s->inputs[i], argument));
  }
  for (size_t i = 0; i < s->node_count; ++i) {
    pestle_node_t* copy;
    PESTLE_TRY(pestle_copier_node(copier, s->nodes[i], &copy));
  }
  for (int i = 0; i < 2; ++i) {
    pestle_node_t* copy;
    PESTLE_TRY(pestle_copier_node(copier, s->writes[i], &copy));
    results[i] = x[1 + i] = &copy->results[0];
  }
  x[0] = pestle_copier_get(copier, pestle_node_operand(s->attention, 0));
  x[3] = pestle_copier_get(copier, s->inputs[2]);
  PESTLE_TRY(pestle_pass_build_cached(inside, s->attention, 1, x, &results[2]));
  return pestle_op_return(inside, results, 3, NULL);
}

static pestle_status_t make_group(const pestle_pass_context_t* ctx,
                                  const step_t* s, pestle_node_t** out_group) {
  pestle_builder_t at = pestle_builder_before(s->attention);
  pestle_builder_t inside = {.module = at.module, .loc = s->attention->loc};
  pestle_region_t* region;
  pestle_copier_t copier;
  PESTLE_TRY(
      pestle_region_create(inside.module, NULL, 0, &region, &inside.block));
  pestle_copier_init(pestle_context_allocator(ctx->context), inside, &copier);
  pestle_status_t status = fill(s, &copier);
  pestle_copier_deinit(&copier);
  if (status) {
    pestle_region_discard(region);
    return status;
  }
  return pestle_pass_make_group(&at, PESTLE_CACHED_STEP, s->inputs,
                                s->input_count, region, out_group);
}

pestle_status_t pestle_pass_cached_step(const pestle_pass_context_t* ctx,
                                        pestle_node_t* node,
                                        pestle_value_t* past, bool* out_done) {
  step_t s = {.attention = node};
  pestle_node_t* group;
  *out_done = false;
  if (!read_step(&s, past)) return NULL;
  PESTLE_TRY(make_group(ctx, &s, &group));
  pestle_node_t* old[3] = {s.writes[0], s.writes[1], node};
  for (int i = 0; i < 3; ++i)
    pestle_value_replace_all_uses(&old[i]->results[0], &group->results[i]);
  for (int i = 2; i >= 0; --i) {
    pestle_node_set_heir(old[i], group);
    pestle_node_erase(old[i]);
  }
  // Readers stand behind what they read.
  for (size_t i = s.node_count; i-- > 0;) {
    if (!s.nodes[i]->results[0].uses) pestle_node_erase(s.nodes[i]);
  }
  *out_done = true;
  return NULL;
}
