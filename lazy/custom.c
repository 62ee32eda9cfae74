// SPDX-License-Identifier: Apache-2.0
// Ops of the caller's own on arrays: a module that has nothing but the op is what is
// recorded, so that transforms of a trace and the compiler meet the op by its name.
#include <string.h>

#include "base/arena.h"
#include "base/custom_attrs.h"
#include "base/mem.h"
#include "base/require.h"
#include "lazy/lazy.h"
#include "pestle/custom_op.h"
#include "pestle/numeric.h"

enum { MAX_RESULTS = PESTLE_CUSTOM_MAX_RESULTS, MAX_ATTRS = 256 };

// What is recorded: |operands|, of which the last |dynamic| are those of attributes.
typedef struct use_t {
  pestle_context_t* context;
  const pestle_custom_op_t* op;  // NULL: there is none
  const char* name;
  pestle_array_t** operands;
  size_t count, dynamic;
} use_t;

// |attrs|, with values for those that are dynamic.
static pestle_status_t all_attrs(const use_t* u, pestle_arena_t* arena,
                                 pestle_value_t* const* values,
                                 const pestle_custom_attr_value_t** attrs,
                                 size_t* attr_count) {
  size_t made = 0;
  pestle_custom_attr_value_t* all = PESTLE_ARENA_ARRAY(
      arena, pestle_custom_attr_value_t, *attr_count + u->dynamic + 1);
  if (!all) return PESTLE_OOM();
  for (size_t i = 0, v = 0; i < u->op->attr_count; ++i) {
    if (!u->op->attrs[i]->dynamic) continue;
    all[made++] = (pestle_custom_attr_value_t){
        u->op->attrs[i]->name, PESTLE_CUSTOM_VALUE, {.value = values[v++]}};
  }
  for (size_t i = 0; i < *attr_count; ++i) {
    bool is_there = false;
    for (size_t k = 0; k < u->dynamic; ++k)
      is_there |= !strcmp(all[k].name, (*attrs)[i].name);
    if (!is_there) all[made++] = (*attrs)[i];
  }
  *attrs = all;
  *attr_count = made;
  return NULL;
}

static pestle_status_t fill(pestle_module_t* module, const use_t* u,
                            pestle_arena_t* arena,
                            const pestle_custom_attr_value_t* attrs,
                            size_t attr_count) {
  size_t count = u->count;
  pestle_array_t* const* operands = u->operands;
  pestle_type_t* types = PESTLE_ARENA_ARRAY(arena, pestle_type_t, count);
  pestle_value_t** values = PESTLE_ARENA_ARRAY(arena, pestle_value_t*, count);
  pestle_value_t* results[MAX_RESULTS];
  pestle_function_t* main;
  if (!types || !values) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    types[i] = operands[i]->type;
  PESTLE_TRY(
      pestle_module_add_function(module, "main", types, NULL, count, &main));
  pestle_builder_t b = pestle_builder_make(main);
  for (size_t i = 0; i < count; ++i)
    values[i] = pestle_function_argument(main, i);
  if (u->dynamic) {
    PESTLE_TRY(
        all_attrs(u, arena, values + count - u->dynamic, &attrs, &attr_count));
  }
  PESTLE_TRY(pestle_op_custom(&b, u->name, values, count - u->dynamic, attrs,
                              attr_count, results, MAX_RESULTS));
  size_t made = 0;
  while (made < MAX_RESULTS && results[made])
    ++made;
  if (u->op) made -= u->op->hidden_results;
  return pestle_op_return(&b, results, made, NULL);
}

// --- What arrays go through first ---

// The element type that all become.
static pestle_status_t promote_all(uint32_t front,
                                   pestle_array_t* const* operands,
                                   size_t count, pestle_dtype_t* out_dtype) {
  *out_dtype = operands[0]->type.dtype;
  for (size_t i = 1; i < count; ++i) {
    PESTLE_TRY(
        pestle_dtype_promote(*out_dtype, operands[i]->type.dtype, out_dtype));
  }
  return front & PESTLE_FRONT_FLOAT
             ? pestle_dtype_of_number(*out_dtype, PESTLE_KIND_FLOAT, out_dtype)
             : NULL;
}

// Releases the |count| arrays of |own|.
static void release_all(pestle_array_t** own, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    pestle_array_release(own[i]);
    own[i] = NULL;
  }
}

// |own| become the operands as |front| says, each a reference.
static pestle_status_t prepare(uint32_t front, pestle_array_t* const* operands,
                               size_t count, pestle_array_t** own) {
  pestle_dtype_t common = PESTLE_NONE;
  pestle_status_t status = NULL;
  if (front & PESTLE_FRONT_PROMOTE) {
    PESTLE_TRY(promote_all(front, operands, count, &common));
  }
  for (size_t i = 0; i < count && !status; ++i) {
    pestle_dtype_t dtype = common;
    if (dtype == PESTLE_NONE) dtype = operands[i]->type.dtype;
    if (front & PESTLE_FRONT_FLOAT) {
      status = pestle_dtype_of_number(dtype, PESTLE_KIND_FLOAT, &dtype);
    }
    if (!status) status = pestle_numeric_cast(operands[i], dtype, &own[i]);
  }
  if (status || !(front & PESTLE_FRONT_BROADCAST)) return status;
  pestle_array_t** spread =
      pestle_alloc_array(pestle_allocator_system(), count, sizeof(*spread));
  if (!spread) return PESTLE_OOM();
  status = pestle_array_spread(own, count, spread);
  if (!status) {
    release_all(own, count);
    memcpy(own, spread, count * sizeof(*own));
  }
  pestle_dealloc(pestle_allocator_system(), spread, count * sizeof(*spread));
  return status;
}

// |use|'s operands, prepared, and behind them those of dynamic attributes; own references.
static pestle_status_t gather(use_t* u, pestle_array_t* const* operands,
                              size_t count,
                              const pestle_custom_attr_value_t* attrs,
                              size_t attr_count) {
  pestle_custom_attr_value_t given[MAX_ATTRS];
  PESTLE_TRY(prepare(u->op->front, operands, count, u->operands));
  if (!u->dynamic) return NULL;
  PESTLE_TRY(pestle_custom_dynamic(u->op, attrs, attr_count,
                                   PESTLE_CUSTOM_ARRAY, given));
  pestle_device_t* device = pestle_array_device(operands[0]);
  pestle_dtype_t dtype =
      pestle_custom_dynamic_dtype(u->operands[0]->type.dtype);
  pestle_type_t type = {.dtype = dtype};
  for (size_t i = 0; i < u->dynamic; ++i) {
    float narrow = (float)given[i].as.f64;
    const void* data = dtype == PESTLE_F64 ? (const void*)&given[i].as.f64
                                           : (const void*)&narrow;
    pestle_array_t** out = &u->operands[count + i];
    if (given[i].kind == PESTLE_CUSTOM_F64) {
      PESTLE_TRY(pestle_array_from_data(device, &type, data, out));
    } else if (given[i].as.array && !given[i].as.array->type.rank) {
      PESTLE_TRY(pestle_numeric_cast(given[i].as.array, dtype, out));
    } else {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "attribute '%s' is no array of rank 0",
                          given[i].name);
    }
  }
  return NULL;
}

// --- Entry ---

static pestle_status_t record(const use_t* u,
                              const pestle_custom_attr_value_t* attrs,
                              size_t attr_count, pestle_array_t** out,
                              size_t capacity) {
  pestle_arena_t arena;
  pestle_module_t* module;
  PESTLE_TRY(pestle_module_create(u->context, u->name, &module));
  pestle_arena_init(pestle_allocator_system(), &arena);
  pestle_status_t status = fill(module, u, &arena, attrs, attr_count);
  pestle_arena_deinit(&arena);
  if (!status) {
    status = pestle_array_inline(module, u->operands, u->count, out, capacity);
  }
  pestle_module_release(module);
  return status;
}

pestle_status_t pestle_array_custom(pestle_context_t* context, const char* name,
                                    pestle_array_t* const* operands,
                                    size_t operand_count,
                                    const pestle_custom_attr_value_t* attrs,
                                    size_t attr_count, pestle_array_t** out,
                                    size_t out_capacity) {
  PESTLE_REQUIRE(
      context && name && operands && operand_count && (out || !out_capacity),
      "a context, a name, operands and a place for the results");
  for (size_t i = 0; i < out_capacity; ++i)
    out[i] = NULL;
  for (size_t i = 0; i < operand_count; ++i) {
    if (operands[i]) continue;
    return PESTLE_ERROR(INVALID_ARGUMENT, "operand %zu of op '%.80s' is NULL",
                        i, name);
  }
  use_t u = {.context = context,
             .op = pestle_context_find_op(context, name),
             .name = name,
             .operands = (pestle_array_t**)(uintptr_t)operands,
             .count = operand_count};
  if (u.op) u.dynamic = pestle_custom_dynamic_count(u.op);
  if (!u.op || (!u.op->front && !u.dynamic)) {
    return record(&u, attrs, attr_count, out, out_capacity);
  }
  pestle_allocator_t allocator = pestle_allocator_system();
  u.count += u.dynamic;
  size_t bytes = u.count * sizeof(pestle_array_t*);
  u.operands = pestle_alloc_zero(allocator, bytes);
  if (!u.operands) return PESTLE_OOM();
  pestle_status_t status = pestle_status_annotate(
      gather(&u, operands, operand_count, attrs, attr_count), "in op '%s'",
      name);
  if (!status) status = record(&u, attrs, attr_count, out, out_capacity);
  release_all(u.operands, u.count);
  pestle_dealloc(allocator, u.operands, bytes);
  return status;
}
