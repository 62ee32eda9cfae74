// SPDX-License-Identifier: Apache-2.0
#include "ir/parse_module.h"
#include "ir/sharding.h"

#include "ir/text.h"

// --- Signatures ---

typedef struct ports_t {
  pestle_generic_port_t* data;  // an entry for each type
  size_t count, capacity;
} ports_t;

typedef struct signature_t {
  pestle_str_t name;
  bool is_private;
  pestle_parse_arguments_t arguments;
  ports_t argument_ports;
  pestle_parse_types_t results;
  ports_t result_ports;
  pestle_dialect_attrs_t attrs;
} signature_t;

// "{pestle.name = "x", ..}" when it is there.
static pestle_status_t optional_port(pestle_parser_t* p,
                                     pestle_generic_port_t* out) {
  pestle_generic_value_t dict;
  *out = (pestle_generic_port_t){.name = NULL};
  if (!pestle_parse_at(p, '{')) return NULL;
  PESTLE_TRY(pestle_parse_dict(p, '}', &dict));
  return pestle_generic_port(&p->scratch, &dict, out);
}

// "attributes {..}" when it is there.
static pestle_status_t optional_attributes(pestle_parser_t* p,
                                           pestle_dialect_attrs_t* out) {
  pestle_generic_value_t dict;
  *out = (pestle_dialect_attrs_t){NULL, 0};
  if (!pestle_parse_take_word(p, "attributes")) return NULL;
  if (!pestle_parse_at(p, '{')) return pestle_parse_expected(p, "'{'");
  PESTLE_TRY(pestle_parse_dict(p, '}', &dict));
  return pestle_generic_kept(&p->scratch, &dict, out);
}

// |port| for each type of |types| that has none yet: of a tuple, which is taken
// apart, nothing is noted.
static pestle_status_t push_ports(pestle_parser_t* p, ports_t* ports,
                                  const pestle_parse_types_t* types,
                                  pestle_generic_port_t port) {
  if (types->forms[types->form_count - 1].nest)
    port = (pestle_generic_port_t){.name = NULL};
  while (ports->count < types->count) {
    PESTLE_TRY(pestle_parse_grow(p, &ports->data, ports->count,
                                 &ports->capacity, sizeof(*ports->data)));
    ports->data[ports->count++] = port;
  }
  return NULL;
}

// "(%arg0: A {..} loc(..), %arg1: B)"
static pestle_status_t signature_arguments(pestle_parser_t* p, signature_t* s) {
  pestle_parse_arguments_t* a = &s->arguments;
  PESTLE_TRY(pestle_parse_expect(p, '('));
  if (pestle_parse_take(p, ')')) return NULL;
  do {
    pestle_generic_port_t port;
    PESTLE_TRY(pestle_parse_argument_name(p, a, a->types.form_count));
    PESTLE_TRY(pestle_parse_type_form(p, &a->types));
    PESTLE_TRY(optional_port(p, &port));
    PESTLE_TRY(pestle_parse_skip_loc(p));
    PESTLE_TRY(push_ports(p, &s->argument_ports, &a->types, port));
  } while (pestle_parse_take(p, ','));
  return pestle_parse_expect(p, ')');
}

// "-> A", "-> (A {..}, B)", or nothing
static pestle_status_t signature_results(pestle_parser_t* p, signature_t* s) {
  if (!pestle_parse_at_kind(p, PESTLE_TOKEN_ARROW)) return NULL;
  pestle_parse_advance(p);
  bool parentheses = pestle_parse_take(p, '(');
  if (parentheses && pestle_parse_take(p, ')')) return NULL;
  do {
    pestle_generic_port_t port = {.name = NULL};
    PESTLE_TRY(pestle_parse_type_form(p, &s->results));
    if (parentheses) PESTLE_TRY(optional_port(p, &port));
    PESTLE_TRY(push_ports(p, &s->result_ports, &s->results, port));
  } while (parentheses && pestle_parse_take(p, ','));
  return parentheses ? pestle_parse_expect(p, ')') : NULL;
}

// Notes where tokens stand among |types|.
static pestle_status_t set_tokens(pestle_parser_t* p, pestle_function_t* f,
                                  bool of_results,
                                  const pestle_parse_types_t* types) {
  size_t count = 0;
  uint32_t* positions =
      PESTLE_ARENA_ARRAY(&p->scratch, uint32_t, types->form_count);
  if (!positions) return PESTLE_OOM();
  for (size_t i = 0; i < types->form_count; ++i) {
    if (types->forms[i].nest && !strcmp(types->forms[i].nest, "()"))
      positions[count++] = (uint32_t)i;
  }
  return pestle_function_set_tokens(f, of_results, positions, count);
}

// --- Declaring ---

static pestle_status_t set_ports(pestle_function_t* f, const signature_t* s) {
  PESTLE_TRY(
      pestle_function_set_dialect_attrs(f, s->attrs.data, s->attrs.count));
  return pestle_generic_set_ports(f, s->argument_ports.data,
                                  s->argument_ports.count, s->result_ports.data,
                                  s->result_ports.count);
}

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
  size_t count = s->arguments.types.count;
  const char** names = PESTLE_ARENA_ARRAY(&p->scratch, const char*, count);
  if (!names) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    names[i] = s->argument_ports.data[i].name;
  const pestle_type_t* types = s->arguments.types.data;
  bool given = p->again && pestle_str_equal_c(s->name, p->again->entry) &&
               p->again->count == count;
  if (given) types = p->again->types;
  PESTLE_TRY(pestle_module_add_function(p->module, s->name.data, types, names,
                                        count, out_function));
  pestle_function_t* f = *out_function;
  f->is_private = s->is_private;
  PESTLE_TRY(set_tokens(p, f, false, &s->arguments.types));
  PESTLE_TRY(set_tokens(p, f, true, &s->results));
  // Of given arguments the results follow.
  if (!given) {
    PESTLE_TRY(
        pestle_function_declare_results(f, s->results.data, s->results.count));
  }
  return pestle_parse_place(p, at, set_ports(f, s));
}

// Goes over a body by its braces alone; the lexer is at '{'.
static pestle_status_t skip_body(pestle_parser_t* p) {
  pestle_token_t open = *pestle_parse_token(p);
  size_t depth = 0;
  do {
    if (pestle_parse_at(p, '{')) ++depth;
    if (pestle_parse_at(p, '}')) --depth;
    if (pestle_parse_at_open_string(p)) return pestle_parse_expected(p, "");
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
      nests[i] = NULL;
      if (!nest) continue;
      nests[i] = pestle_arena_strdup(&p->kept, nest);
      if (!nests[i]) return PESTLE_OOM();
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
  s.is_private = pestle_parse_take_word(p, "private");
  if (!s.is_private && !pestle_parse_take_word(p, "public")) {
    s.is_private = pestle_parse_take_word(p, "nested");
  }
  pestle_token_t at = *pestle_parse_token(p);
  PESTLE_TRY(pestle_parse_symbol(p, &p->scratch, &s.name));
  PESTLE_TRY(signature_arguments(p, &s));
  PESTLE_TRY(signature_results(p, &s));
  PESTLE_TRY(optional_attributes(p, &s.attrs));
  if (!pestle_parse_at(p, '{')) {
    return pestle_parse_expected(p, "the function's body");
  }
  PESTLE_TRY(declare(p, &at, &s, &f));
  PESTLE_TRY(note_body(p, f, &s.arguments));
  return pestle_parse_skip_loc(p);
}

// --- The generic form of functions and modules ---

// What is in arg_attrs or res_attrs: a list of dictionaries.
static pestle_status_t listed_ports(pestle_parser_t* p,
                                    const pestle_generic_value_t* dict,
                                    const char* key, size_t count,
                                    ports_t* out) {
  out->data = PESTLE_ARENA_ARRAY(&p->scratch, pestle_generic_port_t, count);
  out->count = count;
  if (!out->data) return PESTLE_OOM();
  const pestle_generic_value_t* list = pestle_generic_find(dict, key);
  const pestle_generic_entry_t* e = list ? list->entries : NULL;
  for (size_t i = 0; i < count; ++i) {
    out->data[i] = (pestle_generic_port_t){.name = NULL};
    if (!e) continue;
    if (e->value.kind == PESTLE_GENERIC_DICT) {
      PESTLE_TRY(pestle_generic_port(&p->scratch, &e->value, &out->data[i]));
    }
    e = e->next;
  }
  return NULL;
}

// '() <{..}> ({' or '() ({': what stands between a quoted name and its region;
// the attributes may also come after the region.
static pestle_status_t generic_head(pestle_parser_t* p,
                                    pestle_generic_value_t* out_dict) {
  *out_dict = (pestle_generic_value_t){.kind = PESTLE_GENERIC_DICT};
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
static pestle_status_t generic_tail(pestle_parser_t* p,
                                    pestle_dialect_attrs_t* out) {
  pestle_generic_value_t dict;
  pestle_parse_types_t none = {0};
  *out = (pestle_dialect_attrs_t){NULL, 0};
  PESTLE_TRY(pestle_parse_expect(p, ')'));
  if (pestle_parse_at(p, '{')) {
    PESTLE_TRY(pestle_parse_dict(p, '}', &dict));
    PESTLE_TRY(pestle_generic_kept(&p->scratch, &dict, out));
  }
  PESTLE_TRY(pestle_parse_expect(p, ':'));
  PESTLE_TRY(pestle_parse_function_type(p, &none, &none));
  return pestle_parse_skip_loc(p);
}

// The attributes of |a| and |b|, which are in the two dictionaries of one op.
static pestle_status_t join_attrs(pestle_parser_t* p, pestle_dialect_attrs_t a,
                                  pestle_dialect_attrs_t b,
                                  pestle_dialect_attrs_t* out) {
  pestle_dialect_attr_t* data = PESTLE_ARENA_ARRAY(
      &p->scratch, pestle_dialect_attr_t, (size_t)a.count + b.count);
  if (!data) return PESTLE_OOM();
  for (uint32_t i = 0; i < a.count; ++i)
    data[i] = a.data[i];
  for (uint32_t i = 0; i < b.count; ++i)
    data[a.count + i] = b.data[i];
  *out = (pestle_dialect_attrs_t){data, a.count + b.count};
  return NULL;
}

static pestle_status_t generic_function(pestle_parser_t* p) {
  signature_t s = {0};
  pestle_function_t* f;
  pestle_generic_value_t dict;
  pestle_token_t at = *pestle_parse_token(p);
  pestle_parse_advance(p);
  PESTLE_TRY(generic_head(p, &dict));
  const pestle_generic_value_t* name = pestle_generic_find(&dict, "sym_name");
  const pestle_generic_value_t* type =
      pestle_generic_find(&dict, "function_type");
  const pestle_generic_value_t* seen =
      pestle_generic_find(&dict, "sym_visibility");
  if (!name || name->kind != PESTLE_GENERIC_STRING || !type ||
      type->kind != PESTLE_GENERIC_FUNCTION) {
    return pestle_parse_error(p, &at, PESTLE_STATUS_MALFORMED,
                              "expected attributes 'sym_name' and "
                              "'function_type'");
  }
  s.name = name->text;
  s.is_private = seen && !pestle_str_equal_c(seen->text, "public");
  s.arguments.types = *type->inputs;
  s.results = *type->outputs;
  PESTLE_TRY(listed_ports(p, &dict, "arg_attrs", type->inputs->count,
                          &s.argument_ports));
  PESTLE_TRY(listed_ports(p, &dict, "res_attrs", type->outputs->count,
                          &s.result_ports));
  PESTLE_TRY(pestle_generic_kept(&p->scratch, &dict, &s.attrs));
  PESTLE_TRY(declare(p, &at, &s, &f));
  if (!pestle_parse_at(p, '{')) return pestle_parse_expected(p, "'{'");
  PESTLE_TRY(note_body(p, f, NULL));
  pestle_dialect_attrs_t more, all;
  PESTLE_TRY(generic_tail(p, &more));
  if (!more.count) return NULL;
  PESTLE_TRY(join_attrs(p, s.attrs, more, &all));
  return pestle_parse_place(
      p, &at, pestle_function_set_dialect_attrs(f, all.data, all.count));
}

static bool at_string(const pestle_parser_t* p, const char* text) {
  return pestle_parse_at_kind(p, PESTLE_TOKEN_STRING) &&
         pestle_str_equal_c(pestle_parse_token(p)->text, text);
}

// Meshes may stand before a module that has no line of its own.
static pestle_status_t add_mesh(pestle_parser_t* p, const pestle_token_t* at,
                                pestle_str_t name, pestle_str_t text) {
  if (!p->module) return NULL;
  return pestle_parse_place(p, at,
                            pestle_module_add_mesh(p->module, name, text));
}

// "@mesh = <["d"=1]>", or '"sdy.mesh"() <{..}> : () -> ()': devices, over which
// shardings spread values without changing them.
static pestle_status_t skip_mesh(pestle_parser_t* p) {
  pestle_str_t name;
  pestle_generic_value_t dict;
  pestle_parse_types_t none = {0};
  pestle_token_t at = *pestle_parse_token(p);
  if (at.kind != PESTLE_TOKEN_STRING) {
    PESTLE_TRY(pestle_parse_symbol(p, &p->scratch, &name));
    PESTLE_TRY(pestle_parse_expect(p, '='));
    if (!pestle_parse_at(p, '<')) return pestle_parse_expected(p, "'<'");
    const char* begin = pestle_parse_token(p)->whole.data;
    PESTLE_TRY(pestle_parse_skip_brackets(p, true));
    const char* end = pestle_parse_token(p)->whole.data;
    PESTLE_TRY(
        add_mesh(p, &at, name, pestle_str_make(begin, (size_t)(end - begin))));
    if (pestle_parse_at(p, '{')) PESTLE_TRY(pestle_parse_dict(p, '}', &dict));
    return pestle_parse_skip_loc(p);
  }
  pestle_parse_advance(p);
  PESTLE_TRY(pestle_parse_expect(p, '('));
  PESTLE_TRY(pestle_parse_expect(p, ')'));
  bool properties = pestle_parse_take(p, '<');
  if (!pestle_parse_at(p, '{')) return pestle_parse_expected(p, "'{'");
  PESTLE_TRY(pestle_parse_dict(p, '}', &dict));
  if (properties) PESTLE_TRY(pestle_parse_expect(p, '>'));
  const pestle_generic_value_t* symbol = pestle_generic_find(&dict, "sym_name");
  const pestle_generic_value_t* mesh = pestle_generic_find(&dict, "mesh");
  if (symbol && symbol->kind == PESTLE_GENERIC_STRING && mesh)
    PESTLE_TRY(add_mesh(p, &at, symbol->text, mesh->whole));
  PESTLE_TRY(pestle_parse_expect(p, ':'));
  PESTLE_TRY(pestle_parse_function_type(p, &none, &none));
  return pestle_parse_skip_loc(p);
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
    } else if (pestle_parse_take_word(p, "sdy.mesh") ||
               at_string(p, "sdy.mesh")) {
      PESTLE_TRY(skip_mesh(p));
    } else if (pestle_parse_at_kind(p, PESTLE_TOKEN_HASH) ||
               pestle_parse_at_kind(p, PESTLE_TOKEN_BANG)) {
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
  pestle_dialect_attrs_t attrs;
  if (pestle_parse_at_kind(p, PESTLE_TOKEN_SYMBOL)) {
    PESTLE_TRY(pestle_parse_symbol(p, &p->scratch, &name));
  }
  pestle_token_t at = *pestle_parse_token(p);
  PESTLE_TRY(optional_attributes(p, &attrs));
  PESTLE_TRY(pestle_parse_expect(p, '{'));
  PESTLE_TRY(create_module(p, name.data));
  PESTLE_TRY(pestle_parse_place(
      p, &at,
      pestle_module_set_dialect_attrs(p->module, attrs.data, attrs.count)));
  PESTLE_TRY(parse_items(p));
  PESTLE_TRY(pestle_parse_expect(p, '}'));
  return pestle_parse_skip_loc(p);
}

static pestle_status_t generic_module(pestle_parser_t* p) {
  pestle_generic_value_t dict;
  pestle_dialect_attrs_t attrs, more, all;
  pestle_token_t at = *pestle_parse_token(p);
  pestle_parse_advance(p);
  PESTLE_TRY(generic_head(p, &dict));
  PESTLE_TRY(pestle_generic_kept(&p->scratch, &dict, &attrs));
  const pestle_generic_value_t* name = pestle_generic_find(&dict, "sym_name");
  bool named = name && name->kind == PESTLE_GENERIC_STRING;
  PESTLE_TRY(pestle_parse_expect(p, '{'));
  PESTLE_TRY(create_module(p, named ? name->text.data : ""));
  PESTLE_TRY(parse_items(p));
  PESTLE_TRY(pestle_parse_expect(p, '}'));
  PESTLE_TRY(generic_tail(p, &more));
  PESTLE_TRY(join_attrs(p, attrs, more, &all));
  return pestle_parse_place(
      p, &at, pestle_module_set_dialect_attrs(p->module, all.data, all.count));
}

pestle_status_t pestle_parse_module_text(pestle_parser_t* p) {
  while (!pestle_parse_at_kind(p, PESTLE_TOKEN_END)) {
    pestle_arena_mark_t mark = pestle_arena_mark(&p->scratch);
    if (pestle_parse_take_word(p, "module") ||
        pestle_parse_take_word(p, "builtin.module")) {
      PESTLE_TRY(parse_module(p));
    } else if (at_string(p, "builtin.module")) {
      PESTLE_TRY(generic_module(p));
    } else if (pestle_parse_take_word(p, "sdy.mesh") ||
               at_string(p, "sdy.mesh")) {
      PESTLE_TRY(skip_mesh(p));
    } else if (pestle_parse_at_kind(p, PESTLE_TOKEN_HASH) ||
               pestle_parse_at_kind(p, PESTLE_TOKEN_BANG)) {
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
