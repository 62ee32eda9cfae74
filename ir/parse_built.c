// SPDX-License-Identifier: Apache-2.0
// Ops without a row (built.h): their short form, which is alike for all, and what
// becomes of their results.
#include "ir/built.h"
#include "ir/fold.h"
#include "ir/parse_internal.h"
#include "ir/quant.h"
#include "ir/text.h"

// --- "%a, %b, word = value {..} : types" ---

// The attribute that |word| is short for, in "dims=broadcast_dimensions ".
static pestle_str_t attr_of(const pestle_built_row_t* row, pestle_str_t word) {
  pestle_str_t rest = pestle_str(row->keywords), pair, key;
  while (pestle_str_next(&rest, ' ', &pair)) {
    pestle_str_split(pair, '=', &key, &pair);
    if (pestle_str_equal(key, word)) return pair;
  }
  return word;
}

// A ':' behind a number or a string here is that of the op's types.
static pestle_status_t keyword_value(pestle_parser_t* p,
                                     pestle_generic_value_t* out) {
  const pestle_token_t* t = pestle_parse_token(p);
  *out = (pestle_generic_value_t){
      .kind = PESTLE_GENERIC_STRING, .line = t->line, .column = t->column};
  if (t->kind == PESTLE_TOKEN_STRING) {
    return pestle_parse_string(p, &p->scratch, &out->text);
  }
  if (t->kind != PESTLE_TOKEN_INT) return pestle_parse_value(p, out);
  out->kind = PESTLE_GENERIC_INT;
  return pestle_parse_integer(p, &out->i64);
}

static pestle_status_t keyword(pestle_parser_t* p, pestle_parse_op_t* o) {
  pestle_generic_entry_t e = {.next = NULL};
  if (!pestle_parse_at_kind(p, PESTLE_TOKEN_WORD)) {
    return pestle_parse_expected(p, "a value or a keyword of the operation");
  }
  e.key = attr_of(o->g.built, pestle_parse_token(p)->text);
  pestle_parse_advance(p);
  PESTLE_TRY(pestle_parse_expect(p, '='));
  PESTLE_TRY(keyword_value(p, &e.value));
  pestle_generic_value_t dict = {
      .kind = PESTLE_GENERIC_DICT, .entries = &e, .entry_count = 1};
  return pestle_parse_apply_dict(p, o, &dict);
}

pestle_status_t pestle_parse_built_form(pestle_parser_t* p,
                                        pestle_parse_op_t* o) {
  if (pestle_str_starts_with(o->at.text, PESTLE_STR("sdy."))) {
    return pestle_parse_sdy_form(p, o);
  }
  while (!pestle_parse_at(p, ':') && !pestle_parse_at(p, '{')) {
    if (pestle_parse_at_kind(p, PESTLE_TOKEN_VALUE)) {
      PESTLE_TRY(pestle_parse_push_operand(p, o));
    } else {
      PESTLE_TRY(keyword(p, o));
    }
    if (!pestle_parse_take(p, ',') && !pestle_parse_at(p, ':') &&
        !pestle_parse_at(p, '{')) {
      return pestle_parse_expected(p, "',' or ':'");
    }
  }
  return pestle_parse_types_after_dict(p, o);
}

// --- Results ---

// What lies behind |last| gets the place of |o|.
static pestle_status_t set_places(pestle_parser_t* p,
                                  const pestle_parse_op_t* o,
                                  pestle_node_t* last) {
  pestle_block_t* block = o->builder->block;
  pestle_loc_t loc = {.file = pestle_module_intern_string(p->module, p->file),
                      .line = o->at.line,
                      .column = o->at.column};
  if (!loc.file) return PESTLE_OOM();
  for (pestle_node_t* n = last ? last->next : block->first; n; n = n->next) {
    n->loc = loc;
    for (uint32_t r = 0; r < n->region_count; ++r) {
      pestle_node_t* inner = NULL;
      while ((inner = (pestle_node_t*)pestle_region_next(n->regions[r], inner)))
        inner->loc = loc;
    }
  }
  return NULL;
}

pestle_status_t pestle_parse_bind_values(
    pestle_parser_t* p, const pestle_parse_op_t* o, const pestle_token_t* names,
    const int64_t* counts, size_t name_count, pestle_value_t** values,
    size_t value_count) {
  size_t next = 0;
  pestle_parse_form_t* forms =
      PESTLE_ARENA_ARRAY(&p->scratch, pestle_parse_form_t, value_count + 1);
  if (!forms) return PESTLE_OOM();
  for (size_t i = 0; i < value_count; ++i)
    forms[i] = (pestle_parse_form_t){NULL, 1};
  for (size_t i = 0; i < name_count; ++i) {
    if (counts[i] <= 0 || (uint64_t)counts[i] > value_count - next) {
      next = SIZE_MAX;
      break;
    }
    PESTLE_TRY(pestle_parse_bind_forms(
        p, &names[i], names[i].text, values + next, forms, (size_t)counts[i]));
    next += (size_t)counts[i];
  }
  if (next == value_count || !name_count) return NULL;
  return pestle_parse_error(p, &o->at, PESTLE_STATUS_MALFORMED,
                            "'%.*s' has %zu results, not as many as are named",
                            PESTLE_STR_ARG(o->at.text), value_count);
}

static pestle_status_t build(pestle_parse_op_t* o, pestle_value_t*** values) {
  const pestle_parse_types_t *in = &o->operand_types, *out = &o->result_types;
  if (in->count == o->operand_count &&
      pestle_quant_needs(&o->g, in->quants, o->operand_count, out->quants,
                         out->count)) {
    return pestle_quant_build(&o->g, o->builder, o->operands, in->quants,
                              o->operand_count, o->regions, o->region_count,
                              out->data, out->quants, out->count, values);
  }
  return pestle_generic_build(&o->g, o->builder, o->operands, o->operand_count,
                              o->regions, o->region_count, out->data,
                              out->count, values);
}

// One name for all results of the node that stands behind |last| is theirs, as it is in
// ops that have a row: what is printed of such an op is read as the same text. What the
// op has found, or folded away, keeps the name that it has.
static pestle_status_t name_results(pestle_parser_t* p,
                                    const pestle_parse_op_t* o,
                                    const pestle_node_t* last,
                                    const pestle_token_t* names,
                                    size_t name_count, pestle_value_t** values,
                                    size_t value_count) {
  if (name_count != 1 || !values[0]->node) return NULL;
  pestle_node_t* node = values[0]->node;
  bool whole = node->result_count == value_count;
  for (size_t i = 0; whole && i < value_count; ++i)
    whole = values[i] == &node->results[i];
  const pestle_node_t* n = last ? last->next : o->builder->block->first;
  while (n && n != node)
    n = n->next;
  if (!whole || !n || !pestle_text_is_wish(names[0].text)) return NULL;
  char* name = pestle_arena_strndup(&p->scratch, names[0].text);
  if (!name) return PESTLE_OOM();
  node->results[0].name = pestle_module_intern_string(p->module, name);
  return node->results[0].name ? NULL : PESTLE_OOM();
}

pestle_status_t pestle_parse_built(pestle_parser_t* p, pestle_parse_op_t* o,
                                   const pestle_token_t* names,
                                   const int64_t* counts, size_t name_count) {
  pestle_node_t* last = o->builder->block->last;
  pestle_value_t** values;
  if (o->result_types.nested) {
    return pestle_parse_error(p, &o->at, PESTLE_STATUS_UNSUPPORTED,
                              "'%.*s' gives a tuple or token, which is not "
                              "supported",
                              PESTLE_STR_ARG(o->at.text));
  }
  PESTLE_TRY(pestle_parse_placed(p, o, build(o, &values)));
  PESTLE_TRY(set_places(p, o, last));
  for (size_t i = 0; p->again && i < o->result_types.count; ++i)
    PESTLE_TRY(pestle_fold_value(o->builder, &values[i]));
  PESTLE_TRY(pestle_parse_bind_values(p, o, names, counts, name_count, values,
                                      o->result_types.count));
  PESTLE_TRY(name_results(p, o, last, names, name_count, values,
                          o->result_types.count));
  pestle_node_t* made = o->builder->block->last;
  return made && made != last ? pestle_parse_node_loc(p, made)
                              : pestle_parse_skip_loc(p);
}
