// SPDX-License-Identifier: Apache-2.0
#include "base/custom_attrs.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/hex.h"
#include "base/vec.h"

// --- Reading a dictionary ---

enum { MOST_ATTRS = 1024 };
#define MOST_NUMBERS ((size_t)1 << 20)

typedef struct reader_t {
  pestle_arena_t* arena;
  const char *at, *end;
  pestle_str_t name;  // of the attribute at hand
  bool real;          // a number of its list was no integer
  PESTLE_VEC(double) reals;
  PESTLE_VEC(int64_t) whole;
} reader_t;

// Of ASCII, whatever the locale.
static bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_at(const reader_t* r, char c) {
  return r->at < r->end && *r->at == c;
}

static void skip_spaces(reader_t* r) {
  while (r->at < r->end && is_space(*r->at))
    ++r->at;
}

static bool take(reader_t* r, char c) {
  skip_spaces(r);
  if (!is_at(r, c)) return false;
  ++r->at;
  skip_spaces(r);
  return true;
}

static bool take_word(reader_t* r, const char* word) {
  size_t n = strlen(word);
  if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0) return false;
  r->at += n;
  return true;
}

static pestle_status_t bad(const reader_t* r, const char* what) {
  return PESTLE_ERROR(UNSUPPORTED,
                      "attribute '%.*s' %s, which an op of the caller's own "
                      "does not take",
                      r->name.size > 60 ? 60 : (int)r->name.size, r->name.data,
                      what);
}

static bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         c == '_' || c == '.' || c == '$' || c == '-' || c == '+';
}

static pestle_str_t read_word(reader_t* r) {
  const char* begin = r->at;
  while (r->at < r->end && is_word(*r->at))
    ++r->at;
  return pestle_str_make(begin, (size_t)(r->at - begin));
}

// What stands behind a backslash.
static bool read_escape(reader_t* r, char* out) {
  if (r->at + 1 < r->end && pestle_hex_digit(r->at[0]) >= 0 &&
      pestle_hex_digit(r->at[1]) >= 0) {
    *out = (char)(pestle_hex_digit(r->at[0]) * 16 + pestle_hex_digit(r->at[1]));
    r->at += 2;
    return *out != 0;
  }
  if (r->at >= r->end) return false;
  char c = *r->at++;
  *out = c == 'n' ? '\n' : c == 't' ? '\t' : c;
  return c == 'n' || c == 't' || c == '"' || c == '\\';
}

static pestle_status_t read_string(reader_t* r, const char** out) {
  *out = NULL;
  char* text = pestle_arena_alloc(r->arena, (size_t)(r->end - r->at) + 1, 1);
  char* to = text;
  if (!text) return PESTLE_OOM();
  for (++r->at; r->at < r->end && *r->at != '"';) {
    char c = *r->at++;
    if (c == '\\' && !read_escape(r, &c)) return bad(r, "has an odd escape");
    *to++ = c;
  }
  if (r->at >= r->end) return bad(r, "is a text without an end");
  ++r->at;
  *to = 0;
  *out = text;
  return NULL;
}

// The bits of an f32, f64 or integer, as MLIR writes what has no decimal form.
static bool read_bits(reader_t* r, pestle_str_t word, pestle_str_t type,
                      double* out_f, int64_t* out_i, bool* out_real) {
  uint64_t bits;
  if (word.size < 3 || word.data[0] != '0' || word.data[1] != 'x' ||
      !pestle_str_parse_u64(word, &bits)) {
    return false;
  }
  (void)r;
  *out_real = pestle_str_starts_with(type, PESTLE_STR("f")) ||
              pestle_str_starts_with(type, PESTLE_STR("bf"));
  *out_i = (int64_t)bits;
  if (pestle_str_equal_c(type, "f32")) {
    float f;
    uint32_t low = (uint32_t)bits;
    memcpy(&f, &low, sizeof(f));
    *out_f = f;
  } else {
    memcpy(out_f, &bits, sizeof(bits));
  }
  return !*out_real || pestle_str_is_one_of(type, "f32 f64");
}

// A number, and " : type" behind it where |typed|; else of |type|.
static pestle_status_t read_number(reader_t* r, bool typed, pestle_str_t type) {
  pestle_str_t word = read_word(r);
  double f = 0;
  int64_t i = 0;
  bool real = false;
  if (typed && take(r, ':')) type = read_word(r);
  if (!read_bits(r, word, type, &f, &i, &real)) {
    if (pestle_str_is_one_of(word, "true false")) {
      i = word.data[0] == 't';
    } else if (!pestle_str_parse_i64(word, &i)) {
      real = true;
      if (!word.size || !pestle_str_parse_f64(word, &f)) {
        return bad(r, "has a value of another form");
      }
    }
  }
  if (!real) f = (double)i;
  r->real = r->real || real;
  if (r->whole.size >= MOST_NUMBERS) return bad(r, "has too many numbers");
  if (!pestle_vec_push(&r->reals, f) || !pestle_vec_push(&r->whole, i)) {
    return PESTLE_OOM();
  }
  return NULL;
}

// Numbers up to |close|, lists of them within, as rows of dense<..> are.
static pestle_status_t read_numbers(reader_t* r, char close, bool typed,
                                    pestle_str_t type, int depth) {
  if (take(r, close)) return NULL;
  do {
    skip_spaces(r);
    if (is_at(r, '[')) {
      ++r->at;
      if (depth > 8) return bad(r, "is a list of lists of lists");
      PESTLE_TRY(read_numbers(r, ']', typed, type, depth + 1));
    } else {
      PESTLE_TRY(read_number(r, typed, type));
    }
  } while (take(r, ','));
  return take(r, close) ? NULL : bad(r, "is a list without an end");
}

static pestle_status_t keep_numbers(reader_t* r,
                                    pestle_custom_attr_value_t* out) {
  size_t n = r->whole.size;
  const void* data = r->real ? (const void*)r->reals.data : r->whole.data;
  void* kept = pestle_arena_alloc_array(r->arena, n + 1, 8, 8);
  if (!kept) return PESTLE_OOM();
  if (n) memcpy(kept, data, n * 8);
  out->kind = r->real ? PESTLE_CUSTOM_F64S : PESTLE_CUSTOM_I64S;
  if (r->real) {
    out->as.f64s = (pestle_f64s_t){kept, n};
  } else {
    out->as.i64s = (pestle_i64s_t){kept, n};
  }
  return NULL;
}

// " : tensor<4xf32>": one number stands for as many.
static pestle_status_t read_tensor(reader_t* r) {
  if (!take(r, ':') || !take_word(r, "tensor<")) {
    return bad(r, "is a dense<> without a type");
  }
  size_t count = 1;
  while (r->at < r->end && is_digit(*r->at)) {
    size_t dim = 0;
    while (r->at < r->end && is_digit(*r->at)) {
      dim = dim * 10 + (size_t)(*r->at++ - '0');
      if (dim > MOST_NUMBERS) return bad(r, "has too many numbers");
    }
    if (!is_at(r, 'x')) return bad(r, "has an odd type");
    ++r->at;
    count *= dim;
    if (count > MOST_NUMBERS) return bad(r, "has too many numbers");
  }
  pestle_str_t type = read_word(r);
  if (type.size && (type.data[0] == 'f' || type.data[0] == 'b')) r->real = true;
  if (!take(r, '>')) return bad(r, "has an odd type");
  if (r->whole.size == count) return NULL;
  if (r->whole.size != 1) return bad(r, "has not as many numbers as its type");
  double f = r->reals.data[0];
  int64_t i = r->whole.data[0];
  r->reals.size = r->whole.size = 0;
  while (r->whole.size < count) {
    if (!pestle_vec_push(&r->reals, f) || !pestle_vec_push(&r->whole, i)) {
      return PESTLE_OOM();
    }
  }
  return NULL;
}

static pestle_status_t read_value(reader_t* r,
                                  pestle_custom_attr_value_t* out) {
  r->real = false;
  r->reals.size = r->whole.size = 0;
  skip_spaces(r);
  if (is_at(r, '"')) {
    out->kind = PESTLE_CUSTOM_STR;
    return read_string(r, &out->as.str);
  }
  if (take_word(r, "array<")) {
    pestle_str_t type = read_word(r);
    r->real = type.size && (type.data[0] == 'f' || type.data[0] == 'b');
    if (!take(r, ':')) {
      if (!take(r, '>')) return bad(r, "is a list of another form");
    } else {
      PESTLE_TRY(read_numbers(r, '>', false, type, 0));
    }
    return keep_numbers(r, out);
  }
  if (take_word(r, "dense<")) {
    PESTLE_TRY(read_numbers(r, '>', false, PESTLE_STR(""), 0));
    PESTLE_TRY(read_tensor(r));
    return keep_numbers(r, out);
  }
  if (take(r, '[')) {
    PESTLE_TRY(read_numbers(r, ']', true, PESTLE_STR(""), 0));
    return keep_numbers(r, out);
  }
  bool boolean = is_at(r, 't') || is_at(r, 'f');
  PESTLE_TRY(read_number(r, true, PESTLE_STR("")));
  out->kind = boolean   ? PESTLE_CUSTOM_BOOL
              : r->real ? PESTLE_CUSTOM_F64
                        : PESTLE_CUSTOM_I64;
  if (boolean) {
    out->as.b = r->whole.data[0] != 0;
  } else if (r->real) {
    out->as.f64 = r->reals.data[0];
  } else {
    out->as.i64 = r->whole.data[0];
  }
  return NULL;
}

static pestle_status_t read_entry(reader_t* r,
                                  pestle_custom_attr_value_t* out) {
  *out = (pestle_custom_attr_value_t){.kind = PESTLE_CUSTOM_BOOL, .as.b = true};
  r->name = PESTLE_STR("");
  if (is_at(r, '"')) {
    PESTLE_TRY(read_string(r, &out->name));
  } else {
    out->name = pestle_arena_strndup(r->arena, read_word(r));
  }
  if (!out->name) return PESTLE_OOM();
  r->name = pestle_str(out->name);
  if (!*out->name) return bad(r, "has no name");
  return take(r, '=') ? read_value(r, out) : NULL;  // a unit attribute
}

static pestle_status_t read_all(reader_t* r,
                                pestle_custom_attr_value_t** out_values,
                                size_t* out_count) {
  PESTLE_VEC(pestle_custom_attr_value_t) list;
  pestle_vec_init(&list, r->arena->allocator);
  pestle_status_t status = NULL;
  bool more = take(r, '{') && !take(r, '}');
  while (more && !status) {
    pestle_custom_attr_value_t value;
    status = read_entry(r, &value);
    if (!status && list.size >= MOST_ATTRS) status = bad(r, "is one too many");
    if (!status && !pestle_vec_push(&list, value)) status = PESTLE_OOM();
    more = take(r, ',');
    if (!status && !more && !take(r, '}')) {
      status = bad(r, "has a value of another form");
    }
  }
  skip_spaces(r);
  if (!status && r->at < r->end) {
    status = PESTLE_ERROR(MALFORMED, "attributes are not a dictionary");
  }
  if (!status) {
    *out_count = list.size;
    *out_values =
        PESTLE_ARENA_ARRAY(r->arena, pestle_custom_attr_value_t, list.size + 1);
    if (!*out_values) status = PESTLE_OOM();
  }
  if (!status && list.size) {
    memcpy(*out_values, list.data, list.size * sizeof(*list.data));
  }
  pestle_vec_deinit(&list);
  return status;
}

pestle_status_t pestle_custom_attrs_read(
    pestle_arena_t* arena, pestle_str_t text,
    pestle_custom_attr_value_t** out_values, size_t* out_count) {
  reader_t r = {.arena = arena, .at = text.data, .end = text.data + text.size};
  pestle_vec_init(&r.reals, arena->allocator);
  pestle_vec_init(&r.whole, arena->allocator);
  *out_values = NULL;
  *out_count = 0;
  pestle_status_t status =
      text.size ? read_all(&r, out_values, out_count) : NULL;
  pestle_vec_deinit(&r.reals);
  pestle_vec_deinit(&r.whole);
  return status;
}

// --- As a table declares them ---

static const char* kind_name(int32_t kind) {
  static const char* const names[] = {"BOOL", "I64",  "F64",
                                      "STR",  "I64S", "F64S"};
  return (uint32_t)kind < 6 ? names[kind] : "of no known kind";
}

pestle_status_t pestle_custom_value_copy(pestle_arena_t* arena,
                                         pestle_custom_attr_value_t* value) {
  void* copy = NULL;
  value->name = pestle_arena_strdup(arena, value->name);
  if (!value->name) return PESTLE_OOM();
  switch ((pestle_custom_kind_t)value->kind) {
    case PESTLE_CUSTOM_BOOL:
    case PESTLE_CUSTOM_I64:
    case PESTLE_CUSTOM_F64:
      return NULL;
    case PESTLE_CUSTOM_STR:
      value->as.str =
          pestle_arena_strdup(arena, value->as.str ? value->as.str : "");
      return value->as.str ? NULL : PESTLE_OOM();
    case PESTLE_CUSTOM_I64S:
      copy = pestle_arena_copy(arena, value->as.i64s.data,
                               value->as.i64s.count * sizeof(int64_t), 8);
      value->as.i64s.data = copy;
      return copy ? NULL : PESTLE_OOM();
    case PESTLE_CUSTOM_F64S:
      copy = pestle_arena_copy(arena, value->as.f64s.data,
                               value->as.f64s.count * sizeof(double), 8);
      value->as.f64s.data = copy;
      return copy ? NULL : PESTLE_OOM();
  }
  return PESTLE_ERROR(INVALID_ARGUMENT, "attribute '%.60s' is %s", value->name,
                      kind_name(value->kind));
}

// |value| as |kind|: integers are numbers too, and an empty list is of either kind.
static bool convert(pestle_arena_t* arena, int32_t kind,
                    pestle_custom_attr_value_t* value) {
  if (value->kind == kind) return true;
  if (kind == PESTLE_CUSTOM_F64 && value->kind == PESTLE_CUSTOM_I64) {
    value->as.f64 = (double)value->as.i64;
    value->kind = kind;
    return true;
  }
  if (kind == PESTLE_CUSTOM_I64S && value->kind == PESTLE_CUSTOM_F64S &&
      !value->as.f64s.count) {
    value->as.i64s = (pestle_i64s_t){NULL, 0};
    value->kind = kind;
    return true;
  }
  if (kind != PESTLE_CUSTOM_F64S || value->kind != PESTLE_CUSTOM_I64S) {
    return false;
  }
  pestle_i64s_t from = value->as.i64s;
  double* to = PESTLE_ARENA_ARRAY(arena, double, from.count + 1);
  if (!to) return false;
  for (size_t i = 0; i < from.count; ++i)
    to[i] = (double)from.data[i];
  value->as.f64s = (pestle_f64s_t){to, from.count};
  value->kind = kind;
  return true;
}

static const pestle_custom_attr_value_t* find(
    const pestle_custom_attr_value_t* values, size_t count, const char* name) {
  for (size_t i = 0; i < count; ++i) {
    if (values[i].name && !strcmp(values[i].name, name)) return &values[i];
  }
  return NULL;
}

static pestle_status_t check_known(const pestle_custom_op_t* op,
                                   const pestle_custom_attr_value_t* values,
                                   size_t count) {
  for (size_t i = 0; i < count; ++i) {
    size_t row = 0;
    if (!values[i].name) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "attribute %zu of op '%s' has no name", i, op->name);
    }
    while (row < op->attr_count &&
           strcmp(op->attrs[row]->name, values[i].name) != 0)
      ++row;
    if (row == op->attr_count) {
      return PESTLE_ERROR(INVALID_ARGUMENT, "op '%s' has no attribute '%.60s'",
                          op->name, values[i].name);
    }
    if (find(values, i, values[i].name)) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "attribute '%.60s' of op '%s' is given twice",
                          values[i].name, op->name);
    }
  }
  return NULL;
}

pestle_status_t pestle_custom_attrs_make(
    pestle_arena_t* arena, const pestle_custom_op_t* op,
    const pestle_custom_attr_value_t* values, size_t count,
    const pestle_custom_attrs_t** out_attrs) {
  pestle_custom_attrs_t* attrs = PESTLE_ARENA_NEW(arena, pestle_custom_attrs_t);
  pestle_custom_attr_value_t* own =
      PESTLE_ARENA_ARRAY(arena, pestle_custom_attr_value_t, op->attr_count + 1);
  *out_attrs = NULL;
  if (!attrs || !own) return PESTLE_OOM();
  PESTLE_TRY(check_known(op, values, count));
  size_t made = 0;
  for (size_t i = 0; i < op->attr_count; ++i) {
    const pestle_custom_attr_t* row = op->attrs[i];
    if (row->dynamic) continue;
    const pestle_custom_attr_value_t* given = find(values, count, row->name);
    if (!given) given = row->otherwise;
    if (!given) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "op '%s' needs attribute '%s', of kind %s", op->name,
                          row->name, kind_name(row->kind));
    }
    pestle_custom_attr_value_t* value = &own[made++];
    *value = *given;
    value->name = row->name;
    if (given->kind == (int32_t)PESTLE_CUSTOM_VALUE ||
        given->kind == (int32_t)PESTLE_CUSTOM_ARRAY) {
      return PESTLE_ERROR(
          INVALID_ARGUMENT,
          "attribute '%s' of op '%s' is a tensor: this takes a number that is "
          "known, "
          "of kind %s; declare it dynamic, or make it an operand",
          row->name, op->name, kind_name(row->kind));
    }
    if (!convert(arena, row->kind, value)) {
      return PESTLE_ERROR(
          INVALID_ARGUMENT, "attribute '%s' of op '%s' is %s, not %s",
          row->name, op->name, kind_name(given->kind), kind_name(row->kind));
    }
    PESTLE_TRY(pestle_custom_value_copy(arena, value));
  }
  *attrs = (pestle_custom_attrs_t){own, made};
  *out_attrs = attrs;
  return NULL;
}

size_t pestle_custom_dynamic_count(const pestle_custom_op_t* op) {
  size_t count = 0;
  for (size_t i = 0; i < op->attr_count; ++i)
    count += op->attrs[i]->dynamic;
  return count;
}

pestle_status_t pestle_custom_dynamic(const pestle_custom_op_t* op,
                                      const pestle_custom_attr_value_t* values,
                                      size_t count, int32_t given,
                                      pestle_custom_attr_value_t* out) {
  size_t made = 0;
  PESTLE_TRY(check_known(op, values, count));
  for (size_t i = 0; i < op->attr_count; ++i) {
    const pestle_custom_attr_t* row = op->attrs[i];
    if (!row->dynamic) continue;
    const pestle_custom_attr_value_t* v = find(values, count, row->name);
    if (!v) v = row->otherwise;
    if (!v) {
      return PESTLE_ERROR(INVALID_ARGUMENT, "op '%s' needs attribute '%s'",
                          op->name, row->name);
    }
    out[made] = *v;
    out[made].name = row->name;
    if (v->kind == PESTLE_CUSTOM_I64) {
      out[made].kind = PESTLE_CUSTOM_F64;
      out[made].as.f64 = (double)v->as.i64;
    } else if (v->kind != PESTLE_CUSTOM_F64 && v->kind != given) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "attribute '%s' of op '%s' is no number, nor a value "
                          "of rank 0",
                          row->name, op->name);
    }
    ++made;
  }
  return NULL;
}

pestle_status_t pestle_custom_attrs_of_text(
    pestle_arena_t* arena, const pestle_custom_op_t* op, const char* text,
    const pestle_custom_attrs_t** out_attrs) {
  pestle_custom_attr_value_t* values;
  size_t count;
  *out_attrs = NULL;
  PESTLE_TRY(pestle_status_annotate(
      pestle_custom_attrs_read(arena, pestle_str(text), &values, &count),
      "in attributes of op '%s'", op->name));
  return pestle_custom_attrs_make(arena, op, values, count, out_attrs);
}

// --- Text ---

// MLIR has bits for what is no finite number.
static void print_f64(double value, bool typed, pestle_strbuf_t* out) {
  if (isfinite(value)) {
    pestle_strbuf_append_f64(out, value);
  } else {
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    pestle_strbuf_appendf(out, "0x%016llX", (unsigned long long)bits);
  }
  if (typed) pestle_strbuf_append_c(out, " : f64");
}

static void print_value(const pestle_custom_attr_value_t* v,
                        pestle_strbuf_t* out) {
  switch ((pestle_custom_kind_t)v->kind) {
    case PESTLE_CUSTOM_BOOL:
      pestle_strbuf_append_c(out, v->as.b ? "true" : "false");
      return;
    case PESTLE_CUSTOM_I64:
      pestle_strbuf_append_i64(out, v->as.i64);
      pestle_strbuf_append_c(out, " : i64");
      return;
    case PESTLE_CUSTOM_F64:
      print_f64(v->as.f64, true, out);
      return;
    case PESTLE_CUSTOM_STR:
      pestle_strbuf_append_quoted(out, pestle_str(v->as.str));
      return;
    case PESTLE_CUSTOM_I64S:
      pestle_strbuf_append_c(out, "array<i64");
      for (size_t i = 0; i < v->as.i64s.count; ++i) {
        pestle_strbuf_append_c(out, i ? ", " : ": ");
        pestle_strbuf_append_i64(out, v->as.i64s.data[i]);
      }
      pestle_strbuf_append_char(out, '>');
      return;
    case PESTLE_CUSTOM_F64S:
      pestle_strbuf_append_c(out, "array<f64");
      for (size_t i = 0; i < v->as.f64s.count; ++i) {
        pestle_strbuf_append_c(out, i ? ", " : ": ");
        print_f64(v->as.f64s.data[i], false, out);
      }
      pestle_strbuf_append_char(out, '>');
      return;
  }
}

void pestle_custom_attrs_print(const pestle_custom_attrs_t* attrs,
                               pestle_strbuf_t* out) {
  if (!attrs->count) return;
  for (size_t i = 0; i < attrs->count; ++i) {
    pestle_strbuf_append_c(out, i ? ", " : "{");
    pestle_strbuf_append_c(out, attrs->values[i].name);
    pestle_strbuf_append_c(out, " = ");
    print_value(&attrs->values[i], out);
  }
  pestle_strbuf_append_char(out, '}');
}

// --- Reading one ---

const pestle_custom_attr_value_t* pestle_custom_attr_at(
    const pestle_custom_attrs_t* attrs, size_t index) {
  return attrs && index < attrs->count ? &attrs->values[index] : NULL;
}

static const pestle_custom_attr_value_t* get(const pestle_custom_attrs_t* attrs,
                                             const char* name, int32_t kind) {
  if (!attrs || !name) return NULL;
  const pestle_custom_attr_value_t* v = find(attrs->values, attrs->count, name);
  return v && v->kind == kind ? v : NULL;
}

bool pestle_custom_bool(const pestle_custom_attrs_t* attrs, const char* name) {
  const pestle_custom_attr_value_t* v = get(attrs, name, PESTLE_CUSTOM_BOOL);
  return v && v->as.b;
}

int64_t pestle_custom_i64(const pestle_custom_attrs_t* attrs,
                          const char* name) {
  const pestle_custom_attr_value_t* v = get(attrs, name, PESTLE_CUSTOM_I64);
  return v ? v->as.i64 : 0;
}

double pestle_custom_f64(const pestle_custom_attrs_t* attrs, const char* name) {
  const pestle_custom_attr_value_t* v = get(attrs, name, PESTLE_CUSTOM_F64);
  return v ? v->as.f64 : (double)pestle_custom_i64(attrs, name);
}

const char* pestle_custom_str(const pestle_custom_attrs_t* attrs,
                              const char* name) {
  const pestle_custom_attr_value_t* v = get(attrs, name, PESTLE_CUSTOM_STR);
  return v ? v->as.str : "";
}

pestle_i64s_t pestle_custom_i64s(const pestle_custom_attrs_t* attrs,
                                 const char* name) {
  const pestle_custom_attr_value_t* v = get(attrs, name, PESTLE_CUSTOM_I64S);
  return v ? v->as.i64s : (pestle_i64s_t){NULL, 0};
}

pestle_f64s_t pestle_custom_f64s(const pestle_custom_attrs_t* attrs,
                                 const char* name) {
  const pestle_custom_attr_value_t* v = get(attrs, name, PESTLE_CUSTOM_F64S);
  return v ? v->as.f64s : (pestle_f64s_t){NULL, 0};
}
