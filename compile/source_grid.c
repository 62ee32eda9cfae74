// SPDX-License-Identifier: Apache-2.0
#include "compile/source_grid.h"

#include <math.h>
#include <string.h>

#include "ir/graph.h"

enum { MOST_DEPTH = 64 };

typedef struct reader_t {
  const char *text, *at;
  const pestle_grid_name_t* names;
  size_t count;
  int depth;
  const char* wrong;  // what was expected; NULL: nothing is wrong
} reader_t;

static double sum(reader_t* r);

static double fail(reader_t* r, const char* expected) {
  if (!r->wrong) r->wrong = expected;
  return 0;
}

static bool take(reader_t* r, const char* token) {
  while (*r->at == ' ')
    ++r->at;
  size_t n = strlen(token);
  if (r->wrong || strncmp(r->at, token, n) != 0) return false;
  r->at += n;
  return true;
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static double number(reader_t* r) {
  double value = 0;
  while (is_digit(*r->at))
    value = 10 * value + (*r->at++ - '0');
  return value;
}

// What stands behind the name of a tensor.
static double member(reader_t* r, const pestle_type_t* type) {
  if (take(r, ".size")) return (double)pestle_type_count(type);
  if (take(r, ".ndim")) return type->rank;
  if (!take(r, ".shape[")) return fail(r, ".size, .ndim or .shape[axis]");
  double axis = number(r);
  if (!take(r, "]") || axis >= type->rank) return fail(r, "an axis and ]");
  return (double)type->dims[(int)axis];
}

// ceil(a), or the larger or smaller of a and b; the name was read.
static double function(reader_t* r, char which) {
  double a = sum(r), b = a;
  if (which != 'c') {
    if (!take(r, ",")) return fail(r, "a comma");
    b = sum(r);
  }
  if (!take(r, ")")) return fail(r, ")");
  if (which == 'c') return ceil(a);
  return (which == 'x') == (a > b) ? a : b;
}

static double name(reader_t* r) {
  const char* begin = r->at;
  while (is_letter(*r->at) || is_digit(*r->at))
    ++r->at;
  size_t n = (size_t)(r->at - begin);
  for (size_t i = 0; i < r->count; ++i) {
    const pestle_grid_name_t* known = &r->names[i];
    if (strlen(known->name) != n || memcmp(known->name, begin, n) != 0)
      continue;
    return known->type ? member(r, known->type) : (double)known->value;
  }
  r->at = begin;
  return fail(r, "a number, an operand or result, ceil(), min() or max()");
}

static double factor(reader_t* r) {
  double value;
  if (++r->depth > MOST_DEPTH) return fail(r, "fewer brackets");
  if (take(r, "ceil(")) {
    value = function(r, 'c');
  } else if (take(r, "max(")) {
    value = function(r, 'x');
  } else if (take(r, "min(")) {
    value = function(r, 'n');
  } else if (take(r, "(")) {
    value = sum(r);
    if (!take(r, ")")) return fail(r, ")");
  } else {
    value = is_digit(*r->at) ? number(r) : name(r);
  }
  --r->depth;
  return value;
}

static double product(reader_t* r) {
  double value = factor(r);
  while (!r->wrong) {
    if (take(r, "*")) {
      value *= factor(r);
    } else if (take(r, "/")) {
      value /= factor(r);
    } else {
      break;
    }
  }
  return value;
}

static double sum(reader_t* r) {
  double value = product(r);
  while (!r->wrong) {
    if (take(r, "+")) {
      value += product(r);
    } else if (take(r, "-")) {
      value -= product(r);
    } else {
      break;
    }
  }
  return value;
}

pestle_status_t pestle_grid_evaluate(const char* text,
                                     const pestle_grid_name_t* names,
                                     size_t count, int64_t* out_value) {
  reader_t r = {.text = text, .at = text, .names = names, .count = count};
  double value = sum(&r);
  *out_value = 0;
  (void)take(&r, "");
  if (!r.wrong && *r.at) r.wrong = "the end of the text";
  if (r.wrong) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "'%.80s' is no number of threads: at character %td %s "
                        "was expected",
                        text, r.at - r.text + 1, r.wrong);
  }
  if (!(value >= 0 && value <= INT32_MAX) || value != floor(value)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "'%.80s' is %g: a number of threads is an integer from "
                        "0 to 2147483647; ceil() rounds up",
                        text, value);
  }
  *out_value = (int64_t)value;
  return NULL;
}
