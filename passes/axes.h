// SPDX-License-Identifier: Apache-2.0
// Which axes of one tensor are which of another, seen through views: what a
// transpose moved, a reshape merged or split and a broadcast repeated. Axes are
// lists of atoms, outermost first; a reshape that splits an axis splits its
// atom. Axes of one element are empty lists: reshapes may drop and insert them.
#ifndef PESTLE_PASSES_AXES_H_
#define PESTLE_PASSES_AXES_H_

#include "passes/util.h"

enum { PESTLE_AXES_ATOMS = 96, PESTLE_AXES_LIST = 24 };

// The atoms of one question. Number 0 is none.
typedef struct pestle_axes_t {
  struct {
    int64_t extent;
    uint8_t outer, inner;  // what it was split into; 0: it is whole
    uint8_t same;          // the atom that it was found to be; 0: itself
    bool fixed;            // no two of these are the same
  } atoms[PESTLE_AXES_ATOMS];
  uint8_t count;
  bool full;  // something did not fit: nothing that is told is to be relied on
} pestle_axes_t;

typedef struct pestle_axis_t {
  uint8_t atoms[PESTLE_AXES_LIST];
  uint8_t count;
} pestle_axis_t;

// The axes of one tensor.
typedef struct pestle_axes_list_t {
  pestle_axis_t axis[PESTLE_MAX_RANK];
  int32_t rank;
} pestle_axes_list_t;

// An axis that is no other's yet. |fixed|: it is none of the other fixed ones.
pestle_axis_t pestle_axes_new(pestle_axes_t* t, int64_t extent, bool fixed);
void pestle_axes_of(pestle_axes_t* t, const pestle_type_t* type, bool fixed,
                    pestle_axes_list_t* out);

// Writes whole atoms alone.
void pestle_axes_expand(pestle_axes_t* t, pestle_axis_t* axis);
int64_t pestle_axes_extent(const pestle_axes_t* t, const pestle_axis_t* axis);
// Adds |more| as the innermost of |axis|.
void pestle_axes_append(pestle_axes_t* t, pestle_axis_t* axis,
                        const pestle_axis_t* more);
// How many of |axis|'s atoms are in |of|.
size_t pestle_axes_common(pestle_axes_t* t, pestle_axis_t* axis,
                          pestle_axis_t* of);

// States that |a| and |b| are one axis. False: they cannot be.
bool pestle_axes_equate(pestle_axes_t* t, pestle_axis_t a, pestle_axis_t b);

// Whether |*value|, with |*axes|, is a view; then both are those of its operand.
// |spread|: through a broadcast that repeats elements too; the operand lacks
// atoms then. Only values that nobody else uses are gone through with |alone|.
bool pestle_axes_step(pestle_axes_t* t, bool spread, bool alone,
                      pestle_value_t** value, pestle_axes_list_t* axes);
// As far as it goes.
void pestle_axes_trace(pestle_axes_t* t, bool spread, bool alone,
                       pestle_value_t** value, pestle_axes_list_t* axes);

// |value|, whose axes are |axes|, with the axes |to|. Atoms of |to| that it
// lacks are repeated if |spread|, else an axis that lacks all its atoms has one
// element. NULL where |to| lacks atoms of |axes| or there is no room.
pestle_value_t* pestle_axes_arrange(pestle_axes_t* t, pestle_formula_t* f,
                                    pestle_value_t* value,
                                    const pestle_axes_list_t* axes,
                                    const pestle_axes_list_t* to, bool spread);

#endif  // PESTLE_PASSES_AXES_H_
