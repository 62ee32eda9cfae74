// SPDX-License-Identifier: Apache-2.0
// Bodies of regions: modules that a context keeps once by their bytes, so that a
// node has a number instead and equal graphs have equal keys.
#include "lazy/lazy.h"

// Keeps a copy of the module that |bytes| are: one that keeps no context alive,
// since the context keeps it.
static pestle_status_t keep(pestle_lazy_t* lazy, const void* bytes,
                            size_t size) {
  pestle_module_t* module;
  if (!pestle_vec_reserve(&lazy->bodies, 1)) return PESTLE_OOM();
  PESTLE_TRY(pestle_module_deserialize(lazy->context, bytes, size, &module));
  lazy->bodies.data[lazy->bodies.size++].module = module;
  pestle_context_release(lazy->context);
  return NULL;
}

// The lock is held.
static pestle_status_t intern(pestle_lazy_t* lazy, const void* bytes,
                              size_t size, uint32_t* out_id) {
  bool added;
  pestle_map_value_t* value =
      pestle_map_put(&lazy->body_ids, bytes, size, &added);
  if (!value) return PESTLE_OOM();
  pestle_status_t status = added ? keep(lazy, bytes, size) : NULL;
  if (status) {
    pestle_map_remove(&lazy->body_ids, bytes, size);
    return status;
  }
  if (added) value->u64 = lazy->bodies.size - 1;
  *out_id = (uint32_t)value->u64;
  return NULL;
}

pestle_status_t pestle_body_of(pestle_lazy_t* lazy, pestle_module_t* module,
                               uint32_t* out_id) {
  void* bytes;
  size_t size;
  if (!module || !pestle_module_entry(module)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "a body is NULL, or a module without a function");
  }
  PESTLE_TRY(pestle_module_serialize(module, &bytes, &size));
  pestle_lazy_lock(lazy);
  pestle_status_t status = intern(lazy, bytes, size, out_id);
  pestle_mutex_unlock(&lazy->mutex);
  pestle_context_free(lazy->context, bytes, size);
  return status;
}

static pestle_status_t make_fold(pestle_lazy_t* lazy, pestle_op_t op,
                                 pestle_dtype_t dtype,
                                 pestle_module_t** out_module) {
  pestle_type_t types[] = {{.dtype = dtype}, {.dtype = dtype}};
  pestle_function_t* function;
  pestle_node_t* node;
  PESTLE_TRY(pestle_module_create(lazy->context, NULL, out_module));
  PESTLE_TRY(pestle_module_add_function(*out_module, "main", types, NULL, 2,
                                        &function));
  pestle_builder_t b = pestle_builder_make(function);
  pestle_value_t* operands[] = {pestle_function_argument(function, 0),
                                pestle_function_argument(function, 1)};
  PESTLE_TRY(pestle_node_create(
      &b,
      &(pestle_node_spec_t){.op = op, .operands = operands, .operand_count = 2},
      &node));
  pestle_value_t* result = pestle_node_result(node, 0);
  return pestle_op_return(&b, &result, 1, NULL);
}

pestle_status_t pestle_body_of_fold(pestle_lazy_t* lazy, pestle_op_t op,
                                    pestle_dtype_t dtype, uint32_t* out_id) {
  uint64_t key = (uint64_t)op << 32 | (uint64_t)dtype;
  pestle_lazy_lock(lazy);
  pestle_map_value_t* value = pestle_map_find_u64(&lazy->fold_ids, key);
  if (value) *out_id = (uint32_t)value->u64;
  pestle_mutex_unlock(&lazy->mutex);
  if (value) return NULL;
  pestle_module_t* module = NULL;
  pestle_status_t status = make_fold(lazy, op, dtype, &module);
  if (!status) status = pestle_body_of(lazy, module, out_id);
  pestle_module_release(module);
  if (status) return status;
  pestle_lazy_lock(lazy);
  bool kept = pestle_map_set_u64(&lazy->fold_ids, key, *out_id);
  pestle_mutex_unlock(&lazy->mutex);
  return kept ? NULL : PESTLE_OOM();
}

pestle_module_t* pestle_body_module(pestle_lazy_t* lazy, uint32_t id) {
  pestle_lazy_lock(lazy);
  pestle_module_t* module = lazy->bodies.data[id].module;
  pestle_mutex_unlock(&lazy->mutex);
  return module;
}
