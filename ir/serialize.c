// SPDX-License-Identifier: Apache-2.0
// Writing the binary form (serialize_format.h).
#include "ir/serialize.h"

#include "base/bits.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/require.h"
#include "base/vec.h"
#include "ir/bytes.h"
#include "ir/serialize_format.h"
#include "ir/text.h"

typedef struct constant_t {
  const pestle_elements_t* elements;
  pestle_hash128_t hash;
  uint32_t type;
  size_t offset;
} constant_t;

typedef struct writer_t {
  pestle_allocator_t allocator;
  pestle_strbuf_t body;    // everything after the tables
  pestle_map_t strings;    // text -> index + 1, in order of first use
  pestle_map_t ops;        // pestle_op_t -> index
  pestle_map_t types;      // type -> index
  pestle_map_t constants;  // type, splat and hash -> index
  pestle_map_t values;     // value -> number
  PESTLE_VEC(constant_t) constant_rows;
  uint64_t next_value;
  size_t data_size;
  int depth;
  bool failed;  // a table ran out of memory
} writer_t;

// --- Tables ---

// The index of a key, given out in the order of first use.
static uint64_t index_of(writer_t* w, pestle_map_t* map, const void* key,
                         size_t size) {
  bool added;
  uint64_t next = pestle_map_size(map);
  pestle_map_value_t* slot = pestle_map_put(map, key, size, &added);
  if (!slot) {
    w->failed = true;
    return 0;
  }
  if (added) slot->u64 = next;
  return slot->u64;
}

static void put_string(writer_t* w, const char* text) {
  pestle_put_uint(&w->body,
                  text ? index_of(w, &w->strings, text, strlen(text)) + 1 : 0);
}

// Dimensions past the rank are not part of the key.
static uint64_t type_index(writer_t* w, const pestle_type_t* type) {
  int64_t key[PESTLE_MAX_RANK + 1];
  key[0] = (int64_t)type->dtype;
  for (int i = 0; i < type->rank; ++i)
    key[i + 1] = type->dims[i];
  return index_of(w, &w->types, key, (size_t)(type->rank + 1) * sizeof(*key));
}

static void put_type(writer_t* w, const pestle_type_t* type) {
  pestle_put_uint(&w->body, type_index(w, type));
}

typedef struct constant_key_t {
  uint64_t type, splat, size, low, high;
} constant_key_t;

// Equal constants are kept once.
static void put_constant(writer_t* w, const pestle_elements_t* e) {
  constant_t row = {.elements = e,
                    .hash = pestle_hash128(e->data, e->size),
                    .type = (uint32_t)type_index(w, &e->type)};
  constant_key_t key = {row.type, e->splat, e->size, row.hash.low,
                        row.hash.high};
  uint64_t index = index_of(w, &w->constants, &key, sizeof(key));
  if (!w->failed && index == w->constant_rows.size) {
    row.offset = w->data_size;
    w->data_size += pestle_align_up(e->size, PESTLE_BINARY_ALIGNMENT);
    w->failed |= !pestle_vec_push(&w->constant_rows, row);
  }
  pestle_put_uint(&w->body, index);
}

// --- Nodes ---

static void define(writer_t* w, const pestle_value_t* value) {
  if (!pestle_map_set_u64(&w->values, (uintptr_t)value, w->next_value++)) {
    w->failed = true;
  }
}

static void put_attr(writer_t* w, const pestle_attr_t* a) {
  pestle_strbuf_t* out = &w->body;
  put_string(w, pestle_attr_name_text((pestle_attr_name_t)a->name));
  pestle_put_uint(out, a->kind);
  switch ((pestle_attr_kind_t)a->kind) {
    case PESTLE_ATTR_KIND_BOOL:
      pestle_put_uint(out, a->as.b);
      return;
    case PESTLE_ATTR_KIND_I64:
      pestle_put_int(out, a->as.i64);
      return;
    case PESTLE_ATTR_KIND_F64:
      pestle_put_u64(out, pestle_f64_bits(a->as.f64));
      return;
    case PESTLE_ATTR_KIND_STR:
      put_string(w, a->as.str ? a->as.str : "");
      return;
    case PESTLE_ATTR_KIND_I64S:
      pestle_put_uint(out, a->as.i64s.count);
      for (size_t i = 0; i < a->as.i64s.count; ++i) {
        pestle_put_int(out, a->as.i64s.data[i]);
      }
      return;
    case PESTLE_ATTR_KIND_TYPE:
      put_type(w, a->as.type);
      return;
    case PESTLE_ATTR_KIND_ELEMENTS:
      put_constant(w, a->as.elements);
      return;
  }
}

static pestle_status_t put_block(writer_t* w, const pestle_block_t* block,
                                 bool with_types);

static pestle_status_t put_node(writer_t* w, const pestle_node_t* node) {
  pestle_strbuf_t* out = &w->body;
  uint64_t op = node->op;
  pestle_put_uint(out, index_of(w, &w->ops, &op, sizeof(op)));
  pestle_put_uint(out, node->operand_count);
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_map_value_t* number =
        pestle_map_find_u64(&w->values, (uintptr_t)node->operands[i].value);
    if (!number && !w->failed) {
      return pestle_node_error(node, PESTLE_STATUS_INVALID_ARGUMENT,
                               "operand %u is not defined before its use", i);
    }
    pestle_put_uint(out, number ? number->u64 : 0);
  }
  pestle_put_uint(out, node->attr_count);
  for (uint32_t i = 0; i < node->attr_count; ++i)
    put_attr(w, &node->attrs[i]);
  pestle_put_uint(out, node->region_count);
  for (uint32_t i = 0; i < node->region_count; ++i) {
    PESTLE_TRY(put_block(w, pestle_node_body(node, i), true));
  }
  pestle_put_uint(out, node->result_count);
  for (uint32_t i = 0; i < node->result_count; ++i) {
    put_type(w, node->results[i].type);
    put_string(w, node->results[i].name);
    define(w, &node->results[i]);
  }
  put_string(w, node->loc.name);
  put_string(w, node->loc.file);
  pestle_put_uint(out, node->loc.line);
  pestle_put_uint(out, node->loc.column);
  return NULL;
}

static pestle_status_t put_block(writer_t* w, const pestle_block_t* block,
                                 bool with_types) {
  if (++w->depth > PESTLE_BINARY_MAX_DEPTH) {
    return PESTLE_ERROR(RESOURCE_EXHAUSTED,
                        "regions are nested more than %d deep",
                        PESTLE_BINARY_MAX_DEPTH);
  }
  uint64_t mark = w->next_value, count = 0;
  if (with_types) pestle_put_uint(&w->body, block->argument_count);
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    if (with_types) put_type(w, block->arguments[i]->type);
    put_string(w, block->arguments[i]->name);
    define(w, block->arguments[i]);
  }
  for (const pestle_node_t* n = block->first; n; n = n->next)
    ++count;
  pestle_put_uint(&w->body, count);
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    PESTLE_TRY(put_node(w, n));
  }
  w->next_value = mark;
  --w->depth;
  return NULL;
}

static void put_dialect_attrs(writer_t* w, pestle_dialect_attrs_t attrs) {
  pestle_put_uint(&w->body, attrs.count);
  for (uint32_t i = 0; i < attrs.count; ++i) {
    put_string(w, attrs.data[i].key);
    put_string(w, attrs.data[i].text);
  }
}

static void put_signature(writer_t* w, const pestle_function_t* f) {
  const pestle_block_t* block = f->body->block;
  size_t results = 0;
  bool known = pestle_function_result_count(f, &results);
  put_string(w, f->name);
  pestle_put_uint(&w->body, f->is_private);
  pestle_put_uint(&w->body, block->argument_count);
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    put_type(w, block->arguments[i]->type);
    put_string(w, f->argument_names ? f->argument_names[i] : NULL);
    put_dialect_attrs(w, pestle_function_argument_attrs(f, i));
  }
  pestle_put_uint(&w->body, known);
  pestle_put_uint(&w->body, results);
  for (size_t i = 0; i < results; ++i) {
    put_type(w, pestle_function_result_type(f, i));
    put_string(w, i < f->result_name_count ? f->result_names[i] : NULL);
    pestle_put_uint(&w->body, (uint64_t)(pestle_function_shape_of(f, i) + 1));
    put_dialect_attrs(w, pestle_function_result_attrs(f, i));
  }
  put_dialect_attrs(w, f->dialect_attrs);
}

static pestle_status_t put_module(writer_t* w, const pestle_module_t* module) {
  uint64_t count = 0;
  put_string(w, module->name);
  put_dialect_attrs(w, module->dialect_attrs);
  for (const pestle_function_t* f = module->first; f; f = f->next)
    ++count;
  pestle_put_uint(&w->body, count);
  for (const pestle_function_t* f = module->first; f; f = f->next) {
    put_signature(w, f);
  }
  for (const pestle_function_t* f = module->first; f; f = f->next) {
    pestle_map_clear(&w->values);
    PESTLE_TRY(put_block(w, f->body->block, false));
  }
  return w->failed ? PESTLE_OOM() : NULL;
}

// --- Putting it together ---

static void put_op_name(pestle_strbuf_t* out, pestle_op_t op) {
  const char* direction = pestle_text_direction(op);
  const char* name = pestle_op_info(op)->mlir;
  pestle_put_uint(out, strlen(name) + (direction ? 1 + strlen(direction) : 0));
  pestle_strbuf_append_c(out, name);
  if (direction) pestle_strbuf_appendf(out, " %s", direction);
}

static void put_type_row(pestle_strbuf_t* out, pestle_str_t key) {
  int64_t words[PESTLE_MAX_RANK + 1];
  memcpy(words, key.data, key.size);
  size_t rank = key.size / sizeof(*words) - 1;
  pestle_put_text(out, pestle_dtype_info((pestle_dtype_t)words[0])->name);
  pestle_put_uint(out, rank);
  for (size_t i = 0; i < rank; ++i)
    pestle_put_int(out, words[i + 1]);
}

static void put_tables(const writer_t* w, pestle_strbuf_t* out) {
  const pestle_map_entry_t* e;
  size_t cursor = 0;
  pestle_put_uint(out, pestle_map_size(&w->strings));
  while ((e = pestle_map_next(&w->strings, &cursor))) {
    pestle_str_t text = pestle_map_entry_key(e);
    pestle_put_uint(out, text.size);
    pestle_strbuf_append(out, text);
  }
  pestle_put_uint(out, pestle_map_size(&w->ops));
  for (cursor = 0; (e = pestle_map_next(&w->ops, &cursor));) {
    put_op_name(out, (pestle_op_t)pestle_map_entry_key_u64(e));
  }
  pestle_put_uint(out, pestle_map_size(&w->types));
  for (cursor = 0; (e = pestle_map_next(&w->types, &cursor));) {
    put_type_row(out, pestle_map_entry_key(e));
  }
  pestle_put_uint(out, w->constant_rows.size);
  for (size_t i = 0; i < w->constant_rows.size; ++i) {
    const constant_t* row = &w->constant_rows.data[i];
    pestle_put_uint(out, row->type);
    pestle_put_uint(out, row->elements->splat);
    pestle_put_uint(out, row->offset);
    pestle_put_uint(out, row->elements->size);
    pestle_put_u64(out, row->hash.low);
    pestle_put_u64(out, row->hash.high);
  }
}

static void put_header(pestle_strbuf_t* out, size_t graph_size,
                       size_t data_offset, size_t data_size) {
  pestle_strbuf_append_bytes(out, PESTLE_BINARY_MAGIC, 8);
  pestle_put_u64(out, PESTLE_BINARY_VERSION);
  pestle_put_u64(out, data_offset + data_size);
  pestle_put_u64(out, PESTLE_BINARY_HEADER);
  pestle_put_u64(out, graph_size);
  pestle_put_u64(out, data_offset);
  pestle_put_u64(out, data_size);
  pestle_put_u64(out, 0);
}

static pestle_status_t assemble(const writer_t* w,
                                const pestle_strbuf_t* tables, void** out_data,
                                size_t* out_size) {
  size_t graph_size = tables->size + w->body.size;
  size_t data_offset = pestle_align_up(PESTLE_BINARY_HEADER + graph_size,
                                       PESTLE_BINARY_ALIGNMENT);
  size_t total = data_offset + w->data_size;
  pestle_strbuf_t header;
  pestle_strbuf_init(w->allocator, &header);
  put_header(&header, graph_size, data_offset, w->data_size);
  pestle_status_t status = pestle_strbuf_status(&header);
  char* data = status ? NULL : pestle_alloc_zero(w->allocator, total);
  if (!status && !data && !PESTLE_FAULT(trust_unchecked)) {
    status = PESTLE_OOM();
  }
  if (!status) {
    char* to = data;
    memcpy(to, header.data, PESTLE_BINARY_HEADER);
    to += PESTLE_BINARY_HEADER;
    memcpy(to, tables->data, tables->size);
    memcpy(to + tables->size, w->body.data, w->body.size);
    for (size_t i = 0; i < w->constant_rows.size; ++i) {
      const constant_t* row = &w->constant_rows.data[i];
      if (!row->elements->size) continue;
      memcpy(data + data_offset + row->offset, row->elements->data,
             row->elements->size);
    }
    *out_data = data;
    *out_size = total;
  }
  pestle_strbuf_deinit(&header);
  return status;
}

pestle_status_t pestle_module_serialize(const pestle_module_t* module,
                                        void** out_data, size_t* out_size) {
  if (out_data) *out_data = NULL;
  if (out_size) *out_size = 0;
  PESTLE_REQUIRE(module && out_data && out_size,
                 "a module and places for the bytes and their count");
  pestle_allocator_t allocator = pestle_context_allocator(module->context);
  writer_t w = {.allocator = allocator};
  pestle_strbuf_t tables;
  pestle_strbuf_init(allocator, &w.body);
  pestle_strbuf_init(allocator, &tables);
  pestle_map_init(allocator, &w.strings);
  pestle_map_init(allocator, &w.ops);
  pestle_map_init(allocator, &w.types);
  pestle_map_init(allocator, &w.constants);
  pestle_map_init(allocator, &w.values);
  pestle_vec_init(&w.constant_rows, allocator);
  pestle_status_t status = put_module(&w, module);
  if (!status) put_tables(&w, &tables);
  if (!status) status = pestle_strbuf_status(&w.body);
  if (!status) status = pestle_strbuf_status(&tables);
  if (!status) status = assemble(&w, &tables, out_data, out_size);
  pestle_vec_deinit(&w.constant_rows);
  pestle_map_deinit(&w.values);
  pestle_map_deinit(&w.constants);
  pestle_map_deinit(&w.types);
  pestle_map_deinit(&w.ops);
  pestle_map_deinit(&w.strings);
  pestle_strbuf_deinit(&tables);
  pestle_strbuf_deinit(&w.body);
  return status;
}
