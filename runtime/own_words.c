// SPDX-License-Identifier: Apache-2.0
#include "runtime/own_words.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/letters.h"
#include "base/regex.h"
#include "base/vec.h"
#include "base/words.h"
#include "runtime/context.h"
#include "runtime/view.h"

typedef PESTLE_VEC(pestle_str_t) texts_t;

// One call. |fields|: the texts of its configuration behind the first, which is a
// dictionary (executable.h).
typedef struct job_t {
  const pestle_custom_call_t* c;
  pestle_allocator_t allocator;
  pestle_strings_t* strings;
  pestle_arena_t arena;
  texts_t fields;
  pestle_strbuf_t text;  // a string in the making
  PESTLE_VEC(pestle_regex_t*) expressions;
} job_t;

typedef pestle_status_t (*words_fn_t)(job_t* j);

// --- Tensors ---

static int64_t count_of(const pestle_tensor_t* t) {
  int64_t count = 1;
  for (int32_t i = 0; i < t->ndim; ++i)
    count *= t->shape[i];
  return count;
}

static void* data_of(const pestle_tensor_t* t) {
  return pestle_view_data(t);
}

static int32_t* ids_of(const pestle_tensor_t* t) {
  return data_of(t);
}

static pestle_str_t word(const job_t* j, int32_t id) {
  return pestle_strings_word(j->strings, id);
}

static pestle_status_t put(job_t* j, pestle_str_t text, int32_t* out_id) {
  pestle_string_t string = {text.data, text.size};
  return pestle_strings_encode(j->strings, &string, 1, out_id);
}

static pestle_status_t fill(job_t* j, int32_t* ids, int64_t count,
                            pestle_str_t text) {
  int32_t id;
  if (count <= 0) return NULL;
  PESTLE_TRY(put(j, text, &id));
  for (int64_t i = 0; i < count; ++i)
    ids[i] = id;
  return NULL;
}

static pestle_str_t field(const job_t* j, size_t index) {
  return index < j->fields.size ? j->fields.data[index] : PESTLE_STR("");
}

static int64_t number(const job_t* j, size_t index) {
  int64_t value = 0;
  (void)pestle_str_parse_i64(field(j, index), &value);
  return value;
}

// --- Joining ---

static pestle_status_t concat(job_t* j) {
  const int32_t *a = ids_of(&j->c->inputs[0]), *b = ids_of(&j->c->inputs[1]);
  int32_t* y = ids_of(&j->c->outputs[0]);
  for (int64_t i = 0, n = count_of(&j->c->outputs[0]); i < n; ++i) {
    pestle_strbuf_clear(&j->text);
    pestle_strbuf_append(&j->text, word(j, a[i]));
    pestle_strbuf_append(&j->text, word(j, b[i]));
    PESTLE_TRY(pestle_strbuf_status(&j->text));
    PESTLE_TRY(put(j, pestle_strbuf_view(&j->text), &y[i]));
  }
  return NULL;
}

// --- Splitting: fields are how often at most (-1: any), and between what ---

// As Python's str.isspace().
static bool is_blank(uint32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 ||
         c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
         c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

// The bytes at the begin of |text| that are blank, or are not.
static size_t run_of(pestle_str_t text, bool blank) {
  size_t at = 0, size;
  while (at < text.size) {
    uint32_t c = pestle_letter_at(pestle_str_slice(text, at, text.size), &size);
    if (is_blank(c) != blank) break;
    at += size;
  }
  return at;
}

// Takes a part off |rest|, whose begin is one; |last|: all that is left.
static pestle_str_t take_part(pestle_str_t* rest, pestle_str_t delimiter,
                              bool last, bool* out_more) {
  pestle_str_t all = *rest;
  size_t end;
  if (delimiter.size) {
    end = last ? SIZE_MAX : pestle_str_find(all, delimiter);
    *out_more = end < all.size;
    if (!*out_more) return all;
    *rest = pestle_str_slice(all, end + delimiter.size, all.size);
    return pestle_str_slice(all, 0, end);
  }
  end = last ? all.size : run_of(all, false);
  *rest = pestle_str_slice(all, end, all.size);
  *rest = pestle_str_slice(*rest, run_of(*rest, true), rest->size);
  *out_more = rest->size > 0;
  return pestle_str_slice(all, 0, end);
}

static pestle_status_t no_room(int64_t i, int64_t parts, int64_t room) {
  return PESTLE_ERROR(RESOURCE_EXHAUSTED,
                      "string %lld has more than %lld parts, for which there "
                      "is room (docs/onnx.md, Strings)",
                      (long long)i, (long long)(parts < room ? parts : room));
}

static pestle_status_t split(job_t* j) {
  const int32_t* x = ids_of(&j->c->inputs[0]);
  int32_t* y = ids_of(&j->c->outputs[0]);
  int64_t *counts = data_of(&j->c->outputs[1]),
          *most = data_of(&j->c->outputs[2]);
  const pestle_tensor_t* all = &j->c->outputs[0];
  int64_t room = all->shape[all->ndim - 1], splits = number(j, 0);
  pestle_str_t delimiter = field(j, 1);
  PESTLE_TRY(fill(j, y, count_of(all), PESTLE_STR("")));
  *most = 0;
  for (int64_t i = 0, n = count_of(&j->c->inputs[0]); i < n; ++i) {
    pestle_str_t rest = word(j, x[i]);
    if (!delimiter.size)
      rest = pestle_str_slice(rest, run_of(rest, true), rest.size);
    bool more = delimiter.size || rest.size;
    int64_t parts = 0;
    for (; more; ++parts) {
      if (parts >= room) return no_room(i, parts, room);
      bool last = splits >= 0 && parts >= splits;
      pestle_str_t part = take_part(&rest, delimiter, last, &more);
      PESTLE_TRY(put(j, part, &y[i * room + parts]));
    }
    counts[i] = parts;
    if (parts > *most) *most = parts;
  }
  return NULL;
}

// --- Changing case: fields are the change, whether case counts, and stop words ---

static void append_cased(pestle_strbuf_t* out, pestle_str_t text, char change) {
  char bytes[4];
  size_t size;
  while (text.size) {
    uint32_t c = pestle_letter_at(text, &size);
    if (change == 'L') c = pestle_letter_lower(c);
    if (change == 'U') c = pestle_letter_upper(c);
    pestle_strbuf_append_bytes(out, bytes, pestle_letter_write(c, bytes));
    text = pestle_str_slice(text, size, text.size);
  }
}

static pestle_status_t cased(job_t* j, pestle_str_t text, char change,
                             pestle_str_t* out) {
  pestle_strbuf_clear(&j->text);
  append_cased(&j->text, text, change);
  *out = pestle_strbuf_view(&j->text);
  return pestle_strbuf_status(&j->text);
}

static char change_of(const job_t* j) {
  pestle_str_t name = field(j, 0);
  return name.size ? name.data[0] : 'N';
}

static bool is_stopped(const job_t* j, pestle_str_t text) {
  for (size_t i = 2; i < j->fields.size; ++i) {
    if (pestle_str_equal(j->fields.data[i], text)) return true;
  }
  return false;
}

static pestle_status_t normalize(job_t* j) {
  const int32_t* x = ids_of(&j->c->inputs[0]);
  int32_t* y = ids_of(&j->c->outputs[0]);
  int64_t kept = 0, room = count_of(&j->c->outputs[0]);
  char change = change_of(j);
  bool exact = number(j, 1) != 0, stops = j->fields.size > 2;
  // In which case words are compared where case does not count.
  char compared = exact ? 'N' : change == 'U' ? 'U' : 'L';
  pestle_str_t text;
  for (size_t i = 2; i < j->fields.size; ++i) {
    PESTLE_TRY(cased(j, j->fields.data[i], compared, &text));
    char* copy = pestle_arena_strndup(&j->arena, text);
    if (!copy) return PESTLE_OOM();
    j->fields.data[i] = pestle_str_make(copy, text.size);
  }
  for (int64_t i = 0, n = count_of(&j->c->inputs[0]); i < n; ++i) {
    PESTLE_TRY(cased(j, word(j, x[i]), compared, &text));
    if (stops && is_stopped(j, text)) continue;
    PESTLE_TRY(cased(j, word(j, x[i]), change, &text));
    if (kept >= room) break;
    PESTLE_TRY(put(j, text, &y[kept++]));
  }
  // Where none is left the text wants an empty one.
  PESTLE_TRY(fill(j, y + kept, room - kept, PESTLE_STR("")));
  if (j->c->output_count > 1)
    *(int64_t*)data_of(&j->c->outputs[1]) = kept ? kept : 1;
  return NULL;
}

// --- Asking ---

static pestle_status_t add_expression(job_t* j, pestle_str_t text) {
  pestle_regex_t* regex;
  PESTLE_TRY(pestle_regex_create(j->allocator, text, &regex));
  if (pestle_vec_push(&j->expressions, regex)) return NULL;
  pestle_regex_release(regex);
  return PESTLE_OOM();
}

static pestle_status_t match(job_t* j) {
  const int32_t* x = ids_of(&j->c->inputs[0]);
  unsigned char* y = data_of(&j->c->outputs[0]);
  PESTLE_TRY(add_expression(j, field(j, 0)));
  for (int64_t i = 0, n = count_of(&j->c->inputs[0]); i < n; ++i)
    y[i] = pestle_regex_is(j->expressions.data[0], word(j, x[i]));
  return NULL;
}

// --- Numbers ---

// As strtod() and its kin read it: what follows a number does not count.
static pestle_status_t read_number(job_t* j, const pestle_tensor_t* y,
                                   int64_t at, int32_t id) {
  pestle_str_t text = word(j, id);
  void* data = data_of(y);
  char* end = NULL;
  pestle_strbuf_clear(&j->text);
  pestle_strbuf_append(&j->text, text);
  PESTLE_TRY(pestle_strbuf_status(&j->text));
  char none[1] = "", *begin = j->text.size ? j->text.data : none;
  pestle_str_to_locale(begin);
  if (y->dtype.code == 2 && y->dtype.bits == 32) {
    ((float*)data)[at] = strtof(begin, &end);
  } else if (y->dtype.code == 2) {
    ((double*)data)[at] = strtod(begin, &end);
  } else if (y->dtype.code == 1) {
    ((uint64_t*)data)[at] = strtoull(begin, &end, 10);
  } else {
    ((int64_t*)data)[at] = strtoll(begin, &end, 10);
  }
  if (end != begin || id < 0) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT, "string %lld, '%.*s', is no number",
                      (long long)at, PESTLE_STR_ARG(text));
}

static pestle_status_t to_number(job_t* j) {
  const int32_t* x = ids_of(&j->c->inputs[0]);
  for (int64_t i = 0, n = count_of(&j->c->inputs[0]); i < n; ++i)
    PESTLE_TRY(read_number(j, &j->c->outputs[0], i, x[i]));
  return NULL;
}

// |fixed|: with six digits behind the point.
static void write_float(job_t* j, double x, bool fixed) {
  if (isnan(x)) {
    pestle_strbuf_append_c(&j->text, fixed ? "nan" : "NaN");
  } else if (isinf(x)) {
    pestle_strbuf_append_c(
        &j->text, fixed ? (x < 0 ? "-inf" : "inf") : (x < 0 ? "-INF" : "INF"));
  } else {
    char text[352];  // the largest f64 has 309 digits before the point
    snprintf(text, sizeof(text), fixed ? "%f" : "%.8g", x);
    pestle_str_from_locale(text);
    pestle_strbuf_append_c(&j->text, text);
  }
}

static pestle_status_t of_number(job_t* j) {
  const pestle_tensor_t* x = &j->c->inputs[0];
  int32_t* y = ids_of(&j->c->outputs[0]);
  const void* data = data_of(x);
  bool fixed = pestle_str_equal_c(field(j, 0), "fixed");
  for (int64_t i = 0, n = count_of(x); i < n; ++i) {
    pestle_strbuf_clear(&j->text);
    if (x->dtype.code == 2 && x->dtype.bits == 32) {
      write_float(j, (double)((const float*)data)[i], fixed);
    } else if (x->dtype.code == 2) {
      write_float(j, ((const double*)data)[i], fixed);
    } else if (x->dtype.code == 1) {
      pestle_strbuf_append_u64(&j->text, ((const uint64_t*)data)[i]);
    } else {
      pestle_strbuf_append_i64(&j->text, ((const int64_t*)data)[i]);
    }
    PESTLE_TRY(pestle_strbuf_status(&j->text));
    PESTLE_TRY(put(j, pestle_strbuf_view(&j->text), &y[i]));
  }
  return NULL;
}

// --- Words of a text: com.microsoft's Tokenizer. Fields are whether a mark stands at both
// --- ends, the least number of letters, the filler, "t" and what a word is, or "s" and
// --- what stands between words ---

static int64_t letters_of(pestle_str_t text) {
  int64_t letters = 0;
  for (size_t i = 0; i < text.size; ++i)
    letters += ((unsigned char)text.data[i] & 0xc0) != 0x80;
  return letters;
}

static bool keep(texts_t* out, pestle_str_t text, int64_t least) {
  return letters_of(text) < least || !text.size || pestle_vec_push(out, text);
}

// Letter by letter, where there is nothing between words.
static bool into_letters(pestle_str_t text, texts_t* out) {
  size_t size;
  while (text.size) {
    (void)pestle_letter_at(text, &size);
    if (!pestle_vec_push(out, pestle_str_slice(text, 0, size))) return false;
    text = pestle_str_slice(text, size, text.size);
  }
  return true;
}

// Of |text| what matches, or what lies between matches.
static bool find_words(pestle_regex_t* regex, pestle_str_t text, bool between,
                       int64_t least, texts_t* out) {
  size_t from = 0, begin, end, last = 0;
  while (from <= text.size &&
         pestle_regex_find(regex, text, from, &begin, &end)) {
    pestle_str_t part = between ? pestle_str_slice(text, last, begin)
                                : pestle_str_slice(text, begin, end);
    if (end > begin) {
      if (!keep(out, part, least)) return false;
      last = from = end;
    } else {
      size_t size = 1;
      if (begin < text.size)
        (void)pestle_letter_at(pestle_str_slice(text, begin, text.size), &size);
      from = begin + size;
    }
  }
  return !between || keep(out, pestle_str_slice(text, last, text.size), least);
}

// Whether a word is what stands between words that are nothing: a letter.
static bool has_letters(const job_t* j) {
  return pestle_str_equal_c(field(j, 3), "s") && j->fields.size == 5 &&
         !field(j, 4).size;
}

static pestle_status_t find_tokens(job_t* j, pestle_str_t text, texts_t* now,
                                   texts_t* next) {
  bool between = pestle_str_equal_c(field(j, 3), "s");
  int64_t least = number(j, 1);
  pestle_vec_clear(now);
  if (has_letters(j)) return into_letters(text, now) ? NULL : PESTLE_OOM();
  if (!keep(now, text, 0)) return PESTLE_OOM();
  for (size_t f = 0; f < j->expressions.size; ++f) {
    bool is_last = f + 1 == j->expressions.size;
    pestle_vec_clear(next);
    for (size_t i = 0; i < now->size; ++i) {
      if (!find_words(j->expressions.data[f], now->data[i], between,
                      is_last ? least : 0, next)) {
        return PESTLE_OOM();
      }
    }
    texts_t swap = *now;
    *now = *next;
    *next = swap;
  }
  return NULL;
}

static pestle_status_t store_tokens(job_t* j, const texts_t* words, int64_t row,
                                    int64_t room, int64_t* most) {
  bool marks = number(j, 0) != 0;
  int64_t count = (int64_t)words->size + (marks ? 2 : 0);
  int32_t* y = ids_of(&j->c->outputs[0]) + row * room;
  if (count > room) return no_room(row, count, room);
  if (marks) PESTLE_TRY(put(j, PESTLE_STR("\x02"), y++));
  for (size_t i = 0; i < words->size; ++i)
    PESTLE_TRY(put(j, words->data[i], y++));
  if (marks) PESTLE_TRY(put(j, PESTLE_STR("\x03"), y));
  // Marks alone make no column.
  if (words->size && count > *most) *most = count;
  return NULL;
}

static pestle_status_t tokens(job_t* j) {
  const int32_t* x = ids_of(&j->c->inputs[0]);
  const pestle_tensor_t* y = &j->c->outputs[0];
  int64_t* most = data_of(&j->c->outputs[1]);
  texts_t now, next;
  pestle_vec_init(&now, j->allocator);
  pestle_vec_init(&next, j->allocator);
  *most = 0;
  int64_t n = count_of(&j->c->inputs[0]);
  pestle_status_t status = fill(j, ids_of(y), count_of(y), field(j, 2));
  if (n && !has_letters(j)) {
    for (size_t f = 4; !status && f < j->fields.size; ++f)
      status = add_expression(j, j->fields.data[f]);
  }
  for (int64_t i = 0; !status && i < n; ++i) {
    status = find_tokens(j, word(j, x[i]), &now, &next);
    if (!status) status = store_tokens(j, &now, i, y->shape[y->ndim - 1], most);
  }
  pestle_vec_deinit(&next);
  pestle_vec_deinit(&now);
  return status;
}

// --- Finding and calling ---

// What tensors there are: S strings, B i1, L i64, N numbers of 32 or 64 bits.
typedef struct row_t {
  const char* name;
  const char *in, *out;
  words_fn_t run;
} row_t;

static const row_t rows[] = {
    {PESTLE_OWN_WORDS "concat", "SS", "S", concat},
    {PESTLE_OWN_WORDS "split", "S", "SLL", split},
    {PESTLE_OWN_WORDS "normalize", "S", "S", normalize},
    {PESTLE_OWN_WORDS "normalize_stop", "S", "SL", normalize},
    {PESTLE_OWN_WORDS "match", "S", "B", match},
    {PESTLE_OWN_WORDS "to_number", "S", "N", to_number},
    {PESTLE_OWN_WORDS "of_number", "N", "S", of_number},
    {PESTLE_OWN_WORDS "tokens", "S", "SL", tokens},
};

static const row_t* find(const char* name) {
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    if (!strcmp(rows[i].name, name)) return &rows[i];
  }
  return NULL;
}

static bool is_right(const pestle_tensor_t* t, char kind) {
  int code = t->dtype.code, bits = t->dtype.bits;
  if (kind == 'S') return code == 0 && bits == 32;
  if (kind == 'L') return code == 0 && bits == 64;
  if (kind == 'B') return bits == 8;
  return code == 2 ? bits == 32 || bits == 64 : code < 2 && bits == 64;
}

static bool are_right(const pestle_tensor_t* t, size_t count,
                      const char* kinds) {
  if (count != strlen(kinds)) return false;
  for (size_t i = 0; i < count; ++i) {
    if (!is_right(&t[i], kinds[i])) return false;
  }
  return true;
}

static pestle_status_t read_fields(job_t* j) {
  pestle_str_t rest = pestle_str(j->c->config ? j->c->config : "");
  for (bool first = true; pestle_field_next(&rest, &j->text); first = false) {
    PESTLE_TRY(pestle_strbuf_status(&j->text));
    if (first) continue;
    pestle_str_t text = pestle_strbuf_view(&j->text);
    const char* copy = pestle_arena_strndup(&j->arena, text);
    if (!copy || !pestle_vec_push(&j->fields, pestle_str_make(copy, text.size)))
      return PESTLE_OOM();
  }
  return NULL;
}

static pestle_status_t check(const row_t* row, const pestle_custom_call_t* c) {
  if (!are_right(c->inputs, c->input_count, row->in) ||
      !are_right(c->outputs, c->output_count, row->out)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "'%s' is given other tensors than it takes and gives",
                        row->name);
  }
  bool grows = row->run == split || row->run == tokens;
  int64_t count = count_of(&c->inputs[0]), made = count_of(&c->outputs[0]);
  const pestle_tensor_t* y = &c->outputs[0];
  int64_t room = grows && y->ndim ? y->shape[y->ndim - 1] : 1;
  bool fits = made == count * room && (!grows || y->ndim);
  if (row->run == concat) fits = fits && count_of(&c->inputs[1]) == count;
  if (row->run == split) fits = fits && count_of(&c->outputs[1]) == count;
  // Of no string one may be left.
  if (row->run == normalize) fits = made >= count;
  // How many there are is one number.
  bool counts = c->output_count > 1;
  if (counts) fits = fits && count_of(&c->outputs[c->output_count - 1]) == 1;
  if (fits) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "'%s' is given extents that do not go together",
                      row->name);
}

static pestle_status_t call(void* user, const pestle_custom_call_t* c) {
  const row_t* row = find(c->name);
  const pestle_context_t* context = user;
  if (!row) {
    return PESTLE_ERROR(NOT_FOUND, "Pestle has no function '%s' of its own",
                        c->name);
  }
  PESTLE_TRY(check(row, c));
  if (!c->strings) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "it reads or makes strings, and the run has none; give "
                        "them with pestle_run_options_t.strings");
  }
  job_t j = {
      .c = c, .allocator = context->core.allocator, .strings = c->strings};
  pestle_arena_init(j.allocator, &j.arena);
  pestle_vec_init(&j.fields, j.allocator);
  pestle_vec_init(&j.expressions, j.allocator);
  pestle_strbuf_init(j.allocator, &j.text);
  pestle_status_t status = read_fields(&j);
  if (!status) status = row->run(&j);
  for (size_t i = 0; i < j.expressions.size; ++i)
    pestle_regex_release(j.expressions.data[i]);
  pestle_vec_deinit(&j.expressions);
  pestle_strbuf_deinit(&j.text);
  pestle_vec_deinit(&j.fields);
  pestle_arena_deinit(&j.arena);
  return status;
}

pestle_custom_call_fn_t pestle_own_words_find(const char* name) {
  return find(name) ? call : NULL;
}
