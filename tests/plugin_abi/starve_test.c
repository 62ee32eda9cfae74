// SPDX-License-Identifier: Apache-2.0
// Each request for memory fails in turn while plugins are looked for, tried, remembered,
// filtered, loaded and started to compile alone: OUT_OF_MEMORY or what it is otherwise,
// nothing left behind, and the same succeeds afterwards.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"
// Ours.
#include "pestle/runtime.h"

static char temporary[256];

typedef struct work_t {
  const char* name;
  pestle_status_t (*run)(pestle_context_t* context);
  const char* folder;  // NULL: where plugins are installed
  bool probes;
} work_t;

static bool accept_some(void* user, const pestle_candidate_t* candidate) {
  (void)user;
  return strcmp(candidate->name, "ends") != 0;
}

static pestle_status_t load_filtered(pestle_context_t* context) {
  static const char* const allowed[] = {"*"};
  static const char* const blocked[] = {"cpux", NULL};
  const pestle_backend_filter_t filter = {.struct_size = sizeof(filter),
                                          .allowed = allowed,
                                          .allowed_count = 1,
                                          .blocked = blocked,
                                          .blocked_count = 2,
                                          .accept = accept_some};
  return pestle_context_load_all(context, &filter);
}

static pestle_status_t load_best(pestle_context_t* context) {
  return pestle_context_load_best(context, "gpuy");
}

static pestle_status_t find_cpu_then_gpu(pestle_context_t* context) {
  pestle_device_t* device;
  pestle_status_t status = pestle_context_device(context, "cpux", &device);
  return status ? status : pestle_context_device(context, "gpuy", &device);
}

static pestle_status_t start_target(pestle_context_t* context) {
  pestle_device_t* device;
  return pestle_context_target(context, "alone", &device);
}

static pestle_status_t set_folders(pestle_context_t* context) {
  static const char* const folders[] = {"/a", "/b", "/a"};
  return pestle_context_set_search_paths(context, folders, 3);
}

static pestle_status_t look_where_installed(pestle_context_t* context) {
  return pestle_context_load_backends(context);
}

static pestle_status_t try_cpu(pestle_context_t* context) {
  pestle_device_t* device;
  return pestle_context_device(context, "tame", &device);
}

static const work_t works[] = {
    {"filter", load_filtered, ALONE_FOLDER, false},
    {"best", load_best, ALONE_FOLDER, false},
    {"devices", find_cpu_then_gpu, ALONE_FOLDER, false},
    {"target", start_target, ALONE_FOLDER, false},
    {"folders", set_folders, ALONE_FOLDER, false},
    {"installed", look_where_installed, NULL, false},
    {"try", try_cpu, temporary, true},  // again and again: what is remembered
};

static pestle_context_t* open_context(pestle_test_allocator_t* memory,
                                      const work_t* work) {
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .allocator = pestle_test_allocator(memory),
      .cache_dir = work->probes ? temporary : "",
      .threads = 1,
      .backend_path = work->folder,
      .probe_backends = work->probes,
      .remember_probes = true,
      .probe_timeout_ms = 20000};
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  return context;
}

static void test_works(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof(works) / sizeof(*works); ++i) {
    const work_t* work = &works[i];
    for (size_t k = 1;; ++k) {
      pestle_test_allocator_t memory;
      pestle_test_allocator_init(&memory, 0);
      // Every second time the file is another one than what is remembered.
      char line[700];
      snprintf(line, sizeof(line), "touch '%s/libpestle-tame.so'", temporary);
      if (work->probes && k % 2) assert_int_equal(system(line), 0);
      pestle_context_t* context = open_context(&memory, work);
      size_t before = atomic_load(&memory.request_count);
      atomic_store(&memory.fail_at, before + (work->probes ? (k + 1) / 2 : k));
      pestle_status_t status = work->run(context);
      bool failed = pestle_test_allocator_failed(&memory);
      pestle_status_code_t code = pestle_status_code(status);
      if (code && code != PESTLE_STATUS_OUT_OF_MEMORY)
        print_error("%s, request %zu: %s\n", work->name, k,
                    pestle_status_message(status));
      assert_true(!code || code == PESTLE_STATUS_OUT_OF_MEMORY);
      pestle_status_release(status);
      atomic_store(&memory.fail_at, 0);
      assert_ok(work->run(context));
      pestle_context_release(context);
      pestle_test_allocator_check(&memory);
      if (!failed && !code && (!work->probes || k % 2)) break;
    }
  }
}

static int make_folder(void** state) {
  (void)state;
  char line[1200];
  const char* base = getenv("TMPDIR");
  snprintf(temporary, sizeof(temporary), "%s/pestle-starve-XXXXXX",
           base && *base ? base : "/tmp");
  if (!mkdtemp(temporary) || chmod(temporary, 0755)) return -1;
  snprintf(line, sizeof(line), "cp '%s/libpestle-tame.so' '%s'", ZOO_FOLDER,
           temporary);
  return system(line);
}

static int remove_folder(void** state) {
  (void)state;
  char line[300];
  snprintf(line, sizeof(line), "rm -rf '%s'", temporary);
  return system(line);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_works)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
