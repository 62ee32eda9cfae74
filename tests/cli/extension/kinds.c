// SPDX-License-Identifier: Apache-2.0
// An op with an attribute of each kind, one of them dynamic, for op_kinds_test.py:
//   y = f(alpha x) + sum(reals) + sum(shifts) + step, and the negative if |down|
// where f is sin if |mode| is "x", else nothing. FAULT plants one fault a number.
#include <math.h>
#include <pestle/custom_op.h>
#include <stddef.h>
#include <string.h>

#ifndef FAULT
#define FAULT 0
#endif

static bool is_sine(const pestle_custom_attrs_t* a) {
  return !strcmp(pestle_custom_str(a, "mode"), "x");
}

// All but the dynamic ones in one number that is added.
static double offset(const pestle_custom_attrs_t* a, bool is_body) {
  pestle_f64s_t reals = pestle_custom_f64s(a, "reals");
  pestle_i64s_t shifts = pestle_custom_i64s(a, "shifts");
  double sum = (double)pestle_custom_i64(a, "step");
  for (size_t i = 0; i < reals.count; ++i)
    sum += reals.data[i];
  if (FAULT == 1 && !is_body && reals.count == 3) sum += 1;
  if (FAULT == 2 && !is_body && shifts.count < 3) return sum + 1;
  for (size_t i = 0; i < shifts.count; ++i)
    sum += (double)shifts.data[i];
  return sum;
}

static pestle_status_t kinds_infer(void* user, const pestle_custom_node_t* n,
                                   pestle_type_t* out_types,
                                   size_t* inout_count) {
  (void)user;
  if (n->operand_count != 2 || n->operand_types[0].dtype != PESTLE_F32) {
    return pestle_status_make(PESTLE_STATUS_UNSUPPORTED, NULL, 0,
                              "kinds takes x, f32, and alpha");
  }
  out_types[0] = n->operand_types[0];
  *inout_count = 1;
  return NULL;
}

static pestle_status_t spread(pestle_builder_t* b, pestle_value_t* scalar,
                              pestle_value_t* like, pestle_value_t** out) {
  pestle_broadcast_in_dim_attrs_t none = {.struct_size = sizeof(none)};
  return pestle_op_broadcast_in_dim(b, scalar, &none, pestle_value_type(like),
                                    out);
}

static pestle_status_t number(pestle_builder_t* b, double value,
                              pestle_value_t* like, pestle_value_t** out) {
  pestle_type_t scalar = {.dtype = pestle_value_type(like).dtype};
  pestle_constant_attrs_t constant = {
      .struct_size = sizeof(constant),
      .value = {{.dtype = PESTLE_F64}, &value, sizeof(value), true}};
  pestle_value_t* k;
  PESTLE_TRY(pestle_op_constant(b, &constant, &k));
  PESTLE_TRY(pestle_op_convert(b, k, NULL, scalar, &k));
  return spread(b, k, like, out);
}

static pestle_status_t kinds_body(void* user, pestle_builder_t* b,
                                  const pestle_custom_node_t* n,
                                  pestle_value_t** out) {
  pestle_value_t *y, *k;
  (void)user;
  PESTLE_TRY(spread(b, n->operands[1], n->operands[0], &k));
  PESTLE_TRY(pestle_op_multiply(b, n->operands[0], k, &y));
  if (is_sine(n->attrs)) PESTLE_TRY(pestle_op_sine(b, y, &y));
  PESTLE_TRY(number(b, offset(n->attrs, true), y, &k));
  PESTLE_TRY(pestle_op_add(b, y, k, &y));
  if (pestle_custom_bool(n->attrs, "down")) {
    PESTLE_TRY(pestle_op_negate(b, y, &y));
  }
  *out = y;
  return NULL;
}

// f'(alpha x) (alpha x.t + alpha.t x)
static pestle_status_t kinds_jvp(void* user, pestle_builder_t* b,
                                 const pestle_custom_node_t* n,
                                 pestle_value_t* const* tangents,
                                 pestle_value_t** out) {
  pestle_value_t *x = n->operands[0], *k, *t = NULL, *more;
  (void)user;
  PESTLE_TRY(spread(b, n->operands[1], x, &k));
  if (tangents[0]) PESTLE_TRY(pestle_op_multiply(b, tangents[0], k, &t));
  if (tangents[1] && !(FAULT == 3 && t)) {
    PESTLE_TRY(spread(b, tangents[1], x, &more));
    PESTLE_TRY(pestle_op_multiply(b, more, x, &more));
    if (t) PESTLE_TRY(pestle_op_add(b, t, more, &more));
    t = more;
  }
  if (is_sine(n->attrs)) {
    PESTLE_TRY(pestle_op_multiply(b, x, k, &more));
    PESTLE_TRY(pestle_op_cosine(b, more, &more));
    PESTLE_TRY(pestle_op_multiply(b, t, more, &t));
  }
  if (pestle_custom_bool(n->attrs, "down") && FAULT != 4) {
    PESTLE_TRY(pestle_op_negate(b, t, &t));
  }
  *out = t;
  return NULL;
}

static pestle_status_t kinds_f32(void* user, const pestle_custom_call_t* call) {
  const pestle_tensor_t* t = &call->outputs[0];
  const float* x = call->inputs[0].data;
  float alpha = *(const float*)call->inputs[1].data, *y = t->data;
  float add = (float)offset(call->attrs, false);
  bool sine = is_sine(call->attrs) && FAULT != 5;
  bool down = pestle_custom_bool(call->attrs, "down");
  size_t count = 1;
  (void)user;
  if (FAULT == 6) alpha = 2.5f;
  for (int32_t i = 0; i < t->ndim; ++i)
    count *= (size_t)t->shape[i];
  for (size_t i = 0; i < count; ++i) {
    float u = alpha * x[i];
    u = (sine ? sinf(u) : u) + add;
    y[i] = down ? -u : u;
  }
  return NULL;
}

PESTLE_EXTENSION_INIT(pestle_context_t* context, uint32_t abi) {
#define ROW(name_, kind_, dynamic_)             \
  {.struct_size = sizeof(pestle_custom_attr_t), \
   .name = name_,                               \
   .kind = PESTLE_CUSTOM_##kind_,               \
   .dynamic = dynamic_}
  static const pestle_custom_attr_t mode = ROW("mode", STR, false);
  static const pestle_custom_attr_t reals = ROW("reals", F64S, false);
  static const pestle_custom_attr_t shifts = ROW("shifts", I64S, false);
  static const pestle_custom_attr_t step = ROW("step", I64, false);
  static const pestle_custom_attr_t down = ROW("down", BOOL, false);
  static const pestle_custom_attr_t alpha = ROW("alpha", F64, true);
  static const pestle_custom_attr_t* const attrs[] = {&mode, &reals, &shifts,
                                                      &step, &down,  &alpha};
  static const pestle_custom_eval_t on_cpu = {.struct_size = sizeof(on_cpu),
                                              .target = "cpu",
                                              .kind = PESTLE_EVAL_HOST_FUNCTION,
                                              .id = "f32-1",
                                              .function = kinds_f32,
                                              .dense = true};
  static const pestle_custom_eval_t* const evals[] = {&on_cpu};
  const pestle_custom_op_t op = {.struct_size = sizeof(op),
                                 .name = "test.kinds",
                                 .version = 1,
                                 .attrs = attrs,
                                 .attr_count = 6,
                                 .infer = kinds_infer,
                                 .body = kinds_body,
                                 .jvp = kinds_jvp,
                                 .evals = evals,
                                 .eval_count = 1,
                                 .elementwise = true};
  if (abi != PESTLE_EXTENSION_ABI) {
    return pestle_status_make(PESTLE_STATUS_INCOMPATIBLE, NULL, 0,
                              "kinds was built for another Pestle");
  }
  return pestle_context_register_op(context, &op);
}
