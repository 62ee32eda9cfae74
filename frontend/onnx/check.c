// SPDX-License-Identifier: Apache-2.0
// The op table, and the one answer to all ops of a model that it lacks.
#include "base/mem.h"
#include "frontend/onnx/ops.h"

static const pestle_onnx_op_t ops[] = {
#define PESTLE_ONNX_OP(name, domain, since, until, min_in, max_in, max_out, \
                       known, bounded, texts, fn)                           \
  {#name,                                                                   \
   domain,                                                                  \
   since,                                                                   \
   until,                                                                   \
   min_in,                                                                  \
   max_in,                                                                  \
   max_out,                                                                 \
   known,                                                                   \
   bounded,                                                                 \
   texts,                                                                   \
   pestle_onnx_import_##fn},
#include "frontend/onnx/onnx_ops.def"
};

int64_t pestle_onnx_opset(const pestle_onnx_model_t* model,
                          pestle_str_t domain) {
  for (size_t i = 0; i < model->opset_count; ++i) {
    if (pestle_str_equal(model->opsets[i].domain, domain)) {
      return model->opsets[i].version;
    }
  }
  // A file from before IR 3 has no opset_import and means opset 1; com.microsoft has no
  // other, and tools that write its nodes may not import it.
  bool one = pestle_str_equal_c(domain, "com.microsoft") ||
             (!domain.size && model->ir_version < 3);
  return one ? 1 : 0;
}

static bool has_name(const pestle_onnx_op_t* op,
                     const pestle_onnx_node_t* node) {
  return pestle_str_equal_c(node->op_type, op->name) &&
         pestle_str_equal_c(node->domain, op->domain);
}

const pestle_onnx_op_t* pestle_onnx_op_find(const pestle_onnx_node_t* node,
                                            int64_t opset) {
  for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); ++i) {
    if (has_name(&ops[i], node) && opset >= ops[i].since &&
        opset <= ops[i].until) {
      return &ops[i];
    }
  }
  return NULL;
}

// One op that nothing imports.
typedef struct missing_t {
  pestle_str_t op_type, domain;
  int64_t opset;
  size_t count;
  pestle_str_t names[3];
  size_t name_count;
  struct missing_t* next;
} missing_t;

typedef struct check_t {
  const pestle_onnx_import_t* import;
  pestle_arena_t arena;
  missing_t* first;
  size_t kinds;
  size_t* visits;  // of each function; a body is looked at once
  size_t at_top;   // nodes of the main graph among them
  int depth;       // of functions around
} check_t;

static pestle_status_t note_missing(check_t* check,
                                    const pestle_onnx_node_t* node,
                                    int64_t opset) {
  missing_t** slot = &check->first;
  while (*slot && !(pestle_str_equal((*slot)->op_type, node->op_type) &&
                    pestle_str_equal((*slot)->domain, node->domain))) {
    slot = &(*slot)->next;
  }
  if (!*slot) {
    // A hostile file could make this list, and its search, as long as itself.
    if (check->kinds >= 256) return NULL;
    *slot = PESTLE_ARENA_NEW(&check->arena, missing_t);
    if (!*slot) return PESTLE_OOM();
    (*slot)->op_type = node->op_type;
    (*slot)->domain = node->domain;
    (*slot)->opset = opset;
    ++check->kinds;
  }
  missing_t* missing = *slot;
  ++missing->count;
  pestle_str_t name = node->name;
  if (!name.size && node->output_count) name = node->outputs[0];
  if (missing->name_count < 3) missing->names[missing->name_count++] = name;
  return NULL;
}

static pestle_status_t check_graph(check_t* check,
                                   const pestle_onnx_model_t* model,
                                   const pestle_onnx_graph_t* graph,
                                   bool is_top);

static pestle_status_t check_function(check_t* check,
                                      const pestle_onnx_model_t* model,
                                      const pestle_onnx_function_t* function,
                                      bool is_top) {
  // Deeper ones are refused where they are called.
  if (check->depth >= PESTLE_ONNX_MOST_CALLS) return NULL;
  if (check->visits[function - model->functions]++) return NULL;
  pestle_onnx_model_t inner = pestle_onnx_function_model(model, function);
  ++check->depth;
  pestle_status_t status = check_graph(check, &inner, &function->body, is_top);
  --check->depth;
  return status;
}

static pestle_status_t check_graph(check_t* check,
                                   const pestle_onnx_model_t* model,
                                   const pestle_onnx_graph_t* graph,
                                   bool is_top) {
  for (size_t i = 0; i < graph->node_count; ++i) {
    const pestle_onnx_node_t* node = &graph->nodes[i];
    int64_t opset = pestle_onnx_opset(model, node->domain);
    const pestle_onnx_function_t* function =
        pestle_onnx_find_function(model, node);
    if (function) {
      PESTLE_TRY(check_function(check, model, function, is_top));
    } else if (!pestle_onnx_op_find(node, opset)) {
      PESTLE_TRY(note_missing(check, node, opset));
      check->at_top += is_top;
    }
    for (uint32_t j = 0; j < node->attr_count; ++j) {
      if (!node->attrs[j].graph) continue;
      PESTLE_TRY(check_graph(check, model, node->attrs[j].graph, false));
    }
  }
  return NULL;
}

// Why |missing| has no row that fits.
static void explain(const missing_t* missing, pestle_strbuf_t* text) {
  pestle_onnx_node_t probe = {.op_type = missing->op_type,
                              .domain = missing->domain};
  int since = 0, until = 0;
  for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); ++i) {
    if (!has_name(&ops[i], &probe)) continue;
    if (!since || ops[i].since < since) since = ops[i].since;
    if (ops[i].until > until) until = ops[i].until;
  }
  if (missing->opset == 0) {
    pestle_strbuf_append_c(text, "no opset imported");
  } else if (since) {
    pestle_strbuf_appendf(text, "opset %lld, supported %d to %d",
                          (long long)missing->opset, since, until);
  } else {
    pestle_strbuf_appendf(text, "opset %lld", (long long)missing->opset);
  }
}

// What else a person may do who has such a model.
static const char* advice_for(const missing_t* missing) {
  return pestle_str_equal_c(missing->domain, "com.microsoft.nchwc")
             ? "; weights lie as one machine wants them: save the model with "
               "ORT_ENABLE_EXTENDED"
             : "";
}

static void print_missing(const missing_t* missing, pestle_strbuf_t* text) {
  if (missing->domain.size) {
    pestle_strbuf_appendf(text, "%.*s::", PESTLE_STR_ARG(missing->domain));
  }
  pestle_strbuf_appendf(text, "%.*s (", PESTLE_STR_ARG(missing->op_type));
  explain(missing, text);
  pestle_strbuf_appendf(text, "; %zu node%s:", missing->count,
                        missing->count == 1 ? "" : "s");
  for (size_t i = 0; i < missing->name_count; ++i) {
    pestle_strbuf_appendf(text, "%s '%.*s'", i ? "," : "",
                          PESTLE_STR_ARG(missing->names[i]));
  }
  pestle_strbuf_appendf(text, "%s%s)",
                        missing->count > missing->name_count ? ", ..." : "",
                        advice_for(missing));
}

static pestle_status_t missing_error(const check_t* check) {
  pestle_strbuf_t text;
  pestle_strbuf_init(check->import->allocator, &text);
  for (const missing_t* m = check->first; m; m = m->next) {
    if (m != check->first) pestle_strbuf_append_c(&text, ", ");
    print_missing(m, &text);
  }
  pestle_status_t status = PESTLE_ERROR(
      UNSUPPORTED, "the model uses %zu op%s that Pestle cannot import: %s",
      check->kinds, check->kinds == 1 ? "" : "s", pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
  return status;
}

// A branch that is never taken may hold anything, so that subgraphs alone are
// no reason to refuse the model here.
pestle_status_t pestle_onnx_check_ops(const pestle_onnx_import_t* import) {
  check_t check = {.import = import};
  pestle_arena_init(import->allocator, &check.arena);
  const pestle_onnx_model_t* model = import->model;
  check.visits = pestle_arena_alloc_zero(
      &check.arena, (model->function_count + 1) * sizeof(size_t), 16);
  pestle_status_t status = check.visits
                               ? check_graph(&check, model, &model->graph, true)
                               : PESTLE_OOM();
  if (!status && check.at_top) status = missing_error(&check);
  pestle_arena_deinit(&check.arena);
  return status;
}
