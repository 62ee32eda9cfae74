// SPDX-License-Identifier: Apache-2.0
// What pestle op-test gives an op: its attributes, its operands in a module or as arrays.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "op_test.h"
#include "pestle/array.h"

// --- Attributes ---

// Sample |k| of each kind: some number that is not 1, 1, 0, below 0 or above 2; a word; a
// list of one, two, three and no numbers.
static void sample(const pestle_custom_attr_t* row, int k, int at,
                   pestle_custom_attr_value_t* a) {
  static const double reals[OP_TEST_SAMPLES] = {2.5, 1, 0, -0.75};
  static const int64_t whole[OP_TEST_SAMPLES] = {2, 1, 0, 3};
  static const char* const words[OP_TEST_SAMPLES] = {"", "x", "a b", "float32"};
  static const double real_lists[3] = {1.5, -0.25, 3};
  static const int64_t lists[3] = {1, 0, 2};
  static const size_t counts[OP_TEST_SAMPLES] = {1, 2, 3, 0};
  bool is_default = row->otherwise && !k;
  if (row->otherwise) *a = *row->otherwise;
  a->name = row->name;
  a->kind = row->kind;
  switch ((pestle_custom_kind_t)row->kind) {
    case PESTLE_CUSTOM_BOOL:
      a->as.b = k & 1;
      return;
    case PESTLE_CUSTOM_I64:
      if (!is_default) a->as.i64 = whole[at];
      return;
    case PESTLE_CUSTOM_F64:
      a->as.f64 = reals[at];
      return;
    case PESTLE_CUSTOM_STR:
      if (!is_default) a->as.str = words[at];
      return;
    case PESTLE_CUSTOM_I64S:
      if (!is_default) a->as.i64s = (pestle_i64s_t){lists, counts[at]};
      return;
    case PESTLE_CUSTOM_F64S:
      if (!is_default) a->as.f64s = (pestle_f64s_t){real_lists, counts[at]};
      return;
  }
}

// Each attribute has each of its samples once, the last two by turns with its neighbours.
void op_test_sample(op_test_t* t, int k) {
  for (size_t i = 0; i < t->op->attr_count; ++i) {
    int at = k < 2 ? k : 2 + (k + (int)i) % 2;
    sample(t->op->attrs[i], k, at, &t->attrs[i]);
  }
}

void op_test_print_attrs(const op_test_t* t) {
  for (size_t i = 0; i < t->op->attr_count; ++i) {
    const pestle_custom_attr_value_t* a = &t->attrs[i];
    printf(" %s=", a->name);
    switch ((pestle_custom_kind_t)a->kind) {
      case PESTLE_CUSTOM_BOOL:
        printf("%s", a->as.b ? "true" : "false");
        break;
      case PESTLE_CUSTOM_I64:
        printf("%" PRId64, a->as.i64);
        break;
      case PESTLE_CUSTOM_F64:
        printf("%g%s", a->as.f64,
               t->as_values && t->op->attrs[i]->dynamic ? " (a value)" : "");
        break;
      case PESTLE_CUSTOM_STR:
        printf("'%s'", a->as.str);
        break;
      case PESTLE_CUSTOM_I64S:
        printf("[%zu integers]", a->as.i64s.count);
        break;
      case PESTLE_CUSTOM_F64S:
        printf("[%zu numbers]", a->as.f64s.count);
        break;
    }
  }
}

size_t op_test_dynamic(const op_test_t* t) {
  size_t count = 0;
  for (size_t i = 0; i < t->op->attr_count; ++i)
    count += t->op->attrs[i]->dynamic;
  return count;
}

size_t op_test_arguments(const op_test_t* t) {
  return t->operands + (t->as_values ? op_test_dynamic(t) : 0);
}

static pestle_dtype_t dynamic_dtype(const pestle_type_t* type) {
  return type->dtype == PESTLE_F64 ? PESTLE_F64 : PESTLE_F32;
}

// --- Modules of one op ---

static pestle_status_t fill(const op_test_t* t, const char* name, bool wrapped,
                            pestle_function_t* f) {
  enum { RESULTS = PESTLE_CUSTOM_MAX_RESULTS };
  pestle_custom_attr_value_t attrs[OP_TEST_ATTRS];
  pestle_value_t *operands[OP_TEST_OPERANDS], *results[RESULTS];
  pestle_builder_t b = pestle_builder_make(f);
  for (size_t i = 0; i < t->operands; ++i) {
    operands[i] = pestle_function_argument(f, i);
    // What is made here and read once may be written over.
    if (wrapped) PESTLE_TRY(pestle_op_negate(&b, operands[i], &operands[i]));
  }
  for (size_t i = 0, next = t->operands; i < t->op->attr_count; ++i) {
    attrs[i] = t->attrs[i];
    if (!t->as_values || !t->op->attrs[i]->dynamic) continue;
    attrs[i].kind = PESTLE_CUSTOM_VALUE;
    attrs[i].as.value = pestle_function_argument(f, next++);
  }
  PESTLE_TRY(pestle_op_custom(&b, name, operands, t->operands, attrs,
                              t->op->attr_count, results, RESULTS));
  size_t count = 0;
  while (count < RESULTS && results[count])
    ++count;
  for (size_t i = 0; i < count && wrapped; ++i)
    PESTLE_TRY(pestle_op_negate(&b, results[i], &results[i]));
  return pestle_op_return(&b, results, count, NULL);
}

pestle_status_t op_test_module(const op_test_t* t, const char* name,
                               const pestle_type_t* type, bool wrapped,
                               pestle_module_t** out_module) {
  pestle_type_t types[OP_TEST_ARGUMENTS];
  pestle_function_t* f;
  size_t count = op_test_arguments(t);
  for (size_t i = 0; i < count; ++i) {
    types[i] =
        i < t->operands ? *type : (pestle_type_t){.dtype = dynamic_dtype(type)};
  }
  PESTLE_TRY(pestle_module_create(t->cli->context, "op-test", out_module));
  pestle_status_t status =
      pestle_module_add_function(*out_module, "main", types, NULL, count, &f);
  if (!status) status = fill(t, name, wrapped, f);
  if (!status) status = pestle_module_verify(*out_module);
  if (!status) return NULL;
  pestle_module_release(*out_module);
  *out_module = NULL;
  return status;
}

// --- Arrays ---

typedef struct arrays_t {
  pestle_array_t* operands[OP_TEST_OPERANDS];
  pestle_array_t* given[OP_TEST_ATTRS];  // of dynamic attributes
  pestle_array_t* results[PESTLE_CUSTOM_MAX_RESULTS];
} arrays_t;

static void drop(pestle_array_t** arrays, size_t count) {
  for (size_t i = 0; i < count; ++i)
    pestle_array_release(arrays[i]);
}

// The inputs that op_test_run() has.
static pestle_status_t make_arrays(const op_test_t* t, pestle_device_t* device,
                                   const pestle_type_t* type, arrays_t* a,
                                   pestle_custom_attr_value_t* attrs) {
  for (size_t i = 0; i < t->operands; ++i) {
    cli_array_t data;
    PESTLE_TRY(cli_array_init(type->dtype, type->rank, type->dims, &data));
    cli_fill_random(&data, t->seed + i + 1);
    pestle_status_t status =
        pestle_array_from_data(device, type, data.data, &a->operands[i]);
    cli_array_deinit(&data);
    if (status) return status;
  }
  for (size_t i = 0; i < t->op->attr_count; ++i) {
    attrs[i] = t->attrs[i];
    if (!t->op->attrs[i]->dynamic) continue;
    pestle_type_t scalar = {.dtype = PESTLE_F64};
    PESTLE_TRY(pestle_array_from_data(device, &scalar, &attrs[i].as.f64,
                                      &a->given[i]));
    attrs[i].kind = PESTLE_CUSTOM_ARRAY;
    attrs[i].as.array = a->given[i];
  }
  return NULL;
}

static pestle_status_t read(pestle_array_t* array, cli_arrays_t* out) {
  pestle_type_t type = pestle_array_type(array);
  cli_array_t data;
  PESTLE_TRY(cli_array_init(type.dtype, type.rank, type.dims, &data));
  pestle_status_t status = pestle_array_read(array, data.data, data.size);
  if (!status && pestle_vec_push(out, data)) return NULL;
  cli_array_deinit(&data);
  return status ? status : PESTLE_OOM();
}

static pestle_status_t run_arrays(const op_test_t* t, pestle_device_t* device,
                                  const pestle_type_t* type, arrays_t* a,
                                  cli_arrays_t* out) {
  pestle_custom_attr_value_t attrs[OP_TEST_ATTRS];
  PESTLE_TRY(make_arrays(t, device, type, a, attrs));
  PESTLE_TRY(pestle_array_custom(t->cli->context, t->op->name, a->operands,
                                 t->operands, attrs, t->op->attr_count,
                                 a->results, PESTLE_CUSTOM_MAX_RESULTS));
  for (size_t i = 0; i < PESTLE_CUSTOM_MAX_RESULTS && a->results[i]; ++i)
    PESTLE_TRY(read(a->results[i], out));
  return NULL;
}

void op_test_arrays(op_test_t* t, const pestle_type_t* type) {
  pestle_module_t* module;
  cli_arrays_t want, got;
  arrays_t a = {.operands = {NULL}};
  bool called;
  double worst = 0;
  pestle_status_t status = op_test_module(t, t->op->name, type, false, &module);
  if (!status) {
    status = op_test_run(t, module, t->ref, true, &want, &called);
    pestle_module_release(module);
  }
  if (status) {
    op_test_count(t, type, "reference of", "ref", status, false, 0);
    return;
  }
  pestle_vec_init(&got, pestle_allocator_system());
  status = run_arrays(t, t->devices[0], type, &a, &got);
  bool same = !status && op_test_same(t, &got, &want, &worst);
  op_test_free(&got);
  op_test_free(&want);
  drop(a.operands, OP_TEST_OPERANDS);
  drop(a.given, OP_TEST_ATTRS);
  drop(a.results, PESTLE_CUSTOM_MAX_RESULTS);
  op_test_count(t, type, "arrays of", pestle_device_name(t->devices[0]), status,
                same, worst);
}
