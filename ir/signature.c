// SPDX-License-Identifier: Apache-2.0
// A block's canonical order is that of a depth-first walk from its effects and
// then from what it returns, operands first: it follows from the graph alone
// and not from where ops were inserted. Values are numbered in that order. What
// a region captures counts as operands of its op, in the order in which the
// region's own walk meets it, so each block is walked once.
#include "ir/signature.h"
#include "ir/collective.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/require.h"
#include "base/vec.h"
#include "ir/bytes.h"
#include "ir/dictionary.h"
#include "ir/text.h"

enum { MAX_DEPTH = 500 };

typedef PESTLE_VEC(const pestle_value_t*) values_t;

// A block in order, and the outer values that it needs.
typedef struct order_t {
  const pestle_node_t** nodes;
  size_t node_count;
  const pestle_value_t** captures;
  size_t capture_count;
} order_t;

typedef struct canon_t {
  pestle_allocator_t allocator;
  const pestle_module_t* module;
  pestle_arena_t arena;
  pestle_strbuf_t* out;
  pestle_map_t orders;     // block -> order_t*
  pestle_map_t captures;   // node with regions -> order_t* (captures alone)
  pestle_map_t numbers;    // value -> number
  pestle_map_t types;      // type -> index of its first use
  pestle_map_t ops;        // op -> index of its first use
  pestle_map_t constants;  // data pointer and size -> pestle_hash128_t*
  pestle_map_t functions;  // name -> index, in the order of first call
  PESTLE_VEC(const pestle_function_t*) queue;
  uint64_t next_number;
} canon_t;

// --- Order ---

// A node on the way of the walk.
typedef struct frame_t {
  const pestle_node_t* node;
  size_t next;  // dependency to look at
} frame_t;

typedef struct walk_t {
  canon_t* c;
  const pestle_block_t* block;
  pestle_map_t seen;     // node -> 1
  pestle_map_t outside;  // captured value -> 1
  PESTLE_VEC(const pestle_node_t*) done;
  values_t captured;
  PESTLE_VEC(frame_t) stack;
  int depth;
} walk_t;

static pestle_status_t order_block(canon_t* c, const pestle_block_t* block,
                                   int depth, order_t** out_order);

// What |node|'s regions need from outside, ordered and found once.
static pestle_status_t node_captures(walk_t* w, const pestle_node_t* node,
                                     const order_t** out) {
  static const order_t none = {0};
  *out = &none;
  if (!node->region_count) return NULL;
  const pestle_map_value_t* found =
      pestle_map_find_u64(&w->c->captures, (uintptr_t)node);
  if (found) {
    *out = found->ptr;
    return NULL;
  }
  pestle_arena_t* arena = &w->c->arena;
  order_t* sum = PESTLE_ARENA_NEW(arena, order_t);
  order_t** parts = PESTLE_ARENA_ARRAY(arena, order_t*, node->region_count);
  if (!sum || !parts) return PESTLE_OOM();
  for (uint32_t i = 0; i < node->region_count; ++i) {
    PESTLE_TRY(
        order_block(w->c, pestle_node_body(node, i), w->depth + 1, &parts[i]));
    sum->capture_count += parts[i]->capture_count;
  }
  sum->captures =
      PESTLE_ARENA_ARRAY(arena, const pestle_value_t*, sum->capture_count);
  if (!sum->captures) return PESTLE_OOM();
  size_t n = 0;
  for (uint32_t i = 0; i < node->region_count; ++i) {
    for (size_t j = 0; j < parts[i]->capture_count; ++j) {
      sum->captures[n++] = parts[i]->captures[j];
    }
  }
  if (!pestle_map_set_u64_ptr(&w->c->captures, (uintptr_t)node, sum)) {
    return PESTLE_OOM();
  }
  *out = sum;
  return NULL;
}

static pestle_status_t push_node(walk_t* w, const pestle_node_t* node) {
  bool added;
  uintptr_t key = (uintptr_t)node;
  if (!pestle_map_put(&w->seen, &key, sizeof(key), &added)) {
    return PESTLE_OOM();
  }
  if (!added) return NULL;
  frame_t frame = {node, 0};
  return pestle_vec_push(&w->stack, frame) ? NULL : PESTLE_OOM();
}

static pestle_status_t need_value(walk_t* w, const pestle_value_t* value) {
  const pestle_block_t* home = value->node ? value->node->block : value->block;
  if (home == w->block) return value->node ? push_node(w, value->node) : NULL;
  bool added;
  uintptr_t key = (uintptr_t)value;
  if (!pestle_map_put(&w->outside, &key, sizeof(key), &added)) {
    return PESTLE_OOM();
  }
  if (added && !pestle_vec_push(&w->captured, value)) return PESTLE_OOM();
  return NULL;
}

// Everything that |root| needs and then itself. No recursion: chains are long.
static pestle_status_t walk_from(walk_t* w, const pestle_node_t* root) {
  PESTLE_TRY(push_node(w, root));
  while (w->stack.size) {
    frame_t* top = &pestle_vec_last(&w->stack);
    const pestle_node_t* node = top->node;
    const order_t* captures;
    PESTLE_TRY(node_captures(w, node, &captures));
    size_t next = top->next++;
    if (next < node->operand_count) {
      PESTLE_TRY(need_value(w, node->operands[next].value));
    } else if (next - node->operand_count < captures->capture_count) {
      PESTLE_TRY(need_value(w, captures->captures[next - node->operand_count]));
    } else {
      (void)pestle_vec_pop(&w->stack);
      if (!pestle_vec_push(&w->done, node)) return PESTLE_OOM();
    }
  }
  return NULL;
}

static pestle_status_t walk_block(walk_t* w, order_t* order) {
  pestle_arena_t* arena = &w->c->arena;
  for (const pestle_node_t* n = w->block->first; n; n = n->next) {
    if (pestle_node_has_effect(n)) PESTLE_TRY(walk_from(w, n));
  }
  if (w->block->last) PESTLE_TRY(walk_from(w, w->block->last));
  order->node_count = w->done.size;
  order->capture_count = w->captured.size;
  order->nodes = pestle_arena_copy(arena, w->done.data,
                                   w->done.size * sizeof(*w->done.data), 8);
  order->captures = pestle_arena_copy(
      arena, w->captured.data, w->captured.size * sizeof(*w->captured.data), 8);
  return order->nodes && order->captures ? NULL : PESTLE_OOM();
}

static pestle_status_t order_block(canon_t* c, const pestle_block_t* block,
                                   int depth, order_t** out_order) {
  if (depth > MAX_DEPTH) {
    return PESTLE_ERROR(RESOURCE_EXHAUSTED,
                        "regions are nested more than %d deep", MAX_DEPTH);
  }
  walk_t w = {.c = c, .block = block, .depth = depth};
  pestle_map_init(c->allocator, &w.seen);
  pestle_map_init(c->allocator, &w.outside);
  pestle_vec_init(&w.done, c->allocator);
  pestle_vec_init(&w.captured, c->allocator);
  pestle_vec_init(&w.stack, c->allocator);
  order_t* order = PESTLE_ARENA_NEW(&c->arena, order_t);
  pestle_status_t status = order ? walk_block(&w, order) : PESTLE_OOM();
  if (!status && !pestle_map_set_u64_ptr(&c->orders, (uintptr_t)block, order)) {
    status = PESTLE_OOM();
  }
  pestle_vec_deinit(&w.stack);
  pestle_vec_deinit(&w.captured);
  pestle_vec_deinit(&w.done);
  pestle_map_deinit(&w.outside);
  pestle_map_deinit(&w.seen);
  *out_order = order;
  return status;
}

// --- Bytes ---

static pestle_status_t put_type(canon_t* c, const pestle_type_t* type) {
  int64_t key[PESTLE_MAX_RANK + 1];
  bool added;
  uint64_t next = pestle_map_size(&c->types);
  key[0] = (int64_t)type->dtype;
  for (int i = 0; i < type->rank; ++i)
    key[i + 1] = type->dims[i];
  pestle_map_value_t* slot = pestle_map_put(
      &c->types, key, (size_t)(type->rank + 1) * sizeof(*key), &added);
  if (!slot) return PESTLE_OOM();
  if (!added) {
    pestle_put_uint(c->out, slot->u64 + 1);
    return NULL;
  }
  slot->u64 = next;
  pestle_put_uint(c->out, 0);
  pestle_put_text(c->out, pestle_dtype_info(type->dtype)->name);
  pestle_put_uint(c->out, (uint64_t)type->rank);
  for (int i = 0; i < type->rank; ++i)
    pestle_put_int(c->out, type->dims[i]);
  return NULL;
}

static pestle_status_t put_op(canon_t* c, pestle_op_t op) {
  uint64_t key = op, next = pestle_map_size(&c->ops);
  bool added;
  pestle_map_value_t* slot = pestle_map_put(&c->ops, &key, sizeof(key), &added);
  if (!slot) return PESTLE_OOM();
  if (!added) {
    pestle_put_uint(c->out, slot->u64 + 1);
    return NULL;
  }
  slot->u64 = next;
  pestle_put_uint(c->out, 0);
  pestle_put_text(c->out, pestle_op_info(op)->mlir);
  pestle_put_text(c->out, pestle_text_direction(op));
  return NULL;
}

// So that of a large model not all lies in memory at once, what was hashed is given back, but
// for what is less than a page.
static pestle_hash128_t hash_relaxed(const pestle_module_t* module,
                                     const char* data, size_t size) {
  enum { PART = 4 << 20, LEAST = 1 << 12 };
  pestle_hasher_t hasher;
  if (size < LEAST) return pestle_hash128(data, size);
  pestle_hasher_init(&hasher);
  for (size_t at = 0; at < size; at += PART) {
    size_t part = size - at < PART ? size - at : PART;
    pestle_hasher_update(&hasher, data + at, part);
    pestle_module_relax_part(module, data + at, part);
  }
  return pestle_hasher_finish(&hasher);
}

typedef struct data_key_t {
  uint64_t address, size;
} data_key_t;

// Data that several constants share is hashed once.
static pestle_status_t hash_data(canon_t* c, const void* data, size_t size,
                                 pestle_hash128_t* out) {
  data_key_t key = {(uintptr_t)data, size};
  bool added;
  pestle_map_value_t* slot =
      pestle_map_put(&c->constants, &key, sizeof(key), &added);
  if (!slot) return PESTLE_OOM();
  if (added) {
    pestle_hash128_t* hash = PESTLE_ARENA_NEW(&c->arena, pestle_hash128_t);
    if (!hash) return PESTLE_OOM();
    *hash = hash_relaxed(c->module, data, size);
    slot->ptr = hash;
  }
  *out = *(const pestle_hash128_t*)slot->ptr;
  return NULL;
}

static pestle_status_t put_constant(canon_t* c, const pestle_elements_t* e) {
  size_t element = pestle_dtype_size(e->type.dtype);
  const char* data = e->data;
  size_t bytes = pestle_type_bytes(&e->type);
  // All equal: every element is the one before it. Of none there is no value.
  bool splat =
      bytes && (e->splat || !memcmp(data, data + element, e->size - element));
  size_t size = splat ? element : bytes;
  pestle_hash128_t hash = {0};
  PESTLE_TRY(put_type(c, &e->type));
  PESTLE_TRY(hash_data(c, data, size, &hash));
  pestle_put_uint(c->out, splat);
  pestle_put_uint(c->out, bytes);
  pestle_put_u64(c->out, hash.low);
  pestle_put_u64(c->out, hash.high);
  return NULL;
}

// A callee by the order in which functions are first called.
static pestle_status_t put_callee(canon_t* c, const pestle_node_t* node) {
  const char* name = PESTLE_NODE_STR(node, callee);
  bool added;
  uint64_t next = pestle_map_size(&c->functions);
  pestle_map_value_t* slot =
      pestle_map_put(&c->functions, name, strlen(name), &added);
  if (!slot) return PESTLE_OOM();
  if (added) {
    const pestle_function_t* f =
        pestle_module_find_function(node->block->region->module, name);
    if (!f) {
      return pestle_node_error(node, PESTLE_STATUS_INVALID_ARGUMENT,
                               "calls '%s', which is not there", name);
    }
    slot->u64 = next;
    if (!pestle_vec_push(&c->queue, f)) return PESTLE_OOM();
  }
  pestle_put_uint(c->out, slot->u64);
  return NULL;
}

static pestle_status_t put_attr(canon_t* c, const pestle_node_t* node,
                                const pestle_attr_t* a) {
  // A label is a name for people.
  if (a->name == PESTLE_ATTR_label) return NULL;
  pestle_put_text(c->out, pestle_attr_name_text((pestle_attr_name_t)a->name));
  switch ((pestle_attr_kind_t)a->kind) {
    case PESTLE_ATTR_KIND_BOOL:
      pestle_put_uint(c->out, a->as.b);
      return NULL;
    case PESTLE_ATTR_KIND_I64:
      pestle_put_int(c->out, a->as.i64);
      return NULL;
    case PESTLE_ATTR_KIND_F64:
      pestle_put_u64(c->out, pestle_f64_bits(a->as.f64));
      return NULL;
    case PESTLE_ATTR_KIND_STR:
      if (a->name == PESTLE_ATTR_callee) return put_callee(c, node);
      pestle_put_text(c->out, a->as.str);
      return NULL;
    case PESTLE_ATTR_KIND_I64S:
      pestle_put_uint(c->out, a->as.i64s.count);
      for (size_t i = 0; i < a->as.i64s.count; ++i) {
        pestle_put_int(c->out, a->as.i64s.data[i]);
      }
      return NULL;
    case PESTLE_ATTR_KIND_TYPE:
      return put_type(c, a->as.type);
    case PESTLE_ATTR_KIND_ELEMENTS:
      return put_constant(c, a->as.elements);
  }
  return NULL;
}

static pestle_status_t number(canon_t* c, const pestle_value_t* value) {
  return pestle_map_set_u64(&c->numbers, (uintptr_t)value, c->next_number++)
             ? NULL
             : PESTLE_OOM();
}

static pestle_status_t put_block(canon_t* c, const pestle_block_t* block);

static pestle_status_t put_node(canon_t* c, const pestle_node_t* node) {
  PESTLE_TRY(put_op(c, (pestle_op_t)node->op));
  pestle_put_uint(c->out, node->operand_count);
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_map_value_t* found =
        pestle_map_find_u64(&c->numbers, (uintptr_t)node->operands[i].value);
    if (!found) {
      return pestle_node_error(node, PESTLE_STATUS_INVALID_ARGUMENT,
                               "operand %u is defined after its use", i);
    }
    pestle_put_uint(c->out, found->u64);
  }
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    PESTLE_TRY(put_attr(c, node, &node->attrs[i]));
  }
  pestle_put_uint(c->out, node->region_count);
  for (uint32_t i = 0; i < node->region_count; ++i) {
    PESTLE_TRY(put_block(c, pestle_node_body(node, i)));
  }
  pestle_put_uint(c->out, node->result_count);
  for (uint32_t i = 0; i < node->result_count; ++i) {
    PESTLE_TRY(put_type(c, node->results[i].type));
    PESTLE_TRY(number(c, &node->results[i]));
  }
  return NULL;
}

static pestle_status_t put_block(canon_t* c, const pestle_block_t* block) {
  const pestle_map_value_t* found =
      pestle_map_find_u64(&c->orders, (uintptr_t)block);
  if (!found) return PESTLE_ERROR(INTERNAL, "a block was not walked");
  const order_t* order = found->ptr;
  pestle_put_uint(c->out, block->argument_count);
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    PESTLE_TRY(put_type(c, block->arguments[i]->type));
    PESTLE_TRY(number(c, block->arguments[i]));
  }
  pestle_put_uint(c->out, order->node_count);
  for (size_t i = 0; i < order->node_count; ++i) {
    PESTLE_TRY(put_node(c, order->nodes[i]));
  }
  return NULL;
}

// --- Modules ---

static pestle_status_t add_function(canon_t* c, const pestle_function_t* f) {
  bool added;
  uint64_t next = pestle_map_size(&c->functions);
  pestle_map_value_t* slot =
      pestle_map_put(&c->functions, f->name, strlen(f->name), &added);
  if (!slot) return PESTLE_OOM();
  if (!added) return NULL;
  slot->u64 = next;
  return pestle_vec_push(&c->queue, f) ? NULL : PESTLE_OOM();
}

// Which arguments and results are strings, and which strings there are.
static void put_strings(canon_t* c, const pestle_function_t* f) {
  const char* text =
      pestle_dialect_attrs_find(f->dialect_attrs, PESTLE_FUNCTION_DICTIONARY);
  if (!text) return;
  pestle_put_text(c->out, "dictionary");
  pestle_put_text(c->out, text);
  for (uint32_t k = 0; k < f->argument_attr_count; ++k) {
    if (pestle_dialect_attrs_find(f->argument_attrs[k],
                                  PESTLE_FUNCTION_STRINGS)) {
      pestle_put_text(c->out, "argument of strings");
      pestle_put_uint(c->out, k);
    }
  }
  for (uint32_t k = 0; k < f->result_attr_count; ++k) {
    if (pestle_dialect_attrs_find(f->result_attrs[k],
                                  PESTLE_FUNCTION_STRINGS)) {
      pestle_put_text(c->out, "result of strings");
      pestle_put_uint(c->out, k);
    }
  }
}

// Everything in the queue and what that calls.
// Which result takes which argument's memory, and which arguments are given up:
// part of what a caller may rely on. How many devices share the work decides
// what each of them computes.
static void put_contract(canon_t* c, const pestle_function_t* f) {
  put_strings(c, f);
  bool shared = pestle_module_device_count(f->module) > 1;
  static const char* const keys[] = {"mhlo.sharding", "sdy.sharding"};
  for (uint32_t i = 0; i < f->argument_attr_count; ++i) {
    int64_t result = pestle_function_aliased_result(f, i);
    bool donor = pestle_function_argument_is_donor(f, i);
    if (result < 0 && !donor) continue;
    pestle_put_text(c->out, donor ? "donor" : "alias");
    pestle_put_uint(c->out, i);
    pestle_put_int(c->out, result);
  }
  for (uint32_t i = 0; shared && i < f->module->dialect_attrs.count; ++i) {
    const pestle_dialect_attr_t* attr = &f->module->dialect_attrs.data[i];
    if (strncmp(attr->key, "sdy.mesh.", 9) != 0) continue;
    pestle_put_text(c->out, attr->key);
    pestle_put_text(c->out, attr->text);
  }
  for (uint32_t i = 0; shared && i < 2; ++i) {
    for (uint32_t k = 0; k < f->argument_attr_count; ++k) {
      const char* text =
          pestle_dialect_attrs_find(f->argument_attrs[k], keys[i]);
      if (!text) continue;
      pestle_put_text(c->out, "argument sharding");
      pestle_put_uint(c->out, k);
      pestle_put_text(c->out, text);
    }
    for (uint32_t k = 0; k < f->result_attr_count; ++k) {
      const char* text = pestle_dialect_attrs_find(f->result_attrs[k], keys[i]);
      if (!text) continue;
      pestle_put_text(c->out, "result sharding");
      pestle_put_uint(c->out, k);
      pestle_put_text(c->out, text);
    }
  }
}

static pestle_status_t put_queue(canon_t* c, size_t* done) {
  for (; *done < c->queue.size; ++*done) {
    const pestle_block_t* block = c->queue.data[*done]->body->block;
    order_t* order;
    PESTLE_TRY(order_block(c, block, 0, &order));
    PESTLE_TRY(put_block(c, block));
    const pestle_function_t* f = c->queue.data[*done];
    put_contract(c, f);
    for (uint32_t i = 0; i < f->result_shape_count; ++i) {
      if (!f->result_shape_of[i]) continue;
      pestle_put_text(c->out, "shape of");
      pestle_put_uint(c->out, i);
      pestle_put_uint(c->out, f->result_shape_of[i]);
    }
  }
  return pestle_strbuf_status(c->out);
}

static pestle_status_t put_module(canon_t* c, const pestle_module_t* module) {
  size_t done = 0;
  // Reading the entry does not change the module.
  const pestle_function_t* entry =
      pestle_module_entry((pestle_module_t*)(uintptr_t)module);
  pestle_put_text(c->out, "pestle graph 1");
  pestle_world_shape_t world = pestle_module_world(module);
  if (world.replicas > 1 || world.partitions > 1) {
    pestle_put_text(c->out, "devices");
    pestle_put_int(c->out, world.replicas);
    pestle_put_int(c->out, world.partitions);
  }
  if (entry) PESTLE_TRY(add_function(c, entry));
  PESTLE_TRY(put_queue(c, &done));
  for (const pestle_function_t* f = module->first; f; f = f->next) {
    if (f->is_private) continue;
    PESTLE_TRY(add_function(c, f));
    PESTLE_TRY(put_queue(c, &done));
  }
  return NULL;
}

pestle_status_t pestle_module_canonical(const pestle_module_t* module,
                                        pestle_strbuf_t* out,
                                        uint64_t out_hash[2]) {
  pestle_allocator_t allocator = pestle_context_allocator(module->context);
  size_t start = out->size;
  canon_t c = {.allocator = allocator, .module = module, .out = out};
  pestle_arena_init(allocator, &c.arena);
  pestle_map_init(allocator, &c.orders);
  pestle_map_init(allocator, &c.captures);
  pestle_map_init(allocator, &c.numbers);
  pestle_map_init(allocator, &c.types);
  pestle_map_init(allocator, &c.ops);
  pestle_map_init(allocator, &c.constants);
  pestle_map_init(allocator, &c.functions);
  pestle_vec_init(&c.queue, allocator);
  pestle_status_t status = put_module(&c, module);
  if (!status) status = pestle_strbuf_status(out);
  if (!status) {
    pestle_hash128_t hash =
        pestle_hash128(out->data + start, out->size - start);
    out_hash[0] = hash.low;
    out_hash[1] = hash.high;
  }
  pestle_vec_deinit(&c.queue);
  pestle_map_deinit(&c.functions);
  pestle_map_deinit(&c.constants);
  pestle_map_deinit(&c.ops);
  pestle_map_deinit(&c.types);
  pestle_map_deinit(&c.numbers);
  pestle_map_deinit(&c.captures);
  pestle_map_deinit(&c.orders);
  pestle_arena_deinit(&c.arena);
  return status;
}

pestle_status_t pestle_module_signature(const pestle_module_t* module,
                                        uint64_t out_hash[2]) {
  PESTLE_REQUIRE(module && out_hash, "a module and a place for its hash");
  pestle_strbuf_t bytes;
  pestle_strbuf_init(pestle_context_allocator(module->context), &bytes);
  pestle_status_t status = pestle_module_canonical(module, &bytes, out_hash);
  pestle_strbuf_deinit(&bytes);
  return status;
}
