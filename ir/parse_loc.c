// SPDX-License-Identifier: Apache-2.0
// Locations. MLIR's are trees; what we keep is the outermost name and the first
// place in a file (of a call site the callee's, of a fusion the first part's).
// Aliases may be defined after their use, so nodes wait for the end of the
// text.
#include "ir/parse_internal.h"

static bool is_empty(const pestle_parse_loc_t* loc) {
  return !loc->name.size && !loc->file.size && !loc->alias.size;
}

// Adds what |part| knows and |loc| does not.
static void merge(pestle_parse_loc_t* loc, const pestle_parse_loc_t* part) {
  if (!loc->name.size) loc->name = part->name;
  if (loc->file.size) return;
  loc->file = part->file;
  loc->line = part->line;
  loc->column = part->column;
  if (!loc->alias.size) loc->alias = part->alias;
}

static pestle_status_t read_body(pestle_parser_t* p, pestle_parse_loc_t* loc);

static pestle_status_t read_number(pestle_parser_t* p, uint32_t* out) {
  pestle_token_t t = *pestle_parse_token(p);
  int64_t value;
  PESTLE_TRY(pestle_parse_integer(p, &value));
  if (value < 0 || value > UINT32_MAX) {
    return pestle_parse_error(p, &t, PESTLE_STATUS_MALFORMED,
                              "a line or column does not fit into 32 bits");
  }
  *out = (uint32_t)value;
  return NULL;
}

// :line:column, and a range's end: " to :column" or " to line:column".
static pestle_status_t read_position(pestle_parser_t* p,
                                     pestle_parse_loc_t* loc) {
  uint32_t unused;
  PESTLE_TRY(pestle_parse_expect(p, ':'));
  PESTLE_TRY(read_number(p, &loc->line));
  if (!pestle_parse_take(p, ':')) return NULL;
  PESTLE_TRY(read_number(p, &loc->column));
  if (!pestle_parse_take_word(p, "to")) return NULL;
  if (!pestle_parse_at(p, ':')) PESTLE_TRY(read_number(p, &unused));
  PESTLE_TRY(pestle_parse_expect(p, ':'));
  return read_number(p, &unused);
}

// "name", "name"(loc), "file":1:2
static pestle_status_t read_named(pestle_parser_t* p, pestle_parse_loc_t* loc) {
  pestle_str_t text;
  PESTLE_TRY(pestle_parse_string(p, &p->kept, &text));
  if (pestle_parse_at(p, ':')) {
    loc->file = text;
    return read_position(p, loc);
  }
  loc->name = text;
  if (!pestle_parse_take(p, '(')) return NULL;
  pestle_parse_loc_t child;
  PESTLE_TRY(read_body(p, &child));
  merge(loc, &child);
  return pestle_parse_expect(p, ')');
}

static pestle_status_t read_callsite(pestle_parser_t* p,
                                     pestle_parse_loc_t* loc) {
  pestle_parse_loc_t caller;
  PESTLE_TRY(pestle_parse_expect(p, '('));
  PESTLE_TRY(read_body(p, loc));
  PESTLE_TRY(pestle_parse_expect_word(p, "at"));
  PESTLE_TRY(read_body(p, &caller));
  if (is_empty(loc)) *loc = caller;
  return pestle_parse_expect(p, ')');
}

// fused<metadata>["a", #b]
static pestle_status_t read_fused(pestle_parser_t* p, pestle_parse_loc_t* loc) {
  if (pestle_parse_at(p, '<')) PESTLE_TRY(pestle_parse_skip_brackets(p, true));
  PESTLE_TRY(pestle_parse_expect(p, '['));
  if (pestle_parse_take(p, ']')) return NULL;
  do {
    pestle_parse_loc_t part;
    PESTLE_TRY(read_body(p, &part));
    merge(loc, &part);
  } while (pestle_parse_take(p, ','));
  return pestle_parse_expect(p, ']');
}

static pestle_status_t read_any(pestle_parser_t* p, pestle_parse_loc_t* loc) {
  if (pestle_parse_at_kind(p, PESTLE_TOKEN_STRING)) return read_named(p, loc);
  if (pestle_parse_at_kind(p, PESTLE_TOKEN_HASH)) {
    loc->alias = pestle_parse_token(p)->text;
    pestle_parse_advance(p);
    return NULL;
  }
  if (pestle_parse_take_word(p, "unknown")) return NULL;
  if (pestle_parse_take_word(p, "callsite")) return read_callsite(p, loc);
  if (pestle_parse_take_word(p, "fused")) return read_fused(p, loc);
  if (pestle_parse_at_word(p, "loc")) {
    bool found;
    return pestle_parse_loc(p, loc, &found);
  }
  return pestle_parse_expected(p, "a location");
}

static pestle_status_t read_body(pestle_parser_t* p, pestle_parse_loc_t* loc) {
  *loc = (pestle_parse_loc_t){0};
  PESTLE_TRY(pestle_parse_enter(p));
  PESTLE_TRY(read_any(p, loc));
  pestle_parse_leave(p);
  return NULL;
}

pestle_status_t pestle_parse_loc(pestle_parser_t* p,
                                 pestle_parse_loc_t* out_loc, bool* out_found) {
  *out_loc = (pestle_parse_loc_t){0};
  *out_found = pestle_parse_take_word(p, "loc");
  if (!*out_found) return NULL;
  PESTLE_TRY(pestle_parse_expect(p, '('));
  PESTLE_TRY(read_body(p, out_loc));
  return pestle_parse_expect(p, ')');
}

pestle_status_t pestle_parse_skip_loc(pestle_parser_t* p) {
  pestle_parse_loc_t loc;
  bool found;
  return pestle_parse_loc(p, &loc, &found);
}

pestle_status_t pestle_parse_node_loc(pestle_parser_t* p, pestle_node_t* node) {
  pestle_parse_fixup_t fixup = {.node = node};
  bool found;
  PESTLE_TRY(pestle_parse_loc(p, &fixup.loc, &found));
  if (found && !pestle_vec_push(&p->fixups, fixup)) return PESTLE_OOM();
  return NULL;
}

// An attribute or a type, which is read where it is used.
static pestle_status_t keep_alias(pestle_parser_t* p,
                                  const pestle_token_t* name) {
  pestle_lexer_t* start = PESTLE_ARENA_NEW(&p->kept, pestle_lexer_t);
  if (!start) return PESTLE_OOM();
  *start = p->lexer;
  if (!pestle_map_set_str_ptr(&p->words, name->whole, start)) {
    return PESTLE_OOM();
  }
  if (name->kind == PESTLE_TOKEN_BANG) {
    pestle_parse_types_t types = {0};
    // An element type, which is read where it is one.
    if (pestle_parse_at_kind(p, PESTLE_TOKEN_BANG) &&
        pestle_str_starts_with(pestle_parse_token(p)->text,
                               PESTLE_STR("quant."))) {
      pestle_parse_advance(p);
      return pestle_parse_at(p, '<') ? pestle_parse_skip_brackets(p, true)
                                     : NULL;
    }
    return pestle_parse_type_form(p, &types);
  }
  pestle_generic_value_t value;
  return pestle_parse_value(p, &value);
}

bool pestle_parse_enter_alias(pestle_parser_t* p, pestle_lexer_t* out_back) {
  const pestle_token_t* t = pestle_parse_token(p);
  if (t->kind != PESTLE_TOKEN_BANG && t->kind != PESTLE_TOKEN_HASH)
    return false;
  const pestle_map_value_t* found = pestle_map_find_str(&p->words, t->whole);
  // What comes before its alias must not lead back to itself.
  const pestle_lexer_t* to = found ? found->ptr : NULL;
  if (!to || to->cursor >= p->lexer.cursor) return false;
  pestle_parse_advance(p);
  *out_back = p->lexer;
  p->lexer = *to;
  return true;
}

pestle_status_t pestle_parse_alias(pestle_parser_t* p) {
  pestle_token_t name = *pestle_parse_token(p);
  pestle_parse_advance(p);
  PESTLE_TRY(pestle_parse_expect(p, '='));
  if (!pestle_parse_at_word(p, "loc")) return keep_alias(p, &name);
  bool found;
  pestle_parse_loc_t* loc = PESTLE_ARENA_NEW(&p->kept, pestle_parse_loc_t);
  if (!loc) return PESTLE_OOM();
  PESTLE_TRY(pestle_parse_loc(p, loc, &found));
  if (!pestle_map_set_str_ptr(&p->aliases, name.text, loc)) {
    return PESTLE_OOM();
  }
  return NULL;
}

// Follows aliases; a chain that does not end is damaged text and ends here.
static void resolve(const pestle_parser_t* p, pestle_parse_loc_t* loc) {
  for (int hops = 0; loc->alias.size && hops < 100; ++hops) {
    const pestle_map_value_t* found =
        pestle_map_find_str(&p->aliases, loc->alias);
    loc->alias = (pestle_str_t){0};
    if (found) merge(loc, found->ptr);
  }
}

static pestle_status_t intern(pestle_parser_t* p, pestle_str_t text,
                              const char** out_text) {
  *out_text = NULL;
  if (!text.size) return NULL;
  // Strings of the arenas are terminated.
  *out_text = pestle_module_intern_string(p->module, text.data);
  return *out_text ? NULL : PESTLE_OOM();
}

pestle_status_t pestle_parse_resolve_locs(pestle_parser_t* p) {
  for (size_t i = 0; i < p->fixups.size; ++i) {
    pestle_parse_fixup_t* fixup = &p->fixups.data[i];
    pestle_parse_loc_t* loc = &fixup->loc;
    resolve(p, loc);
    pestle_loc_t* out = &fixup->node->loc;
    *out = (pestle_loc_t){.line = loc->line, .column = loc->column};
    PESTLE_TRY(intern(p, loc->name, &out->name));
    PESTLE_TRY(intern(p, loc->file, &out->file));
  }
  return NULL;
}
