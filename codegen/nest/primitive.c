// SPDX-License-Identifier: Apache-2.0
#include "codegen/nest/primitive.h"

#include <stdio.h>
#include <string.h>

#include "codegen/nest/lex.h"

typedef struct prim_t {
  const char* word;
  const char* form;
} prim_t;

static const prim_t prims[PESTLE_PRIM_TEMPLATE] = {
#define PESTLE_PRIM_ROW_(NAME, word, form) {word, form},
    PESTLE_PRIMS(PESTLE_PRIM_ROW_)
#undef PESTLE_PRIM_ROW_
};

static prim_t prim_of(const pestle_primitive_t* primitive) {
  const pestle_template_t* t = primitive->template;
  return primitive->prim == PESTLE_PRIM_TEMPLATE ? (prim_t){t->name, t->form}
                                                 : prims[primitive->prim];
}

// The word at |*at|, which is within "[a|b]" of a form; |*at| becomes what is behind it.
static pestle_str_t next_choice(const char** at) {
  size_t size = strcspn(*at, "|]");
  pestle_str_t word = {*at, size};
  *at += size + ((*at)[size] == '|');
  return word;
}

// By pestle_scope_t; the primitive store puts results in these alone.
static const char* const scopes[] = {NULL, "private", "shared", "lanes"};
enum { SCOPE_COUNT = sizeof(scopes) / sizeof(scopes[0]) };

// What loops are bound to, in the order of pestle_mark_t from GROUP on.
static const char* const axes[] = {"group.x", "lane.x", "lane.y"};
enum { AXIS_COUNT = sizeof(axes) / sizeof(axes[0]) };

// --- Printing ---

typedef struct printer_t {
  const pestle_primitive_t* primitive;
  pestle_strbuf_t* out;
  uint32_t name, integer;  // the next ones
} printer_t;

static void print_name(printer_t* p) {
  if (p->name < p->primitive->name_count) {
    pestle_strbuf_append_c(p->out, p->primitive->names[p->name++]);
  }
}

static void print_rest(printer_t* p) {
  bool first = true;
  while (p->name < p->primitive->name_count) {
    if (!first) pestle_strbuf_append_char(p->out, ' ');
    first = false;
    print_name(p);
  }
}

// "[a|b]"; |*f| is left at its end.
static void print_choice(printer_t* p, const char** f) {
  int64_t choice = p->primitive->ints[p->integer++ % PESTLE_PRIM_INTS];
  for (++*f; **f && **f != ']'; --choice) {
    pestle_str_t word = next_choice(f);
    if (choice != 1) continue;
    pestle_strbuf_append_char(p->out, ' ');
    pestle_strbuf_append_bytes(p->out, word.data, word.size);
  }
}

static void print_field(printer_t* p, char field) {
  const pestle_primitive_t* primitive = p->primitive;
  if (field == 's') {
    pestle_strbuf_append_c(p->out, primitive->stage ? primitive->stage : "");
  } else if (field == 'n') {
    print_name(p);
  } else if (field == '*') {
    print_rest(p);
  } else if (field == '?') {
    if (p->name < primitive->name_count) pestle_strbuf_append_char(p->out, '.');
    print_name(p);
  } else if (field == 'i') {
    pestle_strbuf_append_i64(p->out,
                             primitive->ints[p->integer++ % PESTLE_PRIM_INTS]);
  } else if (field == 'P') {
    int64_t scope = primitive->ints[p->integer++ % PESTLE_PRIM_INTS];
    pestle_strbuf_append_c(
        p->out, scope > 0 && scope < SCOPE_COUNT ? scopes[scope] : "nowhere");
  } else if (field == 'R') {
    bool reassoc = primitive->ints[p->integer++ % PESTLE_PRIM_INTS] != 0;
    if (reassoc) pestle_strbuf_append_c(p->out, " reassoc");
  } else if (field == 'G') {
    pestle_strbuf_append_c(
        p->out,
        axes[primitive->ints[p->integer++ % PESTLE_PRIM_INTS] % AXIS_COUNT]);
  } else if (field == 'E') {
    pestle_strbuf_append_c(p->out, "scratch");
  } else if (field == 'A') {
    pestle_strbuf_append_c(p->out, "at");
  } else if (field == 'B') {
    pestle_strbuf_append_c(p->out, " by");
  } else if (field == 'L') {
    if (p->name < primitive->name_count) {
      pestle_strbuf_append_c(p->out, " like ");
    }
    print_name(p);
  } else if (field == 'M') {
    int64_t share = primitive->ints[p->integer++ % PESTLE_PRIM_INTS];
    if (share) pestle_strbuf_append_c(p->out, " share ");
    if (share) pestle_strbuf_append_i64(p->out, share);
  } else {
    pestle_strbuf_append_char(p->out, field);
  }
}

void pestle_primitive_print(const pestle_primitive_t* primitive,
                            pestle_strbuf_t* out) {
  prim_t prim = prim_of(primitive);
  printer_t p = {.primitive = primitive, .out = out};
  pestle_strbuf_appendf(out, "%s ", prim.word);
  for (const char* f = prim.form; *f; ++f) {
    if (*f == '[') {
      print_choice(&p, &f);
    } else {
      print_field(&p, *f);
    }
  }
}

// --- Parsing ---

typedef struct reader_t {
  pestle_lex_t* s;
  pestle_primitive_t primitive;
  PESTLE_VEC(const char*) names;
} reader_t;

static pestle_status_t read_name(reader_t* r, const char* what) {
  const char* name;
  PESTLE_TRY(pestle_lex_name(r->s, what, &name));
  return pestle_vec_push(&r->names, name) ? NULL : PESTLE_OOM();
}

static pestle_status_t read_scope(reader_t* r) {
  for (int i = 1; i < SCOPE_COUNT; ++i) {
    if (!pestle_lex_accept_word(r->s, scopes[i])) continue;
    r->primitive.ints[r->primitive.int_count++ % PESTLE_PRIM_INTS] = i;
    return NULL;
  }
  return pestle_lex_error(r->s, "expected private, shared or lanes");
}

static pestle_status_t read_axis(reader_t* r) {
  bool group = pestle_lex_accept_word(r->s, "group");
  if (!group && !pestle_lex_accept_word(r->s, "lane")) {
    return pestle_lex_error(r->s, "expected group.x, lane.x or lane.y");
  }
  PESTLE_TRY(pestle_lex_expect(r->s, '.'));
  int64_t axis = group ? 0 : 1;
  if (!group && pestle_lex_accept_word(r->s, "y")) {
    axis = 2;
  } else {
    PESTLE_TRY(pestle_lex_expect_word(r->s, "x"));
  }
  r->primitive.ints[r->primitive.int_count++ % PESTLE_PRIM_INTS] = axis;
  return NULL;
}

static bool at_line_end(reader_t* r) {
  char c = pestle_lex_peek(r->s);
  return c == '\n' || r->s->at >= r->s->size;
}

static pestle_status_t read_field(reader_t* r, char field) {
  if (field == 's') {
    return pestle_lex_name(r->s, "a stage", &r->primitive.stage);
  }
  if (field == 'n') return read_name(r, "a loop, stage or tensor");
  if (field == '*') {
    do {
      PESTLE_TRY(read_name(r, "a loop or stage"));
    } while (!at_line_end(r));
    return NULL;
  }
  if (field == '?') {
    return pestle_lex_accept(r->s, '.') ? read_name(r, "a loop") : NULL;
  }
  if (field == 'i') {
    return pestle_lex_int(
        r->s, INT64_MIN, INT64_MAX,
        &r->primitive.ints[r->primitive.int_count++ % PESTLE_PRIM_INTS]);
  }
  if (field == 'P') return read_scope(r);
  if (field == 'R') {
    r->primitive.ints[r->primitive.int_count++ % PESTLE_PRIM_INTS] =
        pestle_lex_accept_word(r->s, "reassoc");
    return NULL;
  }
  if (field == 'G') {
    return read_axis(r);
  }
  if (field == 'E') return pestle_lex_expect_word(r->s, "scratch");
  if (field == 'A') return pestle_lex_expect_word(r->s, "at");
  if (field == 'B') return pestle_lex_expect_word(r->s, "by");
  if (field == 'L') {
    return pestle_lex_accept_word(r->s, "like") ? read_name(r, "a tensor")
                                                : NULL;
  }
  if (field == 'M') {
    if (!pestle_lex_accept_word(r->s, "share")) return NULL;
    return pestle_lex_int(
        r->s, 1, INT64_MAX,
        &r->primitive.ints[r->primitive.int_count++ % PESTLE_PRIM_INTS]);
  }
  return field == ' ' ? NULL : pestle_lex_expect(r->s, field);
}

static pestle_status_t read_choice(reader_t* r, const char** f) {
  int64_t choice = 0, number = 0;
  for (++*f; **f && **f != ']';) {
    char text[32];
    pestle_str_t word = next_choice(f);
    (void)snprintf(text, sizeof(text), "%.*s", (int)word.size, word.data);
    ++number;
    if (!choice && pestle_lex_accept_word(r->s, text)) choice = number;
  }
  r->primitive.ints[r->primitive.int_count++ % PESTLE_PRIM_INTS] = choice;
  return NULL;
}

const pestle_template_t* pestle_lex_template(pestle_lex_t* lex) {
  const pestle_template_t* t;
  for (uint32_t i = 0; (t = pestle_template_at(i)) != NULL; ++i) {
    if (pestle_lex_accept_word(lex, t->name)) return t;
  }
  return NULL;
}

static pestle_status_t read_prim(reader_t* r) {
  for (int i = 0; i < PESTLE_PRIM_TEMPLATE; ++i) {
    if (!pestle_lex_accept_word(r->s, prims[i].word)) continue;
    r->primitive.prim = (uint8_t)i;
    return NULL;
  }
  r->primitive.template = pestle_lex_template(r->s);
  if (r->primitive.template) {
    r->primitive.prim = PESTLE_PRIM_TEMPLATE;
    return NULL;
  }
  return pestle_lex_error(r->s,
                          "expected a schedule primitive: inline, fuse, "
                          "split, reorder, at, store ...");
}

static pestle_status_t read_primitive(reader_t* r,
                                      pestle_primitives_t* primitives) {
  r->primitive = (pestle_primitive_t){0};
  pestle_vec_clear(&r->names);
  PESTLE_TRY(read_prim(r));
  for (const char* f = prim_of(&r->primitive).form; *f; ++f) {
    PESTLE_TRY(*f == '[' ? read_choice(r, &f) : read_field(r, *f));
  }
  if (!at_line_end(r)) {
    return pestle_lex_error(r->s, "expected the end of the primitive");
  }
  size_t n = r->names.size;
  if (n) {
    r->primitive.names =
        pestle_arena_copy(r->s->arena, r->names.data,
                          n * sizeof(*r->names.data), _Alignof(const char*));
    if (!r->primitive.names) return PESTLE_OOM();
  }
  r->primitive.name_count = (uint32_t)n;
  return pestle_vec_push(primitives, r->primitive) ? NULL : PESTLE_OOM();
}

pestle_status_t pestle_primitives_lex(pestle_lex_t* lex,
                                      pestle_primitives_t* primitives) {
  reader_t r = {.s = lex};
  bool lines = lex->lines;
  pestle_vec_init(&r.names, lex->arena->allocator);
  pestle_status_t status = NULL;
  lex->lines = true;
  while (!status) {
    while (pestle_lex_accept(lex, '\n')) {
    }
    if (lex->at >= lex->size || pestle_lex_peek(lex) == '}') break;
    status = read_primitive(&r, primitives);
  }
  lex->lines = lines;
  pestle_vec_deinit(&r.names);
  return status;
}

pestle_status_t pestle_primitives_parse(pestle_arena_t* arena, const char* text,
                                        size_t size, const char* file,
                                        pestle_primitives_t* primitives) {
  pestle_lex_t lex = {.file = file,
                      .text = text,
                      .size = size,
                      .allocator = arena->allocator,
                      .arena = arena};
  PESTLE_TRY(pestle_primitives_lex(&lex, primitives));
  if (lex.at >= size) return NULL;
  return pestle_lex_error(&lex, "expected a schedule primitive");
}
