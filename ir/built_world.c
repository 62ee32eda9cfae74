// SPDX-License-Identifier: Apache-2.0
// Collectives, which in a world of one process give what they take, and shardings over
// one device.
#include <string.h>

#include "base/mem.h"
#include "ir/built.h"
#include "ir/collective.h"
#include "ir/mesh_axes.h"
#include "ir/sharding.h"

typedef pestle_value_t pv_t;

// Each operand is its result, in the type that is written.
static void keep(pestle_built_t* b) {
  if (b->type_count != b->operand_count) {
    pestle_built_fail(b, PESTLE_STATUS_MALFORMED,
                      "%zu operands and %zu results: it has one for each",
                      b->operand_count, b->type_count);
  }
  for (size_t i = 0; i < b->type_count && !b->f.status; ++i) {
    b->results[i] = pestle_f_convert(&b->f, b->operands[i], b->types[i].dtype);
  }
}

void pestle_built_same(pestle_built_t* b) {
  keep(b);
}

static bool is_alone_in_world(const pestle_built_t* b) {
  pestle_world_shape_t world = pestle_module_world(b->f.builder.module);
  return world.replicas == 1 && world.partitions == 1;
}

// Where values lie in parts, one that is to lie as it says. Replicas have all of it.
void pestle_built_wish(pestle_built_t* b) {
  const pestle_generic_value_t* sharding = pestle_built_attr(b, "sharding");
  keep(b);
  pestle_world_shape_t world = pestle_module_world(b->f.builder.module);
  if (b->f.status || world.partitions == 1 || !sharding) return;
  b->f.status = pestle_mark_wish(&b->f.builder, b->results[0], sharding->whole,
                                 &b->results[0]);
}

void pestle_built_nothing(pestle_built_t* b) {
  if (b->type_count) {
    pestle_built_fail(b, PESTLE_STATUS_MALFORMED, "it has no result");
  }
}

// The op's groups, as rows of numbers where they are axes of a mesh; NULL: it has none, or
// |b| has failed.
static const pestle_generic_value_t* read_groups(pestle_built_t* b) {
  const pestle_generic_value_t* groups = pestle_built_attr(b, "replica_groups");
  if (!groups || !pestle_is_mesh_axes(groups)) return groups;
  pestle_generic_value_t* rows =
      PESTLE_ARENA_NEW(b->arena, pestle_generic_value_t);
  if (!rows) {
    b->f.status = PESTLE_OOM();
    return NULL;
  }
  *rows = *groups;
  rows->kind = PESTLE_GENERIC_ELEMENTS;
  b->f.status = pestle_mesh_axes_groups(b->f.builder.module, groups, b->arena,
                                        &rows->elements);
  return b->f.status ? NULL : rows;
}

// Every group has one member, number 0; -1 fills groups up.
static bool is_alone(pestle_built_t* b) {
  const pestle_generic_value_t* groups = read_groups(b);
  if (b->f.status) return false;
  if (!groups) return true;
  bool alone = groups->kind == PESTLE_GENERIC_ELEMENTS &&
               pestle_dtype_is(groups->elements.type.dtype, PESTLE_KIND_INT);
  const pestle_elements_t* e = &groups->elements;
  size_t size = alone ? pestle_dtype_size(e->type.dtype) : 1;
  int64_t members = 0;
  size_t count = alone ? e->size / size : 0;
  for (size_t i = 0; i < count && alone; ++i) {
    int64_t member = 0;
    memcpy(&member, (const char*)e->data + i * size, size);
    members += member == 0;
    // A splat of 0 in a row of two would name number 0 twice.
    alone = member == 0 || (member & 0xffffffff) == (INT64_C(-1) & 0xffffffff);
  }
  if (alone && e->splat && pestle_type_count(&e->type) > 1) alone = false;
  if (alone && members <= 1) return true;
  pestle_built_fail(
      b, PESTLE_STATUS_UNSUPPORTED,
      "its groups are of several devices, and a program here runs "
      "on one; export it for one device");
  return false;
}

// --- In a larger world: the op's row ---

// Older writers give the number alone.
static pestle_status_t read_channel(const pestle_built_t* b, int64_t* out) {
  const pestle_generic_value_t* handle = pestle_built_attr(b, "channel_handle");
  *out = 0;
  if (handle && handle->kind == PESTLE_GENERIC_DICT)
    handle = pestle_generic_find(handle, "handle");
  if (!handle) handle = pestle_built_attr(b, "channel_id");
  if (handle && handle->kind == PESTLE_GENERIC_INT) *out = handle->i64;
  if (!handle || handle->kind == PESTLE_GENERIC_INT) return NULL;
  return PESTLE_ERROR(MALFORMED,
                      "'%s': 'channel_handle' must be a handle of a channel",
                      b->name);
}

static pestle_status_t read_attr(pestle_built_t* b, pestle_generic_t* g,
                                 const pestle_attr_row_t* row) {
  static const pestle_elements_t none = {
      .type = {.dtype = PESTLE_I64, .rank = 2}, .data = ""};
  const char* name = pestle_attr_name_text((pestle_attr_name_t)row->name);
  const pestle_generic_value_t* value = row->name == PESTLE_ATTR_replica_groups
                                            ? read_groups(b)
                                            : pestle_built_attr(b, name);
  pestle_attr_t a = {.name = row->name, .kind = row->kind};
  PESTLE_TRY(b->f.status);
  if (row->name == PESTLE_ATTR_channel_handle) {
    PESTLE_TRY(read_channel(b, &a.as.i64));
    return pestle_generic_push(g, &a);
  }
  if (!value && row->name == PESTLE_ATTR_replica_groups) {
    a.as.elements = &none;
    return pestle_generic_push(g, &a);
  }
  if (!value) return NULL;
  PESTLE_TRY(pestle_generic_convert(g, name, value, &a));
  return pestle_generic_push(g, &a);
}

// The operands in the type that the region combines.
static pestle_value_t** widened(pestle_built_t* b,
                                const pestle_region_t* region) {
  pestle_value_t** operands =
      PESTLE_ARENA_ARRAY(b->arena, pestle_value_t*, b->operand_count + 1);
  if (!operands) {
    b->f.status = PESTLE_OOM();
    return NULL;
  }
  for (size_t i = 0; i < b->operand_count; ++i) {
    operands[i] = b->operands[i];
    if (!region || !region->block->argument_count) continue;
    operands[i] = pestle_f_convert(&b->f, b->operands[i],
                                   region->block->arguments[0]->type->dtype);
  }
  return b->f.status ? NULL : operands;
}

static void make_row(pestle_built_t* b, pestle_op_t op,
                     pestle_region_t* region) {
  size_t count;
  const pestle_attr_row_t* rows = pestle_op_attr_rows(op, &count);
  pestle_generic_t g = {.op = op, .arena = b->arena};
  for (size_t i = 0; i < count && !b->f.status; ++i)
    b->f.status = read_attr(b, &g, &rows[i]);
  pestle_value_t** operands = b->f.status ? NULL : widened(b, region);
  if (!operands) return;
  pestle_node_t* node = pestle_f_node(
      &b->f, &(pestle_node_spec_t){.op = op,
                                   .operands = operands,
                                   .operand_count = b->operand_count,
                                   .attrs = g.attrs,
                                   .attr_count = g.attr_count,
                                   .regions = &region,
                                   .region_count = region ? 1 : 0,
                                   .type = b->type_count ? b->types : NULL,
                                   .types = b->types,
                                   .type_count = b->type_count});
  if (!node) return;
  b->regions_taken = b->region_count > 0;
  if (node->result_count != b->type_count) {
    pestle_built_fail(b, PESTLE_STATUS_MALFORMED, "it has %u results, not %zu",
                      (unsigned)node->result_count, b->type_count);
    return;
  }
  b->f.status = pestle_collective_check(node, b->arena->allocator);
  for (size_t i = 0; i < b->type_count; ++i)
    b->results[i] = &node->results[i];
}

// The op by its name; the oldest one is a sum.
static void make_collective(pestle_built_t* b) {
  pestle_op_t op = PESTLE_OP_ALL_REDUCE;
  pestle_region_t* region = b->region_count ? b->regions[0] : NULL;
  bool sum = !pestle_generic_find_op(pestle_str(b->name), &op);
  if (sum && b->operand_count) {
    region = pestle_f_region(&b->f, PESTLE_OP_ADD, b->operands[0]->type->dtype);
    if (!region) return;
  }
  make_row(b, op, region);
}

void pestle_built_alone(pestle_built_t* b) {
  if (!is_alone_in_world(b)) {
    make_collective(b);
  } else if (is_alone(b)) {
    keep(b);
  }
}

// What is folded is one value, which the fold leaves as it is.
void pestle_built_all_reduce(pestle_built_t* b) {
  if (b->region_count != 1) {
    pestle_built_fail(b, PESTLE_STATUS_MALFORMED, "it has one region");
    return;
  }
  pestle_built_alone(b);
}

// The value of number 0 goes to number 0, or to nobody: then 0 is what comes.
void pestle_built_permute(pestle_built_t* b) {
  pestle_i64s_t pairs;
  if (!is_alone_in_world(b)) {
    make_collective(b);
    return;
  }
  if (!pestle_built_i64s(b, "source_target_pairs", true, &pairs)) return;
  for (size_t i = 0; i < pairs.count; ++i) {
    if (pairs.data[i] == 0) continue;
    pestle_built_fail(b, PESTLE_STATUS_UNSUPPORTED,
                      "it names device %lld, and a program here runs on one; "
                      "export it for one device",
                      (long long)pairs.data[i]);
    return;
  }
  if (pairs.count) {
    keep(b);
    return;
  }
  b->results[0] = pestle_f_number(&b->f, b->operands[0]->type, 0);
}

void pestle_built_number_of_one(pestle_built_t* b) {
  if (!is_alone_in_world(b)) {
    make_collective(b);
    return;
  }
  pestle_type_t type = pestle_type_make(PESTLE_U32, 0, NULL);
  b->results[0] = pestle_f_number(&b->f, &type, 0);
}
