// SPDX-License-Identifier: Apache-2.0
// The backend "cuda": Kernel IR to CUDA C, by NVRTC to machine code, run through
// the driver. It links against nothing of CUDA: without a driver it scores 0 and
// still describes targets, prints and compiles.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pestle_plugin_build_id.h"
#include "plugins/common/slots.h"
#include "plugins/cuda/backend.h"
#include "plugins/cuda/comm.h"
#include "plugins/cuda/nvrtc.h"
#include "plugins/cuda/property.h"

enum { SCORE = 100 };

static pestle_device_api_t device_api;
static pthread_once_t device_api_once = PTHREAD_ONCE_INIT;

static void fill_device_api(void) {
  pestle_device_api_t api = {.struct_size = sizeof api,
                             .property = pestle_cuda_property};
  pestle_cuda_load_slots(&api);
  pestle_cuda_memory_slots(&api);
  pestle_cuda_copy_slots(&api);
  pestle_cuda_stream_slots(&api);
  pestle_cuda_event_slots(&api);
  pestle_cuda_graph_slots(&api);
  pestle_cuda_host_call_slots(&api);
  pestle_cuda_where_slots(&api);
  device_api = api;
}

static int32_t score(char* why, size_t capacity) {
  cuda_driver_t driver;
  char reason[512] = "";
  if (pestle_cuda_driver_open(&driver, reason, sizeof reason)) return SCORE;
  if (capacity) snprintf(why, capacity, "%s", reason);
  return 0;
}

static void deinit(void* self) {
  cuda_t* cuda = self;
  pestle_cuda_stop_devices(cuda);
  cuda->host->free(cuda->host->self, cuda, sizeof *cuda);
}

// Graphs have edges between kernels that overlap since CUDA 12.3.
static bool launches_early(const cuda_t* cuda) {
  enum { FIRST_VERSION = 12030 };
  const char* wanted = secure_getenv("PESTLE_CUDA_DEPENDENT");
  int version = 0;
  if (!cuda->has_driver || (wanted && !strcmp(wanted, "0"))) return false;
  return !cuda->driver.cuDriverGetVersion(&version) && version >= FIRST_VERSION;
}

static pestle_status_t start(cuda_t* cuda) {
  char nvrtc[256];
  cuda->has_driver =
      pestle_cuda_driver_open(&cuda->driver, cuda->why, sizeof cuda->why);
  cuda->launches_early = launches_early(cuda);
  if (cuda->has_driver) PESTLE_TRY(pestle_cuda_start_devices(cuda));
  pestle_cuda_nvrtc_id(nvrtc, sizeof nvrtc);
  snprintf(cuda->toolchain, sizeof cuda->toolchain,
           "cuda %s nvrtc=%s options=%s", PESTLE_PLUGIN_BUILD_ID, nvrtc,
           pestle_cuda_nvrtc_options());
  return NULL;
}

static const pestle_backend_t* init(const pestle_host_t* host,
                                    pestle_status_t* out_status) {
  cuda_t* cuda = pestle_plugin_state(host, sizeof *cuda, "cuda", out_status);
  if (!cuda) return NULL;
  cuda->host = host;
  *out_status = start(cuda);
  if (*out_status) {
    deinit(cuda);
    return NULL;
  }
  pthread_once(&device_api_once, fill_device_api);
  cuda->backend = (pestle_backend_t){
      .struct_size = sizeof cuda->backend,
      .name = "cuda",
      .device_type = PESTLE_DEVICE_CUDA,
      .score = cuda->device_count ? SCORE : 0,
      .device_count = cuda->device_count,
      .self = cuda,
      .target = &pestle_cuda_target,
      .device = &device_api,
      .deinit = deinit,
      .collective = &pestle_cuda_collective,
  };
  return &cuda->backend;
}

#undef PESTLE_BACKEND_DEVICE_TYPE
#define PESTLE_BACKEND_DEVICE_TYPE PESTLE_DEVICE_CUDA
#undef PESTLE_BACKEND_ABI_FLAGS
#define PESTLE_BACKEND_ABI_FLAGS PESTLE_BACKEND_TARGET_ALONE
PESTLE_BACKEND_IMPL("cuda", PESTLE_PLUGIN_BUILD_ID, init)
PESTLE_BACKEND_SCORE_IMPL(score)
