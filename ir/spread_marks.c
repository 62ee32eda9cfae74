// SPDX-License-Identifier: Apache-2.0
// Ops that say where values lie, until a module is divided: see sharding.h.
#include <string.h>

#include "base/mem.h"
#include "ir/sharding.h"

// "{at = #sdy.sharding<@m, [..]>, manual = #sdy.axes<{"x"}>}"
static pestle_status_t write(pestle_module_t* module, pestle_str_t sharding,
                             pestle_str_t axes, const char** out) {
  pestle_strbuf_t text;
  size_t open = pestle_str_find_char(sharding, '<');
  size_t list = pestle_str_find_char(axes, '{');
  size_t end = axes.size;
  while (end && axes.data[end - 1] != '}')
    --end;
  pestle_strbuf_init(module->arena.allocator, &text);
  pestle_strbuf_append_c(&text, "{at = #sdy.sharding");
  if (open == SIZE_MAX) {
    pestle_strbuf_append_c(&text, "<>");
  } else {
    pestle_strbuf_append(&text, pestle_str_trim(pestle_str_slice(
                                    sharding, open, sharding.size)));
  }
  if (list != SIZE_MAX && end > list) {
    pestle_strbuf_append_c(&text, ", manual = #sdy.axes<");
    pestle_strbuf_append(&text, pestle_str_slice(axes, list, end));
    pestle_strbuf_append_c(&text, ">");
  }
  pestle_strbuf_append_c(&text, "}");
  pestle_status_t status = pestle_strbuf_status(&text);
  if (!status)
    status = pestle_sharding_check(module, pestle_strbuf_view(&text));
  if (!status) {
    *out = pestle_arena_strndup(&module->arena, pestle_strbuf_view(&text));
    if (!*out) status = PESTLE_OOM();
  }
  pestle_strbuf_deinit(&text);
  return status;
}

static pestle_status_t mark(pestle_builder_t* b, const char* name,
                            pestle_value_t* value, pestle_str_t sharding,
                            pestle_str_t axes, const pestle_type_t* type,
                            pestle_value_t** out) {
  const char* text;
  PESTLE_TRY(write(b->module, sharding, axes, &text));
  pestle_composite_attrs_t attrs = {
      .struct_size = sizeof(attrs), .name = name, .attributes = text};
  return pestle_op_composite(b, &value, 1, &attrs, NULL, 0, type, 1, out, 1);
}

pestle_status_t pestle_mark_local(pestle_builder_t* b, pestle_value_t* global,
                                  pestle_str_t sharding, pestle_str_t axes,
                                  const pestle_type_t* local,
                                  pestle_value_t** out) {
  return mark(b, PESTLE_MARK_LOCAL, global, sharding, axes, local, out);
}

pestle_status_t pestle_mark_global(pestle_builder_t* b, pestle_value_t* local,
                                   pestle_str_t sharding, pestle_str_t axes,
                                   const pestle_type_t* global,
                                   pestle_value_t** out) {
  return mark(b, PESTLE_MARK_GLOBAL, local, sharding, axes, global, out);
}

pestle_status_t pestle_mark_wish(pestle_builder_t* b, pestle_value_t* value,
                                 pestle_str_t sharding, pestle_value_t** out) {
  return mark(b, PESTLE_MARK_WISH, value, sharding, pestle_str(""), value->type,
              out);
}

bool pestle_is_mark(const pestle_node_t* node) {
  if (node->op != PESTLE_OP_CUSTOM) return false;
  const char* name = PESTLE_NODE_STR(node, name);
  return !strcmp(name, PESTLE_MARK_LOCAL) ||
         !strcmp(name, PESTLE_MARK_GLOBAL) || !strcmp(name, PESTLE_MARK_WISH);
}
