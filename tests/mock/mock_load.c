// SPDX-License-Identifier: Apache-2.0
// Artifacts on devices, and what a launch does.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mock/mock_internal.h"

static pestle_status_t open_program(const pestle_host_t* host,
                                    const void* artifact,
                                    const mock_artifact_t* header,
                                    mock_loaded_t* loaded) {
  if (!header->size) {
    loaded->entry = header->entry;
    return NULL;
  }
  pestle_kir_t kernel;
  const char* inner = (const char*)artifact + sizeof(*header);
  PESTLE_TRY(pestle_ref_plugin_open(host, inner, header->size, &kernel));
  PESTLE_TRY(pestle_ref_plugin_check(host, &kernel));
  PESTLE_TRY(pestle_ref_plugin_program(host, &kernel, &loaded->program));
  loaded->entry = pestle_ref_plugin_run;
  loaded->entry_self = loaded->program;
  return NULL;
}

static void destroy(const pestle_host_t* host, mock_loaded_t* loaded) {
  if (loaded->program) {
    host->free(host->self, loaded->program, loaded->program->total_size);
  }
  free(loaded);
}

static pestle_status_t load(void* self, int32_t device, const void* artifact,
                            size_t size, pestle_loaded_t** out_loaded) {
  const pestle_host_t* host = mock_host(self);
  mock_artifact_t header;
  (void)device;
  *out_loaded = NULL;
  PESTLE_TRY(mock_enter(self, MOCK_LOAD));
  if (size >= sizeof(header)) memcpy(&header, artifact, sizeof(header));
  if (size < sizeof(header) || memcmp(header.magic, MOCK_MAGIC, 8) != 0 ||
      header.size != size - sizeof(header)) {
    return MOCK_ERROR(host, MALFORMED, "not an artifact of backend mock");
  }
  mock_loaded_t* loaded = calloc(1, sizeof(*loaded));
  if (!loaded) return MOCK_ERROR(host, OUT_OF_MEMORY, "out of host memory");
  loaded->group = header.group;
  loaded->shared_bytes = header.shared_bytes;
  pestle_status_t status = open_program(host, artifact, &header, loaded);
  if (status) {
    destroy(host, loaded);
    return status;
  }
  atomic_fetch_add(&mock_state()->live_kernels, 1);
  *out_loaded = (pestle_loaded_t*)(void*)loaded;
  return NULL;
}

static void unload(void* self, pestle_loaded_t* opaque) {
  mock_loaded_t* loaded = (mock_loaded_t*)(void*)opaque;
  atomic_fetch_add(&mock_state()->calls[MOCK_UNLOAD], 1);
  if (atomic_load(&loaded->queued) || atomic_load(&loaded->recorded)) {
    mock_fault("a kernel is unloaded that runs or is recorded");
  }
  atomic_fetch_sub(&mock_state()->live_kernels, 1);
  destroy(mock_host(self), loaded);
}

int32_t mock_run(const mock_op_t* op) {
  void* buffers[MOCK_MAX_ARGS];
  mock_loaded_t* loaded = op->loaded;
  void* scratch = NULL;
  size_t size = (loaded->shared_bytes + 63) / 64 * 64;
  for (uint32_t i = 0; i < op->count; ++i)
    buffers[i] = mock_real(op->buffers[i]);
  if (size) scratch = aligned_alloc(64, size);
  int delay = atomic_load(&mock_state()->launch_delay_us);
  if (delay) usleep((useconds_t)delay);
  int32_t trap = loaded->entry(loaded->entry_self, buffers, NULL, 0,
                               loaded->group, scratch);
  free(scratch);
  atomic_fetch_add(&mock_state()->kernels_run, 1);
  return trap;
}

static pestle_status_t make_op(void* self, int32_t device,
                               const pestle_launch_t* launch, mock_op_t* op) {
  const pestle_host_t* host = mock_host(self);
  if (launch->buffer_count > MOCK_MAX_ARGS || launch->param_count) {
    return MOCK_ERROR(host, UNSUPPORTED, "mock: too many arguments");
  }
  // The host hands back what load() gave it.
  op->kind = MOCK_OP_LAUNCH;
  op->loaded = (mock_loaded_t*)(uintptr_t)launch->loaded;
  op->count = launch->buffer_count;
  pestle_status_t status = NULL;
  pthread_mutex_lock(&mock_lock);
  for (uint32_t i = 0; i < op->count && !status; ++i) {
    op->buffers[i] = launch->buffers[i];
    status = mock_check(host, mock_device(self, device), op->buffers[i], 0,
                        "an argument");
  }
  pthread_mutex_unlock(&mock_lock);
  return status;
}

static pestle_status_t queue_launch(void* self, int32_t device,
                                    pestle_device_stream_t* stream,
                                    const pestle_launch_t* launch) {
  mock_op_t op = {0};
  PESTLE_TRY(mock_enter(self, MOCK_LAUNCH));
  PESTLE_TRY(make_op(self, device, launch, &op));
  if (stream) {
    if (mock_stream_device(stream) != mock_device(self, device)) {
      mock_fault("a launch on a stream of another device");
    }
    return mock_push(self, stream, &op);
  }
  int32_t trap = mock_run(&op);
  if (!trap) return NULL;
  return MOCK_ERROR(mock_host(self), INTERNAL,
                    "mock: a kernel stopped at its check %d", (int)trap);
}

void mock_load_slots(pestle_device_api_t* api) {
  api->load = load;
  api->unload = unload;
  api->launch = queue_launch;
}
