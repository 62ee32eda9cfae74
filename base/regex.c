// SPDX-License-Identifier: Apache-2.0
// An expression becomes a program of a few kinds of instructions, whose jumps are
// relative so that parts can be copied and moved. All threads of the program walk the
// text together, a letter at a time, in the order of their preference.
#include "base/regex.h"

#include <stdint.h>
#include <string.h>

#include "base/letters.h"
#include "base/mem.h"
#include "base/vec.h"

enum { MOST_CODE = 20000, MOST_DEPTH = 200, MOST_REPEAT = 1000 };

typedef enum kind_e {
  SET,    // x: the first of |count| ranges; a letter of them
  SPLIT,  // goes on at x, and, less preferred, at y
  JUMP,
  ASSERT,  // x: assert_t
  MATCH,
} kind_t;

typedef enum assert_e {
  TEXT_BEGIN,
  TEXT_END,
  LINE_BEGIN,
  LINE_END,
  WORD,
  NO_WORD
} assert_t;

typedef struct code_t {
  uint8_t kind;
  bool folds;  // of a set: in any case
  uint32_t count;
  int32_t x, y;
} code_t;

typedef struct range_t {
  uint32_t low, high;
} range_t;

// A place of the program, and where in the text its match began.
typedef struct thread_t {
  uint32_t at;
  size_t begin;
} thread_t;

struct pestle_regex_s {
  pestle_allocator_t allocator;
  PESTLE_VEC(code_t) code;
  PESTLE_VEC(range_t) ranges;
  // -- of a search --
  thread_t *now, *next, *stack;
  size_t now_count, next_count;
  uint64_t* seen;  // the step at which a thread was last added there
  uint64_t step;
};

// --- Reading ---

typedef struct reader_t {
  pestle_regex_t* re;
  pestle_str_t text;
  size_t at;
  bool fold, lines, all, lazy;  // i, m, s, U
  bool quoted;                  // behind \\Q
  int depth;
  pestle_status_t status;
} reader_t;

static bool fail(reader_t* r, pestle_status_code_t code, const char* what) {
  if (!r->status) {
    r->status =
        pestle_status_make(code, __FILE__, __LINE__,
                           "the regular expression '%.*s' %s, at byte %zu",
                           PESTLE_STR_ARG(r->text), what, r->at);
  }
  return false;
}

static bool bad(reader_t* r, const char* what) {
  return fail(r, PESTLE_STATUS_MALFORMED, what);
}

static bool more(const reader_t* r) {
  return r->at < r->text.size;
}

static char peek(const reader_t* r) {
  return more(r) ? r->text.data[r->at] : 0;
}

static bool takes(reader_t* r, const char* text) {
  size_t size = strlen(text);
  if (r->text.size - r->at < size ||
      memcmp(r->text.data + r->at, text, size) != 0)
    return false;
  r->at += size;
  return true;
}

static uint32_t letter(reader_t* r) {
  size_t size;
  uint32_t c =
      pestle_letter_at(pestle_str_slice(r->text, r->at, r->text.size), &size);
  r->at += size;
  return c;
}

// --- Code ---

static size_t size_of(const reader_t* r) {
  return r->re->code.size;
}

static bool emit(reader_t* r, code_t code) {
  if (size_of(r) >= MOST_CODE)
    return fail(r, PESTLE_STATUS_UNSUPPORTED, "is too large");
  if (pestle_vec_push(&r->re->code, code)) return true;
  if (!r->status) r->status = PESTLE_OOM();
  return false;
}

// Puts |code| before all from |at| on, which hold no jump across it.
static bool insert(reader_t* r, size_t at, code_t code) {
  if (!emit(r, code)) return false;
  code_t* data = r->re->code.data;
  memmove(data + at + 1, data + at, (size_of(r) - 1 - at) * sizeof(*data));
  data[at] = code;
  return true;
}

static bool copy(reader_t* r, size_t from, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (!emit(r, r->re->code.data[from + i])) return false;
  }
  return true;
}

// --- Sets ---

static bool add_range(reader_t* r, uint32_t low, uint32_t high) {
  if (pestle_vec_push(&r->re->ranges, (range_t){low, high})) return true;
  if (!r->status) r->status = PESTLE_OOM();
  return false;
}

// The ranges from |first| on become all that they are not.
static bool invert(reader_t* r, size_t first) {
  range_t* all = r->re->ranges.data;
  size_t count = r->re->ranges.size - first;
  for (size_t i = 1; i < count; ++i) {
    range_t x = all[first + i];
    size_t k = i;
    for (; k && all[first + k - 1].low > x.low; --k)
      all[first + k] = all[first + k - 1];
    all[first + k] = x;
  }
  uint32_t next = 0;
  size_t kept = first;
  // What is written lies before what is read: a gap comes of a range that was read.
  for (size_t i = 0; i < count; ++i) {
    range_t x = all[first + i];
    if (x.low > next) all[kept++] = (range_t){next, x.low - 1};
    if (x.high >= next) next = x.high + 1;
  }
  r->re->ranges.size = kept;
  return next > 0x10ffff || add_range(r, next, 0x10ffff);
}

static bool in_ranges(const range_t* ranges, size_t count, uint32_t c) {
  for (size_t i = 0; i < count; ++i) {
    if (c >= ranges[i].low && c <= ranges[i].high) return true;
  }
  return false;
}

typedef struct named_t {
  const char* name;
  const char* ranges;  // pairs of ends
} named_t;

static const named_t perl[] = {
    {"d", "09"}, {"s", "\t\n\f\r  "}, {"w", "09AZ__az"}};
static const named_t posix[] = {{"alnum", "09AZaz"},
                                {"alpha", "AZaz"},
                                {"ascii", "\1\x7f"},
                                {"blank", "\t\t  "},
                                {"cntrl", "\1\x1f\x7f\x7f"},
                                {"digit", "09"},
                                {"graph", "!~"},
                                {"lower", "az"},
                                {"print", " ~"},
                                {"punct", "!/:@[`{~"},
                                {"space", "\t\r  "},
                                {"upper", "AZ"},
                                {"word", "09AZ__az"},
                                {"xdigit", "09AFaf"}};

static bool add_named(reader_t* r, const named_t* set, bool inverse) {
  size_t first = r->re->ranges.size;
  for (const char* p = set->ranges; *p; p += 2) {
    // A text of C holds no 0.
    uint32_t low = *p == 1 ? 0 : (unsigned char)*p;
    if (!add_range(r, low, (unsigned char)p[1])) return false;
  }
  return !inverse || invert(r, first);
}

// \d and kin at |r|, which stands behind the backslash.
static bool add_perl(reader_t* r, bool* out_is) {
  char c = peek(r);
  *out_is = false;
  for (size_t i = 0; i < sizeof(perl) / sizeof(*perl); ++i) {
    char small = perl[i].name[0];
    if (c != small && c != small - 32) continue;
    *out_is = true;
    ++r->at;
    return add_named(r, &perl[i], c != small);
  }
  return true;
}

static int digit(char c, int base) {
  int value = c >= '0' && c <= '9'   ? c - '0'
              : c >= 'a' && c <= 'f' ? c - 'a' + 10
              : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                     : 99;
  return value < base ? value : -1;
}

static bool read_hex(reader_t* r, uint32_t* out) {
  bool braces = takes(r, "{");
  int digits = 0;
  for (*out = 0; more(r) && (braces || digits < 2); ++digits, ++r->at) {
    int value = digit(peek(r), 16);
    if (value < 0) break;
    *out = *out * 16 + (uint32_t)value;
    if (*out > 0x10ffff) return bad(r, "names a letter past U+10FFFF");
  }
  bool ends = braces ? takes(r, "}") && digits : digits == 2;
  return ends || bad(r, "has an \\x without its digits");
}

// The letter that is meant behind a backslash.
static bool read_escape(reader_t* r, uint32_t* out) {
  static const char names[] = "afnrtv";
  static const char means[] = "\a\f\n\r\t\v";
  if (!more(r)) return bad(r, "ends with a backslash");
  char c = peek(r);
  const char* found = strchr(names, c);
  if (c == 'p' || c == 'P' || c == 'C') {
    return fail(r, PESTLE_STATUS_UNSUPPORTED,
                "has \\p, \\P or \\C, which are not taken");
  }
  if (found) {
    ++r->at;
    *out = (unsigned char)means[found - names];
    return true;
  }
  if (c == 'x') {
    ++r->at;
    return read_hex(r, out);
  }
  if (c == '0' || (digit(c, 8) > 0 && r->at + 1 < r->text.size &&
                   digit(r->text.data[r->at + 1], 8) >= 0)) {
    *out = 0;
    for (int i = 0; i < 3 && more(r) && digit(peek(r), 8) >= 0; ++i, ++r->at)
      *out = *out * 8 + (uint32_t)digit(peek(r), 8);
    return true;
  }
  bool named = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
               (c >= 'A' && c <= 'Z');
  if (named) return bad(r, "has a backslash before what is no escape");
  *out = letter(r);
  return true;
}

static bool read_posix(reader_t* r, bool* out_is) {
  size_t at = r->at;
  *out_is = false;
  if (!takes(r, "[:")) return true;
  bool inverse = takes(r, "^");
  for (size_t i = 0; i < sizeof(posix) / sizeof(*posix); ++i) {
    size_t begin = r->at;
    if (takes(r, posix[i].name) && takes(r, ":]")) {
      *out_is = true;
      return add_named(r, &posix[i], inverse);
    }
    r->at = begin;
  }
  size_t end = pestle_str_find(pestle_str_slice(r->text, at, r->text.size),
                               PESTLE_STR(":]"));
  if (end != SIZE_MAX && end < r->text.size - at)
    return bad(r, "names a class that there is not");
  r->at = at;
  return true;
}

static bool read_member(reader_t* r, uint32_t* out) {
  if (!more(r)) return bad(r, "has a [ without its ]");
  if (takes(r, "\\")) return read_escape(r, out);
  *out = letter(r);
  return true;
}

// What stands behind a [, with its ].
static bool read_class(reader_t* r) {
  bool inverse = takes(r, "^"), begins = true, is_named;
  size_t first = r->re->ranges.size;
  for (; begins || !takes(r, "]"); begins = false) {
    uint32_t low, high;
    if (!read_posix(r, &is_named)) return false;
    if (is_named) continue;
    if (takes(r, "\\")) {
      if (!add_perl(r, &is_named)) return false;
      if (is_named) continue;
      --r->at;
    }
    if (!read_member(r, &low)) return false;
    high = low;
    bool spans = peek(r) == '-' && r->at + 1 < r->text.size &&
                 r->text.data[r->at + 1] != ']';
    if (spans) {
      ++r->at;
      if (!read_member(r, &high)) return false;
      if (high < low) return bad(r, "has a range that ends before it begins");
    }
    if (!add_range(r, low, high)) return false;
  }
  // What is not in any case what is listed.
  if (inverse && r->fold) {
    size_t count = r->re->ranges.size;
    for (size_t i = first; i < count; ++i) {
      range_t x = r->re->ranges.data[i];
      for (uint32_t c = x.low; c <= x.high && c - x.low < 0x2000; ++c) {
        uint32_t low = pestle_letter_lower(c), up = pestle_letter_upper(c);
        if (low != c && !add_range(r, low, low)) return false;
        if (up != c && !add_range(r, up, up)) return false;
      }
    }
  }
  return !inverse || invert(r, first);
}

static bool emit_set(reader_t* r, size_t first, bool folds) {
  size_t count = r->re->ranges.size - first;
  return emit(r, (code_t){.kind = SET,
                          .folds = folds,
                          .count = (uint32_t)count,
                          .x = (int32_t)first});
}

static bool emit_letter(reader_t* r, uint32_t c) {
  size_t first = r->re->ranges.size;
  return add_range(r, c, c) && emit_set(r, first, r->fold);
}

static bool emit_assert(reader_t* r, assert_t which) {
  return emit(r, (code_t){.kind = ASSERT, .x = (int32_t)which});
}

// --- Expressions ---

static bool read_either(reader_t* r);

// Flags behind "(?", up to ")" or ":"; |*out_is_group|: the latter.
static bool read_flags(reader_t* r, bool* out_is_group) {
  bool on = true;
  for (; more(r); ++r->at) {
    char c = peek(r);
    if (c == '-' && on) {
      on = false;
    } else if (c == 'i') {
      r->fold = on;
    } else if (c == 'm') {
      r->lines = on;
    } else if (c == 's') {
      r->all = on;
    } else if (c == 'U') {
      r->lazy = on;
    } else if (c == ':' || c == ')') {
      ++r->at;
      *out_is_group = c == ':';
      return true;
    } else {
      break;
    }
  }
  return bad(r, "has (? before what is no flag");
}

static bool read_group(reader_t* r) {
  reader_t before = *r;
  bool is_group = true;
  if (takes(r, "?P<") || takes(r, "?<")) {
    size_t begin = r->at;
    while (more(r) && peek(r) != '>')
      ++r->at;
    if (r->at == begin || !takes(r, ">"))
      return bad(r, "has a group whose name does not end");
  } else if (takes(r, "?")) {
    if (!read_flags(r, &is_group)) return false;
    if (!is_group) return true;
  }
  if (!read_either(r)) return false;
  if (!takes(r, ")")) return bad(r, "has a ( without its )");
  r->fold = before.fold;
  r->lines = before.lines;
  r->all = before.all;
  r->lazy = before.lazy;
  return true;
}

static bool is_repetition(const reader_t* r) {
  return peek(r) && strchr("*+?", peek(r));
}

// |*out_repeats|: whether * and kin may follow.
static bool read_atom(reader_t* r, bool* out_repeats) {
  size_t first = r->re->ranges.size;
  bool is_class;
  uint32_t c;
  *out_repeats = true;
  if (r->quoted) {
    if (!emit_letter(r, letter(r))) return false;
    r->quoted = !takes(r, "\\E");
    return true;
  }
  if (takes(r, "(")) {
    size_t before = size_of(r);
    if (!read_group(r)) return false;
    *out_repeats = size_of(r) > before || r->text.data[r->at - 1] == ')';
    return true;
  }
  if (takes(r, "[")) return read_class(r) && emit_set(r, first, r->fold);
  if (takes(r, ".")) {
    bool made = r->all ? add_range(r, 0, 0x10ffff)
                       : add_range(r, '\n', '\n') && invert(r, first);
    return made && emit_set(r, first, false);
  }
  if (takes(r, "^")) return emit_assert(r, r->lines ? LINE_BEGIN : TEXT_BEGIN);
  if (takes(r, "$")) return emit_assert(r, r->lines ? LINE_END : TEXT_END);
  if (takes(r, "\\A")) return emit_assert(r, TEXT_BEGIN);
  if (takes(r, "\\z")) return emit_assert(r, TEXT_END);
  if (takes(r, "\\b")) return emit_assert(r, WORD);
  if (takes(r, "\\B")) return emit_assert(r, NO_WORD);
  if (takes(r, "\\")) {
    if (!add_perl(r, &is_class)) return false;
    if (is_class) return emit_set(r, first, r->fold);
    return read_escape(r, &c) && emit_letter(r, c);
  }
  if (is_repetition(r)) return bad(r, "repeats nothing");
  return emit_letter(r, letter(r));
}

// How often: -1 for no end. Nothing is read where it is no repetition.
static bool read_counts(reader_t* r, int* low, int* high) {
  size_t begin = r->at;
  if (takes(r, "*")) return *low = 0, *high = -1, true;
  if (takes(r, "+")) return *low = 1, *high = -1, true;
  if (takes(r, "?")) return *low = 0, *high = 1, true;
  *low = 0;
  if (!takes(r, "{") || digit(peek(r), 10) < 0) goto none;
  for (; digit(peek(r), 10) >= 0 && *low <= MOST_REPEAT; ++r->at)
    *low = *low * 10 + digit(peek(r), 10);
  *high = *low;
  if (takes(r, ",")) {
    *high = -1;
    if (digit(peek(r), 10) >= 0) *high = 0;
    for (; digit(peek(r), 10) >= 0 && *high <= MOST_REPEAT; ++r->at)
      *high = *high * 10 + digit(peek(r), 10);
  }
  if (!takes(r, "}")) goto none;
  if (*low > MOST_REPEAT || *high > MOST_REPEAT || (*high >= 0 && *high < *low))
    return bad(r, "repeats more than 1,000 times, or less often than it must");
  return true;
none:
  r->at = begin;
  return false;
}

static code_t split(bool lazy, int32_t first, int32_t second) {
  return (code_t){
      .kind = SPLIT, .x = lazy ? second : first, .y = lazy ? first : second};
}

// The code from |begin| on becomes itself |low| to |high| times.
static bool repeat(reader_t* r, size_t begin, int low, int high, bool lazy) {
  size_t size = size_of(r) - begin;
  int32_t n = (int32_t)size;
  if (high == 0) {
    r->re->code.size = begin;
    return true;
  }
  if (high < 0 && low == 0) {
    return insert(r, begin, split(lazy, 1, n + 2)) &&
           emit(r, (code_t){.kind = JUMP, .x = -(n + 1)});
  }
  // The first copy stands there already, also where none has to be.
  int copies = low ? low : 1;
  for (int i = 1; i < copies; ++i) {
    if (!copy(r, begin, size)) return false;
  }
  if (high < 0) return emit(r, split(lazy, -n, 1));
  // What follows may be left out, each part with all behind it.
  int extra = high - low;
  if (!low) {
    if (!insert(r, begin, split(lazy, 1, n + 1 + (n + 1) * (extra - 1))))
      return false;
    --extra;
    ++begin;
  }
  for (int left = extra; left > 0; --left) {
    if (!emit(r, split(lazy, 1, (n + 1) * left))) return false;
    if (!copy(r, begin, size)) return false;
  }
  return true;
}

static bool read_sequence(reader_t* r) {
  int low, high;
  while (more(r) && (r->quoted || (peek(r) != '|' && peek(r) != ')'))) {
    size_t begin = size_of(r);
    bool repeats;
    if (takes(r, "\\Q")) {
      r->quoted = !takes(r, "\\E");
      continue;
    }
    if (!read_atom(r, &repeats)) return false;
    if (r->quoted || !read_counts(r, &low, &high)) {
      if (r->status) return false;
      continue;
    }
    if (!repeats) return bad(r, "repeats nothing");
    bool lazy = takes(r, "?") != r->lazy;
    if (!repeat(r, begin, low, high, lazy)) return false;
    if (is_repetition(r))
      return bad(r, "repeats a repetition; put it in a group");
  }
  return !r->status;
}

static bool read_either(reader_t* r) {
  if (++r->depth > MOST_DEPTH)
    return fail(r, PESTLE_STATUS_UNSUPPORTED, "has too many groups in groups");
  size_t begin = size_of(r), last = SIZE_MAX;
  if (!read_sequence(r)) return false;
  // Jumps to the end hold the place of the one before, until the end is known.
  while (takes(r, "|")) {
    int32_t n = (int32_t)(size_of(r) - begin);
    if (!insert(r, begin, split(false, 1, n + 2)) ||
        !emit(r, (code_t){.kind = JUMP,
                          .x = last == SIZE_MAX ? -1 : (int32_t)last}))
      return false;
    last = size_of(r) - 1;
    begin = size_of(r);
    if (!read_sequence(r)) return false;
  }
  while (last != SIZE_MAX) {
    code_t* jump = &r->re->code.data[last];
    int32_t before = jump->x;
    jump->x = (int32_t)(size_of(r) - last);
    last = before < 0 ? SIZE_MAX : (size_t)before;
  }
  --r->depth;
  return true;
}

// --- Creating ---

void pestle_regex_release(pestle_regex_t* re) {
  if (!re) return;
  size_t count = re->code.size + 1;
  pestle_dealloc(re->allocator, re->now, count * sizeof(thread_t));
  pestle_dealloc(re->allocator, re->next, count * sizeof(thread_t));
  pestle_dealloc(re->allocator, re->stack, 2 * count * sizeof(thread_t));
  pestle_dealloc(re->allocator, re->seen, count * sizeof(uint64_t));
  pestle_vec_deinit(&re->code);
  pestle_vec_deinit(&re->ranges);
  pestle_dealloc(re->allocator, re, sizeof(*re));
}

static pestle_status_t make_room(pestle_regex_t* re) {
  size_t count = re->code.size + 1;
  re->now = pestle_alloc(re->allocator, count * sizeof(thread_t));
  re->next = pestle_alloc(re->allocator, count * sizeof(thread_t));
  re->stack = pestle_alloc(re->allocator, 2 * count * sizeof(thread_t));
  re->seen = pestle_alloc_zero(re->allocator, count * sizeof(uint64_t));
  return re->now && re->next && re->stack && re->seen ? NULL : PESTLE_OOM();
}

pestle_status_t pestle_regex_create(pestle_allocator_t allocator,
                                    pestle_str_t pattern,
                                    pestle_regex_t** out) {
  *out = NULL;
  pestle_regex_t* re = pestle_alloc_zero(allocator, sizeof(*re));
  if (!re) return PESTLE_OOM();
  re->allocator = allocator;
  pestle_vec_init(&re->code, allocator);
  pestle_vec_init(&re->ranges, allocator);
  reader_t r = {.re = re, .text = pattern};
  if (read_either(&r) && more(&r)) (void)bad(&r, "has a ) without its (");
  if (!r.status) (void)emit(&r, (code_t){.kind = MATCH});
  if (!r.status) r.status = make_room(re);
  if (r.status) {
    pestle_regex_release(re);
    return r.status;
  }
  *out = re;
  return NULL;
}

// --- Matching ---

static bool is_word(pestle_str_t text, size_t at) {
  if (at >= text.size) return false;
  char c = text.data[at];
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z') || c == '_';
}

static bool holds(assert_t which, pestle_str_t text, size_t at) {
  bool before = at && is_word(text, at - 1), behind = is_word(text, at);
  switch (which) {
    case TEXT_BEGIN:
      return at == 0;
    case TEXT_END:
      return at == text.size;
    case LINE_BEGIN:
      return at == 0 || text.data[at - 1] == '\n';
    case LINE_END:
      return at == text.size || text.data[at] == '\n';
    case WORD:
      return before != behind;
    case NO_WORD:
      return before == behind;
  }
  return false;
}

// Adds a thread at |at|, and where that goes on without a letter, each place once a step.
static void add(pestle_regex_t* re, thread_t* list, size_t* count, uint32_t at,
                size_t begin, pestle_str_t text, size_t place) {
  size_t depth = 0;
  re->stack[depth++] = (thread_t){at, begin};
  while (depth) {
    thread_t t = re->stack[--depth];
    if (re->seen[t.at] == re->step) continue;
    re->seen[t.at] = re->step;
    const code_t* c = &re->code.data[t.at];
    switch ((kind_t)c->kind) {
      case SPLIT:
        re->stack[depth++] =
            (thread_t){(uint32_t)((int32_t)t.at + c->y), begin};
        re->stack[depth++] =
            (thread_t){(uint32_t)((int32_t)t.at + c->x), begin};
        break;
      case JUMP:
        re->stack[depth++] =
            (thread_t){(uint32_t)((int32_t)t.at + c->x), begin};
        break;
      case ASSERT:
        if (holds((assert_t)c->x, text, place))
          re->stack[depth++] = (thread_t){t.at + 1, begin};
        break;
      case SET:
      case MATCH:
        list[(*count)++] = t;
        break;
    }
  }
}

static bool is_member(const pestle_regex_t* re, const code_t* c,
                      uint32_t letter) {
  const range_t* ranges = re->ranges.data + c->x;
  if (in_ranges(ranges, c->count, letter)) return true;
  if (!c->folds) return false;
  return in_ranges(ranges, c->count, pestle_letter_lower(letter)) ||
         in_ranges(ranges, c->count, pestle_letter_upper(letter));
}

// |whole|: a match begins at |from| and ends with the text.
static bool search(pestle_regex_t* re, pestle_str_t text, size_t from,
                   bool whole, size_t* out_begin, size_t* out_end) {
  bool found = false;
  size_t count = 0, at = from;
  ++re->step;
  for (;;) {
    // The others of this place were added by the letter before it; a new one comes last.
    if (!found && (!whole || at == from))
      add(re, re->now, &count, 0, at, text, at);
    size_t size = 0, next = 0;
    uint32_t c = 0;
    if (at < text.size)
      c = pestle_letter_at(pestle_str_slice(text, at, text.size), &size);
    ++re->step;
    for (size_t i = 0; i < count; ++i) {
      thread_t t = re->now[i];
      const code_t* code = &re->code.data[t.at];
      if (code->kind == MATCH) {
        if (whole && at < text.size) continue;
        found = true;
        *out_begin = t.begin;
        *out_end = at;
        break;  // what comes behind is preferred less
      }
      if (size && is_member(re, code, c))
        add(re, re->next, &next, t.at + 1, t.begin, text, at + size);
    }
    thread_t* swap = re->now;
    re->now = re->next;
    re->next = swap;
    count = next;
    if (at >= text.size || (!count && (found || whole))) return found;
    at += size;
  }
}

bool pestle_regex_is(pestle_regex_t* re, pestle_str_t text) {
  size_t begin, end;
  return search(re, text, 0, true, &begin, &end);
}

bool pestle_regex_find(pestle_regex_t* re, pestle_str_t text, size_t from,
                       size_t* out_begin, size_t* out_end) {
  return search(re, text, from, false, out_begin, out_end);
}
