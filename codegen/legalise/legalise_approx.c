// SPDX-License-Identifier: Apache-2.0
// Functions by a target's own approximations (PESTLE_KIR_APPROX), where what they
// are off by is lost in a rounding to f16 or bf16.
//
// What is read of each f32 value is followed forward: through sums and products,
// through registers and shared memory of the kernel, to the casts that round it.
// A value starts as what may be anything and loses that where something else
// reads it, until nothing changes.
#include "codegen/legalise/legalise_approx.h"

#include "codegen/legalise/vector_math_internal.h"

enum { MOST_ROUNDS = 16 };

// --- What reads a value ---

typedef struct flow_t {
  pestle_rewrite_t* r;
  uint8_t* buffer;  // of each buffer of the kernel
  bool changed;
} flow_t;

static void lower(flow_t* f, uint8_t* level, unsigned to) {
  if (*level <= to) return;
  *level = (uint8_t)to;
  f->changed = true;
}

// Ops of which a few ulp of an operand are a few ulp of the result, or, where
// sums cancel, of what their own rounding is off by.
static bool passes_on(unsigned op) {
  static const pestle_op_t rows[] = {
      PESTLE_OP_ADD,     PESTLE_OP_SUBTRACT, PESTLE_OP_MULTIPLY,
      PESTLE_OP_FMA,     PESTLE_OP_NEGATE,   PESTLE_OP_ABS,
      PESTLE_OP_DIVIDE,  PESTLE_OP_SELECT,   PESTLE_OP_MAXIMUM,
      PESTLE_OP_MINIMUM,
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    if (op == pestle_kir_code(rows[i])) return true;
  }
  return op == PESTLE_KIR_SPLAT || op == PESTLE_KIR_EXTRACT ||
         op == PESTLE_KIR_INSERT || op == PESTLE_KIR_SHUFFLE ||
         op == PESTLE_KIR_REDUCE || op == PESTLE_KIR_SG_REDUCE;
}

// How far from right an operand of |inst|, number |id|, may be.
static unsigned allowed(const flow_t* f, uint32_t id,
                        const pestle_kir_inst_t* inst) {
  if (inst->op == PESTLE_KIR_CAST) {
    if (inst->type == PESTLE_BF16) return PESTLE_APPROX_BF16;
    return inst->type == PESTLE_F16 ? PESTLE_APPROX_FEW_ULP
                                    : PESTLE_APPROX_NEVER;
  }
  unsigned level = PESTLE_APPROX_NEVER;
  if (inst->op == PESTLE_KIR_STORE) {
    level = f->buffer[inst->arg[0]];
  } else if (passes_on(inst->op) && inst->type == PESTLE_F32) {
    level = f->r->approx.data[id];
  }
  return level < PESTLE_APPROX_FEW_ULP ? level : PESTLE_APPROX_FEW_ULP;
}

static void visit(flow_t* f, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(f->r->from, id);
  const char* letters = pestle_kir_info(inst->op).operands;
  unsigned level = allowed(f, id, inst);
  for (int a = 0; letters[a]; ++a) {
    uint32_t arg = inst->arg[a];
    if (letters[a] == 'b') {
      bool plain = inst->op == PESTLE_KIR_STORE || inst->op == PESTLE_KIR_ALLOC;
      if (inst->op == PESTLE_KIR_LOAD) {
        lower(f, &f->buffer[arg], f->r->approx.data[id]);
      } else if (!plain) {
        lower(f, &f->buffer[arg], PESTLE_APPROX_NEVER);
      }
    } else if (pestle_kir_is_value(letters[a]) &&
               arg < f->r->from->inst_count) {
      lower(f, &f->r->approx.data[arg], level);
    }
  }
}

static void follow(pestle_rewrite_t* r) {
  const pestle_kir_t* k = r->from;
  PESTLE_VEC(uint8_t) buffer;
  pestle_vec_init(&buffer, r->map.allocator);
  if (!pestle_vec_resize(&r->approx, k->inst_count) ||
      !pestle_vec_resize(&buffer, k->buffer_count + 1)) {
    r->to->failed = true;
    pestle_vec_deinit(&buffer);
    return;
  }
  bool all = r->numerics == PESTLE_NUMERICS_FAST;
  for (uint32_t i = 0; i < k->inst_count; ++i) {
    bool f32 = pestle_kir_inst(k, i)->type == PESTLE_F32;
    r->approx.data[i] = f32 ? PESTLE_APPROX_BF16 : PESTLE_APPROX_NEVER;
  }
  for (uint32_t b = 0; b < k->buffer_count; ++b) {
    unsigned scope = pestle_kir_buffer(k, b)->scope;
    bool own = scope == PESTLE_KIR_PRIVATE || scope == PESTLE_KIR_SHARED;
    buffer.data[b] = own ? PESTLE_APPROX_BF16 : PESTLE_APPROX_NEVER;
  }
  flow_t f = {r, buffer.data, !all};
  for (int round = 0; f.changed; ++round) {
    f.changed = false;
    for (uint32_t i = k->inst_count; i-- > 0;)
      visit(&f, i);
    if (round < MOST_ROUNDS) continue;
    memset(r->approx.data, PESTLE_APPROX_NEVER, k->inst_count);
    break;
  }
  pestle_vec_deinit(&buffer);
}

pestle_approx_t pestle_approx_of(pestle_rewrite_t* r, pestle_kir_id_t id) {
  if (!(r->caps->flags & PESTLE_TARGET_APPROX) ||
      r->numerics == PESTLE_NUMERICS_STRICT) {
    return PESTLE_APPROX_NEVER;
  }
  if (!r->approx.size) follow(r);
  if (r->to->failed) return PESTLE_APPROX_NEVER;
  bool said = pestle_kir_inst(r->from, id)->facts & PESTLE_KIR_APPROX;
  unsigned level = r->approx.data[id];
  return said && !level ? PESTLE_APPROX_FEW_ULP : (pestle_approx_t)level;
}

bool pestle_approx_is_row(const pestle_rewrite_t* r,
                          const pestle_kir_inst_t* inst) {
  return (inst->facts & PESTLE_KIR_APPROX) && inst->type == PESTLE_F32 &&
         (r->caps->flags & PESTLE_TARGET_APPROX) &&
         (inst->op == pestle_kir_code(PESTLE_OP_EXP2) ||
          inst->op == pestle_kir_code(PESTLE_OP_TANH) ||
          inst->op == pestle_kir_code(PESTLE_OP_DIVIDE));
}

// --- The functions ---

bool pestle_approx_has(const pestle_rewrite_t* r, pestle_op_t op,
                       pestle_approx_t how) {
  if (!(r->caps->flags & PESTLE_TARGET_APPROX) || how < PESTLE_APPROX_FEW_ULP) {
    return false;
  }
  return op == PESTLE_OP_EXP || op == PESTLE_OP_EXP2 ||
         op == PESTLE_OP_LOGISTIC || op == PESTLE_OP_TANH ||
         op == PESTLE_OP_ERFC;
}

bool pestle_approx_expand(pestle_rewrite_t* r, pestle_op_t op,
                          pestle_approx_t how, pestle_kir_id_t a,
                          pestle_kir_id_t* out_id) {
  if (!pestle_approx_has(r, op, how)) return false;
  vm_t v = {r->to, PESTLE_F32, pestle_kir_lanes_of(r->to, a), false};
  uint8_t facts = r->to->facts;
  r->to->facts = 0;
  switch ((unsigned)op) {
    case PESTLE_OP_EXP:
      *out_id = pestle_vm_approx_exp(v, a);
      break;
    case PESTLE_OP_EXP2:
      *out_id = vm_approx1(v, PESTLE_OP_EXP2, a);
      break;
    case PESTLE_OP_LOGISTIC:
      *out_id = pestle_vm_approx_logistic(v, a);
      break;
    case PESTLE_OP_ERFC:
      *out_id = pestle_vm_approx_erfc(v, a);
      break;
    default:
      *out_id = how == PESTLE_APPROX_BF16 ? vm_approx1(v, PESTLE_OP_TANH, a)
                                          : pestle_vm_approx_tanh(v, a);
      break;
  }
  r->to->facts = facts;
  return true;
}
