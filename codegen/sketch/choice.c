// SPDX-License-Identifier: Apache-2.0
#include "codegen/sketch/choice.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum {
  SHOWN = 6,         // losers that explain names
  MOST_NUMBERS = 16  // options of pestle_choose_number()
};

bool pestle_choices_are_listed(const pestle_nest_t* nest) {
  return nest->wanted || nest->lists_options || nest->why;
}

// --- Texts of choices ---

pestle_str_t pestle_choices_find(pestle_str_t text, pestle_str_t kind) {
  pestle_str_t field, name, value;
  while (pestle_str_next(&text, ' ', &field)) {
    if (pestle_str_split(field, '=', &name, &value) &&
        pestle_str_equal(name, kind)) {
      return value;
    }
  }
  return (pestle_str_t){0};
}

void pestle_choices_print(const pestle_nest_t* nest, pestle_strbuf_t* out) {
  for (size_t i = 0; i < nest->choices.size; ++i) {
    const pestle_choice_t* d = &nest->choices.data[i];
    pestle_strbuf_appendf(out, "%s%s=%s", i ? " " : "", d->kind,
                          d->options[d->taken].name);
  }
}

bool pestle_choices_open(const pestle_nest_t* nest) {
  for (size_t i = 0; i < nest->choices.size; ++i) {
    if (pestle_choice_is_open(&nest->choices.data[i])) return true;
  }
  return false;
}

// --- Questions ---

// |kind|, with a number where it was asked before.
static const char* unique_kind(pestle_nest_t* nest, const char* kind) {
  size_t size = strlen(kind), times = 1;
  for (size_t i = 0; i < nest->choices.size; ++i) {
    const char* other = nest->choices.data[i].kind;
    times +=
        !strncmp(other, kind, size) && (!other[size] || other[size] == '.');
  }
  if (times == 1) return kind;
  char text[64];
  (void)snprintf(text, sizeof(text), "%s.%zu", kind, times);
  return pestle_arena_strdup(nest->arena, text);
}

static uint32_t find_wanted(pestle_nest_t* nest, const pestle_choice_t* d) {
  if (!nest->wanted) return d->usual;
  pestle_str_t name =
      pestle_choices_find(pestle_str(nest->wanted), pestle_str(d->kind));
  if (!name.size && (d->fixed || nest->wants_first)) return d->usual;
  for (uint32_t i = 0; i < d->count; ++i) {
    bool may = !d->fixed || i == d->usual;
    if (may && pestle_str_equal_c(name, d->options[i].name)) return i;
  }
  nest->stale = true;
  return d->usual;
}

// Makes choice |d|, of which all is said but for |kind|, which is made unique, and
// what is taken.
static uint32_t choose(pestle_nest_t* nest, pestle_choice_t d) {
  d.kind = unique_kind(nest, d.kind);
  d.options =
      pestle_arena_copy(nest->arena, d.options, d.count * sizeof(*d.options),
                        _Alignof(pestle_option_t));
  if (!d.kind || !d.options) {
    pestle_nest_fail_memory(nest);
    return d.usual;
  }
  d.taken = find_wanted(nest, &d);
  if (!pestle_vec_push(&nest->choices, d)) pestle_nest_fail_memory(nest);
  return d.taken;
}

uint32_t pestle_choose(pestle_nest_t* nest, pestle_question_t q,
                       const pestle_option_t* options, uint32_t count,
                       uint32_t usual) {
  return choose(nest, (pestle_choice_t){.kind = q.kind,
                                        .of = q.of,
                                        .options = options,
                                        .count = count,
                                        .usual = usual});
}

void pestle_choose_fixed(pestle_nest_t* nest, pestle_question_t q,
                         const pestle_option_t* options, uint32_t count,
                         uint32_t taken) {
  (void)choose(nest, (pestle_choice_t){.kind = q.kind,
                                       .of = q.of,
                                       .options = options,
                                       .count = count,
                                       .usual = taken,
                                       .fixed = true});
}

void pestle_choose_only(pestle_nest_t* nest, const char* kind,
                        const char* name) {
  pestle_option_t option = {.cost = PESTLE_NOT_ESTIMATED};
  (void)snprintf(option.name, sizeof(option.name), "%s", name);
  pestle_choose_fixed(nest, (pestle_question_t){kind, ""}, &option, 1, 0);
}

bool pestle_choose_flag(pestle_nest_t* nest, pestle_question_t q,
                        const double costs[2], bool usual) {
  pestle_option_t options[] = {{"no", costs[0]}, {"yes", costs[1]}};
  return pestle_choose(nest, q, options, 2, usual) == 1;
}

static pestle_option_t number_option(const pestle_nest_t* nest,
                                     const pestle_numbers_t* x, int64_t value) {
  pestle_option_t o = {.cost = PESTLE_NOT_ESTIMATED};
  (void)snprintf(o.name, sizeof(o.name), "%" PRId64, value);
  if (x->cost && pestle_choices_are_listed(nest))
    o.cost = x->cost(x->user, value);
  return o;
}

int64_t pestle_choose_number(pestle_nest_t* nest, pestle_question_t q,
                             const pestle_numbers_t* x) {
  pestle_option_t options[MOST_NUMBERS] = {0};
  uint32_t at = UINT32_MAX, n = 0;
  for (uint32_t i = 0; i < x->count && n < MOST_NUMBERS; ++i) {
    if (x->values[i] == x->usual) at = n;
    options[n++] = number_option(nest, x, x->values[i]);
  }
  if (at == UINT32_MAX) {  // beside the list: its last place is for it
    at = n < MOST_NUMBERS ? n++ : n - 1;
    options[at] = number_option(nest, x, x->usual);
  }
  at = pestle_choose(nest, q, options, n, at);
  int64_t value = x->usual;
  (void)pestle_str_parse_i64(pestle_str(options[at].name), &value);
  return value;
}

// --- Why ---

// What |measured| has for an option, in microseconds; 0: nothing.
static double find_measured(const char* measured, const char* kind,
                            const char* name) {
  char key[80];
  pestle_str_t rest = pestle_str(measured ? measured : ""), field, value;
  (void)snprintf(key, sizeof(key), "%s:%s", kind, name);
  while (pestle_str_next(&rest, ',', &field)) {
    pestle_str_t text;
    double us;
    if (pestle_str_split(field, '=', &text, &value) &&
        pestle_str_equal_c(text, key) && pestle_str_parse_f64(value, &us)) {
      return us;
    }
  }
  return 0;
}

typedef struct loser_t {
  uint32_t option;
  double share;  // of what the taken one costs; 0: unknown
  double us;
} loser_t;

static bool comes_before(const loser_t* a, const loser_t* b) {
  if ((a->us > 0) != (b->us > 0)) return a->us > 0;
  if (a->us > 0 && a->us != b->us) return a->us < b->us;
  if ((a->share > 0) != (b->share > 0)) return a->share > 0;
  return a->share < b->share;
}

// The |SHOWN| losers that came nearest, measured ones first.
static uint32_t nearest(const pestle_choice_t* d, const char* measured,
                        loser_t out[SHOWN]) {
  uint32_t n = 0;
  const pestle_option_t* won = &d->options[d->taken];
  for (uint32_t i = 0; i < d->count; ++i) {
    if (i == d->taken) continue;
    const pestle_option_t* o = &d->options[i];
    loser_t x = {.option = i, .us = find_measured(measured, d->kind, o->name)};
    if (o->cost > 0 && won->cost > 0) x.share = o->cost / won->cost;
    uint32_t at = n < SHOWN ? n++ : SHOWN;
    for (; at > 0 && comes_before(&x, &out[at - 1]); --at) {
      if (at < SHOWN) out[at] = out[at - 1];
    }
    if (at < SHOWN) out[at] = x;
  }
  return n;
}

static void append_share(const char* what, double share, pestle_strbuf_t* out) {
  double percent = 100 * (share - 1);
  pestle_strbuf_appendf(out, "%s%+.*f %%", what,
                        percent < 10 && percent > -10 ? 1 : 0, percent);
}

static void explain_one(const pestle_nest_t* nest, const pestle_choice_t* d,
                        const char* measured, pestle_strbuf_t* out) {
  loser_t losers[SHOWN];
  uint32_t n = nearest(d, measured, losers);
  const pestle_option_t* won = &d->options[d->taken];
  double us = find_measured(measured, d->kind, won->name);
  pestle_strbuf_appendf(out, "choice of %s: %s", d->kind, won->name);
  if (nest->wanted && d->taken != d->usual) {
    pestle_strbuf_appendf(out, " by the lock, not %s",
                          d->options[d->usual].name);
  }
  if (us > 0) pestle_strbuf_appendf(out, ", measured %.3g us", us);
  pestle_strbuf_append_c(out, d->fixed ? ", by rule; lost: " : "; lost: ");
  bool estimated = false;
  for (uint32_t i = 0; i < n; ++i) {
    const loser_t* x = &losers[i];
    pestle_strbuf_appendf(out, "%s%s", i ? ", " : "",
                          d->options[x->option].name);
    if (x->share > 0) append_share(" est. ", x->share, out);
    if (x->us > 0 && us > 0) append_share(" measured ", x->us / us, out);
    estimated |= x->share > 0;
  }
  if (d->count - 1 > n) {
    pestle_strbuf_appendf(out, "; %" PRIu32 " more", d->count - 1 - n);
  }
  pestle_strbuf_appendf(out, estimated ? "; est. in %s\n" : "; no est.: %s\n",
                        d->of);
}

void pestle_choices_explain(pestle_nest_t* nest, const char* measured) {
  if (!nest->why) return;
  for (size_t i = 0; i < nest->choices.size; ++i) {
    const pestle_choice_t* d = &nest->choices.data[i];
    if (d->count > 1) explain_one(nest, d, measured, nest->why);
  }
}
