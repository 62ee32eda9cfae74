// SPDX-License-Identifier: Apache-2.0
#include "compile/memory_gaps.h"

#include "base/mem.h"

pestle_status_t pestle_gaps_init(pestle_arena_t* arena, size_t most,
                                 pestle_gaps_t* out_gaps) {
  *out_gaps = (pestle_gaps_t){.used = 1};
  // Between |most| used ranges, one more while two are joined.
  out_gaps->gaps = PESTLE_ARENA_ARRAY(arena, pestle_gap_t, most + 3);
  pestle_map_init(arena->allocator, &out_gaps->begins);
  pestle_map_init(arena->allocator, &out_gaps->ends);
  return out_gaps->gaps ? NULL : PESTLE_OOM();
}

void pestle_gaps_deinit(pestle_gaps_t* gaps) {
  pestle_map_deinit(&gaps->begins);
  pestle_map_deinit(&gaps->ends);
}

// --- The treap ---

static bool is_before(const pestle_gap_t* a, const pestle_gap_t* b) {
  return a->size != b->size ? a->size < b->size : a->offset < b->offset;
}

// Splits the tree |at| into what comes before |key| and the rest.
static void split(pestle_gaps_t* g, uint32_t at, const pestle_gap_t* key,
                  uint32_t* out_left, uint32_t* out_right) {
  // Links to be filled, from the top down.
  while (at) {
    pestle_gap_t* node = &g->gaps[at];
    if (is_before(node, key)) {
      *out_left = at;
      out_left = &node->right;
      at = node->right;
    } else {
      *out_right = at;
      out_right = &node->left;
      at = node->left;
    }
  }
  *out_left = *out_right = 0;
}

static uint32_t join(pestle_gaps_t* g, uint32_t left, uint32_t right) {
  uint32_t root = 0, *link = &root;
  while (left && right) {
    if (g->gaps[left].priority > g->gaps[right].priority) {
      *link = left;
      link = &g->gaps[left].right;
      left = *link;
    } else {
      *link = right;
      link = &g->gaps[right].left;
      right = *link;
    }
  }
  *link = left ? left : right;
  return root;
}

static void insert(pestle_gaps_t* g, uint32_t gap) {
  pestle_gap_t* node = &g->gaps[gap];
  uint32_t* link = &g->root;
  while (*link && g->gaps[*link].priority >= node->priority) {
    pestle_gap_t* other = &g->gaps[*link];
    link = is_before(other, node) ? &other->right : &other->left;
  }
  uint32_t below = *link;
  *link = gap;
  split(g, below, node, &node->left, &node->right);
}

static void take_out(pestle_gaps_t* g, uint32_t gap) {
  const pestle_gap_t* node = &g->gaps[gap];
  uint32_t* link = &g->root;
  while (*link != gap) {
    pestle_gap_t* other = &g->gaps[*link];
    link = is_before(other, node) ? &other->right : &other->left;
  }
  *link = join(g, node->left, node->right);
}

// The smallest gap of at least |size| bytes, or 0.
static uint32_t smallest(const pestle_gaps_t* g, int64_t size) {
  uint32_t found = 0;
  for (uint32_t at = g->root; at;) {
    bool fits = g->gaps[at].size >= size;
    if (fits) found = at;
    at = fits ? g->gaps[at].left : g->gaps[at].right;
  }
  return found;
}

// --- Ranges ---

static pestle_status_t add(pestle_gaps_t* g, int64_t offset, int64_t size) {
  uint32_t gap = g->unused ? g->unused : g->used++;
  if (gap == g->unused) g->unused = g->gaps[gap].left;
  // Any spread will do; it is the same in each run.
  uint32_t priority = (gap + (uint32_t)(offset >> 6)) * UINT32_C(0x9e3779b1);
  priority ^= priority >> 15;
  g->gaps[gap] = (pestle_gap_t){
      .offset = offset, .size = size, .priority = priority * 0x85ebca6bu};
  if (!pestle_map_set_u64(&g->begins, (uint64_t)offset, gap) ||
      !pestle_map_set_u64(&g->ends, (uint64_t)(offset + size), gap)) {
    return PESTLE_OOM();
  }
  insert(g, gap);
  return NULL;
}

static void drop(pestle_gaps_t* g, uint32_t gap) {
  const pestle_gap_t* node = &g->gaps[gap];
  pestle_map_remove_u64(&g->begins, (uint64_t)node->offset);
  pestle_map_remove_u64(&g->ends, (uint64_t)(node->offset + node->size));
  take_out(g, gap);
  g->gaps[gap].left = g->unused;
  g->unused = gap;
}

pestle_status_t pestle_gaps_take(pestle_gaps_t* gaps, int64_t size,
                                 int64_t* out_offset) {
  uint32_t gap = size ? smallest(gaps, size) : 0;
  if (!gap) {
    *out_offset = gaps->top;
    gaps->top += size;
    return NULL;
  }
  pestle_gap_t found = gaps->gaps[gap];
  *out_offset = found.offset;
  drop(gaps, gap);
  if (found.size == size) return NULL;
  return add(gaps, found.offset + size, found.size - size);
}

pestle_status_t pestle_gaps_give(pestle_gaps_t* gaps, int64_t offset,
                                 int64_t size) {
  if (!size) return NULL;
  const pestle_map_value_t* before =
      pestle_map_find_u64(&gaps->ends, (uint64_t)offset);
  if (before) {
    uint32_t gap = (uint32_t)before->u64;
    size += gaps->gaps[gap].size;
    offset = gaps->gaps[gap].offset;
    drop(gaps, gap);
  }
  if (offset + size == gaps->top) {
    gaps->top = offset;
    return NULL;
  }
  const pestle_map_value_t* behind =
      pestle_map_find_u64(&gaps->begins, (uint64_t)(offset + size));
  if (behind) {
    uint32_t gap = (uint32_t)behind->u64;
    size += gaps->gaps[gap].size;
    drop(gaps, gap);
  }
  return add(gaps, offset, size);
}
