// SPDX-License-Identifier: Apache-2.0
// The target's capabilities, as data for legalisation and schedules.
#include <string.h>

#include "plugins/llvm/emit.h"

// Schedules keep shares of the L2 in scratch, and more of what they would otherwise
// read from memory again (codegen/template/winograd/sketch.c).
enum { SCRATCH_BYTES = 8 << 20 };

// The dtypes of the ops that are no scalar rows.
static uint32_t op_dtypes(pestle_kir_op_t op) {
  const uint32_t all = PESTLE_LLVM_ALL_DTYPES;
  const uint32_t index = PESTLE_LLVM_DTYPE(INDEX);
  switch ((unsigned)op) {
    case PESTLE_KIR_CONST:
    case PESTLE_KIR_ALLOC:
    case PESTLE_KIR_LOAD:
    case PESTLE_KIR_STORE:
    case PESTLE_KIR_GATHER:
    case PESTLE_KIR_SCATTER:
    case PESTLE_KIR_PREFETCH:
    case PESTLE_KIR_SPLAT:
    case PESTLE_KIR_EXTRACT:
    case PESTLE_KIR_INSERT:
    case PESTLE_KIR_SHUFFLE:
    case PESTLE_KIR_BITCAST:
      return all;
    case PESTLE_KIR_PARAM:
    case PESTLE_KIR_IOTA:
      return PESTLE_LLVM_INTS;
    case PESTLE_KIR_REDUCE:
      return PESTLE_LLVM_FLOATS | PESTLE_LLVM_BITS;
    case PESTLE_KIR_CAST:
      return pestle_llvm_cast_dtypes();
    case PESTLE_KIR_FOR:
    case PESTLE_KIR_MADI:
      return index;
    case PESTLE_KIR_LOAD_WORDS:
      return PESTLE_LLVM_DTYPE(I32);
    case PESTLE_KIR_MASK:
      return index | PESTLE_LLVM_DTYPE(I1);
    case PESTLE_KIR_IF:
    case PESTLE_KIR_TRAP_IF:
      return PESTLE_LLVM_DTYPE(I1);
    case PESTLE_KIR_ELSE:
    case PESTLE_KIR_END:
    case PESTLE_KIR_BARRIER:
      return all | PESTLE_LLVM_DTYPE(NONE);
    default:  // what lanes of a group do together: here it has one
      return 0;
#define PESTLE_SCALAR(NAME, ...) case PESTLE_KIR_##NAME:
#include "pestle/scalar.def"
      return pestle_llvm_row_dtypes((unsigned)op - PESTLE_KIR_SCALAR_BASE);
  }
  return 0;
}

// Products of 16 x 16 by matrix registers.
static void add_matrix(pestle_target_caps_t* caps) {
  for (unsigned op = PESTLE_KIR_MREG_ZERO; op <= PESTLE_KIR_MREG_STREAM; ++op)
    caps->op_dtypes[op] = PESTLE_LLVM_ALL_DTYPES | PESTLE_LLVM_DTYPE(NONE);
  static const uint8_t bytes[] = {PESTLE_I8, PESTLE_U8};
  pestle_intrinsic_t unit = {.kind = PESTLE_INTRINSIC_MREG,
                             .a = PESTLE_BF16,
                             .b = PESTLE_BF16,
                             .c = PESTLE_F32,
                             .m = 16,
                             .n = 16,
                             .k = 32,
                             .lanes = 1};
  caps->intrinsic[caps->intrinsic_count++] = unit;
  unit.c = PESTLE_I32;
  unit.k = 64;
  for (int i = 0; i < 4; ++i) {
    unit.a = bytes[i & 1];
    unit.b = bytes[i >> 1];
    caps->intrinsic[caps->intrinsic_count++] = unit;
  }
}

void pestle_llvm_caps(const pestle_llvm_cpu_t* cpu,
                      pestle_target_caps_t* out_caps) {
  static const uint16_t ops[] = {
#define PESTLE_KIR(NAME, code, ...) code,
#include "pestle/kir.def"
#define PESTLE_SCALAR(NAME, ...) PESTLE_KIR_##NAME,
#include "pestle/scalar.def"
  };
  bool zmm = pestle_llvm_has_v4(cpu->features);
  pestle_target_caps_t caps = {
      .struct_size = sizeof caps,
      .name = "llvm",
      .device_type = PESTLE_DEVICE_CPU,
      .vector_bytes = zmm ? 64 : 32,
      .vector_registers = zmm ? 32 : 16,
      // A vector of bytes; longer values are several vectors.
      .max_lanes = zmm ? 64 : 32,
      .cores = cpu->cores,
      .l1_bytes = cpu->l1_bytes,
      .l2_bytes = cpu->l2_bytes,
      .l3_bytes = cpu->l3_bytes,
      .scratch_bytes = SCRATCH_BYTES,
      .max_group_lanes = 1,
      .flags = PESTLE_TARGET_FMA,
  };
  pestle_llvm_rates_t rates = pestle_llvm_rates(cpu->tune, caps.vector_bytes);
  caps.fma_rate = rates.fma;
  caps.load_rate = rates.load;
  caps.broadcast_rate = rates.broadcast;
  caps.fma_cycles = rates.fma_cycles;
  caps.l2_rate = rates.l2;
  caps.l3_rate = rates.l3;
  caps.memory_rate = rates.memory;
  strncpy(caps.cpu, cpu->name, sizeof caps.cpu - 1);
  pestle_llvm_feature_string(cpu->features, '+', caps.features,
                             sizeof caps.features);
  for (size_t i = 0; i < sizeof ops / sizeof *ops; ++i) {
    caps.op_dtypes[ops[i]] = op_dtypes((pestle_kir_op_t)ops[i]);
  }
  const uint64_t bytes = PESTLE_LLVM_BIT(AVX512VNNI) | PESTLE_LLVM_BIT(AVXVNNI);
  caps.op_dtypes[PESTLE_KIR_DOT4] = PESTLE_LLVM_DTYPE(I32);
  // Small bytes are meant (docs/kernel-ir.md).
  if (!(cpu->features & bytes))
    caps.op_dtypes[PESTLE_KIR_DOT4] |= PESTLE_LLVM_DTYPE(I8);
  if (zmm) caps.op_dtypes[PESTLE_KIR_SCALE] = PESTLE_LLVM_DTYPE(F32);
  if (cpu->features & PESTLE_LLVM_BIT(AVX512BF16)) {
    caps.op_dtypes[PESTLE_KIR_DOT2] = PESTLE_LLVM_DTYPE(F32);
  }
  if (pestle_llvm_has_matrix(cpu->features)) add_matrix(&caps);
  // The host may know a shorter table.
  size_t size = out_caps->struct_size;
  if (size == 0 || size > sizeof caps) size = sizeof caps;
  memcpy(out_caps, &caps, size);
  out_caps->struct_size = size;
}
