// SPDX-License-Identifier: Apache-2.0
// Ops of the caller's own: a name with attributes, a rule for its result types, a
// body in terms of other ops, functions and kernels that compute it, and rules by
// which it is differentiated and batched. Every part but the name may be missing:
// docs/custom-ops.md says what then happens.
//
//   static pestle_status_t body(void* user, pestle_builder_t* b,
//                               const pestle_custom_node_t* n,
//                               pestle_value_t** out) {
//     return pestle_op_add(b, n->operands[0], n->operands[0], out);
//   }
//   pestle_custom_op_t op = {.struct_size = sizeof(op), .name = "user.twice",
//                            .version = 1, .body = body};
//   pestle_context_register_op(context, &op);
//   pestle_op_custom(&builder, "user.twice", &x, 1, NULL, 0, &y, 1);
//
// In a module such an op is a stablehlo.composite, whose body is its decomposition.
//
// Contents:
// - Attributes
// - What rules see
// - Evaluation
// - The op
// - Use
// - Extensions
#ifndef PESTLE_CUSTOM_OP_H_
#define PESTLE_CUSTOM_OP_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pestle/array.h"
#include "pestle/context.h"
#include "pestle/custom_call.h"
#include "pestle/export.h"
#include "pestle/graph.h"
#include "pestle/kir.h"
#include "pestle/plugin.h"
#include "pestle/status.h"
#include "pestle/types.h"

PESTLE_EXTERN_C_BEGIN

// --- Attributes ---

typedef enum pestle_custom_kind_e {
  PESTLE_CUSTOM_BOOL = 0,
  PESTLE_CUSTOM_I64 = 1,
  PESTLE_CUSTOM_F64 = 2,
  PESTLE_CUSTOM_STR = 3,
  PESTLE_CUSTOM_I64S = 4,
  PESTLE_CUSTOM_F64S = 5,
} pestle_custom_kind_t;

// Borrowed numbers. Frozen.
typedef struct pestle_f64s_t {
  const double* data;
  size_t count;
} pestle_f64s_t;

// How a use gives an attribute that is |dynamic|, besides a number.
typedef enum pestle_custom_given_e {
  PESTLE_CUSTOM_VALUE = 64,  // pestle_op_custom(): a value of rank 0
  PESTLE_CUSTOM_ARRAY = 65,  // pestle_array_custom(): an array of rank 0
} pestle_custom_given_t;

// One attribute: |kind| says which member of |as| it is. Frozen.
typedef struct pestle_custom_attr_value_t {
  const char* name;
  int32_t kind;  // pestle_custom_kind_t, pestle_custom_given_t
  union {
    bool b;
    int64_t i64;
    double f64;
    const char* str;
    pestle_i64s_t i64s;
    pestle_f64s_t f64s;
    pestle_value_t* value;
    pestle_array_t* array;
  } as;
} pestle_custom_attr_value_t;

// A row of an op's table of attributes. Zero-initialise and set |struct_size|.
typedef struct pestle_custom_attr_t {
  size_t struct_size;
  const char* name;
  int32_t kind;  // pestle_custom_kind_t
  // What it is where nothing is said: a value of this kind, whose name is not
  // looked at. NULL: it must be given.
  const pestle_custom_attr_value_t* otherwise;
  // An F64 that changes often: its value is no part of a plan's key. It is an operand of
  // rank 0 behind the others, in the order of the table, to every rule, eval and text; of
  // operand 0's type where that is f32 or f64, else f32. Readers do not give it.
  bool dynamic;
} pestle_custom_attr_t;

// All attributes of an op, as its table declares them.
typedef struct pestle_custom_attrs_s pestle_custom_attrs_t;

// Readers of attribute |name|, borrowed from |attrs|. Each gives false, 0, "" or
// nothing for what the table does not declare, or declares as another kind.

// A BOOL.
PESTLE_API bool pestle_custom_bool(const pestle_custom_attrs_t* attrs,
                                   const char* name);
// An I64.
PESTLE_API int64_t pestle_custom_i64(const pestle_custom_attrs_t* attrs,
                                     const char* name);
// An F64, or an I64 as a double.
PESTLE_API double pestle_custom_f64(const pestle_custom_attrs_t* attrs,
                                    const char* name);
// A STR.
PESTLE_API const char* pestle_custom_str(const pestle_custom_attrs_t* attrs,
                                         const char* name);
// An I64S.
PESTLE_API pestle_i64s_t pestle_custom_i64s(const pestle_custom_attrs_t* attrs,
                                            const char* name);
// An F64S.
PESTLE_API pestle_f64s_t pestle_custom_f64s(const pestle_custom_attrs_t* attrs,
                                            const char* name);
// The attribute at |index|, in the order of the table; NULL past the last.
PESTLE_API const pestle_custom_attr_value_t* pestle_custom_attr_at(
    const pestle_custom_attrs_t* attrs, size_t index);

// --- What rules see ---

// One use of an op. All is borrowed during the call.
typedef struct pestle_custom_node_t {
  size_t struct_size;
  const char* name;
  // NULL in infer, and where no graph is built (takes, cost).
  pestle_value_t* const* operands;
  size_t operand_count;
  const pestle_type_t* operand_types;
  pestle_value_t* const* results;  // in vjp and jvp; else NULL
  size_t result_count;             // 0 in infer and body
  const pestle_custom_attrs_t* attrs;
  // Types of the results; NULL where there are none yet.
  const pestle_type_t* result_types;
  int64_t version;
} pestle_custom_node_t;

// --- Evaluation ---

typedef enum pestle_custom_eval_kind_e {
  PESTLE_EVAL_HOST_FUNCTION = 0,    // tensors lie in the host's memory
  PESTLE_EVAL_DEVICE_FUNCTION = 1,  // and here in the device's
  PESTLE_EVAL_SOURCE = 2,           // text in the target's language
  PESTLE_EVAL_KERNEL_IR = 3,
} pestle_custom_eval_kind_t;

// A name that a source has for a dtype, an integer or a flag. Frozen.
typedef struct pestle_source_template_t {
  const char* name;
  int32_t dtype;  // pestle_dtype_t: the name is its type; 0: |value|
  int64_t value;
} pestle_source_template_t;

// A kernel as text, in one language. Zero-initialise and set |struct_size|. What is
// declared around |body| is in docs/custom-ops.md: operands and results by their names,
// their shapes and sizes, attributes, templates.
typedef struct pestle_source_t {
  size_t struct_size;
  const char* language;  // "cuda", "opencl", "glsl", "metal"; "kir" on CPUs
  const char* body;
  const char* header;  // before the kernel; NULL: none
  // |body| is a whole translation unit, whose kernel is called |entry|.
  bool whole;
  const char* entry;
  // Names of operands and results in the text, one each.
  const char* const* inputs;
  size_t input_count;
  const char* const* outputs;
  size_t output_count;
  const pestle_source_template_t* templates;
  size_t template_count;
  // Threads and, where not NULL, those of a group, along x, y, z: integers, or
  // expressions over extents such as "ceil(x.size / 4)" and "x.shape[0]".
  const char* grid[3];
  const char* group[3];
  uint32_t shared_bytes;  // of the array `shared` that a group has
  bool has_init;          // results are |init_value| before the kernel runs
  double init_value;
  const char* flags;  // of the language's compiler; NULL: none
} pestle_source_t;

// One way to compute an op. Zero-initialise and set |struct_size|.
typedef struct pestle_custom_eval_t {
  size_t struct_size;
  // What it is for: the name of a backend or a type of device ("llvm", "cpu",
  // "cuda", "metal"), in which '*' stands for any characters.
  const char* target;
  int32_t kind;  // pestle_custom_eval_kind_t
  // The version of this eval, a part of the key of plans, unlike any other of the
  // op. A function needs one, since its code has no text to be compared.
  const char* id;
  // Whether it can compute this node on that target. NULL: always.
  bool (*takes)(void* user, const pestle_custom_node_t* node,
                const pestle_target_caps_t* caps);
  // Tensors are dense and row-major; |call->attrs| are the op's. As in
  // custom_call.h, of a DEVICE_FUNCTION with the device's stream.
  pestle_custom_call_fn_t function;
  const pestle_source_t* source;  // of a SOURCE
  const pestle_kir_t* kernel;     // of a KERNEL_IR
  // The operands must be contiguous. All operands of a plan are, in row-major
  // order.
  bool dense;
  // Result 0 may lie where an operand of its size lies that nobody needs
  // afterwards: the function then reads and writes the same memory.
  bool in_place;
  // The function is of this process alone: a plan that calls it cannot be saved, and
  // is not kept on disk.
  bool transient;
} pestle_custom_eval_t;

typedef enum pestle_custom_prefer_e {
  // The body where it is elementwise, moves or reduces elements only, so that it
  // fuses; else the first eval for the target.
  PESTLE_CUSTOM_AUTO = 0,
  PESTLE_CUSTOM_INLINE = 1,  // the body wherever there is one
  PESTLE_CUSTOM_EVAL = 2,    // an eval wherever one takes the node
} pestle_custom_prefer_t;

// What a caller's arrays go through, so that rules see operands that fit. Graphs are
// built with operands that do.
typedef enum pestle_custom_front_e {
  PESTLE_FRONT_BROADCAST = 1,  // to one shape
  PESTLE_FRONT_PROMOTE = 2,    // to one element type
  PESTLE_FRONT_FLOAT = 4,      // integers and booleans to floats, f32 at least
} pestle_custom_front_t;

// --- The op ---

// Rules run on any thread, several at once, under no lock, and may use the op
// itself: the derivative of an op may be the op of the tangents. Each builds ops at
// the builder that it is given. Zero-initialise and set |struct_size|.
typedef struct pestle_custom_op_t {
  size_t struct_size;
  // "user.axpby": two or more words of letters, digits and '_' with dots between;
  // none that begins with "pestle." or "stablehlo.", "chlo.", "mhlo.".
  const char* name;
  int64_t version;
  void* user;
  const pestle_custom_attr_t* const* attrs;
  size_t attr_count;
  // Result types of operand types. |*inout_count| is the room in |out_types|; sets
  // it to the number of results. A failure is shown to whoever uses the op. NULL:
  // the body says.
  pestle_status_t (*infer)(void* user, const pestle_custom_node_t* node,
                           pestle_type_t* out_types, size_t* inout_count);
  // The results in terms of |node|->operands, in as many |out| as infer says; at
  // most PESTLE_CUSTOM_MAX_RESULTS. NULL: only evals compute the op.
  pestle_status_t (*body)(void* user, pestle_builder_t* builder,
                          const pestle_custom_node_t* node,
                          pestle_value_t** out);
  // |needed[i]|: whether operand i's cotangent is wanted; set those alone, NULL is
  // zero. Cotangents of results may be NULL: zero.
  pestle_status_t (*vjp)(void* user, pestle_builder_t* builder,
                         const pestle_custom_node_t* node,
                         pestle_value_t* const* cotangents, const bool* needed,
                         pestle_value_t** out);
  // Tangents of the results from those of the operands, of which NULL is zero.
  pestle_status_t (*jvp)(void* user, pestle_builder_t* builder,
                         const pestle_custom_node_t* node,
                         pestle_value_t* const* tangents, pestle_value_t** out);
  // Linear in the operands of |linear|: cotangents of those, from those of the
  // results. NULL: vjp serves.
  pestle_status_t (*transpose)(void* user, pestle_builder_t* builder,
                               const pestle_custom_node_t* node,
                               const bool* linear,
                               pestle_value_t* const* cotangents,
                               pestle_value_t** out);
  // |axes[i]|: the batched axis of operand i, of |size| elements, or -1. Sets out
  // and out_axes. node->operand_types are those of the operands, batched.
  pestle_status_t (*vmap)(void* user, pestle_builder_t* builder,
                          const pestle_custom_node_t* node, const int64_t* axes,
                          int64_t size, pestle_value_t** out,
                          int64_t* out_axes);
  // Whether two uses with these attributes compute the same. NULL: equal bytes do.
  bool (*equivalent)(void* user, const pestle_custom_attrs_t* a,
                     const pestle_custom_attrs_t* b);
  pestle_status_t (*cost)(void* user, const pestle_custom_node_t* node,
                          uint64_t* out_flops, uint64_t* out_bytes);
  const pestle_custom_eval_t* const* evals;
  size_t eval_count;
  int32_t prefer;  // pestle_custom_prefer_t
  // Called once, when the context goes. Not called where registering failed.
  void (*release)(void* user);
  // Results are computed from the same element of every operand, all of one shape:
  // batched, the op is itself on a bigger shape.
  bool elementwise;
  // What is done to arrays before they become operands (pestle_array_custom()):
  // bits of pestle_custom_front_t.
  uint32_t front;
  // The largest relative error of its evals against the body that is allowed; 0:
  // what rounding once to the results' type gives.
  double accuracy;
  // So many results, the last ones, are there for vjp alone, such as what its rule wants
  // saved: pestle_array_custom() does not give them.
  size_t hidden_results;
} pestle_custom_op_t;

#define PESTLE_CUSTOM_MAX_RESULTS 64

// Registers a copy of |op|; what |user| and function pointers refer to must stay
// valid until release. From any thread. Registering the same again changes
// nothing (and |release| is then not called for it). INVALID_ARGUMENT: a name that
// is not allowed or that the context has with other contents and that was used
// already, a table or an eval that is incomplete, no way to know result types.
PESTLE_API PESTLE_NODISCARD pestle_status_t pestle_context_register_op(
    pestle_context_t* context, const pestle_custom_op_t* op);

// The op of |name|, borrowed from the context, or NULL. From then on the name keeps
// its contents. From any thread.
PESTLE_API const pestle_custom_op_t* pestle_context_find_op(
    const pestle_context_t* context, const char* name);
// The name of the |index|-th op, the latest first; NULL past the last.
PESTLE_API const char* pestle_context_op_name(const pestle_context_t* context,
                                              size_t index);

// --- Use ---

// Builds the op |name| with its body. |attrs| may come in any order; an I64 is
// taken where the table has an F64, a VALUE where the attribute is dynamic. |out| becomes
// the results, hidden ones too; what is left over of |out_capacity| becomes NULL. NOT_FOUND: no such op; INVALID_ARGUMENT: an
// attribute that is missing, unknown or of another kind, too little room; else what
// the rules fail with, with the op's name. Nothing is added then.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_op_custom(pestle_builder_t* builder, const char* name,
                 pestle_value_t* const* operands, size_t operand_count,
                 const pestle_custom_attr_value_t* attrs, size_t attr_count,
                 pestle_value_t** out, size_t out_capacity);

// Builds what |module|'s entry does with |operands|, whose types are those of its
// arguments, which a rule may have got elsewhere. |out| becomes its results; what is
// left over of |out_capacity| becomes NULL. |module|, of the same context, is kept
// for its constants. INVALID_ARGUMENT: other operands, too little room, a module that
// has calls.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_builder_inline(pestle_builder_t* builder, pestle_module_t* module,
                      pestle_value_t* const* operands, size_t operand_count,
                      pestle_value_t** out, size_t out_capacity);

// Records the op |name| of arrays (array.h), of which there must be one at least. Numbers of
// dynamic attributes become arrays, so that another one needs no other plan.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_array_custom(pestle_context_t* context, const char* name,
                    pestle_array_t* const* operands, size_t operand_count,
                    const pestle_custom_attr_value_t* attrs, size_t attr_count,
                    pestle_array_t** out, size_t out_capacity);

// --- Extensions ---
//
// A shared library that is linked to libpestle.so and exports one function:
//
//   PESTLE_EXTENSION_INIT(pestle_context_t* context, uint32_t abi) {
//     if (abi != PESTLE_EXTENSION_ABI) return ...;
//     return pestle_context_register_op(context, &axpby);
//   }
//
// pestle_add_extension() of the CMake package makes one. It is called for each
// context that loads it, and may be called again for the same.

// Raised when an extension of an older one would not work any more.
#define PESTLE_EXTENSION_ABI 1u

typedef pestle_status_t (*pestle_extension_init_fn_t)(pestle_context_t* context,
                                                      uint32_t abi);

#define PESTLE_EXTENSION_INIT                                            \
  PESTLE_EXPORT pestle_status_t pestle_extension_init(pestle_context_t*, \
                                                      uint32_t);         \
  pestle_status_t pestle_extension_init

// Opens the file at |path| and lets it register its ops. It stays open until the
// process ends. Files that others may write, or that lie in such folders, are
// refused, as those of plugins are. UNAVAILABLE: it is not trusted, cannot be opened
// or exports no such function; INCOMPATIBLE: it uses another copy of the library;
// else what its function fails with.
PESTLE_API PESTLE_NODISCARD pestle_status_t
pestle_context_load_extension(pestle_context_t* context, const char* path);

PESTLE_EXTERN_C_END

#endif  // PESTLE_CUSTOM_OP_H_
