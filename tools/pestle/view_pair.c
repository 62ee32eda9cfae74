// SPDX-License-Identifier: Apache-2.0
// Which op of a fused graph a launch computes. The plan says which places of the model
// a launch is for, the graph's text which its ops come from: launches and ops, both in
// the order in which they run, are aligned so that they share as many as can be. One op
// may take several launches (a concatenation one a part), and none.
#include <stdlib.h>
#include <string.h>

#include "view.h"

// Launch and op are not further apart than so much of their order.
enum { BAND = 400, KERNEL_NAME = 31 };

typedef struct places_t {
  uint32_t* ids;  // ascending, each once
  size_t count;
} places_t;

typedef struct item_t {
  size_t index;  // of the step or node
  places_t places;
  pestle_str_t name;
} item_t;

typedef struct pairing_t {
  pestle_arena_t arena;
  const cli_graph_t* graph;
  const pestle_plan_header_t* plan;
  const char* strings;
  pestle_map_t places;  // text -> id
  item_t *launches, *nodes;
  size_t launch_count, node_count;
} pairing_t;

static const void* section(const pairing_t* p, pestle_plan_section_t s) {
  return (const char*)p->plan + s.offset;
}

// --- Places ---

static int by_id(const void* a, const void* b) {
  uint32_t x = *(const uint32_t*)a, y = *(const uint32_t*)b;
  return x < y ? -1 : x > y;
}

static void sort_places(places_t* places) {
  size_t kept = 0;
  qsort(places->ids, places->count, sizeof(*places->ids), by_id);
  for (size_t i = 0; i < places->count; ++i) {
    if (kept && places->ids[kept - 1] == places->ids[i]) continue;
    places->ids[kept++] = places->ids[i];
  }
  places->count = kept;
}

static size_t count_common(const places_t* a, const places_t* b) {
  size_t common = 0;
  for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
    common += a->ids[i] == b->ids[j];
    size_t next = i + (a->ids[i] <= b->ids[j]);
    j += a->ids[i] >= b->ids[j];
    i = next;
  }
  return common;
}

static bool add_place(pairing_t* p, places_t* places, pestle_str_t text) {
  if (!text.size) return true;
  bool added;
  pestle_map_value_t* value =
      pestle_map_put(&p->places, text.data, text.size, &added);
  if (!value) return false;
  if (added) value->u64 = pestle_map_size(&p->places);
  places->ids[places->count++] = (uint32_t)value->u64;
  return true;
}

// As the graph's text has it: a name, else file":line:column (view_graph.c).
static const char* text_of(pairing_t* p, const pestle_plan_location_t* l) {
  if (p->strings[l->name]) return p->strings + l->name;
  if (!p->strings[l->file]) return "";
  char place[40];
  snprintf(place, sizeof(place), "\":%u:%u", l->line, l->column);
  size_t file = strlen(p->strings + l->file), size = strlen(place);
  char* text = pestle_arena_alloc(&p->arena, file + size + 1, 1);
  if (!text) return "";
  memcpy(text, p->strings + l->file, file);
  memcpy(text + file, place, size + 1);
  return text;
}

// --- Launches and ops ---

static pestle_status_t collect_launches(pairing_t* p) {
  const pestle_plan_step_t* steps = section(p, p->plan->steps);
  const pestle_plan_kernel_t* kernels = section(p, p->plan->kernels);
  const pestle_plan_location_t* locations = section(p, p->plan->locations);
  const uint32_t* ids = section(p, p->plan->location_ids);
  size_t count = (size_t)p->plan->steps.count;
  p->launches = PESTLE_ARENA_ARRAY(&p->arena, item_t, count + 1);
  if (!p->launches) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    const pestle_plan_step_t* s = &steps[i];
    if (s->kind != PESTLE_PLAN_LAUNCH && s->kind != PESTLE_PLAN_CALL) continue;
    item_t* item = &p->launches[p->launch_count++];
    *item = (item_t){.index = i};
    if (s->kind == PESTLE_PLAN_LAUNCH)
      item->name = pestle_str(p->strings + kernels[s->kernel].name);
    item->places.ids =
        PESTLE_ARENA_ARRAY(&p->arena, uint32_t, s->location_count + 1u);
    if (!item->places.ids) return PESTLE_OOM();
    for (uint32_t j = 0; j < s->location_count; ++j) {
      const char* text = text_of(p, &locations[ids[s->first_location + j]]);
      if (!add_place(p, &item->places, pestle_str(text))) return PESTLE_OOM();
    }
    sort_places(&item->places);
  }
  return NULL;
}

static size_t count_inner(const cli_graph_t* g, size_t node) {
  size_t end = node + 1;
  while (end < g->nodes.size && g->nodes.data[end].parent >= (int32_t)node)
    ++end;
  return end - node;
}

static pestle_status_t collect_nodes(pairing_t* p) {
  const cli_graph_t* g = p->graph;
  p->nodes = PESTLE_ARENA_ARRAY(&p->arena, item_t, g->nodes.size + 1);
  if (!p->nodes) return PESTLE_OOM();
  for (size_t i = 0; i < g->nodes.size; ++i) {
    if (!cli_graph_may_run(g, i)) continue;
    const cli_graph_node_t* n = &g->nodes.data[i];
    item_t* item = &p->nodes[p->node_count++];
    *item = (item_t){.index = i, .name = n->label.size ? n->label : n->op};
    // What is in a fusion is the fusion's; a loop's body has launches of its own.
    bool is_fusion = pestle_str_equal_c(n->op, "fusion");
    size_t inner = is_fusion ? count_inner(g, i) : 1;
    item->places.ids = PESTLE_ARENA_ARRAY(&p->arena, uint32_t, inner);
    if (!item->places.ids) return PESTLE_OOM();
    for (size_t j = 0; j < inner; ++j) {
      if (!add_place(p, &item->places, g->nodes.data[i + j].location))
        return PESTLE_OOM();
    }
    sort_places(&item->places);
  }
  return NULL;
}

// --- Alignment ---

// Kernels are called as their ops, cut, and with a number.
static bool is_called(pestle_str_t kernel, pestle_str_t op) {
  size_t end = pestle_str_rfind_char(kernel, '_');
  if (end > kernel.size) return false;
  pestle_str_t stem = pestle_str_slice(kernel, 0, end);
  pestle_str_t head = pestle_str_slice(op, 0, KERNEL_NAME);
  return stem.size && pestle_str_starts_with(head, stem) &&
         (stem.size == head.size || stem.size + 2 >= KERNEL_NAME);
}

// How alike they are: at most 1 for shared places and as much for the name.
static float score(const item_t* launch, const item_t* node) {
  size_t common = count_common(&launch->places, &node->places);
  size_t all = launch->places.count + node->places.count - common;
  float places = all ? (float)common / (float)all : 0;
  float name = is_called(launch->name, node->name) ? 1 : 0;
  return places + name;
}

// best[i][j]: of the first i launches to the first j nodes of the band, where launch
// i - 1 takes node j - 1 or one before.
static pestle_status_t align(pairing_t* p, int32_t* out) {
  size_t rows = p->launch_count, columns = p->node_count;
  size_t width = columns < 2 * BAND ? columns : 2 * BAND;
  if (!rows || !columns) return NULL;
  float* before = PESTLE_ARENA_ARRAY(&p->arena, float, columns + 1);
  float* now = PESTLE_ARENA_ARRAY(&p->arena, float, columns + 1);
  // Which node is the last that a launch took, in its band.
  uint8_t* took = pestle_arena_alloc(&p->arena, rows * (width + 1), 1);
  size_t* begins = PESTLE_ARENA_ARRAY(&p->arena, size_t, rows);
  if (!before || !now || !took || !begins) return PESTLE_OOM();
  memset(before, 0, (columns + 1) * sizeof(*before));
  for (size_t i = 0; i < rows; ++i) {
    size_t middle = i * columns / rows;
    size_t begin = middle > width / 2 ? middle - width / 2 : 0;
    if (begin + width > columns) begin = columns - width;
    begins[i] = begin;
    for (size_t j = 0; j <= begin; ++j)
      now[j] = before[j];
    for (size_t j = begin; j < begin + width; ++j) {
      float with = before[j + 1] + score(&p->launches[i], &p->nodes[j]);
      bool is_taken = with > now[j];
      now[j + 1] = is_taken ? with : now[j];
      took[i * (width + 1) + (j - begin)] = is_taken;
    }
    for (size_t j = begin + width; j < columns; ++j)
      now[j + 1] = now[begin + width];
    float* other = before;
    before = now;
    now = other;
  }
  // Backwards: the last node that may still be taken.
  for (size_t i = rows, limit = columns; i-- > 0;) {
    size_t begin = begins[i], j = limit;
    if (j > begin + width) j = begin + width;
    while (j > begin && !took[i * (width + 1) + (j - 1 - begin)])
      --j;
    if (j <= begin) continue;
    limit = j;
    if (score(&p->launches[i], &p->nodes[j - 1]) > 0)
      out[p->launches[i].index] = (int32_t)p->nodes[j - 1].index;
  }
  return NULL;
}

pestle_status_t cli_graph_pair(const cli_graph_t* graph,
                               const pestle_plan_header_t* plan, int32_t* out) {
  pairing_t p = {.graph = graph, .plan = plan};
  pestle_arena_init(pestle_allocator_system(), &p.arena);
  pestle_map_init(pestle_allocator_system(), &p.places);
  p.strings = section(&p, plan->strings);
  for (uint64_t i = 0; i < plan->steps.count; ++i)
    out[i] = -1;
  pestle_status_t status = collect_launches(&p);
  if (!status) status = collect_nodes(&p);
  if (!status) status = align(&p, out);
  pestle_map_deinit(&p.places);
  pestle_arena_deinit(&p.arena);
  return status;
}
