// SPDX-License-Identifier: Apache-2.0
// Where every value of a fused and ordered function lives.
//
//   %0 = fusion(%x)        arena +0
//   %1 = reshape %0        arena +0        the same storage
//   %2 = fusion(%1)        arena +0        in place: %1 dies here
//   %3 = fusion(%2, %y)    output 0
//   return %3
//
// The state of a while has one slot each: the init is copied in unless it lies
// there already, the body's results are copied back at the end of a trip, all
// read before any is written (a body may return its arguments swapped), but for
// long ones, whose two places take turns (memory_plan_loops.c). A
// branch's results are copied to the results of the if. An argument that runs may
// be given can lie in the storage of a result (memory_plan_donation.c).
#include "compile/memory_planner.h"

#include <inttypes.h>

#include "base/mem.h"

// --- Results of the entry ---

// The cell that ends up as result |index| moves to the caller's storage.
static void place_result(pestle_planner_t* p, const pestle_value_t* value,
                         uint32_t index) {
  pestle_cell_t* cell = pestle_planner_cell_of(p, value);
  if (cell->storage != PESTLE_STORAGE_ARENA ||
      !pestle_planner_is_whole(p, value)) {
    return;  // an argument, a constant, a part, another result: a copy
  }
  cell->storage = PESTLE_STORAGE_OUTPUT;
  cell->index = index;
}

static void place_results(pestle_planner_t* p) {
  const pestle_node_t* end = p->function->body->block->last;
  for (uint32_t i = 0; i < end->operand_count; ++i) {
    // Extents stay with the run, which cuts an output to them.
    if (pestle_function_shape_of(p->function, i) >= 0) continue;
    place_result(p, pestle_node_operand(end, i), i);
  }
}

// --- The plan ---

static pestle_status_t write_plan(pestle_planner_t* p,
                                  pestle_memory_plan_t* plan) {
  plan->count = p->values.size;
  plan->placements =
      PESTLE_ARENA_ARRAY(p->arena, pestle_placement_t, plan->count + 1);
  if (!plan->placements) return PESTLE_OOM();
  for (size_t i = 0; i < plan->count; ++i) {
    const pestle_planned_t* v = &p->values.data[i];
    const pestle_cell_t* cell = pestle_planner_cell_of(p, v->value);
    plan->placements[i] =
        (pestle_placement_t){.storage = cell->storage,
                             .index = cell->index,
                             .offset = cell->offset + v->offset,
                             .size = (int64_t)pestle_type_bytes(v->value->type),
                             .root = cell->root,
                             .alternates = cell->alternates};
  }
  return NULL;
}

static pestle_status_t plan_with(pestle_planner_t* p,
                                 pestle_memory_plan_t* plan) {
  PESTLE_TRY(pestle_planner_find_cells(p));
  // In place before results are placed: a chain of ops in place that ends in a
  // result lies in the caller's storage from its beginning.
  PESTLE_TRY(pestle_planner_in_place(p));
  place_results(p);
  uint32_t count = p->function->body->block->argument_count;
  plan->outputs = PESTLE_ARENA_ARRAY(p->arena, int32_t, count + 1);
  if (!plan->outputs) return PESTLE_OOM();
  for (uint32_t i = 0; i < count; ++i)
    plan->outputs[i] = -1;
  if (p->wishes) pestle_planner_place_donated(p, plan->outputs);
  PESTLE_TRY(pestle_planner_offsets(p, &plan->arena_size, &plan->lower_bound));
  return write_plan(p, plan);
}

pestle_status_t pestle_memory_plan_make(pestle_module_t* module,
                                        const pestle_memory_wishes_t* wishes,
                                        pestle_arena_t* arena,
                                        pestle_memory_plan_t* out_plan) {
  *out_plan = (pestle_memory_plan_t){0};
  pestle_planner_t planner = {.arena = arena,
                              .function = pestle_module_entry(module),
                              .wishes = wishes};
  if (!planner.function) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "the module has no function");
  }
  pestle_allocator_t allocator = pestle_context_allocator(module->context);
  planner.allocator = allocator;
  pestle_vec_init(&planner.values, allocator);
  pestle_vec_init(&planner.cells, allocator);
  int64_t begin = pestle_context_trace_begin(module->context);
  pestle_status_t status = plan_with(&planner, out_plan);
  pestle_context_trace_end(module->context, begin, "compile", "plan memory",
                           NULL);
  pestle_vec_deinit(&planner.values);
  pestle_vec_deinit(&planner.cells);
  return status;
}

// --- Aliases ---

// An empty value overlaps nothing, wherever it was placed.
static bool overlap(const pestle_placement_t* a, const pestle_placement_t* b) {
  return a->size && b->size && a->storage == b->storage &&
         a->index == b->index && a->offset < b->offset + b->size &&
         b->offset < a->offset + a->size;
}

pestle_status_t pestle_memory_plan_aliases(const pestle_memory_plan_t* plan,
                                           const pestle_node_t* fusion,
                                           int32_t* out_aliases,
                                           bool* out_any) {
  *out_any = false;
  for (uint32_t r = 0; r < fusion->result_count; ++r) {
    out_aliases[r] = -1;
    const pestle_placement_t* out =
        pestle_memory_plan_at(plan, &fusion->results[r]);
    for (uint32_t o = 0; o < fusion->operand_count; ++o) {
      const pestle_placement_t* in =
          pestle_memory_plan_at(plan, pestle_node_operand(fusion, o));
      if (!overlap(in, out)) continue;
      if (in->offset != out->offset || in->size != out->size) {
        return pestle_node_error(fusion, PESTLE_STATUS_INTERNAL,
                                 "the memory plan lets result %u overlap "
                                 "operand %u partly",
                                 r, o);
      }
      out_aliases[r] = (int32_t)o;
      *out_any = true;
    }
  }
  return NULL;
}

// --- Text ---

static const char* storage_name(pestle_storage_t storage) {
  switch (storage) {
    case PESTLE_STORAGE_NONE:
      return "none";
    case PESTLE_STORAGE_ARENA:
      return "arena";
    case PESTLE_STORAGE_INPUT:
      return "input";
    case PESTLE_STORAGE_OUTPUT:
      return "output";
    case PESTLE_STORAGE_CONSTANT:
      return "constant";
  }
  return "none";
}

static void print_value(const pestle_memory_plan_t* plan,
                        const pestle_value_t* value, int depth,
                        const char* what, pestle_strbuf_t* out) {
  const pestle_placement_t* at = pestle_memory_plan_at(plan, value);
  pestle_strbuf_append_fill(out, ' ', (size_t)depth * 2);
  pestle_strbuf_appendf(out, "#%" PRIu64 " ", value->scratch);
  pestle_strbuf_append_name(out, value->name ? value->name : what);
  pestle_strbuf_append_char(out, ' ');
  pestle_type_print(value->type, out);
  pestle_strbuf_appendf(out, " %s",
                        storage_name((pestle_storage_t)at->storage));
  if (at->storage == PESTLE_STORAGE_INPUT ||
      at->storage == PESTLE_STORAGE_OUTPUT) {
    pestle_strbuf_appendf(out, " %" PRIu32, at->index);
  }
  if (at->storage != PESTLE_STORAGE_CONSTANT) {
    pestle_strbuf_appendf(out, " +%" PRId64, at->offset);
  }
  pestle_strbuf_appendf(out, " size %" PRId64, at->size);
  if (at->root != value) {
    pestle_strbuf_appendf(out, " in #%" PRIu64, at->root->scratch);
  }
  pestle_strbuf_append_char(out, '\n');
}

static const char* label_of(const pestle_node_t* node) {
  return node->op == PESTLE_OP_FUSION
             ? PESTLE_NODE_STR(node, label)
             : pestle_op_info((pestle_op_t)node->op)->name;
}

static void print_block(const pestle_memory_plan_t* plan,
                        const pestle_block_t* block, int depth,
                        pestle_strbuf_t* out) {
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    print_value(plan, block->arguments[i], depth, "argument", out);
  }
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    for (uint32_t i = 0; i < n->result_count; ++i) {
      print_value(plan, &n->results[i], depth, label_of(n), out);
    }
    if (!pestle_pass_has_bodies(n)) continue;
    for (uint32_t r = 0; r < n->region_count; ++r) {
      print_block(plan, pestle_node_body(n, r), depth + 1, out);
    }
  }
}

pestle_status_t pestle_memory_plan_print(const pestle_module_t* module,
                                         const pestle_memory_plan_t* plan,
                                         pestle_strbuf_t* out) {
  pestle_strbuf_appendf(
      out,
      "memory: planned peak %" PRId64 " bytes, lower bound %" PRId64
      " bytes (%.2fx)\n",
      plan->arena_size, plan->lower_bound,
      plan->lower_bound ? (double)plan->arena_size / (double)plan->lower_bound
                        : 1.0);
  const pestle_function_t* entry =
      pestle_module_entry((pestle_module_t*)module);
  if (entry) print_block(plan, entry->body->block, 1, out);
  return pestle_strbuf_status(out);
}
