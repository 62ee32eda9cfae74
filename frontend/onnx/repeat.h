// SPDX-License-Identifier: Apache-2.0
// What Loop and Scan share: a body that runs trip after trip. It carries states from
// trip to trip and leaves a row of each scan output. A number of trips that is known
// gives pestle_onnx_for, with a row of each scan output stored a trip; few trips of a
// small body, or a body that changes the types of what it carries, are written out. Any
// other repetition is a while; its scan outputs have a row for each trip that there may
// be, of which those are real that were made.
//
// Extents that only a run tells (bounded.h): one that no trip changes is known inside by
// what it is outside, any other is carried beside the states.
//
// The body's types are not declared reliably, so that it is imported into a region that is
// thrown away, until it is known what it carries.
#ifndef PESTLE_FRONTEND_ONNX_REPEAT_H_
#define PESTLE_FRONTEND_ONNX_REPEAT_H_

#include "frontend/onnx/bounded.h"

// The most trips of a body that changes its types.
#define PESTLE_ONNX_MOST_COPIES 256

typedef struct pestle_onnx_repeat_t {
  pestle_onnx_call_t* call;
  const pestle_onnx_graph_t* graph;
  bool is_loop;  // the body takes a counter and a condition, and gives one
  int64_t trips;
  pestle_value_t* limit;      // of trips, where only a run tells it, or NULL
  bool guessed;               // |trips| is but what there is room for
  size_t states, rows, outs;  // carried, of scan inputs, scan outputs
  pestle_value_t** scans;     // the scan inputs, their axis in front
  const bool *reads_back, *stores_back;  // from the end; NULL: none does
  // What the trial has shown.
  pestle_type_t* types;  // of the states, then of the rows of the outs
  bool keeps_types, endless;
  // Of each axis of a state and of a row of an out, k * PESTLE_MAX_RANK + axis: its real
  // extent where no trip changes it, or NULL; and which one of |carried| extents it is, 0
  // for none.
  pestle_value_t** sizes;
  size_t* places;
  size_t carried;
} pestle_onnx_repeat_t;

// --- repeat.c ---

// Trip |i| of a loop in trip |around| (may be NULL) of those around it, as one number.
pestle_value_t* pestle_onnx_count_trip(pestle_onnx_call_t* call,
                                       pestle_value_t* around,
                                       pestle_value_t* i);

// The body of the call, or NULL with the error kept.
const pestle_onnx_graph_t* pestle_onnx_body_of(pestle_onnx_call_t* call);
// Imports the body as often as it takes to see what it gives; |states| are those before the
// first trip. |r->types| and what follows are told then. False on errors.
bool pestle_onnx_repeat_try(pestle_onnx_repeat_t* r,
                            pestle_value_t* const* states);
// One trip where the call's builder stands: |values| holds the states, room for the rows
// of the scan outputs and the carried extents, and what they are behind it. |*goes_on| is
// the body's condition, NULL for Scan. |carries|: within a loop, else what is carried is
// what it is.
bool pestle_onnx_repeat_trip(const pestle_onnx_repeat_t* r, pestle_value_t* i,
                             pestle_value_t* condition, bool carries,
                             pestle_value_t** values, pestle_value_t** goes_on);
// The carried extents behind |values|, before the first trip.
void pestle_onnx_repeat_begin(const pestle_onnx_repeat_t* r,
                              pestle_value_t** values);
// Notes what is real of |values| behind the last trip.
void pestle_onnx_repeat_end(const pestle_onnx_repeat_t* r,
                            pestle_value_t** values);
// What |values| have in them: states, outs, carried extents.
static inline size_t pestle_onnx_repeat_width(const pestle_onnx_repeat_t* r) {
  return r->states + r->outs + r->carried;
}
// Trip |i|, or that which is so far from the end where |backwards| says so.
pestle_value_t* pestle_onnx_repeat_row(const pestle_onnx_repeat_t* r,
                                       const bool* backwards, size_t which,
                                       pestle_value_t* i);
// Scan output |k| before the first trip, with room for r->trips rows.
pestle_value_t* pestle_onnx_repeat_empty(const pestle_onnx_repeat_t* r,
                                         size_t k);

// --- repeat_known.c ---

// r->trips trips, |values| from the states to all outputs; written out if they are few,
// or must be.
void pestle_onnx_repeat_known(pestle_onnx_repeat_t* r, pestle_value_t** values);
void pestle_onnx_repeat_write_out(pestle_onnx_repeat_t* r,
                                  pestle_value_t** values);
// The rows of scan output |k| of r->trips trips, r->outs a trip, as one.
pestle_value_t* pestle_onnx_repeat_join(const pestle_onnx_repeat_t* r,
                                        pestle_value_t** rows, size_t k);

// --- repeat_while.c ---

// As many trips as |limit|, which may be NULL, and |condition|, which may be too, say.
// With scan outputs r->trips is how many rows they have room for.
void pestle_onnx_repeat_while(pestle_onnx_repeat_t* r, pestle_value_t** values,
                              pestle_value_t* limit, pestle_value_t* condition);

static inline pestle_value_t* pestle_onnx_true(pestle_onnx_call_t* call) {
  const pestle_type_t type = {.dtype = PESTLE_I1};
  return pestle_onnx_splat_int(call, &type, 1);
}

#endif  // PESTLE_FRONTEND_ONNX_REPEAT_H_
