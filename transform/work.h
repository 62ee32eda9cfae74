// SPDX-License-Identifier: Apache-2.0
// One derivative in the making: a copy of the function, which gets tangents as
// arguments behind its own, and what it returns afterwards.
#ifndef PESTLE_TRANSFORM_WORK_H_
#define PESTLE_TRANSFORM_WORK_H_

#include "pestle/transform.h"
#include "transform/transform.h"

typedef struct pestle_work_t {
  pestle_module_t* module;
  pestle_function_t* function;
  pestle_block_t* body;
  size_t argument_count, result_count;  // of the function as it was
  const uint32_t *arguments, *results;  // those with tangents
  size_t tangent_count, output_count;
  pv_t** tangents;  // the new arguments
  pv_t** outputs;   // tangents of |results|, NULL where zero
  pestle_arena_t arena;
  pestle_jvp_t jvp;
  pestle_transposer_t x;
} pestle_work_t;

// A copy of |module| with the function |name| (NULL: the entry) as entry, whose
// dimensions are known.
PESTLE_NODISCARD pestle_status_t pestle_transform_copy(
    pestle_module_t* module, const char* name, pestle_module_t** out_module);
// |options| as this library knows them.
pestle_transform_options_t pestle_transform_options(
    const pestle_transform_options_t* options);

// |is_linear| as of pestle_jvp_t. After a failure too finish() must be called.
PESTLE_NODISCARD pestle_status_t pestle_work_init(
    pestle_module_t* module, const pestle_transform_options_t* options,
    bool is_linear, pestle_work_t* w);
// Hands the module over unless |status| is a failure, which it returns.
PESTLE_NODISCARD pestle_status_t pestle_work_finish(
    pestle_work_t* w, pestle_status_t status, pestle_module_t** out_module);
// |count| values, to be filled.
pv_t** pestle_work_array(pestle_work_t* w, size_t count);
static inline pv_t* pestle_work_returned(const pestle_work_t* w, size_t index) {
  return pestle_node_operand(w->body->last, index);
}
// An argument of |like|'s type, called |name| (may be NULL) and |suffix|.
PESTLE_NODISCARD pestle_status_t pestle_work_add_argument(pestle_work_t* w,
                                                          const pv_t* like,
                                                          const char* name,
                                                          const char* suffix,
                                                          pv_t** out_value);
// An argument for the cotangent of each of |results|.
PESTLE_NODISCARD pestle_status_t pestle_work_add_cotangents(pestle_work_t* w,
                                                            pv_t** out_cts);
// Returns the first |from| results, then |values|; drops what nobody uses then.
PESTLE_NODISCARD pestle_status_t pestle_work_set_results(pestle_work_t* w,
                                                         size_t from,
                                                         pv_t* const* values,
                                                         size_t count);
// Takes an argument away that was transposed for. INVALID_ARGUMENT: something reads it
// still, since what was transposed is not linear in it.
PESTLE_NODISCARD pestle_status_t pestle_work_drop_argument(pestle_work_t* w,
                                                           size_t index);
// Takes the arguments [low, high) away.
PESTLE_NODISCARD pestle_status_t pestle_work_drop_arguments(pestle_work_t* w,
                                                            size_t low,
                                                            size_t high);
// Puts zeros like |likes| for what is NULL of |values|.
PESTLE_NODISCARD pestle_status_t pestle_work_fill_zeros(pestle_work_t* w,
                                                        pv_t** values,
                                                        pv_t* const* likes,
                                                        size_t count);
// Tangents as arguments, walked to the results: fills |outputs|.
PESTLE_NODISCARD pestle_status_t pestle_work_forward(pestle_work_t* w);
// Zeros in |outputs| for NULL.
PESTLE_NODISCARD pestle_status_t pestle_work_fill_outputs(pestle_work_t* w);
// Finds what depends on |inputs|.
PESTLE_NODISCARD pestle_status_t pestle_work_find_linear(pestle_work_t* w,
                                                         pv_t* const* inputs,
                                                         size_t count);
// From |outputs|, NULL where zero, with cotangents |cts|, to |inputs|.
PESTLE_NODISCARD pestle_status_t
pestle_work_transpose(pestle_work_t* w, pv_t* const* outputs, pv_t* const* cts,
                      size_t output_count, pv_t* const* inputs,
                      size_t input_count, pv_t** out_cts);

#endif  // PESTLE_TRANSFORM_WORK_H_
