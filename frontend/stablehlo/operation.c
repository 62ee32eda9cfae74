// SPDX-License-Identifier: Apache-2.0
#include "frontend/stablehlo/operation.h"

#include "base/mem.h"

// What the mask of an op says is there.
enum {
  HAS_ATTRIBUTES = 0x01,
  HAS_RESULTS = 0x02,
  HAS_OPERANDS = 0x04,
  HAS_SUCCESSORS = 0x08,
  HAS_REGIONS = 0x10,
  HAS_USE_LISTS = 0x20,
  HAS_PROPERTIES = 0x40,
};
// What versions of the format brought.
enum {
  FORMAT_ISOLATED_SECTIONS = 2,
  FORMAT_USE_LISTS = 3,
  FORMAT_OPTIONAL_LOCATIONS = 4,
};
enum { SECTION_IR = 4 };

typedef struct walk_t {
  const pestle_bytecode_t* file;
  pestle_arena_t* arena;
  int depth;
} walk_t;

// The values that a region may use, and the number of its next one.
typedef struct scope_t {
  uint32_t next, end;
} scope_t;

static pestle_status_t read_region(walk_t* w, pestle_reader_t* r, uint32_t base,
                                   pestle_bytecode_region_t** out);

// |*out_list| of |*out_count| indices below |limit|, after their count.
static pestle_status_t read_indices(walk_t* w, pestle_reader_t* r, size_t limit,
                                    const char* what, const uint32_t** out_list,
                                    uint32_t* out_count) {
  size_t count;
  PESTLE_TRY(pestle_reader_count(r, &count));
  if (count > UINT32_MAX / 2) {
    return pestle_reader_damaged(r, "an op of too many values");
  }
  uint32_t* list = PESTLE_ARENA_ARRAY(w->arena, uint32_t, count + 1);
  if (!list) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    PESTLE_TRY(pestle_reader_index(r, limit, what, &list[i]));
  }
  *out_list = list;
  *out_count = (uint32_t)count;
  return NULL;
}

// Gives out |count| numbers.
static pestle_status_t number(const pestle_reader_t* r, scope_t* scope,
                              uint32_t count, uint32_t* out_first) {
  if (count > scope->end - scope->next) {
    return pestle_reader_damaged(r, "more values than the region has");
  }
  *out_first = scope->next;
  scope->next += count;
  return NULL;
}

// In which order each value's uses were: they are kept in program order here.
static pestle_status_t skip_use_lists(pestle_reader_t* r, uint32_t values) {
  size_t lists = 1;
  uint64_t ignored;
  if (values != 1) PESTLE_TRY(pestle_reader_count(r, &lists));
  for (size_t i = 0; i < lists; ++i) {
    uint64_t count;
    bool pairs;
    if (values != 1) PESTLE_TRY(pestle_reader_varint(r, &ignored));
    PESTLE_TRY(pestle_reader_flagged(r, &count, &pairs));
    for (uint64_t k = 0; k < count; ++k) {
      PESTLE_TRY(pestle_reader_varint(r, &ignored));
    }
  }
  return NULL;
}

// The regions of an op. Isolated ones lie in a section of their own.
static pestle_status_t read_regions(walk_t* w, pestle_reader_t* r,
                                    const scope_t* around,
                                    pestle_bytecode_op_t* op) {
  uint64_t count;
  PESTLE_TRY(pestle_reader_flagged(r, &count, &op->isolated));
  if (count > pestle_reader_left(r) || count > UINT32_MAX) {
    return pestle_reader_damaged(r, "more regions than the file holds");
  }
  pestle_reader_t section, *from = r;
  if (count && op->isolated && w->file->format >= FORMAT_ISOLATED_SECTIONS) {
    uint8_t id;
    PESTLE_TRY(pestle_bytecode_section(r, &id, &section));
    if (id != SECTION_IR) {
      return pestle_reader_damaged(r, "another section than an op's regions");
    }
    from = &section;
  }
  pestle_bytecode_region_t** place = &op->regions;
  for (; op->region_count < count; ++op->region_count) {
    PESTLE_TRY(read_region(w, from, op->isolated ? 0 : around->end, place));
    place = &(*place)->next;
  }
  if (from == &section && pestle_reader_more(from)) {
    return pestle_reader_damaged(from, "bytes behind an op's regions");
  }
  return NULL;
}

static pestle_status_t read_head(walk_t* w, pestle_reader_t* r, uint8_t* mask,
                                 pestle_bytecode_op_t* op) {
  const pestle_bytecode_t* file = w->file;
  op->attributes = op->properties = PESTLE_BYTECODE_NONE;
  PESTLE_TRY(pestle_reader_index(r, file->op_count, "op name", &op->name));
  PESTLE_TRY(pestle_reader_byte(r, mask));
  PESTLE_TRY(
      pestle_reader_index(r, file->attribute_count, "location", &op->location));
  if (*mask & HAS_ATTRIBUTES) {
    PESTLE_TRY(pestle_reader_index(r, file->attribute_count, "attribute",
                                   &op->attributes));
  }
  if (*mask & HAS_PROPERTIES) {
    PESTLE_TRY(pestle_reader_index(r, file->property_count, "property",
                                   &op->properties));
  }
  if (*mask & HAS_RESULTS) {
    PESTLE_TRY(read_indices(w, r, file->type_count, "type", &op->result_types,
                            &op->result_count));
  }
  return NULL;
}

static pestle_status_t read_op(walk_t* w, pestle_reader_t* r, scope_t* scope,
                               pestle_bytecode_op_t* op) {
  uint8_t mask = 0;
  PESTLE_TRY(read_head(w, r, &mask, op));
  if (mask & HAS_OPERANDS) {
    PESTLE_TRY(read_indices(w, r, scope->end, "value", &op->operands,
                            &op->operand_count));
  }
  if (mask & HAS_SUCCESSORS) {
    const pestle_bytecode_op_name_t* name = &w->file->ops[op->name];
    return PESTLE_ERROR(UNSUPPORTED,
                        "'%.*s.%.*s' branches to another block; StableHLO has "
                        "regions of one block",
                        PESTLE_STR_ARG(w->file->dialects[name->dialect].name),
                        PESTLE_STR_ARG(name->name));
  }
  if (mask & HAS_USE_LISTS) PESTLE_TRY(skip_use_lists(r, op->result_count));
  PESTLE_TRY(number(r, scope, op->result_count, &op->first_result));
  return mask & HAS_REGIONS ? read_regions(w, r, scope, op) : NULL;
}

static pestle_status_t read_arguments(walk_t* w, pestle_reader_t* r,
                                      scope_t* scope,
                                      pestle_bytecode_region_t* region) {
  const pestle_bytecode_t* file = w->file;
  size_t count;
  PESTLE_TRY(pestle_reader_count(r, &count));
  uint32_t* types = PESTLE_ARENA_ARRAY(w->arena, uint32_t, count + 1);
  if (!types) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    bool located = true;
    uint32_t location;
    if (file->format < FORMAT_OPTIONAL_LOCATIONS) {
      PESTLE_TRY(pestle_reader_index(r, file->type_count, "type", &types[i]));
    } else {
      PESTLE_TRY(pestle_reader_flagged_index(r, file->type_count, "type",
                                             &types[i], &located));
    }
    if (!located) continue;
    PESTLE_TRY(
        pestle_reader_index(r, file->attribute_count, "location", &location));
  }
  region->argument_types = types;
  region->argument_count = (uint32_t)count;
  PESTLE_TRY(number(r, scope, region->argument_count, &region->first_argument));
  if (file->format < FORMAT_USE_LISTS) return NULL;
  uint8_t lists;
  PESTLE_TRY(pestle_reader_byte(r, &lists));
  return lists ? skip_use_lists(r, region->argument_count) : NULL;
}

static pestle_status_t read_block(walk_t* w, pestle_reader_t* r, scope_t* scope,
                                  pestle_bytecode_region_t* region) {
  uint64_t count;
  bool arguments;
  PESTLE_TRY(pestle_reader_flagged(r, &count, &arguments));
  if (arguments) PESTLE_TRY(read_arguments(w, r, scope, region));
  pestle_bytecode_op_t** place = &region->ops;
  for (uint64_t i = 0; i < count; ++i) {
    pestle_bytecode_op_t* op = PESTLE_ARENA_NEW(w->arena, pestle_bytecode_op_t);
    if (!op) return PESTLE_OOM();
    PESTLE_TRY(read_op(w, r, scope, op));
    *place = op;
    place = &op->next;
  }
  return NULL;
}

static pestle_status_t read_body(walk_t* w, pestle_reader_t* r, uint32_t base,
                                 pestle_bytecode_region_t* region) {
  uint64_t values;
  PESTLE_TRY(pestle_reader_varint(r, &values));
  if (values > pestle_reader_left(r) || values > UINT32_MAX / 2 - base) {
    return pestle_reader_damaged(r, "more values than the file holds");
  }
  scope_t scope = {base, base + (uint32_t)values};
  region->value_end = scope.end;
  PESTLE_TRY(read_block(w, r, &scope, region));
  return scope.next == scope.end
             ? NULL
             : pestle_reader_damaged(r, "fewer values than the region has");
}

static pestle_status_t read_region(walk_t* w, pestle_reader_t* r, uint32_t base,
                                   pestle_bytecode_region_t** out) {
  uint64_t blocks;
  PESTLE_TRY(pestle_reader_varint(r, &blocks));
  pestle_bytecode_region_t* region =
      PESTLE_ARENA_NEW(w->arena, pestle_bytecode_region_t);
  if (!region) return PESTLE_OOM();
  *out = region;
  region->value_end = base;
  region->is_empty = !blocks;
  if (region->is_empty) return NULL;
  if (blocks > 1) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "a region has %llu blocks; those of StableHLO have one",
                        (unsigned long long)blocks);
  }
  if (++w->depth > PESTLE_BYTECODE_MAX_DEPTH) {
    return pestle_reader_damaged(r, "regions nested more than 100 deep");
  }
  pestle_status_t status = read_body(w, r, base, region);
  --w->depth;
  return status;
}

pestle_status_t pestle_bytecode_read_ops(const pestle_bytecode_t* file,
                                         pestle_arena_t* arena,
                                         pestle_bytecode_region_t* out_top) {
  walk_t w = {.file = file, .arena = arena};
  pestle_reader_t r = file->ir;
  scope_t scope = {0, 0};
  *out_top = (pestle_bytecode_region_t){.is_empty = false};
  PESTLE_TRY(read_block(&w, &r, &scope, out_top));
  return pestle_reader_more(&r)
             ? pestle_reader_damaged(&r, "bytes behind the last op")
             : NULL;
}
