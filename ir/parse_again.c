// SPDX-License-Identifier: Apache-2.0
// Symbolic modules whose extents follow from what is computed: ADR 002 for text. Such
// a module keeps its text and has no body; specialised, it is the text read again
// with the arguments' types, in which every op on constants is evaluated as it is
// read and every call is read in the place of the call, so that numbers reach the
// ops whose results have extents by them.
#include "base/mem.h"
#include "ir/again.h"
#include "ir/built.h"
#include "ir/fold.h"
#include "ir/parse_internal.h"
#include "ir/parse_module.h"

// --- Calls ---

static const pestle_parse_body_t* find_body(const pestle_parser_t* p,
                                            const pestle_function_t* f) {
  for (size_t i = 0; i < p->bodies.size; ++i) {
    if (p->bodies.data[i].function == f) return &p->bodies.data[i];
  }
  return NULL;
}

// The names of the arguments, which stand behind a label in the generic form.
static pestle_status_t argument_names(pestle_parser_t* p,
                                      const pestle_parse_body_t* body,
                                      pestle_parse_arguments_t* a,
                                      size_t* out_count) {
  *out_count = body->name_count;
  if (body->names) {
    a->names =
        PESTLE_ARENA_ARRAY(&p->scratch, pestle_token_t, body->name_count);
    if (!a->names) return PESTLE_OOM();
    for (size_t i = 0; i < body->name_count; ++i) {
      a->names[i] = body->start.token;
      a->names[i].text = body->names[i];
      if (!body->nests[i]) continue;
      return pestle_parse_error(p, &body->start.token,
                                PESTLE_STATUS_UNSUPPORTED,
                                "a function of tuples or tokens is not read "
                                "where extents are not known");
    }
    return NULL;
  }
  if (pestle_parse_at_kind(p, PESTLE_TOKEN_CARET)) {
    pestle_parse_advance(p);
    if (pestle_parse_at(p, '(')) PESTLE_TRY(pestle_parse_arguments(p, a));
    PESTLE_TRY(pestle_parse_expect(p, ':'));
  }
  *out_count = a->types.count;
  return NULL;
}

static pestle_status_t bind_arguments(pestle_parser_t* p,
                                      const pestle_parse_op_t* o,
                                      const pestle_parse_body_t* body) {
  pestle_parse_arguments_t a = {0};
  pestle_parse_form_t form = {NULL, 1};
  size_t count;
  PESTLE_TRY(argument_names(p, body, &a, &count));
  if (count != o->operand_count) {
    return pestle_parse_error(p, &o->at, PESTLE_STATUS_MALFORMED,
                              "'%s' takes %zu arguments and is given %zu",
                              body->function->name, count, o->operand_count);
  }
  for (size_t i = 0; i < count; ++i) {
    PESTLE_TRY(pestle_parse_bind_forms(p, &a.names[i], a.names[i].text,
                                       &o->operands[i], &form, 1));
  }
  return NULL;
}

// The ops of |body| at the end of the builder's block, up to its return, whose
// operands become |values|.
static pestle_status_t read_body(pestle_parser_t* p, const pestle_parse_op_t* o,
                                 const pestle_parse_body_t* body,
                                 pestle_value_t** values, size_t count) {
  p->lexer = body->start;
  pestle_parse_advance(p);
  PESTLE_TRY(bind_arguments(p, o, body));
  pestle_builder_t builder = *o->builder;
  pestle_parse_return_t end = {.values = values, .count = count};
  while (!end.seen) {
    pestle_arena_mark_t mark = pestle_arena_mark(&p->scratch);
    if (++p->op_count > PESTLE_MOST_COPIED_OPS) {
      return pestle_parse_error(p, &o->at, PESTLE_STATUS_RESOURCE_EXHAUSTED,
                                "calls make more than %d ops of the text",
                                PESTLE_MOST_COPIED_OPS);
    }
    PESTLE_TRY(pestle_parse_one(p, &builder, NULL, &end));
    pestle_arena_rewind(&p->scratch, mark);
  }
  return pestle_parse_at(p, '}')
             ? NULL
             : pestle_parse_expected(p, "'}' after the return");
}

pestle_status_t pestle_parse_inline(pestle_parser_t* p, pestle_parse_op_t* o,
                                    const char* callee,
                                    pestle_value_t*** out_values,
                                    size_t* out_count) {
  const pestle_function_t* f = pestle_module_find_function(p->module, callee);
  const pestle_parse_body_t* body = f ? find_body(p, f) : NULL;
  if (!body || !pestle_function_result_count(f, out_count)) {
    return pestle_parse_error(p, &o->at, PESTLE_STATUS_MALFORMED,
                              "there is no function '%.60s'", callee);
  }
  *out_values =
      PESTLE_ARENA_ARRAY(&p->scratch, pestle_value_t*, *out_count + 1);
  if (!*out_values) return PESTLE_OOM();
  // Names of the function are its own.
  pestle_map_t scope = p->scope;
  pestle_lexer_t back = p->lexer;
  size_t mark = p->bindings.size;
  pestle_map_init(p->allocator, &p->scope);
  pestle_status_t status = pestle_parse_enter(p);
  if (!status) status = read_body(p, o, body, *out_values, *out_count);
  p->bindings.size = mark;
  pestle_map_deinit(&p->scope);
  p->scope = scope;
  if (status) return status;
  pestle_parse_leave(p);
  p->lexer = back;
  return NULL;
}

// --- Reading the whole again ---

// An argument whose value is given is that constant.
static pestle_status_t bind_value(pestle_parser_t* p, pestle_builder_t* b,
                                  const pestle_token_t* name, size_t index,
                                  pestle_value_t* argument) {
  pestle_value_t** leaf = PESTLE_ARENA_NEW(&p->kept, pestle_value_t*);
  pestle_parse_form_t form = {NULL, 1};
  if (!leaf) return PESTLE_OOM();
  *leaf = argument;
  const pestle_again_t* again = p->again;
  if (again->fixed && again->fixed[index]) {
    pestle_constant_attrs_t attrs = {sizeof(attrs), again->values[index]};
    PESTLE_TRY(pestle_op_constant(b, &attrs, leaf));
  }
  return pestle_parse_bind_forms(p, name, name->text, leaf, &form, 1);
}

static pestle_status_t read_entry(pestle_parser_t* p,
                                  const pestle_parse_body_t* body) {
  pestle_block_t* block = body->function->body->block;
  pestle_builder_t builder = {.module = p->module, .block = block};
  pestle_parse_arguments_t a = {0};
  size_t count;
  p->lexer = body->start;
  p->depth = 0;
  pestle_parse_advance(p);
  size_t scope = pestle_parse_scope_begin(p);
  PESTLE_TRY(argument_names(p, body, &a, &count));
  if (count != block->argument_count) {
    return pestle_parse_expected(p, "an argument for each type");
  }
  for (size_t i = 0; i < count; ++i) {
    PESTLE_TRY(bind_value(p, &builder, &a.names[i], i, block->arguments[i]));
  }
  PESTLE_TRY(pestle_parse_ops(p, block, body->function));
  pestle_parse_scope_end(p, scope);
  return NULL;
}

// Reads what is called from regions (comparisons of ApproxTopK) and drops the rest.
static pestle_status_t read_called(pestle_parser_t* p,
                                   const pestle_function_t* entry) {
  pestle_map_t called;
  pestle_map_init(p->allocator, &called);
  pestle_status_t status = pestle_again_callees(entry, &called);
  for (size_t i = 0; !status && i < p->bodies.size; ++i) {
    pestle_function_t* f = p->bodies.data[i].function;
    if (f == entry) continue;
    if (pestle_map_find_str(&called, pestle_str(f->name))) {
      status = pestle_parse_function_body(p, &p->bodies.data[i]);
    } else {
      pestle_module_remove_function(f);
    }
  }
  pestle_map_deinit(&called);
  return status;
}

pestle_status_t pestle_parse_read_again(pestle_parser_t* p) {
  const pestle_function_t* entry = pestle_module_entry(p->module);
  const pestle_parse_body_t* body = entry ? find_body(p, entry) : NULL;
  if (!body) return PESTLE_ERROR(INVALID_ARGUMENT, "the text has no function");
  PESTLE_TRY(read_entry(p, body));
  return read_called(p, entry);
}
