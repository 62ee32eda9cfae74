// SPDX-License-Identifier: Apache-2.0
// The choices of a schedule, as data. Where a sketch has more than one way, it
// names them all with what it estimates for each and asks which to take; the
// answer is what it would take by itself, unless the nest wants another one: a
// line of pestle.lock, or the tuner that makes these lines.
//
// Every option of a choice gives the same results, bit by bit. A choice that changes the
// order of sums is fixed: explain shows it, but neither a lock nor the tuner may take
// another option.
#ifndef PESTLE_CODEGEN_SKETCH_CHOICE_H_
#define PESTLE_CODEGEN_SKETCH_CHOICE_H_

#include "codegen/nest/nest.h"

// The estimate of an option that nothing estimates.
#define PESTLE_NOT_ESTIMATED 0.0

// Whether somebody looks at the options beside the one that is taken: else a
// sketch need not list them.
bool pestle_choices_are_listed(const pestle_nest_t* nest);

// A choice to be made. Texts are static.
typedef struct pestle_question_t {
  const char* kind;
  // What the estimates are of ("cycles of a core"), or why there are none ("nobody
  // knows"): explain says it.
  const char* of;
} pestle_question_t;

// The one of |options|, |count| of them and at least one, that is taken: the
// one that |nest| wants for |q|, else |usual|. A kind that was asked before in
// |nest| gets a number ("tile.2"). Copies |options|. Out of memory is the nest's
// failure.
uint32_t pestle_choose(pestle_nest_t* nest, pestle_question_t q,
                       const pestle_option_t* options, uint32_t count,
                       uint32_t usual);
// Records that option |taken| was taken by rule, and what lost.
void pestle_choose_fixed(pestle_nest_t* nest, pestle_question_t q,
                         const pestle_option_t* options, uint32_t count,
                         uint32_t taken);
// The same, where there is nothing beside |name|.
void pestle_choose_only(pestle_nest_t* nest, const char* kind,
                        const char* name);
// A choice between no and yes, which cost |costs|.
bool pestle_choose_flag(pestle_nest_t* nest, pestle_question_t q,
                        const double costs[2], bool usual);

// A choice between integers, whose digits are the options' names.
typedef struct pestle_numbers_t {
  const int64_t* values;
  uint32_t count;
  int64_t usual;  // need not be among them
  // What one of them costs; NULL: not estimated.
  double (*cost)(const void* user, int64_t value);
  const void* user;
} pestle_numbers_t;
int64_t pestle_choose_number(pestle_nest_t* nest, pestle_question_t q,
                             const pestle_numbers_t* numbers);

// Appends "kind=name kind=name", in the order of the questions.
void pestle_choices_print(const pestle_nest_t* nest, pestle_strbuf_t* out);
// The value of |kind| in such a text; empty where it has none.
pestle_str_t pestle_choices_find(pestle_str_t text, pestle_str_t kind);
// Whether |d| is open: another option could be taken.
static inline bool pestle_choice_is_open(const pestle_choice_t* d) {
  return d->count > 1 && !d->fixed;
}
// Whether some choice of |nest| is.
bool pestle_choices_open(const pestle_nest_t* nest);
// Notes, for explain, each choice with what came next to it: estimated, and
// measured where |measured| ("kind:name=MICROSECONDS,..." or NULL) has it.
void pestle_choices_explain(pestle_nest_t* nest, const char* measured);

#endif  // PESTLE_CODEGEN_SKETCH_CHOICE_H_
