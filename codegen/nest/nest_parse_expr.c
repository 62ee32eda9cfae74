// SPDX-License-Identifier: Apache-2.0
// Reads the index forms and expressions of a nest's text, for nest_parse.c.
#include <string.h>

#include "codegen/nest/nest_parse_internal.h"

enum {
  MAX_NESTING = 64,
  MAX_HEIGHT = 2000,  // walks over expressions recurse
  MAX_LABELS = 1 << 16,
  MAX_TERMS = 64,
};

bool pestle_nest_parse_dtype(pestle_str_t name, pestle_dtype_t* out_dtype) {
  for (unsigned d = 1; d < PESTLE_DTYPE_COUNT; ++d) {
    *out_dtype = (pestle_dtype_t)d;
    if (pestle_str_equal_c(name, pestle_dtype_info(*out_dtype)->name)) {
      return true;
    }
  }
  return false;
}

bool pestle_nest_parse_op(const char* name, pestle_op_t* out_op) {
  for (unsigned i = 0; i < PESTLE_SCALAR_COUNT; ++i) {
    *out_op = (pestle_op_t)i;
    if (!strcmp(pestle_op_info(*out_op)->name, name)) return true;
  }
  return false;
}

static pestle_status_t enter(pestle_nest_parser_t* p) {
  if (++p->nesting <= MAX_NESTING) return NULL;
  return pestle_lex_error(&p->s,
                          "expected at most %d levels; bind a part to "
                          "a %%N first",
                          MAX_NESTING);
}

static bool at_digit(pestle_nest_parser_t* p) {
  char c = pestle_lex_peek(&p->s);
  return c >= '0' && c <= '9';
}

// --- Index forms ---

// "(affine)/4", "(affine)%4", after the parenthesis.
static pestle_status_t parse_quotient(pestle_nest_parser_t* p,
                                      pestle_atom_t* out) {
  PESTLE_TRY(pestle_nest_parse_affine(p, &out->affine));
  PESTLE_TRY(pestle_lex_expect(&p->s, ')'));
  out->kind = PESTLE_ATOM_DIV;
  if (!pestle_lex_accept(&p->s, '/')) {
    out->kind = PESTLE_ATOM_MOD;
    if (!pestle_lex_accept(&p->s, '%')) {
      return pestle_lex_error(&p->s, "expected '/' or '%%'");
    }
  }
  return pestle_lex_int(&p->s, 1, PESTLE_NEST_LARGEST, &out->divisor);
}

// "{expression in 0..8}", after the brace.
static pestle_status_t parse_value(pestle_nest_parser_t* p,
                                   pestle_atom_t* out) {
  out->kind = PESTLE_ATOM_VALUE;
  PESTLE_TRY(pestle_nest_parse_expr(p, &out->value));
  PESTLE_TRY(pestle_lex_expect_word(&p->s, "in"));
  PESTLE_TRY(pestle_lex_int(&p->s, -INT64_MAX, INT64_MAX, &out->lo));
  PESTLE_TRY(pestle_lex_expect(&p->s, '.'));
  PESTLE_TRY(pestle_lex_expect(&p->s, '.'));
  PESTLE_TRY(pestle_lex_int(&p->s, -INT64_MAX, INT64_MAX, &out->hi));
  return pestle_lex_expect(&p->s, '}');
}

static pestle_status_t parse_atom(pestle_nest_parser_t* p,
                                  const pestle_atom_t** out) {
  pestle_atom_t atom = {.kind = PESTLE_ATOM_AXIS};
  *out = NULL;
  if (pestle_lex_accept(&p->s, '(')) {
    PESTLE_TRY(parse_quotient(p, &atom));
  } else if (pestle_lex_accept(&p->s, '{')) {
    PESTLE_TRY(parse_value(p, &atom));
  } else {
    const char* name;
    PESTLE_TRY(pestle_lex_name(&p->s, "an axis", &name));
    int32_t axis = pestle_nest_find_axis(p->nest, p->stage, name);
    if (axis < 0) {
      return pestle_lex_error(&p->s, "expected an axis of the stage, not '%s'",
                              name);
    }
    atom.axis = (uint32_t)axis;
  }
  *out = pestle_affine_atom(p->nest, atom);
  return *out ? NULL : PESTLE_OOM();
}

typedef struct sum_t {
  int64_t constant;
  bool has_constant;
  pestle_term_t terms[MAX_TERMS];
  uint32_t count;
} sum_t;

static pestle_status_t add_term(pestle_nest_parser_t* p, sum_t* sum,
                                int64_t coef) {
  const pestle_atom_t* atom;
  PESTLE_TRY(parse_atom(p, &atom));
  bool twice = false;
  for (uint32_t i = 0; i < sum->count; ++i) {
    twice = twice || sum->terms[i].atom == atom;
  }
  if (twice || !coef || sum->count == MAX_TERMS) {
    return pestle_lex_error(&p->s,
                            "expected at most %d terms, each once and "
                            "not 0 times",
                            MAX_TERMS);
  }
  sum->terms[sum->count++] = (pestle_term_t){coef, atom};
  return NULL;
}

static pestle_status_t parse_term(pestle_nest_parser_t* p, sum_t* sum,
                                  bool negative) {
  if (!at_digit(p)) return add_term(p, sum, negative ? -1 : 1);
  int64_t value;
  PESTLE_TRY(pestle_lex_int(&p->s, 0, INT64_MAX, &value));
  if (negative) value = -value;
  if (pestle_lex_accept(&p->s, '*')) return add_term(p, sum, value);
  if (sum->has_constant) {
    return pestle_lex_error(&p->s, "expected one constant");
  }
  sum->has_constant = true;
  sum->constant = value;
  return NULL;
}

pestle_status_t pestle_nest_parse_affine(pestle_nest_parser_t* p,
                                         const pestle_affine_t** out_affine) {
  sum_t sum = {.count = 0};
  uint32_t height = 0;
  *out_affine = NULL;
  PESTLE_TRY(enter(p));
  bool negative = pestle_lex_accept(&p->s, '-');
  for (;;) {
    p->height = 0;
    PESTLE_TRY(parse_term(p, &sum, negative));
    if (p->height > height) height = p->height;
    negative = pestle_lex_peek(&p->s) == '-';
    if (!negative && pestle_lex_peek(&p->s) != '+') break;
    ++p->s.at;
  }
  --p->nesting;
  p->height = height;
  *out_affine = pestle_affine_make(p->nest, sum.constant, sum.terms, sum.count);
  return pestle_nest_status(p->nest);
}

// --- Expressions ---

static pestle_status_t make(pestle_nest_parser_t* p, pestle_expr_t from,
                            const pestle_expr_t** out) {
  pestle_expr_t* e = pestle_expr_make(p->nest, (pestle_expr_kind_t)from.kind,
                                      (pestle_dtype_t)from.dtype);
  PESTLE_TRY(pestle_nest_status(p->nest));
  from.id = e->id;
  *e = from;
  *out = e;
  return NULL;
}

// "words 4 by STEP of LIN below LIMIT", after the first word.
static pestle_status_t parse_packed(pestle_nest_parser_t* p, pestle_expr_t* e) {
  int64_t packed;
  PESTLE_TRY(pestle_lex_int(&p->s, 2, 4, &packed));
  PESTLE_TRY(pestle_lex_expect_word(&p->s, "by"));
  PESTLE_TRY(pestle_lex_int(&p->s, -INT64_MAX, INT64_MAX, &e->lo));
  PESTLE_TRY(pestle_lex_expect_word(&p->s, "of"));
  PESTLE_TRY(pestle_nest_parse_affine(p, &e->affine));
  PESTLE_TRY(pestle_lex_expect_word(&p->s, "below"));
  PESTLE_TRY(pestle_lex_int(&p->s, 1, INT64_MAX, &e->hi));
  e->packed = (uint8_t)packed;
  e->dtype = PESTLE_I32;
  return NULL;
}

static pestle_status_t parse_read(pestle_nest_parser_t* p, const char* name,
                                  const pestle_expr_t** out) {
  pestle_expr_t e = {.kind = PESTLE_EXPR_READ};
  e.i = pestle_nest_find_tensor(p->nest, name);
  if (e.i < 0) {
    return pestle_lex_error(&p->s, "expected a tensor, not '%s'", name);
  }
  e.dtype = (uint8_t)p->nest->tensors.data[e.i].type.dtype;
  const pestle_affine_t** index = PESTLE_ARENA_ARRAY(
      p->nest->arena, const pestle_affine_t*, PESTLE_MAX_RANK);
  if (!index) return PESTLE_OOM();
  e.index = index;
  uint32_t height = 0;
  PESTLE_TRY(pestle_lex_expect(&p->s, '['));
  while (!pestle_lex_accept(&p->s, ']')) {
    if (e.index_count) PESTLE_TRY(pestle_lex_expect(&p->s, ','));
    if (e.index_count == PESTLE_MAX_RANK) {
      return pestle_lex_error(&p->s, "expected at most %d indices",
                              PESTLE_MAX_RANK);
    }
    PESTLE_TRY(pestle_nest_parse_affine(p, &index[e.index_count++]));
    if (p->height > height) height = p->height;
  }
  if (pestle_lex_accept_word(&p->s, "packed")) {
    PESTLE_TRY(parse_packed(p, &e));
    if (p->height > height) height = p->height;
  }
  p->height = 0;
  if (pestle_lex_accept_word(&p->s, "if")) {
    PESTLE_TRY(pestle_nest_parse_expr(p, &e.guard));
  }
  if (height > p->height) p->height = height;
  return make(p, e, out);
}

static pestle_status_t parse_const(pestle_nest_parser_t* p,
                                   pestle_dtype_t dtype,
                                   const pestle_expr_t** out) {
  pestle_expr_t e = {.kind = PESTLE_EXPR_CONST, .dtype = (uint8_t)dtype};
  pestle_str_t text = pestle_lex_number(&p->s);
  uint64_t bits;
  bool ok;
  p->height = 0;
  if (!pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    ok = pestle_str_parse_i64(text, &e.i);
  } else if (pestle_str_starts_with(text, PESTLE_STR("0x"))) {
    ok = pestle_str_parse_u64(text, &bits);
    if (ok) memcpy(&e.f, &bits, sizeof(bits));
  } else {
    ok = pestle_str_parse_f64(text, &e.f);
  }
  return ok ? make(p, e, out)
            : pestle_lex_error(&p->s, "expected a number of type %s",
                               pestle_dtype_info(dtype)->name);
}

// Up to three operands and ')'.
static pestle_status_t parse_args(pestle_nest_parser_t* p, pestle_expr_t* e,
                                  uint32_t least, uint32_t most) {
  uint32_t count = 0, height = 0;
  while (!pestle_lex_accept(&p->s, ')')) {
    if (count) PESTLE_TRY(pestle_lex_expect(&p->s, ','));
    if (count == most) {
      return pestle_lex_error(&p->s, "expected %u operands", most);
    }
    PESTLE_TRY(pestle_nest_parse_expr(p, &e->args[count++]));
    if (p->height > height) height = p->height;
  }
  p->height = height;
  if (count >= least) return NULL;
  return pestle_lex_error(&p->s, "expected %u operands", least);
}

static pestle_status_t parse_inside(pestle_nest_parser_t* p,
                                    const pestle_expr_t** out) {
  pestle_expr_t e = {.kind = PESTLE_EXPR_INSIDE, .dtype = PESTLE_I1};
  PESTLE_TRY(pestle_nest_parse_affine(p, &e.affine));
  PESTLE_TRY(pestle_lex_expect(&p->s, ','));
  PESTLE_TRY(pestle_lex_int(&p->s, INT64_MIN, INT64_MAX, &e.lo));
  PESTLE_TRY(pestle_lex_expect(&p->s, ','));
  PESTLE_TRY(pestle_lex_int(&p->s, INT64_MIN, INT64_MAX, &e.hi));
  PESTLE_TRY(pestle_lex_expect(&p->s, ')'));
  return make(p, e, out);
}

static pestle_status_t parse_op(pestle_nest_parser_t* p, const char* name,
                                bool typed, pestle_expr_t e,
                                const pestle_expr_t** out) {
  pestle_op_t op;
  if (!pestle_nest_parse_op(name, &op)) {
    return pestle_lex_error(&p->s, "expected an operation, not '%s'", name);
  }
  uint32_t arity = pestle_op_info(op)->operands;
  if (arity < 1 || arity > 3) arity = 3;
  e.kind = PESTLE_EXPR_OP;
  e.op = (uint16_t)op;
  PESTLE_TRY(parse_args(p, &e, arity, arity));
  if (!typed) e.dtype = e.args[arity - 1]->dtype;
  return make(p, e, out);
}

// "name.type(...)", after the name.
static pestle_status_t parse_call(pestle_nest_parser_t* p, const char* name,
                                  const pestle_expr_t** out) {
  pestle_dtype_t dtype = PESTLE_NONE;
  bool typed = pestle_lex_accept(&p->s, '.');
  if (typed && !pestle_nest_parse_dtype(pestle_lex_word(&p->s), &dtype)) {
    return pestle_lex_error(&p->s, "expected a type");
  }
  PESTLE_TRY(pestle_lex_expect(&p->s, '('));
  pestle_expr_t e = {.dtype = (uint8_t)dtype};
  if (!typed) {
    if (!strcmp(name, "inside")) return parse_inside(p, out);
    return parse_op(p, name, false, e, out);
  }
  bool acc = !strcmp(name, "acc");
  if (acc || !strcmp(name, "val")) {
    e.kind = acc ? PESTLE_EXPR_ACC : PESTLE_EXPR_VAL;
    p->height = 0;
    PESTLE_TRY(pestle_lex_int(&p->s, 0, 255, &e.i));
    PESTLE_TRY(pestle_lex_expect(&p->s, ')'));
    return make(p, e, out);
  }
  if (!strcmp(name, "index")) {
    e.kind = PESTLE_EXPR_INDEX;
    PESTLE_TRY(pestle_nest_parse_affine(p, &e.affine));
    PESTLE_TRY(pestle_lex_expect(&p->s, ')'));
    return make(p, e, out);
  }
  static const char* const dots[] = {"dot_uu", "dot_su", "dot_us", "dot_ss",
                                     "dot"};
  for (int64_t i = 0; i < 5; ++i) {
    if (strcmp(name, dots[i])) continue;
    e.kind = PESTLE_EXPR_DOT;
    e.i = i & 3;
    PESTLE_TRY(parse_args(p, &e, 2, 2));
    return make(p, e, out);
  }
  bool cast = !strcmp(name, "cast");
  if (cast || !strcmp(name, "bitcast")) {
    e.kind = cast ? PESTLE_EXPR_CAST : PESTLE_EXPR_BITCAST;
    PESTLE_TRY(parse_args(p, &e, 1, 1));
    return make(p, e, out);
  }
  return parse_op(p, name, true, e, out);
}

static pestle_status_t parse_label(pestle_nest_parser_t* p,
                                   const pestle_expr_t** out) {
  int64_t number;
  PESTLE_TRY(pestle_lex_int(&p->s, 0, INT64_MAX, &number));
  if ((uint64_t)number >= p->labels.size) {
    return pestle_lex_error(&p->s, "expected a %%N that is bound above");
  }
  *out = p->labels.data[number].expr;
  p->height = p->labels.data[number].height;
  return NULL;
}

pestle_status_t pestle_nest_parse_expr(pestle_nest_parser_t* p,
                                       const pestle_expr_t** out) {
  *out = NULL;
  if (pestle_lex_accept(&p->s, '%')) return parse_label(p, out);
  const char* name;
  PESTLE_TRY(enter(p));
  PESTLE_TRY(pestle_lex_name(&p->s, "an operation, tensor or type", &name));
  char next = pestle_lex_peek(&p->s);
  pestle_dtype_t dtype;
  if (next == '[') {
    PESTLE_TRY(parse_read(p, name, out));
  } else if (next != '.' && next != '(' &&
             pestle_nest_parse_dtype(pestle_str(name), &dtype)) {
    PESTLE_TRY(parse_const(p, dtype, out));
  } else {
    PESTLE_TRY(parse_call(p, name, out));
  }
  --p->nesting;
  if (++p->height <= MAX_HEIGHT) return NULL;
  return pestle_lex_error(&p->s, "expected at most %d operations on a path",
                          MAX_HEIGHT);
}

pestle_status_t pestle_nest_parse_binding(pestle_nest_parser_t* p) {
  pestle_nest_label_t label;
  int64_t number;
  PESTLE_TRY(pestle_lex_expect(&p->s, '%'));
  PESTLE_TRY(pestle_lex_int(&p->s, 0, INT64_MAX, &number));
  if ((uint64_t)number != p->labels.size || number >= MAX_LABELS) {
    return pestle_lex_error(&p->s, "expected %%%zu", p->labels.size);
  }
  PESTLE_TRY(pestle_lex_expect(&p->s, '='));
  PESTLE_TRY(pestle_nest_parse_expr(p, &label.expr));
  label.height = p->height;
  return pestle_vec_push(&p->labels, label) ? NULL : PESTLE_OOM();
}
