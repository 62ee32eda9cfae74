// SPDX-License-Identifier: Apache-2.0
// Vector constants: in registers, or read from a table.
//
// A constant of LLVM belongs to no loop: code generation loads it before the
// outermost one, and holds it in a register all along. The epilogue of a
// product may have twenty constants (an erf is a polynomial or two), and then
// the accumulators, in a loop that has nothing to do with them, are spilled: a
// product by Winograd's algorithm in front of a GELU took three times as long.
// So a loop of many constants beside accumulators reads them from a table,
// through an address that is nowhere but in front of it.
#include "plugins/common/float_bits.h"
#include "plugins/llvm/emit.h"

// Constants that a loop may have without a table, vectors of private buffers that a
// kernel may, and entries of a table.
enum { FEW_CONSTANTS = 6, FEW_VECTORS = 12, MOST_ENTRIES = 64 };

struct pestle_llvm_table_t {
  LLVMValueRef base;
  uint32_t count;
  uint64_t bits[MOST_ENTRIES];
};

static uint64_t bits_of(const pestle_kir_inst_t* n) {
  return pestle_plugin_float_bits((pestle_dtype_t)n->type,
                                  pestle_kir_const_float(n));
}

// Whether |n| is a vector that takes a register or a load.
static bool is_vector(const pestle_kir_inst_t* n) {
  return n->op == PESTLE_KIR_CONST && n->lanes > 1 &&
         (n->type == PESTLE_F32 || n->type == PESTLE_F64) && bits_of(n) != 0;
}

// The entry of |bits|, or |count|.
static uint32_t find(const pestle_llvm_table_t* table, uint64_t bits) {
  uint32_t i = 0;
  while (i < table->count && table->bits[i] != bits)
    ++i;
  return i;
}

static bool has_accumulators(const pestle_kir_t* k) {
  uint64_t vectors = 0;
  for (uint32_t i = 0; i < k->buffer_count; ++i) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(k, i);
    if (u->scope == PESTLE_KIR_PRIVATE && u->lanes > 1) vectors += u->count;
  }
  return vectors >= FEW_VECTORS;
}

// Fills the table for what lies between |pc| and |end|; whether it is worth one.
static bool collect(const pestle_llvm_emit_t* e, uint32_t pc, uint32_t end,
                    pestle_llvm_table_t* table) {
  for (uint32_t i = pc; i < end; ++i) {
    const pestle_kir_inst_t* n = pestle_llvm_inst(e, i);
    bool access = n->op == PESTLE_KIR_LOAD || n->op == PESTLE_KIR_STORE ||
                  n->op == PESTLE_KIR_ALLOC;
    if (access &&
        pestle_kir_buffer(e->k, n->arg[0])->scope == PESTLE_KIR_PRIVATE) {
      return false;
    }
    if (!is_vector(n) || table->count == MOST_ENTRIES) continue;
    uint64_t bits = bits_of(n);
    if (find(table, bits) == table->count) table->bits[table->count++] = bits;
  }
  return table->count > FEW_CONSTANTS;
}

LLVMValueRef pestle_llvm_hide(pestle_llvm_emit_t* e, LLVMValueRef v,
                              bool stays) {
  static char no_text[] = "", same_register[] = "=r,0";
  LLVMTypeRef lane = e->ll->TypeOf(v);
  LLVMTypeRef type = e->ll->FunctionType(lane, &lane, 1, 0);
  LLVMValueRef code = e->ll->GetInlineAsm(type, no_text, 0, same_register,
                                          sizeof same_register - 1, stays, 0,
                                          LLVMInlineAsmDialectATT, 0);
  LLVMValueRef hidden = e->ll->BuildCall2(e->b, type, code, &v, 1, "");
  if (stays) return hidden;
  static const char* const attributes[] = {"memory", "nounwind", "willreturn"};
  for (int i = 0; i < 3; ++i) {
    const char* key = attributes[i];
    unsigned id = e->ll->GetEnumAttributeKindForName(key, strlen(key));
    LLVMAttributeRef made = e->ll->CreateEnumAttribute(e->context, id, 0);
    e->ll->AddCallSiteAttribute(
        hidden, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, made);
  }
  return hidden;
}

static LLVMValueRef make_data(pestle_llvm_emit_t* e,
                              const pestle_llvm_table_t* table) {
  LLVMValueRef entries[MOST_ENTRIES];
  for (uint32_t i = 0; i < table->count; ++i) {
    entries[i] = pestle_llvm_i64(e, (int64_t)table->bits[i]);
  }
  LLVMValueRef data = e->ll->AddGlobal(
      e->module, e->ll->VectorType(e->i64, table->count), "constants");
  e->ll->SetInitializer(data, e->ll->ConstVector(entries, table->count));
  e->ll->SetGlobalConstant(data, 1);
  e->ll->SetLinkage(data, LLVMPrivateLinkage);
  return data;
}

pestle_status_t pestle_llvm_open_table(pestle_llvm_emit_t* e, uint32_t pc,
                                       uint32_t end, bool* out_opened) {
  *out_opened = false;
  if (e->table || !has_accumulators(e->k)) return NULL;
  pestle_llvm_table_t* table =
      pestle_plugin_arena_alloc(&e->arena, 1, sizeof *table);
  if (!table) {
    return PESTLE_PLUGIN_ERROR(e->host, OUT_OF_MEMORY,
                               "no memory for a kernel's constants");
  }
  if (!collect(e, pc, end, table)) return NULL;
  table->base = pestle_llvm_hide(e, make_data(e, table), true);
  e->table = table;
  *out_opened = true;
  return NULL;
}

LLVMValueRef pestle_llvm_from_table(pestle_llvm_emit_t* e,
                                    const pestle_kir_inst_t* n) {
  if (!e->table || !is_vector(n)) return NULL;
  uint32_t entry = find(e->table, bits_of(n));
  if (entry == e->table->count) return NULL;
  LLVMValueRef at = pestle_llvm_i64(e, entry);
  LLVMValueRef p =
      e->ll->BuildInBoundsGEP2(e->b, e->i64, e->table->base, &at, 1, "");
  LLVMValueRef lane = e->ll->BuildLoad2(e->b, e->type[n->type], p, "");
  e->ll->SetMetadata(lane, e->invariant_kind, e->invariant_node);
  return pestle_llvm_splat(e, lane, n->lanes);
}
