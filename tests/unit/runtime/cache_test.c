// SPDX-License-Identifier: Apache-2.0
// The plan cache: memory, disk, damage, threads, processes.
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/thread.h"
#include "runtime/disk_entry.h"
#include "runtime/plan_cache.h"
#include "unit/runtime/fixture.h"

// --- A folder, contexts on it, a maker that counts ---

static char folder[256];
static atomic_int warnings;

static int make_folder(void** state) {
  (void)state;
  snprintf(folder, sizeof(folder), "/tmp/pestle-cache-test-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void** state) {
  (void)state;
  char command[300];
  snprintf(command, sizeof(command), "rm -rf %s", folder);
  return system(command);
}

static void count_warnings(void* user, pestle_log_level_t level,
                           const char* message) {
  (void)user;
  if (level == PESTLE_LOG_WARN && strstr(message, "not kept on disk")) {
    atomic_fetch_add(&warnings, 1);
  }
}

static pestle_context_t* open_context(void) {
  pestle_context_options_t options = fixture_options();
  options.cache_dir = folder;
  options.log = count_warnings;
  options.log_level = PESTLE_LOG_WARN;
  return fixture_context(&options);
}

typedef struct maker_t {
  pestle_context_t* context;
  atomic_int calls, askers;
  int awaited;  // the first call takes until so many ask
  bool fails, large;
} maker_t;

static pestle_status_t make_plan(void* user, pestle_plan_t** out_plan) {
  maker_t* maker = user;
  bool is_first = atomic_fetch_add(&maker->calls, 1) == 0;
  while (is_first && atomic_load(&maker->askers) < maker->awaited)
    pestle_thread_sleep_ns(10000000);
  if (maker->fails) {
    return pestle_status_annotate(PESTLE_ERROR(UNSUPPORTED, "no such op"),
                                  "in the maker");
  }
  int64_t dims[] = {8};
  plan_writer_t* w = malloc(sizeof(*w));
  fixture_write_add1(w, 1, dims, 0);
  float one = 1;
  static const char many[3968];
  plan_constant(w, &one, sizeof(one));
  if (maker->large) plan_constant(w, many, sizeof(many));
  *out_plan = fixture_plan(maker->context, w);
  free(w);
  return NULL;
}

static pestle_status_t get(maker_t* maker, const char* key,
                           pestle_plan_t** out_plan, const char** out_reason) {
  return pestle_plan_cache_get(maker->context, key, strlen(key), make_plan,
                               maker, out_plan, out_reason);
}

static pestle_cache_stats_t stats_of(pestle_context_t* context) {
  pestle_cache_stats_t stats = {.struct_size = sizeof(stats)};
  assert_ok(pestle_cache_stats(context, &stats));
  return stats;
}

static char* entry_path(const char* key) {
  static pestle_arena_t arena;
  static char path[512];
  pestle_arena_init(pestle_allocator_system(), &arena);
  snprintf(path, sizeof(path), "%s",
           pestle_disk_entry_path(&arena, folder, pestle_str(key)));
  pestle_arena_deinit(&arena);
  return path;
}

static void check_runs(pestle_context_t* context, pestle_plan_t* plan) {
  pestle_executable_t* e;
  assert_ok(pestle_executable_create(context, plan, NULL, &e));
  int64_t dims[] = {8};
  float x[8] = {1, 2, 3};
  pestle_tensor_t in = test_view(x, PESTLE_F32, 1, dims, NULL);
  pestle_tensor_t out = {0};
  assert_ok(pestle_executable_run(e, NULL, &in, 1, &out, 1, NULL));
  assert_true(((float*)out.data)[2] == 4);
  pestle_tensor_release(e, &out);
  pestle_executable_release(e);
}

// --- Tests ---

static void test_memory_and_disk(void** state) {
  (void)state;
  maker_t maker = {.context = open_context()};
  pestle_plan_t *first, *second;
  const char* reason;
  assert_ok(get(&maker, "key", &first, &reason));
  assert_string_equal(reason, "not in the cache");
  assert_ok(get(&maker, "key", &second, &reason));
  assert_string_equal(reason, "hit in memory");
  assert_ptr_equal(first, second);
  assert_int_equal(maker.calls, 1);
  pestle_plan_release(first);
  pestle_plan_release(second);
  pestle_context_release(maker.context);

  struct stat info;
  assert_int_equal(stat(entry_path("key"), &info), 0);
  assert_int_equal(info.st_mode & 0777, 0600);
  // Another process would find it on disk.
  maker.context = open_context();
  assert_ok(get(&maker, "key", &first, &reason));
  assert_string_equal(reason, "hit on disk");
  assert_int_equal(maker.calls, 1);
  check_runs(maker.context, first);
  pestle_cache_stats_t stats = stats_of(maker.context);
  assert_int_equal(stats.disk_hits, 1);
  assert_int_equal(stats.misses, 0);
  assert_int_equal(stats.disk_entries, 1);
  assert_true(stats.disk_bytes > 500);
  // A plan outlives the context's last user.
  pestle_context_release(maker.context);
  size_t size;
  assert_non_null(pestle_plan_data(first, &size));
  pestle_plan_release(first);
}

static void test_lru_is_bounded(void** state) {
  (void)state;
  pestle_context_options_t options = fixture_options();
  options.memory_cache_entries = 3;
  maker_t maker = {.context = fixture_context(&options)};
  char key[16];
  pestle_plan_t* plan;
  const char* reason;
  for (int i = 0; i < 10; ++i) {
    snprintf(key, sizeof(key), "key%d", i);
    assert_ok(get(&maker, key, &plan, NULL));
    pestle_plan_release(plan);
    assert_ok(get(&maker, "key0", &plan, &reason));  // stays in use
    assert_string_equal(reason, "hit in memory");
    pestle_plan_release(plan);
  }
  pestle_cache_stats_t stats = stats_of(maker.context);
  assert_int_equal(stats.memory_entries, 3);
  assert_int_equal(stats.evictions, 7);
  assert_int_equal(maker.calls, 10);
  pestle_context_release(maker.context);
}

static void test_no_cache(void** state) {
  (void)state;
  pestle_context_options_t options = fixture_options();
  options.cache_dir = folder;
  options.no_cache = true;
  maker_t maker = {.context = fixture_context(&options)};
  pestle_plan_t* plan;
  const char* reason;
  for (int i = 0; i < 2; ++i) {
    assert_ok(get(&maker, "key", &plan, &reason));
    assert_string_equal(reason, "the cache is switched off");
    pestle_plan_release(plan);
  }
  assert_int_equal(maker.calls, 2);
  pestle_context_release(maker.context);
}

// Writes |size| bytes in place of the entry, with its right mode.
static void write_file(const char* path, const char* data, size_t size) {
  unlink(path);
  FILE* file = fopen(path, "wb");
  assert_non_null(file);
  fchmod(fileno(file), 0600);
  assert_int_equal(fwrite(data, 1, size, file), size);
  fclose(file);
}

// What is there instead of the entry must be a miss and healed by it.
static void expect_heal(maker_t* maker, const char* key, const char* why) {
  maker->context = open_context();
  int calls = maker->calls;
  pestle_plan_t* plan;
  const char* reason;
  assert_ok(get(maker, key, &plan, &reason));
  if (!strstr(reason, why)) {
    print_error("reason '%s', expected '%s'\n", reason, why);
    fail();
  }
  assert_int_equal(maker->calls, calls + 1);
  assert_int_equal(stats_of(maker->context).healed, 1);
  pestle_plan_release(plan);
  pestle_context_release(maker->context);
}

static void test_damage(void** state) {
  (void)state;
  maker_t maker = {.context = open_context()};
  pestle_plan_t* plan;
  const char* reason;
  assert_ok(get(&maker, "key", &plan, NULL));
  pestle_plan_release(plan);
  pestle_context_release(maker.context);
  char* data;
  size_t size;
  char path[512];
  snprintf(path, sizeof(path), "%s", entry_path("key"));
  assert_ok(pestle_file_read(path, SIZE_MAX, pestle_allocator_system(), &data,
                             &size));
  char* copy = malloc(size + 1);
  // One context: its memory is asked with a new key each time, which lies on
  // disk under the name that the key has.
  maker.context = open_context();
  int tried = 0;
  size_t step = TEST_SANITIZED ? 7 : 1;
  for (size_t cut = 0; cut < size; cut += step, ++tried) {
    write_file(path, data, cut);
    bool damaged;
    assert_ok(pestle_disk_cache_load(maker.context, pestle_str("key"), &plan,
                                     &reason, &damaged));
    assert_null(plan);
    assert_true(damaged);
    assert_false(pestle_file_exists(path));
  }
  for (size_t bit = 0; bit < size * 8; bit += step, ++tried) {
    memcpy(copy, data, size);
    copy[bit / 8] = (char)(copy[bit / 8] ^ (1 << bit % 8));
    write_file(path, copy, size);
    bool damaged;
    assert_ok(pestle_disk_cache_load(maker.context, pestle_str("key"), &plan,
                                     &reason, &damaged));
    assert_null(plan);
    assert_true(damaged);
  }
  assert_true(tried > 1000);
  pestle_context_release(maker.context);

  write_file(path, data, 0);
  expect_heal(&maker, "key", "is empty");
  write_file(path, data, size / 2);
  expect_heal(&maker, "key", "cut off");
  memcpy(copy, data, size);
  copy[size] = 0;
  write_file(path, copy, size + 1);
  expect_heal(&maker, "key", "wrong length");
  copy[size - 1] ^= 1;
  write_file(path, copy, size);
  expect_heal(&maker, "key", "damaged");
  memcpy(copy, "PSTLENT0", 8);
  write_file(path, copy, size);
  expect_heal(&maker, "key", "not an entry");
  // Another key's entry, under this one's name.
  write_file(entry_path("other"), data, size);
  expect_heal(&maker, "other", "another key");
  write_file(path, data, size);
  chmod(path, 0620);
  expect_heal(&maker, "key", "group or others");
  unlink(path);
  assert_int_equal(symlink("/etc/passwd", path), 0);
  expect_heal(&maker, "key", "not a regular file");
  if (geteuid() == 0) {
    assert_int_equal(chown(path, 65534, 65534), 0);
    expect_heal(&maker, "key", "another user");
  }
  // And what healed it is a hit.
  maker.context = open_context();
  int calls = maker.calls;
  assert_ok(get(&maker, "key", &plan, &reason));
  assert_string_equal(reason, "hit on disk");
  assert_int_equal(maker.calls, calls);
  pestle_plan_release(plan);
  pestle_context_release(maker.context);
  free(copy);
  pestle_dealloc(pestle_allocator_system(), data, size + 1);
}

typedef struct asker_t {
  pestle_thread_t thread;
  maker_t* maker;
  pestle_plan_t* plan;
  pestle_status_code_t code;
  bool noted;
} asker_t;

static void ask(void* argument) {
  asker_t* asker = argument;
  atomic_fetch_add(&asker->maker->askers, 1);
  pestle_status_t status = get(asker->maker, "key", &asker->plan, NULL);
  asker->code = pestle_status_code(status);
  const char* note = pestle_status_note(status, 0);
  asker->noted = note && !strcmp(note, "in the maker");
  pestle_status_release(status);
}

static void test_one_compile_a_key(void** state) {
  (void)state;
  enum { COUNT = 32 };
  static asker_t askers[COUNT];
  for (int fails = 0; fails < 2; ++fails) {
    maker_t maker = {
        .context = open_context(), .fails = fails, .awaited = COUNT};
    (void)unlink(entry_path("key"));
    for (int i = 0; i < COUNT; ++i) {
      askers[i] = (asker_t){.maker = &maker};
      assert_ok(pestle_thread_start(ask, &askers[i], "ask", &askers[i].thread));
    }
    for (int i = 0; i < COUNT; ++i)
      pestle_thread_join(&askers[i].thread);
    for (int i = 0; i < COUNT; ++i) {
      assert_int_equal(askers[i].code,
                       fails ? PESTLE_STATUS_UNSUPPORTED : PESTLE_STATUS_OK);
      assert_true(askers[i].noted == fails);
      assert_ptr_equal(askers[i].plan, askers[0].plan);
      pestle_plan_release(askers[i].plan);
    }
    // A thread that came after a failure may have tried again.
    if (!fails) assert_int_equal(maker.calls, 1);
    if (fails) {
      int calls = maker.calls;
      assert_true(calls < COUNT);
      pestle_plan_t* plan;
      maker.fails = false;
      assert_ok(get(&maker, "key", &plan, NULL));
      assert_int_equal(maker.calls, calls + 1);
      pestle_plan_release(plan);
    }
    pestle_context_release(maker.context);
  }
}

// Replaces the entry by an empty file. Not in place: cutting a file that others
// have mapped would kill them, and nothing of ours does that.
static void damage(const char* path, int process) {
  char empty[600];
  snprintf(empty, sizeof(empty), "%s/empty%d", folder, process);
  write_file(empty, "", 0);
  (void)rename(empty, path);
}

static void test_processes(void** state) {
  (void)state;
  enum { COUNT = 16 };
  pid_t children[COUNT];
  for (int i = 0; i < COUNT; ++i) {
    children[i] = fork();
    assert_true(children[i] >= 0);
    if (children[i]) continue;
    int failures = 0;
    for (int round = 0; round < 8; ++round) {
      maker_t maker = {.context = open_context()};
      for (int k = 0; k < 6; ++k) {
        char key[32];
        snprintf(key, sizeof(key), "shared%d", k);
        // Some damage what others write and read.
        if ((i + round + k) % 7 == 0) {
          damage(entry_path(key), i);
        }
        pestle_plan_t* plan = NULL;
        pestle_status_t status = get(&maker, key, &plan, NULL);
        failures += status != NULL;
        if (plan) check_runs(maker.context, plan);
        pestle_plan_release(plan);
        pestle_status_release(status);
      }
      pestle_context_release(maker.context);
    }
    _exit(failures ? 1 : 0);
  }
  for (int i = 0; i < COUNT; ++i) {
    int code;
    assert_int_equal(waitpid(children[i], &code, 0), children[i]);
    assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
  }
  // Whatever is left is sound or gets healed; nothing temporary is left.
  DIR* list = opendir(folder);
  struct dirent* item;
  while ((item = readdir(list)))
    assert_null(strstr(item->d_name, ".tmp-"));
  closedir(list);
}

static void count_entry(void* user, const char* name, const char* model,
                        uint64_t bytes, int64_t used, pestle_status_t status) {
  int* counts = user;
  assert_int_equal(strlen(name), 32);
  assert_true(used > 1600000000);
  ++counts[status ? 1 : 0];
  if (!status) {
    assert_string_equal(model, "add1");
    assert_true(bytes > 500);
  }
}

static void test_visit_and_prune(void** state) {
  (void)state;
  maker_t maker = {.context = open_context()};
  char key[16];
  pestle_plan_t* plan;
  for (int i = 0; i < 6; ++i) {
    snprintf(key, sizeof(key), "key%d", i);
    assert_ok(get(&maker, key, &plan, NULL));
    pestle_plan_release(plan);
    pestle_thread_sleep_ns(5000000);
  }
  write_file(entry_path("bad"), "nonsense", 8);
  int counts[2] = {0, 0};
  assert_ok(pestle_cache_visit(maker.context, true, count_entry, counts));
  assert_int_equal(counts[0], 6);
  assert_int_equal(counts[1], 1);
  uint64_t removed;
  assert_ok(pestle_cache_prune(maker.context, UINT64_MAX, &removed));
  assert_int_equal(removed, 1);
  uint64_t bytes = stats_of(maker.context).disk_bytes;
  // A use keeps the oldest one alive.
  pestle_context_t* other = open_context();
  maker_t user = {.context = other};
  assert_ok(get(&user, "key0", &plan, NULL));
  pestle_plan_release(plan);
  pestle_context_release(other);
  assert_ok(pestle_cache_prune(maker.context, bytes / 3, &removed));
  assert_int_equal(removed, 4);
  assert_true(pestle_file_exists(entry_path("key0")));
  assert_true(pestle_file_exists(entry_path("key5")));
  assert_false(pestle_file_exists(entry_path("key1")));
  assert_ok(pestle_cache_prune(maker.context, 0, &removed));
  assert_int_equal(stats_of(maker.context).disk_entries, 0);
  pestle_context_release(maker.context);
}

// The folder stays under its cap, and what was used last stays in it.
static void test_cap_on_disk(void** state) {
  (void)state;
  maker_t maker = {.context = open_context()};
  pestle_plan_t* plan;
  const char* reason;
  assert_ok(get(&maker, "used", &plan, NULL));
  pestle_plan_release(plan);
  pestle_cache_stats_t stats = {.struct_size = sizeof(stats)};
  assert_ok(pestle_cache_stats(maker.context, &stats));
  uint64_t one = stats.disk_bytes;
  pestle_context_release(maker.context);
  for (int i = 0; i < 12; ++i) {
    // Each time another process's memory, so that the folder is asked.
    pestle_context_options_t options = fixture_options();
    options.cache_dir = folder;
    options.cache_bytes = 4 * one;
    maker.context = fixture_context(&options);
    char key[8];
    snprintf(key, sizeof(key), "key %d", i);
    assert_ok(get(&maker, "used", &plan, &reason));
    assert_string_equal(reason, "hit on disk");
    pestle_plan_release(plan);
    assert_ok(get(&maker, key, &plan, &reason));
    assert_string_equal(reason, "not in the cache");
    pestle_plan_release(plan);
    assert_ok(pestle_cache_stats(maker.context, &stats));
    assert_true(stats.disk_bytes <= options.cache_bytes);
    pestle_context_release(maker.context);
    pestle_thread_sleep_ns(10000000);  // file times tick every 4 ms
  }
  assert_true(stats.disk_entries >= 3);
}

static char info[512];

static void keep_info(void* user, pestle_log_level_t level,
                      const char* message) {
  (void)user;
  if (level == PESTLE_LOG_INFO) snprintf(info, sizeof(info), "%s", message);
}

// One that alone is too large runs and is not kept; the others stay.
static void test_larger_than_the_cap(void** state) {
  (void)state;
  maker_t maker = {.context = open_context()};
  pestle_plan_t* plan;
  const char* reason;
  assert_ok(get(&maker, "a", &plan, NULL));
  pestle_plan_release(plan);
  assert_ok(get(&maker, "b", &plan, NULL));
  pestle_plan_release(plan);
  pestle_cache_stats_t before = stats_of(maker.context);
  assert_int_equal(before.disk_entries, 2);
  pestle_context_release(maker.context);

  pestle_context_options_t options = fixture_options();
  options.cache_dir = folder;
  options.cache_bytes = before.disk_bytes;
  options.log = keep_info;
  maker.context = fixture_context(&options);
  maker.large = true;
  assert_ok(get(&maker, "large", &plan, &reason));
  assert_string_equal(reason,
                      "not in the cache, and larger than all that it may hold");
  assert_non_null(strstr(info, "is not kept: it takes"));
  check_runs(maker.context, plan);
  pestle_plan_release(plan);
  assert_int_equal(stats_of(maker.context).disk_bytes, before.disk_bytes);
  assert_int_equal(stats_of(maker.context).disk_entries, 2);
  pestle_context_release(maker.context);

  // Nor does one of a day when the cache was larger push them out.
  maker.context = open_context();
  assert_ok(get(&maker, "large", &plan, NULL));
  pestle_plan_release(plan);
  assert_int_equal(stats_of(maker.context).disk_entries, 3);
  assert_ok(pestle_cache_prune(maker.context, before.disk_bytes, NULL));
  assert_int_equal(stats_of(maker.context).disk_bytes, before.disk_bytes);
  assert_int_equal(stats_of(maker.context).disk_entries, 2);
  pestle_context_release(maker.context);
}

// A folder that cannot be used costs the cache, one warning, nothing else.
static void test_bad_folder(void** state) {
  (void)state;
  char bad[300];
  snprintf(bad, sizeof(bad), "%s/file", folder);
  write_file(bad, "x", 1);
  static const char* const tails[] = {"/file", "/file/below", "/open"};
  snprintf(bad, sizeof(bad), "%s/open", folder);
  assert_int_equal(mkdir(bad, 0777), 0);
  assert_int_equal(chmod(bad, 0777), 0);
  for (size_t t = 0; t < 3; ++t) {
    snprintf(bad, sizeof(bad), "%s%s", folder, tails[t]);
    pestle_context_options_t options = fixture_options();
    options.cache_dir = bad;
    options.log = count_warnings;
    maker_t maker = {.context = fixture_context(&options)};
    atomic_store(&warnings, 0);
    pestle_plan_t* plan;
    assert_ok(get(&maker, "a", &plan, NULL));
    pestle_plan_release(plan);
    assert_ok(get(&maker, "b", &plan, NULL));
    check_runs(maker.context, plan);
    pestle_plan_release(plan);
    assert_int_equal(atomic_load(&warnings), 1);
    pestle_context_release(maker.context);
  }
}

// A disk without room: files may not grow, as far as a test can have that.
static void test_full_disk(void** state) {
  (void)state;
  pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {100, 100};
    setrlimit(RLIMIT_FSIZE, &limit);
    atomic_store(&warnings, 0);
    maker_t maker = {.context = open_context()};
    pestle_plan_t* plan = NULL;
    pestle_status_t status = get(&maker, "a", &plan, NULL);
    bool good = !status && plan;
    pestle_plan_release(plan);
    status = get(&maker, "b", &plan, NULL);
    good = good && !status && plan && atomic_load(&warnings) == 1;
    pestle_plan_release(plan);
    good = good && stats_of(maker.context).disk_entries == 0;
    pestle_context_release(maker.context);
    _exit(good ? 0 : 1);
  }
  int code;
  assert_int_equal(waitpid(child, &code, 0), child);
  assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
  assert_int_equal(rmdir(folder), 0);  // nothing was left
  assert_int_equal(mkdir(folder, 0700), 0);
}

#define TEST(name) \
  cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_memory_and_disk),
      TEST(test_lru_is_bounded),
      TEST(test_no_cache),
      TEST(test_damage),
      TEST(test_one_compile_a_key),
      TEST(test_processes),
      TEST(test_visit_and_prune),
      TEST(test_bad_folder),
      TEST(test_full_disk),
      TEST(test_cap_on_disk),
      TEST(test_larger_than_the_cap),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
