// SPDX-License-Identifier: Apache-2.0
// Runs a fused module with contents instead of numbers: every write of a value
// labels the bytes of its placement with a new content, every read must find
// there the content that it expects. Loops run twice, both branches of an if
// run from the same state. Shares nothing with the planner.
#ifndef PESTLE_TESTS_UNIT_COMPILE_MEMORY_PLAN_CHECKER_H_
#define PESTLE_TESTS_UNIT_COMPILE_MEMORY_PLAN_CHECKER_H_

#include "../passes/passes_test.h"
#include "compile/memory_planner.h"

typedef struct checker_t {
  const pestle_memory_plan_t* plan;
  uint32_t** bytes;  // contents by space: arena, inputs, outputs
  size_t* sizes;
  size_t spaces;
  uint32_t* contents;  // by value
  uint32_t next;
  size_t inputs;
  bool failed;
} checker_t;

static inline const pestle_placement_t* check_at(const checker_t* c,
                                                 const pestle_value_t* v) {
  assert_true(v->scratch < c->plan->count);
  return &c->plan->placements[v->scratch];
}

// SIZE_MAX: constants, which nobody may write.
static inline size_t check_space(const checker_t* c,
                                 const pestle_placement_t* at) {
  if (at->storage == PESTLE_STORAGE_ARENA) return 0;
  if (at->storage == PESTLE_STORAGE_INPUT) return 1 + at->index;
  if (at->storage == PESTLE_STORAGE_OUTPUT) return 1 + c->inputs + at->index;
  return SIZE_MAX;
}

static inline void check_write(checker_t* c, const pestle_value_t* v,
                               uint32_t content) {
  const pestle_placement_t* at = check_at(c, v);
  size_t space = check_space(c, at);
  c->contents[v->scratch] = content;
  if (space == SIZE_MAX) return;
  assert_true(space < c->spaces);
  assert_int_equal(at->offset % (at->root == v ? 64 : 1), 0);
  assert_true((size_t)(at->offset + at->size) <= c->sizes[space]);
  for (int64_t i = 0; i < at->size; ++i) {
    c->bytes[space][at->offset + i] = content;
  }
}

static inline void check_read(checker_t* c, const pestle_value_t* v) {
  const pestle_placement_t* at = check_at(c, v);
  size_t space = check_space(c, at);
  if (space == SIZE_MAX) return;
  for (int64_t i = 0; i < at->size && !c->failed; ++i) {
    if (c->bytes[space][at->offset + i] == c->contents[v->scratch]) continue;
    print_error("value #%llu (%s) was overwritten at byte %lld\n",
                (unsigned long long)v->scratch, v->name ? v->name : "",
                (long long)i);
    c->failed = true;
  }
}

static inline bool check_overlaps(const checker_t* c, const pestle_value_t* a,
                                  const pestle_value_t* b) {
  const pestle_placement_t *x = check_at(c, a), *y = check_at(c, b);
  return check_space(c, x) != SIZE_MAX &&
         check_space(c, x) == check_space(c, y) && x->size && y->size &&
         x->offset < y->offset + y->size && y->offset < x->offset + x->size;
}

static inline void check_block(checker_t* c, const pestle_block_t* block);

static inline void check_fusion(checker_t* c, const pestle_node_t* n) {
  for (uint32_t i = 0; i < n->operand_count; ++i) {
    const pestle_value_t* operand = pestle_node_operand(n, i);
    check_read(c, operand);
    for (uint32_t r = 0; r < n->result_count; ++r) {
      if (!check_overlaps(c, operand, &n->results[r])) continue;
      bool in_place =
          pestle_planner_may_overwrite(n, i) &&
          check_at(c, operand)->offset == check_at(c, &n->results[r])->offset;
      if (!in_place) print_error("a result lies over an operand\n");
      c->failed = c->failed || !in_place;
    }
  }
  for (uint32_t r = 0; r < n->result_count; ++r) {
    check_write(c, &n->results[r], c->next++);
  }
}

// An op that changes operand i into result i, where it lies or in a copy of it.
static inline void check_update(checker_t* c, const pestle_node_t* n) {
  for (uint32_t i = 0; i < n->operand_count; ++i) {
    const pestle_value_t* operand = pestle_node_operand(n, i);
    check_read(c, operand);
    for (uint32_t r = 0; r < n->result_count; ++r) {
      bool same =
          check_at(c, operand)->offset == check_at(c, &n->results[r])->offset;
      if (!check_overlaps(c, operand, &n->results[r]) || (i == r && same))
        continue;
      print_error("an updated operand lies over another\n");
      c->failed = true;
    }
  }
  for (uint32_t r = 0; r < n->result_count; ++r)
    check_write(c, &n->results[r], c->next++);
}

static inline uint32_t* check_save(const checker_t* c, size_t space) {
  size_t size = (c->sizes[space] + 1) * sizeof(uint32_t);
  uint32_t* copy = malloc(size);
  memcpy(copy, c->bytes[space], size);
  return copy;
}

// Reads all, then writes all: what the copies at the end of a trip must do.
static inline void check_copy(checker_t* c, pestle_value_t* const* from,
                              const pestle_use_t* uses,
                              const pestle_value_t* to, size_t count) {
  for (size_t i = 0; i < count; ++i)
    check_read(c, from ? from[i] : uses[i].value);
  for (size_t i = 0; i < count; ++i)
    check_write(c, &to[i], c->next++);
}

static inline void check_while(checker_t* c, const pestle_node_t* n) {
  const pestle_block_t* blocks[2] = {pestle_node_body(n, 0),
                                     pestle_node_body(n, 1)};
  check_copy(c, NULL, n->operands, n->results, n->result_count);
  for (int trip = 0; trip < 3; ++trip) {
    for (int r = 0; r < 2; ++r) {
      for (uint32_t i = 0; i < n->result_count; ++i) {
        const pestle_value_t* argument = blocks[r]->arguments[i];
        assert_true(check_at(c, argument)->offset ==
                    check_at(c, &n->results[i])->offset);
        c->contents[argument->scratch] = c->contents[n->results[i].scratch];
      }
      check_block(c, blocks[r]);
      if (r == 0 && trip == 2) return;
    }
    check_copy(c, NULL, blocks[1]->last->operands, n->results, n->result_count);
  }
}

static inline void check_if(checker_t* c, const pestle_node_t* n) {
  uint32_t** before = calloc(c->spaces, sizeof(*before));
  uint32_t* first = calloc(c->sizes[0] + 1, sizeof(*first));
  check_read(c, pestle_node_operand(n, 0));
  for (size_t s = 0; s < c->spaces; ++s)
    before[s] = check_save(c, s);
  uint32_t content = c->next;
  c->next += n->result_count;
  for (uint32_t r = 0; r < n->region_count; ++r) {
    for (size_t s = 0; s < c->spaces; ++s) {
      memcpy(c->bytes[s], before[s], (c->sizes[s] + 1) * sizeof(uint32_t));
    }
    const pestle_block_t* block = pestle_node_body(n, r);
    check_block(c, block);
    for (uint32_t i = 0; i < n->result_count; ++i) {
      check_read(c, pestle_node_operand(block->last, i));
    }
    for (uint32_t i = 0; i < n->result_count; ++i) {
      check_write(c, &n->results[i], content + i);
    }
    // Afterwards only what both branches left is known.
    for (size_t b = 0; b < c->sizes[0]; ++b) {
      if (r == 0)
        first[b] = c->bytes[0][b];
      else if (first[b] != c->bytes[0][b])
        first[b] = UINT32_MAX;
    }
  }
  memcpy(c->bytes[0], first, c->sizes[0] * sizeof(uint32_t));
  for (size_t s = 0; s < c->spaces; ++s)
    free(before[s]);
  free(before);
  free(first);
}

static inline void check_block(checker_t* c, const pestle_block_t* block) {
  for (const pestle_node_t* n = block->first; n && !c->failed; n = n->next) {
    if (n->op == PESTLE_OP_FUSION) {
      check_fusion(c, n);
    } else if (n->op == PESTLE_OP_WHILE) {
      check_while(c, n);
    } else if (n->op == PESTLE_OP_IF || n->op == PESTLE_OP_CASE) {
      check_if(c, n);
    } else if (pestle_pass_info(n)->flags & PESTLE_OP_FLAG_UPDATES) {
      check_update(c, n);
    } else if (n->op == PESTLE_OP_CONSTANT) {
      c->contents[n->results[0].scratch] = c->next++;
    } else if (n->op == PESTLE_OP_RETURN) {
      for (uint32_t i = 0; i < n->operand_count; ++i) {
        check_read(c, pestle_node_operand(n, i));
      }
    } else {
      // A view: its bytes have the content of its source.
      for (uint32_t r = 0; r < n->result_count; ++r) {
        const pestle_value_t* from = pestle_node_operand(n, r);
        check_read(c, from);
        c->contents[n->results[r].scratch] = c->contents[from->scratch];
      }
    }
  }
}

// How many arguments lie in the storage of results, as |wishes| (may be NULL) want.
static inline size_t check_plan_with(pestle_module_t* module,
                                     const pestle_memory_wishes_t* wishes) {
  pestle_arena_t arena;
  pestle_memory_plan_t plan;
  pestle_arena_init(pestle_context_allocator(module->context), &arena);
  assert_ok(pestle_memory_plan_make(module, wishes, &arena, &plan));
  assert_true(plan.arena_size >= plan.lower_bound);
  pestle_function_t* f = pestle_module_entry(module);
  const pestle_node_t* end = f->body->block->last;
  checker_t c = {.plan = &plan, .next = 1};
  c.inputs = pestle_function_argument_count(f);
  c.spaces = 1 + c.inputs + end->operand_count;
  c.bytes = calloc(c.spaces, sizeof(*c.bytes));
  c.sizes = calloc(c.spaces, sizeof(*c.sizes));
  c.contents = calloc(plan.count + 1, sizeof(*c.contents));
  c.sizes[0] = (size_t)plan.arena_size;
  for (size_t i = 0; i < c.inputs; ++i) {
    c.sizes[1 + i] = pestle_type_bytes(pestle_function_argument(f, i)->type);
  }
  for (uint32_t i = 0; i < end->operand_count; ++i) {
    c.sizes[1 + c.inputs + i] =
        pestle_type_bytes(pestle_node_operand(end, i)->type);
  }
  for (size_t s = 0; s < c.spaces; ++s) {
    c.bytes[s] = calloc(c.sizes[s] + 1, sizeof(uint32_t));
  }
  size_t placed = 0;
  for (size_t i = 0; i < c.inputs; ++i) {
    const pestle_placement_t* at = check_at(&c, pestle_function_argument(f, i));
    bool in_output = at->storage == PESTLE_STORAGE_OUTPUT;
    assert_int_equal(plan.outputs[i], in_output ? (int32_t)at->index : -1);
    placed += in_output;
  }
  for (size_t i = 0; i < c.inputs; ++i) {
    check_write(&c, pestle_function_argument(f, i), c.next++);
  }
  check_block(&c, f->body->block);
  if (c.failed) {
    pestle_strbuf_t text;
    pestle_strbuf_init(pestle_context_allocator(module->context), &text);
    assert_ok(pestle_memory_plan_print(module, &plan, &text));
    char* graph = test_print(module);
    fprintf(stderr, "%s\n%s\n", graph, pestle_strbuf_cstr(&text));
    free(graph);
    pestle_strbuf_deinit(&text);
  }
  assert_false(c.failed);
  for (size_t s = 0; s < c.spaces; ++s)
    free(c.bytes[s]);
  free(c.bytes);
  free(c.sizes);
  free(c.contents);
  pestle_arena_deinit(&arena);
  return placed;
}

static inline void check_plan(pestle_module_t* module) {
  assert_int_equal(check_plan_with(module, NULL), 0);
}

#endif  // PESTLE_TESTS_UNIT_COMPILE_MEMORY_PLAN_CHECKER_H_
