// SPDX-License-Identifier: Apache-2.0
// One function of a module and what it calls, as a module without names of values:
// text and bytecode of a module give one text.
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "ir/copy.h"

typedef struct extract_t {
  pestle_copier_t copier;
  PESTLE_VEC(pestle_function_t*) functions;  // each before those that it calls
  pestle_map_t seen;
} extract_t;

static pestle_status_t add(extract_t* x, pestle_function_t* f) {
  bool added;
  if (!pestle_map_put(&x->seen, &f, sizeof(f), &added)) return PESTLE_OOM();
  if (!added) return NULL;
  return pestle_vec_push(&x->functions, f) ? NULL : PESTLE_OOM();
}

static pestle_status_t find_all(extract_t* x, pestle_function_t* first) {
  PESTLE_TRY(add(x, first));
  for (size_t i = 0; i < x->functions.size; ++i) {
    const pestle_node_t* n = NULL;
    while ((n = pestle_region_next(x->functions.data[i]->body, n))) {
      if (n->op != PESTLE_OP_CALL) continue;
      pestle_function_t* callee = pestle_module_find_function(
          first->module, PESTLE_NODE_STR(n, callee));
      if (callee) PESTLE_TRY(add(x, callee));
    }
  }
  return NULL;
}

static pestle_status_t copy_all(extract_t* x) {
  pestle_function_t* copy;
  for (size_t i = 0; i < x->functions.size; ++i) {
    PESTLE_TRY(pestle_copier_declare(&x->copier, x->functions.data[i], &copy));
    copy->is_private = i > 0;
  }
  copy = x->copier.builder.module->first;
  for (size_t i = 0; i < x->functions.size; ++i, copy = copy->next) {
    PESTLE_TRY(
        pestle_copier_push_function(&x->copier, x->functions.data[i], copy));
    PESTLE_TRY(pestle_copier_run(&x->copier));
  }
  return NULL;
}

static void forget_names(pestle_function_t* f) {
  pestle_node_t* n = NULL;
  f->argument_names = NULL;
  for (uint32_t i = 0; i < f->body->block->argument_count; ++i)
    f->body->block->arguments[i]->name = NULL;
  while ((n = pestle_region_next(f->body, n))) {
    for (uint32_t i = 0; i < n->result_count; ++i)
      n->results[i].name = NULL;
    for (uint32_t r = 0; r < n->region_count; ++r) {
      pestle_block_t* block = n->regions[r]->block;
      for (uint32_t i = 0; i < block->argument_count; ++i)
        block->arguments[i]->name = NULL;
    }
  }
}

pestle_status_t pestle_module_extract(pestle_function_t* function,
                                      pestle_module_t** out_module) {
  pestle_module_t *source = function->module, *target;
  *out_module = NULL;
  PESTLE_TRY(pestle_module_create(source->context, function->name, &target));
  extract_t x;
  pestle_copier_init(target->arena.allocator,
                     (pestle_builder_t){.module = target}, &x.copier);
  x.copier.foreign = true;
  pestle_vec_init(&x.functions, target->arena.allocator);
  pestle_map_init(target->arena.allocator, &x.seen);
  pestle_status_t status = pestle_module_keep_module(target, source);
  if (!status) status = find_all(&x, function);
  if (!status) status = copy_all(&x);
  pestle_map_deinit(&x.seen);
  pestle_vec_deinit(&x.functions);
  pestle_copier_deinit(&x.copier);
  if (status) {
    pestle_module_release(target);
    return status;
  }
  for (pestle_function_t* f = target->first; f; f = f->next)
    forget_names(f);
  *out_module = target;
  return NULL;
}
