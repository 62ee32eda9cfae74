// SPDX-License-Identifier: Apache-2.0
// Regions, and the two ops whose pretty form holds regions.
#include <string.h>

#include "ir/parse_internal.h"
#include "ir/quant.h"
#include "ir/scan.h"
#include "ir/text.h"

pestle_status_t pestle_parse_argument_name(pestle_parser_t* p,
                                           pestle_parse_arguments_t* a,
                                           size_t at) {
  PESTLE_TRY(pestle_parse_grow(p, &a->names, at, &a->name_capacity,
                               sizeof(*a->names)));
  if (!pestle_parse_at_kind(p, PESTLE_TOKEN_VALUE)) {
    return pestle_parse_expected(p, "an argument such as %arg0");
  }
  a->names[at] = *pestle_parse_token(p);
  pestle_parse_advance(p);
  return pestle_parse_expect(p, ':');
}

pestle_status_t pestle_parse_arguments(pestle_parser_t* p,
                                       pestle_parse_arguments_t* a) {
  PESTLE_TRY(pestle_parse_expect(p, '('));
  if (pestle_parse_take(p, ')')) return NULL;
  do {
    PESTLE_TRY(pestle_parse_argument_name(p, a, a->types.form_count));
    PESTLE_TRY(pestle_parse_type_form(p, &a->types));
    PESTLE_TRY(pestle_parse_skip_loc(p));
  } while (pestle_parse_take(p, ','));
  return pestle_parse_expect(p, ')');
}

pestle_status_t pestle_parse_bind_argument(pestle_parser_t* p,
                                           const pestle_token_t* at,
                                           pestle_value_t* value) {
  PESTLE_TRY(pestle_parse_bind(p, at, at->text, value, 1));
  if (!pestle_text_is_wish(at->text)) return NULL;
  char* name = pestle_arena_strndup(&p->scratch, at->text);
  if (!name) return PESTLE_OOM();
  value->name = pestle_module_intern_string(p->module, name);
  return value->name ? NULL : PESTLE_OOM();
}

pestle_status_t pestle_parse_bind_arguments(pestle_parser_t* p,
                                            const pestle_token_t* names,
                                            pestle_block_t* block) {
  for (uint32_t i = 0; i < block->argument_count; ++i) {
    PESTLE_TRY(pestle_parse_bind_argument(p, &names[i], block->arguments[i]));
  }
  return NULL;
}

static pestle_status_t region_label(pestle_parser_t* p,
                                    pestle_parse_arguments_t* out) {
  if (!pestle_parse_at_kind(p, PESTLE_TOKEN_CARET)) return NULL;
  pestle_parse_advance(p);
  if (pestle_parse_at(p, '(')) PESTLE_TRY(pestle_parse_arguments(p, out));
  return pestle_parse_expect(p, ':');
}

// Arguments some of which are tuples or tokens stand for the block's, which are
// their tensors.
static pestle_status_t bind_nested(pestle_parser_t* p,
                                   const pestle_parse_arguments_t* a,
                                   pestle_block_t* block) {
  size_t leaf = 0;
  for (size_t i = 0; i < a->types.form_count; ++i) {
    PESTLE_TRY(pestle_parse_bind_forms(p, &a->names[i], a->names[i].text,
                                       block->arguments + leaf,
                                       &a->types.forms[i], 1));
    leaf += a->types.forms[i].leaves;
  }
  return NULL;
}

static int64_t attr_i64(const pestle_parse_op_t* o, pestle_attr_name_t name) {
  for (size_t i = 0; i < o->g.attr_count; ++i) {
    if (o->g.attrs[i].name == name) return o->g.attrs[i].as.i64;
  }
  return 0;
}

// Arguments of a loop have the extents of its operands, when those are known.
static void follow_operands(const pestle_parse_op_t* o, pestle_type_t* types) {
  for (size_t i = 0; i < o->operand_count; ++i) {
    const pestle_type_t* operand = o->operands[i]->type;
    if (o->g.op == PESTLE_OP_WHILE) types[i] = *operand;
    if (o->g.op != PESTLE_OP_SCAN) continue;
    (void)pestle_scan_argument_type(i, attr_i64(o, PESTLE_ATTR_carry_count),
                                    attr_i64(o, PESTLE_ATTR_xs_count), operand,
                                    &types[i]);
  }
}

pestle_status_t pestle_parse_region(pestle_parser_t* p, pestle_parse_op_t* o,
                                    const pestle_parse_arguments_t* arguments) {
  pestle_region_t* region;
  pestle_block_t* block;
  pestle_parse_arguments_t own = {0};
  PESTLE_TRY(pestle_parse_expect(p, '{'));
  if (!arguments) {
    PESTLE_TRY(region_label(p, &own));
    arguments = &own;
  }
  if (p->again && arguments->types.count == o->operand_count)
    follow_operands(o, arguments->types.data);
  PESTLE_TRY(pestle_region_create(p->module, arguments->types.data,
                                  arguments->types.count, &region, &block));
  PESTLE_TRY(pestle_parse_push_region(p, o, region));
  size_t mark = pestle_parse_scope_begin(p);
  PESTLE_TRY(arguments->types.nested
                 ? bind_nested(p, arguments, block)
                 : pestle_parse_bind_arguments(p, arguments->names, block));
  PESTLE_TRY(pestle_parse_ops(p, block, NULL));
  pestle_parse_scope_end(p, mark);
  return NULL;
}

// --- while ---

// Whether what is written as types is what the operands are.
static bool fits(const pestle_parse_op_t* o) {
  const pestle_parse_types_t* types = &o->operand_types;
  if (types->form_count != o->form_count) return false;
  for (size_t i = 0; i < o->form_count; ++i) {
    const char *a = o->forms[i].nest, *b = types->forms[i].nest;
    if (!a != !b || (a && strcmp(a, b))) return false;
  }
  return true;
}

// "(%iterArg = %x, ..) : types cond {..} do {..}"
pestle_status_t pestle_parse_while(pestle_parser_t* p, pestle_parse_op_t* o) {
  pestle_parse_arguments_t a = {0};
  PESTLE_TRY(pestle_parse_expect(p, '('));
  while (!pestle_parse_at(p, ')')) {
    if (o->form_count) PESTLE_TRY(pestle_parse_expect(p, ','));
    PESTLE_TRY(pestle_parse_grow(p, &a.names, o->form_count, &a.name_capacity,
                                 sizeof(*a.names)));
    if (!pestle_parse_at_kind(p, PESTLE_TOKEN_VALUE)) {
      return pestle_parse_expected(p, "an argument such as %iterArg");
    }
    a.names[o->form_count] = *pestle_parse_token(p);
    pestle_parse_advance(p);
    PESTLE_TRY(pestle_parse_expect(p, '='));
    PESTLE_TRY(pestle_parse_push_operand(p, o));
  }
  pestle_parse_advance(p);
  if (o->form_count) PESTLE_TRY(pestle_parse_op_types(p, o));
  if (!fits(o)) {
    return pestle_parse_error(p, &o->at, PESTLE_STATUS_MALFORMED,
                              "expected the type of each of the %zu values",
                              o->form_count);
  }
  a.types = o->operand_types;
  if (pestle_parse_take_word(p, "attributes")) {
    pestle_generic_value_t dict;
    if (!pestle_parse_at(p, '{')) return pestle_parse_expected(p, "'{'");
    PESTLE_TRY(pestle_parse_dict(p, '}', &dict));
    PESTLE_TRY(pestle_parse_apply_dict(p, o, &dict));
  }
  PESTLE_TRY(pestle_parse_expect_word(p, "cond"));
  PESTLE_TRY(pestle_parse_region(p, o, &a));
  PESTLE_TRY(pestle_parse_expect_word(p, "do"));
  return pestle_parse_region(p, o, &a);
}

// --- reduce ---

// "(%x init: %a), (%y init: %b)": inputs, then initial values.
static pestle_status_t reduce_operands(pestle_parser_t* p,
                                       pestle_parse_op_t* o) {
  pestle_parse_op_t inits = {0};
  do {
    PESTLE_TRY(pestle_parse_expect(p, '('));
    PESTLE_TRY(pestle_parse_push_operand(p, o));
    PESTLE_TRY(pestle_parse_expect_word(p, "init"));
    PESTLE_TRY(pestle_parse_expect(p, ':'));
    PESTLE_TRY(pestle_parse_push_operand(p, &inits));
    PESTLE_TRY(pestle_parse_expect(p, ')'));
  } while (pestle_parse_take(p, ','));
  for (size_t i = 0; i < inits.operand_count; ++i) {
    PESTLE_TRY(pestle_parse_grow(p, &o->operands, o->operand_count,
                                 &o->operand_capacity, sizeof(*o->operands)));
    o->operands[o->operand_count++] = inits.operands[i];
  }
  return NULL;
}

// |body|, on two elements of what |o| reduces.
static pestle_status_t applied_op(pestle_parser_t* p,
                                  const pestle_parse_op_t* o,
                                  pestle_parse_op_t* body,
                                  const pestle_type_t* type,
                                  pestle_value_t** out) {
  pestle_node_t* node;
  pestle_value_t** values;
  const pestle_quant_t* quant =
      o->operand_types.count ? o->operand_types.quants[0] : NULL;
  const pestle_quant_t* quants[2] = {quant, quant};
  PESTLE_TRY(pestle_parse_push_type(p, &body->result_types, type));
  if (quant && pestle_quant_needs(&body->g, quants, 2, quants, 1)) {
    PESTLE_TRY(pestle_parse_placed(
        p, body,
        pestle_quant_build(&body->g, body->builder, body->operands, quants, 2,
                           NULL, 0, type, quants, 1, &values)));
    *out = values[0];
    return NULL;
  }
  PESTLE_TRY(pestle_parse_finish(p, body, &node));
  *out = &node->results[0];
  return NULL;
}

// The region that "applies stablehlo.add" stands for.
static pestle_status_t applied_region(pestle_parser_t* p, pestle_parse_op_t* o,
                                      const pestle_token_t* at) {
  pestle_op_t op;
  PESTLE_TRY(pestle_parse_op_name(p, at, &op));
  if (o->operand_count != 2) {
    return pestle_parse_error(p, at, PESTLE_STATUS_MALFORMED,
                              "'applies' needs a reduction of one input");
  }
  pestle_type_t types[2];
  types[0] = types[1] = pestle_type_make(o->operands[0]->type->dtype, 0, NULL);
  pestle_region_t* region;
  pestle_block_t* block;
  PESTLE_TRY(pestle_region_create(p->module, types, 2, &region, &block));
  PESTLE_TRY(pestle_parse_push_region(p, o, region));
  pestle_builder_t builder = {.module = p->module, .block = block};
  pestle_parse_op_t body = {.g = {.op = op, .arena = &p->scratch},
                            .at = *at,
                            .builder = &builder,
                            .operands = block->arguments,
                            .operand_count = 2};
  pestle_node_t* node;
  pestle_value_t* result;
  PESTLE_TRY(applied_op(p, o, &body, &types[0], &result));
  pestle_parse_op_t end = {.g = {.op = PESTLE_OP_RETURN, .arena = &p->scratch},
                           .at = *at,
                           .builder = &builder,
                           .operands = &result,
                           .operand_count = 1};
  return pestle_parse_finish(p, &end, &node);
}

// "reducer(%a: T, %c: T) (%b: U, %d: U) {..}": a pair for each input, while the
// block takes all accumulators and then all elements.
static pestle_status_t reducer_region(pestle_parser_t* p,
                                      pestle_parse_op_t* o) {
  pestle_parse_arguments_t pairs = {0}, sorted = {0};
  PESTLE_TRY(pestle_parse_expect_word(p, "reducer"));
  while (pestle_parse_at(p, '(')) {
    PESTLE_TRY(pestle_parse_arguments(p, &pairs));
  }
  size_t count = pairs.types.count;
  if (count != o->operand_count || pairs.types.nested) {
    return pestle_parse_expected(p, "a pair of arguments for each input");
  }
  sorted.names = PESTLE_ARENA_ARRAY(&p->scratch, pestle_token_t, count);
  if (!sorted.names) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    size_t from = i < count / 2 ? 2 * i : 2 * (i - count / 2) + 1;
    sorted.names[i] = pairs.names[from];
    PESTLE_TRY(
        pestle_parse_push_type(p, &sorted.types, &pairs.types.data[from]));
  }
  return pestle_parse_region(p, o, &sorted);
}

pestle_status_t pestle_parse_reduce(pestle_parser_t* p, pestle_parse_op_t* o) {
  pestle_token_t applied = {0};
  PESTLE_TRY(reduce_operands(p, o));
  if (pestle_parse_take_word(p, "applies")) {
    applied = *pestle_parse_token(p);
    if (applied.kind != PESTLE_TOKEN_WORD) {
      return pestle_parse_expected(p, "an operation");
    }
    pestle_parse_advance(p);
  }
  PESTLE_TRY(pestle_parse_expect_word(p, "across"));
  PESTLE_TRY(pestle_parse_expect_word(p, "dimensions"));
  PESTLE_TRY(pestle_parse_expect(p, '='));
  pestle_attr_t axes = {.name = PESTLE_ATTR_dimensions,
                        .kind = PESTLE_ATTR_KIND_I64S};
  PESTLE_TRY(pestle_parse_i64s(p, &axes.as.i64s));
  PESTLE_TRY(pestle_parse_push_attr(p, o, &axes));
  if (pestle_parse_at(p, '{')) {
    pestle_generic_value_t dict;
    PESTLE_TRY(pestle_parse_dict(p, '}', &dict));
    PESTLE_TRY(pestle_parse_apply_dict(p, o, &dict));
  }
  PESTLE_TRY(pestle_parse_op_types(p, o));
  if (applied.kind == PESTLE_TOKEN_WORD) return applied_region(p, o, &applied);
  return reducer_region(p, o);
}
