// SPDX-License-Identifier: Apache-2.0
// Values whose extents only running tells (docs/adr/011). Such a value is laid
// out by its type, the bound; along some axes only the first so many elements
// are real, a number that is an i64 of rank 0. Behind them anything may lie.
#ifndef PESTLE_FRONTEND_ONNX_BOUNDED_H_
#define PESTLE_FRONTEND_ONNX_BOUNDED_H_

#include "frontend/onnx/emit.h"

// The real extents of a value, NULL along axes where its type has them.
typedef struct pestle_onnx_real_t {
  pestle_value_t* sizes[PESTLE_MAX_RANK];
} pestle_onnx_real_t;

// A real extent of a cache (pestle_length_binding_t): |past| of the run, and |rows| that were
// appended. There is room for them, and what lies behind is finite.
typedef struct pestle_onnx_room_t {
  pestle_value_t* past;
  int64_t rows;
} pestle_onnx_room_t;

// What |size| (may be NULL) is as such an extent; NULL: it is none.
const pestle_onnx_room_t* pestle_onnx_room_of(
    const pestle_onnx_import_t* import, const pestle_value_t* size);
// Notes that along |axis| of |value| |past| + |rows| is real, and that there is room.
void pestle_onnx_set_room(pestle_onnx_call_t* call, pestle_value_t* value,
                          int64_t axis, pestle_value_t* past, int64_t rows);
// Notes that |past|, an i64 of rank 0, is how many of |room| rows are there.
void pestle_onnx_set_place(pestle_onnx_call_t* call, pestle_value_t* past,
                           int64_t room);
// |x| behind the real places of |cache|, which has room for it, along |axis|.
pestle_value_t* pestle_onnx_append(pestle_onnx_call_t* call,
                                   pestle_value_t* cache, pestle_value_t* x,
                                   int64_t axis);
// Places of |axis| of |type| that |room| has, as i1; those of row i of |row_axis| end behind
// the i-th new one; -1: at the last.
pestle_value_t* pestle_onnx_room_mask(pestle_onnx_call_t* call,
                                      const pestle_type_t* type, int64_t axis,
                                      int64_t row_axis,
                                      const pestle_onnx_room_t* room);

// What is known of |value|; NULL when its type says all.
const pestle_onnx_real_t* pestle_onnx_real(const pestle_onnx_import_t* import,
                                           const pestle_value_t* value);
// The real extent of |value| along |axis|, or NULL.
pestle_value_t* pestle_onnx_real_size(const pestle_onnx_import_t* import,
                                      const pestle_value_t* value,
                                      int64_t axis);
// Notes that |size| is the real extent of |value| along |axis|; NULLs do
// nothing.
void pestle_onnx_set_real(pestle_onnx_call_t* call, pestle_value_t* value,
                          int64_t axis, pestle_value_t* size);
// |value|, whose real extents are noted, as one of which no more need be computed
// (pestle.extent), with the same notes. For what no rule of passes/extents.c gives
// its extents: sources, and what is gathered from computed places.
pestle_value_t* pestle_onnx_end_real(pestle_onnx_call_t* call,
                                     pestle_value_t* value);
// The real extents of |value| as an i64 list.
pestle_value_t* pestle_onnx_real_shape(pestle_onnx_call_t* call,
                                       pestle_value_t* value);
// Where the elements of |type| are real, as i1, looking at |axes|, a bit each;
// NULL when |real| (may be NULL) says nothing about those.
pestle_value_t* pestle_onnx_real_mask(pestle_onnx_call_t* call,
                                      const pestle_type_t* type,
                                      const pestle_onnx_real_t* real,
                                      uint32_t axes);
// Refuses the call when it has such an input that its op cannot take.
void pestle_onnx_check_bounded(pestle_onnx_call_t* call,
                               const pestle_onnx_op_t* op);
// Refuses the call when more than |axes|, a bit each, of input |i| are so long as only a
// run tells: for importers of kind OWN. False when it does.
bool pestle_onnx_allow_real(pestle_onnx_call_t* call, size_t i, uint32_t axes);
// Notes what is real of the results of ops of kind ROWS, KEEP and BATCH.
void pestle_onnx_keep_real(pestle_onnx_call_t* call,
                           const pestle_onnx_op_t* op);
// The real extents of elementwise results with numpy's broadcasting.
void pestle_onnx_broadcast_real(pestle_onnx_call_t* call);
// The real extents of |value| as those of |from|, axis by axis.
void pestle_onnx_copy_real(pestle_onnx_call_t* call, pestle_value_t* value,
                           const pestle_value_t* from);
// |x| with |filler|, of rank 0, where it is not real along |axes|, a bit each.
pestle_value_t* pestle_onnx_fill_unreal(pestle_onnx_call_t* call,
                                        pestle_value_t* x, uint32_t axes,
                                        pestle_value_t* filler);

// --- Extents that must be equal (bounded_fit.c) ---

// Makes the run fail unless |holds|, an i1 of rank 0. False where no run could say so: in
// a body that runs later.
bool pestle_onnx_must_hold(pestle_onnx_call_t* call, pestle_value_t* holds);
// Makes |count| values, some of which may be NULL, equally long: each along its axis of
// |axes|, -1 for none. Values that a run alone tells to be so make it fail where they are
// not. |*out_size|: how long, NULL where their types have it. False, with an error kept,
// where no run could say so.
bool pestle_onnx_fit(pestle_onnx_call_t* call, pestle_value_t** values,
                     const int64_t* axes, size_t count,
                     pestle_value_t** out_size);
// The same for the call's inputs, of which those of one element are repeated, as numpy
// has it.
void pestle_onnx_fit_broadcast(pestle_onnx_call_t* call);

// --- Branches (bounded_branch.c) ---

// A branch in a region of its own; where it ends is left open, for two of them to agree on.
typedef struct pestle_onnx_branch_t {
  pestle_region_t* region;
  pestle_builder_t builder;
  pestle_value_t** values;  // of each output, then room for their extents
} pestle_onnx_branch_t;
bool pestle_onnx_begin_branch(pestle_onnx_call_t* call,
                              pestle_onnx_branch_t* out);
// The call's outputs as what one of two branches gives, by |condition|, an i1 of rank 0.
// Types are alike but for extents.
void pestle_onnx_merge_branches(pestle_onnx_call_t* call,
                                pestle_value_t* condition,
                                pestle_onnx_branch_t* branches);
// Runs |fn|, an importer of an op whose kernels do the work of the bound of input 0, for
// few elements, more, and as many as there may be: a run takes the least that is enough.
void pestle_onnx_by_size(pestle_onnx_call_t* call, pestle_onnx_fn_t fn);

// --- Sums that end (bounded_sum.c) ---

typedef pestle_value_t* (*pestle_onnx_product_fn_t)(pestle_onnx_call_t* call,
                                                    void* self,
                                                    pestle_value_t* a,
                                                    pestle_value_t* b);
// Notes the real extents of |y|, a product of |a| and |b|.
typedef void (*pestle_onnx_note_fn_t)(pestle_onnx_call_t* call, void* self,
                                      pestle_value_t* y, pestle_value_t* a,
                                      pestle_value_t* b);
// |product| of |a| and |b|, which sums over |a_axis| of the one and |b_axis| of the other,
// both really |size| long; NULL: as long as their types say. |note| (may be NULL) is of
// what is added up; the result is the caller's to note.
pestle_value_t* pestle_onnx_sum_products(
    pestle_onnx_call_t* call, pestle_value_t* a, int64_t a_axis,
    pestle_value_t* b, int64_t b_axis, pestle_value_t* size,
    pestle_onnx_product_fn_t product, pestle_onnx_note_fn_t note, void* self);

// numpy's product of matrices |a| and |b| (import_matmul.c), whose real extents it notes.
// |product| makes that of operands that are whole along what it sums over.
pestle_value_t* pestle_onnx_matmul_real(pestle_onnx_call_t* call,
                                        pestle_value_t* a, pestle_value_t* b,
                                        pestle_onnx_product_fn_t product,
                                        void* self);

// --- Extents as numbers (bounded_size.c): i64 of rank 0 ---

// What |value| really has along |axis|, a constant where its type says it.
pestle_value_t* pestle_onnx_size(pestle_onnx_call_t* call,
                                 const pestle_value_t* value, int64_t axis);
pestle_value_t* pestle_onnx_size_number(pestle_onnx_call_t* call,
                                        int64_t number);
// |size| * |factor|.
pestle_value_t* pestle_onnx_size_times(pestle_onnx_call_t* call,
                                       pestle_value_t* size, int64_t factor);
// The product of the sizes along axes [begin, end); NULL where the type says it.
pestle_value_t* pestle_onnx_size_product(pestle_onnx_call_t* call,
                                         const pestle_value_t* value,
                                         int64_t begin, int64_t end);
// Whether both are the same number in each run: the same value, or the same
// arithmetic on such.
bool pestle_onnx_same_size(const pestle_value_t* a, const pestle_value_t* b);

// --- Shapes that are computed from such extents (bounded_shape.c) ---

typedef struct pestle_onnx_extent_t {
  int64_t dim;           // the number, or the bound of |size|
  pestle_value_t* size;  // NULL for a number
} pestle_onnx_extent_t;
// The elements of input |index|, at most PESTLE_MAX_RANK, where they are numbers
// and sizes. False where all are known, or one is neither.
bool pestle_onnx_extents(pestle_onnx_call_t* call, size_t index,
                         pestle_onnx_extent_t* out, size_t* out_count);
// The same of an input that is one number or size.
bool pestle_onnx_extent(pestle_onnx_call_t* call, size_t index,
                        pestle_onnx_extent_t* out);

// Element |at| of |list|, of rank 0 or 1 and whole numbers, as an i64 of rank 0: a size
// or a number where it is one.
pestle_value_t* pestle_onnx_list_number(pestle_onnx_call_t* call,
                                        pestle_value_t* list, int64_t at);
// |list|, of at most PESTLE_MAX_RANK elements, as i64, where it is made of sizes and of
// numbers, and each that it has is a number; else NULL.
const pestle_elements_t* pestle_onnx_known_list(pestle_onnx_call_t* call,
                                                pestle_value_t* list);
// What |number|, made of sizes and numbers, is at most; -1 where that is not known.
int64_t pestle_onnx_number_bound(const pestle_onnx_call_t* call,
                                 const pestle_value_t* number);

// --- Moving what is bounded (bounded_move.c) ---

// |x| with zeros behind it, as long as |dims| say; what is real of it is not noted.
pestle_value_t* pestle_onnx_widen(pestle_onnx_call_t* call, pestle_value_t* x,
                                  const int64_t* dims);
// The first element of |x| along |axis|, really one.
pestle_value_t* pestle_onnx_first_real(pestle_onnx_call_t* call,
                                       pestle_value_t* x, int64_t axis);
// A value of its own that is |x|, so that other sizes can be noted for it.
pestle_value_t* pestle_onnx_apart(pestle_onnx_call_t* call, pestle_value_t* x);
// |x| with its axes in the order of |perm|, and what is real of it.
pestle_value_t* pestle_onnx_transpose_real(pestle_onnx_call_t* call,
                                           pestle_value_t* x,
                                           const int64_t* perm);

// numpy's x[start:end:step] along |axis|, whose extent only a run tells. Notes
// the result's along that axis.
pestle_value_t* pestle_onnx_slice_real(pestle_onnx_call_t* call,
                                       pestle_value_t* x, int64_t axis,
                                       int64_t start, int64_t end,
                                       int64_t step);
// How far |end| is behind |start| at most, where one is the other and a number; -1 where
// it is not known.
int64_t pestle_onnx_distance(const pestle_value_t* start,
                             const pestle_value_t* end, int64_t step);
// The same for a start and an end that a run tells, or that are constants; |step| is not
// 0. The axis may be known.
pestle_value_t* pestle_onnx_slice_computed(pestle_onnx_call_t* call,
                                           pestle_value_t* x, int64_t axis,
                                           pestle_value_t* start,
                                           pestle_value_t* end, int64_t step);
// |size| elements of |axis| from |first| on, both of which a run tells, within it; |size|
// is at most |bound|, and NULL where it is that.
pestle_value_t* pestle_onnx_part_real(pestle_onnx_call_t* call,
                                      pestle_value_t* x, int64_t axis,
                                      pestle_value_t* first,
                                      pestle_value_t* size, int64_t bound);
// Joins values along |axis|, some of whose extents there only a run tells, and
// notes the result's.
pestle_value_t* pestle_onnx_concat_real(pestle_onnx_call_t* call,
                                        pestle_value_t* const* values,
                                        size_t count, int64_t axis);
// The same of values that have to be alike along all other axes, whose extents it notes
// too (import_shape.c). May put others in the place of |values|.
pestle_value_t* pestle_onnx_join(pestle_onnx_call_t* call,
                                 pestle_value_t** values, size_t count,
                                 int64_t axis);
// |x| as |rank| axes of at most |dims|, really |sizes|, NULL where |dims| says
// it. There are as many real elements as of |x|, in their order. Notes |sizes|.
pestle_value_t* pestle_onnx_reshape_real(pestle_onnx_call_t* call,
                                         pestle_value_t* x, int32_t rank,
                                         const int64_t* dims,
                                         pestle_value_t* const* sizes);

#endif  // PESTLE_FRONTEND_ONNX_BOUNDED_H_
