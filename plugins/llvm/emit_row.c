// SPDX-License-Identifier: Apache-2.0
// Scalar rows: which function emits a row, and its operands.
#include "plugins/llvm/emit.h"

static bool takes(const pestle_llvm_row_t* row, pestle_dtype_t dtype) {
  return row && (row->dtypes & pestle_dtype_bit((pestle_dtype_t)dtype)) != 0;
}

uint32_t pestle_llvm_row_dtypes(unsigned op) {
  const pestle_llvm_row_t* on_float = pestle_llvm_float_row(op);
  const pestle_llvm_row_t* on_int = pestle_llvm_int_row(op);
  return (on_float ? on_float->dtypes : 0) | (on_int ? on_int->dtypes : 0);
}

LLVMValueRef pestle_llvm_emit_row(pestle_llvm_emit_t* e, unsigned op,
                                  const pestle_llvm_row_args_t* a) {
  const pestle_llvm_row_t* row = pestle_llvm_float_row(op);
  if (takes(row, a->dtype)) return row->emit(e, row, a);
  row = pestle_llvm_int_row(op);
  if (takes(row, a->dtype)) return row->emit(e, row, a);
  return pestle_llvm_fail(e, a->dtype, a->lanes, PESTLE_STATUS_UNSUPPORTED,
                          "llvm lacks a scalar row for this dtype: the kernel "
                          "was not legalised for it");
}

// Notes the value of an operand that is a constant, splat or not.
static void learn(pestle_llvm_emit_t* e, uint32_t id, unsigned at,
                  pestle_llvm_row_args_t* a) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  if (n->op == PESTLE_KIR_SPLAT) n = pestle_llvm_inst(e, n->arg[0]);
  if (n->op != PESTLE_KIR_CONST) return;
  a->known[at] = true;
  if (pestle_dtype_is((pestle_dtype_t)n->type, PESTLE_KIND_FLOAT)) {
    double value = pestle_kir_const_float(n);
    a->known_float[at] = n->type == PESTLE_F64 ? value : (double)(float)value;
  } else {
    a->known_int[at] = pestle_kir_const_int(n);
  }
}

// a * b + c, a * b - c or c - a * b, where operand |at| is the product.
static LLVMValueRef contracted(pestle_llvm_emit_t* e, uint32_t id,
                               unsigned at) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  const pestle_kir_inst_t* m = pestle_llvm_inst(e, n->arg[at]);
  LLVMValueRef x = pestle_llvm_get(e, m->arg[0]);
  LLVMValueRef y = pestle_llvm_get(e, m->arg[1]);
  LLVMValueRef z = pestle_llvm_get(e, n->arg[1 - at]);
  if (n->op == PESTLE_KIR_SUBTRACT) {
    if (at == 0) z = e->ll->BuildFNeg(e->b, z, "");
    if (at == 1) x = e->ll->BuildFNeg(e->b, x, "");
  }
  return pestle_llvm_fma(e, x, y, z);
}

void pestle_llvm_emit_scalar(pestle_llvm_emit_t* e, uint32_t id) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  unsigned op = n->op - PESTLE_KIR_SCALAR_BASE;
  if (e->contracted[id]) {
    if (n->op == PESTLE_KIR_MULTIPLY) return;  // its addition emits it
    pestle_llvm_set(e, id, contracted(e, id, e->contracted[id] - 1u));
    return;
  }
  if (pestle_llvm_emit_index_row(e, id)) return;
  pestle_llvm_row_args_t a = {.lanes = n->lanes, .facts = n->facts};
  bool select = n->op == PESTLE_KIR_SELECT;
  a.dtype = select ? (pestle_dtype_t)n->type : pestle_llvm_dtype(e, n->arg[0]);
  const char* operands = pestle_kir_op_info(n->op).operands;
  for (unsigned i = 0; operands[i]; ++i) {
    a.x[i] = pestle_llvm_get(e, n->arg[i]);
    learn(e, n->arg[i], i, &a);
  }
  pestle_llvm_set(e, id, pestle_llvm_emit_row(e, op, &a));
}
