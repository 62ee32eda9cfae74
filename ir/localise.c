// SPDX-License-Identifier: Apache-2.0
// From a module over all devices to what each of them runs: see sharding.h.
//
//   @main(%x: [8])  {sdy.sharding = [{"i"}]}        @main(%x: [4])
//     %a = local %x [{"i"}]           // [4]    ->    %b = f %x
//     %b = f %a                                       return %b : [4]
//     return global %b [{"i"}]        // [8]
//
// Values without a sharding are whole on every process, which each makes for itself.
// A computation that wants a part of such a one takes a slice by its number. Outside of
// computations an elementwise op on values in parts is done on the parts; any other op
// that wants such a value gets all of it by all_gather.
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "ir/collective.h"
#include "ir/copy.h"
#include "ir/formula.h"
#include "ir/sharding.h"

static const char local_name[] = "pestle.local";
static const char global_name[] = "pestle.global";

static bool is_marker(const pestle_node_t* node, const char* name) {
  return node && node->op == PESTLE_OP_CUSTOM &&
         !strcmp(PESTLE_NODE_STR(node, name), name);
}

// --- What front ends write ---

static pestle_status_t mark(pestle_builder_t* b, const char* name,
                            pestle_value_t* value, pestle_str_t sharding,
                            pestle_str_t axes, const pestle_type_t* type,
                            pestle_value_t** out) {
  char* text =
      pestle_arena_alloc(&b->module->arena, sharding.size + axes.size + 1, 1);
  pestle_composite_attrs_t attrs = {
      .struct_size = sizeof(attrs), .name = name, .attributes = text};
  if (!text) return PESTLE_OOM();
  if (sharding.size) memcpy(text, sharding.data, sharding.size);
  if (axes.size) memcpy(text + sharding.size, axes.data, axes.size);
  text[sharding.size + axes.size] = 0;
  return pestle_op_composite(b, &value, 1, &attrs, NULL, 0, type, 1, out, 1);
}

pestle_status_t pestle_localise_enter(pestle_builder_t* b,
                                      pestle_value_t* global,
                                      pestle_str_t sharding, pestle_str_t axes,
                                      const pestle_type_t* local,
                                      pestle_value_t** out) {
  return mark(b, local_name, global, sharding, axes, local, out);
}

pestle_status_t pestle_localise_leave(pestle_builder_t* b,
                                      pestle_value_t* local,
                                      pestle_str_t sharding, pestle_str_t axes,
                                      const pestle_type_t* global,
                                      pestle_value_t** out) {
  return mark(b, global_name, local, sharding, axes, global, out);
}

// --- The work ---

typedef struct localise_t {
  pestle_module_t* module;
  pestle_function_t* entry;
  pestle_arena_t arena;
  pestle_map_t shardings;  // of values that are in parts
  pestle_map_t wholes;     // what they are, on every process
} localise_t;

static const pestle_sharding_t* sharding_of(const localise_t* l,
                                            const pestle_value_t* value) {
  const pestle_map_value_t* found =
      pestle_map_find_u64(&l->shardings, (uintptr_t)value);
  return found ? found->ptr : NULL;
}

static pestle_status_t set_sharding(localise_t* l, const pestle_value_t* value,
                                    const pestle_sharding_t* sharding) {
  if (sharding->replicated) return NULL;
  pestle_sharding_t* kept = PESTLE_ARENA_NEW(&l->arena, pestle_sharding_t);
  if (!kept) return PESTLE_OOM();
  *kept = *sharding;
  return pestle_map_set_u64_ptr(&l->shardings, (uintptr_t)value, kept)
             ? NULL
             : PESTLE_OOM();
}

static pestle_status_t read_sharding(localise_t* l, const char* text,
                                     const pestle_type_t* type,
                                     pestle_sharding_t* out) {
  return pestle_sharding_parse(l->module, pestle_str(text), type, &l->arena,
                               out);
}

// --- Calls of functions that have computations for each device ---

static bool has_markers(pestle_module_t* module, const pestle_region_t* body,
                        int depth) {
  const pestle_node_t* n = NULL;
  while ((n = pestle_region_next(body, n))) {
    if (is_marker(n, local_name) || is_marker(n, global_name)) return true;
    if (n->op != PESTLE_OP_CALL || !depth) continue;
    const pestle_function_t* f =
        pestle_module_find_function(module, PESTLE_NODE_STR(n, callee));
    if (f && f->body && has_markers(module, f->body, depth - 1)) return true;
  }
  return false;
}

enum { MOST_DEPTH = 64 };

static pestle_status_t inline_call(localise_t* l, pestle_node_t* call,
                                   const pestle_block_t* body) {
  pestle_copier_t copier;
  pestle_copier_init(l->arena.allocator, pestle_builder_before(call), &copier);
  pestle_status_t status = NULL;
  for (uint32_t i = 0; i < body->argument_count && !status; ++i) {
    status = pestle_copier_set(&copier, body->arguments[i],
                               pestle_node_operand(call, i));
  }
  if (!status) status = pestle_copier_block(&copier, body);
  for (uint32_t i = 0; i < call->result_count && !status; ++i) {
    pestle_value_replace_all_uses(
        &call->results[i],
        pestle_copier_get(&copier, pestle_node_operand(body->last, i)));
  }
  pestle_copier_deinit(&copier);
  if (!status) pestle_node_erase(call);
  return status;
}

static pestle_status_t inline_calls(localise_t* l) {
  int left = 1 << 12;
  const pestle_region_t* body = l->entry->body;
  for (pestle_node_t* n = body->block->first; n;) {
    pestle_node_t* next = pestle_region_next(body, n);
    const pestle_function_t* f =
        n->op == PESTLE_OP_CALL
            ? pestle_module_find_function(l->module, PESTLE_NODE_STR(n, callee))
            : NULL;
    if (!f || !f->body || !has_markers(l->module, f->body, MOST_DEPTH)) {
      n = next;
      continue;
    }
    if (!left--) {
      return pestle_node_error(n, PESTLE_STATUS_UNSUPPORTED,
                               "calls itself, or too many functions");
    }
    pestle_node_t* before = n->prev;
    pestle_block_t* block = n->block;
    PESTLE_TRY(inline_call(l, n, f->body->block));
    n = before ? before->next : block->first;
  }
  return NULL;
}

static bool is_called(const pestle_module_t* module,
                      const pestle_function_t* callee) {
  for (const pestle_function_t* f = module->first; f; f = f->next) {
    const pestle_node_t* n = NULL;
    while (f != callee && (n = pestle_region_next(f->body, n))) {
      if (n->op == PESTLE_OP_CALL &&
          !strcmp(PESTLE_NODE_STR(n, callee), callee->name)) {
        return true;
      }
    }
  }
  return false;
}

static void drop_functions(localise_t* l) {
  for (pestle_function_t *f = l->module->first, *next; f; f = next) {
    next = f->next;
    if (f == l->entry || !has_markers(l->module, f->body, MOST_DEPTH) ||
        is_called(l->module, f)) {
      continue;
    }
    pestle_module_remove_function(f);
    next = l->module->first;
  }
}

// --- Values in parts, whole ---

// |value| as each process has it, in a type of its own.
static pestle_status_t part_of(pestle_builder_t* b, pestle_value_t* value,
                               const pestle_sharding_t* s,
                               pestle_value_t** out) {
  pestle_type_t local = pestle_sharding_local(s, value->type);
  return mark(b, local_name, value, pestle_str(""), pestle_str(""), &local,
              out);
}

// All of |value|, gathered where it is made, so that all who want it, in regions
// too, find it.
static pestle_status_t find_whole(localise_t* l, pestle_value_t* value,
                                  pestle_value_t** out) {
  const pestle_sharding_t* s = sharding_of(l, value);
  const pestle_map_value_t* found =
      pestle_map_find_u64(&l->wholes, (uintptr_t)value);
  *out = found ? found->ptr : value;
  if (!s || found) return NULL;
  pestle_node_t* next =
      value->node ? value->node->next : l->entry->body->block->first;
  pestle_formula_t f = pestle_formula_before(next);
  pestle_value_t* part;
  PESTLE_TRY(part_of(&f.builder, value, s, &part));
  *out = pestle_sharding_gather(&f, part, s);
  PESTLE_TRY(f.status);
  return pestle_map_set_u64_ptr(&l->wholes, (uintptr_t)value, *out)
             ? NULL
             : PESTLE_OOM();
}

// --- Ops ---

static pestle_status_t check_part(const pestle_node_t* node,
                                  const pestle_sharding_t* s,
                                  const pestle_type_t* global,
                                  const pestle_type_t* part) {
  pestle_type_t local = pestle_sharding_local(s, global);
  if (pestle_type_equal(&local, part)) return NULL;
  return pestle_node_error(node, PESTLE_STATUS_MALFORMED,
                           "a computation for each device has a value of "
                           "another type than its sharding, '%.200s', says",
                           PESTLE_NODE_STR(node, attributes));
}

static pestle_status_t visit_local(localise_t* l, pestle_node_t* node) {
  pestle_value_t* v = pestle_node_operand(node, 0);
  const pestle_sharding_t* has = sharding_of(l, v);
  pestle_sharding_t want;
  PESTLE_TRY(
      read_sharding(l, PESTLE_NODE_STR(node, attributes), v->type, &want));
  PESTLE_TRY(check_part(node, &want, v->type, node->results[0].type));
  // Of a value in such parts: they are what it becomes, at the end.
  if (has && pestle_sharding_equal(has, &want)) return NULL;
  PESTLE_TRY(find_whole(l, v, &v));
  if (!want.replicated) {
    pestle_formula_t f = pestle_formula_before(node);
    v = pestle_sharding_slice(&f, v, &want);
    PESTLE_TRY(f.status);
  }
  pestle_value_replace_all_uses(&node->results[0], v);
  pestle_node_erase(node);
  return NULL;
}

static pestle_status_t visit_global(localise_t* l, pestle_node_t* node) {
  pestle_sharding_t s;
  PESTLE_TRY(read_sharding(l, PESTLE_NODE_STR(node, attributes),
                           node->results[0].type, &s));
  pestle_value_t* v = pestle_node_operand(node, 0);
  PESTLE_TRY(check_part(node, &s, node->results[0].type, v->type));
  // Of a computation within another one: in parts along axes of its own.
  PESTLE_TRY(find_whole(l, v, &v));
  pestle_node_set_operand(node, 0, v);
  if (!s.replicated) return set_sharding(l, &node->results[0], &s);
  pestle_value_replace_all_uses(&node->results[0], v);
  pestle_node_erase(node);
  return NULL;
}

// The parts, alike, of the operands of an elementwise op, which each process then
// does on its own; NULL where there are none, or others.
static const pestle_sharding_t* common_parts(const localise_t* l,
                                             const pestle_node_t* node) {
  const pestle_sharding_t* common = NULL;
  if (!pestle_op_is_scalar(node->op) && node->op != PESTLE_OP_CONVERT)
    return NULL;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_value_t* v = pestle_node_operand(node, i);
    const pestle_sharding_t* s = sharding_of(l, v);
    bool alike = v->type->rank == node->results[0].type->rank;
    if (!s && (alike || !v->type->rank)) continue;
    if (!s || !alike || s->sums > 1) return NULL;
    if (common && !pestle_sharding_equal(common, s)) return NULL;
    common = s;
  }
  return common;
}

static pestle_status_t visit_elementwise(localise_t* l, pestle_node_t* node,
                                         const pestle_sharding_t* s) {
  pestle_formula_t f = pestle_formula_before(node);
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    pestle_value_t* v = pestle_node_operand(node, i);
    if (sharding_of(l, v) || !v->type->rank) continue;
    v = pestle_sharding_take(&f, v, s);
    PESTLE_TRY(f.status);
    pestle_node_set_operand(node, i, v);
  }
  return set_sharding(l, &node->results[0], s);
}

static pestle_status_t visit(localise_t* l, pestle_node_t* node) {
  if (is_marker(node, local_name)) return visit_local(l, node);
  if (is_marker(node, global_name)) return visit_global(l, node);
  const pestle_sharding_t* s = common_parts(l, node);
  if (s) return visit_elementwise(l, node, s);
  bool ends =
      node->op == PESTLE_OP_RETURN && node->block == l->entry->body->block;
  for (uint32_t i = 0; i < node->operand_count && !ends; ++i) {
    pestle_value_t* v = pestle_node_operand(node, i);
    if (!sharding_of(l, v)) continue;
    PESTLE_TRY(find_whole(l, v, &v));
    pestle_node_set_operand(node, i, v);
  }
  return NULL;
}

// --- The interface ---

// As its attribute says, or as all who use it want it.
static pestle_status_t find_argument(localise_t* l, uint32_t index) {
  pestle_value_t* v = l->entry->body->block->arguments[index];
  const char* text =
      pestle_function_argument_attribute(l->entry, index, "sdy.sharding");
  pestle_sharding_t s = {.replicated = true};
  if (text) {
    PESTLE_TRY(pestle_status_annotate(read_sharding(l, text, v->type, &s),
                                      "of argument %u", (unsigned)index));
    return set_sharding(l, v, &s);
  }
  for (const pestle_use_t* use = v->uses; use; use = use->next) {
    pestle_sharding_t other;
    if (!is_marker(use->user, local_name)) return NULL;
    PESTLE_TRY(read_sharding(l, PESTLE_NODE_STR(use->user, attributes), v->type,
                             &other));
    if (use == v->uses) {
      s = other;
    } else if (!pestle_sharding_equal(&s, &other)) {
      return NULL;
    }
  }
  return set_sharding(l, v, &s);
}

// The attributes of a dialect but for sdy.sharding, and ours.
static pestle_status_t new_attrs(localise_t* l, pestle_dialect_attrs_t old,
                                 const pestle_sharding_t* s,
                                 pestle_dialect_attrs_t* out) {
  pestle_dialect_attr_t* data =
      PESTLE_ARENA_ARRAY(&l->arena, pestle_dialect_attr_t, old.count + 1);
  if (!data) return PESTLE_OOM();
  uint32_t n = 0;
  for (uint32_t i = 0; i < old.count; ++i) {
    if (strcmp(old.data[i].key, "sdy.sharding") != 0) data[n++] = old.data[i];
  }
  if (s) {
    const char* text = pestle_sharding_text(s, &l->arena);
    size_t size = text ? strlen(text) + 3 : 0;
    char* quoted = text ? pestle_arena_alloc(&l->arena, size, 1) : NULL;
    if (!quoted) return PESTLE_OOM();
    quoted[0] = '"';
    memcpy(quoted + 1, text, size - 3);
    memcpy(quoted + size - 2, "\"", 2);
    data[n++] = (pestle_dialect_attr_t){PESTLE_SHARDING_KEY, quoted};
  }
  *out = (pestle_dialect_attrs_t){data, n};
  return NULL;
}

static pestle_status_t make_local(localise_t* l, pestle_value_t* value,
                                  const pestle_sharding_t* s) {
  pestle_type_t type = pestle_sharding_local(s, value->type);
  value->type = pestle_module_intern_type(l->module, &type);
  return value->type ? NULL : PESTLE_OOM();
}

static pestle_status_t finish_arguments(localise_t* l) {
  const pestle_block_t* block = l->entry->body->block;
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    const pestle_sharding_t* s = sharding_of(l, block->arguments[i]);
    pestle_dialect_attrs_t attrs;
    PESTLE_TRY(
        new_attrs(l, pestle_function_argument_attrs(l->entry, i), s, &attrs));
    PESTLE_TRY(pestle_function_set_argument_attrs(l->entry, i, attrs.data,
                                                  attrs.count));
    if (s) PESTLE_TRY(make_local(l, block->arguments[i], s));
  }
  return NULL;
}

// The parts of result |index|, as which they are wanted.
static pestle_status_t finish_result(localise_t* l, pestle_node_t* ret,
                                     uint32_t index, pestle_type_t* out_type) {
  pestle_value_t* v = pestle_node_operand(ret, index);
  const pestle_sharding_t* has = sharding_of(l, v);
  const char* text =
      pestle_function_result_attribute(l->entry, index, "sdy.sharding");
  pestle_sharding_t want = {.replicated = true};
  if (text) {
    PESTLE_TRY(pestle_status_annotate(read_sharding(l, text, v->type, &want),
                                      "of result %u", (unsigned)index));
  }
  if (has && text && !pestle_sharding_equal(has, &want)) {
    PESTLE_TRY(find_whole(l, v, &v));
    pestle_node_set_operand(ret, index, v);
    has = NULL;
  }
  pestle_dialect_attrs_t attrs;
  if (!has && !want.replicated) {
    pestle_formula_t f = pestle_formula_before(ret);
    pestle_value_t* part = pestle_sharding_slice(&f, v, &want);
    PESTLE_TRY(f.status);
    pestle_node_set_operand(ret, index, part);
    *out_type = *part->type;
    has = &want;
  } else {
    *out_type = has ? pestle_sharding_local(has, v->type) : *v->type;
  }
  PESTLE_TRY(
      new_attrs(l, pestle_function_result_attrs(l->entry, index), has, &attrs));
  return pestle_function_set_result_attrs(l->entry, index, attrs.data,
                                          attrs.count);
}

static pestle_status_t finish_results(localise_t* l) {
  pestle_node_t* ret = l->entry->body->block->last;
  pestle_type_t* types =
      PESTLE_ARENA_ARRAY(&l->arena, pestle_type_t, ret->operand_count + 1);
  if (!types) return PESTLE_OOM();
  for (uint32_t i = 0; i < ret->operand_count; ++i)
    PESTLE_TRY(finish_result(l, ret, i, &types[i]));
  if (!l->entry->results_declared) return NULL;
  const pestle_type_t** declared = PESTLE_ARENA_ARRAY(
      &l->module->arena, const pestle_type_t*, ret->operand_count + 1);
  if (!declared) return PESTLE_OOM();
  for (uint32_t i = 0; i < ret->operand_count; ++i) {
    declared[i] = pestle_module_intern_type(l->module, &types[i]);
    if (!declared[i]) return PESTLE_OOM();
  }
  l->entry->result_types = declared;
  return NULL;
}

static pestle_status_t finish_elementwise(localise_t* l) {
  const pestle_region_t* body = l->entry->body;
  for (pestle_node_t* n = NULL; (n = pestle_region_next(body, n));) {
    if (is_marker(n, global_name) || is_marker(n, local_name)) continue;
    const pestle_sharding_t* s =
        n->result_count == 1 ? sharding_of(l, &n->results[0]) : NULL;
    if (s) PESTLE_TRY(make_local(l, &n->results[0], s));
  }
  return NULL;
}

// Values in parts are their parts from now on.
static void drop_markers(localise_t* l) {
  const pestle_region_t* body = l->entry->body;
  for (pestle_node_t *n = body->block->first, *next; n; n = next) {
    next = pestle_region_next(body, n);
    if (!is_marker(n, global_name) && !is_marker(n, local_name)) continue;
    pestle_value_replace_all_uses(&n->results[0], pestle_node_operand(n, 0));
    pestle_node_erase(n);
  }
}

static pestle_status_t localise(localise_t* l) {
  const pestle_region_t* body = l->entry->body;
  PESTLE_TRY(inline_calls(l));
  drop_functions(l);
  for (uint32_t i = 0; i < body->block->argument_count; ++i)
    PESTLE_TRY(find_argument(l, i));
  for (pestle_node_t *n = body->block->first, *next; n; n = next) {
    next = pestle_region_next(body, n);
    PESTLE_TRY(visit(l, n));
  }
  PESTLE_TRY(finish_results(l));
  PESTLE_TRY(finish_arguments(l));
  PESTLE_TRY(finish_elementwise(l));
  drop_markers(l);
  return NULL;
}

pestle_status_t pestle_module_localise(pestle_module_t* module) {
  localise_t l = {.module = module, .entry = pestle_module_entry(module)};
  if (!l.entry || !l.entry->body || !l.entry->body->block->last ||
      pestle_module_world(module).partitions == 1 || !module->meshes.count) {
    return NULL;
  }
  pestle_allocator_t allocator = pestle_context_allocator(module->context);
  pestle_arena_init(allocator, &l.arena);
  pestle_map_init(allocator, &l.shardings);
  pestle_map_init(allocator, &l.wholes);
  pestle_status_t status = localise(&l);
  pestle_map_deinit(&l.wholes);
  pestle_map_deinit(&l.shardings);
  pestle_arena_deinit(&l.arena);
  return status;
}
