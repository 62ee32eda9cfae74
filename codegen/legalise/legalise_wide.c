// SPDX-License-Identifier: Apache-2.0
// Integers of 64 bits where the target computes with none: each value becomes two
// words (pair.c), and memory is seen as twice as many words, the lower one first.
//
//   %2 = load @x[%1] : i64          %2 = load @x[2 %1] : ui32
//   %3 = add %2, %2 : i64           %3 = load @x[2 %1 + 1] : ui32
//                                   %4 = add %2, %2 : ui32  ...
//
// An index that was computed in them keeps the bounds that the verifier had found.
#include "base/mem.h"
#include "codegen/kir/kir_range.h"
#include "codegen/legalise/expand.h"
#include "codegen/legalise/legalise.h"
#include "codegen/legalise/pair.h"

typedef pestle_pair_t pair_t;

static bool is_wide(unsigned dtype) {
  return dtype == PESTLE_I64 || dtype == PESTLE_U64;
}

// A target that does not even add and join them: one that lacks a row alone has
// legalise_row.c.
static bool lacks(const pestle_rewrite_t* r, pestle_dtype_t dtype) {
  return !pestle_rewrite_can_row(r, PESTLE_OP_ADD, dtype) &&
         !pestle_rewrite_can_row(r, PESTLE_OP_AND, dtype);
}

static bool needed(pestle_rewrite_t* r) {
  bool has = false;
  if (!lacks(r, PESTLE_I64) || !lacks(r, PESTLE_U64)) return false;
  for (uint32_t i = 0; i < r->from->inst_count && !has; ++i)
    has = is_wide(pestle_kir_inst(r->from, i)->type);
  for (uint32_t b = 0; b < r->from->buffer_count && !has; ++b)
    has = is_wide(pestle_kir_buffer(r->from, b)->dtype);
  return has;
}

// --- Rows that are made of others first ---

static bool is_composite(pestle_op_t op) {
  return op == PESTLE_OP_POWER || op == PESTLE_OP_SIGN || op == PESTLE_OP_CLAMP;
}

static bool is_composite_inst(const pestle_kir_t* k, uint32_t id,
                              pestle_op_t* out_op) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(k, id);
  return is_wide(inst->type) && pestle_kir_is_scalar(inst->op, out_op) &&
         is_composite(*out_op);
}

static bool rows_needed(pestle_rewrite_t* r) {
  pestle_op_t op;
  if (!needed(r)) return false;
  for (uint32_t i = 0; i < r->from->inst_count; ++i) {
    if (is_composite_inst(r->from, i, &op)) return true;
  }
  return false;
}

static pestle_status_t rewrite_row(pestle_rewrite_t* r, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, id);
  pestle_kir_inst_t mapped = pestle_rewrite_mapped(r, inst);
  pestle_kir_id_t value = PESTLE_KIR_NONE;
  pestle_op_t op;
  if (!is_composite_inst(r->from, id, &op)) {
    value = pestle_rewrite_put(r, mapped);
  } else if (!pestle_expand(r, op, mapped.arg, &value)) {
    return pestle_rewrite_unsupported(r, inst);
  }
  pestle_rewrite_set(r, id, value);
  return NULL;
}

const pestle_rewrite_pass_t pestle_legalise_wide_rows = {.needed = rows_needed,
                                                         .inst = rewrite_row};

// --- Values ---

// The first of a value's two ids; the second is of pairs alone.
static pestle_kir_id_t* slots(const pestle_rewrite_t* r, uint32_t id) {
  return &r->map.data[(size_t)id * 2];
}

static pair_t pair_of(const pestle_rewrite_t* r, uint32_t id) {
  const pestle_kir_id_t* at = slots(r, id);
  return (pair_t){at[0], at[1]};
}

static void set_pair(pestle_rewrite_t* r, uint32_t id, pair_t value) {
  slots(r, id)[0] = value.low;
  slots(r, id)[1] = value.high;
}

static const pestle_kir_inst_t* operand(const pestle_rewrite_t* r,
                                        const pestle_kir_inst_t* inst, int a) {
  return pestle_kir_inst(r->from, inst->arg[a]);
}

static vm_t words(const pestle_rewrite_t* r, unsigned lanes) {
  return (vm_t){r->to, PESTLE_U32, lanes, false};
}

// |inst| with its operands' words |which|: values that are no pairs have one.
static pestle_kir_inst_t mapped(const pestle_rewrite_t* r,
                                const pestle_kir_inst_t* inst, int which) {
  pestle_kir_inst_t copy = *inst;
  const char* letters = pestle_kir_info(inst->op).operands;
  for (int a = 0; letters[a]; ++a) {
    if (!pestle_kir_is_value(letters[a])) continue;
    if (inst->arg[a] >= r->from->inst_count) continue;
    bool pair = is_wide(operand(r, inst, a)->type);
    copy.arg[a] = slots(r, inst->arg[a])[pair ? which : 0];
  }
  if (is_wide(copy.type)) copy.type = PESTLE_U32;
  return copy;
}

// What moves lanes moves those of both words.
static void rewrite_words(pestle_rewrite_t* r, uint32_t id) {
  for (int which = 0; which < 2; ++which) {
    pestle_kir_inst_t inst = mapped(r, pestle_kir_inst(r->from, id), which);
    slots(r, id)[which] = pestle_rewrite_put(r, inst);
  }
}

static bool rewrite_scalar(pestle_rewrite_t* r, uint32_t id, pestle_op_t op) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, id);
  bool selects = pestle_kir_row(op)->rule == PESTLE_RULE_SELECT;
  pestle_dtype_t dtype = (pestle_dtype_t)operand(r, inst, selects)->type;
  pair_t a[3] = {{0, 0}}, value;
  for (int i = 0; i < pestle_kir_row(op)->arity; ++i)
    a[i] = pair_of(r, inst->arg[i]);
  if (selects) {
    value = pestle_pair_select(words(r, inst->lanes), a[0].low, a[1], a[2]);
  } else if (!pestle_pair_row(words(r, inst->lanes), op, dtype, a, &value)) {
    return false;
  }
  set_pair(r, id, value);
  return true;
}

// Halves folded onto each other.
static bool rewrite_reduce(pestle_rewrite_t* r, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, id);
  pestle_op_t op = (pestle_op_t)inst->arg[1];
  pair_t a[3] = {pair_of(r, inst->arg[0])};
  for (unsigned n = operand(r, inst, 0)->lanes; n > 1; n /= 2) {
    pair_t half[3] = {{0, 0}};
    half[0].low = pestle_rewrite_slice(r, a[0].low, 0, n / 2);
    half[0].high = pestle_rewrite_slice(r, a[0].high, 0, n / 2);
    half[1].low = pestle_rewrite_slice(r, a[0].low, n / 2, n / 2);
    half[1].high = pestle_rewrite_slice(r, a[0].high, n / 2, n / 2);
    if (!pestle_pair_row(words(r, n / 2), op, (pestle_dtype_t)inst->type, half,
                         &a[0])) {
      return false;
    }
  }
  set_pair(r, id, a[0]);
  return true;
}

static vm_id_t exchange(pestle_rewrite_t* r, const pestle_kir_inst_t* inst,
                        pestle_op_t op, vm_id_t x) {
  pestle_kir_inst_t copy = *inst;
  copy.type = (uint8_t)pestle_kir_type_of(r->to, x);
  copy.arg[0] = x;
  copy.arg[1] = (uint32_t)op;
  return pestle_kir_put(r->to, copy);
}

// Sums over a subgroup of quarters of 16 bits, which leave no word: the lanes of a
// subgroup are fewer than 65,536.
static pair_t subgroup_sum(pestle_rewrite_t* r, const pestle_kir_inst_t* inst,
                           pair_t a) {
  vm_t v = words(r, inst->lanes);
  vm_id_t quarter[4], more = vm_int(v, 0);
  for (int i = 0; i < 4; ++i) {
    vm_id_t x = i < 2 ? a.low : a.high;
    x = i % 2 ? vm_op2i(v, PESTLE_OP_SHIFT_RIGHT_LOGICAL, x, 16)
              : vm_op2i(v, PESTLE_OP_AND, x, 0xffff);
    x = exchange(r, inst, PESTLE_OP_ADD, x);
    x = vm_add(v, x, more);
    quarter[i] = vm_op2i(v, PESTLE_OP_AND, x, 0xffff);
    more = vm_op2i(v, PESTLE_OP_SHIFT_RIGHT_LOGICAL, x, 16);
  }
  pair_t sum;
  sum.low = vm_op2i(v, PESTLE_OP_SHIFT_LEFT, quarter[1], 16);
  sum.low = vm_op2(v, PESTLE_OP_OR, sum.low, quarter[0]);
  sum.high = vm_op2i(v, PESTLE_OP_SHIFT_LEFT, quarter[3], 16);
  sum.high = vm_op2(v, PESTLE_OP_OR, sum.high, quarter[2]);
  return sum;
}

// The end of the upper words, then that of the lower ones of lanes that have it.
static pair_t subgroup_end(pestle_rewrite_t* r, const pestle_kir_inst_t* inst,
                           pestle_op_t op, pair_t a) {
  vm_t v = words(r, inst->lanes);
  bool is_signed = inst->type == PESTLE_I64;
  vm_id_t high = is_signed ? vm_bits(v, a.high, PESTLE_I32) : a.high;
  high = exchange(r, inst, op, high);
  pair_t end;
  end.high = vm_bits(v, high, PESTLE_U32);
  vm_id_t has = vm_op2(v, PESTLE_OP_EQ, a.high, end.high);
  vm_id_t other = vm_int(v, op == PESTLE_OP_MAXIMUM ? 0 : UINT32_MAX);
  end.low = vm_select(v, has, a.low, other);
  end.low = exchange(r, inst, op, end.low);
  return end;
}

static bool rewrite_subgroup(pestle_rewrite_t* r, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, id);
  pestle_op_t op = (pestle_op_t)inst->arg[1];
  pair_t a = pair_of(r, inst->arg[0]);
  switch ((int)op) {
    case PESTLE_OP_ADD:
      set_pair(r, id, subgroup_sum(r, inst, a));
      return true;
    case PESTLE_OP_MAXIMUM:
    case PESTLE_OP_MINIMUM:
      set_pair(r, id, subgroup_end(r, inst, op, a));
      return true;
    case PESTLE_OP_AND:
    case PESTLE_OP_OR:
    case PESTLE_OP_XOR:
      rewrite_words(r, id);
      return true;
    default:
      return false;
  }
}

// --- Casts ---

// What the verifier knows of value |id| here, if that is within i32.
static bool is_bounded(const pestle_rewrite_t* r, uint32_t id, int64_t* out_lo,
                       int64_t* out_hi) {
  *out_lo = r->ranges->fact.data[id].lo;
  *out_hi = r->ranges->fact.data[id].hi;
  return *out_lo >= INT32_MIN && *out_hi <= INT32_MAX;
}

// The lower word, which is all there is, with its bounds in sight.
static vm_id_t bounded_i32(pestle_rewrite_t* r, unsigned lanes, pair_t a,
                           int64_t lo, int64_t hi) {
  vm_t v = {r->to, PESTLE_I32, lanes, false};
  vm_id_t x = vm_bits(v, a.low, PESTLE_I32);
  if (lo > INT32_MIN) x = vm_op2i(v, PESTLE_OP_MAXIMUM, x, lo);
  return hi < INT32_MAX ? vm_op2i(v, PESTLE_OP_MINIMUM, x, hi) : x;
}

static vm_id_t cast_from(pestle_rewrite_t* r, const pestle_kir_inst_t* inst) {
  const pestle_kir_inst_t* x = operand(r, inst, 0);
  vm_t v = words(r, inst->lanes);
  pestle_dtype_t from = (pestle_dtype_t)x->type;
  pestle_dtype_t to = (pestle_dtype_t)inst->type;
  pair_t a = pair_of(r, inst->arg[0]);
  int64_t lo, hi;
  if (to == PESTLE_F64) return pestle_pair_to_f64(v, from, a);
  if (pestle_dtype_is(to, PESTLE_KIND_FLOAT)) {
    vm_id_t f = pestle_pair_to_f32(v, from, a, to != PESTLE_F32);
    return vm_cast(v, f, to);
  }
  if (to == PESTLE_I1) {
    vm_id_t any = vm_op2(v, PESTLE_OP_OR, a.low, a.high);
    return vm_op2i(v, PESTLE_OP_NE, any, 0);
  }
  if (is_bounded(r, inst->arg[0], &lo, &hi)) {
    vm_id_t near = bounded_i32(r, inst->lanes, a, lo, hi);
    return vm_cast(v, near, to);
  }
  if (to == PESTLE_INDEX) {
    vm_id_t near = pestle_pair_to_near_i32(v, from, a);
    return vm_cast(v, near, to);
  }
  return vm_cast(v, a.low, to);
}

// Nothing is known of it: an index has 64 bits.
static pair_t pair_of_index(vm_t v, vm_id_t x) {
  vm_t index = vm_as(v, PESTLE_INDEX);
  pair_t p;
  vm_id_t high = vm_op2i(index, PESTLE_OP_SHIFT_RIGHT_ARITHMETIC, x, 32);
  p.low = vm_cast(v, x, PESTLE_U32);
  p.high = vm_cast(v, high, PESTLE_U32);
  return p;
}

static bool rewrite_cast(pestle_rewrite_t* r, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, id);
  pestle_dtype_t from = (pestle_dtype_t)operand(r, inst, 0)->type;
  vm_id_t x = slots(r, inst->arg[0])[0];
  int64_t lo, hi;
  if (!is_wide(inst->type)) {
    slots(r, id)[0] = cast_from(r, inst);
    return true;
  }
  if (is_wide(from)) {
    set_pair(r, id, pair_of(r, inst->arg[0]));
    return true;
  }
  vm_t v = words(r, inst->lanes);
  if (from == PESTLE_INDEX && !is_bounded(r, inst->arg[0], &lo, &hi)) {
    set_pair(r, id, pair_of_index(v, x));
    return true;
  }
  if (pestle_dtype_is(from, PESTLE_KIND_FLOAT) && from != PESTLE_F64)
    x = vm_cast(v, x, PESTLE_F32);
  set_pair(r, id, pestle_pair_from(v, (pestle_dtype_t)inst->type, x));
  return true;
}

// --- Memory ---

static void buffers(pestle_rewrite_t* r) {
  for (size_t b = 0; b < r->to->buffer.size; ++b) {
    pestle_kir_buffer_t* buffer = &r->to->buffer.data[b];
    if (!is_wide(buffer->dtype)) continue;
    buffer->dtype = PESTLE_U32;
    buffer->count *= 2;
  }
  r->ranges =
      pestle_alloc_zero(r->map.allocator, sizeof(struct pestle_kir_ranges_t));
  if (r->ranges)
    pestle_kir_ranges_init(r->map.allocator, r->from, r->ranges);
  else
    r->to->failed = true;
}

static void end(pestle_rewrite_t* r) {
  if (!r->ranges) return;
  pestle_kir_ranges_deinit(r->ranges);
  pestle_dealloc(r->map.allocator, r->ranges, sizeof(*r->ranges));
  r->ranges = NULL;
}

// The indices of words |which| of |lanes| elements from |index| on, or at the
// indices of a vector.
static vm_id_t word_indices(pestle_rewrite_t* r, vm_id_t index, unsigned lanes,
                            int which) {
  vm_t v = {r->to, pestle_kir_type_of(r->to, index), lanes, false};
  if (pestle_kir_lanes_of(r->to, index) == lanes && lanes > 1) {
    index = vm_op2i(v, PESTLE_OP_MULTIPLY, index, 2);
    return which ? vm_op2i(v, PESTLE_OP_ADD, index, 1) : index;
  }
  vm_id_t offset = pestle_kir_index(r->to, which);
  vm_id_t first = pestle_kir_madi(r->to, index, 2, offset);
  vm_id_t lane = pestle_kir_iota(r->to, PESTLE_INDEX, lanes);
  lane = vm_op2i(v, PESTLE_OP_MULTIPLY, lane, 2);
  return vm_add(v, pestle_kir_splat(r->to, first, lanes), lane);
}

// Consecutive elements are every second word. A gather of one lane stays one.
static pestle_kir_inst_t access_word(pestle_rewrite_t* r,
                                     const pestle_kir_inst_t* inst, int which) {
  bool stores = inst->op == PESTLE_KIR_STORE || inst->op == PESTLE_KIR_SCATTER;
  bool lanewise =
      inst->op == PESTLE_KIR_GATHER || inst->op == PESTLE_KIR_SCATTER;
  const pestle_kir_buffer_t* buffer = pestle_kir_buffer(r->from, inst->arg[0]);
  bool is_private = buffer->scope == PESTLE_KIR_PRIVATE;
  pestle_kir_inst_t copy = mapped(r, inst, which);
  if (copy.align_log2 > 2) copy.align_log2 = 2;
  if (is_private || (inst->lanes == 1 && !lanewise)) {
    vm_id_t offset = pestle_kir_index(r->to, which);
    copy.arg[1] = pestle_kir_madi(r->to, copy.arg[1], 2, offset);
  } else if (inst->lanes == 1) {
    vm_t v = {r->to, pestle_kir_type_of(r->to, copy.arg[1]), 1, false};
    copy.arg[1] = vm_op2i(v, PESTLE_OP_MULTIPLY, copy.arg[1], 2);
    if (which) copy.arg[1] = vm_op2i(v, PESTLE_OP_ADD, copy.arg[1], 1);
  } else {
    copy.arg[1] = word_indices(r, copy.arg[1], inst->lanes, which);
    copy.op = stores ? PESTLE_KIR_SCATTER : PESTLE_KIR_GATHER;
  }
  return copy;
}

static bool touches_wide(const pestle_rewrite_t* r,
                         const pestle_kir_inst_t* inst) {
  return is_wide(pestle_kir_buffer(r->from, inst->arg[0])->dtype);
}

static void rewrite_access(pestle_rewrite_t* r, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, id);
  for (int which = 0; which < 2; ++which) {
    pestle_kir_inst_t copy = access_word(r, inst, which);
    slots(r, id)[which] = pestle_kir_put(r->to, copy);
  }
}

static void rewrite_prefetch(pestle_rewrite_t* r, uint32_t id) {
  pestle_kir_inst_t copy = mapped(r, pestle_kir_inst(r->from, id), 0);
  vm_id_t zero = pestle_kir_index(r->to, 0);
  copy.arg[1] = pestle_kir_madi(r->to, copy.arg[1], 2, zero);
  slots(r, id)[0] = pestle_kir_put(r->to, copy);
}

// --- Instructions ---

static bool takes_wide(const pestle_rewrite_t* r,
                       const pestle_kir_inst_t* inst) {
  const char* letters = pestle_kir_info(inst->op).operands;
  for (int a = 0; letters[a]; ++a) {
    if (letters[a] == 'b' && touches_wide(r, inst)) return true;
    if (pestle_kir_is_value(letters[a]) && inst->arg[a] < r->from->inst_count &&
        is_wide(operand(r, inst, a)->type)) {
      return true;
    }
  }
  return is_wide(inst->type);
}

static bool is_access(unsigned op) {
  return op == PESTLE_KIR_LOAD || op == PESTLE_KIR_STORE ||
         op == PESTLE_KIR_GATHER || op == PESTLE_KIR_SCATTER;
}

// False: the instruction has no pairs' form.
static bool rewrite_pairs(pestle_rewrite_t* r, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, id);
  vm_t v = words(r, inst->lanes);
  pestle_op_t op;
  if (pestle_kir_is_scalar(inst->op, &op)) return rewrite_scalar(r, id, op);
  if (is_access(inst->op)) {
    rewrite_access(r, id);
    return true;
  }
  switch (inst->op) {
    case PESTLE_KIR_CONST:
      set_pair(r, id, pestle_pair_const(v, pestle_kir_const_int(inst)));
      return true;
    case PESTLE_KIR_IOTA:
      slots(r, id)[0] = pestle_kir_iota(r->to, PESTLE_U32, inst->lanes);
      slots(r, id)[1] = vm_int(v, 0);
      return true;
    case PESTLE_KIR_SPLAT:
    case PESTLE_KIR_EXTRACT:
    case PESTLE_KIR_INSERT:
    case PESTLE_KIR_SHUFFLE:
      rewrite_words(r, id);
      return true;
    case PESTLE_KIR_REDUCE:
      return rewrite_reduce(r, id);
    case PESTLE_KIR_SG_REDUCE:
      return rewrite_subgroup(r, id);
    case PESTLE_KIR_CAST:
      return rewrite_cast(r, id);
    case PESTLE_KIR_BITCAST:
      if (!is_wide(inst->type) || !is_wide(operand(r, inst, 0)->type))
        return false;
      set_pair(r, id, pair_of(r, inst->arg[0]));
      return true;
    case PESTLE_KIR_ALLOC:
      slots(r, id)[0] = pestle_kir_put(r->to, *inst);
      return true;
    case PESTLE_KIR_PREFETCH:
      rewrite_prefetch(r, id);
      return true;
    default:
      return false;
  }
}

static pestle_status_t rewrite_inst(pestle_rewrite_t* r, uint32_t id) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(r->from, id);
  if (!r->ranges) return PESTLE_OOM();
  pestle_kir_ranges_visit(r->ranges, id);
  if (r->ranges->failed) return PESTLE_OOM();
  if (!takes_wide(r, inst)) {
    slots(r, id)[0] = pestle_rewrite_put(r, mapped(r, inst, 0));
    return NULL;
  }
  return rewrite_pairs(r, id) ? NULL : pestle_rewrite_unsupported(r, inst);
}

const pestle_rewrite_pass_t pestle_legalise_wide = {.needed = needed,
                                                    .buffers = buffers,
                                                    .inst = rewrite_inst,
                                                    .parts = 2,
                                                    .end = end,
                                                    .is_checked = true};
