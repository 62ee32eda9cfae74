// SPDX-License-Identifier: Apache-2.0
// Dtypes that a target stores but does not compute with. A value of a narrow
// float becomes an f32 that the narrow type has exactly (with `fast` numerics
// any f32, rounded when it is stored); an integer of 2 or 4 bits one of 8 bits.
// Where the target cannot even cast, or cannot load the dtype, the bits are
// made by integer arithmetic (legalise_bits.c) and memory is seen as integers.
#include "base/fault.h"
#include "base/half.h"
#include "codegen/legalise/legalise_bits.h"

static bool is_narrow_float(pestle_dtype_t d) {
  return pestle_dtype_is(d, PESTLE_KIND_FLOAT) && d != PESTLE_F32 &&
         d != PESTLE_F64;
}
static bool is_small_int(pestle_dtype_t d) {
  return pestle_dtype_is(d, PESTLE_KIND_INT) && pestle_dtype_is_sub_byte(d);
}
static bool is_signed(pestle_dtype_t d) {
  return pestle_dtype_is(d, PESTLE_KIND_SIGNED);
}
static unsigned width_of(pestle_dtype_t d) {
  return pestle_dtype_info(d)->bits;
}
static bool widens(const pestle_rewrite_t* r, unsigned dtype) {
  return r->widened >> dtype & 1;
}

// What a value of |dtype| is after the pass.
static pestle_dtype_t value_type(const pestle_rewrite_t* r,
                                 pestle_dtype_t dtype) {
  if (!widens(r, dtype)) return dtype;
  if (!is_small_int(dtype)) return PESTLE_F32;
  return is_signed(dtype) ? PESTLE_I8 : PESTLE_U8;
}

static bool can_move(const pestle_rewrite_t* r, pestle_dtype_t d) {
  return pestle_rewrite_can(r, PESTLE_KIR_LOAD, d) &&
         pestle_rewrite_can(r, PESTLE_KIR_STORE, d);
}
static bool can_cast(const pestle_rewrite_t* r, pestle_dtype_t d) {
  return pestle_rewrite_can(r, PESTLE_KIR_CAST, d);
}

// What an element of |dtype| is in memory.
static pestle_dtype_t memory_type(const pestle_rewrite_t* r,
                                  pestle_dtype_t dtype) {
  if (is_narrow_float(dtype) && widens(r, dtype)) {
    if (can_move(r, dtype) && can_cast(r, dtype)) return dtype;
    return pestle_dtype_size(dtype) == 1 ? PESTLE_U8 : PESTLE_U16;
  }
  if (dtype == PESTLE_I1 && !can_move(r, dtype)) return PESTLE_U8;
  return value_type(r, dtype);
}

// --- Whether it is needed ---

static void note(pestle_rewrite_t* r, unsigned dtype) {
  pestle_dtype_t d = (pestle_dtype_t)dtype;
  if (is_narrow_float(d) || is_small_int(d)) r->widened |= UINT64_C(1) << dtype;
}
_Static_assert(PESTLE_DTYPE_COUNT <= 64, "dtypes are bits of 64");

// A dtype is widened as a whole as soon as one instruction on it is illegal, or
// when numerics say that arithmetic on it should not round.
static bool needed(pestle_rewrite_t* r) {
  pestle_op_t op;
  bool storage = false;
  r->widened = 0;
  for (uint32_t i = 0; i < r->from->inst_count; ++i) {
    const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, i);
    pestle_dtype_t d = pestle_rewrite_dtype(r->from, inst);
    bool row = pestle_kir_is_scalar(inst->op, &op);
    bool arithmetic = row && op != PESTLE_OP_SELECT;
    bool fast = r->numerics == PESTLE_NUMERICS_FAST && is_narrow_float(d);
    if (arithmetic && fast) note(r, d);
    if (pestle_rewrite_legal(r, inst)) continue;
    note(r, d);
    if (inst->op == PESTLE_KIR_CAST) {
      note(r, pestle_kir_inst(r->from, inst->arg[0])->type);
    }
    storage = storage || (d == PESTLE_I1 && !can_move(r, d));
  }
  // No target sees these, not even buffers that nothing reads.
  for (uint32_t b = 0; b < r->from->buffer_count; ++b) {
    unsigned d = pestle_kir_buffer(r->from, b)->dtype;
    if (d >= PESTLE_PLUGIN_DTYPES) note(r, d);
  }
  // They are each other's bits.
  const uint64_t pairs[] = {
      UINT64_C(1) << PESTLE_I4 | UINT64_C(1) << PESTLE_U4,
      UINT64_C(1) << PESTLE_I2 | UINT64_C(1) << PESTLE_U2,
  };
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i) {
    if (r->widened & pairs[i]) r->widened |= pairs[i];
  }
  return r->widened || storage;
}

// --- Rounding ---

static pestle_kir_id_t wrap_small(pestle_rewrite_t* r, pestle_dtype_t d,
                                  pestle_kir_id_t x) {
  vm_t v = {r->to, pestle_kir_type_of(r->to, x), pestle_kir_lanes_of(r->to, x),
            false};
  if (PESTLE_FAULT(lost_wrap)) return x;
  int64_t width = width_of(d);
  if (!is_signed(d)) return vm_op2i(v, PESTLE_OP_AND, x, (1 << width) - 1);
  x = vm_op2i(v, PESTLE_OP_SHIFT_LEFT, x, 8 - width);
  return vm_op2i(v, PESTLE_OP_SHIFT_RIGHT_ARITHMETIC, x, 8 - width);
}

// Bits of |d|, from and to the f32 that stands for it.
static pestle_kir_id_t encode(pestle_rewrite_t* r, pestle_dtype_t d,
                              pestle_kir_id_t x) {
  pestle_dtype_t bits = pestle_dtype_size(d) == 1 ? PESTLE_U8 : PESTLE_U16;
  if (!can_cast(r, d)) return pestle_bits_encode(r->to, d, x);
  return pestle_kir_bitcast(r->to, pestle_kir_cast(r->to, x, d), bits);
}
static pestle_kir_id_t decode(pestle_rewrite_t* r, pestle_dtype_t d,
                              pestle_kir_id_t bits) {
  if (!can_cast(r, d)) return pestle_bits_decode(r->to, d, bits);
  return pestle_kir_cast(r->to, pestle_kir_bitcast(r->to, bits, d), PESTLE_F32);
}

// An f32, or 8-bit integer, brought to what |d| has.
static pestle_kir_id_t round_to(pestle_rewrite_t* r, pestle_dtype_t d,
                                pestle_kir_id_t x) {
  if (is_small_int(d)) return wrap_small(r, d, x);
  if (r->numerics == PESTLE_NUMERICS_FAST || PESTLE_FAULT(lost_rounding)) {
    return x;
  }
  if (can_cast(r, d)) {
    return pestle_kir_cast(r->to, pestle_kir_cast(r->to, x, d), PESTLE_F32);
  }
  return pestle_bits_decode(r->to, d, pestle_bits_encode(r->to, d, x));
}

// Whether the numbers of |d| end with an integer, so that what is rounded to one
// is one of them.
static bool ends_with_integer(pestle_dtype_t d) {
  double most = pestle_float_max(d);
  return floor(most) >= most;
}

// Rows whose result any float format with a -0 has when it has the operands.
static bool is_closed(pestle_op_t op, pestle_dtype_t d) {
  if (op == PESTLE_OP_SELECT || op == PESTLE_OP_MAXIMUM ||
      op == PESTLE_OP_MINIMUM || op == PESTLE_OP_CLAMP) {
    return true;
  }
  if (is_small_int(d)) return false;
  pestle_float_specials_t specials = pestle_float_format(d)->specials;
  if (specials == PESTLE_FLOAT_UNSIGNED || specials == PESTLE_FLOAT_SCALE) {
    return false;
  }
  bool rounds = op == PESTLE_OP_FLOOR || op == PESTLE_OP_CEIL ||
                op == PESTLE_OP_ROUND_EVEN || op == PESTLE_OP_ROUND_AFZ;
  return op == PESTLE_OP_NEGATE || op == PESTLE_OP_ABS ||
         op == PESTLE_OP_SIGN || op == PESTLE_OP_TRUNC ||
         (rounds && ends_with_integer(d));
}

// --- Instructions ---

static pestle_kir_id_t rewrite_const(pestle_rewrite_t* r,
                                     const pestle_kir_inst_t* inst) {
  pestle_dtype_t d = (pestle_dtype_t)inst->type;
  if (is_small_int(d)) {
    return pestle_kir_int(r->to, value_type(r, d), inst->lanes,
                          pestle_kir_const_int(inst));
  }
  double value = pestle_float_round(d, pestle_kir_const_float(inst));
  return pestle_kir_float(r->to, PESTLE_F32, inst->lanes, value);
}

// Rows that ask for an integer's width take its bits as they are: without the
// copies of the sign, or with them where an unsigned one is shifted as if it had
// one.
static void take_small(pestle_rewrite_t* r, pestle_op_t op, pestle_dtype_t d,
                       pestle_kir_inst_t* mapped) {
  pestle_kir_id_t x = mapped->arg[0];
  vm_t v = {r->to, pestle_kir_type_of(r->to, x), pestle_kir_lanes_of(r->to, x),
            false};
  int64_t width = width_of(d);
  bool counts = op == PESTLE_OP_CLZ || op == PESTLE_OP_POPCNT ||
                op == PESTLE_OP_SHIFT_RIGHT_LOGICAL;
  if (op == PESTLE_OP_SHIFT_RIGHT_ARITHMETIC && !is_signed(d)) {
    x = vm_op2i(v, PESTLE_OP_SHIFT_LEFT, x, 8 - width);
    mapped->arg[0] = vm_op2i(v, PESTLE_OP_SHIFT_RIGHT_ARITHMETIC, x, 8 - width);
  } else if (is_signed(d) && counts) {
    mapped->arg[0] = vm_op2i(v, PESTLE_OP_AND, x, (1 << width) - 1);
  }
}

static pestle_kir_id_t rewrite_scalar(pestle_rewrite_t* r, pestle_op_t op,
                                      pestle_kir_inst_t mapped) {
  pestle_dtype_t d = (pestle_dtype_t)mapped.type;
  bool small = is_small_int(d) && widens(r, d);
  if (small) take_small(r, op, d, &mapped);
  mapped.type = (uint8_t)value_type(r, d);
  pestle_kir_id_t id = pestle_rewrite_put(r, mapped);
  if (small && op == PESTLE_OP_CLZ) {
    vm_t v = {r->to, value_type(r, d), pestle_kir_lanes_of(r->to, id), false};
    id = vm_op2i(v, PESTLE_OP_SUBTRACT, id, 8 - (int64_t)width_of(d));
  }
  return widens(r, d) && !is_closed(op, d) ? round_to(r, d, id) : id;
}

// Halves folded onto each other, rounded each time.
static pestle_kir_id_t rewrite_reduce(pestle_rewrite_t* r,
                                      pestle_kir_inst_t mapped) {
  pestle_dtype_t d = (pestle_dtype_t)mapped.type;
  pestle_op_t op = (pestle_op_t)mapped.arg[1];
  pestle_kir_id_t x = mapped.arg[0];
  mapped.type = (uint8_t)value_type(r, d);
  if (is_closed(op, d) || is_small_int(d) ||
      r->numerics == PESTLE_NUMERICS_FAST) {
    return round_to(r, d, pestle_kir_put(r->to, mapped));
  }
  for (unsigned n = pestle_kir_lanes_of(r->to, x); n > 1; n /= 2) {
    pestle_kir_id_t low = pestle_rewrite_slice(r, x, 0, n / 2);
    pestle_kir_id_t high = pestle_rewrite_slice(r, x, n / 2, n / 2);
    r->to->facts = mapped.facts;
    x = pestle_kir_scalar(r->to, op, low, high, PESTLE_KIR_NONE);
    r->to->facts = 0;
    x = round_to(r, d, x);
  }
  return x;
}

// To an integer of 2 or 4 bits: floats saturate.
static pestle_kir_id_t cast_to_small(pestle_rewrite_t* r, pestle_dtype_t d,
                                     pestle_kir_id_t x) {
  pestle_dtype_t from = pestle_kir_type_of(r->to, x);
  vm_t v = {r->to, from, pestle_kir_lanes_of(r->to, x), false};
  if (!pestle_dtype_is(from, PESTLE_KIND_FLOAT)) {
    return wrap_small(r, d, vm_cast(v, x, value_type(r, d)));
  }
  unsigned value_bits = width_of(d) - is_signed(d);
  x = vm_at_most(v, x, (1 << value_bits) - 1);
  x = vm_at_least(v, x, is_signed(d) ? -(1 << value_bits) : 0);
  return vm_cast(v, x, value_type(r, d));
}

// To a narrow float, rounding once. Integers of 32 and more bits go through
// f64, where the target has it: beyond 2^24 f32 would round first.
static pestle_kir_id_t cast_to_float(pestle_rewrite_t* r, pestle_dtype_t d,
                                     pestle_kir_id_t x) {
  pestle_dtype_t from = pestle_kir_type_of(r->to, x);
  bool fast = r->numerics == PESTLE_NUMERICS_FAST;
  if (can_cast(r, d) && !fast) {
    return pestle_kir_cast(r->to, pestle_kir_cast(r->to, x, d), PESTLE_F32);
  }
  bool large = !pestle_dtype_is(from, PESTLE_KIND_FLOAT) &&
               pestle_dtype_info(from)->bits >= 32;
  if (large && !fast && can_cast(r, PESTLE_F64)) {
    x = pestle_kir_cast(r->to, x, PESTLE_F64);
    from = PESTLE_F64;
  }
  if (from == PESTLE_F64 && !fast) {
    x = pestle_bits_odd_f32(r->to, x);
  } else {
    x = pestle_kir_cast(r->to, x, PESTLE_F32);
  }
  return round_to(r, d, x);
}

static pestle_kir_id_t rewrite_cast(pestle_rewrite_t* r,
                                    pestle_kir_inst_t mapped) {
  pestle_dtype_t d = (pestle_dtype_t)mapped.type;
  if (!widens(r, d)) return pestle_rewrite_put(r, mapped);
  return is_small_int(d) ? cast_to_small(r, d, mapped.arg[0])
                         : cast_to_float(r, d, mapped.arg[0]);
}

// The bits of |x| as |dtype|. What takes some of a byte's bits is cast, which cuts
// the others off.
static pestle_kir_id_t to_bits(pestle_rewrite_t* r, pestle_dtype_t dtype,
                               pestle_kir_id_t x) {
  unsigned width = width_of(pestle_kir_type_of(r->to, x));
  return width == width_of(dtype) ? pestle_kir_bitcast(r->to, x, dtype)
                                  : pestle_kir_cast(r->to, x, dtype);
}

static pestle_kir_id_t rewrite_bitcast(pestle_rewrite_t* r,
                                       const pestle_kir_inst_t* inst,
                                       pestle_kir_inst_t mapped) {
  pestle_dtype_t from =
      (pestle_dtype_t)pestle_kir_inst(r->from, inst->arg[0])->type;
  pestle_dtype_t to = (pestle_dtype_t)inst->type;
  pestle_kir_id_t x = mapped.arg[0];
  if (is_narrow_float(from) && widens(r, from)) x = encode(r, from, x);
  if (is_narrow_float(to) && widens(r, to)) {
    pestle_dtype_t bits = pestle_dtype_size(to) == 1 ? PESTLE_U8 : PESTLE_U16;
    return decode(r, to, to_bits(r, bits, x));
  }
  x = to_bits(r, value_type(r, to), x);
  return is_small_int(to) && widens(r, to) ? wrap_small(r, to, x) : x;
}

// --- Memory ---

static pestle_kir_id_t from_memory(pestle_rewrite_t* r, pestle_dtype_t d,
                                   pestle_kir_id_t x) {
  if (d == PESTLE_I1) {
    vm_t v = {r->to, pestle_kir_type_of(r->to, x),
              pestle_kir_lanes_of(r->to, x), false};
    return v.dtype == PESTLE_I1 ? x : vm_op2i(v, PESTLE_OP_NE, x, 0);
  }
  if (!is_narrow_float(d) || !widens(r, d)) return x;
  if (memory_type(r, d) == d) return pestle_kir_cast(r->to, x, PESTLE_F32);
  return decode(r, d, x);
}

static pestle_kir_id_t to_memory(pestle_rewrite_t* r, pestle_dtype_t d,
                                 pestle_kir_id_t x) {
  if (d == PESTLE_I1) return pestle_kir_cast(r->to, x, memory_type(r, d));
  if (!is_narrow_float(d) || !widens(r, d)) return x;
  if (memory_type(r, d) == d) return pestle_kir_cast(r->to, x, d);
  return encode(r, d, x);
}

static bool is_private(const pestle_rewrite_t* r, uint32_t buffer) {
  return pestle_kir_buffer(r->from, buffer)->scope == PESTLE_KIR_PRIVATE;
}

static pestle_kir_id_t rewrite_access(pestle_rewrite_t* r,
                                      pestle_kir_inst_t mapped) {
  pestle_dtype_t d =
      (pestle_dtype_t)pestle_kir_buffer(r->from, mapped.arg[0])->dtype;
  bool stores =
      mapped.op == PESTLE_KIR_STORE || mapped.op == PESTLE_KIR_SCATTER;
  bool tile = is_private(r, mapped.arg[0]);
  if (tile && value_type(r, d) == PESTLE_F32) mapped.align_log2 = 2;
  if (stores) {
    if (!tile) mapped.arg[2] = to_memory(r, d, mapped.arg[2]);
    return pestle_kir_put(r->to, mapped);
  }
  mapped.type = (uint8_t)(tile ? value_type(r, d) : memory_type(r, d));
  pestle_kir_id_t id = pestle_kir_put(r->to, mapped);
  return tile ? id : from_memory(r, d, id);
}

static void buffers(pestle_rewrite_t* r) {
  for (uint32_t b = 0; b < r->to->buffer.size; ++b) {
    pestle_kir_buffer_t* buffer = &r->to->buffer.data[b];
    pestle_dtype_t d = (pestle_dtype_t)buffer->dtype;
    buffer->dtype =
        (uint8_t)(buffer->scope == PESTLE_KIR_PRIVATE ? value_type(r, d)
                                                      : memory_type(r, d));
  }
}

static pestle_status_t rewrite_inst(pestle_rewrite_t* r, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, id);
  pestle_kir_inst_t mapped = pestle_rewrite_mapped(r, inst);
  pestle_kir_id_t value;
  pestle_op_t op;
  if (pestle_kir_is_scalar(inst->op, &op)) {
    value = rewrite_scalar(r, op, mapped);
  } else if (inst->op == PESTLE_KIR_CAST) {
    value = rewrite_cast(r, mapped);
  } else if (inst->op == PESTLE_KIR_BITCAST) {
    value = rewrite_bitcast(r, inst, mapped);
  } else if (inst->op == PESTLE_KIR_LOAD || inst->op == PESTLE_KIR_STORE ||
             inst->op == PESTLE_KIR_GATHER || inst->op == PESTLE_KIR_SCATTER) {
    value = rewrite_access(r, mapped);
  } else if (!widens(r, inst->type)) {
    value = pestle_rewrite_put(r, mapped);
  } else if (inst->op == PESTLE_KIR_CONST) {
    value = rewrite_const(r, inst);
  } else if (inst->op == PESTLE_KIR_REDUCE) {
    value = rewrite_reduce(r, mapped);
  } else if (inst->op == PESTLE_KIR_SG_REDUCE) {
    // Rounded once: lanes exchange what they have in f32.
    pestle_dtype_t d = (pestle_dtype_t)inst->type;
    mapped.type = (uint8_t)value_type(r, d);
    value = round_to(r, d, pestle_kir_put(r->to, mapped));
  } else {
    mapped.type = (uint8_t)value_type(r, (pestle_dtype_t)inst->type);
    value = pestle_rewrite_put(r, mapped);
    if (is_small_int((pestle_dtype_t)inst->type)) {
      value = wrap_small(r, (pestle_dtype_t)inst->type, value);
    }
  }
  pestle_rewrite_set(r, id, value);
  return NULL;
}

const pestle_rewrite_pass_t pestle_legalise_narrow = {
    .needed = needed, .buffers = buffers, .inst = rewrite_inst};
