// SPDX-License-Identifier: Apache-2.0
// Lets a loop change its state where it lies, through any chain of ops that may
// begin over an operand: updates, elementwise fusions, inner loops, branches.
//
//   while(%s) ... do {
//     %a = dynamic_update_slice %s, ...      all in the cell of %s: nobody reads %s
//     %b = case %p { return %a }             after %a was begun, nor %a after a
//                  { %c = scatter %a, ...    branch has begun %c
//                    return %c }
//     return %b }
//
// A chain is looked for from its end, what the body returns, to its beginning.
#include "base/mem.h"
#include "compile/memory_planner.h"
#include "passes/fuse.h"

// How many values a search looks at: fusions of several operands branch it.
enum { BUDGET = 256 };

// A search, and the values found so far that are to lie in the target's cell.
typedef struct chain_t {
  const pestle_planner_t* p;
  PESTLE_VEC(const pestle_value_t*) values;
  int budget;
  bool failed;  // out of memory
} chain_t;

static const pestle_block_t* block_of(const pestle_value_t* value) {
  return value->node ? value->node->block : value->block;
}

// The op of |block| that |node| is or lies in; NULL: it lies elsewhere.
static const pestle_node_t* ancestor_in(const pestle_node_t* node,
                                        const pestle_block_t* block) {
  while (node && node->block != block)
    node = node->block->region->owner;
  return node;
}

// Whether |node|, which begins over |value|, and what comes behind it in its
// block leave |value| unread. What other branches read is no matter here.
static bool reads_no_more(const pestle_node_t* node,
                          const pestle_value_t* value) {
  for (const pestle_use_t* u = value->uses; u; u = u->next) {
    // A view from around the block may be read within it.
    for (uint32_t i = 0;
         pestle_fuse_is_view(u->user) && i < u->user->result_count; ++i) {
      if (!reads_no_more(node, &u->user->results[i])) return false;
    }
    const pestle_node_t* at = ancestor_in(u->user, node->block);
    if (!at) continue;
    if (at == node) {
      // A loop reads its state by its arguments; branches are looked at alone.
      if (u->user != node && node->op == PESTLE_OP_WHILE) return false;
      continue;
    }
    if (pestle_planner_begin(at) > pestle_planner_begin(node)) return false;
  }
  return true;
}

// What |value| is a view of: whoever reads that, or another view, reads |value|.
static const pestle_value_t* base_of(const pestle_value_t* value) {
  while (value->node && pestle_fuse_is_view(value->node))
    value = pestle_node_operand(value->node, value->index);
  return value;
}

static bool lies_alone(const pestle_planner_t* p, const pestle_value_t* value) {
  const pestle_cell_t* cell = pestle_planner_cell_of(p, value);
  return cell->root == value && cell->storage == PESTLE_STORAGE_ARENA;
}

static bool reaches(chain_t* c, const pestle_value_t* value,
                    const pestle_value_t* target);

// The value from outside of |block| over which its result |index| may be made.
static const pestle_value_t* source_of(const pestle_block_t* block,
                                       uint32_t index) {
  const pestle_value_t* value = pestle_node_operand(block->last, index);
  while (value->node && value->node->block == block) {
    const pestle_node_t* n = value->node;
    bool begins = pestle_fuse_is_view(n) || n->op == PESTLE_OP_WHILE ||
                  value->index < pestle_pass_updates(n);
    if (!begins) return NULL;
    value = pestle_node_operand(n, value->index);
  }
  return value;
}

// One branch at least says what the others must have as well.
static const pestle_value_t* source_of_branches(const pestle_node_t* node,
                                                uint32_t index) {
  const pestle_value_t* source = NULL;
  for (uint32_t r = 0; r < node->region_count && !source; ++r) {
    source = source_of(pestle_node_body(node, r), index);
    if (source && pestle_value_is_stored(source)) source = NULL;
  }
  return source;
}

static bool branches_reach(chain_t* c, const pestle_node_t* node,
                           uint32_t index, const pestle_value_t* source) {
  for (uint32_t r = 0; r < node->region_count; ++r) {
    const pestle_block_t* block = pestle_node_body(node, r);
    if (!reaches(c, pestle_node_operand(block->last, index), source))
      return false;
  }
  return true;
}

static bool passes_on(chain_t* c, const pestle_node_t* node, uint32_t index,
                      uint32_t operand, const pestle_value_t* target) {
  const pestle_value_t* from = pestle_node_operand(node, operand);
  return pestle_planner_begins_over(c->p, node, index, operand) &&
         reads_no_more(node, base_of(from)) && reaches(c, from, target);
}

// Whether result |index| of |node| may lie where |target| does.
static bool node_reaches(chain_t* c, const pestle_node_t* node, uint32_t index,
                         const pestle_value_t* target) {
  if (node->op == PESTLE_OP_IF || node->op == PESTLE_OP_CASE) {
    const pestle_value_t* source = source_of_branches(node, index);
    return source && reads_no_more(node, base_of(source)) &&
           branches_reach(c, node, index, source) && reaches(c, source, target);
  }
  if (node->op != PESTLE_OP_FUSION && node->op != PESTLE_OP_CUSTOM_CALL)
    return index < node->operand_count &&
           passes_on(c, node, index, index, target);
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (passes_on(c, node, index, i, target)) return true;
  }
  return false;
}

static bool reaches(chain_t* c, const pestle_value_t* value,
                    const pestle_value_t* target) {
  size_t found = c->values.size;
  if (value == target) return true;
  if (!value->node || --c->budget < 0) return false;
  if (pestle_type_bytes(value->type) != pestle_type_bytes(target->type))
    return false;
  if (pestle_fuse_is_view(value->node)) {
    // It lies where its source does.
    return reaches(c, pestle_node_operand(value->node, value->index), target);
  }
  if (!lies_alone(c->p, value)) return false;
  if (!pestle_vec_push(&c->values, value)) c->failed = true;
  if (!c->failed && node_reaches(c, value->node, value->index, target))
    return true;
  c->values.size = found;
  return false;
}

// What was found goes on in the cell of |target|.
static void merge_all(pestle_planner_t* p, const chain_t* c,
                      const pestle_value_t* target) {
  for (size_t i = 0; i < c->values.size; ++i)
    pestle_planner_merge(p, target, c->values.data[i]);
}

static void merge_state(pestle_planner_t* p, const pestle_node_t* loop,
                        uint32_t index, chain_t* c) {
  const pestle_block_t* body = pestle_node_body(loop, 1);
  const pestle_value_t* next = pestle_node_operand(body->last, index);
  const pestle_value_t* state = body->arguments[index];
  c->values.size = 0;
  c->budget = BUDGET;
  if (block_of(next) == body && reaches(c, next, state)) merge_all(p, c, state);
}

// A result of branches lies where the value does that each of them changes or
// hands on, if the branches are the last to read it.
static void merge_branches(pestle_planner_t* p, const pestle_node_t* node,
                           uint32_t index, chain_t* c) {
  const pestle_value_t* source = source_of_branches(node, index);
  c->values.size = 0;
  c->budget = BUDGET;
  if (!source || !lies_alone(p, &node->results[index])) return;
  const pestle_cell_t* cell = pestle_planner_cell_of(p, source);
  int64_t end = pestle_planner_end(node);
  // So nobody reads it behind the branches. A view is never larger than what it is of: a
  // result as large as the cell begins where that does.
  if (cell->storage != PESTLE_STORAGE_ARENA || cell->end > end ||
      cell->size != (int64_t)pestle_type_bytes(node->results[index].type)) {
    return;
  }
  if (!pestle_vec_push(&c->values, &node->results[index])) c->failed = true;
  if (branches_reach(c, node, index, source)) merge_all(p, c, source);
}

pestle_status_t pestle_planner_chains(pestle_planner_t* p,
                                      const pestle_node_t* node) {
  chain_t c = {.p = p};
  pestle_vec_init(&c.values, p->allocator);
  for (uint32_t i = 0; i < node->result_count && !c.failed; ++i) {
    if (node->op == PESTLE_OP_WHILE) {
      merge_state(p, node, i, &c);
    } else {
      merge_branches(p, node, i, &c);
    }
  }
  pestle_vec_deinit(&c.values);
  return c.failed ? PESTLE_OOM() : NULL;
}

// --- What branches make ---
//
//   if { %a = .. return %a } else { %b = .. return %b }
//
// %a and %b are made where the result lies, whose place is nobody else's from before the
// first branch on. That is decided when all within the branches have their places: what
// lies in the place of a value from around the if is not moved, since the other branch may
// read that.

// Whether |value|, which a branch of what begins at |begin| returns, was made in the
// branch, as was what else lies in its place, all of which it takes.
static bool is_made_in_branch(const pestle_planner_t* p,
                              const pestle_value_t* value, int64_t begin) {
  const pestle_cell_t* cell = pestle_planner_cell_of(p, value);
  // Places of loops may take turns.
  return cell->begin > begin && cell->storage == PESTLE_STORAGE_ARENA &&
         cell->root->node->op != PESTLE_OP_WHILE &&
         pestle_planner_is_whole(p, value);
}

void pestle_planner_branches(pestle_planner_t* p, const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->result_count; ++i) {
    const pestle_value_t* result = &node->results[i];
    if (!lies_alone(p, result)) continue;
    int64_t begin = pestle_planner_cell_of(p, result)->begin;
    for (uint32_t r = 0; r < node->region_count; ++r) {
      const pestle_block_t* block = pestle_node_body(node, r);
      const pestle_value_t* value = pestle_node_operand(block->last, i);
      if (is_made_in_branch(p, value, begin))
        pestle_planner_merge(p, result, value);
    }
  }
}

// --- Places that take turns ---
//
//   while(%s) do { %n = roll %s; return %n }
//
// %n cannot lie where %s does. Instead of copying it there, steps.c writes the body
// twice, the second time with the two places changed for each other. So both must be
// there during the whole loop.

// Less is copied, which costs less than steps that are there twice: but not where a copy is
// launched, as on GPUs. There it is one number that is.
enum { LEAST_ALTERNATING = 16 * 1024, LEAST_LAUNCHED = 64 };

static int64_t least_alternating(const pestle_planner_t* p) {
  return p->wishes && p->wishes->copies_wait ? LEAST_LAUNCHED
                                             : LEAST_ALTERNATING;
}

static bool has_loops(const pestle_block_t* block) {
  uint32_t left = block->body_count;
  for (const pestle_node_t* n = block->first; left; n = n->next) {
    if (!pestle_pass_has_bodies(n)) continue;
    --left;
    if (n->op == PESTLE_OP_WHILE) return true;
    for (uint32_t r = 0; r < n->region_count; ++r) {
      if (has_loops(pestle_node_body(n, r))) return true;
    }
  }
  return false;
}

// Whether |next|, which the body returns, is all of a place that was made in the body. A
// place that takes turns already begins with the loop, as do those of its state.
static bool may_alternate(const pestle_planner_t* p, const pestle_node_t* loop,
                          const pestle_value_t* next) {
  const pestle_cell_t* from = pestle_planner_cell_of(p, next);
  return (int64_t)pestle_type_bytes(next->type) >= least_alternating(p) &&
         from->storage == PESTLE_STORAGE_ARENA &&
         from->begin > pestle_planner_begin(loop) &&
         pestle_planner_is_whole(p, next);
}

void pestle_planner_alternate(pestle_planner_t* p, const pestle_node_t* loop) {
  const pestle_block_t* body = pestle_node_body(loop, 1);
  if (has_loops(body)) return;
  for (uint32_t i = 0; i < loop->result_count; ++i) {
    const pestle_value_t* next = pestle_node_operand(body->last, i);
    if (!may_alternate(p, loop, next)) continue;
    pestle_cell_t* cell = pestle_planner_cell_of(p, next);
    cell->alternates = i + 1;
    cell->begin = pestle_planner_begin(loop);
    cell->end = pestle_planner_end(loop);
  }
}
