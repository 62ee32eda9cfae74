// SPDX-License-Identifier: Apache-2.0
// The entry point: functions are declared from their signatures first, their
// bodies read afterwards, locations and the verifier last.
#include "base/fault.h"
#include "base/require.h"
#include "ir/built.h"
#include "ir/parse_internal.h"
#include "ir/parse_module.h"
#include "ir/sharding.h"
#include "ir/text.h"

static pestle_status_t fill_ops(pestle_parser_t* p) {
  // From the back, so that the name which comparisons share means the first.
  for (unsigned i = PESTLE_OP_COUNT; i-- > 0;) {
    const pestle_op_info_t* info = pestle_op_info((pestle_op_t)i);
    if (!pestle_map_set_str(&p->ops, pestle_str(info->mlir), i)) {
      return PESTLE_OOM();
    }
  }
  if (!pestle_map_set_str(&p->ops, PESTLE_STR("stablehlo.uniform_quantize"),
                          PESTLE_OP_CONVERT) ||
      !pestle_map_set_str(&p->ops, PESTLE_STR("stablehlo.uniform_dequantize"),
                          PESTLE_OP_CONVERT) ||
      !pestle_map_set_str(&p->ops, PESTLE_STR("func.return"),
                          PESTLE_OP_RETURN) ||
      !pestle_map_set_str(&p->ops, PESTLE_STR("sdy.return"),
                          PESTLE_OP_RETURN) ||
      !pestle_map_set_str(&p->ops, PESTLE_STR("sdy.constant"),
                          PESTLE_OP_CONSTANT) ||
      !pestle_map_set_str(&p->ops, PESTLE_STR("sdy.manual_computation"),
                          PESTLE_OP_CALL) ||
      !pestle_map_set_str(&p->ops, PESTLE_STR("sdy.named_computation"),
                          PESTLE_OP_CALL) ||
      !pestle_map_set_str(&p->ops, PESTLE_STR("chlo.ragged_dot"),
                          PESTLE_OP_DOT_GENERAL) ||
      !pestle_map_set_str(&p->ops, PESTLE_STR("chlo.top_k"), PESTLE_OP_SORT)) {
    return PESTLE_OOM();
  }
  for (size_t i = 0; pestle_built_row(i); ++i) {
    if (!pestle_map_set_str(&p->ops, pestle_str(pestle_built_row(i)->name),
                            PESTLE_OP_COUNT + i)) {
      return PESTLE_OOM();
    }
  }
  for (size_t i = 0; pestle_parse_tuple_name(i); ++i) {
    if (!pestle_map_set_str(&p->ops, pestle_str(pestle_parse_tuple_name(i)),
                            PESTLE_OP_OPTIMIZATION_BARRIER)) {
      return PESTLE_OOM();
    }
  }
  for (size_t i = 0; pestle_generic_chlo_name(i); ++i) {
    if (!pestle_map_set_str(&p->ops, pestle_str(pestle_generic_chlo_name(i)),
                            pestle_generic_chlo_base(i))) {
      return PESTLE_OOM();
    }
  }
  return NULL;
}

// --- Unsupported operations, all at once ---

enum { MAX_LISTED = 50 };

// Whether the token stands where an op's name does.
static bool is_op_name(const pestle_parser_t* p, const pestle_token_t* t,
                       bool after_equals) {
  bool starts = t->first || after_equals;
  if (!starts || pestle_str_find_char(t->text, '.') == SIZE_MAX) return false;
  if (t->kind == PESTLE_TOKEN_STRING) {
    return p->lexer.cursor < p->end && *p->lexer.cursor == '(';
  }
  return t->kind == PESTLE_TOKEN_WORD;
}

static bool is_known(const pestle_parser_t* p, pestle_str_t name) {
  return pestle_map_find_str(&p->ops, name) ||
         pestle_str_is_one_of(name, "func.func sdy.mesh builtin.module");
}

// Looks through the whole text for ops that no table has; the first of each.
static pestle_status_t list_unsupported(pestle_parser_t* p, pestle_map_t* seen,
                                        pestle_strbuf_t* out) {
  bool after_equals = false, added;
  p->lexer = (pestle_lexer_t){
      .cursor = p->begin, .line_start = p->begin, .line = 1, .fresh = true};
  pestle_parse_advance(p);
  while (!pestle_parse_at_kind(p, PESTLE_TOKEN_END)) {
    pestle_token_t t = *pestle_parse_token(p);
    if (is_op_name(p, &t, after_equals) && !is_known(p, t.text)) {
      if (!pestle_map_put(seen, t.text.data, t.text.size, &added)) {
        return PESTLE_OOM();
      }
      if (added && pestle_map_size(seen) <= MAX_LISTED) {
        pestle_strbuf_appendf(out, "%s'%.*s' (%u:%u)", out->size ? ", " : "",
                              t.text.size > 100 ? 100 : (int)t.text.size,
                              t.text.data, t.line, t.column);
      }
    }
    after_equals = t.sign == '=';
    pestle_parse_advance(p);
  }
  return pestle_strbuf_status(out);
}

// Adds what else is unsupported to the |status| of the first finding.
static pestle_status_t with_unsupported(pestle_parser_t* p,
                                        pestle_status_t status) {
  if (pestle_status_code(status) != PESTLE_STATUS_UNSUPPORTED) return status;
  pestle_map_t seen;
  pestle_strbuf_t text;
  pestle_map_init(p->allocator, &seen);
  pestle_strbuf_init(p->allocator, &text);
  pestle_status_t listed = list_unsupported(p, &seen, &text);
  if (!listed && pestle_map_size(&seen)) {
    status = pestle_status_annotate(
        status, "operations that are not supported in %s: %s%s", p->file,
        pestle_strbuf_cstr(&text),
        pestle_map_size(&seen) > MAX_LISTED ? ", and more" : "");
  }
  pestle_status_release(listed);
  pestle_strbuf_deinit(&text);
  pestle_map_deinit(&seen);
  return status;
}

// --- Entry point ---

static pestle_status_t parse_text(pestle_parser_t* p) {
  PESTLE_TRY(fill_ops(p));
  pestle_parse_advance(p);
  PESTLE_TRY(pestle_parse_module_text(p));
  if (p->signatures_only) return NULL;
  if (p->again) {
    PESTLE_TRY(pestle_parse_read_again(p));
  } else {
    for (size_t i = 0; i < p->bodies.size; ++i) {
      PESTLE_TRY(pestle_parse_function_body(p, &p->bodies.data[i]));
    }
  }
  PESTLE_TRY(pestle_parse_resolve_locs(p));
  PESTLE_TRY(pestle_parse_attach_bodies(p));
  PESTLE_TRY(pestle_generic_attach_computations(p->module));
  PESTLE_TRY(pestle_module_settle_meshes(p->module));
  return pestle_module_verify(p->module);
}

static void parser_init(pestle_context_t* context, pestle_str_t text,
                        const char* file, pestle_parser_t* p) {
  *p = (pestle_parser_t){.context = context,
                         .allocator = pestle_context_allocator(context),
                         .file = file ? file : "<text>",
                         .begin = text.data,
                         .end = text.data + text.size};
  p->lexer = (pestle_lexer_t){
      .cursor = p->begin, .line_start = p->begin, .line = 1, .fresh = true};
  pestle_arena_init(p->allocator, &p->scratch);
  pestle_arena_init(p->allocator, &p->kept);
  pestle_map_init(p->allocator, &p->ops);
  pestle_map_init(p->allocator, &p->scope);
  pestle_map_init(p->allocator, &p->aliases);
  pestle_map_init(p->allocator, &p->words);
  pestle_vec_init(&p->bindings, p->allocator);
  pestle_vec_init(&p->fixups, p->allocator);
  pestle_vec_init(&p->bodies, p->allocator);
  pestle_vec_init(&p->composites, p->allocator);
}

static void parser_deinit(pestle_parser_t* p) {
  pestle_vec_deinit(&p->composites);
  pestle_vec_deinit(&p->bodies);
  pestle_vec_deinit(&p->fixups);
  pestle_vec_deinit(&p->bindings);
  pestle_map_deinit(&p->words);
  pestle_map_deinit(&p->aliases);
  pestle_map_deinit(&p->scope);
  pestle_map_deinit(&p->ops);
  pestle_arena_deinit(&p->kept);
  pestle_arena_deinit(&p->scratch);
}

// Reads |text|; |*out_module| is NULL on failure.
static pestle_status_t read_text(pestle_parser_t* p,
                                 pestle_module_t** out_module) {
  pestle_status_t status = parse_text(p);
  *out_module = status ? NULL : p->module;
  if (!status) return NULL;
  status = with_unsupported(p, status);
  return status;
}

// --- Symbolic modules ---

// Names of the text, which bodies would give.
static pestle_status_t name_arguments(pestle_parser_t* p) {
  const pestle_function_t* entry = pestle_module_entry(p->module);
  for (size_t i = 0; i < p->bodies.size; ++i) {
    const pestle_parse_body_t* body = &p->bodies.data[i];
    const pestle_block_t* block = body->function->body->block;
    if (body->function != entry || body->name_count != block->argument_count) {
      continue;
    }
    for (uint32_t k = 0; k < block->argument_count; ++k) {
      if (!pestle_text_is_wish(body->names[k])) continue;
      char* name = pestle_arena_strndup(&p->scratch, body->names[k]);
      if (!name) return PESTLE_OOM();
      block->arguments[k]->name = pestle_module_intern_string(p->module, name);
      if (!block->arguments[k]->name) return PESTLE_OOM();
    }
  }
  return NULL;
}

// Once more with what |again| says, or without bodies.
static pestle_status_t read_source(const pestle_again_source_t* source,
                                   const pestle_again_t* again, bool* marks,
                                   pestle_module_t** out_module) {
  pestle_parser_t p;
  parser_init(source->context, source->bytes, source->name, &p);
  p.again = again;
  p.shapes.again = again;
  p.signatures_only = !again;
  pestle_status_t status = read_text(&p, out_module);
  if (!status && !again) status = name_arguments(&p);
  if (status) {
    if (marks && p.shapes.wanted) {
      status = pestle_again_mark(status, p.allocator, p.shapes.wanted, marks);
    }
    pestle_module_release(p.module);
    *out_module = NULL;
  }
  parser_deinit(&p);
  return status;
}

// The text behind the byte order mark that some editors begin a file with.
static pestle_str_t skip_mark(const char* text, size_t size) {
  bool marked = size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3);
  if (!size) text = "";
  return marked ? pestle_str_make(text + 3, size - 3)
                : pestle_str_make(text, size);
}

pestle_status_t pestle_module_parse(pestle_context_t* context, const char* text,
                                    size_t size, const char* file,
                                    pestle_module_t** out_module) {
  if (out_module) *out_module = NULL;
  PESTLE_REQUIRE(context && (text || !size) && out_module,
                 "a context, a text and a place for the module");
  pestle_parser_t parser;
  pestle_str_t all = skip_mark(text, size);
  parser_init(context, all, file, &parser);
  pestle_status_t status = read_text(&parser, out_module);
  bool again = status && parser.shapes.wanted;
  if (status && !PESTLE_FAULT(trust_parse_leak)) {
    pestle_module_release(parser.module);
  }
  parser_deinit(&parser);
  if (!again) return status;
  pestle_again_source_t source = {context, file ? file : "<text>", all,
                                  read_source};
  return pestle_again_read(&source, status, out_module);
}

// --- One value ---

static pestle_status_t parse_value(pestle_parser_t* p,
                                   pestle_generic_value_t* out_value) {
  pestle_parse_advance(p);
  PESTLE_TRY(pestle_parse_value(p, out_value));
  return pestle_parse_at_kind(p, PESTLE_TOKEN_END)
             ? NULL
             : pestle_parse_expected(p, "the end of the attribute");
}

pestle_status_t pestle_generic_parse_value(pestle_context_t* context,
                                           pestle_arena_t* arena,
                                           pestle_str_t text,
                                           pestle_generic_value_t* out_value) {
  pestle_parser_t parser;
  parser_init(context, text, "<attribute>", &parser);
  // What is read stays with the caller.
  pestle_arena_t own = parser.scratch;
  parser.scratch = *arena;
  pestle_status_t status = parse_value(&parser, out_value);
  *arena = parser.scratch;
  parser.scratch = own;
  parser_deinit(&parser);
  return status;
}
