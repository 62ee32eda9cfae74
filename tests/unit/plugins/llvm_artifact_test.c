// SPDX-License-Identifier: Apache-2.0
// The plugin around its compiler: what it does without libLLVM, damaged and
// foreign artifacts, several threads, memory that runs out.
#include "llvm_kernel.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugins/llvm/artifact.h"

enum { COUNT = 100 };

// y = 3 * x + 1 on f32, with vector constants.
static void make_kernel(pestle_kir_builder_t* out) {
  *out = kernel("affine");
  uint32_t x = global(out, "x", PESTLE_F32, COUNT, PESTLE_KIR_READONLY);
  uint32_t y = global(out, "y", PESTLE_F32, COUNT, 0);
  pestle_kir_id_t g = group(out, (COUNT + 15) / 16);
  pestle_kir_id_t at = pestle_kir_madi(out, g, 16, PESTLE_KIR_NONE);
  pestle_kir_id_t mask =
      pestle_kir_mask(out, at, pestle_kir_index(out, COUNT), 16);
  pestle_kir_id_t v = pestle_kir_load(out, x, 16, at, mask, 0);
  pestle_kir_id_t three = pestle_kir_float(out, PESTLE_F32, 16, 3);
  v = pestle_kir_scalar(out, PESTLE_OP_MULTIPLY, v, three, PESTLE_KIR_NONE);
  v = pestle_kir_scalar(out, PESTLE_OP_ADD, v,
                        pestle_kir_float(out, PESTLE_F32, 16, 1),
                        PESTLE_KIR_NONE);
  pestle_kir_store(out, y, at, v, mask, 0);
  pestle_kir_end(out);
  assert_ok(pestle_kir_finish(out));
}

static void check_run(pestle_cpu_entry_t entry, const void* self) {
  float x[COUNT], y[COUNT];
  void* slots[] = {x, y};
  for (int i = 0; i < COUNT; ++i)
    x[i] = (float)i;
  assert_int_equal(entry(self, slots, NULL, 0, (COUNT + 15) / 16, NULL), 0);
  for (int i = 0; i < COUNT; ++i) {
    assert_true(y[i] == 3.0f * (float)i + 1);
  }
}

static bool llvm_is_mapped(void) {
  char line[1024];
  bool found = false;
  FILE* maps = fopen("/proc/self/maps", "r");
  assert_non_null(maps);
  while (fgets(line, sizeof line, maps)) {
    found |= strstr(line, "libLLVM") != NULL;
  }
  fclose(maps);
  return found;
}

// --- Without libLLVM ---

// The first process compiles and leaves the artifact, this test runs it in
// another, which never opens libLLVM.
static void cached_code_needs_no_llvm(void** state) {
  (void)state;
  char path[] = "/tmp/pestle-llvm-artifact-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  pid_t child = fork();
  if (child == 0) {
    pestle_kir_builder_t b;
    pestle_blob_t blob;
    make_kernel(&b);
    assert_ok(llvm_backend->target->compile(llvm_backend->self, &b.view, NULL,
                                            &blob));
    bool written = write(file, blob.data, blob.size) == (ssize_t)blob.size;
    _exit(written && llvm_is_mapped() ? 0 : 1);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);

  static unsigned char data[1 << 16];
  ssize_t size = pread(file, data, sizeof data, 0);
  close(file);
  unlink(path);
  assert_true(size > 0);
  pestle_target_caps_t caps = {.struct_size = sizeof caps};
  const char* id;
  const pestle_target_api_t* target = llvm_backend->target;
  assert_ok(target->describe(llvm_backend->self, NULL, &caps));
  assert_true(caps.vector_bytes >= 32);
  assert_ok(target->describe(llvm_backend->self, "znver4", &caps));
  assert_string_equal(caps.cpu, "znver4");
  assert_int_equal(caps.vector_bytes, 64);
  assert_ok(target->describe(llvm_backend->self, "haswell", &caps));
  assert_int_equal(caps.vector_bytes, 32);
  assert_error(target->describe(llvm_backend->self, "pentium", &caps),
               UNSUPPORTED, "skylake-avx512");
  assert_ok(target->toolchain_id(llvm_backend->self, &id));
  assert_non_null(strstr(id, "passes="));
  pestle_loaded_t* loaded;
  pestle_cpu_entry_t entry;
  const void* self;
  assert_ok(llvm_backend->device->load(llvm_backend->self, 0, data,
                                       (size_t)size, &loaded));
  assert_ok(llvm_backend->device->cpu_entry(llvm_backend->self, loaded, &entry,
                                            &self));
  check_run(entry, self);
  llvm_backend->device->unload(llvm_backend->self, loaded);
  assert_false(llvm_is_mapped());
}

// --- perf and GDB ---

static pestle_loaded_t* load_affine(pestle_cpu_entry_t* out_entry,
                                    const void** out_self) {
  pestle_kir_builder_t b;
  pestle_blob_t blob;
  pestle_loaded_t* loaded;
  const pestle_device_api_t* device = llvm_backend->device;
  make_kernel(&b);
  assert_ok(
      llvm_backend->target->compile(llvm_backend->self, &b.view, NULL, &blob));
  assert_ok(device->load(llvm_backend->self, 0, blob.data, blob.size, &loaded));
  assert_ok(device->cpu_entry(llvm_backend->self, loaded, out_entry, out_self));
  host_free(NULL, blob.data, blob.size);
  pestle_kir_deinit(&b);
  return loaded;
}

static void perf_map_names_kernels(void** state) {
  (void)state;
  char path[64], line[256];
  pestle_cpu_entry_t entry;
  const void* self;
  snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
  llvm_backend->device->unload(llvm_backend->self, load_affine(&entry, &self));
  assert_int_not_equal(access(path, F_OK), 0);  // nobody asked

  setenv("PESTLE_PERF_MAP", "1", 1);
  pestle_loaded_t* loaded = load_affine(&entry, &self);
  FILE* map = fopen(path, "r");
  assert_non_null(map);
  bool entered = false, worked = false;
  while (fgets(line, sizeof line, map)) {
    unsigned long long begin, size;
    char name[256];
    assert_int_equal(sscanf(line, "%llx %llx %255s", &begin, &size, name), 3);
    entered |= begin == (uintptr_t)entry && !strcmp(name, "pestle:affine");
    worked |= size > 16 && !strcmp(name, "pestle:affine.body");
  }
  fclose(map);
  unlink(path);
  assert_true(entered && worked);
  llvm_backend->device->unload(llvm_backend->self, loaded);

  // A link that somebody put there is not followed; the kernel runs.
  char target[] = "/tmp/pestle-perf-map-XXXXXX";
  int file = mkstemp(target);
  assert_true(file >= 0);
  assert_int_equal(symlink(target, path), 0);
  loaded = load_affine(&entry, &self);
  check_run(entry, self);
  llvm_backend->device->unload(llvm_backend->self, loaded);
  unsetenv("PESTLE_PERF_MAP");
  assert_int_equal(lseek(file, 0, SEEK_END), 0);
  close(file);
  unlink(target);
  unlink(path);
}

// What the list of GDB's interface begins with; NULL: it is empty.
static const void* first_of_gdb(void) {
  const void* const* descriptor = dlsym(llvm_library, "__jit_debug_descriptor");
  assert_non_null(descriptor);
  return descriptor[2];
}

static void gdb_list_is_kept(void** state) {
  (void)state;
  pestle_cpu_entry_t entry;
  const void* self;
  setenv("PESTLE_GDB", "1", 1);
  assert_null(first_of_gdb());
  pestle_loaded_t* a = load_affine(&entry, &self);
  const void* of_a = first_of_gdb();
  pestle_loaded_t* b = load_affine(&entry, &self);
  const void* of_b = first_of_gdb();
  assert_non_null(of_a);
  assert_true(of_a != of_b);
  pestle_loaded_t* c = load_affine(&entry, &self);
  unsetenv("PESTLE_GDB");
  // From the middle, the end and the begin.
  llvm_backend->device->unload(llvm_backend->self, b);
  assert_true(first_of_gdb() != of_b);
  llvm_backend->device->unload(llvm_backend->self, a);
  assert_non_null(first_of_gdb());
  llvm_backend->device->unload(llvm_backend->self, c);
  assert_null(first_of_gdb());
}

// The file alone in another folder is a backend.
static void copied_plugin_works(void** state) {
  (void)state;
  char from[1024], folder[] = "/tmp/pestle-llvm-copy-XXXXXX", to[1100];
  static char data[1 << 22];
  assert_true(llvm_plugin_path(from, sizeof from));
  assert_non_null(mkdtemp(folder));
  snprintf(to, sizeof to, "%s/libpestle-llvm-copy.so", folder);
  FILE* file = fopen(from, "rb");
  assert_non_null(file);
  size_t size = fread(data, 1, sizeof data, file);
  fclose(file);
  file = fopen(to, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, size, file), size);
  fclose(file);
  void* library = dlopen(to, RTLD_NOW | RTLD_LOCAL);
  assert_non_null(library);
  pestle_backend_init_fn_t init;
  *(void**)&init = dlsym(library, "pestle_backend_init");
  pestle_status_t status;
  const pestle_backend_t* other = init(&test_host, &status);
  assert_ok(status);
  pestle_kir_builder_t b;
  make_kernel(&b);
  code_t code = code_make(other, &b.view, NULL);
  check_run(code.entry, code.self);
  code_free(&code);
  pestle_kir_deinit(&b);
  other->deinit(other->self);
  unlink(to);
  rmdir(folder);
}

// --- Damage ---

static pestle_blob_t compile(void) {
  pestle_kir_builder_t b;
  pestle_blob_t blob;
  make_kernel(&b);
  assert_ok(
      llvm_backend->target->compile(llvm_backend->self, &b.view, NULL, &blob));
  pestle_kir_deinit(&b);
  return blob;
}

static pestle_status_t load_only(const void* data, size_t size) {
  pestle_loaded_t* loaded;
  PESTLE_TRY(
      llvm_backend->device->load(llvm_backend->self, 0, data, size, &loaded));
  llvm_backend->device->unload(llvm_backend->self, loaded);
  return NULL;
}

static void damaged_artifacts(void** state) {
  (void)state;
  pestle_blob_t blob = compile();
  assert_ok(load_only(blob.data, blob.size));
  for (size_t size = 0; size < blob.size; ++size) {
    // A copy of exactly that size, for sanitizers.
    void* cut = malloc(size ? size : 1);
    memcpy(cut, blob.data, size);
    assert_code(load_only(cut, size), MALFORMED);
    free(cut);
  }
  unsigned char* bytes = blob.data;
  for (size_t bit = 0; bit < 8 * blob.size; ++bit) {
    bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    pestle_status_t status = load_only(blob.data, blob.size);
    assert_non_null(status);
    pestle_status_release(status);
    bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
  }
  assert_ok(load_only(blob.data, blob.size));
  host_free(NULL, blob.data, blob.size);
}

// The same with a checksum that is right, so that the object's reader sees it:
// it may accept what it cannot tell from code, but never reads astray.
static void damaged_objects(void** state) {
  (void)state;
  pestle_blob_t blob = compile();
  pestle_llvm_artifact_t header;
  memcpy(&header, blob.data, sizeof header);
  uint32_t seed = 1;
  size_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    size_t cut =
        round % 4 ? blob.size
                  : header.object_at + test_random(&seed) % header.object_size;
    unsigned char* copy = malloc(cut);
    memcpy(copy, blob.data, cut);
    pestle_llvm_artifact_t h = header;
    h.object_size = cut - h.object_at;
    for (int flips = 0; flips < 1 + round % 3; ++flips) {
      size_t at = h.object_at + (test_random(&seed) % (h.object_size + 1));
      if (at >= cut) continue;
      uint32_t how = test_random(&seed) % 4;
      if (how == 0) copy[at] = 0xff;
      if (how == 1) copy[at] = 0;
      if (how >= 2) copy[at] ^= (unsigned char)(1u << test_random(&seed) % 8);
    }
    memcpy(copy, &h, sizeof h);
    h.checksum = pestle_llvm_checksum(copy, cut);
    memcpy(copy, &h, sizeof h);
    pestle_status_t status = load_only(copy, cut);
    refused += status != NULL;
    pestle_status_release(status);
    free(copy);
  }
  assert_true(refused > 5000);
  host_free(NULL, blob.data, blob.size);
}

static void foreign_artifacts(void** state) {
  (void)state;
  pestle_blob_t blob = compile();
  pestle_llvm_artifact_t header;
  memcpy(&header, blob.data, sizeof header);
  // For a CPU that does not exist yet.
  header.features |= UINT64_C(1) << 63;
  memcpy(blob.data, &header, sizeof header);
  header.checksum = pestle_llvm_checksum(blob.data, blob.size);
  memcpy(blob.data, &header, sizeof header);
  assert_error(load_only(blob.data, blob.size), INCOMPATIBLE, "lacks");
  header.magic[0] = 'Q';
  memcpy(blob.data, &header, sizeof header);
  assert_code(load_only(blob.data, blob.size), INCOMPATIBLE);
  host_free(NULL, blob.data, blob.size);
  pestle_loaded_t* loaded;
  assert_code(llvm_backend->device->load(llvm_backend->self, 1, "", 0, &loaded),
              NOT_FOUND);
}

// --- Threads ---

static void* compile_often(void* self) {
  pestle_kir_builder_t b;
  (void)self;
  make_kernel(&b);
  for (int i = 0; i < 20; ++i) {
    code_t code = code_make(llvm_backend, &b.view, i % 2 ? "haswell" : NULL);
    check_run(code.entry, code.self);
    code_free(&code);
  }
  pestle_kir_deinit(&b);
  return NULL;
}

static void two_threads_compile(void** state) {
  (void)state;
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) {
    assert_int_equal(pthread_create(&threads[i], NULL, compile_often, NULL), 0);
  }
  for (int i = 0; i < 2; ++i)
    pthread_join(threads[i], NULL);
}

// --- Memory ---

static pestle_status_t compile_load_print(const pestle_kir_t* k) {
  const pestle_target_api_t* target = llvm_backend->target;
  pestle_blob_t blob;
  PESTLE_TRY(target->compile(llvm_backend->self, k, NULL, &blob));
  pestle_status_t status = load_only(blob.data, blob.size);
  host_free(NULL, blob.data, blob.size);
  for (int kind = 0; kind < 2 && !status; ++kind) {
    status =
        target->print(llvm_backend->self, k, NULL, (pestle_text_t)kind, &blob);
    if (!status) host_free(NULL, blob.data, blob.size);
  }
  return status;
}

static void every_allocation_fails(void** state) {
  (void)state;
  pestle_kir_builder_t b;
  make_kernel(&b);
  size_t live = atomic_load(&host_memory.live_blocks);
  for (size_t k = 1;; ++k) {
    atomic_store(&host_memory.failed, false);
    atomic_store(&host_memory.fail_at,
                 atomic_load(&host_memory.request_count) + k);
    pestle_status_t status = compile_load_print(&b.view);
    bool failed = pestle_test_allocator_failed(&host_memory);
    atomic_store(&host_memory.fail_at, 0);
    if (failed) {
      assert_code(status, OUT_OF_MEMORY);
    } else {
      assert_ok(status);
    }
    assert_int_equal(atomic_load(&host_memory.live_blocks), live);
    if (!failed) break;
  }
  pestle_kir_deinit(&b);
}

// A host of its own, and its end.
static void backends_end(void** state) {
  (void)state;
  pestle_backend_init_fn_t init;
  *(void**)&init = llvm_symbol("pestle_backend_init");
  pestle_status_t status;
  const pestle_backend_t* other = init(&test_host, &status);
  assert_ok(status);
  assert_string_equal(other->name, "llvm");
  assert_true(other->score >= 200);
  assert_ptr_not_equal(other, llvm_backend);
  other->deinit(other->self);
}

// --- Refusals ---

static void broken_kernels(void** state) {
  (void)state;
  pestle_kir_builder_t b;
  pestle_blob_t blob;
  make_kernel(&b);
  pestle_kir_t k = b.view;
  k.abi_major = 99;
  assert_code(
      llvm_backend->target->compile(llvm_backend->self, &k, NULL, &blob),
      INCOMPATIBLE);
  k = b.view;
  k.inst_count -= 1;  // the last END
  assert_code(
      llvm_backend->target->compile(llvm_backend->self, &k, NULL, &blob),
      MALFORMED);
  k = b.view;
  k.lane[0] = 32;
  assert_code(
      llvm_backend->target->compile(llvm_backend->self, &k, NULL, &blob),
      UNSUPPORTED);
  pestle_kernel_options_t options = {.struct_size = sizeof options,
                                     .cpu = "m68k"};
  assert_error(llvm_backend->target->compile(llvm_backend->self, &b.view,
                                             &options, &blob),
               UNSUPPORTED, "m68k");
  pestle_kir_deinit(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      // Before anything of this process compiles.
      cmocka_unit_test(cached_code_needs_no_llvm),
      cmocka_unit_test(perf_map_names_kernels),
      cmocka_unit_test(gdb_list_is_kept),
      cmocka_unit_test(two_threads_compile),
      cmocka_unit_test(copied_plugin_works),
      cmocka_unit_test(damaged_artifacts),
      cmocka_unit_test(damaged_objects),
      cmocka_unit_test(foreign_artifacts),
      cmocka_unit_test(every_allocation_fails),
      cmocka_unit_test(backends_end),
      cmocka_unit_test(broken_kernels),
  };
  int failed = llvm_setup(NULL);
  if (failed) return failed;
  return cmocka_run_group_tests(tests, NULL, llvm_teardown);
}
