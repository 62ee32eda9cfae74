// SPDX-License-Identifier: Apache-2.0
// The module around a kernel: types, attributes, the entry that the host calls
// and the body that it calls in turn. The body takes each global buffer as an
// argument of its own, since noalias is said of arguments.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plugins/llvm/emit.h"
#include "plugins/llvm/llvm_version.h"

// --- Types ---

static void make_types(pestle_llvm_emit_t* e) {
  const pestle_llvm_api_t* ll = e->ll;
  LLVMContextRef c = e->context;
  e->i8 = ll->Int8TypeInContext(c);
  e->i32 = ll->Int32TypeInContext(c);
  e->i64 = ll->Int64TypeInContext(c);
  e->f16 = ll->HalfTypeInContext(c);
  e->ptr = ll->PointerTypeInContext(c, 0);
  for (unsigned d = 0; d < PESTLE_DTYPE_COUNT; ++d) {
    unsigned size = pestle_dtype_size((pestle_dtype_t)d);
    if (!(PESTLE_LLVM_ALL_DTYPES & pestle_dtype_bit((pestle_dtype_t)d)))
      size = 1;
    e->type[d] = ll->IntTypeInContext(c, 8 * size);
  }
  e->type[PESTLE_I1] = ll->Int1TypeInContext(c);
  e->type[PESTLE_F32] = ll->FloatTypeInContext(c);
  e->type[PESTLE_F64] = ll->DoubleTypeInContext(c);
}

// --- Metadata ---

static LLVMValueRef node(pestle_llvm_emit_t* e, LLVMMetadataRef* of,
                         size_t count) {
  LLVMMetadataRef made = e->ll->MDNodeInContext2(e->context, of, count);
  return e->ll->MetadataAsValue(e->context, made);
}

static unsigned kind(pestle_llvm_emit_t* e, const char* name) {
  return e->ll->GetMDKindIDInContext(e->context, name, (unsigned)strlen(name));
}

static void make_metadata(pestle_llvm_emit_t* e) {
  e->invariant_kind = kind(e, "invariant.load");
  e->invariant_node = node(e, NULL, 0);
  e->nontemporal_kind = kind(e, "nontemporal");
  LLVMMetadataRef one = e->ll->ValueAsMetadata(pestle_llvm_i32(e, 1));
  e->nontemporal_node = node(e, &one, 1);
  e->scope_kind = kind(e, "alias.scope");
  e->noalias_kind = kind(e, "noalias");
  // What the kernel came from goes with the module.
  const char* note = pestle_kir_string(e->k, e->k->note);
  if (!*note) return;
  LLVMMetadataRef text =
      e->ll->MDStringInContext2(e->context, note, strlen(note));
  e->ll->AddNamedMetadataOperand(e->module, "pestle.note", node(e, &text, 1));
}

// Shared buffers are parts of one scratch, so that no attribute of an argument says
// that they do not overlap: each has an alias scope of its own.
static pestle_status_t make_scopes(pestle_llvm_emit_t* e) {
  uint32_t buffers = e->k->buffer_count;
  LLVMMetadataRef* of =
      pestle_plugin_arena_alloc(&e->arena, (size_t)buffers + 1, sizeof *of);
  LLVMMetadataRef* rest =
      pestle_plugin_arena_alloc(&e->arena, (size_t)buffers + 1, sizeof *rest);
  if (!of || !rest) {
    return PESTLE_PLUGIN_ERROR(e->host, OUT_OF_MEMORY,
                               "no memory for a kernel's alias scopes");
  }
  LLVMMetadataRef domain =
      e->ll->MDStringInContext2(e->context, "shared", strlen("shared"));
  domain = e->ll->MDNodeInContext2(e->context, &domain, 1);
  for (uint32_t i = 0; i < buffers; ++i) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(e->k, i);
    if (u->scope != PESTLE_KIR_SHARED) continue;
    char name[24];
    int size = snprintf(name, sizeof name, "shared.%" PRIu32, i);
    LLVMMetadataRef pair[] = {
        e->ll->MDStringInContext2(e->context, name, (size_t)size), domain};
    of[i] = e->ll->MDNodeInContext2(e->context, pair, 2);
    e->scope[i] = node(e, &of[i], 1);
  }
  for (uint32_t i = 0; i < buffers; ++i) {
    size_t count = 0;
    for (uint32_t j = 0; j < buffers && of[i]; ++j) {
      if (j != i && of[j]) rest[count++] = of[j];
    }
    if (count) e->apart[i] = node(e, rest, count);
  }
  return NULL;
}

// --- Attributes ---

static void enum_attribute(pestle_llvm_emit_t* e, LLVMValueRef f, unsigned at,
                           const char* key, uint64_t value) {
  unsigned id = e->ll->GetEnumAttributeKindForName(key, strlen(key));
  e->ll->AddAttributeAtIndex(f, at,
                             e->ll->CreateEnumAttribute(e->context, id, value));
}

static void text_attribute(pestle_llvm_emit_t* e, LLVMValueRef f,
                           const char* key, const char* value) {
  LLVMAttributeRef made = e->ll->CreateStringAttribute(
      e->context, key, (unsigned)strlen(key), value, (unsigned)strlen(value));
  e->ll->AddAttributeAtIndex(f, (unsigned)LLVMAttributeFunctionIndex, made);
}

// What this LLVM calls the scheduling model |tune|, or the nearest that it has.
static const char* llvm_tune(const char* tune) {
  return strcmp(tune, "znver5") ? tune : PESTLE_LLVM_ZNVER5;
}

// The instruction set is spelled out, so that code never uses more than what
// the artifact says; the CPU's name only chooses the scheduling model.
static void function_attributes(pestle_llvm_emit_t* e, LLVMValueRef f) {
  char features[1024];
  pestle_llvm_feature_string(e->cpu->features, '+', features, sizeof features);
  text_attribute(e, f, "target-cpu", "x86-64");
  text_attribute(e, f, "tune-cpu", llvm_tune(e->cpu->tune));
  text_attribute(e, f, "target-features", features);
  text_attribute(e, f, "prefer-vector-width", "512");
  enum_attribute(e, f, (unsigned)LLVMAttributeFunctionIndex, "nounwind", 0);
}

static void argument_attributes(pestle_llvm_emit_t* e, uint32_t buffer,
                                unsigned at) {
  const pestle_kir_buffer_t* u = pestle_kir_buffer(e->k, buffer);
  if (!e->shares_alias[buffer]) enum_attribute(e, e->body, at, "noalias", 0);
  if (u->flags & PESTLE_KIR_READONLY) {
    enum_attribute(e, e->body, at, "readonly", 0);
  }
  // A power of two, as LLVM wants it.
  uint32_t align = u->align & (~u->align + 1);
  if (align > 1) enum_attribute(e, e->body, at, "align", align);
}

// --- Buffers ---

// Two globals of one set may overlap; a read-only one in it may change.
static void find_aliases(pestle_llvm_emit_t* e) {
  for (uint32_t i = 0; i < e->k->buffer_count; ++i) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(e->k, i);
    for (uint32_t j = 0; j < e->k->buffer_count; ++j) {
      const pestle_kir_buffer_t* v = pestle_kir_buffer(e->k, j);
      if (i == j || u->scope != PESTLE_KIR_GLOBAL || v->scope != u->scope) {
        continue;
      }
      if (u->alias_set == v->alias_set || u->arg_slot == v->arg_slot) {
        e->shares_alias[i] = true;
      }
    }
  }
}

static pestle_status_t make_slots(pestle_llvm_emit_t* e) {
  for (uint32_t i = 0; i < e->k->buffer_count; ++i) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(e->k, i);
    if (u->scope != PESTLE_KIR_PRIVATE) continue;
    e->slot[i] = pestle_plugin_arena_alloc(&e->arena, (size_t)u->count + 1,
                                           sizeof **e->slot);
    if (!e->slot[i]) {
      return PESTLE_PLUGIN_ERROR(e->host, OUT_OF_MEMORY,
                                 "no memory for private buffers");
    }
    LLVMTypeRef type = pestle_llvm_type(e, (pestle_dtype_t)u->dtype, u->lanes);
    for (uint64_t s = 0; s < u->count; ++s) {
      e->slot[i][s] = e->ll->GetPoison(type);
    }
  }
  return NULL;
}

// Shared buffers lie in the thread's scratch in order, 64-byte aligned.
static void place_shared(pestle_llvm_emit_t* e, LLVMValueRef scratch) {
  uint64_t at = 0;
  for (uint32_t i = 0; i < e->k->buffer_count; ++i) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(e->k, i);
    if (u->scope != PESTLE_KIR_SHARED) continue;
    LLVMValueRef offset = pestle_llvm_i64(e, (int64_t)at);
    e->base[i] = e->ll->BuildInBoundsGEP2(e->b, e->i8, scratch, &offset, 1, "");
    at += u->count * pestle_dtype_size((pestle_dtype_t)u->dtype);
    at = (at + 63) & ~UINT64_C(63);
  }
}

// --- Functions ---

enum { ENTRY_ARGS = 6, TRAILING_ARGS = 4 };

// One pointer a buffer in buffer order, then params, begin, end, scratch.
static void call_body(pestle_llvm_emit_t* e, LLVMTypeRef type,
                      LLVMValueRef* args) {
  const pestle_llvm_api_t* ll = e->ll;
  LLVMTypeRef types[ENTRY_ARGS] = {e->ptr, e->ptr, e->ptr,
                                   e->i64, e->i64, e->ptr};
  LLVMTypeRef entry_type = ll->FunctionType(e->i32, types, ENTRY_ARGS, 0);
  LLVMValueRef entry = ll->AddFunction(
      e->module, pestle_kir_string(e->k, e->k->name), entry_type);
  function_attributes(e, entry);
  ll->PositionBuilderAtEnd(
      e->b, ll->AppendBasicBlockInContext(e->context, entry, ""));
  LLVMValueRef pointers = ll->GetParam(entry, 1);
  unsigned count = 0;
  for (uint32_t i = 0; i < e->k->buffer_count; ++i) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(e->k, i);
    if (u->scope != PESTLE_KIR_GLOBAL) continue;
    LLVMValueRef slot = pestle_llvm_i64(e, u->arg_slot);
    LLVMValueRef p =
        ll->BuildInBoundsGEP2(e->b, e->ptr, pointers, &slot, 1, "");
    args[count++] = ll->BuildLoad2(e->b, e->ptr, p, "");
  }
  for (unsigned i = 0; i < TRAILING_ARGS; ++i) {
    args[count++] = ll->GetParam(entry, i + 2);
  }
  LLVMValueRef r = ll->BuildCall2(e->b, type, e->body, args, count, "");
  ll->SetTailCall(r, 1);
  ll->BuildRet(e->b, r);
}

static void open_body(pestle_llvm_emit_t* e) {
  const pestle_llvm_api_t* ll = e->ll;
  ll->PositionBuilderAtEnd(
      e->b, ll->AppendBasicBlockInContext(e->context, e->body, ""));
  unsigned at = 0;
  for (uint32_t i = 0; i < e->k->buffer_count; ++i) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(e->k, i);
    if (u->scope != PESTLE_KIR_GLOBAL) continue;
    const char* name = pestle_kir_string(e->k, u->name);
    e->base[i] = ll->GetParam(e->body, at);
    ll->SetValueName2(e->base[i], name, strlen(name));
    argument_attributes(e, i, ++at);
  }
  e->params = ll->GetParam(e->body, at);
  e->begin = ll->GetParam(e->body, at + 1);
  e->end = ll->GetParam(e->body, at + 2);
  ll->SetValueName2(e->begin, "begin", 5);
  ll->SetValueName2(e->end, "end", 3);
  place_shared(e, ll->GetParam(e->body, at + 3));
}

static pestle_status_t make_functions(pestle_llvm_emit_t* e) {
  size_t most = (size_t)e->k->buffer_count + TRAILING_ARGS;
  LLVMTypeRef* types =
      pestle_plugin_arena_alloc(&e->arena, most, sizeof *types);
  LLVMValueRef* args = pestle_plugin_arena_alloc(&e->arena, most, sizeof *args);
  if (!types || !args) {
    return PESTLE_PLUGIN_ERROR(e->host, OUT_OF_MEMORY,
                               "no memory for a kernel's arguments");
  }
  unsigned count = 0;
  for (uint32_t i = 0; i < e->k->buffer_count; ++i) {
    if (pestle_kir_buffer(e->k, i)->scope == PESTLE_KIR_GLOBAL) {
      types[count++] = e->ptr;
    }
  }
  types[count++] = e->ptr;
  types[count++] = e->i64;
  types[count++] = e->i64;
  types[count++] = e->ptr;
  LLVMTypeRef type = e->ll->FunctionType(e->i32, types, count, 0);
  // Profilers and debuggers show this name: the time is spent here.
  char name[256];
  snprintf(name, sizeof name, "%s.body", pestle_kir_string(e->k, e->k->name));
  e->body = e->ll->AddFunction(e->module, name, type);
  e->ll->SetLinkage(e->body, LLVMInternalLinkage);
  function_attributes(e, e->body);
  call_body(e, type, args);
  open_body(e);
  return NULL;
}

pestle_status_t pestle_llvm_emit_module(pestle_llvm_emit_t* e) {
  const pestle_llvm_api_t* ll = e->ll;
  e->module = ll->ModuleCreateWithNameInContext(
      pestle_kir_string(e->k, e->k->name), e->context);
  e->b = ll->CreateBuilderInContext(e->context);
  size_t buffers = (size_t)e->k->buffer_count + 1;
  e->base = pestle_plugin_arena_alloc(&e->arena, buffers, sizeof *e->base);
  e->slot = pestle_plugin_arena_alloc(&e->arena, buffers, sizeof *e->slot);
  e->shares_alias = pestle_plugin_arena_alloc(&e->arena, buffers, 1);
  e->scope = pestle_plugin_arena_alloc(&e->arena, buffers, sizeof *e->scope);
  e->apart = pestle_plugin_arena_alloc(&e->arena, buffers, sizeof *e->apart);
  if (!e->base || !e->slot || !e->shares_alias || !e->scope || !e->apart) {
    return PESTLE_PLUGIN_ERROR(e->host, OUT_OF_MEMORY,
                               "no memory for a kernel's buffers");
  }
  make_types(e);
  make_metadata(e);
  PESTLE_TRY(make_scopes(e));
  find_aliases(e);
  PESTLE_TRY(make_slots(e));
  return make_functions(e);
}
