// SPDX-License-Identifier: Apache-2.0
// What the files of the reference evaluator share: one function an op (named by
// ops.def, so that an op without meaning fails to link), conversion of arrays
// to and from the widest type of their kind, and the interpreter of regions.
#ifndef PESTLE_IR_REF_REF_INTERNAL_H_
#define PESTLE_IR_REF_REF_INTERNAL_H_

#include "base/arena.h"
#include "ir/graph.h"
#include "ir/ref/ref.h"

typedef struct pestle_ref_interp_t pestle_ref_interp_t;
typedef struct pestle_ref_body_t pestle_ref_body_t;
// One of several evaluations that meet at collectives (ref_collective.c).
typedef struct pestle_ref_rank_t pestle_ref_rank_t;

// One evaluation of one node.
typedef struct pestle_ref_call_t {
  pestle_allocator_t allocator;
  const pestle_node_t* node;
  const void* const* operands;
  void* const* results;
  pestle_ref_interp_t* interp;             // for ops with regions, and calls
  const pestle_ref_body_t* const* bodies;  // one a region
  pestle_ref_rank_t* rank;                 // whose it is; NULL: it is alone
} pestle_ref_call_t;

typedef pestle_status_t (*pestle_ref_fn_t)(const pestle_ref_call_t* call);

// pestle_ref_transpose() and so on: the meaning of each structured op.
#define PESTLE_OP_BEGIN(NAME, op, ...)              \
  PESTLE_NODISCARD pestle_status_t pestle_ref_##op( \
      const pestle_ref_call_t* call);
#include "pestle/ops.def"

// Any row of scalar.def.
PESTLE_NODISCARD pestle_status_t
pestle_ref_scalar(const pestle_ref_call_t* call);

// The same on complex operands.
PESTLE_NODISCARD pestle_status_t
pestle_ref_complex_scalar(const pestle_ref_call_t* call);

// --- Types ---

static inline const pestle_type_t* pestle_ref_operand_type(
    const pestle_ref_call_t* call, size_t index) {
  return call->node->operands[index].value->type;
}
static inline const pestle_type_t* pestle_ref_result_type(
    const pestle_ref_call_t* call, size_t index) {
  return call->node->results[index].type;
}

// The widest type of a kind, in which arithmetic is done.
typedef enum pestle_ref_class_e {
  PESTLE_REF_F32,  // elementwise only: f32 and narrower
  PESTLE_REF_F64,
  PESTLE_REF_I64,
  PESTLE_REF_U64,   // bool too
  PESTLE_REF_NONE,  // complex
} pestle_ref_class_t;

// The class with F64 for every float.
pestle_ref_class_t pestle_ref_wide_class(pestle_dtype_t dtype);

// Arrays of |dtype| to and from 8-byte elements of its wide class. Stores round
// floats to nearest even and wrap integers.
void pestle_ref_load_wide(pestle_dtype_t dtype, const void* source,
                          size_t count, void* out);
void pestle_ref_store_wide(pestle_dtype_t dtype, const void* source,
                           size_t count, void* out);
// Arrays of any float dtype to and from f64; narrow floats to and from f32.
void pestle_ref_load_f64(pestle_dtype_t dtype, const void* source, size_t count,
                         double* out);
void pestle_ref_store_f64(pestle_dtype_t dtype, const double* source,
                          size_t count, void* out);
void pestle_ref_load_f32(pestle_dtype_t dtype, const void* source, size_t count,
                         float* out);
void pestle_ref_store_f32(pestle_dtype_t dtype, const float* source,
                          size_t count, void* out);

// --- Scalar kernels ---

// out[i] = op(a[i], b[i], c[i]) on arrays of a class's type; unused operands
// may be any readable array as long. Comparisons write one byte a result.
// |width| is that of the dtype in bits. |out| may be |a|.
typedef void (*pestle_ref_kernel_t)(void* out, const void* a, const void* b,
                                    const void* c, size_t count,
                                    uint64_t width);
pestle_ref_kernel_t pestle_ref_kernel(pestle_op_t op, pestle_ref_class_t kind);

// --- Index arithmetic ---

// Copies a box of |dims| between two arrays with strides in bytes, any sign.
void pestle_ref_copy_strided(size_t element_size, int rank, const int64_t* dims,
                             char* target, const int64_t* target_strides,
                             const char* source, const int64_t* source_strides);
// Row-major strides of |type| in bytes.
void pestle_ref_strides(const pestle_type_t* type, int64_t* out_strides);
// The next index in row-major order; false after the last.
bool pestle_ref_next(int rank, const int64_t* dims, int64_t* index);
// Fills |count| elements with the one at |value|.
void pestle_ref_fill(void* target, size_t element_size, size_t count,
                     const void* value);

// --- Regions ---

// Runs a region's block on |arguments| (arrays of the arguments' types) and
// copies what it returns to |results|.
PESTLE_NODISCARD pestle_status_t pestle_ref_run(pestle_ref_interp_t* interp,
                                                const pestle_ref_body_t* body,
                                                const void* const* arguments,
                                                void* const* results);
// Runs a function of the module by name.
PESTLE_NODISCARD pestle_status_t
pestle_ref_run_function(pestle_ref_interp_t* interp, const char* name,
                        const void* const* arguments, void* const* results);
// Runs |function| as |rank| (NULL: alone).
PESTLE_NODISCARD pestle_status_t pestle_ref_evaluate_as(
    pestle_allocator_t allocator, const pestle_function_t* function,
    pestle_ref_rank_t* rank, const void* const* arguments,
    void* const* results);
// Bytes and type of what |body| returns.
const pestle_type_t* pestle_ref_return_type(const pestle_ref_body_t* body,
                                            size_t index);

#endif  // PESTLE_IR_REF_REF_INTERNAL_H_
