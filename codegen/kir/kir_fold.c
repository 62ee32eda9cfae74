// SPDX-License-Identifier: Apache-2.0
// Integer constants: what the builder folds so that emission may be naive.
// Floats are left alone, since their rounding belongs to the target.
#include "base/bits.h"
#include "codegen/kir/kir_internal.h"

#define COMM PESTLE_OP_FLAG_COMM
#define ASSOC PESTLE_OP_FLAG_ASSOC
#define IDEM PESTLE_OP_FLAG_IDEM
#define TRANS PESTLE_OP_FLAG_TRANS

pestle_kir_op_info_t pestle_kir_info(unsigned op) {
  return pestle_kir_op_info(op);
}

const pestle_kir_row_t* pestle_kir_row(pestle_op_t op) {
  static const pestle_kir_row_t rows[PESTLE_SCALAR_COUNT] = {
#define PESTLE_SCALAR(NAME, op, mlir, n, RULE, KINDS, FLAGS, ...) \
  [PESTLE_OP_##NAME] = {n, PESTLE_RULE_##RULE, KINDS, FLAGS},
#include "pestle/scalar.def"
  };
  return &rows[op];
}

#undef COMM
#undef ASSOC
#undef IDEM
#undef TRANS

int64_t pestle_kir_wrap_int(pestle_dtype_t type, int64_t value) {
  unsigned bits = pestle_dtype_info(type)->bits;
  if (bits == 0 || bits >= 64) return value;
  uint64_t mask = (UINT64_C(1) << bits) - 1;
  uint64_t low = (uint64_t)value & mask;
  if (!pestle_dtype_is(type, PESTLE_KIND_SIGNED)) return (int64_t)low;
  uint64_t sign = UINT64_C(1) << (bits - 1);
  return (int64_t)((low ^ sign) - sign);
}

static bool less(bool is_signed, int64_t a, int64_t b) {
  return is_signed ? a < b : (uint64_t)a < (uint64_t)b;
}

// Division by zero gives all ones and its remainder the dividend.
static int64_t divide(bool is_signed, int64_t a, int64_t b) {
  if (b == 0) return -1;
  if (!is_signed) return (int64_t)((uint64_t)a / (uint64_t)b);
  return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t remainder_of(bool is_signed, int64_t a, int64_t b) {
  if (b == 0) return a;
  if (!is_signed) return (int64_t)((uint64_t)a % (uint64_t)b);
  return b == -1 ? 0 : a % b;
}

static int64_t shift_right(bool arithmetic, unsigned bits, int64_t a,
                           uint64_t by) {
  uint64_t low = (uint64_t)a;
  if (bits < 64) low &= (UINT64_C(1) << bits) - 1;
  if (!arithmetic) return by >= bits ? 0 : (int64_t)(low >> by);
  int64_t wide = (int64_t)(low << (64 - bits));
  return wide >> (64 - bits + (by >= bits ? bits - 1 : (unsigned)by));
}

bool pestle_kir_fold_int(pestle_op_t op, pestle_dtype_t type,
                         const int64_t value[3], int64_t* out_value) {
  bool is_signed = pestle_dtype_is(type, PESTLE_KIND_SIGNED);
  unsigned bits = pestle_dtype_info(type)->bits;
  int64_t a = value[0], b = value[1], c = value[2], r = 0;
  uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
  // Rows that are absent here are rare on constants, or take floats alone.
  if (op == PESTLE_OP_ADD) {
    r = bits == 1 ? a | b : (int64_t)(ua + ub);
  } else if (op == PESTLE_OP_SUBTRACT) {
    r = (int64_t)(ua - ub);
  } else if (op == PESTLE_OP_MULTIPLY) {
    r = (int64_t)(ua * ub);
  } else if (op == PESTLE_OP_DIVIDE) {
    r = divide(is_signed, a, b);
  } else if (op == PESTLE_OP_REMAINDER) {
    r = remainder_of(is_signed, a, b);
  } else if (op == PESTLE_OP_MAXIMUM) {
    r = less(is_signed, b, a) ? a : b;
  } else if (op == PESTLE_OP_MINIMUM) {
    r = less(is_signed, a, b) ? a : b;
  } else if (op == PESTLE_OP_NEGATE) {
    r = (int64_t)(0 - ua);
  } else if (op == PESTLE_OP_AND) {
    r = a & b;
  } else if (op == PESTLE_OP_OR) {
    r = a | b;
  } else if (op == PESTLE_OP_XOR) {
    r = a ^ b;
  } else if (op == PESTLE_OP_NOT) {
    r = ~a;
  } else if (op == PESTLE_OP_SHIFT_LEFT) {
    r = ub >= bits ? 0 : (int64_t)(ua << ub);
  } else if (op == PESTLE_OP_SHIFT_RIGHT_LOGICAL) {
    r = shift_right(false, bits, a, ub);
  } else if (op == PESTLE_OP_SHIFT_RIGHT_ARITHMETIC) {
    r = shift_right(true, bits, a, ub);
  } else if (op == PESTLE_OP_EQ || op == PESTLE_OP_NE) {
    *out_value = (a == b) == (op == PESTLE_OP_EQ);
    return true;
  } else if (op == PESTLE_OP_LT || op == PESTLE_OP_GE) {
    *out_value = less(is_signed, a, b) == (op == PESTLE_OP_LT);
    return true;
  } else if (op == PESTLE_OP_GT || op == PESTLE_OP_LE) {
    *out_value = less(is_signed, b, a) == (op == PESTLE_OP_GT);
    return true;
  } else if (op == PESTLE_OP_CLAMP) {
    r = less(is_signed, b, a) ? a : b;
    if (less(is_signed, c, r)) r = c;
  } else {
    return false;
  }
  *out_value = pestle_kir_wrap_int(type, r);
  return true;
}

// --- Scalar rows on values ---

static bool is_const(const pestle_kir_builder_t* k, pestle_kir_id_t id,
                     int64_t wanted) {
  int64_t value;
  return pestle_kir_is_int(k, id, &value) && value == wanted;
}

// The constant that |op| makes of its operands, when all are integers.
static bool fold_all(pestle_kir_builder_t* k, pestle_op_t op, unsigned arity,
                     const pestle_kir_id_t v[3], pestle_kir_id_t* out_id) {
  int64_t value[3] = {0, 0, 0}, result;
  for (unsigned i = 0; i < arity; ++i) {
    if (!pestle_kir_is_int(k, v[i], &value[i])) return false;
  }
  pestle_dtype_t type = pestle_kir_type_of(k, v[0]);
  if (!pestle_kir_fold_int(op, type, value, &result)) return false;
  if (pestle_kir_row(op)->rule == PESTLE_RULE_COMPARE) type = PESTLE_I1;
  *out_id = pestle_kir_int(k, type, pestle_kir_lanes_of(k, v[0]), result);
  return true;
}

// Index arithmetic of one lane becomes madi.
static bool as_madi(pestle_kir_builder_t* k, pestle_op_t op, pestle_kir_id_t a,
                    pestle_kir_id_t b, pestle_kir_id_t* out_id) {
  int64_t value;
  if (op == PESTLE_OP_ADD) {
    if (pestle_kir_is_int(k, a, &value)) {
      *out_id = pestle_kir_madi(k, b, 1, a);
    } else {
      *out_id = pestle_kir_madi(k, a, 1, b);
    }
    return true;
  }
  if (op == PESTLE_OP_SUBTRACT) {
    if (pestle_kir_is_int(k, b, &value) && value != INT64_MIN) {
      *out_id = pestle_kir_madi(k, a, 1, pestle_kir_index(k, -value));
    } else {
      *out_id = pestle_kir_madi(k, b, -1, a);
    }
    return true;
  }
  if (op != PESTLE_OP_MULTIPLY) return false;
  pestle_kir_id_t x = a;
  if (!pestle_kir_is_int(k, b, &value)) {
    x = b;
    if (!pestle_kir_is_int(k, a, &value)) return false;
  }
  if (value != (int32_t)value) return false;
  *out_id = pestle_kir_madi(k, x, value, PESTLE_KIR_NONE);
  return true;
}

// a op b where one of them, or both being one value, decides the result.
static bool identity(pestle_kir_builder_t* k, pestle_op_t op, pestle_kir_id_t a,
                     pestle_kir_id_t b, pestle_kir_id_t* out_id) {
  pestle_dtype_t type = pestle_kir_type_of(k, a);
  bool sum = op == PESTLE_OP_ADD || op == PESTLE_OP_OR || op == PESTLE_OP_XOR;
  bool shift = op == PESTLE_OP_SHIFT_LEFT ||
               op == PESTLE_OP_SHIFT_RIGHT_ARITHMETIC ||
               op == PESTLE_OP_SHIFT_RIGHT_LOGICAL;
  bool product = op == PESTLE_OP_MULTIPLY;
  int64_t ones = pestle_kir_wrap_int(type, -1);
  *out_id = a;
  if ((sum || shift || op == PESTLE_OP_SUBTRACT) && is_const(k, b, 0)) {
    return true;
  }
  if ((product || op == PESTLE_OP_DIVIDE) && is_const(k, b, 1)) return true;
  if ((product || op == PESTLE_OP_AND) && is_const(k, a, 0)) return true;
  if (op == PESTLE_OP_AND && is_const(k, b, ones)) return true;
  if (a == b && pestle_kir_row(op)->flags & PESTLE_OP_FLAG_IDEM) return true;
  *out_id = b;
  if (sum && is_const(k, a, 0)) return true;
  if (product && is_const(k, a, 1)) return true;
  if ((product || op == PESTLE_OP_AND) && is_const(k, b, 0)) return true;
  if (op == PESTLE_OP_AND && is_const(k, a, ones)) return true;
  if (op == PESTLE_OP_REMAINDER && is_const(k, b, 1)) {
    *out_id = pestle_kir_int(k, type, pestle_kir_lanes_of(k, a), 0);
    return true;
  }
  return false;
}

static bool simplify(pestle_kir_builder_t* k, pestle_op_t op, unsigned arity,
                     const pestle_kir_id_t v[3], pestle_kir_id_t* out_id) {
  int64_t condition;
  if (op == PESTLE_OP_SELECT) {
    *out_id = v[1];
    if (v[1] == v[2]) return true;
    if (!pestle_kir_is_int(k, v[0], &condition)) return false;
    if (!condition) *out_id = v[2];
    return true;
  }
  pestle_dtype_t type = pestle_kir_type_of(k, v[0]);
  if (pestle_dtype_is(type, PESTLE_KIND_FLOAT)) return false;
  if (fold_all(k, op, arity, v, out_id)) return true;
  if (arity != 2) return false;
  if (identity(k, op, v[0], v[1], out_id)) return true;
  return type == PESTLE_INDEX && pestle_kir_lanes_of(k, v[0]) == 1 &&
         as_madi(k, op, v[0], v[1], out_id);
}

pestle_kir_id_t pestle_kir_scalar(pestle_kir_builder_t* k, pestle_op_t op,
                                  pestle_kir_id_t a, pestle_kir_id_t b,
                                  pestle_kir_id_t c) {
  const pestle_kir_row_t* row = pestle_kir_row(op);
  pestle_kir_id_t v[3] = {a, b, c}, folded;
  unsigned lanes = 1;
  for (unsigned i = 0; i < row->arity; ++i) {
    unsigned has = pestle_kir_lanes_of(k, v[i]);
    if (has > lanes) lanes = has;
  }
  for (unsigned i = 0; i < row->arity; ++i) {
    v[i] = pestle_kir_splat(k, v[i], lanes);
  }
  if (k->failed) return 0;
  if (simplify(k, op, row->arity, v, &folded)) return folded;
  pestle_dtype_t type =
      pestle_kir_type_of(k, row->rule == PESTLE_RULE_SELECT ? v[1] : v[0]);
  pestle_kir_inst_t inst = {.op = (uint16_t)pestle_kir_code(op),
                            .type = (uint8_t)type,
                            .lanes = (uint8_t)lanes};
  if (pestle_dtype_is(type, PESTLE_KIND_FLOAT)) inst.facts = k->facts;
  if (row->rule == PESTLE_RULE_COMPARE || row->rule == PESTLE_RULE_TEST) {
    inst.type = PESTLE_I1;
  }
  for (unsigned i = 0; i < row->arity; ++i)
    inst.arg[i] = v[i];
  return pestle_kir_put(k, inst);
}

pestle_kir_id_t pestle_kir_scalar_i(pestle_kir_builder_t* k, pestle_op_t op,
                                    pestle_kir_id_t a, int64_t b) {
  pestle_kir_id_t c = pestle_kir_index(k, b);
  return pestle_kir_scalar(k, op, a, c, PESTLE_KIR_NONE);
}
