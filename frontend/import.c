// SPDX-License-Identifier: Apache-2.0
// Chooses the front end for a file by its first bytes: Pestle's binary form,
// MLIR's bytecode and GGUF by their magic, ONNX by being protobuf, text by being text.
#include "pestle/import.h"

#include <inttypes.h>
#include <string.h>

#include "base/closest.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/require.h"
#include "frontend/foreign.h"
#include "frontend/gguf/source.h"
#include "frontend/info.h"
#include "frontend/onnx/proto.h"
#include "frontend/onnx/source.h"
#include "frontend/stablehlo/container.h"
#include "frontend/stablehlo/import.h"
#include "ir/graph.h"
#include "pestle/plan_format.h"

// The magic of pestle_module_serialize(), without its version.
static bool is_binary(const pestle_mapping_t* mapping) {
  return mapping->size >= 8 && memcmp(mapping->data, "PSTLGRPH", 8) == 0;
}

static bool is_bytecode(const pestle_mapping_t* mapping) {
  return pestle_bytecode_is(mapping->data, mapping->size);
}

static bool is_gguf(const pestle_mapping_t* mapping) {
  return pestle_gguf_is(mapping->data, mapping->size);
}

// Whether the fields of the outermost message fill the file.
static bool is_protobuf(const pestle_mapping_t* mapping) {
  pestle_proto_t message = pestle_proto_make(mapping->data, mapping->size);
  pestle_status_t status = NULL;
  for (bool more = true; more && !status;) {
    pestle_proto_field_t field;
    status = pestle_proto_next(&message, &field, &more);
  }
  bool fits = !status;
  pestle_status_release(status);
  return fits;
}

// Text holds no control bytes but white space. One that holds some, whose place
// the parser tells, begins with a word or has few of them, and is no protobuf.
static bool is_text(const pestle_mapping_t* mapping) {
  enum { LOOKED_AT = 512, WORD = 6, RARE = 16 };
  const unsigned char* bytes = mapping->data;
  size_t count = mapping->size < LOOKED_AT ? mapping->size : LOOKED_AT;
  size_t first = count, controls = 0;
  for (size_t i = 0; i < count; ++i) {
    unsigned char c = bytes[i];
    bool is_space = c == ' ' || (c >= '\t' && c <= '\r');
    if (c >= 32 || is_space) continue;
    if (!controls++) first = i;
  }
  if (!controls) return count != 0;
  return (first >= WORD || controls * RARE <= count) && !is_protobuf(mapping);
}

static pestle_status_t import_mapping(pestle_context_t* context,
                                      const char* path,
                                      const pestle_mapping_t* mapping,
                                      pestle_module_t** out_module) {
  if (is_binary(mapping)) {
    return pestle_status_annotate(
        pestle_module_deserialize(context, mapping->data, mapping->size,
                                  out_module),
        "while reading '%s'", path);
  }
  return is_bytecode(mapping)
             ? pestle_import_stablehlo(context, mapping->data, mapping->size,
                                       path, out_module)
             : pestle_module_parse(context, mapping->data, mapping->size, path,
                                   out_module);
}

// An input answers to the name that its source gives it, to its name in the
// text ("arg0" of %arg0) and to its number.
static bool is_input(const pestle_function_t* entry, size_t index,
                     const char* name) {
  const char* given =
      entry->argument_names ? entry->argument_names[index] : NULL;
  if (given && !strcmp(given, name)) return true;
  const char* own = entry->body->block->arguments[index]->name;
  int64_t number;
  return (own && strcmp(own, name) == 0) ||
         (pestle_str_parse_i64(pestle_str(name), &number) &&
          number == (int64_t)index);
}

static pestle_status_t no_input(const pestle_function_t* entry, size_t count,
                                const char* what, const char* name) {
  pestle_strbuf_t names;
  pestle_strbuf_init(pestle_context_allocator(entry->module->context), &names);
  pestle_closest_t closest = pestle_closest_to(pestle_str(name));
  char hint[PESTLE_HINT];
  for (size_t i = 0; i < count; ++i) {
    const char* given = entry->argument_names ? entry->argument_names[i] : NULL;
    if (!given) given = entry->body->block->arguments[i]->name;
    pestle_closest_offer(&closest, pestle_str(given));
    if (i) pestle_strbuf_append_c(&names, ", ");
    if (given) pestle_strbuf_appendf(&names, "'%s'", given);
    if (!given) pestle_strbuf_appendf(&names, "'%zu'", i);
  }
  pestle_status_t status = PESTLE_ERROR(
      NOT_FOUND,
      "%s is given for '%s', but the module has no such input; it has %s%s",
      what, name, count ? pestle_strbuf_cstr(&names) : "none",
      pestle_closest_hint(&closest, hint));
  pestle_strbuf_deinit(&names);
  return status;
}

static pestle_status_t apply_shape(const pestle_function_t* entry,
                                   const pestle_shape_binding_t* shape,
                                   pestle_type_t* types, size_t count) {
  if (!shape->input || (shape->rank > 0 && !shape->dims)) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "a shape is given without %s",
                        shape->input ? "its dims" : "the input's name");
  }
  if (shape->rank < 0 || shape->rank > PESTLE_MAX_RANK) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the shape for input '%s' has %d dimensions; at most "
                        "%d are possible",
                        shape->input, (int)shape->rank, PESTLE_MAX_RANK);
  }
  size_t at = 0;
  while (at < count && !is_input(entry, at, shape->input))
    ++at;
  if (at == count) return no_input(entry, count, "a shape", shape->input);
  types[at] = pestle_type_make(types[at].dtype, shape->rank, shape->dims);
  return NULL;
}

// What the caller says of each input of a module that was read as it stands.
typedef struct bound_t {
  const pestle_function_t* entry;
  size_t count;
  pestle_type_t* types;
  pestle_elements_t* values;  // without data where none is given
  pestle_tensor_t* views;
} bound_t;

static pestle_status_t find_input(const bound_t* b, const char* what,
                                  const char* name, size_t* out) {
  *out = 0;
  while (*out < b->count && !is_input(b->entry, *out, name))
    ++*out;
  return *out < b->count ? NULL : no_input(b->entry, b->count, what, name);
}

// A module that was read as it stands has no names of dims: "x.0" is axis 0 of input x.
static pestle_status_t apply_dim(const pestle_dim_binding_t* dim, bound_t* b) {
  const char* dot = dim->name ? strrchr(dim->name, '.') : NULL;
  int64_t axis;
  char input[256];
  if (!dot || !pestle_str_parse_i64(pestle_str(dot + 1), &axis) || axis < 0 ||
      (size_t)(dot - dim->name) >= sizeof(input)) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "the dim '%s' is given, but dims of this module have no "
        "names; call one by input and axis, as %s.0, or fix whole "
        "shapes",
        dim->name ? dim->name : "",
        b->count && b->entry->argument_names && b->entry->argument_names[0]
            ? b->entry->argument_names[0]
            : "arg0");
  }
  memcpy(input, dim->name, (size_t)(dot - dim->name));
  input[dot - dim->name] = 0;
  size_t at;
  PESTLE_TRY(find_input(b, "a dim", input, &at));
  pestle_type_t* type = &b->types[at];
  if (axis >= type->rank) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the dim '%s' is given, but input '%s' has %d axes",
                        dim->name, input, (int)type->rank);
  }
  if (dim->extent < 0 || (type->dims[axis] != PESTLE_DIM_DYNAMIC &&
                          type->dims[axis] != dim->extent)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the dim '%s' is given as %" PRId64
                        ", but the module has %" PRId64 " there",
                        dim->name, dim->extent, type->dims[axis]);
  }
  type->dims[axis] = dim->extent;
  return NULL;
}

static pestle_status_t apply_const(pestle_arena_t* arena,
                                   const pestle_const_binding_t* given,
                                   bound_t* b) {
  size_t at;
  if (!given->input || !given->value) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "a constant is given without %s",
                        given->input ? "its value" : "the input's name");
  }
  PESTLE_TRY(find_input(b, "a constant", given->input, &at));
  pestle_elements_t* value = &b->values[at];
  pestle_type_t* type = &b->types[at];
  PESTLE_TRY(pestle_status_annotate(
      pestle_elements_copy_view(arena, given->value, value),
      "the constant for '%s'", given->input));
  if (value->type.dtype != type->dtype) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the constant for '%s' has elements of %s, the module "
                        "says %s",
                        given->input,
                        pestle_dtype_info(value->type.dtype)->name,
                        pestle_dtype_info(type->dtype)->name);
  }
  if (value->type.rank || !type->rank) {
    *type = value->type;
    return NULL;
  }
  // One number fills the input.
  for (int32_t i = 0; i < type->rank; ++i) {
    if (type->dims[i] == PESTLE_DIM_DYNAMIC) type->dims[i] = 1;
  }
  value->type = *type;
  value->splat = true;
  return NULL;
}

static pestle_status_t apply_bindings(pestle_arena_t* arena,
                                      const pestle_import_options_t* options,
                                      bound_t* b) {
  size_t n = b->count + 1;
  b->types = PESTLE_ARENA_ARRAY(arena, pestle_type_t, n);
  b->values = pestle_arena_alloc_zero(arena, n * sizeof(*b->values),
                                      _Alignof(pestle_elements_t));
  b->views = pestle_arena_alloc_zero(arena, n * sizeof(*b->views),
                                     _Alignof(pestle_tensor_t));
  if (!b->types || !b->values || !b->views) return PESTLE_OOM();
  for (size_t i = 0; i < b->count; ++i)
    b->types[i] = *b->entry->body->block->arguments[i]->type;
  for (size_t i = 0; i < options->shape_count; ++i) {
    PESTLE_TRY(apply_shape(b->entry, &options->shapes[i], b->types, b->count));
  }
  for (size_t i = 0; i < options->dim_count; ++i)
    PESTLE_TRY(apply_dim(&options->dims[i], b));
  for (size_t i = 0; i < options->const_count; ++i) {
    PESTLE_TRY(apply_const(arena, &options->consts[i], b));
  }
  for (size_t i = 0; i < b->count; ++i) {
    const pestle_elements_t* value = &b->values[i];
    b->views[i] = (pestle_tensor_t){
        .data = value->splat ? NULL : (void*)(uintptr_t)value->data,
        .device = {PESTLE_DEVICE_CPU, 0},
        .ndim = b->types[i].rank,
        .dtype = pestle_dtype_to_dlpack(b->types[i].dtype),
        .shape = b->types[i].dims};
  }
  return NULL;
}

// Puts the constants in the place of their inputs, the last one first.
static pestle_status_t put_consts(const bound_t* b, pestle_module_t* module) {
  pestle_function_t* entry = pestle_module_entry(module);
  pestle_block_t* block = entry->body->block;
  for (size_t i = b->count; i-- > 0;) {
    if (!b->values[i].data) continue;
    pestle_constant_attrs_t attrs = {sizeof(attrs), b->values[i]};
    pestle_builder_t builder = {.module = module, .block = block};
    if (block->first) builder = pestle_builder_before(block->first);
    pestle_value_t* made;
    PESTLE_TRY(pestle_op_constant(&builder, &attrs, &made));
    pestle_value_replace_all_uses(block->arguments[i], made);
    PESTLE_TRY(pestle_function_remove_argument(entry, i));
  }
  return NULL;
}

static pestle_status_t specialize_bound(pestle_module_t* module,
                                        const pestle_import_options_t* options,
                                        const bound_t* b,
                                        pestle_module_t** out_module) {
  pestle_module_t *made, *own;
  PESTLE_TRY(
      pestle_module_specialize_values(module, b->views, b->count, &made));
  if (!options->const_count) {
    *out_module = made;
    return NULL;
  }
  pestle_status_t status = pestle_module_clone(made, &own);
  pestle_module_release(made);
  if (status) return status;
  status = put_consts(b, own);
  if (status) {
    pestle_module_release(own);
  } else {
    *out_module = own;
  }
  return status;
}

// A module that was read as it stands takes the shapes and constants that the
// caller fixes.
static pestle_status_t apply_options(pestle_module_t* module,
                                     const pestle_import_options_t* options,
                                     pestle_module_t** out_module) {
  bound_t b = {.entry = pestle_module_entry(module)};
  if (!b.entry) {
    return PESTLE_ERROR(MALFORMED, "module '%s' has no function", module->name);
  }
  b.count = pestle_function_argument_count(b.entry);
  pestle_arena_t arena;
  pestle_arena_init(pestle_context_allocator(module->context), &arena);
  pestle_status_t status = apply_bindings(&arena, options, &b);
  if (!status) status = specialize_bound(module, options, &b, out_module);
  pestle_arena_deinit(&arena);
  return status;
}

// What is no protobuf but a module as it stands.
static bool is_module(const pestle_mapping_t* mapping) {
  return is_binary(mapping) || is_bytecode(mapping) || is_gguf(mapping) ||
         is_text(mapping);
}

const char* pestle_import_format(const pestle_mapping_t* mapping) {
  if (is_binary(mapping)) return "binary form";
  if (is_bytecode(mapping)) return "StableHLO bytecode";
  if (is_gguf(mapping)) return PESTLE_FORMAT_GGUF;
  return is_text(mapping) ? "text" : PESTLE_FORMAT_ONNX;
}

static bool is_plan(const pestle_mapping_t* mapping) {
  return mapping->size >= 8 && !memcmp(mapping->data, PESTLE_PLAN_MAGIC, 8);
}

// What a file is instead of a model, as far as that can be told.
static pestle_status_t check_kind(const char* path,
                                  const pestle_mapping_t* mapping) {
  if (!mapping->size) {
    return PESTLE_ERROR(MALFORMED,
                        "'%s' is empty; a model is ONNX, GGUF, Pestle or "
                        "StableHLO text, StableHLO bytecode, or Pestle's "
                        "binary form",
                        path);
  }
  if (is_plan(mapping)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "'%s' is a compiled plan, not a model: "
                        "pestle_plan_load() loads it",
                        path);
  }
  return pestle_foreign_check(path, mapping->data, mapping->size);
}

// GGUF's dims have names; shapes and constants are fixed as in other modules. A file is
// mapped anew, for as long as modules need it; bytes are copied.
static pestle_status_t import_gguf(pestle_context_t* context, const char* path,
                                   const pestle_mapping_t* bytes,
                                   const pestle_import_options_t* options,
                                   pestle_module_t** out_module) {
  pestle_module_t* module = NULL;
  PESTLE_TRY(pestle_gguf_import(context, path, bytes ? bytes->data : NULL,
                                bytes ? bytes->size : 0, options, &module));
  if (!options || (!options->shape_count && !options->const_count)) {
    *out_module = module;
    return NULL;
  }
  pestle_import_options_t rest = *options;
  rest.dim_count = 0;
  pestle_status_t status = apply_options(module, &rest, out_module);
  pestle_module_release(module);
  return pestle_status_annotate(status, "while reading '%s'", path);
}

static pestle_status_t import_text(pestle_context_t* context, const char* path,
                                   const pestle_mapping_t* mapping,
                                   const pestle_import_options_t* options,
                                   pestle_module_t** out_module) {
  pestle_module_t* module = NULL;
  bool has_wrong_name =
      is_text(mapping) &&
      pestle_str_ends_with(pestle_str(path), PESTLE_STR(".onnx"));
  pestle_status_t read = import_mapping(context, path, mapping, &module);
  if (read) {
    return has_wrong_name
               ? pestle_status_annotate(
                     read,
                     "'%s' is no ONNX model in spite of its name: it is text, "
                     "and was read as StableHLO",
                     path)
               : read;
  }
  if (options && options->length_count) {
    pestle_module_release(module);
    return PESTLE_ERROR(UNSUPPORTED,
                        "'%s' is no ONNX model: lengths of inputs are of ONNX "
                        "models",
                        path);
  }
  if (!options ||
      (!options->shape_count && !options->const_count && !options->dim_count)) {
    *out_module = module;
    return NULL;
  }
  pestle_status_t status = apply_options(module, options, out_module);
  pestle_module_release(module);
  return pestle_status_annotate(status, "while reading '%s'", path);
}

// A TensorFlow SavedModel is a folder.
static pestle_status_t map_model(pestle_context_t* context, const char* path,
                                 pestle_mapping_t* out_mapping) {
  pestle_status_t status = pestle_file_map(path, out_mapping);
  if (pestle_status_code(status) != PESTLE_STATUS_INVALID_ARGUMENT)
    return status;
  pestle_arena_t arena;
  pestle_arena_init(pestle_context_allocator(context), &arena);
  const char* inside = pestle_path_join(&arena, path, "saved_model.pb");
  if (inside && pestle_file_exists(inside)) {
    pestle_status_release(status);
    status = PESTLE_ERROR(UNSUPPORTED,
                          "'%s' is a TensorFlow SavedModel: convert it with "
                          "'python -m tf2onnx.convert --saved-model %s "
                          "--output FILE.onnx'",
                          path, path);
  }
  pestle_arena_deinit(&arena);
  return status;
}

static pestle_status_t import_file(pestle_context_t* context, const char* path,
                                   const pestle_import_options_t* options,
                                   pestle_module_t** out_module) {
  pestle_mapping_t mapping;
  PESTLE_TRY(map_model(context, path, &mapping));
  pestle_status_t status = check_kind(path, &mapping);
  bool is_onnx = !status && !is_module(&mapping);
  if (!status && is_gguf(&mapping)) {
    status = import_gguf(context, path, NULL, options, out_module);
  } else if (!status && !is_onnx) {
    status = import_text(context, path, &mapping, options, out_module);
  }
  pestle_file_unmap(&mapping);
  if (!is_onnx) return status;
  return pestle_import_onnx_file(context, path, options, out_module);
}

pestle_status_t pestle_import_file(pestle_context_t* context, const char* path,
                                   const pestle_import_options_t* options,
                                   pestle_module_t** out_module) {
  if (out_module) *out_module = NULL;
  PESTLE_REQUIRE(context && path && out_module,
                 "a context, a path and a place for the module");
  pestle_import_own_t own;
  PESTLE_TRY(pestle_import_read_options(options, &own, &options));
  int64_t begin = pestle_context_trace_begin(context);
  pestle_status_t status = import_file(context, path, options, out_module);
  pestle_context_trace_end(context, begin, "import", "import", path);
  return status;
}

static pestle_status_t import_bytes(pestle_context_t* context,
                                    const pestle_mapping_t* bytes,
                                    const char* name,
                                    const pestle_import_options_t* options,
                                    pestle_module_t** out_module) {
  PESTLE_TRY(check_kind(name, bytes));
  if (is_gguf(bytes))
    return import_gguf(context, name, bytes, options, out_module);
  return is_module(bytes)
             ? import_text(context, name, bytes, options, out_module)
             : pestle_import_onnx(context, bytes->data, bytes->size, true, NULL,
                                  options, out_module);
}

pestle_status_t pestle_import_bytes(pestle_context_t* context, const void* data,
                                    size_t size, const char* name,
                                    const pestle_import_options_t* options,
                                    pestle_module_t** out_module) {
  if (out_module) *out_module = NULL;
  PESTLE_REQUIRE(context && (data || !size) && out_module,
                 "a context, bytes and a place for the module");
  pestle_import_own_t own;
  PESTLE_TRY(pestle_import_read_options(options, &own, &options));
  if (!name) name = "<bytes>";
  pestle_mapping_t bytes = {.data = data, .size = size};
  int64_t begin = pestle_context_trace_begin(context);
  pestle_status_t status =
      import_bytes(context, &bytes, name, options, out_module);
  pestle_context_trace_end(context, begin, "import", "import", name);
  return status;
}

pestle_status_t pestle_import_visit_inputs(
    pestle_context_t* context, const char* path,
    pestle_status_t (*visit)(void* user, const pestle_model_input_t* input),
    void* user) {
  PESTLE_REQUIRE(context && path && visit,
                 "a context, a path and what is called with the inputs");
  pestle_mapping_t mapping;
  PESTLE_TRY(map_model(context, path, &mapping));
  bool is_onnx = mapping.size && !is_module(&mapping) && !is_plan(&mapping);
  pestle_status_t status = is_onnx ? check_kind(path, &mapping) : NULL;
  if (is_onnx && !status) {
    status = pestle_onnx_visit_inputs(context, mapping.data, mapping.size,
                                      visit, user);
    pestle_status_t known = NULL;
    if (pestle_status_code(status) == PESTLE_STATUS_MALFORMED) {
      known = pestle_foreign_check_protobuf(path, mapping.data, mapping.size);
    }
    if (known) pestle_status_release(status);
    status = known ? known
                   : pestle_status_annotate(status, "while reading '%s'", path);
  }
  pestle_file_unmap(&mapping);
  return status;
}
