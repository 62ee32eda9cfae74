// SPDX-License-Identifier: Apache-2.0
// Options, environment, log, trace, devices, buffers.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit/runtime/fixture.h"

static pestle_status_t create_from_environment(pestle_context_t** out_context) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true};
  return pestle_context_create(&options, out_context);
}

static void clear_environment(void) {
  static const char* const names[] = {"PESTLE_CACHE_DIR", "PESTLE_BACKEND_PATH",
                                      "PESTLE_THREADS",   "PESTLE_LOG",
                                      "PESTLE_STRICT",    "PESTLE_NO_CACHE",
                                      "PESTLE_DEVICE",    "PESTLE_TRACE",
                                      "XDG_CACHE_HOME",   "HOME"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    unsetenv(names[i]);
  }
}

static void test_environment(void** state) {
  (void)state;
  clear_environment();
  pestle_context_t* context;
  assert_ok(create_from_environment(&context));
  assert_false(pestle_context_is_strict(context));
  assert_true(pestle_context_threads(context) >= 1);
  assert_null(pestle_context_cache_dir(context));
  pestle_context_release(context);
  setenv("HOME", "/home/me", 1);
  setenv("PESTLE_THREADS", "3", 1);
  setenv("PESTLE_STRICT", "1", 1);
  assert_ok(create_from_environment(&context));
  assert_true(pestle_context_is_strict(context));
  assert_int_equal(pestle_context_threads(context), 3);
  assert_string_equal(pestle_context_cache_dir(context),
                      "/home/me/.cache/pestle");
  pestle_context_release(context);
  setenv("XDG_CACHE_HOME", "/xdg", 1);
  assert_ok(create_from_environment(&context));
  assert_string_equal(pestle_context_cache_dir(context), "/xdg/pestle");
  pestle_context_release(context);
  setenv("PESTLE_CACHE_DIR", "/mine", 1);
  assert_ok(create_from_environment(&context));
  assert_string_equal(pestle_context_cache_dir(context), "/mine");
  pestle_context_release(context);
  setenv("PESTLE_NO_CACHE", "1", 1);
  assert_ok(create_from_environment(&context));
  assert_null(pestle_context_cache_dir(context));
  pestle_context_release(context);
  // Options win, and without |use_environment| nothing is read.
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true,
                                      .threads = 5,
                                      .cache_dir = ""};
  assert_ok(pestle_context_create(&options, &context));
  assert_int_equal(pestle_context_threads(context), 5);
  pestle_context_release(context);
  options.use_environment = false;
  assert_ok(pestle_context_create(&options, &context));
  assert_false(pestle_context_is_strict(context));
  pestle_context_release(context);
  clear_environment();
}

static void test_bad_values(void** state) {
  (void)state;
  static const struct {
    const char *name, *value, *text;
  } rows[] = {
      {"PESTLE_THREADS", "four", "PESTLE_THREADS is 'four'"},
      {"PESTLE_THREADS", "0", "1 to 1024"},
      {"PESTLE_THREADS", "99999999999999999999", "1 to 1024"},
      {"PESTLE_THREADS", "2 ", "1 to 1024"},
      {"PESTLE_LOG", "loud", "expected one of error, warn, info, debug"},
      {"PESTLE_STRICT", "maybe", "PESTLE_STRICT is 'maybe'; expected 1 or 0"},
      {"PESTLE_NO_CACHE", "2", "PESTLE_NO_CACHE is '2'"},
  };
  clear_environment();
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    setenv(rows[i].name, rows[i].value, 1);
    pestle_context_t* context;
    assert_error(create_from_environment(&context), INVALID_ARGUMENT,
                 rows[i].text);
    assert_null(context);
    unsetenv(rows[i].name);
  }
  pestle_context_t* context;
  pestle_context_options_t options = {.struct_size = 0, .threads = 2};
  assert_error(pestle_context_create(&options, &context), INVALID_ARGUMENT,
               "struct_size");
  options.struct_size = sizeof(options);
  options.threads = -1;
  assert_error(pestle_context_create(&options, &context), INVALID_ARGUMENT,
               "threads is -1");
  // An older, shorter struct.
  options.threads = 7;
  options.struct_size = offsetof(pestle_context_options_t, threads);
  assert_ok(pestle_context_create(&options, &context));
  pestle_context_release(context);
  assert_ok(pestle_context_create(NULL, &context));
  pestle_context_release(context);
}

static void keep_message(void* user, pestle_log_level_t level,
                         const char* message) {
  snprintf(user, 64, "%d %s", (int)level, message);
}

static void test_log(void** state) {
  (void)state;
  char text[64] = "";
  pestle_context_options_t options = fixture_options();
  options.log = keep_message;
  options.log_user = text;
  options.log_level = PESTLE_LOG_WARN;
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  pestle_context_log(context, PESTLE_LOG_INFO, "not %s", "heard");
  assert_string_equal(text, "");
  pestle_context_log(context, PESTLE_LOG_WARN, "%s %d", "heard", 1);
  assert_string_equal(text, "1 heard 1");
  pestle_context_release(context);
}

// --- Trace ---

static size_t read_trace(const char* path, char* out_text, size_t capacity) {
  FILE* file = fopen(path, "rb");
  assert_non_null(file);
  size_t size = fread(out_text, 1, capacity - 1, file);
  fclose(file);
  out_text[size] = 0;
  return size;
}

static void test_trace(void** state) {
  (void)state;
  clear_environment();
  static char text[16384], again[16384];
  char path[] = "/tmp/pestle-trace-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  pestle_context_options_t options = fixture_options();
  options.trace_file = path;
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  read_trace(path, text, sizeof(text));
  assert_string_equal(text, "{\"traceEvents\":[]}\n");
  int64_t begin = pestle_context_trace_begin(context);
  assert_true(begin > 0);
  char name[] = "mine";
  pestle_context_trace_end(context, begin, "app", name, "a detail");
  name[0] = 'd';
  pestle_context_trace_end(context, 0, "app", "never begun", NULL);
  // The file is its parent's: a child neither records nor writes.
  pid_t child = fork();
  if (!child) {
    pestle_status_release(pestle_context_load_backends(context));
    bool is_on = pestle_context_trace_begin(context) != 0;
    pestle_context_release(context);
    _exit(is_on);
  }
  int exit_status;
  assert_int_equal(waitpid(child, &exit_status, 0), child);
  assert_int_equal(exit_status, 0);
  read_trace(path, again, sizeof(again));
  assert_string_equal(again, text);
  pestle_context_release(context);
  read_trace(path, text, sizeof(text));
  assert_non_null(strstr(text, "\"cat\":\"app\",\"name\":\"mine\""));
  assert_non_null(strstr(text, "\"args\":{\"detail\":\"a detail\"}"));
  assert_null(strstr(text, "never begun"));
  // Of the environment; an empty option switches it off.
  setenv("PESTLE_TRACE", path, 1);
  options.use_environment = true;
  options.trace_file = "";
  assert_ok(pestle_context_create(&options, &context));
  assert_int_equal(pestle_context_trace_begin(context), 0);
  pestle_context_release(context);
  options.trace_file = NULL;
  assert_ok(pestle_context_create(&options, &context));
  assert_true(pestle_context_trace_begin(context) > 0);
  pestle_context_release(context);
  unsetenv("PESTLE_TRACE");
  assert_int_equal(unlink(path), 0);
}

static void test_unwritable_trace(void** state) {
  (void)state;
  char text[64] = "";
  pestle_context_options_t options = fixture_options();
  options.log = keep_message;
  options.log_user = text;
  options.log_level = PESTLE_LOG_WARN;
  options.trace_file = "/nonexistent/trace.json";
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  assert_non_null(strstr(text, "1 there is no trace: "));
  assert_int_equal(pestle_context_trace_begin(context), 0);
  pestle_context_release(context);
  // No memory for it is no reason to go on without.
  options.trace_file = "/dev/null";
  for (size_t k = 1;; ++k) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, k);
    options.allocator = pestle_test_allocator(&memory);
    pestle_status_t status = pestle_context_create(&options, &context);
    if (status) assert_code(status, OUT_OF_MEMORY);
    pestle_context_release(context);
    pestle_test_allocator_check(&memory);
    if (!pestle_test_allocator_failed(&memory)) break;
  }
}

static void test_devices(void** state) {
  (void)state;
  clear_environment();
  pestle_context_t* context = fixture_context(NULL);
  pestle_device_t *device, *again;
  // The test backend has the best score, ref is what is built in.
  static const char* const specs[][2] = {
      {"cpu", "test"},  {"cpu:0", "test"}, {"cpu:1", "ref"}, {"ref", "ref"},
      {"ref:0", "ref"}, {"test", "test"},  {NULL, "test"}};
  for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); ++i) {
    assert_ok(pestle_context_device(context, specs[i][0], &device));
    assert_string_equal(pestle_device_name(device), specs[i][1]);
    assert_ok(pestle_context_device(context, specs[i][1], &again));
    assert_ptr_equal(device, again);
    assert_int_equal(pestle_device_dl(device).device_type, PESTLE_DEVICE_CPU);
    assert_int_equal(pestle_device_dl(device).device_id, 0);
  }
  assert_string_equal(pestle_device_backend_id(device), "test test-build");
  assert_error(pestle_context_device(context, "gpu:1", &device), NOT_FOUND,
               "no device 'gpu:1'; there are: cpu:0 (test), cpu:1 (ref)");
  assert_error(pestle_context_device(context, "cpu:2", &device), NOT_FOUND,
               "there are");
  static const char* const odd[] = {
      "",       ":",  "cpu:",    "cpu:x",
      "cpu:-1", ":1", "cpu:1:2", "cpu:99999999999999999999"};
  for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); ++i) {
    assert_error(pestle_context_device(context, odd[i], &device),
                 INVALID_ARGUMENT, "not understood");
    assert_null(device);
  }
  pestle_target_caps_t caps = {.struct_size = 0};
  assert_ok(pestle_context_device(context, "ref", &device));
  assert_error(pestle_device_caps(device, NULL, &caps), INVALID_ARGUMENT,
               "struct_size is not set");
  // Of an older header: nothing is written past its end.
  caps.struct_size = offsetof(pestle_target_caps_t, features);
  caps.features[0] = 'x';
  assert_ok(pestle_device_caps(device, NULL, &caps));
  assert_string_equal(caps.name, "ref");
  assert_int_equal(caps.features[0], 'x');
  caps.struct_size = sizeof(caps);
  assert_ok(pestle_device_caps(device, NULL, &caps));
  assert_string_equal(caps.name, "ref");
  pestle_context_release(context);
  setenv("PESTLE_DEVICE", "ref", 1);
  setenv("PESTLE_BACKEND_PATH", "/nonexistent", 1);
  assert_ok(create_from_environment(&context));
  assert_ok(pestle_context_device(context, NULL, &device));
  assert_string_equal(pestle_device_name(device), "ref");
  pestle_context_release(context);
  // Neither the current folder nor one that depends on it, and none twice.
  setenv("PESTLE_BACKEND_PATH", ".:/nonexistent::below:../up:/nonexistent", 1);
  assert_ok(create_from_environment(&context));
  assert_int_equal(pestle_context_search_path_count(context), 1);
  assert_string_equal(pestle_context_search_path(context, 0), "/nonexistent");
  pestle_context_release(context);
  clear_environment();
}

static void test_backend_rows(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  assert_ok(pestle_context_load_backends(context));
  assert_int_equal(pestle_context_backend_count(context), 2);
  pestle_backend_info_t info = {.struct_size = sizeof(info)};
  assert_ok(pestle_context_backend_info(context, 1, &info));
  assert_string_equal(info.name, "ref");
  assert_string_equal(info.path, "");
  assert_string_equal(info.reason, "");
  assert_true(info.score > 0 && info.device_count == 1);
  assert_code(pestle_context_backend_info(context, 2, &info), NOT_FOUND);
  info.struct_size = 0;
  assert_code(pestle_context_backend_info(context, 0, &info), INVALID_ARGUMENT);
  // The same name twice.
  assert_error(test_backend_add(context), INCOMPATIBLE, "already taken");
  pestle_context_release(context);
}

static pestle_memory_stats_t stats_of(const pestle_device_t* device) {
  pestle_memory_stats_t stats = {.struct_size = sizeof(stats)};
  pestle_device_memory_stats(device, &stats);
  return stats;
}

static void test_buffers(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  pestle_device_t* device;
  assert_ok(pestle_context_device(context, "cpu", &device));
  pestle_buffer_t* buffer;
  assert_ok(pestle_buffer_create(device, 1000, &buffer));
  assert_int_equal(pestle_buffer_size(buffer), 1000);
  assert_int_equal((uintptr_t)pestle_buffer_data(buffer) % 64, 0);
  assert_ptr_equal(pestle_buffer_device(buffer), device);
  pestle_memory_stats_t stats = stats_of(device);
  assert_true(stats.active >= 1000 && stats.active < 1200);
  assert_int_equal(stats.cached, 0);
  char out[10];
  assert_ok(pestle_buffer_write(buffer, 990, "0123456789", 10));
  assert_ok(pestle_buffer_read(buffer, 990, out, 10));
  assert_memory_equal(out, "0123456789", 10);
  assert_ok(pestle_buffer_write(buffer, 1000, NULL, 0));
  assert_code(pestle_buffer_write(buffer, 991, "0123456789", 10),
              INVALID_ARGUMENT);
  assert_code(pestle_buffer_read(buffer, SIZE_MAX, out, 10), INVALID_ARGUMENT);
  pestle_buffer_retain(buffer);
  pestle_buffer_release(buffer);
  void* data = pestle_buffer_data(buffer);
  pestle_buffer_release(buffer);
  stats = stats_of(device);
  assert_int_equal(stats.active, 0);
  assert_true(stats.cached >= 1000 && stats.peak >= 1000);
  // The next one of about that size is the same memory.
  assert_ok(pestle_buffer_create(device, 970, &buffer));
  assert_ptr_equal(pestle_buffer_data(buffer), data);
  // It outlives the caller's reference to the context.
  pestle_context_release(context);
  assert_ok(pestle_buffer_write(buffer, 0, "x", 1));
  pestle_buffer_release(buffer);
}

// Every size: aligned, large enough, not much larger, and found again.
static void test_block_sizes(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  pestle_device_t* device;
  assert_ok(pestle_context_device(context, "cpu", &device));
  for (size_t size = 0; size < 6000000; size += 1 + size / 37) {
    pestle_buffer_t* buffer;
    assert_ok(pestle_buffer_create(device, size, &buffer));
    uint64_t active = stats_of(device).active;
    assert_true(active >= size && active <= size + size / 8 + 64);
    if (size) ((char*)pestle_buffer_data(buffer))[size - 1] = 1;
    void* data = pestle_buffer_data(buffer);
    if (size >= (size_t)4 << 20) {
      assert_int_equal((uintptr_t)data % ((size_t)2 << 20), 0);
    }
    pestle_buffer_release(buffer);
    assert_ok(pestle_buffer_create(device, size, &buffer));
    assert_ptr_equal(pestle_buffer_data(buffer), data);
    pestle_buffer_release(buffer);
  }
  pestle_buffer_t* buffer;
  assert_code(pestle_buffer_create(device, SIZE_MAX, &buffer), OUT_OF_MEMORY);
  // A sanitizer's malloc ends the process.
  if (!TEST_SANITIZED) {
    assert_code(pestle_buffer_create(device, SIZE_MAX / 512, &buffer),
                OUT_OF_MEMORY);
  }
  pestle_context_release(context);
}

// Arenas and constants are counted while an executable holds them.
static void test_memory_of_executables(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  pestle_device_t* device;
  assert_ok(pestle_context_device(context, "test", &device));
  static plan_writer_t w;
  int64_t dims[] = {16};
  fixture_write_add1(&w, 1, dims, 0);
  char constant[4096] = {0};
  plan_constant(&w, constant, sizeof(constant));
  plan_arena(&w, 10000);
  pestle_plan_t* plan = fixture_plan(context, &w);
  pestle_executable_t* e[2];
  for (int i = 0; i < 2; ++i) {
    assert_ok(pestle_executable_create(context, plan, device, &e[i]));
    assert_int_equal(stats_of(device).active, 4096);  // shared
  }
  float x[16] = {0};
  pestle_tensor_t in = test_view(x, PESTLE_F32, 1, dims, NULL);
  pestle_tensor_t out = {0};
  assert_ok(pestle_executable_run(e[0], NULL, &in, 1, &out, 1, NULL));
  assert_true(stats_of(device).active > 14096);
  pestle_tensor_release(e[0], &out);
  for (int i = 0; i < 2; ++i)
    pestle_executable_release(e[i]);
  assert_int_equal(stats_of(device).active, 0);
  pestle_plan_release(plan);
  pestle_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_environment),
      cmocka_unit_test(test_bad_values),
      cmocka_unit_test(test_log),
      cmocka_unit_test(test_trace),
      cmocka_unit_test(test_unwritable_trace),
      cmocka_unit_test(test_devices),
      cmocka_unit_test(test_backend_rows),
      cmocka_unit_test(test_buffers),
      cmocka_unit_test(test_block_sizes),
      cmocka_unit_test(test_memory_of_executables),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
