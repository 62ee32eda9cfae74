// SPDX-License-Identifier: Apache-2.0
#include "compile/locations.h"

#include <stdlib.h>
#include <string.h>

#include "passes/util.h"

void pestle_locations_init(pestle_allocator_t allocator,
                           pestle_locations_t* out_locations) {
  memset(out_locations, 0, sizeof(*out_locations));
  pestle_vec_init(&out_locations->list, allocator);
  pestle_vec_init(&out_locations->ops, allocator);
  pestle_vec_init(&out_locations->added, allocator);
  pestle_vec_init(&out_locations->weak, allocator);
  pestle_map_init(allocator, &out_locations->numbers);
  pestle_map_init(allocator, &out_locations->heirs);
}

void pestle_locations_deinit(pestle_locations_t* locations) {
  pestle_vec_deinit(&locations->list);
  pestle_vec_deinit(&locations->ops);
  pestle_vec_deinit(&locations->added);
  pestle_vec_deinit(&locations->weak);
  pestle_map_deinit(&locations->numbers);
  pestle_map_deinit(&locations->heirs);
}

// --- Numbers ---

// Strings are interned in the module: equal ones are one.
typedef struct place_t {
  const char *name, *file;
  uint32_t line, column;
} place_t;

static bool has_location(const pestle_node_t* node) {
  return node->loc.name || node->loc.file || node->loc.line;
}

static place_t key_of(const pestle_node_t* node) {
  return (place_t){node->loc.name, node->loc.file, node->loc.line,
                   node->loc.column};
}

static bool only_moves(pestle_op_t op) {
  return pestle_op_info(op)->fuse == PESTLE_FUSE_VIEW;
}

static bool is_counted(const pestle_node_t* node) {
  return !pestle_pass_is_stored(node) && !pestle_pass_is_terminator(node);
}

// The number of |node|'s location, which it gets if it is new.
static pestle_status_t number_of(pestle_locations_t* l,
                                 const pestle_node_t* node,
                                 uint32_t* out_number) {
  *out_number = (uint32_t)l->list.size;
  if (has_location(node)) {
    place_t key = key_of(node);
    bool added = false;
    pestle_map_value_t* v =
        pestle_map_put(&l->numbers, &key, sizeof(key), &added);
    if (!v) return PESTLE_OOM();
    if (!added) {
      *out_number = (uint32_t)v->u64;
      // An Add of ONNX is a broadcast and an add.
      pestle_op_t* op = &l->list.data[v->u64].op;
      if (only_moves(*op)) *op = (pestle_op_t)node->op;
      return NULL;
    }
    v->u64 = *out_number;
  }
  pestle_location_t location = {(pestle_op_t)node->op, node->loc};
  return pestle_vec_push(&l->list, location) ? NULL : PESTLE_OOM();
}

static pestle_status_t number_block(pestle_locations_t* l,
                                    pestle_block_t* block) {
  for (pestle_node_t* n = block->first; n; n = n->next) {
    if (is_counted(n)) {
      pestle_located_t op = {.node = n};
      PESTLE_TRY(number_of(l, n, &op.location));
      if (!pestle_vec_push(&l->ops, op)) return PESTLE_OOM();
    }
    if (!pestle_pass_has_bodies(n)) continue;
    for (uint32_t r = 0; r < n->region_count; ++r)
      PESTLE_TRY(number_block(l, pestle_node_body(n, r)));
  }
  return NULL;
}

pestle_status_t pestle_locations_number(pestle_locations_t* locations,
                                        pestle_module_t* module) {
  for (pestle_function_t* f = module->first; f; f = f->next)
    PESTLE_TRY(number_block(locations, f->body->block));
  return NULL;
}

pestle_status_t pestle_locations_settle(pestle_locations_t* locations) {
  for (size_t i = 0; i < locations->ops.size; ++i) {
    pestle_located_t* op = &locations->ops.data[i];
    const pestle_node_t* heir = pestle_node_heir(op->node);
    bool added = false;
    pestle_map_value_t* v =
        pestle_map_put(&locations->heirs, &heir, sizeof(heir), &added);
    if (!v) return PESTLE_OOM();
    op->next = added ? 0 : (uint32_t)v->u64;
    v->u64 = i + 1;
  }
  return NULL;
}

// --- Asking ---

void pestle_locations_clear(pestle_locations_t* locations) {
  pestle_vec_clear(&locations->added);
  pestle_vec_clear(&locations->weak);
}

// Adds |number|, at whose location |node| is.
static pestle_status_t add_own(pestle_locations_t* l, const pestle_node_t* node,
                               uint32_t number) {
  bool made =
      only_moves((pestle_op_t)node->op) && !only_moves(l->list.data[number].op);
  bool ok = made ? pestle_vec_push(&l->weak, number)
                 : pestle_vec_push(&l->added, number);
  return ok ? NULL : PESTLE_OOM();
}

pestle_status_t pestle_locations_add(pestle_locations_t* locations,
                                     const pestle_node_t* node) {
  if (!is_counted(node)) return NULL;
  if (has_location(node)) {
    place_t key = key_of(node);
    const pestle_map_value_t* v =
        pestle_map_find(&locations->numbers, &key, sizeof(key));
    if (v) PESTLE_TRY(add_own(locations, node, (uint32_t)v->u64));
  }
  const pestle_map_value_t* first =
      pestle_map_find(&locations->heirs, &node, sizeof(node));
  for (uint64_t i = first ? first->u64 : 0; i;) {
    const pestle_located_t* op = &locations->ops.data[i - 1];
    if (!pestle_vec_push(&locations->added, op->location)) return PESTLE_OOM();
    i = op->next;
  }
  return NULL;
}

static int by_number(const void* a, const void* b) {
  uint32_t x = *(const uint32_t*)a, y = *(const uint32_t*)b;
  return (x > y) - (x < y);
}

const uint32_t* pestle_locations_sorted(pestle_locations_t* locations,
                                        uint32_t* out_count) {
  bool weak = !locations->added.size;
  uint32_t* numbers = weak ? locations->weak.data : locations->added.data;
  size_t count = weak ? locations->weak.size : locations->added.size, kept = 0;
  if (count) qsort(numbers, count, sizeof(*numbers), by_number);
  for (size_t i = 0; i < count; ++i) {
    if (!kept || numbers[i] != numbers[kept - 1]) numbers[kept++] = numbers[i];
  }
  *out_count = (uint32_t)kept;
  return numbers;
}
