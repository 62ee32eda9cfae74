// SPDX-License-Identifier: Apache-2.0
// What is known of the integers of a kernel: an interval for each value, affine
// forms over the values that are no arithmetic, and the conditions that hold
// where an instruction stands. Enough to prove that every access lies within
// its buffer; no solver.
//
//   interval  forward, exact for affine chains over loops of constant bounds
//   form      sum of coef * atom + constant: cancels what two addresses share
//   guard     a form that is <= 0 here: from `if`, from a mask, from select,
//             and, where x is no vector, x = c * (x / c) + x % c
//
// Private to kir_range.c, kir_verify.c and codegen/legalise/legalise_wide.c.
#ifndef PESTLE_CODEGEN_KIR_KIR_RANGE_H_
#define PESTLE_CODEGEN_KIR_KIR_RANGE_H_

#include "codegen/kir/kir_internal.h"

// Beyond +-2^61 nothing is known: arithmetic there might have wrapped.
#define PESTLE_KIR_UNKNOWN (INT64_C(1) << 62)

typedef struct pestle_kir_fact_range_t {
  int64_t lo, hi;
  bool fixed;  // constant once unrolled
  bool exact;  // did not wrap: a form may look through the instruction
} pestle_kir_fact_range_t;

#define PESTLE_KIR_FORM_TERMS 16
// The number of the lane, in forms of what lane l does.
#define PESTLE_KIR_LANE_ATOM (PESTLE_KIR_NONE - 1)

typedef struct pestle_kir_form_t {
  bool ok;  // false: too long, or overflowed
  unsigned count;
  int64_t constant;
  struct {
    uint32_t atom;
    int64_t coef;
  } terms[PESTLE_KIR_FORM_TERMS];
} pestle_kir_form_t;

// An interval as it was before a region refined it.
typedef struct pestle_kir_trail_t {
  uint32_t id;
  int64_t lo, hi;
} pestle_kir_trail_t;

typedef struct pestle_kir_frame_t {
  uint32_t begin;  // the FOR or IF
  size_t guard_count, trail_count, quotient_count;
  bool dead;  // never runs
} pestle_kir_frame_t;

typedef struct pestle_kir_ranges_t {
  const pestle_kir_t* k;
  pestle_allocator_t allocator;
  PESTLE_VEC(pestle_kir_fact_range_t) fact;
  PESTLE_VEC(pestle_kir_form_t) guard;
  PESTLE_VEC(uint32_t) quotient;  // divisions and remainders of open regions
  PESTLE_VEC(pestle_kir_trail_t) trail;
  PESTLE_VEC(pestle_kir_frame_t) frame;
  bool failed;  // out of memory
} pestle_kir_ranges_t;

void pestle_kir_ranges_init(pestle_allocator_t allocator, const pestle_kir_t* k,
                            pestle_kir_ranges_t* out_ranges);
void pestle_kir_ranges_deinit(pestle_kir_ranges_t* r);

// Takes instruction |id| in; they come in order, and are well-formed.
void pestle_kir_ranges_visit(pestle_kir_ranges_t* r, uint32_t id);

// Whether the current place is never reached.
bool pestle_kir_ranges_dead(const pestle_kir_ranges_t* r);

// The first and the last element that the access |id|, which is the last that
// was visited, may touch with an active lane.
void pestle_kir_ranges_access(pestle_kir_ranges_t* r, uint32_t id,
                              int64_t* out_lo, int64_t* out_hi);

// --- kir_form.c ---

void pestle_kir_form_init(pestle_kir_form_t* out_form);
// Adds coef * value |id|.
void pestle_kir_form_add(const pestle_kir_ranges_t* r, uint32_t id,
                         int64_t coef, pestle_kir_form_t* form);
void pestle_kir_form_add_atom(uint32_t atom, int64_t coef,
                              pestle_kir_form_t* form);
void pestle_kir_form_add_form(const pestle_kir_form_t* other, int64_t coef,
                              pestle_kir_form_t* form);
// The largest value that |form| may have under the guards of |r|, where the
// lane atom is below |lanes|.
int64_t pestle_kir_form_upper(const pestle_kir_ranges_t* r,
                              const pestle_kir_form_t* form, unsigned lanes);
int64_t pestle_kir_form_lower(const pestle_kir_ranges_t* r,
                              const pestle_kir_form_t* form, unsigned lanes);
// Bounds without guards.
void pestle_kir_form_bounds(const pestle_kir_ranges_t* r,
                            const pestle_kir_form_t* form, unsigned lanes,
                            int64_t* out_lo, int64_t* out_hi);
// Pushes what |condition| being |sense| says.
void pestle_kir_guards_push(pestle_kir_ranges_t* r, uint32_t condition,
                            bool sense);
// Pushes 0 <= |form| <= |most|.
void pestle_kir_guards_push_between(pestle_kir_ranges_t* r,
                                    const pestle_kir_form_t* form,
                                    int64_t most);

#endif  // PESTLE_CODEGEN_KIR_KIR_RANGE_H_
