// SPDX-License-Identifier: Apache-2.0
// Ops of the caller's own: `stablehlo.custom_call @name(...)` in a module calls
// the function that the context has under that name. It runs as one step of the
// plan, on every device.
//
//   static pestle_status_t twice(void* user, const pestle_custom_call_t* call) {
//     const float* x = call->inputs[0].data;
//     float* y = call->outputs[0].data;
//     for (int64_t i = 0; i < call->inputs[0].shape[0]; ++i) y[i] = 2 * x[i];
//     return NULL;
//   }
//   pestle_context_register_custom_call(context, "twice", twice, NULL, NULL);
//
// Names are looked up when a module is compiled, when an executable is made of a
// plan, and when the reference evaluates a call. A plan holds the name and the
// version, never the function: one that was saved, or that the cache has, needs
// a context that knows the name under the same version.
#ifndef PESTLE_CUSTOM_CALL_H_
#define PESTLE_CUSTOM_CALL_H_

#include <stdbool.h>
#include <stddef.h>

#include "pestle/context.h"
#include "pestle/export.h"
#include "pestle/status.h"
#include "pestle/tensor.h"

PESTLE_EXTERN_C_BEGIN

// Attributes of an op of the caller's own (custom_op.h).
typedef struct pestle_custom_attrs_s pestle_custom_attrs_t;

// What a function is given. All is borrowed during the call. Tensors say where
// they lie (device type and number, address) and are row-major: |shape| and
// |strides|, in elements, have |ndim| entries each. They lie in the host's memory
// unless the function takes the device's. Where the module states another layout
// (operand_layouts, result_layouts), |shape| names the axes as they lie, from the
// slowest to the fastest: tensor<2x3xf32> in columns comes as 3 x 2, and a dictionary
// has the order of all of them, inputs first, under "pestle.layouts": [[1, 0], ...].
typedef struct pestle_custom_call_t {
  size_t struct_size;
  const char* name;
  // The module's backend_config: a string, or the text of a dictionary
  // ("{scale = 2.0 : f32}"); the other of the two is "".
  const char* config;
  const char* dictionary;
  // Not to be written, but for those that the module has as aliases of outputs
  // (output_operand_aliases): such an input lies where its output does, which holds
  // it when the function is called.
  const pestle_tensor_t* inputs;
  size_t input_count;
  const pestle_tensor_t* outputs;  // all to be filled
  size_t output_count;
  // For a function that takes device memory, on a device other than a CPU: the
  // stream of the device's own interface (a CUstream, a cl_command_queue), in
  // whose order it must read and write, and whose context is current on the thread.
  // NULL: what was queued is done, and the function returns when it is.
  void* stream;
  // called_computations of the module, in their order: each a function and those that
  // it calls as the text of a module (pestle_module_parse), whose entry it is.
  const char* const* computations;
  size_t computation_count;
  // Of an eval (custom_op.h): the op's attributes. NULL: a custom call, which has
  // |config| or |dictionary|.
  const pestle_custom_attrs_t* attrs;
  // The strings of the run (pestle_run_options_t), by which inputs that are numbers of
  // strings are read; strings that the function makes are encoded there. NULL: none.
  struct pestle_strings_s* strings;
} pestle_custom_call_t;

// Fills the outputs, or says why not: the run ends with that status, which is
// annotated with the name. pestle_status_make() makes one. Runs on the thread of
// the run, several at once when runs overlap. It may call Pestle.
typedef pestle_status_t (*pestle_custom_call_fn_t)(
    void* user, const pestle_custom_call_t* call);

// Zero-initialise and set |struct_size|.
typedef struct pestle_custom_call_options_t {
  size_t struct_size;
  // Part of the key of plans; at most 63 bytes. NULL: "".
  const char* version;
  // The tensors lie where the plan's device has them, whatever that is; else
  // they are copied to the host and back where it cannot read them.
  bool device_memory;
} pestle_custom_call_options_t;

// A registered function. |version| is borrowed from the context.
typedef struct pestle_custom_call_info_t {
  size_t struct_size;
  pestle_custom_call_fn_t function;
  void* user;
  const char* version;
  bool device_memory;
} pestle_custom_call_info_t;

// Gives |function| a |name|, for as long as the context lives: at most 255 bytes,
// not empty; both texts are copied, |user| is passed on and must stay valid.
// |options| may be NULL. May be called at any time, from any thread.
// INVALID_ARGUMENT: a name that is taken or begins with "pestle.", a text that is
// too long.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_context_register_custom_call(
    pestle_context_t* context, const char* name,
    pestle_custom_call_fn_t function, void* user,
    const pestle_custom_call_options_t* options);

// What |name| stands for; |out_info|->struct_size must be set. NOT_FOUND names
// it. From any thread.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_context_custom_call(const pestle_context_t* context, const char* name,
                           pestle_custom_call_info_t* out_info);

PESTLE_EXTERN_C_END

#endif  // PESTLE_CUSTOM_CALL_H_
