// SPDX-License-Identifier: Apache-2.0
// The text of Shardy's ops on one device: what says where values lie is skipped, and
// a computation that is written for each device is read in the place of its op.
#include <string.h>

#include "ir/collective.h"
#include "ir/infer.h"
#include "ir/parse_internal.h"
#include "ir/sharding.h"

// "[{"x"}, {}] %a out_sharding=<@mesh, [..]> {..} : type"
// What stands between '<' and '>' as attribute "sharding", for ops that have one.
static pestle_status_t take_sharding(pestle_parser_t* p, pestle_parse_op_t* o) {
  const char* begin = pestle_parse_token(p)->whole.data;
  PESTLE_TRY(pestle_parse_skip_brackets(p, true));
  const char* end = pestle_parse_token(p)->whole.data;
  if (!pestle_str_is_one_of(o->at.text,
                            "sdy.sharding_constraint sdy.reshard")) {
    return NULL;
  }
  pestle_generic_entry_t entry = {
      .key = PESTLE_STR("sharding"),
      .value = {.kind = PESTLE_GENERIC_OPAQUE,
                .whole = pestle_str_make(begin, (size_t)(end - begin))}};
  pestle_generic_value_t dict = {
      .kind = PESTLE_GENERIC_DICT, .entries = &entry, .entry_count = 1};
  return pestle_parse_apply_dict(p, o, &dict);
}

pestle_status_t pestle_parse_sdy_form(pestle_parser_t* p,
                                      pestle_parse_op_t* o) {
  while (!pestle_parse_at(p, ':')) {
    if (pestle_parse_at_kind(p, PESTLE_TOKEN_END)) {
      return pestle_parse_expected(p, "':' and the types of the operation");
    }
    if (pestle_parse_at_kind(p, PESTLE_TOKEN_VALUE)) {
      PESTLE_TRY(pestle_parse_push_operand(p, o));
    } else if (pestle_parse_at(p, '[') || pestle_parse_at(p, '{')) {
      PESTLE_TRY(pestle_parse_skip_brackets(p, false));
    } else if (pestle_parse_at(p, '<')) {
      PESTLE_TRY(take_sharding(p, o));
    } else {
      pestle_parse_advance(p);
    }
  }
  return pestle_parse_types_after_dict(p, o);
}

// --- manual_computation, named_computation ---

bool pestle_parse_is_computation(pestle_str_t name) {
  return pestle_str_is_one_of(name,
                              "sdy.manual_computation sdy.named_computation");
}

// "[<@mesh, [..]>]", read over.
static pestle_status_t read_list(pestle_parser_t* p, pestle_str_t* out) {
  const char* begin = pestle_parse_token(p)->whole.data;
  if (!pestle_parse_at(p, '[') && !pestle_parse_at(p, '{')) {
    return pestle_parse_expected(p, "'[' or '{'");
  }
  PESTLE_TRY(pestle_parse_skip_brackets(p, false));
  const char* end = pestle_parse_token(p)->whole.data;
  *out = pestle_str_make(begin, (size_t)(end - begin));
  return NULL;
}

// What is written between operands and region, and the region's arguments.
static pestle_status_t read_head(pestle_parser_t* p, pestle_parse_op_t* o,
                                 bool generic, pestle_parse_arguments_t* a,
                                 pestle_shardings_t* s) {
  pestle_generic_value_t dict;
  *s = (pestle_shardings_t){pestle_str_make("", 0), pestle_str_make("", 0),
                            pestle_str_make("", 0)};
  if (!generic && pestle_parse_at(p, '<')) {  // its name
    PESTLE_TRY(pestle_parse_skip_brackets(p, true));
  }
  PESTLE_TRY(pestle_parse_expect(p, '('));
  PESTLE_TRY(pestle_parse_operands(p, o));
  PESTLE_TRY(pestle_parse_expect(p, ')'));
  if (generic && pestle_parse_take(p, '<')) {
    if (!pestle_parse_at(p, '{')) return pestle_parse_expected(p, "'{'");
    PESTLE_TRY(pestle_parse_dict(p, '}', &dict));
    PESTLE_TRY(pestle_parse_expect(p, '>'));
    *s = pestle_shardings_read(&dict);
  }
  // "in_shardings=[..] manual_axes={..}"
  while (!generic && pestle_parse_at_kind(p, PESTLE_TOKEN_WORD)) {
    pestle_str_t word = pestle_parse_token(p)->text, list;
    pestle_parse_advance(p);
    PESTLE_TRY(pestle_parse_expect(p, '='));
    PESTLE_TRY(read_list(p, &list));
    if (pestle_str_equal_c(word, "in_shardings")) s->in = list;
    if (pestle_str_equal_c(word, "out_shardings")) s->out = list;
    if (pestle_str_equal_c(word, "manual_axes")) s->axes = list;
  }
  if (generic) {
    PESTLE_TRY(pestle_parse_expect(p, '('));
    PESTLE_TRY(pestle_parse_expect(p, '{'));
    if (!pestle_parse_at_kind(p, PESTLE_TOKEN_CARET)) return NULL;
    pestle_parse_advance(p);
    if (pestle_parse_at(p, '(')) PESTLE_TRY(pestle_parse_arguments(p, a));
    return pestle_parse_expect(p, ':');
  }
  PESTLE_TRY(pestle_parse_arguments(p, a));
  return pestle_parse_expect(p, '{');
}

// A program of several devices, which each runs on parts of its own.
static bool is_spread(const pestle_parser_t* p, const pestle_parse_op_t* o) {
  return pestle_str_equal_c(o->at.text, "sdy.manual_computation") &&
         pestle_module_world(p->module).partitions > 1;
}

static pestle_status_t bind_parts(pestle_parser_t* p,
                                  const pestle_parse_op_t* o,
                                  const pestle_parse_arguments_t* a,
                                  const pestle_shardings_t* s) {
  pestle_parse_form_t form = {NULL, 1};
  for (size_t i = 0; i < a->types.count; ++i) {
    pestle_value_t* part;
    PESTLE_TRY(pestle_parse_place(
        p, &a->names[i],
        pestle_mark_local(o->builder, o->operands[i],
                          pestle_sharding_of_list(s->in, i), s->axes,
                          &a->types.data[i], &part)));
    PESTLE_TRY(pestle_parse_bind_forms(p, &a->names[i], a->names[i].text, &part,
                                       &form, 1));
  }
  return NULL;
}

static pestle_status_t join_parts(pestle_parser_t* p,
                                  const pestle_parse_op_t* o,
                                  pestle_parse_return_t* end,
                                  const pestle_shardings_t* s) {
  for (size_t i = 0; i < end->count && i < o->result_types.count; ++i) {
    PESTLE_TRY(pestle_parse_place(
        p, &o->at,
        pestle_mark_global(o->builder, end->values[i],
                           pestle_sharding_of_list(s->out, i), s->axes,
                           &o->result_types.data[i], &end->values[i])));
  }
  return NULL;
}

// The region's arguments are the operands: of one device every part is the whole.
static pestle_status_t bind_arguments(pestle_parser_t* p,
                                      const pestle_parse_op_t* o,
                                      const pestle_parse_arguments_t* a,
                                      const pestle_shardings_t* s) {
  pestle_parse_form_t form = {NULL, 1};
  if (a->types.count != o->operand_count || a->types.nested) {
    return pestle_parse_error(p, &o->at, PESTLE_STATUS_MALFORMED,
                              "'%.*s' has %zu operands, and its region takes "
                              "%zu values",
                              PESTLE_STR_ARG(o->at.text), o->operand_count,
                              a->types.count);
  }
  if (is_spread(p, o)) return bind_parts(p, o, a, s);
  for (size_t i = 0; i < a->types.count; ++i) {
    if (!pestle_types_agree(&a->types.data[i], o->operands[i]->type)) {
      return pestle_parse_error(
          p, &a->names[i], PESTLE_STATUS_UNSUPPORTED,
          "'%.*s' gives each of several devices a part of operand %zu, and a "
          "program here runs on one; export it for one device",
          PESTLE_STR_ARG(o->at.text), i);
    }
    PESTLE_TRY(pestle_parse_bind_forms(p, &a->names[i], a->names[i].text,
                                       &o->operands[i], &form, 1));
  }
  return NULL;
}

static pestle_status_t read_region(pestle_parser_t* p, pestle_parse_op_t* o,
                                   pestle_parse_return_t* end) {
  PESTLE_TRY(pestle_parse_enter(p));
  while (!end->seen) {
    pestle_arena_mark_t mark = pestle_arena_mark(&p->scratch);
    PESTLE_TRY(pestle_parse_one(p, o->builder, NULL, end));
    pestle_arena_rewind(&p->scratch, mark);
  }
  pestle_parse_leave(p);
  return pestle_parse_expect(p, '}');
}

pestle_status_t pestle_parse_computation(pestle_parser_t* p,
                                         pestle_parse_op_t* o, bool generic,
                                         pestle_parse_return_t* end) {
  pestle_parse_arguments_t a = {0};
  pestle_generic_value_t dict;
  pestle_shardings_t shardings;
  *end = (pestle_parse_return_t){.any = true};
  PESTLE_TRY(read_head(p, o, generic, &a, &shardings));
  size_t mark = pestle_parse_scope_begin(p);
  PESTLE_TRY(bind_arguments(p, o, &a, &shardings));
  PESTLE_TRY(read_region(p, o, end));
  pestle_parse_scope_end(p, mark);
  if (generic) PESTLE_TRY(pestle_parse_expect(p, ')'));
  if (pestle_parse_at(p, '{')) PESTLE_TRY(pestle_parse_dict(p, '}', &dict));
  PESTLE_TRY(pestle_parse_expect(p, ':'));
  PESTLE_TRY(
      pestle_parse_function_type(p, &o->operand_types, &o->result_types));
  if (is_spread(p, o)) PESTLE_TRY(join_parts(p, o, end, &shardings));
  bool fits = o->result_types.count == end->count;
  for (size_t i = 0; fits && i < end->count; ++i)
    fits = pestle_types_agree(&o->result_types.data[i], end->values[i]->type);
  return fits ? NULL
              : pestle_parse_error(p, &o->at, PESTLE_STATUS_MALFORMED,
                                   "'%.*s' returns other values than its types "
                                   "say",
                                   PESTLE_STR_ARG(o->at.text));
}
