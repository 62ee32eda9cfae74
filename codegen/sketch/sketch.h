// SPDX-License-Identifier: Apache-2.0
// codegen/sketch/ decides which schedule a nest gets, by the target's
// description, the cost model and what was measured. codegen/sketch/ knows
// nothing of how a primitive changes a nest, nor of the flat form.
//
// Others call pestle_sketch(); the rest is shared by the sketch*.c files and those of
// templates (codegen/template/).
#ifndef PESTLE_CODEGEN_SKETCH_SKETCH_H_
#define PESTLE_CODEGEN_SKETCH_SKETCH_H_

#include "codegen/schedule/schedule.h"
#include "codegen/sketch/cost.h"
#include "codegen/sketch/register_tile.h"

// Chooses and applies a schedule by the kind of the nest and |caps|.
PESTLE_NODISCARD pestle_status_t pestle_sketch(pestle_nest_t* nest,
                                               const pestle_target_caps_t* caps,
                                               bool reassociate);

enum {
  // Sizes below are counted in f32, the dtype of nearly every kernel that is
  // bound by memory; a wider dtype has fewer lanes when it is legalised.
  PESTLE_SKETCH_ELEMENT = 4,
  // Taps of a sliding window that are unrolled within each result, at most.
  PESTLE_SKETCH_SLIDING_TAPS = 32,
};

struct pestle_sketch_t {
  pestle_nest_t* nest;
  const pestle_target_caps_t* caps;
  pestle_tilings_t* tried;  // gets what the cost model looks at, or NULL
  bool reassociate;
  uint32_t anchor;
  int64_t lanes;  // of f32 in a native vector
  int64_t registers;
  int64_t l1, l2, l3;  // bytes of cache
  int64_t cores;       // that a plan may use
  const bool* row;     // of the form rows: which axes these are; else NULL
  bool
      scattered_stores;  // each tile's results are far from those of the one before
  int32_t transposed_copy;  // whose tiles are transposed in registers; -1: none
  bool per_channel;  // tiles of windows read channels' planes where they lie
  int32_t middle;    // what passes between two convolutions of a pair; -1
  bool nested;       // the anchor is such a stage, which no group is of
};

// How the reads of a stage move along an axis.
typedef struct pestle_stride_t {
  const pestle_sketch_t* k;
  uint32_t axis;
  bool unit;     // some read moves by one element along the axis
  bool strided;  // some read moves otherwise
  bool far;      // by more than two elements either way, or unevenly
} pestle_stride_t;

static inline pestle_nest_stage_t* pestle_sketch_stage(const pestle_sketch_t* k,
                                                       uint32_t id) {
  return pestle_nest_stage(k->nest, id);
}
static inline int64_t pestle_sketch_extent(const pestle_sketch_t* k,
                                           uint32_t axis) {
  return k->nest->axes.data[axis].extent;
}
static inline int64_t pestle_sketch_min(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// The loop of |s| right outside of |loop|; -1: there is none.
static inline int32_t pestle_sketch_around(const pestle_nest_stage_t* s,
                                           int32_t loop) {
  for (uint32_t i = 1; i < s->order_count; ++i) {
    if ((int32_t)s->order[i] == loop) return (int32_t)s->order[i - 1];
  }
  return -1;
}

// Bytes of all results of the kernel.
int64_t pestle_sketch_result_bytes(const pestle_sketch_t* k);

// Adds a line to why the schedule is as it is, where somebody asks.
void pestle_sketch_note(const pestle_sketch_t* k, const char* format, ...)
    PESTLE_PRINTF(2, 3);

// Lanes for an axis of |extent|: native, or the power of two that holds it.
int64_t pestle_sketch_lanes(const pestle_sketch_t* k, int64_t extent);
// Whether |s| calls a function that costs tens of instructions an element.
bool pestle_sketch_transcendental(pestle_sketch_t* k,
                                  const pestle_nest_stage_t* s);
// How many values one element of the reduction |s| is made of.
int64_t pestle_sketch_reduction_extent(const pestle_sketch_t* k,
                                       const pestle_nest_stage_t* s);
pestle_stride_t pestle_sketch_strides(pestle_sketch_t* k,
                                      const pestle_nest_stage_t* s,
                                      uint32_t axis);

// How reads of arguments move along an axis, an element of it at a time.
typedef struct pestle_pace_t {
  const pestle_sketch_t* k;
  uint32_t axis;
  int64_t most;
  bool moves;  // one does
  bool walks;  // one by 1 to |most| elements
  bool jumps;  // one by more, back, or unevenly
} pestle_pace_t;
pestle_pace_t pestle_sketch_pace(pestle_sketch_t* k,
                                 const pestle_nest_stage_t* s, uint32_t axis,
                                 int64_t most);
// The reduction axis along which reads are contiguous, or -1.
int32_t pestle_sketch_contiguous_reduce(pestle_sketch_t* k,
                                        const pestle_nest_stage_t* s);

// How many vectors of an axis of |extent| stand side by side: a choice. |cost|
// says what some cost, or is NULL; |of| what that is of, or why it is not known.
typedef struct pestle_vectors_t {
  const char* of;
  int64_t extent, usual;
  double (*cost)(const void* user, int64_t vectors);
  const void* user;
} pestle_vectors_t;
int64_t pestle_sketch_vectors(pestle_sketch_t* k, const pestle_vectors_t* v);

// Splits |axis| into |*out_outer|, |unroll| vectors at most, and lanes.
PESTLE_NODISCARD pestle_status_t pestle_sketch_vectorise(pestle_sketch_t* k,
                                                         uint32_t stage,
                                                         uint32_t axis,
                                                         int64_t unroll,
                                                         uint32_t* out_outer);
// The same for the last axis of a copy. Where the copy's source is contiguous
// along another axis, tiles are transposed in registers: a stage is put before |stage|,
// which moves up by one as the anchor does.
PESTLE_NODISCARD pestle_status_t
pestle_sketch_vectorise_copy(pestle_sketch_t* k, uint32_t stage);
// An argument that |stage|, a map, reads once, along its last axis with a stride:
// |*out_axis| is the
// position of the map axis along which it is contiguous. |*out_tensor| is -1
// where there is none that is worth tiles.
PESTLE_NODISCARD pestle_status_t
pestle_sketch_find_transposed(pestle_sketch_t* k, uint32_t stage,
                              int32_t* out_tensor, uint32_t* out_axis);
// |stage| reads |tensor|, contiguous along its map axis at position |axis|,
// by tiles that are transposed in registers; |*out_tiles| is the loop of tiles along the
// last axis, under which they are made. They go along the results, or, |scattered_stores|,
// along the argument, whole lines of results at a time. Ids move as above.
PESTLE_NODISCARD pestle_status_t pestle_sketch_transpose_in_registers(
    pestle_sketch_t* k, uint32_t stage, uint32_t tensor, uint32_t axis,
    bool scattered_stores, uint32_t* out_tiles);
// The anchor's loops down to |last_leaf| run in groups; the first |count| do. Of one
// that is nested none do.
PESTLE_NODISCARD pestle_status_t pestle_sketch_bind_groups(pestle_sketch_t* k,
                                                           uint32_t last_leaf);
PESTLE_NODISCARD pestle_status_t pestle_sketch_bind_first(pestle_sketch_t* k,
                                                          uint32_t count);
// Map axes of the anchor that lie behind each other become one, but for the
// last |kept|.
PESTLE_NODISCARD pestle_status_t pestle_sketch_fuse_axes(pestle_sketch_t* k,
                                                         uint32_t kept);
// Of a nest of two products the map between them, which keeps what the second reads
// of the first, an image; -1: it is no such pair.
int32_t pestle_sketch_pair_middle(pestle_sketch_t* k);
// Whether what is left once maps are inlined is such a pair, of tiles; its schedule.
bool pestle_sketch_pair_fits(pestle_sketch_t* k);
PESTLE_NODISCARD pestle_status_t pestle_sketch_pair(pestle_sketch_t* k);

// Whether |reduce| is no product, but short windows that move along its results by few
// elements each: all of a tile's are in the code, so that each element of several
// windows is loaded once, and tests of the border are where it is.
bool pestle_sketch_is_window(pestle_sketch_t* k, uint32_t reduce);
// A sum of products.
bool pestle_sketch_is_product(const pestle_nest_stage_t* s);
// Whether stage |id| is read by the anchor at exactly the anchor's axes.
bool pestle_sketch_aligned(pestle_sketch_t* k, uint32_t id);
// The only one of the first |count| stages that is left beside the anchor, or -1.
int32_t pestle_sketch_only_stage(const pestle_sketch_t* k, uint32_t count);
// Whether the reduction |s| may be taken in another order than it says.
bool pestle_sketch_reorders(const pestle_sketch_t* k,
                            const pestle_nest_stage_t* s);
// Lanes and unrolled partial results along |axis| of reduction |id|, where it may
// be reduced in another order.
PESTLE_NODISCARD pestle_status_t pestle_sketch_reduce_lanes(pestle_sketch_t* k,
                                                            uint32_t id,
                                                            uint32_t axis);
// Gives reduction |id| |parts| accumulators for each result, which take the steps of its last
// axis in turn: where few vectors of results
// lie side by side, each add waits for the one before it.
PESTLE_NODISCARD pestle_status_t
pestle_sketch_multi_accumulator(pestle_sketch_t* k, uint32_t id, int64_t parts);
// Long float sums keep partial sums of blocks apart, in several levels, so that
// their error does not grow with their length: |chain| elements at most follow each
// other in one accumulator. Puts |*out_levels| stages before |stage|, which
// moves up as the anchor does; each reads the one before it.
PESTLE_NODISCARD pestle_status_t pestle_sketch_cascade(pestle_sketch_t* k,
                                                       uint32_t stage,
                                                       int64_t chain,
                                                       uint32_t* out_levels);
// Places these stages: each under the reduction loop of the next.
PESTLE_NODISCARD pestle_status_t pestle_sketch_place_levels(pestle_sketch_t* k,
                                                            uint32_t stage,
                                                            uint32_t levels);
// A copy of the operand of |reduce| that moves along its innermost map axis by
// more than one element; the copy is contiguous along it. |*out_copy| is its
// stage, behind which |reduce| and the anchor move up by one, or -1: there is
// none.
PESTLE_NODISCARD pestle_status_t pestle_sketch_stage_strided(pestle_sketch_t* k,
                                                             uint32_t reduce,
                                                             int32_t* out_copy);

// Targets with lanes have schedules of their own.
PESTLE_NODISCARD pestle_status_t pestle_sketch_with_lanes(pestle_sketch_t* k);
// The columns of the product |id| that go by groups become two axes (sketch_unfuse.c).
PESTLE_NODISCARD pestle_status_t pestle_sketch_unfuse_groups(pestle_sketch_t* k,
                                                             uint32_t id);
// Asks the templates that wait for such an offer whether they take the nest, whose
// primitive is applied then; |*out_done|: one did. offer.row is set here.
PESTLE_NODISCARD pestle_status_t pestle_sketch_offer(pestle_sketch_t* k,
                                                     pestle_offer_t offer,
                                                     bool* out_done);
// Whether the target has matrix units of |kind| and shape that multiply |dtype|
// and add up f32.
bool pestle_sketch_has_unit(const pestle_sketch_t* k,
                            pestle_intrinsic_kind_t kind, pestle_dtype_t dtype,
                            unsigned m, unsigned n, unsigned reduction);
// Whether it has some of 16 x 8 or, of warpgroups, 64 x 256, k = 32, that multiply bytes of
// |a| and |b| and add up i32.
bool pestle_sketch_has_byte_unit(const pestle_sketch_t* k,
                                 pestle_intrinsic_kind_t kind, pestle_dtype_t a,
                                 pestle_dtype_t b);
// Whether it has some of warpgroups, 64 x 256, k = 32, that multiply 8-bit floats.
bool pestle_sketch_has_f8_unit(const pestle_sketch_t* k,
                               pestle_intrinsic_kind_t kind);
// Makes short dot products of the sum of products |reduce|, where the target has
// them and its operands lie so.
PESTLE_NODISCARD pestle_status_t pestle_sketch_dot(pestle_sketch_t* k,
                                                   uint32_t reduce);
// Whether that is worth copying a matrix that other forms read as it lies.
bool pestle_sketch_prefers_dot(pestle_sketch_t* k, uint32_t reduce);
// Whether they are of bytes of one kind on both sides, which flip brings to what
// targets have.
bool pestle_sketch_wants_flip(const pestle_nest_stage_t* s);
// That row, where it is wanted; |*out_sums| is the stage that it adds, behind
// which |t|'s reduction and the anchor move up by one, or -1.
PESTLE_NODISCARD pestle_status_t pestle_sketch_flip(pestle_sketch_t* k,
                                                    pestle_register_tile_t* t,
                                                    int32_t* out_sums);
// Loops for it, under loop |leaf| of the anchor.
PESTLE_NODISCARD pestle_status_t pestle_sketch_place_sums(pestle_sketch_t* k,
                                                          uint32_t sums,
                                                          int64_t lanes,
                                                          uint32_t leaf);
// What was kept for rows that lanes share is made where it is read.
PESTLE_NODISCARD pestle_status_t pestle_sketch_inline_kept(pestle_sketch_t* k);
// Whether lanes keep a row of so many elements in memory that they share.
bool pestle_sketch_keeps_rows(const pestle_sketch_t* k, int64_t length);
static inline bool pestle_sketch_has_lanes(const pestle_sketch_t* k) {
  return (k->caps->flags & PESTLE_TARGET_LANES) != 0;
}

// The sketches. No reduction:
PESTLE_NODISCARD pestle_status_t pestle_sketch_map(pestle_sketch_t* k);
// One reduction, which |pestle_sketch_tile_fits|:
bool pestle_sketch_tile_fits(pestle_sketch_t* k, uint32_t reduce);
PESTLE_NODISCARD pestle_status_t pestle_sketch_tile(pestle_sketch_t* k,
                                                    uint32_t reduce);
// GEMV: a matrix times few vectors, read once, as it lies. By whole rows of it, each of
// which is a result, and by some rows at a time, whose columns are results.
bool pestle_sketch_gemv_rows_fits(pestle_sketch_t* k, uint32_t reduce);
PESTLE_NODISCARD pestle_status_t pestle_sketch_gemv_rows(pestle_sketch_t* k,
                                                         uint32_t reduce);
bool pestle_sketch_gemv_columns_fits(pestle_sketch_t* k, uint32_t reduce);
// What |reduce| costs one core as a tile, which it fits; as GEMV, whose form is
// |*out_form|, whether or not it is worth it, or 0: it is none.
double pestle_sketch_tile_estimate(pestle_sketch_t* k, uint32_t reduce);
double pestle_sketch_gemv_estimate(pestle_sketch_t* k, uint32_t reduce,
                                   const char** out_form);
PESTLE_NODISCARD pestle_status_t pestle_sketch_gemv_columns(pestle_sketch_t* k,
                                                            uint32_t reduce);
// Two contractions with row reductions between them:
bool pestle_sketch_flash_attention_cpu_fits(pestle_sketch_t* k);
PESTLE_NODISCARD pestle_status_t
pestle_sketch_flash_attention_cpu(pestle_sketch_t* k);
// Reductions along rows. |row| marks, by position among the anchor's roots, the axes
// on which reductions depend; these come first.
PESTLE_NODISCARD pestle_status_t pestle_sketch_row_axes(pestle_sketch_t* k,
                                                        bool* row);
// Puts the loops of these axes, |*out_rows| of them, first.
PESTLE_NODISCARD pestle_status_t pestle_sketch_rows_first(pestle_sketch_t* k,
                                                          const bool* row,
                                                          uint32_t* out_rows);
// The same; where there are none, one step of a loop made from another axis
// stands for them.
PESTLE_NODISCARD pestle_status_t pestle_sketch_row_groups(pestle_sketch_t* k,
                                                          const bool* row,
                                                          uint32_t* out_rows);
// Of a kernel in the form tile, when all else is scheduled: lines of results are
// asked for before a tile is computed.
PESTLE_NODISCARD pestle_status_t
pestle_sketch_prefetch_results(pestle_sketch_t* k);
// Of a kernel in that form, when all else is scheduled: what is asked for before it
// is needed.
PESTLE_NODISCARD pestle_status_t pestle_sketch_prefetch(pestle_sketch_t* k,
                                                        const bool* row);
PESTLE_NODISCARD pestle_status_t pestle_sketch_rows(pestle_sketch_t* k,
                                                    const bool* row);
// Reductions along strided axes over contiguous columns, at position |p|; the
// position, or -1 where this does not fit.
int32_t pestle_sketch_column_axis(pestle_sketch_t* k, const bool* row);
PESTLE_NODISCARD pestle_status_t pestle_sketch_columns(pestle_sketch_t* k,
                                                       const bool* row,
                                                       int32_t p);

#endif  // PESTLE_CODEGEN_SKETCH_SKETCH_H_
