// SPDX-License-Identifier: Apache-2.0
// What is stored, in a set of plans and in the cache folder: each request for memory
// fails, each word of a set is another one, and the folder has what no Pestle wrote.
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "pestle/plan_set.h"
#include "runtime/constant.h"
#include "runtime/disk_entry.h"
#include "runtime/plan_cache.h"
#include "unit/runtime/fixture.h"

enum { COUNT = 4096, BYTES = COUNT * 4 };

static char folder[64], path[96];

static int make_folder(void** state) {
  (void)state;
  snprintf(folder, sizeof(folder), "/tmp/pestle-store-test-XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof(path), "%s/a.plans", folder);
  return 0;
}

static int remove_folder(void** state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof(command), "rm -rf %s", folder);
  return system(command);
}

// --- Plans that add a constant of their context ---

static void pack(void* user, void* target, size_t size) {
  for (size_t i = 0; i < size / 4; ++i)
    ((float*)target)[i] = (float)i + *(const float*)user;
}

// One that has the |number|-th constant.
static pestle_status_t make_plan_of(pestle_context_t* context, uint64_t number,
                                    pestle_plan_t** out_plan) {
  float begin = 1 + (float)number;
  uint64_t key[2] = {7, 7 + number}, hash[2];
  pestle_constant_t* constant;
  PESTLE_TRY(pestle_constant_get(context, key, BYTES, pack, &begin, &constant));
  (void)pestle_constant_data(constant, hash);
  plan_writer_t* w = malloc(sizeof(*w));
  int64_t elements = 8;
  plan_begin(w, "add");
  plan_device(w, "test", "");
  plan_input(w, "x", PESTLE_F32, 1, &elements);
  plan_output(w, "y", PESTLE_F32, 1, &elements);
  uint32_t kernel = fixture_kernel(w, "add", TEST_ADD, 3, elements, 0);
  uint32_t first = plan_bind(w, PESTLE_PLAN_INPUT, 0, 0, 32);
  plan_bind(w, PESTLE_PLAN_CONSTANT, plan_external(w, hash, BYTES), 0, 32);
  plan_bind(w, PESTLE_PLAN_OUTPUT, 0, 0, 32);
  plan_launch(w, kernel, first);
  plan_step(w, PESTLE_PLAN_END, 0, 0, 0, 0);
  size_t size;
  void* data = plan_finish(w, &size);
  free(w);
  pestle_status_t status =
      pestle_plan_create(context, data, size, free, data, out_plan);
  if (status) free(data);
  pestle_constant_release(constant);
  return status;
}

static pestle_status_t make_plan(void* user, pestle_plan_t** out_plan) {
  return make_plan_of(user, 0, out_plan);
}

static void check_runs(pestle_context_t* context, pestle_plan_t* plan) {
  pestle_executable_t* e;
  assert_ok(pestle_executable_create(context, plan, NULL, &e));
  int64_t dims[] = {8};
  float x[8] = {0};
  pestle_tensor_t in = test_view(x, PESTLE_F32, 1, dims, NULL), out = {0};
  assert_ok(pestle_executable_run(e, NULL, &in, 1, &out, 1, NULL));
  assert_true(((float*)out.data)[7] == 8);
  pestle_tensor_release(e, &out);
  pestle_executable_release(e);
}

// --- Sets of plans ---

static pestle_status_t save_set(pestle_context_t* context, void* user) {
  (void)user;
  pestle_plan_t* plans[2] = {NULL, NULL};
  pestle_status_t status = make_plan(context, &plans[0]);
  if (!status) status = make_plan(context, &plans[1]);
  if (!status) status = pestle_plan_set_save(plans, 2, path);
  pestle_plan_release(plans[0]);
  pestle_plan_release(plans[1]);
  return status;
}

// The bytes of a sound set, to be freed.
static char* make_set(size_t* out_size) {
  pestle_context_t* context = fixture_context(NULL);
  assert_ok(save_set(context, NULL));
  pestle_context_release(context);
  char* data;
  assert_ok(pestle_file_read(path, SIZE_MAX / 2, pestle_allocator_system(),
                             &data, out_size));
  return data;
}

// Whether the file loads; what does, runs.
static bool loads(pestle_context_t* context, const char* data, size_t size) {
  assert_ok(pestle_file_write(path, pestle_str_make(data, size)));
  pestle_plan_set_t* set;
  pestle_status_t status = pestle_plan_set_load(context, path, &set);
  if (status) {
    assert_null(set);
    pestle_status_code_t code = pestle_status_code(status);
    assert_true(code == PESTLE_STATUS_MALFORMED ||
                code == PESTLE_STATUS_INCOMPATIBLE);
    pestle_status_release(status);
    return false;
  }
  for (size_t i = 0; i < pestle_plan_set_count(set); ++i)
    check_runs(context, pestle_plan_set_plan(set, i));
  assert_null(pestle_plan_set_plan(set, pestle_plan_set_count(set)));
  pestle_plan_set_release(set);
  return true;
}

static size_t front_size(const pestle_plan_set_header_t* h) {
  return 64 + 64 +
         ((h->constant_count * sizeof(pestle_plan_set_constant_t) + 63) &
          ~(size_t)63);
}

static void test_set_is_damaged(void** state) {
  (void)state;
  size_t size;
  char* sound = make_set(&size);
  char* data = malloc(size);
  pestle_context_t* context = fixture_context(NULL);
  assert_true(loads(context, sound, size));
  pestle_plan_set_header_t* h = (void*)data;
  memcpy(data, sound, size);
  size_t front = front_size(h);
  assert_int_equal(h->constant_count, 1);
  for (size_t at = 0; at < front; at += 4) {
    for (int how = 0; how < 12; ++how) {
      memcpy(data, sound, size);
      uint32_t word;
      memcpy(&word, data + at, sizeof(word));
      uint32_t others[] = {0,         word + 1, ~word, word ^ 0x80000000,
                           word + 64, word - 64};
      memcpy(data + at, &others[how / 2], sizeof(word));
      // With its checksum made right again, and without.
      if (how % 2 && at != offsetof(pestle_plan_set_header_t, checksum) &&
          at != offsetof(pestle_plan_set_header_t, checksum) + 4) {
        h->checksum = pestle_hash64(data + 32, front - 32);
      }
      if (!memcmp(data, sound, size)) continue;
      // What is sealed again may say another key of a constant, or have other padding.
      bool is_read = loads(context, data, size);
      assert_false(is_read && how % 2 == 0);
    }
  }
  for (size_t cut = 0; cut < size; cut += cut < front ? 4 : 997)
    assert_false(loads(context, sound, cut));
  memcpy(data, sound, size);
  data[size - 1] ^= 1;  // of the constant
  assert_false(loads(context, data, size));
  pestle_context_release(context);
  free(data);
  free(sound);
}

static pestle_status_t load_set(pestle_context_t* context, void* user) {
  (void)user;
  pestle_plan_set_t* set;
  PESTLE_TRY(pestle_plan_set_load(context, path, &set));
  pestle_plan_set_release(set);
  return NULL;
}

// A constant that no plan of a set has is not held by the set.
static void test_set_lets_go(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  pestle_plan_t* plans[2];
  for (uint64_t i = 0; i < 2; ++i)
    assert_ok(make_plan_of(context, i, &plans[i]));
  assert_ok(pestle_plan_set_save(plans, 2, path));
  pestle_plan_release(plans[0]);
  pestle_plan_release(plans[1]);
  char* data;
  size_t size;
  assert_ok(pestle_file_read(path, SIZE_MAX / 2, pestle_allocator_system(),
                             &data, &size));
  pestle_plan_set_header_t* h = (void*)data;
  assert_int_equal(h->constant_count, 2);
  for (uint64_t count = 2; count; --count) {
    h->plan_count = count;
    h->checksum = pestle_hash64(data + 32, front_size(h) - 32);
    assert_ok(pestle_file_write(path, pestle_str_make(data, size)));
    pestle_plan_set_t* set;
    pestle_cache_stats_t stats = {.struct_size = sizeof(stats)};
    assert_ok(pestle_plan_set_load(context, path, &set));
    check_runs(context, pestle_plan_set_plan(set, 0));
    assert_ok(pestle_cache_stats(context, &stats));
    assert_int_equal(stats.memory_constants, count);
    pestle_plan_set_release(set);
  }
  assert_null(pestle_plan_set_plan(NULL, 0));
  assert_int_equal(pestle_plan_set_count(NULL), 0);
  // Tables that begin in the file and end behind it.
  h->plan_count = 4096;
  h->size = 32768;
  assert_true(h->size < size);
  assert_false(loads(context, data, h->size));
  free(data);
  pestle_context_release(context);
}

static void test_set_without_memory(void** state) {
  (void)state;
  fixture_fail_each("", false, 8, save_set, NULL);
  fixture_fail_each("", false, 8, load_set, NULL);
}

// --- The cache ---

static pestle_status_t get(pestle_context_t* context, const char* key,
                           const char** out_reason) {
  pestle_plan_t* plan;
  PESTLE_TRY(pestle_plan_cache_get(context, key, strlen(key), make_plan,
                                   context, &plan, out_reason));
  pestle_plan_release(plan);
  return NULL;
}

static pestle_status_t store(pestle_context_t* context, void* user) {
  (void)user;
  PESTLE_TRY(pestle_cache_prune(context, 0, NULL));
  PESTLE_TRY(get(context, "a", NULL));
  PESTLE_TRY(get(context, "a", NULL));
  return get(context, "b", NULL);
}

static pestle_status_t find(pestle_context_t* context, void* user) {
  (void)user;
  pestle_plan_t* plan;
  PESTLE_TRY(pestle_plan_cache_find(context, "a", 1, &plan));
  pestle_plan_release(plan);
  PESTLE_TRY(pestle_plan_cache_find(context, "nothing", 7, &plan));
  assert_null(plan);
  return get(context, "b", NULL);
}

static void count_entry(void* user, const char* name, const char* model,
                        uint64_t bytes, int64_t used, pestle_status_t status) {
  (void)name, (void)model, (void)bytes, (void)used;
  ++((int*)user)[status != NULL];
}

static void count_key(void* user, const void* key, size_t key_size) {
  (void)key;
  *(size_t*)user += key_size;
}

static pestle_status_t look(pestle_context_t* context, void* user) {
  (void)user;
  int counts[2] = {0, 0};
  size_t keys = 0;
  pestle_cache_stats_t stats = {.struct_size = sizeof(stats)};
  PESTLE_TRY(pestle_cache_visit(context, true, count_entry, counts));
  PESTLE_TRY(pestle_cache_visit_keys(context, count_key, &keys));
  PESTLE_TRY(pestle_cache_stats(context, &stats));
  return pestle_cache_prune(context, UINT64_MAX, NULL);
}

static pestle_status_t cut(pestle_context_t* context, void* user) {
  (void)user;
  PESTLE_TRY(get(context, "a", NULL));
  PESTLE_TRY(get(context, "b", NULL));
  return pestle_cache_prune(context, BYTES + 2000, NULL);
}

static void test_cache_without_memory(void** state) {
  (void)state;
  fixture_fail_each(folder, false, 10, store, NULL);
  fixture_fail_each(folder, false, 3, find, NULL);
  fixture_fail_each(folder, false, 10, look, NULL);
  fixture_fail_each(folder, false, 5, cut, NULL);
}

static int warnings, not_kept;

static void count_warning(void* user, pestle_log_level_t level,
                          const char* message) {
  (void)user;
  warnings += level <= PESTLE_LOG_WARN && strstr(message, "plan cache");
  not_kept += level <= PESTLE_LOG_WARN && strstr(message, "not kept on disk");
}

static pestle_context_t* open_context(void) {
  pestle_context_options_t options = fixture_options();
  options.cache_dir = folder;
  options.log = count_warning;
  return fixture_context(&options);
}

// What is found without being made: in memory, on disk, nowhere.
static void test_find(void** state) {
  (void)state;
  pestle_plan_t* plan;
  warnings = 0;
  pestle_context_t* context = open_context();
  assert_ok(pestle_plan_cache_find(context, "a", 1, &plan));
  assert_null(plan);
  assert_ok(get(context, "a", NULL));
  assert_ok(pestle_plan_cache_find(context, "a", 1, &plan));
  assert_non_null(plan);
  pestle_plan_release(plan);
  pestle_cache_stats_t stats = {.struct_size = sizeof(stats)};
  assert_ok(pestle_cache_stats(context, &stats));
  assert_int_equal(stats.memory_hits, 1);
  pestle_context_release(context);
  context = open_context();
  assert_ok(pestle_plan_cache_find(context, "a", 1, &plan));
  assert_non_null(plan);
  check_runs(context, plan);
  pestle_plan_release(plan);
  assert_ok(pestle_cache_stats(context, &stats));
  assert_int_equal(stats.disk_hits, 1);
  assert_int_equal(warnings, 0);
  pestle_context_release(context);
  // Of a call that is wrong, no pointer is left.
  context = open_context();
  plan = (pestle_plan_t*)(void*)&stats;
  assert_error(pestle_plan_cache_get(context, "a", 1, NULL, NULL, &plan, NULL),
               INVALID_ARGUMENT, "makes the plan");
  assert_null(plan);
  plan = (pestle_plan_t*)(void*)&stats;
  assert_error(pestle_plan_cache_find(context, NULL, 1, &plan),
               INVALID_ARGUMENT, "a key");
  assert_null(plan);
  pestle_context_release(context);
  // Without a folder, and without a cache at all.
  context = fixture_context(NULL);
  assert_ok(pestle_plan_cache_find(context, "a", 1, &plan));
  assert_null(plan);
  pestle_context_release(context);
  pestle_context_options_t options = fixture_options();
  options.cache_dir = folder;
  options.no_cache = true;
  context = fixture_context(&options);
  assert_ok(pestle_plan_cache_find(context, "a", 1, &plan));
  assert_null(plan);
  pestle_context_release(context);
}

#define HASH "0123456789abcdef0123456789abcdef"

static void put(const char* name, int64_t seconds_ago) {
  char file[160];
  snprintf(file, sizeof(file), "%s/%s", folder, name);
  assert_ok(pestle_file_write(file, pestle_str("nothing")));
  assert_int_equal(chmod(file, 0600), 0);
  struct timespec times[2] = {{.tv_sec = time(NULL) - seconds_ago},
                              {.tv_sec = time(NULL) - seconds_ago}};
  assert_int_equal(utimensat(AT_FDCWD, file, times, 0), 0);
}

// A key may be empty; an entry that is damaged has none to show.
static void test_keys(void** state) {
  (void)state;
  pestle_plan_t* plan;
  size_t keys = 0;
  pestle_context_t* context = open_context();
  assert_ok(get(context, "", NULL));
  assert_ok(pestle_plan_cache_find(context, NULL, 0, &plan));
  assert_non_null(plan);
  pestle_plan_release(plan);
  assert_ok(get(context, "abc", NULL));
  put(HASH, 0);
  assert_ok(pestle_cache_visit_keys(context, count_key, &keys));
  assert_int_equal(keys, 3);
  assert_error(pestle_cache_visit_keys(NULL, count_key, &keys),
               INVALID_ARGUMENT, "a context");
  assert_error(pestle_cache_visit_keys(context, NULL, &keys), INVALID_ARGUMENT,
               "a function to call");
  assert_error(pestle_cache_visit(context, true, NULL, &keys), INVALID_ARGUMENT,
               "a function to call");
  assert_error(pestle_cache_stats(context, NULL), INVALID_ARGUMENT,
               "a place for the counts");
  assert_error(pestle_cache_prune(NULL, 0, NULL), INVALID_ARGUMENT,
               "a context");
  pestle_context_release(context);
}

static pestle_status_t make_nothing(void* user, pestle_plan_t** out_plan) {
  (void)user;
  *out_plan = NULL;
  return NULL;
}

// Whoever asks for what is being made does not wait for it.
static pestle_status_t make_and_find(void* user, pestle_plan_t** out_plan) {
  pestle_plan_t* found;
  PESTLE_TRY(pestle_plan_cache_find(user, "a", 1, &found));
  assert_null(found);
  return make_plan(user, out_plan);
}

static void test_makers(void** state) {
  (void)state;
  pestle_plan_t* plan;
  pestle_context_t* context = open_context();
  assert_error(
      pestle_plan_cache_get(context, "a", 1, make_nothing, NULL, &plan, NULL),
      INTERNAL, "gave neither a plan nor a failure");
  assert_ok(pestle_plan_cache_get(context, "a", 1, make_and_find, context,
                                  &plan, NULL));
  pestle_cache_stats_t stats = {.struct_size = sizeof(stats)};
  assert_ok(pestle_cache_stats(context, &stats));
  assert_int_equal(stats.memory_hits, 0);
  pestle_plan_release(plan);
  pestle_context_release(context);
}

// An empty folder where the entry should be does not keep it out.
static void test_folder_in_place(void** state) {
  (void)state;
  pestle_arena_t arena;
  pestle_arena_init(pestle_allocator_system(), &arena);
  const char* entry = pestle_disk_entry_path(&arena, folder, pestle_str("a"));
  for (int turn = 0; turn < 2; ++turn) {
    pestle_context_t* context = open_context();
    const char* reason;
    assert_ok(get(context, "a", &reason));
    if (turn) assert_string_equal(reason, "hit on disk");
    pestle_context_release(context);
    if (turn) break;
    assert_int_equal(unlink(entry), 0);
    assert_int_equal(mkdir(entry, 0700), 0);
    context = open_context();
    assert_ok(get(context, "a", NULL));
    pestle_context_release(context);
  }
  pestle_arena_deinit(&arena);
}

static bool is_there(const char* name) {
  char file[160];
  snprintf(file, sizeof(file), "%s/%s", folder, name);
  return pestle_file_exists(file);
}

// Files of the folder that this process has mapped.
static int mapped(void) {
  char line[512];
  int count = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof(line), maps))
    count += strstr(line, folder) != NULL;
  if (maps) fclose(maps);
  return count;
}

// Other files stay; what writers that died left goes after an hour.
static void test_other_files(void** state) {
  (void)state;
  pestle_context_t* context = open_context();
  assert_ok(get(context, "a", NULL));
  put("notes.txt", 0);
  put(HASH "0", 0);
  put("x-" HASH, 0);
  put(HASH ".tmp-1-1", 100);
  put("c-" HASH ".tmp-1-2", 7200);
  put("c-" HASH, 7200);
  put("t-" HASH, 100);
  put("t-fedcba9876543210fedcba9876543210", (int64_t)91 * 24 * 3600);
  char name[160];
  snprintf(name, sizeof(name), "%s/" HASH, folder);
  assert_int_equal(mkdir(name, 0700), 0);  // empty, and named as an entry
  snprintf(name, sizeof(name), "%s/f" HASH, folder);
  name[strlen(name) - 1] = 0;
  assert_int_equal(mkdir(name, 0700),
                   0);  // another, in which somebody has a file
  strcat(name, "/own");
  assert_ok(pestle_file_write(name, pestle_str("mine")));
  uint64_t removed;
  assert_ok(pestle_cache_prune(context, 1 << 20, &removed));
  assert_true(is_there("notes.txt") && is_there(HASH "0") &&
              is_there("x-" HASH) && is_there(HASH ".tmp-1-1") &&
              is_there("t-" HASH));
  assert_false(is_there(HASH));
  assert_true(pestle_file_exists(name));
  assert_false(is_there("c-" HASH ".tmp-1-2"));
  assert_false(is_there("c-" HASH));
  assert_false(is_there("t-fedcba9876543210fedcba9876543210"));
  pestle_cache_stats_t stats = {.struct_size = sizeof(stats)};
  assert_ok(pestle_cache_stats(context, &stats));
  assert_int_equal(stats.disk_constants, 1);
  stats.struct_size = 3;
  assert_error(pestle_cache_stats(context, &stats), INVALID_ARGUMENT,
               "struct_size");
  stats.struct_size = 2 * sizeof(size_t);
  stats.disk_bytes = 12345;  // beyond what an older caller knows of
  assert_ok(pestle_cache_stats(context, &stats));
  assert_int_equal(stats.disk_bytes, 12345);
  // A young constant may be of a plan that is being made: it counts for nothing.
  uint64_t bytes;
  stats.struct_size = sizeof(stats);
  assert_ok(pestle_cache_stats(context, &stats));
  bytes = stats.disk_bytes;
  assert_ok(pestle_cache_prune(context, 0, &removed));
  assert_false(is_there("t-" HASH));
  assert_true(is_there("notes.txt"));
  pestle_context_release(context);
  put("c-" HASH, 0);
  pestle_context_options_t options = fixture_options();
  options.cache_dir = folder;
  options.cache_bytes = bytes;
  context = fixture_context(&options);
  assert_ok(get(context, "a", NULL));
  assert_ok(pestle_cache_stats(context, &stats));
  assert_int_equal(stats.disk_entries, 1);
  assert_true(is_there("c-" HASH));
  pestle_context_release(context);
  // An old one goes when the cache is full.
  put("c-" HASH, 7200);
  options.cache_bytes = bytes;
  context = fixture_context(&options);
  assert_ok(get(context, "b", NULL));
  assert_false(is_there("c-" HASH));
  pestle_context_release(context);
  assert_int_equal(mapped(), 0);
}

// Whether a folder under an entry's name is empty takes memory to say.
static pestle_status_t look_at_folder(pestle_context_t* context, void* user) {
  (void)user;
  pestle_cache_stats_t stats = {.struct_size = sizeof(stats)};
  pestle_status_t status = pestle_cache_stats(context, &stats);
  assert_int_equal(stats.disk_entries, !status);
  return status;
}

static void test_folder_without_memory(void** state) {
  (void)state;
  char name[160];
  snprintf(name, sizeof(name), "%s/" HASH, folder);
  assert_int_equal(mkdir(name, 0700), 0);
  fixture_fail_each(folder, true, 1, look_at_folder, NULL);
}

// An entry of another format, sound otherwise, is made anew.
static void test_other_format(void** state) {
  (void)state;
  pestle_context_t* context = open_context();
  assert_ok(get(context, "a", NULL));
  pestle_context_release(context);
  pestle_arena_t arena;
  pestle_arena_init(pestle_allocator_system(), &arena);
  const char* file = pestle_disk_entry_path(&arena, folder, pestle_str("a"));
  for (int i = 0; i < 3; ++i) {
    char* data;
    size_t size;
    assert_ok(pestle_file_read(file, SIZE_MAX / 2, pestle_allocator_system(),
                               &data, &size));
    pestle_disk_entry_t* header = (void*)data;
    if (i == 2) {  // the plan is said to lie further on
      header->plan_offset += 64;
      header->plan_size -= 64;
    } else {
      ++*(i ? &header->header_size : &header->version);
    }
    size_t from = offsetof(pestle_disk_entry_t, version);
    pestle_hash128_t sum = pestle_hash128(data + from, size - from);
    header->checksum[0] = sum.low;
    header->checksum[1] = sum.high;
    assert_ok(pestle_file_write(file, pestle_str_make(data, size)));
    free(data);
    context = open_context();
    const char* reason;
    assert_ok(get(context, "a", &reason));
    assert_string_equal(
        reason, i == 2 ? "the entry on disk is cut off or has the wrong length"
                       : "the entry on disk has another format");
    pestle_context_release(context);
  }
  pestle_arena_deinit(&arena);
}

// A folder that turns bad after it was good is told of, once.
static void test_turns_bad(void** state) {
  (void)state;
  not_kept = 0;
  pestle_context_t* context = open_context();
  assert_ok(get(context, "a", NULL));
  assert_int_equal(not_kept, 0);
  assert_int_equal(chmod(folder, 0777), 0);
  assert_ok(get(context, "b", NULL));
  assert_ok(get(context, "c", NULL));
  assert_int_equal(not_kept, 1);
  pestle_context_release(context);
}

int main(void) {
#define TEST(name) \
  cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
  const struct CMUnitTest tests[] = {
      TEST(test_set_is_damaged),
      TEST(test_set_lets_go),
      TEST(test_set_without_memory),
      TEST(test_cache_without_memory),
      TEST(test_find),
      TEST(test_keys),
      TEST(test_makers),
      TEST(test_folder_in_place),
      TEST(test_other_files),
      TEST(test_folder_without_memory),
      TEST(test_other_format),
      TEST(test_turns_bad),
  };
  return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
