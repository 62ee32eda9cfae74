// SPDX-License-Identifier: Apache-2.0
// pestle_plan_create() on plans that are damaged, lie, or are of another
// version.
#include <unistd.h>

#include "base/file.h"
#include "unit/runtime/fixture.h"

// A plan with every kind of record and step in it.
static void write_rich(plan_writer_t* w) {
  int64_t dims[] = {4, 4}, one[] = {1};
  plan_begin(w, "rich");
  plan_device(w, "test", "+fma");
  plan_device(w, "ref", "");
  plan_input(w, "x", PESTLE_F32, 2, dims);
  plan_input(w, "n", PESTLE_I32, 1, one);
  plan_output(w, "y", PESTLE_F32, 2, dims);
  w->outputs[0].bounded = 1;
  uint64_t arena = plan_arena(w, 64);
  w->outputs[0].shape_offset = (int64_t)plan_arena(w, 16);
  w->header.scratch_size = 128;
  float ones[16] = {1};
  uint64_t constant = plan_constant(w, ones, sizeof(ones));
  uint32_t add = fixture_kernel(w, "add", TEST_ADD, 3, 16, 0);
  uint32_t dec = fixture_kernel(w, "dec", TEST_DEC, 1, 1, 0);
  w->kernels[add].shared_bytes = 128;
  uint32_t first = plan_bind(w, PESTLE_PLAN_INPUT, 0, 0, 64);
  plan_bind(w, PESTLE_PLAN_CONSTANT, 0, constant, 64);
  plan_bind(w, PESTLE_PLAN_OUTPUT, 0, 0, 64);
  uint32_t copy = plan_bind(w, PESTLE_PLAN_INPUT, 1, 0, 4);
  uint32_t n = plan_bind(w, PESTLE_PLAN_ARENA, 0, arena, 4);
  plan_launch(w, add, first);                          // 0
  plan_step(w, PESTLE_PLAN_COPY, 0, copy, 2, 0);       // 1
  plan_step(w, PESTLE_PLAN_JUMP_IF_ZERO, 0, n, 1, 5);  // 2
  plan_launch(w, dec, n);                              // 3
  plan_step(w, PESTLE_PLAN_JUMP, 0, 0, 0, 2);          // 4
  plan_step(w, PESTLE_PLAN_JUMP_TABLE, 0, n, 2, 6);    // 5
  plan_step(w, PESTLE_PLAN_JUMP, 0, 0, 0, 8);          // 6
  plan_step(w, PESTLE_PLAN_JUMP, 0, 0, 0, 8);          // 7
  plan_step(w, PESTLE_PLAN_END, 0, 0, 0, 0);           // 8
  plan_location(w, "add");
  plan_location(w, "subtract");
  w->kernels[add].location_count = w->steps[0].location_count = 1;
  w->kernels[dec].first_location = w->steps[3].first_location = 1;
  w->kernels[dec].location_count = w->steps[3].location_count = 1;
}

static pestle_status_t try_plan(pestle_context_t* context, const void* data,
                                size_t size) {
  pestle_plan_t* plan;
  pestle_status_t status =
      pestle_plan_create(context, data, size, NULL, NULL, &plan);
  assert_true(!status == (plan != NULL));
  pestle_plan_release(plan);
  return status;
}

static void test_sound(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  static plan_writer_t w;
  write_rich(&w);
  size_t size;
  char* data = plan_finish(&w, &size);
  assert_ok(try_plan(context, data, size));
  assert_error(try_plan(context, data + 1, size - 1), INVALID_ARGUMENT,
               "64 bytes");
  free(data);
  pestle_context_release(context);
}

// In the place of the end.
static void write_repeats(plan_writer_t* w) {
  write_rich(w);
  --w->header.steps.count;
  plan_step(w, PESTLE_PLAN_REPEAT, 0, 0, 3, 1);  // 8
  plan_step(w, PESTLE_PLAN_REPEAT, 1, 0, 2, 0);  // 9
  plan_step(w, PESTLE_PLAN_END, 0, 0, 0, 0);     // 10
}

// A loop that repeats nothing, never, or is another than it says.
static void test_repeats(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  static plan_writer_t w;
  static const struct {
    uint32_t kernel, count, target;
    const char* says;
  } wrong[] = {{0, 3, 8, "repeats no earlier step"},
               {0, 3, 99, "repeats no earlier step"},
               {0, 0, 1, "repeats no earlier step"},
               {1, 3, 1, "is not the loop that it says"}};
  size_t size;
  write_repeats(&w);
  char* data = plan_finish(&w, &size);
  assert_ok(try_plan(context, data, size));
  free(data);
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
    write_repeats(&w);
    w.steps[8].kernel = wrong[i].kernel;
    w.steps[8].count = wrong[i].count;
    w.steps[8].target = wrong[i].target;
    data = plan_finish(&w, &size);
    assert_error(try_plan(context, data, size), MALFORMED, wrong[i].says);
    free(data);
  }
  pestle_context_release(context);
}

static void test_cut_and_flipped(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  static plan_writer_t w;
  write_rich(&w);
  size_t size;
  char* data = plan_finish(&w, &size);
  char* copy = aligned_alloc(64, size);
  for (size_t cut = 0; cut < size; ++cut) {
    // A block of exactly this size, so that ASan sees a read beyond it.
    char* part = aligned_alloc(64, (cut + 63) & ~(size_t)63);
    memcpy(part, data, cut);
    assert_code(try_plan(context, part, cut), MALFORMED);
    free(part);
  }
  for (size_t bit = 0; bit < size * 8; ++bit) {
    memcpy(copy, data, size);
    copy[bit / 8] = (char)(copy[bit / 8] ^ (1 << bit % 8));
    pestle_status_t status = try_plan(context, copy, size);
    assert_non_null(status);
    pestle_status_release(status);
  }
  free(copy);
  free(data);
  pestle_context_release(context);
}

// With a right checksum: lies must be seen, or do no harm. Each byte takes some
// telling values; each 4 and 8 bytes too.
static void test_lies(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  static plan_writer_t w;
  write_rich(&w);
  size_t size;
  char* data = plan_finish(&w, &size);
  char* copy = aligned_alloc(64, size);
  static const uint64_t values[] = {0,
                                    1,
                                    63,
                                    64,
                                    UINT64_C(1) << 31,
                                    UINT32_MAX,
                                    UINT64_MAX,
                                    INT64_MAX,
                                    UINT64_C(1) << 63,
                                    (uint64_t)INT64_MAX - 63};
  size_t accepted = 0, refused = 0;
  for (size_t at = 8; at < size; at += TEST_SANITIZED ? 4 : 1) {
    for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); ++v) {
      for (size_t width = 1; width <= 8 && at + width <= size; width *= 2) {
        memcpy(copy, data, size);
        memcpy(copy + at, &values[v], width);
        plan_seal(copy, size);
        pestle_plan_t* plan;
        pestle_status_t status =
            pestle_plan_create(context, copy, size, NULL, NULL, &plan);
        if (status) ++refused;
        if (!status) {
          ++accepted;
          // What is accepted can be loaded, or is refused there.
          pestle_executable_t* e;
          pestle_status_release(
              pestle_executable_create(context, plan, NULL, &e));
          pestle_executable_release(e);
        }
        pestle_status_release(status);
        pestle_plan_release(plan);
      }
    }
  }
  assert_true(refused > 1000 && accepted > 1000);
  free(copy);
  free(data);
  pestle_context_release(context);
}

// A later build, or an earlier one, of the same plan format runs it.
static void test_other_build(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  static plan_writer_t w;
  int64_t dims[] = {4};
  _Alignas(64) float x[4] = {1, 2, 3, 4}, y[16];
  fixture_write_add1(&w, 1, dims, 0);
  w.header.build_id = pestle_build_id_u64() + 1;
  pestle_executable_t* e = fixture_executable(context, &w);
  pestle_tensor_t in = test_view(x, PESTLE_F32, 1, dims, NULL);
  pestle_tensor_t out = test_view(y, PESTLE_F32, 1, dims, NULL);
  assert_ok(pestle_executable_run(e, NULL, &in, 1, &out, 1, NULL));
  assert_true(y[0] == 2 && y[3] == 5);
  pestle_executable_release(e);
  pestle_context_release(context);
}

#define EXPECT(change, code, text)                             \
  do {                                                         \
    write_rich(&w);                                            \
    change;                                                    \
    size_t size_;                                              \
    char* data_ = plan_finish(&w, &size_);                     \
    assert_error(try_plan(context, data_, size_), code, text); \
    free(data_);                                               \
  } while (0)

static void test_sentences(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  static plan_writer_t w;
  EXPECT(w.header.magic[0] = 'X', MALFORMED, "not a plan");
  EXPECT(w.header.version = PESTLE_PLAN_VERSION + 1, INCOMPATIBLE,
         "format version 11");
  EXPECT(w.header.arena_size = 65, MALFORMED, "arena of 65");
  EXPECT(w.header.arena_size = -64, MALFORMED, "arena of -64");
  EXPECT(w.header.name = 9999, MALFORMED, "text outside");
  EXPECT(w.header.devices.count = 0, MALFORMED, "no device");
  EXPECT(w.header.steps.count = 0, MALFORMED, "no steps");
  EXPECT(w.devices[1].cpu = 9999, MALFORMED, "device 1 has a text");
  EXPECT(w.inputs[0].dtype = PESTLE_INDEX, MALFORMED, "input 0");
  EXPECT(w.inputs[0].rank = 17, MALFORMED, "rank 17");
  EXPECT(w.inputs[0].dims[0] = -1, MALFORMED, "dims of input 0");
  EXPECT(w.inputs[0].dims[0] = INT64_MAX, MALFORMED, "dims of input 0");
  EXPECT(w.inputs[0].size = 60, MALFORMED, "60 bytes");
  EXPECT(w.inputs[0].bounded = 1, MALFORMED, "");
  EXPECT(w.outputs[0].shape_offset = 120, MALFORMED, "outside of the arena");
  EXPECT(w.kernels[0].code_size = 9999, MALFORMED, "code of kernel 'add'");
  EXPECT(w.kernels[0].device = 2, MALFORMED, "kernel 'add'");
  EXPECT(w.kernels[0].shared_bytes = 129, MALFORMED, "scratch");
  EXPECT(w.kernels[0].location_count = 3, MALFORMED, "kernel 'add' has loca");
  EXPECT(w.kernels[0].first_location = UINT32_MAX, MALFORMED, "locations");
  EXPECT(w.steps[0].location_count = 3, MALFORMED, "step 0 of the plan has l");
  EXPECT(w.steps[3].first_location = 3, MALFORMED, "step 3 of the plan has l");
  EXPECT(w.location_ids[1] = 2, MALFORMED, "names location 2 of 2");
  EXPECT(w.locations[1].file = 9999, MALFORMED, "location 1 has a text");
  EXPECT(w.bindings[0].size = 65, MALFORMED, "binding 0");
  EXPECT(w.bindings[2].index = 1, MALFORMED, "binding 2");
  EXPECT(w.bindings[1].offset = UINT64_MAX, MALFORMED, "binding 1");
  EXPECT(w.bindings[0].storage = 4, MALFORMED, "binding 0");
  EXPECT(w.bindings[1].index = 1, MALFORMED, "binding 1");
  EXPECT(w.refs[0].external = 1, MALFORMED, "constant 0");
  EXPECT(plan_external(&w, (uint64_t[2]){1, 2}, UINT64_MAX), MALFORMED,
         "constant 1");
  EXPECT(plan_external(&w, (uint64_t[2]){1, 2}, 64), NOT_FOUND,
         "neither in the plan nor in the context");
  EXPECT(w.steps[0].count = 2, MALFORMED, "step 0");
  EXPECT(w.steps[0].kernel = 2, MALFORMED, "names no kernel");
  EXPECT(w.steps[0].first = 9, MALFORMED, "do not exist");
  EXPECT(w.bindings[4].size = 8, MALFORMED, "unequal sizes");
  EXPECT(w.bindings[4].storage = PESTLE_PLAN_CONSTANT, MALFORMED, "constant");
  EXPECT(w.steps[2].target = 9, MALFORMED, "jumps out");
  EXPECT(w.steps[5].count = 4, MALFORMED, "jumps out");
  EXPECT(w.steps[8].kind = PESTLE_PLAN_COPY, MALFORMED, "step 8");
  EXPECT(w.steps[8].kind = 99, MALFORMED, "unknown kind");
  EXPECT(w.steps[8] = w.steps[0], MALFORMED, "not its end");
  EXPECT(plan_external(&w, (uint64_t[2]){1, 2}, 0), MALFORMED, "constant 1");
  pestle_context_release(context);
}

// An input and an output that say of each other that they share storage.
static void test_aliases(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  static plan_writer_t w;
  static const struct {
    int32_t input, output;  // what they say
    uint8_t bounded;        // 1: the output, 2: the input
    int64_t extent;         // of both axes of the output
    const char* says;       // NULL: they may
  } rows[] = {
      {0, 0, 0, 4, NULL},
      {-1, -1, 0, 4, NULL},
      {0, -1, 0, 4, "input 0 of the plan shares the storage"},
      {0, 1, 0, 4, "input 0 of the plan shares the storage"},
      {0, 0, 0, 2, "input 0 of the plan shares the storage"},
      {0, 0, 1, 4, "input 0 of the plan shares the storage"},
      {0, 0, 2, 4, "input 0 of the plan is bounded"},
      {1, 0, 0, 4, "input 0 of the plan shares the storage"},
      {-2, -1, 0, 4, "input 0 of the plan shares the storage"},
      {-1, 0, 0, 4, "output 0 of the plan shares the storage"},
      {-1, 2, 0, 4, "output 0 of the plan shares the storage"},
      {-1, INT32_MIN, 0, 4, "output 0 of the plan shares the storage"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    write_rich(&w);
    w.inputs[0].alias = rows[i].input;
    w.outputs[0].alias = rows[i].output;
    w.inputs[0].bounded = rows[i].bounded >> 1;
    w.outputs[0].bounded = rows[i].bounded & 1;
    w.outputs[0].dims[0] = w.outputs[0].dims[1] = rows[i].extent;
    w.outputs[0].size = (uint64_t)(4 * rows[i].extent * rows[i].extent);
    w.bindings[2].size = w.outputs[0].size;
    size_t size;
    char* data = plan_finish(&w, &size);
    if (rows[i].says) {
      assert_error(try_plan(context, data, size), MALFORMED, rows[i].says);
    } else {
      assert_ok(try_plan(context, data, size));
    }
    free(data);
  }
  pestle_context_release(context);
}

// A loop may be the last of a plan, which then ends elsewhere.
static void test_last_step(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  static plan_writer_t w;
  size_t size;
  write_rich(&w);
  w.steps[6].kind = PESTLE_PLAN_END;
  w.steps[8].kind = PESTLE_PLAN_JUMP;
  w.steps[8].target = 6;
  char* data = plan_finish(&w, &size);
  assert_ok(try_plan(context, data, size));
  free(data);
  pestle_context_release(context);
}

// The plan above with a call of input 0 that gives the i32.
static void write_call(plan_writer_t* w) {
  write_rich(w);
  w->tensors[0] =
      (pestle_plan_tensor_t){.dtype = PESTLE_F32, .rank = w->inputs[0].rank};
  memcpy(w->tensors[0].dims, w->inputs[0].dims, sizeof(w->inputs[0].dims));
  w->tensors[1] = (pestle_plan_tensor_t){.dtype = PESTLE_I32};
  w->header.call_tensors.count = 2;
  w->calls[0] = (pestle_plan_call_t){
      .name = plan_text(w, "f"), .operand_count = 1, .result_count = 1};
  w->header.calls.count = 1;
  uint32_t first = plan_bind(w, PESTLE_PLAN_INPUT, 0, 0, 64);
  uint32_t result = plan_bind(w, PESTLE_PLAN_ARENA, 0, 0, 4);
  w->bindings[result].flags = PESTLE_PLAN_WRITTEN;
  w->steps[8].kind = PESTLE_PLAN_CALL;
  w->steps[8].first = first;
  w->steps[8].count = 2;
  plan_step(w, PESTLE_PLAN_END, 0, 0, 0, 0);  // 9
}

// The plan above for two processes that sum input 0, and one number.
static void write_collectives(plan_writer_t* w) {
  write_rich(w);
  w->header.partitions = 2;
  w->collectives[0] = (pestle_plan_collective_t){.kind = PESTLE_PLAN_ALL_REDUCE,
                                                 .dtype = PESTLE_F32,
                                                 .tensor_count = 1,
                                                 .group_count = 1,
                                                 .group_size = 2};
  w->collectives[1] = (pestle_plan_collective_t){
      .kind = PESTLE_PLAN_PARTITION_ID, .dtype = PESTLE_U32, .tensor_count = 1};
  w->header.collectives.count = 2;
  w->groups[1] = 1;
  w->header.groups.count = 2;
  uint32_t first = plan_bind(w, PESTLE_PLAN_INPUT, 0, 0, 64);
  uint32_t arena = (uint32_t)plan_arena(w, 64);
  plan_bind_written(w, PESTLE_PLAN_ARENA, 0, arena, 64);
  uint32_t number = plan_bind_written(w, PESTLE_PLAN_ARENA, 0, arena, 4);
  w->steps[8].kind = PESTLE_PLAN_COLLECTIVE;
  w->steps[8].first = first;
  w->steps[8].count = 2;
  plan_step(w, PESTLE_PLAN_COLLECTIVE, 1, number, 1, 0);  // 9
  plan_step(w, PESTLE_PLAN_END, 0, 0, 0, 0);              // 10
}

static void test_collectives(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  static plan_writer_t w;
  size_t size;
  write_collectives(&w);
  char* data = plan_finish(&w, &size);
  assert_ok(try_plan(context, data, size));
  free(data);
  // Nobody may send; whoever sums has a group.
  write_collectives(&w);
  w.collectives[0].kind = PESTLE_PLAN_PERMUTE;
  w.collectives[0].group_count = 0;
  data = plan_finish(&w, &size);
  assert_ok(try_plan(context, data, size));
  free(data);
#define EXPECT_COLLECTIVE(change, text)                           \
  do {                                                            \
    write_collectives(&w);                                        \
    (void)(change);                                               \
    data = plan_finish(&w, &size);                                \
    assert_error(try_plan(context, data, size), MALFORMED, text); \
    free(data);                                                   \
  } while (0)
  EXPECT_COLLECTIVE(w.header.replicas = 0, "0 replicas of 2 partitions");
  EXPECT_COLLECTIVE(w.header.partitions = INT32_MAX, "partitions");
  EXPECT_COLLECTIVE(w.collectives[0].kind = 99, "collective 0");
  EXPECT_COLLECTIVE(w.collectives[0].reduction = 99, "collective 0");
  EXPECT_COLLECTIVE(w.collectives[0].dtype = PESTLE_INDEX, "collective 0");
  EXPECT_COLLECTIVE(w.collectives[0].tensor_count = 0, "collective 0");
  EXPECT_COLLECTIVE(w.collectives[0].first_group = 1, "do not exist");
  EXPECT_COLLECTIVE(w.collectives[0].group_count = UINT32_MAX, "do not exist");
  EXPECT_COLLECTIVE(w.collectives[0].group_count = 0, "do not exist");
  EXPECT_COLLECTIVE(w.groups[1] = 2, "do not exist");
  EXPECT_COLLECTIVE(w.groups[0] = -1, "do not exist");
  EXPECT_COLLECTIVE(w.collectives[0].kind = PESTLE_PLAN_ALL_GATHER,
                    "another size");
  EXPECT_COLLECTIVE(w.collectives[0].kind = PESTLE_PLAN_REDUCE_SCATTER,
                    "another size");
  EXPECT_COLLECTIVE(w.collectives[0].first_group = 99, "do not exist");
  EXPECT_COLLECTIVE(w.collectives[0].group_size = 0, "do not exist");
  EXPECT_COLLECTIVE((w.collectives[0].kind = PESTLE_PLAN_PERMUTE,
                     w.collectives[0].group_size = 1),
                    "do not exist");
  EXPECT_COLLECTIVE(w.steps[9].count = 0, "does not give one u32");
  EXPECT_COLLECTIVE((w.bindings[w.steps[9].first].storage = PESTLE_PLAN_INPUT,
                     w.bindings[w.steps[9].first].offset = 0,
                     w.bindings[w.steps[9].first].flags = 0),
                    "does not give one u32");
  // Elements are whole, and as many for each process.
  EXPECT_COLLECTIVE((w.bindings[w.steps[8].first].size = 62,
                     w.bindings[w.steps[8].first + 1].size = 62),
                    "another size");
  EXPECT_COLLECTIVE((w.collectives[0].kind = PESTLE_PLAN_REDUCE_SCATTER,
                     w.bindings[w.steps[8].first].size = 4,
                     w.bindings[w.steps[8].first + 1].size = 2),
                    "another size");
  EXPECT_COLLECTIVE((w.collectives[0].kind = PESTLE_PLAN_ALL_TO_ALL,
                     w.bindings[w.steps[8].first].size = 60,
                     w.bindings[w.steps[8].first + 1].size = 60),
                    "another size");
  EXPECT_COLLECTIVE(w.steps[8].kernel = 2, "names no collective");
  EXPECT_COLLECTIVE(w.steps[8].count = 1, "does not fit its collective");
  EXPECT_COLLECTIVE(w.bindings[w.steps[9].first].size = 2, "one u32");
  EXPECT_COLLECTIVE(w.bindings[w.steps[8].first + 1].size = 32, "another size");
  EXPECT_COLLECTIVE(
      w.bindings[w.steps[8].first + 1] = w.bindings[w.steps[8].first],
      "writes to an input");
  pestle_context_release(context);
}

static void test_calls(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  static plan_writer_t w;
  size_t size;
  write_call(&w);
  char* data = plan_finish(&w, &size);
  assert_ok(try_plan(context, data, size));
  free(data);
#define EXPECT_CALL(change, text)                                 \
  do {                                                            \
    write_call(&w);                                               \
    (void)(change);                                               \
    data = plan_finish(&w, &size);                                \
    assert_error(try_plan(context, data, size), MALFORMED, text); \
    free(data);                                                   \
  } while (0)
  EXPECT_CALL(w.calls[0].name = 9999, "call 0 has a text");
  EXPECT_CALL(w.calls[0].config = 9999, "call 0 has a text");
  EXPECT_CALL(w.calls[0].kind = 7, "no kind");
  EXPECT_CALL(w.calls[0].first = 1, "tensors that do not exist");
  EXPECT_CALL(w.calls[0].first = 99, "tensors that do not exist");
  EXPECT_CALL(w.calls[0].operand_count = UINT32_MAX, "do not exist");
  EXPECT_CALL(w.tensors[0].dtype = PESTLE_INDEX, "tensor 0");
  EXPECT_CALL(w.tensors[0].rank = 17, "tensor 0");
  EXPECT_CALL(w.tensors[0].dims[0] = -1, "tensor 0");
  EXPECT_CALL(w.tensors[0].dims[0] = INT64_MAX / 8, "tensor 0");
  EXPECT_CALL(w.tensors[0].dims[0] = INT64_C(1) << 53, "tensor 0");
  EXPECT_CALL(w.tensors[1].dtype = PESTLE_I64, "another size");
  EXPECT_CALL(w.steps[8].kernel = 1, "names no call");
  EXPECT_CALL(w.steps[8].count = 1, "does not fit its call");
  EXPECT_CALL(w.steps[8].first = 9999, "do not exist");
  EXPECT_CALL(w.bindings[w.steps[8].first + 1].flags = 0, "does not write");
  EXPECT_CALL(w.calls[0].operand_count = 2 + 0 * (w.calls[0].result_count = 0),
              "does not write a result");
  // What a function of this process does, no file can hold.
  write_call(&w);
  w.calls[0].kind = PESTLE_PLAN_CALL_EVAL;
  w.calls[0].flags = PESTLE_PLAN_EVAL_TRANSIENT;
  pestle_plan_t* transient = fixture_plan(context, &w);
  assert_error(pestle_plan_save(transient, "/nonexistent/x.plan"), UNSUPPORTED,
               "the plan has op 'f' done by a function of this process");
  pestle_plan_release(transient);
  // No function of that name is here.
  write_call(&w);
  data = plan_finish(&w, &size);
  pestle_plan_t* plan;
  pestle_executable_t* e;
  assert_ok(pestle_plan_create(context, data, size, NULL, NULL, &plan));
  assert_error(pestle_executable_create(context, plan, NULL, &e), NOT_FOUND,
               "calls 'f'");
  pestle_plan_release(plan);
  free(data);
  pestle_context_release(context);
}

// What a CPU lacks is named, as far as it fits a sentence; "-name" and nothing are no
// features.
static void test_features(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  static plan_writer_t w;
  char many[900] = "";
  for (int i = 0; i < 80; ++i)
    snprintf(many + strlen(many), sizeof(many) - strlen(many), ",+none%02d", i);
  const struct {
    const char *needed, *says;  // NULL: it is loaded
  } rows[] = {
      {"", NULL},
      {"+fma, +avx2 ,+sse2", NULL},
      {",,+fma,", NULL},
      {"-sse9,sse10,+fma", NULL},
      {"+fma,+amx,,-x,+sse9",
       "plan 'rich' needs +amx,+sse9, which device test"},
      {"+fm", "needs +fm, which"},
      {many, "+none49,+none50, which device test"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    write_rich(&w);
    w.devices[0].features = plan_text(&w, rows[i].needed);
    pestle_plan_t* plan = fixture_plan(context, &w);
    pestle_executable_t* e = NULL;
    pestle_status_t status = pestle_executable_create(context, plan, NULL, &e);
    if (rows[i].says) {
      assert_error(status, INCOMPATIBLE, rows[i].says);
    } else {
      assert_ok(status);
    }
    pestle_executable_release(e);
    pestle_plan_release(plan);
  }
  pestle_context_release(context);
}

static void test_save_and_load(void** state) {
  (void)state;
  pestle_context_t* context = fixture_context(NULL);
  char folder[] = "/tmp/pestle-plan-test-XXXXXX";
  assert_non_null(mkdtemp(folder));
  char path[64];
  snprintf(path, sizeof(path), "%s/model.plan", folder);
  static plan_writer_t w;
  int64_t dims[] = {6};
  fixture_write_add1(&w, 1, dims, 0);
  pestle_plan_t* plan = fixture_plan(context, &w);
  assert_ok(pestle_plan_save(plan, path));
  pestle_plan_t* loaded;
  assert_ok(pestle_plan_load(context, path, &loaded));
  size_t size, loaded_size;
  const void* data = pestle_plan_data(plan, &size);
  const void* loaded_data = pestle_plan_data(loaded, &loaded_size);
  assert_int_equal(size, loaded_size);
  assert_memory_equal(data, loaded_data, size);
  pestle_executable_t* e;
  assert_ok(pestle_executable_create(context, loaded, NULL, &e));
  pestle_executable_release(e);
  pestle_plan_release(loaded);
  // Not there, empty, cut off.
  assert_error(pestle_plan_load(context, "/nonexistent/x.plan", &loaded),
               NOT_FOUND, "/nonexistent/x.plan");
  assert_error(pestle_plan_save(plan, "/nonexistent/x.plan"), IO,
               "while saving a plan");
  assert_int_equal(truncate(path, 100), 0);
  assert_error(pestle_plan_load(context, path, &loaded), MALFORMED, path);
  assert_int_equal(truncate(path, 0), 0);
  assert_error(pestle_plan_load(context, path, &loaded), MALFORMED, path);
  pestle_plan_release(plan);
  unlink(path);
  rmdir(folder);
  pestle_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sound),
      cmocka_unit_test(test_repeats),
      cmocka_unit_test(test_cut_and_flipped),
      cmocka_unit_test(test_lies),
      cmocka_unit_test(test_sentences),
      cmocka_unit_test(test_aliases),
      cmocka_unit_test(test_last_step),
      cmocka_unit_test(test_other_build),
      cmocka_unit_test(test_collectives),
      cmocka_unit_test(test_calls),
      cmocka_unit_test(test_features),
      cmocka_unit_test(test_save_and_load),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
