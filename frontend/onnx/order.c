// SPDX-License-Identifier: Apache-2.0
// The order of a graph's nodes. ONNX asks for a topological order in the file,
// not every writer keeps to it: a depth-first walk in file order leaves a good
// order as it is, mends a bad one and finds cycles. It keeps its own stack,
// since a chain may be as long as the file.
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "frontend/onnx/importer.h"

typedef PESTLE_VEC(uint32_t) ids_t;

typedef struct order_t {
  const pestle_onnx_graph_t* graph;
  pestle_map_t producers;  // name -> node index + 1
  ids_t deps;              // those of node i: deps[starts[i], starts[i + 1])
  size_t* starts;
  uint8_t* state;  // 0 untouched, 1 on the stack, 2 done
  const pestle_onnx_node_t** out;
  size_t out_count;
} order_t;

typedef struct frame_t {
  uint32_t node;
  size_t next;  // dependency to look at
} frame_t;

typedef PESTLE_VEC(frame_t) frames_t;

// Names that a subgraph defines itself hide those of the graph around it.
typedef struct shadow_t {
  const struct shadow_t* outer;
  pestle_map_t names;
} shadow_t;

static bool is_shadowed(const shadow_t* shadow, pestle_str_t name) {
  for (; shadow; shadow = shadow->outer) {
    if (pestle_map_find_str(&shadow->names, name)) return true;
  }
  return false;
}

static pestle_status_t add_dep(order_t* order, const shadow_t* shadow,
                               pestle_str_t name) {
  if (!name.size || is_shadowed(shadow, name)) return NULL;
  const pestle_map_value_t* producer =
      pestle_map_find_str(&order->producers, name);
  if (!producer) return NULL;
  if (!pestle_vec_push(&order->deps, (uint32_t)(producer->u64 - 1))) {
    return PESTLE_OOM();
  }
  return NULL;
}

static pestle_status_t add_node_deps(order_t* order, const shadow_t* shadow,
                                     const pestle_onnx_node_t* node);

static pestle_status_t fill_shadow(pestle_map_t* names,
                                   const pestle_onnx_graph_t* graph) {
  bool ok = true;
  for (size_t i = 0; ok && i < graph->input_count; ++i) {
    ok = pestle_map_set_str(names, graph->inputs[i].name, 1);
  }
  for (size_t i = 0; ok && i < graph->initializer_count; ++i) {
    ok = pestle_map_set_str(names, graph->initializers[i].name, 1);
  }
  for (size_t i = 0; ok && i < graph->node_count; ++i) {
    const pestle_onnx_node_t* node = &graph->nodes[i];
    for (uint32_t j = 0; ok && j < node->output_count; ++j) {
      ok = pestle_map_set_str(names, node->outputs[j], 1);
    }
  }
  return ok ? NULL : PESTLE_OOM();
}

static pestle_status_t add_graph_deps(order_t* order, const shadow_t* outer,
                                      const pestle_onnx_graph_t* graph) {
  shadow_t shadow = {.outer = outer};
  pestle_map_init(order->producers.allocator, &shadow.names);
  pestle_status_t status = fill_shadow(&shadow.names, graph);
  for (size_t i = 0; !status && i < graph->node_count; ++i) {
    status = add_node_deps(order, &shadow, &graph->nodes[i]);
  }
  for (size_t i = 0; !status && i < graph->output_count; ++i) {
    status = add_dep(order, &shadow, graph->outputs[i].name);
  }
  pestle_map_deinit(&shadow.names);
  return status;
}

static pestle_status_t add_node_deps(order_t* order, const shadow_t* shadow,
                                     const pestle_onnx_node_t* node) {
  for (uint32_t i = 0; i < node->input_count; ++i) {
    PESTLE_TRY(add_dep(order, shadow, node->inputs[i]));
  }
  for (uint32_t i = 0; i < node->attr_count; ++i) {
    if (!node->attrs[i].graph) continue;
    PESTLE_TRY(add_graph_deps(order, shadow, node->attrs[i].graph));
  }
  return NULL;
}

static pestle_status_t add_producers(order_t* order) {
  const pestle_onnx_graph_t* graph = order->graph;
  for (size_t i = 0; i < graph->node_count; ++i) {
    const pestle_onnx_node_t* node = &graph->nodes[i];
    for (uint32_t j = 0; j < node->output_count; ++j) {
      pestle_str_t name = node->outputs[j];
      if (!name.size) continue;
      bool added;
      pestle_map_value_t* slot =
          pestle_map_put(&order->producers, name.data, name.size, &added);
      if (!slot) return PESTLE_OOM();
      if (!added) {
        return PESTLE_ERROR(MALFORMED,
                            "two nodes of graph '%.*s' make '%.*s': node %zu "
                            "'%.*s' (%.*s) and node %zu '%.*s' (%.*s)",
                            PESTLE_STR_ARG(graph->name), PESTLE_STR_ARG(name),
                            (size_t)slot->u64 - 1,
                            PESTLE_STR_ARG(graph->nodes[slot->u64 - 1].name),
                            PESTLE_STR_ARG(graph->nodes[slot->u64 - 1].op_type),
                            i, PESTLE_STR_ARG(node->name),
                            PESTLE_STR_ARG(node->op_type));
      }
      slot->u64 = i + 1;
    }
  }
  return NULL;
}

// Names the nodes of the cycle that the top of the stack closes.
static pestle_status_t cycle_error(const order_t* order, const frames_t* stack,
                                   uint32_t back_to) {
  pestle_strbuf_t text;
  pestle_strbuf_init(order->producers.allocator, &text);
  size_t first = stack->size;
  while (first > 0 && stack->data[first - 1].node != back_to)
    --first;
  size_t shown = 0;
  for (size_t i = first ? first - 1 : 0; i < stack->size; ++i, ++shown) {
    const pestle_onnx_node_t* node = &order->graph->nodes[stack->data[i].node];
    if (shown == 8) {
      pestle_strbuf_append_c(&text, " and more");
      break;
    }
    pestle_str_t name = node->name.size          ? node->name
                        : node->output_count > 0 ? node->outputs[0]
                                                 : node->op_type;
    pestle_strbuf_appendf(&text, "%s'%.*s' (%.*s)", shown ? ", " : "",
                          PESTLE_STR_ARG(name), PESTLE_STR_ARG(node->op_type));
  }
  pestle_status_t status = PESTLE_ERROR(
      MALFORMED,
      "graph '%.*s' has a cycle; each of these nodes reads the next: %s",
      PESTLE_STR_ARG(order->graph->name), pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
  return status;
}

static pestle_status_t visit(order_t* order, frames_t* stack, uint32_t root) {
  pestle_vec_clear(stack);
  if (!pestle_vec_push(stack, (frame_t){root, order->starts[root]})) {
    return PESTLE_OOM();
  }
  order->state[root] = 1;
  while (stack->size) {
    frame_t* top = &pestle_vec_last(stack);
    if (top->next == order->starts[top->node + 1]) {
      order->state[top->node] = 2;
      order->out[order->out_count++] = &order->graph->nodes[top->node];
      --stack->size;
      continue;
    }
    uint32_t dep = order->deps.data[top->next++];
    if (order->state[dep] == 1) return cycle_error(order, stack, dep);
    if (order->state[dep] == 2) continue;
    order->state[dep] = 1;
    if (!pestle_vec_push(stack, (frame_t){dep, order->starts[dep]})) {
      return PESTLE_OOM();
    }
  }
  return NULL;
}

static pestle_status_t sort(order_t* order, frames_t* stack) {
  const pestle_onnx_graph_t* graph = order->graph;
  PESTLE_TRY(add_producers(order));
  for (size_t i = 0; i < graph->node_count; ++i) {
    order->starts[i] = order->deps.size;
    PESTLE_TRY(add_node_deps(order, NULL, &graph->nodes[i]));
  }
  order->starts[graph->node_count] = order->deps.size;
  for (size_t i = 0; i < graph->node_count; ++i) {
    if (order->state[i] == 0) PESTLE_TRY(visit(order, stack, (uint32_t)i));
  }
  return NULL;
}

pestle_status_t pestle_onnx_order(const pestle_onnx_graph_t* graph,
                                  pestle_arena_t* arena,
                                  const pestle_onnx_node_t*** out_nodes) {
  if (graph->node_count >= UINT32_MAX) {
    return PESTLE_ERROR(MALFORMED, "graph '%.*s' has too many nodes",
                        PESTLE_STR_ARG(graph->name));
  }
  order_t order = {.graph = graph};
  order.starts = PESTLE_ARENA_ARRAY(arena, size_t, graph->node_count + 1);
  order.state = pestle_arena_alloc_zero(arena, graph->node_count + 1, 1);
  order.out = PESTLE_ARENA_ARRAY(arena, const pestle_onnx_node_t*,
                                 graph->node_count + 1);
  if (!order.starts || !order.state || !order.out) return PESTLE_OOM();
  pestle_map_init(arena->allocator, &order.producers);
  pestle_vec_init(&order.deps, arena->allocator);
  frames_t stack;
  pestle_vec_init(&stack, arena->allocator);
  pestle_status_t status = sort(&order, &stack);
  pestle_vec_deinit(&stack);
  pestle_vec_deinit(&order.deps);
  pestle_map_deinit(&order.producers);
  *out_nodes = order.out;
  return status;
}
