// SPDX-License-Identifier: Apache-2.0
#include "runtime/device_constant.h"

#include "base/mem.h"
#include "runtime/context.h"
#include "runtime/queue.h"

// A plan that was written by hand may not know its constants' hashes: they are
// the plan's own then.
typedef struct constant_key_t {
  uint64_t hash[2];
  uint64_t size;
  const pestle_device_t* device;
  const pestle_plan_t* plan;
  uint64_t index;
} constant_key_t;

struct pestle_device_constant_t {
  constant_key_t key;
  unsigned holders;
  pestle_device_t* device;
  pestle_block_t* block;
};

void pestle_device_constants_init(pestle_context_t* context,
                                  pestle_device_constants_t* out_constants) {
  out_constants->context = context;
  pestle_mutex_init(&out_constants->mutex);
  pestle_map_init(context->core.allocator, &out_constants->map);
}

void pestle_device_constants_deinit(pestle_device_constants_t* constants) {
  pestle_map_deinit(&constants->map);
  pestle_mutex_deinit(&constants->mutex);
}

void pestle_device_constants_after_fork(pestle_device_constants_t* constants) {
  if (pestle_mutex_try_lock(&constants->mutex)) {
    pestle_mutex_unlock(&constants->mutex);
    return;
  }
  // A thread of the parent was changing the table.
  pestle_device_constants_init(constants->context, constants);
}

static constant_key_t key_of(const pestle_plan_t* plan, uint32_t index,
                             const pestle_device_t* device) {
  const pestle_plan_constant_ref_t* ref = &PESTLE_PLAN_RECORDS(
      plan, pestle_plan_constant_ref_t, constant_refs)[index];
  constant_key_t key = {.hash = {ref->hash[0], ref->hash[1]},
                        .size = ref->size,
                        .device = device};
  if (!ref->hash[0] && !ref->hash[1]) {
    key.plan = plan;
    key.index = index;
  }
  return key;
}

static void destroy(pestle_device_constant_t* constant) {
  pestle_device_free(constant->device, constant->block);
  pestle_dealloc(constant->device->context->core.allocator, constant,
                 sizeof(*constant));
}

static pestle_status_t upload(const pestle_plan_t* plan, const void* data,
                              const constant_key_t* key,
                              pestle_device_t* device,
                              pestle_device_constant_t** out_constant) {
  pestle_device_constant_t* constant =
      pestle_alloc_zero(plan->context->core.allocator, sizeof(*constant));
  if (!constant) return PESTLE_OOM();
  constant->key = *key;
  constant->holders = 1;
  constant->device = device;
  pestle_status_t status =
      pestle_device_allocate(device, (size_t)key->size, &constant->block);
  if (!status) {
    status = pestle_device_write(device, data, constant->block->data,
                                 (size_t)key->size);
  }
  if (status) {
    destroy(constant);
    return status;
  }
  *out_constant = constant;
  return NULL;
}

static pestle_status_t find_or_upload(pestle_device_constants_t* t,
                                      const pestle_plan_t* plan, uint32_t index,
                                      const void* data, pestle_device_t* device,
                                      pestle_device_constant_t** out_constant) {
  constant_key_t key = key_of(plan, index, device);
  bool added;
  pestle_map_value_t* value =
      pestle_map_put(&t->map, &key, sizeof(key), &added);
  if (!value) return PESTLE_OOM();
  if (!added) {
    *out_constant = value->ptr;
    ++(*out_constant)->holders;
    return NULL;
  }
  pestle_status_t status = upload(plan, data, &key, device, out_constant);
  if (status) {
    (void)pestle_map_remove(&t->map, &key, sizeof(key));
  } else {
    value->ptr = *out_constant;
  }
  return status;
}

pestle_status_t pestle_device_constant_get(
    const pestle_plan_t* plan, uint32_t index, const void* data,
    pestle_device_t* device, pestle_device_constant_t** out_constant) {
  pestle_device_constants_t* t = &plan->context->device_constants;
  pestle_mutex_lock(&t->mutex);
  pestle_status_t status =
      find_or_upload(t, plan, index, data, device, out_constant);
  pestle_mutex_unlock(&t->mutex);
  return pestle_status_annotate(
      status, "while putting constant %u of plan '%s' on device %s",
      (unsigned)index, pestle_plan_text(plan, pestle_plan_header(plan)->name),
      device->name);
}

void pestle_device_constant_release(pestle_context_t* context,
                                    pestle_device_constant_t* constant) {
  if (!constant) return;
  pestle_device_constants_t* t = &context->device_constants;
  pestle_mutex_lock(&t->mutex);
  bool last = !--constant->holders;
  if (last) {
    (void)pestle_map_remove(&t->map, &constant->key, sizeof(constant->key));
  }
  pestle_mutex_unlock(&t->mutex);
  if (last) destroy(constant);
}

char* pestle_device_constant_data(const pestle_device_constant_t* constant) {
  return constant->block->data;
}
