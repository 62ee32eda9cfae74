// SPDX-License-Identifier: Apache-2.0
// Functions of tests as doubles: random arguments, evaluation by ir/ref, whatever the
// dtypes are.
#ifndef PESTLE_TESTS_UNIT_TRANSFORM_TRANSFORM_TEST_H_
#define PESTLE_TESTS_UNIT_TRANSFORM_TRANSFORM_TEST_H_

#include <math.h>
#include <stdlib.h>

#include "base/half.h"
#include "ir/graph.h"
#include "ir/ref/ref.h"
#include "pestle/pestle.h"
#include "test.h"

// Values of one tensor: one double an element, two of a complex one.
typedef struct numbers_t {
  const pestle_type_t* type;
  size_t count;  // of doubles
  double* data;
} numbers_t;

typedef struct numbers_list_t {
  size_t count;
  numbers_t* items;
} numbers_list_t;

static inline numbers_t numbers_make(const pestle_type_t* type) {
  size_t count = (size_t)pestle_type_count(type);
  if (pestle_type_is_complex(type)) count *= 2;
  return (numbers_t){type, count, calloc(count + 1, sizeof(double))};
}

static inline numbers_list_t list_make(size_t count) {
  return (numbers_list_t){count, calloc(count + 1, sizeof(numbers_t))};
}

static inline void list_free(numbers_list_t* list) {
  for (size_t i = 0; i < list->count; ++i)
    free(list->items[i].data);
  free(list->items);
}

// Adds a copy of |a|.
static inline void list_add(numbers_list_t* list, const numbers_t* a) {
  list->items =
      realloc(list->items, (list->count + 1) * sizeof(list->items[0]));
  numbers_t* item = &list->items[list->count++];
  *item = numbers_make(a->type);
  memcpy(item->data, a->data, a->count * sizeof(double));
}

static inline bool is_smooth(const pestle_type_t* type) {
  return pestle_dtype_is(type->dtype, PESTLE_KIND_FLOAT | PESTLE_KIND_COMPLEX);
}

// A number in [0, 1) of a sequence that |state| begins.
static inline double next_random(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(*state >> 11) * 0x1p-53;
}

static inline void* numbers_encode(const numbers_t* a) {
  pestle_dtype_t dtype = pestle_dtype_part(a->type->dtype);
  size_t size = pestle_dtype_size(dtype);
  char* data = calloc(a->count + 1, size);
  for (size_t i = 0; i < a->count; ++i) {
    uint64_t bits = pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)
                        ? pestle_float_encode(dtype, a->data[i])
                        : (uint64_t)(int64_t)a->data[i];
    memcpy(data + i * size, &bits, size);
  }
  return data;
}

static inline double decode_one(pestle_dtype_t dtype, const char* data) {
  uint64_t bits = 0;
  memcpy(&bits, data, pestle_dtype_size(dtype));
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    return pestle_float_decode(dtype, bits);
  }
  int shift = 64 - 8 * (int)pestle_dtype_size(dtype);
  return pestle_dtype_is(dtype, PESTLE_KIND_SIGNED)
             ? (double)((int64_t)(bits << shift) >> shift)
             : (double)bits;
}

// Evaluates the entry of |module|.
static inline numbers_list_t run(pestle_module_t* module,
                                 const numbers_list_t* arguments) {
  const pestle_function_t* function = pestle_module_entry(module);
  const pestle_node_t* last = function->body->block->last;
  numbers_list_t out = list_make(last->operand_count);
  assert_int_equal(function->body->block->argument_count, arguments->count);
  void** inputs = calloc(arguments->count + 1, sizeof(void*));
  void** results = calloc(out.count + 1, sizeof(void*));
  for (size_t i = 0; i < arguments->count; ++i) {
    assert_true(pestle_type_equal(function->body->block->arguments[i]->type,
                                  arguments->items[i].type));
    inputs[i] = numbers_encode(&arguments->items[i]);
  }
  for (size_t i = 0; i < out.count; ++i) {
    const pestle_type_t* type = pestle_node_operand(last, i)->type;
    out.items[i] = numbers_make(type);
    results[i] = calloc(out.items[i].count + 1, 16);
  }
  assert_ok(pestle_ref_evaluate_function(pestle_allocator_system(), function,
                                         (const void* const*)inputs, results));
  for (size_t i = 0; i < out.count; ++i) {
    pestle_dtype_t dtype = pestle_dtype_part(out.items[i].type->dtype);
    for (size_t k = 0; k < out.items[i].count; ++k) {
      out.items[i].data[k] = decode_one(
          dtype, (const char*)results[i] + k * pestle_dtype_size(dtype));
    }
    free(results[i]);
  }
  for (size_t i = 0; i < arguments->count; ++i)
    free(inputs[i]);
  free(inputs);
  free(results);
  return out;
}

// The number that |key| says of argument |index| of |function|.
static inline double range_of(const pestle_function_t* function, size_t index,
                              const char* key, double otherwise) {
  const char* text = pestle_function_argument_attribute(function, index, key);
  return text ? strtod(text, NULL) : otherwise;
}

// Arguments between test.low and test.high, -1 and 1 where nothing is said.
static inline numbers_list_t random_arguments(const pestle_function_t* function,
                                              uint64_t seed) {
  const pestle_block_t* body = function->body->block;
  numbers_list_t list = list_make(body->argument_count);
  for (size_t i = 0; i < list.count; ++i) {
    numbers_t* a = &list.items[i];
    *a = numbers_make(body->arguments[i]->type);
    double low = range_of(function, i, "test.low", is_smooth(a->type) ? -1 : 0);
    double high = range_of(function, i, "test.high", 1);
    for (size_t k = 0; k < a->count; ++k) {
      double u = next_random(&seed);
      a->data[k] = is_smooth(a->type) ? low + (high - low) * u
                                      : floor(low + (high - low + 1) * u);
    }
  }
  return list;
}

// What |value| is beside |want|: 0 for equal ones and two NaNs.
static inline double error_of(double value, double want, double scale) {
  if ((isnan(value) && isnan(want)) || value == want) return 0;
  double error = fabs(value - want) / (scale > 1e-30 ? scale : 1);
  return isnan(error) ? INFINITY : error;
}

static inline double largest(const numbers_t* a) {
  double m = 0;
  for (size_t i = 0; i < a->count; ++i)
    m = isfinite(a->data[i]) && fabs(a->data[i]) > m ? fabs(a->data[i]) : m;
  return m;
}

// The text of a file of the source tree, terminated.
static inline char* read_source(const char* name, size_t* out_size) {
  char path[1024];
  const char* root = getenv("PESTLE_SOURCE_DIR");
  snprintf(path, sizeof(path), "%s%s%s", name[0] == '/' ? "" : root,
           name[0] == '/' ? "" : "/", name);
  FILE* file = fopen(path, "rb");
  if (!file) fail_msg("%s is missing", path);
  fseek(file, 0, SEEK_END);
  *out_size = (size_t)ftell(file);
  rewind(file);
  char* text = calloc(*out_size + 1, 1);
  assert_int_equal(fread(text, 1, *out_size, file), *out_size);
  fclose(file);
  return text;
}

#endif  // PESTLE_TESTS_UNIT_TRANSFORM_TRANSFORM_TEST_H_
