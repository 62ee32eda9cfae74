// SPDX-License-Identifier: Apache-2.0
// Scalar rows that the target lacks, out of rows that it has (expand.c), sums that
// are one function, quotients by constants (legalise_divide.c), floats that visit an integer
// (legalise_whole.c), and short dot products.
#include "codegen/legalise/expand.h"
#include "codegen/legalise/legalise.h"
#include "codegen/legalise/legalise_approx.h"
#include "codegen/legalise/vector_math_internal.h"

// --- Sums ---

static bool is_one(const pestle_kir_t* k, pestle_kir_id_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(k, id);
  if (inst->op != PESTLE_KIR_CONST) return false;
  double value = pestle_kir_const_float(inst);
  return value >= 1 && value <= 1;
}

// The x of an |inst| that is erf(x) + 1 in f32 where the target lacks erf and nothing
// else uses that one: its own expansion is dropped as what nobody uses.
static bool is_erf_plus_one(pestle_rewrite_t* r, const pestle_kir_inst_t* inst,
                            pestle_kir_id_t* out_x) {
  if (inst->op != pestle_kir_code(PESTLE_OP_ADD) || inst->type != PESTLE_F32 ||
      r->numerics == PESTLE_NUMERICS_STRICT) {
    return false;
  }
  for (int side = 0; side < 2; ++side) {
    const pestle_kir_inst_t* erf = pestle_kir_inst(r->from, inst->arg[side]);
    if (erf->op != pestle_kir_code(PESTLE_OP_ERF) ||
        pestle_rewrite_legal(r, erf) || !is_one(r->from, inst->arg[1 - side])) {
      continue;
    }
    if (pestle_rewrite_uses(r, inst->arg[side]) != 1) return false;
    *out_x = r->map.data[erf->arg[0]];
    return true;
  }
  return false;
}

// Not by approximations of 2^x: measured on an H200, 4096 x 4096 x 16384 with a bias
// and GELU takes 880 us by them and 842 without.
static vm_id_t erf_plus_one(pestle_rewrite_t* r, vm_id_t x) {
  vm_t v = {r->to, PESTLE_F32, pestle_kir_lanes_of(r->to, x),
            pestle_rewrite_can(r, PESTLE_KIR_SCALE, PESTLE_F32)};
  return pestle_vm_erf_plus_one(v, x);
}

// --- Short dot products ---

static bool is_dot(unsigned op) {
  return op == PESTLE_KIR_DOT2 || op == PESTLE_KIR_DOT4;
}

// Element |i| of each word of |x|: a byte as i32, a bf16 as f32.
static vm_id_t word_element(vm_t v, vm_id_t x, unsigned op, unsigned i,
                            bool is_signed) {
  unsigned bits = op == PESTLE_KIR_DOT2 ? 16 : 8;
  if (32 - bits * (i + 1)) {
    x = vm_op2i(v, PESTLE_OP_SHIFT_LEFT, x, (int64_t)(32 - bits * (i + 1)));
  }
  if (op == PESTLE_KIR_DOT2) {
    x = vm_op2i(v, PESTLE_OP_AND, x, (int64_t)INT32_MIN >> 15);
    return vm_bits(v, x, PESTLE_F32);
  }
  return vm_op2i(v,
                 is_signed ? PESTLE_OP_SHIFT_RIGHT_ARITHMETIC
                           : PESTLE_OP_SHIFT_RIGHT_LOGICAL,
                 x, 24);
}

// A product and a sum for each element.
static vm_id_t expand_dot(pestle_rewrite_t* r, const pestle_kir_inst_t* inst) {
  bool floats = inst->op == PESTLE_KIR_DOT2;
  vm_t words = {r->to, PESTLE_I32, inst->lanes, false};
  vm_t sums = {r->to, floats ? PESTLE_F32 : PESTLE_I32, inst->lanes, false};
  vm_id_t sum = inst->arg[2];
  for (unsigned i = 0; i < (floats ? 2u : 4u); ++i) {
    vm_id_t a = word_element(words, inst->arg[0], inst->op, i,
                             inst->arg[3] & PESTLE_KIR_DOT4_A_SIGNED);
    vm_id_t b = word_element(words, inst->arg[1], inst->op, i,
                             inst->arg[3] & PESTLE_KIR_DOT4_B_SIGNED);
    sum = vm_add(sums, sum, vm_mul(sums, a, b));
  }
  return sum;
}

// Whether |op| on f32 may have an approximation, were it wanted.
static bool may_approximate(const pestle_rewrite_t* r,
                            const pestle_kir_inst_t* inst, pestle_op_t op) {
  return r->numerics != PESTLE_NUMERICS_STRICT && inst->type == PESTLE_F32 &&
         !pestle_approx_is_row(r, inst) &&
         pestle_approx_has(r, op, PESTLE_APPROX_BF16);
}

static bool needed(pestle_rewrite_t* r) {
  pestle_op_t op;
  float c;
  pestle_visit_t visit;
  for (uint32_t i = 0; i < r->from->inst_count; ++i) {
    const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, i);
    if (pestle_rewrite_is_quotient(r, i, &c) ||
        pestle_rewrite_is_visit(r, i, &visit)) {
      return true;
    }
    bool row = pestle_kir_is_scalar(inst->op, &op) || is_dot(inst->op) ||
               inst->op == PESTLE_KIR_MREG_STREAM;
    if (row && !pestle_rewrite_legal(r, inst)) return true;
    if (pestle_kir_is_scalar(inst->op, &op) && may_approximate(r, inst, op))
      return true;
  }
  return false;
}

static pestle_status_t rewrite_inst(pestle_rewrite_t* r, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, id);
  pestle_kir_inst_t mapped = pestle_rewrite_mapped(r, inst);
  pestle_kir_id_t value;
  pestle_op_t op;
  const unsigned exact = PESTLE_KIR_NNAN | PESTLE_KIR_NINF | PESTLE_KIR_NSZ;
  float c;
  pestle_visit_t visit;
  bool plus_one = is_erf_plus_one(r, inst, &value);
  bool near = pestle_kir_is_scalar(inst->op, &op) &&
              may_approximate(r, inst, op) &&
              pestle_approx_expand(r, op, pestle_approx_of(r, id),
                                   mapped.arg[0], &value);
  if (near) {
    // |value| it is.
  } else if (pestle_rewrite_is_quotient(r, id, &c) &&
             pestle_rewrite_quotient(r, id, c, &value)) {
    // |value| it is.
  } else if (pestle_rewrite_is_visit(r, id, &visit)) {
    value = pestle_rewrite_visit(r, id, &visit);
  } else if (plus_one || (pestle_kir_is_scalar(inst->op, &op) &&
                          !pestle_rewrite_legal(r, inst))) {
    r->to->facts = inst->facts & (uint8_t)exact;
    bool done = true;
    if (plus_one) {
      value = erf_plus_one(r, value);
    } else {
      done = pestle_expand(r, op, mapped.arg, &value);
    }
    r->to->facts = 0;
    if (!done) return pestle_rewrite_unsupported(r, inst);
  } else if (is_dot(inst->op) && !pestle_rewrite_legal(r, inst)) {
    value = expand_dot(r, &mapped);
  } else {
    if (inst->op == PESTLE_KIR_MREG_STREAM && !pestle_rewrite_legal(r, inst)) {
      mapped.op = PESTLE_KIR_MREG_LOAD;
    }
    value = pestle_rewrite_put(r, mapped);
  }
  pestle_rewrite_set(r, id, value);
  return NULL;
}

const pestle_rewrite_pass_t pestle_legalise_row = {.needed = needed,
                                                   .inst = rewrite_inst};
