// SPDX-License-Identifier: Apache-2.0
// A network of two layers that learns the exclusive or, with arrays alone: each step
// records the forward pass, the gradients and the update, and is then one
// evaluation. From the second step on its executable is known; the learning rate is
// an argument, so that it may change.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "pestle/pestle.h"

typedef pestle_array_t* a_t;
enum { ROWS = 4, IN = 2, HIDDEN = 8 };

static void check(pestle_status_t status) {
  if (!status) return;
  char text[1024];
  pestle_status_format(status, text, sizeof(text));
  fprintf(stderr, "%s\n", text);
  exit(1);
}

// What a step makes and nobody keeps: released at its end.
static a_t garbage[64];
static int garbage_count;

static a_t keep(a_t array) {
  return garbage[garbage_count++] = array;
}

static a_t add(a_t x, a_t y) {
  a_t out;
  check(pestle_array_add(x, y, &out));
  return keep(out);
}
static a_t subtract(a_t x, a_t y) {
  a_t out;
  check(pestle_array_subtract(x, y, &out));
  return keep(out);
}
static a_t multiply(a_t x, a_t y) {
  a_t out;
  check(pestle_array_multiply(x, y, &out));
  return keep(out);
}
static a_t tanh_of(a_t x) {
  a_t out;
  check(pestle_array_tanh(x, &out));
  return keep(out);
}
static a_t sum_rows(a_t x) {
  a_t out;
  check(pestle_array_fold(PESTLE_OP_ADD, x, PESTLE_I64S(0), &out));
  return keep(out);
}

static a_t row(a_t x) {
  pestle_type_t type = {PESTLE_F32, 2, {1, pestle_array_type(x).dims[0]}};
  a_t out;
  check(pestle_array_reshape(x, NULL, type, &out));
  return keep(out);
}

// x times y, contracted over an axis of each: (1, 0) is the product as it is.
static a_t dot(a_t x, a_t y, int64_t x_axis, int64_t y_axis) {
  pestle_dot_general_attrs_t attrs = {
      .struct_size = sizeof(attrs),
      .lhs_contracting_dimensions = {&x_axis, 1},
      .rhs_contracting_dimensions = {&y_axis, 1}};
  pestle_type_t type = {PESTLE_F32,
                        2,
                        {pestle_array_type(x).dims[1 - x_axis],
                         pestle_array_type(y).dims[1 - y_axis]}};
  a_t out;
  check(pestle_array_dot_general(x, y, &attrs, type, &out));
  return keep(out);
}

static a_t from(pestle_device_t* device, int64_t rows, int64_t columns,
                const float* data) {
  pestle_type_t type = {PESTLE_F32, 2, {rows, columns}};
  a_t array;
  check(pestle_array_from_data(device, &type, data, &array));
  return array;
}

// Small weights, the same at each run.
static a_t weights(pestle_device_t* device, int64_t rows, int64_t columns) {
  float data[IN * HIDDEN + HIDDEN];
  for (int64_t i = 0; i < rows * columns; ++i)
    data[i] = sinf((float)(7 * i + rows) * 1.7f);
  return from(device, rows, columns, data);
}

// |*w| becomes |*w| - rate * gradient.
static void update(a_t* w, a_t rate, a_t gradient) {
  a_t next;
  check(pestle_array_subtract(*w, multiply(rate, gradient), &next));
  pestle_array_release(*w);
  *w = next;
}

// p: W1, b1, W2, b2. The sum of squared errors before the step.
static a_t step(a_t x, a_t y, a_t rate, a_t one, a_t p[4]) {
  a_t h = tanh_of(add(dot(x, p[0], 1, 0), p[1]));
  a_t error = subtract(add(dot(h, p[2], 1, 0), p[3]), y);
  a_t dh = multiply(dot(error, p[2], 1, 1), subtract(one, multiply(h, h)));
  a_t loss;
  check(pestle_array_fold(PESTLE_OP_ADD, multiply(error, error),
                          PESTLE_I64S(0, 1), &loss));
  // A bias has one row.
  a_t db1 = row(sum_rows(dh)), db2 = row(sum_rows(error));
  update(&p[0], rate, dot(x, dh, 0, 0));
  update(&p[2], rate, dot(h, error, 0, 0));
  update(&p[1], rate, db1);
  update(&p[3], rate, db2);
  check(pestle_array_eval((a_t[]){p[0], p[1], p[2], p[3], loss}, 5, NULL));
  while (garbage_count)
    pestle_array_release(garbage[--garbage_count]);
  return loss;
}

int main(void) {
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .use_environment = true};
  check(pestle_context_create(&options, &context));
  check(pestle_context_device(context, NULL, &device));
  a_t x = from(device, ROWS, IN, (float[]){0, 0, 0, 1, 1, 0, 1, 1});
  a_t y = from(device, ROWS, 1, (float[]){0, 1, 1, 0});
  a_t p[] = {weights(device, IN, HIDDEN), weights(device, 1, HIDDEN),
             weights(device, HIDDEN, 1), weights(device, 1, 1)};
  a_t rate, one;
  float error = INFINITY;
  check(pestle_array_scalar(device, PESTLE_F32, 1, &one));
  for (int i = 0; i <= 500; ++i) {
    check(pestle_array_scalar(device, PESTLE_F32, i < 250 ? 0.1 : 0.05, &rate));
    a_t loss = step(x, y, rate, one, p);
    check(pestle_array_read(loss, &error, sizeof(error)));
    if (i % 100 == 0) printf("step %3d  squared error %.6f\n", i, error);
    pestle_array_release(loss);
    pestle_array_release(rate);
  }
  pestle_array_stats_t stats = {.struct_size = sizeof(stats)};
  pestle_array_stats(context, &stats);
  printf("%llu runs by %llu executables\n",
         (unsigned long long)stats.evaluations,
         (unsigned long long)stats.executables);
  for (int i = 0; i < 4; ++i)
    pestle_array_release(p[i]);
  pestle_array_release(x);
  pestle_array_release(y);
  pestle_array_release(one);
  pestle_context_release(context);
  return error < 0.01f ? 0 : 1;
}
