// SPDX-License-Identifier: Apache-2.0
// The nest: a fused group before it is a kernel. Stages with box domains, each
// one statement over its own axes, placed in one loop tree by schedule primitives.
// Codegen alone sees it; plugins see the flat form that is emitted from it.
//
// codegen/nest/ is this form, its text, its verifier, affine indices, and the
// text of schedule primitives. codegen/nest/ knows nothing of targets, of who
// makes a nest and of what is made of it.
//
// Invariants:
//  1. A stage's root axes are its map axes, one a dim of the tensor that it
//     writes, then its reduction axes. An AXIS atom means the global coordinate,
//     also after the stage was moved under another (its domain is then a box
//     whose origin depends on that loop).
//  2. Index forms (affine) are integer-affine over atoms: axes, floor divisions
//     and remainders by constants, and data-dependent values with a known
//     range. They are immutable and simplified when made.
//  3. Reads of kernel arguments have one flat index; reads of stages have one
//     index a dim.
//  4. A stage is pure: recomputing or moving it is never wrong, only slow.
//  5. Names are identifiers, unique among stages, among tensors that are in use
//     and among the axes of a stage: primitives and text refer by name.
#ifndef PESTLE_CODEGEN_NEST_NEST_H_
#define PESTLE_CODEGEN_NEST_NEST_H_

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "codegen/nest/primitive.h"
#include "codegen/nest/template.h"
#include "ir/graph.h"

// --- Index forms ---

typedef enum pestle_atom_kind_e {
  PESTLE_ATOM_AXIS,
  PESTLE_ATOM_DIV,    // floor(affine / divisor)
  PESTLE_ATOM_MOD,    // affine - divisor * floor(affine / divisor)
  PESTLE_ATOM_VALUE,  // an expression, clamped to [lo, hi] by its maker
} pestle_atom_kind_t;

typedef struct pestle_affine_t pestle_affine_t;
typedef struct pestle_expr_t pestle_expr_t;

typedef struct pestle_atom_t {
  uint32_t id;
  uint8_t kind;  // pestle_atom_kind_t
  uint32_t axis;
  const pestle_affine_t* affine;
  int64_t divisor;
  const pestle_expr_t* value;
  int64_t lo, hi;  // of VALUE
} pestle_atom_t;

typedef struct pestle_term_t {
  int64_t coef;
  const pestle_atom_t* atom;
} pestle_term_t;

struct pestle_affine_t {
  int64_t constant;
  uint32_t count;
  pestle_term_t terms[];  // by atom id, coefs non-zero
};

typedef struct pestle_range_t {
  int64_t lo, hi;  // inclusive
} pestle_range_t;

// --- Expressions ---

typedef enum pestle_expr_kind_e {
  PESTLE_EXPR_CONST,  // f or i, of dtype
  PESTLE_EXPR_INDEX,  // affine as a number of dtype
  PESTLE_EXPR_READ,   // tensor at index[]; arbitrary where |guard| is false
  PESTLE_EXPR_OP,     // scalar row on args
  PESTLE_EXPR_CAST,
  PESTLE_EXPR_BITCAST,
  PESTLE_EXPR_INSIDE,  // i1: lo <= affine < hi
  PESTLE_EXPR_ACC,     // general reductions: accumulator i
  PESTLE_EXPR_VAL,     // general reductions: the new value i
  PESTLE_EXPR_DOT,     // of words args[0] and args[1]: DOT2 where it is f32,
                       // DOT4 with i as its immediate where it is i32
} pestle_expr_kind_t;

struct pestle_expr_t {
  uint32_t id;
  uint8_t kind;   // pestle_expr_kind_t
  uint8_t dtype;  // pestle_dtype_t
  uint16_t op;    // pestle_op_t
  const pestle_expr_t* args[3];
  double f;
  int64_t i;  // constant; ACC and VAL number; tensor of READ
  const pestle_affine_t* affine;
  int64_t lo, hi;                       // INSIDE
  const pestle_affine_t* const* index;  // READ
  uint32_t index_count;
  const pestle_expr_t* guard;  // READ, or NULL
  // READ: the i32 of so many elements, the first in the lowest bits; 0: one
  // element. They are |lo| elements apart; element |j| is 0 where |affine| + j, the
  // coordinate that they are neighbours along, reaches |hi|.
  uint8_t packed;
};

// --- Tensors, axes, stages ---

typedef enum pestle_tensor_kind_e {
  PESTLE_TENSOR_INPUT,   // argument |slot| of the group
  PESTLE_TENSOR_OUTPUT,  // result |slot| of the group
  PESTLE_TENSOR_STAGE,   // lives in the kernel
} pestle_tensor_kind_t;

typedef enum pestle_scope_e {
  PESTLE_SCOPE_NONE,  // inlined, or not placed yet
  PESTLE_SCOPE_PRIVATE,
  PESTLE_SCOPE_SHARED,
  PESTLE_SCOPE_LANES,  // registers of the lane that writes and reads them
  PESTLE_SCOPE_GLOBAL,
} pestle_scope_t;

// One dim of a packed constant, outermost first: it walks the source by |coef|
// elements. Where |limit| is not 0 the dim is a part of a split coordinate, of
// which it counts |scale|; elements whose coordinate reaches |limit| are zero.
typedef struct pestle_pack_axis_t {
  int64_t coef, extent, scale, limit;
  int64_t reduction;  // 1: the split coordinate is that of k, not the columns
} pestle_pack_axis_t;

// Bytes that the address of a tensor is a multiple of where nothing else is said.
enum { PESTLE_NEST_ALIGN = 64 };

typedef struct pestle_nest_tensor_t {
  const char* name;
  pestle_type_t type;
  uint8_t kind;   // pestle_tensor_kind_t
  uint8_t scope;  // pestle_scope_t
  bool constant;  // an input whose data is known when the plan is made
  bool streamed;  // OUTPUT: its stores go past the caches
  uint32_t slot;
  int32_t stage;  // that writes it, or -1
  // LANES: elements from one run of a lane to its next, see schedule_lanes.c.
  int64_t lane_stride;
  int32_t alias;   // OUTPUT: input slot that it overwrites in place, or -1
  uint32_t align;  // of its address, in bytes; 0: PESTLE_NEST_ALIGN
  const pestle_elements_t* elements;  // INPUT beyond the group's operands
  // INPUT after the primitive pack: read through this layout, zero-padded.
  uint32_t pack_count;
  pestle_pack_axis_t* pack;
  int64_t pack_offset;   // of the source's first element
  int64_t packed_width;  // elements in an i32 of the packed; 0: no i32
  int64_t packed_elements;
  // The template that makes what lies there of the source, or NULL: the source's
  // elements do.
  const pestle_template_t* packer;
} pestle_nest_tensor_t;

typedef enum pestle_mark_e {
  PESTLE_MARK_SERIAL,
  PESTLE_MARK_UNROLL,
  PESTLE_MARK_VECTOR,
  PESTLE_MARK_GROUP,
  // Steps of the loop are lanes of a group; see kir.h. Lanes of the last stage,
  // or of a stage of its own, which lanes compute together.
  PESTLE_MARK_LANE_X,
  PESTLE_MARK_LANE_Y,
} pestle_mark_t;

static inline bool pestle_mark_is_lane(uint8_t mark) {
  return mark == PESTLE_MARK_LANE_X || mark == PESTLE_MARK_LANE_Y;
}

typedef struct pestle_nest_axis_t {
  const char* name;
  int32_t stage;
  bool reduce;
  bool rfactored;  // a reduction axis whose partial results are kept apart
  uint8_t mark;    // pestle_mark_t
  int64_t extent;  // as of now: emission narrows it in tails
  int64_t full_extent;
  int32_t parent;        // -1: root
  int32_t outer, inner;  // -1: leaf
  int64_t factor;        // of the split, when not a leaf
  // A reduction axis of a partial reduction covers one block of its extent: |block|
  // coordinates from |block| times the map axis |block_axis| on; else -1.
  int32_t block_axis;
  int64_t block;
  bool peel_last;  // its last step has a shorter block: emitted apart
  // A root map axis: from place |end_scale| times what input |end_tensor|, an i64 of
  // rank 0, holds on, nothing need be computed (docs/adr/021). 0: there is no such place.
  int64_t end_scale;
  uint32_t end_tensor;
} pestle_nest_axis_t;

// Steps of the loops of |a| at most.
static inline int64_t pestle_nest_axis_span(const pestle_nest_axis_t* a) {
  return a->block_axis >= 0 && a->block < a->full_extent ? a->block
                                                         : a->full_extent;
}

// Whether the axis has one loop, over all of its extent, and steps.
static inline bool pestle_nest_axis_is_whole(const pestle_nest_axis_t* a) {
  return a->outer < 0 && a->block_axis < 0 && a->full_extent > 0;
}

#define PESTLE_NEST_MAX_AXES 24

// Memory that is asked for ahead of its use: the primitive prefetch, as schedule.h says.
typedef struct pestle_prefetch_t {
  uint32_t loop;    // the axis, a loop of a stage, whose steps ask
  uint32_t tensor;  // an argument; or a result, to be written
  uint32_t
      like;    // it is asked for where the stage is in this one, often the same
  int64_t by;  // so many elements further
  int64_t
      share;  // elements that a step asks for, of what a reduction reads; or 0
} pestle_prefetch_t;

// What is known of the factors that a sum of products has, beyond their types where they
// are multiplied: matrix units of fewer digits are right for these.
typedef enum pestle_factors_e {
  PESTLE_FACTORS_ANY = 0,
  PESTLE_FACTORS_F8 = 1,    // 8-bit floats are multiplied, as the graph has it
  PESTLE_FACTORS_TF32 = 2,  // f32 of which 10 bits of the mantissa count
} pestle_factors_t;

typedef struct pestle_nest_stage_t {
  const char* name;
  uint32_t map_count, root_count;
  uint32_t roots[PESTLE_NEST_MAX_AXES];  // map axes, then reduction axes
  uint32_t order_count;
  uint32_t order[PESTLE_NEST_MAX_AXES];  // leaves, outermost first
  pestle_op_t reduce;  // scalar row, or PESTLE_OP_COUNT: see general
  bool is_reduction;
  uint32_t value_count;  // 1, but for general reductions and sibling outputs
  pestle_expr_t const** values;
  pestle_expr_t const** inits;  // reductions: starting values
  pestle_expr_t const**
      combine;        // general reductions over ACC and VAL; or NULL
  uint32_t* tensors;  // written: one a value
  const pestle_affine_t* const** write_index;  // a tensor's index over the map
      // axes, flat for OUTPUT; NULL: the axes
  pestle_dtype_t acc_dtype;  // reductions
  uint8_t factors;           // pestle_factors_t
  bool inlined;
  bool keep;    // a padded copy: worth its own place beside its reader
  bool border;  // a reduction whose loops are cut where padding begins
  bool skips;   // which leaves out steps of nothing but padding
  bool
      transposed;  // a copy whose tiles are transposed in registers: see the primitive
  bool
      carried;  // a reduction that another reduction's loop, at_axis, steps: what
                // reads it under that loop sees it as it is by then
  int32_t at_stage;  // -1: a root of the tree
  int32_t at_axis;   // leaf of at_stage under which this one runs; -1:
                     // before the loops of at_stage
} pestle_nest_stage_t;

// One way that a choice may be made, see choice.h. The name has no blanks.
typedef struct pestle_option_t {
  char name[40];
  double cost;  // as estimated, in any unit; PESTLE_NOT_ESTIMATED
} pestle_option_t;

// A choice that was made.
typedef struct pestle_choice_t {
  const char* kind;
  const char* of;  // what costs are of, or why there are none
  const pestle_option_t* options;
  uint32_t count, usual, taken;
  bool fixed;  // no other option may be wanted
} pestle_choice_t;

struct pestle_nest_t {
  pestle_arena_t* arena;
  pestle_allocator_t allocator;
  const char* name;
  const char* ops;      // graph ops and sources, for the note
  const char* summary;  // why this schedule, lines for people, or NULL
  bool no_scratch;      // the sketch keeps nothing in scratch
  bool is_quick;        // little code rather than fast code
  bool is_fast;         // numerics `fast`
  bool is_beside;       // something else may have some of the units meanwhile
  uint32_t halvings;    // of the L2 that the sketch counts on
  uint32_t subgroup;    // lanes of a subgroup that reduce together; 0: none
  bool wide_moves;      // vectors in memory say what they are aligned to
  bool
      by_phases;  // convolutions of spread inputs leave out taps that meet zeros
  pestle_nest_template_t template;  // that makes the kernel
  pestle_strbuf_t* why;  // gets a line for each choice; NULL: nobody asks
  const char* wanted;    // "kind=name kind=name": choice.h; NULL: the usual
  bool wants_first;      // what |wanted| does not name is the usual way
  bool lists_options;    // somebody wants to see what was not taken
  bool stale;            // |wanted| names an option that there is not
  PESTLE_VEC(pestle_choice_t) choices;
  pestle_status_t failed;  // what went wrong first, or NULL; of the nest
  PESTLE_VEC(pestle_nest_tensor_t) tensors;
  PESTLE_VEC(pestle_nest_axis_t) axes;
  PESTLE_VEC(pestle_nest_stage_t) stages;
  PESTLE_VEC(pestle_prefetch_t) prefetches;
  PESTLE_VEC(const pestle_atom_t*) atoms;
  uint32_t expr_count;
  pestle_expr_t broken;            // stands in for what could not be allocated
  pestle_primitives_t primitives;  // applied so far, in order
};

void pestle_nest_init(pestle_allocator_t allocator, pestle_arena_t* arena,
                      const char* name, pestle_nest_t* out_nest);
void pestle_nest_deinit(pestle_nest_t* nest);
// Most of what makes a nest returns no status: the first failure is kept, and
// what is made from then on is worthless but safe to look at. Takes |why|.
void pestle_nest_fail(pestle_nest_t* nest, pestle_status_t why);
void pestle_nest_fail_memory(pestle_nest_t* nest);
// A copy of the first failure, or NULL.
PESTLE_NODISCARD pestle_status_t pestle_nest_status(const pestle_nest_t* nest);

// Index arithmetic. All results are simplified and live in the nest's arena.
const pestle_affine_t* pestle_affine_const(pestle_nest_t* nest, int64_t value);
const pestle_affine_t* pestle_affine_axis(pestle_nest_t* nest, uint32_t axis);
const pestle_affine_t* pestle_affine_value(pestle_nest_t* nest,
                                           const pestle_expr_t* value,
                                           int64_t lo, int64_t hi);
const pestle_affine_t* pestle_affine_add(pestle_nest_t* nest,
                                         const pestle_affine_t* a,
                                         const pestle_affine_t* b);
const pestle_affine_t* pestle_affine_scale(pestle_nest_t* nest,
                                           const pestle_affine_t* a,
                                           int64_t factor);
// Quotient and remainder, rounded down. What is divided in the atom they make is
// never negative.
const pestle_affine_t* pestle_affine_div(pestle_nest_t* nest,
                                         const pestle_affine_t* a,
                                         int64_t divisor);
const pestle_affine_t* pestle_affine_mod(pestle_nest_t* nest,
                                         const pestle_affine_t* a,
                                         int64_t divisor);
pestle_range_t pestle_affine_range(const pestle_nest_t* nest,
                                   const pestle_affine_t* a);
bool pestle_affine_equal(const pestle_affine_t* a, const pestle_affine_t* b);
static inline bool pestle_affine_is_const(const pestle_affine_t* a) {
  return a->count == 0;
}
// The axis that |a| is, once and without anything beside it, or -1.
int32_t pestle_affine_is_axis(const pestle_affine_t* a);
// A form of exactly these terms, of distinct atoms, and an atom as given: for
// the parser, which must not simplify what it reads.
const pestle_affine_t* pestle_affine_make(pestle_nest_t* nest, int64_t constant,
                                          const pestle_term_t* terms,
                                          uint32_t count);
const pestle_atom_t* pestle_affine_atom(pestle_nest_t* nest,
                                        pestle_atom_t atom);
// What a substitution replaces: axes by |map[axis]| (NULL map or entry: kept)
// and reads by read(user, e), where |e| has its axes replaced already (NULL
// result: kept). Works inside DIV, MOD and VALUE too; sharing is kept.
typedef struct pestle_substituted_t {
  const pestle_expr_t *from, *to;
} pestle_substituted_t;

typedef struct pestle_substitution_t {
  const pestle_affine_t* const* map;
  const pestle_expr_t* (*read)(void* user, const pestle_expr_t* e);
  void* user;
  const pestle_expr_t* guard;  // joined to the guard of every read, or NULL
  bool keep_values;  // VALUE atoms stay as they are (emission evaluates them)
  // What was replaced, of the expressions that there were at the beginning: a
  // table that grows with them, not with the nest, of which a kernel's many
  // stages each replace a little.
  pestle_substituted_t* memo;
  uint32_t memo_slots, memo_used;
  uint32_t memo_count;  // ids from here on are not kept
} pestle_substitution_t;
const pestle_affine_t* pestle_affine_substitute(pestle_nest_t* nest,
                                                pestle_substitution_t* how,
                                                const pestle_affine_t* a);
// Coefficient of |axis| outside of DIV, MOD and VALUE; |*out_nested| when it
// also stands inside one of these.
int64_t pestle_affine_coef(const pestle_affine_t* a, uint32_t axis,
                           bool* out_nested);
// Whether |axis| stands anywhere in |a|.
static inline bool pestle_affine_depends(const pestle_affine_t* a,
                                         uint32_t axis) {
  bool nested;
  return pestle_affine_coef(a, axis, &nested) != 0 || nested;
}
// The row-major flat index of |index| in |type|.
const pestle_affine_t* pestle_affine_flatten(
    pestle_nest_t* nest, const pestle_type_t* type,
    const pestle_affine_t* const* index);

// Expressions.
pestle_expr_t* pestle_expr_make(pestle_nest_t* nest, pestle_expr_kind_t kind,
                                pestle_dtype_t dtype);
const pestle_expr_t* pestle_expr_const(pestle_nest_t* nest,
                                       pestle_dtype_t dtype, double f,
                                       int64_t i);
const pestle_expr_t* pestle_expr_op(pestle_nest_t* nest, pestle_op_t op,
                                    pestle_dtype_t dtype,
                                    const pestle_expr_t* a,
                                    const pestle_expr_t* b,
                                    const pestle_expr_t* c);
const pestle_expr_t* pestle_expr_cast(pestle_nest_t* nest,
                                      const pestle_expr_t* a,
                                      pestle_dtype_t dtype);
// A short dot product of the words |a| and |b|: f32 of two, i32 of four.
const pestle_expr_t* pestle_expr_dot(pestle_nest_t* nest, pestle_dtype_t dtype,
                                     unsigned kinds, const pestle_expr_t* a,
                                     const pestle_expr_t* b);
const pestle_expr_t* pestle_expr_inside(pestle_nest_t* nest,
                                        const pestle_affine_t* affine,
                                        int64_t lo, int64_t hi);
// Reads |tensor| at |index| (one a dim; flattened for INPUT tensors).
const pestle_expr_t* pestle_expr_read(pestle_nest_t* nest, uint32_t tensor,
                                      const pestle_affine_t* const* index,
                                      const pestle_expr_t* guard);
// Prepares |how| for expressions that exist now.
void pestle_substitution_init(pestle_nest_t* nest,
                              const pestle_affine_t* const* map,
                              pestle_substitution_t* out_how);
const pestle_expr_t* pestle_expr_substitute(pestle_nest_t* nest,
                                            pestle_substitution_t* how,
                                            const pestle_expr_t* e);
// Calls visit(user, read) for each READ below |e| once.
pestle_status_t pestle_expr_visit_reads(
    pestle_nest_t* nest, const pestle_expr_t* e,
    void (*visit)(void* user, const pestle_expr_t* e), void* user);
// The same for each of |s|'s values; what several read is visited for each of them.
// Out of memory is the nest's failure.
void pestle_nest_visit_values(pestle_nest_t* nest, const pestle_nest_stage_t* s,
                              void (*visit)(void* user, const pestle_expr_t* e),
                              void* user);

// The same with the caller's zeroed flags, one an expression, so that several
// roots share one walk.
void pestle_expr_visit_with(pestle_nest_t* nest, uint8_t* seen,
                            const pestle_expr_t* e,
                            void (*visit)(void* user, const pestle_expr_t* e),
                            void* user);
// The same for all that |s| computes: its values, and a reduction's first ones and steps.
void pestle_nest_visit_stage(pestle_nest_t* nest, uint8_t* seen,
                             const pestle_nest_stage_t* s,
                             void (*visit)(void* user, const pestle_expr_t* e),
                             void* user);
// Sets out_used[tensor] for each tensor read below |e|.
void pestle_expr_mark_tensors(pestle_nest_t* nest, uint8_t* seen,
                              const pestle_expr_t* e, uint8_t* out_used);

uint32_t pestle_nest_add_tensor(pestle_nest_t* nest, const char* name,
                                pestle_tensor_kind_t kind, uint32_t slot,
                                const pestle_type_t* type);
uint32_t pestle_nest_add_axis(pestle_nest_t* nest, const char* name,
                              int32_t stage, bool reduce, int64_t extent);
// Adds a stage with one map axis a dim of |domain|, writing one new STAGE
// tensor of |dtype|; values are set by the caller.
uint32_t pestle_nest_add_stage(pestle_nest_t* nest, const char* name,
                               const pestle_type_t* domain);
static inline pestle_nest_stage_t* pestle_nest_stage(pestle_nest_t* nest,
                                                     uint32_t id) {
  return &nest->stages.data[id];
}

// The stage or axis of that name, or -1.
int32_t pestle_nest_find_stage(const pestle_nest_t* nest, const char* name);
int32_t pestle_nest_find_axis(const pestle_nest_t* nest, uint32_t stage,
                              const char* name);
// The tensor of that name, or -1.
int32_t pestle_nest_find_tensor(const pestle_nest_t* nest, const char* name);
// What |primitive|, of a template, says of |nest|. INVALID_ARGUMENT: it names a stage or
// tensor that the nest lacks.
PESTLE_NODISCARD pestle_status_t pestle_nest_read_template(
    const pestle_nest_t* nest, const pestle_primitive_t* primitive,
    pestle_nest_template_t* out_use);

// Everything that the nest holds, as nest_print.c describes it.
PESTLE_NODISCARD pestle_status_t pestle_nest_print(const pestle_nest_t* nest,
                                                   pestle_strbuf_t* out);
// Reads that text into |out_nest|, which the caller has initialised and
// deinitialises. MALFORMED names |file|, line and column. What is read has the
// right form; pestle_nest_verify() says whether it means anything.
PESTLE_NODISCARD pestle_status_t pestle_nest_parse(const char* text,
                                                   size_t size,
                                                   const char* file,
                                                   pestle_nest_t* out_nest);

#endif  // PESTLE_CODEGEN_NEST_NEST_H_
