// SPDX-License-Identifier: Apache-2.0
// Fixture of the tests of plugins with devices of their own: the plugin's file
// opened as the registry would, and running one kernel on its device and
// through `ref` on equal buffers.
#ifndef PESTLE_TESTS_UNIT_PLUGINS_GPU_KERNEL_H_
#define PESTLE_TESTS_UNIT_PLUGINS_GPU_KERNEL_H_

#include <dlfcn.h>
#include <glob.h>
#include <math.h>
#include <stdlib.h>

#include "codegen/kir/kir_build.h"
#include "kernel_host.h"
#include "kernel_values.h"
#include "pestle/plugin.h"
#include "plugins/ref/ref.h"
#include "test.h"

enum { MAX_ARGUMENTS = 96 };

static const pestle_backend_t* gpu;
static const pestle_backend_t* ref_backend;
static pestle_target_caps_t caps;
static __attribute__((unused)) unsigned gpu_most_arguments = MAX_ARGUMENTS;

// What kernels are compiled for; NULL: the device's own.
static const char* gpu_cpu;

// Mesa's driver for CPUs, of the Vulkan drivers that a machine has, unless the
// environment names another.
static inline void gpu_choose_driver(void) {
  glob_t found;
  if (glob("/usr/share/vulkan/icd.d/lvp_icd*.json", 0, NULL, &found) == 0) {
    setenv("VK_ICD_FILENAMES", found.gl_pathv[0], 0);
  }
  globfree(&found);
}

// Group setup. Without the plugin or a device of its the test is skipped.
// Opens backend |name|; whether it has a device, with why not.
static inline bool gpu_open(const char* name, char* why, size_t capacity) {
  char path[1024];
  const char* folder = getenv("PESTLE_BACKEND_PATH");
  pestle_status_t status;
  gpu_choose_driver();
  snprintf(path, sizeof path, "%s/libpestle-%s.so",
           folder ? folder : "backends", name);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    print_message("skipped: %s\n", dlerror());
    exit(77);
  }
  pestle_test_allocator_init(&host_memory, 0);
  pestle_backend_score_fn_t score;
  pestle_backend_init_fn_t init;
  *(void**)&score = dlsym(library, "pestle_backend_score");
  *(void**)&init = dlsym(library, "pestle_backend_init");
  assert_non_null(score);
  assert_non_null(init);
  bool usable = score(why, capacity) > 0;
  gpu = init(&test_host, &status);
  assert_ok(status);
  caps.struct_size = sizeof caps;
  assert_ok(gpu->target->describe(gpu->self, gpu_cpu, &caps));
  ref_backend = pestle_ref_backend_init(&test_host, &status);
  assert_ok(status);
  return usable && gpu->device_count;
}

static inline int gpu_teardown(void** state) {
  (void)state;
  if (gpu->deinit) gpu->deinit(gpu->self);
  if (ref_backend->deinit) ref_backend->deinit(ref_backend->self);
  pestle_test_allocator_check(&host_memory);
  return 0;
}

static inline void gpu_setup(const char* name) {
  char why[512] = "";
  if (gpu_open(name, why, sizeof why)) return;
  print_message("skipped: %s\n", why);
  (void)gpu_teardown(NULL);
  exit(77);
}

// --- Running ---

enum { CANARY = 128, MAX_BUFFERS = 96 };

// All global buffers of a kernel, on the host, with canaries around each.
typedef struct buffers_t {
  uint32_t count;
  const pestle_kir_buffer_t* buffer[MAX_BUFFERS];
  unsigned char* block[MAX_BUFFERS];
  size_t size[MAX_BUFFERS];
  void* slot[MAX_BUFFERS];
} buffers_t;

static inline void buffers_init(buffers_t* a, const pestle_kir_t* k,
                                fill_fn_t fill) {
  memset(a, 0, sizeof *a);
  for (uint32_t i = 0; i < k->buffer_count; ++i) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(k, i);
    if (u->scope != PESTLE_KIR_GLOBAL) continue;
    uint32_t at = u->arg_slot;
    assert_true(at < MAX_BUFFERS);
    pestle_dtype_t dtype = (pestle_dtype_t)u->dtype;
    size_t bytes = (size_t)u->count * pestle_dtype_size(dtype);
    a->buffer[at] = u;
    a->size[at] = (bytes + 2 * CANARY + 63) & ~(size_t)63;
    a->block[at] = aligned_alloc(64, a->size[at]);
    memset(a->block[at], 0xc5, a->size[at]);
    a->slot[at] = a->block[at] + CANARY;
    fill(pestle_kir_string(k, u->name), dtype, a->slot[at], (size_t)u->count);
    if (at >= a->count) a->count = at + 1;
  }
}

static inline void buffers_deinit(buffers_t* a) {
  for (uint32_t i = 0; i < a->count; ++i)
    free(a->block[i]);
}

static inline void run_on_ref(const pestle_kir_t* k, buffers_t* a,
                              const int64_t* params) {
  pestle_blob_t blob;
  pestle_loaded_t* loaded;
  pestle_cpu_entry_t entry;
  const void* self;
  pestle_kernel_options_t options = {.struct_size = sizeof options};
  const pestle_backend_t* r = ref_backend;
  assert_ok(r->target->compile(r->self, k, &options, &blob));
  assert_ok(r->device->load(r->self, 0, blob.data, blob.size, &loaded));
  host_free(NULL, blob.data, blob.size);
  assert_ok(r->device->cpu_entry(r->self, loaded, &entry, &self));
  void* scratch = aligned_alloc(64, ((size_t)k->shared_bytes + 127) & ~63ull);
  assert_int_equal(entry(self, a->slot, params, 0, k->group[0], scratch), 0);
  free(scratch);
  r->device->unload(r->self, loaded);
}

static inline pestle_loaded_t* gpu_load(const pestle_kir_t* k) {
  pestle_blob_t blob;
  pestle_loaded_t* loaded;
  pestle_kernel_options_t options = {.struct_size = sizeof options,
                                     .cpu = gpu_cpu};
  pestle_status_t status = gpu->target->compile(gpu->self, k, &options, &blob);
  if (status && gpu->target->print(gpu->self, k, &options, PESTLE_TEXT_SOURCE,
                                   &blob) == NULL) {
    print_error("%.*s\n", (int)blob.size, (const char*)blob.data);
  }
  assert_ok(status);
  assert_ok(gpu->device->load(gpu->self, 0, blob.data, blob.size, &loaded));
  host_free(NULL, blob.data, blob.size);
  return loaded;
}

// On a stream: to the device, the launch, and back.
static inline void run_on_gpu(const pestle_kir_t* k, buffers_t* a,
                              const int64_t* params) {
  const pestle_device_api_t* d = gpu->device;
  pestle_device_stream_t* stream;
  void *block[MAX_BUFFERS], *slot[MAX_BUFFERS];
  pestle_loaded_t* loaded = gpu_load(k);
  assert_ok(d->stream_create(gpu->self, 0, &stream));
  for (uint32_t i = 0; i < a->count; ++i) {
    assert_ok(d->allocate(gpu->self, 0, a->size[i], &block[i]));
    slot[i] = (char*)block[i] + CANARY;
    assert_ok(d->queue_from_host(gpu->self, stream, a->block[i], block[i],
                                 a->size[i]));
  }
  pestle_launch_t launch = {sizeof launch, loaded,         slot,
                            a->count,      k->param_count, params};
  assert_ok(d->launch(gpu->self, 0, stream, &launch));
  // Without a queued copy the stream is waited for, as the host does.
  bool queues = PESTLE_HAS(d, queue_to_host);
  if (!queues) assert_ok(d->stream_synchronize(gpu->self, stream));
  for (uint32_t i = 0; i < a->count; ++i) {
    assert_ok(queues ? d->queue_to_host(gpu->self, stream, block[i],
                                        a->block[i], a->size[i])
                     : d->copy_to_host(gpu->self, 0, block[i], a->block[i],
                                       a->size[i]));
  }
  assert_ok(d->stream_synchronize(gpu->self, stream));
  d->stream_destroy(gpu->self, stream);
  for (uint32_t i = 0; i < a->count; ++i)
    d->deallocate(gpu->self, 0, block[i], a->size[i]);
  d->unload(gpu->self, loaded);
}

static inline void print_failed(const pestle_kir_t* k) {
  pestle_kernel_options_t options = {.struct_size = sizeof options,
                                     .cpu = gpu_cpu};
  pestle_blob_t text;
  if (gpu->target->print(gpu->self, k, &options, PESTLE_TEXT_SOURCE, &text)) {
    return;
  }
  print_error("%.*s\n", (int)text.size, (const char*)text.data);
  host_free(NULL, text.data, text.size);
}

// True where the two elements may differ.
typedef bool (*excuse_fn_t)(pestle_dtype_t dtype, const void* want,
                            const void* got);

static inline void assert_same(const pestle_kir_t* k, const buffers_t* want,
                               const buffers_t* got, excuse_fn_t excuse) {
  int wrong = 0;
  for (uint32_t i = 0; i < want->count; ++i) {
    const pestle_kir_buffer_t* u = want->buffer[i];
    pestle_dtype_t dtype = (pestle_dtype_t)u->dtype;
    size_t size = pestle_dtype_size(dtype), bytes = (size_t)u->count * size;
    const unsigned char *p = want->block[i], *q = got->block[i];
    const char* name = pestle_kir_string(k, u->name);
    if (memcmp(p, q, CANARY) || memcmp(p + CANARY + bytes, q + CANARY + bytes,
                                       want->size[i] - CANARY - bytes)) {
      print_error("canaries of %s\n", name);
      ++wrong;
    }
    for (size_t e = 0; wrong < 20 && e < u->count; ++e) {
      const unsigned char* x = p + CANARY + e * size;
      const unsigned char* y = q + CANARY + e * size;
      if (same_element(dtype, x, y)) continue;
      if (excuse && excuse(dtype, x, y)) continue;
      uint64_t wanted = 0, found = 0;
      memcpy(&wanted, x, size);
      memcpy(&found, y, size);
      print_error("%s[%zu] of %s: want %llx, got %llx\n", name, e,
                  pestle_dtype_info(dtype)->name, (unsigned long long)wanted,
                  (unsigned long long)found);
      ++wrong;
    }
  }
  if (wrong) {
    print_failed(k);
    fail();
  }
}

static excuse_fn_t gpu_excuse;

// A finished kernel on the device against the interpreter, bit by bit.
static inline void check_view(const pestle_kir_t* k, fill_fn_t fill,
                              const int64_t* params) {
  buffers_t want, got;
  assert_ok(pestle_kir_verify(k));
  buffers_init(&want, k, fill);
  buffers_init(&got, k, fill);
  run_on_ref(k, &want, params);
  run_on_gpu(k, &got, params);
  assert_same(k, &want, &got, gpu_excuse);
  buffers_deinit(&want);
  buffers_deinit(&got);
}

static inline void check_kernel(pestle_kir_builder_t* b, fill_fn_t fill,
                                const int64_t* params) {
  assert_ok(pestle_kir_finish(b));
  check_view(&b->view, fill, params);
  pestle_kir_deinit(b);
}

// The same after legalisation for the device.
static inline void check_legalised(pestle_kir_builder_t* b, fill_fn_t fill,
                                   const int64_t* params) {
  pestle_kir_builder_t legal;
  assert_ok(pestle_kir_finish(b));
  assert_ok(
      pestle_kir_legalise(&b->view, &caps, PESTLE_NUMERICS_DEFAULT, &legal));
  check_view(&legal.view, fill, params);
  pestle_kir_deinit(&legal);
  pestle_kir_deinit(b);
}

#endif  // PESTLE_TESTS_UNIT_PLUGINS_GPU_KERNEL_H_
