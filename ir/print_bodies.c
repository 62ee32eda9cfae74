// SPDX-License-Identifier: Apache-2.0
#include "ir/print_bodies.h"

#include "base/mem.h"
#include "ir/equal.h"

void pestle_print_bodies_init(pestle_allocator_t allocator,
                              pestle_print_bodies_t* out_bodies) {
  pestle_arena_init(allocator, &out_bodies->arena);
  pestle_map_init(allocator, &out_bodies->name_of);
  pestle_map_init(allocator, &out_bodies->taken);
  pestle_map_init(allocator, &out_bodies->latest);
  pestle_vec_init(&out_bodies->nodes, allocator);
}

void pestle_print_bodies_deinit(pestle_print_bodies_t* bodies) {
  pestle_vec_deinit(&bodies->nodes);
  pestle_map_deinit(&bodies->latest);
  pestle_map_deinit(&bodies->taken);
  pestle_map_deinit(&bodies->name_of);
  pestle_arena_deinit(&bodies->arena);
}

const char* pestle_print_bodies_name(const pestle_print_bodies_t* bodies,
                                     const pestle_node_t* node) {
  const pestle_map_value_t* found =
      pestle_map_find_u64(&bodies->name_of, (uintptr_t)node);
  return found ? found->ptr : "";
}

// What equal bodies have in common at least.
static void make_key(const pestle_node_t* node, pestle_strbuf_t* out) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_type_t* type = pestle_node_operand(node, i)->type;
    pestle_strbuf_append_bytes(out, &type, sizeof(type));
  }
  for (uint32_t i = 0; i < node->result_count; ++i) {
    pestle_strbuf_append_bytes(out, &node->results[i].type, sizeof(void*));
  }
  pestle_strbuf_append_c(out, PESTLE_NODE_STR(node, name));
}

// Takes "name.impl", or that with the first number that makes it free.
static pestle_status_t take_name(pestle_print_bodies_t* bodies,
                                 const pestle_node_t* node,
                                 pestle_strbuf_t* text) {
  const char* name = PESTLE_NODE_STR(node, name);
  bool added = false;
  for (unsigned n = 0; !added; ++n) {
    pestle_strbuf_clear(text);
    pestle_strbuf_appendf(text, n ? "%s.impl_%u" : "%s.impl", name, n);
    PESTLE_TRY(pestle_strbuf_status(text));
    pestle_str_t view = pestle_strbuf_view(text);
    if (!pestle_map_put(&bodies->taken, view.data, view.size, &added)) {
      return PESTLE_OOM();
    }
  }
  char* kept = pestle_arena_strdup(&bodies->arena, pestle_strbuf_cstr(text));
  bool noted =
      kept && pestle_map_set_u64_ptr(&bodies->name_of, (uintptr_t)node, kept) &&
      pestle_vec_push(&bodies->nodes, node);
  return noted ? NULL : PESTLE_OOM();
}

static pestle_status_t name_with(pestle_print_bodies_t* bodies,
                                 const pestle_node_t* node,
                                 pestle_strbuf_t* text) {
  bool added;
  make_key(node, text);
  PESTLE_TRY(pestle_strbuf_status(text));
  pestle_str_t key = pestle_strbuf_view(text);
  pestle_map_value_t* slot =
      pestle_map_put(&bodies->latest, key.data, key.size, &added);
  if (!slot) return PESTLE_OOM();
  const pestle_node_t* latest = added ? NULL : slot->ptr;
  if (latest && !bodies->apart &&
      pestle_region_equal(latest->regions[0], node->regions[0])) {
    const char* name = pestle_print_bodies_name(bodies, latest);
    return pestle_map_set_u64_ptr(&bodies->name_of, (uintptr_t)node,
                                  (void*)(uintptr_t)name)
               ? NULL
               : PESTLE_OOM();
  }
  slot->ptr = (void*)(uintptr_t)node;
  return take_name(bodies, node, text);
}

static pestle_status_t name_body(pestle_print_bodies_t* bodies,
                                 const pestle_node_t* node) {
  pestle_strbuf_t text;
  pestle_strbuf_init(bodies->arena.allocator, &text);
  pestle_status_t status = name_with(bodies, node, &text);
  pestle_strbuf_deinit(&text);
  return status;
}

pestle_status_t pestle_print_bodies_assign(pestle_print_bodies_t* bodies,
                                           const pestle_module_t* module) {
  for (const pestle_function_t* f = module->first; f; f = f->next) {
    if (!pestle_map_set_str(&bodies->taken, pestle_str(f->name), 1)) {
      return PESTLE_OOM();
    }
  }
  for (const pestle_function_t* f = module->first; f; f = f->next) {
    const pestle_node_t* n = NULL;
    while ((n = pestle_region_next(f->body, n))) {
      if (n->op != PESTLE_OP_CUSTOM || !n->region_count) continue;
      PESTLE_TRY(name_body(bodies, n));
    }
  }
  return NULL;
}
