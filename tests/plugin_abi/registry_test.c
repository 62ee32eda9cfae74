// SPDX-License-Identifier: Apache-2.0
// The registry: which plugin files are loaded, from where and when, as a caller
// asks; and its answers about backends, devices and their memory.
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
// Ours.
#include "pestle/runtime.h"
#include "runtime/registry.h"

static char log_text[1 << 16];

static void take_log(void* user, pestle_log_level_t level,
                     const char* message) {
  (void)user;
  size_t size = strlen(log_text);
  snprintf(log_text + size, sizeof(log_text) - size, "%d %s\n", (int)level,
           message);
}

static pestle_context_t* open_with(const char* path, bool manual) {
  log_text[0] = 0;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .cache_dir = "",
                                      .threads = 1,
                                      .log = take_log,
                                      .log_level = PESTLE_LOG_DEBUG,
                                      .backend_path = path,
                                      .manual_backends = manual};
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  return context;
}

static const char* const names[] = {"tie", "high", "moon", "gpua", "gpub"};

// The running ones of |names|, as letters: "thab".
static const char* running(pestle_context_t* context) {
  static char text[8];
  size_t size = 0;
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    if (pestle_context_backend(context, names[i])) {
      text[size++] = i > 2 ? names[i][3] : names[i][0];
    }
  }
  text[size] = 0;
  return text;
}

static const char* reason_of(pestle_context_t* context, const char* name) {
  pestle_backend_info_t info = {.struct_size = sizeof(info)};
  for (size_t i = 0; i < pestle_context_backend_count(context); ++i) {
    assert_ok(pestle_context_backend_info(context, i, &info));
    if (!strcmp(info.name, name) && !info.backend) return info.reason;
  }
  return "";
}

// Of the one whose file has |part| in its name.
static const char* reason_of_file(pestle_context_t* context, const char* part) {
  pestle_backend_info_t info = {.struct_size = sizeof(info)};
  for (size_t i = 0; i < pestle_context_backend_count(context); ++i) {
    assert_ok(pestle_context_backend_info(context, i, &info));
    if (strstr(info.path, part)) return info.reason;
  }
  return "no such file";
}

// --- What is loaded ---

static void test_all(void** state) {
  (void)state;
  pestle_context_t* context = open_with(REGISTRY_FOLDER, false);
  assert_string_equal(running(context), "thab");
  assert_int_equal(pestle_context_device_count(context, "gpu"), 3);
  assert_int_equal(pestle_context_device_count(context, "gpua"), 2);
  assert_int_equal(pestle_context_device_count(context, "cpu"), 3);
  assert_true(pestle_context_is_available(context, "gpu"));
  assert_false(pestle_context_is_available(context, "moon"));
  // Of three with one score that of this build, wherever it is in the order.
  pestle_device_t* device;
  assert_ok(pestle_context_device(context, "tie", &device));
  assert_string_equal(pestle_device_backend_id(device), "tie v2");
  assert_non_null(strstr(reason_of(context, "tie"), "it is of this build"));
  // Of two of this build the first.
  assert_string_equal(reason_of_file(context, "tie-v4"), REGISTRY_FOLDER
                      "/libpestle-tie-v4.so: backend 'tie' is already taken "
                      "by " REGISTRY_FOLDER
                      "/libpestle-tie-v2.so (score 10, this one 10; equal, "
                      "but it came first)");
  assert_non_null(
      strstr(reason_of_file(context, "tie-v3"), "it is of this build"));
  pestle_context_release(context);
}

// A file may have the name of what is linked in, which then stays aside.
static void test_named_as_linked_in(void** state) {
  (void)state;
  pestle_context_t* context = open_with("/nonexistent", true);
  assert_ok(pestle_context_load_backend(context,
                                        NAMED_FOLDER "/libpestle-own_ref.so"));
  assert_ok(pestle_context_load_backends(context));
  pestle_device_t* device;
  assert_ok(pestle_context_device(context, "ref", &device));
  assert_string_equal(pestle_device_backend_id(device), "ref fake-1");
  assert_non_null(strstr(reason_of(context, "ref"),
                         "the linked-in backend: backend 'ref' is already "
                         "taken by " NAMED_FOLDER));
  pestle_context_release(context);
}

static void test_globs(void** state) {
  (void)state;
  static const char* const rows[][3] = {{"*", "a", "1"},
                                        {"cuda*", "cuda-v13", "1"},
                                        {"*v13", "cuda-v13", "1"},
                                        {"c?da", "cuda", "1"},
                                        {"c?da", "cda", "0"},
                                        {"", "", "1"},
                                        {"", "a", "0"},
                                        {"*a*b", "xaxbxab", "1"},
                                        {"*a*c", "xaxbxab", "0"},
                                        {"**", "", "1"},
                                        {"cuda", "cuda-v13", "0"}};
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    assert_int_equal(pestle_glob_matches(rows[i][0], rows[i][1]),
                     rows[i][2][0] == '1');
  }
}

static bool take_strong(void* user, const pestle_candidate_t* candidate) {
  ++*(int*)user;
  assert_true(candidate->struct_size == sizeof(*candidate));
  assert_non_null(candidate->abi_info);
  assert_string_equal(candidate->abi_info->name, candidate->name);
  assert_non_null(strstr(candidate->path, candidate->name));
  return candidate->score >= 60;
}

static void test_filters(void** state) {
  (void)state;
  static const char* const gpus[] = {"gpu*"};
  static const char* const variant[] = {"gpub-*", "tie-v3"};
  pestle_backend_filter_t filter = {
      .struct_size = sizeof(filter), .allowed = gpus, .allowed_count = 1};
  pestle_context_t* context = open_with(REGISTRY_FOLDER, false);
  assert_ok(pestle_context_load_all(context, &filter));
  // Nothing else is loaded behind the caller's back.
  assert_string_equal(running(context), "ab");
  assert_non_null(strstr(reason_of(context, "high"), "none of the 1 names"));
  // Again, with others: what runs stays, what was refused is looked at anew.
  filter = (pestle_backend_filter_t){
      .struct_size = sizeof(filter), .blocked = variant, .blocked_count = 2};
  size_t before = pestle_context_backend_count(context);
  assert_ok(pestle_context_load_all(context, &filter));
  assert_string_equal(running(context), "thab");
  assert_int_equal(pestle_context_backend_count(context), before);
  pestle_context_release(context);
  int calls = 0;
  filter = (pestle_backend_filter_t){
      .struct_size = sizeof(filter), .accept = take_strong, .user = &calls};
  context = open_with(REGISTRY_FOLDER, false);
  assert_ok(pestle_context_load_all(context, &filter));
  assert_string_equal(running(context), "hb");
  assert_true(calls >= 7);
  assert_non_null(strstr(reason_of(context, "gpua"), "filter does not take"));
  // The built-in fallback is there whatever a filter says.
  assert_true(pestle_context_is_available(context, "cpu"));
  filter.struct_size = 0;
  assert_code(pestle_context_load_all(context, &filter), INVALID_ARGUMENT);
  pestle_context_release(context);
}

static void test_best(void** state) {
  (void)state;
  pestle_context_t* context = open_with(REGISTRY_FOLDER, true);
  assert_string_equal(running(context), "");
  assert_ok(pestle_context_load_best(context, "tie"));
  assert_string_equal(running(context), "t");
  assert_ok(pestle_context_load_best(context, "tie"));
  assert_error(pestle_context_load_best(context, "moon"), UNAVAILABLE,
               "the moon is not full");
  assert_error(pestle_context_load_best(context, "cheese"), NOT_FOUND,
               "libpestle-cheese[-VARIANT].so");
  assert_ok(pestle_context_load_best(context, "gpub"));
  assert_string_equal(running(context), "tb");
  assert_ok(pestle_context_load_all(context, NULL));
  assert_string_equal(running(context), "thab");
  pestle_context_release(context);
}

static void test_search_paths(void** state) {
  (void)state;
  pestle_context_t* context = open_with("/nonexistent::/also-not", false);
  assert_int_equal(pestle_context_search_path_count(context), 2);
  assert_string_equal(pestle_context_search_path(context, 1), "/also-not");
  assert_null(pestle_context_search_path(context, 2));
  static const char* const folders[] = {"/nonexistent", REGISTRY_FOLDER};
  assert_ok(pestle_context_set_search_paths(context, folders, 2));
  assert_string_equal(pestle_context_search_path(context, 1), REGISTRY_FOLDER);
  assert_string_equal(running(context), "thab");
  static const char* const empty[] = {""};
  assert_error(pestle_context_set_search_paths(context, empty, 1),
               INVALID_ARGUMENT, "never searched");
  assert_ok(pestle_context_set_search_paths(context, NULL, 0));
  assert_int_equal(pestle_context_search_path_count(context), 0);
  pestle_context_release(context);
  // Without an option two folders beside the library, and not the current one.
  context = open_with(NULL, true);
  assert_int_equal(pestle_context_search_path_count(context), 2);
  assert_non_null(
      strstr(pestle_context_search_path(context, 0), "/pestle/backends"));
  for (size_t i = 0; i < 2; ++i)
    assert_int_equal(pestle_context_search_path(context, i)[0], '/');
  pestle_context_release(context);
}

// The levels of the table in runtime.h.
static void test_log_levels(void** state) {
  (void)state;
  pestle_context_t* context = open_with(ABI_FOLDER, false);
  assert_ok(pestle_context_load_backends(context));
  static const char* const lines[] = {
      "0 backend not used: " ABI_FOLDER "/libpestle-major.so: ",
      "0 backend not used: " ABI_FOLDER "/libpestle-halves.so: ",
      "1 backend not used: " ABI_FOLDER "/libpestle-text.so is not",
      "1 backend not used: " ABI_FOLDER "/libpestle-fails.so: ",
      "3 backend not used: " ABI_FOLDER "/libpestle-zero.so: ",
      "3 backend not used: " ABI_FOLDER "/libpestle-pick-v1.so: ",
      "2 backend good: score 10"};
  for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); ++i) {
    if (strstr(log_text, lines[i])) continue;
    print_error("no line '%s' in\n%s\n", lines[i], log_text);
    fail();
  }
  pestle_context_release(context);
}

// --- Devices ---

static void expect_index(pestle_context_t* context, const char* spec,
                         int32_t index) {
  pestle_device_t *device, *again;
  char text[32];
  assert_ok(pestle_context_device(context, spec, &device));
  assert_int_equal(pestle_device_index(device), index);
  snprintf(text, sizeof(text), "%s:%d", strstr(spec, "gpu") ? "gpu" : "cpu",
           (int)index);
  assert_ok(pestle_context_device(context, text, &again));
  assert_ptr_equal(device, again);
}

static void test_indices(void** state) {
  (void)state;
  pestle_context_t* context = open_with(REGISTRY_FOLDER, false);
  expect_index(context, "gpub", 0);  // score 70
  expect_index(context, "gpua:0", 1);
  expect_index(context, "gpua:1", 2);
  expect_index(context, "high", 0);
  expect_index(context, "ref", 2);
  pestle_context_release(context);
}

// Who asks for a cpu does not wake what says that it is none; it is there as soon
// as somebody asks for it, or for all.
static void test_put_off(void** state) {
  (void)state;
  static const char* const asks[] = {"cpu", "high", "ref", "cpu:1"};
  for (size_t i = 0; i < 4; ++i) {
    pestle_context_t* context = open_with(REGISTRY_FOLDER, false);
    pestle_device_t* device;
    assert_ok(pestle_context_device(context, asks[i], &device));
    assert_int_equal(pestle_context_device_count(context, "cpu"), 3);
    assert_null(strstr(log_text, "backend gpub: score"));
    // This one does not say.
    assert_non_null(strstr(log_text, "backend gpua: score"));
    assert_ok(pestle_context_device(context, i % 2 ? "gpub" : "gpu", &device));
    assert_string_equal(pestle_device_name(device), "gpub");
    assert_non_null(strstr(log_text, "backend gpub: score"));
    expect_index(context, "gpua:1", 2);
    assert_string_equal(running(context), "thab");
    pestle_context_release(context);
  }
}

// A load when there are buffers: they and their devices stay what they were,
// and only the numbers go up.
static void test_late_load(void** state) {
  (void)state;
  pestle_context_t* context = open_with("/nonexistent", false);
  pestle_device_t *ref, *device;
  pestle_buffer_t* buffer;
  assert_ok(pestle_context_device(context, "cpu", &ref));
  assert_string_equal(pestle_device_name(ref), "ref");
  assert_ok(pestle_buffer_create(ref, 64, &buffer));
  assert_ok(pestle_buffer_write(buffer, 0, "abc", 4));
  assert_ok(pestle_context_load_backend(context,
                                        REGISTRY_FOLDER "/libpestle-high.so"));
  assert_ok(pestle_context_device(context, "cpu", &device));
  assert_string_equal(pestle_device_name(device), "high");
  assert_int_equal(pestle_device_index(ref), 1);
  assert_ptr_equal(pestle_buffer_device(buffer), ref);
  char text[4];
  assert_ok(pestle_buffer_read(buffer, 0, text, 4));
  assert_string_equal(text, "abc");
  pestle_buffer_release(buffer);
  pestle_context_release(context);
}

static void test_properties(void** state) {
  (void)state;
  pestle_context_t* context = open_with(REGISTRY_FOLDER, false);
  pestle_device_t* device;
  pestle_device_property_t property = {.struct_size = sizeof(property)};
  assert_ok(pestle_context_device(context, "gpua:1", &device));
  assert_ok(pestle_device_property(device, 0, &property));
  assert_string_equal(property.name, "number");
  assert_false(property.is_text);
  assert_int_equal(property.integer, 1);
  assert_ok(pestle_device_property(device, 1, &property));
  assert_true(property.is_text);
  assert_string_equal(property.text, "green");
  assert_code(pestle_device_property(device, 2, &property), NOT_FOUND);
  assert_ok(pestle_context_device(context, "high", &device));
  assert_code(pestle_device_property(device, 0, &property), NOT_FOUND);
  pestle_context_release(context);
}

// --- Memory ---

static void test_cpu_memory(void** state) {
  (void)state;
  pestle_context_t* context = open_with("/nonexistent", false);
  pestle_device_t* device;
  pestle_buffer_t *buffer, *other;
  uint64_t bytes, before;
  assert_ok(pestle_context_device(context, "ref", &device));
  assert_ok(pestle_buffer_create(device, 1 << 20, &buffer));
  assert_ok(pestle_device_memory_get(device, PESTLE_MEMORY_ACTIVE, &bytes));
  assert_int_equal(bytes, 1 << 20);
  assert_ok(pestle_context_memory_get(context, PESTLE_MEMORY_ACTIVE, &bytes));
  assert_int_equal(bytes, 1 << 20);
  // A limit, and what it says.
  assert_ok(
      pestle_device_memory_set(device, PESTLE_MEMORY_LIMIT, 3 << 19, &before));
  assert_int_equal(before, 0);
  assert_error(pestle_buffer_create(device, 1 << 20, &other),
               RESOURCE_EXHAUSTED, "raise its memory limit");
  assert_ok(pestle_buffer_create(device, 1 << 19, &other));
  pestle_buffer_release(other);
  assert_ok(pestle_device_memory_set(device, PESTLE_MEMORY_LIMIT, 0, &before));
  assert_int_equal(before, 3 << 19);
  // What is kept, and given back.
  pestle_buffer_release(buffer);
  assert_ok(pestle_context_memory_get(context, PESTLE_MEMORY_CACHE, &bytes));
  assert_int_equal(bytes, 3 << 19);
  assert_ok(pestle_context_memory_set(context, PESTLE_MEMORY_CACHE, 0, NULL));
  assert_ok(pestle_device_memory_get(device, PESTLE_MEMORY_CACHE, &bytes));
  assert_int_equal(bytes, 0);
  assert_ok(pestle_device_memory_get(device, PESTLE_MEMORY_PEAK, &bytes));
  assert_int_equal(bytes, 3 << 19);
  assert_ok(pestle_context_memory_set(context, PESTLE_MEMORY_PEAK, 0, NULL));
  assert_ok(pestle_device_memory_get(device, PESTLE_MEMORY_PEAK, &bytes));
  assert_int_equal(bytes, 0);
  // Nothing is kept under a limit of 0.
  assert_ok(
      pestle_device_memory_set(device, PESTLE_MEMORY_CACHE_LIMIT, 0, &before));
  assert_int_equal(before, 256 << 20);
  assert_ok(pestle_buffer_create(device, 4096, &buffer));
  pestle_buffer_release(buffer);
  assert_ok(pestle_device_memory_get(device, PESTLE_MEMORY_CACHE, &bytes));
  assert_int_equal(bytes, 0);
  // What cannot be.
  assert_error(pestle_device_memory_set(device, PESTLE_MEMORY_PEAK, 7, NULL),
               INVALID_ARGUMENT, "to 0 alone");
  assert_error(pestle_device_memory_set(device, PESTLE_MEMORY_TOTAL, 7, NULL),
               UNSUPPORTED, "total memory");
  assert_code(pestle_device_memory_get(device, (pestle_memory_t)77, &bytes),
              UNSUPPORTED);
  pestle_context_release(context);
}

static uint64_t number(pestle_context_t* context, const char* spec,
                       pestle_memory_t what) {
  pestle_device_t* device;
  uint64_t bytes;
  assert_ok(pestle_context_device(context, spec, &device));
  assert_ok(pestle_device_memory_get(device, what, &bytes));
  return bytes;
}

static void test_gpu_memory(void** state) {
  (void)state;
  pestle_context_t* context = open_with(REGISTRY_FOLDER, false);
  uint64_t bytes;
  assert_int_equal(number(context, "gpua:1", PESTLE_MEMORY_TOTAL), 1016);
  assert_ok(pestle_context_memory_get(context, PESTLE_MEMORY_TOTAL, &bytes));
  assert_int_equal(bytes, 1006 + 1016 + 5006);
  // With two backends a limit for all means nothing, but these do.
  assert_error(pestle_context_memory_set(context, PESTLE_MEMORY_LIMIT, 9, NULL),
               INVALID_ARGUMENT, "there are 2 gpu backends");
  assert_error(pestle_context_memory_set(context, PESTLE_MEMORY_TOTAL, 9, NULL),
               UNSUPPORTED, "total memory (6) that could be set");
  assert_ok(pestle_context_memory_set(context, PESTLE_MEMORY_CACHE, 0, &bytes));
  assert_int_equal(bytes, 1002 + 1012 + 5002);
  assert_ok(pestle_context_memory_set(context, PESTLE_MEMORY_PEAK, 0, NULL));
  static const char* const all[] = {"gpua:0", "gpua:1", "gpub"};
  for (size_t i = 0; i < 3; ++i) {
    assert_int_equal(number(context, all[i], PESTLE_MEMORY_CACHE), 0);
    assert_int_equal(number(context, all[i], PESTLE_MEMORY_PEAK), 0);
  }
  pestle_device_t* device;
  assert_ok(pestle_context_device(context, "gpub", &device));
  assert_ok(pestle_device_memory_set(device, PESTLE_MEMORY_LIMIT, 9, &bytes));
  assert_int_equal(bytes, 5004);
  assert_int_equal(number(context, "gpub", PESTLE_MEMORY_LIMIT), 9);
  pestle_context_release(context);
  // With one, however many devices it has, it is for all of them.
  static const char* const one[] = {"gpua"};
  pestle_backend_filter_t filter = {
      .struct_size = sizeof(filter), .allowed = one, .allowed_count = 1};
  context = open_with(REGISTRY_FOLDER, false);
  assert_ok(pestle_context_load_all(context, &filter));
  assert_ok(
      pestle_context_memory_set(context, PESTLE_MEMORY_CACHE_LIMIT, 8, NULL));
  assert_int_equal(number(context, "gpua:0", PESTLE_MEMORY_CACHE_LIMIT), 8);
  assert_int_equal(number(context, "gpua:1", PESTLE_MEMORY_CACHE_LIMIT), 8);
  pestle_context_release(context);
}

// --- Targets without a device ---

static void expect_alone(pestle_context_t* context, const char* name,
                         const char* why) {
  pestle_device_t *device, *again;
  pestle_buffer_t* buffer;
  pestle_stream_t* stream;
  pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
  uint64_t bytes;
  assert_error(pestle_context_device(context, name, &device), NOT_FOUND, why);
  assert_ok(pestle_context_target(context, name, &device));
  assert_true(pestle_device_is_target(device));
  assert_string_equal(pestle_device_name(device), name);
  assert_ok(pestle_device_caps(device, NULL, &caps));
  assert_null(pestle_device_backend(device)->device);
  assert_int_equal(pestle_device_dl(device).device_type, PESTLE_DEVICE_CUDA);
  // Once; and it is in no list of devices.
  assert_ok(pestle_context_target(context, name, &again));
  assert_ptr_equal(device, again);
  assert_error(pestle_context_device(context, name, &again), NOT_FOUND, why);
  assert_null(pestle_context_backend(context, name));
  assert_int_equal(pestle_context_device_count(context, name), 0);
  assert_int_equal(pestle_device_index(device), -1);
  assert_non_null(strstr(reason_of(context, name), why));
  // It holds nothing and runs nothing.
  assert_error(pestle_buffer_create(device, 8, &buffer), UNAVAILABLE, why);
  assert_error(pestle_stream_create(device, &stream), UNAVAILABLE, why);
  pestle_status_release(
      pestle_device_memory_get(device, PESTLE_MEMORY_TOTAL, &bytes));
  pestle_status_release(
      pestle_device_memory_set(device, PESTLE_MEMORY_CACHE, 0, NULL));
  pestle_device_property_t property = {.struct_size = sizeof(property)};
  assert_code(pestle_device_property(device, 0, &property), NOT_FOUND);
}

static size_t count_in_log(const char* text) {
  size_t count = 0;
  for (const char* at = log_text; (at = strstr(at, text)); ++at)
    ++count;
  return count;
}

static bool take_none(void* user, const pestle_candidate_t* candidate) {
  (void)user, (void)candidate;
  return false;
}

// What the caller does not take compiles nothing either.
static void test_filtered_target(void** state) {
  (void)state;
  pestle_device_t* device;
  pestle_backend_filter_t filter = {.struct_size = sizeof(filter),
                                    .accept = take_none};
  pestle_context_t* context = open_with(ALONE_FOLDER, false);
  assert_ok(pestle_context_load_all(context, &filter));
  assert_non_null(strstr(reason_of(context, "empty"), "filter does not take"));
  assert_error(pestle_context_target(context, "empty", &device), NOT_FOUND,
               "filter does not take");
  assert_null(device);
  pestle_context_release(context);
}

static void test_targets(void** state) {
  (void)state;
  pestle_device_t* device;
  pestle_context_t* context = open_with(ALONE_FOLDER, false);
  expect_alone(context, "alone", "no flux capacitor");
  expect_alone(context, "empty", "found no device");
  assert_int_equal(pestle_context_device_count(context, "gpu"), 1);
  pestle_backend_info_t info = {.struct_size = sizeof(info)};
  for (size_t i = 0; i < pestle_context_backend_count(context); ++i) {
    assert_ok(pestle_context_backend_info(context, i, &info));
    bool expected = !strcmp(info.name, "alone") || !strcmp(info.name, "liar") ||
                    !strcmp(info.name, "empty");
    assert_int_equal(info.is_target, expected);
  }
  // One that has devices is itself; what does not offer it stays unusable; and
  // of what does offer it the tables are judged.
  assert_ok(pestle_context_target(context, "gpuy", &device));
  assert_false(pestle_device_is_target(device));
  assert_ok(pestle_context_target(context, "cpu", &device));
  assert_error(pestle_context_target(context, "needs", &device), NOT_FOUND,
               "no flux capacitor");
  assert_null(device);
  assert_error(pestle_context_target(context, "liar", &device), INCOMPATIBLE,
               "length of pestle_target_api_t differs");
  assert_null(device);
  assert_code(pestle_context_target(context, "alone:0x", &device),
              INVALID_ARGUMENT);
  // A load afterwards judges it anew, and leaves what was started.
  assert_ok(pestle_context_load_all(context, NULL));
  assert_ok(pestle_context_target(context, "alone", &device));
  assert_ok(pestle_device_caps(
      device, NULL, &(pestle_target_caps_t){.struct_size = sizeof(size_t)}));
  pestle_context_release(context);
  assert_int_equal(count_in_log("fake backend alone ends"), 1);
  assert_int_equal(count_in_log("fake backend needs ends"), 0);
}

// --- Ends ---

// What init() gave is ended whether it was taken or not.
static void test_refused_end(void** state) {
  (void)state;
  pestle_context_t* context = open_with(ALONE_FOLDER, false);
  assert_ok(pestle_context_load_backends(context));
  assert_non_null(strstr(reason_of(context, "ends"), "with -1 devices"));
  assert_int_equal(count_in_log("fake backend ends ends"), 1);
  assert_int_equal(count_in_log("fake backend cpux ends"), 0);
  pestle_context_release(context);
  assert_int_equal(count_in_log("fake backend ends ends"), 1);
  assert_int_equal(count_in_log("fake backend cpux ends"), 1);
  assert_int_equal(count_in_log("fake backend gpuy ends"), 1);
}

// A child ends what is of the host's memory alone, and never what a driver of
// the parent's holds; the parent ends its own after the child is gone.
static int end_in_child(pestle_context_t* context) {
  pestle_device_t* device;
  pestle_buffer_t* buffer;
  assert_ok(pestle_context_device(context, "gpuy", &device));
  assert_error(pestle_buffer_create(device, 8, &buffer), UNAVAILABLE, "fork()");
  log_text[0] = 0;
  pestle_context_release(context);
  bool right = count_in_log("fake backend cpux ends") == 1 &&
               count_in_log("fake backend gpuy ends") == 0;
  if (!right) print_error("%s", log_text);
  // A context of the child's own ends all that it started.
  context = open_with(ALONE_FOLDER, false);
  assert_ok(pestle_context_load_backends(context));
  pestle_context_release(context);
  return right && count_in_log("fake backend gpuy ends") == 1 ? 0 : 1;
}

static void test_fork_end(void** state) {
  (void)state;
  pestle_context_t* context = open_with(ALONE_FOLDER, false);
  assert_ok(pestle_context_load_backends(context));
  pid_t child = fork();
  if (!child) _exit(end_in_child(context));
  int end;
  assert_int_equal(waitpid(child, &end, 0), child);
  assert_int_equal(end, 0);
  log_text[0] = 0;
  pestle_context_release(context);
  assert_int_equal(count_in_log("fake backend gpuy ends"), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_all),
      cmocka_unit_test(test_globs),
      cmocka_unit_test(test_named_as_linked_in),
      cmocka_unit_test(test_filters),
      cmocka_unit_test(test_best),
      cmocka_unit_test(test_search_paths),
      cmocka_unit_test(test_log_levels),
      cmocka_unit_test(test_indices),
      cmocka_unit_test(test_put_off),
      cmocka_unit_test(test_late_load),
      cmocka_unit_test(test_properties),
      cmocka_unit_test(test_cpu_memory),
      cmocka_unit_test(test_gpu_memory),
      cmocka_unit_test(test_filtered_target),
      cmocka_unit_test(test_targets),
      cmocka_unit_test(test_refused_end),
      cmocka_unit_test(test_fork_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
