// SPDX-License-Identifier: Apache-2.0
// Functions, bodies of CUSTOM and modules: see print.c.
#include "base/require.h"
#include "ir/print_internal.h"

static void put(pestle_printer_t* p, const char* text) {
  pestle_strbuf_append_c(p->out, text);
}

// Begins the first entry of a dictionary or separates another one.
static void put_entry(pestle_printer_t* p, bool* open) {
  put(p, *open ? ", " : " {");
  *open = true;
}

static void print_dialect_attrs(pestle_printer_t* p,
                                pestle_dialect_attrs_t attrs, bool* open) {
  for (uint32_t i = 0; i < attrs.count; ++i) {
    const pestle_dialect_attr_t* a = &attrs.data[i];
    put_entry(p, open);
    pestle_print_word(a->key, p->out);
    if (*a->text) pestle_strbuf_appendf(p->out, " = %s", a->text);
  }
}

// What is noted of an argument or result; |shape_of|: -1 for none.
static void print_io_attrs(pestle_printer_t* p, const char* name,
                           int64_t shape_of, pestle_dialect_attrs_t attrs) {
  bool open = false;
  if (name) {
    put_entry(p, &open);
    put(p, "pestle.name = ");
    pestle_strbuf_append_quoted(p->out, pestle_str(name));
  }
  if (shape_of >= 0) {
    put_entry(p, &open);
    pestle_strbuf_appendf(p->out, "pestle.shape_of = %lld : i64",
                          (long long)shape_of);
  }
  print_dialect_attrs(p, attrs, &open);
  if (open) put(p, "}");
}

// " attributes {..}", or nothing
static void print_attributes(pestle_printer_t* p,
                             pestle_dialect_attrs_t attrs) {
  bool open = false;
  if (!attrs.count) return;
  put(p, " attributes");
  print_dialect_attrs(p, attrs, &open);
  put(p, "}");
}

// |f| NULL: of a body, which notes nothing of its arguments.
static void print_arguments(pestle_printer_t* p, const pestle_block_t* block,
                            const pestle_function_t* f) {
  put(p, "(");
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    if (i) put(p, ", ");
    pestle_print_value(&p->names, block->arguments[i], p->out);
    put(p, ": ");
    pestle_type_print(block->arguments[i]->type, p->out);
    if (!f) continue;
    print_io_attrs(p, f->argument_names ? f->argument_names[i] : NULL, -1,
                   pestle_function_argument_attrs(f, i));
  }
  put(p, ")");
}

static void print_function_results(pestle_printer_t* p,
                                   const pestle_function_t* f) {
  size_t count;
  if (!pestle_function_result_count(f, &count) || !count) return;
  bool named = false;
  for (size_t i = 0; i < count && i < f->result_name_count; ++i) {
    named |= f->result_names[i] != NULL;
  }
  for (size_t i = 0; i < count && i < f->result_attr_count; ++i) {
    named |= f->result_attrs[i].count != 0;
  }
  bool parentheses = named || count != 1;  // no lone result is a shape
  put(p, parentheses ? " -> (" : " -> ");
  for (size_t i = 0; i < count; ++i) {
    if (i) put(p, ", ");
    pestle_type_print(pestle_function_result_type(f, i), p->out);
    print_io_attrs(p, i < f->result_name_count ? f->result_names[i] : NULL,
                   pestle_function_shape_of(f, i),
                   pestle_function_result_attrs(f, i));
  }
  if (parentheses) put(p, ")");
}

static void print_body(pestle_printer_t* p, const pestle_block_t* block) {
  put(p, " {\n");
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    pestle_print_node(p, n, 2, true);
  }
  put(p, "  }\n");
}

static pestle_status_t print_function(pestle_printer_t* p,
                                      const pestle_function_t* f) {
  PESTLE_TRY(pestle_print_names_assign(&p->names, f->body));
  put(p, f->is_private ? "  func.func private " : "  func.func public ");
  pestle_print_symbol(f->name, p->out);
  print_arguments(p, f->body->block, f);
  print_function_results(p, f);
  print_attributes(p, f->dialect_attrs);
  print_body(p, f->body->block);
  return pestle_strbuf_status(p->out);
}

// The body of |node|, a CUSTOM, as a function.
static pestle_status_t print_decomposition(pestle_printer_t* p,
                                           const pestle_node_t* node) {
  const pestle_block_t* block = pestle_node_body(node, 0);
  PESTLE_TRY(pestle_print_names_assign(&p->names, node->regions[0]));
  put(p, "  func.func private ");
  pestle_print_symbol(pestle_print_bodies_name(&p->bodies, node), p->out);
  print_arguments(p, block, NULL);
  if (node->result_count) {
    put(p, " -> ");
    pestle_print_result_types(p, node);
  }
  print_body(p, block);
  return pestle_strbuf_status(p->out);
}

static pestle_status_t print_module(pestle_printer_t* p,
                                    const pestle_module_t* module) {
  put(p, "module");
  if (module->name && *module->name) {
    put(p, " ");
    pestle_print_symbol(module->name, p->out);
  }
  print_attributes(p, module->dialect_attrs);
  put(p, " {\n");
  for (const pestle_function_t* f = module->first; f; f = f->next) {
    PESTLE_TRY(print_function(p, f));
  }
  for (size_t i = 0; i < p->bodies.nodes.size; ++i) {
    PESTLE_TRY(print_decomposition(p, p->bodies.nodes.data[i]));
  }
  put(p, "}\n");
  return pestle_strbuf_status(p->out);
}

pestle_status_t pestle_module_print(const pestle_module_t* module,
                                    unsigned flags, char** out_text,
                                    size_t* out_size) {
  if (out_text) *out_text = NULL;
  if (out_size) *out_size = 0;
  PESTLE_REQUIRE(module && out_text && out_size,
                 "a module and places for the text and its size");
  pestle_allocator_t allocator = pestle_context_allocator(module->context);
  pestle_strbuf_t text;
  pestle_strbuf_init(allocator, &text);
  pestle_printer_t printer = {.out = &text, .flags = flags};
  pestle_print_names_init(allocator, &printer.names);
  pestle_print_bodies_init(allocator, &printer.bodies);
  printer.bodies.apart = flags & PESTLE_PRINT_LOCATIONS;
  pestle_status_t status = pestle_print_bodies_assign(&printer.bodies, module);
  if (!status) status = print_module(&printer, module);
  pestle_print_bodies_deinit(&printer.bodies);
  pestle_print_names_deinit(&printer.names);
  if (!status) status = pestle_strbuf_take(&text, out_text, out_size);
  pestle_strbuf_deinit(&text);
  return status;
}
