// SPDX-License-Identifier: Apache-2.0
// A host as it was at an earlier minor version of the plugin interface (minor0/
// to minor7/ have the headers, which never change): it loads a plugin of today,
// reads no slot that it does not know, and runs a kernel. Memory behind its
// records must stay as it was.
//
// usage: old_host PLUGIN.so
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pestle/plugin.h"

_Static_assert(PESTLE_ABI_MINOR == OLD_MINOR, "these are other headers");

static int failures;

static void expect(bool condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "not so: %s\n", what);
  ++failures;
}

// --- Services ---

static pestle_status_t make_status(void* self, int32_t code, const char* file,
                                   int32_t line, const char* message) {
  (void)self;
  fprintf(stderr, "%s:%d: status %d: %s\n", file, (int)line, (int)code,
          message);
  return (pestle_status_t)(void*)&failures;
}
static void release_status(void* self, pestle_status_t status) {
  (void)self, (void)status;
}
static void* take(void* self, size_t size) {
  (void)self;
  return aligned_alloc(64, (size + 63) / 64 * 64);
}
static void give(void* self, void* data, size_t size) {
  (void)self, (void)size;
  free(data);
}
static void log_nothing(void* self, int32_t level, const char* message) {
  (void)self, (void)level, (void)message;
}

static const pestle_host_t host = {.struct_size = sizeof(host),
                                   .abi_major = PESTLE_ABI_MAJOR,
                                   .abi_minor = PESTLE_ABI_MINOR,
                                   .status_make = make_status,
                                   .status_release = release_status,
                                   .alloc = take,
                                   .free = give,
                                   .log = log_nothing};

// --- A kernel: y[i] = x[i] + x[i] for 16 groups ---

enum { COUNT = 16 };

static pestle_kir_inst_t inst(unsigned op, unsigned type, uint32_t a,
                              uint32_t b, uint32_t c, uint32_t d) {
  return (pestle_kir_inst_t){.op = (uint16_t)op,
                             .type = (uint8_t)type,
                             .lanes = 1,
                             .arg = {a, b, c, d}};
}

static void run_kernel(const pestle_backend_t* backend) {
  const uint32_t none = PESTLE_KIR_NONE;
  pestle_kir_inst_t code[] = {
      inst(PESTLE_KIR_CONST, PESTLE_INDEX, 0, 0, 0, 0),
      inst(PESTLE_KIR_CONST, PESTLE_INDEX, COUNT, 0, 0, 0),
      inst(PESTLE_KIR_FOR, PESTLE_INDEX, 0, 1, 1, PESTLE_KIR_GROUP_X),
      inst(PESTLE_KIR_LOAD, PESTLE_F32, 0, 2, none, 0),
      inst(PESTLE_KIR_ADD, PESTLE_F32, 3, 3, 0, 0),
      inst(PESTLE_KIR_STORE, PESTLE_NONE, 1, 2, 4, none),
      inst(PESTLE_KIR_END, PESTLE_NONE, 0, 0, 0, 0)};
  code[3].align_log2 = code[5].align_log2 = 2;
  const pestle_kir_buffer_t buffers[] = {{.name = 3,
                                          .dtype = PESTLE_F32,
                                          .lanes = 1,
                                          .flags = PESTLE_KIR_READONLY,
                                          .count = COUNT,
                                          .align = 64,
                                          .arg_slot = 0,
                                          .alias_set = 1},
                                         {.name = 5,
                                          .dtype = PESTLE_F32,
                                          .lanes = 1,
                                          .count = COUNT,
                                          .align = 64,
                                          .arg_slot = 1,
                                          .alias_set = 2}};
  const pestle_kir_t kernel = {.struct_size = sizeof(kernel),
                               .abi_major = PESTLE_KIR_ABI_MAJOR,
                               .inst_size = sizeof(code[0]),
                               .buffer_size = sizeof(buffers[0]),
                               .inst_count = sizeof(code) / sizeof(code[0]),
                               .buffer_count = 2,
                               .strings_size = 7,
                               .inst = code,
                               .buffer = buffers,
                               .strings = "\0k\0x\0y",
                               .name = 1,
                               .group = {COUNT, 1, 1},
                               .lane = {1, 1, 1},
                               .arg_count = 2,
                               .hash = {1, 2}};
  const pestle_kernel_options_t options = {.struct_size = sizeof(options)};
  pestle_blob_t artifact = {NULL, 0};
  pestle_loaded_t* loaded = NULL;
  pestle_cpu_entry_t entry = NULL;
  const void* self = NULL;
  void* me = backend->self;
  if (backend->target->compile(me, &kernel, &options, &artifact) ||
      backend->device->load(me, 0, artifact.data, artifact.size, &loaded) ||
      backend->device->cpu_entry(me, loaded, &entry, &self)) {
    expect(false, "the kernel compiles and loads");
    return;
  }
  float* x = take(NULL, COUNT * sizeof(float));
  float* y = take(NULL, COUNT * sizeof(float));
  for (int i = 0; i < COUNT; ++i)
    x[i] = (float)i + 0.5f;
  void* const pointers[] = {x, y};
  expect(entry(self, pointers, NULL, 0, COUNT, NULL) == 0, "it runs");
  for (int i = 0; i < COUNT; ++i)
    expect(y[i] == 2 * x[i], "y is x + x");
  free(x);
  free(y);
  backend->device->unload(me, loaded);
  give(NULL, artifact.data, artifact.size);
}

// The record that a plugin fills is this host's, however long its own is.
static void describe(const pestle_backend_t* backend) {
  struct {
    pestle_target_caps_t caps;
    unsigned char behind[4096];
  } record;
  memset(&record, 0xA5, sizeof(record));
  record.caps.struct_size = sizeof(record.caps);
  expect(!backend->target->describe(backend->self, NULL, &record.caps),
         "it describes its target");
  bool untouched = true;
  for (size_t i = 0; i < sizeof(record.behind); ++i)
    untouched &= record.behind[i] == 0xA5;
  expect(untouched, "nothing is written behind the record");
  expect(record.caps.device_type == PESTLE_DEVICE_CPU, "it is a cpu");
}

static void* function(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (!found) fprintf(stderr, "there is no %s\n", name);
  return found;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  pestle_backend_abi_info_fn_t abi_info;
  pestle_backend_init_fn_t init;
  void* found = function(library, "pestle_backend_abi_info");
  memcpy(&abi_info, &found, sizeof(found));
  found = function(library, "pestle_backend_init");
  memcpy(&init, &found, sizeof(found));
  if (!abi_info || !init) return 1;
  const pestle_backend_abi_info_t* info = abi_info();
  expect(info->struct_size >= sizeof(*info), "abi_info is as long as it was");
  expect(info->abi_major == PESTLE_ABI_MAJOR, "the major version is the same");
  expect(info->kir_abi_major == PESTLE_KIR_ABI_MAJOR, "and the Kernel IR's");
  expect(info->sizeof_inst == sizeof(pestle_kir_inst_t), "pestle_kir_inst_t");
  expect(info->sizeof_buffer == sizeof(pestle_kir_buffer_t),
         "pestle_kir_buffer_t");
  pestle_status_t status = NULL;
  const pestle_backend_t* backend = init(&host, &status);
  if (!backend || status) return 1;
  describe(backend);
  run_kernel(backend);
  if (PESTLE_HAS(backend, deinit)) backend->deinit(backend->self);
  return failures ? 1 : 0;
}
