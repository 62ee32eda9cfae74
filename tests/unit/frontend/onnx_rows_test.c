// SPDX-License-Identifier: Apache-2.0
// Each node of nodes/ imported in several ways that mean the same: with arguments and with
// constants in their place, which folds all; with extents that are given afterwards; and
// with lengths that say that all of an axis is real. All give one result. Then each again
// with requests for memory that fail.
#include <math.h>

#include "frontend/info.h"
#include "onnx_real.h"
#include "onnx_rows.h"
#include "onnx_tree.h"

enum {
  MOST_RESULTS = 16,
  // Of each row so many requests fail, at even distances.
  REQUESTS = TEST_SANITIZED ? 4 : 200,
  STEP = TEST_SANITIZED ? 10 : 1,
};

typedef struct result_t {
  pestle_type_t type;
  uint8_t* data;
} result_t;

typedef struct rows_t {
  pestle_test_allocator_t memory;
  pestle_context_t* context;
  const char* text;
  row_t row;
  pb_t model;
  size_t number, compared, folded, lengths, symbolic, wrong;
} rows_t;

// --- Modules ---

static pestle_status_t import_with(rows_t* r, const pb_t* model,
                                   const pestle_import_options_t* options,
                                   pestle_module_t** out) {
  *out = NULL;
  return pestle_import_onnx(r->context, model->data, model->size, true, NULL,
                            options, out);
}

static const pestle_block_t* body_of(pestle_module_t* module) {
  return pestle_module_entry(module)->body->block;
}

// The elements of an argument: 1, 2, 0, 1, 2, 0, ...; of indices 1 and 0.
static uint8_t* elements_of(const pestle_type_t* type) {
  int64_t count = pestle_type_count(type);
  size_t size = pestle_dtype_size(type->dtype);
  uint8_t* data = calloc((size_t)count + 1, size);
  int64_t most = pestle_dtype_is(type->dtype, PESTLE_KIND_INT) ? 2 : 3;
  for (int64_t i = 0; i < count; ++i)
    pestle_onnx_store_f64(type->dtype, (double)((i + 1) % most),
                          data + (size_t)i * size);
  return data;
}

static void free_results(result_t* results, size_t count) {
  for (size_t i = 0; i < count; ++i)
    free(results[i].data);
}

// How long an axis of an argument is.
typedef struct length_t {
  size_t argument;
  int32_t axis;
  int64_t whole, length;
} length_t;

typedef enum way_e { WAY_WHOLE, WAY_LENGTH, WAY_CUT } way_t;

// The elements of argument |i|, |type|. WAY_CUT: what |length| leaves of the whole; |type|
// has that shape. WAY_LENGTH: the whole, of which the rest means nothing.
static uint8_t* argument_of(pestle_type_t type, size_t i, way_t way,
                            const length_t* length) {
  if (way == WAY_WHOLE || i != length->argument) return elements_of(&type);
  pestle_type_t whole = type;
  whole.dims[length->axis] = length->whole;
  uint8_t* data = elements_of(&whole);
  type.dims[length->axis] = length->length;
  if (way == WAY_CUT) {
    real_cut(&whole, type.dims, data);
    return data;
  }
  int64_t inner = 1;
  for (int32_t k = length->axis + 1; k < whole.rank; ++k)
    inner *= whole.dims[k];
  size_t size = pestle_dtype_size(type.dtype);
  for (int64_t n = 0; n < pestle_type_count(&whole); ++n) {
    if (n / inner % length->whole >= length->length)
      pestle_onnx_store_f64(type.dtype, 1, data + (size_t)n * size);
  }
  return data;
}

// Runs |module| on ir/ref; of WAY_LENGTH the last argument is the length. 0 results where
// the run ends with an error.
static size_t run(rows_t* r, pestle_module_t* module, way_t way,
                  const length_t* length, result_t* results) {
  const pestle_block_t* block = body_of(module);
  pestle_function_t* entry = pestle_module_entry(module);
  size_t count = pestle_function_argument_count(entry);
  size_t made = block->last->operand_count;
  void *arguments[ROW_MOST], *places[MOST_RESULTS];
  pestle_type_t types[MOST_RESULTS];
  if (count > ROW_MOST || made > MOST_RESULTS) return 0;
  for (size_t i = 0; i < count; ++i) {
    arguments[i] = argument_of(*block->arguments[i]->type, i, way, length);
    if (way == WAY_LENGTH && i + 1 == count)
      memcpy(arguments[i], &length->length, sizeof(length->length));
  }
  for (size_t i = 0; i < made; ++i) {
    types[i] = *pestle_node_operand(block->last, i)->type;
    places[i] = results[i].data = calloc(pestle_type_bytes(&types[i]) + 8, 1);
  }
  pestle_status_t status =
      pestle_ref_evaluate_function(pestle_test_allocator(&r->memory), entry,
                                   (const void* const*)arguments, places);
  size_t own = status ? 0 : real_results(entry, types, places, made);
  for (size_t i = 0; i < count; ++i)
    free(arguments[i]);
  for (size_t i = own; i < made; ++i)
    free(places[i]);
  for (size_t i = 0; i < own; ++i)
    results[i].type = types[i];
  if (status && pestle_status_code(status) == PESTLE_STATUS_INTERNAL) {
    print_error("%s: %s\n", r->text, pestle_status_message(status));
    ++r->wrong;
  }
  pestle_status_release(status);
  return own;
}

static bool is_same(const result_t* a, const result_t* b) {
  if (!pestle_type_equal(&a->type, &b->type)) return false;
  pestle_elements_t x = {.type = a->type, .data = a->data};
  pestle_elements_t y = {.type = b->type, .data = b->data};
  // A sum is made in another order where a mask is in it.
  double tolerance = pestle_dtype_size(a->type.dtype) < 4 ? 2e-2 : 1e-5;
  for (int64_t i = 0; i < pestle_type_count(&a->type); ++i) {
    double u = pestle_onnx_element_f64(&x, (size_t)i);
    double v = pestle_onnx_element_f64(&y, (size_t)i);
    if (u == v || (isnan(u) && isnan(v))) continue;
    if (!(fabs(u - v) <= tolerance * fmax(1, fabs(v)))) return false;
  }
  return true;
}

// The results of |module| are |wanted|.
static void compare(rows_t* r, const char* how, pestle_module_t* module,
                    way_t way, const length_t* length, const result_t* wanted,
                    size_t count) {
  result_t found[MOST_RESULTS];
  size_t made = run(r, module, way, length, found);
  bool good = made == count;
  for (size_t i = 0; good && i < count; ++i)
    good = is_same(&found[i], &wanted[i]);
  if (!good) {
    print_error("%s: %s: another result\n", r->text, how);
    ++r->wrong;
  }
  ++r->compared;
  free_results(found, made);
}

// --- Ways ---

// Random numbers are others in another module.
static bool is_random(const char* op) {
  static const char* const ops[] = {
      "Bernoulli",        "Dropout",       "Multinomial",      "RandomNormal",
      "RandomNormalLike", "RandomUniform", "RandomUniformLike"};
  for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); ++i) {
    if (!strcmp(op, ops[i])) return true;
  }
  return false;
}

static void try_constants(rows_t* r, pestle_module_t* module,
                          const result_t* wanted, size_t count) {
  pestle_function_t* entry = pestle_module_entry(module);
  size_t arguments = pestle_function_argument_count(entry);
  pestle_tensor_t views[ROW_MOST] = {0};
  pestle_const_binding_t consts[ROW_MOST];
  for (size_t i = 0; i < arguments; ++i) {
    const pestle_type_t* type = body_of(module)->arguments[i]->type;
    views[i] = (pestle_tensor_t){.data = elements_of(type),
                                 .device = {PESTLE_DEVICE_CPU, 0},
                                 .ndim = type->rank,
                                 .dtype = pestle_dtype_to_dlpack(type->dtype),
                                 .shape = (int64_t*)type->dims};
    consts[i] = (pestle_const_binding_t){
        pestle_function_argument_name(entry, i), &views[i]};
  }
  pestle_import_options_t options = {.struct_size = sizeof(options),
                                     .consts = consts,
                                     .const_count = arguments};
  pestle_module_t* folded;
  pestle_status_t status = import_with(r, &r->model, &options, &folded);
  // Strings have no constants of a caller's.
  if (!status) {
    compare(r, "constants", folded, WAY_WHOLE, NULL, wanted, count);
    pestle_module_release(folded);
    ++r->folded;
  }
  pestle_status_release(status);
  for (size_t i = 0; i < arguments; ++i)
    free(views[i].data);
}

// The model with a name for every axis of every input, d000 and on.
static pb_t with_names(const pb_t* model) {
  static char names[64][8];
  tree_t* tree = tree_parse(TREE_MODEL, 0, model->data, model->size);
  tree_t* graph = tree_find(tree, 7);
  size_t count = 0;
  for (size_t i = 0; i < graph->count; ++i) {
    tree_t* value = graph->kids[i];
    tree_t* type = value->field == 11 ? tree_find(value, 2) : NULL;
    tree_t* tensor = type ? tree_find(type, 1) : NULL;
    tree_t* shape = tensor ? tree_find(tensor, 2) : NULL;
    for (size_t k = 0; shape && k < shape->count && count < 64; ++k, ++count) {
      snprintf(names[count], sizeof(names[count]),
               "\x12\x04"
               "d%03zu",
               count);
      tree_free(shape->kids[k]);
      shape->kids[k] = tree_parse(TREE_LEAF, 1, (uint8_t*)names[count], 6);
    }
  }
  pb_t named = tree_bytes(tree);
  tree_free(tree);
  return named;
}

// What is told of the extents afterwards makes the same module.
static void try_symbols(rows_t* r, pestle_module_t* module) {
  pb_t named = with_names(&r->model);
  pestle_module_t *symbolic, *made = NULL;
  pestle_type_t types[ROW_MOST];
  size_t arguments =
      pestle_function_argument_count(pestle_module_entry(module));
  for (size_t i = 0; i < arguments; ++i)
    types[i] = *body_of(module)->arguments[i]->type;
  pestle_status_t status = import_with(r, &named, NULL, &symbolic);
  if (!status)
    status = pestle_module_specialize(symbolic, types, arguments, &made);
  uint64_t a[2], b[2] = {0, 0};
  assert_ok(pestle_module_signature(module, a));
  if (!status) status = pestle_module_signature(made, b);
  if (status || memcmp(a, b, sizeof(a)) != 0) {
    print_error("%s: with extents given afterwards: %s\n", r->text,
                status ? pestle_status_message(status) : "another module");
    ++r->wrong;
  }
  pestle_status_release(status);
  if (symbolic) pestle_module_release(symbolic);
  if (made) pestle_module_release(made);
  ++r->symbolic;
}

// Those write behind what is real, so that a full axis has no room.
static bool appends(const rows_t* r) {
  return !strcmp(r->row.op, "Concat") ||
         !strcmp(r->row.op, "ConcatFromSequence") ||
         (!strcmp(r->row.op, "Attention") && r->row.inputs > 4);
}

// A model whose axes have names, and what they are.
typedef struct named_t {
  pb_t model;
  pestle_dim_binding_t dims[64];
  size_t count;
} named_t;

static named_t name_axes(rows_t* r, pestle_module_t* module) {
  static char names[64][8];
  named_t named = {.model = with_names(&r->model)};
  pestle_function_t* entry = pestle_module_entry(module);
  for (size_t i = 0; i < pestle_function_argument_count(entry); ++i) {
    const pestle_type_t* type = body_of(module)->arguments[i]->type;
    for (int32_t axis = 0; axis < type->rank && named.count < 64; ++axis) {
      char* name = names[named.count];
      snprintf(name, sizeof(names[0]), "d%03zu", named.count);
      named.dims[named.count++] =
          (pestle_dim_binding_t){name, type->dims[axis]};
    }
  }
  return named;
}

// |bounded| has the length of an axis as its last argument. Less of it gives what a model
// gives whose axis is so short, where there is such a model.
static void try_less(rows_t* r, pestle_module_t* bounded, named_t* named,
                     size_t dim, length_t length) {
  result_t wanted[MOST_RESULTS];
  pestle_import_options_t options = {.struct_size = sizeof(options),
                                     .dims = named->dims,
                                     .dim_count = named->count};
  pestle_module_t* cut;
  length.length = length.whole - 1;
  named->dims[dim].extent = length.length;
  pestle_status_t status = import_with(r, &named->model, &options, &cut);
  named->dims[dim].extent = length.whole;
  if (!status && !cut->specialize) {
    size_t count = run(r, cut, WAY_CUT, &length, wanted);
    char how[64];
    snprintf(how, sizeof(how), "less of axis %d of argument %zu", length.axis,
             length.argument);
    if (count) compare(r, how, bounded, WAY_LENGTH, &length, wanted, count);
    free_results(wanted, count);
  }
  if (cut) pestle_module_release(cut);
  pestle_status_release(status);
}

// One axis at a time is as long as an argument says.
static void try_lengths(rows_t* r, pestle_module_t* module,
                        const result_t* wanted, size_t count) {
  pestle_function_t* entry = pestle_module_entry(module);
  named_t named = name_axes(r, module);
  size_t dim = 0;
  for (size_t i = 0; i < pestle_function_argument_count(entry); ++i) {
    const pestle_type_t* type = body_of(module)->arguments[i]->type;
    for (int32_t axis = 0; axis < type->rank; ++axis, ++dim) {
      pestle_length_binding_t length = {pestle_function_argument_name(entry, i),
                                        axis, "length"};
      pestle_import_options_t options = {.struct_size = sizeof(options),
                                         .dims = named.dims,
                                         .dim_count = named.count,
                                         .lengths = &length,
                                         .length_count = 1};
      pestle_module_t* bounded;
      pestle_status_t status = import_with(r, &named.model, &options, &bounded);
      length_t at = {i, axis, type->dims[axis], type->dims[axis]};
      // What the op cannot take so is refused with a sentence.
      if (!status && !bounded->specialize) {
        ++r->lengths;
        if (!appends(r))
          compare(r, "all of an axis", bounded, WAY_LENGTH, &at, wanted, count);
        if (at.whole > 2) try_less(r, bounded, &named, dim, at);
      }
      if (bounded) pestle_module_release(bounded);
      pestle_status_release(status);
    }
  }
}

static void try_row(void* self, const char* text) {
  rows_t* r = self;
  if (++r->number % STEP) return;
  r->text = text;
  r->model = row_model(text, &r->row);
  pestle_module_t* module;
  pestle_status_t status = import_with(r, &r->model, NULL, &module);
  const char* message = pestle_status_message(status);
  if (!status != !rows_refusal || (status && !strstr(message, rows_refusal))) {
    print_error("%s\n is%s: %s\n", text, status ? " refused" : " imported",
                message);
    ++r->wrong;
  }
  if (!status && !module->specialize && !is_random(r->row.op)) {
    result_t wanted[MOST_RESULTS];
    size_t count = run(r, module, WAY_WHOLE, NULL, wanted);
    if (count) {
      try_constants(r, module, wanted, count);
      try_lengths(r, module, wanted, count);
    }
    try_symbols(r, module);
    free_results(wanted, count);
  }
  if (module) pestle_module_release(module);
  pestle_status_release(status);
  pb_free(&r->model);
}

static const char* const files[] = {"onnx.txt", "ml.txt", "microsoft.txt",
                                    "bounded.txt"};
enum { FILES = sizeof(files) / sizeof(files[0]) };

static void gives_one_result(void** state) {
  (void)state;
  static rows_t r;
  memset(&r, 0, sizeof(r));
  pestle_test_allocator_init(&r.memory, 0);
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .allocator = pestle_test_allocator(&r.memory),
      .backend_path = "/nonexistent",
      .no_cache = true,
      .cache_dir = "",
      .threads = 1};
  assert_ok(pestle_context_create(&options, &r.context));
  for (size_t i = 0; i < FILES; ++i)
    rows_visit(files[i], try_row, &r);
  pestle_context_release(r.context);
  pestle_test_allocator_check(&r.memory);
  print_message(
      "%zu nodes: %zu results compared, %zu folded, %zu with a "
      "length, %zu with symbols\n",
      r.number, r.compared, r.folded, r.lengths, r.symbolic);
  assert_int_equal(r.wrong, 0);
  assert_true(r.folded > 800 / STEP && r.symbolic > 800 / STEP);
}

// --- Memory ---

typedef struct outcome_t {
  pestle_status_code_t code;
  size_t requests;
  bool failed;
} outcome_t;

static outcome_t import_failing(const pb_t* model, size_t fail_at) {
  pestle_test_allocator_t memory;
  pestle_test_allocator_init(&memory, 0);
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .allocator = pestle_test_allocator(&memory),
      .backend_path = "/nonexistent",
      .no_cache = true,
      .cache_dir = "",
      .threads = 1};
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  size_t before = atomic_load(&memory.request_count);
  if (fail_at) atomic_store(&memory.fail_at, before + fail_at);
  pestle_module_t* module = NULL;
  pestle_status_t status = pestle_import_onnx(context, model->data, model->size,
                                              true, NULL, NULL, &module);
  outcome_t outcome = {pestle_status_code(status),
                       atomic_load(&memory.request_count) - before,
                       pestle_test_allocator_failed(&memory)};
  pestle_status_release(status);
  if (module) pestle_module_release(module);
  pestle_context_release(context);
  pestle_test_allocator_check(&memory);
  return outcome;
}

static void fail_row(void* self, const char* text) {
  rows_t* r = self;
  if (++r->number % STEP) return;
  pb_t model = row_model(text, &r->row);
  outcome_t whole = import_failing(&model, 0);
  size_t step = whole.requests / REQUESTS + 1;
  for (size_t k = 1 + r->number % step; k <= whole.requests; k += step) {
    outcome_t now = import_failing(&model, k);
    // Where an arena's blocks lie decides how many it takes: the last may be spared.
    if (!now.failed && now.code == whole.code && now.requests < k) continue;
    ++r->compared;
    if (now.failed &&
        (now.code == PESTLE_STATUS_OUT_OF_MEMORY || now.code == whole.code))
      continue;
    print_error("%s: request %zu: %s\n", text, k,
                pestle_status_code_name(now.code));
    ++r->wrong;
  }
  pb_free(&model);
}

static void survives_failing_memory(void** state) {
  (void)state;
  static rows_t r;
  memset(&r, 0, sizeof(r));
  for (size_t i = 0; i < FILES; ++i)
    rows_visit(files[i], fail_row, &r);
  print_message("%zu requests failed\n", r.compared);
  assert_int_equal(r.wrong, 0);
  assert_true(r.compared > 2000 / STEP);
}

// --- What a model says of itself ---

// Describes |model|, of which |module| (may be NULL) was imported, with the |fail_at|-th
// request for memory failing.
static pestle_status_t describe(const pb_t* model, pestle_module_t* module,
                                pestle_test_allocator_t* memory, size_t fail_at,
                                pestle_info_t* info) {
  pestle_test_allocator_init(memory, fail_at);
  *info = (pestle_info_t){.info = {.producer = ""}};
  pestle_arena_init(pestle_test_allocator(memory), &info->arena);
  pestle_map_init(pestle_test_allocator(memory), &info->ops);
  return pestle_onnx_take_info(model->data, model->size, module, info);
}

static void forget(pestle_test_allocator_t* memory, pestle_info_t* info) {
  pestle_map_deinit(&info->ops);
  pestle_arena_deinit(&info->arena);
  pestle_test_allocator_check(memory);
}

// The model has an input for each argument, and its op.
static bool is_described(const rows_t* r, pestle_module_t* module,
                         const pestle_info_t* info) {
  char op[80];
  const char* domain = r->row.domain;
  snprintf(op, sizeof(op), "%s%s%s", domain, *domain ? "." : "", r->row.op);
  bool right = pestle_map_find_str(&info->ops, pestle_str(op)) != NULL &&
               info->info.opset_count == (*domain ? 2 : 1) &&
               info->info.ir_version == 10;
  if (!module) return right;
  pestle_function_t* entry = pestle_module_entry(module);
  // Of sequences nothing is given here, and nobody asks for them.
  size_t count = pestle_function_argument_count(entry);
  right = right && info->info.input_count >= count;
  for (size_t i = 0; right && i < count; ++i) {
    const pestle_model_value_t* value = &info->info.inputs[i];
    pestle_type_t type = pestle_value_type(pestle_function_argument(entry, i));
    right = !strcmp(value->name, pestle_function_argument_name(entry, i)) &&
            value->dtype == type.dtype && value->rank == type.rank;
  }
  return right;
}

static void describe_one(rows_t* r, const pb_t* model, bool with_module) {
  pestle_module_t* module = NULL;
  pestle_test_allocator_t memory;
  pestle_info_t info;
  pestle_status_t status = import_with(r, model, NULL, &module);
  pestle_status_release(status);
  if (!with_module && module) {
    pestle_module_release(module);
    module = NULL;
  }
  status = describe(model, module, &memory, 0, &info);
  if (status || !is_described(r, module, &info)) {
    print_error("%s: is described otherwise%s%s\n", r->text, status ? ": " : "",
                status ? pestle_status_message(status) : "");
    ++r->wrong;
  }
  pestle_status_release(status);
  size_t requests = atomic_load(&memory.request_count);
  forget(&memory, &info);
  for (size_t k = 1 + r->number % 7; k <= requests; k += 7, ++r->compared) {
    status = describe(model, module, &memory, k, &info);
    if (pestle_status_code(status) != PESTLE_STATUS_OUT_OF_MEMORY) {
      print_error("%s: request %zu of %zu: %s\n", r->text, k, requests,
                  pestle_status_code_name(pestle_status_code(status)));
      ++r->wrong;
    }
    pestle_status_release(status);
    forget(&memory, &info);
  }
  if (module) pestle_module_release(module);
}

static void describe_row(void* self, const char* text) {
  rows_t* r = self;
  if (++r->number % STEP) return;
  r->text = text;
  r->model = row_model(text, &r->row);
  describe_one(r, &r->model, true);
  describe_one(r, &r->model, false);
  // |with_names| gives what the next call writes over.
  pb_t named = with_names(&r->model), copy = {0};
  pb_raw(&copy, named.data, named.size);
  describe_one(r, &copy, true);
  pb_free(&copy);
  pb_free(&r->model);
}

static void says_what_it_is(void** state) {
  (void)state;
  static rows_t r;
  memset(&r, 0, sizeof(r));
  pestle_test_allocator_init(&r.memory, 0);
  pestle_context_options_t options = {
      .struct_size = sizeof(options),
      .allocator = pestle_test_allocator(&r.memory),
      .backend_path = "/nonexistent",
      .no_cache = true,
      .cache_dir = "",
      .threads = 1};
  assert_ok(pestle_context_create(&options, &r.context));
  for (size_t i = 0; i < FILES; ++i)
    rows_visit(files[i], describe_row, &r);
  pestle_context_release(r.context);
  pestle_test_allocator_check(&r.memory);
  print_message("%zu nodes described, %zu requests failed\n", r.number,
                r.compared);
  assert_int_equal(r.wrong, 0);
  assert_true(r.compared > 1000 / STEP);
}

// --- Rows ---

typedef struct op_t {
  const char *name, *domain;
  bool seen;
} op_t;

static op_t ops[] = {
#define PESTLE_ONNX_OP(name, domain, ...) {#name, domain, false},
#include "frontend/onnx/onnx_ops.def"
};
enum { OPS = sizeof(ops) / sizeof(ops[0]) };

static void note_ops(void* self, const char* text) {
  (void)self;
  for (size_t i = 0; i < OPS; ++i) {
    char word[80];
    const char* domain = ops[i].domain;
    snprintf(word, sizeof(word), "%s%s ",
             !*domain                        ? ""
             : !strcmp(domain, "ai.onnx.ml") ? "ml:"
                                             : "ms:",
             ops[i].name);
    for (const char* at = text; at; at = strstr(at, " ; ")) {
      at += at == text ? 0 : 3;
      ops[i].seen |= !strncmp(at, word, strlen(word));
    }
  }
}

static void has_a_row_for_each_op(void** state) {
  (void)state;
  for (size_t i = 0; i < FILES; ++i)
    rows_visit(files[i], note_ops, NULL);
  for (size_t i = 0; i < OPS; ++i) {
    if (!ops[i].seen) print_error("%s%s\n", ops[i].domain, ops[i].name);
    assert_true(ops[i].seen);
  }
}

// --- What moves no element ---

static size_t gathers_of(pestle_context_t* context, const char* text) {
  row_t row;
  pb_t model = row_model(text, &row);
  pestle_module_t* module;
  assert_ok(pestle_import_onnx(context, model.data, model.size, true, NULL,
                               NULL, &module));
  size_t count = 0;
  for (const pestle_node_t* n = body_of(module)->first; n; n = n->next)
    count += n->op == PESTLE_OP_GATHER;
  pestle_module_release(module);
  pb_free(&model);
  return count;
}

// A reshape of real elements that lie alike before and after is one; others are looked
// for one by one.
static void reshapes_in_place(void** state) {
  (void)state;
#define COMPRESSED "Compress 18 axis=0 | f32[5,3] i1[5] | o ; "
  static const struct {
    const char* text;
    bool moves;
  } rows[] = {{COMPRESSED "Reshape 13 | $0 !i64[2]=-1,3 | o", false},
              {COMPRESSED "Reshape 13 | $0 !i64[3]=-1,3,1 | o", false},
              {COMPRESSED "Reshape 13 | $0 !i64[1]=-1 | o", false},
              {COMPRESSED "Reshape 13 | $0 !i64[2]=3,-1 | o", true}};
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .backend_path = "/nonexistent",
                                      .no_cache = true,
                                      .cache_dir = "",
                                      .threads = 1};
  pestle_context_t* context;
  assert_ok(pestle_context_create(&options, &context));
  size_t without = gathers_of(context, COMPRESSED "Abs 13 | $0 | o");
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i)
    assert_int_equal(gathers_of(context, rows[i].text) > without,
                     rows[i].moves);
  pestle_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(has_a_row_for_each_op),
      cmocka_unit_test(reshapes_in_place),
      cmocka_unit_test(gives_one_result),
      cmocka_unit_test(survives_failing_memory),
      cmocka_unit_test(says_what_it_is),
  };
  return cmocka_run_group_tests_name("onnx_rows", tests, NULL, NULL);
}
