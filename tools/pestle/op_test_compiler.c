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
#include "op_test.h"

enum { MOST_OPERANDS = OP_TEST_OPERANDS, SAMPLES = OP_TEST_SAMPLES };

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
  pestle_tensor_t views[4 * (OP_TEST_ARGUMENTS + PESTLE_CUSTOM_MAX_RESULTS)];
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

static void print_cell(const op_test_t* t, const pestle_type_t* type,
                       const char* question, const char* device) {
  char dims[400];
  printf("  %s %s %s on %s, attributes", question,
         pestle_dtype_info(type->dtype)->name,
         cli_print_dims(type->rank, type->dims, dims, sizeof(dims)), device);
  op_test_print_attrs(t);
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
    print_cell(t, type, question, device);
    pestle_status_format(status, text, sizeof(text));
    if (status) {
      printf(": %s\n", text);
    } else {
      printf(": differs by %.3g of the largest number\n", worst);
    }
    (void)fflush(stdout);  // minutes before the next
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

// --- Operands ---

// How many operands the op takes, as its type rule or body says; 0: none of those
// that were tried.
static size_t find_operands(op_test_t* t) {
  for (int k = 0; k < SAMPLES; ++k) {
    op_test_sample(t, k);
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

// Dynamic attributes, which were numbers so far, as values of the function, by which there
// are derivatives and batches too, and as arrays.
static void test_dynamic(op_test_t* t, const pestle_type_t* type, int k) {
  if (!op_test_dynamic(t) || !t->op->body) return;
  t->as_values = true;
  test_cell(t, type, false, false);
  if (t->bare && k == 0) op_test_rules(t, type);
  t->as_values = false;
  op_test_arrays(t, type);
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
  for (int k = 0; k < SAMPLES && (k == 0 || t->op->attr_count); ++k) {
    op_test_sample(t, k);
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
        test_dynamic(t, &type, k);
        if (k || pestle_dtype_is(type.dtype, PESTLE_KIND_BOOL)) continue;
        test_cell(t, &type, true, false);
      }
    }
  }
  printf("%s: %zu operands, %zu cells\n", t->op->name, t->operands,
         t->right + t->refused + t->wrong - before);
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
  for (size_t i = names.size; i-- && !status;) {
    t.op = pestle_context_find_op(cli->context, names.data[i]);
    status = test_op(&t);
  }
  if (!status && !names.size) {
    status = PESTLE_ERROR(INVALID_ARGUMENT, "'%s' registers no op", path);
  }
  if (!status) {
    printf("right %zu, refused %zu, WRONG %zu\n", t.right, t.refused, t.wrong);
    if (t.wrong) *out_exit = CLI_CHECK_FAILED;
  }
  pestle_vec_deinit(&names);
  pestle_vec_deinit(&t.variants);
  return status;
}
