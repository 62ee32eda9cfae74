// SPDX-License-Identifier: Apache-2.0
// pestle op-test: the ops of an extension held against their own bodies. Each cell is
// an op, attributes, a dtype, a shape and a question: do type rule and body agree, is
// what each device makes of the body what the reference makes of it, is an eval what
// the body says, apart and in its operand's place; op_test_rules_compiler.c asks after
// derivatives and batching.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "json.h"
#include "op_test.h"

enum { MOST_OPERANDS = OP_TEST_OPERANDS, SAMPLES = 4 };

static const pestle_dtype_t dtypes[] = {PESTLE_F32, PESTLE_F16, PESTLE_BF16,
                                        PESTLE_F64, PESTLE_C64, PESTLE_I32,
                                        PESTLE_I8,  PESTLE_U8,  PESTLE_I1};
enum { DTYPES = sizeof(dtypes) / sizeof(*dtypes) };

static const pestle_type_t shapes[] = {
    {.rank = 0},
    {.rank = 1, .dims = {1}},
    {.rank = 1, .dims = {7}},
    {.rank = 1, .dims = {1027}},
    {.rank = 2, .dims = {2, 3}},
    {.rank = 2, .dims = {0, 5}},
    {.rank = 2, .dims = {33, 64}},
    {.rank = 3, .dims = {2, 1, 17}},
};
enum { SHAPES = sizeof(shapes) / sizeof(*shapes) };

// --- Modules of one op ---

pestle_status_t op_test_module(const op_test_t* t, const char* name,
                               const pestle_type_t* type, bool wrapped,
                               pestle_module_t** out_module) {
  enum { RESULTS = PESTLE_CUSTOM_MAX_RESULTS };
  pestle_type_t types[MOST_OPERANDS];
  pestle_value_t *operands[MOST_OPERANDS], *results[RESULTS];
  pestle_function_t* f;
  for (size_t i = 0; i < t->operands; ++i)
    types[i] = *type;
  PESTLE_TRY(pestle_module_create(t->cli->context, "op-test", out_module));
  pestle_status_t status = pestle_module_add_function(
      *out_module, "main", types, NULL, t->operands, &f);
  pestle_builder_t b = pestle_builder_make(f);
  for (size_t i = 0; i < t->operands && !status; ++i) {
    operands[i] = pestle_function_argument(f, i);
    // What is made here and read once may be written over.
    if (wrapped) status = pestle_op_negate(&b, operands[i], &operands[i]);
  }
  if (!status) {
    status = pestle_op_custom(&b, name, operands, t->operands, t->attrs,
                              t->op->attr_count, results, RESULTS);
  }
  size_t count = 0;
  while (!status && count < RESULTS && results[count])
    ++count;
  for (size_t i = 0; i < count && !status && wrapped; ++i)
    status = pestle_op_negate(&b, results[i], &results[i]);
  if (!status) status = pestle_op_return(&b, results, count, NULL);
  if (!status) status = pestle_module_verify(*out_module);
  if (!status) return NULL;
  pestle_module_release(*out_module);
  *out_module = NULL;
  return status;
}

// --- Running ---

void op_test_free(cli_arrays_t* arrays) {
  for (size_t i = 0; i < arrays->size; ++i)
    cli_array_deinit(&arrays->data[i]);
  pestle_vec_deinit(arrays);
}

static pestle_status_t add_array(pestle_io_info_t io, uint64_t seed,
                                 cli_arrays_t* arrays) {
  cli_array_t array;
  PESTLE_TRY(
      cli_array_init((pestle_dtype_t)io.dtype, io.rank, io.dims, &array));
  if (seed) cli_fill_random(&array, seed);
  if (pestle_vec_push(arrays, array)) return NULL;
  cli_array_deinit(&array);
  return PESTLE_OOM();
}

// Runs |e| on random inputs of |seed|; |out| are its outputs.
static pestle_status_t run(pestle_executable_t* e, uint64_t seed,
                           cli_arrays_t* out) {
  cli_arrays_t in;
  pestle_tensor_t views[4 * (MOST_OPERANDS + PESTLE_CUSTOM_MAX_RESULTS)];
  size_t inputs = pestle_executable_input_count(e);
  size_t outputs = pestle_executable_output_count(e);
  pestle_vec_init(&in, pestle_allocator_system());
  pestle_status_t status = NULL;
  for (size_t i = 0; i < inputs && !status; ++i)
    status = add_array(pestle_executable_input(e, i), seed + i + 1, &in);
  for (size_t i = 0; i < outputs && !status; ++i)
    status = add_array(pestle_executable_output(e, i), 0, out);
  for (size_t i = 0; i < inputs && !status; ++i)
    views[i] = cli_array_view(&in.data[i]);
  for (size_t i = 0; i < outputs && !status; ++i)
    views[inputs + i] = cli_array_view(&out->data[i]);
  if (!status) {
    status = pestle_executable_run(e, NULL, views, inputs, views + inputs,
                                   outputs, NULL);
  }
  op_test_free(&in);
  return status;
}

static bool has_call(const pestle_executable_t* e) {
  for (size_t i = 0; i < pestle_executable_step_count(e); ++i) {
    pestle_step_info_t info = {.struct_size = sizeof(info)};
    pestle_status_t status = pestle_executable_step(e, i, &info);
    bool is_call = !status && info.kind == PESTLE_STEP_CALL;
    pestle_status_release(status);
    if (is_call) return true;
  }
  return false;
}

pestle_status_t op_test_run(const op_test_t* t, pestle_module_t* module,
                            pestle_device_t* device, bool strict,
                            cli_arrays_t* out, bool* out_called) {
  pestle_compile_options_t options = {
      .struct_size = sizeof(options),
      .numerics = strict ? PESTLE_NUMERICS_STRICT : PESTLE_NUMERICS_DEFAULT,
      .no_cache = true,
      .verify = true};
  pestle_plan_t* plan;
  pestle_executable_t* e;
  pestle_vec_init(out, pestle_allocator_system());
  PESTLE_TRY(pestle_compile(t->cli->context, module, device, &options, &plan));
  pestle_status_t status =
      pestle_executable_create(t->cli->context, plan, device, &e);
  pestle_plan_release(plan);
  if (status) return status;
  *out_called = has_call(e);
  status = run(e, t->seed, out);
  pestle_executable_release(e);
  if (status) op_test_free(out);
  return status;
}

// --- Comparing ---

static double part(const cli_array_t* a, int64_t index) {
  if (a->dtype == PESTLE_C64) return ((const float*)a->data)[index];
  return cli_array_get(a, index);
}

// The largest difference against the largest number of |want|; not a number where
// one has NaN or an infinity and the other has not the same.
static double distance(const cli_array_t* got, const cli_array_t* want) {
  int64_t count = got->dtype == PESTLE_C64 ? 2 * got->count : got->count;
  double most = 0, scale = 0;
  for (int64_t i = 0; i < count; ++i) {
    double x = part(got, i), y = part(want, i);
    if (isnan(x) && isnan(y)) continue;
    if (!isfinite(x) || !isfinite(y)) {
      if (x != y) return NAN;
      continue;
    }
    if (fabs(y) > scale) scale = fabs(y);
    if (fabs(x - y) > most) most = fabs(x - y);
  }
  return most == 0 ? 0 : most / (scale > 0 ? scale : 1);
}

// What two ways of rounding may differ by: a few steps of the dtype.
static double tolerance(const op_test_t* t, pestle_dtype_t dtype) {
  const pestle_float_format_t* format =
      pestle_float_format(dtype == PESTLE_C64 ? PESTLE_F32 : dtype);
  double step = format ? ldexp(1, -format->mantissa_bits) : 0;
  return t->op->accuracy > 4 * step ? t->op->accuracy : 4 * step;
}

bool op_test_same(const op_test_t* t, const cli_arrays_t* got,
                  const cli_arrays_t* want, double* out_worst) {
  bool same = got->size == want->size;
  *out_worst = 0;
  for (size_t i = 0; same && i < got->size; ++i) {
    const cli_array_t *a = &got->data[i], *b = &want->data[i];
    if (a->dtype != b->dtype || a->count != b->count) return false;
    double d = distance(a, b);
    if (!(d <= *out_worst)) *out_worst = d;
    same = d <= tolerance(t, a->dtype);
  }
  return same;
}

// --- Cells ---

static void json_cell(const op_test_t* t, const pestle_type_t* type,
                      const char* question, const char* device,
                      const char* why) {
  char dims[400];
  pestle_json_t* json = t->cli->json;
  pestle_json_begin_object(json);
  cli_key_cstr(json, "question", question);
  cli_key_cstr(json, "dtype", pestle_dtype_info(type->dtype)->name);
  cli_key_cstr(json, "shape",
               cli_print_dims(type->rank, type->dims, dims, sizeof(dims)));
  cli_key_cstr(json, "device", device);
  cli_key_cstr(json, "why", why);
  pestle_json_end_object(json);
}

static void print_cell(const op_test_t* t, const pestle_type_t* type,
                       const char* question, const char* device) {
  char dims[400];
  printf("  %s %s %s on %s, attributes", question,
         pestle_dtype_info(type->dtype)->name,
         cli_print_dims(type->rank, type->dims, dims, sizeof(dims)), device);
  for (size_t i = 0; i < t->op->attr_count; ++i) {
    const pestle_custom_attr_value_t* a = &t->attrs[i];
    printf(" %s=", a->name);
    if (a->kind == PESTLE_CUSTOM_F64) {
      printf("%g", a->as.f64);
    } else if (a->kind == PESTLE_CUSTOM_I64) {
      printf("%" PRId64, a->as.i64);
    } else {
      printf("(kind %d)", a->kind);
    }
  }
}

void op_test_count(op_test_t* t, const pestle_type_t* type,
                   const char* question, const char* device,
                   pestle_status_t status, bool same, double worst) {
  char text[1024];
  if (!status && same) {
    ++t->right;
    return;
  }
  if (pestle_status_code(status) == PESTLE_STATUS_UNSUPPORTED) {
    ++t->refused;
    pestle_status_release(status);
    return;
  }
  ++t->wrong;
  if (t->wrong <= 20) {
    (void)snprintf(text, sizeof(text), "differs by %.3g of the largest number",
                   worst);
    if (status) pestle_status_format(status, text, sizeof(text));
    if (t->cli->json) {
      json_cell(t, type, question, device, text);
    } else {
      print_cell(t, type, question, device);
      printf(": %s\n", text);
    }
  }
  pestle_status_release(status);
}

// The same module of another name of the op, on |device|, against |want|. With
// |must_call| a plan that calls nothing is no cell.
static void compare(op_test_t* t, const pestle_type_t* type,
                    const op_test_variant_t* v, pestle_device_t* device,
                    bool wrapped, const char* question,
                    const cli_arrays_t* want) {
  pestle_module_t* module;
  cli_arrays_t got;
  bool called = false;
  double worst = 0;
  pestle_status_t status = op_test_module(t, v->name, type, wrapped, &module);
  if (!status) {
    status = op_test_run(t, module, device, false, &got, &called);
    pestle_module_release(module);
  }
  if (!status && v->must_call && !called) {
    op_test_free(&got);
    return;
  }
  bool same = !status && op_test_same(t, &got, want, &worst);
  if (!status) op_test_free(&got);
  op_test_count(t, type, question, pestle_device_name(device), status, same,
                worst);
}

// Whether a variant says something of |device|: a text is for one language, and others
// would run the body, which has been asked.
static bool is_for(const op_test_variant_t* v, pestle_device_t* device) {
  pestle_target_caps_t caps = {.struct_size = sizeof(caps)};
  pestle_status_t status = pestle_device_caps(device, NULL, &caps);
  bool known = !status;
  pestle_status_release(status);
  bool cpu = known && caps.device_type == PESTLE_DEVICE_CPU;
  if (!v->language) return !v->must_call || cpu;
  return !strcmp(v->language, "kir")
             ? cpu
             : !strcmp(v->language, caps.source_language);
}

// |broad|: on all devices, else on CPUs.
static void test_cell(op_test_t* t, const pestle_type_t* type, bool wrapped,
                      bool broad) {
  pestle_module_t* module;
  cli_arrays_t want;
  bool called;
  pestle_status_t status =
      op_test_module(t, t->op->name, type, wrapped, &module);
  op_test_count(t, type, "types of", "any device", status, true, 0);
  if (status || !t->op->body) {
    if (!status) pestle_module_release(module);
    return;
  }
  status = op_test_run(t, module, t->ref, true, &want, &called);
  pestle_module_release(module);
  if (status) {
    op_test_count(t, type, "reference of", "ref", status, false, 0);
    return;
  }
  for (size_t d = 0; d < t->device_count; ++d) {
    for (size_t v = 0; v < t->variants.size; ++v) {
      const op_test_variant_t* variant = &t->variants.data[v];
      if (variant->in_place && !wrapped) continue;
      if (d >= t->cpu_count && !broad) continue;
      if (!is_for(variant, t->devices[d])) continue;
      compare(t, type, variant, t->devices[d], wrapped, variant->question,
              &want);
    }
  }
  op_test_free(&want);
}

// --- Attributes and operands ---

// Sample |k| of each kind of attribute: some number that is not 1, 1, 0, below 0.
static void sample_attrs(op_test_t* t, int k) {
  static const double reals[SAMPLES] = {2.5, 1, 0, -0.75};
  static const int64_t whole[SAMPLES] = {2, 1, 0, 3};
  for (size_t i = 0; i < t->op->attr_count; ++i) {
    const pestle_custom_attr_t* row = t->op->attrs[i];
    pestle_custom_attr_value_t* a = &t->attrs[i];
    int at = (k + (int)i * (k > 1)) % SAMPLES;
    if (row->otherwise) *a = *row->otherwise;
    a->name = row->name;
    a->kind = row->kind;
    switch ((pestle_custom_kind_t)row->kind) {
      case PESTLE_CUSTOM_BOOL:
        a->as.b = k & 1;
        continue;
      case PESTLE_CUSTOM_I64:
        if (!row->otherwise || k) a->as.i64 = whole[at];
        continue;
      case PESTLE_CUSTOM_F64:
        a->as.f64 = reals[at];
        continue;
      case PESTLE_CUSTOM_STR:
        if (!row->otherwise) a->as.str = "";
        continue;
      case PESTLE_CUSTOM_I64S:
      case PESTLE_CUSTOM_F64S:
        if (!row->otherwise) a->as.i64s = (pestle_i64s_t){NULL, 0};
        continue;
    }
  }
}

// How many operands the op takes, as its type rule or body says; 0: none of those
// that were tried.
static size_t find_operands(op_test_t* t) {
  for (int k = 0; k < SAMPLES; ++k) {
    sample_attrs(t, k);
    for (t->operands = 1; t->operands <= MOST_OPERANDS; ++t->operands) {
      for (int d = 0; d < DTYPES; ++d) {
        for (int s = 0; s < SHAPES; ++s) {
          pestle_type_t type = shapes[s];
          pestle_module_t* module;
          type.dtype = dtypes[d];
          pestle_status_t status =
              op_test_module(t, t->op->name, &type, false, &module);
          if (!status) {
            pestle_module_release(module);
            return t->operands;
          }
          pestle_status_release(status);
        }
      }
    }
  }
  return 0;
}

// Whether the op takes operands of |type|: what its rule refuses is no cell.
static bool is_taken(op_test_t* t, const pestle_type_t* type) {
  pestle_module_t* module;
  pestle_status_t status = op_test_module(t, t->op->name, type, false, &module);
  if (!status) {
    pestle_module_release(module);
    return true;
  }
  bool refuses = pestle_status_code(status) == PESTLE_STATUS_UNSUPPORTED ||
                 pestle_status_code(status) == PESTLE_STATUS_INVALID_ARGUMENT;
  pestle_status_release(status);
  t->refused += refuses;
  return !refuses;
}

// --- Variants: the op under other names, by which one way of computing it is asked
// for ---

static pestle_status_t add_variant(op_test_t* t, const char* question,
                                   const pestle_custom_eval_t* eval,
                                   bool in_place) {
  pestle_custom_op_t op = *t->op;
  pestle_custom_eval_t own;
  const pestle_custom_eval_t* evals[1] = {&own};
  char name[320];
  (void)snprintf(name, sizeof(name), "optest.%s.v%zu", t->op->name,
                 t->variants.size);
  op.name = name;
  op.release = NULL;
  op.prefer = eval ? PESTLE_CUSTOM_EVAL : PESTLE_CUSTOM_INLINE;
  op.eval_count = eval ? 1 : 0;
  op.evals = eval ? evals : NULL;
  if (eval) {
    own = *eval;
    own.in_place = in_place;
  }
  op_test_variant_t v = {
      .name = cli_copy(t->cli, pestle_str(name)),
      .question = question,
      .must_call = eval && eval->function,
      .language = eval && eval->source ? eval->source->language : NULL,
      .in_place = in_place};
  PESTLE_TRY(pestle_context_register_op(t->cli->context, &op));
  return v.name && pestle_vec_push(&t->variants, v) ? NULL : PESTLE_OOM();
}

// The op without derivatives and batching of its own: its body has them.
static pestle_status_t add_bare(op_test_t* t) {
  pestle_custom_op_t op = *t->op;
  char name[320];
  (void)snprintf(name, sizeof(name), "optest.%s.bare", t->op->name);
  t->bare = cli_copy(t->cli, pestle_str(name));
  if (!t->bare) return PESTLE_OOM();
  op.name = name;
  op.release = NULL;
  op.jvp = NULL;
  op.vjp = NULL;
  op.transpose = NULL;
  op.vmap = NULL;
  op.elementwise = false;
  return pestle_context_register_op(t->cli->context, &op);
}

static pestle_status_t add_variants(op_test_t* t) {
  t->bare = NULL;
  if (!t->op->body) return NULL;
  PESTLE_TRY(add_bare(t));
  PESTLE_TRY(add_variant(t, "body of", NULL, false));
  for (size_t i = 0; i < t->op->eval_count; ++i) {
    const pestle_custom_eval_t* e = t->op->evals[i];
    PESTLE_TRY(add_variant(t, "eval of", e, false));
    if (e->in_place) PESTLE_TRY(add_variant(t, "eval in place of", e, true));
  }
  return NULL;
}

// --- All ---

static void find_devices(op_test_t* t) {
  static const char* const names[] = {"llvm",   "ref",    "cuda",
                                      "opencl", "vulkan", "metal"};
  for (size_t i = 0; i < sizeof(names) / sizeof(*names); ++i) {
    pestle_device_t* device = NULL;
    pestle_status_release(
        pestle_context_device(t->cli->context, names[i], &device));
    if (!device) continue;
    if (!strcmp(names[i], "ref")) t->ref = device;
    t->devices[t->device_count++] = device;
    if (i < 2) t->cpu_count = t->device_count;
  }
}

static pestle_status_t test_op(op_test_t* t) {
  if (t->op->attr_count > OP_TEST_ATTRS) {
    return PESTLE_ERROR(UNSUPPORTED, "op '%s' has more than %d attributes",
                        t->op->name, OP_TEST_ATTRS);
  }
  size_t before = t->right + t->refused + t->wrong;
  if (!find_operands(t)) {
    return PESTLE_ERROR(UNSUPPORTED,
                        "op '%s' takes no 1 to %d operands of one type that "
                        "were tried",
                        t->op->name, (int)MOST_OPERANDS);
  }
  t->variants.size = 0;
  PESTLE_TRY(add_variants(t));
  pestle_json_t* json = t->cli->json;
  if (json) {
    pestle_json_begin_object(json);
    cli_key_cstr(json, "name", t->op->name);
    pestle_json_key(json, "wrong");
    pestle_json_begin_array(json);
  }
  for (int k = 0; k < SAMPLES && (k == 0 || t->op->attr_count); ++k) {
    sample_attrs(t, k);
    for (int d = 0; d < DTYPES; ++d) {
      for (int s = 0; s < SHAPES; ++s) {
        pestle_type_t type = shapes[s];
        type.dtype = dtypes[d];
        ++t->seed;
        if (!is_taken(t, &type)) continue;
        // Of devices that take longer, some shapes.
        bool broad = k == 0 && s % 2 == 0;
        test_cell(t, &type, false, broad);
        if (t->bare) op_test_rules(t, &type);
        if (k || pestle_dtype_is(type.dtype, PESTLE_KIND_BOOL)) continue;
        test_cell(t, &type, true, false);
      }
    }
  }
  size_t cells = t->right + t->refused + t->wrong - before;
  if (json) {
    pestle_json_end_array(json);
    cli_key_u64(json, "operands", t->operands);
    cli_key_u64(json, "cells", cells);
    pestle_json_end_object(json);
  } else {
    printf("%s: %zu operands, %zu cells\n", t->op->name, t->operands, cells);
  }
  return NULL;
}

pestle_status_t cli_op_test(cli_t* cli, int* out_exit) {
  PESTLE_VEC(const char*) names;
  op_test_t t = {.cli = cli, .seed = (uint64_t)cli->count[CLI_SEED] + 1};
  const char *path, *name;
  PESTLE_TRY(cli_only_argument(cli, "an extension", &path));
  PESTLE_TRY(pestle_context_load_extension(cli->context, path));
  find_devices(&t);
  pestle_vec_init(&t.variants, pestle_allocator_system());
  // Those of the extension, not the names that variants get.
  pestle_vec_init(&names, pestle_allocator_system());
  pestle_status_t status = NULL;
  for (size_t i = 0; (name = pestle_context_op_name(cli->context, i)); ++i) {
    if (!pestle_vec_push(&names, name)) status = PESTLE_OOM();
  }
  if (cli->json) {
    pestle_json_key(cli->json, "ops");
    pestle_json_begin_array(cli->json);
  }
  for (size_t i = names.size; i-- && !status;) {
    t.op = pestle_context_find_op(cli->context, names.data[i]);
    status = test_op(&t);
  }
  if (!status && !names.size) {
    status = PESTLE_ERROR(INVALID_ARGUMENT, "'%s' registers no op", path);
  }
  if (!status && cli->json) {
    pestle_json_end_array(cli->json);
    cli_key_u64(cli->json, "right", t.right);
    cli_key_u64(cli->json, "refused", t.refused);
    cli_key_u64(cli->json, "wrong", t.wrong);
  } else if (!status) {
    printf("right %zu, refused %zu, WRONG %zu\n", t.right, t.refused, t.wrong);
  }
  if (!status && t.wrong) *out_exit = CLI_CHECK_FAILED;
  pestle_vec_deinit(&names);
  pestle_vec_deinit(&t.variants);
  return status;
}
