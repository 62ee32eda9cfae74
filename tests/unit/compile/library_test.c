// SPDX-License-Identifier: Apache-2.0
// Ops that a backend has ready-made: which it is asked for and with what, the
// steps that come of it, and what happens where it is missing. The backend here
// negates what it is given, so that it can be told from the op's own kernels.
#include <stdlib.h>
#include <unistd.h>

#include "pestle/pestle.h"
#include "test.h"

static int g_asked, g_run;
static bool g_fails, g_lost;
static const pestle_host_t* g_host;

static bool takes(void* self, const pestle_library_op_t* op) {
  const pestle_library_view_t* x = op->operands;
  (void)self;
  ++g_asked;
  assert_true(op->struct_size >= sizeof(*op));
  if (g_lost || strcmp(op->name, "cholesky") != 0) return false;
  assert_int_equal(op->operand_count, 1);
  assert_int_equal(op->result_count, 1);
  assert_int_equal(op->flags, PESTLE_LIBRARY_LOWER);
  assert_int_equal(x->rank, 3);
  assert_int_equal(x->strides[2], 4);
  assert_int_equal(x->strides[1], 4 * x->dims[2]);
  assert_int_equal(x->strides[0], 4 * x->dims[2] * x->dims[1]);
  return x->dtype == PESTLE_F32;
}

static pestle_status_t run(void* self, int32_t device,
                           pestle_device_stream_t* stream,
                           const pestle_library_op_t* op) {
  (void)self;
  ++g_run;
  assert_int_equal(device, 0);
  assert_null(stream);
  if (g_fails) {
    return g_host->status_make(g_host->self, PESTLE_STATUS_RESOURCE_EXHAUSTED,
                               __FILE__, __LINE__, "enough for today");
  }
  for (int i = 0; i < 8; ++i) {
    ((float*)op->results[0].data)[i] = -((const float*)op->operands[0].data)[i];
  }
  return NULL;
}

static const pestle_library_api_t g_library = {
    .struct_size = sizeof(g_library), .takes = takes, .run = run};
static const pestle_backend_t g_backend = {.struct_size = sizeof(g_backend),
                                           .name = "negator",
                                           .device_type = PESTLE_DEVICE_CPU,
                                           .score = 1000,
                                           .library = &g_library};

static const pestle_backend_abi_info_t* abi_info(void) {
  static const pestle_backend_abi_info_t info =
      PESTLE_BACKEND_ABI_INFO("negator", "n-1");
  return &info;
}

static const pestle_backend_t* init(const pestle_host_t* host,
                                    pestle_status_t* out_status) {
  *out_status = NULL;
  g_host = host;
  return &g_backend;
}

static pestle_context_t* make_context(bool with) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true,
                                      .manual_backends = true,
                                      .threads = 1};
  pestle_context_t* c;
  assert_ok(pestle_context_create(&options, &c));
  if (with) assert_ok(pestle_context_add_backend(c, abi_info, NULL, init));
  g_fails = g_lost = false;
  g_asked = g_run = 0;
  return c;
}

#define M "tensor<2x2x2xf32>"
static const char text[] =
    "func.func @main(%x: " M ", %y: tensor<2x2xf64>) -> (" M
    ", tensor<2x2xf64>) {\n"
    "%a = stablehlo.add %x, %x : " M
    "\n"
    "%l = stablehlo.cholesky %a, lower = true : " M
    "\n"
    "%b = stablehlo.add %l, %x : " M
    "\n"
    "%i = \"pestle.inverse\"(%y) : (tensor<2x2xf64>) -> tensor<2x2xf64>\n"
    "return %b, %i : " M ", tensor<2x2xf64>\n}";

static const float g_x[8] = {2, 0, 0, 2, 8, 0, 0, 8};
static const double g_y[4] = {2, 0, 0, 4};
static float g_out[8];
static double g_inverse[4];

static pestle_status_t run_plan(pestle_context_t* c, pestle_plan_t* plan) {
  pestle_executable_t* e;
  PESTLE_TRY(pestle_executable_create(c, plan, NULL, &e));
  int64_t dims[] = {2, 2, 2};
  pestle_dl_device_t cpu = {PESTLE_DEVICE_CPU, 0};
  pestle_dl_dtype_t f32 = pestle_dtype_to_dlpack(PESTLE_F32);
  pestle_dl_dtype_t f64 = pestle_dtype_to_dlpack(PESTLE_F64);
  pestle_tensor_t in[] = {{(void*)(uintptr_t)g_x, cpu, 3, f32, dims, NULL, 0},
                          {(void*)(uintptr_t)g_y, cpu, 2, f64, dims, NULL, 0}};
  pestle_tensor_t out[] = {{g_out, cpu, 3, f32, dims, NULL, 0},
                           {g_inverse, cpu, 2, f64, dims, NULL, 0}};
  pestle_status_t status = pestle_executable_run(e, NULL, in, 2, out, 2, NULL);
  pestle_executable_release(e);
  return status;
}

static pestle_plan_t* compile(pestle_context_t* c, pestle_numerics_t numerics) {
  pestle_module_t* module;
  pestle_plan_t* plan;
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .numerics = numerics};
  assert_ok(pestle_module_parse(c, text, strlen(text), NULL, &module));
  assert_ok(pestle_compile(c, module, NULL, &options, &plan));
  pestle_module_release(module);
  return plan;
}

// |first|: of the result whose operand is 4.
static void check(float first) {
  assert_float_equal(g_out[0], first, 1e-6);
  assert_float_equal(g_inverse[0], 0.5, 1e-12);
  assert_float_equal(g_inverse[3], 0.25, 1e-12);
}

static void is_asked_and_runs(void** state) {
  (void)state;
  pestle_context_t* c = make_context(true);
  pestle_plan_t* plan = compile(c, PESTLE_NUMERICS_DEFAULT);
  // cholesky and inverse, the one when it is compiled and the other not taken.
  assert_int_equal(g_asked, 2);
  assert_ok(run_plan(c, plan));
  assert_int_equal(g_run, 1);
  check(2 - 4);
  g_fails = true;
  assert_error(run_plan(c, plan), RESOURCE_EXHAUSTED, "enough for today");
  assert_error(run_plan(c, plan), RESOURCE_EXHAUSTED,
               "in 'cholesky' by the library of backend 'negator'");
  pestle_plan_release(plan);
  pestle_context_release(c);
}

static void others_do_without(void** state) {
  (void)state;
  pestle_context_t* c = make_context(true);
  pestle_plan_t* plan = compile(c, PESTLE_NUMERICS_STRICT);
  assert_int_equal(g_asked, 0);
  assert_ok(run_plan(c, plan));
  check(2 + 2);
  pestle_plan_release(plan);
  pestle_context_release(c);
  c = make_context(false);
  plan = compile(c, PESTLE_NUMERICS_DEFAULT);
  assert_ok(run_plan(c, plan));
  assert_int_equal(g_asked + g_run, 0);
  check(2 + 2);
  pestle_plan_release(plan);
  pestle_context_release(c);
}

static void plans_need_their_library(void** state) {
  (void)state;
  pestle_context_t* c = make_context(true);
  pestle_plan_t* plan = compile(c, PESTLE_NUMERICS_DEFAULT);
  char path[] = "/tmp/pestle-library-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  assert_ok(pestle_plan_save(plan, path));
  pestle_plan_release(plan);
  pestle_context_release(c);
  c = make_context(true);
  assert_ok(pestle_plan_load(c, path, &plan));
  assert_ok(run_plan(c, plan));
  check(2 - 4);
  g_lost = true;
  assert_error(run_plan(c, plan), NOT_FOUND,
               "backend 'negator', which does not take it");
  pestle_plan_release(plan);
  pestle_context_release(c);
  c = make_context(false);
  assert_ok(pestle_plan_load(c, path, &plan));
  assert_error(run_plan(c, plan), NOT_FOUND,
               "backend 'negator', which is not here");
  pestle_plan_release(plan);
  pestle_context_release(c);
  unlink(path);
}

// A name of Pestle's own in a text is no library.
static void texts_cannot_name_one(void** state) {
  (void)state;
  static const char sly[] =
      "func.func @main(%x: tensor<2x2x2xf32>) -> tensor<2x2x2xf32> {\n"
      "%y = stablehlo.custom_call @pestle.library.cholesky(%x) "
      "{backend_config = \"negator\"} : (tensor<2x2x2xf32>) -> "
      "tensor<2x2x2xf32>\nreturn %y : tensor<2x2x2xf32>\n}";
  pestle_context_t* c = make_context(true);
  pestle_module_t* module;
  pestle_plan_t* plan;
  assert_ok(pestle_module_parse(c, sly, strlen(sly), NULL, &module));
  assert_error(pestle_compile(c, module, NULL, NULL, &plan), NOT_FOUND,
               "calls 'pestle.library.cholesky'");
  pestle_module_release(module);
  pestle_context_release(c);
}

static void is_listed(void** state) {
  (void)state;
  pestle_context_t* c = make_context(true);
  pestle_device_t* device;
  const char* id;
  assert_ok(pestle_context_device(c, "ref", &device));
  assert_ptr_equal(pestle_device_library(device, 0, &id), &g_backend);
  assert_string_equal(id, "negator n-1");
  assert_null(pestle_device_library(device, 1, &id));
  assert_int_equal(pestle_context_device_count(c, "negator"), 0);
  pestle_context_release(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(is_asked_and_runs),
      cmocka_unit_test(others_do_without),
      cmocka_unit_test(plans_need_their_library),
      cmocka_unit_test(texts_cannot_name_one),
      cmocka_unit_test(is_listed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
