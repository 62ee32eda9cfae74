// SPDX-License-Identifier: Apache-2.0
// Lazy arrays: values that are computed when somebody needs them.
//
//   pestle_array_from_data(device, &type, x_data, &x);
//   pestle_array_exponential(x, &e);              // records, computes nothing
//   pestle_array_add(x, e, &y);                   // the same
//   pestle_array_eval(&y, 1, NULL);               // one kernel
//   pestle_array_data(y, &view);                  // y's elements
//
// An array is an immutable value with a type and a device. Until it is evaluated
// it is a node: an op and the arrays that it reads. Evaluation compiles all nodes
// behind the wanted arrays as one module, or finds the executable that an earlier
// evaluation of the same graph made, runs it, and turns the nodes into data.
//
// Type and shape rules are those of pestle_op_<op>() (graph.h) and are checked when
// an op is recorded, so that an error appears at the call that made it. Elementwise
// ops broadcast: shapes are aligned at their last axis, and an axis of extent 1 is
// repeated. Element types are never converted: pestle_array_convert() does.
//
// Threads: any threads may use, record from and evaluate the same arrays at once;
// an array that two evaluations need is computed by one, and the other waits.
// Each reference belongs to whoever holds it. Memory that was wrapped must not
// change while an array sees it.
//
// Contents:
// - References
// - Making arrays of data
// - Looking
// - Recording
// - Evaluating
// - Between devices
// - Functions
// - What evaluation keeps
#ifndef PESTLE_ARRAY_H_
#define PESTLE_ARRAY_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pestle/compile.h"
#include "pestle/context.h"
#include "pestle/graph.h"
#include "pestle/op.h"
#include "pestle/runtime.h"
#include "pestle/status.h"
#include "pestle/tensor.h"
#include "pestle/types.h"

PESTLE_EXTERN_C_BEGIN

typedef struct pestle_array_s pestle_array_t;

typedef enum pestle_array_state_e {
  PESTLE_ARRAY_DATA = 0,     // elements are there
  PESTLE_ARRAY_PENDING = 1,  // a run on a stream or another thread makes them
  PESTLE_ARRAY_LAZY = 2,     // recorded
  PESTLE_ARRAY_TRACED = 3,   // stands for a value of a capture
  PESTLE_ARRAY_FAILED = 4,   // the run that was to make the elements failed
} pestle_array_state_t;

// --- References ---

// Adds a reference. NULL is allowed.
PESTLE_API void pestle_array_retain(pestle_array_t* array);
// Drops a reference; the last one frees the array and what only it refers to.
// NULL is allowed.
PESTLE_API void pestle_array_release(pestle_array_t* array);

// --- Making arrays of data ---
//
// Every |*out_array| has one reference, which is the caller's. Types are static,
// of a dtype that tensors may have; INVALID_ARGUMENT says what is wrong with one
// that is not. Arrays keep the context of their device alive.

// An array of |type| on |device|, whose elements are copied from |data|: host
// memory, row-major, the size of |type| (see types.h for that of an element).
// |data| may be NULL where |type| has no elements.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_array_from_data(pestle_device_t* device, const pestle_type_t* type,
                       const void* data, pestle_array_t** out_array);
// An array that sees |buffer|, on the buffer's device, without a copy: the element
// at index 0, ..., 0 lies |byte_offset| bytes into it; |strides| counts elements,
// of any sign, 0 too, one an axis; NULL means row-major contiguous. The array
// holds a reference to |buffer|. INVALID_ARGUMENT: elements outside of the buffer.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_array_from_buffer(
    pestle_buffer_t* buffer, const pestle_type_t* type, uint64_t byte_offset,
    const int64_t* strides, pestle_array_t** out_array);
// An array that sees |tensor|'s memory, memory of |device|, without a copy.
// |options| are those of pestle_buffer_wrap(), whose release ends the use; may be
// NULL. Shape and strides are copied. On failure nothing is taken over and release
// is not called. INVALID_ARGUMENT: a dtype that Pestle lacks, a device of another
// type than the tensor's, negative extents.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_array_wrap(
    pestle_device_t* device, const pestle_tensor_t* tensor,
    const pestle_buffer_wrap_options_t* options, pestle_array_t** out_array);
// An array of |type| on |device| whose elements are undefined.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_array_empty(pestle_device_t* device, const pestle_type_t* type,
                   pestle_array_t** out_array);
// An array of |type| on |device| all of whose elements are the one at |element|,
// which is a part of the graph: another value is another executable.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_array_full(pestle_device_t* device, const pestle_type_t* type,
                  const void* element, pestle_array_t** out_array);
// A number, rank 0, of |dtype|, rounded to it, that adapts to the device of what
// it is used with. 0, 1, -1, 2, 0.5 are part of the graph, since they simplify;
// every other number is an argument, so that one which changes (a learning rate)
// compiles once. INVALID_ARGUMENT: a dtype that is no number of at most 64 bits.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_array_scalar(pestle_device_t* device, pestle_dtype_t dtype, double value,
                    pestle_array_t** out_array);

// An array of |type| on |device| that has FAILED with |status|, which is taken over:
// every use returns it. It stands where an array was that was given away.
// INVALID_ARGUMENT: no status.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_array_failed(pestle_device_t* device, const pestle_type_t* type,
                    pestle_status_t status, pestle_array_t** out_array);

// Says where the program recorded |array|, a sentence's end such as "train.py:12, in
// step", which is copied: what a run that was to compute it fails with has a note of it.
// A context keeps 4,096 different ones. INVALID_ARGUMENT: a NULL.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_array_set_site(pestle_array_t* array, const char* site);

// --- Looking ---

// Its type; of dtype NONE for NULL.
PESTLE_API pestle_type_t pestle_array_type(const pestle_array_t* array);
// The same, borrowed from the array, without a copy; NULL for NULL.
PESTLE_API const pestle_type_t* pestle_array_type_of(
    const pestle_array_t* array);
// Its device. Borrowed from the context; NULL for NULL.
PESTLE_API pestle_device_t* pestle_array_device(const pestle_array_t* array);
// What it is at this moment: another thread may change it. FAILED for NULL.
PESTLE_API pestle_array_state_t pestle_array_state(const pestle_array_t* array);
// Whether its elements are there, or will never be. Does not wait.
PESTLE_API bool pestle_array_is_ready(const pestle_array_t* array);
// Whether its elements lie in a buffer that is not all its own: a slice, or with
// other strides than row-major ones. False for what is not evaluated.
PESTLE_API bool pestle_array_is_view(const pestle_array_t* array);
// The buffer that its elements lie in, borrowed from the array; NULL for what is
// not evaluated. Its byte offset and strides are in pestle_array_data().
PESTLE_API pestle_buffer_t* pestle_array_storage(const pestle_array_t* array);

// --- Recording ---

// An op to be recorded. Zero-initialise and set |struct_size|. All is borrowed
// during the call.
typedef struct pestle_array_op_t {
  size_t struct_size;
  pestle_op_t op;
  pestle_array_t* const* operands;
  size_t operand_count;
  const void* attrs;  // pestle_<op>_attrs_t, or NULL: all defaults
  // The functions that the op's regions are: the entry of each, whose arguments
  // and results are those of the region, is copied. It must read nothing else.
  pestle_module_t* const* bodies;
  size_t body_count;
  const pestle_type_t* type;  // of an op whose row is TYPED; else NULL
  pestle_device_t* device;    // of an op without operands; else NULL
} pestle_array_op_t;

// Records |op|. |out| becomes its results, each with a reference that is the
// caller's; what is left over of |out_capacity| becomes NULL. slice, transpose,
// reverse, broadcast_in_dim and reshape of data give a view of it, without an op,
// where strides allow. INVALID_ARGUMENT: what the op's rule says, with op and
// operand; operands of several contexts or, in a sentence of its own, of several
// backends or devices; too little room. UNSUPPORTED: an op that is no function of
// arrays (calls, returns, ops with effects). The failure of an operand that has
// FAILED.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_array_apply(
    const pestle_array_op_t* op, pestle_array_t** out, size_t out_capacity);

// What a row's counts become in a signature.
#define PESTLE_ARRAYS_0 pestle_device_t* device
#define PESTLE_ARRAYS_1 pestle_array_t* a
#define PESTLE_ARRAYS_2 pestle_array_t *a, pestle_array_t *b
#define PESTLE_ARRAYS_3 pestle_array_t *a, pestle_array_t *b, pestle_array_t *c
#define PESTLE_ARRAYS_V pestle_array_t *const *operands, size_t operand_count
#define PESTLE_BODIES_0
#define PESTLE_BODIES_1 , pestle_module_t* body
#define PESTLE_BODIES_2 , pestle_module_t *body, pestle_module_t *other
#define PESTLE_BODIES_V , pestle_module_t *const *bodies, size_t body_count
#define PESTLE_ARRAY_RESULTS_0
#define PESTLE_ARRAY_RESULTS_1 , pestle_array_t** out
#define PESTLE_ARRAY_RESULTS_V , pestle_array_t **out, size_t out_capacity

// Elementwise ops: pestle_array_add(a, b, &y) and so on, as pestle_op_<op>(), with
// shapes that are broadcast. |*out| is a new reference; it must not be the only
// place that holds an operand's.
#define PESTLE_SCALAR(NAME, op, mlir, n, ...)                    \
  PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_array_##op( \
      PESTLE_ARRAYS_##n, pestle_array_t** out);
#include "pestle/scalar.def"

// Whole-tensor ops, as pestle_op_<op>(): operands, attributes, bodies of regions,
// the type of TYPED ops, results. custom_call and composite take their results'
// types from a module alone: they are UNSUPPORTED here.
#define PESTLE_OP_BEGIN(NAME, op, mlir, OPERANDS, REGIONS, RESULTS, TYPE, ...) \
  PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_array_##op(               \
      PESTLE_ARRAYS_##OPERANDS,                                                \
      const pestle_##op##_attrs_t* attrs PESTLE_BODIES_##REGIONS               \
          PESTLE_TYPE_##TYPE PESTLE_ARRAY_RESULTS_##RESULTS);
#include "pestle/ops.def"

// Records what |module|'s entry computes of |count| operands, at least one, of the
// types that it takes: its body becomes a part of the graph. |out| becomes its
// results, references of the caller's. INVALID_ARGUMENT: other operands, too little
// room; UNSUPPORTED: an entry that calls functions.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_array_inline(pestle_module_t* module, pestle_array_t* const* operands,
                    size_t count, pestle_array_t** out, size_t out_capacity);

// Records a choice: operand 0, an i32 of rank 0, says which branch runs, and one that
// there is not stands for the last. Branches are modules of the other operands, with
// results of the same types. |out| as above, and so are errors.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_array_branch(pestle_module_t* const* branches, size_t branch_count,
                    pestle_array_t* const* operands, size_t count,
                    pestle_array_t** out, size_t out_capacity);

// Folds the |axes| of |a|, none of them twice, with the elementwise |op|: ADD,
// MULTIPLY, MAXIMUM, MINIMUM, AND, OR or XOR, from what leaves every number as it
// is. |*out| lacks those axes. INVALID_ARGUMENT: another op, an axis that |a| has
// not, a dtype that the op does not take.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_array_fold(pestle_op_t op, pestle_array_t* a, pestle_i64s_t axes,
                  pestle_array_t** out);

// --- Evaluating ---

// Computes |count| arrays, which may be of several devices, and returns when their
// elements are there. With a |stream|, of the arrays' device, the work is queued
// there; NULL: the calling thread and the context's pool run it. Nodes that are
// computed on the way are kept where anything else refers to them, so that
// nothing is computed twice; memory of data that nothing else refers to is used
// again. Evaluating data does nothing.
//
// Errors before the work begins (UNSUPPORTED, what a compilation fails with) leave
// the arrays LAZY, and so does a run for which there is no memory, unless it was
// given memory to use again; any other run that fails makes what it was to compute
// FAILED, and every later use returns its status. Where an op of the caller's own is
// among what was run, that is what reads one, if no memory was used again; the rest
// stays LAZY. INVALID_ARGUMENT: a TRACED array.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_array_eval(
    pestle_array_t* const* arrays, size_t count, pestle_stream_t* stream);
// The same, but returns when the work is queued: the arrays are PENDING then, and
// may be used, on other streams too. What fails later is found in the arrays.
// |stream| NULL: as pestle_array_eval().
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_array_eval_async(
    pestle_array_t* const* arrays, size_t count, pestle_stream_t* stream);
// pestle_array_eval() on the calling thread, for callers that hold what others wait for: it
// computes only what is compiled, reads nothing that is pending, is on a CPU, and
// took |most_ns| at most when it was measured, at the first runs. |*out_done| says
// whether the elements are there; where they are not, nothing was begun of what may
// take longer, and pestle_array_eval() does it.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_array_eval_quick(pestle_array_t* const* arrays, size_t count,
                        uint64_t most_ns, bool* out_done);
// Waits until the elements of |array| are there, and evaluates it first where it is
// LAZY. Returns the failure of the run that was to make them.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_array_wait(pestle_array_t* array);
// Evaluates |array|, waits, and describes its elements as memory of its device:
// shape and strides (NULL: row-major) are borrowed from |array|, and so is the
// memory, which must not be written.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_array_data(pestle_array_t* array, pestle_tensor_t* out_tensor);
// Evaluates |array| and copies its elements, row-major, to the |size| bytes of the
// host at |data|. INVALID_ARGUMENT: another size than the array's.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_array_read(pestle_array_t* array, void* data, size_t size);

// --- Between devices ---

// A new array on |device|, of the same context, with |array|'s elements in memory
// of its own, row-major: the only way between devices, and on one device a clone.
// Evaluates |array| and returns when the copy is done.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_array_copy_to(
    pestle_array_t* array, pestle_device_t* device, pestle_array_t** out_array);
// A view of all of the buffer that |array| lies in, as bytes (ui8, rank 1);
// evaluates |array|.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_array_base(pestle_array_t* array, pestle_array_t** out_array);

// --- Functions ---
//
//   pestle_capture_begin(device, types, 2, &capture, arguments);
//   ...record on arguments[0] and arguments[1]...
//   pestle_capture_end(capture, &result, 1, &module);
//   pestle_jit_create(device, module, capture, NULL, &f);
//   pestle_jit_call(f, actual, 2, NULL, &y, 1);
//
// A capture records what a piece of code does once, for arguments that have types
// and no elements, as a module: to be called, exported, transformed.

typedef struct pestle_capture_s pestle_capture_t;
typedef struct pestle_jit_s pestle_jit_t;

// Begins a capture on |device| of a function that takes |count| arguments of
// |types| (may be NULL when there are none). |arguments| becomes that many TRACED
// arrays, references of the caller's. What is recorded on a TRACED array is
// TRACED; it has no elements, and needing them is INVALID_ARGUMENT. Captures know
// nothing of each other: any threads may have any number of them.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_capture_begin(
    pestle_device_t* device, const pestle_type_t* types, size_t count,
    pestle_capture_t** out_capture, pestle_array_t** arguments);
// The module of |count| results: its entry takes the capture's arguments, then the
// hidden ones. Arrays that were not made of arguments but are read are hidden
// arguments, so that another value needs no other code; numbers that adapt
// (pestle_array_scalar()), and what is made of constants alone, are constants. May
// be called more than once, with other results; the hidden arguments are those of
// the latest call. What is read of the TRACED arrays of a capture that began before
// is hidden too: captures nest. INVALID_ARGUMENT: TRACED arrays of a later one.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_capture_end(pestle_capture_t* capture, pestle_array_t* const* results,
                   size_t count, pestle_module_t** out_module);
// Makes |count| arrays arguments, behind those that there are: what reads one of them
// reads the argument. So bodies of one op take the same operands.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_capture_bind(
    pestle_capture_t* capture, pestle_array_t* const* arrays, size_t count);
// How many hidden arguments there are.
PESTLE_API size_t pestle_capture_hidden_count(const pestle_capture_t* capture);
// Hidden argument |index|; NULL past the last. Borrowed from the capture.
PESTLE_API pestle_array_t* pestle_capture_hidden(
    const pestle_capture_t* capture, size_t index);
// Ends a capture and its hold on the hidden arguments. TRACED arrays stay what they
// are. NULL is allowed.
PESTLE_API void pestle_capture_release(pestle_capture_t* capture);

// Makes a function of |module|'s entry on |device|. The hidden arguments of
// |capture| (may be NULL: there are none) are its last ones, and kept by it.
// |options| (may be NULL) are those of pestle_compile(), without dump and control.
// Code is made at the first call; where |module| has dimensions that are not known,
// at the first call with other extents.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_jit_create(
    pestle_device_t* device, pestle_module_t* module,
    const pestle_capture_t* capture, const pestle_compile_options_t* options,
    pestle_jit_t** out_jit);
// Lets every later call give |count| of the arguments away, whose numbers are at
// |indices|: pestle_jit_call() says what that is. To be called before the first call.
// INVALID_ARGUMENT: an argument that there is not, or that is hidden; a function that
// was called.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_jit_donate(pestle_jit_t* jit, const uint32_t* indices, size_t count);
// Adds a reference. NULL is allowed.
PESTLE_API void pestle_jit_retain(pestle_jit_t* jit);
// Drops a reference. NULL is allowed.
PESTLE_API void pestle_jit_release(pestle_jit_t* jit);
// Calls |jit| with |count| arguments, its hidden ones left out. |out| becomes its
// results, references of the caller's; what is left over of |out_capacity| becomes
// NULL. LAZY arguments are evaluated first. |stream| NULL: runs now; else the
// call is queued and the results are PENDING. Any threads may call at once.
//
// A call that succeeds has taken the caller's reference to each donated argument over.
// Where that was the only one, and the array no view, a result of its size may lie
// where it lay; otherwise who else sees the array sees it as it was. A call that fails
// leaves all references with the caller; a donated array whose memory the run may have
// overwritten has FAILED then.
//
// INVALID_ARGUMENT names the argument whose type or device is another than the
// function's, and says both, and an argument that is donated and given once more;
// what an evaluation and a compilation fail with.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_jit_call(
    pestle_jit_t* jit, pestle_array_t* const* arguments, size_t count,
    pestle_stream_t* stream, pestle_array_t** out, size_t out_capacity);

// How many sentences pestle_jit_explain_miss() has: one for each set of types that
// code was made for but the first; the latest 64 are kept.
PESTLE_API size_t pestle_jit_miss_count(pestle_jit_t* jit);
// Writes why code was made once more to |text|, of |size| bytes, and cuts it off where
// there is no room: what differed from the set of types that differs least. 0 is the
// oldest. INVALID_ARGUMENT: an |index| that there is not.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_jit_explain_miss(
    pestle_jit_t* jit, size_t index, char* text, size_t size);

// What a compilation looks at, or NULL. Called by the thread that is to compile.
typedef const pestle_control_t* (*pestle_array_control_fn_t)(void* user);
// Lets every compilation that evaluations and calls of |context| begin from now on ask
// |control|, which may be NULL, what to look at. One that is CANCELLED, or DEADLINE_
// EXCEEDED, leaves the arrays LAZY.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_array_set_control(
    pestle_context_t* context, pestle_array_control_fn_t control, void* user);

// --- What evaluation keeps ---

// Zero-initialise and set |struct_size|.
typedef struct pestle_array_stats_t {
  size_t struct_size;
  uint64_t evaluations;  // runs
  uint64_t hits;         // that found their executable
  uint64_t executables;  // kept now, at most 1,024 a context
  uint64_t donations;    // arguments whose memory a run was given
  uint64_t held_bytes;   // of data that only nodes refer to
} pestle_array_stats_t;
// Fills |*out_stats|, whose struct_size must be set, of |context|.
PESTLE_API void pestle_array_stats(pestle_context_t* context,
                                   pestle_array_stats_t* out_stats);

PESTLE_EXTERN_C_END

#endif  // PESTLE_ARRAY_H_
