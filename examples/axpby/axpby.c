// SPDX-License-Identifier: Apache-2.0
// alpha x + beta y as an op of its own, outside of Pestle's tree: attributes, a type
// rule, a body that fuses, derivatives, batching, and a function for CPUs that stands
// for a library's routine. docs/custom-ops.md walks through it.
#include <pestle/custom_op.h>
#include <stddef.h>

#include "axpby_texts.h"

#define AXPBY "example.axpby"

// --- Types ---

// Both operands are of one type: pestle_array_custom() and the Python function
// promote and broadcast them first, as |front| below says.
static pestle_status_t axpby_infer(void* user, const pestle_custom_node_t* n,
                                   pestle_type_t* out_types,
                                   size_t* inout_count) {
  (void)user;
  if (n->operand_count != 2) {
    return pestle_status_make(PESTLE_STATUS_INVALID_ARGUMENT, NULL, 0,
                              "axpby takes x and y");
  }
  const pestle_type_t *x = &n->operand_types[0], *y = &n->operand_types[1];
  bool same = x->dtype == y->dtype && x->rank == y->rank;
  for (int32_t i = 0; same && i < x->rank; ++i)
    same = x->dims[i] == y->dims[i];
  if (!same) {
    return pestle_status_make(PESTLE_STATUS_INVALID_ARGUMENT, NULL, 0,
                              "x and y of axpby differ in shape or dtype");
  }
  if (x->dtype != PESTLE_F32 && x->dtype != PESTLE_F16 &&
      x->dtype != PESTLE_BF16 && x->dtype != PESTLE_F64 &&
      x->dtype != PESTLE_C64) {
    return pestle_status_make(PESTLE_STATUS_UNSUPPORTED, NULL, 0,
                              "axpby is for f16, bf16, f32, f64 and c64");
  }
  out_types[0] = *x;
  *inout_count = 1;
  return NULL;
}

// --- Graphs ---

// |factor| times |x|.
static pestle_status_t scale(pestle_builder_t* b, pestle_value_t* x,
                             double factor, pestle_value_t** out) {
  pestle_type_t type = pestle_value_type(x), scalar = {.dtype = type.dtype};
  pestle_constant_attrs_t constant = {
      .struct_size = sizeof(constant),
      .value = {{.dtype = PESTLE_F64}, &factor, sizeof(factor), true}};
  pestle_broadcast_in_dim_attrs_t none = {.struct_size = sizeof(none)};
  pestle_value_t* k;
  PESTLE_TRY(pestle_op_constant(b, &constant, &k));
  if (type.dtype != PESTLE_F64) {
    PESTLE_TRY(pestle_op_convert(b, k, NULL, scalar, &k));
  }
  PESTLE_TRY(pestle_op_broadcast_in_dim(b, k, &none, type, &k));
  return pestle_op_multiply(b, x, k, out);
}

static pestle_status_t axpby_body(void* user, pestle_builder_t* b,
                                  const pestle_custom_node_t* n,
                                  pestle_value_t** out) {
  pestle_value_t *x, *y;
  (void)user;
  PESTLE_TRY(
      scale(b, n->operands[0], pestle_custom_f64(n->attrs, "alpha"), &x));
  PESTLE_TRY(scale(b, n->operands[1], pestle_custom_f64(n->attrs, "beta"), &y));
  return pestle_op_add(b, x, y, out);
}

static pestle_status_t axpby_again(pestle_builder_t* b,
                                   const pestle_custom_node_t* n,
                                   pestle_value_t* x, pestle_value_t* y,
                                   pestle_value_t** out) {
  pestle_custom_attr_value_t attrs[] = {*pestle_custom_attr_at(n->attrs, 0),
                                        *pestle_custom_attr_at(n->attrs, 1)};
  pestle_value_t* operands[] = {x, y};
  return pestle_op_custom(b, AXPBY, operands, 2, attrs, 2, out, 1);
}

// --- Derivatives and batches ---

// The op is linear, so that its tangent is the op of the tangents; one that is zero
// leaves the other's factor.
static pestle_status_t axpby_jvp(void* user, pestle_builder_t* b,
                                 const pestle_custom_node_t* n,
                                 pestle_value_t* const* tangents,
                                 pestle_value_t** out) {
  (void)user;
  if (tangents[0] && tangents[1]) {
    return axpby_again(b, n, tangents[0], tangents[1], out);
  }
  const char* name = tangents[0] ? "alpha" : "beta";
  return scale(b, tangents[0] ? tangents[0] : tangents[1],
               pestle_custom_f64(n->attrs, name), out);
}

static pestle_status_t axpby_vjp(void* user, pestle_builder_t* b,
                                 const pestle_custom_node_t* n,
                                 pestle_value_t* const* cotangents,
                                 const bool* needed, pestle_value_t** out) {
  static const char* const factors[] = {"alpha", "beta"};
  (void)user;
  for (int i = 0; i < 2; ++i) {
    out[i] = NULL;
    if (!needed[i] || !cotangents[0]) continue;
    PESTLE_TRY(scale(b, cotangents[0], pestle_custom_f64(n->attrs, factors[i]),
                     &out[i]));
  }
  return NULL;
}

// |x| with its batched axis |axis| first, or, for -1, repeated along a new one.
static pestle_status_t batch_first(pestle_builder_t* b, pestle_value_t* x,
                                   int64_t axis, int64_t size,
                                   pestle_value_t** out) {
  pestle_type_t type = pestle_value_type(x);
  int64_t dims[PESTLE_MAX_RANK];
  if (axis == 0) {
    *out = x;
    return NULL;
  }
  if (axis > 0) {
    dims[0] = axis;
    for (int32_t i = 0, to = 1; i < type.rank; ++i) {
      if (i != axis) dims[to++] = i;
    }
    pestle_transpose_attrs_t attrs = {.struct_size = sizeof(attrs),
                                      .permutation = {dims, (size_t)type.rank}};
    return pestle_op_transpose(b, x, &attrs, out);
  }
  for (int32_t i = type.rank; i > 0; --i) {
    type.dims[i] = type.dims[i - 1];
    dims[i - 1] = i;
  }
  pestle_broadcast_in_dim_attrs_t attrs = {
      .struct_size = sizeof(attrs),
      .broadcast_dimensions = {dims, (size_t)type.rank}};
  type.dims[0] = size;
  ++type.rank;
  return pestle_op_broadcast_in_dim(b, x, &attrs, type, out);
}

static pestle_status_t axpby_vmap(void* user, pestle_builder_t* b,
                                  const pestle_custom_node_t* n,
                                  const int64_t* axes, int64_t size,
                                  pestle_value_t** out, int64_t* out_axes) {
  pestle_value_t *x, *y;
  (void)user;
  PESTLE_TRY(batch_first(b, n->operands[0], axes[0], size, &x));
  PESTLE_TRY(batch_first(b, n->operands[1], axes[1], size, &y));
  out_axes[0] = 0;
  return axpby_again(b, n, x, y, out);
}

// --- On CPUs ---

static bool is_f32(void* user, const pestle_custom_node_t* n,
                   const pestle_target_caps_t* caps) {
  (void)user, (void)caps;
  return n->operand_types[0].dtype == PESTLE_F32;
}

// Where a library's routine would be called, such as cblas_saxpby(). z may be x or y.
static pestle_status_t axpby_f32(void* user, const pestle_custom_call_t* call) {
  const float alpha = (float)pestle_custom_f64(call->attrs, "alpha");
  const float beta = (float)pestle_custom_f64(call->attrs, "beta");
  const pestle_tensor_t* t = &call->outputs[0];
  const float *x = call->inputs[0].data, *y = call->inputs[1].data;
  float* z = t->data;
  size_t count = 1;
  (void)user;
  for (int32_t i = 0; i < t->ndim; ++i)
    count *= (size_t)t->shape[i];
  for (size_t i = 0; i < count; ++i)
    z[i] = alpha * x[i] + beta * y[i];
  return NULL;
}

// --- The op ---

PESTLE_EXTENSION_INIT(pestle_context_t* context, uint32_t abi) {
  static const pestle_custom_attr_t alpha = {sizeof(alpha), "alpha",
                                             PESTLE_CUSTOM_F64, NULL, false};
  static const pestle_custom_attr_t beta = {sizeof(beta), "beta",
                                            PESTLE_CUSTOM_F64, NULL, false};
  static const pestle_custom_attr_t* const attrs[] = {&alpha, &beta};
  static const pestle_custom_eval_t on_cpu = {.struct_size = sizeof(on_cpu),
                                              .target = "cpu",
                                              .kind = PESTLE_EVAL_HOST_FUNCTION,
                                              .id = "f32-1",
                                              .takes = is_f32,
                                              .function = axpby_f32,
                                              .dense = true,
                                              .in_place = true};
  // One line for each language; i is the thread, of which there are as many as
  // elements.
#define TEXT(language_, text)              \
  {.struct_size = sizeof(pestle_source_t), \
   .language = language_,                  \
   .body = text,                           \
   .inputs = inputs,                       \
   .input_count = 2,                       \
   .outputs = outputs,                     \
   .output_count = 1,                      \
   .grid = {"z.size"}}
#define KERNEL(text)                            \
  {.struct_size = sizeof(pestle_custom_eval_t), \
   .target = "*",                               \
   .kind = PESTLE_EVAL_SOURCE,                  \
   .takes = is_f32,                             \
   .source = &(text)}
  static const char* const inputs[] = {"x", "y"};
  static const char* const outputs[] = {"z"};
  static const pestle_source_t cuda = TEXT("cuda", axpby_cu);
  static const pestle_source_t opencl = TEXT("opencl", axpby_cl);
  static const pestle_source_t vulkan = TEXT("glsl", axpby_comp);
  static const pestle_source_t metal = TEXT("metal", axpby_metal);
  static const pestle_custom_eval_t on_cuda = KERNEL(cuda);
  static const pestle_custom_eval_t on_opencl = KERNEL(opencl);
  static const pestle_custom_eval_t on_vulkan = KERNEL(vulkan);
  static const pestle_custom_eval_t on_metal = KERNEL(metal);
  static const pestle_custom_eval_t* const evals[] = {
      &on_cpu, &on_cuda, &on_opencl, &on_vulkan, &on_metal};
  const pestle_custom_op_t op = {.struct_size = sizeof(op),
                                 .name = AXPBY,
                                 .version = 1,
                                 .attrs = attrs,
                                 .attr_count = 2,
                                 .infer = axpby_infer,
                                 .body = axpby_body,
                                 .vjp = axpby_vjp,
                                 .jvp = axpby_jvp,
                                 .vmap = axpby_vmap,
                                 .evals = evals,
                                 .eval_count = sizeof(evals) / sizeof(*evals),
                                 .elementwise = true,
                                 .front = PESTLE_FRONT_BROADCAST |
                                          PESTLE_FRONT_PROMOTE |
                                          PESTLE_FRONT_FLOAT};
  if (abi != PESTLE_EXTENSION_ABI) {
    return pestle_status_make(PESTLE_STATUS_INCOMPATIBLE, NULL, 0,
                              "axpby was built for another Pestle");
  }
  return pestle_context_register_op(context, &op);
}
