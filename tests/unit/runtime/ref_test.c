// SPDX-License-Identifier: Apache-2.0
// A plan whose kernel is Kernel IR, compiled and run by the built-in backend,
// saved, and run again from the file; and what a call of it costs.
#include <unistd.h>

#include "unit/runtime/fixture.h"

// y[i] = x[i] + 1.5 for a group of |count|.
static pestle_status_t compile_add(pestle_device_t* device, int64_t count,
                                   pestle_blob_t* out_artifact) {
  pestle_kir_inst_t inst[8] = {0};
  double value = 1.5;
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  for (int i = 0; i < 8; ++i) {
    inst[i].lanes = 1;
    for (int k = 0; k < 4; ++k)
      inst[i].arg[k] = PESTLE_KIR_NONE;
  }
#define INST(at, OP, TYPE, a, b, c, d)                              \
  inst[at].op = PESTLE_KIR_##OP, inst[at].type = PESTLE_##TYPE,     \
  inst[at].arg[0] = (uint32_t)(a), inst[at].arg[1] = (uint32_t)(b), \
  inst[at].arg[2] = (uint32_t)(c), inst[at].arg[3] = (uint32_t)(d)
  const uint32_t none = PESTLE_KIR_NONE;
  INST(0, CONST, INDEX, 0, 0, none, none);
  INST(1, CONST, INDEX, count, 0, none, none);
  INST(2, CONST, F32, bits, bits >> 32, none, none);
  INST(3, FOR, INDEX, 0, 1, 1, PESTLE_KIR_GROUP_X);
  INST(4, LOAD, F32, 0, 3, none, none);
  INST(5, ADD, F32, 4, 2, none, none);
  INST(6, STORE, NONE, 1, 3, 5, none);
  INST(7, END, NONE, none, none, none, none);
#undef INST
  inst[4].align_log2 = inst[6].align_log2 = 2;
  pestle_kir_buffer_t buffers[2] = {{0}, {0}};
  for (uint32_t i = 0; i < 2; ++i) {
    buffers[i] = (pestle_kir_buffer_t){.dtype = PESTLE_F32,
                                       .lanes = 1,
                                       .scope = PESTLE_KIR_GLOBAL,
                                       .flags = i ? 0 : PESTLE_KIR_READONLY,
                                       .count = (uint64_t)count,
                                       .align = 64,
                                       .arg_slot = i,
                                       .alias_set = (uint16_t)i};
  }
  pestle_kir_t kernel = {.struct_size = sizeof(kernel),
                         .abi_major = PESTLE_KIR_ABI_MAJOR,
                         .inst_size = sizeof(inst[0]),
                         .buffer_size = sizeof(buffers[0]),
                         .inst_count = 8,
                         .buffer_count = 2,
                         .strings_size = 5,
                         .inst = inst,
                         .buffer = buffers,
                         .strings = "\0add",
                         .name = 1,
                         .group = {count, 1, 1},
                         .lane = {1, 1, 1},
                         .arg_count = 2,
                         .hash = {1, (uint64_t)count}};
  pestle_kernel_options_t options = {.struct_size = sizeof(options)};
  const pestle_backend_t* backend = pestle_device_backend(device);
  return backend->target->compile(backend->self, &kernel, &options,
                                  out_artifact);
}

static pestle_plan_t* ref_plan(pestle_context_t* context, int64_t count) {
  pestle_device_t* device;
  assert_ok(pestle_context_device(context, "ref", &device));
  pestle_blob_t artifact;
  assert_ok(compile_add(device, count, &artifact));
  static plan_writer_t w;
  plan_begin(&w, "ref_add");
  plan_device(&w, "ref", "");
  plan_input(&w, "x", PESTLE_F32, 1, &count);
  plan_output(&w, "y", PESTLE_F32, 1, &count);
  uint32_t kernel = plan_kernel(&w, "add", 0, artifact.data, artifact.size, 2,
                                count, (uint64_t)count * 100);
  pestle_free_aligned(pestle_context_allocator(context), artifact.data,
                      artifact.size, 64);
  uint32_t first = plan_bind(&w, PESTLE_PLAN_INPUT, 0, 0, (uint64_t)count * 4);
  plan_bind(&w, PESTLE_PLAN_OUTPUT, 0, 0, (uint64_t)count * 4);
  plan_launch(&w, kernel, first);
  plan_step(&w, PESTLE_PLAN_END, 0, 0, 0, 0);
  return fixture_plan(context, &w);
}

static void run_plan(pestle_context_t* context, pestle_plan_t* plan,
                     int64_t count) {
  pestle_executable_t* e;
  assert_ok(pestle_executable_create(context, plan, NULL, &e));
  float* x = malloc((size_t)count * 4);
  for (int64_t i = 0; i < count; ++i)
    x[i] = (float)i;
  pestle_tensor_t in = test_view(x, PESTLE_F32, 1, &count, NULL);
  pestle_tensor_t out = {0};
  assert_ok(pestle_executable_run(e, NULL, &in, 1, &out, 1, NULL));
  for (int64_t i = 0; i < count; ++i) {
    assert_true(((float*)out.data)[i] == (float)i + 1.5f);
  }
  pestle_tensor_release(e, &out);
  free(x);
  pestle_executable_release(e);
}

static void test_ref(void** state) {
  (void)state;
  char path[] = "/tmp/pestle-ref-test-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  for (int64_t count = 1; count < 5000; count = count * 9 + 1) {
    pestle_context_t* context = fixture_context(NULL);
    pestle_plan_t* plan = ref_plan(context, count);
    run_plan(context, plan, count);
    assert_ok(pestle_plan_save(plan, path));
    pestle_plan_release(plan);
    pestle_context_release(context);
    context = fixture_context(NULL);
    assert_ok(pestle_plan_load(context, path, &plan));
    run_plan(context, plan, count);
    pestle_plan_release(plan);
    pestle_context_release(context);
  }
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ref),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
