// SPDX-License-Identifier: Apache-2.0
// A program that loads an extension and uses its op: prints "right" where values are,
// with the body and with the eval.
#include <pestle/pestle.h>
#include <stdio.h>

enum { N = 24 };

static int fail(pestle_status_t status) {
  char text[1024];
  pestle_status_format(status, text, sizeof(text));
  fprintf(stderr, "%s\n", text);
  pestle_status_release(status);
  return 1;
}

static pestle_status_t use(pestle_context_t* context, int* out_wrong) {
  pestle_device_t* device;
  PESTLE_TRY(pestle_context_device(context, NULL, &device));
  pestle_type_t type = {PESTLE_F32, 2, {4, N / 4}};
  pestle_type_t row = {PESTLE_I32, 1, {N / 4}};
  float x[N];
  int32_t y[N / 4];
  for (int i = 0; i < N; ++i)
    x[i] = (float)i / 4;
  for (int i = 0; i < N / 4; ++i)
    y[i] = i - 3;
  pestle_array_t *in[2], *z;
  PESTLE_TRY(pestle_array_from_data(device, &type, x, &in[0]));
  PESTLE_TRY(pestle_array_from_data(device, &row, y, &in[1]));
  const pestle_custom_attr_value_t attrs[] = {
      {.name = "alpha", .kind = PESTLE_CUSTOM_F64, .as.f64 = 4},
      {.name = "beta", .kind = PESTLE_CUSTOM_F64, .as.f64 = 2}};
  PESTLE_TRY(
      pestle_array_custom(context, "example.axpby", in, 2, attrs, 2, &z, 1));
  pestle_tensor_t view;
  PESTLE_TRY(pestle_array_eval(&z, 1, NULL));
  PESTLE_TRY(pestle_array_data(z, &view));
  for (int i = 0; i < N; ++i) {
    float want = 4 * x[i] + 2 * (float)y[i % (N / 4)];
    *out_wrong += ((const float*)view.data)[i] != want;
  }
  pestle_array_release(in[0]);
  pestle_array_release(in[1]);
  pestle_array_release(z);
  return NULL;
}

int main(int argc, char** argv) {
  pestle_context_t* context;
  int wrong = 0;
  if (argc != 2) return 2;
  pestle_status_t status = pestle_context_create(NULL, &context);
  if (status) return fail(status);
  status = pestle_context_load_extension(context, argv[1]);
  if (!status) status = pestle_context_load_extension(context, argv[1]);
  if (!status) status = use(context, &wrong);
  pestle_context_release(context);
  if (status) return fail(status);
  puts(wrong ? "wrong" : "right");
  return wrong != 0;
}
