// SPDX-License-Identifier: Apache-2.0
// Fixture of the tests of plugins/llvm: a host, the plugin's file opened as the
// registry would, and running one kernel through it and through `ref` on equal
// buffers.
#ifndef PESTLE_TESTS_UNIT_PLUGINS_LLVM_KERNEL_H_
#define PESTLE_TESTS_UNIT_PLUGINS_LLVM_KERNEL_H_

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

#if TEST_TSAN
// libLLVM is not instrumented, so its own locks are not seen.
const char* __tsan_default_suppressions(void);
const char* __tsan_default_suppressions(void) {
  return "race:libLLVM\nmutex:libLLVM\ndeadlock:libLLVM\n";
}
#endif

// --- The plugin ---

static void* llvm_library;
static const pestle_backend_t* llvm_backend;
static const pestle_backend_t* ref_backend;

// The newest libpestle-llvm-*.so of PESTLE_BACKEND_PATH; NULL: not built.
static inline bool llvm_plugin_path(char* path, size_t capacity) {
  const char* folder = getenv("PESTLE_BACKEND_PATH");
  char pattern[1024];
  glob_t found;
  snprintf(pattern, sizeof pattern, "%s/libpestle-llvm-*.so",
           folder ? folder : "backends");
  bool ok = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0;
  if (ok) {
    snprintf(path, capacity, "%s", found.gl_pathv[found.gl_pathc - 1]);
  }
  globfree(&found);
  return ok;
}

static inline void* llvm_symbol(const char* name) {
  void* symbol = dlsym(llvm_library, name);
  assert_non_null(symbol);
  return symbol;
}

// Group setup. Without the plugin or its CPU the test is skipped.
static inline int llvm_setup(void** state) {
  char path[1024], why[256] = "";
  pestle_status_t status;
  (void)state;
  if (!llvm_plugin_path(path, sizeof path)) exit(77);
  pestle_test_allocator_init(&host_memory, 0);
  llvm_library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!llvm_library) {
    print_error("%s\n", dlerror());
    return 1;
  }
  pestle_backend_score_fn_t score;
  pestle_backend_init_fn_t init;
  *(void**)&score = llvm_symbol("pestle_backend_score");
  *(void**)&init = llvm_symbol("pestle_backend_init");
  if (!score(why, sizeof why)) {
    print_message("skipped: %s\n", why);
    exit(77);
  }
  llvm_backend = init(&test_host, &status);
  assert_ok(status);
  ref_backend = pestle_ref_backend_init(&test_host, &status);
  assert_ok(status);
  return 0;
}

static inline int llvm_teardown(void** state) {
  (void)state;
  if (llvm_backend->deinit) llvm_backend->deinit(llvm_backend->self);
  if (PESTLE_HAS(ref_backend, deinit)) ref_backend->deinit(ref_backend->self);
  pestle_test_allocator_check(&host_memory);
  return 0;
}

// --- Running ---

typedef struct code_t {
  const pestle_backend_t* backend;
  pestle_loaded_t* loaded;
  pestle_cpu_entry_t entry;
  const void* self;
} code_t;

static inline code_t code_make(const pestle_backend_t* backend,
                               const pestle_kir_t* k, const char* cpu) {
  pestle_blob_t blob;
  pestle_kernel_options_t options = {.struct_size = sizeof options, .cpu = cpu};
  code_t code = {.backend = backend};
  assert_ok(backend->target->compile(backend->self, k, &options, &blob));
  assert_ok(backend->device->load(backend->self, 0, blob.data, blob.size,
                                  &code.loaded));
  host_free(NULL, blob.data, blob.size);
  assert_ok(backend->device->cpu_entry(backend->self, code.loaded, &code.entry,
                                       &code.self));
  return code;
}

static inline void code_free(code_t* code) {
  code->backend->device->unload(code->backend->self, code->loaded);
}

enum { CANARY = 128, MAX_BUFFERS = 16 };

// Copies of all global buffers, with canaries around each.
typedef struct arena_t {
  uint32_t count;
  unsigned char* block[MAX_BUFFERS];
  size_t size[MAX_BUFFERS];
  void* slot[MAX_BUFFERS];  // by arg_slot
  void* scratch;
} arena_t;

static inline void arena_init(arena_t* a, const pestle_kir_t* k,
                              fill_fn_t fill) {
  *a = (arena_t){0};
  for (uint32_t i = 0; i < k->buffer_count; ++i) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(k, i);
    if (u->scope != PESTLE_KIR_GLOBAL) continue;
    uint32_t at = a->count++;
    pestle_dtype_t dtype = (pestle_dtype_t)u->dtype;
    size_t bytes = (size_t)u->count * pestle_dtype_size(dtype);
    a->size[at] = (bytes + 2 * CANARY + 63) & ~(size_t)63;
    a->block[at] = aligned_alloc(64, a->size[at]);
    memset(a->block[at], 0xc5, a->size[at]);
    a->slot[u->arg_slot] = a->block[at] + CANARY;
    fill(pestle_kir_string(k, u->name), dtype, a->slot[u->arg_slot],
         (size_t)u->count);
  }
  a->scratch = aligned_alloc(64, ((size_t)k->shared_bytes + 127) & ~63ull);
}

static inline void arena_deinit(arena_t* a) {
  for (uint32_t i = 0; i < a->count; ++i)
    free(a->block[i]);
  free(a->scratch);
}

static inline void print_kernel(const pestle_kir_t* k) {
  pestle_strbuf_t text;
  pestle_strbuf_init(pestle_allocator_system(), &text);
  pestle_status_release(pestle_kir_print(k, &text));
  print_error("%s\n", pestle_strbuf_cstr(&text));
  pestle_strbuf_deinit(&text);
}

static inline void assert_same(const pestle_kir_t* k, const arena_t* want,
                               const arena_t* got) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < k->buffer_count; ++i) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(k, i);
    if (u->scope != PESTLE_KIR_GLOBAL) continue;
    pestle_dtype_t dtype = (pestle_dtype_t)u->dtype;
    size_t size = pestle_dtype_size(dtype), bytes = (size_t)u->count * size;
    const unsigned char *p = want->block[at], *q = got->block[at];
    bool same =
        !memcmp(p, q, CANARY) && !memcmp(p + CANARY + bytes, q + CANARY + bytes,
                                         want->size[at] - CANARY - bytes);
    if (!same) print_error("canaries of %s\n", pestle_kir_string(k, u->name));
    for (size_t e = 0; same && e < u->count; ++e) {
      const unsigned char* x = p + CANARY + e * size;
      const unsigned char* y = q + CANARY + e * size;
      if (same_element(dtype, x, y)) continue;
      uint64_t wanted = 0, found = 0;
      memcpy(&wanted, x, size);
      memcpy(&found, y, size);
      print_error("%s[%zu] of %s: want %llx, got %llx\n",
                  pestle_kir_string(k, u->name), e,
                  pestle_dtype_info(dtype)->name, (unsigned long long)wanted,
                  (unsigned long long)found);
      same = false;
    }
    if (!same) {
      print_kernel(k);
      fail();
    }
    ++at;
  }
}

// How many of the CPUs below check_kernel() tries.
static int llvm_cpu_count = 2;

// Native code, of this CPU and of AVX2, against the interpreter, bit by bit.
static inline void check_kernel(pestle_kir_builder_t* b, fill_fn_t fill,
                                const int64_t* params) {
  static const char* const cpus[] = {NULL, "x86-64-v3"};
  assert_ok(pestle_kir_finish(b));
  const pestle_kir_t* k = &b->view;
  assert_ok(pestle_kir_verify(k));
  arena_t want;
  arena_init(&want, k, fill);
  code_t ref = code_make(ref_backend, k, NULL);
  int64_t groups = k->group[0];
  assert_int_equal(
      ref.entry(ref.self, want.slot, params, 0, groups, want.scratch), 0);
  code_free(&ref);
  for (int c = 0; c < llvm_cpu_count; ++c) {
    arena_t got;
    arena_init(&got, k, fill);
    code_t code = code_make(llvm_backend, k, cpus[c]);
    // In two launches, as two threads would.
    int64_t half = groups / 2;
    assert_int_equal(
        code.entry(code.self, got.slot, params, half, groups, got.scratch), 0);
    assert_int_equal(
        code.entry(code.self, got.slot, params, 0, half, got.scratch), 0);
    assert_same(k, &want, &got);
    code_free(&code);
    arena_deinit(&got);
  }
  arena_deinit(&want);
  pestle_kir_deinit(b);
}

#endif  // PESTLE_TESTS_UNIT_PLUGINS_LLVM_KERNEL_H_
