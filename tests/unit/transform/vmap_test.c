// SPDX-License-Identifier: Apache-2.0
// Every function of derivatives.mlir, batched: all arguments, each by itself, and each
// but one, against the function on one element after the other.
#include "pestle/transform.h"

#include "transform_test.h"

static pestle_context_t* context;
static pestle_module_t* cases;

enum { SIZE = 3, MOST = 16 };

// Element |at| of the batch, or what all share.
static numbers_list_t element(const numbers_list_t sets[SIZE],
                              const int64_t* axes, int at) {
  numbers_list_t out = list_make(0);
  for (size_t i = 0; i < sets[0].count; ++i)
    list_add(&out, &sets[axes[i] < 0 ? 0 : at].items[i]);
  return out;
}

// The sets side by side along axis 0 of |types|.
static numbers_list_t stacked(const numbers_list_t sets[SIZE],
                              const int64_t* axes,
                              const pestle_function_t* function) {
  numbers_list_t out = list_make(0);
  for (size_t i = 0; i < sets[0].count; ++i) {
    const pestle_type_t* type = function->body->block->arguments[i]->type;
    numbers_t a = numbers_make(type);
    for (int k = 0; k < (axes[i] < 0 ? 1 : SIZE); ++k) {
      const numbers_t* part = &sets[k].items[i];
      memcpy(a.data + (size_t)k * part->count, part->data,
             part->count * sizeof(double));
    }
    list_add(&out, &a);
    free(a.data);
  }
  return out;
}

static void compare(const char* name, const numbers_list_t* got,
                    const numbers_list_t* want, int at) {
  assert_int_equal(got->count, want->count);
  for (size_t i = 0; i < want->count; ++i) {
    const numbers_t *g = &got->items[i], *w = &want->items[i];
    assert_int_equal(g->count, SIZE * w->count);
    double scale = 1 + largest(w);
    for (size_t k = 0; k < w->count; ++k) {
      double value = g->data[(size_t)at * w->count + k];
      if (error_of(value, w->data[k], scale) <= 1e-12) continue;
      fail_msg("%s: result %zu, element %zu of %d: %.17g, not %.17g", name, i,
               k, at, value, w->data[k]);
    }
  }
}

static void check(pestle_function_t* function, pestle_module_t* module,
                  const numbers_list_t sets[SIZE], const int64_t* axes) {
  pestle_module_t* batched;
  pestle_vmap_options_t o = {.struct_size = sizeof(o),
                             .size = SIZE,
                             .argument_axes = axes,
                             .argument_axis_count = sets[0].count};
  pestle_status_t status = pestle_module_vmap(module, &o, &batched);
  // A kernel of batch groups, an initial value beside padding.
  bool is_refused = strstr(function->name, "batch_groups") ||
                    !strcmp(function->name, "window_add_padded");
  if (is_refused && status) {
    assert_code(status, UNSUPPORTED);
    return;
  }
  assert_ok(status);
  assert_ok(pestle_module_verify(batched));
  numbers_list_t arguments = stacked(sets, axes, pestle_module_entry(batched));
  numbers_list_t got = run(batched, &arguments);
  for (int at = 0; at < SIZE; ++at) {
    numbers_list_t one = element(sets, axes, at);
    numbers_list_t want = run(module, &one);
    compare(function->name, &got, &want, at);
    list_free(&one);
    list_free(&want);
  }
  list_free(&arguments);
  list_free(&got);
  pestle_module_release(batched);
}

static void test_function(void** state) {
  pestle_function_t* function = *state;
  pestle_module_t* module;
  int64_t axes[MOST];
  numbers_list_t sets[SIZE];
  assert_ok(pestle_module_extract(function, &module));
  for (int k = 0; k < SIZE; ++k)
    sets[k] = random_arguments(function, (uint64_t)k + 3);
  size_t count = sets[0].count;
  for (size_t i = 0; i < count; ++i)
    axes[i] = 0;
  check(function, module, sets, axes);
  for (size_t i = 0; count > 1 && i < count; ++i) {
    for (int others = -1; others < 1; ++others) {
      for (size_t k = 0; k < count; ++k)
        axes[k] = k == i ? -1 - others : others;
      check(function, module, sets, axes);
    }
  }
  for (int k = 0; k < SIZE; ++k)
    list_free(&sets[k]);
  pestle_module_release(module);
}

int main(int argc, char** argv) {
  size_t size, count = 0;
  static struct CMUnitTest tests[1024];
  if (!getenv("PESTLE_SOURCE_DIR")) return 77;
  char* text = read_source("tests/unit/transform/derivatives.mlir", &size);
  assert_ok(pestle_context_create(NULL, &context));
  assert_ok(
      pestle_module_parse(context, text, size, "derivatives.mlir", &cases));
  for (pestle_function_t* f = cases->first; f; f = f->next) {
    if (f->is_private || (argc > 1 && strcmp(argv[1], f->name))) continue;
    tests[count++] = (struct CMUnitTest){f->name, test_function, NULL, NULL, f};
  }
  int failed = _cmocka_run_group_tests("vmap", tests, count, NULL, NULL);
  pestle_module_release(cases);
  pestle_context_release(context);
  free(text);
  return failed;
}
