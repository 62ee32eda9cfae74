// SPDX-License-Identifier: Apache-2.0
// Loops of a known number of turns, the op pestle.scan (its row in ops.def says what it
// computes): how one is built, read and walked, and the while that it stands for.
//
// The body captures nothing: all that it reads are its arguments, in this order, and it
// returns the values of the third column.
//
//   operand             argument of the body      returned      result
//   carry i             carry                     carry         carry after the last turn
//   xs i [length, ..]   x, the element [..]
//   constant i          the same value
//                                                 y [..]        ys i [length, ..]
//
// Reading and walking:
//
//   pestle_scan_t s = pestle_scan_read(node);
//   for (size_t i = 0; i < s.carry_count; ++i)
//     visit(s.init[i].value, s.carry[i], s.next[i].value, &s.final[i]);
//   for (size_t i = 0; i < s.xs_count; ++i) visit(s.xs[i].value, s.x[i]);
//   for (size_t i = 0; i < s.constant_count; ++i)
//     visit(s.constants[i].value, s.constant[i]);
//   for (size_t i = 0; i < s.ys_count; ++i) visit(s.y[i].value, &s.ys[i]);
//   for (pestle_node_t* n = s.body->first; n != s.body->last; n = n->next) ..
//
// Building:
//
//   pestle_scan_spec_t spec = {.init = carries, .carry_count = 1, .xs = &xs,
//                              .xs_count = 1, .length = 10};
//   pestle_scan_body_t body;
//   PESTLE_TRY(pestle_scan_begin(&builder, &spec, &body));
//   pestle_formula_t f = pestle_formula_make(body.builder);
//   pestle_value_t* y = pestle_f_add(&f, body.carry[0], body.x[0]);
//   PESTLE_TRY(pestle_scan_end(&builder, &spec, &body, f.status, &y, &y, 1, &node));
#ifndef PESTLE_IR_SCAN_H_
#define PESTLE_IR_SCAN_H_

#include "ir/graph.h"

// --- Reading ---

// A scan as arrays into its node, its body and its return; good until it is edited.
typedef struct pestle_scan_t {
  pestle_node_t* node;
  pestle_block_t* body;
  int64_t length, unroll;  // |unroll| is at least 1
  bool reverse;
  size_t carry_count, xs_count, constant_count, ys_count;
  pestle_use_t *init, *xs, *constants;      // operands
  pestle_value_t **carry, **x, **constant;  // arguments of the body
  pestle_use_t *next, *y;                   // what the body returns
  pestle_value_t *final, *ys;               // results
} pestle_scan_t;

// |node| is a scan that the verifier accepts.
pestle_scan_t pestle_scan_read(const pestle_node_t* node);

// What argument |index| of a body is where the operand there is |operand|: its type, or
// of xs that of an element. False: there is no such type (xs of rank 0).
bool pestle_scan_argument_type(size_t index, int64_t carry_count,
                               int64_t xs_count, const pestle_type_t* operand,
                               pestle_type_t* out_type);
// The same of an operand of |node|, a scan.
bool pestle_scan_node_argument_type(const pestle_node_t* node, size_t index,
                                    const pestle_type_t* operand,
                                    pestle_type_t* out_type);
// The type of |stacked| without its dimension 0, or false where it has none.
bool pestle_scan_element_type(const pestle_type_t* stacked,
                              pestle_type_t* out_element);
// The type of |length| elements, or false where it has too many dimensions.
bool pestle_scan_stacked_type(const pestle_type_t* element, int64_t length,
                              pestle_type_t* out_stacked);

// --- Building ---

typedef struct pestle_scan_spec_t {
  pestle_value_t* const* init;
  size_t carry_count;
  pestle_value_t* const* xs;
  size_t xs_count;
  pestle_value_t* const* constants;
  size_t constant_count;
  int64_t length, unroll;
  bool reverse;
} pestle_scan_spec_t;

// A body that is being built: ops go to |builder|'s place.
typedef struct pestle_scan_body_t {
  pestle_builder_t builder;
  pestle_region_t* region;
  pestle_value_t **carry, **x, **constant;  // its arguments
} pestle_scan_body_t;

// Begins the body of a scan that is to go to |builder|'s place.
PESTLE_NODISCARD pestle_status_t
pestle_scan_begin(const pestle_builder_t* builder,
                  const pestle_scan_spec_t* spec, pestle_scan_body_t* out_body);
// Ends the body with |next|, one value a carry, and |ys|, and makes the scan. |status| is
// what building the body came to: a failure is handed back, and the body is discarded as
// after every failure here.
PESTLE_NODISCARD pestle_status_t
pestle_scan_end(pestle_builder_t* builder, const pestle_scan_spec_t* spec,
                pestle_scan_body_t* body, pestle_status_t status,
                pestle_value_t* const* next, pestle_value_t* const* ys,
                size_t ys_count, pestle_node_t** out_node);

// --- Expanding ---

// Puts the while that |node|, a scan of known extents, stands for in its place, or its
// turns one after the other where they are no more than |unroll|. The while carries the
// number of turns done, the carries, then the stacks, which each turn updates in place.
PESTLE_NODISCARD pestle_status_t pestle_scan_expand(pestle_node_t* node);

// --- Recognising ---

// The scan that takes the place of |loop|, a while that counts from one number to another;
// NULL where it does not, and nothing is changed. Calls in the body are to be inlined before,
// for an index behind one is not seen. scan_recognise.c says what becomes what.
PESTLE_NODISCARD pestle_status_t
pestle_scan_recognise(pestle_node_t* loop, pestle_node_t** out_scan);

// How often a counter of |dtype| that begins as |start| and grows by |step| passes the
// test "counter |op| limit"; -1: not at all, or that is not known.
int64_t pestle_scan_count(pestle_op_t op, int64_t start, int64_t step,
                          int64_t limit, pestle_dtype_t dtype);
// The comparison |op| with its operands changed for each other.
pestle_op_t pestle_scan_mirrored(pestle_op_t op);

// --- Written out in scalars ---

// The most numbers that a tensor of such a body has, and all that it keeps from turn to
// turn, reads and stacks up in one.
#define PESTLE_SCAN_MOST_SCALARS 128

// How many simple operations a turn takes when each element of each value of the body is a
// number of its own and all loops are written out; -1: the body has ops of which that is not
// known, or values of more elements than that makes sense for. Constants of any size may be
// looked up by dynamic slices.
int64_t pestle_scan_scalar_ops(const pestle_scan_t* s);
// Whether |constant| is only read by dynamic slices, so that it may have any size.
bool pestle_scan_is_looked_up(const pestle_scan_t* s, size_t constant);

// --- Element by element ---

// So many elements are worth a vector.
#define PESTLE_SCAN_LEAST_WIDE 8

// How many simple operations a turn takes for each element where all values have
// |*out_elements| of them, each made of those at its own place, or one, which goes with all;
// -1: some value is made otherwise.
int64_t pestle_scan_wide_ops(const pestle_scan_t* s, int64_t* out_elements);

#endif  // PESTLE_IR_SCAN_H_
