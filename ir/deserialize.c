// SPDX-License-Identifier: Apache-2.0
// Reading the binary form (serialize_format.h). Every number is checked before
// it is used; the module is built through the checked constructors and verified
// at the end, so damaged bytes give a status and nothing else.
#include "base/arena.h"
#include "base/bits.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/require.h"
#include "base/vec.h"
#include "ir/bytes.h"
#include "ir/serialize.h"
#include "ir/serialize_format.h"
#include "ir/text.h"

typedef struct loader_t {
  pestle_allocator_t allocator;
  pestle_reader_t in;
  const unsigned char* data;  // of the constants
  size_t data_size;
  unsigned flags;
  pestle_arena_t tables, scratch;
  pestle_module_t* module;
  const char** strings;  // [0] is NULL
  pestle_op_t* ops;
  pestle_type_t* types;
  pestle_elements_t* constants;
  size_t string_count, op_count, type_count, constant_count;
  PESTLE_VEC(pestle_value_t*) values;
  int depth;
} loader_t;

static pestle_status_t damaged(const char* what) {
  return PESTLE_ERROR(MALFORMED, "the binary module is damaged: %s", what);
}

// --- Tables ---

static pestle_status_t read_strings(loader_t* l) {
  size_t count = pestle_get_count(&l->in, 1);
  l->string_count = count + 1;
  l->strings = PESTLE_ARENA_ARRAY(&l->tables, const char*, count + 1);
  if (!l->strings) return PESTLE_OOM();
  l->strings[0] = NULL;
  for (size_t i = 0; i < count; ++i) {
    l->strings[i + 1] =
        pestle_arena_strndup(&l->tables, pestle_get_text(&l->in));
    if (!l->strings[i + 1]) return PESTLE_OOM();
  }
  return l->in.failed ? damaged("strings") : NULL;
}

static pestle_status_t fill_op_names(pestle_map_t* map) {
  char name[96];
  for (unsigned i = 0; i < PESTLE_OP_COUNT; ++i) {
    const char* mlir = pestle_op_info((pestle_op_t)i)->mlir;
    const char* direction = pestle_text_direction((pestle_op_t)i);
    size_t size = strlen(mlir);
    memcpy(name, mlir, size);
    if (direction) {
      name[size++] = ' ';
      memcpy(name + size, direction, strlen(direction));
      size += strlen(direction);
    }
    if (!pestle_map_set_str(map, pestle_str_make(name, size), i)) {
      return PESTLE_OOM();
    }
  }
  return NULL;
}

static pestle_status_t read_op_names(loader_t* l, const pestle_map_t* names) {
  l->op_count = pestle_get_count(&l->in, 1);
  l->ops = PESTLE_ARENA_ARRAY(&l->tables, pestle_op_t, l->op_count);
  if (!l->ops) return PESTLE_OOM();
  for (size_t i = 0; i < l->op_count; ++i) {
    pestle_str_t name = pestle_get_text(&l->in);
    const pestle_map_value_t* found = pestle_map_find_str(names, name);
    if (l->in.failed) return damaged("names of operations");
    if (!found) {
      return PESTLE_ERROR(INCOMPATIBLE,
                          "the binary module has an operation '%.*s' that this "
                          "build does not know",
                          name.size > 80 ? 80 : (int)name.size, name.data);
    }
    l->ops[i] = (pestle_op_t)found->u64;
  }
  return NULL;
}

static pestle_status_t read_ops(loader_t* l) {
  pestle_map_t names;
  pestle_map_init(l->allocator, &names);
  pestle_status_t status = fill_op_names(&names);
  if (!status) status = read_op_names(l, &names);
  pestle_map_deinit(&names);
  return status;
}

static pestle_status_t read_types(loader_t* l) {
  l->type_count = pestle_get_count(&l->in, 2);
  l->types = PESTLE_ARENA_ARRAY(&l->tables, pestle_type_t, l->type_count);
  if (!l->types) return PESTLE_OOM();
  for (size_t i = 0; i < l->type_count; ++i) {
    char name[32] = "";
    pestle_str_t text = pestle_get_text(&l->in);
    if (text.size < sizeof(name)) memcpy(name, text.data, text.size);
    int64_t dims[PESTLE_MAX_RANK];
    size_t rank = pestle_get_index(&l->in, PESTLE_MAX_RANK + 1);
    for (size_t j = 0; j < rank; ++j)
      dims[j] = pestle_get_int(&l->in);
    if (l->in.failed) return damaged("types");
    l->types[i] =
        pestle_type_make(pestle_dtype_from_name(name), (int)rank, dims);
    pestle_status_t status = pestle_type_check(&l->types[i]);
    if (status) {
      pestle_status_release(status);
      return damaged("a type that no tensor has");
    }
  }
  return NULL;
}

static const pestle_type_t* get_type(loader_t* l) {
  static const pestle_type_t none = {.dtype = PESTLE_NONE};
  size_t index = pestle_get_index(&l->in, l->type_count);
  return l->in.failed ? &none : &l->types[index];
}

static const char* get_string(loader_t* l) {
  size_t index = pestle_get_index(&l->in, l->string_count);
  return l->in.failed ? NULL : l->strings[index];
}

static pestle_status_t read_constant(loader_t* l, pestle_elements_t* e) {
  pestle_hash128_t hash;
  e->type = *get_type(l);
  e->splat = pestle_get_uint(&l->in) != 0;
  uint64_t offset = pestle_get_uint(&l->in);
  uint64_t size = pestle_get_uint(&l->in);
  hash.low = pestle_get_u64(&l->in);
  hash.high = pestle_get_u64(&l->in);
  if (l->in.failed || !pestle_type_is_static(&e->type) ||
      offset > l->data_size || size > l->data_size - offset ||
      offset % PESTLE_BINARY_ALIGNMENT) {
    return damaged("the table of constants");
  }
  size_t want =
      e->splat ? pestle_dtype_size(e->type.dtype) : pestle_type_bytes(&e->type);
  if (size != want) return damaged("a constant's size");
  e->data = l->data + offset;
  e->size = (size_t)size;
  if (l->flags & PESTLE_DESERIALIZE_BORROW) return NULL;
  if (!pestle_hash128_equal(hash, pestle_hash128(e->data, e->size))) {
    return damaged("a constant's content");
  }
  return NULL;
}

static pestle_status_t read_constants(loader_t* l) {
  l->constant_count = pestle_get_count(&l->in, 20);
  l->constants =
      PESTLE_ARENA_ARRAY(&l->tables, pestle_elements_t, l->constant_count);
  if (!l->constants) return PESTLE_OOM();
  for (size_t i = 0; i < l->constant_count; ++i) {
    PESTLE_TRY(read_constant(l, &l->constants[i]));
  }
  return NULL;
}

// --- Nodes ---

static pestle_status_t push_value(loader_t* l, pestle_value_t* value,
                                  const char* name) {
  if (name) {
    value->name = pestle_module_intern_string(l->module, name);
    if (!value->name) return PESTLE_OOM();
  }
  return pestle_vec_push(&l->values, value) ? NULL : PESTLE_OOM();
}

// Which attribute |text| names.
static bool find_attr_name(const char* text, uint16_t* out_name) {
  if (!text) return false;
  for (unsigned i = 0; i < PESTLE_ATTR_COUNT; ++i) {
    if (strcmp(text, pestle_attr_name_text((pestle_attr_name_t)i))) continue;
    *out_name = (uint16_t)i;
    return true;
  }
  return false;
}

static pestle_status_t read_attr(loader_t* l, pestle_attr_t* a) {
  pestle_reader_t* in = &l->in;
  if (!find_attr_name(get_string(l), &a->name)) return damaged("an attribute");
  a->kind = (uint16_t)pestle_get_index(in, PESTLE_ATTR_KIND_ELEMENTS + 1);
  switch ((pestle_attr_kind_t)a->kind) {
    case PESTLE_ATTR_KIND_BOOL:
      a->as.b = pestle_get_uint(in) != 0;
      break;
    case PESTLE_ATTR_KIND_I64:
      a->as.i64 = pestle_get_int(in);
      break;
    case PESTLE_ATTR_KIND_F64: {
      uint64_t bits = pestle_get_u64(in);
      memcpy(&a->as.f64, &bits, sizeof(bits));
      break;
    }
    case PESTLE_ATTR_KIND_STR:
      a->as.str = get_string(l);
      if (!a->as.str) return damaged("an attribute's text");
      break;
    case PESTLE_ATTR_KIND_I64S: {
      size_t count = pestle_get_count(in, 1);
      int64_t* data = PESTLE_ARENA_ARRAY(&l->scratch, int64_t, count);
      if (!data) return PESTLE_OOM();
      for (size_t i = 0; i < count; ++i)
        data[i] = pestle_get_int(in);
      a->as.i64s = (pestle_i64s_t){data, count};
      break;
    }
    case PESTLE_ATTR_KIND_TYPE:
      a->as.type = get_type(l);
      break;
    case PESTLE_ATTR_KIND_ELEMENTS: {
      size_t index = pestle_get_index(in, l->constant_count);
      if (!in->failed) a->as.elements = &l->constants[index];
      break;
    }
  }
  return in->failed ? damaged("an attribute") : NULL;
}

static pestle_status_t read_block_body(loader_t* l, pestle_block_t* block);

static pestle_status_t read_region(loader_t* l, pestle_region_t** out_region) {
  pestle_block_t* block;
  size_t mark = l->values.size;
  size_t count = pestle_get_count(&l->in, 2);
  pestle_type_t* types = PESTLE_ARENA_ARRAY(&l->scratch, pestle_type_t, count);
  const char** names = PESTLE_ARENA_ARRAY(&l->scratch, const char*, count);
  if (!types || !names) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    types[i] = *get_type(l);
    names[i] = get_string(l);
  }
  if (l->in.failed) return damaged("a region's arguments");
  PESTLE_TRY(pestle_region_create(l->module, types, count, out_region, &block));
  for (size_t i = 0; i < count; ++i) {
    PESTLE_TRY(push_value(l, block->arguments[i], names[i]));
  }
  PESTLE_TRY(read_block_body(l, block));
  l->values.size = mark;
  return NULL;
}

// The lists of one node, in the order of the bytes.
static pestle_status_t read_spec(loader_t* l, pestle_node_spec_t* spec) {
  pestle_reader_t* in = &l->in;
  size_t op = pestle_get_index(in, l->op_count);
  if (in->failed) return damaged("an operation");
  spec->op = l->ops[op];
  spec->operand_count = pestle_get_count(in, 1);
  pestle_value_t** operands =
      PESTLE_ARENA_ARRAY(&l->scratch, pestle_value_t*, spec->operand_count);
  if (!operands) return PESTLE_OOM();
  for (size_t i = 0; i < spec->operand_count; ++i) {
    size_t number = pestle_get_index(in, l->values.size);
    if (in->failed) return damaged("an operand");
    operands[i] = l->values.data[number];
  }
  spec->operands = operands;
  spec->attr_count = pestle_get_count(in, 2);
  pestle_attr_t* attrs =
      PESTLE_ARENA_ARRAY(&l->scratch, pestle_attr_t, spec->attr_count);
  if (!attrs) return PESTLE_OOM();
  for (size_t i = 0; i < spec->attr_count; ++i) {
    PESTLE_TRY(read_attr(l, &attrs[i]));
  }
  spec->attrs = attrs;
  spec->region_count = pestle_get_count(in, 2);
  pestle_region_t** regions =
      PESTLE_ARENA_ARRAY(&l->scratch, pestle_region_t*, spec->region_count);
  if (!regions) return PESTLE_OOM();
  for (size_t i = 0; i < spec->region_count; ++i) {
    PESTLE_TRY(read_region(l, &regions[i]));
  }
  spec->regions = regions;
  return in->failed ? damaged("an operation") : NULL;
}

typedef struct results_t {
  const pestle_type_t** types;
  const char** names;
  size_t count;
} results_t;

static pestle_status_t read_results(loader_t* l, results_t* r) {
  r->count = pestle_get_count(&l->in, 2);
  r->types = PESTLE_ARENA_ARRAY(&l->scratch, const pestle_type_t*, r->count);
  r->names = PESTLE_ARENA_ARRAY(&l->scratch, const char*, r->count);
  if (!r->types || !r->names) return PESTLE_OOM();
  for (size_t i = 0; i < r->count; ++i) {
    r->types[i] = get_type(l);
    r->names[i] = get_string(l);
  }
  return NULL;
}

static pestle_status_t state_types(loader_t* l, const results_t* r,
                                   pestle_node_spec_t* spec) {
  pestle_type_t* types =
      PESTLE_ARENA_ARRAY(&l->scratch, pestle_type_t, r->count + 1);
  if (!types) return PESTLE_OOM();
  for (size_t i = 0; i < r->count; ++i)
    types[i] = *r->types[i];
  spec->types = types;
  spec->type_count = r->count;
  return NULL;
}

static pestle_status_t place_error(const loader_t* l, pestle_status_t status) {
  pestle_status_code_t code = pestle_status_code(status);
  if (!status || code != PESTLE_STATUS_INVALID_ARGUMENT) return status;
  pestle_status_t placed =
      PESTLE_ERROR(MALFORMED, "the binary module is damaged at byte %zu: %s",
                   l->in.at, pestle_status_message(status));
  pestle_status_release(status);
  return placed;
}

static pestle_status_t read_node(loader_t* l, pestle_builder_t* builder) {
  pestle_node_spec_t spec = {.share_elements =
                                 (l->flags & PESTLE_DESERIALIZE_BORROW) != 0};
  results_t results;
  pestle_node_t* node;
  PESTLE_TRY(read_spec(l, &spec));
  PESTLE_TRY(read_results(l, &results));
  builder->loc.name = get_string(l);
  builder->loc.file = get_string(l);
  builder->loc.line = (uint32_t)pestle_get_uint(&l->in);
  builder->loc.column = (uint32_t)pestle_get_uint(&l->in);
  if (l->in.failed) return damaged("an operation");
  spec.type = results.count ? results.types[0] : NULL;
  if (pestle_op_info(spec.op)->rule == PESTLE_RULE_TYPES) {
    PESTLE_TRY(state_types(l, &results, &spec));
  }
  pestle_status_t status = pestle_node_create(builder, &spec, &node);
  if (status) return place_error(l, status);
  if (results.count != node->result_count) return damaged("results");
  for (size_t i = 0; i < results.count; ++i) {
    if (!pestle_type_equal(results.types[i], node->results[i].type)) {
      return damaged("a result's type");
    }
    PESTLE_TRY(push_value(l, &node->results[i], results.names[i]));
  }
  return NULL;
}

static pestle_status_t read_block_body(loader_t* l, pestle_block_t* block) {
  pestle_builder_t builder = {.module = l->module, .block = block};
  if (++l->depth > PESTLE_BINARY_MAX_DEPTH) return damaged("too deep");
  size_t count = pestle_get_count(&l->in, 9);
  for (size_t i = 0; i < count; ++i) {
    pestle_arena_mark_t mark = pestle_arena_mark(&l->scratch);
    PESTLE_TRY(read_node(l, &builder));
    pestle_arena_rewind(&l->scratch, mark);
  }
  --l->depth;
  return l->in.failed ? damaged("a block") : NULL;
}

// --- Functions ---

// In the scratch arena.
static pestle_status_t read_dialect_attrs(loader_t* l,
                                          pestle_dialect_attrs_t* out) {
  size_t count = pestle_get_count(&l->in, 2);
  pestle_dialect_attr_t* data =
      PESTLE_ARENA_ARRAY(&l->scratch, pestle_dialect_attr_t, count);
  if (!data) return PESTLE_OOM();
  *out = (pestle_dialect_attrs_t){data, (uint32_t)count};
  for (size_t i = 0; i < count; ++i) {
    data[i].key = get_string(l);
    data[i].text = get_string(l);
    if (!data[i].key || !data[i].text) return damaged("an attribute");
  }
  return l->in.failed ? damaged("attributes") : NULL;
}

// One argument or result of a function.
typedef struct port_t {
  const char* name;
  uint64_t shape_of;
  pestle_dialect_attrs_t attrs;
} port_t;

// |results|: they say whose extents they hold.
static pestle_status_t read_ports(loader_t* l, bool results, size_t* out_count,
                                  pestle_type_t** out_types,
                                  port_t** out_ports) {
  size_t count = pestle_get_count(&l->in, 2);
  *out_types = PESTLE_ARENA_ARRAY(&l->scratch, pestle_type_t, count);
  *out_ports = PESTLE_ARENA_ARRAY(&l->scratch, port_t, count);
  if (!*out_types || !*out_ports) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    port_t* port = &(*out_ports)[i];
    (*out_types)[i] = *get_type(l);
    port->name = get_string(l);
    port->shape_of = results ? pestle_get_uint(&l->in) : 0;
    if (port->shape_of > i) return damaged("a function's signature");
    PESTLE_TRY(read_dialect_attrs(l, &port->attrs));
  }
  *out_count = count;
  return NULL;
}

static pestle_status_t set_results(pestle_function_t* f,
                                   const pestle_type_t* types,
                                   const port_t* ports, size_t count) {
  PESTLE_TRY(pestle_function_declare_results(f, types, count));
  for (size_t i = 0; i < count; ++i) {
    const port_t* port = &ports[i];
    if (port->shape_of) {
      PESTLE_TRY(
          pestle_function_set_shape_of(f, i, (size_t)(port->shape_of - 1)));
    }
    PESTLE_TRY(pestle_function_set_result_attrs(f, i, port->attrs.data,
                                                port->attrs.count));
    if (!port->name) continue;
    PESTLE_TRY(pestle_function_set_result_name(f, i, port->name));
  }
  return NULL;
}

static pestle_status_t set_attrs(pestle_function_t* f,
                                 const pestle_dialect_attrs_t* attrs,
                                 const port_t* arguments, size_t count) {
  PESTLE_TRY(pestle_function_set_dialect_attrs(f, attrs->data, attrs->count));
  for (size_t i = 0; i < count; ++i) {
    PESTLE_TRY(pestle_function_set_argument_attrs(f, i, arguments[i].attrs.data,
                                                  arguments[i].attrs.count));
  }
  return NULL;
}

static pestle_status_t read_signature(loader_t* l) {
  size_t count, result_count;
  pestle_type_t *types, *result_types;
  port_t *arguments, *results;
  pestle_dialect_attrs_t attrs;
  const char* name = get_string(l);
  bool is_private = pestle_get_uint(&l->in) != 0;
  PESTLE_TRY(read_ports(l, false, &count, &types, &arguments));
  bool known = pestle_get_uint(&l->in) != 0;
  PESTLE_TRY(read_ports(l, true, &result_count, &result_types, &results));
  PESTLE_TRY(read_dialect_attrs(l, &attrs));
  if (l->in.failed || !name || !*name ||
      pestle_module_find_function(l->module, name)) {
    return damaged("a function's signature");
  }
  const char** names = PESTLE_ARENA_ARRAY(&l->scratch, const char*, count);
  if (!names) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    names[i] = arguments[i].name;
  pestle_function_t* f;
  PESTLE_TRY(
      pestle_module_add_function(l->module, name, types, names, count, &f));
  f->is_private = is_private;
  PESTLE_TRY(place_error(l, set_attrs(f, &attrs, arguments, count)));
  return known ? place_error(
                     l, set_results(f, result_types, results, result_count))
               : NULL;
}

static pestle_status_t read_body(loader_t* l, pestle_function_t* f) {
  pestle_block_t* block = f->body->block;
  l->values.size = 0;
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    PESTLE_TRY(push_value(l, block->arguments[i], get_string(l)));
  }
  return read_block_body(l, block);
}

static pestle_status_t read_graph(loader_t* l, pestle_context_t* context) {
  PESTLE_TRY(read_strings(l));
  PESTLE_TRY(read_ops(l));
  PESTLE_TRY(read_types(l));
  PESTLE_TRY(read_constants(l));
  const char* name = get_string(l);
  pestle_dialect_attrs_t attrs;
  PESTLE_TRY(read_dialect_attrs(l, &attrs));
  PESTLE_TRY(pestle_module_create(context, name ? name : "", &l->module));
  PESTLE_TRY(place_error(
      l, pestle_module_set_dialect_attrs(l->module, attrs.data, attrs.count)));
  size_t count = pestle_get_count(&l->in, 5);
  for (size_t i = 0; i < count; ++i) {
    pestle_arena_mark_t mark = pestle_arena_mark(&l->scratch);
    PESTLE_TRY(read_signature(l));
    pestle_arena_rewind(&l->scratch, mark);
  }
  for (pestle_function_t* f = l->module->first; f; f = f->next) {
    PESTLE_TRY(read_body(l, f));
  }
  if (l->in.failed || l->in.at != l->in.size) return damaged("its end");
  return pestle_module_verify(l->module);
}

// --- Entry points ---

static pestle_status_t read_header(loader_t* l, const void* data, size_t size) {
  if (size < PESTLE_BINARY_HEADER || memcmp(data, PESTLE_BINARY_MAGIC, 8)) {
    return damaged("it does not begin as one");
  }
  pestle_reader_t head = {.data = data, .size = PESTLE_BINARY_HEADER, .at = 8};
  uint64_t version = pestle_get_u64(&head);
  uint64_t total = pestle_get_u64(&head);
  uint64_t graph = pestle_get_u64(&head), graph_size = pestle_get_u64(&head);
  uint64_t start = pestle_get_u64(&head), data_size = pestle_get_u64(&head);
  if (version != PESTLE_BINARY_VERSION) {
    return PESTLE_ERROR(INCOMPATIBLE,
                        "the binary module has version %llu, this build reads "
                        "version %d",
                        (unsigned long long)version, PESTLE_BINARY_VERSION);
  }
  if (total != size || graph > size || graph_size > size - graph ||
      start > size || data_size > size - start ||
      start % PESTLE_BINARY_ALIGNMENT) {
    return damaged("sizes in the header");
  }
  l->in = (pestle_reader_t){.data = (const unsigned char*)data + graph,
                            .size = (size_t)graph_size};
  l->data = (const unsigned char*)data + start;
  l->data_size = (size_t)data_size;
  // Kernels load whole vectors from constants that are not copied.
  if (!pestle_is_aligned(l->data, PESTLE_BINARY_ALIGNMENT)) {
    l->flags &= ~(unsigned)PESTLE_DESERIALIZE_BORROW;
  }
  return NULL;
}

pestle_status_t pestle_module_deserialize_flags(pestle_context_t* context,
                                                const void* data, size_t size,
                                                unsigned flags,
                                                pestle_module_t** out_module) {
  *out_module = NULL;
  loader_t l = {.allocator = pestle_context_allocator(context), .flags = flags};
  pestle_arena_init(l.allocator, &l.tables);
  pestle_arena_init(l.allocator, &l.scratch);
  pestle_vec_init(&l.values, l.allocator);
  pestle_status_t status = read_header(&l, data, size);
  if (!status) status = read_graph(&l, context);
  if (!status) {
    *out_module = l.module;
  } else {
    pestle_module_release(l.module);
  }
  pestle_vec_deinit(&l.values);
  pestle_arena_deinit(&l.scratch);
  pestle_arena_deinit(&l.tables);
  return status;
}

pestle_status_t pestle_module_deserialize(pestle_context_t* context,
                                          const void* data, size_t size,
                                          pestle_module_t** out_module) {
  PESTLE_REQUIRE(context && (data || !size) && out_module,
                 "a context, a module's bytes and a place for the module");
  return pestle_module_deserialize_flags(context, data, size, 0, out_module);
}
