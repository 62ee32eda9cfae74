// SPDX-License-Identifier: Apache-2.0
#include "compile/custom.h"

#include <string.h>

#include "base/map.h"

typedef struct names_t {
  const pestle_context_t* context;
  pestle_map_t seen;
  pestle_strbuf_t missing;
  pestle_strbuf_t* key;
} names_t;

// A name that was not seen before.
static void add(names_t* n, const char* name) {
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

static pestle_status_t walk(names_t* n, const pestle_module_t* module) {
  for (const pestle_function_t* f = module->first; f; f = f->next) {
    const pestle_node_t* node = NULL;
    while ((node = pestle_region_next(f->body, node))) {
      if (node->op == PESTLE_OP_CUSTOM && !node->region_count) {
        return pestle_node_error(node, PESTLE_STATUS_UNSUPPORTED,
                                 "'%s' has no body; give it a decomposition",
                                 PESTLE_NODE_STR(node, name));
      }
      if (node->op != PESTLE_OP_CUSTOM_CALL) continue;
      const char* name = PESTLE_NODE_STR(node, call_target_name);
      bool added;
      if (!pestle_map_put(&n->seen, name, strlen(name), &added)) {
        return PESTLE_ERROR(OUT_OF_MEMORY, "collecting custom calls");
      }
      if (added) add(n, name);
    }
  }
  PESTLE_TRY(pestle_strbuf_status(&n->missing));
  if (!n->missing.size) return NULL;
  return PESTLE_ERROR(NOT_FOUND,
                      "module '%s' calls %s, for which the context has no "
                      "function; give it one under each name with "
                      "pestle_context_register_custom_call()",
                      module->name, pestle_strbuf_cstr(&n->missing));
}

pestle_status_t pestle_custom_calls_key(const pestle_context_t* context,
                                        const pestle_module_t* module,
                                        pestle_strbuf_t* key) {
  pestle_allocator_t allocator = pestle_context_allocator(context);
  names_t n = {.context = context, .key = key};
  pestle_map_init(allocator, &n.seen);
  pestle_strbuf_init(allocator, &n.missing);
  pestle_status_t status = walk(&n, module);
  pestle_strbuf_deinit(&n.missing);
  pestle_map_deinit(&n.seen);
  return status;
}
