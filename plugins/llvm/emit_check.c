// SPDX-License-Identifier: Apache-2.0
// One look over the kernel before emission: what must hold for the walk to be
// safe, where regions end, and which multiplies become part of an fma. The
// host's verifier has proved far more; this keeps a damaged kernel from being
// undefined behaviour.
#include "plugins/llvm/emit.h"

#define FAIL(e, code, ...) PESTLE_PLUGIN_ERROR((e)->host, code, __VA_ARGS__)

enum { MAX_DEPTH = 256, MAX_SLOTS = 4096 };

typedef struct region_t {
  uint32_t begin;  // the FOR or IF
  uint32_t scope;  // a number of its own for each side of an IF
} region_t;

// The scope and the number of uses of each instruction, while analysing.
typedef struct scan_t {
  uint32_t* scope;
  uint32_t* uses;
  region_t stack[MAX_DEPTH];
  uint32_t depth, scopes;
} scan_t;

static pestle_status_t check_header(const pestle_llvm_emit_t* e) {
  const pestle_kir_t* k = e->k;
  // Of an older host's kernels the struct ends before |cluster|.
  if (k->struct_size < offsetof(pestle_kir_t, cluster) ||
      k->abi_major != PESTLE_KIR_ABI_MAJOR ||
      k->inst_size < sizeof(pestle_kir_inst_t) ||
      k->buffer_size < sizeof(pestle_kir_buffer_t)) {
    return FAIL(e, INCOMPATIBLE, "the kernel is of kernel IR %u, not %u",
                k->abi_major, PESTLE_KIR_ABI_MAJOR);
  }
  if (k->group[1] > 1 || k->group[2] > 1 || k->lane[0] > 1 || k->lane[1] > 1 ||
      k->lane[2] > 1 || pestle_kir_cluster(k) > 1) {
    return FAIL(e, UNSUPPORTED,
                "a CPU kernel has one group loop, group.x, and no lane loop");
  }
  return NULL;
}

static pestle_status_t check_buffers(const pestle_llvm_emit_t* e) {
  const pestle_kir_t* k = e->k;
  for (uint32_t i = 0; i < k->buffer_count; ++i) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(k, i);
    const char* name = pestle_kir_string(k, u->name);
    bool known =
        u->dtype < PESTLE_DTYPE_COUNT &&
        (PESTLE_LLVM_ALL_DTYPES & pestle_dtype_bit((pestle_dtype_t)u->dtype));
    if (!known) {
      return FAIL(e, UNSUPPORTED, "buffer '%s' is of %s, which llvm lacks",
                  name, pestle_dtype_info((pestle_dtype_t)u->dtype)->name);
    }
    if (u->scope > PESTLE_KIR_PRIVATE || u->layout ||
        (u->scope == PESTLE_KIR_GLOBAL && u->arg_slot >= k->arg_count)) {
      return FAIL(e, MALFORMED, "buffer '%s' has scope %u, layout %u, slot %u",
                  name, u->scope, u->layout, u->arg_slot);
    }
    if (u->scope == PESTLE_KIR_PRIVATE && (u->count > MAX_SLOTS || !u->lanes ||
                                           u->lanes > PESTLE_KIR_MAX_LANES)) {
      return FAIL(e, UNSUPPORTED,
                  "private buffer '%s' has %llu elements of %u lanes", name,
                  (unsigned long long)u->count, u->lanes);
    }
  }
  return NULL;
}

static bool operands_in_range(const pestle_llvm_emit_t* e, scan_t* s,
                              uint32_t id, const char* operands) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  for (unsigned a = 0; operands[a]; ++a) {
    uint32_t arg = n->arg[a];
    if (operands[a] == 'b' && arg >= e->k->buffer_count) return false;
    if (operands[a] == 'o' && arg == PESTLE_KIR_NONE) continue;
    if (operands[a] == 'v' || operands[a] == 'o') {
      if (arg >= id) return false;
      ++s->uses[arg];
    }
  }
  return true;
}

// Opens, splits and closes regions around instruction |id|.
static bool track_region(pestle_llvm_emit_t* e, scan_t* s, uint32_t id,
                         char klass) {
  uint32_t depth = s->depth;
  if (klass == 'B') {
    if (depth + 1 >= MAX_DEPTH) return false;
    s->stack[s->depth++] = (region_t){id, ++s->scopes};
    return true;
  }
  if (klass != 'L' && klass != 'E') return true;
  if (depth == 0) return false;
  region_t* top = &s->stack[depth - 1];
  if (klass == 'L') {
    if (pestle_llvm_inst(e, top->begin)->op != PESTLE_KIR_IF) return false;
    if (e->region_else[top->begin]) return false;
    e->region_else[top->begin] = id;
    top->scope = ++s->scopes;
    return true;
  }
  e->region_end[top->begin] = id;
  if (!e->region_else[top->begin]) e->region_else[top->begin] = id;
  --s->depth;
  return true;
}

static pestle_status_t scan(pestle_llvm_emit_t* e, scan_t* s) {
  for (uint32_t id = 0; id < e->k->inst_count; ++id) {
    const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
    pestle_kir_op_info_t info = pestle_kir_op_info(n->op);
    if (!info.mnemonic) {
      return FAIL(e, UNSUPPORTED,
                  "instruction %u has op %u, newer than this plugin", id,
                  n->op);
    }
    bool typed =
        n->type < PESTLE_DTYPE_COUNT &&
        (n->type == PESTLE_NONE ||
         (PESTLE_LLVM_ALL_DTYPES & pestle_dtype_bit((pestle_dtype_t)n->type)));
    if (!typed || n->lanes > PESTLE_KIR_MAX_LANES ||
        (n->type != PESTLE_NONE && !n->lanes)) {
      return FAIL(e, UNSUPPORTED, "%s at %u is of %s x %u", info.mnemonic, id,
                  pestle_dtype_info((pestle_dtype_t)n->type)->name, n->lanes);
    }
    s->scope[id] = s->depth ? s->stack[s->depth - 1].scope : 0;
    if (!operands_in_range(e, s, id, info.operands) ||
        !track_region(e, s, id, info.klass)) {
      return FAIL(e, MALFORMED, "%s at %u breaks the kernel's structure",
                  info.mnemonic, id);
    }
  }
  if (s->depth) return FAIL(e, MALFORMED, "a region is not closed");
  return NULL;
}

// A multiply that one addition of its own scope takes, both free to contract,
// is emitted as part of an fma: decided here and not by LLVM, so that every
// version and every target CPU rounds alike.
static void contract(pestle_llvm_emit_t* e, const scan_t* s, uint32_t id) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  if (n->op != PESTLE_KIR_ADD && n->op != PESTLE_KIR_SUBTRACT) return;
  if (!(n->facts & PESTLE_KIR_CONTRACT)) return;
  if (!(PESTLE_LLVM_FLOATS >> n->type & 1)) return;
  for (unsigned a = 0; a < 2; ++a) {
    uint32_t factor = n->arg[a];
    const pestle_kir_inst_t* m = pestle_llvm_inst(e, factor);
    if (m->op == PESTLE_KIR_MULTIPLY && (m->facts & PESTLE_KIR_CONTRACT) &&
        s->uses[factor] == 1 && s->scope[factor] == s->scope[id]) {
      e->contracted[factor] = 1;
      e->contracted[id] = (uint8_t)(a + 1);
      return;
    }
  }
}

pestle_status_t pestle_llvm_analyse(pestle_llvm_emit_t* e) {
  PESTLE_TRY(check_header(e));
  PESTLE_TRY(check_buffers(e));
  size_t count = (size_t)e->k->inst_count + 1;
  scan_t s = {0};
  e->region_end = pestle_plugin_arena_alloc(&e->arena, count, 4);
  e->region_else = pestle_plugin_arena_alloc(&e->arena, count, 4);
  e->contracted = pestle_plugin_arena_alloc(&e->arena, count, 1);
  e->value = pestle_plugin_arena_alloc(&e->arena, count, sizeof *e->value);
  s.scope = pestle_plugin_arena_alloc(&e->arena, count, 4);
  s.uses = pestle_plugin_arena_alloc(&e->arena, count, 4);
  if (!e->region_end || !e->region_else || !e->contracted || !e->value ||
      !s.scope || !s.uses) {
    return FAIL(e, OUT_OF_MEMORY, "no memory to look over a kernel of %u",
                e->k->inst_count);
  }
  PESTLE_TRY(scan(e, &s));
  for (uint32_t id = 0; id < e->k->inst_count; ++id)
    contract(e, &s, id);
  return NULL;
}
