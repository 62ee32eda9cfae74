// SPDX-License-Identifier: Apache-2.0
// Type rules: one pestle_infer_<op>() for each row of ops.def; scalar rows
// share the few of infer.c. A rule looks at operands, attributes and regions
// and emits the result types, or says what is wrong.
//
// Extents that are not known agree with any extent; a rule carries what it
// knows of them into its results and leaves the rest dynamic.
#ifndef PESTLE_IR_INFER_H_
#define PESTLE_IR_INFER_H_

#include "ir/internal.h"

typedef struct pestle_infer_t {
  const pestle_node_spec_t* spec;
  const pestle_op_info_t* info;
  pestle_attr_t attrs[PESTLE_MAX_ATTRS];  // completed
  size_t attr_count;
  pestle_type_t* out;  // room for |capacity|
  size_t capacity;
  size_t count;  // emitted so far, also past |capacity|
} pestle_infer_t;

#define PESTLE_OP_BEGIN(NAME, op, ...) \
  PESTLE_NODISCARD pestle_status_t pestle_infer_##op(pestle_infer_t* in);
#include "pestle/ops.def"

// --- What rules are written with ---

#define PESTLE_BAD(...) PESTLE_ERROR(INVALID_ARGUMENT, __VA_ARGS__)

static inline const pestle_type_t* pestle_in_type(const pestle_infer_t* in,
                                                  size_t operand) {
  return in->spec->operands[operand]->type;
}
int64_t pestle_in_i64(const pestle_infer_t* in, pestle_attr_name_t name);
pestle_i64s_t pestle_in_i64s(const pestle_infer_t* in, pestle_attr_name_t name);
const pestle_attr_t* pestle_in_attr(const pestle_infer_t* in,
                                    pestle_attr_name_t name);

// Checks |type| and adds it to the results.
PESTLE_NODISCARD pestle_status_t pestle_emit(pestle_infer_t* in,
                                             const pestle_type_t* type);
// The type that the caller stated, which TYPED ops must have.
PESTLE_NODISCARD pestle_status_t
pestle_in_stated(const pestle_infer_t* in, const pestle_type_t** out_type);

static inline bool pestle_dim_known(int64_t dim) {
  return dim != PESTLE_DIM_DYNAMIC;
}
static inline bool pestle_dims_agree(int64_t a, int64_t b) {
  return a == b || !pestle_dim_known(a) || !pestle_dim_known(b);
}
// Whether the shapes agree: equal ranks, and no two known extents differ.
bool pestle_shapes_agree(const pestle_type_t* a, const pestle_type_t* b);
// The same of the dtypes too.
static inline bool pestle_types_agree(const pestle_type_t* a,
                                      const pestle_type_t* b) {
  return a->dtype == b->dtype && pestle_shapes_agree(a, b);
}
// Fills the dynamic extents of |type| in from |other|, which agrees with it.
void pestle_merge_shape(pestle_type_t* type, const pestle_type_t* other);

// Errors that name operands by their number.
PESTLE_NODISCARD pestle_status_t pestle_need_kind(const pestle_infer_t* in,
                                                  size_t operand,
                                                  unsigned kinds);
// Operand |b| has the element type of operand |a|.
PESTLE_NODISCARD pestle_status_t
pestle_need_same_dtype(const pestle_infer_t* in, size_t a, size_t b);
PESTLE_NODISCARD pestle_status_t pestle_need_rank(const pestle_infer_t* in,
                                                  size_t operand, int rank);
// The array attribute |name| has |count| elements.
PESTLE_NODISCARD pestle_status_t pestle_need_count(const pestle_infer_t* in,
                                                   pestle_attr_name_t name,
                                                   size_t count);
// Its elements are distinct axes of a tensor of |rank|. |seen| (PESTLE_MAX_RANK
// flags, or NULL) collects them, across several arrays when it is passed again.
PESTLE_NODISCARD pestle_status_t pestle_need_axes(const pestle_infer_t* in,
                                                  pestle_attr_name_t name,
                                                  int rank, bool* seen);
// Its elements ascend strictly.
PESTLE_NODISCARD pestle_status_t pestle_need_sorted(const pestle_infer_t* in,
                                                    pestle_attr_name_t name);
// The integer attribute |name| is in [low, high).
PESTLE_NODISCARD pestle_status_t pestle_need_between(const pestle_infer_t* in,
                                                     pestle_attr_name_t name,
                                                     int64_t low, int64_t high);
// Every element of the array attribute |name| is >= |low|.
PESTLE_NODISCARD pestle_status_t pestle_need_at_least(const pestle_infer_t* in,
                                                      pestle_attr_name_t name,
                                                      int64_t low);

// --- Regions ---

static inline const pestle_block_t* pestle_in_block(const pestle_infer_t* in,
                                                    size_t region) {
  return in->spec->regions[region]->block;
}
// The return at the end of region |region|.
PESTLE_NODISCARD pestle_status_t pestle_in_return(const pestle_infer_t* in,
                                                  size_t region,
                                                  const pestle_node_t** out);
// Region |region| takes |count| arguments.
PESTLE_NODISCARD pestle_status_t pestle_need_arguments(const pestle_infer_t* in,
                                                       size_t region,
                                                       size_t count);
// Region |region| takes the types of operands |first| to |first + count|.
PESTLE_NODISCARD pestle_status_t pestle_need_operand_arguments(
    const pestle_infer_t* in, size_t region, size_t first, size_t count);
// |type| is |expected|, or an error "|what| |index| of region |region| ...".
PESTLE_NODISCARD pestle_status_t pestle_need_region_type(
    const char* what, size_t index, size_t region, const pestle_type_t* type,
    const pestle_type_t* expected);
// The body of reduce and reduce_window over |count| inputs: (acc..., x...)
// -> acc..., all of rank 0 and of the inputs' element types.
PESTLE_NODISCARD pestle_status_t
pestle_need_reduce_body(const pestle_infer_t* in, size_t count);

// --- Windows, shared by reduce_window and convolution ---

typedef struct pestle_window_t {
  int64_t size, stride, base_dilation, window_dilation, low, high;
} pestle_window_t;
// The number of places of the window over an axis of extent |dim|.
PESTLE_NODISCARD pestle_status_t pestle_window_places(
    int64_t dim, const pestle_window_t* window, int axis, int64_t* out_places);

// Text of a type for messages: cut when it is long.
typedef struct pestle_type_text_t {
  char text[112];
} pestle_type_text_t;
pestle_type_text_t pestle_type_text(const pestle_type_t* type);

#endif  // PESTLE_IR_INFER_H_
