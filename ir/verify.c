// SPDX-License-Identifier: Apache-2.0
// The invariants of graph.h, checked. Walks with the links of the graph and an
// explicit set of visible values, so that depth costs no stack. A check that
// fails adds a finding and the walk goes on; only running out of memory stops
// it.
#include <stdarg.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/require.h"
#include "base/vec.h"
#include "ir/collective.h"
#include "ir/internal.h"

// Findings past these are counted but not written out.
enum { MAX_NOTES = 100 };

typedef struct verifier_t {
  const pestle_module_t* module;
  const pestle_function_t* function;
  // Visible values -> the scope (function body or fusion) that defined them. A
  // value of another scope is in sight but must not be captured.
  pestle_map_t visible;
  PESTLE_VEC(const pestle_value_t*) order;  // of |visible|, oldest first
  uint64_t scope, scope_count;
  bool failed;  // out of memory
  size_t findings;
  pestle_status_t notes;  // a status that collects the notes
} verifier_t;

// --- Findings ---

PESTLE_PRINTF(3, 4)
static void find(verifier_t* v, const pestle_node_t* node, const char* format,
                 ...) {
  if (++v->findings > MAX_NOTES) return;
  pestle_strbuf_t text;
  pestle_strbuf_init(v->module->arena.allocator, &text);
  if (v->function) {
    pestle_strbuf_appendf(&text, "in function '%s': ", v->function->name);
  }
  if (node) {
    pestle_node_describe(node, &text);
    pestle_strbuf_append_c(&text, ": ");
  }
  va_list args;
  va_start(args, format);
  pestle_strbuf_appendf_v(&text, format, args);
  va_end(args);
  v->failed |= text.failed;
  if (!v->notes) v->notes = PESTLE_ERROR(MALFORMED, "the module is malformed");
  v->notes = pestle_status_annotate(v->notes, "%s", pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
}

// --- Visibility ---

static void show(verifier_t* v, const pestle_value_t* value) {
  v->failed |= !pestle_map_set_u64(&v->visible, (uintptr_t)value, v->scope) ||
               !pestle_vec_push(&v->order, value);
}

static void hide_from(verifier_t* v, size_t size) {
  while (v->order.size > size) {
    const pestle_value_t* value = pestle_vec_pop(&v->order);
    pestle_map_remove_u64(&v->visible, (uintptr_t)value);
  }
}

// --- Values ---

static void check_uses(verifier_t* v, const pestle_node_t* node,
                       const pestle_value_t* value) {
  uint32_t count = 0;
  const pestle_use_t* prev = NULL;
  for (const pestle_use_t* use = value->uses; use; use = use->next) {
    bool of_user = use->user && use >= use->user->operands &&
                   use < use->user->operands + use->user->operand_count;
    if (use->value != value || use->prev != prev || !of_user) {
      find(v, node, "the use list of value %u is broken",
           (unsigned)value->index);
      return;
    }
    prev = use;
    if (++count > value->use_count) break;
  }
  if (count != value->use_count) {
    find(v, node, "value %u counts %u uses and has others",
         (unsigned)value->index, (unsigned)value->use_count);
  }
}

static void check_type(verifier_t* v, const pestle_node_t* node,
                       const pestle_value_t* value) {
  if (!value->type ||
      pestle_module_find_type(v->module, value->type) != value->type) {
    find(v, node, "the type of value %u is not interned",
         (unsigned)value->index);
  }
}

// The innermost op around |node| whose regions capture nothing, by name.
static const char* isolated_around(const pestle_node_t* node) {
  while ((node = node->block->region->owner)) {
    if (pestle_node_is_isolated(node)) break;
  }
  return node ? pestle_op_info((pestle_op_t)node->op)->name : "function";
}

static void check_operand(verifier_t* v, const pestle_node_t* node,
                          uint32_t i) {
  const pestle_use_t* use = &node->operands[i];
  if (!use->value) {
    find(v, node, "operand %u is NULL", (unsigned)i);
    return;
  }
  bool listed = use->prev ? use->prev->next == use : use->value->uses == use;
  if (!listed || use->user != node) {
    find(v, node, "operand %u is not on the use list of its value",
         (unsigned)i);
  }
  const pestle_map_value_t* slot =
      pestle_map_find_u64(&v->visible, (uintptr_t)use->value);
  if (!slot) {
    find(v, node, "operand %u is used before or outside of where it is defined",
         (unsigned)i);
  } else if (slot->u64 != v->scope) {
    find(v, node, "operand %u is defined outside of the %s around the op",
         (unsigned)i, isolated_around(node));
  }
}

// --- Ops ---

static void check_result_types(verifier_t* v, const pestle_node_t* node,
                               const pestle_type_t* types, size_t count) {
  if (count != node->result_count) {
    find(v, node, "the op has %u results, its rule gives %zu",
         (unsigned)node->result_count, count);
    return;
  }
  for (uint32_t i = 0; i < node->result_count; ++i) {
    if (pestle_type_equal(&types[i], node->results[i].type)) continue;
    pestle_strbuf_t text;
    pestle_strbuf_init(v->module->arena.allocator, &text);
    pestle_type_print(node->results[i].type, &text);
    pestle_strbuf_append_c(&text, ", its rule gives ");
    pestle_type_print(&types[i], &text);
    find(v, node, "result %u is %s", (unsigned)i, pestle_strbuf_cstr(&text));
    pestle_strbuf_deinit(&text);
  }
}

static void run_rule(verifier_t* v, const pestle_node_t* node,
                     const pestle_node_spec_t* spec) {
  size_t capacity = node->result_count, count;
  pestle_allocator_t allocator = v->module->arena.allocator;
  pestle_type_t* types =
      pestle_alloc_array(allocator, 2 * capacity, sizeof(pestle_type_t));
  if (!types) {
    v->failed = true;
    return;
  }
  // Types that are stated are those that are there.
  pestle_node_spec_t stated = *spec;
  stated.types = types + capacity;
  stated.type_count = capacity;
  for (uint32_t i = 0; i < node->result_count; ++i)
    types[capacity + i] = *node->results[i].type;
  pestle_status_t status = pestle_infer_types(&stated, types, capacity, &count);
  if (status) {
    v->failed |= pestle_status_code(status) == PESTLE_STATUS_OUT_OF_MEMORY;
    find(v, node, "%s", pestle_status_message(status));
    pestle_status_release(status);
  } else {
    check_result_types(v, node, types, count);
  }
  pestle_dealloc(allocator, types, 2 * capacity * sizeof(pestle_type_t));
}

static void check_types(verifier_t* v, const pestle_node_t* node,
                        const pestle_value_t** operands) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    operands[i] = node->operands[i].value;
  }
  // Inference reads; that spec's pointers are not const is for the builder.
  pestle_node_spec_t spec = {
      .op = (pestle_op_t)node->op,
      .operands = (pestle_value_t* const*)operands,
      .operand_count = node->operand_count,
      .attrs = node->attrs,
      .attr_count = node->attr_count,
      .regions = node->regions,
      .region_count = node->region_count,
      .type = node->result_count ? node->results[0].type : NULL,
      .module = v->module};
  size_t before = v->findings;
  run_rule(v, node, &spec);
  // Groups are held against sound types alone.
  if (v->findings != before ||
      pestle_op_info(spec.op)->fuse != PESTLE_FUSE_COLLECTIVE)
    return;
  pestle_status_t status =
      pestle_collective_check(node, v->module->arena.allocator);
  if (!status) return;
  v->failed |= pestle_status_code(status) == PESTLE_STATUS_OUT_OF_MEMORY;
  find(v, node, "%s", pestle_status_message(status));
  pestle_status_release(status);
}

static void check_attrs(verifier_t* v, const pestle_node_t* node) {
  size_t rows;
  (void)pestle_op_attr_rows((pestle_op_t)node->op, &rows);
  if (node->attr_count != rows) {
    find(v, node, "the op has %u attributes, its row has %zu",
         (unsigned)node->attr_count, rows);
  }
  for (uint32_t i = 1; i < node->attr_count; ++i) {
    if (node->attrs[i - 1].name >= node->attrs[i].name) {
      find(v, node, "the attributes are not sorted");
      return;
    }
  }
}

static void check_results(verifier_t* v, const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->result_count; ++i) {
    const pestle_value_t* value = &node->results[i];
    if (value->node != node || value->index != i || value->block) {
      find(v, node, "result %u does not know its op", (unsigned)i);
    }
    check_type(v, node, value);
    check_uses(v, node, value);
  }
}

static void check_place(verifier_t* v, const pestle_node_t* node) {
  const pestle_block_t* block = node->block;
  bool terminates =
      pestle_op_info((pestle_op_t)node->op)->flags & PESTLE_OP_FLAG_TERMINATOR;
  if (terminates && node->next) {
    find(v, node, "the op ends its block, but others follow");
  }
  if (!node->next && !terminates) {
    find(v, node, "the block does not end with a return");
  }
  if ((node->next ? node->next->prev != node : block->last != node) ||
      (node->prev ? node->prev->next != node : block->first != node)) {
    find(v, node, "the op's neighbours do not link to it");
  }
}

static void check_node(verifier_t* v, const pestle_node_t* node) {
  if (!pestle_op_info((pestle_op_t)node->op)) {
    find(v, NULL, "an op has the number %u, which no row has",
         (unsigned)node->op);
    return;
  }
  check_place(v, node);
  bool whole = true;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    check_operand(v, node, i);
    whole &= node->operands[i].value && node->operands[i].value->type;
  }
  for (uint32_t i = 0; i < node->region_count; ++i) {
    const pestle_region_t* region = node->regions[i];
    if (region->owner != node || region->index != i ||
        region->block->region != region || region->module != v->module) {
      find(v, node, "region %u does not know its op", (unsigned)i);
    }
    if (!region->block->first) find(v, node, "region %u is empty", (unsigned)i);
  }
  check_results(v, node);
  check_attrs(v, node);
  if (!whole) return;
  const pestle_value_t** operands = pestle_alloc_array(
      v->module->arena.allocator, node->operand_count, sizeof(*operands));
  if (!operands) {
    v->failed = true;
    return;
  }
  check_types(v, node, operands);
  pestle_dealloc(v->module->arena.allocator, operands,
                 node->operand_count * sizeof(*operands));
}

// --- The walk ---

// What to come back to when the region that was entered ends.
typedef struct level_t {
  const pestle_node_t* node;  // next op of this region
  const pestle_node_t* owner;
  uint32_t region;
  size_t visible;  // how much was in sight before the region
  uint64_t scope;  // around the region
} level_t;

typedef PESTLE_VEC(level_t) levels_t;

static void enter(verifier_t* v, levels_t* levels, const pestle_node_t* owner,
                  uint32_t index, const pestle_region_t* region) {
  level_t level = {.node = region->block->first,
                   .owner = owner,
                   .region = index,
                   .visible = v->order.size,
                   .scope = v->scope};
  if (!pestle_vec_push(levels, level)) {
    v->failed = true;
    return;
  }
  if (!owner || pestle_node_is_isolated(owner)) v->scope = ++v->scope_count;
  const pestle_block_t* block = region->block;
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    const pestle_value_t* value = block->arguments[i];
    if (value->node || value->block != block || value->index != i) {
      find(v, owner, "argument %u does not know its block", (unsigned)i);
    }
    check_type(v, owner, value);
    check_uses(v, owner, value);
    show(v, value);
  }
}

// Leaves the innermost region for the owner's next one, or shows the owner's
// results.
static void leave(verifier_t* v, levels_t* levels) {
  level_t level = pestle_vec_pop(levels);
  hide_from(v, level.visible);
  v->scope = level.scope;
  const pestle_node_t* owner = level.owner;
  if (!owner) return;
  if (level.region + 1 < owner->region_count) {
    enter(v, levels, owner, level.region + 1, owner->regions[level.region + 1]);
    return;
  }
  for (uint32_t i = 0; i < owner->result_count; ++i) {
    show(v, &owner->results[i]);
  }
}

static void walk(verifier_t* v, levels_t* levels, const pestle_region_t* body) {
  enter(v, levels, NULL, 0, body);
  while (levels->size && !v->failed) {
    level_t* level = &pestle_vec_last(levels);
    const pestle_node_t* node = level->node;
    if (!node) {
      leave(v, levels);
      continue;
    }
    level->node = node->next;
    check_node(v, node);
    if (node->region_count) {
      enter(v, levels, node, 0, node->regions[0]);
      continue;
    }
    for (uint32_t i = 0; i < node->result_count; ++i) {
      show(v, &node->results[i]);
    }
  }
}

// --- Functions ---

// Extents come behind the tensors that they are of, an i64 for each axis.
static void check_shapes(verifier_t* v, const pestle_function_t* function) {
  size_t count;
  if (!pestle_function_result_count(function, &count)) return;
  bool any = false;
  for (size_t i = 0; i < count || i < function->result_shape_count; ++i) {
    int64_t of = pestle_function_shape_of(function, i);
    if (of < 0 && !any) continue;
    any = true;
    const pestle_type_t* type =
        i < count ? pestle_function_result_type(function, i) : NULL;
    bool fits = type && of >= 0 && (size_t)of < i &&
                pestle_function_shape_of(function, (size_t)of) < 0 &&
                type->dtype == PESTLE_I64 && type->rank == 1;
    const pestle_type_t* bound =
        fits ? pestle_function_result_type(function, (size_t)of) : NULL;
    if (bound && type->dims[0] == bound->rank) continue;
    find(v, NULL, "result %zu is no list of the extents of a result before it",
         i);
  }
}

// A result takes the memory of one argument of its type at most.
static void check_aliases(verifier_t* v, const pestle_function_t* function) {
  size_t count;
  if (!pestle_function_result_count(function, &count)) return;
  const pestle_block_t* block = function->body->block;
  for (uint32_t i = 0; i < function->argument_attr_count; ++i) {
    int64_t result = pestle_function_aliased_result(function, i);
    const pestle_dialect_attrs_t attrs = function->argument_attrs[i];
    if (!pestle_dialect_attrs_find(attrs, "tf.aliasing_output")) continue;
    if (i >= block->argument_count || result < 0 || (size_t)result >= count) {
      find(v, NULL, "argument %u aliases no result: tf.aliasing_output", i);
      continue;
    }
    const pestle_type_t* type =
        pestle_function_result_type(function, (size_t)result);
    if (!pestle_type_equal(block->arguments[i]->type, type)) {
      find(v, NULL, "argument %u aliases result %lld of another type", i,
           (long long)result);
    }
    for (uint32_t k = 0; k < i; ++k) {
      if (pestle_function_aliased_result(function, k) != result) continue;
      find(v, NULL, "arguments %u and %u alias result %lld", k, i,
           (long long)result);
    }
  }
}

static void check_function(verifier_t* v, const pestle_function_t* function,
                           levels_t* levels) {
  v->function = function;
  const pestle_region_t* body = function->body;
  if (!body || body->function != function || body->module != v->module) {
    find(v, NULL, "the body does not know its function");
    return;
  }
  // A module that specialises itself has no body until it did.
  if (!body->block->first && !v->module->specialize) {
    find(v, NULL, "the body is empty");
  }
  walk(v, levels, body);
  if (body->block->last) check_shapes(v, function);
  check_aliases(v, function);
  if (!function->results_declared || !body->block->last) return;
  size_t count;
  (void)pestle_function_result_count(function, &count);
  bool equal = count == function->result_type_count;
  for (size_t i = 0; equal && i < count; ++i) {
    equal = pestle_type_equal(pestle_function_result_type(function, i),
                              function->result_types[i]);
  }
  if (!equal) find(v, NULL, "the return differs from the declared results");
}

static void check_names(verifier_t* v) {
  v->function = NULL;
  pestle_map_t names;
  pestle_map_init(v->module->arena.allocator, &names);
  for (const pestle_function_t* f = v->module->first; f; f = f->next) {
    bool added;
    if (!pestle_map_put(&names, f->name, strlen(f->name), &added)) {
      v->failed = true;
      break;
    }
    if (!added) find(v, NULL, "two functions are named '%s'", f->name);
  }
  pestle_map_deinit(&names);
}

static void check_cycles(verifier_t* v) {
  const pestle_node_t* call;
  pestle_status_t status = pestle_find_call_cycle(v->module, &call);
  v->function = NULL;
  v->failed |= status != NULL;
  pestle_status_release(status);
  if (call) {
    find(v, call, "'%s' is called while it runs",
         PESTLE_NODE_STR(call, callee));
  }
}

static void check_all(verifier_t* v) {
  levels_t levels;
  pestle_vec_init(&levels, v->module->arena.allocator);
  check_names(v);
  for (const pestle_function_t* f = v->module->first; f && !v->failed;
       f = f->next) {
    check_function(v, f, &levels);
  }
  pestle_vec_deinit(&levels);
  // Only the names and links that were found sound are followed.
  if (!v->findings && !v->failed) check_cycles(v);
}

// The status of what was found.
static pestle_status_t finish(verifier_t* v) {
  if (v->failed) {
    pestle_status_release(v->notes);
    return PESTLE_OOM();
  }
  if (!v->findings) return NULL;
  pestle_status_t status =
      PESTLE_ERROR(MALFORMED, "the module has %zu error%s", v->findings,
                   v->findings == 1 ? "" : "s");
  for (size_t i = 0; pestle_status_note(v->notes, i); ++i) {
    status =
        pestle_status_annotate(status, "%s", pestle_status_note(v->notes, i));
  }
  if (v->findings > MAX_NOTES) {
    status =
        pestle_status_annotate(status, "and %zu more", v->findings - MAX_NOTES);
  }
  pestle_status_release(v->notes);
  return status;
}

pestle_status_t pestle_module_verify(const pestle_module_t* module) {
  PESTLE_REQUIRE(module, "a module");
  verifier_t v = {.module = module};
  pestle_map_init(module->arena.allocator, &v.visible);
  pestle_vec_init(&v.order, module->arena.allocator);
  check_all(&v);
  pestle_map_deinit(&v.visible);
  pestle_vec_deinit(&v.order);
  return finish(&v);
}
