// SPDX-License-Identifier: Apache-2.0
#include "ir/collective.h"

#include <string.h>

#include "base/mem.h"
#include "ir/internal.h"

// Larger worlds have no use yet, and numbers of processes stay small.
enum { MOST_PROCESSES = 1 << 20 };

pestle_world_shape_t pestle_module_world(const pestle_module_t* module) {
  int64_t replicas =
      pestle_dialect_attrs_i64(module->dialect_attrs, "mhlo.num_replicas", 1);
  int64_t partitions =
      pestle_dialect_attrs_i64(module->dialect_attrs, "mhlo.num_partitions", 1);
  bool sound = replicas >= 1 && partitions >= 1 && replicas <= MOST_PROCESSES &&
               partitions <= MOST_PROCESSES / replicas;
  return sound ? (pestle_world_shape_t){(int32_t)replicas, (int32_t)partitions}
               : (pestle_world_shape_t){1, 1};
}

// --- Rows as they are written ---

// What the numbers of a row count.
typedef enum scope_t {
  OF_REPLICAS,        // of one partition at a time
  OF_ALL_PARTITIONS,  // replicas with all their partitions
  OF_PARTITIONS,      // of one replica at a time
  OF_PROCESSES,
} scope_t;

static scope_t scope_of(const pestle_node_t* node) {
  bool channel = PESTLE_NODE_I64(node, channel_handle) > 0;
  switch ((int)node->op) {
    case PESTLE_OP_ALL_REDUCE:
    case PESTLE_OP_ALL_GATHER:
    case PESTLE_OP_REDUCE_SCATTER:
      if (!channel) return OF_REPLICAS;
      return PESTLE_NODE_BOOL(node, use_global_device_ids) ? OF_PROCESSES
                                                           : OF_ALL_PARTITIONS;
    default:
      return channel ? OF_PARTITIONS : OF_REPLICAS;
  }
}

typedef struct rows_t {
  const pestle_elements_t* data;
  int64_t count, size;
  bool all;  // none is written: one of all numbers
} rows_t;

static int64_t number_at(const rows_t* rows, int64_t row, int64_t place) {
  if (rows->all) return place;
  const pestle_elements_t* e = rows->data;
  size_t size = pestle_dtype_size(e->type.dtype);
  size_t at = e->splat ? 0 : (size_t)(row * rows->size + place);
  uint64_t bits = 0;
  memcpy(&bits, (const char*)e->data + at * size, size);
  unsigned shift = 64u - 8u * (unsigned)size;
  return (int64_t)(bits << shift) >> shift;
}

static pestle_status_t bad(const char* what) {
  return PESTLE_ERROR(MALFORMED, "%s", what);
}

static pestle_status_t read_rows(const pestle_node_t* node, int64_t limit,
                                 rows_t* out) {
  bool pairs = node->op == PESTLE_OP_COLLECTIVE_PERMUTE;
  const pestle_attr_t* attr =
      pestle_node_attr(node, pairs ? PESTLE_ATTR_source_target_pairs
                                   : PESTLE_ATTR_replica_groups);
  const pestle_type_t* type = &attr->as.elements->type;
  bool none = pestle_type_count(type) == 0;
  *out = (rows_t){.data = attr->as.elements};
  if (!pestle_dtype_is(type->dtype, PESTLE_KIND_INT))
    return bad("its groups are no integers");
  if (none && pairs) return NULL;
  if (none) {
    *out = (rows_t){.count = 1, .size = limit, .all = true};
    return NULL;
  }
  if (type->rank != 2) return bad("its groups are no rows of numbers");
  out->count = type->dims[0];
  out->size = type->dims[1];
  if (pairs && out->size != 2)
    return bad("'source_target_pairs' has no two numbers in a row");
  if (out->count > MOST_PROCESSES || out->size > MOST_PROCESSES)
    return bad("it has more groups, or larger ones, than there can be");
  return NULL;
}

// --- Rows of processes ---

typedef struct maker_t {
  const pestle_node_t* node;
  pestle_world_shape_t world;
  rows_t rows;
  scope_t scope;
  int64_t limit;   // of the numbers
  int64_t copies;  // of each row
  int64_t times;   // members that one number stands for
} maker_t;

// The process that number |n| is in copy |copy| of its row; of all partitions
// number |part|.
static int64_t process_of(const maker_t* m, int64_t n, int64_t copy,
                          int64_t part) {
  switch (m->scope) {
    case OF_REPLICAS:
      return n * m->world.partitions + copy;
    case OF_ALL_PARTITIONS:
      return n * m->world.partitions + part;
    case OF_PARTITIONS:
      return copy * m->world.partitions + n;
    case OF_PROCESSES:
      break;
  }
  return n;
}

static void measure(maker_t* m) {
  const pestle_world_shape_t* w = &m->world;
  m->copies = m->times = 1;
  switch (m->scope) {
    case OF_REPLICAS:
      m->limit = w->replicas;
      m->copies = w->partitions;
      return;
    case OF_ALL_PARTITIONS:
      m->limit = w->replicas;
      m->times = w->partitions;
      return;
    case OF_PARTITIONS:
      m->limit = w->partitions;
      m->copies = w->replicas;
      return;
    case OF_PROCESSES:
      m->limit = (int64_t)w->replicas * w->partitions;
      return;
  }
}

static pestle_status_t outside(const maker_t* m, int64_t number) {
  return PESTLE_ERROR(
      UNSUPPORTED,
      "its groups name %s %lld, and the module runs on %lld of them "
      "(mhlo.num_replicas = %d, mhlo.num_partitions = %d)",
      m->scope == OF_PROCESSES
          ? "device"
          : (m->scope == OF_PARTITIONS ? "partition" : "replica"),
      (long long)number, (long long)m->limit, (int)m->world.replicas,
      (int)m->world.partitions);
}

static pestle_status_t fill_row(const maker_t* m, int64_t row, int64_t copy,
                                int32_t* out) {
  bool pairs = m->node->op == PESTLE_OP_COLLECTIVE_PERMUTE;
  uint32_t filled = 0;
  for (int64_t i = 0; i < m->rows.size; ++i) {
    int64_t n = number_at(&m->rows, row, i);
    if (n == -1 && !pairs) continue;
    if (n < 0 || n >= m->limit) return outside(m, n);
    for (int64_t part = 0; part < m->times; ++part)
      out[filled++] = (int32_t)process_of(m, n, copy, part);
  }
  for (; filled < m->rows.size * m->times; ++filled)
    out[filled] = -1;
  return NULL;
}

// No process is in two groups, sends twice or receives twice.
static pestle_status_t check_once(const pestle_node_t* node,
                                  pestle_arena_t* arena,
                                  const pestle_groups_t* groups,
                                  int64_t processes) {
  bool pairs = node->op == PESTLE_OP_COLLECTIVE_PERMUTE;
  uint8_t* seen = pestle_arena_alloc_zero(arena, (size_t)processes + 1, 1);
  if (!seen) return PESTLE_OOM();
  for (size_t i = 0; i < (size_t)groups->count * groups->size; ++i) {
    int32_t rank = groups->ranks[i];
    uint8_t bit = (uint8_t)(pairs ? 1 << (i & 1) : 1);
    if (rank < 0) continue;
    if (seen[rank] & bit) {
      return PESTLE_ERROR(
          MALFORMED, "process %d %s", (int)rank,
          pairs ? "sends or receives twice" : "is in two places of its groups");
    }
    seen[rank] |= bit;
  }
  bool all = !pairs && node->op != PESTLE_OP_COLLECTIVE_BROADCAST;
  for (int64_t i = 0; all && i < processes; ++i) {
    if (seen[i]) continue;
    return PESTLE_ERROR(MALFORMED,
                        "process %lld of %lld is in none of its groups",
                        (long long)i, (long long)processes);
  }
  return NULL;
}

pestle_status_t pestle_collective_groups(const pestle_node_t* node,
                                         pestle_arena_t* arena,
                                         pestle_groups_t* out) {
  *out = (pestle_groups_t){NULL, 0, 0};
  if (!node->operand_count) return NULL;
  maker_t m = {.node = node,
               .world = pestle_module_world(node->block->region->module),
               .scope = scope_of(node)};
  measure(&m);
  PESTLE_TRY(read_rows(node, m.limit, &m.rows));
  int64_t processes = (int64_t)m.world.replicas * m.world.partitions;
  int64_t count = m.rows.count * m.copies, size = m.rows.size * m.times;
  if (count > MOST_PROCESSES || size > MOST_PROCESSES ||
      count * size > 4 * (int64_t)MOST_PROCESSES) {
    return bad("it has more groups, or larger ones, than there can be");
  }
  int32_t* ranks =
      PESTLE_ARENA_ARRAY(arena, int32_t, (size_t)(count * size) + 1);
  if (!ranks) return PESTLE_OOM();
  for (int64_t i = 0; i < count; ++i) {
    PESTLE_TRY(fill_row(&m, i / m.copies, i % m.copies, ranks + i * size));
  }
  *out = (pestle_groups_t){ranks, (uint32_t)count, (uint32_t)size};
  return check_once(node, arena, out, processes);
}

uint32_t pestle_groups_members(const pestle_groups_t* groups, uint32_t row) {
  uint32_t n = 0;
  while (n < groups->size && groups->ranks[(size_t)row * groups->size + n] >= 0)
    ++n;
  return n;
}

bool pestle_groups_find(const pestle_groups_t* groups, int32_t rank,
                        uint32_t* out_row, uint32_t* out_place) {
  for (uint32_t r = 0; r < groups->count; ++r) {
    for (uint32_t i = 0; i < groups->size; ++i) {
      if (groups->ranks[(size_t)r * groups->size + i] != rank) continue;
      *out_row = r;
      *out_place = i;
      return true;
    }
  }
  return false;
}

// --- Types ---

// How many parts the op's types say that there are; 0: they do not.
static int64_t parts_of(const pestle_node_t* node) {
  const pestle_type_t* from = node->operands[0].value->type;
  const pestle_type_t* to = node->results[0].type;
  if (node->op == PESTLE_OP_ALL_TO_ALL)
    return PESTLE_NODE_I64(node, split_count);
  bool gathers = node->op == PESTLE_OP_ALL_GATHER;
  if (!gathers && node->op != PESTLE_OP_REDUCE_SCATTER) return 0;
  int64_t axis = gathers ? PESTLE_NODE_I64(node, all_gather_dim)
                         : PESTLE_NODE_I64(node, scatter_dimension);
  int64_t part = gathers ? from->dims[axis] : to->dims[axis];
  int64_t whole = gathers ? to->dims[axis] : from->dims[axis];
  return part > 0 && whole > 0 ? whole / part : 0;
}

static pestle_status_t check_constant_part(const pestle_node_t* node) {
  size_t count = PESTLE_NODE_I64S(node, parts).count;
  int32_t partitions =
      pestle_module_world(node->block->region->module).partitions;
  if (count == (size_t)partitions) return NULL;
  return PESTLE_ERROR(MALFORMED,
                      "it has parts for %zu partitions, and the module %d",
                      count, (int)partitions);
}

static pestle_status_t check_in(const pestle_node_t* node,
                                pestle_arena_t* arena) {
  pestle_groups_t groups;
  if (node->op == PESTLE_OP_CONSTANT_PART) return check_constant_part(node);
  PESTLE_TRY(pestle_collective_groups(node, arena, &groups));
  int64_t parts = node->operand_count ? parts_of(node) : 0;
  for (uint32_t i = 0; parts && i < groups.count; ++i) {
    uint32_t members = pestle_groups_members(&groups, i);
    if ((int64_t)members == parts) continue;
    return PESTLE_ERROR(MALFORMED,
                        "group %u has %u members, and the op's types are for "
                        "%lld",
                        (unsigned)i, (unsigned)members, (long long)parts);
  }
  return NULL;
}

pestle_status_t pestle_collective_check(const pestle_node_t* node,
                                        pestle_allocator_t allocator) {
  pestle_arena_t arena;
  pestle_arena_init(allocator, &arena);
  pestle_status_t status = check_in(node, &arena);
  pestle_arena_deinit(&arena);
  return status;
}
