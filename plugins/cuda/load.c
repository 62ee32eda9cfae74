// SPDX-License-Identifier: Apache-2.0
// Artifacts become kernels of a device: a cubin as it is, PTX through the
// driver's own compiler.
#include "plugins/cuda/load.h"

#include <string.h>

#include "plugins/cuda/artifact.h"

static pestle_status_t check_arch(const cuda_device_t* d,
                                  const cuda_artifact_t* a) {
  bool own;
  int number = pestle_cuda_arch_number(a->arch, &own);
  bool runs = a->is_ptx ? number && (own ? number == d->capability
                                         : number <= d->capability)
                        : pestle_cuda_arch_runs(a->arch, d->capability);
  if (runs) return NULL;
  return PESTLE_PLUGIN_ERROR(
      d->owner->host, INCOMPATIBLE,
      "cuda: kernel %s was compiled for %s, and device %d (%s) is an %s; "
      "compile with --target-cpu %s",
      a->name, a->arch, (int)d->index, d->name, d->arch, d->arch);
}

static pestle_status_t load_module(const cuda_device_t* d,
                                   const cuda_artifact_t* a,
                                   pestle_loaded_t* loaded) {
  char log[512] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                            CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, (void*)(uintptr_t)(sizeof log - 1)};
  CUresult result = d->owner->driver.cuModuleLoadDataEx(
      &loaded->module, a->code, a->is_ptx ? 2 : 0, options, values);
  if (!result) return NULL;
  loaded->module = NULL;
  char what[768];
  snprintf(what, sizeof what, "loading kernel %s (%s for %s)%s%s", a->name,
           a->is_ptx ? "PTX" : "a cubin", a->arch, *log ? ": " : "", log);
  return pestle_cuda_failed(d, result, __FILE__, __LINE__, what);
}

// Groups that begin while those of another kernel end fill the first units that have room,
// and the last ones have none left to do. All units get as many where no more than those
// have room on one. Of kernels whose groups take turns anyway the first to end takes the
// next.
static uint32_t share_of_unit(const cuda_device_t* d,
                              const pestle_loaded_t* loaded) {
  enum { UNIT_LANES = 2048, MOST_GROUPS = 16, STEP = 128 };
  uint64_t groups =
      (uint64_t)loaded->group[0] * loaded->group[1] * loaded->group[2];
  uint64_t lanes =
      (uint64_t)loaded->lane[0] * loaded->lane[1] * loaded->lane[2];
  uint32_t own = loaded->dynamic_shared;
  // What shares nothing has its data in the cache, whose memory that is.
  if (!loaded->waits || !own || d->units < 1 || d->unit_shared < 1) return own;
  uint64_t each = (groups + (uint64_t)d->units - 1) / (uint64_t)d->units;
  if (!each || each > MOST_GROUPS || each * lanes > UNIT_LANES) return own;
  // The least of which one group more has no room.
  int64_t bytes = d->unit_shared / (int64_t)(each + 1) - d->group_shared;
  bytes = (bytes / STEP + 1) * STEP;
  if (bytes > d->shared_most) bytes = d->shared_most;
  return bytes > (int64_t)own ? (uint32_t)bytes : own;
}

// What runs at once has no more groups than the device has units for.
static pestle_status_t check_groups(const cuda_device_t* d,
                                    const pestle_loaded_t* loaded) {
  if (!loaded->at_once || loaded->group[2] <= (uint32_t)d->units) return NULL;
  return PESTLE_PLUGIN_ERROR(
      d->owner->host, INCOMPATIBLE,
      "cuda: kernel %s is for %u units at once, and device %d (%s) has %d; "
      "compile the module on it",
      loaded->name, (unsigned)loaded->group[2], (int)d->index, d->name,
      (int)d->units);
}

// Above 48 KiB a kernel must be allowed what it asks for.
static pestle_status_t allow_shared(const cuda_device_t* d,
                                    const pestle_loaded_t* loaded) {
  if (loaded->early_shared <= (uint32_t)d->shared) return NULL;
  if (loaded->dynamic_shared > (uint32_t)d->shared_most) {
    return PESTLE_PLUGIN_ERROR(
        d->owner->host, INCOMPATIBLE,
        "cuda: kernel %s shares %u bytes in a group, and device %d (%s) has %d",
        loaded->name, (unsigned)loaded->dynamic_shared, (int)d->index, d->name,
        d->shared_most);
  }
  PESTLE_CUDA_TRY(
      d, cuFuncSetAttribute,
      (loaded->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
       (int)loaded->early_shared));
  return NULL;
}

static pestle_status_t fill(const cuda_device_t* d, const cuda_artifact_t* a,
                            pestle_loaded_t* loaded) {
  PESTLE_TRY(check_arch(d, a));
  PESTLE_TRY(check_groups(d, loaded));
  PESTLE_TRY(load_module(d, a, loaded));
  PESTLE_CUDA_TRY(d, cuModuleGetFunction,
                  (&loaded->function, loaded->module, a->name));
  return allow_shared(d, loaded);
}

static void discard(const cuda_device_t* d, pestle_loaded_t* loaded) {
  const pestle_host_t* host = d->owner->host;
  if (loaded->module) (void)d->owner->driver.cuModuleUnload(loaded->module);
  host->free(host->self, loaded, sizeof *loaded);
}

static pestle_status_t load(void* self, int32_t device, const void* artifact,
                            size_t size, pestle_loaded_t** out_loaded) {
  const pestle_host_t* host = ((cuda_t*)self)->host;
  cuda_device_t* d;
  cuda_artifact_t a;
  *out_loaded = NULL;
  PESTLE_TRY(pestle_cuda_device(self, device, &d));
  PESTLE_TRY(pestle_cuda_artifact_open(host, artifact, size, &a));
  pestle_loaded_t* loaded = host->alloc(host->self, sizeof *loaded);
  if (!loaded) {
    return PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY,
                               "cuda: no host memory to load a kernel");
  }
  *loaded = (pestle_loaded_t){.device = d,
                              .arg_count = a.arg_count,
                              .param_count = a.param_count,
                              .dynamic_shared = a.dynamic_shared,
                              .waits = a.waits,
                              .at_once = a.at_once,
                              .map_count = a.map_count};
  memcpy(loaded->map, a.map, sizeof loaded->map);
  memcpy(loaded->name, a.name, sizeof loaded->name);
  memcpy(loaded->group, a.group, sizeof loaded->group);
  memcpy(loaded->lane, a.lane, sizeof loaded->lane);
  loaded->early_shared = d->owner->launches_early ? share_of_unit(d, loaded)
                                                  : loaded->dynamic_shared;
  pestle_status_t status = pestle_cuda_enter(d);
  if (!status) {
    status = fill(d, &a, loaded);
    if (status) discard(d, loaded);
    pestle_cuda_leave(d);
  } else {
    host->free(host->self, loaded, sizeof *loaded);
  }
  if (!status) *out_loaded = loaded;
  return status;
}

static void unload(void* self, pestle_loaded_t* loaded) {
  cuda_t* cuda = self;
  if (!loaded) return;
  cuda_device_t* d = &cuda->device[loaded->device->index];
  pestle_status_t status = pestle_cuda_enter(d);
  if (status) {
    cuda->host->status_release(cuda->host->self, status);
    loaded->module = NULL;  // its context is gone, and it with it
  }
  discard(d, loaded);
  if (!status) pestle_cuda_leave(d);
}

void pestle_cuda_load_slots(pestle_device_api_t* api) {
  api->load = load;
  api->unload = unload;
}
