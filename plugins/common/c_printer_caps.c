// SPDX-License-Identifier: Apache-2.0
// The capabilities of the printer, as data for legalisation. Legalisation also
// gets the rows that no language has exactly: the transcendental ones, unless
// the dialect says otherwise.
#include "plugins/common/c_printer_internal.h"

#define BIT(d) (UINT32_C(1) << PESTLE_##d)

static uint32_t kinds(unsigned kind) {
  uint32_t bits = 0;
  for (unsigned d = 1; d < PESTLE_DTYPE_COUNT; ++d) {
    if (pestle_dtype_is((pestle_dtype_t)d, kind))
      bits |= pestle_dtype_bit((pestle_dtype_t)d);
  }
  return bits;
}

// Dtypes that a value may have.
static uint32_t values(const pestle_c_printer_target_t* t) {
  uint32_t all = kinds(PESTLE_KIND_BOOL | PESTLE_KIND_REAL);
  // Without them integers are pairs of words, if the dialect has those, and the
  // bits of an f64 too.
  bool int64 = t->features & PESTLE_C_PRINTER_HAS_INT64;
  bool f64 = t->features & PESTLE_C_PRINTER_HAS_F64;
  if (!int64 && !t->dialect->pair) all &= ~(BIT(I64) | BIT(U64));
  if (!f64 || (!int64 && !t->dialect->pair_bits)) all &= ~BIT(F64);
  return all;
}

static uint32_t storage(const pestle_c_printer_target_t* t) {
  uint32_t all = values(t) & ~BIT(INDEX), small = 0;
  for (unsigned d = 1; d < PESTLE_DTYPE_COUNT; ++d) {
    unsigned size = pestle_dtype_size((pestle_dtype_t)d);
    unsigned needs = size == 1   ? PESTLE_C_PRINTER_HAS_STORAGE8
                     : size == 2 ? PESTLE_C_PRINTER_HAS_STORAGE16
                                 : 0;
    if (needs && !(t->features & needs))
      small |= pestle_dtype_bit((pestle_dtype_t)d);
  }
  return all & ~small;
}

static uint32_t float_row(const pestle_c_printer_target_t* t, unsigned op) {
  uint32_t floats = BIT(F32) | BIT(F64);
  switch (op) {
    case PESTLE_OP_ADD:
    case PESTLE_OP_SUBTRACT:
    case PESTLE_OP_MULTIPLY:
    case PESTLE_OP_DIVIDE:
    case PESTLE_OP_NEGATE:
    case PESTLE_OP_MAXIMUM:
    case PESTLE_OP_MINIMUM:
    case PESTLE_OP_IS_NAN:
    case PESTLE_OP_SELECT:
    case PESTLE_OP_EQ:
    case PESTLE_OP_NE:
    case PESTLE_OP_LT:
    case PESTLE_OP_LE:
    case PESTLE_OP_GT:
    case PESTLE_OP_GE:
      return floats;
    case PESTLE_OP_FMA:
      // Without f64 there is nothing to make a fused one of.
      if (t->features & (PESTLE_C_PRINTER_HAS_FMA | PESTLE_C_PRINTER_HAS_F64))
        return floats;
      return 0;
    case PESTLE_OP_REMAINDER:
      return BIT(F32);
    default:
      return t->dialect->row[op] ? floats : 0;
  }
}

static uint32_t half_row(const pestle_c_printer_target_t* t, unsigned op) {
  bool pairs = t->features & PESTLE_C_PRINTER_HAS_HALVES;
  return pairs && pestle_c_printer_half_op(op) ? BIT(BF16) | BIT(F16) : 0;
}

static uint32_t int_row(unsigned op) {
  switch (op) {
    case PESTLE_OP_POWER:
    case PESTLE_OP_SIGN:
    case PESTLE_OP_POPCNT:
    case PESTLE_OP_CLZ:
      return 0;
    default:
      return kinds(PESTLE_KIND_BOOL | PESTLE_KIND_INT);
  }
}

static uint32_t row(const pestle_c_printer_target_t* t, unsigned op,
                    unsigned kind) {
  uint32_t bits = float_row(t, op) | half_row(t, op) | int_row(op);
  // A select moves any bits.
  if (op == PESTLE_OP_SELECT) return values(t);
  return bits & kinds(kind) & values(t);
}

// Narrow floats that the printer has no helpers for, which legalisation converts
// by bits.
static uint32_t by_bits(void) {
  uint32_t all = 0;
  for (unsigned d = 1; d < PESTLE_DTYPE_COUNT; ++d) {
    if (c_printer_is_narrow_float(d) && !pestle_c_printer_casts(d)) {
      all |= pestle_dtype_bit((pestle_dtype_t)d);
    }
  }
  return all;
}

void pestle_c_printer_describe(const pestle_c_printer_target_t* t,
                               pestle_target_caps_t* caps) {
  uint32_t all = values(t);
  uint32_t ints = all & kinds(PESTLE_KIND_INT);
  uint32_t wide_floats = all & (BIT(F32) | BIT(F64));
  uint32_t memory = storage(t) | BIT(INDEX);
  uint32_t bools = BIT(I1);
#define PESTLE_KIR(NAME, code, ...) caps->op_dtypes[code] = all;
#include "pestle/kir.def"
#define PESTLE_SCALAR(NAME, op, mlir, n, RULE, KINDS, ...) \
  caps->op_dtypes[PESTLE_KIR_##NAME] = row(t, PESTLE_OP_##NAME, KINDS);
#include "pestle/scalar.def"
  caps->op_dtypes[PESTLE_KIR_LOAD] = memory;
  caps->op_dtypes[PESTLE_KIR_STORE] = memory;
  caps->op_dtypes[PESTLE_KIR_GATHER] = memory;
  caps->op_dtypes[PESTLE_KIR_SCATTER] = memory;
  caps->op_dtypes[PESTLE_KIR_CAST] &= ~by_bits();
  caps->op_dtypes[PESTLE_KIR_PARAM] = ints;
  caps->op_dtypes[PESTLE_KIR_IOTA] = ints;
  caps->op_dtypes[PESTLE_KIR_REDUCE] = ints | wide_floats | bools;
  caps->op_dtypes[PESTLE_KIR_SG_REDUCE] = ints | wide_floats | bools;
  caps->op_dtypes[PESTLE_KIR_BARRIER] = all | BIT(NONE);
  caps->op_dtypes[PESTLE_KIR_TRAP_IF] = 0;
  caps->op_dtypes[PESTLE_KIR_GRID_WAIT] = t->dialect->wait ? all : 0;
  bool tiles = t->features & PESTLE_C_PRINTER_HAS_TILES;
  for (unsigned op = PESTLE_KIR_REF; op <= PESTLE_KIR_SYNC; ++op)
    caps->op_dtypes[op] = tiles ? all : 0;
  for (unsigned op = PESTLE_KIR_WGMMA_RA; op <= PESTLE_KIR_TILE_LOAD_ALL; ++op)
    caps->op_dtypes[op] = tiles ? all : 0;
  caps->op_dtypes[PESTLE_KIR_POPCNT] =
      t->dialect->popcount ? BIT(I32) | BIT(U32) : 0;
  caps->op_dtypes[PESTLE_KIR_SG_BALLOT] = t->dialect->ballot ? BIT(U32) : 0;
  caps->op_dtypes[PESTLE_KIR_ATOMIC_ADD] =
      t->dialect->atomic_add ? BIT(I32) : 0;
  bool units = t->features & PESTLE_C_PRINTER_HAS_MMA;
  bool small = t->features & PESTLE_C_PRINTER_HAS_MMA8;
  for (unsigned op = PESTLE_KIR_MMA; op <= PESTLE_KIR_COPY_WAIT; ++op)
    caps->op_dtypes[op] = units ? all : 0;
  if (small) caps->op_dtypes[PESTLE_KIR_MMA] = all;
  for (unsigned op = PESTLE_KIR_DOT2; op <= PESTLE_KIR_MREG_STREAM; ++op)
    caps->op_dtypes[op] = 0;
  if (t->dialect->dot4) {
    caps->op_dtypes[PESTLE_KIR_DOT4] = BIT(I32);
    caps->op_dtypes[PESTLE_KIR_LOAD_WORDS] = BIT(I32);
  }
  caps->storage_dtypes = storage(t);
  if (t->dialect->approx_exp2) caps->flags |= PESTLE_TARGET_APPROX;
}
