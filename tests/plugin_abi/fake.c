// SPDX-License-Identifier: Apache-2.0
// A backend without any function in it, built many times: each time one FAKE_
// definition makes it wrong in one way.
#include <string.h>

#include "pestle/plugin.h"

#ifndef FAKE_ID
#define FAKE_ID "fake-1"
#endif
#ifndef FAKE_SCORE
#define FAKE_SCORE 10
#endif
#ifndef FAKE_DEVICES
#define FAKE_DEVICES 1
#endif
#ifndef FAKE_MAJOR
#define FAKE_MAJOR PESTLE_ABI_MAJOR
#endif
#ifndef FAKE_KIR_MAJOR
#define FAKE_KIR_MAJOR PESTLE_KIR_ABI_MAJOR
#endif
#ifndef FAKE_INFO_SIZE
#define FAKE_INFO_SIZE sizeof(pestle_backend_abi_info_t)
#endif
#ifndef FAKE_INST_SIZE
#define FAKE_INST_SIZE sizeof(pestle_kir_inst_t)
#endif
#ifndef FAKE_BUFFER_SIZE
#define FAKE_BUFFER_SIZE sizeof(pestle_kir_buffer_t)
#endif
#ifndef FAKE_KIR_SIZE
#define FAKE_KIR_SIZE sizeof(pestle_kir_t)
#endif
#ifndef FAKE_SANITIZERS
#define FAKE_SANITIZERS PESTLE_SANITIZERS_
#endif
#ifndef FAKE_TABLE_SIZE
#define FAKE_TABLE_SIZE sizeof(pestle_backend_t)
#endif
#ifndef FAKE_TABLE_NAME
#define FAKE_TABLE_NAME FAKE_NAME
#endif
#ifndef FAKE_TABLE_SCORE
#define FAKE_TABLE_SCORE FAKE_SCORE
#endif

#ifdef FAKE_UNRESOLVED
void pestle_no_such_function(void);
#endif

#ifndef FAKE_NO_INFO
PESTLE_EXPORT const pestle_backend_abi_info_t* pestle_backend_abi_info(void);
const pestle_backend_abi_info_t* pestle_backend_abi_info(void) {
  static const pestle_backend_abi_info_t info = {
      .struct_size = FAKE_INFO_SIZE,
      .abi_major = FAKE_MAJOR,
      .abi_minor = PESTLE_ABI_MINOR,
      .sanitizers = FAKE_SANITIZERS,
      .kir_abi_major = FAKE_KIR_MAJOR,
      .sizeof_inst = FAKE_INST_SIZE,
      .sizeof_buffer = FAKE_BUFFER_SIZE,
      .sizeof_kir = FAKE_KIR_SIZE,
      .build_id = FAKE_ID,
      .name = FAKE_NAME};
  return &info;
}
#endif

PESTLE_EXPORT int32_t pestle_backend_score(char* why, size_t capacity);
int32_t pestle_backend_score(char* why, size_t capacity) {
#ifdef FAKE_ZERO_SCORE
  strncpy(why, "the machine has no flux capacitor", capacity);
  return 0;
#else
  (void)why, (void)capacity;
  return FAKE_SCORE;
#endif
}

#if !defined(FAKE_NO_HALVES) && !defined(FAKE_FAILS) && \
    !defined(FAKE_SILENT) && !defined(FAKE_NO_INIT)
static pestle_status_t describe(void* self, const char* cpu,
                                pestle_target_caps_t* out_caps) {
  (void)self, (void)cpu;
  memset(out_caps, 0, sizeof(*out_caps));
  return NULL;
}

static pestle_status_t toolchain_id(void* self, const char** out_text) {
  (void)self;
  *out_text = "fake";
  return NULL;
}

static pestle_status_t compile(void* self, const pestle_kir_t* kernel,
                               const pestle_kernel_options_t* options,
                               pestle_blob_t* out_artifact) {
  (void)self, (void)kernel, (void)options, (void)out_artifact;
  return NULL;
}

static pestle_status_t load(void* self, int32_t device, const void* artifact,
                            size_t size, pestle_loaded_t** out_loaded) {
  (void)self, (void)device, (void)artifact, (void)size, (void)out_loaded;
  return NULL;
}

static void unload(void* self, pestle_loaded_t* loaded) {
  (void)self, (void)loaded;
}
#endif

#ifndef FAKE_NO_INIT
PESTLE_EXPORT const pestle_backend_t* pestle_backend_init(
    const pestle_host_t* host, pestle_status_t* out_status);
const pestle_backend_t* pestle_backend_init(const pestle_host_t* host,
                                            pestle_status_t* out_status) {
#ifdef FAKE_UNRESOLVED
  pestle_no_such_function();
#endif
#if defined(FAKE_FAILS)
  *out_status = host->status_make(host->self, PESTLE_STATUS_UNAVAILABLE,
                                  __FILE__, __LINE__, "the moon is not full");
  return NULL;
#elif defined(FAKE_SILENT)
  (void)host, (void)out_status;
  return NULL;
#else
  host->log(host->self, 3, "fake backend starts");
  (void)out_status;
#ifndef FAKE_NO_HALVES
#ifdef FAKE_SHORT
  // As an older plugin: the tables end after the slots that all must have.
  static const pestle_target_api_t target = {
      offsetof(pestle_target_api_t, print), describe, toolchain_id, compile,
      NULL};
  static const pestle_device_api_t device = {
      .struct_size = offsetof(pestle_device_api_t, cpu_entry),
      .load = load,
      .unload = unload};
#else
  static const pestle_target_api_t target = {sizeof(target), describe,
                                             toolchain_id, compile, NULL};
  static const pestle_device_api_t device = {
      .struct_size = sizeof(device), .load = load, .unload = unload};
#endif
#endif
  static const pestle_backend_t backend = {
      .struct_size = FAKE_TABLE_SIZE,
      .name = FAKE_TABLE_NAME,
#ifdef FAKE_GPU
      .device_type = PESTLE_DEVICE_CUDA,
#else
      .device_type = PESTLE_DEVICE_CPU,
#endif
      .score = FAKE_TABLE_SCORE,
      .device_count = FAKE_DEVICES,
#ifndef FAKE_NO_HALVES
      .target = &target,
      .device = &device,
#endif
  };
  return &backend;
#endif
}
#endif
