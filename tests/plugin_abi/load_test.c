// SPDX-License-Identifier: Apache-2.0
// Loading plugins that are right, and wrong in each of many ways.
#include "test.h"
// Ours.
#include "pestle/runtime.h"

static pestle_context_t* open_context(const char* path) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .threads = 1,
                                      .backend_path = path};
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  return context;
}

// The row of the file libpestle-|file|.so; its path names it.
static pestle_backend_info_t row_of(pestle_context_t* context,
                                    const char* file) {
  char path[512];
  snprintf(path, sizeof(path), "%s/libpestle-%s.so", FAKE_FOLDER, file);
  pestle_backend_info_t info = {.struct_size = sizeof(info)};
  for (size_t i = 0; i < pestle_context_backend_count(context); ++i) {
    assert_ok(pestle_context_backend_info(context, i, &info));
    if (!strcmp(info.path, path)) return info;
  }
  print_error("no row for %s\n", path);
  fail();
  return info;
}

static void test_refusals(void** state) {
  (void)state;
  static const struct {
    const char *file, *text;
  } rows[] = {
      {"major", "major version differs: expected 1, found 9; rebuild"},
      {"kirmajor", "Kernel IR's major version differs: expected 1, found 7"},
      {"info", "abi_info is too short: expected 56 bytes, found 16"},
      {"inst", "size of pestle_kir_inst_t differs: expected 24, found 32"},
      {"buffer", "size of pestle_kir_buffer_t differs: expected 40, found 48"},
      {"kir", "size of pestle_kir_t differs"},
      {"sanitizer", "same preset"},
      {"zero", "not for this machine: the machine has no flux capacitor"},
      {"noinfo", "exports no pestle_backend_abi_info"},
      {"noinit", "exports no pestle_backend_init"},
      {"fails", "cannot start: UNAVAILABLE: the moon is not full"},
      {"silent", "it gave no reason"},
      {"table", "length of pestle_backend_t differs"},
      {"halves", "with neither half"},
      {"notakes", "library.takes is NULL"},
      {"norun", "library.run is NULL"},
      {"shortlib",
       "length of pestle_library_api_t differs: expected 24, found "
       "16"},
      {"shortcomm",
       "length of pestle_collective_api_t differs: expected 80, found 24"},
      {"commid", "collective.id is NULL"},
      {"commcreate", "collective.create is NULL"},
      {"commenqueue", "collective.enqueue is NULL"},
      {"commregistermemory", "collective.register_memory, beside its pair,"},
      {"commderegistermemory",
       "collective.deregister_memory, beside its pair,"},
      {"commpoll", "collective.poll is NULL"},
      {"commabort", "collective.abort is NULL"},
      {"commdestroy", "collective.destroy is NULL"},
      {"other", "a table named 'another'"},
      {"noscore", "not usable here: its score is 0"},
      {"unresolved", "pestle_no_such_function"},
      {"text", "is not an ELF library"},
      {"empty", "is not an ELF library"},
#ifdef FAKE_SANITIZED
      {"asan", "built with AddressSanitizer, but this Pestle is not"},
      {"tsan", "built with ThreadSanitizer, but this Pestle is not"},
#endif
      {"pick-v1", "already taken by"},
      {"pick-v3", "the moon is not full"},
  };
  pestle_context_t* context = open_context(FAKE_FOLDER);
  assert_ok(pestle_context_load_backends(context));
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    pestle_backend_info_t info = row_of(context, rows[i].file);
    if (!strstr(info.reason, rows[i].text) || !strstr(info.reason, info.path)) {
      print_error("%s: reason is '%s', expected '%s' and the path\n",
                  rows[i].file, info.reason, rows[i].text);
      fail();
    }
    assert_int_equal(info.device_count, 0);
  }
  // What is not named as a plugin is not even looked at.
  for (size_t i = 0; i < pestle_context_backend_count(context); ++i) {
    pestle_backend_info_t info = {.struct_size = sizeof(info)};
    assert_ok(pestle_context_backend_info(context, i, &info));
    assert_null(strstr(info.path, "notes.txt"));
    assert_null(strstr(info.path, "readme.so"));
  }
  pestle_context_release(context);
}

static void test_accepted(void** state) {
  (void)state;
  pestle_context_t* context = open_context(FAKE_FOLDER);
  assert_ok(pestle_context_load_backends(context));
  static const char* const good[] = {"good",    "onlylib", "onlycomm",
                                     "comm6",   "short",   "oldkir",
                                     "pick-v2", "gpux",    "longer"};
  for (size_t i = 0; i < sizeof(good) / sizeof(*good); ++i) {
    assert_string_equal(row_of(context, good[i]).reason, "");
  }
  pestle_device_t* device;
  assert_ok(pestle_context_device(context, "pick", &device));
  assert_string_equal(pestle_device_backend_id(device), "pick v2");
  // In all: ref, good, short, oldkir, longer, pick-v2.
  assert_ok(pestle_context_device(context, "ref", &device));
  assert_ok(pestle_context_device(context, "cpu:5", &device));
  assert_code(pestle_context_device(context, "cpu:6", &device), NOT_FOUND);
  pestle_context_release(context);
}

// Indices go on over backends and devices.
static void test_gpu_numbers(void** state) {
  (void)state;
  pestle_context_t* context = open_context(FAKE_FOLDER);
  pestle_device_t *first, *second, *device;
  assert_ok(pestle_context_device(context, "gpu", &first));
  assert_ok(pestle_context_device(context, "gpu:1", &second));
  assert_string_equal(pestle_device_name(first), "gpux:0");
  assert_string_equal(pestle_device_name(second), "gpux:1");
  assert_int_equal(pestle_device_dl(second).device_type, PESTLE_DEVICE_CUDA);
  assert_int_equal(pestle_device_dl(second).device_id, 1);
  assert_ok(pestle_context_device(context, "gpux:1", &device));
  assert_ptr_equal(device, second);
  assert_error(pestle_context_device(context, "gpu:2", &device), NOT_FOUND,
               "gpu:0 (gpux:0), gpu:1 (gpux:1)");
  // A backend without memory says so.
  pestle_buffer_t* buffer;
  assert_error(pestle_buffer_create(first, 10, &buffer), UNSUPPORTED,
               "gpux:0 offers no memory");
  pestle_context_release(context);
}

// Devices that compute on the CPU come last, under a type of their own.
static void test_software(void** state) {
  (void)state;
  static const struct {
    const char *spec, *name;
    int local;  // the property "number" less 7
  } rows[] = {{"gpu:0", "soft:0", 1},      {"gpu:1", "hard", 0},
              {"software:0", "soft:1", 0}, {"software:1", "soft:2", 2},
              {"soft:0", "soft:0", 1},     {"soft:2", "soft:2", 2}};
  pestle_context_t* context = open_context(SOFTWARE_FOLDER);
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    pestle_device_t* device;
    pestle_device_property_t property = {.struct_size = sizeof(property)};
    assert_ok(pestle_context_device(context, rows[i].spec, &device));
    assert_string_equal(pestle_device_name(device), rows[i].name);
    assert_ok(pestle_device_property(device, 0, &property));
    assert_int_equal(property.integer, 7 + rows[i].local);
    const char* type = pestle_device_type(device);
    assert_string_equal(type, i == 2 || i == 3 || i == 5 ? "software" : "gpu");
    if (i < 4) assert_int_equal(pestle_device_index(device), i % 2);
  }
  pestle_device_t* device;
  assert_int_equal(pestle_context_device_count(context, "gpu"), 2);
  assert_int_equal(pestle_context_device_count(context, "software"), 2);
  assert_error(pestle_context_device(context, "gpu:2", &device), NOT_FOUND,
               "gpu:0 (soft:0), gpu:1 (hard), software:0 (soft:1), software:1");
  pestle_context_release(context);
  // Where there is no other, a gpu is not found, and how to ask is said.
  context = open_context(SOFTWARE_ALONE_FOLDER);
  assert_false(pestle_context_is_available(context, "gpu"));
  assert_error(pestle_context_device(context, "gpu", &device), NOT_FOUND,
               "computes on the CPU: ask for 'lone' or 'software'");
  assert_ok(pestle_context_device(context, "software", &device));
  assert_string_equal(pestle_device_name(device), "lone");
  assert_ok(pestle_context_device(context, "lone", &device));
  pestle_context_release(context);
}

static char last_warning[1024];

static void take_warning(void* user, pestle_log_level_t level,
                         const char* message) {
  ++*(int*)user;
  if (level == PESTLE_LOG_WARN)
    snprintf(last_warning, sizeof(last_warning), "%s", message);
}

// Who asks for a CPU and gets the interpreter is told, once.
static void test_fallback_is_said(void** state) {
  (void)state;
  int count = 0;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .threads = 1,
                                      .log = take_warning,
                                      .log_user = &count,
                                      .log_level = PESTLE_LOG_WARN,
                                      .backend_path = SOFTWARE_ALONE_FOLDER};
  pestle_context_t* context;
  pestle_device_t* device;
  assert_ok(pestle_context_create(&options, &context));
  assert_ok(pestle_context_device(context, "ref", &device));
  assert_int_equal(count, 0);  // it was asked for
  assert_ok(pestle_context_device(context, NULL, &device));
  assert_string_equal(pestle_device_name(device), "ref");
  assert_ok(pestle_context_device(context, "cpu:0", &device));
  assert_int_equal(count, 1);
  assert_non_null(strstr(last_warning, "'cpu' is the fallback 'ref'"));
  assert_non_null(strstr(last_warning,
                         "the backend path '" SOFTWARE_ALONE_FOLDER
                         "' has no other backend for CPUs"));
  pestle_context_release(context);
}

static void test_reason_in_not_found(void** state) {
  (void)state;
  pestle_context_t* context = open_context(FAKE_FOLDER);
  pestle_device_t* device;
  assert_error(pestle_context_device(context, "zero", &device), NOT_FOUND,
               "flux capacitor");
  pestle_context_release(context);
}

static void test_one_by_path(void** state) {
  (void)state;
  pestle_context_t* context = open_context("/nonexistent:also-nonexistent");
  assert_error(
      pestle_context_load_backend(context, FAKE_FOLDER "/libpestle-major.so"),
      INCOMPATIBLE, "found 9");
  assert_error(
      pestle_context_load_backend(context, FAKE_FOLDER "/libpestle-none.so"),
      NOT_FOUND, "libpestle-none.so");
  assert_code(pestle_context_load_backend(context, ""), INVALID_ARGUMENT);
  assert_ok(
      pestle_context_load_backend(context, FAKE_FOLDER "/libpestle-good.so"));
  pestle_device_t* device;
  assert_ok(pestle_context_device(context, "good", &device));
  assert_error(
      pestle_context_load_backend(context, FAKE_FOLDER "/libpestle-good.so"),
      INCOMPATIBLE, "already taken");
  pestle_context_release(context);
}

// Two contexts share the mapped library and nothing else.
static void test_two_contexts(void** state) {
  (void)state;
  pestle_context_t* a = open_context(FAKE_FOLDER);
  pestle_context_t* b = open_context(FAKE_FOLDER);
  pestle_device_t *of_a, *of_b;
  assert_ok(pestle_context_device(a, "good", &of_a));
  assert_ok(pestle_context_device(b, "good", &of_b));
  assert_ptr_not_equal(of_a, of_b);
  pestle_context_release(a);
  assert_ok(pestle_context_device(b, "good", &of_b));
  pestle_context_release(b);
}

static void test_every_failure(void** state) {
  (void)state;
  for (size_t k = 1;; ++k) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, k);
    pestle_context_options_t options = {
        .struct_size = sizeof(options),
        .allocator = pestle_test_allocator(&memory),
        .cache_dir = "",
        .backend_path = FAKE_FOLDER,
        .threads = 1};
    pestle_context_t* context;
    pestle_status_t status = pestle_context_create(&options, &context);
    if (!status) {
      status = pestle_context_load_backends(context);
      if (status) {
        assert_code(status, OUT_OF_MEMORY);
        assert_ok(pestle_context_load_backends(context));
      }
      assert_string_equal(row_of(context, "good").reason, "");
      pestle_device_t* device;
      assert_ok(pestle_context_device(context, "ref", &device));
      pestle_context_release(context);
    } else {
      assert_code(status, OUT_OF_MEMORY);
    }
    pestle_test_allocator_check(&memory);
    if (!pestle_test_allocator_failed(&memory)) break;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_accepted),
      cmocka_unit_test(test_gpu_numbers),
      cmocka_unit_test(test_software),
      cmocka_unit_test(test_fallback_is_said),
      cmocka_unit_test(test_reason_in_not_found),
      cmocka_unit_test(test_one_by_path),
      cmocka_unit_test(test_two_contexts),
      cmocka_unit_test(test_every_failure),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
