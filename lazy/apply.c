// SPDX-License-Identifier: Apache-2.0
// Recording: an op is placed, its operands broadcast, its type inferred, and what
// comes of it is a node, or a view of data.
#include "lazy/lazy.h"

#include <stdio.h>

#include "base/require.h"
#include "base/status_copy.h"
#include "ir/infer.h"
#include "lazy/place.h"

enum { FEW = 8 };

static pestle_status_t name_op(pestle_op_t op, pestle_status_t status) {
  return status ? pestle_op_wrap_error(op, &(pestle_loc_t){0}, NULL, status)
                : NULL;
}

// --- Operands ---

// What may not be recorded: a module's own structure, effects, ops whose results
// only a module says.
static bool is_recordable(pestle_op_t op) {
  const pestle_op_info_t* info = pestle_op_info(op);
  return info &&
         !(info->flags & (PESTLE_OP_FLAG_TERMINATOR | PESTLE_OP_FLAG_EFFECT)) &&
         info->rule != PESTLE_RULE_TYPES && op != PESTLE_OP_CALL &&
         op != PESTLE_OP_FUSION;
}

static pestle_status_t check_operands(const pestle_record_t* r) {
  for (size_t i = 0; i < r->operand_count; ++i) {
    const pestle_array_t* operand = r->operands[i];
    if (!operand) {
      return name_op(r->op,
                     PESTLE_ERROR(INVALID_ARGUMENT, "operand %zu is NULL", i));
    }
    if (pestle_array_node_state(operand) == PESTLE_NODE_FAILED) {
      return pestle_status_retain(operand->failure);
    }
  }
  return NULL;
}

// --- Broadcasting of elementwise ops ---

static bool same_dims(const pestle_type_t* a, const pestle_type_t* b) {
  return a->rank == b->rank &&
         !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof(int64_t));
}

// Whether operand |index| of |op| may have rank 0 beside others.
static bool takes_scalar(pestle_op_t op, size_t index) {
  return (op == PESTLE_OP_SELECT && index == 0) ||
         (op == PESTLE_OP_CLAMP && index != 1);
}

typedef struct shapes_text_t {
  char text[160];
} shapes_text_t;

// "(2, 3) and (4)"; cut off where there is no room.
static shapes_text_t shapes_text(const pestle_record_t* r) {
  shapes_text_t out = {""};
  size_t at = 0, room = sizeof(out.text);
  for (size_t i = 0; i < r->operand_count && at < room; ++i) {
    const pestle_type_t* type = &r->operands[i]->type;
    int size = snprintf(out.text + at, room - at, i ? " and (" : "(");
    for (int32_t k = 0; k < type->rank && size >= 0 && at + (size_t)size < room;
         ++k) {
      at += (size_t)size;
      size = snprintf(out.text + at, room - at, k ? ", %lld" : "%lld",
                      (long long)type->dims[k]);
    }
    at += size > 0 ? (size_t)size : 0;
    if (at < room) {
      size = snprintf(out.text + at, room - at, ")");
      at += size > 0 ? (size_t)size : 0;
    }
  }
  return out;
}

static pestle_status_t merge_shape(const pestle_record_t* r, size_t index,
                                   pestle_type_t* shape) {
  const pestle_type_t* type = &r->operands[index]->type;
  for (int32_t i = 1; i <= type->rank; ++i) {
    int64_t dim = type->dims[type->rank - i];
    if (i > shape->rank) {
      memmove(shape->dims + 1, shape->dims,
              (size_t)shape->rank * sizeof(int64_t));
      shape->dims[0] = dim;
      ++shape->rank;
    } else if (shape->dims[shape->rank - i] == 1) {
      shape->dims[shape->rank - i] = dim;
    } else if (dim != 1 && dim != shape->dims[shape->rank - i]) {
      return PESTLE_ERROR(
          INVALID_ARGUMENT,
          "operands of shapes %s do not broadcast: axis %d of operand %zu has "
          "%lld elements, others have %lld",
          shapes_text(r).text, -(int)i, index, (long long)dim,
          (long long)shape->dims[shape->rank - i]);
    }
  }
  return NULL;
}

// |*out_array| is |a| in the dims of |shape|.
static pestle_status_t broadcast(pestle_array_t* a, const pestle_type_t* shape,
                                 pestle_array_t** out_array) {
  pestle_type_t type = *shape;
  int64_t axes[PESTLE_MAX_RANK];
  type.dtype = a->type.dtype;
  for (int32_t i = 0; i < a->type.rank; ++i)
    axes[i] = shape->rank - a->type.rank + i;
  pestle_attr_t attr = {PESTLE_ATTR_broadcast_dimensions,
                        PESTLE_ATTR_KIND_I64S,
                        {.i64s = {axes, (size_t)a->type.rank}}};
  pestle_record_t r = {.op = PESTLE_OP_BROADCAST_IN_DIM,
                       .operands = &a,
                       .operand_count = 1,
                       .parts = {&attr, 1, &type, NULL, 0}};
  return pestle_array_record(&r, out_array, 1);
}

pestle_status_t pestle_array_spread(pestle_array_t* const* arrays, size_t count,
                                    pestle_array_t** out_arrays) {
  pestle_type_t shape = {.rank = 0};
  pestle_record_t r = {.operands = arrays, .operand_count = count};
  for (size_t i = 0; i < count; ++i)
    out_arrays[i] = NULL;
  for (size_t i = 0; i < count; ++i)
    PESTLE_TRY(merge_shape(&r, i, &shape));
  pestle_status_t status = NULL;
  for (size_t i = 0; !status && i < count; ++i) {
    if (!same_dims(&arrays[i]->type, &shape)) {
      status = broadcast(arrays[i], &shape, &out_arrays[i]);
      continue;
    }
    pestle_array_retain(arrays[i]);
    out_arrays[i] = arrays[i];
  }
  for (size_t i = 0; status && i < count; ++i) {
    pestle_array_release(out_arrays[i]);
    out_arrays[i] = NULL;
  }
  return status;
}

static bool needs_broadcast(const pestle_record_t* r) {
  if (!pestle_op_is_scalar(r->op)) return false;
  for (size_t i = 1; i < r->operand_count; ++i) {
    if (!same_dims(&r->operands[0]->type, &r->operands[i]->type)) return true;
  }
  return false;
}

static pestle_status_t record(const pestle_record_t* r, pestle_device_t* device,
                              pestle_array_t** out, size_t capacity);

// Records |r| with operands of one shape, but for those that stay of rank 0.
static pestle_status_t record_broadcast(const pestle_record_t* r,
                                        pestle_array_t** out, size_t capacity) {
  pestle_array_t* operands[3] = {NULL};
  pestle_type_t shape = {.rank = 0};
  if (r->operand_count > 3) {
    return name_op(
        r->op, PESTLE_ERROR(
                   INVALID_ARGUMENT, "%zu operands are given, the op takes %d",
                   r->operand_count, (int)pestle_op_info(r->op)->operands));
  }
  for (size_t i = 0; i < r->operand_count; ++i)
    PESTLE_TRY(name_op(r->op, merge_shape(r, i, &shape)));
  pestle_status_t status = NULL;
  for (size_t i = 0; !status && i < r->operand_count; ++i) {
    pestle_array_t* operand = r->operands[i];
    if (same_dims(&operand->type, &shape) ||
        (!operand->type.rank && takes_scalar(r->op, i))) {
      pestle_array_retain(operand);
      operands[i] = operand;
    } else {
      status = broadcast(operand, &shape, &operands[i]);
    }
  }
  pestle_record_t wide = *r;
  pestle_device_t* device;
  wide.operands = operands;
  if (!status) status = pestle_place(&wide, &device);
  if (!status) status = name_op(r->op, record(&wide, device, out, capacity));
  for (size_t i = 0; i < 3; ++i)
    pestle_array_release(operands[i]);
  return status;
}

// --- Types ---

// The type of an elementwise op on operands of one type; false: ask its rule.
static bool infer_at_once(const pestle_record_t* r, pestle_type_t* out_type) {
  const pestle_op_info_t* info = pestle_op_info(r->op);
  const pestle_type_t* first = &r->operands[0]->type;
  if (!pestle_op_is_scalar(r->op) || r->op == PESTLE_OP_ABS ||
      info->rule > PESTLE_RULE_TEST || info->operands != r->operand_count ||
      !pestle_dtype_is(first->dtype, info->kinds)) {
    return false;
  }
  for (size_t i = 1; i < r->operand_count; ++i) {
    if (r->operands[i]->type.dtype != first->dtype) return false;
  }
  pestle_type_assign(out_type, first);
  if (info->rule != PESTLE_RULE_SAME) out_type->dtype = PESTLE_I1;
  return true;
}

static pestle_status_t infer_with(const pestle_record_t* r,
                                  pestle_value_t* values,
                                  pestle_value_t** operands,
                                  pestle_region_t** regions,
                                  pestle_type_t* out_types, size_t capacity,
                                  size_t* out_count) {
  for (size_t i = 0; i < r->operand_count; ++i) {
    values[i] = (pestle_value_t){.type = &r->operands[i]->type};
    operands[i] = &values[i];
  }
  for (size_t i = 0; i < r->parts.body_count; ++i) {
    pestle_module_t* body =
        pestle_body_module(r->operands[0]->lazy, r->parts.bodies[i]);
    regions[i] = pestle_module_entry(body)->body;
  }
  pestle_node_spec_t spec = {.op = r->op,
                             .operands = operands,
                             .operand_count = r->operand_count,
                             .attrs = r->parts.attrs,
                             .attr_count = r->parts.attr_count,
                             .regions = regions,
                             .region_count = r->parts.body_count,
                             .type = r->parts.type};
  PESTLE_TRY(pestle_infer_types(&spec, out_types, capacity, out_count));
  for (size_t i = 0; i < *out_count && i < capacity; ++i) {
    if (!pestle_type_is_static(&out_types[i])) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "result %zu would have extents that are not known",
                          i);
    }
  }
  return NULL;
}

static pestle_status_t infer(const pestle_record_t* r, pestle_type_t* out_types,
                             size_t capacity, size_t* out_count) {
  size_t n = r->operand_count, m = r->parts.body_count;
  if (n <= FEW && m <= 2) {
    pestle_value_t values[FEW];
    pestle_value_t* operands[FEW];
    pestle_region_t* regions[2];
    return infer_with(r, values, operands, regions, out_types, capacity,
                      out_count);
  }
  pestle_arena_t arena;
  pestle_arena_init(pestle_allocator_system(), &arena);
  pestle_value_t* values = PESTLE_ARENA_ARRAY(&arena, pestle_value_t, n);
  pestle_value_t** operands = PESTLE_ARENA_ARRAY(&arena, pestle_value_t*, n);
  pestle_region_t** regions = PESTLE_ARENA_ARRAY(&arena, pestle_region_t*, m);
  pestle_status_t status = values && operands && regions
                               ? infer_with(r, values, operands, regions,
                                            out_types, capacity, out_count)
                               : PESTLE_OOM();
  pestle_arena_deinit(&arena);
  return status;
}

// --- Nodes ---

// What only nodes refer to is computed when there is so much of it.
enum { MOST_DEPTH = 512, MOST_NODES = 16384 };
#define MOST_BYTES ((int64_t)64 << 20)

static uint32_t depth_of(const pestle_record_t* r) {
  uint32_t depth = 0;
  for (size_t i = 0; i < r->operand_count; ++i) {
    const pestle_array_t* operand = r->operands[i];
    // Data keeps the depth that it had as a node.
    if (pestle_array_node_state(operand) == PESTLE_NODE_DATA) continue;
    if (operand->depth > depth) depth = operand->depth;
  }
  return depth + 1;
}

static uint32_t flags_of(const pestle_record_t* r) {
  uint32_t flags = PESTLE_NODE_PURE;
  if (r->operand_count) flags |= PESTLE_NODE_WEAK;
  for (size_t i = 0; i < r->operand_count; ++i)
    flags &= pestle_array_flags(r->operands[i]);
  return flags;
}

// The latest capture that |r| is a part of.
static uint32_t capture_of(const pestle_record_t* r) {
  uint32_t latest = 0;
  for (size_t i = 0; i < r->operand_count; ++i) {
    if (r->operands[i]->capture > latest) latest = r->operands[i]->capture;
  }
  return latest;
}

static bool reads_traced(const pestle_record_t* r) {
  for (size_t i = 0; i < r->operand_count; ++i) {
    if (pestle_array_node_state(r->operands[i]) == PESTLE_NODE_TRACED) {
      return true;
    }
  }
  return false;
}

// A node of |r|'s op, its operands and |words|.
static pestle_array_t* make_node(const pestle_record_t* r, pestle_lazy_t* lazy,
                                 pestle_device_t* device,
                                 const pestle_words_t* words) {
  size_t operands = r->operand_count * sizeof(pestle_array_t*);
  pestle_array_t* node = pestle_array_make(
      lazy, device, reads_traced(r) ? PESTLE_NODE_TRACED : PESTLE_NODE_LAZY,
      operands + words->size * sizeof(uint32_t));
  if (!node) return NULL;
  node->op = (uint16_t)r->op;
  node->operand_count = (uint32_t)r->operand_count;
  node->operands = (pestle_array_t**)(void*)(node + 1);
  node->spec = (uint32_t*)(void*)(node->operands + r->operand_count);
  node->spec_words = (uint32_t)words->size;
  node->depth = depth_of(r);
  node->capture = capture_of(r);
  atomic_init(&node->flags, flags_of(r));
  if (!r->operand_count) pestle_array_keep_context(node);
  for (size_t i = 0; i < r->operand_count; ++i) {
    node->operands[i] = r->operands[i];
    pestle_array_hold(r->operands[i]);
  }
  if (words->size) {
    memcpy(node->spec, words->data, words->size * sizeof(uint32_t));
  }
  return node;
}

// The results of |tuple|, an op that has any number of them.
static pestle_status_t make_gets(pestle_array_t* tuple,
                                 const pestle_type_t* types, size_t count,
                                 pestle_array_t** out) {
  pestle_record_t r = {.op = (pestle_op_t)PESTLE_LAZY_GET,
                       .operands = &tuple,
                       .operand_count = 1};
  for (uint32_t i = 0; i < count; ++i) {
    pestle_words_t words = {.data = &i, .size = 1};
    out[i] = make_node(&r, tuple->lazy, tuple->device, &words);
    if (!out[i]) {
      while (i--) {
        pestle_array_release(out[i]);
        out[i] = NULL;
      }
      return PESTLE_OOM();
    }
    out[i]->type = types[i];
  }
  return NULL;
}

static bool is_pressing(const pestle_array_t* node) {
  const pestle_lazy_t* lazy = node->lazy;
  if (pestle_array_node_state(node) != PESTLE_NODE_LAZY) return false;
  // A constant or a number that is computed is an argument of captures that read it.
  if (pestle_array_flags(node) & (PESTLE_NODE_PURE | PESTLE_NODE_WEAK)) {
    return node->depth >= MOST_DEPTH;
  }
  return node->depth >= MOST_DEPTH ||
         atomic_load_explicit(&lazy->held_nodes, memory_order_relaxed) >=
             MOST_NODES ||
         atomic_load_explicit(&lazy->held_bytes, memory_order_relaxed) >=
             MOST_BYTES;
}

static pestle_status_t record_node(const pestle_record_t* r,
                                   pestle_device_t* device,
                                   const pestle_words_t* words,
                                   const pestle_type_t* types, size_t count,
                                   pestle_array_t** out) {
  pestle_lazy_t* lazy;
  if (r->operand_count) {
    lazy = r->operands[0]->lazy;
  } else {
    PESTLE_TRY(pestle_lazy_of(pestle_device_context(device), &lazy));
  }
  pestle_array_t* node = make_node(r, lazy, device, words);
  if (!node) return PESTLE_OOM();
  if (pestle_op_info(r->op)->results == 1) {
    pestle_type_assign(&node->type, &types[0]);
    out[0] = node;
  } else {
    node->type = (pestle_type_t){.dtype = PESTLE_NONE};
    node->part_count = (uint16_t)count;
    atomic_fetch_or(&node->flags, PESTLE_NODE_TUPLE);
    pestle_status_t status = make_gets(node, types, count, out);
    pestle_array_release(node);
    PESTLE_TRY(status);
  }
  // What fails is found again by whoever needs the array.
  if (is_pressing(out[0])) {
    pestle_status_release(pestle_array_evaluate(out, 1, NULL));
  }
  return NULL;
}

// --- Entry ---

static pestle_status_t record_typed(const pestle_record_t* r,
                                    pestle_device_t* device,
                                    const pestle_type_t* types, size_t count,
                                    pestle_array_t** out) {
  const pestle_node_parts_t* p = &r->parts;
  if (pestle_op_info(r->op)->fuse == PESTLE_FUSE_VIEW && !r->no_views) {
    PESTLE_TRY(pestle_array_view(r, types, out));
    if (out[0]) return NULL;
  }
  pestle_words_t words;
  pestle_vec_init(&words, pestle_allocator_system());
  bool is_plain = !p->attr_count && !p->type && !p->body_count;
  pestle_status_t status =
      is_plain || pestle_spec_write(&words, p) ? NULL : PESTLE_OOM();
  if (!status) status = record_node(r, device, &words, types, count, out);
  pestle_vec_deinit(&words);
  return status;
}

static pestle_status_t record_many(const pestle_record_t* r,
                                   pestle_device_t* device,
                                   pestle_array_t** out, size_t capacity) {
  pestle_type_t few[2];
  size_t count;
  PESTLE_TRY(infer(r, few, 2, &count));
  if (count > capacity || count > UINT16_MAX || !count) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the op has %zu results, there is room for %zu", count,
                        capacity);
  }
  if (count <= 2) return record_typed(r, device, few, count, out);
  pestle_allocator_t allocator = pestle_allocator_system();
  pestle_type_t* types = pestle_alloc_array(allocator, count, sizeof(*types));
  if (!types) return PESTLE_OOM();
  size_t room = count;
  pestle_status_t status = infer(r, types, room, &count);
  if (!status) status = record_typed(r, device, types, count, out);
  pestle_dealloc(allocator, types, room * sizeof(*types));
  return status;
}

static pestle_status_t record(const pestle_record_t* r, pestle_device_t* device,
                              pestle_array_t** out, size_t capacity) {
  pestle_type_t type;
  if (capacity && r->operand_count && infer_at_once(r, &type)) {
    return record_typed(r, device, &type, 1, out);
  }
  return record_many(r, device, out, capacity);
}

pestle_status_t pestle_array_record(const pestle_record_t* r,
                                    pestle_array_t** out, size_t capacity) {
  pestle_device_t* device;
  for (size_t i = 0; i < capacity; ++i)
    out[i] = NULL;
  const pestle_op_info_t* info = pestle_op_info(r->op);
  if (!info) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "there is no op number %d",
                        (int)r->op);
  }
  PESTLE_TRY(check_operands(r));
  if (!is_recordable(r->op)) {
    return PESTLE_ERROR(UNSUPPORTED, "'%s' is no function of arrays",
                        info->name);
  }
  PESTLE_TRY(pestle_place(r, &device));
  if (needs_broadcast(r)) return record_broadcast(r, out, capacity);
  return name_op(r->op, record(r, device, out, capacity));
}

// --- Modules as ops ---

// Whether |module|'s entry takes |operands|. Its body is to be copied, so it calls
// nothing.
static pestle_status_t check_entry(const pestle_module_t* module,
                                   pestle_array_t* const* operands,
                                   size_t count) {
  const pestle_function_t* entry =
      pestle_module_entry((pestle_module_t*)(uintptr_t)module);
  const pestle_block_t* block =
      entry && entry->body ? entry->body->block : NULL;
  if (!block || !block->last || block->last->op != PESTLE_OP_RETURN) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the module has no function with a body");
  }
  if (count != block->argument_count) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the module takes %zu arguments, %zu are given",
                        (size_t)block->argument_count, count);
  }
  for (size_t i = 0; i < count; ++i) {
    if (pestle_type_equal(block->arguments[i]->type, &operands[i]->type)) {
      continue;
    }
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "argument %zu is %s, the module takes %s", i,
                        pestle_type_text(&operands[i]->type).text,
                        pestle_type_text(block->arguments[i]->type).text);
  }
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    if (n->op != PESTLE_OP_CALL) continue;
    return PESTLE_ERROR(UNSUPPORTED,
                        "the module's entry calls functions: it can be run, "
                        "and is no part of another graph yet");
  }
  return NULL;
}

static pestle_status_t record_inline(const pestle_record_t* r,
                                     const pestle_node_t* last,
                                     pestle_device_t* device,
                                     pestle_array_t** out) {
  size_t count = last->operand_count;
  pestle_allocator_t allocator = pestle_allocator_system();
  pestle_type_t* types = pestle_alloc_array(allocator, count, sizeof(*types));
  if (!types) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    types[i] = *pestle_node_operand(last, i)->type;
  pestle_words_t words;
  pestle_vec_init(&words, allocator);
  pestle_status_t status =
      pestle_spec_write(&words, &r->parts) ? NULL : PESTLE_OOM();
  if (!status) status = record_node(r, device, &words, types, count, out);
  pestle_vec_deinit(&words);
  pestle_dealloc(allocator, types, count * sizeof(*types));
  return status;
}

// The return of the body that is kept under |body|: it says what |module| did.
static const pestle_node_t* return_of(pestle_lazy_t* lazy, uint32_t body) {
  return pestle_module_entry(pestle_body_module(lazy, body))->body->block->last;
}

static pestle_status_t check_room(const pestle_node_t* last, size_t capacity) {
  size_t count = last->operand_count;
  if (count && count <= capacity && count <= UINT16_MAX) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "the module has %zu results, there is room for %zu",
                      count, capacity);
}

pestle_status_t pestle_array_inline(pestle_module_t* module,
                                    pestle_array_t* const* operands,
                                    size_t count, pestle_array_t** out,
                                    size_t capacity) {
  PESTLE_REQUIRE(module && operands && count && (out || !capacity),
                 "a module, operands and a place for its results");
  for (size_t i = 0; i < capacity; ++i)
    out[i] = NULL;
  pestle_device_t* device;
  uint32_t body;
  pestle_record_t r = {.op = PESTLE_OP_CALL,
                       .operands = operands,
                       .operand_count = count,
                       .parts = {NULL, 0, NULL, &body, 1}};
  PESTLE_TRY(check_operands(&r));
  PESTLE_TRY(check_entry(module, operands, count));
  PESTLE_TRY(pestle_place(&r, &device));
  PESTLE_TRY(pestle_body_of(operands[0]->lazy, module, &body));
  const pestle_node_t* last = return_of(operands[0]->lazy, body);
  PESTLE_TRY(check_room(last, capacity));
  return record_inline(&r, last, device, out);
}

static pestle_status_t check_branch(const pestle_node_t* first,
                                    const pestle_node_t* other, size_t index) {
  bool same = first->operand_count == other->operand_count;
  for (uint32_t i = 0; same && i < first->operand_count; ++i) {
    same = pestle_type_equal(pestle_node_operand(first, i)->type,
                             pestle_node_operand(other, i)->type);
  }
  if (same) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "branch %zu has results of other types than branch 0",
                      index);
}

pestle_status_t pestle_array_branch(pestle_module_t* const* branches,
                                    size_t branch_count,
                                    pestle_array_t* const* operands,
                                    size_t count, pestle_array_t** out,
                                    size_t capacity) {
  enum { BRANCHES = 255 };
  PESTLE_REQUIRE(branches && branch_count && branch_count <= BRANCHES &&
                     operands && count && (out || !capacity),
                 "1 to 255 branches, operands and a place for the results");
  for (size_t i = 0; i < capacity; ++i)
    out[i] = NULL;
  pestle_device_t* device;
  uint32_t bodies[BRANCHES];
  pestle_record_t r = {.op = PESTLE_OP_CASE,
                       .operands = operands,
                       .operand_count = count,
                       .parts = {NULL, 0, NULL, bodies, branch_count}};
  PESTLE_TRY(check_operands(&r));
  const pestle_type_t* index = &operands[0]->type;
  if (index->rank || index->dtype != PESTLE_I32) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the index of a branch is %s, not tensor<i32>",
                        pestle_type_text(index).text);
  }
  PESTLE_TRY(pestle_place(&r, &device));
  pestle_lazy_t* lazy = operands[0]->lazy;
  for (size_t i = 0; i < branch_count; ++i) {
    PESTLE_REQUIRE(branches[i], "branches that are modules");
    PESTLE_TRY(check_entry(branches[i], operands + 1, count - 1));
    PESTLE_TRY(pestle_body_of(lazy, branches[i], &bodies[i]));
    PESTLE_TRY(check_branch(return_of(lazy, bodies[0]),
                            return_of(lazy, bodies[i]), i));
  }
  PESTLE_TRY(check_room(return_of(lazy, bodies[0]), capacity));
  return record_inline(&r, return_of(lazy, bodies[0]), device, out);
}

// Writes the numbers of |op|'s bodies.
static pestle_status_t find_bodies(const pestle_array_op_t* op,
                                   uint32_t* out_ids) {
  if (!op->operand_count || !op->operands || !op->operands[0]) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "an op with bodies needs operands");
  }
  for (size_t i = 0; i < op->body_count; ++i) {
    PESTLE_TRY(
        pestle_body_of(op->operands[0]->lazy, op->bodies[i], &out_ids[i]));
  }
  return NULL;
}

pestle_status_t pestle_array_apply(const pestle_array_op_t* op,
                                   pestle_array_t** out, size_t capacity) {
  enum { BODIES = 255 };
  PESTLE_REQUIRE(op && (out || !capacity), "an op and a place for its results");
  for (size_t i = 0; i < capacity; ++i)
    out[i] = NULL;
  pestle_array_op_t full = {0};
  size_t size = op->struct_size;
  PESTLE_REQUIRE(size >= sizeof(size_t), "struct_size");
  memcpy(&full, op, size < sizeof(full) ? size : sizeof(full));
  PESTLE_REQUIRE(full.operands || !full.operand_count, "operands");
  PESTLE_REQUIRE(full.bodies || !full.body_count, "bodies");
  PESTLE_REQUIRE(full.operand_count < UINT32_MAX && full.body_count <= BODIES,
                 "fewer operands and bodies");
  pestle_attr_t attrs[PESTLE_MAX_ATTRS];
  uint32_t ids[BODIES];
  size_t struct_size = sizeof(size_t);
  if (full.attrs) memcpy(&struct_size, full.attrs, sizeof(size_t));
  PESTLE_REQUIRE(struct_size >= sizeof(size_t), "struct_size of attributes");
  if (full.body_count) PESTLE_TRY(find_bodies(&full, ids));
  pestle_record_t r = {
      .op = full.op,
      .operands = full.operands,
      .operand_count = full.operand_count,
      .parts = {attrs, pestle_attrs_read(full.op, full.attrs, attrs), full.type,
                ids, full.body_count},
      .device = full.device};
  return pestle_array_record(&r, out, capacity);
}
