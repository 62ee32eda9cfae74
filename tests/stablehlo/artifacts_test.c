// SPDX-License-Identifier: Apache-2.0
// Programs as text and as the bytecode that StableHLO's tools made of them
// (make_data.py): one signature, the same messages, no crash when bytes are wrong.
#include <dirent.h>
#include <stdlib.h>

#include "base/file.h"
#include "pestle/pestle.h"
#include "test.h"

static const char* const programs[] = {"elementwise", "tensors",  "regions",
                                       "names",       "symbolic", "calls",
                                       "chlo",        "scan",     "mesh_axes"};
enum { PROGRAMS = sizeof(programs) / sizeof(*programs) };

static pestle_context_t* context;

typedef struct bytes_t {
  char* data;
  size_t size;
} bytes_t;

static void make_path(const char* file, char* out, size_t room) {
  snprintf(out, room, "%s/tests/stablehlo/data/%s", getenv("PESTLE_SOURCE_DIR"),
           file);
}

static bytes_t read_file(const char* file) {
  bytes_t bytes;
  char path[1024];
  make_path(file, path, sizeof(path));
  assert_ok(pestle_file_read(path, 1 << 20, pestle_allocator_system(),
                             &bytes.data, &bytes.size));
  return bytes;
}

static void free_bytes(bytes_t* bytes) {
  pestle_allocator_t allocator = pestle_allocator_system();
  (void)allocator.resize(allocator.self, bytes->data, bytes->size + 1, 0, 1);
}

static pestle_module_t* import(const char* file) {
  pestle_module_t* module;
  bytes_t bytes = read_file(file);
  assert_ok(pestle_import_bytes(context, bytes.data, bytes.size, file, NULL,
                                &module));
  free_bytes(&bytes);
  return module;
}

// Calls |visit| with each artifact of |program|; how many there are.
static int each_artifact(const char* program,
                         void (*visit)(const char* file, void* user),
                         void* user) {
  char folder[1024];
  make_path("", folder, sizeof(folder));
  DIR* dir = opendir(folder);
  assert_non_null(dir);
  int count = 0;
  size_t size = strlen(program);
  for (const struct dirent* e; (e = readdir(dir)) != NULL;) {
    if (strncmp(e->d_name, program, size) || e->d_name[size] != '.') continue;
    const char* dot = strrchr(e->d_name, '.');
    if (strcmp(dot, ".bc")) continue;
    visit(e->d_name, user);
    ++count;
  }
  closedir(dir);
  return count;
}

// --- One signature ---

static void check_signature(const char* file, void* user) {
  uint64_t hash[2];
  const uint64_t* expected = user;
  pestle_module_t* module = import(file);
  assert_ok(pestle_module_signature(module, hash));
  if (memcmp(hash, expected, sizeof(hash))) fail_msg("%s differs", file);
  pestle_module_release(module);
}

// Too long to be damaged everywhere.
static void test_signatures_of_every_op(void** state) {
  (void)state;
  uint64_t hash[2], generic[2];
  pestle_module_t* module = import("specification.mlir");
  assert_ok(pestle_module_signature(module, hash));
  pestle_module_release(module);
  module = import("specification.generic.mlir");
  assert_ok(pestle_module_signature(module, generic));
  pestle_module_release(module);
  assert_memory_equal(hash, generic, sizeof(hash));
  assert_true(each_artifact("specification", check_signature, hash) >= 1);
}

static void test_signatures(void** state) {
  (void)state;
  for (size_t i = 0; i < PROGRAMS; ++i) {
    char text[64];
    uint64_t hash[2];
    snprintf(text, sizeof(text), "%s.mlir", programs[i]);
    pestle_module_t* module = import(text);
    assert_ok(pestle_module_signature(module, hash));
    pestle_module_release(module);
    // A scan has no form of a version, groups by axes none before 1.16.
    int least = !strcmp(programs[i], "scan")        ? 1
                : !strcmp(programs[i], "mesh_axes") ? 2
                                                    : 3;
    assert_true(each_artifact(programs[i], check_signature, hash) >= least);
  }
}

// A symbolic program for five rows.
static pestle_module_t* for_five_rows(const char* file) {
  pestle_module_t *module = import(file), *made;
  const pestle_type_t type = {PESTLE_F32, 2, {5, 3}};
  assert_ok(pestle_module_specialize(module, &type, 1, &made));
  pestle_module_release(module);
  return made;
}

static void check_specialised(const char* file, void* user) {
  uint64_t hash[2];
  const uint64_t* expected = user;
  pestle_module_t* module = for_five_rows(file);
  assert_ok(pestle_module_signature(module, hash));
  if (memcmp(hash, expected, sizeof(hash))) fail_msg("%s differs", file);
  pestle_module_release(module);
}

static void test_symbolic_programs(void** state) {
  (void)state;
  uint64_t hash[2];
  pestle_module_t* module = for_five_rows("symbolic.mlir");
  assert_ok(pestle_module_signature(module, hash));
  pestle_module_release(module);
  assert_true(each_artifact("symbolic", check_specialised, hash) >= 3);
}

// What dialects say is part of the text that a module prints, not of its
// signature.
static void check_attributes(const char* file, void* user) {
  static const char* const said[] = {
      "mhlo.num_partitions = 1 : i32", "tf.aliasing_output = 1 : i32",
      "mhlo.sharding = \"{replicated}\"", "jax.buffer_donor = true"};
  (void)user;
  char* text;
  size_t size;
  pestle_module_t* module = import(file);
  assert_ok(pestle_module_print(module, 0, &text, &size));
  for (size_t i = 0; i < sizeof(said) / sizeof(*said); ++i) {
    if (!strstr(text, said[i])) fail_msg("%s lost %s", file, said[i]);
  }
  if (strstr(text, "result_info")) fail_msg("%s keeps names of Python", file);
  pestle_context_free(context, text, size + 1);
  pestle_module_release(module);
}

static void test_attributes_are_kept(void** state) {
  (void)state;
  check_attributes("tensors.mlir", NULL);
  assert_true(each_artifact("tensors", check_attributes, NULL) >= 3);
}

// --- Damage ---

// An import of anything ends with a module or with whose fault it is.
static void try_bytes(const char* data, size_t size) {
  pestle_module_t* module;
  pestle_status_t status =
      pestle_import_bytes(context, data, size, "x", NULL, &module);
  pestle_status_code_t code = pestle_status_code(status);
  if (status) assert_null(module);
  assert_true(code == PESTLE_STATUS_OK || code == PESTLE_STATUS_MALFORMED ||
              code == PESTLE_STATUS_UNSUPPORTED ||
              code == PESTLE_STATUS_RESOURCE_EXHAUSTED);
  pestle_status_release(status);
  pestle_module_release(module);
}

// On memory of its size, so that a sanitizer sees what lies behind it.
static void cut(const char* file, void* user) {
  (void)user;
  bytes_t bytes = read_file(file);
  for (size_t size = 4; size < bytes.size; ++size) {
    char* copy = malloc(size);
    memcpy(copy, bytes.data, size);
    try_bytes(copy, size);
    free(copy);
  }
  free_bytes(&bytes);
}

static void damage(const char* file, void* user) {
  static const unsigned char values[] = {0xff};
  (void)user;
  bytes_t bytes = read_file(file);
  for (size_t at = 4; at < bytes.size; ++at) {
    char before = bytes.data[at];
    for (size_t i = 0; i < sizeof(values); ++i) {
      bytes.data[at] = (char)values[i];
      try_bytes(bytes.data, bytes.size);
    }
    bytes.data[at] = before ^ (char)(1 << at % 8);
    try_bytes(bytes.data, bytes.size);
    bytes.data[at] = before;
  }
  free_bytes(&bytes);
}

static void test_cut_files(void** state) {
  (void)state;
  for (size_t i = 0; i < PROGRAMS; ++i)
    assert_true(each_artifact(programs[i], cut, NULL));
}

static void test_damaged_files(void** state) {
  (void)state;
  for (size_t i = 0; i < PROGRAMS; ++i)
    assert_true(each_artifact(programs[i], damage, NULL));
}

// --- No memory ---

// Each request for memory fails once: it is said, and nothing is left behind.
static void starve(const char* file, void* user) {
  (void)user;
  bytes_t bytes = read_file(file);
  bool failed = true;
  for (size_t k = 1; failed; ++k) {
    pestle_test_allocator_t memory;
    pestle_context_t* own;
    pestle_module_t* module;
    pestle_test_allocator_init(&memory, 0);
    pestle_context_options_t options = {
        .struct_size = sizeof(options),
        .allocator = pestle_test_allocator(&memory),
        .backend_path = "/nonexistent"};
    assert_ok(pestle_context_create(&options, &own));
    atomic_store(&memory.fail_at, atomic_load(&memory.request_count) + k);
    pestle_status_t status =
        pestle_import_bytes(own, bytes.data, bytes.size, file, NULL, &module);
    failed = pestle_test_allocator_failed(&memory);
    if (failed) {
      assert_code(status, OUT_OF_MEMORY);
    } else {
      assert_ok(status);
    }
    pestle_module_release(module);
    pestle_context_release(own);
    pestle_test_allocator_check(&memory);
  }
  free_bytes(&bytes);
}

static void test_no_memory(void** state) {
  (void)state;
  starve("names.own.bc", NULL);
  starve("regions.0.9.0.bc", NULL);
  starve("tensors.1.17.0.bc", NULL);
  starve("symbolic.1.17.0.bc", NULL);
}

static int begin(void** state) {
  (void)state;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .backend_path = "/nonexistent"};
  pestle_status_t status = pestle_context_create(&options, &context);
  pestle_status_release(status);
  return status ? -1 : 0;
}

static int end(void** state) {
  (void)state;
  pestle_context_release(context);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_signatures),
      cmocka_unit_test(test_signatures_of_every_op),
      cmocka_unit_test(test_symbolic_programs),
      cmocka_unit_test(test_attributes_are_kept),
      cmocka_unit_test(test_cut_files),
      cmocka_unit_test(test_damaged_files),
      cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, begin, end);
}
