// SPDX-License-Identifier: Apache-2.0
// A network of two dense layers built through the C API, compiled and run: types,
// attributes and tensors by the helpers of pestle/helpers.h. Exit
// code 0: the result is right.
#include <math.h>
#include <stdio.h>

#include "pestle/pestle.h"

enum { ROWS = 2, IN = 3, HIDDEN = 4, OUT = 2 };

// h = max(x w1 + b1, 0), y = h w2 + b2
static const float w1[IN * HIDDEN] = {1, 0, -1, 2, 0, 1, 1, -1, 2, -2, 0, 1};
static const float b1[HIDDEN] = {0.5f, 0, -0.5f, 1};
static const float w2[HIDDEN * OUT] = {1, -1, 2, 0.5f, 0, 1, -1, 2};
static const float b2[OUT] = {0.25f, -0.25f};

// A constant of |type| whose elements are |data|, which is copied.
static pestle_status_t constant(pestle_builder_t* b, pestle_type_t type,
                                const void* data, pestle_value_t** out) {
  return pestle_op_constant(
      b,
      PESTLE_ATTRS(constant,
                   .value = {type, data, pestle_type_byte_size(type), false}),
      out);
}

static pestle_status_t build(pestle_context_t* context,
                             pestle_module_t** out_module) {
  pestle_type_t of_x = PESTLE_TYPE(PESTLE_F32, ROWS, IN);
  const char* name = "x";
  float nothing = 0;
  pestle_function_t* main_function;
  PESTLE_TRY(pestle_module_create(context, "network", out_module));
  PESTLE_TRY(pestle_module_add_function(*out_module, "main", &of_x, &name, 1,
                                        &main_function));
  pestle_builder_t b = pestle_builder_make(main_function);
  pestle_value_t *x = pestle_function_argument(main_function, 0), *y;
  pestle_value_t *weights, *bias, *zero;
  PESTLE_TRY(constant(&b, PESTLE_TYPE(PESTLE_F32, IN, HIDDEN), w1, &weights));
  PESTLE_TRY(constant(&b, PESTLE_TYPE(PESTLE_F32, HIDDEN), b1, &bias));
  PESTLE_TRY(pestle_op_linear(&b, x, weights, bias, &y));
  PESTLE_TRY(pestle_op_constant(
      &b,
      PESTLE_ATTRS(constant, .value = {PESTLE_TYPE(PESTLE_F32, ROWS, HIDDEN),
                                       &nothing, sizeof(nothing), true}),
      &zero));
  PESTLE_TRY(pestle_op_maximum(&b, y, zero, &y));
  PESTLE_TRY(constant(&b, PESTLE_TYPE(PESTLE_F32, HIDDEN, OUT), w2, &weights));
  PESTLE_TRY(constant(&b, PESTLE_TYPE(PESTLE_F32, OUT), b2, &bias));
  PESTLE_TRY(pestle_op_linear(&b, y, weights, bias, &y));
  return pestle_op_return(&b, &y, 1, NULL);
}

// The same by loops.
static void expect(const float* x, float* y) {
  for (int r = 0; r < ROWS; ++r) {
    float h[HIDDEN];
    for (int j = 0; j < HIDDEN; ++j) {
      h[j] = b1[j];
      for (int k = 0; k < IN; ++k)
        h[j] += x[r * IN + k] * w1[k * HIDDEN + j];
      h[j] = fmaxf(h[j], 0);
    }
    for (int j = 0; j < OUT; ++j) {
      y[r * OUT + j] = b2[j];
      for (int k = 0; k < HIDDEN; ++k)
        y[r * OUT + j] += h[k] * w2[k * OUT + j];
    }
  }
}

static void print(const char* name, const pestle_tensor_t* tensor) {
  char text[256];
  pestle_tensor_format(tensor, text, sizeof(text));
  printf("%s = %s, %zu bytes\n", name, text, pestle_tensor_byte_size(tensor));
}

static pestle_status_t run(pestle_context_t* context, pestle_plan_t* plan,
                           pestle_tensor_t* x, pestle_tensor_t* y) {
  const int64_t shape[] = {ROWS, IN};
  float values[ROWS * OUT];
  pestle_tensor_t out = PESTLE_TENSOR(values, PESTLE_F32, ROWS, OUT);
  pestle_executable_t* executable;
  PESTLE_TRY(pestle_tensor_init(context, PESTLE_F32, shape, 2, NULL, x));
  PESTLE_TRY(pestle_tensor_fill(x, 0.5));
  ((float*)x->data)[0] = -2;
  PESTLE_TRY(pestle_executable_create(context, plan, NULL, &executable));
  pestle_status_t status =
      pestle_executable_run(executable, NULL, x, 1, &out, 1, NULL);
  pestle_executable_release(executable);
  PESTLE_TRY(status);
  return pestle_tensor_init(context, PESTLE_F32, out.shape, out.ndim, values,
                            y);
}

int main(void) {
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true};
  pestle_context_t* context = NULL;
  pestle_module_t* module = NULL;
  pestle_plan_t* plan = NULL;
  pestle_tensor_t x = {0}, y = {0};
  float wanted[ROWS * OUT];
  pestle_status_t status = pestle_context_create(&options, &context);
  if (!status) status = build(context, &module);
  if (!status) status = pestle_compile(context, module, NULL, NULL, &plan);
  if (!status) status = run(context, plan, &x, &y);
  int wrong = status != NULL;
  if (status) {
    fprintf(stderr, "network: %s\n", pestle_status_message(status));
    pestle_status_release(status);
  } else {
    print("x", &x);
    print("y", &y);
    expect(x.data, wanted);
    for (int i = 0; i < ROWS * OUT; ++i)
      wrong |= fabsf(((float*)y.data)[i] - wanted[i]) > 1e-5f;
  }
  pestle_tensor_deinit(context, &x);
  pestle_tensor_deinit(context, &y);
  pestle_plan_release(plan);
  pestle_module_release(module);
  pestle_context_release(context);
  return wrong;
}
