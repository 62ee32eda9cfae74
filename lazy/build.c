// SPDX-License-Identifier: Apache-2.0
// The module that a key says. It is made only where no executable of the key is
// known.
#include "ir/copy.h"
#include "lazy/lazy.h"

typedef struct build_t {
  pestle_lazy_t* lazy;
  pestle_module_t* module;
  pestle_builder_t builder;
  pestle_arena_t arena;
  const uint32_t* key;  // behind the device
  const uint32_t* end;
  // By number: a leaf's argument, a node's first result.
  pestle_value_t** values;
  pestle_value_t*** parts;  // of bodies that were copied: their results
  size_t copied;            // how many the latest node has, if it is one
  size_t value_count, leaf_count, most_operands;
} build_t;

// The words of the entry at |at|.
static size_t entry_words(const uint32_t* at) {
  switch (*at & 0xff) {
    case PESTLE_KEY_LEAF:
      return 2 + 2 * (size_t)(at[1] >> 16);
    case PESTLE_KEY_NODE:
      return 3 + (size_t)at[1] + at[2];
    case PESTLE_KEY_GET:
      return 3;
    default:
      return 2 + (size_t)at[1];
  }
}

static void count(build_t* b) {
  for (const uint32_t* at = b->key; at < b->end; at += entry_words(at)) {
    uint32_t kind = *at & 0xff;
    if (kind == PESTLE_KEY_OUTPUTS) continue;
    ++b->value_count;
    if (kind == PESTLE_KEY_LEAF) ++b->leaf_count;
    if (kind == PESTLE_KEY_NODE && at[1] > b->most_operands) {
      b->most_operands = at[1];
    }
  }
}

static pestle_status_t add_function(build_t* b) {
  pestle_type_t* types =
      PESTLE_ARENA_ARRAY(&b->arena, pestle_type_t, b->leaf_count);
  b->values = PESTLE_ARENA_ARRAY(&b->arena, pestle_value_t*, b->value_count);
  b->parts = PESTLE_ARENA_ARRAY(&b->arena, pestle_value_t**, b->value_count);
  if (!types || !b->values || !b->parts) return PESTLE_OOM();
  size_t leaf = 0;
  for (const uint32_t* at = b->key; at < b->end; at += entry_words(at)) {
    if ((*at & 0xff) == PESTLE_KEY_LEAF) {
      pestle_words_get_type(at + 1, &types[leaf++]);
    }
  }
  pestle_function_t* function;
  PESTLE_TRY(pestle_module_add_function(b->module, "main", types, NULL,
                                        b->leaf_count, &function));
  b->builder = pestle_builder_make(function);
  leaf = 0;
  size_t number = 0;
  for (const uint32_t* at = b->key; at < b->end; at += entry_words(at)) {
    if ((*at & 0xff) == PESTLE_KEY_LEAF) {
      b->values[number] = pestle_function_argument(function, leaf++);
    }
    ++number;
  }
  return NULL;
}

static pestle_status_t copy_bodies(build_t* b, const pestle_node_parts_t* parts,
                                   pestle_region_t** out_regions) {
  for (size_t i = 0; i < parts->body_count; ++i) {
    pestle_module_t* body = pestle_body_module(b->lazy, parts->bodies[i]);
    pestle_copier_t copier;
    pestle_copier_init(b->lazy->allocator, b->builder, &copier);
    copier.foreign = true;
    pestle_status_t status = pestle_copier_region(
        &copier, pestle_module_entry(body)->body, &out_regions[i]);
    pestle_copier_deinit(&copier);
    PESTLE_TRY(status);
  }
  return NULL;
}

// The ops of a body of |values| to |builder|'s place; |out_results| becomes what they
// return.
static pestle_status_t copy_ops(build_t* b, pestle_builder_t builder,
                                const pestle_block_t* block,
                                pestle_value_t* const* values,
                                pestle_value_t** out_results) {
  pestle_copier_t copier;
  pestle_copier_init(b->lazy->allocator, builder, &copier);
  copier.foreign = true;
  pestle_status_t status = NULL;
  for (size_t i = 0; !status && i < block->argument_count; ++i)
    status = pestle_copier_set(&copier, block->arguments[i], values[i]);
  if (!status) status = pestle_copier_block(&copier, block);
  for (uint32_t i = 0; !status && i < block->last->operand_count; ++i) {
    out_results[i] =
        pestle_copier_get(&copier, pestle_node_operand(block->last, i));
  }
  pestle_copier_deinit(&copier);
  return status;
}

static const pestle_block_t* block_of(const build_t* b, uint32_t body_id) {
  return pestle_module_entry(pestle_body_module(b->lazy, body_id))->body->block;
}

// A body in the place of the node that has it.
static pestle_status_t copy_body(build_t* b, uint32_t body_id,
                                 pestle_value_t* const* values,
                                 pestle_value_t*** out_results) {
  const pestle_block_t* block = block_of(b, body_id);
  b->copied = block->last->operand_count;
  *out_results = PESTLE_ARENA_ARRAY(&b->arena, pestle_value_t*, b->copied);
  if (!*out_results) return PESTLE_OOM();
  return copy_ops(b, b->builder, block, values, *out_results);
}

// Regions of a case: they have no arguments, and read the values.
static pestle_status_t copy_branches(build_t* b,
                                     const pestle_node_parts_t* parts,
                                     pestle_value_t* const* values,
                                     pestle_region_t** out_regions) {
  for (size_t i = 0; i < parts->body_count; ++i) {
    const pestle_block_t* body = block_of(b, parts->bodies[i]);
    size_t count = body->last->operand_count;
    pestle_block_t* block;
    pestle_value_t** results =
        PESTLE_ARENA_ARRAY(&b->arena, pestle_value_t*, count);
    if (!results) return PESTLE_OOM();
    PESTLE_TRY(
        pestle_region_create(b->module, NULL, 0, &out_regions[i], &block));
    pestle_builder_t builder = {.module = b->module, .block = block};
    PESTLE_TRY(copy_ops(b, builder, body, values, results));
    PESTLE_TRY(pestle_op_return(&builder, results, count, NULL));
  }
  return NULL;
}

static bool are_scalars(pestle_value_t* const* values, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (values[i]->type->rank) return false;
  }
  return true;
}

static pestle_status_t build_node(build_t* b, const uint32_t* at,
                                  size_t number) {
  pestle_node_parts_t parts = {.attr_count = 0};
  const uint32_t* operands = at + 3;
  size_t operand_count = at[1];
  if (at[2]) {
    PESTLE_TRY(pestle_spec_read(&b->arena, operands + operand_count, &parts));
  }
  pestle_value_t** values =
      PESTLE_ARENA_ARRAY(&b->arena, pestle_value_t*, operand_count);
  pestle_region_t** regions =
      PESTLE_ARENA_ARRAY(&b->arena, pestle_region_t*, parts.body_count);
  if (!values || !regions) return PESTLE_OOM();
  for (size_t i = 0; i < operand_count; ++i)
    values[i] = b->values[operands[i]];
  // A map of scalars is the ops of its body: bodies of sorts and reductions, which
  // are of scalars, hold no others.
  bool is_copied =
      (*at >> 8) == PESTLE_OP_CALL ||
      ((*at >> 8) == PESTLE_OP_MAP && are_scalars(values, operand_count));
  if (is_copied) {
    PESTLE_TRY(copy_body(b, parts.bodies[0], values, &b->parts[number]));
    b->values[number] = b->parts[number][0];
    return NULL;
  }
  bool is_case = (*at >> 8) == PESTLE_OP_CASE;
  PESTLE_TRY(is_case ? copy_branches(b, &parts, values + 1, regions)
                     : copy_bodies(b, &parts, regions));
  pestle_node_spec_t spec = {.op = (pestle_op_t)(*at >> 8),
                             .operands = values,
                             .operand_count = is_case ? 1 : operand_count,
                             .attrs = parts.attrs,
                             .attr_count = parts.attr_count,
                             .regions = regions,
                             .region_count = parts.body_count,
                             .type = parts.type};
  pestle_node_t* node;
  PESTLE_TRY(pestle_node_create(&b->builder, &spec, &node));
  b->values[number] = pestle_node_result(node, 0);
  return NULL;
}

// Result |index| of what has |number|.
static pestle_value_t* part_of(const build_t* b, uint32_t number,
                               size_t index) {
  if (b->parts[number]) return b->parts[number][index];
  return index ? pestle_node_result(b->values[number]->node, index)
               : b->values[number];
}

// How many results each number has: an op of any number of them that is wanted gives
// all.
static size_t result_count(const uint32_t* words, const build_t* b,
                           uint32_t number) {
  uint32_t kind = *words & 0xff, op = *words >> 8;
  if (kind != PESTLE_KEY_NODE) return 1;
  return pestle_op_info((pestle_op_t)op)->results == 1
             ? 1
             : b->values[number]->node->result_count;
}

static pestle_status_t build_outputs(build_t* b, const uint32_t* at,
                                     const size_t* counts) {
  size_t total = 0, n = at[1];
  for (size_t i = 0; i < n; ++i)
    total += counts[at[2 + i]];
  pestle_value_t** results =
      PESTLE_ARENA_ARRAY(&b->arena, pestle_value_t*, total);
  if (!results) return PESTLE_OOM();
  size_t r = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < counts[at[2 + i]]; ++k)
      results[r++] = part_of(b, at[2 + i], k);
  }
  return pestle_op_return(&b->builder, results, total, NULL);
}

static pestle_status_t build(build_t* b) {
  count(b);
  PESTLE_TRY(add_function(b));
  size_t* counts = PESTLE_ARENA_ARRAY(&b->arena, size_t, b->value_count);
  if (!counts) return PESTLE_OOM();
  uint32_t number = 0;
  for (const uint32_t* at = b->key; at < b->end;
       at += entry_words(at), ++number) {
    uint32_t kind = *at & 0xff;
    if (kind == PESTLE_KEY_OUTPUTS) return build_outputs(b, at, counts);
    b->copied = 0;
    if (kind == PESTLE_KEY_NODE) {
      PESTLE_TRY(build_node(b, at, number));
    } else if (kind == PESTLE_KEY_GET) {
      b->values[number] = part_of(b, at[1], at[2]);
    }
    counts[number] = b->copied ? b->copied : result_count(at, b, number);
  }
  return PESTLE_ERROR(INTERNAL, "a key of arrays has no outputs");
}

pestle_status_t pestle_build_module(pestle_lazy_t* lazy, const uint32_t* key,
                                    size_t words,
                                    pestle_module_t** out_module) {
  build_t b = {.lazy = lazy, .key = key + 2, .end = key + words};
  PESTLE_TRY(pestle_module_create(lazy->context, "arrays", &b.module));
  pestle_arena_init(lazy->allocator, &b.arena);
  pestle_status_t status = build(&b);
  pestle_arena_deinit(&b.arena);
  if (status) {
    pestle_module_release(b.module);
    b.module = NULL;
  }
  *out_module = b.module;
  return status;
}
