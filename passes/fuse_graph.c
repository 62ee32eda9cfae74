// SPDX-License-Identifier: Apache-2.0
// Items, groups and paths between them, for one block.
#include <string.h>

#include "base/mem.h"
#include "passes/fuse.h"

// Steps after which a search for a path gives up and assumes that there is one.
#define SEARCH_LIMIT 4096

// --- Items ---

uint32_t pestle_fuse_item_of(const pestle_fuse_t* f,
                             const pestle_value_t* value) {
  const pestle_node_t* node = value->node;
  return node && node->block == f->block ? (uint32_t)node->scratch
                                         : PESTLE_FUSE_NONE;
}

// Calls add(f, item) for every item that |node| needs, captures included.
static uint32_t add_deps(const pestle_fuse_t* f, const pestle_node_t* node,
                         uint32_t* out) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    uint32_t item = pestle_fuse_item_of(f, pestle_node_operand(node, i));
    if (item == PESTLE_FUSE_NONE) continue;
    if (out) out[count] = item;
    ++count;
  }
  for (uint32_t r = 0; r < node->region_count; ++r) {
    const pestle_block_t* body = pestle_node_body(node, r);
    for (const pestle_node_t* n = body->first; n; n = n->next) {
      count += add_deps(f, n, out ? out + count : NULL);
    }
  }
  return count;
}

pestle_status_t pestle_fuse_init(pestle_fuse_t* f) {
  uint32_t count = 0, deps = 0;
  for (pestle_node_t* n = f->block->first; n; n = n->next)
    n->scratch = count++;
  for (pestle_node_t* n = f->block->first; n; n = n->next) {
    deps += add_deps(f, n, NULL);
  }
  pestle_arena_t* arena = f->ctx->scratch;
  f->item_count = count;
  f->items = PESTLE_ARENA_ARRAY(arena, pestle_fuse_item_t, count + 1);
  f->groups = PESTLE_ARENA_ARRAY(arena, pestle_fuse_group_t, count + 1);
  f->deps = PESTLE_ARENA_ARRAY(arena, uint32_t, deps + 1);
  f->stack = PESTLE_ARENA_ARRAY(arena, uint32_t, count + 1);
  f->closed = PESTLE_ARENA_ARRAY(arena, uint32_t, count + 1);
  if (!f->items || !f->groups || !f->deps || !f->stack || !f->closed) {
    return PESTLE_OOM();
  }
  for (uint32_t i = 0; i <= count; ++i)
    f->closed[i] = i;
  uint32_t at = 0, dep = 0;
  for (pestle_node_t* n = f->block->first; n; n = n->next) {
    f->items[at++] = (pestle_fuse_item_t){.node = n,
                                          .group = PESTLE_FUSE_NONE,
                                          .next = PESTLE_FUSE_NONE,
                                          .dep_begin = dep};
    dep += add_deps(f, n, f->deps + dep);
  }
  // The last item stands for the nodes that emission adds.
  f->items[count] =
      (pestle_fuse_item_t){.group = PESTLE_FUSE_NONE, .dep_begin = dep};
  f->group_count = 0;
  f->stamp = 0;
  return NULL;
}

// --- Groups ---

// The items before which no way leads out to |earliest| or behind: as many from
// the front as no group has members on both sides of. A group further in front
// may need one that lies across, and so what comes later.
static uint32_t closed_before(const pestle_fuse_t* f, uint32_t earliest) {
  uint32_t* closed = f->closed;
  while (closed[earliest] != earliest) {
    closed[earliest] = closed[closed[earliest]];
    earliest = closed[earliest];
  }
  return earliest;
}

uint32_t pestle_fuse_new_group(pestle_fuse_t* f, uint32_t item,
                               pestle_fuse_kind_t kind) {
  uint32_t group = f->group_count++;
  f->groups[group] = (pestle_fuse_group_t){.kind = kind,
                                           .hero = PESTLE_FUSE_NONE,
                                           .first = PESTLE_FUSE_NONE,
                                           .min = item,
                                           .max = item};
  pestle_fuse_add(f, group, item);
  return group;
}

void pestle_fuse_add(pestle_fuse_t* f, uint32_t group, uint32_t item) {
  pestle_fuse_group_t* g = &f->groups[group];
  f->items[item].group = group;
  f->items[item].next = g->first;
  g->first = item;
  ++g->count;
  g->operands += f->items[item].node->operand_count;
  if (item < g->min) g->min = item;
  if (item > g->max) g->max = item;
  for (uint32_t i = closed_before(f, g->max); i > g->min;
       i = closed_before(f, i)) {
    f->closed[i] = i - 1;
  }
}

// --- Paths ---

// Pushes |item|, and all of its group since they run as one.
static void push_unit(pestle_fuse_t* f, uint32_t item, uint32_t* top) {
  uint32_t group = f->items[item].group;
  if (group == PESTLE_FUSE_NONE) {
    f->items[item].stamp = f->stamp;
    f->stack[(*top)++] = item;
    return;
  }
  for (uint32_t i = f->groups[group].first; i != PESTLE_FUSE_NONE;
       i = f->items[i].next) {
    f->items[i].stamp = f->stamp;
    f->stack[(*top)++] = i;
  }
}

// Walks back from what is on the stack until an item that is |wanted| or in
// |group|.
static bool search(pestle_fuse_t* f, uint32_t top, uint32_t wanted,
                   uint32_t group, uint32_t earliest) {
  uint32_t steps = 0, closed = closed_before(f, earliest);
  while (top) {
    uint32_t item = f->stack[--top];
    for (uint32_t d = f->items[item].dep_begin;
         d < f->items[item + 1].dep_begin; ++d) {
      uint32_t dep = f->deps[d];
      if (dep == wanted) return true;
      if (group != PESTLE_FUSE_NONE && f->items[dep].group == group) {
        return true;
      }
      if (f->items[dep].stamp == f->stamp || dep < closed) continue;
      push_unit(f, dep, &top);
      if (++steps > SEARCH_LIMIT) return true;
    }
  }
  return false;
}

bool pestle_fuse_depends(pestle_fuse_t* f, uint32_t item, uint32_t group) {
  if (f->items[item].group == group) return true;
  uint32_t earliest = f->groups[group].min;
  if (item < closed_before(f, earliest)) return false;
  ++f->stamp;
  uint32_t top = 0;
  push_unit(f, item, &top);
  return search(f, top, PESTLE_FUSE_NONE, group, earliest);
}

bool pestle_fuse_group_depends(pestle_fuse_t* f, uint32_t group,
                               uint32_t item) {
  ++f->stamp;
  uint32_t top = 0;
  push_unit(f, f->groups[group].first, &top);
  // Members' direct needs are found by the search as well; the caller asks
  // about items that no member uses itself.
  uint32_t other = f->items[item].group;
  uint32_t earliest = other == PESTLE_FUSE_NONE ? item : f->groups[other].min;
  return search(f, top, item, other, earliest);
}

// --- Users ---

static void note_group(pestle_fuse_users_t* users, uint32_t group) {
  for (uint32_t i = 0; i < users->count; ++i) {
    if (users->groups[i] == group) return;
  }
  if (users->count == PESTLE_FUSE_MAX_USERS) {
    users->many = true;
    return;
  }
  users->groups[users->count++] = group;
}

static void find_users(const pestle_fuse_t* f, uint32_t item,
                       pestle_fuse_users_t* users, int depth) {
  const pestle_node_t* node = f->items[item].node;
  for (uint32_t r = 0; r < node->result_count; ++r) {
    for (const pestle_use_t* u = node->results[r].uses; u; u = u->next) {
      if (u->user->block != f->block) {
        users->outside = true;
        continue;
      }
      uint32_t user = (uint32_t)u->user->scratch;
      if (f->items[user].floating && depth < 8) {
        find_users(f, user, users, depth + 1);
      } else if (f->items[user].group == PESTLE_FUSE_NONE) {
        users->outside = true;
      } else {
        note_group(users, f->items[user].group);
      }
    }
  }
}

void pestle_fuse_find_users(const pestle_fuse_t* f, uint32_t item,
                            pestle_fuse_users_t* out_users) {
  memset(out_users, 0, sizeof(*out_users));
  find_users(f, item, out_users, 0);
}
