// SPDX-License-Identifier: Apache-2.0
// Pipelines and dispatches. Addresses and parameters go by push constants, or,
// where there are more than fit, by a table whose address does.
#include <stdio.h>
#include <string.h>

#include "plugins/common/c_printer_artifact.h"
#include "plugins/common/slots.h"
#include "plugins/vulkan/vulkan.h"

enum { MAX_PUSH = 256 };

struct pestle_loaded_s {
  vulkan_device_t* device;
  VkPipelineLayout layout;
  VkPipeline pipeline;
  uint32_t group[3];
  uint32_t arg_count, param_count;
  bool table;
};

void pestle_vulkan_unload(void* self, pestle_loaded_t* loaded) {
  const vulkan_t* v = self;
  if (!loaded) return;
  vulkan_device_t* d = loaded->device;
  if (loaded->pipeline) d->DestroyPipeline(d->device, loaded->pipeline, NULL);
  if (loaded->layout) d->DestroyPipelineLayout(d->device, loaded->layout, NULL);
  v->host->free(v->host->self, loaded, sizeof *loaded);
}

static uint32_t push_size(const pestle_loaded_t* loaded) {
  uint32_t count = loaded->arg_count + loaded->param_count;
  return loaded->table ? 8 : 8 * count;
}

static pestle_status_t make_pipeline(vulkan_device_t* d,
                                     pestle_loaded_t* loaded,
                                     const pestle_c_printer_artifact_t* a) {
  VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0,
                               push_size(loaded)};
  VkPipelineLayoutCreateInfo layout = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
      .pushConstantRangeCount = range.size ? 1 : 0,
      .pPushConstantRanges = &range};
  VULKAN_CHECK(d->owner, d->CreatePipelineLayout(d->device, &layout, NULL,
                                                 &loaded->layout));
  VkShaderModule module;
  VkShaderModuleCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
      .codeSize = a->binary_size,
      .pCode = a->binary};
  VULKAN_CHECK(d->owner,
               d->CreateShaderModule(d->device, &info, NULL, &module));
  VkComputePipelineCreateInfo pipeline = {
      .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
      .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                .module = module,
                .pName = "main"},
      .layout = loaded->layout};
  VkResult result = d->CreateComputePipelines(d->device, d->cache, 1, &pipeline,
                                              NULL, &loaded->pipeline);
  d->DestroyShaderModule(d->device, module, NULL);
  if (result == VK_SUCCESS) return NULL;
  return PESTLE_PLUGIN_ERROR(d->owner->host, INTERNAL,
                             "%s makes no pipeline of kernel %s: %d", d->name,
                             a->name, (int)result);
}

pestle_status_t pestle_vulkan_load(void* self, int32_t device,
                                   const void* artifact, size_t size,
                                   pestle_loaded_t** out_loaded) {
  vulkan_t* v = self;
  vulkan_device_t* d;
  pestle_c_printer_artifact_t a;
  *out_loaded = NULL;
  PESTLE_TRY(pestle_vulkan_device(v, device, &d));
  PESTLE_TRY(
      pestle_c_printer_artifact_open(v->host, "vulkan", artifact, size, &a));
  if (a.binary_size < 20 || a.binary_size % 4) {
    return PESTLE_PLUGIN_ERROR(v->host, MALFORMED,
                               "vulkan: the artifact has no SPIR-V");
  }
  pestle_loaded_t* loaded = v->host->alloc(v->host->self, sizeof *loaded);
  // The words lie where the text ends: anywhere.
  void* words = v->host->alloc(v->host->self, a.binary_size);
  if (!loaded || !words) {
    if (loaded) v->host->free(v->host->self, loaded, sizeof *loaded);
    if (words) v->host->free(v->host->self, words, a.binary_size);
    return PESTLE_PLUGIN_ERROR(v->host, OUT_OF_MEMORY,
                               "no memory to load a kernel");
  }
  memcpy(words, a.binary, a.binary_size);
  a.binary = words;
  *loaded = (pestle_loaded_t){.device = d,
                              .arg_count = a.arg_count,
                              .param_count = a.param_count,
                              .table = a.table};
  memcpy(loaded->group, a.group, sizeof loaded->group);
  pestle_status_t status = NULL;
  if (push_size(loaded) > d->push_bytes || push_size(loaded) > MAX_PUSH) {
    status = PESTLE_PLUGIN_ERROR(
        v->host, INCOMPATIBLE,
        "kernel %s passes %u bytes of arguments, %s takes %u", a.name,
        push_size(loaded), d->name, d->push_bytes);
  } else {
    status = make_pipeline(d, loaded, &a);
  }
  v->host->free(v->host->self, words, a.binary_size);
  if (status) {
    pestle_vulkan_unload(v, loaded);
    return status;
  }
  *out_loaded = loaded;
  return NULL;
}

// Addresses, then parameters.
static void put_arguments(const pestle_launch_t* launch, uint64_t* to) {
  const pestle_loaded_t* loaded = launch->loaded;
  for (uint32_t i = 0; i < loaded->arg_count; ++i)
    to[i] = (uint64_t)(uintptr_t)launch->buffers[i];
  for (uint32_t i = 0; i < loaded->param_count; ++i)
    to[loaded->arg_count + i] = (uint64_t)launch->params[i];
}

static pestle_status_t record_locked(pestle_device_stream_t* stream,
                                     const pestle_launch_t* launch) {
  const pestle_loaded_t* loaded = launch->loaded;
  vulkan_device_t* d = stream->device;
  uint64_t push[MAX_PUSH / 8];
  VkCommandBuffer commands;
  PESTLE_TRY(pestle_vulkan_record_locked(stream, &commands));
  if (loaded->table) {
    vulkan_block_t* table;
    size_t count = loaded->arg_count + loaded->param_count;
    PESTLE_TRY(pestle_vulkan_block_locked(d, count * 8, true, &table));
    put_arguments(launch, table->mapped);
    push[0] = table->address;
    pestle_vulkan_use_locked(stream, table);
  } else {
    put_arguments(launch, push);
  }
  d->CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                     loaded->pipeline);
  if (push_size(loaded)) {
    d->CmdPushConstants(commands, loaded->layout, VK_SHADER_STAGE_COMPUTE_BIT,
                        0, push_size(loaded), push);
  }
  d->CmdDispatch(commands, loaded->group[0], loaded->group[1],
                 loaded->group[2]);
  return NULL;
}

static pestle_status_t record(pestle_device_stream_t* stream,
                              const void* data) {
  pthread_mutex_lock(&stream->device->lock);
  pestle_status_t status = record_locked(stream, data);
  pthread_mutex_unlock(&stream->device->lock);
  return status;
}

pestle_status_t pestle_vulkan_launch(void* self, int32_t device,
                                     pestle_device_stream_t* stream,
                                     const pestle_launch_t* launch) {
  vulkan_t* v = self;
  const pestle_loaded_t* loaded = launch->loaded;
  if (launch->buffer_count != loaded->arg_count ||
      launch->param_count != loaded->param_count) {
    return PESTLE_PLUGIN_ERROR(
        v->host, INVALID_ARGUMENT,
        "the kernel has %u buffers and %u parameters, not %u and %u",
        loaded->arg_count, loaded->param_count, launch->buffer_count,
        launch->param_count);
  }
  if (!loaded->group[0] || !loaded->group[1] || !loaded->group[2]) return NULL;
  if (stream) return record(stream, launch);
  return pestle_vulkan_with_stream(v, device, record, launch);
}

pestle_status_t pestle_vulkan_property(void* self, int32_t device,
                                       uint32_t index,
                                       pestle_device_property_t* out_property) {
  const vulkan_t* v = self;
  if (device < 0 || device >= v->device_count) {
    return PESTLE_PLUGIN_ERROR(v->host, NOT_FOUND,
                               "vulkan has %d devices and no %d",
                               v->device_count, device);
  }
  const vulkan_device_t* d = &v->device[device];
  const pestle_plugin_property_t rows[] = {
      {"name", d->name, 0},
      {"driver", d->driver, 0},
      {"software", NULL, !d->is_gpu},
      {"vendor_id", NULL, d->vendor},
      {"api_major", NULL, VK_API_VERSION_MAJOR(d->api)},
      {"api_minor", NULL, VK_API_VERSION_MINOR(d->api)},
      {"memory_bytes", NULL, (int64_t)d->memory_bytes},
      {"shared_bytes", NULL, d->shared},
      {"subgroup_lanes", NULL, d->subgroup},
      {"max_group_lanes", NULL, d->group_lanes},
  };
  return pestle_plugin_give_property(
      v->host, "vulkan", rows, sizeof rows / sizeof *rows, index, out_property);
}
