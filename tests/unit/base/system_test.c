// SPDX-License-Identifier: Apache-2.0
// Threads, files and dynamic libraries.
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/dynlib.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/thread.h"
#include "pestle/version.h"
#include "test.h"

enum { THREADS = 8, ROUNDS = 2000 };

typedef struct shared_t {
  pestle_mutex_t mutex;
  pestle_cond_t cond;
  int counter;
  int started;
  pestle_refcount_t references;
  atomic_int last_releases;
} shared_t;

static void count(void* argument) {
  shared_t* shared = argument;
  pestle_mutex_lock(&shared->mutex);
  ++shared->started;
  pestle_cond_broadcast(&shared->cond);
  while (shared->started < THREADS) {
    pestle_cond_wait(&shared->cond, &shared->mutex);
  }
  pestle_mutex_unlock(&shared->mutex);
  for (int i = 0; i < ROUNDS; ++i) {
    pestle_mutex_lock(&shared->mutex);
    ++shared->counter;
    pestle_mutex_unlock(&shared->mutex);
    pestle_cpu_relax();
  }
  if (pestle_refcount_release(&shared->references)) {
    atomic_fetch_add(&shared->last_releases, 1);
  }
}

static void test_threads(void** state) {
  (void)state;
  shared_t shared = {.counter = 0};
  pestle_mutex_init(&shared.mutex);
  pestle_cond_init(&shared.cond);
  pestle_refcount_init(&shared.references);
  pestle_thread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    if (i) pestle_refcount_retain(&shared.references);
    assert_ok(pestle_thread_start(count, &shared, "a name that is too long",
                                  &threads[i]));
  }
  for (int i = 0; i < THREADS; ++i)
    pestle_thread_join(&threads[i]);
  assert_int_equal(shared.counter, THREADS * ROUNDS);
  assert_int_equal(atomic_load(&shared.last_releases), 1);
  assert_true(pestle_mutex_try_lock(&shared.mutex));
  pestle_mutex_unlock(&shared.mutex);
  pestle_cond_deinit(&shared.cond);
  pestle_mutex_deinit(&shared.mutex);
}

static void test_time_and_processors(void** state) {
  (void)state;
  int64_t start = pestle_clock_ns();
  pestle_thread_sleep_ns(1000 * 1000);
  assert_true(pestle_clock_ns() - start >= 1000 * 1000);
  pestle_thread_yield();
  // After 2020, in nanoseconds.
  assert_true(pestle_wall_clock_ns() > INT64_C(1577836800) * 1000000000);
  assert_true(pestle_cpu_count() >= 1);
  assert_in_range(pestle_core_count(), 1, pestle_cpu_count());
  assert_int_equal(pestle_process_id(), getpid());
  assert_true(pestle_thread_id() > 0);
}

// A folder of its own for each test; removed with what the test left in it.
typedef struct fixture_t {
  pestle_test_allocator_t memory;
  pestle_arena_t arena;
  char folder[64];
} fixture_t;

static int set_up(void** state) {
  fixture_t* fixture = calloc(1, sizeof(*fixture));
  pestle_test_allocator_init(&fixture->memory, 0);
  pestle_arena_init(pestle_test_allocator(&fixture->memory), &fixture->arena);
  strcpy(fixture->folder, "/tmp/pestle-base-XXXXXX");
  if (!mkdtemp(fixture->folder)) return -1;
  *state = fixture;
  return 0;
}

static int tear_down(void** state) {
  fixture_t* fixture = *state;
  pestle_arena_deinit(&fixture->arena);
  size_t live = atomic_load(&fixture->memory.live_bytes);
  char command[128];
  snprintf(command, sizeof(command), "rm -rf '%s'", fixture->folder);
  int result = system(command);
  free(fixture);
  return live || result ? -1 : 0;
}

static const char* in_folder(fixture_t* fixture, const char* name) {
  return pestle_path_join(&fixture->arena, fixture->folder, name);
}

static void check_content(fixture_t* fixture, const char* path,
                          const char* expected) {
  pestle_allocator_t allocator = pestle_test_allocator(&fixture->memory);
  char* data;
  size_t size;
  assert_ok(pestle_file_read(path, 1 << 20, allocator, &data, &size));
  assert_int_equal(size, strlen(expected));
  assert_string_equal(data, expected);
  pestle_dealloc(allocator, data, size + 1);
  pestle_mapping_t mapping;
  assert_ok(pestle_file_map(path, &mapping));
  assert_int_equal(mapping.size, strlen(expected));
  if (mapping.size) assert_memory_equal(mapping.data, expected, mapping.size);
  pestle_file_unmap(&mapping);
}

static size_t count_entries(fixture_t* fixture) {
  const char** names;
  size_t count;
  assert_ok(
      pestle_folder_list(fixture->folder, &fixture->arena, &names, &count));
  return count;
}

static void test_write_and_read(void** state) {
  fixture_t* fixture = *state;
  const char* path = in_folder(fixture, "entry");
  const pestle_str_t parts[] = {PESTLE_STR("head "), PESTLE_STR(""),
                                PESTLE_STR("body")};
  umask(0);
  assert_ok(pestle_file_write_atomic(path, parts, 3));
  check_content(fixture, path, "head body");
  assert_ok(pestle_file_write_atomic(path, parts, 1));
  check_content(fixture, path, "head ");
  assert_ok(pestle_file_write_atomic(path, NULL, 0));
  check_content(fixture, path, "");
  pestle_file_info_t info;
  assert_ok(pestle_file_stat(path, true, &info));
  assert_true(info.is_file && info.is_ours && info.is_private);
  assert_false(info.is_folder || info.is_link);
  // Nothing temporary is left.
  assert_int_equal(count_entries(fixture), 1);

  const char* user_file = in_folder(fixture, "out.npy");
  assert_ok(pestle_file_write(user_file, PESTLE_STR("data")));
  check_content(fixture, user_file, "data");
  assert_ok(pestle_file_stat(user_file, true, &info));
  assert_false(info.is_private);
  assert_true(info.size == 4 && info.modified_ns > 0);
  assert_ok(pestle_file_touch(user_file));
  assert_ok(pestle_file_rename(user_file, path));
  assert_false(pestle_file_exists(user_file));
  assert_true(pestle_file_exists(path));
  assert_ok(pestle_file_remove(path));
  assert_ok(pestle_file_remove(path));
}

// Pages that are given back are there again, and memory that is no mapping's stays.
static void test_forget(void** state) {
  enum { SIZE = 1 << 20, PART = 300000 };
  fixture_t* fixture = *state;
  pestle_allocator_t allocator = pestle_test_allocator(&fixture->memory);
  unsigned char* bytes = pestle_alloc(allocator, SIZE);
  assert_non_null(bytes);
  for (size_t i = 0; i < SIZE; ++i)
    bytes[i] = (unsigned char)(i * 2654435761u >> 24);
  const char* path = in_folder(fixture, "large");
  assert_ok(pestle_file_write(path, pestle_str_make((char*)bytes, SIZE)));
  pestle_mapping_t mapping, none = {0};
  assert_ok(pestle_file_map(path, &mapping));
  const char* data = mapping.data;
  for (size_t at = 0; at + PART <= SIZE; at += PART / 3) {
    assert_memory_equal(data, bytes, SIZE);
    pestle_file_forget_part(&mapping, data + at, PART);
  }
  assert_memory_equal(data, bytes, SIZE);
  pestle_file_forget_part(&mapping, data + 1, SIZE);  // more than there is
  pestle_file_forget_part(&mapping, data, 0);
  pestle_file_forget_part(&mapping, bytes, SIZE);
  pestle_file_forget_part(&none, bytes, SIZE);
  pestle_file_forget(&mapping);
  assert_memory_equal(data, bytes, SIZE);
  pestle_file_unmap(&mapping);
  assert_ok(pestle_file_remove(path));
  pestle_dealloc(allocator, bytes, SIZE);
}

static void test_file_errors(void** state) {
  fixture_t* fixture = *state;
  pestle_allocator_t allocator = pestle_test_allocator(&fixture->memory);
  const char* missing = in_folder(fixture, "missing");
  char* data;
  size_t size;
  pestle_mapping_t mapping;
  pestle_file_info_t info;
  assert_error(pestle_file_read(missing, 10, allocator, &data, &size),
               NOT_FOUND, missing);
  assert_error(pestle_file_map(missing, &mapping), NOT_FOUND, "No such file");
  assert_code(pestle_file_stat(missing, true, &info), NOT_FOUND);
  assert_code(pestle_file_touch(missing), NOT_FOUND);
  assert_error(pestle_file_read(fixture->folder, 10, allocator, &data, &size),
               INVALID_ARGUMENT, "it is a folder");
  assert_error(pestle_file_map(fixture->folder, &mapping), INVALID_ARGUMENT,
               "it is a folder");
  assert_error(pestle_file_map("/dev/null", &mapping), INVALID_ARGUMENT,
               "it is a device");
  const pestle_str_t text = PESTLE_STR("12345678901");
  const char* deep = in_folder(fixture, "missing/deep");
  assert_error(pestle_file_write_atomic(deep, &text, 1), IO,
               "choose a folder that exists");
  // A folder stands where the file should go: the temporary file is removed.
  const char* folder = in_folder(fixture, "folder");
  assert_ok(pestle_folder_make(folder));
  assert_code(pestle_file_write_atomic(folder, &text, 1), IO);
  assert_int_equal(count_entries(fixture), 1);
  // An empty one makes room in a cache, no other.
  const char* inner = in_folder(fixture, "folder/inner");
  assert_ok(pestle_folder_make(inner));
  assert_code(pestle_file_write_cached(folder, &text, 1), IO);
  assert_ok(pestle_folder_remove(inner));
  assert_ok(pestle_file_write_cached(folder, &text, 1));
  assert_ok(pestle_file_remove(folder));
  assert_ok(pestle_folder_make(folder));
  assert_ok(pestle_folder_remove(folder));
  assert_ok(pestle_folder_remove(folder));

  const char* path = in_folder(fixture, "f");
  assert_ok(pestle_file_write(path, text));
  assert_code(pestle_file_read(path, 10, allocator, &data, &size),
              RESOURCE_EXHAUSTED);
  assert_ok(pestle_file_read(path, 11, allocator, &data, &size));
  pestle_dealloc(allocator, data, size + 1);
  if (pestle_file_exists("/dev/full")) {
    assert_code(pestle_file_write("/dev/full", text), RESOURCE_EXHAUSTED);
  }
}

static void test_read_without_memory(void** state) {
  fixture_t* fixture = *state;
  const char* path = in_folder(fixture, "f");
  assert_ok(pestle_file_write(path, PESTLE_STR("12345678901")));
  for (size_t k = 1;; ++k) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, k);
    char* data;
    size_t size;
    pestle_status_t status = pestle_file_read(
        path, 1000, pestle_test_allocator(&memory), &data, &size);
    bool failed = pestle_test_allocator_failed(&memory);
    if (failed) {
      assert_code(status, OUT_OF_MEMORY);
    } else {
      assert_ok(status);
      pestle_dealloc(pestle_test_allocator(&memory), data, size + 1);
    }
    pestle_test_allocator_check(&memory);
    if (!failed) break;
  }
}

static void test_folders(void** state) {
  fixture_t* fixture = *state;
  const char* deep = in_folder(fixture, "a/b//c/");
  assert_ok(pestle_folder_make(deep));
  assert_ok(pestle_folder_make(deep));
  pestle_file_info_t info;
  assert_ok(pestle_file_stat(in_folder(fixture, "a/b"), true, &info));
  assert_true(info.is_folder && info.is_private);
  assert_ok(pestle_file_write(in_folder(fixture, "z"), PESTLE_STR("")));
  assert_ok(pestle_file_write(in_folder(fixture, "B"), PESTLE_STR("")));
  assert_code(pestle_folder_make(in_folder(fixture, "z")), IO);
  assert_code(pestle_folder_make(in_folder(fixture, "z/y")), IO);
  assert_code(pestle_folder_make(""), INVALID_ARGUMENT);
  const char** names;
  size_t count;
  assert_ok(
      pestle_folder_list(fixture->folder, &fixture->arena, &names, &count));
  assert_int_equal(count, 3);
  assert_string_equal(names[0], "B");
  assert_string_equal(names[1], "a");
  assert_string_equal(names[2], "z");
  assert_ok(pestle_folder_list(in_folder(fixture, "a/b/c"), &fixture->arena,
                               &names, &count));
  assert_int_equal(count, 0);
  assert_code(pestle_folder_list(in_folder(fixture, "no"), &fixture->arena,
                                 &names, &count),
              NOT_FOUND);
}

static void test_paths(void** state) {
  fixture_t* fixture = *state;
  pestle_arena_t* arena = &fixture->arena;
  assert_string_equal(pestle_path_join(arena, "a", "b"), "a/b");
  assert_string_equal(pestle_path_join(arena, "a/", "b"), "a/b");
  assert_string_equal(pestle_path_join(arena, "", "b"), "b");
  assert_string_equal(pestle_path_join(arena, "a", "/b"), "/b");
  assert_true(pestle_str_equal_c(pestle_path_folder("a/b.c"), "a"));
  assert_true(pestle_str_equal_c(pestle_path_folder("b.c"), "."));
  assert_true(pestle_str_equal_c(pestle_path_folder("/b"), "/"));
  assert_true(pestle_str_equal_c(pestle_path_name("a/b.c"), "b.c"));
  assert_true(pestle_str_equal_c(pestle_path_name("b.c"), "b.c"));
}

static void test_resolve_inside(void** state) {
  fixture_t* fixture = *state;
  pestle_arena_t* arena = &fixture->arena;
  const char* models = in_folder(fixture, "models");
  assert_ok(pestle_folder_make(in_folder(fixture, "models/data")));
  assert_ok(pestle_folder_make(in_folder(fixture, "models-other")));
  assert_ok(
      pestle_file_write(in_folder(fixture, "models/data/w"), PESTLE_STR("1")));
  assert_ok(
      pestle_file_write(in_folder(fixture, "models-other/w"), PESTLE_STR("2")));
  assert_ok(pestle_file_write(in_folder(fixture, "secret"), PESTLE_STR("3")));
  assert_int_equal(symlink("../secret", in_folder(fixture, "models/out")), 0);
  assert_int_equal(symlink("../models-other", in_folder(fixture, "models/up")),
                   0);
  assert_int_equal(symlink("data/w", in_folder(fixture, "models/in")), 0);
  const char* path;
  assert_ok(pestle_path_resolve_inside(models, "data/w", arena, &path));
  check_content(fixture, path, "1");
  assert_ok(pestle_path_resolve_inside(models, "in", arena, &path));
  check_content(fixture, path, "1");
  assert_ok(pestle_path_resolve_inside(models, "./data/../in", arena, &path));
  const char* bad[] = {"",   "/etc/passwd", "../secret", "data/../../secret",
                       "..", "out",         "up/w"};
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
    assert_code(pestle_path_resolve_inside(models, bad[i], arena, &path),
                INVALID_ARGUMENT);
    assert_null(path);
  }
  assert_code(pestle_path_resolve_inside(models, "none", arena, &path),
              NOT_FOUND);
}

static void test_locks(void** state) {
  fixture_t* fixture = *state;
  const char* path = in_folder(fixture, "lock");
  pestle_file_lock_t lock, other;
  assert_ok(pestle_file_lock(path, true, &lock));
  assert_code(pestle_file_lock(path, false, &other), UNAVAILABLE);
  pestle_file_unlock(&other);
  pestle_file_unlock(&lock);
  assert_ok(pestle_file_lock(path, false, &other));
  pestle_file_unlock(&other);
}

// Readers must see one of the two contents, never a mixture or nothing.
static void test_atomic_between_processes(void** state) {
  fixture_t* fixture = *state;
  const char* path = in_folder(fixture, "shared");
  static char text[2][70000];
  memset(text[0], 'a', sizeof(text[0]));
  memset(text[1], 'b', sizeof(text[1]));
  const pestle_str_t first = pestle_str_make(text[0], sizeof(text[0]));
  assert_ok(pestle_file_write_atomic(path, &first, 1));
  pid_t children[2];
  for (int c = 0; c < 2; ++c) {
    children[c] = fork();
    if (children[c]) continue;
    const pestle_str_t data = pestle_str_make(text[c], sizeof(text[c]));
    int failures = 0;
    for (int i = 0; i < 30; ++i) {
      pestle_status_t status = pestle_file_write_atomic(path, &data, 1);
      if (status) ++failures;
      pestle_status_release(status);
    }
    _exit(failures);
  }
  for (int i = 0; i < 200; ++i) {
    pestle_mapping_t mapping;
    assert_ok(pestle_file_map(path, &mapping));
    assert_int_equal(mapping.size, sizeof(text[0]));
    const char* data = mapping.data;
    assert_memory_equal(data, text[data[0] == 'b'], sizeof(text[0]));
    pestle_file_unmap(&mapping);
  }
  for (int c = 0; c < 2; ++c) {
    int result = -1;
    waitpid(children[c], &result, 0);
    assert_int_equal(result, 0);
  }
  assert_int_equal(count_entries(fixture), 1);
}

static void test_dynlib(void** state) {
  fixture_t* fixture = *state;
  pestle_dynlib_t library;
  assert_ok(pestle_dynlib_open("libm.so.6", &library));
  pestle_dynlib_fn_t function = pestle_dynlib_function(library, "floor");
  assert_non_null(function);
  assert_true(((double (*)(double))function)(2.5) == 2.0);
  assert_null(pestle_dynlib_function(library, "no_such_function"));
  assert_null(pestle_dynlib_data(library, "no_such_data"));
  const char* path;
  assert_ok(pestle_dynlib_path_of(function, &fixture->arena, &path));
  assert_int_equal(path[0], '/');
  assert_non_null(strstr(path, "libm"));

  const char* damaged = in_folder(fixture, "libdamaged.so");
  assert_ok(pestle_file_write(damaged, PESTLE_STR("not a library")));
  assert_error(pestle_dynlib_open(damaged, &library), UNAVAILABLE, damaged);
  assert_null(library);
}

static void test_version(void** state) {
  (void)state;
  assert_string_equal(pestle_version(), PESTLE_VERSION_STRING);
  assert_int_equal(strlen(pestle_build_id()), 32);
  char first_half[17];
  snprintf(first_half, sizeof(first_half), "%016llx",
           (unsigned long long)pestle_build_id_u64());
  assert_memory_equal(pestle_build_id(), first_half, 16);
}

#define with_folder(test) \
  cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_time_and_processors),
      with_folder(test_write_and_read),
      with_folder(test_forget),
      with_folder(test_file_errors),
      with_folder(test_read_without_memory),
      with_folder(test_folders),
      with_folder(test_paths),
      with_folder(test_resolve_inside),
      with_folder(test_locks),
      with_folder(test_atomic_between_processes),
      with_folder(test_dynlib),
      cmocka_unit_test(test_version),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
