// SPDX-License-Identifier: Apache-2.0
// Gives every value of the function and of the bodies in it a cell and every
// cell the interval in which it is live.
#include "base/fault.h"
#include "base/mem.h"
#include "compile/memory_planner.h"
#include "passes/fuse.h"

static void number_block(const pestle_block_t* block, uint64_t* position) {
  for (pestle_node_t* n = block->first; n; n = n->next) {
    uint64_t begin = (*position)++;
    if (pestle_pass_has_bodies(n)) {
      for (uint32_t r = 0; r < n->region_count; ++r) {
        number_block(pestle_node_body(n, r), position);
      }
      ++*position;
    }
    n->scratch = begin << 32 | (*position - 1);
  }
}

static const pestle_block_t* block_of(const pestle_value_t* value) {
  return value->node ? value->node->block : value->block;
}

// --- Values ---

static pestle_status_t add_value(pestle_planner_t* p, pestle_value_t* value,
                                 uint32_t cell, int64_t offset) {
  value->scratch = p->values.size;
  if (!pestle_vec_push(&p->values, (pestle_planned_t){value, cell, offset})) {
    return PESTLE_OOM();
  }
  return NULL;
}

static pestle_status_t add_cell(pestle_planner_t* p, pestle_value_t* value,
                                pestle_storage_t storage, uint32_t index,
                                int64_t position) {
  pestle_cell_t cell = {.root = value,
                        .storage = (uint8_t)storage,
                        .index = index,
                        .size = (int64_t)pestle_type_bytes(value->type),
                        .begin = position,
                        .end = position,
                        .merged_into = PESTLE_CELL_NONE};
  if (!pestle_vec_push(&p->cells, cell)) return PESTLE_OOM();
  return add_value(p, value, (uint32_t)p->cells.size - 1, 0);
}

// |value| lies |offset| bytes into |of|.
static pestle_status_t add_view(pestle_planner_t* p, pestle_value_t* value,
                                const pestle_value_t* of, int64_t offset) {
  const pestle_planned_t* from = &p->values.data[of->scratch];
  return add_value(p, value, from->cell, from->offset + offset);
}

static pestle_status_t add_block(pestle_planner_t* p, pestle_block_t* block);

// The state of a loop: one cell each, which the condition's and the body's
// arguments and the results share.
static pestle_status_t add_while(pestle_planner_t* p, pestle_node_t* node) {
  for (uint32_t i = 0; i < node->result_count; ++i) {
    pestle_value_t* result = &node->results[i];
    PESTLE_TRY(add_cell(p, result, PESTLE_STORAGE_ARENA, 0,
                        pestle_planner_begin(node)));
    p->cells.data[p->cells.size - 1].end = pestle_planner_end(node);
    for (uint32_t r = 0; r < node->region_count; ++r) {
      pestle_block_t* body = pestle_node_body(node, r);
      PESTLE_TRY(add_view(p, body->arguments[i], result, 0));
    }
  }
  for (uint32_t r = 0; r < node->region_count; ++r) {
    PESTLE_TRY(add_block(p, pestle_node_body(node, r)));
  }
  return NULL;
}

static pestle_status_t add_branches(pestle_planner_t* p, pestle_node_t* node) {
  for (uint32_t i = 0; i < node->result_count; ++i) {
    PESTLE_TRY(add_cell(p, &node->results[i], PESTLE_STORAGE_ARENA, 0,
                        pestle_planner_begin(node)));
    p->cells.data[p->cells.size - 1].end = pestle_planner_end(node);
  }
  for (uint32_t r = 0; r < node->region_count; ++r) {
    PESTLE_TRY(add_block(p, pestle_node_body(node, r)));
  }
  return NULL;
}

static pestle_status_t add_node(pestle_planner_t* p, pestle_node_t* node) {
  if (node->op == PESTLE_OP_WHILE) return add_while(p, node);
  if (pestle_pass_has_bodies(node)) return add_branches(p, node);
  if (pestle_fuse_is_view(node)) {
    for (uint32_t i = 0; i < node->result_count; ++i) {
      PESTLE_TRY(add_view(p, &node->results[i], pestle_node_operand(node, i),
                          pestle_fuse_view_offset(node)));
    }
    return NULL;
  }
  pestle_storage_t storage = pestle_pass_is_stored(node)
                                 ? PESTLE_STORAGE_CONSTANT
                                 : PESTLE_STORAGE_ARENA;
  for (uint32_t i = 0; i < node->result_count; ++i) {
    PESTLE_TRY(
        add_cell(p, &node->results[i], storage, 0, pestle_planner_begin(node)));
  }
  return NULL;
}

static pestle_status_t add_block(pestle_planner_t* p, pestle_block_t* block) {
  for (pestle_node_t* n = block->first; n; n = n->next) {
    PESTLE_TRY(add_node(p, n));
  }
  return NULL;
}

// --- Lifetimes ---

// The last position at which a use by |node| in |block| still reads |value|.
static int64_t last_read(const pestle_value_t* value,
                         const pestle_node_t* node) {
  int64_t last = pestle_planner_begin(node);
  const pestle_block_t* home = block_of(value);
  while (node->block != home) {
    node = node->block->region->owner;
    if (node->op == PESTLE_OP_WHILE) last = pestle_planner_end(node);
  }
  return last;
}

static void extend(const pestle_planner_t* p, const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_value_t* v = pestle_node_operand(node, i);
    pestle_cell_t* cell = pestle_planner_cell_of(p, v);
    int64_t last = last_read(v, node) - PESTLE_FAULT(short_lifetime);
    if (last > cell->end) cell->end = last;
  }
}

static void extend_block(const pestle_planner_t* p,
                         const pestle_block_t* block) {
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    extend(p, n);
    if (!pestle_pass_has_bodies(n)) continue;
    for (uint32_t r = 0; r < n->region_count; ++r) {
      extend_block(p, pestle_node_body(n, r));
    }
  }
}

// --- Collectives ---

static bool reads_result(const pestle_planner_t* p, const pestle_node_t* node,
                         const pestle_node_t* collective) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_cell_t* cell =
        pestle_planner_cell_of(p, pestle_node_operand(node, i));
    for (uint32_t r = 0; r < collective->result_count; ++r) {
      if (pestle_planner_cell_of(p, &collective->results[r]) == cell)
        return true;
    }
  }
  return false;
}

// The last position at which |node| may be under way: what waits for it is the first op
// that reads a result, or has bodies.
static int64_t under_way_until(const pestle_planner_t* p,
                               const pestle_node_t* node) {
  int64_t last = pestle_planner_begin(node);
  for (const pestle_node_t* n = node->next; n; n = n->next) {
    if (!pestle_fuse_is_view(n) &&
        (pestle_pass_has_bodies(n) || reads_result(p, n, node))) {
      break;
    }
    last = pestle_planner_begin(n);
  }
  return last;
}

static void keep(const pestle_planner_t* p, const pestle_value_t* value,
                 int64_t until) {
  pestle_cell_t* cell = pestle_planner_cell_of(p, value);
  if (cell->end < until) cell->end = until;
}

static void keep_collectives(const pestle_planner_t* p,
                             const pestle_block_t* block) {
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    for (uint32_t r = 0; pestle_pass_has_bodies(n) && r < n->region_count; ++r)
      keep_collectives(p, pestle_node_body(n, r));
    if (!pestle_pass_is_collective(n)) continue;
    int64_t until = under_way_until(p, n);
    for (uint32_t i = 0; i < n->operand_count; ++i)
      keep(p, pestle_node_operand(n, i), until);
    for (uint32_t r = 0; r < n->result_count; ++r)
      keep(p, &n->results[r], until);
  }
}

pestle_status_t pestle_planner_find_cells(pestle_planner_t* p) {
  pestle_block_t* entry = p->function->body->block;
  uint64_t position = 1;
  number_block(entry, &position);
  if (position >= UINT32_MAX) {
    return PESTLE_ERROR(UNSUPPORTED, "a function of more than 2^32 ops");
  }
  for (uint32_t i = 0; i < entry->argument_count; ++i) {
    PESTLE_TRY(add_cell(p, entry->arguments[i], PESTLE_STORAGE_INPUT, i, 0));
  }
  PESTLE_TRY(add_block(p, entry));
  extend_block(p, entry);
  if (p->wishes && p->wishes->overlaps) keep_collectives(p, entry);
  return NULL;
}
