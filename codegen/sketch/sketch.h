// SPDX-License-Identifier: Apache-2.0
// Shared by the sketch*.c files and those of templates (codegen/template/);
// nobody else includes it.
//
// codegen/sketch/ decides which schedule a nest gets, by the target's
// description, the cost model and what was measured. codegen/sketch/ knows
// nothing of how a primitive changes a nest, nor of the flat form.
#ifndef PESTLE_CODEGEN_SKETCH_SKETCH_H_
#define PESTLE_CODEGEN_SKETCH_SKETCH_H_

#include "codegen/schedule/schedule.h"

enum {
  // Sizes below are counted in f32, the dtype of nearly every kernel that is
  // bound by memory; a wider dtype has fewer lanes when it is legalised.
  PESTLE_SKETCH_ELEMENT = 4,
  PESTLE_SKETCH_LINE = 64,  // bytes of the caches' lines
  // Taps of a sliding window that are unrolled within each result, at most.
  PESTLE_SKETCH_SLIDING_TAPS = 32,
  // Lines that a core reads while it gets one that another core has written.
  PESTLE_SKETCH_WRITTEN = 4,
};

// What one core does a cycle: vectors multiplied and added, loaded, broadcast;
// bytes of what lies in L2, in L3 and where operands crowd L3; and the cycles
// until a multiply-add's result is ready.
typedef struct pestle_core_rates_t {
  double fmas, loads, broadcasts, l2, l3, crowded, latency;
} pestle_core_rates_t;

// A way to run a contraction: its register tile, how its operands are read, and what
// that costs.
typedef struct pestle_tiling_t {
  int64_t rows, vectors;
  bool copied;    // panels of the vector operand are copied into scratch
  int64_t block;  // of the reduction, a partial sum each; 0: one sum
  // Rows of windows whose inputs, halos included, are one padded box in scratch; 0:
  // each tile has a box of its own.
  int64_t halo_rows;
  bool unpadded;  // there is no box: padding is tested for where it is read
  double cycles;  // of one core
} pestle_tiling_t;
typedef PESTLE_VEC(pestle_tiling_t) pestle_tilings_t;

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

// A register tile: accumulators for rows x vectors x lanes of |reduce|'s result.
typedef struct pestle_register_tile_t {
  uint32_t reduce;
  int32_t row;  // position of the tile's row axis among the roots; -1: none
  int64_t rows, vectors, lanes;
  // Columns of one group, as of a grouped convolution, if it has a vector or more of
  // them and they read the same; else 0. |group_stride|: elements from what a group
  // reads to what the next one does.
  int64_t group, group_stride;
  bool per_group;  // a tile has columns of one group; else vectors of several
  // Steps of the axis |halo_axis| that share a padded box; or 0. The axis' position
  // among the roots; -1: none.
  int64_t halo_rows;
  int32_t halo_axis;
  // Tiles of columns that go through the rows of windows together, where there is no
  // box: a strip; or 0.
  int64_t column_strip;
  bool slides;       // neighbours along |row| share what their windows read
  bool per_channel;  // a padded box is for all columns of a channel's rows
  // A padded box is for all rows, which are features that share their windows, and all
  // columns.
  bool im2row;
  int64_t chunk;         // rows of a core, outside tiles of columns; 0: of all
  bool row_major_tiles;  // tiles of columns are within those of rows
} pestle_register_tile_t;

// How far a padded box reaches along one of its dimensions: over one window, and
// for each further row, column, and row of windows.
typedef struct pestle_box_dim_t {
  int64_t base, row, column, halo_row;
} pestle_box_dim_t;

// What sketch_cost.c has to know of a contraction. Sizes are elements.
typedef struct pestle_contract_t {
  int64_t lanes, width;   // of the innermost map axis
  int64_t height, batch;  // the row axis; all other map axes
  int64_t reduction;      // elements that a result is a sum of: k of a GEMM
  int64_t others;         // groups of columns beside these, of the batch
  // Of tiles of several groups: vectors from which on groups begin within them as they
  // did, of which a tile has a multiple, or all; else 0. And loads of what a row has
  // for a vector, and shuffles.
  int64_t period;
  double shares, shuffles;
  int64_t bytes;  // of both operands and the result
  int64_t block;  // of the reduction, where it may be cut; else 0
  // The operand that moves along the innermost axis:
  bool copyable;    // a panel of it may be copied into scratch
  bool packed;      // it must be: its elements are gathered into packed words
  bool strided;     // it lies along another axis
  bool aliasing;    // its rows fall into few cache sets
  int64_t pitch;    // bytes from one of its rows to the next; 0: several
  bool short_dots;  // a step is a short dot product of several elements
  // The rows of the other one are a large power of two apart.
  bool row_aliasing;
  // What is padded in scratch; rank 0: nothing.
  pestle_box_dim_t box[PESTLE_MAX_RANK];
  int32_t box_rank;
  int64_t most_halo_rows;  // rows of windows that could share a box
  bool own;                // each column has inputs of its own: depthwise
  // Windows slide along the columns, too, over planes of channels, none of which they
  // share: a box is of a tile's rows, all columns of which its tiles read.
  bool per_channel;
  bool im2row;  // rows are features, which share all windows of a box
  // What is padded may be read where it lies: in whole vectors, or the same for all
  // columns.
  bool unpadded;
} pestle_contract_t;

// How the reads of a stage move along an axis.
typedef struct pestle_stride_t {
  const pestle_sketch_t* k;
  uint32_t axis;
  bool unit;     // some read moves by one element along the axis
  bool strided;  // some read moves otherwise
} pestle_stride_t;

// The argument of a product's operand that moves along an axis; -1: none does.
// Only contiguously it is the vector operand of a tile, else it is staged.
typedef struct pestle_operand_t {
  pestle_sketch_t* k;
  uint32_t axis;
  int32_t tensor;
  int64_t stride;  // elements, along the axis
  bool unit, constant;
  bool packed;    // its elements are gathered into packed words
  int64_t size;   // bytes of an element
  bool aliasing;  // rows a large power of two apart fall into few cache sets
  int64_t
      pitch;  // bytes that the reduction's axis moves by; 0: several axes do
} pestle_operand_t;

// Columns of a panel of the vector operand: a tile's, or a group's, if it has no whole
// number of tiles.
static inline int64_t pestle_sketch_panel(const pestle_register_tile_t* t) {
  int64_t columns = t->vectors * t->lanes;
  return t->per_group && t->group % columns ? t->group : columns;
}

// Of the target, or the usual ones where it states none.
pestle_core_rates_t pestle_sketch_rates(const pestle_target_caps_t* caps);

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

// Estimates for choices that are not of a contraction's tile (sketch_estimate.c), in
// cycles of one core. Of map |stage|, so many vectors at once:
double pestle_sketch_map_cycles(pestle_sketch_t* k, uint32_t stage,
                                int64_t vectors);
// Of all cores, what takes one |cycles| cut into groups of |group| of |total|.
double pestle_sketch_group_cycles(const pestle_sketch_t* k, double cycles,
                                  int64_t total, int64_t group);
// Of plain reduction |t->reduce|, each accumulator in |parts|.
double pestle_sketch_reduce_cycles(pestle_sketch_t* k,
                                   const pestle_register_tile_t* t,
                                   int64_t parts);
// Of putting aside what |stage| makes, and reading it again.
double pestle_sketch_scratch_cycles(pestle_sketch_t* k, uint32_t stage);
// |cycles| beside the kernel's arguments and results, read and written once.
double pestle_sketch_beside_memory(const pestle_sketch_t* k, double cycles);
// Of moving so many bytes that lie where they fit.
double pestle_sketch_bytes_cycles(const pestle_sketch_t* k, double bytes);
// Of the results, through the caches and past them.
void pestle_sketch_stream_costs(const pestle_sketch_t* k, double out[2]);
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
// The reduction inside its tile: reduction loops, then the unrolled tile.
PESTLE_NODISCARD pestle_status_t
pestle_sketch_tile_reduce(pestle_sketch_t* k, const pestle_register_tile_t* t);
// The tile for |reduce|, a plain one: one row.
pestle_register_tile_t pestle_sketch_plain_tile(pestle_sketch_t* k,
                                                uint32_t reduce);

// Estimated cycles of one core, the rows that share a block's panel, and the
// cheapest choice.
double pestle_sketch_cycles(const pestle_sketch_t* k,
                            const pestle_contract_t* c,
                            const pestle_tiling_t* x);
int64_t pestle_sketch_block_rows(const pestle_sketch_t* k,
                                 const pestle_contract_t* c,
                                 const pestle_tiling_t* x);
pestle_tiling_t pestle_sketch_cheapest_tiling(const pestle_sketch_t* k,
                                              const pestle_contract_t* c);
// Whether cores take rows of |height| x |width| results rather than columns. By
// rows each reads the panels of all columns, by columns the rows that the others
// wrote, a line of which takes as long as several of what no core wrote. Measured on
// quiet cores of a Sapphire Rapids, 2 threads, columns where they are more than 1, 2
// and 4 times the rows (medians of 7 runs): lcnet_orient 1.47, 1.36, 1.31 ms,
// MobileNetV2 2.80, 2.65, 2.74, ppocr_det 14.0, 12.8, 13.4.
static inline bool pestle_sketch_favours_rows(int64_t height, int64_t width) {
  return height * PESTLE_SKETCH_WRITTEN > width;
}
// The same as a choice of the nest (choice.h), which may want another tile.
pestle_tiling_t pestle_sketch_choose_tiling(pestle_sketch_t* k,
                                            const pestle_contract_t* c);
// Whether what follows a reduction works in registers (or on a copy in scratch), where it
// takes |cycles| in registers; 0: nobody knows.
bool pestle_sketch_inline_epilogue(pestle_sketch_t* k, bool usual,
                                   double cycles);
// Tells who lists options that |x| was looked at.
void pestle_sketch_tried(const pestle_sketch_t* k, const pestle_tiling_t* x);
// Keeps |text| in the nest, for its printer, and frees it.
PESTLE_NODISCARD pestle_status_t
pestle_sketch_keep_summary(pestle_sketch_t* k, pestle_strbuf_t* text);
// Notes the choice and what was rejected in the nest, for its printer.
PESTLE_NODISCARD pestle_status_t pestle_sketch_explain(
    pestle_sketch_t* k, const pestle_contract_t* c, const pestle_tiling_t* x);

// Fills in what |c| says of groups of columns.
void pestle_sketch_describe_groups(const pestle_register_tile_t* t,
                                   pestle_contract_t* c);
// Whether the tiles of |t|'s groups have columns of several of them or of one each.
void pestle_sketch_choose_groups(pestle_sketch_t* k, const pestle_contract_t* c,
                                 pestle_register_tile_t* t);
// Fills in what |c| says of padded boxes.
void pestle_sketch_describe_box(pestle_sketch_t* k,
                                const pestle_register_tile_t* t,
                                pestle_contract_t* c);
// Whether each column has inputs of its own, of which the next row's window reads
// half or more again.
bool pestle_sketch_slides(const pestle_contract_t* c);
// Vectors of columns that go through rows of windows together, where they read
// what is not padded: all rows of one window of theirs stay in the L1.
int64_t pestle_sketch_column_strip(const pestle_sketch_t* k,
                                   const pestle_contract_t* c,
                                   const pestle_tiling_t* x);
// Elements of the box of so many rows, columns, and rows of windows.
int64_t pestle_sketch_box_elements(const pestle_contract_t* c, int64_t rows,
                                   int64_t columns, int64_t halo_rows);

// A tile of accumulators for |width| columns and |height| rows of products.
pestle_register_tile_t pestle_sketch_size_tile(pestle_sketch_t* k,
                                               int64_t width, int64_t height);
// Packs a constant vector operand of the tile's reduction into panels of |panel| columns,
// or, |copied|, copies one into scratch: the tensor, or the stage; else -1.
PESTLE_NODISCARD pestle_status_t pestle_sketch_pack_operand(
    pestle_sketch_t* k, pestle_register_tile_t* t, int64_t panel, bool copied,
    int32_t* out_packed, int32_t* out_staged);

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
pestle_operand_t pestle_sketch_operand(pestle_sketch_t* k,
                                       const pestle_expr_t* side,
                                       uint32_t axis);
// Whether stage |id| is read by the anchor at exactly the anchor's axes.
bool pestle_sketch_aligned(pestle_sketch_t* k, uint32_t id);
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
