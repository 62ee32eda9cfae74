// SPDX-License-Identifier: Apache-2.0
#include "compile/custom.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"
#include "ir/collective.h"
#include "ir/custom_op.h"
#include "ir/sharding.h"

// All uses of one op: sums of hashes, since their order is no part of a module.
typedef struct used_op_t {
  const pestle_custom_op_t* op;
  uint64_t attributes, body;
} used_op_t;

typedef struct names_t {
  const pestle_context_t* context;
  const pestle_target_caps_t* caps;
  pestle_map_t seen;  // calls
  pestle_strbuf_t missing;
  pestle_strbuf_t* key;
  bool spread;  // the pass `partition` divides the module
  PESTLE_VEC(used_op_t) ops;
  uint64_t rest;
} names_t;

// --- Custom calls ---

// A name that was not seen before.
static void add_call(names_t* n, const char* name) {
  pestle_custom_call_info_t info = {.struct_size = sizeof(info)};
  pestle_status_t status = pestle_context_custom_call(n->context, name, &info);
  if (status) {
    pestle_status_release(status);
    pestle_strbuf_appendf(&n->missing, n->missing.size ? ", '%s'" : "'%s'",
                          name);
    return;
  }
  pestle_strbuf_appendf(n->key, "call %s version %s\n", name, info.version);
}

static pestle_status_t note_call(names_t* n, const pestle_node_t* node) {
  const char* name = PESTLE_NODE_STR(node, call_target_name);
  bool added;
  if (!pestle_map_put(&n->seen, name, strlen(name), &added)) {
    return PESTLE_ERROR(OUT_OF_MEMORY, "collecting custom calls");
  }
  if (added) add_call(n, name);
  return NULL;
}

// --- Hashes of nodes ---

static void hash_type(pestle_hasher_t* h, const pestle_type_t* type) {
  pestle_hasher_update_u64(h,
                           (uint64_t)type->dtype << 8 | (uint64_t)type->rank);
  pestle_hasher_update(h, type->dims, (size_t)type->rank * sizeof(int64_t));
}

static void hash_attr(pestle_hasher_t* h, const pestle_attr_t* a) {
  pestle_hasher_update_u64(h, a->name);
  switch ((pestle_attr_kind_t)a->kind) {
    case PESTLE_ATTR_KIND_BOOL:
      pestle_hasher_update_u64(h, a->as.b);
      return;
    case PESTLE_ATTR_KIND_I64:
      pestle_hasher_update_u64(h, (uint64_t)a->as.i64);
      return;
    case PESTLE_ATTR_KIND_F64:
      pestle_hasher_update(h, &a->as.f64, sizeof(a->as.f64));
      return;
    case PESTLE_ATTR_KIND_STR:
      pestle_hasher_update_str(h, pestle_str(a->as.str));
      return;
    case PESTLE_ATTR_KIND_I64S:
      pestle_hasher_update(h, a->as.i64s.data,
                           a->as.i64s.count * sizeof(int64_t));
      return;
    case PESTLE_ATTR_KIND_TYPE:
      hash_type(h, a->as.type);
      return;
    case PESTLE_ATTR_KIND_ELEMENTS:
      hash_type(h, &a->as.elements->type);
      pestle_hasher_update(h, a->as.elements->data, a->as.elements->size);
      return;
  }
}

// Of the node alone and of what its operands are, but not of what those read.
static uint64_t hash_node(const pestle_node_t* node, bool with_attrs) {
  pestle_hasher_t h;
  pestle_hasher_init(&h);
  pestle_hasher_update_u64(&h, node->op);
  for (uint32_t i = 0; with_attrs && i < node->attr_count; ++i)
    hash_attr(&h, &node->attrs[i]);
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_value_t* v = pestle_node_operand(node, i);
    hash_type(&h, v->type);
    pestle_hasher_update_u64(&h, v->node ? v->node->op : PESTLE_OP_COUNT);
    pestle_hasher_update_u64(&h, v->index);
  }
  for (uint32_t i = 0; i < node->result_count; ++i)
    hash_type(&h, node->results[i].type);
  return pestle_hasher_finish(&h).low;
}

static bool is_needed(const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->result_count; ++i) {
    if (node->results[i].uses) return true;
  }
  return !node->result_count || pestle_node_has_effect(node);
}

static uint64_t hash_body(const pestle_region_t* body) {
  const pestle_node_t* n = NULL;
  uint64_t sum = 0;
  while ((n = pestle_region_next(body, n)))
    sum += is_needed(n) ? hash_node(n, true) : 0;
  return sum;
}

// --- Ops ---

static used_op_t* find_use(names_t* n, const pestle_custom_op_t* op) {
  for (size_t i = 0; i < n->ops.size; ++i) {
    if (n->ops.data[i].op == op) return &n->ops.data[i];
  }
  used_op_t use = {.op = op};
  return pestle_vec_push(&n->ops, use) ? &n->ops.data[n->ops.size - 1] : NULL;
}

static pestle_status_t note_op(names_t* n, const pestle_node_t* node) {
  const char* name = PESTLE_NODE_STR(node, name);
  if (n->spread && pestle_is_mark(node)) return NULL;  // that pass takes it
  const pestle_custom_op_t* op = pestle_context_find_op(n->context, name);
  if (!op && !node->region_count) {
    return pestle_node_error(
        node, PESTLE_STATUS_UNSUPPORTED,
        "'%s' has no body; give it a decomposition, or the context an op of "
        "that name with an eval by pestle_context_register_op()",
        name);
  }
  if (!op) return NULL;
  used_op_t* use = find_use(n, op);
  if (!use) return PESTLE_OOM();
  const char* text = PESTLE_NODE_STR(node, attributes);
  use->attributes += pestle_hash64(text, strlen(text)) + hash_node(node, false);
  if (node->region_count) use->body += hash_body(node->regions[0]);
  return NULL;
}

static pestle_status_t walk_block(names_t* n, const pestle_block_t* block) {
  for (const pestle_node_t* node = block->first; node; node = node->next) {
    if (node->op == PESTLE_OP_CUSTOM) PESTLE_TRY(note_op(n, node));
    if (node->op == PESTLE_OP_CUSTOM_CALL) PESTLE_TRY(note_call(n, node));
    for (uint32_t r = 0; r < node->region_count; ++r)
      PESTLE_TRY(walk_block(n, pestle_node_body(node, r)));
  }
  return NULL;
}

// Whether the context has the op, whose line says what |node| is.
static bool is_known(const names_t* n, const pestle_node_t* node) {
  return node->op == PESTLE_OP_CUSTOM &&
         pestle_context_find_op(n->context, PESTLE_NODE_STR(node, name));
}

// All but such ops and what is in them: of a large model all its weights.
static void hash_rest(names_t* n, const pestle_block_t* block) {
  for (const pestle_node_t* node = block->first; node; node = node->next) {
    if (is_known(n, node)) continue;
    if (is_needed(node)) n->rest += hash_node(node, true);
    for (uint32_t r = 0; r < node->region_count; ++r)
      hash_rest(n, pestle_node_body(node, r));
  }
}

static void hash_source(pestle_hasher_t* h, const pestle_source_t* s) {
  const char* texts[] = {s->language, s->body,     s->header,  s->entry,
                         s->flags,    s->grid[0],  s->grid[1], s->grid[2],
                         s->group[0], s->group[1], s->group[2]};
  for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); ++i)
    pestle_hasher_update_str(h, pestle_str(texts[i]));
  for (size_t i = 0; i < s->input_count; ++i)
    pestle_hasher_update_str(h, pestle_str(s->inputs[i]));
  for (size_t i = 0; i < s->output_count; ++i)
    pestle_hasher_update_str(h, pestle_str(s->outputs[i]));
  for (size_t i = 0; i < s->template_count; ++i) {
    pestle_hasher_update_str(h, pestle_str(s->templates[i].name));
    pestle_hasher_update_u64(h, (uint64_t)s->templates[i].dtype);
    pestle_hasher_update_u64(h, (uint64_t)s->templates[i].value);
  }
  pestle_hasher_update_u64(h, s->shared_bytes);
  pestle_hasher_update(h, &s->init_value, sizeof(s->init_value));
  pestle_hasher_update_u64(h, (uint64_t)s->has_init << 1 | (uint64_t)s->whole);
}

static uint64_t hash_evals(const names_t* n, const pestle_custom_op_t* op) {
  pestle_hasher_t h;
  pestle_hasher_init(&h);
  pestle_hasher_update_u64(&h, (uint64_t)op->prefer);
  for (size_t i = 0; i < op->eval_count; ++i) {
    const pestle_custom_eval_t* e = op->evals[i];
    if (op->body && !pestle_custom_eval_is_for(e, n->caps)) continue;
    pestle_hasher_update_u64(&h, (uint64_t)e->kind << 2 |
                                     (uint64_t)e->dense << 1 |
                                     (uint64_t)e->in_place);
    pestle_hasher_update_str(&h, pestle_str(e->target));
    pestle_hasher_update_str(&h, pestle_str(e->id));
    if (e->kind == PESTLE_EVAL_SOURCE) hash_source(&h, e->source);
    if (e->kind == PESTLE_EVAL_KERNEL_IR) {
      pestle_hasher_update(&h, e->kernel->hash, sizeof(e->kernel->hash));
    }
  }
  return pestle_hasher_finish(&h).low;
}

static void append_ops(names_t* n) {
  for (size_t i = 0; i < n->ops.size; ++i) {
    const used_op_t* use = &n->ops.data[i];
    pestle_strbuf_appendf(
        n->key,
        "op %s version %lld attributes %016llx body %016llx evals %016llx\n",
        use->op->name, (long long)use->op->version,
        (unsigned long long)use->attributes, (unsigned long long)use->body,
        (unsigned long long)hash_evals(n, use->op));
  }
  if (!n->ops.size) return;
  pestle_strbuf_appendf(n->key, PESTLE_KEY_REST "%016llx\n",
                        (unsigned long long)n->rest);
}

static int by_name(const void* a, const void* b) {
  return strcmp(((const used_op_t*)a)->op->name,
                ((const used_op_t*)b)->op->name);
}

static pestle_status_t walk(names_t* n, const pestle_module_t* module) {
  for (const pestle_function_t* f = module->first; f; f = f->next)
    PESTLE_TRY(walk_block(n, f->body->block));
  PESTLE_TRY(pestle_strbuf_status(&n->missing));
  if (n->missing.size) {
    return PESTLE_ERROR(NOT_FOUND,
                        "module '%s' calls %s, for which the context has no "
                        "function; give it one under each name with "
                        "pestle_context_register_custom_call()",
                        module->name, pestle_strbuf_cstr(&n->missing));
  }
  if (n->ops.size) {
    qsort(n->ops.data, n->ops.size, sizeof(*n->ops.data), by_name);
    for (const pestle_function_t* f = module->first; f; f = f->next)
      hash_rest(n, f->body->block);
  }
  append_ops(n);
  return NULL;
}

pestle_status_t pestle_custom_calls_key(const pestle_context_t* context,
                                        const pestle_target_caps_t* caps,
                                        const pestle_module_t* module,
                                        pestle_strbuf_t* key) {
  pestle_allocator_t allocator = pestle_context_allocator(context);
  names_t n = {.context = context, .caps = caps, .key = key};
  n.spread = pestle_module_world(module).partitions > 1 &&
             pestle_module_has_mesh(module);
  pestle_map_init(allocator, &n.seen);
  pestle_strbuf_init(allocator, &n.missing);
  pestle_vec_init(&n.ops, allocator);
  pestle_status_t status = walk(&n, module);
  pestle_vec_deinit(&n.ops);
  pestle_strbuf_deinit(&n.missing);
  pestle_map_deinit(&n.seen);
  return status;
}
