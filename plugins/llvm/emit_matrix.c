// SPDX-License-Identifier: Apache-2.0
// Matrix registers: the tiles of AMX, by number. All eight are 16 rows of 64
// bytes from the kernel's first instruction to its last; what is smaller has
// zeros around it, or results that nobody stores.
#include "plugins/llvm/emit.h"

enum { CONFIG_BYTES = 64, CONFIG_ROW_BYTES = 16, CONFIG_ROWS = 48 };

// The operand of ldtilecfg: palette 1, then for each tile two bytes that say how
// long its rows are and one that says how many there are.
static LLVMValueRef config(pestle_llvm_emit_t* e) {
  uint8_t bytes[CONFIG_BYTES] = {1};
  LLVMValueRef lane[CONFIG_BYTES];
  for (int i = 0; i < PESTLE_KIR_MREGS; ++i) {
    bytes[CONFIG_ROW_BYTES + 2 * i] = PESTLE_KIR_MREG_ROW_BYTES;
    bytes[CONFIG_ROWS + i] = PESTLE_KIR_MREG_ROWS;
  }
  for (int i = 0; i < CONFIG_BYTES; ++i)
    lane[i] = pestle_llvm_int(e, e->i8, 1, bytes[i]);
  LLVMTypeRef type = e->ll->VectorType(e->i8, CONFIG_BYTES);
  LLVMValueRef made = e->ll->AddGlobal(e->module, type, "matrix.config");
  e->ll->SetInitializer(made, e->ll->ConstVector(lane, CONFIG_BYTES));
  e->ll->SetGlobalConstant(made, 1);
  e->ll->SetLinkage(made, LLVMPrivateLinkage);
  return made;
}

void pestle_llvm_open_matrix(pestle_llvm_emit_t* e) {
  for (uint32_t id = 0; id < e->k->inst_count && !e->has_matrix; ++id) {
    uint16_t op = pestle_llvm_inst(e, id)->op;
    e->has_matrix = op >= PESTLE_KIR_MREG_ZERO && op <= PESTLE_KIR_MREG_STREAM;
  }
  if (!e->has_matrix) return;
  if (!pestle_llvm_has_matrix(e->cpu->features)) {
    (void)pestle_llvm_fail(e, PESTLE_F32, 1, PESTLE_STATUS_UNSUPPORTED,
                           "the CPU has no matrix registers");
    return;
  }
  LLVMValueRef args[] = {config(e)};
  pestle_llvm_intrinsic(e, "llvm.x86.ldtilecfg", NULL, 0, args, 1);
}

void pestle_llvm_close_matrix(pestle_llvm_emit_t* e) {
  if (!e->has_matrix) return;
  pestle_llvm_intrinsic(e, "llvm.x86.tilerelease", NULL, 0, NULL, 0);
}

static LLVMValueRef number(pestle_llvm_emit_t* e, uint32_t value) {
  return pestle_llvm_int(e, e->i8, 1, (int64_t)value);
}

static void move(pestle_llvm_emit_t* e, const pestle_kir_inst_t* n,
                 const char* name) {
  const pestle_kir_buffer_t* u = pestle_kir_buffer(e->k, n->arg[0]);
  int64_t bytes = (int64_t)(int32_t)n->arg[2] *
                  (int64_t)pestle_dtype_size((pestle_dtype_t)u->dtype);
  LLVMValueRef args[] = {number(e, n->arg[3]),
                         pestle_llvm_address(e, n->arg[0], n->arg[1]),
                         pestle_llvm_i64(e, bytes)};
  pestle_llvm_intrinsic(e, name, NULL, 0, args, 3);
}

static void multiply(pestle_llvm_emit_t* e, const pestle_kir_inst_t* n) {
  // By whose bytes have a sign: none, a's, b's, both.
  static const char* const bytes[] = {"llvm.x86.tdpbuud", "llvm.x86.tdpbsud",
                                      "llvm.x86.tdpbusd", "llvm.x86.tdpbssd"};
  const char* name = n->arg[3] < PESTLE_KIR_MREG_BYTES
                         ? "llvm.x86.tdpbf16ps"
                         : bytes[n->arg[3] % PESTLE_KIR_MREG_BYTES];
  LLVMValueRef args[] = {number(e, n->arg[0]), number(e, n->arg[1]),
                         number(e, n->arg[2])};
  pestle_llvm_intrinsic(e, name, NULL, 0, args, 3);
}

void pestle_llvm_emit_matrix(pestle_llvm_emit_t* e, uint32_t id) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  if (n->op == PESTLE_KIR_MREG_ZERO) {
    LLVMValueRef args[] = {number(e, n->arg[0])};
    pestle_llvm_intrinsic(e, "llvm.x86.tilezero", NULL, 0, args, 1);
  } else if (n->op == PESTLE_KIR_MREG_LOAD) {
    move(e, n, "llvm.x86.tileloadd64");
  } else if (n->op == PESTLE_KIR_MREG_STREAM) {
    move(e, n, "llvm.x86.tileloaddt164");
  } else if (n->op == PESTLE_KIR_MREG_STORE) {
    move(e, n, "llvm.x86.tilestored64");
  } else {
    multiply(e, n);
  }
}
