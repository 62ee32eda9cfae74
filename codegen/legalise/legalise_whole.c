// SPDX-License-Identifier: Apache-2.0
// Floats that visit a narrow integer, as a value does that is quantised and dequantised
// within one kernel:
//
//   f32(u8(clamp(0, v, 255))),  v a whole number  ->  v > 0 ? v : 0, then x < 255 ? x : 255
//
// The bounds are whole and of the integer's range, so that the integer changes nothing but
// a NaN and a zero below zero, both of which it makes 0. A comparison with a NaN is false:
// with a lower bound of 0 the NaN is 0 by that, with another one more select says so.
#include "codegen/legalise/legalise.h"
#include "codegen/legalise/vector_math_internal.h"

enum { DEEP = 4 };

// Whether |id|, of f32, is a whole number, an infinity or NaN.
static bool is_whole(const pestle_kir_t* k, pestle_kir_id_t id, int depth) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(k, id);
  double value;
  if (pestle_rewrite_constant(k, id, &value)) return value == trunc(value);
  if (inst->op == PESTLE_KIR_CAST) {
    unsigned from = pestle_kir_inst(k, inst->arg[0])->type;
    return pestle_dtype_is((pestle_dtype_t)from,
                           PESTLE_KIND_SIGNED | PESTLE_KIND_UNSIGNED);
  }
  pestle_op_t op;
  if (!pestle_kir_is_scalar(inst->op, &op)) return false;
  if (op == PESTLE_OP_ADD || op == PESTLE_OP_SUBTRACT) {
    return depth > 0 && is_whole(k, inst->arg[0], depth - 1) &&
           is_whole(k, inst->arg[1], depth - 1);
  }
  return op == PESTLE_OP_ROUND_EVEN || op == PESTLE_OP_ROUND_AFZ ||
         op == PESTLE_OP_TRUNC || op == PESTLE_OP_FLOOR || op == PESTLE_OP_CEIL;
}

// Whether |id| is never a zero below zero: a sum with a constant that is none.
static bool has_one_zero(const pestle_kir_t* k, pestle_kir_id_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(k, id);
  if (inst->op != pestle_kir_code(PESTLE_OP_ADD)) return false;
  for (int side = 0; side < 2; ++side) {
    double value;
    if (pestle_rewrite_constant(k, inst->arg[side], &value) &&
        (value != 0 || !signbit(value))) {
      return true;
    }
  }
  return false;
}

static bool holds(pestle_dtype_t dtype, double value) {
  if (!pestle_dtype_is(dtype, PESTLE_KIND_SIGNED | PESTLE_KIND_UNSIGNED))
    return false;
  unsigned bits = pestle_dtype_info(dtype)->bits;
  bool is_signed = pestle_dtype_is(dtype, PESTLE_KIND_SIGNED);
  if (bits > 16) return false;
  double count = ldexp(1, (int)bits);
  double least = is_signed ? -count / 2 : 0;
  return value >= least && value < least + count && value == trunc(value);
}

bool pestle_rewrite_is_visit(const pestle_rewrite_t* r, uint32_t id,
                             pestle_visit_t* out_visit) {
  const pestle_kir_t* k = r->from;
  const pestle_kir_inst_t* back = pestle_kir_inst(k, id);
  if (back->op != PESTLE_KIR_CAST || back->type != PESTLE_F32) return false;
  const pestle_kir_inst_t* there = pestle_kir_inst(k, back->arg[0]);
  if (there->op != PESTLE_KIR_CAST) return false;
  const pestle_kir_inst_t* clamp = pestle_kir_inst(k, there->arg[0]);
  pestle_dtype_t dtype = (pestle_dtype_t)there->type;
  pestle_visit_t visit;
  if (clamp->op != pestle_kir_code(PESTLE_OP_CLAMP) ||
      clamp->type != PESTLE_F32 ||
      !pestle_rewrite_constant(k, clamp->arg[0], &visit.least) ||
      !pestle_rewrite_constant(k, clamp->arg[2], &visit.most)) {
    return false;
  }
  visit.value = clamp->arg[1];
  bool whole = holds(dtype, visit.least) && holds(dtype, visit.most) &&
               visit.least <= visit.most && is_whole(k, visit.value, DEEP);
  if (!whole || !(visit.least >= 0 || has_one_zero(k, visit.value)))
    return false;
  *out_visit = visit;
  return true;
}

pestle_kir_id_t pestle_rewrite_visit(pestle_rewrite_t* r, uint32_t id,
                                     const pestle_visit_t* visit) {
  unsigned lanes = pestle_kir_inst(r->from, id)->lanes;
  vm_t v = {r->to, PESTLE_F32, lanes, false};
  vm_id_t x = r->map.data[visit->value];
  vm_id_t least = vm_const(v, visit->least + 0.0);
  vm_id_t most = vm_const(v, visit->most);
  vm_id_t above = vm_op2(v, PESTLE_OP_GT, x, least);
  vm_id_t made = vm_select(v, above, x, least);
  vm_id_t below = vm_op2(v, PESTLE_OP_LT, made, most);
  made = vm_select(v, below, made, most);
  if (visit->least == 0) return made;
  vm_id_t number = vm_op2(v, PESTLE_OP_EQ, x, x);
  return vm_select(v, number, made, vm_const(v, 0));
}
