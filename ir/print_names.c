// SPDX-License-Identifier: Apache-2.0
// Names of values and functions in printed text: the module's own where they are free and
// can be read again, numbers otherwise.
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "ir/print_internal.h"
#include "ir/text.h"

void pestle_print_names_init(pestle_allocator_t allocator,
                             pestle_print_names_t* out_names) {
  pestle_arena_init(allocator, &out_names->arena);
  pestle_map_init(allocator, &out_names->name_of);
  pestle_map_init(allocator, &out_names->taken);
}

void pestle_print_names_deinit(pestle_print_names_t* names) {
  pestle_map_deinit(&names->taken);
  pestle_map_deinit(&names->name_of);
  pestle_arena_deinit(&names->arena);
}

// Counters that a nested region continues and its end takes back, with the
// wishes that became taken inside.
typedef struct scope_t {
  uint64_t next_value, next_argument, next_suffix;
  PESTLE_VEC(const char*) wishes;
} scope_t;

static pestle_status_t set_name(pestle_print_names_t* names, const void* key,
                                const char* name) {
  if (!name || !pestle_map_set_u64_ptr(&names->name_of, (uintptr_t)key,
                                       (void*)(uintptr_t)name)) {
    return PESTLE_OOM();
  }
  return NULL;
}

static pestle_status_t set_number(pestle_print_names_t* names, const void* key,
                                  const char* prefix, uint64_t number) {
  pestle_strbuf_t text;
  pestle_strbuf_init(names->arena.allocator, &text);
  pestle_strbuf_append_c(&text, prefix);
  pestle_strbuf_append_u64(&text, number);
  pestle_status_t status = pestle_strbuf_status(&text);
  if (!status) {
    status =
        set_name(names, key,
                 pestle_arena_strdup(&names->arena, pestle_strbuf_cstr(&text)));
  }
  pestle_strbuf_deinit(&text);
  return status;
}

static bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '.' || c == '-';
}

// |wish| with every other byte as '_', and a letter in front of a number.
static void clean_wish(const char* wish, pestle_strbuf_t* out) {
  if (*wish >= '0' && *wish <= '9') pestle_strbuf_append_char(out, '_');
  for (; *wish; ++wish) {
    pestle_strbuf_append_char(out, is_name_char(*wish) ? *wish : '_');
  }
}

static pestle_status_t take_wish(pestle_print_names_t* names, scope_t* scope,
                                 const void* key, pestle_strbuf_t* text) {
  size_t size = text->size;
  while (pestle_map_find_str(&names->taken, pestle_strbuf_view(text))) {
    text->data[size] = 0;
    text->size = size;
    pestle_strbuf_append_char(text, '_');
    pestle_strbuf_append_u64(text, scope->next_suffix++);
    PESTLE_TRY(pestle_strbuf_status(text));
  }
  char* name = pestle_arena_strdup(&names->arena, pestle_strbuf_cstr(text));
  PESTLE_TRY(set_name(names, key, name));
  if (!pestle_map_set_str(&names->taken, pestle_str(name), 1) ||
      !pestle_vec_push(&scope->wishes, name)) {
    return PESTLE_OOM();
  }
  return NULL;
}

// |*number| is taken when the value has no usable wish.
static pestle_status_t assign(pestle_print_names_t* names, scope_t* scope,
                              const void* key, const char* wish,
                              const char* prefix, uint64_t* number) {
  pestle_strbuf_t text;
  pestle_strbuf_init(names->arena.allocator, &text);
  if (wish) clean_wish(wish, &text);
  pestle_status_t status = pestle_strbuf_status(&text);
  if (!status) {
    status = pestle_text_is_wish(pestle_strbuf_view(&text))
                 ? take_wish(names, scope, key, &text)
                 : set_number(names, key, prefix, (*number)++);
  }
  pestle_strbuf_deinit(&text);
  return status;
}

static pestle_status_t assign_region(pestle_print_names_t* names,
                                     scope_t* outer,
                                     const pestle_region_t* region);

static const char* name_of(const pestle_print_names_t* names, const void* key) {
  const pestle_map_value_t* name =
      pestle_map_find_u64(&names->name_of, (uintptr_t)key);
  return name ? name->ptr : "<from outside>";
}

// The argument that |block|'s argument |index| shares its name with: the text
// of a while names the arguments of condition and body once.
static const pestle_value_t* named_as(const pestle_block_t* block,
                                      uint32_t index) {
  const pestle_node_t* owner = block->region->owner;
  if (!owner || owner->op != PESTLE_OP_WHILE) return NULL;
  const pestle_block_t* first = pestle_node_body(owner, 0);
  if (block == first || index >= first->argument_count) return NULL;
  return first->arguments[index];
}

static pestle_status_t assign_argument(pestle_print_names_t* names,
                                       scope_t* scope,
                                       const pestle_block_t* block,
                                       uint32_t index) {
  const pestle_value_t* argument = block->arguments[index];
  const pestle_value_t* shared = named_as(block, index);
  const char* wish = argument->name;
  if (shared) {
    wish = name_of(names, shared);
    if (!pestle_text_is_wish(pestle_str(wish))) wish = NULL;
  }
  return assign(names, scope, argument, wish, "arg", &scope->next_argument);
}

static pestle_status_t assign_block(pestle_print_names_t* names, scope_t* scope,
                                    const pestle_block_t* block) {
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    PESTLE_TRY(assign_argument(names, scope, block, i));
  }
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    if (!n->result_count) continue;
    PESTLE_TRY(
        assign(names, scope, n, n->results[0].name, "", &scope->next_value));
  }
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    if (n->op == PESTLE_OP_CUSTOM) continue;  // a function of its own
    for (uint32_t i = 0; i < n->region_count; ++i) {
      PESTLE_TRY(assign_region(names, scope, n->regions[i]));
    }
  }
  return NULL;
}

static pestle_status_t assign_region(pestle_print_names_t* names,
                                     scope_t* outer,
                                     const pestle_region_t* region) {
  scope_t scope = *outer;
  pestle_vec_init(&scope.wishes, names->arena.allocator);
  pestle_status_t status = assign_block(names, &scope, region->block);
  for (size_t i = 0; i < scope.wishes.size; ++i) {
    pestle_map_remove(&names->taken, scope.wishes.data[i],
                      strlen(scope.wishes.data[i]));
  }
  pestle_vec_deinit(&scope.wishes);
  return status;
}

pestle_status_t pestle_print_names_assign(pestle_print_names_t* names,
                                          const pestle_region_t* body) {
  pestle_arena_reset(&names->arena);
  pestle_map_clear(&names->name_of);
  pestle_map_clear(&names->taken);
  scope_t scope = {0};
  return assign_region(names, &scope, body);
}

void pestle_print_value(const pestle_print_names_t* names,
                        const pestle_value_t* value, pestle_strbuf_t* out) {
  const void* key = value->node ? (const void*)value->node : value;
  pestle_strbuf_append_char(out, '%');
  pestle_strbuf_append_c(out, name_of(names, key));
  if (value->node && value->node->result_count > 1) {
    pestle_strbuf_append_char(out, '#');
    pestle_strbuf_append_u64(out, value->index);
  }
}

void pestle_print_results(const pestle_print_names_t* names,
                          const pestle_node_t* node, pestle_strbuf_t* out) {
  if (!node->result_count) return;
  pestle_strbuf_append_char(out, '%');
  pestle_strbuf_append_c(out, name_of(names, node));
  if (node->result_count > 1) {
    pestle_strbuf_append_char(out, ':');
    pestle_strbuf_append_u64(out, node->result_count);
  }
  pestle_strbuf_append_c(out, " = ");
}
