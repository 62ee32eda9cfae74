// SPDX-License-Identifier: Apache-2.0
// Derivatives and batching of modules. A transform takes a module and makes another
// of the same ops, before any pass: derivatives fuse, plan and cache like everything
// else, compose, and print as text.
//
//   pestle_module_gradient(module, NULL, &gradient);  // of a loss
//   pestle_compile(context, gradient, NULL, NULL, &plan);
//
// What holds for all of them: |module| stays as it is and may be read by other threads
// at the time; all its dimensions must be known (pestle_module_specialize()). |options|
// may be NULL: all defaults. |*out_module| has one public function, the entry,
// of the name of the one that was transformed; it shares the constants of |module|,
// which it keeps. Arguments and results keep their order; new ones come behind.
//
// Softmax, norms and attention that are spelled in core ops are differentiated op by op,
// which gives longer graphs than their composites do: pestle_optimize() with |passes|
// "inline,canonicalise,recognise" makes them composites first.
//
// Only floats and complex numbers have derivatives. An integer or a flag has none: it
// is not among "all arguments" below, and naming one is INVALID_ARGUMENT.
//
// Errors: INVALID_ARGUMENT names an index that does not exist or is given twice, an
// argument or result without derivative, or the dimension that is not known.
// UNSUPPORTED names the op that has no rule, its place in the source, the argument
// that reaches it, and what to do; docs/transforms.md lists them.
#ifndef PESTLE_TRANSFORM_H_
#define PESTLE_TRANSFORM_H_

#include "pestle/graph.h"

PESTLE_EXTERN_C_BEGIN

// Zero-initialise and set |struct_size|. All is borrowed during the call.
typedef struct pestle_transform_options_t {
  size_t struct_size;
  const char* function;  // by name; NULL: the entry
  // By position, in the order in which their tangents or cotangents are wanted.
  // NULL: all that have derivatives.
  const uint32_t* arguments;
  size_t argument_count;
  const uint32_t* results;
  size_t result_count;
  // pestle_module_linearize(): the linear function is there to be transposed alone. Ops
  // with a vjp of their own are differentiated by that then, as in reverse mode, attention
  // and norms have gradients of one op, and the linear function may hold ops that nothing
  // can run.
  bool to_transpose;
  // Reverse mode, of loops that do not count up to a constant: no such loop takes more
  // turns. Its memory is that of so many. A loop that would go on has NaN for floats.
  // 0: such loops are UNSUPPORTED.
  int64_t max_trips;
  // pestle_module_checkpoint(): what is kept besides the arguments. "nothing" (NULL, where
  // there is no budget), "everything" that reverse mode reads, "dots": results of
  // contractions, "names": values that |names| lists, "a,b", or "min_bytes": as few bytes
  // as there can be without a contraction again (NULL, where there is a budget).
  const char* policy;
  const char* names;
  // What is kept takes no more bytes: what is cheapest to compute again for its bytes is.
  // 0: no bound.
  int64_t budget_bytes;
} pestle_transform_options_t;

// Forward mode. The entry takes the arguments, then a tangent for each of
// |options|->arguments, and returns the results, then the tangents of |options|->results:
// their directional derivatives.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_module_jvp(
    pestle_module_t* module, const pestle_transform_options_t* options,
    pestle_module_t** out_module);

// Reverse mode. The entry takes the arguments, then a cotangent for each of
// |options|->results, and returns the results, then the cotangents of
// |options|->arguments: of real functions, what each argument adds to the sum of
// cotangents times results. Cotangents of complex numbers are not conjugated, as
// JAX has it.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_module_vjp(
    pestle_module_t* module, const pestle_transform_options_t* options,
    pestle_module_t** out_module);

// Reverse mode of a loss. The entry takes the arguments and returns the results, then,
// for each of |options|->arguments, the gradient of the sum of all elements of
// |options|->results (default: of the first result alone), which are real.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_module_gradient(
    pestle_module_t* module, const pestle_transform_options_t* options,
    pestle_module_t** out_module);

// pestle_module_jvp() in two: |*out_forward| takes the arguments and returns the results,
// then residuals; |*out_linear| takes the residuals, then tangents of
// |options|->arguments, and returns those of |options|->results. What depends on the
// arguments alone is computed in the former. pestle_module_transpose() of the latter,
// for the arguments behind the residuals, makes reverse mode in two, if |options| has
// to_transpose.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_module_linearize(
    pestle_module_t* module, const pestle_transform_options_t* options,
    pestle_module_t** out_forward, pestle_module_t** out_linear);

// The same function, of which reverse mode keeps the arguments alone and computes the rest
// again: its body becomes the op "pestle.checkpoint", which is that body to all else. A
// part of a function is marked by a "stablehlo.composite" of that name; and one called
// "pestle.stop_gradient" is what its body is, without a derivative. Of |options|
// |function|, |policy|, |names| and |budget_bytes| are read. INVALID_ARGUMENT: there is no
// such policy.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_module_checkpoint(
    pestle_module_t* module, const pestle_transform_options_t* options,
    pestle_module_t** out_module);

// The same function, whose results are one value's that policies call |name|: its body
// becomes the op "pestle.checkpoint_name". INVALID_ARGUMENT: a name that no list can hold.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_module_checkpoint_name(
    pestle_module_t* module, const char* name, pestle_module_t** out_module);

// The transposed function of one that is linear in |options|->arguments (default: in
// all that could be): takes the other arguments, then cotangents of |options|->results,
// and returns the cotangents of |options|->arguments. INVALID_ARGUMENT names the op
// that is not linear.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_module_transpose(
    pestle_module_t* module, const pestle_transform_options_t* options,
    pestle_module_t** out_module);

// pestle_vmap_options_t: an argument or result that has no new axis.
enum { PESTLE_NOT_BATCHED = -1 };

// Zero-initialise and set |struct_size|. All is borrowed during the call.
typedef struct pestle_vmap_options_t {
  size_t struct_size;
  const char* function;  // by name; NULL: the entry
  int64_t size;          // extent of the new axis
  // Where the new axis is in each argument, counted in the type that has it, or
  // PESTLE_NOT_BATCHED. NULL: in front, in all of them.
  const int64_t* argument_axes;
  size_t argument_axis_count;
  const int64_t* result_axes;
  size_t result_axis_count;
} pestle_vmap_options_t;

// Batching: a function that does for |options|->size elements of a new axis, side by
// side, what |module| does for one. Results are those of a loop over the axis.
// INVALID_ARGUMENT also: a count of axes that is not that of arguments or results, an
// axis that is none, a result that depends on a batched argument and is to have no
// axis.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_module_vmap(
    pestle_module_t* module, const pestle_vmap_options_t* options,
    pestle_module_t** out_module);

PESTLE_EXTERN_C_END

#endif  // PESTLE_TRANSFORM_H_
