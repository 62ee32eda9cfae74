// SPDX-License-Identifier: Apache-2.0
// Constants of which each process has its own part: who loads what and when, files of
// plans, what is missing or damaged, and records that are refused.
#include <unistd.h>

#include "pestle/world.h"
#include "runtime/constant.h"
#include "runtime/plan.h"
#include "runtime/plan_cache.h"
#include "unit/runtime/gpu_fixture.h"

enum { COUNT = 5000, BYTES = COUNT * 4, RANKS = 2 };
_Static_assert(BYTES >= PESTLE_PLAN_EXTERNAL_CONSTANT,
               "as a compiled plan has");

static char folder[256];

static int make_folder(void** state) {
  (void)state;
  snprintf(folder, sizeof(folder), "/tmp/pestle-part-test-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void** state) {
  (void)state;
  char command[300];
  snprintf(command, sizeof(command), "rm -rf %s", folder);
  return system(command);
}

static pestle_context_t* open_context(void) {
  pestle_context_options_t options = fixture_options();
  options.cache_dir = folder;
  return fixture_context(&options);
}

// y = x + c, of which partition i has c = 1000 i, 1000 i + 1, ..
static void write_plan(plan_writer_t* w, uint64_t hashes[RANKS][2]) {
  const int64_t count = COUNT;
  plan_begin(w, "parts");
  plan_device(w, "test", "");
  plan_input(w, "x", PESTLE_F32, 1, &count);
  plan_output(w, "y", PESTLE_F32, 1, &count);
  w->header.partitions = RANKS;
  uint32_t kernel = fixture_kernel(w, "add", TEST_ADD, 3, COUNT, 0);
  uint32_t part = plan_part(w, BYTES);
  for (int i = 0; i < RANKS; ++i)
    plan_part_place(w, plan_external(w, hashes[i], BYTES), 0);
  uint32_t first = plan_bind(w, PESTLE_PLAN_INPUT, 0, 0, BYTES);
  plan_bind(w, PESTLE_PLAN_PART, part, 0, BYTES);
  plan_bind(w, PESTLE_PLAN_OUTPUT, 0, 0, BYTES);
  plan_launch(w, kernel, first);
  plan_step(w, PESTLE_PLAN_END, 0, 0, 0, 0);
}

static void get_constant(pestle_context_t* context, int partition,
                         uint64_t hash[2], pestle_constant_t** out) {
  float* data = malloc(BYTES);
  for (int i = 0; i < COUNT; ++i)
    data[i] = (float)(1000 * partition + i);
  uint64_t key[2] = {(uint64_t)partition + 1, 9};
  assert_ok(pestle_constant_get_bytes(context, key, data, BYTES, out));
  (void)pestle_constant_data(*out, hash);
  free(data);
}

static pestle_plan_t* make_plan(pestle_context_t* context) {
  static plan_writer_t w;
  uint64_t hashes[RANKS][2];
  pestle_constant_t* constants[RANKS];
  for (int i = 0; i < RANKS; ++i)
    get_constant(context, i, hashes[i], &constants[i]);
  write_plan(&w, hashes);
  pestle_plan_t* plan = fixture_plan(context, &w);
  for (int i = 0; i < RANKS; ++i)
    pestle_constant_release(constants[i]);
  return plan;
}

// What a run as |world| says.
static pestle_status_t run(pestle_executable_t* e, pestle_world_t* world) {
  static _Alignas(64) float x[COUNT];  // read where it is
  int64_t count = COUNT;
  pestle_tensor_t in = test_view(x, PESTLE_F32, 1, &count, NULL), out = {0};
  pestle_run_options_t options = fixture_run_options();
  options.world = world;
  PESTLE_TRY(pestle_executable_run(e, NULL, &in, 1, &out, 1, &options));
  int first = 1000 * pestle_world_rank(world);
  for (int i = 0; i < COUNT; ++i)
    assert_true(((float*)out.data)[i] == (float)(first + i));
  pestle_tensor_release(e, &out);
  return NULL;
}

static void make_world(pestle_context_t* context, pestle_world_t** ranks) {
  pestle_world_options_t options = {.struct_size = sizeof(options)};
  assert_ok(pestle_world_create_local(context, RANKS, &options, ranks));
}

static void drop_world(pestle_world_t** ranks) {
  for (int i = RANKS; i-- > 0;)
    pestle_world_release(ranks[i]);
}

static uint64_t held_constants(pestle_context_t* context) {
  pestle_cache_stats_t stats = {.struct_size = sizeof(stats)};
  assert_ok(pestle_cache_stats(context, &stats));
  return stats.memory_constants;
}

static uint64_t active(pestle_context_t* context) {
  pestle_device_t* device;
  pestle_memory_stats_t memory = {.struct_size = sizeof(memory)};
  assert_ok(pestle_context_device(context, "test", &device));
  pestle_device_memory_stats(device, &memory);
  return (uint64_t)memory.active;
}

// --- Who has what ---

static void check_shares(pestle_context_t* context, pestle_plan_t* plan,
                         bool by_file) {
  pestle_world_t* ranks[RANKS];
  pestle_executable_t* e[2];
  for (int i = 0; i < 2; ++i)
    assert_ok(pestle_executable_create(context, plan, NULL, &e[i]));
  make_world(context, ranks);
  assert_int_equal(pestle_executable_constant_bytes(e[0], -1), RANKS * BYTES);
  // Nobody has come: nothing is loaded.
  assert_int_equal(active(context), 0);
  if (by_file) assert_int_equal(held_constants(context), 0);
  assert_error(run(e[0], NULL), INVALID_ARGUMENT, "world");
  for (int i = 0; i < RANKS; ++i) {
    assert_int_equal(pestle_executable_constant_bytes(e[0], i), BYTES);
    // Again, and by another executable: once for all of them.
    for (int times = 0; times < 4; ++times)
      assert_ok(run(e[times / 2], ranks[i]));
    // Besides there are what runs keep: an arena and a thread's scratch.
    assert_int_equal(active(context) / BYTES, i + 1);
    if (by_file) assert_int_equal(held_constants(context), i + 1);
  }
  drop_world(ranks);
  for (int i = 0; i < 2; ++i)
    pestle_executable_release(e[i]);
  assert_int_equal(active(context), 0);
}

// The plan as another process has it, from the bytes that |plan| has.
static pestle_plan_t* copy_plan(pestle_context_t* context,
                                const pestle_plan_t* plan) {
  size_t size;
  const void* data = pestle_plan_data(plan, &size);
  void* copy = aligned_alloc(64, size);
  assert_non_null(copy);
  memcpy(copy, data, size);
  pestle_plan_t* own;
  assert_ok(pestle_plan_create(context, copy, size, free, copy, &own));
  return own;
}

static void test_each_has_its_part(void** state) {
  (void)state;
  pestle_context_t *maker = open_context(), *context = open_context();
  pestle_plan_t *made = make_plan(maker), *plan = copy_plan(context, made);
  check_shares(context, plan, true);
  check_shares(maker, made, false);
  pestle_plan_release(made);
  pestle_plan_release(plan);
  pestle_context_release(context);
  pestle_context_release(maker);
}

// Without a folder the plan holds what was packed, or it would be lost.
static void test_without_a_folder(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  pestle_plan_t* plan = make_plan(context);
  assert_int_equal(held_constants(context), RANKS);
  check_shares(context, plan, false);
  pestle_plan_release(plan);
  assert_int_equal(held_constants(context), 0);
  pestle_context_release(context);
}

static void test_limit(void** state) {
  (void)state;
  pestle_context_t* context = open_context();
  pestle_plan_t* plan = make_plan(context);
  pestle_world_t* ranks[RANKS];
  pestle_executable_t* e;
  pestle_device_t* device;
  assert_ok(pestle_context_device(context, "test", &device));
  assert_ok(pestle_executable_create(context, plan, NULL, &e));
  assert_ok(
      pestle_device_memory_set(device, PESTLE_MEMORY_LIMIT, BYTES / 2, NULL));
  make_world(context, ranks);
  assert_error(run(e, ranks[0]), RESOURCE_EXHAUSTED, "partition 0");
  assert_int_equal(active(context), 0);
  drop_world(ranks);
  assert_ok(pestle_device_memory_set(device, PESTLE_MEMORY_LIMIT, 0, NULL));
  make_world(context, ranks);
  assert_ok(run(e, ranks[1]));
  drop_world(ranks);
  pestle_executable_release(e);
  pestle_plan_release(plan);
  pestle_context_release(context);
}

// --- Away from the host ---

// Of two constants the one that partition 0 has is uploaded.
static void test_upload(void** state) {
  (void)state;
  static plan_writer_t w;
  float c[2][GPU_COUNT], x[GPU_COUNT] = {0}, y[GPU_COUNT];
  for (int i = 0; i < GPU_COUNT; ++i) {
    c[0][i] = -1;
    c[1][i] = (float)i;
  }
  pestle_context_t* context = gpu_context(NULL);
  plan_begin(&w, "upload");
  gpu_plan_device(&w, "mock");
  plan_input(&w, "x", PESTLE_F32, 2, gpu_dims);
  plan_output(&w, "y", PESTLE_F32, 2, gpu_dims);
  uint32_t add = gpu_kernel(&w, "add", TEST_ADD, 3, GPU_COUNT);
  (void)plan_constant(&w, c[0], sizeof(c[0]));
  uint64_t at = plan_constant(&w, c[1], sizeof(c[1]));
  uint32_t part = plan_part(&w, GPU_BYTES);
  plan_part_place(&w, 0, at);
  uint32_t first = plan_bind(&w, PESTLE_PLAN_INPUT, 0, 0, GPU_BYTES);
  plan_bind(&w, PESTLE_PLAN_PART, part, 0, GPU_BYTES);
  plan_bind_written(&w, PESTLE_PLAN_OUTPUT, 0, 0, GPU_BYTES);
  plan_launch(&w, add, first);
  plan_step(&w, PESTLE_PLAN_END, 0, 0, 0, 0);
  pestle_executable_t* e = fixture_executable(context, &w);
  pestle_tensor_t in = gpu_host_view(x), out = gpu_host_view(y);
  for (int times = 0; times < 3; ++times) {
    assert_ok(GPU_RUN(e, NULL, in, out, NULL));
    for (int i = 0; i < GPU_COUNT; ++i)
      assert_true(y[i] == (float)i);
  }
  pestle_executable_release(e);
  gpu_context_end(context);
}

// --- Files ---

static void change_byte(const char* path, long at) {
  FILE* file = fopen(path, "r+b");
  assert_non_null(file);
  assert_int_equal(fseek(file, at, SEEK_SET), 0);
  int byte = fgetc(file);
  assert_int_equal(fseek(file, at, SEEK_SET), 0);
  fputc(byte ^ 1, file);
  fclose(file);
}

static void test_saved(void** state) {
  (void)state;
  char path[300];
  pestle_context_t* context = open_context();
  pestle_plan_t* plan = make_plan(context);
  snprintf(path, sizeof(path), "%s/saved.plan", folder);
  assert_ok(pestle_plan_save(plan, path));
  pestle_plan_release(plan);
  assert_ok(pestle_plan_load(context, path, &plan));
  pestle_plan_header_t header = *pestle_plan_header(plan);
  assert_int_equal(header.size - header.checked,
                   RANKS * ((BYTES + 63) / 64 * 64));
  check_shares(context, plan, false);
  pestle_plan_release(plan);
  // The last byte is of the last rank's part, which nobody else reads.
  change_byte(path, (long)header.size - 64);
  pestle_world_t* ranks[RANKS];
  pestle_executable_t* e;
  assert_ok(pestle_plan_load(context, path, &plan));
  assert_ok(pestle_executable_create(context, plan, NULL, &e));
  make_world(context, ranks);
  assert_ok(run(e, ranks[0]));
  assert_error(run(e, ranks[1]), MALFORMED, "is damaged");
  drop_world(ranks);
  pestle_executable_release(e);
  pestle_plan_release(plan);
  change_byte(path, (long)header.checked - 1);
  assert_error(pestle_plan_load(context, path, &plan), MALFORMED, "checksum");
  pestle_context_release(context);
}

static void name_part(pestle_context_t* context, int partition,
                      char path[512]) {
  pestle_constant_t* constant;
  uint64_t hash[2];
  get_constant(context, partition, hash, &constant);
  pestle_constant_release(constant);
  pestle_arena_t arena;
  pestle_arena_init(pestle_allocator_system(), &arena);
  snprintf(path, 512, "%s",
           pestle_constant_file_path(&arena, folder,
                                     (pestle_hash128_t){hash[0], hash[1]}));
  pestle_arena_deinit(&arena);
}

static void test_missing(void** state) {
  (void)state;
  char paths[RANKS][512], saved[512];
  pestle_context_t *maker = open_context(), *context = open_context();
  pestle_plan_t *made = make_plan(maker), *plan = copy_plan(context, made), *no;
  pestle_world_t* ranks[RANKS];
  pestle_executable_t* e;
  for (int i = 0; i < RANKS; ++i)
    name_part(maker, i, paths[i]);
  assert_ok(pestle_executable_create(context, plan, NULL, &e));
  // A plan that is there keeps its files, whoever removes them.
  assert_int_equal(unlink(paths[0]), 0);
  make_world(context, ranks);
  assert_ok(run(e, ranks[0]));
  drop_world(ranks);
  // What a rank finds damaged goes, to be made anew; others do not look at it.
  change_byte(paths[1], 200);
  make_world(context, ranks);
  assert_ok(run(e, ranks[0]));
  assert_error(run(e, ranks[1]), MALFORMED, "is damaged");
  assert_int_equal(access(paths[1], F_OK), -1);
  drop_world(ranks);
  snprintf(saved, sizeof(saved), "%s/saved.plan", folder);
  assert_error(pestle_plan_save(plan, saved), MALFORMED, "is damaged");
  pestle_executable_release(e);
  // A plan from the cache is not taken without all that some rank needs.
  pestle_plan_release(plan);
  size_t size;
  const void* data = pestle_plan_data(made, &size);
  assert_error(pestle_plan_create(context, data, size, NULL, NULL, &no),
               NOT_FOUND, "is missing");
  pestle_plan_release(made);
  pestle_context_release(context);
  pestle_context_release(maker);
}

// --- The cache ---

static pestle_status_t make_cached(void* user, pestle_plan_t** out_plan) {
  *out_plan = make_plan(user);
  return NULL;
}

// Why the plan is made, or not, by a process that has rank |rank|; -1: none.
static const char* get_as(int rank) {
  char text[16];
  const char* reason;
  snprintf(text, sizeof(text), "%d", rank);
  assert_int_equal(rank < 0 ? unsetenv("RANK") : setenv("RANK", text, 1), 0);
  pestle_context_t* context = open_context();
  pestle_plan_t* plan;
  assert_ok(pestle_plan_cache_get(context, "parts", 5, make_cached, context,
                                  &plan, &reason));
  // What was looked at once is not looked at again.
  for (uint32_t i = 0; i < RANKS; ++i) {
    pestle_constant_t* constant;
    const char* data;
    if (rank >= 0 && rank != (int)i) continue;
    assert_ok(pestle_plan_take_part(plan, i + 1, &constant, &data));
    assert_true(*(const float*)(const void*)data == 1000.0f * (float)i);
    pestle_constant_release(constant);
  }
  pestle_plan_release(plan);
  pestle_context_release(context);
  return reason;
}

static void count_faults(void* user, const char* name, const char* model,
                         uint64_t bytes, int64_t used, pestle_status_t status) {
  (void)name, (void)model, (void)bytes, (void)used;
  *(int*)user += status != NULL;
}

static void test_cached(void** state) {
  (void)state;
  static const char damaged[] = "a part of a constant on disk is damaged";
  char paths[RANKS][512];
  pestle_context_t* context = open_context();
  for (int i = 0; i < RANKS; ++i)
    name_part(context, i, paths[i]);
  pestle_context_release(context);
  assert_int_equal(setenv("WORLD_SIZE", "2", 1), 0);
  assert_int_equal(setenv("PESTLE_WORLD", "tcp://127.0.0.1:29400", 1), 0);
  assert_string_equal(get_as(-1), "not in the cache");
  assert_string_equal(get_as(-1), "hit on disk");
  // A process looks at its own part; where nobody says which it is, at all.
  change_byte(paths[1], 200);
  assert_string_equal(get_as(0), "hit on disk");
  assert_string_equal(get_as(1), damaged);
  assert_string_equal(get_as(1), "hit on disk");
  change_byte(paths[1], 200);
  assert_string_equal(get_as(-1), damaged);
  assert_string_equal(get_as(-1), "hit on disk");
  unsetenv("WORLD_SIZE");
  unsetenv("PESTLE_WORLD");
  // The first of two constants is gone.
  assert_int_equal(unlink(paths[0]), 0);
  context = open_context();
  int faults = 0;
  assert_ok(pestle_cache_visit(context, true, count_faults, &faults));
  assert_int_equal(faults, 1);
  pestle_context_release(context);
}

// --- Records that are refused ---

static void refuse(pestle_context_t* context, plan_writer_t* w,
                   const char* words) {
  size_t size;
  void* data = plan_finish(w, &size);
  pestle_plan_t* plan;
  assert_error(pestle_plan_create(context, data, size, NULL, NULL, &plan),
               MALFORMED, words);
  free(data);
}

static void test_refused(void** state) {
  (void)state;
  static plan_writer_t w;
  uint64_t hashes[RANKS][2] = {{1, 2}, {3, 4}};
  pestle_context_t* context = open_context();
#define REFUSE(change, words)   \
  do {                          \
    write_plan(&w, hashes);     \
    change;                     \
    refuse(context, &w, words); \
  } while (0)
  REFUSE(w.parts[0].first = 1, "no place for each");
  REFUSE(w.parts[0].first = UINT32_MAX, "no place for each");
  REFUSE(w.header.partitions = 3, "no place for each");
  REFUSE(w.parts[0].size = BYTES + 1, "lies outside of constant");
  REFUSE(w.parts[0].size = UINT64_MAX, "lies outside of constant");
  REFUSE(w.places[1].constant = 3, "lies outside of constant");
  REFUSE(w.places[0].offset = 64, "lies outside of constant");
  REFUSE(w.places[0].offset = 1, "lies outside of constant");
  REFUSE(w.places[0].offset = UINT64_MAX - 63, "lies outside of constant");
  REFUSE(w.bindings[1].index = 1, "lies outside of its storage");
  REFUSE(w.bindings[1].offset = 4, "lies outside of its storage");
  REFUSE(w.bindings[1].storage = 5, "lies outside of its storage");
  REFUSE(w.bindings[1].flags = PESTLE_PLAN_WRITTEN, "is written");
  REFUSE(w.header.part_places.count = 1, "no place for each");
#undef REFUSE
  pestle_context_release(context);
}

// A plan whose only constant is unchecked and its part's, or bound as it is.
static char* make_unchecked(size_t* out_size, bool bound,
                            const uint64_t hash[2]) {
  static plan_writer_t w;
  const int64_t dims[] = {16};
  plan_begin(&w, "unchecked");
  plan_device(&w, "test", "");
  plan_input(&w, "x", PESTLE_F32, 1, dims);
  plan_output(&w, "y", PESTLE_F32, 1, dims);
  uint32_t kernel = fixture_kernel(&w, "add", TEST_ADD, 3, 16, 0);
  uint32_t part = plan_part(&w, 64);
  plan_part_place(&w, 0, 0);
  (void)plan_constant(&w, (float[16]){0}, 64);
  uint32_t first = plan_bind(&w, PESTLE_PLAN_INPUT, 0, 0, 64);
  plan_bind(&w, bound ? PESTLE_PLAN_CONSTANT : PESTLE_PLAN_PART, part, 0, 64);
  plan_bind(&w, PESTLE_PLAN_OUTPUT, 0, 0, 64);
  plan_launch(&w, kernel, first);
  plan_step(&w, PESTLE_PLAN_END, 0, 0, 0, 0);
  size_t size;
  char* data = plan_finish(&w, &size);
  char* whole = aligned_alloc(64, size + 64);
  memcpy(whole, data, size);
  memset(whole + size, 0, 64);
  free(data);
  pestle_plan_header_t* h = (void*)whole;
  pestle_plan_constant_ref_t* ref = (void*)(whole + h->constant_refs.offset);
  ref->offset = size;
  ref->hash[0] = hash[0], ref->hash[1] = hash[1];
  h->size = size + 64;
  h->checked = size;
  h->checksum = pestle_hash64(whole + 32, size - 32);
  *out_size = size + 64;
  return whole;
}

// Both halves of a hash are of the bytes, and what is bound as it is was checked.
static void test_hashes(void** state) {
  (void)state;
  pestle_context_t* context = open_context();
  pestle_hash128_t hash = pestle_hash128((float[16]){0}, 64);
  static const struct {
    uint64_t low, high;
    const char* says;  // NULL: it runs
  } rows[] = {{0, 0, NULL}, {1, 0, "is damaged"}, {0, 1, "is damaged"}};
  size_t size;
  pestle_plan_t* plan;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    uint64_t found[2] = {hash.low ^ rows[i].low, hash.high ^ rows[i].high};
    char* data = make_unchecked(&size, false, found);
    assert_ok(pestle_plan_create(context, data, size, NULL, NULL, &plan));
    pestle_constant_t* constant;
    const char* bytes;
    pestle_status_t status = pestle_plan_take_part(plan, 0, &constant, &bytes);
    if (rows[i].says) {
      assert_error(status, MALFORMED, rows[i].says);
    } else {
      assert_ok(status);
      assert_null(constant);
      assert_memory_equal(bytes, ((float[16]){0}), 64);
    }
    pestle_plan_release(plan);
    free(data);
  }
  char* data = make_unchecked(&size, true, (uint64_t[]){hash.low, hash.high});
  assert_error(pestle_plan_create(context, data, size, NULL, NULL, &plan),
               MALFORMED, "binding 1");
  free(data);
  data = make_unchecked(&size, false, (uint64_t[]){0, 0});
  assert_error(pestle_plan_create(context, data, size, NULL, NULL, &plan),
               MALFORMED, "neither a hash nor part");
  free(data);
  // One that reaches from what is checked into what is not.
  data = make_unchecked(&size, false, (uint64_t[]){hash.low, hash.high});
  pestle_plan_header_t* h = (void*)data;
  pestle_plan_constant_ref_t* ref = (void*)(data + h->constant_refs.offset);
  ref->offset -= 64, ref->size = 128;
  h->checksum = pestle_hash64(data + 32, size - 64 - 32);
  assert_error(pestle_plan_create(context, data, size, NULL, NULL, &plan),
               MALFORMED, "neither a hash nor part");
  free(data);
  pestle_context_release(context);
}

// Each request for memory fails while parts are looked at, and while they are saved.
static pestle_status_t load_and_save(pestle_context_t* context, void* made) {
  size_t size;
  const void* data = pestle_plan_data(made, &size);
  pestle_plan_t* plan;
  char path[300];
  snprintf(path, sizeof(path), "%s/oom.plan", folder);
  PESTLE_TRY(pestle_plan_create(context, data, size, NULL, NULL, &plan));
  pestle_status_t status = pestle_plan_save(plan, path);
  pestle_plan_release(plan);
  return status;
}

static void test_every_request(void** state) {
  (void)state;
  pestle_context_t* maker = open_context();
  pestle_plan_t* made = make_plan(maker);
  fixture_fail_each(folder, true, 11, load_and_save, made);
  pestle_plan_release(made);
  pestle_context_release(maker);
}

// Bytes that the checksum leaves out have a hash of their own, and no other section.
static void test_unchecked(void** state) {
  (void)state;
  static plan_writer_t w;
  float c[16] = {0};
  pestle_context_t* context = open_context();
  pestle_plan_t* plan;
  for (int i = 0; i < 3; ++i) {
    plan_begin(&w, "unchecked");
    plan_device(&w, "test", "");
    (void)plan_constant(&w, c, sizeof(c));
    plan_step(&w, PESTLE_PLAN_END, 0, 0, 0, 0);
    size_t size;
    pestle_plan_header_t* header = plan_finish(&w, &size);
    pestle_plan_constant_ref_t* refs =
        (void*)((char*)header + header->constant_refs.offset);
    // Behind all else, where nothing is but what was the writer's last section.
    refs[0].offset = i == 2 ? size - 64 : size;
    refs[0].size = i == 2 ? 65 : 0;
    header->checked = i == 1 ? sizeof(*header) - 1 : size - 64;
    header->checksum =
        pestle_hash64((const char*)header + 32, (size_t)header->checked - 32);
    assert_error(pestle_plan_create(context, header, size, NULL, NULL, &plan),
                 MALFORMED, "");
    free(header);
  }
  pestle_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_each_has_its_part, make_folder,
                                      remove_folder),
      cmocka_unit_test(test_without_a_folder),
      cmocka_unit_test_setup_teardown(test_limit, make_folder, remove_folder),
      cmocka_unit_test(test_upload),
      cmocka_unit_test_setup_teardown(test_saved, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_missing, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_cached, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_refused, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_hashes, make_folder, remove_folder),
      cmocka_unit_test_setup_teardown(test_every_request, make_folder,
                                      remove_folder),
      cmocka_unit_test_setup_teardown(test_unchecked, make_folder,
                                      remove_folder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
