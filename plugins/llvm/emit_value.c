// SPDX-License-Identifier: Apache-2.0
// Types, constants, and the values that instructions have got.
#include <string.h>

#include "plugins/common/float_bits.h"
#include "plugins/llvm/emit.h"

LLVMValueRef pestle_llvm_fail(pestle_llvm_emit_t* e, pestle_dtype_t dtype,
                              unsigned lanes, pestle_status_code_t code,
                              const char* sentence) {
  if (!e->status) {
    e->status =
        pestle_plugin_error(e->host, code, __FILE__, __LINE__, "%s", sentence);
  }
  return e->ll->GetPoison(pestle_llvm_type(e, dtype, lanes));
}

// --- Types ---

LLVMTypeRef pestle_llvm_vector(pestle_llvm_emit_t* e, LLVMTypeRef lane,
                               unsigned lanes) {
  return lanes > 1 ? e->ll->VectorType(lane, lanes) : lane;
}

LLVMTypeRef pestle_llvm_type(pestle_llvm_emit_t* e, pestle_dtype_t dtype,
                             unsigned lanes) {
  return pestle_llvm_vector(e, e->type[dtype], lanes);
}

LLVMTypeRef pestle_llvm_memory_type(pestle_llvm_emit_t* e, pestle_dtype_t dtype,
                                    unsigned lanes) {
  return pestle_llvm_vector(e, dtype == PESTLE_I1 ? e->i8 : e->type[dtype],
                            lanes);
}

// --- Constants ---

LLVMValueRef pestle_llvm_i32(pestle_llvm_emit_t* e, int64_t value) {
  return e->ll->ConstInt(e->i32, (unsigned long long)value, 1);
}

LLVMValueRef pestle_llvm_i64(pestle_llvm_emit_t* e, int64_t value) {
  return e->ll->ConstInt(e->i64, (unsigned long long)value, 1);
}

static LLVMValueRef constant_splat(pestle_llvm_emit_t* e, LLVMValueRef lane,
                                   unsigned lanes) {
  LLVMValueRef all[PESTLE_KIR_MAX_LANES];
  if (lanes <= 1) return lane;
  for (unsigned i = 0; i < lanes; ++i)
    all[i] = lane;
  return e->ll->ConstVector(all, lanes);
}

LLVMValueRef pestle_llvm_int(pestle_llvm_emit_t* e, LLVMTypeRef lane,
                             unsigned lanes, int64_t value) {
  LLVMValueRef one = e->ll->ConstInt(lane, (unsigned long long)value, 1);
  return constant_splat(e, one, lanes);
}

LLVMValueRef pestle_llvm_float(pestle_llvm_emit_t* e, pestle_dtype_t dtype,
                               unsigned lanes, double value) {
  // By bits, so that NaNs stay what they are.
  unsigned width = 8 * pestle_dtype_size(dtype);
  LLVMValueRef bits =
      e->ll->ConstInt(e->ll->IntTypeInContext(e->context, width),
                      pestle_plugin_float_bits(dtype, value), 0);
  LLVMValueRef one = e->ll->BuildBitCast(e->b, bits, e->type[dtype], "");
  return constant_splat(e, one, lanes);
}

LLVMValueRef pestle_llvm_splat(pestle_llvm_emit_t* e, LLVMValueRef v,
                               unsigned lanes) {
  const pestle_llvm_api_t* ll = e->ll;
  if (lanes <= 1) return v;
  LLVMTypeRef type = ll->VectorType(ll->TypeOf(v), lanes);
  LLVMValueRef poison = ll->GetPoison(type);
  LLVMValueRef first =
      ll->BuildInsertElement(e->b, poison, v, pestle_llvm_i64(e, 0), "");
  return ll->BuildShuffleVector(
      e->b, first, poison, ll->ConstNull(ll->VectorType(e->i32, lanes)), "");
}

// --- Intrinsics ---

LLVMValueRef pestle_llvm_intrinsic(pestle_llvm_emit_t* e, const char* name,
                                   LLVMTypeRef* types, size_t type_count,
                                   LLVMValueRef* args, unsigned arg_count) {
  const pestle_llvm_api_t* ll = e->ll;
  unsigned id = ll->LookupIntrinsicID(name, strlen(name));
  LLVMValueRef f =
      ll->GetIntrinsicDeclaration(e->module, id, types, type_count);
  return ll->BuildCall2(e->b, ll->GlobalGetValueType(f), f, args, arg_count,
                        "");
}

LLVMValueRef pestle_llvm_unary(pestle_llvm_emit_t* e, const char* name,
                               LLVMValueRef v) {
  LLVMTypeRef type = e->ll->TypeOf(v);
  return pestle_llvm_intrinsic(e, name, &type, 1, &v, 1);
}

LLVMValueRef pestle_llvm_fma(pestle_llvm_emit_t* e, LLVMValueRef a,
                             LLVMValueRef b, LLVMValueRef c) {
  LLVMTypeRef type = e->ll->TypeOf(a);
  LLVMValueRef args[] = {a, b, c};
  return pestle_llvm_intrinsic(e, "llvm.fma", &type, 1, args, 3);
}

// --- Values by id ---

LLVMValueRef pestle_llvm_get(pestle_llvm_emit_t* e, uint32_t id) {
  const pestle_llvm_value_t* value = &e->value[id];
  if (!value->index) {
    if (value->v) return value->v;
    const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
    return pestle_llvm_fail(e, (pestle_dtype_t)n->type, n->lanes,
                            PESTLE_STATUS_INTERNAL,
                            "an operand has no value here");
  }
  LLVMValueRef constant = pestle_llvm_i64(e, value->constant);
  if (!value->v) return constant;
  if (!value->constant) return value->v;
  return e->ll->BuildNSWAdd(e->b, value->v, constant, "");
}

void pestle_llvm_set_index(pestle_llvm_emit_t* e, uint32_t id, LLVMValueRef v,
                           int64_t constant) {
  if (v && e->ll->IsAConstantInt(v)) {
    constant += e->ll->ConstIntGetSExtValue(v);
    v = NULL;
  }
  e->value[id] = (pestle_llvm_value_t){v, constant, true};
}

void pestle_llvm_set(pestle_llvm_emit_t* e, uint32_t id, LLVMValueRef v) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  if (n->type == PESTLE_INDEX && n->lanes == 1) {
    pestle_llvm_set_index(e, id, v, 0);
  } else {
    e->value[id] = (pestle_llvm_value_t){.v = v};
  }
}

bool pestle_llvm_known(pestle_llvm_emit_t* e, uint32_t id, int64_t* out_value) {
  const pestle_llvm_value_t* value = &e->value[id];
  if (value->index) {
    *out_value = value->constant;
    return !value->v;
  }
  if (!value->v || !e->ll->IsAConstantInt(value->v)) return false;
  *out_value = e->ll->ConstIntGetSExtValue(value->v);
  return true;
}
