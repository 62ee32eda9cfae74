// SPDX-License-Identifier: Apache-2.0
// Constants by content: one copy in a process, one file for all of them, and
// damage of that file.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/thread.h"
#include "runtime/constant.h"
#include "runtime/plan.h"
#include "runtime/plan_cache.h"
#include "unit/runtime/fixture.h"

enum { COUNT = 5000, BYTES = COUNT * 4 };
_Static_assert(BYTES >= PESTLE_PLAN_EXTERNAL_CONSTANT, "or it is embedded");

static char folder[256];

static int make_folder(void** state) {
  (void)state;
  snprintf(folder, sizeof(folder), "/tmp/pestle-constant-test-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void** state) {
  (void)state;
  char command[300];
  snprintf(command, sizeof(command), "rm -rf %s", folder);
  return system(command);
}

static pestle_context_t* open_context(bool disk) {
  pestle_context_options_t options = fixture_options();
  if (disk) options.cache_dir = folder;
  return fixture_context(&options);
}

// --- A plan that adds a constant to the first |elements| of it ---

typedef struct maker_t {
  pestle_context_t* context;
  int64_t elements;
  uint64_t key;
  bool dies;   // after the constant, before the plan
  bool large;  // a plan of 4 KB more
  atomic_int calls, packed;
} maker_t;

static void pack(void* user, void* target, size_t size) {
  maker_t* maker = user;
  atomic_fetch_add(&maker->packed, 1);
  for (size_t i = 0; i < size / 4; ++i)
    ((float*)target)[i] = (float)i;
}

static pestle_status_t get_constant(maker_t* maker,
                                    pestle_constant_t** out_constant) {
  uint64_t key[2] = {maker->key + 1, 7};
  return pestle_constant_get(maker->context, key, BYTES, pack, maker,
                             out_constant);
}

static void write_add(plan_writer_t* w, int64_t elements,
                      const uint64_t hash[2]) {
  plan_begin(w, "add");
  plan_device(w, "test", "");
  plan_input(w, "x", PESTLE_F32, 1, &elements);
  plan_output(w, "y", PESTLE_F32, 1, &elements);
  uint64_t size = (uint64_t)elements * 4;
  uint32_t kernel = fixture_kernel(w, "add", TEST_ADD, 3, elements, 0);
  uint32_t first = plan_bind(w, PESTLE_PLAN_INPUT, 0, 0, size);
  plan_bind(w, PESTLE_PLAN_CONSTANT, plan_external(w, hash, BYTES), 0, size);
  plan_bind(w, PESTLE_PLAN_OUTPUT, 0, 0, size);
  plan_launch(w, kernel, first);
  plan_step(w, PESTLE_PLAN_END, 0, 0, 0, 0);
}

static pestle_status_t make_plan(void* user, pestle_plan_t** out_plan) {
  maker_t* maker = user;
  atomic_fetch_add(&maker->calls, 1);
  pestle_constant_t* constant;
  PESTLE_TRY(get_constant(maker, &constant));
  if (maker->dies) (void)kill(getpid(), SIGKILL);
  uint64_t hash[2];
  (void)pestle_constant_data(constant, hash);
  plan_writer_t* w = malloc(sizeof(*w));
  write_add(w, maker->elements, hash);
  static const char many[3968];
  if (maker->large) (void)plan_constant(w, many, sizeof(many));
  size_t size;
  void* data = plan_finish(w, &size);
  free(w);
  pestle_status_t status =
      pestle_plan_create(maker->context, data, size, free, data, out_plan);
  if (status) free(data);
  pestle_constant_release(constant);
  return status;
}

static pestle_plan_t* get(maker_t* maker, int64_t elements,
                          const char** out_reason) {
  pestle_plan_t* plan;
  maker->elements = elements;
  assert_ok(pestle_plan_cache_get(maker->context, &elements, sizeof(elements),
                                  make_plan, maker, &plan, out_reason));
  return plan;
}

static void check_runs(pestle_context_t* context, pestle_plan_t* plan,
                       int64_t elements) {
  pestle_executable_t* e;
  assert_ok(pestle_executable_create(context, plan, NULL, &e));
  float* x = calloc((size_t)elements, sizeof(float));
  pestle_tensor_t in = test_view(x, PESTLE_F32, 1, &elements, NULL);
  pestle_tensor_t out = {0};
  assert_ok(pestle_executable_run(e, NULL, &in, 1, &out, 1, NULL));
  for (int64_t i = 0; i < elements; ++i)
    assert_true(((float*)out.data)[i] == (float)i);
  pestle_tensor_release(e, &out);
  pestle_executable_release(e);
  free(x);
}

static pestle_cache_stats_t stats_of(pestle_context_t* context) {
  pestle_cache_stats_t stats = {.struct_size = sizeof(stats)};
  assert_ok(pestle_cache_stats(context, &stats));
  return stats;
}

// The file of the constant, which all makers make the same.
static const char* constant_path(void) {
  static char path[512];
  maker_t maker = {0};
  float* data = malloc(BYTES);
  pack(&maker, data, BYTES);
  pestle_arena_t arena;
  pestle_arena_init(pestle_allocator_system(), &arena);
  snprintf(
      path, sizeof(path), "%s",
      pestle_constant_file_path(&arena, folder, pestle_hash128(data, BYTES)));
  pestle_arena_deinit(&arena);
  free(data);
  return path;
}

static void write_file(const char* path, const char* data, size_t size) {
  unlink(path);
  FILE* file = fopen(path, "wb");
  assert_non_null(file);
  fchmod(fileno(file), 0600);
  assert_int_equal(fwrite(data, 1, size, file), size);
  fclose(file);
}

// --- In a process ---

static void test_once_in_a_process(void** state) {
  for (int disk = 0; disk < 2; ++disk) {
    make_folder(state);
    maker_t maker = {.context = open_context(disk)};
    pestle_plan_t* plans[2] = {get(&maker, COUNT, NULL),
                               get(&maker, COUNT / 2, NULL)};
    assert_int_equal(maker.calls, 2);
    assert_int_equal(maker.packed, 1);
    assert_ptr_equal(pestle_plan_constant_base(plans[0], 1),
                     pestle_plan_constant_base(plans[1], 1));
    pestle_cache_stats_t stats = stats_of(maker.context);
    assert_int_equal(stats.memory_constants, 1);
    assert_int_equal(stats.memory_constant_bytes, BYTES);
    // The same content by another way.
    maker.key = 1;
    pestle_constant_t* constant;
    assert_ok(get_constant(&maker, &constant));
    assert_int_equal(maker.packed, 2);
    assert_ptr_equal(constant, plans[0]->constants[1]);
    pestle_constant_release(constant);
    // Executables of both count it once.
    pestle_device_t* device;
    pestle_executable_t* e[2];
    pestle_memory_stats_t memory = {.struct_size = sizeof(memory)};
    assert_ok(pestle_context_device(maker.context, "test", &device));
    for (int i = 0; i < 2; ++i) {
      check_runs(maker.context, plans[i], i ? COUNT / 2 : COUNT);
      assert_ok(pestle_executable_create(maker.context, plans[i], NULL, &e[i]));
      pestle_device_memory_stats(device, &memory);
      assert_int_equal(memory.active, BYTES);
    }
    for (int i = 0; i < 2; ++i)
      pestle_executable_release(e[i]);
    pestle_device_memory_stats(device, &memory);
    assert_int_equal(memory.active, 0);
    pestle_plan_release(plans[0]);
    pestle_plan_release(plans[1]);
    pestle_context_release(maker.context);
    if (!disk) remove_folder(state);
  }
}

// With the last holder the constant goes, and all its keys.
static void test_freed_with_the_last(void** state) {
  (void)state;
  maker_t maker = {.context = open_context(false)};
  for (int round = 1; round < 3; ++round) {
    pestle_constant_t *first, *second;
    maker.key = 0;
    assert_ok(get_constant(&maker, &first));
    maker.key = 1;
    assert_ok(get_constant(&maker, &second));
    assert_ptr_equal(first, second);
    assert_int_equal(maker.packed, 2 * round);
    pestle_constant_release(first);
    assert_ok(get_constant(&maker, &first));
    assert_int_equal(maker.packed, 2 * round);  // by its second key
    pestle_constant_release(first);
    assert_int_equal(stats_of(maker.context).memory_constants, 1);
    pestle_constant_release(second);
    assert_int_equal(stats_of(maker.context).memory_constants, 0);
    assert_int_equal(stats_of(maker.context).memory_constant_bytes, 0);
  }
  pestle_context_release(maker.context);
}

static void test_read_only(void** state) {
  (void)state;
  for (int disk = 0; disk < 2; ++disk) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
      maker_t maker = {.context = open_context(disk)};
      pestle_constant_t* constant;
      assert_ok(get_constant(&maker, &constant));
      (void)signal(SIGSEGV, SIG_DFL);
      *(volatile char*)(uintptr_t)pestle_constant_data(constant, NULL) = 1;
      _exit(0);
    }
    int code;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(WIFSIGNALED(code) && WTERMSIG(code) == SIGSEGV);
  }
}

static void test_no_cache(void** state) {
  (void)state;
  pestle_context_options_t options = fixture_options();
  options.no_cache = true;
  maker_t maker = {.context = fixture_context(&options)};
  pestle_constant_t* constant;
  assert_ok(get_constant(&maker, &constant));
  assert_null(constant);
  pestle_context_release(maker.context);
}

// Bytes as they are: on disk or, without a folder, in memory of the constant's own; one
// with what was packed to the same.
static void test_bytes(void** state) {
  (void)state;
  for (int on_disk = 0; on_disk < 2; ++on_disk) {
    maker_t maker = {.context = open_context(on_disk)};
    float* bytes = malloc(BYTES);
    maker_t other = {0};
    pack(&other, bytes, BYTES);
    pestle_constant_t *constant, *packed;
    uint64_t key[2] = {5, 6}, hash[2];
    assert_ok(
        pestle_constant_get_bytes(maker.context, key, bytes, BYTES, &constant));
    assert_ok(get_constant(&maker, &packed));
    assert_ptr_equal(constant, packed);
    pestle_constant_release(packed);
    memset(bytes, 1, BYTES);
    const float* kept = pestle_constant_data(constant, hash);
    pack(&other, bytes, BYTES);
    assert_memory_equal(kept, bytes, BYTES);
    pestle_hash128_t wanted = pestle_hash128(bytes, BYTES);
    assert_true(hash[0] == wanted.low && hash[1] == wanted.high);
    free(bytes);
    pestle_constant_release(constant);
    assert_int_equal(stats_of(maker.context).memory_constants, 0);
    pestle_context_release(maker.context);
  }
}

typedef struct asker_t {
  pestle_thread_t thread;
  maker_t* maker;
} asker_t;

static void ask(void* argument) {
  maker_t* maker = ((asker_t*)argument)->maker;
  for (int i = 0; i < 50; ++i) {
    uint64_t key[2] = {(uint64_t)i % 3 + 1, 7};
    pestle_constant_t* constant;
    assert_ok(pestle_constant_get(maker->context, key, BYTES, pack, maker,
                                  &constant));
    assert_true(((const float*)pestle_constant_data(constant, NULL))[9] == 9);
    pestle_constant_release(constant);
  }
}

static void test_threads(void** state) {
  (void)state;
  maker_t maker = {.context = open_context(true)};
  asker_t askers[8];
  for (int i = 0; i < 8; ++i) {
    askers[i].maker = &maker;
    assert_ok(pestle_thread_start(ask, &askers[i], "ask", &askers[i].thread));
  }
  for (int i = 0; i < 8; ++i)
    pestle_thread_join(&askers[i].thread);
  assert_int_equal(stats_of(maker.context).memory_constants, 0);
  pestle_context_release(maker.context);
}

// A limit on the device's memory holds for constants, of the cache and in a plan,
// and what was refused is counted nowhere.
static void test_limit(void** state) {
  (void)state;
  for (int disk = 0; disk < 2; ++disk) {
    maker_t maker = {.context = open_context(disk)};
    pestle_plan_t* plan = get(&maker, COUNT, NULL);
    pestle_device_t* device;
    pestle_executable_t* e;
    uint64_t active;
    assert_ok(pestle_context_device(maker.context, "test", &device));
    assert_ok(
        pestle_device_memory_set(device, PESTLE_MEMORY_LIMIT, BYTES - 1, NULL));
    assert_error(pestle_executable_create(maker.context, plan, NULL, &e),
                 RESOURCE_EXHAUSTED, "while taking the constants of plan");
    assert_null(e);
    assert_ok(pestle_device_memory_get(device, PESTLE_MEMORY_ACTIVE, &active));
    assert_int_equal(active, 0);
    assert_ok(
        pestle_device_memory_set(device, PESTLE_MEMORY_LIMIT, BYTES, NULL));
    assert_ok(pestle_executable_create(maker.context, plan, NULL, &e));
    // A second one of the same plan takes no more.
    pestle_executable_t* twin;
    assert_ok(pestle_executable_create(maker.context, plan, NULL, &twin));
    assert_ok(pestle_device_memory_get(device, PESTLE_MEMORY_ACTIVE, &active));
    assert_int_equal(active, BYTES);
    pestle_executable_release(twin);
    pestle_executable_release(e);
    pestle_plan_release(plan);
    pestle_context_release(maker.context);
  }
}

// --- On disk ---

static void test_once_on_disk(void** state) {
  (void)state;
  maker_t maker = {.context = open_context(true)};
  pestle_plan_release(get(&maker, COUNT, NULL));
  uint64_t one = stats_of(maker.context).disk_bytes;
  pestle_plan_release(get(&maker, COUNT / 2, NULL));
  pestle_cache_stats_t stats = stats_of(maker.context);
  assert_int_equal(stats.disk_entries, 2);
  assert_int_equal(stats.disk_constants, 1);
  assert_true(one > BYTES && stats.disk_bytes < one + 4096);
  struct stat info;
  assert_int_equal(stat(constant_path(), &info), 0);
  assert_int_equal(info.st_mode & 0777, 0600);
  pestle_context_release(maker.context);
  // Another process finds both, and need not pack for a third either.
  maker = (maker_t){.context = open_context(true)};
  const char* reason;
  pestle_plan_t* plan = get(&maker, COUNT, &reason);
  assert_string_equal(reason, "hit on disk");
  check_runs(maker.context, plan, COUNT);
  pestle_plan_release(get(&maker, COUNT / 2, &reason));
  assert_string_equal(reason, "hit on disk");
  assert_int_equal(maker.packed, 0);
  pestle_plan_release(plan);
  pestle_context_release(maker.context);
}

// Whether this process has mapped the constant's file.
static bool has_mapped(void) {
  char line[1024];
  bool found = false;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof(line), maps)) {
    if (strstr(line, constant_path()) && strstr(line, " r--")) found = true;
  }
  if (maps) fclose(maps);
  return found;
}

static void test_processes_map_one_file(void** state) {
  (void)state;
  maker_t maker = {.context = open_context(true)};
  pestle_plan_t* plan = get(&maker, COUNT, NULL);
  assert_true(has_mapped());
  pid_t children[4];
  for (int i = 0; i < 4; ++i) {
    children[i] = fork();
    assert_true(children[i] >= 0);
    if (children[i]) continue;
    pestle_plan_release(plan);
    pestle_context_release(maker.context);
    bool good = !has_mapped();
    maker = (maker_t){.context = open_context(true)};
    plan = get(&maker, COUNT, NULL);
    check_runs(maker.context, plan, COUNT);
    good = good && has_mapped() && !maker.calls;
    pestle_plan_release(plan);
    pestle_context_release(maker.context);
    _exit(good ? 0 : 1);
  }
  for (int i = 0; i < 4; ++i) {
    int code;
    assert_int_equal(waitpid(children[i], &code, 0), children[i]);
    assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
  }
  pestle_plan_release(plan);
  pestle_context_release(maker.context);
}

// --- Damage ---

static void expect_heal(const char* why) {
  maker_t maker = {.context = open_context(true)};
  const char* reason;
  pestle_plan_t* plan = get(&maker, COUNT, &reason);
  if (!strstr(reason, why)) {
    print_error("reason '%s', expected '%s'\n", reason, why);
    fail();
  }
  assert_int_equal(maker.calls, 1);
  assert_int_equal(stats_of(maker.context).healed, 1);
  check_runs(maker.context, plan, COUNT);
  pestle_plan_release(plan);
  pestle_context_release(maker.context);
  maker = (maker_t){.context = open_context(true)};
  pestle_plan_release(get(&maker, COUNT, &reason));
  assert_string_equal(reason, "hit on disk");
  pestle_context_release(maker.context);
}

static void expect_refused(pestle_context_t* context, const char* data,
                           size_t size) {
  write_file(constant_path(), data, size);
  maker_t maker = {0};
  float* bytes = malloc(BYTES);
  pack(&maker, bytes, BYTES);
  pestle_mapping_t mapping;
  const char* reason;
  assert_ok(pestle_constant_file_map(context, pestle_hash128(bytes, BYTES),
                                     BYTES, true, &mapping, &reason));
  assert_non_null(reason);
  assert_null(mapping.data);
  assert_false(pestle_file_exists(constant_path()));
  free(bytes);
}

static void test_damage(void** state) {
  (void)state;
  maker_t maker = {.context = open_context(true)};
  pestle_plan_release(get(&maker, COUNT, NULL));
  pestle_context_release(maker.context);
  char *data, path[512];
  size_t size;
  snprintf(path, sizeof(path), "%s", constant_path());
  assert_ok(pestle_file_read(path, SIZE_MAX, pestle_allocator_system(), &data,
                             &size));
  char* copy = malloc(size + 1);
  pestle_context_t* context = open_context(true);
  for (size_t cut = 0; cut < size; cut += cut < 80 ? 1 : 499)
    expect_refused(context, data, cut);
  // Every bit of the header, a telling part of the others.
  for (size_t bit = 0; bit < size * 8; bit += bit < 1024 ? 1 : 1009) {
    memcpy(copy, data, size);
    copy[bit / 8] = (char)(copy[bit / 8] ^ (1 << bit % 8));
    expect_refused(context, copy, size);
  }
  pestle_context_release(context);
  expect_heal("is missing");
  write_file(path, data, 0);
  expect_heal("cut off");
  write_file(path, data, size / 2);
  expect_heal("cut off");
  memcpy(copy, data, size);
  copy[size] = 0;
  write_file(path, copy, size + 1);
  expect_heal("wrong length");
  copy[size - 1] ^= 1;
  write_file(path, copy, size);
  expect_heal("damaged");
  memcpy(copy, "PSTLCON0", 8);
  write_file(path, copy, size);
  expect_heal("not a file of the cache");
  write_file(path, data, size);
  chmod(path, 0620);
  expect_heal("group and others");
  unlink(path);
  assert_int_equal(symlink("/etc/passwd", path), 0);
  expect_heal("not a regular file");
  if (geteuid() == 0) {
    assert_int_equal(chown(path, 65534, 65534), 0);
    expect_heal("of this user");
  }
  unlink(path);
  assert_int_equal(mkdir(path, 0700), 0);
  expect_heal("not a regular file");
  free(copy);
  pestle_dealloc(pestle_allocator_system(), data, size + 1);
}

// What one process still has in memory comes back to the disk by its hits.
static void test_removed_while_in_use(void** state) {
  (void)state;
  maker_t maker = {.context = open_context(true)};
  pestle_plan_t* plan = get(&maker, COUNT, NULL);
  pestle_plan_release(get(&maker, COUNT / 2, NULL));
  assert_int_equal(unlink(constant_path()), 0);
  check_runs(maker.context, plan, COUNT);
  bool damaged;
  const char* reason;
  int64_t key = COUNT / 2;
  pestle_plan_t* other;
  assert_ok(pestle_disk_cache_load(
      maker.context, pestle_str_make((const char*)&key, sizeof(key)), &other,
      &reason, &damaged));
  assert_string_equal(reason, "hit on disk");
  assert_true(pestle_file_exists(constant_path()));
  pestle_plan_release(other);
  pestle_plan_release(plan);
  pestle_context_release(maker.context);
}

// Killed between the constant and its plan.
static void test_crash(void** state) {
  (void)state;
  pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    maker_t maker = {.context = open_context(true), .dies = true};
    (void)get(&maker, COUNT, NULL);
    _exit(1);
  }
  int code;
  assert_int_equal(waitpid(child, &code, 0), child);
  assert_true(WIFSIGNALED(code) && WTERMSIG(code) == SIGKILL);
  maker_t maker = {.context = open_context(true)};
  pestle_cache_stats_t stats = stats_of(maker.context);
  assert_int_equal(stats.disk_entries, 0);
  assert_int_equal(stats.disk_constants, 1);
  const char* reason;
  pestle_plan_t* plan = get(&maker, COUNT, &reason);
  assert_string_equal(reason, "not in the cache");
  check_runs(maker.context, plan, COUNT);
  pestle_plan_release(plan);
  pestle_context_release(maker.context);
}

// --- Cutting ---

static void count_entry(void* user, const char* name, const char* model,
                        uint64_t bytes, int64_t used, pestle_status_t status) {
  int* counts = user;
  (void)bytes, (void)used;
  if (status) {
    ++counts[2];
  } else if (!strncmp(name, "c-", 2)) {
    assert_string_equal(model, "(constant)");
    ++counts[1];
  } else {
    assert_string_equal(model, "add");
    ++counts[0];
  }
}

static void test_prune(void** state) {
  (void)state;
  maker_t maker = {.context = open_context(true)};
  pestle_plan_release(get(&maker, COUNT, NULL));
  pestle_thread_sleep_ns(5000000);
  pestle_plan_release(get(&maker, COUNT / 2, NULL));
  int counts[3] = {0};
  assert_ok(pestle_cache_visit(maker.context, true, count_entry, counts));
  assert_int_equal(counts[0], 2);
  assert_int_equal(counts[1], 1);
  assert_int_equal(counts[2], 0);
  // One plan goes, the constant stays for the other.
  uint64_t removed, bytes = stats_of(maker.context).disk_bytes;
  assert_ok(pestle_cache_prune(maker.context, bytes - 1, &removed));
  assert_int_equal(removed, 1);
  pestle_context_release(maker.context);
  maker = (maker_t){.context = open_context(true)};
  const char* reason;
  pestle_plan_t* plan = get(&maker, COUNT / 2, &reason);
  assert_string_equal(reason, "hit on disk");
  check_runs(maker.context, plan, COUNT / 2);
  pestle_plan_release(plan);
  // The last plan takes it along: 1 KB holds the plan but not the constant.
  assert_ok(pestle_cache_prune(maker.context, 1024, &removed));
  assert_int_equal(removed, 2);
  assert_int_equal(stats_of(maker.context).disk_bytes, 0);
  // One that no plan refers to.
  maker.key = 3;
  pestle_context_release(maker.context);
  maker.context = open_context(true);
  pestle_constant_t* constant;
  assert_ok(get_constant(&maker, &constant));
  pestle_constant_release(constant);
  assert_ok(pestle_disk_cache_cut(maker.context, UINT64_MAX, false, &removed));
  assert_int_equal(removed, 0);  // it may be on its way into a plan
  assert_ok(pestle_cache_prune(maker.context, UINT64_MAX, &removed));
  assert_int_equal(removed, 1);
  // Damage of a constant takes the plan along, where it is looked for.
  pestle_plan_release(get(&maker, COUNT, NULL));
  pestle_context_release(maker.context);
  char *data, *last;
  size_t size;
  assert_ok(pestle_file_read(constant_path(), SIZE_MAX,
                             pestle_allocator_system(), &data, &size));
  last = data + size - 1;
  *last ^= 1;
  write_file(constant_path(), data, size);
  pestle_dealloc(pestle_allocator_system(), data, size + 1);
  maker.context = open_context(true);
  assert_ok(pestle_disk_cache_cut(maker.context, UINT64_MAX, false, &removed));
  assert_int_equal(removed, 0);
  assert_ok(pestle_cache_prune(maker.context, UINT64_MAX, &removed));
  assert_int_equal(removed, 2);
  // A plan whose constant is gone.
  pestle_plan_release(get(&maker, COUNT, NULL));
  assert_int_equal(unlink(constant_path()), 0);
  memset(counts, 0, sizeof(counts));
  assert_ok(pestle_cache_visit(maker.context, true, count_entry, counts));
  assert_int_equal(counts[2], 1);
  assert_ok(pestle_cache_prune(maker.context, UINT64_MAX, &removed));
  assert_int_equal(removed, 1);
  pestle_context_release(maker.context);
}

// --- Plans without their constants ---

// Constants are written before it is known that their plan is too large.
static void test_too_large_for_the_folder(void** state) {
  (void)state;
  maker_t maker = {.context = open_context(true)};
  pestle_plan_release(get(&maker, COUNT, NULL));
  pestle_cache_stats_t kept = stats_of(maker.context);
  assert_int_equal(kept.disk_constants, 1);
  pestle_context_release(maker.context);
  // The constant alone would fit, or would not.
  uint64_t caps[] = {kept.disk_bytes - 8, BYTES / 2};
  for (int i = 0; i < 2; ++i) {
    pestle_context_options_t options = fixture_options();
    char other[300];
    snprintf(other, sizeof(other), "%s/%d", folder, i);
    options.cache_dir = other;
    options.cache_bytes = caps[i];
    maker.context = fixture_context(&options);
    pestle_plan_t* plan = get(&maker, COUNT, NULL);
    check_runs(maker.context, plan, COUNT);
    pestle_plan_release(plan);
    assert_int_equal(stats_of(maker.context).disk_bytes, 0);
    pestle_context_release(maker.context);
  }
}

// A plan that is not kept takes none of its constants along that another has.
static void test_too_large_beside_another(void** state) {
  (void)state;
  maker_t maker = {.context = open_context(true)};
  pestle_plan_release(get(&maker, COUNT, NULL));
  pestle_cache_stats_t kept = stats_of(maker.context);
  pestle_context_release(maker.context);
  pestle_context_options_t options = fixture_options();
  options.cache_dir = folder;
  options.cache_bytes = kept.disk_bytes;
  maker = (maker_t){.context = fixture_context(&options), .large = true};
  const char* reason;
  pestle_plan_t* plan = get(&maker, COUNT / 2, &reason);
  assert_string_equal(reason,
                      "not in the cache, and larger than all that it may hold");
  pestle_plan_release(plan);
  assert_int_equal(stats_of(maker.context).disk_bytes, kept.disk_bytes);
  pestle_context_release(maker.context);
  maker = (maker_t){.context = open_context(true)};
  pestle_plan_release(get(&maker, COUNT, &reason));
  assert_string_equal(reason, "hit on disk");
  pestle_context_release(maker.context);
}

// What is in memory goes to disk again for a plan, if it is not there as it was.
static void test_written_again(void** state) {
  (void)state;
  maker_t maker = {.context = open_context(true)};
  pestle_plan_t* plan = get(&maker, COUNT, NULL);
  struct stat right, info;
  char path[512];
  snprintf(path, sizeof(path), "%s", constant_path());
  assert_int_equal(stat(path, &right), 0);
  for (int64_t i = 1; i <= 3; ++i) {
    if (i == 1) assert_int_equal(unlink(path), 0);
    if (i == 2) assert_int_equal(chmod(path, 0620), 0);
    if (i == 3) write_file(path, "short", 5);
    pestle_plan_release(get(&maker, COUNT - i, NULL));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, right.st_size);
    assert_int_equal(info.st_mode, right.st_mode);
  }
  pestle_plan_release(plan);
  pestle_context_release(maker.context);
}

// The right content under the right name, of another size than a plan says.
static void test_other_size(void** state) {
  (void)state;
  maker_t maker = {.context = open_context(true)};
  pestle_plan_release(get(&maker, COUNT, NULL));
  pestle_context_release(maker.context);
  float* data = malloc(BYTES);
  pack(&maker, data, BYTES);
  pestle_hash128_t hash = pestle_hash128(data, BYTES);
  free(data);
  pestle_context_t* context = open_context(true);
  pestle_mapping_t mapping;
  const char* reason;
  assert_ok(pestle_constant_file_map(context, hash, BYTES + 64, true, &mapping,
                                     &reason));
  assert_string_equal(reason,
                      "a constant of the entry on disk has another size");
  assert_null(mapping.data);
  pestle_context_release(context);
}

static void test_saved_plans_hold_them(void** state) {
  (void)state;
  maker_t maker = {.context = open_context(true)};
  pestle_plan_t* plan = get(&maker, COUNT, NULL);
  char path[300];
  snprintf(path, sizeof(path), "%s/add.plan", folder);
  assert_ok(pestle_plan_save(plan, path));
  // The bytes alone mean nothing to a context that has not got the constant.
  size_t size;
  const void* data = pestle_plan_data(plan, &size);
  assert_true(size < BYTES);
  pestle_context_t* other = open_context(false);
  pestle_plan_t* loaded;
  assert_error(pestle_plan_create(other, data, size, NULL, NULL, &loaded),
               NOT_FOUND, "neither in the plan nor in the context");
  pestle_plan_release(plan);
  pestle_context_release(maker.context);
  assert_ok(pestle_plan_load(other, path, &loaded));
  assert_int_equal(stats_of(other).memory_constants, 0);
  check_runs(other, loaded, COUNT);
  pestle_plan_release(loaded);
  pestle_context_release(other);
}

// --- Failing allocations ---

static pestle_status_t do_all(pestle_allocator_t allocator, maker_t* maker,
                              pestle_plan_t** plan) {
  pestle_context_options_t options = fixture_options();
  options.allocator = allocator;
  options.cache_dir = folder;
  PESTLE_TRY(pestle_context_create(&options, &maker->context));
  PESTLE_TRY(test_backend_add(maker->context));
  for (int64_t i = 0; i < 2; ++i) {
    pestle_plan_release(*plan);
    maker->elements = COUNT - i;
    PESTLE_TRY(pestle_plan_cache_get(maker->context, &i, sizeof(i), make_plan,
                                     maker, plan, NULL));
  }
  char path[300];
  snprintf(path, sizeof(path), "%s/oom.plan", folder);
  PESTLE_TRY(pestle_plan_save(*plan, path));
  return pestle_cache_prune(maker->context, 0, NULL);
}

static void test_every_failure(void** state) {
  (void)state;
  size_t failures = 0;
  for (size_t k = 1;; ++k) {
    pestle_test_allocator_t memory;
    pestle_test_allocator_init(&memory, k);
    maker_t maker = {0};
    pestle_plan_t* plan = NULL;
    pestle_status_t status =
        do_all(pestle_test_allocator(&memory), &maker, &plan);
    bool failed = pestle_test_allocator_failed(&memory);
    if (status) {
      ++failures;
      assert_true(failed);
      assert_code(status, OUT_OF_MEMORY);
    }
    pestle_plan_release(plan);
    pestle_context_release(maker.context);
    pestle_test_allocator_check(&memory);
    if (!failed) break;
    assert_true(k < 10000);
  }
  assert_true(failures > 20);
}

#define TEST(name) \
  cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_once_in_a_process),
      TEST(test_freed_with_the_last),
      TEST(test_read_only),
      TEST(test_no_cache),
      TEST(test_bytes),
      TEST(test_threads),
      TEST(test_limit),
      TEST(test_once_on_disk),
      TEST(test_processes_map_one_file),
      TEST(test_damage),
      TEST(test_removed_while_in_use),
      TEST(test_crash),
      TEST(test_prune),
      TEST(test_too_large_for_the_folder),
      TEST(test_too_large_beside_another),
      TEST(test_written_again),
      TEST(test_other_size),
      TEST(test_saved_plans_hold_them),
      TEST(test_every_failure),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
