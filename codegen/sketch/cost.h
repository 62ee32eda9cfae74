// SPDX-License-Identifier: Apache-2.0
// What schedules cost, in cycles of one core: the constants of a class of machine
// (cost.def), the rates of the target, the model of contractions (sketch_cost.c),
// by which a tile is chosen, and rougher estimates of other choices
// (sketch_estimate.c). Only ratios between candidates matter.
#ifndef PESTLE_CODEGEN_SKETCH_COST_H_
#define PESTLE_CODEGEN_SKETCH_COST_H_

#include "codegen/sketch/register_tile.h"

// --- Constants ---

enum {
#define PESTLE_COST(CLASS, NAME, value, ...) PESTLE_##CLASS##_##NAME = (value),
#include "codegen/sketch/cost.def"
};
#define PESTLE_COST_REAL(CLASS, NAME, value, ...) \
  static const double PESTLE_##CLASS##_##NAME = (value);
#include "codegen/sketch/cost.def"

// --- Rates ---

// What one core does a cycle: vectors multiplied and added, loaded, broadcast;
// bytes of what lies in L2, in L3 and where operands crowd L3; and the cycles
// until a multiply-add's result is ready.
typedef struct pestle_core_rates_t {
  double fmas, loads, broadcasts, l2, l3, crowded, latency;
} pestle_core_rates_t;

// Of the target, or the usual ones where it states none.
pestle_core_rates_t pestle_sketch_rates(const pestle_target_caps_t* caps);

// --- Contractions ---

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

// Fills in what |c| says of groups of columns.
void pestle_sketch_describe_groups(const pestle_register_tile_t* t,
                                   pestle_contract_t* c);
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
  return height * PESTLE_CPU_WRITTEN_LINES > width;
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
// Whether the tiles of |t|'s groups have columns of several of them or of one each.
void pestle_sketch_choose_groups(pestle_sketch_t* k, const pestle_contract_t* c,
                                 pestle_register_tile_t* t);

// --- Other choices ---

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

#endif  // PESTLE_CODEGEN_SKETCH_COST_H_
