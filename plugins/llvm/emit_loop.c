// SPDX-License-Identifier: Apache-2.0
// What stands in a loop, once what is unrolled in it is.
//
// LLVM's loop strength reduction tries many ways to step through a loop's accesses
// of memory, for each loop around them: that takes a third of a kernel's time to compile
// and ends with displacements off one address, as they were. It sees no step in the hidden
// index of a loop around others, whose addresses are made once an iteration anyway, nor
// in a frozen multiple of an innermost one's, which has from so many accesses on (gathers
// have no address to step).
#include "plugins/llvm/emit.h"

enum { MANY_ACCESSES = 16 };

// A bound of a loop that may stand in front of it in code that is not emitted yet.
static bool is_constant(pestle_llvm_emit_t* e, uint32_t id, int64_t* out) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, id);
  if (n->op != PESTLE_KIR_CONST) return pestle_llvm_known(e, id, out);
  *out = pestle_kir_const_int(n);
  return true;
}

// How often the loop at |pc| is emitted as code without a loop; 0: as a loop.
static int64_t count_unrolled(pestle_llvm_emit_t* e, uint32_t pc) {
  const pestle_kir_inst_t* n = pestle_llvm_inst(e, pc);
  int64_t lo, hi, step = (int32_t)n->arg[2];
  if (n->arg[3] == PESTLE_KIR_GROUP_X || step <= 0 ||
      !is_constant(e, n->arg[0], &lo) || !is_constant(e, n->arg[1], &hi)) {
    return 0;
  }
  int64_t trips = hi <= lo ? 1 : (hi - lo - 1) / step + 1;
  return n->arg[3] == PESTLE_KIR_UNROLL || trips == 1 ? trips : 0;
}

bool pestle_llvm_has_loop(pestle_llvm_emit_t* e, uint32_t pc, uint32_t end) {
  for (; pc < end; ++pc) {
    if (pestle_llvm_inst(e, pc)->op == PESTLE_KIR_FOR && !count_unrolled(e, pc))
      return true;
  }
  return false;
}

// Accesses of memory that become of code from |pc| to |end|, or |MANY_ACCESSES|.
static int64_t count_accesses(pestle_llvm_emit_t* e, uint32_t pc,
                              uint32_t end) {
  int64_t count = 0;
  for (; pc < end && count < MANY_ACCESSES; ++pc) {
    const pestle_kir_inst_t* n = pestle_llvm_inst(e, pc);
    if (n->op == PESTLE_KIR_FOR) {
      int64_t inside = count_accesses(e, pc + 1, e->region_end[pc]);
      int64_t times = inside ? count_unrolled(e, pc) : 0;
      if (times >= MANY_ACCESSES) return MANY_ACCESSES;
      count += times * inside;
      pc = e->region_end[pc];
    } else if (n->op == PESTLE_KIR_LOAD || n->op == PESTLE_KIR_STORE) {
      count += pestle_kir_buffer(e->k, n->arg[0])->scope != PESTLE_KIR_PRIVATE;
    }
  }
  return count;
}

bool pestle_llvm_has_many_accesses(pestle_llvm_emit_t* e, uint32_t pc,
                                   uint32_t end) {
  return count_accesses(e, pc, end) >= MANY_ACCESSES;
}
