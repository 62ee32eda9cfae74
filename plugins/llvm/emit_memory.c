// SPDX-License-Identifier: Apache-2.0
// Loads, stores, gathers, scatters.
#include "plugins/llvm/emit.h"

// --- Addresses ---

// Of element |index| of |buffer|: the variable part first, so that all unrolled
// accesses share it, then the constant as a displacement. The half-way point
// may lie outside of the buffer, hence no inbounds when there are two steps.
LLVMValueRef pestle_llvm_address(pestle_llvm_emit_t* e, uint32_t buffer,
                                 uint32_t index) {
  const pestle_llvm_api_t* ll = e->ll;
  const pestle_llvm_value_t* at = &e->value[index];
  LLVMTypeRef type = pestle_llvm_memory_type(
      e, (pestle_dtype_t)pestle_kir_buffer(e->k, buffer)->dtype, 1);
  LLVMValueRef p = e->base[buffer];
  if (!at->index) {
    LLVMValueRef v = pestle_llvm_get(e, index);
    return ll->BuildInBoundsGEP2(e->b, type, p, &v, 1, "");
  }
  LLVMValueRef variable = at->v, constant = pestle_llvm_i64(e, at->constant);
  if (!variable) {
    if (!at->constant) return p;
    return ll->BuildInBoundsGEP2(e->b, type, p, &constant, 1, "");
  }
  if (!at->constant) {
    return ll->BuildInBoundsGEP2(e->b, type, p, &variable, 1, "");
  }
  p = ll->BuildGEP2(e->b, type, p, &variable, 1, "");
  return ll->BuildGEP2(e->b, type, p, &constant, 1, "");
}

// --- Values and their bytes ---

static LLVMValueRef from_memory(pestle_llvm_emit_t* e, pestle_dtype_t dtype,
                                LLVMValueRef v) {
  if (dtype != PESTLE_I1) return v;
  LLVMValueRef zero = e->ll->ConstNull(e->ll->TypeOf(v));
  return e->ll->BuildICmp(e->b, LLVMIntNE, v, zero, "");
}

static LLVMValueRef to_memory(pestle_llvm_emit_t* e, pestle_dtype_t dtype,
                              unsigned lanes, LLVMValueRef v) {
  if (dtype != PESTLE_I1) return v;
  return e->ll->BuildZExt(e->b, v, pestle_llvm_memory_type(e, dtype, lanes),
                          "");
}

// --- Masks ---

typedef enum mask_kind_t { MASK_ALL, MASK_NONE, MASK_SOME } mask_kind_t;

// Constants are unique in a context, so that the pointers tell.
static mask_kind_t mask_kind(pestle_llvm_emit_t* e, uint32_t id,
                             LLVMValueRef* out_mask) {
  *out_mask = NULL;
  if (id == PESTLE_KIR_NONE) return MASK_ALL;
  LLVMValueRef mask = pestle_llvm_get(e, id);
  LLVMTypeRef type = e->ll->TypeOf(mask);
  if (mask == e->ll->ConstAllOnes(type)) return MASK_ALL;
  if (mask == e->ll->ConstNull(type)) return MASK_NONE;
  *out_mask = mask;
  return MASK_SOME;
}

// The intrinsics want vectors: one lane is a vector of one.
static LLVMValueRef as_vector(pestle_llvm_emit_t* e, LLVMValueRef v,
                              unsigned lanes) {
  if (lanes > 1) return v;
  LLVMTypeRef type = e->ll->VectorType(e->ll->TypeOf(v), 1);
  return e->ll->BuildInsertElement(e->b, e->ll->GetPoison(type), v,
                                   pestle_llvm_i64(e, 0), "");
}

static LLVMValueRef from_vector(pestle_llvm_emit_t* e, LLVMValueRef v,
                                unsigned lanes) {
  if (lanes > 1) return v;
  return e->ll->BuildExtractElement(e->b, v, pestle_llvm_i64(e, 0), "");
}

// --- Private buffers ---

// The slot that |index| names, or NULL after a failure.
static LLVMValueRef* private_slot(pestle_llvm_emit_t* e, uint32_t buffer,
                                  uint32_t index, uint32_t mask) {
  int64_t at;
  const pestle_kir_buffer_t* u = pestle_kir_buffer(e->k, buffer);
  if (mask == PESTLE_KIR_NONE && pestle_llvm_known(e, index, &at) && at >= 0 &&
      (uint64_t)at < u->count) {
    return &e->slot[buffer][at];
  }
  pestle_llvm_fail(e, PESTLE_I1, 1, PESTLE_STATUS_MALFORMED,
                   "a private buffer is not accessed whole, at a constant "
                   "index within it");
  return NULL;
}

// Accesses are of whole elements: no mask.
static void load_private(pestle_llvm_emit_t* e, uint32_t id) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  LLVMValueRef* slot = private_slot(e, n->arg[0], n->arg[1], n->arg[2]);
  if (slot) pestle_llvm_set(e, id, *slot);
}

static void store_private(pestle_llvm_emit_t* e, uint32_t id) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  LLVMValueRef* slot = private_slot(e, n->arg[0], n->arg[1], n->arg[3]);
  if (slot) *slot = pestle_llvm_get(e, n->arg[2]);
}

// --- Load and store ---

// Says of |access| what |buffer| does not overlap.
static void say_apart(pestle_llvm_emit_t* e, uint32_t buffer,
                      LLVMValueRef access) {
  if (!e->apart[buffer]) return;
  e->ll->SetMetadata(access, e->scope_kind, e->scope[buffer]);
  e->ll->SetMetadata(access, e->noalias_kind, e->apart[buffer]);
}

// What is known of a load from |buffer|, all of whose lanes are read.
static void describe_load(pestle_llvm_emit_t* e, uint32_t buffer,
                          LLVMValueRef v) {
  const pestle_kir_buffer_t* u = pestle_kir_buffer(e->k, buffer);
  if ((u->flags & PESTLE_KIR_READONLY) && !e->shares_alias[buffer]) {
    e->ll->SetMetadata(v, e->invariant_kind, e->invariant_node);
  }
  say_apart(e, buffer, v);
}

static LLVMValueRef masked_load(pestle_llvm_emit_t* e, uint32_t buffer,
                                LLVMTypeRef lane, unsigned lanes,
                                LLVMValueRef p, unsigned align,
                                LLVMValueRef mask) {
  LLVMTypeRef type = e->ll->VectorType(lane, lanes);
  LLVMTypeRef types[] = {type, e->ptr};
  LLVMValueRef args[] = {p, pestle_llvm_i32(e, align),
                         as_vector(e, mask, lanes), e->ll->ConstNull(type)};
  LLVMValueRef v =
      pestle_llvm_intrinsic(e, "llvm.masked.load", types, 2, args, 4);
  say_apart(e, buffer, v);
  return from_vector(e, v, lanes);
}

static void load(pestle_llvm_emit_t* e, uint32_t id) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  const pestle_kir_buffer_t* u = pestle_kir_buffer(e->k, n->arg[0]);
  pestle_dtype_t dtype = (pestle_dtype_t)u->dtype;
  if (u->scope == PESTLE_KIR_PRIVATE) {
    load_private(e, id);
    return;
  }
  LLVMValueRef mask, v;
  mask_kind_t kind = mask_kind(e, n->arg[2], &mask);
  LLVMTypeRef type = pestle_llvm_memory_type(e, dtype, n->lanes);
  if (kind == MASK_NONE) {
    v = e->ll->ConstNull(type);
  } else {
    LLVMValueRef p = pestle_llvm_address(e, n->arg[0], n->arg[1]);
    unsigned align = 1u << n->align_log2;
    if (kind == MASK_ALL) {
      v = e->ll->BuildLoad2(e->b, type, p, "");
      e->ll->SetAlignment(v, align);
      describe_load(e, n->arg[0], v);
    } else {
      LLVMTypeRef lane = pestle_llvm_memory_type(e, dtype, 1);
      v = masked_load(e, n->arg[0], lane, n->lanes, p, align, mask);
    }
  }
  pestle_llvm_set(e, id, from_memory(e, dtype, v));
}

// Words of neighbouring elements: only the elements are aligned.
static void load_words(pestle_llvm_emit_t* e, uint32_t id) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  const pestle_kir_buffer_t* u = pestle_kir_buffer(e->k, n->arg[0]);
  LLVMTypeRef type = pestle_llvm_vector(e, e->i32, n->lanes);
  LLVMValueRef v = e->ll->BuildLoad2(
      e->b, type, pestle_llvm_address(e, n->arg[0], n->arg[1]), "");
  e->ll->SetAlignment(v, pestle_dtype_size((pestle_dtype_t)u->dtype));
  describe_load(e, n->arg[0], v);
  pestle_llvm_set(e, id, v);
}

// Streaming stores want whole aligned vectors; others would be cut up.
static bool may_stream(const pestle_llvm_emit_t* e,
                       const pestle_kir_buffer_t* u, unsigned lanes,
                       unsigned align) {
  unsigned bytes = lanes * pestle_dtype_size((pestle_dtype_t)u->dtype);
  unsigned widest = pestle_llvm_has_v4(e->cpu->features) ? 64 : 32;
  return (u->flags & PESTLE_KIR_NONTEMPORAL) && bytes >= 16 &&
         (bytes & (bytes - 1)) == 0 &&
         align >= (bytes < widest ? bytes : widest);
}

static void masked_store(pestle_llvm_emit_t* e, uint32_t buffer, unsigned lanes,
                         LLVMValueRef v, LLVMValueRef p, unsigned align,
                         LLVMValueRef mask) {
  v = as_vector(e, v, lanes);
  LLVMTypeRef types[] = {e->ll->TypeOf(v), e->ptr};
  LLVMValueRef args[] = {v, p, pestle_llvm_i32(e, align),
                         as_vector(e, mask, lanes)};
  say_apart(e, buffer,
            pestle_llvm_intrinsic(e, "llvm.masked.store", types, 2, args, 4));
}

static void store(pestle_llvm_emit_t* e, uint32_t id) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  const pestle_kir_buffer_t* u = pestle_kir_buffer(e->k, n->arg[0]);
  pestle_dtype_t dtype = (pestle_dtype_t)u->dtype;
  unsigned lanes = pestle_llvm_inst(e, n->arg[2])->lanes;
  if (u->scope == PESTLE_KIR_PRIVATE) {
    store_private(e, id);
    return;
  }
  LLVMValueRef v = pestle_llvm_get(e, n->arg[2]);
  LLVMValueRef mask;
  mask_kind_t kind = mask_kind(e, n->arg[3], &mask);
  if (kind == MASK_NONE) return;
  LLVMValueRef p = pestle_llvm_address(e, n->arg[0], n->arg[1]);
  unsigned align = 1u << n->align_log2;
  v = to_memory(e, dtype, lanes, v);
  if (kind == MASK_SOME) {
    masked_store(e, n->arg[0], lanes, v, p, align, mask);
    return;
  }
  LLVMValueRef made = e->ll->BuildStore(e->b, v, p);
  e->ll->SetAlignment(made, align);
  say_apart(e, n->arg[0], made);
  if (may_stream(e, u, lanes, align)) {
    e->ll->SetMetadata(made, e->nontemporal_kind, e->nontemporal_node);
    e->streamed = true;
  }
}

// --- Gather and scatter ---

// A vector of pointers, one a lane.
static LLVMValueRef addresses(pestle_llvm_emit_t* e, uint32_t buffer,
                              uint32_t indices) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, indices);
  const pestle_kir_buffer_t* u = pestle_kir_buffer(e->k, buffer);
  LLVMTypeRef type = pestle_llvm_memory_type(e, (pestle_dtype_t)u->dtype, 1);
  LLVMValueRef v = pestle_llvm_get(e, indices);
  // getelementptr takes an index as signed.
  if (pestle_dtype_is((pestle_dtype_t)n->type, PESTLE_KIND_UNSIGNED)) {
    v = e->ll->BuildZExt(e->b, v, pestle_llvm_vector(e, e->i64, n->lanes), "");
  }
  return e->ll->BuildGEP2(e->b, type, e->base[buffer], &v, 1, "");
}

// Eight bytes of zero to read from instead.
static LLVMValueRef zero_word(pestle_llvm_emit_t* e) {
  if (e->zero_word) return e->zero_word;
  e->zero_word = e->ll->AddGlobal(e->module, e->i64, "zero.word");
  e->ll->SetInitializer(e->zero_word, pestle_llvm_i64(e, 0));
  e->ll->SetGlobalConstant(e->zero_word, 1);
  e->ll->SetLinkage(e->zero_word, LLVMPrivateLinkage);
  return e->zero_word;
}

// Lane by lane without a branch: lanes that are off read a zero.
static LLVMValueRef gather_lanes(pestle_llvm_emit_t* e, LLVMTypeRef lane,
                                 unsigned lanes, LLVMValueRef p,
                                 LLVMValueRef mask) {
  const pestle_llvm_api_t* ll = e->ll;
  if (mask) {
    LLVMValueRef off = pestle_llvm_splat(e, zero_word(e), lanes);
    p = ll->BuildSelect(e->b, mask, p, off, "");
  }
  unsigned align = 1;
  if (lanes == 1) {
    LLVMValueRef v = ll->BuildLoad2(e->b, lane, p, "");
    ll->SetAlignment(v, align);
    return v;
  }
  LLVMValueRef result = ll->GetPoison(ll->VectorType(lane, lanes));
  for (unsigned i = 0; i < lanes; ++i) {
    LLVMValueRef at = pestle_llvm_i64(e, i);
    LLVMValueRef q = ll->BuildExtractElement(e->b, p, at, "");
    LLVMValueRef v = ll->BuildLoad2(e->b, lane, q, "");
    ll->SetAlignment(v, align);
    result = ll->BuildInsertElement(e->b, result, v, at, "");
  }
  return result;
}

static void gather(pestle_llvm_emit_t* e, uint32_t id) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  const pestle_kir_buffer_t* u = pestle_kir_buffer(e->k, n->arg[0]);
  pestle_dtype_t dtype = (pestle_dtype_t)u->dtype;
  LLVMTypeRef lane = pestle_llvm_memory_type(e, dtype, 1);
  LLVMTypeRef type = pestle_llvm_vector(e, lane, n->lanes);
  LLVMValueRef mask, v;
  mask_kind_t kind = mask_kind(e, n->arg[2], &mask);
  unsigned size = pestle_dtype_size(dtype);
  if (kind == MASK_NONE) {
    v = e->ll->ConstNull(type);
  } else if (n->lanes == 1 || size < 4) {
    LLVMValueRef p = addresses(e, n->arg[0], n->arg[1]);
    v = gather_lanes(e, lane, n->lanes, p, mask);
  } else {
    LLVMValueRef p = addresses(e, n->arg[0], n->arg[1]);
    LLVMTypeRef types[] = {type, e->ll->TypeOf(p)};
    LLVMTypeRef bits = e->ll->VectorType(e->type[PESTLE_I1], n->lanes);
    LLVMValueRef args[] = {p, pestle_llvm_i32(e, size),
                           mask ? mask : e->ll->ConstAllOnes(bits),
                           e->ll->ConstNull(type)};
    v = pestle_llvm_intrinsic(e, "llvm.masked.gather", types, 2, args, 4);
  }
  pestle_llvm_set(e, id, from_memory(e, dtype, v));
}

static void scatter(pestle_llvm_emit_t* e, uint32_t id) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  const pestle_kir_buffer_t* u = pestle_kir_buffer(e->k, n->arg[0]);
  pestle_dtype_t dtype = (pestle_dtype_t)u->dtype;
  unsigned lanes = pestle_llvm_inst(e, n->arg[2])->lanes;
  LLVMValueRef mask;
  mask_kind_t kind = mask_kind(e, n->arg[3], &mask);
  if (kind == MASK_NONE) return;
  LLVMValueRef p = addresses(e, n->arg[0], n->arg[1]);
  LLVMValueRef v = to_memory(e, dtype, lanes, pestle_llvm_get(e, n->arg[2]));
  unsigned size = pestle_dtype_size(dtype);
  if (lanes == 1) {
    if (mask) {
      masked_store(e, n->arg[0], lanes, v, p, size, mask);
    } else {
      LLVMValueRef made = e->ll->BuildStore(e->b, v, p);
      e->ll->SetAlignment(made, size);
      say_apart(e, n->arg[0], made);
    }
    return;
  }
  LLVMTypeRef types[] = {e->ll->TypeOf(v), e->ll->TypeOf(p)};
  LLVMTypeRef bits = e->ll->VectorType(e->type[PESTLE_I1], lanes);
  LLVMValueRef args[] = {v, p, pestle_llvm_i32(e, size),
                         mask ? mask : e->ll->ConstAllOnes(bits)};
  pestle_llvm_intrinsic(e, "llvm.masked.scatter", types, 2, args, 4);
}

// --- Dispatch ---

void pestle_llvm_emit_memory(pestle_llvm_emit_t* e, uint32_t id) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  if (n->op == PESTLE_KIR_LOAD) load(e, id);
  if (n->op == PESTLE_KIR_LOAD_WORDS) load_words(e, id);
  if (n->op == PESTLE_KIR_STORE) store(e, id);
  if (n->op == PESTLE_KIR_GATHER) gather(e, id);
  if (n->op == PESTLE_KIR_SCATTER) scatter(e, id);
  if (n->op == PESTLE_KIR_PREFETCH) {
    // To read or to write, into all caches or all but the first, data; anywhere.
    const pestle_kir_buffer_t* u = pestle_kir_buffer(e->k, n->arg[0]);
    LLVMTypeRef type = pestle_llvm_memory_type(e, (pestle_dtype_t)u->dtype, 1);
    LLVMValueRef at = pestle_llvm_get(e, n->arg[1]);
    bool writes = !(u->flags & PESTLE_KIR_READONLY);
    LLVMValueRef args[] = {
        e->ll->BuildGEP2(e->b, type, e->base[n->arg[0]], &at, 1, ""),
        pestle_llvm_i32(e, writes),
        pestle_llvm_i32(e, n->arg[2] == PESTLE_KIR_PREFETCH_FAR ? 2 : 3),
        pestle_llvm_i32(e, 1)};
    pestle_llvm_intrinsic(e, "llvm.prefetch", &e->ptr, 1, args, 4);
  }
}
