// SPDX-License-Identifier: Apache-2.0
// ONNX's own conformance cases against ir/ref, which tells the importers apart
// from everything that is compiled. PESTLE_NODE_DATA names the folder that
// tests/models/gen_node_data.py wrote, else it is the build folder's, which
// models_nodes writes; without it the test is skipped. A case may
// be unsupported; what imports must give the expected outputs.
#include <dirent.h>
#include <math.h>

#include "base/file.h"
#include "base/half.h"
#include "base/mem.h"
#include "frontend/onnx/model.h"
#include "onnx_real.h"

#define MOST 32  // inputs or outputs of a case

typedef struct case_t {
  onnx_test_t t;
  pestle_mapping_t file;
  pestle_arena_t arena;
  pestle_elements_t inputs[MOST], outputs[MOST];
  const char* names[MOST];
  size_t input_count, output_count;
} case_t;

typedef struct totals_t {
  int passed, unsupported, failed;
} totals_t;

static pestle_status_t read_tensors(case_t* c, const char* folder,
                                    const char* kind,
                                    pestle_elements_t* tensors, size_t* count) {
  for (*count = 0; *count < MOST; ++*count) {
    char path[1024];
    snprintf(path, sizeof(path), "%s/test_data_set_0/%s_%zu.pb", folder, kind,
             *count);
    if (!pestle_file_exists(path)) return NULL;
    pestle_mapping_t file;
    PESTLE_TRY(pestle_file_map(path, &file));
    pestle_status_t status = pestle_read_onnx_tensor(
        c->t.context, file.data, file.size, &tensors[*count], NULL, 0);
    pestle_file_unmap(&file);
    if (status) return status;
  }
  return NULL;
}

// What shapes follow from is given by value.
static pestle_status_t import_case(case_t* c) {
  PESTLE_TRY(pestle_import_onnx(c->t.context, c->file.data, c->file.size, false,
                                NULL, &c->t.options, &c->t.module));
  if (pestle_module_entry(c->t.module)->body->block->last) return NULL;
  pestle_tensor_t views[MOST] = {0};
  for (size_t i = 0; i < c->input_count; ++i) {
    const pestle_type_t* type = &c->inputs[i].type;
    views[i] = (pestle_tensor_t){.data = (void*)c->inputs[i].data,
                                 .device = {PESTLE_DEVICE_CPU, 0},
                                 .ndim = type->rank,
                                 .dtype = pestle_dtype_to_dlpack(type->dtype),
                                 .shape = (int64_t*)type->dims};
  }
  pestle_module_t* made = NULL;
  pestle_status_t status = pestle_module_specialize_values(
      c->t.module, views, c->input_count, &made);
  pestle_module_release(c->t.module);
  c->t.module = made;
  return status;
}

static bool is_argument(const pestle_function_t* f, const char* name) {
  for (size_t i = 0; i < pestle_function_argument_count(f); ++i)
    if (name && !strcmp(pestle_function_argument_name(f, i), name)) return true;
  return false;
}

static double number(const pestle_elements_t* e, size_t i) {
  const pestle_dtype_info_t* info = pestle_dtype_info(e->type.dtype);
  uint64_t bits = 0;
  memcpy(&bits, (const char*)e->data + i * info->size, info->size);
  if (info->kind == PESTLE_KIND_FLOAT) {
    return pestle_float_decode(e->type.dtype, bits);
  }
  unsigned shift = 64u - 8u * info->size;
  return info->kind == PESTLE_KIND_SIGNED
             ? (double)((int64_t)(bits << shift) >> shift)
             : (double)bits;
}

// The greatest finite magnitude, 1 at least: where the expected sums cancel,
// what is left of them is noise in units of it.
static double greatest(const pestle_elements_t* e) {
  double top = 1;
  for (int64_t i = 0; i < pestle_type_count(&e->type); ++i) {
    double value = fabs(number(e, (size_t)i));
    if (isfinite(value) && value > top) top = value;
  }
  return top;
}

static bool matches(const pestle_elements_t* found,
                    const pestle_elements_t* wanted) {
  if (!pestle_type_equal(&found->type, &wanted->type)) return false;
  double rtol = found->type.dtype == PESTLE_BF16  ? 1.0 / 64
                : found->type.dtype == PESTLE_F16 ? 2e-3
                                                  : 1e-3;
  double atol = 1e-7 * greatest(wanted);
  for (int64_t i = 0; i < pestle_type_count(&found->type); ++i) {
    double a = number(found, (size_t)i), b = number(wanted, (size_t)i);
    if (a == b || (isnan(a) && isnan(b))) continue;
    if (!(fabs(a - b) <= atol + rtol * fabs(b))) return false;
  }
  return true;
}

// Whose elements are random numbers: their type is checked alone.
static bool is_random(const char* folder) {
  return strstr(folder, "bernoulli") || strstr(folder, "training_dropout");
}

static bool run_case(case_t* c, const char* folder) {
  pestle_function_t* f = pestle_module_entry(c->t.module);
  pestle_node_t* end = f->body->block->last;
  const void* arguments[MOST];
  void* results[MOST];
  pestle_type_t types[MOST];
  size_t count = 0, made = end->operand_count;
  for (size_t i = 0; i < c->input_count; ++i) {
    if (is_argument(f, c->names[i])) arguments[count++] = c->inputs[i].data;
  }
  if (count != pestle_function_argument_count(f) || made > MOST) return false;
  for (size_t i = 0; i < made; ++i) {
    types[i] = *pestle_node_operand(end, i)->type;
    results[i] =
        pestle_arena_alloc(&c->arena, pestle_type_bytes(&types[i]) + 1, 64);
  }
  assert_ok(pestle_ref_evaluate_function(pestle_allocator_system(), f,
                                         arguments, results));
  bool good = real_results(f, types, results, made) == c->output_count;
  for (size_t i = 0; good && i < c->output_count; ++i) {
    pestle_elements_t found = {.type = types[i], .data = results[i]};
    good = is_random(folder) ? pestle_type_equal(&types[i], &c->outputs[i].type)
                             : matches(&found, &c->outputs[i]);
  }
  return good;
}

static void note_names(case_t* c) {
  pestle_onnx_model_t model;
  assert_ok(
      pestle_onnx_model_read(c->file.data, c->file.size, &c->arena, &model));
  size_t at = 0;
  for (size_t i = 0; i < model.graph.input_count && at < MOST; ++i) {
    bool stored = false;
    for (size_t j = 0; j < model.graph.initializer_count; ++j) {
      stored |= pestle_str_equal(model.graph.inputs[i].name,
                                 model.graph.initializers[j].name);
    }
    if (!stored) {
      c->names[at++] =
          pestle_arena_strndup(&c->arena, model.graph.inputs[i].name);
    }
  }
}

static void free_tensors(case_t* c, pestle_elements_t* tensors, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    pestle_context_free(c->t.context, (void*)tensors[i].data, tensors[i].size);
  }
}

static void check_case(const char* folder, totals_t* totals) {
  char path[1024];
  snprintf(path, sizeof(path), "%s/model.onnx", folder);
  if (!pestle_file_exists(path)) return;
  case_t c = {0};
  onnx_begin(&c.t);
  pestle_arena_init(pestle_allocator_system(), &c.arena);
  assert_ok(pestle_file_map(path, &c.file));
  note_names(&c);
  pestle_status_t status =
      read_tensors(&c, folder, "input", c.inputs, &c.input_count);
  if (!status) {
    status = read_tensors(&c, folder, "output", c.outputs, &c.output_count);
  }
  // Sequences and optionals are no TensorProtos.
  bool no_tensors = status != NULL;
  if (!status) status = import_case(&c);
  if (no_tensors ||
      (status && pestle_status_code(status) == PESTLE_STATUS_UNSUPPORTED)) {
    ++totals->unsupported;
  } else if (!status && run_case(&c, folder)) {
    ++totals->passed;
  } else {
    ++totals->failed;
    print_error("%s: %s\n", folder,
                status ? pestle_status_message(status) : "wrong outputs");
  }
  pestle_status_release(status);
  free_tensors(&c, c.inputs, c.input_count);
  free_tensors(&c, c.outputs, c.output_count);
  onnx_end(&c.t);
  pestle_file_unmap(&c.file);
  pestle_arena_deinit(&c.arena);
}

static void gives_the_expected_outputs(void** state) {
  (void)state;
  const char* root = getenv("PESTLE_NODE_DATA");
  const char* build = getenv("PESTLE_BUILD_DIR");
  char folder[512];
  snprintf(folder, sizeof(folder), "%s%s/node",
           root    ? root
           : build ? build
                   : "",
           root ? "" : "/node-data");
  DIR* cases = opendir(folder);
  if (!cases) skip();
  totals_t totals = {0};
  struct dirent* entry;
  while ((entry = readdir(cases))) {
    char path[900];
    snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
    if (strncmp(entry->d_name, "test_", 5) == 0) check_case(path, &totals);
  }
  closedir(cases);
  print_message("%d passed, %d unsupported, %d failed\n", totals.passed,
                totals.unsupported, totals.failed);
  assert_int_equal(totals.failed, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gives_the_expected_outputs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
