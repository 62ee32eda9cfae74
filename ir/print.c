// SPDX-License-Identifier: Apache-2.0
// The text form: MLIR's syntax, StableHLO's pretty forms where it has them and
// the generic form elsewhere (or everywhere with PESTLE_PRINT_GENERIC).
#include <string.h>

#include "base/mem.h"
#include "base/require.h"
#include "ir/print_internal.h"
#include "ir/text.h"

typedef struct printer_t {
  pestle_strbuf_t* out;
  unsigned flags;
  pestle_print_names_t names;
} printer_t;

static void put(printer_t* p, const char* text) {
  pestle_strbuf_append_c(p->out, text);
}

static void indent(printer_t* p, int depth) {
  pestle_strbuf_append_fill(p->out, ' ', (size_t)depth * 2);
}

static void print_value(printer_t* p, const pestle_value_t* value) {
  pestle_print_value(&p->names, value, p->out);
}

static void print_operands(printer_t* p, const pestle_node_t* node,
                           uint32_t first, uint32_t end) {
  for (uint32_t i = first; i < end; ++i) {
    if (i > first) put(p, ", ");
    print_value(p, node->operands[i].value);
  }
}

// --- Types after the colon ---

static void print_operand_types(printer_t* p, const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (i) put(p, ", ");
    pestle_type_print(node->operands[i].value->type, p->out);
  }
}

static void print_result_types(printer_t* p, const pestle_node_t* node) {
  if (node->result_count != 1) put(p, "(");
  for (uint32_t i = 0; i < node->result_count; ++i) {
    if (i) put(p, ", ");
    pestle_type_print(node->results[i].type, p->out);
  }
  if (node->result_count != 1) put(p, ")");
}

static void print_function_type(printer_t* p, const pestle_node_t* node) {
  put(p, "(");
  print_operand_types(p, node);
  put(p, ") -> ");
  print_result_types(p, node);
}

static bool all_types_equal(const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (node->operands[i].value->type != node->results[0].type) return false;
  }
  return true;
}

static void print_types(printer_t* p, const pestle_node_t* node,
                        pestle_text_types_t types) {
  put(p, " : ");
  switch (types) {
    case PESTLE_TEXT_TYPES_SAME:
      if (!all_types_equal(node)) break;
      pestle_type_print(node->results[0].type, p->out);
      return;
    case PESTLE_TEXT_TYPES_RESULT:
      pestle_type_print(node->results[0].type, p->out);
      return;
    case PESTLE_TEXT_TYPES_LIST:
      print_operand_types(p, node);
      return;
    case PESTLE_TEXT_TYPES_SELECT:
      pestle_type_print(node->operands[0].value->type, p->out);
      put(p, ", ");
      pestle_type_print(node->results[0].type, p->out);
      return;
    case PESTLE_TEXT_TYPES_ARROW:
      pestle_type_print(node->operands[0].value->type, p->out);
      put(p, " -> ");
      pestle_type_print(node->results[0].type, p->out);
      return;
    case PESTLE_TEXT_TYPES_NONE:
    case PESTLE_TEXT_TYPES_FUNCTION:
      break;
  }
  print_function_type(p, node);
}

// --- Regions ---

static void print_node(printer_t* p, const pestle_node_t* node, int depth,
                       bool in_function);

static void print_block(printer_t* p, const pestle_block_t* block, int depth) {
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    print_node(p, n, depth, false);
  }
}

static void print_block_arguments(printer_t* p, const pestle_block_t* block,
                                  uint32_t first, uint32_t step) {
  put(p, "(");
  for (uint32_t i = first; i < block->argument_count; i += step) {
    if (i > first) put(p, ", ");
    print_value(p, block->arguments[i]);
    put(p, ": ");
    pestle_type_print(block->arguments[i]->type, p->out);
  }
  put(p, ")");
}

// "({ ^bb0(..): .. }, { .. })"
static void print_regions(printer_t* p, const pestle_node_t* node, int depth) {
  if (!node->region_count) return;
  put(p, " (");
  for (uint32_t i = 0; i < node->region_count; ++i) {
    const pestle_block_t* block = pestle_node_body(node, i);
    put(p, i ? ", {\n" : "{\n");
    if (block->argument_count) {
      indent(p, depth);
      put(p, "^bb0");
      print_block_arguments(p, block, 0, 1);
      put(p, ":\n");
    }
    print_block(p, block, depth + 1);
    indent(p, depth);
    put(p, "}");
  }
  put(p, ")");
}

// --- Forms that one op has ---

static void print_generic(printer_t* p, const pestle_node_t* node, int depth) {
  pestle_strbuf_appendf(p->out, "\"%s\"(",
                        pestle_op_info((pestle_op_t)node->op)->mlir);
  print_operands(p, node, 0, node->operand_count);
  put(p, ")");
  pestle_print_properties(node, p->flags, p->out);
  print_regions(p, node, depth);
  put(p, " : ");
  print_function_type(p, node);
}

static void print_slice(printer_t* p, const pestle_node_t* node) {
  pestle_i64s_t starts = PESTLE_NODE_I64S(node, start_indices);
  pestle_i64s_t limits = PESTLE_NODE_I64S(node, limit_indices);
  pestle_i64s_t strides = PESTLE_NODE_I64S(node, strides);
  put(p, "stablehlo.slice ");
  print_value(p, node->operands[0].value);
  put(p, " [");
  for (size_t i = 0; i < starts.count; ++i) {
    if (i) put(p, ", ");
    pestle_strbuf_append_i64(p->out, starts.data[i]);
    put(p, ":");
    pestle_strbuf_append_i64(p->out, limits.data[i]);
    if (strides.data[i] == 1) continue;
    put(p, ":");
    pestle_strbuf_append_i64(p->out, strides.data[i]);
  }
  put(p, "] : ");
  print_function_type(p, node);
}

static void print_compare(printer_t* p, const pestle_node_t* node) {
  pestle_strbuf_appendf(p->out, "stablehlo.compare %s, ",
                        pestle_text_direction((pestle_op_t)node->op));
  print_operands(p, node, 0, 2);
  pestle_strbuf_appendf(
      p->out, ", %s : ",
      pestle_text_compare_type(node->operands[0].value->type->dtype));
  print_function_type(p, node);
}

static void print_reduce_precision(printer_t* p, const pestle_node_t* node) {
  put(p, "stablehlo.reduce_precision ");
  print_operands(p, node, 0, 1);
  pestle_strbuf_appendf(p->out, ", format = e%lldm%lld",
                        (long long)PESTLE_NODE_I64(node, exponent_bits),
                        (long long)PESTLE_NODE_I64(node, mantissa_bits));
  print_types(p, node, PESTLE_TEXT_TYPES_RESULT);
}

static void print_axes_pair(printer_t* p, const char* keyword, pestle_i64s_t a,
                            pestle_i64s_t b) {
  pestle_strbuf_appendf(p->out, ", %s = [", keyword);
  pestle_print_i64s(a, p->out);
  put(p, "] x [");
  pestle_print_i64s(b, p->out);
  put(p, "]");
}

static void print_dot_general(printer_t* p, const pestle_node_t* node) {
  pestle_i64s_t batch = PESTLE_NODE_I64S(node, lhs_batching_dimensions);
  put(p, "stablehlo.dot_general ");
  print_operands(p, node, 0, 2);
  if (batch.count) {
    print_axes_pair(p, "batching_dims", batch,
                    PESTLE_NODE_I64S(node, rhs_batching_dimensions));
  }
  print_axes_pair(p, "contracting_dims",
                  PESTLE_NODE_I64S(node, lhs_contracting_dimensions),
                  PESTLE_NODE_I64S(node, rhs_contracting_dimensions));
  put(p, " : ");
  print_function_type(p, node);
}

static void print_window(printer_t* p, const pestle_node_t* node) {
  const pestle_text_field_t* fields = pestle_text_window;
  bool first = true;
  put(p, "window = {");
  for (size_t i = 0; i < PESTLE_TEXT_WINDOW_FIELDS; ++i) {
    pestle_i64s_t values =
        pestle_node_attr(node, (pestle_attr_name_t)fields[i].attr)->as.i64s;
    if (!values.count) continue;
    pestle_strbuf_appendf(p->out,
                          first ? "%s = " : ", %s = ", fields[i].keyword);
    first = false;
    if (fields[i].attr == PESTLE_ATTR_padding) {
      pestle_print_pairs(values, p->out);
      continue;
    }
    put(p, "[");
    if (fields[i].attr == PESTLE_ATTR_window_reversal) {
      pestle_print_bools(values, p->out);
    } else {
      pestle_print_i64s(values, p->out);
    }
    put(p, "]");
  }
  put(p, "}");
}

static void print_convolution(printer_t* p, const pestle_node_t* node) {
  put(p, "stablehlo.convolution(");
  print_operands(p, node, 0, 2);
  put(p, ") dim_numbers = ");
  pestle_print_conv_dims(node, p->out);
  put(p, ", ");
  print_window(p, node);
  put(p, " {batch_group_count = ");
  pestle_strbuf_append_i64(p->out, PESTLE_NODE_I64(node, batch_group_count));
  put(p, " : i64, feature_group_count = ");
  pestle_strbuf_append_i64(p->out, PESTLE_NODE_I64(node, feature_group_count));
  put(p, " : i64} : ");
  print_function_type(p, node);
}

// The op whose name says all about a reduce body: it takes the two arguments in
// order, its result is what the block returns, and nothing else is there.
static const pestle_node_t* sole_op(const pestle_block_t* block) {
  const pestle_node_t* n = block->first;
  if (!n || !n->next || n->next != block->last || block->argument_count != 2) {
    return NULL;
  }
  const pestle_node_t* end = block->last;
  bool sole =
      pestle_op_is_scalar((pestle_op_t)n->op) &&
      pestle_op_info((pestle_op_t)n->op)->rule == PESTLE_RULE_SAME &&
      n->operand_count == 2 && n->operands[0].value == block->arguments[0] &&
      n->operands[1].value == block->arguments[1] && end->operand_count == 1 &&
      end->operands[0].value == &n->results[0];
  return sole ? n : NULL;
}

static void print_reducer(printer_t* p, const pestle_block_t* block,
                          int depth) {
  uint32_t count = block->argument_count / 2;
  put(p, "\n");
  indent(p, depth);
  put(p, " reducer");
  for (uint32_t i = 0; i < count; ++i) {
    print_block_arguments(p, block, i, count);
    put(p, " ");
  }
  put(p, " {\n");
  print_block(p, block, depth + 1);
  indent(p, depth);
  put(p, "}");
}

static void print_reduce(printer_t* p, const pestle_node_t* node, int depth) {
  const pestle_block_t* block = pestle_node_body(node, 0);
  // Locations inside the body have no place in the short form.
  const pestle_node_t* sole =
      p->flags & PESTLE_PRINT_LOCATIONS ? NULL : sole_op(block);
  uint32_t count = node->operand_count / 2;
  put(p, "stablehlo.reduce");
  for (uint32_t i = 0; i < count; ++i) {
    put(p, i ? ", (" : "(");
    print_value(p, node->operands[i].value);
    put(p, " init: ");
    print_value(p, node->operands[count + i].value);
    put(p, ")");
  }
  if (sole) {
    pestle_strbuf_appendf(p->out, " applies %s",
                          pestle_op_info((pestle_op_t)sole->op)->mlir);
  }
  put(p, " across ");
  pestle_print_keyword(node, "dimensions", PESTLE_ATTR_dimensions, p->out);
  put(p, " : ");
  print_function_type(p, node);
  if (!sole) print_reducer(p, block, depth);
}

static void print_while(printer_t* p, const pestle_node_t* node, int depth) {
  const pestle_block_t* condition = pestle_node_body(node, 0);
  put(p, "stablehlo.while(");
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (i) put(p, ", ");
    print_value(p, condition->arguments[i]);
    put(p, " = ");
    print_value(p, node->operands[i].value);
  }
  put(p, ") : ");
  print_operand_types(p, node);
  put(p, "\n");
  indent(p, depth);
  put(p, "cond {\n");
  print_block(p, condition, depth + 1);
  indent(p, depth);
  put(p, "} do {\n");
  print_block(p, pestle_node_body(node, 1), depth + 1);
  indent(p, depth);
  put(p, "}");
}

static void print_call(printer_t* p, const pestle_node_t* node,
                       bool in_function) {
  put(p, in_function ? "call " : "func.call ");
  pestle_print_symbol(PESTLE_NODE_STR(node, callee), p->out);
  put(p, "(");
  print_operands(p, node, 0, node->operand_count);
  put(p, ") : ");
  print_function_type(p, node);
}

static void print_custom_call(printer_t* p, const pestle_node_t* node) {
  put(p, "stablehlo.custom_call ");
  pestle_print_symbol(PESTLE_NODE_STR(node, call_target_name), p->out);
  put(p, "(");
  print_operands(p, node, 0, node->operand_count);
  put(p, ")");
  pestle_print_custom_dict(node, p->out);
  put(p, " : ");
  print_function_type(p, node);
}

static void print_return(printer_t* p, const pestle_node_t* node,
                         bool in_function) {
  bool generic = p->flags & PESTLE_PRINT_GENERIC;
  if (generic) {
    put(p, in_function ? "\"func.return\"(" : "\"stablehlo.return\"(");
    print_operands(p, node, 0, node->operand_count);
    put(p, ") : ");
    print_function_type(p, node);
    return;
  }
  put(p, in_function ? "return" : "stablehlo.return");
  if (!node->operand_count) return;
  put(p, " ");
  print_operands(p, node, 0, node->operand_count);
  put(p, " : ");
  print_operand_types(p, node);
}

// A list without members has no pretty form.
static bool pretty_fits(const pestle_node_t* node) {
  return node->operand_count ||
         (node->op != PESTLE_OP_REDUCE && node->op != PESTLE_OP_WHILE &&
          node->op != PESTLE_OP_OPTIMIZATION_BARRIER);
}

static void print_pretty(printer_t* p, const pestle_node_t* node, int depth,
                         bool in_function) {
  pestle_op_t op = (pestle_op_t)node->op;
  const pestle_text_form_t* form = pestle_text_form(op);
  if (pestle_text_direction(op)) {
    print_compare(p, node);
  } else if (!pretty_fits(node)) {
    print_generic(p, node, depth);
  } else if (form->types != PESTLE_TEXT_TYPES_NONE) {
    put(p, pestle_op_info(op)->mlir);
    if (node->operand_count) put(p, " ");
    print_operands(p, node, 0, node->operand_count);
    for (size_t i = 0; i < form->attr_count; ++i) {
      put(p, i || node->operand_count ? ", " : " ");
      pestle_print_keyword(node, form->attrs[i].keyword, form->attrs[i].attr,
                           p->out);
    }
    print_types(p, node, (pestle_text_types_t)form->types);
  } else if (op == PESTLE_OP_CONSTANT) {
    put(p, "stablehlo.constant ");
    pestle_print_elements(PESTLE_NODE_ELEMENTS(node), p->flags, p->out);
    print_types(p, node, PESTLE_TEXT_TYPES_RESULT);
  } else if (op == PESTLE_OP_SLICE) {
    print_slice(p, node);
  } else if (op == PESTLE_OP_DOT_GENERAL) {
    print_dot_general(p, node);
  } else if (op == PESTLE_OP_CONVOLUTION) {
    print_convolution(p, node);
  } else if (op == PESTLE_OP_REDUCE_PRECISION) {
    print_reduce_precision(p, node);
  } else if (op == PESTLE_OP_REDUCE) {
    print_reduce(p, node, depth);
  } else if (op == PESTLE_OP_WHILE) {
    print_while(p, node, depth);
  } else if (op == PESTLE_OP_CALL) {
    print_call(p, node, in_function);
  } else if (op == PESTLE_OP_CUSTOM_CALL) {
    print_custom_call(p, node);
  } else {
    print_generic(p, node, depth);
  }
}

// --- Locations ---

static void print_file_loc(printer_t* p, const pestle_loc_t* loc) {
  pestle_strbuf_append_quoted(p->out, pestle_str(loc->file));
  pestle_strbuf_appendf(p->out, ":%u:%u", loc->line, loc->column);
}

static void print_loc(printer_t* p, const pestle_loc_t* loc) {
  put(p, " loc(");
  if (loc->name) {
    pestle_strbuf_append_quoted(p->out, pestle_str(loc->name));
    if (loc->file) {
      put(p, "(");
      print_file_loc(p, loc);
      put(p, ")");
    }
  } else if (loc->file) {
    print_file_loc(p, loc);
  } else {
    put(p, "unknown");
  }
  put(p, ")");
}

static void print_node(printer_t* p, const pestle_node_t* node, int depth,
                       bool in_function) {
  indent(p, depth);
  pestle_print_results(&p->names, node, p->out);
  if (node->op == PESTLE_OP_RETURN) {
    print_return(p, node, in_function);
  } else if (p->flags & PESTLE_PRINT_GENERIC) {
    print_generic(p, node, depth);
  } else {
    print_pretty(p, node, depth, in_function);
  }
  if (p->flags & PESTLE_PRINT_LOCATIONS) print_loc(p, &node->loc);
  put(p, "\n");
}

// --- Functions and modules ---

// |shape_of|: -1 for none.
static void print_io_attrs(printer_t* p, const char* name, int64_t shape_of) {
  if (!name && shape_of < 0) return;
  put(p, " {");
  if (name) {
    put(p, "pestle.name = ");
    pestle_strbuf_append_quoted(p->out, pestle_str(name));
  }
  if (shape_of >= 0) {
    pestle_strbuf_appendf(p->out, "%spestle.shape_of = %lld : i64",
                          name ? ", " : "", (long long)shape_of);
  }
  put(p, "}");
}

static void print_arguments(printer_t* p, const pestle_function_t* f) {
  const pestle_block_t* block = f->body->block;
  put(p, "(");
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    if (i) put(p, ", ");
    print_value(p, block->arguments[i]);
    put(p, ": ");
    pestle_type_print(block->arguments[i]->type, p->out);
    print_io_attrs(p, f->argument_names ? f->argument_names[i] : NULL, -1);
  }
  put(p, ")");
}

static void print_function_results(printer_t* p, const pestle_function_t* f) {
  size_t count;
  if (!pestle_function_result_count(f, &count) || !count) return;
  bool named = false;
  for (size_t i = 0; i < count && i < f->result_name_count; ++i) {
    named |= f->result_names[i] != NULL;
  }
  bool parentheses = named || count != 1;  // no lone result is a shape
  put(p, parentheses ? " -> (" : " -> ");
  for (size_t i = 0; i < count; ++i) {
    if (i) put(p, ", ");
    pestle_type_print(pestle_function_result_type(f, i), p->out);
    print_io_attrs(p, i < f->result_name_count ? f->result_names[i] : NULL,
                   pestle_function_shape_of(f, i));
  }
  if (parentheses) put(p, ")");
}

static pestle_status_t print_function(printer_t* p,
                                      const pestle_function_t* f) {
  PESTLE_TRY(pestle_print_names_assign(&p->names, f));
  put(p, f->is_private ? "  func.func private " : "  func.func public ");
  pestle_print_symbol(f->name, p->out);
  print_arguments(p, f);
  print_function_results(p, f);
  put(p, " {\n");
  for (const pestle_node_t* n = f->body->block->first; n; n = n->next) {
    print_node(p, n, 2, true);
  }
  put(p, "  }\n");
  return pestle_strbuf_status(p->out);
}

static pestle_status_t print_module(printer_t* p,
                                    const pestle_module_t* module) {
  put(p, "module");
  if (module->name && *module->name) {
    put(p, " ");
    pestle_print_symbol(module->name, p->out);
  }
  put(p, " {\n");
  for (const pestle_function_t* f = module->first; f; f = f->next) {
    PESTLE_TRY(print_function(p, f));
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
  printer_t printer = {.out = &text, .flags = flags};
  pestle_print_names_init(allocator, &printer.names);
  pestle_status_t status = print_module(&printer, module);
  pestle_print_names_deinit(&printer.names);
  if (!status) status = pestle_strbuf_take(&text, out_text, out_size);
  pestle_strbuf_deinit(&text);
  return status;
}
