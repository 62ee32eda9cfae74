// SPDX-License-Identifier: Apache-2.0
// Schedule primitives: each edits the nest when its condition holds and says why not
// otherwise (INVALID_ARGUMENT). Primitives that were applied are kept as data in
// nest->primitives: printed in dumps, part of the kernel's note, and enough to make
// the same kernel again from a fresh lowering.
//
// A primitive is a row of PESTLE_PRIMS (codegen/nest/primitive.h), a function below
// with its schedule_<x>.c, and its cases in schedule_apply.c.
//
// codegen/schedule/ is how a nest may be changed, a file a primitive or two.
// codegen/schedule/ knows nothing of when a change pays, nor of the flat form.
#ifndef PESTLE_CODEGEN_SCHEDULE_SCHEDULE_H_
#define PESTLE_CODEGEN_SCHEDULE_SCHEDULE_H_

#include "codegen/nest/nest.h"
#include "pestle/plugin.h"

// Applies |primitive| by calling the function below that it stands for.
PESTLE_NODISCARD pestle_status_t
pestle_schedule_apply(pestle_nest_t* nest, const pestle_primitive_t* primitive);
// The primitives of |nest|, one a line.
void pestle_schedule_print(const pestle_nest_t* nest, pestle_strbuf_t* out);

// The primitive of a template, use->row: it makes the kernel from here on, however its
// loops look, and no other template can. INVALID_ARGUMENT: the nest is none that the
// template takes.
PESTLE_NODISCARD pestle_status_t pestle_schedule_template(
    pestle_nest_t* nest, const pestle_nest_template_t* use);

// inline P ...: the bodies of all stages with |inlined[stage]| replace their
// reads. Legal for map stages that write no result.
PESTLE_NODISCARD pestle_status_t pestle_schedule_inline(pestle_nest_t* nest,
                                                        const bool* inlined);
// fuse a b -> a: two adjacent root axes, both of results or both reduced, become one.
// Returns without change and |*out_done| false where an index would need div or mod
// afterwards. Of a
// tensor that the stage keeps in the kernel two dims become one, too: its readers
// then read it at one sum.
PESTLE_NODISCARD pestle_status_t pestle_schedule_fuse(pestle_nest_t* nest,
                                                      uint32_t stage,
                                                      uint32_t outer_root,
                                                      bool* out_done);
// flatten a b -> a: the same, where what is read is divided by the extent of b: of a map
// that writes both in one run, b being 2, 4 or 8 long, so that a vector's lanes lie near
// each other; and of any two axes of a reduction, so that lanes share both.
PESTLE_NODISCARD pestle_status_t pestle_schedule_flatten(pestle_nest_t* nest,
                                                         uint32_t stage,
                                                         uint32_t outer_root,
                                                         bool* out_done);
// unfuse a f -> o i: the map axis |axis|, of a stage of which none is split yet, becomes
// two, f steps of the second for one of the first; so do the dims of what the stage
// keeps in the kernel. What was divided by f is the first axis then.
PESTLE_NODISCARD pestle_status_t pestle_schedule_unfuse(pestle_nest_t* nest,
                                                        uint32_t stage,
                                                        uint32_t axis,
                                                        int64_t factor);
// Whether that can be done. Reads of the tensor |aligned| (-1: none) are taken to
// follow: its dims lie along the same axes.
PESTLE_NODISCARD pestle_status_t pestle_nest_may_fuse(pestle_nest_t* nest,
                                                      uint32_t stage,
                                                      uint32_t outer_root,
                                                      int32_t aligned,
                                                      bool* out_may);
// split a f -> o i: emission peels the tail. |a| a leaf; f > 0.
PESTLE_NODISCARD pestle_status_t
pestle_schedule_split(pestle_nest_t* nest, uint32_t stage, uint32_t axis,
                      int64_t factor, uint32_t* out_outer, uint32_t* out_inner);
// reorder: |order| holds all leaves of the stage. A reduction axis may stand outside
// of a map axis: the accumulators then hold the whole inner box.
PESTLE_NODISCARD pestle_status_t pestle_schedule_reorder(pestle_nest_t* nest,
                                                         uint32_t stage,
                                                         const uint32_t* order,
                                                         uint32_t count);
// permute: |axes| holds all map axes of the stage, none split yet, whose results are
// kept in the kernel: their dims lie in this order, the last one's elements side by
// side, and its loops begin in it.
PESTLE_NODISCARD pestle_status_t pestle_schedule_permute(pestle_nest_t* nest,
                                                         uint32_t stage,
                                                         const uint32_t* axes,
                                                         uint32_t count);
// at P, (C, axis): P runs under that loop of C, on the box that is read there.
// |axis| UINT32_MAX: before all loops of C.
PESTLE_NODISCARD pestle_status_t pestle_schedule_at(pestle_nest_t* nest,
                                                    uint32_t stage,
                                                    uint32_t consumer,
                                                    uint32_t axis);
// store P private | shared.
PESTLE_NODISCARD pestle_status_t pestle_schedule_store(pestle_nest_t* nest,
                                                       uint32_t stage,
                                                       pestle_scope_t scope);
// vectorise, unroll, bind group: the kind of a leaf. A vectorised reduction axis
// must be rfactored. Group axes are the outermost ones of a root stage.
PESTLE_NODISCARD pestle_status_t pestle_schedule_mark(pestle_nest_t* nest,
                                                      uint32_t stage,
                                                      uint32_t axis,
                                                      pestle_mark_t mark);
// rfactor S a: partial results along the reduction leaf |a|, combined at the end in
// a fixed tree. Float sums and products need reassociation.
PESTLE_NODISCARD pestle_status_t pestle_schedule_rfactor(pestle_nest_t* nest,
                                                         uint32_t stage,
                                                         uint32_t axis,
                                                         bool reassociate);
// partial S.k f: the reduction S becomes a reduction of partial results, one a block of
// |factor| coordinates of its reduction axis |axis|, over the blocks in order. The
// partial results are a stage of their own, |*out_partial|, with one more map
// axis, the first: the block. It takes S's other reduction axes along. Float sums
// and products need reassociation. Primitives of S follow this one.
PESTLE_NODISCARD pestle_status_t pestle_schedule_partial(
    pestle_nest_t* nest, uint32_t stage, uint32_t axis, int64_t factor,
    bool reassociate, uint32_t* out_partial);
// online O.o : M L ...: the reduction M (a maximum) and the sums L ... and O step in
// one loop, that of O. Each sum adds terms that have the factor exp(x - M);
// where M grows they are scaled by exp(M before - M after). So the terms may
// be made from the maximum so far, in one pass. |reductions| holds M, then the sums
// other than O; each has one reduction axis, as long as |axis|, and leading map
// axes as O has. M may be read in such factors, and after the loop, alone.
PESTLE_NODISCARD pestle_status_t pestle_schedule_online(
    pestle_nest_t* nest, uint32_t stage, uint32_t axis,
    const uint32_t* reductions, uint32_t count, bool reassociate);
// join S.k l: the reduction axis |outer| and the one behind it, |inner|, become one,
// as long as both. What S reads moves as far for a step of the first as for the
// whole of the second; the order of what is added stays.
PESTLE_NODISCARD pestle_status_t pestle_schedule_join(pestle_nest_t* nest,
                                                      uint32_t stage,
                                                      uint32_t outer,
                                                      uint32_t inner);
bool pestle_nest_may_join(pestle_nest_t* nest, uint32_t stage, uint32_t outer,
                          uint32_t inner);
// dot S.k n: each step of reduction axis |axis| takes |width| neighbouring elements of a
// sum of products, as words of 32 bits: 2 of bf16, added as f32, or 4 of bytes,
// added as i32. Past the axis' end they are 0. Float sums need reassociation.
// Primitives of S follow this one, but for inline.
PESTLE_NODISCARD pestle_status_t pestle_schedule_dot(pestle_nest_t* nest,
                                                     uint32_t stage,
                                                     uint32_t axis,
                                                     int64_t width,
                                                     bool reassociate);
// How many elements of |axis| that takes of |stage| at a time; 0: it is not
// legal, but for the reassociation.
int64_t pestle_nest_dot_width(const pestle_nest_t* nest, uint32_t stage,
                              uint32_t axis);
// flip S: S reduces such words of bytes that have a sign on both sides, or have
// none. The bytes of the operand that does not move along the last map axis are
// moved by 128, to the other kind, and 128 times the sums of the other operand's,
// a stage of its own, |*out_sums|, are taken off where S is read. Exact, since
// sums wrap.
PESTLE_NODISCARD pestle_status_t pestle_schedule_flip(pestle_nest_t* nest,
                                                      uint32_t stage,
                                                      uint32_t* out_sums);
// pack t by n f: the constant |tensor|, read once in |stage| by an affine
// index, is laid out [other map axes][n/f][reduction axes][f] when the plan is made.
// Where other stages read it too it becomes pestle_schedule_own()'s.
PESTLE_NODISCARD pestle_status_t pestle_schedule_pack(pestle_nest_t* nest,
                                                      uint32_t stage,
                                                      uint32_t* tensor,
                                                      uint32_t axis,
                                                      int64_t factor);
// The tensor by which |stage| reads argument |tensor| and no other stage does, so that
// its layout may change: |tensor|, or another name of that argument where other stages
// read it, whose reads stay.
uint32_t pestle_schedule_own(pestle_nest_t* nest, uint32_t stage,
                             uint32_t tensor);
// split_read S t: what the second factor of the product |stage| reads of the argument
// |tensor| goes by a name of its own: it is packed, copied or neither whatever
// becomes of what the first one reads of it, elsewhere.
bool pestle_schedule_may_split_read(pestle_nest_t* nest, uint32_t stage,
                                    uint32_t tensor);
PESTLE_NODISCARD pestle_status_t pestle_schedule_split_read(pestle_nest_t* nest,
                                                            uint32_t stage,
                                                            uint32_t tensor);
// stage t: a copy of what |stage| reads of |tensor|, over the axes that the
// read depends on, in their order; placed by later primitives. |*out_copy| is its
// stage. It keeps the read's guard, which may test these axes, but of no reduction.
PESTLE_NODISCARD pestle_status_t pestle_schedule_stage(pestle_nest_t* nest,
                                                       uint32_t stage,
                                                       uint32_t tensor,
                                                       uint32_t* out_copy);
// Whether the guard of |read|, if it has one, lets |stage| copy it.
bool pestle_schedule_may_stage(const pestle_nest_stage_t* stage,
                               const pestle_expr_t* read);
// transpose S: the copy S of an argument, split so that its innermost loops are
// an unrolled part of its last axis and a vector of the axis along which the
// argument is contiguous, both of as many steps, is read along the vector and
// kept in registers, transposed: vectors along the last axis.
PESTLE_NODISCARD pestle_status_t pestle_schedule_transpose(pestle_nest_t* nest,
                                                           uint32_t stage);
// stream S: the stores of the last stage S go past the caches. Its results
// overwrite no argument, and whole vectors of them are aligned.
PESTLE_NODISCARD pestle_status_t pestle_schedule_stream(pestle_nest_t* nest,
                                                        uint32_t stage);
// prefetch S t at a [like u] by n [share m]: each step of loop a of S asks for elements
// of argument t before it needs them, so that memory and arithmetic overlap. They lie n
// elements behind the place where S is in argument u; u is t unless it is named. A result
// is asked for to be written. The place may lie behind the end: it is a hint. There are
// three forms:
//  - Next row: a is S's innermost loop, and S reads u once, by an affine index.
//  - Results: S is the last stage, t lies in or like u, a result of S, and a is around
//    loops that are no groups or lanes. Before the stages under a run, a step asks for all
//    lines that they write: stores leave a core in order, and one missing line holds up
//    those behind it. Windows likewise ask for what they read around their results.
//  - Share m: u is t. A step of a loop counts if it is a loop of the reduction S, neither
//    unrolled nor lanes, or one around S that does not change what S reads of t; a is the
//    innermost such loop. Step number k asks for the m elements from n + m k on, behind
//    the first that the reduction reads. So what the next tiles read arrives while these
//    are computed.
PESTLE_NODISCARD pestle_status_t
pestle_schedule_prefetch(pestle_nest_t* nest, const pestle_prefetch_t* f);
bool pestle_nest_may_prefetch(pestle_nest_t* nest, const pestle_prefetch_t* f);
// Whether the steps of loop |axis| of a reduction count on, and the innermost of |stage|'s
// loops that do; -1: none.
bool pestle_nest_counts_on(const pestle_nest_t* nest, uint32_t axis);
int32_t pestle_nest_counting_loop(const pestle_nest_t* nest, uint32_t stage);
// border S [reassoc]: the reduction S reads padding by tests. Its unrolled loops are cut
// where the padding begins, so that no step between asks; a test that a serial loop
// decides is one branch around what is within that loop. With |reassociate| there is
// nothing where it fails: a padded 0 times an infinite weight is no NaN then.
PESTLE_NODISCARD pestle_status_t pestle_schedule_border(pestle_nest_t* nest,
                                                        uint32_t stage,
                                                        bool reassociate);
bool pestle_nest_may_border(pestle_nest_t* nest, uint32_t stage,
                            bool reassociate);
// Whether |stage| may have the primitive stream; else |*out_why| is a sentence's end.
bool pestle_nest_may_stream(pestle_nest_t* nest, uint32_t stage,
                            const char** out_why);
// The position among the map axes of |stage|, which reads one argument, of the
// axis along which the argument is contiguous; -1: none, or it is the last.
int32_t pestle_nest_transposed_axis(pestle_nest_t* nest, uint32_t stage);
// epilogue S scratch: consumers of the reduction S read a copy of its tile, which
// later primitives place in shared scope. |*out_copy| is the copy's stage.
PESTLE_NODISCARD pestle_status_t pestle_schedule_epilogue_scratch(
    pestle_nest_t* nest, uint32_t stage, uint32_t* out_copy);

// Elements that one step of loop |leaf| moves its root axis, and that axis.
int64_t pestle_nest_leaf_step(const pestle_nest_t* nest, uint32_t leaf);
uint32_t pestle_nest_leaf_root(const pestle_nest_t* nest, uint32_t leaf);

// The single read of |tensor| in |stage|'s values, which may share it, or NULL if
// none or several.
const pestle_expr_t* pestle_schedule_find_read(pestle_nest_t* nest,
                                               uint32_t stage, uint32_t tensor);

// What a stage computes where it runs: the hull of what is read there, over the
// loops that are open. Without a reader at that place it is the whole tensor.
// As emission finds it for whole tiles; rests are smaller.
typedef struct pestle_nest_box_t {
  const pestle_affine_t* origin[PESTLE_MAX_RANK];
  int64_t extent[PESTLE_MAX_RANK];
  int64_t count;  // elements
} pestle_nest_box_t;
// One a stage, in the nest's arena.
PESTLE_NODISCARD pestle_status_t
pestle_nest_boxes(pestle_nest_t* nest, pestle_nest_box_t** out_boxes);
enum {
  // Copies of a stage's body that unrolled loops may make: more is code that no
  // instruction cache holds. The largest tile of the sketches is 24.
  PESTLE_NEST_MAX_COPIES = 512,
};
// How many copies of |stage|'s body unrolled loops make, its own and those that
// it is placed under; 0 while its place, and so its part of the tensor, is open
// and whole tensors would be too much.
PESTLE_NODISCARD pestle_status_t pestle_nest_copies(pestle_nest_t* nest,
                                                    uint32_t stage,
                                                    int64_t* out_copies);
// Sets |*out_apart| when lanes read of the placed |stage| what they wrote there
// themselves: elements from one run of a lane to its next. 0 else. The steps in
// which lanes walk it must be unrolled; |if_unrolled| asks as if they were.
PESTLE_NODISCARD pestle_status_t pestle_nest_owned(pestle_nest_t* nest,
                                                   uint32_t stage,
                                                   bool if_unrolled,
                                                   int64_t* out_apart);
// Clears |*out_fits| when a loop that is not unrolled walks the box of |stage|,
// as far as places are known.
PESTLE_NODISCARD pestle_status_t pestle_nest_private_fits(pestle_nest_t* nest,
                                                          uint32_t stage,
                                                          bool* out_fits);

// No choices: all maps inlined, reductions whole and in scratch before the loops of
// the last stage, serial loops. Slow, and the oracle of every other schedule.
PESTLE_NODISCARD pestle_status_t pestle_schedule_plain(pestle_nest_t* nest);

// Whether stage |q| runs under loop |axis| of |consumer| (-1: before its
// loops), or is the consumer. A stage that has no place yet does not.
bool pestle_schedule_is_under(const pestle_nest_t* nest, uint32_t q,
                              uint32_t consumer, int32_t axis);

#endif  // PESTLE_CODEGEN_SCHEDULE_SCHEDULE_H_
