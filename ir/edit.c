// SPDX-License-Identifier: Apache-2.0
// Use lists, the order of nodes, and walking. Nothing here allocates, so an
// edit cannot fail half-way.
#include "ir/internal.h"

// --- Uses ---

void pestle_use_link(pestle_use_t* use, pestle_value_t* value) {
  use->value = value;
  use->prev = NULL;
  use->next = value->uses;
  if (value->uses) value->uses->prev = use;
  value->uses = use;
  ++value->use_count;
}

static void unlink_use(pestle_use_t* use) {
  if (use->prev) {
    use->prev->next = use->next;
  } else {
    use->value->uses = use->next;
  }
  if (use->next) use->next->prev = use->prev;
  --use->value->use_count;
}

void pestle_node_set_operand(pestle_node_t* node, size_t index,
                             pestle_value_t* value) {
  pestle_use_t* use = &node->operands[index];
  unlink_use(use);
  pestle_use_link(use, value);
}

// --- Heirs ---

// Paths are halved on the way: a chain of a thousand ops that fall away one after
// the other is looked through once.
pestle_node_t* pestle_node_heir(pestle_node_t* node) {
  while (node->heir) {
    if (node->heir->heir) node->heir = node->heir->heir;
    node = node->heir;
  }
  return node;
}

void pestle_node_set_heir(pestle_node_t* node, pestle_node_t* heir) {
  pestle_node_t* last = pestle_node_heir(node);
  if (last != node && last->block) return;
  heir = pestle_node_heir(heir);
  if (heir != node) node->heir = heir;
}

static bool only_moves(const pestle_node_t* node) {
  return pestle_op_info((pestle_op_t)node->op)->fuse == PESTLE_FUSE_VIEW;
}

static bool same_location(const pestle_node_t* a, const pestle_node_t* b) {
  return a->loc.name == b->loc.name && a->loc.file == b->loc.file &&
         a->loc.line == b->loc.line && a->loc.column == b->loc.column;
}

// Who computes what |from| did where |to| takes its place: of a convolution in
// another layout with a transpose behind it that is the convolution.
static pestle_node_t* find_heir(const pestle_node_t* from, pestle_node_t* to) {
  while (only_moves(to) && !only_moves(from)) {
    pestle_node_t* source = to->operands[0].value->node;
    if (!source || !same_location(source, from)) break;
    to = source;
  }
  return to;
}

static bool is_unused(const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->result_count; ++i) {
    if (node->results[i].use_count) return false;
  }
  return true;
}

void pestle_value_replace_all_uses(pestle_value_t* from, pestle_value_t* to) {
  if (from == to) return;
  if (from->node && to->node) {
    pestle_node_set_heir(from->node, find_heir(from->node, to->node));
  }
  if (!from->uses) return;
  pestle_use_t* last = NULL;
  for (pestle_use_t* use = from->uses; use; use = use->next) {
    use->value = to;
    last = use;
  }
  last->next = to->uses;
  if (to->uses) to->uses->prev = last;
  to->uses = from->uses;
  to->use_count += from->use_count;
  from->uses = NULL;
  from->use_count = 0;
}

// --- Order ---

static bool has_bodies(const pestle_node_t* node) {
  return node->op == PESTLE_OP_WHILE || node->op == PESTLE_OP_IF ||
         node->op == PESTLE_OP_CASE || node->op == PESTLE_OP_SCAN;
}

void pestle_node_insert(pestle_node_t* node, pestle_block_t* block,
                        pestle_node_t* before) {
  block->body_count += has_bodies(node);
  node->block = block;
  node->next = before;
  node->prev = before ? before->prev : block->last;
  if (node->prev) {
    node->prev->next = node;
  } else {
    block->first = node;
  }
  if (before) {
    before->prev = node;
  } else {
    block->last = node;
  }
}

static void unlink_node(pestle_node_t* node) {
  pestle_block_t* block = node->block;
  block->body_count -= has_bodies(node);
  if (node->prev) {
    node->prev->next = node->next;
  } else {
    block->first = node->next;
  }
  if (node->next) {
    node->next->prev = node->prev;
  } else {
    block->last = node->prev;
  }
  node->prev = node->next = NULL;
  node->block = NULL;
}

void pestle_node_move(pestle_node_t* node, pestle_node_t* before) {
  if (node == before) return;
  pestle_block_t* block = before ? before->block : node->block;
  unlink_node(node);
  pestle_node_insert(node, block, before);
}

static void drop_operands(pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    unlink_use(&node->operands[i]);
  }
  node->operand_count = 0;
}

void pestle_region_discard(pestle_region_t* region) {
  // The walk needs the links of nodes alone, so operands may go as it passes.
  pestle_node_t* node = NULL;
  while ((node = pestle_region_next(region, node)))
    drop_operands(node);
  region->block->first = region->block->last = NULL;
  region->block->body_count = 0;
}

void pestle_node_erase(pestle_node_t* node) {
  for (uint32_t i = 0; i < node->region_count; ++i) {
    pestle_region_discard(node->regions[i]);
  }
  pestle_node_t* heir = pestle_node_heir(node);
  uint32_t count = node->operand_count;
  drop_operands(node);
  for (uint32_t i = 0; i < count && heir != node; ++i) {
    pestle_node_t* source = node->operands[i].value->node;
    if (source && is_unused(source)) pestle_node_set_heir(source, heir);
  }
  unlink_node(node);
}

// --- Loops ---

// Value |index| of the loop's arguments and results becomes |value|.
static void replace_carry(pestle_node_t* loop, uint32_t index,
                          pestle_value_t* value) {
  for (uint32_t r = 0; r < loop->region_count; ++r) {
    pestle_value_replace_all_uses(loop->regions[r]->block->arguments[index],
                                  value);
  }
  pestle_value_replace_all_uses(&loop->results[index], value);
}

static void move_use(pestle_node_t* node, uint32_t to, uint32_t from) {
  pestle_value_t* value = node->operands[from].value;
  if (to == from) return;
  unlink_use(&node->operands[from]);
  node->operands[to].user = node;
  pestle_use_link(&node->operands[to], value);
}

// Carry |from|, of which nothing stands at |to|, comes to stand there.
static void move_carry(pestle_node_t* loop, pestle_node_t* next, uint32_t to,
                       uint32_t from) {
  move_use(loop, to, from);
  move_use(next, to, from);
  if (to == from) return;
  for (uint32_t r = 0; r < loop->region_count; ++r) {
    pestle_value_t** arguments = loop->regions[r]->block->arguments;
    arguments[to] = arguments[from];
    arguments[to]->index = to;
  }
  pestle_value_t* source = &loop->results[from];
  loop->results[to].type = source->type;
  loop->results[to].name = source->name;
  pestle_value_replace_all_uses(source, &loop->results[to]);
}

uint32_t pestle_loop_drop_carries(pestle_node_t* loop, const bool* is_kept) {
  pestle_node_t* next = loop->regions[1]->block->last;
  uint32_t count = loop->result_count, kept = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (!is_kept[i]) replace_carry(loop, i, loop->operands[i].value);
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (is_kept[i]) {
      move_carry(loop, next, kept++, i);
    } else {
      unlink_use(&loop->operands[i]);
      unlink_use(&next->operands[i]);
    }
  }
  loop->operand_count = loop->result_count = next->operand_count = kept;
  for (uint32_t r = 0; r < loop->region_count; ++r)
    loop->regions[r]->block->argument_count = kept;
  return count - kept;
}

// --- Walking ---

// The first node of |owner|'s regions from the |index|-th on.
static pestle_node_t* first_in_regions(const pestle_node_t* owner,
                                       uint32_t index) {
  for (; index < owner->region_count; ++index) {
    pestle_node_t* first = owner->regions[index]->block->first;
    if (first) return first;
  }
  return NULL;
}

pestle_node_t* pestle_region_next(const pestle_region_t* root,
                                  const pestle_node_t* node) {
  if (!node) return root->block->first;
  pestle_node_t* inside = first_in_regions(node, 0);
  if (inside) return inside;
  for (;;) {
    if (node->next) return node->next;
    const pestle_region_t* region = node->block->region;
    if (region == root) return NULL;
    node = region->owner;
    inside = first_in_regions(node, region->index + 1);
    if (inside) return inside;
  }
}

// --- Builders ---

pestle_builder_t pestle_builder_make(pestle_function_t* function) {
  if (!function) return (pestle_builder_t){0};
  return (pestle_builder_t){.module = function->module,
                            .block = function->body->block};
}

pestle_builder_t pestle_builder_before(pestle_node_t* node) {
  return (pestle_builder_t){.module = node->block->region->module,
                            .block = node->block,
                            .before = node,
                            .loc = node->loc};
}
