// SPDX-License-Identifier: Apache-2.0
#include "ir/parse_module.h"

#include "ir/text.h"

// --- Signatures ---

typedef struct signature_t {
  pestle_str_t name;
  bool is_private;
  pestle_parse_arguments_t arguments;
  const char** argument_names;  // pestle.name; an entry for each argument
  pestle_parse_types_t results;
  const char** result_names;
  uint32_t* result_shapes;  // pestle.shape_of + 1, or 0
} signature_t;

// The string under "pestle.name", or NULL.
static const char* name_in(const pestle_parse_value_t* dict) {
  const pestle_parse_value_t* v = pestle_parse_find(dict, "pestle.name");
  return v && v->kind == PESTLE_VALUE_STRING ? v->text.data : NULL;
}

// The number under "pestle.shape_of" + 1, or 0.
static uint32_t shape_in(const pestle_parse_value_t* dict) {
  const pestle_parse_value_t* v = pestle_parse_find(dict, "pestle.shape_of");
  bool fits =
      v && v->kind == PESTLE_VALUE_INT && v->i64 >= 0 && v->i64 < UINT32_MAX;
  return fits ? (uint32_t)v->i64 + 1 : 0;
}

// "{pestle.name = "x"}" when it is there.
static pestle_status_t optional_attrs(pestle_parser_t* p, const char** out_name,
                                      uint32_t* out_shape) {
  pestle_parse_value_t dict;
  *out_name = NULL;
  *out_shape = 0;
  if (!pestle_parse_at(p, '{')) return NULL;
  PESTLE_TRY(pestle_parse_dict(p, '}', &dict));
  *out_name = name_in(&dict);
  *out_shape = shape_in(&dict);
  return NULL;
}

// Appends to an array of |count| names.
static pestle_status_t push_name(pestle_parser_t* p, const char*** names,
                                 size_t count, size_t* capacity,
                                 const char* name) {
  PESTLE_TRY(pestle_parse_grow(p, names, count, capacity, sizeof(**names)));
  (*names)[count] = name;
  return NULL;
}

// Whether the type that was read last is a tuple.
static bool is_nested(const pestle_parse_types_t* types) {
  return types->forms[types->form_count - 1].nest != NULL;
}

// "(%arg0: A {..} loc(..), %arg1: B)"
static pestle_status_t signature_arguments(pestle_parser_t* p, signature_t* s) {
  pestle_parse_arguments_t* a = &s->arguments;
  size_t capacity = 0;
  PESTLE_TRY(pestle_parse_expect(p, '('));
  if (pestle_parse_take(p, ')')) return NULL;
  do {
    const char* name;
    uint32_t unused;
    size_t leaf = a->types.count;
    PESTLE_TRY(pestle_parse_argument_name(p, a, a->types.form_count));
    PESTLE_TRY(pestle_parse_type_form(p, &a->types));
    PESTLE_TRY(optional_attrs(p, &name, &unused));
    PESTLE_TRY(pestle_parse_skip_loc(p));
    if (is_nested(&a->types)) name = NULL;
    for (; leaf < a->types.count; ++leaf) {
      PESTLE_TRY(push_name(p, &s->argument_names, leaf, &capacity, name));
    }
  } while (pestle_parse_take(p, ','));
  return pestle_parse_expect(p, ')');
}

// "-> A", "-> (A {..}, B)", or nothing
static pestle_status_t signature_results(pestle_parser_t* p, signature_t* s) {
  const char* name = NULL;
  uint32_t shape = 0;
  size_t capacity = 0, shape_capacity = 0;
  if (!pestle_parse_at_kind(p, PESTLE_TOKEN_ARROW)) return NULL;
  pestle_parse_advance(p);
  bool parentheses = pestle_parse_take(p, '(');
  if (parentheses && pestle_parse_take(p, ')')) return NULL;
  do {
    size_t leaf = s->results.count;
    PESTLE_TRY(pestle_parse_type_form(p, &s->results));
    if (parentheses) PESTLE_TRY(optional_attrs(p, &name, &shape));
    bool nested = is_nested(&s->results);
    for (; leaf < s->results.count; ++leaf) {
      PESTLE_TRY(push_name(p, &s->result_names, leaf, &capacity,
                           nested ? NULL : name));
      PESTLE_TRY(pestle_parse_grow(p, &s->result_shapes, leaf, &shape_capacity,
                                   sizeof(uint32_t)));
      s->result_shapes[leaf] = nested ? 0 : shape;
    }
  } while (parentheses && pestle_parse_take(p, ','));
  return parentheses ? pestle_parse_expect(p, ')') : NULL;
}

// --- Declaring ---

static pestle_status_t declare(pestle_parser_t* p, const pestle_token_t* at,
                               const signature_t* s,
                               pestle_function_t** out_function) {
  if (!s->name.size) {
    return pestle_parse_error(p, at, PESTLE_STATUS_MALFORMED,
                              "a function needs a name");
  }
  if (pestle_module_find_function(p->module, s->name.data)) {
    return pestle_parse_error(
        p, at, PESTLE_STATUS_MALFORMED, "function '%.*s' is defined twice",
        s->name.size > 60 ? 60 : (int)s->name.size, s->name.data);
  }
  PESTLE_TRY(pestle_module_add_function(
      p->module, s->name.data, s->arguments.types.data, s->argument_names,
      s->arguments.types.count, out_function));
  pestle_function_t* f = *out_function;
  f->is_private = s->is_private;
  PESTLE_TRY(
      pestle_function_declare_results(f, s->results.data, s->results.count));
  for (size_t i = 0; i < s->results.count; ++i) {
    if (s->result_shapes[i]) {
      PESTLE_TRY(pestle_function_set_shape_of(f, i, s->result_shapes[i] - 1));
    }
    if (!s->result_names[i]) continue;
    PESTLE_TRY(pestle_function_set_result_name(f, i, s->result_names[i]));
  }
  return NULL;
}

// Goes over a body by its braces alone; the lexer is at '{'.
static pestle_status_t skip_body(pestle_parser_t* p) {
  pestle_token_t open = *pestle_parse_token(p);
  size_t depth = 0;
  do {
    if (pestle_parse_at(p, '{')) ++depth;
    if (pestle_parse_at(p, '}')) --depth;
    if (pestle_parse_at_kind(p, PESTLE_TOKEN_END)) {
      return pestle_parse_error(p, &open, PESTLE_STATUS_MALFORMED,
                                "'{' is not closed");
    }
    pestle_parse_advance(p);
  } while (depth);
  return NULL;
}

static pestle_status_t note_body(pestle_parser_t* p, pestle_function_t* f,
                                 const pestle_parse_arguments_t* arguments) {
  pestle_parse_body_t body = {.function = f};
  size_t count = arguments ? arguments->types.form_count : 0;
  if (arguments) {
    pestle_str_t* names = PESTLE_ARENA_ARRAY(&p->kept, pestle_str_t, count);
    const char** nests = PESTLE_ARENA_ARRAY(&p->kept, const char*, count);
    if (!names || !nests) return PESTLE_OOM();
    for (size_t i = 0; i < count; ++i) {
      const char* nest = arguments->types.forms[i].nest;
      names[i] = arguments->names[i].text;
      nests[i] = nest ? pestle_arena_strdup(&p->kept, nest) : NULL;
      if (nest && !nests[i]) return PESTLE_OOM();
    }
    body.names = names;
    body.nests = nests;
    body.name_count = count;
  }
  pestle_lexer_t open = p->lexer;
  PESTLE_TRY(skip_body(p));
  body.start = open;
  if (!pestle_vec_push(&p->bodies, body)) return PESTLE_OOM();
  return NULL;
}

// "func.func public @main(..) -> .. attributes {..} {..}", behind "func.func"
static pestle_status_t parse_function(pestle_parser_t* p) {
  signature_t s = {0};
  pestle_function_t* f;
  pestle_parse_value_t dict;
  s.is_private = pestle_parse_take_word(p, "private");
  if (!s.is_private && !pestle_parse_take_word(p, "public")) {
    s.is_private = pestle_parse_take_word(p, "nested");
  }
  pestle_token_t at = *pestle_parse_token(p);
  PESTLE_TRY(pestle_parse_symbol(p, &p->scratch, &s.name));
  PESTLE_TRY(signature_arguments(p, &s));
  PESTLE_TRY(signature_results(p, &s));
  if (pestle_parse_take_word(p, "attributes")) {
    if (!pestle_parse_at(p, '{')) return pestle_parse_expected(p, "'{'");
    PESTLE_TRY(pestle_parse_dict(p, '}', &dict));
  }
  if (!pestle_parse_at(p, '{')) {
    return pestle_parse_expected(p, "the function's body");
  }
  PESTLE_TRY(declare(p, &at, &s, &f));
  PESTLE_TRY(note_body(p, f, &s.arguments));
  return pestle_parse_skip_loc(p);
}

// --- The generic form of functions and modules ---

// What is in arg_attrs or res_attrs: a list of dictionaries.
static pestle_status_t attr_names(pestle_parser_t* p,
                                  const pestle_parse_value_t* dict,
                                  const char* key, size_t count,
                                  const char*** out_names,
                                  uint32_t** out_shapes) {
  const char** names = PESTLE_ARENA_ARRAY(&p->scratch, const char*, count);
  uint32_t* shapes = PESTLE_ARENA_ARRAY(&p->scratch, uint32_t, count);
  if (!names || !shapes) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i) {
    names[i] = NULL;
    shapes[i] = 0;
  }
  const pestle_parse_value_t* list = pestle_parse_find(dict, key);
  const pestle_parse_entry_t* e = list ? list->entries : NULL;
  for (size_t i = 0; i < count && e; ++i, e = e->next) {
    if (e->value.kind != PESTLE_VALUE_DICT) continue;
    names[i] = name_in(&e->value);
    shapes[i] = shape_in(&e->value);
  }
  *out_names = names;
  *out_shapes = shapes;
  return NULL;
}

// '() <{..}> ({' or '() ({': what stands between a quoted name and its region;
// the attributes may also come after the region.
static pestle_status_t generic_head(pestle_parser_t* p,
                                    pestle_parse_value_t* out_dict) {
  *out_dict = (pestle_parse_value_t){.kind = PESTLE_VALUE_DICT};
  PESTLE_TRY(pestle_parse_expect(p, '('));
  PESTLE_TRY(pestle_parse_expect(p, ')'));
  if (pestle_parse_take(p, '<')) {
    if (!pestle_parse_at(p, '{')) return pestle_parse_expected(p, "'{'");
    PESTLE_TRY(pestle_parse_dict(p, '}', out_dict));
    PESTLE_TRY(pestle_parse_expect(p, '>'));
  }
  return pestle_parse_expect(p, '(');
}

// ') {..} : () -> ()'
static pestle_status_t generic_tail(pestle_parser_t* p) {
  pestle_parse_value_t unused;
  pestle_parse_types_t none = {0};
  PESTLE_TRY(pestle_parse_expect(p, ')'));
  if (pestle_parse_at(p, '{')) {
    PESTLE_TRY(pestle_parse_dict(p, '}', &unused));
  }
  PESTLE_TRY(pestle_parse_expect(p, ':'));
  PESTLE_TRY(pestle_parse_function_type(p, &none, &none));
  return pestle_parse_skip_loc(p);
}

static pestle_status_t generic_function(pestle_parser_t* p) {
  signature_t s = {0};
  pestle_function_t* f;
  pestle_parse_value_t dict;
  pestle_token_t at = *pestle_parse_token(p);
  pestle_parse_advance(p);
  PESTLE_TRY(generic_head(p, &dict));
  const pestle_parse_value_t* name = pestle_parse_find(&dict, "sym_name");
  const pestle_parse_value_t* type = pestle_parse_find(&dict, "function_type");
  const pestle_parse_value_t* seen = pestle_parse_find(&dict, "sym_visibility");
  if (!name || name->kind != PESTLE_VALUE_STRING || !type ||
      type->kind != PESTLE_VALUE_FUNCTION) {
    return pestle_parse_error(p, &at, PESTLE_STATUS_MALFORMED,
                              "expected attributes 'sym_name' and "
                              "'function_type'");
  }
  s.name = name->text;
  s.is_private = seen && !pestle_str_equal_c(seen->text, "public");
  s.arguments.types = type->inputs;
  s.results = type->outputs;
  uint32_t* unused;
  PESTLE_TRY(attr_names(p, &dict, "arg_attrs", type->inputs.count,
                        &s.argument_names, &unused));
  PESTLE_TRY(attr_names(p, &dict, "res_attrs", type->outputs.count,
                        &s.result_names, &s.result_shapes));
  PESTLE_TRY(declare(p, &at, &s, &f));
  if (!pestle_parse_at(p, '{')) return pestle_parse_expected(p, "'{'");
  PESTLE_TRY(note_body(p, f, NULL));
  return generic_tail(p);
}

static bool at_string(const pestle_parser_t* p, const char* text) {
  return pestle_parse_at_kind(p, PESTLE_TOKEN_STRING) &&
         pestle_str_equal_c(pestle_parse_token(p)->text, text);
}

// Functions and aliases up to '}' or the end of the text.
static pestle_status_t parse_items(pestle_parser_t* p) {
  while (!pestle_parse_at(p, '}') &&
         !pestle_parse_at_kind(p, PESTLE_TOKEN_END)) {
    pestle_arena_mark_t mark = pestle_arena_mark(&p->scratch);
    if (pestle_parse_take_word(p, "func.func") ||
        pestle_parse_take_word(p, "func")) {
      PESTLE_TRY(parse_function(p));
    } else if (at_string(p, "func.func")) {
      PESTLE_TRY(generic_function(p));
    } else if (pestle_parse_at_kind(p, PESTLE_TOKEN_HASH)) {
      PESTLE_TRY(pestle_parse_alias(p));
    } else if (pestle_parse_at_kind(p, PESTLE_TOKEN_WORD) &&
               pestle_str_find_char(pestle_parse_token(p)->text, '.') !=
                   SIZE_MAX) {
      return pestle_parse_error(p, pestle_parse_token(p),
                                PESTLE_STATUS_UNSUPPORTED,
                                "'%.*s' is not supported at module level",
                                PESTLE_STR_ARG(pestle_parse_token(p)->text));
    } else {
      return pestle_parse_expected(p, "a function");
    }
    pestle_arena_rewind(&p->scratch, mark);
  }
  return NULL;
}

static pestle_status_t create_module(pestle_parser_t* p, const char* name) {
  if (p->module) {
    return pestle_parse_expected(p, "the end of the text after the module");
  }
  return pestle_module_create(p->context, name, &p->module);
}

// "module @name attributes {..} {..}", behind "module"
static pestle_status_t parse_module(pestle_parser_t* p) {
  pestle_str_t name = PESTLE_STR("");
  pestle_parse_value_t dict;
  if (pestle_parse_at_kind(p, PESTLE_TOKEN_SYMBOL)) {
    PESTLE_TRY(pestle_parse_symbol(p, &p->scratch, &name));
  }
  if (pestle_parse_take_word(p, "attributes")) {
    if (!pestle_parse_at(p, '{')) return pestle_parse_expected(p, "'{'");
    PESTLE_TRY(pestle_parse_dict(p, '}', &dict));
  }
  PESTLE_TRY(pestle_parse_expect(p, '{'));
  PESTLE_TRY(create_module(p, name.data));
  PESTLE_TRY(parse_items(p));
  PESTLE_TRY(pestle_parse_expect(p, '}'));
  return pestle_parse_skip_loc(p);
}

static pestle_status_t generic_module(pestle_parser_t* p) {
  pestle_parse_value_t dict;
  pestle_parse_advance(p);
  PESTLE_TRY(generic_head(p, &dict));
  const pestle_parse_value_t* name = pestle_parse_find(&dict, "sym_name");
  bool named = name && name->kind == PESTLE_VALUE_STRING;
  PESTLE_TRY(pestle_parse_expect(p, '{'));
  PESTLE_TRY(create_module(p, named ? name->text.data : ""));
  PESTLE_TRY(parse_items(p));
  PESTLE_TRY(pestle_parse_expect(p, '}'));
  return generic_tail(p);
}

pestle_status_t pestle_parse_module_text(pestle_parser_t* p) {
  while (!pestle_parse_at_kind(p, PESTLE_TOKEN_END)) {
    pestle_arena_mark_t mark = pestle_arena_mark(&p->scratch);
    if (pestle_parse_take_word(p, "module") ||
        pestle_parse_take_word(p, "builtin.module")) {
      PESTLE_TRY(parse_module(p));
    } else if (at_string(p, "builtin.module")) {
      PESTLE_TRY(generic_module(p));
    } else if (pestle_parse_at_kind(p, PESTLE_TOKEN_HASH)) {
      PESTLE_TRY(pestle_parse_alias(p));
    } else {
      // Functions alone are a module without a name.
      PESTLE_TRY(create_module(p, ""));
      PESTLE_TRY(parse_items(p));
      if (pestle_parse_at(p, '}'))
        return pestle_parse_expected(p, "a function");
    }
    pestle_arena_rewind(&p->scratch, mark);
  }
  if (p->module) return NULL;
  return pestle_parse_expected(p, "a module");
}

// --- Bodies ---

// Arguments of a body in the generic form: "^bb0(%arg0: A):".
static pestle_status_t labelled_arguments(pestle_parser_t* p,
                                          pestle_block_t* block) {
  pestle_parse_arguments_t a = {0};
  if (pestle_parse_at_kind(p, PESTLE_TOKEN_CARET)) {
    pestle_parse_advance(p);
    if (pestle_parse_at(p, '(')) PESTLE_TRY(pestle_parse_arguments(p, &a));
    PESTLE_TRY(pestle_parse_expect(p, ':'));
  }
  bool same = a.types.count == block->argument_count;
  for (uint32_t i = 0; same && i < block->argument_count; ++i) {
    same = pestle_type_equal(&a.types.data[i], block->arguments[i]->type);
  }
  if (!same) {
    return pestle_parse_expected(
        p, "a label with the arguments of 'function_type' before");
  }
  return pestle_parse_bind_arguments(p, a.names, block);
}

static pestle_status_t known_arguments(pestle_parser_t* p,
                                       const pestle_parse_body_t* body,
                                       pestle_block_t* block) {
  uint32_t leaf = 0;
  for (size_t i = 0; i < body->name_count; ++i) {
    pestle_token_t name = body->start.token;
    pestle_parse_form_t form = {.nest = body->nests[i]};
    name.text = body->names[i];
    if (!form.nest) {
      PESTLE_TRY(pestle_parse_bind_argument(p, &name, block->arguments[leaf]));
      ++leaf;
      continue;
    }
    for (const char* c = form.nest; *c; ++c)
      form.leaves += *c == 't';
    PESTLE_TRY(pestle_parse_bind_forms(p, &name, name.text,
                                       block->arguments + leaf, &form, 1));
    leaf += (uint32_t)form.leaves;
  }
  return NULL;
}

pestle_status_t pestle_parse_function_body(pestle_parser_t* p,
                                           const pestle_parse_body_t* body) {
  pestle_block_t* block = body->function->body->block;
  pestle_arena_mark_t mark = pestle_arena_mark(&p->scratch);
  p->lexer = body->start;
  p->depth = 0;
  pestle_parse_advance(p);
  size_t scope = pestle_parse_scope_begin(p);
  PESTLE_TRY(body->names ? known_arguments(p, body, block)
                         : labelled_arguments(p, block));
  PESTLE_TRY(pestle_parse_ops(p, block, body->function));
  pestle_parse_scope_end(p, scope);
  pestle_arena_rewind(&p->scratch, mark);
  return NULL;
}
