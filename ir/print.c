// SPDX-License-Identifier: Apache-2.0
// The text form: MLIR's syntax, StableHLO's pretty forms where it has them and
// the generic form elsewhere (or everywhere with PESTLE_PRINT_GENERIC).
#include <string.h>

#include "base/mem.h"
#include "ir/print_internal.h"
#include "ir/text.h"

static void put(pestle_printer_t* p, const char* text) {
  pestle_strbuf_append_c(p->out, text);
}

static void indent(pestle_printer_t* p, int depth) {
  pestle_strbuf_append_fill(p->out, ' ', (size_t)depth * 2);
}

static void print_operands(pestle_printer_t* p, const pestle_node_t* node,
                           uint32_t first, uint32_t end) {
  for (uint32_t i = first; i < end; ++i) {
    if (i > first) put(p, ", ");
    pestle_print_value(&p->names, node->operands[i].value, p->out);
  }
}

// --- Types after the colon ---

static void print_operand_types(pestle_printer_t* p,
                                const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (i) put(p, ", ");
    pestle_type_print(node->operands[i].value->type, p->out);
  }
}

void pestle_print_result_types(pestle_printer_t* p, const pestle_node_t* node) {
  if (node->result_count != 1) put(p, "(");
  for (uint32_t i = 0; i < node->result_count; ++i) {
    if (i) put(p, ", ");
    pestle_type_print(node->results[i].type, p->out);
  }
  if (node->result_count != 1) put(p, ")");
}

static void print_function_type(pestle_printer_t* p,
                                const pestle_node_t* node) {
  put(p, "(");
  print_operand_types(p, node);
  put(p, ") -> ");
  pestle_print_result_types(p, node);
}

static bool all_types_equal(const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (node->operands[i].value->type != node->results[0].type) return false;
  }
  return true;
}

static void print_types(pestle_printer_t* p, const pestle_node_t* node,
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

static void print_block(pestle_printer_t* p, const pestle_block_t* block,
                        int depth) {
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    pestle_print_node(p, n, depth, false);
  }
}

static void print_block_arguments(pestle_printer_t* p,
                                  const pestle_block_t* block, uint32_t first,
                                  uint32_t step) {
  put(p, "(");
  for (uint32_t i = first; i < block->argument_count; i += step) {
    if (i > first) put(p, ", ");
    pestle_print_value(&p->names, block->arguments[i], p->out);
    put(p, ": ");
    pestle_type_print(block->arguments[i]->type, p->out);
  }
  put(p, ")");
}

// "({ ^bb0(..): .. }, { .. })"
static void print_regions(pestle_printer_t* p, const pestle_node_t* node,
                          int depth) {
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

static void print_generic(pestle_printer_t* p, const pestle_node_t* node,
                          int depth) {
  pestle_strbuf_appendf(p->out, "\"%s\"(",
                        pestle_op_info((pestle_op_t)node->op)->mlir);
  print_operands(p, node, 0, node->operand_count);
  put(p, ")");
  pestle_print_properties(node, p->flags, p->out);
  print_regions(p, node, depth);
  put(p, " : ");
  print_function_type(p, node);
}

static void print_slice(pestle_printer_t* p, const pestle_node_t* node) {
  pestle_i64s_t starts = PESTLE_NODE_I64S(node, start_indices);
  pestle_i64s_t limits = PESTLE_NODE_I64S(node, limit_indices);
  pestle_i64s_t strides = PESTLE_NODE_I64S(node, strides);
  put(p, "stablehlo.slice ");
  pestle_print_value(&p->names, node->operands[0].value, p->out);
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

static void print_compare(pestle_printer_t* p, const pestle_node_t* node) {
  pestle_strbuf_appendf(p->out, "stablehlo.compare %s, ",
                        pestle_text_direction((pestle_op_t)node->op));
  print_operands(p, node, 0, 2);
  pestle_strbuf_appendf(
      p->out, ", %s : ",
      pestle_text_compare_type(node->operands[0].value->type->dtype));
  print_function_type(p, node);
}

static void print_reduce_precision(pestle_printer_t* p,
                                   const pestle_node_t* node) {
  put(p, "stablehlo.reduce_precision ");
  print_operands(p, node, 0, 1);
  pestle_strbuf_appendf(p->out, ", format = e%lldm%lld",
                        (long long)PESTLE_NODE_I64(node, exponent_bits),
                        (long long)PESTLE_NODE_I64(node, mantissa_bits));
  print_types(p, node, PESTLE_TEXT_TYPES_RESULT);
}

static void print_axes_pair(pestle_printer_t* p, const char* keyword,
                            pestle_i64s_t a, pestle_i64s_t b) {
  pestle_strbuf_appendf(p->out, ", %s = [", keyword);
  pestle_print_i64s(a, p->out);
  put(p, "] x [");
  pestle_print_i64s(b, p->out);
  put(p, "]");
}

static void print_dot_general(pestle_printer_t* p, const pestle_node_t* node) {
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
  const char* algorithm = PESTLE_NODE_STR(node, algorithm);
  if (algorithm && *algorithm)
    pestle_strbuf_appendf(p->out, ", algorithm = <%s>", algorithm);
  put(p, " : ");
  print_function_type(p, node);
}

static void print_window(pestle_printer_t* p, const pestle_node_t* node) {
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

static void print_convolution(pestle_printer_t* p, const pestle_node_t* node) {
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

static void print_reducer(pestle_printer_t* p, const pestle_block_t* block,
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

static void print_reduce(pestle_printer_t* p, const pestle_node_t* node,
                         int depth) {
  const pestle_block_t* block = pestle_node_body(node, 0);
  // Locations inside the body have no place in the short form.
  const pestle_node_t* sole =
      p->flags & PESTLE_PRINT_LOCATIONS ? NULL : sole_op(block);
  uint32_t count = node->operand_count / 2;
  put(p, "stablehlo.reduce");
  for (uint32_t i = 0; i < count; ++i) {
    put(p, i ? ", (" : "(");
    pestle_print_value(&p->names, node->operands[i].value, p->out);
    put(p, " init: ");
    pestle_print_value(&p->names, node->operands[count + i].value, p->out);
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

static void print_while(pestle_printer_t* p, const pestle_node_t* node,
                        int depth) {
  const pestle_block_t* condition = pestle_node_body(node, 0);
  put(p, "stablehlo.while(");
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    if (i) put(p, ", ");
    pestle_print_value(&p->names, condition->arguments[i], p->out);
    put(p, " = ");
    pestle_print_value(&p->names, node->operands[i].value, p->out);
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

static void print_call(pestle_printer_t* p, const pestle_node_t* node,
                       bool in_function) {
  put(p, in_function ? "call " : "func.call ");
  pestle_print_symbol(PESTLE_NODE_STR(node, callee), p->out);
  put(p, "(");
  print_operands(p, node, 0, node->operand_count);
  put(p, ") : ");
  print_function_type(p, node);
}

static void print_custom_call(pestle_printer_t* p, const pestle_node_t* node) {
  put(p, "stablehlo.custom_call ");
  pestle_print_symbol(PESTLE_NODE_STR(node, call_target_name), p->out);
  put(p, "(");
  print_operands(p, node, 0, node->operand_count);
  put(p, ")");
  pestle_print_custom_dict(node, p->out);
  put(p, " : ");
  print_function_type(p, node);
}

// A CUSTOM with a body is a composite, whose function comes later; without one
// it is a custom call. Properties are in the order of their names.
static void print_custom(pestle_printer_t* p, const pestle_node_t* node) {
  bool generic = p->flags & PESTLE_PRINT_GENERIC, body = node->region_count;
  const char* name = PESTLE_NODE_STR(node, name);
  const char* attributes = PESTLE_NODE_STR(node, attributes);
  long long version = (long long)PESTLE_NODE_I64(node, version);
  const char* op = body ? "stablehlo.composite" : "stablehlo.custom_call";
  pestle_strbuf_appendf(p->out, generic ? "\"%s\"" : "%s ", op);
  if (!generic && body) {
    pestle_strbuf_append_quoted(p->out, pestle_str(name));
    if (node->operand_count) put(p, " ");
  } else {
    if (!generic) pestle_print_symbol(name, p->out);
    put(p, "(");
  }
  print_operands(p, node, 0, node->operand_count);
  if (generic || !body) put(p, ")");
  put(p, generic ? " <{" : " {");
  if (!body) put(p, "api_version = 4 : i32, ");
  if (*attributes) {
    put(p, body ? "composite_attributes = " : "backend_config = ");
    put(p, attributes);
    put(p, ", ");
  }
  if (body) {
    put(p, "decomposition = ");
    pestle_print_symbol(pestle_print_bodies_name(&p->bodies, node), p->out);
    put(p, ", ");
  }
  if (generic) {
    put(p, body ? "name = " : "call_target_name = ");
    pestle_strbuf_append_quoted(p->out, pestle_str(name));
    put(p, ", ");
  }
  pestle_strbuf_appendf(
      p->out, body ? "version = %lld : i32" : "pestle.version = %lld : i64",
      version);
  put(p, generic ? "}> : " : "} : ");
  print_function_type(p, node);
}

static void print_return(pestle_printer_t* p, const pestle_node_t* node,
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

static void print_pretty(pestle_printer_t* p, const pestle_node_t* node,
                         int depth, bool in_function) {
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

static void print_file_loc(pestle_printer_t* p, const pestle_loc_t* loc) {
  pestle_strbuf_append_quoted(p->out, pestle_str(loc->file));
  pestle_strbuf_appendf(p->out, ":%u:%u", loc->line, loc->column);
}

static void print_loc(pestle_printer_t* p, const pestle_loc_t* loc) {
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

void pestle_print_node(pestle_printer_t* p, const pestle_node_t* node,
                       int depth, bool in_function) {
  indent(p, depth);
  pestle_print_results(&p->names, node, p->out);
  if (node->op == PESTLE_OP_RETURN) {
    print_return(p, node, in_function);
  } else if (node->op == PESTLE_OP_CUSTOM) {
    print_custom(p, node);
  } else if (p->flags & PESTLE_PRINT_GENERIC) {
    print_generic(p, node, depth);
  } else {
    print_pretty(p, node, depth, in_function);
  }
  if (p->flags & PESTLE_PRINT_LOCATIONS) print_loc(p, &node->loc);
  put(p, "\n");
}
