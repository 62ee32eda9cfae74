// SPDX-License-Identifier: Apache-2.0
// Scalar rows: scalar.def's expressions expanded into one loop for each op and
// class (f32, f64, int64, uint64). Narrower types are widened and narrowed in
// blocks around the same loops, so the dispatch is outside of them.
#include "ir/ref/ref_internal.h"
#include "ir/ref/ref_math.h"

#include <string.h>

#define KERNEL(name, R, A, T, expr)                                            \
  static void name(void* out_, const void* a_, const void* b_, const void* c_, \
                   size_t count, uint64_t W) {                                 \
    R* out = out_;                                                             \
    const A* pa = a_;                                                          \
    const T *pb = b_, *pc = c_;                                                \
    (void)W;                                                                   \
    for (size_t i = 0; i < count; ++i) {                                       \
      const A a = pa[i];                                                       \
      const T b = pb[i], c = pc[i];                                            \
      (void)a, (void)b, (void)c;                                               \
      out[i] = (R)(expr);                                                      \
    }                                                                          \
  }
#define KERNEL_SAME(name, T, expr) KERNEL(name, T, T, T, expr)
#define KERNEL_CLAMP(name, T, expr) KERNEL(name, T, T, T, expr)
#define KERNEL_COMPARE(name, T, expr) KERNEL(name, uint8_t, T, T, expr)
#define KERNEL_TEST(name, T, expr) KERNEL(name, uint8_t, T, T, expr)
#define KERNEL_SELECT(name, T, expr) KERNEL(name, T, uint8_t, T, expr)

#define M(f) m32_##f
#define F_MAX m32_max
#define F_MIN m32_min
#define F_SIGN m32_sign
#define PESTLE_SCALAR(NAME, op, mlir, n, RULE, KINDS, FLAGS, F, S, U) \
  KERNEL_##RULE(kernel_f32_##op, float, F)
#include "pestle/scalar.def"
#undef M
#undef F_MAX
#undef F_MIN
#undef F_SIGN

#define M(f) m64_##f
#define F_MAX m64_max
#define F_MIN m64_min
#define F_SIGN m64_sign
#define PESTLE_SCALAR(NAME, op, mlir, n, RULE, KINDS, FLAGS, F, S, U) \
  KERNEL_##RULE(kernel_f64_##op, double, F)
#include "pestle/scalar.def"
#undef M

#define PESTLE_SCALAR(NAME, op, mlir, n, RULE, KINDS, FLAGS, F, S, U) \
  KERNEL_##RULE(kernel_i64_##op, int64_t, S)
#include "pestle/scalar.def"

#define PESTLE_SCALAR(NAME, op, mlir, n, RULE, KINDS, FLAGS, F, S, U) \
  KERNEL_##RULE(kernel_u64_##op, uint64_t, U)
#include "pestle/scalar.def"

pestle_ref_kernel_t pestle_ref_kernel(pestle_op_t op, pestle_ref_class_t kind) {
  static const pestle_ref_kernel_t kernels[PESTLE_SCALAR_COUNT][4] = {
#define PESTLE_SCALAR(NAME, op, ...)                                       \
  [PESTLE_OP_##NAME] = {kernel_f32_##op, kernel_f64_##op, kernel_i64_##op, \
                        kernel_u64_##op},
#include "pestle/scalar.def"
  };
  return kernels[op][kind];
}

enum { BLOCK = 512 };

// How one operand or the result crosses into the kernel's type.
typedef struct lane_t {
  const char* data;
  pestle_dtype_t dtype;
  bool native;  // the kernel reads the tensor itself
  bool scalar;  // one element stands for all
  uint64_t buffer[BLOCK];
} lane_t;

static void load(pestle_ref_class_t kind, pestle_dtype_t dtype,
                 const void* source, size_t count, void* out) {
  if (dtype == PESTLE_I1 && kind == PESTLE_REF_NONE) {
    memcpy(out, source, count);
  } else if (kind == PESTLE_REF_F32) {
    pestle_ref_load_f32(dtype, source, count, out);
  } else {
    pestle_ref_load_wide(dtype, source, count, out);
  }
}

static void store(pestle_ref_class_t kind, pestle_dtype_t dtype,
                  const void* source, size_t count, void* out) {
  if (kind == PESTLE_REF_F32) {
    pestle_ref_store_f32(dtype, source, count, out);
  } else {
    pestle_ref_store_wide(dtype, source, count, out);
  }
}

static size_t class_size(pestle_ref_class_t kind) {
  return kind == PESTLE_REF_NONE ? 1 : kind == PESTLE_REF_F32 ? 4 : 8;
}

static void lane_init(lane_t* lane, pestle_ref_class_t kind,
                      pestle_dtype_t dtype, const void* data, bool scalar) {
  lane->data = data;
  lane->dtype = dtype;
  lane->scalar = scalar;
  lane->native = kind == PESTLE_REF_NONE || dtype == PESTLE_F32 ||
                 dtype == PESTLE_F64 || dtype == PESTLE_I64 ||
                 dtype == PESTLE_U64;
  if (!scalar) return;
  lane->native = false;
  load(kind, dtype, data, 1, lane->buffer);
  pestle_ref_fill(lane->buffer, class_size(kind), BLOCK, lane->buffer);
}

static const void* lane_block(lane_t* lane, pestle_ref_class_t kind,
                              size_t start, size_t count) {
  if (lane->scalar) return lane->buffer;
  const char* source = lane->data + start * pestle_dtype_size(lane->dtype);
  if (lane->native) return source;
  load(kind, lane->dtype, source, count, lane->buffer);
  return lane->buffer;
}

// Select moves bits whatever they mean, so it runs on unsigned integers.
static pestle_dtype_t bits_dtype(unsigned size) {
  return size == 1   ? PESTLE_U8
         : size == 2 ? PESTLE_U16
         : size == 4 ? PESTLE_U32
                     : PESTLE_U64;
}

static pestle_ref_class_t elementwise_class(pestle_dtype_t dtype) {
  pestle_ref_class_t kind = pestle_ref_wide_class(dtype);
  return kind == PESTLE_REF_F64 && dtype != PESTLE_F64 ? PESTLE_REF_F32 : kind;
}

static void select_wide(const pestle_ref_call_t* call, size_t count,
                        size_t size, bool scalar) {
  const uint8_t* which = call->operands[0];
  for (size_t i = 0; i < count; ++i) {
    const char* from = call->operands[which[scalar ? 0 : i] ? 1 : 2];
    memcpy((char*)call->results[0] + i * size, from + i * size, size);
  }
}

// Runs |kernel| over all elements; |dtype| is that of the operands.
static void run_blocks(const pestle_ref_call_t* call, pestle_dtype_t dtype,
                       const pestle_op_info_t* info, size_t count) {
  pestle_ref_class_t kind = elementwise_class(dtype);
  pestle_ref_kernel_t kernel =
      pestle_ref_kernel((pestle_op_t)call->node->op, kind);
  bool predicate =
      info->rule == PESTLE_RULE_COMPARE || info->rule == PESTLE_RULE_TEST;
  lane_t lanes[3];
  pestle_ref_class_t kinds[3] = {kind, kind, kind};
  size_t arity = call->node->operand_count;
  for (size_t i = 0; i < arity; ++i) {
    bool which = info->rule == PESTLE_RULE_SELECT && i == 0;
    if (which) kinds[i] = PESTLE_REF_NONE;
    bool scalar = count != 1 && pestle_ref_operand_type(call, i)->rank == 0;
    lane_init(&lanes[i], kinds[i], which ? PESTLE_I1 : dtype, call->operands[i],
              scalar);
  }
  uint64_t result[BLOCK];
  bool native = predicate || dtype == PESTLE_F32 || dtype == PESTLE_F64 ||
                dtype == PESTLE_I64 || dtype == PESTLE_U64;
  size_t size = predicate ? 1 : pestle_dtype_size(dtype);
  uint64_t width = pestle_dtype_info(dtype)->bits;
  for (size_t start = 0; start < count; start += BLOCK) {
    size_t n = count - start < BLOCK ? count - start : BLOCK;
    const void* in[3] = {NULL};
    for (size_t i = 0; i < 3; ++i) {
      in[i] = i < arity ? lane_block(&lanes[i], kinds[i], start, n) : in[0];
    }
    char* target = (char*)call->results[0] + start * size;
    kernel(native ? (void*)target : result, in[0], in[1], in[2], n, width);
    if (!native) store(kind, dtype, result, n, target);
  }
}

pestle_status_t pestle_ref_scalar(const pestle_ref_call_t* call) {
  const pestle_op_info_t* info = pestle_op_info((pestle_op_t)call->node->op);
  const pestle_type_t* result = pestle_ref_result_type(call, 0);
  size_t count = (size_t)pestle_type_count(result);
  bool select = info->rule == PESTLE_RULE_SELECT;
  pestle_dtype_t dtype = pestle_ref_operand_type(call, select ? 1 : 0)->dtype;
  if (!pestle_dtype_is(dtype, info->kinds)) {
    return pestle_node_error(call->node, PESTLE_STATUS_UNSUPPORTED,
                             "not defined for %s",
                             pestle_dtype_info(dtype)->name);
  }
  if (!count) return NULL;
  if (!select && pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX)) {
    return pestle_ref_complex_scalar(call);
  }
  unsigned size = pestle_dtype_size(dtype);
  if (select && size == 16) {
    select_wide(call, count, size, pestle_ref_operand_type(call, 0)->rank == 0);
    return NULL;
  }
  run_blocks(call, select ? bits_dtype(size) : dtype, info, count);
  return NULL;
}
