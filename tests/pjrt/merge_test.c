// SPDX-License-Identifier: Apache-2.0
// Executions that repeat are merged: every result of every step has the bits that it
// has without, whatever the caller does in between.
#include <dirent.h>

#include "driver.h"

enum { N = 192, SIZE = N * N, STEPS = 120 };
#define M "tensor<192x192xf32>"

// loss(p, x), grad(p, x) with the same product in both, update(p given up, g).
static const char loss_text[] =
    "module @loss { func.func public @main(%p: " M ", %x: " M
    ") -> tensor<f32> {\n"
    "  %0 = stablehlo.dot_general %p, %x, contracting_dims = [1] x [0] : (" M
    ", " M ") -> " M
    "\n"
    "  %t = stablehlo.tanh %0 : " M
    "\n"
    "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "  %s = stablehlo.reduce(%t init: %z) applies stablehlo.add across "
    "dimensions = [0, 1] : (" M
    ", tensor<f32>) -> tensor<f32>\n"
    "  return %s : tensor<f32> } }";
static const char grad_text[] =
    "module @grad { func.func public @main(%p: " M ", %x: " M ") -> " M
    " {\n"
    "  %0 = stablehlo.dot_general %p, %x, contracting_dims = [1] x [0] : (" M
    ", " M ") -> " M
    "\n"
    "  %t = stablehlo.tanh %0 : " M
    "\n"
    "  %1 = stablehlo.dot_general %t, %x, contracting_dims = [1] x [1] : (" M
    ", " M ") -> " M
    "\n"
    "  return %1 : " M " } }";
static const char update_text[] =
    "module @update { func.func public @main(%p: " M
    " {tf.aliasing_output = 0 : i32}, %g: " M ") -> " M
    " {\n"
    "  %c = stablehlo.constant dense<1.0e-3> : " M
    "\n"
    "  %0 = stablehlo.multiply %g, %c : " M
    "\n"
    "  %1 = stablehlo.subtract %p, %0 : " M
    "\n"
    "  return %1 : " M " } }";

// Numbers that are the same in every run.
typedef struct random_t {
  uint32_t state;
} random_t;
static uint32_t draw(random_t* r, uint32_t below) {
  r->state = r->state * 1664525u + 1013904223u;
  return (r->state >> 8) % below;
}

static void start_as(const char* merge) {
  const PJRT_NamedValue options[] = {string_option("device", "cpu"),
                                     string_option("merge", merge)};
  open_plugin();
  assert_fine(create_client(options, 2, &client));
  ARGS(PJRT_Client_AddressableDevices, args);
  args.client = client;
  assert_fine(api->PJRT_Client_AddressableDevices(&args));
  device = args.addressable_devices[0];
}

static void start_with(bool merge) {
  start_as(merge ? "soon" : "0");
}

static PJRT_Buffer* matrix(random_t* r) {
  static float data[SIZE];
  const int64_t dims[] = {N, N};
  PJRT_Event* done;
  for (size_t i = 0; i < SIZE; ++i)
    data[i] = (float)draw(r, 2001) / 10000.f - 0.1f;
  PJRT_Buffer* buffer =
      put_as(data, PJRT_Buffer_Type_F32, dims, 2,
             PJRT_HostBufferSemantics_kImmutableOnlyDuringCall, &done);
  assert_fine(await(done));
  return buffer;
}

typedef struct programs_t {
  PJRT_LoadedExecutable *loss, *grad, *update;
} programs_t;

// What a caller does between executions.
typedef enum habit_e {
  PLAIN,      // reads the loss at the end of a step
  RESTLESS,   // waits, reads and keeps results here and there
  IMPATIENT,  // reads the loss at once
} habit_t;

static void pause_for(uint32_t us) {
  struct timespec time = {0, (long)us * 1000};
  nanosleep(&time, NULL);
}

static uint32_t bits_of(PJRT_Buffer* scalar) {
  uint32_t bits;
  assert_fine(get_raw(scalar, &bits, sizeof(bits)));
  return bits;
}

static PJRT_Buffer* step(const programs_t* f, PJRT_Buffer* p, PJRT_Buffer* x,
                         habit_t habit, random_t* r, uint32_t* out_loss) {
  PJRT_Buffer *loss, *grad, *next;
  PJRT_Buffer* const inputs[] = {p, x};
  bool restless = habit == RESTLESS;
  float* seen = NULL;
  execute(f->loss, inputs, 2, &loss);
  if (habit == IMPATIENT) *out_loss = bits_of(loss);
  if (restless && !draw(r, 8)) pause_for(draw(r, 500));
  execute(f->grad, inputs, 2, &grad);
  if (restless && !draw(r, 10)) {
    pin(grad);
    seen = address_of(grad);
  }
  bool is_seen = restless && !draw(r, 10);
  if (is_seen) pin(p);  // somebody reads it where it lies
  if (restless && !draw(r, 12)) {
    PJRT_Buffer* again;  // something else in between
    execute(f->loss, inputs, 2, &again);
    destroy_buffer(again);
  }
  PJRT_Buffer* const gradients[] = {p, grad};
  execute(f->update, gradients, 2, &next);
  assert_true(is_deleted(p));
  if (seen) assert_fine(try_unpin(grad));
  if (is_seen) assert_fine(try_unpin(p));
  destroy_buffer(grad);
  destroy_buffer(p);
  if (habit != IMPATIENT) *out_loss = bits_of(loss);
  destroy_buffer(loss);
  return next;
}

static void end(const programs_t* f, PJRT_Buffer* p, PJRT_Buffer* x) {
  destroy_buffer(p);
  destroy_buffer(x);
  destroy_loaded(f->loss);
  destroy_loaded(f->grad);
  destroy_loaded(f->update);
  stop();
}

static void train(bool merge, habit_t habit, uint32_t* losses, float* weights) {
  random_t numbers = {7}, r = {(uint32_t)habit + 1};
  start_with(merge);
  const programs_t f = {compile(loss_text), compile(grad_text),
                        compile(update_text)};
  PJRT_Buffer *p = matrix(&numbers), *x = matrix(&numbers);
  for (int i = 0; i < STEPS; ++i) {
    p = step(&f, p, x, habit, &r, &losses[i]);
    if (i == 20) pause_for(400000);  // the merged program is being compiled
  }
  get(p, weights, SIZE);
  end(&f, p, x);
}

static void bits_are_equal(habit_t habit) {
  static float weights[2][SIZE];
  uint32_t losses[2][STEPS];
  train(false, habit, losses[0], weights[0]);
  train(true, habit, losses[1], weights[1]);
  assert_memory_equal(losses[0], losses[1], sizeof(losses[0]));
  assert_memory_equal(weights[0], weights[1], sizeof(weights[0]));
}

static void plain(void** state) {
  (void)state;
  bits_are_equal(PLAIN);
}
static void restless(void** state) {
  (void)state;
  bits_are_equal(RESTLESS);
}
static void impatient(void** state) {
  (void)state;
  bits_are_equal(IMPATIENT);
}

// More arguments and results than an execution has room for: what is held has a
// block of its own, which its caller reads after somebody else has run and freed it.
enum { MANY = 52 };

// update_text with so many more, and the last of the three: it is freed as soon as it
// has been held.
static void many_text(char* out, size_t size) {
  size_t at = (size_t)snprintf(out, size,
                               "module @many { func.func public @main(%%p: " M
                               " {tf.aliasing_output = 0 : i32}, %%g: " M);
  for (int i = 0; i < MANY; ++i)
    at += (size_t)snprintf(out + at, size - at, ", %%e%d: tensor<2xf32>", i);
  at += (size_t)snprintf(out + at, size - at, ") -> (" M);
  for (int i = 0; i < MANY; ++i)
    at += (size_t)snprintf(out + at, size - at, ", tensor<2xf32>");
  at += (size_t)snprintf(out + at, size - at,
                         ") {\n  %%c = stablehlo.constant dense<1.0e-3> : " M
                         "\n  %%0 = stablehlo.multiply %%g, %%c : " M
                         "\n  %%1 = stablehlo.subtract %%p, %%0 : " M "\n");
  for (int i = 0; i < MANY; ++i) {
    at += (size_t)snprintf(
        out + at, size - at,
        "  %%r%d = stablehlo.add %%e%d, %%e%d : tensor<2xf32>\n", i, i, i);
  }
  at += (size_t)snprintf(out + at, size - at, "  return %%1");
  for (int i = 0; i < MANY; ++i)
    at += (size_t)snprintf(out + at, size - at, ", %%r%d", i);
  at += (size_t)snprintf(out + at, size - at, " : " M);
  for (int i = 0; i < MANY; ++i)
    at += (size_t)snprintf(out + at, size - at, ", tensor<2xf32>");
  at += (size_t)snprintf(out + at, size - at, " } }");
  assert_true(at < size);
}

static void train_many(bool merge, float* weights) {
  static char text[16 << 10];
  random_t numbers = {7};
  start_with(merge);
  many_text(text, sizeof(text));
  PJRT_LoadedExecutable *loss = compile(loss_text), *grad = compile(grad_text),
                        *many = compile(text);
  PJRT_Buffer *p = matrix(&numbers), *x = matrix(&numbers);
  PJRT_Buffer *inputs[MANY + 2], *outputs[MANY + 1];
  for (int i = 0; i < MANY; ++i)
    inputs[2 + i] = put((const float[]){(float)i, (float)-i}, 2);
  for (int k = 0; k < STEPS; ++k) {
    PJRT_Buffer* value;
    PJRT_Buffer* const both[] = {p, x};
    execute(loss, both, 2, &value);
    execute(grad, both, 2, &inputs[1]);
    inputs[0] = p;
    execute(many, inputs, MANY + 2, outputs);
    for (int i = 0; i < MANY; ++i) {
      float sum[2];
      if (k % 8 == 7) {
        get(outputs[1 + i], sum, 2);
        assert_true(sum[0] == 2.f * (float)i && sum[1] == -2.f * (float)i);
      }
      destroy_buffer(outputs[1 + i]);
    }
    destroy_buffer(inputs[1]);
    destroy_buffer(value);
    destroy_buffer(p);
    p = outputs[0];
    if (k == 20) pause_for(400000);  // the merged program is being compiled
  }
  get(p, weights, SIZE);
  for (int i = 0; i < MANY; ++i)
    destroy_buffer(inputs[2 + i]);
  destroy_buffer(p);
  destroy_buffer(x);
  destroy_loaded(loss);
  destroy_loaded(grad);
  destroy_loaded(many);
  stop();
}

static void many_arguments(void** state) {
  static float weights[2][SIZE];
  (void)state;
  train_many(false, weights[0]);
  train_many(true, weights[1]);
  assert_memory_equal(weights[0], weights[1], sizeof(weights[0]));
}

// --- When a sequence is compiled ---

// Whether a thread compiles sequences; -1 where the system does not say.
static int is_compiling(void) {
  char path[300], name[32];
  int found = 0;
  DIR* tasks = opendir("/proc/self/task");
  if (!tasks) return -1;
  for (struct dirent* task; (task = readdir(tasks));) {
    snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
    FILE* file = fopen(path, "r");
    if (!file) continue;
    found |= fgets(name, sizeof(name), file) && !strcmp(name, "pestle-merge\n");
    fclose(file);
  }
  closedir(tasks);
  return found;
}

static int64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * (int64_t)1000000000 + time.tv_nsec;
}

// Runs |steps| steps; 0: until a sequence is compiled. Returns whether one is.
static bool compiles(const char* merge, int steps, int64_t* out_ns) {
  random_t numbers = {7};
  uint32_t loss;
  start_as(merge);
  const programs_t f = {compile(loss_text), compile(grad_text),
                        compile(update_text)};
  PJRT_Buffer *p = matrix(&numbers), *x = matrix(&numbers);
  int64_t begin = now_ns();
  for (int i = 0; steps ? i < steps : !is_compiling(); ++i)
    p = step(&f, p, x, PLAIN, &numbers, &loss);
  *out_ns = now_ns() - begin;
  bool is = is_compiling();
  end(&f, p, x);
  return is;
}

// A loop is compiled as one when it has run for as long as that takes, some 10 ms a
// program and more: sooner only for who asks for it. Four steps are seen to repeat, and
// are expected to take 6 ms each until it is known better.
static void has_to_be_earned(void** state) {
  int64_t ns;
  (void)state;
  if (is_compiling() < 0) skip();
  assert_true(compiles("soon", 0, &ns));
  bool is = compiles("1", 4, &ns);
  assert_false(is && ns < 10 * 1000 * 1000);
  assert_true(compiles("1", 0, &ns));
  assert_false(compiles("0", 12, &ns));
}

// The client goes while a program is being compiled, and while parts are held.
static void ends_at_any_time(void** state) {
  random_t numbers = {7}, r = {1};
  uint32_t loss;
  (void)state;
  for (int steps = 3; steps < 40; steps += 9) {
    start_with(true);
    const programs_t f = {compile(loss_text), compile(grad_text),
                          compile(update_text)};
    PJRT_Buffer *p = matrix(&numbers), *x = matrix(&numbers), *last;
    for (int i = 0; i < steps; ++i) {
      p = step(&f, p, x, PLAIN, &r, &loss);
      if (i == 12) pause_for(200000);
    }
    PJRT_Buffer* const inputs[] = {p, x};
    execute(f.loss, inputs, 2, &last);
    destroy_loaded(f.loss);
    destroy_loaded(f.grad);
    destroy_loaded(f.update);
    stop();
    destroy_buffer(last);
    destroy_buffer(p);
    destroy_buffer(x);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plain),
      cmocka_unit_test(restless),
      cmocka_unit_test(impatient),
      cmocka_unit_test(many_arguments),
      cmocka_unit_test(has_to_be_earned),
      cmocka_unit_test(ends_at_any_time),
  };
  return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
