// SPDX-License-Identifier: Apache-2.0
// Shared by the emit_*.c files and those by which templates (codegen/template/) emit
// their kernels; nobody else includes it.
#ifndef PESTLE_CODEGEN_EMIT_EMIT_INTERNAL_H_
#define PESTLE_CODEGEN_EMIT_EMIT_INTERNAL_H_

#include "codegen/emit/emit_flat.h"

// The part of a stage's tensor that is alive at one place of the loop tree:
// row-major extents from an origin that the loops around it fix.
typedef struct pestle_box_t {
  bool known;
  const pestle_affine_t* origin[PESTLE_MAX_RANK];
  int64_t extent[PESTLE_MAX_RANK];
  int64_t stride[PESTLE_MAX_RANK];
  int64_t count;
  // Lanes that have a box each, those of this axis less 1: in shared memory such boxes lie
  // behind each other. 0: all lanes of a group have one.
  uint32_t row_axis;
} pestle_box_t;

typedef struct pestle_memo_undo_t {
  uint32_t expr;
  pestle_kir_id_t before;
} pestle_memo_undo_t;

struct pestle_emit_t {
  pestle_nest_t* nest;
  pestle_kir_builder_t* k;
  bool contract;
  uint32_t* buffer;   // by tensor; PESTLE_KIR_NONE until made
  pestle_box_t* box;  // by tensor
  bool* ready;        // by tensor: its stage has run where we are
  bool* open;         // by axis: its loop is open or its value is fixed
  const pestle_affine_t** value;  // by axis: leaf value while open
  pestle_kir_id_t* axis_id;       // by axis: loop index while open
  const pestle_affine_t** coord;  // by axis: roots, as index forms over leaves
  pestle_kir_id_t* memo;          // by expression
  uint32_t memo_count;
  uint32_t* checked;  // by expression: epoch of the last look * 2 + result
  uint32_t epoch;     // of what is open
  PESTLE_VEC(pestle_memo_undo_t) undo;
  // Lanes of a group along x and y; 1: the kernel has no such loop.
  int64_t lane_count[2];
  pestle_kir_id_t lane_id[2];
  uint32_t serial_loops;  // that are open
  int32_t vector_axis;    // -1: none is open
  bool in_window;  // guarded loads share their tests, by rows and columns
  unsigned lanes;
  int64_t valid;                   // lanes that exist, from 0
  const pestle_kir_id_t* acc_ids;  // of a general reduction's combine step
  const pestle_kir_id_t* val_ids;
};

// An index: |scalar| for lane 0 and its step along lanes, or |vector| (one
// index a lane) when it is not affine in the lane.
typedef struct pestle_emit_index_t {
  pestle_kir_id_t scalar;
  int64_t step;
  pestle_kir_id_t vector;  // PESTLE_KIR_NONE when affine
} pestle_emit_index_t;

// What is done at one point of the loop tree.
typedef void (*pestle_emit_body_t)(pestle_emit_t* e, uint32_t stage,
                                   void* user);

typedef struct pestle_emit_walk_t {
  pestle_emit_t* e;
  uint32_t stage;
  pestle_emit_body_t body;
  void* user;
  bool attach;  // emit the stages placed under these loops, and hoist
} pestle_emit_walk_t;

// --- emit_loop.c ---
// Opens |leaves|, outermost first, and runs the body inside.
void pestle_emit_walk(pestle_emit_walk_t* w, const uint32_t* leaves,
                      uint32_t count);
// Gives |axis| and what it was split into another extent.
void pestle_emit_set_extent(pestle_nest_t* nest, uint32_t axis, int64_t extent);
// From here on values have |width| lanes, which lie along |axis|; with one lane
// they stay single. Of what was opened last pestle_emit_close_vector() is the end.
void pestle_emit_open_vector(pestle_emit_t* e, uint32_t axis, int64_t width);
void pestle_emit_close_vector(pestle_emit_t* e);
// Hoists all values of the walk's stage.
void pestle_emit_hoist_stage(pestle_emit_walk_t* w);

// --- emit_end.c ---
// Whether |axis| is, or was split from, an axis that ends at a number of memory, or
// walks a fold whose terms change nothing from such a number on.
bool pestle_emit_has_end(pestle_emit_t* e, uint32_t axis);
// For templates, which count axes of the last stage as one number, the last one fastest:
// opens an IF that |first| is before the end of the outermost of them, if there is one,
// and says so.
bool pestle_emit_open_end(pestle_emit_t* e, const int32_t* axes,
                          const int64_t* extents, uint32_t count,
                          pestle_kir_id_t first);
// How many of |trips| tiles of |step| places, of which the first begins at |first|, begin
// before that end; PESTLE_KIR_NONE where there is none.
pestle_kir_id_t pestle_emit_places_to_end(pestle_emit_t* e, const int32_t* axes,
                                          const int64_t* extents,
                                          uint32_t count, pestle_kir_id_t first,
                                          int64_t step, int64_t trips);
// The same for groups that have one place of |axes|, |place| of them counted as one
// number: an IF for each of them that ends. Says how many, which
// pestle_emit_close_places() closes.
uint32_t pestle_emit_open_place(pestle_emit_t* e, const int32_t* axes,
                                const int64_t* extents, uint32_t count,
                                pestle_kir_id_t place);
void pestle_emit_close_places(pestle_emit_t* e, uint32_t opened);
// How many of |trips| blocks of |step| places along |axis|, a root, begin before the end of
// the fold that |stage| is; PESTLE_KIR_NONE where it has none, or one that other axes move.
pestle_kir_id_t pestle_emit_fold_steps(pestle_emit_t* e, uint32_t stage,
                                       uint32_t axis, int64_t step,
                                       int64_t trips);
// Whether the first place of what is open of the axis that |axis| was split from is
// before its end, as i1. The same in all lanes of a group.
pestle_kir_id_t pestle_emit_before_end(pestle_emit_t* e, uint32_t axis);
// How many of |trips| steps of loop |axis|, which is not open, from |first| on begin
// before the end. The same in all lanes of a group.
pestle_kir_id_t pestle_emit_steps_to_end(pestle_emit_t* e, uint32_t axis,
                                         int64_t first, int64_t trips);

// --- emit_flat.c ---
// Axes that a template adds to the nest, this many, have places in the tables.
enum { PESTLE_EMIT_OWN_AXES = 16 };
// The row and column of tile |number| of |rows| x |columns| of them: strips of
// rows, column by column, so that neighbours share what they read.
void pestle_emit_strips(pestle_kir_builder_t* k, pestle_kir_id_t number,
                        int64_t rows, int64_t columns, pestle_kir_id_t* out_row,
                        pestle_kir_id_t* out_column);

// --- emit_lane.c ---
// Finds lane_count: the longest lane loop of each kind.
void pestle_emit_count_lanes(pestle_emit_t* e);
// Opens the lane loops that stages of the nest ask for; pestle_emit_close_lanes
// closes them.
void pestle_emit_open_lanes(pestle_emit_t* e);
void pestle_emit_close_lanes(pestle_emit_t* e);
static inline bool pestle_emit_has_lanes(const pestle_emit_t* e) {
  return e->lane_count[0] * e->lane_count[1] > 1;
}
// |value| of each lane along x (|dim| 0) or y (1), reduced by |op|; the same in all of
// them.
pestle_kir_id_t pestle_emit_reduce_across(pestle_emit_t* e, pestle_op_t op,
                                          pestle_kir_id_t value, int dim);
// What lanes wrote to shared memory is seen by all from here on.
void pestle_emit_barrier(pestle_emit_t* e);
// Opens an IF for the one lane that writes what all have, and says so.
bool pestle_emit_open_writer(pestle_emit_t* e, uint32_t stage);

// --- emit_stage.c ---
void pestle_emit_stage(pestle_emit_t* e, uint32_t stage);
// Emits the stages that are placed at loop |axis| of |stage|; -1: before all.
void pestle_emit_attached(pestle_emit_t* e, uint32_t stage, int32_t axis);
// Whether what is placed under (|stage|, |axis|) may be read.
void pestle_emit_set_ready(pestle_emit_t* e, uint32_t stage, int32_t axis,
                           bool ready);
// The buffers of the tensors that |stage| writes itself.
void pestle_emit_buffers(pestle_emit_t* e, uint32_t stage);
// Reads or writes value |v| of |stage| at the open coordinates.
pestle_kir_id_t pestle_emit_load_stage(pestle_emit_t* e, uint32_t stage,
                                       uint32_t v);
void pestle_emit_store_stage(pestle_emit_t* e, uint32_t stage, uint32_t v,
                             pestle_kir_id_t value);

// --- emit_transpose.c ---
// A transposed copy: one tile, read along one axis and kept along another.
void pestle_emit_transpose_in_registers(pestle_emit_t* e, uint32_t stage);

// --- emit_reduce.c ---
// A stage that reduces: its loops and all that runs under them.
void pestle_emit_reduce(pestle_emit_t* e, uint32_t stage);
// One step of a carried reduction, in the loop that carries it.
void pestle_emit_carried_step(pestle_emit_t* e, uint32_t stage);
// Gives the reductions that loop |axis| of |stage| carries its index, or takes it.
void pestle_emit_open_carried(pestle_emit_t* e, uint32_t stage, uint32_t axis,
                              bool open);

// --- emit_box.c ---
// What stage |p| must compute under (|stage|, |axis|): the hull of all reads.
void pestle_emit_find_box(pestle_emit_t* e, uint32_t p, uint32_t stage,
                          int32_t axis);
// Elements of the boxes of |tensor| that a group has, and where that of this lane begins.
int64_t pestle_emit_box_count(const pestle_emit_t* e, uint32_t tensor);
const pestle_affine_t* pestle_emit_box_row(pestle_emit_t* e, uint32_t tensor);
// The same for a carried reduction: the rows of |owner|.
void pestle_emit_carried_box(pestle_emit_t* e, uint32_t p, uint32_t owner);
// Whether stage |q| runs under that loop of |stage|, there or further in.
bool pestle_emit_placed_under(const pestle_emit_t* e, uint32_t q,
                              uint32_t stage, int32_t axis);

// --- emit_index.c ---
// Recomputes the coordinates of |stage|'s roots from what is open.
void pestle_emit_coords(pestle_emit_t* e, uint32_t stage);
const pestle_affine_t* pestle_emit_resolve(pestle_emit_t* e,
                                           const pestle_affine_t* affine);
pestle_emit_index_t pestle_emit_index(pestle_emit_t* e,
                                      const pestle_affine_t* resolved);
// Lane 0's index as a number of the kernel, and one index a lane.
pestle_kir_id_t pestle_emit_scalar_index(pestle_emit_t* e,
                                         const pestle_affine_t* affine);
pestle_kir_id_t pestle_emit_index_lanes(pestle_emit_t* e,
                                        pestle_emit_index_t at);
pestle_kir_id_t pestle_emit_index_const(pestle_emit_t* e, unsigned lanes,
                                        int64_t value);
// |index| within |lo| and |hi|.
pestle_kir_id_t pestle_emit_clamp(pestle_emit_t* e, pestle_kir_id_t index,
                                  int64_t lo, int64_t hi);
// The lane mask of the open vector axis for an access at |index|, or NONE.
pestle_kir_id_t pestle_emit_mask(pestle_emit_t* e, pestle_kir_id_t index);

// --- emit_strided_load.c ---

// What must be inside [lo, hi) where an element is read: |at|, which is within
// |range|, at lane 0, and one more for each element behind it.
typedef struct pestle_emit_bound_t {
  pestle_kir_id_t at;
  pestle_range_t range;
  int64_t lo, hi;
} pestle_emit_bound_t;

// Lanes that lie here and there in |count| elements of a buffer.
typedef struct pestle_strided_load_t {
  uint32_t buffer;
  unsigned lanes;
  int64_t count;
  const pestle_affine_t* first;          // where lane 0 lies
  int64_t offset[PESTLE_KIR_MAX_LANES];  // of each from there
  pestle_kir_id_t when;                  // a test for all of them, or NONE
  pestle_emit_bound_t bounds[PESTLE_MAX_RANK];
  uint32_t bound_count;
} pestle_strided_load_t;

// Whether |a| holds, unless it is NONE, and |b|.
pestle_kir_id_t pestle_emit_both(pestle_emit_t* e, pestle_kir_id_t a,
                                 pestle_kir_id_t b);
// Where the lanes of an access at |flat| lie, from each other by constants. False:
// it is not known, or the target has vectors of its own kind.
bool pestle_emit_find_strided_load(pestle_emit_t* e,
                                   const pestle_affine_t* flat, int64_t count,
                                   pestle_strided_load_t* out);
// These lanes, by loads of what lies side by side; |clamps|: the first of them is
// moved to where all are. NONE: a gather takes less.
pestle_kir_id_t pestle_emit_strided_load(pestle_emit_t* e,
                                         const pestle_strided_load_t* a,
                                         bool clamps);

// --- emit_packed_dot.c ---
// A short dot product, added to |sum| or to 0 where that is NONE.
pestle_kir_id_t pestle_emit_dot(pestle_emit_t* e, const pestle_expr_t* x,
                                pestle_kir_id_t sum);
// Words of neighbouring elements of |buffer|, |count| elements long, at |flat|.
pestle_kir_id_t pestle_emit_packed(pestle_emit_t* e, const pestle_expr_t* x,
                                   uint32_t buffer, int64_t count,
                                   const pestle_affine_t* flat);

// --- emit_expr.c ---
// Whether memory ran out. Expressions may lack parts then, and tensors their buffers;
// what is emitted is not kept.
bool pestle_emit_has_failed(const pestle_emit_t* e);
// The value of |x|; of those that failed, 0.
pestle_kir_id_t pestle_emit_expr(pestle_emit_t* e, const pestle_expr_t* x);
// |x| is |id|, until the scope closes.
void pestle_emit_take(pestle_emit_t* e, const pestle_expr_t* x,
                      pestle_kir_id_t id);
// Whether |x| was not evaluated yet and depends on open axes only.
bool pestle_emit_is_open(pestle_emit_t* e, const pestle_expr_t* x);
// Evaluates now what depends on open axes only, so that inner loops reuse it.
void pestle_emit_hoist(pestle_emit_t* e, const pestle_expr_t* x);
// Asks for what |resolved| is in an argument.
void pestle_emit_prefetch(pestle_emit_t* e, uint32_t tensor,
                          const pestle_affine_t* resolved);
// What the prefetches of |stage|'s loops ask for, at the open coordinates: at the end of
// a step of the innermost loop; at the beginning of one of loop leaves[0], which is
// open, where it is around others; and the share of a step of loop |loop|.
void pestle_emit_prefetch_step(pestle_emit_t* e, uint32_t stage);
void pestle_emit_prefetch_results(pestle_emit_t* e, uint32_t stage,
                                  const uint32_t* leaves, uint32_t count);
void pestle_emit_prefetch_share(pestle_emit_t* e, uint32_t stage,
                                uint32_t loop);
pestle_kir_id_t pestle_emit_load(pestle_emit_t* e, uint32_t tensor,
                                 const pestle_affine_t* resolved);
// Writes |value| to |tensor| at |resolved|, a flat index of the result or of
// the tensor's box.
void pestle_emit_store(pestle_emit_t* e, uint32_t tensor,
                       const pestle_affine_t* resolved, pestle_kir_id_t value);
// The flat index in |tensor|'s box of |index|, one a dim, not resolved yet.
const pestle_affine_t* pestle_emit_local(pestle_emit_t* e, uint32_t tensor,
                                         const pestle_affine_t* const* index);
uint32_t pestle_emit_buffer(pestle_emit_t* e, uint32_t tensor);
// Results of expressions are remembered until the scope that they were made in
// closes.
size_t pestle_emit_scope(const pestle_emit_t* e);
void pestle_emit_unscope(pestle_emit_t* e, size_t scope);

// Facts (PESTLE_KIR_NSZ ...) of the steps of the reduction |stage| that follow from how
// its result is read.
uint8_t pestle_emit_reduce_facts(pestle_emit_t* e, uint32_t stage);

#endif  // PESTLE_CODEGEN_EMIT_EMIT_INTERNAL_H_
