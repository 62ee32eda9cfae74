// SPDX-License-Identifier: Apache-2.0
// Requests for memory fail while any file of the fuzz corpora and goldens is read: the
// import ends with OUT_OF_MEMORY, or as it ends otherwise where the memory was for
// something optional, and leaves nothing behind.
#include <dirent.h>

#include "base/file.h"
#include "base/mem.h"
#include "corpus.h"
#include "onnx_test.h"

// Of each file so many requests fail, at even distances.
enum { REQUESTS = TEST_SANITIZED ? 10 : 200, MAX_FILE = 1 << 16 };

typedef struct outcome_t {
  pestle_status_code_t code;
  size_t requests;
  bool failed;
} outcome_t;

static outcome_t import_failing(const char* name, const char* data, size_t size,
                                bool specializes, size_t fail_at) {
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 0);
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .allocator = pestle_test_allocator(&memory),
      .cache_dir = "",
      .no_cache = true,
      .backend_path = "/nonexistent",
      .threads = 1};
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  size_t before = atomic_load(&memory.request_count);
  if (fail_at) atomic_store(&memory.fail_at, before + fail_at);
  pestle_module_t* module = NULL;
  pestle_status_t status =
      pestle_import_bytes(context, data, size, name, NULL, &module);
  pestle_module_t* again = NULL;
  uint64_t hash[2];
  if (!status) status = pestle_module_signature(module, hash);
  if (!status && specializes) status = corpus_specialize(module, &again);
  outcome_t outcome = {pestle_status_code(status),
                       atomic_load(&memory.request_count) - before,
                       pestle_test_allocator_failed(&memory)};
  pestle_status_release(status);
  pestle_module_release(again);
  pestle_module_release(module);
  pestle_context_release(context);
  pestle_test_allocator_check(&memory);
  return outcome;
}

static size_t try_file(const char* path, const char* name, bool specializes) {
  char* data;
  size_t size, tried = 0;
  pestle_allocator_t allocator = pestle_allocator_system();
  assert_ok(pestle_file_read(path, MAX_FILE, allocator, &data, &size));
  outcome_t whole = import_failing(name, data, size, specializes, 0);
  size_t step = whole.requests / REQUESTS + 1;
  // Another first request in each file: those that all files make are not all alike.
  for (size_t k = 1 + size % step; k <= whole.requests; k += step, ++tried) {
    outcome_t now = import_failing(name, data, size, specializes, k);
    bool is_told = now.code == PESTLE_STATUS_OUT_OF_MEMORY;
    if (!now.failed || (!is_told && now.code != whole.code))
      print_error("%s, request %zu: %s\n", path, k,
                  pestle_status_code_name(now.code));
    assert_true(now.failed);
    assert_true(is_told || now.code == whole.code);
  }
  pestle_dealloc(allocator, data, size + 1);
  return tried;
}

static void try_folder(const char* folder, size_t least) {
  const char* root = getenv("PESTLE_SOURCE_DIR");
  if (!root) skip();
  char path[1024];
  snprintf(path, sizeof(path), "%s/tests/%s", root, folder);
  DIR* files = opendir(path);
  assert_non_null(files);
  size_t tried = 0;
  bool specializes = !strstr(folder, "onnx");
  for (const struct dirent* entry; (entry = readdir(files)) != NULL;) {
    const char* end = strrchr(entry->d_name, '.');
    if (entry->d_name[0] == '.' || (end && !strcmp(end, ".kir"))) continue;
    snprintf(path, sizeof(path), "%s/tests/%s/%s", root, folder, entry->d_name);
    pestle_file_info_t info;
    assert_ok(pestle_file_stat(path, true, &info));
    if (info.is_file && info.size <= MAX_FILE)
      tried += try_file(path, entry->d_name, specializes);
  }
  closedir(files);
  print_message("%s: %zu requests failed\n", folder, tried);
  assert_true(tried >= least / (TEST_SANITIZED ? 10 : 1));
}

static void reads_onnx(void** state) {
  (void)state;
  try_folder("fuzz/corpus/onnx", 3000);
}

static void reads_stablehlo(void** state) {
  (void)state;
  try_folder("fuzz/corpus/stablehlo", 500);
  try_folder("fuzz/corpus/bytecode", 100);
  try_folder("stablehlo/data", 2000);
}

static void reads_text(void** state) {
  (void)state;
  try_folder("fuzz/corpus/ir", 200);
  try_folder("golden/ir", 300);
  try_folder("unit/passes/golden/partition", 100);
  try_folder("golden/error", 50);
  try_folder("unit/frontend/texts", 50);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_onnx),
      cmocka_unit_test(reads_stablehlo),
      cmocka_unit_test(reads_text),
  };
  return cmocka_run_group_tests_name("corpus_oom", tests, NULL, NULL);
}
