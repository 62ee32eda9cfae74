// SPDX-License-Identifier: Apache-2.0
// The walk: the module's functions, regions, loops, ifs.
#include <string.h>

#include "plugins/llvm/emit.h"

enum { MAX_EMITTED = 1 << 20 };

static pestle_status_t region(pestle_llvm_emit_t* e, uint32_t pc, uint32_t end);

static pestle_status_t no_memory(const pestle_llvm_emit_t* e) {
  return PESTLE_PLUGIN_ERROR(e->host, OUT_OF_MEMORY,
                             "no memory to emit a kernel");
}

static const char* label(const pestle_llvm_emit_t* e, uint32_t id) {
  return pestle_kir_string(e->k, pestle_llvm_inst(e, id)->name);
}

// --- Slots of private buffers over control flow ---

typedef struct slots_t {
  uint32_t buffer;
  uint64_t count;
  LLVMValueRef *before, *other;
} slots_t;

typedef struct changes_t {
  slots_t* of;
  uint32_t count;
} changes_t;

// The private buffers that are stored between |pc| and |end| and live on after
// it, with a copy of their slots.
static pestle_status_t changes(pestle_llvm_emit_t* e, uint32_t pc, uint32_t end,
                               changes_t* out) {
  uint32_t buffers = e->k->buffer_count;
  *out = (changes_t){0};
  uint8_t* state = pestle_plugin_arena_alloc(&e->arena, buffers + 1u, 1);
  out->of = pestle_plugin_arena_alloc(&e->arena, buffers + 1u, sizeof *out->of);
  if (!state || !out->of) return no_memory(e);
  for (uint32_t i = pc; i < end; ++i) {
    const pestle_kir_inst_t* n = pestle_llvm_inst(e, i);
    if (n->op == PESTLE_KIR_ALLOC) state[n->arg[0]] |= 2;
    if (n->op == PESTLE_KIR_STORE) state[n->arg[0]] |= 1;
  }
  for (uint32_t i = 0; i < buffers; ++i) {
    if (state[i] != 1 || !e->slot[i]) continue;
    slots_t* s = &out->of[out->count++];
    s->buffer = i;
    s->count = pestle_kir_buffer(e->k, i)->count;
    s->before =
        pestle_plugin_arena_alloc(&e->arena, s->count, sizeof s->before);
    s->other = pestle_plugin_arena_alloc(&e->arena, s->count, sizeof s->other);
    if (!s->before || !s->other) return no_memory(e);
    memcpy(s->before, e->slot[i], s->count * sizeof *s->before);
  }
  return NULL;
}

static void add_incoming(pestle_llvm_emit_t* e, LLVMValueRef phi,
                         LLVMValueRef a, LLVMBasicBlockRef from_a,
                         LLVMValueRef b, LLVMBasicBlockRef from_b) {
  LLVMValueRef values[] = {a, b};
  LLVMBasicBlockRef blocks[] = {from_a, from_b};
  e->ll->AddIncoming(phi, values, blocks, 2);
}

// --- Loops ---

typedef struct loop_t {
  uint32_t pc, end;
  LLVMValueRef lo, hi;
  int64_t step;
  bool runs;  // at least once, as emission knows
  LLVMBasicBlockRef before, latch, exit;
} loop_t;

// Behind the loop a slot is what the last iteration left, or what it was when
// there was none.
static void close_slots(pestle_llvm_emit_t* e, const loop_t* loop,
                        const changes_t* changed) {
  for (uint32_t c = 0; c < changed->count; ++c) {
    const slots_t* s = &changed->of[c];
    for (uint64_t i = 0; i < s->count; ++i) {
      LLVMValueRef* slot = &e->slot[s->buffer][i];
      add_incoming(e, s->other[i], s->before[i], loop->before, *slot,
                   loop->latch);
      if (loop->runs) continue;
      LLVMValueRef join = e->ll->BuildPhi(e->b, e->ll->TypeOf(*slot), "");
      add_incoming(e, join, s->before[i], loop->before, *slot, loop->latch);
      *slot = join;
    }
  }
}

static pestle_status_t run_loop(pestle_llvm_emit_t* e, loop_t* loop) {
  const pestle_llvm_api_t* ll = e->ll;
  changes_t changed;
  PESTLE_TRY(changes(e, loop->pc, loop->end, &changed));
  loop->before = ll->GetInsertBlock(e->b);
  LLVMBasicBlockRef body =
      ll->AppendBasicBlockInContext(e->context, e->body, label(e, loop->pc));
  loop->exit = ll->AppendBasicBlockInContext(e->context, e->body, "");
  if (loop->runs) {
    ll->BuildBr(e->b, body);
  } else {
    LLVMValueRef any = ll->BuildICmp(e->b, LLVMIntSLT, loop->lo, loop->hi, "");
    ll->BuildCondBr(e->b, any, body, loop->exit);
  }
  ll->PositionBuilderAtEnd(e->b, body);
  LLVMValueRef at = ll->BuildPhi(e->b, e->i64, label(e, loop->pc));
  for (uint32_t c = 0; c < changed.count; ++c) {
    slots_t* s = &changed.of[c];
    for (uint64_t i = 0; i < s->count; ++i) {
      s->other[i] = ll->BuildPhi(e->b, ll->TypeOf(s->before[i]), "");
      e->slot[s->buffer][i] = s->other[i];
    }
  }
  // Quick code generation has no such pass.
  bool hides = !e->is_quick;
  bool is_outer = hides && pestle_llvm_has_loop(e, loop->pc + 1, loop->end);
  LLVMValueRef index = is_outer ? pestle_llvm_hide(e, at, false) : at;
  pestle_llvm_set_index(e, loop->pc, index, 0);
  if (hides && !is_outer &&
      pestle_llvm_has_many_accesses(e, loop->pc + 1, loop->end))
    e->opaque = at;
  PESTLE_TRY(region(e, loop->pc + 1, loop->end));
  loop->latch = ll->GetInsertBlock(e->b);
  LLVMValueRef next =
      ll->BuildNSWAdd(e->b, at, pestle_llvm_i64(e, loop->step), "");
  LLVMValueRef more = ll->BuildICmp(e->b, LLVMIntSLT, next, loop->hi, "");
  ll->BuildCondBr(e->b, more, body, loop->exit);
  add_incoming(e, at, loop->lo, loop->before, next, loop->latch);
  ll->PositionBuilderAtEnd(e->b, loop->exit);
  close_slots(e, loop, &changed);
  return NULL;
}

static pestle_status_t unrolled(pestle_llvm_emit_t* e, uint32_t pc,
                                uint32_t end, int64_t lo, int64_t hi,
                                int64_t step) {
  for (int64_t i = lo; i < hi; i += step) {
    pestle_llvm_set_index(e, pc, NULL, i);
    PESTLE_TRY(region(e, pc + 1, end));
    if (i > INT64_MAX - step) break;
  }
  return NULL;
}

static pestle_status_t emit_for(pestle_llvm_emit_t* e, uint32_t pc) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, pc);
  uint32_t end = e->region_end[pc];
  if (n->arg[3] == PESTLE_KIR_GROUP_X) {
    loop_t loop = {
        .pc = pc, .end = end, .lo = e->begin, .hi = e->end, .step = 1};
    return run_loop(e, &loop);
  }
  if (n->arg[3] > PESTLE_KIR_UNROLL) {
    return PESTLE_PLUGIN_ERROR(
        e->host, UNSUPPORTED, "a CPU kernel has no axis of kind %u", n->arg[3]);
  }
  int64_t lo = 0, hi = 0, step = (int32_t)n->arg[2];
  bool known = pestle_llvm_known(e, n->arg[0], &lo);
  known = pestle_llvm_known(e, n->arg[1], &hi) && known;
  if (step <= 0 || (n->arg[3] == PESTLE_KIR_UNROLL && !known)) {
    return PESTLE_PLUGIN_ERROR(
        e->host, MALFORMED, "loop %u has step %lld or unrolls without bounds",
        pc, (long long)step);
  }
  // One iteration or none needs no loop.
  bool once = known && (hi <= lo || hi - lo <= step);
  if (n->arg[3] == PESTLE_KIR_UNROLL || once) {
    return unrolled(e, pc, end, lo, hi, step);
  }
  loop_t loop = {.pc = pc, .end = end, .step = step, .runs = known};
  loop.lo = pestle_llvm_get(e, n->arg[0]);
  loop.hi = pestle_llvm_get(e, n->arg[1]);
  bool opened;
  PESTLE_TRY(pestle_llvm_open_table(e, pc + 1, end, &opened));
  pestle_status_t status = run_loop(e, &loop);
  if (opened) e->table = NULL;
  return status;
}

// --- Ifs ---

// Takes the slots that this side left and restores those from before.
static void swap_side(pestle_llvm_emit_t* e, const changes_t* changed) {
  for (uint32_t c = 0; c < changed->count; ++c) {
    const slots_t* s = &changed->of[c];
    size_t size = s->count * sizeof *s->before;
    memcpy(s->other, e->slot[s->buffer], size);
    memcpy(e->slot[s->buffer], s->before, size);
  }
}

static void merge_sides(pestle_llvm_emit_t* e, const changes_t* changed,
                        LLVMBasicBlockRef then_end,
                        LLVMBasicBlockRef else_end) {
  for (uint32_t c = 0; c < changed->count; ++c) {
    const slots_t* s = &changed->of[c];
    for (uint64_t i = 0; i < s->count; ++i) {
      LLVMValueRef* slot = &e->slot[s->buffer][i];
      if (s->other[i] == *slot) continue;
      LLVMValueRef phi = e->ll->BuildPhi(e->b, e->ll->TypeOf(*slot), "");
      add_incoming(e, phi, s->other[i], then_end, *slot, else_end);
      *slot = phi;
    }
  }
}

static pestle_status_t emit_if(pestle_llvm_emit_t* e, uint32_t pc) {
  const pestle_llvm_api_t* ll = e->ll;
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, pc);
  uint32_t end = e->region_end[pc], split = e->region_else[pc];
  int64_t known;
  if (pestle_llvm_known(e, n->arg[0], &known)) {
    if (known) return region(e, pc + 1, split);
    return split < end ? region(e, split + 1, end) : NULL;
  }
  LLVMValueRef condition = pestle_llvm_get(e, n->arg[0]);
  changes_t changed;
  PESTLE_TRY(changes(e, pc, end, &changed));
  LLVMBasicBlockRef join =
      ll->AppendBasicBlockInContext(e->context, e->body, "");
  LLVMBasicBlockRef yes =
      ll->InsertBasicBlockInContext(e->context, join, "then");
  LLVMBasicBlockRef from = ll->GetInsertBlock(e->b), no = join;
  if (split < end) {
    no = ll->InsertBasicBlockInContext(e->context, join, "else");
  }
  ll->BuildCondBr(e->b, condition, yes, no);
  ll->PositionBuilderAtEnd(e->b, yes);
  PESTLE_TRY(region(e, pc + 1, split));
  LLVMBasicBlockRef then_end = ll->GetInsertBlock(e->b);
  ll->BuildBr(e->b, join);
  swap_side(e, &changed);
  LLVMBasicBlockRef else_end = from;
  if (split < end) {
    ll->PositionBuilderAtEnd(e->b, no);
    PESTLE_TRY(region(e, split + 1, end));
    else_end = ll->GetInsertBlock(e->b);
    ll->BuildBr(e->b, join);
  }
  ll->PositionBuilderAtEnd(e->b, join);
  merge_sides(e, &changed, then_end, else_end);
  return NULL;
}

// --- Single instructions ---

static LLVMValueRef constant(pestle_llvm_emit_t* e,
                             const pestle_kir_inst_t* n) {
  pestle_dtype_t dtype = (pestle_dtype_t)n->type;
  if (pestle_dtype_is(dtype, PESTLE_KIND_FLOAT)) {
    LLVMValueRef entry = pestle_llvm_from_table(e, n);
    if (entry) return entry;
    return pestle_llvm_float(e, dtype, n->lanes, pestle_kir_const_float(n));
  }
  int64_t value = pestle_kir_const_int(n);
  if (dtype == PESTLE_I1) value &= 1;
  if (pestle_dtype_is_sub_byte(dtype)) {
    // Extended as |dtype| says; the type cuts a sign's copies off.
    value = (int8_t)pestle_dtype_extend(dtype, (uint8_t)value);
  }
  return pestle_llvm_int(e, e->type[dtype], n->lanes, value);
}

static LLVMValueRef parameter(pestle_llvm_emit_t* e,
                              const pestle_kir_inst_t* n) {
  const pestle_llvm_api_t* ll = e->ll;
  pestle_dtype_t dtype = (pestle_dtype_t)n->type;
  LLVMValueRef at = pestle_llvm_i64(e, n->arg[0]);
  LLVMValueRef p = ll->BuildGEP2(e->b, e->i64, e->params, &at, 1, "");
  LLVMValueRef v = ll->BuildLoad2(e->b, e->i64, p, "");
  ll->SetMetadata(v, e->invariant_kind, e->invariant_node);
  if (!pestle_dtype_is(dtype, PESTLE_KIND_INT | PESTLE_KIND_BOOL)) {
    return pestle_llvm_fail(e, dtype, 1, PESTLE_STATUS_UNSUPPORTED,
                            "a parameter is an integer");
  }
  if (pestle_dtype_info(dtype)->bits == 64) return v;
  v = ll->BuildTrunc(e->b, v, e->type[dtype], "");
  return pestle_llvm_normalise(e, dtype, 1, v);
}

static void emit_cast(pestle_llvm_emit_t* e, uint32_t id) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  pestle_dtype_t from = pestle_llvm_dtype(e, n->arg[0]);
  const pestle_llvm_value_t* value = &e->value[n->arg[0]];
  if (n->type == PESTLE_INDEX && value->index) {
    e->value[id] = *value;
    return;
  }
  LLVMValueRef v = pestle_llvm_get(e, n->arg[0]);
  pestle_llvm_set(e, id,
                  pestle_llvm_emit_cast(e, from, (pestle_dtype_t)n->type,
                                        n->lanes, n->facts, v));
}

static void emit_bitcast(pestle_llvm_emit_t* e, uint32_t id) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  pestle_dtype_t to = (pestle_dtype_t)n->type;
  pestle_dtype_t from = pestle_llvm_dtype(e, n->arg[0]);
  if (pestle_dtype_info(from)->bits != pestle_dtype_info(to)->bits) {
    pestle_llvm_set(e, id,
                    pestle_llvm_fail(e, to, n->lanes, PESTLE_STATUS_MALFORMED,
                                     "a bitcast changes the width"));
    return;
  }
  LLVMValueRef v = e->ll->BuildBitCast(e->b, pestle_llvm_get(e, n->arg[0]),
                                       pestle_llvm_type(e, to, n->lanes), "");
  pestle_llvm_set(e, id, pestle_llvm_normalise(e, to, n->lanes, v));
}

static void emit_alloc(pestle_llvm_emit_t* e, uint32_t buffer) {
  if (!e->slot[buffer]) return;
  const pestle_kir_buffer_t* u = pestle_kir_buffer(e->k, buffer);
  LLVMTypeRef type = pestle_llvm_type(e, (pestle_dtype_t)u->dtype, u->lanes);
  for (uint64_t i = 0; i < u->count; ++i) {
    e->slot[buffer][i] = e->ll->GetPoison(type);
  }
}

// What comes before a return.
static void end_kernel(pestle_llvm_emit_t* e) {
  pestle_llvm_close_matrix(e);
  // Streaming stores are not ordered by what hands the work on.
  if (e->streamed) {
    pestle_llvm_intrinsic(e, "llvm.x86.sse.sfence", NULL, 0, NULL, 0);
  }
}

static void emit_trap(pestle_llvm_emit_t* e, const pestle_kir_inst_t* n) {
  const pestle_llvm_api_t* ll = e->ll;
  LLVMBasicBlockRef trap =
      ll->AppendBasicBlockInContext(e->context, e->body, "trap");
  LLVMBasicBlockRef rest =
      ll->AppendBasicBlockInContext(e->context, e->body, "");
  ll->BuildCondBr(e->b, pestle_llvm_get(e, n->arg[0]), trap, rest);
  ll->PositionBuilderAtEnd(e->b, trap);
  end_kernel(e);
  ll->BuildRet(e->b, pestle_llvm_i32(e, (int32_t)n->arg[1]));
  ll->PositionBuilderAtEnd(e->b, rest);
}

static void instruction(pestle_llvm_emit_t* e, uint32_t id) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  switch (n->op) {
    case PESTLE_KIR_CONST:
      pestle_llvm_set(e, id, constant(e, n));
      return;
    case PESTLE_KIR_PARAM:
      pestle_llvm_set(e, id, parameter(e, n));
      return;
    case PESTLE_KIR_ALLOC:
      emit_alloc(e, n->arg[0]);
      return;
    case PESTLE_KIR_LOAD:
    case PESTLE_KIR_LOAD_WORDS:
    case PESTLE_KIR_STORE:
    case PESTLE_KIR_GATHER:
    case PESTLE_KIR_SCATTER:
    case PESTLE_KIR_PREFETCH:
      pestle_llvm_emit_memory(e, id);
      return;
    case PESTLE_KIR_MADI:
    case PESTLE_KIR_MASK:
    case PESTLE_KIR_IOTA:
    case PESTLE_KIR_SPLAT:
    case PESTLE_KIR_EXTRACT:
    case PESTLE_KIR_INSERT:
    case PESTLE_KIR_REDUCE:
    case PESTLE_KIR_SHUFFLE:
      pestle_llvm_emit_lane(e, id);
      return;
    case PESTLE_KIR_DOT2:
    case PESTLE_KIR_DOT4:
    case PESTLE_KIR_SCALE:
      pestle_llvm_emit_dot(e, id);
      return;
    case PESTLE_KIR_MREG_ZERO:
    case PESTLE_KIR_MREG_LOAD:
    case PESTLE_KIR_MREG_STREAM:
    case PESTLE_KIR_MREG_STORE:
    case PESTLE_KIR_MREG_MMA:
      pestle_llvm_emit_matrix(e, id);
      return;
    case PESTLE_KIR_CAST:
      emit_cast(e, id);
      return;
    case PESTLE_KIR_BITCAST:
      emit_bitcast(e, id);
      return;
    case PESTLE_KIR_TRAP_IF:
      emit_trap(e, n);
      return;
    case PESTLE_KIR_BARRIER:  // a group has one lane
    case PESTLE_KIR_FOR:      // region() takes these
    case PESTLE_KIR_IF:
    case PESTLE_KIR_ELSE:
    case PESTLE_KIR_END:
    default:  // not among what caps.c offers
      return;
#define PESTLE_SCALAR(NAME, ...) case PESTLE_KIR_##NAME:
#include "pestle/scalar.def"
      pestle_llvm_emit_scalar(e, id);
      return;
  }
}

static pestle_status_t region(pestle_llvm_emit_t* e, uint32_t pc,
                              uint32_t end) {
  for (; pc < end; ++pc) {
    uint16_t op = pestle_llvm_inst(e, pc)->op;
    if (++e->emitted > MAX_EMITTED) {
      return PESTLE_PLUGIN_ERROR(
          e->host, RESOURCE_EXHAUSTED,
          "the kernel unrolls to more than %d instructions", MAX_EMITTED);
    }
    if (op == PESTLE_KIR_FOR) {
      PESTLE_TRY(emit_for(e, pc));
      pc = e->region_end[pc];
    } else if (op == PESTLE_KIR_IF) {
      PESTLE_TRY(emit_if(e, pc));
      pc = e->region_end[pc];
    } else {
      instruction(e, pc);
    }
    if (e->status) return e->status;
  }
  return NULL;
}

static pestle_status_t emit_all(pestle_llvm_emit_t* e) {
  PESTLE_TRY(pestle_llvm_analyse(e));
  PESTLE_TRY(pestle_llvm_emit_module(e));
  pestle_llvm_open_matrix(e);
  if (e->status) return e->status;
  PESTLE_TRY(region(e, 0, e->k->inst_count));
  end_kernel(e);
  e->ll->BuildRet(e->b, pestle_llvm_i32(e, 0));
  return NULL;
}

pestle_status_t pestle_llvm_emit(pestle_llvm_emit_t* e) {
  pestle_status_t status = emit_all(e);
  if (e->status && status != e->status) {
    if (status) e->host->status_release(e->host->self, status);
    status = e->status;
  }
  e->status = NULL;
  if (e->b) e->ll->DisposeBuilder(e->b);
  e->b = NULL;
  return status;
}
